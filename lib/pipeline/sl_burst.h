/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_BURST_H
#define SL_BURST_H
/*
 * The frames a worker has in hand: arrays indexed by the frame's place in the burst (the order of arrival), and the
 * list of those still without a verdict.
 *
 * Invariant between stages: live[0 .. live_count) are the frames with verdict SL_VERDICT_NONE, those of one session in
 * order of arrival. A stage walks the list, gives some frames their verdict and keeps the rest. Nobody but `finish`
 * frees or hands on.
 */
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include "../crypto/sl_aead.h"
#include "../overlay/sl_session.h"
#include "../routing/sl_fib.h"
#include "sl_path.h"
#include "sl_verdict.h"

#define SL_BURST_MAX 64u
#define SL_VERDICT_NONE 0xffu /* not yet decided */
#define SL_PORT_NONE UINT16_MAX

/* Prefetch distances in frames. */
#define SL_AHEAD_MBUF 8u /* mbuf header, for classify */
#define SL_AHEAD_DATA 4u /* first line of the packet, for classify */

/* A run of live[] with the same session. */
struct sl_group {
	struct sl_session *session;
	uint8_t first, count;
};

struct sl_burst {
	uint32_t count;	     /* frames in the burst */
	uint32_t live_count; /* of them undecided */
	uint32_t group_count;
	uint16_t port; /* our index of the port they came in by; SL_PORT_NONE = from another worker */
	uint64_t begin_tsc; /* the one clock read of a burst, and in microseconds */
	uint64_t now_us;
	uint64_t rx_bytes;
	const struct sl_parse_local *local; /* of that port */
	const struct sl_fib *fib;

	struct rte_mbuf *mbuf[SL_BURST_MAX];
	uint8_t verdict[SL_BURST_MAX]; /* enum sl_verdict or SL_VERDICT_NONE */
	uint8_t live[SL_BURST_MAX];
	struct sl_group group[SL_BURST_MAX];

	/* classify */
	uint8_t *fmp[SL_BURST_MAX]; /* the FMP packet inside the mbuf */
	uint32_t fmp_len[SL_BURST_MAX];
	struct sl_addr from[SL_BURST_MAX];
	/* session */
	struct sl_session *rx[SL_BURST_MAX];
	/* next hop, egress */
	struct sl_hop hop[SL_BURST_MAX];
	struct sl_session *tx[SL_BURST_MAX];
	const struct sl_path *path[SL_BURST_MAX];
	/* the AEAD's list, in the order of live[] */
	struct sl_aead_op op[SL_BURST_MAX];
};

/* The live list is rewritten by each stage: kept frames move up, decided ones leave. */
#define SL_BURST_EACH(b, k, i) for (uint32_t k = 0, i; k < (b)->live_count && ((i = (b)->live[k]), true); k++)

/*
 * Brings frames of one session together: live[] in order of first appearance of its session, stable inside, and one
 * group for each. key: session of a frame.
 */
static inline void
sl_burst_group(struct sl_burst *b, struct sl_session *const *key)
{
	uint8_t place[128], member[SL_BURST_MAX], sorted[SL_BURST_MAX], next[SL_BURST_MAX];
	uint32_t groups = 0, at = 0;

	memset(place, 0xff, sizeof(place));
	SL_BURST_EACH(b, k, i) {
		struct sl_session *s = key[i];
		uint32_t h = (uint32_t)(((uintptr_t)s >> 6) * 0x9e3779b97f4a7c15ull >> 57);

		while (place[h] != 0xff && b->group[place[h]].session != s)
			h = (h + 1) % 128;
		if (place[h] == 0xff) {
			place[h] = (uint8_t)groups;
			b->group[groups].session = s;
			b->group[groups++].count = 0;
		}
		member[k] = place[h];
		b->group[place[h]].count++;
	}
	b->group_count = groups;
	for (uint32_t g = 0; g < groups; at += b->group[g].count, g++)
		b->group[g].first = next[g] = (uint8_t)at;
	SL_BURST_EACH(b, k, i)
		sorted[next[member[k]]++] = (uint8_t)i;
	memcpy(b->live, sorted, b->live_count);
}

#endif
