/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What events cost traffic that is under way. One process: a worker on a CPU of its own, control, source and sink on another,
 * both ports made of rings; real session table, router and data plane. 16 senders on the first port reach 1,000 peers, half
 * behind each port. Each event happens once in a window of a quarter second, window after window, beside windows in which
 * nothing happens.
 *
 *	lost		frames that did not come out, of those behind the port that the event takes away, and of all others
 *	blocked		the longest time from one poll of the worker to its next, in those milliseconds in which its CPU was not
 *			given to others (clean: their share of all): median of the windows, and the longest of all
 *	waits		times the worker's thread gave its CPU up by itself (locks, sleeps, disk): 0, or something blocked it
 *	control		the longest piece of the event on control's core
 *
 * Usage: events [-j] [--windows N] [--rate FRAMES_A_MS]
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include "bench.h"
#include "rig.h"
#include "router.h"

#define SENDERS 16u
#define PEERS 1000u
#define EXTRA 32u /* come and go */
#define TURNS 250u /* of a window, a millisecond each */
#define WINDOWS_MAX 64u

static struct rig *r;
static unsigned windows = 8, rate = 20, failures;
static bool json;
static int worker_tid;
static uint64_t sent[RIG_PORTS], came[RIG_PORTS];
static struct sl_session *old[SENDERS + PEERS];

/* --- what the rig expects of a test harness ------------------------------------------------------------------------ */

void
sl_test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	failures++;
}
uint64_t
sl_test_rand(void)
{
	static uint64_t s = 88172645463325252ull;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}
void
sl_test_rand_bytes(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)(sl_test_rand() >> 13);
}
bool
sl_test_mem_equal(const char *file, int line, const char *what, const void *got, const void *want, size_t len)
{
	if (memcmp(got, want, len) == 0)
		return true;
	sl_test_fail(file, line, "%s differs", what);
	return false;
}

/* --- traffic --------------------------------------------------------------------------------------------------------- */

static struct rig_peer *
peer(unsigned i)
{
	return &r->peers[SENDERS + i];
}

static void
generate(unsigned frames)
{
	static unsigned next;
	uint8_t msg[RIG_FRAME_MAX], payload[256] = {3};

	for (unsigned i = 0; i < frames; i++, next++) {
		const struct rig_peer *to = peer((unsigned)(sl_test_rand() % PEERS));

		rig_send_datagram(r, &r->peers[next % SENDERS], &to->addr, 0, 64, 1280, payload, sizeof(payload), msg);
		sent[to->port]++;
	}
}

static void
sink(void)
{
	struct rte_mbuf *m[64];

	for (unsigned port = 0; port < RIG_PORTS; port++)
		for (unsigned q = 0, n; q < r->out_rings; q++)
			while ((n = rte_ring_dequeue_burst(r->out[port][q], (void **)m, 64, NULL)) != 0) {
				came[port] += q == 0 ? n : 0;
				rte_pktmbuf_free_bulk(m, n);
			}
}

static void
control(void)
{
	r->now_us = sl_dataplane_now_us();
	(void)sl_router_tick(r->router, r->now_us);
	(void)sl_dataplane_poll(r->dp, 256, r->now_us);
}

/* Until the worker is through with all that was given to it. */
static void
settle(void)
{
	struct sl_worker_stats before, now;
	unsigned still = 0;

	sl_dataplane_worker_stats(r->dp, 0, &before);
	for (unsigned i = 0; i < 10000 && still < 20; i++) {
		control();
		sink();
		rte_delay_us_sleep(500);
		sl_dataplane_worker_stats(r->dp, 0, &now);
		/* It has looked again since it last found something. */
		still = rte_ring_empty(r->in[0]) && now.rx == before.rx && now.polls > before.polls + 1 ? still + 1 : 0;
		before = now;
	}
	sink();
}

/* --- events: step is called once a turn, 0 .. TURNS - 1 --------------------------------------------------------------- */

static void
nothing(unsigned turn)
{
	(void)turn;
}

/* New sessions for all; senders use theirs at once, the old ones go when what was sealed for them is through. */
static void
rekey(unsigned turn)
{
	for (unsigned i = turn * 8; i < SENDERS + PEERS && i < (turn + 1) * 8; i++) {
		old[i] = r->peers[i].session;
		rig_session_install(r, &r->peers[i], 0);
	}
	if (turn == TURNS - 50)
		for (unsigned i = 0; i < SENDERS + PEERS; i++)
			sl_session_retire(r->table, old[i]);
}

/* One a millisecond: a peer with session, path and place in the router comes, or goes. */
static void
churn(unsigned turn)
{
	struct rig_peer *p = peer(PEERS + turn / 2 % EXTRA);
	struct sl_peer_row *row = &sl_session_table_view(r->table)->peers[p->id];

	if (turn % 2 == 0) {
		rig_session_install(r, p, 0);
		if (sl_router_peer_up(r->router, p->id, p->xonly, RIG_ETH_MTU, r->now_us) != 0)
			failures++;
		sl_dataplane_path_set(r->dp, p->id, &p->at, r->now_us);
	} else {
		sl_dataplane_path_set(r->dp, p->id, NULL, r->now_us);
		sl_router_peer_down(r->router, p->id, r->now_us);
		__atomic_store_n(&row->tx, NULL, __ATOMIC_RELEASE);
		sl_session_retire(r->table, p->session);
	}
}

/* A peer says that it is a child of the node with the lowest address there is. */
static void
under_the_root(struct rig_peer *p)
{
	static uint64_t sequence = 1;
	uint8_t entries[2 * 32] = {0};
	struct sl_tree_announce a = {.sequence = ++sequence, .entry = entries, .entries = 2};

	memcpy(entries, &p->addr, 16);
	memcpy(&a.parent, entries + 32, 16);
	sl_tree_accept(r->router, r->router->peers[p->id], &a);
	sl_router_settle(r->router);
}

/* Our parent goes and another takes its place: all coordinates of ours change. Its traffic is not counted: it has none. */
static void
parent(unsigned turn)
{
	struct rig_peer *p = peer(PEERS + turn / 50 % 2);

	if (turn % 50 == 10) {
		sl_router_peer_down(r->router, p->id, r->now_us);
		if (sl_router_peer_up(r->router, p->id, p->xonly, RIG_ETH_MTU, r->now_us) != 0)
			failures++;
	}
	if (turn % 50 == 30)
		under_the_root(p);
}

/* All peers are elsewhere. */
static void
roam(unsigned turn)
{
	for (unsigned i = turn * 8; i < PEERS && i < (turn + 1) * 8; i++) {
		struct rig_peer *p = peer(i);

		p->at.u.mac[2] ^= 1;
		sl_dataplane_path_set(r->dp, p->id, &p->at, r->now_us);
	}
}

static void
link_flap(unsigned turn)
{
	struct sl_port *p = &r->dp->ports[1];

	if (turn == 50)
		(void)!rte_eth_dev_set_link_down(p->ethdev);
	if (turn == 150)
		(void)!rte_eth_dev_set_link_up(p->ethdev);
	if (turn == 50 || turn == 150)
		sl_port_event(p->ethdev, RTE_ETH_EVENT_INTR_LSC, p, NULL);
}

static void
reset(unsigned turn)
{
	if (turn == 50)
		sl_port_event(0, RTE_ETH_EVENT_INTR_RESET, &r->dp->ports[1], NULL);
}

static void
removal(unsigned turn)
{
	struct sl_port *p = &r->dp->ports[1];
	char name[64];

	if (turn == 50)
		sl_port_event(0, RTE_ETH_EVENT_INTR_RMV, p, NULL);
	if (turn != 150)
		return;
	snprintf(name, sizeof(name), "%s", p->config.device + strlen("net_ring_"));
	if (p->state != SL_PORT_GONE || rte_eth_from_rings(name, &r->in[1], 1, r->out[1], r->out_rings, 0) < 0)
		failures++;
	p->next_look_us = 0;
}

static const struct event {
	const char *name, *what;
	void (*step)(unsigned turn);
	bool own_port; /* of port 1 */
} events[] = {
	{"nothing", "nothing happens", nothing, false},
	{"rekey", "all 1,016 sessions replaced, 8 a ms", rekey, false},
	{"churn", "peers come and go, 1,000 a second", churn, false},
	{"parent", "our parent goes, 5 times", parent, false},
	{"address", "all 1,000 peers get another address, 8 a ms", roam, false},
	{"link", "a port's link down for 100 ms", link_flap, true},
	{"reset", "a port's device reset", reset, true},
	{"removal", "a port's device removed, back after 100 ms", removal, true},
};

/* --- measuring ------------------------------------------------------------------------------------------------------- */

static int
find_worker(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int tid = -1;

	while (d && (e = readdir(d)) != NULL) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && (strstr(name, "worker-1") || strstr(name, "worker1"))) /* DPDK 22.11, 24.11 */
			tid = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return tid;
}

/* How often the worker's thread has given up its CPU by itself, and has been made to. */
static void
switches_of(uint64_t *voluntary, uint64_t *forced)
{
	unsigned long long v = 0, f = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", worker_tid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &v) != 1)
			(void)!sscanf(line, "nonvoluntary_ctxt_switches: %llu", &f);
	if (file)
		fclose(file);
	*voluntary = v;
	*forced = f;
}

struct row {
	uint64_t sent, lost, lost_own, waits, control_tsc, turns, clean;
	double blocked_us[WINDOWS_MAX];
	unsigned windows;
};

/* Looks at the worker once a turn: the longest time between its polls, if it was not disturbed. */
struct watch {
	uint64_t polls, forced, longest_tsc;
	bool disturbed;
};

static void
look(struct watch *w, struct row *row)
{
	struct sl_worker_counters *c = &r->dp->workers[0]->counters;
	const uint64_t polls = __atomic_load_n(&c->polls, __ATOMIC_RELAXED), longest = __atomic_load_n(&c->longest_tsc, __ATOMIC_RELAXED);
	uint64_t voluntary, forced;
	bool disturbed;

	switches_of(&voluntary, &forced);
	/* The turn in which it is back sees the time in which it was away. */
	disturbed = forced != w->forced || polls == w->polls;
	row->turns++;
	if (!disturbed && !w->disturbed) {
		row->clean++;
		w->longest_tsc = RTE_MAX(w->longest_tsc, longest);
	}
	__atomic_store_n(&c->longest_tsc, 0, __ATOMIC_RELAXED);
	*w = (struct watch){polls, forced, w->longest_tsc, disturbed};
}

static void
window(const struct event *e, struct row *row)
{
	const uint64_t ms = rte_get_tsc_hz() / 1000;
	struct watch w = {.disturbed = true};
	uint64_t next = rte_rdtsc(), before, after, unused;

	memset(sent, 0, sizeof(sent));
	memset(came, 0, sizeof(came));
	switches_of(&before, &unused);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		const uint64_t begin = rte_rdtsc();
		uint64_t took;

		r->now_us = sl_dataplane_now_us();
		e->step(turn);
		control();
		took = rte_rdtsc() - begin;
		row->control_tsc = RTE_MAX(row->control_tsc, took);
		generate(rate);
		sink();
		next = RTE_MAX(next + ms, rte_rdtsc());
		while (rte_rdtsc() < next)
			sink();
		look(&w, row);
	}
	row->blocked_us[row->windows++] = (double)w.longest_tsc * 1000 / (double)ms;
	switches_of(&after, &unused);
	row->waits += after - before;
	settle();
	for (unsigned port = 0; port < RIG_PORTS; port++) {
		const bool own = e->own_port && port == 1;

		row->sent += sent[port];
		row->lost += own ? 0 : sent[port] - came[port];
		row->lost_own += own ? sent[port] - came[port] : 0;
	}
}

static void
print(const struct event *e, struct row *row)
{
	const struct bench_figure f = bench_figure(row->blocked_us, row->windows);
	const double longest_us = row->blocked_us[row->windows - 1]; /* sorted by now */
	const double control_us = (double)row->control_tsc * 1e6 / (double)rte_get_tsc_hz();
	char own[24] = "-";

	if (e->own_port)
		snprintf(own, sizeof(own), "%llu", (unsigned long long)row->lost_own);
	fprintf(json ? stderr : stdout, "%-44s %8llu %6llu %10s %9.0f %9.0f %5.0f%% %6llu %9.0f\n", e->what,
		(unsigned long long)row->sent, (unsigned long long)row->lost, own, f.median, longest_us,
		100.0 * (double)row->clean / (double)row->turns, (unsigned long long)row->waits, control_us);
	if (json)
		printf("\"%s\":{\"sent\":%llu,\"lost\":%llu,\"lost_own_port\":%llu,\"blocked_us\":%.1f,\"blocked_longest_us\":%.1f,"
		       "\"clean_share\":%.3f,\"waits\":%llu,\"control_us\":%.1f},",
			e->name, (unsigned long long)row->sent, (unsigned long long)row->lost, (unsigned long long)row->lost_own,
			f.median, longest_us, (double)row->clean / (double)row->turns, (unsigned long long)row->waits, control_us);
}

static bool
make(void)
{
	const struct rig_config config = {.mbufs = 16383, .out_entries = 8192, .max_peers = SENDERS + PEERS + EXTRA, .ring_size = 1024};

	r = rig_create(&config);
	if (!r)
		return false;
	for (unsigned i = 0; i < SENDERS + PEERS + EXTRA; i++)
		if (!rig_peer_add(r, SL_ADDR_ETH, i < SENDERS ? 0 : i % 2, 0))
			return false;
	/* Those that come and go are away; two of them are parents when that is asked for. */
	for (unsigned i = PEERS; i < PEERS + EXTRA; i++) {
		struct rig_peer *p = peer(i);

		sl_router_peer_down(r->router, p->id, r->now_us);
		sl_dataplane_path_set(r->dp, p->id, NULL, r->now_us);
		__atomic_store_n(&sl_session_table_view(r->table)->peers[p->id].tx, NULL, __ATOMIC_RELEASE);
		sl_session_retire(r->table, p->session);
	}
	if (sl_dataplane_start(r->dp) != 0)
		return false;
	worker_tid = find_worker();
	settle();
	return worker_tid > 0;
}

static void
parents(bool there)
{
	for (unsigned i = PEERS; i < PEERS + 2; i++) {
		if (!there) {
			sl_router_peer_down(r->router, peer(i)->id, r->now_us);
		} else {
			if (sl_router_peer_up(r->router, peer(i)->id, peer(i)->xonly, RIG_ETH_MTU, r->now_us) != 0)
				failures++;
			under_the_root(peer(i));
		}
	}
	settle();
}

static void
usage(void)
{
	fprintf(stderr, "usage: events [-j] [--windows 1..%u] [--rate FRAMES_A_MS]\n", WINDOWS_MAX);
	exit(2);
}

static int
eal(void)
{
	static char text[][40] = {"bench", "--no-huge", "-m", "768", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4",
		"--lcores=0@0,1@1", ""};
	char *argv[RTE_DIM(text) + 1] = {NULL};

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		snprintf(text[8], sizeof(text[8]), "--lcores=0@0,1@0");
	snprintf(text[9], sizeof(text[9]), "--file-prefix=sl_events_%d", (int)getpid());
	for (unsigned i = 0; i < RTE_DIM(text); i++)
		argv[i] = text[i];
	return sl_crypto_init() != 0 || rte_eal_init(RTE_DIM(text), argv) < 0 ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"windows", required_argument, NULL, 'w'}, {"rate", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0}};
	static struct row rows[RTE_DIM(events)];
	uint64_t switches = 0;
	int c;

	while ((c = getopt_long(argc, argv, "j", options, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == 'w')
			windows = (unsigned)atoi(optarg);
		else if (c == 'r')
			rate = (unsigned)atoi(optarg);
		else
			usage();
	}
	if (optind < argc || windows < 1 || windows > WINDOWS_MAX || rate < 1 || rate > 200)
		usage();
	if (eal() != 0 || !make()) {
		fprintf(stderr, "events: cannot be set up\n");
		return 1;
	}
	for (unsigned w = 0; w < windows; w++)
		for (unsigned i = 0; i < RTE_DIM(events); i++) {
			const bool of_parents = events[i].step == parent;
			uint64_t before;

			if (of_parents)
				parents(true);
			before = sl_router_counters(r->router)[SL_ROUTE_PARENT_SWITCH];
			window(&events[i], &rows[i]);
			if (of_parents) {
				switches += sl_router_counters(r->router)[SL_ROUTE_PARENT_SWITCH] - before;
				parents(false);
			}
		}
	fprintf(json ? stderr : stdout, "%-44s %8s %6s %10s %9s %9s %6s %6s %9s\n", "event", "sent", "lost", "own port's",
		"blocked", "longest", "clean", "waits", "control");
	if (json)
		putchar('{');
	for (unsigned i = 0; i < RTE_DIM(events); i++)
		print(&events[i], &rows[i]);
	if (json)
		printf("\"windows\":%u,\"frames_a_ms\":%u,\"parent_switches\":%llu}\n", windows, rate, (unsigned long long)switches);
	fprintf(json ? stderr : stdout,
		"lost: frames that did not come out (own port's: behind the port that the event takes away); blocked, longest: us between\n"
		"two polls of the worker, median of %u windows and the longest of all, in the milliseconds in which nobody else had its CPU\n"
		"(clean: their share); waits: times its thread gave up the CPU by itself; control: us of control's longest turn with its\n"
		"part of the event, whoever else had its CPU. %llu parent changes.\n",
		windows, (unsigned long long)switches);
	rig_destroy(r);
	rte_eal_cleanup();
	return failures ? 1 : 0;
}
