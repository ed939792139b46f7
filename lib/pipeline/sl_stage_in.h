/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_STAGE_IN_H
#define SL_STAGE_IN_H
/*
 * The receiving half of transit: classify, session, replay check, open, commit. Each stage reads and writes struct
 * sl_burst only, and what its session's owner may write.
 */
#include "sl_worker.h"

/* What the NIC said about checksums and tags, in the parser's words. */
static inline uint32_t
sl_rx_hints(const struct rte_mbuf *m)
{
	const uint64_t f = m->ol_flags;
	uint32_t hints = 0;

	if ((f & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		hints |= SL_RX_IP_GOOD;
	if ((f & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		hints |= SL_RX_L4_GOOD;
	if (f & RTE_MBUF_F_RX_VLAN_STRIPPED)
		hints |= SL_RX_VLAN_STRIPPED | SL_RX_VLAN_TCI(m->vlan_tci);
	return hints;
}

/* Notes in the mbuf what its next reader needs; returns the verdict for it. */
static inline uint8_t
sl_frame_note(struct sl_burst *b, uint32_t i, uint8_t kind, const void *what, uint32_t len, uint8_t verdict)
{
	struct sl_frame *f = sl_frame_of(b->mbuf[i]);

	f->kind = kind;
	f->port = b->port;
	f->from = b->from[i];
	f->offset = (uint32_t)((const uint8_t *)what - rte_pktmbuf_mtod(b->mbuf[i], const uint8_t *));
	f->len = len;
	return verdict;
}

/* The port's headers: an FMP packet and its source, or PUNT, or a DROP_* of the parser's, or DROP_SEGMENTS. */
static inline void
sl_stage_classify(struct sl_burst *b, const struct sl_parse_local *local)
{
	static const uint8_t frame_kind[] = {[SL_PARSE_ESTABLISHED] = SL_FRAME_SESSION,
		[SL_PARSE_HANDSHAKE] = SL_FRAME_HANDSHAKE, [SL_PARSE_NEIGH] = SL_FRAME_NEIGHBOUR,
		[SL_PARSE_BEACON] = SL_FRAME_BEACON, [SL_PARSE_TRAVERSAL] = SL_FRAME_TRAVERSAL};
	uint32_t live = 0;

	for (uint32_t i = 0; i < b->count && i < SL_AHEAD_DATA; i++)
		rte_prefetch0(rte_pktmbuf_mtod(b->mbuf[i], void *));
	b->rx_bytes = 0;
	for (uint32_t i = 0; i < b->count; i++) {
		struct rte_mbuf *m = b->mbuf[i];
		struct sl_parsed parsed;
		uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
		enum sl_verdict v;

		if (i + SL_AHEAD_MBUF < b->count)
			rte_prefetch0(b->mbuf[i + SL_AHEAD_MBUF]);
		if (i + SL_AHEAD_DATA < b->count)
			rte_prefetch0(rte_pktmbuf_mtod(b->mbuf[i + SL_AHEAD_DATA], void *));
		b->rx_bytes += m->pkt_len;
		v = m->nb_segs != 1 || m->data_off < SL_PATH_HEADROOM_MIN ? SL_DROP_SEGMENTS : sl_parse(local, data, m->data_len, sl_rx_hints(m), &parsed);
		if (likely(v == SL_FORWARD)) {
			b->verdict[i] = SL_VERDICT_NONE;
			b->live[live++] = (uint8_t)i;
		} else {
			b->verdict[i] = (uint8_t)v;
			if (v != SL_PUNT)
				continue;
			if (parsed.kind == SL_PARSE_NEIGH) {
				memset(&b->from[i], 0, sizeof(b->from[i]));
				sl_frame_note(b, i, SL_FRAME_NEIGHBOUR, data, m->data_len, SL_PUNT);
				continue;
			}
		}
		b->fmp[i] = data + parsed.offset;
		b->fmp_len[i] = parsed.len;
		b->from[i] = parsed.from;
		if (unlikely(v == SL_PUNT))
			sl_frame_note(b, i, frame_kind[parsed.kind], b->fmp[i], parsed.len, SL_PUNT);
	}
	b->live_count = live;
}

/* Frames that another worker classified and handed over: its notes instead of the headers. */
static inline void
sl_stage_resume(struct sl_burst *b)
{
	b->rx_bytes = 0;
	for (uint32_t i = 0; i < b->count; i++) {
		const struct sl_frame *f = sl_frame_of(b->mbuf[i]);

		b->fmp[i] = rte_pktmbuf_mtod_offset(b->mbuf[i], uint8_t *, f->offset);
		b->fmp_len[i] = f->len;
		b->from[i] = f->from;
		b->rx_bytes += b->mbuf[i]->pkt_len;
		b->verdict[i] = SL_VERDICT_NONE;
		b->live[i] = (uint8_t)i;
	}
	b->live_count = b->count;
}

/*
 * Receiver index -> session: DROP_UNKNOWN_INDEX, or HANDOFF when the session is another worker's. Three passes, so that
 * each load was prefetched by the one before. What stays is grouped by session.
 */
static inline void
sl_stage_session(const struct sl_worker *w, struct sl_burst *b)
{
	const struct sl_session_view *v = w->view;
	uint32_t live = 0;

	SL_BURST_EACH(b, k, i)
		rte_prefetch0(&v->slots[sl_get32(b->fmp[i] + 4) & v->slot_mask]);
	SL_BURST_EACH(b, k, i) {
		struct sl_session *s =
			__atomic_load_n(&v->slots[sl_get32(b->fmp[i] + 4) & v->slot_mask], __ATOMIC_ACQUIRE);

		b->rx[i] = s;
		if (likely(s != NULL)) {
			rte_prefetch0(s);
			rte_prefetch0(s->rx_key);
			rte_prefetch0(&s->replay.highest);
			rte_prefetch0(&s->replay.seen[sl_get64(b->fmp[i] + 8) / 64 % SL_REPLAY_WORDS]);
		}
	}
	SL_BURST_EACH(b, k, i) {
		struct sl_session *s = b->rx[i];

		if (unlikely(s == NULL || s->rx_index != sl_get32(b->fmp[i] + 4)))
			b->verdict[i] = SL_DROP_UNKNOWN_INDEX;
		else if (unlikely(s->owner != w->id))
			b->verdict[i] = sl_frame_note(b, i, SL_FRAME_SESSION, b->fmp[i], b->fmp_len[i], SL_HANDOFF);
		else
			b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
	sl_burst_group(b, b->rx);
}

/* DROP_REPLAY before anything is spent on the frame; commit looks again after the tag has been checked. */
static inline void
sl_stage_replay_check(struct sl_burst *b)
{
	uint32_t live = 0;

	SL_BURST_EACH(b, k, i) {
		struct sl_session *s = b->rx[i];
		const uint64_t counter = sl_get64(b->fmp[i] + 8);

		if (unlikely(!sl_replay_check(&s->replay, counter))) {
			b->verdict[i] = SL_DROP_REPLAY;
			__atomic_store_n(&s->replays, s->replays + 1, __ATOMIC_RELAXED);
			continue;
		}
		b->op[live] = (struct sl_aead_op){.text = b->fmp[i] + SL_HEADER_BYTES, .aad = b->fmp[i], .key = s->rx_key,
			.counter = counter, .text_len = b->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES, .slot = i};
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

/* One call for the whole burst. The bad ones come back behind the good ones: DROP_AUTH. */
static inline void
sl_stage_open(struct sl_worker *w, struct sl_burst *b)
{
	uint32_t good;

	if (b->live_count == 0)
		return;
	good = w->aead->open(w->aead_ctx, b->op, b->live_count);
	for (uint32_t k = 0; k < b->live_count; k++) {
		const uint32_t i = b->op[k].slot;

		b->live[k] = (uint8_t)i;
		if (unlikely(k >= good)) {
			b->verdict[i] = SL_DROP_AUTH;
			__atomic_store_n(&b->rx[i]->open_failures, b->rx[i]->open_failures + 1, __ATOMIC_RELAXED);
		}
	}
	b->live_count = good;
}

/* Reports an event to control once; the flag stays set when the ring is full, so that the next frame tries again. */
static inline void
sl_session_event(struct sl_worker *w, struct sl_session *s, uint8_t bit, uint8_t kind, const struct sl_addr *from,
	uint8_t flags)
{
	struct sl_event *e = (struct sl_event *)sl_records_begin(&w->events);

	if (e == NULL) {
		SL_COUNT(w, event_ring_full, 1);
		return;
	}
	if (!(__atomic_fetch_and(&s->notify, (uint8_t)~bit, __ATOMIC_ACQ_REL) & bit))
		return;
	e->kind = kind;
	e->rx_index = s->rx_index;
	e->flags = flags;
	e->from = *from;
	e->len = 0;
	sl_records_commit(&w->events);
}

/* The window and the measurements, in order of arrival within a session. DROP_REPLAY (a twin in this burst), DROP_INNER_SHORT. */
static inline void
sl_stage_commit(struct sl_worker *w, struct sl_burst *b)
{
	uint32_t live = 0;

	SL_BURST_EACH(b, k, i) {
		struct sl_session *s = b->rx[i];
		const uint8_t *fmp = b->fmp[i];
		const uint64_t counter = sl_get64(fmp + 8);
		uint8_t notify;

		if (unlikely(!sl_replay_commit(&s->replay, counter))) {
			b->verdict[i] = SL_DROP_REPLAY;
			__atomic_store_n(&s->replays, s->replays + 1, __ATOMIC_RELAXED);
			continue;
		}
		if (unlikely(b->fmp_len[i] < SL_ESTABLISHED_MIN_BYTES + SL_INNER_BYTES)) {
			b->verdict[i] = SL_DROP_INNER_SHORT;
			continue;
		}
		sl_mmp_rx_frame(&s->mmp, counter, sl_get32(fmp + SL_HEADER_BYTES), b->fmp_len[i], b->now_us, fmp[1]);
		notify = __atomic_load_n(&s->notify, __ATOMIC_RELAXED);
		if (unlikely(notify & SL_NOTIFY_FIRST_FRAME))
			sl_session_event(w, s, SL_NOTIFY_FIRST_FRAME, SL_EVENT_FIRST_FRAME, &b->from[i], fmp[1]);
		if ((notify & SL_NOTIFY_ADDRESS) && counter == s->replay.highest &&
			unlikely(sl_addr_hash(&b->from[i]) != __atomic_load_n(&s->rx_addr_hash, __ATOMIC_RELAXED)))
			sl_session_event(w, s, SL_NOTIFY_ADDRESS, SL_EVENT_ROAMED, &b->from[i], fmp[1]);
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

#endif
