/* SPDX-License-Identifier: BSD-3-Clause */
/* The checksum against RFC 1071 by the letter. */
#include <stdlib.h>
#include "net_test.h"

static void
compare(const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	uint16_t got, want = oracle_sum(0, p, len);

	memcpy(copy, p, len);
	got = sl_cksum_fold(sl_cksum_add(0, copy, len));
	free(copy);
	SL_EXPECT_MSG(__builtin_bswap16(got) == want, "len %zu: %04x, want %04x", len, __builtin_bswap16(got), want);
}

SL_TEST(cksum, every_length)
{
	static uint8_t buf[2048];

	for (size_t len = 0; len < 600; len++) {
		sl_test_rand_bytes(buf, len);
		compare(buf, len);
		compare(buf + 1, len ? len - 1 : 0);
	}
}

SL_TEST(cksum, random_and_long)
{
	static uint8_t buf[70000];

	for (int i = 0; i < 200; i++) {
		const size_t len = sl_test_rand() % sizeof(buf), at = sl_test_rand() % 64;

		sl_test_rand_bytes(buf, sizeof(buf));
		compare(buf + at, len > at ? len - at : 0);
	}
}

SL_TEST(cksum, constant_bytes_and_carries)
{
	static uint8_t buf[4096];

	for (int fill = 0; fill < 4; fill++) {
		memset(buf, (const int[]){0x00, 0xff, 0x80, 0x7f}[fill], sizeof(buf));
		for (size_t len = 0; len < sizeof(buf); len += 1 + len / 7)
			compare(buf, len);
	}
	/* The carry of each 16-bit position in turn. */
	for (size_t i = 0; i + 1 < 256; i += 2) {
		memset(buf, 0, 256);
		buf[i] = buf[i + 1] = 0xff;
		buf[(i + 2) % 256 + 1] = 1;
		compare(buf, 256);
	}
	memset(buf, 0, sizeof(buf));
	SL_EXPECT_EQ(sl_cksum_fold(sl_cksum_add(0, buf, 1000)), 0);
	memset(buf, 0xff, sizeof(buf));
	SL_EXPECT_EQ(sl_cksum_fold(sl_cksum_add(0, buf, 1000)), 0xffff);
}

SL_TEST(cksum, pieces_add_up)
{
	uint8_t buf[1500];

	for (int i = 0; i < 2000; i++) {
		const size_t len = sl_test_rand() % sizeof(buf), cut = (sl_test_rand() % (len + 1)) & ~1ul;
		uint64_t sum;

		sl_test_rand_bytes(buf, len);
		sum = sl_cksum_add(sl_cksum_add(0, buf, cut), buf + cut, len - cut);
		SL_EXPECT_EQ(__builtin_bswap16(sl_cksum_fold(sum)), oracle_sum(0, buf, len));
	}
}

SL_TEST(cksum, fold_of_any_sum)
{
	for (int i = 0; i < 20000; i++) {
		const uint64_t v = sl_test_rand() >> (sl_test_rand() % 64);
		const uint64_t want = v == 0 ? 0 : (v % 0xffff ? v % 0xffff : 0xffff);

		SL_EXPECT_EQ(sl_cksum_fold(v), want);
	}
	SL_EXPECT_EQ(sl_cksum_fold(UINT64_MAX), 0xffff);
}

/* RFC 1071, section 3. */
SL_TEST(cksum, published_example)
{
	const uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	SL_EXPECT_EQ(__builtin_bswap16(sl_cksum_fold(sl_cksum_add(0, example, 8))), 0xddf2);
}
