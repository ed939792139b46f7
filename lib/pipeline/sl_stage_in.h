/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_STAGE_IN_H
#define SL_STAGE_IN_H
/*
 * The receiving half of transit: classify, session, admit, open, commit. Each stage reads and writes struct
 * sl_burst only, and what its session's owner may write.
 */
#include <assert.h>
#include "sl_join.h"
#include "sl_worker.h"

/* What the NIC said about checksums and tags, in the parser's words. */
static inline uint32_t
sl_rx_hints(const struct rte_mbuf *m)
{
	const uint32_t f = (uint32_t)m->ol_flags;
	/* "Good" is one bit without the other: both mean that it is not known. */
	uint32_t hints = SL_RX_L4_LATER | (f / RTE_MBUF_F_RX_IP_CKSUM_GOOD & ~(f / RTE_MBUF_F_RX_IP_CKSUM_BAD) & SL_RX_IP_GOOD) |
		(f / (RTE_MBUF_F_RX_L4_CKSUM_GOOD / 2) & ~(f / (RTE_MBUF_F_RX_L4_CKSUM_BAD / 2)) & SL_RX_L4_GOOD);

	static_assert(SL_RX_IP_GOOD == 1 && SL_RX_L4_GOOD == 2, "single bits, shifted to their places");
	if (unlikely(f & RTE_MBUF_F_RX_VLAN_STRIPPED))
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
	f->from = b->in[i].from;
	f->checksum_due = b->in[i].checksum_due;
	f->offset = (uint32_t)((const uint8_t *)what - rte_pktmbuf_mtod(b->mbuf[i], const uint8_t *));
	f->len = len;
	return verdict;
}

/* The row that says whose frame it is: asked for when the header has been found, read by session. */
static inline void
sl_session_fetch(const struct sl_session_view *v, const uint8_t *fmp)
{
	rte_prefetch0(&v->slots[sl_get32(fmp + 4) & v->slot_mask]);
}

/* The port's headers: an FMP packet and its source, or PUNT, or a DROP_* of the parser's, or DROP_SEGMENTS*. */
static inline void
sl_stage_classify(struct sl_worker *w, struct sl_burst *b)
{
	const struct sl_parse_local *local = b->local;
	static const uint8_t frame_kind[] = {[SL_PARSE_ESTABLISHED] = SL_FRAME_SESSION,
		[SL_PARSE_HANDSHAKE] = SL_FRAME_HANDSHAKE, [SL_PARSE_NEIGH] = SL_FRAME_NEIGHBOUR,
		[SL_PARSE_BEACON] = SL_FRAME_BEACON, [SL_PARSE_TRAVERSAL] = SL_FRAME_TRAVERSAL,
		[SL_PARSE_MDNS] = SL_FRAME_MDNS};
	const uint32_t count = b->count;
	uint64_t rx_bytes = 0;
	uint32_t live = 0;

	b->rx_bytes = 0;
	b->live_count = 0;
	if (unlikely(count == 0))
		return;
	/* The last one again behind the end, so that nobody has to look whether there is one to fetch. */
	for (uint32_t k = 0; k < SL_AHEAD_MBUF; k++)
		b->mbuf[count + k] = b->mbuf[count - 1];
	for (uint32_t i = 0; i < SL_AHEAD_DATA; i++)
		rte_prefetch0(rte_pktmbuf_mtod(b->mbuf[i], void *));
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *m = b->mbuf[i];
		struct sl_parsed *in = &b->in[i];
		uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
		enum sl_verdict v;

		rte_prefetch0(b->mbuf[i + SL_AHEAD_MBUF]);
		rte_prefetch0(rte_pktmbuf_mtod(b->mbuf[i + SL_AHEAD_DATA], void *));
		rx_bytes += m->pkt_len;
		if (unlikely(m->nb_segs != 1 || m->data_off < SL_PATH_HEADROOM_MIN)) {
			v = sl_join(b->join_pool, &b->mbuf[i]);
			if (v != SL_FORWARD) {
				b->verdict[i] = (uint8_t)v;
				continue;
			}
			SL_COUNT(w, joined, 1);
			m = b->mbuf[i];
			data = rte_pktmbuf_mtod(m, uint8_t *);
		}
		v = sl_parse(local, data, m->data_len, sl_rx_hints(m), in);
		if (likely(v == SL_FORWARD)) {
			b->fmp[i] = data + in->offset;
			b->fmp_len[i] = in->len;
			sl_session_fetch(w->view, b->fmp[i]);
			b->verdict[i] = SL_VERDICT_NONE;
			b->live[live++] = (uint8_t)i;
			continue;
		}
		b->verdict[i] = (uint8_t)v;
		if (v != SL_PUNT)
			continue;
		if (in->kind == SL_PARSE_NEIGH) {
			memset(&in->from, 0, sizeof(in->from));
			sl_frame_note(b, i, SL_FRAME_NEIGHBOUR, data, m->data_len, SL_PUNT);
			continue;
		}
		sl_frame_note(b, i, frame_kind[in->kind], data + in->offset, in->len, SL_PUNT);
	}
	b->rx_bytes = rx_bytes;
	b->live_count = live;
}

/* Frames that another worker classified and handed over: its notes instead of the headers. */
static inline void
sl_stage_resume(const struct sl_worker *w, struct sl_burst *b)
{
	b->rx_bytes = 0;
	for (uint32_t i = 0; i < b->count; i++) {
		const struct sl_frame *f = sl_frame_of(b->mbuf[i]);

		b->fmp[i] = rte_pktmbuf_mtod_offset(b->mbuf[i], uint8_t *, f->offset);
		b->fmp_len[i] = f->len;
		b->in[i].from = f->from;
		b->in[i].checksum_due = f->checksum_due;
		b->rx_bytes += b->mbuf[i]->pkt_len;
		b->verdict[i] = SL_VERDICT_NONE;
		b->live[i] = (uint8_t)i;
		sl_session_fetch(w->view, b->fmp[i]);
	}
	b->live_count = b->count;
}

/* Receiver index -> session. Whose it is, admit looks. */
static inline void
sl_stage_session(const struct sl_worker *w, struct sl_burst *b)
{
	const struct sl_session_view *v = w->view;

	SL_BURST_EACH(b, k, i) {
		struct sl_session *s =
			__atomic_load_n(&v->slots[sl_get32(b->fmp[i] + 4) & v->slot_mask], __ATOMIC_ACQUIRE);

		b->rx[i] = s;
		if (likely(s != NULL)) {
			rte_prefetch0(s);
			rte_prefetch0(&s->mmp);
			rte_prefetch0(&s->replay.highest);
			rte_prefetch0(&s->replay.seen[sl_get64(b->fmp[i] + 8) / 64 % SL_REPLAY_WORDS]);
		}
	}
}

/*
 * Before anything is spent on a frame of a session of ours: DROP_REPLAY (commit looks again after the tag has been checked),
 * DROP_UDP_CHECKSUM, or NONE. A UDP checksum tells nothing that the tag does not tell, except for the source, so it is looked at
 * where the source is news.
 */
static inline uint8_t
sl_frame_admit(struct sl_burst *b, uint32_t i, struct sl_session *s)
{
	uint8_t *fmp = b->fmp[i];
	const uint64_t counter = sl_get64(fmp + 8);

	b->moved[i] = sl_addr_hash(&b->in[i].from) != __atomic_load_n(&s->rx_addr_hash, __ATOMIC_RELAXED);
	if (unlikely(b->moved[i] && b->in[i].checksum_due &&
		!sl_parse_checksum_good(b->in[i].from.kind, fmp, b->fmp_len[i])))
		return SL_DROP_UDP_CHECKSUM;
	if (unlikely(!sl_replay_check(&s->replay, counter))) {
		__atomic_store_n(&s->replays, s->replays + 1, __ATOMIC_RELAXED);
		return SL_DROP_REPLAY;
	}
	b->counter[i] = counter;
	return SL_VERDICT_NONE;
}

/*
 * DROP_UNKNOWN_INDEX; HANDOFF when the session is another worker's; SPREAD when it is one whose frames several workers open
 * (sl_spread.h); the verdicts of sl_frame_admit().
 */
static inline void
sl_stage_admit(struct sl_worker *w, struct sl_burst *b)
{
	uint32_t live = 0;

	SL_BURST_EACH(b, k, i) {
		struct sl_session *s = b->rx[i];
		uint8_t *fmp = b->fmp[i], v;
		uint16_t owner;

		if (unlikely(s == NULL || s->rx_index != sl_get32(fmp + 4))) {
			b->verdict[i] = SL_DROP_UNKNOWN_INDEX;
			continue;
		}
		owner = __atomic_load_n(&s->owner, __ATOMIC_RELAXED);
		if (unlikely(owner != w->id)) {
			v = (owner & SL_OWNER_WORKER) == w->id ? sl_spread_take(w, b, i, s, owner) :
				sl_frame_note(b, i, SL_FRAME_SESSION, fmp, b->fmp_len[i], SL_HANDOFF);
			if (v != SL_VERDICT_NONE) {
				b->verdict[i] = v;
				continue;
			}
		}
		v = sl_frame_admit(b, i, s);
		if (unlikely(v != SL_VERDICT_NONE)) {
			b->verdict[i] = v;
			continue;
		}
		b->op[live] = (struct sl_aead_op){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .key = s->rx_key,
			.counter = b->counter[i], .text_len = b->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES, .slot = i};
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

/* One call: all authenticated, the leads deciphered. The bad ones come back behind the good ones: DROP_AUTH. */
static inline void
sl_stage_open(struct sl_worker *w, struct sl_burst *b)
{
	uint32_t good;

	if (b->live_count == 0)
		return;
	good = sl_aead_open_lead(w->aead, w->aead_ctx, b->op, b->live_count);
	for (uint32_t k = 0; k < b->live_count; k++) {
		const uint32_t i = b->op[k].slot;

		b->live[k] = (uint8_t)i;
		b->lead[i] = b->op[k].lead;
		if (unlikely(k >= good)) {
			b->verdict[i] = SL_DROP_AUTH;
			__atomic_store_n(&b->rx[i]->open_failures, b->rx[i]->open_failures + 1, __ATOMIC_RELAXED);
		}
	}
	b->live_count = good;
}

/* Deciphers the rest of opened frames. slots: their places in the burst. */
static inline void
sl_burst_reveal(struct sl_worker *w, struct sl_burst *b, const uint8_t *slots, uint32_t count)
{
	struct sl_aead_op op[SL_BURST_MAX];
	uint32_t n = 0;

	for (uint32_t k = 0; k < count; k++) {
		const uint32_t i = slots[k], text_len = b->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES;

		if (b->lead[i] == text_len)
			continue;
		op[n++] = (struct sl_aead_op){.text = b->fmp[i] + SL_HEADER_BYTES, .key = b->rx[i]->rx_key,
			.counter = b->counter[i], .text_len = text_len, .slot = i, .lead = b->lead[i]};
		b->lead[i] = text_len;
	}
	if (n)
		sl_aead_open_rest(w->aead, w->aead_ctx, op, n);
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

/*
 * An authentic frame before its session's window and measurements, which are the owner worker's: NONE, DROP_REPLAY (a twin in
 * this burst), DROP_INNER_SHORT. ts_ms (read only if there is one), flags: the frame's.
 */
static inline uint8_t
sl_frame_commit(struct sl_worker *w, struct sl_burst *b, uint32_t i, uint32_t ts_ms, uint8_t flags)
{
	struct sl_session *s = b->rx[i];
	const uint64_t counter = b->counter[i];
	uint8_t notify;

	if (unlikely(!sl_replay_commit(&s->replay, counter))) {
		__atomic_store_n(&s->replays, s->replays + 1, __ATOMIC_RELAXED);
		return SL_DROP_REPLAY;
	}
	if (unlikely(b->fmp_len[i] < SL_ESTABLISHED_MIN_BYTES + SL_INNER_BYTES))
		return SL_DROP_INNER_SHORT;
	sl_mmp_rx_frame(&s->mmp, counter, ts_ms, b->fmp_len[i], b->now_us, flags);
	notify = __atomic_load_n(&s->notify, __ATOMIC_RELAXED);
	if (unlikely(notify & SL_NOTIFY_FIRST_FRAME))
		sl_session_event(w, s, SL_NOTIFY_FIRST_FRAME, SL_EVENT_FIRST_FRAME, &b->in[i].from, flags);
	if (unlikely(b->moved[i]) && (notify & SL_NOTIFY_ADDRESS) && counter == s->replay.highest)
		sl_session_event(w, s, SL_NOTIFY_ADDRESS, SL_EVENT_ROAMED, &b->in[i].from, flags);
	return SL_VERDICT_NONE;
}

/* The window and the measurements, in order of arrival within a session. DROP_REPLAY (a twin in this burst), DROP_INNER_SHORT. */
static inline void
sl_stage_commit(struct sl_worker *w, struct sl_burst *b)
{
	uint32_t live = 0;

	SL_BURST_EACH(b, k, i) {
		const uint8_t *fmp = b->fmp[i], v = sl_frame_commit(w, b, i, sl_get32(fmp + SL_HEADER_BYTES), fmp[1]);

		if (likely(v == SL_VERDICT_NONE))
			b->live[live++] = (uint8_t)i;
		else
			b->verdict[i] = v;
	}
	b->live_count = live;
}

#endif
