/* SPDX-License-Identifier: BSD-3-Clause */
/* 4,096 peers at once: sessions, paths and rows of all of them, each worker owning its share; everybody sends, everybody gets. */
#include "rig.h"

#define CROWD 4096u

SL_TEST(crowd, everybody_to_everybody)
{
	struct rig_config config = {.workers = 3, .max_peers = CROWD + 16};
	struct rig *r = rig_create(&config);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	uint64_t handed = 0;
	unsigned came = 0;
	uint32_t step;
	size_t len;

	SL_ASSERT(r);
	for (unsigned i = 0; i < CROWD; i++) /* addresses of IP peers are those of one /24 */
		rig_peer_add(r, i < 100 ? SL_ADDR_UDP4 : i < 200 ? SL_ADDR_UDP6 : SL_ADDR_ETH, i % 2, (uint16_t)(i % 3));
	SL_EXPECT_EQ(sl_session_count(r->table), CROWD);
	for (uint16_t p = 0; p < RIG_PORTS; p++)
		while (rig_receive(r, p, frame))
			;
	/* From each to another one, no two to the same. */
	step = 2 * (uint32_t)(sl_test_rand() % (CROWD / 2)) + 1;
	for (unsigned i = 0; i < CROWD; i++) {
		struct rig_peer *to = &r->peers[(i * step + 1) % CROWD];

		if (to == &r->peers[i]) /* its own: control's to decide */
			to = &r->peers[(i + 1) % CROWD];
		rig_send_datagram(r, &r->peers[i], &to->addr, 0, 64, 1280, &i, sizeof(i), msg);
		rig_poll(r, false);
		len = rig_receive(r, to->port, frame);
		came += len && rig_open(r, to, frame, len, msg, NULL, NULL) != 0 && memcmp(msg + 36, &i, sizeof(i)) == 0;
	}
	SL_EXPECT_EQ(came, CROWD);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), CROWD);
	for (uint16_t p = 0; p < RIG_PORTS; p++) {
		struct sl_port_stats s;

		SL_ASSERT(sl_dataplane_port_stats(r->dp, p, &s) == 0);
		handed += s.handed_over;
	}
	/* One queue a port: two of three are another worker's. */
	SL_EXPECT_GT(handed, CROWD / 2);
	SL_EXPECT_EQ(handed, rig_verdict(r, SL_HANDOFF));
	rig_destroy(r);
}
