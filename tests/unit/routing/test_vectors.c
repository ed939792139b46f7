/* SPDX-License-Identifier: BSD-3-Clause */
/* Golden vectors of routing facts, section 14, and the rejected announces of 2.3 and 2.4. */
#include "fake.h"
#include "../../../lib/crypto/sl_hash.h"

#include <stdlib.h>

#define S 1000000ull
#define SECRET_A "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
#define SECRET_B "b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0"
#define ADDR_A "69e08d65cc3a6b9c2c2ac4bd405e4b0e"
#define ADDR_B "8e302c287eb48d6268122fda760b7727"
#define ANNOUNCE_A                                                                                 \
	"1001 0100000000000000 00f1536500000000" ADDR_A "0100" ADDR_A                              \
	"0100000000000000 00f1536500000000"                                                        \
	"e0ac969b203919767d18bb03d99c0533c7bcc2ca8e57a0fb184cc4859edbfd52"                         \
	"b1702f19e4ad6999462275abf74751f09af7516f18b5c4ec9e721360a680ba05"
#define ANNOUNCE_B                                                                                 \
	"1001 0200000000000000 05f1536500000000" ADDR_A "0200" ADDR_B                              \
	"0200000000000000 05f1536500000000" ADDR_A "0100000000000000 00f1536500000000"             \
	"caed9e4e3f88b96479fe3c539bcae4664fd25954839501b2f11ff173984b3225"                         \
	"554bf40287fcffc7d7fba6940ddcb59d9b1c7b7b47e5669ad847318a9b13641e"
#define REQUEST "30 0807060504030201" ADDR_B ADDR_A "40 0000 0100" ADDR_A

static struct sl_identity *identity(const char *secret)
{
	if (sl_crypto_init() != 0)
		abort();
	return sl_identity_from_text(secret);
}

static struct fake *golden(const char *secret)
{
	struct sl_router_config c;

	sl_router_config_default(&c);
	c.coord_size = 64;
	c.publish_interval_us = 0;
	c.first_sequence = 1;
	return fake_create(-1, &c, identity(secret));
}

static void up(struct fake *f, uint32_t id, const char *secret)
{
	struct sl_identity *peer = identity(secret);

	SL_EXPECT_EQ(sl_router_peer_up(f->r, id, sl_identity_xonly(peer), 1280, f->now_us), 0);
	sl_identity_destroy(peer);
}

/* Equal but for the last 64 bytes, which must be a signature of the declaration by the sender. */
static void expect_announce(
	const struct fake_sent *s, const char *hex, size_t len, const struct sl_identity *id)
{
	uint8_t want[256], preimage[48], digest[32];
	struct sl_tree_announce a;

	SL_ASSERT(s && s->len == len);
	sl_test_unhex(want, len, hex);
	SL_EXPECT_MEM(s->msg, want, len - 64);
	SL_ASSERT(sl_tree_announce_parse(&a, s->msg, s->len) == 0);
	sl_tree_preimage(preimage, sl_identity_addr(id), &a.parent, a.sequence, a.timestamp_s);
	sl_sha256(digest, preimage, sizeof(preimage));
	SL_EXPECT(sl_verify(a.signature, digest, sl_identity_xonly(id)));
}

SL_TEST(vectors, our_announces)
{
	struct fake *a = golden(SECRET_A), *b = golden(SECRET_B);
	uint8_t msg[132];

	up(a, 0, SECRET_B);
	expect_announce(fake_last(a, SL_MSG_TREE_ANNOUNCE), ANNOUNCE_A, 132, a->id);
	up(b, 0, SECRET_A);
	b->now_us += 5 * S;
	sl_test_unhex(msg, sizeof(msg), ANNOUNCE_A);
	sl_router_message(b->r, 0, msg, sizeof(msg), b->now_us);
	expect_announce(fake_last(b, SL_MSG_TREE_ANNOUNCE), ANNOUNCE_B, 164, b->id);
	fake_destroy(a);
	fake_destroy(b);
}

SL_TEST(vectors, their_announces)
{
	struct fake *a = golden(SECRET_A), *b = golden(SECRET_B);
	uint8_t msg[164];
	struct sl_tree_info info;

	up(a, 3, SECRET_B);
	sl_test_unhex(msg, 164, ANNOUNCE_B);
	sl_router_message(a->r, 3, msg, 164, a->now_us);
	SL_EXPECT(a->r->peers[3]->has_tree && a->r->peers[3]->tree_sequence == 2);
	sl_router_tree(a->r, &info);
	SL_EXPECT_EQ(info.children, 1);
	SL_EXPECT_EQ(info.depth, 0);
	/* The same once more is stale. */
	sl_router_message(a->r, 3, msg, 164, a->now_us);
	SL_EXPECT_EQ(a->r->counters[SL_ROUTE_TREE_STALE], 1);
	up(b, 3, SECRET_A);
	sl_test_unhex(msg, 132, ANNOUNCE_A);
	sl_router_message(b->r, 3, msg, 132, b->now_us);
	sl_router_tree(b->r, &info);
	SL_EXPECT_EQ(info.parent_peer, 3);
	SL_EXPECT_EQ(info.depth, 1);
	SL_EXPECT(sl_node_addr_equal(&info.root, sl_identity_addr(a->id)));
	fake_destroy(a);
	fake_destroy(b);
}

SL_TEST(vectors, filter)
{
	struct fake *a = golden(SECRET_A);
	uint8_t digest[32], want[32];
	struct fake_sent *s;

	up(a, 0, SECRET_B);
	a->now_us += S;
	(void)sl_router_tick(a->r, a->now_us);
	s = fake_last(a, SL_MSG_FILTER_ANNOUNCE);
	SL_ASSERT(s && s->len == SL_FILTER_MSG_BYTES);
	sl_sha256(digest, s->msg, s->len);
	sl_test_unhex(want, 32, "a50d022c4bc41c5007f701e0c15de74e202f4b56db971cf7760eac6892acc5a0");
	SL_EXPECT_MEM(digest, want, 32);
	fake_destroy(a);
}

SL_TEST(vectors, lookup_answered)
{
	struct fake *b = golden(SECRET_B);
	uint8_t msg[132], request[62], want[125], digest[32], sig[64];
	struct sl_lookup_response r;
	struct fake_sent *s;

	up(b, 0, SECRET_A);
	sl_test_unhex(msg, sizeof(msg), ANNOUNCE_A);
	sl_router_message(b->r, 0, msg, sizeof(msg), b->now_us);
	sl_test_unhex(request, sizeof(request), REQUEST);
	sl_router_message(b->r, 0, request, sizeof(request), b->now_us);
	s = fake_last(b, SL_MSG_LOOKUP_RESPONSE);
	sl_test_unhex(want, sizeof(want),
		"31 0807060504030201" ADDR_B "0005 0200" ADDR_B ADDR_A
		"d5fc27d3667d9720cf41bb93daf151c1ed9820841a88e0b815a77612c429bcdd"
		"5619ee8f0a0b1defadf538cd1fd3cd3796429c82dee996f776dc2d11b11917dc");
	SL_ASSERT(s && s->len == 125);
	SL_EXPECT_MEM(s->msg, want, 125 - 64);
	SL_ASSERT(sl_lookup_response_parse(&r, s->msg, s->len) == 0);
	sl_lookup_proof_digest(digest, &r);
	sl_test_unhex(sig, 32, "29fdc312fdbd9c2f7b7555355c1f74429ec4460f7fa763611239170ccef152d8");
	SL_EXPECT_MEM(digest, sig, 32);
	SL_EXPECT(sl_verify(r.proof, digest, sl_identity_xonly(b->id)));
	SL_EXPECT(sl_verify(want + 61, digest, sl_identity_xonly(b->id)));
	fake_destroy(b);
}

SL_TEST(vectors, signals)
{
	struct fake *f = fake_create(0x10, NULL, NULL);
	uint8_t want[108], msg[SL_DATAGRAM_HEADER_BYTES];
	struct sl_node_addr src = fake_addr(0x21), dest = fake_addr(0x20);
	struct fake_sent *s;

	fake_peer(f, 1, 0x21);
	sl_datagram_build(msg, 64, 65535, &src, &dest);
	sl_router_datagram(f->r, 1, msg, sizeof(msg), 0, f->now_us);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_ASSERT(s && s->len == 74);
	sl_test_unhex(want, 74,
		"00 40 ffff 10000000000000000000000000000000 21000000000000000000000000000000"
		"00 04 2200 20 00 20000000000000000000000000000000 "
		"10000000000000000000000000000000");
	SL_EXPECT_MEM(s->msg, want, 74);
	/* The same destination within 100 ms: one signal only, whatever the kind. */
	fake_coords(f, 2, 0x20, 0);
	sl_datagram_build(msg, 64, 65535, &src, &dest);
	sl_router_datagram(f->r, 1, msg, sizeof(msg), 0, f->now_us + 99999);
	SL_EXPECT_EQ(f->by_type[SL_MSG_DATAGRAM], 1);
	SL_EXPECT_EQ(f->r->counters[SL_ROUTE_SIGNAL_LIMITED], 1);
	sl_datagram_build(msg, 64, 65535, &src, &dest);
	sl_router_datagram(f->r, 1, msg, sizeof(msg), 0, f->now_us + 100000);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_ASSERT(s && s->len == 36 + 72);
	sl_test_unhex(want, 72,
		"00 04 4400 21 00 20000000000000000000000000000000 10000000000000000000000000000000"
		"0200 20000000000000000000000000000000 00000000000000000000000000000000");
	SL_EXPECT_MEM(s->msg + 36, want, 72);
	sl_router_too_big(f->r, msg, sizeof(msg), 1280, f->now_us + 200000);
	s = fake_last(f, SL_MSG_DATAGRAM);
	SL_ASSERT(s && s->len == 36 + 40);
	sl_test_unhex(want, 40,
		"00 04 2400 22 00 20000000000000000000000000000000 "
		"10000000000000000000000000000000 0005");
	SL_EXPECT_MEM(s->msg + 36, want, 40);
	fake_destroy(f);
}

/* --- announces that are refused
 * ------------------------------------------------------------------------------- */

/* An announce by A, truly signed: parent and path as given; fixed up by the caller afterwards. */
static size_t build(uint8_t *msg, const struct sl_identity *id, uint64_t sequence,
	const struct sl_node_addr *parent, const struct sl_node_addr *path, unsigned n)
{
	uint8_t entries[32 * 40] = {0}, preimage[48], digest[32], sig[64];
	struct sl_tree_announce a = {.sequence = sequence,
		.timestamp_s = 1700000000,
		.parent = *parent,
		.entries = (uint16_t)n,
		.entry = entries,
		.signature = sig};

	for (unsigned i = 0; i < n; i++)
		memcpy(entries + 32 * i, &path[i], 16);
	sl_tree_preimage(preimage, sl_identity_addr(id), parent, sequence, 1700000000);
	sl_sha256(digest, preimage, sizeof(preimage));
	sl_sign(sig, digest, id);
	return sl_tree_announce_build(msg, 2048, &a);
}

static void expect_refused(struct fake *b, const uint8_t *msg, size_t len, enum sl_route_counter c)
{
	uint64_t before = b->r->counters[c], sequence = b->r->peers[0]->tree_sequence;

	sl_router_message(b->r, 0, msg, len, b->now_us);
	SL_EXPECT_MSG(b->r->counters[c] == before + 1, "%s", sl_route_counter_name(c));
	SL_EXPECT_EQ(b->r->peers[0]->tree_sequence, sequence);
	b->now_us += S;
}

SL_TEST(vectors, refused)
{
	struct fake *b = golden(SECRET_B);
	struct sl_identity *ida = identity(SECRET_A);
	struct sl_node_addr a = *sl_identity_addr(ida), zero = fake_addr(0), one = {{0}}, path[40];
	uint8_t msg[2048];
	size_t len;

	one.bytes[15] = 1;
	up(b, 0, SECRET_A);
	/* Last entry not the minimum. */
	path[0] = a;
	path[1] = zero;
	path[2] = one;
	len = build(msg, ida, 1, &zero, path, 3);
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SEMANTICS);
	/* Entry 1 is not the signed parent. */
	path[1] = one;
	path[2] = zero;
	len = build(msg, ida, 1, &zero, path, 3);
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SEMANTICS);
	/* Self-root with two entries; parent with one. */
	path[1] = zero;
	len = build(msg, ida, 1, &a, path, 2);
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SEMANTICS);
	len = build(msg, ida, 1, &zero, path, 1);
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SEMANTICS);
	/* An address twice. */
	path[1] = fake_addr(0x44);
	path[2] = path[1];
	path[3] = zero;
	len = build(msg, ida, 1, &path[1], path, 4);
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SEMANTICS);
	/* Valid signature over other values. */
	path[1] = zero;
	len = build(msg, ida, 1, &zero, path, 2);
	msg[2] = 2;
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SIGNATURE);
	msg[2] = 1;
	msg[10] ^= 1; /* timestamp */
	expect_refused(b, msg, len, SL_ROUTE_TREE_BAD_SIGNATURE);
	/* Another node's address on A's link. */
	path[0] = *sl_identity_addr(b->id);
	len = build(msg, ida, 1, &zero, path, 2);
	expect_refused(b, msg, len, SL_ROUTE_TREE_WRONG_SENDER);
	/* Lengths: exact copies, so that a byte too far is seen. */
	path[0] = a;
	len = build(msg, ida, 1, &zero, path, 2);
	for (size_t n = 1; n < len; n++) {
		uint8_t *copy = malloc(n);

		memcpy(copy, msg, n);
		expect_refused(b, copy, n, SL_ROUTE_TREE_MALFORMED);
		free(copy);
	}
	msg[34] = 5; /* count beyond the message */
	expect_refused(b, msg, len, SL_ROUTE_TREE_MALFORMED);
	msg[34] = 2;
	msg[1] = 0xff;
	expect_refused(b, msg, len, SL_ROUTE_TREE_MALFORMED);
	/* Unsigned parts may differ: still accepted, extra bytes too. */
	msg[1] = 1;
	msg[36 + 32 + 20] ^= 1;
	sl_router_message(b->r, 0, msg, len + 3, b->now_us);
	SL_EXPECT_EQ(b->r->peers[0]->tree_sequence, 1);
	sl_identity_destroy(ida);
	fake_destroy(b);
}

SL_TEST(vectors, long_paths)
{
	struct fake *b = golden(SECRET_B);
	struct sl_identity *ida = identity(SECRET_A);
	struct sl_node_addr path[40];
	uint8_t msg[2048], *huge;
	size_t len;

	up(b, 0, SECRET_A);
	path[0] = *sl_identity_addr(ida);
	for (unsigned i = 1; i < 35; i++)
		path[i] = fake_addr(40 - i); /* ends in the smallest */
	len = build(msg, ida, 1, &path[1], path, 34);
	sl_router_message(b->r, 0, msg, len, b->now_us);
	SL_EXPECT_EQ(b->r->peers[0]->path_len, 34);
	SL_EXPECT_EQ(b->r->tree.len, 35);
	/* The longest a 1280-byte link carries; what we would have to say below it fits none: root.
	 */
	len = build(msg, ida, 2, &path[1], path, 35);
	sl_router_message(b->r, 0, msg, len, b->now_us);
	SL_EXPECT_EQ(b->r->peers[0]->path_len, 35);
	SL_EXPECT_EQ(b->r->tree.len, 1);
	/* 65,535 entries that are really there: refused by length, before any work on them. */
	huge = calloc(1, 100 + 32 * 65535ull);
	memcpy(huge, msg, 68);
	huge[34] = huge[35] = 0xff;
	expect_refused(b, huge, 100 + 32 * 65535ull, SL_ROUTE_TREE_TOO_LONG);
	free(huge);
	sl_identity_destroy(ida);
	fake_destroy(b);
}

SL_TEST(vectors, forged_storm_is_limited)
{
	struct fake *b = golden(SECRET_B);
	uint8_t msg[132];

	up(b, 0, SECRET_A);
	sl_test_unhex(msg, sizeof(msg), ANNOUNCE_A);
	msg[100] ^= 1;
	for (unsigned i = 0; i < 1000; i++)
		sl_router_message(b->r, 0, msg, sizeof(msg), b->now_us);
	/* Signature checks cost: a burst of them, then none. */
	SL_EXPECT_EQ(b->r->counters[SL_ROUTE_TREE_BAD_SIGNATURE], 20);
	SL_EXPECT_EQ(b->r->counters[SL_ROUTE_TREE_LIMITED], 980);
	fake_destroy(b);
}
