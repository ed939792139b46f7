/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Against a peer that behaves as the reference does where our own links do otherwise: established
 * as soon as it has sent msg2, cut over by its clock, one msg2 for all that look like the same
 * dial, rekey msg2 never repeated.
 */
#include "puppet.h"

static struct net *net;
static struct node *n;
static struct puppet *p;

static void
begin(const struct sl_links_config *config)
{
	net = net_create();
	n = net_node(net, config, 32, true);
	p = puppet_create(net);
}

static void
end(void)
{
	puppet_destroy(p);
	net_destroy(net);
}

struct find {
	struct sl_link_info *info;
	bool found;
};
static void
find(void *arg, const struct sl_link_info *info)
{
	struct find *f = arg;

	if (memcmp(info->xonly, sl_identity_xonly(p->identity), SL_XONLY_BYTES) == 0) {
		*f->info = *info;
		f->found = true;
	}
}
static bool
info_of(struct sl_link_info *info)
{
	struct find f = {.info = info};

	sl_links_for_each(n->links, find, &f);
	return f.found;
}

static bool
up(void)
{
	struct sl_link_info info;

	return info_of(&info) && strcmp(info.state, "up") == 0;
}

static bool
we_are_smaller(void)
{
	return sl_node_addr_cmp(sl_identity_addr(n->identity), sl_identity_addr(p->identity)) < 0;
}

/* The puppet dials and its first frame confirms. */
static void
dialled_by_puppet(uint32_t index)
{
	puppet_dial(p, n, index, NULL);
	net_run(net, NET_MS);
	SL_ASSERT(p->msg2 > 0 && puppet_finish(p, n));
	SL_EXPECT(!up()); /* a msg1 alone makes no peer */
	puppet_heartbeat(p, n, 0);
	net_run(net, NET_MS);
	SL_EXPECT(up());
}

static void
dialled_by_us(uint32_t index)
{
	puppet_configure(n, p);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(p->msg1, 1);
	puppet_answer(p, n, index, true);
	net_run(net, NET_MS);
	SL_EXPECT(up());
	SL_EXPECT_GE(p->heartbeats, 1);
}

/* Keeps the link alive as the reference does: something every second. */
static void
chatter(uint64_t seconds, uint8_t flags)
{
	while (seconds--) {
		uint8_t sr[SL_SENDER_REPORT_BYTES] = {SL_MSG_SENDER_REPORT};

		puppet_send(p, n, flags, sr, sizeof(sr));
		net_run(net, NET_S);
	}
}

SL_TEST(links_reference, first_contact)
{
	begin(NULL);
	dialled_by_puppet(7);
	end();
	begin(NULL);
	dialled_by_us(0); /* 0 is a legal index */
	chatter(20, 0);
	SL_EXPECT(up());
	end();
}

/* Both dialled; the reference is established on our msg1 before it sees our msg2 (7.4). */
SL_TEST(links_reference, crossing_dials)
{
	for (unsigned round = 0; round < 16; round++) {
		struct puppet in;
		uint8_t mine;

		begin(NULL);
		puppet_configure(n, p);
		puppet_dial(p, n, 100, NULL); /* its dial, in flight beside ours */
		net_run(net, NET_MS);
		SL_EXPECT_EQ(p->msg1, 1);
		SL_EXPECT_EQ(p->msg2, 1);
		/* `in`: the session of our dial, which it answers; p: the one of its own dial. */
		in = *p;
		puppet_answer(&in, n, 200, true);
		SL_EXPECT(puppet_finish(p, n));
		/* Its announce on the session that it has first. */
		mine = SL_MSG_TREE_ANNOUNCE;
		if (round & 1) {
			uint8_t announce[132] = {mine};

			puppet_send(&in, n, 0, announce, sizeof(announce));
		}
		net_run(net, NET_MS);
		SL_EXPECT(up());
		SL_EXPECT_EQ(net_counter(n, SL_LINK_CROSS_CONNECT), 1);
		/* We smaller: our dial stays (`in`). We larger: its dial. Both know without another
		 * word. */
		SL_EXPECT_EQ(sl_links_send(n->links, 0, &mine, 1, 0, net->now_us), 0);
		{
			struct sl_link_info info;

			SL_EXPECT(info_of(&info));
			SL_EXPECT_EQ(info.tx_index, we_are_smaller() ? 200 : 100);
			SL_EXPECT_EQ(info.outbound, we_are_smaller());
		}
		/* Traffic on the winner only; 60 s later all is as it was. */
		for (unsigned i = 0; i < 60; i++) {
			puppet_heartbeat(we_are_smaller() ? &in : p, n, 0);
			net_run(net, NET_S);
		}
		SL_EXPECT(up());
		SL_EXPECT_EQ(n->ups, 1);
		end();
	}
}

/* A recorded msg1 of the peer's comes while we dial: the choice was wrong, and is taken back. */
SL_TEST(links_reference, recorded_msg1_during_our_dial)
{
	unsigned larger = 0;

	for (unsigned round = 0; round < 8 || (!larger && round < 64); round++) {
		uint8_t recorded[SL_MSG1_PACKET_BYTES];
		struct puppet old;

		begin(NULL);
		old = *p; /* recorded from an earlier handshake of the same process */
		puppet_dial(&old, n, 55, recorded);
		net_run(net, NET_MS);
		puppet_configure(n, p);
		net_run(net, NET_MS);
		puppet_answer(p, n, 77, true);
		net_run(net, NET_MS);
		SL_EXPECT(up());
		larger += !we_are_smaller();
		for (unsigned i = 0; i < 8; i++) {
			puppet_heartbeat(p, n, 0);
			net_run(net, NET_S);
		}
		{
			struct sl_link_info info;

			SL_EXPECT(info_of(&info));
			SL_EXPECT_EQ(info.tx_index, 77);
		}
		SL_EXPECT(up());
		end();
	}
	SL_EXPECT_GT(larger, 0);
}

/* We rekey; it answers and cuts over by its clock. */
SL_TEST(links_reference, our_rekey)
{
	struct sl_link_info info;
	struct puppet old;

	begin(NULL);
	dialled_by_us(1);
	for (unsigned i = 0; i < 140 && p->msg1 < 2; i++)
		chatter(1, 0);
	SL_EXPECT_EQ(p->msg1, 2);
	old = *p;
	puppet_answer(p, n, 2, true);
	net_run(net, 10 * NET_MS);
	/* Announced on the new session, with K flipped; still sending on the old one. */
	SL_EXPECT_EQ(p->last_k, SL_FLAG_K);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 1);
	puppet_heartbeat(&old, n, 0); /* what it sent before its tick */
	net_run(net, 100 * NET_MS);
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 10 * NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	SL_EXPECT_EQ(info.k, SL_FLAG_K);
	/* A late one on the old keys is still opened. */
	puppet_heartbeat(&old, n, 0);
	net_run(net, 10 * NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_UNKNOWN_INDEX), 0);
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 11 * NET_S);
	puppet_heartbeat(&old, n, 0);
	net_run(net, 10 * NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_UNKNOWN_INDEX), 1);
	end();
}

/* Its K is not what ours would be after the toggle (9.3): taken from the frame. */
SL_TEST(links_reference, k_is_taken_from_the_frame)
{
	struct sl_link_info info;

	begin(NULL);
	dialled_by_us(1);
	for (unsigned i = 0; i < 140 && p->msg1 < 2; i++)
		chatter(1, SL_FLAG_K);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.k, SL_FLAG_K); /* its first frame said so */
	puppet_answer(p, n, 2, true);
	net_run(net, 10 * NET_MS);
	puppet_heartbeat(p, n, SL_FLAG_K); /* did not toggle */
	net_run(net, 10 * NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	SL_EXPECT_EQ(info.k, SL_FLAG_K);
	end();
}

/* Its rekey: we answer, wait for its first frame however long its tick takes, and repeat msg2 for
 * the same msg1. */
SL_TEST(links_reference, its_rekey)
{
	uint8_t packet[SL_MSG1_PACKET_BYTES], first[SL_MSG2_PACKET_BYTES];
	struct sl_link_info info;
	struct puppet old;

	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	old = *p;
	puppet_dial(p, n, 2, packet);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(p->msg2, 1);
	memcpy(first, p->last_msg2, sizeof(first));
	net_inject(net, &p->addr, n, packet, sizeof(packet));
	net_run(net, NET_MS);
	SL_EXPECT_EQ(p->msg2, 2);
	SL_EXPECT_MEM(p->last_msg2, first, sizeof(first));
	net_run(net, 3 * NET_S);
	puppet_heartbeat(&old, n, 0);
	net_run(net, NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 1);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	SL_EXPECT_EQ(info.k, SL_FLAG_K);
	SL_EXPECT_EQ(p->last_k, SL_FLAG_K);
	/* The same msg1 once more, long after: still the same answer, and no harm. */
	chatter(40, SL_FLAG_K);
	net_inject(net, &p->addr, n, packet, sizeof(packet));
	net_run(net, NET_MS);
	SL_EXPECT_MEM(p->last_msg2, first, sizeof(first));
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	end();
}

/* Said on the session before: about the link that was (a goodbye that came late). */
SL_TEST(links_reference, disconnect_on_the_old_session)
{
	const uint8_t disconnect[2] = {SL_MSG_DISCONNECT, SL_DISCONNECT_OTHER};
	struct puppet old;

	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	old = *p;
	puppet_dial(p, n, 2, NULL);
	net_run(net, NET_MS);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, NET_MS);
	puppet_send(&old, n, 0, disconnect, sizeof(disconnect));
	net_run(net, NET_MS);
	SL_EXPECT(up());
	SL_EXPECT_EQ(net_counter(n, SL_LINK_DISCONNECT_STALE), 1);
	puppet_send(p, n, 0, disconnect, sizeof(disconnect));
	net_run(net, NET_MS);
	SL_EXPECT(!up());
	end();
}

/* Recorded msg1 that are played between its rekey msg1 and its first frame push that session out of nothing. */
SL_TEST(links_reference, recorded_msg1_during_its_rekey)
{
	uint8_t recorded[SL_MSG1_PACKET_BYTES];
	struct sl_link_info info;

	begin(NULL);
	puppet_dial(p, n, 1, recorded);
	net_run(net, NET_MS);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, 0);
	chatter(31, 0);
	puppet_dial(p, n, 2, NULL);
	net_run(net, NET_MS);
	SL_EXPECT(puppet_finish(p, n));
	for (unsigned i = 0; i < 8; i++) {
		sl_put32(recorded + 4, 100 + i); /* protected by nothing */
		net_inject(net, &p->addr, n, recorded, sizeof(recorded));
		net_run(net, NET_MS);
	}
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_CROWDED), 5);
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	/* Later ones give way as before. */
	net_run(net, 3 * NET_S);
	puppet_heartbeat(p, n, SL_FLAG_K);
	chatter(31, SL_FLAG_K);
	puppet_dial(p, n, 3, NULL);
	net_run(net, NET_MS);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, 0);
	net_run(net, NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 3);
	end();
}

/* We ended the link, our goodbye was lost, and it takes our new dial for a rekey: K is seen first. */
SL_TEST(links_reference, dial_after_a_lost_goodbye)
{
	struct sl_link_info info;

	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	SL_EXPECT_EQ(sl_links_disconnect(n->links, sl_identity_xonly(p->identity),
			     SL_DISCONNECT_CONFIGURATION_CHANGE, net->now_us),
		0);
	puppet_configure(n, p);
	net_run(net, NET_MS);
	puppet_answer(p, n, 2, true);
	net_run(net, NET_MS);
	SL_EXPECT(!up());
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_STR(info.state, "up");
	SL_EXPECT_EQ(info.k, SL_FLAG_K);
	end();
}

/* Taken back too early: a frame does come on the session that was doubted. */
SL_TEST(links_reference, the_doubted_session_speaks_after_all)
{
	unsigned larger = 0;

	for (unsigned round = 0; round < 8; round++) {
		struct sl_link_info info;
		struct puppet in;

		begin(NULL);
		in = *p;
		puppet_dial(&in, n, 55, NULL);
		net_run(net, NET_MS);
		memcpy(in.last_msg2, p->last_msg2, sizeof(in.last_msg2));
		puppet_configure(n, p);
		net_run(net, NET_MS);
		puppet_answer(p, n, 77, true);
		for (unsigned i = 0; i < 5; i++) {
			puppet_heartbeat(p, n, 0);
			net_run(net, NET_S);
		}
		SL_EXPECT(info_of(&info));
		SL_EXPECT_EQ(info.tx_index, 77);
		if (!we_are_smaller()) {
			larger++;
			SL_EXPECT(puppet_finish(&in, n));
			puppet_heartbeat(&in, n, 0);
			net_run(net, NET_MS);
			SL_EXPECT(info_of(&info));
			SL_EXPECT_EQ(info.tx_index, 55);
		}
		end();
	}
	SL_EXPECT_GT(larger, 0);
}

/* No rekey of ours for 30 s after its msg1 (9.1). */
SL_TEST(links_reference, its_rekey_damps_ours)
{
	struct sl_links_config c;

	sl_links_config_default(&c);
	c.rekey_after_messages = 1;
	begin(&c);
	dialled_by_us(1);
	chatter(33, 0);
	{
		struct puppet other = *p;

		puppet_dial(&other, n, 2, NULL); /* and never a frame on it */
	}
	chatter(28, 0);
	SL_EXPECT_EQ(p->msg1, 1);
	chatter(5, 0);
	SL_EXPECT_GE(p->msg1, 2);
	end();
}

/* But recorded ones, played again and again, do not put it off for ever. */
SL_TEST(links_reference, recorded_msg1_do_not_stop_our_rekey)
{
	uint8_t recorded[SL_MSG1_PACKET_BYTES];
	struct puppet other;

	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	other = *p;
	puppet_dial(&other, n, 2, recorded);
	for (unsigned i = 0; i < 17; i++) {
		sl_put32(recorded + 4, 100 + i);
		net_inject(net, &p->addr, n, recorded, sizeof(recorded));
		chatter(10, 0);
	}
	SL_EXPECT_GE(p->msg1, 2);
	end();
}

/* Our rekey became current by its time, but the peer never followed: its goodbye on the old session counts. */
SL_TEST(links_reference, disconnect_of_a_peer_that_did_not_follow)
{
	const uint8_t disconnect[2] = {SL_MSG_DISCONNECT, SL_DISCONNECT_OTHER};
	struct puppet old;

	begin(NULL);
	dialled_by_us(1);
	for (unsigned i = 0; i < 140 && p->msg1 < 2; i++)
		chatter(1, 0);
	old = *p;
	puppet_answer(p, n, 2, true);
	net_run(net, 3 * NET_S);
	puppet_send(&old, n, 0, disconnect, sizeof(disconnect));
	net_run(net, 10 * NET_MS);
	SL_EXPECT(!up());
	SL_EXPECT_EQ(net_counter(n, SL_LINK_DISCONNECT_STALE), 0);
	end();
}

/* An index belongs to one transport of ours (13). */
SL_TEST(links_reference, nothing_moves_between_transports)
{
	struct sl_transport_config other = {
		.id = 1, .kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = true};
	struct sl_link_info info;

	begin(NULL);
	SL_EXPECT_EQ(sl_links_transport_add(n->links, &other), 0);
	puppet_configure(n, p);
	net_run(net, NET_MS);
	p->addr.transport = 1;
	puppet_answer(p, n, 1, true);
	net_run(net, NET_MS);
	SL_EXPECT(!up());
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_UNKNOWN), 1);
	p->addr.transport = 0;
	puppet_answer(p, n, 1, true);
	chatter(3, 0);
	p->addr.transport = 1;
	chatter(3, 0);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.addr.transport, 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_ROAM), 0);
	end();
}

/* A report on the session before speaks of its counters and its clock (15.7): it measures nothing. */
SL_TEST(links_reference, report_on_the_old_session)
{
	struct sl_receiver_report r = {.highest_counter = 1, .total_frames = 30, .echo_ts_ms = 1};
	uint8_t msg[SL_RECEIVER_REPORT_BYTES];
	struct puppet old;
	unsigned calls;

	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	old = *p;
	puppet_dial(p, n, 2, NULL);
	net_run(net, NET_MS);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, NET_MS);
	sl_receiver_report_build(msg, &r);
	calls = n->metrics_calls;
	puppet_send(&old, n, 0, msg, sizeof(msg));
	net_run(net, NET_MS);
	SL_EXPECT_EQ(n->metrics_calls, calls);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_REPORT_STALE), 1);
	puppet_send(p, n, SL_FLAG_K, msg, sizeof(msg));
	net_run(net, NET_MS);
	SL_EXPECT_EQ(n->metrics_calls, calls + 1);
	end();
}

/*
 * We lost the link, it did not, and takes our new dial for a rekey: its K is 1 then, and frames of
 * ours with K = 0 would count against us. So no more than a few before its first frame has shown K
 * (9.3).
 */
SL_TEST(links_reference, redial_taken_for_a_rekey)
{
	struct sl_link_info info;

	begin(NULL);
	dialled_by_us(1);
	chatter(5, 0);
	for (unsigned i = 0; i < 50 && p->msg1 < 2; i++)
		net_run(net, NET_S);
	SL_EXPECT_EQ(n->downs[SL_DOWN_DEAD], 1);
	SL_EXPECT_EQ(p->msg1, 2);
	p->frames = 0;
	puppet_answer(p, n, 2, true);
	net_run(net, 900 * NET_MS); /* its tick */
	SL_EXPECT(!up());
	SL_EXPECT_GE(p->heartbeats, 1);
	SL_EXPECT_LE(p->frames, 2);
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 10 * NET_MS);
	SL_EXPECT(up());
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.k, SL_FLAG_K);
	SL_EXPECT_EQ(p->last_k, SL_FLAG_K);
	end();
	/* And when it stays silent, the link is taken up all the same. */
	begin(NULL);
	dialled_by_us(1);
	chatter(5, 0);
	for (unsigned i = 0; i < 50 && p->msg1 < 2; i++)
		net_run(net, NET_S);
	puppet_answer(p, n, 2, true);
	net_run(net, 2100 * NET_MS);
	SL_EXPECT(up());
	end();
}

/* Two rekeys in a row, the first given up: the other answer does not stay around for long. */
SL_TEST(links_reference, candidates_that_lost_go_soon)
{
	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	puppet_dial(p, n, 2, NULL);
	net_run(net, 100 * NET_MS);
	puppet_dial(p, n, 3, NULL);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(sl_session_count(n->table), 3);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 6 * NET_S);
	SL_EXPECT_EQ(sl_session_count(n->table), 2); /* current and draining */
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 5 * NET_S);
	SL_EXPECT_EQ(sl_session_count(n->table), 1);
	end();
}

/* The session before stays until the peer has said, on the new one, that it is there; a frame on
 * the old one is enough to go back. */
SL_TEST(links_reference, one_frame_on_a_new_session_and_then_the_old)
{
	struct sl_link_info info;
	struct puppet old;

	begin(NULL);
	dialled_by_us(1);
	chatter(31, 0);
	old = *p;
	puppet_dial(p, n, 2, NULL);
	net_run(net, NET_MS);
	SL_EXPECT(puppet_finish(p, n));
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 100 * NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	net_run(net, 12 * NET_S); /* longer than a session drains */
	SL_EXPECT_EQ(sl_session_count(n->table), 2);
	puppet_heartbeat(&old, n, 0);
	net_run(net, 2 * NET_S);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 1);
	/* It changes after all. */
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 10 * NET_MS);
	SL_EXPECT(info_of(&info));
	SL_EXPECT_EQ(info.tx_index, 2);
	puppet_heartbeat(p, n, SL_FLAG_K);
	net_run(net, 11 * NET_S);
	SL_EXPECT_EQ(sl_session_count(n->table), 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_UNKNOWN_INDEX), 0);
	end();
}

/* A rekey earlier than the reference would take one costs its own bytes. */
SL_TEST(links_reference, early_rekey_is_let_pass)
{
	begin(NULL);
	dialled_by_us(1);
	chatter(10, 0);
	puppet_dial(p, n, 2, NULL);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(p->msg2, 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_YOUNG), 1);
	end();
}

/* A worker's clock is read later than control's: the link was heard in what control takes for the future. */
SL_TEST(links_reference, heard_a_little_later_than_now)
{
	struct sl_link_info info;
	struct sl_session *s;

	begin(NULL);
	dialled_by_us(1);
	chatter(5, 0);
	SL_EXPECT(info_of(&info));
	s = sl_session_lookup(sl_session_table_view(n->table), info.rx_index);
	SL_ASSERT(s != NULL);
	s->mmp.last_rx_us = net->now_us + 300;
	puppet_dial(p, n, 2, NULL);
	net_run(net, 0);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_YOUNG), 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG2_TX), 0);
	end();
}

/* It answered our rekey, msg2 was lost, it has changed sessions and cannot repeat msg2 (9.5). */
SL_TEST(links_reference, rekey_msg2_lost_for_good)
{
	uint64_t at;
	bool redialled = false;

	begin(NULL);
	dialled_by_us(1);
	for (unsigned i = 0; i < 140 && p->msg1 < 2; i++)
		chatter(1, 0);
	SL_EXPECT_EQ(p->msg1, 2);
	at = net->now_us;
	puppet_answer(p, n, 2, false);
	for (unsigned i = 0; i < 20 && !redialled; i++) {
		uint8_t before[SL_MSG1_PACKET_BYTES];

		puppet_heartbeat(p, n, SL_FLAG_K); /* to an index that means nothing to us yet */
		memcpy(before, p->last_msg1, sizeof(before));
		net_run(net, 500 * NET_MS);
		redialled = memcmp(before + 4, p->last_msg1 + 4, 4) != 0;
	}
	SL_EXPECT(redialled);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_REKEY_RESCUE), 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_DISCONNECT_TX), 1);
	SL_EXPECT_LE(net->now_us - at, 8 * NET_S); /* within its ten seconds of drain */
	puppet_answer(p, n, 3, true);
	net_run(net, 10 * NET_MS);
	SL_EXPECT(up());
	printf("lost rekey msg2 of the reference: new link after %.1f s\n",
		(double)(net->now_us - at) / 1e6);
	end();
}

/* Both rekey at once, it is smaller or larger. */
SL_TEST(links_reference, both_rekey)
{
	for (unsigned round = 0; round < 12; round++) {
		struct puppet own;

		begin(NULL);
		dialled_by_us(1);
		for (unsigned i = 0; i < 140 && p->msg1 < 2; i++)
			chatter(1, 0);
		own = *p;
		puppet_dial(&own, n, 9, NULL);
		net_run(net, NET_MS);
		if (we_are_smaller()) {
			SL_EXPECT_EQ(p->msg2, 0);
			SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG1_REKEY_WON), 1);
			puppet_answer(p, n, 2, true);
			net_run(net, NET_MS);
			puppet_heartbeat(p, n, SL_FLAG_K);
		} else {
			SL_EXPECT_EQ(p->msg2, 1);
			memcpy(own.last_msg2, p->last_msg2, sizeof(own.last_msg2));
			SL_EXPECT(puppet_finish(&own, n));
			puppet_heartbeat(&own, n, SL_FLAG_K);
		}
		net_run(net, NET_MS);
		SL_EXPECT_EQ(net_counter(n, SL_LINK_REKEY), 1);
		SL_EXPECT(up());
		end();
	}
}

/* Several msg1 of one peer within milliseconds: one msg2 for all of them (12). */
SL_TEST(links_reference, parallel_dials)
{
	uint8_t first[SL_MSG2_PACKET_BYTES];
	struct puppet keep;

	begin(NULL);
	puppet_dial(p, n, 1, NULL);
	net_run(net, NET_MS);
	keep = *p;
	memcpy(first, p->last_msg2, sizeof(first));
	for (uint32_t i = 2; i < 5; i++) {
		puppet_dial(p, n, i, NULL);
		net_run(net, NET_MS);
		SL_EXPECT_MEM(p->last_msg2, first, sizeof(first));
	}
	SL_EXPECT(puppet_finish(&keep, n));
	puppet_heartbeat(&keep, n, 0);
	net_run(net, NET_MS);
	SL_EXPECT(up());
	SL_EXPECT_EQ(sl_session_count(n->table), 1);
	end();
}

/* It restarts and is dialled by our rekey: the answer carries another epoch. */
SL_TEST(links_reference, restart_seen_in_a_rekey)
{
	begin(NULL);
	dialled_by_us(1);
	for (unsigned i = 0; i < 140 && p->msg1 < 2; i++)
		chatter(1, 0);
	sl_random(p->epoch, sizeof(p->epoch));
	puppet_answer(p, n, 2, true);
	net_run(net, NET_MS);
	SL_EXPECT(up());
	SL_EXPECT_EQ(n->downs[SL_DOWN_RESTART], 1);
	SL_EXPECT_EQ(n->ups, 2);
	SL_EXPECT_GE(p->heartbeats, 1);
	end();
}

/* The side that began the link flips the spin bit, the other copies it (15.6). */
SL_TEST(links_reference, spin_bit)
{
	const uint8_t msg = SL_MSG_LOOKUP_RESPONSE;

	for (unsigned dialled = 0; dialled < 2; dialled++) {
		uint8_t spin = 0;

		begin(NULL);
		if (dialled)
			dialled_by_puppet(1);
		else
			dialled_by_us(1);
		for (unsigned i = 0; i < 20; i++) {
			uint8_t sent = sl_test_rand() & 1 ? SL_FLAG_SP : 0;

			puppet_heartbeat(p, n, sent);
			net_run(net, 2 * NET_MS);
			SL_EXPECT_EQ(sl_links_send(n->links, 0, &msg, 1, 0, net->now_us), 0);
			if (dialled)
				spin = sent;
			else if (sent == spin)
				spin ^= SL_FLAG_SP;
			SL_EXPECT_EQ(p->last_flags & SL_FLAG_SP, spin);
		}
		/* CE is the caller's, K and SP are not; the rest stays 0. */
		SL_EXPECT_EQ(sl_links_send(n->links, 0, &msg, 1, 0xff, net->now_us), 0);
		SL_EXPECT_EQ(p->last_flags, SL_FLAG_CE | spin);
		end();
	}
}

/* --- messages --- */

SL_TEST(links_reference, messages)
{
	const uint8_t unknown[3] = {0x7f, 1, 2}, short_report[20] = {SL_MSG_RECEIVER_REPORT};
	const uint8_t bare_disconnect = SL_MSG_DISCONNECT,
		      disconnect[3] = {SL_MSG_DISCONNECT, 0x42, 9};
	uint8_t f[40];

	begin(NULL);
	dialled_by_puppet(1);
	puppet_send(p, n, 0, unknown, sizeof(unknown));
	puppet_send(p, n, 0xf8, short_report,
		sizeof(short_report)); /* reserved flags are no reason to refuse */
	puppet_send(p, n, 0, &bare_disconnect, 1);
	net_run(net, NET_MS);
	SL_EXPECT(up());
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG_UNKNOWN), 1);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_MSG_MALFORMED), 2);
	/* A plaintext without a type byte: the counter is used up, nothing else. */
	puppet_send(p, n, 0, unknown, 0);
	net_run(net, NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_SHORT_INNER), 1);
	/* Every length of garbage. */
	for (size_t len = 0; len < sizeof(f); len++) {
		memset(f, 0, sizeof(f));
		net_inject(net, &p->addr, n, f, len);
	}
	net_run(net, NET_MS);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_BAD_PACKET), 39);
	SL_EXPECT_EQ(net_counter(n, SL_LINK_RX_UNKNOWN_INDEX), 1); /* the one of 32 bytes */
	puppet_send(p, n, 0, disconnect, sizeof(disconnect)); /* unknown code, one byte too many */
	net_run(net, NET_MS);
	SL_EXPECT(!up());
	SL_EXPECT_EQ(n->downs[SL_DOWN_DISCONNECT], 1);
	SL_EXPECT_EQ(sl_session_count(n->table), 0);
	end();
}
