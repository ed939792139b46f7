/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_hash.h"

#include <sodium.h>

_Static_assert(SL_SHA256_BYTES == crypto_hash_sha256_BYTES, "SHA-256");
_Static_assert(SL_SHA256_BYTES == crypto_auth_hmacsha256_BYTES, "HMAC-SHA-256");

void sl_sha256(uint8_t out[SL_SHA256_BYTES], const void *data, size_t len)
{
	(void)crypto_hash_sha256(out, data, len);
}

void sl_sha256_2(
	uint8_t out[SL_SHA256_BYTES], const void *a, size_t a_len, const void *b, size_t b_len)
{
	crypto_hash_sha256_state st;

	crypto_hash_sha256_init(&st);
	crypto_hash_sha256_update(&st, a, a_len);
	crypto_hash_sha256_update(&st, b, b_len);
	crypto_hash_sha256_final(&st, out);
	sodium_memzero(&st, sizeof(st));
}

static void hmac(
	uint8_t out[32], const uint8_t key[32], const void *data, size_t len, const uint8_t *last)
{
	crypto_auth_hmacsha256_state st;

	crypto_auth_hmacsha256_init(&st, key, 32);
	crypto_auth_hmacsha256_update(&st, data, len);
	if (last)
		crypto_auth_hmacsha256_update(&st, last, 1);
	crypto_auth_hmacsha256_final(&st, out);
	sodium_memzero(&st, sizeof(st));
}

void sl_hkdf2(
	uint8_t out1[32], uint8_t out2[32], const uint8_t salt[32], const void *ikm, size_t ikm_len)
{
	static const uint8_t one = 1, two = 2;
	uint8_t prk[32], t1[32];

	hmac(prk, salt, ikm, ikm_len, NULL); /* RFC 5869, 2.2: extract */
	hmac(t1, prk, NULL, 0, &one);	     /* 2.3: expand; T(1), T(2) = the two outputs */
	hmac(out2, prk, t1, sizeof(t1), &two);
	for (unsigned i = 0; i < sizeof(t1); i++)
		out1[i] = t1[i];
	sodium_memzero(prk, sizeof(prk));
	sodium_memzero(t1, sizeof(t1));
}
