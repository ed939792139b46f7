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

/* With so many packets a wide engine wins if none is longer than text_max. */
struct rule {
	uint32_t packets, text_max;
};

/*
 * The last rule has the fewest packets. From any_from on it wins whatever they are; below, only
 * when they are of about one length (three quarters of what they would be, were all as long as the longest):
 * one long packet among short ones keeps one lane busy.
 */
struct wide {
	const struct sl_aead_backend *backend;
	uint32_t any_from;
	const struct rule *rules;
	unsigned rule_count;
};

#ifdef AEAD_AVX512
static const struct rule avx512_rules[] = {{6, UINT32_MAX}, {5, 512}, {4, 128}};
#endif

#ifdef AEAD_AVX2
static const struct rule avx2_rules[] = {{12, 512}, {6, 256}, {4, 128}, {3, 64}};
#endif

/* Best first. */
static const struct wide wide[] = {
#ifdef AEAD_AVX512
	{&sl_aead_avx512, 10, avx512_rules, sizeof(avx512_rules) / sizeof(avx512_rules[0])},
#endif
#ifdef AEAD_AVX2
	{&sl_aead_avx2, 20, avx2_rules, sizeof(avx2_rules) / sizeof(avx2_rules[0])},
#endif
	{NULL, 0, NULL, 0},
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
#ifdef AEAD_IPSEC_MB
	if (sl_aead_ipsec_mb.usable())
		return &sl_aead_ipsec_mb;
#endif
	return &sl_aead_sodium;
}

void sl_aead_auto_uses(const struct sl_aead_backend **wide_one, const struct sl_aead_backend **narrow)
{
	const struct wide *w = best_wide();

	*wide_one = w ? w->backend : NULL;
	*narrow = best_narrow();
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

/* What the rules look at, of a burst of either kind of op. */
struct shape {
	uint64_t longest, total;
};

static bool shape_wins(const struct wide *w, struct shape s, unsigned n)
{
	if (4 * s.total < 3 * s.longest * n)
		return false;
	for (unsigned i = 0; i < w->rule_count; i++)
		if (n >= w->rules[i].packets && s.longest <= w->rules[i].text_max)
			return true;
	return false;
}

/* Without a look at the packets, where their number decides. */
#define WIDE_WINS_(ctx, ops, n)                                                                    \
	({                                                                                         \
		const struct wide *w = (ctx)->wide;                                                \
		bool wins = w && (n) >= w->any_from;                                               \
                                                                                                   \
		if (!wins && w && (n) >= w->rules[w->rule_count - 1].packets) {                    \
			struct shape s = {0, 0};                                                   \
                                                                                                   \
			for (unsigned i = 0; i < (n); i++) {                                       \
				s.total += (ops)[i].text_len;                                      \
				if ((ops)[i].text_len > s.longest)                                 \
					s.longest = (ops)[i].text_len;                             \
			}                                                                          \
			wins = shape_wins(w, s, n);                                                \
		}                                                                                  \
		wins;                                                                              \
	})

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, ops, n))
		return ctx->wide->backend->seal(ctx->wide_ctx, ops, n);
	return ctx->narrow->seal(ctx->narrow_ctx, ops, n);
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, ops, n))
		return ctx->wide->backend->open(ctx->wide_ctx, ops, n);
	return ctx->narrow->open(ctx->narrow_ctx, ops, n);
}

/* Transit sets up everything twice: it needs a few packets more. */
#define TRANSIT_FROM 6u

static unsigned open_lead(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (n >= TRANSIT_FROM && WIDE_WINS_(ctx, ops, n))
		return sl_aead_open_lead(ctx->wide->backend, ctx->wide_ctx, ops, n);
	return sl_aead_open_lead(ctx->narrow, ctx->narrow_ctx, ops, n);
}

static void open_rest(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, ops, n))
		sl_aead_open_rest(ctx->wide->backend, ctx->wide_ctx, ops, n);
	else
		sl_aead_open_rest(ctx->narrow, ctx->narrow_ctx, ops, n);
}

static unsigned reseal(struct sl_aead_ctx *ctx, struct sl_aead_reop *ops, unsigned n)
{
	if (n >= TRANSIT_FROM && WIDE_WINS_(ctx, ops, n))
		return sl_aead_reseal(ctx->wide->backend, ctx->wide_ctx, ops, n);
	return sl_aead_reseal(ctx->narrow, ctx->narrow_ctx, ops, n);
}

const struct sl_aead_backend sl_aead_auto = {
	.name = "auto",
	.usable = usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
	.open_lead = open_lead,
	.open_rest = open_rest,
	.reseal = reseal,
};
