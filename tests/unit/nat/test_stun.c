/* SPDX-License-Identifier: BSD-3-Clause */
/* STUN: the vectors of RFC 5769, what must be refused, and the query on a virtual clock. */
#include "sl_stun.h"
#include "sl_test.h"
#include <errno.h>
#include <stdlib.h>

/* --- codec ------------------------------------------------------------------------------------ */

#define ID "b7e7a701 bc34d686 fa87dfae"
static const char request_2_1[] = "00010058 2112a442" ID
				  "80220010 5354554e20746573 7420636c69656e74 00240004 6e0001ff 80290008 932ff9b151263b36"
				  "00060009 6576746a3a683676 59202020 00080014 9aeaa70cbfd8cb56 781ef2b5b2d3f249 c1b571a2"
				  "80280004 e57a3bcf";
static const char ip4_2_2[] = "0101003c 2112a442" ID "8022000b 7465737420766563 746f7220 00200008 0001a147 e112a643"
			      "00080014 2b91f599fd9e90c3 8c7489f92af9ba53 f06be7d7 80280004 c07d4c96";
static const char ip6_2_3[] = "01010048 2112a442" ID "8022000b 7465737420766563 746f7220"
			      "00200014 0002a147 0113a9faa5d3f179 bc25f4b5bed2b9d9"
			      "00080014 a382954e4be67bf1 1784c97c8292c275 bfe3ed41 80280004 c8fb0b4c";
static const char request_2_4[] = "00010060 2112a442 78ad3433 c6ad72c0 29da412e"
				  "00060012 e3839ee38388e383 aae38383e382afe3 82b90000"
				  "0015001c 662f2f3439396b39 353464364f4c3334 6f4c394653547679 36347341"
				  "0014000b 6578616d706c652e 6f726700 00080014 f67024656dd64a3e 02b8e0712e85c9a2 8ca89666";

static size_t
hex_bytes(const char *hex)
{
	size_t n = 0;

	for (; *hex; hex++)
		n += *hex != ' ';
	return n / 2;
}

/* In memory that ends where the packet does. */
static int
parse(const uint8_t *packet, size_t len, const char *id_hex, struct sl_addr *mapped, unsigned *code)
{
	uint8_t id[SL_STUN_ID_BYTES], *exact = malloc(len ? len : 1);
	int rc;

	sl_test_unhex(id, sizeof(id), id_hex);
	memcpy(exact, packet, len);
	rc = sl_stun_response_parse(exact, len, id, mapped, code);
	free(exact);
	return rc;
}

static int
parse_hex(const char *hex, const char *id_hex, char text[SL_ADDR_TEXT_SIZE])
{
	uint8_t packet[256];
	struct sl_addr mapped;
	unsigned code;
	int rc;

	sl_test_unhex(packet, hex_bytes(hex), hex);
	rc = parse(packet, hex_bytes(hex), id_hex, &mapped, &code);
	if (rc == 0)
		sl_addr_format(text, &mapped);
	return rc;
}

SL_TEST(stun, rfc5769)
{
	char text[SL_ADDR_TEXT_SIZE];

	SL_EXPECT_EQ(parse_hex(ip4_2_2, ID, text), 0);
	SL_EXPECT_STR(text, "192.0.2.1:32853");
	SL_EXPECT_EQ(parse_hex(ip6_2_3, ID, text), 0);
	SL_EXPECT_STR(text, "[2001:db8:1234:5678:11:2233:4455:6677]:32853");
	/* Requests are no answers, however sound. */
	SL_EXPECT_EQ(parse_hex(request_2_1, ID, text), -EPROTO);
	SL_EXPECT_EQ(parse_hex(request_2_4, "78ad3433c6ad72c029da412e", text), -EPROTO);
	SL_EXPECT_EQ(parse_hex(ip4_2_2, "b7e7a701bc34d686fa87dfaf", text), -ENOMSG);
}

/* Peering facts, 12.1. */
SL_TEST(stun, reference_datum)
{
	char text[SL_ADDR_TEXT_SIZE];

	SL_EXPECT_EQ(parse_hex("01010018 2112a442 0123456789abcdef10325476 00200014 00022c84 0113a9fa 01234567 89abcdef 1032"
			       "4642", "0123456789abcdef10325476", text), 0);
	SL_EXPECT_STR(text, "[2001:db8::1234]:3478");
}

SL_TEST(stun, request)
{
	uint8_t id[SL_STUN_ID_BYTES], packet[SL_STUN_HEADER_BYTES], want[SL_STUN_HEADER_BYTES];

	sl_test_unhex(id, sizeof(id), ID);
	sl_test_unhex(want, sizeof(want), "00010000 2112a442" ID);
	sl_stun_request_build(packet, id);
	SL_EXPECT_MEM(packet, want, sizeof(want));
}

SL_TEST(stun, plain_address_and_preference)
{
	char text[SL_ADDR_TEXT_SIZE];

	SL_EXPECT_EQ(parse_hex("0101000c 2112a442" ID "00010008 00010d96 c0000201", ID, text), 0);
	SL_EXPECT_STR(text, "192.0.2.1:3478");
	/* XOR-MAPPED-ADDRESS wins, wherever it stands: a NAT may have rewritten the other. */
	SL_EXPECT_EQ(parse_hex("01010018 2112a442" ID "00010008 00010d96 0a000001 00200008 0001a147 e112a643", ID, text), 0);
	SL_EXPECT_STR(text, "192.0.2.1:32853");
	SL_EXPECT_EQ(parse_hex("01010018 2112a442" ID "00200008 0001a147 e112a643 00010008 00010d96 0a000001", ID, text), 0);
	SL_EXPECT_STR(text, "192.0.2.1:32853");
	/* Attributes of RFC 3489, and unknown ones that need not be understood. */
	SL_EXPECT_EQ(parse_hex("01010024 2112a442" ID "00040008 00010d96 0a000001 802b0008 00010d96 0a000001 00010008 00010d96"
			       "c0000201", ID, text), 0);
}

SL_TEST(stun, refused)
{
	struct sl_addr mapped;
	uint8_t packet[80];
	unsigned code;
	char text[SL_ADDR_TEXT_SIZE];

	/* Any length but the right one. */
	sl_test_unhex(packet, sizeof(packet), ip4_2_2);
	for (size_t len = 0; len < sizeof(packet); len++)
		SL_EXPECT_EQ(parse(packet, len, ID, &mapped, &code), -EINVAL);
	/* Any bit, as the fingerprint covers all before it; but those that make it another attribute, or another's value. */
	for (size_t i = 0; i < sizeof(packet); i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			if (i == 72 || i == 73 || (i == 51 && bit == 3))
				continue;
			packet[i] ^= (uint8_t)(1u << bit);
			SL_EXPECT_MSG(parse(packet, sizeof(packet), ID, &mapped, &code) < 0, "byte %zu bit %u", i, bit);
			packet[i] ^= (uint8_t)(1u << bit);
		}
	SL_EXPECT_EQ(parse_hex("01010000 2112a442" ID, ID, text), -ENODATA);
	SL_EXPECT_EQ(parse_hex("01010008 2112a442" ID "00200004 0001a147", ID, text), -ENODATA);
	SL_EXPECT_EQ(parse_hex("0101000c 2112a442" ID "00200008 0003a147 e112a643", ID, text), -ENODATA);
	SL_EXPECT_EQ(parse_hex("0101000c 2112a442" ID "00200008 00012112 e112a643", ID, text), -ENODATA); /* port 0 */
	SL_EXPECT_EQ(parse_hex("0101000c 2112a442" ID "0020000c 0001a147 e112a643", ID, text), -EINVAL);
	SL_EXPECT_EQ(parse_hex("01010004 2112a442" ID "7fff0000", ID, text), -EPROTO); /* must be understood */
	/* An error response: 420 */
	sl_test_unhex(packet, 28, "01110008 2112a442" ID "00090004 00000414");
	SL_EXPECT_EQ(parse(packet, 28, ID, &mapped, &code), -EREMOTEIO);
	SL_EXPECT_EQ(code, 420);
}

/* --- query ------------------------------------------------------------------------------------ */

struct wire {
	unsigned sent;
	struct sl_addr to;
	uint8_t packet[SL_STUN_HEADER_BYTES];
	uint64_t at[64];
	unsigned server_of[64];
	uint64_t now;
	int rc;
};

static struct sl_addr
server(unsigned i)
{
	struct sl_addr a;
	char text[40];

	snprintf(text, sizeof(text), "192.0.2.%u:3478", i + 1);
	if (sl_addr_parse_udp(&a, text))
		abort();
	return a;
}

static int
send(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct wire *w = arg;

	SL_EXPECT_EQ(len, SL_STUN_HEADER_BYTES);
	if (w->sent < 64) {
		w->at[w->sent] = w->now;
		w->server_of[w->sent] = to->u.ip4[3] - 1u;
	}
	w->sent++;
	w->to = *to;
	memcpy(w->packet, packet, len);
	return w->rc;
}

/* The answer to the last request: 198.51.100.7:4711. */
static size_t
answer(const struct wire *w, uint8_t *packet)
{
	memcpy(packet, w->packet, SL_STUN_HEADER_BYTES);
	sl_test_unhex(packet, 4, "0101000c");
	sl_test_unhex(packet + 20, 12, "00200008 00013375 e721c045");
	return 32;
}

static void
run(struct sl_stun_query *q, struct wire *w, uint64_t until)
{
	for (;;) {
		uint64_t due = sl_stun_query_tick(q, w->now, send, w);

		if (due > until)
			break;
		SL_EXPECT_GT(due, w->now);
		w->now = due;
	}
	w->now = until;
}

SL_TEST(stun, query_times)
{
	static const uint64_t want[] = {0, 500000, 1500000, 2000000, 2500000, 3500000};
	struct sl_addr servers[3] = {server(0), {0}, server(2)};
	struct wire w = {.now = 0};
	struct sl_stun_query q;

	/* The one without an address is left out; the circle begins where it is told to. */
	sl_stun_query_begin(&q, servers, 3, 2, 0, send, &w);
	run(&q, &w, 10000000);
	SL_EXPECT_EQ(q.state, SL_STUN_FAILED);
	SL_EXPECT_STR(q.error, "no answer");
	SL_EXPECT_EQ(w.sent, 6);
	for (unsigned i = 0; i < 6; i++) {
		SL_EXPECT_EQ(w.at[i], want[i]);
		SL_EXPECT_EQ(w.server_of[i], i < 3 ? 2 : 0);
	}
	SL_EXPECT_EQ(sl_stun_query_tick(&q, w.now, send, &w), UINT64_MAX);
}

SL_TEST(stun, query_answered)
{
	struct sl_addr servers[2] = {server(0), server(1)}, elsewhere = server(9);
	struct wire w = {.now = 1000};
	struct sl_stun_query q;
	uint8_t packet[64];
	char text[SL_ADDR_TEXT_SIZE];
	size_t len;

	sl_stun_query_begin(&q, servers, 2, 0, w.now, send, &w);
	run(&q, &w, 600000);
	SL_EXPECT_EQ(w.sent, 2);
	len = answer(&w, packet);
	/* Forged: from elsewhere, under another id, without sense. The query goes on. */
	SL_EXPECT(!sl_stun_query_packet(&q, &elsewhere, packet, len, w.now, send, &w));
	packet[10] ^= 1;
	SL_EXPECT(!sl_stun_query_packet(&q, &servers[0], packet, len, w.now, send, &w));
	packet[10] ^= 1;
	SL_EXPECT(!sl_stun_query_packet(&q, &servers[0], packet, len - 4, w.now, send, &w));
	SL_EXPECT_EQ(q.state, SL_STUN_ASKING);
	SL_EXPECT(sl_stun_query_packet(&q, &servers[0], packet, len, w.now, send, &w));
	SL_EXPECT_EQ(q.state, SL_STUN_DONE);
	sl_addr_format(text, &q.mapped);
	SL_EXPECT_STR(text, "198.51.100.7:4711");
	/* A second time it is nobody's. */
	SL_EXPECT(!sl_stun_query_packet(&q, &servers[0], packet, len, w.now, send, &w));
}

SL_TEST(stun, query_error_moves_on)
{
	struct sl_addr servers[2] = {server(0), server(1)};
	struct wire w = {.now = 0};
	struct sl_stun_query q;
	uint8_t packet[28];

	sl_stun_query_begin(&q, servers, 2, 0, 0, send, &w);
	memcpy(packet, w.packet, 20);
	sl_test_unhex(packet, 4, "01110008");
	sl_test_unhex(packet + 20, 8, "00090004 00000500");
	SL_EXPECT(sl_stun_query_packet(&q, &servers[0], packet, 28, 1, send, &w));
	SL_EXPECT_EQ(q.state, SL_STUN_ASKING);
	SL_EXPECT(sl_addr_equal(&w.to, &servers[1]));
}

SL_TEST(stun, query_without_servers)
{
	struct sl_addr none[2] = {{0}};
	struct wire w = {.now = 0};
	struct sl_stun_query q;

	sl_stun_query_begin(&q, none, 0, 0, 0, send, &w);
	SL_EXPECT_EQ(q.state, SL_STUN_FAILED);
	SL_EXPECT_STR(q.error, "no servers");
	sl_stun_query_begin(&q, none, 2, 5, 0, send, &w);
	SL_EXPECT_EQ(q.state, SL_STUN_FAILED);
	SL_EXPECT_STR(q.error, "no server has an address");
	SL_EXPECT_EQ(w.sent, 0);
}
