/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next hop: local, adjacent, by filter, by tree. Previous hop is not excluded: a datagram only ever moves strictly
 * closer, so it cannot come back while the nodes agree on coordinates.
 */
#include "nexthop.h"

uint32_t
sl_fib_direct(const struct sl_fib_body *b, const uint8_t dest[SL_NODE_ADDR_BYTES], uint64_t hash)
{
	for (uint32_t i = (uint32_t)(hash >> 16) & b->direct_mask;; i = (i + 1) & b->direct_mask) {
		uint32_t v = b->direct[i];

		if (!v)
			return SL_FIB_NO_PEER;
		if (sl_node_same(&b->peers[v - 1].addr, (const struct sl_node_addr *)dest))
			return b->peers[v - 1].can_send ? v - 1 : SL_FIB_NO_PEER;
	}
}

bool
sl_fib_claims(const struct sl_fib *f, uint32_t id, const struct sl_coord_data *d)
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
static uint64_t
odd_claims(const struct sl_fib *f, const struct sl_coord_data *d, uint32_t w)
{
	uint64_t left = f->body->odd[w], claims = 0;

	while (left) {
		uint32_t b = (uint32_t)__builtin_ctzll(left);

		left &= left - 1;
		if (sl_fib_claims(f, w * 64 + b, d))
			claims |= 1ull << b;
	}
	return claims;
}

/* Is (cost, distance, address) of p better than that of the best so far? Costs compare exactly. */
static bool
beats(const struct sl_fib_peer *p, uint32_t distance, const struct sl_fib_peer *best, uint32_t best_distance)
{
	if (p->cost != best->cost)
		return p->cost < best->cost;
	if (distance != best_distance)
		return distance < best_distance;
	return memcmp(&p->addr, &best->addr, SL_NODE_ADDR_BYTES) < 0;
}

uint32_t
sl_fib_by_filter(const struct sl_fib *f, const struct sl_coord_data *d)
{
	const struct sl_fib_body *b = f->body;
	const uint32_t own = sl_path_distance(b->path, b->path_len, d->path, d->len);
	const uint64_t *row[SL_FILTER_HASHES];
	uint32_t best = SL_FIB_NO_PEER, best_distance = 0;

	for (unsigned i = 0; i < SL_FILTER_HASHES; i++)
		row[i] = sl_filter_row(f->matrix, sl_filter_bit(&d->hash, i));
	for (uint32_t w = 0; w < b->words; w++) {
		uint64_t claims = __atomic_load_n(row[0] + w, __ATOMIC_RELAXED);

		for (unsigned i = 1; i < SL_FILTER_HASHES; i++)
			claims &= __atomic_load_n(row[i] + w, __ATOMIC_RELAXED);
		if (b->has_odd)
			claims = (claims & ~b->odd[w]) | odd_claims(f, d, w);
		while (claims) {
			uint32_t id = w * 64 + (uint32_t)__builtin_ctzll(claims), distance;
			const struct sl_fib_peer *p = &b->peers[id];

			claims &= claims - 1;
			/* A column may belong to a peer that this snapshot does not know (any more). */
			if (id >= b->id_limit)
				break;
			if (!p->path || !p->can_send)
				continue;
			/* The dearer ones lose whatever their distance: spares most of the distances. */
			if (best != SL_FIB_NO_PEER && p->cost > b->peers[best].cost)
				continue;
			distance = sl_path_distance(p->path, p->path_len, d->path, d->len);
			if (distance >= own)
				continue;
			if (best == SL_FIB_NO_PEER || beats(p, distance, &b->peers[best], best_distance)) {
				best = id;
				best_distance = distance;
			}
		}
	}
	return best;
}

uint32_t
sl_fib_by_tree(const struct sl_fib_body *b, const struct sl_coord_data *d)
{
	const uint32_t own = sl_path_distance(b->path, b->path_len, d->path, d->len);
	uint32_t best = SL_FIB_NO_PEER, best_distance = 0;

	if (own == SL_DISTANCE_INFINITE)
		return SL_FIB_NO_PEER;
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t id = b->ids[i], distance;
		const struct sl_fib_peer *p = &b->peers[id];

		if (!p->path)
			continue;
		distance = sl_path_distance(p->path, p->path_len, d->path, d->len);
		if (best == SL_FIB_NO_PEER || distance < best_distance ||
			(distance == best_distance &&
				memcmp(&p->addr, &b->peers[best].addr, SL_NODE_ADDR_BYTES) < 0)) {
			best = id;
			best_distance = distance;
		}
	}
	if (best == SL_FIB_NO_PEER || best_distance >= own || !b->peers[best].can_send)
		return SL_FIB_NO_PEER;
	return best;
}

void
sl_fib_decide(const struct sl_fib *f, const uint8_t dest[SL_NODE_ADDR_BYTES], uint64_t hash, uint32_t now_s,
	struct sl_fib_answer *a)
{
	const struct sl_coord_data *d;

	a->coord_id = SL_COORD_NONE;
	a->coord_serial = 0;
	a->by_tree = false;
	a->kind = SL_HOP_PEER;
	if (sl_node_same(&f->body->self, (const struct sl_node_addr *)dest)) {
		a->kind = SL_HOP_LOCAL;
		a->peer_id = SL_FIB_NO_PEER;
		return;
	}
	a->peer_id = sl_fib_direct(f->body, dest, hash);
	if (a->peer_id != SL_FIB_NO_PEER)
		return;
	d = sl_coords_lookup(f->coords, dest, hash, now_s, &a->coord_id, &a->coord_serial);
	if (!d) {
		a->coord_id = SL_COORD_NONE;
		a->kind = SL_HOP_NO_COORDS;
		return;
	}
	/* A hit renews the entry even when no route comes of it (section 7, step 3). */
	sl_coord_use(f->coords, a->coord_id, now_s);
	a->peer_id = sl_fib_by_filter(f, d);
	if (a->peer_id == SL_FIB_NO_PEER) {
		a->peer_id = sl_fib_by_tree(f->body, d);
		a->by_tree = true;
	}
	if (a->peer_id == SL_FIB_NO_PEER)
		a->kind = SL_HOP_NO_ROUTE;
}
