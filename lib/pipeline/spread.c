/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lanes of spread sessions, the workers' side: sl_spread.h has the states and who may do what in which. The same rules as
 * in transit.c: nothing allocates, locks, calls the system, logs or divides (tests/eal/check_object.py).
 */
#include <rte_cycles.h>
#include "sl_spread.h"
#include "sl_stage_out.h"

static_assert(SL_SPREAD_FRAMES <= SL_BURST_MAX, "a slot fits a burst");
static_assert((SL_SPREAD_SLOTS & (SL_SPREAD_SLOTS - 1)) == 0, "places are masked");

static uint32_t
word_of(const struct sl_spread_slot *t)
{
	return __atomic_load_n(&t->word, __ATOMIC_ACQUIRE);
}

/* From one state to the next, if nobody was faster. */
static bool
word_step(struct sl_spread_slot *t, uint32_t pos, enum sl_slot_state from, enum sl_slot_state to)
{
	uint32_t expected = SL_SLOT_WORD(pos, from);

	return __atomic_compare_exchange_n(&t->word, &expected, SL_SLOT_WORD(pos, to), false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
}

static void
word_set(struct sl_spread_slot *t, uint32_t pos, enum sl_slot_state state)
{
	__atomic_store_n(&t->word, SL_SLOT_WORD(pos, state), __ATOMIC_RELEASE);
}

static struct sl_spread_slot *
slot_at(struct sl_lane *l, uint32_t pos)
{
	return __atomic_load_n(&l->ring[pos % SL_SPREAD_SLOTS], __ATOMIC_RELAXED);
}

/* --- intake: the owner ----------------------------------------------------------------------------------------------- */

/* The slot of the burst in hand that takes frames of a session, NULL when the lane is full. */
static struct sl_spread_slot *
slot_for(struct sl_worker *w, const struct sl_burst *b, const struct sl_session *s)
{
	struct sl_lane *l = w->lane;
	struct sl_spread_slot *t;

	for (uint32_t pos = l->alloc; pos != l->head; pos--) {
		t = l->ring[(pos - 1) % SL_SPREAD_SLOTS];
		if (t->rx_index == s->rx_index) {
			if (t->count < SL_SPREAD_FRAMES)
				return t;
			break;
		}
	}
	if (l->alloc - l->tail == SL_SPREAD_SLOTS || l->free_count == 0)
		return NULL;
	t = l->free[--l->free_count];
	t->rx_index = s->rx_index;
	t->count = 0;
	t->port = b->port;
	t->begin_tsc = b->begin_tsc;
	__atomic_store_n(&l->ring[l->alloc % SL_SPREAD_SLOTS], t, __ATOMIC_RELAXED);
	__atomic_store_n(&l->alloc, l->alloc + 1, __ATOMIC_RELEASE);
	return t;
}

uint8_t
sl_spread_take(struct sl_worker *w, struct sl_burst *b, uint32_t i, struct sl_session *s, uint16_t owner)
{
	struct sl_lane *l = w->lane;
	struct sl_spread_slot *t;
	uint8_t v;

	if (owner & SL_OWNER_ENDING) {
		if (l->alloc == l->tail) {
			/* Nothing of it is under way. Control may have changed its mind: then it goes on as it says. */
			if (__atomic_compare_exchange_n(&s->owner, &owner, owner & SL_OWNER_WORKER, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED)) {
				__atomic_store_n(&l->counters.ended, l->counters.ended + 1, __ATOMIC_RELAXED);
				return SL_VERDICT_NONE;
			}
		} else if (l->hold_end_tsc == 0) {
			l->hold_end_tsc = b->begin_tsc + l->hold_tsc;
		}
	}
	v = sl_frame_admit(b, i, s);
	if (unlikely(v != SL_VERDICT_NONE))
		return v;
	t = slot_for(w, b, s);
	if (unlikely(t == NULL)) {
		__atomic_store_n(&l->counters.full, l->counters.full + 1, __ATOMIC_RELAXED);
		return SL_DROP_SPREAD_FULL;
	}
	t->mbuf[t->count] = b->mbuf[i];
	t->fmp[t->count] = b->fmp[i];
	t->fmp_len[t->count] = b->fmp_len[i];
	t->counter[t->count] = b->counter[i];
	t->moved[t->count] = b->moved[i];
	if (unlikely(b->moved[i]))
		sl_frame_of(b->mbuf[i])->from = b->in[i].from;
	t->count++;
	b->spread++;
	return SL_VERDICT_SPREAD;
}

/* While a good many are under way, slots that are not full wait for more: a lane holds so many slots, however little is in them. */
void
sl_spread_publish(struct sl_worker *w)
{
	struct sl_lane *l = w->lane;
	uint32_t pos = l->head;

	for (; pos != l->alloc; pos++) {
		struct sl_spread_slot *t = l->ring[pos % SL_SPREAD_SLOTS];

		if (t->count < SL_SPREAD_FRAMES && pos - l->tail >= SL_SPREAD_SLOTS / 4)
			break;
		word_set(t, pos, SL_SLOT_QUEUED);
	}
	__atomic_store_n(&l->head, pos, __ATOMIC_RELEASE);
}

bool
sl_spread_holds(const struct sl_worker *w)
{
	const struct sl_lane *l = w->lane;

	return l && l->hold_end_tsc && l->alloc != l->tail && rte_rdtsc() < l->hold_end_tsc;
}

/* --- opening: whoever has it -------------------------------------------------------------------------------------------- */

/* Where datagrams go, and which of them ask for nothing else: they need not be looked at by the owner. */
static void
slot_route(struct sl_worker *w, struct sl_spread_slot *t, const struct sl_session *s, uint64_t now_us)
{
	const struct sl_fib *fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
	const uint8_t *dest[SL_SPREAD_FRAMES];
	struct sl_hop hop[SL_SPREAD_FRAMES];
	uint8_t at[SL_SPREAD_FRAMES];
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		const uint8_t *msg = t->fmp[i] + SL_HEADER_BYTES + 4;

		t->plain[i] = false;
		if (unlikely(t->verdict[i] != SL_VERDICT_NONE))
			continue;
		t->flags[i] = t->fmp[i][1];
		t->ts_ms[i] = sl_get32(t->fmp[i] + SL_HEADER_BYTES);
		if (unlikely(t->fmp_len[i] < SL_ESTABLISHED_MIN_BYTES + 4 + SL_DATAGRAM_HEADER_BYTES || *msg != SL_MSG_DATAGRAM))
			continue;
		dest[n] = msg + SL_DATAGRAM_DEST;
		at[n++] = (uint8_t)i;
	}
	if (unlikely(fib == NULL || n == 0))
		return;
	sl_fib_lookup(fib, w->hop_cache, dest, hop, n, (uint32_t)(now_us / 1000000));
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t i = at[k];
		const uint8_t *msg = t->fmp[i] + SL_HEADER_BYTES + 4;

		if (unlikely(hop[k].kind != SL_HOP_PEER || hop[k].peer_id == s->peer_id || hop[k].peer_id >= w->view->max_peers ||
			msg[SL_DATAGRAM_TTL] <= 1 ||
			sl_payload_may_carry_coords(msg + SL_DATAGRAM_PAYLOAD,
				t->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES - 4 - SL_DATAGRAM_PAYLOAD)))
			continue;
		t->hop[i] = hop[k];
		t->generation[i] = __atomic_load_n(&sl_session_peer(w->view, hop[k].peer_id)->generation, __ATOMIC_RELAXED);
		t->plain[i] = true;
	}
}

static void
slot_open(struct sl_worker *w, struct sl_spread_slot *t)
{
	const struct sl_session *s = sl_session_lookup(w->view, t->rx_index);
	struct sl_aead_op *op = w->in_hand.op;
	uint32_t good;

	for (uint32_t i = 0; i < t->count; i++) {
		rte_prefetch0(t->fmp[i]);
		rte_prefetch0(t->fmp[i] + RTE_CACHE_LINE_SIZE);
	}
	if (unlikely(s == NULL)) {
		memset(t->verdict, SL_DROP_UNKNOWN_INDEX, t->count);
		return;
	}
	for (uint32_t i = 0; i < t->count; i++)
		op[i] = (struct sl_aead_op){.text = t->fmp[i] + SL_HEADER_BYTES, .aad = t->fmp[i], .key = s->rx_key,
			.counter = t->counter[i], .text_len = t->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES, .slot = i};
	good = sl_aead_open_lead(w->aead, w->aead_ctx, op, t->count);
	for (uint32_t k = 0; k < t->count; k++) {
		const uint32_t i = op[k].slot;

		t->lead[i] = op[k].lead;
		t->verdict[i] = likely(k < good) ? SL_VERDICT_NONE : SL_DROP_AUTH;
	}
	slot_route(w, t, s, sl_tsc_to_us(w->us_per_tsc_q64, rte_rdtsc()));
}

/* --- what has an order: the owner ---------------------------------------------------------------------------------------- */

/* The slot's frames as the burst in hand, those without a verdict live. */
static void
slot_to_burst(struct sl_worker *w, const struct sl_spread_slot *t, struct sl_session *s)
{
	struct sl_burst *b = &w->in_hand;
	uint32_t live = 0;

	b->count = t->count;
	b->spread = 0;
	b->port = t->port;
	b->begin_tsc = rte_rdtsc();
	b->now_us = sl_tsc_to_us(w->us_per_tsc_q64, b->begin_tsc);
	b->fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < t->count; i++) {
		b->mbuf[i] = t->mbuf[i];
		b->fmp[i] = t->fmp[i];
		b->fmp_len[i] = t->fmp_len[i];
		b->counter[i] = t->counter[i];
		b->moved[i] = t->moved[i];
		b->lead[i] = t->lead[i];
		b->rx[i] = s;
		b->verdict[i] = t->verdict[i];
		if (unlikely(t->moved[i]))
			b->in[i].from = sl_frame_of(t->mbuf[i])->from;
		if (likely(b->verdict[i] == SL_VERDICT_NONE))
			b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

/* Window and next hop: what is plain keeps the hop that was found when it was opened, the rest goes the usual way. */
static void
burst_commit(struct sl_worker *w, struct sl_burst *b, const struct sl_spread_slot *t)
{
	uint8_t odd[SL_SPREAD_FRAMES];
	uint32_t odd_count = 0, live = 0;

	SL_BURST_EACH(b, k, i) {
		const uint8_t v = sl_frame_commit(w, b, i, t->ts_ms[i], t->flags[i]);

		if (unlikely(v != SL_VERDICT_NONE)) {
			b->verdict[i] = v;
			continue;
		}
		if (likely(t->plain[i] && t->generation[i] ==
				    __atomic_load_n(&sl_session_peer(w->view, t->hop[i].peer_id)->generation, __ATOMIC_RELAXED)))
			b->hop[i] = t->hop[i];
		else
			odd[odd_count++] = (uint8_t)i;
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
	if (likely(odd_count == 0))
		return;
	memcpy(b->live, odd, odd_count);
	b->live_count = odd_count;
	sl_stage_message(w, b);
	sl_stage_next_hop(w, b);
	/* Together again, in their order: who got a verdict has left. */
	live = 0;
	for (uint32_t i = 0; i < b->count; i++)
		if (b->verdict[i] == SL_VERDICT_NONE)
			b->live[live++] = (uint8_t)i;
	b->live_count = live;
}

/* Egress sessions and their counters. */
static void
burst_egress(struct sl_worker *w, struct sl_burst *b, struct sl_spread_slot *t)
{
	uint32_t live = 0;

	sl_burst_groups_begin(b, &w->marks);
	SL_BURST_EACH(b, k, i) {
		const uint8_t v = sl_frame_egress(w, b, i, &t->out[i].mtu);

		if (likely(v == SL_VERDICT_NONE))
			b->live[live++] = (uint8_t)i;
		else
			b->verdict[i] = v;
	}
	b->live_count = live;
	live = 0;
	sl_groups_reserve(w, b);
	SL_BURST_EACH(b, k, i) {
		struct sl_group *g = &b->group[b->group_of[i]];
		struct sl_spread_out *o = &t->out[i];

		if (unlikely(!g->reserved)) {
			b->verdict[i] = SL_DROP_NONCE;
			continue;
		}
		o->counter = g->counter++;
		o->tx_session = g->session->rx_index;
		o->peer_id = b->hop[i].peer_id;
		o->generation = __atomic_load_n(&sl_session_peer(w->view, o->peer_id)->generation, __ATOMIC_RELAXED);
		o->ts_ms = g->ts_ms;
		o->flags = (uint8_t)(g->tx_flags | (b->hop[i].congested ? SL_FLAG_CE : 0) | (t->flags[i] & SL_FLAG_CE));
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

/* READY, or DONE when nothing is left to be sealed. */
static void
slot_order(struct sl_worker *w, struct sl_spread_slot *t, uint32_t pos)
{
	struct sl_session *s = sl_session_lookup(w->view, t->rx_index);
	struct sl_burst *b = &w->in_hand;
	uint64_t failures = 0;

	slot_to_burst(w, t, s);
	if (unlikely(s == NULL)) {
		for (uint32_t k = 0; k < b->live_count; k++)
			b->verdict[b->live[k]] = SL_DROP_UNKNOWN_INDEX;
		b->live_count = 0;
	} else if (unlikely(b->live_count != b->count)) {
		for (uint32_t i = 0; i < b->count; i++)
			failures += b->verdict[i] == SL_DROP_AUTH;
		__atomic_store_n(&s->open_failures, s->open_failures + failures, __ATOMIC_RELAXED);
	}
	burst_commit(w, b, t);
	burst_egress(w, b, t);
	memcpy(t->verdict, b->verdict, t->count);
	memcpy(t->lead, b->lead, t->count * sizeof(*t->lead)); /* some were deciphered further */
	__atomic_store_n(&t->hand_tsc, rte_rdtsc(), __ATOMIC_RELAXED);
	word_set(t, pos, likely(b->live_count) ? SL_SLOT_READY : SL_SLOT_DONE);
}

/* --- sealing: whoever has it --------------------------------------------------------------------------------------------- */

/* What a frame is sealed with, as it is now: a verdict, or NONE and both. */
static uint8_t
out_find(const struct sl_worker *w, const struct sl_spread_out *o, const struct sl_session **tx, const struct sl_path **path)
{
	const struct sl_peer_row *row = sl_session_peer(w->view, o->peer_id);

	*tx = sl_session_lookup(w->view, o->tx_session);
	*path = __atomic_load_n(&row->path, __ATOMIC_ACQUIRE);
	if (unlikely(*tx == NULL || (*tx)->peer_id != o->peer_id ||
		__atomic_load_n(&row->generation, __ATOMIC_RELAXED) != o->generation))
		return SL_DROP_NO_SESSION;
	return likely(*path != NULL) ? SL_VERDICT_NONE : SL_DROP_NO_PATH;
}

static void
slot_seal(struct sl_worker *w, struct sl_spread_slot *t)
{
	const struct sl_session *s = sl_session_lookup(w->view, t->rx_index), *tx;
	const struct sl_path *path[SL_SPREAD_FRAMES];
	struct sl_aead_reop *op = w->in_hand.reop;
	uint32_t n = 0, sealed;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct sl_spread_out *o = &t->out[i];
		uint8_t *fmp = t->fmp[i], v;
		const uint32_t text_len = t->fmp_len[i] - SL_ESTABLISHED_MIN_BYTES;

		if (unlikely(t->verdict[i] != SL_VERDICT_NONE))
			continue;
		v = likely(s != NULL) ? out_find(w, o, &tx, &path[i]) : SL_DROP_UNKNOWN_INDEX;
		if (likely(v == SL_VERDICT_NONE) && unlikely(t->fmp_len[i] > path[i]->mtu))
			v = SL_DROP_TOO_BIG; /* for the path that has come meanwhile */
		if (unlikely(v != SL_VERDICT_NONE)) {
			t->verdict[i] = v;
			continue;
		}
		sl_msg_pass_on(fmp + SL_HEADER_BYTES + 4, o->mtu);
		sl_header_build(fmp, o->flags, (uint16_t)text_len, tx->tx_index, o->counter);
		sl_put32(fmp + SL_HEADER_BYTES, o->ts_ms);
		op[n++] = (struct sl_aead_reop){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .old_key = s->rx_key,
			.new_key = tx->tx_key, .old_counter = t->counter[i], .new_counter = o->counter, .text_len = text_len,
			.lead = t->lead[i], .slot = i};
	}
	if (unlikely(n == 0))
		return;
	sealed = sl_aead_reseal(w->aead, w->aead_ctx, op, n);
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t i = op[k].slot;

		if (unlikely(k >= sealed)) {
			t->verdict[i] = SL_DROP_SEAL;
			continue;
		}
		sl_path_write(path[i], t->fmp[i] - path[i]->hdr_len, t->fmp_len[i], sl_get16(t->fmp[i] + 8));
		t->out_len[i] = path[i]->hdr_len;
		t->out_port[i] = (uint8_t)path[i]->port;
		t->verdict[i] = SL_FORWARD;
	}
}

/* --- leaving: the owner ---------------------------------------------------------------------------------------------------- */

/* Out by finish, like any burst. */
static void
slot_leave(struct sl_worker *w, struct sl_spread_slot *t)
{
	struct sl_burst *b = &w->in_hand;
	uint32_t live = 0;

	b->count = t->count;
	b->spread = 0;
	b->port = 0; /* not SL_PORT_NONE: what came from other workers was counted on intake, and so were bytes */
	b->rx_bytes = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		b->mbuf[i] = t->mbuf[i];
		b->verdict[i] = t->verdict[i];
		if (unlikely(t->verdict[i] != SL_FORWARD))
			continue;
		sl_mbuf_frame(t->mbuf[i], t->fmp[i] - t->out_len[i], t->out_len[i] + t->fmp_len[i]);
		b->live[live++] = (uint8_t)i;
		b->out_port[i] = t->out_port[i];
	}
	b->live_count = live;
	sl_stage_finish(w, b);
}

static void
slot_free(struct sl_lane *l, struct sl_spread_slot *t)
{
	__atomic_store_n(&t->word, SL_SLOT_FREE, __ATOMIC_RELAXED);
	l->free[l->free_count++] = t;
}

/* How long it has been in hand, or waits. Another CPU's clock may be a little ahead of ours. */
static uint64_t
slot_age(const struct sl_spread_slot *t)
{
	const int64_t age = (int64_t)(rte_rdtsc() - __atomic_load_n(&t->hand_tsc, __ATOMIC_RELAXED));

	return age > 0 ? (uint64_t)age : 0;
}

/* Has somebody had it in hand for too long? It is then nobody's turn any more; who has it frees the frames. */
static bool
slot_give_up(struct sl_worker *w, struct sl_spread_slot *t, uint32_t pos)
{
	const uint32_t word = word_of(t);
	struct sl_lane *l = w->lane;
	struct sl_burst *b = &w->in_hand;

	if (likely((word != SL_SLOT_WORD(pos, SL_SLOT_OPENING) && word != SL_SLOT_WORD(pos, SL_SLOT_SEALING)) ||
		slot_age(t) < l->stuck_tsc))
		return false;
	if (!word_step(t, pos, (enum sl_slot_state)(word & 7), SL_SLOT_ABANDONED))
		return false;
	__atomic_store_n(&l->ring[pos % SL_SPREAD_SLOTS], NULL, __ATOMIC_RELAXED);
	l->lost[l->lost_count++] = t;
	__atomic_store_n(&l->counters.stuck, l->counters.stuck + 1, __ATOMIC_RELAXED);
	b->count = t->count;
	b->spread = 0;
	sl_finish_count(w, SL_DROP_SPREAD_STUCK, t->count);
	sl_finish_publish(w, b);
	return true;
}

/* Slots that were given up and have come back since. */
static void
lost_collect(struct sl_lane *l)
{
	for (uint32_t k = 0; k < l->lost_count;) {
		struct sl_spread_slot *t = l->lost[k];

		if (word_of(t) != SL_SLOT_FREE) {
			k++;
			continue;
		}
		l->lost[k] = l->lost[--l->lost_count];
		l->free[l->free_count++] = t;
	}
}

static void
lane_count(struct sl_worker *w, struct sl_lane *l, const struct sl_spread_slot *t)
{
	struct sl_spread_counters *c = &l->counters;

#define ADD(field, n) __atomic_store_n(&c->field, c->field + (n), __ATOMIC_RELAXED)
	ADD(frames, t->count);
	ADD(slots, 1);
	ADD(own_slots, t->worker == w->id);
	ADD(wait_tsc, rte_rdtsc() - t->begin_tsc);
#undef ADD
}

/* All that is in turn now. Returns frames. */
static unsigned
lane_restore(struct sl_worker *w)
{
	struct sl_lane *l = w->lane;
	const uint64_t begin = w->measure_cycles ? rte_rdtsc() : 0, transmit = w->transmit_tsc;
	unsigned frames = 0;

	for (; l->order != l->head; l->order++) {
		struct sl_spread_slot *t = slot_at(l, l->order);

		if (word_of(t) == SL_SLOT_WORD(l->order, SL_SLOT_OPENED)) {
			slot_order(w, t, l->order);
			frames += t->count;
		} else if (!slot_give_up(w, t, l->order)) {
			break;
		}
	}
	for (; l->tail != l->order; __atomic_store_n(&l->tail, l->tail + 1, __ATOMIC_RELEASE)) {
		struct sl_spread_slot *t = slot_at(l, l->tail);

		if (t == NULL)
			continue;
		if (word_of(t) == SL_SLOT_WORD(l->tail, SL_SLOT_DONE)) {
			slot_leave(w, t);
			lane_count(w, l, t);
			frames += t->count;
			slot_free(l, t);
		} else if (!slot_give_up(w, t, l->tail)) {
			break;
		}
	}
	if (unlikely(l->lost_count))
		lost_collect(l);
	if (l->head != l->alloc)
		sl_spread_publish(w);
	if (unlikely(l->hold_end_tsc) && l->alloc == l->tail)
		l->hold_end_tsc = 0;
	if (w->measure_cycles && frames)
		__atomic_store_n(&l->counters.order_tsc,
			l->counters.order_tsc + rte_rdtsc() - begin - (w->transmit_tsc - transmit), __ATOMIC_RELAXED);
	return frames;
}

/* --- work on lanes: any worker ------------------------------------------------------------------------------------------------ */

/*
 * Ours from here on, unless somebody was faster. The time is set first: who sees the state sees it too. (Who then comes too late
 * has made the other's time a little younger, which harms nobody.)
 */
static bool
slot_grab(struct sl_worker *w, struct sl_spread_slot *t, uint32_t pos, enum sl_slot_state from, enum sl_slot_state to)
{
	__atomic_store_n(&t->hand_tsc, rte_rdtsc(), __ATOMIC_RELAXED);
	if (!word_step(t, pos, from, to))
		return false;
	t->worker = w->id;
	return true;
}

/* Done with it. If the owner has given it up meanwhile its frames end here, and false is returned. */
static bool
slot_hand_back(struct sl_spread_slot *t, uint32_t pos, enum sl_slot_state from, enum sl_slot_state to)
{
	if (likely(word_step(t, pos, from, to)))
		return true;
	rte_pktmbuf_free_bulk(t->mbuf, t->count);
	__atomic_store_n(&t->word, SL_SLOT_FREE, __ATOMIC_RELEASE);
	return false;
}

/* A slot to open; NULL when there is none. */
static struct sl_spread_slot *
lane_claim(struct sl_worker *w, struct sl_lane *l, uint32_t *pos)
{
	for (;;) {
		uint32_t at = __atomic_load_n(&l->claim, __ATOMIC_RELAXED);
		struct sl_spread_slot *t;
		bool ours;

		if (at == __atomic_load_n(&l->head, __ATOMIC_ACQUIRE))
			return NULL;
		t = slot_at(l, at);
		*pos = at;
		ours = t && slot_grab(w, t, at, SL_SLOT_QUEUED, SL_SLOT_OPENING);
		/* Ours or taken before, the hint goes on; who finds that it did has been overtaken. */
		__atomic_compare_exchange_n(&l->claim, &at, at + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		if (ours)
			return t;
	}
}

static uint32_t
lane_unclaimed(const struct sl_lane *l)
{
	return __atomic_load_n(&l->head, __ATOMIC_RELAXED) - __atomic_load_n(&l->claim, __ATOMIC_RELAXED);
}

static unsigned
lane_open_one(struct sl_worker *w, struct sl_lane *l)
{
	struct sl_spread_slot *t;
	uint32_t pos, frames;

	if (w->held_count == SL_SPREAD_HELD)
		return 0;
	t = lane_claim(w, l, &pos);
	if (t == NULL)
		return 0;
	slot_open(w, t);
	frames = t->count;
	if (slot_hand_back(t, pos, SL_SLOT_OPENING, SL_SLOT_OPENED))
		w->held[w->held_count++] = (struct sl_spread_held){.slot = t, .pos = pos};
	return frames;
}

static unsigned
slot_seal_one(struct sl_worker *w, struct sl_spread_slot *t, uint32_t pos)
{
	uint32_t frames;

	if (!slot_grab(w, t, pos, SL_SLOT_READY, SL_SLOT_SEALING))
		return 0;
	slot_seal(w, t);
	frames = t->count;
	(void)slot_hand_back(t, pos, SL_SLOT_SEALING, SL_SLOT_DONE);
	return frames;
}

/* What we opened and what the owner has decided on since. */
static unsigned
held_seal(struct sl_worker *w)
{
	unsigned frames = 0, kept = 0;

	for (unsigned k = 0; k < w->held_count; k++) {
		const struct sl_spread_held h = w->held[k];
		const uint32_t word = word_of(h.slot);

		if (word == SL_SLOT_WORD(h.pos, SL_SLOT_OPENED))
			w->held[kept++] = h;
		else if (word == SL_SLOT_WORD(h.pos, SL_SLOT_READY))
			frames += slot_seal_one(w, h.slot, h.pos);
	}
	w->held_count = (uint16_t)kept;
	return frames;
}

/* The owner's own share of the work, so that its lane goes on with or without others. */
static unsigned
lane_own_work(struct sl_worker *w, bool idle)
{
	struct sl_lane *l = w->lane;
	unsigned frames = 0, n = 1;

	for (unsigned units = 0; units < SL_SPREAD_SLOTS && n; units++) {
		/* One is left to who comes first, unless nobody comes. */
		n = lane_unclaimed(l) > (idle ? 0 : 1) ? lane_open_one(w, l) : 0;
		n += lane_restore(w);
		n += held_seal(w);
		frames += n;
	}
	if (l->tail != l->order) {
		struct sl_spread_slot *t = slot_at(l, l->tail);

		/* Decided, and who opened it does not come for it. */
		if (t && word_of(t) == SL_SLOT_WORD(l->tail, SL_SLOT_READY) &&
			(idle || slot_age(t) > l->late_tsc))
			frames += slot_seal_one(w, t, l->tail);
	}
	return frames + lane_restore(w);
}

unsigned
sl_spread_turn(struct sl_worker *w, uint32_t lanes, unsigned frames)
{
	const uint64_t begin = w->measure_cycles ? rte_rdtsc() : 0;
	const bool own = lanes >> w->id & 1;
	unsigned done = 0;

	w->transmit_tsc = 0;
	if (own)
		done += lane_restore(w);
	done += held_seal(w);
	for (uint32_t others = lanes & ~(1u << w->id); others; others &= others - 1) {
		/* Who has its hands full leaves it to those who have not. */
		if (frames < w->burst_max)
			done += lane_open_one(w, w->lane_of[__builtin_ctz(others)]);
	}
	if (own)
		done += lane_own_work(w, frames == 0);
	if (w->measure_cycles && done) {
		SL_COUNT(w, transit_tsc, rte_rdtsc() - begin - w->transmit_tsc);
		SL_COUNT(w, driver_tsc, w->transmit_tsc);
	}
	return done;
}
