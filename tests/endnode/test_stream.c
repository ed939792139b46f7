/* SPDX-License-Identifier: BSD-3-Clause */
/* The account that the demo and the smoke tests stand on: each kind of harm is seen, and nothing
 * else is. */
#include "stream.h"

#include <stdlib.h>

#include "sl_test.h"

#define LEN 256

static void build(uint8_t *p, uint64_t run, uint64_t sequence)
{
	stream_build(p, LEN, STREAM_DATA, 0, run, sequence, 1000 * sequence);
}

static void feed(struct stream_rx *rx, uint64_t run, uint64_t sequence)
{
	uint8_t p[LEN];

	build(p, run, sequence);
	stream_rx_payload(rx, p, LEN, 1000 * sequence + 500);
}

SL_TEST(stream, whole)
{
	struct stream_rx rx;

	stream_rx_init(&rx);
	for (uint64_t i = 0; i < 300000; i++)
		feed(&rx, 7, i);
	SL_EXPECT_EQ(rx.received, 300000);
	SL_EXPECT_EQ(rx.bytes, 300000 * LEN);
	SL_EXPECT_EQ(stream_rx_lost(&rx, 300000), 0);
	SL_EXPECT_EQ(stream_rx_lost(&rx, 300010), 10);
	SL_EXPECT_EQ(rx.duplicated + rx.reordered + rx.corrupted + rx.foreign, 0);
	stream_rx_fini(&rx);
}

/* Random losses, repeats and delays, counted by a plain list at the same time. */
SL_TEST(stream, losses_duplicates_and_late_ones_against_a_list)
{
	enum { N = 20000 };
	struct stream_rx rx;
	uint8_t *seen = calloc(N, 1);
	uint64_t received = 0, duplicated = 0, reordered = 0, highest = 0, expect;

	SL_ASSERT(seen);
	stream_rx_init(&rx);
	for (int i = 0; i < 3 * N; i++) {
		uint64_t s = sl_test_rand() % N;

		feed(&rx, 9, s);
		if (seen[s]) {
			duplicated++;
			continue;
		}
		seen[s] = 1;
		received++;
		if (received > 1 && s < highest)
			reordered++;
		else
			highest = s;
	}
	expect = highest + 1;
	SL_EXPECT_EQ(rx.received, received);
	SL_EXPECT_EQ(rx.duplicated, duplicated);
	SL_EXPECT_EQ(rx.reordered, reordered);
	SL_EXPECT_EQ(rx.expect, expect);
	SL_EXPECT_EQ(stream_rx_lost(&rx, 0), expect - received);
	stream_rx_fini(&rx);
	free(seen);
}

SL_TEST(stream, every_flipped_bit_is_seen)
{
	struct stream_rx rx;
	uint8_t p[LEN];
	uint64_t bad = 0;

	stream_rx_init(&rx);
	for (int bit = 0; bit < LEN * 8; bit++) {
		build(p, 3, 5);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		stream_rx_payload(&rx, p, LEN, 1);
		bad++;
		SL_EXPECT_EQ(rx.corrupted + rx.foreign, bad);
	}
	SL_EXPECT_EQ(rx.received, 0);
	stream_rx_fini(&rx);
}

SL_TEST(stream, every_cut_is_seen)
{
	struct stream_rx rx;

	stream_rx_init(&rx);
	for (size_t len = 0; len < LEN; len++) {
		uint8_t p[LEN], *exact = malloc(len ? len : 1);

		SL_ASSERT(exact);
		build(p, 3, 5);
		memcpy(exact, p, len);
		stream_rx_payload(&rx, exact, len, 1);
		free(exact);
	}
	SL_EXPECT_EQ(rx.received, 0);
	SL_EXPECT_EQ(rx.corrupted + rx.foreign, LEN);
	stream_rx_fini(&rx);
}

SL_TEST(stream, new_life_of_the_sender)
{
	struct stream_rx rx;

	stream_rx_init(&rx);
	for (uint64_t i = 0; i < 10; i++)
		feed(&rx, 1, i);
	for (uint64_t i = 0; i < 5; i++)
		feed(&rx, 2, i);
	SL_EXPECT_EQ(rx.restarts, 1);
	SL_EXPECT_EQ(rx.received, 5);
	SL_EXPECT_EQ(stream_rx_lost(&rx, 5), 0);
	SL_EXPECT_EQ(rx.duplicated, 0);
	stream_rx_fini(&rx);
}

SL_TEST(stream, hello_and_end)
{
	struct stream_rx rx;
	uint8_t p[STREAM_PAYLOAD_MIN];

	stream_rx_init(&rx);
	stream_build(p, sizeof(p), STREAM_HELLO, 0, 4, 0, 1);
	stream_rx_payload(&rx, p, sizeof(p), 1);
	SL_EXPECT(rx.hello && !rx.heard);
	stream_build(p, sizeof(p), STREAM_HELLO, STREAM_HEARD, 4, 0, 1);
	stream_rx_payload(&rx, p, sizeof(p), 1);
	SL_EXPECT(rx.heard);
	stream_build(p, sizeof(p), STREAM_END, 0, 4, 123, 1);
	stream_rx_payload(&rx, p, sizeof(p), 1);
	SL_EXPECT(rx.ended);
	SL_EXPECT_EQ(rx.sent_by_peer, 123);
	stream_rx_fini(&rx);
}

/* Within 4% of the exact quantile of a sorted list. */
SL_TEST(stream, quantiles)
{
	static struct stream_histogram h;

	memset(&h, 0, sizeof(h));
	for (uint64_t i = 1; i <= 100000; i++)
		stream_histogram_add(&h, i * 10);
	for (int q = 1; q < 100; q++) {
		double got = stream_histogram_us(&h, q / 100.0), want = q * 10.0;

		SL_EXPECT_MSG(got > want * 0.96 && got < want * 1.04, "q %d: %f, wanted %f", q, got,
			want);
	}
	for (uint64_t ns = 1; ns && ns < 1ull << 62; ns = ns * 3 + 1) {
		memset(&h, 0, sizeof(h));
		stream_histogram_add(&h, ns);
		SL_EXPECT_MSG(stream_histogram_us(&h, 0.5) * 1000 > (double)ns * 0.96 - 1 &&
				      stream_histogram_us(&h, 0.5) * 1000 < (double)ns * 1.04 + 1,
			"%llu ns reads as %f us", (unsigned long long)ns,
			stream_histogram_us(&h, 0.5));
	}
}

SL_TEST(stream, silences)
{
	struct stream_rx rx;
	uint8_t p[LEN];
	const uint64_t at_ms[] = {1, 2, 52, 53, 353, 354};

	stream_rx_init(&rx);
	for (uint64_t i = 0; i < 6; i++) {
		build(p, 3, i);
		stream_rx_payload(&rx, p, LEN, at_ms[i] * 1000000);
	}
	SL_EXPECT_EQ(rx.longest_gap_ns, 300000000);
	SL_EXPECT_EQ(rx.latest_gap_ns, 300000000);
	SL_EXPECT_EQ(rx.gaps, 1);
	stream_rx_fini(&rx);
}
