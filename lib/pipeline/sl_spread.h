/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SPREAD_H
#define SL_SPREAD_H
/*
 * One elephant: what a single queue brings is more than one worker can open and seal, while others have time. The worker that
 * receives (R) then gives whole bursts away and puts them in order again behind:
 *
 *	R		receive, classify, session, admit; writes down what is left to do; publishes the burst
 *	any worker	claims the oldest burst: open, message, next hop, egress, reserve, reseal, wrap; says it is done
 *	R		in the order of its receipt: replay window, measurements, events; transmits, punts, frees
 *
 * R claims too, whenever more bursts wait than its helpers take, so it is never idle for their sake.
 *
 * What holds, whoever did the work:
 *	- Frames leave in the order in which R received them: there is one order of bursts, and within a burst one of frames.
 *	- The replay window has one writer, R, who looks before the AEAD (admit) and decides after it; a copy that was opened by
 *	  somebody else at the same time is dropped at the end, before it can leave.
 *	- Send counters are reserved by whoever seals, so they are unique, and those of two bursts in hand at once may be the
 *	  other way round on the wire: by SL_SPREAD_SLOTS bursts at most, within the receiver's window of 2,048.
 *	- Counters: R's, as if it had done everything (rx = sum of verdicts). Helpers count `helped`.
 *	- RCU: nobody keeps a pointer from one poll to another. What lies in a slot are indices; who works on it looks them up.
 *
 * A helper that stands still holds up R's order. After SL_SPREAD_GIVE_UP_US R gives its burst up (drop_stalled, the helper frees the
 * frames if it ever comes back) and spreads no more for SL_SPREAD_SULK_US.
 *
 * When: `auto` begins when R's polls come back full, a run of them, and another worker has time; it ends when they do not, and all
 * bursts are back. While it is off the only cost is one test a poll.
 *
 * Threads: a struct sl_spread belongs to its R; published, claimed and the slots' states are where the others meet it.
 */
#include "sl_burst.h"
#include "sl_dataplane.h"

struct sl_worker;

#define SL_SPREAD_SLOTS 16u		 /* bursts of one R in hand at once; a power of two */
#define SL_SPREAD_FULL_POLLS 64u	 /* in a row, before it begins */
#define SL_SPREAD_SLACK_POLLS 1024u	 /* in a row less than half full, before it ends */
#define SL_SPREAD_LIGHT_POLLS 32u	 /* in a row that brought nothing, after which a worker has time */
#define SL_SPREAD_GIVE_UP_US 100000u
#define SL_SPREAD_SULK_US 10000000u

enum sl_spread_state { SL_SLOT_FREE, SL_SLOT_READY, SL_SLOT_TAKEN, SL_SLOT_DONE, SL_SLOT_GIVEN_UP };

/* A frame on its way from R and back. */
struct sl_spread_frame {
	struct rte_mbuf *mbuf;
	uint8_t *fmp;
	uint64_t counter;
	uint32_t rx_index, fmp_len;
	uint8_t place; /* in R's burst */
	/* what the helper found out */
	uint8_t verdict, out, flags;
	uint32_t ts_ms;
};

struct sl_spread_slot {
	uint32_t state __attribute__((aligned(SL_CACHE_LINE))); /* atomic */
	uint32_t count, order_count;
	uint64_t now_us;
	uint8_t order[SL_BURST_MAX]; /* of those that leave: places in frame[], as counters were given out */
	struct sl_spread_frame frame[SL_BURST_MAX];
	/* R's own */
	struct sl_burst burst __attribute__((aligned(SL_CACHE_LINE)));
};

struct sl_spread {
	/* R's own: serials of bursts */
	uint32_t head, tail; /* the oldest that is not back; the next to receive into */
	uint32_t full_polls, slack_polls;
	uint64_t sulk_until_us;
	enum sl_spread_mode mode;
	bool on;
	uint32_t published __attribute__((aligned(SL_CACHE_LINE))); /* R writes, everybody reads */
	uint32_t claimed __attribute__((aligned(SL_CACHE_LINE)));   /* whoever claims: the next serial to claim */
	struct sl_spread_slot slot[SL_SPREAD_SLOTS];
};

/* NULL and errno. */
struct sl_spread *sl_spread_create(enum sl_spread_mode mode, int socket);
/* Buffers that are still in it are freed. No worker runs any more. */
void sl_spread_destroy(struct sl_spread *s);

/* R: whether to receive into a slot now; looks at how full the last poll was. */
bool sl_spread_wanted(struct sl_worker *w);
/* R: the burst to receive into, NULL while all are out. */
struct sl_burst *sl_spread_begin(struct sl_worker *w);
/* R: the burst was received: count, port, local and join_pool (SL_PORT_NONE: frames that others handed over). */
void sl_spread_publish(struct sl_worker *w);
/* R: what is back leaves, in order; works on what nobody took. Frames that left. rx: those of this poll. */
unsigned sl_spread_turn(struct sl_worker *w, unsigned rx);
/* Any worker that has time: a burst of another's. Frames worked on. */
unsigned sl_spread_help(struct sl_worker *w);
/* R, at its end: everything back. */
void sl_spread_drain(struct sl_worker *w);

#endif
