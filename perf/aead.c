/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one packet costs to seal and to open, per AEAD backend and size: one burst in the cache, a
 * key for each packet, in place, packets as far apart as mbufs are. The backends take turns in
 * every round, so that a slow phase of the machine falls on all of them; shown are the median over
 * the rounds and the median of each round's ratio to ipsec-mb. "transit" is open and seal, "fused"
 * the same by open_lead and reseal (its ratio too is to ipsec-mb's open and seal). "mixed" is 28
 * packets of 64 bytes, 16 of 570 and 4 of 1420, shuffled. With -j a JSON object is the last thing
 * printed.
 *
 *	aead [-j] [-b BURST] [-r ROUNDS]
 *	aead -s [-r ROUNDS]	bursts of 1 to 64: auto against the best of the others
 */
#include "aead_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BURST_MAX 64u
#define ROUNDS_MAX 201u
#define STRIDE 2368u /* of an mbuf with 2,176 bytes of room and its header */
#define ROUND_BYTES                                                                                \
	50000.0 /* how much a backend works in a round, packets' fixed cost included               \
		 */
#define MIXED 0u
#define MIX_PACKETS 48u

static const unsigned sizes[] = {64, 128, 256, 512, 1024, 1420, MIXED};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
/* The first is what the others are compared to. */
static const struct sl_aead_backend *const backends[] = {
#ifdef AEAD_IPSEC_MB
	&sl_aead_ipsec_mb,
#endif
#ifdef AEAD_AVX512
	&sl_aead_avx512,
#endif
	&sl_aead_auto,
#ifdef AEAD_IPSEC_MB
	&sl_aead_ipsec_mb_avx2,
#endif
#ifdef AEAD_AVX2
	&sl_aead_avx2,
#endif
#ifdef AEAD_IPSEC_MB
	&sl_aead_ipsec_mb_sse,
#endif
	&sl_aead_sodium,
};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))
#define BASE_SWEEP_OTHERS 2u /* the sweep: ipsec-mb, our widest engine, auto */

/* transit: opened with one key and sealed with another, whole or (fused) by open_lead and reseal. */
enum what { SEAL, OPEN, TRANSIT, FUSED, WHATS };
static const char *const what_names[WHATS] = {"seal", "open", "transit", "fused"};

struct result {
	double ns[WHATS][ROUNDS_MAX];
	double ratio[WHATS][ROUNDS_MAX]; /* how many times as fast as the base; fused: its transit */
};

static uint8_t buf[BURST_MAX][STRIDE] __attribute__((aligned(64)));
static uint8_t keys[2][BURST_MAX][SL_AEAD_KEY_BYTES] __attribute__((aligned(64)));
static struct sl_aead_op ops[BURST_MAX];
static struct sl_aead_reop reops[BURST_MAX];
static struct result results[BACKENDS];
static unsigned mix[MIX_PACKETS], rounds = 41;
static double clock_ns; /* what reading it costs */
static uint64_t counter;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void init(void)
{
	uint32_t x = 12345;
	double t;

	for (unsigned i = 0; i < MIX_PACKETS; i++)
		mix[i] = i < 28 ? 64 : i < 44 ? 570 : 1420;
	for (unsigned i = MIX_PACKETS - 1; i > 0; i--) {
		unsigned j, m = mix[i];

		x = x * 1664525 + 1013904223;
		j = (x >> 16) % (i + 1);
		mix[i] = mix[j];
		mix[j] = m;
	}
	sl_random(keys, sizeof(keys));
	t = now_ns();
	for (unsigned i = 0; i < 1000; i++)
		(void)now_ns();
	clock_ns = (now_ns() - t) / 1000;
}

/* Repetition k of a burst; a mixed one takes the next packets of the mixture. */
static void prepare(unsigned size, unsigned burst, unsigned k)
{
	for (unsigned i = 0; i < burst; i++) {
		ops[i] = (struct sl_aead_op){
			.aad = buf[i] + 128 + 42,
			.text = buf[i] + 128 + 42 + SL_AEAD_AAD_BYTES,
			.key = keys[0][i],
			.text_len = size == MIXED ? mix[(k * burst + i) % MIX_PACKETS] : size,
			.slot = i,
			.counter = counter++,
		};
	}
}

/* The burst goes on under other keys. */
static void prepare_reseal(unsigned burst)
{
	for (unsigned i = 0; i < burst; i++) {
		reops[i] = (struct sl_aead_reop){
			.text = ops[i].text,
			.aad = ops[i].aad,
			.old_key = ops[i].key,
			.old_counter = ops[i].counter,
			.new_key = keys[1][i],
			.new_counter = counter++,
			.text_len = ops[i].text_len,
			.lead = ops[i].lead,
			.slot = i,
		};
	}
}

static void take_new_keys(unsigned burst)
{
	for (unsigned i = 0; i < burst; i++) {
		ops[i].key = reops[i].new_key;
		ops[i].counter = reops[i].new_counter;
	}
}

/* One burst sealed, opened, sealed again and passed on. False when something did not open. */
static bool one_turn(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, unsigned size,
	unsigned burst, unsigned k, double ns[WHATS])
{
	double t[7];
	bool ok;

	prepare(size, burst, k);
	t[0] = now_ns();
	b->seal(ctx, ops, burst);
	t[1] = now_ns();
	ok = b->open(ctx, ops, burst) == burst;
	t[2] = now_ns();
	ns[SEAL] = t[1] - t[0] - clock_ns;
	ns[OPEN] = t[2] - t[1] - clock_ns;
	ns[TRANSIT] = ns[SEAL] + ns[OPEN];

	b->seal(ctx, ops, burst);
	t[3] = now_ns();
	ok &= sl_aead_open_lead(b, ctx, ops, burst) == burst;
	t[4] = now_ns();
	prepare_reseal(burst);
	t[5] = now_ns();
	(void)sl_aead_reseal(b, ctx, reops, burst);
	t[6] = now_ns();
	ns[FUSED] = t[4] - t[3] + t[6] - t[5] - 2 * clock_ns;
	take_new_keys(burst);
	return ok && b->open(ctx, ops, burst) == burst;
}

/* False when something that was sealed did not open. */
static bool measure(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, unsigned size,
	unsigned burst, double ns[WHATS])
{
	unsigned repeats =
		(unsigned)(ROUND_BYTES / (burst * (150.0 + (size == MIXED ? 345 : size)))) + 1;
	bool ok = true;

	memset(ns, 0, WHATS * sizeof(ns[0]));
	/* The first one finds the code and the predictors as the others left them. */
	for (unsigned k = 0; k <= repeats; k++) {
		double turn[WHATS];

		ok &= one_turn(b, ctx, size, burst, k, turn);
		for (unsigned w = 0; w < WHATS && k > 0; w++)
			ns[w] += turn[w] / (repeats * burst);
	}
	return ok;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, rounds, sizeof(*v), by_value);
	return v[rounds / 2];
}

static bool measure_all(
	struct sl_aead_ctx *const *ctx, unsigned count, unsigned size, unsigned burst)
{
	bool ok = true;

	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned b = 0; b < count; b++) {
			struct result *to = &results[b];
			double ns[WHATS];

			if (!ctx[b])
				continue;
			ok &= measure(backends[b], ctx[b], size, burst, ns);
			for (unsigned w = 0; w < WHATS; w++) {
				unsigned base = w == FUSED ? TRANSIT : w;

				to->ns[w][r] = ns[w];
				to->ratio[w][r] = results[0].ns[base][r] / ns[w];
			}
		}
	}
	/* Medians sort in place: each is left in element 0. */
	for (unsigned b = 0; b < count; b++) {
		for (unsigned w = 0; w < WHATS; w++) {
			results[b].ns[w][0] = median(results[b].ns[w]);
			results[b].ratio[w][0] = median(results[b].ratio[w]);
		}
	}
	return ok;
}

static const char *size_name(unsigned size)
{
	static char name[16];

	snprintf(name, sizeof(name), "%u", size);
	return size == MIXED ? "mixed" : name;
}

static bool table(struct sl_aead_ctx *const *ctx, unsigned burst, bool json)
{
	static char out[16384];
	const char *comma = "";
	size_t at = 0;
	bool ok = true;

	printf("burst %u, %u rounds\n%-14s %6s", burst, rounds, "backend", "bytes");
	for (unsigned w = 0; w < WHATS; w++)
		printf(" %8s ns     x", what_names[w]);
	printf("\n");
	for (unsigned s = 0; s < SIZES; s++) {
		ok &= measure_all(ctx, BACKENDS, sizes[s], burst);
		for (unsigned b = 0; b < BACKENDS; b++) {
			const struct result *r = &results[b];

			if (!ctx[b])
				continue;
			printf("%-14s %6s", backends[b]->name, size_name(sizes[s]));
			at += (size_t)snprintf(out + at, sizeof(out) - at,
				"%s{\"backend\": \"%s\", \"bytes\": \"%s\"", comma,
				backends[b]->name, size_name(sizes[s]));
			for (unsigned w = 0; w < WHATS; w++) {
				printf(" %11.1f %5.2f", r->ns[w][0], r->ratio[w][0]);
				at += (size_t)snprintf(out + at, sizeof(out) - at,
					", \"%s_ns\": %.1f, \"%s_ratio\": %.2f", what_names[w],
					r->ns[w][0], what_names[w], r->ratio[w][0]);
			}
			printf("\n");
			at += (size_t)snprintf(out + at, sizeof(out) - at, "}");
			comma = ", ";
		}
	}
	if (json)
		printf("{\"burst\": %u, \"rounds\": %u, \"ratios_to\": \"%s\", \"results\": "
		       "[%s]}\n",
			burst, rounds, backends[0]->name, out);
	return ok;
}

#if defined(AEAD_AVX512) && defined(AEAD_IPSEC_MB)
/*
 * Does auto pick right: its speed over that of the better of the two it has, for what it does at
 * once (open and seal are alike). The worst cell is named.
 */
static bool sweep(struct sl_aead_ctx *const *ctx)
{
	static const enum what shown[] = {SEAL, FUSED};
	double worst = 1e9;
	char where[64] = "";
	bool ok = true;

	printf("%5s", "burst");
	for (unsigned s = 0; s < SIZES; s++)
		printf(" %14s", size_name(sizes[s]));
	printf("\n      (seal: our engine to ipsec-mb; auto to the better of them, seal and fused)\n");
	for (unsigned burst = 1; burst <= BURST_MAX; burst += burst < 24 ? 1 : 8) {
		printf("%5u", burst);
		for (unsigned s = 0; s < SIZES; s++) {
			ok &= measure_all(ctx, BASE_SWEEP_OTHERS + 1, sizes[s], burst);
			printf("%5.2f", results[1].ratio[SEAL][0]);
			for (unsigned k = 0; k < 2; k++) {
				double engine = results[1].ratio[shown[k]][0];
				double other = results[0].ratio[shown[k]][0];
				double chosen = results[2].ratio[shown[k]][0] /
						(engine > other ? engine : other);

				printf(" %4.2f", chosen);
				if (chosen >= worst)
					continue;
				worst = chosen;
				snprintf(where, sizeof(where), "%s, %u packets of %s bytes",
					what_names[shown[k]], burst, size_name(sizes[s]));
			}
		}
		printf("\n");
	}
	printf("worst of auto: %.2f (%s)\n", worst, where);
	return ok;
}
#else
static bool sweep(struct sl_aead_ctx *const *ctx)
{
	fprintf(stderr, "this build has no two engines for auto to choose from\n");
	return true;
}
#endif

int main(int argc, char **argv)
{
	struct sl_aead_ctx *ctx[BACKENDS] = {NULL};
	bool json = false, sweeping = false, ok;
	unsigned burst = 32;
	int c;

	while ((c = getopt(argc, argv, "jsb:r:")) != -1) {
		unsigned long n = optarg ? strtoul(optarg, NULL, 10) : 0;

		if (c == 'j') {
			json = true;
		} else if (c == 's') {
			sweeping = true;
		} else if (c == 'b' && n > 0 && n <= BURST_MAX) {
			burst = (unsigned)n;
		} else if (c == 'r' && n > 0 && n <= ROUNDS_MAX) {
			rounds = (unsigned)n;
		} else {
			fprintf(stderr, "usage: %s [-j | -s] [-b 1..%u] [-r 1..%u]\n", argv[0],
				BURST_MAX, ROUNDS_MAX);
			return 2;
		}
	}
	if (sl_crypto_init() != 0)
		return 1;
	init();
	for (unsigned b = 0; b < BACKENDS; b++)
		if (backends[b]->usable())
			ctx[b] = backends[b]->create(BURST_MAX);
	if (!ctx[0] || (sweeping && !ctx[1])) {
		fprintf(stderr, "%s: this CPU has nothing to compare\n", argv[0]);
		return 1;
	}
	ok = sweeping ? sweep(ctx) : table(ctx, burst, json);
	for (unsigned b = 0; b < BACKENDS; b++)
		if (ctx[b])
			backends[b]->destroy(ctx[b]);
	if (!ok)
		fprintf(stderr, "%s: something that was sealed did not open\n", argv[0]);
	return ok ? 0 : 1;
}
