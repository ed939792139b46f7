/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of a peer's sessions is current, and when it is time for a new one. Link layer facts,
 * sections 7.4 and 9.
 *
 * Both sides of a rekey wait for an authentic frame on the new session. We as initiator send one
 * heartbeat on it at once, so the responder can follow, and go on sending on the old session until
 * the responder is heard on the new one, for two seconds at most. We as responder never change by
 * time. K is taken from the frame that triggers the change, so that two sides whose K had come to
 * differ agree again.
 */
#include "link_internal.h"

#include <errno.h>

void
sl_slot_k_set(struct slot *slot, uint8_t k)
{
	uint8_t flags = __atomic_load_n(&slot->s->tx_flags, __ATOMIC_RELAXED);

	__atomic_store_n(&slot->s->tx_flags, (uint8_t)((flags & ~SL_FLAG_K) | k), __ATOMIC_RELAXED);
}

int
sl_slot_install(struct sl_links *l, struct peer *p, struct slot *slot, uint32_t rx_index,
	uint32_t tx_index, bool initiator, const struct sl_noise_keys *keys,
	const uint8_t epoch[SL_EPOCH_BYTES], const struct sl_addr *addr, uint64_t now_us)
{
	struct sl_session *s;
	int rc = sl_peer_row_acquire(l, p);

	if (rc < 0) {
		count(l, SL_LINK_MAX_PEERS);
		sl_link_log_refused(l, p->key.xonly, "no row free in the peer table");
		return rc;
	}
	/* An inner timestamp of 0 is read as "no echo": ours begin at 1 ms (facts, 4.6). */
	s = sl_session_install(l->table, rx_index, tx_index, p->id, initiator, keys,
		now_us >= 1000 ? now_us - 1000 : 0);
	if (!s)
		return -errno;
	__atomic_store_n(&s->rx_addr_hash,
		sl_addr_hash(p->where.filed ? &p->where.addr : addr), __ATOMIC_RELAXED);
	memset(slot, 0, sizeof(*slot));
	slot->s = s;
	slot->since_us = slot->created_us = now_us;
	slot->expires_us = now_us + l->config.handshake_timeout_us;
	slot->addr = *addr;
	memcpy(slot->epoch, epoch, SL_EPOCH_BYTES);
	return 0;
}

/* --- candidates --- */

struct slot *
sl_candidate_slot(struct sl_links *l, struct peer *p)
{
	struct slot *oldest = NULL;

	for (unsigned i = 0; i < SL_CANDIDATES; i++) {
		struct slot *c = &p->candidates[i];

		if (!c->s)
			return c;
		if (!c->deadline && (!oldest || c->created_us < oldest->created_us))
			oldest = c;
	}
	if (!oldest) /* four of our own: cannot be, a rekey waits for the last one */
		oldest = &p->candidates[0];
	count(l, SL_LINK_PENDING_EVICTED);
	sl_slot_retire(l, p, oldest);
	return oldest;
}

void
sl_candidates_drop(struct sl_links *l, struct peer *p)
{
	for (unsigned i = 0; i < SL_CANDIDATES; i++)
		sl_slot_retire(l, p, &p->candidates[i]);
}

struct slot *
sl_candidate_theirs(struct peer *p, const uint8_t epoch[SL_EPOCH_BYTES])
{
	struct slot *newest = NULL;

	for (unsigned i = 0; i < SL_CANDIDATES; i++) {
		struct slot *c = &p->candidates[i];

		if (c->s && !c->s->is_initiator && memcmp(c->epoch, epoch, SL_EPOCH_BYTES) == 0 &&
			(!newest || c->created_us > newest->created_us))
			newest = c;
	}
	return newest;
}

/*
 * The others lost, but the peer may yet settle on one of them: a peer that dialled on several addresses; a peer that has
 * made our own rekey current, whose first frame on it is under way. So ours wait to be heard too, no longer change by time.
 */
static void
candidates_linger(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	for (unsigned i = 0; i < SL_CANDIDATES; i++) {
		struct slot *c = &p->candidates[i];

		if (!c->s)
			continue;
		if (memcmp(c->epoch, p->current.epoch, SL_EPOCH_BYTES) != 0 &&
			c->created_us <= p->current.created_us)
			sl_slot_retire(l, p, c);
		else if (c->deadline) {
			c->deadline = false;
			c->expires_us = now_us + SL_LINGER_US;
		} else if (c->created_us <= p->current.created_us &&
			 c->expires_us > now_us + SL_LINGER_US)
			c->expires_us = now_us + SL_LINGER_US;
	}
}

/* --- the change of sessions --- */

static bool
room_for_peer(struct sl_links *l, struct peer *p, struct slot *slot, uint64_t now_us)
{
	const uint8_t full[2] = {SL_MSG_DISCONNECT, SL_DISCONNECT_RESOURCE_EXHAUSTION};
	bool ours = slot->s->is_initiator;

	if (p->up || !l->config.max_peers || l->up_count < l->config.max_peers)
		return true;
	count(l, SL_LINK_MAX_PEERS);
	p->last_error = "max_peers reached";
	sl_link_log_refused(l, p->key.xonly, p->last_error);
	if (sl_session_send(l, slot->s, &slot->addr, full, sizeof(full), 0, now_us) == 0)
		count(l, SL_LINK_DISCONNECT_TX);
	sl_slot_retire(l, p, slot);
	/* The dial is over: nothing but its back-off brings the next. */
	if (ours && !p->dial_count)
		sl_peer_dial_failed(l, p, p->last_error, now_us);
	return false;
}

/* The peer answers the first frame: no earlier than it can have. */
static uint32_t
early_frame_gap_us(const struct peer *p)
{
	uint32_t gap = p->flight_us + p->flight_us / 4;

	return gap > SL_EARLY_GAP_US ? gap : SL_EARLY_GAP_US;
}

static void
early_frame_send(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	if (p->current.confirmed) {
		p->early_frames = 0;
		return;
	}
	p->early_frames--;
	p->early_frame_us = now_us + early_frame_gap_us(p);
	count(l, SL_LINK_FIRST_FRAME_EARLY);
	sl_heartbeat_send(l, p, &p->current, now_us);
}

/* A packet to it must hold a handshake at least: room for the header and something behind it. */
static bool
mtu_serves(struct sl_links *l, struct peer *p, struct slot *slot, uint64_t now_us)
{
	bool ours = slot->s->is_initiator;

	if (p->up || sl_peer_mtu_at(l, &slot->addr) >= SL_MSG1_PACKET_BYTES)
		return true;
	count(l, SL_LINK_MTU_REFUSED);
	p->last_error = "its link's MTU is zero or below the header";
	sl_link_log_refused(l, p->key.xonly, p->last_error);
	sl_slot_retire(l, p, slot);
	if (ours && !p->dial_count)
		sl_peer_dial_failed(l, p, p->last_error, now_us);
	return false;
}

static void
link_begins(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	p->up = true;
	l->up_count++;
	sl_established_size(l, now_us);
	p->outbound = p->current.s->is_initiator;
	p->up_since_us = now_us;
	p->lost_us = 0;
	p->rekeys = 0;
	p->beat_us = now_us + SL_BEAT_US / 2 + sl_random_below(SL_BEAT_US / 2);
	sl_peer_dial_done(p);
	p->early_limit = p->early_credit = SL_EARLY_COPIES;
	p->early_frames = first_flight(l, p) && p->outbound ? SL_EARLY_FRAMES : 0;
	p->early_frame_us = now_us + early_frame_gap_us(p);
	count(l, SL_LINK_LINK_UP);
}

/*
 * A new session in the same process life of the peer's, begun by it: a rekey, or a dial of a peer that had lost the
 * link? A rekey toggles K, and comes from a peer that was heard just before.
 */
static bool
looks_dialled(const struct peer *p, const struct slot *next, uint8_t k)
{
	uint64_t heard = sl_peer_last_rx_us(p);

	if (next->s->is_initiator)
		return false;
	return k == slot_k(&p->current) || heard + SL_ALIVE_US < next->created_us;
}

/* After a change of sessions: is the peer on the one that won? Asked until the other has drained. */
static void
doubt_from(struct peer *p, uint64_t now_us)
{
	p->doubt_us = now_us + SL_DOUBT_US;
}

bool
sl_peer_promote(struct sl_links *l, struct peer *p, struct slot *slot, uint8_t k, uint64_t now_us)
{
	struct slot next;
	bool was_up, dialled = false;

	if (!mtu_serves(l, p, slot, now_us) || !room_for_peer(l, p, slot, now_us))
		return false;
	next = *slot;
	memset(slot, 0, sizeof(*slot));
	if (p->up && memcmp(next.epoch, p->current.epoch, SL_EPOCH_BYTES) != 0) {
		count(l, SL_LINK_PEER_RESTART);
		sl_peer_down(l, p, SL_DOWN_RESTART, now_us);
	}
	was_up = p->up;
	if (was_up) {
		dialled = looks_dialled(p, &next, k);
		sl_slot_retire(l, p, &p->previous);
		p->previous = p->current;
		p->previous.since_us = now_us;
		doubt_from(p, now_us);
		p->rekeys++;
		count(l, SL_LINK_REKEY);
	}
	p->current = next;
	if (!was_up)
		p->link_mtu = sl_peer_mtu_at(l, &next.addr);
	p->current.since_us = now_us;
	p->current.deadline = false;
	p->rekey_failed = false;
	sl_slot_k_set(&p->current, k);
	if (!was_up)
		link_begins(l, p, now_us);
	sl_peer_pending_update(l, p);
	sl_attempts_end(l, p, true);
	candidates_linger(l, p, now_us);
	sl_peer_address_set(l, p, was_up ? &p->where.addr : &p->current.addr);
	sl_mmp_metrics_cutover(&p->metrics);
	sl_excused_cutover(p);
	sl_liveness_begin(l, p, now_us);
	sl_rekey_plan(l, p, now_us);
	if (!was_up || dialled)
		sl_link_log_up(p, was_up);
	sl_peer_publish(l, p, !was_up || dialled);
	/* Lets the other side see at once that we are there. */
	sl_heartbeat_send(l, p, &p->current, now_us);
	sl_waiting_flush(l, p, now_us);
	return true;
}

static uint64_t
last_rx_us(const struct slot *slot)
{
	return __atomic_load_n(&slot->s->mmp.last_rx_us, __ATOMIC_RELAXED);
}

static void
sessions_swap(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	struct slot old = p->current;

	p->current = p->previous;
	p->previous = old;
	p->previous.since_us = now_us;
	p->current.confirmed = true;
	p->current.rival = false;
	sl_peer_address_set(l, p, &p->where.addr);
	sl_mmp_metrics_cutover(&p->metrics);
	sl_excused_cutover(p);
	sl_peer_publish(l, p, false);
	doubt_from(p, now_us);
}

/*
 * A peer that was last heard on the session that we left, and well after we left it, is not where we are: a recorded msg1
 * came while we dialled; a msg2 came when the peer had given its session up; the frame that made us change had been on its
 * way for longer than the peer kept the session. The change is taken back, until a frame does come on the other.
 */
static void
doubt(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	uint64_t heard;

	p->doubt_us = 0;
	if (!p->up || !p->previous.s)
		return;
	p->doubt_us = now_us + SL_BEAT_US;
	heard = last_rx_us(&p->previous);
	if (heard <= last_rx_us(&p->current) || heard < p->previous.since_us + SL_DOUBT_US / 2)
		return;
	p->current.rival = true;
	p->current.confirmed = false;
	__atomic_fetch_or(&p->current.s->notify, SL_NOTIFY_FIRST_FRAME, __ATOMIC_RELEASE);
	sessions_swap(l, p, now_us);
}

/* A quiet peer may not have said yet where it is: then the session before stays for as long as the link may live. */
static bool
placed(const struct peer *p)
{
	return !p->up || last_rx_us(&p->current) > p->previous.since_us;
}

bool
sl_peer_confirm(
	struct sl_links *l, struct peer *p, struct slot *slot, uint8_t flags, uint64_t now_us)
{
	uint8_t k = flags & SL_FLAG_K;

	slot->confirmed = true;
	if (slot == &p->previous) {
		if (slot->rival)
			sessions_swap(l, p, now_us);
		return true;
	}
	if (slot == &p->current) {
		if (k != slot_k(slot))
			sl_slot_k_set(slot, k);
		return true;
	}
	return sl_peer_promote(l, p, slot, k, now_us);
}

static void
candidate_run(struct sl_links *l, struct peer *p, struct slot *c, uint64_t now_us)
{
	if (!c->deadline) {
		if (now_us >= c->expires_us) {
			count(l, SL_LINK_PENDING_EXPIRED);
			sl_slot_retire(l, p, c);
		}
	} else if (now_us >= c->since_us + SL_HANDOVER_US) {
		/* Unheard: when the peer goes on with the old session, it has given the new one up. */
		(void)sl_peer_promote(l, p, c, slot_k(c), now_us);
	} else if (c->nudges < 2 && now_us >= c->since_us + c->nudges * SL_HANDOVER_US / 2) {
		c->nudges++;
		sl_heartbeat_send(l, p, c, now_us);
	}
}

void
sl_sessions_run(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	if (p->previous.s && now_us >= p->previous.since_us + SL_DRAIN_US && placed(p))
		sl_slot_retire(l, p, &p->previous);
	if (p->doubt_us && now_us >= p->doubt_us)
		doubt(l, p, now_us);
	if (p->up && p->early_frames && now_us >= p->early_frame_us)
		early_frame_send(l, p, now_us);
	for (unsigned i = 0; i < SL_CANDIDATES; i++)
		if (p->candidates[i].s)
			candidate_run(l, p, &p->candidates[i], now_us);
}

uint64_t
sl_sessions_due(const struct sl_links *l, const struct peer *p)
{
	uint64_t due = UINT64_MAX, t;

	if (p->previous.s && placed(p))
		due = p->previous.since_us + SL_DRAIN_US;
	if (p->doubt_us && p->doubt_us < due)
		due = p->doubt_us;
	if (p->up && p->early_frames && p->early_frame_us < due)
		due = p->early_frame_us;
	for (unsigned i = 0; i < SL_CANDIDATES; i++) {
		const struct slot *c = &p->candidates[i];

		if (!c->s)
			continue;
		t = !c->deadline    ? c->expires_us
		    : c->nudges < 2 ? c->since_us + c->nudges * SL_HANDOVER_US / 2
				    : c->since_us + SL_HANDOVER_US;
		if (t < due)
			due = t;
	}
	return due;
}

/* --- when --- */

uint64_t
sl_rekey_min_age_us(const struct sl_links *l)
{
	/* With a shorter period configured both ends are ours, and take rekeys that a reference
	 * node would not. */
	uint64_t half = l->config.rekey_after_us / 2;

	return half < SL_REKEY_MIN_AGE_US ? half : SL_REKEY_MIN_AGE_US;
}

/* Were the peer really without the session it would have fallen silent, and its msg1 comes again. */
bool
sl_peer_young(const struct sl_links *l, const struct peer *p, uint64_t now_us)
{
	uint64_t alive = sl_peer_last_rx_us(p);

	if (alive < p->current.since_us)
		alive = p->current.since_us;
	return now_us - p->current.since_us < sl_rekey_min_age_us(l) && now_us < alive + SL_ALIVE_US;
}

uint64_t
sl_rekey_damping_us(const struct sl_links *l)
{
	uint64_t half = l->config.rekey_after_us / 2;

	return half < SL_DAMPING_US ? half : SL_DAMPING_US;
}

static uint64_t
min_gap_us(const struct sl_links *l)
{
	return l->config.rekey_after_us < SL_REKEY_MIN_GAP_US ? l->config.rekey_after_us
							      : SL_REKEY_MIN_GAP_US;
}

void
sl_rekey_plan(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	uint64_t after = l->config.rekey_after_us, jitter = SL_REKEY_JITTER_S * 1000000ull;

	/* Whole seconds in -15 .. 15 (9.1); less where the period itself is short. */
	if (jitter > after / 4)
		jitter = after / 4 / 1000000 * 1000000;
	p->rekey_at_us = now_us + after - jitter +
			 sl_random_below((uint32_t)(2 * jitter / 1000000 + 1)) * 1000000ull;
}

bool
sl_handing_over(const struct peer *p)
{
	for (unsigned i = 0; i < SL_CANDIDATES; i++)
		if (p->candidates[i].s && p->candidates[i].deadline)
			return true;
	return false;
}

/*
 * A reference responder cuts over within a second and keeps no rekey msg2: when msg2 is lost, its
 * frames go to an index we have no session for, and it is heard no more. Within its drain it still
 * opens the old session: we say goodbye there and dial anew, instead of waiting for the dead
 * timeout (9.5).
 */
static void
rescue(struct sl_links *l, struct peer *p, const struct attempt *a, uint64_t now_us)
{
	uint64_t heard = sl_peer_last_rx_us(p);
	struct sl_addr to = p->where.addr;

	if (now_us < a->started_us + SL_RESCUE_US || heard >= a->started_us + 2 * SL_BEAT_US ||
		heard + SL_RESCUE_US > now_us || p->last_report_us + 3 * SL_BEAT_US < a->started_us)
		return;
	count(l, SL_LINK_REKEY_RESCUE);
	sl_link_log_rekey_failed(p, "its answer was lost: dialled anew");
	sl_disconnect_send(l, p, SL_DISCONNECT_OTHER, now_us);
	sl_peer_down(l, p, SL_DOWN_DEAD, now_us);
	sl_candidates_drop(l, p); /* none of them may be taken for a dial that crosses this one */
	p->lost_us = 0;
	if (sl_attempt_start(l, p, &to, false, now_us) < 0)
		sl_peer_redial_after_loss(l, p, now_us);
}

void
sl_rekey_check(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	const struct attempt *a = sl_attempt_rekey(p);

	if (a) {
		rescue(l, p, a, now_us);
		return;
	}
	if (!l->config.rekey_enabled || sl_handing_over(p) ||
		now_us < p->current.since_us + min_gap_us(l))
		return;
	if (now_us < p->rekey_at_us &&
		sl_nonce_used(&p->current.s->tx_counter) < l->config.rekey_after_messages)
		return;
	/* Their own rekey is under way; but recorded ones of theirs, sent again and again, shall
	 * not stop ours. */
	if (now_us < p->damped_until_us && now_us < p->rekey_at_us + 2 * sl_rekey_damping_us(l))
		return;
	(void)sl_attempt_start(l, p, &p->where.addr, true, now_us);
}
