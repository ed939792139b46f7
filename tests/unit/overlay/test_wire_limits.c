/* SPDX-License-Identifier: BSD-3-Clause */
/* Every length of every message, each named fault, random round trips; coordinates in passing against a slow reader. */
#include "overlay_test.h"
#include "sl_wire_round_trip.h"
#include <errno.h>

#define ROUNDS 2000
#define MSG_MAX 4096

static const struct sl_wire_case *
case_named(const char *name)
{
	for (size_t i = 0; i < SL_WIRE_CASE_COUNT; i++)
		if (strcmp(sl_wire_cases[i].name, name) == 0)
			return &sl_wire_cases[i];
	abort();
}

/* A random message that its parser must take, and its exact length. */
static size_t
random_message(const struct sl_wire_case *c, uint8_t *msg)
{
	unsigned count = 1 + (unsigned)(sl_test_rand() % 40);

	sl_test_rand_bytes(msg, MSG_MAX);
	if (strcmp(c->name, "sender_report") == 0) {
		msg[0] = SL_MSG_SENDER_REPORT;
		return SL_SENDER_REPORT_BYTES;
	}
	if (strcmp(c->name, "receiver_report") == 0) {
		msg[0] = SL_MSG_RECEIVER_REPORT;
		return SL_RECEIVER_REPORT_BYTES;
	}
	if (strcmp(c->name, "tree_announce") == 0) {
		msg[0] = SL_MSG_TREE_ANNOUNCE;
		msg[1] = 1;
		sl_put16(msg + 34, (uint16_t)count);
		return SL_TREE_FIXED_BYTES + count * SL_TREE_ENTRY_BYTES;
	}
	if (strcmp(c->name, "filter_announce") == 0) {
		msg[0] = SL_MSG_FILTER_ANNOUNCE;
		msg[9] |= 1;
		msg[10] = 1;
		return SL_FILTER_MSG_BYTES;
	}
	if (strcmp(c->name, "lookup_request") == 0) {
		msg[0] = SL_MSG_LOOKUP_REQUEST;
		sl_put16(msg + 44, (uint16_t)count);
		return SL_LOOKUP_REQUEST_FIXED_BYTES + count * SL_NODE_ADDR_BYTES;
	}
	if (strcmp(c->name, "lookup_response") == 0) {
		msg[0] = SL_MSG_LOOKUP_RESPONSE;
		sl_put16(msg + 27, (uint16_t)count);
		return SL_LOOKUP_RESPONSE_FIXED_BYTES + count * SL_NODE_ADDR_BYTES;
	}
	msg[0] &= 0xf0;
	msg[1] |= 4;
	msg[4] = (uint8_t)(SL_SIGNAL_COORDS_REQUIRED + sl_test_rand() % 3);
	if (msg[4] == SL_SIGNAL_COORDS_REQUIRED)
		return 38;
	if (msg[4] == SL_SIGNAL_MTU_EXCEEDED)
		return 40;
	sl_put16(msg + 38, (uint16_t)(count - 1)); /* PathBroken allows none */
	return 40 + (count - 1) * SL_NODE_ADDR_BYTES;
}

static int
parse_exact(const struct sl_wire_case *c, const uint8_t *msg, size_t len)
{
	uint8_t out[MSG_MAX], *copy = exact_copy(msg, len);
	size_t out_len = 0;
	int rc = c->round_trip(copy, len, out, sizeof(out), &out_len);

	if (rc == 0 && !sl_wire_case_same(c, copy, len, out, out_len))
		sl_test_fail(__FILE__, __LINE__, "%s: %zu bytes in, %zu differing bytes out",
			c->name, len, out_len);
	exact_free(copy, len);
	return rc;
}

SL_TEST(wire_limits, round_trips)
{
	static uint8_t msg[MSG_MAX];

	for (size_t i = 0; i < SL_WIRE_CASE_COUNT; i++)
		for (int round = 0; round < ROUNDS && !sl_test_failed(); round++) {
			size_t len = random_message(&sl_wire_cases[i], msg);

			SL_EXPECT_EQ(parse_exact(&sl_wire_cases[i], msg, len), 0);
			if (strcmp(sl_wire_cases[i].name, "filter_announce") == 0)
				SL_EXPECT_EQ(
					parse_exact(&sl_wire_cases[i], msg, len + 1), -EBADMSG);
			else
				SL_EXPECT_EQ(
					parse_exact(&sl_wire_cases[i], msg, len + 1 + round % 70),
					0);
		}
}

SL_TEST(wire_limits, every_truncation)
{
	static uint8_t msg[MSG_MAX];

	for (size_t i = 0; i < SL_WIRE_CASE_COUNT; i++)
		for (int round = 0; round < 20; round++) {
			size_t len = random_message(&sl_wire_cases[i], msg);

			for (size_t n = 0; n < len; n++)
				SL_EXPECT_EQ(parse_exact(&sl_wire_cases[i], msg, n), -EBADMSG);
		}
}

/* Anything at all: no crash, and what is taken comes out again. */
SL_TEST(wire_limits, random_bytes)
{
	uint8_t msg[300];

	for (int round = 0; round < 20000; round++) {
		const struct sl_wire_case *c = &sl_wire_cases[sl_test_rand() % SL_WIRE_CASE_COUNT];
		size_t len = sl_test_rand() % sizeof(msg);
		static uint8_t good[MSG_MAX];
		size_t good_len = random_message(c, good);

		sl_test_rand_bytes(msg, sizeof(msg));
		memcpy(msg, good, good_len < 50 ? good_len : 50);
		msg[sl_test_rand() % 50] = (uint8_t)sl_test_rand();
		(void)parse_exact(c, msg, len);
	}
}

/* The list at the end of routing facts, section 14; lengths there count after the type byte. */
SL_TEST(wire_limits, decoder_limits_of_the_reference)
{
	static uint8_t msg[MSG_MAX];
	const struct sl_wire_case *c = case_named("tree_announce");

	random_message(c, msg);
	SL_EXPECT_EQ(parse_exact(c, msg, 1 + 1), -EBADMSG);
	SL_EXPECT_EQ(parse_exact(c, msg, 1 + 98), -EBADMSG);
	msg[1] = 0xff;
	SL_EXPECT_EQ(parse_exact(c, msg, 200), -EPROTONOSUPPORT);
	msg[1] = 1;
	sl_put16(msg + 34, 5);
	SL_EXPECT_EQ(parse_exact(c, msg, SL_TREE_FIXED_BYTES + SL_TREE_ENTRY_BYTES), -EBADMSG);
	sl_put16(msg + 34, 0);
	SL_EXPECT_EQ(parse_exact(c, msg, SL_TREE_FIXED_BYTES), -EINVAL);
	sl_put16(msg + 34, 65535);
	SL_EXPECT_EQ(parse_exact(c, msg, MSG_MAX), -EBADMSG);

	c = case_named("filter_announce");
	random_message(c, msg);
	msg[10] = 5;
	SL_EXPECT_EQ(parse_exact(c, msg, SL_FILTER_MSG_BYTES), -EPROTONOSUPPORT);
	msg[10] = 0;
	SL_EXPECT_EQ(parse_exact(c, msg, 11 + 512), -EPROTONOSUPPORT);
	msg[10] = 1;
	msg[9] = 0;
	SL_EXPECT_EQ(parse_exact(c, msg, SL_FILTER_MSG_BYTES), -EINVAL);

	c = case_named("lookup_request");
	random_message(c, msg);
	SL_EXPECT_EQ(parse_exact(c, msg, 1 + 42), -EBADMSG);
	sl_put16(msg + 44, 0);
	SL_EXPECT_EQ(parse_exact(c, msg, 100), -EINVAL);
	sl_put16(msg + 44, 65535);
	SL_EXPECT_EQ(parse_exact(c, msg, MSG_MAX), -EBADMSG);

	c = case_named("lookup_response");
	random_message(c, msg);
	SL_EXPECT_EQ(parse_exact(c, msg, 1 + 50), -EBADMSG);
	sl_put16(msg + 27, 0);
	SL_EXPECT_EQ(parse_exact(c, msg, 200), -EINVAL);

	c = case_named("signal");
	random_message(c, msg);
	msg[4] = SL_SIGNAL_COORDS_REQUIRED;
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 10), -EBADMSG);
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 33), 0);
	msg[4] = SL_SIGNAL_PATH_BROKEN;
	sl_put16(msg + 38, 0);
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 20), -EBADMSG);
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 34), -EBADMSG);
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 35), 0);
	msg[4] = SL_SIGNAL_MTU_EXCEEDED;
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 34), -EBADMSG);
	SL_EXPECT_EQ(parse_exact(c, msg, 4 + 1 + 35), 0);
	msg[4] = 0x23;
	SL_EXPECT_EQ(parse_exact(c, msg, 100), -EPROTONOSUPPORT);
	msg[4] = SL_SIGNAL_MTU_EXCEEDED;
	msg[1] &= (uint8_t)~4;
	SL_EXPECT_EQ(parse_exact(c, msg, 100), -EINVAL);
	msg[1] |= 4;
	msg[0] = 1;
	SL_EXPECT_EQ(parse_exact(c, msg, 100), -EINVAL);
}

SL_TEST(wire_limits, other_type)
{
	static uint8_t msg[MSG_MAX];

	for (size_t i = 0; i < SL_WIRE_CASE_COUNT; i++) {
		size_t len = random_message(&sl_wire_cases[i], msg);

		if (strcmp(sl_wire_cases[i].name, "signal") == 0)
			continue;
		msg[0] ^= 0x40;
		SL_EXPECT_EQ(parse_exact(&sl_wire_cases[i], msg, len), -EINVAL);
	}
}

/* --- coordinates in passing ------------------------------------------------------------------------------------ */

struct slow {
	const uint8_t *p;
	size_t len, at;
	bool bad;
};

static unsigned
slow_byte(struct slow *s)
{
	if (s->at >= s->len) {
		s->bad = true;
		return 0;
	}
	return s->p[s->at++];
}

static unsigned
slow_list(struct slow *s, size_t *at)
{
	unsigned count = slow_byte(s);

	count += slow_byte(s) * 256;
	*at = s->at;
	for (unsigned i = 0; i < count * 16 && !s->bad; i++)
		slow_byte(s);
	return count;
}

/* Routing facts, section 10, read byte by byte. */
static bool
slow_coords(struct sl_coords_seen *seen, const uint8_t *p, size_t len)
{
	struct slow s = {p, len, 0, false};
	unsigned first = slow_byte(&s), flags, src, dest, tail;
	size_t src_at, dest_at;

	memset(seen, 0, sizeof(*seen));
	if (s.bad)
		return false;
	if (first % 16 == 1 || first % 16 == 2) {
		for (int i = 1; i < 5; i++)
			slow_byte(&s);
		src = slow_list(&s, &src_at);
		dest = slow_list(&s, &dest_at);
		tail = slow_byte(&s);
		tail += slow_byte(&s) * 256;
		for (unsigned i = 0; i < tail && !s.bad; i++)
			slow_byte(&s);
		if (s.bad || src < 1 || dest < 1)
			return false;
	} else if (first == 0) {
		flags = slow_byte(&s);
		if (s.bad || flags % 2 == 0 || flags / 4 % 2 == 1 || len < 28)
			return false;
		for (int i = 2; i < 12; i++)
			slow_byte(&s);
		src = slow_list(&s, &src_at);
		dest = slow_list(&s, &dest_at);
		if (s.bad || src + dest == 0)
			return false;
	} else {
		return false;
	}
	seen->src_count = (uint16_t)src;
	seen->dest_count = (uint16_t)dest;
	seen->src = p + src_at;
	seen->dest = p + dest_at;
	return true;
}

static bool
coords_check(const uint8_t *payload, size_t len)
{
	uint8_t *copy = exact_copy(payload, len);
	struct sl_coords_seen got, want;
	bool had, wanted;

	memset(&got, 0xaa, sizeof(got));
	had = sl_payload_coords(&got, copy, len);
	wanted = slow_coords(&want, copy, len);
	SL_EXPECT_EQ(had, wanted);
	SL_EXPECT_EQ(got.src_count, want.src_count);
	SL_EXPECT_EQ(got.dest_count, want.dest_count);
	SL_EXPECT(!had || (got.src == want.src && got.dest == want.dest));
	SL_EXPECT(!had || sl_payload_may_carry_coords(copy, len));
	exact_free(copy, len);
	return had;
}

/* A payload with coordinates in the place where its phase has them. */
static size_t
random_payload(uint8_t *p, unsigned phase, unsigned src, unsigned dest, unsigned tail)
{
	size_t at = phase ? 5 : 12;

	sl_test_rand_bytes(p, 2048);
	p[0] = (uint8_t)(phase ? (p[0] & 0xf0) | phase : 0);
	if (phase == 0)
		p[1] = (uint8_t)((p[1] | 1) & ~4);
	sl_put16(p + at, (uint16_t)src);
	at += 2 + src * 16;
	sl_put16(p + at, (uint16_t)dest);
	at += 2 + dest * 16;
	if (phase) {
		sl_put16(p + at, (uint16_t)tail);
		at += 2;
	}
	return at + tail;
}

SL_TEST(wire_coords, where_each_phase_has_them)
{
	static uint8_t p[2048];

	for (unsigned phase = 0; phase <= 2; phase++)
		for (unsigned src = 0; src < 6; src++)
			for (unsigned dest = 0; dest < 6; dest++)
				for (unsigned tail = 0; tail < 40; tail += 13) {
					size_t len = random_payload(p, phase, src, dest, tail);
					bool wanted =
						phase ? src && dest : (src || dest) && len >= 28;

					SL_EXPECT_EQ(coords_check(p, len), wanted);
					SL_EXPECT_EQ(coords_check(p, len + 5),
						phase ? src && dest
						      : (src || dest) && len + 5 >= 28);
				}
}

SL_TEST(wire_coords, every_truncation)
{
	static uint8_t p[2048];

	for (unsigned phase = 0; phase <= 2; phase++) {
		size_t len = random_payload(p, phase, 3, 4, 30);
		size_t enough =
			phase ? len
			      : 12 + 4 +
					7 * 16; /* of data, the ciphertext may be cut: it is not ours */

		for (size_t n = 0; n <= len; n++)
			SL_EXPECT_EQ(coords_check(p, n), n >= enough);
	}
}

/* Routing facts, section 14: a CP frame of 4 to 27 payload bytes warms nothing. */
SL_TEST(wire_coords, short_data)
{
	static uint8_t p[2048];

	random_payload(p, 0, 0, 0, 0);
	for (size_t n = 0; n < 28; n++)
		SL_EXPECT(!coords_check(p, n));
	sl_put16(p + 12, 0);
	sl_put16(p + 14, 1);
	SL_EXPECT(!coords_check(p, 31));
	SL_EXPECT(coords_check(p, 32));
	p[1] |= 4;
	SL_EXPECT(!coords_check(p, 32));
}

SL_TEST(wire_coords, other_phases_carry_none)
{
	static uint8_t p[2048];

	for (unsigned first = 0; first < 256; first++) {
		size_t len = random_payload(p, 1, 2, 2, 10);
		unsigned phase = first & 15;

		p[0] = (uint8_t)first;
		if (phase != 0)
			SL_EXPECT_EQ(coords_check(p, len), phase == 1 || phase == 2);
		len = random_payload(p, 0, 2, 2, 40);
		p[0] = (uint8_t)first;
		if (phase == 0)
			SL_EXPECT_EQ(coords_check(p, len), first == 0);
	}
}

SL_TEST(wire_coords, against_slow_reader)
{
	static uint8_t p[2048];
	unsigned had = 0;

	for (int round = 0; round < 50000 && !sl_test_failed(); round++) {
		size_t len = random_payload(p, (unsigned)(sl_test_rand() % 3),
			(unsigned)(sl_test_rand() % 4), (unsigned)(sl_test_rand() % 4),
			(unsigned)(sl_test_rand() % 40));

		for (int flips = (int)(sl_test_rand() % 3); flips > 0; flips--)
			p[sl_test_rand() % 120] ^= (uint8_t)(1u << sl_test_rand() % 8);
		had += coords_check(p, sl_test_rand() % 4 ? len : sl_test_rand() % (len + 1));
	}
	SL_EXPECT_GT(had, 5000); /* the test sees both answers */
	SL_EXPECT_LT(had, 45000);
}

SL_TEST(wire_coords, count_of_65535)
{
	static uint8_t p[2048];
	size_t big = 5 + 2 * (2 + 65535 * 16u) + 2;
	uint8_t *b = calloc(1, big);

	random_payload(p, 1, 1, 1, 0);
	sl_put16(p + 5, 65535);
	SL_EXPECT(!coords_check(p, sizeof(p)));
	b[0] = 1;
	sl_put16(b + 5, 65535);
	sl_put16(b + 7 + 65535 * 16u, 65535);
	SL_EXPECT(coords_check(b, big));
	SL_EXPECT(!coords_check(b, big - 1));
	free(b);
}
