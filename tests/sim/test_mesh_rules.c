/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What routing does beyond the plain rules, in a small mesh of whole nodes, each beside the plain
 * rules in the same mesh. Seeds are fixed: the same run every time.
 */
#include "sim.h"
#include "sl_test.h"

static struct sim_options options(uint32_t nodes)
{
	return (struct sim_options){.nodes = nodes,
		.degree = 6,
		.seed = 7,
		.delay_us = 10 * SIM_MS,
		.jitter_us = 2 * SIM_MS,
		.pairs_per_s = 1000,
		.coords = 1024,
		.root_doubt_us = UINT64_MAX};
}

/* Seconds until all agree, tree and filters; limit_s if they do not. */
static double agreed_s(struct sim *s, double limit_s)
{
	uint64_t start_us = s->now_us;
	struct sim_agreement a;

	sim_components(s);
	do {
		sim_run_to(s, s->now_us + 100 * SIM_MS);
		sim_agree(s, &a);
		if (a.all && sim_filters_stale(s) == 0)
			break;
	} while (s->now_us - start_us < (uint64_t)(limit_s * SIM_S));
	return (double)(s->now_us - start_us) / 1e6;
}

/* One packet in thirty is lost, announces and filters among them. */
static double with_loss(bool plain, uint64_t again[2])
{
	struct sim_options o = options(60);
	uint64_t sum[SL_ROUTE_COUNTER_COUNT];
	struct sim *s;
	double took_s;

	o.loss = 0.03;
	o.no_again = plain;
	s = sim_create(&o);
	took_s = agreed_s(s, 40);
	sim_route_counters(s, sum);
	again[0] = sum[SL_ROUTE_TREE_AGAIN];
	again[1] = sum[SL_ROUTE_FILTER_AGAIN];
	sim_destroy(s);
	return took_s;
}

SL_TEST(mesh_rules, lost_announces)
{
	uint64_t again[2];
	double plain_s, ours_s;

	SL_EXPECT_EQ(sl_crypto_init(), 0);
	plain_s = with_loss(true, again);
	SL_EXPECT_EQ(again[0] + again[1], 0);
	ours_s = with_loss(false, again);
	printf("  plain rules: %.1f s; ours: %.1f s, %llu announces and %llu filters sent again\n",
		plain_s, ours_s, (unsigned long long)again[0], (unsigned long long)again[1]);
	SL_EXPECT_GE(plain_s, 40);
	SL_EXPECT_LT(ours_s, 15);
	SL_EXPECT_GT(again[0], 0);
	SL_EXPECT_GT(again[1], 0);
}

/* Without loss nothing is sent again, overtaken frames apart. */
SL_TEST(mesh_rules, no_loss_no_copies)
{
	struct sim_options o = options(60);
	uint64_t sum[SL_ROUTE_COUNTER_COUNT];
	struct sim *s;

	SL_EXPECT_EQ(sl_crypto_init(), 0);
	o.jitter_us = 0;
	s = sim_create(&o);
	SL_EXPECT_LT(agreed_s(s, 40), 15);
	sim_run_to(s, s->now_us + 100 * SIM_S);
	sim_route_counters(s, sum);
	SL_EXPECT_EQ(sum[SL_ROUTE_TREE_AGAIN] + sum[SL_ROUTE_FILTER_AGAIN], 0);
	sim_destroy(s);
}

/* The root and a tenth of the others die at once. */
static double with_deaths(uint64_t root_doubt_us)
{
	struct sim_options o = options(150);
	struct sim *s;
	double took_s;

	o.root_doubt_us = root_doubt_us;
	s = sim_create(&o);
	SL_EXPECT_LT(agreed_s(s, 40), 20);
	sim_run_to(s, s->now_us + 20 * SIM_S);
	sim_kill(s, s->root_of[0]);
	for (unsigned i = 0; i < o.nodes / 10;) {
		uint32_t n = sim_below(s, o.nodes);

		if (s->nodes[n].dead)
			continue;
		sim_kill(s, n);
		i++;
	}
	took_s = agreed_s(s, 60);
	sim_destroy(s);
	return took_s;
}

SL_TEST(mesh_rules, root_and_others_die)
{
	double plain_s, ours_s;

	SL_EXPECT_EQ(sl_crypto_init(), 0);
	plain_s = with_deaths(0);
	ours_s = with_deaths(UINT64_MAX);
	/* 30 s of these are the dead timeout. */
	printf("  plain rules: %.1f s; ours: %.1f s\n", plain_s, ours_s);
	SL_EXPECT_GT(plain_s, ours_s + 5);
	SL_EXPECT_LT(ours_s, 42);
}
