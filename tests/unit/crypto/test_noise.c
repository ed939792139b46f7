/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys.h"
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
		"034f355bdcb7cc0af728ef3cceb9615d90684bb5b2ca5f859ab0f0b704075871aa8dd0350b5f73a2fc3d8d2cd508"
		"aa623fea35968f6099e85500b8226bf5b9611bdb08fa831d7baa7b24283749f1873c5aa85f5312cce510dc15e12b"
		"bf9876c1e093308682bb5b0e4987",
		"02466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27a103ae311f212743086b7228bf"
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
		"034f355bdcb7cc0af728ef3cceb9615d90684bb5b2ca5f859ab0f0b704075871aa8e6b5a16695fb2f2e28448a089"
		"10eacd809fd1c53aa1b1cb24cfae6e7b18241bffd97b00d0976e3021af37832b198747f232e39839dbeac5c99b75"
		"e7f3abbda7ecd83cc937a4a4bf4e",
		"02466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27943611f401c210cb595eaf5e2d"
		"35252be400a551917ab01e",
		"1593e60c0c4030bd606385d8d4685360715a7a225e53630f10de4cda20a847c6",
		"10e51711a3c44b471f3423b52023eee97f1d8eefe405fcfd1629ca711f705dbf",
		"4719518bbdc49b31b66885fbb88739a02861c8a9747fe86542bf16bb648d2125",
	},
	{
		"microfips IK 0",
		X8("01010101"),
		X8("02020202"),
		EPH_I,
		EPH_R,
		"0100000000000000",
		"0200000000000000",
		"034f355bdcb7cc0af728ef3cceb9615d90684bb5b2ca5f859ab0f0b704075871aa8fee0d0b0fdac4c25e04277d2b"
		"48007f780c1567c523b6aa1e4e0cbc1eb89014dd30e04afd519594cefac9d8e19b0ba43ea1e8919f3911117f9997"
		"bf69071d6e47aa4b049bfdf715d2",
		"02466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27603fb0cf0105b12cd1d7359597"
		"ee566c8de63d09ef2be9b2",
		"bce30229c8137a698eb449f15f50ee8c34f1e73640c6b102703f8087b85f3eed",
		"29dbc3c0d2b8689bee6b338fdd23b055e68b52a73111d4b455b1533ad778017c",
		"cba6a8145471c1c5fa4d737d93a568ea9048d9cff688f3882f77a86c98a92afb",
	},
};

#define EXPECT_HEX(got, hex, len)                                                                                      \
	do {                                                                                                           \
		uint8_t want_[len];                                                                                    \
		sl_test_unhex(want_, len, hex);                                                                        \
		SL_EXPECT_MEM(got, want_, len);                                                                        \
	} while (0)

static void
run_vector(const struct vector *v)
{
	struct sl_identity *init = identity_from_hex(v->init_secret), *resp = identity_from_hex(v->resp_secret);
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
