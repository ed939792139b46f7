/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "auto": for every burst the faster of two backends, one of our own engines, which works across
 * packets, and a library that works inside one. Few packets leave most lanes of the first empty;
 * where that makes it the slower one was measured (docs/aead-engine.md) and depends on the number
 * of packets and the longest of them.
 */
#include "aead_backend.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* What a wide engine needs to win: so many packets, fewer when the longest is short. */
struct rule {
	uint32_t packets;
	uint32_t text_max; /* with at least so many packets, texts of up to so many bytes */
};

struct wide {
	const struct sl_aead_backend *backend;
	const struct rule *rules;
	unsigned rule_count;
};

#ifdef AEAD_AVX512
static const struct rule avx512_rules[] = {{16, UINT32_MAX}, {8, 1024}, {6, 512}, {5, 128}};
#endif

static const struct wide wide[] = {
#ifdef AEAD_AVX512
	{&sl_aead_avx512, avx512_rules, sizeof(avx512_rules) / sizeof(avx512_rules[0])},
#endif
	{NULL, NULL, 0},
};

struct sl_aead_ctx {
	const struct wide *wide; /* NULL: none usable */
	const struct sl_aead_backend *narrow;
	struct sl_aead_ctx *wide_ctx, *narrow_ctx;
};

static const struct wide *best_wide(void)
{
	for (const struct wide *w = wide; w->backend; w++)
		if (w->backend->usable())
			return w;
	return NULL;
}

static const struct sl_aead_backend *best_narrow(void)
{
	return sl_aead_ipsec_mb.usable() ? &sl_aead_ipsec_mb : &sl_aead_sodium;
}

static bool usable(void)
{
	return true;
}

static void destroy(struct sl_aead_ctx *ctx)
{
	if (!ctx)
		return;
	if (ctx->wide)
		ctx->wide->backend->destroy(ctx->wide_ctx);
	ctx->narrow->destroy(ctx->narrow_ctx);
	free(ctx);
}

static struct sl_aead_ctx *create(unsigned max_burst)
{
	struct sl_aead_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (!ctx)
		return NULL;
	ctx->narrow = best_narrow();
	ctx->narrow_ctx = ctx->narrow->create(max_burst);
	if (!ctx->narrow_ctx)
		goto fail;
	ctx->wide = best_wide();
	if (ctx->wide) {
		ctx->wide_ctx = ctx->wide->backend->create(max_burst);
		if (!ctx->wide_ctx)
			goto fail;
	}
	return ctx;
fail:
	rc = errno;
	destroy(ctx);
	errno = rc;
	return NULL;
}

static bool wide_wins(const struct wide *w, const struct sl_aead_op *ops, unsigned n)
{
	uint32_t longest = 0;

	/* The last rule has the fewest packets. */
	if (n < w->rules[w->rule_count - 1].packets)
		return false;
	if (n >= w->rules[0].packets && w->rules[0].text_max == UINT32_MAX)
		return true;
	for (unsigned i = 0; i < n; i++)
		longest = ops[i].text_len > longest ? ops[i].text_len : longest;
	for (unsigned i = 0; i < w->rule_count; i++)
		if (n >= w->rules[i].packets && longest <= w->rules[i].text_max)
			return true;
	return false;
}

static void seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (ctx->wide && wide_wins(ctx->wide, ops, n))
		ctx->wide->backend->seal(ctx->wide_ctx, ops, n);
	else
		ctx->narrow->seal(ctx->narrow_ctx, ops, n);
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (ctx->wide && wide_wins(ctx->wide, ops, n))
		return ctx->wide->backend->open(ctx->wide_ctx, ops, n);
	return ctx->narrow->open(ctx->narrow_ctx, ops, n);
}

const struct sl_aead_backend sl_aead_auto = {
	.name = "auto",
	.usable = usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
