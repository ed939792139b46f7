/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups and records of the link state machines: nothing here scans all peers. */
#include "link_internal.h"

#include <errno.h>
#include <stdlib.h>

/* --- map --- */

int
sl_map_init(struct map *m, uint32_t entries)
{
	uint32_t n = 16;

	while (n < entries && n < 1u << 24)
		n <<= 1;
	m->buckets = calloc(n, sizeof(*m->buckets));
	if (!m->buckets)
		return -ENOMEM;
	m->mask = n - 1;
	return 0;
}

void
sl_map_fini(struct map *m)
{
	free(m->buckets);
	m->buckets = NULL;
}

void
sl_map_add(struct map *m, struct map_node *n, uint64_t hash)
{
	struct map_node **b = &m->buckets[hash & m->mask];

	n->hash = hash;
	n->next = *b;
	*b = n;
}

void
sl_map_remove(struct map *m, struct map_node *n)
{
	struct map_node **at = &m->buckets[n->hash & m->mask];

	while (*at && *at != n)
		at = &(*at)->next;
	if (*at)
		*at = n->next;
	n->next = NULL;
}

static struct map_node *
same_hash(struct map_node *n, uint64_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

struct map_node *
sl_map_first(const struct map *m, uint64_t hash)
{
	return same_hash(m->buckets[hash & m->mask], hash);
}

struct map_node *
sl_map_next(const struct map_node *n)
{
	return same_hash(n->next, n->hash);
}

/* --- pool --- */

void
sl_pool_init(struct pool *p, size_t size, uint32_t per_chunk)
{
	memset(p, 0, sizeof(*p));
	p->size = (size + 63) & ~(size_t)63;
	p->per_chunk = per_chunk;
}

void
sl_pool_fini(struct pool *p)
{
	while (p->chunks) {
		void *chunk = p->chunks;

		memcpy(&p->chunks, chunk, sizeof(void *));
		sl_secret_free(chunk);
	}
	p->free = NULL;
}

void *
sl_pool_get(struct pool *p)
{
	uint8_t *record;

	if (!p->free) {
		/* A multiple of 64 in all: sl_secret_alloc() ends the block at a page's end. */
		uint8_t *chunk = sl_secret_alloc(64 + p->size * p->per_chunk);

		if (!chunk)
			return NULL;
		memcpy(chunk, &p->chunks, sizeof(void *));
		p->chunks = chunk;
		for (uint32_t i = p->per_chunk; i-- > 0;) {
			record = chunk + 64 + p->size * i;
			memcpy(record, &p->free, sizeof(void *));
			p->free = record;
		}
	}
	record = p->free;
	memcpy(&p->free, record, sizeof(void *));
	memset(record, 0, p->size);
	return record;
}

void
sl_pool_put(struct pool *p, void *record)
{
	if (!record)
		return;
	sl_wipe(record, p->size);
	memcpy(record, &p->free, sizeof(void *));
	p->free = record;
}

/* --- addresses --- */

uint64_t
sl_links_hash_addr16(const struct sl_links *l, const struct sl_node_addr *a)
{
	uint64_t w[2];

	/* The address is a hash already; the key keeps others from choosing our buckets. */
	memcpy(w, a->bytes, sizeof(w));
	return sl_hash_mix(sl_hash_mix(w[0] ^ l->hash_key) ^ w[1]);
}

static uint64_t
hash_address(const struct sl_links *l, const struct sl_addr *a)
{
	uint64_t w[3], h = l->hash_key;

	memcpy(w, a, sizeof(w));
	for (int i = 0; i < 3; i++)
		h = sl_hash_mix(h ^ w[i]);
	return h;
}

void
sl_addr_ref_file(struct sl_links *l, struct addr_ref *r, struct peer *p, const struct sl_addr *addr)
{
	sl_addr_ref_remove(l, r);
	r->addr = *addr;
	r->peer = p;
	sl_map_add(&l->addrs, &r->node, hash_address(l, addr));
	r->filed = true;
}

void
sl_addr_ref_remove(struct sl_links *l, struct addr_ref *r)
{
	if (r->filed)
		sl_map_remove(&l->addrs, &r->node);
	r->filed = false;
}

static struct addr_ref *
same_address(struct map_node *n, const struct sl_addr *addr)
{
	for (; n; n = sl_map_next(n)) {
		struct addr_ref *r = (struct addr_ref *)n; /* first member */

		if (sl_addr_equal(&r->addr, addr))
			return r;
	}
	return NULL;
}

struct addr_ref *
sl_addr_ref_find(const struct sl_links *l, const struct sl_addr *addr)
{
	return same_address(sl_map_first(&l->addrs, hash_address(l, addr)), addr);
}

struct addr_ref *
sl_addr_ref_next(struct addr_ref *r)
{
	return same_address(sl_map_next(&r->node), &r->addr);
}
