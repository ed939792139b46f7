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
 * To limbs again: h[0] < 2^44, h[1] a little above 2^44 at most, h[2] < 2^42. A high half weighs
 * 2^52 of its limb, which is 2^8 of the next one (2^10 * 5 of the first, behind the last).
 */
POLY_INLINE void poly_carry(__m512i h[3], const struct poly_sum *a)
{
	__m512i d, c;

	h[0] = _mm512_and_si512(a->lo0, POLY_M44);
	d = _mm512_add_epi64(a->lo1, _mm512_slli_epi64(a->hi0, 8));
	d = _mm512_add_epi64(d, _mm512_srli_epi64(a->lo0, 44));
	h[1] = _mm512_and_si512(d, POLY_M44);
	c = _mm512_srli_epi64(d, 44);
	d = _mm512_add_epi64(a->lo2, _mm512_slli_epi64(a->hi1, 8));
	d = _mm512_add_epi64(d, c);
	h[2] = _mm512_and_si512(d, POLY_M42);
	c = _mm512_add_epi64(_mm512_srli_epi64(d, 42), _mm512_slli_epi64(a->hi2, 10));
	h[0] = _mm512_add_epi64(_mm512_add_epi64(h[0], c), _mm512_slli_epi64(c, 2));
	h[1] = _mm512_add_epi64(h[1], _mm512_srli_epi64(h[0], 44));
	h[0] = _mm512_and_si512(h[0], POLY_M44);
}

/* Texts of this length and longer are worth four powers. */
#define POLY_LONG 257u

POLY_INLINE __m512i poly_times_20(__m512i x)
{
	return _mm512_add_epi64(_mm512_slli_epi64(x, 4), _mm512_slli_epi64(x, 2));
}

POLY_INLINE struct poly_power poly_power(const __m512i h[3])
{
	return (struct poly_power){h[0], h[1], h[2], poly_times_20(h[1]), poly_times_20(h[2])};
}

/* Sixteen bytes a lane to limbs; high is 2^40 where the block is there (its 129th bit), 0 where
 * not. */
POLY_INLINE void poly_limbs(__m512i m[3], __m512i lo, __m512i hi, __m512i high)
{
	m[0] = _mm512_and_si512(lo, POLY_M44);
	m[1] = _mm512_and_si512(_mm512_shrdi_epi64(lo, hi, 44), POLY_M44);
	m[2] = _mm512_or_si512(_mm512_srli_epi64(hi, 24), high);
}

/* h = (h + m0) * r^2 + m1 * r */
POLY_INLINE void poly_two(__m512i h[3], const struct poly_power p[2], __m512i lo0, __m512i hi0,
	__m512i high0, __m512i lo1, __m512i hi1, __m512i high1)
{
	struct poly_sum a = poly_zero();
	__m512i m[3];

	poly_limbs(m, lo1, hi1, high1);
	poly_mul(&a, m, &p[0]);
	poly_limbs(m, lo0, hi0, high0);
	m[0] = _mm512_add_epi64(m[0], h[0]);
	m[1] = _mm512_add_epi64(m[1], h[1]);
	m[2] = _mm512_add_epi64(m[2], h[2]);
	poly_mul(&a, m, &p[1]);
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

/* Eight windows of 64 bytes to four blocks of eight lanes: lo[j], hi[j] are the halves of block j.
 */
POLY_INLINE void poly_transpose(__m512i lo[4], __m512i hi[4], const __m512i x[8])
{
	__m512i a, b, c, d;

	/* Pairs of lanes in each 16-byte piece, then the pieces of four pairs. */
	a = _mm512_unpacklo_epi64(x[0], x[1]);
	b = _mm512_unpacklo_epi64(x[2], x[3]);
	c = _mm512_unpacklo_epi64(x[4], x[5]);
	d = _mm512_unpacklo_epi64(x[6], x[7]);
	TRANSPOSE_PIECES_(a, b, c, d);
	lo[0] = a;
	lo[1] = b;
	lo[2] = c;
	lo[3] = d;
	a = _mm512_unpackhi_epi64(x[0], x[1]);
	b = _mm512_unpackhi_epi64(x[2], x[3]);
	c = _mm512_unpackhi_epi64(x[4], x[5]);
	d = _mm512_unpackhi_epi64(x[6], x[7]);
	TRANSPOSE_PIECES_(a, b, c, d);
	hi[0] = a;
	hi[1] = b;
	hi[2] = c;
	hi[3] = d;
}

/* h mod 2^130 - 5, plus s mod 2^128; no branch on any of it. */
POLY_INLINE void poly_finish(
	uint8_t *const tag[POLY_LANES], __m512i h[3], const struct poly_keys *keys)
{
	const __m512i m44 = POLY_M44, m42 = POLY_M42;
	__m512i c, g0, g1, g2, lo, hi;
	__mmask8 below, carry;

	/* Twice around: the second time a carry can only come from limbs that are all ones. */
	for (unsigned i = 0; i < 2; i++) {
		c = _mm512_srli_epi64(h[1], 44);
		h[1] = _mm512_and_si512(h[1], m44);
		h[2] = _mm512_add_epi64(h[2], c);
		c = _mm512_srli_epi64(h[2], 42);
		h[2] = _mm512_and_si512(h[2], m42);
		h[0] = _mm512_add_epi64(h[0], _mm512_add_epi64(c, _mm512_slli_epi64(c, 2)));
		c = _mm512_srli_epi64(h[0], 44);
		h[0] = _mm512_and_si512(h[0], m44);
		h[1] = _mm512_add_epi64(h[1], c);
	}
	/* g = h + 5 - 2^130: h less the modulus. */
	g0 = _mm512_add_epi64(h[0], _mm512_set1_epi64(5));
	c = _mm512_srli_epi64(g0, 44);
	g0 = _mm512_and_si512(g0, m44);
	g1 = _mm512_add_epi64(h[1], c);
	c = _mm512_srli_epi64(g1, 44);
	g1 = _mm512_and_si512(g1, m44);
	g2 = _mm512_sub_epi64(_mm512_add_epi64(h[2], c), _mm512_set1_epi64(1ll << 42));
	below = _mm512_movepi64_mask(g2);
	h[0] = _mm512_mask_blend_epi64(below, g0, h[0]);
	h[1] = _mm512_mask_blend_epi64(below, g1, h[1]);
	h[2] = _mm512_mask_blend_epi64(below, g2, h[2]);

	lo = _mm512_or_si512(h[0], _mm512_slli_epi64(h[1], 44));
	hi = _mm512_or_si512(_mm512_srli_epi64(h[1], 20), _mm512_slli_epi64(h[2], 24));
	lo = _mm512_add_epi64(lo, _mm512_load_si512(keys->s_lo));
	carry = _mm512_cmplt_epu64_mask(lo, _mm512_load_si512(keys->s_lo));
	hi = _mm512_add_epi64(hi, _mm512_load_si512(keys->s_hi));
	hi = _mm512_mask_add_epi64(hi, carry, hi, _mm512_set1_epi64(1));

	/* Four even lanes, then four odd ones. */
	c = _mm512_unpacklo_epi64(lo, hi);
	g0 = _mm512_unpackhi_epi64(lo, hi);
#define TAG_(i)                                                                                    \
	_mm_storeu_si128((__m128i *)(void *)tag[2 * (i)], _mm512_extracti32x4_epi32(c, i));        \
	_mm_storeu_si128((__m128i *)(void *)tag[2 * (i) + 1], _mm512_extracti32x4_epi32(g0, i))
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

/* Four blocks of eight lanes. */
struct poly_blocks {
	__m512i lo[4], hi[4];
};

struct poly_turn {
	const struct poly_power *p;
	const struct poly_sum *pad;
	uintptr_t offset; /* of the other vector's next window */
	const uint64_t *start;
};

POLY_INLINE void poly_turn(
	__m512i h[3], struct poly_blocks *this, struct poly_blocks *other, const struct poly_turn *t)
{
	const struct poly_power *p = t->p;
	const __m512i none = _mm512_setzero_si512();
	struct poly_sum s = *t->pad;
	__m512i m[3], x, y, a, b, c, d, e, f, g, k, ab, cd, ab_hi, cd_hi;

#define ROW_(i) _mm512_loadu_si512((const void *)(t->start[i] + t->offset))
	poly_limbs(m, this->lo[3], this->hi[3], none);
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

	poly_limbs(m, this->lo[2], this->hi[2], none);
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

	poly_limbs(m, this->lo[1], this->hi[1], none);
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
	poly_limbs(m, this->lo[0], this->hi[0], none);
	m[0] = _mm512_add_epi64(m[0], h[0]);
	m[1] = _mm512_add_epi64(m[1], h[1]);
	m[2] = _mm512_add_epi64(m[2], h[2]);
	other->lo[0] = a, other->lo[1] = b, other->lo[2] = c, other->lo[3] = d;
	a = _mm512_shuffle_i32x4(e, f, 0xee), b = _mm512_shuffle_i32x4(g, k, 0xee);
	MADD_(s, m[0], p[3].r0, p[3].r1, p[3].r2);
	TIE_(s, a, b);
	c = _mm512_shuffle_i32x4(ab, cd, 0x88), d = _mm512_shuffle_i32x4(ab, cd, 0xdd);
	MADD_(s, m[1], p[3].s2, p[3].r0, p[3].r1);
	TIE_(s, c, d);
	other->hi[0] = c, other->hi[1] = d;
	c = _mm512_shuffle_i32x4(a, b, 0x88), d = _mm512_shuffle_i32x4(a, b, 0xdd);
	MADD_(s, m[2], p[3].s1, p[3].s2, p[3].r0);
	TIE_(s, c, d);
	other->hi[2] = c, other->hi[3] = d;
#undef ROW_
	poly_carry(h, &s);
}

#endif
