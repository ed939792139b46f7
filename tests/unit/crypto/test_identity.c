/* SPDX-License-Identifier: BSD-3-Clause */
#include "csv.h"
#include "curve.h"
#include "keys.h"
#include "sl_hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <secp256k1_schnorrsig.h>

#define NPUB_A "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m"
#define NSEC_A "nsec1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7rusqpqcc2y"
#define CURVE_ORDER "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd036414"

/* Link layer facts, section 2.4. */
static const struct {
	const char *secret, *compressed, *npub, *addr, *ipv6, *nsec;
} known[] = {
	{KEY_A_SECRET, "0284bf7562262bbd6940085748f3be6afa52ae317155181ece31b66351ccffa4b0", NPUB_A,
		"69e08d65cc3a6b9c2c2ac4bd405e4b0e", "fd69:e08d:65cc:3a6b:9c2c:2ac4:bd40:5e4b",
		NSEC_A},
	{KEY_B_SECRET, "035b5ddab24397e310e24d0a54ba85eaf4fe7d1866555156c7ac4558e674838a0e",
		"npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le",
		"8e302c287eb48d6268122fda760b7727", "fd8e:302c:287e:b48d:6268:122f:da76:b77",
		"nsec1kypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7r7cqzeynpz"},
	{"0000000000000000000000000000000000000000000000000000000000000001",
		"0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
		"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d",
		"132f39a98c31baaddba6525f5d43f295", "fd13:2f39:a98c:31ba:addb:a652:5f5d:43f2",
		NULL},
	{"4242424242424242424242424242424242424242424242424242424242424242",
		"0324653eac434488002cc06bbfb7f10fe18991e35f9fe4302dbea6d2353dc0ab1c",
		"npub1y3jnatzrgjyqqtxqdwlm0ug0uxyerc6lnljrqtd75mfr20wq4vwqskmn49",
		"53d2280d23b40240f82bcf5482961129", "fd53:d228:d23:b402:40f8:2bcf:5482:9611", NULL},
};

SL_TEST(identity, known_values)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct sl_identity *id = identity_from_hex(known[i].secret), *again;
		uint8_t secret[32], compressed[33], addr[16], ipv6[16], want_ipv6[16], xonly[32];
		char text[SL_NPUB_SIZE];

		SL_ASSERT(id != NULL);
		sl_test_unhex(secret, 32, known[i].secret);
		sl_test_unhex(compressed, 33, known[i].compressed);
		sl_test_unhex(addr, 16, known[i].addr);
		SL_EXPECT_MEM(sl_identity_secret(id), secret, 32);
		SL_EXPECT_MEM(sl_identity_compressed(id), compressed, 33);
		SL_EXPECT_MEM(sl_identity_xonly(id), compressed + 1, 32);
		SL_EXPECT_MEM(sl_identity_addr(id)->bytes, addr, 16);
		sl_node_addr_to_ipv6(ipv6, sl_identity_addr(id));
		SL_ASSERT(inet_pton(AF_INET6, known[i].ipv6, want_ipv6) == 1);
		SL_EXPECT_MEM(ipv6, want_ipv6, 16);
		sl_npub_format(text, sl_identity_xonly(id));
		SL_EXPECT_STR(text, known[i].npub);
		SL_EXPECT_EQ(sl_npub_parse(xonly, known[i].npub), 0);
		SL_EXPECT_MEM(xonly, compressed + 1, 32);
		if (known[i].nsec) {
			sl_nsec_format(text, secret);
			SL_EXPECT_STR(text, known[i].nsec);
			again = sl_identity_from_text(known[i].nsec);
			SL_ASSERT(again != NULL);
			SL_EXPECT_MEM(sl_identity_secret(again), secret, 32);
			sl_identity_destroy(again);
		}
		again = sl_identity_from_text(known[i].secret);
		SL_ASSERT(again != NULL);
		SL_EXPECT_MEM(sl_identity_secret(again), secret, 32);
		sl_identity_destroy(again);
		sl_identity_destroy(id);
	}
	sl_identity_destroy(NULL);
}

SL_TEST(identity, range_of_a_secret)
{
	static const struct {
		const char *hex;
		bool ok;
	} cases[] = {
		{"0000000000000000000000000000000000000000000000000000000000000000", false},
		{"0000000000000000000000000000000000000000000000000000000000000001", true},
		{CURVE_ORDER "0", true}, /* n - 1 */
		{CURVE_ORDER "1", false},
		{CURVE_ORDER "2", false},
		{"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t secret[32];
		struct sl_identity *id;

		sl_test_unhex(secret, 32, cases[i].hex);
		errno = 0;
		id = sl_identity_create(secret);
		SL_EXPECT_EQ(id != NULL, cases[i].ok);
		if (!cases[i].ok)
			SL_EXPECT_EQ(errno, EINVAL);
		sl_identity_destroy(id);
		errno = 0;
		id = sl_identity_from_text(cases[i].hex);
		SL_EXPECT_EQ(id != NULL, cases[i].ok);
		if (!cases[i].ok)
			SL_EXPECT_EQ(errno, EINVAL);
		sl_identity_destroy(id);
	}
}

SL_TEST(identity, text_that_is_no_secret)
{
	static const char *const bad[] = {
		"",
		"nsec1",
		"nsec",
		NPUB_A,
		KEY_A_SECRET "00",
		"01020304",
		"0x02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
		"g102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0",
		"b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb",
		" " KEY_A_SECRET,
		KEY_A_SECRET "\n",
		"nsec1Qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7rusqpqcc2y",
		NSEC_A " ",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = 0;
		SL_EXPECT_MSG(sl_identity_from_text(bad[i]) == NULL, "accepted: %s", bad[i]);
		SL_EXPECT_EQ(errno, EINVAL);
	}
	errno = 0;
	SL_EXPECT(sl_identity_from_text(NULL) == NULL);
	SL_EXPECT_EQ(errno, EINVAL);
}

SL_TEST(identity, generated_keys_differ)
{
	struct sl_identity *a = sl_identity_generate(), *b = sl_identity_generate();

	SL_ASSERT(a && b);
	SL_EXPECT(memcmp(sl_identity_xonly(a), sl_identity_xonly(b), 32) != 0);
	SL_EXPECT(!sl_node_addr_equal(sl_identity_addr(a), sl_identity_addr(b)));
	sl_identity_destroy(a);
	sl_identity_destroy(b);
}

SL_TEST(identity, addr_order_is_bytewise)
{
	struct sl_node_addr a = {{0}}, b = {{0}};

	SL_EXPECT(sl_node_addr_equal(&a, &b));
	SL_EXPECT_EQ(sl_node_addr_cmp(&a, &b), 0);
	for (unsigned i = 0; i < 16; i++) {
		memset(&a, 0x7f, sizeof(a));
		memset(&b, 0x7f, sizeof(b));
		b.bytes[i] = 0x80; /* above 0x7f, as unsigned bytes go */
		if (i < 15)
			b.bytes[15] = 0;
		SL_EXPECT_LT(sl_node_addr_cmp(&a, &b), 0);
		SL_EXPECT_GT(sl_node_addr_cmp(&b, &a), 0);
		SL_EXPECT(!sl_node_addr_equal(&a, &b));
	}
}

SL_TEST(text, bech32m_is_taken)
{
	uint8_t got[32], want[32];

	sl_test_unhex(want, 32, "84bf7562262bbd6940085748f3be6afa52ae317155181ece31b66351ccffa4b0");
	SL_EXPECT_EQ(sl_npub_parse(got,
			     "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqgj8cme"),
		0);
	SL_EXPECT_MEM(got, want, 32);
	sl_test_unhex(want, 32, KEY_A_SECRET);
	SL_EXPECT_EQ(sl_nsec_parse(got,
			     "nsec1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7rusq5ug50x"),
		0);
	SL_EXPECT_MEM(got, want, 32);
	/* BIP-173: all upper case is the same text. */
	SL_EXPECT_EQ(sl_npub_parse(got,
			     "NPUB1SJLH2C3X9W7KJSQG2AY080N2LFF2UVT325VPAN33KE34RN8L5JCQAWH57M"),
		0);
}

SL_TEST(text, bech32_rejects)
{
	static const char *const bad[] = {
		"npub1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", /* facts 2.4 */
		"nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5", /* a valid nsec,
										      facts 2.4 */
		NSEC_A,
		"note1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqvy5f8n", /* right
										      checksum,
										      other prefix
										    */
		"npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcpqcrprf", /* padding not
										      zero (lowest
										      bit) */
		"npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcgr6ncqx", /* padding not
										      zero (highest
										      bit) */
		"npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57c", /* a third
										      checksum
										      constant */
		"npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcyjy4js", /* right checksum,
										     a symbol less
										   */
		"npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqqh7wer8", /* a symbol more
										     */
		"NPUB1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m",  /* mixed case */
		"84bf7562262bbd6940085748f3be6afa52ae317155181ece31b66351ccffa4b0",
		"",
	};
	uint8_t out[32];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SL_EXPECT_MSG(sl_npub_parse(out, bad[i]) == -EINVAL, "accepted: %s", bad[i]);
	SL_EXPECT_EQ(sl_npub_parse(out, NULL), -EINVAL);
	SL_EXPECT_EQ(sl_nsec_parse(out, NPUB_A), -EINVAL);
	SL_EXPECT_EQ(sl_nsec_parse(out,
			     "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"),
		0);
}

SL_TEST(text, every_one_character_corruption)
{
	char text[SL_NPUB_SIZE];
	uint8_t out[32];

	for (unsigned kind = 0; kind < 2; kind++) {
		const char *good = kind ? NSEC_A : NPUB_A;

		for (unsigned i = 0; i < SL_NPUB_CHARS; i++) {
			for (unsigned c = 0; c < 256; c++) {
				if ((char)c == good[i])
					continue;
				memcpy(text, good, sizeof(text));
				text[i] = (char)c;
				if ((kind ? sl_nsec_parse(out, text) : sl_npub_parse(out, text)) !=
					-EINVAL)
					sl_test_fail(
						__FILE__, __LINE__, "character %u as %02x", i, c);
			}
		}
		for (unsigned len = 0; len < SL_NPUB_CHARS; len++) {
			memcpy(text, good, sizeof(text));
			text[len] = '\0';
			SL_EXPECT_EQ(kind ? sl_nsec_parse(out, text) : sl_npub_parse(out, text),
				-EINVAL);
		}
	}
}

SL_TEST(text, random_round_trips)
{
	uint8_t in[32], out[32];
	char text[SL_NPUB_SIZE];

	for (unsigned i = 0; i < 500; i++) {
		sl_test_rand_bytes(in, 32);
		sl_npub_format(text, in);
		SL_EXPECT_EQ(strlen(text), SL_NPUB_CHARS);
		SL_EXPECT_EQ(sl_npub_parse(out, text), 0);
		SL_EXPECT_MEM(out, in, 32);
		sl_nsec_format(text, in);
		SL_EXPECT_EQ(sl_nsec_parse(out, text), 0);
		SL_EXPECT_MEM(out, in, 32);
		SL_EXPECT_EQ(sl_npub_parse(out, text), -EINVAL);
	}
}

SL_TEST(text, hex)
{
	uint8_t in[40], out[40];
	char text[81];

	for (size_t len = 0; len <= 40; len++) {
		sl_test_rand_bytes(in, len);
		sl_hex_format(text, in, len);
		SL_EXPECT_EQ(strlen(text), 2 * len);
		SL_EXPECT_EQ(strspn(text, "0123456789abcdef"), 2 * len);
		SL_EXPECT_EQ(sl_hex_parse(out, len, text), 0);
		SL_EXPECT_MEM(out, in, len);
		if (len < 40)
			SL_EXPECT_EQ(sl_hex_parse(out, len + 1, text), -EINVAL);
		if (len == 0)
			continue;
		SL_EXPECT_EQ(sl_hex_parse(out, len - 1, text), -EINVAL);
		text[sl_test_rand() % (2 * len)] = "gG: x-"[sl_test_rand() % 6];
		SL_EXPECT_EQ(sl_hex_parse(out, len, text), -EINVAL);
	}
	SL_EXPECT_EQ(sl_hex_parse(out, 2, "aBCd"), 0);
	SL_EXPECT_EQ(out[0], 0xab);
	SL_EXPECT_EQ(out[1], 0xcd);
	SL_EXPECT_EQ(sl_hex_parse(out, 2, "abc"), -EINVAL);
	SL_EXPECT_EQ(sl_hex_parse(out, 0, NULL), -EINVAL);
	SL_EXPECT_EQ(sl_hex_parse(out, SIZE_MAX, "ab"), -EINVAL);
}

SL_TEST(remote_key, dh_is_the_same_from_both_sides)
{
	for (unsigned i = 0; i < 20; i++) {
		struct sl_identity *a = sl_identity_generate(), *b = sl_identity_generate();
		struct sl_remote_key of_a, of_b, plain;

		SL_ASSERT(a && b);
		SL_ASSERT(sl_remote_key_init(&of_b, sl_identity_xonly(b), a) == 0);
		SL_ASSERT(sl_remote_key_init(&of_a, sl_identity_xonly(a), b) == 0);
		SL_EXPECT(of_a.has_dh_static && of_b.has_dh_static);
		SL_EXPECT_MEM(of_a.dh_static, of_b.dh_static, 32);
		SL_EXPECT_MEM(of_a.xonly, sl_identity_xonly(a), 32);
		SL_EXPECT(sl_node_addr_equal(&of_a.addr, sl_identity_addr(a)));
		SL_ASSERT(sl_remote_key_init(&plain, sl_identity_xonly(a), NULL) == 0);
		SL_EXPECT(!plain.has_dh_static);
		SL_EXPECT_MEM(plain.parsed, of_a.parsed, 64);
		/* In place. */
		SL_ASSERT(sl_remote_key_init(&plain, plain.xonly, b) == 0);
		SL_EXPECT_MEM(&plain, &of_a, sizeof(plain));
		sl_remote_key_fini(&of_a);
		memset(&plain, 0, sizeof(plain));
		SL_EXPECT_MEM(&plain, &of_a, sizeof(plain));
		sl_remote_key_fini(&of_b);
		sl_identity_destroy(a);
		sl_identity_destroy(b);
	}
}

SL_TEST(remote_key, no_point)
{
	static const char *const bad[] = {
		"eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34", /* not on the
										       curve */
		"fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc30", /* beyond the
										       field */
		"0000000000000000000000000000000000000000000000000000000000000000",
		"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sl_remote_key key;
		uint8_t xonly[32];

		sl_test_unhex(xonly, 32, bad[i]);
		SL_EXPECT_EQ(sl_remote_key_init(&key, xonly, NULL), -EINVAL);
	}
}

/* We sign hashes only; the library under us is held to messages of other sizes too. */
static void bip340_other_size(char **f)
{
	secp256k1_schnorrsig_extraparams extra = SECP256K1_SCHNORRSIG_EXTRAPARAMS_INIT;
	uint8_t secret[32], xonly[32], aux[32], msg[128], want[64], sig[64];
	size_t len = strlen(f[4]) / 2;
	secp256k1_xonly_pubkey key;
	secp256k1_keypair pair;

	SL_ASSERT(len <= sizeof(msg));
	sl_test_unhex(secret, 32, f[1]);
	sl_test_unhex(xonly, 32, f[2]);
	sl_test_unhex(aux, 32, f[3]);
	sl_test_unhex(msg, len, f[4]);
	sl_test_unhex(want, 64, f[5]);
	SL_ASSERT(secp256k1_xonly_pubkey_parse(sl_curve_ctx(), &key, xonly) == 1);
	SL_EXPECT_MSG(secp256k1_schnorrsig_verify(sl_curve_ctx(), want, msg, len, &key) == 1, "vector %s: %s", f[0], f[7]);
	SL_ASSERT(secp256k1_keypair_create(sl_curve_ctx(), &pair, secret) == 1);
	extra.ndata = aux;
	SL_ASSERT(secp256k1_schnorrsig_sign_custom(sl_curve_ctx(), sig, msg, len, &pair, &extra) == 1);
	SL_EXPECT_MEM(sig, want, 64);
}

static void bip340(char **f)
{
	uint8_t secret[32], xonly[32], aux[32], msg[32], want[64], sig[64];
	bool valid = strcmp(f[6], "TRUE") == 0;
	struct sl_identity *id;

	if (strlen(f[4]) != 64) {
		bip340_other_size(f);
		return;
	}
	sl_test_unhex(xonly, 32, f[2]);
	sl_test_unhex(msg, 32, f[4]);
	sl_test_unhex(want, 64, f[5]);
	SL_EXPECT_MSG(sl_verify(want, msg, xonly) == valid, "vector %s: %s", f[0], f[7]);
	if (f[1][0] == '\0')
		return;
	sl_test_unhex(secret, 32, f[1]);
	sl_test_unhex(aux, 32, f[3]);
	id = sl_identity_create(secret);
	SL_ASSERT(id != NULL);
	SL_EXPECT_MEM(sl_identity_xonly(id), xonly, 32);
	sl_sign_aux(sig, msg, id, aux);
	SL_EXPECT_MEM(sig, want, 64);
	sl_identity_destroy(id);
}

SL_TEST(sign, bip340_vectors)
{
	SL_EXPECT_EQ(csv_each("bip340.csv", bip340), 19);
}

/* Routing facts, section 14: signed over H(preimage), with all-zero auxiliary data. */
SL_TEST(sign, announces_and_lookups_of_the_facts)
{
	static const struct {
		const char *signer;
		size_t len;
		const char *preimage, *digest, *sig;
	} cases[] = {
		{KEY_A_SECRET, 48,
			"69e08d65cc3a6b9c2c2ac4bd405e4b0e69e08d65cc3a6b9c2c2ac4bd405e4b0e0100000000"
			"00000000f15365000000"
			"00",
			"48f1050a06f20f526a5f0d9bc34d4b7e3d0cd866514c3180179a2ca6e15b97b6",
			"e0ac969b203919767d18bb03d99c0533c7bcc2ca8e57a0fb184cc4859edbfd52"
			"b1702f19e4ad6999462275abf74751f09af7516f18b5c4ec9e721360a680ba05"},
		{KEY_B_SECRET, 48,
			"8e302c287eb48d6268122fda760b772769e08d65cc3a6b9c2c2ac4bd405e4b0e0200000000"
			"00000005f15365000000"
			"00",
			"2da937e219879d5120dd24a94f957518fba0690b3d2065383d8f37bb6b2a5d0f",
			"caed9e4e3f88b96479fe3c539bcae4664fd25954839501b2f11ff173984b3225"
			"554bf40287fcffc7d7fba6940ddcb59d9b1c7b7b47e5669ad847318a9b13641e"},
		{KEY_B_SECRET, 58,
			"0807060504030201 8e302c287eb48d6268122fda760b7727 0200 "
			"8e302c287eb48d6268122fda760b7727"
			"69e08d65cc3a6b9c2c2ac4bd405e4b0e",
			"29fdc312fdbd9c2f7b7555355c1f74429ec4460f7fa763611239170ccef152d8",
			"d5fc27d3667d9720cf41bb93daf151c1ed9820841a88e0b815a77612c429bcdd"
			"5619ee8f0a0b1defadf538cd1fd3cd3796429c82dee996f776dc2d11b11917dc"},
	};

	for (unsigned i = 0; i < 3; i++) {
		struct sl_identity *id = identity_from_hex(cases[i].signer);
		uint8_t preimage[64], digest[32], want_digest[32], sig[64], ours[64];
		const uint8_t aux[32] = {0};

		SL_ASSERT(id != NULL);
		sl_test_unhex(preimage, cases[i].len, cases[i].preimage);
		sl_test_unhex(want_digest, 32, cases[i].digest);
		sl_test_unhex(sig, 64, cases[i].sig);
		sl_sha256(digest, preimage, cases[i].len);
		SL_EXPECT_MEM(digest, want_digest, 32);
		SL_EXPECT(sl_verify(sig, digest, sl_identity_xonly(id)));
		sl_sign_aux(ours, digest, id, aux);
		SL_EXPECT_MEM(ours, sig, 64);
		sl_identity_destroy(id);
	}
}

SL_TEST(sign, every_bit_counts)
{
	struct sl_identity *id = sl_identity_generate();
	uint8_t msg[32], sig[64], again[64], xonly[32];

	SL_ASSERT(id != NULL);
	memcpy(xonly, sl_identity_xonly(id), 32);
	sl_test_rand_bytes(msg, 32);
	sl_sign(sig, msg, id);
	SL_EXPECT(sl_verify(sig, msg, xonly));
	sl_sign(again, msg, id);
	SL_EXPECT(sl_verify(again, msg, xonly));
	SL_EXPECT(memcmp(sig, again, 64) != 0); /* fresh randomness */
	for (unsigned bit = 0; bit < (64 + 32 + 32) * 8; bit++) {
		uint8_t *at = bit < 512	  ? sig + bit / 8
			      : bit < 768 ? msg + bit / 8 - 64
					  : xonly + bit / 8 - 96;
		uint8_t mask = (uint8_t)(1u << bit % 8);

		*at ^= mask;
		SL_EXPECT_MSG(!sl_verify(sig, msg, xonly), "bit %u", bit);
		*at ^= mask;
	}
	SL_EXPECT(sl_verify(sig, msg, xonly));
	sl_identity_destroy(id);
}
