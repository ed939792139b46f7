/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_BACKEND_H
#define SL_AEAD_BACKEND_H
/* What the AEAD backends share; private to lib/crypto. */
#include "sl_aead.h"

#include <string.h>

extern const struct sl_aead_backend sl_aead_sodium;
extern const struct sl_aead_backend sl_aead_ipsec_mb;
extern const struct sl_aead_backend sl_aead_ipsec_mb_avx2, sl_aead_ipsec_mb_sse;

/* 4 zero bytes, then the counter little endian. */
static inline void aead_nonce(uint8_t nonce[12], uint64_t counter)
{
	memset(nonce, 0, 4);
	for (unsigned i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(counter >> 8 * i);
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
