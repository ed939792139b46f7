/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEST_KEYS_H
#define SL_TEST_KEYS_H
/* The keys of the link layer facts, section 2.4. */
#include "sl_identity.h"
#include "sl_test.h"

#define KEY_A_SECRET "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
#define KEY_B_SECRET "b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0"

static inline struct sl_identity *identity_from_hex(const char *hex)
{
	uint8_t secret[32];
	struct sl_identity *id;

	sl_test_unhex(secret, sizeof(secret), hex);
	id = sl_identity_create(secret);
	if (!id)
		sl_test_fail(__FILE__, __LINE__, "no identity from %s", hex);
	return id;
}

#endif
