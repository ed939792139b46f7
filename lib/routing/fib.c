/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Burst look-ups and what a worker remembers of them.
 *
 * A remembered answer stands while the entry of the coordinate cache it was made from is the same
 * and alive (one load) and either no snapshot came since (one compare) or none of the changes since
 * touches it (stands(), tens of ns). Costs change with every report of every peer and have no part
 * in that: an answer is made anew after COST_AGE_S to COST_AGE_S + 3 seconds, spread by address,
 * and is meanwhile a peer that is strictly closer all the same. "No route" and "no coordinates" are
 * never remembered: those frames go to control anyhow.
 */
#include "nexthop.h"

#include <errno.h>
#include <stdlib.h>

#define COST_AGE_S 5
#define BY_TREE 0x80000000u

struct hop_entry {
	struct sl_node_addr dest;
	uint32_t coord_id; /* SL_COORD_NONE: an adjacent peer; | BY_TREE */
	uint32_t coord_serial;
	uint32_t epoch;
	uint16_t peer_id;
	uint16_t made_s; /* low bits of the second it was made in */
};
_Static_assert(sizeof(struct hop_entry) == 32, "two to a cache line");

/* An entry that was never filled has epoch 0. */
enum { WAYS = 4 };
struct hop_set {
	struct hop_entry way[WAYS];
} __attribute__((aligned(64)));

struct sl_hop_cache {
	struct hop_set *sets;
	uint32_t mask;
	uint64_t misses;
};

struct sl_hop_cache *sl_hop_cache_create(uint32_t entries)
{
	struct sl_hop_cache *c = malloc(sizeof(*c));
	uint32_t sets = 1;

	if (!c)
		goto no_memory;
	while (sets * WAYS < entries && sets < 1u << 26)
		sets *= 2;
	c->mask = sets - 1;
	c->misses = 0;
	c->sets = aligned_alloc(64, (size_t)sets * sizeof(*c->sets));
	if (!c->sets)
		goto no_sets;
	memset(c->sets, 0, (size_t)sets * sizeof(*c->sets));
	return c;
no_sets:
	free(c);
no_memory:
	errno = ENOMEM;
	return NULL;
}

void sl_hop_cache_destroy(struct sl_hop_cache *c)
{
	if (!c)
		return;
	free(c->sets);
	free(c);
}

uint64_t sl_hop_cache_misses(const struct sl_hop_cache *c)
{
	return __atomic_load_n(&c->misses, __ATOMIC_RELAXED);
}

static bool newer(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Did any row of this destination change after `since`? */
static bool rows_changed(const struct sl_fib *f, const struct sl_coord_data *d, uint32_t since)
{
	unsigned k = f->body->has_odd ? UINT8_MAX : SL_FILTER_HASHES;

	for (unsigned i = 0; i < k; i++)
		if (newer(__atomic_load_n(&f->matrix->row_epoch[sl_filter_bit(&d->hash, i)],
				  __ATOMIC_RELAXED),
			    since))
			return true;
	return false;
}

/* Snapshots came since the answer was confirmed: does any of their changes touch it? */
static bool touched(
	const struct sl_fib *f, const struct hop_entry *h, uint64_t hash, uint32_t coord_id)
{
	const struct sl_coord_data *d =
		__atomic_load_n(&f->coords->entries[coord_id].data, __ATOMIC_ACQUIRE);

	if (!newer(h->epoch, f->floor))
		return true;
	if (!d || !sl_node_same(&d->key, &h->dest) || rows_changed(f, d, h->epoch))
		return true;
	if (sl_fib_direct(f->body, h->dest.bytes, hash) != SL_FIB_NO_PEER)
		return true;
	for (uint32_t i = 0; i < f->recent_count; i++) {
		const struct sl_fib_change *c = &f->recent[i];

		/* The peer of the answer changed, or one that competes: by its filter or down the
		 * tree. */
		if (newer(c->epoch, h->epoch) && c->peer_id < f->body->id_limit &&
			(c->peer_id == h->peer_id || (h->coord_id & BY_TREE) ||
				sl_fib_claims(f, c->peer_id, d)))
			return true;
	}
	return false;
}

/* Does what is remembered still stand? Renews the coordinates it rests on. */
static bool stands(const struct sl_fib *f, struct hop_entry *h, uint64_t hash, uint32_t now_s)
{
	const struct sl_fib_peer *p;
	const struct sl_coord_entry *e;
	uint32_t used_s, coord_id = h->coord_id & ~BY_TREE;

	if (h->peer_id >= f->body->id_limit)
		return false;
	p = &f->body->peers[h->peer_id];
	if (!p->up || !p->can_send)
		return false;
	if (h->coord_id == SL_COORD_NONE)
		return sl_node_same(&p->addr, &h->dest);
	e = &f->coords->entries[coord_id];
	if (__atomic_load_n(&e->serial, __ATOMIC_ACQUIRE) != h->coord_serial)
		return false;
	if ((uint16_t)((uint16_t)now_s - h->made_s) >= COST_AGE_S + (h->dest.bytes[15] & 3u))
		return false;
	if (h->epoch != f->epoch) {
		if (touched(f, h, hash, coord_id))
			return false;
		h->epoch = f->epoch;
	}
	used_s = __atomic_load_n(&e->used_s, __ATOMIC_RELAXED);
	if (used_s != now_s) {
		if (sl_coord_expired(f->coords, used_s, now_s))
			return false;
		sl_coord_use(f->coords, coord_id, now_s);
	}
	return true;
}

/* `stale`: where the destination already has a place, or NULL. */
static void remember(struct hop_set *set, struct hop_entry *stale, const uint8_t *dest,
	const struct sl_fib_answer *a, uint32_t epoch, uint32_t now_s)
{
	struct hop_entry *h = stale ? stale : &set->way[0];

	/* Newest first; the last makes room. */
	if (!stale)
		memmove(&set->way[1], &set->way[0], (WAYS - 1) * sizeof(set->way[0]));
	memcpy(&h->dest, dest, sizeof(h->dest));
	h->coord_id =
		a->coord_id != SL_COORD_NONE && a->by_tree ? a->coord_id | BY_TREE : a->coord_id;
	h->coord_serial = a->coord_serial;
	h->epoch = epoch;
	h->peer_id = (uint16_t)a->peer_id;
	h->made_s = (uint16_t)now_s;
}

static void fill(const struct sl_fib *f, struct sl_hop *hop, uint8_t kind, uint32_t peer_id)
{
	const struct sl_fib_peer *p;

	hop->kind = kind;
	hop->peer_id = peer_id;
	hop->mtu = 0;
	hop->congested = 0;
	if (kind != SL_HOP_PEER)
		return;
	p = &f->body->peers[peer_id];
	hop->mtu = p->mtu;
	hop->congested = p->congested | f->body->congested;
}

/* True when the answer was remembered. */
static bool lookup_one(const struct sl_fib *f, struct hop_set *set, const uint8_t *dest,
	uint64_t hash, struct sl_hop *hop, uint32_t now_s)
{
	struct hop_entry *stale = NULL;
	struct sl_fib_answer a;

	for (unsigned w = 0; set && w < WAYS; w++) {
		struct hop_entry *h = &set->way[w];

		if (!h->epoch || !sl_node_same(&h->dest, (const struct sl_node_addr *)dest))
			continue;
		if (stands(f, h, hash, now_s)) {
			fill(f, hop, SL_HOP_PEER, h->peer_id);
			return true;
		}
		stale = h;
		break;
	}
	sl_fib_decide(f, dest, hash, now_s, &a);
	if (set && a.kind == SL_HOP_PEER)
		remember(set, stale, dest, &a, f->epoch, now_s);
	fill(f, hop, a.kind, a.peer_id);
	return false;
}

static struct hop_set *set_of(const struct sl_hop_cache *c, uint64_t hash)
{
	return c ? &c->sets[(uint32_t)(hash >> 32) & c->mask] : NULL;
}

void sl_fib_lookup(const struct sl_fib *fib, struct sl_hop_cache *cache, const uint8_t *const *dest,
	struct sl_hop *hops, unsigned n, uint32_t now_s)
{
	enum { CHUNK = 32 };
	uint64_t hash[CHUNK], misses = 0;

	while (n) {
		unsigned now = n < CHUNK ? n : CHUNK;

		for (unsigned i = 0; i < now; i++) {
			hash[i] = sl_node_hash(dest[i], fib->coords->key);
			if (cache) {
				__builtin_prefetch(set_of(cache, hash[i]), 1);
				__builtin_prefetch((const char *)set_of(cache, hash[i]) + 64, 1);
			}
		}
		for (unsigned i = 0; i < now; i++)
			misses += !lookup_one(
				fib, set_of(cache, hash[i]), dest[i], hash[i], &hops[i], now_s);
		dest += now;
		hops += now;
		n -= now;
	}
	if (cache && misses)
		__atomic_store_n(&cache->misses, cache->misses + misses, __ATOMIC_RELAXED);
}
