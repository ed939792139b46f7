/* SPDX-License-Identifier: BSD-3-Clause */
/* What a router comes to hold, from the sizes of what it is made of. */
#include "router.h"

/* Tables of lookups, of times of signals, of the tree; see lookup.c and router.c. */
#define FIXED_BYTES (5u << 18)
#define HEAP_BYTES 16u /* of malloc, a block */

static size_t pow2(size_t n)
{
	size_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* A peer with a path and a filter; the snapshot's part of it twice, since the one before waits for its grace period. */
static size_t peer_bytes(unsigned path_len)
{
	size_t own = sizeof(struct sl_route_peer) + HEAP_BYTES, tables = 4 * sizeof(void *) + sizeof(uint16_t) + sizeof(struct sl_fib_peer),
	       path = sizeof(struct sl_route_path) + HEAP_BYTES + path_len * (sizeof(struct sl_node_addr) + sizeof(uint64_t)),
	       entries = HEAP_BYTES + (size_t)path_len * SL_TREE_ENTRY_BYTES,
	       snapshot = sizeof(struct sl_fib_peer) + sizeof(double) + 4 * sizeof(uint16_t) +
			  3 * path_len * sizeof(struct sl_fib_prefix);

	return own + tables + path + entries + SL_FILTER_BITS / 8 + 2 * snapshot;
}

void sl_router_capacity(const struct sl_router_config *config, unsigned path_len, struct sl_router_capacity *c)
{
	const size_t known = config->coord_size;
	const size_t slots = pow2((known + 7) / 8) * 16 * sizeof(uint32_t); /* at most half of them in use: coords.h */
	const size_t entry = sizeof(struct sl_coord_entry) + sizeof(struct sl_coord_kept) + 4 * sizeof(uint32_t);
	const size_t data = sizeof(struct sl_coord_data) + path_len * sizeof(struct sl_node_addr) + HEAP_BYTES;

	c->fixed = sizeof(struct sl_router) + FIXED_BYTES;
	c->peer = peer_bytes(path_len);
	c->destination = known ? entry + data + slots / known : 0;
	c->peers = c->peer * config->max_peers;
	c->destinations = known * (entry + data) + slots;
	c->total = c->fixed + c->peers + c->destinations;
}
