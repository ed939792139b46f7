/* SPDX-License-Identifier: BSD-3-Clause */
/* Many routers in one process on a virtual clock. */
#include "mesh.h"

#include <stdlib.h>

#define S 1000000ull

static void chain(struct mesh *m)
{
	for (uint32_t i = 0; i + 1 < m->count; i++)
		mesh_link(m, i, i + 1);
}

/* Every pair: set-up and its answer, data there and back. */
static void expect_all_pairs(struct mesh *m)
{
	for (uint32_t a = 0; a < m->count; a++)
		for (uint32_t b = 0; b < m->count; b++) {
			if (a == b)
				continue;
			SL_EXPECT_MSG(mesh_setup(m, a, b), "set-up %u -> %u", a, b);
			SL_EXPECT_MSG(mesh_setup(m, b, a), "answer %u -> %u", b, a);
			SL_EXPECT_MSG(mesh_data(m, a, b), "data %u -> %u", a, b);
			SL_EXPECT_MSG(mesh_data(m, b, a), "data %u -> %u", b, a);
		}
}

SL_TEST(mesh, two_nodes)
{
	struct mesh *m = mesh_create(2, 4, NULL);

	mesh_link(m, 0, 1);
	mesh_run(m, 2 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	SL_EXPECT(mesh_data(m, 0, 1));
	SL_EXPECT(mesh_data(m, 1, 0));
	mesh_destroy(m);
}

SL_TEST(mesh, chain)
{
	struct mesh *m = mesh_create(8, 4, NULL);
	struct sl_filter_hash h;

	chain(m);
	mesh_run(m, 10 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	/* 6.8: the filter that 0 holds from 1 has 1..7, the one that 7 holds from 6 has 0..6. */
	for (uint32_t i = 1; i < 8; i++) {
		sl_filter_hash(&h, m->nodes[i].addr.bytes);
		SL_EXPECT(sl_filter_claims(m->nodes[0].router->active[0]->filter, &h, 5));
		sl_filter_hash(&h, m->nodes[i - 1].addr.bytes);
		SL_EXPECT(sl_filter_claims(m->nodes[7].router->active[0]->filter, &h, 5));
	}
	expect_all_pairs(m);
	mesh_destroy(m);
}

SL_TEST(mesh, star)
{
	struct mesh *m = mesh_create(12, 16, NULL);
	struct sl_filter_hash h;

	/* The hub is not the root: node 5. */
	for (uint32_t i = 0; i < 12; i++)
		if (i != 5)
			mesh_link(m, 5, i);
	mesh_run(m, 10 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	for (uint32_t i = 0; i < 12; i++)
		for (uint32_t j = 0; j < 12 && i != 5; j++) {
			sl_filter_hash(&h, m->nodes[j].addr.bytes);
			if (i != j)
				SL_EXPECT(sl_filter_claims(
					m->nodes[i].router->active[0]->filter, &h, 5));
		}
	expect_all_pairs(m);
	mesh_destroy(m);
}

SL_TEST(mesh, ring)
{
	struct mesh *m = mesh_create(5, 4, NULL);

	for (uint32_t i = 0; i < 5; i++)
		mesh_link(m, i, (i + 1) % 5);
	mesh_run(m, 10 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	/* 6.8: every node is in at least one neighbour's filter of every other node. */
	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t j = 0; j < 5; j++) {
			struct sl_filter_hash h;
			unsigned claims = 0;

			sl_filter_hash(&h, m->nodes[j].addr.bytes);
			for (uint32_t k = 0; k < m->nodes[i].router->active_count; k++)
				claims += sl_filter_claims(
					m->nodes[i].router->active[k]->filter, &h, 5);
			SL_EXPECT(i == j || claims > 0);
		}
	expect_all_pairs(m);
	mesh_destroy(m);
}

static void random_links(struct mesh *m, uint32_t extra)
{
	for (uint32_t i = 1; i < m->count; i++)
		mesh_link(m, i, (uint32_t)(sl_test_rand() % i));
	while (extra) {
		uint32_t a = (uint32_t)(sl_test_rand() % m->count),
			 b = (uint32_t)(sl_test_rand() % m->count);

		if (a == b || mesh_peer_id(m, a, b) != UINT32_MAX)
			continue;
		mesh_link(m, a, b);
		extra--;
	}
}

SL_TEST(mesh, random_100)
{
	struct mesh *m = mesh_create(100, 64, NULL);
	uint32_t lost = 0;

	random_links(m, 100);
	mesh_run(m, 30 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t a = (uint32_t)(sl_test_rand() % 100), b = (uint32_t)(sl_test_rand() % 100);

		if (a == b)
			continue;
		/* Set-up and its answer: each warms its own way, which need not be the same. */
		lost += !mesh_setup(m, a, b) || !mesh_setup(m, b, a) || !mesh_data(m, a, b) ||
			!mesh_data(m, b, a);
	}
	SL_EXPECT_EQ(lost, 0);
	mesh_destroy(m);
}

/* --- lookups
 * --------------------------------------------------------------------------------------------------
 */

SL_TEST(mesh, every_pair_after_a_lookup)
{
	struct mesh *m = mesh_create(24, 16, NULL);

	random_links(m, 12);
	mesh_run(m, 20 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	for (uint32_t a = 0; a < m->count; a++)
		for (uint32_t b = 0; b < m->count; b++) {
			if (a == b)
				continue;
			/* Different askers share a target's limit at common nodes: not within two
			 * seconds (11.3). */
			mesh_run(m, 3 * S);
			SL_EXPECT_MSG(mesh_lookup(m, a, b), "lookup %u -> %u", a, b);
			SL_EXPECT_MSG(mesh_setup_known(m, a, b), "set-up %u -> %u", a, b);
			SL_EXPECT_MSG(mesh_setup(m, b, a), "answer %u -> %u", b, a);
			SL_EXPECT_MSG(
				mesh_data(m, a, b) && mesh_data(m, b, a), "data %u - %u", a, b);
		}
	mesh_destroy(m);
}

/* 11.5: links of 1280 give 1280 at the asker; the coordinates are the target's. */
SL_TEST(mesh, lookup_path_mtu)
{
	struct mesh *m = mesh_create(3, 4, NULL);
	uint32_t id, serial;
	const struct sl_coord_data *d;
	const struct sl_coords *c = &m->nodes[0].router->coords;

	chain(m);
	mesh_run(m, 5 * S);
	SL_EXPECT(mesh_lookup(m, 0, 2));
	d = sl_coords_lookup(c, m->nodes[2].addr.bytes,
		sl_node_hash(m->nodes[2].addr.bytes, c->key), (uint32_t)(m->now_us / S), &id,
		&serial);
	SL_ASSERT(d);
	SL_EXPECT_EQ(d->path_mtu, 1280);
	SL_EXPECT_EQ(d->len, 3);
	mesh_destroy(m);
}

SL_TEST(mesh, lookup_of_nobody_fails_at_once_and_of_the_gone_in_15_s)
{
	struct mesh *m = mesh_create(4, 4, NULL);
	uint8_t stranger[32];
	uint64_t start;

	chain(m);
	mesh_run(m, 5 * S);
	sl_test_rand_bytes(stranger, 32);
	SL_EXPECT(sl_router_lookup(m->nodes[0].router, stranger, m->now_us) != 0);
	m->nodes[2].links[mesh_peer_id(m, 2, 3)].up = false; /* silently dead */
	start = m->nodes[1].sent[SL_MSG_LOOKUP_REQUEST];
	SL_EXPECT_EQ(
		sl_router_lookup(m->nodes[0].router, sl_identity_xonly(m->nodes[3].id), m->now_us),
		0);
	SL_EXPECT(sl_router_lookup(
			  m->nodes[0].router, sl_identity_xonly(m->nodes[3].id), m->now_us) != 0);
	m->nodes[0].next_tick_us = m->now_us;
	mesh_run(m, 15 * S - 1);
	SL_EXPECT_EQ(m->nodes[0].not_found, 0);
	SL_EXPECT_EQ(m->nodes[0].sent[SL_MSG_LOOKUP_REQUEST], 4);
	/* Of the attempts at 0, 1, 3, 7 s the limiter of the first relay swallows the one at 1 s.
	 */
	SL_EXPECT_EQ(m->nodes[1].sent[SL_MSG_LOOKUP_REQUEST] - start, 3);
	mesh_run(m, 2);
	SL_EXPECT_EQ(m->nodes[0].not_found, 1);
	mesh_destroy(m);
}

/* --- what goes away
 * ------------------------------------------------------------------------------------------- */

/* Every announce of node `who` from now on must be one that reference nodes take: root smallest,
 * self first. */
static struct {
	uint32_t who;
	unsigned seen, bad;
	uint16_t entries;
} watch;

static bool watch_announces(
	struct mesh *m, uint32_t from, uint32_t to, const uint8_t *msg, size_t len)
{
	struct sl_tree_announce a;

	(void)m;
	(void)to;
	if (from != watch.who || msg[0] != SL_MSG_TREE_ANNOUNCE)
		return false;
	watch.seen++;
	if (sl_tree_announce_parse(&a, msg, len) != 0) {
		watch.bad++;
		return false;
	}
	watch.entries = a.entries;
	for (unsigned i = 0; i + 1 < a.entries; i++)
		watch.bad += memcmp(a.entry + 32 * i, a.entry + 32 * (a.entries - 1), 16) <= 0;
	return false;
}

/*
 * Issue: a chain whose middle node's only parent, the smallest address, goes away. Node 0 is the
 * smallest; 2 - 1 - 3 is the chain below it: both ends take the middle's next announce, and transit
 * through it works at once.
 */
SL_TEST(mesh, smallest_goes_away)
{
	struct mesh *m = mesh_create(4, 4, NULL);
	uint64_t bad2, bad3;

	mesh_link(m, 1, 0);
	mesh_link(m, 1, 2);
	mesh_link(m, 1, 3);
	mesh_run(m, 5 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	SL_EXPECT(mesh_setup(m, 2, 3) && mesh_setup(m, 3, 2));
	bad2 = m->nodes[2].router->counters[SL_ROUTE_TREE_BAD_SEMANTICS];
	bad3 = m->nodes[3].router->counters[SL_ROUTE_TREE_BAD_SEMANTICS];
	watch.who = 1;
	watch.seen = watch.bad = 0;
	m->drop = watch_announces;
	mesh_unlink(m, 1, 0);
	/* In one delay, not at the next tick. */
	mesh_run(m, 10000);
	SL_EXPECT_GE(watch.seen, 2);
	SL_EXPECT_EQ(watch.bad, 0);
	SL_EXPECT_EQ(m->nodes[2].router->counters[SL_ROUTE_TREE_BAD_SEMANTICS], bad2);
	SL_EXPECT_EQ(m->nodes[3].router->counters[SL_ROUTE_TREE_BAD_SEMANTICS], bad3);
	for (uint32_t i = 1; i < 4; i++)
		SL_EXPECT(sl_node_addr_equal(&m->nodes[i].router->tree.root, &m->nodes[1].addr));
	SL_EXPECT(mesh_setup(m, 2, 3) && mesh_setup(m, 3, 2) && mesh_data(m, 2, 3) &&
		  mesh_data(m, 3, 2));
	mesh_destroy(m);
}

/* The same, and 0 comes back in the middle of it all, first as it was, then with a smaller root
 * above it. */
SL_TEST(mesh, root_comes_and_goes)
{
	struct mesh *m = mesh_create(4, 4, NULL);

	mesh_link(m, 1, 0);
	mesh_link(m, 1, 2);
	mesh_link(m, 1, 3);
	watch.who = 1;
	watch.seen = watch.bad = 0;
	m->drop = watch_announces;
	for (unsigned i = 0; i < 20; i++) {
		mesh_run(m, sl_test_rand() % (3 * S));
		mesh_unlink(m, 1, 0);
		mesh_run(m, sl_test_rand() % (3 * S));
		mesh_link(m, 1, 0);
	}
	mesh_run(m, 5 * S);
	SL_EXPECT_GT(watch.seen, 20);
	SL_EXPECT_EQ(watch.bad, 0);
	SL_EXPECT(mesh_agrees(m, 0));
	SL_EXPECT(mesh_setup(m, 2, 3) && mesh_setup(m, 3, 0) && mesh_setup(m, 0, 3));
	mesh_destroy(m);
}

/*
 * Stale ancestry after a reconnect. Chain 0 - 1 - 2 - 3; 2 loses 1 and hears again, from its own
 * child 3, the old path that runs through itself and ends in 0. It must not follow it, nor stay
 * without a root; nor may 3.
 */
SL_TEST(mesh, stale_ancestry_after_a_reconnect)
{
	struct mesh *m = mesh_create(4, 4, NULL);
	struct sl_node_addr root;

	chain(m);
	mesh_run(m, 5 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	mesh_unlink(m, 2, 3);
	mesh_unlink(m, 1, 2);
	/* 3 has promoted itself; make it say what it said before: its link to 2 comes up with the
	 * old declaration. */
	mesh_run(m, 1);
	mesh_link(m, 2, 3);
	{
		struct sl_router *r3 = m->nodes[3].router, *r2 = m->nodes[2].router;
		struct sl_route_peer *p = r2->peers[mesh_peer_id(m, 2, 3)];
		uint8_t entries[4 * SL_TREE_ENTRY_BYTES] = {0};
		struct sl_tree_announce a = {.sequence = r3->tree.sequence - 1,
			.entries = 4,
			.entry = entries,
			.parent = m->nodes[2].addr};

		for (unsigned i = 0; i < 4; i++)
			memcpy(entries + i * SL_TREE_ENTRY_BYTES, &m->nodes[3 - i].addr, 16);
		sl_tree_accept(r2, p, &a);
		SL_EXPECT(sl_tree_is_root(&r2->tree));
		root = r2->tree.root;
		SL_EXPECT(sl_node_addr_equal(&root, &m->nodes[2].addr));
	}
	mesh_run(m, 3 * S);
	for (uint32_t i = 2; i < 4; i++)
		SL_EXPECT(sl_node_addr_equal(&m->nodes[i].router->tree.root, &m->nodes[2].addr));
	SL_EXPECT(mesh_setup(m, 2, 3) && mesh_setup(m, 3, 2));
	/* And back together. */
	mesh_link(m, 1, 2);
	mesh_run(m, 5 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	SL_EXPECT(mesh_setup(m, 0, 3) && mesh_setup(m, 3, 0));
	mesh_destroy(m);
}

/* A mid-chain ancestor disappears: everything below it finds another way or another root. */
SL_TEST(mesh, middle_of_a_chain_goes_away)
{
	struct mesh *m = mesh_create(9, 4, NULL);

	chain(m);
	mesh_link(m, 0, 8); /* a ring: the far half can come around */
	mesh_run(m, 20 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	mesh_unlink(m, 3, 4);
	mesh_unlink(m, 2, 3); /* node 3 is cut off */
	mesh_run(m, 30 * S);
	for (uint32_t i = 0; i < 9; i++)
		SL_EXPECT(sl_node_addr_equal(
			&m->nodes[i].router->tree.root, &m->nodes[i == 3 ? 3 : 0].addr));
	SL_EXPECT(mesh_setup(m, 2, 4) && mesh_setup(m, 4, 2) && mesh_data(m, 2, 4));
	mesh_destroy(m);
}

/* Two partitions with roots of their own meet again. */
SL_TEST(mesh, partitions_meet)
{
	struct mesh *m = mesh_create(20, 16, NULL);
	uint32_t bad = 0;

	for (uint32_t i = 2; i < 20; i++) /* evens below 0, odds below 1 */
		mesh_link(m, i, i < 4 ? i - 2 : (uint32_t)(sl_test_rand() % (i / 2)) * 2 + i % 2);
	mesh_run(m, 20 * S);
	for (uint32_t i = 0; i < 20; i++)
		bad += !sl_node_addr_equal(&m->nodes[i].router->tree.root, &m->nodes[i % 2].addr);
	SL_EXPECT_EQ(bad, 0);
	mesh_link(m, 18, 19);
	mesh_run(m, 40 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t a = (uint32_t)(sl_test_rand() % 20), b = (uint32_t)(sl_test_rand() % 20);

		bad += a != b &&
		       (!mesh_setup(m, a, b) || !mesh_setup(m, b, a) || !mesh_data(m, a, b));
	}
	SL_EXPECT_EQ(bad, 0);
	mesh_destroy(m);
}

/* Links come and go at random; when it is quiet all agree again and deliver. */
SL_TEST(mesh, churn)
{
	struct mesh *m = mesh_create(60, 64, NULL);
	uint32_t bad = 0;

	random_links(m, 60);
	for (unsigned i = 0; i < 200; i++) {
		uint32_t a = 1 + (uint32_t)(sl_test_rand() % 59),
			 b = (uint32_t)(sl_test_rand() % a);

		mesh_run(m, sl_test_rand() % (S / 2));
		if (mesh_peer_id(m, a, b) == UINT32_MAX)
			mesh_link(m, a, b);
		else
			mesh_unlink(m, a, b);
	}
	for (uint32_t i = 1; i < 60; i++) /* in one piece whatever happened */
		if (mesh_peer_id(m, i, i - 1) == UINT32_MAX)
			mesh_link(m, i, i - 1);
	mesh_run(m, 180 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t a = (uint32_t)(sl_test_rand() % 60), b = (uint32_t)(sl_test_rand() % 60);

		bad += a != b && (!mesh_setup(m, a, b) || !mesh_setup(m, b, a) ||
					 !mesh_data(m, a, b) || !mesh_data(m, b, a));
	}
	SL_EXPECT_EQ(bad, 0);
	mesh_destroy(m);
}

/* One announce in ten is lost: the periodic ones bring everybody together all the same. */
static bool lossy(struct mesh *m, uint32_t from, uint32_t to, const uint8_t *msg, size_t len)
{
	(void)m, (void)from, (void)to, (void)len;
	return msg[0] != SL_MSG_DATAGRAM && sl_test_rand() % 10 == 0;
}

SL_TEST(mesh, lossy_links)
{
	struct mesh *m = mesh_create(30, 64, NULL);
	uint32_t bad = 0;

	m->drop = lossy;
	random_links(m, 15);
	mesh_run(m, 400 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t a = (uint32_t)(sl_test_rand() % 30), b = (uint32_t)(sl_test_rand() % 30);

		bad += a != b &&
		       (!mesh_setup(m, a, b) || !mesh_setup(m, b, a) || !mesh_data(m, a, b));
	}
	SL_EXPECT_EQ(bad, 0);
	mesh_destroy(m);
}
