/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intel's multi-buffer library, by its job interface. For this algorithm it works a job off when it
 * is submitted (AVX-512 or AVX2 inside one packet), so a burst is a loop over one job slot of the
 * manager's ring.
 *
 * The manager belongs to the context, the context to one thread.
 */
#include "aead_backend.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <intel-ipsec-mb.h>

/*
 * The library loads 32 bytes from the middle of the key, so it reads 16 bytes past the end (and
 * does nothing with them). A key that ends where a page ends is therefore handed over as a copy.
 */
#define KEY_READ_BYTES (SL_AEAD_KEY_BYTES + 16u)
#define PAGE_BYTES 4096u /* the smallest there is */

struct sl_aead_ctx {
	IMB_MGR *mgr;
	unsigned max_burst;
	uint8_t nonce[SL_AEAD_BURST_MAX][16];
	uint8_t tag[SL_AEAD_BURST_MAX][16];
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
	bool key_copied; /* something secret is in key[] */
	uint8_t key[SL_AEAD_BURST_MAX][KEY_READ_BYTES];
};

bool aead_sse_supported(void)
{
	return __builtin_cpu_supports("sse4.2") != 0;
}

static bool usable(void)
{
	return sl_aead_self_test(&sl_aead_ipsec_mb) == SL_AEAD_PASSED;
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") != 0;
}

static struct sl_aead_ctx *create_for(unsigned max_burst, void (*init)(IMB_MGR *mgr))
{
	struct sl_aead_ctx *ctx;
	int rc;

	if (max_burst == 0 || max_burst > SL_AEAD_BURST_MAX) {
		errno = EINVAL;
		return NULL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	rc = ENOMEM;
	ctx->mgr = alloc_mb_mgr(0);
	if (!ctx->mgr)
		goto fail;
	init(ctx->mgr);
	rc = ENOTSUP;
	if (imb_get_errno(ctx->mgr) != 0)
		goto fail_mgr;
	ctx->max_burst = max_burst;
	return ctx;
fail_mgr:
	free_mb_mgr(ctx->mgr);
fail:
	free(ctx);
	errno = rc;
	return NULL;
}

/* The widest instructions this CPU has. */
static void init_auto(IMB_MGR *mgr)
{
	init_mb_mgr_auto(mgr, NULL);
}

static struct sl_aead_ctx *create(unsigned max_burst)
{
	return create_for(max_burst, init_auto);
}

static struct sl_aead_ctx *create_avx2(unsigned max_burst)
{
	return create_for(max_burst, init_mb_mgr_avx2);
}

static struct sl_aead_ctx *create_sse(unsigned max_burst)
{
	return create_for(max_burst, init_mb_mgr_sse);
}

static void destroy(struct sl_aead_ctx *ctx)
{
	if (!ctx)
		return;
	free_mb_mgr(ctx->mgr);
	sl_wipe(ctx, sizeof(*ctx));
	free(ctx);
}

static inline const uint8_t *readable_key(
	struct sl_aead_ctx *ctx, const struct sl_aead_op *op, unsigned i)
{
	if (__builtin_expect((uintptr_t)op->key % PAGE_BYTES <= PAGE_BYTES - KEY_READ_BYTES, 1))
		return op->key;
	memcpy(ctx->key[i], op->key, SL_AEAD_KEY_BYTES);
	ctx->key_copied = true;
	return ctx->key[i];
}

/* Packet i of the burst. */
static inline void submit(struct sl_aead_ctx *ctx, IMB_CIPHER_DIRECTION dir,
	const struct sl_aead_op *op, unsigned i, uint8_t *tag)
{
	IMB_JOB *job = IMB_GET_NEXT_JOB(ctx->mgr);
	const uint8_t *key = readable_key(ctx, op, i);
	uint8_t *nonce = ctx->nonce[i];

	aead_nonce(nonce, op->counter);
	job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
	job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
	job->cipher_direction = dir;
	job->chain_order = dir == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
	job->enc_keys = key;
	job->dec_keys = key;
	job->key_len_in_bytes = SL_AEAD_KEY_BYTES;
	job->iv = nonce;
	job->iv_len_in_bytes = 12;
	job->u.CHACHA20_POLY1305.aad = op->aad;
	job->u.CHACHA20_POLY1305.aad_len_in_bytes = SL_AEAD_AAD_BYTES;
	job->src = op->text;
	job->dst = op->text;
	job->cipher_start_src_offset_in_bytes = 0;
	job->hash_start_src_offset_in_bytes = 0;
	job->msg_len_to_cipher_in_bytes = op->text_len;
	job->msg_len_to_hash_in_bytes = op->text_len;
	job->auth_tag_output = tag;
	job->auth_tag_output_len_in_bytes = SL_AEAD_TAG_BYTES;
	(void)IMB_SUBMIT_JOB_NOCHECK(ctx->mgr);
}

static inline void finish(struct sl_aead_ctx *ctx)
{
	/* Nothing is left in any version so far; a version that keeps jobs back would hand them out
	 * here. */
	while (IMB_FLUSH_JOB(ctx->mgr))
		;
	if (__builtin_expect(ctx->key_copied, 0)) {
		sl_wipe(ctx->key, sizeof(ctx->key));
		ctx->key_copied = false;
	}
}

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	assert(n <= ctx->max_burst);
	for (unsigned i = 0; i < n; i++)
		submit(ctx, IMB_DIR_ENCRYPT, &ops[i], i, ops[i].text + ops[i].text_len);
	finish(ctx);
	return n;
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	unsigned good = 0;

	assert(n <= ctx->max_burst);
	for (unsigned i = 0; i < n; i++)
		submit(ctx, IMB_DIR_DECRYPT, &ops[i], i, ctx->tag[i]);
	finish(ctx);
	for (unsigned i = 0; i < n; i++) {
		ctx->ok[i] = aead_tag_equal(ctx->tag[i], ops[i].text + ops[i].text_len);
		good += ctx->ok[i];
		/* The job has deciphered without asking for the tag: what did not authenticate may
		 * not be read. */
		if (!ctx->ok[i])
			memset(ops[i].text, 0, ops[i].text_len);
	}
	return good == n ? n : aead_partition(ops, n, ctx->ok, ctx->spare);
}

const struct sl_aead_backend sl_aead_ipsec_mb = {
	.name = "ipsec-mb",
	.usable = usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};

/* What ipsec-mb is on smaller CPUs: for the suite and the benchmark, not in the list. */
const struct sl_aead_backend sl_aead_ipsec_mb_avx2 = {
	.name = "ipsec-mb-avx2",
	.usable = has_avx2,
	.create = create_avx2,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};

const struct sl_aead_backend sl_aead_ipsec_mb_sse = {
	.name = "ipsec-mb-sse",
	.usable = aead_sse_supported,
	.create = create_sse,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
