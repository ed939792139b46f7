/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_NEXTHOP_H
#define SL_ROUTING_NEXTHOP_H
/*
 * A snapshot of the forwarding state and the one routine that decides the next hop from it. Routing
 * facts, section 7.
 *
 * Everything in struct sl_fib is immutable once published, except what `matrix` and `coords` lead
 * to: those are the router's own, changed in place under the rules of their headers, and live as
 * long as the router.
 *
 * Epochs number the snapshots. What follows from a new one for destinations whose next hop is
 * already decided is control's to find out (answers.h).
 */
#include "coords.h"
#include "filter.h"
#include "sl_fib.h"

/* One per peer id; a hole (no such peer) has up = 0. One cache line. */
struct sl_fib_peer {
	struct sl_node_addr addr;
	const struct sl_node_addr *path; /* root first; NULL = ancestry unknown */
	double cost;
	uint16_t path_len;
	uint16_t mtu;
	uint8_t up;
	uint8_t can_send; /* false only in tests: an active peer can always send (section 7) */
	uint8_t congested;
	uint8_t hashes; /* of its filter: 5, or what it announced */
	uint16_t life;	/* differs between peers that had this id one after the other */
} __attribute__((aligned(64)));

/* The best peer below a common prefix of paths: what the tree rule needs, without asking every
 * peer. */
struct sl_fib_prefix {
	uint64_t hash; /* of the prefix; see sl_path_hash_step() */
	uint16_t peer; /* id + 1, 0 = empty: the shortest path with this prefix, then the smallest
			  address */
	uint16_t path_len; /* of that peer */
};

/* What changes with the set of peers and their paths only. One allocation. */
struct sl_fib_index {
	uint64_t key[2]; /* of the hashes */
	uint32_t count;	 /* peers */
	uint32_t direct_mask;
	uint32_t prefix_mask;
	const uint16_t *ids;		      /* [count], ascending */
	const uint16_t *direct;		      /* address -> id + 1, open addressing */
	const struct sl_fib_prefix *prefixes; /* open addressing */
};

/* Peers and own coordinates: shared by snapshots between which only filters changed. One
 * allocation. */
struct sl_fib_body {
	struct sl_node_addr self;
	const struct sl_node_addr *path; /* own coordinates, root first */
	const struct sl_fib_index *index;
	const struct sl_fib_peer *peers; /* [id_limit] */
	const double
		*costs; /* [id_limit] of those that can be a candidate; HUGE_VAL for the others */
	const uint64_t *odd; /* [words] peers whose filter has hashes != 5 */
	uint32_t path_len;
	uint32_t id_limit; /* highest peer id + 1 */
	uint32_t words;	   /* of matrix rows that are in use */
	bool has_odd;
	bool congested; /* this node itself */
};

struct sl_fib {
	const struct sl_fib_body *body;
	const struct sl_filter_matrix *matrix;
	const struct sl_coords *coords;
	uint32_t epoch; /* of this snapshot; the first is 2 */
};

#define SL_FIB_NO_PEER UINT32_MAX

/* Peer id of an adjacent node, or SL_FIB_NO_PEER. */
uint32_t sl_fib_direct(
	const struct sl_fib_body *b, const uint8_t dest[SL_NODE_ADDR_BYTES], uint64_t hash);
/*
 * 7.1 and 7.2; SL_FIB_NO_PEER when nobody is closer. d: the destination's coordinates, own: our
 * distance to it; *distance: that of the peer (by tree: of the nearest one, even if it is not
 * taken).
 */
uint32_t sl_fib_by_filter(const struct sl_fib *f, const struct sl_coord_data *d, uint32_t own,
	uint32_t *distance);
uint32_t sl_fib_by_tree(const struct sl_fib_body *b, const struct sl_coord_data *d, uint32_t own,
	uint32_t *distance);
/* Is (distance, address) of p the better one? */
bool sl_fib_nearer(const struct sl_fib_peer *p, uint32_t distance, const struct sl_fib_peer *best,
	uint32_t best_distance);

struct sl_fib_answer {
	uint32_t peer_id; /* SL_HOP_PEER */
	uint8_t kind;	  /* enum sl_hop_kind */
	uint8_t rule;	  /* enum sl_coord_rule: how it came about */
	/* By filter, by tree or no route: */
	uint32_t own, distance; /* ours; the peer's */
};
/* Of a destination whose coordinates are known. hash: sl_node_hash() of its address, the cache's
 * key. */
void sl_fib_route(const struct sl_fib *f, const struct sl_coord_data *d, uint64_t hash,
	struct sl_fib_answer *a);
/* All of section 7; renews the coordinates it finds. */
void sl_fib_decide(const struct sl_fib *f, const uint8_t dest[SL_NODE_ADDR_BYTES], uint64_t hash,
	uint32_t now_s, struct sl_fib_answer *a);

#endif
