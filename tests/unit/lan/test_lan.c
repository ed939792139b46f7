/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine: two nodes on a link of this test's, on a clock of this test's; and strangers. */
#include "sl_lan.h"
#include "sl_test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000)

struct node {
	struct sl_lan *lan;
	struct sl_mdns_self self;
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_mdns_ip ip;
	unsigned sent, found, gone;
	uint8_t found_key[SL_XONLY_BYTES];
	struct sl_mdns_ip found_ip;
	uint16_t found_port;
	uint32_t found_ttl_s;
	uint8_t last[SL_MDNS_MESSAGE_MAX];
	size_t last_len;
	struct node *peer; /* hears what this one sends */
};

static struct node a, b;
static uint64_t now;

static int
on_send(void *arg, unsigned port, uint8_t family, const uint8_t *message, size_t len)
{
	struct node *n = arg;

	SL_EXPECT_EQ(port, 0);
	SL_EXPECT_EQ(family, 4);
	n->sent++;
	memcpy(n->last, message, len);
	n->last_len = len;
	if (n->peer)
		sl_lan_input(n->peer->lan, 0, &n->ip, 5353, message, len, now);
	return 0;
}

static void
on_found(void *arg, unsigned port, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_mdns_ip *addrs, unsigned count, uint16_t udp_port,
	uint32_t ttl_s)
{
	struct node *n = arg;

	SL_EXPECT_EQ(port, 0);
	SL_EXPECT_GE(count, 1);
	n->found++;
	memcpy(n->found_key, xonly, SL_XONLY_BYTES);
	n->found_ip = addrs[0];
	n->found_port = udp_port;
	n->found_ttl_s = ttl_s;
}

static void
on_gone(void *arg, unsigned port, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct node *n = arg;

	(void)port;
	(void)xonly;
	n->gone++;
}

static void
make(struct node *n, const char *npub, uint8_t host, const char *scope, uint16_t port)
{
	const struct sl_lan_sink sink = {.arg = n, .send = on_send, .found = on_found, .gone = on_gone};
	struct sl_lan_ifaddr addr = {.ip = {4, {192, 0, 2, host}}, .prefix_len = 24, .told = true};

	memset(n, 0, sizeof(*n));
	SL_ASSERT(sl_npub_parse(n->xonly, npub) == 0);
	SL_ASSERT(sl_mdns_self_init(&n->self, "_fips._udp.local.", n->xonly, scope, port) == 0);
	n->ip = addr.ip;
	n->lan = sl_lan_create(&n->self, n->xonly, &sink, now);
	SL_ASSERT(n->lan != NULL);
	SL_EXPECT_EQ(sl_lan_port(n->lan, &addr, 1), 0);
}

static void
begin(const char *scope_a, const char *scope_b)
{
	now = 1000 * SECOND;
	make(&a, "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m", 1, scope_a, 2121);
	make(&b, "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le", 2, scope_b, 2122);
	a.peer = &b;
	b.peer = &a;
}

static void
end(void)
{
	sl_lan_destroy(a.lan);
	sl_lan_destroy(b.lan);
}

static void
run(uint64_t us)
{
	const uint64_t until = now + us;

	while (now < until) {
		uint64_t x = sl_lan_tick(a.lan, now), y = sl_lan_tick(b.lan, now);

		x = x < y ? x : y;
		SL_ASSERT(x > now);
		now = x < until ? x : until;
	}
}

SL_TEST(lan, two_find_each_other)
{
	begin("mesh", "mesh");
	run(SECOND);
	SL_EXPECT_GE(a.found, 1);
	SL_EXPECT_GE(b.found, 1);
	SL_EXPECT_MEM(a.found_key, b.xonly, SL_XONLY_BYTES);
	SL_EXPECT_MEM(&a.found_ip, &b.ip, sizeof(b.ip));
	SL_EXPECT_EQ(a.found_port, 2122);
	SL_EXPECT_EQ(a.found_ttl_s, SL_MDNS_TTL_S);
	sl_lan_goodbye(b.lan);
	SL_EXPECT_EQ(a.gone, 1);
	end();
}

/* A day costs a few messages an hour, and who is there is heard of again before his records run out. */
SL_TEST(lan, a_quiet_link)
{
	uint64_t last;
	unsigned had;

	begin("mesh", "mesh");
	run(3600 * SECOND);
	had = a.found;
	last = now;
	for (unsigned i = 0; i < 23 * 60; i++) {
		run(60 * SECOND);
		if (a.found != had)
			last = now;
		had = a.found;
		SL_EXPECT_LT(now - last, SL_MDNS_TTL_S * SECOND);
	}
	SL_EXPECT_LT(a.sent, 24 * 10);
	end();
}

SL_TEST(lan, scopes)
{
	begin("mesh", "other");
	run(10 * SECOND);
	SL_EXPECT_EQ(a.found + b.found, 0);
	SL_EXPECT_GT(sl_lan_counters(a.lan)[SL_LAN_SCOPE], 0);
	end();
	begin("", "other"); /* without one of its own it takes all; the other takes no one without */
	run(10 * SECOND);
	SL_EXPECT_GE(a.found, 1);
	SL_EXPECT_EQ(b.found, 0);
	end();
}

/* Who only looks tells nobody where he is. */
SL_TEST(lan, looking_only)
{
	begin("mesh", "mesh");
	sl_lan_destroy(a.lan);
	make(&a, "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m", 1, "mesh", 0);
	a.peer = &b;
	run(10 * SECOND);
	SL_EXPECT_GE(a.found, 1);
	SL_EXPECT_EQ(b.found, 0);
	SL_EXPECT_EQ(sl_lan_counters(a.lan)[SL_LAN_ANSWERS], 0);
	end();
}

/* Questions in numbers get one answer a second. */
SL_TEST(lan, answers_are_few)
{
	const struct sl_mdns_ip from = {4, {192, 0, 2, 7}};
	uint8_t q[512];
	uint64_t before;
	int len;

	begin("mesh", "mesh");
	run(100 * SECOND);
	b.peer = NULL;
	len = sl_mdns_build_browse(q, sizeof(q), &b.self);
	before = sl_lan_counters(b.lan)[SL_LAN_ANSWERS];
	for (unsigned i = 0; i < 1000; i++) {
		sl_lan_input(b.lan, 0, &from, 5353, q, (size_t)len, now);
		run(SECOND / 100);
	}
	SL_EXPECT_LE(sl_lan_counters(b.lan)[SL_LAN_ANSWERS] - before, 11);
	SL_EXPECT_GE(sl_lan_counters(b.lan)[SL_LAN_ANSWERS] - before, 8);
	end();
}

static void
say(const struct sl_mdns_ip *from, uint16_t port, const struct sl_mdns_ip *ips, unsigned count)
{
	struct sl_mdns_self it;
	uint8_t out[SL_MDNS_MESSAGE_MAX], xonly[SL_XONLY_BYTES];
	int len;

	SL_ASSERT(sl_npub_parse(xonly, "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d") == 0);
	SL_ASSERT(sl_mdns_self_init(&it, "_fips._udp.local.", xonly, "mesh", 2121) == 0);
	len = sl_mdns_build_answer(out, sizeof(out), &it, ips, count, false);
	sl_lan_input(a.lan, 0, from, port, out, (size_t)len, now);
}

/* Each kind that is not taken has its counter. */
SL_TEST(lan, strangers)
{
	static const struct sl_mdns_ip near = {4, {192, 0, 2, 7}}, far = {4, {203, 0, 113, 7}}, all = {4, {192, 0, 2, 255}}, six = {6, {0xfe, 0x80}};
	const uint64_t *c;
	uint8_t noise[64];

	begin("mesh", "mesh");
	a.peer = NULL;
	b.peer = NULL;
	c = sl_lan_counters(a.lan);
	say(&far, 5353, &near, 1);
	SL_EXPECT_EQ(c[SL_LAN_FAR], 1);
	say(&six, 5353, &near, 1); /* the port has no IPv6 address */
	SL_EXPECT_EQ(c[SL_LAN_FAR], 2);
	say(&a.ip, 5353, &near, 1); /* our own voice */
	SL_EXPECT_EQ(c[SL_LAN_FAR], 3);
	say(&near, 5354, &near, 1);
	SL_EXPECT_EQ(c[SL_LAN_PORT], 1);
	say(&near, 5353, &far, 1);
	say(&near, 5353, &all, 1);
	say(&near, 5353, &a.ip, 1);
	say(&near, 5353, &six, 1);
	say(&near, 5353, NULL, 0);
	SL_EXPECT_EQ(c[SL_LAN_NO_ADDRESS], 5);
	memset(noise, 0xff, sizeof(noise));
	sl_lan_input(a.lan, 0, &near, 5353, noise, sizeof(noise), now);
	SL_EXPECT_EQ(c[SL_LAN_FAULTY], 1);
	SL_EXPECT_EQ(a.found, 0);
	say(&near, 5353, &near, 1);
	SL_EXPECT_EQ(a.found, 1);
	for (unsigned i = 0; i < 100000; i++)
		say(&near, 5353, &near, 1);
	SL_EXPECT_LE(a.found, 200);
	SL_EXPECT_EQ(c[SL_LAN_HEARD], c[SL_LAN_LIMITED] + c[SL_LAN_FAR] + c[SL_LAN_PORT] + c[SL_LAN_FAULTY] + c[SL_LAN_FOUND] +
					      c[SL_LAN_NO_ADDRESS]);
	sl_lan_input(a.lan, 1, &near, 5353, noise, sizeof(noise), now); /* no such port */
	end();
}

/* Who tells a part is asked for the rest, once a second at the most. */
SL_TEST(lan, incomplete)
{
	static const struct sl_mdns_ip near = {4, {192, 0, 2, 7}};
	uint8_t ptr[128];
	unsigned before;

	begin("mesh", "mesh");
	a.peer = b.peer = NULL;
	run(5 * SECOND);
	before = a.sent;
	sl_test_unhex(ptr, 44, "000084000000000100000000055f66697073045f756470056c6f63616c00000c00010000119400040161c00c");
	sl_lan_input(a.lan, 0, &near, 5353, ptr, 44, now);
	SL_EXPECT_EQ(sl_lan_counters(a.lan)[SL_LAN_INCOMPLETE], 1);
	for (unsigned i = 0; i < 50; i++)
		sl_lan_input(a.lan, 0, &near, 5353, ptr, 44, now);
	run(SECOND / 10);
	SL_EXPECT_EQ(a.sent, before + 1);
	SL_EXPECT_EQ(a.last[5], 1); /* a question, of any type */
	SL_EXPECT_EQ(a.last[a.last_len - 3], 255);
	end();
}
