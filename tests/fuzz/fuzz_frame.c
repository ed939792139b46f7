/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A received frame; the first byte chooses the port (VLAN, checksums to be skipped), the NIC's hints, and whether
 * checksums are put right first, so that the deeper checks are reached.
 *
 * Checked: the inline parser, the complete one and the plain second parser of the unit tests give one verdict and one
 * result; the FMP packet lies inside the frame; a frame for neighbours does no harm there.
 */
#include "fuzz.h"
#include "net_test.h"

enum { CHOICE_VLAN = 1, CHOICE_SKIP = 2, CHOICE_IP_GOOD = 4, CHOICE_L4_GOOD = 8, CHOICE_STRIPPED = 16, CHOICE_REPAIR = 32,
	CHOICE_NAT = 64, CHOICE_MDNS = 128 };

static struct sl_parse_local local;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	const struct sl_ifaddr addrs[] = {{4, 24, {192, 0, 2, 1}}, {4, 25, {198, 51, 100, 1}},
		{6, 64, {0x20, 1, 0x0d, 0xb8, [15] = 1}}};

	(void)argc;
	(void)argv;
	sl_parse_local_init(&local, mac, 0, 2);
	for (unsigned i = 0; i < 3; i++)
		FUZZ_CHECK(sl_parse_local_addr(&local, &addrs[i]) == 0);
	FUZZ_CHECK(sl_parse_local_udp(&local, 3, 2121, true, true, NULL) == 0);
	FUZZ_CHECK(sl_parse_local_udp(&local, 4, 4000, false, false, &addrs[0]) == 0);
	FUZZ_CHECK(sl_parse_local_eth(&local, 5, 0x2121) == 0);
	return 0;
}

static void
put_sum(uint8_t *field, uint16_t sum)
{
	sum = (uint16_t)~sum;
	sl_put16be(field, sum ? sum : 0xffff);
}

/* Makes the IPv4 header checksum and the UDP checksum of plain frames right. */
static void
repair(uint8_t *f, size_t len)
{
	const size_t at = len >= 18 && f[12] == 0x81 ? 18 : 14;
	size_t header, n;
	uint8_t *udp, tail[4] = {0, 17, 0, 0};

	if (len < at + 20)
		return;
	if (f[at - 2] == 8 && f[at - 1] == 0) {
		header = (f[at] & 15) * 4u;
		n = sl_get16be(f + at + 2);
		if (header < 20 || n < header + 8 || len < at + n)
			return;
		f[at + 10] = f[at + 11] = 0;
		put_sum(f + at + 10, oracle_sum(0, f + at, header));
		udp = f + at + header;
		n -= header;
		sl_put16be(tail + 2, (uint16_t)n);
		udp[6] = udp[7] = 0;
		put_sum(udp + 6, oracle_sum(oracle_sum(oracle_sum(0, f + at + 12, 8), tail, 4), udp, n));
	} else if (f[at - 2] == 0x86 && f[at - 1] == 0xdd && len >= at + 48 && f[at + 6] == 17) {
		n = sl_get16be(f + at + 4);
		if (n < 8 || len < at + 40 + n)
			return;
		udp = f + at + 40;
		sl_put16be(tail + 2, (uint16_t)n);
		udp[6] = udp[7] = 0;
		put_sum(udp + 6, oracle_sum(oracle_sum(oracle_sum(0, f + at + 8, 32), tail, 4), udp, n));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_parse_local l = local;
	struct sl_parsed fast, slow, want, later, slow_later;
	enum sl_verdict v;
	uint32_t hints = 0;
	uint8_t choice, *frame;

	if (size < 1 || size > 65536)
		return 0;
	choice = data[0];
	size--;
	frame = malloc(size ? size : 1);
	FUZZ_CHECK(frame != NULL);
	memcpy(frame, data + 1, size);
	l.vlan = choice & CHOICE_VLAN ? 7 : 0;
	l.skip_udp_checksum = choice & CHOICE_SKIP;
	l.nat = (choice & CHOICE_NAT) != 0;
	l.mdns = (choice & CHOICE_MDNS) != 0;
	hints |= choice & CHOICE_IP_GOOD ? SL_RX_IP_GOOD : 0;
	hints |= choice & CHOICE_L4_GOOD ? SL_RX_L4_GOOD : 0;
	hints |= choice & CHOICE_STRIPPED ? SL_RX_VLAN_STRIPPED | SL_RX_VLAN_TCI(7) : 0;
	if (choice & CHOICE_REPAIR)
		repair(frame, size);
	v = oracle_parse(&l, frame, size, hints, &want);
	FUZZ_CHECK(sl_parse(&l, frame, size, hints, &fast) == v);
	FUZZ_CHECK(sl_parse_slow(&l, frame, size, hints, &slow) == v);
	/* The checksum left to the caller: the same once it has looked. */
	FUZZ_CHECK(sl_parse(&l, frame, size, hints | SL_RX_L4_LATER, &later) ==
		sl_parse_slow(&l, frame, size, hints | SL_RX_L4_LATER, &slow_later));
	if (v == SL_FORWARD)
		FUZZ_CHECK(later.checksum_due == slow_later.checksum_due &&
			(!later.checksum_due || sl_parse_checksum_good(later.from.kind, frame + later.offset, later.len)));
	if (v == SL_FORWARD || v == SL_PUNT) {
		FUZZ_CHECK(fast.kind == want.kind && fast.offset == want.offset && fast.len == want.len);
		FUZZ_CHECK(slow.kind == want.kind && slow.offset == want.offset && slow.len == want.len);
		FUZZ_CHECK((size_t)want.offset + want.len <= size);
		FUZZ_CHECK(want.kind == SL_PARSE_NEIGH ||
			(sl_addr_equal(&fast.from, &want.from) && sl_addr_equal(&slow.from, &want.from)));
	}
	free(frame);
	return 0;
}
