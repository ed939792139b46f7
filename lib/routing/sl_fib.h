/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_FIB_H
#define SL_FIB_H
/*
 * The read side of routing: where a datagram goes next. One routine decides, for workers and control alike
 * (routing facts, section 7: direct peer, then filter candidates by cost, distance, address, then greedy tree).
 *
 * A struct sl_fib is an immutable snapshot made by control (struct sl_router): our address and coordinates, every
 * peer with its coordinates, filter and cost. It refers to the coordinate cache, a table that control writes and
 * workers read without locks. Control publishes snapshots with a release store; a worker loads the pointer once per burst
 * (acquire) and uses it until it reports quiescent. Old snapshots are reclaimed through the router's callback.
 *
 * Where each known destination goes is decided ahead by control and stands with its coordinates: workers read it, and
 * a change in the mesh costs them nothing. After a change it is what was right before for as long as control needs to
 * go through all destinations (milliseconds; docs/routing.md). What a worker remembers (struct sl_hop_cache, its own)
 * is only where a destination's coordinates are found.
 */
#include "../crypto/sl_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_fib;
struct sl_hop_cache;

enum sl_hop_kind {
	SL_HOP_PEER,	    /* to peer_id */
	SL_HOP_LOCAL,	    /* it is for us */
	SL_HOP_NO_COORDS,   /* destination not in the coordinate cache: CoordsRequired */
	SL_HOP_NO_ROUTE,    /* coordinates known, nobody is closer: PathBroken */
};

struct sl_hop {
	uint32_t peer_id; /* SL_HOP_PEER only */
	uint16_t mtu;	  /* of the outgoing link, FMP bytes; 0 = unknown, leave path_mtu alone */
	uint8_t kind;	  /* enum sl_hop_kind */
	uint8_t congested; /* mark CE: loss or ETX to this peer at or above the thresholds */
};

/* Where the current snapshot is found. Written by control (release), read by workers (acquire). */
struct sl_fib_ref {
	const struct sl_fib *current;
};

/* One per worker. entries is rounded up to a power of two. NULL and errno. */
struct sl_hop_cache *sl_hop_cache_create(uint32_t entries) SL_MUST_CHECK;
void sl_hop_cache_destroy(struct sl_hop_cache *c);
/* Memory of one, bytes; all of it is touched when it is made. Any thread. */
size_t sl_hop_cache_bytes(uint32_t entries);
/* Destinations that were not remembered; next hops that had to be decided here. Written by its worker, read by anyone
 * (relaxed). */
uint64_t sl_hop_cache_misses(const struct sl_hop_cache *c);
uint64_t sl_hop_cache_decided(const struct sl_hop_cache *c);

/*
 * Next hops of n destinations (16 bytes each, any alignment). now_s: the router's clock in seconds (monotonic us /
 * 1000000). A coordinate cache hit refreshes that entry's last use. cache NULL = decide each one.
 */
void sl_fib_lookup(const struct sl_fib *fib, struct sl_hop_cache *cache, const uint8_t *const *dest,
	struct sl_hop *hops, unsigned n, uint32_t now_s);

#ifdef __cplusplus
}
#endif
#endif
