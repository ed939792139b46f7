/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_AVX512_POLY_H
#define SL_AEAD_AVX512_POLY_H
/*
 * Poly1305 (RFC 8439, 2.5) of eight packets at once, one a 64-bit lane.
 *
 * A number is three vectors of limbs of 44, 44 and 42 bits, so that the 52-bit multiply-adds (low
 * and high half of a product) accumulate without a carry in between. Two blocks a turn: h = (h +
 * m0) * r^2 + m1 * r, one carry for both.
 *
 * Packets of different length are aligned at their end: every lane is preceded by as many absent
 * blocks as it is shorter, and an absent block leaves h at zero. So all lanes use the same powers
 * in each turn and end together. Blocks are read 64 bytes a packet at a time (a window); the first
 * windows and the last one read under a mask.
 */
#include "aead_avx512_chacha.h"

#define POLY_LANES 8u

/* What is to be authenticated (associated data of 16 bytes, then the text, then the two lengths),
 * and where to. */
struct poly_job {
	uintptr_t aad[POLY_LANES], text[POLY_LANES];
	uint64_t len[POLY_LANES];
	uint8_t *tag[POLY_LANES];
} __attribute__((aligned(64)));

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

/* sum += x * p. Limbs of x stay below 2^46, those of p below 2^45, s below 2^49: six products fit
 * with room. */
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

/* h = (h + m0) * r^4 + m1 * r^3 + m2 * r^2 + m3 * r: one carry for a whole window */
POLY_INLINE void poly_four(__m512i h[3], const struct poly_power p[4], const __m512i lo[4],
	const __m512i hi[4], __m512i high)
{
	struct poly_sum a = poly_zero(), b = poly_zero();
	__m512i m[3];

	/* Two sums: one would be a chain of twelve multiply-adds, each waiting for the last. */
	poly_limbs(m, lo[3], hi[3], high);
	poly_mul(&a, m, &p[0]);
	poly_limbs(m, lo[2], hi[2], high);
	poly_mul(&b, m, &p[1]);
	poly_limbs(m, lo[1], hi[1], high);
	poly_mul(&a, m, &p[2]);
	poly_limbs(m, lo[0], hi[0], high);
	m[0] = _mm512_add_epi64(m[0], h[0]);
	m[1] = _mm512_add_epi64(m[1], h[1]);
	m[2] = _mm512_add_epi64(m[2], h[2]);
	poly_mul(&b, m, &p[3]);
	a.lo0 = _mm512_add_epi64(a.lo0, b.lo0);
	a.lo1 = _mm512_add_epi64(a.lo1, b.lo1);
	a.lo2 = _mm512_add_epi64(a.lo2, b.lo2);
	a.hi0 = _mm512_add_epi64(a.hi0, b.hi0);
	a.hi1 = _mm512_add_epi64(a.hi1, b.hi1);
	a.hi2 = _mm512_add_epi64(a.hi2, b.hi2);
	poly_carry(h, &a);
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

/* Where each lane's windows lie; window w covers bytes 64 * w to 64 * w + 63 of the padded message.
 */
struct poly_plan {
	__m512i origin;	     /* address of byte 0 of the padded message, were the text all of it */
	__m512i absent;	     /* blocks before the associated data */
	__m512i entry;	     /* the window a lane's associated data is in */
	__m512i first, last; /* byte offsets of the text in the padded message */
	uint32_t windows;
	uint32_t present; /* the first block that is there in any lane */
};

POLY_INLINE struct poly_plan poly_plan(const struct poly_job *job)
{
	const __m512i len = _mm512_load_si512(job->len);
	const __m512i blocks =
		_mm512_srli_epi64(_mm512_add_epi64(len, _mm512_set1_epi64(15 + 32)), 4);
	struct poly_plan p;

	p.windows = (uint32_t)(_mm512_reduce_max_epu64(blocks) + 3) / 4;
	p.absent = _mm512_sub_epi64(_mm512_set1_epi64(4 * (long long)p.windows), blocks);
	p.first = _mm512_slli_epi64(_mm512_add_epi64(p.absent, _mm512_set1_epi64(1)), 4);
	p.last = _mm512_add_epi64(p.first, len);
	p.origin = _mm512_sub_epi64(_mm512_load_si512(job->text), p.first);
	p.entry = _mm512_srli_epi64(p.absent, 2);
	p.present = (uint32_t)_mm512_reduce_min_epu64(p.absent);
	return p;
}

/* A window in which a lane begins, or the last: text under masks, the associated data in its place.
 */
POLY_INLINE void poly_rows_masked(__m512i x[8], const struct poly_job *job,
	const struct poly_plan *p, uint32_t w, const void *idle)
{
	uint64_t mask[8] __attribute__((aligned(64))), at[8] __attribute__((aligned(64)));
	uint64_t aad[8] __attribute__((aligned(64)));
	const __m512i zero = _mm512_setzero_si512(), ones = _mm512_set1_epi64(-1);
	const __m512i from = _mm512_set1_epi64(64 * (long long)w);
	__m512i head = _mm512_max_epi64(_mm512_sub_epi64(p->first, from), zero);
	__m512i tail = _mm512_max_epi64(
		_mm512_sub_epi64(_mm512_add_epi64(from, _mm512_set1_epi64(64)), p->last), zero);
	__m512i k = _mm512_and_si512(_mm512_sllv_epi64(ones, head), _mm512_srlv_epi64(ones, tail));
	__mmask8 here = _mm512_cmpeq_epi64_mask(p->entry, _mm512_set1_epi64(w));
	__m512i piece = _mm512_slli_epi64(_mm512_and_si512(p->absent, _mm512_set1_epi64(3)), 1);

	_mm512_store_si512(mask, k);
	/* A lane without text here reads elsewhere: its own address may be far away from anything.
	 */
	_mm512_store_si512(at, _mm512_mask_blend_epi64(_mm512_test_epi64_mask(k, k),
				       _mm512_set1_epi64((long long)(uintptr_t)idle),
				       _mm512_add_epi64(p->origin, from)));
	_mm512_store_si512(aad, _mm512_maskz_sllv_epi64(here, _mm512_set1_epi64(3), piece));
#define ROW_(i)                                                                                    \
	x[i] = _mm512_mask_broadcast_i64x2(_mm512_maskz_loadu_epi8(mask[i], (const void *)at[i]),  \
		(__mmask8)aad[i], _mm_loadu_si128((const __m128i *)job->aad[i]))
	ROW_(0);
	ROW_(1);
	ROW_(2);
	ROW_(3);
	ROW_(4);
	ROW_(5);
	ROW_(6);
	ROW_(7);
#undef ROW_
}

POLY_INLINE void poly_rows_full(__m512i x[8], const uint64_t at[8])
{
#define ROW_(i) x[i] = _mm512_loadu_si512((const void *)at[i])
	ROW_(0);
	ROW_(1);
	ROW_(2);
	ROW_(3);
	ROW_(4);
	ROW_(5);
	ROW_(6);
	ROW_(7);
#undef ROW_
}

/* 2^40 in the lanes where block b is there. */
POLY_INLINE __m512i poly_high(const struct poly_plan *p, uint32_t b)
{
	return _mm512_maskz_mov_epi64(_mm512_cmple_epu64_mask(p->absent, _mm512_set1_epi64(b)),
		_mm512_set1_epi64(1ll << 40));
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
 * The tags of eight packets of any lengths; idle: 64 bytes of zeros. Between the windows in which
 * lanes begin nothing but text is read: lanes that have not begun read zeros, which have no 129th
 * bit either.
 */
POLY_INLINE void poly_any(const struct poly_job *job, const struct poly_keys *keys,
	const void *idle, const struct poly_plan *plan, unsigned powers)
{
	uint64_t at[8] __attribute__((aligned(64)));
	const __m512i bit = _mm512_set1_epi64(1ll << 40),
		      zeros = _mm512_set1_epi64((long long)(uintptr_t)idle);
	__m512i h[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
	__m512i x[8], lo[4], hi[4];
	struct poly_power p[4];

	poly_powers(p, keys, powers);
	for (uint32_t w = plan->present / 4; w < plan->windows; w++) {
		const __m512i now = _mm512_set1_epi64(w);

		if (_mm512_cmpeq_epi64_mask(plan->entry, now) == 0 && w < plan->windows - 1) {
			__mmask8 begun = _mm512_cmplt_epu64_mask(plan->entry, now);
			__m512i high = _mm512_maskz_mov_epi64(begun, bit);

			_mm512_store_si512(at, _mm512_mask_add_epi64(zeros, begun, plan->origin,
						       _mm512_slli_epi64(now, 6)));
			poly_rows_full(x, at);
			poly_transpose(lo, hi, x);
			if (powers == 4) {
				poly_four(h, p, lo, hi, high);
			} else {
				poly_two(h, p, lo[0], hi[0], high, lo[1], hi[1], high);
				poly_two(h, p, lo[2], hi[2], high, lo[3], hi[3], high);
			}
			continue;
		}
		poly_rows_masked(x, job, plan, w, idle);
		poly_transpose(lo, hi, x);
		if (w == plan->windows - 1) {
			lo[3] = _mm512_set1_epi64(16);
			hi[3] = _mm512_load_si512(job->len);
		}
		if (plan->present < 4 * w + 2)
			poly_two(h, p, lo[0], hi[0], poly_high(plan, 4 * w), lo[1], hi[1],
				poly_high(plan, 4 * w + 1));
		poly_two(h, p, lo[2], hi[2], poly_high(plan, 4 * w + 2), lo[3], hi[3],
			poly_high(plan, 4 * w + 3));
	}
	poly_finish(job->tag, h, keys);
}

static __attribute__((noinline)) void poly_tags(
	const struct poly_job *job, const struct poly_keys *keys, const void *idle)
{
	const struct poly_plan plan = poly_plan(job);

	if (plan.windows < 8)
		poly_any(job, keys, idle, &plan, 2);
	else
		poly_any(job, keys, idle, &plan, 4);
}

/* Packets of one length whose associated data lies before the text: the same windows and masks in
 * every lane. */
struct poly_even {
	uint64_t len;
	uint32_t windows, absent;
	__mmask64 first, last;
};

POLY_INLINE struct poly_even poly_even(uint64_t len)
{
	uint64_t blocks = (len + 15 + 32) / 16;
	struct poly_even e = {.len = len, .windows = (uint32_t)((blocks + 3) / 4)};
	uint64_t end;

	e.absent = (uint32_t)(4 * (uint64_t)e.windows - blocks);
	e.first = UINT64_MAX << 16 * e.absent;
	/* Bytes of the last window, at most 48 and at least 1: its last block is the lengths'. */
	end = 16 * e.absent + 16 + len - 64 * ((uint64_t)e.windows - 1);
	e.last = UINT64_MAX >> (64 - end);
	return e;
}

/* Window w, and with four powers in one turn, with two in two. */
POLY_INLINE void poly_even_window(__m512i h[3], const struct poly_power *p, const uint64_t start[8],
	const struct poly_even *e, uint32_t w, unsigned powers, bool edge)
{
	const __m512i there = _mm512_set1_epi64(1ll << 40);
	__m512i x[8], lo[4], hi[4];

	if (edge) {
		__mmask64 k = (w == 0 ? e->first : UINT64_MAX) &
			      (w == e->windows - 1 ? e->last : UINT64_MAX);

#define ROW_(i)                                                                                    \
	x[i] = _mm512_maskz_loadu_epi8(                                                            \
		k, (const void *)(start[i] + (uint64_t)64 * w - (uint64_t)16 * e->absent))
		ROW_(0);
		ROW_(1);
		ROW_(2);
		ROW_(3);
		ROW_(4);
		ROW_(5);
		ROW_(6);
		ROW_(7);
#undef ROW_
	} else {
#define ROW_(i)                                                                                    \
	x[i] = _mm512_loadu_si512(                                                                 \
		(const void *)(start[i] + (uint64_t)64 * w - (uint64_t)16 * e->absent))
		ROW_(0);
		ROW_(1);
		ROW_(2);
		ROW_(3);
		ROW_(4);
		ROW_(5);
		ROW_(6);
		ROW_(7);
#undef ROW_
	}
	poly_transpose(lo, hi, x);
	if (edge && w == e->windows - 1) {
		lo[3] = _mm512_set1_epi64(16);
		hi[3] = _mm512_set1_epi64((long long)e->len);
	}
	if (edge && w == 0) {
		const __m512i none = _mm512_setzero_si512();
		__m512i high0 = e->absent > 0 ? none : there, high1 = e->absent > 1 ? none : there;

		/* What is absent is not there to be multiplied; h is zero still. */
		if (e->absent < 2)
			poly_two(h, p, lo[0], hi[0], high0, lo[1], hi[1], high1);
		poly_two(h, p, lo[2], hi[2], e->absent > 2 ? none : there, lo[3], hi[3], there);
	} else if (powers == 4) {
		poly_four(h, p, lo, hi, there);
	} else {
		poly_two(h, p, lo[0], hi[0], there, lo[1], hi[1], there);
		poly_two(h, p, lo[2], hi[2], there, lo[3], hi[3], there);
	}
}

/* Two vectors side by side: each alone would wait for its carries. */
POLY_INLINE void poly_even_pair(uint8_t *const tag[16], const uint64_t start[16], uint64_t len,
	const struct poly_keys keys[2], unsigned powers)
{
	const struct poly_even e = poly_even(len);
	__m512i g[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
	__m512i h[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
	struct poly_power p[4], q[4];

	poly_powers(p, &keys[0], powers);
	poly_powers(q, &keys[1], powers);
	poly_even_window(g, p, start, &e, 0, powers, true);
	poly_even_window(h, q, start + 8, &e, 0, powers, true);
	for (uint32_t w = 1; w + 1 < e.windows; w++) {
		poly_even_window(g, p, start, &e, w, powers, false);
		poly_even_window(h, q, start + 8, &e, w, powers, false);
	}
	if (e.windows > 1) {
		poly_even_window(g, p, start, &e, e.windows - 1, powers, true);
		poly_even_window(h, q, start + 8, &e, e.windows - 1, powers, true);
	}
	poly_finish(tag, g, &keys[0]);
	poly_finish(tag + 8, h, &keys[1]);
}

POLY_INLINE void poly_even_single(uint8_t *const tag[8], const uint64_t start[8], uint64_t len,
	const struct poly_keys *keys, unsigned powers)
{
	const struct poly_even e = poly_even(len);
	__m512i h[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
	struct poly_power p[4];

	poly_powers(p, keys, powers);
	poly_even_window(h, p, start, &e, 0, powers, true);
	for (uint32_t w = 1; w + 1 < e.windows; w++)
		poly_even_window(h, p, start, &e, w, powers, false);
	if (e.windows > 1)
		poly_even_window(h, p, start, &e, e.windows - 1, powers, true);
	poly_finish(tag, h, keys);
}

/*
 * The tags of eight packets of len bytes, or of sixteen; start: their associated data, with the
 * text behind it.
 */
static __attribute__((noinline)) void poly_tags_even(uint8_t *const tag[16],
	const uint64_t start[16], uint64_t len, const struct poly_keys keys[2], unsigned vectors)
{
	if (vectors == 1 && len < 512)
		poly_even_single(tag, start, len, keys, 2);
	else if (vectors == 1)
		poly_even_single(tag, start, len, keys, 4);
	else if (len < 512)
		poly_even_pair(tag, start, len, keys, 2);
	else
		poly_even_pair(tag, start, len, keys, 4);
}

#endif
