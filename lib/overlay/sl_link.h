/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LINK_H
#define SL_LINK_H
/*
 * Links: everything between us and the nodes we are directly connected to, seen from control. Dialling and answering
 * handshakes, duplicates, crossing dials, restarts, rekey, roaming, heartbeat, death, redial, reports.
 * Link layer facts, sections 5 to 15; peering facts, sections 1 to 5.
 *
 * Invariants: state machines take time and bytes and give bytes and callbacks; no socket, no clock, no EAL. A
 * receiver index names one session. A session is given up only for one that has carried an authentic frame, or by
 * time, or by an authentic Disconnect. A stranger gets no answer but msg2 to a msg1 that authenticates.
 *
 * One thread (control) owns a struct sl_links; the sessions it installs are read by workers (sl_session.h).
 * Time is monotonic microseconds and never goes backwards. Callbacks must not call back into the same sl_links except
 * sl_links_send(), sl_links_probe(), sl_links_mtu_set() and the getters.
 *
 * Told through sl_log(), topic link, once a change of state: a link up or down and why, an identity refused, a rekey that
 * failed.
 */
#include "../crypto/sl_aead.h"
#include "../crypto/sl_identity.h"
#include "sl_session.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_links;

/* Defaults are the reference's: sl_links_config_default(). The names follow FIPS's configuration keys. */
struct sl_links_config {
	uint32_t max_peers;	       /* node.limits.max_peers, 0 = no limit but the table's */
	uint32_t max_pending_inbound;  /* node.limits.max_pending_inbound */
	uint32_t handshake_burst;      /* node.rate_limit.* */
	double handshake_rate_per_s;
	uint32_t established_burst;    /* 0 = derived */
	double established_rate_per_s; /* 0 = derived */
	uint64_t handshake_timeout_us;
	uint64_t resend_interval_us;
	double resend_backoff;
	uint32_t max_resends;
	uint64_t heartbeat_us;	       /* node.heartbeat_interval_secs */
	uint64_t dead_timeout_us;      /* node.link_dead_timeout_secs */
	uint32_t retry_max;	       /* node.retry.max_retries */
	uint64_t retry_base_us;	       /* node.retry.base_interval_secs */
	uint64_t retry_max_backoff_us; /* node.retry.max_backoff_secs */
	bool rekey_enabled;	       /* node.rekey.* */
	uint64_t rekey_after_us;
	uint64_t rekey_after_messages;
	uint8_t mmp_mode;	       /* 0 full, 1 lightweight, 2 minimal: node.mmp.mode */
	bool first_flight;	       /* for every dial, see sl_peer_config */
};
void sl_links_config_default(struct sl_links_config *c);

struct sl_link_metrics {
	bool measured; /* has an SRTT */
	double srtt_us, etx, cost; /* cost = etx * (1 + srtt_ms / 100), 1.0 before the first SRTT */
	double loss;		   /* of the latest interval */
	uint32_t jitter_us;
	double goodput_bytes_per_s;
	/* The report accounts for everything sent until covered_us (0 = not known); this share of what was sent since the
	 * one before is missing in it, overtaken frames too. */
	uint64_t covered_us;
	double missing;
};

enum sl_down_reason {
	SL_DOWN_DISCONNECT, /* the peer said so */
	SL_DOWN_DEAD,	    /* nothing authentic for the dead timeout */
	SL_DOWN_RESTART,    /* the peer came back with a new epoch */
	SL_DOWN_REMOVED,    /* by the operator or at shutdown */
};

/* How links reach the world. All called from within a sl_links_* call, on the same thread. */
struct sl_links_sink {
	void *arg;
	/* One FMP packet to an address. 0 or -errno; a failure is counted, not retried at once. The bytes are the caller's. */
	int (*transmit)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len);
	/* peer_id's current address is now `addr`: publish sl_peer_row.path for it. Before peer_up for a new peer. */
	void (*path)(void *arg, uint32_t peer_id, const struct sl_addr *addr);
	/*
	 * A link came up (or came back after RESTART), sl_peer_row.tx is published; MTU: FMP bytes of its transport.
	 * Again, while it is up: the peer has dialled anew and may have forgotten what we told it; tell it again.
	 */
	void (*peer_up)(void *arg, uint32_t peer_id, const struct sl_remote_key *key, uint16_t mtu);
	/* The link is gone; peer_id may be given to another peer after this returns. */
	void (*peer_down)(void *arg, uint32_t peer_id, enum sl_down_reason reason);
	/* An authentic link message that is not the links' own (tree, filter, lookup, datagram). msg begins with the type. */
	void (*message)(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags);
	/* New values after a ReceiverReport. */
	void (*metrics)(void *arg, uint32_t peer_id, const struct sl_link_metrics *m);
	/* May we have a link with this identity? Asked before a dial, after msg1 has opened and after msg2. NULL = yes. */
	bool (*allowed)(void *arg, const uint8_t xonly[SL_XONLY_BYTES]);
	/*
	 * FMP bytes that fit in a packet to this address, where a link can have less than its transport; asked when a link
	 * comes up. Below a handshake's size, zero included, the link is refused, named in the log. NULL = the transport's.
	 */
	uint16_t (*link_mtu)(void *arg, const struct sl_addr *addr);
};

/*
 * identity, table and what sink.arg points to outlive the links. epoch is drawn here, once. NULL and errno.
 * Inbound handshakes hold rows and sessions of the table before they are peers: give it about 128 rows more than
 * max_peers and four sessions a row; when it is full the oldest of them makes room.
 */
struct sl_links *sl_links_create(const struct sl_links_config *config, const struct sl_identity *identity,
	struct sl_session_table *table, const struct sl_aead_backend *aead, const struct sl_links_sink *sink,
	uint64_t now_us) SL_MUST_CHECK;
void sl_links_destroy(struct sl_links *links);
/*
 * Memory that links come to hold, bytes: fixed, of each peer and of each handshake of ours under way, of each slot of the session
 * table; in all, with as many dials as peers. An estimate from sizes. Any thread.
 */
struct sl_links_capacity {
	size_t fixed, peer, dial, session, total;
};
void sl_links_capacity(uint32_t max_peers, uint32_t slots, struct sl_links_capacity *out);

struct sl_transport_config {
	uint8_t id; /* sl_addr.transport */
	uint8_t kind; /* SL_ADDR_UDP4 (any UDP) or SL_ADDR_ETH */
	uint16_t mtu; /* largest FMP packet */
	bool accept_connections;
};
int sl_links_transport_add(struct sl_links *links, const struct sl_transport_config *t) SL_MUST_CHECK;
/* An address of our own: a handshake packet that claims to come from it is dropped. 0 or -ENOSPC. */
int sl_links_own_addr_add(struct sl_links *links, const struct sl_addr *addr) SL_MUST_CHECK;

#define SL_PEER_ADDRS_MAX 8
#define SL_ALIAS_SIZE 64
struct sl_peer_config {
	uint8_t xonly[SL_XONLY_BYTES];
	char alias[SL_ALIAS_SIZE]; /* may be empty */
	struct sl_addr addrs[SL_PEER_ADDRS_MAX]; /* in order of priority; at most 4 are dialled at once */
	uint8_t addr_count;
	bool auto_connect;
	bool auto_reconnect;
	/*
	 * First flight: msg1 is repeated early, the same bytes, and so is the first frame, so one lost packet does
	 * not cost a second. At most four copies a dial, paced, under a credit that halves with each dial that fails
	 * and is whole again when a link comes up. Off: the reference's times.
	 */
	bool first_flight;
};
/* Adds or replaces a configured peer; it is dialled from the next tick. 0, -EINVAL (bad key), -EEXIST (ourselves). */
int sl_links_peer_configure(struct sl_links *links, const struct sl_peer_config *p, uint64_t now_us) SL_MUST_CHECK;
/*
 * Dials an address once without configuring it (a heard beacon, a traversal result). 0, or -EISCONN (there is a link),
 * -EALREADY (this address is being dialled), -EBUSY (4 addresses are), -EINVAL, -EEXIST (ourselves), -EACCES,
 * -ENETUNREACH (no such transport), -ENOSPC, -ENOMEM, -ESHUTDOWN.
 */
int sl_links_dial(struct sl_links *links, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr,
	uint64_t now_us) SL_MUST_CHECK;
/* Ends a link or a dial; the peer is not dialled again until it is configured anew. -ENOENT when it is unknown. */
int sl_links_disconnect(struct sl_links *links, const uint8_t xonly[SL_XONLY_BYTES], enum sl_disconnect_reason reason,
	uint64_t now_us) SL_MUST_CHECK;

/* --- input ----------------------------------------------------------------------------------------------------- */

/* A handshake packet as classified by the receiver (msg1 or msg2). */
void sl_links_handshake(struct sl_links *links, const struct sl_addr *from, const uint8_t *packet, size_t len,
	uint64_t now_us);
/*
 * An established frame that a worker has opened, checked and committed: flags of the outer header, then the
 * plaintext after the timestamp (type byte first). The session's counters are already up to date.
 */
void sl_links_message(struct sl_links *links, uint32_t rx_index, uint8_t flags, const uint8_t *msg, size_t len,
	uint64_t now_us);
/* The owner worker's reports for SL_NOTIFY_*; flags of the frame. */
void sl_links_first_frame(struct sl_links *links, uint32_t rx_index, uint8_t flags, uint64_t now_us);
void sl_links_roamed(struct sl_links *links, uint32_t rx_index, const struct sl_addr *from, uint64_t now_us);
/*
 * Any FMP packet, for nodes without workers (simulator, end node, oracle in tests): classify, look up, replay check,
 * open, commit, count, dispatch. packet is overwritten.
 */
void sl_links_packet(struct sl_links *links, const struct sl_addr *from, uint8_t *packet, size_t len, uint64_t now_us);

/* Runs what is due. Returns when to call again at the latest (monotonic us). */
uint64_t sl_links_tick(struct sl_links *links, uint64_t now_us);

/* --- output ---------------------------------------------------------------------------------------------------- */

/*
 * Seals one link message (type byte first) to a peer and transmits it. flags: CE only; K and SP are set here.
 * 0, -ENOTCONN (no link), -EMSGSIZE (over the link's MTU), -ENOBUFS (key used up and as many wait for the next) or the
 * sink's error.
 */
int sl_links_send(struct sl_links *links, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags,
	uint64_t now_us) SL_MUST_CHECK;
/*
 * The same for a message that may be too large for the path, to find out whether it is (sl_plpmtu.h): the transport's MTU
 * alone counts, it never waits (-EOVERFLOW: key used up), and when it is lost that is no loss of the link's.
 */
int sl_links_probe(struct sl_links *links, uint32_t peer_id, const uint8_t *msg, size_t len, uint64_t now_us) SL_MUST_CHECK;
/* From now on the link's MTU is so much, until it comes up anew: what we send ourselves obeys it. May be called from callbacks. */
void sl_links_mtu_set(struct sl_links *links, uint32_t peer_id, uint16_t mtu);
/*
 * The way to a peer is gone (its port is down): if one of its configured addresses can be reached, on the transport instance
 * that the link is on, the link moves there, with a heartbeat a second until something is heard; the other side takes its address
 * from what it authenticates (facts, 13). Nothing heard within a heartbeat's interval and SL_REROUTE_US, and the link is dead. 0,
 * -ENOTCONN, -ENETUNREACH (no such address: nothing has changed).
 */
#define SL_REROUTE_US 5000000u
int sl_links_reroute(struct sl_links *links, uint32_t peer_id, bool (*reaches)(void *arg, const struct sl_addr *addr),
	void *arg, uint64_t now_us) SL_MUST_CHECK;
/* The log line about that: a notice or, where the path cannot even do that, a warning. */
void sl_links_mtu_tell(const struct sl_links *links, uint32_t peer_id, uint16_t mtu, uint16_t before, const char *why, bool warn);
/*
 * The same to a node by its key, also while it has no usable key yet: a dial or an inbound handshake is under way, or the
 * current key is used up and the rekey not done. The message then waits, SL_WAIT_FRAMES a peer at most, and goes out in
 * order under the new key, before anything that is sent later by either function; when nothing waits, it goes at once. When
 * the handshake fails or the link ends what waits is dropped (waited_dropped).
 * 0 (sent or waiting), -ENOTCONN (no link and none on the way), -ENOBUFS (as many wait), -EMSGSIZE, -ENOMEM, the sink's error.
 */
#define SL_WAIT_FRAMES 64u
int sl_links_send_key(struct sl_links *links, const uint8_t xonly[SL_XONLY_BYTES], const uint8_t *msg, size_t len,
	uint8_t flags, uint64_t now_us) SL_MUST_CHECK;
/* Disconnect to every peer, then everything down. */
void sl_links_shutdown(struct sl_links *links, enum sl_disconnect_reason reason, uint64_t now_us);
/*
 * The same in portions, for queues that do not take one to every peer at once: ends at most `most` links a call, nothing new
 * begins from the first call on. False when all is down.
 */
bool sl_links_shutdown_some(struct sl_links *links, enum sl_disconnect_reason reason, unsigned most, uint64_t now_us);

/* --- for the operator ------------------------------------------------------------------------------------------- */

struct sl_link_info {
	uint32_t peer_id; /* SL_PEER_NONE: configured but down */
	uint8_t xonly[SL_XONLY_BYTES];
	char alias[SL_ALIAS_SIZE];
	const char *state; /* "up", "dialling", "waiting", "down" */
	bool configured, outbound;
	struct sl_addr addr; /* kind NONE when there is none */
	uint64_t up_since_us, last_rx_us, next_dial_us;
	uint32_t dial_failures;
	uint32_t rx_index, tx_index;
	uint8_t k;
	uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes, replays, open_failures;
	uint32_t rekeys;
	struct sl_link_metrics metrics;
	const char *last_error; /* static text, NULL when none */
};
typedef void (*sl_link_info_fn)(void *arg, const struct sl_link_info *info);
void sl_links_for_each(const struct sl_links *links, sl_link_info_fn fn, void *arg);

/* Named counters of this library: names and values, in one order for ever. */
enum sl_link_counter {
#define SL_LINK_COUNTERS(X)                                                                                            \
	X(MSG1_RX, "msg1_rx") X(MSG1_TX, "msg1_tx") X(MSG2_RX, "msg2_rx") X(MSG2_TX, "msg2_tx")                        \
	X(MSG1_RESENT, "msg1_resent") X(MSG2_RESENT, "msg2_resent")                                                    \
	X(MSG1_RATE_LIMITED, "msg1_rate_limited") X(MSG1_AUTH, "msg1_auth_failed") X(MSG1_REFUSED, "msg1_refused")     \
	X(WAITED, "waited") X(WAITED_DROPPED, "waited_dropped") X(MTU_REFUSED, "link_mtu_refused")                     \
	X(MSG1_EARLY, "msg1_early") X(FIRST_FRAME_EARLY, "first_frame_early")                                          \
	X(MSG1_PREFIX, "msg1_prefix_limited") X(MSG1_RETURNED, "msg1_returned") X(MSG1_HOME, "msg1_from_home")         \
	X(MSG1_AGAIN, "msg1_refused_again")                                                                            \
	X(MSG1_DUPLICATE, "msg1_duplicate") X(MSG2_AUTH, "msg2_auth_failed") X(MSG2_UNKNOWN, "msg2_unknown_index")     \
	X(MAX_PEERS, "max_peers_reached") X(HANDSHAKE_TIMEOUT, "handshake_timeout") X(LINK_UP, "link_up")              \
	X(LINK_DEAD, "link_dead") X(DISCONNECT_RX, "disconnect_rx") X(DISCONNECT_TX, "disconnect_tx")                  \
	X(PEER_RESTART, "peer_restart") X(CROSS_CONNECT, "cross_connection") X(REKEY, "rekey") X(ROAM, "roamed")       \
	X(REROUTE, "rerouted")                                                                                         \
	X(MSG_MALFORMED, "message_malformed") X(MSG_UNKNOWN, "message_unknown_type") X(TX_FAILED, "tx_failed")         \
	X(RX_UNKNOWN_INDEX, "rx_unknown_index") X(RX_REPLAY, "rx_replay") X(RX_AUTH, "rx_auth_failed")                 \
	X(RX_BAD_PACKET, "rx_bad_packet") X(RX_SHORT_INNER, "rx_short_inner")                                          \
	X(HANDSHAKE_MALFORMED, "handshake_malformed") X(HANDSHAKE_SOURCE, "handshake_bad_source")                      \
	X(MSG1_OWN_KEY, "msg1_own_key") X(MSG1_WRONG_IDENTITY, "msg1_wrong_identity")                                  \
	X(MSG1_YOUNG, "msg1_young_link") X(MSG1_REKEY_WON, "msg1_rekey_won") X(NOT_ALLOWED, "not_allowed")             \
	X(NO_INDEX, "no_index_free") X(NO_MEMORY, "no_memory") X(PENDING_EVICTED, "pending_evicted")                   \
	X(PENDING_EXPIRED, "pending_expired") X(REKEY_TIMEOUT, "rekey_timeout") X(REKEY_RESCUE, "rekey_rescue")        \
	X(RX_NO_LINK, "rx_no_link") X(DISCONNECT_STALE, "disconnect_stale") X(REPORT_STALE, "report_stale")            \
	X(HEARTBEAT_TX, "heartbeat_tx") X(REPORT_RX, "report_rx") X(REPORT_TX, "report_tx")    \
	X(MSG2_RATE_LIMITED, "msg2_rate_limited") X(MSG1_CROWDED, "msg1_crowded") X(SEAL_FAILED, "seal_failed")
#define SL_LINK_COUNTER_ENUM(id, name) SL_LINK_##id,
	SL_LINK_COUNTERS(SL_LINK_COUNTER_ENUM) SL_LINK_COUNTER_COUNT
};
const uint64_t *sl_links_counters(const struct sl_links *links); /* SL_LINK_COUNTER_COUNT values */
const char *sl_link_counter_name(enum sl_link_counter c);

#ifdef __cplusplus
}
#endif
#endif
