/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_HASH_H
#define SL_HASH_H
/* SHA-256 (FIPS 180-4) and the HKDF of Noise (RFC 5869 with two outputs, empty info). Any thread.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_SHA256_BYTES 32

void sl_sha256(uint8_t out[SL_SHA256_BYTES], const void *data, size_t len);
/* H(a || b) without a copy. */
void sl_sha256_2(
	uint8_t out[SL_SHA256_BYTES], const void *a, size_t a_len, const void *b, size_t b_len);

/* salt 32 bytes, input key material of any length (0 allowed); out1, out2 may be the salt. */
void sl_hkdf2(uint8_t out1[32], uint8_t out2[32], const uint8_t salt[32], const void *ikm,
	size_t ikm_len);

#ifdef __cplusplus
}
#endif
#endif
