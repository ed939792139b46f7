/* SPDX-License-Identifier: BSD-3-Clause */
/* W7: roots that vanish. The plain rules in the same meshes beside ours. */
#include "mesh.h"

#include <stdlib.h>

#define S 1000000ull
#define NODES 80u

static struct mesh *random_mesh(uint64_t root_doubt_us)
{
	struct sl_router_config c;
	struct mesh *m;
	uint32_t extra = 2 * NODES;

	sl_router_config_default(&c);
	c.coord_size = 256;
	c.root_doubt_us = root_doubt_us;
	m = mesh_create(NODES, 64, &c);
	for (uint32_t i = 1; i < m->count; i++)
		mesh_link(m, i, (uint32_t)(sl_test_rand() % i));
	while (extra) {
		uint32_t a = (uint32_t)(sl_test_rand() % NODES),
			 b = (uint32_t)(sl_test_rand() % NODES);

		if (a == b || mesh_peer_id(m, a, b) != UINT32_MAX)
			continue;
		mesh_link(m, a, b);
		extra--;
	}
	/* 1 stays in one piece with the others when 0 goes. */
	for (uint32_t i = 1; i + 1 < NODES; i++)
		if (mesh_peer_id(m, i, i + 1) == UINT32_MAX)
			mesh_link(m, i, i + 1);
	mesh_run(m, 40 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	return m;
}

/* Everyone but node 0 has root 1 and its parent's coordinates. */
static bool agree_without_0(const struct mesh *m)
{
	for (uint32_t i = 1; i < m->count; i++) {
		const struct sl_tree *t = &m->nodes[i].router->tree;
		uint32_t up;

		if (!sl_node_addr_equal(&t->root, &m->nodes[1].addr))
			return false;
		if (i == 1)
			continue;
		for (up = 1; up < m->count; up++)
			if (sl_node_addr_equal(&m->nodes[up].addr, &t->parent))
				break;
		if (up == m->count || m->nodes[up].router->tree.len + 1 != t->len ||
			memcmp(m->nodes[up].router->tree.path, t->path,
				(t->len - 1) * sizeof(t->path[0])) != 0)
			return false;
	}
	return true;
}

/* Node 0 dies; its neighbours notice one after the other within two seconds. Seconds until all
 * others agree, at most 120; the longest path seen meanwhile. */
static double root_dies(struct mesh *m, uint32_t *longest)
{
	uint64_t start_us = m->now_us;

	for (uint32_t i = 1; i < m->count; i++)
		if (mesh_peer_id(m, i, 0) != UINT32_MAX) {
			mesh_unlink(m, i, 0);
			mesh_run(m, sl_test_rand() % (S / 2));
		}
	*longest = 0;
	while (!agree_without_0(m) && m->now_us - start_us < 120 * S) {
		mesh_run(m, S / 10);
		for (uint32_t i = 1; i < m->count; i++)
			if (m->nodes[i].router->tree.len > *longest)
				*longest = m->nodes[i].router->tree.len;
	}
	return (double)(m->now_us - start_us) / 1e6;
}

SL_TEST(vanish, the_root_of_a_random_mesh_dies)
{
	double plain_s = 0, ours_s = 0, s;
	uint32_t longest, plain_longest = 0, ours_longest = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct mesh *plain = random_mesh(0), *ours = random_mesh(3 * S);

		s = root_dies(plain, &longest);
		plain_s = s > plain_s ? s : plain_s;
		plain_longest = longest > plain_longest ? longest : plain_longest;
		s = root_dies(ours, &longest);
		ours_s = s > ours_s ? s : ours_s;
		ours_longest = longest > ours_longest ? longest : ours_longest;
		mesh_destroy(plain);
		mesh_destroy(ours);
	}
	printf("  plain rules: %.1f s, paths up to %u; ours: %.1f s, paths up to %u\n", plain_s,
		plain_longest, ours_s, ours_longest);
	SL_EXPECT_LT(ours_s, 20);
	/* Paths to the dead root grow until no packet holds them. */
	SL_EXPECT_GT(plain_longest, 2 * ours_longest);
	SL_EXPECT_GT(plain_s, ours_s);
}

/* Only the link to a living root is lost: the longer way is taken when the doubt is over. */
SL_TEST(vanish, a_link_to_the_root_is_lost)
{
	struct mesh *m = mesh_create(6, 4, NULL);

	for (uint32_t i = 0; i < 6; i++)
		mesh_link(m, i, (i + 1) % 6);
	mesh_run(m, 40 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	mesh_unlink(m, 0, 5);
	SL_EXPECT_EQ(m->nodes[5].router->counters[SL_ROUTE_ROOT_DOUBTED], 1);
	mesh_run(m, 12 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	mesh_destroy(m);
}

/* A parent that is not the root goes: there is nothing to doubt, the other way is taken at once. */
SL_TEST(vanish, another_parent_is_lost)
{
	struct mesh *m = mesh_create(4, 4, NULL);

	mesh_link(m, 0, 1);
	mesh_link(m, 0, 2);
	mesh_link(m, 1, 3);
	mesh_link(m, 2, 3);
	mesh_run(m, 40 * S);
	SL_EXPECT(mesh_agrees(m, 0));
	mesh_unlink(m, 3,
		sl_node_addr_equal(&m->nodes[3].router->tree.parent, &m->nodes[1].addr) ? 1 : 2);
	mesh_run(m, S / 10);
	SL_EXPECT(mesh_agrees(m, 0));
	SL_EXPECT_EQ(m->nodes[3].router->counters[SL_ROUTE_ROOT_DOUBTED], 0);
	mesh_destroy(m);
}
