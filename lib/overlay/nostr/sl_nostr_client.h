/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_CLIENT_H
#define SL_NOSTR_CLIENT_H
/*
 * A client of several Nostr relays at once, as a state machine: connections with back-off, standing subscriptions, one-time
 * fetches, publications. Time and frames are given to it; it gives frames and callbacks. The socket side is sl_nostr_service.h
 * in the daemon, a virtual relay in tests/sim.
 *
 * Invariants:
 * - Nothing a relay says reaches the sink before id, signature, clock and the subscription's own filter have agreed.
 * - A known id costs no signature: only ids that were verified are known, so a liar cannot make the true event look old.
 * - A relay costs bounded work: what it sends beyond its budgets stays in its own socket (it is paused, not dropped); one that
 *   floods for long, or is wrong too often, is left alone for the longest back-off.
 * - A subscription is asked for once a connection. After CLOSED it is not asked for again on that connection for
 *   SL_NOSTR_CLOSED_PAUSE_US (once more right after a successful AUTH, when the relay had wanted that).
 * - Memory: all tables are fixed at creation but publications' and filters' texts, which are bounded in number and size.
 *
 * One thread. Callbacks must not call back into the same client. Time: monotonic microseconds and unix seconds together, since a
 * deadline must not move with the wall clock and an event's stamp means nothing but the wall clock.
 */
#include "sl_nostr_message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NOSTR_RELAYS_MAX 16u
#define SL_NOSTR_URL_SIZE 256
#define SL_NOSTR_SUBS_MAX 40u	      /* standing ones and fetches */
#define SL_NOSTR_FETCHES_MAX 16u      /* of them */
#define SL_NOSTR_PUBLICATIONS_MAX 48u /* waiting for relays' answers */
#define SL_NOSTR_SEEN_MAX 4096u	      /* verified ids remembered; the oldest makes room */

#define SL_NOSTR_BACKOFF_BASE_US 2000000u    /* doubles; each wait is drawn from its upper half */
#define SL_NOSTR_BACKOFF_MAX_US 300000000u
#define SL_NOSTR_STABLE_US 60000000u	     /* a connection this old has earned a fresh back-off */
#define SL_NOSTR_CONNECT_US 15000000u	     /* name, TCP, TLS and the upgrade together */
#define SL_NOSTR_IDLE_US 30000000u	     /* silence after which the relay is pinged */
#define SL_NOSTR_PONG_US 10000000u	     /* and then given up */
#define SL_NOSTR_PUBLISH_US 10000000u	     /* a relay's time to answer EVENT */
#define SL_NOSTR_REPUBLISH_US 60000000u	     /* a standing publication that was refused is tried again, doubling to 30 min */
#define SL_NOSTR_CLOSED_PAUSE_US 1800000000u
#define SL_NOSTR_MESSAGES_PER_S 200	     /* a relay's budget; bursts of five seconds' worth */
#define SL_NOSTR_BYTES_PER_S 500000	     /* the same, bursts of eight */
#define SL_NOSTR_FLOOD_US 20000000u	     /* paused for this long in all within a connection: a flood */
#define SL_NOSTR_STRIKES_MAX 32u	     /* faulty messages in one connection; not those over limits of ours */
#define SL_NOSTR_PAST_S 0u		     /* adverts are replaceable: their age is judged by whoever reads them */
#define SL_NOSTR_FUTURE_S 60u		     /* clocks differ */

struct sl_nostr_client;

struct sl_nostr_time {
	uint64_t us;	 /* monotonic */
	uint64_t unix_s; /* wall clock */
};

/* How it reaches relays. `relay` is the index in the configuration. */
struct sl_nostr_net {
	void *arg;
	/* Starts to connect; sl_nostr_client_opened() or _closed() follows. 0 or -errno (nothing follows). */
	int (*open)(void *arg, unsigned relay);
	/* One text frame; the bytes are the caller's. 0, or -errno: the connection is then given up. */
	int (*send)(void *arg, unsigned relay, const char *text, size_t len);
	void (*ping)(void *arg, unsigned relay);
	/* Stops or resumes reading. What was read before may still come. */
	void (*pause)(void *arg, unsigned relay, bool stop);
	/* Ends a connection or an attempt. Nothing of it follows. */
	void (*close)(void *arg, unsigned relay);
};

enum sl_nostr_relay_state { SL_NOSTR_RELAY_WAITING, SL_NOSTR_RELAY_CONNECTING, SL_NOSTR_RELAY_OPEN };
const char *sl_nostr_relay_state_name(enum sl_nostr_relay_state s);

/* What the operator sees of a relay. */
struct sl_nostr_relay_info {
	char url[SL_NOSTR_URL_SIZE];
	enum sl_nostr_relay_state state;
	uint64_t since_us;	  /* the state began */
	uint64_t next_attempt_us; /* WAITING */
	uint64_t last_heard_us;	  /* 0 = never */
	uint32_t failures;	  /* attempts in a row that came to nothing */
	char last_error[SL_NOSTR_REASON_SIZE]; /* "" = none */
	uint64_t last_error_us;
	uint32_t connects;
	uint64_t messages, bytes, events, duplicates, unwanted, sent;
	uint64_t throttled;	  /* times it was paused */
	uint64_t faults[SL_NOSTR_ERROR_COUNT];
	uint32_t subscriptions, subscriptions_closed; /* standing ones it serves, ones it has refused */
	uint64_t published, refused, unanswered; /* EVENTs of ours: OK true, OK false, no answer */
};

/* How a fetch ended: of the relays it concerned. */
struct sl_nostr_fetch_result {
	unsigned answered; /* said EOSE: what came is all they have */
	unsigned refused;  /* CLOSED */
	unsigned silent;   /* open, no answer in time, or lost on the way */
	unsigned away;	   /* not connected */
};

struct sl_nostr_sink {
	void *arg;
	/*
	 * A verified event of a subscription. Standing ones give each id once, whichever relays have it; a fetch gives what
	 * its relays have, known or not. sub: as sl_nostr_subscribe() or _fetch() returned it; tag: the caller's.
	 */
	void (*event)(void *arg, int sub, uint32_t tag, unsigned relay, const struct sl_nostr_event *e);
	void (*fetched)(void *arg, uint32_t tag, const struct sl_nostr_fetch_result *r);
	/* A relay's state or last error changed. NULL = not wanted. */
	void (*relay)(void *arg, unsigned relay, const struct sl_nostr_relay_info *info);
};

/* urls: ws:// or wss://, NUL-ended, all different. identity: for AUTH, may be NULL; outlives the client. NULL and errno. */
struct sl_nostr_client *sl_nostr_client_create(const char *const *urls, unsigned count, const struct sl_identity *identity,
	const struct sl_nostr_net *net, const struct sl_nostr_sink *sink, const struct sl_nostr_time *now) SL_MUST_CHECK;
/* Does not close connections: the net side does, or has. */
void sl_nostr_client_destroy(struct sl_nostr_client *c);

/* --- asked by the program --- */

/*
 * Standing: asked of every relay in the mask, anew after each reconnect, until sl_nostr_unsubscribe(). The filter is copied.
 * The number of the subscription, or -ENOSPC, -ENOMEM, -EINVAL.
 */
int sl_nostr_subscribe(struct sl_nostr_client *c, uint32_t tag, const struct sl_nostr_filter *f, uint32_t relays,
	const struct sl_nostr_time *now) SL_MUST_CHECK;
void sl_nostr_unsubscribe(struct sl_nostr_client *c, int sub, const struct sl_nostr_time *now);
/* Once, of those relays that are open now; sink.fetched() comes after at most timeout_us, also when none is open. */
int sl_nostr_fetch(struct sl_nostr_client *c, uint32_t tag, const struct sl_nostr_filter *f, uint32_t relays,
	uint64_t timeout_us, const struct sl_nostr_time *now) SL_MUST_CHECK;
/*
 * A signed event to every relay in the mask. slot 0: once, to those that are open within SL_NOSTR_PUBLISH_US. Another slot: it
 * stands, and replaces what stood there; relays that were away get it when they come back, ones that refused are asked
 * again later. 0, -ENOSPC, -ENOMEM, -EMSGSIZE.
 */
int sl_nostr_publish(struct sl_nostr_client *c, uint32_t slot, const struct sl_nostr_event *e, uint32_t relays,
	const struct sl_nostr_time *now) SL_MUST_CHECK;
void sl_nostr_publish_end(struct sl_nostr_client *c, uint32_t slot); /* no longer stands */
/* Has an event that was to go out once been sent to a relay that has not answered? */
bool sl_nostr_client_unsettled(const struct sl_nostr_client *c);
/* How many relays have accepted what stands in a slot. */
unsigned sl_nostr_publish_accepted(const struct sl_nostr_client *c, uint32_t slot);

/* --- told by the net --- */

void sl_nostr_client_opened(struct sl_nostr_client *c, unsigned relay, const struct sl_nostr_time *now);
void sl_nostr_client_closed(struct sl_nostr_client *c, unsigned relay, const char *why, const struct sl_nostr_time *now);
void sl_nostr_client_text(struct sl_nostr_client *c, unsigned relay, const char *text, size_t len,
	const struct sl_nostr_time *now);
/* A frame that is no message: too long, or binary. */
void sl_nostr_client_fault(struct sl_nostr_client *c, unsigned relay, enum sl_nostr_error e, const struct sl_nostr_time *now);
/*
 * What a connection took beyond the texts and faults that were told of it: frames' heads, pings. Charged to the relay's bytes,
 * and as messages, one for each 64 bytes that its messages do not explain.
 */
void sl_nostr_client_overhead(struct sl_nostr_client *c, unsigned relay, size_t len, const struct sl_nostr_time *now);
/* A sign of life without content (pong). Counts as a message. */
void sl_nostr_client_heard(struct sl_nostr_client *c, unsigned relay, const struct sl_nostr_time *now);
/* What is due; returns when to call again at the latest (monotonic us). */
uint64_t sl_nostr_client_tick(struct sl_nostr_client *c, const struct sl_nostr_time *now);

void sl_nostr_client_relay_info(const struct sl_nostr_client *c, unsigned relay, struct sl_nostr_relay_info *out);
unsigned sl_nostr_client_relay_count(const struct sl_nostr_client *c);
/* For the check that nothing grows: subscriptions, fetches and publications in use now. */
void sl_nostr_client_usage(const struct sl_nostr_client *c, unsigned *subs, unsigned *publications);

#ifdef __cplusplus
}
#endif
#endif
