/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_SPSC_H
#define SL_NOSTR_SPSC_H
/*
 * A bounded queue of pointers between one writer thread and one reader thread. A pointer that was put belongs to the reader.
 * Writer: sl_spsc_put(). Reader: sl_spsc_get(). Release store by the one, acquire load by the other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_SPSC_SLOTS 256u /* a power of two */

struct sl_spsc {
	_Alignas(64) uint32_t head; /* writer: next to write; reader reads it */
	_Alignas(64) uint32_t tail; /* reader: next to read; writer reads it */
	_Alignas(64) void *slots[SL_SPSC_SLOTS];
};

static inline bool
sl_spsc_put(struct sl_spsc *q, void *p)
{
	uint32_t head = __atomic_load_n(&q->head, __ATOMIC_RELAXED);

	if (head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) == SL_SPSC_SLOTS)
		return false;
	q->slots[head % SL_SPSC_SLOTS] = p;
	__atomic_store_n(&q->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

static inline void *
sl_spsc_get(struct sl_spsc *q)
{
	uint32_t tail = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
	void *p;

	if (tail == __atomic_load_n(&q->head, __ATOMIC_ACQUIRE))
		return NULL;
	p = q->slots[tail % SL_SPSC_SLOTS];
	__atomic_store_n(&q->tail, tail + 1, __ATOMIC_RELEASE);
	return p;
}

#endif
