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

/* What a burst is for: what wins differs a little. */
enum use { USE_SEAL, USE_OPEN, USE_TRANSIT, USES };

/*
 * A burst of so many packets goes to the wide engine if they are of about one length and the longest
 * has a number of blocks whose bit is set (31: so many and more), or, with `uneven`, if they are not
 * of one length.
 */
struct rule {
	uint32_t blocks;
	bool uneven;
};

/* Bits a to b. */
#define FROM_TO_(a, b) ((UINT32_MAX >> (31 - (b))) & (UINT32_MAX << (a)))
#define ALL_ UINT32_MAX

/* By number of packets; with so many or more it always wins. */
#define RULES 20u

struct wide {
	const struct sl_aead_backend *backend;
	struct rule rules[USES][RULES];
};

#define AVX2_RULES_                                                                                \
	[3] = {FROM_TO_(0, 1), false}, [4 ... 5] = {FROM_TO_(0, 2), false},                        \
	[6 ... 11] = {FROM_TO_(0, 4), false}, [12 ... RULES - 1] = { FROM_TO_(0, 8), false }

/*
 * Measured (docs/aead-engine.md). It goes up and down with the length: our engine's time by steps of
 * sixteen blocks, the library's by leaps of its own, of which that at 193 bytes is the greatest.
 * Best engine first.
 */
static const struct wide wide[] = {
#ifdef AEAD_AVX512
	{&sl_aead_avx512,
		{
			[USE_SEAL] = {[4] = {FROM_TO_(0, 3), false},
				[5] = {FROM_TO_(0, 5) | FROM_TO_(7, 8), false},
				[6] = {FROM_TO_(0, 12) | FROM_TO_(16, 22) | FROM_TO_(24, 31), false},
				[7] = {ALL_, false}, [8 ... RULES - 1] = {ALL_, true}},
			[USE_OPEN] = {[4 ... 5] = {FROM_TO_(0, 1), false},
				[6] = {FROM_TO_(0, 2) | FROM_TO_(4, 5) | FROM_TO_(8, 9) | FROM_TO_(31, 31),
					false},
				[7] = {FROM_TO_(0, 12) | FROM_TO_(16, 19) | FROM_TO_(27, 31), false},
				[8] = {ALL_, false}, [9] = {FROM_TO_(0, 20) | FROM_TO_(26, 31), false},
				[10 ... RULES - 1] = {ALL_, true}},
			/* Everything is set up twice. */
			[USE_TRANSIT] = {[4 ... 5] = {FROM_TO_(0, 1), false},
				[6] = {FROM_TO_(0, 2) | FROM_TO_(8, 9) | FROM_TO_(16, 22) | FROM_TO_(24, 31),
					false},
				[7] = {FROM_TO_(0, 12) | FROM_TO_(15, 31), false}, [8] = {ALL_, true},
				[9] = {FROM_TO_(0, 20) | FROM_TO_(26, 31), false},
				[10 ... RULES - 1] = {ALL_, true}},
		}},
#endif
#ifdef AEAD_AVX2
	{&sl_aead_avx2,
		{
			[USE_SEAL] = {AVX2_RULES_},
			[USE_OPEN] = {AVX2_RULES_},
			[USE_TRANSIT] = {AVX2_RULES_},
		}},
#endif
	{NULL, {{{0, false}}}},
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

/* About one length: three quarters of what they would be, were all as long as the longest. One long
 * packet among short ones keeps one lane busy. */
static bool rule_wins(struct rule rule, uint64_t longest, uint64_t total, unsigned n)
{
	uint64_t blocks = (longest + 63) / 64;

	if (4 * total < 3 * longest * n)
		return rule.uneven;
	return rule.blocks >> (blocks < 31 ? blocks : 31) & 1;
}

/* Without a look at the packets, where their number decides. */
#define WIDE_WINS_(ctx, use, ops, n)                                                               \
	({                                                                                         \
		const struct wide *w = (ctx)->wide;                                                \
		bool wins = w && (n) >= RULES;                                                     \
                                                                                                   \
		if (w && (n) < RULES && w->rules[use][n].blocks != 0) {                          \
			uint64_t longest = 0, total = 0;                                           \
                                                                                                   \
			for (unsigned i = 0; i < (n); i++) {                                       \
				uint64_t len = (ops)[i].text_len;                                  \
                                                                                                   \
				total += len;                                                      \
				longest = len > longest ? len : longest;                           \
			}                                                                          \
			wins = rule_wins(w->rules[use][n], longest, total, n);                     \
		}                                                                                  \
		wins;                                                                              \
	})

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, USE_SEAL, ops, n))
		return ctx->wide->backend->seal(ctx->wide_ctx, ops, n);
	return ctx->narrow->seal(ctx->narrow_ctx, ops, n);
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, USE_OPEN, ops, n))
		return ctx->wide->backend->open(ctx->wide_ctx, ops, n);
	return ctx->narrow->open(ctx->narrow_ctx, ops, n);
}

static unsigned open_lead(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, USE_TRANSIT, ops, n))
		return sl_aead_open_lead(ctx->wide->backend, ctx->wide_ctx, ops, n);
	return sl_aead_open_lead(ctx->narrow, ctx->narrow_ctx, ops, n);
}

static void open_rest(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, USE_OPEN, ops, n))
		sl_aead_open_rest(ctx->wide->backend, ctx->wide_ctx, ops, n);
	else
		sl_aead_open_rest(ctx->narrow, ctx->narrow_ctx, ops, n);
}

static unsigned reseal(struct sl_aead_ctx *ctx, struct sl_aead_reop *ops, unsigned n)
{
	if (WIDE_WINS_(ctx, USE_TRANSIT, ops, n))
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
