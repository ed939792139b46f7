/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_nip44.h"

#include "curve.h"
#include <errno.h>
#include <limits.h>
#include <secp256k1_ecdh.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 2
#define MAC_BYTES 32u
#define LEN_BYTES 2u
#define HEAD_BYTES (1u + SL_NIP44_NONCE_BYTES)
#define BYTES_MIN (HEAD_BYTES + LEN_BYTES + 32u + MAC_BYTES)

_Static_assert(SL_NIP44_PAYLOAD_MIN == (BYTES_MIN + 2) / 3 * 4, "payload of the shortest text");
_Static_assert(SL_NIP44_PAYLOAD_MAX == (HEAD_BYTES + LEN_BYTES + 65536u + MAC_BYTES + 2) / 3 * 4, "of the longest");
_Static_assert(crypto_stream_chacha20_ietf_NONCEBYTES == 12, "RFC 8439");

static int
copy_x(unsigned char *out, const unsigned char *x, const unsigned char *y, void *arg)
{
	(void)y;
	(void)arg;
	memcpy(out, x, 32);
	return 1;
}

int
sl_nip44_conversation_key(uint8_t key[SL_NIP44_KEY_BYTES], const uint8_t secret[SL_SECRET_BYTES],
	const uint8_t xonly[SL_XONLY_BYTES])
{
	static const uint8_t salt[] = {'n', 'i', 'p', '4', '4', '-', 'v', '2'};
	uint8_t compressed[SL_COMPRESSED_BYTES] = {2}, x[32];
	crypto_auth_hmacsha256_state st;
	secp256k1_pubkey point;
	int rc = 0;

	memcpy(compressed + 1, xonly, SL_XONLY_BYTES);
	if (!sl_curve_secret_valid(secret) || sl_curve_parse(&point, compressed) != 0)
		return -EINVAL;
	if (secp256k1_ecdh(sl_curve_ctx(), x, &point, secret, copy_x, NULL) != 1)
		rc = -EINVAL;
	if (rc == 0) {
		crypto_auth_hmacsha256_init(&st, salt, sizeof(salt));
		crypto_auth_hmacsha256_update(&st, x, sizeof(x));
		crypto_auth_hmacsha256_final(&st, key);
	}
	sl_wipe(&st, sizeof(st));
	sl_wipe(x, sizeof(x));
	return rc;
}

uint32_t
sl_nip44_padded_len(uint32_t len)
{
	uint32_t power, chunk;

	if (len <= 32)
		return 32;
	power = 1u << (32 - __builtin_clz(len - 1));
	chunk = power <= 256 ? 32 : power / 8;
	return chunk * ((len - 1) / chunk + 1);
}

uint32_t
sl_nip44_payload_len(uint32_t text_len)
{
	return (HEAD_BYTES + LEN_BYTES + sl_nip44_padded_len(text_len) + MAC_BYTES + 2) / 3 * 4;
}

void
sl_nip44_message_keys(uint8_t keys[76], const uint8_t key[SL_NIP44_KEY_BYTES],
	const uint8_t nonce[SL_NIP44_NONCE_BYTES])
{
	crypto_auth_hmacsha256_state st;
	uint8_t block[32];

	/* RFC 5869, 2.3: T(i) = HMAC(key, T(i - 1) | info | i) */
	for (uint8_t i = 0; i < 3; i++) {
		const uint8_t number = (uint8_t)(i + 1);

		crypto_auth_hmacsha256_init(&st, key, SL_NIP44_KEY_BYTES);
		if (i)
			crypto_auth_hmacsha256_update(&st, block, sizeof(block));
		crypto_auth_hmacsha256_update(&st, nonce, SL_NIP44_NONCE_BYTES);
		crypto_auth_hmacsha256_update(&st, &number, 1);
		crypto_auth_hmacsha256_final(&st, block);
		memcpy(keys + 32 * i, block, i == 2 ? 12 : 32);
	}
	sl_wipe(&st, sizeof(st));
	sl_wipe(block, sizeof(block));
}

/* keys 32, 12, 32: over nonce and ciphertext. */
static void
mac(uint8_t out[MAC_BYTES], const uint8_t keys[76], const uint8_t *nonce, const uint8_t *cipher, size_t len)
{
	crypto_auth_hmacsha256_state st;

	crypto_auth_hmacsha256_init(&st, keys + 44, 32);
	crypto_auth_hmacsha256_update(&st, nonce, SL_NIP44_NONCE_BYTES);
	crypto_auth_hmacsha256_update(&st, cipher, len);
	crypto_auth_hmacsha256_final(&st, out);
	sl_wipe(&st, sizeof(st));
}

int
sl_nip44_encrypt(char *payload, size_t size, const uint8_t key[SL_NIP44_KEY_BYTES], const void *text, size_t len,
	const uint8_t *nonce)
{
	uint8_t keys[76], *bytes, *cipher;
	size_t inner, total;

	if (len == 0 || len > SL_NIP44_TEXT_MAX)
		return -EINVAL;
	if (size <= sl_nip44_payload_len((uint32_t)len))
		return -ENOSPC;
	inner = LEN_BYTES + sl_nip44_padded_len((uint32_t)len);
	total = HEAD_BYTES + inner + MAC_BYTES;
	bytes = calloc(1, total);
	if (bytes == NULL)
		return -ENOMEM;
	bytes[0] = VERSION;
	if (nonce)
		memcpy(bytes + 1, nonce, SL_NIP44_NONCE_BYTES);
	else
		sl_random(bytes + 1, SL_NIP44_NONCE_BYTES);
	cipher = bytes + HEAD_BYTES;
	cipher[0] = (uint8_t)(len >> 8);
	cipher[1] = (uint8_t)len;
	memcpy(cipher + LEN_BYTES, text, len);
	sl_nip44_message_keys(keys, key, bytes + 1);
	(void)crypto_stream_chacha20_ietf_xor(cipher, cipher, inner, keys + 32, keys);
	mac(cipher + inner, keys, bytes + 1, cipher, inner);
	(void)sodium_bin2base64(payload, size, bytes, total, sodium_base64_VARIANT_ORIGINAL);
	sl_wipe(keys, sizeof(keys));
	free(bytes);
	return 0;
}

/* The text of a decrypted padded block, which begins with its length. */
static int
unpad(uint8_t *inner, size_t inner_len, size_t *text_len)
{
	const uint32_t len = (uint32_t)inner[0] << 8 | inner[1];

	if (len == 0 || inner_len != LEN_BYTES + sl_nip44_padded_len(len))
		return -EBADMSG;
	*text_len = len;
	return 0;
}

int
sl_nip44_decrypt(uint8_t *text, size_t size, const uint8_t key[SL_NIP44_KEY_BYTES], const char *payload, size_t len)
{
	uint8_t keys[76], expected[MAC_BYTES], *cipher = text + HEAD_BYTES;
	size_t total, inner, text_len = 0;
	int rc;

	if (len && payload[0] == '#') /* kept free for encodings to come */
		return -EPROTONOSUPPORT;
	if (len < SL_NIP44_PAYLOAD_MIN || len > SL_NIP44_PAYLOAD_MAX)
		return -EINVAL;
	if (size < len / 4 * 3)
		return -ENOSPC;
	if (sodium_base642bin(text, size, payload, len, NULL, &total, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
		return -EINVAL;
	if (total < BYTES_MIN)
		return -EINVAL;
	if (text[0] != VERSION)
		return -EPROTONOSUPPORT;
	inner = total - HEAD_BYTES - MAC_BYTES;
	sl_nip44_message_keys(keys, key, text + 1);
	mac(expected, keys, text + 1, cipher, inner);
	rc = sl_equal_ct(expected, cipher + inner, MAC_BYTES) ? 0 : -EBADMSG;
	if (rc == 0) {
		(void)crypto_stream_chacha20_ietf_xor(cipher, cipher, inner, keys + 32, keys);
		rc = unpad(cipher, inner, &text_len);
	}
	if (rc == 0)
		memmove(text, cipher + LEN_BYTES, text_len);
	sl_wipe(text + text_len, size - text_len);
	sl_wipe(keys, sizeof(keys));
	return rc ? rc : (int)text_len;
}
