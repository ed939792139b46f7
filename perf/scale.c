/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a second worker adds, and what a hand-over costs. One process, two lcores; each worker has a source and a sink of
 * its own (rings), and the thread that drives it fills the one and empties the other outside the time that counts. Of
 * the 64 sessions each worker owns half and receives their frames; both send on all of them, so that send counters,
 * forwarding state and tables are shared.
 *
 * In turn, round after round:
 *	one worker		all frames, both sources
 *	two workers		half of the frames each, at once: the slower one's time
 *	the AEAD, one thread	nothing but open_lead and reseal of the same frames
 *	the AEAD, two threads	half each, at once: what these two CPUs can add at all, whatever the pipeline
 *	direct, handed over	frames received by their owner, and by the other worker: the difference is a hand-over,
 *				once with both workers on one thread and once on two (cycles that the workers count)
 *	elephant		frames of one session in one queue, its worker alone, and with the other one's help (sl_spread.h): time
 *				by the clock until the last has left
 * Times are those on the CPU, so that a busy machine distorts them less; both threads begin together.
 *
 * Usage: scale [-j] [--rounds N] [--size BYTES] [--aead NAME]
 */
#include <errno.h>
#include <getopt.h>
#include <time.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include "bench.h"
#include "common/relay.h"

#define FRAMES 512u  /* a worker a round */
#define HANDED 256u  /* of a hand-over round: fewer than the ring between workers holds */
#define LIMIT 1.85

enum job { JOB_POLL, JOB_FUSED, JOB_TAKE_OVER, JOB_HELP, JOB_QUIT };

/* A thread's part of a round. */
struct part {
	struct relay_frames frames;
	uint64_t begin, end; /* ns */
	uint64_t begin_tsc, end_tsc;
	bool good;
};

struct bench {
	bool json;
	unsigned rounds, size;
	const struct sl_aead_backend *aead;
	struct rte_mempool *pool;
	struct relay one, two, hand; /* 1 worker 2 ports, 2 workers 2 ports, 2 workers 1 port */
	struct relay alone, helped;  /* 2 workers 1 port; of the second the elephant's session is spread */
	struct relay *with;	     /* of JOB_HELP: one of these */
	uint32_t over;		     /* atomic: it has had them all */
	struct relay_frames elephant;
	struct part part[2];
	struct relay_frames handed;
	unsigned apart; /* rounds of two in which they did not overlap at all */
	/*
	 * Main sets job, then raises serial; both threads meet at ready and done, which only ever rise: twice a job.
	 */
	enum job job;
	uint32_t serial, ready, done; /* atomic */
};

static struct bench bench;

static void
meet(const struct bench *b, uint32_t *at)
{
	const uint32_t both = 2 * __atomic_load_n(&b->serial, __ATOMIC_RELAXED);

	__atomic_fetch_add(at, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < both)
		rte_pause();
}

static bool
inject(struct relay *r, uint16_t port, const struct relay_frames *f)
{
	return rte_ring_enqueue_bulk(r->in[port], (void *const *)f->mbuf, f->count, NULL) == f->count;
}

/* Time on the CPU: what others of a shared machine take from a thread is left out. */
static uint64_t
cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One of two threads: its own frames, then at once with the other. */
static void
part_run(struct bench *b, uint16_t t, enum job job)
{
	struct relay *r = &b->two;
	struct part *p = &b->part[t];
	struct sl_worker *w = r->dp->workers[t];

	relay_frames_make(&p->frames, r, b->pool, t, b->size, false);
	p->good = job != JOB_POLL || inject(r, t, &p->frames);
	meet(b, &b->ready);
	p->begin_tsc = rte_rdtsc();
	p->begin = cpu_ns();
	if (job == JOB_POLL)
		for (unsigned i = 0; i < FRAMES / RELAY_BURST; i++)
			sl_worker_poll(w);
	else
		p->good = relay_fused(r, t, &p->frames) == FRAMES;
	p->end = cpu_ns();
	p->end_tsc = rte_rdtsc();
	if (job == JOB_POLL)
		p->good = p->good && relay_drain(r, t) == FRAMES;
	else
		rte_pktmbuf_free_bulk(p->frames.mbuf, FRAMES);
	meet(b, &b->done);
}

/* The owner's side of a hand-over round: polls until it has had them all. */
static void
take_over(struct bench *b)
{
	struct sl_worker *w = b->hand.dp->workers[1];
	unsigned got = 0;

	meet(b, &b->ready);
	for (unsigned i = 0; i < 100000000 && got < HANDED; i++)
		got += sl_worker_poll(w);
	b->part[1].good = got == HANDED;
	meet(b, &b->done);
}

/* The other worker, with nothing of its own to do, until the first has had all frames of the elephant. */
static void
help(struct bench *b)
{
	meet(b, &b->ready);
	while (!__atomic_load_n(&b->over, __ATOMIC_ACQUIRE))
		sl_worker_poll(b->with->dp->workers[1]);
	meet(b, &b->done);
}

static int
second_thread(void *arg)
{
	struct bench *b = arg;

	for (uint32_t seen = 0;; seen++) {
		while (__atomic_load_n(&b->serial, __ATOMIC_ACQUIRE) == seen)
			rte_pause();
		if (b->job == JOB_QUIT)
			return 0;
		if (b->job == JOB_TAKE_OVER)
			take_over(b);
		else if (b->job == JOB_HELP)
			help(b);
		else
			part_run(b, 1, b->job);
	}
}

static void
job_begin(struct bench *b, enum job job)
{
	b->job = job;
	__atomic_store_n(&b->serial, b->serial + 1, __ATOMIC_RELEASE);
}

/* ns a frame of both halves together; -1: frames were lost. */
static double
round_two(struct bench *b, enum job job)
{
	const struct part *p = b->part;

	job_begin(b, job);
	part_run(b, 0, job);
	if (!p[0].good || !p[1].good)
		return -1;
	/* Not at once after all: one of them had lost its CPU. */
	if (p[0].begin_tsc > p[1].end_tsc || p[1].begin_tsc > p[0].end_tsc)
		b->apart++;
	return (double)RTE_MAX(p[0].end - p[0].begin, p[1].end - p[1].begin) / (2 * FRAMES);
}

static double
round_one(struct bench *b, enum job job)
{
	struct relay *r = &b->one;
	struct part *p = b->part;
	uint64_t begin, end;
	bool good = true;

	for (uint16_t t = 0; t < 2; t++) {
		relay_frames_make(&p[t].frames, r, b->pool, t, b->size, false);
		good = good && (job != JOB_POLL || inject(r, t, &p[t].frames));
	}
	begin = cpu_ns();
	if (job == JOB_POLL)
		for (unsigned i = 0; i < FRAMES / RELAY_BURST; i++)
			sl_worker_poll(r->dp->workers[0]); /* a burst of each port */
	else
		good = relay_fused(r, 0, &p[0].frames) + relay_fused(r, 1, &p[1].frames) == 2 * FRAMES;
	end = cpu_ns();
	if (job == JOB_POLL)
		good = good && relay_drain(r, 0) == 2 * FRAMES;
	for (uint16_t t = 0; t < 2 && job != JOB_POLL; t++)
		rte_pktmbuf_free_bulk(p[t].frames.mbuf, FRAMES);
	return good ? (double)(end - begin) / (2 * FRAMES) : -1;
}

/* Both workers of the relay with one port on this thread: frames of the receiver's sessions, or of the other's. */
static double
round_hand(struct bench *b, uint16_t owner)
{
	struct relay *r = &b->hand;
	uint64_t begin, end;
	unsigned got;

	relay_frames_make(&b->handed, r, b->pool, owner, b->size, false);
	if (!inject(r, 0, &b->handed))
		return -1;
	begin = cpu_ns();
	for (unsigned i = 0; i < HANDED / RELAY_BURST; i++) {
		sl_worker_poll(r->dp->workers[0]);
		sl_worker_poll(r->dp->workers[1]);
	}
	end = cpu_ns();
	got = relay_drain(r, owner);
	return got == HANDED ? (double)(end - begin) / HANDED : -1;
}

static uint64_t
transit_tsc(const struct relay *r)
{
	return __atomic_load_n(&r->dp->workers[0]->counters.transit_tsc, __ATOMIC_RELAXED) +
		__atomic_load_n(&r->dp->workers[1]->counters.transit_tsc, __ATOMIC_RELAXED);
}

/* The same on two threads: what both workers spend in transit. */
static double
round_hand_across(struct bench *b, uint16_t owner)
{
	struct relay *r = &b->hand;
	const uint64_t before = transit_tsc(r);
	bool good;

	relay_frames_make(&b->handed, r, b->pool, owner, b->size, false);
	if (!inject(r, 0, &b->handed))
		return -1;
	if (owner) {
		job_begin(b, JOB_TAKE_OVER);
		meet(b, &b->ready);
	}
	for (unsigned i = 0; i < HANDED / RELAY_BURST; i++)
		sl_worker_poll(r->dp->workers[0]);
	if (owner)
		meet(b, &b->done);
	good = relay_drain(r, owner) == HANDED && (!owner || b->part[1].good);
	return good ? (double)(transit_tsc(r) - before) * 1e9 / (double)rte_get_tsc_hz() / HANDED : -1;
}

/* One session's frames, in one queue, two workers. */
static double
round_elephant(struct bench *b, struct relay *r)
{
	struct sl_worker *w = r->dp->workers[0];
	const uint64_t before = w->counters.verdicts[SL_FORWARD];
	uint64_t begin, end;

	relay_frames_make(&b->elephant, r, b->pool, 0, b->size, false);
	if (!inject(r, 0, &b->elephant))
		return -1;
	b->with = r;
	b->over = 0;
	job_begin(b, JOB_HELP);
	meet(b, &b->ready);
	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < 10000000 && w->counters.verdicts[SL_FORWARD] - before < FRAMES; i++)
		sl_worker_poll(w);
	end = rte_rdtsc_precise();
	__atomic_store_n(&b->over, 1, __ATOMIC_RELEASE);
	meet(b, &b->done);
	return relay_drain(r, 0) == FRAMES ? (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES : -1;
}

enum figure { ONE, TWO, FUSED_ONE, FUSED_TWO, DIRECT, HANDED_OVER, DIRECT_ACROSS, HANDED_ACROSS, ELEPHANT_ALONE, ELEPHANT_HELPED,
	FIGURES };
enum ratio { SPEEDUP = FIGURES, BOUND, OF_BOUND, COST, COST_ACROSS, ELEPHANT_GAIN, ALL };

static double
measure(void *arg, unsigned f)
{
	struct bench *b = arg;

	switch (f) {
	case ONE:
		return round_one(b, JOB_POLL);
	case TWO:
		return round_two(b, JOB_POLL);
	case FUSED_ONE:
		return round_one(b, JOB_FUSED);
	case FUSED_TWO:
		return round_two(b, JOB_FUSED);
	case DIRECT:
		return round_hand(b, 0);
	case HANDED_OVER:
		return round_hand(b, 1);
	case DIRECT_ACROSS:
		return round_hand_across(b, 0);
	case HANDED_ACROSS:
		return round_hand_across(b, 1);
	case ELEPHANT_ALONE:
		return round_elephant(b, &b->alone);
	default:
		return round_elephant(b, &b->helped);
	}
}

static void
derive(double *x)
{
	x[SPEEDUP] = x[ONE] / x[TWO];
	x[BOUND] = x[FUSED_ONE] / x[FUSED_TWO];
	x[OF_BOUND] = x[SPEEDUP] / x[BOUND];
	x[COST] = x[HANDED_OVER] - x[DIRECT];
	x[COST_ACROSS] = x[HANDED_ACROSS] - x[DIRECT_ACROSS];
	x[ELEPHANT_GAIN] = x[ELEPHANT_ALONE] / x[ELEPHANT_HELPED];
}

static int
run(struct bench *b, unsigned size, bool first)
{
	static const char *const names[] = {"one_worker_ns", "two_workers_ns", "aead_one_thread_ns", "aead_two_threads_ns",
		"direct_ns", "handed_over_ns", "direct_across_ns", "handed_across_ns", "elephant_alone_ns", "elephant_helped_ns", "speedup", "aead_speedup",
		"speedup_of_bound", "handover_ns", "handover_across_ns", "elephant_gain"};
	double *v[ALL], best[ALL], median[ALL];
	bool met;
	int lost;

	b->size = size;
	for (unsigned k = 0; k < ALL; k++)
		v[k] = calloc(b->rounds, sizeof(double));
	lost = bench_rounds(v, FIGURES, ALL, b->rounds, measure, derive, b);
	if (lost >= 0) {
		fprintf(stderr, "scale: frames were lost (%s)\n", names[lost]);
		return -1;
	}
	for (unsigned k = 0; k < ALL; k++) {
		median[k] = bench_figure(v[k], b->rounds).median;
		best[k] = v[k][0]; /* sorted by now */
		free(v[k]);
	}
	derive(best);
	met = median[SPEEDUP] >= LIMIT;
	if (b->json) {
		printf("%s{\"payload\":%u", first ? "" : ",", size);
		for (unsigned k = 0; k < ALL; k++)
			printf(",\"%s\":%.3f,\"%s_best\":%.3f", names[k], median[k], names[k], best[k]);
		printf(",\"apart\":%u,\"limit\":%.2f,\"met\":%s}", b->apart, LIMIT, met ? "true" : "false");
	} else {
		printf("payload %u\n%22s    median      best\n", size, "");
		for (unsigned k = 0; k < ALL; k++)
			printf("%22s  %8.2f  %8.2f\n", names[k], median[k], best[k]);
		printf("%22s  %8.2f  %s; %u rounds of two threads did not overlap\n", "limit of speedup", LIMIT,
			met ? "met" : "MISSED", b->apart);
	}
	return !met;
}

static int
bench_make(struct bench *b)
{
	b->one.aead = b->two.aead = b->hand.aead = b->alone.aead = b->helped.aead = b->aead;
	b->alone.by_hand = b->helped.by_hand = true;
	b->pool = sl_pool_create("bench", 0, 8191, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (!b->pool || relay_make(&b->one, "one", SL_ADDR_UDP4, 1, 2) != 0 || relay_make(&b->two, "two", SL_ADDR_UDP4, 2, 2) != 0 ||
		relay_make(&b->hand, "hand", SL_ADDR_UDP4, 2, 1) != 0 || relay_make(&b->alone, "alone", SL_ADDR_UDP4, 2, 1) != 0 ||
		relay_make(&b->helped, "help", SL_ADDR_UDP4, 2, 1) != 0 || sl_dataplane_spread(b->helped.dp, 0, true) != 0)
		return -1;
	b->elephant.from = 1;
	for (unsigned w = 0; w < 2; w++)
		b->hand.dp->workers[w]->measure_cycles = true;
	return relay_frames_init(&b->part[0].frames, FRAMES) || relay_frames_init(&b->part[1].frames, FRAMES) ||
		relay_frames_init(&b->handed, HANDED) || relay_frames_init(&b->elephant, FRAMES) ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static const struct option list[] = {{"rounds", 1, NULL, 'r'}, {"size", 1, NULL, 's'}, {"aead", 1, NULL, 'a'},
		{NULL, 0, NULL, 0}};
	static const unsigned sizes[] = {64, 1400};
	struct bench *b = &bench;
	const char *aead = "auto";
	bool misused = false;
	unsigned only;
	int c, bad = 0;

	b->rounds = 201;
	while ((c = getopt_long(argc, argv, "j", list, NULL)) != -1) {
		if (c == 'j')
			b->json = true;
		else if (c == 'r')
			b->rounds = (unsigned)atoi(optarg);
		else if (c == 's')
			b->size = (unsigned)atoi(optarg);
		else if (c == 'a')
			aead = optarg;
		else
			misused = true;
	}
	b->aead = sl_crypto_init() == 0 ? sl_aead_backend_find(aead) : NULL;
	if (misused || optind != argc || b->rounds < 3 || b->size > 1700 || !b->aead) {
		fprintf(stderr, "usage: scale [-j] [--rounds N] [--size BYTES] [--aead NAME]\n");
		return 2;
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr, "scale: needs two CPUs\n");
		return 2;
	}
	if (bench_eal_init_lcores(768, "0@0,1@1") != 0 || bench_make(b) != 0 ||
		rte_eal_remote_launch(second_thread, b, rte_get_next_lcore(-1, 1, 0)) != 0) {
		fprintf(stderr, "scale: cannot be set up: %s\n", strerror(errno));
		return 2;
	}
	if (b->json)
		printf("{\"bench\":\"scale\",\"aead\":\"%s\",\"sessions\":%u,\"burst\":%u,\"rounds\":%u,\"sizes\":[",
			b->aead->name, RELAY_PEERS, RELAY_BURST, b->rounds);
	else
		printf("%s over udp4, %u sessions, burst %u, %u rounds of %u frames a worker; ns a frame\n", b->aead->name,
			RELAY_PEERS, RELAY_BURST, b->rounds, FRAMES);
	only = b->size; /* run() sets it */
	for (unsigned i = 0; i < (only ? 1 : RTE_DIM(sizes)); i++)
		bad |= run(b, only ? only : sizes[i], i == 0);
	if (b->json)
		printf("],\"met\":%s}\n", bad ? "false" : "true");
	job_begin(b, JOB_QUIT);
	rte_eal_mp_wait_lcore();
	return bad ? 1 : 0;
}
