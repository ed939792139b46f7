/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_PATH_H
#define SL_ROUTING_PATH_H
/*
 * Coordinates inside this library: root first, the node itself last (the wire has them the other
 * way round), so that two nodes' common ancestors are a common prefix. Routing facts, section 3.
 */
#include "../crypto/sl_identity.h"

#include <string.h>

/* Longest path taken from anybody: the wire's MTU bounds it near 72 (section 3); above this it is
 * dropped. */
#define SL_PATH_MAX 128
#define SL_DISTANCE_INFINITE UINT32_MAX

static inline bool sl_node_same(const struct sl_node_addr *a, const struct sl_node_addr *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, 16);
	memcpy(y, b, 16);
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

/* Hops along the tree; infinite between different roots. Both paths root first, at least one entry.
 */
static inline uint32_t sl_path_distance(
	const struct sl_node_addr *a, uint32_t a_len, const struct sl_node_addr *b, uint32_t b_len)
{
	uint32_t shared = 0, shorter = a_len < b_len ? a_len : b_len;

	while (shared < shorter && sl_node_same(&a[shared], &b[shared]))
		shared++;
	return shared ? a_len + b_len - 2 * shared : SL_DISTANCE_INFINITE;
}

/* Keyed mix of an address: tables are filled with addresses that strangers choose. */
static inline uint64_t sl_node_hash(const uint8_t addr[SL_NODE_ADDR_BYTES], const uint64_t key[2])
{
	uint64_t w[2];
	unsigned __int128 m;

	memcpy(w, addr, 16);
	m = (unsigned __int128)(w[0] ^ key[0]) * (w[1] ^ key[1]);
	m = (unsigned __int128)((uint64_t)m ^ 0x9e3779b97f4a7c15ull) *
	    ((uint64_t)(m >> 64) ^ key[0] ^ 0xbf58476d1ce4e5b9ull);
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Hash of a path's first entries (root first) from that of one entry less; the first step starts
 * from key[0]. */
static inline uint64_t sl_path_hash_step(
	uint64_t hash, const struct sl_node_addr *entry, const uint64_t key[2])
{
	uint64_t w[2];
	unsigned __int128 m;

	memcpy(w, entry, 16);
	m = (unsigned __int128)(w[0] ^ hash) * (w[1] ^ key[1]);
	return (uint64_t)m ^ (uint64_t)(m >> 64) ^ (hash << 17 | hash >> 47);
}

#endif
