/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ChaCha20-Poly1305 across packets with AVX-512: sixteen blocks of any packets a step, Poly1305 of eight packets a
 * vector. docs/aead-engine.md explains it.
 *
 * A burst is worked off in chunks of up to 64 packets. A chunk's packets are sorted by their number of blocks and stand
 * at "positions" from then on:
 *
 *	groups  sixteen positions each: lane = packet for as many steps as the shortest of the sixteen has blocks
 *	pool    all blocks that are left, and all of the packets behind the last full group, as one long row, which is cut
 *		into 32 (or 16) runs of equal length; a lane works off its run and changes keys where the run enters
 *		another packet
 *
 * Both come down to units (sixteen lanes, a step), which are computed two at a time whatever they belong to. Poly1305
 * then takes the positions by eights.
 *
 * Lengths, addresses and the outcome of authentication steer the course of a chunk; keys, texts and tags do not.
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

/* What a lane of the pool has before it. */
struct run {
	uint32_t piece, done; /* where in the row of pieces */
	uint32_t left;	      /* blocks */
	bool fresh;	      /* its key is not set */
};

struct group {
	struct chacha_lanes lanes;
	uint32_t blocks; /* of the shortest */
	uint32_t masked; /* from this step on some lane has less than 64 bytes */
	uint64_t whole[CHACHA_LANES], tail[CHACHA_LANES]; /* masks before the last step, and of it */
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
	uint16_t order[CHUNK];	 /* position -> op */
	uint32_t blocks[CHUNK];	 /* text blocks, by position */
	bool good[CHUNK];	 /* by position */
	struct piece piece[PIECES];
	struct run run[POOL_LANES];
	uint8_t tag[CHUNK][16]; /* by position */
	/* From here on secrets, wiped behind every chunk. */
	struct poly_keys keys[VECTORS];
	uint8_t pool_key[CHUNK][32];
	struct group grouped[GROUPS];
	struct chacha_lanes pool[2];
	uint64_t pool_mask[2][CHACHA_LANES];
};

struct sl_aead_ctx {
	struct chunk chunk __attribute__((aligned(64)));
	uint8_t idle[64] __attribute__((aligned(64))); /* what lanes without work point at */
	unsigned max_burst;
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
};

static inline const struct sl_aead_op *
at_position(const struct chunk *c, uint32_t position)
{
	return &c->ops[c->order[position]];
}

/* Longest first. */
static void
sort(struct chunk *c)
{
	uint32_t first = (c->ops[0].text_len + 63) / 64, differ = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		c->blocks[i] = (uint32_t)(((uint64_t)c->ops[i].text_len + 63) / 64);
		c->order[i] = (uint16_t)i;
		differ |= c->blocks[i] ^ first;
	}
	if (differ == 0)
		return;
	for (uint32_t i = 1; i < c->n; i++) {
		uint32_t blocks = c->blocks[i], j = i;
		uint16_t op = c->order[i];

		for (; j > 0 && c->blocks[j - 1] < blocks; j--) {
			c->blocks[j] = c->blocks[j - 1];
			c->order[j] = c->order[j - 1];
		}
		c->blocks[j] = blocks;
		c->order[j] = op;
	}
}

/* The bytes of text block b (from 1) of a packet. */
static inline uint64_t
block_mask(uint32_t text_len, uint32_t b)
{
	uint32_t left = text_len - 64 * (b - 1);

	return left >= 64 ? UINT64_MAX : UINT64_MAX >> (64 - left);
}

static void
group_init(struct chunk *c, struct group *g, uint32_t first)
{
	const uint8_t *key[CHACHA_LANES];

	for (uint32_t l = 0; l < CHACHA_LANES; l++) {
		const struct sl_aead_op *op = at_position(c, first + l);

		key[l] = op->key;
		g->lanes.nonce_lo[l] = (uint32_t)op->counter;
		g->lanes.nonce_hi[l] = (uint32_t)(op->counter >> 32);
		g->lanes.block[l] = 0;
		g->lanes.text[l] = (uintptr_t)op->text - 64;
	}
	chacha_set_keys(&g->lanes, key);
	g->blocks = c->blocks[first + CHACHA_LANES - 1];
}

/* Once it is known which packets are worked on: how far the group goes and what its last step may touch. */
static void
group_masks(struct chunk *c, struct group *g, uint32_t first)
{
	bool dead = false;
	uint64_t all = UINT64_MAX;

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

static void
add_piece(struct chunk *c, uint32_t position, uint32_t block, uint32_t count, uint32_t *total)
{
	if (count == 0)
		return;
	c->piece[c->pieces++] = (struct piece){position, block, count};
	*total += count;
}

/* Collects what the groups leave over and cuts it into runs. */
static void
pool_init(struct chunk *c)
{
	uint32_t total = 0, length[2], piece = 0, done = 0;

	c->pieces = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t g = i / CHACHA_LANES, from = g < c->groups ? c->grouped[g].blocks : 0;

		if (c->phase != PHASE_TEXT && g >= c->groups)
			add_piece(c, i, 0, 1, &total);
		if (c->phase != PHASE_KEYS && c->good[i])
			add_piece(c, i, from + 1, c->blocks[i] - from, &total);
	}
	/* Sixteen lanes a unit; the second set gets a unit less where that is enough. */
	c->units = (total + CHACHA_LANES - 1) / CHACHA_LANES;
	c->unit = 0;
	length[0] = (c->units + 1) / 2;
	length[1] = c->units / 2;
	for (uint32_t l = 0; l < POOL_LANES; l++) {
		uint32_t left = length[l / CHACHA_LANES];

		left = left < total ? left : total;
		total -= left;
		c->run[l] = (struct run){piece, done, left, true};
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

/* Makes the sixteen lanes of a set ready for their next block each. */
static void
pool_step(struct sl_aead_ctx *ctx, uint32_t set, uint32_t step)
{
	struct chunk *c = &ctx->chunk;
	struct chacha_lanes *lanes = &c->pool[set];

	for (uint32_t l = 0; l < CHACHA_LANES; l++) {
		struct run *r = &c->run[set * CHACHA_LANES + l];
		const struct piece *p = &c->piece[r->piece];
		const struct sl_aead_op *op;
		uint32_t block;

		if (r->left == 0) {
			c->pool_mask[set][l] = 0;
			lanes->text[l] = (uintptr_t)ctx->idle - (uintptr_t)64 * step;
			continue;
		}
		op = at_position(c, p->position);
		block = p->block + r->done;
		if (r->fresh || r->done == 0) {
			/* The counter and the address of step 0, which this lane may never have been at. */
			chacha_set_key(lanes, l, op->key, op->counter);
			lanes->block[l] = block - step;
			lanes->text[l] = (block == 0 ? (uintptr_t)c->pool_key[p->position] :
						       (uintptr_t)op->text + (uintptr_t)64 * (block - 1)) -
					 (uintptr_t)64 * step;
			r->fresh = false;
		}
		c->pool_mask[set][l] = block == 0 ? UINT32_MAX : block_mask(op->text_len, block);
		r->left--;
		r->done++;
		if (r->done == p->count) {
			r->piece++;
			r->done = 0;
		}
	}
}

static bool
next_unit(struct sl_aead_ctx *ctx, struct chacha_unit *u)
{
	struct chunk *c = &ctx->chunk;

	for (; c->group < c->groups; c->group++) {
		struct group *g = &c->grouped[c->group];

		if (c->step <= (c->phase == PHASE_KEYS ? 0 : g->blocks)) {
			u->lanes = &g->lanes;
			u->keys = &c->keys[2 * c->group];
			u->mask = c->step < g->blocks ? g->whole : g->tail;
			u->step = c->step;
			u->out = c->step == 0 ? CHACHA_KEYS : c->step < g->masked ? CHACHA_FULL : CHACHA_MASKED;
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

static void
run_phase(struct sl_aead_ctx *ctx, enum phase phase)
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

static void
chunk_init(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, uint32_t n)
{
	struct chunk *c = &ctx->chunk;

	c->ops = ops;
	c->n = n;
	c->groups = n / CHACHA_LANES;
	sort(c);
	for (uint32_t i = 0; i < n; i++)
		c->good[i] = true;
	for (uint32_t g = 0; g < c->groups; g++)
		group_init(c, &c->grouped[g], g * CHACHA_LANES);
}

static void
chunk_tags(struct sl_aead_ctx *ctx)
{
	struct chunk *c = &ctx->chunk;

	for (uint32_t first = 0; first < c->n; first += POLY_LANES) {
		struct poly_job job;

		for (uint32_t l = 0; l < POLY_LANES; l++) {
			/* Lanes beyond the last packet repeat the first one's. */
			const struct sl_aead_op *op = at_position(c, first + l < c->n ? first + l : first);

			job.aad[l] = (uintptr_t)op->aad;
			job.text[l] = (uintptr_t)op->text;
			job.len[l] = op->text_len;
		}
		poly_tags(&c->tag[first], &job, &c->keys[first / POLY_LANES], ctx->idle);
	}
}

static void
chunk_wipe(struct chunk *c)
{
	size_t vectors = (c->n + POLY_LANES - 1) / POLY_LANES;

	memset(c->keys, 0, vectors * sizeof(c->keys[0]));
	memset(c->pool_key, 0, sizeof(c->pool_key));
	for (uint32_t g = 0; g < c->groups; g++)
		memset(c->grouped[g].lanes.key, 0, sizeof(c->grouped[g].lanes.key));
	memset(c->pool[0].key, 0, sizeof(c->pool[0].key));
	memset(c->pool[1].key, 0, sizeof(c->pool[1].key));
	/* The context lives on, and with it the zeros: the compiler may not drop them. */
	__asm__ volatile("" : : "r"(c) : "memory");
}

static void
seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	struct chunk *c = &ctx->chunk;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, n - done < CHUNK ? n - done : CHUNK);
		run_phase(ctx, PHASE_ALL);
		chunk_tags(ctx);
		for (uint32_t i = 0; i < c->n; i++) {
			const struct sl_aead_op *op = at_position(c, i);

			memcpy(op->text + op->text_len, c->tag[i], SL_AEAD_TAG_BYTES);
		}
		chunk_wipe(c);
	}
}

/* No branch on how many bytes agree. */
static inline bool
tag_equal(const uint8_t *a, const uint8_t *b)
{
	uint64_t a0, a1, b0, b1;

	memcpy(&a0, a, 8);
	memcpy(&a1, a + 8, 8);
	memcpy(&b0, b, 8);
	memcpy(&b1, b + 8, 8);
	return ((a0 ^ b0) | (a1 ^ b1)) == 0;
}

static unsigned
open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	struct chunk *c = &ctx->chunk;
	unsigned good = 0;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, n - done < CHUNK ? n - done : CHUNK);
		run_phase(ctx, PHASE_KEYS);
		chunk_tags(ctx);
		for (uint32_t i = 0; i < c->n; i++) {
			const struct sl_aead_op *op = at_position(c, i);

			c->good[i] = tag_equal(c->tag[i], op->text + op->text_len);
			ctx->ok[done + c->order[i]] = c->good[i];
			good += c->good[i];
		}
		/* What did not authenticate is left as it was. */
		run_phase(ctx, PHASE_TEXT);
		chunk_wipe(c);
	}
	return good == n ? n : aead_partition(ops, n, ctx->ok, ctx->spare);
}

static struct sl_aead_ctx *
create(unsigned max_burst)
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

static void
destroy(struct sl_aead_ctx *ctx)
{
	if (!ctx)
		return;
	sl_wipe(ctx, sizeof(*ctx));
	free(ctx);
}

void
aead_avx512_poly(uint8_t (*tag)[16], const uint8_t (*key)[32], const struct sl_aead_op *ops, unsigned n)
{
	static const uint8_t idle[64];
	struct poly_job job;
	struct poly_keys keys;

	assert(n > 0 && n <= POLY_LANES);
	for (unsigned l = 0; l < POLY_LANES; l++) {
		unsigned i = l < n ? l : 0;

		job.aad[l] = (uintptr_t)ops[i].aad;
		job.text[l] = (uintptr_t)ops[i].text;
		job.len[l] = ops[i].text_len;
		memcpy(&keys.r_lo[l], key[i], 8);
		memcpy(&keys.r_hi[l], key[i] + 8, 8);
		memcpy(&keys.s_lo[l], key[i] + 16, 8);
		memcpy(&keys.s_hi[l], key[i] + 24, 8);
	}
	poly_tags(tag, &job, &keys, idle);
}

const struct sl_aead_backend sl_aead_avx512 = {
	.name = "avx512",
	.usable = aead_avx512_usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
