/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's making, its loop and its end. The frames' way is in transit.c. */
#include <errno.h>
#include <time.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include "sl_worker.h"

static struct rte_ring *
ring_create(uint32_t entries, int socket)
{
	const ssize_t size = rte_ring_get_memsize(entries);
	struct rte_ring *r;

	if (size < 0)
		return NULL;
	r = rte_zmalloc_socket("sl_ring", (size_t)size, RTE_CACHE_LINE_SIZE, socket);
	if (r && rte_ring_init(r, "sl_ring", entries, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
		rte_free(r);
		r = NULL;
	}
	return r;
}

static void
ring_destroy(struct rte_ring *r)
{
	void *m;

	if (r == NULL)
		return;
	while (rte_ring_sc_dequeue(r, &m) == 0)
		rte_pktmbuf_free((struct rte_mbuf *)m);
	rte_free(r);
}

static int
records_create(struct sl_records *r, uint32_t entries, uint32_t record_bytes, int socket)
{
	void *data = rte_zmalloc_socket("sl_records", (size_t)entries * record_bytes, RTE_CACHE_LINE_SIZE, socket);

	if (data == NULL)
		return -ENOMEM;
	sl_records_init(r, data, entries, record_bytes);
	return 0;
}

struct sl_worker *
sl_worker_create(const struct sl_worker_config *c)
{
	struct sl_worker *w = rte_zmalloc_socket("sl_worker", sizeof(*w), RTE_CACHE_LINE_SIZE, c->socket);

	if (w == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	w->id = c->id;
	w->workers = c->workers;
	w->burst_max = c->burst;
	w->idle_sleep_us = c->idle_sleep_us;
	w->measure_cycles = c->measure_cycles;
	w->aead = c->aead;
	w->view = c->view;
	w->fib = c->fib;
	w->qsbr = c->qsbr;
	w->us_per_tsc_q64 = sl_tsc_scale();
	for (unsigned i = 0; i < sl_msg_table_count; i++)
		w->message_known[sl_msg_table[i].type] = 1;
	w->hop_cache = sl_hop_cache_create(c->hop_cache_entries);
	if (w->hop_cache == NULL)
		goto fail;
	w->aead_ctx = c->aead->create(SL_BURST_MAX);
	if (w->aead_ctx == NULL)
		goto fail;
	errno = ENOMEM;
	for (unsigned r = 0; r < SL_PUNT_RINGS; r++) {
		w->punt[r] = ring_create(c->ring_size, c->socket);
		if (w->punt[r] == NULL)
			goto fail;
	}
	w->inject = ring_create(SL_HANDOFF_ENTRIES, c->socket);
	if (w->inject == NULL)
		goto fail;
	for (unsigned from = 0; from < c->workers; from++) {
		if (from == c->id)
			continue;
		w->handoff_in[from] = ring_create(SL_HANDOFF_ENTRIES, c->socket);
		if (w->handoff_in[from] == NULL)
			goto fail;
	}
	if (c->spread && c->workers > 1) {
		w->lane = sl_lane_create(c->workers, c->socket);
		if (w->lane == NULL)
			goto fail;
	}
	w->marks.peers = c->view->max_peers;
	w->marks.of_peer = rte_zmalloc_socket("sl_marks", w->marks.peers * sizeof(*w->marks.of_peer), RTE_CACHE_LINE_SIZE,
		c->socket);
	if (w->marks.of_peer == NULL)
		goto fail;
	if (records_create(&w->events, SL_EVENT_ENTRIES, sizeof(struct sl_event), c->socket) != 0 ||
		records_create(&w->learn, SL_LEARN_ENTRIES, sizeof(struct sl_learn), c->socket) != 0)
		goto fail;
	return w;
fail:
	sl_worker_destroy(w);
	return NULL;
}

void
sl_worker_destroy(struct sl_worker *w)
{
	if (w == NULL)
		return;
	rte_free(w->marks.of_peer);
	rte_free(w->learn.data);
	rte_free(w->events.data);
	for (unsigned i = 0; i < SL_WORKERS_MAX; i++)
		ring_destroy(w->handoff_in[i]);
	sl_lane_destroy(w->lane);
	ring_destroy(w->inject);
	for (unsigned r = 0; r < SL_PUNT_RINGS; r++)
		ring_destroy(w->punt[r]);
	if (w->aead_ctx)
		w->aead->destroy(w->aead_ctx);
	sl_hop_cache_destroy(w->hop_cache);
	rte_free(w);
}

uint64_t
sl_tsc_scale(void)
{
	return (uint64_t)(((unsigned __int128)1000000 << 64) / rte_get_tsc_hz());
}

/* One burst through transit. The drivers' part is timed apart: receiving (0: it came by a ring of ours), transmitting. */
static void
pass(struct sl_worker *w, struct sl_burst *b, uint64_t receive_begin_tsc)
{
	w->transmit_tsc = 0;
	sl_transit(w, b);
	if (w->measure_cycles) {
		SL_COUNT(w, transit_tsc, rte_rdtsc() - b->begin_tsc - w->transmit_tsc);
		SL_COUNT(w, driver_tsc, (receive_begin_tsc ? b->begin_tsc - receive_begin_tsc : 0) + w->transmit_tsc);
	}
}

/* Frames of the burst that another worker owns, as far as they have been counted. */
static inline uint64_t
handed(const struct sl_worker *w)
{
	return w->counters.verdicts[SL_HANDOFF] + w->counters.verdicts[SL_DROP_HANDOFF_FULL];
}

static unsigned
poll_ports(struct sl_worker *w)
{
	struct sl_burst *b = &w->in_hand;
	unsigned frames = 0;

	for (uint32_t q = 0; q < w->rx_count; q++) {
		const uint64_t begin = w->measure_cycles ? rte_rdtsc() : 0;

		if (unlikely(__atomic_load_n(&w->rx[q].off, __ATOMIC_ACQUIRE)))
			continue;
		b->count = rte_eth_rx_burst(w->rx[q].ethdev, w->rx[q].queue, b->mbuf, w->burst_max);
		if (b->count == 0)
			continue;
		b->port = w->rx[q].port;
		b->local = w->rx[q].local;
		b->join_pool = w->rx[q].join_pool;
		frames += b->count;
		if (w->workers > 1) { /* whether the port's steering is worth it (sl_steer.h) */
			const uint64_t before = handed(w);

			SL_COUNT(w, port_rx[w->rx[q].port], b->count);
			pass(w, b, begin);
			SL_COUNT(w, port_handed[w->rx[q].port], handed(w) - before);
		} else {
			pass(w, b, begin);
		}
	}
	return frames;
}

/* From the other workers: frames of our sessions that they received. */
static unsigned
poll_handoffs(struct sl_worker *w)
{
	struct sl_burst *b = &w->in_hand;
	unsigned frames = 0;

	for (uint32_t from = 0; from < w->workers; from++) {
		if (w->handoff_in[from] == NULL)
			continue;
		b->count = rte_ring_sc_dequeue_burst(w->handoff_in[from], (void **)b->mbuf, w->burst_max, NULL);
		if (b->count == 0)
			continue;
		b->port = SL_PORT_NONE;
		pass(w, b, 0);
		frames += b->count;
	}
	return frames;
}

/* Control's frames for ports that have no transmit queue to spare. Not in our counters: control counts what it sends. */
static unsigned
poll_inject(struct sl_worker *w)
{
	struct rte_mbuf *m[8];
	const unsigned n = rte_ring_sc_dequeue_burst(w->inject, (void **)m, RTE_DIM(m), NULL);

	for (unsigned i = 0; i < n; i++) {
		const uint16_t port = sl_frame_of(m[i])->port;

		if (!__atomic_load_n(&w->tx[port].present, __ATOMIC_ACQUIRE) ||
			rte_eth_tx_burst(w->tx[port].ethdev, w->tx[port].queue, &m[i], 1) == 0) {
			SL_COUNT(w, inject_full[port], 1);
			rte_pktmbuf_free(m[i]);
		}
	}
	return n;
}

unsigned
sl_worker_poll(struct sl_worker *w)
{
	const uint64_t begin = w->measure_cycles ? rte_rdtsc() : 0;
	const uint32_t lanes = __atomic_load_n(&w->lanes, __ATOMIC_ACQUIRE);
	unsigned frames = 0;

	if (likely(lanes == 0 || !sl_spread_holds(w))) {
		frames = poll_ports(w);
		if (w->workers > 1)
			frames += poll_handoffs(w);
	}
	if (unlikely(lanes))
		frames += sl_spread_turn(w, lanes, frames);
	frames += poll_inject(w);

	SL_COUNT(w, polls, 1);
	if (frames) {
		SL_COUNT(w, busy_polls, 1);
		w->idle_polls = 0;
	} else {
		w->idle_polls++;
	}
	if (w->measure_cycles) {
		if (unlikely(begin - w->last_poll_tsc > w->counters.longest_tsc && w->last_poll_tsc))
			__atomic_store_n(&w->counters.longest_tsc, begin - w->last_poll_tsc, __ATOMIC_RELAXED);
		/* From the last poll's beginning to this one's: the time of the poll between. */
		if (w->last_poll_busy)
			SL_COUNT(w, busy_tsc, begin - w->last_poll_tsc);
		else
			SL_COUNT(w, idle_tsc, w->last_poll_tsc ? begin - w->last_poll_tsc : 0);
		w->last_poll_tsc = begin;
		w->last_poll_busy = frames != 0;
	}
	rte_rcu_qsbr_quiescent(w->qsbr, w->id);
	return frames;
}

/* Where cores are shared: out of the grace periods while asleep, so that control's reclaiming goes on. */
static void
idle_sleep(struct sl_worker *w)
{
	const struct timespec t = {.tv_sec = w->idle_sleep_us / 1000000, .tv_nsec = w->idle_sleep_us % 1000000 * 1000};

	rte_rcu_qsbr_thread_offline(w->qsbr, w->id);
	nanosleep(&t, NULL);
	rte_rcu_qsbr_thread_online(w->qsbr, w->id);
	w->last_poll_busy = false;
}

int
sl_worker_main(void *worker)
{
	struct sl_worker *w = worker;

	rte_rcu_qsbr_thread_online(w->qsbr, w->id);
	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		sl_worker_poll(w);
		if (unlikely(w->idle_polls >= SL_IDLE_POLLS && w->idle_sleep_us))
			idle_sleep(w);
	}
	/* What control sent last (its farewells) still goes out. */
	while (poll_inject(w) > 0)
		;
	rte_rcu_qsbr_thread_offline(w->qsbr, w->id);
	return 0;
}
