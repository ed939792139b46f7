/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grace periods without waiting: a token is taken when something is unpublished and looked at in later turns. Tokens
 * rise, so that the queue is in order and the first entry decides.
 */
#include <errno.h>
#include <stdlib.h>
#include <rte_malloc.h>
#include "sl_control.h"

#define FIRST_SIZE 256u

int
sl_reclaim_init(struct sl_reclaim *r, uint16_t workers)
{
	const size_t size = rte_rcu_qsbr_get_memsize(workers);

	memset(r, 0, sizeof(*r));
	r->entries = calloc(FIRST_SIZE, sizeof(*r->entries));
	r->qsbr = rte_zmalloc("sl_qsbr", size, RTE_CACHE_LINE_SIZE);
	if (r->entries == NULL || r->qsbr == NULL || rte_rcu_qsbr_init(r->qsbr, workers) != 0)
		goto fail;
	r->size = FIRST_SIZE;
	for (unsigned w = 0; w < workers; w++)
		if (rte_rcu_qsbr_thread_register(r->qsbr, w) != 0)
			goto fail;
	return 0;
fail:
	rte_free(r->qsbr);
	free(r->entries);
	memset(r, 0, sizeof(*r));
	return -ENOMEM;
}

static void
run_first(struct sl_reclaim *r)
{
	const struct sl_reclaim_entry e = r->entries[r->head];

	/* Out of the queue first: fn may push. */
	r->head = (r->head + 1) % r->size;
	r->count--;
	e.fn(e.fn_arg, e.obj);
}

void
sl_reclaim_fini(struct sl_reclaim *r)
{
	while (r->count)
		run_first(r);
	rte_free(r->qsbr);
	free(r->entries);
	memset(r, 0, sizeof(*r));
}

static bool
grow(struct sl_reclaim *r)
{
	struct sl_reclaim_entry *e = calloc((size_t)r->size * 2, sizeof(*e));

	if (e == NULL)
		return false;
	for (uint32_t i = 0; i < r->count; i++)
		e[i] = r->entries[(r->head + i) % r->size];
	free(r->entries);
	r->entries = e;
	r->head = 0;
	r->size *= 2;
	return true;
}

void
sl_reclaim_push(struct sl_reclaim *r, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	const uint64_t token = rte_rcu_qsbr_start(r->qsbr);

	if (r->count == r->size && !grow(r)) {
		/* Out of memory: the one case in which control waits, for a poll of each worker. Nothing is lost. */
		rte_rcu_qsbr_check(r->qsbr, token, true);
		fn(fn_arg, obj);
		return;
	}
	r->entries[(r->head + r->count) % r->size] =
		(struct sl_reclaim_entry){.fn = fn, .fn_arg = fn_arg, .obj = obj, .token = token};
	r->count++;
}

unsigned
sl_reclaim_run(struct sl_reclaim *r, unsigned budget)
{
	unsigned n = 0;

	for (; n < budget && r->count && rte_rcu_qsbr_check(r->qsbr, r->entries[r->head].token, false) == 1; n++)
		run_first(r);
	return n;
}

void
sl_dataplane_reclaim(struct sl_dataplane *dp, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	sl_reclaim_push(&dp->reclaim, fn, fn_arg, obj);
}
