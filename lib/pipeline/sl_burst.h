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
 *
 * From open to reseal a frame lies as [ header 16 | plaintext, lead bytes of it | ciphertext still ]: what transit reads
 * and changes is within the first 64 bytes. Who needs more asks for it (sl_burst_reveal()).
 */
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include "../crypto/sl_aead.h"
#include "../overlay/sl_session.h"
#include "../routing/sl_fib.h"
#include "sl_parse.h"
#include "sl_path.h"
#include "sl_verdict.h"

#define SL_BURST_MAX 64u
#define SL_VERDICT_NONE 0xffu /* not yet decided */
#define SL_VERDICT_SPREAD 0xfeu /* not ours any more: in the lane of its session's owner (sl_spread.h) */
#define SL_PORT_NONE UINT16_MAX

/* Prefetch distances in frames. */
#define SL_AHEAD_MBUF 8u /* mbuf header, for classify */
#define SL_AHEAD_DATA 4u /* first line of the packet, for classify */

/* The frames of the burst that leave to one peer. Half a cache line. */
struct sl_group {
	struct sl_session *session;
	uint64_t counter; /* of the next frame, once reserved */
	uint32_t bytes;	  /* of FMP packets */
	uint32_t count;
	uint32_t ts_ms;	 /* inner timestamp */
	uint8_t tx_flags; /* K and SP */
	bool reserved;
};

struct sl_burst {
	uint32_t count;	     /* frames in the burst */
	uint32_t live_count; /* of them undecided */
	uint32_t spread;     /* of them gone to a lane */
	uint32_t group_count;
	uint16_t port; /* our index of the port they came in by; SL_PORT_NONE = from another worker */
	uint64_t begin_tsc; /* the one clock read of a burst, and in microseconds */
	uint64_t now_us;
	uint64_t rx_bytes;
	const struct sl_parse_local *local; /* of that port */
	struct rte_mempool *join_pool; /* its large buffers; NULL: its frames come in one piece */
	const struct sl_fib *fib;

	struct rte_mbuf *mbuf[SL_BURST_MAX + SL_AHEAD_MBUF]; /* classify writes behind the last */
	uint8_t verdict[SL_BURST_MAX]; /* enum sl_verdict or SL_VERDICT_NONE */
	uint8_t live[SL_BURST_MAX];

	/* classify */
	uint8_t *fmp[SL_BURST_MAX]; /* the FMP packet inside the mbuf */
	uint32_t fmp_len[SL_BURST_MAX];
	struct sl_parsed in[SL_BURST_MAX]; /* where it came from, and what is left to check */
	/* session, admit */
	struct sl_session *rx[SL_BURST_MAX];
	uint64_t counter[SL_BURST_MAX]; /* it came with */
	bool moved[SL_BURST_MAX];	/* not from the address that the session is known by */
	/* open */
	uint32_t lead[SL_BURST_MAX]; /* bytes of text that are plaintext */
	/* next hop, egress */
	struct sl_hop hop[SL_BURST_MAX];
	const struct sl_path *path[SL_BURST_MAX];
	uint8_t group_of[SL_BURST_MAX];
	struct sl_group group[SL_BURST_MAX];
	/* wrap */
	uint8_t out_port[SL_BURST_MAX];
	/* the AEAD's lists, in the order of live[] */
	struct sl_aead_op op[SL_BURST_MAX];
	struct sl_aead_reop reop[SL_BURST_MAX];
};

/* The live list is rewritten by each stage: kept frames move up, decided ones leave. */
#define SL_BURST_EACH(b, k, i)                                                                                         \
	for (uint32_t k = 0, i, k##_end = (b)->live_count; k < k##_end && ((i = (b)->live[k]), true); k++)

/*
 * Which group of the burst in hand a peer's frames belong to: one word a peer, [ burst's serial : 24 | group : 8 ]. A word
 * of an older burst means none, so nothing is cleared between bursts.
 */
struct sl_group_marks {
	uint32_t serial; /* of the burst in hand, 1 .. 2^24 - 1 */
	uint32_t peers;
	uint32_t *of_peer;
};
static inline void
sl_burst_groups_begin(struct sl_burst *b, struct sl_group_marks *m)
{
	b->group_count = 0;
	if (unlikely(++m->serial >> 24)) {
		memset(m->of_peer, 0, m->peers * sizeof(*m->of_peer));
		m->serial = 1;
	}
}
/*
 * Adds frame i to its peer's group. Without branches: whether a frame is the first of its group is as good as random.
 * The session is the last one seen, should control have changed it meanwhile.
 */
static inline void
sl_burst_group(struct sl_burst *b, struct sl_group_marks *m, uint32_t i, struct sl_session *session)
{
	uint32_t *mark = &m->of_peer[b->hop[i].peer_id];
	const bool first = *mark >> 8 != m->serial;
	const uint32_t at = first ? b->group_count : *mark & 0xff;
	struct sl_group *g = &b->group[at];

	*mark = m->serial << 8 | at;
	b->group_count += first;
	b->group_of[i] = (uint8_t)at;
	g->session = session;
	g->count = (first ? 0 : g->count) + 1;
	g->bytes = (first ? 0 : g->bytes) + b->fmp_len[i];
}

#endif
