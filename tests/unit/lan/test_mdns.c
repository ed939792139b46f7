/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of multicast DNS: what the reference sends (captured from fips with mdns-sd 0.20.3, peering facts, 15), what we send, and
 * everything that can be wrong with either.
 */
#include "sl_mdns.h"
#include "sl_test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The node of the published vector 01..20 on 192.0.2.1, UDP port 2121: asks, tells, asks and shows what it knows, goes. */
#define ASKS "000000000001000000000000055f66697073045f756470056c6f63616c00000c0001"
#define TELLS                                                                                                                        \
	"000084000000000400000000055f66697073045f756470056c6f63616c00000c000100001194001815666970732d6e70756231736a6c6832633378397737"      \
	"c00cc0280021800100000078001e00000000084915666970732d6e70756231736a6c6832633378397737c017c0280010800100001194005f446e7075623d6e" \
	"70756231736a6c68326333783977376b6a7371673261793038306e326c6666327576743332357670616e33336b653334726e386c356a637161776835376d15" \
	"73636f70653d666970732d6f7665726c61792d763103763d31c05200018001000000780004c0000201"
#define KNOWS                                                                                                                        \
	"000000000001000100000000055f66697073045f756470056c6f63616c00000c0001c00c000c000100001194001815666970732d6e70756231736a6c68326333" \
	"78397737c00c"
#define GOES                                                                                                                         \
	"000084000000000400000000055f66697073045f756470056c6f63616c00000c000100000000001815666970732d6e70756231736a6c6832633378397737"      \
	"c00cc0280021800100000000001e00000000084915666970732d6e70756231736a6c6832633378397737c017c0280010800100000000005f446e7075623d6e" \
	"70756231736a6c68326333783977376b6a7371673261793038306e326c6666327576743332357670616e33336b653334726e386c356a637161776835376d15" \
	"73636f70653d666970732d6f7665726c61792d763103763d31c05200018001000000000004c0000201"
#define NPUB "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m"

static struct sl_mdns_message m;

static struct sl_mdns_self
self_of(const char *npub, const char *scope)
{
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_mdns_self self;

	if (sl_npub_parse(xonly, npub) || sl_mdns_self_init(&self, "_fips._udp.local.", xonly, scope, 2121))
		memset(&self, 0, sizeof(self));
	return self;
}

static struct sl_mdns_self
other(void)
{
	return self_of("npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le", "fips-overlay-v1");
}

/* On a copy of exactly its size: what is read beyond it the sanitizer sees. */
static enum sl_mdns_error
parse(const uint8_t *bytes, size_t len, const struct sl_mdns_self *self)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum sl_mdns_error e;

	memcpy(copy, bytes, len);
	e = sl_mdns_parse(&m, copy, len, self);
	free(copy);
	return e;
}

static size_t
hex(uint8_t *out, const char *text)
{
	sl_test_unhex(out, strlen(text) / 2, text);
	return strlen(text) / 2;
}

static enum sl_mdns_error
parse_hex(const char *text, const struct sl_mdns_self *self)
{
	uint8_t bytes[1500];

	return parse(bytes, hex(bytes, text), self);
}

SL_TEST(mdns, the_reference_tells)
{
	const struct sl_mdns_self self = other();
	uint8_t xonly[SL_XONLY_BYTES];

	SL_ASSERT(sl_npub_parse(xonly, NPUB) == 0);
	SL_EXPECT_EQ(parse_hex(TELLS, &self), SL_MDNS_OK);
	SL_EXPECT(!m.query);
	SL_ASSERT(m.peer_count == 1);
	SL_EXPECT_STR(m.peers[0].instance, "fips-npub1sjlh2c3x9w7._fips._udp.local");
	SL_EXPECT_STR(m.peers[0].target, "fips-npub1sjlh2c3x9w7.local");
	SL_EXPECT(m.peers[0].has_srv && m.peers[0].has_txt && m.peers[0].has_npub && m.peers[0].has_scope && !m.peers[0].gone);
	SL_EXPECT_MEM(m.peers[0].xonly, xonly, sizeof(xonly));
	SL_EXPECT_STR(m.peers[0].scope, "fips-overlay-v1");
	SL_EXPECT_EQ(m.peers[0].port, 2121);
	SL_EXPECT_EQ(m.peers[0].ttl_s, 4500);
	SL_ASSERT(m.peers[0].addr_count == 1);
	SL_EXPECT_EQ(m.peers[0].addrs[0].family, 4);
	SL_EXPECT_MEM(m.peers[0].addrs[0].ip, "\xc0\x00\x02\x01", 4);
	SL_EXPECT_EQ(parse_hex(GOES, &self), SL_MDNS_OK);
	SL_EXPECT(m.peer_count == 1 && m.peers[0].gone && m.peers[0].has_npub);
}

SL_TEST(mdns, the_reference_asks)
{
	const struct sl_mdns_self us = other(), it = self_of(NPUB, "");
	uint8_t bytes[64];
	size_t len = hex(bytes, ASKS);

	SL_EXPECT_EQ(parse_hex(ASKS, &us), SL_MDNS_OK);
	SL_EXPECT(m.query && m.asked);
	SL_EXPECT_EQ(parse_hex(KNOWS, &us), SL_MDNS_OK);
	SL_EXPECT(m.query && m.asked); /* it knows itself, not us */
	SL_EXPECT_EQ(parse_hex(KNOWS, &it), SL_MDNS_OK);
	SL_EXPECT(m.query && !m.asked);
	bytes[len - 3] = 1; /* A instead of PTR: of the service there is none */
	SL_EXPECT_EQ(parse(bytes, len, &us), SL_MDNS_OK);
	SL_EXPECT(m.query && !m.asked);
	bytes[len - 3] = 255; /* anything */
	bytes[len - 2] = 0x80; /* by unicast: answered to all */
	SL_EXPECT_EQ(parse(bytes, len, &us), SL_MDNS_OK);
	SL_EXPECT(m.asked);
}

/* What we ask is what the reference asks; what we tell reads as we mean it, whatever there is to tell. */
SL_TEST(mdns, what_we_send)
{
	struct sl_mdns_self self = other();
	struct sl_mdns_ip ips[3] = {{4, {192, 0, 2, 2}}, {6, {0xfe, 0x80, [15] = 1}}, {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 2}}};
	uint8_t out[SL_MDNS_MESSAGE_MAX], want[64];
	int len = sl_mdns_build_browse(out, sizeof(out), &self);

	SL_EXPECT_EQ(len, (int)hex(want, ASKS));
	SL_EXPECT_MEM(out, want, strlen(ASKS) / 2);
	len = sl_mdns_build_answer(out, sizeof(out), &self, ips, 3, false);
	SL_ASSERT(len > 0);
	SL_EXPECT_EQ(parse(out, (size_t)len, &self), SL_MDNS_OK);
	SL_ASSERT(m.peer_count == 1);
	SL_EXPECT_STR(m.peers[0].instance, self.instance);
	SL_EXPECT_STR(m.peers[0].target, self.host);
	SL_EXPECT_STR(m.peers[0].scope, "fips-overlay-v1");
	SL_EXPECT_EQ(m.peers[0].port, 2121);
	SL_EXPECT_EQ(m.peers[0].addr_count, 3);
	SL_EXPECT_MEM(m.peers[0].addrs, ips, sizeof(ips));
	len = sl_mdns_build_answer(out, sizeof(out), &self, ips, 1, true);
	SL_EXPECT_EQ(parse(out, (size_t)len, &self), SL_MDNS_OK);
	SL_EXPECT(m.peer_count == 1 && m.peers[0].gone && m.peers[0].addr_count == 0);
	/* Without a scope there is none in it; too little room is said, at every length. */
	self.scope[0] = '\0';
	len = sl_mdns_build_answer(out, sizeof(out), &self, ips, 3, false);
	SL_EXPECT_EQ(parse(out, (size_t)len, &self), SL_MDNS_OK);
	SL_EXPECT(!m.peers[0].has_scope);
	for (int room = 0; room < len; room++) {
		uint8_t *exact = malloc(room ? (size_t)room : 1);

		SL_EXPECT_EQ(sl_mdns_build_answer(exact, (size_t)room, &self, ips, 3, false), -EMSGSIZE);
		free(exact);
	}
	SL_EXPECT_GT(sl_mdns_build_ask(out, sizeof(out), self.instance), 0);
	len = sl_mdns_build_ask(out, sizeof(out), self.instance);
	SL_EXPECT_EQ(parse(out, (size_t)len, &self), SL_MDNS_OK);
	SL_EXPECT(m.query && m.asked);
}

SL_TEST(mdns, services)
{
	static const char *const good[] = {"_fips._udp.local.", "_fips._udp.local", "_a-b9._tcp.local."};
	static const char *const bad[] = {"", "_", "fips._udp.local.", "_fips.local.", "_fips._sctp.local.", "_fips._udp.example.", "_._udp.local.",
		"_-a._udp.local.", "_a-._udp.local.", "_abcdefghijklmnop._udp.local.", "_fips._udp.local.x", "_f ps._udp.local."};
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_mdns_self self;

	SL_ASSERT(sl_npub_parse(xonly, NPUB) == 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		SL_EXPECT_EQ(sl_mdns_self_init(&self, good[i], xonly, "", 1), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SL_EXPECT_EQ(sl_mdns_self_init(&self, bad[i], xonly, "", 1), -EINVAL);
}

/* Cut anywhere, every byte changed: named, never more than there is. */
SL_TEST(mdns, damaged)
{
	const struct sl_mdns_self self = other();
	uint8_t bytes[1500];
	size_t len = hex(bytes, TELLS);

	for (size_t n = 0; n < len; n++)
		SL_EXPECT_EQ(parse(bytes, n, &self), SL_MDNS_MALFORMED);
	for (size_t i = 0; i < len; i++)
		for (unsigned v = 0; v < 256; v++) {
			const uint8_t was = bytes[i];

			bytes[i] = (uint8_t)v;
			(void)!parse(bytes, len, &self);
			SL_ASSERT(m.peer_count <= SL_MDNS_PEERS_MAX);
			bytes[i] = was;
		}
}

SL_TEST(mdns, every_fault_by_name)
{
	const struct sl_mdns_self self = other();
	uint8_t bytes[4000] = {0, 0, 0x84, 0};
	size_t len;

	SL_EXPECT_EQ(parse(bytes, 12, &self), SL_MDNS_OK); /* nothing at all is sound */
	bytes[2] = 0x8c;
	SL_EXPECT_EQ(parse(bytes, 12, &self), SL_MDNS_OPCODE);
	bytes[2] = 0x84;
	bytes[3] = 3;
	SL_EXPECT_EQ(parse(bytes, 12, &self), SL_MDNS_OPCODE);
	bytes[3] = 0;
	bytes[7] = 1;
	SL_EXPECT_EQ(parse(bytes, 12, &self), SL_MDNS_MALFORMED); /* one record, and no byte of it */
	bytes[6] = 1;
	bytes[7] = 1;
	SL_EXPECT_EQ(parse(bytes, 12, &self), SL_MDNS_TOO_MANY);
	/* A PTR record of the service whose name leads to itself. */
	len = hex(bytes, "000084000000000100000000055f66697073045f756470056c6f63616c00000c0001000011940002c028");
	SL_EXPECT_EQ(parse(bytes, len, &self), SL_MDNS_MALFORMED);
	/* The same to the end of the message, and beyond. */
	len = hex(bytes, "000084000000000100000000055f66697073045f756470056c6f63616c00000c0001000011940002c0ff");
	SL_EXPECT_EQ(parse(bytes, len, &self), SL_MDNS_MALFORMED);
	/* A SRV record too short for its fields. */
	len = hex(bytes, "0000840000000001000000000161055f66697073045f756470056c6f63616c00002180010000007800040000" "0000");
	SL_EXPECT_EQ(parse(bytes, len, &self), SL_MDNS_MALFORMED);
}

static size_t
put_srv(uint8_t *at, unsigned number)
{
	static const uint8_t tail[] = {5, '_', 'f', 'i', 'p', 's', 4, '_', 'u', 'd', 'p', 5, 'l', 'o', 'c', 'a', 'l', 0, 0, 33, 0, 1, 0, 0, 0, 120, 0,
		9, 0, 0, 0, 0, 8, 73, 1, 'h', 0};
	int n = snprintf((char *)at, 16, "%ci%u", number < 10 ? 2 : number < 100 ? 3 : 4, number);

	memcpy(at + n, tail, sizeof(tail));
	return (size_t)n + sizeof(tail);
}

/* More instances, and more addresses, than we look at. */
SL_TEST(mdns, bounds)
{
	const struct sl_mdns_self self = other();
	uint8_t bytes[8000] = {0, 0, 0x84, 0};
	size_t len = 12;

	for (unsigned i = 0; i < 100; i++)
		len += put_srv(bytes + len, i);
	bytes[7] = 100;
	SL_EXPECT_EQ(parse(bytes, len, &self), SL_MDNS_OK);
	SL_EXPECT_EQ(m.peer_count, SL_MDNS_PEERS_MAX);
	SL_EXPECT_EQ(m.left_out, 100 - SL_MDNS_PEERS_MAX);
	len = 12 + put_srv(bytes + 12, 0);
	for (unsigned i = 0; i < 50; i++) {
		static const uint8_t a[] = {1, 'h', 0, 0, 1, 0, 1, 0, 0, 0, 120, 0, 4, 192, 0, 2, 0};

		memcpy(bytes + len, a, sizeof(a));
		bytes[len + sizeof(a) - 1] = (uint8_t)i;
		len += sizeof(a);
	}
	bytes[7] = 51;
	SL_EXPECT_EQ(parse(bytes, len, &self), SL_MDNS_OK);
	SL_EXPECT(m.peer_count == 1 && m.peers[0].addr_count == SL_MDNS_ADDRS_MAX);
}
