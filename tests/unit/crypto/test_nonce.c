/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_nonce.h"
#include "sl_test.h"

#include <pthread.h>
#include <stdlib.h>

SL_TEST(nonce, runs_follow_each_other)
{
	struct sl_nonce c;
	uint64_t first, want = 0;

	sl_nonce_init(&c);
	SL_EXPECT_EQ(sl_nonce_used(&c), 0);
	for (uint32_t n = 1; n < 300; n++) {
		SL_ASSERT(sl_nonce_reserve(&c, n, &first));
		SL_EXPECT(first == want);
		want += n;
		SL_EXPECT(sl_nonce_used(&c) == want);
	}
	SL_EXPECT(sl_nonce_reserve(&c, UINT32_MAX, &first));
	SL_EXPECT(sl_nonce_used(&c) == want + UINT32_MAX);
}

SL_TEST(nonce, hard_stop)
{
	struct sl_nonce c;
	uint64_t first = 0;

	sl_nonce_init(&c);
	c.next = SL_NONCE_LIMIT - 1;
	SL_EXPECT(sl_nonce_reserve(&c, 1, &first));
	SL_EXPECT(first == SL_NONCE_LIMIT - 1);
	for (unsigned i = 0; i < 1000; i++)
		SL_EXPECT(!sl_nonce_reserve(&c, UINT32_MAX, &first));
	/* A refusal does not count on: the counter can never creep up to 2^64. */
	SL_EXPECT(sl_nonce_used(&c) == SL_NONCE_LIMIT);

	/* The last run may begin below the limit and end above it, which still is far from the
	 * protocol's end. */
	c.next = SL_NONCE_LIMIT - 1;
	SL_EXPECT(sl_nonce_reserve(&c, UINT32_MAX, &first));
	SL_EXPECT(first == SL_NONCE_LIMIT - 1);
	SL_EXPECT(!sl_nonce_reserve(&c, 1, &first));
	SL_EXPECT(sl_nonce_used(&c) < UINT64_MAX / 2);
}

#define THREADS 4
#define RUNS 50000
#define MEETINGS 1000 /* how often runs of two threads must have alternated */

struct run {
	uint64_t first;
	uint32_t n;
	unsigned thread;
};

struct worker {
	pthread_t thread;
	struct sl_nonce *counter;
	pthread_barrier_t *barrier;
	uint64_t rand;
	unsigned number, got;
	struct run runs[RUNS];
};

static void *reserve(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(w->barrier);
	for (unsigned i = 0; i < RUNS; i++) {
		struct run *r = &w->runs[w->got];

		w->rand = w->rand * 6364136223846793005ull + 1442695040888963407ull;
		r->n = 1 + (uint32_t)(w->rand >> 40) % 64;
		r->thread = w->number;
		if (sl_nonce_reserve(w->counter, r->n, &r->first))
			w->got++;
	}
	return NULL;
}

static int by_first(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * Many threads at once: what they got are disjoint runs without a gap. Returns how many, and adds
 * to *met how often a run was followed by another thread's: on a busy machine the threads may run
 * one after the other, which shows nothing.
 */
static unsigned race(struct sl_nonce *counter, unsigned *met)
{
	struct worker *w = calloc(THREADS, sizeof(*w));
	struct run *all = calloc(THREADS * RUNS, sizeof(*all));
	uint64_t next = sl_nonce_used(counter);
	pthread_barrier_t barrier;
	unsigned n = 0;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (unsigned t = 0; t < THREADS; t++) {
		w[t].counter = counter;
		w[t].barrier = &barrier;
		w[t].number = t;
		w[t].rand = sl_test_rand();
		if (pthread_create(&w[t].thread, NULL, reserve, &w[t]) != 0)
			abort();
	}
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(w[t].thread, NULL);
		memcpy(all + n, w[t].runs, w[t].got * sizeof(*all));
		n += w[t].got;
	}
	pthread_barrier_destroy(&barrier);
	qsort(all, n, sizeof(*all), by_first);
	for (unsigned i = 0; i < n; i++) {
		if (all[i].first != next) {
			sl_test_fail(__FILE__, __LINE__,
				"run %u begins at %" PRIu64 ", want %" PRIu64, i, all[i].first,
				next);
			break;
		}
		next += all[i].n;
		*met += i > 0 && all[i].thread != all[i - 1].thread;
	}
	free(all);
	free(w);
	return n;
}

SL_TEST(nonce, threads_get_disjoint_runs)
{
	unsigned met = 0;

	for (unsigned tries = 0; met < MEETINGS && tries < 200 && !sl_test_failed(); tries++) {
		struct sl_nonce c;

		sl_nonce_init(&c);
		SL_EXPECT_EQ(race(&c, &met), THREADS * RUNS);
	}
	if (met < MEETINGS)
		SL_SKIP("the threads never ran at the same time");
}

SL_TEST(nonce, threads_at_the_limit)
{
	struct sl_nonce c;
	unsigned got, met = 0;

	sl_nonce_init(&c);
	c.next = SL_NONCE_LIMIT - 100000;
	got = race(&c, &met);
	SL_EXPECT_GE(got, 100000 / 64);
	SL_EXPECT_LT(got, THREADS * RUNS);
	SL_EXPECT_GE(sl_nonce_used(&c), SL_NONCE_LIMIT);
	SL_EXPECT_LT(sl_nonce_used(&c), SL_NONCE_LIMIT + 64 * THREADS);
}
