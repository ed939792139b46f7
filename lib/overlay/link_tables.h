/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LINK_TABLES_H
#define SL_LINK_TABLES_H
/* How links find things: hashes with the node in the record, the order of due times, pools of locked memory. */
#include "sl_addr.h"

#include <stddef.h>

struct peer;
struct sl_links;
struct sl_node_addr;

/* Each bit of the result depends on each of h. Not a keyed hash for secrets: a key in h keeps strangers from choosing rows. */
static inline uint64_t
sl_hash_mix(uint64_t h)
{
	h = (h ^ h >> 31) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

/* Intrusive chained hash. The node lies in its record. */
struct map_node {
	struct map_node *next;
	uint64_t hash;
};
struct map {
	struct map_node **buckets;
	uint32_t mask;
};
int sl_map_init(struct map *m, uint32_t entries);
void sl_map_fini(struct map *m);
void sl_map_add(struct map *m, struct map_node *n, uint64_t hash);
void sl_map_remove(struct map *m, struct map_node *n);
/* First node with this hash, or the next one after n. */
struct map_node *sl_map_first(const struct map *m, uint64_t hash);
struct map_node *sl_map_next(const struct map_node *n);

/* Records of one size that hold secrets: locked chunks, wiped when given back. */
struct pool {
	size_t size;
	uint32_t per_chunk;
	void *free;   /* linked through the records' first word */
	void *chunks; /* likewise */
};
void sl_pool_init(struct pool *p, size_t size, uint32_t per_chunk);
void sl_pool_fini(struct pool *p);
void *sl_pool_get(struct pool *p); /* zeroed, or NULL */
void sl_pool_put(struct pool *p, void *record);

/* Where an address leads: in links->addrs while the peer is there or is dialled there. */
struct addr_ref {
	struct map_node node; /* first member */
	struct sl_addr addr;
	struct peer *peer;
	bool filed;
};

uint64_t sl_links_hash_addr16(const struct sl_links *l, const struct sl_node_addr *a);
void sl_addr_ref_file(
	struct sl_links *l, struct addr_ref *r, struct peer *p, const struct sl_addr *addr);
void sl_addr_ref_remove(struct sl_links *l, struct addr_ref *r);
/* The first of maybe several peers at this address. */
struct addr_ref *sl_addr_ref_find(const struct sl_links *l, const struct sl_addr *addr);
struct addr_ref *sl_addr_ref_next(struct addr_ref *r);

#endif
