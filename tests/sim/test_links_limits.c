/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers, floods and numbers: link layer facts, 14; routing facts, 17, W4. */
#include "puppet.h"

#include <time.h>

static struct sl_links_config
config_of(uint32_t max_peers)
{
	struct sl_links_config c;

	sl_links_config_default(&c);
	c.max_peers = max_peers;
	return c;
}

/* msg1 of some identity, from some address. */
static void
stranger_msg1(struct net *net, struct node *n, const struct sl_addr *from, struct sl_identity *id,
	uint32_t index)
{
	static const uint8_t epoch[SL_EPOCH_BYTES] = {1};
	uint8_t noise[SL_NOISE_MSG1_BYTES], bytes[SL_MSG1_PACKET_BYTES];
	struct sl_noise_initiator st;
	struct sl_remote_key key;

	SL_EXPECT_EQ(sl_remote_key_init(&key, sl_identity_xonly(n->identity), id), 0);
	sl_noise_initiate(&st, noise, id, &key, epoch, NULL);
	sl_msg1_build(bytes, index, noise);
	net_inject(net, from, n, bytes, sizeof(bytes));
}

/* An established pair at n[0], n[1], and a flood of msg1 towards n[0]. */
SL_TEST(links_limits, flood_leaves_established_peers_alone)
{
	struct net *net = net_create();
	struct sl_identity *id = sl_identity_generate();
	struct sl_links_config c = config_of(128);
	struct node *n[2];
	uint8_t junk[SL_MSG1_PACKET_BYTES] = {SL_PHASE_MSG1, 0, SL_MSG1_PACKET_BYTES - 4, 0};

	c.rekey_after_us = 40 * NET_S;
	net_pair(net, n, &c);
	net_configure(n[1], n[0]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	/* 200 a second from as many sources: half of them authentic, ten times the budget. */
	for (unsigned tick = 0; tick < 6000; tick++) {
		struct sl_addr from = net_addr(0x100000 + tick, (uint16_t)(1024 + tick));

		if (tick % 20 == 0) {
			stranger_msg1(net, n[0], &from, id, tick);
		} else {
			sl_test_rand_bytes(junk + 4, sizeof(junk) - 4);
			junk[8] = (uint8_t)(2 | (junk[8] & 1)); /* looks like a key */
			net_inject(net, &from, n[0], junk, sizeof(junk));
		}
		SL_EXPECT_EQ(net_data(n[0], n[1]) | net_data(n[1], n[0]), 0);
		net_run(net, 10 * NET_MS);
	}
	net_run(net, NET_S);
	SL_EXPECT_EQ(n[0]->data_received, n[1]->data_sent);
	SL_EXPECT_EQ(n[1]->data_received, n[0]->data_sent);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 1);
	SL_EXPECT_EQ(n[0]->ups, 1);
	/* 100 at once and 10 a second. */
	SL_EXPECT_LE(net_counter(n[0], SL_LINK_MSG1_AUTH) + net_counter(n[0], SL_LINK_MSG2_TX),
		100 + 10 * 62 + 10);
	SL_EXPECT_GT(net_counter(n[0], SL_LINK_MSG1_RATE_LIMITED), 5000);
	SL_EXPECT_LE(sl_session_count(n[0]->table), 40);
	sl_identity_destroy(id);
	net_destroy(net);
}

static uint64_t
turned_away(const struct node *n)
{
	return net_counter(n, SL_LINK_MSG1_RATE_LIMITED) + net_counter(n, SL_LINK_MSG1_PREFIX);
}

/* msg1 of invented keys, one every step_us, from anywhere or from one /24, for so long. */
static void
flood(struct net *net, struct node *n, uint64_t step_us, uint64_t for_us, bool one_prefix)
{
	uint8_t junk[SL_MSG1_PACKET_BYTES] = {SL_PHASE_MSG1, 0, SL_MSG1_PACKET_BYTES - 4, 0};

	for (uint64_t t = 0; t < for_us; t += step_us) {
		struct sl_addr from = net_addr(0x100000 + (unsigned)(sl_test_rand() % (one_prefix ? 100 : 0x200000)), 99);

		sl_test_rand_bytes(junk + 4, sizeof(junk) - 4);
		junk[8] = (uint8_t)(2 | (junk[8] & 1));
		net_inject(net, &from, n, junk, sizeof(junk));
		net_run(net, step_us);
	}
}

/* Ten times the budget from everywhere: an honest newcomer finds no room, repeats its msg1 a second later, and has it. */
SL_TEST(links_limits, who_returns_gets_through_a_flood)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 200, true), *late[4];

	flood(net, n, 10 * NET_MS, 30 * NET_S, false);
	for (unsigned i = 0; i < 4; i++) {
		late[i] = net_node(net, NULL, 4, true);
		net_configure(late[i], n);
	}
	flood(net, n, 10 * NET_MS, 3500 * NET_MS, false);
	for (unsigned i = 0; i < 4; i++)
		SL_EXPECT(net_linked(n, late[i]));
	SL_EXPECT_GE(net_counter(n, SL_LINK_MSG1_RETURNED), 1);
	SL_EXPECT_LE(net_counter(n, SL_LINK_MSG1_AUTH), 100 + 10 * 34);
	net_destroy(net);
}

/* One /24 has all of it while nobody else calls, and leaves room at once when somebody does. */
SL_TEST(links_limits, a_prefix_cannot_have_it_all)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 200, true), *late;

	flood(net, n, 10 * NET_MS, 30 * NET_S, true);
	SL_EXPECT_GE(net_counter(n, SL_LINK_MSG1_AUTH), 300);
	SL_EXPECT_GE(net_counter(n, SL_LINK_MSG1_PREFIX), 2000);
	late = net_node(net, NULL, 4, true);
	net_configure(late, n);
	flood(net, n, 10 * NET_MS, 50 * NET_MS, true);
	SL_EXPECT(net_linked(n, late));
	SL_EXPECT_EQ(net_counter(late, SL_LINK_MSG1_RESENT), 0);
	net_destroy(net);
}

/* What does not even look like a key costs nobody's budget. */
SL_TEST(links_limits, junk_is_turned_away_before_the_budget)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 200, true), *late = net_node(net, NULL, 4, true);
	uint8_t junk[SL_MSG1_PACKET_BYTES] = {SL_PHASE_MSG1, 0, SL_MSG1_PACKET_BYTES - 4, [8] = 4};

	for (unsigned i = 0; i < 1000; i++) {
		struct sl_addr from = net_addr(0x100000 + i, 1);

		net_inject(net, &from, n, junk, sizeof(junk));
	}
	net_configure(late, n);
	SL_EXPECT(net_run_until_up(net, n, late, 100 * NET_MS));
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_AUTH), 1000);
	SL_EXPECT_EQ(turned_away(n), 0);
	net_destroy(net);
}

/* Authentic strangers that never come back use up rows; the oldest give way and a real one still
 * gets in. */
SL_TEST(links_limits, half_open_handshakes_are_bounded)
{
	struct net *net = net_create();
	struct sl_links_config c = config_of(4);
	struct node *n, *real;
	struct sl_link_info info;

	c.handshake_rate_per_s = 1000;
	c.handshake_burst = 1000;
	c.max_pending_inbound = 12;
	n = net_node(net, &c, 20, true);
	real = net_node(net, NULL, 4, true);
	for (unsigned i = 0; i < 60; i++) {
		struct sl_identity *id = sl_identity_generate();
		struct sl_addr from = net_addr(0x100000 + i, 1);

		stranger_msg1(net, n, &from, id, i);
		net_run(net, 2 * NET_MS);
		sl_identity_destroy(id);
	}
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 60);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_PENDING_EVICTED), 48);
	SL_EXPECT_EQ(sl_session_count(n->table), 12);
	SL_EXPECT_EQ(n->ups, 0);
	net_configure(real, n);
	SL_EXPECT(net_run_until_up(net, n, real, NET_S));
	SL_EXPECT(net_info(n, real, &info));
	net_run(net, 31 * NET_S);
	SL_EXPECT_EQ(sl_session_count(n->table), 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_PENDING_EXPIRED), 11);
	SL_EXPECT(net_carries(n, real));
	net_destroy(net);
}

SL_TEST(links_limits, rows_run_out_before_the_limit)
{
	struct net *net = net_create();
	struct sl_links_config c = config_of(0);
	struct node *hub = net_node(net, &c, 3, true), *n[5];
	unsigned up = 0;

	for (unsigned i = 0; i < 5; i++) {
		n[i] = net_node(net, NULL, 4, true);
		net_configure(n[i], hub);
	}
	net_run(net, 40 * NET_S);
	for (unsigned i = 0; i < 5; i++)
		up += net_linked(hub, n[i]);
	SL_EXPECT_EQ(up, 3);
	SL_EXPECT_GT(net_counter(hub, SL_LINK_MAX_PEERS), 0);
	net_destroy(net);
}

SL_TEST(links_limits, max_peers)
{
	struct net *net = net_create();
	struct sl_links_config c = config_of(2);
	struct node *hub = net_node(net, &c, 32, true), *n[4];
	struct sl_link_info info;

	for (unsigned i = 0; i < 4; i++)
		n[i] = net_node(net, NULL, 4, true);
	net_configure(n[0], hub);
	net_configure(n[1], hub);
	net_run(net, NET_S);
	SL_EXPECT(net_linked(hub, n[0]) && net_linked(hub, n[1]));
	net_configure(n[2], hub);
	net_run(net, 5 * NET_S);
	SL_EXPECT(!net_linked(hub, n[2]));
	SL_EXPECT_GE(net_counter(hub, SL_LINK_MAX_PEERS), 3);
	SL_EXPECT_EQ(net_counter(hub, SL_LINK_MSG2_TX), 2);
	/* We do not dial either. */
	net_configure(hub, n[3]);
	net_run(net, 5 * NET_S);
	SL_EXPECT_EQ(net_counter(hub, SL_LINK_MSG1_TX), 0);
	SL_EXPECT(net_info(hub, n[3], &info));
	SL_EXPECT_STR(info.last_error, "max_peers reached");
	/* Known ones pass: a restart of n[0]. */
	net_restart(n[0], true);
	net_configure(n[0], hub);
	net_run(net, NET_S);
	SL_EXPECT(net_linked(hub, n[0]));
	/* Room again: the waiting ones come in. */
	SL_EXPECT_EQ(sl_links_disconnect(hub->links, sl_identity_xonly(n[1]->identity),
			     SL_DISCONNECT_OTHER, net->now_us),
		0);
	net_run(net, 40 * NET_S);
	SL_EXPECT_EQ(net_linked(hub, n[1]) + net_linked(hub, n[2]) + net_linked(hub, n[3]), 1);
	net_destroy(net);
}

/* Two that were answered while there was room for one: the second is told so, not left hanging. */
SL_TEST(links_limits, max_peers_reached_during_the_handshake)
{
	struct net *net = net_create();
	struct sl_links_config c = config_of(1);
	struct node *hub = net_node(net, &c, 32, true), *n[2];
	unsigned up = 0;

	for (unsigned i = 0; i < 2; i++) {
		n[i] = net_node(net, NULL, 4, true);
		net_configure(n[i], hub);
	}
	net_run(net, 2 * NET_S);
	for (unsigned i = 0; i < 2; i++)
		up += net_linked(hub, n[i]);
	SL_EXPECT_EQ(up, 1);
	SL_EXPECT_EQ(net_counter(hub, SL_LINK_MSG2_TX), 2);
	SL_EXPECT_EQ(net_counter(hub, SL_LINK_DISCONNECT_TX), 1);
	SL_EXPECT_EQ(
		net_counter(n[0], SL_LINK_DISCONNECT_RX) + net_counter(n[1], SL_LINK_DISCONNECT_RX),
		1);
	SL_EXPECT_EQ(sl_session_count(hub->table), 1);
	net_destroy(net);
}

/* Two that we dialled at once, with room for one: the other is dialled again, not forgotten. */
SL_TEST(links_limits, max_peers_reached_during_our_dial)
{
	/* Who has the smaller address decides which handshake stays: enough rounds for both. */
	for (unsigned round = 0; round < 16; round++) {
		bool crossing = round & 1;
		struct net *net = net_create();
		struct sl_links_config c = config_of(1);
		struct node *hub = net_node(net, &c, 32, true), *n[2], *late;
		struct sl_link_info info;

		hub->config.established_burst = 100; /* derived from max_peers it is 1 */
		net_restart(hub, true);
		for (unsigned i = 0; i < 2; i++) {
			n[i] = net_node(net, NULL, 4, true);
			net_configure(hub, n[i]);
			if (crossing)
				net_configure(n[i], hub);
		}
		net_run(net, 2 * NET_S);
		SL_EXPECT_EQ(net_linked(hub, n[0]) + net_linked(hub, n[1]), 1);
		late = net_linked(hub, n[0]) ? n[1] : n[0];
		SL_EXPECT(net_info(hub, late, &info));
		SL_EXPECT_STR(info.last_error, "max_peers reached");
		SL_EXPECT_GT(info.next_dial_us, net->now_us);
		SL_EXPECT_EQ(sl_links_disconnect(hub->links,
				     sl_identity_xonly((late == n[0] ? n[1] : n[0])->identity),
				     SL_DISCONNECT_OTHER, net->now_us),
			0);
		(late == n[0] ? n[1] : n[0])->mute = true;
		SL_EXPECT(net_run_until_up(net, hub, late, 60 * NET_S));
		net_destroy(net);
	}
}

/* A link that we lost, dialled again and answered, but not yet heard: strangers push it out. */
SL_TEST(links_limits, a_dial_pushed_out_by_strangers_goes_on)
{
	struct net *net = net_create();
	struct sl_links_config c = config_of(0);
	struct node *n = net_node(net, &c, 3, true);
	struct puppet *p = puppet_create(net);

	puppet_configure(n, p);
	net_run(net, NET_MS);
	puppet_answer(p, n, 1, true);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(n->ups, 1);
	net_run(net, 38 * NET_S); /* dead, and dialled again after five seconds */
	SL_EXPECT_EQ(n->downs[SL_DOWN_DEAD], 1);
	SL_EXPECT_GE(p->msg1, 2);
	puppet_answer(p, n, 2, true);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(n->ups, 1); /* waits for the peer's first frame */
	for (unsigned i = 0; i < 4; i++) {
		struct sl_identity *id = sl_identity_generate();
		struct sl_addr from = net_addr(0x100000 + i, 1);

		stranger_msg1(net, n, &from, id, i);
		net_run(net, NET_MS);
		sl_identity_destroy(id);
	}
	SL_EXPECT_GE(net_counter(n, SL_LINK_PENDING_EVICTED), 2);
	net_run(net, 3 * NET_S);
	SL_EXPECT_EQ(n->ups, 1);
	p->msg1 = 0;
	net_run(net, 20 * NET_S);
	SL_EXPECT_GE(p->msg1, 1);
	puppet_destroy(p);
	net_destroy(net);
}

/* --- transports that take no strangers --- */

SL_TEST(links_limits, accept_connections_off)
{
	struct net *net = net_create();
	struct node *closed = net_node(net, NULL, 32, false), *n = net_node(net, NULL, 4, true);
	struct sl_identity *other = sl_identity_generate();

	net_configure(n, closed);
	net_run(net, 5 * NET_S);
	SL_EXPECT(!net_linked(n, closed));
	SL_EXPECT_EQ(net_counter(closed, SL_LINK_MSG1_REFUSED), 3);
	/* It may dial, and then the peer's rekey and restart come in from the address of the link.
	 */
	net_configure(closed, n);
	SL_EXPECT(net_run_until_up(net, n, closed, NET_S));
	net_restart(n, true);
	net_configure(n, closed);
	net_run(net, NET_S);
	SL_EXPECT(net_linked(n, closed));
	SL_EXPECT_EQ(closed->downs[SL_DOWN_RESTART], 1);
	/* Not somebody else from that address. */
	stranger_msg1(net, closed, &n->addr, other, 5);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(net_counter(closed, SL_LINK_MSG1_WRONG_IDENTITY), 1);
	sl_identity_destroy(other);
	net_destroy(net);
}

/* What a closed transport refuses costs the strangers of the open ones nothing. */
SL_TEST(links_limits, refused_msg1_spend_no_budget)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 32, true), *peer = net_node(net, NULL, 4, true);
	struct sl_transport_config closed = {.id = 1, .kind = SL_ADDR_ETH, .mtu = 1497};
	struct sl_identity *id = sl_identity_generate();

	SL_EXPECT_EQ(sl_links_transport_add(n->links, &closed), 0);
	for (unsigned i = 0; i < 500; i++) {
		struct sl_addr from = {.kind = SL_ADDR_ETH, .transport = 1, .u.mac = {2, 0, 0, 0, 0, 1}};

		stranger_msg1(net, n, &from, id, i);
	}
	net_run(net, NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_REFUSED), 500);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_RATE_LIMITED), 0);
	net_configure(peer, n);
	SL_EXPECT(net_run_until_up(net, n, peer, NET_S));
	sl_identity_destroy(id);
	net_destroy(net);
}

/*
 * W4, by identity: from a linked peer's address, an unknown identity spends what strangers have, and a configured one its
 * own, whatever is left in the linked peer's.
 */
SL_TEST(links_limits, identities_behind_a_linked_address)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 200, true), *peer = net_node(net, NULL, 4, true);
	struct sl_identity *id = sl_identity_generate(), *known = sl_identity_generate();
	struct sl_peer_config c = {.addr_count = 0};
	uint8_t junk[SL_MSG1_PACKET_BYTES] = {SL_PHASE_MSG1, 0, SL_MSG1_PACKET_BYTES - 4, [8] = 2};
	uint64_t limited;

	net_configure(peer, n);
	SL_EXPECT(net_run_until_up(net, n, peer, NET_S));
	net_run(net, 20 * NET_S); /* its own bucket is full again */
	/* The strangers' budget is gone. */
	for (unsigned i = 0; i < 120; i++) {
		struct sl_addr from = net_addr(0x100000 + (i << 7), 1);

		junk[40] = (uint8_t)i;
		net_inject(net, &from, n, junk, sizeof(junk));
	}
	net_run(net, 1);
	limited = turned_away(n);
	SL_EXPECT_EQ(limited, 45); /* 100 less what is kept for those who return */
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 1);
	stranger_msg1(net, n, &peer->addr, id, 1);
	net_run(net, 1);
	SL_EXPECT_EQ(turned_away(n), limited + 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 1);
	/* Configured: it has a budget of its own. */
	memcpy(c.xonly, sl_identity_xonly(known), SL_XONLY_BYTES);
	SL_EXPECT_EQ(sl_links_peer_configure(n->links, &c, net->now_us), 0);
	stranger_msg1(net, n, &peer->addr, known, 2);
	net_run(net, 1);
	SL_EXPECT_EQ(turned_away(n), limited + 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 2);
	sl_identity_destroy(id);
	sl_identity_destroy(known);
	net_destroy(net);
}

/* W4: a linked peer that begins handshakes for others from its address spends the strangers'
 * budget, and its own. */
SL_TEST(links_limits, a_linked_peer_cannot_spend_others_budget)
{
	struct net *net = net_create();
	struct sl_links_config c = config_of(128);
	struct node *hub, *bad, *good;

	c.rekey_after_us = 40 * NET_S;
	hub = net_node(net, &c, 256, true);
	bad = net_node(net, &c, 4, true);
	good = net_node(net, &c, 4, true);
	net_configure(bad, hub);
	net_configure(good, hub);
	net_run(net, NET_S);
	for (unsigned i = 0; i < 800; i++) {
		struct sl_identity *id = sl_identity_generate();

		stranger_msg1(net, hub, &bad->addr, id, i);
		sl_identity_destroy(id);
		net_run(net, 50 * NET_MS);
		SL_EXPECT_EQ(net_data(good, hub), 0);
	}
	/* Its own bucket is 12 and one a second: 40 s of it. */
	SL_EXPECT_LE(net_counter(hub, SL_LINK_MSG2_TX), 60);
	net_run(net, 15 * NET_S);
	SL_EXPECT_GE(net_counter(good, SL_LINK_REKEY), 1);
	SL_EXPECT_EQ(good->ups, 1);
	SL_EXPECT_EQ(hub->data_received, good->data_sent);
	net_destroy(net);
}

/* Copies of one msg1: refused or answered again without a curve operation, and on nobody's budget. */
SL_TEST(links_limits, copies_cost_nobody_anything)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 200, true), *peer = net_node(net, NULL, 4, true);
	struct puppet *p = puppet_create(net);
	uint8_t junk[SL_MSG1_PACKET_BYTES] = {SL_PHASE_MSG1, 0, SL_MSG1_PACKET_BYTES - 4, [8] = 2};
	uint8_t good[SL_MSG1_PACKET_BYTES];

	puppet_dial(p, n, 5, good);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 1);
	for (unsigned i = 0; i < 5000; i++) {
		struct sl_addr from = net_addr(0x100000 + (i << 7), 1);

		net_inject(net, &from, n, junk, sizeof(junk));
		net_inject(net, &from, n, good, sizeof(good));
		net_run(net, NET_MS);
	}
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_AUTH), 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_AGAIN), 4999);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 1);
	SL_EXPECT_LE(net_counter(n, SL_LINK_MSG2_RESENT), 16 + 5 * 2 + 1);
	/* A bit of it changed is another one: nobody silences the right one with a wrong copy. */
	junk[60] ^= 1;
	net_inject(net, &p->addr, n, junk, sizeof(junk));
	net_run(net, NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_AUTH), 2);
	net_configure(peer, n); /* at once: the strangers' budget has been left alone */
	SL_EXPECT(net_run_until_up(net, n, peer, 100 * NET_MS));
	puppet_destroy(p);
	net_destroy(net);
}

/* A known peer that calls from another port of its network, under a flood that imitates honest diallers. */
SL_TEST(links_limits, a_known_peer_moves_near_by_under_a_flood)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 200, true), *peer = net_node(net, NULL, 4, true);

	net_configure(peer, n);
	SL_EXPECT(net_run_until_up(net, n, peer, NET_S));
	flood(net, n, 10 * NET_MS, 30 * NET_S, false);
	peer->addr.udp_port++;
	net_restart(peer, true);
	net_configure(peer, n);
	flood(net, n, 10 * NET_MS, 100 * NET_MS, false);
	SL_EXPECT(net_linked(n, peer));
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_HOME), 1);
	net_destroy(net);
}

/*
 * The reference's default: rekey by count after 65,536 frames, which at a million a second each is a few hundredths of a
 * second; so a peer's attempts go on for as long as its link is too young for them, six copies every 31 s. 120 of those:
 * each attempt costs one curve operation, none is refused for want of a budget, each link gets its new key at 30 s, and a
 * newcomer finds the strangers' budget whole.
 */
SL_TEST(links_limits, peers_that_rekey_by_count_at_a_million_a_second)
{
	enum { PEERS = 120, SECONDS = 125 };
	static const uint64_t times_s[] = {0, 1, 3, 7, 15};
	static struct fast {
		struct puppet *p;
		uint64_t began_s; /* the attempt under way */
		bool waiting;
		uint8_t k, packet[SL_MSG1_PACKET_BYTES];
	} fast[PEERS];
	struct net *net = net_create();
	struct sl_links_config c = config_of(128);
	struct node *n, *late;

	c.rekey_enabled = false; /* ours would come in between, at 35 s */
	n = net_node(net, &c, 256, true);
	for (unsigned i = 0; i < PEERS; i++) {
		fast[i] = (struct fast){.p = puppet_create(net)};
		puppet_configure(n, fast[i].p);
	}
	net_run(net, 2 * NET_S);
	for (unsigned i = 0; i < PEERS; i++) {
		SL_ASSERT(fast[i].p->msg1 > 0);
		puppet_answer(fast[i].p, n, 1000 + i, true);
	}
	net_run(net, NET_S);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_LINK_UP), PEERS);
	for (uint64_t s = 0; s < SECONDS; s++) {
		for (unsigned i = 0; i < PEERS; i++) {
			struct fast *f = &fast[i];

			puppet_heartbeat(f->p, n, f->k); /* on the keys that it has */
			f->p->msg2 = 0;
			if (!f->waiting || s - f->began_s >= 31) {
				f->waiting = true;
				f->began_s = s;
				puppet_dial(f->p, n, (uint32_t)(2000 + s * PEERS + i), f->packet);
				continue;
			}
			for (unsigned k = 1; k < 5; k++)
				if (s - f->began_s == times_s[k])
					net_inject(net, &f->p->addr, n, f->packet, sizeof(f->packet));
		}
		net_run(net, 10 * NET_MS);
		for (unsigned i = 0; i < PEERS; i++) {
			struct fast *f = &fast[i];

			if (!f->p->msg2)
				continue;
			SL_EXPECT(puppet_finish(f->p, n));
			f->waiting = false;
			f->k ^= SL_FLAG_K;
			puppet_heartbeat(f->p, n, f->k);
		}
		net_run(net, NET_S - 10 * NET_MS);
	}
	/* At 31, 63 and 95 s. */
	SL_EXPECT_EQ(net_counter(n, SL_LINK_REKEY), 3 * PEERS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_RATE_LIMITED), 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_PREFIX), 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_LINK_DEAD), 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_LINK_UP), PEERS);
	/* Four attempts that came too early, each opened once, copies of it for nothing. */
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_YOUNG) + net_counter(n, SL_LINK_MSG1_AGAIN), 4 * 5 * PEERS);
	/* But for a few that share a row of the table. */
	SL_EXPECT_LE(net_counter(n, SL_LINK_MSG1_YOUNG), 5 * PEERS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_AUTH), 0);
	late = net_node(net, NULL, 4, true);
	net_configure(late, n);
	SL_EXPECT(net_run_until_up(net, n, late, 100 * NET_MS));
	for (unsigned i = 0; i < PEERS; i++)
		puppet_destroy(fast[i].p);
	net_destroy(net);
}

SL_TEST(links_limits, no_answer_to_many_to_nobody_to_ourselves)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 32, true);
	struct sl_identity *id = sl_identity_generate();
	struct sl_addr bad[10];
	unsigned count = 0;

	memset(bad, 0, sizeof(bad));
	bad[count++] = (struct sl_addr){
		.kind = SL_ADDR_UDP4, .udp_port = 1, .u.ip4 = {255, 255, 255, 255}};
	bad[count++] =
		(struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 1, .u.ip4 = {224, 0, 0, 1}};
	bad[count++] = (struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 1, .u.ip4 = {0, 0, 0, 0}};
	bad[count++] =
		(struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 0, .u.ip4 = {10, 1, 2, 3}};
	bad[count++] =
		(struct sl_addr){.kind = SL_ADDR_UDP6, .udp_port = 1, .u.ip6 = {0xff, 2, [15] = 1}};
	bad[count++] = (struct sl_addr){.kind = SL_ADDR_UDP6, .udp_port = 1};
	bad[count++] = (struct sl_addr){
		.kind = SL_ADDR_ETH, .u.mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	bad[count++] = (struct sl_addr){.kind = SL_ADDR_ETH, .u.mac = {1, 0x80, 0xc2, 0, 0, 0}};
	bad[count++] = (struct sl_addr){.kind = SL_ADDR_ETH};
	bad[count++] = n->addr;
	SL_EXPECT_EQ(sl_links_own_addr_add(n->links, &n->addr), 0);
	for (unsigned i = 0; i < count; i++)
		stranger_msg1(net, n, &bad[i], id, i);
	net_run(net, NET_S);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_HANDSHAKE_SOURCE), count);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 0);
	SL_EXPECT_EQ(net->packets, 0);
	/* Our own key, from anywhere. */
	stranger_msg1(net, n,
		&(struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 9, .u.ip4 = {10, 9, 9, 9}},
		n->identity, 1);
	net_run(net, NET_S);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_OWN_KEY), 1);
	SL_EXPECT_EQ(net->packets, 0);
	SL_EXPECT_EQ(sl_session_count(n->table), 0);
	sl_identity_destroy(id);
	net_destroy(net);
}

SL_TEST(links_limits, configuration_errors)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 32, true);
	struct sl_peer_config c = {.addr_count = 1};
	struct sl_addr nowhere = net_addr(9, 1);
	uint8_t xonly[SL_XONLY_BYTES];

	memset(c.xonly, 0xff, sizeof(c.xonly)); /* not on the curve */
	SL_EXPECT_EQ(sl_links_peer_configure(n->links, &c, net->now_us), -EINVAL);
	memcpy(c.xonly, sl_identity_xonly(n->identity), SL_XONLY_BYTES);
	SL_EXPECT_EQ(sl_links_peer_configure(n->links, &c, net->now_us), -EEXIST);
	SL_EXPECT_EQ(sl_links_dial(n->links, c.xonly, &nowhere, net->now_us), -EEXIST);
	{
		struct sl_identity *id = sl_identity_generate();

		memcpy(xonly, sl_identity_xonly(id), SL_XONLY_BYTES);
		sl_identity_destroy(id);
	}
	nowhere.transport = 3;
	SL_EXPECT_EQ(sl_links_dial(n->links, xonly, &nowhere, net->now_us), -ENETUNREACH);
	nowhere.transport = 0;
	SL_EXPECT_EQ(sl_links_dial(n->links, xonly, &nowhere, net->now_us), 0);
	SL_EXPECT_EQ(sl_links_dial(n->links, xonly, &nowhere, net->now_us), -EALREADY);
	for (uint16_t port = 2; port < 5; port++) {
		nowhere.udp_port = port;
		SL_EXPECT_EQ(sl_links_dial(n->links, xonly, &nowhere, net->now_us), 0);
	}
	nowhere.udp_port = 6;
	SL_EXPECT_EQ(sl_links_dial(n->links, xonly, &nowhere, net->now_us), -EBUSY);
	n->next_due_us = net->now_us;
	net_run(net, 60 * NET_S);
	/* Dialled once, not configured: forgotten. */
	SL_EXPECT_EQ(net_counter(n, SL_LINK_HANDSHAKE_TIMEOUT), 4);
	SL_EXPECT_EQ(
		sl_links_disconnect(n->links, xonly, SL_DISCONNECT_OTHER, net->now_us), -ENOENT);
	SL_EXPECT_EQ(sl_links_send(n->links, 0, xonly, 1, 0, net->now_us), -ENOTCONN);
	SL_EXPECT_EQ(sl_links_send(n->links, 999, xonly, 1, 0, net->now_us), -ENOTCONN);
	net_destroy(net);
}

static bool
as_told(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	(void)xonly;
	return *(bool *)arg;
}

SL_TEST(links_limits, access_list)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 4, true), *peer = net_node(net, NULL, 4, true);
	bool allowed = false;

	net_gate(n, as_told, &allowed);
	net_configure(peer, n);
	net_run(net, 5 * NET_S);
	SL_EXPECT(!net_linked(n, peer));
	SL_EXPECT_GE(net_counter(n, SL_LINK_NOT_ALLOWED), 3);
	SL_EXPECT_EQ(net->packets, 3); /* the peer's msg1, and not a word from us */
	net_configure(n, peer);
	net_run(net, NET_S);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_TX), 0);
	allowed = true;
	net_run(net, 15 * NET_S);
	SL_EXPECT(net_linked(n, peer));
	allowed = false; /* a link that is there stays */
	net_run(net, 200 * NET_S);
	SL_EXPECT(net_linked(n, peer));
	SL_EXPECT_GE(net_counter(n, SL_LINK_REKEY), 1);
	net_destroy(net);
}

/* A msg1 that cannot be sent (no route or neighbour yet) goes out as soon as it can. */
SL_TEST(links_limits, transmit_fails_at_first)
{
	struct net *net = net_create();
	struct node *n = net_node(net, NULL, 4, true), *peer = net_node(net, NULL, 4, true);
	struct sl_link_info info;

	n->transmit_rc = -EHOSTUNREACH;
	net_configure(n, peer);
	net_run(net, 40 * NET_MS);
	n->transmit_rc = 0;
	SL_EXPECT(net_run_until_up(net, n, peer, 200 * NET_MS));
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_RESENT), 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_TX_FAILED), 1);
	net_destroy(net);

	net = net_create();
	n = net_node(net, NULL, 4, true);
	peer = net_node(net, NULL, 4, true);
	n->transmit_rc = -EHOSTUNREACH;
	net_configure(n, peer);
	net_run(net, 31 * NET_S);
	SL_EXPECT(net_info(n, peer, &info));
	SL_EXPECT_STR(info.last_error, "address not reachable");
	n->transmit_rc = 0;
	SL_EXPECT(net_run_until_up(net, n, peer, 10 * NET_S));
	net_destroy(net);
}

/* --- a thousand --- */

SL_TEST(links_limits, a_thousand_peers_come_up)
{
	enum { PEERS = 1000 };
	struct net *net = net_create();
	struct sl_links_config c = config_of(PEERS), small = config_of(4);
	struct node *hub = net_node(net, &c, PEERS + 128, true);
	struct timespec t0, t1;
	unsigned up = 0;
	double hub_cpu_us;

	for (unsigned i = 0; i < PEERS; i++)
		(void)net_node(net, &small, 2, true);
	for (unsigned i = 0; i < PEERS; i++)
		net_configure(hub, net->nodes[1 + i]);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
	while (hub->ups < PEERS && net->now_us < 1020 * NET_S)
		net_run(net, 50 * NET_MS);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
	SL_EXPECT_EQ(hub->ups, PEERS);
	printf("%u peers up after %.2f s of virtual time, %.2f s of CPU for both sides\n", hub->ups,
		(double)(net->now_us - 1000 * NET_S) / 1e6,
		(double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
	SL_EXPECT_LE(net->now_us, 1010 * NET_S);
	net_run(net, 2 * NET_S);
	for (unsigned i = 0; i < PEERS; i++)
		up += net_linked(hub, net->nodes[1 + i]);
	SL_EXPECT_EQ(up, PEERS);
	/* What a quiet second costs the hub alone: ticks only. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
	for (unsigned ms = 0; ms < 1000; ms++)
		(void)sl_links_tick(hub->links, net->now_us + ms * NET_MS);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
	hub_cpu_us =
		(double)(t1.tv_sec - t0.tv_sec) * 1e6 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e3;
	printf("one second of %u links: %.0f us of control's CPU, 1000 ticks, reports and "
	       "heartbeats sealed\n",
		PEERS, hub_cpu_us);
	net->now_us += NET_S;
	net_destroy(net);
}

static double
cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Peers that never answer, a turn a millisecond: dials, repetitions and time-outs are spread over the turns. */
SL_TEST(links_limits, a_thousand_unreachable_peers_hold_no_turn_up)
{
	enum { PEERS = 1000 };
	struct net *net = net_create();
	struct sl_links_config c = config_of(PEERS);
	struct node *hub = net_node(net, &c, PEERS + 128, true), *friend = net_node(net, NULL, 4, true);
	double longest_ms = 0;
	uint64_t first_dials_us = 0;

	net_configure(friend, hub);
	net_run(net, NET_S);
	for (unsigned i = 0; i < PEERS; i++) {
		struct sl_identity *id = sl_identity_generate();
		struct sl_peer_config p = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};

		memcpy(p.xonly, sl_identity_xonly(id), SL_XONLY_BYTES);
		p.addrs[0] = net_addr(0x100000 + i, 1);
		SL_EXPECT_EQ(sl_links_peer_configure(hub->links, &p, net->now_us), 0);
		sl_identity_destroy(id);
	}
	for (unsigned turn = 0; turn < 60000; turn++) {
		double t0 = cpu_ms(), spent;

		(void)sl_links_tick(hub->links, net->now_us);
		spent = cpu_ms() - t0;
		longest_ms = spent > longest_ms ? spent : longest_ms;
		hub->next_due_us = net->now_us + 2 * NET_MS; /* ours is the only turn */
		if (!first_dials_us && net_counter(hub, SL_LINK_MSG1_TX) == PEERS)
			first_dials_us = (turn + 1) * NET_MS;
		net_run(net, NET_MS);
	}
	/* A second of heartbeats and reports came and went on the link beside it. */
	SL_EXPECT(net_linked(hub, friend));
	SL_EXPECT_EQ(hub->ups, 1);
	SL_EXPECT_EQ(net_counter(hub, SL_LINK_HANDSHAKE_TIMEOUT), PEERS);
	SL_EXPECT_GT(net_counter(hub, SL_LINK_MSG1_TX), PEERS + 16 * 15);
	SL_EXPECT_GT(first_dials_us, 50 * NET_MS); /* spread ... */
	SL_EXPECT_LE(first_dials_us, 500 * NET_MS); /* ... and soon done */
	printf("%u unreachable peers: all dialled after %u turns, longest turn %.2f ms of CPU\n", PEERS,
		(unsigned)(first_dials_us / NET_MS), longest_ms);
	net_destroy(net);
}

/* The other way: a thousand dial us, within the strangers' budget as configured for it. */
SL_TEST(links_limits, a_thousand_peers_dial_in)
{
	enum { PEERS = 1000 };
	struct net *net = net_create();
	struct sl_links_config c = config_of(PEERS), small = config_of(4);
	struct node *hub;

	c.handshake_burst = 400;
	c.handshake_rate_per_s = 400;
	hub = net_node(net, &c, PEERS + 128, true);
	for (unsigned i = 0; i < PEERS; i++)
		net_configure(net_node(net, &small, 2, true), hub);
	while (hub->ups < PEERS && net->now_us < 1040 * NET_S)
		net_run(net, 50 * NET_MS);
	printf("%u peers have dialled in after %.2f s of virtual time\n", hub->ups,
		(double)(net->now_us - 1000 * NET_S) / 1e6);
	SL_EXPECT_EQ(hub->ups, PEERS);
	net_destroy(net);
}
