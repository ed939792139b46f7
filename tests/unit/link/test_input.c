/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake packets of every length and with every byte changed: each refusal has one name, and no
 * answer. */
#include "sl_link.h"
#include "sl_test.h"

#include <errno.h>
#include <stdlib.h>

struct out {
	unsigned packets;
	uint8_t last[128];
	size_t len;
};

static int
on_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct out *o = arg;

	(void)to;
	o->packets++;
	o->len = len;
	memcpy(o->last, packet, len < sizeof(o->last) ? len : sizeof(o->last));
	return 0;
}

static const struct sl_addr from = {.kind = SL_ADDR_UDP4, .udp_port = 99, .u.ip4 = {192, 0, 2, 1}};

/* One packet in 25 ms: no attempt's budget for answers is ever used up. */
static uint64_t now_us = 1000000;

struct fixture {
	struct sl_identity *id;
	struct sl_session_table *table;
	struct sl_links *links;
	struct out out;
};

static void
setup(struct fixture *f)
{
	struct sl_session_table_config tc = {.max_sessions = 64, .max_peers = 16, .workers = 1};
	struct sl_transport_config t = {
		.kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = true};
	struct sl_links_sink sink = {.arg = &f->out, .transmit = on_transmit};
	struct sl_links_config c;

	memset(&f->out, 0, sizeof(f->out));
	sl_links_config_default(&c);
	c.handshake_burst = 1000000;
	f->id = sl_identity_generate();
	f->table = sl_session_table_create(&tc);
	f->links = sl_links_create(
		&c, f->id, f->table, sl_aead_backend_find("sodium"), &sink, now_us);
	SL_EXPECT(f->links != NULL);
	SL_EXPECT_EQ(sl_links_transport_add(f->links, &t), 0);
	SL_EXPECT_EQ(sl_links_transport_add(f->links, &t), -EEXIST);
}

static void
teardown(struct fixture *f)
{
	sl_links_destroy(f->links);
	sl_session_table_destroy(f->table);
	sl_identity_destroy(f->id);
}

/* From an exact-size copy, so that a read beyond it is seen. */
static void
give(struct fixture *f, const uint8_t *bytes, size_t len, bool as_packet)
{
	uint8_t *copy = malloc(len ? len : 1);

	now_us += 25000;
	memcpy(copy, bytes, len);
	if (as_packet)
		sl_links_packet(f->links, &from, copy, len, now_us);
	else
		sl_links_handshake(f->links, &from, copy, len, now_us);
	free(copy);
}

static uint64_t
counted(const struct fixture *f)
{
	const uint64_t *c = sl_links_counters(f->links);

	return c[SL_LINK_HANDSHAKE_MALFORMED] + c[SL_LINK_MSG1_AUTH] + c[SL_LINK_MSG2_AUTH] +
	       c[SL_LINK_MSG2_UNKNOWN] + c[SL_LINK_RX_BAD_PACKET] + c[SL_LINK_RX_UNKNOWN_INDEX] +
	       c[SL_LINK_RX_AUTH] + c[SL_LINK_RX_REPLAY];
}

static void
make_msg1(const struct fixture *f, struct sl_identity *me, struct sl_noise_initiator *st,
	uint8_t *packet)
{
	static const uint8_t epoch[SL_EPOCH_BYTES] = {7};
	uint8_t noise[SL_NOISE_MSG1_BYTES];
	struct sl_remote_key key;

	SL_EXPECT_EQ(sl_remote_key_init(&key, sl_identity_xonly(f->id), me), 0);
	sl_noise_initiate(st, noise, me, &key, epoch, NULL);
	sl_msg1_build(packet, 0x01020304, noise);
}

SL_TEST(link_input, msg1_of_every_length_and_every_byte_changed)
{
	struct sl_identity *me = sl_identity_generate();
	struct sl_noise_initiator st;
	struct fixture f;
	uint8_t msg1[SL_MSG1_PACKET_BYTES], longer[2048] = {0};

	setup(&f);
	make_msg1(&f, me, &st, msg1);
	memcpy(longer, msg1, sizeof(msg1));
	for (size_t len = 0; len < sizeof(longer); len++) {
		uint64_t before = counted(&f);

		if (len == sizeof(msg1))
			continue;
		give(&f, longer, len, len & 1);
		SL_EXPECT_EQ(counted(&f), before + 1);
	}
	/* The index (4..7) is protected by nothing; everything else is. */
	for (unsigned i = 0; i < sizeof(msg1); i++) {
		uint64_t before = counted(&f);

		if (i >= 4 && i < 8)
			continue;
		msg1[i] ^= 0x10;
		give(&f, msg1, sizeof(msg1), false);
		SL_EXPECT_EQ(counted(&f), before + 1);
		msg1[i] ^= 0x10;
	}
	SL_EXPECT_EQ(f.out.packets, 0);
	SL_EXPECT_EQ(sl_session_count(f.table), 0);
	give(&f, msg1, sizeof(msg1), true);
	SL_EXPECT_EQ(f.out.packets, 1);
	SL_EXPECT_EQ(f.out.len, SL_MSG2_PACKET_BYTES);
	SL_EXPECT_EQ(sl_get32(f.out.last + 8), 0x01020304);
	teardown(&f);
	sl_identity_destroy(me);
}

SL_TEST(link_input, msg2_and_frames_of_every_length_and_every_byte_changed)
{
	struct sl_identity *me = sl_identity_generate();
	struct sl_noise_responder st;
	struct sl_noise_keys keys;
	struct fixture f;
	uint8_t noise[SL_NOISE_MSG2_BYTES], msg2[SL_MSG2_PACKET_BYTES], frame[64], nonce[12] = {0},
										   text[8] = {1};
	const uint8_t epoch[SL_EPOCH_BYTES] = {9};
	uint32_t index;

	setup(&f);
	SL_EXPECT_EQ(sl_links_dial(f.links, sl_identity_xonly(me), &from, now_us), 0);
	SL_EXPECT_EQ(f.out.len, SL_MSG1_PACKET_BYTES);
	SL_EXPECT_EQ(sl_noise_respond_read(&st, f.out.last + 8, me, NULL, NULL), 0);
	index = sl_get32(f.out.last + 4);
	sl_noise_respond_write(&st, noise, me, epoch, NULL, &keys);
	sl_msg2_build(msg2, 5, index, noise);
	f.out.packets = 0;
	for (size_t len = 0; len < sizeof(msg2); len++) {
		uint64_t before = counted(&f);

		give(&f, msg2, len, len & 1);
		SL_EXPECT_EQ(counted(&f), before + 1);
	}
	for (unsigned i = 0; i < sizeof(msg2); i++) {
		uint64_t before = counted(&f);

		if (i >= 4 && i < 8)
			continue;
		msg2[i] ^= 0x20;
		give(&f, msg2, sizeof(msg2), false);
		SL_EXPECT_EQ(counted(&f), before + 1);
		msg2[i] ^= 0x20;
	}
	SL_EXPECT_EQ(f.out.packets, 0);
	give(&f, msg2, sizeof(msg2), true); /* the attempt has survived all of it */
	SL_EXPECT_EQ(sl_links_counters(f.links)[SL_LINK_LINK_UP], 1);
	SL_EXPECT_EQ(f.out.packets, 1);

	text[4] = SL_MSG_HEARTBEAT;
	sl_header_build(frame, 0, 5, index, 0);
	sl_aead_seal_one(
		frame + SL_HEADER_BYTES, text, 5, frame, SL_HEADER_BYTES, nonce, keys.send);
	for (size_t len = 0; len < 37; len++) {
		uint64_t before = counted(&f);

		give(&f, frame, len, true);
		SL_EXPECT_EQ(counted(&f), before + 1);
	}
	for (unsigned i = 0; i < 37; i++) {
		uint64_t before = counted(&f);

		frame[i] ^= 0x40;
		give(&f, frame, 37, true);
		SL_EXPECT_EQ(counted(&f), before + 1);
		frame[i] ^= 0x40;
	}
	give(&f, frame, 37, true);
	SL_EXPECT_EQ(sl_session_lookup(sl_session_table_view(f.table), index)->mmp.frames, 1);
	{
		uint64_t before = sl_links_counters(f.links)[SL_LINK_RX_REPLAY];

		give(&f, frame, 37, true);
		SL_EXPECT_EQ(sl_links_counters(f.links)[SL_LINK_RX_REPLAY], before + 1);
	}
	/* Messages that are too long for the link, and the longest that is not. */
	{
		static uint8_t msg[1300] = {SL_MSG_LOOKUP_REQUEST};

		SL_EXPECT_EQ(sl_links_send(f.links, 0, msg, 1280 - 36, 0, now_us), 0);
		SL_EXPECT_EQ(f.out.len, 1280);
		SL_EXPECT_EQ(sl_links_send(f.links, 0, msg, 1280 - 35, 0, now_us), -EMSGSIZE);
		SL_EXPECT_EQ(sl_links_send(f.links, 0, msg, 0, 0, now_us), -EMSGSIZE);
	}
	teardown(&f);
	sl_identity_destroy(me);
}

SL_TEST(link_input, index_exhaustion_gives_everything_back)
{
	struct fixture f;
	unsigned dials = 0;
	int rc = 0;

	setup(&f);
	for (; dials < 100 && rc == 0; dials++) {
		struct sl_identity *id = sl_identity_generate();

		rc = sl_links_dial(f.links, sl_identity_xonly(id), &from, now_us);
		sl_identity_destroy(id);
	}
	SL_EXPECT_EQ(rc, -ENOSPC);
	SL_EXPECT_EQ(dials, 65);
	SL_EXPECT_EQ(sl_links_counters(f.links)[SL_LINK_NO_INDEX], 1);
	/* 30 s later all of them have been given up, and it goes on. */
	while (sl_links_tick(f.links, 40000000) <= 40000000)
		;
	SL_EXPECT_EQ(sl_links_counters(f.links)[SL_LINK_HANDSHAKE_TIMEOUT], 64);
	for (rc = 0, dials = 0; dials < 64 && rc == 0; dials++) {
		struct sl_identity *id = sl_identity_generate();

		rc = sl_links_dial(f.links, sl_identity_xonly(id), &from, 40000000);
		sl_identity_destroy(id);
	}
	SL_EXPECT_EQ(rc, 0);
	teardown(&f);
}

SL_TEST(link_input, configurations_that_cannot_work)
{
	struct fixture f;
	struct sl_links_config good, c;
	struct sl_links_sink sink = {.arg = &f.out, .transmit = on_transmit};

	setup(&f);
	sl_links_config_default(&good);
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		c = good;                                                                          \
		c.field = value;                                                                   \
		errno = 0;                                                                         \
		SL_EXPECT(sl_links_create(&c, f.id, f.table, sl_aead_backend_find("sodium"),       \
				  &sink, 0) == NULL);                                              \
		SL_EXPECT_EQ(errno, EINVAL);                                                       \
	} while (0)
	REFUSED(handshake_burst, 0);
	REFUSED(handshake_rate_per_s, 0);
	REFUSED(handshake_timeout_us, 0);
	REFUSED(resend_interval_us, 0);
	REFUSED(resend_backoff, 0.5);
	REFUSED(heartbeat_us, 0);
	REFUSED(dead_timeout_us, 0);
	REFUSED(retry_base_us, 0);
	REFUSED(max_pending_inbound, 0);
	REFUSED(rekey_after_us, 1);
	REFUSED(rekey_after_messages, 0);
	teardown(&f);
}

/* --- indices used up, and those given back come free only later --- */

static struct {
	void (*fn)(void *arg, void *obj);
	void *arg, *obj[64];
	unsigned count;
} later;

static void
reclaim_later(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	(void)arg;
	later.fn = fn;
	later.arg = fn_arg;
	if (later.count < 64)
		later.obj[later.count++] = obj;
}

static void
grace_period_over(void)
{
	while (later.count)
		later.fn(later.arg, later.obj[--later.count]);
}

SL_TEST(link_input, one_handshake_gives_way_for_an_index)
{
	struct sl_session_table_config tc = {.max_sessions = 16, .max_peers = 64, .workers = 1,
		.reclaim = reclaim_later};
	struct sl_transport_config t = {
		.kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = true};
	struct sl_links_sink sink;
	struct sl_links_config c;
	struct fixture f;
	const uint64_t *counters;

	memset(&f.out, 0, sizeof(f.out));
	sink = (struct sl_links_sink){.arg = &f.out, .transmit = on_transmit};
	sl_links_config_default(&c);
	f.id = sl_identity_generate();
	f.table = sl_session_table_create(&tc);
	f.links = sl_links_create(
		&c, f.id, f.table, sl_aead_backend_find("sodium"), &sink, now_us);
	SL_ASSERT(f.links != NULL);
	counters = sl_links_counters(f.links);
	SL_EXPECT_EQ(sl_links_transport_add(f.links, &t), 0);
	for (unsigned i = 0; i < 18; i++) {
		struct sl_identity *me = sl_identity_generate();
		uint8_t msg1[SL_MSG1_PACKET_BYTES];
		struct sl_noise_initiator st;

		make_msg1(&f, me, &st, msg1);
		give(&f, msg1, sizeof(msg1), true);
		sl_identity_destroy(me);
		/* The 17th finds none and gets no answer; the index that it freed serves the 18th. */
		SL_EXPECT_EQ(f.out.packets, i < 16 ? i + 1 : i);
		if (i == 16) {
			SL_EXPECT_EQ(counters[SL_LINK_NO_INDEX], 1);
			SL_EXPECT_EQ(counters[SL_LINK_PENDING_EVICTED], 1);
			grace_period_over();
		}
	}
	SL_EXPECT_EQ(counters[SL_LINK_NO_INDEX], 1);
	SL_EXPECT_EQ(sl_session_count(f.table), 16);
	sl_links_destroy(f.links);
	grace_period_over();
	sl_session_table_destroy(f.table);
	sl_identity_destroy(f.id);
}
