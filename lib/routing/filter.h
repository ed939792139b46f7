/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ROUTING_FILTER_H
#define SL_ROUTING_FILTER_H
/*
 * Bloom filters: hashing and bit order (routing facts, 6.2), fill and estimates (6.4), and the
 * matrix in which the read side keeps every peer's filter: one row per bit position, one column
 * (bit) per peer id, so that "who claims this destination" is the AND of five rows.
 *
 * The matrix is changed in place, never copied: control writes only the words whose bit changes
 * (relaxed stores), workers read words (relaxed). A reader may see some bits of a peer's old filter
 * and some of its new one. That is sound: a destination in both filters has its bits set
 * throughout; one in neither may be claimed for a moment, which is what a filter may do anyhow, and
 * the hop rule (strictly closer) does not rest on filters.
 */
#include "../overlay/sl_wire.h"

struct sl_filter_hash {
	uint64_t h1, h2;
};

void sl_filter_hash(struct sl_filter_hash *h, const uint8_t addr[SL_NODE_ADDR_BYTES]);

static inline uint32_t sl_filter_bit(const struct sl_filter_hash *h, unsigned i)
{
	return (uint32_t)(h->h1 + i * h->h2) & (SL_FILTER_BITS - 1);
}

void sl_filter_insert(uint8_t bits[SL_FILTER_BYTES], const struct sl_filter_hash *h);
bool sl_filter_claims(
	const uint8_t bits[SL_FILTER_BYTES], const struct sl_filter_hash *h, unsigned hashes);
uint32_t sl_filter_count(const uint8_t bits[SL_FILTER_BYTES]);
/* (count / 8192)^hashes. */
double sl_filter_fpr(uint32_t count, unsigned hashes);
/* Number of members; < 0 when the filter is too full to say (all bits set, or FPR above cap). */
double sl_filter_estimate(uint32_t count, unsigned hashes, double max_fpr);

struct sl_filter_matrix {
	uint32_t words; /* of 64 peers, per row */
	uint64_t *rows; /* SL_FILTER_BITS * words; control writes, workers read (relaxed) */
};

int sl_filter_matrix_init(struct sl_filter_matrix *m, uint32_t max_peers) SL_MUST_CHECK;
void sl_filter_matrix_fini(struct sl_filter_matrix *m);
/* Turns column `id` from the filter `from` into `to`. */
void sl_filter_matrix_set(struct sl_filter_matrix *m, uint32_t id,
	const uint8_t from[SL_FILTER_BYTES], const uint8_t to[SL_FILTER_BYTES]);

static inline const uint64_t *sl_filter_row(const struct sl_filter_matrix *m, uint32_t bit)
{
	return m->rows + (size_t)bit * m->words;
}

#endif
