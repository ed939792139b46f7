/* SPDX-License-Identifier: BSD-3-Clause */
#include "csv.h"
#include "curve.h"
#include "sl_aead.h"
#include "sl_hash.h"
#include "sl_test.h"

#include <stdlib.h>

static void expect_sha256(const char *text, size_t len, const char *want_hex)
{
	uint8_t got[32], want[32];

	sl_test_unhex(want, 32, want_hex);
	sl_sha256(got, text, len);
	SL_EXPECT_MEM(got, want, 32);
	for (size_t cut = 0; cut <= len; cut++) {
		memset(got, 0, 32);
		sl_sha256_2(got, text, cut, text + cut, len - cut);
		SL_EXPECT_MEM(got, want, 32);
	}
}

SL_TEST(hash, sha256_known_values)
{
	/* FIPS 180-4 examples and the empty string. */
	const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	expect_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect_sha256(
		two_blocks, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

SL_TEST(hash, sha256_2_in_place)
{
	uint8_t h[32], d[33], both[65], want[32];

	sl_test_rand_bytes(both, sizeof(both));
	memcpy(h, both, 32);
	memcpy(d, both + 32, 33);
	sl_sha256(want, both, 65);
	sl_sha256_2(h, h, 32, d, 33);
	SL_EXPECT_MEM(h, want, 32);
}

SL_TEST(hash, hkdf_rfc5869_case_3)
{
	/* No salt is a salt of zeros; 42 bytes of output are out1 and the first ten of out2. */
	uint8_t ikm[22], salt[32] = {0}, out1[32], out2[32], want[42];

	memset(ikm, 0x0b, sizeof(ikm));
	sl_test_unhex(want, 42,
		"8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96"
		"c8");
	sl_hkdf2(out1, out2, salt, ikm, sizeof(ikm));
	SL_EXPECT_MEM(out1, want, 32);
	SL_EXPECT_MEM(out2, want + 32, 10);
}

/* RFC 2104 in its plain form. */
static void plain_hmac(uint8_t out[32], const uint8_t key[32], const uint8_t *data, size_t len)
{
	uint8_t buf[64 + 512], inner[64 + 32];

	memset(buf, 0x36, 64);
	memset(inner, 0x5c, 64);
	for (unsigned i = 0; i < 32; i++) {
		buf[i] ^= key[i];
		inner[i] ^= key[i];
	}
	memcpy(buf + 64, data, len);
	sl_sha256(inner + 64, buf, 64 + len);
	sl_sha256(out, inner, sizeof(inner));
}

SL_TEST(hash, hkdf_against_plain_hmac)
{
	uint8_t salt[32], ikm[300], prk[32], t[33], want1[32], want2[32], out1[32], out2[32];

	for (size_t len = 0; len <= 300; len++) {
		sl_test_rand_bytes(salt, 32);
		sl_test_rand_bytes(ikm, len);
		plain_hmac(prk, salt, ikm, len);
		plain_hmac(want1, prk, (const uint8_t *)"\x01", 1);
		memcpy(t, want1, 32);
		t[32] = 2;
		plain_hmac(want2, prk, t, 33);

		sl_hkdf2(out1, out2, salt, len ? ikm : NULL, len);
		SL_EXPECT_MEM(out1, want1, 32);
		SL_EXPECT_MEM(out2, want2, 32);
		/* The salt may be either output. */
		memcpy(out1, salt, 32);
		sl_hkdf2(out1, out2, out1, ikm, len);
		SL_EXPECT_MEM(out1, want1, 32);
		SL_EXPECT_MEM(out2, want2, 32);
		memcpy(out2, salt, 32);
		sl_hkdf2(out1, out2, out2, ikm, len);
		SL_EXPECT_MEM(out1, want1, 32);
		SL_EXPECT_MEM(out2, want2, 32);
	}
}

static unsigned kinds_seen;

static void check_dh(char **f)
{
	uint8_t secret[32], public[33], got[32], want[32];
	secp256k1_pubkey point;

	sl_test_unhex(secret, 32, f[1]);
	sl_test_unhex(public, 33, f[2]);
	sl_test_unhex(want, 32, f[3]);
	SL_ASSERT(sl_curve_parse(&point, public) == 0);
	sl_curve_dh(got, &point, secret);
	SL_EXPECT_MEM(got, want, 32);
}

static void check_hkdf(char **f)
{
	uint8_t salt[32], ikm[32], out[64], want[64];
	size_t len = strlen(f[2]) / 2;

	sl_test_unhex(salt, 32, f[1]);
	sl_test_unhex(ikm, len, f[2]);
	sl_test_unhex(want, 64, f[3]);
	sl_hkdf2(out, out + 32, salt, ikm, len);
	SL_EXPECT_MEM(out, want, 64);
}

static void check_aead(char **f)
{
	uint8_t key[32], nonce[12] = {0}, text[64], aad[64], want[80], got[80];
	size_t len = strlen(f[3]) / 2, aad_len = strlen(f[4]) / 2;

	nonce[4] = (uint8_t)strtoul(f[2], NULL, 10);
	sl_test_unhex(key, 32, f[1]);
	sl_test_unhex(text, len, f[3]);
	sl_test_unhex(aad, aad_len, f[4]);
	sl_test_unhex(want, len + 16, f[5]);
	sl_aead_seal_one(got, text, len, aad, aad_len, nonce, key);
	SL_EXPECT_MEM(got, want, len + 16);
}

static void primitive(char **f)
{
	if (strcmp(f[0], "ecdh") == 0) {
		kinds_seen |= 1;
		check_dh(f);
	} else if (strcmp(f[0], "aead") == 0) {
		kinds_seen |= 2;
		check_aead(f);
	} else {
		kinds_seen |= 4;
		check_hkdf(f);
	}
}

SL_TEST(hash, primitives_of_another_implementation)
{
	kinds_seen = 0;
	SL_EXPECT_EQ(csv_each("primitives.csv", primitive), 20);
	SL_EXPECT_EQ(kinds_seen, 7);
}
