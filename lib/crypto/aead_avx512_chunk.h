/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_AVX512_CHUNK_H
#define SL_AEAD_AVX512_CHUNK_H
/*
 * Which block is computed in which lane. A burst is worked off in chunks of up to 64 packets, whose
 * packets are sorted by their number of blocks and stand at "positions" from then on:
 *
 *	groups	sixteen positions each: lane = packet for as many steps as the shortest of the
 *		sixteen has blocks
 *	pool	all blocks that are left, and all of the packets behind the last full group, as one
 *		long row, which is cut into runs of equal length; a lane works off its run and
 *		changes keys where the run enters another packet
 *
 * Both come down to units (sixteen lanes, a step), which are computed two at a time whatever they
 * belong to. In a pass that exchanges key streams the two are one: the same sixteen blocks under
 * the old and the new key.
 *
 * Private to the AVX-512 engine.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "aead_avx512_chacha.h"
#include "aead_avx512_tags.h"
#include "aead_backend.h"

#define CHUNK 64u
#define GROUPS (CHUNK / CHACHA_LANES)
#define VECTORS (CHUNK / POLY_LANES)
#define PIECES (2 * CHUNK)
#define POOL_LANES (2 * CHACHA_LANES)
#define POOL_MANY 3 /* so many lanes get new keys cheaper as if all did */

/* Consecutive blocks of one packet: number 0 is its one-time key, the text begins with 1. */
struct piece {
	uint32_t position, block, count;
};

/* What a lane of the pool has before it: the piece it is in or about to enter. */
struct run {
	uint32_t piece, done; /* blocks of that piece that are behind it */
	uint32_t end;	      /* the step behind its last one */
	bool entering;
};

struct group {
	struct chacha_lanes lanes;
	uint32_t blocks; /* of the shortest */
	uint32_t masked; /* from this step on some lane has less than 64 bytes */
	uint64_t whole[CHACHA_LANES],
		tail[CHACHA_LANES]; /* masks before the last step, and of it */
	struct chacha_lanes old;    /* PHASE_PAIR: the keys the packets came with */
};

/* Where the lanes of a set in the pool have their keys from. */
struct pool_keys {
	uint64_t counter[CHACHA_LANES];
	const uint8_t *key[CHACHA_LANES];
} __attribute__((aligned(64)));

/* What the units of a chunk do. */
enum phase {
	PHASE_ALL,  /* one-time keys and text */
	PHASE_KEYS, /* one-time keys only */
	PHASE_TEXT,
	PHASE_PAIR, /* text: from the old key stream to the new one */
};

/* Which part of the texts is worked on: each packet's span of blocks. */
enum cover {
	COVER_ALL,
	COVER_FIRST, /* the first block */
	COVER_LEAD,  /* what is plaintext already */
	COVER_REST,  /* what is not */
};

struct chunk {
	struct sl_aead_op *ops;
	const struct sl_aead_reop *reops; /* PHASE_PAIR: the same packets */
	uint32_t n, groups;
	enum phase phase;
	uint32_t group, step; /* the next unit of a group */
	uint32_t unit, units; /* the same of the pool */
	uint32_t sets;	      /* of lanes in the pool */
	uint32_t pieces;
	uint16_t order[CHUNK];	/* position -> op */
	/* By position, also where a last vector has lanes without a packet: what the ops say. */
	uint64_t text[CHUNK] __attribute__((aligned(64)));
	uint64_t aad[CHUNK], counter[CHUNK], len[CHUNK];
	const uint8_t *key[CHUNK];
	/* By position: blocks of text before the span, its blocks, the byte behind it. */
	uint32_t skip[CHUNK];
	uint32_t blocks[CHUNK], end[CHUNK];
	bool good[CHUNK]; /* by position */
	bool even;	  /* all of one length and lead */
	bool all_good;
	bool pooled; /* the pool has been used */
	struct piece piece[PIECES];
	struct run run[POOL_LANES];
	uint8_t tag[CHUNK][16]; /* by position */
	/* From here on secrets, wiped behind every chunk. */
	struct poly_keys keys[VECTORS];
	uint8_t pool_key[CHUNK][32] __attribute__((aligned(64)));
	struct group grouped[GROUPS];
	struct chacha_lanes pool[2], pool_old;
	uint64_t pool_mask[2][CHACHA_LANES];
	struct pool_keys pool_keys[3]; /* of the two sets, and the old ones */
	uint32_t event[2][CHACHA_LANES]
		__attribute__((aligned(64))); /* the step at which a lane's inputs change */
};

struct sl_aead_ctx {
	struct chunk chunk __attribute__((aligned(64)));
	uint8_t idle[64] __attribute__((aligned(64))); /* what lanes without work point at */
	unsigned max_burst;
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX + 1]; /* one more: whole rows are written */
};

static inline const struct sl_aead_op *at_position(const struct chunk *c, uint32_t position)
{
	return &c->ops[c->order[position]];
}

/*
 * Longest first: a packet's position is the number of packets that go before it, counted for
 * sixteen of them at a time. Nothing to predict, which an ordinary sort of so few would spend most
 * of its time on.
 */
static void sort(struct chunk *c)
{
	uint32_t rank[CHUNK] __attribute__((aligned(64))), key[CHUNK] __attribute__((aligned(64)));

	/* Distinct: of equal packets the earlier one goes first. */
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t blocks = (uint32_t)(((uint64_t)c->ops[i].text_len + 63) / 64);

		key[i] = (blocks < (1u << 26) - 1 ? blocks : (1u << 26) - 1) << 6 | (63 - i);
	}
	memset(key + c->n, 0, (CHUNK - c->n) * sizeof(key[0]));
	for (uint32_t v = 0; v < c->n; v += 16) {
		__m512i own = _mm512_load_si512(&key[v]), before = _mm512_setzero_si512();

		for (uint32_t i = 0; i < c->n; i++) {
			__mmask16 k = _mm512_cmpgt_epu32_mask(_mm512_set1_epi32((int)key[i]), own);

			before = _mm512_mask_add_epi32(before, k, before, _mm512_set1_epi32(1));
		}
		_mm512_store_si512(&rank[v], before);
	}
	for (uint32_t i = 0; i < c->n; i++)
		c->order[rank[i]] = (uint16_t)i;
}

_Static_assert(offsetof(struct sl_aead_op, text) == 0 && offsetof(struct sl_aead_op, aad) == 8 &&
		       offsetof(struct sl_aead_op, key) == 16 &&
		       offsetof(struct sl_aead_op, counter) == 24 &&
		       offsetof(struct sl_aead_op, text_len) == 32 &&
		       offsetof(struct sl_aead_op, lead) == 40 && sizeof(struct sl_aead_op) == 48,
	"ops are read by the row");

/* Whether all packets are of one length, and of one lead where that counts: sixteen bytes of each. */
static bool all_alike(const struct sl_aead_op *ops, uint32_t n, bool leads)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)&ops[0].text_len);
	const __m128i counts = _mm_setr_epi32(-1, 0, leads ? -1 : 0, 0);
	__m128i a = _mm_setzero_si128(), b = a;
	uint32_t i = 0;

	/* Sum | (op ^ first), in two chains. */
#define DIFFER_(sum, i)                                                                            \
	sum = _mm_ternarylogic_epi32(sum, first,                                                   \
		_mm_loadu_si128((const __m128i *)(const void *)&ops[i].text_len), 0xf6)
	for (; i + 1 < n; i += 2) {
		DIFFER_(a, i);
		DIFFER_(b, i + 1);
	}
	if (i < n)
		DIFFER_(a, i);
#undef DIFFER_
	return _mm_testz_si128(_mm_or_si128(a, b), counts);
}

/* Positions of the packets; where all are of one length, as they came. Behind the last one it is
 * repeated. */
static void arrange(struct chunk *c, enum cover cover)
{
	c->even = all_alike(c->ops, c->n, cover == COVER_LEAD || cover == COVER_REST);
	if (c->even)
		for (uint32_t i = 0; i < CHUNK; i++)
			c->order[i] = (uint16_t)i;
	else
		sort(c);
	for (uint32_t i = c->n; i % CHACHA_LANES != 0; i++)
		c->order[i] = c->order[c->n - 1];
}

/* Four words of each of eight ops, turned round: rows are loaded so that they come out in order. */
CHACHA_INLINE void read_rows(struct chunk *c, uint32_t first, bool as_they_came)
{
	__m512i a, b, d, e, ab_lo, ab_hi, de_lo, de_hi;

#define ROW_(i)                                                                                    \
	_mm256_loadu_si256((const __m256i *)(const void *)(as_they_came                            \
								   ? &c->ops[first + (i)]          \
								   : at_position(c, first + (i))))
#define ROWS_(i, k) _mm512_inserti64x4(_mm512_castsi256_si512(ROW_(i)), ROW_(k), 1)
	a = ROWS_(0, 2), b = ROWS_(1, 3), d = ROWS_(4, 6), e = ROWS_(5, 7);
#undef ROWS_
#undef ROW_
	ab_lo = _mm512_unpacklo_epi64(a, b), ab_hi = _mm512_unpackhi_epi64(a, b);
	de_lo = _mm512_unpacklo_epi64(d, e), de_hi = _mm512_unpackhi_epi64(d, e);
	_mm512_store_si512(&c->text[first], _mm512_shuffle_i64x2(ab_lo, de_lo, 0x88));
	_mm512_store_si512(&c->key[first], _mm512_shuffle_i64x2(ab_lo, de_lo, 0xdd));
	_mm512_store_si512(&c->aad[first], _mm512_shuffle_i64x2(ab_hi, de_hi, 0x88));
	_mm512_store_si512(&c->counter[first], _mm512_shuffle_i64x2(ab_hi, de_hi, 0xdd));
}

static void read_ops(struct chunk *c, uint32_t first)
{
	if (c->even && first + POLY_LANES <= c->n)
		read_rows(c, first, true);
	else
		read_rows(c, first, false);
	if (c->even)
		_mm512_store_si512(&c->len[first], _mm512_set1_epi64(c->ops[0].text_len));
	else
		for (uint32_t l = 0; l < POLY_LANES; l++)
			c->len[first + l] = at_position(c, first + l)->text_len;
}

/*
 * How many groups. The last one may have lanes without a packet: with few of those it is cheaper
 * than the pool, whose lanes get their keys one by one. The longer the packets, the less that counts.
 */
static void count_groups(struct chunk *c)
{
	/* So many packets are a group if none of them is longer. Measured: docs/aead-engine.md. */
	static const uint32_t text_max[CHACHA_LANES] = {0, 0, 0, 0, 64, 64, 128, 128, 256, 256, 256, 512,
		512, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	uint32_t left = c->n % CHACHA_LANES;

	c->groups = c->n / CHACHA_LANES;
	if (left == 0 || at_position(c, c->n - left)->text_len > text_max[left])
		return;
	c->groups++;
	for (uint32_t i = c->n; i < c->groups * CHACHA_LANES; i++)
		c->good[i] = false;
}

static inline void set_span(
	struct chunk *c, uint32_t position, const struct sl_aead_op *op, enum cover cover)
{
	uint32_t end = op->text_len, skip = 0;

	if (cover == COVER_FIRST)
		end = end < 64 ? end : 64;
	else if (cover == COVER_LEAD)
		end = op->lead;
	else if (cover == COVER_REST)
		skip = (uint32_t)(((uint64_t)op->lead + 63) / 64);
	c->skip[position] = skip;
	c->end[position] = end;
	c->blocks[position] = (uint32_t)(((uint64_t)end + 63) / 64) - skip;
}

static void set_spans(struct chunk *c, enum cover cover)
{
	if (!c->even) {
		for (uint32_t i = 0; i < c->n || i < c->groups * CHACHA_LANES; i++)
			set_span(c, i, at_position(c, i), cover);
		return;
	}
	/* All as the first one. */
	set_span(c, 0, &c->ops[0], cover);
	for (uint32_t i = 0; i < CHUNK; i += CHACHA_LANES) {
		_mm512_store_si512(&c->skip[i], _mm512_set1_epi32((int)c->skip[0]));
		_mm512_store_si512(&c->end[i], _mm512_set1_epi32((int)c->end[0]));
		_mm512_store_si512(&c->blocks[i], _mm512_set1_epi32((int)c->blocks[0]));
	}
}

/* The bytes of text block b (from 1) before byte `end`. */
static inline uint64_t block_mask(uint32_t end, uint32_t b)
{
	uint32_t left = end - 64 * (b - 1);

	return left >= 64 ? UINT64_MAX : UINT64_MAX >> (64 - left);
}

/* Step 0 is the block before the span: the one-time key's where that begins with the text. */
static inline void group_place(struct chunk *c, struct group *g, uint32_t first)
{
	const __m512i back = _mm512_set1_epi64(-64);

	for (uint32_t l = 0; l < CHACHA_LANES; l += POLY_LANES) {
		__m256i skip = _mm256_load_si256((const __m256i *)(const void *)&c->skip[first + l]);
		__m512i offset = _mm512_add_epi64(
			_mm512_slli_epi64(_mm512_cvtepu32_epi64(skip), 6), back);

		_mm256_store_si256((__m256i *)(void *)&g->lanes.block[l], skip);
		_mm512_store_si512(&g->lanes.text[l],
			_mm512_add_epi64(_mm512_load_si512(&c->text[first + l]), offset));
	}
}

static void groups_init(struct chunk *c)
{
	for (uint32_t g = 0; g < c->groups; g++) {
		struct chacha_lanes *lanes = &c->grouped[g].lanes;
		uint32_t first = g * CHACHA_LANES;

		chacha_set_nonces(lanes, &c->counter[first]);
		chacha_set_keys(lanes, &c->key[first]);
		chacha_begin(lanes);
		group_place(c, &c->grouped[g], first);
	}
}

/* The keys that the texts of a group are enciphered with still. */
static void group_old(struct chunk *c, struct group *g, uint32_t first)
{
	const uint8_t *key[CHACHA_LANES];
	uint64_t counter[CHACHA_LANES] __attribute__((aligned(64)));

	for (uint32_t l = 0; l < CHACHA_LANES; l++) {
		const struct sl_aead_reop *r = &c->reops[c->order[first + l]];

		key[l] = r->old_key;
		counter[l] = r->old_counter;
	}
	chacha_set_nonces(&g->old, counter);
	chacha_set_keys(&g->old, key);
	chacha_begin(&g->old);
	memcpy(g->old.block, g->lanes.block, sizeof(g->old.block));
}

/* Once it is known which packets are worked on: how far the group goes and what its last step may
 * touch. */
static void group_masks(struct chunk *c, struct group *g, uint32_t first)
{
	bool dead = false;
	uint64_t all = UINT64_MAX;

	if (c->even && c->all_good && first + CHACHA_LANES <= c->n) {
		uint32_t last = c->skip[first] + c->blocks[first];

		g->blocks = c->blocks[first];
		g->masked = c->end[first] % 64 == 0 ? UINT32_MAX : g->blocks;
		for (uint32_t l = 0; l < CHACHA_LANES && g->masked != UINT32_MAX; l++)
			g->tail[l] = block_mask(c->end[first], last);
		return;
	}
	g->blocks = UINT32_MAX;
	for (uint32_t l = 0; l < CHACHA_LANES; l++) {
		if (!c->good[first + l])
			dead = true;
		else if (c->blocks[first + l] < g->blocks)
			g->blocks = c->blocks[first + l];
	}
	if (g->blocks == UINT32_MAX)
		g->blocks = 0;
	for (uint32_t l = 0; l < CHACHA_LANES && g->blocks > 0; l++) {
		uint32_t last = c->skip[first + l] + g->blocks;

		g->whole[l] = c->good[first + l] ? UINT64_MAX : 0;
		g->tail[l] = c->good[first + l] ? block_mask(c->end[first + l], last) : 0;
		all &= g->tail[l];
	}
	g->masked = dead ? 1 : all == UINT64_MAX ? UINT32_MAX : g->blocks;
}

static void add_piece(
	struct chunk *c, uint32_t position, uint32_t block, uint32_t count, uint32_t *total)
{
	if (count == 0)
		return;
	c->piece[c->pieces++] = (struct piece){position, block, count};
	*total += count;
}

/* Collects what the groups leave over and cuts it into runs. */
static void pool_init(struct chunk *c)
{
	uint32_t total = 0, length[2], piece = 0, done = 0;

	c->pieces = 0;
	c->unit = c->units = 0;
	if (c->even && c->groups * CHACHA_LANES >= c->n)
		return;
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t g = i / CHACHA_LANES, from = g < c->groups ? c->grouped[g].blocks : 0;

		if ((c->phase == PHASE_ALL || c->phase == PHASE_KEYS) && g >= c->groups)
			add_piece(c, i, 0, 1, &total);
		if (c->phase != PHASE_KEYS && c->good[i])
			add_piece(c, i, c->skip[i] + from + 1, c->blocks[i] - from, &total);
	}
	/*
	 * Sixteen lanes a unit. There are two sets of lanes, of which the second gets a unit less
	 * where that is enough, or one of old and new keys.
	 */
	c->units = (total + CHACHA_LANES - 1) / CHACHA_LANES;
	if (total == 0)
		return;
	c->pooled = true;
	c->sets = c->phase == PHASE_PAIR ? 1 : 2;
	/* Some lanes may never get a packet: they compute with somebody's key. */
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t l = 0; l < CHACHA_LANES; l++)
			c->pool_keys[k].key[l] = c->ops[0].key;
	length[0] = (c->units + c->sets - 1) / c->sets;
	length[1] = c->units - length[0];
	for (uint32_t l = 0; l < POOL_LANES; l++) {
		uint32_t left = length[l / CHACHA_LANES];

		left = left < total ? left : total;
		total -= left;
		c->run[l] = (struct run){piece, done, left, true};
		c->event[l / CHACHA_LANES][l % CHACHA_LANES] = 0;
		while (left > 0) {
			uint32_t here = c->piece[piece].count - done;

			if (here > left) {
				done += left;
				break;
			}
			left -= here;
			piece++;
			done = 0;
		}
	}
}

/* A lane without work, from `step` on: it may not wander off, so it is told again at every step. */
static void pool_rest(struct sl_aead_ctx *ctx, uint32_t set, uint32_t lane, uint32_t step)
{
	struct chunk *c = &ctx->chunk;

	c->pool_mask[set][lane] = 0;
	c->pool[set].text[lane] = (uintptr_t)ctx->idle - (uintptr_t)64 * step;
	c->event[set][lane] = step + 1;
}

/* A lane enters a piece (true), or comes to the block of a packet that is not whole. */
static bool pool_event(struct sl_aead_ctx *ctx, uint32_t set, uint32_t lane, uint32_t step)
{
	struct chunk *c = &ctx->chunk;
	struct chacha_lanes *lanes = &c->pool[set];
	struct run *r = &c->run[set * CHACHA_LANES + lane];
	const struct piece *p = &c->piece[r->piece];
	const struct sl_aead_op *op;
	uint32_t block, left, next;
	const bool entering = r->entering;

	if (step >= r->end) {
		pool_rest(ctx, set, lane, step);
		return false;
	}
	op = at_position(c, p->position);
	left = p->count - r->done;
	block = p->block + r->done;
	if (entering) {
		/* The counter and the address of step 0, which this lane may never have been at. */
		c->pool_keys[set].key[lane] = op->key;
		c->pool_keys[set].counter[lane] = op->counter;
		lanes->block[lane] = block - step;
		lanes->text[lane] =
			(block == 0 ? (uintptr_t)c->pool_key[p->position]
				    : (uintptr_t)op->text + (uintptr_t)64 * (block - 1)) -
			(uintptr_t)64 * step;
		if (c->phase == PHASE_PAIR) {
			const struct sl_aead_reop *reop = &c->reops[c->order[p->position]];

			c->pool_keys[2].key[lane] = reop->old_key;
			c->pool_keys[2].counter[lane] = reop->old_counter;
			c->pool_old.block[lane] = block - step;
		}
	}
	/* Every piece of text ends with its span. */
	c->pool_mask[set][lane] = block == 0  ? UINT32_MAX
				  : left == 1 ? block_mask(c->end[p->position], block)
					      : UINT64_MAX;
	r->entering = left == 1;
	if (left > 1) {
		r->done += left - 1;
		next = step + left - 1;
	} else {
		r->piece++;
		r->done = 0;
		next = step + 1;
	}
	c->event[set][lane] = next < r->end ? next : r->end;
	return entering;
}

/* New keys for the lanes that entered a packet: one by one when they are few. */
static void pool_set_keys(
	struct chacha_lanes *lanes, const struct pool_keys *keys, uint32_t entered)
{
	if (entered == 0)
		return;
	if (__builtin_popcount(entered) >= POOL_MANY) {
		chacha_set_nonces(lanes, keys->counter);
		chacha_set_keys(lanes, keys->key);
	} else {
		for (; entered != 0; entered &= entered - 1) {
			unsigned l = (unsigned)__builtin_ctz(entered);

			chacha_set_key(lanes, l, keys->key[l], keys->counter[l]);
		}
	}
	chacha_begin(lanes);
}

/* Makes the sixteen lanes of a set ready for their next block each. */
static void pool_step(struct sl_aead_ctx *ctx, uint32_t set, uint32_t step)
{
	struct chunk *c = &ctx->chunk;
	const __mmask16 due = _mm512_cmpeq_epi32_mask(
		_mm512_load_si512(c->event[set]), _mm512_set1_epi32((int)step));
	/* By a conversion of its own: gcc 12 with sanitizers at -O1 leaves the upper half as it was. */
	uint32_t lanes = _cvtmask16_u32(due) & 0xffff, entered = 0;

	for (; lanes != 0; lanes &= lanes - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(lanes);

		entered |= (uint32_t)pool_event(ctx, set, lane, step) << lane;
	}
	pool_set_keys(&c->pool[set], &c->pool_keys[set], entered);
	if (c->phase == PHASE_PAIR)
		pool_set_keys(&c->pool_old, &c->pool_keys[2], entered);
}

static bool next_unit(struct sl_aead_ctx *ctx, struct chacha_unit *u)
{
	struct chunk *c = &ctx->chunk;

	for (; c->group < c->groups; c->group++) {
		struct group *g = &c->grouped[c->group];

		if (c->step <= (c->phase == PHASE_KEYS ? 0 : g->blocks)) {
			u->lanes = &g->lanes;
			u->old = &g->old;
			u->keys = &c->keys[2 * c->group];
			u->mask = c->step < g->blocks ? g->whole : g->tail;
			u->step = c->step;
			u->out = c->step == 0	       ? CHACHA_KEYS
				 : c->step < g->masked ? CHACHA_FULL
						       : CHACHA_MASKED;
			c->step++;
			return true;
		}
		c->step = c->phase == PHASE_TEXT || c->phase == PHASE_PAIR;
	}
	if (c->unit == c->units)
		return false;
	u->lanes = &c->pool[c->unit % c->sets];
	u->old = &c->pool_old;
	u->mask = c->pool_mask[c->unit % c->sets];
	u->step = c->unit / c->sets;
	u->out = CHACHA_MASKED;
	pool_step(ctx, c->unit % c->sets, u->step);
	c->unit++;
	return true;
}

/* The text from the old key stream to the new one, in all spans. */
static void run_pairs(struct sl_aead_ctx *ctx)
{
	struct chunk *c = &ctx->chunk;
	struct chacha_unit u;

	c->phase = PHASE_PAIR;
	c->group = 0;
	c->step = 1;
	for (uint32_t g = 0; g < c->groups; g++) {
		struct group *group = &c->grouped[g];

		group_masks(c, group, g * CHACHA_LANES);
		if (group->blocks == 0)
			continue;
		group_place(c, group, g * CHACHA_LANES);
		group_old(c, group, g * CHACHA_LANES);
	}
	pool_init(c);
	while (next_unit(ctx, &u))
		chacha_step_pair(&u);
}

static void run_phase(struct sl_aead_ctx *ctx, enum phase phase)
{
	struct chunk *c = &ctx->chunk;
	struct chacha_unit u, v;

	c->phase = phase;
	c->group = 0;
	c->step = phase == PHASE_TEXT;
	if (phase != PHASE_KEYS)
		for (uint32_t g = 0; g < c->groups; g++)
			group_masks(c, &c->grouped[g], g * CHACHA_LANES);
	pool_init(c);
	while (next_unit(ctx, &u)) {
		if (next_unit(ctx, &v))
			chacha_step_2(&u, &v);
		else
			chacha_step_1(&u);
	}
	if (phase == PHASE_TEXT)
		return;
	/* One-time keys that came out of the pool. */
	for (uint32_t i = c->groups * CHACHA_LANES; i < c->n; i++) {
		struct poly_keys *k = &c->keys[i / POLY_LANES];

		memcpy(&k->r_lo[i % POLY_LANES], c->pool_key[i], 8);
		memcpy(&k->r_hi[i % POLY_LANES], c->pool_key[i] + 8, 8);
		memcpy(&k->s_lo[i % POLY_LANES], c->pool_key[i] + 16, 8);
		memcpy(&k->s_hi[i % POLY_LANES], c->pool_key[i] + 24, 8);
	}
}

#endif
