/* SPDX-License-Identifier: BSD-3-Clause */
#include "filter.h"
#include "../crypto/sl_hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void sl_filter_hash(struct sl_filter_hash *h, const uint8_t addr[SL_NODE_ADDR_BYTES])
{
	uint8_t digest[SL_SHA256_BYTES];

	sl_sha256(digest, addr, SL_NODE_ADDR_BYTES);
	h->h1 = sl_get64(digest);
	h->h2 = sl_get64(digest + 8);
}

void sl_filter_insert(uint8_t bits[SL_FILTER_BYTES], const struct sl_filter_hash *h)
{
	for (unsigned i = 0; i < SL_FILTER_HASHES; i++) {
		uint32_t b = sl_filter_bit(h, i);

		bits[b / 8] |= (uint8_t)(1u << (b % 8));
	}
}

bool sl_filter_claims(
	const uint8_t bits[SL_FILTER_BYTES], const struct sl_filter_hash *h, unsigned hashes)
{
	for (unsigned i = 0; i < hashes; i++) {
		uint32_t b = sl_filter_bit(h, i);

		if (!(bits[b / 8] & 1u << (b % 8)))
			return false;
	}
	return true;
}

uint32_t sl_filter_count(const uint8_t bits[SL_FILTER_BYTES])
{
	uint32_t n = 0;

	for (unsigned i = 0; i < SL_FILTER_BYTES; i += 8)
		n += (uint32_t)__builtin_popcountll(sl_get64(bits + i));
	return n;
}

double sl_filter_fpr(uint32_t count, unsigned hashes)
{
	double fill = (double)count / SL_FILTER_BITS, p = 1.0;

	/* A plain product: the same on every machine, unlike pow(). At most 255 steps. */
	for (unsigned i = 0; i < hashes; i++)
		p *= fill;
	return p;
}

double sl_filter_estimate(uint32_t count, unsigned hashes, double max_fpr)
{
	if (count >= SL_FILTER_BITS || !hashes || sl_filter_fpr(count, hashes) > max_fpr)
		return -1.0;
	return -((double)SL_FILTER_BITS / hashes) * log(1.0 - (double)count / SL_FILTER_BITS);
}

int sl_filter_matrix_init(struct sl_filter_matrix *m, uint32_t max_peers)
{
	memset(m, 0, sizeof(*m));
	m->words = (max_peers + 63) / 64;
	/* calloc: pages that no filter touches stay unbacked. */
	m->rows = calloc((size_t)SL_FILTER_BITS * m->words, sizeof(*m->rows));
	return m->rows ? 0 : -ENOMEM;
}

void sl_filter_matrix_fini(struct sl_filter_matrix *m)
{
	free(m->rows);
	m->rows = NULL;
}

void sl_filter_matrix_set(struct sl_filter_matrix *m, uint32_t id,
	const uint8_t from[SL_FILTER_BYTES], const uint8_t to[SL_FILTER_BYTES])
{
	const uint64_t mask = 1ull << (id % 64);

	for (uint32_t i = 0; i < SL_FILTER_BYTES; i += 8) {
		uint64_t diff = sl_get64(from + i) ^ sl_get64(to + i);

		while (diff) {
			uint32_t bit = i * 8 + (uint32_t)__builtin_ctzll(diff);
			uint64_t *word = m->rows + (size_t)bit * m->words + id / 64;

			diff &= diff - 1;
			/* One writer: load and store need not be one operation. */
			__atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) ^ mask,
				__ATOMIC_RELAXED);
		}
	}
}
