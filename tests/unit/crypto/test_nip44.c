/* SPDX-License-Identifier: BSD-3-Clause */
/* NIP-44 version 2: every row of the published vectors, then what they leave out. */
#include "sl_nip44.h"
#include "sl_hash.h"
#include "sl_test.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

/* A group of the file: a list of so many rows, or an object of so many members. */
static json_t *
group(json_t **file, const char *kind, const char *name, size_t rows)
{
	json_error_t error;
	json_t *list;

	*file = json_load_file(SL_VECTORS_DIR "/nostr/nip44.vectors.json", 0, &error);
	SL_EXPECT_MSG(*file != NULL, "vectors: %s", error.text);
	list = json_object_get(json_object_get(json_object_get(*file, "v2"), kind), name);
	SL_EXPECT_EQ(json_is_object(list) ? json_object_size(list) : json_array_size(list), rows);
	return list;
}

static const char *
text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	SL_EXPECT_MSG(s != NULL, "no %s", key);
	return s ? s : "";
}

static void
hex(const json_t *row, const char *key, uint8_t *out, size_t len)
{
	if (sl_hex_parse(out, len, text(row, key)))
		SL_EXPECT_MSG(false, "%s is not hex", key);
}

SL_TEST(nip44, conversation_key)
{
	uint8_t sec[32], pub[32], want[32], got[32];
	json_t *file, *list, *row;
	size_t i;

	list = group(&file, "valid", "get_conversation_key", 35);
	json_array_foreach(list, i, row)
	{
		hex(row, "sec1", sec, 32);
		hex(row, "pub2", pub, 32);
		hex(row, "conversation_key", want, 32);
		SL_EXPECT_EQ(sl_nip44_conversation_key(got, sec, pub), 0);
		SL_EXPECT_MEM(got, want, 32);
	}
	json_decref(file);
	list = group(&file, "invalid", "get_conversation_key", 8);
	json_array_foreach(list, i, row)
	{
		hex(row, "sec1", sec, 32);
		hex(row, "pub2", pub, 32);
		SL_EXPECT_EQ(sl_nip44_conversation_key(got, sec, pub), -EINVAL);
	}
	json_decref(file);
}

SL_TEST(nip44, message_keys)
{
	uint8_t key[32], nonce[32], want[76], got[76];
	json_t *file, *list = group(&file, "valid", "get_message_keys", 2), *row;
	size_t i;

	hex(list, "conversation_key", key, 32);
	SL_EXPECT_EQ(json_array_size(json_object_get(list, "keys")), 32);
	json_array_foreach(json_object_get(list, "keys"), i, row)
	{
		hex(row, "nonce", nonce, 32);
		hex(row, "chacha_key", want, 32);
		hex(row, "chacha_nonce", want + 32, 12);
		hex(row, "hmac_key", want + 44, 32);
		sl_nip44_message_keys(got, key, nonce);
		SL_EXPECT_MEM(got, want, 76);
	}
	json_decref(file);
}

SL_TEST(nip44, padded_length)
{
	json_t *file, *list, *row;
	size_t i;

	list = group(&file, "valid", "calc_padded_len", 24);
	json_array_foreach(list, i, row)
	{
		SL_EXPECT_EQ(sl_nip44_padded_len((uint32_t)json_integer_value(json_array_get(row, 0))),
			json_integer_value(json_array_get(row, 1)));
	}
	json_decref(file);
}

/* Sealed with the given nonce it is the given payload, and that opens to the text. */
static void
both_ways(const uint8_t key[32], const uint8_t nonce[32], const void *plain, size_t len, char *payload, size_t size,
	uint8_t *work, size_t work_size)
{
	int n;

	SL_EXPECT_EQ(sl_nip44_encrypt(payload, size, key, plain, len, nonce), 0);
	SL_EXPECT_EQ(strlen(payload), sl_nip44_payload_len((uint32_t)len));
	n = sl_nip44_decrypt(work, work_size, key, payload, strlen(payload));
	SL_EXPECT_EQ(n, len);
	SL_EXPECT(n == (int)len && !memcmp(work, plain, len));
}

SL_TEST(nip44, encrypt_decrypt)
{
	static char payload[SL_NIP44_PAYLOAD_MAX + 1];
	static uint8_t work[SL_NIP44_PAYLOAD_MAX];
	uint8_t sec1[32], sec2[32], key[32], other[32], nonce[32];
	struct sl_identity *id;
	json_t *file, *list, *row;
	size_t i;

	list = group(&file, "valid", "encrypt_decrypt", 10);
	json_array_foreach(list, i, row)
	{
		hex(row, "sec1", sec1, 32);
		hex(row, "sec2", sec2, 32);
		hex(row, "nonce", nonce, 32);
		hex(row, "conversation_key", key, 32);
		id = sl_identity_create(sec2);
		SL_ASSERT(id != NULL);
		SL_EXPECT_EQ(sl_nip44_conversation_key(other, sec1, sl_identity_xonly(id)), 0);
		SL_EXPECT_MEM(other, key, 32);
		sl_identity_destroy(id);
		id = sl_identity_create(sec1);
		SL_ASSERT(id != NULL);
		SL_EXPECT_EQ(sl_nip44_conversation_key(other, sec2, sl_identity_xonly(id)), 0);
		SL_EXPECT_MEM(other, key, 32);
		sl_identity_destroy(id);
		both_ways(key, nonce, text(row, "plaintext"), strlen(text(row, "plaintext")), payload, sizeof(payload), work,
			sizeof(work));
		SL_EXPECT_STR(payload, text(row, "payload"));
	}
	json_decref(file);
}

SL_TEST(nip44, long_messages)
{
	static char payload[SL_NIP44_PAYLOAD_MAX + 1], plain[SL_NIP44_TEXT_MAX + 1];
	static uint8_t work[SL_NIP44_PAYLOAD_MAX];
	uint8_t key[32], nonce[32], want[32], got[32];
	json_t *file, *list, *row;
	size_t i;

	list = group(&file, "valid", "encrypt_decrypt_long_msg", 3);
	json_array_foreach(list, i, row)
	{
		const char *pattern = text(row, "pattern");
		const size_t step = strlen(pattern);
		const size_t len = step * (size_t)json_integer_value(json_object_get(row, "repeat"));

		SL_ASSERT(len <= SL_NIP44_TEXT_MAX);
		for (size_t at = 0; at < len; at += step)
			memcpy(plain + at, pattern, step);
		hex(row, "conversation_key", key, 32);
		hex(row, "nonce", nonce, 32);
		hex(row, "plaintext_sha256", want, 32);
		sl_sha256(got, plain, len);
		SL_EXPECT_MEM(got, want, 32);
		both_ways(key, nonce, plain, len, payload, sizeof(payload), work, sizeof(work));
		hex(row, "payload_sha256", want, 32);
		sl_sha256(got, payload, strlen(payload));
		SL_EXPECT_MEM(got, want, 32);
	}
	json_decref(file);
}

SL_TEST(nip44, refused_lengths)
{
	static char payload[SL_NIP44_PAYLOAD_MAX + 1];
	static uint8_t zeros[1];
	uint8_t key[32] = {1};
	json_t *file, *list, *row;
	size_t i;

	list = group(&file, "invalid", "encrypt_msg_lengths", 4);
	json_array_foreach(list, i, row)
		SL_EXPECT_EQ(sl_nip44_encrypt(payload, sizeof(payload), key, zeros, (size_t)json_integer_value(row), NULL),
			-EINVAL);
	json_decref(file);
	SL_EXPECT_EQ(sl_nip44_encrypt(payload, SL_NIP44_PAYLOAD_MIN, key, zeros, 1, NULL), -ENOSPC);
	SL_EXPECT_EQ(sl_nip44_encrypt(payload, SL_NIP44_PAYLOAD_MIN + 1, key, zeros, 1, NULL), 0);
}

/* The error that the note of a row of "invalid decrypt" speaks of. */
static int
error_of(const char *note)
{
	return !strncmp(note, "unknown", 7) ? -EPROTONOSUPPORT :
		!strcmp(note, "invalid MAC") || !strcmp(note, "invalid padding") ? -EBADMSG : -EINVAL;
}

SL_TEST(nip44, refused_payloads)
{
	static uint8_t work[SL_NIP44_PAYLOAD_MAX];
	uint8_t key[32];
	json_t *file, *list, *row;
	size_t i;

	list = group(&file, "invalid", "decrypt", 12);
	json_array_foreach(list, i, row)
	{
		const char *payload = text(row, "payload");

		hex(row, "conversation_key", key, 32);
		SL_EXPECT_MSG(sl_nip44_decrypt(work, sizeof(work), key, payload, strlen(payload)) ==
				error_of(text(row, "note")), "%s", text(row, "note"));
	}
	json_decref(file);
}

/* Any bit of the bytes behind the version byte matters; what is refused leaves nothing of the text behind. */
SL_TEST(nip44, every_bit_matters)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const uint8_t zeros[SL_NIP44_PAYLOAD_MIN];
	char payload[SL_NIP44_PAYLOAD_MIN + 1], *exact;
	uint8_t key[32], work[SL_NIP44_PAYLOAD_MIN];
	int rc;

	sl_test_rand_bytes(key, sizeof(key));
	SL_EXPECT_EQ(sl_nip44_encrypt(payload, sizeof(payload), key, "sluice", 6, NULL), 0);
	for (size_t i = 0; i < SL_NIP44_PAYLOAD_MIN; i++)
		for (unsigned bit = 0; bit < 6; bit++) {
			const char was = payload[i];
			const char *at = strchr(alphabet, was);

			if (at == NULL)
				continue;
			payload[i] = alphabet[(unsigned)(at - alphabet) ^ 1u << bit];
			rc = sl_nip44_decrypt(work, sizeof(work), key, payload, SL_NIP44_PAYLOAD_MIN);
			SL_EXPECT_MSG(rc < 0, "character %zu, bit %u: %d", i, bit, rc);
			if (rc == -EBADMSG)
				SL_EXPECT_MEM(work, zeros, sizeof(work));
			payload[i] = was;
		}
	/* Cut short anywhere: in memory that ends there. */
	for (size_t len = 0; len < SL_NIP44_PAYLOAD_MIN; len++) {
		exact = malloc(len ? len : 1);
		SL_ASSERT(exact != NULL);
		memcpy(exact, payload, len);
		SL_EXPECT_EQ(sl_nip44_decrypt(work, sizeof(work), key, exact, len), -EINVAL);
		free(exact);
	}
	SL_EXPECT_EQ(sl_nip44_decrypt(work, SL_NIP44_PAYLOAD_MIN / 4 * 3 - 1, key, payload, SL_NIP44_PAYLOAD_MIN), -ENOSPC);
	SL_EXPECT_EQ(sl_nip44_decrypt(work, sizeof(work), key, payload, SL_NIP44_PAYLOAD_MIN), 6);
}

/* The padded length by its definition: the least step that holds the text. */
SL_TEST(nip44, padding_steps)
{
	for (uint32_t len = 1; len <= SL_NIP44_TEXT_MAX; len++) {
		uint32_t power = 32, chunk, want;

		while (power < len)
			power *= 2;
		chunk = power <= 256 ? 32 : power / 8;
		for (want = chunk; want < len; want += chunk)
			;
		if (sl_nip44_padded_len(len) != want) {
			SL_EXPECT_MSG(false, "%u: %u, not %u", len, sl_nip44_padded_len(len), want);
			break;
		}
	}
}
