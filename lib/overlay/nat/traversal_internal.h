/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TRAVERSAL_INTERNAL_H
#define SL_TRAVERSAL_INTERNAL_H
/*
 * What the files of the traversal share; nobody else includes it.
 *
 *	traversal.c          create, destroy, peers and their schedule, tick, what the operator sees
 *	traversal_session.c  one offer or answer from observation to punch
 *	traversal_observe.c  what we look like from outside: shared by all sessions
 *
 * A peer record exists while it is wanted or has a session, and for a while after (the oldest idle one gives way). A peer has at
 * most one session of its own making; answers to its offers are sessions too.
 */
#include "../sl_log.h"
#include "sl_traversal.h"

#define SL_OWN_SESSIONS 64u   /* tries of ours at a time */
#define SL_TRANSIENT_PEERS 64u /* records of peers that we do not want, besides those with sessions */
#define SL_OBSERVE_FRESH_US 3000000u
#define SL_OBSERVE_KEEP_US 15000000u  /* while an answer is waited for: the NAT must not forget the port */
#define SL_OBSERVE_CHECK_US 600000000u /* the second server is asked again */
#define SL_TRAVERSAL_ERROR_SIZE 128
#define SL_TRAVERSAL_NAME_SIZE 80
#define SL_TRAVERSAL_LOCAL_MAX 16u
#define SL_SERVER_TEXT_SIZE 128
#define SL_TRAVERSAL_BUCKETS 1024u /* keys are points of a curve: any of their bytes spread well, and inventing keys costs a point each */

enum peer_state {
	PEER_IDLE,
	PEER_WAITING,
	PEER_OBSERVING,
	PEER_OFFERED,
	PEER_PUNCHING,
	PEER_HANDSHAKE,
	PEER_UP,
	PEER_COOLDOWN,
};

struct trav_peer {
	bool wanted, up, named;
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_node_addr addr;
	char name[SL_TRAVERSAL_NAME_SIZE];
	uint8_t state; /* enum peer_state */
	uint64_t state_us, next_us, handshake_until_us;
	uint32_t attempts, failures, streak;
	char error[SL_TRAVERSAL_ERROR_SIZE], logged_error[SL_TRAVERSAL_ERROR_SIZE];
	uint64_t error_us, punched_us, touched_us;
	struct sl_addr remote;
	bool has_skew;
	int64_t skew_ms;
	unsigned sessions; /* of both kinds */
	struct trav_peer *chain; /* the next with the same hash */
};

enum session_phase { SESSION_OBSERVE, SESSION_OFFERED, SESSION_PUNCH, SESSION_LINGER };

struct trav_session {
	bool used, own;
	uint8_t phase; /* enum session_phase */
	struct trav_peer *peer;
	struct sl_nat_signal offer, answer;
	uint64_t began_us, deadline_us; /* deadline: of OFFERED */
	struct sl_punch punch;
};

struct seen {
	uint8_t hash[16];
	uint64_t until_us;
};

struct observer {
	struct sl_stun_query query, check;
	bool asking, checking;
	struct sl_addr mapped, checked;
	unsigned server; /* that saw mapped */
	uint64_t mapped_us, tried_us, checked_us;
	const char *error;
	uint8_t nat, logged_nat; /* enum sl_nat_kind */
	struct sl_addr logged;
};

struct sl_traversal {
	struct sl_traversal_config config;
	struct sl_traversal_sink sink;
	struct sl_node_addr self;
	struct trav_peer **peers; /* peers_max */
	uint32_t peer_count, wanted_count;
	struct trav_peer *bucket[SL_TRAVERSAL_BUCKETS]; /* the same by key */
	struct trav_session *sessions;
	uint32_t session_count;
	struct seen *seen; /* ring, oldest first */
	uint32_t seen_head, seen_count;
	char server_text[SL_STUN_SERVERS_MAX][SL_SERVER_TEXT_SIZE];
	struct sl_addr servers[SL_STUN_SERVERS_MAX];
	unsigned server_count;
	struct sl_addr local[SL_TRAVERSAL_LOCAL_MAX];
	unsigned local_count;
	struct observer observer;
	bool listening;
	uint64_t now_us, unix_ms; /* of the call under way */
	uint64_t counters[SL_TRAVERSAL_COUNTER_COUNT];
	uint64_t signal_errors[SL_NAT_SIGNAL_ERROR_COUNT];
};

static inline void
trav_count(struct sl_traversal *t, enum sl_traversal_counter c)
{
	t->counters[c]++;
}

/* --- traversal.c --- */
struct trav_peer *sl_trav_peer_find(const struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES]);
/* Found or made; NULL when there is no room. */
struct trav_peer *sl_trav_peer_get(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES]);
void sl_trav_peer_state(struct sl_traversal *t, struct trav_peer *p, enum peer_state state);
/* A try came to nothing. own: of our making, so it counts and the next one is planned. */
void sl_trav_peer_failed(struct sl_traversal *t, struct trav_peer *p, bool own, const char *error);
/* The way is open: dialled, and the handshake awaited. */
void sl_trav_peer_punched(struct sl_traversal *t, struct trav_peer *p, const struct sl_addr *remote);
int sl_trav_udp(void *traversal, const struct sl_addr *to, const uint8_t *packet, size_t len); /* sl_stun_send_fn */
const char *sl_trav_nat_name(enum sl_nat_kind kind);

/* --- traversal_session.c --- */
/* A try of ours. False: no room. */
bool sl_trav_session_start(struct sl_traversal *t, struct trav_peer *p);
/* What waited for the observation goes on with it. */
void sl_trav_sessions_observed(struct sl_traversal *t);
bool sl_trav_sessions_packet(struct sl_traversal *t, const struct sl_addr *from, const uint8_t *packet, size_t len);
uint64_t sl_trav_sessions_tick(struct sl_traversal *t);
void sl_trav_session_end(struct sl_traversal *t, struct trav_session *s);
bool sl_trav_sessions_waiting(const struct sl_traversal *t, enum session_phase phase);

/* --- traversal_observe.c --- */
/* Makes sure that an observation that is fresh enough comes; false: it is there already. */
bool sl_trav_observe(struct sl_traversal *t);
bool sl_trav_observe_packet(struct sl_traversal *t, const struct sl_addr *from, const uint8_t *packet, size_t len);
uint64_t sl_trav_observe_tick(struct sl_traversal *t);
/* Is what was seen last new enough to be told to a peer? */
bool sl_trav_observe_fresh(const struct sl_traversal *t);

#endif
