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
#include "../tests/sim/sim.h"

#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <time.h>

static uint64_t random_state = 88172645463325252ull;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool json;
static uint32_t peers = 1000, n = 100000, seconds = 20, rounds = 15;
static struct sl_router *r;
static struct sl_hop_cache *cache;
static struct sl_node_addr *dest;
static uint64_t now_us = 1000000;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(json ? stderr : stdout, fmt, ap);
	va_end(ap);
}

static uint64_t sent;

static int on_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	(void)arg, (void)peer_id, (void)msg, (void)len, (void)flags;
	sent++;
	return 0;
}

static struct sl_node_addr draw_addr(void)
{
	struct sl_node_addr a;
	uint64_t x = draw(), y = draw();

	memcpy(a.bytes, &x, 8);
	memcpy(a.bytes + 8, &y, 8);
	a.bytes[0] |= 0x10;
	return a;
}

static void filter_build(
	uint8_t msg[SL_FILTER_MSG_BYTES], const struct sl_node_addr *members, uint32_t count)
{
	uint8_t bits[SL_FILTER_BYTES] = {0};

	for (uint32_t i = 0; i < count; i++) {
		struct sl_filter_hash h;

		sl_filter_hash(&h, members[i].bytes);
		sl_filter_insert(bits, &h);
	}
	sl_filter_announce_build(msg, 1, bits);
}

static void filter_give(uint32_t id, uint8_t msg[SL_FILTER_MSG_BYTES])
{
	sl_put64(msg + 1, r->peers[id]->filter_sequence_rx + 1);
	sl_router_message(r, id, msg, SL_FILTER_MSG_BYTES, now_us);
}

static void filter_with(uint32_t id, const struct sl_node_addr *members, uint32_t count)
{
	uint8_t msg[SL_FILTER_MSG_BYTES];

	filter_build(msg, members, count);
	filter_give(id, msg);
}

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

/* --- the relay: every eighth peer is upstream and claims much, the others are children with their
 * subtree --- */

static uint32_t path_of(uint32_t i, uint8_t entries[6 * 32])
{
	struct sl_node_addr top = {{0}};
	uint32_t len = i % 8 ? 3 : 5;

	memset(entries, 0, 6 * 32);
	memcpy(entries, &r->peers[i]->addr, 16);
	if (i % 8) {
		memcpy(entries + 32, &r->tree.self, 16);
	} else {
		for (uint32_t k = 1; k < 4; k++) {
			struct sl_node_addr up = draw_addr();

			memcpy(entries + 32 * k, &up, 16);
		}
	}
	memcpy(entries + 32 * (len - 1), &top, 16);
	return len;
}

static void place_peer(uint32_t i)
{
	uint8_t entries[6 * 32];
	struct sl_tree_announce a = {.sequence = r->peers[i]->tree_sequence + 1, .entry = entries};

	a.entries = (uint16_t)path_of(i, entries);
	memcpy(&a.parent, entries + 32, 16);
	sl_tree_accept(r, r->peers[i], &a);
}

/* Below one of the peers, five deep or more. */
static int place_destination(uint32_t i)
{
	const struct sl_route_peer *p = r->peers[draw() % peers];
	struct sl_node_addr wire[10];
	unsigned len = 0;

	wire[len++] = dest[i];
	wire[len++] = draw_addr();
	for (unsigned k = 0; k < p->path_len; k++)
		wire[len++] = p->path[p->path_len - 1 - k];
	return sl_coords_insert(
		&r->coords, &dest[i], wire[0].bytes, len, 0, (uint32_t)(now_us / 1000000));
}

/* What the reader may still hold is kept until it has gone round twice. */
#define HELD_MOST 65536u
static struct held {
	void (*fn)(void *arg, void *obj);
	void *arg, *obj;
	uint64_t round;
} held[HELD_MOST];
static uint32_t held_head, held_count;
static uint64_t reader_round;
static bool reading;

static void held_free(bool all)
{
	while (held_count && (all || held[held_head].round + 2 <=
					     __atomic_load_n(&reader_round, __ATOMIC_ACQUIRE))) {
		held[held_head].fn(held[held_head].arg, held[held_head].obj);
		held_head = (held_head + 1) % HELD_MOST;
		held_count--;
	}
}

static void on_reclaim(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	(void)arg;
	if (!reading) {
		fn(fn_arg, obj);
		return;
	}
	while (held_count == HELD_MOST)
		held_free(false);
	held[(held_head + held_count++) % HELD_MOST] =
		(struct held){fn, fn_arg, obj, __atomic_load_n(&reader_round, __ATOMIC_ACQUIRE)};
	held_free(false);
}

/* Ticks until nothing is due; returns how many. The clock goes with the real one. */
static uint32_t control_until_done(void)
{
	uint64_t start = (uint64_t)now_ns(), start_us = now_us;
	uint32_t ticks = 0;

	do {
		now_us = start_us + ((uint64_t)now_ns() - start) / 1000;
		(void)sl_router_tick(r, now_us);
		ticks++;
	} while (r->answers.left || r->coords.undecided_count);
	return ticks;
}

static int make_relay(void)
{
	struct sl_router_sink sink = {.send = on_send, .reclaim = on_reclaim};
	struct sl_router_config c;
	struct sl_identity *id = sl_identity_generate();

	sl_router_config_default(&c);
	c.max_peers = peers;
	c.coord_size = n;
	c.seed = 1;
	r = sl_router_create(&c, id, &sink, 1700000000, now_us);
	cache = sl_hop_cache_create(n * 4);
	dest = calloc(n, sizeof(*dest));
	if (!r || !cache || !dest)
		return -1;
	for (uint32_t i = 0; i < peers; i++) {
		uint8_t xonly[32];

		for (int k = 0; k < 32; k += 8)
			sl_put64(xonly + k, draw());
		if (sl_router_peer_up(r, i, xonly, 1280, now_us) != 0)
			return -1;
		place_peer(i);
	}
	for (uint32_t i = 0; i < n; i++) {
		dest[i] = draw_addr();
		if (place_destination(i) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < peers; i++) {
		struct sl_router_metrics m = {
			.measured = true, .cost = 1.0 + (double)(draw() % 100000) / 1e5, .etx = 1};

		if (i % 8)
			filter_with(i, dest + draw() % (n / 2), 100);
		else
			filter_with(i, dest, 1500);
		sl_router_peer_metrics(r, i, &m, now_us);
	}
	now_us += 1000000;
	(void)control_until_done();
	return 0;
}

/* --- what changes cost the workers --- */

/* Of the reader's time: from a change on 50 ms, and from 100 to 200 ms. */
enum { EARLY, LATE, WINDOWS };
enum { BLOCK = 2048, BLOCKS_MOST = 1 << 18 };
static uint64_t change_at_ns; /* written by control, read by the reader */
static unsigned changed_what; /* written by control while change_at_ns is 0 */
static bool stop;
static struct window {
	uint64_t packets, decided;
	uint32_t count;
	float *ns; /* of a look-up, by block */
} windows[16][WINDOWS]; /* by kind of change; the reader's while it runs */

static int window_at(uint64_t changed)
{
	uint64_t ms = changed ? ((uint64_t)now_ns() - changed) / 1000000 : 1000;

	return ms < 50 ? EARLY : ms >= 100 && ms < 200 ? LATE : WINDOWS;
}

/* Looks so many up; the state is that of the choice of destinations. */
static void look_up(uint64_t *state, unsigned count)
{
	struct sl_hop hops[32];
	const uint8_t *one[32];

	for (; count; count -= 32) {
		const struct sl_fib *fib = __atomic_load_n(&r->ref.current, __ATOMIC_ACQUIRE);

		for (unsigned k = 0; k < 32; k++) {
			*state = *state * 6364136223846793005ull + 1442695040888963407ull;
			one[k] = dest[(uint32_t)(((*state >> 32) * n) >> 32)].bytes;
		}
		sl_fib_lookup(fib, cache, one, hops, 32,
			(uint32_t)(__atomic_load_n(&now_us, __ATOMIC_RELAXED) / 1000000));
		__atomic_store_n(&reader_round, reader_round + 1, __ATOMIC_RELEASE);
	}
}

static void *reader(void *arg)
{
	uint64_t state = 1234567;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t changed = __atomic_load_n(&change_at_ns, __ATOMIC_ACQUIRE), decided, cpu;
		int in = window_at(changed);
		struct window *w = in < WINDOWS ? &windows[changed_what][in] : NULL;

		if (!w) {
			look_up(&state, BLOCK);
			continue;
		}
		decided = sl_hop_cache_decided(cache);
		cpu = cpu_ns();
		look_up(&state, BLOCK);
		cpu = cpu_ns() - cpu;
		w->packets += BLOCK;
		w->decided += sl_hop_cache_decided(cache) - decided;
		if (w->count < BLOCKS_MOST)
			w->ns[w->count++] = (float)cpu / BLOCK;
	}
	return NULL;
}

enum change {
	NOTHING,
	SPIN, /* nothing either, but control is busy for 3 ms: what that alone does on this machine */
	ONE_MEMBER,
	HUNDRED_MEMBERS,
	PEER_COORDS,
	DEST_COORDS,
	COSTS,
	OWN_COORDS,
	PEER_DOWN,
	CHANGES,
};
static const char *const change_names[] = {"nothing", "nothing_but_busy", "peer_filter_1", "peer_filter_100", "peer_coords",
	"destination_coords", "costs_of_all_peers", "own_coords", "peer_down_and_up"};

static void change(enum change what)
{
	static uint32_t extra;
	uint32_t peer = 1 + (uint32_t)(draw() % (peers - 1));
	struct sl_node_addr members[100];
	uint8_t msg[SL_FILTER_MSG_BYTES];

	peer -= peer % 8 == 0;
	switch (what) {
	case NOTHING:
		break;
	case SPIN:
		for (uint64_t end = cpu_ns() + 3000000; cpu_ns() < end;)
			;
		break;
	case ONE_MEMBER:
	case HUNDRED_MEMBERS:
		/* What it claims, and so many more. */
		for (extra = 0; extra < (what == ONE_MEMBER ? 1 : 100); extra++) {
			struct sl_filter_hash h;

			members[extra] = draw_addr();
			sl_filter_hash(&h, members[extra].bytes);
			if (!extra)
				memcpy(msg + SL_FILTER_MSG_BYTES - SL_FILTER_BYTES,
					r->peers[peer]->filter, SL_FILTER_BYTES);
			sl_filter_insert(msg + SL_FILTER_MSG_BYTES - SL_FILTER_BYTES, &h);
		}
		{
			uint8_t bits[SL_FILTER_BYTES];

			memcpy(bits, msg + SL_FILTER_MSG_BYTES - SL_FILTER_BYTES, sizeof(bits));
			sl_filter_announce_build(msg, 1, bits);
		}
		filter_give(peer, msg);
		break;
	case PEER_COORDS:
		place_peer(peer - peer % 8); /* an upstream one, elsewhere */
		sl_router_settle(r);
		break;
	case DEST_COORDS:
		(void)!place_destination((uint32_t)(draw() % n));
		break;
	case COSTS:
		for (uint32_t i = 0; i < peers; i++) {
			struct sl_router_metrics m = {.measured = true,
				.cost = 1.0 + (double)(draw() % 100000) / 1e5,
				.etx = 1};

			sl_router_peer_metrics(r, i, &m, now_us);
		}
		break;
	case PEER_DOWN: {
		uint8_t xonly[32];

		/* An upstream one, chosen for many; comes back as somebody else. */
		peer -= peer % 8;
		memcpy(xonly, r->peers[peer]->xonly, sizeof(xonly));
		sl_router_peer_down(r, peer, now_us);
		now_us += 5000;
		(void)sl_router_tick(r, now_us);
		(void)!sl_router_peer_up(r, peer, xonly, 1280, now_us);
		place_peer(peer);
		filter_with(peer, dest, 1500);
		break;
	}
	case OWN_COORDS:
	default: {
		/* Below an upstream one, or right below the root again: another distance to nearly all. */
		const struct sl_route_peer *up = r->peers[peer - peer % 8];

		if (r->tree.len > 2) {
			r->tree.len = 2;
		} else {
			memcpy(r->tree.path, up->path, up->path_len * sizeof(up->path[0]));
			r->tree.len = (uint16_t)(up->path_len + 1);
		}
		r->tree.path[r->tree.len - 1] = r->tree.self;
		r->own_path_dirty = r->body_dirty = true;
		sl_router_settle(r);
		break;
	}
	}
}

static void sleep_us(unsigned us)
{
	struct timespec t = {.tv_nsec = us * 1000l};

	nanosleep(&t, NULL);
}

static void sleep_ms(unsigned ms)
{
	sleep_us(ms * 1000);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

#define ROUNDS_MOST 1000u
static struct outcome {
	double control_ms[ROUNDS_MOST], done_ms[ROUNDS_MOST];
} outcomes[CHANGES];

static double median(double *v, uint32_t count)
{
	qsort(v, count, sizeof(*v), by_value);
	return v[count / 2];
}

static int by_float(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/* The p-th hundredth of a window's blocks. */
static double hundredth(struct window *w, unsigned p)
{
	qsort(w->ns, w->count, sizeof(*w->ns), by_float);
	return w->count ? (double)w->ns[(uint64_t)w->count * p / 100] : 0;
}

static void change_once(enum change what, uint32_t round)
{
	struct outcome *o = &outcomes[what];
	uint64_t cpu, start;

	changed_what = what;
	now_us += 5000; /* the publishing interval is over */
	start = (uint64_t)now_ns();
	cpu = cpu_ns();
	__atomic_store_n(&change_at_ns, start, __ATOMIC_RELEASE);
	change(what);
	now_us += 100000; /* costs too are published now */
	(void)control_until_done();
	o->control_ms[round] = (double)(cpu_ns() - cpu) / 1e6;
	o->done_ms[round] = (now_ns() - (double)start) / 1e6;
	sleep_ms(220);
	__atomic_store_n(&change_at_ns, 0, __ATOMIC_RELEASE);
	sleep_ms(5);
}

static void change_figures(void)
{
	for (uint32_t round = 0; round < rounds; round++)
		for (int what = 0; what < CHANGES; what++)
			change_once((enum change)what, round);
	say("%-20s %50s %20s %18s\n", "one change", "workers: decided; ns a look-up, first 50 ms, later",
		"control, processor", "all answers made");
	for (int what = 0; what < CHANGES; what++) {
		struct outcome *o = &outcomes[what];
		struct window *w = windows[what];
		double decided = w[EARLY].packets ? (double)w[EARLY].decided / (double)w[EARLY].packets : 0,
		       early = hundredth(&w[EARLY], 50), late = hundredth(&w[LATE], 50),
		       control = median(o->control_ms, rounds), done = median(o->done_ms, rounds);

		say("%-20s %12.3f%% %8.1f %8.1f (%+6.2f%%, a quarter %+6.2f%%) %10.2f ms %15.2f ms\n",
			change_names[what], 100 * decided, early, late, 100 * (early / late - 1),
			100 * (hundredth(&w[EARLY], 25) / hundredth(&w[LATE], 25) - 1), control, done);
		if (json)
			printf("\"%s\":{\"decided_share\":%.6f,\"early_ns\":%.2f,\"later_ns\":%.2f,\"control_ms\":%.3f,"
			       "\"done_ms\":%.3f}%s",
				change_names[what], decided, early, late, control, done, what + 1 < CHANGES ? "," : "");
	}
}

/* How long ago a snapshot came that the next answer in line has not been taken over to yet. */
static double behind_ms(const uint64_t published_us[1024], uint32_t first)
{
	const struct sl_answers *a = &r->answers;
	uint32_t epoch;

	if (!a->left)
		return 0;
	epoch = r->coords.kept[a->cursor < a->limit ? a->cursor : 0].epoch;
	if (epoch == r->epoch)
		return 0;
	/* Snapshots before the storm had nothing for it. */
	if ((int32_t)(epoch + 1 - first) < 0)
		epoch = first - 1;
	return (double)(now_us - published_us[(epoch + 1) % 1024]) / 1e3;
}

/*
 * 1,000 changes a second, filters and coordinates in turn, for two seconds of the router's clock, a turn of control
 * every 100 us: processor time of control, and how late answers are. What making the changes takes is left
 * out.
 */
static void storm_figures(void)
{
	enum { TURNS = 20000 };
	static uint64_t published_us[1024];
	const uint32_t first = r->epoch + 1;
	uint32_t changes = 0, epoch = r->epoch;
	double late_ms = 0, core;
	uint64_t cpu, spent = 0;

	now_us += 1000000;
	(void)control_until_done();
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		now_us += 100;
		if (turn % 10 == 0)
			change(changes++ % 2 ? PEER_COORDS : HUNDRED_MEMBERS);
		cpu = cpu_ns();
		(void)sl_router_tick(r, now_us);
		spent += cpu_ns() - cpu;
		for (; epoch != r->epoch; epoch++)
			published_us[(epoch + 1) % 1024] = now_us;
		if (behind_ms(published_us, first) > late_ms)
			late_ms = behind_ms(published_us, first);
	}
	core = (double)spent / (TURNS * 1e5);
	say("storm, %u changes in two seconds: control's turns %.1f%% of a core, answers at most %.1f ms late\n",
		changes, 100 * core, late_ms);
	if (json)
		printf("},\"storm\":{\"changes\":%u,\"control_core\":%.4f,\"late_ms\":%.1f", changes, core, late_ms);
	(void)control_until_done();
}

/* Costs of all peers ten times a second: what keeping the answers takes of control. */
static void rest_figures(void)
{
	uint64_t cpu = cpu_ns(), decided = r->answers.decided;

	for (unsigned i = 0; i < 100; i++) {
		change(COSTS);
		for (unsigned k = 0; k < 20; k++) {
			now_us += 5000;
			(void)sl_router_tick(r, now_us);
		}
	}
	cpu = cpu_ns() - cpu;
	decided = r->answers.decided - decided;
	say("at rest, costs of all peers ten times a second: %.2f%% of a core, %.0f answers a second made anew\n",
		(double)cpu / 1e8, (double)decided / 10);
	if (json)
		printf("},\"rest\":{\"core\":%.5f,\"decided_per_s\":%.0f},", (double)cpu / 1e10, (double)decided / 10);
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
	pthread_t thread;
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
			return 2;
	}
	if (peers < 16 || peers > 16000 || n < 4096 || !seconds || !rounds || rounds > ROUNDS_MOST || active > n || sl_crypto_init() != 0) {
		fprintf(stderr,
			"usage: nexthop [-j] [--peers N] [--destinations N] [--seconds S] [--rounds N]\n");
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
	for (unsigned i = 0; i < 16 * WINDOWS; i++) {
		windows[i / WINDOWS][i % WINDOWS].ns = malloc(BLOCKS_MOST * sizeof(float));
		if (!windows[i / WINDOWS][i % WINDOWS].ns)
			return 1;
	}
	reading = true;
	if (pthread_create(&thread, NULL, reader, NULL) != 0)
		return 1;
	sleep_ms(500); /* until all is remembered */
	change_figures();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	reading = false;
	held_free(true);
	storm_figures();
	rest_figures();
	control_figures();
	if (json)
		printf("}\n");
	return 0;
}
