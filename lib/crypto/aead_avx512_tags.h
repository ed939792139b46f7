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
#include <string.h>

#include "aead_avx512_poly.h"
#include "sl_aead.h"

/* What is to be authenticated (associated data of 16 bytes, then the text, then the two lengths),
 * and where to. */
struct poly_job {
	const uint64_t *aad, *text, *len; /* eight each, aligned: addresses, and bytes of text */
	uint8_t *tag[POLY_LANES];
};

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

/* A message's last block. */
POLY_INLINE struct poly_block poly_lengths(__m512i text_len)
{
	return (struct poly_block){_mm512_set1_epi64(SL_AEAD_AAD_BYTES), text_len};
}

/* 1 in the lanes where block b is there. */
POLY_INLINE __m512i poly_there(const struct poly_plan *p, uint32_t b)
{
	return _mm512_maskz_mov_epi64(_mm512_cmple_epu64_mask(p->absent, _mm512_set1_epi64(b)),
		_mm512_set1_epi64(1));
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
	struct poly_block a[4], b[4];
	__m512i x[8];

#define AT_(w)                                                                                     \
	_mm512_store_si512(at, _mm512_mask_add_epi64(zeros, begun, plan->origin,                   \
				       _mm512_set1_epi64(64 * (long long)(w))))
	AT_(w);
	poly_rows_full(x, at);
	poly_transpose(a, x);
	/* Behind the last one there is none to prepare: it is taken again, for nothing. */
	for (; w < end; w++) {
		AT_(w + 1 < end ? w + 1 : w);
		poly_turn(h, a, b, &t);
		memcpy(a, b, sizeof(a));
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
	struct poly_block m[4];
	struct poly_power p[4];
	struct poly_sum pad;
	__m512i x[8];

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
		poly_transpose(m, x);
		if (w == last)
			m[3] = poly_lengths(_mm512_load_si512(job->len));
		if (plan->present < 4 * w + 2)
			poly_two(h, p, &m[0], poly_there(plan, 4 * w), &m[1],
				poly_there(plan, 4 * w + 1));
		poly_two(h, p, &m[2], poly_there(plan, 4 * w + 2), &m[3],
			poly_there(plan, 4 * w + 3));
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

/*
 * Packets of one length: eight a vector, two vectors side by side, since one alone waits for its
 * carries. First the associated data, a block that waits in `pending` for the text's first one; then
 * whole windows of text, and last whatever is left with the lengths behind it.
 */
struct poly_even {
	const uint64_t *aad, *text; /* addresses, eight a vector */
	uint32_t len;
	unsigned vectors;
	struct poly_power p[2][4];
	struct poly_sum pad[2];
	__m512i h[2][3];
};

/* Sixteen bytes of each of eight packets. */
POLY_INLINE struct poly_block poly_block_of(const uint64_t at[8])
{
#define PIECE_(row, i, k)                                                                          \
	_mm512_inserti32x4(row, _mm_loadu_si128((const __m128i *)(const void *)at[i]), k)
	__m512i a = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at[0]));
	__m512i b = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at[1]));

	a = PIECE_(PIECE_(PIECE_(a, 2, 1), 4, 2), 6, 3);
	b = PIECE_(PIECE_(PIECE_(b, 3, 1), 5, 2), 7, 3);
#undef PIECE_
	return (struct poly_block){_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)};
}

/* Bytes `offset` on of eight texts, those in the mask. */
POLY_INLINE void poly_text(
	struct poly_block m[4], const uint64_t text[8], uintptr_t offset, __mmask64 k)
{
	__m512i x[8];

	for (unsigned i = 0; i < 8; i++)
		x[i] = k == UINT64_MAX ? _mm512_loadu_si512((const void *)(text[i] + offset))
				       : _mm512_maskz_loadu_epi8(
						 k, (const void *)(text[i] + offset));
	poly_transpose(m, x);
}

/* All windows of text, with two powers in two turns. */
POLY_INLINE void poly_even_short(struct poly_even *e, struct poly_block pending[2])
{
	const __m512i one = _mm512_set1_epi64(1);
	struct poly_block m[2][4];

	for (uint32_t w = 0; w < e->len / 64; w++) {
		for (unsigned v = 0; v < e->vectors; v++)
			poly_text(m[v], e->text + 8 * v, (uintptr_t)64 * w, UINT64_MAX);
		for (unsigned v = 0; v < e->vectors; v++)
			poly_two(e->h[v], e->p[v], &pending[v], one, &m[v][0], one);
		for (unsigned v = 0; v < e->vectors; v++) {
			poly_two(e->h[v], e->p[v], &m[v][1], one, &m[v][2], one);
			pending[v] = m[v][3];
		}
	}
}

/* With four powers, by turns; two vectors, and one window at least. */
POLY_INLINE void poly_even_long(struct poly_even *e)
{
	struct poly_turn first = {.p = e->p[0], .pad = &e->pad[0], .start = e->text + 8};
	struct poly_turn second = {.p = e->p[1], .pad = &e->pad[1], .start = e->text};
	const uint32_t windows = e->len / 64;
	struct poly_block mine[4], other[4];

	poly_text(mine, e->text, 0, UINT64_MAX);
	for (uint32_t w = 0; w < windows; w++) {
		/* Behind the last one there is none to prepare: it is taken again, for nothing. */
		const uint32_t next = w + 1 < windows ? w + 1 : w;

		first.offset = (uintptr_t)64 * w;
		poly_turn(e->h[0], mine, other, &first);
		second.offset = (uintptr_t)64 * next;
		poly_turn(e->h[1], other, mine, &second);
	}
}

/* The pending block, if there is one, the text's last bytes, and the lengths. */
POLY_INLINE void poly_even_end(struct poly_even *e, const struct poly_block *pending)
{
	const __m512i one = _mm512_set1_epi64(1);
	const uint32_t rest = e->len % 64;
	struct poly_block m[2][6];
	uint32_t n = 0, i;

	if (pending) {
		for (unsigned v = 0; v < e->vectors; v++)
			m[v][0] = pending[v];
		n = 1;
	}
	if (rest > 0) {
		for (unsigned v = 0; v < e->vectors; v++)
			poly_text(&m[v][n], e->text + 8 * v, e->len - rest, UINT64_MAX >> (64 - rest));
		n += (rest + 15) / 16;
	}
	for (unsigned v = 0; v < e->vectors; v++)
		m[v][n] = poly_lengths(_mm512_set1_epi64(e->len));
	n++;
	for (i = 0; i + 1 < n; i += 2)
		for (unsigned v = 0; v < e->vectors; v++)
			poly_two(e->h[v], e->p[v], &m[v][i], one, &m[v][i + 1], one);
	for (unsigned v = 0; v < e->vectors && i < n; v++)
		poly_one(e->h[v], &e->p[v][0], &m[v][i]);
}

POLY_INLINE void poly_even(uint8_t *const tag[16], struct poly_even *e,
	const struct poly_keys keys[2], unsigned powers)
{
	struct poly_block pending[2];

	for (unsigned v = 0; v < e->vectors; v++) {
		poly_powers(e->p[v], &keys[v], powers);
		pending[v] = poly_block_of(e->aad + 8 * v);
		for (unsigned i = 0; i < 3; i++)
			e->h[v][i] = _mm512_setzero_si512();
	}
	if (powers == 4) {
		for (unsigned v = 0; v < e->vectors; v++) {
			poly_pad(&e->pad[v], e->p[v]);
			poly_one(e->h[v], &e->p[v][0], &pending[v]);
		}
		poly_even_long(e);
		poly_even_end(e, NULL);
	} else {
		poly_even_short(e, pending);
		poly_even_end(e, pending);
	}
	for (unsigned v = 0; v < e->vectors; v++)
		poly_finish(tag + 8 * v, e->h[v], &keys[v]);
}

/* The tags of eight packets of len bytes, or of sixteen. */
static __attribute__((noinline)) void poly_tags_even(uint8_t *const tag[16], const uint64_t aad[16],
	const uint64_t text[16], uint32_t len, const struct poly_keys keys[2], unsigned vectors)
{
	struct poly_even e;

	e.aad = aad;
	e.text = text;
	e.len = len;
	e.vectors = vectors == 1 ? 1 : 2;
	if (vectors == 1)
		poly_even(tag, &e, keys, 2);
	else if (len < POLY_LONG)
		poly_even(tag, &e, keys, 2);
	else
		poly_even(tag, &e, keys, 4);
}

#endif
