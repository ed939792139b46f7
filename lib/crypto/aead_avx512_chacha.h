/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_AVX512_CHACHA_H
#define SL_AEAD_AVX512_CHACHA_H
/*
 * ChaCha20 (RFC 8439, 2.3) for sixteen lanes at once: vector register w holds word w of sixteen
 * states, one a lane, so a quarter round is the same twelve instructions as for one block. What a
 * lane computes is free: its own key, nonce and block number. docs/aead-engine.md tells the whole
 * story.
 *
 * Invariant of every function here: of a packet's memory only the bytes in its mask are read or
 * written. Private to the AVX-512 engine; compiled with its instruction set.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CHACHA_LANES 16u

/*
 * Sixteen lanes' inputs, transposed. A lane's block at step k has number block + k and its text at
 * text + 64 * k, so that nothing here has to change while a lane stays in one packet.
 */
struct chacha_lanes {
	uint32_t key[8][CHACHA_LANES];
	uint32_t nonce_lo[CHACHA_LANES],
		nonce_hi[CHACHA_LANES]; /* the nonce's first word is always zero */
	uint32_t block[CHACHA_LANES];
	/* Columns 1 to 3 after the first quarter rounds, which do not depend on the block: words
	 * 1-3, 5-7, 9-11, 13-15 */
	uint32_t begun[12][CHACHA_LANES];
	uintptr_t text[CHACHA_LANES];
} __attribute__((aligned(64)));

/* The one-time Poly1305 keys of sixteen packets, as eight 64-bit lanes want them: r and s, low and
 * high halves. */
struct poly_keys {
	uint64_t r_lo[8], r_hi[8], s_lo[8], s_hi[8];
} __attribute__((aligned(64)));

enum chacha_out {
	CHACHA_KEYS,   /* words 0 to 7 become one-time keys: no transposition needed */
	CHACHA_FULL,   /* all lanes have 64 bytes of text */
	CHACHA_MASKED, /* some have fewer or none */
};

/* One step of one set of lanes. */
struct chacha_unit {
	const struct chacha_lanes *lanes;
	const struct chacha_lanes *old; /* of a pair: the same blocks under other keys */
	const uint64_t *mask;	/* CHACHA_MASKED: which of its 64 bytes each lane has */
	struct poly_keys *keys; /* CHACHA_KEYS: two of them */
	uint32_t step;
	enum chacha_out out;
};

/* The rounds work on variables x0 to x15: compilers keep those in registers, of an array they are
 * less sure. */
#define ADD_(x, a, b) x##a = _mm512_add_epi32(x##a, x##b)
#define XRL_(x, d, a, n) x##d = _mm512_rol_epi32(_mm512_xor_si512(x##d, x##a), n)

/* The same third of a quarter round for four independent columns (or diagonals). */
#define THIRD_(x, n, a0, b0, d0, a1, b1, d1, a2, b2, d2, a3, b3, d3)                               \
	do {                                                                                       \
		ADD_(x, a0, b0);                                                                   \
		ADD_(x, a1, b1);                                                                   \
		ADD_(x, a2, b2);                                                                   \
		ADD_(x, a3, b3);                                                                   \
		XRL_(x, d0, a0, n);                                                                \
		XRL_(x, d1, a1, n);                                                                \
		XRL_(x, d2, a2, n);                                                                \
		XRL_(x, d3, a3, n);                                                                \
	} while (0)

#define COLUMN_A_(x, n) THIRD_(x, n, 0, 4, 12, 1, 5, 13, 2, 6, 14, 3, 7, 15)
#define COLUMN_C_(x, n) THIRD_(x, n, 8, 12, 4, 9, 13, 5, 10, 14, 6, 11, 15, 7)
#define DIAGONAL_A_(x, n) THIRD_(x, n, 0, 5, 15, 1, 6, 12, 2, 7, 13, 3, 4, 14)
#define DIAGONAL_C_(x, n) THIRD_(x, n, 10, 15, 5, 11, 12, 6, 8, 13, 7, 9, 14, 4)

/* Columns 1 to 3 only. */
#define BEGIN_A_(x, n)                                                                             \
	do {                                                                                       \
		ADD_(x, 1, 5);                                                                     \
		ADD_(x, 2, 6);                                                                     \
		ADD_(x, 3, 7);                                                                     \
		XRL_(x, 13, 1, n);                                                                 \
		XRL_(x, 14, 2, n);                                                                 \
		XRL_(x, 15, 3, n);                                                                 \
	} while (0)
#define BEGIN_C_(x, n)                                                                             \
	do {                                                                                       \
		ADD_(x, 9, 13);                                                                    \
		ADD_(x, 10, 14);                                                                   \
		ADD_(x, 11, 15);                                                                   \
		XRL_(x, 5, 9, n);                                                                  \
		XRL_(x, 6, 10, n);                                                                 \
		XRL_(x, 7, 11, n);                                                                 \
	} while (0)

#define COLUMNS_1_(x)                                                                              \
	do {                                                                                       \
		COLUMN_A_(x, 16);                                                                  \
		COLUMN_C_(x, 12);                                                                  \
		COLUMN_A_(x, 8);                                                                   \
		COLUMN_C_(x, 7);                                                                   \
	} while (0)
#define DIAGONALS_1_(x)                                                                            \
	do {                                                                                       \
		DIAGONAL_A_(x, 16);                                                                \
		DIAGONAL_C_(x, 12);                                                                \
		DIAGONAL_A_(x, 8);                                                                 \
		DIAGONAL_C_(x, 7);                                                                 \
	} while (0)

/* Two states in step: while one waits for its rotations the other computes. All 32 registers are in
 * use. */
#define COLUMNS_2_(x, y)                                                                           \
	do {                                                                                       \
		COLUMN_A_(x, 16);                                                                  \
		COLUMN_A_(y, 16);                                                                  \
		COLUMN_C_(x, 12);                                                                  \
		COLUMN_C_(y, 12);                                                                  \
		COLUMN_A_(x, 8);                                                                   \
		COLUMN_A_(y, 8);                                                                   \
		COLUMN_C_(x, 7);                                                                   \
		COLUMN_C_(y, 7);                                                                   \
	} while (0)
#define DIAGONALS_2_(x, y)                                                                         \
	do {                                                                                       \
		DIAGONAL_A_(x, 16);                                                                \
		DIAGONAL_A_(y, 16);                                                                \
		DIAGONAL_C_(x, 12);                                                                \
		DIAGONAL_C_(y, 12);                                                                \
		DIAGONAL_A_(x, 8);                                                                 \
		DIAGONAL_A_(y, 8);                                                                 \
		DIAGONAL_C_(x, 7);                                                                 \
		DIAGONAL_C_(y, 7);                                                                 \
	} while (0)

#define CHACHA_INLINE static inline __attribute__((always_inline))

/* "expa" "nd 3" "2-by" "te k" */
static const uint32_t chacha_words[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

/*
 * Makes the compiler forget what it knows of a pointer. Without it, it keeps rows and constants,
 * which are needed before the rounds and behind them, in registers all the while, and spills the
 * states instead. Memory operands are free.
 */
#define FORGET_(p) __asm__("" : "+r"(p))

CHACHA_INLINE __m512i chacha_counter(const struct chacha_lanes *l, uint32_t step)
{
	return _mm512_add_epi32(_mm512_load_si512(l->block), _mm512_set1_epi32((int)step));
}

CHACHA_INLINE void chacha_load(__m512i x[16], const struct chacha_unit *u)
{
	const struct chacha_lanes *l = u->lanes;

	x[0] = _mm512_add_epi32(
		_mm512_load_si512(l->key[0]), _mm512_set1_epi32((int)chacha_words[0]));
	x[4] = _mm512_load_si512(l->key[0]);
	x[8] = _mm512_load_si512(l->key[4]);
	x[12] = chacha_counter(l, u->step);
	x[12] = _mm512_rol_epi32(_mm512_xor_si512(x[12], x[0]), 16);
	x[8] = _mm512_add_epi32(x[8], x[12]);
	x[4] = _mm512_rol_epi32(_mm512_xor_si512(x[4], x[8]), 12);
	x[0] = _mm512_add_epi32(x[0], x[4]);
	x[12] = _mm512_rol_epi32(_mm512_xor_si512(x[12], x[0]), 8);
	x[8] = _mm512_add_epi32(x[8], x[12]);
	x[4] = _mm512_rol_epi32(_mm512_xor_si512(x[4], x[8]), 7);
	for (unsigned c = 1; c < 4; c++) {
		x[c] = _mm512_load_si512(l->begun[c - 1]);
		x[4 + c] = _mm512_load_si512(l->begun[2 + c]);
		x[8 + c] = _mm512_load_si512(l->begun[5 + c]);
		x[12 + c] = _mm512_load_si512(l->begun[8 + c]);
	}
}

/* To be called whenever a key or nonce has changed. */
static inline void chacha_begin(struct chacha_lanes *l)
{
	__m512i x1 = _mm512_set1_epi32((int)chacha_words[1]);
	__m512i x2 = _mm512_set1_epi32((int)chacha_words[2]);
	__m512i x3 = _mm512_set1_epi32((int)chacha_words[3]);
	__m512i x5 = _mm512_load_si512(l->key[1]), x6 = _mm512_load_si512(l->key[2]);
	__m512i x7 = _mm512_load_si512(l->key[3]), x9 = _mm512_load_si512(l->key[5]);
	__m512i x10 = _mm512_load_si512(l->key[6]), x11 = _mm512_load_si512(l->key[7]);
	__m512i x13 = _mm512_setzero_si512(), x14 = _mm512_load_si512(l->nonce_lo);
	__m512i x15 = _mm512_load_si512(l->nonce_hi);

	BEGIN_A_(x, 16);
	BEGIN_C_(x, 12);
	BEGIN_A_(x, 8);
	BEGIN_C_(x, 7);
	_mm512_store_si512(l->begun[0], x1);
	_mm512_store_si512(l->begun[1], x2);
	_mm512_store_si512(l->begun[2], x3);
	_mm512_store_si512(l->begun[3], x5);
	_mm512_store_si512(l->begun[4], x6);
	_mm512_store_si512(l->begun[5], x7);
	_mm512_store_si512(l->begun[6], x9);
	_mm512_store_si512(l->begun[7], x10);
	_mm512_store_si512(l->begun[8], x11);
	_mm512_store_si512(l->begun[9], x13);
	_mm512_store_si512(l->begun[10], x14);
	_mm512_store_si512(l->begun[11], x15);
}

/* Two rows of sixteen 32-bit words to two of eight 64-bit ones, in the lanes' order. */
CHACHA_INLINE void chacha_join(uint64_t first[8], uint64_t second[8], __m512i lo, __m512i hi)
{
	const __m512i head =
		_mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
	const __m512i tail =
		_mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);

	_mm512_store_si512(first, _mm512_permutex2var_epi32(lo, head, hi));
	_mm512_store_si512(second, _mm512_permutex2var_epi32(lo, tail, hi));
}

/* The transposed state is what Poly1305 wants: a lane a packet. */
CHACHA_INLINE void chacha_out_keys(__m512i x[16], const struct chacha_unit *u)
{
	const struct chacha_lanes *l = u->lanes;
	struct poly_keys *k = u->keys;
	const uint32_t *words = chacha_words;

	FORGET_(l);
	FORGET_(words);
	x[0] = _mm512_add_epi32(x[0], _mm512_set1_epi32((int)words[0]));
	x[1] = _mm512_add_epi32(x[1], _mm512_set1_epi32((int)words[1]));
	x[2] = _mm512_add_epi32(x[2], _mm512_set1_epi32((int)words[2]));
	x[3] = _mm512_add_epi32(x[3], _mm512_set1_epi32((int)words[3]));
	x[4] = _mm512_add_epi32(x[4], _mm512_load_si512(l->key[0]));
	x[5] = _mm512_add_epi32(x[5], _mm512_load_si512(l->key[1]));
	x[6] = _mm512_add_epi32(x[6], _mm512_load_si512(l->key[2]));
	x[7] = _mm512_add_epi32(x[7], _mm512_load_si512(l->key[3]));
	chacha_join(k[0].r_lo, k[1].r_lo, x[0], x[1]);
	chacha_join(k[0].r_hi, k[1].r_hi, x[2], x[3]);
	chacha_join(k[0].s_lo, k[1].s_lo, x[4], x[5]);
	chacha_join(k[0].s_hi, k[1].s_hi, x[6], x[7]);
}

/* Four rows of words to four of 16-byte pieces: piece e of a row belongs to lane 4 * piece + e. */
#define TRANSPOSE_WORDS_(a, b, c, d)                                                               \
	do {                                                                                       \
		__m512i ab_lo = _mm512_unpacklo_epi32(a, b), ab_hi = _mm512_unpackhi_epi32(a, b);  \
		__m512i cd_lo = _mm512_unpacklo_epi32(c, d), cd_hi = _mm512_unpackhi_epi32(c, d);  \
		a = _mm512_unpacklo_epi64(ab_lo, cd_lo);                                           \
		b = _mm512_unpackhi_epi64(ab_lo, cd_lo);                                           \
		c = _mm512_unpacklo_epi64(ab_hi, cd_hi);                                           \
		d = _mm512_unpackhi_epi64(ab_hi, cd_hi);                                           \
	} while (0)

/* Four rows of four 16-byte pieces, transposed. */
#define TRANSPOSE_PIECES_(a, b, c, d)                                                              \
	do {                                                                                       \
		__m512i ab_lo = _mm512_shuffle_i32x4(a, b, 0x44),                                  \
			ab_hi = _mm512_shuffle_i32x4(a, b, 0xee);                                  \
		__m512i cd_lo = _mm512_shuffle_i32x4(c, d, 0x44),                                  \
			cd_hi = _mm512_shuffle_i32x4(c, d, 0xee);                                  \
		a = _mm512_shuffle_i32x4(ab_lo, cd_lo, 0x88);                                      \
		b = _mm512_shuffle_i32x4(ab_lo, cd_lo, 0xdd);                                      \
		c = _mm512_shuffle_i32x4(ab_hi, cd_hi, 0x88);                                      \
		d = _mm512_shuffle_i32x4(ab_hi, cd_hi, 0xdd);                                      \
	} while (0)

CHACHA_INLINE void chacha_xor(
	const struct chacha_unit *u, unsigned lane, __m512i stream, bool masked)
{
	void *text = (void *)(u->lanes->text[lane] + (uintptr_t)64 * u->step);

	if (masked) {
		__mmask64 k = u->mask[lane];

		_mm512_mask_storeu_epi8(
			text, k, _mm512_xor_si512(stream, _mm512_maskz_loadu_epi8(k, text)));
	} else {
		_mm512_storeu_si512(text, _mm512_xor_si512(stream, _mm512_loadu_si512(text)));
	}
}

/* What follows the rounds. */
CHACHA_INLINE void chacha_add_inputs(__m512i x[16], const struct chacha_lanes *l, uint32_t step)
{
	const uint32_t *words = chacha_words;

	FORGET_(l);
	FORGET_(words);
	for (unsigned i = 0; i < 4; i++)
		x[i] = _mm512_add_epi32(x[i], _mm512_set1_epi32((int)words[i]));
	for (unsigned i = 0; i < 8; i++)
		x[4 + i] = _mm512_add_epi32(x[4 + i], _mm512_load_si512(l->key[i]));
	x[12] = _mm512_add_epi32(x[12], chacha_counter(l, step));
	x[14] = _mm512_add_epi32(x[14], _mm512_load_si512(l->nonce_lo));
	x[15] = _mm512_add_epi32(x[15], _mm512_load_si512(l->nonce_hi));
}

/* Row l is lane l's block afterwards. */
CHACHA_INLINE void chacha_transpose(__m512i x[16])
{
	TRANSPOSE_WORDS_(x[0], x[1], x[2], x[3]);
	TRANSPOSE_WORDS_(x[4], x[5], x[6], x[7]);
	TRANSPOSE_WORDS_(x[8], x[9], x[10], x[11]);
	TRANSPOSE_WORDS_(x[12], x[13], x[14], x[15]);
	TRANSPOSE_PIECES_(x[0], x[4], x[8], x[12]);
	TRANSPOSE_PIECES_(x[1], x[5], x[9], x[13]);
	TRANSPOSE_PIECES_(x[2], x[6], x[10], x[14]);
	TRANSPOSE_PIECES_(x[3], x[7], x[11], x[15]);
}

CHACHA_INLINE void chacha_out_text(__m512i x[16], const struct chacha_unit *u, bool masked)
{
	chacha_transpose(x);
	for (unsigned l = 0; l < CHACHA_LANES; l++)
		chacha_xor(u, l, x[l], masked);
}

CHACHA_INLINE void chacha_out(__m512i x[16], const struct chacha_unit *u)
{
	if (u->out == CHACHA_KEYS) {
		chacha_out_keys(x, u);
		return;
	}
	chacha_add_inputs(x, u->lanes, u->step);
	if (u->out == CHACHA_FULL)
		chacha_out_text(x, u, false);
	else
		chacha_out_text(x, u, true);
}

#define FROM_ARRAY_(x, a)                                                                          \
	__m512i x##0 = a[0], x##1 = a[1], x##2 = a[2], x##3 = a[3], x##4 = a[4], x##5 = a[5],      \
		x##6 = a[6], x##7 = a[7], x##8 = a[8], x##9 = a[9], x##10 = a[10], x##11 = a[11],  \
		x##12 = a[12], x##13 = a[13], x##14 = a[14], x##15 = a[15]
#define TO_ARRAY_(a, x)                                                                            \
	do {                                                                                       \
		a[0] = x##0, a[1] = x##1, a[2] = x##2, a[3] = x##3;                                \
		a[4] = x##4, a[5] = x##5, a[6] = x##6, a[7] = x##7;                                \
		a[8] = x##8, a[9] = x##9, a[10] = x##10, a[11] = x##11;                            \
		a[12] = x##12, a[13] = x##13, a[14] = x##14, a[15] = x##15;                        \
	} while (0)

static __attribute__((noinline)) void chacha_step_1(const struct chacha_unit *u)
{
	__m512i a[16];

	chacha_load(a, u);
	FROM_ARRAY_(x, a);
	DIAGONALS_1_(x);
	for (unsigned i = 1; i < 10; i++) {
		COLUMNS_1_(x);
		DIAGONALS_1_(x);
	}
	TO_ARRAY_(a, x);
	chacha_out(a, u);
}

static __attribute__((noinline)) void chacha_step_2(
	const struct chacha_unit *u, const struct chacha_unit *v)
{
	__m512i a[16], b[16];

	chacha_load(a, u);
	chacha_load(b, v);
	FROM_ARRAY_(x, a);
	FROM_ARRAY_(y, b);
	DIAGONALS_2_(x, y);
	for (unsigned i = 1; i < 10; i++) {
		COLUMNS_2_(x, y);
		DIAGONALS_2_(x, y);
	}
	TO_ARRAY_(a, x);
	TO_ARRAY_(b, y);
	chacha_out(a, u);
	chacha_out(b, v);
}

/*
 * Both key streams of sixteen blocks, combined before the one transposition: text goes from the old
 * key to the new one and is never plain in memory.
 */
static __attribute__((noinline)) void chacha_step_pair(const struct chacha_unit *u)
{
	struct chacha_unit old = *u;
	__m512i a[16], b[16];

	old.lanes = u->old;
	chacha_load(a, u);
	chacha_load(b, &old);
	FROM_ARRAY_(x, a);
	FROM_ARRAY_(y, b);
	DIAGONALS_2_(x, y);
	for (unsigned i = 1; i < 10; i++) {
		COLUMNS_2_(x, y);
		DIAGONALS_2_(x, y);
	}
	TO_ARRAY_(a, x);
	TO_ARRAY_(b, y);
	chacha_add_inputs(b, u->old, u->step);
	chacha_add_inputs(a, u->lanes, u->step);
	for (unsigned i = 0; i < 16; i++)
		a[i] = _mm512_xor_si512(a[i], b[i]);
	if (u->out == CHACHA_MASKED)
		chacha_out_text(a, u, true);
	else
		chacha_out_text(a, u, false);
}

/*
 * Sixteen keys of 32 bytes into rows of words: the rows' 16-byte pieces are gathered so that one
 * transposition of words leaves the lanes in the packets' order.
 */
CHACHA_INLINE __m512i chacha_gather(
	const uint8_t *const key[CHACHA_LANES], unsigned i, unsigned half)
{
	__m512i row = _mm512_castsi128_si512(
		_mm_loadu_si128((const __m128i *)(const void *)(key[i] + half)));

	row = _mm512_inserti32x4(
		row, _mm_loadu_si128((const __m128i *)(const void *)(key[i + 4] + half)), 1);
	row = _mm512_inserti32x4(
		row, _mm_loadu_si128((const __m128i *)(const void *)(key[i + 8] + half)), 2);
	return _mm512_inserti32x4(
		row, _mm_loadu_si128((const __m128i *)(const void *)(key[i + 12] + half)), 3);
}

static inline void chacha_set_keys(struct chacha_lanes *l, const uint8_t *const key[CHACHA_LANES])
{
	for (unsigned half = 0; half < 2; half++) {
		__m512i a = chacha_gather(key, 0, 16 * half), b = chacha_gather(key, 1, 16 * half);
		__m512i c = chacha_gather(key, 2, 16 * half), d = chacha_gather(key, 3, 16 * half);

		TRANSPOSE_WORDS_(a, b, c, d);
		_mm512_store_si512(l->key[4 * half], a);
		_mm512_store_si512(l->key[4 * half + 1], b);
		_mm512_store_si512(l->key[4 * half + 2], c);
		_mm512_store_si512(l->key[4 * half + 3], d);
	}
}

/* Counters of sixteen lanes into the two words of the nonce. */
static inline void chacha_set_nonces(struct chacha_lanes *l, const uint64_t counter[CHACHA_LANES])
{
	const __m512i low =
		_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
	const __m512i high =
		_mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
	__m512i a = _mm512_load_si512(counter), b = _mm512_load_si512(counter + 8);

	_mm512_store_si512(l->nonce_lo, _mm512_permutex2var_epi32(a, low, b));
	_mm512_store_si512(l->nonce_hi, _mm512_permutex2var_epi32(a, high, b));
}

/* One lane gets another key. Whole rows are written: they are read as such very soon. */
static inline void chacha_set_key(
	struct chacha_lanes *l, unsigned lane, const uint8_t *key, uint64_t counter)
{
	__mmask16 k = (__mmask16)(1u << lane);
	uint32_t word[8];

	memcpy(word, key, sizeof(word));
#define SET_(row, value)                                                                           \
	_mm512_store_si512(row, _mm512_mask_set1_epi32(_mm512_load_si512(row), k, (int)(value)))
	SET_(l->key[0], word[0]);
	SET_(l->key[1], word[1]);
	SET_(l->key[2], word[2]);
	SET_(l->key[3], word[3]);
	SET_(l->key[4], word[4]);
	SET_(l->key[5], word[5]);
	SET_(l->key[6], word[6]);
	SET_(l->key[7], word[7]);
	SET_(l->nonce_lo, (uint32_t)counter);
	SET_(l->nonce_hi, (uint32_t)(counter >> 32));
#undef SET_
}

#endif
