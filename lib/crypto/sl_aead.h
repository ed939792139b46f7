/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_H
#define SL_AEAD_H
/*
 * ChaCha20-Poly1305 (RFC 8439) over bursts: many packets at once, each with its own key and
 * counter, in place.
 *
 * The associated data is always 16 bytes (the frame's header), the nonce 4 zero bytes and the
 * counter as 8 bytes little endian (link layer facts, section 3.6), the tag 16 bytes directly
 * behind the text.
 *
 * Backends are const descriptors; all of them pass one suite and open what the others sealed. A
 * context belongs to one thread (one worker, or control). No allocation, lock or syscall after
 * create.
 */
#include "sl_secret.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_AEAD_AAD_BYTES 16
#define SL_AEAD_TAG_BYTES 16
#define SL_AEAD_KEY_BYTES 32
#define SL_AEAD_BURST_MAX 256u /* the most a context is ever created for */

/* One packet. The caller owns all memory; pointers need no alignment. */
struct sl_aead_op {
	uint8_t *text;	    /* text_len bytes, then 16 bytes of tag: room for it when sealing */
	const uint8_t *aad; /* 16 bytes; may lie directly before text */
	const uint8_t *key; /* 32 bytes */
	uint64_t counter;
	uint32_t text_len; /* bytes without the tag */
	uint32_t slot;	   /* the caller's own: which packet of its burst this is */
	uint32_t lead;	   /* of open_lead and open_rest: leading bytes that are plaintext */
};

/*
 * One packet in transit, between open_lead and reseal. Its first lead bytes are plaintext, which the
 * caller may have changed; what is behind them is ciphertext still, under the key it came with.
 */
struct sl_aead_reop {
	uint8_t *text;	    /* text_len bytes, then room for 16 bytes of tag */
	const uint8_t *aad; /* 16 bytes, of the frame that leaves */
	const uint8_t *old_key, *new_key;
	uint64_t old_counter, new_counter;
	uint32_t text_len;
	uint32_t lead; /* text_len, or a multiple of 64 below it: what open_lead said */
	uint32_t slot;
};

struct sl_aead_ctx; /* each backend's own */

struct sl_aead_backend {
	const char *name; /* "ipsec-mb", "sodium" */
	bool (*usable)(void); /* this CPU and build have it, and known answers came out */
	/* max_burst <= SL_AEAD_BURST_MAX: the most ops one call will bring. NULL and errno. */
	struct sl_aead_ctx *(*create)(unsigned max_burst);
	void (*destroy)(struct sl_aead_ctx *ctx);
	/*
	 * Seals n; returns how many, those first and in their order. All of them, except where a
	 * device does the work and fails: what is in such a packet may not be sent.
	 */
	unsigned (*seal)(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n);
	/*
	 * Opens n; returns how many authenticated, those first and in their order, the bad ones
	 * behind them (told apart by slot). The text of a bad one is never plaintext: it is left as
	 * it was or zeroed.
	 */
	unsigned (*open)(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n);
	/* Transit, below; NULL: a way that works with any backend. Called through sl_aead_*. */
	unsigned (*open_lead)(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n);
	void (*open_rest)(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n);
	unsigned (*reseal)(struct sl_aead_ctx *ctx, struct sl_aead_reop *ops, unsigned n);
};

/*
 * Transit: a relay reads and changes the first bytes of a packet and sends the rest on as it is. So
 * it opens those first bytes only (open_lead), decides, and then seals everything anew, exchanging
 * one key stream for another where nothing was read (reseal). Whether a packet is authentic is
 * decided in open_lead, over all of it: nothing of a bad one is ever shown, and reseal has nothing
 * to check.
 *
 * A context keeps nothing in between: other calls may come between open_lead and reseal, packets may
 * be left out and put together with those of other bursts, and another context or backend may do
 * the second half.
 */

/*
 * As open, but deciphers only the first bytes and says in each good op's lead how many: text_len, or
 * a multiple of 64 below it. Who needs the first min(text_len, 64) bytes has them.
 */
static inline unsigned sl_aead_open_lead(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op *ops, unsigned n);
/* Deciphers what is behind lead, of packets that open_lead found good; lead becomes text_len. */
static inline void sl_aead_open_rest(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op *ops, unsigned n);
/* Seals n under their new keys; returns how many, as seal does. Same length as before. */
static inline unsigned sl_aead_reseal(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_reop *ops, unsigned n);

/*
 * Known answers, sealed, opened and in transit: once per process and backend, at the first question
 * for it or for usable(), well below a millisecond. A backend that fails is not usable: nothing will
 * ever choose it.
 */
enum sl_aead_verdict { SL_AEAD_PASSED, SL_AEAD_FAILED, SL_AEAD_NOT_HERE /* not on this CPU */ };
enum sl_aead_verdict sl_aead_self_test(const struct sl_aead_backend *b);
/* The two that "auto" chooses from for every burst: across packets (NULL: none usable), inside one. */
void sl_aead_auto_uses(const struct sl_aead_backend **wide, const struct sl_aead_backend **narrow);

/* NULL-terminated: "auto", which chooses for every burst by what was measured, then best first. */
const struct sl_aead_backend *const *sl_aead_backends(void);
/* By name. NULL with errno ENOENT (no such name) or ENOTSUP (not on this CPU, or its self-test has
 * failed). */
const struct sl_aead_backend *sl_aead_backend_find(const char *name) SL_MUST_CHECK;

/* One message, any length of associated data, explicit 12-byte nonce: for handshakes. out has len +
 * 16 bytes. */
void sl_aead_seal_one(uint8_t *out, const uint8_t *text, size_t len, const uint8_t *aad,
	size_t aad_len, const uint8_t nonce[12], const uint8_t key[SL_AEAD_KEY_BYTES]);
/* sealed_len includes the tag; 0 or -EBADMSG, out untouched or zeroed then. */
int sl_aead_open_one(uint8_t *out, const uint8_t *sealed, size_t sealed_len, const uint8_t *aad,
	size_t aad_len, const uint8_t nonce[12],
	const uint8_t key[SL_AEAD_KEY_BYTES]) SL_MUST_CHECK;

/* The ways that work with any backend. */
unsigned sl_aead_any_open_lead(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op *ops, unsigned n);
void sl_aead_any_open_rest(struct sl_aead_op *ops, unsigned n);
unsigned sl_aead_any_reseal(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_reop *ops, unsigned n);

static inline unsigned sl_aead_open_lead(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op *ops, unsigned n)
{
	return b->open_lead ? b->open_lead(ctx, ops, n) : sl_aead_any_open_lead(b, ctx, ops, n);
}

static inline void sl_aead_open_rest(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op *ops, unsigned n)
{
	if (b->open_rest)
		b->open_rest(ctx, ops, n);
	else
		sl_aead_any_open_rest(ops, n);
}

static inline unsigned sl_aead_reseal(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_reop *ops, unsigned n)
{
	return b->reseal ? b->reseal(ctx, ops, n) : sl_aead_any_reseal(b, ctx, ops, n);
}

#ifdef __cplusplus
}
#endif
#endif
