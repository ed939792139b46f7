/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = {'S', 'L', 'P', '1'};

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The n-th eight bytes of the fill of one payload. */
static uint64_t fill_word(uint64_t run, uint64_t sequence, size_t n)
{
	return mix(run + 0x9e3779b97f4a7c15ull * (sequence * 512 + n + 1));
}

static void fill(uint8_t *out, size_t len, uint64_t run, uint64_t sequence)
{
	size_t n = 0;

	for (; len >= 8; len -= 8, out += 8)
		put64(out, fill_word(run, sequence, n++));
	if (len) {
		uint64_t last = fill_word(run, sequence, n);

		memcpy(out, &last, len);
	}
}

static bool fill_matches(const uint8_t *p, size_t len, uint64_t run, uint64_t sequence)
{
	uint64_t differ = 0, got = 0;
	size_t n = 0;

	for (; len >= 8; len -= 8, p += 8)
		differ |= get64(p) ^ fill_word(run, sequence, n++);
	if (len) {
		memcpy(&got, p, len);
		differ |= (got ^ fill_word(run, sequence, n)) & ((1ull << 8 * len) - 1);
	}
	return differ == 0;
}

/* Of the head without the checksum; the fill is compared whole, the length goes in here. */
static uint64_t checksum(const uint8_t *payload, size_t len)
{
	uint64_t h = mix(len + 0x5bd1e995);

	for (size_t i = 0; i < 32; i += 8)
		h = mix(h ^ get64(payload + i)) + 0x9e3779b97f4a7c15ull;
	return h;
}

void stream_build(uint8_t *payload, size_t len, enum stream_kind kind, uint8_t flags, uint64_t run,
	uint64_t sequence, uint64_t now_ns)
{
	payload[0] = 0;
	payload[1] = 0;
	payload[2] = (uint8_t)kind;
	payload[3] = flags;
	memcpy(payload + 4, magic, 4);
	put64(payload + 8, run);
	put64(payload + 16, sequence);
	put64(payload + 24, now_ns);
	fill(payload + 40, len - 40, run, sequence);
	put64(payload + 32, checksum(payload, len));
}

static unsigned bucket_of(uint64_t ns)
{
	unsigned msb;

	if (ns < 32)
		return (unsigned)ns;
	msb = 63 - (unsigned)__builtin_clzll(ns);
	return (msb - 4) * 32 + (unsigned)(ns >> (msb - 5) & 31);
}

static double bucket_middle_ns(unsigned b)
{
	unsigned msb;

	if (b < 32)
		return b;
	msb = b / 32 + 4;
	return ((double)(32 + b % 32) + 0.5) * (double)(1ull << (msb - 5));
}

void stream_histogram_add(struct stream_histogram *h, uint64_t ns)
{
	unsigned b = bucket_of(ns);

	h->bucket[b < STREAM_BUCKETS ? b : STREAM_BUCKETS - 1]++;
	h->count++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

double stream_histogram_us(const struct stream_histogram *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->count), sum = 0;

	if (!h->count)
		return 0;
	if (want >= h->count)
		want = h->count - 1;
	for (unsigned b = 0; b < STREAM_BUCKETS; b++) {
		sum += h->bucket[b];
		if (sum > want)
			return bucket_middle_ns(b) / 1000;
	}
	return (double)h->max_ns / 1000;
}

void stream_rx_init(struct stream_rx *rx)
{
	memset(rx, 0, sizeof(*rx));
}

void stream_rx_fini(struct stream_rx *rx)
{
	free(rx->seen);
	rx->seen = NULL;
	rx->seen_words = 0;
}

/* Marks a sequence; false when it was marked before. True with *room false: no memory to tell. */
static bool mark(struct stream_rx *rx, uint64_t sequence, bool *room)
{
	size_t word = (size_t)(sequence / 64);

	*room = true;
	if (word >= rx->seen_words) {
		size_t words = rx->seen_words ? rx->seen_words : 4096;
		uint64_t *bigger;

		while (words <= word)
			words *= 2;
		bigger = realloc(rx->seen, words * sizeof(*bigger));
		if (!bigger) {
			*room = false;
			return true;
		}
		memset(bigger + rx->seen_words, 0, (words - rx->seen_words) * sizeof(*bigger));
		rx->seen = bigger;
		rx->seen_words = words;
	}
	if (rx->seen[word] >> (sequence % 64) & 1)
		return false;
	rx->seen[word] |= 1ull << (sequence % 64);
	return true;
}

/* The sender has begun a new life: its numbers start again, so does the account of them. */
static void new_run(struct stream_rx *rx, uint64_t run)
{
	if (rx->started)
		rx->restarts++;
	rx->run = run;
	rx->started = false;
	rx->expect = rx->received = rx->bytes = rx->duplicated = rx->reordered = 0;
	rx->ended = rx->heard = false;
	rx->sent_by_peer = 0;
	if (rx->seen)
		memset(rx->seen, 0, rx->seen_words * sizeof(*rx->seen));
}

static void data(
	struct stream_rx *rx, uint64_t sequence, uint64_t sent_ns, size_t len, uint64_t now_ns)
{
	uint64_t latency = now_ns > sent_ns ? now_ns - sent_ns : 0;
	bool room;

	if (sequence >= STREAM_SEQUENCE_MAX) {
		rx->corrupted++;
		return;
	}
	if (!mark(rx, sequence, &room)) {
		rx->duplicated++;
		return;
	}
	if (!room) {
		rx->corrupted++;
		return;
	}
	rx->started = true;
	rx->received++;
	rx->bytes += len;
	if (sequence >= rx->expect)
		rx->expect = sequence + 1;
	else
		rx->reordered++;
	stream_histogram_add(&rx->latency, latency);
	stream_histogram_add(&rx->recent, latency);
	if (rx->last_ns) {
		uint64_t silence = now_ns - rx->last_ns;

		if (silence > rx->longest_gap_ns)
			rx->longest_gap_ns = silence;
		if (silence > STREAM_GAP_NS) {
			rx->latest_gap_ns = silence;
			rx->gaps++;
		}
	}
	rx->last_ns = now_ns;
}

void stream_rx_payload(struct stream_rx *rx, const uint8_t *payload, size_t len, uint64_t now_ns)
{
	uint64_t run, sequence;

	if (len < STREAM_PAYLOAD_MIN || memcmp(payload + 4, magic, 4) != 0 || payload[0] ||
		payload[1]) {
		rx->foreign++;
		return;
	}
	run = get64(payload + 8);
	sequence = get64(payload + 16);
	if (get64(payload + 32) != checksum(payload, len) ||
		!fill_matches(payload + 40, len - 40, run, sequence)) {
		rx->corrupted++;
		return;
	}
	if (run != rx->run)
		new_run(rx, run);
	switch (payload[2]) {
	case STREAM_HELLO:
		rx->hello = true;
		if (payload[3] & STREAM_HEARD)
			rx->heard = true;
		break;
	case STREAM_DATA:
		data(rx, sequence, get64(payload + 24), len, now_ns);
		break;
	case STREAM_END:
		rx->ended = true;
		rx->sent_by_peer = sequence;
		break;
	default:
		rx->corrupted++;
	}
}

uint64_t stream_rx_lost(const struct stream_rx *rx, uint64_t sent)
{
	uint64_t of = sent > rx->expect ? sent : rx->expect;

	return of > rx->received ? of - rx->received : 0;
}
