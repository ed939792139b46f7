/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <rte_malloc.h>
#include "sl_spread.h"
#include "sl_stage_out.h"

static_assert((SL_SPREAD_SLOTS & (SL_SPREAD_SLOTS - 1)) == 0, "serials wrap");
static_assert(SL_SPREAD_SLOTS * SL_BURST_MAX < SL_REPLAY_WINDOW, "counters of bursts in hand stay within a window");

struct sl_spread *
sl_spread_create(enum sl_spread_mode mode, int socket)
{
	struct sl_spread *s = rte_zmalloc_socket("sl_spread", sizeof(*s), SL_CACHE_LINE, socket);

	if (s == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	s->mode = mode;
	return s;
}

void
sl_spread_destroy(struct sl_spread *s)
{
	if (s == NULL)
		return;
	for (; s->head != s->tail; s->head++) {
		struct sl_burst *b = &s->slot[s->head % SL_SPREAD_SLOTS].burst;

		rte_pktmbuf_free_bulk(b->mbuf, b->count);
	}
	rte_free(s);
}

/* --- when ------------------------------------------------------------------------------------------------------------- */

static bool
somebody_has_time(const struct sl_worker *w)
{
	for (uint32_t i = 0; i < w->workers; i++)
		if (w->others[i] && w->others[i] != w && __atomic_load_n(&w->others[i]->has_time, __ATOMIC_RELAXED))
			return true;
	return false;
}

bool
sl_spread_wanted(struct sl_worker *w)
{
	struct sl_spread *s = w->spread;

	if (s->on || s->head != s->tail)
		return true;
	if (s->mode != SL_SPREAD_ON) {
		if (likely(s->full_polls < SL_SPREAD_FULL_POLLS))
			return false;
		s->full_polls = 0;
		if (!somebody_has_time(w))
			return false;
	}
	if (s->sulk_until_us && sl_tsc_to_us(w->us_per_tsc_q64, rte_rdtsc()) < s->sulk_until_us)
		return false;
	s->sulk_until_us = 0;
	s->slack_polls = 0;
	__atomic_store_n(&s->on, true, __ATOMIC_RELAXED);
	SL_COUNT(w, spread_begun, 1);
	return true;
}

/* --- R: receiving ------------------------------------------------------------------------------------------------------ */

struct sl_burst *
sl_spread_begin(struct sl_worker *w)
{
	struct sl_spread *s = w->spread;
	struct sl_spread_slot *slot = &s->slot[s->tail % SL_SPREAD_SLOTS];

	if (s->tail - s->head == SL_SPREAD_SLOTS || __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SL_SLOT_FREE)
		return NULL;
	return &slot->burst;
}

void
sl_spread_publish(struct sl_worker *w)
{
	struct sl_spread *s = w->spread;
	struct sl_spread_slot *slot = &s->slot[s->tail % SL_SPREAD_SLOTS];
	struct sl_burst *b = &slot->burst;
	uint32_t n = 0;

	b->begin_tsc = rte_rdtsc();
	b->now_us = sl_tsc_to_us(w->us_per_tsc_q64, b->begin_tsc);
	if (b->port != SL_PORT_NONE)
		sl_stage_classify(w, b);
	else
		sl_stage_resume(b);
	sl_stage_session(w, b);
	sl_stage_admit(w, b);
	SL_BURST_EACH(b, k, i) {
		slot->frame[n++] = (struct sl_spread_frame){.mbuf = b->mbuf[i], .fmp = b->fmp[i], .counter = b->counter[i],
			.rx_index = sl_get32(b->fmp[i] + 4), .fmp_len = b->fmp_len[i], .place = (uint8_t)i};
	}
	slot->count = n;
	slot->now_us = b->now_us;
	__atomic_store_n(&slot->state, SL_SLOT_READY, __ATOMIC_RELAXED);
	s->tail++;
	__atomic_store_n(&s->published, s->tail, __ATOMIC_RELEASE);
}

/* --- anybody: the work -------------------------------------------------------------------------------------------------- */

/* R has counted these frames and does not want them any more. */
static void
let_go(struct sl_spread_slot *slot)
{
	for (uint32_t k = 0; k < slot->count; k++)
		rte_pktmbuf_free(slot->frame[k].mbuf);
	__atomic_store_n(&slot->state, SL_SLOT_FREE, __ATOMIC_RELEASE);
}

static struct sl_spread_slot *
claim(struct sl_spread *s)
{
	uint32_t at = __atomic_load_n(&s->claimed, __ATOMIC_RELAXED);
	uint32_t ready = SL_SLOT_READY;
	struct sl_spread_slot *slot;

	do {
		if (at == __atomic_load_n(&s->published, __ATOMIC_ACQUIRE))
			return NULL;
	} while (!__atomic_compare_exchange_n(&s->claimed, &at, at + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	slot = &s->slot[at % SL_SPREAD_SLOTS];
	if (likely(__atomic_compare_exchange_n(&slot->state, &ready, SL_SLOT_TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)))
		return slot;
	let_go(slot); /* given up between the two */
	return NULL;
}

/* From the slot into our own burst; the sessions looked up anew. DROP_UNKNOWN_INDEX: one that went meanwhile. */
static void
unpack(struct sl_worker *w, struct sl_burst *b, const struct sl_spread_slot *slot)
{
	const struct sl_session_view *v = w->view;
	uint32_t live = 0;

	b->count = slot->count;
	b->port = SL_PORT_NONE;
	b->now_us = slot->now_us;
	b->fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
	for (uint32_t k = 0; k < slot->count; k++)
		rte_prefetch0(slot->frame[k].fmp);
	for (uint32_t k = 0; k < slot->count; k++) {
		const struct sl_spread_frame *f = &slot->frame[k];
		struct sl_session *s = __atomic_load_n(&v->slots[f->rx_index & v->slot_mask], __ATOMIC_ACQUIRE);

		b->mbuf[k] = f->mbuf;
		b->fmp[k] = f->fmp;
		b->fmp_len[k] = f->fmp_len;
		b->counter[k] = f->counter;
		b->rx[k] = s;
		if (unlikely(s == NULL || s->rx_index != f->rx_index)) {
			b->verdict[k] = SL_DROP_UNKNOWN_INDEX;
			continue;
		}
		b->verdict[k] = SL_VERDICT_NONE;
		b->op[live] = (struct sl_aead_op){.text = f->fmp + SL_HEADER_BYTES, .aad = f->fmp, .key = s->rx_key,
			.counter = f->counter, .text_len = f->fmp_len - SL_ESTABLISHED_MIN_BYTES, .slot = k};
		b->live[live++] = (uint8_t)k;
	}
	b->live_count = live;
}

/* Timestamp and flags, which are overwritten further on; DROP_INNER_SHORT. */
static void
note_inner(struct sl_burst *b, struct sl_spread_slot *slot)
{
	uint32_t live = 0;

	SL_BURST_EACH(b, k, i) {
		if (unlikely(sl_burst_inner_short(b, i))) {
			b->verdict[i] = SL_DROP_INNER_SHORT;
			continue;
		}
		slot->frame[i].ts_ms = sl_get32(b->fmp[i] + SL_HEADER_BYTES);
		slot->frame[i].flags = b->fmp[i][1];
		b->live[live++] = (uint8_t)i;
	}
	b->live_count = live;
}

static unsigned
work(struct sl_worker *w, struct sl_spread_slot *slot)
{
	struct sl_burst *b = &w->in_hand;
	const uint32_t count = slot->count;
	uint32_t taken = SL_SLOT_TAKEN;

	unpack(w, b, slot);
	sl_stage_open(w, b);
	note_inner(b, slot);
	sl_stage_message(w, b);
	sl_stage_next_hop(w, b);
	sl_stage_egress(w, b);
	sl_stage_reserve(w, b);
	sl_stage_reseal(w, b);
	sl_stage_wrap(b);
	for (uint32_t k = 0; k < count; k++) {
		slot->frame[k].verdict = b->verdict[k];
		slot->frame[k].out = b->out[k];
	}
	slot->order_count = b->live_count;
	memcpy(slot->order, b->live, b->live_count);
	if (unlikely(!__atomic_compare_exchange_n(&slot->state, &taken, SL_SLOT_DONE, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)))
		let_go(slot);
	return count;
}

unsigned
sl_spread_help(struct sl_worker *w)
{
	for (uint32_t i = 1; i < w->workers; i++) {
		struct sl_worker *other = w->others[(w->id + i) % w->workers];
		struct sl_spread_slot *slot;
		unsigned n;

		if (other == NULL || other->spread == NULL ||
			__atomic_load_n(&other->spread->published, __ATOMIC_RELAXED) ==
				__atomic_load_n(&other->spread->claimed, __ATOMIC_RELAXED))
			continue;
		slot = claim(other->spread);
		if (slot == NULL)
			continue;
		n = work(w, slot);
		SL_COUNT(w, helped, n);
		return n;
	}
	return 0;
}

/* --- R: what is back ------------------------------------------------------------------------------------------------- */

/*
 * Window, measurements and events of frame f, which the tag has vouched for, in the order of arrival. Its verdict, unless it
 * is a copy of one that came first, or its session has gone.
 */
static uint8_t
commit(struct sl_worker *w, const struct sl_burst *b, const struct sl_spread_frame *f)
{
	const struct sl_session_view *v = w->view;
	struct sl_session *s = __atomic_load_n(&v->slots[f->rx_index & v->slot_mask], __ATOMIC_ACQUIRE);

	if (unlikely(s == NULL || s->rx_index != f->rx_index))
		return SL_DROP_UNKNOWN_INDEX;
	if (unlikely(!sl_commit_window(s, f->counter)))
		return SL_DROP_REPLAY;
	if (likely(f->verdict != SL_DROP_INNER_SHORT))
		sl_commit_measure(w, s, b, f->place, f->ts_ms, f->flags);
	return f->verdict;
}

static void
retire(struct sl_worker *w, struct sl_spread_slot *slot)
{
	struct sl_burst *b = &slot->burst;
	uint32_t live = 0;

	for (uint32_t k = 0; k < slot->count; k++) {
		struct sl_spread_frame *f = &slot->frame[k];
		const uint32_t i = f->place;

		if (likely(f->verdict != SL_DROP_AUTH && f->verdict != SL_DROP_UNKNOWN_INDEX))
			f->verdict = commit(w, b, f);
		b->verdict[i] = f->verdict;
		b->out[i] = f->out;
		if (unlikely(f->verdict == SL_PUNT)) {
			/* The helper's note, but for what only we know. */
			struct sl_frame *note = sl_frame_of(b->mbuf[i]);

			note->from = b->in[i].from;
			note->port = b->port;
			note->checksum_due = b->in[i].checksum_due;
		}
	}
	for (uint32_t k = 0; k < slot->order_count; k++) {
		const struct sl_spread_frame *f = &slot->frame[slot->order[k]];

		if (likely(f->verdict == SL_FORWARD))
			b->live[live++] = f->place;
	}
	b->live_count = live;
	sl_stage_finish(w, b);
	__atomic_store_n(&slot->state, SL_SLOT_FREE, __ATOMIC_RELAXED);
}

/* The helper has stood still for too long: its frames are counted here and left to it; the rest of the burst goes its way. */
static bool
give_up(struct sl_worker *w, struct sl_spread_slot *slot, uint32_t state, uint64_t now_us)
{
	struct sl_burst *b = &slot->burst;

	if (!__atomic_compare_exchange_n(&slot->state, &state, SL_SLOT_GIVEN_UP, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	for (uint32_t k = 0; k < slot->count; k++)
		b->verdict[slot->frame[k].place] = SL_VERDICT_ELSEWHERE;
	sl_finish_count(w, SL_DROP_STALLED, slot->count);
	b->live_count = 0;
	sl_stage_finish(w, b);
	__atomic_store_n(&w->spread->on, false, __ATOMIC_RELAXED);
	w->spread->sulk_until_us = now_us + SL_SPREAD_SULK_US;
	return true;
}

/* Those at the head that are back, and no other. */
static unsigned
retire_all(struct sl_worker *w)
{
	struct sl_spread *s = w->spread;
	unsigned frames = 0;

	while (s->head != s->tail) {
		struct sl_spread_slot *slot = &s->slot[s->head % SL_SPREAD_SLOTS];
		const uint32_t count = slot->burst.count, state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);

		if (state == SL_SLOT_DONE) {
			retire(w, slot);
		} else {
			const uint64_t now_us = sl_tsc_to_us(w->us_per_tsc_q64, rte_rdtsc());

			/* What nobody has claimed is late because of us. */
			if (s->head == __atomic_load_n(&s->claimed, __ATOMIC_RELAXED) ||
				now_us < slot->now_us + SL_SPREAD_GIVE_UP_US || !give_up(w, slot, state, now_us))
				break;
		}
		s->head++;
		frames += count;
	}
	return frames;
}

unsigned
sl_spread_turn(struct sl_worker *w, unsigned rx)
{
	struct sl_spread *s = w->spread;
	struct sl_spread_slot *slot;
	unsigned frames = retire_all(w);
	/* One burst waits for whoever has time; more than that, or nothing else to do, is ours. */
	const uint32_t waiting = s->tail - __atomic_load_n(&s->claimed, __ATOMIC_RELAXED);

	if (waiting > (rx && s->on ? 1u : 0u) && (slot = claim(s)) != NULL) {
		work(w, slot);
		frames += retire_all(w);
	}
	s->slack_polls = rx >= w->burst_max / 2 ? 0 : s->slack_polls + 1;
	if (s->slack_polls > SL_SPREAD_SLACK_POLLS && s->mode != SL_SPREAD_ON)
		__atomic_store_n(&s->on, false, __ATOMIC_RELAXED);
	return frames;
}

void
sl_spread_drain(struct sl_worker *w)
{
	while (w->spread && w->spread->head != w->spread->tail) {
		sl_spread_turn(w, 0);
		rte_pause();
	}
}
