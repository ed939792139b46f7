/* SPDX-License-Identifier: BSD-3-Clause */
/* Back-off of our own lookups (routing facts, 11.6; node.lookup.backoff_*). */
#include "fake.h"

#include <errno.h>

#define S 1000000ull

struct asker {
	struct fake *f;
	uint8_t target[SL_XONLY_BYTES];
	struct sl_node_addr addr;
};

/* A root with one child, whose filter claims the target. */
static struct asker asker_create(uint64_t base_us, uint64_t max_us)
{
	struct sl_router_config c;
	struct asker a;
	uint8_t bits[SL_FILTER_BYTES] = {0}, msg[SL_FILTER_MSG_BYTES];
	struct sl_filter_hash h;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.publish_interval_us = 0;
	c.lookup_backoff_base_us = base_us;
	c.lookup_backoff_max_us = max_us;
	a.f = fake_create(0, &c, NULL);
	sl_test_rand_bytes(a.target, sizeof(a.target));
	sl_node_addr_from_xonly(&a.addr, a.target);
	fake_peer(a.f, 1, 0x21);
	fake_path(a.f, 1, 2, 0x21, 0);
	sl_filter_hash(&h, a.addr.bytes);
	sl_filter_insert(bits, &h);
	sl_filter_announce_build(msg, 1, bits);
	sl_router_message(a.f->r, 1, msg, sizeof(msg), a.f->now_us);
	return a;
}

static int ask(struct asker *a)
{
	return sl_router_lookup(a->f->r, a->target, a->f->now_us);
}

/* Asks, gets no answer in 15 s. */
static void fail_once(struct asker *a)
{
	SL_EXPECT_EQ(ask(a), 0);
	for (uint64_t end = a->f->now_us + 15 * S; a->f->now_us < end;) {
		a->f->now_us += S / 2;
		(void)sl_router_tick(a->f->r, a->f->now_us);
	}
	SL_EXPECT_EQ(a->f->r->quest_count, 0);
}

SL_TEST(backoff, off_unless_configured)
{
	struct asker a = asker_create(0, 0);

	for (unsigned i = 0; i < 3; i++)
		fail_once(&a);
	SL_EXPECT_EQ(a.f->r->counters[SL_ROUTE_LOOKUP_FAILED], 3);
	SL_EXPECT_EQ(a.f->r->counters[SL_ROUTE_LOOKUP_BACKOFF], 0);
	fake_destroy(a.f);
}

SL_TEST(backoff, doubles_to_its_limit)
{
	static const uint64_t wait_s[] = {30, 60, 120, 200, 200};
	struct asker a = asker_create(30 * S, 200 * S);

	for (unsigned i = 0; i < sizeof(wait_s) / sizeof(wait_s[0]); i++) {
		fail_once(&a);
		a.f->now_us += wait_s[i] * S - 1;
		SL_EXPECT_MSG(ask(&a) == -EAGAIN, "after failure %u", i + 1);
		SL_EXPECT_EQ(a.f->r->counters[SL_ROUTE_LOOKUP_BACKOFF], i + 1);
		a.f->now_us += 1;
	}
	fake_destroy(a.f);
}

/* Nobody claims it: that is a failure too. Others are not held back. */
SL_TEST(backoff, nobody_to_ask)
{
	struct asker a = asker_create(30 * S, 200 * S);
	uint8_t other[SL_XONLY_BYTES];

	fail_once(&a);
	sl_test_rand_bytes(other, sizeof(other));
	SL_EXPECT_EQ(sl_router_lookup(a.f->r, other, a.f->now_us), -EHOSTUNREACH);
	SL_EXPECT_EQ(sl_router_lookup(a.f->r, other, a.f->now_us), -EAGAIN);
	a.f->now_us += 30 * S;
	SL_EXPECT_EQ(sl_router_lookup(a.f->r, other, a.f->now_us), -EHOSTUNREACH);
	SL_EXPECT_EQ(ask(&a), 0);
	fake_destroy(a.f);
}

SL_TEST(backoff, ends_with_another_place_in_the_tree)
{
	struct asker a = asker_create(30 * S, 200 * S);

	fail_once(&a);
	SL_EXPECT_EQ(ask(&a), -EAGAIN);
	fake_own(a.f, 2, 0x10, 0);
	SL_EXPECT_EQ(ask(&a), 0);
	fake_destroy(a.f);
}

/* More targets than are remembered: the first ones may be asked again, nothing grows. */
SL_TEST(backoff, bounded)
{
	struct asker a = asker_create(300 * S, 300 * S);
	uint64_t refused = 0;

	for (unsigned i = 0; i < 5000; i++) {
		uint8_t target[SL_XONLY_BYTES];

		sl_test_rand_bytes(target, sizeof(target));
		SL_EXPECT_EQ(sl_router_lookup(a.f->r, target, a.f->now_us), -EHOSTUNREACH);
		a.f->now_us += 1;
		refused += sl_router_lookup(a.f->r, target, a.f->now_us) == -EAGAIN;
	}
	SL_EXPECT_EQ(refused, 5000);
	fake_destroy(a.f);
}
