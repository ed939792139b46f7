/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a relay holds for each peer, session and destination: the real tables are made and filled one after the other, and
 * what the process has become larger by stands beside what the libraries predict from the sizes of their structures
 * (sl_router_capacity() and the like, which the daemon goes by at its start).
 */
#include "memory_scale.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_eth_ring.h>
#include "../lib/routing/router.h"
#include "sl_control.h"
#include "sl_link.h"

#define MIB 1048576.0
#define PATH_LEN 6u /* of destinations and peers: entries, itself and the root among them */

struct row {
	const char *what, *where;
	double number, predicted, seen; /* bytes in all */
};
static struct row rows[16];
static unsigned row_count;
static double before_mib;

static void
begin(void)
{
	(void)malloc_trim(0); /* what was given back must not serve what is measured */
	before_mib = resident_mib();
}

static void
end(const char *what, double number, double predicted, const char *where)
{
	rows[row_count++] = (struct row){.what = what, .where = where, .number = number, .predicted = predicted,
		.seen = (resident_mib() - before_mib) * MIB};
}

static int
send_nothing(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	return 0;
}
static int
transmit_nothing(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	return 0;
}

struct world {
	const struct memory_scale *s;
	struct sl_identity *id;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_router *router;
	struct sl_dataplane *dp;
	uint8_t (*keys)[32];
	struct sl_node_addr *known;
	uint64_t now_us;
};

static int
sessions(struct world *w)
{
	const struct sl_session_table_config tc = {.max_sessions = 4 * w->s->peers, .max_peers = w->s->peers, .workers = w->s->workers};
	const uint32_t count = 2 * w->s->peers;

	begin();
	w->table = sl_session_table_create(&tc);
	if (!w->table)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		struct sl_noise_keys keys;
		struct sl_session *s;
		uint32_t index;

		if (sl_session_index_reserve(w->table, (uint16_t)(i % w->s->workers), &index) != 0)
			return -1;
		sl_random(&keys, sizeof(keys));
		s = sl_session_install(w->table, index, i, i % w->s->peers, false, &keys, 1);
		for (uint64_t c = 0; s && c < 4096; c += 64)
			(void)!sl_replay_commit(&s->replay, c);
		if (!s)
			return -1;
		__atomic_store_n(&sl_session_table_view(w->table)->peers[i % w->s->peers].tx, s, __ATOMIC_RELEASE);
	}
	/* Slots are drawn at random, so half of them in use touch nearly all pages. */
	end("slot of the session table (four a peer, half of them used)", sl_session_table_view(w->table)->slot_mask + 1.0,
		(double)sl_session_table_bytes_of(&tc), "mapped, locked; indices: heap");
	return 0;
}

static int
links(struct world *w)
{
	const struct sl_links_sink sink = {.transmit = transmit_nothing};
	struct sl_links_capacity c;
	struct sl_links_config lc;

	sl_links_config_default(&lc);
	sl_links_capacity(w->s->peers, sl_session_table_view(w->table)->slot_mask + 1, &c);
	w->links = sl_links_create(&lc, w->id, w->table, sl_aead_backend_find("auto"), &sink, w->now_us);
	begin();
	for (uint32_t i = 0; w->links && i < w->s->peers; i++) {
		struct sl_peer_config p = {.addr_count = 1, .addrs = {{.kind = SL_ADDR_UDP4, .udp_port = 2121, .u.ip4 = {10, 0}}}};

		p.addrs[0].u.ip4[2] = (uint8_t)(i >> 8);
		p.addrs[0].u.ip4[3] = (uint8_t)i;
		memcpy(p.xonly, w->keys[i], 32);
		if (sl_links_peer_configure(w->links, &p, w->now_us) != 0)
			return -1;
	}
	end("peer: its link (state machine, measurements)", w->s->peers, (double)c.peer * w->s->peers, "heap, locked");
	return w->links ? 0 : -1;
}

/* Every eighth peer is upstream and claims much, the others are children with their subtree. */
static int
router(struct world *w)
{
	struct sl_router_sink sink = {.send = send_nothing};
	struct sl_router_capacity c;
	struct sl_router_config rc;
	uint8_t msg[SL_FILTER_MSG_BYTES], bits[SL_FILTER_BYTES];

	sl_router_config_default(&rc);
	rc.max_peers = w->s->peers;
	rc.coord_size = 1;
	sl_router_capacity(&rc, PATH_LEN, &c);
	rc.coord_size = w->s->known;
	begin();
	w->router = sl_router_create(&rc, w->id, &sink, 1700000000, w->now_us);
	if (!w->router)
		return -1;
	end("(router's tables for as many destinations, empty)", 1, 0, "heap");
	begin();
	for (uint32_t i = 0; i < w->s->peers; i++) {
		uint8_t entries[PATH_LEN * SL_TREE_ENTRY_BYTES] = {0};
		struct sl_tree_announce a = {.sequence = 1, .entries = PATH_LEN, .entry = entries};

		if (sl_router_peer_up(w->router, i, w->keys[i], 1280, w->now_us) != 0)
			return -1;
		memcpy(entries, &w->router->peers[i]->addr, 16);
		for (unsigned k = 1; k < PATH_LEN - 1; k++)
			sl_random(entries + k * SL_TREE_ENTRY_BYTES, 16);
		memcpy(&a.parent, entries + SL_TREE_ENTRY_BYTES, 16);
		sl_tree_accept(w->router, w->router->peers[i], &a);
		memset(bits, 0, sizeof(bits));
		for (unsigned k = 0; k < (i % 8 ? 100 : 1500); k++) {
			struct sl_filter_hash h;
			uint8_t addr[16];

			sl_random(addr, sizeof(addr));
			sl_filter_hash(&h, addr);
			sl_filter_insert(bits, &h);
		}
		sl_filter_announce_build(msg, 1, bits);
		sl_router_message(w->router, i, msg, sizeof(msg), w->now_us);
		w->now_us += 10000;
		(void)sl_router_tick(w->router, w->now_us);
	}
	end("peer: its place in the tree and its filter", w->s->peers, (double)c.peers, "heap");
	return 0;
}

static int
dataplane(struct world *w)
{
	struct sl_dataplane_config dc = {.workers = w->s->workers, .mbufs = 8192, .aead = sl_aead_backend_find("auto"),
		.hop_cache_entries = 64};
	struct sl_port_config pc = {.name = "m", .device = "net_ring_scale"};
	const struct sl_dataplane_transport t = {.kind = SL_ADDR_ETH, .mtu = 1400, .ethertype = 0x2121};
	const struct sl_dataplane_sink sink = {NULL};
	struct rte_ring *in = rte_ring_create("s_in", 1024, SOCKET_ID_ANY, 0), *out[64];
	struct sl_dataplane_capacity c;
	const char *error;

	for (unsigned i = 0; i < w->s->workers; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s_out%u", i);
		out[i] = rte_ring_create(name, 1024, SOCKET_ID_ANY, 0);
		if (!out[i])
			return -1;
	}
	if (!in || rte_eth_from_rings("scale", &in, 1, out, w->s->workers, 0) < 0)
		return -1;
	w->dp = sl_dataplane_create(&dc, sl_session_table_view(w->table), sl_router_fib(w->router), &sink);
	if (!w->dp || sl_dataplane_port_add(w->dp, &pc, &error) != 0 || sl_dataplane_transport_add(w->dp, &t) != 0)
		return -1;
	/* Nothing runs here: what peers take is paths, marks and neighbours. */
	w->dp->ports[0].link_up = true;
	dc.hop_cache_entries = 64;
	sl_dataplane_capacity(&dc, w->s->peers, 0, &c);
	begin();
	for (uint32_t i = 0; i < w->s->peers; i++) {
		const struct sl_addr at = {.kind = SL_ADDR_ETH, .u.mac = {2, 0, 0, 0, (uint8_t)(i >> 8), (uint8_t)i}};

		sl_dataplane_path_set(w->dp, i, &at, w->now_us);
	}
	(void)sl_dataplane_poll(w->dp, 256, sl_dataplane_now_us());
	if (!sl_session_table_view(w->table)->peers[w->s->peers - 1].path)
		return -1;
	end("peer: its outer headers", w->s->peers, (double)(sizeof(struct sl_path) + sizeof(struct sl_peer_path)) * w->s->peers, "heap");
	return 0;
}

static int
destinations(struct world *w)
{
	struct sl_router *r = w->router;
	struct sl_router_capacity c;
	struct sl_node_addr wire[PATH_LEN];

	sl_router_capacity(&r->config, PATH_LEN, &c);
	begin();
	for (uint32_t i = 0; i < w->s->known; i++) {
		const struct sl_route_peer *p = r->peers[i % w->s->peers];

		sl_random(&w->known[i], sizeof(w->known[i]));
		wire[0] = w->known[i];
		sl_random(&wire[1], sizeof(wire[1]));
		for (unsigned k = 2; k < PATH_LEN; k++) /* below a peer: that peer, what is above it, the root */
			wire[k] = p->path[p->path_len - 1 - (k - 2) * (p->path_len - 1u) / (PATH_LEN - 3)];
		if (sl_coords_insert(&r->coords, &w->known[i], wire[0].bytes, PATH_LEN, 0, (uint32_t)(w->now_us / 1000000)) != 0)
			return -1;
	}
	do {
		w->now_us += 1000;
		(void)sl_router_tick(r, w->now_us);
	} while (r->answers.left || r->coords.undecided_count);
	/* The tables were there before: their resident part belongs here. */
	for (unsigned i = 0; i < row_count; i++)
		if (rows[i].what[0] == '(') {
			before_mib -= rows[i].seen / MIB;
			memmove(&rows[i], &rows[i + 1], (--row_count - i) * sizeof(rows[0]));
		}
	end("known destination (coordinates, next hop)", w->s->known, (double)(c.destinations + c.fixed), "heap");
	return 0;
}

static int
active(struct world *w)
{
	struct sl_hop hops[32];
	const uint8_t *dest[32];
	const uint32_t entries = 2 * w->s->active;

	begin();
	for (uint16_t k = 0; k < w->s->workers; k++) {
		struct sl_hop_cache *cache = sl_hop_cache_create(entries);

		if (!cache)
			return -1;
		for (uint32_t i = 0; i + 32 <= w->s->active; i += 32) {
			for (unsigned j = 0; j < 32; j++)
				dest[j] = w->known[(uint64_t)(i + j) * (w->s->known / w->s->active)].bytes;
			sl_fib_lookup(w->router->ref.current, cache, dest, hops, 32, (uint32_t)(w->now_us / 1000000));
		}
	}
	end("active destination, of each worker (hop_cache: twice as many)", (double)w->s->active * w->s->workers,
		(double)sl_hop_cache_bytes(entries) * w->s->workers, "heap");
	return 0;
}

static void
print(const struct memory_scale *s)
{
	double predicted = 0, seen = 0;

	for (unsigned i = 0; i < row_count; i++) {
		predicted += rows[i].predicted;
		seen += rows[i].seen;
	}
	if (s->json) {
		printf("{\"bench\":\"memory_scale\",\"peers\":%u,\"known\":%u,\"active\":%u,\"workers\":%u,\"rows\":[", s->peers, s->known,
			s->active, s->workers);
		for (unsigned i = 0; i < row_count; i++)
			printf("%s{\"what\":\"%s\",\"number\":%.0f,\"predicted_each\":%.1f,\"seen_each\":%.1f,\"predicted_mib\":%.2f,"
			       "\"seen_mib\":%.2f,\"where\":\"%s\"}", i ? "," : "", rows[i].what, rows[i].number,
				rows[i].predicted / rows[i].number, rows[i].seen / rows[i].number, rows[i].predicted / MIB,
				rows[i].seen / MIB, rows[i].where);
		printf("],\"predicted_mib\":%.1f,\"seen_mib\":%.1f,\"resident_mib\":%.1f}\n", predicted / MIB, seen / MIB, resident_mib());
		return;
	}
	printf("%-62s %9s %10s %8s %9s %8s  %s\n", "", "number", "predicted", "seen", "predicted", "seen", "");
	printf("%-62s %9s %10s %8s %9s %8s  %s\n", "", "", "bytes each", "", "MiB", "", "where");
	for (unsigned i = 0; i < row_count; i++)
		printf("%-62s %9.0f %10.0f %8.0f %9.1f %8.1f  %s\n", rows[i].what, rows[i].number, rows[i].predicted / rows[i].number,
			rows[i].seen / rows[i].number, rows[i].predicted / MIB, rows[i].seen / MIB, rows[i].where);
	printf("%-62s %9s %10s %8s %9.1f %8.1f\n", "all of these", "", "", "", predicted / MIB, seen / MIB);
	printf("the process in all: %.1f MiB resident\n", resident_mib());
}

int
memory_scale(const struct memory_scale *s)
{
	struct world w = {.s = s, .now_us = 1000000, .id = sl_identity_generate()};
	double predicted = 0, seen = 0;

	w.keys = calloc(s->peers, sizeof(*w.keys));
	w.known = calloc(s->known, sizeof(*w.known));
	if (!w.id || !w.keys || !w.known || s->peers < 16 || s->active < 32 || s->known < s->active || !s->workers || s->workers > 32)
		return 2;
	/* Their pages are this program's own: not to be counted with what is measured. */
	memset(w.known, 1, s->known * sizeof(*w.known));
	for (uint32_t i = 0; i < s->peers; i++) {
		struct sl_identity *id = sl_identity_generate();

		if (!id)
			return 2;
		memcpy(w.keys[i], sl_identity_xonly(id), 32);
		sl_identity_destroy(id);
	}
	if (sessions(&w) || links(&w) || router(&w) || dataplane(&w) || destinations(&w) || active(&w)) {
		fprintf(stderr, "memory: --scale cannot be set up (row %u)\n", row_count);
		return 2;
	}
	print(s);
	for (unsigned i = 0; i < row_count; i++) {
		predicted += rows[i].predicted;
		seen += rows[i].seen;
	}
	return seen > predicted * 1.1;
}
