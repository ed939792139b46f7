/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrapped texts: NIP-59's own example, both ways, and every layer forged. */
#include "sl_wrap.h"
#include "sl_nip44.h"
#include "sl_test.h"
#include <errno.h>
#include <stdlib.h>

static struct sl_identity *
identity(uint8_t n)
{
	uint8_t secret[SL_SECRET_BYTES] = {[31] = n};

	return sl_identity_create(secret);
}

SL_TEST(wrap, nip59_example)
{
	struct sl_identity *to = sl_identity_from_text("e108399bd8424357a710b606ae0c13166d853d327e47a6e5e038197346bdbf45");
	char text[SL_WRAP_TEXT_MAX + 1], hex[2 * SL_XONLY_BYTES + 1], json[4096];
	uint8_t author[SL_XONLY_BYTES];
	struct sl_nostr_event e;
	FILE *f = fopen(SL_VECTORS_DIR "/nostr/nip59-example.json", "r");
	size_t len;

	SL_ASSERT(f != NULL && to != NULL);
	len = fread(json, 1, sizeof(json), f);
	fclose(f);
	SL_EXPECT_EQ(sl_nostr_event_parse(&e, json, len, 0), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	SL_EXPECT_STR(sl_wrap_error_name(sl_wrap_open_kinds(&e, 1059, 1, to, author, text, sizeof(text))), "ok");
	SL_EXPECT_STR(text, "Are you going to the party tonight?");
	sl_hex_format(hex, author, sizeof(author));
	SL_EXPECT_STR(hex, "611df01bfcf85c26ae65453b772d8f1dfd25c264621c0277e1fc1518686faef9");
	SL_EXPECT_STR(sl_wrap_error_name(sl_wrap_open(&e, to, author, text, sizeof(text))), "not-a-wrap");
	sl_nostr_event_fini(&e);
	sl_identity_destroy(to);
}

SL_TEST(wrap, round_trip)
{
	struct sl_identity *a = identity(1), *b = identity(2), *c = identity(3);
	char text[SL_WRAP_TEXT_MAX + 1];
	uint8_t author[SL_XONLY_BYTES];
	struct sl_nostr_event e;
	struct sl_wrap w;
	size_t len;
	char *json;

	SL_ASSERT(a && b && c);
	SL_EXPECT_EQ(sl_wrap_build(&w, a, sl_identity_xonly(b), "{\"type\":\"offer\"}", 1700000000, 120), 0);
	/* What a relay sees: a key of the moment, the receiver, an end, the present time. */
	SL_EXPECT_EQ(w.event.kind, 21059);
	SL_EXPECT_EQ(w.event.created_at, 1700000000);
	SL_EXPECT(memcmp(w.event.pubkey, sl_identity_xonly(a), SL_XONLY_BYTES) != 0);
	SL_EXPECT_STR(sl_nostr_event_tag(&w.event, "expiration"), "1700000120");
	json = sl_nostr_event_format(&w.event, &len);
	SL_ASSERT(json != NULL);
	SL_EXPECT_EQ(sl_nostr_event_parse(&e, json, len, 0), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_wrap_open(&e, b, author, text, sizeof(text)), SL_WRAP_OK);
	SL_EXPECT_STR(text, "{\"type\":\"offer\"}");
	SL_EXPECT_MEM(author, sl_identity_xonly(a), SL_XONLY_BYTES);
	SL_EXPECT_STR(sl_wrap_error_name(sl_wrap_open(&e, c, author, text, sizeof(text))), "not-for-us");
	SL_EXPECT_STR(sl_wrap_error_name(sl_wrap_open(&e, b, author, text, 16)), "text-too-long");
	SL_EXPECT_EQ(sl_wrap_open(&e, b, author, text, 17), SL_WRAP_OK);
	sl_nostr_event_fini(&e);
	free(json);
	sl_wrap_fini(&w);
	SL_EXPECT_EQ(sl_wrap_build(&w, a, sl_identity_xonly(b), "", 1700000000, 120), -EINVAL);
	memset(author, 0xff, sizeof(author));
	SL_EXPECT_EQ(sl_wrap_build(&w, a, author, "x", 1700000000, 120), -EINVAL);
	sl_identity_destroy(a);
	sl_identity_destroy(b);
	sl_identity_destroy(c);
}

/* A wrap made by hand, with one thing in it other than it should be. */
struct forgery {
	const char *what, *want;
	uint32_t wrap_kind, seal_kind, rumor_kind;
	unsigned rumor_by, sealed_by; /* identities: whom the rumor names, who signs the seal */
	bool spoil_seal_sig, spoil_rumor_id, spoil_wrap, spoil_inner, no_p, other_p, not_json;
};

static void
encrypt(char *out, size_t size, const struct sl_identity *from, const struct sl_identity *to, const char *text)
{
	uint8_t key[SL_NIP44_KEY_BYTES];

	SL_EXPECT_EQ(sl_nip44_conversation_key(key, sl_identity_secret(from), sl_identity_xonly(to)), 0);
	SL_EXPECT_EQ(sl_nip44_encrypt(out, size, key, text, strlen(text), NULL), 0);
}

static void
forge(const struct forgery *f)
{
	static char inner[16384], outer[16384];
	struct sl_identity *id[4] = {identity(10), identity(11), identity(12), identity(13)}, *to = identity(20);
	struct sl_nostr_event rumor = {.created_at = 1, .content = "text"}, seal = {.created_at = 1}, wrap = {.created_at = 1};
	char hex[2 * SL_XONLY_BYTES + 1], text[64], *json;
	const char *values[2] = {"p", hex};
	const struct sl_nostr_tag p = {.values = values, .count = 2};
	uint8_t author[SL_XONLY_BYTES];
	size_t len;

	sl_hex_format(hex, sl_identity_xonly(f->other_p ? id[0] : to), SL_XONLY_BYTES);
	rumor.kind = f->rumor_kind;
	rumor.tags = &p;
	rumor.tag_count = 1;
	SL_EXPECT_EQ(sl_nostr_event_name(&rumor, sl_identity_xonly(id[f->rumor_by])), 0);
	rumor.id[0] ^= f->spoil_rumor_id;
	json = sl_nostr_event_format(&rumor, &len);
	encrypt(inner, sizeof(inner), id[f->sealed_by], to, f->not_json ? "no event" : json);
	free(json);
	inner[40] = f->spoil_inner ? inner[40] ^ 1 : inner[40];
	seal.kind = f->seal_kind;
	seal.content = inner;
	SL_EXPECT_EQ(sl_nostr_event_sign(&seal, id[f->sealed_by]), 0);
	seal.sig[9] ^= f->spoil_seal_sig;
	json = sl_nostr_event_format(&seal, &len);
	encrypt(outer, sizeof(outer), id[3], to, json);
	free(json);
	outer[40] = f->spoil_wrap ? (outer[40] == 'A' ? 'B' : 'A') : outer[40];
	wrap.kind = f->wrap_kind;
	wrap.tags = &p;
	wrap.tag_count = !f->no_p;
	wrap.content = outer;
	SL_EXPECT_EQ(sl_nostr_event_sign(&wrap, id[3]), 0);
	SL_EXPECT_MSG(strcmp(sl_wrap_error_name(sl_wrap_open(&wrap, to, author, text, sizeof(text))), f->want) == 0,
		"%s: %s, not %s", f->what, sl_wrap_error_name(sl_wrap_open(&wrap, to, author, text, sizeof(text))), f->want);
	for (unsigned i = 0; i < 4; i++)
		sl_identity_destroy(id[i]);
	sl_identity_destroy(to);
}

SL_TEST(wrap, forged)
{
	static const struct forgery forgeries[] = {
		{"nothing wrong", "ok", 21059, 13, 14, 0, 0, .no_p = false},
		{"kind of the wrap", "not-a-wrap", 1059, 13, 14, 0, 0, .no_p = false},
		{"no p tag", "not-for-us", 21059, 13, 14, 0, 0, .no_p = true},
		{"p tag of another", "not-for-us", 21059, 13, 14, 0, 0, .other_p = true},
		{"wrap's cipher", "wrap-not-readable", 21059, 13, 14, 0, 0, .spoil_wrap = true},
		{"kind of the seal", "seal-malformed", 21059, 14, 14, 0, 0, .no_p = false},
		{"seal's signature", "seal-forged", 21059, 13, 14, 0, 0, .spoil_seal_sig = true},
		{"rumor not an event", "rumor-malformed", 21059, 13, 14, 0, 0, .not_json = true},
		{"kind of the rumor", "rumor-malformed", 21059, 13, 1, 0, 0, .no_p = false},
		{"rumor names another", "rumor-of-another-author", 21059, 13, 14, 1, 0, .no_p = false},
		{"rumor's id", "rumor-of-another-author", 21059, 13, 14, 0, 0, .spoil_rumor_id = true},
	};

	for (unsigned i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++)
		forge(&forgeries[i]);
}
