/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_ANSWERS_H
#define SL_ROUTING_ANSWERS_H
/*
 * The next hop of every destination in the coordinate cache, decided ahead by control, so that a
 * change costs workers nothing: they read one word (struct sl_coord_entry.hop) that says where the
 * destination goes.
 *
 * Invariant: an answer is right for the snapshot whose epoch it is kept with. After each snapshot in
 * which a peer or our own coordinates changed, control goes once through all entries and takes each
 * over the changes it has not seen yet: most stand after a few compares (a peer that changed is
 * looked at as one more candidate against the one chosen), the others are decided anew. Until it has
 * come by, workers use the answer for the snapshot before, a peer that was strictly closer then; a
 * peer that is gone they notice at once and decide themselves.
 *
 * Costs change with every report and are no change in this sense: answers by filter are decided anew
 * every five seconds while costs change (every ten with a million destinations).
 *
 * Going through them is bounded twice: a slice a turn of control, and credit that grows with time,
 * so that a storm of changes makes answers later, not control slower. Work is counted in units of
 * about 4 ns: five for a compare, SL_ANSWER_DECISION for a decision, as they are when memory is cold.
 */
#include "coords.h"

#define SL_ANSWER_CHANGES 64
#define SL_ANSWER_DECISION 256u
#define SL_ANSWER_AGE_US 5000000u

struct sl_router;

struct sl_answer_change {
	uint32_t epoch; /* of the first snapshot that shows it */
	uint32_t peer_id;
	bool path; /* its coordinates or the peer itself; otherwise only its filter */
};

struct sl_answers {
	struct sl_answer_change changes[SL_ANSWER_CHANGES]; /* a ring */
	uint32_t next, count;
	uint32_t floor;	    /* epoch of the latest change that was pushed out of the ring */
	uint32_t own_epoch; /* of the latest change of our own coordinates */

	/* The pass: ids below limit, `left` more of them from cursor on. */
	uint32_t limit, cursor, left;
	int64_t credit; /* units */
	uint64_t credit_us;

	uint32_t age_cursor;
	uint64_t age_us;
	bool costs_changed, ageing;

	/* For tests and measurements: */
	uint32_t slice; /* units a turn */
	uint64_t decided, stood;
};

void sl_answers_init(struct sl_answers *a, uint64_t now_us);
/* A peer changed, came or went: shown by the next snapshot. */
void sl_answers_peer(struct sl_router *r, uint32_t peer_id, bool path);
/* This node's next hop may be another now: one that came, went, or is adjacent. */
void sl_answers_adjacent(struct sl_router *r, const struct sl_node_addr *addr);
void sl_answers_own_path(struct sl_router *r);
/* A snapshot with changes has been published. */
void sl_answers_published(struct sl_router *r);
/* Works for at most so many units; 0 = a turn's slice. Returns when there is more to do. */
uint64_t sl_answers_work(struct sl_router *r, uint32_t units);
/* Decides a part of them anew for the sake of costs; returns when to come again. */
uint64_t sl_answers_age(struct sl_router *r);

#endif
