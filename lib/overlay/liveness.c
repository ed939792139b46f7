/* SPDX-License-Identifier: BSD-3-Clause */
/* What an established link does every second: heartbeat, death, reports. Link layer facts, sections
 * 11 and 15. */
#include "link_internal.h"

#include <errno.h>

void
sl_liveness_begin(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	p->heartbeat_us = now_us + l->config.heartbeat_us; /* promotion sends one itself */
	p->sender_report_us = p->receiver_report_us = now_us;
}

/* The side that began the link flips the bit, the other copies it (15.6). */
void
sl_spin_update(struct peer *p)
{
	struct sl_session *s = p->current.s;
	uint8_t flags, seen, spin;

	if (!s || !__atomic_load_n(&s->mmp.frames, __ATOMIC_RELAXED))
		return;
	flags = __atomic_load_n(&s->tx_flags, __ATOMIC_RELAXED);
	seen = (uint8_t)(__atomic_load_n(&s->mmp.spin, __ATOMIC_RELAXED) & SL_FLAG_SP);
	if (p->outbound)
		spin = seen == (flags & SL_FLAG_SP) ? seen ^ SL_FLAG_SP : flags & SL_FLAG_SP;
	else
		spin = seen;
	__atomic_store_n(&s->tx_flags, (uint8_t)((flags & ~SL_FLAG_SP) | spin), __ATOMIC_RELAXED);
}

/* Frames and bytes of the link's other sessions, which the reports' sums since link set-up include.
 */
static void
others(const struct peer *p, uint64_t *rx_frames, uint64_t *rx_bytes, uint64_t *tx_frames,
	uint64_t *tx_bytes)
{
	const struct sl_session *s = p->previous.s;

	*rx_frames = p->gone.rx_frames;
	*rx_bytes = p->gone.rx_bytes;
	*tx_frames = p->gone.tx_frames;
	*tx_bytes = p->gone.tx_bytes;
	if (s) {
		*rx_frames += __atomic_load_n(&s->mmp.frames, __ATOMIC_RELAXED);
		*rx_bytes += __atomic_load_n(&s->mmp.bytes, __ATOMIC_RELAXED);
		*tx_frames += sl_nonce_used(&s->tx_counter);
		*tx_bytes += __atomic_load_n(&s->tx_bytes, __ATOMIC_RELAXED);
	}
}

static void
report_send(struct sl_links *l, struct peer *p, const uint8_t *msg, size_t len, uint64_t now_us)
{
	if (sl_session_send(l, p->current.s, &p->where.addr, msg, len, 0, now_us) == 0)
		count(l, SL_LINK_REPORT_TX);
}

static void
reports(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	struct sl_session *s = p->current.s;
	uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
	struct sl_sender_report sr;
	struct sl_receiver_report rr;
	uint8_t msg[SL_RECEIVER_REPORT_BYTES];

	if (l->config.mmp_mode >= 2)
		return;
	others(p, &rx_frames, &rx_bytes, &tx_frames, &tx_bytes);
	if (l->config.mmp_mode == 0 && now_us >= p->sender_report_us &&
		sl_mmp_sender_report(&sr, &p->current.reports, sl_nonce_used(&s->tx_counter),
			__atomic_load_n(&s->tx_bytes, __ATOMIC_RELAXED),
			(uint32_t)((now_us - s->origin_us) / 1000), tx_frames, tx_bytes)) {
		sl_sender_report_build(msg, &sr);
		report_send(l, p, msg, SL_SENDER_REPORT_BYTES, now_us);
		p->sender_report_us = now_us + sl_mmp_sender_interval_us(&p->metrics);
	}
	if (now_us >= p->receiver_report_us && sl_mmp_receiver_report(&rr, &p->current.reports,
						       &s->mmp, rx_frames, rx_bytes, now_us)) {
		sl_receiver_report_build(msg, &rr);
		report_send(l, p, msg, SL_RECEIVER_REPORT_BYTES, now_us);
		p->receiver_report_us = now_us + sl_mmp_receiver_interval_us(&p->metrics);
	}
}

void
sl_liveness_run(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	uint64_t heard = sl_peer_last_rx_us(p);

	if (now_us < p->beat_us)
		return;
	/* From beat to beat; after a pause of ours there is nothing to catch up with. */
	p->beat_us += SL_BEAT_US;
	if (p->beat_us <= now_us)
		p->beat_us = now_us + SL_BEAT_US;
	if (heard < p->current.since_us)
		heard = p->current.since_us;
	if (heard > p->rerouted_us)
		p->rerouted_us = 0;
	/* A quiet peer says nothing but its heartbeats, whose interval is thought to be ours. */
	if (now_us >= heard + l->config.dead_timeout_us ||
		(p->rerouted_us && now_us >= p->rerouted_us + l->config.heartbeat_us + SL_REROUTE_US)) {
		count(l, SL_LINK_LINK_DEAD);
		p->last_error = p->rerouted_us ? "its port is down, and nothing heard at its other address" :
			"nothing heard for the dead timeout";
		/* It may hear us: then it knows, and takes our next dial for what it is (7.2, TRAP). */
		sl_disconnect_send(l, p, SL_DISCONNECT_TIMEOUT, now_us);
		sl_peer_down(l, p, SL_DOWN_DEAD, now_us);
		sl_peer_redial_after_loss(l, p, now_us);
		return;
	}
	sl_spin_update(p);
	__atomic_fetch_or(&p->current.s->notify, SL_NOTIFY_ADDRESS, __ATOMIC_RELAXED);
	reports(l, p, now_us);
	/* Until something is heard on a new way, each may be the first that finds it: the neighbour there may just be asked for. */
	if (now_us >= p->heartbeat_us || p->rerouted_us) {
		p->heartbeat_us = now_us + l->config.heartbeat_us;
		sl_heartbeat_send(l, p, &p->current, now_us);
	}
}

int
sl_links_reroute(struct sl_links *l, uint32_t peer_id, bool (*reaches)(void *arg, const struct sl_addr *addr), void *arg,
	uint64_t now_us)
{
	struct peer *p = peer_id < l->view->max_peers ? l->peer_of_id[peer_id] : NULL;

	l->now_us = now_us;
	if (!p || !p->up)
		return -ENOTCONN;
	for (unsigned i = 0; i < p->addr_count; i++) {
		const struct sl_addr *a = &p->addrs[i];

		if (a->transport != p->where.addr.transport || sl_addr_equal(a, &p->where.addr) || !sl_addr_answerable(l, a) ||
			!reaches(arg, a))
			continue;
		count(l, SL_LINK_REROUTE);
		p->rerouted_us = now_us;
		sl_link_log_rerouted(p, a);
		sl_peer_address_set(l, p, a);
		p->heartbeat_us = now_us + l->config.heartbeat_us;
		sl_heartbeat_send(l, p, &p->current, now_us);
		sl_peer_settle(l, p);
		return 0;
	}
	return -ENETUNREACH;
}

void
sl_excuse(struct peer *p, uint64_t counter)
{
	if (p->excused.count == SL_EXCUSED_MAX) {
		p->excused.before++;
		p->excused.count--;
		memmove(p->excused.counter, p->excused.counter + 1, p->excused.count * sizeof(p->excused.counter[0]));
	}
	p->excused.counter[p->excused.count++] = counter;
}

void
sl_excused_cutover(struct peer *p)
{
	p->excused.before += p->excused.count;
	p->excused.count = 0;
}

/* Of all that were sent until this counter. */
static uint64_t
excused_until(struct peer *p, uint64_t highest)
{
	unsigned n = 0;

	while (n < p->excused.count && p->excused.counter[n] <= highest)
		n++;
	return p->excused.before + n;
}

void
sl_metrics_fill(struct sl_link_metrics *out, const struct sl_mmp_metrics *m)
{
	out->measured = m->measured;
	out->srtt_us = (double)m->srtt_us;
	out->etx = m->etx;
	out->cost = m->cost;
	out->loss = m->loss;
	out->jitter_us = m->jitter_us;
	out->goodput_bytes_per_s = m->goodput_bytes_per_s;
	out->covered_us = 0;
	out->missing = 0;
}

void
sl_report_received(struct sl_links *l, struct peer *p, const struct slot *on, const uint8_t *msg,
	size_t len, uint64_t now_us)
{
	struct sl_receiver_report rr;
	struct sl_link_metrics out;
	struct sl_session *s;
	uint64_t other[3];

	count(l, SL_LINK_REPORT_RX);
	p->last_report_us = now_us;
	if (msg[0] != SL_MSG_RECEIVER_REPORT)
		return; /* a SenderReport tells nothing that decides anything (15.2) */
	if (sl_receiver_report_parse(&rr, msg, len) < 0) {
		count(l, SL_LINK_MSG_MALFORMED);
		return;
	}
	s = p->current.s;
	others(p, &other[0], &other[1], &p->metrics.sent_before, &other[2]);
	p->metrics.excused = excused_until(p, rr.highest_counter);
	/* A report on the session before speaks of its counters and its clock (15.7, TRAP). */
	if (on != &p->current || !sl_mmp_on_report(&p->metrics, &rr, now_us - s->origin_us, now_us,
					 sl_nonce_used(&s->tx_counter), &s->mmp)) {
		count(l, SL_LINK_REPORT_STALE);
		return;
	}
	sl_metrics_fill(&out, &p->metrics);
	/* The echo is the timestamp of the last frame it has, cut down to a millisecond. */
	out.missing = p->metrics.missing;
	if (p->metrics.missing_known && rr.echo_ts_ms) {
		out.covered_us = s->origin_us + rr.echo_ts_ms * UINT64_C(1000) + 999;
		if (out.covered_us > now_us)
			out.covered_us = now_us;
	}
	if (l->sink.metrics)
		l->sink.metrics(l->sink.arg, p->id, &out);
}
