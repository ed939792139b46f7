/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_BENCH_RANDOM_H
#define SL_BENCH_RANDOM_H
/*
 * A repeatable source of everything random, libsodium's included, for benchmarks on a virtual clock: two runs with one
 * seed meet the same luck. Not for keys of anything real. One thread.
 */
#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

static uint64_t bench_random_state = 0x9e3779b97f4a7c15ull; /* the seed; never 0 */

static inline uint32_t
bench_random(void)
{
	bench_random_state ^= bench_random_state << 13;
	bench_random_state ^= bench_random_state >> 7;
	bench_random_state ^= bench_random_state << 17;
	return (uint32_t)(bench_random_state >> 16);
}

static inline const char *
bench_random_name(void)
{
	return "bench";
}

static inline void
bench_random_bytes(void *const buf, const size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)bench_random();
}

/* Before sl_crypto_init(). */
static inline void
bench_random_install(uint64_t seed)
{
	static struct randombytes_implementation source = {
		.implementation_name = bench_random_name, .random = bench_random, .buf = bench_random_bytes};

	bench_random_state = seed;
	randombytes_set_implementation(&source);
}

#endif
