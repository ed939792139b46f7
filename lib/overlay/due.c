/* SPDX-License-Identifier: BSD-3-Clause */
#include "due.h"

#include <errno.h>
#include <stdlib.h>

static void
set(struct sl_due *d, uint32_t pos, struct sl_due_node *n)
{
	d->list[pos] = n;
	n->pos = pos;
}

/* Up or down until it stands between those who are earlier and those who are later. */
static void
settle(struct sl_due *d, struct sl_due_node *n)
{
	uint32_t pos = n->pos, child;

	for (; pos && d->list[(pos - 1) / 2]->us > n->us; pos = (pos - 1) / 2)
		set(d, pos, d->list[(pos - 1) / 2]);
	for (; (child = 2 * pos + 1) < d->count; pos = child) {
		if (child + 1 < d->count && d->list[child + 1]->us < d->list[child]->us)
			child++;
		if (d->list[child]->us >= n->us)
			break;
		set(d, pos, d->list[child]);
	}
	set(d, pos, n);
}

int
sl_due_reserve(struct sl_due *d, uint32_t nodes)
{
	uint32_t size = d->size ? d->size : 64;
	struct sl_due_node **list;

	if (nodes <= d->size)
		return 0;
	while (size < nodes)
		size *= 2;
	list = realloc(d->list, size * sizeof(*list));
	if (!list)
		return -ENOMEM;
	d->list = list;
	d->size = size;
	return 0;
}

void
sl_due_fini(struct sl_due *d)
{
	free(d->list);
	*d = (struct sl_due){NULL, 0, 0};
}

void
sl_due_file(struct sl_due *d, struct sl_due_node *n, uint64_t us)
{
	if (us == UINT64_MAX) {
		sl_due_remove(d, n);
		return;
	}
	n->us = us;
	if (n->pos == SL_DUE_NONE)
		set(d, d->count++, n);
	settle(d, n);
}

void
sl_due_remove(struct sl_due *d, struct sl_due_node *n)
{
	const uint32_t pos = n->pos;
	struct sl_due_node *last;

	if (pos == SL_DUE_NONE)
		return;
	n->pos = SL_DUE_NONE;
	last = d->list[--d->count];
	if (last == n)
		return;
	set(d, pos, last);
	settle(d, last);
}
