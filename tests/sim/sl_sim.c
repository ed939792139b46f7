/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sl_sim: a mesh of our own nodes on a virtual clock. Phases: all start at once; converged; filters
 * settle; sessions between random pairs; a quiet time; then, if asked for, some nodes die at once,
 * and a partition parts and heals. Exit status 0 when everything that is required was seen.
 */
#include "sim.h"

#include <getopt.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <time.h>

#define STEP_US (100 * SIM_MS)

static bool json, quiet;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(json ? stderr : stdout, fmt, ap);
	va_end(ap);
	fflush(json ? stderr : stdout);
}

/* One phase that begins with an event and ends with delivery. */
struct phase {
	const char *name;
	bool converged, filters_current, good;
	double links_s, root_s, converged_s; /* after the event */
	double bound_s;			     /* by the protocol's timers */
	double disturbed_s; /* of the settling time: somebody's coordinates were not current */
	double settled_s, delivering_s; /* when sessions began; when the last was through */
	struct sim_agreement agreement;
	struct sim_filters filters;
	struct sim_delivery delivery;
	uint64_t route[SL_ROUTE_COUNTER_COUNT];	   /* until settled */
	uint64_t sessions[SL_ROUTE_COUNTER_COUNT]; /* while sessions ran */
	double cpu_s;
	uint64_t events, packets;
};

struct steady {
	double seconds, cpu_s;
	uint64_t events, packets;
	uint64_t route[SL_ROUTE_COUNTER_COUNT];
};

static double cpu_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
	run_s; /* processor time inside the nodes and the event loop, not in looking at them */

static void run(struct sim *s, uint64_t for_us)
{
	double start_s = cpu_now_s();

	sim_run_to(s, s->now_us + for_us);
	run_s += cpu_now_s() - start_s;
}

static double since(const struct sim *s, uint64_t us)
{
	return (double)(s->now_us - us) / 1e6;
}

static void progress(struct sim *s, uint64_t start_us, const struct sim_agreement *a)
{
	if (!quiet && (s->now_us - start_us) % (5 * SIM_S) == 0)
		fprintf(stderr,
			"  %6.1f s: links missing %u, wrong root %u, coordinates not current %u, "
			"peers' %u, "
			"dead peers %u; %.0f s of CPU\n",
			since(s, start_us), a->links_missing / 2, a->wrong_root, a->wrong_coords,
			a->stale_peers, a->dead_peers, cpu_now_s());
}

static void converge(struct sim *s, struct phase *p, uint64_t start_us, double limit_s)
{
	struct sim_agreement a;

	while (since(s, start_us) < limit_s) {
		run(s, STEP_US);
		sim_agree(s, &a);
		progress(s, start_us, &a);
		if (!a.links_missing && !a.dead_peers && p->links_s <= 0)
			p->links_s = since(s, start_us);
		if (!a.wrong_root && !p->root_s && !a.dead_peers)
			p->root_s = since(s, start_us);
		if (a.all) {
			p->converged = true;
			p->converged_s = since(s, start_us);
			break;
		}
	}
	p->agreement = a;
}

/* Until every filter is what its sender would send now; a minute at most. */
static void settle(struct sim *s, struct phase *p, uint64_t start_us)
{
	uint64_t limit_us = s->now_us + 60 * SIM_S;
	struct sim_agreement a;

	while (!(p->filters_current = sim_filters_stale(s) == 0) && s->now_us < limit_us) {
		run(s, STEP_US);
		sim_agree(s, &a);
		p->disturbed_s += a.all ? 0 : STEP_US / 1e6;
	}
	sim_filters(s, &p->filters, 20000);
	p->settled_s = since(s, start_us);
}

static void phase_print(const struct sim *s, const struct phase *p)
{
	const struct sim_delivery *d = &p->delivery;
	const struct sim_filters *f = &p->filters;

	say("%s: %s after %.1f s (bound %.1f s); links after %.1f s, root known after %.1f s\n",
		p->name, p->converged ? "converged" : "NOT CONVERGED", p->converged_s, p->bound_s,
		p->links_s, p->root_s);
	if (!p->converged)
		say("  wrong root %u, coordinates not current %u, peers' %u, dead peers %u, links "
		    "missing %u\n",
			p->agreement.wrong_root, p->agreement.wrong_coords,
			p->agreement.stale_peers, p->agreement.dead_peers,
			p->agreement.links_missing / 2);
	say("  filters current %s %.1f s\n", p->filters_current ? "after" : "NOT EVEN after", p->settled_s);
	say("  tree: %u component(s), depth %u, mean %.1f; somebody not current for %.1f s of the "
	    "settling time\n",
		s->components, p->agreement.depth, p->agreement.mean_depth, p->disturbed_s);
	say("  sent until settled: %.1f announces and %.1f filters a node; %llu parent switches\n",
		(double)p->route[SL_ROUTE_TREE_TX] / s->alive,
		(double)p->route[SL_ROUTE_FILTER_TX] / s->alive,
		(unsigned long long)p->route[SL_ROUTE_PARENT_SWITCH]);
	say("  filters: fill mean %.3f, most %.3f; %u of %u tree links without one, %llu refused "
	    "as too full, %llu "
	    "left out;\n"
	    "  a node behind a tree link is claimed there in %.2f%%, one that is not in %.2f%%\n",
		f->mean_fill, f->max_fill, f->none, f->links,
		(unsigned long long)p->route[SL_ROUTE_FILTER_TOO_FULL],
		(unsigned long long)p->route[SL_ROUTE_FILTER_LEFT_OUT],
		f->asked ? 100.0 * (double)f->claimed / (double)f->asked : 0,
		f->foreign ? 100.0 * (double)f->false_claims / (double)f->foreign : 0);
	say("  CPU %.2f s for %llu events: %.1f us an event\n", p->cpu_s,
		(unsigned long long)p->events, p->events ? p->cpu_s * 1e6 / (double)p->events : 0);
	if (!d->pairs)
		return;
	say("  sessions: %u of %u delivered both ways, %u without repeating, %u looped, %u targets "
	    "not found\n",
		d->delivered, d->pairs, d->first_try, d->looped, d->no_lookup);
	say("  begun after %.1f s, all through after %.1f s; lookups p50 %.0f ms, p99 %.0f ms, "
	    "most %.0f ms\n",
		p->settled_s, p->delivering_s, d->lookup_p50_ms, d->lookup_p99_ms,
		d->lookup_max_ms);
	say("  meanwhile:");
	for (unsigned i = 0; i < SL_ROUTE_COUNTER_COUNT; i++)
		if (p->sessions[i])
			say(" %s %llu", sl_route_counter_name(i),
				(unsigned long long)p->sessions[i]);
	say("\n");
	say("  hops %.2f on average, stretch mean %.3f, p99 %.2f, most %.2f\n", d->hops_mean,
		d->stretch_mean, d->stretch_p99, d->stretch_max);
}

/*
 * From an event at start_us to delivery. The bound: a second a level, after `setup_s` (links up, or
 * links known dead).
 */
static void phase_run(
	struct sim *s, struct phase *p, uint64_t start_us, double limit_s, bool dead)
{
	uint64_t before[SL_ROUTE_COUNTER_COUNT], events = s->events, packets = s->packets;
	double cpu_s = run_s;

	say("%s\n", p->name);
	sim_route_counters(s, before);
	sim_components(s);
	converge(s, p, start_us, limit_s);
	settle(s, p, start_us);
	sim_route_counters(s, p->route);
	for (unsigned i = 0; i < SL_ROUTE_COUNTER_COUNT; i++)
		p->route[i] -= before[i];
	p->cpu_s = run_s - cpu_s;
	p->events = s->events - events;
	p->packets = s->packets - packets;
	/* Nodes that die: a minute, the dead timeout in it. Else a second a level after the links
	 * are up. */
	p->bound_s = dead ? 60 : p->agreement.depth + p->links_s;
	sim_route_counters(s, before);
	sim_deliver(s, &p->delivery);
	sim_route_counters(s, p->sessions);
	for (unsigned i = 0; i < SL_ROUTE_COUNTER_COUNT; i++)
		p->sessions[i] -= before[i];
	p->delivering_s = since(s, start_us);
	/* That minute is for the sessions too, where nothing is lost on the wires. */
	p->good = p->converged && p->converged_s <= p->bound_s &&
		  (!dead || s->o.loss > 0 || p->delivering_s <= p->bound_s) &&
		  p->delivery.delivered == p->delivery.pairs && !p->delivery.looped;
	phase_print(s, p);
}

static void steady_run(struct sim *s, struct steady *q)
{
	uint64_t before[SL_ROUTE_COUNTER_COUNT], events = s->events, packets = s->packets;
	double cpu_s = run_s;

	sim_route_counters(s, before);
	for (uint32_t i = 0; i < s->o.steady_s; i++)
		run(s, SIM_S);
	sim_route_counters(s, q->route);
	for (unsigned i = 0; i < SL_ROUTE_COUNTER_COUNT; i++)
		q->route[i] -= before[i];
	q->seconds = s->o.steady_s;
	q->cpu_s = run_s - cpu_s;
	q->events = s->events - events;
	q->packets = s->packets - packets;
	say("steady: a node and second: %.1f packets, %.2f announces, %.2f filters, %.0f us of CPU "
	    "(%.1f us an event)\n",
		(double)q->packets / q->seconds / s->alive,
		(double)q->route[SL_ROUTE_TREE_TX] / q->seconds / s->alive,
		(double)q->route[SL_ROUTE_FILTER_TX] / q->seconds / s->alive,
		q->cpu_s * 1e6 / q->seconds / s->alive,
		q->events ? q->cpu_s * 1e6 / (double)q->events : 0);
}

static void kill_some(struct sim *s)
{
	uint32_t victims = (uint32_t)(s->o.nodes * s->o.kill_percent / 100);

	if (s->o.kill_root) {
		sim_kill(s, s->root_of[0]);
		victims -= victims > 0;
	}
	while (victims) {
		uint32_t i = sim_below(s, s->o.nodes);

		if (s->nodes[i].dead)
			continue;
		sim_kill(s, i);
		victims--;
	}
}

/* Half the nodes, as they lie around a random one. */
static void part(struct sim *s, uint8_t *side)
{
	uint32_t from = 0;

	do
		from = sim_below(s, s->o.nodes);
	while (s->nodes[from].dead);
	sim_distances(s, from);
	for (uint32_t radius = 0, in = 0; in < s->alive / 2; radius++)
		for (uint32_t i = 0; i < s->o.nodes && in < s->alive / 2; i++)
			if (s->distance[i] == radius) {
				side[i] = 1;
				in++;
			}
	sim_cut(s, side, true);
}

/* --- the report --- */

static void json_phase(const struct phase *p)
{
	const struct sim_delivery *d = &p->delivery;
	const struct sim_filters *f = &p->filters;

	printf(",\"%s\":{\"good\":%s,\"converged\":%s,\"converged_s\":%.1f,\"bound_s\":%.1f,"
	       "\"links_s\":%.1f,"
	       "\"root_s\":%.1f,\"filters_current\":%s,\"depth\":%u,\"mean_depth\":%.2f,\"disturbed_s\":%.1f,"
	       "\"announces\":%llu,"
	       "\"filters\":%llu,\"parent_switches\":%llu,\"loop_drops\":%llu,",
		p->name, p->good ? "true" : "false", p->converged ? "true" : "false",
		p->converged_s, p->bound_s, p->links_s, p->root_s, p->filters_current ? "true" : "false", p->agreement.depth,
		p->agreement.mean_depth, p->disturbed_s,
		(unsigned long long)p->route[SL_ROUTE_TREE_TX],
		(unsigned long long)p->route[SL_ROUTE_FILTER_TX],
		(unsigned long long)p->route[SL_ROUTE_PARENT_SWITCH],
		(unsigned long long)p->route[SL_ROUTE_LOOP_DROP]);
	printf("\"filter_fill_mean\":%.4f,\"filter_fill_max\":%.4f,\"tree_links\":%u,\"tree_links_"
	       "without_filter\":%u,"
	       "\"filters_too_full\":%llu,\"filters_left_out\":%llu,\"claimed_behind\":%.5f,"
	       "\"claimed_elsewhere\":%.5f,",
		f->mean_fill, f->max_fill, f->links, f->none,
		(unsigned long long)p->route[SL_ROUTE_FILTER_TOO_FULL],
		(unsigned long long)p->route[SL_ROUTE_FILTER_LEFT_OUT],
		f->asked ? (double)f->claimed / (double)f->asked : 0,
		f->foreign ? (double)f->false_claims / (double)f->foreign : 0);
	printf("\"pairs\":%u,\"delivered\":%u,\"first_try\":%u,\"looped\":%u,\"not_found\":%u,"
	       "\"sessions_from_s\":%.1f,"
	       "\"sessions_done_s\":%.1f,\"lookup_p50_ms\":%.1f,\"lookup_p99_ms\":%.1f,\"lookup_"
	       "max_ms\":%.1f,"
	       "\"hops_mean\":%.3f,\"stretch_mean\":%.4f,\"stretch_p99\":%.3f,\"stretch_max\":%.3f,"
	       "\"cpu_s\":%.3f,"
	       "\"events\":%llu,\"packets\":%llu}",
		d->pairs, d->delivered, d->first_try, d->looped, d->no_lookup, p->settled_s,
		p->delivering_s, d->lookup_p50_ms, d->lookup_p99_ms, d->lookup_max_ms, d->hops_mean,
		d->stretch_mean, d->stretch_p99, d->stretch_max, p->cpu_s,
		(unsigned long long)p->events, (unsigned long long)p->packets);
}

static void json_report(const struct sim *s, const struct phase *phases, unsigned count,
	const struct steady *q, bool good)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("{\"good\":%s,\"nodes\":%u,\"degree\":%.2f,\"seed\":%llu,\"loss\":%.4f,"
	       "\"duplicate\":%.4f,"
	       "\"delay_ms\":%.1f,\"jitter_ms\":%.1f,\"kill_percent\":%.1f,\"edges\":%llu,"
	       "\"virtual_s\":%.1f,"
	       "\"cpu_s\":%.1f,\"memory_mb\":%ld",
		good ? "true" : "false", s->o.nodes, s->o.degree, (unsigned long long)s->o.seed,
		s->o.loss, s->o.duplicate, (double)s->o.delay_us / 1e3,
		(double)s->o.jitter_us / 1e3, s->o.kill_percent, (unsigned long long)s->edges,
		since(s, 1000 * SIM_S), cpu_now_s(), u.ru_maxrss / 1024);
	for (unsigned i = 0; i < count; i++)
		json_phase(&phases[i]);
	if (q->seconds > 0)
		printf(",\"steady\":{\"seconds\":%.0f,\"cpu_us_per_node_s\":%.1f,\"packets_per_"
		       "node_s\":%.2f,"
		       "\"announces_per_node_s\":%.3f,\"filters_per_node_s\":%.3f,\"cpu_us_per_"
		       "event\":%.2f}",
			q->seconds, q->cpu_s * 1e6 / q->seconds / s->alive,
			(double)q->packets / q->seconds / s->alive,
			(double)q->route[SL_ROUTE_TREE_TX] / q->seconds / s->alive,
			(double)q->route[SL_ROUTE_FILTER_TX] / q->seconds / s->alive,
			q->events ? q->cpu_s * 1e6 / (double)q->events : 0);
	printf("}\n");
}

static void usage(FILE *to)
{
	fprintf(to, "sl_sim [OPTION ...]\n"
		    "  --nodes N        nodes (200)           --degree D      mean number of links "
		    "(6)\n"
		    "  --seed S         all randomness (1)    --pairs N       random sessions a "
		    "phase (10000)\n"
		    "  --delay-ms A     mean delay (10)       --jitter-ms J   added at random, "
		    "reorders (2)\n"
		    "  --loss P         share lost (0)        --duplicate P   share delivered "
		    "twice (0)\n"
		    "  --kill PERCENT   die at once (0)       --partition S   two halves for S "
		    "seconds (0)\n"
		    "  --steady S       quiet time to measure --rate N        sessions begun a "
		    "second (1000)\n"
		    "  --kill-root      the root dies with them, or alone\n"
		    "  --root-doubt S   sl_router_config.root_doubt_us; 0 = as the plain rules "
		    "have it\n"
		    "  --no-again       announces that were lost are not sent again early: the "
		    "plain rules\n"
		    "  --coords N       capacity of a node's coordinate cache (8192)\n"
		    "  -j, --json       one JSON object on standard output    -q  no progress\n");
}

static void options(struct sim_options *o, int argc, char **argv)
{
	enum {
		NODES = 256,
		DEGREE,
		SEED,
		PAIRS,
		DELAY,
		JITTER,
		LOSS,
		DUPLICATE,
		KILL,
		PARTITION,
		STEADY,
		RATE,
		COORDS,
		ROOT,
		DOUBT,
		NO_AGAIN
	};
	static const struct option longs[] = {{"nodes", 1, NULL, NODES},
		{"degree", 1, NULL, DEGREE}, {"seed", 1, NULL, SEED}, {"pairs", 1, NULL, PAIRS},
		{"delay-ms", 1, NULL, DELAY}, {"jitter-ms", 1, NULL, JITTER},
		{"loss", 1, NULL, LOSS}, {"duplicate", 1, NULL, DUPLICATE}, {"kill", 1, NULL, KILL},
		{"partition", 1, NULL, PARTITION}, {"steady", 1, NULL, STEADY},
		{"rate", 1, NULL, RATE}, {"coords", 1, NULL, COORDS}, {"kill-root", 0, NULL, ROOT},
		{"root-doubt", 1, NULL, DOUBT}, {"no-again", 0, NULL, NO_AGAIN}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'},
		{0}};
	int c;

	while ((c = getopt_long(argc, argv, "jqh", longs, NULL)) != -1) {
		double v = optarg ? atof(optarg) : 0;

		switch (c) {
		case NODES:
			o->nodes = (uint32_t)v;
			break;
		case DEGREE:
			o->degree = v;
			break;
		case SEED:
			o->seed = strtoull(optarg, NULL, 0);
			break;
		case PAIRS:
			o->pairs = (uint32_t)v;
			break;
		case DELAY:
			o->delay_us = (uint64_t)(v * 1000);
			break;
		case JITTER:
			o->jitter_us = (uint64_t)(v * 1000);
			break;
		case LOSS:
			o->loss = v;
			break;
		case DUPLICATE:
			o->duplicate = v;
			break;
		case KILL:
			o->kill_percent = v;
			break;
		case PARTITION:
			o->partition_s = (uint32_t)v;
			break;
		case STEADY:
			o->steady_s = (uint32_t)v;
			break;
		case RATE:
			o->pairs_per_s = (uint32_t)v;
			break;
		case COORDS:
			o->coords = (uint32_t)v;
			break;
		case DOUBT:
			o->root_doubt_us = (uint64_t)(v * 1e6);
			break;
		case NO_AGAIN:
			o->no_again = true;
			break;
		case ROOT:
			o->kill_root = true;
			break;
		case 'j':
			json = true;
			break;
		case 'q':
			quiet = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind != argc || o->nodes < 2 || o->nodes > 1000000 || o->degree < 1 ||
		!o->pairs_per_s || o->loss < 0 || o->loss >= 1 || o->kill_percent < 0 ||
		o->kill_percent > 95 || !o->coords) {
		usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sim_options o = {.nodes = 200,
		.degree = 6,
		.seed = 1,
		.pairs = 10000,
		.pairs_per_s = 1000,
		.delay_us = 10 * SIM_MS,
		.jitter_us = 2 * SIM_MS,
		.steady_s = 30,
		.coords = 8192,
		.root_doubt_us = UINT64_MAX};
	struct phase phases[4] = {{.name = "start"}};
	struct steady quiet_time = {0};
	unsigned count = 1;
	uint64_t event_us;
	bool good = true;
	struct sim *s;

	options(&o, argc, argv);
	if (sl_crypto_init() != 0)
		return 1;
	say("%u nodes, mean degree %.1f, seed %llu, delay %.1f ms + %.1f ms, loss %.4f, duplicates "
	    "%.4f\n",
		o.nodes, o.degree, (unsigned long long)o.seed, (double)o.delay_us / 1e3,
		(double)o.jitter_us / 1e3, o.loss, o.duplicate);
	s = sim_create(&o);
	phase_run(s, &phases[0], s->now_us, 300, false);
	if (o.steady_s)
		steady_run(s, &quiet_time);
	if (o.kill_percent > 0 || o.kill_root) {
		struct phase *p = &phases[count++];

		p->name = "kill";
		event_us = s->now_us;
		kill_some(s);
		phase_run(s, p, event_us, 120, true);
	}
	if (o.partition_s) {
		uint8_t *side = calloc(o.nodes, 1);
		struct phase *p = &phases[count++], *h = &phases[count++];

		p->name = "part";
		event_us = s->now_us;
		part(s, side);
		phase_run(s, p, event_us, o.partition_s, true);
		while (since(s, event_us) < o.partition_s)
			run(s, SIM_S);
		h->name = "heal";
		event_us = s->now_us;
		sim_cut(s, side, false);
		phase_run(s, h, event_us, 600, false);
		free(side);
	}
	for (unsigned i = 0; i < count; i++)
		good = good && phases[i].good;
	say("%s\n", good ? "all seen" : "NOT ALL SEEN");
	if (json)
		json_report(s, phases, count, &quiet_time, good);
	sim_destroy(s);
	return good ? 0 : 1;
}
