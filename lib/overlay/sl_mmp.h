/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_MMP_H
#define SL_MMP_H
/*
 * Link metrics (MMP): what is counted per authentic frame on receipt and per frame sent, what the two report kinds
 * are made of, and what a report from the peer says about the link. Link layer facts, section 15.
 *
 * Receive side: struct sl_mmp_rx is written by the session's owner worker alone (plain stores) and read by control
 * (relaxed; a report may mix two neighbouring frames, which the protocol tolerates). The one field that goes the other
 * way is `interval`: control raises it with each report, and the worker closes its loss burst at the next frame.
 *
 * Counters live in the session, so a cutover starts them afresh and a draining session cannot disturb them; what the
 * protocol counts since link set-up is the session's number plus the caller's sum over the link's other sessions.
 * That is also why no jitter is suppressed after a cutover: the first frame of a session gives no difference.
 *
 * Per link, on control: one sl_mmp_snapshot per session (what the last reports said), one sl_mmp_metrics.
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_sender_report;
struct sl_receiver_report;

/* Per session, receive side. All zero at start. */
struct sl_mmp_rx {
	uint64_t frames, bytes; /* authentic frames, whole FMP packets */
	uint64_t highest;	/* highest counter seen on this session */
	uint64_t expected;	/* next counter expected, for bursts */
	uint64_t last_rx_us;	/* monotonic time of the last authentic frame */
	uint64_t burst_sum;	/* frames missing in all bursts */
	uint32_t last_ts_ms;	/* inner timestamp of the last authentic frame */
	uint32_t reordered;
	uint32_t ce_frames;	/* stops at its largest value, as the other 32-bit sums do */
	uint32_t bursts;	/* loss bursts begun */
	uint32_t burst_open;	/* length of the open burst, 0 = none */
	uint32_t burst_longest; /* since interval_seen last changed */
	uint32_t jitter_q4_us;	/* jitter << 4 */
	uint32_t spin;		/* SP (0 or 4) of the highest frame */
	uint32_t interval_seen; /* the `interval` that burst_open and burst_longest belong to */
	uint32_t interval;	/* written by control */
};

/* The difference in transit time to the frame before: as RFC 3550 smooths it. */
static inline void
sl_mmp_rx_jitter(struct sl_mmp_rx *m, uint32_t ts_ms, uint64_t now_us)
{
	/* Both differences as signed numbers: the inner timestamp wraps, and comes from the peer. */
	const int64_t d = (int64_t)(now_us - m->last_rx_us) - (int64_t)(int32_t)(ts_ms - m->last_ts_ms) * 1000;
	uint64_t mag = (uint64_t)(d < 0 ? -d : d);

	if (mag > UINT32_MAX >> 5) /* 134 s: keeps jitter << 4 within 32 bits */
		mag = UINT32_MAX >> 5;
	m->jitter_q4_us += (uint32_t)mag - (m->jitter_q4_us >> 4);
}

/* A frame that is the session's first, or not the one expected, or the first since a report. */
static inline void
sl_mmp_rx_odd(struct sl_mmp_rx *m, uint64_t counter, uint32_t interval, uint8_t flags)
{
	if (interval != m->interval_seen) {
		m->interval_seen = interval;
		m->burst_open = 0;
		m->burst_longest = 0;
	}
	if (m->frames && counter > m->expected) {
		uint64_t gap = counter - m->expected;
		uint64_t open = m->burst_open + (gap > UINT32_MAX ? UINT32_MAX : gap);

		if (!m->burst_open)
			m->bursts++;
		m->burst_open = open > UINT32_MAX ? UINT32_MAX : (uint32_t)open;
		m->burst_sum += gap;
		if (m->burst_open > m->burst_longest)
			m->burst_longest = m->burst_open;
	} else if (m->frames) {
		m->burst_open = 0;
	}
	if (counter >= m->expected || !m->frames)
		m->expected = counter + 1;
	if (counter < m->highest) {
		m->reordered += m->reordered != UINT32_MAX;
	} else {
		m->highest = counter;
		m->spin = flags & 0x04u;
	}
}

/* One authentic frame. now_us: monotonic, microseconds; bytes: whole FMP packet. Owner worker only. */
static inline void
sl_mmp_rx_frame(struct sl_mmp_rx *m, uint64_t counter, uint32_t ts_ms, uint32_t bytes, uint64_t now_us, uint8_t flags)
{
	const uint32_t interval = __atomic_load_n(&m->interval, __ATOMIC_RELAXED);

	if (__builtin_expect(m->frames != 0, 1))
		sl_mmp_rx_jitter(m, ts_ms, now_us);
	if (__builtin_expect((counter == m->expected) & (interval == m->interval_seen) & (m->frames != 0), 1)) {
		m->burst_open = 0;
		m->expected = counter + 1;
		m->highest = counter;
		m->spin = flags & 0x04u;
	} else {
		sl_mmp_rx_odd(m, counter, interval, flags);
	}
	if (__builtin_expect(flags & 0x02u, 0))
		m->ce_frames += m->ce_frames != UINT32_MAX;
	m->frames++;
	m->bytes += bytes;
	m->last_ts_ms = ts_ms;
	m->last_rx_us = now_us;
}

/* --- reports we send: control ---------------------------------------------------------------------------------- */

/* Control's memory of the last reports of one session; the interval fields are differences against it. Zero at start. */
struct sl_mmp_snapshot {
	/* of the last ReceiverReport */
	uint64_t rx_frames, rx_bytes, burst_sum;
	uint32_t bursts;
	/* of the last SenderReport */
	uint32_t tx_ts_ms;
	uint64_t tx_next, tx_bytes;
};

/*
 * Makes the report of the frames since the last one and begins a new interval. False, and nothing changed, when no
 * frame has come since. other_*: frames and bytes of the link's other sessions, for the sums since link set-up.
 * The OWD trend is sent as 0: the reference's formula yields no trend and no one decides by it (15.6).
 */
bool sl_mmp_receiver_report(struct sl_receiver_report *report, struct sl_mmp_snapshot *snap, struct sl_mmp_rx *rx,
	uint64_t other_frames, uint64_t other_bytes, uint64_t now_us);
/*
 * The same for frames sent: tx_next is the session's next counter, tx_bytes its bytes, now_ts_ms its inner timestamp
 * now. The interval's first timestamp is that of the last report, since workers keep no time per sent frame.
 */
bool sl_mmp_sender_report(struct sl_sender_report *report, struct sl_mmp_snapshot *snap, uint64_t tx_next,
	uint64_t tx_bytes, uint32_t now_ts_ms, uint64_t other_frames, uint64_t other_bytes);

/* --- what the peer's reports say: control ---------------------------------------------------------------------- */

/* One per link. sl_mmp_metrics_init() first. Read the first block; the second is the memory of the last report. */
struct sl_mmp_metrics {
	bool measured; /* has an SRTT */
	int64_t srtt_us, rttvar_us;
	double forward, reverse; /* delivery ratios, 1 at start */
	double loss;		 /* 1 - forward */
	double etx;		 /* 1 .. 100 */
	double cost;		 /* etx * (1 + srtt_ms / 100); 1.0 before the first SRTT */
	double goodput_bytes_per_s;
	uint32_t jitter_us; /* as the peer sees us */
	uint32_t updates;   /* reports since there is an SRTT: the report interval follows it */
	uint64_t stale;	    /* reports ignored */

	bool has_base, has_highest, has_reverse_base, has_goodput;
	uint64_t base_highest, base_frames, base_bytes, base_at_us;
	uint64_t loss_highest, loss_frames, loss_excused; /* where the span begins that loss is judged from next */
	bool has_loss_base;
	uint32_t base_ce, base_reordered;
	uint64_t reverse_highest, reverse_frames;

	/* Of what we sent since the report before, the share that the peer has not got (yet). */
	double missing;
	bool missing_known;	/* not from a report that speaks of another session */
	uint64_t sent_before;	/* the caller's: frames sent on the link's other sessions */
	/*
	 * The caller's: of all frames until the report's highest, those that may be lost without that being the link's loss
	 * (probes of its MTU). They do not count as sent, so whatever arrives of them makes up for others' loss at most.
	 */
	uint64_t excused;
	int64_t gap;		/* frames missing in all, in the latest report */
	uint64_t gap_sent;	/* of so many sent */
};
void sl_mmp_metrics_init(struct sl_mmp_metrics *m);
/* The link has made another session current: SRTT, ETX, reverse delivery and goodput stay (15.7). */
void sl_mmp_metrics_cutover(struct sl_mmp_metrics *m);

/*
 * A ReceiverReport that came on the current session. inner_now_us: time since the session's origin (our inner
 * timestamp, finer); tx_next: the session's next send counter; rx: its receive counters. False when the report is
 * stale: then only the reverse delivery has moved. One whose highest counter this session never sent gives no loss.
 *
 * A round trip is now - echo - dwell, with our now in microseconds. The echo is a whole millisecond cut down, half a
 * millisecond on average, which is taken off; a sample is at least 1 us. So a link far below 1 ms is measured too
 * (routing facts, 17, W5) and reads as the cheapest.
 */
bool sl_mmp_on_report(struct sl_mmp_metrics *m, const struct sl_receiver_report *report, uint64_t inner_now_us,
	uint64_t now_us, uint64_t tx_next, const struct sl_mmp_rx *rx);

/* How long to wait from one report to the next (15.5). */
uint64_t sl_mmp_sender_interval_us(const struct sl_mmp_metrics *m);
uint64_t sl_mmp_receiver_interval_us(const struct sl_mmp_metrics *m);

#ifdef __cplusplus
}
#endif
#endif
