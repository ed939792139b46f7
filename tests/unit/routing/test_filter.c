/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters: data of routing facts 6.7, checks of 6.4, scenarios of 6.8, when they are sent (6.6), W1
 * and W3 of 17. */
#include "fake.h"
#include "../../../lib/crypto/sl_hash.h"

#include <stdlib.h>

#define S 1000000ull

static void expect_positions(unsigned x, const uint32_t want[5])
{
	struct sl_node_addr a = fake_addr(x);
	struct sl_filter_hash h;

	sl_filter_hash(&h, a.bytes);
	for (unsigned i = 0; i < 5; i++)
		SL_EXPECT_EQ(sl_filter_bit(&h, i), want[i]);
}

SL_TEST(filter, positions)
{
	static const struct {
		unsigned x;
		uint32_t bits[5];
	} table[] = {{0, {1847, 1486, 1125, 764, 403}}, {1, {6988, 2477, 6158, 1647, 5328}},
		{2, {5041, 1127, 5405, 1491, 5769}}, {7, {4214, 4770, 5326, 5882, 6438}},
		{42, {7598, 8066, 342, 810, 1278}}, {99, {7989, 4902, 1815, 6920, 3833}},
		{100, {6846, 6354, 5862, 5370, 4878}}, {200, {1617, 2365, 3113, 3861, 4609}},
		{255, {5787, 267, 2939, 5611, 91}}};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect_positions(table[i].x, table[i].bits);
}

/* Other inputs and widths: the same hash with the formula's other parameters. */
SL_TEST(filter, double_hashing)
{
	static const struct {
		const char *text;
		size_t len;
		uint32_t narrow[5], more[7];
	} table[] = {
		{"", 0, {227, 125, 23, 945, 843}, {4323, 3197, 2071, 945, 8011, 6885, 5759}},
		{"alpha", 5, {910, 59, 232, 405, 578}, {5006, 1083, 5352, 1429, 5698, 1775, 6044}},
		{"the quick brown fox", 19, {926, 84, 266, 448, 630},
			{2974, 84, 5386, 2496, 7798, 4908, 2018}},
		{"\0\1\2\3\377", 5, {511, 300, 89, 902, 691},
			{7679, 2348, 5209, 8070, 2739, 5600, 269}},
	};

	for (unsigned t = 0; t < sizeof(table) / sizeof(table[0]); t++) {
		uint8_t d[32];
		struct sl_filter_hash h;

		sl_sha256(d, table[t].text, table[t].len);
		h.h1 = sl_get64(d);
		h.h2 = sl_get64(d + 8);
		for (unsigned i = 0; i < 5; i++)
			SL_EXPECT_EQ((h.h1 + i * h.h2) % 1024, table[t].narrow[i]);
		for (unsigned i = 0; i < 7; i++)
			SL_EXPECT_EQ(sl_filter_bit(&h, i), table[t].more[i]);
	}
}

static void insert(uint8_t *bits, const uint8_t *addr)
{
	struct sl_filter_hash h;

	sl_filter_hash(&h, addr);
	sl_filter_insert(bits, &h);
}

static void expect_hash(const uint8_t *bits, const char *hex)
{
	uint8_t d[32], want[32];

	sl_sha256(d, bits, SL_FILTER_BYTES);
	sl_test_unhex(want, 32, hex);
	SL_EXPECT_MEM(d, want, 32);
}

SL_TEST(filter, whole_filters)
{
	uint8_t bits[SL_FILTER_BYTES] = {0}, addr[16];
	double n;

	sl_test_unhex(addr, 16, "69e08d65cc3a6b9c2c2ac4bd405e4b0e");
	insert(bits, addr);
	SL_EXPECT(bits[57] == 4 && bits[181] == 1 && bits[710] == 1 && bits[833] == 0x40 &&
		  bits[957] == 0x10);
	SL_EXPECT_EQ(sl_filter_count(bits), 5);
	expect_hash(bits, "a96f9383c8f8c2b827bcb811a66b9962a7c70629b943f1f8cf4c72d49a3b87cd");
	sl_test_unhex(addr, 16, "8e302c287eb48d6268122fda760b7727");
	insert(bits, addr);
	SL_EXPECT_EQ(sl_filter_count(bits), 10);
	expect_hash(bits, "607160af38531be10db9f7b97ab8e3131f8133ee32b1e9914f9659d69593d261");
	memset(bits, 0, sizeof(bits));
	for (unsigned i = 0; i < 100; i++) {
		struct sl_node_addr a = fake_addr(i);

		if (i == 50) {
			SL_EXPECT_EQ(sl_filter_count(bits), 248);
			n = sl_filter_estimate(248, 5, 0.2);
			SL_EXPECT(n > 50.365 && n < 50.375);
			expect_hash(bits,
				"cd80b43e5014a3f952f50a562b34183f320cd7ab46405a77611cbcd7c1ec7f1c");
		}
		insert(bits, a.bytes);
	}
	SL_EXPECT_EQ(sl_filter_count(bits), 486);
	n = sl_filter_estimate(486, 5, 0.2);
	SL_EXPECT(n > 100.195 && n < 100.205);
}

SL_TEST(filter, false_positive_rate)
{
	SL_EXPECT(sl_filter_fpr(5937, 5) <= 0.20 && sl_filter_fpr(5938, 5) > 0.20);
	SL_EXPECT(sl_filter_fpr(4480, 5) < 0.05 && sl_filter_fpr(4512, 5) > 0.05);
	SL_EXPECT(sl_filter_fpr(8192, 5) == 1.0);
	SL_EXPECT(sl_filter_estimate(8192, 5, 2.0) < 0);
	SL_EXPECT(sl_filter_estimate(5938, 5, 0.2) < 0);
}

/* --- in
 * ---------------------------------------------------------------------------------------------------------
 */

static void give(struct fake *f, uint32_t id, uint64_t sequence, const uint8_t *bits)
{
	uint8_t msg[SL_FILTER_MSG_BYTES];

	sl_filter_announce_build(msg, sequence, bits);
	sl_router_message(f->r, id, msg, sizeof(msg), f->now_us);
}

static void fill(uint8_t *bits, unsigned n)
{
	memset(bits, 0, SL_FILTER_BYTES);
	for (unsigned i = 0; i < n; i++)
		bits[i / 8] |= (uint8_t)(1u << i % 8);
}

SL_TEST(filter, receive_checks)
{
	struct fake *f = fake_create(5, NULL, NULL);
	uint8_t bits[SL_FILTER_BYTES], msg[SL_FILTER_MSG_BYTES + 1];
	uint64_t *c = f->r->counters;

	fake_peer(f, 1, 1);
	memset(bits, 0xff, sizeof(bits));
	give(f, 1, 1, bits);
	SL_EXPECT_EQ(c[SL_ROUTE_FILTER_TOO_FULL], 1);
	fill(bits, 5938);
	give(f, 1, 1, bits);
	SL_EXPECT_EQ(c[SL_ROUTE_FILTER_TOO_FULL], 2);
	fill(bits, 5937);
	give(f, 1, 0, bits); /* 0 is never new */
	SL_EXPECT_EQ(c[SL_ROUTE_FILTER_STALE], 1);
	SL_EXPECT(!f->r->peers[1]->has_filter);
	give(f, 1, 1, bits); /* the refused sequence may come again */
	SL_EXPECT_EQ(f->r->peers[1]->filter_count, 5937);
	fill(bits, 100);
	give(f, 1, 1, bits);
	SL_EXPECT_EQ(c[SL_ROUTE_FILTER_STALE], 2);
	SL_EXPECT_EQ(f->r->peers[1]->filter_count, 5937);
	/* Exact length; size class 1; some hashes. */
	sl_filter_announce_build(msg, 9, bits);
	for (size_t n = 1; n <= sizeof(msg); n += n < 20 || n > 1025 ? 1 : 50) {
		uint8_t *copy;

		if (n == SL_FILTER_MSG_BYTES)
			continue;
		copy = calloc(1, n);
		memcpy(copy, msg, n < SL_FILTER_MSG_BYTES ? n : SL_FILTER_MSG_BYTES);
		c[SL_ROUTE_FILTER_MALFORMED] = 0;
		sl_router_message(f->r, 1, copy, n, f->now_us);
		SL_EXPECT_EQ(c[SL_ROUTE_FILTER_MALFORMED], 1);
		free(copy);
	}
	c[SL_ROUTE_FILTER_MALFORMED] = 0;
	for (unsigned size_class = 0; size_class < 6; size_class++) {
		if (size_class == 1)
			continue;
		msg[10] = (uint8_t)size_class;
		sl_router_message(f->r, 1, msg, SL_FILTER_MSG_BYTES, f->now_us);
	}
	msg[10] = 1;
	msg[9] = 0;
	sl_router_message(f->r, 1, msg, SL_FILTER_MSG_BYTES, f->now_us);
	SL_EXPECT_EQ(c[SL_ROUTE_FILTER_MALFORMED], 6);
	msg[9] = 3;
	sl_router_message(f->r, 1, msg, SL_FILTER_MSG_BYTES, f->now_us);
	SL_EXPECT_EQ(f->r->peers[1]->filter_hashes, 3);
	SL_EXPECT_EQ(f->r->peers[1]->filter_count, 100);
	fake_destroy(f);
}

/* --- out
 * --------------------------------------------------------------------------------------------------------
 */

/* What peer id would be sent holds exactly these X(..): claims them, and has no bit of anything
 * else. */
static void expect_outgoing(struct fake *f, uint32_t id, unsigned n, const unsigned *members)
{
	uint8_t got[SL_FILTER_BYTES], want[SL_FILTER_BYTES] = {0};

	for (unsigned i = 0; i < n; i++) {
		struct sl_node_addr a = fake_addr(members[i]);

		insert(want, a.bytes);
	}
	sl_filter_outgoing(f->r, f->r->peers[id], got);
	SL_EXPECT_MEM(got, want, SL_FILTER_BYTES);
}

SL_TEST(filter, split_horizon)
{
	struct fake *f = fake_create(0, NULL, NULL);

	fake_peer(f, 10, 10);
	fake_peer(f, 20, 20);
	fake_peer(f, 30, 30);
	expect_outgoing(f, 10, 1, (unsigned[]){0});
	fake_path(f, 10, 2, 10, 0);
	fake_path(f, 20, 2, 20, 0);
	fake_filter(f, 10, 2, 100, 101);
	fake_filter(f, 20, 1, 200);
	fake_filter(f, 30, 1, 150); /* no tree peer: kept for hops, not passed on */
	expect_outgoing(f, 10, 2, (unsigned[]){0, 200});
	expect_outgoing(f, 20, 3, (unsigned[]){0, 100, 101});
	expect_outgoing(f, 30, 4, (unsigned[]){0, 100, 101, 200});
	/* What both have stays when one is taken out. */
	fake_filter(f, 20, 2, 200, 101);
	expect_outgoing(f, 10, 3, (unsigned[]){0, 200, 101});
	expect_outgoing(f, 20, 3, (unsigned[]){0, 100, 101});
	fake_destroy(f);
}

/* Outgoing filters against the definition, for random sets of peers, members and tree roles. */
SL_TEST(filter, outgoing_oracle)
{
	struct sl_router_config c;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.max_peers = 256;
	c.publish_interval_us = 0;
	for (unsigned round = 0; round < 20; round++) {
		struct fake *f = fake_create(0, &c, NULL);
		unsigned n = 1 + (unsigned)(sl_test_rand() % 40);

		for (unsigned i = 1; i <= n; i++) {
			uint8_t bits[SL_FILTER_BYTES] = {0};

			fake_peer(f, i, i);
			if (sl_test_rand() % 3)
				fake_path(f, i, 2, i, 0);
			for (unsigned k = 0; k < 20; k++) {
				struct sl_node_addr a = fake_addr((unsigned)(sl_test_rand() % 256));

				a.bytes[1] = (uint8_t)(sl_test_rand() % 2);
				insert(bits, a.bytes);
			}
			if (sl_test_rand() % 4)
				give(f, i, 1, bits);
		}
		for (unsigned q = 1; q <= n; q++) {
			uint8_t want[SL_FILTER_BYTES] = {0}, got[SL_FILTER_BYTES];
			struct sl_node_addr self = fake_addr(0);

			insert(want, self.bytes);
			for (unsigned i = 1; i <= n; i++) {
				struct sl_route_peer *p = f->r->peers[i];

				if (i == q || !p->has_filter || !sl_tree_is_tree_peer(f->r, p))
					continue;
				for (unsigned b = 0; b < SL_FILTER_BYTES; b++)
					want[b] |= p->filter[b];
			}
			sl_filter_outgoing(f->r, f->r->peers[q], got);
			SL_EXPECT_MEM(got, want, SL_FILTER_BYTES);
		}
		fake_destroy(f);
	}
}

static uint64_t filters_to(struct fake *f, uint32_t id)
{
	return f->r->peers[id]->filter_sequence_tx;
}

static void settle(struct fake *f)
{
	for (unsigned i = 0; i < 6; i++) {
		f->now_us += S / 2;
		(void)sl_router_tick(f->r, f->now_us);
	}
}

SL_TEST(filter, when_they_are_sent)
{
	struct sl_router_config c;
	struct fake *f;
	uint64_t to10, to20, to30, sent;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.filter_refresh_us = 0;
	c.reeval_interval_us = 0;
	f = fake_create(0, &c, NULL);
	fake_peer(f, 10, 10);
	fake_peer(f, 20, 20);
	fake_peer(f, 30, 30);
	settle(f); /* link up: everyone got one */
	SL_EXPECT(filters_to(f, 10) && filters_to(f, 20) && filters_to(f, 30));
	fake_path(f, 10, 2, 10, 0);
	settle(f); /* a child without a filter changes nothing */
	to10 = filters_to(f, 10);
	to20 = filters_to(f, 20);
	sent = f->by_type[SL_MSG_FILTER_ANNOUNCE];
	fake_filter(f, 10, 2, 100, 101);
	(void)sl_router_tick(f->r, f->now_us);
	SL_EXPECT_EQ(filters_to(f, 10), to10); /* not to where it came from */
	SL_EXPECT_GT(filters_to(f, 20), to20);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 2);
	/* Again within the debounce: held, then one with the newest. */
	to30 = filters_to(f, 30);
	fake_filter(f, 10, 3, 100, 101, 102);
	(void)sl_router_tick(f->r, f->now_us + 100000);
	fake_filter(f, 10, 4, 100, 101, 102, 103);
	(void)sl_router_tick(f->r, f->now_us + 499999);
	SL_EXPECT_EQ(filters_to(f, 30), to30);
	(void)sl_router_tick(f->r, f->now_us + 500000);
	SL_EXPECT_GT(filters_to(f, 30), to30);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 4);
	f->now_us += S;
	/* A peer goes: all the others, whatever it changes. */
	sent = f->by_type[SL_MSG_FILTER_ANNOUNCE];
	sl_router_peer_down(f->r, 30, f->now_us);
	settle(f);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 2);
	/* A new link under a living peer. */
	sent = f->by_type[SL_MSG_FILTER_ANNOUNCE];
	sl_router_peer_renew(f->r, 10, f->now_us);
	settle(f);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 1);
	/* A failed one stays owed. */
	f->send_result = -1;
	fake_filter(f, 10, 1, 99);
	settle(f);
	f->send_result = 0;
	settle(f);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 2);
	settle(f);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 2);
	fake_destroy(f);
}

SL_TEST(filter, parent_switch_sends_to_all_after_the_announce)
{
	struct fake *f = fake_create(5, NULL, NULL);
	uint64_t filters, trees;

	fake_peer(f, 10, 10);
	fake_peer(f, 1, 1);
	settle(f);
	filters = f->by_type[SL_MSG_FILTER_ANNOUNCE];
	trees = f->by_type[SL_MSG_TREE_ANNOUNCE];
	fake_path(f, 1, 2, 1, 0);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], trees + 2);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], filters);
	settle(f);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], filters + 2);
	fake_destroy(f);
}

SL_TEST(filter, refreshed_for_lossy_links)
{
	struct fake *f = fake_create(5, NULL, NULL);
	uint64_t sent, sequence;

	fake_peer(f, 1, 1);
	settle(f);
	sent = f->by_type[SL_MSG_FILTER_ANNOUNCE];
	sequence = filters_to(f, 1);
	f->now_us += 61 * S;
	(void)sl_router_tick(f->r, f->now_us);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], sent + 1);
	SL_EXPECT_GT(filters_to(f, 1), sequence);
	fake_destroy(f);
}

/*
 * W1. The filter of 10 comes before the announce that makes it our child. Plain: filters are
 * recomputed only when one arrives, so 20 would not hear of 100 before the next one. Ours: when the
 * set of tree peers changes.
 */
SL_TEST(filter, w1_child_after_its_filter)
{
	struct fake *f = fake_create(0, NULL, NULL);
	struct sl_filter_announce a;
	struct sl_filter_hash h;
	struct sl_node_addr x = fake_addr(100);
	uint64_t arrived;

	fake_peer(f, 20, 20);
	fake_peer(f, 10, 10);
	settle(f);
	fake_filter(f, 10, 1, 100);
	settle(f);
	sl_filter_hash(&h, x.bytes);
	SL_EXPECT(!sl_filter_claims(f->r->peers[20]->sent, &h, 5));
	arrived = f->r->counters[SL_ROUTE_FILTER_RX];
	fake_path(f, 10, 2, 10, 0);
	settle(f);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FILTER_RX],
		arrived); /* nothing that the plain rule would act on */
	SL_EXPECT(sl_filter_claims(f->r->peers[20]->sent, &h, 5));
	SL_ASSERT(fake_last(f, SL_MSG_FILTER_ANNOUNCE));
	SL_ASSERT(sl_filter_announce_parse(
			  &a, fake_last(f, SL_MSG_FILTER_ANNOUNCE)->msg, SL_FILTER_MSG_BYTES) == 0);
	SL_EXPECT(sl_filter_claims(a.bits, &h, 5));
	/* And back: it leaves us, its subtree goes from what we say. */
	fake_path(f, 10, 2, 10, 7);
	settle(f);
	SL_EXPECT(!sl_filter_claims(f->r->peers[20]->sent, &h, 5));
	fake_destroy(f);
}

/* W3. A child's filter just under the cap: merged with anything it passes it, and our parent would
 * refuse all of ours. */
SL_TEST(filter, w3_one_fat_child_does_not_hide_the_others)
{
	struct fake *f = fake_create(5, NULL, NULL);
	uint8_t fat[SL_FILTER_BYTES], plain[SL_FILTER_BYTES] = {0}, bits[SL_FILTER_BYTES];
	struct sl_filter_hash h;
	struct sl_node_addr x = fake_addr(100);

	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	fake_peer(f, 10, 10);
	fake_path(f, 10, 4, 10, 5, 1, 0);
	fake_peer(f, 11, 11);
	fake_path(f, 11, 4, 11, 5, 1, 0);
	fake_filter(f, 10, 2, 10, 100);
	fill(fat, 5937);
	give(f, 11, 1, fat);
	SL_EXPECT(f->r->peers[11]->has_filter);
	/* The plain merge for our parent is refused by whoever gets it. */
	for (unsigned i = 0; i < SL_FILTER_BYTES; i++)
		plain[i] = f->r->peers[10]->filter[i] | fat[i];
	SL_EXPECT(sl_filter_fpr(sl_filter_count(plain), 5) > 0.2);
	settle(f);
	memcpy(bits, f->r->peers[1]->sent, sizeof(bits));
	SL_EXPECT(sl_filter_fpr(sl_filter_count(bits), 5) <= 0.2);
	sl_filter_hash(&h, x.bytes);
	SL_EXPECT(sl_filter_claims(bits, &h, 5));
	SL_EXPECT(f->r->peers[11]->left_out && !f->r->peers[10]->left_out);
	SL_EXPECT_GT(f->r->counters[SL_ROUTE_FILTER_LEFT_OUT], 0);
	/* The fat child itself gets the others', and a full parent's filter still reaches a child
	 * whose own is small. */
	SL_EXPECT(sl_filter_claims(f->r->peers[11]->sent, &h, 5));
	give(f, 11, 2, plain); /* refused: too full */
	fake_filter(f, 11, 1, 11);
	settle(f);
	SL_EXPECT(!f->r->peers[11]->left_out || f->r->peers[11]->filter_sequence_rx == 1);
	fake_destroy(f);
}

SL_TEST(filter, w3_full_parent_still_reaches_its_children)
{
	struct fake *f = fake_create(5, NULL, NULL);
	uint8_t a[SL_FILTER_BYTES], b[SL_FILTER_BYTES];

	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	fake_peer(f, 10, 10);
	fake_path(f, 10, 4, 10, 5, 1, 0);
	fill(a, 5600);
	memset(b, 0, sizeof(b));
	for (unsigned i = SL_FILTER_BITS - 3000; i < SL_FILTER_BITS; i++)
		b[i / 8] |= (uint8_t)(1u << i % 8);
	give(f, 1, 1, a);
	give(f, 10, 1, b);
	settle(f);
	/* To the child: the parent's filter and us, though child + parent together would pass the
	 * cap. */
	SL_EXPECT_GE(sl_filter_count(f->r->peers[10]->sent), 5600);
	SL_EXPECT(sl_filter_fpr(sl_filter_count(f->r->peers[10]->sent), 5) <= 0.2);
	SL_EXPECT_GE(sl_filter_count(f->r->peers[1]->sent), 3000);
	fake_destroy(f);
}

SL_TEST(filter, mesh_size)
{
	struct fake *f = fake_create(0, NULL, NULL);
	struct sl_tree_info info;

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_filter(f, 1, 5, 1, 2, 3, 4, 5);
	fake_filter(f, 2, 5, 4, 5, 6, 7, 8);
	sl_router_tree(f->r, &info);
	SL_EXPECT(info.mesh_size > 8.5 && info.mesh_size < 9.5);
	fake_destroy(f);
}

/* The matrix says of every peer what its filter says, through changes, departures and newcomers. */
SL_TEST(filter, matrix_oracle)
{
	struct sl_router_config c;
	struct fake *f;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.max_peers = 150;
	f = fake_create(0, &c, NULL);
	for (unsigned round = 0; round < 300; round++) {
		uint32_t id = (uint32_t)(sl_test_rand() % 150);
		uint8_t bits[SL_FILTER_BYTES] = {0};

		f->now_us += 10000;
		if (!f->r->peers[id])
			fake_peer(f, id, id + 1);
		else if (sl_test_rand() % 4 == 0)
			sl_router_peer_down(f->r, id, f->now_us);
		for (unsigned k = 0; f->r->peers[id] && k < 200; k++) {
			uint8_t a[16];

			sl_test_rand_bytes(a, 16);
			insert(bits, a);
		}
		if (f->r->peers[id])
			give(f, id, round + 1, bits);
		if (round % 10)
			continue;
		f->now_us += 10000;
		(void)sl_router_tick(f->r, f->now_us);
		for (id = 0; id < 150; id++)
			for (uint32_t bit = 0; bit < SL_FILTER_BITS; bit++) {
				bool in =
					sl_filter_row(&f->r->matrix, bit)[id / 64] >> (id % 64) & 1;
				struct sl_route_peer *p = f->r->peers[id];
				bool want =
					p && p->has_filter && (p->filter[bit / 8] >> bit % 8 & 1);

				if (in != want) {
					SL_EXPECT_MSG(
						false, "round %u peer %u bit %u", round, id, bit);
					goto out;
				}
			}
	}
out:
	fake_destroy(f);
}
