/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer at 10,000 messages a second: what control spends, what it comes to hold, which
 * counter names the reason, and whether an honest peer beside it is served as before. The time
 * is printed, not judged (docs/routing.md keeps it); the memory is judged.
 */
#include "fake.h"
#include "../../../lib/crypto/sl_hash.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#define HOSTILE 1u
#define HONEST 2u
#define MEMORY_MOST (2u << 20)

struct rig {
	struct fake *f;
	struct sl_identity *hostile, *honest;
	uint64_t hostile_sequence, honest_sequence;
	uint64_t cpu_ns, messages;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* count entries: the sender, then path, under a valid signature. */
static size_t announce(uint8_t *msg, const struct sl_identity *id, uint64_t sequence,
	const struct sl_node_addr *path, uint16_t count)
{
	uint8_t entries[40 * SL_TREE_ENTRY_BYTES] = {0}, preimage[SL_TREE_PREIMAGE_BYTES],
			     digest[32], signature[SL_SIGNATURE_BYTES];
	struct sl_tree_announce a = {.sequence = sequence,
		.timestamp_s = 1700000000,
		.entries = count,
		.entry = entries,
		.signature = signature};

	memcpy(entries, sl_identity_addr(id), 16);
	for (unsigned i = 1; i < count; i++)
		memcpy(entries + i * SL_TREE_ENTRY_BYTES, &path[i - 1], 16);
	memcpy(&a.parent, count > 1 ? entries + SL_TREE_ENTRY_BYTES : entries, 16);
	sl_tree_preimage(preimage, sl_identity_addr(id), &a.parent, sequence, a.timestamp_s);
	sl_sha256(digest, preimage, sizeof(preimage));
	sl_sign(signature, digest, id);
	return sl_tree_announce_build(msg, 2048, &a);
}

static void rig_init(struct rig *rig)
{
	struct sl_node_addr root = fake_addr(0);
	struct sl_router_config c;
	uint8_t msg[2048];
	size_t len;

	memset(rig, 0, sizeof(*rig));
	sl_router_config_default(&c);
	rig->f = fake_create(-1, &c, NULL);
	rig->hostile = sl_identity_generate();
	rig->honest = sl_identity_generate();
	SL_EXPECT_EQ(sl_router_peer_up(rig->f->r, HOSTILE, sl_identity_xonly(rig->hostile), 1280,
			     rig->f->now_us),
		0);
	SL_EXPECT_EQ(sl_router_peer_up(rig->f->r, HONEST, sl_identity_xonly(rig->honest), 1280,
			     rig->f->now_us),
		0);
	len = announce(msg, rig->honest, ++rig->honest_sequence, &root, 2);
	sl_router_message(rig->f->r, HONEST, msg, len, rig->f->now_us);
	SL_EXPECT(sl_node_addr_equal(&rig->f->r->tree.root, &root));
	rig->f->now_us += 3000000;
	(void)sl_router_tick(rig->f->r, rig->f->now_us);
}

static void rig_fini(struct rig *rig)
{
	sl_identity_destroy(rig->hostile);
	sl_identity_destroy(rig->honest);
	fake_destroy(rig->f);
}

static void strike(struct rig *rig, const uint8_t *msg, size_t len)
{
	uint64_t start_ns;

	rig->f->now_us += 100;
	start_ns = cpu_ns();
	sl_router_message(rig->f->r, HOSTILE, msg, len, rig->f->now_us);
	(void)sl_router_tick(rig->f->r, rig->f->now_us);
	rig->cpu_ns += cpu_ns() - start_ns;
	rig->messages++;
}

/* The honest peer in the midst of it: its announce, its filter and its lookup are taken. */
static void expect_unharmed(struct rig *rig)
{
	struct sl_node_addr root = fake_addr(0), target = {{0}};
	uint8_t msg[2048], bits[SL_FILTER_BYTES] = {0}, coords[16];
	struct sl_router *r = rig->f->r;
	uint64_t forwarded = r->counters[SL_ROUTE_LOOKUP_FORWARDED];
	struct sl_lookup_request q = {
		.request_id = sl_test_rand(), .ttl = 64, .coords_count = 1, .coords = coords};
	struct sl_filter_hash h;
	size_t len;

	len = announce(msg, rig->honest, ++rig->honest_sequence, &root, 2);
	sl_router_message(r, HONEST, msg, len, rig->f->now_us);
	SL_EXPECT_EQ(r->peers[HONEST]->tree_sequence, rig->honest_sequence);
	SL_EXPECT(sl_node_addr_equal(&r->tree.parent, sl_identity_addr(rig->honest)));
	sl_test_rand_bytes(target.bytes, 16);
	sl_filter_hash(&h, target.bytes);
	sl_filter_insert(bits, &h);
	sl_filter_announce_build(msg, rig->honest_sequence, bits);
	sl_router_message(r, HONEST, msg, SL_FILTER_MSG_BYTES, rig->f->now_us);
	SL_EXPECT_EQ(r->peers[HONEST]->filter_sequence_rx, rig->honest_sequence);
	/* Somebody asks for what the honest peer claims. */
	memcpy(coords, sl_identity_addr(rig->hostile), 16);
	memcpy(&q.origin, coords, 16);
	q.target = target;
	len = sl_lookup_request_build(msg, sizeof(msg), &q);
	rig->f->now_us += 1000000;
	sl_router_message(r, HOSTILE, msg, len, rig->f->now_us);
	SL_EXPECT_EQ(r->counters[SL_ROUTE_LOOKUP_FORWARDED], forwarded + 1);
}

static size_t memory(void)
{
	return mallinfo2().uordblks;
}

static void expect_bounded(struct rig *rig, const char *what, size_t before)
{
	size_t now = memory();
	double us = (double)rig->cpu_ns / 1e3 / (double)rig->messages;

	printf("  %-34s %7.2f us a message, %5.1f%% of a core at 10,000/s, %zu KB more\n", what, us,
		us * 10000 / 1e4, now > before ? (now - before) >> 10 : 0);
	SL_EXPECT(now < before + MEMORY_MOST);
	expect_unharmed(rig);
}

SL_TEST(hostile, forged_signatures)
{
	struct sl_node_addr root = fake_addr(0);
	uint8_t msg[2048];
	struct rig rig;
	size_t len, before;

	rig_init(&rig);
	len = announce(msg, rig.hostile, 1, &root, 2);
	before = memory();
	for (unsigned i = 0; i < 50000; i++) {
		sl_put64(msg + 2, 1000 + i); /* fresh, so that it must be looked at */
		strike(&rig, msg, len);
	}
	/* 20 at once, ten a second. */
	SL_EXPECT_LE(rig.f->r->counters[SL_ROUTE_TREE_BAD_SIGNATURE], 80);
	SL_EXPECT_EQ(rig.f->r->counters[SL_ROUTE_TREE_BAD_SIGNATURE] +
			     rig.f->r->counters[SL_ROUTE_TREE_LIMITED],
		50000);
	expect_bounded(&rig, "forged signatures", before);
	rig_fini(&rig);
}

SL_TEST(hostile, ancestry_with_repeats)
{
	struct sl_node_addr path[5] = {
		fake_addr(9), fake_addr(8), fake_addr(9), fake_addr(7), fake_addr(0)};
	uint8_t msg[2048];
	struct rig rig;
	size_t len, before;

	rig_init(&rig);
	len = announce(msg, rig.hostile, 1, path, 6);
	before = memory();
	for (unsigned i = 0; i < 50000; i++)
		strike(&rig, msg, len);
	SL_EXPECT_GT(rig.f->r->counters[SL_ROUTE_TREE_BAD_SEMANTICS], 0);
	SL_EXPECT_EQ(rig.f->r->counters[SL_ROUTE_TREE_BAD_SEMANTICS] +
			     rig.f->r->counters[SL_ROUTE_TREE_LIMITED],
		50000);
	SL_EXPECT(!rig.f->r->peers[HOSTILE]->has_tree);
	expect_bounded(&rig, "ancestry with repeats", before);
	rig_fini(&rig);
}

SL_TEST(hostile, claims_65535_entries)
{
	struct sl_node_addr root = fake_addr(0);
	uint8_t msg[2048];
	struct rig rig;
	size_t len, before;

	rig_init(&rig);
	len = announce(msg, rig.hostile, 1, &root, 2);
	msg[34] = msg[35] = 0xff;
	before = memory();
	for (unsigned i = 0; i < 50000; i++)
		strike(&rig, msg, len);
	SL_EXPECT_EQ(rig.f->r->counters[SL_ROUTE_TREE_MALFORMED], 50000);
	expect_bounded(&rig, "65,535 entries claimed", before);
	rig_fini(&rig);
}

SL_TEST(hostile, saturated_filters)
{
	uint8_t msg[SL_FILTER_MSG_BYTES], bits[SL_FILTER_BYTES];
	struct rig rig;
	size_t before;

	rig_init(&rig);
	memset(bits, 0xff, sizeof(bits));
	before = memory();
	for (unsigned i = 0; i < 50000; i++) {
		sl_filter_announce_build(msg, 1 + i, bits);
		strike(&rig, msg, sizeof(msg));
	}
	SL_EXPECT_EQ(rig.f->r->counters[SL_ROUTE_FILTER_TOO_FULL], 50000);
	expect_bounded(&rig, "saturated filters", before);
	rig_fini(&rig);
}

SL_TEST(hostile, storm_of_changing_filters)
{
	uint8_t msg[SL_FILTER_MSG_BYTES], bits[SL_FILTER_BYTES];
	struct rig rig;
	size_t before;
	uint64_t sent;

	rig_init(&rig);
	before = memory();
	sent = rig.f->by_type[SL_MSG_FILTER_ANNOUNCE];
	for (unsigned i = 0; i < 50000; i++) {
		memset(bits, 0, sizeof(bits));
		sl_test_rand_bytes(bits + i % 64 * 16, 128 / 8);
		sl_filter_announce_build(msg, 1 + i, bits);
		strike(&rig, msg, sizeof(msg));
	}
	/* Five seconds: what is told on is told at the debounce's pace. */
	SL_EXPECT_LE(rig.f->by_type[SL_MSG_FILTER_ANNOUNCE] - sent, 24);
	expect_bounded(&rig, "changing filters", before);
	rig_fini(&rig);
}

/* The same with the coordinate cache full: each snapshot has control look at all of them, within its credit. */
SL_TEST(hostile, storm_of_changing_filters_with_a_full_cache)
{
	uint8_t msg[SL_FILTER_MSG_BYTES], bits[SL_FILTER_BYTES];
	struct sl_router *r;
	struct rig rig;
	size_t before;

	rig_init(&rig);
	r = rig.f->r;
	for (unsigned i = 0; i < r->coords.capacity; i++) {
		struct sl_node_addr wire[3] = {{{0}}, *sl_identity_addr(i % 2 ? rig.hostile : rig.honest), fake_addr(0)};

		sl_test_rand_bytes(wire[0].bytes, 16);
		SL_EXPECT_EQ(sl_coords_insert(&r->coords, &wire[0], wire[0].bytes, 3, 0,
				     (uint32_t)(rig.f->now_us / 1000000)),
			0);
	}
	sl_router_settle(r);
	for (unsigned i = 0; i < 1000 && r->coords.undecided_count; i++)
		(void)sl_router_tick(r, rig.f->now_us += 100);
	SL_EXPECT_EQ(r->coords.undecided_count, 0);
	before = memory();
	for (unsigned i = 0; i < 20000; i++) {
		memset(bits, 0, sizeof(bits));
		sl_test_rand_bytes(bits + i % 64 * 16, 128 / 8);
		sl_filter_announce_build(msg, 1 + i, bits);
		strike(&rig, msg, sizeof(msg));
	}
	/* Behind it may be, but not by more than its credit makes up for in a second. */
	for (unsigned i = 0; i < 1000 && r->answers.left; i++)
		(void)sl_router_tick(r, rig.f->now_us += 1000);
	SL_EXPECT_EQ(r->answers.left, 0);
	expect_bounded(&rig, "changing filters, full cache", before);
	rig_fini(&rig);
}

SL_TEST(hostile, storm_of_valid_announces)
{
	enum { MESSAGES = 2000 };
	struct rig rig;
	uint8_t(*msg)[256] = calloc(MESSAGES, sizeof(*msg));
	size_t len[MESSAGES], before;
	uint64_t sent;

	SL_ASSERT(msg);
	rig_init(&rig);
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct sl_node_addr path[2] = {fake_addr(1 + i % 200), fake_addr(0)};

		len[i] = announce(msg[i], rig.hostile, 1 + i, path, 3);
	}
	before = memory();
	sent = rig.f->by_type[SL_MSG_TREE_ANNOUNCE];
	for (unsigned i = 0; i < MESSAGES; i++)
		strike(&rig, msg[i], len[i]);
	SL_EXPECT_GT(rig.f->r->counters[SL_ROUTE_TREE_LIMITED], MESSAGES - 30);
	SL_EXPECT_LE(rig.f->by_type[SL_MSG_TREE_ANNOUNCE] - sent, 4);
	expect_bounded(&rig, "valid announces", before);
	rig_fini(&rig);
	free(msg);
}

SL_TEST(hostile, fresh_lookups)
{
	struct rig rig;
	uint8_t msg[256], coords[16];
	struct sl_lookup_request q = {.ttl = 64, .coords_count = 1, .coords = coords};
	size_t len, before;

	rig_init(&rig);
	memcpy(coords, sl_identity_addr(rig.hostile), 16);
	memcpy(&q.origin, coords, 16);
	before = memory();
	for (unsigned i = 0; i < 50000; i++) {
		q.request_id = i + 1;
		/* Every second one for ourselves, which costs a signature. */
		q.target = fake_addr(i);
		if (i % 2)
			q.target = rig.f->r->tree.self;
		len = sl_lookup_request_build(msg, sizeof(msg), &q);
		strike(&rig, msg, len);
	}
	SL_EXPECT_GT(rig.f->r->counters[SL_ROUTE_LOOKUP_PEER_LIMITED], 45000);
	SL_EXPECT_LE(rig.f->r->counters[SL_ROUTE_LOOKUP_ANSWERED], 400 + 200 * 5);
	expect_bounded(&rig, "lookups with fresh ids", before);
	rig_fini(&rig);
}
