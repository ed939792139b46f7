/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots for the workers (nexthop.h). What a change costs: a filter, its changed bits in the matrix and a new header
 * of some hundred bytes; anything else of peers or own coordinates, a new body (about 64 bytes a peer + 16 a path entry).
 * Changes within publish_interval_us share one snapshot.
 */
#include "router.h"

#include <errno.h>
#include <stdlib.h>

#define COSTS_INTERVAL 20 /* publish intervals */

static const uint8_t empty_filter[SL_FILTER_BYTES];

struct body_room {
	uint8_t *base;
	size_t used;
};

static void *
room(struct body_room *b, size_t bytes)
{
	void *p = b->base + b->used;

	b->used += (bytes + 15) & ~(size_t)15;
	return p;
}

static uint32_t
highest_id(const struct sl_router *r)
{
	uint32_t limit = 0;

	for (uint32_t i = 0; i < r->active_count; i++)
		if (r->active[i]->id >= limit)
			limit = r->active[i]->id + 1;
	return limit;
}

static void
peer_fill(const struct sl_router *r, struct sl_fib_peer *f, const struct sl_route_peer *p, struct body_room *b)
{
	bool bad_link = r->config.ecn_enabled && (p->loss >= r->config.ecn_loss || p->etx >= r->config.ecn_etx);

	f->addr = p->addr;
	f->cost = p->cost;
	f->mtu = p->mtu;
	f->up = 1;
	f->can_send = 1;
	f->congested = bad_link || (r->config.ecn_enabled && r->congested);
	f->hashes = p->has_filter ? p->filter_hashes : SL_FILTER_HASHES;
	if (p->has_tree) {
		struct sl_node_addr *path = room(b, p->path_len * sizeof(*path));

		memcpy(path, p->path, p->path_len * sizeof(*path));
		f->path = path;
		f->path_len = p->path_len;
	}
}

static struct sl_fib_body *
body_create(const struct sl_router *r)
{
	const uint32_t limit = highest_id(r), words = (limit + 63) / 64;
	uint32_t slots = 2;
	size_t paths = r->tree.len * sizeof(struct sl_node_addr), size;
	struct sl_fib_body *body;
	struct sl_fib_peer *peers;
	struct sl_node_addr *own;
	uint16_t *ids, *direct;
	uint64_t *odd;
	struct body_room b;

	while (slots < r->active_count * 2 + 1)
		slots *= 2;
	for (uint32_t i = 0; i < r->active_count; i++)
		paths += r->active[i]->path_len * sizeof(struct sl_node_addr);
	/* The body's own struct stands first, so that freeing it frees all; peers begin on the next cache line. */
	size = sizeof(*body) + 64 + limit * (sizeof(*peers) + sizeof(*ids)) + words * sizeof(*odd) +
		slots * sizeof(*direct) + paths + 6 * 16;
	size = (size + 63) & ~(size_t)63;
	b.base = aligned_alloc(64, size);
	if (!b.base)
		return NULL;
	memset(b.base, 0, size);
	body = (struct sl_fib_body *)(void *)b.base;
	b.used = (sizeof(*body) + 63) & ~(size_t)63;
	peers = room(&b, limit * sizeof(*peers));
	odd = room(&b, words * sizeof(*odd));
	own = room(&b, r->tree.len * sizeof(*own));
	ids = room(&b, r->active_count * sizeof(*ids));
	direct = room(&b, slots * sizeof(*direct));
	memcpy(own, r->tree.path, r->tree.len * sizeof(*own));
	*body = (struct sl_fib_body){.self = r->tree.self, .path = own, .path_len = r->tree.len, .id_limit = limit,
		.words = words, .count = r->active_count, .peers = peers, .ids = ids, .odd = odd, .direct = direct,
		.direct_mask = slots - 1};
	for (uint32_t i = 0; i < r->active_count; i++) {
		const struct sl_route_peer *p = r->active[i];
		uint32_t at = (uint32_t)(sl_node_hash(p->addr.bytes, r->coords.key) >> 16) & body->direct_mask;

		peer_fill(r, &peers[p->id], p, &b);
		if (peers[p->id].hashes != SL_FILTER_HASHES) {
			odd[p->id / 64] |= 1ull << (p->id % 64);
			body->has_odd = true;
		}
		while (direct[at])
			at = (at + 1) & body->direct_mask;
		direct[at] = (uint16_t)(p->id + 1);
	}
	for (uint32_t id = 0, n = 0; id < limit; id++)
		if (peers[id].up)
			ids[n++] = (uint16_t)id;
	return body;
}

/* A peer's coordinates changed: answers through it, or for what its filter claims, are to be made anew. */
static void
note_change(struct sl_router *r, uint32_t id, uint32_t epoch)
{
	struct sl_fib_change *c = &r->recent[r->recent_next];

	if (r->recent_count == SL_FIB_RECENT)
		r->recent_floor = c->epoch; /* what is forgotten voids all that is as old */
	else
		r->recent_count++;
	c->epoch = epoch;
	c->peer_id = id;
	r->recent_next = (r->recent_next + 1) % SL_FIB_RECENT;
}

static void
note_changes(struct sl_router *r, uint32_t epoch)
{
	if (r->own_path_dirty) {
		r->recent_floor = epoch - 1;
		r->recent_count = r->recent_next = 0;
	}
	for (uint32_t i = 0; i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];

		if (!p->path_dirty)
			continue;
		p->path_dirty = false;
		if (!r->own_path_dirty)
			note_change(r, p->id, epoch);
	}
	r->own_path_dirty = false;
}

static void
columns_update(struct sl_router *r, uint32_t epoch)
{
	for (uint32_t i = 0; r->columns_dirty && i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];

		if (!p->column_dirty)
			continue;
		p->column_dirty = false;
		sl_filter_matrix_set(&r->matrix, p->id, p->column, p->has_filter ? p->filter : empty_filter, epoch);
		memcpy(p->column, p->filter, SL_FILTER_BYTES);
	}
	r->columns_dirty = false;
}

int
sl_publish(struct sl_router *r)
{
	const struct sl_fib *old = r->ref.current;
	struct sl_fib *f = malloc(sizeof(*f));
	struct sl_fib_body *body = NULL;
	const uint32_t epoch = r->epoch + 1;

	if (!f)
		return -ENOMEM;
	if (r->body_dirty || r->costs_dirty || !old) {
		note_changes(r, epoch);
		body = body_create(r);
		if (!body) {
			free(f);
			return -ENOMEM; /* still dirty: tried again at the next chance */
		}
	}
	columns_update(r, epoch);
	*f = (struct sl_fib){.body = body ? body : old->body, .matrix = &r->matrix, .coords = &r->coords, .epoch = epoch,
		.floor = r->recent_floor, .recent_count = r->recent_count};
	memcpy(f->recent, r->recent, sizeof(f->recent));
	r->epoch = epoch;
	r->body_dirty = r->costs_dirty = false;
	r->published_us = r->now_us;
	__atomic_store_n(&r->ref.current, f, __ATOMIC_RELEASE);
	if (old && body)
		sl_limbo_put(&r->limbo, (void *)(uintptr_t)old->body);
	sl_limbo_put(&r->limbo, (void *)(uintptr_t)old);
	return 0;
}

uint64_t
sl_publish_due(const struct sl_router *r)
{
	if (r->body_dirty || r->columns_dirty)
		return r->published_us + r->config.publish_interval_us;
	/* Every report of every peer changes a cost: a thousand peers' reports share ten bodies a second. */
	return r->costs_dirty ? r->published_us + COSTS_INTERVAL * r->config.publish_interval_us : UINT64_MAX;
}

void
sl_publish_unload(struct sl_router *r)
{
	const struct sl_fib *f = r->ref.current;

	if (!f)
		return;
	r->ref.current = NULL;
	free((void *)(uintptr_t)f->body);
	free((void *)(uintptr_t)f);
}

void
sl_router_settle(struct sl_router *r)
{
	if (r->now_us >= sl_publish_due(r))
		(void)sl_publish(r); /* out of memory: still due, tried at the next tick */
	sl_limbo_flush(&r->limbo);
}
