/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of routing facts 3 and 7.3. Peer ids are the addresses' first bytes, so that order of
 * ids = of addresses. */
#include "fake.h"

static uint32_t distance(const char *a, const char *b)
{
	struct sl_node_addr x[8], y[8];
	uint32_t la = (uint32_t)strlen(a), lb = (uint32_t)strlen(b);

	/* Written node first, kept root first. */
	for (uint32_t i = 0; i < la; i++)
		x[la - 1 - i] = fake_addr((unsigned char)a[i]);
	for (uint32_t i = 0; i < lb; i++)
		y[lb - 1 - i] = fake_addr((unsigned char)b[i]);
	return sl_path_distance(x, la, y, lb);
}

SL_TEST(nexthop, distance_table)
{
	static const struct {
		const char *a, *b;
		uint32_t d;
	} table[] = {{"1", "1", 0}, {"10", "20", 2}, {"210", "10", 1}, {"310", "420", 4},
		{"1", "2", SL_DISTANCE_INFINITE}, {"850", "30", 3}, {"50", "30", 2},
		{"510", "7310", 3}, {"10", "7310", 2}, {"310", "7310", 1}, {"AXYR", "BZYR", 4}};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		SL_EXPECT_MSG(distance(table[i].a, table[i].b) == table[i].d, "%s %s", table[i].a,
			table[i].b);
		SL_EXPECT_MSG(distance(table[i].b, table[i].a) == table[i].d, "%s %s", table[i].b,
			table[i].a);
	}
}

static void peer(struct fake *f, unsigned x, double cost)
{
	fake_peer(f, x, x);
	if (cost >= 0)
		fake_cost(f, x, cost);
}

SL_TEST(nexthop, cost_then_distance_then_address)
{
	struct fake *f = fake_create(0x10, NULL, NULL);

	fake_own(f, 3, 0x10, 0x11, 0);
	peer(f, 1, 1.0);
	fake_path_quiet(f, 1, 1, 0);
	f->r->peers[1]->addr = fake_addr(1);
	peer(f, 2, 1.0);
	peer(f, 4, 0.5);
	peer(f, 3, 0.5);
	/* Paths as the table has them, which no honest peer could announce. */
	fake_path_quiet(f, 2, 2, 0x50, 0);
	fake_path_quiet(f, 4, 1, 0);
	fake_path_quiet(f, 3, 1, 0);
	for (unsigned i = 1; i <= 4; i++)
		fake_filter(f, i, 1, 0x50);
	fake_coords(f, 2, 0x50, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 3);
	/* Without the cheap ones the nearer of 1 and 2. */
	sl_router_peer_down(f->r, 3, f->now_us);
	sl_router_peer_down(f->r, 4, f->now_us);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 2);
	sl_router_peer_down(f->r, 2, f->now_us);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 1);
	fake_destroy(f);
}

SL_TEST(nexthop, smaller_address_whatever_the_order)
{
	for (int order = 0; order < 2; order++) {
		struct fake *f = fake_create(0x10, NULL, NULL);

		fake_own(f, 2, 0x10, 0);
		/* Ids against the order of addresses. */
		fake_peer(f, order ? 1 : 2, 0x20);
		fake_peer(f, order ? 2 : 1, 0x30);
		for (uint32_t id = 1; id <= 2; id++) {
			fake_path_quiet(f, id, 1, 0);
			fake_filter(f, id, 1, 0x50);
		}
		fake_coords(f, 2, 0x50, 0);
		SL_EXPECT_EQ(fake_hop(f, 0x50), 0x20);
		fake_destroy(f);
	}
}

SL_TEST(nexthop, unfit_candidates)
{
	struct fake *f = fake_create(0x10, NULL, NULL);

	fake_own(f, 2, 0x10, 0);
	peer(f, 1, 0.1);
	peer(f, 2, 0.1);
	peer(f, 3, 0.1);
	peer(f, 0x60, 10.0);
	fake_path_quiet(f, 1, 1, 0);
	fake_path_quiet(f, 3, 1, 0);
	fake_path_quiet(f, 0x60, 1, 0);
	fake_filter(f, 1, 1, 0x50);
	fake_filter(f, 2, 1, 0x50); /* no ancestry */
	fake_filter(f, 3, 1, 0x51); /* filter miss */
	fake_filter(f, 0x60, 1, 0x50);
	fake_coords(f, 2, 0x50, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 1);
	/* 1 cannot send: 0x60, whatever it costs. */
	f->r->peers[1]->can_send = false;
	sl_publish_peer(f->r, f->r->peers[1]);
	f->r->body_dirty = true;
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x60);
	fake_destroy(f);
}

SL_TEST(nexthop, not_closer_is_no_candidate)
{
	struct fake *f = fake_create(0x10, NULL, NULL);
	const struct sl_coord_data *d;
	struct sl_node_addr dest = fake_addr(0x50);
	uint32_t id, serial;

	fake_own(f, 2, 0x10, 0);
	peer(f, 0x20, 1.0);
	peer(f, 0x21, 0.5);
	fake_path_quiet(f, 0x20, 2, 0x20, 0);
	fake_path_quiet(f, 0x21, 3, 0x21, 0x20, 0);
	fake_filter(f, 0x20, 1, 0x50);
	fake_filter(f, 0x21, 1, 0x50);
	fake_coords(f, 2, 0x50, 0);
	d = sl_coords_lookup(&f->r->coords, dest.bytes, sl_node_hash(dest.bytes, f->r->coords.key),
		1, &id, &serial);
	SL_ASSERT(d);
	SL_EXPECT_EQ(sl_fib_by_filter(f->r->ref.current, d, 2, &id), SL_FIB_NO_PEER);
	SL_EXPECT_EQ(fake_hop(f, 0x50), -3);
	fake_destroy(f);
}

SL_TEST(nexthop, filter_hit_below_the_root)
{
	struct fake *f = fake_create(0, NULL, NULL);

	peer(f, 0x21, -1);
	fake_path_quiet(f, 0x21, 2, 0x21, 0);
	fake_filter(f, 0x21, 1, 0x50);
	SL_EXPECT_EQ(fake_hop(f, 0x50), -2); /* a filter alone gives no route */
	fake_coords(f, 3, 0x50, 0x21, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x21);
	SL_EXPECT_EQ(fake_hop(f, 0), -1);
	SL_EXPECT_EQ(fake_hop(f, 0x21), 0x21); /* adjacent: no coordinates needed */
	fake_destroy(f);
}

SL_TEST(nexthop, falls_through_to_the_tree)
{
	struct fake *f = fake_create(0, NULL, NULL);

	peer(f, 0x21, -1);
	peer(f, 0x22, -1);
	fake_path_quiet(f, 0x21, 2, 0x21, 0); /* T: no hit */
	fake_path_quiet(f, 0x22, 2, 0x22, 0); /* F: hit, but not closer */
	fake_filter(f, 0x22, 1, 0x50);
	fake_coords(f, 3, 0x50, 0x21, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x21);
	fake_destroy(f);
}

SL_TEST(nexthop, filter_beats_tree_order)
{
	struct fake *f = fake_create(0, NULL, NULL);

	/* near [near, me], far [far, D, near, me], D [D, near, me]: hit on the larger address only.
	 */
	peer(f, 0x20, -1);
	peer(f, 0x30, -1);
	fake_path_quiet(f, 0x20, 2, 0x20, 0);
	fake_path_quiet(f, 0x30, 4, 0x30, 0x50, 0x20, 0);
	fake_filter(f, 0x30, 1, 0x50);
	fake_coords(f, 3, 0x50, 0x20, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x30);
	fake_destroy(f);
}

SL_TEST(nexthop, rung_ladder)
{
	struct fake *f = fake_create(0, NULL, NULL);

	/* me - r3 - r2 - r1 - D; all r direct peers. */
	peer(f, 0x23, -1);
	peer(f, 0x22, -1);
	peer(f, 0x21, -1);
	fake_path_quiet(f, 0x23, 2, 0x23, 0);
	fake_path_quiet(f, 0x22, 3, 0x22, 0x23, 0);
	fake_path_quiet(f, 0x21, 4, 0x21, 0x22, 0x23, 0);
	fake_coords(f, 5, 0x50, 0x21, 0x22, 0x23, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x21); /* the tree alone */
	fake_filter(f, 0x22, 1, 0x50);
	fake_filter(f, 0x23, 1, 0x50);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x22);
	fake_destroy(f);
}

SL_TEST(nexthop, greedy_table)
{
	static const struct {
		const char *self, *peer[2], *dest;
		int hop;
	} table[] = {
		{"\5\1", {"\2\5\1", "\3\2\5\1"}, "\3\2\5\1", 3},
		{"\5\1", {"\2\5\1", NULL}, "\3\2\5\1", 2},
		{"\5\2\1", {"\2\1", NULL}, "\1", 2},
		{"\5\1", {"\3\1", NULL}, "\3\1", 3},
		{"\5\1", {"\2\1", "\3\1"}, "\4\1", -3},
		{"\5\1", {"\2\1", NULL}, "\3\11", -3},
		{"\5\1", {"\10\5\1", NULL}, "\3\1", -3},
		{"\5\2\1", {"\2\1", "\3\2\1"}, "\7\3\2\1", 3},
	};

	for (unsigned t = 0; t < sizeof(table) / sizeof(table[0]); t++) {
		struct fake *f = fake_create(table[t].self[0], NULL, NULL);
		const char *s = table[t].self, *d = table[t].dest;

		fake_own(f, (unsigned)strlen(s), s[0], s[1], strlen(s) > 2 ? s[2] : 0);
		for (unsigned i = 0; i < 2 && table[t].peer[i]; i++) {
			const char *p = table[t].peer[i];
			size_t n = strlen(p);

			fake_peer(f, (uint32_t)p[0], (unsigned)p[0]);
			fake_path_quiet(f, (uint32_t)p[0], (unsigned)n, p[0], p[1],
				n > 2 ? p[2] : 0, n > 3 ? p[3] : 0);
		}
		fake_coords(f, (unsigned)strlen(d), d[0], d[1], strlen(d) > 2 ? d[2] : 0,
			strlen(d) > 3 ? d[3] : 0);
		SL_EXPECT_MSG(fake_hop(f, (unsigned)d[0]) == table[t].hop, "row %u: %d", t,
			fake_hop(f, (unsigned)d[0]));
		fake_destroy(f);
	}
}

SL_TEST(nexthop, other_hash_counts)
{
	struct fake *f = fake_create(0, NULL, NULL);
	struct sl_filter_hash h;
	struct sl_node_addr dest = fake_addr(0x50);
	uint8_t bits[SL_FILTER_BYTES] = {0}, msg[SL_FILTER_MSG_BYTES];

	fake_peer(f, 0x21, 0x21);
	fake_peer(f, 0x22, 0x22);
	fake_path_quiet(f, 0x21, 3, 0x21, 0x22, 0);
	fake_path_quiet(f, 0x22, 2, 0x22, 0);
	fake_coords(f, 4, 0x50, 0x21, 0x22, 0);
	sl_filter_hash(&h, dest.bytes);
	/* k = 2: two of the five bits are enough; by the tree it would be 0x21. */
	for (unsigned i = 0; i < 2; i++)
		bits[sl_filter_bit(&h, i) / 8] |= (uint8_t)(1u << sl_filter_bit(&h, i) % 8);
	sl_filter_announce_build(msg, 1, bits);
	msg[9] = 2;
	sl_router_message(f->r, 0x22, msg, sizeof(msg), f->now_us);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x22);
	/* k = 7: all five are not. */
	for (unsigned i = 0; i < 5; i++)
		bits[sl_filter_bit(&h, i) / 8] |= (uint8_t)(1u << sl_filter_bit(&h, i) % 8);
	sl_filter_announce_build(msg, 2, bits);
	msg[9] = 7;
	sl_router_message(f->r, 0x22, msg, sizeof(msg), f->now_us);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x21);
	for (unsigned i = 5; i < 7; i++)
		bits[sl_filter_bit(&h, i) / 8] |= (uint8_t)(1u << sl_filter_bit(&h, i) % 8);
	sl_filter_announce_build(msg, 3, bits);
	msg[9] = 7;
	sl_router_message(f->r, 0x22, msg, sizeof(msg), f->now_us);
	SL_EXPECT_EQ(fake_hop(f, 0x50), 0x22);
	fake_destroy(f);
}
