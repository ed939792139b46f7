/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the suite over all backends (test_aead.c) does not reach in our own engines: Poly1305 at its
 * edges with chosen one-time keys, bursts of one length, guard pages around every packet of a
 * burst, the self-test, and which engine auto takes.
 */
#include "aead_backend.h"
#include "sl_test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#define TAG SL_AEAD_TAG_BYTES
#define AAD SL_AEAD_AAD_BYTES

static const struct sl_aead_backend *const engines[] = {
#ifdef AEAD_AVX512
	&sl_aead_avx512,
#endif
#ifdef AEAD_AVX2
	&sl_aead_avx2,
#endif
	&sl_aead_auto,
};
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

/* --- Poly1305 -------------------------------------------------------------------------------- */

#ifdef AEAD_AVX512
/* RFC 8439, 2.5, byte by byte: numbers are digits of base 256. */
static void plain_poly(uint8_t tag[16], const uint8_t key[32], const uint8_t *message, size_t len)
{
	uint32_t h[17] = {0}, r[16], carry;

	for (unsigned i = 0; i < 16; i++)
		r[i] = key[i];
	r[3] &= 15, r[7] &= 15, r[11] &= 15, r[15] &= 15;
	r[4] &= 252, r[8] &= 252, r[12] &= 252;
	for (size_t at = 0; at < len; at += 16) {
		size_t n = len - at < 16 ? len - at : 16;
		uint64_t product[36] = {0};

		for (size_t i = 0; i < n; i++)
			h[i] += message[at + i];
		h[n] += 1;
		for (unsigned i = 0; i < 17; i++)
			for (unsigned j = 0; j < 16; j++)
				product[i + j] += (uint64_t)h[i] * r[j];
		for (unsigned i = 0; i < 35; i++) {
			product[i + 1] += product[i] >> 8;
			product[i] &= 255;
		}
		/* 2^130 is 5: everything from bit 130 on comes back five times, until nothing is.
		 */
		for (unsigned again = 0; again < 3; again++) {
			uint64_t top[20];

			for (unsigned i = 0; i < 19; i++)
				top[i] = product[16 + i] >> 2 | (product[17 + i] & 3) << 6;
			product[16] &= 3;
			memset(product + 17, 0, 19 * sizeof(product[0]));
			for (unsigned i = 0; i < 19; i++)
				product[i] += 5 * top[i];
			for (unsigned i = 0; i < 35; i++) {
				product[i + 1] += product[i] >> 8;
				product[i] &= 255;
			}
		}
		for (unsigned i = 0; i < 17; i++)
			h[i] = (uint32_t)product[i];
	}
	/* At most once more than the modulus: it is when adding 5 reaches bit 130. */
	carry = 5;
	uint32_t g[17];
	for (unsigned i = 0; i < 17; i++) {
		carry += h[i];
		g[i] = carry & 255;
		carry >>= 8;
	}
	if (g[16] >= 4)
		memcpy(h, g, sizeof(h));
	carry = 0;
	for (unsigned i = 0; i < 16; i++) {
		carry += h[i] + key[16 + i];
		tag[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

#define POLY_TEXT_MAX 1600u

struct poly_case {
	uint8_t key[32];
	uint8_t message[AAD + POLY_TEXT_MAX +
			32]; /* aad, text, then room for padding and lengths */
	uint32_t len;
};

/* What the tag is over, in p->message itself: behind the text come padding and lengths. */
static size_t poly_message(struct poly_case *p)
{
	size_t end = AAD + (p->len + 15) / 16 * 16;

	memset(p->message + AAD + p->len, 0, end - AAD - p->len);
	memset(p->message + end, 0, 16);
	p->message[end] = AAD;
	p->message[end + 8] = (uint8_t)p->len;
	p->message[end + 9] = (uint8_t)(p->len >> 8);
	return end + 16;
}

static void expect_tags(struct poly_case *p, unsigned n)
{
	struct sl_aead_op ops[16];
	uint8_t key[16][32], tag[16][16], want[16], other[16];

	for (unsigned i = 0; i < n; i++) {
		memcpy(key[i], p[i].key, 32);
		ops[i] = (struct sl_aead_op){
			.text = p[i].message + AAD, .aad = p[i].message, .text_len = p[i].len};
	}
	aead_avx512_poly(tag, (const uint8_t(*)[32])key, ops, n);
	for (unsigned i = 0; i < n; i++) {
		size_t len = poly_message(&p[i]);

		plain_poly(want, p[i].key, p[i].message, len);
		crypto_onetimeauth_poly1305(other, p[i].message, len, p[i].key);
		SL_EXPECT_MEM(want, other, 16);
		SL_EXPECT_MEM(tag[i], want, 16);
	}
}

static bool has_avx512(void)
{
	return sl_aead_avx512.usable();
}

/* Bytes that make limbs all ones, all zeros, or end a run of ones at a bit where limbs meet. */
static void poly_pattern(uint8_t *to, size_t len, unsigned kind)
{
	static const uint8_t bits[] = {0, 1, 26, 43, 44, 45, 52, 64, 87, 88, 89, 104, 127, 128};

	for (size_t i = 0; i < len; i++)
		to[i] = kind % 2 ? 0xff : 0;
	if (kind < 2)
		return;
	kind -= 2;
	if (kind / 2 < sizeof(bits))
		for (size_t bit = 0; bit < 8 * len; bit++)
			if (bit % 128 >= bits[kind / 2])
				to[bit / 8] ^= (uint8_t)(1u << bit % 8);
	if (kind / 2 >= sizeof(bits))
		sl_test_rand_bytes(to, len);
}
#define PATTERNS (2 + 2 * 14 + 1)

SL_TEST(engine_poly, patterns_of_key_and_text)
{
	static const uint32_t lens[] = {
		0, 1, 15, 16, 17, 32, 47, 48, 49, 64, 80, 255, 256, 511, 512, 1024, 1408};
	static struct poly_case p[16];

	if (!has_avx512())
		SL_SKIP("no AVX-512 with IFMA here");
	for (unsigned r = 0; r < PATTERNS && !sl_test_failed(); r++) {
		for (unsigned text = 0; text < PATTERNS; text++) {
			/* Lanes differ in length; s in all lanes and patterns. */
			for (unsigned i = 0; i < 8; i++) {
				poly_pattern(p[i].key, 16, r);
				poly_pattern(p[i].key + 16, 16, (r + text + i) % PATTERNS);
				p[i].len = lens[(text + 3 * i) % 17];
				poly_pattern(p[i].message, AAD + p[i].len, text);
			}
			expect_tags(p, 1 + (r + text) % 8);
			/* One length, sixteen lanes. */
			for (unsigned i = 0; i < 16; i++) {
				poly_pattern(p[i].key, 16, (r + i) % PATTERNS);
				poly_pattern(p[i].key + 16, 16, (text + i) % 2);
				p[i].len = lens[text % 17];
				poly_pattern(p[i].message, AAD + p[i].len, (text + i) % PATTERNS);
			}
			expect_tags(p, 16);
		}
	}
}

/*
 * r = 1: h is the sum of the blocks, k blocks bringing k times 2^128 with them, so that it can have
 * any value. aad is chosen so that aad and lengths together are `off`, modulo 2^128.
 */
static void poly_sum_of_blocks(struct poly_case *p, int off, uint32_t len, uint8_t s)
{
	uint64_t lo = (uint64_t)(int64_t)off - AAD;
	uint64_t hi = (off < (int)AAD ? UINT64_MAX : 0) - len;

	memset(p, 0, sizeof(*p));
	p->key[0] = 1;
	memset(p->key + 16, s, 16);
	p->len = len;
	memcpy(p->message, &lo, 8);
	memcpy(p->message + 8, &hi, 8);
}

/* Around the modulus and 2^130 the last reduction and the addition of s decide. */
SL_TEST(engine_poly, around_the_modulus)
{
	static struct poly_case p[16];

	if (!has_avx512())
		SL_SKIP("no AVX-512 with IFMA here");
	for (int off = -40; off <= 40 && !sl_test_failed(); off++) {
		for (unsigned i = 0; i < 8; i++)
			poly_sum_of_blocks(&p[i], off, 16 * i, i % 2 ? 0xff : 0);
		expect_tags(p, 8);
		for (uint32_t len = 0; len <= 112; len += 16) {
			for (unsigned i = 0; i < 16; i++)
				poly_sum_of_blocks(&p[i], off, len, i % 2 ? 0xff : 0);
			expect_tags(p, 16);
		}
	}
}

SL_TEST(engine_poly, random)
{
	static struct poly_case p[16];

	if (!has_avx512())
		SL_SKIP("no AVX-512 with IFMA here");
	for (unsigned round = 0; round < 300 && !sl_test_failed(); round++) {
		uint32_t top = round % 3 == 0 ? 1600 : 200, len = (uint32_t)(sl_test_rand() % top);

		for (unsigned i = 0; i < 16; i++) {
			sl_test_rand_bytes(p[i].key, 32);
			sl_test_rand_bytes(p[i].message, sizeof(p[i].message));
			p[i].len = len;
		}
		expect_tags(p, 16);
		for (unsigned i = 0; i < 8; i++)
			p[i].len = (uint32_t)(sl_test_rand() % top);
		expect_tags(p, 1 + round % 8);
	}
}
#endif

/* --- bursts ---------------------------------------------------------------------------------- */

#define BURST_MAX 130u
#define EVEN_MAX 2048u

struct memory {
	uint8_t sealed[BURST_MAX][AAD + EVEN_MAX + TAG], work[BURST_MAX][AAD + EVEN_MAX + TAG];
	uint8_t plain[BURST_MAX][AAD + EVEN_MAX], key[BURST_MAX][32], far_aad[BURST_MAX][AAD];
	struct sl_aead_op ops[BURST_MAX];
};

static void fill_burst(struct memory *m, unsigned n, uint32_t len, bool far)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t nonce[12];

		sl_test_rand_bytes(m->plain[i], AAD + len);
		sl_test_rand_bytes(m->key[i], 32);
		memcpy(m->far_aad[i], m->plain[i], AAD);
		memcpy(m->work[i], m->plain[i], AAD + len);
		m->ops[i] = (struct sl_aead_op){
			.text = m->work[i] + AAD,
			.aad = far && i % 3 == 0 ? m->far_aad[i] : m->work[i],
			.key = m->key[i],
			.counter = sl_test_rand() >> sl_test_rand() % 64,
			.text_len = len,
			.slot = i,
		};
		aead_nonce(nonce, m->ops[i].counter);
		memcpy(m->sealed[i], m->plain[i], AAD);
		sl_aead_seal_one(m->sealed[i] + AAD, m->plain[i] + AAD, len, m->plain[i], AAD,
			nonce, m->key[i]);
	}
}

/* n packets of one length; every `bad`th is spoiled before it is opened. */
static void even_burst(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, struct memory *m,
	unsigned n, uint32_t len, unsigned bad, bool far)
{
	unsigned good = 0, got;

	fill_burst(m, n, len, far);
	b->seal(ctx, m->ops, n);
	for (unsigned i = 0; i < n; i++)
		SL_EXPECT_MEM(m->work[i], m->sealed[i], AAD + len + TAG);
	for (unsigned i = 0; i < n; i++) {
		if (bad && i % bad == bad - 1)
			m->work[i][AAD + sl_test_rand() % (len + TAG)] ^=
				(uint8_t)(1u << sl_test_rand() % 8);
		else
			good++;
	}
	got = b->open(ctx, m->ops, n);
	SL_EXPECT_EQ(got, good);
	for (unsigned i = 0; i < n; i++) {
		unsigned slot = m->ops[i].slot;
		bool is_bad = bad && slot % bad == bad - 1;

		SL_EXPECT_EQ(is_bad, i >= got);
		if (i + 1 < n && i + 1 != got)
			SL_EXPECT_LT(slot, m->ops[i + 1].slot);
		if (!is_bad)
			SL_EXPECT_MEM(m->work[slot] + AAD, m->plain[slot] + AAD, len);
		else if (len > 16) /* shorter ones may agree by chance in what was not enciphered */
			SL_EXPECT(memcmp(m->work[slot] + AAD, m->plain[slot] + AAD, len) != 0);
	}
}

SL_TEST(engine, even_bursts)
{
	struct memory *m = malloc(sizeof(*m));

	for (unsigned e = 0; e < ENGINES; e++) {
		struct sl_aead_ctx *ctx;

		if (!engines[e]->usable())
			continue;
		ctx = engines[e]->create(SL_AEAD_BURST_MAX);
		SL_ASSERT(ctx != NULL);
		for (uint32_t len = 0; len <= EVEN_MAX && !sl_test_failed(); len++)
			even_burst(engines[e], ctx, m, 16 + len % 2, len, len % 5 == 0 ? 4 : 0,
				len % 7 == 0);
		for (unsigned n = 1; n <= BURST_MAX && !sl_test_failed(); n++) {
			even_burst(engines[e], ctx, m, n, (uint32_t)(sl_test_rand() % 300), n % 3,
				n % 4 == 0);
			even_burst(engines[e], ctx, m, n, 64 * (n % 5), n % 6, false);
			even_burst(engines[e], ctx, m, n, 600 + n, n % 2 ? n : 0, false);
		}
		/* Nothing but forgeries. */
		even_burst(engines[e], ctx, m, 64, 300, 1, false);
		engines[e]->destroy(ctx);
	}
	free(m);
}

/* Every packet of a burst lies against a page that may not be touched, behind or before. */
#define GUARDED 33u

SL_TEST(engine, guard_pages_around_a_burst)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), each = 4 * page;
	uint8_t *map =
		mmap(NULL, GUARDED * each + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t(*key)[32] = malloc(GUARDED * 32);
	struct sl_aead_op ops[GUARDED];

	SL_ASSERT(map != MAP_FAILED);
	for (unsigned i = 0; i < GUARDED; i++)
		SL_ASSERT(mprotect(map + i * each + page, 3 * page, PROT_READ | PROT_WRITE) == 0);
	sl_test_rand_bytes(key, GUARDED * 32);
	for (unsigned e = 0; e < ENGINES; e++) {
		struct sl_aead_ctx *ctx;

		if (!engines[e]->usable())
			continue;
		ctx = engines[e]->create(GUARDED);
		for (uint32_t round = 0; round < 600 && !sl_test_failed(); round++) {
			unsigned n = round % 2 ? GUARDED : 16 + round % 17;

			for (unsigned i = 0; i < n; i++) {
				uint32_t len =
					round < 300 ? round
						    : (uint32_t)(sl_test_rand() % (3 * page - 32));
				uint8_t *start = map + i * each + page, *end = start + 3 * page;
				uint8_t *aad = (i + round) % 2 ? start : end - TAG - len - AAD;

				memset(aad, (int)(i + round), AAD + len);
				ops[i] = (struct sl_aead_op){aad + AAD, aad, key[i], round, len, i};
			}
			engines[e]->seal(ctx, ops, n);
			SL_EXPECT_EQ(engines[e]->open(ctx, ops, n), n);
			for (unsigned i = 0; i < n; i++)
				for (unsigned k = 0; k < ops[i].text_len; k += 13)
					SL_EXPECT_EQ(ops[i].text[k], (uint8_t)(i + round));
		}
		engines[e]->destroy(ctx);
	}
	free(key);
	munmap(map, GUARDED * each + page);
}

/* --- the self-test and auto ------------------------------------------------------------------ */

static unsigned broken_seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	sl_aead_sodium.seal(ctx, ops, n);
	ops[n - 1].text[ops[n - 1].text_len + 15] ^= 1;
	return n;
}

static unsigned broken_open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	(void)sl_aead_sodium.open(ctx, ops, n);
	return n;
}

/* One wrong byte in one packet. */
static unsigned broken_reseal(struct sl_aead_ctx *ctx, struct sl_aead_reop *ops, unsigned n)
{
	ops[n / 2].text[ops[n / 2].text_len - 1] ^= 1;
	return sl_aead_any_reseal(&sl_aead_sodium, ctx, ops, n);
}

SL_TEST(engine, known_answers)
{
	struct sl_aead_ctx *ctx = sl_aead_sodium.create(64);
	struct sl_aead_backend broken = sl_aead_sodium;
	uint64_t answer[2];

	aead_selftest_fold(answer, &sl_aead_sodium, ctx);
	SL_EXPECT(answer[0] == AEAD_SELFTEST_0 && answer[1] == AEAD_SELFTEST_1);
	/* It can fail. */
	broken.seal = broken_seal;
	aead_selftest_fold(answer, &broken, ctx);
	SL_EXPECT(answer[0] != AEAD_SELFTEST_0 || answer[1] != AEAD_SELFTEST_1);
	broken.seal = sl_aead_sodium.seal;
	broken.open = broken_open;
	aead_selftest_fold(answer, &broken, ctx);
	SL_EXPECT(answer[0] != AEAD_SELFTEST_0 || answer[1] != AEAD_SELFTEST_1);
	broken.open = sl_aead_sodium.open;
	broken.reseal = broken_reseal;
	aead_selftest_fold(answer, &broken, ctx);
	SL_EXPECT(answer[0] != AEAD_SELFTEST_0 || answer[1] != AEAD_SELFTEST_1);
	sl_aead_sodium.destroy(ctx);
	/* Whatever the CPU has, the self-test lets through: nothing is left out in silence. */
#ifdef AEAD_AVX512
	SL_EXPECT_EQ(sl_aead_avx512.usable(), aead_avx512_supported());
#endif
#ifdef AEAD_AVX2
	SL_EXPECT_EQ(sl_aead_avx2.usable(), aead_avx2_supported());
#endif
	for (unsigned e = 0; e < ENGINES; e++) {
		if (!engines[e]->usable())
			continue;
		ctx = engines[e]->create(64);
		aead_selftest_fold(answer, engines[e], ctx);
		SL_EXPECT(answer[0] == AEAD_SELFTEST_0 && answer[1] == AEAD_SELFTEST_1);
		engines[e]->destroy(ctx);
	}
}

/* --- Wycheproof ------------------------------------------------------------------------------ */

static size_t unhex_field(uint8_t *out, const char *hex)
{
	size_t len = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;

	sl_test_unhex(out, len, len ? hex : "");
	return len;
}

/*
 * The engines take 16 bytes of associated data and nonces that begin with zeros, as the protocol
 * has them, which none of these tests has: so the one-message form runs all of them, and the
 * engines' Poly1305 those with 16 bytes of associated data.
 */
SL_TEST(engine, wycheproof)
{
	static char line[8192], f[7][4096];
	static uint8_t key[32], nonce[12], aad[2048], text[2048], sealed[2048], got[2048];
	FILE *in = fopen(SL_VECTORS_DIR "/wycheproof_chacha20_poly1305.txt", "r");
	unsigned ran = 0, poly = 0;

	SL_ASSERT(in != NULL);
	while (fgets(line, sizeof(line), in) && !sl_test_failed()) {
		size_t aad_len, len, sealed_len;
		bool valid;

		if (line[0] == '#')
			continue;
		SL_ASSERT(sscanf(line, "%4095s %4095s %4095s %4095s %4095s %4095s %4095s", f[0],
				  f[1], f[2], f[3], f[4], f[5], f[6]) == 7);
		sl_test_unhex(key, 32, f[1]);
		sl_test_unhex(nonce, 12, f[2]);
		aad_len = unhex_field(aad, f[3]);
		len = unhex_field(text, f[4]);
		sealed_len = unhex_field(sealed, f[5]);
		valid = strcmp(f[6], "valid") == 0;
		SL_EXPECT_EQ(sl_aead_open_one(got, sealed, sealed_len, aad, aad_len, nonce, key),
			valid ? 0 : -EBADMSG);
		if (valid) {
			SL_EXPECT_MEM(got, text, len);
			sl_aead_seal_one(got, text, len, aad, aad_len, nonce, key);
			SL_EXPECT_MEM(got, sealed, sealed_len);
		}
		ran++;
#ifdef AEAD_AVX512
		if (aad_len == AAD && has_avx512()) {
			struct sl_aead_op op = {
				.text = sealed, .aad = aad, .text_len = (uint32_t)len};
			uint8_t once[1][32] = {{0}}, tag[8][16];

			crypto_stream_chacha20_ietf(once[0], 32, nonce, key);
			aead_avx512_poly(tag, (const uint8_t(*)[32])once, &op, 1);
			SL_EXPECT_EQ(memcmp(tag[0], sealed + len, TAG) == 0, valid);
			poly++;
		}
#endif
	}
	fclose(in);
	SL_EXPECT_EQ(ran, 316);
#ifdef AEAD_AVX512
	SL_EXPECT_EQ(poly, has_avx512() ? 25 : 0);
#endif
	(void)poly;
}
