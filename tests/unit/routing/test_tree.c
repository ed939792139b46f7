/* SPDX-License-Identifier: BSD-3-Clause */
/* Parent selection: the scenarios of routing facts 5.7, timers of 5.6, self-root of section 4, W2
 * and W5 of 17. */
#include "fake.h"

#include <stdlib.h>

#define S 1000000ull

static struct fake *node(unsigned self, double hysteresis)
{
	struct sl_router_config c;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.publish_interval_us = 0;
	c.parent_hysteresis = hysteresis;
	return fake_create((int)self, &c, NULL);
}

/* Own address 5; peers by address = id. */
SL_TEST(parent, smaller_root)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 3, 3);
	fake_peer(f, 7, 7);
	fake_path(f, 7, 2, 7, 2);
	SL_EXPECT_EQ(fake_parent(f), 7);
	fake_path(f, 3, 2, 3, 1);
	SL_EXPECT_EQ(fake_parent(f), 3);
	SL_EXPECT_EQ(f->r->tree.root.bytes[0], 1);
	fake_destroy(f);
}

SL_TEST(parent, less_depth)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_path_quiet(f, 1, 2, 1, 0);
	fake_path(f, 2, 4, 2, 3, 4, 0);
	SL_EXPECT_EQ(fake_parent(f), 1);
	fake_destroy(f);
}

SL_TEST(parent, smallest_stays_root)
{
	struct fake *f = node(0, 0.2);

	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	SL_EXPECT_EQ(fake_parent(f), 0);
	SL_EXPECT(sl_tree_is_root(&f->r->tree));
	SL_EXPECT_EQ(f->r->tree.sequence, 1);
	fake_destroy(f);
}

SL_TEST(parent, loops_are_no_candidates)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 1, 1);
	fake_path(f, 1, 3, 1, 5, 0);
	SL_EXPECT_EQ(fake_parent(f), 5);
	SL_EXPECT(!sl_tree_evaluate(f->r).target);
	fake_peer(f, 2, 2);
	fake_path(f, 2, 4, 2, 3, 4, 0);
	SL_EXPECT_EQ(fake_parent(f), 2);
	fake_destroy(f);
}

SL_TEST(parent, no_hysteresis)
{
	struct fake *f = node(5, 0.0);

	fake_peer(f, 2, 2);
	fake_path(f, 2, 4, 2, 6, 7, 0);
	SL_EXPECT_EQ(fake_parent(f), 2);
	f->now_us += 40 * S; /* past the hold-down */
	fake_peer(f, 3, 3);
	fake_path(f, 3, 2, 3, 0);
	SL_EXPECT_EQ(fake_parent(f), 3);
	fake_destroy(f);
}

SL_TEST(parent, cost_and_ties)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_cost(f, 1, 6.0);
	fake_cost(f, 2, 1.01);
	fake_path_quiet(f, 1, 2, 1, 0);
	fake_path_quiet(f, 2, 3, 2, 3, 0);
	SL_EXPECT_EQ(sl_tree_evaluate(f->r).target->id, 2);
	fake_cost(f, 1, 1.0);
	fake_cost(f, 2, 1.0);
	fake_path_quiet(f, 2, 2, 2, 0);
	SL_EXPECT_EQ(sl_tree_evaluate(f->r).target->id, 1);
	fake_destroy(f);
}

/* Peer 1 is the parent with cost1 at depth 1, peer 2 has cost2 at depth2: is there a reason to
 * switch? */
static bool would_switch(double cost1, double cost2, unsigned depth2)
{
	struct fake *f = node(5, 0.2);
	struct sl_tree_choice c;
	bool result;

	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	fake_peer(f, 2, 2);
	if (depth2 == 1)
		fake_path_quiet(f, 2, 2, 2, 0);
	else
		fake_path_quiet(f, 2, 3, 2, 3, 0);
	fake_cost(f, 1, cost1);
	fake_cost(f, 2, cost2);
	SL_EXPECT_EQ(fake_parent(f), 1);
	c = sl_tree_evaluate(f->r);
	result = c.target != NULL;
	SL_EXPECT(!c.mandatory);
	fake_destroy(f);
	return result;
}

SL_TEST(parent, hysteresis_table)
{
	SL_EXPECT(!would_switch(2.5, 2.2, 1));
	SL_EXPECT(would_switch(6.0, 1.01, 2));
	SL_EXPECT(!would_switch(2.0, 1.5, 1));
	SL_EXPECT(would_switch(6.0, 1.08, 1));
}

SL_TEST(parent, unmeasured_parent_loses_to_a_measured_candidate)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	fake_peer(f, 2, 2);
	fake_path_quiet(f, 2, 2, 2, 0);
	fake_cost(f, 2, 50.0);
	SL_EXPECT_EQ(sl_tree_evaluate(f->r).target->id, 2);
	fake_destroy(f);
}

SL_TEST(parent, the_only_one_stays_at_any_cost)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	fake_cost(f, 1, 50.0);
	SL_EXPECT(!sl_tree_evaluate(f->r).target);
	fake_destroy(f);
}

SL_TEST(parent, loss_is_a_forced_switch)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_path(f, 1, 2, 1, 0);
	fake_path(f, 2, 2, 2, 0);
	SL_EXPECT_EQ(fake_parent(f), 1);
	f->now_us += S; /* hold-down runs */
	sl_router_peer_down(f->r, 1, f->now_us);
	SL_EXPECT_EQ(fake_parent(f), 2);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_PARENT_SWITCH], 2);
	fake_destroy(f);
}

SL_TEST(parent, larger_root_is_a_demotion)
{
	struct fake *f = node(5, 0.2);
	struct sl_node_addr seven = fake_addr(7);
	uint64_t sequence = f->r->tree.sequence;

	fake_peer(f, 7, 7);
	fake_path(f, 7, 1, 7);
	SL_EXPECT_EQ(fake_parent(f), 5);
	sl_tree_declare(f->r, &seven);
	SL_EXPECT_EQ(fake_parent(f), 5);
	SL_EXPECT_EQ(f->r->tree.len, 1);
	SL_EXPECT_EQ(f->r->tree.sequence, sequence + 1);
	fake_destroy(f);
}

/* Section 4's fixed example: own address 1, parent 0, peers 2 and 3 root themselves; 0 goes. */
SL_TEST(parent, self_root_rather_than_a_larger_root)
{
	struct fake *f = node(1, 0.2);
	struct sl_tree_announce a;
	struct fake_sent *s;

	fake_peer(f, 9, 0);
	fake_peer(f, 2, 2);
	fake_peer(f, 3, 3);
	fake_path(f, 2, 1, 2);
	fake_path(f, 3, 1, 3);
	fake_path(f, 9, 1, 0);
	SL_EXPECT_EQ(fake_parent(f), 0);
	f->now_us += 2 * S;
	(void)sl_router_tick(f->r, f->now_us);
	f->now_us += 2 * S;
	f->by_type[SL_MSG_TREE_ANNOUNCE] = 0;
	sl_router_peer_down(f->r, 9, f->now_us);
	SL_EXPECT_EQ(fake_parent(f), 1);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], 2); /* at once, to both */
	s = fake_last(f, SL_MSG_TREE_ANNOUNCE);
	SL_ASSERT(s && sl_tree_announce_parse(&a, s->msg, s->len) == 0);
	SL_EXPECT_EQ(a.entries, 1);
	SL_EXPECT_EQ(a.entry[0], 1);
	fake_destroy(f);
}

SL_TEST(parent, promotion_when_nobody_is_smaller_any_more)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 7, 7);
	fake_path(f, 7, 2, 7, 1);
	SL_EXPECT_EQ(fake_parent(f), 7);
	fake_path(f, 7, 1, 7); /* its root is gone */
	SL_EXPECT_EQ(fake_parent(f), 5);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_SELF_ROOT], 1);
	fake_destroy(f);
}

SL_TEST(parent, loop_drop_and_return)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 7, 7);
	fake_path(f, 7, 2, 7, 1);
	fake_path(f, 7, 4, 7, 8, 5, 1);
	SL_EXPECT_EQ(fake_parent(f), 5);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_LOOP_DROP], 1);
	fake_path(f, 7, 2, 7, 1);
	SL_EXPECT_EQ(fake_parent(f), 7);
	fake_destroy(f);
}

SL_TEST(parent, same_parent_update)
{
	struct fake *f = node(5, 0.2);
	uint64_t sequence, sent;

	fake_peer(f, 7, 7);
	fake_peer(f, 8, 8);
	fake_path(f, 7, 3, 7, 3, 1);
	sequence = f->r->tree.sequence;
	f->now_us += 3 * S;
	(void)sl_router_tick(f->r, f->now_us);
	f->now_us += 3 * S;
	sent = f->by_type[SL_MSG_TREE_ANNOUNCE];
	fake_path(f, 7, 3, 7, 3, 1); /* same addresses: own sequence moves, nobody is told */
	SL_EXPECT_EQ(f->r->tree.sequence, sequence + 1);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent);
	fake_path(f, 7, 3, 7, 4, 1); /* another way up */
	SL_EXPECT_EQ(f->r->tree.sequence, sequence + 2);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent + 2);
	SL_EXPECT_EQ(f->r->tree.entries[2 * SL_TREE_ENTRY_BYTES], 4);
	/* Entries above us are the parent's bytes, sequence and time included. */
	SL_EXPECT_EQ(f->r->tree.entries[2 * SL_TREE_ENTRY_BYTES + 16], 9);
	fake_destroy(f);
}

SL_TEST(parent, echo_to_a_worse_rooted_peer)
{
	struct fake *f = node(5, 0.2);
	uint64_t sent;

	fake_peer(f, 7, 7);
	fake_peer(f, 3, 3);
	f->now_us += S;
	sent = f->by_type[SL_MSG_TREE_ANNOUNCE];
	fake_path(f, 7, 1, 7);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent + 1);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_TREE_ANNOUNCE)->peer_id, 7);
	fake_destroy(f);
}

SL_TEST(parent, announces_are_spaced_and_coalesced)
{
	struct fake *f = node(5, 0.2);
	uint64_t sent, next;
	struct sl_tree_announce a;

	fake_peer(f, 7, 7);
	sent = f->by_type[SL_MSG_TREE_ANNOUNCE]; /* the one at link up */
	for (unsigned i = 0; i < 5; i++)
		fake_path(f, 7, 3, 7, 2 - i % 2,
			1 - i % 2); /* root 1 and 0 in turns: each a change */
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent);
	next = sl_router_tick(f->r, f->now_us);
	SL_EXPECT_LE(next, f->now_us + S / 2);
	f->now_us += S / 2;
	(void)sl_router_tick(f->r, f->now_us);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent + 1);
	SL_ASSERT(sl_tree_announce_parse(&a, fake_last(f, SL_MSG_TREE_ANNOUNCE)->msg,
			  fake_last(f, SL_MSG_TREE_ANNOUNCE)->len) == 0);
	SL_EXPECT_EQ(a.sequence, f->r->tree.sequence); /* the newest */
	/* Refused by the link: again after the interval. */
	f->send_result = -1;
	f->now_us += S;
	fake_path(f, 7, 1, 7);
	f->send_result = 0;
	f->now_us += S / 2;
	(void)sl_router_tick(f->r, f->now_us);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent + 2);
	fake_destroy(f);
}

/* One change of parent at time t seconds, between peers 1 and 2 (hysteresis 0, hold-down 0). */
static void flap(struct fake *f, double t)
{
	unsigned other = fake_parent(f) == 1 ? 2 : 1;

	f->now_us = (uint64_t)((t + 100) * 1e6);
	fake_cost(f, other, 1.0);
	fake_cost(f, 3 - other, 10.0);
	fake_path(f, other, 2, other, 0);
}

SL_TEST(parent, flap_timeline)
{
	struct sl_router_config c;
	struct fake *f;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.hold_down_us = 0;
	c.parent_hysteresis = 0;
	c.flap_threshold = 3;
	c.flap_window_us = 60 * S;
	c.flap_dampening_us = 10 * S;
	f = fake_create(5, &c, NULL);
	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	f->now_us = 101 * S;
	fake_path_quiet(f, 2, 2, 2, 0);
	fake_cost(f, 1, 1.0);
	fake_cost(f, 2, 10.0);
	fake_path(f, 1, 2, 1, 0); /* root -> 1 at 1 s: counts */
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FLAP_DAMPENED], 0);
	flap(f, 2);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FLAP_DAMPENED], 0);
	flap(f, 3);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FLAP_DAMPENED], 1);
	SL_EXPECT_EQ(fake_parent(f), 1);
	flap(f, 4); /* held back */
	SL_EXPECT_EQ(fake_parent(f), 1);
	flap(f, 14);
	SL_EXPECT_EQ(fake_parent(f), 2);
	flap(f, 15);
	SL_EXPECT_EQ(fake_parent(f), 1);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FLAP_DAMPENED], 1);
	flap(f, 16);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FLAP_DAMPENED], 2);
	fake_destroy(f);
}

SL_TEST(parent, hold_down_holds_what_is_not_forced)
{
	struct fake *f = node(5, 0.0);

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_path(f, 1, 3, 1, 3, 0);
	f->now_us += 29 * S;
	fake_path(f, 2, 2, 2, 0);
	SL_EXPECT_EQ(fake_parent(f), 1);
	f->now_us += 2 * S;
	fake_path(f, 2, 2, 2, 0);
	SL_EXPECT_EQ(fake_parent(f), 2);
	fake_destroy(f);
}

SL_TEST(parent, periodic_pass_and_rebroadcast)
{
	struct fake *f = node(5, 0.2);
	uint64_t sent, sequence;

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_path(f, 1, 2, 1, 0);
	for (unsigned i = 0; i < 8; i++) { /* what is pending leaves, the first pass is over */
		f->now_us += S;
		(void)sl_router_tick(f->r, f->now_us);
	}
	sent = f->by_type[SL_MSG_TREE_ANNOUNCE];
	sequence = f->r->tree.sequence;
	f->now_us += 60 * S;
	(void)sl_router_tick(f->r, f->now_us);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], sent + 2);
	SL_EXPECT_EQ(f->r->tree.sequence, sequence); /* verbatim */
	fake_cost(f, 1, 100.0);
	fake_cost(f, 2, 1.0);
	fake_path_quiet(f, 2, 2, 2, 0);
	f->now_us += 60 * S;
	(void)sl_router_tick(f->r, f->now_us);
	SL_EXPECT_EQ(fake_parent(f), 2);
	fake_destroy(f);
}

SL_TEST(parent, first_measurement_evaluates)
{
	struct fake *f = node(5, 0.2);
	struct sl_router_metrics m = {.measured = true, .cost = 1.2, .etx = 1.0};

	fake_peer(f, 1, 1);
	fake_peer(f, 2, 2);
	fake_path(f, 1, 2, 1, 0);
	fake_path(f, 2, 2, 2, 0);
	f->now_us += 40 * S;
	sl_router_peer_metrics(f->r, 2, &m, f->now_us);
	SL_EXPECT_EQ(fake_parent(f), 2); /* 1 is not measured: infinite */
	fake_destroy(f);
}

/*
 * W2. A peer shows a path through us that ends in a tiny address. By the plain rule its root is the
 * smallest in sight and nobody leads there: no parent at all. Ours: the peer that really leads
 * somewhere.
 */
SL_TEST(parent, w2_a_loop_does_not_name_the_root)
{
	struct fake *f = node(5, 0.2);
	struct sl_node_addr plain;
	bool found = false;

	fake_peer(f, 7, 7);
	fake_path(f, 7, 3, 7, 5, 0);
	fake_peer(f, 3, 3);
	fake_path(f, 3, 2, 3, 2);
	/* The plain rule: smallest root over all, and who of the loop-free leads there. */
	plain = f->r->peers[7]->path[0];
	for (unsigned id = 3; id <= 7; id += 4)
		found |= !f->r->peers[id]->has_self &&
			 sl_node_same(&f->r->peers[id]->path[0], &plain);
	SL_EXPECT(!found);
	SL_EXPECT_EQ(fake_parent(f), 3);
	SL_EXPECT_EQ(f->r->tree.root.bytes[0], 2);
	/* And with a good parent the loop changes nothing. */
	fake_path(f, 7, 3, 7, 5, 0);
	SL_EXPECT_EQ(fake_parent(f), 3);
	fake_destroy(f);
}

/* W5. One peer is measured, but only an unmeasured one leads to the smaller root. Plain: excluded,
 * we stay apart. */
SL_TEST(parent, w5_unmeasured_is_better_than_none)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 7, 7);
	fake_cost(f, 7, 1.1);
	fake_path(f, 7, 1, 7);
	fake_peer(f, 1, 1);
	fake_path(f, 1, 2, 1, 0);
	SL_EXPECT_EQ(fake_parent(f), 1);
	/* It does not flicker: another unmeasured one of the same depth is no reason to change. */
	fake_peer(f, 2, 2);
	fake_path(f, 2, 2, 2, 0);
	SL_EXPECT(!sl_tree_evaluate(f->r).target);
	fake_destroy(f);
}

SL_TEST(parent, sequences_start_above_an_earlier_life)
{
	struct fake *f = fake_create(-1, NULL, NULL);

	SL_EXPECT_GT(f->r->tree.sequence, 1700000000ull << 16);
	SL_EXPECT_LT(f->r->tree.sequence, 1ull << 53);
	/* A life one second later starts above 65,000 announces of this one. */
	SL_EXPECT_GT((1700000001ull << 16) + 1, f->r->tree.sequence + 65000);
	fake_destroy(f);
}

SL_TEST(parent, coordinates_dropped_with_the_tree)
{
	struct fake *f = node(5, 0.2);

	fake_peer(f, 7, 7);
	fake_path(f, 7, 2, 7, 1);
	fake_coords(f, 3, 0x50, 5, 1); /* runs through us */
	fake_coords(f, 2, 0x51, 1);
	fake_coords(f, 2, 0x52, 9); /* of another tree */
	fake_path(f, 7, 3, 7, 6, 1);
	SL_EXPECT_EQ(fake_hop(f, 0x50), -2);
	SL_EXPECT_EQ(f->r->coords.count, 2);
	fake_path(f, 7, 1, 7); /* we are root: other roots go */
	SL_EXPECT_EQ(f->r->coords.count, 0);
	fake_destroy(f);
}

/* A peer at the end of a path of `len` entries below root 0; every entry another address. */
static void deep_path(struct fake *f, uint32_t id, unsigned len)
{
	struct sl_route_peer *p = f->r->peers[id];
	uint8_t entries[64 * SL_TREE_ENTRY_BYTES] = {0};
	struct sl_tree_announce a = {
		.sequence = p->tree_sequence + 1, .entries = (uint16_t)len, .entry = entries};

	memcpy(entries, &p->addr, 16);
	for (unsigned i = 1; i + 1 < len; i++) {
		entries[i * SL_TREE_ENTRY_BYTES] = 0x80;
		entries[i * SL_TREE_ENTRY_BYTES + 1] = (uint8_t)id;
		entries[i * SL_TREE_ENTRY_BYTES + 2] = (uint8_t)(i + 1);
	}
	memcpy(&a.parent, entries + SL_TREE_ENTRY_BYTES, 16);
	f->r->now_us = f->now_us;
	sl_tree_accept(f->r, p, &a);
	sl_router_settle(f->r);
}

static void note_too_deep(void *arg, const struct sl_router_peer_info *info)
{
	*(unsigned *)arg |= info->too_deep ? 1u << info->peer_id : 0;
}

static unsigned too_deep(struct fake *f)
{
	unsigned peers = 0;

	sl_router_for_each_peer(f->r, note_too_deep, &peers);
	return peers;
}

/* 35 entries fit an announce in 1,280 bytes (2.6): below a path of 35 ours would not. */
SL_TEST(depth, no_parent_whose_path_leaves_no_room)
{
	struct fake *f = fake_create(5, NULL, NULL);

	fake_peer(f, 1, 0x21);
	deep_path(f, 1, 35);
	SL_EXPECT_EQ(fake_parent(f), 5);
	SL_EXPECT_EQ(too_deep(f), 1u << 1);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_TREE_TOO_DEEP], 1);
	deep_path(f, 1, 34);
	SL_EXPECT_EQ(fake_parent(f), 0x21);
	SL_EXPECT_EQ(f->r->tree.len, 35);
	SL_EXPECT_EQ(too_deep(f), 0);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_TREE_TOO_DEEP], 1);
	fake_destroy(f);
}

/* The parent's own path grows past it: left at once, for another that fits if there is one. */
SL_TEST(depth, parent_that_grows_is_left)
{
	for (int other = 0; other < 2; other++) {
		struct sl_router_config c;
		struct fake *f;

		sl_router_config_default(&c);
		c.root_doubt_us = 0; /* W7 would wait: paths that grow are how a dead root looks */
		c.publish_interval_us = 0;
		f = fake_create(5, &c, NULL);
		fake_peer(f, 1, 0x21);
		deep_path(f, 1, 30);
		SL_EXPECT_EQ(fake_parent(f), 0x21);
		if (other) {
			fake_peer(f, 2, 0x22);
			deep_path(f, 2, 33);
			SL_EXPECT_EQ(fake_parent(f), 0x21);
		}
		deep_path(f, 1, 35);
		SL_EXPECT_EQ(fake_parent(f), other ? 0x22 : 5);
		SL_EXPECT_EQ(f->r->counters[SL_ROUTE_TREE_TOO_DEEP], 1);
		SL_EXPECT_EQ(f->r->counters[SL_ROUTE_LOOP_DROP], 1);
		SL_EXPECT_EQ(too_deep(f), 1u << 1);
		fake_destroy(f);
	}
}

/* A narrower link comes: what fitted all links does not fit this one. */
SL_TEST(depth, a_narrower_link_lowers_the_limit)
{
	struct sl_router_config c;
	struct fake *f;

	sl_router_config_default(&c);
	c.publish_interval_us = 0;
	f = fake_create(5, &c, NULL);
	fake_peer(f, 1, 0x21);
	sl_router_peer_mtu(f->r, 1, 1500, f->now_us);
	deep_path(f, 1, 38);
	SL_EXPECT_EQ(fake_parent(f), 0x21);
	SL_EXPECT_EQ(too_deep(f), 0);
	fake_peer(f, 2, 0x22); /* 1,280 */
	SL_EXPECT_EQ(fake_parent(f), 5);
	SL_EXPECT_EQ(too_deep(f), 1u << 1);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_TREE_TOO_DEEP], 1);
	/* And back when it widens. */
	sl_router_peer_mtu(f->r, 2, 1500, f->now_us);
	SL_EXPECT_EQ(too_deep(f), 0);
	deep_path(f, 1, 38);
	SL_EXPECT_EQ(fake_parent(f), 0x21);
	/* Less than IPv6's least MTU is not waited for. */
	sl_router_peer_mtu(f->r, 2, 576, f->now_us);
	deep_path(f, 1, 34);
	SL_EXPECT_EQ(fake_parent(f), 0x21);
	fake_destroy(f);
}
