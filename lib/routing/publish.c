/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots for the workers (nexthop.h), in three layers, each made anew only when something of it
 * changed: a header of some hundred bytes for changed filters (their bits change in the matrix, in
 * place), a body of about 72 bytes a peer for costs and own coordinates, an index for the set of
 * peers and their paths. Changes within publish_interval_us share a snapshot.
 */
#include "router.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COSTS_INTERVAL 20 /* publish intervals */
#define SETTLE_UNITS 2048u /* of answers, after each event; the tick does more */

struct room {
	uint8_t *base;
	size_t used, size;
};

/* Asks for zeroed memory of `size` bytes that begins with a struct of `head` bytes. */
static bool room_create(struct room *m, size_t head, size_t size)
{
	m->size = (head + size + 64 + 6 * 64 + 63) & ~(size_t)63;
	m->base = aligned_alloc(64, m->size);
	if (!m->base)
		return false;
	memset(m->base, 0, m->size);
	m->used = (head + 63) & ~(size_t)63;
	return true;
}

static void *room_take(struct room *m, size_t bytes)
{
	void *p = m->base + m->used;

	m->used += (bytes + 63) & ~(size_t)63;
	return p;
}

/* --- what peers look like to workers ---------------------------------------------------------- */

void sl_publish_peer(struct sl_router *r, const struct sl_route_peer *p)
{
	bool bad_link = r->config.ecn_enabled &&
			(p->loss >= r->config.ecn_loss || p->etx >= r->config.ecn_etx);

	r->shadow[p->id] = (struct sl_fib_peer){.addr = p->addr,
		.path = p->has_tree ? p->path : NULL,
		.path_len = p->path_len,
		.cost = p->cost,
		.mtu = p->mtu,
		.up = 1,
		.can_send = p->can_send,
		.congested = bad_link,
		.hashes = p->has_filter ? p->filter_hashes : SL_FILTER_HASHES,
		.life = (uint16_t)p->life};
}

void sl_publish_peer_gone(struct sl_router *r, uint32_t id)
{
	sl_answers_peer(r, id, true);
	sl_answers_adjacent(r, &r->shadow[id].addr);
	memset(&r->shadow[id], 0, sizeof(r->shadow[id]));
}

struct sl_route_path *sl_route_path_create(
	const struct sl_router *r, const uint8_t *entries, unsigned len)
{
	struct sl_route_path *path = malloc(sizeof(*path) + len * (sizeof(path->at[0]) + 8));
	uint64_t hash = r->coords.key[0];

	if (!path)
		return NULL;
	path->next = NULL;
	path->len = (uint16_t)len;
	path->prefix = (uint64_t *)(void *)&path->at[len];
	for (unsigned i = 0; i < len; i++) {
		memcpy(&path->at[i], entries + (size_t)(len - 1 - i) * SL_TREE_ENTRY_BYTES, 16);
		hash = sl_path_hash_step(hash, &path->at[i], r->coords.key);
		path->prefix[i] = hash;
	}
	return path;
}

void sl_route_path_retire(struct sl_router *r, struct sl_route_path *path)
{
	if (!path)
		return;
	path->next = r->retired_paths;
	r->retired_paths = path;
}

/* --- index
 * ---------------------------------------------------------------------------------------- */

static uint32_t pow2_above(uint32_t n)
{
	uint32_t p = 2;

	while (p <= n)
		p *= 2;
	return p;
}

static void index_prefix(struct sl_fib_prefix *table, uint32_t mask, uint64_t hash,
	const struct sl_route_peer *p, const struct sl_fib_peer *shadow)
{
	uint32_t i = (uint32_t)hash & mask;
	struct sl_fib_prefix *e;

	while (table[i].peer && table[i].hash != hash)
		i = (i + 1) & mask;
	e = &table[i];
	if (e->peer && (e->path_len < p->path_len ||
			       (e->path_len == p->path_len &&
				       memcmp(&shadow[e->peer - 1].addr, &p->addr, 16) < 0)))
		return;
	e->hash = hash;
	e->peer = (uint16_t)(p->id + 1);
	e->path_len = p->path_len;
}

static struct sl_fib_index *index_create(const struct sl_router *r, uint32_t limit)
{
	uint32_t slots = pow2_above(r->active_count * 2), entries = 0, prefixes;
	struct sl_fib_prefix *table;
	struct sl_fib_index *x;
	uint16_t *ids, *direct;
	struct room m;

	for (uint32_t i = 0; i < r->active_count; i++)
		if (r->active[i]->has_tree)
			entries += r->active[i]->path_len;
	prefixes = pow2_above(entries * 2);
	if (!room_create(&m, sizeof(*x),
		    r->active_count * sizeof(*ids) + slots * sizeof(*direct) +
			    prefixes * sizeof(*table)))
		return NULL;
	x = (struct sl_fib_index *)(void *)m.base;
	ids = room_take(&m, r->active_count * sizeof(*ids));
	direct = room_take(&m, slots * sizeof(*direct));
	table = room_take(&m, prefixes * sizeof(*table));
	*x = (struct sl_fib_index){.key = {r->coords.key[0], r->coords.key[1]},
		.count = r->active_count,
		.direct_mask = slots - 1,
		.prefix_mask = prefixes - 1,
		.ids = ids,
		.direct = direct,
		.prefixes = table};
	for (uint32_t id = 0, n = 0; id < limit; id++) {
		const struct sl_fib_peer *p = &r->shadow[id];
		uint32_t at =
			(uint32_t)(sl_node_hash(p->addr.bytes, x->key) >> 16) & x->direct_mask;

		if (!p->up)
			continue;
		ids[n++] = (uint16_t)id;
		while (direct[at])
			at = (at + 1) & x->direct_mask;
		direct[at] = (uint16_t)(id + 1);
	}
	for (uint32_t i = 0; i < r->active_count; i++) {
		const struct sl_route_peer *p = r->active[i];

		for (unsigned k = 0; p->has_tree && k < p->path_len; k++)
			index_prefix(table, x->prefix_mask, p->route->prefix[k], p, r->shadow);
	}
	return x;
}

/* --- body
 * ------------------------------------------------------------------------------------------ */

static uint32_t id_limit(const struct sl_router *r)
{
	uint32_t limit = r->config.max_peers;

	while (limit && !r->shadow[limit - 1].up)
		limit--;
	return limit;
}

static struct sl_fib_body *body_create(
	const struct sl_router *r, uint32_t limit, const struct sl_fib_index *x)
{
	const uint32_t words = (limit + 63) / 64;
	struct sl_fib_body *body;
	struct sl_node_addr *own;
	double *costs;
	uint64_t *odd;
	struct room m;
	void *peers;

	if (!room_create(&m, sizeof(*body),
		    limit * (sizeof(struct sl_fib_peer) + sizeof(*costs)) + words * sizeof(*odd) +
			    r->tree.len * sizeof(*own)))
		return NULL;
	body = (struct sl_fib_body *)(void *)m.base;
	peers = room_take(&m, limit * sizeof(struct sl_fib_peer));
	costs = room_take(&m, limit * sizeof(*costs));
	odd = room_take(&m, words * sizeof(*odd));
	own = room_take(&m, r->tree.len * sizeof(*own));
	memcpy(peers, r->shadow, limit * sizeof(struct sl_fib_peer));
	memcpy(own, r->tree.path, r->tree.len * sizeof(*own));
	*body = (struct sl_fib_body){.self = r->tree.self,
		.path = own,
		.path_len = r->tree.len,
		.index = x,
		.peers = peers,
		.costs = costs,
		.odd = odd,
		.id_limit = limit,
		.words = words,
		.congested = r->config.ecn_enabled && r->congested};
	for (uint32_t id = 0; id < limit; id++) {
		const struct sl_fib_peer *p = &r->shadow[id];

		costs[id] = p->path && p->can_send ? p->cost : HUGE_VAL;
		if (p->up && p->hashes != SL_FILTER_HASHES) {
			odd[id / 64] |= 1ull << (id % 64);
			body->has_odd = true;
		}
	}
	return body;
}

/* What answers that are decided already have to be taken over. */
static void note_changes(struct sl_router *r)
{
	if (r->own_path_dirty) {
		sl_answers_own_path(r);
		sl_quest_forget_failures(r);
	}
	r->own_path_dirty = false;
	for (uint32_t i = 0; i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];

		if (r->index_dirty && p->path_dirty) {
			p->path_dirty = false;
			sl_answers_peer(r, p->id, true);
			sl_answers_adjacent(r, &p->addr);
		} else if (p->column_dirty) {
			sl_answers_peer(r, p->id, false);
		}
	}
}

void sl_publish_column(struct sl_router *r, struct sl_route_peer *p)
{
	if (p->column_dirty)
		return;
	/* Peers that came and went under one id left it here more than once. */
	if (r->dirty_column_count == r->config.max_peers) {
		r->dirty_column_count = 0;
		for (uint32_t i = 0; i < r->active_count; i++)
			if (r->active[i]->column_dirty)
				r->dirty_columns[r->dirty_column_count++] =
					(uint16_t)r->active[i]->id;
	}
	r->dirty_columns[r->dirty_column_count++] = (uint16_t)p->id;
	p->column_dirty = true;
}

static void columns_update(struct sl_router *r)
{
	for (uint32_t i = 0; i < r->dirty_column_count; i++) {
		struct sl_route_peer *p = r->peers[r->dirty_columns[i]];

		if (!p || !p->column_dirty)
			continue; /* gone since; another may have the id */
		p->column_dirty = false;
		sl_filter_matrix_set(&r->matrix, p->id, p->column, p->filter);
		memcpy(p->column, p->filter, SL_FILTER_BYTES);
	}
	r->dirty_column_count = 0;
}

/* Makes what a new snapshot needs anew; false when memory is short (everything stays due). */
static bool parts_create(const struct sl_router *r, const struct sl_fib_body *old,
	struct sl_fib_index **index, struct sl_fib_body **body)
{
	const uint32_t limit = id_limit(r);

	*index = NULL;
	*body = NULL;
	if (old && !r->body_dirty && !r->costs_dirty)
		return true;
	if (!old || r->index_dirty) {
		*index = index_create(r, limit);
		if (!*index)
			return false;
	}
	*body = body_create(r, limit, *index ? *index : old->index);
	if (!*body)
		free(*index);
	return *body != NULL;
}

int sl_publish(struct sl_router *r)
{
	const struct sl_fib *old = r->ref.current;
	struct sl_fib *f = malloc(sizeof(*f));
	struct sl_fib_index *index;
	struct sl_fib_body *body;
	const uint32_t epoch = r->epoch + 1;

	if (!f || !parts_create(r, old ? old->body : NULL, &index, &body)) {
		free(f);
		return -ENOMEM;
	}
	if (r->index_dirty || r->columns_dirty || r->own_path_dirty) {
		note_changes(r);
		sl_answers_published(r);
	}
	columns_update(r);
	r->answers.costs_changed |= body != NULL;
	*f = (struct sl_fib){.body = body ? body : old->body,
		.matrix = &r->matrix,
		.coords = &r->coords,
		.epoch = epoch};
	r->epoch = epoch;
	r->body_dirty = r->costs_dirty = r->columns_dirty = false;
	if (index)
		r->index_dirty = false;
	r->published_us = r->now_us;
	__atomic_store_n(&r->ref.current, f, __ATOMIC_RELEASE);
	/* Only now can nothing new reach these. */
	if (old && index)
		sl_limbo_put(&r->limbo, (void *)(uintptr_t)old->body->index);
	if (old && body)
		sl_limbo_put(&r->limbo, (void *)(uintptr_t)old->body);
	sl_limbo_put(&r->limbo, (void *)(uintptr_t)old);
	while (body && r->retired_paths) {
		struct sl_route_path *path = r->retired_paths;

		r->retired_paths = path->next;
		sl_limbo_put(&r->limbo, path);
	}
	return 0;
}

uint64_t sl_publish_due(const struct sl_router *r)
{
	if (r->body_dirty || r->columns_dirty)
		return r->published_us + r->config.publish_interval_us;
	/* Every report of every peer changes a cost: a thousand peers' reports share ten bodies a
	 * second. */
	return r->costs_dirty ? r->published_us + COSTS_INTERVAL * r->config.publish_interval_us
			      : UINT64_MAX;
}

void sl_publish_unload(struct sl_router *r)
{
	const struct sl_fib *f = r->ref.current;

	if (!f)
		return;
	r->ref.current = NULL;
	free((void *)(uintptr_t)f->body->index);
	free((void *)(uintptr_t)f->body);
	free((void *)(uintptr_t)f);
}

void sl_router_settle(struct sl_router *r)
{
	uint64_t at;

	if (r->now_us >= sl_publish_due(r))
		(void)sl_publish(r); /* out of memory: still due, tried at the next tick */
	r->answers_us = sl_answers_work(r, SETTLE_UNITS);
	sl_limbo_flush(&r->limbo);
	at = sl_publish_due(r);
	if (r->coords.count && r->expiry_us < at)
		at = r->expiry_us;
	if (at < r->due_us)
		r->due_us = at;
}
