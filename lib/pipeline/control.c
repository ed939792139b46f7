/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control's turn: what workers have put into their rings goes to the sink, neighbours are answered, garbage is given
 * back. Every source has the same budget of entries, and of time: a handshake or a signature costs a hundred times what a
 * report does, and a turn of nothing but those must not make timers late. Data before housekeeping.
 */
#include <rte_cycles.h>
#include "sl_control.h"

#define TURN 4u	     /* frames taken out of a ring at once: what a source may be over its time */
#define SLICE_US 750u /* of a source a turn: five of them and what timers may take stay below 10 ms */

uint64_t
sl_dataplane_now_us(void)
{
	static uint64_t scale; /* the same value whoever computes it */
	uint64_t s = __atomic_load_n(&scale, __ATOMIC_RELAXED);

	if (s == 0) {
		s = sl_tsc_scale();
		__atomic_store_n(&scale, s, __ATOMIC_RELAXED);
	}
	return sl_tsc_to_us(s, rte_rdtsc());
}

static bool
time_is_up(const struct sl_dataplane *dp)
{
	return rte_rdtsc() >= dp->slice_end_tsc;
}

/* The oldest report of a worker; false when there is none. */
static bool
take_event(struct sl_dataplane *dp, struct sl_worker *w)
{
	const struct sl_dataplane_sink *sink = &dp->sink;
	const struct sl_event *e = sl_records_peek(&w->events);

	if (e == NULL)
		return false;
	if (e->kind == SL_EVENT_FIRST_FRAME) {
		if (sink->first_frame)
			sink->first_frame(sink->arg, e->rx_index, e->flags);
	} else if (e->kind == SL_EVENT_ROAMED) {
		if (sink->roamed)
			sink->roamed(sink->arg, e->rx_index, &e->from);
	} else if (sink->too_big) {
		sink->too_big(sink->arg, e->head, e->len, e->mtu);
	}
	sl_records_pop(&w->events);
	return true;
}

static unsigned
drain_events(struct sl_dataplane *dp, struct sl_worker *w, unsigned budget)
{
	unsigned n = 0;

	while (n < budget && !time_is_up(dp) && take_event(dp, w))
		n++;
	return n;
}

static unsigned
drain_learn(struct sl_dataplane *dp, struct sl_worker *w, unsigned budget)
{
	const struct sl_learn *r;
	unsigned n = 0;

	for (; n < budget && !time_is_up(dp) && (r = sl_records_peek(&w->learn)) != NULL; n++) {
		if (dp->sink.learn)
			dp->sink.learn(dp->sink.arg, r->msg, r->len);
		sl_records_pop(&w->learn);
	}
	return n;
}

/*
 * The peer that sent it may be gone and its row another's by now. The generation tells, except when the row changed hands
 * between the worker's look-up of the session and its reading of the row: then the session is gone too, and its index
 * cannot name another one before a grace period is over.
 */
static bool
peer_is_current(const struct sl_dataplane *dp, const struct sl_frame *f)
{
	const struct sl_session *s = sl_session_lookup(dp->view, f->rx_index);

	return s && s->peer_id == f->peer_id && f->peer_id < dp->view->max_peers &&
		dp->view->peers[f->peer_id].generation == f->peer_generation;
}

static void
dispatch(struct sl_dataplane *dp, struct rte_mbuf *m)
{
	const struct sl_dataplane_sink *sink = &dp->sink;
	const struct sl_frame *f = sl_frame_of(m);
	uint8_t *what = rte_pktmbuf_mtod_offset(m, uint8_t *, f->offset);

	switch (f->kind) {
	case SL_FRAME_HANDSHAKE:
		if (sink->handshake)
			sink->handshake(sink->arg, &f->from, what, f->len);
		break;
	case SL_FRAME_MESSAGE:
		if (!peer_is_current(dp, f))
			dp->stale_punts++;
		else if (sink->message)
			sink->message(sink->arg, f->rx_index, f->peer_id, f->flags, what, f->len);
		break;
	case SL_FRAME_DATAGRAM:
		if (!peer_is_current(dp, f))
			dp->stale_punts++;
		else if (sink->datagram)
			sink->datagram(sink->arg, f->peer_id, f->flags, what, f->len);
		break;
	case SL_FRAME_NEIGHBOUR:
		sl_neigh_input(dp->neigh, f->port, what, f->len, dp->now_us);
		dp->neigh_due_us = 0;
		break;
	case SL_FRAME_BEACON:
		if (sink->beacon)
			sink->beacon(sink->arg, &f->from, what);
		break;
	case SL_FRAME_TRAVERSAL:
		if (sink->traversal)
			sink->traversal(sink->arg, &f->from, what, f->len);
		break;
	case SL_FRAME_MDNS:
		if (sink->mdns)
			sink->mdns(sink->arg, f->port, &f->from, what, f->len);
		break;
	default:
		break;
	}
}

/* All events first, again for every handful: the one that a frame raised is heard before the frame. */
static unsigned
drain_punts(struct sl_dataplane *dp, struct sl_worker *w, enum sl_punt_ring ring, unsigned budget)
{
	struct rte_mbuf *m[TURN];
	unsigned done = 0, n;

	while (done < budget && !time_is_up(dp)) {
		n = rte_ring_sc_dequeue_burst(w->punt[ring], (void **)m, RTE_MIN(TURN, budget - done), NULL);
		if (n == 0)
			break;
		for (unsigned k = 0; k < SL_EVENT_ENTRIES && take_event(dp, w); k++)
			;
		for (unsigned i = 0; i < n; i++)
			dispatch(dp, m[i]);
		rte_pktmbuf_free_bulk(m, n);
		done += n;
	}
	return done;
}

static unsigned
drain_messages(struct sl_dataplane *dp, struct sl_worker *w, unsigned budget)
{
	return drain_punts(dp, w, SL_PUNTS_MESSAGES, budget);
}
static unsigned
drain_datagrams(struct sl_dataplane *dp, struct sl_worker *w, unsigned budget)
{
	return drain_punts(dp, w, SL_PUNTS_DATAGRAMS, budget);
}
static unsigned
drain_strangers(struct sl_dataplane *dp, struct sl_worker *w, unsigned budget)
{
	return drain_punts(dp, w, SL_PUNTS_STRANGERS, budget);
}

unsigned
sl_dataplane_poll(struct sl_dataplane *dp, unsigned budget, uint64_t now_us)
{
	static unsigned (*const sources[])(struct sl_dataplane *dp, struct sl_worker *w, unsigned budget) = {
		drain_messages, drain_datagrams, drain_events, drain_learn, drain_strangers};
	const unsigned workers = dp->config.workers, share = RTE_MAX(budget / workers, 1u);
	const uint64_t slice_tsc = rte_get_tsc_hz() / 1000000 * SLICE_US;
	unsigned n = 0;

	dp->now_us = now_us;
	dp->first_worker = (dp->first_worker + 1) % workers; /* where time runs out, it is not always on the same ones */
	for (unsigned s = 0; s < RTE_DIM(sources); s++) {
		dp->slice_end_tsc = rte_rdtsc() + slice_tsc;
		for (unsigned i = 0; i < workers; i++)
			n += sources[s](dp, dp->workers[(dp->first_worker + i) % workers], share);
	}
	if (now_us >= dp->neigh_due_us)
		dp->neigh_due_us = sl_neigh_tick(dp->neigh, now_us);
	sl_ports_watch(dp);
	sl_workers_watch(dp);
	sl_elephants_watch(dp);
	sl_paths_refresh(dp);
	n += sl_reclaim_run(&dp->reclaim, budget);
	return n;
}
