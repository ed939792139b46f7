/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_H
#define BENCH_H
/* What the benches of one process share: EAL without devices, medians. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rte_eal.h>

/* 0 or -1. memory_mb: EAL's, ordinary pages. lcores: as --lcores takes them. */
static inline int
bench_eal_init_lcores(unsigned memory_mb, const char *lcores)
{
	static char text[10][48];
	static char *argv[11];
	static const char *const fixed[] = {"bench", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf",
		"--log-level=4", "-m"};
	unsigned n = 0;

	for (; n < sizeof(fixed) / sizeof(fixed[0]); n++)
		snprintf(text[n], sizeof(text[n]), "%s", fixed[n]);
	snprintf(text[n++], sizeof(text[0]), "%u", memory_mb);
	snprintf(text[n++], sizeof(text[0]), "--lcores=%s", lcores);
	snprintf(text[n++], sizeof(text[0]), "--file-prefix=sl_bench_%d", (int)getpid());
	for (unsigned i = 0; i < n; i++)
		argv[i] = text[i];
	return rte_eal_init((int)n, argv) < 0 ? -1 : 0;
}
static inline int
bench_eal_init(unsigned memory_mb)
{
	return bench_eal_init_lcores(memory_mb, "0@0");
}

static inline int
bench_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct bench_figure {
	double median, p10, p90;
};
/* Sorts v. */
static inline struct bench_figure
bench_figure(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), bench_compare);
	return (struct bench_figure){.median = v[n / 2], .p10 = v[n / 10], .p90 = v[n - 1 - n / 10]};
}

/*
 * Rounds in turn: `measured` figures a round, each the first, the second, ... as often as the others, then what is derived from
 * them. v[k] gets `rounds` values of figure k, warm-up left out; it has room for them. measure: a figure, negative = it failed,
 * which ends everything. derive: fills x[measured .. all). Returns -1, or the figure that failed.
 */
#define BENCH_WARM_ROUNDS 5u
static inline int
bench_rounds(double *const *v, unsigned measured, unsigned all, unsigned rounds, double (*measure)(void *arg, unsigned figure),
	void (*derive)(double *x), void *arg)
{
	for (unsigned i = 0; i < rounds + BENCH_WARM_ROUNDS; i++) {
		double x[32];

		for (unsigned k = 0; k < measured; k++) {
			const unsigned figure = (i + k) % measured;

			x[figure] = measure(arg, figure);
			if (x[figure] < 0)
				return (int)figure;
		}
		derive(x);
		for (unsigned k = 0; k < all && i >= BENCH_WARM_ROUNDS; k++)
			v[k][i - BENCH_WARM_ROUNDS] = x[k];
	}
	return -1;
}

#endif
