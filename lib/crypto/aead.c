/* SPDX-License-Identifier: BSD-3-Clause */
#include "aead_backend.h"

#include <errno.h>

#include <sodium.h>

/* The one that chooses for every burst, then best first. */
static const struct sl_aead_backend *const backends[] = {&sl_aead_auto,
#ifdef AEAD_AVX512
	&sl_aead_avx512,
#endif
#ifdef AEAD_AVX2
	&sl_aead_avx2,
#endif
#ifdef AEAD_IPSEC_MB
	&sl_aead_ipsec_mb,
#endif
	&sl_aead_sodium, NULL};

const struct sl_aead_backend *const *sl_aead_backends(void)
{
	return backends;
}

const struct sl_aead_backend *sl_aead_backend_find(const char *name)
{
	for (unsigned i = 0; backends[i]; i++) {
		if (strcmp(backends[i]->name, name) != 0)
			continue;
		if (backends[i]->usable())
			return backends[i];
		errno = ENOTSUP;
		return NULL;
	}
	errno = ENOENT;
	return NULL;
}

void sl_aead_seal_one(uint8_t *out, const uint8_t *text, size_t len, const uint8_t *aad,
	size_t aad_len, const uint8_t nonce[12], const uint8_t key[SL_AEAD_KEY_BYTES])
{
	(void)crypto_aead_chacha20poly1305_ietf_encrypt(
		out, NULL, text, len, aad, aad_len, NULL, nonce, key);
}

int sl_aead_open_one(uint8_t *out, const uint8_t *sealed, size_t sealed_len, const uint8_t *aad,
	size_t aad_len, const uint8_t nonce[12], const uint8_t key[SL_AEAD_KEY_BYTES])
{
	if (sealed_len < SL_AEAD_TAG_BYTES)
		return -EBADMSG;
	if (crypto_aead_chacha20poly1305_ietf_decrypt(
		    out, NULL, NULL, sealed, sealed_len, aad, aad_len, nonce, key) != 0)
		return -EBADMSG;
	return 0;
}
