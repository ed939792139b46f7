/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_BACKOFF_H
#define SL_BACKOFF_H
/* How long to wait after so many failures (node.retry; peering facts): base * 2^failures, up to the most. Any unit. */
#include <stdint.h>

static inline uint64_t
sl_backoff(uint64_t base, uint64_t most, uint32_t failures)
{
	while (failures-- && base && base < most)
		base *= 2;
	return base < most ? base : most;
}

#endif
