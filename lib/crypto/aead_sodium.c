/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain backend, one packet after the other by libsodium: the oracle of the others, and there
 * on every CPU. */
#include "aead_backend.h"

#include <errno.h>
#include <stdlib.h>

#include <sodium.h>

struct sl_aead_ctx {
	unsigned max_burst;
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
};

static bool usable(void)
{
	return true;
}

static struct sl_aead_ctx *create(unsigned max_burst)
{
	struct sl_aead_ctx *ctx;

	if (max_burst == 0 || max_burst > SL_AEAD_BURST_MAX) {
		errno = EINVAL;
		return NULL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (ctx)
		ctx->max_burst = max_burst;
	return ctx;
}

static void destroy(struct sl_aead_ctx *ctx)
{
	free(ctx);
}

static unsigned seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	uint8_t nonce[12];

	for (unsigned i = 0; i < n; i++) {
		struct sl_aead_op *op = &ops[i];

		aead_nonce(nonce, op->counter);
		(void)crypto_aead_chacha20poly1305_ietf_encrypt(op->text, NULL, op->text,
			op->text_len, op->aad, SL_AEAD_AAD_BYTES, NULL, nonce, op->key);
	}
	return n;
}

static unsigned open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	uint8_t nonce[12];
	unsigned good = 0;

	for (unsigned i = 0; i < n; i++) {
		struct sl_aead_op *op = &ops[i];

		aead_nonce(nonce, op->counter);
		/* On failure libsodium has zeroed the text. */
		ctx->ok[i] = crypto_aead_chacha20poly1305_ietf_decrypt(op->text, NULL, NULL,
				     op->text, op->text_len + (unsigned long long)SL_AEAD_TAG_BYTES,
				     op->aad, SL_AEAD_AAD_BYTES, nonce, op->key) == 0;
		good += ctx->ok[i];
	}
	return good == n ? n : aead_partition(ops, n, ctx->ok, ctx->spare);
}

const struct sl_aead_backend sl_aead_sodium = {
	.name = "sodium",
	.usable = usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
