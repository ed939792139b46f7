/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ChaCha20-Poly1305 across packets with AVX-512: sixteen blocks of any packets a step, Poly1305 of
 * eight packets a vector. docs/aead-engine.md explains it.
 *
 * A burst is worked off in chunks of up to 64 packets (aead_avx512_chunk.h), ChaCha20 by units of
 * sixteen lanes, then Poly1305 by eights of positions, or the other way round.
 *
 * Lengths, addresses and the outcome of authentication steer the course of a chunk; keys, texts and
 * tags do not.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aead_avx512_chunk.h"

static void chunk_init(
	struct sl_aead_ctx *ctx, struct sl_aead_op *ops, uint32_t n, enum cover cover)
{
	struct chunk *c = &ctx->chunk;

	c->ops = ops;
	c->n = n;
	c->all_good = true;
	c->pooled = false;
	memset(c->good, true, sizeof(c->good));
	arrange(c, cover);
	count_groups(c);
	for (uint32_t i = 0; i < n || i < c->groups * CHACHA_LANES; i += POLY_LANES)
		read_ops(c, i);
	set_spans(c, cover);
	groups_init(c);
}

/* Up to sixteen packets from `first` on, if they are of one length. */
static bool tags_even(struct chunk *c, uint32_t first, uint32_t count, bool in_place)
{
	uint64_t differ = 0, len = c->len[first];
	unsigned vectors = count > POLY_LANES ? 2 : 1;
	uint8_t *tag[2 * POLY_LANES];

	for (uint32_t l = 0; l < count && !c->even; l++)
		differ |= c->len[first + l] ^ len;
	/* A vector alone of long ones is as well off in the other way. */
	if (differ != 0 || (vectors == 1 && len >= POLY_LONG))
		return false;
	/* Lanes beyond the last packet repeat it, with keys that are nobody's; what comes out of
	 * them goes nowhere. */
	for (uint32_t l = 0; l < vectors * POLY_LANES; l++)
		tag[l] = in_place && l < count ? (uint8_t *)(uintptr_t)(c->text[first + l] + len)
					       : c->tag[first + l];
	poly_tags_even(tag, &c->aad[first], &c->text[first], (uint32_t)len,
		&c->keys[first / POLY_LANES], vectors);
	return true;
}

static void tags_any(struct sl_aead_ctx *ctx, uint32_t first, uint32_t count, bool in_place)
{
	struct chunk *c = &ctx->chunk;
	struct poly_job job = {&c->aad[first], &c->text[first], &c->len[first], {NULL}};

	for (uint32_t l = 0; l < POLY_LANES; l++)
		job.tag[l] = in_place && l < count
				     ? (uint8_t *)(uintptr_t)(c->text[first + l] +
							      c->len[first + l])
				     : c->tag[first + l];
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
	for (uint32_t g = 0; g < c->groups; g++) {
		wipe_lanes(&c->grouped[g].lanes);
		if (c->reops)
			wipe_lanes(&c->grouped[g].old);
	}
	if (c->pooled) {
		wipe_rows(c->pool_key, sizeof(c->pool_key));
		wipe_lanes(&c->pool[0]);
		wipe_lanes(&c->pool[1]);
		if (c->reops)
			wipe_lanes(&c->pool_old);
	}
	/* The context lives on, and with it the zeros: the compiler may not drop them. */
	__asm__ volatile("" : : "r"(c) : "memory");
}

static inline uint32_t chunk_size(unsigned left)
{
	return left < CHUNK ? left : CHUNK;
}

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	struct chunk *c = &ctx->chunk;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, chunk_size(n - done), COVER_ALL);
		run_phase(ctx, PHASE_ALL);
		chunk_tags(ctx, true);
		chunk_wipe(c);
	}
	return n;
}

/* Authenticates all of each text and deciphers what `cover` says of the good ones. */
static unsigned open_covered(
	struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n, enum cover cover)
{
	struct chunk *c = &ctx->chunk;
	unsigned good = 0;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, chunk_size(n - done), cover);
		run_phase(ctx, PHASE_KEYS);
		chunk_tags(ctx, false);
		for (uint32_t i = 0; i < c->n; i++) {
			struct sl_aead_op *op = &c->ops[c->order[i]];

			c->good[i] = aead_tag_equal(c->tag[i], op->text + op->text_len);
			ctx->ok[done + c->order[i]] = c->good[i];
			good += c->good[i];
			c->all_good &= c->good[i];
			if (cover == COVER_FIRST)
				op->lead = c->end[i];
		}
		/* What did not authenticate is left as it was. */
		run_phase(ctx, PHASE_TEXT);
		chunk_wipe(c);
	}
	return good == n ? n : aead_partition(ops, n, ctx->ok, ctx->spare);
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	return open_covered(ctx, ops, n, COVER_ALL);
}

static unsigned open_lead(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	return open_covered(ctx, ops, n, COVER_FIRST);
}

static void open_rest(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		chunk_init(ctx, ops + done, chunk_size(n - done), COVER_REST);
		run_phase(ctx, PHASE_TEXT);
		chunk_wipe(&ctx->chunk);
	}
	for (unsigned i = 0; i < n; i++)
		ops[i].lead = ops[i].text_len;
}

_Static_assert(offsetof(struct sl_aead_reop, text) == 0 && offsetof(struct sl_aead_reop, aad) == 8 &&
		       offsetof(struct sl_aead_reop, new_key) == 24 &&
		       offsetof(struct sl_aead_reop, new_counter) == 40 &&
		       offsetof(struct sl_aead_reop, text_len) == 48 &&
		       offsetof(struct sl_aead_reop, lead) == 52 &&
		       offsetof(struct sl_aead_reop, slot) == 56 && sizeof(struct sl_aead_reop) == 64,
	"a reop is read as a row");

/*
 * What seal wants to know of each: its words in another order. Written as a whole row, of which the
 * last 16 bytes are the next op's: chunk_init reads them by the row at once, and words written one by
 * one would have to leave the store buffer before. Says whether any has a rest behind its lead.
 */
static bool read_reops(struct sl_aead_op *ops, const struct sl_aead_reop *reops, uint32_t n)
{
	const __m512i words =
		_mm512_setr_epi32(0, 1, 2, 3, 6, 7, 10, 11, 12, 14, 13, 15, 15, 15, 15, 15);
	uint32_t rest = 0;

	for (uint32_t i = 0; i < n; i++) {
		_mm512_storeu_si512(
			&ops[i], _mm512_permutexvar_epi32(words, _mm512_loadu_si512(&reops[i])));
		rest |= reops[i].text_len ^ reops[i].lead;
	}
	return rest != 0;
}

/* The lead is sealed as any text; behind it one key stream takes the other's place. */
static unsigned reseal(struct sl_aead_ctx *ctx, struct sl_aead_reop *reops, unsigned n)
{
	struct chunk *c = &ctx->chunk;

	assert(n <= ctx->max_burst);
	for (unsigned done = 0; done < n; done += CHUNK) {
		uint32_t size = chunk_size(n - done);
		bool rest = read_reops(ctx->spare, reops + done, size);

		chunk_init(ctx, ctx->spare, size, COVER_LEAD);
		run_phase(ctx, PHASE_ALL);
		if (rest) {
			c->reops = reops + done;
			set_spans(c, COVER_REST);
			run_pairs(ctx);
		}
		chunk_tags(ctx, true);
		chunk_wipe(c);
		c->reops = NULL;
	}
	return n;
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
	uint64_t aad[2 * POLY_LANES] __attribute__((aligned(64)));
	uint64_t text[2 * POLY_LANES] __attribute__((aligned(64)));
	uint64_t len[2 * POLY_LANES] __attribute__((aligned(64)));
	uint8_t *tags[2 * POLY_LANES];
	struct poly_keys keys[2];
	struct poly_job job = {aad, text, len, {NULL}};

	assert(n > 0 && (n <= POLY_LANES || n == 2 * POLY_LANES));
	for (unsigned l = 0; l < 2 * POLY_LANES; l++) {
		unsigned i = l < n ? l : 0, v = l / POLY_LANES, lane = l % POLY_LANES;

		memcpy(&keys[v].r_lo[lane], key[i], 8);
		memcpy(&keys[v].r_hi[lane], key[i] + 8, 8);
		memcpy(&keys[v].s_lo[lane], key[i] + 16, 8);
		memcpy(&keys[v].s_hi[lane], key[i] + 24, 8);
		aad[l] = (uintptr_t)ops[i].aad;
		text[l] = (uintptr_t)ops[i].text;
		len[l] = ops[i].text_len;
		tags[l] = tag[i];
		if (v == 0)
			job.tag[lane] = tag[i];
	}
	if (n > POLY_LANES)
		poly_tags_even(tags, aad, text, ops[0].text_len, keys, 2);
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
	.open_lead = open_lead,
	.open_rest = open_rest,
	.reseal = reseal,
};
