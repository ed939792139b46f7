/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_BACKEND_H
#define SL_AEAD_BACKEND_H
/* What the AEAD backends share; private to lib/crypto. */
#include "sl_aead.h"

#include <string.h>

extern const struct sl_aead_backend sl_aead_sodium;
extern const struct sl_aead_backend sl_aead_auto;
/* The multi-buffer library, x86 only. */
#ifdef AEAD_IPSEC_MB
extern const struct sl_aead_backend sl_aead_ipsec_mb;
extern const struct sl_aead_backend sl_aead_ipsec_mb_avx2, sl_aead_ipsec_mb_sse;

bool aead_sse_supported(void);
#endif
/* Our own, across packets (docs/aead-engine.md), where the build has them. */
#ifdef AEAD_AVX2
extern const struct sl_aead_backend sl_aead_avx2;
bool aead_avx2_supported(void); /* by the CPU and the system */
bool aead_avx2_usable(void);
#endif
#ifdef AEAD_AVX512
extern const struct sl_aead_backend sl_aead_avx512;
bool aead_avx512_supported(void); /* by the CPU and the system */
bool aead_avx512_usable(void);
/*
 * Poly1305 alone, for tests: up to 8 ops (their key and counter are not looked at) with one-time
 * keys; or exactly 16 of one length with the associated data before the text, which take another
 * way through the engine. tag has room for 8 or 16.
 */
void aead_avx512_poly(
	uint8_t (*tag)[16], const uint8_t (*key)[32], const struct sl_aead_op *ops, unsigned n);
#endif

/* What the self-test compares: 0, 0 when a backend does not open what it sealed or opens what it
 * should not. */
#define AEAD_SELFTEST_0 0x90fa2cc6dba886f5
#define AEAD_SELFTEST_1 0x60b511ec6c3f8af0
void aead_selftest_fold(
	uint64_t answer[2], const struct sl_aead_backend *b, struct sl_aead_ctx *ctx);

/* 4 zero bytes, then the counter little endian. */
static inline void aead_nonce(uint8_t nonce[12], uint64_t counter)
{
	memset(nonce, 0, 4);
	for (unsigned i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(counter >> 8 * i);
}

/* No branch on how many bytes agree. */
static inline bool aead_tag_equal(const uint8_t *a, const uint8_t *b)
{
	uint64_t a0, a1, b0, b1;

	memcpy(&a0, a, 8);
	memcpy(&a1, a + 8, 8);
	memcpy(&b0, b, 8);
	memcpy(&b1, b + 8, 8);
	return ((a0 ^ b0) | (a1 ^ b1)) == 0;
}

/* The good ones first, both kinds in their order. ok[i] belongs to ops[i]; spare has room for n. */
static inline unsigned aead_partition(
	struct sl_aead_op *ops, unsigned n, const bool *ok, struct sl_aead_op *spare)
{
	unsigned good = 0, bad = 0;

	for (unsigned i = 0; i < n; i++) {
		if (ok[i])
			ops[good++] = ops[i];
		else
			spare[bad++] = ops[i];
	}
	memcpy(ops + good, spare, bad * sizeof(*ops));
	return good;
}

#endif
