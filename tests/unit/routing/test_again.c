/* SPDX-License-Identifier: BSD-3-Clause */
/* again.c: announces that a peer's reports show as perhaps lost. */
#include "fake.h"

#define S 1000000ull
#define MS 1000ull

/* A report of peer 1's, 50 ms later: it accounts for what was sent until 10 ms ago. */
static void report(struct fake *f, double missing)
{
	struct sl_router_metrics m = {
		.measured = true, .cost = 1.1, .etx = 1.0, .missing = missing};

	f->now_us += 50 * MS;
	m.covered_us = f->now_us - 10 * MS;
	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
}

static void wait_for(struct fake *f, uint64_t us)
{
	for (uint64_t end = f->now_us + us; f->now_us < end; f->now_us += 10 * MS)
		sl_router_tick(f->r, f->now_us);
}

/* A root with one peer that is its child, quiet: both have told each other all. */
static struct fake *quiet(bool again)
{
	struct sl_router_config c;
	struct fake *f;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.publish_interval_us = 0;
	c.announce_again = again;
	f = fake_create(0, &c, NULL);
	fake_peer(f, 1, 0x20);
	fake_path(f, 1, 2, 0x20, 0);
	fake_peer(f, 2, 0x30);
	fake_path(f, 2, 2, 0x30, 0);
	wait_for(f, 2 * S);
	report(f, 0);
	wait_for(f, S);
	return f;
}

static uint64_t sent(const struct fake *f)
{
	return f->by_type[SL_MSG_TREE_ANNOUNCE] + f->by_type[SL_MSG_FILTER_ANNOUNCE];
}

/* Both kinds get lost; the plain rules have nothing to say until the next minute. */
SL_TEST(again, what_may_be_lost_is_sent_again)
{
	for (int ours = 0; ours < 2; ours++) {
		struct fake *f = quiet(ours);
		uint64_t trees, filters;
		struct sl_tree_announce first, second;
		struct fake_sent a, b;

		sl_router_peer_renew(f->r, 1, f->now_us);
		wait_for(f, S);
		SL_EXPECT_EQ(fake_last(f, SL_MSG_TREE_ANNOUNCE)->peer_id, 1);
		SL_EXPECT_EQ(fake_last(f, SL_MSG_FILTER_ANNOUNCE)->peer_id, 1);
		trees = f->by_type[SL_MSG_TREE_ANNOUNCE];
		filters = f->by_type[SL_MSG_FILTER_ANNOUNCE];
		a = *fake_last(f, SL_MSG_TREE_ANNOUNCE);
		report(f, 0.5);
		wait_for(f, S);
		SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], trees + (uint64_t)ours);
		SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], filters + (uint64_t)ours);
		SL_EXPECT_EQ(f->r->counters[SL_ROUTE_TREE_AGAIN], (uint64_t)ours);
		SL_EXPECT_EQ(f->r->counters[SL_ROUTE_FILTER_AGAIN], (uint64_t)ours);
		/* The same declaration: whoever had it ignores it as stale. */
		b = *fake_last(f, SL_MSG_TREE_ANNOUNCE);
		SL_EXPECT_EQ(sl_tree_announce_parse(&first, a.msg, a.len), 0);
		SL_EXPECT_EQ(sl_tree_announce_parse(&second, b.msg, b.len), 0);
		SL_EXPECT_EQ(first.sequence, second.sequence);
		SL_EXPECT_EQ(a.len, b.len);
		SL_EXPECT_EQ(memcmp(a.msg, b.msg, a.len), 0);
		fake_destroy(f);
	}
}

/* A report that has everything ends it: what is lost later was something else. */
SL_TEST(again, what_arrived_is_not_sent_again)
{
	struct fake *f = quiet(true);
	uint64_t before;

	sl_router_peer_renew(f->r, 1, f->now_us);
	wait_for(f, S);
	before = sent(f);
	report(f, 0);
	report(f, 0.5);
	report(f, 1);
	wait_for(f, S);
	SL_EXPECT_EQ(sent(f), before);
	/* Nor does a report about the other peer, or one that is older than the announce, say anything. */
	sl_router_peer_renew(f->r, 2, f->now_us);
	wait_for(f, S);
	before = sent(f);
	report(f, 0.5);
	wait_for(f, S);
	SL_EXPECT_EQ(sent(f), before);
	sl_router_peer_renew(f->r, 1, f->now_us);
	before = sent(f);
	f->now_us -= 45 * MS;
	report(f, 0.5);
	SL_EXPECT_EQ(sent(f), before);
	fake_destroy(f);
}

/* The filter after it was received and told of first: the gap shows in the next report only. */
SL_TEST(again, overtaken_by_what_was_sent_after_it)
{
	struct fake *f = quiet(true);
	struct sl_router_metrics m = {.measured = true, .cost = 1.1, .etx = 1.0};
	uint64_t before;

	sl_router_peer_renew(f->r, 1, f->now_us);
	before = f->by_type[SL_MSG_TREE_ANNOUNCE];
	m.covered_us = f->now_us;
	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
	f->now_us += 600 * MS;
	m.covered_us = f->now_us - 10 * MS;
	m.missing = 0.5;
	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], before + 1);
	fake_destroy(f);
}

/* Copies of a tree announce when every report tells of so much missing. */
static uint64_t copies(double missing)
{
	struct fake *f = quiet(true);
	uint64_t n;

	sl_router_peer_renew(f->r, 1, f->now_us);
	wait_for(f, S);
	n = f->by_type[SL_MSG_TREE_ANNOUNCE];
	for (unsigned i = 0; i < 20; i++) {
		report(f, missing);
		wait_for(f, S);
	}
	n = f->by_type[SL_MSG_TREE_ANNOUNCE] - n;
	fake_destroy(f);
	return n;
}

SL_TEST(again, bounded)
{
	SL_EXPECT_EQ(copies(0), 0);
	/* A busy link with a little loss: it would be bad luck to lose three. */
	SL_EXPECT_EQ(copies(0.01), 2);
	SL_EXPECT_EQ(copies(0.2), 5);
	SL_EXPECT_EQ(copies(1), 5);
}

/* News is not a copy of what was lost before it: it has its own five. */
SL_TEST(again, news_begins_anew)
{
	struct fake *f = quiet(true);
	uint64_t before;

	for (unsigned i = 0; i < 10; i++) {
		report(f, 1);
		wait_for(f, S);
	}
	sl_router_peer_renew(f->r, 1, f->now_us);
	wait_for(f, S);
	before = f->by_type[SL_MSG_TREE_ANNOUNCE];
	report(f, 1);
	wait_for(f, S);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], before + 1);
	fake_destroy(f);
}

/* 600 peers at once: no turn is long, all are told within milliseconds, and nobody twice. */
SL_TEST(again, a_crowd_is_told_by_and_by)
{
	enum { CROWD = 600, A_MS = 64 };
	struct sl_router_config c;
	struct fake *f;
	uint64_t trees, filters, most = 0;
	unsigned took = 0;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.max_peers = CROWD + 8;
	c.publish_interval_us = 0;
	c.reeval_interval_us = 0;
	f = fake_create(0x10, &c, NULL);
	for (unsigned i = 0; i < CROWD; i++) {
		uint8_t xonly[SL_XONLY_BYTES];

		sl_test_rand_bytes(xonly, sizeof(xonly));
		SL_ASSERT(sl_router_peer_up(f->r, i, xonly, 1280, f->now_us) == 0);
	}
	fake_peer(f, CROWD, 0x20);
	wait_for(f, 3 * S);
	trees = f->by_type[SL_MSG_TREE_ANNOUNCE];
	filters = f->by_type[SL_MSG_FILTER_ANNOUNCE];
	SL_EXPECT_EQ(trees, CROWD + 1);
	/* Our own place changes: all are told, within the millisecond in which it does only so many. */
	fake_path(f, CROWD, 2, 0x20, 0x01);
	SL_EXPECT_EQ(fake_parent(f), 0x20);
	SL_EXPECT_LE(f->by_type[SL_MSG_TREE_ANNOUNCE], trees + A_MS);
	for (; f->by_type[SL_MSG_TREE_ANNOUNCE] < trees + CROWD + 1 && took < 100; took++) {
		const uint64_t now = sent(f);

		f->now_us += MS;
		(void)sl_router_tick(f->r, f->now_us);
		if (sent(f) - now > most)
			most = sent(f) - now;
	}
	SL_EXPECT_LE(most, A_MS);
	SL_EXPECT_GT(most, 0);
	SL_EXPECT_LE(took, 2 * CROWD / A_MS + 4); /* their filters go between them */
	wait_for(f, 2 * S);
	SL_EXPECT_EQ(f->by_type[SL_MSG_TREE_ANNOUNCE], trees + CROWD + 1);
	SL_EXPECT_EQ(f->by_type[SL_MSG_FILTER_ANNOUNCE], filters + CROWD + 1);
	for (unsigned i = 0; i <= CROWD; i++) {
		const struct sl_route_peer *p = f->r->peers[i];

		SL_EXPECT(p->announced_sequence == f->r->tree.sequence && !p->filter_wanted && !p->announce_pending);
	}
	fake_destroy(f);
}
