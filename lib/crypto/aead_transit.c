/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transit for backends that know only seal and open: everything is opened at once, and what another
 * backend has left enciphered is deciphered before it is sealed.
 */
#include "aead_backend.h"

#include <assert.h>

#include <sodium.h>

#define SLICE 64u /* ops on the stack at a time */

/* The text from byte `from` on, a multiple of 64. Its first block is number 1: 0 is the one-time key. */
static void decipher(
	uint8_t *text, uint32_t text_len, uint32_t from, const uint8_t *key, uint64_t counter)
{
	uint8_t nonce[12];

	assert(from % 64 == 0 && from < text_len);
	aead_nonce(nonce, counter);
	(void)crypto_stream_chacha20_ietf_xor_ic(
		text + from, text + from, text_len - from, nonce, 1 + from / 64, key);
}

unsigned sl_aead_any_open_lead(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op *ops, unsigned n)
{
	unsigned good = b->open(ctx, ops, n);

	for (unsigned i = 0; i < good; i++)
		ops[i].lead = ops[i].text_len;
	return good;
}

void sl_aead_any_open_rest(struct sl_aead_op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct sl_aead_op *op = &ops[i];

		if (op->lead < op->text_len)
			decipher(op->text, op->text_len, op->lead, op->key, op->counter);
		op->lead = op->text_len;
	}
}

/* A slice of a burst: how many were sealed. */
static unsigned reseal_slice(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_reop *reops, unsigned n, bool *ok)
{
	struct sl_aead_op ops[SLICE];
	unsigned good;

	for (unsigned i = 0; i < n; i++) {
		struct sl_aead_reop *r = &reops[i];

		if (r->lead < r->text_len)
			decipher(r->text, r->text_len, r->lead, r->old_key, r->old_counter);
		ops[i] = (struct sl_aead_op){
			.text = r->text,
			.aad = r->aad,
			.key = r->new_key,
			.counter = r->new_counter,
			.text_len = r->text_len,
			.slot = i,
		};
		ok[i] = false;
	}
	good = b->seal(ctx, ops, n);
	for (unsigned i = 0; i < good; i++)
		ok[ops[i].slot] = true;
	return good;
}

unsigned sl_aead_any_reseal(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_reop *ops, unsigned n)
{
	bool ok[SL_AEAD_BURST_MAX];
	unsigned good = 0, kept = 0;

	assert(n <= SL_AEAD_BURST_MAX);
	for (unsigned done = 0; done < n; done += SLICE)
		good += reseal_slice(
			b, ctx, ops + done, n - done < SLICE ? n - done : SLICE, ok + done);
	if (good == n)
		return n;
	/* A device has failed, which is rare: bad ones move behind the good ones one by one. */
	for (unsigned i = 0; i < n; i++) {
		struct sl_aead_reop op = ops[i];

		if (!ok[i])
			continue;
		memmove(&ops[kept + 1], &ops[kept], (i - kept) * sizeof(op));
		ops[kept++] = op;
	}
	return good;
}
