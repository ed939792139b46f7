/* SPDX-License-Identifier: BSD-3-Clause */
/* Two nodes and what can happen to their handshakes. Link layer facts, section 7. */
#include "link_net.h"

SL_TEST(links, dialler_and_answerer)
{
	struct net *net = net_create();
	struct node *n[2];
	struct sl_link_info a, b;

	net_pair(net, n, NULL);
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	/* msg1, msg2 and the dialler's heartbeat: three trips. */
	SL_EXPECT_LE(net->now_us, 1000 * NET_S + 3 * net->delay_us);
	SL_EXPECT(net_carries(n[0], n[1]));
	SL_EXPECT(net_info(n[0], n[1], &a) && net_info(n[1], n[0], &b));
	SL_EXPECT_EQ(a.rx_index, b.tx_index);
	SL_EXPECT_EQ(b.rx_index, a.tx_index);
	SL_EXPECT(a.outbound && !b.outbound);
	SL_EXPECT_STR(a.state, "up");
	net_run(net, 100 * NET_S);
	SL_EXPECT(net_carries(n[0], n[1]));
	SL_EXPECT_EQ(n[0]->ups + n[1]->ups, 2);
	net_destroy(net);
}
