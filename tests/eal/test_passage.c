/* SPDX-License-Identifier: BSD-3-Clause */
/* What transit changes in a frame that goes on, and what it tells control. */
#include "rows.h"

struct pair {
	struct rig *r;
	struct rig_peer *a, *b;
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], got[RIG_FRAME_MAX];
};

static bool
pair_up(struct pair *t, const struct rig_config *config, uint8_t ka, uint8_t kb)
{
	memset(t, 0, sizeof(*t));
	t->r = rig_create(config);
	if (!t->r)
		return false;
	t->a = rig_peer_add(t->r, ka, 0, 0);
	t->b = rig_peer_add(t->r, kb, 1, 0);
	return true;
}

/* Sends one and returns the flags and path MTU it came out with. */
static void
pass(struct pair *t, uint8_t flags, uint16_t path_mtu, uint8_t *flags_out, uint16_t *path_mtu_out)
{
	uint8_t payload[40] = {3};

	rig_send_datagram(t->r, t->a, &t->b->addr, flags, 64, path_mtu, payload, sizeof(payload), t->msg);
	rig_poll(t->r, false);
	SL_EXPECT_EQ(rig_open(t->r, t->b, t->frame, rig_receive(t->r, 1, t->frame), t->got, flags_out, NULL), 76);
	*path_mtu_out = sl_get16(t->got + SL_DATAGRAM_PATH_MTU);
}

SL_TEST(passage, flags_are_built_anew)
{
	struct pair t;
	uint8_t flags;
	uint16_t mtu;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_UDP4));
	for (unsigned in = 0; in < 256; in++) {
		for (unsigned own = 0; own < 8; own++) {
			__atomic_store_n(&t.b->session->tx_flags, own, __ATOMIC_RELAXED);
			pass(&t, (uint8_t)in, 1280, &flags, &mtu);
			/* CE from the frame; K and SP from our session, whatever else stands there. */
			SL_EXPECT_EQ(flags, (in & SL_FLAG_CE) | (own & (SL_FLAG_K | SL_FLAG_SP)));
		}
	}
	rig_destroy(t.r);
}

SL_TEST(passage, congestion_is_marked)
{
	const struct sl_router_metrics bad = {.measured = true, .cost = 1.1, .loss = 0.06, .etx = 1.1};
	const struct sl_router_metrics good = {.measured = true, .cost = 1.1, .loss = 0.04, .etx = 1.1};
	struct pair t;
	uint8_t flags;
	uint16_t mtu;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_UDP4));
	sl_router_peer_metrics(t.r->router, t.b->id, &bad, t.r->now_us);
	t.r->now_us += 1000000;
	sl_router_tick(t.r->router, t.r->now_us);
	pass(&t, 0, 1280, &flags, &mtu);
	SL_EXPECT_EQ(flags, SL_FLAG_CE);
	sl_router_peer_metrics(t.r->router, t.b->id, &good, t.r->now_us);
	t.r->now_us += 2000000;
	sl_router_tick(t.r->router, t.r->now_us);
	pass(&t, 0, 1280, &flags, &mtu);
	SL_EXPECT_EQ(flags, 0);
	rig_destroy(t.r);
}

SL_TEST(passage, path_mtu)
{
	static const struct {
		uint8_t out;
		uint16_t in, want;
	} rows[] = {
		{SL_ADDR_UDP4, 65535, RIG_UDP_MTU},
		{SL_ADDR_UDP4, RIG_UDP_MTU + 1, RIG_UDP_MTU},
		{SL_ADDR_UDP4, RIG_UDP_MTU, RIG_UDP_MTU},
		{SL_ADDR_UDP4, 900, 900},
		{SL_ADDR_UDP4, 0, 0},
		{SL_ADDR_UDP6, 65535, RIG_UDP_MTU},
		{SL_ADDR_ETH, 65535, RIG_ETH_MTU},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct pair t;
		uint8_t flags;
		uint16_t mtu;

		SL_ASSERT(pair_up(&t, NULL, SL_ADDR_ETH, rows[i].out));
		pass(&t, 0, rows[i].in, &flags, &mtu);
		SL_EXPECT_EQ(mtu, rows[i].want);
		rig_destroy(t.r);
	}
}

/* The largest that fits goes, from the shortest outer header to the longest; one more byte does not, and control hears. */
SL_TEST(passage, too_big)
{
	static uint8_t payload[1600] = {3};
	const struct rig_seen *s;
	struct pair t;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_ETH, SL_ADDR_UDP6));
	rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 65535, payload, RIG_UDP_MTU - 72, t.msg);
	rig_poll(t.r, true);
	SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame), RIG_UDP_MTU + 62);
	rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 65535, payload, RIG_UDP_MTU - 71, t.msg);
	rig_poll(t.r, true);
	SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame), 0);
	SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_TOO_BIG), 1);
	s = rig_seen(t.r, RIG_TOO_BIG, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->mtu, RIG_UDP_MTU);
	SL_EXPECT_GE(s->len, SL_DATAGRAM_HEADER_BYTES);
	SL_EXPECT_MEM(s->bytes + SL_DATAGRAM_SRC, t.msg + SL_DATAGRAM_SRC, 32);
	/* A link that is narrower than its transport and wire: what the router knows of it counts. */
	rig_forget(t.r);
	sl_router_peer_mtu(t.r->router, t.b->id, 600, t.r->now_us);
	rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 65535, payload, 600 - 72, t.msg);
	rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 65535, payload, 600 - 71, t.msg);
	rig_poll(t.r, true);
	SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame), 600 + 62);
	SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame), 0);
	SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_TOO_BIG), 2);
	s = rig_seen(t.r, RIG_TOO_BIG, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->mtu, 600);
	rig_destroy(t.r);
}

SL_TEST(passage, vlan)
{
	const struct rig_config config = {.vlan = 42};

	for (uint8_t kind = SL_ADDR_UDP4; kind <= SL_ADDR_ETH; kind++) {
		struct pair t;
		uint8_t flags;
		uint16_t mtu;

		SL_ASSERT(pair_up(&t, &config, kind, kind));
		pass(&t, 0, 1280, &flags, &mtu);
		rig_destroy(t.r);
	}
}

/*
 * A checksum that the other end's kernel never filled in. From an address that the session is not known by it is
 * refused, unless the operator says so; from the known one the tag has said all there is to say.
 */
SL_TEST(passage, unfilled_checksum)
{
	static const uint8_t kinds[] = {SL_ADDR_UDP4, SL_ADDR_UDP6};

	for (unsigned row = 0; row < 8; row++) {
		const bool ignore = row & 1, known = row & 2;
		const struct rig_config config = {.ignore_checksum = ignore};
		uint8_t packet[RIG_FRAME_MAX], hb = SL_MSG_HEARTBEAT;
		struct pair t;
		size_t len;

		SL_ASSERT(pair_up(&t, &config, kinds[row / 4], SL_ADDR_UDP4));
		if (known)
			__atomic_store_n(&t.a->session->rx_addr_hash, sl_addr_hash(&t.a->at), __ATOMIC_RELAXED);
		len = rig_wrap(t.r, t.a, t.frame, packet, rig_seal(packet, t.a, 0, 0, 1, &hb, 1));
		t.frame[rig_outer(t.a) - 2] ^= 0x55;
		rig_inject(t.r, 0, t.frame, len);
		rig_poll(t.r, false);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_LOCAL), ignore || known);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_UDP_CHECKSUM), !ignore && !known);
		/* And one that was changed on its way, whatever its checksum says. */
		len = rig_wrap(t.r, t.a, t.frame, packet, rig_seal(packet, t.a, 1, 0, 1, &hb, 1));
		t.frame[rig_outer(t.a) + SL_HEADER_BYTES] ^= 1;
		rig_inject(t.r, 0, t.frame, len);
		rig_poll(t.r, false);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_AUTH), ignore || known);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_UDP_CHECKSUM), ignore || known ? 0 : 2);
		rig_destroy(t.r);
	}
}

/* Handed over with the checksum not looked at: the owner does. */
SL_TEST(passage, unfilled_checksum_handed_over)
{
	const struct rig_config config = {.workers = 2};
	uint8_t packet[RIG_FRAME_MAX], hb = SL_MSG_HEARTBEAT;
	struct rig_peer *a;
	struct pair t;
	size_t len;

	SL_ASSERT(pair_up(&t, &config, SL_ADDR_UDP4, SL_ADDR_UDP4));
	a = rig_peer_add(t.r, SL_ADDR_UDP4, 0, 1);
	for (unsigned known = 0; known < 2; known++) {
		if (known)
			__atomic_store_n(&a->session->rx_addr_hash, sl_addr_hash(&a->at), __ATOMIC_RELAXED);
		len = rig_wrap(t.r, a, t.frame, packet, rig_seal(packet, a, known, 0, 1, &hb, 1));
		t.frame[rig_outer(a) - 2] ^= 0x55;
		rig_inject(t.r, 0, t.frame, len);
		rig_poll(t.r, false);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_HANDOFF), known + 1);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_LOCAL), known);
		SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_UDP_CHECKSUM), 1);
	}
	rig_destroy(t.r);
}

/* --- engines ------------------------------------------------------------------------------------------------------ */

#define FLOW_FRAMES 48

/*
 * One random burst, the same bytes whatever the backend: some frames punted, some learnt from, some spoilt, the others
 * forwarded. Returns how many came out, their bytes behind the outer headers one after the other in out.
 */
static size_t
passage_of(const struct sl_aead_backend *aead, uint64_t seed, uint8_t *out, uint64_t *verdicts)
{
	const struct rig_config config = {.aead = aead};
	struct rig_peer *p[3];
	struct rig *r = rig_create(&config);
	uint8_t msg[RIG_FRAME_MAX], packet[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], payload[1400];
	size_t at = 0;

	if (!r)
		return 0;
	for (unsigned i = 0; i < 3; i++) {
		struct sl_session *s;

		p[i] = rig_peer_add(r, (uint8_t)(SL_ADDR_UDP4 + i), (uint16_t)(i & 1), 0);
		s = p[i]->session;
		/* Keys, indices and addresses that do not depend on the run. */
		memset(p[i]->send, (int)(0x11 * (i + 1)), SL_KEY_BYTES);
		memset(s->rx_key, (int)(0x11 * (i + 1)), SL_KEY_BYTES);
		memset(s->tx_key, (int)(0x22 * (i + 1)), SL_KEY_BYTES);
		s->tx_index = 0x01010101u * (i + 1);
		s->origin_us = UINT64_MAX; /* inner timestamps: 0 */
	}
	for (unsigned i = 0; i < FLOW_FRAMES; i++) {
		struct rig_peer *a, *b;
		size_t n;

#define NEXT (seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17)
		const unsigned what = (unsigned)(NEXT >> 20) % 12;

		a = p[(NEXT >> 20) % 3];
		b = p[((size_t)(a - p[0]) + 1 + (NEXT >> 20) % 2) % 3];
		n = (NEXT >> 20) % 3 ? (NEXT >> 20) % 200 : (NEXT >> 20) % 1300;
		for (size_t k = 0; k < n; k++)
			payload[k] = (uint8_t)(NEXT >> 32);
		payload[0] = what == 1 ? 0 : 3;
		if (what == 1 && n > 60) { /* shows coordinates */
			payload[1] = 1;
			sl_put16(payload + 12, 1);
			sl_put16(payload + 30, 1);
		}
		n = rig_datagram(msg, what == 2 ? 1 : 9, 1000, &p[0]->addr, &b->addr, payload, n);
		memset(msg + SL_DATAGRAM_SRC, 7, 16);
		if (what == 3)
			msg[0] = SL_MSG_TREE_ANNOUNCE;
		n = rig_seal(packet, a, a->counter++, 0, 1, msg, n);
		if (what == 4)
			packet[16 + (NEXT >> 20) % (n - 16)] ^= 0x40;
		n = rig_wrap(r, a, frame, packet, n);
		rig_inject(r, a->port, frame, n);
	}
	rig_poll(r, false);
	for (uint16_t port = 0; port < 2; port++) {
		size_t n;

		while ((n = rig_receive(r, port, frame)) != 0) {
			const size_t skip = frame[12] == 0x21 ? 17 : frame[12] == 0x08 ? 42 : 62;
			const uint8_t *dest;

			memcpy(packet, frame + skip, n - skip);
			/* The destination's address is random: of it only that it opens is compared. */
			for (unsigned i = 0; i < 3; i++) {
				uint8_t nonce[12] = {0};

				memcpy(nonce + 4, packet + 8, 8);
				if (sl_get32(packet + 4) != p[i]->session->tx_index)
					continue;
				SL_EXPECT_EQ(sl_aead_open_one(msg, packet + 16, n - skip - 16, packet, 16, nonce,
					p[i]->session->tx_key), 0);
				dest = msg + 4 + SL_DATAGRAM_DEST;
				SL_EXPECT_MEM(dest, p[i]->addr.bytes, 16);
				memset(msg + 4 + SL_DATAGRAM_DEST, 0, 16);
				memcpy(out + at, packet, 16);
				memcpy(out + at + 16, msg, n - skip - 32);
				at += n - skip - 16;
			}
		}
	}
	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		verdicts[v] = rig_verdict(r, (enum sl_verdict)v);
	rig_poll(r, true);
	/* Each kind in its order; how they mix depends on how far control's turns got. */
	for (unsigned k = 0; k < 2; k++) {
		const struct rig_seen *s;

		for (unsigned n = 0; (s = rig_seen(r, k ? RIG_LEARN : RIG_MESSAGE, n)) != NULL; n++) {
			memcpy(out + at, s->bytes, s->len);
			if (s->len >= SL_DATAGRAM_HEADER_BYTES)
				memset(out + at + SL_DATAGRAM_DEST, 0, 16);
			at += s->len;
		}
	}
	rig_destroy(r);
	return at;
}

/* Whatever engine, and whatever it leaves enciphered between open and reseal: the same frames, verdicts and reports. */
SL_TEST(passage, engines_agree)
{
	const struct sl_aead_backend *const *list = sl_aead_backends();
	enum { ROOM = 2 * FLOW_FRAMES * RIG_FRAME_MAX };
	uint8_t *want = malloc(ROOM), *got = malloc(ROOM);
	uint64_t seen[SL_VERDICT_COUNT] = {0}, want_v[SL_VERDICT_COUNT], got_v[SL_VERDICT_COUNT];
	unsigned compared = 0;

	for (unsigned round = 0; round < 6; round++) {
		const uint64_t seed = sl_test_rand() | 1;
		const size_t n = passage_of(sl_aead_backend_find("sodium"), seed, want, want_v);

		SL_EXPECT_GT(n, 0);
		for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
			seen[v] += want_v[v];
		for (unsigned k = 0; list[k]; k++) {
			if (!list[k]->usable())
				continue;
			memset(got, 0, ROOM);
			SL_EXPECT_EQ(passage_of(list[k], seed, got, got_v), n);
			SL_EXPECT_MSG(memcmp(got, want, n) == 0, "%s, seed %llx", list[k]->name, (unsigned long long)seed);
			SL_EXPECT_MSG(memcmp(got_v, want_v, sizeof(got_v)) == 0, "%s, seed %llx", list[k]->name,
				(unsigned long long)seed);
			compared++;
		}
	}
	SL_EXPECT_GT(compared, 6);
	SL_EXPECT_GT(seen[SL_FORWARD], 0);
	SL_EXPECT_GT(seen[SL_PUNT], 0);
	SL_EXPECT_GT(seen[SL_DROP_AUTH], 0);
	SL_EXPECT_GT(seen[SL_DROP_TTL], 0);
	free(want);
	free(got);
}

/* --- to control --------------------------------------------------------------------------------------------------- */

SL_TEST(control, opened_messages)
{
	const uint8_t disconnect[2] = {SL_MSG_DISCONNECT, 7};
	uint8_t packet[RIG_FRAME_MAX];
	const struct rig_seen *s;
	struct pair t;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP6, SL_ADDR_UDP4));
	rig_inject(t.r, 0, t.frame,
		rig_wrap(t.r, t.a, t.frame, packet, rig_seal(packet, t.a, 0, SL_FLAG_K, 1, disconnect, 2)));
	t.a->counter = 1;
	rig_send_datagram(t.r, t.a, sl_identity_addr(t.r->identity), SL_FLAG_CE, 0, 700, "for you", 7, t.msg);
	rig_poll(t.r, true);
	s = rig_seen(t.r, RIG_MESSAGE, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->rx_index, t.a->session->rx_index);
	SL_EXPECT_EQ(s->peer_id, t.a->id);
	SL_EXPECT_EQ(s->flags, SL_FLAG_K);
	SL_EXPECT_EQ(s->len, 2);
	SL_EXPECT_MEM(s->bytes, disconnect, 2);
	s = rig_seen(t.r, RIG_DATAGRAM, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->peer_id, t.a->id);
	SL_EXPECT_EQ(s->flags, SL_FLAG_CE);
	SL_EXPECT_EQ(s->len, 43);
	SL_EXPECT_MEM(s->bytes, t.msg, 43);
	/* The peer's row becomes another's while its frame waits. */
	rig_forget(t.r);
	rig_send_datagram(t.r, t.a, sl_identity_addr(t.r->identity), 0, 9, 700, "late", 4, t.msg);
	rig_poll(t.r, false);
	sl_session_table_view(t.r->table)->peers[t.a->id].generation++;
	rig_poll(t.r, true);
	SL_EXPECT(rig_seen(t.r, RIG_DATAGRAM, 0) == NULL);
	SL_EXPECT_EQ(t.r->dp->stale_punts, 1);
	rig_destroy(t.r);
}

SL_TEST(control, handshakes_and_beacons)
{
	uint8_t packet[SL_MSG2_PACKET_BYTES] = {2, 0, 65, 0, 9, 9, 9, 9}, frame[60] = {0};
	const struct rig_seen *s;
	struct pair t;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP6, SL_ADDR_ETH));
	rig_inject(t.r, 0, t.frame, rig_wrap(t.r, t.a, t.frame, packet, sizeof(packet)));
	memset(frame, 0xff, 6);
	memcpy(frame + 6, t.b->mac, 6);
	memcpy(frame + 12, (uint8_t[4]){0x21, 0x21, 1, 1}, 4);
	memcpy(frame + 16, t.b->xonly, 32);
	rig_inject(t.r, 1, frame, sizeof(frame));
	rig_poll(t.r, true);
	s = rig_seen(t.r, RIG_HANDSHAKE, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->len, sizeof(packet));
	SL_EXPECT_MEM(s->bytes, packet, sizeof(packet));
	SL_EXPECT(sl_addr_equal(&s->from, &t.a->at));
	s = rig_seen(t.r, RIG_BEACON, 0);
	SL_ASSERT(s);
	SL_EXPECT_MEM(s->bytes, t.b->xonly, 32);
	SL_EXPECT(sl_addr_equal(&s->from, &t.b->at));
	rig_destroy(t.r);
}

/* Punch packets: dropped by the workers until control asks for them, and again when it does not any more. */
SL_TEST(control, traversal)
{
	uint8_t packet[24] = {0x4e, 0x50, 0x54, 0x43, 0, 0, 0, 7};
	const struct rig_seen *s;
	struct pair t;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_UDP6));
	for (unsigned wanted = 0; wanted < 3; wanted++) {
		sl_dataplane_traversal(t.r->dp, wanted == 1);
		rig_inject(t.r, 0, t.frame, rig_wrap(t.r, t.a, t.frame, packet, sizeof(packet)));
		rig_poll(t.r, true);
	}
	s = rig_seen(t.r, RIG_TRAVERSAL, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->len, sizeof(packet));
	SL_EXPECT_MEM(s->bytes, packet, sizeof(packet));
	SL_EXPECT(sl_addr_equal(&s->from, &t.a->at));
	SL_EXPECT(rig_seen(t.r, RIG_TRAVERSAL, 1) == NULL);
	rig_destroy(t.r);
}

static void
put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static unsigned
ones_sum(const uint8_t *p, size_t len)
{
	unsigned sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (unsigned)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* "Fragmentation needed" from peer a's router, quoting a UDP packet of ours to a from `src_port`. Returns the frame's length. */
static size_t
too_big4(const struct pair *t, uint8_t *frame, unsigned src_port, unsigned mtu)
{
	uint8_t packet[28] = {0}, outer[256];
	const size_t len = rig_wrap(t->r, t->a, outer, packet, sizeof(packet));
	uint8_t *ip = frame + 14, *icmp = ip + 20, *quoted = icmp + 8;

	SL_EXPECT_EQ(len, 14 + 28 + sizeof(packet));
	memcpy(frame, outer, 34); /* Ethernet, and IPv4 from a to us */
	put16(ip + 2, 20 + 8 + 28);
	ip[9] = 1;
	put16(ip + 10, 0);
	put16(ip + 10, ~ones_sum(ip, 20));
	memset(icmp, 0, 8 + 28);
	icmp[0] = 3;
	icmp[1] = 4;
	put16(icmp + 6, mtu);
	memcpy(quoted, ip, 20);
	put16(quoted + 2, 1300);
	quoted[9] = 17;
	memcpy(quoted + 12, ip + 16, 4);
	memcpy(quoted + 16, ip + 12, 4);
	put16(quoted + 20, src_port);
	put16(quoted + 22, t->a->udp_port);
	put16(icmp + 2, ~ones_sum(icmp, 8 + 28));
	return 14 + 20 + 8 + 28;
}

/* A router says that the path is narrower: the path changes, and who asks is told. What quotes none of ours changes nothing. */
SL_TEST(control, path_mtu)
{
	uint8_t frame[256];
	const struct sl_path *path;
	const struct rig_seen *s;
	struct pair t;
	uint16_t before;
	size_t len;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_UDP4));
	path = t.r->dp->paths[t.a->id].current;
	SL_ASSERT(path != NULL);
	before = path->mtu;
	len = too_big4(&t, frame, 9, 1000); /* from a port that no transport of ours has */
	rig_inject(t.r, 0, frame, len);
	rig_poll(t.r, true);
	SL_EXPECT(rig_seen(t.r, RIG_PATH_MTU, 0) == NULL);
	len = too_big4(&t, frame, 2121, 1000);
	rig_inject(t.r, 0, frame, len);
	rig_poll(t.r, true);
	s = rig_seen(t.r, RIG_PATH_MTU, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->peer_id, t.a->id);
	SL_EXPECT_EQ(s->mtu, 1000 - 28);
	SL_EXPECT_EQ(t.r->dp->paths[t.a->id].current->mtu, 1000 - 28);
	/* Less than any host must take: not believed below that. More: never. */
	len = too_big4(&t, frame, 2121, 100);
	rig_inject(t.r, 0, frame, len);
	len = too_big4(&t, frame, 2121, 1400);
	rig_inject(t.r, 0, frame, len);
	rig_poll(t.r, true);
	SL_EXPECT_EQ(t.r->dp->paths[t.a->id].current->mtu, 576 - 28);
	SL_EXPECT(rig_seen(t.r, RIG_PATH_MTU, 2) == NULL);
	/* After ten minutes it is tried at its full size. */
	(void)sl_dataplane_poll(t.r->dp, 16, sl_dataplane_now_us() + SL_PMTU_AGE_US + 1000000);
	SL_EXPECT_EQ(t.r->dp->paths[t.a->id].current->mtu, before);
	rig_destroy(t.r);
}

SL_TEST(control, events_once)
{
	const struct rig_seen *s;
	struct sl_addr moved;
	struct pair t;
	uint8_t flags;
	uint16_t mtu;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_UDP4));
	__atomic_store_n(&t.a->session->rx_addr_hash, sl_addr_hash(&t.a->at), __ATOMIC_RELAXED);
	__atomic_store_n(&t.a->session->notify, SL_NOTIFY_FIRST_FRAME | SL_NOTIFY_ADDRESS, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 3; i++)
		pass(&t, SL_FLAG_K, 1280, &flags, &mtu);
	rig_poll(t.r, true);
	s = rig_seen(t.r, RIG_FIRST_FRAME, 0);
	SL_ASSERT(s);
	SL_EXPECT_EQ(s->rx_index, t.a->session->rx_index);
	SL_EXPECT_EQ(s->flags, SL_FLAG_K);
	SL_EXPECT(rig_seen(t.r, RIG_FIRST_FRAME, 1) == NULL);
	SL_EXPECT(rig_seen(t.r, RIG_ROAMED, 0) == NULL);
	/* A frame from elsewhere that is not the highest does not move the peer; the next highest does, once. */
	t.a->counter = 100;
	pass(&t, 0, 1280, &flags, &mtu);
	t.a->udp_port = 7777;
	moved = t.a->at;
	moved.udp_port = 7777;
	t.a->counter = 50;
	pass(&t, 0, 1280, &flags, &mtu);
	rig_poll(t.r, true);
	SL_EXPECT(rig_seen(t.r, RIG_ROAMED, 0) == NULL);
	t.a->counter = 101;
	pass(&t, 0, 1280, &flags, &mtu);
	pass(&t, 0, 1280, &flags, &mtu);
	rig_poll(t.r, true);
	s = rig_seen(t.r, RIG_ROAMED, 0);
	SL_ASSERT(s);
	SL_EXPECT(sl_addr_equal(&s->from, &moved));
	SL_EXPECT(rig_seen(t.r, RIG_ROAMED, 1) == NULL);
	rig_destroy(t.r);
}

/* A full event ring costs the event nothing but time: the flag stays until there is room. */
SL_TEST(control, event_waits_for_room)
{
	struct sl_worker_stats st;
	struct pair t;
	uint8_t flags;
	uint16_t mtu;
	static uint8_t payload[1600] = {3};

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_ETH, SL_ADDR_UDP4));
	for (unsigned i = 0; i < SL_EVENT_ENTRIES + 8; i++)
		rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 65535, payload, RIG_UDP_MTU - 71, t.msg);
	rig_poll(t.r, false);
	sl_dataplane_worker_stats(t.r->dp, 0, &st);
	SL_EXPECT_EQ(st.event_ring_full, 8);
	__atomic_store_n(&t.a->session->notify, SL_NOTIFY_FIRST_FRAME, __ATOMIC_RELEASE);
	pass(&t, 0, 1280, &flags, &mtu);
	SL_EXPECT_EQ(t.a->session->notify, SL_NOTIFY_FIRST_FRAME);
	rig_poll(t.r, true);
	SL_EXPECT(rig_seen(t.r, RIG_FIRST_FRAME, 0) == NULL);
	pass(&t, 0, 1280, &flags, &mtu);
	rig_poll(t.r, true);
	SL_EXPECT(rig_seen(t.r, RIG_FIRST_FRAME, 0) != NULL);
	rig_destroy(t.r);
}

/* Coordinates in passing: the datagram goes on, control gets a head that parses to the same coordinates. */
SL_TEST(control, learns_coordinates)
{
	uint8_t setup[7 + 2 * 34 + 35], data[12 + 2 * 34 + 500], none[12 + 500];
	struct sl_coords_seen want, got;
	const struct rig_seen *s;
	struct pair t;
	unsigned n = 0;

	sl_test_rand_bytes(setup, sizeof(setup));
	memcpy(setup, (uint8_t[5]){1, 0, sizeof(setup) - 4, 0, 0}, 5);
	sl_put16(setup + 5, 2);
	sl_put16(setup + 39, 2);
	sl_put16(setup + 73, 33);
	sl_test_rand_bytes(data, sizeof(data));
	memcpy(data, (uint8_t[2]){0, 1}, 2);
	sl_put16(data + 12, 2);
	sl_put16(data + 46, 2);
	sl_test_rand_bytes(none, sizeof(none));
	memcpy(none, (uint8_t[2]){0, 0}, 2);
	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_UDP4));
	const struct {
		const uint8_t *payload;
		size_t len;
		uint8_t ttl;
		bool learnt;
	} rows[] = {{setup, sizeof(setup), 64, true}, {data, sizeof(data), 64, true}, {none, sizeof(none), 64, false},
		{data, sizeof(data), 1, true}, {setup, 60, 64, false}, {data, 27, 64, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		rig_send_datagram(t.r, t.a, &t.b->addr, 0, rows[i].ttl, 1280, rows[i].payload, rows[i].len, t.msg);
		rig_poll(t.r, true);
		SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame) != 0, rows[i].ttl > 1);
		s = rig_seen(t.r, RIG_LEARN, n);
		SL_EXPECT_EQ(s != NULL, rows[i].learnt);
		if (!s)
			continue;
		n++;
		SL_EXPECT_LE(s->len, 36 + sizeof(setup));
		SL_EXPECT_MEM(s->bytes + SL_DATAGRAM_SRC, t.msg + SL_DATAGRAM_SRC, 32);
		SL_EXPECT(sl_payload_coords(&want, rows[i].payload, rows[i].len));
		SL_EXPECT(sl_payload_coords(&got, s->bytes + 36, s->len - 36));
		SL_EXPECT_EQ(got.src_count, want.src_count);
		SL_EXPECT_EQ(got.dest_count, want.dest_count);
		SL_EXPECT_MEM(got.src, want.src, 32);
		SL_EXPECT_MEM(got.dest, want.dest, 32);
	}
	/* The longest head that a record holds, and one entry more: counted, nothing is written. */
	for (uint16_t count = 92; count <= 93; count++) {
		uint8_t deep[12 + 2 + 93 * 16 + 2 + 20] = {0, 1};

		sl_put16(deep + 12, count);
		rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 1280, deep, sizeof(deep), t.msg);
		rig_poll(t.r, true);
		s = rig_seen(t.r, RIG_LEARN, n);
		SL_EXPECT_EQ(s != NULL, count == 92);
		n++;
		SL_EXPECT_EQ(t.r->dp->workers[0]->counters.learn_ring_full, count == 93);
	}
	/* A full ring: counted, and the frames go on. */
	rig_forget(t.r);
	for (unsigned i = 0; i < SL_LEARN_ENTRIES + 5; i++)
		rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 1280, setup, sizeof(setup), t.msg);
	rig_poll(t.r, false);
	SL_EXPECT_EQ(t.r->dp->workers[0]->counters.learn_ring_full, 1 + 5);
	rig_destroy(t.r);
}

/* --- from control -------------------------------------------------------------------------------------------------- */

static void
transmit_waits(bool shared_queue)
{
	const struct rig_config config = {.shared_queue = shared_queue};
	uint8_t packet[SL_MSG1_PACKET_BYTES] = {1, 0, 110, 0}, expect[RIG_FRAME_MAX];
	struct sl_addr to = {.kind = SL_ADDR_UDP4, .udp_port = 2121, .u.ip4 = {192, 0, 3, 99}};
	uint8_t reply[60] = {0};
	struct sl_port_stats stats;
	struct pair t;
	size_t len;

	SL_ASSERT(pair_up(&t, &config, SL_ADDR_UDP4, SL_ADDR_UDP4));
	sl_test_rand_bytes(packet + 4, sizeof(packet) - 4);
	SL_EXPECT_EQ(sl_dataplane_transmit(t.r->dp, &to, packet, sizeof(packet), t.r->now_us), 0);
	rig_poll(t.r, true);
	len = rig_receive(t.r, 1, t.frame);
	SL_EXPECT_EQ(len, 60);
	SL_EXPECT_MEM(t.frame + 12, ((uint8_t[2]){8, 6}), 2); /* ARP goes first */
	SL_EXPECT_EQ(rig_receive(t.r, 1, expect), 0);
	memcpy(reply, t.frame + 6, 6);
	memcpy(reply + 6, (uint8_t[6]){2, 9, 9, 9, 9, 9}, 6);
	memcpy(reply + 12, t.frame + 12, 8);
	reply[21] = 2;
	memcpy(reply + 22, reply + 6, 6);
	memcpy(reply + 28, to.u.ip4, 4);
	memcpy(reply + 32, t.frame + 22, 10);
	rig_inject(t.r, 1, reply, sizeof(reply));
	rig_poll(t.r, true);
	len = rig_receive(t.r, 1, t.frame);
	SL_EXPECT_EQ(len, 42 + sizeof(packet));
	SL_EXPECT_MEM(t.frame, reply + 6, 6);
	SL_EXPECT_MEM(t.frame + 42, packet, sizeof(packet));
	/* Resolved now: at once. */
	SL_EXPECT_EQ(sl_dataplane_transmit(t.r->dp, &to, packet, sizeof(packet), t.r->now_us), 0);
	rig_poll(t.r, false);
	SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame), 42 + sizeof(packet));
	SL_EXPECT_EQ(sl_dataplane_transmit(t.r->dp, &to, t.msg, RIG_UDP_MTU + 1, t.r->now_us), -EMSGSIZE);
	to.u.ip4[0] = 10; /* no route */
	SL_EXPECT_EQ(sl_dataplane_transmit(t.r->dp, &to, packet, sizeof(packet), t.r->now_us), -EHOSTUNREACH);
	to.transport = 77;
	to.u.ip4[0] = 192;
	SL_EXPECT_LT(sl_dataplane_transmit(t.r->dp, &to, packet, sizeof(packet), t.r->now_us), 0);
	SL_EXPECT_EQ(sl_dataplane_port_stats(t.r->dp, 1, &stats), 0);
	SL_EXPECT_GE(stats.control_tx, 3);
	SL_EXPECT_EQ(stats.control_tx_dropped, 0);
	rig_destroy(t.r);
}

SL_TEST(control, transmits_on_its_own_queue)
{
	transmit_waits(false);
}
SL_TEST(control, transmits_through_a_worker)
{
	transmit_waits(true);
}

SL_TEST(control, beacon)
{
	uint8_t want[60] = {0};
	struct pair t;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_ETH));
	memset(want, 0xff, 6);
	memcpy(want + 6, t.r->mac[1], 6);
	memcpy(want + 12, (uint8_t[4]){0x21, 0x21, 1, 1}, 4);
	memcpy(want + 16, t.b->xonly, 32);
	SL_EXPECT_EQ(sl_dataplane_beacon(t.r->dp, 2, t.b->xonly), 0);
	SL_EXPECT_EQ(rig_receive(t.r, 1, t.frame), 60);
	SL_EXPECT_MEM(t.frame, want, 60);
	SL_EXPECT_EQ(sl_dataplane_beacon(t.r->dp, 0, t.b->xonly), -EINVAL);
	rig_destroy(t.r);
}

/* Withdrawn and moved paths; an old one is given back. */
SL_TEST(control, path_moves)
{
	struct sl_addr to;
	struct pair t;
	uint8_t flags;
	uint16_t mtu;

	SL_ASSERT(pair_up(&t, NULL, SL_ADDR_UDP4, SL_ADDR_ETH));
	pass(&t, 0, 1280, &flags, &mtu);
	sl_dataplane_path_set(t.r->dp, t.b->id, NULL, t.r->now_us);
	rig_send_datagram(t.r, t.a, &t.b->addr, 0, 64, 1280, "x", 1, t.msg);
	rig_poll(t.r, true);
	SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_NO_PATH), 1);
	to = t.b->at;
	to.u.mac[5] = t.b->mac[5] = 0xaa;
	sl_dataplane_path_set(t.r->dp, t.b->id, &to, t.r->now_us);
	pass(&t, 0, 1280, &flags, &mtu);
	SL_EXPECT_EQ(t.r->dp->reclaim.count, 0);
	rig_destroy(t.r);
}
