/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which engines may run here: the instruction set (with the operating system's consent to its
 * registers), then known answers, once per process. An engine that fails them is not usable, so
 * nothing will ever choose it.
 *
 * Compiled for the baseline: nothing here may need what it asks for.
 */
#include "aead_backend.h"

#include <stdatomic.h>
#include <stdlib.h>

/*
 * The tags of PACKETS packets of different lengths, sealed and in transit, folded into 16 bytes:
 * computed with libsodium, and held to it by the unit tests. A wrong byte of text shows in the tag
 * over it.
 */
#define PACKETS 50u
#define LEN_MAX 1500u

static const uint64_t known[2] = {AEAD_SELFTEST_0, AEAD_SELFTEST_1};

struct packet {
	uint8_t aad[SL_AEAD_AAD_BYTES], text[LEN_MAX + SL_AEAD_TAG_BYTES], key[SL_AEAD_KEY_BYTES];
};

static uint8_t byte_of(uint32_t packet, uint32_t i)
{
	uint32_t x = (packet + 1) * 2654435761u + i * 2246822519u;

	return (uint8_t)((x ^ x >> 13) * 3266489917u >> 24);
}

static void fill(struct packet *p, struct sl_aead_op *op, uint32_t i)
{
	for (uint32_t k = 0; k < sizeof(*p); k++)
		((uint8_t *)p)[k] = byte_of(i, k);
	*op = (struct sl_aead_op){
		.text = p->text,
		.aad = p->aad,
		.key = p->key,
		.counter = (uint64_t)i << i,
		.text_len = i < 20 ? 64 * (i % 5) + i / 5 : i * i * 13 % (LEN_MAX + 1),
		.slot = i,
	};
}

static void fold_tag(uint64_t answer[2], const uint8_t *tag)
{
	uint64_t word[2];

	memcpy(word, tag, 16);
	answer[0] = (answer[0] ^ word[0]) * 0x9e3779b97f4a7c15;
	answer[1] = (answer[1] ^ word[1]) * 0xc2b2ae3d27d4eb4f;
}

/* One packet is forged, which only it may not pass; the others are as they were. */
static bool fold_open(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx,
	struct sl_aead_op ops[PACKETS])
{
	const uint32_t at = (uint32_t)offsetof(struct packet, text);
	bool right;

	ops[7].text[3] ^= 0x40;
	right = b->open(ctx, ops, PACKETS) == PACKETS - 1 && ops[PACKETS - 1].slot == 7;
	for (uint32_t i = 0; i < PACKETS - 1; i++)
		for (uint32_t k = 0; k < ops[i].text_len; k++)
			right = right && ops[i].text[k] == byte_of(ops[i].slot, at + k);
	return right;
}

/* What is left passes on under each other's keys, every fourth opened in whole on its way. */
static bool fold_transit(uint64_t answer[2], const struct sl_aead_backend *b,
	struct sl_aead_ctx *ctx, struct sl_aead_op ops[PACKETS], const struct packet *p)
{
	struct sl_aead_reop reops[PACKETS];
	const uint32_t n = PACKETS - 1;

	if (b->seal(ctx, ops, n) != n || sl_aead_open_lead(b, ctx, ops, n) != n)
		return false;
	sl_aead_open_rest(b, ctx, ops, n / 4);
	for (uint32_t i = 0; i < n; i++) {
		reops[i] = (struct sl_aead_reop){
			.text = ops[i].text,
			.aad = ops[i].aad,
			.old_key = ops[i].key,
			.new_key = p[PACKETS - 1 - ops[i].slot].key,
			.old_counter = ops[i].counter,
			.new_counter = ~ops[i].counter,
			.text_len = ops[i].text_len,
			.lead = ops[i].lead,
		};
	}
	if (sl_aead_reseal(b, ctx, reops, n) != n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		fold_tag(answer, reops[i].text + reops[i].text_len);
	return true;
}

void aead_selftest_fold(
	uint64_t answer[2], const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	struct packet *p = malloc(PACKETS * sizeof(*p));
	struct sl_aead_op ops[PACKETS];

	answer[0] = answer[1] = 0;
	if (!p)
		return;
	for (uint32_t i = 0; i < PACKETS; i++)
		fill(&p[i], &ops[i], i);
	b->seal(ctx, ops, PACKETS);
	for (uint32_t i = 0; i < PACKETS; i++)
		fold_tag(answer, ops[i].text + ops[i].text_len);
	if (!fold_open(b, ctx, ops) || !fold_transit(answer, b, ctx, ops, p))
		answer[0] = answer[1] = 0;
	free(p);
}

#ifdef AEAD_FAULT
/* Only in the test of what a failing engine leads to: the one of this name fails. */
const char *aead_fault;
#define FAULTY_(b) (aead_fault && strcmp((b)->name, aead_fault) == 0)
#else
#define FAULTY_(b) false
#endif

/* What is asked of the CPU; those without a line are always there. */
static const struct place {
	const struct sl_aead_backend *backend;
	bool (*supported)(void);
} places[] = {
#ifdef AEAD_AVX512
	{&sl_aead_avx512, aead_avx512_supported},
#endif
#ifdef AEAD_AVX2
	{&sl_aead_avx2, aead_avx2_supported},
#endif
#ifdef AEAD_IPSEC_MB
	{&sl_aead_ipsec_mb, aead_sse_supported},
#endif
	{&sl_aead_sodium, NULL},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static enum sl_aead_verdict verdict_of(const struct place *p)
{
	uint64_t answer[2] = {0, 0};
	struct sl_aead_ctx *ctx;

	if (p->supported && !p->supported())
		return SL_AEAD_NOT_HERE;
	ctx = p->backend->create(PACKETS);
	if (ctx)
		aead_selftest_fold(answer, p->backend, ctx);
	p->backend->destroy(ctx);
	if (FAULTY_(p->backend))
		answer[0] ^= 1;
	return answer[0] == known[0] && answer[1] == known[1] ? SL_AEAD_PASSED : SL_AEAD_FAILED;
}

enum sl_aead_verdict sl_aead_self_test(const struct sl_aead_backend *b)
{
	static atomic_int verdicts[PLACES]; /* one more than the verdict; 0: not tried yet */

	/* What is not in the list (auto) consists of those that are. */
	for (unsigned i = 0; i < PLACES; i++) {
		int v = atomic_load_explicit(&verdicts[i], memory_order_acquire);

		if (places[i].backend != b)
			continue;
		/* Two threads may both try: they come to the same end. */
		if (v == 0) {
			v = 1 + (int)verdict_of(&places[i]);
			atomic_store_explicit(&verdicts[i], v, memory_order_release);
		}
		return (enum sl_aead_verdict)(v - 1);
	}
	return SL_AEAD_PASSED;
}

#ifdef AEAD_AVX512
bool aead_avx512_supported(void)
{
	/*
	 * The compiler's support library asks XGETBV too: registers that the system does not save
	 * do not count.
	 */
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512vbmi2") &&
	       __builtin_cpu_supports("bmi2");
}

bool aead_avx512_usable(void)
{
	return sl_aead_self_test(&sl_aead_avx512) == SL_AEAD_PASSED;
}
#endif

#ifdef AEAD_AVX2
bool aead_avx2_supported(void)
{
	/* What it is compiled for. */
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}

bool aead_avx2_usable(void)
{
	return sl_aead_self_test(&sl_aead_avx2) == SL_AEAD_PASSED;
}
#endif
