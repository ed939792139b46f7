/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_BUCKET_H
#define SL_BUCKET_H
/* Token bucket on a clock that the caller gives (monotonic microseconds). One thread. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_bucket {
	double rate_per_us;
	double burst;
	double tokens;
	uint64_t last_us;
};

static inline void
sl_bucket_init(struct sl_bucket *b, double burst, double rate_per_s, uint64_t now_us)
{
	b->rate_per_us = rate_per_s / 1e6;
	b->burst = burst;
	b->tokens = burst;
	b->last_us = now_us;
}

/* Tokens there are now. */
static inline double
sl_bucket_level(struct sl_bucket *b, uint64_t now_us)
{
	if (now_us > b->last_us) {
		b->tokens += (double)(now_us - b->last_us) * b->rate_per_us;
		if (b->tokens > b->burst)
			b->tokens = b->burst;
		b->last_us = now_us;
	}
	return b->tokens;
}

/* Takes one token if there is one. */
static inline bool
sl_bucket_take(struct sl_bucket *b, uint64_t now_us)
{
	if (sl_bucket_level(b, now_us) < 1.0)
		return false;
	b->tokens -= 1.0;
	return true;
}

#ifdef __cplusplus
}
#endif
#endif
