/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTER_H
#define SL_ROUTER_H
/*
 * Routing, control's side: spanning tree, filters, coordinate cache, lookups, error signals. Routing facts, sections
 * 2 to 12. Takes messages, peers, measurements and time; gives messages and snapshots (sl_fib.h). No socket, no
 * clock, no EAL. One thread (control) owns it.
 *
 * Invariants: the root we announce is the smallest address of our path; what is signed is made after coordinates are
 * recomputed; both sequences start above those of any earlier life of this node (wall clock at start).
 * Time: monotonic microseconds for everything local, Unix seconds only inside declarations.
 */
#include "../overlay/sl_wire.h"
#include "sl_fib.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_router;

/* Defaults are the reference's: sl_router_config_default(). Names follow FIPS's keys (routing facts, section 13). */
struct sl_router_config {
	uint32_t max_peers;
	uint64_t announce_min_interval_us; /* node.tree.* */
	double parent_hysteresis;
	uint64_t hold_down_us, reeval_interval_us;
	uint32_t flap_threshold;
	uint64_t flap_window_us, flap_dampening_us;
	uint64_t filter_debounce_us; /* node.bloom.* */
	double max_inbound_fpr;
	uint32_t coord_size; /* node.cache.* */
	uint64_t coord_ttl_us;
	uint8_t lookup_ttl; /* node.lookup.* */
	uint64_t lookup_recent_us, lookup_forward_min_us;
	uint64_t lookup_backoff_base_us, lookup_backoff_max_us; /* own lookups that failed; 0 = none */
	uint8_t default_ttl; /* node.session.default_ttl */
	bool ecn_enabled; /* node.ecn.* */
	double ecn_loss, ecn_etx;
	/* Ours, no FIPS key: */
	uint64_t filter_refresh_us;   /* the filter again to each peer, changed or not; 0 = never (what was lost stays lost) */
	bool announce_again;	      /* what may be lost goes again early; false = plain rules */
	uint64_t publish_interval_us; /* least time between two snapshots for the workers */
	uint64_t root_doubt_us;	      /* + 1 s a level: a withdrawn root is believed only of closer peers; 0 = plain rules (W7) */
	uint64_t first_sequence;      /* of both kinds of announce; 0 = from the wall clock */
	uint64_t seed;		      /* of table hashing and request ids; 0 = random */
};
void sl_router_config_default(struct sl_router_config *c);

/*
 * Memory that a router comes to hold when it is full, bytes: fixed, of each peer and of each known destination with paths of so many
 * entries, of all peers and destinations that the configuration allows. Tables of destinations are there from the start, the rest
 * follows use. An estimate from sizes, within a tenth (tools/run perf memory --scale). Any thread.
 */
struct sl_router_capacity {
	size_t fixed, peer, destination, peers, destinations, total;
};
void sl_router_capacity(const struct sl_router_config *c, unsigned path_len, struct sl_router_capacity *out);

struct sl_router_sink {
	void *arg;
	/* One link message (type byte first) to a peer; 0 or -errno. */
	int (*send)(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags);
	/* A datagram for us: src, dest, payload as in the message. May be NULL. */
	void (*local)(void *arg, uint32_t from_peer, const uint8_t *msg, size_t len, uint8_t flags);
	/* Call fn(fn_arg, obj) once no worker can hold obj. NULL = at once. */
	void (*reclaim)(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);
	/* A lookup of ours ended: found (coordinates are cached; path_mtu 0 = unknown) or given up. May be NULL. */
	void (*lookup_done)(void *arg, const struct sl_node_addr *target, bool found, uint16_t path_mtu);
};

/* unix_s: wall clock at start, seconds. NULL and errno. identity and sink outlive it. */
struct sl_router *sl_router_create(const struct sl_router_config *config, const struct sl_identity *identity,
	const struct sl_router_sink *sink, uint64_t unix_s, uint64_t now_us) SL_MUST_CHECK;
/* No worker may read any more. */
void sl_router_destroy(struct sl_router *r);

/* Where workers find the snapshot; valid from create to destroy. */
const struct sl_fib_ref *sl_router_fib(const struct sl_router *r);

/* A link is usable. Announces to it at once. peer_id < max_peers. 0 or -ENOMEM. */
int sl_router_peer_up(struct sl_router *r, uint32_t peer_id, const uint8_t xonly[SL_XONLY_BYTES], uint16_t link_mtu,
	uint64_t now_us) SL_MUST_CHECK;
void sl_router_peer_down(struct sl_router *r, uint32_t peer_id, uint64_t now_us);
/* The link was replaced under a living peer (cross-connection, rekey by a restarted peer): announce and send the filter again. */
void sl_router_peer_renew(struct sl_router *r, uint32_t peer_id, uint64_t now_us);
void sl_router_peer_mtu(struct sl_router *r, uint32_t peer_id, uint16_t link_mtu, uint64_t now_us);

struct sl_router_metrics {
	bool measured;
	double cost; /* etx * (1 + srtt_ms / 100) */
	double loss, etx; /* of the latest interval */
	/* Everything sent until then is in the numbers of the peer's report, and so much of what was sent since the
	 * report before it is missing there (0 .. 1). 0 = not known. */
	uint64_t covered_us;
	double missing;
};
void sl_router_peer_metrics(struct sl_router *r, uint32_t peer_id, const struct sl_router_metrics *m, uint64_t now_us);
/* Local congestion since the last sample (missed, no-buffer and own ring drops rose). */
void sl_router_congestion(struct sl_router *r, bool congested, uint64_t now_us);

/* An authentic tree, filter or lookup message from a peer (type byte first). Others are ignored. */
void sl_router_message(struct sl_router *r, uint32_t peer_id, const uint8_t *msg, size_t len, uint64_t now_us);
/*
 * A datagram that control handles whole: a worker's miss, or any datagram in a node without workers. Learns its
 * coordinates, then local, TTL, next hop, forward through sink.send, or an error signal to its source.
 * msg is rewritten in place (ttl, path_mtu).
 */
void sl_router_datagram(struct sl_router *r, uint32_t from_peer, uint8_t *msg, size_t len, uint8_t flags,
	uint64_t now_us);
/* A datagram that was forwarded by a worker and showed coordinates: only learn. */
void sl_router_learn(struct sl_router *r, const uint8_t *msg, size_t len, uint64_t now_us);
/* The worker could not send it: larger than the outgoing link. mtu: that link's. */
void sl_router_too_big(struct sl_router *r, const uint8_t *msg, size_t len, uint16_t mtu, uint64_t now_us);
/* A datagram of our own making to dest (end nodes, tests). 0, -ENETUNREACH (no next hop) or the sink's error. */
int sl_router_originate(struct sl_router *r, const struct sl_node_addr *dest, const uint8_t *payload, size_t len,
	uint64_t now_us) SL_MUST_CHECK;

/*
 * Looks for a node's coordinates: asks at 0, 1, 3 and 7 s, gives up at 15 s; ends in sink.lookup_done. Relays need this
 * for themselves only (end nodes and tests do). 0; -EALREADY (under way); -EHOSTUNREACH (no peer's filter claims it);
 * -EAGAIN (failed a moment ago, lookup_backoff_base_us doubled with each failure in a row up to lookup_backoff_max_us;
 * forgotten when it is found and when our coordinates change); -ENOMEM; -EINVAL (ourselves).
 */
int sl_router_lookup(struct sl_router *r, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us) SL_MUST_CHECK;

/* Runs what is due; returns when to call again at the latest. */
uint64_t sl_router_tick(struct sl_router *r, uint64_t now_us);

/* --- for the operator --- */
struct sl_tree_info {
	struct sl_node_addr self, root, parent; /* parent = self when root */
	uint32_t parent_peer; /* SL_PEER_NONE-like UINT32_MAX when root */
	uint32_t depth;
	uint64_t sequence, timestamp_s;
	uint32_t peers, children;
	double mesh_size; /* estimate, < 0 = unknown */
	uint32_t coord_entries, coord_capacity;
};
void sl_router_tree(const struct sl_router *r, struct sl_tree_info *info);
/* Own coordinates, self first: up to max entries; returns the count. */
uint32_t sl_router_coords(const struct sl_router *r, struct sl_node_addr *coords, uint32_t max);

struct sl_router_peer_info {
	uint32_t peer_id;
	struct sl_node_addr addr;
	bool has_ancestry, is_parent, is_child;
	bool too_deep; /* no parent for us: what we announced below it would not fit one of our links */
	uint32_t depth;
	struct sl_node_addr root;
	uint64_t tree_sequence, filter_sequence_rx, filter_sequence_tx;
	uint32_t filter_bits; /* set bits of the peer's filter, 0 when none */
	double filter_fpr, filter_estimate; /* estimate < 0 = unknown */
	bool filter_merged;
	double cost;
	uint16_t mtu;
};
typedef void (*sl_router_peer_fn)(void *arg, const struct sl_router_peer_info *info);
void sl_router_for_each_peer(const struct sl_router *r, sl_router_peer_fn fn, void *arg);

struct sl_route_info {
	struct sl_node_addr dest;
	uint32_t depth;
	struct sl_node_addr root;
	uint32_t age_s, idle_s;
	struct sl_hop hop;
};
typedef void (*sl_route_fn)(void *arg, const struct sl_route_info *info);
/* Coordinate cache entries with the hop they would take now; stops after max. */
void sl_router_for_each_route(const struct sl_router *r, uint32_t max, sl_route_fn fn, void *arg);

enum sl_route_counter {
#define SL_ROUTE_COUNTERS(X)                                                                                           \
	X(TREE_RX, "tree_rx") X(TREE_TX, "tree_tx") X(TREE_MALFORMED, "tree_malformed")                                \
	X(TREE_WRONG_SENDER, "tree_wrong_sender") X(TREE_BAD_SIGNATURE, "tree_bad_signature")                          \
	X(TREE_BAD_SEMANTICS, "tree_bad_semantics") X(TREE_STALE, "tree_stale")                              \
	X(TREE_TOO_LONG, "tree_too_long") X(TREE_TOO_DEEP, "tree_too_deep") X(TREE_LIMITED, "tree_limited") X(TREE_SEND_FAILED, "tree_send_failed")      \
	X(TREE_AGAIN, "tree_again") X(FILTER_AGAIN, "filter_again")                                                    \
	X(FLAP_DAMPENED, "flap_dampened") X(PARENT_SWITCH, "parent_switch")      \
	X(SELF_ROOT, "self_root") X(LOOP_DROP, "loop_drop") X(ROOT_DOUBTED, "root_doubted")                            \
	X(FILTER_RX, "filter_rx") X(FILTER_TX, "filter_tx") X(FILTER_MALFORMED, "filter_malformed")                    \
	X(FILTER_STALE, "filter_stale") X(FILTER_TOO_FULL, "filter_too_full") X(FILTER_LEFT_OUT, "filter_left_out")    \
	X(FILTER_SEND_FAILED, "filter_send_failed")                                                                    \
	X(LOOKUP_RX, "lookup_rx") X(LOOKUP_MALFORMED, "lookup_malformed") X(LOOKUP_DUPLICATE, "lookup_duplicate")      \
	X(LOOKUP_TABLE_FULL, "lookup_table_full") X(LOOKUP_TTL, "lookup_ttl") X(LOOKUP_LIMITED, "lookup_limited")      \
	X(LOOKUP_NO_PEER, "lookup_no_peer") X(LOOKUP_FORWARDED, "lookup_forwarded") X(LOOKUP_ANSWERED, "lookup_answered") \
	X(LOOKUP_PEER_LIMITED, "lookup_peer_limited") X(LOOKUP_OWN_RETURNED, "lookup_own_returned")                    \
	X(LOOKUP_ORIGINATED, "lookup_originated") X(LOOKUP_RESOLVED, "lookup_resolved")                                \
	X(LOOKUP_FAILED, "lookup_failed") X(LOOKUP_BACKOFF, "lookup_backoff") X(RESPONSE_BAD_PROOF, "response_bad_proof")                                  \
	X(RESPONSE_FORWARDED, "response_forwarded") X(RESPONSE_REPEATED, "response_repeated")                          \
	X(RESPONSE_UNSOLICITED, "response_unsolicited")                                                                \
	X(COORDS_LEARNED, "coords_learned") X(COORDS_REFUSED, "coords_refused") X(COORDS_EVICTED, "coords_evicted")    \
	X(DATAGRAM_FORWARDED, "datagram_forwarded") X(DATAGRAM_LOCAL, "datagram_local") X(DATAGRAM_TTL, "datagram_ttl") \
	X(DATAGRAM_MALFORMED, "datagram_malformed") X(DATAGRAM_NO_COORDS, "datagram_no_coords")                        \
	X(DATAGRAM_NO_ROUTE, "datagram_no_route") X(DATAGRAM_TOO_BIG, "datagram_too_big")                              \
	X(DATAGRAM_BACK, "datagram_back")                                                                              \
	X(DATAGRAM_SEND_FAILED, "datagram_send_failed")                                                                \
	X(SIGNAL_TX, "signal_tx") X(SIGNAL_LIMITED, "signal_limited") X(SIGNAL_PEER_LIMITED, "signal_peer_limited")    \
	X(SIGNAL_NO_ROUTE, "signal_no_route")
#define SL_ROUTE_COUNTER_ENUM(id, name) SL_ROUTE_##id,
	SL_ROUTE_COUNTERS(SL_ROUTE_COUNTER_ENUM) SL_ROUTE_COUNTER_COUNT
};
const uint64_t *sl_router_counters(const struct sl_router *r);
const char *sl_route_counter_name(enum sl_route_counter c);

#ifdef __cplusplus
}
#endif
#endif
