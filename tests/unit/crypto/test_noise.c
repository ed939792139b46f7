/* SPDX-License-Identifier: BSD-3-Clause */
#include "csv.h"
#include "curve.h"
#include "keys.h"
#include "sl_aead.h"
#include "sl_hash.h"
#include "sl_noise.h"

#include <errno.h>

struct vector {
	const char *name;
	const char *init_secret, *resp_secret, *eph_i, *eph_r, *epoch_i, *epoch_r; /* in */
	const char *msg1, *msg2, *h, *k1, *k2;					   /* out */
};

#define X8(s) s s s s s s s s
#define EPH_I X8("11111111")
#define EPH_R X8("22222222")

static const struct vector vectors[] = {
	{
		"facts 3.8: A to B (odd parity)",
		KEY_A_SECRET,
		KEY_B_SECRET,
		EPH_I,
		EPH_R,
		"1122334455667788",
		"a1a2a3a4a5a6a7a8",
		"034f355bdcb7cc0af728ef3cceb9615d90684bb5b2ca5f859ab0f0b704075871aa8dd0350b5f73a2fc"
		"3d8d2cd508"
		"aa623fea35968f6099e85500b8226bf5b9611bdb08fa831d7baa7b24283749f1873c5aa85f5312cce5"
		"10dc15e12b"
		"bf9876c1e093308682bb5b0e4987",
		"02466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27a103ae311f212743"
		"086b7228bf"
		"a306b54a627fa4d4199a50",
		"524f81a0ba74699c4e8c6e38edc6242d4b48e4560acdaf840a333092a581057c",
		"55c57f1a4f5d654e244d8f6b1299ea516737540dda4bdf9d08ced7c04c308894",
		"7c28d6047a4a009f2dc794ff59f32cf552646fb997b331f7ba91d24b617ccf77",
	},
	{
		"facts 3.9: B (odd parity) to A",
		KEY_B_SECRET,
		KEY_A_SECRET,
		EPH_I,
		EPH_R,
		"1122334455667788",
		"a1a2a3a4a5a6a7a8",
		"034f355bdcb7cc0af728ef3cceb9615d90684bb5b2ca5f859ab0f0b704075871aa8e6b5a16695fb2f2"
		"e28448a089"
		"10eacd809fd1c53aa1b1cb24cfae6e7b18241bffd97b00d0976e3021af37832b198747f232e39839db"
		"eac5c99b75"
		"e7f3abbda7ecd83cc937a4a4bf4e",
		"02466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27943611f401c210cb"
		"595eaf5e2d"
		"35252be400a551917ab01e",
		"1593e60c0c4030bd606385d8d4685360715a7a225e53630f10de4cda20a847c6",
		"10e51711a3c44b471f3423b52023eee97f1d8eefe405fcfd1629ca711f705dbf",
		"4719518bbdc49b31b66885fbb88739a02861c8a9747fe86542bf16bb648d2125",
	},
};

#define EXPECT_HEX(got, hex, len)                                                                  \
	do {                                                                                       \
		uint8_t want_[len];                                                                \
		sl_test_unhex(want_, len, hex);                                                    \
		SL_EXPECT_MEM(got, want_, len);                                                    \
	} while (0)

static void run_vector(const struct vector *v)
{
	struct sl_identity *init = identity_from_hex(v->init_secret),
			   *resp = identity_from_hex(v->resp_secret);
	uint8_t eph_i[32], eph_r[32], epoch_i[8], epoch_r[8], got_epoch[8];
	uint8_t msg1[SL_NOISE_MSG1_BYTES], msg2[SL_NOISE_MSG2_BYTES];
	struct sl_noise_initiator i;
	struct sl_noise_responder r;
	struct sl_noise_keys keys_i, keys_r;
	struct sl_remote_key remote;

	sl_test_unhex(eph_i, 32, v->eph_i);
	sl_test_unhex(eph_r, 32, v->eph_r);
	sl_test_unhex(epoch_i, 8, v->epoch_i);
	sl_test_unhex(epoch_r, 8, v->epoch_r);
	SL_ASSERT(sl_remote_key_init(&remote, sl_identity_xonly(resp), init) == 0);

	sl_noise_initiate(&i, msg1, init, &remote, epoch_i, eph_i);
	EXPECT_HEX(msg1, v->msg1, SL_NOISE_MSG1_BYTES);
	SL_ASSERT(sl_noise_respond_read(&r, msg1, resp, NULL, NULL) == 0);
	SL_EXPECT_MEM(r.remote_compressed, sl_identity_compressed(init), SL_COMPRESSED_BYTES);
	SL_EXPECT_MEM(r.remote_epoch, epoch_i, 8);
	sl_noise_respond_write(&r, msg2, resp, epoch_r, eph_r, &keys_r);
	EXPECT_HEX(msg2, v->msg2, SL_NOISE_MSG2_BYTES);
	SL_ASSERT(sl_noise_initiator_read(&i, msg2, &keys_i, got_epoch) == 0);
	SL_EXPECT_MEM(got_epoch, epoch_r, 8);
	EXPECT_HEX(keys_i.h, v->h, 32);
	EXPECT_HEX(keys_r.h, v->h, 32);
	EXPECT_HEX(keys_i.send, v->k1, 32);
	EXPECT_HEX(keys_r.recv, v->k1, 32);
	EXPECT_HEX(keys_i.recv, v->k2, 32);
	EXPECT_HEX(keys_r.send, v->k2, 32);

	sl_noise_initiator_fini(&i);
	sl_noise_responder_fini(&r);
	sl_remote_key_fini(&remote);
	sl_identity_destroy(init);
	sl_identity_destroy(resp);
}

SL_TEST(noise, published_vectors)
{
	for (unsigned n = 0; n < sizeof(vectors) / sizeof(vectors[0]); n++) {
		run_vector(&vectors[n]);
		SL_EXPECT_MSG(!sl_test_failed(), "vector: %s", vectors[n].name);
	}
}

static void row_as_vector(char **f)
{
	struct vector v = {
		f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[11]};
	struct sl_identity *i = identity_from_hex(f[1]), *r = identity_from_hex(f[2]);

	EXPECT_HEX(sl_identity_compressed(i), f[12], 33);
	EXPECT_HEX(sl_identity_compressed(r), f[13], 33);
	sl_identity_destroy(i);
	sl_identity_destroy(r);
	run_vector(&v);
	SL_EXPECT_MSG(!sl_test_failed(), "vector: %s", f[0]);
}

/* Every combination of parities, edge epochs, equal static keys. */
SL_TEST(noise, vectors_of_another_implementation)
{
	SL_EXPECT_EQ(csv_each("noise-ik.csv", row_as_vector), 11);
}

/* Facts 3.8, each intermediate value: those that a state shows are read from it, the others made by
 * its primitives. */
SL_TEST(noise, intermediate_values)
{
	static const char name[] = "Noise_IK_secp256k1_ChaChaPoly_SHA256";
	const struct vector *v = &vectors[0];
	struct sl_identity *a = identity_from_hex(v->init_secret),
			   *b = identity_from_hex(v->resp_secret);
	uint8_t eph_i[32], eph_r[32], epoch[8], h[32], ck[32], key[32], ee[32], even[33];
	uint8_t msg1[SL_NOISE_MSG1_BYTES], msg2[SL_NOISE_MSG2_BYTES];
	struct sl_noise_initiator i;
	struct sl_noise_responder r;
	struct sl_noise_keys keys;
	struct sl_remote_key of_b;
	secp256k1_pubkey point;

	sl_test_unhex(eph_i, 32, v->eph_i);
	sl_test_unhex(eph_r, 32, v->eph_r);
	sl_test_unhex(epoch, 8, v->epoch_i);
	SL_ASSERT(sl_remote_key_init(&of_b, sl_identity_xonly(b), a) == 0);
	sl_noise_initiate(&i, msg1, a, &of_b, epoch, eph_i);
	SL_ASSERT(sl_noise_respond_read(&r, msg1, b, NULL, NULL) == 0);

	sl_sha256(h, name, strlen(name));
	EXPECT_HEX(h, "15bea16f93969bcae868e128bcbdc110b1d88a5306b367632171a9aaaad3f533", 32);
	memcpy(ck, h, 32);
	even[0] = 2;
	memcpy(even + 1, sl_identity_xonly(b), 32);
	sl_sha256_2(h, h, 32, even, 33);
	EXPECT_HEX(h, "69562963e7fe8799e67eed206dc0da32ccc595fb62c16d0f4d5d574079a5a036", 32);
	EXPECT_HEX(i.es, "e8a457ea74476eb5617754c84a5e58c64b93035ed9aa1663ca7afe52aa967352", 32);
	EXPECT_HEX(r.es, "e8a457ea74476eb5617754c84a5e58c64b93035ed9aa1663ca7afe52aa967352", 32);
	sl_hkdf2(ck, key, ck, i.es, 32);
	EXPECT_HEX(ck, "7c1a6eb5765ba6b5e44f50c6c87a487c239e2333a6b4d224cad29c76cafe0cb8", 32);
	EXPECT_HEX(key, "a51021dc90db5c6761128968cc5562895b7f07c1b0d2f6a66be87a8bcca6e90e", 32);
	EXPECT_HEX(of_b.dh_static,
		"fc772f5af0bd0167c9d973f71406acefcc372ed445debceade69c530a35fcd63", 32);
	EXPECT_HEX(
		i.sym.ck, "ff2cda8db91e90a40ce52a9e272b6ce382fc2aa72a701cb86e6efe81271720cf", 32);
	EXPECT_HEX(
		i.sym.key, "23b81a7a7dce0e7b7f13af5859c2ca80e1a23668670b726cd5447c4c8e72e989", 32);
	SL_EXPECT_MEM(&r.sym, &i.sym, sizeof(r.sym));
	memcpy(ck, i.sym.ck, 32);

	sl_test_unhex(epoch, 8, v->epoch_r);
	sl_noise_respond_write(&r, msg2, b, epoch, eph_r, &keys);
	SL_EXPECT_MEM(r.dh_static, of_b.dh_static, 32); /* kept for the next handshake */
	SL_ASSERT(sl_curve_parse(&point, msg1) == 0);
	SL_EXPECT_MEM(r.eph_parsed, &point, sizeof(point));
	EXPECT_HEX(msg2, "02466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27", 33);
	SL_ASSERT(sl_curve_parse(&point, msg2) == 0);
	sl_curve_dh(ee, &point, eph_i);
	EXPECT_HEX(ee, "fd264454c8f37c9c4b000f0672399b9c76011de71f489fd8a043e25e558226f9", 32);
	sl_hkdf2(ck, key, ck, ee, 32);
	EXPECT_HEX(ck, "e4467b6d691cab3271f04eb071353d077642c47f55cced8805bdb71a36583a83", 32);
	EXPECT_HEX(
		r.sym.ck, "0a2d56877df209375e94edbd697ed0fbf05bfa1bc415a4fdbcc102cdd88730ae", 32);
	EXPECT_HEX(
		r.sym.key, "edbea2fd05e1cafbbbb66c0c1fcec3af7771b9e5fb6df7492bc19a07ffe3954c", 32);
	EXPECT_HEX(r.sym.h, v->h, 32);

	sl_noise_initiator_fini(&i);
	sl_noise_responder_fini(&r);
	sl_remote_key_fini(&of_b);
	sl_identity_destroy(a);
	sl_identity_destroy(b);
}

/* A running handshake between two fresh identities. */
struct setting {
	struct sl_identity *a, *b; /* initiator, responder */
	struct sl_remote_key of_a, of_b;
	uint8_t epoch_a[8], epoch_b[8];
	uint8_t msg1[SL_NOISE_MSG1_BYTES], msg2[SL_NOISE_MSG2_BYTES];
	struct sl_noise_initiator i;
	struct sl_noise_responder r;
	struct sl_noise_keys keys_a, keys_b;
};

static bool set_up(struct setting *s)
{
	s->a = sl_identity_generate();
	s->b = sl_identity_generate();
	sl_test_rand_bytes(s->epoch_a, 8);
	sl_test_rand_bytes(s->epoch_b, 8);
	if (sl_remote_key_init(&s->of_b, sl_identity_xonly(s->b), s->a) != 0 ||
		sl_remote_key_init(&s->of_a, sl_identity_xonly(s->a), s->b) != 0)
		return false;
	sl_noise_initiate(&s->i, s->msg1, s->a, &s->of_b, s->epoch_a, NULL);
	if (sl_noise_respond_read(&s->r, s->msg1, s->b, NULL, NULL) != 0)
		return false;
	sl_noise_respond_write(&s->r, s->msg2, s->b, s->epoch_b, NULL, &s->keys_b);
	return true;
}

static void tear_down(struct setting *s)
{
	sl_noise_initiator_fini(&s->i);
	sl_noise_responder_fini(&s->r);
	sl_remote_key_fini(&s->of_a);
	sl_remote_key_fini(&s->of_b);
	sl_identity_destroy(s->a);
	sl_identity_destroy(s->b);
}

static void expect_agreed(struct setting *s)
{
	uint8_t epoch[8];

	SL_ASSERT(sl_noise_initiator_read(&s->i, s->msg2, &s->keys_a, epoch) == 0);
	SL_EXPECT_MEM(epoch, s->epoch_b, 8);
	SL_EXPECT_MEM(s->keys_a.send, s->keys_b.recv, 32);
	SL_EXPECT_MEM(s->keys_a.recv, s->keys_b.send, 32);
	SL_EXPECT_MEM(s->keys_a.h, s->keys_b.h, 32);
	SL_EXPECT(memcmp(s->keys_a.send, s->keys_a.recv, 32) != 0);
}

SL_TEST(noise, random_handshakes)
{
	uint8_t last[32] = {0};
	struct setting s;

	for (unsigned n = 0; n < 40; n++) {
		SL_ASSERT(set_up(&s));
		SL_EXPECT_MEM(s.r.remote_compressed, sl_identity_compressed(s.a), 33);
		SL_EXPECT_MEM(s.r.remote_epoch, s.epoch_a, 8);
		expect_agreed(&s);
		SL_EXPECT(memcmp(last, s.keys_a.send, 32) != 0);
		memcpy(last, s.keys_a.send, 32);
		tear_down(&s);
	}
}

SL_TEST(noise, fresh_ephemerals)
{
	uint8_t again[SL_NOISE_MSG1_BYTES];
	struct sl_noise_initiator i;
	struct setting s;

	SL_ASSERT(set_up(&s));
	sl_noise_initiate(&i, again, s.a, &s.of_b, s.epoch_a, NULL);
	SL_EXPECT(memcmp(again + 1, s.msg1 + 1, 32) != 0);
	sl_noise_initiator_fini(&i);
	tear_down(&s);
}

/*
 * Bit 0 of the ephemeral key's first byte names the parity of y. It is the one bit of either
 * message that nothing protects: DH takes x alone (D3) and h is no associated data (D1). Flipped,
 * it changes h, which nobody uses, and the keys come out the same. All other bits are covered by a
 * tag.
 */
#define UNPROTECTED_BIT 0u

SL_TEST(noise, every_bit_of_msg1)
{
	struct setting s;
	struct sl_noise_responder r, zero;
	uint8_t msg1[SL_NOISE_MSG1_BYTES], msg2[SL_NOISE_MSG2_BYTES], eph_r[32];
	struct sl_noise_keys want, got;

	memset(&zero, 0, sizeof(zero));
	SL_ASSERT(set_up(&s));
	sl_test_rand_bytes(eph_r, 32);
	SL_ASSERT(sl_noise_respond_read(&r, s.msg1, s.b, NULL, NULL) == 0);
	sl_noise_respond_write(&r, s.msg2, s.b, s.epoch_b, eph_r, &want);
	for (unsigned bit = 0; bit < SL_NOISE_MSG1_BYTES * 8; bit++) {
		int rc;

		memcpy(msg1, s.msg1, sizeof(msg1));
		msg1[bit / 8] ^= (uint8_t)(1u << bit % 8);
		memset(&r, 0xcc, sizeof(r));
		rc = sl_noise_respond_read(&r, msg1, s.b, NULL, NULL);
		if (bit == UNPROTECTED_BIT) {
			SL_ASSERT(rc == 0);
			sl_noise_respond_write(&r, msg2, s.b, s.epoch_b, eph_r, &got);
			SL_EXPECT_MEM(msg2, s.msg2, sizeof(msg2));
			SL_EXPECT_MEM(got.send, want.send, 32);
			SL_EXPECT_MEM(got.recv, want.recv, 32);
			SL_EXPECT(memcmp(got.h, want.h, 32) != 0);
			continue;
		}
		SL_EXPECT_MSG(rc == -EBADMSG, "bit %u: %d", bit, rc);
		SL_EXPECT_MEM(&r, &zero, sizeof(r)); /* nothing half known is left */
	}
	/* The state can be used for the true message. */
	SL_EXPECT_EQ(sl_noise_respond_read(&r, s.msg1, s.b, NULL, NULL), 0);
	tear_down(&s);
}

SL_TEST(noise, every_bit_of_msg2)
{
	struct setting s;
	struct sl_noise_initiator before;
	struct sl_noise_keys keys, untouched;
	uint8_t msg2[SL_NOISE_MSG2_BYTES], epoch[8], same[8];

	SL_ASSERT(set_up(&s));
	before = s.i;
	memset(&untouched, 0xcc, sizeof(untouched));
	memset(same, 0xcc, sizeof(same));
	for (unsigned bit = 0; bit < SL_NOISE_MSG2_BYTES * 8; bit++) {
		int rc;

		memcpy(msg2, s.msg2, sizeof(msg2));
		msg2[bit / 8] ^= (uint8_t)(1u << bit % 8);
		keys = untouched;
		memcpy(epoch, same, 8);
		rc = sl_noise_initiator_read(&s.i, msg2, &keys, epoch);
		SL_EXPECT_MEM(&s.i, &before, sizeof(before));
		if (bit == UNPROTECTED_BIT) {
			SL_EXPECT_EQ(rc, 0);
			SL_EXPECT_MEM(keys.send, s.keys_b.recv, 32);
			SL_EXPECT_MEM(keys.recv, s.keys_b.send, 32);
			continue;
		}
		SL_EXPECT_MSG(rc == -EBADMSG, "bit %u: %d", bit, rc);
		SL_EXPECT_MEM(&keys, &untouched, sizeof(keys));
		SL_EXPECT_MEM(epoch, same, 8);
	}
	expect_agreed(&s);
	tear_down(&s);
}

SL_TEST(noise, wrong_keys)
{
	struct setting s, other;
	struct sl_noise_responder r;
	struct sl_noise_initiator i;
	uint8_t epoch[8], msg1[SL_NOISE_MSG1_BYTES], msg2[SL_NOISE_MSG2_BYTES];

	SL_ASSERT(set_up(&s));
	SL_ASSERT(set_up(&other));
	/* A msg1 for somebody else, and one from a node that took us for somebody else. */
	SL_EXPECT_EQ(sl_noise_respond_read(&r, s.msg1, other.b, NULL, NULL), -EBADMSG);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, s.msg1, s.a, NULL, NULL), -EBADMSG);
	sl_noise_initiate(&i, msg1, s.a, &s.of_b, s.epoch_a, NULL);
	/* A msg2 of another handshake, of ours with another responder, of an earlier attempt of our
	 * own. */
	SL_EXPECT_EQ(sl_noise_initiator_read(&s.i, other.msg2, &s.keys_a, epoch), -EBADMSG);
	SL_ASSERT(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL) == 0);
	sl_noise_respond_write(&r, msg2, other.b, s.epoch_b, NULL, &s.keys_a);
	SL_EXPECT_EQ(sl_noise_initiator_read(&s.i, msg2, &s.keys_a, epoch), -EBADMSG);
	/* The DH of another pair of keys in the peer's record. */
	memcpy(s.of_b.dh_static, other.of_b.dh_static, 32);
	sl_noise_initiate(&i, msg1, s.a, &s.of_b, s.epoch_a, NULL);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL), -EBADMSG);
	memset(msg1, 0, sizeof(msg1));
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL), -EBADMSG);
	memset(msg2, 0, sizeof(msg2));
	SL_EXPECT_EQ(sl_noise_initiator_read(&s.i, msg2, &s.keys_a, epoch), -EBADMSG);
	expect_agreed(&s);
	tear_down(&s);
	tear_down(&other);
}

static unsigned known_calls;
static uint8_t known_xonly[32];

static const struct sl_remote_key *known_fn(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	known_calls++;
	memcpy(known_xonly, xonly, 32);
	return arg;
}

SL_TEST(noise, known_peer)
{
	struct setting s, other;
	struct sl_noise_responder r;
	struct sl_remote_key half;

	SL_ASSERT(set_up(&s));
	SL_ASSERT(set_up(&other));
	SL_ASSERT(sl_remote_key_init(&half, sl_identity_xonly(s.a), NULL) == 0);
	/* Found, found without a DH, not found, and a look-up that answers with another peer: all
	 * give the same. */
	struct sl_remote_key *const answers[] = {&s.of_a, &half, NULL, &other.of_a};

	SL_ASSERT(sl_noise_respond_read(&s.r, s.msg1, s.b, NULL, NULL) == 0);
	for (unsigned n = 0; n < 4; n++) {
		known_calls = 0;
		memset(&r, 0, sizeof(r));
		SL_EXPECT_EQ(sl_noise_respond_read(&r, s.msg1, s.b, known_fn, answers[n]), 0);
		SL_EXPECT_MEM(&r, &s.r, sizeof(r));
		SL_EXPECT_EQ(known_calls, 1);
		SL_EXPECT_MEM(known_xonly, sl_identity_xonly(s.a), 32);
	}
	/* What is cached is what is used: a spoilt record shows. */
	s.of_a.dh_static[5] ^= 1;
	SL_EXPECT_EQ(sl_noise_respond_read(&r, s.msg1, s.b, known_fn, &s.of_a), -EBADMSG);
	/* Nobody is looked up for a message that does not open. */
	known_calls = 0;
	s.msg1[40] ^= 1;
	SL_EXPECT_EQ(sl_noise_respond_read(&r, s.msg1, s.b, known_fn, &s.of_a), -EBADMSG);
	SL_EXPECT_EQ(known_calls, 0);
	tear_down(&s);
	tear_down(&other);
}

/* msg1 as any stranger can make it: rightly sealed, with 33 bytes of his choice as the static key.
 */
static void forge_msg1(uint8_t msg1[SL_NOISE_MSG1_BYTES], const struct setting *s,
	const uint8_t claimed[33], const uint8_t ss[32])
{
	static const char name[] = "Noise_IK_secp256k1_ChaChaPoly_SHA256";
	static const uint8_t nonce[12];
	uint8_t ck[32], key[32];

	sl_sha256(ck, name, strlen(name));
	memcpy(msg1, s->msg1, 33);
	sl_hkdf2(ck, key, ck, s->i.es, 32);
	sl_aead_seal_one(msg1 + 33, claimed, 33, NULL, 0, nonce, key);
	sl_hkdf2(ck, key, ck, ss, 32);
	sl_aead_seal_one(msg1 + 82, s->epoch_a, 8, NULL, 0, nonce, key);
}

SL_TEST(noise, forged_static_key)
{
	uint8_t msg1[SL_NOISE_MSG1_BYTES], claimed[33];
	struct sl_noise_responder r;
	struct setting s;

	SL_ASSERT(set_up(&s));
	memcpy(claimed, sl_identity_compressed(s.a), 33);
	forge_msg1(msg1, &s, claimed, s.of_b.dh_static);
	SL_EXPECT_MEM(msg1, s.msg1, sizeof(msg1));
	/* The other parity is the same peer. */
	claimed[0] ^= 1;
	forge_msg1(msg1, &s, claimed, s.of_b.dh_static);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL), 0);
	SL_EXPECT_MEM(r.remote_compressed, claimed, 33);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, known_fn, &s.of_a), 0);
	SL_EXPECT_MEM(r.remote_compressed, claimed, 33);
	/* Another first byte is no key, even of a peer that we know. */
	for (unsigned first = 0; first < 256; first++) {
		if (first == 2 || first == 3)
			continue;
		claimed[0] = (uint8_t)first;
		forge_msg1(msg1, &s, claimed, s.of_b.dh_static);
		SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, known_fn, &s.of_a), -EBADMSG);
		SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL), -EBADMSG);
	}
	/* No point of the curve. */
	claimed[0] = 2;
	sl_test_unhex(claimed + 1, 32,
		"eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34");
	forge_msg1(msg1, &s, claimed, s.of_b.dh_static);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL), -EBADMSG);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, known_fn, &s.of_a), -EBADMSG);
	/* Somebody else's key without its secret. */
	claimed[0] = 2;
	memcpy(claimed + 1, sl_identity_xonly(s.b), 32);
	forge_msg1(msg1, &s, claimed, s.of_b.dh_static);
	SL_EXPECT_EQ(sl_noise_respond_read(&r, msg1, s.b, NULL, NULL), -EBADMSG);
	tear_down(&s);
}

SL_TEST(noise, fini_wipes)
{
	static const struct sl_noise_initiator zero_i;
	static const struct sl_noise_responder zero_r;
	struct setting s;

	SL_ASSERT(set_up(&s));
	tear_down(&s);
	SL_EXPECT_MEM(&s.i, &zero_i, sizeof(zero_i));
	SL_EXPECT_MEM(&s.r, &zero_r, sizeof(zero_r));
}
