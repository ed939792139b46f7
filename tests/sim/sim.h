/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_H
#define SIM_H
/*
 * The simulator: a mesh of whole nodes of our own code (sl_links and sl_router, wired together as
 *the daemon wires them) in one process, one thread, on a virtual clock. Keys, handshakes, frames
 *and signatures are real; wires are not. Everything random comes from the seed, libsodium's
 *randomness included, so a run repeats exactly.
 *
 * A wire delivers each packet after the wire's own delay and some jitter (which reorders), may lose
 *it, may deliver it twice, and delivers nothing while it is cut. A killed node is gone without a
 *word.
 *
 *	sim_world.c	nodes, wires, time
 *	sim_check.c	components, shortest paths, who agrees with whom
 *	sim_pairs.c	sessions between random pairs
 *	sl_sim.c	the phases of a run, options, the report
 */
#include "router.h"
#include "sl_link.h"

#include <stdio.h>
#include <stdlib.h>

#define SIM_S 1000000ull
#define SIM_MS 1000ull
#define SIM_NOBODY UINT32_MAX

struct sim_options {
	uint32_t nodes;
	double degree;
	uint64_t seed;
	double loss, duplicate;
	uint64_t delay_us, jitter_us; /* of the mean wire; a wire's own delay is half to one and a
					 half of it */
	uint32_t pairs, pairs_per_s;
	double kill_percent;
	uint32_t steady_s, partition_s;
	uint32_t coords; /* capacity of a node's coordinate cache */
	bool kill_root;
	bool star; /* node 0 has a wire to every other one, and its processor time is watched */
	bool no_again;		/* announces that were lost are not sent again early */
	uint64_t root_doubt_us; /* UINT64_MAX = the default */
};

struct sim;

struct sim_wire {
	uint32_t peer; /* node at the other end */
	uint64_t delay_us;
	bool cut;
};

struct sim_node {
	struct sim *sim;
	uint32_t index;
	bool dead;
	struct sl_identity *identity;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_router *router;
	struct sim_wire *wires;
	uint32_t wire_count, rows;
	uint32_t *neighbour;	/* [rows]: node that a peer id is, SIM_NOBODY when down */
	uint32_t up;		/* links up */
	uint64_t timer_us;	/* earliest timer event queued */
	struct sim_pair *pairs; /* of which this node is the source, under way */
	uint8_t message[SL_TREE_FIXED_BYTES + 2048];
};

enum sim_event_kind { SIM_PACKET, SIM_TIMER, SIM_PAIR };
struct sim_event {
	uint64_t at_us, order;
	uint32_t node, from; /* from: SIM_PACKET the sender, SIM_PAIR the pair */
	uint16_t len;
	uint8_t kind;
	uint8_t *bytes;
};

enum sim_pair_state {
	PAIR_WAITING,
	PAIR_LOOKUP,
	PAIR_SETUP,
	PAIR_ACK,
	PAIR_DATA,
	PAIR_REPLY,
	PAIR_DONE,
	PAIR_FAILED
};
#define SIM_TRACE 128
struct sim_pair {
	uint32_t from, to;
	uint8_t state, attempt;
	bool show;	 /* data shows coordinates */
	bool fresh;	 /* its next event is a turn, not a time-out */
	bool repeated;	 /* something had to be sent again */
	bool anew;	 /* told that the path is broken: from the lookup on */
	uint32_t serial; /* of the message under way */
	uint64_t due_us;
	struct sim_pair *next; /* of the same source */
	uint64_t start_us, found_us, done_us;
	uint64_t told_us; /* last error signal that was heeded */
	struct sl_node_addr coords[SL_PATH_MAX + 1]; /* of `to`, as the lookup found them */
	uint16_t coords_count;
	/* The message under way: who has forwarded it. */
	uint16_t hops;
	uint32_t trace[SIM_TRACE];
	uint16_t data_hops;
	bool looped;
};

struct sim {
	struct sim_options o;
	uint64_t now_us, order, random[2];
	struct sim_node *nodes;
	uint32_t alive;
	uint64_t edges;
	struct sim_event *heap;
	size_t heap_count, heap_size;
	uint64_t events, packets, bytes, lost;
	uint64_t watched_ns, watched_events;	     /* star: of node 0 */
	uint64_t dead_route[SL_ROUTE_COUNTER_COUNT]; /* counters of killed nodes */
	/* sim_pairs.c */
	struct sim_pair *pairs;
	uint32_t pair_count, pairs_open;
	uint64_t signals[4];
	/* sim_check.c */
	uint32_t *component, *queue, *distance;
	uint32_t *root_of; /* [component] node with the smallest address */
	uint32_t components;
};

/* sim_world.c */
struct sim *sim_create(const struct sim_options *o);
void sim_destroy(struct sim *s);
/* Everything up to this moment. */
void sim_run_to(struct sim *s, uint64_t at_us);
void sim_push(struct sim *s, struct sim_event e);
/* After a node was given something: its next timer. */
void sim_settle(struct sim *s, struct sim_node *n);
void sim_kill(struct sim *s, uint32_t node);
/* Cuts or heals every wire between nodes whose side differs. */
void sim_cut(struct sim *s, const uint8_t *side, bool cut);
uint64_t sim_random(struct sim *s);
static inline uint32_t sim_below(struct sim *s, uint32_t n)
{
	return (uint32_t)(((sim_random(s) >> 32) * n) >> 32);
}
void sim_route_counters(const struct sim *s, uint64_t sum[SL_ROUTE_COUNTER_COUNT]);

/* sim_check.c */
/* Components of the living nodes over uncut wires. */
void sim_components(struct sim *s);
/* Hops from a node to all others of its component, in s->distance. */
void sim_distances(struct sim *s, uint32_t from);
struct sim_agreement {
	uint32_t wrong_root, wrong_coords, stale_peers, dead_peers, links_missing;
	uint32_t depth; /* the greatest */
	double mean_depth;
	bool all;
};
/*
 * Everyone has its component's smallest node as root, its coordinates are its parent's and itself,
 * every peer's coordinates are known as they are, nobody believes in a dead peer, every wire
 * carries a link.
 */
void sim_agree(struct sim *s, struct sim_agreement *a);
/*
 * Links (one way each) whose far end does not hold the filter that the near end would send it now:
 * none left means that filters have gone up and down the tree.
 */
uint32_t sim_filters_stale(struct sim *s);
struct sim_filters {
	uint32_t links, none, full; /* directed tree links; without a filter; above the cap */
	double mean_fill, max_fill; /* of the filters that came over tree links, share of bits */
	uint64_t asked, claimed; /* (tree link, node behind it) sampled: does the filter claim it */
	uint64_t foreign, false_claims; /* (tree link, node not behind it) */
};
void sim_filters(struct sim *s, struct sim_filters *f, uint32_t samples);

/* sim_pairs.c */
struct sim_delivery {
	uint32_t pairs, delivered, first_try, looped, no_lookup;
	double stretch_mean, stretch_max, stretch_p99, hops_mean;
	double lookup_p50_ms, lookup_p99_ms, lookup_max_ms;
	double took_s; /* from the first set-up to the last reply */
};
/* 10,000 sessions between random pairs of one component; waits for all, a minute at most. */
void sim_deliver(struct sim *s, struct sim_delivery *d);
void sim_pair_event(struct sim *s, uint32_t pair);
/* What a node's sinks tell: a datagram sent on, a datagram for it, a lookup's answer and its end.
 */
void sim_pair_forwarded(struct sim_node *n, const uint8_t *msg, size_t len);
void sim_pair_local(struct sim_node *n, const uint8_t *msg, size_t len);
void sim_pair_answer(struct sim_node *n, const uint8_t *msg, size_t len);
void sim_pair_lookup_done(struct sim_node *n, const struct sl_node_addr *target, bool found);

#endif
