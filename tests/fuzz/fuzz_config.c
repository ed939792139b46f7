/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration: any bytes are either refused with one line and a place inside them, or mean
 * something whose printed form is accepted and prints the same.
 */
#include "fuzz.h"
#include <string.h>
#include "../../app/sluiced/config.h"

/* libfyaml 0.7.12 loses memory on some refused texts; the daemon ends then. Ours is still watched. */
const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
	return "leak:libfyaml.so";
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	return 0;
}

static char *
print(const struct sl_config *c, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);

	FUZZ_CHECK(f != NULL);
	sl_config_print(f, c);
	fclose(f);
	return text;
}

static void
check_error(const struct sl_conf_error *e, size_t size)
{
	FUZZ_CHECK(e->text[0] && !strchr(e->text, '\n') && strlen(e->text) < sizeof(e->text));
	FUZZ_CHECK(e->at.line <= size + 2);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_config *a = sl_config_create(), *b;
	struct sl_conf_error e;
	char *first, *second;
	size_t first_len, second_len;

	FUZZ_CHECK(a != NULL);
	if (sl_config_parse(a, (const char *)data, size, &e)) {
		check_error(&e, size);
		sl_config_destroy(a);
		return 0;
	}
	first = print(a, &first_len);
	b = sl_config_create();
	FUZZ_CHECK(b != NULL);
	if (sl_config_parse(b, first, first_len, &e)) {
		fprintf(stderr, "%u:%u: %s in\n%s", e.at.line, e.at.column, e.text, first);
		abort();
	}
	second = print(b, &second_len);
	FUZZ_CHECK(first_len == second_len && !memcmp(first, second, first_len));
	free(first);
	free(second);
	sl_config_destroy(a);
	sl_config_destroy(b);
	return 0;
}
