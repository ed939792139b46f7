/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIP-44 payload under a fixed key; the first byte chooses: the text as it is, the bytes in base64, the bytes with a sound MAC
 * (so that what lies behind it is reached). Checked: what opens has a length within bounds and nothing behind it; what is refused
 * for its MAC or padding leaves no byte of text; what is sealed here opens to itself.
 */
#include "fuzz.h"
#include "sl_nip44.h"
#include <errno.h>
#include <sodium.h>
#include <string.h>

static const uint8_t key[SL_NIP44_KEY_BYTES] = {1, 2, 3};

static void
open_text(const char *payload, size_t len)
{
	const size_t size = len / 4 * 3 + 1;
	uint8_t *text = malloc(size);
	int n;

	FUZZ_CHECK(text != NULL);
	memset(text, 0xaa, size);
	n = sl_nip44_decrypt(text, size, key, payload, len);
	FUZZ_CHECK((n > 0 && (uint32_t)n <= SL_NIP44_TEXT_MAX && (size_t)n < size) || n == -EINVAL || n == -EPROTONOSUPPORT ||
		n == -EBADMSG);
	for (size_t i = n > 0 ? (size_t)n : 0; (n > 0 || n == -EBADMSG) && i < size; i++)
		FUZZ_CHECK(text[i] == 0);
	free(text);
}

static void
open_bytes(const uint8_t *bytes, size_t len, bool sound)
{
	const size_t chars = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
	uint8_t *copy = malloc(len ? len : 1), keys[76];
	char *payload = malloc(chars);
	crypto_auth_hmacsha256_state st;

	FUZZ_CHECK(copy != NULL && payload != NULL);
	memcpy(copy, bytes, len);
	if (sound && len > 65) {
		copy[0] = 2;
		sl_nip44_message_keys(keys, key, copy + 1);
		crypto_auth_hmacsha256_init(&st, keys + 44, 32);
		crypto_auth_hmacsha256_update(&st, copy + 1, len - 33);
		crypto_auth_hmacsha256_final(&st, copy + len - 32);
	}
	sodium_bin2base64(payload, chars, copy, len, sodium_base64_VARIANT_ORIGINAL);
	open_text(payload, strlen(payload));
	free(payload);
	free(copy);
}

static void
there_and_back(const uint8_t *text, size_t len)
{
	const size_t size = sl_nip44_payload_len((uint32_t)len) + 1u;
	char *payload = malloc(size);
	uint8_t *out = malloc(size);

	FUZZ_CHECK(payload != NULL && out != NULL);
	FUZZ_CHECK(sl_nip44_encrypt(payload, size, key, text, len, NULL) == 0);
	FUZZ_CHECK(sl_nip44_decrypt(out, size, key, payload, strlen(payload)) == (int)len && memcmp(out, text, len) == 0);
	free(payload);
	free(out);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 60000)
		return 0;
	if (data[0] % 4 == 0)
		open_text((const char *)data + 1, size - 1);
	else if (data[0] % 4 == 3)
		there_and_back(data + 1, size - 1);
	else
		open_bytes(data + 1, size - 1, data[0] % 4 == 2);
	return 0;
}
