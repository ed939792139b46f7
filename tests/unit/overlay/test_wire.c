/* SPDX-License-Identifier: BSD-3-Clause */
/* Golden bytes: every builder makes them, every parser takes them apart. */
#include "overlay_test.h"
#include "sl_aead.h"
#include "sl_hash.h"
#include <stdlib.h>

#define KEY_1 "55c57f1a4f5d654e244d8f6b1299ea516737540dda4bdf9d08ced7c04c308894"
#define KEY_2 "7c28d6047a4a009f2dc794ff59f32cf552646fb997b331f7ba91d24b617ccf77"

static struct sl_node_addr
addr_of(const char *hex)
{
	struct sl_node_addr a;

	sl_test_unhex(a.bytes, sizeof(a.bytes), hex);
	return a;
}

SL_TEST(wire, handshake_packets)
{
	uint8_t want1[SL_MSG1_PACKET_BYTES], want2[SL_MSG2_PACKET_BYTES], got[SL_MSG1_PACKET_BYTES];

	SL_EXPECT_EQ(vector_bytes(want1, sizeof(want1), "msg1"), SL_MSG1_PACKET_BYTES);
	SL_EXPECT_EQ(vector_bytes(want2, sizeof(want2), "msg2"), SL_MSG2_PACKET_BYTES);
	sl_msg1_build(got, 0x11223344, want1 + 8);
	SL_EXPECT_MEM(got, want1, sizeof(want1));
	sl_msg2_build(got, 0x55667788, 0x11223344, want2 + 12);
	SL_EXPECT_MEM(got, want2, sizeof(want2));
	SL_EXPECT_EQ(sl_packet_classify(want1, sizeof(want1)), SL_PACKET_MSG1);
	SL_EXPECT_EQ(sl_packet_classify(want2, sizeof(want2)), SL_PACKET_MSG2);
}

static void
frame_check(const char *name, uint8_t flags, uint32_t receiver_idx, uint64_t counter,
	const char *key_hex, const char *inner_hex)
{
	uint8_t packet[64], header[SL_HEADER_BYTES], key[32], nonce[12] = {0}, inner[16], want[16];
	size_t len = vector_bytes(packet, sizeof(packet), name), inner_len = strlen(inner_hex) / 2;

	SL_EXPECT_EQ(sl_packet_classify(packet, len), SL_PACKET_ESTABLISHED);
	SL_EXPECT_EQ(len, inner_len + SL_ESTABLISHED_MIN_BYTES);
	sl_header_build(header, flags, (uint16_t)inner_len, receiver_idx, counter);
	SL_EXPECT_MEM(header, packet, sizeof(header));
	sl_test_unhex(key, sizeof(key), key_hex);
	sl_test_unhex(want, inner_len, inner_hex);
	sl_put64(nonce + 4, counter);
	SL_EXPECT_EQ(sl_aead_open_one(inner, packet + SL_HEADER_BYTES, len - SL_HEADER_BYTES,
			     packet, SL_HEADER_BYTES, nonce, key),
		0);
	SL_EXPECT_MEM(inner, want, inner_len);
}

SL_TEST(wire, established_frames)
{
	frame_check("heartbeat_frame", 0, 0x55667788, 0, KEY_1, "e803000051");
	frame_check(
		"disconnect_frame", SL_FLAG_K | SL_FLAG_SP, 0x11223344, 7, KEY_2, "701101005007");
}

SL_TEST(wire, classify_names_each_fault)
{
	uint8_t p[SL_MSG1_PACKET_BYTES];
	size_t len = vector_bytes(p, sizeof(p), "heartbeat_frame");

	for (size_t n = 0; n < len; n++)
		SL_EXPECT_EQ(sl_packet_classify(p, n),
			n < SL_ESTABLISHED_MIN_BYTES ? SL_PACKET_SHORT : SL_PACKET_LENGTH);
	SL_EXPECT_EQ(sl_packet_classify(p, len + 1), SL_PACKET_LENGTH);
	p[2]--;
	SL_EXPECT_EQ(sl_packet_classify(p, len), SL_PACKET_LENGTH);
	p[2]++;
	p[0] = 0x10;
	SL_EXPECT_EQ(sl_packet_classify(p, len), SL_PACKET_VERSION);
	for (unsigned phase = 3; phase < 16; phase++) {
		p[0] = (uint8_t)phase;
		SL_EXPECT_EQ(sl_packet_classify(p, len), SL_PACKET_PHASE);
	}
	for (unsigned i = 1; i <= 2; i++) {
		len = vector_bytes(p, sizeof(p), i == 1 ? "msg1" : "msg2");
		for (size_t n = 4; n < len; n++)
			SL_EXPECT_EQ(sl_packet_classify(p, n), SL_PACKET_LENGTH);
		p[1] = 1;
		SL_EXPECT_EQ(sl_packet_classify(p, len), SL_PACKET_FLAGS);
		p[1] = 0;
		p[3] = 1;
		SL_EXPECT_EQ(sl_packet_classify(p, len), SL_PACKET_LENGTH);
	}
	/* payload_len is 16 bits: a packet of 65536 bytes more does not pass for its shorter twin. */
	{
		size_t big = SL_ESTABLISHED_MIN_BYTES + 65536 + 5;
		uint8_t *b = calloc(1, big);

		sl_put16(b + 2, 5);
		SL_EXPECT_EQ(sl_packet_classify(b, big), SL_PACKET_LENGTH);
		free(b);
	}
}

SL_TEST(wire, empty_plaintext_is_established)
{
	uint8_t p[SL_ESTABLISHED_MIN_BYTES] = {0};

	SL_EXPECT_EQ(sl_packet_classify(p, sizeof(p)), SL_PACKET_ESTABLISHED);
}

SL_TEST(wire, sender_report)
{
	uint8_t want[SL_SENDER_REPORT_BYTES], got[SL_SENDER_REPORT_BYTES];
	struct sl_sender_report r, v = {100, 200, 5000, 6000, 50000, 10000, 5000000};

	vector_bytes(want, sizeof(want), "sender_report");
	sl_sender_report_build(got, &v);
	SL_EXPECT_MEM(got, want, sizeof(want));
	SL_EXPECT_EQ(sl_sender_report_parse(&r, want, sizeof(want)), 0);
	SL_EXPECT_EQ(r.first_counter, 100);
	SL_EXPECT_EQ(r.last_counter, 200);
	SL_EXPECT_EQ(r.first_ts_ms, 5000);
	SL_EXPECT_EQ(r.last_ts_ms, 6000);
	SL_EXPECT_EQ(r.interval_bytes, 50000);
	SL_EXPECT_EQ(r.total_frames, 10000);
	SL_EXPECT_EQ(r.total_bytes, 5000000);
}

SL_TEST(wire, receiver_report)
{
	uint8_t want[SL_RECEIVER_REPORT_BYTES], got[SL_RECEIVER_REPORT_BYTES];
	struct sl_receiver_report r,
		v = {195, 9500, 4750000, 5900, 5, 3, 384, 1200, 0, -50, 2, 10, 95, 47500};

	vector_bytes(want, sizeof(want), "receiver_report");
	sl_receiver_report_build(got, &v);
	SL_EXPECT_MEM(got, want, sizeof(want));
	memset(&r, 0xaa, sizeof(r));
	SL_EXPECT_EQ(sl_receiver_report_parse(&r, want, sizeof(want)), 0);
	SL_EXPECT_EQ(r.highest_counter, 195);
	SL_EXPECT_EQ(r.total_frames, 9500);
	SL_EXPECT_EQ(r.total_bytes, 4750000);
	SL_EXPECT_EQ(r.echo_ts_ms, 5900);
	SL_EXPECT_EQ(r.dwell_ms, 5);
	SL_EXPECT_EQ(r.burst_longest, 3);
	SL_EXPECT_EQ(r.burst_mean_8_8, 384);
	SL_EXPECT_EQ(r.jitter_us, 1200);
	SL_EXPECT_EQ(r.ce_frames, 0);
	SL_EXPECT_EQ(r.owd_trend_us_s, -50);
	SL_EXPECT_EQ(r.bursts, 2);
	SL_EXPECT_EQ(r.reordered, 10);
	SL_EXPECT_EQ(r.interval_frames, 95);
	SL_EXPECT_EQ(r.interval_bytes, 47500);
}

static void
tree_check(const char *name, const char *xonly, const char *sender, unsigned entries,
	uint64_t sequence, uint64_t timestamp_s, const char *preimage_hex, const char *digest_hex)
{
	uint8_t msg[256], again[256], preimage[SL_TREE_PREIMAGE_BYTES],
		want[SL_TREE_PREIMAGE_BYTES], digest[32];
	uint8_t key[32];
	struct sl_node_addr a = addr_of(SL_VECTOR_ADDR_A), self = addr_of(sender);
	size_t len = vector_bytes(msg, sizeof(msg), name);
	struct sl_tree_announce t;

	SL_EXPECT_EQ(sl_tree_announce_parse(&t, msg, len), 0);
	SL_EXPECT_EQ(t.sequence, sequence);
	SL_EXPECT_EQ(t.timestamp_s, timestamp_s);
	SL_EXPECT_EQ(t.entries, entries);
	SL_EXPECT_MEM(t.parent.bytes, a.bytes, 16);
	SL_EXPECT_MEM(t.entry, self.bytes, 16);
	SL_EXPECT(t.signature + 64 == msg + len);
	sl_tree_preimage(preimage, &self, &t.parent, t.sequence, t.timestamp_s);
	sl_test_unhex(want, sizeof(want), preimage_hex);
	SL_EXPECT_MEM(preimage, want, sizeof(want));
	sl_sha256(digest, preimage, sizeof(preimage));
	sl_test_unhex(want, 32, digest_hex);
	SL_EXPECT_MEM(digest, want, 32);
	sl_test_unhex(key, sizeof(key), xonly);
	SL_EXPECT(sl_verify(t.signature, digest, key));
	SL_EXPECT_EQ(sl_tree_announce_build(again, len, &t), len);
	SL_EXPECT_MEM(again, msg, len);
	SL_EXPECT_EQ(sl_tree_announce_build(again, len - 1, &t), 0);
}

SL_TEST(wire, tree_announce)
{
	tree_check("tree_root", SL_VECTOR_XONLY_A, SL_VECTOR_ADDR_A, 1, 1, 1700000000,
		SL_VECTOR_ADDR_A SL_VECTOR_ADDR_A "010000000000000000f1536500000000",
		"48f1050a06f20f526a5f0d9bc34d4b7e3d0cd866514c3180179a2ca6e15b97b6");
	tree_check("tree_child", SL_VECTOR_XONLY_B, SL_VECTOR_ADDR_B, 2, 2, 1700000005,
		SL_VECTOR_ADDR_B SL_VECTOR_ADDR_A "020000000000000005f1536500000000",
		"2da937e219879d5120dd24a94f957518fba0690b3d2065383d8f37bb6b2a5d0f");
}

SL_TEST(wire, filter_announce)
{
	uint8_t bits[SL_FILTER_BYTES] = {0}, msg[SL_FILTER_MSG_BYTES], head[11], digest[32],
		want[32];
	struct sl_filter_announce f;

	for (size_t i = 0; i < 5; i++)
		bits[sl_vector_filter_bytes[i].at] = (uint8_t)sl_vector_filter_bytes[i].value;
	sl_filter_announce_build(msg, 1, bits);
	sl_test_unhex(head, sizeof(head), SL_VECTOR_FILTER_HEAD);
	SL_EXPECT_MEM(msg, head, sizeof(head));
	sl_sha256(digest, msg, sizeof(msg));
	sl_test_unhex(want, sizeof(want), SL_VECTOR_FILTER_SHA256);
	SL_EXPECT_MEM(digest, want, sizeof(want));
	SL_EXPECT_EQ(sl_filter_announce_parse(&f, msg, sizeof(msg)), 0);
	SL_EXPECT_EQ(f.sequence, 1);
	SL_EXPECT_EQ(f.hash_count, 5);
	SL_EXPECT_MEM(f.bits, bits, sizeof(bits));
}

SL_TEST(wire, lookups)
{
	uint8_t msg[160], again[160], digest[32], want[32], key[32];
	struct sl_node_addr a = addr_of(SL_VECTOR_ADDR_A), b = addr_of(SL_VECTOR_ADDR_B);
	size_t len = vector_bytes(msg, sizeof(msg), "lookup_request");
	struct sl_lookup_response resp;
	struct sl_lookup_request req;

	SL_EXPECT_EQ(len, 62);
	SL_EXPECT_EQ(sl_lookup_request_parse(&req, msg, len), 0);
	SL_EXPECT_EQ(req.request_id, 0x0102030405060708);
	SL_EXPECT_MEM(req.target.bytes, b.bytes, 16);
	SL_EXPECT_MEM(req.origin.bytes, a.bytes, 16);
	SL_EXPECT_EQ(req.ttl, 64);
	SL_EXPECT_EQ(req.min_mtu, 0);
	SL_EXPECT_EQ(req.coords_count, 1);
	SL_EXPECT_MEM(req.coords, a.bytes, 16);
	SL_EXPECT_EQ(sl_lookup_request_build(again, len, &req), len);
	SL_EXPECT_MEM(again, msg, len);
	SL_EXPECT_EQ(sl_lookup_request_build(again, len - 1, &req), 0);

	len = vector_bytes(msg, sizeof(msg), "lookup_response");
	SL_EXPECT_EQ(len, 125);
	SL_EXPECT_EQ(sl_lookup_response_parse(&resp, msg, len), 0);
	SL_EXPECT_EQ(resp.request_id, 0x0102030405060708);
	SL_EXPECT_MEM(resp.target.bytes, b.bytes, 16);
	SL_EXPECT_EQ(resp.path_mtu, 1280);
	SL_EXPECT_EQ(resp.coords_count, 2);
	SL_EXPECT_MEM(resp.coords, b.bytes, 16);
	SL_EXPECT_MEM(resp.coords + 16, a.bytes, 16);
	sl_lookup_proof_digest(digest, &resp);
	sl_test_unhex(want, 32, "29fdc312fdbd9c2f7b7555355c1f74429ec4460f7fa763611239170ccef152d8");
	SL_EXPECT_MEM(digest, want, 32);
	sl_test_unhex(key, sizeof(key), SL_VECTOR_XONLY_B);
	SL_EXPECT(sl_verify(resp.proof, digest, key));
	SL_EXPECT_EQ(sl_lookup_response_build(again, len, &resp), len);
	SL_EXPECT_MEM(again, msg, len);
	SL_EXPECT_EQ(sl_lookup_response_build(again, len - 1, &resp), 0);
}

static struct sl_node_addr
x_addr(uint8_t first)
{
	struct sl_node_addr a = {{first}};

	return a;
}

SL_TEST(wire, signals)
{
	struct sl_signal out, s = {.type = SL_SIGNAL_COORDS_REQUIRED,
				      .dest = x_addr(0x20),
				      .reporter = x_addr(0x10)};
	uint8_t want[160], got[160], stale[32] = {0x20};
	struct sl_node_addr source = x_addr(0x21);
	size_t len = vector_bytes(want, sizeof(want), "coords_required_datagram");

	SL_EXPECT_EQ(len, 74);
	sl_datagram_build(got, SL_TTL_DEFAULT, 65535, &s.reporter, &source);
	SL_EXPECT_EQ(sl_signal_build(got + SL_DATAGRAM_PAYLOAD, 38, &s), 38);
	SL_EXPECT_MEM(got, want, len);
	SL_EXPECT_EQ(sl_signal_parse(&out, want + SL_DATAGRAM_PAYLOAD, 38), 0);
	SL_EXPECT_EQ(out.type, SL_SIGNAL_COORDS_REQUIRED);
	SL_EXPECT_MEM(out.dest.bytes, s.dest.bytes, 16);
	SL_EXPECT_MEM(out.reporter.bytes, s.reporter.bytes, 16);

	s.type = SL_SIGNAL_PATH_BROKEN;
	s.coords = stale;
	s.coords_count = 2;
	len = vector_bytes(want, sizeof(want), "path_broken");
	SL_EXPECT_EQ(len, 72);
	SL_EXPECT_EQ(sl_signal_build(got, len, &s), len);
	SL_EXPECT_MEM(got, want, len);
	SL_EXPECT_EQ(sl_signal_build(got, len - 1, &s), 0);
	SL_EXPECT_EQ(sl_signal_parse(&out, want, len), 0);
	SL_EXPECT_EQ(out.coords_count, 2);
	SL_EXPECT_MEM(out.coords, stale, 32);

	s.type = SL_SIGNAL_MTU_EXCEEDED;
	s.mtu = 1280;
	len = vector_bytes(want, sizeof(want), "mtu_exceeded");
	SL_EXPECT_EQ(len, 40);
	SL_EXPECT_EQ(sl_signal_build(got, len, &s), len);
	SL_EXPECT_MEM(got, want, len);
	SL_EXPECT_EQ(sl_signal_parse(&out, want, len), 0);
	SL_EXPECT_EQ(out.mtu, 1280);

	s.type = 0x23;
	SL_EXPECT_EQ(sl_signal_build(got, sizeof(got), &s), 0);
}

SL_TEST(wire, message_table)
{
	const struct sl_msg_info *info;
	unsigned known = 0;

	for (unsigned type = 0; type < 256; type++) {
		info = sl_msg_info((uint8_t)type);
		if (info) {
			SL_EXPECT_EQ(info->type, type);
			SL_EXPECT_GT(strlen(info->name), 0);
			known++;
		}
	}
	SL_EXPECT_EQ(known, 9);
	SL_EXPECT_EQ(known, sl_msg_table_count);
	for (unsigned i = 1; i < sl_msg_table_count; i++)
		SL_EXPECT_LT(sl_msg_table[i - 1].type, sl_msg_table[i].type);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_DATAGRAM)->min_body, 35);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_TREE_ANNOUNCE)->min_body, 131);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_FILTER_ANNOUNCE)->min_body, 1034);
	SL_EXPECT(sl_msg_info(SL_MSG_FILTER_ANNOUNCE)->exact);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_LOOKUP_REQUEST)->min_body, 61);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_LOOKUP_RESPONSE)->min_body, 108);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_DISCONNECT)->min_body, 1);
	SL_EXPECT_EQ(sl_msg_info(SL_MSG_HEARTBEAT)->min_body, 0);
}

SL_TEST(wire, disconnect_names)
{
	SL_EXPECT_STR(sl_disconnect_name(SL_DISCONNECT_SHUTDOWN), "shutdown");
	SL_EXPECT_STR(sl_disconnect_name(SL_DISCONNECT_TIMEOUT), "timeout");
	SL_EXPECT_STR(sl_disconnect_name(SL_DISCONNECT_OTHER), "other");
	SL_EXPECT_STR(sl_disconnect_name(0x42), "other");
	for (unsigned a = 0; a < 7; a++)
		for (unsigned b = a + 1; b < 8; b++)
			SL_EXPECT(strcmp(sl_disconnect_name((uint8_t)a),
					  sl_disconnect_name((uint8_t)b)) != 0);
}
