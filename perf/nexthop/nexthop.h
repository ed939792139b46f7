/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEXTHOP_H
#define NEXTHOP_H
/*
 * The parts of the next-hop benchmark (main.c says what it measures): one relay with many peers and destinations, made once
 * (relay.c); what changes in it cost its worker and control (changes.c). One thread, but for changes.c's reader.
 */
#include "../../tests/sim/sim.h"

#include <time.h>

#define ROUNDS_MOST 1000u

/* What was asked for. */
extern bool json;
extern uint32_t peers, n, seconds, rounds; /* n: destinations */

/* The relay. */
extern struct sl_router *r;
extern struct sl_hop_cache *cache; /* remembers all destinations */
extern struct sl_node_addr *dest;  /* [n] */
extern uint64_t now_us;		   /* its clock */
extern uint64_t reader_round;	   /* raised by a reader with each burst */
extern bool reading;		   /* there is one: what it may hold is kept until it has gone round twice */

int make_relay(void);
void place_peer(uint32_t i);	   /* new coordinates */
int place_destination(uint32_t i);
void filter_build(uint8_t msg[SL_FILTER_MSG_BYTES], const struct sl_node_addr *members, uint32_t count);
void filter_give(uint32_t id, uint8_t msg[SL_FILTER_MSG_BYTES]);
void filter_with(uint32_t id, const struct sl_node_addr *members, uint32_t count);
/* Ticks until nothing is due; returns how many. The clock goes with the real one. */
uint32_t control_until_done(void);
void held_free(bool all);

uint64_t draw(void);
struct sl_node_addr draw_addr(void);
double now_ns(void);
uint64_t cpu_ns(void); /* of this thread */
double median(double *v, uint32_t count); /* sorts */
/* To standard output, or with -j to standard error. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* changes.c: a reader beside it; then without. 0, or -1 without memory. */
int change_figures(void);
void storm_figures(void);
void rest_figures(void);

#endif
