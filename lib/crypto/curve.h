/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CURVE_H
#define SL_CURVE_H
/*
 * secp256k1 as the protocol uses it, private to lib/crypto: one context for the process, blinded at
 * start and const after that (so every thread may use it), and a Diffie-Hellman whose output is
 * SHA-256 of the shared x coordinate alone (link layer facts, D3).
 */
#include "sl_identity.h"

#include <secp256k1.h>
#include <secp256k1_extrakeys.h>

/* 0 or -EIO. Called by sl_crypto_init() under its lock. */
int sl_curve_init(void);
const secp256k1_context *sl_curve_ctx(void);

/* Is it in 1..n-1? */
bool sl_curve_secret_valid(const uint8_t secret[SL_SECRET_BYTES]) SL_MUST_CHECK;
void sl_curve_secret_random(uint8_t secret[SL_SECRET_BYTES]);

/* 02 or 03 and x. 0, or -EINVAL when it is no point of the curve. */
int sl_curve_parse(
	secp256k1_pubkey *point, const uint8_t compressed[SL_COMPRESSED_BYTES]) SL_MUST_CHECK;

/* secret must be valid. */
void sl_curve_public(
	uint8_t compressed[SL_COMPRESSED_BYTES], const uint8_t secret[SL_SECRET_BYTES]);

/* H(x(secret * point)). secret must be valid and point parsed: the product is then never the point
 * at infinity. */
void sl_curve_dh(
	uint8_t out[32], const secp256k1_pubkey *point, const uint8_t secret[SL_SECRET_BYTES]);

/* sl_sign() with the auxiliary randomness given: for the published vectors. */
void sl_sign_aux(uint8_t sig[SL_SIGNATURE_BYTES], const uint8_t msg[32],
	const struct sl_identity *id, const uint8_t aux[32]);

#endif
