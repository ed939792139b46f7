/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams in control's hands: routing facts, sections 9 and 10; lookups: section 11. */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>

#define S 1000000ull

/* self 0x10 on tree 0, peers 0x20 and 0x21 adjacent; returns after sending dest a datagram with ttl
 * from 0x21. */
static struct fake *triangle(void)
{
	struct fake *f = fake_create(0x10, NULL, NULL);

	fake_own(f, 2, 0x10, 0);
	fake_peer(f, 1, 0x20);
	fake_peer(f, 2, 0x21);
	return f;
}

static void give(struct fake *f, unsigned src, unsigned dest, uint8_t ttl, uint16_t path_mtu,
	size_t payload, uint8_t flags)
{
	struct sl_node_addr s = fake_addr(src), d = fake_addr(dest);
	size_t len = SL_DATAGRAM_HEADER_BYTES + payload;
	uint8_t *msg = calloc(1, len);

	sl_datagram_build(msg, ttl, path_mtu, &s, &d);
	sl_router_datagram(f->r, 2, msg, len, flags, f->now_us);
	free(msg);
}

SL_TEST(datagram, ttl_table)
{
	static const struct {
		uint8_t in;
		int out; /* -1 dropped */
	} table[] = {{0, -1}, {1, -1}, {2, 1}, {64, 63}};

	for (unsigned i = 0; i < 4; i++) {
		struct fake *f = triangle();
		struct fake_sent *s;

		give(f, 0x21, 0x10, table[i].in, 65535, 4, 0); /* for us: any ttl */
		SL_EXPECT_EQ(f->local, 1);
		give(f, 0x21, 0x20, table[i].in, 65535, 4, 0);
		s = fake_last(f, SL_MSG_DATAGRAM);
		SL_EXPECT_EQ(s ? s->msg[SL_DATAGRAM_TTL] : -1, table[i].out);
		SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_TTL], table[i].out < 0);
		SL_EXPECT_EQ(f->r->counters[SL_ROUTE_SIGNAL_TX], 0);
		fake_destroy(f);
	}
}

SL_TEST(datagram, path_mtu_and_flags)
{
	struct fake *f = triangle();
	struct fake_sent *s;

	sl_router_peer_mtu(f->r, 1, 1400, f->now_us);
	give(f, 0x21, 0x20, 64, 65535, 4, SL_FLAG_K | SL_FLAG_SP | 0xf8);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_EXPECT_EQ(sl_get16(s->msg + 2), 1400);
	SL_EXPECT_EQ(s->flags, 0); /* W6: nothing of the incoming flags but CE goes on */
	give(f, 0x21, 0x20, 64, 900, 4, SL_FLAG_CE | SL_FLAG_K);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_EXPECT_EQ(sl_get16(s->msg + 2), 900);
	SL_EXPECT_EQ(s->flags, SL_FLAG_CE);
	give(f, 0x21, 0x20, 64, 0, 4, 0);
	SL_EXPECT_EQ(sl_get16(fake_last(f, SL_MSG_DATAGRAM)->msg + 2), 0);
	sl_router_peer_mtu(f->r, 1, 0, f->now_us); /* unknown: left alone */
	give(f, 0x21, 0x20, 64, 65535, 4, 0);
	SL_EXPECT_EQ(sl_get16(fake_last(f, SL_MSG_DATAGRAM)->msg + 2), 65535);
	fake_destroy(f);
}

SL_TEST(datagram, congestion_marks)
{
	struct fake *f = triangle();
	struct sl_router_metrics m = {.measured = true, .cost = 1.1, .loss = 0.0499, .etx = 2.99};

	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
	give(f, 0x21, 0x20, 64, 65535, 4, 0);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_DATAGRAM)->flags, 0);
	m.loss = 0.05;
	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
	give(f, 0x21, 0x20, 64, 65535, 4, 0);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_DATAGRAM)->flags, SL_FLAG_CE);
	m.loss = 0;
	m.etx = 3.0;
	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
	give(f, 0x21, 0x20, 64, 65535, 4, 0);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_DATAGRAM)->flags, SL_FLAG_CE);
	m.etx = 1.0;
	sl_router_peer_metrics(f->r, 1, &m, f->now_us);
	sl_router_congestion(f->r, true, f->now_us);
	give(f, 0x21, 0x20, 64, 65535, 4, 0);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_DATAGRAM)->flags, SL_FLAG_CE);
	sl_router_congestion(f->r, false, f->now_us);
	give(f, 0x21, 0x20, 64, 65535, 4, 0);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_DATAGRAM)->flags, 0);
	fake_destroy(f);
}

SL_TEST(datagram, too_big)
{
	struct fake *f = triangle();
	struct sl_signal sig;
	struct fake_sent *s;

	give(f, 0x21, 0x20, 64, 65535, 1280 - 36 - 36, 0); /* fits exactly */
	SL_EXPECT_EQ(fake_last(f, SL_MSG_DATAGRAM)->peer_id, 1);
	give(f, 0x21, 0x20, 64, 65535, 1280 - 36 - 36 + 1, 0);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_EXPECT_EQ(s->peer_id, 2); /* back to the source */
	SL_ASSERT(sl_signal_parse(&sig, s->msg + 36, s->len - 36) == 0);
	SL_EXPECT_EQ(sig.type, SL_SIGNAL_MTU_EXCEEDED);
	SL_EXPECT_EQ(sig.mtu, 1280);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_TOO_BIG], 1);
	fake_destroy(f);
}

SL_TEST(datagram, malformed_and_unroutable)
{
	struct fake *f = triangle();
	uint8_t msg[SL_DATAGRAM_HEADER_BYTES] = {0};

	for (size_t n = 0; n < sizeof(msg); n++) {
		uint8_t *copy = calloc(1, n ? n : 1);

		sl_router_datagram(f->r, 1, copy, n, 0, f->now_us);
		free(copy);
	}
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_MALFORMED], sizeof(msg));
	give(f, 0x60, 0x50, 64, 65535, 4, 0); /* neither destination nor source known */
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_NO_COORDS], 1);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_SIGNAL_NO_ROUTE], 1);
	give(f, 0x21, 0x50, 64, 65535, 4, 0); /* the slot is used up all the same */
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_SIGNAL_LIMITED], 1);
	fake_destroy(f);
}

/* A peer that invents destinations, in another's name: that other is told no more than the peer's share. */
SL_TEST(datagram, signals_of_one_peer_limited)
{
	struct fake *f = triangle();
	uint8_t msg[SL_DATAGRAM_HEADER_BYTES];
	struct sl_node_addr src = fake_addr(0x21), dest = fake_addr(0x50);
	const uint64_t *c = f->r->counters;

	for (unsigned i = 0; i < 5000; i++) {
		sl_put32(dest.bytes + 8, i);
		sl_datagram_build(msg, 64, 65535, &src, &dest);
		sl_router_datagram(f->r, 1, msg, sizeof(msg), 0, f->now_us);
	}
	SL_EXPECT_EQ(c[SL_ROUTE_SIGNAL_TX], 1000);
	SL_EXPECT_EQ(c[SL_ROUTE_SIGNAL_PEER_LIMITED], 4000);
	/* The one whose name was used still hears of its own. */
	sl_put32(dest.bytes + 8, 5000);
	sl_datagram_build(msg, 64, 65535, &src, &dest);
	sl_router_datagram(f->r, 2, msg, sizeof(msg), 0, f->now_us);
	SL_EXPECT_EQ(c[SL_ROUTE_SIGNAL_TX], 1001);
	fake_destroy(f);
}

/* --- warming (section 10)
 * ---------------------------------------------------------------------------------------- */

static size_t warm_frame(uint8_t *msg, unsigned phase, unsigned src, unsigned dest,
	unsigned src_entry, unsigned dest_entry)
{
	struct sl_node_addr s = fake_addr(src), d = fake_addr(dest);
	uint8_t *p = msg + SL_DATAGRAM_HEADER_BYTES;

	memset(msg, 0, 256);
	sl_datagram_build(msg, 64, 65535, &s, &d);
	p[0] = (uint8_t)phase;
	if (phase) {
		p += 5;
	} else {
		p[1] = 1; /* CP */
		p += 12;
	}
	*p = 2;
	p[2] = (uint8_t)src_entry;
	p += 34;
	*p = 2;
	p[2] = (uint8_t)dest_entry;
	p += 34;
	if (phase) {
		*p = 4;
		p += 6;
	} else {
		p += 20;
	}
	return (size_t)(p - msg);
}

SL_TEST(datagram, coordinates_learned)
{
	for (unsigned phase = 0; phase < 4; phase++) {
		struct fake *f = triangle();
		uint8_t msg[256];
		size_t len = warm_frame(msg, phase, 0x31, 0x32, 0x31, 0x32);

		sl_router_learn(f->r, msg, len, f->now_us);
		SL_EXPECT_EQ(f->r->coords.count, phase == 3 ? 0 : 2);
		fake_destroy(f);
	}
}

SL_TEST(datagram, learned_before_ttl_and_delivery)
{
	struct fake *f = triangle();
	uint8_t msg[256];
	size_t len = warm_frame(msg, 1, 0x31, 0x32, 0x31, 0x32);

	msg[SL_DATAGRAM_TTL] = 0;
	sl_router_datagram(f->r, 2, msg, len, 0, f->now_us);
	SL_EXPECT_EQ(f->r->coords.count, 2);
	len = warm_frame(msg, 2, 0x33, 0x10, 0x33, 0x10);
	sl_router_datagram(f->r, 2, msg, len, 0, f->now_us);
	SL_EXPECT_EQ(f->local, 1);
	SL_EXPECT_EQ(f->r->coords.count, 3); /* our own are not learned from others */
	/* The initiator had none for the destination and put its own there: passed on, not learned.
	 */
	len = warm_frame(msg, 1, 0x34, 0x20, 0x34, 0x34);
	sl_router_datagram(f->r, 2, msg, len, 0, f->now_us);
	SL_EXPECT_EQ(f->r->coords.count, 4);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_COORDS_REFUSED], 1);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_FORWARDED], 1);
	fake_destroy(f);
}

SL_TEST(datagram, originated)
{
	struct fake *f = triangle();
	struct sl_node_addr near = fake_addr(0x20), far = fake_addr(0x50);
	uint8_t payload[4] = {9, 9, 9, 9};
	struct fake_sent *s;

	SL_EXPECT_EQ(sl_router_originate(f->r, &near, payload, 4, f->now_us), 0);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_EXPECT_EQ(s->msg[1], 64);
	SL_EXPECT_EQ(sl_get16(s->msg + 2), 1280); /* the first link is folded in */
	SL_EXPECT_MEM(s->msg + 36, payload, 4);
	SL_EXPECT_EQ(sl_router_originate(f->r, &far, payload, 4, f->now_us), -ENETUNREACH);
	fake_destroy(f);
}

/* Two nodes that hold different coordinates of a destination would toss its datagrams to and fro.
 */
SL_TEST(datagram, not_back_to_where_it_came_from)
{
	struct fake *f = triangle();
	struct sl_node_addr source = fake_addr(0x21), dest = fake_addr(0x34);
	uint8_t msg[SL_DATAGRAM_HEADER_BYTES + 4] = {0};
	struct sl_signal s;

	/* 0x34 used to be below peer 1. */
	fake_path_quiet(f, 1, 2, 0x20, 0);
	fake_coords(f, 3, 0x34, 0x20, 0);
	SL_EXPECT_EQ(fake_hop(f, 0x34), 0x20);
	sl_datagram_build(msg, 64, 1280, &source, &dest);
	sl_router_datagram(f->r, 1, msg, sizeof(msg), 0, f->now_us);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_FORWARDED], 0);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_BACK], 1);
	SL_EXPECT_EQ(fake_hop(f, 0x34), -2);
	SL_ASSERT(fake_last(f, SL_MSG_DATAGRAM) != NULL);
	SL_EXPECT_EQ(sl_signal_parse(&s, fake_last(f, SL_MSG_DATAGRAM)->msg + SL_DATAGRAM_PAYLOAD,
			     fake_last(f, SL_MSG_DATAGRAM)->len - SL_DATAGRAM_PAYLOAD),
		0);
	SL_EXPECT_EQ(s.type, SL_SIGNAL_COORDS_REQUIRED);
	/* From anybody else it goes there. */
	fake_coords(f, 3, 0x34, 0x20, 0);
	sl_router_datagram(f->r, 2, msg, sizeof(msg), 0, f->now_us);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_DATAGRAM_FORWARDED], 1);
	fake_destroy(f);
}

/* --- lookups
 * ------------------------------------------------------------------------------------------------------
 */

static size_t request(uint8_t *msg, uint64_t id, unsigned target, unsigned origin, uint8_t ttl)
{
	uint8_t coords[32] = {0};
	struct sl_lookup_request q = {.request_id = id,
		.target = fake_addr(target),
		.origin = fake_addr(origin),
		.ttl = ttl,
		.coords_count = 2,
		.coords = coords};

	coords[0] = (uint8_t)origin;
	return sl_lookup_request_build(msg, 256, &q);
}

static void ask(struct fake *f, uint32_t from, uint64_t id, unsigned target, uint8_t ttl)
{
	uint8_t msg[256];
	size_t len = request(msg, id, target, 0x70, ttl);

	sl_router_message(f->r, from, msg, len, f->now_us);
}

/* self 0 is root; 0x20, 0x21 children, 0x30 and 0x31 no tree peers. */
static struct fake *crossing(void)
{
	struct fake *f = fake_create(0, NULL, NULL);

	for (unsigned i = 0; i < 2; i++) {
		fake_peer(f, 1 + i, 0x20 + i);
		fake_path(f, 1 + i, 2, 0x20 + i, 0);
		fake_peer(f, 3 + i, 0x30 + i);
		fake_path(f, 3 + i, 3, 0x30 + i, 0x20, 0);
	}
	return f;
}

SL_TEST(lookup, tree_peers_first_then_the_others)
{
	struct fake *f = crossing();

	fake_filter(f, 2, 1, 0x50);
	fake_filter(f, 3, 1, 0x50);
	ask(f, 1, 1, 0x50, 64);
	SL_EXPECT_EQ(f->by_type[SL_MSG_LOOKUP_REQUEST], 1);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_LOOKUP_REQUEST)->peer_id, 2);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_LOOKUP_REQUEST)->msg[41], 63);
	fake_filter(f, 2, 1, 0x51);
	f->now_us += 3 * S;
	ask(f, 1, 2, 0x50, 64);
	SL_EXPECT_EQ(f->by_type[SL_MSG_LOOKUP_REQUEST], 2);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_LOOKUP_REQUEST)->peer_id, 3);
	ask(f, 1, 3, 0x77, 64);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_LOOKUP_NO_PEER], 1);
	/* Not back to where it came from. */
	f->now_us += 3 * S;
	ask(f, 3, 4, 0x50, 64);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_LOOKUP_NO_PEER], 2);
	/* An adjacent target gets it, filter or not. */
	ask(f, 1, 5, 0x31, 64);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_LOOKUP_REQUEST)->peer_id, 4);
	fake_destroy(f);
}

SL_TEST(lookup, limits)
{
	struct fake *f = crossing();
	uint64_t *c = f->r->counters;

	fake_filter(f, 2, 3, 0x50, 0x51, 0x52);
	ask(f, 1, 1, 0x50, 64);
	ask(f, 1, 1, 0x50, 64); /* the same id */
	ask(f, 3, 1, 0x50, 64);
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_DUPLICATE], 2);
	f->now_us += 2 * S - 1;
	ask(f, 1, 2, 0x50, 64); /* the same target within two seconds */
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_LIMITED], 1);
	f->now_us += 1;
	ask(f, 1, 3, 0x50, 64);
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_FORWARDED], 2);
	ask(f, 1, 4, 0x51, 0); /* ttl */
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_TTL], 1);
	ask(f, 1, 5, 0x51, 1); /* is sent on with 0 */
	SL_EXPECT_EQ(fake_last(f, SL_MSG_LOOKUP_REQUEST)->msg[41], 0);
	f->now_us += 11 * S; /* forgotten */
	ask(f, 1, 1, 0x50, 64);
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_DUPLICATE], 2);
	fake_destroy(f);
}

/*
 * A target that many ask for. By the plain rule one of them is heard in two seconds; here some are, a
 * bounded number, and nobody twice.
 */
SL_TEST(lookup, a_target_that_many_ask_for)
{
	struct fake *f = crossing();
	uint64_t *c = f->r->counters, first = 0;
	uint8_t msg[256];

	fake_filter(f, 2, 1, 0x50);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 100; i++)
			sl_router_message(f->r, 1, msg,
				request(msg, 1 + 100 * round + i, 0x50, 0x80 + i, 64), f->now_us);
		if (!round)
			first = c[SL_ROUTE_LOOKUP_FORWARDED];
	}
	SL_EXPECT_GT(first, 2);
	SL_EXPECT_LE(first, 8);
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_FORWARDED], first);
	SL_EXPECT_EQ(c[SL_ROUTE_LOOKUP_LIMITED], 200 - first);
	fake_destroy(f);
}

SL_TEST(lookup, flood_of_fresh_ids_leaves_room_for_others)
{
	struct fake *f = crossing();
	uint64_t *c = f->r->counters;

	fake_filter(f, 2, 2, 0x50, 0x51);
	/* Peer 1 floods for ten seconds at 10,000 a second. */
	for (unsigned i = 0; i < 100000; i++) {
		f->now_us += 100;
		ask(f, 1, 1000 + i, 0x51, 64);
	}
	SL_EXPECT_GT(c[SL_ROUTE_LOOKUP_PEER_LIMITED], 90000);
	SL_EXPECT_LE(c[SL_ROUTE_LOOKUP_FORWARDED], 6); /* one target in two seconds */
	f->now_us += 1000;
	ask(f, 3, 7, 0x50, 64);
	SL_EXPECT_EQ(fake_last(f, SL_MSG_LOOKUP_REQUEST)->msg[9], 0x50);
	fake_destroy(f);
}

static void respond(struct fake *f, uint32_t from, uint64_t id, uint16_t path_mtu)
{
	uint8_t coords[32] = {0x50}, proof[64] = {1}, msg[256];
	struct sl_lookup_response a = {.request_id = id,
		.target = fake_addr(0x50),
		.path_mtu = path_mtu,
		.coords_count = 2,
		.coords = coords,
		.proof = proof};
	size_t len = sl_lookup_response_build(msg, sizeof(msg), &a);

	sl_router_message(f->r, from, msg, len, f->now_us);
}

SL_TEST(lookup, response_goes_back_once)
{
	struct fake *f = crossing();
	struct sl_lookup_response a;
	struct fake_sent *s;

	fake_filter(f, 2, 1, 0x50);
	ask(f, 1, 1, 0x50, 64);
	respond(f, 2, 2, 65535);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_RESPONSE_UNSOLICITED], 1);
	respond(f, 2, 1, 65535);
	s = fake_last(f, SL_MSG_LOOKUP_RESPONSE);
	SL_ASSERT(s && sl_lookup_response_parse(&a, s->msg, s->len) == 0);
	SL_EXPECT_EQ(s->peer_id, 1);
	SL_EXPECT_EQ(a.path_mtu, 1280);
	SL_EXPECT_EQ(a.proof[0], 1);
	respond(f, 2, 1, 65535);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_RESPONSE_REPEATED], 1);
	/* Who asked is gone, another has its place: nobody gets it. */
	f->now_us += 3 * S;
	ask(f, 1, 9, 0x50, 64);
	sl_router_peer_down(f->r, 1, f->now_us);
	fake_peer(f, 1, 0x44);
	respond(f, 2, 9, 65535);
	SL_EXPECT_EQ(f->by_type[SL_MSG_LOOKUP_RESPONSE], 1);
	fake_destroy(f);
}

SL_TEST(lookup, malformed)
{
	struct fake *f = crossing();
	uint8_t msg[256];
	size_t len = request(msg, 1, 0x50, 0x70, 64);

	for (size_t n = 1; n < len; n++) {
		uint8_t *copy = malloc(n);

		memcpy(copy, msg, n);
		sl_router_message(f->r, 1, copy, n, f->now_us);
		free(copy);
	}
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_LOOKUP_MALFORMED], len - 1);
	fake_destroy(f);
}
