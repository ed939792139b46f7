/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Anything, in any order: loss, silence one way, restarts, goodbyes, moves, redials, recorded
 * packets played again. Then the network is well, and the link has to come back by itself, and
 * stay.
 */
#include "link_net.h"

static struct net *net;
static struct node *n[2];

#define RECORDS 64u
static struct record {
	struct node *to;
	struct sl_addr from;
	size_t len;
	uint8_t bytes[256];
} records[RECORDS];
static unsigned recorded;
static unsigned deaf; /* bit per node */

static void
chaos_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	(void)w, (void)arg;
	if (len <= sizeof(records[0].bytes) && (len > 60 || sl_test_rand() % 8 == 0)) {
		struct record *r = &records[recorded++ % RECORDS];

		r->to = to;
		r->from = from->addr;
		r->len = len;
		memcpy(r->bytes, bytes, len);
	}
	if (deaf >> (to == n[1]) & 1)
		fate->copies = 0;
}

static void
replay_one(void)
{
	const struct record *r = &records[sl_test_rand() % RECORDS];
	uint8_t bytes[256];
	struct sl_addr from = r->from;

	if (!r->to)
		return;
	memcpy(bytes, r->bytes, r->len);
	if (sl_test_rand() % 3 == 0)
		bytes[sl_test_rand() % r->len] ^= (uint8_t)(1 + sl_test_rand() % 255);
	if (sl_test_rand() % 3 == 0)
		from.udp_port = (uint16_t)(1 + sl_test_rand() % 65535);
	net_inject(net, &from, r->to, bytes, r->len);
}

static void
act(void)
{
	unsigned i = (unsigned)(sl_test_rand() & 1);

	switch (sl_test_rand() % 16) {
	case 0:
		net->loss = (double)(sl_test_rand() % 101) / 100;
		break;
	case 1:
		net->loss = 0;
		deaf = 0;
		break;
	case 2:
		deaf = (unsigned)(sl_test_rand() % 4);
		break;
	case 3:
		net->jitter_us = sl_test_rand() % (3 * NET_S);
		break;
	case 4:
		net->duplicate = (double)(sl_test_rand() % 100) / 100;
		break;
	case 5:
		net_restart(n[i], true);
		if (sl_test_rand() & 1)
			net_configure(n[i], n[!i]);
		break;
	case 6:
		(void)!sl_links_disconnect(n[i]->links, sl_identity_xonly(n[!i]->identity),
			SL_DISCONNECT_OTHER, net->now_us);
		break;
	case 7:
	case 8:
		net_configure(n[i], n[!i]);
		break;
	case 9:
		n[i]->addr.udp_port = (uint16_t)(1 + sl_test_rand() % 65535);
		break;
	case 10:
	case 11:
	case 12:
		for (unsigned k = 0; k < 20; k++)
			replay_one();
		break;
	default:
		(void)!net_data(n[i], n[!i]);
		break;
	}
}

static void
episode(struct sl_links_config *config)
{
	unsigned acts = 1 + (unsigned)(sl_test_rand() % 40);

	net = net_create();
	memset(records, 0, sizeof(records));
	recorded = deaf = 0;
	net_pair(net, n, config);
	net->tap = chaos_tap;
	for (unsigned k = 0; k < acts; k++) {
		uint64_t wait = sl_test_rand() % 4;

		act();
		net_run(net, wait == 0	 ? sl_test_rand() % (20 * NET_MS)
			     : wait == 1 ? sl_test_rand() % (2 * NET_S)
			     : wait == 2 ? sl_test_rand() % (40 * NET_S)
					 : sl_test_rand() % (150 * NET_S));
	}
	net->loss = net->duplicate = 0;
	net->jitter_us = 0;
	deaf = 0;
}

SL_TEST(links_chaos, heals)
{
	uint64_t worst = 0, sum = 0;
	unsigned runs = 400, astray = 0;

	for (unsigned r = 0; r < runs && !sl_test_failed(); r++) {
		struct sl_links_config c;
		uint64_t heal, at;
		unsigned who = r & 1;

		sl_links_config_default(&c);
		c.rekey_after_us = (r % 3 ? 120 : 20) * NET_S;
		episode(&c);
		at = net->now_us;
		net_configure(n[who], n[!who]);
		/* Longest honest wait: the dead timeout, then a dial begun before it. */
		while (net->now_us - at < 120 * NET_S) {
			net_run(net, NET_S);
			if (net_linked(n[0], n[1]) && net_carries(n[0], n[1]))
				break;
		}
		heal = net->now_us - at;
		SL_EXPECT_LT(heal, 90 * NET_S);
		worst = heal > worst ? heal : worst;
		sum += heal;
		/*
		 * What was under way may lead one side astray yet. It is back when the peer is next heard, a heartbeat later, or
		 * the link is dialled anew by the one that is left alone.
		 */
		for (unsigned s = 0; s < 40; s++) {
			if (s == 3)
				n[0]->ups = n[1]->ups = 0;
			net_run(net, 5 * NET_S);
			if (!net_carries(n[0], n[1])) {
				astray++;
				SL_EXPECT_LT(s, 3);
			}
		}
		SL_EXPECT_EQ(n[0]->ups + n[1]->ups, 0); /* it stays */
		SL_EXPECT_LE(sl_session_count(n[0]->table), 3);
		if (sl_test_failed())
			printf("episode %u\n", r);
		net_destroy(net);
	}
	printf("%u episodes, healed after %.1f s on average, %.1f s at worst, astray %u times "
	       "after that\n",
		runs, (double)sum / runs / 1e6, (double)worst / 1e6, astray);
}
