/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NIP44_H
#define SL_NIP44_H
/*
 * Payloads of Nostr's NIP-44, version 2: what kind 21059 signals are sealed and wrapped with.
 *
 *	conversation key = HKDF-extract(salt "nip44-v2", x coordinate of the shared point, not hashed)
 *	chacha key 32 | chacha nonce 12 | hmac key 32 = HKDF-expand(conversation key, nonce 32)
 *	payload = base64(02 | nonce | ChaCha20(length 2 | text | zeros) | HMAC(nonce | ciphertext))
 *
 * The length of a text is hidden in steps (sl_nip44_padded_len()). Nothing is decrypted before its MAC has been
 * compared, in constant time. A conversation key is a secret: the caller wipes it. Any thread, after
 * sl_crypto_init(). Facts: NIP-44; peering facts, section 10.1; pinned by the published vectors.
 */
#include "sl_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NIP44_KEY_BYTES 32
#define SL_NIP44_NONCE_BYTES 32
#define SL_NIP44_TEXT_MAX 65535u
#define SL_NIP44_PAYLOAD_MIN 132u   /* characters, of the shortest text */
#define SL_NIP44_PAYLOAD_MAX 87472u /* of the longest */

/* secret: 1..n-1. 0, or -EINVAL when it is not, or xonly is no point of the curve. */
int sl_nip44_conversation_key(uint8_t key[SL_NIP44_KEY_BYTES], const uint8_t secret[SL_SECRET_BYTES],
	const uint8_t xonly[SL_XONLY_BYTES]) SL_MUST_CHECK;

/* What a text of len bytes is padded to, without the two bytes of length. len: 1 .. SL_NIP44_TEXT_MAX and beyond. */
uint32_t sl_nip44_padded_len(uint32_t len);
/* Characters of the payload of such a text, without a closing zero. */
uint32_t sl_nip44_payload_len(uint32_t text_len);

/* The three keys of one message, in their order: the vectors ask for them. */
void sl_nip44_message_keys(uint8_t keys[76], const uint8_t key[SL_NIP44_KEY_BYTES],
	const uint8_t nonce[SL_NIP44_NONCE_BYTES]);

/*
 * payload: size bytes of room, closed with a zero. nonce: NULL, that is a random one, but in tests. 0, -EINVAL (no text, or
 * too long), -ENOSPC, -ENOMEM.
 */
int sl_nip44_encrypt(char *payload, size_t size, const uint8_t key[SL_NIP44_KEY_BYTES], const void *text, size_t len,
	const uint8_t *nonce) SL_MUST_CHECK;

/*
 * text: size bytes of room, at least three quarters of len: the whole payload is taken apart there, and what lies behind the
 * text afterwards is zero. Returns the text's length (it may hold zeros and is closed by one), or -EINVAL (length, base64),
 * -EPROTONOSUPPORT (another version), -EBADMSG (MAC, padding), -ENOSPC.
 */
int sl_nip44_decrypt(uint8_t *text, size_t size, const uint8_t key[SL_NIP44_KEY_BYTES], const char *payload,
	size_t len) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
