/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NONCE_H
#define SL_NONCE_H
/*
 * Send counters: the nonce of every sealed frame is a counter that never repeats under one key.
 * Any worker and control reserve a run of n with one fetch-add per burst and session. A hard stop
 * comes far before the counter could wrap: past SL_NONCE_LIMIT nothing is handed out any more (the
 * protocol refuses 2^64 - 1).
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NONCE_LIMIT (1ull << 60)

/* Writers: any lcore, atomically, or one alone. Alone on a cache line where it is shared. */
struct sl_nonce {
	uint64_t next;
};

static inline void sl_nonce_init(struct sl_nonce *c)
{
	__atomic_store_n(&c->next, 0, __ATOMIC_RELAXED);
}

/* Reserves n counters beginning with *first. False when the key is used up: the frames may not be
 * sent. */
static inline bool sl_nonce_reserve(struct sl_nonce *c, uint32_t n, uint64_t *first)
{
	if (__builtin_expect(__atomic_load_n(&c->next, __ATOMIC_RELAXED) >= SL_NONCE_LIMIT, 0))
		return false;
	*first = __atomic_fetch_add(&c->next, n, __ATOMIC_RELAXED);
	/* Others may have raced past the load, but by far less than the gap between the limit and
	 * 2^64. */
	return *first < SL_NONCE_LIMIT;
}

/* The same without a locked instruction, for who can be sure to be the only one meanwhile. */
static inline bool sl_nonce_reserve_alone(struct sl_nonce *c, uint32_t n, uint64_t *first)
{
	*first = __atomic_load_n(&c->next, __ATOMIC_RELAXED);
	if (__builtin_expect(*first >= SL_NONCE_LIMIT, 0))
		return false;
	__atomic_store_n(&c->next, *first + n, __ATOMIC_RELAXED);
	return true;
}

static inline uint64_t sl_nonce_used(const struct sl_nonce *c)
{
	return __atomic_load_n(&c->next, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif
