/* SPDX-License-Identifier: BSD-3-Clause */
/* sl_parse(): frames of another implementation, every truncation, random frames against the oracle. */
#include <errno.h>
#include <stdlib.h>
#include "net_test.h"

static const char *
text(enum sl_verdict v)
{
	return sl_verdict_name(v);
}

static struct sl_addr
from_addr(uint8_t from)
{
	struct sl_addr a = {.kind = SL_ADDR_UDP4, .transport = UDP_ID, .udp_port = 5555};

	switch (from) {
	case FROM_U4B:
		a.transport = BOUND_ID;
		__attribute__((fallthrough));
	case FROM_U4:
		sl_test_unhex(a.u.ip4, 4, "c0000209");
		break;
	case FROM_U6:
		a.kind = SL_ADDR_UDP6;
		sl_test_unhex(a.u.ip6, 16, "20010db8000000000000000000000009");
		break;
	case FROM_U6L:
		a.kind = SL_ADDR_UDP6;
		a.link = LOCAL_LINK;
		sl_test_unhex(a.u.ip6, 16, "fe80000000000000000000fffe000099");
		break;
	case FROM_ETH7:
		a.vlan = 7;
		__attribute__((fallthrough));
	case FROM_ETH:
		a.kind = SL_ADDR_ETH;
		a.transport = ETH_ID;
		a.udp_port = 0;
		a.link = LOCAL_LINK;
		memcpy(a.u.mac, peer_mac, 6);
		break;
	}
	return a;
}

static bool
accepted(enum sl_verdict v)
{
	return v == SL_FORWARD || v == SL_PUNT;
}

/* With the checksum left to the caller: the same once it has looked. v: the verdict when the parser looks. */
static void
agree_later(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints, enum sl_verdict v)
{
	struct sl_parsed fast = {.kind = 99}, slow = {.kind = 99};
	enum sl_verdict f, s;
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, frame, len);
	f = sl_parse(local, copy, len, hints | SL_RX_L4_LATER, &fast);
	s = sl_parse_slow(local, copy, len, hints | SL_RX_L4_LATER, &slow);
	SL_EXPECT_EQ(f, s);
	SL_EXPECT(f != SL_FORWARD || (fast.checksum_due == slow.checksum_due && fast.offset == slow.offset && fast.len == slow.len &&
		sl_addr_equal(&fast.from, &slow.from)));
	if (f == SL_FORWARD && fast.checksum_due &&
		!sl_parse_checksum_good(fast.from.kind, copy + fast.offset, fast.len))
		f = SL_DROP_UDP_CHECKSUM;
	SL_EXPECT_EQ(f, v);
	free(copy);
}

/* Fast, slow and oracle agree on verdict and result. */
static enum sl_verdict
agree(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints, const char *what)
{
	struct sl_parsed fast = {.kind = 99}, slow = {.kind = 99}, want = {.kind = 99};
	const enum sl_verdict v = parse_copy(local, frame, len, hints, &fast);
	const enum sl_verdict s = sl_parse_slow(local, frame, len, hints, &slow);
	const enum sl_verdict o = oracle_parse(local, frame, len, hints, &want);

	SL_EXPECT_MSG(v == o && s == o, "%s, %zu bytes: %s, slow %s, oracle %s", what, len, text(v), text(s), text(o));
	agree_later(local, frame, len, hints, v);
	if (v != o || !accepted(o))
		return v;
	SL_EXPECT_EQ(fast.kind, want.kind);
	SL_EXPECT_EQ(fast.offset, want.offset);
	SL_EXPECT_EQ(fast.len, want.len);
	SL_EXPECT_EQ(slow.kind, want.kind);
	SL_EXPECT_EQ(slow.offset, want.offset);
	SL_EXPECT_EQ(slow.len, want.len);
	SL_EXPECT((size_t)fast.offset + fast.len <= len);
	if (want.kind != SL_PARSE_NEIGH) {
		SL_EXPECT_MEM(&fast.from, &want.from, sizeof(want.from));
		SL_EXPECT_MEM(&slow.from, &want.from, sizeof(want.from));
	}
	return v;
}

SL_TEST(parse, table)
{
	struct sl_parse_local local;
	uint8_t frame[2048];

	for (unsigned i = 0; i < frame_table_count; i++) {
		const struct frame_case *c = &frame_table[i];
		const size_t len = frame_bytes(frame, c);
		struct sl_parsed out = {.kind = 99};
		enum sl_verdict v;

		local_default(&local, c->vlan);
		v = parse_copy(&local, frame, len, c->hints, &out);
		SL_EXPECT_MSG(v == c->verdict, "%s: %s, want %s", c->name, text(v), text(c->verdict));
		(void)agree(&local, frame, len, c->hints, c->name);
		if (v != c->verdict || !accepted(v))
			continue;
		SL_EXPECT_MSG(out.kind == c->kind, "%s: kind %u, want %u", c->name, out.kind, c->kind);
		SL_EXPECT_MSG(out.offset == c->offset && out.len == c->len, "%s: %u+%u, want %u+%u", c->name, out.offset,
			out.len, c->offset, c->len);
		if (c->from) {
			const struct sl_addr want = from_addr(c->from);

			SL_EXPECT_MSG(sl_addr_equal(&out.from, &want), "%s: from", c->name);
			SL_EXPECT_MEM(&out.from, &want, sizeof(want));
		}
	}
}

/* Each drop reason that the parser can give comes up in the table. */
SL_TEST(parse, table_covers_every_reason)
{
	bool seen[SL_VERDICT_COUNT] = {false};

	for (unsigned i = 0; i < frame_table_count; i++)
		seen[frame_table[i].verdict] = true;
	for (unsigned v = SL_DROP_ETHERTYPE; v <= SL_DROP_NPT; v++)
		SL_EXPECT_MSG(seen[v] || v == SL_DROP_SEGMENTS || v == SL_DROP_SEGMENTS_FULL, "%s", text((enum sl_verdict)v));
}

SL_TEST(parse, every_truncation)
{
	struct sl_parse_local local;
	uint8_t frame[2048];

	for (unsigned i = 0; i < frame_table_count; i++) {
		const struct frame_case *c = &frame_table[i];
		const size_t full = frame_bytes(frame, c);

		local_default(&local, c->vlan);
		for (size_t len = 0; len < full; len++) {
			const enum sl_verdict v = agree(&local, frame, len, c->hints, c->name);
			struct sl_parsed out;

			/* What was good stays so only as far as the cut took padding away. */
			if (c->verdict == SL_FORWARD && len < c->offset + c->len)
				SL_EXPECT_MSG(!accepted(v), "%s cut to %zu: %s", c->name, len, text(v));
			/* Unless stopped earlier, the cut has a name of its own. */
			if (c->verdict == SL_FORWARD && c->offset == 42 && len >= 14 && len < 34)
				SL_EXPECT_EQ(parse_copy(&local, frame, len, c->hints, &out), SL_DROP_TRUNCATED);
		}
	}
}

SL_TEST(parse, plain_frames_of_every_size)
{
	struct sl_parse_local local;
	uint8_t frame[9100];

	for (unsigned vlan = 0; vlan < 2; vlan++) {
		local_default(&local, vlan ? 7 : 0);
		for (unsigned n = 32; n < 9000; n += n < 300 ? 1 : 61) {
			for (unsigned family = 0; family <= 6; family += family ? 2 : 4) {
				struct frame_spec s = {.family = (uint8_t)family, .vlan = vlan ? 7 : 0, .fmp_len = (uint16_t)n};
				const size_t len = frame_make(frame, &s);
				struct sl_parsed out;

				SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_FORWARD);
				SL_EXPECT_EQ(out.len, n);
				SL_EXPECT_EQ(out.offset, len - n);
			}
		}
	}
}

/* One bit turned anywhere in a checksummed UDP frame's IP addresses, UDP or payload is seen. */
SL_TEST(parse, every_bit_flip_is_noticed)
{
	struct sl_parse_local local;
	struct sl_parsed out;
	uint8_t frame[256];

	local_default(&local, 0);
	for (unsigned family = 4; family <= 6; family += 2) {
		struct frame_spec s = {.family = (uint8_t)family, .fmp_len = 60};
		const size_t len = frame_make(frame, &s), start = family == 4 ? 14 : 22;

		for (size_t bit = start * 8; bit < len * 8; bit++) {
			frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
			SL_EXPECT_MSG(parse_copy(&local, frame, len, 0, &out) != SL_FORWARD, "family %u bit %zu", family, bit);
			(void)agree(&local, frame, len, 0, "bit flip");
			frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_FORWARD);
	}
}

/* Puts the IPv4 header checksum right again so that random changes reach the deeper checks. */
static void
repair(uint8_t *frame, size_t len)
{
	const size_t at = frame[12] == 0x81 ? 18 : 14;
	size_t header;
	uint16_t sum;

	if (len < at + 20 || frame[at - 2] != 8 || frame[at - 1] != 0)
		return;
	header = (frame[at] & 15) * 4u;
	if (header < 20 || len < at + header)
		return;
	frame[at + 10] = frame[at + 11] = 0;
	sum = (uint16_t)~oracle_sum(0, frame + at, header);
	frame[at + 10] = (uint8_t)(sum >> 8);
	frame[at + 11] = (uint8_t)sum;
}

SL_TEST(parse, random_changes_against_oracle)
{
	struct sl_parse_local local[2];
	uint8_t frame[2048];
	unsigned good = 0;

	local_default(&local[0], 0);
	local_default(&local[1], 7);
	for (int i = 0; i < 300000 && !sl_test_failed(); i++) {
		const struct frame_case *c = &frame_table[sl_test_rand() % frame_table_count];
		size_t len = frame_bytes(frame, c);
		struct sl_parse_local l = local[(c->vlan != 0) ^ (sl_test_rand() % 64 == 0)];
		uint32_t hints = c->hints ^ (sl_test_rand() % 4 ? 0 : (uint32_t)sl_test_rand() & 7);

		for (unsigned n = sl_test_rand() % 4; n > 0; n--) {
			/* headers mostly */
			const size_t at = sl_test_rand() % (sl_test_rand() % 4 ? (len < 70 ? len : 70) : len);

			frame[at] = sl_test_rand() % 2 ? (uint8_t)sl_test_rand() :
							 (uint8_t)(frame[at] + (sl_test_rand() % 3) - 1);
		}
		if (sl_test_rand() % 8 == 0)
			len = sl_test_rand() % (len + 1);
		else if (sl_test_rand() % 8 == 0)
			len += sl_test_rand() % 20;
		if (sl_test_rand() % 4)
			repair(frame, len);
		l.skip_udp_checksum = sl_test_rand() % 2;
		good += accepted(agree(&l, frame, len, hints, c->name));
	}
	SL_EXPECT_GT(good, 10000); /* the changes do not all end at the first check */
}

SL_TEST(parse, random_bytes_against_oracle)
{
	struct sl_parse_local local;
	uint8_t frame[128];
	static const uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x2121, 0x8100, 0x88a8};

	local_default(&local, 0);
	for (int i = 0; i < 100000 && !sl_test_failed(); i++) {
		const size_t len = sl_test_rand() % sizeof(frame);

		sl_test_rand_bytes(frame, sizeof(frame));
		memcpy(frame, us_mac, 6);
		frame[6] &= 0xfe;
		sl_put16be(frame + 12, types[sl_test_rand() % 6]);
		(void)agree(&local, frame, len, (uint32_t)sl_test_rand() & 7, "random bytes");
	}
}

SL_TEST(parse, unfilled_checksums_by_option)
{
	struct sl_parse_local local;
	struct sl_parsed out;
	uint8_t frame[256];

	local_default(&local, 0);
	for (unsigned family = 4; family <= 6; family += 2) {
		struct frame_spec s = {.family = (uint8_t)family, .fmp_len = 60};
		const size_t len = frame_make(frame, &s), field = len - 60 - 2;

		frame[field] ^= 0x55; /* as a kernel leaves it: the pseudo header's sum only */
		SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_DROP_UDP_CHECKSUM);
		local.skip_udp_checksum = true;
		SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_FORWARD);
		frame[field] = frame[field + 1] = 0;
		SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), family == 4 ? SL_FORWARD : SL_DROP_UDP_CHECKSUM);
		local.skip_udp_checksum = false;
	}
}

/* A UDP packet whose checksum comes out as zero carries FFFF. */
SL_TEST(parse, computed_zero_is_ffff)
{
	struct sl_parse_local local;
	struct sl_parsed out;
	uint8_t frame[256];

	local_default(&local, 0);
	for (unsigned family = 4; family <= 6; family += 2) {
		struct frame_spec s = {.family = (uint8_t)family, .fmp_len = 60};
		const size_t len = frame_make(frame, &s), field = len - 60 - 2;
		/* Two payload bytes at an even offset take what the checksum was: the sum becomes FFFF without it. */
		uint16_t c = sl_get16be(frame + field), w = sl_get16be(frame + len - 2);
		uint32_t sum = (uint32_t)c + w;

		sum = (sum & 0xffff) + (sum >> 16);
		sl_put16be(frame + len - 2, (uint16_t)sum);
		sl_put16be(frame + field, 0xffff);
		SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_FORWARD);
		sl_put16be(frame + field, 0);
		SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), family == 4 ? SL_FORWARD : SL_DROP_UDP_CHECKSUM);
	}
}

SL_TEST(parse, port_without_transports)
{
	struct sl_parse_local local;
	struct sl_parsed out;
	uint8_t frame[256];
	struct frame_spec s = {.family = 0, .fmp_len = 60};
	struct sl_ifaddr a = ifaddr4(192, 0, 2, 1, 24);
	size_t len;

	sl_parse_local_init(&local, us_mac, 0, 0);
	len = frame_make(frame, &s);
	SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_DROP_ETH_TYPE);
	s.family = 4;
	len = frame_make(frame, &s);
	SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_DROP_NOT_OURS);
	SL_EXPECT_EQ(sl_parse_local_addr(&local, &a), 0);
	SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_DROP_UDP_PORT);
	SL_EXPECT_EQ(sl_parse_local_eth(&local, 1, 0x88b5), 0); /* another EtherType is ours */
	s.family = 0;
	len = frame_make(frame, &s);
	SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_DROP_ETH_TYPE);
	sl_put16be(frame + 12, 0x88b5);
	SL_EXPECT_EQ(parse_copy(&local, frame, len, 0, &out), SL_FORWARD);
}

SL_TEST(parse_local, addresses_are_checked)
{
	struct sl_parse_local l;
	struct sl_ifaddr a = ifaddr4(192, 0, 2, 1, 24), v6 = ifaddr6("20010db8000000000000000000000001", 64), bad;
	uint8_t ll[16];

	sl_parse_local_init(&l, us_mac, 0, 0);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &a), 0);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &a), -EEXIST);
	SL_EXPECT_EQ(l.ip6_count, 0);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &v6), 0);
	SL_EXPECT_EQ(l.ip6_count, 2);
	sl_test_unhex(ll, 16, "fe80000000000000000000fffe000001");
	SL_EXPECT_MEM(l.ip6[0], ll, 16);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &v6), -EEXIST);
	bad = ifaddr4(224, 0, 0, 1, 24);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), -EINVAL);
	bad = ifaddr4(0, 0, 0, 0, 24);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), -EINVAL);
	bad = ifaddr4(10, 0, 0, 1, 33);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), -EINVAL);
	bad = ifaddr6("ff020000000000000000000000000001", 64);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), -EINVAL);
	bad.family = 5;
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), -EINVAL);
	for (uint8_t i = 2; i <= SL_PORT_ADDRS_MAX; i++) {
		bad = ifaddr4(192, 0, 2, i, 24);
		SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), 0);
	}
	bad = ifaddr4(192, 0, 2, 99, 24);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), -ENOSPC);
	/* A link-local address given by hand is the only one. */
	sl_parse_local_init(&l, us_mac, 0, 0);
	bad = ifaddr6("fe800000000000000000000000001234", 64);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &bad), 0);
	SL_EXPECT_EQ(sl_parse_local_addr(&l, &v6), 0);
	SL_EXPECT_EQ(l.ip6_count, 2);
	SL_EXPECT_EQ(sl_parse_local_udp(&l, 1, 0, true, false, NULL), -EINVAL);
	SL_EXPECT_EQ(sl_parse_local_udp(&l, 1, 1, false, false, NULL), -EINVAL);
	SL_EXPECT_EQ(sl_parse_local_udp(&l, 1, 1, true, false, &v6), -EINVAL);
	SL_EXPECT_EQ(sl_parse_local_eth(&l, 1, 0x0800), -EINVAL);
	SL_EXPECT_EQ(sl_parse_local_eth(&l, 1, 0x05dc), -EINVAL);
	SL_EXPECT_EQ(sl_parse_local_eth(&l, 1, 0x2121), 0);
	SL_EXPECT_EQ(sl_parse_local_eth(&l, 2, 0x2121), -EEXIST);
}

/* STUN answers and punch packets: for control while it waits for them, over UDP only, whatever the family. */
SL_TEST(parse, traversal)
{
	static const struct {
		const char *what, *hex;
		uint8_t len;
		enum sl_verdict idle, nat; /* over UDP: control does not wait, it does */
	} rows[] = {
		{"probe", "4e50544300000007abe633f3a47a2758174eabe9160daf36", 24, SL_DROP_NPT, SL_PUNT},
		{"ack", "4e50544100000007abe633f3a47a2758174eabe9160daf36", 24, SL_DROP_NPT, SL_PUNT},
		{"probe and more", "4e50544300000007abe633f3a47a2758174eabe9160daf36ff", 25, SL_DROP_NPT, SL_PUNT},
		{"short probe", "4e50544300000007abe633f3a47a2758174eabe9160daf", 23, SL_DROP_NPT, SL_DROP_NPT},
		{"another magic", "4e50544200000007abe633f3a47a2758174eabe9160daf36", 24, SL_DROP_FMP_VERSION, SL_DROP_FMP_VERSION},
		{"STUN answer", "0101000c2112a442b7e7a701bc34d686fa87dfae002000080001a147e112a643", 32, SL_DROP_FMP_LENGTH, SL_PUNT},
		{"STUN error", "011100002112a442b7e7a701bc34d686fa87dfae", 20, SL_DROP_FMP_LENGTH, SL_PUNT},
		{"STUN request", "000100002112a442b7e7a701bc34d686fa87dfae", 20, SL_DROP_FMP_SHORT, SL_DROP_FMP_SHORT},
		{"STUN cookie", "0101000c2112a443b7e7a701bc34d686fa87dfae002000080001a147e112a643", 32, SL_DROP_FMP_LENGTH,
			SL_DROP_FMP_LENGTH},
		{"STUN length", "010100082112a442b7e7a701bc34d686fa87dfae002000080001a147e112a643", 32, SL_DROP_FMP_LENGTH,
			SL_DROP_FMP_LENGTH},
	};
	struct sl_parse_local local;
	struct sl_parsed out;
	uint8_t frame[256];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned family = 0; family <= 6; family += family ? 2 : 4)
			for (unsigned nat = 0; nat < 2; nat++) {
				const struct frame_spec spec = {.family = (uint8_t)family, .fmp_len = rows[i].len, .no_checksum = family == 4};
				const size_t len = frame_make(frame, &spec);
				const enum sl_verdict want = nat && family ? rows[i].nat : rows[i].idle;

				local_default(&local, 0);
				local.skip_udp_checksum = family == 6;
				local.nat = (uint8_t)nat;
				sl_test_unhex(frame + len - rows[i].len, rows[i].len, rows[i].hex);
				SL_EXPECT_MSG(agree(&local, frame, len, 0, rows[i].what) == want, "%s, family %u, nat %u", rows[i].what,
					family, nat);
				if (want == SL_PUNT && parse_copy(&local, frame, len, 0, &out) == want) {
					SL_EXPECT_EQ(out.kind, SL_PARSE_TRAVERSAL);
					SL_EXPECT_EQ(out.len, rows[i].len);
					SL_EXPECT_EQ(out.from.udp_port, 5555);
				}
			}
	/* As long as an FMP msg1, with its length field: the second byte tells them apart. */
	{
		const struct frame_spec spec = {.family = 4, .fmp_len = 114, .no_checksum = true};
		const size_t len = frame_make(frame, &spec);

		local_default(&local, 0);
		local.nat = 1;
		sl_test_unhex(frame + len - 114, 8, "0101006e2112a442");
		SL_EXPECT_EQ(agree(&local, frame, len, 0, "no multiple of four"), SL_DROP_FMP_LENGTH);
		sl_test_unhex(frame + len - 114, 8, "01006e0011111111");
		SL_EXPECT_EQ(agree(&local, frame, len, 0, "msg1"), SL_PUNT);
	}
}

SL_TEST(verdict, names)
{
	for (unsigned i = 0; i < SL_VERDICT_COUNT; i++) {
		SL_EXPECT(sl_verdict_name((enum sl_verdict)i)[0] != 0);
		SL_EXPECT(sl_verdict_meaning((enum sl_verdict)i)[0] != 0);
		for (unsigned k = 0; k < i; k++)
			SL_EXPECT(strcmp(sl_verdict_name((enum sl_verdict)i), sl_verdict_name((enum sl_verdict)k)) != 0);
	}
	SL_EXPECT_STR(sl_verdict_name(SL_DROP_NPT), "drop_nat_probe");
	SL_EXPECT_STR(sl_verdict_name((enum sl_verdict)SL_VERDICT_COUNT), "unknown");
}

/* A header of multicast DNS to its group, from a neighbour. */
static size_t
mdns_frame(uint8_t *frame, unsigned family)
{
	const struct frame_spec spec = {.family = (uint8_t)family, .fmp_len = 12};
	const size_t len = frame_make(frame, &spec), ip = family == 4 ? 20 : 40, addrs = family == 4 ? 4 : 16;
	uint8_t *udp = frame + 14 + ip;
	uint16_t sum;

	memcpy(frame, family == 4 ? "\x01\0\x5e\0\0\xfb" : "\x33\x33\0\0\0\xfb", 6);
	memcpy(udp - addrs, family == 4 ? "\xe0\0\0\xfb" : "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\xfb", addrs);
	memset(udp + 8, 0, 12);
	sl_put16be(udp, 5353);
	sl_put16be(udp + 2, 5353);
	if (family == 4) {
		frame[24] = frame[25] = 0;
		sum = (uint16_t)~sl_cksum_ip4(frame + 14);
		memcpy(frame + 24, &sum, 2);
	}
	udp[6] = udp[7] = 0;
	sum = (uint16_t)~sl_cksum_fold(sl_cksum_add(sl_cksum_pseudo(udp - 2 * addrs, 2 * addrs, SL_IPPROTO_UDP, 20), udp, 20));
	memcpy(udp + 6, &sum, 2);
	return len;
}

/* Multicast DNS: to its groups, its port, on a port that speaks it; whatever is broken has its own reason. */
SL_TEST(parse, multicast_dns)
{
	enum { MAC = 0, IP = 14 };
	static const struct {
		const char *what;
		unsigned at, value; /* of a sound frame to the group; at 0: none is changed */
		enum sl_verdict want4, want6;
	} rows[] = {
		{"sound", 0, 0, SL_PUNT, SL_PUNT},
		{"MAC of another group", MAC + 5, 0xfc, SL_DROP_NOT_OURS, SL_PUNT}, /* IPv6's 33:33 are not told apart */
		{"multicast source MAC", MAC + 6, 0x03, SL_DROP_SOURCE, SL_DROP_SOURCE},
		{"another group", IP + 19, 0xfc, SL_DROP_NOT_OURS, SL_DROP_UDP_CHECKSUM},
		{"another group", IP + 39, 0xfc, SL_DROP_UDP_CHECKSUM, SL_DROP_NOT_OURS},
		{"no UDP", IP + 9, 2, SL_DROP_NOT_OURS, SL_DROP_UDP_CHECKSUM},
		{"ICMPv6", IP + 6, 58, SL_DROP_FRAGMENT, SL_DROP_NOT_OURS},
		{"from a group", IP + 12, 0xe0, SL_DROP_SOURCE, SL_DROP_UDP_CHECKSUM},
		{"from a group", IP + 8, 0xff, SL_PUNT, SL_DROP_SOURCE}, /* IPv4's TTL */
		{"port of IPv4", IP + 23, 0xea, SL_DROP_UDP_PORT, SL_DROP_UDP_CHECKSUM},
		{"port of IPv6", IP + 43, 0xea, SL_PUNT, SL_DROP_UDP_PORT},
		{"content, group", IP + 30, 0xea, SL_DROP_UDP_CHECKSUM, SL_DROP_NOT_OURS},
		{"content of IPv6", IP + 50, 0xea, SL_PUNT, SL_DROP_UDP_CHECKSUM},
	};
	struct sl_parse_local local;
	struct sl_parsed out;
	uint8_t frame[256];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned family = 4; family <= 6; family += 2)
			for (unsigned mdns = 0; mdns < 2; mdns++) {
				const size_t len = mdns_frame(frame, family);
				enum sl_verdict want = family == 4 ? rows[i].want4 : rows[i].want6;
				uint32_t hints = 0;

				local_default(&local, 0);
				local.mdns = mdns;
				if (rows[i].at)
					frame[rows[i].at] = (uint8_t)rows[i].value;
				if (family == 4 && rows[i].at >= IP && rows[i].at < IP + 20)
					hints = SL_RX_IP_GOOD; /* it is not the header's checksum that is asked about */
				if (!mdns) {
					SL_EXPECT_NE(agree(&local, frame, len, hints, rows[i].what), SL_PUNT);
					continue;
				}
				SL_EXPECT_MSG(agree(&local, frame, len, hints, rows[i].what) == want, "%s, family %u: %s, not %s", rows[i].what,
					family, text(parse_copy(&local, frame, len, hints, &out)), text(want));
				if (want == SL_PUNT && parse_copy(&local, frame, len, hints, &out) == want) {
					SL_EXPECT_EQ(out.kind, SL_PARSE_MDNS);
					SL_EXPECT_EQ(out.len, 12);
					SL_EXPECT_EQ(out.from.udp_port, 5353);
				}
			}
}

