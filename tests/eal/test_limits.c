/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts, and the drops that come from something being full or used up; the last case asks for the whole list. */
#include "rows.h"

static unsigned limits_run;

/* Runs last, since cases run in the reverse of their order in the executable. Says nothing when only some have run. */
SL_TEST(verdicts, all_reached)
{
	if (rows_kinds != 3 || limits_run != 8)
		SL_SKIP("not all cases have run");
	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		SL_EXPECT_MSG(rows_reached[v] || v == SL_DROP_SPREAD_FULL || v == SL_DROP_SPREAD_STUCK /* test_spread.c */, "%s was never reached", sl_verdict_name((enum sl_verdict)v));
}

static void
mark(const struct rig *r)
{
	limits_run++;
	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		rows_reached[v] |= rig_verdict(r, (enum sl_verdict)v) > 0;
}

/* Many frames in one burst, of two sessions each way: order within a session kept, every text its own. */
SL_TEST(burst, mixed)
{
	struct rig *r = rig_create(NULL);
	struct rig_peer *p[4];
	struct {
		uint8_t msg[RIG_FRAME_MAX];
		size_t len;
		unsigned to;
	} *sent;
	unsigned count = 0;

	SL_ASSERT(r);
	p[0] = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	p[1] = rig_peer_add(r, SL_ADDR_UDP6, 1, 0);
	p[2] = rig_peer_add(r, SL_ADDR_ETH, 0, 0);
	p[3] = rig_peer_add(r, SL_ADDR_ETH, 1, 0);
	sent = calloc(600, sizeof(*sent));
	for (; count < 600; count++) {
		/* Nothing goes back to where it came from. */
		const unsigned a = (unsigned)(sl_test_rand() % 4), b = (a + 1 + (unsigned)(sl_test_rand() % 3)) % 4;
		uint8_t payload[1400];
		const size_t n = sl_test_rand() % 1300;

		sl_test_rand_bytes(payload, sizeof(payload));
		payload[0] = 3;
		sent[count].to = b;
		sent[count].len = rig_send_datagram(r, p[a], &p[b]->addr, 0, 64, 1000, payload, n, sent[count].msg);
	}
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), count);
	/* Frames of one destination come out in the order in which their own source sent them; sources may mix. */
	for (unsigned got = 0; got < count; got++) {
		uint8_t frame[RIG_FRAME_MAX], msg[RIG_FRAME_MAX];
		uint16_t port = 0;
		size_t len = rig_receive(r, 0, frame), msg_len = 0;
		unsigned i, to;

		if (!len)
			len = rig_receive(r, port = 1, frame);
		SL_ASSERT(len);
		for (to = 0; to < 4 && memcmp(frame, p[to]->mac, 6) != 0; to++)
			;
		SL_ASSERT(to < 4);
		SL_EXPECT_EQ(p[to]->port, port);
		msg_len = rig_open(r, p[to], frame, len, msg, NULL, NULL);
		SL_ASSERT(msg_len);
		/* The first of the same source and destination that has not come yet. */
		for (i = 0; i < count; i++)
			if (sent[i].len && sent[i].to == to && memcmp(sent[i].msg + SL_DATAGRAM_SRC, msg + SL_DATAGRAM_SRC, 16) == 0)
				break;
		SL_ASSERT(i < count);
		SL_EXPECT_EQ(msg_len, sent[i].len);
		sent[i].msg[SL_DATAGRAM_TTL]--;
		SL_EXPECT_MEM(msg, sent[i].msg, msg_len);
		sent[i].len = 0;
	}
	SL_EXPECT_EQ(p[0]->session->mmp.frames, p[0]->counter);
	free(sent);
	rig_destroy(r);
}

/* One counter twice in one burst: both pass the check before the AEAD, the second does not pass the commit. */
SL_TEST(burst, twins)
{
	struct rig *r = rig_create(NULL);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], packet[RIG_FRAME_MAX];
	struct rig_peer *a, *b;
	size_t len;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	len = rig_datagram(msg, 9, 1280, &a->addr, &b->addr, "payload", 7);
	len = rig_wrap(r, a, frame, packet, rig_seal(packet, a, 5, 0, 1, msg, len));
	rig_inject(r, 0, frame, len);
	rig_inject(r, 0, frame, len);
	rig_inject(r, 0, frame, len);
	SL_EXPECT_EQ(sl_worker_poll(r->dp->workers[0]), 3);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), 1);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_REPLAY), 2);
	SL_EXPECT_EQ(a->session->replays, 2);
	SL_EXPECT_EQ(a->session->mmp.frames, 1);
	rig_destroy(r);
}

/* A window's worth of counters, shuffled, with repeats: what a plain list of "seen" would accept. */
SL_TEST(burst, replay_oracle)
{
	enum { RANGE = 6000 };
	struct rig *r = rig_create(NULL);
	uint8_t *seen = calloc(1, RANGE), hb = SL_MSG_HEARTBEAT;
	uint64_t highest = 0, accepted = 0, refused = 0;
	struct rig_peer *a;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_ETH, 0, 0);
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < 32; i++) {
			uint64_t c = round * 28 + sl_test_rand() % 64;
			uint8_t packet[64], frame[128];

			if (sl_test_rand() % 8 == 0 && c > 2100)
				c -= 2040 + sl_test_rand() % 16;
			rig_inject(r, 0, frame, rig_wrap(r, a, frame, packet, rig_seal(packet, a, c, 0, 1, &hb, 1)));
			if ((c > highest || highest - c < 2048) && !seen[c]) {
				seen[c] = 1;
				accepted++;
				highest = c > highest ? c : highest;
			} else {
				refused++;
			}
		}
		rig_poll(r, false);
	}
	SL_EXPECT_EQ(rig_verdict(r, SL_LOCAL), accepted);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_REPLAY), refused);
	SL_EXPECT_GT(refused, 100);
	free(seen);
	rig_destroy(r);
}

SL_TEST(full, segments)
{
	struct rig *r = rig_create(NULL);
	uint8_t frame[100] = {0};
	struct rte_mbuf *m;

	SL_ASSERT(r);
	memcpy(frame, r->mac[0], 6);
	m = rig_mbuf(r, frame, sizeof(frame));
	SL_ASSERT(rte_pktmbuf_chain(m, rig_mbuf(r, frame, sizeof(frame))) == 0);
	SL_ASSERT(rte_ring_enqueue(r->in[0], m) == 0);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_SEGMENTS), 1);
	/* A buffer of a driver's own, in which the longest headers would begin before its memory. */
	m = rig_mbuf(r, frame, sizeof(frame));
	m->data_off = SL_PATH_HEADROOM_MIN - 1;
	memcpy(rte_pktmbuf_mtod(m, void *), frame, sizeof(frame));
	SL_ASSERT(rte_ring_enqueue(r->in[0], m) == 0);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_SEGMENTS), 2);
	mark(r);
	rig_destroy(r);
}

/* More in test_segments.c. */
SL_TEST(full, large_buffers)
{
	const struct rig_config config = {.data_size = 1024};
	struct rig *r = rig_create(&config);
	struct rte_mbuf *m, **held;
	uint8_t frame[100] = {0};
	struct rte_mempool *pool;
	unsigned n = 0;

	SL_ASSERT(r);
	pool = r->dp->ports[0].join_pool;
	SL_ASSERT(pool != NULL);
	held = calloc(pool->size, sizeof(*held));
	while (n < pool->size && (held[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	m = rig_mbuf(r, frame, sizeof(frame));
	SL_ASSERT(rte_pktmbuf_chain(m, rig_mbuf(r, frame, sizeof(frame))) == 0);
	SL_ASSERT(rte_ring_enqueue(r->in[0], m) == 0);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_SEGMENTS_FULL), 1);
	rte_pktmbuf_free_bulk(held, n);
	free(held);
	mark(r);
	rig_destroy(r);
}

static void
count_freed(void *addr, void *count)
{
	++*(unsigned *)count;
}

/* A buffer whose memory is somebody else's goes through and is given back to them, once. */
SL_TEST(full, external_buffer)
{
	struct rig *r = rig_create(NULL);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], packet[RIG_FRAME_MAX];
	struct rte_mbuf_ext_shared_info *info;
	uint16_t room = 4096;
	uint8_t *memory = calloc(1, room);
	struct rig_peer *a, *b;
	struct rte_mbuf *m;
	unsigned freed = 0;
	size_t len, msg_len;

	SL_ASSERT(r && memory);
	a = rig_peer_add(r, SL_ADDR_ETH, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP6, 1, 0);
	info = rte_pktmbuf_ext_shinfo_init_helper(memory, &room, count_freed, &freed);
	m = rte_pktmbuf_alloc(r->pool);
	SL_ASSERT(info && m);
	rte_pktmbuf_attach_extbuf(m, memory, RTE_BAD_IOVA, room, info);
	rte_pktmbuf_reset_headroom(m);
	m->data_off = SL_PATH_HEADROOM_MIN;
	msg_len = rig_datagram(msg, 9, 1280, &a->addr, &b->addr, "payload", 7);
	len = rig_wrap(r, a, frame, packet, rig_seal(packet, a, 5, 0, 1, msg, msg_len));
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	SL_ASSERT(rte_ring_enqueue(r->in[0], m) == 0);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), 1);
	SL_EXPECT_EQ(freed, 0);
	len = rig_receive(r, 1, frame);
	SL_ASSERT(len);
	SL_EXPECT_EQ(rig_open(r, b, frame, len, msg, NULL, NULL), msg_len);
	SL_EXPECT_EQ(freed, 1);
	free(memory);
	rig_destroy(r);
}

/* The transmit ring takes some of a burst: those are tx, the rest is freed and counted. */
SL_TEST(full, transmit)
{
	const struct rig_config config = {.out_entries = 16};
	struct rig *r = rig_create(&config);
	uint8_t msg[RIG_FRAME_MAX];
	struct sl_worker_stats s;
	struct rig_peer *a, *b;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	for (unsigned i = 0; i < 20; i++)
		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "0123456789", 10, msg);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), 15);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_TX_FULL), 5);
	sl_dataplane_worker_stats(r->dp, 0, &s);
	SL_EXPECT_EQ(s.tx_bytes, 15 * (42 + 36 + 36 + 10));
	mark(r);
	rig_destroy(r);
}

SL_TEST(full, punts)
{
	const struct rig_config config = {.ring_size = 64};
	struct rig *r = rig_create(&config);
	uint8_t packet[SL_MSG1_PACKET_BYTES] = {1, 0, 110, 0}, frame[RIG_FRAME_MAX], msg[2] = {SL_MSG_DISCONNECT, 0};
	uint8_t lost[RIG_FRAME_MAX];
	const struct sl_node_addr nowhere = {{0x99}};
	struct sl_worker_stats s;
	struct rig_peer *a;
	size_t len;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	len = rig_wrap(r, a, frame, packet, sizeof(packet));
	for (unsigned i = 0; i < 100; i++)
		rig_inject(r, 0, frame, len);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_PUNT_FULL), 100 - 63);
	sl_dataplane_worker_stats(r->dp, 0, &s);
	SL_EXPECT_EQ(s.punt_ring_full, 100 - 63);
	/* And a peer with datagrams nobody knows the way of its own. */
	for (unsigned i = 0; i < 100; i++)
		rig_send_datagram(r, a, &nowhere, 0, 64, 1280, "0123456789", 10, lost);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_PUNT_FULL), 2 * (100 - 63));
	/* Neither has filled the ring of the peers' messages. */
	len = rig_wrap(r, a, frame, packet, rig_seal(packet, a, a->counter++, 0, 1, msg, 2));
	rig_inject(r, 0, frame, len);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_PUNT_FULL), 2 * (100 - 63));
	rig_poll(r, true);
	SL_EXPECT(rig_seen(r, RIG_MESSAGE, 0) != NULL);
	SL_EXPECT(rig_seen(r, RIG_HANDSHAKE, 62) != NULL);
	SL_EXPECT(rig_seen(r, RIG_HANDSHAKE, 63) == NULL);
	mark(r);
	rig_destroy(r);
}

SL_TEST(full, nonce)
{
	struct rig *r = rig_create(NULL);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	struct rig_peer *a, *b, *c;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	c = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	__atomic_store_n(&b->session->tx_counter.next, SL_NONCE_LIMIT, __ATOMIC_RELAXED);
	rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "x", 1, msg);
	rig_send_datagram(r, a, &c->addr, 0, 64, 1280, "y", 1, msg);
	rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "z", 1, msg);
	rig_poll(r, false);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_NONCE), 2);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), 1);
	SL_EXPECT_EQ(b->session->tx_counter.next, SL_NONCE_LIMIT);
	SL_EXPECT_EQ(rig_open(r, c, frame, rig_receive(r, 1, frame), msg, NULL, NULL), 37);
	mark(r);
	rig_destroy(r);
}

/*
 * A crypto device that fails now and then, as the interface allows one to: a real engine whose last packets of a call
 * are reported as not sealed. They are spoilt, so that none can leave unnoticed.
 */
static unsigned
failing_reseal(struct sl_aead_ctx *ctx, struct sl_aead_reop *ops, unsigned n)
{
	const struct sl_aead_backend *real = sl_aead_backend_find("sodium");
	const unsigned good = sl_aead_any_reseal(real, ctx, ops, n - n / 3);

	for (unsigned i = good; i < n; i++)
		memset(ops[i].text, 0xee, ops[i].text_len);
	return good;
}

SL_TEST(full, seal)
{
	struct sl_aead_backend failing = *sl_aead_backend_find("sodium");
	const struct rig_config config = {.aead = &failing};
	struct rig *r;
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], nonce[12] = {0}, text[RIG_FRAME_MAX];
	struct rig_peer *a, *b;
	unsigned whole = 0;
	size_t len;

	failing.open_lead = NULL;
	failing.open_rest = NULL;
	failing.reseal = failing_reseal;
	r = rig_create(&config);
	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	for (unsigned i = 0; i < 30; i++)
		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "x", 1, msg);
	SL_EXPECT_EQ(sl_worker_poll(r->dp->workers[0]), 30);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_SEAL), 10);
	SL_EXPECT_EQ(rig_verdict(r, SL_FORWARD), 20);
	while ((len = rig_receive(r, 1, frame)) != 0) {
		memcpy(nonce + 4, frame + rig_outer(b) + 8, 8);
		whole += sl_aead_open_one(text, frame + rig_outer(b) + 16, len - rig_outer(b) - 16, frame + rig_outer(b), 16, nonce,
				 b->recv) == 0;
	}
	SL_EXPECT_EQ(whole, 20);
	mark(r);
	rig_destroy(r);
}

/* Two workers on one receive queue: the other's frames are handed over, counted at both ends, in order. */
SL_TEST(handoff, two_workers)
{
	const struct rig_config config = {.workers = 2};
	struct rig *r = rig_create(&config);
	struct sl_worker_stats s0, s1;
	struct rig_peer *a, *b;
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 1); /* port 0 is worker 0's, the session worker 1's */
	b = rig_peer_add(r, SL_ADDR_UDP6, 1, 0);
	for (unsigned i = 0; i < 50; i++) {
		const uint8_t payload[2] = {3, (uint8_t)i};

		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, payload, 2, msg);
	}
	rig_poll(r, false);
	sl_dataplane_worker_stats(r->dp, 0, &s0);
	sl_dataplane_worker_stats(r->dp, 1, &s1);
	SL_EXPECT_EQ(s0.verdicts[SL_HANDOFF], 50);
	SL_EXPECT_EQ(s1.handoff_in, 50);
	SL_EXPECT_EQ(s1.tx, 50);
	for (unsigned i = 0; i < 50; i++) {
		SL_EXPECT_EQ(rig_open(r, b, frame, rig_receive(r, 1, frame), msg, NULL, NULL), 38);
		SL_EXPECT_EQ(msg[37], i);
	}
	mark(r);
	rig_destroy(r);
}

SL_TEST(handoff, full)
{
	const struct rig_config config = {.workers = 2};
	struct rig *r = rig_create(&config);
	uint8_t msg[RIG_FRAME_MAX];
	struct rig_peer *a;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_ETH, 0, 1);
	for (unsigned i = 0; i < SL_HANDOFF_ENTRIES + 32; i++)
		rig_send_datagram(r, a, &a->addr, 0, 64, 1280, "x", 1, msg);
	while (sl_worker_poll(r->dp->workers[0]))
		;
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_HANDOFF_FULL), 33);
	mark(r);
	rig_destroy(r);
}
