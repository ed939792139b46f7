/* SPDX-License-Identifier: BSD-3-Clause */
/* What others wrote, made fit for a terminal: against a list of its own, every code point, and random bytes. */
#include "sl_test.h"
#include "sl_text.h"

#include <stdio.h>
#include <string.h>

static const char *
cleaned(const char *text)
{
	static char out[256];

	snprintf(out, sizeof(out), "%s", text);
	sl_text_clean(out);
	return out;
}

SL_TEST(text, vectors)
{
	static const char *const rows[][2] = {
		{"", ""},
		{"udp:11.22.33.44:2121", "udp:11.22.33.44:2121"},
		{"gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80"},
		{"a\x1b[2Jb\n\r\tc\x7f", "a?[2Jb???c?"},
		{"csi \xc2\x9b" "31m, \xc2\x80 \xc2\x9f \xc2\xa0", "csi ?31m, ? ? \xc2\xa0"},  /* C1 as UTF-8; U+00A0 is shown */
		{"\xe2\x80\xae" "moc.live\xe2\x80\xac", "?moc.live?"},				  /* right-to-left override */
		{"\xe2\x81\xa6" "x\xe2\x81\xa9 \xe2\x80\x8e\xe2\x80\x8f \xd8\x9c", "?x? ?? ?"}, /* isolates, marks */
		{"a\xe2\x80\x8b" "b\xef\xbb\xbf" "c\xf3\xa0\x81\xa1", "a?b?c?"},		  /* no width, tags */
		{"\xe2\x80\xa8\xe2\x80\xa9", "??"},						  /* line separators */
		{"\x9b" "31m", "?31m"},								  /* a C1 byte by itself */
		{"\xc0\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", "?? ??? ????"},			  /* overlong forms of U+009B, U+001B */
		{"\xed\xa0\x80 \xf4\x90\x80\x80 \xff\xfe", "? ? ??"},				  /* surrogate, too large, no UTF-8 */
		{"cut \xe2\x80", "cut ??"},
		{"cut \xf0\x9f\x98", "cut ???"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		SL_EXPECT_STR(cleaned(rows[i][0]), rows[i][1]);
}

static size_t
encode(char out[5], uint32_t c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
	out[n] = '\0';
	return n;
}

/* The controls of Unicode's table of properties one by one, plainly. */
static bool
is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

SL_TEST(text, every_code_point)
{
	unsigned shown = 0;
	char in[5], out[5];

	for (uint32_t c = 1; c <= 0x10ffff; c++) {
		size_t n = encode(in, c);

		memcpy(out, in, n + 1);
		sl_text_clean(out);
		if (is_control(c) || (c >= 0xd800 && c <= 0xdfff))
			SL_ASSERT(!strcmp(out, "?"));
		else if (sl_text_shown(c))
			SL_ASSERT(!strcmp(out, in));
		else
			SL_ASSERT(!strcmp(out, "?"));
		shown += sl_text_shown(c);
	}
	/* Letters of the world stay: what is hidden besides surrogates is few. */
	SL_EXPECT_GT(shown, 0x110000u - 0x800u - 4400u);
}

SL_TEST(text, random_bytes)
{
	char text[64], again[64];

	for (int round = 0; round < 100000; round++) {
		size_t len = sl_test_rand() % sizeof(text);

		for (size_t i = 0; i < len; i++)
			text[i] = (char)(sl_test_rand() % 3 ? 0x80 | sl_test_rand() : sl_test_rand());
		text[len] = '\0';
		len = strlen(text);
		sl_text_clean(text);
		SL_ASSERT(strlen(text) <= len);
		strcpy(again, text);
		sl_text_clean(again);
		SL_ASSERT(!strcmp(again, text)); /* what is clean stays */
	}
}
