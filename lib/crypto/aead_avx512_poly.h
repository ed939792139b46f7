/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_AVX512_POLY_H
#define SL_AEAD_AVX512_POLY_H
/*
 * Poly1305 (RFC 8439, 2.5) of eight packets at once, one a 64-bit lane: the arithmetic.
 *
 * A number is three vectors of limbs of 44, 44 and 42 bits, so that the 52-bit multiply-adds (low
 * and high half of a product) accumulate without a carry in between. Two blocks a turn, h = (h +
 * m0) * r^2 + m1 * r, or four, with one carry for all of them.
 */
#include "aead_avx512_chacha.h"

#define POLY_LANES 8u

/* A multiplier: its limbs, and twenty times the upper two (2^132 is 4 * 5 modulo 2^130 - 5). */
struct poly_power {
	__m512i r0, r1, r2, s1, s2;
};

struct poly_sum {
	__m512i lo0, lo1, lo2, hi0, hi1, hi2;
};

#define POLY_INLINE static inline __attribute__((always_inline))
#define POLY_M44 _mm512_set1_epi64((1ll << 44) - 1)
#define POLY_M42 _mm512_set1_epi64((1ll << 42) - 1)

POLY_INLINE struct poly_sum poly_zero(void)
{
	__m512i z = _mm512_setzero_si512();

	return (struct poly_sum){z, z, z, z, z, z};
}

/* sum += x * p. Limbs of x stay below 2^46, those of p below 2^45, s below 2^50: a
 * dozen products and the pad fit with room. */
POLY_INLINE void poly_mul(struct poly_sum *a, const __m512i x[3], const struct poly_power *p)
{
	a->lo0 = _mm512_madd52lo_epu64(a->lo0, x[0], p->r0);
	a->hi0 = _mm512_madd52hi_epu64(a->hi0, x[0], p->r0);
	a->lo1 = _mm512_madd52lo_epu64(a->lo1, x[0], p->r1);
	a->hi1 = _mm512_madd52hi_epu64(a->hi1, x[0], p->r1);
	a->lo2 = _mm512_madd52lo_epu64(a->lo2, x[0], p->r2);
	a->hi2 = _mm512_madd52hi_epu64(a->hi2, x[0], p->r2);
	a->lo0 = _mm512_madd52lo_epu64(a->lo0, x[1], p->s2);
	a->hi0 = _mm512_madd52hi_epu64(a->hi0, x[1], p->s2);
	a->lo1 = _mm512_madd52lo_epu64(a->lo1, x[1], p->r0);
	a->hi1 = _mm512_madd52hi_epu64(a->hi1, x[1], p->r0);
	a->lo2 = _mm512_madd52lo_epu64(a->lo2, x[1], p->r1);
	a->hi2 = _mm512_madd52hi_epu64(a->hi2, x[1], p->r1);
	a->lo0 = _mm512_madd52lo_epu64(a->lo0, x[2], p->s1);
	a->hi0 = _mm512_madd52hi_epu64(a->hi0, x[2], p->s1);
	a->lo1 = _mm512_madd52lo_epu64(a->lo1, x[2], p->s2);
	a->hi1 = _mm512_madd52hi_epu64(a->hi1, x[2], p->s2);
	a->lo2 = _mm512_madd52lo_epu64(a->lo2, x[2], p->r0);
	a->hi2 = _mm512_madd52hi_epu64(a->hi2, x[2], p->r0);
}

/*
 * To limbs again: h[1] < 2^44, h[2] < 2^42, h[0] less than 2^17 above 2^44. A high half weighs 2^52
 * of its limb, which is 2^8 of the next one (2^10 * 5 of the first, behind the last). A multiply-add
 * shifts and adds in one; its low 52 bits are all there is: for four blocks and the pad hi0 and hi1
 * stay below 2^43, hi2 below 2^39.
 */
POLY_INLINE void poly_carry(__m512i h[3], const struct poly_sum *a)
{
	const __m512i up = _mm512_set1_epi64(1 << 8);
	__m512i lo0 = _mm512_madd52lo_epu64(a->lo0, a->hi2, _mm512_set1_epi64(5 << 10));
	__m512i lo1 = _mm512_madd52lo_epu64(a->lo1, a->hi0, up);
	__m512i lo2 = _mm512_madd52lo_epu64(a->lo2, a->hi1, up);

	lo1 = _mm512_add_epi64(lo1, _mm512_srli_epi64(lo0, 44));
	lo2 = _mm512_add_epi64(lo2, _mm512_srli_epi64(lo1, 44));
	h[0] = _mm512_and_si512(lo0, POLY_M44);
	h[1] = _mm512_and_si512(lo1, POLY_M44);
	h[2] = _mm512_and_si512(lo2, POLY_M42);
	h[0] = _mm512_madd52lo_epu64(h[0], _mm512_srli_epi64(lo2, 42), _mm512_set1_epi64(5));
}

/* Texts of this length and longer are worth four powers. */
#define POLY_LONG 257u

POLY_INLINE __m512i poly_times_20(__m512i x)
{
	return _mm512_madd52lo_epu64(_mm512_setzero_si512(), x, _mm512_set1_epi64(20));
}

POLY_INLINE struct poly_power poly_power(const __m512i h[3])
{
	return (struct poly_power){h[0], h[1], h[2], poly_times_20(h[1]), poly_times_20(h[2])};
}

/* Sixteen bytes a lane to limbs; there is 1 where the block is there (its 129th bit), 0 where not. */
POLY_INLINE void poly_limbs(__m512i m[3], __m512i lo, __m512i hi, __m512i there)
{
	m[0] = _mm512_and_si512(lo, POLY_M44);
	m[1] = _mm512_and_si512(_mm512_shrdi_epi64(lo, hi, 44), POLY_M44);
	m[2] = _mm512_shrdi_epi64(hi, there, 24);
}

POLY_INLINE void poly_add(__m512i m[3], const __m512i h[3])
{
	m[0] = _mm512_add_epi64(m[0], h[0]);
	m[1] = _mm512_add_epi64(m[1], h[1]);
	m[2] = _mm512_add_epi64(m[2], h[2]);
}

/* A block of eight lanes: halves of its sixteen bytes. */
struct poly_block {
	__m512i lo, hi;
};

/* h = (h + m0) * r^2 + m1 * r */
POLY_INLINE void poly_two(__m512i h[3], const struct poly_power p[2], const struct poly_block *m0,
	__m512i there0, const struct poly_block *m1, __m512i there1)
{
	struct poly_sum a = poly_zero();
	__m512i m[3];

	poly_limbs(m, m1->lo, m1->hi, there1);
	poly_mul(&a, m, &p[0]);
	poly_limbs(m, m0->lo, m0->hi, there0);
	poly_add(m, h);
	poly_mul(&a, m, &p[1]);
	poly_carry(h, &a);
}

/* h = (h + m) * r */
POLY_INLINE void poly_one(
	__m512i h[3], const struct poly_power *p, const struct poly_block *block)
{
	struct poly_sum a = poly_zero();
	__m512i m[3];

	poly_limbs(m, block->lo, block->hi, _mm512_set1_epi64(1));
	poly_add(m, h);
	poly_mul(&a, m, p);
	poly_carry(h, &a);
}

/* 2^128 * (r + r^2 + r^3 + r^4), not carried. */
POLY_INLINE void poly_pad(struct poly_sum *pad, const struct poly_power p[4])
{
	const __m512i bit = _mm512_set1_epi64(1ll << 40);
	__m512i r[3];
	struct poly_power sum;
	struct poly_sum a = poly_zero();

	r[0] = _mm512_add_epi64(
		_mm512_add_epi64(p[0].r0, p[1].r0), _mm512_add_epi64(p[2].r0, p[3].r0));
	r[1] = _mm512_add_epi64(
		_mm512_add_epi64(p[0].r1, p[1].r1), _mm512_add_epi64(p[2].r1, p[3].r1));
	r[2] = _mm512_add_epi64(
		_mm512_add_epi64(p[0].r2, p[1].r2), _mm512_add_epi64(p[2].r2, p[3].r2));
	sum = poly_power(r);
	a.lo0 = _mm512_madd52lo_epu64(a.lo0, bit, sum.s1);
	a.hi0 = _mm512_madd52hi_epu64(a.hi0, bit, sum.s1);
	a.lo1 = _mm512_madd52lo_epu64(a.lo1, bit, sum.s2);
	a.hi1 = _mm512_madd52hi_epu64(a.hi1, bit, sum.s2);
	a.lo2 = _mm512_madd52lo_epu64(a.lo2, bit, sum.r0);
	a.hi2 = _mm512_madd52hi_epu64(a.hi2, bit, sum.r0);
	*pad = a;
}

/* Eight windows of 64 bytes to four blocks of eight lanes. */
POLY_INLINE void poly_transpose(struct poly_block out[4], const __m512i x[8])
{
	__m512i a, b, c, d;

	/* Pairs of lanes in each 16-byte piece, then the pieces of four pairs. */
	a = _mm512_unpacklo_epi64(x[0], x[1]);
	b = _mm512_unpacklo_epi64(x[2], x[3]);
	c = _mm512_unpacklo_epi64(x[4], x[5]);
	d = _mm512_unpacklo_epi64(x[6], x[7]);
	TRANSPOSE_PIECES_(a, b, c, d);
	out[0].lo = a;
	out[1].lo = b;
	out[2].lo = c;
	out[3].lo = d;
	a = _mm512_unpackhi_epi64(x[0], x[1]);
	b = _mm512_unpackhi_epi64(x[2], x[3]);
	c = _mm512_unpackhi_epi64(x[4], x[5]);
	d = _mm512_unpackhi_epi64(x[6], x[7]);
	TRANSPOSE_PIECES_(a, b, c, d);
	out[0].hi = a;
	out[1].hi = b;
	out[2].hi = c;
	out[3].hi = d;
}

/* h mod 2^130 - 5, plus s mod 2^128; no branch on any of it. */
POLY_INLINE void poly_finish(
	uint8_t *const tag[POLY_LANES], const __m512i h[3], const struct poly_keys *keys)
{
	const __m512i five = _mm512_set1_epi64(5);
	__m512i c, even, odd, lo, hi;
	__mmask8 carry;

	/* h + 5 reaches 2^130, or it does not: then 5 is added, and what is above falls off below. */
	c = _mm512_srli_epi64(_mm512_add_epi64(h[0], five), 44);
	c = _mm512_srli_epi64(_mm512_add_epi64(h[1], c), 44);
	c = _mm512_srli_epi64(_mm512_add_epi64(h[2], c), 42);
	lo = _mm512_madd52lo_epu64(h[0], c, five);
	hi = _mm512_add_epi64(h[1], _mm512_srli_epi64(lo, 44));
	lo = _mm512_or_si512(_mm512_and_si512(lo, POLY_M44), _mm512_slli_epi64(hi, 44));
	hi = _mm512_add_epi64(_mm512_srli_epi64(hi, 20), _mm512_slli_epi64(h[2], 24));

	lo = _mm512_add_epi64(lo, _mm512_load_si512(keys->s_lo));
	carry = _mm512_cmplt_epu64_mask(lo, _mm512_load_si512(keys->s_lo));
	hi = _mm512_add_epi64(hi, _mm512_load_si512(keys->s_hi));
	hi = _mm512_mask_add_epi64(hi, carry, hi, _mm512_set1_epi64(1));

	/* Four even lanes, then four odd ones. */
	even = _mm512_unpacklo_epi64(lo, hi);
	odd = _mm512_unpackhi_epi64(lo, hi);
#define TAG_(i)                                                                                    \
	_mm_storeu_si128((__m128i *)(void *)tag[2 * (i)], _mm512_extracti32x4_epi32(even, i));        \
	_mm_storeu_si128((__m128i *)(void *)tag[2 * (i) + 1], _mm512_extracti32x4_epi32(odd, i))
	TAG_(0);
	TAG_(1);
	TAG_(2);
	TAG_(3);
#undef TAG_
}

/* r, clamped, and its square; the third and fourth power too where wanted. */
POLY_INLINE void poly_powers(struct poly_power *p, const struct poly_keys *keys, unsigned count)
{
	__m512i lo = _mm512_and_si512(
		_mm512_load_si512(keys->r_lo), _mm512_set1_epi64(0x0ffffffc0fffffff));
	__m512i hi = _mm512_and_si512(
		_mm512_load_si512(keys->r_hi), _mm512_set1_epi64(0x0ffffffc0ffffffc));
	struct poly_sum a = poly_zero();
	__m512i r[3], h[3];

	poly_limbs(r, lo, hi, _mm512_setzero_si512());
	p[0] = poly_power(r);
	poly_mul(&a, r, &p[0]);
	poly_carry(r, &a);
	p[1] = poly_power(r);
	if (count < 4)
		return;
	a = poly_zero();
	poly_mul(&a, r, &p[1]);
	poly_carry(h, &a);
	p[3] = poly_power(h);
	a = poly_zero();
	poly_mul(&a, r, &p[0]);
	poly_carry(h, &a);
	p[2] = poly_power(h);
}

/*
 * h = (h + m0) * r^4 + m1 * r^3 + m2 * r^2 + m3 * r: one carry for a whole window. The sum begins
 * with what the four 129th bits come to (poly_pad); the block that waits for h comes last.
 *
 * Meanwhile the next window of the other vector is transposed. Neither alone keeps both ports busy:
 * shuffles go to one of them only, and a multiply-add waits four cycles for the last one on the
 * same sum. So they are mixed by hand, six multiply-adds and two shuffles at a time, and TIE_ holds
 * the compiler to it; left to itself, gcc 12 makes 188 cycles of what is 137 this way.
 */
#define TIE_(a, t, u)                                                                              \
	__asm__ volatile(""                                                                        \
			 : "+v"((a).lo0), "+v"((a).lo1), "+v"((a).lo2), "+v"((a).hi0),             \
			 "+v"((a).hi1), "+v"((a).hi2), "+v"(t), "+v"(u))

#define MADD_(a, x, f0, f1, f2)                                                                    \
	do {                                                                                       \
		(a).lo0 = _mm512_madd52lo_epu64((a).lo0, x, f0);                                   \
		(a).hi0 = _mm512_madd52hi_epu64((a).hi0, x, f0);                                   \
		(a).lo1 = _mm512_madd52lo_epu64((a).lo1, x, f1);                                   \
		(a).hi1 = _mm512_madd52hi_epu64((a).hi1, x, f1);                                   \
		(a).lo2 = _mm512_madd52lo_epu64((a).lo2, x, f2);                                   \
		(a).hi2 = _mm512_madd52hi_epu64((a).hi2, x, f2);                                   \
	} while (0)

struct poly_turn {
	const struct poly_power *p;
	const struct poly_sum *pad;
	uintptr_t offset; /* of the other vector's next window */
	const uint64_t *start;
};

POLY_INLINE void poly_turn(
	__m512i h[3], const struct poly_block this[4], struct poly_block other[4], const struct poly_turn *t)
{
	const struct poly_power *p = t->p;
	const __m512i none = _mm512_setzero_si512();
	struct poly_sum s = *t->pad;
	__m512i m[3], x, y, a, b, c, d, e, f, g, k, ab, cd, ab_hi, cd_hi;

#define ROW_(i) _mm512_loadu_si512((const void *)(t->start[i] + t->offset))
	poly_limbs(m, this[3].lo, this[3].hi, none);
	x = ROW_(0), y = ROW_(1);
	a = _mm512_unpacklo_epi64(x, y), e = _mm512_unpackhi_epi64(x, y);
	MADD_(s, m[0], p[0].r0, p[0].r1, p[0].r2);
	TIE_(s, a, e);
	x = ROW_(2), y = ROW_(3);
	b = _mm512_unpacklo_epi64(x, y), f = _mm512_unpackhi_epi64(x, y);
	MADD_(s, m[1], p[0].s2, p[0].r0, p[0].r1);
	TIE_(s, b, f);
	x = ROW_(4), y = ROW_(5);
	c = _mm512_unpacklo_epi64(x, y), g = _mm512_unpackhi_epi64(x, y);
	MADD_(s, m[2], p[0].s1, p[0].s2, p[0].r0);
	TIE_(s, c, g);

	poly_limbs(m, this[2].lo, this[2].hi, none);
	x = ROW_(6), y = ROW_(7);
	d = _mm512_unpacklo_epi64(x, y), k = _mm512_unpackhi_epi64(x, y);
	MADD_(s, m[0], p[1].r0, p[1].r1, p[1].r2);
	TIE_(s, d, k);
	ab = _mm512_shuffle_i32x4(a, b, 0x44), cd = _mm512_shuffle_i32x4(c, d, 0x44);
	MADD_(s, m[1], p[1].s2, p[1].r0, p[1].r1);
	TIE_(s, ab, cd);
	ab_hi = _mm512_shuffle_i32x4(a, b, 0xee), cd_hi = _mm512_shuffle_i32x4(c, d, 0xee);
	MADD_(s, m[2], p[1].s1, p[1].s2, p[1].r0);
	TIE_(s, ab_hi, cd_hi);

	poly_limbs(m, this[1].lo, this[1].hi, none);
	a = _mm512_shuffle_i32x4(ab, cd, 0x88), b = _mm512_shuffle_i32x4(ab, cd, 0xdd);
	MADD_(s, m[0], p[2].r0, p[2].r1, p[2].r2);
	TIE_(s, a, b);
	c = _mm512_shuffle_i32x4(ab_hi, cd_hi, 0x88), d = _mm512_shuffle_i32x4(ab_hi, cd_hi, 0xdd);
	MADD_(s, m[1], p[2].s2, p[2].r0, p[2].r1);
	TIE_(s, c, d);
	ab = _mm512_shuffle_i32x4(e, f, 0x44), cd = _mm512_shuffle_i32x4(g, k, 0x44);
	MADD_(s, m[2], p[2].s1, p[2].s2, p[2].r0);
	TIE_(s, ab, cd);

	/* The block that waits for what the last window came to. */
	poly_limbs(m, this[0].lo, this[0].hi, none);
	poly_add(m, h);
	other[0].lo = a, other[1].lo = b, other[2].lo = c, other[3].lo = d;
	a = _mm512_shuffle_i32x4(e, f, 0xee), b = _mm512_shuffle_i32x4(g, k, 0xee);
	MADD_(s, m[0], p[3].r0, p[3].r1, p[3].r2);
	TIE_(s, a, b);
	c = _mm512_shuffle_i32x4(ab, cd, 0x88), d = _mm512_shuffle_i32x4(ab, cd, 0xdd);
	MADD_(s, m[1], p[3].s2, p[3].r0, p[3].r1);
	TIE_(s, c, d);
	other[0].hi = c, other[1].hi = d;
	c = _mm512_shuffle_i32x4(a, b, 0x88), d = _mm512_shuffle_i32x4(a, b, 0xdd);
	MADD_(s, m[2], p[3].s1, p[3].s2, p[3].r0);
	TIE_(s, c, d);
	other[2].hi = c, other[3].hi = d;
#undef ROW_
	poly_carry(h, &s);
}

#endif
