/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_secret.h"
#include "sl_test.h"

#include <errno.h>

SL_TEST(secret, init_again)
{
	SL_EXPECT_EQ(sl_crypto_init(), 0);
	SL_EXPECT_EQ(sl_crypto_init(), 0);
}

SL_TEST(secret, wipe)
{
	uint8_t buf[100], zero[100] = {0};

	for (size_t len = 0; len <= sizeof(buf); len++) {
		memset(buf, 0xa5, sizeof(buf));
		sl_wipe(buf, len);
		SL_EXPECT_MEM(buf, zero, len);
		for (size_t i = len; i < sizeof(buf); i++)
			SL_EXPECT_EQ(buf[i], 0xa5);
	}
}

SL_TEST(secret, equal)
{
	uint8_t a[64], b[64];

	sl_test_rand_bytes(a, sizeof(a));
	memcpy(b, a, sizeof(a));
	SL_EXPECT(sl_equal_ct(a, b, sizeof(a)));
	SL_EXPECT(sl_equal_ct(a, b, 0));
	for (unsigned bit = 0; bit < 512; bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		SL_EXPECT(!sl_equal_ct(a, b, sizeof(a)));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

SL_TEST(secret, random_below_stays_below)
{
	bool seen[7] = {false};

	for (unsigned i = 0; i < 2000; i++) {
		uint32_t r = sl_random_below(7);

		SL_ASSERT(r < 7);
		seen[r] = true;
		SL_EXPECT_EQ(sl_random_below(1), 0);
	}
	for (unsigned i = 0; i < 7; i++)
		SL_EXPECT(seen[i]);
}

SL_TEST(secret, random_differs)
{
	uint8_t a[32], b[32];

	sl_random(a, 32);
	sl_random(b, 32);
	SL_EXPECT(memcmp(a, b, 32) != 0);
	SL_EXPECT(sl_random_u32() != sl_random_u32() || sl_random_u32() != sl_random_u32());
}

SL_TEST(secret, alloc_any_size_aligned)
{
	for (size_t size = 1; size < 300; size += 7) {
		uint8_t *p = sl_secret_alloc(size);

		SL_ASSERT(p != NULL);
		SL_EXPECT_EQ((uintptr_t)p % 64, 0);
		memset(p, 0x5a, size);
		sl_secret_free(p);
	}
	sl_secret_free(NULL);
	errno = 0;
	SL_EXPECT(sl_secret_alloc(SIZE_MAX - 5) == NULL);
	SL_EXPECT_EQ(errno, ENOMEM);
}
