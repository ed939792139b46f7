/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: the published vector of the peering facts (section 20), every named fault, and random events there and back. */
#include "sl_hash.h"
#include "sl_nostr_event.h"
#include "sl_test.h"

#include <stdlib.h>

#define SECRET_A "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
#define PUBKEY_A "84bf7562262bbd6940085748f3be6afa52ae317155181ece31b66351ccffa4b0"
#define ID_A "a05fa85034abad477eec938510b35e8514db0d4b7cf2f72141a1b614942a285a"
#define SIG_A                                                                                                          \
	"2aa2e8e37b40778046c95401a7b905424f2f5a7d172a7e2b4d06b66b72392a029546d3652dc9c98fe050021a780ba9bf64143e3e49c1" \
	"6c28601438bb96fbbdc8"
#define CONTENT_A                                                                                                      \
	"{\\\"identifier\\\":\\\"fips-overlay-v1\\\",\\\"version\\\":1,\\\"endpoints\\\":[{\\\"transport\\\":\\\"tcp\\\","   \
	"\\\"addr\\\":\\\"8.8.8.8:443\\\"}]}"
#define TAGS_A                                                                                                         \
	"[[\"d\",\"fips-overlay-v1\"],[\"protocol\",\"fips-overlay-v1\"],[\"version\",\"1\"],[\"expiration\","          \
	"\"1700003600\"]]"
#define SERIALISED_A "[0,\"" PUBKEY_A "\",1700000000,37195," TAGS_A ",\"" CONTENT_A "\"]"
#define EVENT_A                                                                                                        \
	"{\"id\":\"" ID_A "\",\"pubkey\":\"" PUBKEY_A "\",\"created_at\":1700000000,\"kind\":37195,\"tags\":" TAGS_A   \
	",\"content\":\"" CONTENT_A "\",\"sig\":\"" SIG_A "\"}"

static struct sl_identity *
identity_a(void)
{
	return sl_identity_from_text(SECRET_A);
}

SL_TEST(event, published_vector)
{
	struct sl_nostr_event e;
	uint64_t until = 0;
	size_t len;
	char *text;

	SL_ASSERT(sl_nostr_event_parse(&e, EVENT_A, strlen(EVENT_A), 0) == SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	SL_EXPECT_EQ(e.kind, 37195);
	SL_EXPECT_EQ(e.created_at, 1700000000);
	SL_EXPECT_EQ(e.tag_count, 4);
	SL_EXPECT_STR(sl_nostr_event_tag(&e, "version"), "1");
	SL_EXPECT_EQ(sl_nostr_event_expiration(&e, &until), 0);
	SL_EXPECT_EQ(until, 1700003600);
	text = sl_nostr_event_serialise(&e, &len);
	SL_EXPECT_STR(text, SERIALISED_A);
	SL_EXPECT_EQ(len, strlen(SERIALISED_A));
	free(text);
	text = sl_nostr_event_format(&e, &len);
	SL_EXPECT_STR(text, EVENT_A);
	free(text);
	sl_nostr_event_fini(&e);
}

SL_TEST(event, made_and_signed)
{
	static const char *const d[] = {"d", "fips-overlay-v1"}, *const protocol[] = {"protocol", "fips-overlay-v1"},
				*const version[] = {"version", "1"}, *const expiration[] = {"expiration", "1700003600"};
	static const struct sl_nostr_tag tags[] = {{d, 2}, {protocol, 2}, {version, 2}, {expiration, 2}};
	struct sl_identity *id = identity_a();
	struct sl_nostr_event e = {.kind = 37195, .created_at = 1700000000, .tags = tags, .tag_count = 4,
		.content = "{\"identifier\":\"fips-overlay-v1\",\"version\":1,\"endpoints\":[{\"transport\":\"tcp\","
			   "\"addr\":\"8.8.8.8:443\"}]}"};
	uint8_t want[32];

	SL_EXPECT_EQ(sl_nostr_event_sign(&e, id), 0);
	sl_test_unhex(want, 32, ID_A);
	SL_EXPECT_MEM(e.id, want, 32);
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	e.sig[63] ^= 1;
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_BAD_SIGNATURE);
	e.sig[63] ^= 1;
	e.created_at++;
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_BAD_ID);
	sl_identity_destroy(id);
}

static void
expect_error(const char *text, unsigned flags, enum sl_nostr_error want)
{
	struct sl_nostr_event e;
	enum sl_nostr_error got = sl_nostr_event_parse(&e, text, strlen(text), flags);

	SL_EXPECT_MSG(got == want, "%s, not %s: %.120s", sl_nostr_error_name(got), sl_nostr_error_name(want), text);
	sl_nostr_event_fini(&e);
}

#define REST(fields) "{\"id\":\"" ID_A "\",\"pubkey\":\"" PUBKEY_A "\"," fields "\"sig\":\"" SIG_A "\"}"
#define TIME "\"created_at\":1,"
#define KIND "\"kind\":1,"
#define TAGS "\"tags\":[],"
#define TEXT "\"content\":\"\","

SL_TEST(event, every_fault_by_name)
{
	static char big[SL_NOSTR_TEXT_MAX + 2];

	expect_error(REST(TIME KIND TAGS TEXT), 0, SL_NOSTR_OK);
	expect_error("", 0, SL_NOSTR_NOT_JSON);
	expect_error("{", 0, SL_NOSTR_NOT_JSON);
	expect_error(REST(TIME KIND TAGS TEXT) "x", 0, SL_NOSTR_NOT_JSON);
	expect_error(REST(TIME TIME KIND TAGS TEXT), 0, SL_NOSTR_NOT_JSON);
	expect_error(REST(TIME KIND TAGS "\"content\":\"\\u0000\","), 0, SL_NOSTR_NUL);
	expect_error(REST(TIME KIND TAGS "\"content\":\"\",\"a\\u0000\":1,"), 0, SL_NOSTR_NUL);
	expect_error(REST(TIME KIND TAGS "\"content\":\"\xff\","), 0, SL_NOSTR_NOT_JSON);
	expect_error(REST(TIME KIND TAGS "\"content\":\"\\ud800\","), 0, SL_NOSTR_NOT_JSON);
	expect_error("[]", 0, SL_NOSTR_NOT_OBJECT);
	expect_error(REST(KIND TAGS TEXT), 0, SL_NOSTR_FIELD_MISSING);
	expect_error(REST(TIME TAGS TEXT), 0, SL_NOSTR_FIELD_MISSING);
	expect_error(REST(TIME KIND TEXT), 0, SL_NOSTR_FIELD_MISSING);
	expect_error(REST(TIME KIND TAGS), 0, SL_NOSTR_FIELD_MISSING);
	expect_error("{\"pubkey\":\"" PUBKEY_A "\"," TIME KIND TAGS "\"content\":\"\"}", 0, SL_NOSTR_FIELD_MISSING);
	expect_error("{\"pubkey\":\"" PUBKEY_A "\"," TIME KIND TAGS "\"content\":\"\"}", SL_NOSTR_UNSIGNED, SL_NOSTR_OK);
	expect_error(REST("\"created_at\":-1," KIND TAGS TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST("\"created_at\":1.5," KIND TAGS TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST("\"created_at\":\"1\"," KIND TAGS TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST("\"created_at\":253402300800," KIND TAGS TEXT), 0, SL_NOSTR_FUTURE);
	expect_error(REST(TIME "\"kind\":65536," TAGS TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST(TIME KIND "\"tags\":[[]]," TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST(TIME KIND "\"tags\":[\"d\"]," TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST(TIME KIND "\"tags\":[[\"d\",1]]," TEXT), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST(TIME KIND TAGS "\"content\":{},"), 0, SL_NOSTR_FIELD_TYPE);
	expect_error(REST(TIME KIND "\"tags\":[[[[[[[[[\"d\"]]]]]]]]]," TEXT), 0, SL_NOSTR_TOO_DEEP);
	expect_error("{\"id\":\"" ID_A "00\",\"pubkey\":\"" PUBKEY_A "\"," TIME KIND TAGS TEXT "\"sig\":\"" SIG_A "\"}", 0,
		SL_NOSTR_BAD_HEX);
	memset(big, '[', sizeof(big) - 2);
	expect_error(big, 0, SL_NOSTR_TOO_DEEP);
	memset(big, ',', sizeof(big) - 2);
	expect_error(big, 0, SL_NOSTR_TOO_MANY_VALUES);
	memset(big, ' ', sizeof(big) - 2);
	expect_error(big, 0, SL_NOSTR_NOT_JSON);
	memset(big, ' ', sizeof(big) - 1);
	expect_error(big, 0, SL_NOSTR_TOO_LONG);
}

SL_TEST(event, many_tags)
{
	static char text[SL_NOSTR_TEXT_MAX];
	int n = sprintf(text, "{\"id\":\"" ID_A "\",\"pubkey\":\"" PUBKEY_A "\"," TIME KIND "\"tags\":[[\"a\"]");

	for (unsigned i = 1; i < SL_NOSTR_TAGS_MAX; i++)
		n += sprintf(text + n, ",[\"a\"]");
	sprintf(text + n, "]," TEXT "\"sig\":\"" SIG_A "\"}");
	expect_error(text, 0, SL_NOSTR_OK);
	sprintf(text + n, ",[\"a\"]]," TEXT "\"sig\":\"" SIG_A "\"}");
	expect_error(text, 0, SL_NOSTR_TOO_MANY_TAGS);
}

SL_TEST(event, clock)
{
	static const char *const tag[] = {"expiration", "1000"}, *const bad[] = {"expiration", "1e3"},
				*const none[] = {"expiration"};
	struct sl_nostr_tag tags[] = {{tag, 2}};
	struct sl_nostr_event e = {.created_at = 500};

	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 500, 0, 0), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 499, 0, 0), SL_NOSTR_FUTURE);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 440, 0, 60), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 439, 0, 60), SL_NOSTR_FUTURE);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 600, 100, 0), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 601, 100, 0), SL_NOSTR_TOO_OLD);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 9999, 0, 0), SL_NOSTR_OK);
	e.tags = tags;
	e.tag_count = 1;
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 999, 0, 0), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 1000, 0, 0), SL_NOSTR_EXPIRED);
	tags[0].values = bad;
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 500, 0, 0), SL_NOSTR_EXPIRED);
	tags[0] = (struct sl_nostr_tag){none, 1};
	SL_EXPECT_EQ(sl_nostr_event_clock(&e, 500, 0, 0), SL_NOSTR_EXPIRED);
}

SL_TEST(event, escapes_of_the_id)
{
	struct sl_nostr_event e = {.kind = 1, .created_at = 2, .content = "\"\\\n\r\t\b\f\x01\x1f/\x7f\xc3\xa9\xe2\x82\xac"};
	uint8_t key[32] = {0};
	size_t len;
	char *text;

	SL_EXPECT_EQ(sl_nostr_event_name(&e, key), 0);
	text = sl_nostr_event_serialise(&e, &len);
	SL_EXPECT_STR(text, "[0,\"0000000000000000000000000000000000000000000000000000000000000000\",2,1,[],"
			    "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001f/\x7f\xc3\xa9\xe2\x82\xac\"]");
	free(text);
}

/* Random texts, written, read again, written again: the same bytes, the same id. */
SL_TEST(event, there_and_back)
{
	struct sl_identity *id = identity_a();

	for (unsigned round = 0; round < 200; round++) {
		char text[8][40];
		const char *values[8];
		struct sl_nostr_tag tags[4];
		struct sl_nostr_event e = {.tags = tags}, again;
		size_t len, len2;
		char *a, *b;

		for (unsigned i = 0; i < 8; i++) {
			unsigned n = (unsigned)(sl_test_rand() % 39), at = 0;

			while (at < n) {
				unsigned c = (unsigned)(sl_test_rand() % 0x7f) + 1;

				if (c < 0x70 || at + 3 > n) {
					text[i][at++] = (char)c;
				} else { /* U+0800 .. U+0FFF */
					text[i][at++] = (char)0xe0;
					text[i][at++] = (char)(0xa0 | (sl_test_rand() & 0x1f));
					text[i][at++] = (char)(0x80 | (sl_test_rand() & 0x3f));
				}
			}
			text[i][at] = '\0';
			values[i] = text[i];
		}
		e.tag_count = (uint32_t)(sl_test_rand() % 4);
		for (unsigned i = 0; i < e.tag_count; i++)
			tags[i] = (struct sl_nostr_tag){values + i, (uint32_t)(1 + sl_test_rand() % 4)};
		e.kind = (uint32_t)(sl_test_rand() & 0xffff);
		e.created_at = sl_test_rand() % SL_NOSTR_TIME_MAX;
		e.content = text[7];
		SL_ASSERT(sl_nostr_event_sign(&e, id) == 0);
		a = sl_nostr_event_format(&e, &len);
		SL_ASSERT(a && sl_nostr_event_parse(&again, a, len, 0) == SL_NOSTR_OK);
		SL_EXPECT_EQ(sl_nostr_event_verify(&again), SL_NOSTR_OK);
		b = sl_nostr_event_format(&again, &len2);
		SL_EXPECT(b && len == len2 && !memcmp(a, b, len));
		sl_nostr_event_fini(&again);
		free(a);
		free(b);
	}
	sl_identity_destroy(id);
}
