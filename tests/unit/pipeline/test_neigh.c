/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour machine in conversation: ARP, discovery, echo, routes, timers; hostile input. */
#include <errno.h>
#include <stdlib.h>
#include "net_test.h"
#include "sl_neigh.h"

#define SECOND 1000000ull
#define PORT LOCAL_LINK

/* What the machine did. */
struct world {
	struct sl_neigh *n;
	uint64_t now;
	uint8_t sent[64][SL_NEIGH_FRAME_MAX];
	size_t sent_len[64];
	uint16_t sent_port[64];
	unsigned sent_count;
	unsigned changes;
	uint16_t change_port;
	struct sl_ifaddr change_ip;
	bool change_has_mac;
	uint8_t change_mac[6];
	unsigned too_big_count;
	struct sl_ifaddr too_big_ip;
	uint16_t too_big_mtu, too_big_udp; /* quoted destination port, 0 = none quoted */
};
static struct world w;

static void
on_transmit(void *arg, uint16_t port, const uint8_t *frame, size_t len)
{
	struct world *x = arg;
	const unsigned i = x->sent_count++ % 64;

	SL_EXPECT_GE(len, 60);
	memcpy(x->sent[i], frame, len);
	x->sent_len[i] = len;
	x->sent_port[i] = port;
}

static void
on_changed(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *mac)
{
	struct world *x = arg;

	x->changes++;
	x->change_port = port;
	x->change_ip = *ip;
	x->change_has_mac = mac != NULL;
	if (mac)
		memcpy(x->change_mac, mac, 6);
}

static void
on_too_big(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *udp, uint16_t mtu)
{
	struct world *x = arg;

	x->too_big_count++;
	x->too_big_ip = *ip;
	x->too_big_mtu = mtu;
	x->too_big_udp = udp ? (uint16_t)(udp[2] << 8 | udp[3]) : 0;
}

static uint64_t
counter(enum sl_neigh_counter c)
{
	return sl_neigh_counters(w.n)[c];
}

/* Port PORT as in local_default(), with a gateway for each family. */
static void
start_with(const struct sl_neigh_config *config, uint16_t vlan)
{
	const struct sl_neigh_sink sink = {.arg = &w, .transmit = on_transmit, .changed = on_changed, .too_big = on_too_big};
	const struct sl_ifaddr addrs[] = {ifaddr4(192, 0, 2, 1, 24), ifaddr4(198, 51, 100, 1, 25),
		ifaddr6("20010db8000000000000000000000001", 64)};
	struct sl_static_route routes[3] = {{.family = 4, .prefix_len = 0}, {.family = 4, .prefix_len = 16}, {.family = 6}};
	struct sl_neigh_port port = {.port = PORT, .vlan = vlan, .mtu = 1500, .addrs = addrs, .addr_count = 3,
		.routes = routes, .route_count = 3};

	sl_test_unhex(routes[0].gateway, 4, "c00002fe");
	sl_test_unhex(routes[1].prefix, 4, "0a010000");
	sl_test_unhex(routes[1].gateway, 4, "c6336402");
	sl_test_unhex(routes[2].gateway, 16, "fe8000000000000000000000000000fe");
	memset(&w, 0, sizeof(w));
	w.now = 5 * SECOND;
	memcpy(port.mac, us_mac, 6);
	w.n = sl_neigh_create(config, &sink, w.now);
	SL_ASSERT(w.n != NULL);
	SL_EXPECT_EQ(sl_neigh_port_add(w.n, &port), 0);
	SL_EXPECT_EQ(w.sent_count, 4); /* two gratuitous ARP, two advertisements */
	w.sent_count = 0;
}

static void
start(void)
{
	start_with(NULL, 0);
}

static void
stop(void)
{
	sl_neigh_destroy(w.n);
	w.n = NULL;
}

/* Gives an exact-size copy on the heap. */
static void
input(const uint8_t *frame, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (len)
		memcpy(copy, frame, len);
	sl_neigh_input(w.n, PORT, copy, len, w.now);
	free(copy);
}

static void
input_named(const char *name)
{
	uint8_t frame[2048];

	for (unsigned i = 0; i < frame_table_count; i++) {
		if (strcmp(frame_table[i].name, name) == 0) {
			input(frame, frame_bytes(frame, &frame_table[i]));
			return;
		}
	}
	SL_EXPECT_MSG(false, "no frame %s", name);
}

static struct sl_addr
addr4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	struct sl_addr r = {.kind = SL_ADDR_UDP4, .udp_port = 2121, .u = {.ip4 = {a, b, c, d}}};

	return r;
}

static struct sl_addr
addr6(const char *hex, uint16_t link)
{
	struct sl_addr r = {.kind = SL_ADDR_UDP6, .udp_port = 2121, .link = link};

	sl_test_unhex(r.u.ip6, 16, hex);
	return r;
}

#define PEER4 addr4(192, 0, 2, 9)
#define PEER6 addr6("20010db8000000000000000000000009", 0)

static size_t
arp_frame(uint8_t *f, uint16_t op, const uint8_t *sha, const char *spa, const uint8_t *tha, const char *tpa, bool bcast)
{
	memset(f, 0, 60);
	memcpy(f, us_mac, 6);
	if (bcast)
		memset(f, 0xff, 6);
	memcpy(f + 6, sha, 6);
	sl_test_unhex(f + 12, 8, "0806 0001 0800 0604");
	sl_put16be(f + 20, op);
	memcpy(f + 22, sha, 6);
	sl_test_unhex(f + 28, 4, spa);
	if (tha)
		memcpy(f + 32, tha, 6);
	sl_test_unhex(f + 38, 4, tpa);
	return 60;
}

/* type 135 or 136; mac: its link-layer option, or none. */
static size_t
nd_frame(uint8_t *f, uint8_t type, uint8_t flags, const char *src, const char *dst, const char *target,
	const uint8_t *mac)
{
	const unsigned len = mac ? 32 : 24;
	uint8_t tail[8] = {0, 0, 0, (uint8_t)len, 0, 0, 0, 58};
	uint16_t sum;

	memset(f, 0, 100);
	memcpy(f, us_mac, 6);
	memcpy(f + 6, mac ? mac : peer_mac, 6);
	f[12] = 0x86;
	f[13] = 0xdd;
	f[14] = 0x60;
	f[19] = (uint8_t)len;
	f[20] = 58;
	f[21] = 255;
	sl_test_unhex(f + 22, 16, src);
	sl_test_unhex(f + 38, 16, dst);
	f[54] = type;
	f[58] = flags;
	sl_test_unhex(f + 62, 16, target);
	if (mac) {
		f[78] = type == 135 ? 1 : 2;
		f[79] = 1;
		memcpy(f + 80, mac, 6);
	}
	sum = (uint16_t)~oracle_sum(oracle_sum(oracle_sum(0, f + 22, 32), tail, 8), f + 54, len);
	sl_put16be(f + 56, sum);
	return 54 + len;
}

static void
refresh_nd_checksum(uint8_t *f)
{
	const unsigned len = f[18] * 256u + f[19];
	uint8_t tail[8] = {0, 0, f[18], f[19], 0, 0, 0, 58};

	f[56] = f[57] = 0;
	sl_put16be(f + 56, (uint16_t)~oracle_sum(oracle_sum(oracle_sum(0, f + 22, 32), tail, 8), f + 54, len));
}

#define US6_HEX "20010db8000000000000000000000001"
#define PEER6_HEX "20010db8000000000000000000000009"
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 0x77};

static void
peer_replies_arp(void)
{
	uint8_t f[60];

	input(f, arp_frame(f, 2, peer_mac, "c0000209", us_mac, "c0000201", false));
}

static const char *state_of(const char *hex, uint8_t family);

/* Lets time pass, from deadline to deadline as the caller of the library does. */
static void
advance(uint64_t until_us)
{
	for (uint64_t due = sl_neigh_tick(w.n, w.now); due <= until_us; due = sl_neigh_tick(w.n, w.now))
		w.now = due > w.now ? due : w.now + 1;
	w.now = until_us;
	(void)sl_neigh_tick(w.n, w.now);
}

/* --- ARP ---------------------------------------------------------------------------------------------------------- */

SL_TEST(neigh, arp_request_is_answered)
{
	static const char want[] = "020000000099 020000000001 0806 0001 0800 06 04 0002 020000000001 c0000201 020000000099 c0000209"
				   "000000000000000000000000000000000000";
	uint8_t expect[60];

	start();
	input_named("arp_request");
	SL_EXPECT_EQ(w.sent_count, 1);
	SL_EXPECT_EQ(w.sent_len[0], 60);
	sl_test_unhex(expect, 60, want);
	SL_EXPECT_MEM(w.sent[0], expect, 60);
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_ANSWERED), 1);
	/* Who asks is not learned. */
	SL_EXPECT(state_of("c0000209", 4) == NULL);
	stop();
}

SL_TEST(neigh, resolve_asks_and_learns)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;
	uint8_t want[60], frame[100];

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(hop.port, PORT);
	SL_EXPECT_EQ(hop.mtu, 1500);
	SL_EXPECT_MEM(hop.next_ip, to.u.ip4, 4);
	SL_EXPECT_EQ(w.sent_count, 1);
	sl_test_unhex(want, 60, "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 c0000201 000000000000 c0000209"
				"000000000000000000000000000000000000");
	SL_EXPECT_MEM(w.sent[0], want, 60);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(w.sent_count, 1); /* not asked again by asking us */
	memset(frame, 0x11, sizeof(frame));
	SL_EXPECT_EQ(sl_neigh_queue(w.n, &hop, frame, 90), 0);
	frame[20] = 0x22;
	SL_EXPECT_EQ(sl_neigh_queue(w.n, &hop, frame, 90), 0);
	SL_EXPECT_EQ(counter(SL_NEIGH_QUEUE_DROPPED), 1);
	input_named("arp_reply");
	SL_EXPECT_EQ(w.changes, 1);
	SL_EXPECT(w.change_has_mac);
	SL_EXPECT_MEM(w.change_mac, peer_mac, 6);
	SL_EXPECT_EQ(w.change_ip.prefix_len, 32);
	SL_EXPECT_MEM(w.change_ip.ip, to.u.ip4, 4);
	/* The frame that waited, the later of two. */
	SL_EXPECT_EQ(w.sent_count, 2);
	SL_EXPECT_EQ(w.sent_len[1], 90);
	SL_EXPECT_MEM(w.sent[1], peer_mac, 6);
	SL_EXPECT_EQ(w.sent[1][20], 0x22);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), 0);
	SL_EXPECT_MEM(hop.dst_mac, peer_mac, 6);
	SL_EXPECT_STR(state_of("c0000209", 4), "reachable");
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_LEARNED), 1);
	SL_EXPECT_EQ(sl_neigh_queue(w.n, &hop, frame, 20), 0); /* known by now: goes at once, padded */
	SL_EXPECT_EQ(w.sent_count, 3);
	SL_EXPECT_EQ(w.sent_len[2], 60);
	stop();
}

SL_TEST(neigh, three_tries_then_failed)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;
	uint8_t frame[64] = {0};

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(sl_neigh_queue(w.n, &hop, frame, 64), 0);
	SL_EXPECT_EQ(sl_neigh_tick(w.n, w.now), w.now + SECOND);
	for (int i = 0; i < 2; i++) {
		w.now += SECOND;
		SL_EXPECT_EQ(sl_neigh_tick(w.n, w.now), w.now + SECOND);
		SL_EXPECT_EQ(w.sent_count, 2 + i);
	}
	w.now += SECOND;
	(void)sl_neigh_tick(w.n, w.now);
	SL_EXPECT_EQ(w.sent_count, 3);
	SL_EXPECT_EQ(w.changes, 0); /* never had a MAC */
	SL_EXPECT_STR(state_of("c0000209", 4), "failed");
	SL_EXPECT_EQ(counter(SL_NEIGH_QUEUE_DROPPED), 1);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EHOSTUNREACH);
	SL_EXPECT_EQ(sl_neigh_queue(w.n, &hop, frame, 64), -EHOSTUNREACH);
	w.now += SECOND; /* a later call asks again */
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(w.sent_count, 4);
	advance(w.now + 3 * SECOND);
	SL_EXPECT_STR(state_of("c0000209", 4), "failed");
	w.now += 61 * SECOND;
	SL_EXPECT_EQ(sl_neigh_tick(w.n, w.now), UINT64_MAX);
	SL_EXPECT(state_of("c0000209", 4) == NULL);
	stop();
}

SL_TEST(neigh, held_is_confirmed_before_it_expires)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(sl_neigh_hold(w.n, &hop, w.now), 0);
	peer_replies_arp();
	w.sent_count = 0;
	for (int round = 0; round < 3; round++) {
		const uint64_t confirmed = w.now;

		advance(confirmed + 26 * SECOND - 1); /* 30 s less four tries */
		SL_EXPECT_STR(state_of("c0000209", 4), "reachable");
		SL_EXPECT_EQ(w.sent_count, 0);
		advance(confirmed + 26 * SECOND);
		SL_EXPECT_STR(state_of("c0000209", 4), "probe");
		SL_EXPECT_EQ(w.sent_count, 1);
		SL_EXPECT_MEM(w.sent[0], peer_mac, 6); /* unicast */
		SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), 0);
		w.now += SECOND / 2;
		peer_replies_arp();
		SL_EXPECT_STR(state_of("c0000209", 4), "reachable");
		w.sent_count = 0;
	}
	SL_EXPECT_EQ(w.changes, 1);
	/* Now it is silent: two unicast probes, one to all, then lost, then asked with growing distance. */
	advance(w.now + 29 * SECOND);
	SL_EXPECT_EQ(w.sent_count, 3);
	SL_EXPECT_MEM(w.sent[1], peer_mac, 6);
	SL_EXPECT_EQ(w.sent[2][0], 0xff);
	SL_EXPECT_EQ(w.changes, 2);
	SL_EXPECT(!w.change_has_mac);
	SL_EXPECT_STR(state_of("c0000209", 4), "failed");
	advance(w.now + 100 * SECOND);
	SL_EXPECT_GE(w.sent_count, 3 + 8);
	SL_EXPECT_LE(w.sent_count, 3 + 12);
	peer_replies_arp();
	SL_EXPECT_EQ(w.changes, 3);
	SL_EXPECT(w.change_has_mac);
	SL_EXPECT_STR(state_of("c0000209", 4), "reachable");
	sl_neigh_release(w.n, &hop, w.now);
	w.now += 31 * SECOND;
	(void)sl_neigh_tick(w.n, w.now);
	SL_EXPECT_STR(state_of("c0000209", 4), "stale");
	w.now += 601 * SECOND;
	(void)sl_neigh_tick(w.n, w.now);
	SL_EXPECT(state_of("c0000209", 4) == NULL);
	stop();
}

SL_TEST(neigh, stale_is_probed_when_resolved)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	peer_replies_arp();
	w.now += 40 * SECOND;
	(void)sl_neigh_tick(w.n, w.now);
	SL_EXPECT_STR(state_of("c0000209", 4), "stale");
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), 0);
	SL_EXPECT_STR(state_of("c0000209", 4), "probe");
	stop();
}

/* A machine replaced or moved: gratuitous ARP has the old place asked; silence there, and a question to all decides. */
SL_TEST(neigh, gratuitous_moves_known_neighbours_only)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;
	uint8_t f[60];

	start();
	input_named("arp_gratuitous");
	SL_EXPECT(state_of("c0000209", 4) == NULL);
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_IGNORED), 1);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(sl_neigh_hold(w.n, &hop, w.now), 0);
	peer_replies_arp();
	/* Just confirmed: a second opinion does not count yet. */
	input(f, arp_frame(f, 1, other_mac, "c0000209", NULL, "c0000209", true));
	SL_EXPECT_EQ(w.changes, 1);
	w.now += 2 * SECOND;
	w.sent_count = 0;
	input(f, arp_frame(f, 1, other_mac, "c0000209", NULL, "c0000209", true));
	SL_EXPECT_EQ(w.changes, 1);
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_UPDATED), 1);
	SL_EXPECT_STR(state_of("c0000209", 4), "probe");
	SL_EXPECT_EQ(w.sent_count, 1);
	SL_EXPECT_MEM(w.sent[0], peer_mac, 6);
	advance(w.now + 2 * SECOND);
	SL_EXPECT_EQ(w.sent_count, 3);
	SL_EXPECT_MEM(w.sent[1], peer_mac, 6);
	SL_EXPECT_EQ(w.sent[2][0], 0xff);
	input(f, arp_frame(f, 2, other_mac, "c0000209", us_mac, "c0000201", false));
	SL_EXPECT_EQ(w.changes, 2);
	SL_EXPECT_MEM(w.change_mac, other_mac, 6);
	SL_EXPECT_STR(state_of("c0000209", 4), "reachable");
	/* An unasked reply of a stranger changes nothing either. */
	input(f, arp_frame(f, 2, other_mac, "c000020a", us_mac, "c0000201", false));
	SL_EXPECT(state_of("c000020a", 4) == NULL);
	stop();
}

SL_TEST(neigh, arp_of_bad_senders)
{
	uint8_t f[60];
	static const uint8_t group[6] = {3, 0, 0, 0, 0, 1}, zero[6];

	start();
	input_named("arp_own_address");
	input(f, arp_frame(f, 2, peer_mac, "c0000201", us_mac, "c0000201", false));
	input(f, arp_frame(f, 1, peer_mac, "c6336401", NULL, "c6336401", true));
	SL_EXPECT_EQ(counter(SL_NEIGH_CONFLICT), 3);
	arp_frame(f, 1, peer_mac, "c0000209", NULL, "c0000201", true);
	memcpy(f + 22, group, 6);
	input(f, 60);
	memcpy(f + 22, zero, 6);
	input(f, 60);
	memcpy(f + 22, us_mac, 6);
	input(f, 60);
	input(f, arp_frame(f, 1, peer_mac, "e0000001", NULL, "c0000201", true));
	input(f, arp_frame(f, 1, peer_mac, "7f000001", NULL, "c0000201", true));
	input(f, arp_frame(f, 1, peer_mac, "0a090909", NULL, "c0000201", true)); /* off the link */
	input(f, arp_frame(f, 2, peer_mac, "00000000", us_mac, "c0000201", false));
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_SENDER), 7);
	SL_EXPECT_EQ(w.sent_count, 0);
	SL_EXPECT_EQ(w.changes, 0);
	/* A probe for our address (RFC 5227) is answered: the address is taken. */
	input(f, arp_frame(f, 1, peer_mac, "00000000", NULL, "c0000201", true));
	SL_EXPECT_EQ(w.sent_count, 1);
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_ANSWERED), 1);
	stop();
}

SL_TEST(neigh, arp_malformed)
{
	uint8_t f[60];
	static const struct {
		uint8_t at, value;
	} wrong[] = {{15, 2}, {16, 0x86}, {18, 5}, {18, 8}, {19, 16}, {19, 0}, {20, 1}, {21, 3}, {21, 0}};

	start();
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		arp_frame(f, 1, peer_mac, "c0000209", NULL, "c0000201", true);
		f[wrong[i].at] = wrong[i].value;
		input(f, 60);
		SL_EXPECT_EQ(counter(SL_NEIGH_ARP_MALFORMED), i + 1);
	}
	arp_frame(f, 1, peer_mac, "c0000209", NULL, "c0000201", true);
	for (size_t len = 0; len < 42; len++)
		input(f, len);
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_MALFORMED), sizeof(wrong) / sizeof(wrong[0]) + 28);
	SL_EXPECT_EQ(counter(SL_NEIGH_FRAME), 14);
	SL_EXPECT_EQ(w.sent_count, 0);
	stop();
}

SL_TEST(neigh, answers_are_limited)
{
	const struct sl_neigh_config c = {.answer_per_s = 10, .answer_burst = 5, .echo_per_s = 10, .echo_burst = 3};

	start_with(&c, 0);
	for (int i = 0; i < 20; i++) {
		input_named("arp_request");
		input_named("echo4");
	}
	SL_EXPECT_EQ(counter(SL_NEIGH_ARP_ANSWERED), 5);
	SL_EXPECT_EQ(counter(SL_NEIGH_ANSWER_LIMITED), 15);
	SL_EXPECT_EQ(counter(SL_NEIGH_ECHO_ANSWERED), 3);
	SL_EXPECT_EQ(counter(SL_NEIGH_ECHO_LIMITED), 17);
	w.now += SECOND / 5;
	for (int i = 0; i < 20; i++)
		input_named("echo4");
	SL_EXPECT_EQ(counter(SL_NEIGH_ECHO_ANSWERED), 5);
	stop();
}

/* --- discovery ---------------------------------------------------------------------------------------------------- */

SL_TEST(neigh, solicitations_are_answered)
{
	uint8_t want[86];

	start();
	input_named("ns");
	SL_EXPECT_EQ(w.sent_count, 1);
	SL_EXPECT_EQ(w.sent_len[0], 86);
	/* scapy: IPv6(src=2001:db8::1, dst=2001:db8::9, hlim=255)/ICMPv6ND_NA(R=0,S=1,O=1,tgt=2001:db8::1)/DstLLAddr */
	sl_test_unhex(want, 86,
		"020000000099020000000001 86dd 6000000000203aff 20010db8000000000000000000000001 20010db8000000000000000000000009"
		"88008a6c60000000 20010db8000000000000000000000001 0201020000000001");
	SL_EXPECT_MEM(w.sent[0], want, 86);
	input_named("ns_unicast"); /* without the option: back to where it came from */
	SL_EXPECT_EQ(w.sent_count, 2);
	SL_EXPECT_MEM(w.sent[1], peer_mac, 6);
	input_named("ns_unspecified"); /* somebody tries our address: told to all, not solicited */
	SL_EXPECT_EQ(w.sent_count, 3);
	SL_EXPECT_EQ(w.sent[2][0], 0x33);
	SL_EXPECT_EQ(w.sent[2][38], 0xff);
	SL_EXPECT_EQ(w.sent[2][58], 0x20);
	SL_EXPECT_EQ(counter(SL_NEIGH_NS_ANSWERED), 3);
	SL_EXPECT(state_of(PEER6_HEX, 6) == NULL);
	stop();
}

SL_TEST(neigh, resolve_by_solicitation)
{
	struct sl_addr to = PEER6;
	struct sl_neigh_hop hop;
	uint8_t f[128], want[86];

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(w.sent_count, 1);
	sl_test_unhex(want, 86,
		"3333ff000009020000000001 86dd 6000000000203aff 20010db8000000000000000000000001 ff0200000000000000000001ff000009"
		"8700 1c19 00000000 20010db8000000000000000000000009 0101020000000001");
	SL_EXPECT_MEM(w.sent[0], want, 86);
	/* An advertisement without its address is of no use yet. */
	input(f, nd_frame(f, 136, 0x60, PEER6_HEX, US6_HEX, PEER6_HEX, NULL));
	SL_EXPECT_EQ(w.changes, 0);
	SL_EXPECT_EQ(counter(SL_NEIGH_NA_IGNORED), 1);
	input_named("na");
	SL_EXPECT_EQ(w.changes, 1);
	SL_EXPECT_MEM(w.change_mac, peer_mac, 6);
	SL_EXPECT_EQ(w.change_ip.prefix_len, 128);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "reachable");
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), 0);
	SL_EXPECT_MEM(hop.dst_mac, peer_mac, 6);
	/* A probe may be answered without the address (RFC 4861, 7.2.4). */
	SL_EXPECT_EQ(sl_neigh_hold(w.n, &hop, w.now), 0);
	w.now += 26 * SECOND;
	(void)sl_neigh_tick(w.n, w.now);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "probe");
	SL_EXPECT_MEM(w.sent[1], peer_mac, 6);
	SL_EXPECT_MEM(w.sent[1] + 38, to.u.ip6, 16);
	input(f, nd_frame(f, 136, 0x40, PEER6_HEX, US6_HEX, PEER6_HEX, NULL));
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "reachable");
	SL_EXPECT_EQ(w.changes, 1);
	stop();
}

/* Forged answers by the thousand: the owner keeps its traffic as long as it answers. */
SL_TEST(neigh, forged_answers_do_not_move_a_neighbour_that_answers)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;
	uint8_t f[60];

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(sl_neigh_hold(w.n, &hop, w.now), 0);
	peer_replies_arp();
	for (int second = 0; second < 100; second++) {
		w.sent_count = 0;
		for (int i = 0; i < 20; i++) {
			input(f, arp_frame(f, 2, other_mac, "c0000209", us_mac, "c0000201", false));
			input(f, arp_frame(f, 1, other_mac, "c0000209", NULL, "c0000201", true));
			input(f, arp_frame(f, 1, other_mac, "c0000209", NULL, "c0000209", true));
			advance(w.now + SECOND / 20);
		}
		SL_EXPECT_LE(w.sent_count, 2 + 20); /* a probe and its retry, answers to the requests among them */
		peer_replies_arp();
		SL_EXPECT_STR(state_of("c0000209", 4), "reachable");
	}
	SL_EXPECT_EQ(w.changes, 1);
	stop();
}

SL_TEST(neigh, advertisements_by_rule)
{
	struct sl_addr to = PEER6;
	struct sl_neigh_hop hop;
	uint8_t f[128];

	start();
	input_named("na"); /* of a stranger */
	SL_EXPECT(state_of(PEER6_HEX, 6) == NULL);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	input_named("na");
	w.now += 2 * SECOND;
	/* Another MAC without override: not taken, but doubted. */
	input(f, nd_frame(f, 136, 0x00, PEER6_HEX, US6_HEX, PEER6_HEX, other_mac));
	SL_EXPECT_EQ(w.changes, 1);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "stale");
	/* With override: the old place is asked first. */
	input(f, nd_frame(f, 136, 0x20, PEER6_HEX, "ff020000000000000000000000000001", PEER6_HEX, other_mac));
	SL_EXPECT_EQ(w.changes, 1);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "probe");
	/* "Solicited" from another place does not answer the question that went to the old one. */
	input(f, nd_frame(f, 136, 0x60, PEER6_HEX, US6_HEX, PEER6_HEX, other_mac));
	SL_EXPECT_EQ(w.changes, 1);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "probe");
	/* It does once the old one was silent and all were asked. */
	advance(w.now + 2 * SECOND);
	input(f, nd_frame(f, 136, 0x60, PEER6_HEX, US6_HEX, PEER6_HEX, other_mac));
	SL_EXPECT_EQ(w.changes, 2);
	SL_EXPECT_MEM(w.change_mac, other_mac, 6);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "reachable");
	stop();
}

SL_TEST(neigh, discovery_hostile)
{
	struct sl_addr to = PEER6;
	struct sl_neigh_hop hop;
	uint8_t f[160];
	unsigned malformed = 0;

	start();
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	w.sent_count = 0;
	for (uint8_t type = 135; type <= 136; type++) {
		const char *target = type == 135 ? US6_HEX : PEER6_HEX;
		static const uint8_t group[6] = {3, 0, 0, 0, 0, 1};
		size_t len = nd_frame(f, type, 0x60, PEER6_HEX, US6_HEX, target, peer_mac);

		f[79] = 0; /* option length 0 */
		refresh_nd_checksum(f);
		input(f, len);
		f[79] = 2; /* past the end */
		refresh_nd_checksum(f);
		input(f, len);
		f[79] = 1;
		f[55] = 1; /* code */
		refresh_nd_checksum(f);
		input(f, len);
		malformed += 3;
		/* an option cut in its header, and a message cut in its target */
		for (unsigned n = 8; n < 32; n++) {
			(void)nd_frame(f, type, 0x60, PEER6_HEX, US6_HEX, target, peer_mac);
			if (n == 24)
				continue; /* whole, without an option */
			f[19] = (uint8_t)n;
			refresh_nd_checksum(f);
			input(f, 54 + n);
			malformed++;
		}
		len = nd_frame(f, type, 0x60, PEER6_HEX, US6_HEX, target, group); /* a group as link-layer address */
		f[6] = 2;
		input(f, len);
		malformed++;
		SL_EXPECT_EQ(counter(SL_NEIGH_ND_MALFORMED), malformed);
		for (unsigned n = 0; n < 8; n++) {
			(void)nd_frame(f, type, 0x60, PEER6_HEX, US6_HEX, target, peer_mac);
			f[19] = (uint8_t)n;
			input(f, 86);
		}
		SL_EXPECT_EQ(counter(SL_NEIGH_ICMP_MALFORMED), (type - 134) * 8);
		len = nd_frame(f, type, 0x60, PEER6_HEX, US6_HEX, target, peer_mac);
		f[21] = 254; /* from beyond the link */
		input(f, len);
		SL_EXPECT_EQ(counter(SL_NEIGH_ND_HOP_LIMIT), type - 134);
		f[21] = 255;
		f[56] ^= 1;
		input(f, len);
		SL_EXPECT_EQ(counter(SL_NEIGH_ICMP_CHECKSUM), type - 134);
		len = nd_frame(f, type, 0x60, PEER6_HEX, US6_HEX, "ff020000000000000000000000000001", peer_mac);
		input(f, len);
		SL_EXPECT_EQ(counter(SL_NEIGH_ND_TARGET), type - 134);
	}
	/* solicited flag to a group; our own address claimed; anonymous solicitation with an address or to unicast */
	input(f, nd_frame(f, 136, 0x60, PEER6_HEX, "ff020000000000000000000000000001", PEER6_HEX, peer_mac));
	input(f, nd_frame(f, 135, 0, "00000000000000000000000000000000", "ff0200000000000000000001ff000001", US6_HEX, peer_mac));
	input(f, nd_frame(f, 135, 0, "00000000000000000000000000000000", US6_HEX, US6_HEX, NULL));
	SL_EXPECT_EQ(counter(SL_NEIGH_ND_MALFORMED), malformed + 3);
	input(f, nd_frame(f, 136, 0x60, PEER6_HEX, US6_HEX, US6_HEX, peer_mac));
	input(f, nd_frame(f, 135, 0, US6_HEX, US6_HEX, US6_HEX, peer_mac));
	SL_EXPECT_EQ(counter(SL_NEIGH_CONFLICT), 2);
	SL_EXPECT_EQ(w.sent_count, 0);
	SL_EXPECT_EQ(w.changes, 0);
	SL_EXPECT_STR(state_of(PEER6_HEX, 6), "incomplete");
	stop();
}

/* --- echo --------------------------------------------------------------------------------------------------------- */

SL_TEST(neigh, echo_is_answered)
{
	uint8_t f[2048];
	size_t len = 0;

	start();
	input_named("echo4");
	SL_EXPECT_EQ(w.sent_count, 1);
	SL_EXPECT_MEM(w.sent[0], peer_mac, 6);
	SL_EXPECT_EQ(oracle_sum(0, w.sent[0] + 14, 20), 0xffff);
	SL_EXPECT_EQ(w.sent[0][34], 0);
	SL_EXPECT_EQ(oracle_sum(0, w.sent[0] + 34, 15), 0xffff);
	SL_EXPECT_MEM(w.sent[0] + 42, "abcdefg", 7);
	SL_EXPECT_EQ(sl_get16be(w.sent[0] + 16), 35);
	input_named("echo6");
	SL_EXPECT_EQ(w.sent_count, 2);
	SL_EXPECT_EQ(w.sent[1][54], 129);
	SL_EXPECT_MEM(w.sent[1] + 62, "abcdefg", 7);
	input_named("echo6_link_local");
	SL_EXPECT_EQ(w.sent_count, 3);
	SL_EXPECT_EQ(w.sent[2][22], 0xfe);
	SL_EXPECT_EQ(counter(SL_NEIGH_ECHO_ANSWERED), 3);
	/* Replies are frames that another one of us would call an (unanswered) ICMP message to it. */
	for (unsigned i = 0; i < 3; i++) {
		struct sl_parse_local peer;
		struct sl_parsed out;
		const struct sl_ifaddr a = ifaddr4(192, 0, 2, 9, 24), b = ifaddr6(PEER6_HEX, 64);

		sl_parse_local_init(&peer, peer_mac, 0, 0);
		SL_EXPECT_EQ(sl_parse_local_addr(&peer, &a), 0);
		SL_EXPECT_EQ(sl_parse_local_addr(&peer, &b), 0);
		SL_EXPECT_EQ(parse_copy(&peer, w.sent[i], w.sent_len[i], 0, &out), SL_DROP_ICMP);
	}
	/* every truncation, wrong checksum, fragments, spoofed as ours */
	for (unsigned i = 0; i < frame_table_count; i++) {
		if (strcmp(frame_table[i].name, "echo4") != 0)
			continue;
		len = frame_bytes(f, &frame_table[i]);
	}
	w.sent_count = 0;
	for (size_t n = 0; n < 14 + 20 + 15; n++)
		input(f, n);
	SL_EXPECT_GT(counter(SL_NEIGH_FRAME), 40);
	f[42] ^= 1;
	input(f, len);
	SL_EXPECT_EQ(counter(SL_NEIGH_ICMP_CHECKSUM), 1);
	SL_EXPECT_EQ(w.sent_count, 0);
	stop();
}

SL_TEST(neigh, too_big_is_passed_on)
{
	const uint8_t peer4[4] = {192, 0, 2, 9};
	uint8_t ip6[16];

	start();
	input_named("frag_needed4");
	SL_EXPECT_EQ(w.too_big_count, 1);
	SL_EXPECT_EQ(w.too_big_mtu, 1300);
	SL_EXPECT_MEM(w.too_big_ip.ip, peer4, 4);
	input_named("too_big6");
	SL_EXPECT_EQ(w.too_big_count, 2);
	sl_test_unhex(ip6, 16, PEER6_HEX);
	SL_EXPECT_MEM(w.too_big_ip.ip, ip6, 16);
	SL_EXPECT_EQ(counter(SL_NEIGH_TOO_BIG), 2);
	stop();
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

SL_TEST(neigh, routes)
{
	const struct {
		struct sl_addr to;
		int rc;
		const char *next, *src;
	} cases[] = {
		{addr4(192, 0, 2, 77), -EINPROGRESS, "c000024d", "c0000201"},
		{addr4(198, 51, 100, 5), -EINPROGRESS, "c6336405", "c6336401"},
		{addr4(198, 51, 100, 200), -EINPROGRESS, "c00002fe", "c0000201"}, /* beyond the /25: default */
		{addr4(10, 1, 2, 3), -EINPROGRESS, "c6336402", "c6336401"},	  /* the longer prefix */
		{addr4(10, 2, 2, 3), -EINPROGRESS, "c00002fe", "c0000201"},
		{addr4(192, 0, 2, 1), -EINVAL, NULL, NULL},   /* ourselves */
		{addr4(192, 0, 2, 255), -EINVAL, NULL, NULL}, /* broadcast */
		{addr4(255, 255, 255, 255), -EINVAL, NULL, NULL},
		{addr4(224, 0, 0, 1), -EINVAL, NULL, NULL},
		{addr4(127, 0, 0, 1), -EINVAL, NULL, NULL},
		{addr6("20010db8000000000000000000000055", 0), -EINPROGRESS, "20010db8000000000000000000000055", US6_HEX},
		{addr6("20010db8000000010000000000000055", 0), -EINPROGRESS, "fe8000000000000000000000000000fe",
			"fe80000000000000000000fffe000001"},
		{addr6("fe800000000000000000000000000055", PORT), -EINPROGRESS, "fe800000000000000000000000000055",
			"fe80000000000000000000fffe000001"},
		{addr6("fe800000000000000000000000000055", 1), -ENETUNREACH, NULL, NULL},
		{addr6("ff020000000000000000000000000001", PORT), -EINVAL, NULL, NULL},
		{addr6("00000000000000000000000000000001", 0), -EINVAL, NULL, NULL},
		{addr6(US6_HEX, 0), -EINVAL, NULL, NULL},
	};
	struct sl_addr eth = {.kind = SL_ADDR_ETH, .link = PORT, .u = {.mac = {2, 0, 0, 0, 0, 5}}};
	struct sl_neigh_hop hop;
	uint8_t ip[16];

	start();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t bytes = cases[i].to.kind == SL_ADDR_UDP4 ? 4 : 16;
		const int rc = sl_neigh_resolve(w.n, &cases[i].to, &hop, w.now);

		SL_EXPECT_MSG(rc == cases[i].rc, "case %u: %d", i, rc);
		if (!cases[i].next || rc != cases[i].rc)
			continue;
		sl_test_unhex(ip, bytes, cases[i].next);
		SL_EXPECT_MEM(hop.next_ip, ip, bytes);
		sl_test_unhex(ip, bytes, cases[i].src);
		SL_EXPECT_MEM(hop.src_ip, ip, bytes);
	}
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &eth, &hop, w.now), 0);
	SL_EXPECT_MEM(hop.dst_mac, eth.u.mac, 6);
	SL_EXPECT_EQ(sl_neigh_hold(w.n, &hop, w.now), 0);
	sl_neigh_release(w.n, &hop, w.now);
	eth.link = 7;
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &eth, &hop, w.now), -EINVAL);
	stop();
}

SL_TEST(neigh, no_route)
{
	const struct sl_neigh_sink sink = {.arg = &w, .transmit = on_transmit, .changed = on_changed};
	const struct sl_ifaddr a = ifaddr4(192, 0, 2, 1, 24);
	struct sl_static_route bad = {.family = 4};
	struct sl_neigh_port port = {.port = 0, .mtu = 1500, .addrs = &a, .addr_count = 1, .routes = &bad, .route_count = 1};
	struct sl_addr to = addr4(203, 0, 113, 1), to6 = PEER6;
	struct sl_neigh_hop hop;

	memset(&w, 0, sizeof(w));
	memcpy(port.mac, us_mac, 6);
	w.n = sl_neigh_create(NULL, &sink, 0);
	SL_ASSERT(w.n != NULL);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, 0), -ENETUNREACH);
	sl_test_unhex(bad.gateway, 4, "0a000001"); /* not on this link */
	SL_EXPECT_EQ(sl_neigh_port_add(w.n, &port), -EINVAL);
	sl_test_unhex(bad.gateway, 4, "c0000201"); /* ourselves */
	SL_EXPECT_EQ(sl_neigh_port_add(w.n, &port), -EINVAL);
	port.route_count = 0;
	SL_EXPECT_EQ(sl_neigh_port_add(w.n, &port), 0);
	SL_EXPECT_EQ(sl_neigh_port_add(w.n, &port), -EEXIST);
	port.port = SL_NEIGH_PORTS_MAX;
	SL_EXPECT_EQ(sl_neigh_port_add(w.n, &port), -EINVAL);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, 0), -ENETUNREACH);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to6, &hop, 0), -ENETUNREACH);
	stop();
}

/* --- table -------------------------------------------------------------------------------------------------------- */

SL_TEST(neigh, table_is_bounded)
{
	const struct sl_neigh_config c = {.entries_max = 8};
	struct sl_neigh_hop hops[8], hop;

	start_with(&c, 0);
	for (uint8_t i = 0; i < 100; i++) {
		struct sl_addr to = addr4(192, 0, 2, (uint8_t)(20 + i));

		SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, ++w.now), -EINPROGRESS);
	}
	SL_EXPECT_EQ(counter(SL_NEIGH_EVICTED), 92);
	for (uint8_t i = 0; i < 8; i++) { /* the last eight are still there */
		struct sl_addr to = addr4(192, 0, 2, (uint8_t)(20 + 92 + i));

		SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hops[i], ++w.now), -EINPROGRESS);
		SL_EXPECT_EQ(sl_neigh_hold(w.n, &hops[i], w.now), 0);
	}
	SL_EXPECT_EQ(counter(SL_NEIGH_EVICTED), 92);
	{
		struct sl_addr to = PEER4;

		SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, ++w.now), -ENOBUFS);
		SL_EXPECT_EQ(counter(SL_NEIGH_TABLE_FULL), 1);
		sl_neigh_release(w.n, &hops[3], w.now);
		SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, ++w.now), -EINPROGRESS);
		SL_EXPECT_EQ(counter(SL_NEIGH_EVICTED), 93);
	}
	stop();
}

SL_TEST(neigh, vlan_port)
{
	struct sl_addr to = PEER4;
	struct sl_neigh_hop hop;
	uint8_t f[64];

	start_with(NULL, 7);
	SL_EXPECT_EQ(sl_neigh_resolve(w.n, &to, &hop, w.now), -EINPROGRESS);
	SL_EXPECT_EQ(hop.vlan, 7);
	SL_EXPECT_EQ(sl_get32be(w.sent[0] + 12), 0x81000007);
	SL_EXPECT_EQ(sl_get16be(w.sent[0] + 16), 0x0806);
	peer_replies_arp(); /* tag stripped by the NIC */
	SL_EXPECT_EQ(w.changes, 1);
	(void)arp_frame(f, 1, peer_mac, "c0000209", NULL, "c0000201", true);
	memmove(f + 16, f + 12, 44);
	sl_test_unhex(f + 12, 4, "81000008");
	w.sent_count = 0;
	input(f, 60);
	SL_EXPECT_EQ(w.sent_count, 0);
	f[15] = 7;
	input(f, 60);
	SL_EXPECT_EQ(w.sent_count, 1);
	stop();
}

/* Whatever comes in, the machine stays bounded, sends no more than its limits, and learns nobody. */
SL_TEST(neigh, random_input)
{
	const struct sl_neigh_config c = {.answer_burst = 100, .answer_per_s = 1, .echo_burst = 100, .echo_per_s = 1};
	uint8_t f[2048];

	start_with(&c, 0);
	for (int i = 0; i < 100000; i++) {
		const struct frame_case *fc = &frame_table[sl_test_rand() % frame_table_count];
		size_t len = frame_bytes(f, fc);

		if (fc->kind != SL_PARSE_NEIGH && sl_test_rand() % 16)
			continue;
		for (unsigned n = sl_test_rand() % 3; n > 0; n--)
			f[sl_test_rand() % len] = (uint8_t)sl_test_rand();
		if (sl_test_rand() % 2 && len > 86 - 1 && f[12] == 0x86 && f[18] * 256u + f[19] <= len - 54)
			refresh_nd_checksum(f);
		input(f, sl_test_rand() % 8 ? len : sl_test_rand() % (len + 1));
		w.now += 10;
	}
	SL_EXPECT_LE(w.sent_count, 210);
	SL_EXPECT_EQ(w.changes, 0);
	SL_EXPECT_EQ(sl_neigh_tick(w.n, w.now), UINT64_MAX);
	stop();
}

static const char *found_state;
static uint8_t found_ip[16];
static void
look(void *arg, const struct sl_neigh_info *info)
{
	const uint8_t family = *(uint8_t *)arg;

	if (info->ip.family == family && memcmp(info->ip.ip, found_ip, family == 4 ? 4 : 16) == 0)
		found_state = info->state;
}

static const char *
state_of(const char *hex, uint8_t family)
{
	sl_test_unhex(found_ip, family == 4 ? 4 : 16, hex);
	found_state = NULL;
	sl_neigh_for_each(w.n, w.now, look, &family);
	return found_state;
}
