/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link state machines under any input: packets as they come, and, since no fuzzer finds a key,
 * also authentic ones with any content, handshakes of a known identity with any epoch, time in any
 * steps, any order.
 *
 * Holds: what the sink is told makes sense; sessions stay within what a few peers can have; nothing
 * is sent to an address that has not authenticated but msg2, at most one for a msg1.
 */
#include "fuzz.h"
#include "sl_link.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define MAX_PACKET 1500u

static uint64_t rng_state;

static uint32_t
rng_u32(void)
{
	rng_state = rng_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng_state >> 32);
}
static void
rng_buf(void *const buf, const size_t len)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rng_u32();
}
static const char *
rng_name(void)
{
	return "fuzz";
}
static struct randombytes_implementation rng = {
	.implementation_name = rng_name, .random = rng_u32, .buf = rng_buf};

/* The node under test, and what a peer of it holds. */
static struct world {
	struct sl_identity *id, *peer_id;
	struct sl_remote_key key;
	struct sl_session_table *table;
	struct sl_links *links;
	uint64_t now_us;
	bool up[8];
	unsigned sent_to_strangers, msg1_given;
	struct sl_addr peer_addr;
	/* Sessions of the peer that a frame can be made for. */
	struct sl_noise_initiator dial;
	struct peer_session {
		struct sl_noise_keys keys;
		uint32_t index;
		uint64_t counter;
		bool valid;
	} session[4];
	unsigned next;
	uint8_t last_msg1[SL_MSG1_PACKET_BYTES];
	bool have_msg1;
} w;

static struct peer_session *
session_new(uint32_t index)
{
	struct peer_session *s = &w.session[w.next++ % 4];

	s->index = index;
	s->counter = 0;
	s->valid = true;
	return s;
}

static int
on_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct sl_noise_keys keys;
	uint8_t epoch[SL_EPOCH_BYTES];

	(void)arg;
	if (!sl_addr_equal(to, &w.peer_addr)) {
		w.sent_to_strangers++;
		return 0;
	}
	if (len == SL_MSG2_PACKET_BYTES && packet[0] == SL_PHASE_MSG2 &&
		sl_noise_initiator_read(&w.dial, packet + 12, &keys, epoch) == 0)
		session_new(sl_get32(packet + 4))->keys = keys;
	if (len == SL_MSG1_PACKET_BYTES && packet[0] == SL_PHASE_MSG1) {
		memcpy(w.last_msg1, packet, len);
		w.have_msg1 = true;
	}
	return packet[len - 1] & 1 ? 0 : -EHOSTUNREACH;
}

static void
on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	(void)arg, (void)mtu;
	FUZZ_CHECK(id < 8);
	FUZZ_CHECK(memcmp(key->xonly, w.key.xonly, SL_XONLY_BYTES) == 0);
	w.up[id] = true;
}

static void
on_down(void *arg, uint32_t id, enum sl_down_reason reason)
{
	(void)arg, (void)reason;
	FUZZ_CHECK(id < 8 && w.up[id]);
	w.up[id] = false;
}

static void
on_message(void *arg, uint32_t id, const uint8_t *msg, size_t len, uint8_t flags)
{
	uint8_t answer[4] = {SL_MSG_TREE_ANNOUNCE};

	(void)arg;
	FUZZ_CHECK(id < 8 && w.up[id] && len > 0);
	(void)!sl_links_send(w.links, id, answer, 1 + (msg[len - 1] & 3), flags, w.now_us);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t secret[SL_SECRET_BYTES] = {1};

	(void)argc, (void)argv;
	randombytes_set_implementation(&rng);
	if (sl_crypto_init() != 0)
		return 1;
	w.id = sl_identity_create(secret);
	secret[0] = 2;
	w.peer_id = sl_identity_create(secret);
	return 0;
}

static void
begin(void)
{
	struct sl_session_table_config tc = {.max_sessions = 16, .max_peers = 8, .workers = 1};
	struct sl_links_sink sink = {.transmit = on_transmit,
		.peer_up = on_up,
		.peer_down = on_down,
		.message = on_message};
	struct sl_transport_config t = {
		.kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = true};
	struct sl_peer_config pc = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};
	struct sl_links_config c;

	rng_state = 1;
	w.now_us = 1000000;
	w.next = 0;
	w.have_msg1 = false;
	w.sent_to_strangers = w.msg1_given = 0;
	memset(w.session, 0, sizeof(w.session));
	memset(w.up, 0, sizeof(w.up));
	memset(&w.dial, 0, sizeof(w.dial));
	FUZZ_CHECK(sl_remote_key_init(&w.key, sl_identity_xonly(w.id), w.peer_id) == 0);
	w.peer_addr =
		(struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 2121, .u.ip4 = {10, 0, 0, 2}};
	sl_links_config_default(&c);
	w.table = sl_session_table_create(&tc);
	w.links =
		sl_links_create(&c, w.id, w.table, sl_aead_backend_find("sodium"), &sink, w.now_us);
	FUZZ_CHECK(w.table && w.links && sl_links_transport_add(w.links, &t) == 0);
	memcpy(pc.xonly, sl_identity_xonly(w.peer_id), SL_XONLY_BYTES);
	pc.addrs[0] = w.peer_addr;
	FUZZ_CHECK(sl_links_peer_configure(w.links, &pc, w.now_us) == 0);
	FUZZ_CHECK(sl_remote_key_init(&w.key, sl_identity_xonly(w.peer_id), NULL) == 0);
}

/* msg1 of the peer under an index and an epoch of the input's choice. */
static void
peer_dials(const uint8_t *d, size_t len)
{
	uint8_t packet[SL_MSG1_PACKET_BYTES], noise[SL_NOISE_MSG1_BYTES],
		epoch[SL_EPOCH_BYTES] = {0};
	struct sl_remote_key key;

	FUZZ_CHECK(sl_remote_key_init(&key, sl_identity_xonly(w.id), w.peer_id) == 0);
	epoch[0] = len > 0 ? d[0] & 3 : 0;
	sl_noise_initiate(&w.dial, noise, w.peer_id, &key, epoch, NULL);
	sl_msg1_build(packet, len > 1 ? d[1] : 0, noise);
	sl_links_handshake(w.links, &w.peer_addr, packet, sizeof(packet), w.now_us);
}

static void
peer_answers(const uint8_t *d, size_t len)
{
	uint8_t packet[SL_MSG2_PACKET_BYTES], noise[SL_NOISE_MSG2_BYTES],
		epoch[SL_EPOCH_BYTES] = {0};
	struct sl_noise_responder st;
	struct sl_noise_keys keys;

	if (!w.have_msg1)
		return;
	epoch[0] = len > 0 ? d[0] & 3 : 0;
	if (sl_noise_respond_read(&st, w.last_msg1 + 8, w.peer_id, NULL, NULL) != 0)
		return;
	sl_noise_respond_write(&st, noise, w.peer_id, epoch, NULL, &keys);
	session_new(sl_get32(w.last_msg1 + 4))->keys = keys;
	sl_msg2_build(packet, len > 1 ? d[1] : 0, sl_get32(w.last_msg1 + 4), noise);
	sl_links_handshake(w.links, &w.peer_addr, packet, sizeof(packet), w.now_us);
}

/* An authentic frame with the input as inner plaintext. */
static void
peer_sends(uint8_t which, const uint8_t *d, size_t len)
{
	struct peer_session *s = &w.session[which & 3];
	uint8_t nonce[12] = {0}, *f;
	struct sl_addr from = w.peer_addr;

	if (!s->valid)
		return;
	f = malloc(SL_ESTABLISHED_MIN_BYTES + len);
	sl_header_build(f, which >> 2, (uint16_t)len, s->index, s->counter);
	memcpy(nonce + 4, &s->counter, 8);
	s->counter++;
	sl_aead_seal_one(f + SL_HEADER_BYTES, d, len, f, SL_HEADER_BYTES, nonce, s->keys.send);
	sl_links_packet(w.links, &from, f, SL_ESTABLISHED_MIN_BYTES + len, w.now_us);
	free(f);
}

static void
stranger_packet(const uint8_t *d, size_t len)
{
	const struct sl_addr from = {.kind = SL_ADDR_UDP4, .udp_port = 5, .u.ip4 = {10, 0, 0, 3}};
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, d, len);
	w.msg1_given += len == SL_MSG1_PACKET_BYTES;
	sl_links_packet(w.links, &from, copy, len, w.now_us);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	for (unsigned step = 0; size >= 2 && step < 64; step++) {
		uint8_t op = data[0];
		size_t len = data[1];

		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		switch (op & 7) {
		case 0:
			stranger_packet(data, len);
			break;
		case 1:
			peer_dials(data, len);
			break;
		case 2:
			peer_answers(data, len);
			break;
		case 3:
		case 4:
			peer_sends(op >> 3, data, len);
			break;
		case 5:
			w.now_us += 1ull << (op >> 3);
			(void)sl_links_tick(w.links, w.now_us);
			break;
		case 6:
			if (w.session[op >> 3 & 3].valid)
				sl_links_roamed(w.links, w.session[op >> 3 & 3].index, &w.peer_addr,
					w.now_us);
			break;
		default:
			if (w.session[op >> 3 & 3].valid)
				sl_links_message(w.links, w.session[op >> 3 & 3].index, op, data,
					len, w.now_us);
			break;
		}
		data += len;
		size -= len;
		FUZZ_CHECK(sl_session_count(w.table) <= 6);
		FUZZ_CHECK(w.sent_to_strangers <= w.msg1_given);
	}
	sl_links_destroy(w.links);
	FUZZ_CHECK(sl_session_count(w.table) == 0);
	sl_session_table_destroy(w.table);
	return 0;
}
