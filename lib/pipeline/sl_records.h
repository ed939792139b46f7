/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_RECORDS_H
#define SL_RECORDS_H
/*
 * A bounded ring of fixed-size records between one writer (a worker) and one reader (control). The writer fills the
 * record where it lies; a full ring refuses and the writer counts. No lock, no allocation after init.
 *
 *	writer:	r = sl_records_begin(ring); if (r) { fill; sl_records_commit(ring); } else count
 *	reader:	while ((r = sl_records_peek(ring))) { use; sl_records_pop(ring); }
 *
 * head: written by the writer (release), read by the reader (acquire). tail: the other way round.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_records {
	uint32_t head __attribute__((aligned(64))); /* writer's */
	uint32_t tail_seen;			    /* writer's own copy of tail: most writes touch no shared line */
	uint32_t tail __attribute__((aligned(64))); /* reader's */
	uint8_t *data __attribute__((aligned(64))); /* immutable after init */
	uint32_t mask, record_bytes;
};

/* data: entries * record_bytes; entries a power of two. */
static inline void
sl_records_init(struct sl_records *r, void *data, uint32_t entries, uint32_t record_bytes)
{
	r->head = r->tail = r->tail_seen = 0;
	r->data = (uint8_t *)data;
	r->mask = entries - 1;
	r->record_bytes = record_bytes;
}

static inline void *
sl_records_begin(struct sl_records *r)
{
	if (r->head - r->tail_seen > r->mask) {
		r->tail_seen = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
		if (r->head - r->tail_seen > r->mask)
			return NULL;
	}
	return r->data + (size_t)(r->head & r->mask) * r->record_bytes;
}
static inline void
sl_records_commit(struct sl_records *r)
{
	__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
}

static inline void *
sl_records_peek(const struct sl_records *r)
{
	if (__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail)
		return NULL;
	return r->data + (size_t)(r->tail & r->mask) * r->record_bytes;
}
static inline void
sl_records_pop(struct sl_records *r)
{
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
}

#endif
