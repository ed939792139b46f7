/* SPDX-License-Identifier: BSD-3-Clause */
/* What changes cost the workers and control: one at a time beside a reader, a storm of them, and a relay at rest. */
#include "nexthop.h"

#include <pthread.h>

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

static struct outcome {
	double control_ms[ROUNDS_MOST], done_ms[ROUNDS_MOST];
} outcomes[CHANGES];

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

/* All of them, with a reader beside. */
static int changes_run(void)
{
	pthread_t thread;

	for (unsigned i = 0; i < 16 * WINDOWS; i++) {
		windows[i / WINDOWS][i % WINDOWS].ns = malloc(BLOCKS_MOST * sizeof(float));
		if (!windows[i / WINDOWS][i % WINDOWS].ns)
			return -1;
	}
	reading = true;
	if (pthread_create(&thread, NULL, reader, NULL) != 0)
		return -1;
	sleep_ms(500); /* until all is remembered */
	for (uint32_t round = 0; round < rounds; round++)
		for (int what = 0; what < CHANGES; what++)
			change_once((enum change)what, round);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	reading = false;
	held_free(true);
	return 0;
}

int change_figures(void)
{
	if (changes_run() != 0)
		return -1;
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
	return 0;
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
void storm_figures(void)
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
void rest_figures(void)
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
