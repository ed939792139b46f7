/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_STAGE_OUT_H
#define SL_STAGE_OUT_H
/*
 * The sending half of transit: message, next hop, egress, reserve, reseal, wrap, finish. Between open and reseal the
 * frame lies as [ header 16 | timestamp 4 | type 1 | body ] at b->fmp[i], b->lead[i] bytes behind the header in plain;
 * what it needs for its way on is written over it.
 */
#include <assert.h>
#include <rte_ethdev.h>
#include "sl_stage_in.h"

/* The opened link message: type byte first. */
static inline uint8_t *
sl_burst_msg(const struct sl_burst *b, uint32_t i)
{
	return b->fmp[i] + SL_HEADER_BYTES + 4;
}
static inline uint32_t
sl_burst_msg_len(const struct sl_burst *b, uint32_t i)
{
	return b->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES - 4;
}

/* An opened frame for control, with the names of its session and peer. */
static inline uint8_t
sl_frame_note_opened(const struct sl_worker *w, struct sl_burst *b, uint32_t i, uint8_t kind)
{
	struct sl_frame *f = sl_frame_of(b->mbuf[i]);
	const struct sl_session *s = b->rx[i];

	f->rx_index = s->rx_index;
	f->peer_id = s->peer_id;
	f->flags = b->fmp[i][1];
	f->peer_generation = s->peer_id < w->view->max_peers ?
		__atomic_load_n(&sl_session_peer(w->view, s->peer_id)->generation, __ATOMIC_RELAXED) : 0;
	return sl_frame_note(b, i, kind, sl_burst_msg(b, i), sl_burst_msg_len(b, i), SL_PUNT);
}

/* What is written about a datagram lies in the lead, whatever engine. */
static_assert(4 + SL_DATAGRAM_HEADER_BYTES + 2 <= 64, "datagram header and the first bytes of its payload");

/*
 * What kind of message: datagrams go on, a heartbeat has done its work (LOCAL), the others are control's (PUNT).
 * DROP_DATAGRAM_SHORT, DROP_MESSAGE_UNKNOWN.
 */
static inline void
sl_stage_message(struct sl_worker *w, struct sl_burst *b)
{
	uint8_t punts[SL_BURST_MAX];
	uint32_t live = 0, punt_count = 0;

	SL_BURST_EACH(b, k, i) {
		const uint8_t type = *sl_burst_msg(b, i);

		if (likely(type == SL_MSG_DATAGRAM)) {
			if (likely(sl_burst_msg_len(b, i) >= SL_DATAGRAM_HEADER_BYTES))
				b->live[live++] = (uint8_t)i;
			else
				b->verdict[i] = SL_DROP_DATAGRAM_SHORT;
		} else if (type == SL_MSG_HEARTBEAT) {
			b->verdict[i] = SL_LOCAL;
		} else if (w->message_known[type]) {
			b->verdict[i] = sl_frame_note_opened(w, b, i, SL_FRAME_MESSAGE);
			punts[punt_count++] = (uint8_t)i;
		} else {
			b->verdict[i] = SL_DROP_MESSAGE_UNKNOWN;
		}
	}
	b->live_count = live;
	sl_burst_reveal(w, b, punts, punt_count);
}

/* Copies the head that shows coordinates for control to learn from. A full ring or a head that is too long: counted. */
static inline void
sl_burst_learn(struct sl_worker *w, const uint8_t *msg, uint32_t len)
{
	struct sl_coords_seen seen;
	struct sl_learn *r;
	const uint8_t *payload = msg + SL_DATAGRAM_PAYLOAD;
	const uint32_t payload_len = len - SL_DATAGRAM_PAYLOAD;

	if (!sl_payload_coords(&seen, payload, payload_len))
		return;
	/* Set-up frames are short; of flagged data the text behind the coordinates is not wanted. */
	if ((payload[0] & 0x0f) == 0) {
		const uint8_t *end = payload + 28; /* the least that the parser asks for */

		if (seen.src_count && seen.src + 16u * seen.src_count > end)
			end = seen.src + 16u * seen.src_count;
		if (seen.dest_count && seen.dest + 16u * seen.dest_count > end)
			end = seen.dest + 16u * seen.dest_count;
		end += 2; /* the second list may be empty: its count */
		if ((uint32_t)(end - msg) < len)
			len = (uint32_t)(end - msg);
	}
	r = (struct sl_learn *)sl_records_begin(&w->learn);
	if (r == NULL || len > SL_LEARN_BYTES) {
		SL_COUNT(w, learn_ring_full, 1);
		return;
	}
	r->len = len;
	memcpy(r->msg, msg, len);
	sl_records_commit(&w->learn);
}

/*
 * One burst look-up. For us, nobody known, or back to the peer it came from (somebody's coordinates are old): PUNT,
 * control has the error signals and the session layer. Then the TTL:
 * DROP_TTL (a datagram for us is taken with any, routing facts 9.2). What is not punted is learnt from here.
 */
static inline void
sl_stage_next_hop(struct sl_worker *w, struct sl_burst *b)
{
	const uint8_t *dest[SL_BURST_MAX];
	struct sl_hop hop[SL_BURST_MAX];
	uint8_t whole[SL_BURST_MAX], learn[SL_BURST_MAX];
	uint32_t live = 0, whole_count = 0, learn_count = 0;

	if (b->live_count == 0)
		return;
	SL_BURST_EACH(b, k, i)
		dest[k] = sl_burst_msg(b, i) + SL_DATAGRAM_DEST;
	if (likely(b->fib != NULL))
		sl_fib_lookup(b->fib, w->hop_cache, dest, hop, b->live_count, (uint32_t)(b->now_us / 1000000));
	else
		for (uint32_t k = 0; k < b->live_count; k++)
			hop[k] = (struct sl_hop){.kind = SL_HOP_NO_COORDS};
	SL_BURST_EACH(b, k, i) {
		const uint8_t *msg = sl_burst_msg(b, i);

		b->hop[i] = hop[k];
		if (likely(hop[k].peer_id < w->view->max_peers))
			rte_prefetch0(sl_session_peer(w->view, hop[k].peer_id));
		if (unlikely(hop[k].kind == SL_HOP_LOCAL ||
			((hop[k].kind != SL_HOP_PEER || hop[k].peer_id == b->rx[i]->peer_id) &&
				msg[SL_DATAGRAM_TTL] > 1))) {
			b->verdict[i] = sl_frame_note_opened(w, b, i, SL_FRAME_DATAGRAM);
			whole[whole_count++] = (uint8_t)i;
			continue;
		}
		if (unlikely(sl_payload_may_carry_coords(msg + SL_DATAGRAM_PAYLOAD,
			sl_burst_msg_len(b, i) - SL_DATAGRAM_PAYLOAD))) {
			whole[whole_count++] = (uint8_t)i;
			learn[learn_count++] = (uint8_t)i;
		}
		if (unlikely(msg[SL_DATAGRAM_TTL] <= 1))
			b->verdict[i] = SL_DROP_TTL;
		else
			b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
	sl_burst_reveal(w, b, whole, whole_count);
	for (uint32_t k = 0; k < learn_count; k++)
		sl_burst_learn(w, sl_burst_msg(b, learn[k]), sl_burst_msg_len(b, learn[k]));
}

static inline void
sl_event_too_big(struct sl_worker *w, struct sl_burst *b, uint32_t i, uint16_t mtu)
{
	const uint8_t slot = (uint8_t)i;
	struct sl_event *e = (struct sl_event *)sl_records_begin(&w->events);
	const uint32_t len = sl_burst_msg_len(b, i);

	if (e == NULL) {
		SL_COUNT(w, event_ring_full, 1);
		return;
	}
	sl_burst_reveal(w, b, &slot, 1);
	e->kind = SL_EVENT_TOO_BIG;
	e->mtu = mtu;
	e->len = (uint16_t)RTE_MIN(len, SL_EVENT_HEAD_BYTES);
	memcpy(e->head, sl_burst_msg(b, i), e->len);
	sl_records_commit(&w->events);
}

/*
 * Peer -> session to seal with, and outer headers: DROP_NO_SESSION, DROP_NO_PATH, DROP_TOO_BIG (and an event), or NONE; the
 * frame then belongs to the group of its egress session, and *mtu is what its way on carries.
 */
static inline uint8_t
sl_frame_egress(struct sl_worker *w, struct sl_burst *b, uint32_t i, uint16_t *mtu)
{
	const struct sl_hop *hop = &b->hop[i];
	const struct sl_peer_row *row;
	const struct sl_path *path = NULL;
	struct sl_session *tx = NULL;

	if (likely(hop->peer_id < w->view->max_peers)) {
		row = sl_session_peer(w->view, hop->peer_id);
		tx = __atomic_load_n(&row->tx, __ATOMIC_ACQUIRE);
		path = __atomic_load_n(&row->path, __ATOMIC_ACQUIRE);
	}
	if (unlikely(tx == NULL || path == NULL))
		return tx == NULL ? SL_DROP_NO_SESSION : SL_DROP_NO_PATH;
	rte_prefetch0(tx->tx_key);
	rte_prefetch0(&tx->tx_counter);
	/* The least of what the transport allows and what the link carries. 0 = unknown. */
	*mtu = hop->mtu != 0 && hop->mtu < path->mtu ? hop->mtu : path->mtu;
	if (unlikely(b->fmp_len[i] > *mtu)) {
		sl_event_too_big(w, b, i, *mtu);
		return SL_DROP_TOO_BIG;
	}
	b->path[i] = path;
	sl_burst_group(b, &w->marks, i, tx);
	return SL_VERDICT_NONE;
}

/* A datagram's TTL and path MTU for its way on. */
static inline void
sl_msg_pass_on(uint8_t *msg, uint16_t mtu)
{
	msg[SL_DATAGRAM_TTL]--;
	if (mtu < sl_get16(msg + SL_DATAGRAM_PATH_MTU))
		sl_put16(msg + SL_DATAGRAM_PATH_MTU, mtu);
}

/* DROP_NO_SESSION, DROP_NO_PATH, DROP_TOO_BIG. What stays has TTL and path MTU for its way on. */
static inline void
sl_stage_egress(struct sl_worker *w, struct sl_burst *b)
{
	uint32_t live = 0;

	sl_burst_groups_begin(b, &w->marks);
	SL_BURST_EACH(b, k, i) {
		uint16_t mtu = 0;
		const uint8_t v = sl_frame_egress(w, b, i, &mtu);

		if (unlikely(v != SL_VERDICT_NONE)) {
			b->verdict[i] = v;
			continue;
		}
		sl_msg_pass_on(sl_burst_msg(b, i), mtu);
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

/* A run of counters and a timestamp for each group. */
static inline void
sl_groups_reserve(const struct sl_worker *w, struct sl_burst *b)
{
	const bool alone = sl_session_lease_take(w->view);

	for (uint32_t k = 0; k < b->group_count; k++) {
		struct sl_group *g = &b->group[k];
		const struct sl_session *tx = g->session;

		g->reserved = sl_session_reserve_with(g->session, alone, g->count, g->bytes, &g->counter);
		g->tx_flags = __atomic_load_n(&tx->tx_flags, __ATOMIC_RELAXED) & (uint8_t)(SL_FLAG_K | SL_FLAG_SP);
		/* Control's clock may be a little ahead of this burst's. */
		g->ts_ms = b->now_us > tx->origin_us ? (uint32_t)((b->now_us - tx->origin_us) / 1000) : 0;
	}
	sl_session_lease_give(w->view, alone);
}

/* Reserved counters, then the new header of each frame. DROP_NONCE. */
static inline void
sl_stage_reserve(const struct sl_worker *w, struct sl_burst *b)
{
	uint32_t live = 0;

	sl_groups_reserve(w, b);
	/* Flags are built anew: K and SP are the egress session's, CE is what came in or what this hop adds. */
	SL_BURST_EACH(b, k, i) {
		struct sl_group *g = &b->group[b->group_of[i]];
		const struct sl_session *tx = g->session;
		uint8_t *fmp = b->fmp[i], ce = b->hop[i].congested ? SL_FLAG_CE : 0;
		const uint32_t text_len = b->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES;

		if (unlikely(!g->reserved)) {
			b->verdict[i] = SL_DROP_NONCE;
			continue;
		}
		ce |= fmp[1] & SL_FLAG_CE;
		sl_header_build(fmp, (uint8_t)(g->tx_flags | ce), (uint16_t)text_len, tx->tx_index, g->counter);
		sl_put32(fmp + SL_HEADER_BYTES, g->ts_ms);
		b->reop[live] = (struct sl_aead_reop){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .old_key = b->rx[i]->rx_key,
			.new_key = tx->tx_key, .old_counter = b->counter[i], .new_counter = g->counter++, .text_len = text_len,
			.lead = b->lead[i], .slot = i};
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

/* One call for the whole burst. Only a crypto device can fail: DROP_SEAL. */
static inline void
sl_stage_reseal(struct sl_worker *w, struct sl_burst *b)
{
	const uint32_t n = b->live_count;
	uint32_t sealed = n;

	if (likely(n != 0))
		sealed = sl_aead_reseal(w->aead, w->aead_ctx, b->reop, n);
	if (likely(sealed == n))
		return;
	for (uint32_t k = 0; k < n; k++) {
		b->live[k] = (uint8_t)b->reop[k].slot;
		if (k >= sealed)
			b->verdict[b->live[k]] = SL_DROP_SEAL;
	}
	b->live_count = sealed;
}

/* The shortest frame that transit sends needs no padding to the Ethernet minimum. */
static_assert(SL_ETHER_BYTES + SL_ETH_HEADER_BYTES + SL_ESTABLISHED_MIN_BYTES + 4 + SL_DATAGRAM_HEADER_BYTES >=
		SL_PATH_FRAME_MIN, "a sealed datagram fills an Ethernet frame");

/* The buffer's view of a frame that begins at `frame`. Padding and what was received of it go; whose the memory is stays. */
static inline void
sl_mbuf_frame(struct rte_mbuf *m, const uint8_t *frame, uint32_t len)
{
	m->data_off = (uint16_t)(frame - (uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	m->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
}

/* Outer headers in front, padding off; after sealing, since a checksum covers the sealed text. FORWARD; they stay live. */
static inline void
sl_stage_wrap(struct sl_burst *b)
{
	SL_BURST_EACH(b, k, i) {
		const struct sl_path *path = b->path[i];
		const uint32_t fmp_len = b->fmp_len[i], hdr_len = path->hdr_len;
		uint8_t *frame = b->fmp[i] - hdr_len;

		sl_path_write(path, frame, fmp_len, sl_get16(b->fmp[i] + 8));
		sl_mbuf_frame(b->mbuf[i], frame, hdr_len + fmp_len);
		b->out_port[i] = (uint8_t)path->port;
		b->verdict[i] = SL_FORWARD;
	}
}

static inline void
sl_finish_count(struct sl_worker *w, enum sl_verdict v, uint32_t n)
{
	static_assert(SL_VERDICT_COUNT <= 64, "one bit a verdict");
	w->pending[v] = (uint16_t)(w->pending[v] + n);
	w->touched |= 1ull << v;
}

/* The burst's counts all at once, with nothing between that takes time: rx is the sum of the verdicts for every reader. */
static inline void
sl_finish_publish(struct sl_worker *w, const struct sl_burst *b)
{
	const uint64_t seq = w->counters.seq;

	__atomic_store_n(&w->counters.seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (; w->touched; w->touched &= w->touched - 1) {
		const uint32_t v = (uint32_t)__builtin_ctzll(w->touched);

		SL_COUNT(w, verdicts[v], w->pending[v]);
		w->pending[v] = 0;
	}
	SL_COUNT(w, rx, b->count - b->spread);
	__atomic_store_n(&w->counters.seq, seq + 2, __ATOMIC_RELEASE);
}

/* What a queue or ring did not take: counted as `drop`, put on the list of those to be freed; the rest counted as `v`. */
static inline uint32_t
sl_finish_sent(struct sl_worker *w, struct rte_mbuf **frames, uint32_t sent, uint32_t count, struct rte_mbuf **freed,
	uint32_t freed_count, enum sl_verdict v, enum sl_verdict drop)
{
	sl_finish_count(w, v, sent);
	if (likely(sent == count))
		return freed_count;
	sl_finish_count(w, drop, count - sent);
	memcpy(&freed[freed_count], &frames[sent], (count - sent) * sizeof(*frames));
	return freed_count + count - sent;
}

/* To the port's queue; returns how many it took. A frame's length is read before the NIC owns it. */
static inline uint32_t
sl_finish_transmit(struct sl_worker *w, uint32_t port)
{
	struct rte_mbuf **frames = w->tx_frames[port];
	const uint32_t count = w->tx_fill[port];
	uint32_t bytes[SL_BURST_MAX + 1], sent;
	uint64_t begin;

	bytes[0] = 0;
	for (uint32_t k = 0; k < count; k++)
		bytes[k + 1] = bytes[k] + frames[k]->pkt_len;
	if (unlikely(!__atomic_load_n(&w->tx[port].present, __ATOMIC_ACQUIRE)))
		return 0;
	begin = w->measure_cycles ? rte_rdtsc() : 0;
	sent = rte_eth_tx_burst(w->tx[port].ethdev, w->tx[port].queue, frames, (uint16_t)count);
	if (w->measure_cycles)
		w->transmit_tsc += rte_rdtsc() - begin;
	SL_COUNT(w, tx_bytes, bytes[sent]);
	return sent;
}

/*
 * The only exit: every frame of the burst leaves here, once, by its verdict. FORWARD (those still live) to its port's
 * queue (what does not fit: DROP_TX_FULL), PUNT to control (DROP_PUNT_FULL), HANDOFF to the owner (DROP_HANDOFF_FULL); LOCAL and DROP_* are
 * freed. Counts all of it but SPREAD, which leaves by its lane and is counted then.
 */
static inline void
sl_stage_finish(struct sl_worker *w, struct sl_burst *b)
{
	struct rte_mbuf *freed[SL_BURST_MAX], *punts[SL_PUNT_RINGS][SL_BURST_MAX];
	uint32_t freed_count = 0, punt_count[SL_PUNT_RINGS] = {0}, ports = 0, owners = 0, sent;

	/* In the order in which counters were given out: a session's frames rise on the wire. */
	SL_BURST_EACH(b, k, i) {
		const uint32_t p = b->out_port[i];

		ports |= 1u << p;
		w->tx_frames[p][w->tx_fill[p]++] = b->mbuf[i];
	}
	for (uint32_t i = 0; i < b->count && b->live_count != b->count; i++) {
		struct rte_mbuf *m = b->mbuf[i];
		const uint8_t v = b->verdict[i];

		if (likely(v == SL_FORWARD))
			continue;
		if (v == SL_PUNT) {
			const uint8_t kind = sl_frame_of(m)->kind;
			const enum sl_punt_ring r = kind == SL_FRAME_MESSAGE ? SL_PUNTS_MESSAGES :
				kind == SL_FRAME_DATAGRAM ? SL_PUNTS_DATAGRAMS : SL_PUNTS_STRANGERS;

			punts[r][punt_count[r]++] = m;
		} else if (v == SL_HANDOFF) {
			const uint32_t o = __atomic_load_n(&b->rx[i]->owner, __ATOMIC_RELAXED) & SL_OWNER_WORKER;

			owners |= 1u << o;
			w->handoff_frames[o][w->handoff_fill[o]++] = m;
		} else if (likely(v != SL_VERDICT_SPREAD)) {
			sl_finish_count(w, (enum sl_verdict)v, 1);
			freed[freed_count++] = m;
		}
	}
	for (; ports; ports &= ports - 1) {
		const uint32_t p = (uint32_t)__builtin_ctz(ports);

		sent = sl_finish_transmit(w, p);
		freed_count = sl_finish_sent(w, w->tx_frames[p], sent, w->tx_fill[p], freed, freed_count, SL_FORWARD,
			SL_DROP_TX_FULL);
		w->tx_fill[p] = 0;
	}
	for (uint32_t r = 0; r < SL_PUNT_RINGS; r++) {
		if (likely(punt_count[r] == 0))
			continue;
		sent = rte_ring_sp_enqueue_burst(w->punt[r], (void *const *)punts[r], punt_count[r], NULL);
		SL_COUNT(w, punt_ring_full, punt_count[r] - sent);
		freed_count = sl_finish_sent(w, punts[r], sent, punt_count[r], freed, freed_count, SL_PUNT, SL_DROP_PUNT_FULL);
	}
	for (; owners; owners &= owners - 1) {
		const uint32_t o = (uint32_t)__builtin_ctz(owners);

		sent = rte_ring_sp_enqueue_burst(w->handoff_out[o], (void *const *)w->handoff_frames[o], w->handoff_fill[o], NULL);
		freed_count = sl_finish_sent(w, w->handoff_frames[o], sent, w->handoff_fill[o], freed, freed_count, SL_HANDOFF,
			SL_DROP_HANDOFF_FULL);
		w->handoff_fill[o] = 0;
	}
	if (freed_count)
		rte_pktmbuf_free_bulk(freed, freed_count);
	if (unlikely(b->spread))
		sl_spread_publish(w);
	sl_finish_publish(w, b);
	SL_COUNT(w, rx_bytes, b->rx_bytes);
	if (b->port == SL_PORT_NONE)
		SL_COUNT(w, handoff_in, b->count);
}

#endif
