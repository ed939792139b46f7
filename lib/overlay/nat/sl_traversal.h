/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TRAVERSAL_H
#define SL_TRAVERSAL_H
/*
 * The way through a NAT to a peer: who is wanted, what we look like from outside (STUN), offer and answer, punch, and when to
 * try again. Peering facts, sections 11 to 13; docs/nat.md.
 *
 * All of it happens on one UDP port: the transport's own. Its address as STUN saw it is the same for every session, so one
 * observation serves all that need one; punch packets name their session by a hash; and the path that is punched is an
 * address of that transport like any other, which the links dial (sink.punched).
 *
 * Invariants: a session is named by 64 random bits that travel encrypted, and acted on once (replays are remembered longer than
 * they are fresh). Nobody's text makes us send to an address that a peer cannot have, nor more than 8 x 50 packets of
 * 24 bytes. Everything is bounded: peers, sessions, offers of one sender, session ids remembered. A link that is up is
 * never touched.
 *
 * Only time and bytes go in: monotonic microseconds (now_us) and, where stamps are written or compared, unix milliseconds. One thread
 * (control). Callbacks must not call back.
 *
 * Told through sl_log(), topic link: each change of a peer's state, once; the same failure again says nothing.
 */
#include "sl_nat_signal.h"
#include "sl_stun.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_traversal;

/* Names follow node.rendezvous.nostr; sl_traversal_config_default() has the reference's values. */
struct sl_traversal_config {
	uint8_t self[SL_XONLY_BYTES];
	uint8_t transport;	/* sl_addr.transport of the port that is punched */
	bool ip6;		/* it carries IPv6 too */
	bool share_local_candidates;
	uint64_t signal_ttl_ms, replay_window_ms;
	struct sl_punch_times punch;
	uint32_t max_concurrent_incoming_offers, max_concurrent_offers_per_npub, seen_sessions_max;
	uint32_t failure_streak_threshold;
	uint64_t extended_cooldown_us, handshake_timeout_us;
	uint64_t retry_base_us, retry_max_us; /* node.retry.* */
	uint32_t peers_max;
};
void sl_traversal_config_default(struct sl_traversal_config *c);

struct sl_traversal_sink {
	void *arg;
	/* A datagram from the transport's own port. 0 or -errno. */
	int (*udp)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len);
	/* A text for one node through relays. How many relays it went to, or -errno. */
	int (*signal)(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const char *text);
	/* The peer is reachable there: dial it. 0, or -errno when that cannot be. -EISCONN, -EALREADY are as good as 0. */
	int (*punched)(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr);
	/* May there be a link with this node: access lists, room for another peer? NULL = yes. */
	bool (*allowed)(void *arg, const uint8_t xonly[SL_XONLY_BYTES]);
	/* STUN answers and punch packets are waited for, or not any more: others may be dropped where they arrive. May be NULL. */
	void (*listening)(void *arg, bool on);
	/* This peer fails again and again: is its advert still true? May be NULL. */
	void (*doubted)(void *arg, const uint8_t xonly[SL_XONLY_BYTES]);
};

/* NULL and errno. */
struct sl_traversal *sl_traversal_create(const struct sl_traversal_config *config, const struct sl_traversal_sink *sink,
	uint64_t now_us) SL_MUST_CHECK;
void sl_traversal_destroy(struct sl_traversal *t);

/* --- what it is told ---------------------------------------------------------------------------- */

/* STUN servers: text as configured (copied) and the address it has now, kind NONE while it has none. -ENOSPC. */
int sl_traversal_server(struct sl_traversal *t, unsigned i, const char *text, const struct sl_addr *addr) SL_MUST_CHECK;
/* Our own addresses with the transport's port: candidates when they are shared, and how we know that there is no NAT. */
void sl_traversal_local(struct sl_traversal *t, const struct sl_addr *addrs, unsigned count);
/*
 * A peer that is to be reached this way while it has no link, or not any more. name: for the log, may be NULL. Again: nothing but
 * the name changes. 0, -ENOSPC.
 */
int sl_traversal_want(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES], const char *name, bool wanted,
	uint64_t now_us) SL_MUST_CHECK;
/* Is its link up? Said again as often as one likes. A down one of a wanted peer is the beginning of a try. */
void sl_traversal_link(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES], bool up, uint64_t now_us);
/* Around the links of all peers: who is not named between them has none. */
void sl_traversal_links_begin(struct sl_traversal *t);
void sl_traversal_links_end(struct sl_traversal *t, uint64_t now_us);
/* A newer advert of the peer has come: what failed before says nothing any more, it is tried at once. */
void sl_traversal_refreshed(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us);
/* The text of a wrapped event, and who wrote it by its seal. */
void sl_traversal_signal(struct sl_traversal *t, const uint8_t author[SL_XONLY_BYTES], const char *text, size_t len,
	uint64_t now_us, uint64_t unix_ms);
/* A STUN answer or punch packet that came to the port. */
void sl_traversal_packet(struct sl_traversal *t, const struct sl_addr *from, const uint8_t *packet, size_t len,
	uint64_t now_us, uint64_t unix_ms);
/* Runs what is due; returns when to call again at the latest. */
uint64_t sl_traversal_tick(struct sl_traversal *t, uint64_t now_us, uint64_t unix_ms);

/* --- for the operator --------------------------------------------------------------------------- */

/* How our NAT maps the port, by what two servers see. */
enum sl_nat_kind {
	SL_NAT_UNKNOWN, /* not observed */
	SL_NAT_NONE,	/* what the server sees is our own address */
	SL_NAT_SOME,	/* one server answered: there is a NAT */
	SL_NAT_CONE,	/* the same to both */
	SL_NAT_SYMMETRIC, /* another to each: two of these cannot be punched */
};
struct sl_traversal_observation {
	enum sl_nat_kind nat;
	const char *nat_name;
	struct sl_addr mapped; /* kind NONE: never seen */
	const char *server;    /* that saw it; NULL */
	uint64_t mapped_us;
	const char *error; /* of the last try, NULL when it succeeded */
	uint64_t tried_us;
};
void sl_traversal_observed(const struct sl_traversal *t, struct sl_traversal_observation *out);

struct sl_traversal_info {
	uint8_t xonly[SL_XONLY_BYTES];
	const char *name;
	const char *state; /* "idle", "waiting", "observing", "offered", "punching", "handshake", "up", "cooldown" */
	const char *role;  /* of the session under way: "offer", "answer", "" */
	bool wanted;
	uint64_t state_us, next_us; /* since when; next try, 0 = none planned */
	uint32_t attempts, failures; /* failures: in a row */
	const char *last_error; /* NULL = none */
	uint64_t last_error_us, last_punched_us; /* 0 = never */
	struct sl_addr remote; /* where it was punched last */
	bool has_skew;
	int64_t skew_ms;
};
typedef void (*sl_traversal_info_fn)(void *arg, const struct sl_traversal_info *info);
void sl_traversal_for_each(const struct sl_traversal *t, sl_traversal_info_fn fn, void *arg);

#define SL_TRAVERSAL_COUNTERS(X)                                                                                       \
	X(OFFER_TX, "offers_sent") X(OFFER_RX, "offers_received") X(ANSWER_TX, "answers_sent")                         \
	X(ANSWER_RX, "answers_received") X(REFUSED_TX, "refusals_sent") X(REFUSED_RX, "refusals_received")             \
	X(SIGNAL_TX_FAILED, "signals_not_sent") X(SIGNAL_BAD, "signals_refused") X(OFFER_REPLAY, "offers_replayed")    \
	X(OFFER_FULL, "offers_over_the_limit") X(OFFER_SENDER_FULL, "offers_over_the_senders_limit")                   \
	X(OFFER_NOT_ALLOWED, "offers_not_allowed") X(OFFER_SUPPRESSED, "offers_suppressed")                            \
	X(ANSWER_UNKNOWN, "answers_to_nothing") X(ANSWER_TIMEOUT, "answer_timeouts") X(PUNCHED, "punched")             \
	X(PUNCH_TIMEOUT, "punch_timeouts") X(NO_TARGETS, "no_targets") X(TARGET_REFUSED, "addresses_refused")          \
	X(HANDSHAKE_TIMEOUT, "handshake_timeouts") X(STUN_OK, "stun_answers") X(STUN_FAILED, "stun_failures")          \
	X(PACKET_UNKNOWN, "packets_of_no_session") X(SESSIONS_FULL, "no_room_for_a_session")                           \
	X(PEERS_FULL, "no_room_for_a_peer") X(SEEN_EVICTED, "session_ids_forgotten_early")
enum sl_traversal_counter {
#define SL_TRAVERSAL_COUNTER_ENUM(id, name) SL_TRAVERSAL_##id,
	SL_TRAVERSAL_COUNTERS(SL_TRAVERSAL_COUNTER_ENUM) SL_TRAVERSAL_COUNTER_COUNT
};
const char *sl_traversal_counter_name(enum sl_traversal_counter c);
const uint64_t *sl_traversal_counters(const struct sl_traversal *t);
/* Signals refused, by enum sl_nat_signal_error. */
const uint64_t *sl_traversal_signal_errors(const struct sl_traversal *t);

#ifdef __cplusplus
}
#endif
#endif
