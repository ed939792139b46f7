/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer records: made, brought up, taken down, given back. */
#include "link_internal.h"

#include <errno.h>

struct peer *
sl_peer_find(const struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct sl_node_addr addr;
	struct map_node *n;

	sl_node_addr_from_xonly(&addr, xonly);
	for (n = sl_map_first(&l->peers, sl_links_hash_addr16(l, &addr)); n; n = sl_map_next(n)) {
		struct peer *p = (struct peer *)n; /* first member */

		if (memcmp(p->key.xonly, xonly, SL_XONLY_BYTES) == 0)
			return p;
	}
	return NULL;
}

struct peer *
sl_peer_create(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us)
{
	struct peer *p;

	if (sl_due_reserve(&l->due, l->peer_count + 1) < 0)
		goto no_memory;
	p = sl_pool_get(&l->peer_pool);
	if (!p)
		goto no_memory;
	if (sl_remote_key_init(&p->key, xonly, NULL) < 0) {
		sl_pool_put(&l->peer_pool, p);
		errno = EINVAL;
		return NULL;
	}
	p->id = SL_PEER_NONE;
	p->owner = (uint16_t)(l->next_owner++ % l->view->workers);
	p->due.pos = SL_DUE_NONE;
	p->dial_queued = -1;
	p->early_limit = p->early_credit = SL_EARLY_COPIES;
	sl_mmp_metrics_init(&p->metrics);
	/* A peer's own share of the established budget: a set-up and its repetitions, twice over.
	 */
	sl_bucket_init(&p->msg1_bucket, 2.0 * (1 + l->config.max_resends), 1.0, now_us);
	sl_map_add(&l->peers, &p->by_addr, sl_links_hash_addr16(l, &p->key.addr));
	p->next_all = l->all;
	if (l->all)
		l->all->prev_all = p;
	l->all = p;
	l->peer_count++;
	return p;
no_memory:
	count(l, SL_LINK_NO_MEMORY);
	errno = ENOMEM;
	return NULL;
}

void
sl_peer_need_dh(struct sl_links *l, struct peer *p)
{
	if (!p->key.has_dh_static)
		l->work_us -= SL_COST_DH_US;
	sl_remote_key_dh(&p->key, l->identity);
}

/* --- rows of the peer table --- */

int
sl_peer_row_acquire(struct sl_links *l, struct peer *p)
{
	struct sl_peer_row *row;

	if (p->id != SL_PEER_NONE)
		return 0;
	if (!l->free_count && !sl_pending_evict(l, p))
		return -ENOSPC;
	p->id = l->free_ids[l->free_head];
	l->free_head = (l->free_head + 1) % l->view->max_peers;
	l->free_count--;
	l->peer_of_id[p->id] = p;
	row = sl_session_peer(l->view, p->id);
	__atomic_store_n(&row->generation, row->generation + 1, __ATOMIC_RELEASE);
	return 0;
}

static void
row_release(struct sl_links *l, struct peer *p)
{
	l->peer_of_id[p->id] = NULL;
	l->free_ids[(l->free_head + l->free_count) % l->view->max_peers] = p->id;
	l->free_count++;
	p->id = SL_PEER_NONE;
}

/* --- sessions --- */

struct slot *
sl_peer_slot_of(struct peer *p, const struct sl_session *s)
{
	if (p->current.s == s)
		return &p->current;
	if (p->previous.s == s)
		return &p->previous;
	for (unsigned i = 0; i < SL_CANDIDATES; i++)
		if (p->candidates[i].s == s)
			return &p->candidates[i];
	return NULL;
}

void
sl_slot_retire(struct sl_links *l, struct peer *p, struct slot *slot)
{
	struct sl_session *s = slot->s;

	if (!s)
		return;
	p->gone.rx_frames += __atomic_load_n(&s->mmp.frames, __ATOMIC_RELAXED);
	p->gone.rx_bytes += __atomic_load_n(&s->mmp.bytes, __ATOMIC_RELAXED);
	p->gone.tx_frames += sl_nonce_used(&s->tx_counter);
	p->gone.tx_bytes += __atomic_load_n(&s->tx_bytes, __ATOMIC_RELAXED);
	p->gone.replays += __atomic_load_n(&s->replays, __ATOMIC_RELAXED);
	p->gone.open_failures += __atomic_load_n(&s->open_failures, __ATOMIC_RELAXED);
	sl_session_retire(l->table, s);
	memset(slot, 0, sizeof(*slot));
}

uint64_t
sl_peer_last_rx_us(const struct peer *p)
{
	uint64_t last = 0, t;

	if (p->current.s &&
		(t = __atomic_load_n(&p->current.s->mmp.last_rx_us, __ATOMIC_RELAXED)) > last)
		last = t;
	if (p->previous.s &&
		(t = __atomic_load_n(&p->previous.s->mmp.last_rx_us, __ATOMIC_RELAXED)) > last)
		last = t;
	return last;
}

/* --- up and down --- */

uint16_t
sl_peer_mtu_at(const struct sl_links *l, const struct sl_addr *addr)
{
	uint16_t mtu = l->transports[addr->transport].mtu, less;

	if (l->sink.link_mtu && (less = l->sink.link_mtu(l->sink.arg, addr)) < mtu)
		mtu = less;
	return mtu;
}

void
sl_links_mtu_set(struct sl_links *l, uint32_t peer_id, uint16_t mtu)
{
	struct peer *p = peer_id < l->view->max_peers ? l->peer_of_id[peer_id] : NULL;

	if (p && p->up)
		p->link_mtu = mtu;
}

bool
sl_peer_allowed(const struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES])
{
	return !l->sink.allowed || l->sink.allowed(l->sink.arg, xonly);
}

void
sl_peer_address_set(struct sl_links *l, struct peer *p, const struct sl_addr *addr)
{
	uint64_t hash = sl_addr_hash(addr);
	struct slot *slots[] = {&p->current, &p->previous, &p->candidates[0], &p->candidates[1],
		&p->candidates[2], &p->candidates[3]};

	if (!p->where.filed || !sl_addr_equal(&p->where.addr, addr)) {
		sl_addr_ref_file(l, &p->where, p, addr);
		sl_home_note(l, addr, l->now_us);
		if (l->sink.path)
			l->sink.path(l->sink.arg, p->id, addr);
	}
	for (unsigned i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		if (!slots[i]->s)
			continue;
		__atomic_store_n(&slots[i]->s->rx_addr_hash, hash, __ATOMIC_RELAXED);
		/* Only the session that the peer sends on now says where it is. */
		if (i == 0)
			__atomic_fetch_or(
				&slots[i]->s->notify, SL_NOTIFY_ADDRESS, __ATOMIC_RELAXED);
	}
}

void
sl_peer_publish(struct sl_links *l, struct peer *p, bool announce)
{
	struct sl_peer_row *row = sl_session_peer(l->view, p->id);

	__atomic_store_n(&row->tx, p->current.s, __ATOMIC_RELEASE);
	if (announce && l->sink.peer_up)
		l->sink.peer_up(l->sink.arg, p->id, &p->key, p->link_mtu);
}

void
sl_peer_down(struct sl_links *l, struct peer *p, enum sl_down_reason reason, uint64_t now_us)
{
	struct sl_peer_row *row;

	if (!p->up)
		return;
	row = sl_session_peer(l->view, p->id);
	__atomic_store_n(&row->tx, NULL, __ATOMIC_RELEASE);
	p->up = false;
	l->up_count--;
	sl_established_size(l, now_us);
	sl_link_log_down(p, reason);
	if (l->sink.peer_down)
		l->sink.peer_down(l->sink.arg, p->id, reason);
	if (reason != SL_DOWN_RESTART) {
		struct attempt *rekey = sl_attempt_rekey(p);

		if (rekey)
			sl_attempt_end(l, rekey);
	}
	sl_slot_retire(l, p, &p->previous);
	sl_slot_retire(l, p, &p->current);
	sl_addr_ref_remove(l, &p->where);
	memset(&p->gone, 0, sizeof(p->gone));
	sl_waiting_drop(l, p);
	p->doubt_us = p->rerouted_us = 0;
	p->rekey_at_us = 0;
	p->lost_us = reason == SL_DOWN_DEAD || reason == SL_DOWN_REMOVED ? now_us : 0;
	sl_mmp_metrics_init(&p->metrics);
	memset(&p->excused, 0, sizeof(p->excused));
}

/* --- the end of every entry point --- */

static bool
has_candidate(const struct peer *p)
{
	for (unsigned i = 0; i < SL_CANDIDATES; i++)
		if (p->candidates[i].s)
			return true;
	return false;
}

/* Keeps the list of inbound handshakes that have no link yet. */
void
sl_peer_pending_update(struct sl_links *l, struct peer *p)
{
	bool pending = !p->up && has_candidate(p);

	if (pending == p->is_pending)
		return;
	if (pending) {
		p->next_pending = NULL;
		p->prev_pending = l->pending_last;
		if (l->pending_last)
			l->pending_last->next_pending = p;
		else
			l->pending_first = p;
		l->pending_last = p;
		l->pending_count++;
	} else {
		if (p->prev_pending)
			p->prev_pending->next_pending = p->next_pending;
		else
			l->pending_first = p->next_pending;
		if (p->next_pending)
			p->next_pending->prev_pending = p->prev_pending;
		else
			l->pending_last = p->prev_pending;
		p->prev_pending = p->next_pending = NULL;
		l->pending_count--;
	}
	p->is_pending = pending;
}

bool
sl_pending_evict(struct sl_links *l, const struct peer *p)
{
	struct peer *old = l->pending_first;
	bool dialled;

	if (!old || old == p)
		return false;
	dialled = sl_handing_over(old);
	count(l, SL_LINK_PENDING_EVICTED);
	sl_candidates_drop(l, old);
	if (dialled)
		sl_peer_dial_failed(l, old, "no room for its session", l->now_us);
	sl_peer_settle(l, old);
	return true;
}

static void
peer_free(struct sl_links *l, struct peer *p)
{
	sl_due_remove(&l->due, &p->due);
	sl_addr_ref_remove(l, &p->where);
	sl_map_remove(&l->peers, &p->by_addr);
	if (p->prev_all)
		p->prev_all->next_all = p->next_all;
	else
		l->all = p->next_all;
	if (p->next_all)
		p->next_all->prev_all = p->prev_all;
	l->peer_count--;
	sl_pool_put(&l->peer_pool, p); /* wipes */
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void
sl_peer_settle(struct sl_links *l, struct peer *p)
{
	uint64_t due = UINT64_MAX;

	sl_peer_pending_update(l, p);
	if (!p->up && !p->is_pending && !p->attempts && p->waiting.count)
		sl_waiting_drop(l, p);
	if (!p->up && !p->is_pending && p->id != SL_PEER_NONE)
		row_release(l, p);
	if (!p->up && !p->is_pending && !p->attempts && !p->configured) {
		p->dial_us = 0;
		sl_dial_queue_update(l, p);
		peer_free(l, p);
		return;
	}
	if (p->up)
		due = p->beat_us;
	due = least(due, sl_sessions_due(l, p));
	due = least(due, sl_attempts_due(l, p));
	sl_dial_queue_update(l, p);
	if (p->dial_us && !p->up && p->dial_queued < 0)
		due = least(due, p->dial_us);
	sl_due_file(&l->due, &p->due, due);
}
