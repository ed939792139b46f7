/* SPDX-License-Identifier: BSD-3-Clause */
/* Two nodes and what can happen to their handshakes. Link layer facts, section 7. */
#include "link_net.h"

/* Both up, on the same session, once each, and data gets through. */
static void
expect_one_link(struct node *n[2])
{
	struct sl_link_info a, b;

	SL_EXPECT(net_linked(n[0], n[1]));
	if (!net_info(n[0], n[1], &a) || !net_info(n[1], n[0], &b)) {
		SL_EXPECT_MSG(false, "a node knows nothing of the other");
		return;
	}
	SL_EXPECT_EQ(a.rx_index, b.tx_index);
	SL_EXPECT_EQ(b.rx_index, a.tx_index);
	SL_EXPECT_EQ(a.k, b.k);
	SL_EXPECT_EQ(n[0]->ups, 1);
	SL_EXPECT_EQ(n[1]->ups, 1);
	SL_EXPECT(net_carries(n[0], n[1]));
}

SL_TEST(links, either_side_dials)
{
	for (unsigned dialler = 0; dialler < 2; dialler++) {
		struct net *net = net_create();
		struct node *n[2];
		struct sl_link_info info;

		net_pair(net, n, NULL);
		net_configure(n[dialler], n[!dialler]);
		SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
		/* msg1, msg2 and the dialler's heartbeat: three trips. */
		SL_EXPECT_LE(net->now_us, 1000 * NET_S + 3 * net->delay_us + NET_MS);
		expect_one_link(n);
		SL_EXPECT(net_info(n[dialler], n[!dialler], &info) && info.outbound);
		SL_EXPECT(net_info(n[!dialler], n[dialler], &info) && !info.outbound);
		net_run(net, 100 * NET_S);
		expect_one_link(n);
		SL_EXPECT_GE(net_counter(n[0], SL_LINK_HEARTBEAT_TX), 10);
		SL_EXPECT_LE(net_counter(n[0], SL_LINK_HEARTBEAT_TX), 13);
		net_destroy(net);
	}
}

/* --- single losses --- */

struct lose {
	uint8_t phase;
	struct node *from; /* NULL = any */
	unsigned times;
	unsigned lost;
};

static void
lose_tap(struct net *net, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	struct lose *l = arg;

	(void)net, (void)to, (void)len;
	if ((bytes[0] & 0x0f) == l->phase && (!l->from || l->from == from) && l->lost < l->times) {
		l->lost++;
		fate->copies = 0;
	}
}

SL_TEST(links, msg1_lost)
{
	/* Sent at 0, 1, 3, 7, 15 s: link layer facts, section 10. */
	const uint64_t at_s[] = {0, 1, 3, 7, 15};

	for (unsigned times = 0; times < 5; times++) {
		struct net *net = net_create();
		struct lose lose = {.phase = SL_PHASE_MSG1, .times = times};
		struct node *n[2];

		net->tap = lose_tap;
		net->tap_arg = &lose;
		net_pair(net, n, NULL);
		net_configure(n[0], n[1]);
		SL_EXPECT(net_run_until_up(net, n[0], n[1], 30 * NET_S));
		SL_EXPECT_EQ((net->now_us - 1000 * NET_S) / NET_S, at_s[times]);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_RESENT), times);
		expect_one_link(n);
		net_destroy(net);
	}
}

SL_TEST(links, msg2_lost)
{
	struct net *net = net_create();
	struct lose lose = {.phase = SL_PHASE_MSG2, .times = 2};
	struct node *n[2];

	net->tap = lose_tap;
	net->tap_arg = &lose;
	net_pair(net, n, NULL);
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 30 * NET_S));
	SL_EXPECT_EQ((net->now_us - 1000 * NET_S) / NET_S, 3);
	/* One answer, computed once and sent three times. */
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_TX), 1);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_RESENT), 2);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG1_DUPLICATE), 2);
	expect_one_link(n);
	net_destroy(net);
}

SL_TEST(links, first_frames_lost)
{
	struct net *net = net_create();
	struct lose lose = {.phase = SL_PHASE_ESTABLISHED, .times = 3};
	struct node *n[2];

	net->tap = lose_tap;
	net->tap_arg = &lose;
	net_pair(net, n, NULL);
	net_configure(n[1], n[0]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 10 * NET_S));
	expect_one_link(n);
	net_destroy(net);
}

/* --- repeated and reordered --- */

static void
repeat_tap(struct net *net, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	(void)from, (void)to, (void)bytes, (void)len, (void)arg;
	fate->copies = 4;
	for (unsigned i = 1; i < 4; i++)
		fate->delay_us[i] = net->delay_us + sl_test_rand() % (3 * NET_S);
}

SL_TEST(links, everything_repeated_and_reordered)
{
	for (unsigned round = 0; round < 20; round++) {
		struct net *net = net_create();
		struct node *n[2];

		net->jitter_us = 200 * NET_MS;
		net->tap = repeat_tap;
		net_pair(net, n, NULL);
		if (round % 3 != 1)
			net_configure(n[0], n[1]);
		if (round % 3 != 0)
			net_configure(n[1], n[0]);
		net_run(net, 10 * NET_S);
		expect_one_link(n);
		SL_EXPECT_EQ(
			net_counter(n[0], SL_LINK_RX_AUTH) + net_counter(n[1], SL_LINK_RX_AUTH), 0);
		SL_EXPECT_GT(net_counter(n[0], SL_LINK_RX_REPLAY), 0);
		SL_EXPECT_LE(n[0]->data_received, n[1]->data_sent);
		net_destroy(net);
	}
}

/* --- crossing dials: every order in which the four handshake packets can arrive, every one of them
 * lost once --- */

struct crossing {
	uint64_t delay_us[2][3]; /* [sender][phase] of the first packet of its kind */
	bool lost[2][3];
	unsigned seen[2][3];
	struct node *n[2];
};
static unsigned smaller_kept, larger_kept, crossed;

static void
crossing_tap(struct net *net, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	struct crossing *c = arg;
	unsigned who = from == c->n[1], phase = bytes[0] & 0x0f;

	(void)net, (void)to, (void)len;
	if (c->seen[who][phase]++)
		return;
	fate->delay_us[0] = c->delay_us[who][phase];
	if (c->lost[who][phase])
		fate->copies = 0;
}

static void
crossing_run(const struct crossing *plan, uint64_t lead_us, unsigned first)
{
	struct net *net = net_create();
	struct crossing c = *plan;
	struct sl_link_info info;

	net_pair(net, c.n, NULL);
	net->tap = crossing_tap;
	net->tap_arg = &c;
	net_configure(c.n[first], c.n[!first]);
	net_run(net, lead_us);
	net_configure(c.n[!first], c.n[first]);
	net_run(net, 12 * NET_S);
	expect_one_link(c.n);
	crossed += net_counter(c.n[0], SL_LINK_CROSS_CONNECT) ||
		   net_counter(c.n[1], SL_LINK_CROSS_CONNECT);
	if (net_info(c.n[0], c.n[1], &info))
		*(info.outbound ? &smaller_kept : &larger_kept) += 1;
	net_run(net, 40 * NET_S);
	expect_one_link(c.n);
	if (sl_test_failed())
		printf("delays %d %d %d / %d %d %d ms, lost %d%d %d%d, lead %d ms, first %u\n",
			(int)(plan->delay_us[0][1] / 1000), (int)(plan->delay_us[0][2] / 1000),
			(int)(plan->delay_us[0][0] / 1000), (int)(plan->delay_us[1][1] / 1000),
			(int)(plan->delay_us[1][2] / 1000), (int)(plan->delay_us[1][0] / 1000),
			plan->lost[0][1], plan->lost[0][2], plan->lost[1][1], plan->lost[1][2],
			(int)(lead_us / 1000), first);
	net_destroy(net);
}

SL_TEST(links, crossing_dials_all_orders)
{
	const uint64_t steps[] = {1 * NET_MS, 10 * NET_MS, 25 * NET_MS, 60 * NET_MS};
	unsigned runs = 0;

	/* Six packets (msg1, msg2, first frame of either) with four delays each; both sides begin
	 * first. */
	for (unsigned v = 0; v < 4096 && !sl_test_failed(); v++) {
		struct crossing c = {0};

		for (unsigned i = 0; i < 6; i++)
			c.delay_us[i / 3][i % 3] = steps[v >> 2 * i & 3];
		crossing_run(&c, v & 1 ? 0 : 7 * NET_MS, v >> 1 & 1);
		runs++;
	}
	SL_EXPECT_EQ(runs, 4096);
	/* Both outcomes of the tie-break, and dials that met without one, have been seen. */
	printf("%u crossed, the smaller node's handshake stayed in %u, the larger's in %u\n",
		crossed, smaller_kept, larger_kept);
	SL_EXPECT_GT(crossed, 500);
	SL_EXPECT_LT(crossed, runs);
	SL_EXPECT_GT(smaller_kept, 500);
	SL_EXPECT_GT(larger_kept, 500);
}

SL_TEST(links, crossing_dials_with_losses)
{
	for (unsigned v = 0; v < 1024 && !sl_test_failed(); v++) {
		struct crossing c = {0};

		for (unsigned i = 0; i < 6; i++) {
			c.delay_us[i / 3][i % 3] = NET_MS + sl_test_rand() % (60 * NET_MS);
			c.lost[i / 3][i % 3] = v >> i & 1;
		}
		crossing_run(&c, sl_test_rand() % (50 * NET_MS), v >> 6 & 1);
	}
}

/* --- msg2 may come from elsewhere; forged ones change nothing --- */

static void
forge_tap(struct net *net, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	uint8_t forged[SL_MSG2_PACKET_BYTES];

	(void)fate, (void)arg;
	if ((bytes[0] & 0x0f) != SL_PHASE_MSG2)
		return;
	for (unsigned i = 0; i < 3; i++) {
		memcpy(forged, bytes, len);
		forged[i == 0 ? 68 : i == 1 ? 40 : 13] ^= 1; /* tag, epoch, ephemeral */
		net_inject(net, &from->addr, to, forged, len);
	}
}

SL_TEST(links, forged_msg2_kills_nothing)
{
	struct net *net = net_create();
	struct node *n[2];

	net->tap = forge_tap;
	net_pair(net, n, NULL);
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG2_AUTH), 3);
	expect_one_link(n);
	net_destroy(net);
}

/* Who sees our index can send forged ones at any rate: so many are looked at and no more, and the attempt goes on. */
static void
forge_flood_tap(struct net *net, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	uint8_t forged[SL_MSG2_PACKET_BYTES];
	unsigned *times = arg;

	(void)fate;
	if ((bytes[0] & 0x0f) != SL_PHASE_MSG2 || !*times)
		return;
	memcpy(forged, bytes, len);
	forged[68] ^= 1;
	while (*times) {
		net_inject(net, &from->addr, to, forged, len);
		--*times;
	}
}

SL_TEST(links, a_flood_of_forged_msg2_is_bounded)
{
	struct net *net = net_create();
	unsigned times = 500;
	struct node *n[2];

	net->tap = forge_flood_tap;
	net->tap_arg = &times;
	net_pair(net, n, NULL);
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 2 * NET_S));
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG2_AUTH), 16);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_MSG2_RATE_LIMITED), 484);
	expect_one_link(n);
	net_destroy(net);
}

SL_TEST(links, msg2_from_another_address)
{
	struct net *net = net_create();
	struct node *n[2];
	struct sl_link_info info;

	net_pair(net, n, NULL);
	net_configure(n[0], n[1]);
	n[1]->addr.udp_port = 4000; /* what the dialled node sends comes from there */
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	SL_EXPECT(net_info(n[0], n[1], &info));
	SL_EXPECT_EQ(info.addr.udp_port, 4000);
	expect_one_link(n);
	net_destroy(net);
}

/* --- several addresses at once --- */

SL_TEST(links, several_addresses_at_once)
{
	struct net *net = net_create();
	struct sl_peer_config c = {.auto_connect = true, .auto_reconnect = true, .addr_count = 6};
	struct node *n[2];

	net_pair(net, n, NULL);
	memcpy(c.xonly, sl_identity_xonly(n[1]->identity), SL_XONLY_BYTES);
	for (unsigned i = 0; i < 6; i++) /* ports of the same node */
		c.addrs[i] = net_addr(n[1]->index, (uint16_t)(2121 + i));
	SL_EXPECT_EQ(sl_links_peer_configure(n[0]->links, &c, net->now_us), 0);
	n[0]->next_due_us = net->now_us;
	net_run(net, 10 * NET_S);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_TX), 4);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_TX), 1);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_RESENT), 3);
	expect_one_link(n);
	net_destroy(net);
}

SL_TEST(links, next_addresses_after_a_failed_round)
{
	struct net *net = net_create();
	struct sl_peer_config c = {.auto_connect = true, .auto_reconnect = true, .addr_count = 5};
	struct node *n[2];

	net_pair(net, n, NULL);
	memcpy(c.xonly, sl_identity_xonly(n[1]->identity), SL_XONLY_BYTES);
	for (unsigned i = 0; i < 4; i++)
		c.addrs[i] = net_addr(200 + i, 2121); /* nobody there */
	c.addrs[4] = n[1]->addr;
	SL_EXPECT_EQ(sl_links_peer_configure(n[0]->links, &c, net->now_us), 0);
	n[0]->next_due_us = net->now_us;
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 60 * NET_S));
	/* 30 s for the first four, 10 s of back-off. */
	SL_EXPECT_EQ((net->now_us - 1000 * NET_S) / NET_S, 40);
	net_destroy(net);
}
