/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More traffic than fits: what comes out, what of control's frames gets through, and how long a frame waits. One worker
 * on two ports made of rings, 64 sessions.
 *
 * The clock stands still while frames are made: it moves only by what the worker's polls take. So one thread plays NIC, peers
 * and relay, the offered load is exact however high it is, and neither the sender's speed nor a busy machine is measured.
 * In a poll's time `rate` x time frames arrive; a receive ring of 1,024 descriptors takes what it has room for, and
 * the rest is lost there, as in a NIC, at no cost to the CPU. Polls that took far longer than usual had lost the CPU: they
 * count as usual ones, and how many there were is told.
 *
 *	mix		what arrives: datagrams alone; or half of them forged (the tag is wrong), replayed, or for an unknown index, in
 *			equal parts. 2 in 1,024 frames are for control: a handshake packet and a link message.
 *	offered		in multiples of what the same mix gets through when the ring is never empty, measured before and after
 *	goodput		good datagrams out, in that unit as well (per cent)
 *	latency		from arrival in the receive ring to the transmit ring
 *	control		of its frames that the ring took, how many control got (the rest was lost before the ring, as the datagrams
 *			beside them)
 *	slow port	half of the datagrams go out by a port that takes a tenth of them: what that costs the others
 *
 * Every run is held against the worker's counters: what entered the ring has a verdict of its kind. --check does that and no
 * more: one short round, no word on speed (a test).
 *
 * Usage: overload [-j] [--size BYTES] [--frames N] [--check]
 */
#include <errno.h>
#include <getopt.h>
#include <rte_cycles.h>
#include "bench.h"
#include "common/relay.h"

#define BATCH 512u
#define DESCRIPTORS 1024u
#define LIMIT 5.0 /* per cent by which goodput may fall short of its best */
#define ROUNDS 21u
#define LATENCIES 65536u
#define POLL_NS 3000 /* more than an empty poll takes */

enum mix { CLEAN, HALF_BAD, MIXES };
enum kind { GOOD, FORGED, REPLAYED, UNKNOWN, HANDSHAKE, MESSAGE, KINDS };

struct run {
	enum mix mix;
	double rate;	   /* frames a virtual ns; 0 = the ring is never empty */
	double slow_share; /* of its frames that port 1 takes; 0 = all */
};

struct result {
	double ns;			      /* of the worker's time */
	uint64_t offered, entered[KINDS], lost; /* lost: no room in the receive ring */
	uint64_t out[RELAY_PORTS], control[KINDS], drops[SL_VERDICT_COUNT];
	double p50_us, p99_us, longest_us;
	unsigned cut; /* polls that had lost the CPU */
};

static struct bench {
	bool json;
	unsigned size, rounds;
	uint64_t frames; /* that enter the ring, a run */
	struct relay relay;
	struct rte_mempool *pool;
	struct relay_frames made;
	uint8_t kind[BATCH];
	unsigned next; /* of made, not arrived yet */
	uint64_t odd;  /* turns through the kinds of bad frames */
	double now_ns, due, frame_ns; /* frame_ns: of full bursts */
	float *latency;
	struct result *result;
} bench;

/* --- what arrives ---------------------------------------------------------------------------------------------------- */

/* The frame becomes one of a bad kind; before it lies a good one of the batch. */
static enum kind
spoil(struct bench *b, struct rte_mbuf *m, const struct rte_mbuf *before, enum kind before_is)
{
	enum kind kind = FORGED + b->odd++ % 3;
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);

	if (kind == REPLAYED && (before_is != GOOD || before->data_len != m->data_len))
		kind = FORGED;
	if (kind == FORGED)
		data[m->data_len - 1] ^= 1;
	else if (kind == REPLAYED)
		memcpy(data, rte_pktmbuf_mtod(before, const void *), m->data_len);
	else
		data[42 + 4 + 3] ^= 0x5a; /* the receiver index, right after the outer headers */
	return kind;
}

static void
batch_make(struct bench *b, enum mix mix)
{
	b->made.message_every = BATCH;
	relay_frames_make(&b->made, &b->relay, b->pool, 0, b->size, false);
	for (unsigned i = 0; i < BATCH; i++)
		b->kind[i] = i == 0 ? MESSAGE : GOOD;
	relay_frame_msg1(&b->relay, b->made.mbuf[BATCH / 2]);
	b->kind[BATCH / 2] = HANDSHAKE;
	for (unsigned i = 1; i < BATCH && mix == HALF_BAD; i += 2)
		if (b->kind[i] == GOOD)
			b->kind[i] = spoil(b, b->made.mbuf[i], b->made.mbuf[i - 1], b->kind[i - 1]);
	b->next = 0;
}

static double *
arrival_of(struct rte_mbuf *m)
{
	return (double *)&m->dynfield1[1];
}

/* One frame into the receive ring. */
static void
arrive(struct bench *b, enum mix mix)
{
	struct rte_mbuf *m;

	if (b->next == BATCH)
		batch_make(b, mix);
	m = b->made.mbuf[b->next];
	*arrival_of(m) = b->now_ns;
	b->result->entered[b->kind[b->next]]++;
	b->next++;
	if (rte_ring_enqueue(b->relay.in[0], m) != 0)
		abort();
}

/* What a poll's time brings. */
static void
arrivals(struct bench *b, const struct run *run, double ns)
{
	unsigned room = DESCRIPTORS - RTE_MIN(DESCRIPTORS, rte_ring_count(b->relay.in[0])), n = room;

	if (run->rate > 0) {
		b->due += run->rate * ns;
		n = (unsigned)b->due;
		b->due -= n;
		b->result->offered += n;
		b->result->lost += n > room ? n - room : 0;
	}
	for (unsigned i = 0; i < RTE_MIN(n, room); i++)
		arrive(b, run->mix);
}

/* --- what comes out -------------------------------------------------------------------------------------------------- */

static void
take(struct bench *b, unsigned port, unsigned most)
{
	struct rte_mbuf *m[64];
	unsigned n;

	while (most && (n = rte_ring_sc_dequeue_burst(b->relay.out[port][0], (void **)m, RTE_MIN(most, 64u), NULL)) != 0) {
		for (unsigned i = 0; i < n; i++)
			b->latency[(b->result->out[0] + b->result->out[1] + i) % LATENCIES] =
				(float)(b->now_ns - *arrival_of(m[i]));
		b->result->out[port] += n;
		rte_pktmbuf_free_bulk(m, n);
		most -= n;
	}
}

static void
on_handshake(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	bench.result->control[HANDSHAKE]++;
}
static void
on_message(void *arg, uint32_t rx_index, uint32_t peer_id, uint8_t flags, const uint8_t *msg, size_t len)
{
	bench.result->control[MESSAGE]++;
}

/* --- a run ------------------------------------------------------------------------------------------------------------ */

static int
by_value(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/* How long the poll took; when others had the CPU, as long as one with so many frames usually takes. */
static double
poll_ns(struct bench *b)
{
	const uint64_t begin = rte_rdtsc_precise();
	const unsigned frames = sl_worker_poll(b->relay.dp->workers[0]);
	const double ns = (double)(rte_rdtsc_precise() - begin) * 1e9 / (double)rte_get_tsc_hz();

	if (b->frame_ns > 0 && ns > 4 * frames * b->frame_ns + POLL_NS) {
		b->result->cut++;
		return frames * b->frame_ns;
	}
	if (frames >= RELAY_BURST)
		b->frame_ns = b->frame_ns > 0 ? b->frame_ns * 0.98 + ns / frames * 0.02 : ns / frames;
	return ns;
}

static void
run_it(struct bench *b, const struct run *run, struct result *result)
{
	struct sl_worker *w = b->relay.dp->workers[0];
	uint64_t before[SL_VERDICT_COUNT], entered = 0;
	double begin_ns, slow_due = 0, slow_rate;
	unsigned n;

	memset(result, 0, sizeof(*result));
	b->result = result;
	memcpy(before, w->counters.verdicts, sizeof(before));
	begin_ns = b->now_ns;
	b->due = 0;
	/* Port 1 gets half of what a full ring gets through, and takes so much of that. */
	slow_rate = b->frame_ns > 0 ? run->slow_share / b->frame_ns / 2 : 0;
	while (entered < b->frames) {
		double ns = poll_ns(b);

		b->now_ns += ns;
		take(b, 0, UINT32_MAX);
		if (run->slow_share > 0) {
			slow_due += slow_rate * ns;
			take(b, 1, (unsigned)slow_due);
			slow_due -= (unsigned)slow_due;
		} else {
			take(b, 1, UINT32_MAX);
		}
		while (sl_dataplane_poll(b->relay.dp, 256, sl_dataplane_now_us()))
			;
		arrivals(b, run, ns);
		entered = 0;
		for (unsigned k = 0; k < KINDS; k++)
			entered += result->entered[k];
	}
	result->ns = b->now_ns - begin_ns;
	n = (unsigned)RTE_MIN(result->out[0] + result->out[1], (uint64_t)LATENCIES);
	qsort(b->latency, n, sizeof(*b->latency), by_value);
	if (n) {
		result->p50_us = b->latency[n / 2] / 1e3;
		result->p99_us = b->latency[n * 99 / 100] / 1e3;
		result->longest_us = b->latency[n - 1] / 1e3;
	}
	/* To rest: what is in the rings belongs to this run. */
	while (rte_ring_count(b->relay.in[0]) || sl_dataplane_poll(b->relay.dp, 256, sl_dataplane_now_us())) {
		sl_worker_poll(w);
		take(b, 0, UINT32_MAX);
		take(b, 1, UINT32_MAX);
	}
	take(b, 1, UINT32_MAX);
	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		result->drops[v] = w->counters.verdicts[v] - before[v];
}

/* Nothing is lost without a name: each kind that entered the ring has its verdicts. */
static bool
adds_up(const struct result *r)
{
	return r->drops[SL_FORWARD] + r->drops[SL_DROP_TX_FULL] == r->entered[GOOD] && r->drops[SL_FORWARD] == r->out[0] + r->out[1] &&
		r->drops[SL_DROP_AUTH] == r->entered[FORGED] && r->drops[SL_DROP_REPLAY] == r->entered[REPLAYED] &&
		r->drops[SL_DROP_UNKNOWN_INDEX] == r->entered[UNKNOWN] &&
		r->drops[SL_PUNT] + r->drops[SL_DROP_PUNT_FULL] == r->entered[HANDSHAKE] + r->entered[MESSAGE] &&
		r->control[HANDSHAKE] + r->control[MESSAGE] == r->drops[SL_PUNT];
}

static double
entered_of(const struct result *r)
{
	double n = 0;

	for (unsigned k = 0; k < KINDS; k++)
		n += (double)r->entered[k];
	return n;
}

static double
passed(const struct result *r)
{
	return (double)(r->out[0] + r->out[1]);
}

/* --- tables ----------------------------------------------------------------------------------------------------------- */

static const double multiples[] = {0.5, 1, 1.2, 2, 10};
#define MULTIPLES RTE_DIM(multiples)
static const char *const mix_names[] = {"datagrams", "half of them bad"};

struct row {
	double goodput[ROUNDS], p50[ROUNDS], p99[ROUNDS], longest[ROUNDS];
	uint64_t offered, lost, in_ring, got;
	unsigned cut;
};

static double
median(const double *v)
{
	double sorted[ROUNDS];

	memcpy(sorted, v, sizeof(sorted));
	return bench_figure(sorted, bench.rounds).median;
}

static void
row_add(struct row *row, unsigned round, const struct result *r, double unit)
{
	row->goodput[round] = passed(r) / r->ns / unit * 100;
	row->p50[round] = r->p50_us;
	row->p99[round] = r->p99_us;
	row->longest[round] = r->longest_us;
	row->offered += r->offered;
	row->lost += r->lost;
	row->in_ring += r->entered[HANDSHAKE] + r->entered[MESSAGE];
	row->got += r->control[HANDSHAKE] + r->control[MESSAGE];
	row->cut += r->cut;
}

/* 0: flat, 1: not, -1: something went without a name. */
static int
run_mix(struct bench *b, enum mix mix, bool first)
{
	struct row rows[MULTIPLES];
	double best = 0, worst = 1e9;
	unsigned full_runs = 0;
	double full_ns = 0;

	memset(rows, 0, sizeof(rows));
	for (unsigned round = 0; round <= b->rounds; round++) {
		/* The first round warms everything up. */
		for (unsigned m = 0; m < MULTIPLES; m++) {
			const unsigned at = (m + round) % MULTIPLES;
			struct run run = {.mix = mix}, full = run;
			struct result before, r, after;

			/* The unit, the ring never empty, on either side of the row: the machine's speed wanders. */
			run_it(b, &full, &before);
			run.rate = entered_of(&before) / before.ns * multiples[at];
			run_it(b, &run, &r);
			run_it(b, &full, &after);
			if (!adds_up(&before) || !adds_up(&r) || !adds_up(&after))
				return -1;
			if (!round)
				continue;
			row_add(&rows[at], round - 1, &r, (passed(&before) / before.ns + passed(&after) / after.ns) / 2);
			full_ns += before.ns / passed(&before);
			full_runs++;
		}
	}
	if (b->json)
		printf("%s{\"mix\":\"%s\",\"full_ns_a_good_frame\":%.1f,\"rows\":[", first ? "" : ",", mix_names[mix], full_ns / full_runs);
	else
		printf("\n%s: %.1f ns for each good one when the ring is never empty\noffered  goodput %%  lost before the ring %%  "
		       "latency us: median   p99  longest  control got of its frames in the ring\n",
			mix_names[mix], full_ns / full_runs);
	for (unsigned m = 0; m < MULTIPLES; m++) {
		struct row *row = &rows[m];
		const double goodput = median(row->goodput), lost = row->offered ? 100.0 * (double)row->lost / (double)row->offered : 0;

		if (multiples[m] >= 1) {
			best = RTE_MAX(best, goodput);
			worst = RTE_MIN(worst, goodput);
		}
		if (b->json)
			printf("%s{\"offered\":%.1f,\"goodput_percent\":%.1f,\"lost_before_ring_percent\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
			       "\"longest_us\":%.1f,\"control_in_ring\":%llu,\"control_got\":%llu,\"polls_cut\":%u}",
				m ? "," : "", multiples[m], goodput, lost, median(row->p50), median(row->p99), median(row->longest),
				(unsigned long long)row->in_ring, (unsigned long long)row->got, row->cut);
		else
			printf("%6.1fx  %9.1f  %22.1f  %18.1f %5.1f  %7.1f  %llu of %llu; %u polls cut\n", multiples[m], goodput, lost, median(row->p50),
				median(row->p99), median(row->longest), (unsigned long long)row->got, (unsigned long long)row->in_ring, row->cut);
	}
	if (b->json)
		printf("],\"fall_percent\":%.1f,\"met\":%s}", 100 * (1 - worst / best), worst >= best * (1 - LIMIT / 100) ? "true" : "false");
	else
		printf("from 1x to 10x: %.1f%% between the best and the worst, limit %.0f%%: %s\n", 100 * (1 - worst / best), LIMIT,
			worst >= best * (1 - LIMIT / 100) ? "met" : "MISSED");
	return worst < best * (1 - LIMIT / 100);
}

/* What a port that takes a tenth costs those behind the other one. */
static int
run_slow(struct bench *b)
{
	double share[ROUNDS], fast[ROUNDS], slow_out[ROUNDS];

	for (unsigned round = 0; round < b->rounds; round++) {
		struct run run = {.mix = CLEAN};
		struct result full, r;

		run_it(b, &run, &full);
		run.slow_share = 0.1;
		run_it(b, &run, &r);
		if (!adds_up(&full) || !adds_up(&r))
			return -1;
		fast[round] = (double)full.out[0] / full.ns;
		share[round] = (double)r.out[0] / r.ns / fast[round] * 100;
		slow_out[round] = 100.0 * (double)r.drops[SL_DROP_TX_FULL] / (double)(r.drops[SL_DROP_TX_FULL] + r.out[1]);
	}
	if (b->json)
		printf(",\"slow_port\":{\"other_port_percent\":%.1f,\"lost_at_slow_port_percent\":%.1f}", median(share), median(slow_out));
	else
		printf("\na port that takes a tenth of its frames (%.1f%% lost there, drop_tx_full): the other port passes %.1f%% of what it did "
		       "before\n", median(slow_out), median(share));
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option list[] = {{"size", 1, NULL, 's'}, {"frames", 1, NULL, 'f'},
		{"check", 0, NULL, 'c'}, {NULL, 0, NULL, 0}};
	static const struct sl_dataplane_sink sink = {.handshake = on_handshake, .message = on_message};
	struct bench *b = &bench;
	bool check = false, misused = false;
	int c, bad = 0, rc;

	b->size = 256;
	b->frames = 12000;
	b->rounds = ROUNDS;
	while ((c = getopt_long(argc, argv, "j", list, NULL)) != -1) {
		if (c == 'j')
			b->json = true;
		else if (c == 's')
			b->size = (unsigned)atoi(optarg);
		else if (c == 'c')
			check = true;
		else if (c == 'f')
			b->frames = strtoull(optarg, NULL, 10);
		else
			misused = true;
	}
	if (check)
		b->rounds = 1;
	b->relay.aead = sl_crypto_init() == 0 ? sl_aead_backend_find("auto") : NULL;
	b->relay.sink = &sink;
	b->relay.out_entries = DESCRIPTORS;
	b->next = BATCH;
	b->latency = calloc(LATENCIES, sizeof(*b->latency));
	if (misused || optind != argc || b->size < 80 || b->size > 1400 || b->frames < 4096 || !b->relay.aead || !b->latency) {
		fprintf(stderr, "usage: overload [-j] [--size BYTES (80 to 1400)] [--frames N (4096 or more)] [--check]\n");
		return 2;
	}
	if (bench_eal_init(256) != 0 || relay_frames_init(&b->made, BATCH) != 0 ||
		!(b->pool = sl_pool_create("bench", 0, 8191, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY)) ||
		relay_make(&b->relay, "one", SL_ADDR_UDP4, 1, 2) != 0) {
		fprintf(stderr, "overload: cannot be set up: %s\n", strerror(errno));
		return 2;
	}
	if (b->json)
		printf("{\"bench\":\"overload\",\"aead\":\"%s\",\"payload\":%u,\"descriptors\":%u,\"mixes\":[", b->relay.aead->name, b->size, DESCRIPTORS);
	else
		printf("%s over udp4, %u sessions, payload %u, receive ring of %u, %u rounds of %llu frames in the ring\n", b->relay.aead->name,
			RELAY_PEERS, b->size, DESCRIPTORS, b->rounds, (unsigned long long)b->frames);
	for (enum mix m = CLEAN; m < MIXES; m++) {
		rc = run_mix(b, m, m == CLEAN);
		if (rc < 0)
			goto unnamed;
		bad |= rc;
	}
	if (b->json)
		printf("]");
	if (run_slow(b) < 0)
		goto unnamed;
	bad = check ? 0 : bad;
	if (b->json)
		printf(",\"met\":%s}\n", bad ? "false" : "true");
	return bad;
unnamed:
	fprintf(stderr, "overload: frames went without a name\n");
	return 2;
}
