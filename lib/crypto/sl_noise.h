/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOISE_H
#define SL_NOISE_H
/*
 * The link handshake: Noise_IK_secp256k1_ChaChaPoly_SHA256 with the three departures that FIPS
 * makes (link layer facts, section 3): no associated data (D1), the "se" slot of msg2 mixes es
 * again (D2), DH output is SHA-256 of the x coordinate (D3). Two messages, 106 and 57 bytes.
 *
 * Invariant: a message that does not authenticate leaves the state as it was, so a forged msg2
 * cannot end an attempt. A state belongs to one thread. States and results hold secrets:
 * sl_noise_*_fini() / sl_wipe() them.
 *
 * One bit of either message is protected by nothing: the parity of the ephemeral key (bit 0 of byte
 * 0). Flipped, it changes h, which nobody uses, and the keys are the same (D1 and D3). So two msg1
 * that differ may be one and the same handshake.
 */
#include "sl_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NOISE_MSG1_BYTES 106
#define SL_NOISE_MSG2_BYTES 57
#define SL_EPOCH_BYTES 8
#define SL_KEY_BYTES 32

/* What a finished handshake gives either side. */
struct sl_noise_keys {
	uint8_t send[SL_KEY_BYTES];
	uint8_t recv[SL_KEY_BYTES];
	uint8_t h[32]; /* for vectors only; the protocol never uses it */
};

struct sl_noise_symmetric {
	uint8_t h[32];
	uint8_t ck[32];
	uint8_t key[32];
};

struct sl_noise_initiator {
	struct sl_noise_symmetric sym;
	uint8_t eph_secret[32];
	uint8_t es[32];
};

struct sl_noise_responder {
	struct sl_noise_symmetric sym;
	uint8_t es[32];
	uint8_t dh_static[32]; /* of the two static keys: worth keeping with the peer */
	uint8_t eph_parsed[64]; /* secp256k1_pubkey, opaque */
	uint8_t remote_compressed[SL_COMPRESSED_BYTES]; /* as sent, 02 or 03 */
	uint8_t remote_epoch[SL_EPOCH_BYTES];
};

/*
 * Initiator. eph_secret NULL draws a fresh one; tests give their own. remote must have been
 * initialised with the same local identity (its dh_static is used).
 */
void sl_noise_initiate(struct sl_noise_initiator *st, uint8_t msg1[SL_NOISE_MSG1_BYTES],
	const struct sl_identity *local, const struct sl_remote_key *remote,
	const uint8_t epoch[SL_EPOCH_BYTES], const uint8_t *eph_secret);
/* 0 and keys + the responder's epoch, or -EBADMSG; st can be used again after a failure. */
int sl_noise_initiator_read(const struct sl_noise_initiator *st,
	const uint8_t msg2[SL_NOISE_MSG2_BYTES], struct sl_noise_keys *keys,
	uint8_t remote_epoch[SL_EPOCH_BYTES]) SL_MUST_CHECK;
void sl_noise_initiator_fini(struct sl_noise_initiator *st);

/*
 * Responder, first half: opens msg1 and learns who it is from. 0 or -EBADMSG (bad point, tag or
 * length). known: optional look-up of a peer by x-only key, so that its cached DH spares one curve
 * operation; may be NULL.
 */
typedef const struct sl_remote_key *(*sl_noise_known_fn)(
	void *arg, const uint8_t xonly[SL_XONLY_BYTES]);
int sl_noise_respond_read(struct sl_noise_responder *st, const uint8_t msg1[SL_NOISE_MSG1_BYTES],
	const struct sl_identity *local, sl_noise_known_fn known, void *arg) SL_MUST_CHECK;
/* Responder, second half: builds msg2 and the keys. eph_secret as above. */
void sl_noise_respond_write(struct sl_noise_responder *st, uint8_t msg2[SL_NOISE_MSG2_BYTES],
	const struct sl_identity *local, const uint8_t epoch[SL_EPOCH_BYTES],
	const uint8_t *eph_secret, struct sl_noise_keys *keys);
void sl_noise_responder_fini(struct sl_noise_responder *st);

#ifdef __cplusplus
}
#endif
#endif
