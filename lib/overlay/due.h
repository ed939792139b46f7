/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_DUE_H
#define SL_DUE_H
/*
 * Who is due next: a binary heap of times, each inside of what it is the time of (sl_due_of() leads back). Private to this
 * library. Neither looks nor allocates but in sl_due_reserve(); one thread.
 */
#include <stddef.h>
#include <stdint.h>

struct sl_due_node {
	uint64_t us;
	uint32_t pos; /* in the heap, SL_DUE_NONE = not in it; set so before the first use */
};
#define SL_DUE_NONE UINT32_MAX

struct sl_due {
	struct sl_due_node **list;
	uint32_t count, size;
};

/* The struct of this type that holds the node as `member`. */
#define sl_due_of(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Room for so many in all. 0 or -ENOMEM. */
int sl_due_reserve(struct sl_due *d, uint32_t nodes);
void sl_due_fini(struct sl_due *d);
/* In, or to another place; UINT64_MAX takes it out. Room was reserved. */
void sl_due_file(struct sl_due *d, struct sl_due_node *n, uint64_t us);
void sl_due_remove(struct sl_due *d, struct sl_due_node *n);

/* The earliest, NULL = none. */
static inline struct sl_due_node *
sl_due_first(const struct sl_due *d)
{
	return d->count ? d->list[0] : NULL;
}

#endif
