/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_ROUTER_H
#define SL_ROUTING_ROUTER_H
/*
 * What the files of control's side share: the router's state, cut by file.
 *
 *	tree.c		declarations in and out, parent selection
 *	doubt.c		who is believed about a root that was withdrawn
 *	again.c		announces that may have been lost are sent again
 *	announce.c	FilterAnnounce in and out, what is merged for whom
 *	publish.c	snapshots for the workers
 *	answers.c	next hops decided ahead, for each known destination
 *	lookup.c	requests and responses of others
 *	quest.c		lookups of our own
 *	datagram.c	datagrams that control handles, error signals
 *	router.c	life, peers, time;  info.c  what the operator sees
 *
 * One thread. A public call changes state, notes what is to be sent or published, and ends in
 *sl_router_settle().
 */
#include "../overlay/sl_bucket.h"
#include "../overlay/sl_log.h"
#include "answers.h"
#include "filter.h"
#include "limbo.h"
#include "nexthop.h"
#include "path.h"
#include "sl_router.h"

#define SL_NO_PEER UINT32_MAX
/*
 * Announces and filters that go out in one millisecond: with thousands of peers what all of them are owed would be a turn of tens of
 * milliseconds, and more than control's transmit queue takes (128). The rest follows, 64 a millisecond.
 */
#define SL_SENDS_A_MS 64u

/* A peer's path, root first. Immutable: snapshots refer to it; retired after the one that no longer
 * does. */
struct sl_route_path {
	struct sl_route_path *next; /* of the retired */
	uint64_t *prefix;	    /* hash of the first i + 1 entries */
	uint16_t len;
	struct sl_node_addr at[] __attribute__((aligned(8)));
};

/* again.c: the latest announce of a kind to a peer, while it is not known to have arrived. */
struct sl_again {
	uint64_t us;	/* when it was sent */
	double chance;	/* that every copy of it was lost */
	uint8_t copies; /* sent after the first */
	bool open;	/* no report accounts for it yet */
	bool due;	/* the next one sent is a copy */
};

struct sl_route_peer {
	uint32_t id;
	uint32_t place; /* in sl_router.active */
	uint32_t life;	/* differs for every peer_up: tells a later peer of the same id apart */
	struct sl_node_addr addr;
	uint8_t xonly[SL_XONLY_BYTES];
	uint16_t mtu;
	struct sl_route_peer *hash_next; /* chain of sl_router.by_addr */

	/* tree.c: the last accepted declaration */
	bool has_tree;
	bool has_self; /* its path contains us */
	uint64_t tree_sequence;
	struct sl_node_addr parent;
	uint16_t path_len;
	uint8_t *entries; /* path_len * 32 bytes as received: the peer first, its root last */
	struct sl_route_path *route;
	struct sl_node_addr *path; /* = route->at: root first */
	struct sl_bucket tree_bucket;
	/* announces to it */
	bool announce_pending, announced;
	uint64_t announced_us, announced_sequence;
	struct sl_again tree_again;

	/* announce.c: its filter, and ours to it */
	bool has_filter;
	bool left_out; /* of the merge: too full (W3) */
	uint8_t filter_hashes;
	uint8_t filter[SL_FILTER_BYTES];
	uint32_t filter_count;
	uint64_t filter_sequence_rx;
	bool filter_wanted; /* a send is due even if nothing changed */
	bool filter_sent, filter_tried;
	uint64_t filter_us; /* last send */
	uint64_t filter_sequence_tx;
	struct sl_again filter_again;
	uint64_t filter_checked; /* sl_router.merge_version that sent[] was compared with */
	uint8_t sent[SL_FILTER_BYTES];

	/* publish.c: what the matrix holds in this peer's column, when it differs from `filter` */
	bool column_dirty;
	bool path_dirty; /* coordinates or number of hashes changed, or the peer is new */
	uint8_t column[SL_FILTER_BYTES];

	bool can_send; /* always, but in tests */
	bool measured;
	double cost, loss, etx;

	struct sl_bucket lookup_bucket, signal_bucket;
	uint32_t lookups_recorded;
};

/* tree.c: our own declaration and the clocks of its stability (routing facts, 5.6). */
struct sl_tree {
	struct sl_node_addr self, root, parent; /* parent = self when we declare ourselves root */
	uint64_t sequence, timestamp_s;
	bool is_signed;
	uint8_t signature[SL_SIGNATURE_BYTES];
	uint16_t len;
	uint8_t *entries;	   /* as announced, self first; room for SL_PATH_MAX + 1 */
	struct sl_node_addr *path; /* root first; same room */
	bool stamped;
	uint64_t stamped_us; /* last "set parent" */
	uint32_t flap_count;
	bool flap_window_open, dampened_set;
	uint64_t flap_window_us, dampened_until_us;
	bool evaluated;
	uint64_t evaluated_us; /* last periodic pass */
	/* W7: the shortest path lately, to which root, until when; a root that was withdrawn, and the
	 * length of path from which on nobody is believed about it. */
	struct sl_node_addr near_root, doubted;
	uint16_t near_len, doubt_len;
	uint64_t near_us;
	uint64_t doubt_us, doubt_until_us; /* since, and for the longest of paths; 0 = never yet */
	uint64_t doubt_look_us;		   /* when somebody will be believed again; 0 = nobody is in doubt */
	uint8_t doubt_again;		   /* it lasts 2^n times as long */
};

/* datagram.c, lookup.c: when something was last done for an address; bounded, the oldest of a set
 * makes room. */
struct sl_stamps {
	struct sl_stamp {
		struct sl_node_addr addr;
		uint64_t us; /* 0 = empty */
	} * slots;
	uint32_t set_mask;
};

struct sl_recent; /* lookup.c */
struct sl_quest;  /* quest.c: a lookup of our own under way */
struct sl_backoff; /* quest.c: a target that was not found */

struct sl_router {
	struct sl_router_config config;
	const struct sl_identity *identity;
	struct sl_router_sink sink;
	struct sl_tree tree;
	uint64_t start_unix_s, start_us;
	uint64_t now_us; /* of the running call */
	uint64_t key[2];
	uint64_t random;
	uint64_t counters[SL_ROUTE_COUNTER_COUNT];

	struct sl_route_peer **peers; /* [max_peers] by id */
	struct sl_route_peer **active;
	struct sl_route_peer **by_addr; /* hash chains */
	uint32_t by_addr_mask;
	uint32_t active_count, life;

	/* announce.c */
	uint64_t filter_sequence; /* of the last one sent */
	uint64_t merge_version;	  /* raised when what we would send may have changed */
	uint64_t merge_built;	  /* version of the three below */
	uint8_t merge_any[SL_FILTER_BYTES], merge_twice[SL_FILTER_BYTES];
	struct sl_route_peer **left_out; /* emptiest first */
	uint32_t left_out_count;

	/* publish.c */
	struct sl_fib_ref ref;
	struct sl_filter_matrix matrix;
	struct sl_coords coords;
	struct sl_limbo limbo;
	bool body_dirty, columns_dirty, own_path_dirty;
	bool index_dirty;	    /* the set of peers or their paths; with body_dirty */
	bool costs_dirty;	    /* costs or congestion marks: a body, but not at once */
	struct sl_fib_peer *shadow; /* [max_peers] what the next body shows of each peer */
	struct sl_route_path *retired_paths;
	uint16_t *dirty_columns; /* [max_peers] */
	uint32_t dirty_column_count;
	uint64_t published_us;
	uint64_t due_us;  /* a tick before this has nothing to do, but perhaps answers */
	uint64_t answers_us;
	uint64_t scan_us; /* last tick that looked at all peers */
	uint32_t epoch;
	bool congested;
	uint64_t sends_us; /* the millisecond that is running, and what is left of it */
	uint32_t sends_left;

	struct sl_answers answers;

	struct sl_recent *recent_lookups;
	struct sl_quest *quests;
	uint32_t quest_count;
	struct sl_backoff *backoffs; /* NULL until first needed */
	struct sl_stamps lookup_stamps, signal_stamps;
	struct sl_bucket answer_bucket;
	uint64_t expiry_us; /* next slice of the coordinate cache's expiry */
	uint8_t *scratch;   /* for one message */
};

#define SL_SCRATCH_BYTES (SL_TREE_FIXED_BYTES + SL_TREE_ENTRY_BYTES * (SL_PATH_MAX + 1))

static inline void sl_route_count(struct sl_router *r, enum sl_route_counter c)
{
	r->counters[c]++;
}

/* There is something for the tick: not at once, so that a flood of small changes does not make each
 * turn a long one. */
static inline void sl_router_wake(struct sl_router *r)
{
	uint64_t at = r->scan_us + r->config.publish_interval_us;

	if (at < r->now_us)
		at = r->now_us;
	if (at < r->due_us)
		r->due_us = at;
}

static inline uint64_t sl_router_unix_s(const struct sl_router *r)
{
	return r->start_unix_s + (r->now_us - r->start_us) / 1000000;
}

static inline uint32_t sl_router_seconds(const struct sl_router *r)
{
	return (uint32_t)(r->now_us / 1000000);
}

static inline bool sl_tree_is_root(const struct sl_tree *t)
{
	return sl_node_same(&t->root, &t->self);
}

static inline bool sl_tree_is_parent(const struct sl_router *r, const struct sl_route_peer *p)
{
	return !sl_tree_is_root(&r->tree) && sl_node_same(&r->tree.parent, &p->addr);
}

static inline bool sl_tree_is_child(const struct sl_router *r, const struct sl_route_peer *p)
{
	return p->has_tree && sl_node_same(&p->parent, &r->tree.self);
}

/* Our parent, or a peer that names us as its parent (6.5). */
static inline bool sl_tree_is_tree_peer(const struct sl_router *r, const struct sl_route_peer *p)
{
	return sl_tree_is_parent(r, p) || sl_tree_is_child(r, p);
}

/* router.c */
struct sl_route_peer *sl_router_peer_by_addr(
	const struct sl_router *r, const struct sl_node_addr *addr);
int sl_router_send(struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len,
	uint8_t flags);
uint64_t sl_router_random(struct sl_router *r);
int sl_stamps_init(struct sl_stamps *s, uint32_t entries) SL_MUST_CHECK;
void sl_stamps_fini(struct sl_stamps *s);
/* True (and stamps now) unless addr was stamped less than interval ago. */
bool sl_stamps_take(struct sl_stamps *s, const struct sl_router *r, const struct sl_node_addr *addr,
	uint64_t interval_us);
/* The same question without stamping. */
bool sl_stamps_free(const struct sl_stamps *s, const struct sl_router *r,
	const struct sl_node_addr *addr, uint64_t interval_us);

/* tree.c */
struct sl_tree_choice {
	struct sl_route_peer *target; /* NULL = stay as we are */
	bool mandatory;
};
void sl_tree_start(struct sl_router *r, const struct sl_node_addr *self, uint64_t sequence);
/* A new declaration: next sequence, now, coordinates recomputed. Demotes itself to root where it
 * must (2.5). */
void sl_tree_declare(struct sl_router *r, const struct sl_node_addr *parent);
/* The parent we would take (5.2, 5.3), without doing it. */
struct sl_tree_choice sl_tree_evaluate(const struct sl_router *r);
/* An announce that passed the checks of 2.3: stores it and does what follows from it (5.5). */
void sl_tree_accept(struct sl_router *r, struct sl_route_peer *p, const struct sl_tree_announce *a);

/* Takes one of SL_SENDS_A_MS. False: none is left before sends_us + 1000. */
static inline bool sl_router_may_send(struct sl_router *r)
{
	if (r->now_us - r->sends_us >= 1000) {
		r->sends_us = r->now_us;
		r->sends_left = SL_SENDS_A_MS;
	}
	if (!r->sends_left)
		return false;
	r->sends_left--;
	return true;
}
void sl_tree_message(struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len);
void sl_tree_announce_to(struct sl_router *r, struct sl_route_peer *p);
void sl_tree_peer_gone(struct sl_router *r, bool was_parent);
/* Links came or changed their MTU: does what we announce still fit all of them? */
void sl_tree_limit_changed(struct sl_router *r);
/* A peer with a path of so many entries or more cannot be our parent: our announce would not fit. */
uint32_t sl_tree_path_limit(const struct sl_router *r);
void sl_tree_first_measure(struct sl_router *r);
uint64_t sl_tree_tick(struct sl_router *r);

/* doubt.c: W7 */
/* Around a change of our coordinates: how close we are to the root is remembered. */
void sl_doubt_before(struct sl_router *r);
void sl_doubt_after(struct sl_router *r);
/* Our parent has lost this root, to which our path had so many entries. */
void sl_doubt(struct sl_router *r, const struct sl_node_addr *root, uint16_t len);
/* Until when a peer with a path is not believed; 0 = it is. */
uint64_t sl_doubtful_until(const struct sl_router *r, const struct sl_route_peer *p);
/* When somebody will be believed again, and whether that has come since it was asked. */
uint64_t sl_doubt_next(struct sl_router *r);
bool sl_doubt_over(const struct sl_router *r);

/* again.c */
/* It was sent; as a copy if `due` says so. What it says is new: no copy. */
void sl_again_sent(struct sl_again *a, uint64_t now_us);
void sl_again_new(struct sl_again *a);
/* A report of p's: what we sent until covered_us is in its numbers, that share of the latest is missing. */
void sl_again_report(
	struct sl_router *r, struct sl_route_peer *p, uint64_t covered_us, double missing);

/* announce.c */
void sl_filter_message(
	struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len);
void sl_filter_want_all(struct sl_router *r);
/* What p would be sent now. */
void sl_filter_outgoing(
	struct sl_router *r, const struct sl_route_peer *p, uint8_t bits[SL_FILTER_BYTES]);
uint64_t sl_filter_tick(struct sl_router *r);
double sl_filter_mesh_size(const struct sl_router *r);
static inline void sl_filter_changed(struct sl_router *r)
{
	r->merge_version++;
	sl_router_wake(r);
}

/* publish.c */
/* The row of p is to be p's present state: after any change of what workers see of it. Set *_dirty
 * too. */
void sl_publish_peer(struct sl_router *r, const struct sl_route_peer *p);
void sl_publish_peer_gone(struct sl_router *r, uint32_t id);
/* p's filter changed. */
void sl_publish_column(struct sl_router *r, struct sl_route_peer *p);
/* entries: as on the wire, len of them. NULL when memory is short. */
struct sl_route_path *sl_route_path_create(
	const struct sl_router *r, const uint8_t *entries, unsigned len);
void sl_route_path_retire(struct sl_router *r, struct sl_route_path *path);
int sl_publish(struct sl_router *r);
uint64_t sl_publish_due(const struct sl_router *r);
void sl_publish_unload(struct sl_router *r);
/* Publishes if something changed and the last time is long enough ago; everything else is for the
 * tick. */
void sl_router_settle(struct sl_router *r);

/* lookup.c */
int sl_lookup_init(struct sl_router *r) SL_MUST_CHECK;
void sl_lookup_fini(struct sl_router *r);
void sl_lookup_request_message(
	struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len);
void sl_lookup_response_message(
	struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len);
/*
 * Sends a built request on (routing facts, 11.3, step 9); from NULL = our own. Returns how many got
 * it; dry = would get it.
 */
uint32_t sl_lookup_fan_out(struct sl_router *r, const struct sl_route_peer *from,
	const struct sl_lookup_request *q, const uint8_t *msg, size_t len, bool dry);

/* quest.c */
bool sl_quest_is_own(const struct sl_router *r, uint64_t request_id);
/* False when the response is not ours. */
bool sl_quest_response(struct sl_router *r, const struct sl_lookup_response *a);
uint64_t sl_quest_tick(struct sl_router *r);
/* Our place in the tree is another: what was not found may be now. */
void sl_quest_forget_failures(struct sl_router *r);
void sl_quest_fini(struct sl_router *r);

/* datagram.c */
struct sl_hop sl_router_hop(struct sl_router *r, const struct sl_node_addr *dest);

#endif
