/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures for docs/routing.md, printed: one relay with many peers and destinations. Not a test.
 *	measure [PEERS [DESTINATIONS]]
 */
#include "router.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
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
	uint8_t msg[SL_FILTER_MSG_BYTES], const struct sl_node_addr *members, uint32_t n)
{
	uint8_t bits[SL_FILTER_BYTES] = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct sl_filter_hash h;

		sl_filter_hash(&h, members[i].bytes);
		sl_filter_insert(bits, &h);
	}
	sl_filter_announce_build(msg, 1, bits);
}

static void filter_give(
	struct sl_router *r, uint32_t id, uint8_t msg[SL_FILTER_MSG_BYTES], uint64_t now_us)
{
	sl_put64(msg + 1, r->peers[id]->filter_sequence_rx + 1);
	sl_router_message(r, id, msg, SL_FILTER_MSG_BYTES, now_us);
}

static void filter_with(struct sl_router *r, uint32_t id, const struct sl_node_addr *members,
	uint32_t n, uint64_t now_us)
{
	uint8_t msg[SL_FILTER_MSG_BYTES];

	filter_build(msg, members, n);
	filter_give(r, id, msg, now_us);
}

static void burst_figures(const struct sl_router *r, struct sl_hop_cache *cache,
	const struct sl_node_addr *dest, uint32_t n, const char *what)
{
	struct sl_hop hops[32];
	const uint8_t *one[32];
	double start, best = 1e18;

	for (int turn = 0; turn < 3; turn++) {
		start = now_ns();
		for (uint32_t i = 0; i + 32 <= n; i += 32) {
			for (unsigned k = 0; k < 32; k++)
				one[k] = dest[i + k].bytes;
			sl_fib_lookup(r->ref.current, cache, one, hops, 32, 1);
		}
		if (now_ns() - start < best)
			best = now_ns() - start;
	}
	printf("%-44s %8.1f ns\n", what, best / (n / 32 * 32));
}

int main(int argc, char **argv)
{
	const uint32_t peers = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000,
		       n = argc > 2 ? (uint32_t)atoi(argv[2]) : 100000;
	struct sl_router_sink sink = {.send = on_send};
	struct sl_router_config c;
	struct sl_identity *id;
	struct sl_router *r;
	struct sl_hop_cache *cache = sl_hop_cache_create(n * 2);
	struct sl_node_addr *dest = calloc(n, sizeof(*dest)), top = {{0}},
			    *all = calloc(peers, sizeof(*all));
	uint64_t now_us = 1000000;
	static uint8_t messages[64][SL_FILTER_MSG_BYTES];
	size_t before;
	double start;

	if (sl_crypto_init() != 0)
		return 1;
	id = sl_identity_generate();
	sl_router_config_default(&c);
	c.max_peers = peers;
	c.coord_size = n;
	c.seed = 1;
	r = sl_router_create(&c, id, &sink, 1700000000, now_us);
	if (!r)
		return 1;
	/* Every eighth peer is upstream of everything and claims it; the others are children with
	 * their subtree. */
	for (uint32_t i = 0; i < peers; i++) {
		uint8_t xonly[32], entries[6 * 32] = {0};
		struct sl_tree_announce a = {
			.sequence = 1, .entries = i % 8 ? 3 : 5, .entry = entries};

		for (int k = 0; k < 32; k += 8)
			sl_put64(xonly + k, draw());
		if (sl_router_peer_up(r, i, xonly, 1280, now_us) != 0)
			return 1;
		all[i] = r->peers[i]->addr;
		memcpy(entries, &all[i], 16);
		if (i % 8) {
			memcpy(entries + 32, &r->tree.self, 16);
		} else {
			for (int k = 1; k < 4; k++) {
				struct sl_node_addr up = draw_addr();

				memcpy(entries + 32 * k, &up, 16);
			}
		}
		memcpy(entries + 32 * (a.entries - 1), &top, 16);
		memcpy(&a.parent, entries + 32, 16);
		sl_tree_accept(r, r->peers[i], &a);
	}
	before = mallinfo2().uordblks;
	for (uint32_t i = 0; i < n; i++) {
		/* Below one of the peers, five deep. */
		const struct sl_route_peer *p = r->peers[draw() % peers];
		struct sl_node_addr wire[10];
		unsigned len = 0;

		dest[i] = wire[len++] = draw_addr();
		wire[len++] = draw_addr();
		for (unsigned k = 0; k < p->path_len; k++)
			wire[len++] = p->path[p->path_len - 1 - k];
		if (sl_coords_insert(&r->coords, &dest[i], wire[0].bytes, len, 0, 1) != 0)
			return 1;
	}
	printf("coordinate cache: %u entries, %zu MB in entries, %zu MB with tables\n", n,
		(mallinfo2().uordblks - before) >> 20, sl_coords_bytes(&r->coords) >> 20);
	for (uint32_t i = 0; i < peers; i++) {
		struct sl_router_metrics m = {
			.measured = true, .cost = 1.0 + (double)(draw() % 100000) / 1e5, .etx = 1};

		if (i % 8)
			filter_with(r, i, dest + draw() % (n / 2), 100, now_us);
		else
			filter_with(r, i, dest, 1500, now_us);
		sl_router_peer_metrics(r, i, &m, now_us);
	}
	now_us += 1000000;
	(void)sl_router_tick(r, now_us);
	printf("%u peers, %u destinations\n", peers, n);
	burst_figures(r, NULL, dest, n, "next hop, nothing remembered, filters miss");
	burst_figures(r, NULL, dest, 1472, "next hop, nothing remembered, filters hit");
	burst_figures(r, cache, dest, n, "next hop, remembered");
	burst_figures(r, cache, dest, 1472, "next hop, remembered, few destinations");

	for (int kind = 0; kind < 2; kind++) {
		start = now_ns();
		for (int i = 0; i < 200; i++) {
			now_us += 5000;
			r->now_us = now_us;
			r->body_dirty = true;
			r->index_dirty = kind == 1;
			sl_router_settle(r);
		}
		printf("%-44s %8.1f us\n",
			kind ? "a snapshot, peers' paths changed"
			     : "a snapshot, costs or own path changed",
			(now_ns() - start) / 200e3);
	}
	for (unsigned i = 0; i < 64; i++)
		filter_build(messages[i], dest + draw() % (n / 2), 100);
	start = now_ns();
	for (unsigned i = 0; i < 4000; i++) {
		now_us += 5000;
		filter_give(r, 1 + i % (peers - 1), messages[i * 7 % 64], now_us);
	}
	printf("%-44s %8.1f us\n", "a filter announce taken in and published",
		(now_ns() - start) / 4000e3);
	burst_figures(r, cache, dest, n, "next hop, remembered, right after (best)");
	{
		uint8_t bits[SL_FILTER_BYTES];

		start = now_ns();
		for (int i = 0; i < 2000; i++)
			sl_filter_outgoing(r, r->peers[(uint32_t)i % peers], bits);
		printf("%-44s %8.2f us\n", "outgoing filter of one peer",
			(now_ns() - start) / 2000e3);
	}
	start = now_ns();
	sent = 0;
	for (int i = 0; i < 1000; i++) {
		now_us += 1000;
		(void)sl_router_tick(r, now_us);
	}
	printf("%-44s %8.1f us (%llu sent)\n", "a tick, one each millisecond",
		(now_ns() - start) / 1000e3, (unsigned long long)sent);
	sl_router_destroy(r);
	sl_identity_destroy(id);
	sl_hop_cache_destroy(cache);
	free(dest);
	free(all);
	return 0;
}
