/* SPDX-License-Identifier: BSD-3-Clause */
#include "curve.h"
#include "sl_hash.h"

#include <assert.h>
#include <errno.h>

#include <secp256k1_ecdh.h>

/* Writer: sl_curve_init(), once. */
static secp256k1_context *curve;

int sl_curve_init(void)
{
	uint8_t seed[32];
	int ok;

	curve = secp256k1_context_create(SECP256K1_CONTEXT_NONE);
	if (!curve)
		return -EIO;
	/* Blinds the multiplications that take a secret against side channels. */
	sl_random(seed, sizeof(seed));
	ok = secp256k1_context_randomize(curve, seed);
	sl_wipe(seed, sizeof(seed));
	if (!ok) {
		secp256k1_context_destroy(curve);
		curve = NULL;
		return -EIO;
	}
	return 0;
}

const secp256k1_context *sl_curve_ctx(void)
{
	assert(curve != NULL); /* sl_crypto_init() comes first */
	return curve;
}

bool sl_curve_secret_valid(const uint8_t secret[SL_SECRET_BYTES])
{
	return secp256k1_ec_seckey_verify(sl_curve_ctx(), secret) == 1;
}

void sl_curve_secret_random(uint8_t secret[SL_SECRET_BYTES])
{
	do
		sl_random(secret, SL_SECRET_BYTES);
	while (!sl_curve_secret_valid(secret));
}

int sl_curve_parse(secp256k1_pubkey *point, const uint8_t compressed[SL_COMPRESSED_BYTES])
{
	return secp256k1_ec_pubkey_parse(sl_curve_ctx(), point, compressed, SL_COMPRESSED_BYTES) ==
			       1
		       ? 0
		       : -EINVAL;
}

void sl_curve_public(uint8_t compressed[SL_COMPRESSED_BYTES], const uint8_t secret[SL_SECRET_BYTES])
{
	secp256k1_pubkey point;
	size_t len = SL_COMPRESSED_BYTES;
	int ok;

	ok = secp256k1_ec_pubkey_create(sl_curve_ctx(), &point, secret);
	assert(ok == 1);
	ok = secp256k1_ec_pubkey_serialize(
		sl_curve_ctx(), compressed, &len, &point, SECP256K1_EC_COMPRESSED);
	assert(ok == 1 && len == SL_COMPRESSED_BYTES);
	(void)ok;
}

/* libsecp256k1's own function hashes a parity byte too, which is another value. */
static int hash_x(unsigned char *out, const unsigned char *x, const unsigned char *y, void *arg)
{
	sl_sha256(out, x, 32);
	return 1;
}

void sl_curve_dh(
	uint8_t out[32], const secp256k1_pubkey *point, const uint8_t secret[SL_SECRET_BYTES])
{
	int ok = secp256k1_ecdh(sl_curve_ctx(), out, point, secret, hash_x, NULL);

	assert(ok == 1);
	(void)ok;
}
