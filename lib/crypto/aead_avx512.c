/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ChaCha20-Poly1305 across packets with AVX-512: sixteen blocks of any packets a step, Poly1305 of
 *eight packets a vector. docs/aead-engine.md explains it.
 *
 * A burst is worked off in chunks of up to 64 packets. A chunk's packets are sorted by their number
 *of blocks and stand at "positions" from then on:
 *
 *	groups  sixteen positions each: lane = packet for as many steps as the shortest of the
 *sixteen has blocks pool    all blocks that are left, and all of the packets behind the last full
 *group, as one long row, which is cut into 32 (or 16) runs of equal length; a lane works off its
 *run and changes keys where the run enters another packet
 *
 * Both come down to units (sixteen lanes, a step), which are computed two at a time whatever they
 *belong to. Poly1305 then takes the positions by eights.
 *
 * Lengths, addresses and the outcome of authentication steer the course of a chunk; keys, texts and
 *tags do not.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aead_avx512_chacha.h"
#include "aead_avx512_poly.h"
#include "aead_backend.h"

#define CHUNK 64u
#define GROUPS (CHUNK / CHACHA_LANES)
#define VECTORS (CHUNK / POLY_LANES)
#define PIECES (2 * CHUNK)
#define POOL_LANES (2 * CHACHA_LANES)

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
};

/* What the units of a chunk do. */
enum phase {
	PHASE_ALL,  /* one-time keys and text */
	PHASE_KEYS, /* one-time keys only */
	PHASE_TEXT,
};

struct chunk {
	struct sl_aead_op *ops;
	uint32_t n, groups;
	enum phase phase;
	uint32_t group, step; /* the next unit of a group */
	uint32_t unit, units; /* the same of the pool */
	uint32_t pieces;
	uint16_t order[CHUNK];	/* position -> op */
	uint32_t blocks[CHUNK]; /* text blocks, by position */
	bool good[CHUNK];	/* by position */
	bool even;		/* all of one length */
	bool all_good;
	bool pooled; /* the pool has been used */
	struct piece piece[PIECES];
	struct run run[POOL_LANES];
	uint8_t tag[CHUNK][16]; /* by position */
	/* From here on secrets, wiped behind every chunk. */
	struct poly_keys keys[VECTORS];
	uint8_t pool_key[CHUNK][32] __attribute__((aligned(64)));
	struct group grouped[GROUPS];
	struct chacha_lanes pool[2];
	uint64_t pool_mask[2][CHACHA_LANES];
	uint32_t event[2][CHACHA_LANES]
		__attribute__((aligned(64))); /* the step at which a lane's inputs change */
};

struct sl_aead_ctx {
	struct chunk chunk __attribute__((aligned(64)));
	uint8_t idle[64] __attribute__((aligned(64))); /* what lanes without work point at */
	unsigned max_burst;
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
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
	for (uint32_t i = 0; i < c->n; i++) {
		c->order[rank[i]] = (uint16_t)i;
		c->blocks[rank[i]] = (uint32_t)(((uint64_t)c->ops[i].text_len + 63) / 64);
	}
}

/* Positions of the packets; where all are of one length, as they came. */
static void arrange(struct chunk *c)
{
	uint32_t len = c->ops[0].text_len, differ = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		c->blocks[i] = (uint32_t)(((uint64_t)c->ops[i].text_len + 63) / 64);
		c->order[i] = (uint16_t)i;
		differ |= c->ops[i].text_len ^ len;
	}
	c->even = differ == 0;
	if (!c->even)
		sort(c);
}

/* The bytes of text block b (from 1) of a packet. */
static inline uint64_t block_mask(uint32_t text_len, uint32_t b)
{
	uint32_t left = text_len - 64 * (b - 1);

	return left >= 64 ? UINT64_MAX : UINT64_MAX >> (64 - left);
}

static void groups_init(struct chunk *c)
{
	const uint8_t *key[CHUNK];

	for (uint32_t i = 0; i < c->groups * CHACHA_LANES; i++) {
		const struct sl_aead_op *op = at_position(c, i);
		struct chacha_lanes *lanes = &c->grouped[i / CHACHA_LANES].lanes;
		uint32_t l = i % CHACHA_LANES;

		key[i] = op->key;
		lanes->nonce_lo[l] = (uint32_t)op->counter;
		lanes->nonce_hi[l] = (uint32_t)(op->counter >> 32);
		lanes->text[l] = (uintptr_t)op->text - 64;
	}
	for (uint32_t g = 0; g < c->groups; g++) {
		chacha_set_keys(&c->grouped[g].lanes, key + g * CHACHA_LANES);
		chacha_begin(&c->grouped[g].lanes);
		c->grouped[g].blocks = c->blocks[(g + 1) * CHACHA_LANES - 1];
	}
}

/* Once it is known which packets are worked on: how far the group goes and what its last step may
 * touch. */
static void group_masks(struct chunk *c, struct group *g, uint32_t first)
{
	bool dead = false;
	uint64_t all = UINT64_MAX;

	if (c->even && c->all_good && at_position(c, first)->text_len % 64 == 0) {
		g->masked = UINT32_MAX;
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
		uint32_t len = at_position(c, first + l)->text_len;

		g->whole[l] = c->good[first + l] ? UINT64_MAX : 0;
		g->tail[l] = c->good[first + l] ? block_mask(len, g->blocks) : 0;
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
	if (c->even && c->n % CHACHA_LANES == 0)
		return;
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t g = i / CHACHA_LANES, from = g < c->groups ? c->grouped[g].blocks : 0;

		if (c->phase != PHASE_TEXT && g >= c->groups)
			add_piece(c, i, 0, 1, &total);
		if (c->phase != PHASE_KEYS && c->good[i])
			add_piece(c, i, from + 1, c->blocks[i] - from, &total);
	}
	/* Sixteen lanes a unit; the second set gets a unit less where that is enough. */
	c->units = (total + CHACHA_LANES - 1) / CHACHA_LANES;
	if (total == 0)
		return;
	c->pooled = true;
	length[0] = (c->units + 1) / 2;
	length[1] = c->units / 2;
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

/* A lane enters a piece, or comes to the block of a packet that is not whole. */
static void pool_event(struct sl_aead_ctx *ctx, uint32_t set, uint32_t lane, uint32_t step)
{
	struct chunk *c = &ctx->chunk;
	struct chacha_lanes *lanes = &c->pool[set];
	struct run *r = &c->run[set * CHACHA_LANES + lane];
	const struct piece *p = &c->piece[r->piece];
	const struct sl_aead_op *op;
	uint32_t block, left, next;

	if (step >= r->end) {
		pool_rest(ctx, set, lane, step);
		return;
	}
	op = at_position(c, p->position);
	left = p->count - r->done;
	block = p->block + r->done;
	if (r->entering) {
		/* The counter and the address of step 0, which this lane may never have been at. */
		chacha_set_key(lanes, lane, op->key, op->counter);
		lanes->block[lane] = block - step;
		lanes->text[lane] =
			(block == 0 ? (uintptr_t)c->pool_key[p->position]
				    : (uintptr_t)op->text + (uintptr_t)64 * (block - 1)) -
			(uintptr_t)64 * step;
	}
	/* Every piece of text ends with its packet. */
	c->pool_mask[set][lane] = block == 0  ? UINT32_MAX
				  : left == 1 ? block_mask(op->text_len, block)
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
}

/* Makes the sixteen lanes of a set ready for their next block each. */
static void pool_step(struct sl_aead_ctx *ctx, uint32_t set, uint32_t step)
{
	struct chunk *c = &ctx->chunk;
	uint32_t lanes = _mm512_cmpeq_epi32_mask(
		_mm512_load_si512(c->event[set]), _mm512_set1_epi32((int)step));

	if (lanes == 0)
		return;
	do {
		pool_event(ctx, set, (uint32_t)__builtin_ctz(lanes), step);
		lanes &= lanes - 1;
	} while (lanes != 0);
	chacha_begin(&c->pool[set]);
}

static bool next_unit(struct sl_aead_ctx *ctx, struct chacha_unit *u)
{
	struct chunk *c = &ctx->chunk;

	for (; c->group < c->groups; c->group++) {
		struct group *g = &c->grouped[c->group];

		if (c->step <= (c->phase == PHASE_KEYS ? 0 : g->blocks)) {
			u->lanes = &g->lanes;
			u->keys = &c->keys[2 * c->group];
			u->mask = c->step < g->blocks ? g->whole : g->tail;
			u->step = c->step;
			u->out = c->step == 0	       ? CHACHA_KEYS
				 : c->step < g->masked ? CHACHA_FULL
						       : CHACHA_MASKED;
			c->step++;
			return true;
		}
		c->step = c->phase == PHASE_TEXT;
	}
	if (c->unit == c->units)
		return false;
	u->lanes = &c->pool[c->unit % 2];
	u->mask = c->pool_mask[c->unit % 2];
	u->step = c->unit / 2;
	u->out = CHACHA_MASKED;
	pool_step(ctx, c->unit % 2, u->step);
	c->unit++;
	return true;
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

static void chunk_init(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, uint32_t n)
{
	struct chunk *c = &ctx->chunk;

	c->ops = ops;
	c->n = n;
	c->groups = n / CHACHA_LANES;
	c->all_good = true;
	c->pooled = false;
	memset(c->good, true, sizeof(c->good));
	arrange(c);
	groups_init(c);
}

/* Up to sixteen packets from `first` on, if they are of one shape. */
static bool tags_even(struct chunk *c, uint32_t first, uint32_t count, bool in_place)
{
	uint64_t start[2 * POLY_LANES];
	uint8_t *tag[2 * POLY_LANES];
	uint64_t differ = 0;
	uint32_t len = at_position(c, first)->text_len;
	unsigned vectors = count > POLY_LANES ? 2 : 1;

	for (uint32_t l = 0; l < count; l++) {
		const struct sl_aead_op *op = at_position(c, first + l);

		differ |= (op->text_len ^ len) |
			  ((uintptr_t)op->text - (uintptr_t)op->aad - SL_AEAD_AAD_BYTES);
		start[l] = (uintptr_t)op->aad;
		tag[l] = in_place ? op->text + len : c->tag[first + l];
	}
	if (differ != 0)
		return false;
	/*
	 * Lanes beyond the last packet repeat the first one's, with keys that are nobody's; what
	 * comes out of them goes nowhere.
	 */
	for (uint32_t l = count; l < vectors * POLY_LANES; l++) {
		start[l] = start[0];
		tag[l] = c->tag[first + l];
	}
	poly_tags_even(tag, start, len, &c->keys[first / POLY_LANES], vectors);
	return true;
}

static void tags_any(struct sl_aead_ctx *ctx, uint32_t first, uint32_t count, bool in_place)
{
	struct chunk *c = &ctx->chunk;
	struct poly_job job;

	for (uint32_t l = 0; l < POLY_LANES; l++) {
		/* As above. */
		const struct sl_aead_op *op = at_position(c, l < count ? first + l : first);

		job.aad[l] = (uintptr_t)op->aad;
		job.text[l] = (uintptr_t)op->text;
		job.len[l] = op->text_len;
		job.tag[l] = in_place && l < count ? op->text + op->text_len : c->tag[first + l];
	}
	poly_tags(&job, &c->keys[first / POLY_LANES], ctx->idle);
}

/* Tags behind the texts, or into the chunk to be compared. */
static void chunk_tags(struct sl_aead_ctx *ctx, bool in_place)
{
	struct chunk *c = &ctx->chunk;
	uint32_t first = 0;

	while (first < c->n) {
		uint32_t left = c->n - first, eight = left < POLY_LANES ? left : POLY_LANES;
		uint32_t sixteen = left < 2 * POLY_LANES ? left : 2 * POLY_LANES;

		if (left > POLY_LANES && tags_even(c, first, sixteen, in_place)) {
			first += sixteen;
			continue;
		}
		if (!tags_even(c, first, eight, in_place))
			tags_any(ctx, first, eight, in_place);
		first += eight;
	}
}

static inline void wipe_rows(void *rows, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64)
		_mm512_store_si512((uint8_t *)rows + i, _mm512_setzero_si512());
}

static inline void wipe_lanes(struct chacha_lanes *lanes)
{
	wipe_rows(lanes->key, sizeof(lanes->key));
	wipe_rows(lanes->begun, sizeof(lanes->begun));
}

static void chunk_wipe(struct chunk *c)
{
	size_t vectors = (c->n + POLY_LANES - 1) / POLY_LANES;

	wipe_rows(c->keys, vectors * sizeof(c->keys[0]));
	for (uint32_t g = 0; g < c->groups; g++)
		wipe_lanes(&c->grouped[g].lanes);
	if (c->pooled) {
		wipe_rows(c->pool_key, sizeof(c->pool_key));
		wipe_lanes(&c->pool[0]);
		wipe_lanes(&c->pool[1]);
	}
	/* The context lives on, and with it the zeros: the compiler may not drop them. */
	__asm__ volatile("" : : "r"(c) : "memory");
}

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	struct chunk *c = &ctx->chunk;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, n - done < CHUNK ? n - done : CHUNK);
		run_phase(ctx, PHASE_ALL);
		chunk_tags(ctx, true);
		chunk_wipe(c);
	}
	return n;
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	struct chunk *c = &ctx->chunk;
	unsigned good = 0;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, n - done < CHUNK ? n - done : CHUNK);
		run_phase(ctx, PHASE_KEYS);
		chunk_tags(ctx, false);
		for (uint32_t i = 0; i < c->n; i++) {
			const struct sl_aead_op *op = at_position(c, i);

			c->good[i] = aead_tag_equal(c->tag[i], op->text + op->text_len);
			ctx->ok[done + c->order[i]] = c->good[i];
			good += c->good[i];
			c->all_good &= c->good[i];
		}
		/* What did not authenticate is left as it was. */
		run_phase(ctx, PHASE_TEXT);
		chunk_wipe(c);
	}
	return good == n ? n : aead_partition(ops, n, ctx->ok, ctx->spare);
}

static struct sl_aead_ctx *create(unsigned max_burst)
{
	struct sl_aead_ctx *ctx;

	if (max_burst == 0 || max_burst > SL_AEAD_BURST_MAX) {
		errno = EINVAL;
		return NULL;
	}
	ctx = aligned_alloc(64, sizeof(*ctx));
	if (!ctx)
		return NULL;
	memset(ctx, 0, sizeof(*ctx));
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

void aead_avx512_poly(
	uint8_t (*tag)[16], const uint8_t (*key)[32], const struct sl_aead_op *ops, unsigned n)
{
	static const uint8_t idle[64];
	struct poly_keys keys[2];
	struct poly_job job;
	uint64_t start[2 * POLY_LANES];
	uint8_t *tags[2 * POLY_LANES];

	assert(n > 0 && (n <= POLY_LANES || n == 2 * POLY_LANES));
	for (unsigned l = 0; l < 2 * POLY_LANES; l++) {
		unsigned i = l < n ? l : 0, v = l / POLY_LANES, lane = l % POLY_LANES;

		memcpy(&keys[v].r_lo[lane], key[i], 8);
		memcpy(&keys[v].r_hi[lane], key[i] + 8, 8);
		memcpy(&keys[v].s_lo[lane], key[i] + 16, 8);
		memcpy(&keys[v].s_hi[lane], key[i] + 24, 8);
		start[l] = (uintptr_t)ops[i].aad;
		tags[l] = tag[i];
		if (v > 0)
			continue;
		job.aad[lane] = (uintptr_t)ops[i].aad;
		job.text[lane] = (uintptr_t)ops[i].text;
		job.len[lane] = ops[i].text_len;
		job.tag[lane] = tag[i];
	}
	if (n > POLY_LANES)
		poly_tags_even(tags, start, ops[0].text_len, keys, 2);
	else
		poly_tags(&job, keys, idle);
}

const struct sl_aead_backend sl_aead_avx512 = {
	.name = "avx512",
	.usable = aead_avx512_usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
