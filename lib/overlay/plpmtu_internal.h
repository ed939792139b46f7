/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PLPMTU_INTERNAL_H
#define SL_PLPMTU_INTERNAL_H
/*
 * Between plpmtu.c (the table, what it is told, when what is due) and plpmtu_steps.c (check, search, raise). A round is some
 * probes sent together and the time to wait for their answers; a step is one or more rounds.
 */
#include "due.h"
#include "sl_plpmtu.h"

#define PROBES 40u	/* remembered of each peer: the rounds of a whole check, so late answers count too */
#define LADDER 8u	/* sizes of a round besides the one in question */
#define STRIKES 3u	/* rounds in which small probes were answered and the size in question was not */
#define SILENT_MAX 4u	/* rounds without any answer, then the peer is left alone for a while */
#define SEARCH_TRIES 2u
#define GRAIN 8u	/* bytes: a search ends here */
#define TURN_PEERS 32u	/* a tick */

#define START_US 250000u	/* after link up: the other side may not have the session yet */
#define WAIT_US 500000u		/* for an answer, besides two round trips */
#define WAIT_MAX_US 3000000u
#define WAIT_SILENT_MAX_US 8000000u
#define CONFIRM_US 60000000u
#define GAP_US 1000000u		/* between checks for missing frames; doubled while they find nothing */
#define GAP_MAX_US 4000000u
#define QUIET_US 30000000u	/* without missing frames: the gap is the least again */
#define RAISE_US 20000000u
#define RAISE_MAX_US 600000000u
#define MUTE_US 30000000u
#define MUTE_MAX_US 600000000u

enum state { OFF, CHECK, SEARCH, RAISE, REST, MUTE };

struct probe {
	uint64_t id; /* 0 = none */
	uint16_t size;
	bool answered;
};

struct path {
	uint8_t state, reason;
	bool reported;	    /* the ceiling is, by a router */
	bool ever_answered; /* this link, anything */
	bool warned, warn;  /* of the floor; is to be */
	uint8_t round, strikes, silent, tries;
	uint8_t next_probe; /* in probe[], oldest first */
	uint16_t mtu, ceiling, floor;
	uint16_t told;	   /* the size that the operator knows of */
	uint16_t hint;	   /* what the peer says that its link to us carries, 0 = nothing */
	uint16_t low, high; /* answered, not answered */
	bool round_answered;
	uint32_t lowered, raised;
	uint32_t srtt_us, gap_us;
	struct sl_due_node due;
	uint64_t since_us, answered_us;
	uint64_t checked_us, missing_us; /* last check, last report that missed frames */
	uint64_t raise_us;		 /* when to try more, 0 = not */
	uint32_t raise_wait_us, mute_wait_us;
	struct sl_node_addr peer; /* stays when the link goes, with size and reason: see sl_plpmtu_up() */
	struct probe probe[PROBES];
};

struct sl_plpmtu {
	struct sl_plpmtu_sink sink;
	struct sl_node_addr self;
	uint32_t max_peers;
	struct sl_due due; /* of paths */
	struct path *paths;
	uint64_t counters[SL_PLPMTU_COUNTER_COUNT];
	uint8_t msg[UINT16_MAX];
};

/* plpmtu_steps.c */
void sl_plpmtu_size_set(struct sl_plpmtu *t, struct path *p, uint16_t mtu, enum sl_plpmtu_reason why, uint64_t now_us);
enum sl_plpmtu_reason sl_plpmtu_ceiling_reason(const struct path *p);
void sl_plpmtu_check_begin(struct sl_plpmtu *t, struct path *p, uint64_t now_us);
void sl_plpmtu_raise_begin(struct sl_plpmtu *t, struct path *p, uint64_t now_us);
void sl_plpmtu_round_over(struct sl_plpmtu *t, struct path *p, uint64_t now_us); /* of a check, a search, a raise */
void sl_plpmtu_answered(struct sl_plpmtu *t, struct path *p, uint16_t size, uint64_t now_us);

#endif
