/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports and what they say: link layer facts, sections 15.5 to 15.7. */
#include "sl_mmp.h"
#include "sl_wire.h"

#define relaxed(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static uint32_t
clamp32(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static uint16_t
clamp16(uint64_t v)
{
	return v > UINT16_MAX ? UINT16_MAX : (uint16_t)v;
}

static double
clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

bool
sl_mmp_receiver_report(struct sl_receiver_report *report, struct sl_mmp_snapshot *snap,
	struct sl_mmp_rx *rx, uint64_t other_frames, uint64_t other_bytes, uint64_t now_us)
{
	uint64_t frames = relaxed(rx->frames), bytes = relaxed(rx->bytes);
	uint64_t burst_sum = relaxed(rx->burst_sum), last_rx_us = relaxed(rx->last_rx_us);
	/* A difference of whole milliseconds, as the reference takes it: its rounding errors are zero on average. */
	uint64_t dwell_ms = now_us > last_rx_us ? now_us / 1000 - last_rx_us / 1000 : 0;
	uint32_t bursts = relaxed(rx->bursts), interval = relaxed(rx->interval);
	uint32_t interval_bursts = bursts - snap->bursts;

	if (frames == snap->rx_frames)
		return false;
	memset(report, 0, sizeof(*report));
	report->highest_counter = relaxed(rx->highest);
	report->total_frames = other_frames + frames;
	report->total_bytes = other_bytes + bytes;
	report->echo_ts_ms = dwell_ms > UINT16_MAX ? 0 : relaxed(rx->last_ts_ms);
	report->dwell_ms = clamp16(dwell_ms);
	report->jitter_us = relaxed(rx->jitter_q4_us) >> 4;
	report->ce_frames = relaxed(rx->ce_frames);
	report->reordered = relaxed(rx->reordered);
	report->bursts = interval_bursts;
	report->interval_frames = clamp32(frames - snap->rx_frames);
	report->interval_bytes = clamp32(bytes - snap->rx_bytes);
	/* Otherwise no frame has come since the last report closed its interval. */
	if (relaxed(rx->interval_seen) == interval)
		report->burst_longest = clamp16(relaxed(rx->burst_longest));
	if (interval_bursts) {
		double mean = (double)(burst_sum - snap->burst_sum) / interval_bursts * 256;

		report->burst_mean_8_8 = (uint16_t)clamp(mean, 0, UINT16_MAX);
	}
	snap->rx_frames = frames;
	snap->rx_bytes = bytes;
	snap->burst_sum = burst_sum;
	snap->bursts = bursts;
	__atomic_store_n(&rx->interval, interval + 1, __ATOMIC_RELAXED);
	return true;
}

bool
sl_mmp_sender_report(struct sl_sender_report *report, struct sl_mmp_snapshot *snap,
	uint64_t tx_next, uint64_t tx_bytes, uint32_t now_ts_ms, uint64_t other_frames,
	uint64_t other_bytes)
{
	if (tx_next == snap->tx_next)
		return false;
	report->first_counter = snap->tx_next;
	report->last_counter = tx_next - 1;
	report->first_ts_ms = snap->tx_ts_ms;
	report->last_ts_ms = now_ts_ms;
	report->interval_bytes = clamp32(tx_bytes - snap->tx_bytes);
	report->total_frames = other_frames + tx_next;
	report->total_bytes = other_bytes + tx_bytes;
	snap->tx_next = tx_next;
	snap->tx_bytes = tx_bytes;
	snap->tx_ts_ms = now_ts_ms;
	return true;
}

/* Delivered of sent, 1 at most: late frames of the time before may make up for lost ones. */
static double
ratio(uint64_t delivered, uint64_t sent)
{
	return clamp((double)delivered / (double)sent, 0, 1);
}

/*
 * One frame missing of few says nothing yet: it may have been overtaken by the one that the report tells as the
 * highest, and on a quiet link that would double ETX for an interval. Such a span is judged together with the next.
 */
#define SPAN_FEW 16

static bool
too_few(uint64_t delivered, uint64_t span)
{
	return span < SPAN_FEW && delivered + 1 == span;
}

static void
etx_update(struct sl_mmp_metrics *m)
{
	double both = m->forward * m->reverse;

	m->etx = both > 0 ? clamp(1 / both, 1, 100) : 100;
}

static void
cost_update(struct sl_mmp_metrics *m)
{
	m->cost = m->measured ? m->etx * (1 + (double)m->srtt_us / 1000 / 100) : 1;
}

void
sl_mmp_metrics_init(struct sl_mmp_metrics *m)
{
	memset(m, 0, sizeof(*m));
	m->forward = 1;
	m->reverse = 1;
	m->etx = 1;
	m->cost = 1;
}

void
sl_mmp_metrics_cutover(struct sl_mmp_metrics *m)
{
	m->has_base = false;
	m->has_loss_base = false;
	m->has_reverse_base = false;
	m->forward = 1; /* ETX and cost keep their values until the next report */
	m->loss = 0;
}

/* Our own receiver counters between two arrivals of reports, the stale ones too. */
static void
reverse_update(struct sl_mmp_metrics *m, const struct sl_mmp_rx *rx)
{
	uint64_t highest = relaxed(rx->highest), frames = relaxed(rx->frames);

	if (m->has_reverse_base && highest > m->reverse_highest) {
		if (too_few(frames - m->reverse_frames, highest - m->reverse_highest))
			return;
		m->reverse = ratio(frames - m->reverse_frames, highest - m->reverse_highest);
		etx_update(m);
	}
	m->reverse_highest = highest;
	m->reverse_frames = frames;
	m->has_reverse_base = true;
}

static bool
is_stale(const struct sl_mmp_metrics *m, const struct sl_receiver_report *r)
{
	if (!m->has_base)
		return false;
	/* A highest counter that this session never sent says nothing, and may fall when the session's own passes it. */
	if ((m->has_highest && r->highest_counter < m->base_highest) || r->total_frames < m->base_frames ||
		r->total_bytes < m->base_bytes || r->ce_frames < m->base_ce ||
		r->reordered < m->base_reordered)
		return true;
	return r->highest_counter == m->base_highest && r->total_frames == m->base_frames &&
	       r->total_bytes == m->base_bytes && r->ce_frames == m->base_ce &&
	       r->reordered == m->base_reordered;
}

static void
rtt_update(struct sl_mmp_metrics *m, const struct sl_receiver_report *r, uint64_t inner_now_us)
{
	int64_t since_echo_ms = (int32_t)((uint32_t)(inner_now_us / 1000) - r->echo_ts_ms);
	int64_t sample;

	if (r->echo_ts_ms == 0 || since_echo_ms < 0)
		return;
	sample = (since_echo_ms - r->dwell_ms) * 1000 + (int64_t)(inner_now_us % 1000);
	/* More than any rounding: the peer claims to have held it longer than it was away. */
	if (sample < -1000)
		return;
	sample = sample > 500 ? sample - 500 : 1;
	if (!m->measured) {
		m->srtt_us = sample;
		m->rttvar_us = sample / 2;
		m->measured = true;
		return;
	}
	m->rttvar_us += (sample > m->srtt_us ? sample - m->srtt_us : m->srtt_us - sample) / 4 -
			m->rttvar_us / 4;
	m->srtt_us += sample / 8 - m->srtt_us / 8;
}

static void
goodput_update(struct sl_mmp_metrics *m, uint64_t bytes, uint64_t span_us)
{
	double rate;

	if (span_us == 0)
		return;
	rate = (double)bytes * 1e6 / (double)span_us;
	m->goodput_bytes_per_s += m->has_goodput ? (rate - m->goodput_bytes_per_s) / 4 : rate;
	m->has_goodput = true;
}

/* ours: the report tells a highest counter of the present session. */
static void
forward_update(struct sl_mmp_metrics *m, const struct sl_receiver_report *r, bool ours)
{
	if (ours && m->has_loss_base && r->highest_counter > m->loss_highest &&
		r->total_frames >= m->loss_frames) {
		uint64_t span = r->highest_counter - m->loss_highest, excused = m->excused - m->loss_excused;

		if (excused >= span)
			return; /* judged together with the next */
		span -= excused;
		if (too_few(r->total_frames - m->loss_frames, span))
			return;
		m->forward = ratio(r->total_frames - m->loss_frames, span);
		m->loss = 1 - m->forward;
		etx_update(m);
	}
	m->loss_highest = r->highest_counter;
	m->loss_frames = r->total_frames;
	m->loss_excused = m->excused;
	m->has_loss_base = ours;
}

/*
 * What is missing, told at once, unlike loss: a frame that was only overtaken counts too, and is taken back by the
 * next report. Over all sessions of the link, as the sum that the peer reports.
 */
static void
missing_update(struct sl_mmp_metrics *m, const struct sl_receiver_report *r, bool ours)
{
	const uint64_t sent = m->sent_before + r->highest_counter + 1 - m->excused;
	const int64_t gap = (int64_t)(sent - r->total_frames);

	m->missing_known = ours;
	m->missing = 0;
	if (!ours)
		return;
	if (gap > m->gap)
		m->missing = sent > m->gap_sent ? ratio((uint64_t)(gap - m->gap), sent - m->gap_sent) : 1;
	m->gap = gap;
	m->gap_sent = sent;
}

bool
sl_mmp_on_report(struct sl_mmp_metrics *m, const struct sl_receiver_report *report,
	uint64_t inner_now_us, uint64_t now_us, uint64_t tx_next, const struct sl_mmp_rx *rx)
{
	/*
	 * After a cutover a peer may report the highest counter of the old session until ours has passed it (link layer
	 * facts, 15.6). Such a report is good for the round trip and the rate, not for loss.
	 */
	const bool ours = report->highest_counter < tx_next;
	const bool accepted = !is_stale(m, report);

	reverse_update(m, rx);
	if (accepted) {
		rtt_update(m, report, inner_now_us);
		m->jitter_us = report->jitter_us;
		missing_update(m, report, ours);
		if (m->has_base) {
			forward_update(m, report, ours);
			goodput_update(
				m, report->total_bytes - m->base_bytes, now_us - m->base_at_us);
		}
		if (!m->has_base)
			forward_update(m, report, ours);
		m->base_highest = report->highest_counter;
		m->has_highest = ours;
		m->base_frames = report->total_frames;
		m->base_bytes = report->total_bytes;
		m->base_ce = report->ce_frames;
		m->base_reordered = report->reordered;
		m->base_at_us = now_us;
		m->has_base = true;
	} else {
		m->stale++;
	}
	if (m->measured)
		m->updates++;
	cost_update(m);
	return accepted;
}

static uint64_t
interval_us(const struct sl_mmp_metrics *m, uint64_t wanted_us)
{
	uint64_t floor_us = m->updates <= 5 ? 200000 : 1000000;

	if (!m->measured || wanted_us < floor_us)
		return floor_us;
	return wanted_us > 5000000 ? 5000000 : wanted_us;
}

uint64_t
sl_mmp_sender_interval_us(const struct sl_mmp_metrics *m)
{
	return interval_us(m, 2 * (uint64_t)m->srtt_us);
}

uint64_t
sl_mmp_receiver_interval_us(const struct sl_mmp_metrics *m)
{
	return interval_us(m, (uint64_t)m->srtt_us);
}
