// SPDX-License-Identifier: BSD-3-Clause
// The public headers are C++ too, and each stands alone: this one includes them all, in the order of the alphabet.
#include "sl_aead.h"
#include "sl_hash.h"
#include "sl_identity.h"
#include "sl_nip44.h"
#include "sl_noise.h"
#include "sl_nonce.h"
#include "sl_replay.h"
#include "sl_secret.h"
#include "sl_test.h"

SL_TEST(headers, compile_as_cxx)
{
	static_assert(SL_NOISE_MSG1_BYTES == 106 && SL_NOISE_MSG2_BYTES == 57, "wire sizes");
	struct sl_replay r;

	sl_replay_init(&r);
	SL_EXPECT(sl_replay_commit(&r, 1));
}
