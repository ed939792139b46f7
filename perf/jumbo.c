/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What frames in several buffers cost. One worker, 64 sessions, payloads of 8,800 bytes, alternated round by round:
 *
 *	whole		each frame in one buffer that holds it
 *	pieces		the same in buffers of 2,048 bytes, as a NIC scatters them; joined in a large one before they are opened
 *	fused		nothing but open_lead and reseal of the same frames
 *
 * Usage: jumbo [-j] [--rounds N] [--size BYTES]
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <rte_cycles.h>
#include "bench.h"
#include "common/relay.h"

#define FRAMES 128u
#define PIECE 2048u
#define SIZE 8800u

struct bench {
	bool json;
	unsigned rounds, size;
	struct rte_mempool *large, *small;
	struct relay relay;
	struct relay_frames frames;
};

/* The frame in pieces; its own buffer is freed. */
static struct rte_mbuf *
cut(struct bench *b, struct rte_mbuf *whole)
{
	struct rte_mbuf *head = NULL;

	for (uint32_t at = 0; at < whole->pkt_len; at += PIECE) {
		const uint16_t n = (uint16_t)RTE_MIN(PIECE, whole->pkt_len - at);
		struct rte_mbuf *m = rte_pktmbuf_alloc(b->small);

		if (!m)
			abort();
		memcpy(rte_pktmbuf_append(m, n), rte_pktmbuf_mtod_offset(whole, const uint8_t *, at), n);
		if (!head)
			head = m;
		else if (rte_pktmbuf_chain(head, m) != 0)
			abort();
	}
	rte_pktmbuf_free(whole);
	return head;
}

/* ns a frame, -1: frames were lost. */
static double
round_transit(struct bench *b, bool pieces)
{
	struct relay *r = &b->relay;
	struct sl_worker *w = r->dp->workers[0];
	uint64_t begin, end, before;

	relay_frames_make(&b->frames, r, b->large, 0, b->size, false);
	for (unsigned i = 0; i < FRAMES && pieces; i++)
		b->frames.mbuf[i] = cut(b, b->frames.mbuf[i]);
	if (rte_ring_enqueue_bulk(r->in[0], (void *const *)b->frames.mbuf, FRAMES, NULL) != FRAMES)
		return -1;
	before = w->counters.verdicts[SL_FORWARD];
	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < FRAMES / RELAY_BURST; i++)
		sl_worker_poll(w);
	end = rte_rdtsc_precise();
	if (relay_drain(r, 0) != FRAMES || w->counters.verdicts[SL_FORWARD] - before != FRAMES)
		return -1;
	return (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES;
}

static double
round_fused(struct bench *b)
{
	uint64_t begin, end;
	unsigned good;

	relay_frames_make(&b->frames, &b->relay, b->large, 0, b->size, false);
	begin = rte_rdtsc_precise();
	good = relay_fused(&b->relay, 0, &b->frames);
	end = rte_rdtsc_precise();
	rte_pktmbuf_free_bulk(b->frames.mbuf, FRAMES);
	return good == FRAMES ? (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES : -1;
}

enum figure { WHOLE, PIECES, FUSED, RATIO, FIGURES };

static double
measure(void *arg, unsigned f)
{
	return f == FUSED ? round_fused(arg) : round_transit(arg, f == PIECES);
}

static void
derive(double *x)
{
	x[RATIO] = x[PIECES] / x[WHOLE];
}

static int
run(struct bench *b)
{
	static const char *const names[] = {"whole", "pieces", "fused", "pieces : whole"};
	double *v[FIGURES];
	struct bench_figure f[FIGURES];
	int lost;

	for (unsigned k = 0; k < FIGURES; k++)
		v[k] = calloc(b->rounds, sizeof(double));
	lost = bench_rounds(v, RATIO, FIGURES, b->rounds, measure, derive, b);
	if (lost >= 0) {
		fprintf(stderr, "jumbo: frames were lost (%s)\n", names[lost]);
		return 1;
	}
	for (unsigned k = 0; k < FIGURES; k++)
		f[k] = bench_figure(v[k], b->rounds);
	if (b->json) {
		printf("{\"bench\":\"jumbo\",\"aead\":\"%s\",\"payload\":%u,\"piece\":%u,\"rounds\":%u", b->relay.aead->name, b->size, PIECE,
			b->rounds);
		printf(",\"whole_ns\":%.1f,\"pieces_ns\":%.1f,\"fused_ns\":%.1f,\"ratio\":%.3f,\"ratio_p10\":%.3f,\"ratio_p90\":%.3f}\n",
			f[WHOLE].median, f[PIECES].median, f[FUSED].median, f[RATIO].median, f[RATIO].p10, f[RATIO].p90);
	} else {
		printf("%s over udp4, %u sessions, burst %u, payload %u, pieces of %u, %u rounds of %u frames; ns a frame, Gbit/s of payload\n",
			b->relay.aead->name, RELAY_PEERS, RELAY_BURST, b->size, PIECE, b->rounds, FRAMES);
		for (unsigned k = 0; k < RATIO; k++)
			printf("%8s  median %8.1f (%5.1f)   best %8.1f (%5.1f)\n", names[k], f[k].median, b->size * 8 / f[k].median, v[k][0],
				b->size * 8 / v[k][0]);
		printf("%s  median %.3f (%.3f .. %.3f)   best %.3f\n", names[RATIO], f[RATIO].median, f[RATIO].p10, f[RATIO].p90,
			v[PIECES][0] / v[WHOLE][0]);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option list[] = {{"rounds", 1, NULL, 'r'}, {"size", 1, NULL, 's'}, {NULL, 0, NULL, 0}};
	static struct bench b = {.rounds = 201, .size = SIZE};
	bool misused = false;
	int c;

	while ((c = getopt_long(argc, argv, "j", list, NULL)) != -1) {
		if (c == 'j')
			b.json = true;
		else if (c == 'r')
			b.rounds = (unsigned)atoi(optarg);
		else if (c == 's')
			b.size = (unsigned)atoi(optarg);
		else
			misused = true;
	}
	b.relay.aead = sl_crypto_init() == 0 ? sl_aead_backend_find("auto") : NULL;
	b.relay.jumbo = true;
	if (misused || optind != argc || b.rounds < 3 || b.size < 1 || b.size > SIZE || !b.relay.aead) {
		fprintf(stderr, "usage: jumbo [-j] [--rounds N] [--size BYTES (1 to %u)]\n", SIZE);
		return 2;
	}
	if (bench_eal_init(512) != 0 || relay_frames_init(&b.frames, FRAMES) != 0 ||
		!(b.large = sl_pool_create("large", 0, 511, 9600 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY)) ||
		!(b.small = sl_pool_create("small", 0, 2047, PIECE + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY)) ||
		relay_make(&b.relay, "one", SL_ADDR_UDP4, 1, 1) != 0) {
		fprintf(stderr, "jumbo: cannot be set up: %s\n", strerror(errno));
		return 2;
	}
	return run(&b);
}
