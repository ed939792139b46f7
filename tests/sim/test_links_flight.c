/* SPDX-License-Identifier: BSD-3-Clause */
/* First flight: what is repeated early, when, and how much of it. Off, the reference's times hold (test_links.c). */
#include "link_net.h"

struct tap {
	unsigned drop_msg1, drop_msg2, drop_frames; /* the first so many */
	bool drop_all;
	unsigned msg1, msg2, frames;
	uint64_t msg1_at_us[32], from_bytes[2];
	uint8_t first[SL_MSG1_PACKET_BYTES];
	bool same;
};

static void
on_packet(struct net *net, struct node *from, struct node *to, const uint8_t *bytes, size_t len, struct fate *fate,
	void *arg)
{
	struct tap *t = arg;
	bool drop = t->drop_all;

	(void)to;
	t->from_bytes[from->index & 1] += len;
	switch (sl_packet_classify(bytes, len)) {
	case SL_PACKET_MSG1:
		if (!t->msg1)
			memcpy(t->first, bytes, len);
		t->same = (!t->msg1 || t->same) && memcmp(t->first, bytes, len) == 0;
		if (t->msg1 < 32)
			t->msg1_at_us[t->msg1] = net->now_us;
		drop |= t->msg1++ < t->drop_msg1;
		break;
	case SL_PACKET_MSG2:
		drop |= t->msg2++ < t->drop_msg2;
		break;
	default:
		drop |= t->frames++ < t->drop_frames;
		break;
	}
	if (drop)
		fate->copies = 0;
}

static void
setup(struct net **net, struct node *n[2], struct tap *t, bool on)
{
	struct sl_links_config c;

	sl_links_config_default(&c);
	c.first_flight = on;
	*net = net_create();
	n[0] = net_node(*net, &c, 4, true);
	n[1] = net_node(*net, &c, 4, true);
	memset(t, 0, sizeof(*t));
	(*net)->tap = on_packet;
	(*net)->tap_arg = t;
}

SL_TEST(links_flight, a_lost_msg1_costs_a_tenth_of_a_second)
{
	struct net *net;
	struct node *n[2];
	struct tap t;

	for (unsigned on = 0; on < 2; on++) {
		setup(&net, n, &t, on);
		t.drop_msg1 = 1;
		net_configure(n[0], n[1]);
		SL_EXPECT_EQ(net_run_until_up(net, n[0], n[1], 200 * NET_MS), on);
		SL_EXPECT(net_run_until_up(net, n[0], n[1], 2 * NET_S));
		SL_EXPECT(t.same);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_EARLY), on);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_RESENT), !on);
		net_destroy(net);
	}
}

SL_TEST(links_flight, a_lost_msg2_and_a_lost_first_frame)
{
	struct net *net;
	struct node *n[2];
	struct tap t;

	setup(&net, n, &t, true);
	t.drop_msg2 = 1;
	t.drop_frames = 1;
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 400 * NET_MS));
	/* The same msg2, nothing computed. */
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_TX), 1);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_RESENT), 1);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_FIRST_FRAME_EARLY), 1);
	SL_EXPECT(net_carries(n[0], n[1]));
	net_run(net, 5 * NET_S); /* heard: no more of them */
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_FIRST_FRAME_EARLY), 1);
	net_destroy(net);
}

/* Nobody there: four copies of the first dial, two of the second, one, none; the reference's times beside them. */
SL_TEST(links_flight, the_credit_halves_with_each_failure)
{
	struct net *net;
	struct node *n[2];
	struct tap t;
	static const unsigned copies[] = {4, 6, 7, 7};

	setup(&net, n, &t, true);
	t.drop_all = true;
	net_configure(n[0], n[1]);
	for (unsigned dial = 0; dial < 4; dial++) {
		while (net_counter(n[0], SL_LINK_HANDSHAKE_TIMEOUT) <= dial)
			net_run(net, NET_S);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_EARLY), copies[dial]);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_TX), dial + 1);
		if (dial == 0) {
			/* 0, 100, 250, 475, 812 ms, then 1, 3, 7, 15 s. */
			static const unsigned at_ms[] = {0, 100, 250, 475, 812, 1000, 3000, 7000, 15000};

			SL_EXPECT_EQ(t.msg1, sizeof(at_ms) / sizeof(at_ms[0]));
			for (unsigned i = 0; i < sizeof(at_ms) / sizeof(at_ms[0]); i++)
				SL_EXPECT_EQ((t.msg1_at_us[i] - t.msg1_at_us[0]) / NET_MS, at_ms[i]);
		}
	}
	/* A link makes it whole again. */
	t.drop_all = false;
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 400 * NET_S));
	net_restart(n[1], true);
	t.drop_all = true;
	net_run(net, 70 * NET_S); /* dead, dialled again, nobody there */
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_EARLY), 7 + 4);
	net_destroy(net);
}

/* Whoever sends msg1 from an invented address gets fewer bytes sent there than it spent, however often it repeats it. */
SL_TEST(links_flight, an_unverified_address_gets_fewer_bytes_than_it_sent)
{
	struct net *net;
	struct node *n[2];
	struct tap t;

	setup(&net, n, &t, true);
	t.drop_msg2 = 1000;
	net_configure(n[0], n[1]);
	net_run(net, 60 * NET_S);
	SL_EXPECT_GE(t.msg2, 5);
	SL_EXPECT_GT(t.from_bytes[1], 0);
	SL_EXPECT_LT(t.from_bytes[1], t.from_bytes[0]);
	/* Copies without end: sixteen cost no budget, then they are strangers' like others. */
	for (unsigned i = 0; i < 1000; i++)
		net_inject(net, &n[0]->addr, n[1], t.first, sizeof(t.first));
	net_run(net, NET_S);
	SL_EXPECT_LE(t.msg2, 5 + 5 + 16 + 110);
	net_destroy(net);
}

/* Known to take 300 ms: the first copy waits until an answer could have been there. */
SL_TEST(links_flight, a_long_way_is_learnt)
{
	struct net *net;
	struct node *n[2];
	struct tap t;

	setup(&net, n, &t, true);
	net->delay_us = 150 * NET_MS;
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_EARLY), 2); /* at 100 and 250 ms: it could not know */
	net_run(net, 2 * NET_S);
	SL_EXPECT_EQ(sl_links_disconnect(n[1]->links, sl_identity_xonly(n[0]->identity), SL_DISCONNECT_OTHER, net->now_us), 0);
	net_run(net, NET_S);
	SL_EXPECT(!net_linked(n[0], n[1]));
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 20 * NET_S));
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_EARLY), 2);
	net_destroy(net);
}
