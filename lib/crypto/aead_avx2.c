/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ChaCha20-Poly1305 across packets with AVX2: eight blocks of any packets a step.
 * docs/aead-engine.md explains the idea; this is its small form.
 *
 * A lane takes a packet, longest first, computes its blocks one a step (block 0 is the one-time
 * key) and then takes the next packet, until none is left. Poly1305 runs outside the vectors, two
 * packets side by side, in 64-bit words: the multiplier of an AVX2 machine has time for it.
 *
 * Lengths, addresses and the outcome of authentication steer the course; keys, texts and tags do
 * not.
 */
#include <assert.h>
#include <errno.h>
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#include "aead_backend.h"

#define LANES 8u

/* Inputs of eight states, transposed. */
struct lanes {
	uint32_t key[8][LANES];
	uint32_t block[LANES], nonce_lo[LANES], nonce_hi[LANES];
} __attribute__((aligned(32)));

struct sl_aead_ctx {
	struct lanes lanes;
	uint8_t once[SL_AEAD_BURST_MAX][32]; /* one-time Poly1305 keys; by op, as all arrays here */
	uint8_t tag[SL_AEAD_BURST_MAX][16];
	uint32_t order[SL_AEAD_BURST_MAX]; /* longest first */
	unsigned max_burst;
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
};

/* --- ChaCha20 -------------------------------------------------------------------------------- */

/* By 16 and 8 bits: a shuffle of bytes. Its pattern stays in memory: sixteen registers are just
 * enough for the states, and compilers would keep it in one. */
static const uint8_t by_16[32] __attribute__((aligned(32))) = {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14,
	15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13};
static const uint8_t by_8[32] __attribute__((aligned(32))) = {3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15,
	12, 13, 14, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14};

static inline __attribute__((always_inline)) __m256i rotate_bytes(__m256i x, const uint8_t by[32])
{
	__asm__("vpshufb %1, %0, %0" : "+x"(x) : "m"(*(const __m256i *)(const void *)by));
	return x;
}

#define ROTATE_(x, n) _mm256_or_si256(_mm256_slli_epi32(x, n), _mm256_srli_epi32(x, 32 - (n)))

#define QUARTER_(a, b, c, d)                                                                       \
	do {                                                                                       \
		a = _mm256_add_epi32(a, b);                                                        \
		d = rotate_bytes(_mm256_xor_si256(d, a), by_16);                                   \
		c = _mm256_add_epi32(c, d);                                                        \
		b = _mm256_xor_si256(b, c);                                                        \
		b = ROTATE_(b, 12);                                                                \
		a = _mm256_add_epi32(a, b);                                                        \
		d = rotate_bytes(_mm256_xor_si256(d, a), by_8);                                    \
		c = _mm256_add_epi32(c, d);                                                        \
		b = _mm256_xor_si256(b, c);                                                        \
		b = ROTATE_(b, 7);                                                                 \
	} while (0)

/* Eight rows of eight words, transposed: then row l is eight words of lane l. */
static inline void transpose(__m256i x[8])
{
	__m256i t[8], u[8];

	for (unsigned i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
		t[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
	}
	for (unsigned i = 0; i < 8; i += 4) {
		u[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
		u[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
		u[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
		u[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
	}
	for (unsigned i = 0; i < 4; i++) {
		x[i] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x20);
		x[i + 4] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x31);
	}
}

static inline __m256i row(const uint32_t r[LANES])
{
	return _mm256_load_si256((const __m256i *)(const void *)r);
}

/* One block of each lane: lane l's key stream is head[l] and tail[l]. The next block number is set. */
static inline __attribute__((always_inline)) void chacha_blocks(
	struct lanes *l, __m256i head[LANES], __m256i tail[LANES])
{
	__m256i c0 = _mm256_set1_epi32(0x61707865), c1 = _mm256_set1_epi32(0x3320646e);
	__m256i c2 = _mm256_set1_epi32(0x79622d32), c3 = _mm256_set1_epi32(0x6b206574);
	__m256i x0 = c0, x1 = c1, x2 = c2, x3 = c3, x4 = row(l->key[0]), x5 = row(l->key[1]);
	__m256i x6 = row(l->key[2]), x7 = row(l->key[3]), x8 = row(l->key[4]);
	__m256i x9 = row(l->key[5]), x10 = row(l->key[6]), x11 = row(l->key[7]);
	__m256i x12 = row(l->block), x13 = _mm256_setzero_si256(), x14 = row(l->nonce_lo);
	__m256i x15 = row(l->nonce_hi);

	for (unsigned i = 0; i < 10; i++) {
		QUARTER_(x0, x4, x8, x12);
		QUARTER_(x1, x5, x9, x13);
		QUARTER_(x2, x6, x10, x14);
		QUARTER_(x3, x7, x11, x15);
		QUARTER_(x0, x5, x10, x15);
		QUARTER_(x1, x6, x11, x12);
		QUARTER_(x2, x7, x8, x13);
		QUARTER_(x3, x4, x9, x14);
	}
	/* What is added is read again, not kept in registers all the while. */
	__asm__("" : "+r"(l));
	tail[0] = _mm256_add_epi32(x8, row(l->key[4]));
	tail[1] = _mm256_add_epi32(x9, row(l->key[5]));
	tail[2] = _mm256_add_epi32(x10, row(l->key[6]));
	tail[3] = _mm256_add_epi32(x11, row(l->key[7]));
	tail[4] = _mm256_add_epi32(x12, row(l->block));
	tail[5] = x13;
	tail[6] = _mm256_add_epi32(x14, row(l->nonce_lo));
	tail[7] = _mm256_add_epi32(x15, row(l->nonce_hi));
	head[0] = _mm256_add_epi32(x0, c0);
	head[1] = _mm256_add_epi32(x1, c1);
	head[2] = _mm256_add_epi32(x2, c2);
	head[3] = _mm256_add_epi32(x3, c3);
	head[4] = _mm256_add_epi32(x4, row(l->key[0]));
	head[5] = _mm256_add_epi32(x5, row(l->key[1]));
	head[6] = _mm256_add_epi32(x6, row(l->key[2]));
	head[7] = _mm256_add_epi32(x7, row(l->key[3]));
	_mm256_store_si256((__m256i *)(void *)l->block,
		_mm256_add_epi32(row(l->block), _mm256_set1_epi32(1)));
	transpose(head);
	transpose(tail);
}

/* out[l] is lane l's key stream. */
static __attribute__((noinline)) void chacha_stream(struct lanes *l, __m256i out[LANES][2])
{
	__m256i head[LANES], tail[LANES];

	chacha_blocks(l, head, tail);
	for (unsigned i = 0; i < LANES; i++) {
		out[i][0] = head[i];
		out[i][1] = tail[i];
	}
}

/* The next 64 bytes of every lane's text, `steps` times. */
static __attribute__((noinline)) void chacha_text(
	struct lanes *l, uint8_t *const text[LANES], uint64_t steps)
{
	__m256i head[LANES], tail[LANES];

	for (uint64_t s = 0; s < steps; s++) {
		chacha_blocks(l, head, tail);
		for (unsigned i = 0; i < LANES; i++) {
			__m256i *to = (__m256i *)(void *)(text[i] + 64 * s);

			_mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), head[i]));
			_mm256_storeu_si256(
				to + 1, _mm256_xor_si256(_mm256_loadu_si256(to + 1), tail[i]));
		}
	}
}

static inline void xor_block(uint8_t *text, const __m256i stream[2])
{
	__m256i *to = (__m256i *)(void *)text;

	_mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), stream[0]));
	_mm256_storeu_si256(to + 1, _mm256_xor_si256(_mm256_loadu_si256(to + 1), stream[1]));
}

/* The last, short block goes through a buffer: nothing behind the text is touched. */
static void xor_tail(uint8_t *text, uint32_t len, const __m256i stream[2])
{
	uint8_t whole[64] __attribute__((aligned(32))) = {0};

	memcpy(whole, text, len);
	xor_block(whole, stream);
	memcpy(text, whole, len);
	_mm256_store_si256((__m256i *)(void *)whole, _mm256_setzero_si256());
	_mm256_store_si256((__m256i *)(void *)(whole + 32), _mm256_setzero_si256());
	__asm__ volatile("" : : "r"(whole) : "memory");
}

/* What a lane works on. */
struct work {
	struct sl_aead_op *op;
	uint8_t *once;
	uint64_t left;	/* bytes of text before it */
	uint32_t block; /* the next one */
	bool busy;
};

struct run {
	struct work lane[LANES];
	unsigned next, busy; /* of the order; lanes at work */
	uint32_t from;	     /* 0: the one-time key first, 1: the text */
	bool keys_only;
};

/* Lanes without work take the next packets: the rows of all lanes are made anew, since words that are
 * written one by one keep whole rows from being read for a while. */
static void take_packets(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n, struct run *r)
{
	__m256i key[LANES];
	uint32_t block[LANES] __attribute__((aligned(32)));
	uint32_t low[LANES] __attribute__((aligned(32))), high[LANES] __attribute__((aligned(32)));
	bool taken = false;

	for (unsigned l = 0; l < LANES; l++) {
		struct work *w = &r->lane[l];

		while (!w->busy && r->next < n) {
			uint32_t i = ctx->order[r->next++];

			/* A packet without text has no text blocks. */
			if (r->from > 0 && ops[i].text_len == 0)
				continue;
			w->op = &ops[i];
			w->once = ctx->once[i];
			w->left = r->keys_only ? 0 : ops[i].text_len;
			w->block = r->from;
			w->busy = true;
			r->busy++;
			taken = true;
		}
	}
	if (!taken)
		return;
	for (unsigned l = 0; l < LANES; l++) {
		/* A lane that has had none computes what the first one does, for nobody. */
		const struct work *w = r->lane[l].op ? &r->lane[l] : &r->lane[0];

		key[l] = _mm256_loadu_si256((const __m256i *)(const void *)w->op->key);
		block[l] = w->block;
		low[l] = (uint32_t)w->op->counter;
		high[l] = (uint32_t)(w->op->counter >> 32);
	}
	transpose(key);
	for (unsigned i = 0; i < LANES; i++)
		_mm256_store_si256((__m256i *)(void *)ctx->lanes.key[i], key[i]);
	memcpy(ctx->lanes.block, block, sizeof(block));
	memcpy(ctx->lanes.nonce_lo, low, sizeof(low));
	memcpy(ctx->lanes.nonce_hi, high, sizeof(high));
}

static inline uint8_t *next_text(const struct work *w)
{
	return w->op->text + ((uint64_t)w->block - 1) * 64;
}

static inline void leave(struct run *r, struct work *w)
{
	w->busy = false;
	r->busy--;
}

/* As many steps as all lanes have whole blocks of text; how many. */
static uint64_t run_whole(struct sl_aead_ctx *ctx, struct run *r)
{
	uint8_t *text[LANES];
	uint64_t steps = UINT64_MAX;

	if (r->busy < LANES)
		return 0;
	for (unsigned l = 0; l < LANES; l++) {
		uint64_t whole = r->lane[l].block > 0 ? r->lane[l].left / 64 : 0;

		steps = whole < steps ? whole : steps;
		text[l] = next_text(&r->lane[l]);
	}
	if (steps == 0)
		return 0;
	chacha_text(&ctx->lanes, text, steps);
	for (unsigned l = 0; l < LANES; l++) {
		struct work *w = &r->lane[l];

		w->block += (uint32_t)steps;
		w->left -= 64 * steps;
		if (w->left == 0)
			leave(r, w);
	}
	return steps;
}

/* One step in which a lane may have anything before it. */
static void run_step(struct sl_aead_ctx *ctx, struct run *r, __m256i out[LANES][2])
{
	chacha_stream(&ctx->lanes, out);
	for (unsigned l = 0; l < LANES; l++) {
		struct work *w = &r->lane[l];

		if (!w->busy)
			continue;
		if (w->block == 0) {
			_mm256_storeu_si256((__m256i *)(void *)w->once, out[l][0]);
		} else if (w->left >= 64) {
			xor_block(next_text(w), out[l]);
			w->left -= 64;
		} else {
			xor_tail(next_text(w), (uint32_t)w->left, out[l]);
			w->left = 0;
		}
		w->block++;
		if (w->left == 0)
			leave(r, w);
	}
}

/*
 * Blocks `from` (0: the one-time key, 1: the text) to the packet's last, or the one-time keys only,
 * of the ops in order[0] to order[n - 1].
 */
static void chacha_run(
	struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n, uint32_t from, bool keys_only)
{
	struct run r = {.from = from, .keys_only = keys_only};
	__m256i out[LANES][2];

	for (;;) {
		take_packets(ctx, ops, n, &r);
		if (r.busy == 0)
			break;
		if (run_whole(ctx, &r) == 0)
			run_step(ctx, &r, out);
	}
	sl_wipe(out, sizeof(out));
}

/* --- Poly1305 -------------------------------------------------------------------------------- */

/*
 * h and r in 64-bit words. r1 is a multiple of 4 (it is clamped), so 2^128 * r1 / 4 * 4 = 5 * r1 /
 * 4 modulo 2^130 - 5 fits a word: s1.
 */
struct poly {
	uint64_t h0, h1, h2, r0, r1, s1;
};

typedef unsigned __int128 uint128;

static inline uint64_t load_64(const uint8_t *p)
{
	uint64_t x;

	memcpy(&x, p, 8);
	return x;
}

static inline void poly_init(struct poly *p, const uint8_t key[32])
{
	p->h0 = p->h1 = p->h2 = 0;
	p->r0 = load_64(key) & 0x0ffffffc0fffffff;
	p->r1 = load_64(key + 8) & 0x0ffffffc0ffffffc;
	p->s1 = p->r1 + (p->r1 >> 2);
}

/*
 * Sums with carry by hand: of what says the same in C gcc 12 makes several times the instructions,
 * and keeps pairs of words in memory.
 */
#define ADD_2_(a0, a1, b0, b1)                                                                     \
	__asm__("addq %2, %0\n\tadcq %3, %1"                                                       \
		: "+&r"(a0), "+r"(a1)                                                              \
		: "r"(b0), "re"(b1)                                                                \
		: "cc")
#define ADD_3_(a0, a1, a2, b0, b1, b2)                                                             \
	__asm__("addq %3, %0\n\tadcq %4, %1\n\tadcq %5, %2"                                       \
		: "+&r"(a0), "+&r"(a1), "+r"(a2)                                                   \
		: "r"(b0), "re"(b1), "re"(b2)                                                      \
		: "cc")

/* h = (h + m + 2^128) * r, h2 below 8 afterwards. */
static inline __attribute__((always_inline)) void poly_block(
	struct poly *p, uint64_t m0, uint64_t m1)
{
	const uint64_t none = 0, one = 1;
	uint64_t h0 = p->h0, h1 = p->h1, h2 = p->h2, c;
	unsigned long long d0, d0_hi, d1, d1_hi, e, e_hi;

	ADD_3_(h0, h1, h2, m0, m1, one);
	d0 = _mulx_u64(h0, p->r0, &d0_hi);
	e = _mulx_u64(h1, p->s1, &e_hi);
	ADD_2_(d0, d0_hi, e, e_hi);
	d1 = _mulx_u64(h0, p->r1, &d1_hi);
	e = _mulx_u64(h1, p->r0, &e_hi);
	ADD_2_(d1, d1_hi, e, e_hi);
	c = h2 * p->s1;
	ADD_2_(d1, d1_hi, c, none);
	ADD_2_(d1, d1_hi, d0_hi, none);
	h2 = h2 * p->r0 + d1_hi;
	h0 = d0;
	h1 = d1;
	/* What is above bit 130 comes back five times: h2 / 4 * 5 = (h2 & ~3) + h2 / 4. */
	c = (h2 & ~(uint64_t)3) + (h2 >> 2);
	h2 &= 3;
	ADD_3_(h0, h1, h2, c, none, none);
	p->h0 = h0;
	p->h1 = h1;
	p->h2 = h2;
}

/* The rest of a message from text block `from` on, lengths and s. */
static void poly_end(struct poly *p, uint8_t tag[16], const struct sl_aead_op *op, uint32_t from,
	const uint8_t key[32])
{
	uint32_t whole = op->text_len / 16, rest = op->text_len % 16;
	uint64_t g0, g1, g2, mask, lo, hi;
	uint128 d;

	for (uint32_t i = from; i < whole; i++)
		poly_block(p, load_64(op->text + (uint64_t)16 * i),
			load_64(op->text + (uint64_t)16 * i + 8));
	if (rest > 0) {
		uint8_t last[16] = {0};

		memcpy(last, op->text + (uint64_t)16 * whole, rest);
		poly_block(p, load_64(last), load_64(last + 8));
	}
	poly_block(p, SL_AEAD_AAD_BYTES, op->text_len);
	/* g = h + 5 - 2^130; h where that is negative. h is below twice the modulus. */
	d = (uint128)p->h0 + 5;
	g0 = (uint64_t)d;
	d = (uint128)p->h1 + (uint64_t)(d >> 64);
	g1 = (uint64_t)d;
	g2 = p->h2 + (uint64_t)(d >> 64);
	mask = 0 - (g2 >> 2);
	lo = (p->h0 & ~mask) | (g0 & mask);
	hi = (p->h1 & ~mask) | (g1 & mask);
	d = (uint128)lo + load_64(key + 16);
	lo = (uint64_t)d;
	hi += load_64(key + 24) + (uint64_t)(d >> 64);
	memcpy(tag, &lo, 8);
	memcpy(tag + 8, &hi, 8);
}

static inline void poly_begin(struct poly *p, const struct sl_aead_op *op, const uint8_t key[32])
{
	poly_init(p, key);
	poly_block(p, load_64(op->aad), load_64(op->aad + 8));
}

/* Two packets in step as far as both go: one alone would wait for its multiplications. */
static void poly_pair(struct sl_aead_ctx *ctx, const struct sl_aead_op *ops, uint32_t a, uint32_t b)
{
	const struct sl_aead_op *x = &ops[a], *y = &ops[b];
	uint32_t both = (x->text_len < y->text_len ? x->text_len : y->text_len) / 16;
	struct poly p, q;

	poly_begin(&p, x, ctx->once[a]);
	poly_begin(&q, y, ctx->once[b]);
	for (uint32_t i = 0; i < both; i++) {
		const uint8_t *s = x->text + (uint64_t)16 * i, *t = y->text + (uint64_t)16 * i;

		poly_block(&p, load_64(s), load_64(s + 8));
		poly_block(&q, load_64(t), load_64(t + 8));
	}
	poly_end(&p, ctx->tag[a], x, both, ctx->once[a]);
	poly_end(&q, ctx->tag[b], y, both, ctx->once[b]);
}

static void tags(struct sl_aead_ctx *ctx, const struct sl_aead_op *ops, unsigned n)
{
	unsigned i = 0;

	for (; i + 1 < n; i += 2)
		poly_pair(ctx, ops, ctx->order[i], ctx->order[i + 1]);
	if (i < n) {
		uint32_t a = ctx->order[i];
		struct poly p;

		poly_begin(&p, &ops[a], ctx->once[a]);
		poly_end(&p, ctx->tag[a], &ops[a], 0, ctx->once[a]);
	}
}

/* --- bursts ---------------------------------------------------------------------------------- */

/* Longest first, equal ones as they came. */
static void arrange(struct sl_aead_ctx *ctx, const struct sl_aead_op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t len = ops[i].text_len;
		unsigned j = i;

		for (; j > 0 && ops[ctx->order[j - 1]].text_len < len; j--)
			ctx->order[j] = ctx->order[j - 1];
		ctx->order[j] = i;
	}
}

static void wipe(struct sl_aead_ctx *ctx, unsigned n)
{
	memset(ctx->once, 0, n * sizeof(ctx->once[0]));
	memset(&ctx->lanes, 0, sizeof(ctx->lanes));
	__asm__ volatile("" : : "r"(ctx) : "memory");
}

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	assert(n <= ctx->max_burst);
	arrange(ctx, ops, n);
	chacha_run(ctx, ops, n, 0, false);
	tags(ctx, ops, n);
	for (unsigned i = 0; i < n; i++)
		memcpy(ops[i].text + ops[i].text_len, ctx->tag[i], SL_AEAD_TAG_BYTES);
	wipe(ctx, n);
	return n;
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	unsigned good = 0;

	assert(n <= ctx->max_burst);
	arrange(ctx, ops, n);
	chacha_run(ctx, ops, n, 0, true);
	tags(ctx, ops, n);
	/* What did not authenticate is left as it was: it leaves the order. */
	for (unsigned i = 0; i < n; i++) {
		uint32_t a = ctx->order[i];

		ctx->ok[a] = aead_tag_equal(ctx->tag[a], ops[a].text + ops[a].text_len);
		if (ctx->ok[a])
			ctx->order[good++] = a;
	}
	chacha_run(ctx, ops, good, 1, false);
	wipe(ctx, n);
	return good == n ? n : aead_partition(ops, n, ctx->ok, ctx->spare);
}

static struct sl_aead_ctx *create(unsigned max_burst)
{
	struct sl_aead_ctx *ctx;
	size_t size = (sizeof(*ctx) + 63) / 64 * 64;

	if (max_burst == 0 || max_burst > SL_AEAD_BURST_MAX) {
		errno = EINVAL;
		return NULL;
	}
	ctx = aligned_alloc(64, size);
	if (!ctx)
		return NULL;
	memset(ctx, 0, size);
	ctx->max_burst = max_burst;
	return ctx;
}

static void destroy(struct sl_aead_ctx *ctx)
{
	if (!ctx)
		return;
	sl_wipe(ctx, sizeof(*ctx));
	free(ctx);
}

const struct sl_aead_backend sl_aead_avx2 = {
	.name = "avx2",
	.usable = aead_avx2_usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
