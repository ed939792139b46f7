/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one packet costs to seal and to open, per AEAD backend and size: bursts of 32, a key for
 * each packet, in place. The backends take turns in every round and the median over the rounds is
 * shown, so that a slow phase of the machine falls on all of them. With -j a JSON object is the
 * last thing printed.
 */
#include "aead_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BURST 32u
#define BURSTS 8u /* opened after all have been sealed: two clock reads for 256 packets */
#define PACKETS (BURST * BURSTS)
#define REPEATS 8u
#define ROUNDS 41u
#define TEXT_MAX 1400u
#define STRIDE 1536u

static const unsigned sizes[] = {64, 256, TEXT_MAX};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
static const struct sl_aead_backend *const backends[] = {
	&sl_aead_ipsec_mb, &sl_aead_ipsec_mb_avx2, &sl_aead_ipsec_mb_sse, &sl_aead_sodium};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))

struct result {
	double seal_ns[ROUNDS], open_ns[ROUNDS], both_ns[ROUNDS];
};

static uint8_t buf[PACKETS][STRIDE] __attribute__((aligned(64)));
static uint8_t keys[PACKETS][SL_AEAD_KEY_BYTES] __attribute__((aligned(64)));
static struct sl_aead_op ops[PACKETS];
static struct result results[BACKENDS][SIZES];
static uint64_t counter;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void prepare(unsigned size)
{
	for (unsigned i = 0; i < PACKETS; i++) {
		ops[i].aad = buf[i] + 64;
		ops[i].text = buf[i] + 64 + SL_AEAD_AAD_BYTES;
		ops[i].key = keys[i];
		ops[i].text_len = size;
		ops[i].slot = i;
		ops[i].counter = counter++;
	}
}

/* False when something that was sealed did not open. */
static bool round_of(const struct sl_aead_backend *b, struct sl_aead_ctx *ctx, unsigned size,
	struct result *r, unsigned round)
{
	double seal = 0, open = 0;
	unsigned good = 0;

	for (unsigned k = 0; k < REPEATS; k++) {
		double t0, t1, t2;

		prepare(size);
		t0 = now_ns();
		for (unsigned i = 0; i < BURSTS; i++)
			b->seal(ctx, ops + i * BURST, BURST);
		t1 = now_ns();
		for (unsigned i = 0; i < BURSTS; i++)
			good += b->open(ctx, ops + i * BURST, BURST);
		t2 = now_ns();
		seal += t1 - t0;
		open += t2 - t1;
	}
	r->seal_ns[round] = seal / (REPEATS * PACKETS);
	r->open_ns[round] = open / (REPEATS * PACKETS);
	r->both_ns[round] = r->seal_ns[round] + r->open_ns[round];
	return good == REPEATS * PACKETS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static void print_results(struct sl_aead_ctx *const *ctx, bool json)
{
	const char *comma = "";

	printf("%-14s %6s %9s %9s %12s %9s\n", "backend", "bytes", "seal ns", "open ns",
		"seal+open ns", "Gbit/s");
	for (unsigned s = 0; s < SIZES; s++) {
		for (unsigned b = 0; b < BACKENDS; b++) {
			struct result *r = &results[b][s];

			if (!ctx[b])
				continue;
			/* Medians sort in place: the values for the JSON object are left in element
			 * 0. */
			r->seal_ns[0] = median(r->seal_ns);
			r->open_ns[0] = median(r->open_ns);
			r->both_ns[0] = median(r->both_ns);
			printf("%-14s %6u %9.1f %9.1f %12.1f %9.2f\n", backends[b]->name, sizes[s],
				r->seal_ns[0], r->open_ns[0], r->both_ns[0],
				8.0 * sizes[s] / r->both_ns[0]);
		}
	}
	if (!json)
		return;
	printf("{\"burst\": %u, \"rounds\": %u, \"results\": [", BURST, ROUNDS);
	for (unsigned s = 0; s < SIZES; s++) {
		for (unsigned b = 0; b < BACKENDS; b++) {
			const struct result *r = &results[b][s];

			if (!ctx[b])
				continue;
			printf("%s{\"backend\": \"%s\", \"bytes\": %u, \"seal_ns\": %.1f, "
			       "\"open_ns\": %.1f, "
			       "\"seal_open_ns\": %.1f}",
				comma, backends[b]->name, sizes[s], r->seal_ns[0], r->open_ns[0],
				r->both_ns[0]);
			comma = ", ";
		}
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct sl_aead_ctx *ctx[BACKENDS] = {NULL};
	bool json = false, ok = true;
	int c;

	while ((c = getopt(argc, argv, "j")) != -1) {
		if (c != 'j') {
			fprintf(stderr, "usage: %s [-j]\n", argv[0]);
			return 2;
		}
		json = true;
	}
	if (sl_crypto_init() != 0)
		return 1;
	sl_random(keys, sizeof(keys));
	sl_random(buf, sizeof(buf));
	for (unsigned b = 0; b < BACKENDS; b++)
		if (backends[b]->usable())
			ctx[b] = backends[b]->create(BURST);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned s = 0; s < SIZES; s++)
			for (unsigned b = 0; b < BACKENDS; b++)
				if (ctx[b])
					ok &= round_of(backends[b], ctx[b], sizes[s],
						&results[b][s], round);
	if (!ok)
		fprintf(stderr, "some packets did not open\n");
	else
		print_results(ctx, json);
	for (unsigned b = 0; b < BACKENDS; b++)
		if (ctx[b])
			backends[b]->destroy(ctx[b]);
	return ok ? 0 : 1;
}
