/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Burst look-ups and what a worker remembers of them: of each destination the entry of the
 * coordinate cache, or the peer that it is. Where it goes is read from the entry, in which control
 * has decided it ahead (answers.h): nothing that changes in the mesh makes a worker forget or
 * decide. It decides itself only while control has not come by: coordinates just learned, a peer
 * just gone.
 */
#include "nexthop.h"

#include <errno.h>
#include <stdlib.h>

struct hop_entry {
	struct sl_node_addr dest;
	uint32_t coord_id; /* SL_COORD_NONE: an adjacent peer */
	uint32_t coord_serial;
	uint32_t peer_id; /* of an adjacent one */
	uint32_t filled;
};
_Static_assert(sizeof(struct hop_entry) == 32, "two to a cache line");

enum { WAYS = 4 };
struct hop_set {
	struct hop_entry way[WAYS];
} __attribute__((aligned(64)));

struct sl_hop_cache {
	struct hop_set *sets;
	uint32_t mask;
	uint64_t misses, decided;
};

static uint32_t sets_for(uint32_t entries)
{
	uint32_t sets = 1;

	while (sets * WAYS < entries && sets < 1u << 26)
		sets *= 2;
	return sets;
}

size_t sl_hop_cache_bytes(uint32_t entries)
{
	return sizeof(struct sl_hop_cache) + (size_t)sets_for(entries) * sizeof(struct hop_set);
}

struct sl_hop_cache *sl_hop_cache_create(uint32_t entries)
{
	struct sl_hop_cache *c = malloc(sizeof(*c));
	const uint32_t sets = sets_for(entries);

	if (!c)
		goto no_memory;
	c->mask = sets - 1;
	c->misses = c->decided = 0;
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

uint64_t sl_hop_cache_decided(const struct sl_hop_cache *c)
{
	return __atomic_load_n(&c->decided, __ATOMIC_RELAXED);
}

/* One look-up under way. */
struct ask {
	const struct sl_fib *fib;
	uint32_t now_s;
	uint32_t misses, decided;
};

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

/* False when control's word does not hold (any more, or yet). */
static bool told(const struct sl_fib *f, uint32_t word, struct sl_hop *hop)
{
	uint32_t id = (word >> 16) - 1;
	const struct sl_fib_peer *p;

	if (word == SL_COORD_HOP_NO_ROUTE) {
		fill(f, hop, SL_HOP_NO_ROUTE, SL_FIB_NO_PEER);
		return true;
	}
	if (id >= f->body->id_limit)
		return false;
	p = &f->body->peers[id];
	if (!p->up || !p->can_send || p->life != (uint16_t)word)
		return false;
	fill(f, hop, SL_HOP_PEER, id);
	return true;
}

static void decide(struct ask *ask, const uint8_t *dest, uint64_t hash, struct sl_hop *hop)
{
	struct sl_fib_answer a;

	sl_fib_decide(ask->fib, dest, hash, ask->now_s, &a);
	fill(ask->fib, hop, a.kind, a.peer_id);
	ask->decided++;
}

/* False when what is remembered does not name the destination any more. Renews its coordinates. */
static bool remembered(struct ask *ask, const struct hop_entry *h, uint64_t hash, struct sl_hop *hop)
{
	const struct sl_fib *f = ask->fib;
	const struct sl_coord_entry *e;
	uint32_t word, used_s;

	if (h->coord_id == SL_COORD_NONE) {
		const struct sl_fib_peer *p = &f->body->peers[h->peer_id];

		if (h->peer_id >= f->body->id_limit || !(p->up & p->can_send) ||
			!sl_node_same(&p->addr, &h->dest))
			return false;
		fill(f, hop, SL_HOP_PEER, h->peer_id);
		return true;
	}
	e = &f->coords->entries[h->coord_id];
	word = __atomic_load_n(&e->hop, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&e->serial, __ATOMIC_ACQUIRE) != h->coord_serial)
		return false;
	used_s = __atomic_load_n(&e->used_s, __ATOMIC_RELAXED);
	if (used_s != ask->now_s) {
		if (sl_coord_expired(f->coords, used_s, ask->now_s))
			return false;
		sl_coord_use(f->coords, h->coord_id, ask->now_s);
	}
	if (!told(f, word, hop))
		decide(ask, h->dest.bytes, hash, hop);
	return true;
}

static struct hop_entry *find(struct hop_set *set, const uint8_t *dest)
{
	for (unsigned w = 0; w < WAYS; w++) {
		struct hop_entry *h = &set->way[w];

		if (h->filled && sl_node_same(&h->dest, (const struct sl_node_addr *)dest))
			return h;
	}
	return NULL;
}

/* `stale`: where the destination already has a place, or NULL. */
static void remember(struct hop_set *set, struct hop_entry *stale, const uint8_t *dest,
	uint32_t coord_id, uint32_t coord_serial, uint32_t peer_id)
{
	struct hop_entry *h = stale ? stale : &set->way[0];

	/* Newest first; the last makes room. */
	if (!stale)
		memmove(&set->way[1], &set->way[0], (WAYS - 1) * sizeof(set->way[0]));
	memcpy(&h->dest, dest, sizeof(h->dest));
	h->coord_id = coord_id;
	h->coord_serial = coord_serial;
	h->peer_id = peer_id;
	h->filled = 1;
}

/* Not remembered: the steps of sl_fib_decide(), with control's word for the last ones. unknown: a moment ago there were no coordinates. */
static void lookup_anew(struct ask *ask, struct hop_set *set, struct hop_entry *stale,
	const uint8_t *dest, uint64_t hash, bool unknown, struct sl_hop *hop)
{
	const struct sl_fib *f = ask->fib;
	uint32_t id, serial, word, peer_id;

	ask->misses++;
	if (sl_node_same(&f->body->self, (const struct sl_node_addr *)dest)) {
		fill(f, hop, SL_HOP_LOCAL, SL_FIB_NO_PEER);
		return;
	}
	peer_id = sl_fib_direct(f->body, dest, hash);
	if (peer_id != SL_FIB_NO_PEER) {
		remember(set, stale, dest, SL_COORD_NONE, 0, peer_id);
		fill(f, hop, SL_HOP_PEER, peer_id);
		return;
	}
	if (unknown || !sl_coords_lookup(f->coords, dest, hash, ask->now_s, &id, &serial)) {
		fill(f, hop, SL_HOP_NO_COORDS, SL_FIB_NO_PEER);
		return;
	}
	sl_coord_use(f->coords, id, ask->now_s);
	remember(set, stale, dest, id, serial, SL_FIB_NO_PEER);
	word = __atomic_load_n(&f->coords->entries[id].hop, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&f->coords->entries[id].serial, __ATOMIC_ACQUIRE) != serial ||
		!told(f, word, hop))
		decide(ask, dest, hash, hop);
}

static struct hop_set *set_of(const struct sl_hop_cache *c, uint64_t hash)
{
	return &c->sets[(uint32_t)(hash >> 32) & c->mask];
}

enum { CHUNK = 32 };

/* The steps of a look-up in the coordinate cache, each for all that need it. A bit is set for each that nothing is known of. */
static __attribute__((noinline)) uint32_t fetch_ahead(const struct sl_coords *coords, const uint64_t hash[CHUNK], const uint8_t missed[CHUNK],
	unsigned missing)
{
	uint32_t candidate[CHUNK], unknown = 0;

	for (unsigned m = 0; m < missing; m++)
		candidate[m] = sl_coords_prefetch_entry(coords, hash[missed[m]]);
	for (unsigned m = 0; m < missing; m++)
		if (candidate[m] != SL_COORD_NONE)
			sl_coords_prefetch_data(coords, candidate[m]);
		else
			unknown |= 1u << missed[m];
	return unknown;
}

/* Each step fetches what the next one needs of all n <= CHUNK. */
static void lookup_chunk(struct ask *ask, struct sl_hop_cache *cache, const uint8_t *const *dest,
	struct sl_hop *hops, unsigned n)
{
	const struct sl_coords *coords = ask->fib->coords;
	const uint32_t misses = ask->misses;
	struct hop_entry *at[CHUNK];
	struct hop_set *set[CHUNK];
	uint64_t hash[CHUNK];
	uint8_t missed[CHUNK];
	unsigned missing = 0;
	uint32_t unknown = 0;

	for (unsigned i = 0; i < n; i++) {
		hash[i] = sl_node_hash(dest[i], coords->key);
		set[i] = set_of(cache, hash[i]);
		__builtin_prefetch(set[i]);
		__builtin_prefetch((const char *)set[i] + 64);
	}
	for (unsigned i = 0; i < n; i++) {
		at[i] = find(set[i], dest[i]);
		if (!at[i]) {
			sl_coords_prefetch(coords, hash[i]);
			missed[missing++] = (uint8_t)i;
		} else if (at[i]->coord_id != SL_COORD_NONE) {
			__builtin_prefetch(&coords->entries[at[i]->coord_id]);
		} else {
			__builtin_prefetch(&ask->fib->body->peers[at[i]->peer_id]);
		}
	}
	if (__builtin_expect(missing, 0))
		unknown = fetch_ahead(coords, hash, missed, missing);
	for (unsigned i = 0; i < n; i++) {
		/* What an earlier one of the chunk remembered may have moved it. */
		if (__builtin_expect(ask->misses != misses, 0))
			at[i] = find(set[i], dest[i]);
		if (__builtin_expect(!at[i], 0) || !remembered(ask, at[i], hash[i], &hops[i]))
			lookup_anew(ask, set[i], at[i], dest[i], hash[i], unknown >> i & 1, &hops[i]);
	}
}

void sl_fib_lookup(const struct sl_fib *fib, struct sl_hop_cache *cache, const uint8_t *const *dest,
	struct sl_hop *hops, unsigned n, uint32_t now_s)
{
	struct ask ask = {.fib = fib, .now_s = now_s};

	for (unsigned i = 0; !cache && i < n; i++)
		decide(&ask, dest[i], sl_node_hash(dest[i], fib->coords->key), &hops[i]);
	for (unsigned done = 0; cache && done < n; done += CHUNK)
		lookup_chunk(&ask, cache, dest + done, hops + done,
			n - done < CHUNK ? n - done : CHUNK);
	if (cache && ask.misses)
		__atomic_store_n(&cache->misses, cache->misses + ask.misses, __ATOMIC_RELAXED);
	if (cache && ask.decided)
		__atomic_store_n(&cache->decided, cache->decided + ask.decided, __ATOMIC_RELAXED);
}
