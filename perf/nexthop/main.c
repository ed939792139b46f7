/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hop on one relay with many peers and destinations: what a look-up costs, what changes cost the workers and
 * control, what control spends at rest.
 *
 *	nexthop [-j] [--peers N] [--destinations N] [--seconds S] [--rounds N]
 *	nexthop [-j] --active N [--peers N] [--destinations N]
 *
 * With --active only look-ups: so many of the destinations in use at once, in bursts of 32 in random order, by a worker that remembers
 * 65,536 (dataplane.hop_cache as it is), or twice or four times as many as are active; by one that remembers nothing; and of addresses
 * that nobody has told of. Medians and best of 21 rounds in turn.
 *
 * Changes: a reader thread looks destinations up at random, as fast as it can. Control makes one change of each kind
 * in turn, "nothing" among them, N rounds, and then does what the daemon does: tick until it is done. For 200 ms
 * after each change the reader notes the processor time of every 2,048 look-ups (not time on the clock: the machine
 * may be shared) and how many next hops it had to decide itself. What it loses is the median of these in the first 50 ms
 * against that 100 ms later. Storm: 1,000 changes a second, on the router's clock. Rest: costs of all peers change ten times a
 * second. Control: a star of whole nodes on the simulator's virtual clock; processor time of the one in the middle.
 */
#include "nexthop.h"

#include <getopt.h>

static double burst_ns(struct sl_hop_cache *with, uint32_t count, const char *what)
{
	struct sl_hop hops[32];
	const uint8_t *one[32];
	double start, best = 1e18;

	for (int pass = 0; pass < 3; pass++) {
		start = now_ns();
		for (uint32_t i = 0; i + 32 <= count; i += 32) {
			for (unsigned k = 0; k < 32; k++)
				one[k] = dest[i + k].bytes;
			sl_fib_lookup(
				r->ref.current, with, one, hops, 32, (uint32_t)(now_us / 1000000));
		}
		if (now_ns() - start < best)
			best = now_ns() - start;
	}
	best /= count / 32 * 32;
	say("%-52s %8.1f ns\n", what, best);
	return best;
}

/* --- control --- */

static void control_figures(void)
{
	struct sim_options o = {.nodes = peers + 1,
		.star = true,
		.seed = 1,
		.delay_us = 5000,
		.jitter_us = 1000,
		.coords = 256,
		.pairs_per_s = 1000,
		.root_doubt_us = UINT64_MAX};
	struct sim *s = sim_create(&o);
	struct sl_router_config c;
	const uint64_t *counters = sl_router_counters(s->nodes[0].router);
	uint64_t tree, filters, events;
	double cpu;

	sl_router_config_default(&c);
	sim_run_to(s, s->now_us + 100 * SIM_S); /* all links up, all filters told */
	tree = counters[SL_ROUTE_TREE_RX] + counters[SL_ROUTE_TREE_TX];
	filters = counters[SL_ROUTE_FILTER_RX] + counters[SL_ROUTE_FILTER_TX];
	events = s->watched_events;
	s->watched_ns = 0;
	sim_run_to(s, s->now_us + seconds * SIM_S);
	cpu = (double)s->watched_ns / 1e9 / seconds;
	tree = counters[SL_ROUTE_TREE_RX] + counters[SL_ROUTE_TREE_TX] - tree;
	filters = counters[SL_ROUTE_FILTER_RX] + counters[SL_ROUTE_FILTER_TX] - filters;
	events = s->watched_events - events;
	say("control, %u peers up of %u, steady: %.2f%% of a core (%.0f events/s, %.1f us each; "
	    "%.1f announces and %.1f "
	    "filters a second)\n",
		s->nodes[0].up, peers, 100 * cpu, (double)events / seconds,
		events ? cpu * 1e6 * seconds / (double)events : 0, (double)tree / seconds,
		(double)filters / seconds);
	if (json)
		printf("\"control\":{\"peers\":%u,\"core\":%.5f,\"events_per_s\":%.1f,\"announces_"
		       "per_s\":%.2f,"
		       "\"filters_per_s\":%.2f}",
			s->nodes[0].up, cpu, (double)events / seconds, (double)tree / seconds,
			(double)filters / seconds);
	sim_destroy(s);
}

/* --- many known, some of them active --- */

#define LOOKUP_ROUNDS 21u
static struct lookup_row {
	const char *what, *key;
	uint32_t hop_cache; /* 0 = none that serves */
	bool unknown;
	struct sl_hop_cache *cache;
	double ns[LOOKUP_ROUNDS];
	uint64_t missed;
} lookup_rows[] = {
	{"remembered, hop_cache 65,536", "hit_default", 65536, false, NULL, {0}, 0},
	{"remembered, hop_cache twice the active", "hit_twice", 2, false, NULL, {0}, 0},
	{"remembered, hop_cache four times the active", "hit_four", 4, false, NULL, {0}, 0},
	{"known, not remembered by the worker", "miss", 0, false, NULL, {0}, 0},
	{"not known", "unknown", 0, true, NULL, {0}, 0},
};

static double lookup_round(struct lookup_row *row, const struct sl_node_addr *of, uint32_t count)
{
	struct sl_hop hops[32];
	const uint8_t *one[32];
	double start = now_ns();

	for (uint32_t i = 0; i + 32 <= count; i += 32) {
		for (unsigned k = 0; k < 32; k++)
			one[k] = of[i + k].bytes;
		sl_fib_lookup(r->ref.current, row->cache, one, hops, 32, (uint32_t)(now_us / 1000000));
	}
	return (now_ns() - start) / (count / 32 * 32);
}

/* Their order is drawn once; look-ups read the addresses in a row, as a worker reads them out of frames. */
static int active_figures(uint32_t active)
{
	struct sl_node_addr *in_use = malloc(active * sizeof(*in_use)), *nobody = malloc(active * sizeof(*nobody));

	if (!in_use || !nobody)
		return 1;
	for (uint32_t i = 0; i < active; i++) {
		in_use[i] = dest[(uint64_t)i * n / active];
		nobody[i] = draw_addr();
	}
	for (uint32_t i = active - 1; i; i--) {
		uint32_t k = (uint32_t)(draw() % (i + 1));
		struct sl_node_addr t = in_use[i];

		in_use[i] = in_use[k];
		in_use[k] = t;
	}
	for (unsigned w = 0; w < sizeof(lookup_rows) / sizeof(lookup_rows[0]); w++) {
		struct lookup_row *row = &lookup_rows[w];

		row->cache = sl_hop_cache_create(row->hop_cache <= 4 ? row->hop_cache * active : row->hop_cache);
		if (!row->cache)
			return 1;
		(void)lookup_round(row, row->unknown ? nobody : in_use, active);
	}
	for (unsigned round = 0; round < LOOKUP_ROUNDS; round++)
		for (unsigned w = 0; w < sizeof(lookup_rows) / sizeof(lookup_rows[0]); w++) {
			struct lookup_row *row = &lookup_rows[w];
			uint64_t missed = sl_hop_cache_misses(row->cache);

			row->ns[round] = lookup_round(row, row->unknown ? nobody : in_use, active);
			row->missed += sl_hop_cache_misses(row->cache) - missed;
		}
	say("%u peers, %u destinations known, %u active: ns a look-up, median (best); not remembered\n", peers, n, active);
	if (json)
		printf("{\"bench\":\"nexthop_active\",\"peers\":%u,\"destinations\":%u,\"active\":%u", peers, n, active);
	for (unsigned w = 0; w < sizeof(lookup_rows) / sizeof(lookup_rows[0]); w++) {
		struct lookup_row *row = &lookup_rows[w];
		double mid = median(row->ns, LOOKUP_ROUNDS), best = row->ns[0],
		       missed = (double)row->missed / LOOKUP_ROUNDS / active;

		say("%-48s %6.1f (%5.1f) %6.2f%%\n", row->what, mid, best, 100 * missed);
		if (json)
			printf(",\"%s_ns\":%.1f,\"%s_best_ns\":%.1f,\"%s_missed\":%.5f", row->key, mid, row->key, best, row->key, missed);
		sl_hop_cache_destroy(row->cache);
	}
	if (json)
		printf("}\n");
	free(in_use);
	free(nobody);
	return 0;
}

static void snapshot_figures(void)
{
	static uint8_t messages[64][SL_FILTER_MSG_BYTES];
	uint8_t bits[SL_FILTER_BYTES];
	double start;

	for (int kind = 0; kind < 2; kind++) {
		start = now_ns();
		for (int i = 0; i < 200; i++) {
			now_us += 5000;
			r->now_us = now_us;
			r->body_dirty = true;
			r->index_dirty = kind == 1;
			sl_router_settle(r);
		}
		say("%-52s %8.1f us\n",
			kind ? "a snapshot, peers' paths changed"
			     : "a snapshot, costs or own path changed",
			(now_ns() - start) / 200e3);
	}
	for (unsigned i = 0; i < 64; i++)
		filter_build(messages[i], dest + draw() % (n / 2), 100);
	start = now_ns();
	for (unsigned i = 0; i < 4000; i++) {
		now_us += 5000;
		filter_give(1 + i % (peers - 1), messages[i * 7 % 64]);
	}
	say("%-52s %8.1f us\n", "a filter announce taken in and published",
		(now_ns() - start) / 4000e3);
	start = now_ns();
	for (int i = 0; i < 2000; i++)
		sl_filter_outgoing(r, r->peers[(uint32_t)i % peers], bits);
	say("%-52s %8.2f us\n", "outgoing filter of one peer", (now_ns() - start) / 2000e3);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"peers", 1, NULL, 'p'},
		{"destinations", 1, NULL, 'd'}, {"seconds", 1, NULL, 's'},
		{"rounds", 1, NULL, 'r'}, {"active", 1, NULL, 'a'}, {"json", 0, NULL, 'j'},
		{0}};
	double decide_tree, decide_filter, miss, hit, hit_few;
	struct sl_hop_cache *small = sl_hop_cache_create(4);
	uint32_t active = 0;
	bool misused = false;
	int c;

	while ((c = getopt_long(argc, argv, "j", longs, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == 'p')
			peers = (uint32_t)atoi(optarg);
		else if (c == 'd')
			n = (uint32_t)atoi(optarg);
		else if (c == 's')
			seconds = (uint32_t)atoi(optarg);
		else if (c == 'r')
			rounds = (uint32_t)atoi(optarg);
		else if (c == 'a')
			active = (uint32_t)atoi(optarg);
		else
			misused = true;
	}
	if (misused || optind != argc || peers < 16 || peers > 16000 || n < 4096 || !seconds || !rounds || rounds > ROUNDS_MOST || active > n || sl_crypto_init() != 0) {
		fprintf(stderr,
			"usage: nexthop [-j] [--peers N] [--destinations N] [--seconds S] [--rounds N]\n"
			"       nexthop [-j] --active N [--peers N] [--destinations N]\n");
		return 2;
	}
	if (make_relay() != 0) {
		fprintf(stderr, "nexthop: no memory\n");
		return 1;
	}
	if (active >= 32)
		return active_figures(active);
	say("%u peers, %u destinations, coordinate cache %zu MB\n", peers, n,
		sl_coords_bytes(&r->coords) >> 20);
	decide_tree = burst_ns(NULL, n, "next hop decided, by the tree");
	decide_filter = burst_ns(NULL, 1472, "next hop decided, by filters");
	miss = burst_ns(small, n, "next hop, destination not remembered");
	hit = burst_ns(cache, n, "next hop, remembered");
	hit_few = burst_ns(cache, 1472, "next hop, remembered, 1,472 destinations");
	snapshot_figures();
	if (json)
		printf("{\"bench\":\"nexthop\",\"peers\":%u,\"destinations\":%u,\"decide_tree_ns\":%.1f,"
		       "\"decide_filter_ns\":%.1f,\"miss_ns\":%.1f,\"hit_ns\":%.1f,\"hit_few_ns\":%.1f,\"changes\":{",
			peers, n, decide_tree, decide_filter, miss, hit, hit_few);
	if (change_figures() != 0)
		return 1;
	storm_figures();
	rest_figures();
	control_figures();
	if (json)
		printf("}\n");
	return 0;
}
