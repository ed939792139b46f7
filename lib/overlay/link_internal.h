/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LINK_INTERNAL_H
#define SL_LINK_INTERNAL_H
/*
 * What the files of the link state machines share; nobody else includes it. Beside it: link_limits.h, the constants;
 * link_tables.h, look-ups and pools; link_admission.h, budgets of msg1.
 *
 *	link.c            create, destroy, tick, what the operator sees
 *	link_tables.c     look-ups (by key, by address), pools of records; due.c: the order of due times
 *	waiting.c         messages of ours that wait for a key
 *	link_frame.c      frames: sealing, opening, handing messages out
 *	peer.c            peer records: made, configured, up, down, given back
 *	peer_dial.c       configured peers: which addresses when, back-off
 *	handshake.c       handshake packets that come in
 *	admission.c       msg1: whose budget it is, before any curve operation
 *	handshake_dial.c  handshakes of our own: msg1, its repetitions, its end
 *	rekey.c           which session is current: candidates, cut-over, draining, rekey triggers
 *	liveness.c        what an established link does every second: heartbeat, death, reports
 *	link_log.c        what the operator is told of all this
 *
 * A peer record exists while there is something to remember: configuration, a link, a dial, or a
 * candidate session of an inbound handshake. Every entry point ends with sl_peer_settle() for each
 * peer it touched; that alone files the next due time or frees the record.
 *
 * Sessions of one peer:
 *	current    the one we send on; the peer is up exactly while there is one
 *	previous   was current before; receives until the drain ends
 *	candidates authentic handshakes whose session has carried nothing yet. The first authentic
 *	           frame makes one current (sl_peer_confirm). Nothing that merely answers a msg1 ever
 *	           displaces a session that works: msg1 proves no freshness (link layer facts, 7.5,
 *	           9.5).
 */
#include "due.h"
#include "link_admission.h"
#include "link_limits.h"
#include "link_tables.h"
#include "sl_bucket.h"
#include "sl_link.h"
#include "sl_log.h"

/* One Noise session of a peer and what must be remembered with it. Empty: s NULL. */
struct slot {
	struct sl_session *s;
	uint64_t since_us; /* when it got its present role */
	uint64_t created_us;
	struct sl_addr addr; /* where its handshake came from */
	uint8_t epoch[SL_EPOCH_BYTES];
	bool confirmed; /* has received an authentic frame */
	bool rival; /* was left on second thoughts: its next frame makes it current again */
	bool deadline;	     /* a candidate of ours: becomes current by time too */
	uint8_t nudges;	     /* heartbeats sent on it as a candidate */
	uint64_t expires_us; /* a candidate of theirs: given up then; later when its msg1 comes again */
	/* As responder: what to answer when the same msg1 comes again. */
	bool has_msg2;
	uint8_t repeats; /* of msg2, see SL_REPEATS_FREE */
	uint64_t repeated_us;
	uint8_t eph[SL_COMPRESSED_BYTES];
	uint8_t msg2[SL_MSG2_PACKET_BYTES];
	struct sl_mmp_snapshot reports;
};

/* A handshake that we began: a dial, or a rekey of the current link. */
struct attempt {
	struct attempt *next; /* of the same peer */
	struct peer *peer;
	struct addr_ref where;
	uint32_t rx_index; /* reserved for it */
	bool rekey, sent_once;
	uint8_t resends, early; /* copies of msg1: by the reference's times, before them */
	uint64_t first_sent_us, next_early_us; /* next_early_us: UINT64_MAX = no more */
	uint32_t early_gap_us;
	uint64_t started_us, next_send_us, send_retry_us;
	struct sl_bucket answers; /* msg2 that may be looked at: each costs two curve operations */
	struct sl_noise_initiator noise;
	uint8_t msg1[SL_MSG1_PACKET_BYTES];
};

struct peer_totals { /* of sessions that are gone, since the link came up */
	uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes, replays, open_failures;
};

struct peer {
	struct map_node by_addr; /* first member; in links->peers, by node_addr */
	struct peer *prev_all, *next_all;
	struct peer *prev_pending,
		*next_pending; /* inbound handshakes without a link, oldest first */
	bool is_pending;

	struct sl_remote_key key;
	uint32_t id;	/* row of the peer table; SL_PEER_NONE while there is no session */
	uint16_t owner; /* worker that all its sessions belong to */
	bool up, outbound, configured, auto_connect, auto_reconnect, first_flight;
	uint8_t early_limit, early_credit; /* copies of msg1: a dial's, what is left of them */
	uint8_t early_frames;		   /* left */
	uint32_t flight_us; /* msg1 to msg2, the last time; 0 = not known */
	uint64_t early_frame_us; /* when the first frame goes out again, 0 = not */
	char alias[SL_ALIAS_SIZE];
	struct sl_addr addrs[SL_PEER_ADDRS_MAX];
	uint8_t addr_count, addr_next; /* addr_next: where the next round of dials begins */

	struct slot current, previous, candidates[SL_CANDIDATES];
	struct attempt *attempts;
	uint8_t dial_count;
	struct addr_ref where; /* current address while up */

	/* Times, monotonic us; 0 = not set. */
	struct sl_due_node due; /* in links->due */
	uint64_t beat_us, heartbeat_us, sender_report_us, receiver_report_us;
	uint64_t up_since_us, rekey_at_us, damped_until_us, doubt_us;
	uint64_t rerouted_us; /* sent elsewhere since, and nothing heard yet; 0 = no */
	uint64_t lost_us; /* when a link of this process life died of silence or was ended by us, maybe
			     unheard: the peer may still hold it */
	uint64_t last_report_us; /* when a report came in */

	/* Redial. From dial_us on the peer waits in links->dial_queue[retrying]. */
	uint64_t dial_us;
	struct peer *prev_dial, *next_dial;
	int8_t dial_queued; /* which queue, -1 = none */
	bool retrying; /* a retry entry exists: a further failure counts on */
	uint32_t retry_count, dial_failures;
	const char *last_error;

	struct waiting { /* messages of ours, oldest first */
		struct wait_frame *first, *last;
		uint32_t count;
	} waiting;
	uint16_t link_mtu; /* while up */
	struct { /* frames that may be lost: see sl_mmp_metrics.excused */
		uint64_t before; /* so many that lie below any counter that will be reported */
		uint64_t counter[SL_EXCUSED_MAX]; /* of the current session, rising */
		uint8_t count;
	} excused;
	struct peer_totals gone;
	uint32_t rekeys;
	bool rekey_failed; /* and said so */
	struct sl_mmp_metrics metrics;
	struct sl_bucket msg1_bucket;
};

struct transport {
	bool known, accept;
	uint8_t kind;
	uint16_t mtu;
};

struct sl_links {
	struct sl_links_config config;
	const struct sl_identity *identity;
	struct sl_session_table *table;
	const struct sl_session_view *view;
	const struct sl_aead_backend *aead;
	struct sl_aead_ctx *aead_ctx;
	struct sl_links_sink sink;
	uint8_t epoch[SL_EPOCH_BYTES];
	uint64_t hash_key;
	bool closed; /* shut down: nothing is dialled or answered any more */
	uint64_t now_us;

	struct transport transports[SL_TRANSPORTS_MAX];
	struct sl_addr own[SL_OWN_ADDRS_MAX];
	unsigned own_count;

	struct map peers; /* node_addr -> peer */
	struct map addrs; /* address -> addr_ref */
	struct peer *all; /* every record */
	struct peer *pending_first, *pending_last;
	uint32_t peer_count, pending_count, up_count;

	struct peer **peer_of_id; /* row -> peer */
	uint32_t *free_ids;	  /* ring of free rows: the longest unused one is given out first */
	uint32_t free_head, free_count;
	struct attempt **attempt_of_slot; /* table slot of the reserved index -> attempt */

	struct sl_due due; /* of peers */

	struct pool peer_pool, attempt_pool;
	struct sl_bucket established, retries, early;
	double established_burst, established_rate_per_s; /* as configured or derived; see sl_established_size() */
	struct admission admission;
	struct answered { /* direct mapped: which msg1 has been answered on which index of ours */
		uint64_t hash;
		uint32_t rx_index;
	} * answered;
	struct refused { /* lately told to the operator; the oldest gives way */
		uint64_t hash, at_us;
	} refused[SL_REFUSED_ENTRIES];
	unsigned refused_next;
	uint32_t next_owner;
	struct dial_queue {
		struct peer *first, *last;
	} dial_queue[2]; /* peers whose time to be dialled has come: first dials, retries */
	int work_us; /* left in this turn, see SL_TURN_*; anything outside a turn is not counted */

	uint64_t counters[SL_LINK_COUNTER_COUNT];
	uint8_t *frame; /* one packet being sealed */
};

static inline void
count(struct sl_links *l, enum sl_link_counter c)
{
	l->counters[c]++;
}

/* --- peer.c --- */
struct peer *sl_peer_find(const struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES]);
/* A new record; key without DH. NULL and errno. */
struct peer *sl_peer_create(
	struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us);
void sl_peer_need_dh(struct sl_links *l, struct peer *p); /* DH with its static key, once */
int sl_peer_row_acquire(struct sl_links *l, struct peer *p);
struct slot *sl_peer_slot_of(struct peer *p, const struct sl_session *s);
/* current becomes visible to the workers and the world: from a link that was down, or replacing
 * another. */
void sl_peer_publish(struct sl_links *l, struct peer *p, bool announce);
void sl_peer_down(struct sl_links *l, struct peer *p, enum sl_down_reason reason, uint64_t now_us);
void sl_peer_address_set(struct sl_links *l, struct peer *p, const struct sl_addr *addr);
void sl_peer_settle(struct sl_links *l, struct peer *p);
void sl_peer_pending_update(struct sl_links *l, struct peer *p);
/* The oldest handshake that has come to nothing yet gives way to p's. False when there is none but p's. */
bool sl_pending_evict(struct sl_links *l, const struct peer *p);
uint16_t sl_peer_mtu_at(const struct sl_links *l, const struct sl_addr *addr);
bool sl_peer_allowed(const struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES]);
uint64_t sl_peer_last_rx_us(const struct peer *p);
void sl_slot_retire(struct sl_links *l, struct peer *p, struct slot *slot);

/* --- link_log.c: one line a change of state; repetitions of the same say nothing --- */
void sl_link_log_up(const struct peer *p, bool again);
void sl_link_log_down(const struct peer *p, enum sl_down_reason reason);
void sl_link_log_rerouted(const struct peer *p, const struct sl_addr *to);
/* A handshake of this identity came to nothing by our choice. Once in ten minutes for each of the last few. */
void sl_link_log_refused(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], const char *why);
void sl_link_log_rekey_failed(struct peer *p, const char *why);

/* --- peer_dial.c --- */
/* Puts the peer in or out of the queue of dials as dial_us and the time say. */
void sl_dial_queue_update(struct sl_links *l, struct peer *p);
/* Dials from the queues within this turn's budget. When the next can be, UINT64_MAX = none waits. */
uint64_t sl_dial_queue_run(struct sl_links *l, uint64_t now_us);
void sl_peer_dial_round(struct sl_links *l, struct peer *p, uint64_t now_us);
void sl_peer_dial_failed(struct sl_links *l, struct peer *p, const char *why, uint64_t now_us);
void sl_peer_redial_after_loss(struct sl_links *l, struct peer *p, uint64_t now_us);
void sl_peer_dial_done(struct peer *p); /* a link is up: no retry is open any more */

/* --- handshake_dial.c --- */
int sl_attempt_start(struct sl_links *l, struct peer *p, const struct sl_addr *addr, bool rekey,
	uint64_t now_us);
void sl_attempt_end(struct sl_links *l, struct attempt *a); /* index released, secrets wiped */
void sl_attempts_end(struct sl_links *l, struct peer *p, bool rekeys_too);
struct attempt *sl_attempt_find(const struct sl_links *l, uint32_t rx_index);
struct attempt *sl_attempt_rekey(const struct peer *p);
void sl_attempts_run(struct sl_links *l, struct peer *p, uint64_t now_us);
uint64_t sl_attempts_due(const struct sl_links *l, const struct peer *p);
bool sl_addr_answerable(const struct sl_links *l, const struct sl_addr *a);

static inline bool
first_flight(const struct sl_links *l, const struct peer *p)
{
	return l->config.first_flight || p->first_flight;
}

/* --- rekey.c --- */
/* A session for a finished handshake, in an empty slot. 0 or -errno; the index is used up only on
 * success. */
int sl_slot_install(struct sl_links *l, struct peer *p, struct slot *slot, uint32_t rx_index,
	uint32_t tx_index, bool initiator, const struct sl_noise_keys *keys,
	const uint8_t epoch[SL_EPOCH_BYTES], const struct sl_addr *addr, uint64_t now_us);
/* An empty candidate slot; the oldest answered one makes room. Never NULL. */
struct slot *sl_candidate_slot(struct sl_links *l, struct peer *p);
void sl_candidates_drop(struct sl_links *l, struct peer *p);
/* Has it a candidate of ours, which becomes current by time? */
bool sl_handing_over(const struct peer *p);
/* The newest candidate that the peer began, of this epoch; NULL when there is none. */
struct slot *sl_candidate_theirs(struct peer *p, const uint8_t epoch[SL_EPOCH_BYTES]);
/* An authentic frame came on slot's session. False when that ended the session (no room for another
 * peer). */
bool sl_peer_confirm(
	struct sl_links *l, struct peer *p, struct slot *slot, uint8_t flags, uint64_t now_us);
/* Makes a candidate current. k: 0 or SL_FLAG_K. False: see sl_peer_confirm. */
bool sl_peer_promote(
	struct sl_links *l, struct peer *p, struct slot *slot, uint8_t k, uint64_t now_us);
void sl_sessions_run(struct sl_links *l, struct peer *p, uint64_t now_us);
uint64_t sl_sessions_due(const struct sl_links *l, const struct peer *p);
void sl_rekey_plan(struct sl_links *l, struct peer *p, uint64_t now_us);
void sl_rekey_check(struct sl_links *l, struct peer *p, uint64_t now_us);
uint64_t sl_rekey_min_age_us(const struct sl_links *l);
/* A link so young and so alive that a msg1 of its peer is a dial that crossed ours or a rekey too early. */
bool sl_peer_young(const struct sl_links *l, const struct peer *p, uint64_t now_us);
uint64_t sl_rekey_damping_us(const struct sl_links *l); /* after an answer to theirs, none of ours (9.1) */
static inline uint8_t
slot_k(const struct slot *slot)
{
	return __atomic_load_n(&slot->s->tx_flags, __ATOMIC_RELAXED) & SL_FLAG_K;
}
void sl_slot_k_set(struct slot *slot, uint8_t k);

/* --- liveness.c --- */
void sl_liveness_begin(
	struct sl_links *l, struct peer *p, uint64_t now_us); /* at up and at each cut-over */
void sl_liveness_run(struct sl_links *l, struct peer *p, uint64_t now_us);
void sl_spin_update(struct peer *p);
void sl_report_received(struct sl_links *l, struct peer *p, const struct slot *on,
	const uint8_t *msg, size_t len, uint64_t now_us);
/* The frame of the current session with this counter may be lost. */
void sl_excuse(struct peer *p, uint64_t counter);
/* Another session is current. */
void sl_excused_cutover(struct peer *p);
void sl_metrics_fill(struct sl_link_metrics *out, const struct sl_mmp_metrics *m);

/* --- waiting.c --- */
void sl_waiting_flush(struct sl_links *l, struct peer *p, uint64_t now_us); /* a new session is current */
void sl_waiting_drop(struct sl_links *l, struct peer *p);

/* --- link_frame.c --- */
int sl_session_send(struct sl_links *l, struct sl_session *s, const struct sl_addr *to,
	const uint8_t *msg, size_t len, uint8_t flags, uint64_t now_us);
void sl_heartbeat_send(struct sl_links *l, struct peer *p, struct slot *slot, uint64_t now_us);
void sl_disconnect_send(
	struct sl_links *l, struct peer *p, enum sl_disconnect_reason reason, uint64_t now_us);
void sl_frame_dispatch(struct sl_links *l, struct peer *p, struct slot *slot, uint8_t flags,
	const uint8_t *msg, size_t len, uint64_t now_us);
int sl_links_transmit(
	struct sl_links *l, const struct sl_addr *to, const uint8_t *packet, size_t len);

#endif
