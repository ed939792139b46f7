/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The crypto device as an AEAD engine, on the virtual devices that DPDK brings, held to libsodium. Without one (the
 * driver is not installed) it is a skip.
 */
#include <errno.h>
#include <stdlib.h>
#include <rte_cryptodev.h>
#include "sl_aead_cryptodev.h"
#include "sl_test.h"

#define BURST 130u
#define LEN_MAX 2048u
#define AAD SL_AEAD_AAD_BYTES
#define TAG SL_AEAD_TAG_BYTES

struct memory {
	uint8_t plain[BURST][AAD + LEN_MAX], sealed[BURST][AAD + LEN_MAX + TAG], work[BURST][AAD + LEN_MAX + TAG],
		given[BURST][AAD + LEN_MAX + TAG];
	uint8_t key[BURST][SL_AEAD_KEY_BYTES];
	struct sl_aead_op ops[BURST];
	struct sl_aead_reop reops[BURST];
};

static void
one_seal(uint8_t *to, const uint8_t *plain, uint32_t len, const uint8_t *key, uint64_t counter)
{
	uint8_t nonce[12] = {0};

	for (unsigned i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(counter >> 8 * i);
	memcpy(to, plain, AAD);
	sl_aead_seal_one(to + AAD, plain + AAD, len, plain, AAD, nonce, key);
}

/* keys: how many different ones the burst has; others lie at their addresses each time. */
static void
fill(struct memory *m, unsigned n, uint32_t len_max, unsigned keys)
{
	for (unsigned i = 0; i < keys; i++)
		sl_test_rand_bytes(m->key[i], SL_AEAD_KEY_BYTES);
	for (unsigned i = 0; i < n; i++) {
		uint32_t len = (uint32_t)(sl_test_rand() % (len_max + 1));

		sl_test_rand_bytes(m->plain[i], AAD + len);
		m->ops[i] = (struct sl_aead_op){.text = m->work[i] + AAD, .aad = m->work[i], .key = m->key[i % keys],
			.counter = sl_test_rand(), .text_len = len, .slot = i};
		one_seal(m->sealed[i], m->plain[i], len, m->ops[i].key, m->ops[i].counter);
		memcpy(m->work[i], m->plain[i], AAD + len);
	}
}

static void
spoil_and_open(struct memory *m, struct sl_aead_ctx *ctx, unsigned n, unsigned bad)
{
	const struct sl_aead_backend *b = &sl_aead_cryptodev;
	unsigned good = 0, got;

	for (unsigned i = 0; i < n; i++) {
		if (bad && i % bad == bad - 1)
			m->work[i][sl_test_rand() % (AAD + m->ops[i].text_len + TAG)] ^= (uint8_t)(1u << sl_test_rand() % 8);
		else
			good++;
	}
	memcpy(m->given, m->work, sizeof(m->given));
	got = b->open(ctx, m->ops, n);
	SL_EXPECT_EQ(got, good);
	for (unsigned i = 0; i < n; i++) {
		const struct sl_aead_op *op = &m->ops[i];
		bool zero = true;

		SL_EXPECT_EQ(bad && op->slot % bad == bad - 1, i >= got);
		if (i < got)
			SL_EXPECT_MEM(op->text, m->plain[op->slot] + AAD, op->text_len);
		for (uint32_t k = 0; k < op->text_len; k++)
			zero = zero && op->text[k] == 0;
		SL_EXPECT(i < got || zero || memcmp(op->text, m->given[op->slot] + AAD, op->text_len) == 0);
	}
}

static void
burst(struct memory *m, struct sl_aead_ctx *ctx, unsigned n, uint32_t len_max, unsigned keys, unsigned bad)
{
	const struct sl_aead_backend *b = &sl_aead_cryptodev;

	fill(m, n, len_max, keys);
	SL_EXPECT_EQ(b->seal(ctx, m->ops, n), n);
	for (unsigned i = 0; i < n; i++)
		SL_EXPECT_MEM(m->work[i], m->sealed[i], AAD + m->ops[i].text_len + TAG);
	spoil_and_open(m, ctx, n, bad);
}

/* Whole packets through both halves of transit, which the device has no way of its own for. */
static void
transit(struct memory *m, struct sl_aead_ctx *ctx, unsigned n)
{
	const struct sl_aead_backend *b = &sl_aead_cryptodev;

	fill(m, n, 1400, n);
	for (unsigned i = 0; i < n; i++)
		memcpy(m->work[i], m->sealed[i], AAD + m->ops[i].text_len + TAG);
	SL_EXPECT_EQ(sl_aead_open_lead(b, ctx, m->ops, n), n);
	for (unsigned i = 0; i < n; i++) {
		const struct sl_aead_op *op = &m->ops[i];

		m->reops[i] = (struct sl_aead_reop){.text = op->text, .aad = op->aad, .old_key = op->key,
			.new_key = m->key[n - 1 - i], .old_counter = op->counter, .new_counter = i, .text_len = op->text_len,
			.lead = op->lead, .slot = i};
		one_seal(m->sealed[i], m->plain[i], op->text_len, m->key[n - 1 - i], i);
	}
	SL_EXPECT_EQ(sl_aead_reseal(b, ctx, m->reops, n), n);
	for (unsigned i = 0; i < n; i++)
		SL_EXPECT_MEM(m->work[i], m->sealed[i], AAD + m->ops[i].text_len + TAG);
}

static void
device_suite(const char *name)
{
	const char *error = "";
	struct sl_aead_ctx *ctx, *other;
	struct memory *m;
	int rc = sl_aead_cryptodev_start(name, 2, &error);

	if (rc == -ENODEV)
		SL_SKIP("this DPDK has no such driver");
	SL_ASSERT(rc == 0);
	SL_EXPECT_EQ(sl_aead_cryptodev_start(name, 1, &error), -EBUSY);
	SL_EXPECT(sl_aead_cryptodev.usable());
	m = calloc(1, sizeof(*m));
	ctx = sl_aead_cryptodev.create(BURST);
	other = sl_aead_cryptodev.create(BURST);
	SL_ASSERT(m != NULL && ctx != NULL && other != NULL);
	errno = 0;
	SL_EXPECT(sl_aead_cryptodev.create(BURST) == NULL);
	SL_EXPECT_EQ(errno, EBUSY);
	errno = 0;
	SL_EXPECT(sl_aead_cryptodev.create(0) == NULL);
	SL_EXPECT_EQ(errno, EINVAL);
	for (unsigned n = 1; n <= BURST && !sl_test_failed(); n += 3) {
		burst(m, ctx, n, n % 2 ? LEN_MAX : 100, 1 + n / 2, n % 5);
		transit(m, n % 2 ? ctx : other, n);
	}
	burst(m, ctx, 64, 0, 3, 0);
	SL_EXPECT_GT(sl_cryptodev_counter(SL_CRYPTODEV_ENQUEUED), 1000);
	SL_EXPECT_GT(sl_cryptodev_counter(SL_CRYPTODEV_AUTH_FAILED), 10);
	SL_EXPECT_EQ(sl_cryptodev_counter(SL_CRYPTODEV_ERROR), 0);
	SL_EXPECT_EQ(sl_cryptodev_counter(SL_CRYPTODEV_TIMEOUT), 0);
	sl_aead_cryptodev.destroy(ctx);
	sl_aead_cryptodev.destroy(other);
	sl_aead_cryptodev.destroy(NULL);
	sl_aead_cryptodev_stop();
	SL_EXPECT(!sl_aead_cryptodev.usable());
	free(m);
}

SL_TEST(cryptodev, aesni_mb)
{
	device_suite("crypto_aesni_mb0");
}

SL_TEST(cryptodev, chacha20_poly1305)
{
	device_suite("crypto_chacha20_poly1305_0");
}

/*
 * A device that answers late: a real one, whose answers are held back in front of its dequeue function until let go. No
 * device here does so by itself.
 */
static struct {
	dequeue_pkt_burst_t dequeue;
	bool held;
} late;

static uint16_t
late_dequeue(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	return late.held ? 0 : late.dequeue(qp, ops, n);
}

SL_TEST(cryptodev, answers_late)
{
	const struct sl_aead_backend *b = &sl_aead_cryptodev;
	struct rte_crypto_op *done[SL_CRYPTODEV_IN_FLIGHT];
	struct sl_aead_ctx *ctx, *other;
	const char *error = "";
	struct memory *m;
	unsigned came = 0;
	int rc = sl_aead_cryptodev_start("crypto_aesni_mb0", 2, &error), dev;

	if (rc == -ENODEV)
		SL_SKIP("this DPDK has no such driver");
	SL_ASSERT(rc == 0);
	dev = rte_cryptodev_get_dev_id(sl_aead_cryptodev_name());
	SL_ASSERT(dev >= 0);
	m = calloc(1, sizeof(*m));
	ctx = b->create(BURST);
	other = b->create(BURST);
	SL_ASSERT(m && ctx && other);
	burst(m, ctx, 40, 500, 7, 3);
	late.dequeue = rte_crypto_fp_ops[dev].dequeue_burst;
	rte_crypto_fp_ops[dev].dequeue_burst = late_dequeue;
	late.held = true;
	/* More than are in flight at a time: those that wait, those behind them, and forged ones among both. Nothing is lost. */
	fill(m, 100, 500, 7);
	for (unsigned i = 0; i < 100; i++)
		memcpy(m->work[i], m->sealed[i], AAD + m->ops[i].text_len + TAG);
	spoil_and_open(m, ctx, 100, 4);
	SL_EXPECT_EQ(sl_cryptodev_counter(SL_CRYPTODEV_GIVEN_UP), 1);
	SL_EXPECT_GE(sl_cryptodev_counter(SL_CRYPTODEV_TIMEOUT), 1);
	SL_EXPECT_LE(sl_cryptodev_counter(SL_CRYPTODEV_TIMEOUT), SL_CRYPTODEV_IN_FLIGHT);
	/* What is in the packets' memory now is somebody else's. */
	memset(m->work, 0x5a, sizeof(m->work));
	late.held = false;
	for (unsigned i = 0; i < 1000 && came < sl_cryptodev_counter(SL_CRYPTODEV_TIMEOUT); i++)
		came += rte_cryptodev_dequeue_burst((uint8_t)dev, 0, done, SL_CRYPTODEV_IN_FLIGHT);
	SL_EXPECT_EQ(came, sl_cryptodev_counter(SL_CRYPTODEV_TIMEOUT));
	for (size_t i = 0; i < sizeof(m->work) && !sl_test_failed(); i++)
		SL_EXPECT_MSG(((uint8_t *)m->work)[i] == 0x5a, "byte %zu was written late", i);
	/* From then on by software, and the other thread's way through the device is as it was. */
	SL_EXPECT_EQ(sl_cryptodev_counter(SL_CRYPTODEV_BY_SOFTWARE), 0);
	burst(m, ctx, BURST, 1400, 9, 5);
	transit(m, ctx, 64);
	SL_EXPECT_EQ(sl_cryptodev_counter(SL_CRYPTODEV_BY_SOFTWARE), 2 * BURST + 2 * 64);
	burst(m, other, BURST, 1400, 9, 5);
	SL_EXPECT_EQ(sl_cryptodev_counter(SL_CRYPTODEV_GIVEN_UP), 1);
	rte_crypto_fp_ops[dev].dequeue_burst = late.dequeue;
	b->destroy(ctx);
	b->destroy(other);
	sl_aead_cryptodev_stop();
	free(m);
}

SL_TEST(cryptodev, refuses)
{
	const char *error = "";

	SL_EXPECT_EQ(sl_aead_cryptodev_start("crypto_of_no_kind", 1, &error), -ENODEV);
	SL_EXPECT(error[0] != 0);
	SL_EXPECT(sl_aead_cryptodev.create(4) == NULL);
	SL_EXPECT(sl_aead_cryptodev_name() == NULL);
	error = "";
	/* It has ciphers, but not this one. */
	SL_EXPECT_EQ(sl_aead_cryptodev_start("crypto_null0", 1, &error), -ENOTSUP);
	SL_EXPECT(error[0] != 0);
	SL_EXPECT(!sl_aead_cryptodev.usable());
}
