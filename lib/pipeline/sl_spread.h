/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SPREAD_H
#define SL_SPREAD_H
/*
 * One session's frames opened and sealed by several workers (an "elephant": more than one worker can carry, in one queue).
 *
 * The session keeps its owner. The owner receives, classifies and admits its frames as ever, but instead of opening them it puts
 * them into slots of its lane, up to 32 frames of one session each. A slot goes round:
 *
 *	state		who has it		what is done
 *	QUEUED		nobody			taken by whoever is first: an idle worker, or the owner itself
 *	OPENING		that worker		tag and lead, next hop looked up; nothing outside of the slot changes
 *	OPENED		the owner, in turn	window, measurements, events, verdicts, egress session, counters: all that has an order
 *	READY		nobody			taken by who opened it (its caches hold the frames), or by the owner if it is long in coming
 *	SEALING		that worker		headers, from the old key to the new, outer headers
 *	DONE		the owner, in turn	transmitted, punted or freed, and counted
 *
 * "In turn" is the order in which the owner took the frames in, so that the lane is queue and reorder buffer in one. Invariants:
 *   - The replay window, the measurements and `notify` have one writer as ever, the owner, and see frames in order of arrival.
 *     The look at the window on intake is by the owner too. So nothing is accepted twice, and nothing that would not be
 *     accepted without the mode.
 *   - Egress counters are reserved by the owner in order of arrival, and frames leave in that order: what leaves a lane rises for
 *     each egress session. (Frames of others to the same session may come between, as with any two workers.)
 *   - Between turns a slot holds no pointer that RCU guards: sessions by their index, peers by row and generation.
 *     Each step looks them up again; what is gone meanwhile is DROP_UNKNOWN_INDEX, DROP_NO_SESSION or DROP_NO_PATH.
 *   - A slot that a worker holds longer than stuck_tsc is given up by the owner (DROP_SPREAD_STUCK) so that the others go on; its
 *     frames can then never come out late, since only the owner transmits: the worker frees them when it comes back.
 *   - Nobody waits for anybody. A lane without room drops (DROP_SPREAD_FULL).
 *
 * Into the mode and out of it (sl_session.owner, SL_OWNER_*): control marks the peer's sessions. To end it marks them ENDING;
 * the owner goes on through the lane until that is empty, and only then treats them as others. Meanwhile it takes in nothing for
 * 1 ms at most, so that a lane under load does run empty.
 *
 * Threads: take, publish, turn are a worker's, within its poll. Counters are read by control, relaxed.
 */
#include <rte_mbuf.h>
#include "../routing/sl_fib.h"

struct sl_worker;
struct sl_burst;
struct sl_session;

#define SL_SPREAD_FRAMES 32u /* of a slot */
#define SL_SPREAD_SLOTS 32u  /* of a lane; a power of two */
#define SL_SPREAD_HELD 4u    /* slots a worker has opened and waits to seal */
#define SL_SPREAD_STUCK_US 5000u
#define SL_SPREAD_HOLD_US 1000u
#define SL_SPREAD_LATE_US 50u /* the owner does not wait longer for somebody to begin sealing */

enum sl_slot_state {
	SL_SLOT_FREE,
	SL_SLOT_QUEUED,
	SL_SLOT_OPENING,
	SL_SLOT_OPENED,
	SL_SLOT_READY,
	SL_SLOT_SEALING,
	SL_SLOT_DONE,
	SL_SLOT_ABANDONED, /* by the owner, while OPENING or SEALING */
};
/* With the slot's place in the lane's order, so that a word of an earlier round is not taken for one of this. */
#define SL_SLOT_WORD(pos, state) ((uint32_t)(pos) << 3 | (state))

/* Decided by the owner for one frame that is forwarded. */
struct sl_spread_out {
	uint64_t counter;
	uint32_t tx_session; /* our index of the session to seal with */
	uint32_t peer_id, generation;
	uint32_t ts_ms;
	uint16_t mtu;
	uint8_t flags;
};

/* Groups by writer: on lines of their own, so that each crosses from CPU to CPU once. */
struct sl_spread_slot {
	uint32_t word; /* SL_SLOT_WORD; acquire, release */
	uint32_t worker; /* who has it in hand */
	uint64_t hand_tsc; /* since when it is in hand, or waits to be sealed */

	/* The owner, on intake. */
	uint32_t count __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
	uint32_t rx_index;
	uint16_t port; /* they came in by */
	uint64_t begin_tsc;
	struct rte_mbuf *mbuf[SL_SPREAD_FRAMES];
	uint8_t *fmp[SL_SPREAD_FRAMES];
	uint64_t counter[SL_SPREAD_FRAMES];
	uint32_t fmp_len[SL_SPREAD_FRAMES];
	bool moved[SL_SPREAD_FRAMES]; /* the source is then in the mbuf (sl_frame.h) */

	/* Who opened it. verdict: the owner and who seals, too. */
	uint32_t lead[SL_SPREAD_FRAMES] __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
	uint32_t ts_ms[SL_SPREAD_FRAMES];
	uint32_t generation[SL_SPREAD_FRAMES]; /* of the next hop's row */
	struct sl_hop hop[SL_SPREAD_FRAMES];
	uint8_t flags[SL_SPREAD_FRAMES];
	bool plain[SL_SPREAD_FRAMES]; /* a datagram with a next hop and nothing to look at: the owner need not touch it */
	uint8_t verdict[SL_SPREAD_FRAMES];

	/* The owner, in turn. */
	struct sl_spread_out out[SL_SPREAD_FRAMES] __attribute__((aligned(RTE_CACHE_LINE_SIZE)));

	/* Who sealed it. */
	uint16_t out_len[SL_SPREAD_FRAMES] __attribute__((aligned(RTE_CACHE_LINE_SIZE))); /* of the outer headers */
	uint8_t out_port[SL_SPREAD_FRAMES];
} __attribute__((aligned(RTE_CACHE_LINE_SIZE)));

/* Written by the owner. */
struct sl_spread_counters {
	uint64_t frames, slots; /* that have left */
	uint64_t own_slots;	/* of them those that the owner had in hand last */
	uint64_t wait_tsc;	/* from intake to leaving, summed over slots */
	uint64_t order_tsc;	/* spent on restoring order, with measure_cycles */
	uint64_t stuck, full;	/* slots given up; frames without room */
	uint64_t ended;		/* sessions that have gone back to the usual way */
};

struct sl_lane {
	/* The owner's. */
	uint32_t alloc; /* next slot to fill; head .. alloc are being filled; control reads it */
	uint32_t order; /* next in turn to be decided */
	uint32_t tail;	/* next in turn to leave; control reads it */
	uint32_t free_count, lost_count, slot_count;
	uint64_t stuck_tsc, hold_tsc, late_tsc;
	uint64_t hold_end_tsc; /* 0 = no session is ending */
	struct sl_spread_counters counters;
	/* Others read: */
	uint32_t head __attribute__((aligned(RTE_CACHE_LINE_SIZE))); /* behind the last slot that may be taken */
	struct sl_spread_slot *ring[SL_SPREAD_SLOTS]; /* NULL: given up */
	/* Anybody writes: a hint where the first QUEUED one is. */
	uint32_t claim __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
	/* The owner's again: */
	struct sl_spread_slot **free __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
	struct sl_spread_slot **lost;
	struct sl_spread_slot *slots;
};

/* What a worker has opened and not yet sealed. */
struct sl_spread_held {
	struct sl_spread_slot *slot;
	uint32_t pos;
};

/* elephant.c; control, before launch and after the end. NULL and errno. destroy frees the frames that are in it; no worker runs. */
struct sl_lane *sl_lane_create(uint16_t workers, int socket) SL_MUST_CHECK;
void sl_lane_destroy(struct sl_lane *l);
/* Frames that a lane can hold: for the size of pools. */
static inline uint32_t
sl_lane_frames(uint16_t workers)
{
	return (SL_SPREAD_SLOTS + workers) * SL_SPREAD_FRAMES;
}

/*
 * A frame of burst b whose session is ours and marked: SL_VERDICT_SPREAD (it is the lane's now), NONE (the session has just gone
 * back to the usual way), or a DROP_*.
 */
uint8_t sl_spread_take(struct sl_worker *w, struct sl_burst *b, uint32_t i, struct sl_session *s, uint16_t owner);
/* At the end of the burst: what was taken may be worked on. */
void sl_spread_publish(struct sl_worker *w);
/*
 * A worker's part in the lanes whose bit is set. frames: how many it had of its own in this poll. Returns frames worked on.
 */
unsigned sl_spread_turn(struct sl_worker *w, uint32_t lanes, unsigned frames);
/* May our own queues be polled? Not while a lane that is to end runs empty. */
bool sl_spread_holds(const struct sl_worker *w);

#endif
