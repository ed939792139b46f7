/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters and reports against a plain reading of link layer facts, 15.6; metrics against worked examples of 15.7. */
#include "sl_mmp.h"
#include "sl_test.h"
#include "sl_wire.h"
#include <math.h>
#include <stdlib.h>

/* --- receiver: the oracle ---------------------------------------------------------------------------------------- */

/* Remembers everything; works a report out from the lists. */
struct oracle {
	uint64_t highest, expected, total_frames, total_bytes, frames, bytes;
	uint64_t reordered, ce;
	__int128 jitter16;
	uint64_t last_us;
	uint32_t last_ts;
	bool any;
	uint64_t burst[4096]; /* lengths, this interval; the last may be open */
	unsigned bursts;
	bool open;
};

static void
oracle_frame(
	struct oracle *o, uint64_t c, uint32_t ts, uint32_t bytes, uint64_t now_us, uint8_t flags)
{
	if (!o->any) {
		o->expected = c + 1;
	} else {
		__int128 r = (__int128)now_us - o->last_us,
			 s = (__int128)(int32_t)(ts - o->last_ts) * 1000, d = r - s;

		if (d < 0)
			d = -d;
		if (d > 134217727)
			d = 134217727;
		o->jitter16 += d - o->jitter16 / 16;
		if (c > o->expected) {
			if (!o->open)
				o->burst[o->bursts++] = 0;
			o->burst[o->bursts - 1] += c - o->expected;
			o->open = true;
		} else {
			o->open = false;
		}
		if (c >= o->expected)
			o->expected = c + 1;
	}
	if (o->any && c < o->highest)
		o->reordered++;
	else
		o->highest = c;
	if (flags & SL_FLAG_CE)
		o->ce++;
	o->frames++;
	o->bytes += bytes;
	o->total_frames++;
	o->total_bytes += bytes;
	o->last_us = now_us;
	o->last_ts = ts;
	o->any = true;
}

static bool
oracle_report(struct oracle *o, struct sl_receiver_report *r, uint64_t now_us)
{
	uint64_t longest = 0, dwell = now_us / 1000 - o->last_us / 1000;
	double sum = 0;

	if (o->frames == 0)
		return false;
	for (unsigned i = 0; i < o->bursts; i++) {
		longest = o->burst[i] > longest ? o->burst[i] : longest;
		sum += (double)o->burst[i];
	}
	memset(r, 0, sizeof(*r));
	r->highest_counter = o->highest;
	r->total_frames = o->total_frames;
	r->total_bytes = o->total_bytes;
	r->echo_ts_ms = dwell > 65535 ? 0 : o->last_ts;
	r->dwell_ms = (uint16_t)(dwell > 65535 ? 65535 : dwell);
	r->burst_longest = (uint16_t)(longest > 65535 ? 65535 : longest);
	if (o->bursts) {
		double mean = sum / o->bursts * 256;

		r->burst_mean_8_8 = (uint16_t)(mean > 65535 ? 65535 : mean);
	}
	r->jitter_us = (uint32_t)(o->jitter16 / 16);
	r->ce_frames = (uint32_t)o->ce;
	r->bursts = o->bursts;
	r->reordered = (uint32_t)o->reordered;
	r->interval_frames = (uint32_t)o->frames;
	r->interval_bytes = (uint32_t)(o->bytes > UINT32_MAX ? UINT32_MAX : o->bytes);
	o->frames = 0;
	o->bytes = 0;
	o->bursts = 0;
	o->open = false;
	return true;
}

static void
reports_equal(const struct sl_receiver_report *got, const struct sl_receiver_report *want)
{
	SL_EXPECT_EQ(got->highest_counter, want->highest_counter);
	SL_EXPECT_EQ(got->total_frames, want->total_frames);
	SL_EXPECT_EQ(got->total_bytes, want->total_bytes);
	SL_EXPECT_EQ(got->echo_ts_ms, want->echo_ts_ms);
	SL_EXPECT_EQ(got->dwell_ms, want->dwell_ms);
	SL_EXPECT_EQ(got->burst_longest, want->burst_longest);
	SL_EXPECT_EQ(got->burst_mean_8_8, want->burst_mean_8_8);
	SL_EXPECT_EQ(got->jitter_us, want->jitter_us);
	SL_EXPECT_EQ(got->ce_frames, want->ce_frames);
	SL_EXPECT_EQ(got->bursts, want->bursts);
	SL_EXPECT_EQ(got->reordered, want->reordered);
	SL_EXPECT_EQ(got->interval_frames, want->interval_frames);
	SL_EXPECT_EQ(got->interval_bytes, want->interval_bytes);
	SL_EXPECT_EQ(got->owd_trend_us_s, 0);
}

static void
run_against_oracle(unsigned loss_percent, unsigned reorder_percent, unsigned far_percent)
{
	static struct oracle o;
	struct sl_mmp_rx rx = {0};
	struct sl_mmp_snapshot snap = {0};
	struct sl_receiver_report got, want;
	uint64_t next = sl_test_rand() % 5000, now = 1 + sl_test_rand() % 1000000000;
	uint32_t ts = (uint32_t)sl_test_rand();

	memset(&o, 0, sizeof(o));
	for (int i = 0; i < 3000 && !sl_test_failed(); i++) {
		uint64_t counter = next;
		uint32_t bytes = (uint32_t)(37 + sl_test_rand() % 1400);
		uint8_t flags = (uint8_t)(sl_test_rand() & 7);

		if (sl_test_rand() % 100 < loss_percent)
			counter = next += 1 + sl_test_rand() % 20;
		else if (sl_test_rand() % 100 < reorder_percent && next > 50)
			counter = next - sl_test_rand() % 50;
		else if (sl_test_rand() % 1000 < far_percent)
			counter = next += sl_test_rand() % (1ull << 34);
		if (counter == next)
			next++;
		now += sl_test_rand() % 2000;
		ts += (uint32_t)(sl_test_rand() % 3);
		if (sl_test_rand() % 500 == 0)
			ts = (uint32_t)sl_test_rand(); /* a peer may write anything here */
		if (sl_test_rand() % 700 == 0)
			now += 80000000;
		sl_mmp_rx_frame(&rx, counter, ts, bytes, now, flags);
		oracle_frame(&o, counter, ts, bytes, now, flags);
		if (sl_test_rand() % 40 == 0 || i == 2999) {
			uint64_t at =
				now + (sl_test_rand() % 20 ? sl_test_rand() % 1000000 : 70000000);

			SL_EXPECT(sl_mmp_receiver_report(&got, &snap, &rx, 0, 0, at));
			SL_EXPECT(oracle_report(&o, &want, at));
			reports_equal(&got, &want);
			SL_EXPECT(!sl_mmp_receiver_report(&got, &snap, &rx, 0, 0, at + 1000));
			SL_EXPECT(!oracle_report(&o, &want, at + 1000));
			now = at;
		}
	}
}

SL_TEST(mmp_rx, in_order)
{
	run_against_oracle(0, 0, 0);
}

SL_TEST(mmp_rx, loss_and_reordering)
{
	for (int i = 0; i < 20; i++)
		run_against_oracle(20, 0, 0);
	for (int i = 0; i < 20; i++)
		run_against_oracle(10, 20, 0);
	for (int i = 0; i < 20; i++)
		run_against_oracle(60, 5, 0);
}

SL_TEST(mmp_rx, huge_gaps)
{
	for (int i = 0; i < 20; i++)
		run_against_oracle(10, 10, 20);
}

SL_TEST(mmp_rx, worked_example)
{
	struct sl_mmp_rx rx = {0};
	struct sl_mmp_snapshot snap = {0};
	struct sl_receiver_report r;

	/* 10 is the first; 11, 12 lost, 13; 14 lost, 15: one burst of 3. 16 closes it. 17 lost, 18: a second of 1. */
	static const uint64_t counters[] = {10, 13, 15, 16, 18};

	for (size_t i = 0; i < 5; i++)
		sl_mmp_rx_frame(&rx, counters[i], 1000 + (uint32_t)i, 100, 5000000 + i * 1000,
			i == 2 ? SL_FLAG_CE : 0);
	SL_EXPECT(sl_mmp_receiver_report(&r, &snap, &rx, 1000, 200000, 5104000));
	SL_EXPECT_EQ(r.highest_counter, 18);
	SL_EXPECT_EQ(r.total_frames, 1005); /* with the link's earlier sessions */
	SL_EXPECT_EQ(r.total_bytes, 200500);
	SL_EXPECT_EQ(r.echo_ts_ms, 1004);
	SL_EXPECT_EQ(r.dwell_ms, 100);
	SL_EXPECT_EQ(r.bursts, 2);
	SL_EXPECT_EQ(r.burst_longest, 3);
	SL_EXPECT_EQ(r.burst_mean_8_8, 2 * 256);
	SL_EXPECT_EQ(r.jitter_us, 0);
	SL_EXPECT_EQ(r.ce_frames, 1);
	SL_EXPECT_EQ(r.reordered, 0);
	SL_EXPECT_EQ(r.interval_frames, 5);
	SL_EXPECT_EQ(r.interval_bytes, 500);
	/* The report has closed the burst: the next gap is a burst of its own. A late frame counts as reordered. */
	sl_mmp_rx_frame(&rx, 20, 1005, 100, 5005000, 0);
	sl_mmp_rx_frame(&rx, 17, 1006, 100, 5006000, 0);
	SL_EXPECT(sl_mmp_receiver_report(&r, &snap, &rx, 1000, 200000, 5006000));
	SL_EXPECT_EQ(r.bursts, 1);
	SL_EXPECT_EQ(r.burst_longest, 1);
	SL_EXPECT_EQ(r.reordered, 1);
	SL_EXPECT_EQ(r.highest_counter, 20);
	/* Quiet interval: nothing of the last one is left. */
	sl_mmp_rx_frame(&rx, 21, 1007, 100, 5007000, 0);
	SL_EXPECT(sl_mmp_receiver_report(&r, &snap, &rx, 1000, 200000, 5007000));
	SL_EXPECT_EQ(r.bursts, 0);
	SL_EXPECT_EQ(r.burst_longest, 0);
	SL_EXPECT_EQ(r.burst_mean_8_8, 0);
}

SL_TEST(mmp_rx, spin_follows_the_highest_frame)
{
	struct sl_mmp_rx rx = {0};

	sl_mmp_rx_frame(&rx, 0, 0, 40, 1, SL_FLAG_SP | SL_FLAG_K);
	SL_EXPECT_EQ(rx.spin, SL_FLAG_SP);
	sl_mmp_rx_frame(&rx, 5, 0, 40, 2, SL_FLAG_K);
	SL_EXPECT_EQ(rx.spin, 0);
	sl_mmp_rx_frame(&rx, 4, 0, 40, 3, SL_FLAG_SP);
	SL_EXPECT_EQ(rx.spin, 0);
}

SL_TEST(mmp_rx, sums_stop_instead_of_wrapping)
{
	struct sl_mmp_rx rx = {.frames = 1,
		.highest = 100,
		.expected = 101,
		.reordered = UINT32_MAX - 1,
		.ce_frames = UINT32_MAX - 1};

	for (int i = 0; i < 3; i++)
		sl_mmp_rx_frame(&rx, 50, 0, 40, 1, SL_FLAG_CE);
	SL_EXPECT_EQ(rx.reordered, UINT32_MAX);
	SL_EXPECT_EQ(rx.ce_frames, UINT32_MAX);
}

/* --- sender ------------------------------------------------------------------------------------------------------ */

SL_TEST(mmp_tx, sender_report)
{
	struct sl_mmp_snapshot snap = {0};
	struct sl_sender_report r;

	SL_EXPECT(!sl_mmp_sender_report(&r, &snap, 0, 0, 500, 0, 0));
	SL_EXPECT(sl_mmp_sender_report(&r, &snap, 10, 1000, 900, 0, 0));
	SL_EXPECT_EQ(r.first_counter, 0);
	SL_EXPECT_EQ(r.last_counter, 9);
	SL_EXPECT_EQ(r.first_ts_ms, 0);
	SL_EXPECT_EQ(r.last_ts_ms, 900);
	SL_EXPECT_EQ(r.interval_bytes, 1000);
	SL_EXPECT_EQ(r.total_frames, 10);
	SL_EXPECT_EQ(r.total_bytes, 1000);
	SL_EXPECT(!sl_mmp_sender_report(&r, &snap, 10, 1000, 1900, 0, 0));
	SL_EXPECT(sl_mmp_sender_report(&r, &snap, 11, 1037 + (1ull << 33), 1900, 50, 5000));
	SL_EXPECT_EQ(r.first_counter, 10);
	SL_EXPECT_EQ(r.last_counter, 10);
	SL_EXPECT_EQ(r.first_ts_ms, 900);
	SL_EXPECT_EQ(r.interval_bytes, UINT32_MAX);
	SL_EXPECT_EQ(r.total_frames, 61);
	SL_EXPECT_EQ(r.total_bytes, 6037 + (1ull << 33));
}

/* --- metrics ----------------------------------------------------------------------------------------------------- */

#define NEAR(got, want)                                                                            \
	SL_EXPECT_MSG(fabs((got) - (want)) < 1e-9, "%s: %.12g, not %.12g", #got, (double)(got),    \
		(double)(want))

/* A report that nothing but the round trip matters of. */
static struct sl_receiver_report
echo_report(uint64_t highest, uint32_t echo_ms, uint16_t dwell_ms)
{
	struct sl_receiver_report r = {.highest_counter = highest,
		.total_frames = highest + 1,
		.total_bytes = (highest + 1) * 100,
		.echo_ts_ms = echo_ms,
		.dwell_ms = dwell_ms};

	return r;
}

SL_TEST(mmp_metrics, start)
{
	struct sl_mmp_metrics m;

	sl_mmp_metrics_init(&m);
	SL_EXPECT(!m.measured);
	NEAR(m.etx, 1);
	NEAR(m.cost, 1);
	NEAR(m.loss, 0);
	SL_EXPECT_EQ(sl_mmp_sender_interval_us(&m), 200000);
	SL_EXPECT_EQ(sl_mmp_receiver_interval_us(&m), 200000);
}

SL_TEST(mmp_metrics, round_trip)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_rx rx = {0};
	struct sl_receiver_report r = echo_report(0, 1000, 300);
	int64_t srtt = 50000, var = 25000;

	sl_mmp_metrics_init(&m);
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1350500, 10000000, 1000, &rx));
	SL_EXPECT(m.measured);
	SL_EXPECT_EQ(m.srtt_us,
		50000); /* 1350.5 - 1000 - 300 ms, less the half millisecond the echo lost */
	SL_EXPECT_EQ(m.rttvar_us, 25000);
	NEAR(m.cost, 1.5);
	for (uint64_t i = 1; i < 200; i++) {
		int64_t sample = (int64_t)(sl_test_rand() % 300000) + 1000;
		uint64_t now = 1000000 + i * 1000000;
		uint32_t echo = (uint32_t)((now - 500 - (uint64_t)sample) / 1000);

		r = echo_report(i, echo, 0);
		sample = (int64_t)now - echo * 1000ll - 500;
		SL_EXPECT(sl_mmp_on_report(&m, &r, now, now, 1000, &rx));
		var = var - var / 4 + llabs(srtt - sample) / 4;
		srtt = srtt - srtt / 8 + sample / 8;
		SL_EXPECT_EQ(m.srtt_us, srtt);
		SL_EXPECT_EQ(m.rttvar_us, var);
		NEAR(m.cost, 1 + (double)srtt / 100000);
	}
}

SL_TEST(mmp_metrics, no_round_trip)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_rx rx = {0};
	struct sl_receiver_report r;

	sl_mmp_metrics_init(&m);
	r = echo_report(0, 0, 65535); /* no echo */
	SL_EXPECT(sl_mmp_on_report(&m, &r, 5000000, 5000000, 100, &rx));
	r = echo_report(1, 6000, 0); /* from the future */
	SL_EXPECT(sl_mmp_on_report(&m, &r, 5000000, 5000000, 100, &rx));
	r = echo_report(2, 4000, 1002); /* held longer than it was away */
	SL_EXPECT(sl_mmp_on_report(&m, &r, 5000999, 5000000, 100, &rx));
	SL_EXPECT(!m.measured);
	NEAR(m.cost, 1);
	SL_EXPECT_EQ(m.updates, 0);
	r = echo_report(3, 4000, 1001); /* one millisecond of rounding: the nearest there is */
	SL_EXPECT(sl_mmp_on_report(&m, &r, 5000001, 5000000, 100, &rx));
	SL_EXPECT(m.measured);
	SL_EXPECT_EQ(m.srtt_us, 1);
	/* The inner timestamp has wrapped between echo and now. */
	sl_mmp_metrics_init(&m);
	r = echo_report(0, 0xfffffff0, 10);
	SL_EXPECT(sl_mmp_on_report(&m, &r, (0x100000000ull + 20) * 1000, 5000000, 100, &rx));
	SL_EXPECT_EQ(m.srtt_us, 25500);
}

/* A link of 100 us: measured, and far below the 1 ms that the clock of the wire can tell. */
SL_TEST(mmp_metrics, below_one_millisecond)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_rx rx = {0};
	uint64_t now = 1000000;
	double sum = 0;

	sl_mmp_metrics_init(&m);
	for (uint64_t i = 0; i < 500; i++) {
		uint64_t sent, held = sl_test_rand() % 1000000, arrived;
		struct sl_receiver_report r;

		sent = now;
		arrived = sent + 50;
		now = arrived + held + 50;
		r = echo_report(i, (uint32_t)(sent / 1000),
			(uint16_t)((arrived + held) / 1000 - arrived / 1000));
		SL_EXPECT(sl_mmp_on_report(&m, &r, now, now, 1000, &rx));
		SL_EXPECT(m.measured);
		if (i >= 20)
			sum += (double)m.srtt_us;
		now += sl_test_rand() % 1000000;
	}
	SL_EXPECT_LT(sum / 480, 700);
}

SL_TEST(mmp_metrics, delivery_and_etx)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_rx rx = {0};
	struct sl_receiver_report r = {.highest_counter = 100,
		.total_frames = 101,
		.total_bytes = 10000,
		.echo_ts_ms = 950};

	sl_mmp_metrics_init(&m);
	rx.highest = 1000;
	rx.frames = 900;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1000500, 1000000, 10000, &rx)); /* sets the base only */
	NEAR(m.etx, 1);
	NEAR(m.loss, 0);
	SL_EXPECT_EQ(m.srtt_us, 50000);
	r.highest_counter = 200;
	r.total_frames = 181;
	r.total_bytes = 20000;
	r.echo_ts_ms = 1950;
	rx.highest = 1200;
	rx.frames = 1100;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 2000500, 2000000, 10000, &rx));
	NEAR(m.forward, 0.8);
	NEAR(m.reverse, 1);
	NEAR(m.loss, 0.2);
	NEAR(m.etx, 1.25);
	NEAR(m.goodput_bytes_per_s, 10000);
	r.highest_counter = 300;
	r.total_frames = 231;
	r.total_bytes = 30000;
	r.echo_ts_ms = 3450;
	rx.highest = 1300;
	rx.frames = 1200;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 3500500, 4000000, 10000, &rx));
	NEAR(m.etx, 2);
	NEAR(m.cost, 3.0); /* ETX 2, SRTT 50 ms: routing facts, 5.4 */
	NEAR(m.goodput_bytes_per_s, 10000 - 5000 / 4.0);
	/* Same counters again: stale, but our own receiver has news. */
	rx.highest = 1400;
	rx.frames = 1250;
	SL_EXPECT(!sl_mmp_on_report(&m, &r, 4000500, 5000000, 10000, &rx));
	SL_EXPECT_EQ(m.stale, 1);
	NEAR(m.reverse, 0.5);
	NEAR(m.etx, 4);
	SL_EXPECT_EQ(m.srtt_us, 50000);
	/* Nothing arrives any more: 100, not infinity. */
	r.highest_counter = 400;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 5000500, 6000000, 10000, &rx));
	NEAR(m.forward, 0);
	NEAR(m.etx, 100);
	/* More frames than counters (late ones of the time before): 1 at most. */
	r.highest_counter = 410;
	r.total_frames = 331;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 6000500, 7000000, 10000, &rx));
	NEAR(m.forward, 1);
}

/* A quiet link: the report was made between two frames that had changed places. */
SL_TEST(mmp_metrics, one_overtaken_frame_is_no_loss)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_rx rx;
	struct sl_receiver_report r = {.highest_counter = 9, .total_frames = 10, .total_bytes = 1000};

	sl_mmp_metrics_init(&m);
	memset(&rx, 0, sizeof(rx));
	sl_mmp_on_report(&m, &r, 0, 1000000, 100, &rx);
	r.highest_counter = 11;
	r.total_frames = 11;
	r.total_bytes = 1100;
	sl_mmp_on_report(&m, &r, 0, 2000000, 100, &rx);
	NEAR(m.etx, 1);
	NEAR(m.loss, 0);
	/* It has come. */
	r.highest_counter = 13;
	r.total_frames = 14;
	r.total_bytes = 1400;
	sl_mmp_on_report(&m, &r, 0, 3000000, 100, &rx);
	NEAR(m.etx, 1);
	/* One that never comes counts when there is enough to compare it with. */
	for (unsigned i = 0; i < 9; i++) {
		r.highest_counter += 2;
		r.total_frames += i ? 2 : 1;
		r.total_bytes += 200;
		sl_mmp_on_report(&m, &r, 0, 4000000 + i * 1000000u, 100, &rx);
		if (i < 7)
			NEAR(m.loss, 0);
		if (i == 7)
			NEAR(m.loss, 1.0 / 16);
	}
	/* Two of few count at once. */
	r.highest_counter += 4;
	r.total_frames += 2;
	r.total_bytes += 200;
	sl_mmp_on_report(&m, &r, 0, 20000000, 100, &rx);
	NEAR(m.loss, 2.0 / 4);
}

SL_TEST(mmp_metrics, stale)
{
	struct sl_mmp_rx rx = {0};
	struct sl_receiver_report base = {.highest_counter = 100,
		.total_frames = 90,
		.total_bytes = 9000,
		.ce_frames = 5,
		.reordered = 6,
		.echo_ts_ms = 900};

	for (int field = 0; field < 6; field++) {
		struct sl_receiver_report r = base;
		struct sl_mmp_metrics m;
		int64_t srtt;

		sl_mmp_metrics_init(&m);
		SL_EXPECT(sl_mmp_on_report(&m, &base, 1000000, 1000000, 1000, &rx));
		srtt = m.srtt_us;
		r.highest_counter = 200;
		r.total_frames = 190;
		r.total_bytes = 19000;
		r.echo_ts_ms = 1000;
		switch (field) {
		case 0:
			r.highest_counter = 99;
			break;
		case 1:
			r.total_frames = 89;
			break;
		case 2:
			r.total_bytes = 8999;
			break;
		case 3:
			r.ce_frames = 4;
			break;
		case 4:
			r.reordered = 5;
			break;
		default:
			break;
		}
		SL_EXPECT_EQ(sl_mmp_on_report(&m, &r, 2000000, 2000000, 1000, &rx), field == 5);
		SL_EXPECT_EQ(m.srtt_us == srtt, field != 5);
		SL_EXPECT_EQ(m.stale, field != 5);
		NEAR(m.forward, 1);
	}
}

SL_TEST(mmp_metrics, cutover)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_rx old = {.highest = 1000, .frames = 1000},
			 fresh = {.highest = 10, .frames = 11};
	struct sl_receiver_report r = {.highest_counter = 100,
		.total_frames = 100,
		.total_bytes = 9000,
		.echo_ts_ms = 900};

	sl_mmp_metrics_init(&m);
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1000500, 1000000, 1000, &old));
	r.highest_counter = 200;
	r.total_frames = 150;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1000500, 2000000, 1000, &old));
	NEAR(m.etx, 2);
	sl_mmp_metrics_cutover(&m);
	NEAR(m.etx, 2);
	NEAR(m.cost, 4);
	NEAR(m.forward, 1);
	SL_EXPECT(m.measured);
	/* The new session's counters are lower: base, no loss, no stale report. */
	r.highest_counter = 3;
	r.total_frames = 153;
	r.reordered = 0;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1000500, 3000000, 10, &fresh));
	NEAR(m.etx, 2);
	r.highest_counter = 13;
	r.total_frames = 163;
	fresh.highest = 20;
	fresh.frames = 21;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1000500, 4000000, 20, &fresh));
	NEAR(m.etx, 1);
}

SL_TEST(mmp_metrics, report_intervals)
{
	struct sl_mmp_metrics m;

	sl_mmp_metrics_init(&m);
	m.measured = true;
	m.srtt_us = 150000;
	m.updates = 5;
	SL_EXPECT_EQ(sl_mmp_sender_interval_us(&m), 300000);
	SL_EXPECT_EQ(sl_mmp_receiver_interval_us(&m), 200000);
	m.updates = 6;
	SL_EXPECT_EQ(sl_mmp_sender_interval_us(&m), 1000000);
	m.srtt_us = 2000000;
	SL_EXPECT_EQ(sl_mmp_sender_interval_us(&m), 4000000);
	SL_EXPECT_EQ(sl_mmp_receiver_interval_us(&m), 2000000);
	m.srtt_us = 20000000;
	SL_EXPECT_EQ(sl_mmp_sender_interval_us(&m), 5000000);
	SL_EXPECT_EQ(sl_mmp_receiver_interval_us(&m), 5000000);
}

/* After a cutover the reference may go on reporting the old session's highest counter: link layer facts, 15.6. */
SL_TEST(mmp_metrics, highest_counter_of_the_old_session)
{
	struct sl_mmp_metrics m = {0};
	struct sl_mmp_rx rx = {0};
	struct sl_receiver_report r = {
		.highest_counter = 171, .total_frames = 200, .total_bytes = 20000, .echo_ts_ms = 100};

	sl_mmp_metrics_cutover(&m);
	SL_EXPECT(sl_mmp_on_report(&m, &r, 110000, 1000000, 5, &rx));
	SL_EXPECT(m.measured);
	r.total_frames += 5;
	r.total_bytes += 500;
	r.reordered += 5;
	r.echo_ts_ms = 1100;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1105000, 2000000, 10, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 1000);
	SL_EXPECT_EQ(m.goodput_bytes_per_s, 500);
	/* A late frame of the old session raises it: still nothing that we have sent on this one. */
	r.total_frames += 2;
	r.highest_counter = 175;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1106000, 2001000, 10, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 1000);
	/* Our own counter has passed it: loss is measured from here on. */
	r.total_frames += 1;
	r.highest_counter = 180;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 2105000, 3000000, 200, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 1000);
	r.total_frames += 5;
	r.highest_counter = 190;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 3105000, 4000000, 200, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 500);
	/* And one that falls is stale again. */
	r.highest_counter = 185;
	r.total_frames += 5;
	SL_EXPECT(!sl_mmp_on_report(&m, &r, 4105000, 5000000, 200, &rx));
}

/* Or it falls to what this session has sent: not stale, and the base of the next. */
SL_TEST(mmp_metrics, highest_counter_falls_to_the_new_session)
{
	struct sl_mmp_metrics m = {0};
	struct sl_mmp_rx rx = {0};
	struct sl_receiver_report r = {.highest_counter = 171, .total_frames = 200, .total_bytes = 20000};

	sl_mmp_metrics_cutover(&m);
	SL_EXPECT(sl_mmp_on_report(&m, &r, 110000, 1000000, 5, &rx));
	r.highest_counter = 8;
	r.total_frames += 5;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 1105000, 2000000, 12, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 1000);
	r.highest_counter = 18;
	r.total_frames += 5;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 2105000, 3000000, 20, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 500);
	/* 20 has not been sent yet, 19 has. */
	r.highest_counter = 20;
	SL_EXPECT(sl_mmp_on_report(&m, &r, 3105000, 4000000, 20, &rx));
	SL_EXPECT_EQ(m.forward * 1000, 500);
}
