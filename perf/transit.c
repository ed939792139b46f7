/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What transit costs beyond its arithmetic. One process, one worker: frames of 64 sessions, ready in a ring, go through
 * receive, transit and transmit (both ports are rings; the router is the real one and the peers are direct, their
 * sessions as control leaves them). In turn with it, round after round, over buffers of one pool:
 *	fused		nothing but the same backend's open_lead and reseal over the same frames
 *	open + seal	nothing but its open and seal
 *	other		the same pipeline on another backend (ipsec-mb)
 * Ratios are taken within a round.
 *
 * Usage: transit [-j] [--rounds N] [--size BYTES] [--link udp4|udp6|eth] [--aead NAME] [--other NAME]
 *	[--nic-checksums] [--stages]
 * --nic-checksums: received frames carry the marks of a NIC that has verified them.
 * --stages: cycles a frame of each step of transit instead.
 */
#include <errno.h>
#include <getopt.h>
#include <rte_cycles.h>
#include "bench.h"
#include "common/relay.h"
#include "sl_stage_out.h"

#define FRAMES 512u /* a round: enough for the caches to settle, few enough to stay in the second level at any size */

struct bench {
	uint8_t link; /* enum sl_addr_kind */
	bool json, nic_checksums, stages;
	unsigned rounds, size;
	struct relay relay, other;
	struct rte_mempool *pool;
	struct relay_frames frames;
};

static int
bench_make(struct bench *b)
{
	b->pool = sl_pool_create("bench", 0, 4095, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	return !b->pool || relay_frames_init(&b->frames, FRAMES) != 0 || relay_make(&b->relay, "relay", b->link, 1, 1) != 0 ||
		relay_make(&b->other, "other", b->link, 1, 1) != 0 ? -1 : 0;
}

/* ns a frame, or -1 when not every frame went through. */
static double
round_transit(struct bench *b, struct relay *r)
{
	struct sl_worker *w = r->dp->workers[0];
	const uint64_t before = w->counters.verdicts[SL_FORWARD];
	uint64_t begin, end;
	unsigned n;

	relay_frames_make(&b->frames, r, b->pool, 0, b->size, b->nic_checksums);
	if (rte_ring_enqueue_bulk(r->in[0], (void *const *)b->frames.mbuf, FRAMES, NULL) != FRAMES)
		return -1;
	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < FRAMES / RELAY_BURST; i++)
		sl_worker_poll(w);
	end = rte_rdtsc_precise();
	n = relay_drain(r, 0);
	if (n != FRAMES || w->counters.verdicts[SL_FORWARD] - before != FRAMES)
		return -1;
	return (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES;
}

/* The AEAD alone, fused as transit uses it or open and seal. */
static double
round_bare(struct bench *b, bool fused)
{
	const struct sl_aead_backend *aead = b->relay.aead;
	struct sl_aead_ctx *ctx = b->relay.ctx[0];
	struct relay_frames *f = &b->frames;
	uint64_t begin, end;
	unsigned good = 0;

	relay_frames_make(&b->frames, &b->relay, b->pool, 0, b->size, b->nic_checksums);
	begin = rte_rdtsc_precise();
	if (fused)
		good = relay_fused(&b->relay, 0, f);
	for (unsigned i = 0; i < FRAMES && !fused; i += RELAY_BURST) {
		good += aead->open(ctx, &f->open[i], RELAY_BURST);
		aead->seal(ctx, &f->seal[i], RELAY_BURST);
	}
	end = rte_rdtsc_precise();
	rte_pktmbuf_free_bulk(f->mbuf, FRAMES);
	return good == FRAMES ? (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES : -1;
}

enum figure { TRANSIT, FUSED, OPEN_SEAL, OTHER, RATIO, RATIO_OPEN_SEAL, GAIN, FIGURES };

struct limits {
	unsigned size;
	double ratio, gain; /* transit to fused at most; other to transit at least; 0 = none */
};

static double
measure(void *arg, unsigned f)
{
	struct bench *b = arg;

	switch (f) {
	case TRANSIT:
		return round_transit(b, &b->relay);
	case OTHER:
		return round_transit(b, &b->other);
	default:
		return round_bare(b, f == FUSED);
	}
}

static void
derive(double *x)
{
	x[RATIO] = x[TRANSIT] / x[FUSED];
	x[RATIO_OPEN_SEAL] = x[TRANSIT] / x[OPEN_SEAL];
	x[GAIN] = x[OTHER] / x[TRANSIT];
}

static void
report(const struct bench *b, const struct limits *l, struct bench_figure f[FIGURES], double *const v[FIGURES],
	bool ratio_met, bool gain_met, bool first)
{
	if (b->json) {
		printf("%s{\"payload\":%u,\"transit_ns\":%.1f,\"fused_ns\":%.1f,\"open_seal_ns\":%.1f,\"other_ns\":%.1f,"
		       "\"ratio\":%.3f,\"ratio_p10\":%.3f,\"ratio_p90\":%.3f,\"ratio_to_open_seal\":%.3f,\"gain\":%.3f,",
			first ? "" : ",", l->size, f[TRANSIT].median, f[FUSED].median, f[OPEN_SEAL].median, f[OTHER].median,
			f[RATIO].median, f[RATIO].p10, f[RATIO].p90, f[RATIO_OPEN_SEAL].median, f[GAIN].median);
		printf("\"transit_best_ns\":%.1f,\"fused_best_ns\":%.1f,\"open_seal_best_ns\":%.1f,\"other_best_ns\":%.1f,"
		       "\"ratio_limit\":%.2f,\"ratio_met\":%s,\"gain_limit\":%.2f,\"gain_met\":%s}", v[TRANSIT][0], v[FUSED][0],
			v[OPEN_SEAL][0], v[OTHER][0], l->ratio, ratio_met ? "true" : "false", l->gain, gain_met ? "true" : "false");
		return;
	}
	printf("%7u  %8.1f  %8.1f  %8.1f  %8.1f   %6.3f (%.3f .. %.3f)%-9s  %6.3f   %6.3f%s\n", l->size, f[TRANSIT].median,
		f[FUSED].median, f[OPEN_SEAL].median, f[OTHER].median, f[RATIO].median, f[RATIO].p10, f[RATIO].p90,
		l->ratio == 0 ? "" : ratio_met ? " met" : " MISSED", f[RATIO_OPEN_SEAL].median, f[GAIN].median,
		l->gain == 0 ? "" : gain_met ? " met" : " MISSED");
	printf("   best  %8.1f  %8.1f  %8.1f  %8.1f   %6.3f                            %6.3f   %6.3f\n", v[TRANSIT][0], v[FUSED][0],
		v[OPEN_SEAL][0], v[OTHER][0], v[TRANSIT][0] / v[FUSED][0], v[TRANSIT][0] / v[OPEN_SEAL][0],
		v[OTHER][0] / v[TRANSIT][0]);
}

/* 0: within the limits, 1: not, -1: frames were lost. */
static int
run_size(struct bench *b, const struct limits *l, bool first)
{
	double *v[FIGURES] = {NULL};
	struct bench_figure f[FIGURES];
	bool ratio_met, gain_met;
	int rc = -1;

	b->size = l->size;
	for (unsigned k = 0; k < FIGURES; k++)
		v[k] = calloc(b->rounds, sizeof(double));
	if (bench_rounds(v, RATIO, FIGURES, b->rounds, measure, derive, b) >= 0) {
		fprintf(stderr, "transit: frames were lost in a round of %u bytes\n", l->size);
		goto out;
	}
	for (unsigned k = 0; k < FIGURES; k++)
		f[k] = bench_figure(v[k], b->rounds); /* sorts */
	ratio_met = l->ratio == 0 || f[RATIO].median <= l->ratio;
	gain_met = l->gain == 0 || f[GAIN].median >= l->gain;
	report(b, l, f, v, ratio_met, gain_met, first);
	rc = !(ratio_met && gain_met);
out:
	for (unsigned k = 0; k < FIGURES; k++)
		free(v[k]);
	return rc;
}

/* --- stage by stage: the steps of transit.c with the clock read between them ------------------------------------- */

#define STAGES(X)                                                                                                      \
	X(receive) X(classify) X(session) X(admit) X(open) X(commit) X(message) X(next_hop) X(egress) X(reserve)       \
	X(reseal) X(wrap) X(finish)
enum stage {
#define STAGE_ENUM(name) STAGE_##name,
	STAGES(STAGE_ENUM) STAGE_COUNT
};

/* Cycles of one round's frames, added up a stage. */
static void
round_stages(struct bench *b, uint64_t sum[STAGE_COUNT])
{
	struct relay *r = &b->relay;
	struct sl_worker *w = r->dp->workers[0];
	struct sl_burst *h = &w->in_hand;
	uint64_t before, now;

#define CLOCK(stage) (now = rte_rdtsc(), sum[STAGE_##stage] += now - before, before = now)
	relay_frames_make(&b->frames, r, b->pool, 0, b->size, b->nic_checksums);
	if (rte_ring_enqueue_bulk(r->in[0], (void *const *)b->frames.mbuf, FRAMES, NULL) != FRAMES)
		abort();
	for (unsigned i = 0; i < FRAMES / RELAY_BURST; i++) {
		before = rte_rdtsc();
		h->count = rte_eth_rx_burst(w->rx[0].ethdev, w->rx[0].queue, h->mbuf, w->burst_max);
		h->port = w->rx[0].port;
		h->local = w->rx[0].local;
		h->begin_tsc = rte_rdtsc();
		h->now_us = sl_tsc_to_us(w->us_per_tsc_q64, h->begin_tsc);
		h->fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
		CLOCK(receive);
		sl_stage_classify(w, h);
		CLOCK(classify);
		sl_stage_session(w, h);
		CLOCK(session);
		sl_stage_admit(w, h);
		CLOCK(admit);
		sl_stage_open(w, h);
		CLOCK(open);
		sl_stage_commit(w, h);
		CLOCK(commit);
		sl_stage_message(w, h);
		CLOCK(message);
		sl_stage_next_hop(w, h);
		CLOCK(next_hop);
		sl_stage_egress(w, h);
		CLOCK(egress);
		sl_stage_reserve(w, h);
		CLOCK(reserve);
		sl_stage_reseal(w, h);
		CLOCK(reseal);
		sl_stage_wrap(h);
		CLOCK(wrap);
		sl_stage_finish(w, h);
		CLOCK(finish);
	}
#undef CLOCK
	relay_drain(r, 0);
}

static int
run_stages(struct bench *b)
{
	static const char *const names[] = {
#define STAGE_NAME(name) #name,
		STAGES(STAGE_NAME)};
	double *v[STAGE_COUNT], all = 0, beside = 0;

	for (unsigned k = 0; k < STAGE_COUNT; k++)
		v[k] = calloc(b->rounds, sizeof(double));
	for (unsigned i = 0; i < b->rounds; i++) {
		uint64_t sum[STAGE_COUNT] = {0};

		round_stages(b, sum);
		for (unsigned k = 0; k < STAGE_COUNT; k++)
			v[k][i] = (double)sum[k] / FRAMES;
	}
	printf("%s, payload %u, %u sessions, burst %u: TSC cycles a frame\n       stage    median   best 2%%\n", b->relay.aead->name,
		b->size, RELAY_PEERS, RELAY_BURST);
	for (unsigned k = 0; k < STAGE_COUNT; k++) {
		const struct bench_figure f = bench_figure(v[k], b->rounds);
		const double best = v[k][b->rounds / 50];

		printf("%12s  %8.1f  %8.1f\n", names[k], f.median, best);
		all += best;
		beside += k == STAGE_open || k == STAGE_reseal ? 0 : best;
		free(v[k]);
	}
	printf("all %.1f, beside open and reseal %.1f = %.1f ns\n", all, beside, beside * 1e9 / (double)rte_get_tsc_hz());
	return 0;
}

static int
options(struct bench *b, int argc, char **argv)
{
	static const struct option list[] = {{"rounds", 1, NULL, 'r'}, {"size", 1, NULL, 's'}, {"link", 1, NULL, 'l'},
		{"aead", 1, NULL, 'a'}, {"other", 1, NULL, 'o'}, {"nic-checksums", 0, NULL, 'n'}, {"stages", 0, NULL, 't'},
		{NULL, 0, NULL, 0}};
	const char *aead = "auto", *other = "ipsec-mb";
	int c;

	b->rounds = 201;
	b->link = SL_ADDR_UDP4;
	while ((c = getopt_long(argc, argv, "j", list, NULL)) != -1) {
		if (c == 'j')
			b->json = true;
		else if (c == 'r')
			b->rounds = (unsigned)atoi(optarg);
		else if (c == 's')
			b->size = (unsigned)atoi(optarg);
		else if (c == 'a')
			aead = optarg;
		else if (c == 'o')
			other = optarg;
		else if (c == 'n')
			b->nic_checksums = true;
		else if (c == 't')
			b->stages = true;
		else if (c == 'l')
			b->link = !strcmp(optarg, "udp6") ? SL_ADDR_UDP6 : !strcmp(optarg, "eth") ? SL_ADDR_ETH : SL_ADDR_UDP4;
		else
			return -1;
	}
	b->relay.aead = sl_aead_backend_find(aead);
	b->other.aead = sl_aead_backend_find(other);
	return optind < argc || b->rounds < 3 || b->size > 1700 || !b->relay.aead || !b->other.aead ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static const char *const links[] = {"", "udp4", "udp6", "eth"};
	static const struct limits sizes[] = {{64, 1.5, 3.0}, {512, 0, 0}, {1400, 1.15, 1.5}};
	static struct bench b;
	int bad = 0;

	if (sl_crypto_init() != 0 || options(&b, argc, argv) != 0) {
		fprintf(stderr, "usage: transit [-j] [--rounds N] [--size BYTES] [--link udp4|udp6|eth] [--aead NAME] "
				"[--other NAME] [--nic-checksums] [--stages]\n");
		return 2;
	}
	if (bench_eal_init(256) != 0 || bench_make(&b) != 0) {
		fprintf(stderr, "transit: cannot be set up: %s\n", strerror(errno));
		return 2;
	}
	if (b.stages) {
		b.size = b.size ? b.size : 64;
		return run_stages(&b);
	}
	if (b.json)
		printf("{\"bench\":\"transit\",\"aead\":\"%s\",\"other\":\"%s\",\"link\":\"%s\",\"nic_checksums\":%s,"
		       "\"sessions\":%u,\"burst\":%u,\"rounds\":%u,\"sizes\":[", b.relay.aead->name, b.other.aead->name,
			links[b.link], b.nic_checksums ? "true" : "false", RELAY_PEERS, RELAY_BURST, b.rounds);
	else
		printf("%s over %s, %u sessions, burst %u, %u rounds of %u frames; checksums of received frames by %s; ns a frame\n"
		       "payload   transit     fused open+seal  %8s   transit/fused                   /open+seal  gain\n",
			b.relay.aead->name, links[b.link], RELAY_PEERS, RELAY_BURST, b.rounds, FRAMES,
			b.nic_checksums ? "the NIC" : "software", b.other.aead->name);
	if (b.size) {
		const struct limits one = {b.size, 0, 0};

		bad = run_size(&b, &one, true);
	} else {
		for (unsigned i = 0; i < RTE_DIM(sizes); i++)
			bad |= run_size(&b, &sizes[i], i == 0);
	}
	if (b.json)
		printf("],\"met\":%s}\n", bad ? "false" : "true");
	return bad ? 1 : 0;
}
