/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steering: flow rules, RSS, hand-over (sl_steer.h). Frames of sealed datagrams go through the stand-in of nic.h into the
 * queues that rules put them in, and the workers say whether they were theirs.
 */
#include <rte_eth_ring.h>
#include "nic.h"
#include "rows.h"

#define FRAMES 20u

static struct sl_port *
port_of(struct rig *r, unsigned port)
{
	return &r->dp->ports[port];
}

static struct rig *
rig_with(unsigned flags, unsigned most, struct rig_config *config)
{
	nic_set(flags, most);
	config->queue_of = nic_queue_of;
	if (!config->in_rings)
		config->in_rings = config->workers;
	return rig_create(config);
}

static void
rig_end(struct rig *r)
{
	rig_destroy(r);
	SL_EXPECT_EQ(nic_rules(), 0);
	SL_EXPECT_EQ(nic_left_at_stop(), 0);
}

static void
received(struct rig *r, unsigned port, uint64_t *rx, uint64_t *handed)
{
	struct sl_port_stats s;

	SL_ASSERT(sl_dataplane_port_stats(r->dp, (uint16_t)port, &s) == 0);
	*rx = s.received;
	*handed = s.handed_over;
}

/* Sends so many frames from a to b and says how many of them another worker than the receiving one had to take. */
static uint64_t
send_frames(struct rig *r, struct rig_peer *a, struct rig_peer *b, unsigned count)
{
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	uint64_t rx = 0, handed = 0, rx0 = 0, handed0 = 0;
	unsigned came = 0;
	size_t len;

	received(r, a->port, &rx0, &handed0);
	for (unsigned i = 0; i < count; i++)
		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "0123456789", 10, msg);
	rig_poll(r, true);
	while ((len = rig_receive(r, b->port, frame)) != 0)
		if (memcmp(frame, b->mac, 6) == 0)
			came += rig_open(r, b, frame, len, msg, NULL, NULL) != 0;
	SL_EXPECT_EQ(came, count);
	received(r, a->port, &rx, &handed);
	SL_EXPECT_EQ(rx - rx0, count);
	return handed - handed0;
}

static void
expect_mode(struct rig *r, unsigned port, const char *mode, const char *why)
{
	struct sl_port_stats s;

	SL_ASSERT(sl_dataplane_port_stats(r->dp, (uint16_t)port, &s) == 0);
	SL_EXPECT_MSG(!strcmp(s.steering, mode) && strstr(s.steering_why, why), "port %u: %s: %s, expected %s: ...%s...", port,
		s.steering, s.steering_why, mode, why);
}

/* Peers of each worker on port 0, over each family; all their frames to one peer on port 1. */
static uint64_t
handed_of_all(struct rig *r, uint64_t *sent)
{
	struct rig_peer *to = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	uint64_t handed = 0;

	*sent = 0;
	for (uint16_t w = 0; w < r->config.workers; w++)
		for (unsigned k = 0; k < 4; k++) {
			struct rig_peer *a = rig_peer_add(r, k % 2 ? SL_ADDR_UDP6 : SL_ADDR_UDP4, 0, w);

			handed += send_frames(r, a, to, FRAMES);
			*sent += FRAMES;
		}
	return handed;
}

/* --- a rule ---------------------------------------------------------------------------------------------------------- */

SL_TEST(steer, what_a_rule_says)
{
	const struct sl_steer_match match = {.family = 6, .vlan = 7, .udp_port = 2121, .value = 2, .mask = 3};
	const struct rte_flow_item_raw *raw;
	struct sl_steer_rule r;

	sl_steer_rule_make(&r, &match, 5, true);
	SL_EXPECT_EQ(r.attr.ingress, 1);
	SL_EXPECT_EQ(r.items[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	SL_EXPECT_EQ(r.items[1].type, RTE_FLOW_ITEM_TYPE_VLAN);
	SL_EXPECT_EQ(r.items[2].type, RTE_FLOW_ITEM_TYPE_IPV6);
	SL_EXPECT_EQ(r.items[3].type, RTE_FLOW_ITEM_TYPE_UDP);
	SL_EXPECT_EQ(r.items[4].type, RTE_FLOW_ITEM_TYPE_RAW);
	SL_EXPECT_EQ(r.items[5].type, RTE_FLOW_ITEM_TYPE_END);
	raw = r.items[4].spec;
	SL_EXPECT_EQ(raw->relative, 1);
	SL_EXPECT_EQ(raw->search, 0);
	SL_EXPECT_EQ(raw->offset, 4); /* receiver_idx of an established frame: link layer facts, 4.4 */
	SL_EXPECT_EQ(raw->length, 2);
	SL_EXPECT_EQ(raw->pattern[0], 2);
	SL_EXPECT_EQ(((const struct rte_flow_item_raw *)r.items[4].mask)->pattern[0], 3);
	SL_EXPECT_EQ(((const struct rte_flow_item_raw *)r.items[4].mask)->pattern[1], 0);
	SL_EXPECT_EQ(r.actions[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	SL_EXPECT_EQ(((const struct rte_flow_action_queue *)r.actions[0].conf)->index, 5);
	SL_EXPECT_EQ(r.actions[1].type, RTE_FLOW_ACTION_TYPE_COUNT);
	SL_EXPECT_EQ(r.actions[2].type, RTE_FLOW_ACTION_TYPE_END);
	sl_steer_rule_make(&r, &(struct sl_steer_match){.family = 4, .udp_port = 1, .mask = 1}, 0, false);
	SL_EXPECT_EQ(r.items[1].type, RTE_FLOW_ITEM_TYPE_IPV4);
	SL_EXPECT_EQ(r.items[4].type, RTE_FLOW_ITEM_TYPE_END);
	SL_EXPECT_EQ(r.actions[1].type, RTE_FLOW_ACTION_TYPE_END);
}

/* --- rules --------------------------------------------------------------------------------------------------------- */

SL_TEST(steer, rules_bring_frames_to_their_owner)
{
	for (uint16_t workers = 2; workers <= RIG_WORKERS; workers++) {
		struct rig_config config = {.workers = workers};
		struct rig *r = rig_with(NIC_RULES, 0, &config);
		const unsigned values = workers == 2 ? 2 : 4;
		struct sl_port_stats s;
		uint64_t sent;

		SL_ASSERT(r);
		expect_mode(r, 0, "flow", "each read back by its counter; raw Ethernet by software");
		expect_mode(r, 1, "flow", "each read back by its counter");
		SL_EXPECT_EQ(nic_rules(), 2 * 2 * values); /* ports, families */
		SL_EXPECT_EQ(handed_of_all(r, &sent), 0);
		SL_ASSERT(sl_dataplane_port_stats(r->dp, 0, &s) == 0);
		SL_EXPECT_EQ(s.flow_rules, 2 * values);
		SL_EXPECT_EQ(sl_dataplane_flow_hits(r->dp, 0), sent);
		rig_end(r);
	}
}

/* The same frames without rules: what the case above would count if rules did nothing. */
SL_TEST(steer, without_rules_frames_are_handed_over)
{
	struct rig_config config = {.workers = 3};
	struct rig *r = rig_with(0, 0, &config);
	uint64_t sent, handed;

	SL_ASSERT(r);
	expect_mode(r, 0, "software", "one receive queue");
	SL_EXPECT_EQ(port_of(r, 0)->rx_queues, 1);
	handed = handed_of_all(r, &sent);
	SL_EXPECT_EQ(handed, sent * 2 / 3);
	rig_end(r);
}

SL_TEST(steer, tagged_frames)
{
	struct rig_config config = {.workers = 2, .vlan = 42};
	struct rig *r = rig_with(NIC_RULES, 0, &config);
	uint64_t sent;

	SL_ASSERT(r);
	expect_mode(r, 0, "flow", "counter");
	SL_EXPECT_EQ(handed_of_all(r, &sent), 0);
	rig_end(r);
}

/* Raw Ethernet on the same port has no rule: first queue, hand-over. */
SL_TEST(steer, raw_ethernet_is_handed_over)
{
	struct rig_config config = {.workers = 2};
	struct rig *r = rig_with(NIC_RULES | NIC_RSS, 0, &config);
	struct rig_peer *to, *a, *b;

	SL_ASSERT(r);
	to = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	a = rig_peer_add(r, SL_ADDR_ETH, 0, 0);
	b = rig_peer_add(r, SL_ADDR_ETH, 0, 1);
	SL_EXPECT_EQ(send_frames(r, a, to, FRAMES), 0);
	SL_EXPECT_EQ(send_frames(r, b, to, FRAMES), FRAMES);
	rig_end(r);
}

/* Handshakes have the sender's index where ours would be: any queue, and control gets all of them. */
SL_TEST(steer, handshakes_reach_control)
{
	struct rig_config config = {.workers = 4};
	struct rig *r = rig_with(NIC_RULES, 0, &config);
	struct rig_peer *a;
	uint8_t packet[114] = {1, 0, 110}, frame[RIG_FRAME_MAX];

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	rig_forget(r);
	for (unsigned i = 0; i < 16; i++) {
		packet[4] = (uint8_t)i;
		rig_inject(r, 0, frame, rig_wrap(r, a, frame, packet, sizeof(packet)));
	}
	rig_poll(r, true);
	SL_EXPECT(rig_seen(r, RIG_HANDSHAKE, 15) != NULL);
	SL_EXPECT(rig_seen(r, RIG_HANDSHAKE, 16) == NULL);
	rig_end(r);
}

/* Two of three workers receive here: the third one's frames cannot be steered, and are named. */
SL_TEST(steer, owners_that_receive_elsewhere)
{
	struct rig_config config = {.workers = 3, .rx_workers = 3, .in_rings = 3};
	struct rig *r = rig_with(NIC_RULES, 0, &config);
	struct rig_peer *to, *p;

	SL_ASSERT(r);
	expect_mode(r, 0, "flow", "; 1 of 4 owners receive elsewhere");
	SL_EXPECT_EQ(port_of(r, 0)->rx_queues, 2);
	to = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	for (uint16_t w = 0; w < 3; w++) {
		p = rig_peer_add(r, SL_ADDR_UDP6, 0, w);
		SL_EXPECT_EQ(send_frames(r, p, to, FRAMES), w == 2 ? FRAMES : 0);
	}
	rig_end(r);
}

/* --- the device's life ----------------------------------------------------------------------------------------------- */

SL_TEST(steer, rules_are_made_again_after_a_reset)
{
	struct rig_config config = {.workers = 2};
	struct rig *r = rig_with(NIC_RULES, 0, &config);
	uint64_t sent;

	SL_ASSERT(r);
	SL_EXPECT_EQ(nic_made(), 8);
	sl_port_event(port_of(r, 0)->ethdev, RTE_ETH_EVENT_INTR_RESET, port_of(r, 0), NULL);
	rig_poll(r, true);
	rig_poll(r, true);
	SL_EXPECT_EQ(port_of(r, 0)->resets, 1);
	SL_EXPECT_EQ(nic_left_at_stop(), 0);
	SL_EXPECT_EQ(nic_rules(), 8);
	SL_EXPECT_EQ(nic_made(), 12);
	expect_mode(r, 0, "flow", "counter");
	SL_EXPECT_EQ(handed_of_all(r, &sent), 0);
	rig_end(r);
}

SL_TEST(steer, rules_go_with_a_device_and_come_back_with_it)
{
	struct rig_config config = {.workers = 2};
	struct rig *r = rig_with(NIC_RULES, 0, &config);
	char name[32];
	uint64_t sent;

	SL_ASSERT(r);
	sl_port_event(port_of(r, 0)->ethdev, RTE_ETH_EVENT_INTR_RMV, port_of(r, 0), NULL);
	rig_poll(r, true);
	rig_poll(r, true);
	SL_EXPECT_EQ(nic_rules(), 4); /* the other port's */
	SL_EXPECT_EQ(port_of(r, 0)->steer.count, 0);
	snprintf(name, sizeof(name), "%s", port_of(r, 0)->config.device + strlen("net_ring_"));
	SL_ASSERT(rte_eth_from_rings(name, r->in_queue[0], 2, r->out[0], r->out_rings, 0) >= 0);
	port_of(r, 0)->next_look_us = 0;
	rig_poll(r, true);
	SL_EXPECT_EQ(port_of(r, 0)->returns, 1);
	SL_EXPECT_EQ(nic_rules(), 8);
	expect_mode(r, 0, "flow", "counter");
	SL_EXPECT_EQ(handed_of_all(r, &sent), 0);
	rig_end(r);
}

/* --- reading back, and what comes instead ------------------------------------------------------------------------------ */

SL_TEST(steer, how_rules_are_read_back)
{
	static const struct {
		unsigned flags;
		enum sl_steering steering;
		const char *mode, *why;
		unsigned rules;
	} rows[] = {
		{NIC_RULES | NIC_NO_COUNT, SL_STEERING_AUTO, "flow", "each read back by its dump", 8},
		{NIC_RULES | NIC_NO_COUNT | NIC_NO_DUMP | NIC_EXIST, SL_STEERING_AUTO, "flow", "by its refusal of a second one", 8},
		{NIC_RULES | NIC_NO_COUNT | NIC_NO_DUMP, SL_STEERING_AUTO, "software", "the driver cannot show them", 0},
		{NIC_RULES | NIC_NO_COUNT | NIC_NO_DUMP | NIC_RSS, SL_STEERING_AUTO, "rss", "the driver cannot show them", 0},
		{NIC_RULES | NIC_NO_COUNT | NIC_NO_DUMP, SL_STEERING_FLOW, "flow", "NOT read back", 8},
		{NIC_RULES | NIC_NO_RAW, SL_STEERING_AUTO, "software", "flow rules refused (no raw patterns here): no RSS", 0},
		{NIC_RULES | NIC_NO_RAW | NIC_RSS, SL_STEERING_FLOW, "rss",
			"flow rules refused (no raw patterns here): RSS over the outer five-tuple, read back, table of 2 queues", 0},
		{NIC_RSS, SL_STEERING_AUTO, "rss", "the driver has no flow rules: RSS", 0},
		{NIC_RULES | NIC_RSS, SL_STEERING_RSS, "rss", "steering: rss: RSS over the outer five-tuple", 0},
		{NIC_RSS | NIC_RSS_ADDRESSES, SL_STEERING_RSS, "rss", "RSS over the outer addresses alone, read back", 0},
		{NIC_RSS | NIC_RSS_FLAT, SL_STEERING_RSS, "rss", "table of 2 queues", 0},
		{NIC_RSS | NIC_RSS_MUTE, SL_STEERING_RSS, "rss", "the driver does not show it", 0},
		{NIC_RSS | NIC_RSS_NONE, SL_STEERING_RSS, "software", "read back without IP or UDP", 0},
		{NIC_RULES | NIC_RSS, SL_STEERING_OFF, "software", "steering: off", 0},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rig_config config = {.workers = 2, .steering = rows[i].steering};
		struct rig *r = rig_with(rows[i].flags, 0, &config);
		uint64_t sent, handed;

		SL_ASSERT(r);
		expect_mode(r, 0, rows[i].mode, rows[i].why);
		SL_EXPECT_EQ(nic_rules(), rows[i].rules);
		handed = handed_of_all(r, &sent);
		SL_EXPECT_MSG((handed == 0) == (rows[i].rules != 0), "row %u: %u of %u handed over", i, (unsigned)handed, (unsigned)sent);
		rig_end(r);
	}
}

/* All rules or none: a table too small for the last one. */
SL_TEST(steer, a_table_that_is_too_small)
{
	struct rig_config config = {.workers = 2};
	struct rig *r = rig_with(NIC_RULES, 7, &config);
	uint64_t sent;

	SL_ASSERT(r);
	expect_mode(r, 0, "flow", "4 rules");
	expect_mode(r, 1, "software", "flow rules refused (table of rules is full)");
	SL_EXPECT_EQ(nic_rules(), 4);
	SL_EXPECT_EQ(nic_made(), 7);
	SL_EXPECT_EQ(handed_of_all(r, &sent), 0);
	rig_end(r);
}

/* A device that shows rules and does not go by them: traffic tells, once there is enough of it. */
SL_TEST(steer, rules_that_do_not_steer)
{
	for (unsigned insist = 0; insist < 2; insist++) {
		struct rig_config config = {.workers = 2, .no_ethernet = true,
			.steering = insist ? SL_STEERING_FLOW : SL_STEERING_AUTO};
		struct rig *r = rig_with(NIC_RULES | NIC_BLIND, 0, &config);
		struct rig_peer *to, *a;

		SL_ASSERT(r);
		to = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
		a = rig_peer_add(r, SL_ADDR_UDP4, 0, 1);
		SL_EXPECT_EQ(send_frames(r, a, to, FRAMES), FRAMES);
		port_of(r, 0)->next_look_us = 0;
		rig_poll(r, true);
		expect_mode(r, 0, "flow", "counter"); /* too few to tell */
		for (unsigned i = 0; i < 4100; i += 100)
			SL_EXPECT_EQ(send_frames(r, a, to, 100), 100);
		port_of(r, 0)->next_look_us = 0;
		rig_poll(r, true);
		expect_mode(r, 0, insist ? "flow" : "software", insist ? "counter" : "flow rules did not steer");
		SL_EXPECT_EQ(nic_rules(), insist ? 8 : 4);
		/* Not taken up again by a reset of the same device. */
		sl_port_event(port_of(r, 0)->ethdev, RTE_ETH_EVENT_INTR_RESET, port_of(r, 0), NULL);
		rig_poll(r, true);
		rig_poll(r, true);
		SL_EXPECT_EQ(nic_rules(), insist ? 8 : 4);
		rig_end(r);
	}
}

/* Rules that do steer stand the same look. */
SL_TEST(steer, rules_that_steer_stay)
{
	struct rig_config config = {.workers = 2, .no_ethernet = true};
	struct rig *r = rig_with(NIC_RULES, 0, &config);
	struct rig_peer *to, *a;

	SL_ASSERT(r);
	to = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 1);
	for (unsigned i = 0; i < 4100; i += 100)
		SL_EXPECT_EQ(send_frames(r, a, to, 100), 0);
	port_of(r, 0)->next_look_us = 0;
	rig_poll(r, true);
	expect_mode(r, 0, "flow", "counter");
	SL_EXPECT_EQ(nic_rules(), 8);
	rig_end(r);
}

SL_TEST(steer, one_worker_has_nothing_to_choose)
{
	struct rig_config config = {.workers = 1, .in_rings = 2};
	struct rig *r = rig_with(NIC_RULES | NIC_RSS, 0, &config);

	SL_ASSERT(r);
	expect_mode(r, 0, "one", "one worker");
	SL_EXPECT_EQ(port_of(r, 0)->rx_queues, 1);
	SL_EXPECT_EQ(nic_made(), 0);
	rig_end(r);
}
