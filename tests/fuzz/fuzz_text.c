/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every parser of short texts that an operator or a peer gives: npub, nsec, secrets, hex, UDP and Ethernet addresses;
 * the first byte chooses which.
 *
 * Checked: what is taken comes out again as a text that is taken and means the same; hex comes out as it went in, lower
 * case; a bech32 text that is taken differs from the one we write only in case and in its checksum; nothing is
 * written when a text is refused.
 */
#include "fuzz.h"
#include "sl_addr.h"
#include "sl_identity.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { CHOICE_NPUB, CHOICE_NSEC, CHOICE_SECRET, CHOICE_HEX, CHOICE_UDP, CHOICE_MAC, CHOICES };
#define BECH32_CHECKSUM_CHARS 6

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	return 0;
}

static void
bech32(const char *text, int (*parse)(uint8_t *, const char *),
	void (*format)(char *, const uint8_t *))
{
	uint8_t key[32], again[32];
	char out[SL_NPUB_SIZE];
	int rc = parse(key, text);

	if (rc != 0) {
		FUZZ_CHECK(rc == -EINVAL);
		return;
	}
	format(out, key);
	FUZZ_CHECK(strlen(out) == SL_NPUB_CHARS && strlen(text) == SL_NPUB_CHARS);
	FUZZ_CHECK(strncasecmp(out, text, SL_NPUB_CHARS - BECH32_CHECKSUM_CHARS) == 0);
	FUZZ_CHECK(parse(again, out) == 0 && memcmp(key, again, sizeof(key)) == 0);
}

static void
secret(const char *text)
{
	struct sl_identity *id = sl_identity_from_text(text), *same;
	char out[SL_NPUB_SIZE];

	if (id == NULL) {
		FUZZ_CHECK(errno == EINVAL);
		return;
	}
	sl_nsec_format(out, sl_identity_secret(id));
	same = sl_identity_from_text(out);
	FUZZ_CHECK(same && memcmp(sl_identity_compressed(id), sl_identity_compressed(same),
				   SL_COMPRESSED_BYTES) == 0);
	sl_identity_destroy(same);
	sl_identity_destroy(id);
}

static void
hex(const char *text)
{
	size_t len = strlen(text) / 2;
	uint8_t *bytes = malloc(len ? len : 1);
	char *out = malloc(2 * len + 1);

	if (sl_hex_parse(bytes, len, text) == 0) {
		sl_hex_format(out, bytes, len);
		FUZZ_CHECK(strcasecmp(out, text) == 0);
		for (size_t i = 0; out[i]; i++)
			FUZZ_CHECK(
				isdigit((unsigned char)out[i]) || (out[i] >= 'a' && out[i] <= 'f'));
	}
	free(out);
	free(bytes);
}

static void
addr(const char *text, int (*parse)(struct sl_addr *, const char *))
{
	struct sl_addr a, b, before;
	char out[SL_ADDR_TEXT_SIZE];

	memset(&before, 0xa5, sizeof(before));
	a = before;
	if (parse(&a, text) != 0) {
		FUZZ_CHECK(sl_addr_equal(&a, &before));
		return;
	}
	sl_addr_format(out, &a);
	FUZZ_CHECK(strlen(out) < SL_ADDR_TEXT_SIZE);
	FUZZ_CHECK(parse(&b, out) == 0 && sl_addr_equal(&a, &b));
	FUZZ_CHECK(sl_addr_hash(&a) == sl_addr_hash(&b));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1)
		return 0;
	text = malloc(size); /* the bytes after the choice, and the end of the string */
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % CHOICES) {
	case CHOICE_NPUB:
		bech32(text, sl_npub_parse, sl_npub_format);
		break;
	case CHOICE_NSEC:
		bech32(text, sl_nsec_parse, sl_nsec_format);
		break;
	case CHOICE_SECRET:
		secret(text);
		break;
	case CHOICE_HEX:
		hex(text);
		break;
	case CHOICE_UDP:
		addr(text, sl_addr_parse_udp);
		break;
	default:
		addr(text, sl_addr_parse_mac);
	}
	free(text);
	return 0;
}
