/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transit over every backend, in its own way and in the one that works with any: open_lead, the
 * first bytes changed, reseal; held to libsodium opening and sealing one message at a time.
 */
#include "aead_backend.h"
#include "sl_test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#define LEN_MAX 9200u
#define BURST_MAX 130u
#define TAG SL_AEAD_TAG_BYTES
#define AAD SL_AEAD_AAD_BYTES
#define CANARY 64u
#define ROOM (CANARY + 64 + AAD + LEN_MAX + TAG + CANARY)

static const struct sl_aead_backend *const all[] = {
#ifdef AEAD_AVX512
	&sl_aead_avx512,
#endif
#ifdef AEAD_AVX2
	&sl_aead_avx2,
#endif
#ifdef AEAD_IPSEC_MB
	&sl_aead_ipsec_mb,
#endif
	&sl_aead_auto, &sl_aead_sodium};
#define BACKENDS (sizeof(all) / sizeof(all[0]))

/* A packet's memory: canary, aad, text, tag, canary. */
struct packet {
	uint8_t plain[AAD + LEN_MAX];		/* with the aad it came with */
	uint8_t received[AAD + LEN_MAX + TAG];	/* as it came */
	uint8_t sent[AAD + LEN_MAX + TAG];	/* as it should leave */
	uint8_t work[ROOM], before[ROOM];
	uint8_t old_key[32], new_key[32];
	uint64_t old_counter, new_counter;
	uint8_t *aad;
	uint32_t len;
	bool bad, rest; /* spoiled; opened in whole in between */
};

struct half {
	const struct sl_aead_backend *b;
	struct sl_aead_ctx *ctx;
};

static struct packet *packets;

static void one_seal(uint8_t *to, const uint8_t *plain, uint32_t len, const uint8_t *key, uint64_t counter)
{
	uint8_t nonce[12];

	aead_nonce(nonce, counter);
	memcpy(to, plain, AAD);
	sl_aead_seal_one(to + AAD, plain + AAD, len, plain, AAD, nonce, key);
}

/* As received, in place, at any alignment. */
static void packet_fill(struct packet *p, uint32_t len)
{
	size_t align = sl_test_rand() % 64;

	p->len = len;
	p->bad = p->rest = false;
	p->aad = p->work + CANARY + align;
	sl_test_rand_bytes(p->plain, AAD + len);
	sl_test_rand_bytes(p->old_key, 32);
	sl_test_rand_bytes(p->new_key, 32);
	p->old_counter = sl_test_rand() >> sl_test_rand() % 64;
	p->new_counter = sl_test_rand() >> sl_test_rand() % 64;
	one_seal(p->received, p->plain, len, p->old_key, p->old_counter);
	memset(p->work, 0xa5, CANARY + align);
	memcpy(p->aad, p->received, AAD + len + TAG);
	memset(p->aad + AAD + len + TAG, 0x5a, CANARY);
	memcpy(p->before, p->work, ROOM);
}

static struct sl_aead_op op_of(struct packet *p, unsigned i)
{
	return (struct sl_aead_op){
		.text = p->aad + AAD,
		.aad = p->aad,
		.key = p->old_key,
		.counter = p->old_counter,
		.text_len = p->len,
		.slot = i,
	};
}

/* What the caller does in between: another header, and one of the first bytes. */
static void change(struct packet *p)
{
	uint32_t first = p->len < 64 ? p->len : 64;

	sl_test_rand_bytes(p->aad, AAD);
	if (first > 0)
		p->aad[AAD + sl_test_rand() % first] ^= 0x11;
	memcpy(p->plain, p->aad, AAD + first);
	one_seal(p->sent, p->plain, p->len, p->new_key, p->new_counter);
}

static struct sl_aead_reop reop_of(struct packet *p, unsigned i, uint32_t lead)
{
	return (struct sl_aead_reop){
		.text = p->aad + AAD,
		.aad = p->aad,
		.old_key = p->old_key,
		.new_key = p->new_key,
		.old_counter = p->old_counter,
		.new_counter = p->new_counter,
		.text_len = p->len,
		.lead = lead,
		.slot = i,
	};
}

static void expect_surroundings(const struct packet *p)
{
	size_t end = (size_t)(p->aad - p->work) + AAD + p->len + TAG;

	SL_EXPECT_MEM(p->work, p->before, (size_t)(p->aad - p->work));
	SL_EXPECT_MEM(p->work + end, p->before + end, CANARY);
}

static void expect_lead(const struct packet *p, const struct sl_aead_op *op)
{
	uint32_t least = p->len < 64 ? p->len : 64;

	SL_EXPECT(op->lead == p->len || (op->lead % 64 == 0 && op->lead < p->len));
	SL_EXPECT_GE(op->lead, least);
	SL_EXPECT_MEM(op->text, p->plain + AAD, op->lead);
	/* The rest as it came, the tag too. */
	SL_EXPECT_MEM(op->text + op->lead, p->received + AAD + op->lead, p->len - op->lead + TAG);
	SL_EXPECT_MEM(p->aad, p->received, AAD);
	expect_surroundings(p);
}

static void expect_kept_secret(const struct packet *p)
{
	size_t at = (size_t)(p->aad - p->work) + AAD;
	bool same = memcmp(p->work + at, p->before + at, p->len) == 0, zero = true;

	for (uint32_t i = 0; i < p->len; i++)
		zero = zero && p->work[at + i] == 0;
	SL_EXPECT(same || zero);
	expect_surroundings(p);
}

/* The first n packets through both halves; some are spoiled, some opened in whole in between. */
static void transit(struct half open, struct half seal, unsigned n, unsigned bad_of_16, unsigned rest_of_16)
{
	struct sl_aead_op ops[BURST_MAX];
	struct sl_aead_reop reops[BURST_MAX];
	unsigned good = 0, got, whole = 0;

	for (unsigned i = 0; i < n; i++) {
		struct packet *p = &packets[i];

		p->bad = sl_test_rand() % 16 < bad_of_16;
		good += !p->bad;
		if (p->bad)
			p->aad[sl_test_rand() % (AAD + p->len + TAG)] ^= (uint8_t)(1u << sl_test_rand() % 8);
		memcpy(p->before, p->work, ROOM);
		ops[i] = op_of(p, i);
	}
	got = sl_aead_open_lead(open.b, open.ctx, ops, n);
	SL_EXPECT_EQ(got, good);
	for (unsigned i = 0; i < n; i++) {
		SL_EXPECT_EQ(packets[ops[i].slot].bad, i >= got);
		if (i + 1 < n && i + 1 != got)
			SL_EXPECT_LT(ops[i].slot, ops[i + 1].slot);
		if (i < got)
			expect_lead(&packets[ops[i].slot], &ops[i]);
		else
			expect_kept_secret(&packets[ops[i].slot]);
	}
	/* Those to be read in whole come first: open_rest is called for them. */
	for (unsigned i = 0; i < got; i++) {
		struct sl_aead_op op = ops[i];

		if (sl_test_rand() % 16 >= rest_of_16)
			continue;
		ops[i] = ops[whole];
		ops[whole++] = op;
	}
	sl_aead_open_rest(open.b, open.ctx, ops, whole);
	for (unsigned i = 0; i < whole; i++) {
		SL_EXPECT_EQ(ops[i].lead, ops[i].text_len);
		expect_lead(&packets[ops[i].slot], &ops[i]);
	}
	for (unsigned i = 0; i < got; i++) {
		struct packet *p = &packets[ops[i].slot];

		change(p);
		reops[i] = reop_of(p, ops[i].slot, ops[i].lead);
	}
	SL_EXPECT_EQ(sl_aead_reseal(seal.b, seal.ctx, reops, got), got);
	for (unsigned i = 0; i < got; i++) {
		const struct packet *p = &packets[ops[i].slot];

		SL_EXPECT_EQ(reops[i].slot, ops[i].slot);
		SL_EXPECT_MEM(p->aad, p->sent, AAD + p->len + TAG);
		expect_surroundings(p);
	}
}

typedef void (*suite_fn)(struct half open, struct half seal);

/* Each backend's own way, then the one for any of them. */
static void over_all(suite_fn fn)
{
	packets = calloc(BURST_MAX, sizeof(*packets));
	SL_ASSERT(packets != NULL);
	for (unsigned i = 0; i < 2 * BACKENDS && !sl_test_failed(); i++) {
		struct sl_aead_backend b = *all[i / 2];
		struct half half = {&b, NULL};

		if (!b.usable() || (i % 2 && !b.open_lead && !b.open_rest && !b.reseal))
			continue;
		if (i % 2)
			b.open_lead = NULL, b.open_rest = NULL, b.reseal = NULL;
		half.ctx = b.create(SL_AEAD_BURST_MAX);
		SL_ASSERT(half.ctx != NULL);
		fn(half, half);
		b.destroy(half.ctx);
		if (sl_test_failed())
			sl_test_fail(__FILE__, __LINE__, "backend %s, %s way", b.name, i % 2 ? "the common" : "its own");
	}
	free(packets);
}

/* Bursts of about one length, and alone. */
static void every_length(struct half open, struct half seal)
{
	for (uint32_t len = 0; len <= 2048 && !sl_test_failed(); len++) {
		unsigned n = 1 + len % 3 * 16;

		for (unsigned i = 0; i < n; i++)
			packet_fill(&packets[i], len > i % 4 ? len - i % 4 : len);
		transit(open, seal, n, len % 5 == 0 ? 2 : 0, len % 7 == 0 ? 3 : 0);
	}
	for (uint32_t len = 2049; len <= LEN_MAX && !sl_test_failed(); len += 1 + sl_test_rand() % 500) {
		packet_fill(&packets[0], len);
		transit(open, seal, 1, 0, 0);
		for (unsigned i = 0; i < 17; i++)
			packet_fill(&packets[i], len);
		transit(open, seal, 17, 0, 2);
	}
	packet_fill(&packets[0], LEN_MAX);
	transit(open, seal, 1, 0, 0);
}

SL_TEST(transit, every_length)
{
	over_all(every_length);
}

static uint32_t random_len(void)
{
	static const uint32_t top[] = {1, 40, 65, 100, 300, 1500, 2048, 2048, LEN_MAX + 1};

	return (uint32_t)(sl_test_rand() % top[sl_test_rand() % 9]);
}

static void bursts(struct half open, struct half seal)
{
	static const unsigned of_16[] = {0, 1, 0, 8, 16};

	for (unsigned n = 1; n <= BURST_MAX && !sl_test_failed(); n++) {
		for (unsigned i = 0; i < n; i++)
			packet_fill(&packets[i], random_len());
		transit(open, seal, n, of_16[n % 5], of_16[(n / 5 + n) % 5]);
	}
	/* One length: the engines have shorter ways then. */
	for (unsigned n = 1; n <= BURST_MAX && !sl_test_failed(); n += 1 + n / 40) {
		uint32_t len = n % 2 ? 64 * (n % 7) : (uint32_t)(sl_test_rand() % 1500);

		for (unsigned i = 0; i < n; i++)
			packet_fill(&packets[i], len);
		transit(open, seal, n, of_16[n % 3], of_16[n / 3 % 3]);
	}
	transit(open, seal, 0, 0, 0);
}

SL_TEST(transit, bursts)
{
	over_all(bursts);
}

/* Another backend does the second half. */
SL_TEST(transit, halves_by_different_backends)
{
	struct half half[BACKENDS];

	packets = calloc(BURST_MAX, sizeof(*packets));
	SL_ASSERT(packets != NULL);
	for (unsigned i = 0; i < BACKENDS; i++)
		half[i] = (struct half){all[i], all[i]->usable() ? all[i]->create(64) : NULL};
	for (unsigned i = 0; i < BACKENDS; i++) {
		for (unsigned j = 0; j < BACKENDS && !sl_test_failed(); j++) {
			for (unsigned n = 1; half[i].ctx && half[j].ctx && n <= 64; n += 9) {
				for (unsigned k = 0; k < n; k++)
					packet_fill(&packets[k], random_len());
				transit(half[i], half[j], n, 1, 2);
			}
		}
	}
	for (unsigned i = 0; i < BACKENDS; i++)
		if (half[i].ctx)
			half[i].b->destroy(half[i].ctx);
	free(packets);
}

/* reseal takes any lead that the contract allows, not only those that open_lead of today returns. */
static void any_lead(struct half open, struct half seal)
{
	(void)open;
	for (unsigned round = 0; round < 120 && !sl_test_failed(); round++) {
		struct sl_aead_reop reops[40];
		unsigned n = 1 + round % 40;

		for (unsigned i = 0; i < n; i++) {
			struct packet *p = &packets[i];
			uint32_t lead, blocks;

			packet_fill(p, (uint32_t)(sl_test_rand() % 1500));
			blocks = p->len / 64;
			lead = sl_test_rand() % 4 == 0 ? p->len : 64 * (uint32_t)(sl_test_rand() % (blocks + 1));
			memcpy(p->aad + AAD, p->plain + AAD, lead);
			one_seal(p->sent, p->plain, p->len, p->new_key, p->new_counter);
			reops[i] = reop_of(p, i, lead);
		}
		SL_EXPECT_EQ(sl_aead_reseal(seal.b, seal.ctx, reops, n), n);
		for (unsigned i = 0; i < n; i++)
			SL_EXPECT_MEM(packets[i].aad, packets[i].sent, AAD + packets[i].len + TAG);
	}
}

SL_TEST(transit, any_lead)
{
	over_all(any_lead);
}

/* Packets that end where memory ends or begin where it begins. */
#define GUARDED 33u

static void guard_pages(struct half open, struct half seal)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), each = 4 * page;
	uint8_t *map = mmap(NULL, GUARDED * each + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	SL_ASSERT(map != MAP_FAILED);
	for (unsigned i = 0; i < GUARDED; i++)
		SL_ASSERT(mprotect(map + i * each + page, 3 * page, PROT_READ | PROT_WRITE) == 0);
	for (uint32_t round = 0; round < 300 && !sl_test_failed(); round++) {
		struct sl_aead_op ops[GUARDED];
		struct sl_aead_reop reops[GUARDED];
		unsigned n = round % 2 ? GUARDED : 1 + round % 17;

		for (unsigned i = 0; i < n; i++) {
			struct packet *p = &packets[i];
			uint8_t *start = map + i * each + page, *end = start + 3 * page;

			packet_fill(p, round < 150 ? round : (uint32_t)(sl_test_rand() % LEN_MAX));
			p->aad = (i + round) % 2 ? start : end - TAG - p->len - AAD;
			memcpy(p->aad, p->received, AAD + p->len + TAG);
			ops[i] = op_of(p, i);
		}
		SL_EXPECT_EQ(sl_aead_open_lead(open.b, open.ctx, ops, n), n);
		sl_aead_open_rest(open.b, open.ctx, ops, n / 4);
		for (unsigned i = 0; i < n; i++) {
			change(&packets[i]);
			reops[i] = reop_of(&packets[i], i, ops[i].lead);
		}
		SL_EXPECT_EQ(sl_aead_reseal(seal.b, seal.ctx, reops, n), n);
		for (unsigned i = 0; i < n; i++)
			SL_EXPECT_MEM(packets[i].aad, packets[i].sent, AAD + packets[i].len + TAG);
	}
	munmap(map, GUARDED * each + page);
}

SL_TEST(transit, guard_pages)
{
	over_all(guard_pages);
}

/* A device that fails: what it has not sealed comes behind the rest. */
static unsigned every_third_fails(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
	bool ok[SL_AEAD_BURST_MAX];

	(void)sl_aead_sodium.seal(ctx, ops, n);
	for (unsigned i = 0; i < n; i++)
		ok[i] = ops[i].slot % 3 != 1;
	return aead_partition(ops, n, ok, spare);
}

SL_TEST(transit, a_device_that_fails)
{
	struct sl_aead_backend b = sl_aead_sodium;
	struct sl_aead_ctx *ctx = b.create(SL_AEAD_BURST_MAX);
	struct sl_aead_reop reops[BURST_MAX];
	unsigned good = 0;

	packets = calloc(BURST_MAX, sizeof(*packets));
	SL_ASSERT(packets != NULL && ctx != NULL);
	b.seal = every_third_fails;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		packet_fill(&packets[i], 100);
		reops[i] = reop_of(&packets[i], i, 64);
		good += i % 64 % 3 != 1;
	}
	SL_EXPECT_EQ(sl_aead_reseal(&b, ctx, reops, BURST_MAX), good);
	for (unsigned i = 0; i < BURST_MAX; i++) {
		SL_EXPECT_EQ(reops[i].slot % 64 % 3 != 1, i < good);
		if (i + 1 < BURST_MAX && i + 1 != good)
			SL_EXPECT_LT(reops[i].slot, reops[i + 1].slot);
	}
	b.destroy(ctx);
	free(packets);
}
