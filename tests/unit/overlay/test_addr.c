/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_addr.h"
#include "sl_bucket.h"
#include "sl_log.h"
#include "sl_test.h"
#include <errno.h>
#include <stdio.h>

SL_TEST(addr, udp_texts)
{
	static const char *good[] = {"192.0.2.1:2121", "0.0.0.0:1", "255.255.255.255:65535",
		"[2001:db8::1]:2121", "[::]:9", "[fe80::1]:2121", "[::ffff:192.0.2.1]:80"};
	char text[SL_ADDR_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct sl_addr a;

		memset(&a, 0xaa, sizeof(a));
		SL_EXPECT_EQ(sl_addr_parse_udp(&a, good[i]), 0);
		SL_EXPECT_EQ(a.kind, good[i][0] == '[' ? SL_ADDR_UDP6 : SL_ADDR_UDP4);
		SL_EXPECT(a.transport == 0 && a.vlan == 0 && a.link == 0);
		sl_addr_format(text, &a);
		SL_EXPECT_STR(text, good[i]);
	}
}

SL_TEST(addr, bad_udp_texts)
{
	static const char *bad[] = {"", ":", "[", "[]", "[]:", "192.0.2.1",
		"192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:123456",
		"192.0.2.1:4294967297", "192.0.2.1:+1", "192.0.2.1: 1", "192.0.2.1:1 ",
		"192.0.2.1:1x", "192.0.2:1", "192.0.2.1.5:1", "host:2121", "2001:db8::1:2121",
		"[2001:db8::1]2121", "[2001:db8::1]", "[2001:db8::1", "[192.0.2.1]:1",
		"[fe80::1%eth0]:1", "[::1]:", "[::1]:0",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1"};
	struct sl_addr before, a;

	memset(&before, 0xaa, sizeof(before));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = before;
		SL_EXPECT_MSG(sl_addr_parse_udp(&a, bad[i]) == -EINVAL, "taken: %s", bad[i]);
		SL_EXPECT_MEM(&a, &before, sizeof(a));
	}
}

SL_TEST(addr, mac_texts)
{
	static const char *bad[] = {"", "02", "02:00:00:00:00",
		"02:00:00:00:00:", "02:00:00:00:00:0", "02:00:00:00:00:01:", "02:00:00:00:00:011",
		"02-00-00-00-00-01", "0g:00:00:00:00:01", "2:0:0:0:0:1", " 02:00:00:00:00:01"};
	char text[SL_ADDR_TEXT_SIZE];
	struct sl_addr a;

	SL_EXPECT_EQ(sl_addr_parse_mac(&a, "02:AB:cd:00:fF:01"), 0);
	SL_EXPECT_EQ(a.kind, SL_ADDR_ETH);
	sl_addr_format(text, &a);
	SL_EXPECT_STR(text, "02:ab:cd:00:ff:01");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SL_EXPECT_MSG(sl_addr_parse_mac(&a, bad[i]) == -EINVAL, "taken: %s", bad[i]);
	memset(&a, 0, sizeof(a));
	sl_addr_format(text, &a);
	SL_EXPECT_STR(text, "none");
}

SL_TEST(addr, random_texts_round_trip)
{
	char text[SL_ADDR_TEXT_SIZE];

	for (int i = 0; i < 5000; i++) {
		struct sl_addr a, b;

		memset(&a, 0, sizeof(a));
		a.kind = (uint8_t)(SL_ADDR_UDP4 + sl_test_rand() % 3);
		if (a.kind != SL_ADDR_ETH)
			a.udp_port = (uint16_t)(1 + sl_test_rand() % 65535);
		sl_test_rand_bytes(&a.u, a.kind == SL_ADDR_UDP4	  ? 4
					 : a.kind == SL_ADDR_UDP6 ? 16
								  : 6);
		sl_addr_format(text, &a);
		SL_EXPECT_EQ(a.kind == SL_ADDR_ETH ? sl_addr_parse_mac(&b, text)
						   : sl_addr_parse_udp(&b, text),
			0);
		SL_EXPECT(sl_addr_equal(&a, &b));
		SL_EXPECT_EQ(sl_addr_hash(&a), sl_addr_hash(&b));
	}
}

SL_TEST(addr, every_bit_counts)
{
	struct sl_addr a, b;

	for (int i = 0; i < 200; i++) {
		sl_test_rand_bytes(&a, sizeof(a));
		for (unsigned bit = 0; bit < sizeof(a) * 8; bit++) {
			b = a;
			((uint8_t *)&b)[bit / 8] ^= (uint8_t)(1u << bit % 8);
			SL_EXPECT(!sl_addr_equal(&a, &b));
			SL_EXPECT(sl_addr_hash(&a) != sl_addr_hash(&b));
		}
	}
}

SL_TEST(bucket, burst_then_rate)
{
	struct sl_bucket b;
	uint64_t now = 5000000;
	unsigned taken = 0;

	sl_bucket_init(&b, 100, 10, now);
	for (int i = 0; i < 1000; i++)
		taken += sl_bucket_take(&b, now);
	SL_EXPECT_EQ(taken, 100);
	taken = 0;
	for (int i = 0; i < 10000; i++)
		taken += sl_bucket_take(&b, now += 1000); /* ten seconds */
	SL_EXPECT_GE(taken, 99);
	SL_EXPECT_LE(taken, 100);
	/* An hour of rest fills it to the burst and no further; a clock that stands still or goes back gives nothing. */
	now += 3600000000ull;
	taken = 0;
	for (int i = 0; i < 1000; i++)
		taken += sl_bucket_take(&b, now - (uint64_t)i % 2);
	SL_EXPECT_EQ(taken, 100);
}

struct heard {
	int calls;
	enum sl_log_level level;
	enum sl_log_topic topic;
	char text[64];
};

static void
hear(void *arg, enum sl_log_level level, enum sl_log_topic topic, const char *fmt, va_list ap)
{
	struct heard *h = arg;

	h->calls++;
	h->level = level;
	h->topic = topic;
	vsnprintf(h->text, sizeof(h->text), fmt, ap);
}

SL_TEST(log, hook)
{
	struct heard h = {0};

	sl_log(SL_LOG_ERROR, SL_TOPIC_LINK, "nobody listens: %d", 1);
	sl_log_set(hear, &h);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_ROUTE, "peer %u is %s", 7u, "up");
	SL_EXPECT_EQ(h.calls, 1);
	SL_EXPECT_EQ(h.level, SL_LOG_NOTICE);
	SL_EXPECT_EQ(h.topic, SL_TOPIC_ROUTE);
	SL_EXPECT_STR(h.text, "peer 7 is up");
	sl_log_set(NULL, NULL);
	sl_log(SL_LOG_ERROR, SL_TOPIC_LINK, "nobody listens again");
	SL_EXPECT_EQ(h.calls, 1);
}
