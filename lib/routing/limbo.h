/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_LIMBO_H
#define SL_ROUTING_LIMBO_H
/*
 * Memory that nothing new can reach but a worker may still hold: collected in batches, freed
 * through the sink's `reclaim`. A batch knows nothing of the router, so it may be freed after the
 * router is gone.
 */
#include <stddef.h>

#define SL_LIMBO_BATCH 254

struct sl_limbo_batch {
	size_t count;
	void *items[SL_LIMBO_BATCH];
};

struct sl_limbo {
	/* Call fn(fn_arg, obj) once no worker can hold obj. NULL = at once. */
	void (*reclaim)(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);
	void *arg;
	struct sl_limbo_batch *batch;
};

/* free()s item when no worker can hold it. NULL is allowed. */
void sl_limbo_put(struct sl_limbo *l, void *item);
/* Hands over what was collected. */
void sl_limbo_flush(struct sl_limbo *l);

#endif
