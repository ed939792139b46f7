/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_pmtu.h"
#include "sl_test.h"

static const uint8_t peer[16] = {203, 0, 113, 9}, peer6[16] = {0x20, 1, 0x0d, 0xb8, [15] = 9};

static struct sl_addr
to(uint8_t kind, const uint8_t *ip)
{
	struct sl_addr a = {.kind = kind, .udp_port = 2121};

	memcpy(a.u.ip6, ip, kind == SL_ADDR_UDP4 ? 4 : 16);
	return a;
}

SL_TEST(pmtu, lowers_only)
{
	struct sl_pmtu t = {0};
	const struct sl_addr a = to(SL_ADDR_UDP4, peer), b = to(SL_ADDR_UDP6, peer6);
	bool floored;
	uint64_t next;

	SL_EXPECT_EQ(sl_pmtu_lookup(&t, &a, 1), 0);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 4, peer, 1500, 1500, 1, &floored), 0);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 4, peer, 9000, 1500, 1, &floored), 0);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 4, peer, 1300, 1500, 1, &floored), 1300);
	SL_EXPECT(!floored);
	SL_EXPECT_EQ(sl_pmtu_lookup(&t, &a, 1), 1300);
	SL_EXPECT_EQ(sl_pmtu_lookup(&t, &b, 1), 0);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 4, peer, 1400, 1300, 2, &floored), 0);
	/* Forgotten after ten minutes. */
	SL_EXPECT(!sl_pmtu_expire(&t, SL_PMTU_AGE_US, &next));
	SL_EXPECT_EQ(next, SL_PMTU_AGE_US + 1);
	SL_EXPECT_EQ(sl_pmtu_lookup(&t, &a, next), 0);
	SL_EXPECT(sl_pmtu_expire(&t, next, &next));
	SL_EXPECT(next == UINT64_MAX);
}

SL_TEST(pmtu, floors)
{
	struct sl_pmtu t = {0};
	bool floored;

	SL_EXPECT_EQ(sl_pmtu_report(&t, 4, peer, 68, 1500, 1, &floored), 576);
	SL_EXPECT(floored);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 4, peer, 20, 576, 1, &floored), 0); /* nothing left to lower */
	SL_EXPECT(floored);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 6, peer6, 1279, 1500, 1, &floored), 1280);
	SL_EXPECT(floored);
	SL_EXPECT_EQ(sl_pmtu_report(&t, 6, peer6, 1280, 1500, 1, &floored), 1280);
	SL_EXPECT(!floored);
}

SL_TEST(pmtu, without_a_value)
{
	static const uint16_t want[] = {1492, 1280, 1006, 576, 0};
	struct sl_pmtu t = {0};
	uint16_t current = 1500;
	bool floored;

	for (unsigned i = 0; i < 5; i++) {
		const uint16_t got = sl_pmtu_report(&t, 4, peer, 0, current, 1, &floored);

		SL_EXPECT_EQ(got, want[i]);
		current = got ? got : current;
	}
}

SL_TEST(pmtu, full_table)
{
	struct sl_pmtu t = {0};
	uint8_t ip[16] = {10};
	bool floored;

	for (unsigned i = 0; i < 3 * SL_PMTU_ENTRIES; i++) {
		ip[3] = (uint8_t)i;
		SL_EXPECT_EQ(sl_pmtu_report(&t, 4, ip, 1000, 1500, i + 1, &floored), 1000);
	}
	for (unsigned i = 0; i < 3 * SL_PMTU_ENTRIES; i++) {
		struct sl_addr a;

		ip[3] = (uint8_t)i;
		a = to(SL_ADDR_UDP4, ip);
		SL_EXPECT_EQ(sl_pmtu_lookup(&t, &a, 200), i < 2 * SL_PMTU_ENTRIES ? 0 : 1000);
	}
}
