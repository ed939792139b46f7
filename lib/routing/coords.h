/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_COORDS_H
#define SL_ROUTING_COORDS_H
/*
 * The coordinate cache: destination -> coordinates, with a lifetime that every use renews. Routing
 * facts, section 8.
 *
 * Control inserts, replaces and removes; workers look up without locks. What a look-up returns is
 * immutable and stays until the worker reports quiescent. Each entry has a number (`id`) and a
 * serial that changes whenever the entry gets other contents or goes: a worker that remembers (id,
 * serial) sees with one load whether it still means the same destination.
 *
 * An entry also says where its destination goes (`hop`): decided ahead by control (answers.h), for
 * all workers. The cache only marks it undecided when the contents change, and keeps the list of
 * the undecided.
 *
 * Table: buckets of 16 slots (one cache line), each key in one of two buckets; a slot is [tag : 8 |
 * id + 1 : 24]. At most half the slots are in use, so both buckets full is an accident of 2^-30 or
 * somebody's work; the oldest of them goes. Eviction at capacity: the oldest of a sample of 32 (of
 * all, up to 64 entries). Oldest use first takes expired ones first, as use and expiry are one time
 * stamp.
 */
#include "filter.h"
#include "limbo.h"
#include "path.h"

#define SL_COORD_NONE UINT32_MAX
#define SL_COORD_CAPACITY_MAX (1u << 23)

struct sl_coord_data {
	struct sl_node_addr key;
	struct sl_filter_hash hash; /* of the key */
	uint32_t learned_s;
	uint16_t path_mtu; /* of a lookup response; 0 = none */
	uint16_t len;
	bool has_self;		    /* our own address is in it */
	struct sl_node_addr path[]; /* root first */
};

/*
 * Where a destination goes, in one word: [peer id + 1 : 16 | life of that peer : 16], or one of
 * these. The life tells a later peer of the same id apart (struct sl_fib_peer).
 */
#define SL_COORD_HOP_UNDECIDED 0u
#define SL_COORD_HOP_NO_ROUTE 1u

static inline uint32_t sl_coord_hop(uint32_t peer_id, uint16_t life)
{
	return (peer_id + 1) << 16 | life;
}

struct sl_coord_entry {
	const struct sl_coord_data
		*data;	 /* control writes (release), workers read (acquire); NULL = free */
	uint32_t serial; /* control writes (release), workers read (acquire) */
	uint32_t hop;	 /* control writes (release), workers read (acquire), before serial */
	uint32_t used_s; /* last use, router's seconds: control and workers write (relaxed) */
} __attribute__((aligned(32)));

/*
 * What control keeps of an entry's answer, apart from the entry so that going through all of them
 * touches no line that workers write. Contents are answers.c's; the cache resets `rule`.
 */
enum sl_coord_rule {
	SL_COORD_FREE, /* no such entry */
	SL_COORD_UNDECIDED,
	SL_COORD_DIRECT, /* an adjacent peer, or ourselves */
	SL_COORD_BY_FILTER,
	SL_COORD_BY_TREE,
	SL_COORD_NO_ROUTE,
};
#define SL_COORD_TAGS 4
struct sl_coord_kept {
	uint32_t epoch;	       /* of the snapshot it is right for */
	uint16_t own, distance; /* ours and the chosen peer's; UINT16_MAX = infinite */
	uint16_t peer;
	uint8_t rule : 7, listed : 1;
	uint8_t len;		 /* of the destination's path */
	uint16_t h1, h2;	 /* of its hash, mod SL_FILTER_BITS: all that its five bits need */
	uint16_t tag[SL_COORD_TAGS]; /* of the path's entries below the root; 0 beyond its end */
};
_Static_assert(sizeof(struct sl_coord_kept) == 24, "scanned in a row");

struct sl_coords {
	struct sl_coord_entry *entries;
	uint32_t *slots; /* control writes (release), workers read (acquire) */
	uint32_t bucket_mask;
	uint32_t ttl_s;
	uint64_t key[2]; /* of sl_node_hash() */

	/* Control's alone: */
	uint32_t capacity, count;
	uint32_t high; /* ids at or above it were never used */
	struct sl_coord_kept *kept; /* [capacity] by id */
	uint32_t *undecided;	    /* [capacity] ids, some perhaps decided or gone meanwhile */
	uint32_t undecided_count;
	uint32_t *dense; /* ids in use, 0 .. count - 1, then the free ones */
	uint32_t *place; /* id -> index in dense */
	uint64_t random;
	struct sl_limbo *limbo;
	struct sl_node_addr self;
	uint32_t order; /* of the last insert */
	uint32_t *born; /* id -> order of its insert */
	/* Sweeps under way: entries born up to `order` that match go; cursor counts down. */
	struct sl_coord_sweep {
		bool active, with_self, other_roots;
		struct sl_node_addr root;
		uint32_t order, cursor;
	} sweep[4];
	uint32_t expiry_cursor;
	uint64_t evicted;
};

int sl_coords_init(struct sl_coords *c, uint32_t capacity, uint32_t ttl_s,
	const struct sl_node_addr *self, const uint64_t key[2],
	struct sl_limbo *limbo) SL_MUST_CHECK;
void sl_coords_fini(struct sl_coords *c);

/*
 * wire: len * 16 bytes, the node first. path_mtu 0 keeps what an older entry knew. 0; -EINVAL
 * (empty, too long, or the first entry is not the key: see section 8 on why that happens); -ENOMEM.
 */
int sl_coords_insert(struct sl_coords *c, const struct sl_node_addr *key, const uint8_t *wire,
	uint32_t len, uint16_t path_mtu, uint32_t now_s) SL_MUST_CHECK;
bool sl_coords_remove(struct sl_coords *c, const struct sl_node_addr *key);
/* Entries that contain our address, or whose root is not `other_than` (NULL = any root stays).
 * Large caches in steps. */
void sl_coords_invalidate(
	struct sl_coords *c, bool with_self, const struct sl_node_addr *other_than);
/* Does at most `budget` entries of pending work (invalidation; expiry when `expire`). True while
 * more is pending. */
bool sl_coords_work(struct sl_coords *c, uint32_t budget, bool expire, uint32_t now_s);
/* The answer of entry id is to be made anew. */
void sl_coords_undecide(struct sl_coords *c, uint32_t id);
/* The id of a key's entry, expired or not; SL_COORD_NONE. */
uint32_t sl_coords_id(const struct sl_coords *c, const struct sl_node_addr *key);
/* Bytes held, for sizing. */
size_t sl_coords_bytes(const struct sl_coords *c);

/* --- any lcore --- */

/* NULL when absent or expired; does not renew. *id names the entry, *serial its contents. */
const struct sl_coord_data *sl_coords_lookup(const struct sl_coords *c,
	const uint8_t key[SL_NODE_ADDR_BYTES], uint64_t hash, uint32_t now_s, uint32_t *id,
	uint32_t *serial);

/*
 * Ahead of a look-up, each of some others' after the one before: the buckets; the entry that the tag leads to (returned, perhaps
 * not the key's; SL_COORD_NONE: there is none); what that entry holds. With a million entries each is a line in memory.
 */
void sl_coords_prefetch(const struct sl_coords *c, uint64_t hash);
uint32_t sl_coords_prefetch_entry(const struct sl_coords *c, uint64_t hash);
void sl_coords_prefetch_data(const struct sl_coords *c, uint32_t id);

static inline bool sl_coord_expired(const struct sl_coords *c, uint32_t used_s, uint32_t now_s)
{
	return (int32_t)(now_s - used_s) > 0 && now_s - used_s > c->ttl_s;
}

/* Renews entry id; a store only when the second changed, so that hot entries' lines stay shared. */
static inline void sl_coord_use(const struct sl_coords *c, uint32_t id, uint32_t now_s)
{
	uint32_t *used_s = &c->entries[id].used_s;

	if (__atomic_load_n(used_s, __ATOMIC_RELAXED) != now_s)
		__atomic_store_n(used_s, now_s, __ATOMIC_RELAXED);
}

#endif
