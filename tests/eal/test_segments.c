/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames in several buffers: 9,000-byte packets in 2 KB buffers and the same bytes cut anywhere at all, through open, route
 * and seal. What comes out must open to what went in; the rig's plain code takes it apart. Compiled with a rig of its own
 * whose buffers hold such frames.
 */
#include "rows.h"

#define MTU 9000
#define DATA_SIZE 2048
#define PIECES_MAX 64

struct pair {
	struct rig *r;
	struct rig_peer *a, *b;
	uint8_t payload[MTU], msg[RIG_FRAME_MAX], packet[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], got[RIG_FRAME_MAX];
};
static struct pair pair;

static struct pair *
pair_up(uint8_t ka, uint8_t kb, uint16_t data_size)
{
	const struct rig_config config = {.mtu = MTU, .data_size = data_size};
	struct pair *t = &pair;

	memset(t, 0, sizeof(*t));
	t->r = rig_create(&config);
	if (!t->r)
		return NULL;
	t->a = rig_peer_add(t->r, ka, 0, 0);
	t->b = rig_peer_add(t->r, kb, 1, 0);
	sl_test_rand_bytes(t->payload, sizeof(t->payload));
	t->payload[0] = 3; /* no coordinates in it */
	return t;
}

/* A whole frame from a to b with so many bytes of payload, in t->frame; its message in t->msg. */
static size_t
frame_make(struct pair *t, size_t payload_len, size_t *msg_len)
{
	size_t len;

	*msg_len = rig_datagram(t->msg, 64, MTU, &t->a->addr, &t->b->addr, t->payload, payload_len);
	len = rig_seal(t->packet, t->a, t->a->counter++, 0, 7, t->msg, *msg_len);
	return rig_wrap(t->r, t->a, t->frame, t->packet, len);
}

/* The frame in pieces that end at cut[0 .. cuts) and at its end. */
static struct rte_mbuf *
chain_make(struct pair *t, size_t len, const size_t *cut, unsigned cuts)
{
	struct rte_mbuf *head = NULL;
	size_t at = 0;

	for (unsigned i = 0; i <= cuts; i++) {
		const size_t end = i < cuts ? cut[i] : len;
		struct rte_mbuf *m = rig_mbuf(t->r, t->frame + at, end - at);

		if (!head)
			head = m;
		else if (rte_pktmbuf_chain(head, m) != 0)
			sl_test_fail(__FILE__, __LINE__, "chain");
		at = end;
	}
	return head;
}

static void
inject(struct pair *t, struct rte_mbuf *m)
{
	SL_ASSERT(rte_ring_enqueue(t->r->in[0], m) == 0);
	rig_poll(t->r, true);
}

/* The frame came out on the other port, opens, and holds what was sent but for TTL and path MTU. */
static void
expect_through(struct pair *t, size_t msg_len)
{
	const size_t len = rig_receive(t->r, 1, t->frame);
	uint8_t flags;

	SL_ASSERT(len > 0);
	SL_ASSERT(rig_open(t->r, t->b, t->frame, len, t->got, &flags, NULL) == msg_len);
	SL_EXPECT_EQ(t->got[1], 63);
	SL_EXPECT_MEM(t->got + 4, t->msg + 4, msg_len - 4);
}

static uint64_t
joined(const struct pair *t)
{
	struct sl_worker_stats s;

	sl_dataplane_worker_stats(t->r->dp, 0, &s);
	return s.joined;
}

static void
pieces_of_2048(uint8_t ka, uint8_t kb)
{
	static const size_t sizes[] = {1, 1900, 1950, 2000, 2048, 4000, 6000, 8000, 8800};
	struct pair *t = pair_up(ka, kb, DATA_SIZE);
	uint64_t expected = 0;

	SL_ASSERT(t);
	for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
		size_t msg_len, len = frame_make(t, sizes[i], &msg_len), cut[PIECES_MAX];
		unsigned cuts = 0;

		for (size_t at = DATA_SIZE; at < len; at += DATA_SIZE)
			cut[cuts++] = at;
		expected += cuts != 0;
		inject(t, chain_make(t, len, cut, cuts));
		expect_through(t, msg_len);
	}
	SL_EXPECT_EQ(joined(t), expected);
	SL_EXPECT_EQ(rig_verdict(t->r, SL_FORWARD), RTE_DIM(sizes));
	rig_destroy(t->r);
}

SL_TEST(segments, jumbo_in_small_buffers_udp4)
{
	pieces_of_2048(SL_ADDR_UDP4, SL_ADDR_UDP4);
}

SL_TEST(segments, jumbo_in_small_buffers_udp6_to_ethernet)
{
	pieces_of_2048(SL_ADDR_UDP6, SL_ADDR_ETH);
}

SL_TEST(segments, jumbo_in_small_buffers_ethernet_to_udp6)
{
	pieces_of_2048(SL_ADDR_ETH, SL_ADDR_UDP6);
}

/* One cut at each place of the headers and the first bytes of text, and around the tag. */
SL_TEST(segments, cut_at_every_place)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, DATA_SIZE);
	size_t msg_len, len;
	uint64_t sent = 0;

	SL_ASSERT(t);
	len = frame_make(t, 200, &msg_len);
	for (size_t cut = 0; cut <= len; cut++, sent++) {
		len = frame_make(t, 200, &msg_len);
		inject(t, chain_make(t, len, &cut, 1));
		expect_through(t, msg_len);
	}
	SL_EXPECT_EQ(joined(t), sent);
	rig_destroy(t->r);
}

static int
by_size(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

/* Any number of cuts anywhere, empty pieces included, between frames that come whole; the order stays. */
SL_TEST(segments, cut_at_random)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, DATA_SIZE);
	uint64_t in_pieces = 0;

	SL_ASSERT(t);
	for (unsigned i = 0; i < 600; i++) {
		size_t msg_len, len = frame_make(t, 1 + sl_test_rand() % 8800, &msg_len), cut[PIECES_MAX];
		const unsigned cuts = (unsigned)(sl_test_rand() % PIECES_MAX);

		for (unsigned k = 0; k < cuts; k++)
			cut[k] = sl_test_rand() % (len + 1);
		qsort(cut, cuts, sizeof(cut[0]), by_size);
		in_pieces += cuts != 0;
		inject(t, chain_make(t, len, cut, cuts));
		expect_through(t, msg_len);
	}
	SL_EXPECT_EQ(joined(t), in_pieces);
	rig_destroy(t->r);
}

/* Messages of peers and of strangers reach control whole, in pieces too. */
SL_TEST(segments, for_control)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, DATA_SIZE);
	size_t len, cut[2] = {20, 60};
	const struct rig_seen *s;

	SL_ASSERT(t);
	t->msg[0] = 0x10; /* a tree announce's type: for control whatever it holds */
	memcpy(t->msg + 1, t->payload, 3000);
	len = rig_seal(t->packet, t->a, t->a->counter++, 0, 7, t->msg, 3001);
	len = rig_wrap(t->r, t->a, t->frame, t->packet, len);
	inject(t, chain_make(t, len, cut, 2));
	s = rig_seen(t->r, RIG_MESSAGE, 0);
	SL_ASSERT(s != NULL);
	SL_EXPECT_EQ(s->len, 3001);
	SL_EXPECT_MEM(s->bytes, t->msg, 3001);
	rig_destroy(t->r);
}

SL_TEST(segments, a_forged_piece)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, DATA_SIZE);
	size_t msg_len, len, cut[4] = {2048, 4096, 6144, 8192};

	SL_ASSERT(t);
	len = frame_make(t, 8800, &msg_len);
	t->frame[5000] ^= 1;
	rig_fix_udp(t->frame);
	inject(t, chain_make(t, len, cut, 4));
	SL_EXPECT_EQ(rig_verdict(t->r, SL_DROP_AUTH), 1);
	SL_EXPECT_EQ(rig_receive(t->r, 1, t->frame), 0);
	rig_destroy(t->r);
}

/* What a broken driver could hand us: each is refused by its name, and its buffers come back. */
SL_TEST(segments, that_do_not_add_up)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, DATA_SIZE);
	size_t msg_len, len, cut[1] = {500};
	struct rte_mbuf *m;

	SL_ASSERT(t);
	for (int off = -1; off <= 1; off += 2) { /* the frame's length is not the pieces' */
		len = frame_make(t, 1000, &msg_len);
		m = chain_make(t, len, cut, 1);
		m->pkt_len = (uint32_t)((int)m->pkt_len + off);
		inject(t, m);
	}
	SL_EXPECT_EQ(rig_verdict(t->r, SL_DROP_SEGMENTS), 2);
	len = frame_make(t, 1000, &msg_len);
	m = chain_make(t, len, cut, 1);
	m->nb_segs = 3; /* more pieces than there are */
	inject(t, m);
	SL_EXPECT_EQ(rig_verdict(t->r, SL_DROP_SEGMENTS), 3);
	/* Longer than any frame of the port's. */
	memset(t->frame, 0, sizeof(t->frame));
	m = chain_make(t, sizeof(t->frame), cut, 1);
	inject(t, m);
	SL_EXPECT_EQ(rig_verdict(t->r, SL_DROP_SEGMENTS), 4);
	SL_EXPECT_EQ(joined(t), 0);
	rig_destroy(t->r);
}

SL_TEST(segments, no_large_buffer_left)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, DATA_SIZE);
	struct rte_mempool *pool;
	struct rte_mbuf **held;
	size_t msg_len, len, cut[1] = {500};
	unsigned n = 0;

	SL_ASSERT(t);
	pool = t->r->dp->ports[0].join_pool;
	SL_ASSERT(pool != NULL);
	held = calloc(pool->size, sizeof(*held));
	while (n < pool->size && (held[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	SL_EXPECT_EQ(n, pool->size);
	len = frame_make(t, 1000, &msg_len);
	inject(t, chain_make(t, len, cut, 1));
	SL_EXPECT_EQ(rig_verdict(t->r, SL_DROP_SEGMENTS_FULL), 1);
	/* One in one buffer goes through all the same. */
	len = frame_make(t, 1000, &msg_len);
	inject(t, chain_make(t, len, NULL, 0));
	expect_through(t, msg_len);
	rte_pktmbuf_free_bulk(held, n);
	free(held);
	len = frame_make(t, 1000, &msg_len);
	inject(t, chain_make(t, len, cut, 1));
	expect_through(t, msg_len);
	rig_destroy(t->r);
}

/* A buffer of a driver's own, in which the longest headers would begin before its memory. */
SL_TEST(segments, no_room_in_front)
{
	struct pair *t = pair_up(SL_ADDR_ETH, SL_ADDR_UDP6, DATA_SIZE);
	size_t msg_len, len;
	struct rte_mbuf *m;

	SL_ASSERT(t);
	len = frame_make(t, 700, &msg_len);
	m = rig_mbuf(t->r, t->frame, len);
	memmove((uint8_t *)m->buf_addr + SL_PATH_HEADROOM_MIN - 1, t->frame, len);
	m->data_off = SL_PATH_HEADROOM_MIN - 1;
	inject(t, m);
	expect_through(t, msg_len);
	SL_EXPECT_EQ(joined(t), 1);
	rig_destroy(t->r);
}

/* Where buffers hold whole frames there are no large ones, and pieces are refused. */
SL_TEST(segments, where_none_are_expected)
{
	struct pair *t = pair_up(SL_ADDR_UDP4, SL_ADDR_UDP4, 0);
	size_t msg_len, len, cut[1] = {500};

	SL_ASSERT(t);
	SL_EXPECT(t->r->dp->ports[0].join_pool == NULL);
	len = frame_make(t, 8800, &msg_len);
	inject(t, chain_make(t, len, NULL, 0));
	expect_through(t, msg_len);
	len = frame_make(t, 8800, &msg_len);
	inject(t, chain_make(t, len, cut, 1));
	SL_EXPECT_EQ(rig_verdict(t->r, SL_DROP_SEGMENTS), 1);
	rig_destroy(t->r);
}
