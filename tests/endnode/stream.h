/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STREAM_H
#define STREAM_H
/*
 * A numbered stream of payloads and its exact account: what was sent, and of that what came, came
 *twice, came late, came broken. No socket, no clock: time is given. One thread.
 *
 * Payload, little endian:
 *	0  two zero bytes: to a relay this is plain session data without coordinates (routing facts,
 *section 10) 2  kind: enum stream_kind 3  flags of a hello: STREAM_HEARD 4  "SLP1" 8  run: random,
 *one for each life of the sender 16 sequence, from 0; of a hello or an end: how many data payloads
 *were sent 24 time of sending, monotonic nanoseconds (both ends run on one machine) 32 checksum of
 *everything but itself 40 pseudo-random bytes grown from run and sequence, checked byte for byte
 *
 * Invariant of the account, per run: sequences below `expect` = received + lost, each counted once;
 *duplicates and corrupted payloads are counted on top.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STREAM_PAYLOAD_MIN 40
#define STREAM_HEARD 0x01
#define STREAM_SEQUENCE_MAX (1ull << 30) /* the account's bitmap is 128 MiB then */

enum stream_kind { STREAM_HELLO = 1, STREAM_DATA = 2, STREAM_END = 3 };

/* Latency histogram: 32 steps per power of two of nanoseconds, so a quantile is right to about 3%.
 */
#define STREAM_BUCKETS (60 * 32)
struct stream_histogram {
	uint64_t count, max_ns;
	uint32_t bucket[STREAM_BUCKETS];
};
void stream_histogram_add(struct stream_histogram *h, uint64_t ns);
/* q in 0..1; 0 when nothing was counted. */
double stream_histogram_us(const struct stream_histogram *h, double q);

/* Writes a whole payload of len >= STREAM_PAYLOAD_MIN bytes. */
void stream_build(uint8_t *payload, size_t len, enum stream_kind kind, uint8_t flags, uint64_t run,
	uint64_t sequence, uint64_t now_ns);

struct stream_rx {
	uint64_t run;	   /* of the sender's present life */
	bool started;	   /* has a data payload of this run come */
	uint64_t expect;   /* one above the highest sequence seen */
	uint64_t received; /* each sequence once */
	uint64_t bytes;	   /* payload bytes of those */
	uint64_t duplicated, reordered, corrupted, foreign;
	uint64_t restarts;     /* runs after the first */
	uint64_t sent_by_peer; /* as its end payload says; 0 = it has not ended */
	bool ended;
	bool hello, heard;	 /* a hello has come; it said that ours had */
	uint64_t last_ns;	 /* when the latest good data payload came */
	uint64_t longest_gap_ns; /* silence between two of them, over lives of the sender too */
	uint64_t latest_gap_ns, gaps; /* those of more than STREAM_GAP_NS */
	struct stream_histogram latency,
		recent; /* since the start; since recent was last cleared */
	uint64_t *seen; /* bitmap by sequence */
	size_t seen_words;
};
#define STREAM_GAP_NS 200000000ull

void stream_rx_init(struct stream_rx *rx);
void stream_rx_fini(struct stream_rx *rx);
/* Accounts one payload from the partner. */
void stream_rx_payload(struct stream_rx *rx, const uint8_t *payload, size_t len, uint64_t now_ns);
/* Sequences that have not come, up to `sent` (or up to the highest seen when sent is smaller). */
uint64_t stream_rx_lost(const struct stream_rx *rx, uint64_t sent);

#ifdef __cplusplus
}
#endif
#endif
