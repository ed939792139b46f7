/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of ours while a peer has no usable key: they wait, in order, never overtaken; and links too small to carry any. */
#include "link_net.h"

/* Numbered messages and who has heard which. */
struct heard {
	unsigned count;
	uint32_t numbers[256];
};

static void
on_heard(void *arg, const uint8_t *msg, size_t len)
{
	struct heard *h = arg;

	if (msg[0] == SL_MSG_LOOKUP_REQUEST && len == 64 && h->count < 256)
		h->numbers[h->count++] = sl_get32(msg + 1);
}

static int
say(struct node *from, struct node *to, uint32_t number)
{
	uint8_t msg[64] = {SL_MSG_LOOKUP_REQUEST};

	sl_put32(msg + 1, number);
	return sl_links_send_key(from->links, sl_identity_xonly(to->identity), msg, sizeof(msg), 0, from->net->now_us);
}

static void
expect_in_order(const struct heard *h, unsigned count)
{
	SL_EXPECT_EQ(h->count, count);
	for (unsigned i = 0; i < h->count; i++)
		SL_EXPECT_EQ(h->numbers[i], i);
}

static void
setup(struct net **net, struct node *n[2], struct heard *h)
{
	*net = net_create();
	net_pair(*net, n, NULL);
	memset(h, 0, sizeof(*h));
	n[1]->heard = on_heard;
	n[1]->heard_arg = h;
}

SL_TEST(links_waiting, until_the_handshake_is_done)
{
	struct net *net;
	struct node *n[2];
	struct heard h;

	setup(&net, n, &h);
	SL_EXPECT_EQ(say(n[0], n[1], 0), -ENOTCONN); /* nobody dials */
	net_configure(n[0], n[1]);
	net_run(net, 2 * NET_MS);
	for (unsigned i = 0; i < SL_WAIT_FRAMES; i++)
		SL_EXPECT_EQ(say(n[0], n[1], i), 0);
	SL_EXPECT_EQ(say(n[0], n[1], 999), -ENOBUFS);
	SL_EXPECT_EQ(h.count, 0);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	for (unsigned i = SL_WAIT_FRAMES; i < SL_WAIT_FRAMES + 10; i++)
		SL_EXPECT_EQ(say(n[0], n[1], i), 0);
	net_run(net, 100 * NET_MS);
	expect_in_order(&h, SL_WAIT_FRAMES + 10);
	/* The last ten took the direct path. */
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_WAITED), SL_WAIT_FRAMES);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_WAITED_DROPPED), 0);
	net_destroy(net);
}

/* The responder's too, between its msg2 and the first frame. */
SL_TEST(links_waiting, on_the_side_that_answers)
{
	struct net *net;
	struct node *n[2];
	struct heard h;

	setup(&net, n, &h);
	net_configure(n[1], n[0]);
	net_run(net, 7 * NET_MS); /* msg1 is there, msg2 under way */
	SL_EXPECT_EQ(say(n[0], n[1], 0), 0);
	SL_EXPECT_EQ(say(n[0], n[1], 1), 0);
	net_run(net, 100 * NET_MS);
	expect_in_order(&h, 2);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_WAITED), 2);
	net_destroy(net);
}

SL_TEST(links_waiting, dropped_when_nobody_answers)
{
	struct net *net;
	struct node *n[2];
	struct heard h;

	setup(&net, n, &h);
	n[1]->mute = true;
	net_configure(n[0], n[1]);
	net_run(net, NET_S);
	for (unsigned i = 0; i < 5; i++)
		SL_EXPECT_EQ(say(n[0], n[1], i), 0);
	net_run(net, 31 * NET_S);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_WAITED_DROPPED), 5);
	/* Some wait again at the end: given back with the node. */
	while (say(n[0], n[1], 7) != 0)
		net_run(net, NET_S);
	net_destroy(net);
}

/* A key at its hard stop: what is sent waits for the rekey, and what comes later, with a free path or not, behind it. */
SL_TEST(links_waiting, until_the_rekey_when_a_key_is_used_up)
{
	struct net *net;
	struct node *n[2];
	struct heard h;
	struct sl_session *s;
	uint8_t msg[64] = {SL_MSG_LOOKUP_REQUEST};
	uint32_t id;

	setup(&net, n, &h);
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	net_run(net, 40 * NET_S); /* old enough for a rekey */
	id = net_peer_id(n[0], n[1]);
	s = sl_session_peer(sl_session_table_view(n[0]->table), id)->tx;
	SL_EXPECT_EQ(say(n[0], n[1], 0), 0);
	__atomic_store_n(&s->tx_counter.next, SL_NONCE_LIMIT, __ATOMIC_RELAXED);
	for (unsigned i = 1; i < 6; i++) {
		sl_put32(msg + 1, i);
		SL_EXPECT_EQ(sl_links_send(n[0]->links, id, msg, sizeof(msg), 0, net->now_us), 0);
	}
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_WAITED), 5);
	net_run(net, 5 * NET_S);
	SL_EXPECT_EQ(n[0]->ups, 1);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 1);
	SL_EXPECT_EQ(say(n[0], n[1], 6), 0);
	net_run(net, 100 * NET_MS);
	expect_in_order(&h, 7);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_WAITED), 5);
	net_destroy(net);
}

SL_TEST(links_waiting, an_mtu_that_holds_nothing_is_refused)
{
	static const uint16_t mtus[] = {0, 1, SL_OVERHEAD_BYTES, SL_MSG1_PACKET_BYTES - 1};

	for (unsigned i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		struct net *net = net_create();
		struct sl_link_info info;
		struct node *n[2];

		net_pair(net, n, NULL);
		n[i & 1]->link_mtu = mtus[i];
		net_configure(n[0], n[1]);
		net_run(net, 2 * NET_S);
		SL_EXPECT(!net_linked(n[0], n[1]));
		SL_EXPECT_EQ(n[i & 1]->ups, 0);
		SL_EXPECT_GE(net_counter(n[i & 1], SL_LINK_MTU_REFUSED), 1);
		if (!(i & 1)) {
			SL_EXPECT(net_info(n[0], n[1], &info));
			SL_EXPECT_STR(info.last_error, "its link's MTU is zero or below the header");
			/* Repaired: the next dial has it. */
			n[0]->link_mtu = UINT16_MAX;
			SL_EXPECT(net_run_until_up(net, n[0], n[1], 60 * NET_S));
		}
		net_destroy(net);
	}
}
