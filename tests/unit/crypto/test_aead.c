/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One suite, run over every backend that this machine can run (those of smaller CPUs included),
 * against libsodium one message at a time, which in turn is held to RFC 8439.
 */
#include "aead_backend.h"
#include "sl_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN_MAX 9200u
#define TAG SL_AEAD_TAG_BYTES
#define AAD SL_AEAD_AAD_BYTES

static const struct sl_aead_backend *const all[] = {
#ifdef AEAD_AVX512
	&sl_aead_avx512,
#endif
#ifdef AEAD_AVX2
	&sl_aead_avx2,
#endif
	&sl_aead_auto,
#ifdef AEAD_IPSEC_MB
	&sl_aead_ipsec_mb, &sl_aead_ipsec_mb_avx2, &sl_aead_ipsec_mb_sse,
#endif
	&sl_aead_sodium};
#define BACKENDS (sizeof(all) / sizeof(all[0]))

/* RFC 8439, 2.8.2 and A.5, with associated data of 12 bytes: the one-message form only. */
static void rfc_vector(const char *key_hex, const char *nonce_hex, const char *aad_hex,
	const char *text, const char *sealed_hex)
{
	size_t len = strlen(text);
	uint8_t key[32], nonce[12], aad[12], sealed[400], got[400];

	sl_test_unhex(key, 32, key_hex);
	sl_test_unhex(nonce, 12, nonce_hex);
	sl_test_unhex(aad, 12, aad_hex);
	sl_test_unhex(sealed, len + TAG, sealed_hex);
	sl_aead_seal_one(got, (const uint8_t *)text, len, aad, 12, nonce, key);
	SL_EXPECT_MEM(got, sealed, len + TAG);
	SL_EXPECT_EQ(sl_aead_open_one(got, sealed, len + TAG, aad, 12, nonce, key), 0);
	SL_EXPECT_MEM(got, text, len);
	/* In place too. */
	memcpy(got, sealed, len + TAG);
	SL_EXPECT_EQ(sl_aead_open_one(got, got, len + TAG, aad, 12, nonce, key), 0);
	SL_EXPECT_MEM(got, text, len);
}

SL_TEST(aead_one, rfc8439)
{
	rfc_vector("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
		"070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
		"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for "
		"the future, sunscreen "
		"would be it.",
		"d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282"
		"fafb69da92728b"
		"1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad6759455"
		"85808b4831d7bc"
		"3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691");
	rfc_vector("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
		"000000000102030405060708", "f33388860000000000004e91",
		"Internet-Drafts are draft documents valid for a maximum of six months and may be "
		"updated, replaced, "
		"or obsoleted by other documents at any time. It is inappropriate to use "
		"Internet-Drafts as reference "
		"material or to cite them other than as /\xe2\x80\x9cwork in "
		"progress./\xe2\x80\x9d",
		"64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb24c6cfc18755d43eea0"
		"9ee94e382d26b0"
		"bdb7b73c321b0100d4f03b7f355894cf332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60"
		"f982b1ff37c855"
		"9797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4b9166c767b804d46a5"
		"9b5216cde7a4e9"
		"9040c5a40433225ee282a1b0a06c523eaf4534d7f83fa1155b0047718cbc546a0d072b04b3564eea1b"
		"422273f548271a"
		"0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a1049e617d91d361094fa"
		"68f0ff77987130"
		"305beaba2eda04df997b714d6c6f2c29a6ad5cb4022b02709beead9d67890cbb22392336fea1851f3"
		"8");
}

SL_TEST(aead_one, refuses)
{
	uint8_t key[32], nonce[12], aad[33], text[100], sealed[116], out[116], zero[116] = {0};

	sl_test_rand_bytes(key, 32);
	sl_test_rand_bytes(nonce, 12);
	sl_test_rand_bytes(aad, 33);
	sl_test_rand_bytes(text, 100);
	sl_aead_seal_one(sealed, text, 100, aad, 33, nonce, key);
	for (size_t len = 0; len < sizeof(sealed); len++) {
		memset(out, 0, sizeof(out));
		SL_EXPECT_EQ(sl_aead_open_one(out, sealed, len, aad, 33, nonce, key), -EBADMSG);
		SL_EXPECT_MEM(out, zero, sizeof(out));
	}
	for (size_t len = 0; len < 33; len++)
		SL_EXPECT_EQ(sl_aead_open_one(out, sealed, sizeof(sealed), aad, len, nonce, key),
			-EBADMSG);
	SL_EXPECT_EQ(sl_aead_open_one(out, sealed, sizeof(sealed), aad, 33, nonce, key), 0);
	SL_EXPECT_MEM(out, text, 100);
	/* Nothing inside. */
	sl_aead_seal_one(sealed, NULL, 0, NULL, 0, nonce, key);
	SL_EXPECT_EQ(sl_aead_open_one(out, sealed, TAG, NULL, 0, nonce, key), 0);
	sealed[3] ^= 0x10;
	SL_EXPECT_EQ(sl_aead_open_one(out, sealed, TAG, NULL, 0, nonce, key), -EBADMSG);
}

SL_TEST(aead, list_and_names)
{
	const struct sl_aead_backend *const *list = sl_aead_backends();
	const struct sl_aead_backend *best = sl_aead_backend_find("auto");
	unsigned n = 0;

	SL_ASSERT(best != NULL);
	for (; list[n]; n++) {
		SL_EXPECT(!list[n]->usable() || sl_aead_backend_find(list[n]->name) == list[n]);
		if (list[n] == best)
			for (unsigned i = 0; i < n; i++)
				SL_EXPECT(!list[i]->usable());
	}
	SL_ASSERT(n >= 2);
	SL_EXPECT(list[0] == &sl_aead_auto && list[n - 1] == &sl_aead_sodium);
	SL_EXPECT(sl_aead_backend_find("sodium") == &sl_aead_sodium);
	static const char *const unknown[] = {
		"", "Sodium", "sodium ", "ipsec", "ipsec-mb-avx2", "AUTO"};
	for (unsigned i = 0; i < 6; i++) {
		errno = 0;
		SL_EXPECT(sl_aead_backend_find(unknown[i]) == NULL);
		SL_EXPECT_EQ(errno, ENOENT);
	}
}

static void oracle_seal(struct sl_aead_op *op)
{
	uint8_t nonce[12];

	aead_nonce(nonce, op->counter);
	sl_aead_seal_one(op->text, op->text, op->text_len, op->aad, AAD, nonce, op->key);
}

/*
 * One packet in memory of its own: canary, aad, text, tag, canary, at any alignment; plain and
 * sealed are what it should hold.
 */
#define CANARY 64u

struct packet {
	uint8_t *memory, *aad, *text, *plain, *sealed;
	uint8_t key_memory[32 + 16], *key;
	size_t total;
	struct sl_aead_op op;
};

static void packet_fill(struct packet *p, uint32_t len, uint32_t slot)
{
	unsigned align = sl_test_rand() % 64;

	p->total = CANARY + align + AAD + len + TAG + CANARY;
	p->memory = malloc(p->total);
	p->plain = malloc(p->total);
	p->sealed = malloc(p->total);
	sl_test_rand_bytes(p->plain, p->total);
	memcpy(p->memory, p->plain, p->total);
	p->aad = p->memory + CANARY + align;
	p->text = p->aad + AAD;
	p->key = p->key_memory + sl_test_rand() % 16;
	sl_test_rand_bytes(p->key, 32);
	p->op.text = p->text;
	p->op.aad = p->aad;
	p->op.key = p->key;
	p->op.text_len = len;
	p->op.slot = slot;
	p->op.counter = sl_test_rand() >> sl_test_rand() % 64;

	oracle_seal(&p->op);
	memcpy(p->sealed, p->memory, p->total);
	memcpy(p->memory, p->plain, p->total);
}

static void packet_free(struct packet *p)
{
	free(p->memory);
	free(p->plain);
	free(p->sealed);
}

/* After open: the text is plain again, and everything else (aad, tag, canaries) as it was sealed.
 */
static void expect_opened(const struct packet *p)
{
	size_t at = (size_t)(p->text - p->memory);

	SL_EXPECT_MEM(p->text, p->plain + at, p->op.text_len);
	SL_EXPECT_MEM(p->memory, p->sealed, at);
	SL_EXPECT_MEM(p->text + p->op.text_len, p->sealed + at + p->op.text_len, TAG + CANARY);
}

/* After a failed open: the text as it was sealed (in `before`) or zeros. */
static void expect_kept_secret(const struct packet *p, const uint8_t *before)
{
	size_t at = (size_t)(p->text - p->memory), len = p->op.text_len;
	bool same = memcmp(p->text, before + at, len) == 0, zero = true;

	for (size_t i = 0; i < len; i++)
		zero = zero && p->text[i] == 0;
	SL_EXPECT_MSG(same || zero, "text of %zu bytes is neither left nor zeroed", len);
	SL_EXPECT_MEM(p->memory, before, at);
	SL_EXPECT_MEM(p->text + len, before + at + len, TAG + CANARY);
}

typedef void (*suite_fn)(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx);

static void over_all(suite_fn fn)
{
	unsigned ran = 0;

	for (unsigned i = 0; i < BACKENDS; i++) {
		struct sl_aead_ctx *ctx;

		if (!all[i]->usable())
			continue;
		ctx = all[i]->create(SL_AEAD_BURST_MAX);
		SL_ASSERT(ctx != NULL);
		fn(all[i], ctx);
		all[i]->destroy(ctx);
		ran++;
		if (sl_test_failed()) {
			sl_test_fail(__FILE__, __LINE__, "backend %s", all[i]->name);
			return;
		}
	}
	SL_EXPECT_GE(ran, 1);
}

static void limits(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	struct sl_aead_ctx *other;

	errno = 0;
	SL_EXPECT(b->create(0) == NULL);
	SL_EXPECT_EQ(errno, EINVAL);
	errno = 0;
	SL_EXPECT(b->create(SL_AEAD_BURST_MAX + 1) == NULL);
	SL_EXPECT_EQ(errno, EINVAL);
	other = b->create(1);
	SL_EXPECT(other != NULL);
	b->destroy(other);
	b->destroy(NULL);
	b->seal(ctx, NULL, 0);
	SL_EXPECT_EQ(b->open(ctx, NULL, 0), 0);
}

SL_TEST(aead, limits)
{
	over_all(limits);
}

/* Link layer facts, 3.8: whole frames as the wire carries them. */
static void frame(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, const char *key_hex,
	uint64_t counter, size_t len, const char *plain_hex, const char *frame_hex)
{
	uint8_t buf[64], want[64], plain[32], key[32];
	struct sl_aead_op op = {buf + AAD, buf, key, counter, (uint32_t)len, 9};

	sl_test_unhex(key, 32, key_hex);
	sl_test_unhex(plain, len, plain_hex);
	sl_test_unhex(want, AAD + len + TAG, frame_hex);
	memcpy(buf, want, AAD);
	memcpy(buf + AAD, plain, len);
	b->seal(ctx, &op, 1);
	SL_EXPECT_MEM(buf, want, AAD + len + TAG);
	SL_EXPECT_EQ(b->open(ctx, &op, 1), 1);
	SL_EXPECT_MEM(buf + AAD, plain, len);
	SL_EXPECT_EQ(op.slot, 9);
}

static void frames(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	frame(b, ctx, "55c57f1a4f5d654e244d8f6b1299ea516737540dda4bdf9d08ced7c04c308894", 0, 5,
		"e803000051",
		"00000500887766550000000000000000f6a8593202dae14726501b3f8b05411929b374ef0b");
	frame(b, ctx, "7c28d6047a4a009f2dc794ff59f32cf552646fb997b331f7ba91d24b617ccf77", 7, 6,
		"701101005007",
		"000506004433221107000000000000001683e251659865f0946903c4f44c447e7186629bfb24");
}

SL_TEST(aead, frames_of_the_facts)
{
	over_all(frames);
}

static void one_length(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, uint32_t len)
{
	struct packet p;

	packet_fill(&p, len, len);
	b->seal(ctx, &p.op, 1);
	SL_EXPECT_MEM(p.memory, p.sealed, p.total);
	SL_EXPECT_EQ(b->open(ctx, &p.op, 1), 1);
	expect_opened(&p);
	packet_free(&p);
}

static void every_length(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	for (uint32_t len = 0; len <= 2048 && !sl_test_failed(); len++)
		one_length(b, ctx, len);
	for (uint32_t len = 2049; len <= LEN_MAX && !sl_test_failed();
		len += 1 + sl_test_rand() % 61)
		one_length(b, ctx, len);
	one_length(b, ctx, LEN_MAX);
}

SL_TEST(aead, every_length_against_the_oracle)
{
	over_all(every_length);
}

static void counters(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		struct packet p;

		packet_fill(&p, 40, 0);
		memcpy(p.memory, p.plain, p.total);
		p.op.counter = 1ull << bit;
		oracle_seal(&p.op);
		memcpy(p.sealed, p.memory, p.total);
		memcpy(p.memory, p.plain, p.total);
		b->seal(ctx, &p.op, 1);
		SL_EXPECT_MEM(p.memory, p.sealed, p.total);
		/* The nonce is all of the counter. */
		p.op.counter ^= 1ull << (bit + 1) % 64;
		SL_EXPECT_EQ(b->open(ctx, &p.op, 1), 0);
		packet_free(&p);
	}
}

SL_TEST(aead, counters)
{
	over_all(counters);
}

/* Text and tag end where memory ends, aad and key too: nothing may be read or written beyond any of
 * them. */
struct guarded {
	uint8_t *map, *end;
	size_t page;
};

static bool guarded_map(struct guarded *g)
{
	g->page = (size_t)sysconf(_SC_PAGESIZE);
	g->map = mmap(NULL, 6 * g->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->map == MAP_FAILED)
		return false;
	g->end = g->map + 5 * g->page;
	return mprotect(g->map + g->page, 4 * g->page, PROT_READ | PROT_WRITE) == 0;
}

static void guard_pages(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	struct guarded text, aad, key;
	static uint8_t plain[3000];

	SL_ASSERT(guarded_map(&text) && guarded_map(&aad) && guarded_map(&key));
	for (uint32_t len = 0; len < 2400; len += len < 600 ? 1 : 37) {
		/* Against the page behind, and against the page before. */
		for (unsigned low = 0; low < 2; low++) {
			struct sl_aead_op op = {
				.text = low ? text.map + text.page : text.end - TAG - len,
				.aad = low ? aad.map + aad.page : aad.end - AAD,
				.key = low ? key.map + key.page : key.end - 32,
				.counter = len,
				.text_len = len,
			};

			sl_test_rand_bytes(plain, len);
			memcpy(op.text, plain, len);
			b->seal(ctx, &op, 1);
			SL_EXPECT_EQ(b->open(ctx, &op, 1), 1);
			SL_EXPECT_MEM(op.text, plain, len);
			op.text[len] ^= 1;
			SL_EXPECT_EQ(b->open(ctx, &op, 1), 0);
		}
	}
	munmap(text.map, 6 * text.page);
	munmap(aad.map, 6 * aad.page);
	munmap(key.map, 6 * key.page);
}

SL_TEST(aead, guard_pages)
{
	over_all(guard_pages);
}

static void tamper_packet(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, uint32_t len)
{
	struct packet p;
	uint8_t *before;

	packet_fill(&p, len, 0);
	before = malloc(p.total);
	/* Each bit of aad, text and tag, which lie one behind the other; then of the key; then of
	 * the counter. */
	for (size_t bit = 0; bit < 8 * (AAD + len + TAG + 32 + 8); bit++) {
		size_t at = bit / 8;
		uint8_t mask = (uint8_t)(1u << bit % 8), *key = p.key + (at - AAD - len - TAG);

		if (len > 64 && at >= AAD + 20 && at < AAD + len - 20 && sl_test_rand() % 64)
			continue;
		memcpy(p.memory, p.sealed, p.total);
		if (at < AAD + len + TAG)
			p.aad[at] ^= mask;
		else if (at < AAD + len + TAG + 32)
			*key ^= mask;
		else
			p.op.counter ^= 1ull << (bit - 8 * (AAD + len + TAG + 32));
		memcpy(before, p.memory, p.total);
		SL_EXPECT_EQ(b->open(ctx, &p.op, 1), 0);
		expect_kept_secret(&p, before);
		if (at >= AAD + len + TAG + 32)
			p.op.counter ^= 1ull << (bit - 8 * (AAD + len + TAG + 32));
		else if (at >= AAD + len + TAG)
			*key ^= mask;
		if (sl_test_failed())
			break;
	}
	memcpy(p.memory, p.sealed, p.total);
	SL_EXPECT_EQ(b->open(ctx, &p.op, 1), 1);
	expect_opened(&p);
	/* One byte more or less of the same frame. */
	memcpy(p.memory, p.sealed, p.total);
	p.op.text_len++;
	SL_EXPECT_EQ(b->open(ctx, &p.op, 1), 0);
	p.op.text_len--;
	if (len > 0) {
		memcpy(p.memory, p.sealed, p.total);
		p.op.text_len--;
		SL_EXPECT_EQ(b->open(ctx, &p.op, 1), 0);
		p.op.text_len++;
	}
	free(before);
	packet_free(&p);
}

static void tampering(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	static const uint32_t lens[] = {
		0, 1, 5, 15, 16, 17, 63, 64, 65, 255, 256, 257, 512, 1024, 1400};

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]) && !sl_test_failed(); i++)
		tamper_packet(b, ctx, lens[i]);
}

SL_TEST(aead, tampering)
{
	over_all(tampering);
}

static uint32_t random_len(void)
{
	static const uint32_t top[] = {1, 40, 100, 300, 1500, 2048, LEN_MAX + 1};

	return sl_test_rand() % top[sl_test_rand() % 7];
}

/* Half of the packets of a burst share a key, as those of one session do. */
static void burst(const struct sl_aead_backend *sealer, struct sl_aead_ctx *seal_ctx,
	const struct sl_aead_backend *opener, struct sl_aead_ctx *open_ctx, unsigned n,
	unsigned bad_of_16)
{
	struct packet *p = calloc(n, sizeof(*p));
	struct sl_aead_op *ops = calloc(n, sizeof(*ops));
	uint8_t **before = calloc(n, sizeof(*before));
	bool *bad = calloc(n, sizeof(*bad));
	unsigned good = 0, got, at = 0;

	for (unsigned i = 0; i < n; i++) {
		packet_fill(&p[i], random_len(), i);
		ops[i] = p[i].op;
	}
	sealer->seal(seal_ctx, ops, n);
	for (unsigned i = 0; i < n; i++) {
		SL_EXPECT_MEM(p[i].memory, p[i].sealed, p[i].total);
		SL_EXPECT_MEM(&ops[i], &p[i].op, sizeof(ops[i]));
		bad[i] = sl_test_rand() % 16 < bad_of_16;
		good += !bad[i];
		if (bad[i])
			p[i].aad[sl_test_rand() % (AAD + p[i].op.text_len + TAG)] ^=
				(uint8_t)(1u << sl_test_rand() % 8);
		before[i] = malloc(p[i].total);
		memcpy(before[i], p[i].memory, p[i].total);
	}
	got = opener->open(open_ctx, ops, n);
	SL_EXPECT_EQ(got, good);
	/* The good ones in their order, then the bad ones in theirs. */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < n; i++) {
			if (bad[i] != (pass == 1))
				continue;
			SL_EXPECT_MEM(&ops[at], &p[i].op, sizeof(ops[at]));
			at++;
			if (bad[i])
				expect_kept_secret(&p[i], before[i]);
			else
				expect_opened(&p[i]);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		packet_free(&p[i]);
		free(before[i]);
	}
	free(p);
	free(ops);
	free(before);
	free(bad);
}

static void bursts(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	static const unsigned bad_of_16[] = {0, 1, 8, 16};

	for (unsigned n = 1; n <= 130 && !sl_test_failed(); n++)
		burst(b, ctx, b, ctx, n, bad_of_16[n % 4]);
	for (unsigned i = 0; i < 4 && !sl_test_failed(); i++)
		burst(b, ctx, b, ctx, SL_AEAD_BURST_MAX, bad_of_16[i]);
}

SL_TEST(aead, bursts)
{
	over_all(bursts);
}

SL_TEST(aead, each_opens_what_the_others_sealed)
{
	struct sl_aead_ctx *ctx[BACKENDS];

	for (unsigned i = 0; i < BACKENDS; i++)
		ctx[i] = all[i]->usable() ? all[i]->create(64) : NULL;
	for (unsigned i = 0; i < BACKENDS; i++)
		for (unsigned j = 0; j < BACKENDS; j++)
			for (unsigned n = 1; ctx[i] && ctx[j] && n <= 64; n += 9)
				burst(all[i], ctx[i], all[j], ctx[j], n, 2);
	for (unsigned i = 0; i < BACKENDS; i++)
		if (ctx[i])
			all[i]->destroy(ctx[i]);
}

/* A context for each thread, nothing shared between them. */
#define PACKETS 64u

struct work {
	pthread_t thread;
	const struct sl_aead_backend *b;
	uint8_t key[32];
	uint8_t buf[PACKETS][AAD + 300 + TAG];
	unsigned failures;
};

static void *seal_and_open(void *arg)
{
	struct work *w = arg;
	struct sl_aead_ctx *ctx = w->b->create(PACKETS);
	struct sl_aead_op ops[PACKETS];

	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < PACKETS; i++) {
			memset(w->buf[i], (int)(round + i), sizeof(w->buf[i]));
			ops[i] = (struct sl_aead_op){
				w->buf[i] + AAD, w->buf[i], w->key, round, 5 * (i % 60), i};
		}
		w->b->seal(ctx, ops, PACKETS);
		w->failures += w->b->open(ctx, ops, PACKETS) != PACKETS;
		for (unsigned i = 0; i < PACKETS; i++)
			for (unsigned k = 0; k < 5 * (i % 60); k++)
				w->failures += w->buf[i][AAD + k] != (uint8_t)(round + i);
	}
	w->b->destroy(ctx);
	return NULL;
}

static void threads(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx)
{
	static struct work w[3];

	for (unsigned i = 0; i < 3; i++) {
		w[i].b = b;
		w[i].failures = 0;
		sl_test_rand_bytes(w[i].key, 32);
		SL_ASSERT(pthread_create(&w[i].thread, NULL, seal_and_open, &w[i]) == 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		SL_EXPECT_EQ(w[i].failures, 0);
	}
}

SL_TEST(aead, threads_with_their_own_contexts)
{
	over_all(threads);
}
