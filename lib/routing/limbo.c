/* SPDX-License-Identifier: BSD-3-Clause */
#include "limbo.h"

#include <stdlib.h>

static void free_one(void *arg, void *obj)
{
	(void)arg;
	free(obj);
}

static void free_batch(void *arg, void *obj)
{
	struct sl_limbo_batch *b = obj;

	(void)arg;
	for (size_t i = 0; i < b->count; i++)
		free(b->items[i]);
	free(b);
}

void sl_limbo_flush(struct sl_limbo *l)
{
	struct sl_limbo_batch *b = l->batch;

	if (!b || !b->count)
		return;
	l->batch = NULL;
	l->reclaim(l->arg, free_batch, NULL, b);
}

void sl_limbo_put(struct sl_limbo *l, void *item)
{
	if (!item)
		return;
	if (!l->reclaim) {
		free(item);
		return;
	}
	if (!l->batch) {
		l->batch = malloc(sizeof(*l->batch));
		if (!l->batch) {
			l->reclaim(l->arg, free_one, NULL, item);
			return;
		}
		l->batch->count = 0;
	}
	l->batch->items[l->batch->count++] = item;
	if (l->batch->count == SL_LIMBO_BATCH)
		sl_limbo_flush(l);
}
