/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_noise.h"
#include "curve.h"
#include "sl_aead.h"
#include "sl_hash.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define TAG SL_AEAD_TAG_BYTES

/* Where the parts lie: e || sealed static key || sealed epoch, and e || sealed epoch. */
#define MSG1_STATIC SL_COMPRESSED_BYTES
#define MSG1_EPOCH (MSG1_STATIC + SL_COMPRESSED_BYTES + TAG)
#define MSG2_EPOCH SL_COMPRESSED_BYTES
_Static_assert(MSG1_EPOCH + SL_EPOCH_BYTES + TAG == SL_NOISE_MSG1_BYTES, "msg1");
_Static_assert(MSG2_EPOCH + SL_EPOCH_BYTES + TAG == SL_NOISE_MSG2_BYTES, "msg2");

/* SHA-256 of "Noise_IK_secp256k1_ChaChaPoly_SHA256": h and ck at the start. Pinned by a test. */
static const uint8_t protocol_hash[32] = {0x15, 0xbe, 0xa1, 0x6f, 0x93, 0x96, 0x9b, 0xca, 0xe8,
	0x68, 0xe1, 0x28, 0xbc, 0xbd, 0xc1, 0x10, 0xb1, 0xd8, 0x8a, 0x53, 0x06, 0xb3, 0x67, 0x63,
	0x21, 0x71, 0xa9, 0xaa, 0xaa, 0xd3, 0xf5, 0x33};

/* Every handshake seal comes right after a mix_key, so its counter is always 0. */
static const uint8_t nonce_zero[12];

static void mix_hash(struct sl_noise_symmetric *s, const void *data, size_t len)
{
	sl_sha256_2(s->h, s->h, sizeof(s->h), data, len);
}

static void mix_key(struct sl_noise_symmetric *s, const uint8_t dh[32])
{
	sl_hkdf2(s->ck, s->key, s->ck, dh, 32);
}

/* No prologue, not even an empty one; the responder's key is hashed as if its y were even, whatever
 * it is. */
static void symmetric_init(
	struct sl_noise_symmetric *s, const uint8_t responder_xonly[SL_XONLY_BYTES])
{
	uint8_t even[SL_COMPRESSED_BYTES];

	memcpy(s->h, protocol_hash, sizeof(s->h));
	memcpy(s->ck, protocol_hash, sizeof(s->ck));
	memset(s->key, 0, sizeof(s->key));
	even[0] = 0x02;
	memcpy(even + 1, responder_xonly, SL_XONLY_BYTES);
	mix_hash(s, even, sizeof(even));
}

/* D1: no associated data. */
static void seal_and_hash(
	struct sl_noise_symmetric *s, uint8_t *out, const uint8_t *text, size_t len)
{
	sl_aead_seal_one(out, text, len, NULL, 0, nonce_zero, s->key);
	mix_hash(s, out, len + TAG);
}

static int open_and_hash(
	struct sl_noise_symmetric *s, uint8_t *out, const uint8_t *sealed, size_t sealed_len)
{
	if (sl_aead_open_one(out, sealed, sealed_len, NULL, 0, nonce_zero, s->key) != 0)
		return -EBADMSG;
	mix_hash(s, sealed, sealed_len);
	return 0;
}

static void split(const struct sl_noise_symmetric *s, uint8_t to_responder[SL_KEY_BYTES],
	uint8_t to_initiator[SL_KEY_BYTES])
{
	sl_hkdf2(to_responder, to_initiator, s->ck, NULL, 0);
}

static void ephemeral(uint8_t out[32], const uint8_t *given)
{
	if (given) {
		assert(sl_curve_secret_valid(given));
		memcpy(out, given, 32);
	} else {
		sl_curve_secret_random(out);
	}
}

void sl_noise_initiate(struct sl_noise_initiator *st, uint8_t msg1[SL_NOISE_MSG1_BYTES],
	const struct sl_identity *local, const struct sl_remote_key *remote,
	const uint8_t epoch[SL_EPOCH_BYTES], const uint8_t *eph_secret)
{
	struct sl_noise_symmetric *s = &st->sym;
	secp256k1_pubkey point;

	assert(remote->has_dh_static);
	memcpy(&point, remote->parsed, sizeof(point));
	symmetric_init(s, remote->xonly);

	ephemeral(st->eph_secret, eph_secret);
	sl_curve_public(msg1, st->eph_secret);
	mix_hash(s, msg1, SL_COMPRESSED_BYTES);

	sl_curve_dh(st->es, &point, st->eph_secret);
	mix_key(s, st->es);
	seal_and_hash(s, msg1 + MSG1_STATIC, sl_identity_compressed(local), SL_COMPRESSED_BYTES);

	mix_key(s, remote->dh_static);
	seal_and_hash(s, msg1 + MSG1_EPOCH, epoch, SL_EPOCH_BYTES);
}

int sl_noise_initiator_read(const struct sl_noise_initiator *st,
	const uint8_t msg2[SL_NOISE_MSG2_BYTES], struct sl_noise_keys *keys,
	uint8_t remote_epoch[SL_EPOCH_BYTES])
{
	struct sl_noise_symmetric s = st->sym; /* a forged msg2 must not spoil the attempt */
	uint8_t ee[32], epoch[SL_EPOCH_BYTES];
	secp256k1_pubkey point;
	int rc = -EBADMSG;

	if (sl_curve_parse(&point, msg2) != 0)
		goto out_state;
	mix_hash(&s, msg2, SL_COMPRESSED_BYTES);
	sl_curve_dh(ee, &point, st->eph_secret);
	mix_key(&s, ee);
	mix_key(&s, st->es); /* D2: es a second time where Noise has se */
	rc = open_and_hash(&s, epoch, msg2 + MSG2_EPOCH, SL_EPOCH_BYTES + TAG);
	if (rc != 0)
		goto out;
	split(&s, keys->send, keys->recv);
	memcpy(keys->h, s.h, sizeof(keys->h));
	memcpy(remote_epoch, epoch, SL_EPOCH_BYTES);
out:
	sl_wipe(ee, sizeof(ee));
out_state:
	sl_wipe(&s, sizeof(s));
	return rc;
}

void sl_noise_initiator_fini(struct sl_noise_initiator *st)
{
	sl_wipe(st, sizeof(*st));
}

/* DH of the two static keys: from the peer's record if there is one, else by the curve. Fails on a
 * bad point. */
static int static_dh(uint8_t ss[32], const uint8_t compressed[SL_COMPRESSED_BYTES],
	const struct sl_identity *local, sl_noise_known_fn known, void *arg)
{
	const struct sl_remote_key *peer = known ? known(arg, compressed + 1) : NULL;
	secp256k1_pubkey point;

	/* Both parities of one x give the same DH. */
	if (peer && peer->has_dh_static && (compressed[0] & 0xfe) == 0x02 &&
		memcmp(peer->xonly, compressed + 1, SL_XONLY_BYTES) == 0) {
		memcpy(ss, peer->dh_static, 32);
		return 0;
	}
	if (sl_curve_parse(&point, compressed) != 0)
		return -EBADMSG;
	sl_curve_dh(ss, &point, sl_identity_secret(local));
	return 0;
}

int sl_noise_respond_read(struct sl_noise_responder *st, const uint8_t msg1[SL_NOISE_MSG1_BYTES],
	const struct sl_identity *local, sl_noise_known_fn known, void *arg)
{
	struct sl_noise_symmetric *s = &st->sym;
	secp256k1_pubkey point;

	if (sl_curve_parse(&point, msg1) != 0)
		goto bad;
	symmetric_init(s, sl_identity_xonly(local));
	memcpy(st->eph_parsed, &point, sizeof(st->eph_parsed));
	mix_hash(s, msg1, SL_COMPRESSED_BYTES);

	sl_curve_dh(st->es, &point, sl_identity_secret(local));
	mix_key(s, st->es);
	if (open_and_hash(
		    s, st->remote_compressed, msg1 + MSG1_STATIC, SL_COMPRESSED_BYTES + TAG) != 0)
		goto bad;

	if (static_dh(st->dh_static, st->remote_compressed, local, known, arg) != 0)
		goto bad;
	mix_key(s, st->dh_static);
	if (open_and_hash(s, st->remote_epoch, msg1 + MSG1_EPOCH, SL_EPOCH_BYTES + TAG) != 0)
		goto bad;
	return 0;
bad:
	sl_wipe(st, sizeof(*st));
	return -EBADMSG;
}

void sl_noise_respond_write(struct sl_noise_responder *st, uint8_t msg2[SL_NOISE_MSG2_BYTES],
	const struct sl_identity *local, const uint8_t epoch[SL_EPOCH_BYTES],
	const uint8_t *eph_secret, struct sl_noise_keys *keys)
{
	struct sl_noise_symmetric *s = &st->sym;
	uint8_t secret[32], ee[32];
	secp256k1_pubkey point;

	memcpy(&point, st->eph_parsed, sizeof(point));
	ephemeral(secret, eph_secret);
	sl_curve_public(msg2, secret);
	mix_hash(s, msg2, SL_COMPRESSED_BYTES);
	sl_curve_dh(ee, &point, secret);
	mix_key(s, ee);
	mix_key(s, st->es); /* D2 */
	seal_and_hash(s, msg2 + MSG2_EPOCH, epoch, SL_EPOCH_BYTES);
	split(s, keys->recv, keys->send);
	memcpy(keys->h, s->h, sizeof(keys->h));
	sl_wipe(secret, sizeof(secret));
	sl_wipe(ee, sizeof(ee));
}

void sl_noise_responder_fini(struct sl_noise_responder *st)
{
	sl_wipe(st, sizeof(*st));
}
