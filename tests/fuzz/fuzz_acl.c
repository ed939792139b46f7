/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access lists: three texts, parted by a byte 1f: peers.allow, peers.deny, hosts. Read from real files. What the lists
 * say of three keys is held against a plain reading of the same texts, and every listed key is sorted and there once.
 */
#include "fuzz.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "../../app/sluiced/acl.h"

#define PARTS 3
#define FILE_MOST 65536

static const char *const names[PARTS] = {"peers.allow", "peers.deny", "hosts"};
static char folder[64];
static uint8_t keys[PARTS][SL_XONLY_BYTES];

static void
clean_up(void)
{
	char path[128];

	for (unsigned i = 0; i < PARTS; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(folder);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	snprintf(folder, sizeof(folder), "%s/sl-fuzz-acl-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	FUZZ_CHECK(mkdtemp(folder) != NULL);
	atexit(clean_up);
	/* A, B, C of the link layer facts, 2.4: the seeds name them. */
	FUZZ_CHECK(!sl_npub_parse(keys[0], "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m"));
	FUZZ_CHECK(!sl_npub_parse(keys[1], "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le"));
	FUZZ_CHECK(!sl_npub_parse(keys[2], "npub1y3jnatzrgjyqqtxqdwlm0ug0uxyerc6lnljrqtd75mfr20wq4vwqskmn49"));
	return 0;
}

static void
file_write(unsigned part, const char *text, size_t len)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, names[part]);
	f = fopen(path, "wb");
	FUZZ_CHECK(f != NULL && fwrite(text, 1, len, f) == len && fclose(f) == 0);
}

/* The words of a line, cut at a zero byte; returns how many there are, keeps the first two. */
static unsigned
words(char *line, char *first_two[2])
{
	unsigned n = 0;
	char *save;

	for (char *w = strtok_r(line, " \t\r\v\f", &save); w; w = strtok_r(NULL, " \t\r\v\f", &save), n++)
		if (n < 2)
			first_two[n] = w;
	return n;
}

/* Calls fn with a copy of each line, ended by a zero. */
static void
each_line(const char *text, size_t len, void (*fn)(void *arg, char *line), void *arg)
{
	for (size_t at = 0; at < len;) {
		const char *stop = memchr(text + at, '\n', len - at);
		size_t n = stop ? (size_t)(stop - (text + at)) : len - at;
		char *line = calloc(1, n + 1);

		FUZZ_CHECK(line != NULL);
		memcpy(line, text + at, n);
		fn(arg, line);
		free(line);
		at += n + 1;
	}
}

struct oracle {
	const char *part[PARTS];
	size_t len[PARTS];
	const char *name; /* asked of hosts */
	const uint8_t *key;
	bool listed, found;
	uint8_t found_key[SL_XONLY_BYTES];
};

static void
host_line(void *arg, char *line)
{
	struct oracle *o = arg;
	uint8_t key[SL_XONLY_BYTES];
	char *w[2];

	if (words(line, w) == 2 && w[0][0] != '#' && strlen(w[0]) <= 63 && strncasecmp(w[0], "npub1", 5) != 0 &&
		strcasecmp(w[0], o->name) == 0 && sl_npub_parse(key, w[1]) == 0) {
		memcpy(o->found_key, key, sizeof(key));
		o->found = true;
	}
}

static void
entry_line(void *arg, char *line)
{
	struct oracle *o = arg;
	uint8_t key[SL_XONLY_BYTES];
	char *w[2];

	line[strcspn(line, "#")] = '\0';
	if (words(line, w) != 1)
		return;
	if (strcasecmp(w[0], "ALL") == 0) {
		o->listed = true;
		return;
	}
	if (sl_npub_parse(key, w[0]) < 0) {
		o->name = w[0];
		o->found = false;
		each_line(o->part[2], o->len[2], host_line, o);
		if (!o->found)
			return;
		memcpy(key, o->found_key, sizeof(key));
	}
	o->listed |= memcmp(key, o->key, sizeof(key)) == 0;
}

static bool
listed(struct oracle *o, unsigned which, const uint8_t *key)
{
	o->key = key;
	o->listed = false;
	each_line(o->part[which], o->len[which], entry_line, o);
	return o->listed;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oracle o = {.len = {0}};
	const char *at = (const char *)data, *end = at + size;
	struct sl_acl *acl;

	if (size > FILE_MOST)
		return 0;
	for (unsigned i = 0; i < PARTS; i++) {
		const char *stop = i + 1 < PARTS && at < end ? memchr(at, 0x1f, (size_t)(end - at)) : NULL;

		o.part[i] = at;
		o.len[i] = (size_t)((stop ? stop : end) - at);
		file_write(i, o.part[i], o.len[i]);
		at = stop ? stop + 1 : end;
	}
	acl = sl_acl_create(folder, false, NULL, NULL);
	FUZZ_CHECK(acl != NULL);
	for (unsigned i = 0; i < PARTS; i++)
		FUZZ_CHECK(sl_acl_allows(acl, keys[i]) == (listed(&o, SL_ACL_ALLOW, keys[i]) || !listed(&o, SL_ACL_DENY, keys[i])));
	for (unsigned which = SL_ACL_ALLOW; which <= SL_ACL_DENY; which++) {
		const struct sl_acl_list *l = sl_acl_list(acl, which);

		for (uint32_t i = 1; i < l->count; i++)
			FUZZ_CHECK(memcmp(l->keys[i - 1], l->keys[i], SL_XONLY_BYTES) < 0);
	}
	FUZZ_CHECK(sl_acl_mode(acl)[0] != '\0');
	sl_acl_destroy(acl);
	return 0;
}
