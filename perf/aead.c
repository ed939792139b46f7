/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one packet costs to seal and to open, per AEAD backend and size: one burst in the cache, a
 * key for each packet, in place, packets as far apart as mbufs are. The backends take turns in
 * every round, so that a slow phase of the machine falls on all of them; shown are the median over
 * the rounds and the median of each round's ratio to ipsec-mb. "transit" is open and seal, "fused"
 * the same by open_lead and reseal (its ratio too is to ipsec-mb's open and seal). "mixed" is 28
 * packets of 64 bytes, 16 of 570 and 4 of 1420, shuffled.
 *
 * Behind the table: what is wanted of the engines and what was seen. "median" is that of each round's
 * ratio and counts; "best" is the ratio of both sides' best rounds. "quiet" is the median of those
 * rounds before and behind which the core was ours: of the two 512-bit additions a cycle that it
 * can do went through nearly all. On a shared machine that is what the code does, and the last line
 * says how much of the time it was so.
 *
 *	aead [-j] [-r ROUNDS]	with a JSON object as the last thing printed
 *	aead -b BURST ...	another burst than 32, without what is wanted
 *	aead -s [-r ROUNDS]	bursts of 1 to 64: auto against the best of the others, all cells
 */
#include "aead_backend.h"
#include "gauge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BURST_MAX 64u
#define ROUNDS_MIN 21u
#define ROUNDS_MAX 1001u
#define SWEEP_ROUNDS 21u
#define BURST 32u
#define STRIDE 2368u /* of an mbuf with 2,176 bytes of room and its header */
#define ROUND_BYTES                                                                                \
	50000.0 /* how much a backend works in a round, packets' fixed cost included               \
		 */
#define WARM_NS 40000.0 /* before anything is timed */
#define MIXED 0u
#define MIX_PACKETS 48u
#define AUTO_FLOOR 0.97 /* auto, at any burst and size, to the better of the two it chooses from */

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
#define SWEEP_BACKENDS 3u /* ipsec-mb, our widest engine, auto */

/* transit: opened with one key and sealed with another, whole or (fused) by open_lead and reseal. */
enum what { SEAL, OPEN, TRANSIT, FUSED, WHATS };
static const char *const what_names[WHATS] = {"seal", "open", "transit", "fused"};

struct result {
	double ns[WHATS][ROUNDS_MAX]; /* of each round */
};

static uint8_t buf[BURST_MAX][STRIDE] __attribute__((aligned(64)));
static uint8_t keys[2][BURST_MAX][SL_AEAD_KEY_BYTES] __attribute__((aligned(64)));
static struct sl_aead_op ops[BURST_MAX];
static struct sl_aead_reop reops[BURST_MAX];
static struct result results[BACKENDS];
static unsigned mix[MIX_PACKETS], mix_from, rounds = 101;
static double clock_ns; /* what reading it costs */
static uint64_t counter;

static unsigned draw(void)
{
	static uint32_t x = 12345;

	x = x * 1664525 + 1013904223;
	return x >> 16;
}

static void init(void)
{
	double t;

	for (unsigned i = 0; i < MIX_PACKETS; i++)
		mix[i] = i < 28 ? 64 : i < 44 ? 570 : 1420;
	for (unsigned i = MIX_PACKETS - 1; i > 0; i--) {
		unsigned j = draw() % (i + 1), m = mix[i];

		mix[i] = mix[j];
		mix[j] = m;
	}
	sl_random(keys, sizeof(keys));
	clock_ns = 1e9;
	for (unsigned i = 0; i < 1000; i++) {
		t = now_ns();
		for (unsigned k = 0; k < 10; k++)
			(void)now_ns();
		t = (now_ns() - t) / 11;
		clock_ns = t < clock_ns ? t : clock_ns;
	}
}

/*
 * Repetition k of a burst; a mixed one takes the next packets of the mixture, each time from another
 * one on: nobody shall find what the last backend has taught the predictors.
 */
static void prepare(unsigned size, unsigned burst, unsigned k)
{
	for (unsigned i = 0; i < burst; i++) {
		ops[i] = (struct sl_aead_op){
			.aad = buf[i] + 128 + 42,
			.text = buf[i] + 128 + 42 + SL_AEAD_AAD_BYTES,
			.key = keys[0][i],
			.text_len = size == MIXED ? mix[(mix_from + k * burst + i) % MIX_PACKETS] : size,
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

/* One burst, timed for what is asked: sealed, or sealed before and opened, or passed on. */
static bool one_turn(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, enum what what,
	unsigned burst, double *ns)
{
	double t[4];

	if (what == SEAL) {
		t[0] = now_ns();
		b->seal(ctx, ops, burst);
		*ns = now_ns() - t[0] - clock_ns;
		return true;
	}
	b->seal(ctx, ops, burst);
	if (what == OPEN) {
		bool ok;

		t[0] = now_ns();
		ok = b->open(ctx, ops, burst) == burst;
		*ns = now_ns() - t[0] - clock_ns;
		return ok;
	}
	t[0] = now_ns();
	if (sl_aead_open_lead(b, ctx, ops, burst) != burst)
		return false;
	t[1] = now_ns();
	prepare_reseal(burst);
	t[2] = now_ns();
	(void)sl_aead_reseal(b, ctx, reops, burst);
	t[3] = now_ns();
	*ns = t[1] - t[0] + t[3] - t[2] - 2 * clock_ns;
	return true;
}

/* What has gone through one_turn authenticates still. */
static bool still_opens(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, enum what what,
	unsigned burst)
{
	if (what == OPEN)
		return true;
	if (what == FUSED)
		take_new_keys(burst);
	return b->open(ctx, ops, burst) == burst;
}

/*
 * Each kind of call in a loop of its own: where auto seals with one engine and opens with the other
 * they would find the caches and predictors as the other left them, which one engine never does.
 * False when something that was sealed did not open.
 */
static bool measure(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, unsigned size,
	unsigned burst, double ns[WHATS])
{
	static const enum what timed[] = {SEAL, OPEN, FUSED};
	unsigned repeats =
		(unsigned)(ROUND_BYTES / (burst * (150.0 + (size == MIXED ? 345 : size)))) + 1;
	double begin;
	bool ok = true;

	for (unsigned i = 0; i < sizeof(timed) / sizeof(timed[0]); i++) {
		enum what w = timed[i];

		ns[w] = 0;
		mix_from = draw() % MIX_PACKETS;
		/* A core that comes from narrower vectors takes its time until wide ones are at full
		 * speed. A relay's worker never comes from anywhere. */
		begin = now_ns();
		for (unsigned k = 0; k <= repeats;) {
			double turn = 0;
			bool warm = now_ns() - begin > WARM_NS;

			prepare(size, burst, k);
			ok &= one_turn(b, ctx, w, burst, &turn);
			if (warm && k > 0)
				ns[w] += turn / (repeats * burst);
			k += warm || k == 0;
		}
		ok &= still_opens(b, ctx, w, burst);
	}
	ns[TRANSIT] = ns[SEAL] + ns[OPEN];
	return ok;
}

/* Before each round and behind the last. */
static struct gauge gauges[ROUNDS_MAX + 1];
static double ghz_sum, quiet_rounds, all_rounds;

static bool was_quiet(unsigned round)
{
	return gauges[round].adds >= GAUGE_QUIET && gauges[round + 1].adds >= GAUGE_QUIET;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(const double *v, unsigned n)
{
	static double sorted[ROUNDS_MAX];

	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static double median(const double *v)
{
	return median_of(v, rounds);
}

static double least(const double *v)
{
	double x = v[0];

	for (unsigned r = 1; r < rounds; r++)
		x = v[r] < x ? v[r] : x;
	return x;
}

/* How many times as fast as `base`: the median of the rounds' ratios. */
static double ratio_median(const double *base, const double *ns)
{
	double ratio[ROUNDS_MAX];

	for (unsigned r = 0; r < rounds; r++)
		ratio[r] = base[r] / ns[r];
	return median(ratio);
}

/* Of the quiet rounds only; 0: there were none. */
static double ratio_quiet(const double *base, const double *ns)
{
	double ratio[ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned r = 0; r < rounds; r++)
		if (was_quiet(r))
			ratio[n++] = base[r] / ns[r];
	return n > 0 ? median_of(ratio, n) : 0;
}

/* To the first backend; fused is held against its open and seal. */
static double ratio_to_first(const struct result *r, unsigned w)
{
	return ratio_median(results[0].ns[w == FUSED ? TRANSIT : w], r->ns[w]);
}

/*
 * Whose turn is the k-th of a round. Who comes behind a backend with narrower vectors finds another clock
 * than who comes behind one with wide ones: so each is first in turn, and every other round goes backwards.
 */
static unsigned turn_of(unsigned k, unsigned round, unsigned count)
{
	return ((round % 2 ? count - 1 - k : k) + round / 2) % count;
}

static bool measure_all(
	struct sl_aead_ctx *const *ctx, unsigned count, unsigned size, unsigned burst)
{
	bool ok = true;

	for (unsigned r = 0; r < rounds; r++) {
		gauges[r] = gauge(clock_ns);
		for (unsigned k = 0; k < count; k++) {
			const unsigned b = turn_of(k, r, count);
			double ns[WHATS];

			if (!ctx[b])
				continue;
			ok &= measure(backends[b], ctx[b], size, burst, ns);
			for (unsigned w = 0; w < WHATS; w++)
				results[b].ns[w][r] = ns[w];
		}
	}
	gauges[rounds] = gauge(clock_ns);
	for (unsigned r = 0; r < rounds; r++) {
		ghz_sum += gauges[r].ghz;
		quiet_rounds += was_quiet(r);
		all_rounds++;
	}
	return ok;
}

static const char *size_name(unsigned size)
{
	static char name[16];

	snprintf(name, sizeof(name), "%u", size);
	return size == MIXED ? "mixed" : name;
}

/* The JSON object, put together on the way. */
static char out[32768];
static size_t out_at;

static void __attribute__((format(printf, 1, 2))) emit(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	out_at += (size_t)vsnprintf(out + out_at, sizeof(out) - out_at, format, args);
	va_end(args);
	if (out_at >= sizeof(out))
		out_at = sizeof(out) - 1;
}

/* What is wanted, and what was seen. */
struct verdict {
	const char *name;
	double wanted, median, best, quiet;
};

static struct verdict verdicts[16];
static unsigned verdict_count;
static char floor_name[128];

static void add_verdict(const char *name, double wanted, double seen, double best, double quiet)
{
	verdicts[verdict_count++] = (struct verdict){name, wanted, seen, best, quiet};
}

static const struct wanted {
	const char *name, *engine, *base;
	unsigned size, burst;
	double ratio;
} wanted[] = {
	{"auto to ipsec-mb, seal of 64 bytes", "auto", "ipsec-mb", 64, BURST, 4.5},
	{"auto to ipsec-mb, seal of 128 bytes", "auto", "ipsec-mb", 128, BURST, 3.3},
	{"auto to ipsec-mb, seal of 256 bytes", "auto", "ipsec-mb", 256, BURST, 2.8},
	{"auto to ipsec-mb, seal of 512 bytes", "auto", "ipsec-mb", 512, BURST, 2.1},
	{"auto to ipsec-mb, seal of 1024 bytes", "auto", "ipsec-mb", 1024, BURST, 1.8},
	{"auto to ipsec-mb, seal of 1420 bytes", "auto", "ipsec-mb", 1420, BURST, 1.5},
	{"auto to ipsec-mb, seal, mixed, burst 32", "auto", "ipsec-mb", MIXED, BURST, 1.6},
	{"auto to ipsec-mb, seal, mixed, burst 64", "auto", "ipsec-mb", MIXED, BURST_MAX, 1.8},
	{"avx2 to ipsec-mb's AVX2, seal of 64 bytes", "avx2", "ipsec-mb-avx2", 64, BURST, 2.0},
	{"avx2 to ipsec-mb's AVX2, seal of 256 bytes", "avx2", "ipsec-mb-avx2", 256, BURST, 2.0},
	{"avx2 to ipsec-mb's AVX2, seal of 1420 bytes", "avx2", "ipsec-mb-avx2", 1420, BURST, 1.0},
};

/* NULL: not measured. */
static const double *seal_of(struct sl_aead_ctx *const *ctx, const char *name)
{
	for (unsigned b = 0; b < BACKENDS; b++)
		if (ctx[b] && strcmp(backends[b]->name, name) == 0)
			return results[b].ns[SEAL];
	return NULL;
}

/* Of the size that was measured last. */
static void judge(struct sl_aead_ctx *const *ctx, unsigned size, unsigned burst)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct wanted *w = &wanted[i];
		const double *ns = seal_of(ctx, w->engine), *base = seal_of(ctx, w->base);

		if (w->size == size && w->burst == burst && ns && base)
			add_verdict(w->name, w->ratio, ratio_median(base, ns),
				least(base) / least(ns), ratio_quiet(base, ns));
	}
}

static void print_verdicts(void)
{
	if (verdict_count > 0)
		printf("\n%-50s %8s %7s %7s %7s\n", "wanted", "at least", "median", "best", "quiet");
	emit(", \"targets\": [");
	for (unsigned i = 0; i < verdict_count; i++) {
		const struct verdict *v = &verdicts[i];
		bool met = v->median >= v->wanted, when_quiet = v->quiet >= v->wanted;

		printf("%-50s %8.2f %7.2f %7.2f %7.2f  %s\n", v->name, v->wanted, v->median, v->best,
			v->quiet,
			met	     ? "met"
			: when_quiet ? "MISSED (met when quiet)"
				     : "MISSED");
		emit("%s{\"target\": \"%s\", \"at_least\": %.2f, \"median\": %.2f, \"best\": %.2f, "
		     "\"quiet\": %.2f, \"met\": %s}",
			i > 0 ? ", " : "", v->name, v->wanted, v->median, v->best, v->quiet,
			met ? "true" : "false");
	}
	emit("]");
	if (ghz_sum <= 0)
		return;
	printf("machine: clock %.2f GHz, the core was ours in %.0f%% of the rounds\n",
		ghz_sum / all_rounds, 100 * quiet_rounds / all_rounds);
	emit(", \"clock_ghz\": %.2f, \"quiet_share\": %.2f", ghz_sum / all_rounds,
		quiet_rounds / all_rounds);
}

static bool table(struct sl_aead_ctx *const *ctx, unsigned burst)
{
	const char *comma = "";
	bool ok = true;

	emit("{\"burst\": %u, \"rounds\": %u, \"ratios_to\": \"%s\", \"results\": [", burst, rounds,
		backends[0]->name);

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
			emit("%s{\"backend\": \"%s\", \"bytes\": \"%s\"", comma, backends[b]->name,
				size_name(sizes[s]));
			for (unsigned w = 0; w < WHATS; w++) {
				double ns = median(r->ns[w]), ratio = ratio_to_first(r, w);

				printf(" %11.1f %5.2f", ns, ratio);
				emit(", \"%s_ns\": %.1f, \"%s_ratio\": %.2f", what_names[w], ns,
					what_names[w], ratio);
			}
			printf("\n");
			emit("}");
			comma = ", ";
		}
		if (burst == BURST)
			judge(ctx, sizes[s], burst);
	}
	emit("]");
	return ok;
}

#if defined(AEAD_AVX512) && defined(AEAD_IPSEC_MB)
/* One cell: auto's speed over that of the better of the two it has, for seal or fused. */
static double auto_share(enum what w)
{
	const double *other = results[0].ns[w], *engine = results[1].ns[w];

	return ratio_median(median(engine) < median(other) ? engine : other, results[2].ns[w]);
}

/*
 * Does auto pick right: for what it does at once (open and seal are alike). A cell that looks bad is
 * measured again, longer, and that counts: of some hundred cells a few are always disturbed. The
 * worst one is named.
 */
static bool sweep(struct sl_aead_ctx *const *ctx, bool show)
{
	static const enum what shown[] = {SEAL, FUSED};
	const unsigned asked = rounds;
	double worst = 1e9;
	char where[64] = "";
	bool ok = true;

	if (show) {
		printf("seal: our engine to ipsec-mb; auto to the better of them, seal and fused\n%5s",
			"burst");
		for (unsigned s = 0; s < SIZES; s++)
			printf(" %14s", size_name(sizes[s]));
		printf("\n");
	}
	for (unsigned burst = 1; burst <= BURST_MAX; burst += burst < 24 ? 1 : 8) {
		if (show)
			printf("%5u", burst);
		for (unsigned s = 0; s < SIZES; s++) {
			double share[2];

			ok &= measure_all(ctx, SWEEP_BACKENDS, sizes[s], burst);
			for (unsigned k = 0; k < 2; k++)
				share[k] = auto_share(shown[k]);
			if (share[0] < AUTO_FLOOR || share[1] < AUTO_FLOOR) {
				rounds = 5 * asked < ROUNDS_MAX ? 5 * asked : ROUNDS_MAX;
				ok &= measure_all(ctx, SWEEP_BACKENDS, sizes[s], burst);
				for (unsigned k = 0; k < 2; k++)
					share[k] = auto_share(shown[k]);
			}
			if (show)
				printf("%5.2f %4.2f %4.2f", ratio_to_first(&results[1], SEAL), share[0],
					share[1]);
			rounds = asked;
			for (unsigned k = 0; k < 2; k++) {
				if (share[k] >= worst)
					continue;
				worst = share[k];
				snprintf(where, sizeof(where), "%s, %u packets of %s bytes",
					what_names[shown[k]], burst, size_name(sizes[s]));
			}
		}
		if (show)
			printf("\n");
	}
	if (show)
		printf("worst of auto: %.2f (%s)\n", worst, where);
	snprintf(floor_name, sizeof(floor_name), "auto at its worst: %s", where);
	add_verdict(floor_name, AUTO_FLOOR, worst, worst, worst);
	return ok;
}
#else
static bool sweep(struct sl_aead_ctx *const *ctx, bool show)
{
	if (show)
		fprintf(stderr, "this build has no two engines for auto to choose from\n");
	return true;
}
#endif

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s [-j] [-s] [-b 1..%u] [-r %u..%u]\n", name, BURST_MAX, ROUNDS_MIN,
		ROUNDS_MAX);
	return 2;
}

/* The table, and for the burst that something is wanted of the rest as well. */
static bool all_of_it(struct sl_aead_ctx *const *ctx, unsigned burst, bool json)
{
	bool ok = table(ctx, burst);

	if (burst == BURST) {
		ok &= measure_all(ctx, BACKENDS, MIXED, BURST_MAX);
		judge(ctx, MIXED, BURST_MAX);
		if (rounds > SWEEP_ROUNDS)
			rounds = SWEEP_ROUNDS;
		if (ctx[1])
			ok &= sweep(ctx, false);
	}
	print_verdicts();
	emit("}");
	if (json)
		printf("%s\n", out);
	return ok;
}

int main(int argc, char **argv)
{
	struct sl_aead_ctx *ctx[BACKENDS] = {NULL};
	bool json = false, sweeping = false, ok;
	unsigned burst = BURST;
	int c;

	while ((c = getopt(argc, argv, "jsb:r:")) != -1) {
		unsigned long n = optarg ? strtoul(optarg, NULL, 10) : 0;

		if (c == 'j')
			json = true;
		else if (c == 's')
			sweeping = true;
		else if (c == 'b' && n > 0 && n <= BURST_MAX)
			burst = (unsigned)n;
		else if (c == 'r' && n >= ROUNDS_MIN && n <= ROUNDS_MAX)
			rounds = (unsigned)n;
		else
			return usage(argv[0]);
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
	ok = sweeping ? sweep(ctx, true) : all_of_it(ctx, burst, json);
	for (unsigned b = 0; b < BACKENDS; b++)
		if (ctx[b])
			backends[b]->destroy(ctx[b]);
	if (!ok)
		fprintf(stderr, "%s: something that was sealed did not open\n", argv[0]);
	return ok ? 0 : 1;
}
