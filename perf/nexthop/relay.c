/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay: every eighth peer is upstream and claims much, the others are children with their subtree. */
#include "nexthop.h"

#include <stdarg.h>

static uint64_t random_state = 88172645463325252ull;

uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool json;
uint32_t peers = 1000, n = 100000, seconds = 20, rounds = 15;
struct sl_router *r;
struct sl_hop_cache *cache;
struct sl_node_addr *dest;
uint64_t now_us = 1000000;

void say(const char *fmt, ...)
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

struct sl_node_addr draw_addr(void)
{
	struct sl_node_addr a;
	uint64_t x = draw(), y = draw();

	memcpy(a.bytes, &x, 8);
	memcpy(a.bytes + 8, &y, 8);
	a.bytes[0] |= 0x10;
	return a;
}

void filter_build(
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

void filter_give(uint32_t id, uint8_t msg[SL_FILTER_MSG_BYTES])
{
	sl_put64(msg + 1, r->peers[id]->filter_sequence_rx + 1);
	sl_router_message(r, id, msg, SL_FILTER_MSG_BYTES, now_us);
}

void filter_with(uint32_t id, const struct sl_node_addr *members, uint32_t count)
{
	uint8_t msg[SL_FILTER_MSG_BYTES];

	filter_build(msg, members, count);
	filter_give(id, msg);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double median(double *v, uint32_t count)
{
	qsort(v, count, sizeof(*v), by_value);
	return v[count / 2];
}

/* --- peers and destinations --- */

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

void place_peer(uint32_t i)
{
	uint8_t entries[6 * 32];
	struct sl_tree_announce a = {.sequence = r->peers[i]->tree_sequence + 1, .entry = entries};

	a.entries = (uint16_t)path_of(i, entries);
	memcpy(&a.parent, entries + 32, 16);
	sl_tree_accept(r, r->peers[i], &a);
}

/* Below one of the peers, five deep or more. */
int place_destination(uint32_t i)
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
uint64_t reader_round;
bool reading;

void held_free(bool all)
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

uint32_t control_until_done(void)
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

int make_relay(void)
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
