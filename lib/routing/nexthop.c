/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next hop: local, adjacent, by filter, by tree. Previous hop is not excluded: a datagram only
 * ever moves strictly closer, so it cannot come back while the nodes agree on coordinates.
 */
#include "nexthop.h"

#include <math.h>

uint32_t sl_fib_direct(
	const struct sl_fib_body *b, const uint8_t dest[SL_NODE_ADDR_BYTES], uint64_t hash)
{
	const struct sl_fib_index *x = b->index;

	for (uint32_t i = (uint32_t)(hash >> 16) & x->direct_mask;; i = (i + 1) & x->direct_mask) {
		uint32_t v = x->direct[i];

		if (!v)
			return SL_FIB_NO_PEER;
		if (sl_node_same(&b->peers[v - 1].addr, (const struct sl_node_addr *)dest))
			return b->peers[v - 1].can_send ? v - 1 : SL_FIB_NO_PEER;
	}
}

/* Does the filter of peer `id` claim the destination, as the matrix has it now? */
static bool claims_one(const struct sl_fib *f, uint32_t id, const struct sl_coord_data *d)
{
	uint32_t k = f->body->peers[id].hashes;

	for (uint32_t i = 0; i < k; i++) {
		const uint64_t *row = sl_filter_row(f->matrix, sl_filter_bit(&d->hash, i));

		if (!(__atomic_load_n(row + id / 64, __ATOMIC_RELAXED) >> (id % 64) & 1))
			return false;
	}
	return k != 0;
}

/* Peers of word w whose filter has another number of hashes and claims the destination. */
static uint64_t odd_claims(const struct sl_fib *f, const struct sl_coord_data *d, uint32_t w)
{
	uint64_t left = f->body->odd[w], claims = 0;

	while (left) {
		uint32_t b = (uint32_t)__builtin_ctzll(left);

		left &= left - 1;
		if (claims_one(f, w * 64 + b, d))
			claims |= 1ull << b;
	}
	return claims;
}

bool sl_fib_nearer(const struct sl_fib_peer *p, uint32_t distance, const struct sl_fib_peer *best,
	uint32_t best_distance)
{
	if (distance != best_distance)
		return distance < best_distance;
	return memcmp(&p->addr, &best->addr, SL_NODE_ADDR_BYTES) < 0;
}

/* The best of the claims of one word, given the best so far. Costs compare exactly. */
static uint32_t best_of_word(const struct sl_fib_body *b, const struct sl_coord_data *d, uint32_t w,
	uint64_t claims, uint32_t own, uint32_t best, uint32_t *best_distance)
{
	double best_cost = best == SL_FIB_NO_PEER ? HUGE_VAL : b->costs[best];

	while (claims) {
		uint32_t id = w * 64 + (uint32_t)__builtin_ctzll(claims), distance;
		const struct sl_fib_peer *p;

		claims &= claims - 1;
		/* A column may belong to a peer that this snapshot does not know (any more). */
		if (id >= b->id_limit)
			break;
		/* The dearer ones lose whatever their distance: spares most of the distances. */
		if (b->costs[id] > best_cost || b->costs[id] == HUGE_VAL)
			continue;
		p = &b->peers[id];
		distance = sl_path_distance(p->path, p->path_len, d->path, d->len);
		if (distance >= own)
			continue;
		if (b->costs[id] < best_cost ||
			sl_fib_nearer(p, distance, &b->peers[best], *best_distance)) {
			best = id;
			best_cost = b->costs[id];
			*best_distance = distance;
		}
	}
	return best;
}

uint32_t sl_fib_by_filter(
	const struct sl_fib *f, const struct sl_coord_data *d, uint32_t own, uint32_t *distance)
{
	const struct sl_fib_body *b = f->body;
	const uint64_t *row[SL_FILTER_HASHES];
	uint32_t best = SL_FIB_NO_PEER;

	*distance = 0;

	for (unsigned i = 0; i < SL_FILTER_HASHES; i++)
		row[i] = sl_filter_row(f->matrix, sl_filter_bit(&d->hash, i));
	for (uint32_t w = 0; w < b->words; w++) {
		uint64_t claims = __atomic_load_n(row[0] + w, __ATOMIC_RELAXED);

		for (unsigned i = 1; i < SL_FILTER_HASHES; i++)
			claims &= __atomic_load_n(row[i] + w, __ATOMIC_RELAXED);
		if (b->has_odd)
			claims = (claims & ~b->odd[w]) | odd_claims(f, d, w);
		best = best_of_word(b, d, w, claims, own, best, distance);
	}
	return best;
}

/* Asks every peer: what the index is an index of. */
static uint32_t by_tree_plainly(
	const struct sl_fib_body *b, const struct sl_coord_data *d, uint32_t *distance)
{
	uint32_t best = SL_FIB_NO_PEER;

	for (uint32_t i = 0; i < b->index->count; i++) {
		uint32_t id = b->index->ids[i], dist;
		const struct sl_fib_peer *p = &b->peers[id];

		if (!p->path)
			continue;
		dist = sl_path_distance(p->path, p->path_len, d->path, d->len);
		if (best == SL_FIB_NO_PEER || sl_fib_nearer(p, dist, &b->peers[best], *distance)) {
			best = id;
			*distance = dist;
		}
	}
	return best;
}

/*
 * For each prefix of the destination's path, the peer with the shortest path that has it. With a
 * prefix of s entries in common, two paths are (a - s) + (b - s) apart, or less when more is in
 * common, which a longer prefix then says: the smallest over all s is the smallest distance.
 */
static uint32_t by_prefix(
	const struct sl_fib_body *b, const struct sl_coord_data *d, uint32_t *distance)
{
	const struct sl_fib_index *x = b->index;
	uint32_t best = SL_FIB_NO_PEER;
	uint64_t hash = x->key[0];

	for (uint32_t s = 1; s <= d->len; s++) {
		const struct sl_fib_prefix *e;
		uint32_t i, dist;

		hash = sl_path_hash_step(hash, &d->path[s - 1], x->key);
		for (i = (uint32_t)hash & x->prefix_mask;
			x->prefixes[i].peer && x->prefixes[i].hash != hash;)
			i = (i + 1) & x->prefix_mask;
		e = &x->prefixes[i];
		if (!e->peer)
			break; /* and so nobody has a longer one */
		dist = e->path_len + d->len - 2 * s;
		if (best == SL_FIB_NO_PEER ||
			sl_fib_nearer(&b->peers[e->peer - 1], dist, &b->peers[best], *distance)) {
			best = e->peer - 1u;
			*distance = dist;
		}
	}
	return best;
}

uint32_t sl_fib_by_tree(const struct sl_fib_body *b, const struct sl_coord_data *d, uint32_t own,
	uint32_t *distance)
{
	uint32_t best;

	*distance = SL_DISTANCE_INFINITE;
	if (own == SL_DISTANCE_INFINITE)
		return SL_FIB_NO_PEER;
	best = by_prefix(b, d, distance);
	/* The index knows hashes: the winner is looked at. */
	if (best != SL_FIB_NO_PEER && *distance != sl_path_distance(b->peers[best].path,
							   b->peers[best].path_len, d->path, d->len))
		best = by_tree_plainly(b, d, distance);
	if (best == SL_FIB_NO_PEER || *distance >= own || !b->peers[best].can_send)
		return SL_FIB_NO_PEER;
	return best;
}

/* The steps that need no coordinates. True when one of them answers. */
static bool route_nearby(const struct sl_fib *f, const uint8_t dest[SL_NODE_ADDR_BYTES],
	uint64_t hash, struct sl_fib_answer *a)
{
	a->rule = SL_COORD_DIRECT;
	a->own = a->distance = 0;
	if (sl_node_same(&f->body->self, (const struct sl_node_addr *)dest)) {
		a->kind = SL_HOP_LOCAL;
		a->peer_id = SL_FIB_NO_PEER;
		return true;
	}
	a->kind = SL_HOP_PEER;
	a->peer_id = sl_fib_direct(f->body, dest, hash);
	return a->peer_id != SL_FIB_NO_PEER;
}

static void route_far(const struct sl_fib *f, const struct sl_coord_data *d, struct sl_fib_answer *a)
{
	const struct sl_fib_body *b = f->body;

	a->own = sl_path_distance(b->path, b->path_len, d->path, d->len);
	a->rule = SL_COORD_BY_FILTER;
	a->peer_id = sl_fib_by_filter(f, d, a->own, &a->distance);
	if (a->peer_id != SL_FIB_NO_PEER)
		return;
	a->rule = SL_COORD_BY_TREE;
	a->peer_id = sl_fib_by_tree(b, d, a->own, &a->distance);
	if (a->peer_id != SL_FIB_NO_PEER)
		return;
	a->rule = SL_COORD_NO_ROUTE;
	a->kind = SL_HOP_NO_ROUTE;
}

void sl_fib_route(const struct sl_fib *f, const struct sl_coord_data *d, uint64_t hash,
	struct sl_fib_answer *a)
{
	if (!route_nearby(f, d->key.bytes, hash, a))
		route_far(f, d, a);
}

void sl_fib_decide(const struct sl_fib *f, const uint8_t dest[SL_NODE_ADDR_BYTES], uint64_t hash,
	uint32_t now_s, struct sl_fib_answer *a)
{
	const struct sl_coord_data *d;
	uint32_t id, serial;

	if (route_nearby(f, dest, hash, a))
		return;
	d = sl_coords_lookup(f->coords, dest, hash, now_s, &id, &serial);
	if (!d) {
		a->kind = SL_HOP_NO_COORDS;
		return;
	}
	/* A hit renews the entry even when no route comes of it (section 7, step 3). */
	sl_coord_use(f->coords, id, now_s);
	route_far(f, d, a);
}
