/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_AVX512_TAGS_H
#define SL_AEAD_AVX512_TAGS_H
/*
 * Poly1305 tags of eight packets of any lengths, or of up to sixteen of one length: which window of
 * which packet is read when. The arithmetic is in aead_avx512_poly.h.
 *
 * Packets of different length are aligned at their end: every lane is preceded by as many absent
 * blocks as it is shorter, and an absent block leaves h at zero. So all lanes use the same powers
 * in each turn and end together. Blocks are read 64 bytes a packet at a time (a window); the first
 * windows and the last one read under a mask.
 */
#include "aead_avx512_poly.h"

/* What is to be authenticated (associated data of 16 bytes, then the text, then the two lengths),
 * and where to. */
struct poly_job {
	uintptr_t aad[POLY_LANES], text[POLY_LANES];
	uint64_t len[POLY_LANES];
	uint8_t *tag[POLY_LANES];
} __attribute__((aligned(64)));

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

/*
 * Windows w to end - 1, in which no lane begins and none ends: all whole. Lanes that have not begun
 * read zeros. A vector that is alone is its own other one.
 */
POLY_INLINE void poly_any_steady(__m512i h[3], const struct poly_power p[4],
	const struct poly_sum *pad, const struct poly_plan *plan, const void *idle, uint32_t w,
	uint32_t end)
{
	uint64_t at[8] __attribute__((aligned(64)));
	const __m512i zeros = _mm512_set1_epi64((long long)(uintptr_t)idle);
	const __mmask8 begun = _mm512_cmplt_epu64_mask(plan->entry, _mm512_set1_epi64(w));
	const struct poly_sum mine = {
		_mm512_maskz_mov_epi64(begun, pad->lo0),
		_mm512_maskz_mov_epi64(begun, pad->lo1),
		_mm512_maskz_mov_epi64(begun, pad->lo2),
		_mm512_maskz_mov_epi64(begun, pad->hi0),
		_mm512_maskz_mov_epi64(begun, pad->hi1),
		_mm512_maskz_mov_epi64(begun, pad->hi2),
	};
	const struct poly_turn t = {.p = p, .pad = &mine, .start = at};
	struct poly_blocks a, b;
	__m512i x[8];

#define AT_(w)                                                                                     \
	_mm512_store_si512(at, _mm512_mask_add_epi64(zeros, begun, plan->origin,                   \
				       _mm512_set1_epi64(64 * (long long)(w))))
	AT_(w);
	poly_rows_full(x, at);
	poly_transpose(a.lo, a.hi, x);
	/* Behind the last one there is none to prepare: it is taken again, for nothing. */
	for (; w < end; w++) {
		AT_(w + 1 < end ? w + 1 : w);
		poly_turn(h, &a, &b, &t);
		a = b;
	}
#undef AT_
}

/*
 * The tags of eight packets of any lengths; idle: 64 bytes of zeros. Between the windows in which
 * lanes begin nothing but text is read: lanes that have not begun read zeros, which have no 129th
 * bit either.
 */
POLY_INLINE void poly_any(const struct poly_job *job, const struct poly_keys *keys,
	const void *idle, const struct poly_plan *plan, unsigned powers)
{
	const uint32_t last = plan->windows - 1;
	__m512i h[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
	__m512i x[8], lo[4], hi[4];
	struct poly_power p[4];
	struct poly_sum pad;

	poly_powers(p, keys, powers);
	if (powers == 4)
		poly_pad(&pad, p);
	for (uint32_t w = plan->present / 4; w <= last; w++) {
		const __m512i now = _mm512_set1_epi64(w);

		if (powers == 4 && w < last && _mm512_cmpeq_epi64_mask(plan->entry, now) == 0) {
			__mmask8 later = _mm512_cmpgt_epu64_mask(plan->entry, now);
			uint32_t end =
				(uint32_t)_mm512_mask_reduce_min_epu64(later, plan->entry);

			end = later && end < last ? end : last;
			poly_any_steady(h, p, &pad, plan, idle, w, end);
			w = end - 1;
			continue;
		}
		poly_rows_masked(x, job, plan, w, idle);
		poly_transpose(lo, hi, x);
		if (w == last) {
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

	if (plan.windows < (POLY_LONG + 47) / 64 + 1)
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

/* Window w, with two powers in two turns. */
POLY_INLINE void poly_even_window(__m512i h[3], const struct poly_power p[2],
	const uint64_t start[8], const struct poly_even *e, uint32_t w, bool edge)
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
	} else {
		poly_two(h, p, lo[0], hi[0], there, lo[1], hi[1], there);
		poly_two(h, p, lo[2], hi[2], there, lo[3], hi[3], there);
	}
}

/* The windows between the first and the last, with four powers. */
POLY_INLINE void poly_even_middle(__m512i g[3], __m512i h[3], const struct poly_power *p,
	const struct poly_power *q, const struct poly_sum pad[2], const uint64_t start[16],
	const struct poly_even *e)
{
	const uintptr_t absent = (uintptr_t)16 * e->absent;
	struct poly_turn first = {.p = p, .pad = &pad[0], .start = start + 8};
	struct poly_turn second = {.p = q, .pad = &pad[1], .start = start};
	struct poly_blocks mine, other;
	__m512i x[8];

	if (e->windows < 3)
		return;
	for (unsigned i = 0; i < 8; i++)
		x[i] = _mm512_loadu_si512((const void *)(start[i] + 64 - absent));
	poly_transpose(mine.lo, mine.hi, x);
	for (uint32_t w = 1; w + 1 < e->windows; w++) {
		/* Behind the last one there is none to prepare: it is taken again, for nothing. */
		const uint32_t next = w + 2 < e->windows ? w + 1 : w;

		first.offset = (uintptr_t)64 * w - absent;
		poly_turn(g, &mine, &other, &first);
		second.offset = (uintptr_t)64 * next - absent;
		poly_turn(h, &other, &mine, &second);
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
	struct poly_sum pad[2];

	poly_powers(p, &keys[0], powers);
	poly_powers(q, &keys[1], powers);
	if (powers == 4) {
		poly_pad(&pad[0], p);
		poly_pad(&pad[1], q);
	}
	poly_even_window(g, p, start, &e, 0, true);
	poly_even_window(h, q, start + 8, &e, 0, true);
	if (powers == 4)
		poly_even_middle(g, h, p, q, pad, start, &e);
	for (uint32_t w = 1; powers != 4 && w + 1 < e.windows; w++) {
		poly_even_window(g, p, start, &e, w, false);
		poly_even_window(h, q, start + 8, &e, w, false);
	}
	if (e.windows > 1) {
		poly_even_window(g, p, start, &e, e.windows - 1, true);
		poly_even_window(h, q, start + 8, &e, e.windows - 1, true);
	}
	poly_finish(tag, g, &keys[0]);
	poly_finish(tag + 8, h, &keys[1]);
}

POLY_INLINE void poly_even_single(uint8_t *const tag[8], const uint64_t start[8], uint64_t len,
	const struct poly_keys *keys)
{
	const struct poly_even e = poly_even(len);
	__m512i h[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
	struct poly_power p[2];

	poly_powers(p, keys, 2);
	poly_even_window(h, p, start, &e, 0, true);
	for (uint32_t w = 1; w + 1 < e.windows; w++)
		poly_even_window(h, p, start, &e, w, false);
	if (e.windows > 1)
		poly_even_window(h, p, start, &e, e.windows - 1, true);
	poly_finish(tag, h, keys);
}

/*
 * The tags of eight packets of len bytes, or of sixteen; start: their associated data, with the
 * text behind it.
 */
static __attribute__((noinline)) void poly_tags_even(uint8_t *const tag[16],
	const uint64_t start[16], uint64_t len, const struct poly_keys keys[2], unsigned vectors)
{
	if (vectors == 1)
		poly_even_single(tag, start, len, keys);
	else if (len < POLY_LONG)
		poly_even_pair(tag, start, len, keys, 2);
	else
		poly_even_pair(tag, start, len, keys, 4);
}

#endif
