/* SPDX-License-Identifier: BSD-3-Clause */
/* Many routers in one process on a virtual clock. */
#include "mesh.h"

#include <stdlib.h>

#define S 1000000ull

static void
chain(struct mesh *m)
{
	for (uint32_t i = 0; i + 1 < m->count; i++)
		mesh_link(m, i, i + 1);
}

/* Every pair: set-up and its answer, data there and back. */
static void
expect_all_pairs(struct mesh *m)
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
				SL_EXPECT(sl_filter_claims(m->nodes[i].router->active[0]->filter, &h, 5));
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
				claims += sl_filter_claims(m->nodes[i].router->active[k]->filter, &h, 5);
			SL_EXPECT(i == j || claims > 0);
		}
	expect_all_pairs(m);
	mesh_destroy(m);
}

static void
random_links(struct mesh *m, uint32_t extra)
{
	for (uint32_t i = 1; i < m->count; i++)
		mesh_link(m, i, (uint32_t)(sl_test_rand() % i));
	while (extra) {
		uint32_t a = (uint32_t)(sl_test_rand() % m->count), b = (uint32_t)(sl_test_rand() % m->count);

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
		lost += !mesh_setup(m, a, b) || !mesh_setup(m, b, a) || !mesh_data(m, a, b) || !mesh_data(m, b, a);
	}
	SL_EXPECT_EQ(lost, 0);
	mesh_destroy(m);
}
