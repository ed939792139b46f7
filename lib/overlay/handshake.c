/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake packets that come in: msg1 answered, msg2 made into a session. Link layer facts, 6, 7,
 * 9, 14. */
#include "link_internal.h"

#include <errno.h>

#define MSG1_SENDER 4
#define MSG1_NOISE 8
#define MSG2_SENDER 4
#define MSG2_RECEIVER 8
#define MSG2_NOISE 12

/* --- duplicates: the identical msg2 again, nothing computed --- */

static void
answered_note(struct sl_links *l, const uint8_t *packet, uint32_t rx_index)
{
	uint64_t h = sl_msg1_hash(l, packet);
	struct answered *e = &l->answered[h >> 32 & (SL_ANSWERED_ENTRIES - 1)];

	e->hash = h;
	e->rx_index = rx_index;
}

/* The slot that has answered exactly this msg1. */
static struct slot *
answered_slot(struct sl_links *l, const uint8_t *packet)
{
	uint64_t h = sl_msg1_hash(l, packet);
	const struct answered *e = &l->answered[h >> 32 & (SL_ANSWERED_ENTRIES - 1)];
	struct sl_session *s = e->hash == h ? sl_session_lookup(l->view, e->rx_index) : NULL;
	struct peer *p = s ? l->peer_of_id[s->peer_id] : NULL;
	struct slot *slot = p ? sl_peer_slot_of(p, s) : NULL;

	if (!slot || !slot->has_msg2 || s->tx_index != sl_get32(packet + MSG1_SENDER) ||
		memcmp(slot->eph, packet + MSG1_NOISE, SL_COMPRESSED_BYTES) != 0)
		return NULL;
	return slot;
}

/*
 * The peer still wants this session, and needs some time once the answer has reached it: a candidate does not end in
 * between. Twice its ordinary life is the most that a repeated msg1 can make of it.
 */
static void
candidate_keep(struct sl_links *l, struct slot *slot, uint64_t now_us)
{
	const uint64_t most_us = slot->created_us + 2 * l->config.handshake_timeout_us, want_us = now_us + SL_DRAIN_US;

	if (slot->expires_us < want_us)
		slot->expires_us = want_us < most_us ? want_us : most_us;
}

static void
msg2_repeat(struct sl_links *l, struct slot *slot, const struct sl_addr *to, uint64_t now_us)
{
	count(l, SL_LINK_MSG1_DUPLICATE);
	candidate_keep(l, slot, now_us);
	if (sl_links_transmit(l, to, slot->msg2, sizeof(slot->msg2)) == 0)
		count(l, SL_LINK_MSG2_RESENT);
}

/* A msg1 of which somebody plays copies by the thousand costs nobody's budget, and soon hardly an answer. */
static void
msg2_again(struct sl_links *l, struct slot *slot, const struct sl_addr *to, uint64_t now_us)
{
	if (slot->repeats >= SL_REPEATS_FREE && now_us < slot->repeated_us + SL_REPEAT_GAP_US) {
		count(l, SL_LINK_MSG1_RATE_LIMITED);
		return;
	}
	slot->repeats += slot->repeats < SL_REPEATS_FREE;
	slot->repeated_us = now_us;
	msg2_repeat(l, slot, to, now_us);
}

/* --- msg1: may it be looked at --- */

static bool
budget_take(struct sl_links *l, const struct sl_addr *from, struct addr_ref *known, const uint8_t *packet,
	uint64_t now_us)
{
	if (!known)
		return sl_stranger_admit(l, from, packet, false, now_us);
	if (sl_bucket_take(&known->peer->msg1_bucket, now_us) && sl_bucket_take(&l->established, now_us))
		return true;
	count(l, SL_LINK_MSG1_RATE_LIMITED);
	return false;
}

/*
 * Now that the static key is known: an address of a linked peer speaks for that peer only
 * (accept_connections), and whoever is not that peer spends the budget of what it is (routing
 * facts, 17, W4).
 */
static bool
identity_admitted(struct sl_links *l, const struct sl_addr *from, struct addr_ref *known,
	struct peer *p, const uint8_t *packet, uint64_t now_us)
{
	struct addr_ref *r = known;

	if (!known)
		return true;
	while (r && r->peer != p)
		r = sl_addr_ref_next(r);
	if (r)
		return true;
	if (!l->transports[from->transport].accept) {
		count(l, SL_LINK_MSG1_WRONG_IDENTITY);
		return false;
	}
	if (!p || !(p->up || p->configured))
		return sl_stranger_admit(l, from, packet, true, now_us);
	if (sl_bucket_take(&p->msg1_bucket, now_us))
		return true;
	count(l, SL_LINK_MSG1_RATE_LIMITED);
	return false;
}

static const struct sl_remote_key *
known_key(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct sl_links *l = arg;
	struct peer *p = sl_peer_find(l, xonly);

	if (!p)
		return NULL;
	sl_peer_need_dh(l, p);
	return &p->key;
}

/* --- msg1: what it is, given who sent it --- */

static bool
new_link_admitted(struct sl_links *l, struct peer *p, const uint8_t *xonly)
{
	if (!sl_peer_allowed(l, xonly)) {
		count(l, SL_LINK_NOT_ALLOWED);
		sl_link_log_refused(l, xonly, "not on the access list");
		return false;
	}
	if (l->config.max_peers && l->up_count >= l->config.max_peers &&
		!(p && (p->up || p->dial_count))) {
		count(l, SL_LINK_MAX_PEERS);
		sl_link_log_refused(l, xonly, "max_peers reached");
		return false;
	}
	return true;
}

static bool
we_are_smaller(const struct sl_links *l, const struct peer *p)
{
	return sl_node_addr_cmp(sl_identity_addr(l->identity), &p->key.addr) < 0;
}

/* A msg1 of a peer that has a link, in the same process life: a rekey, or a dial that crossed or
 * was given up. */
static bool
rekey_admitted(struct sl_links *l, struct peer *p, const uint8_t *packet, uint64_t now_us)
{
	struct attempt *ours = sl_attempt_rekey(p);

	if (sl_peer_young(l, p, now_us)) {
		count(l, SL_LINK_MSG1_YOUNG);
		sl_refusal_note(l, packet, p, SL_REFUSED_US, now_us);
		return false;
	}
	if (sl_handing_over(p) || (ours && we_are_smaller(l, p))) {
		count(l, SL_LINK_MSG1_REKEY_WON);
		return false;
	}
	if (ours)
		sl_attempt_end(l, ours);
	if (l->config.rekey_enabled)
		p->damped_until_us = now_us + sl_rekey_damping_us(l);
	return true;
}

/*
 * All candidates were answered just now, so any of them may be about to carry its first frame. None of them makes room:
 * somebody who plays recorded msg1 would push out the one that the peer is moving to, and the peer goes on waiting there.
 */
static bool
crowded(const struct peer *p, uint64_t now_us)
{
	for (unsigned i = 0; i < SL_CANDIDATES; i++)
		if (!p->candidates[i].s || now_us - p->candidates[i].created_us >= SL_TWIN_US)
			return false;
	return true;
}

/*
 * One handshake gives way, not all of them: its index may come free only after a grace period, and then serves the next
 * msg1.
 */
static int
index_reserve(struct sl_links *l, struct peer *p, uint32_t *rx_index)
{
	int rc = sl_session_index_reserve(l->table, p->owner, rx_index);

	if (rc == -ENOSPC && sl_pending_evict(l, p))
		rc = sl_session_index_reserve(l->table, p->owner, rx_index);
	if (rc < 0)
		count(l, SL_LINK_NO_INDEX);
	return rc;
}

/* Answers: keys, a session under a new index, msg2. */
static void
msg1_answer(struct sl_links *l, struct peer *p, struct sl_noise_responder *st,
	const struct sl_addr *from, const uint8_t *packet, uint64_t now_us)
{
	uint8_t noise[SL_NOISE_MSG2_BYTES];
	struct sl_noise_keys keys;
	struct slot *slot;
	uint32_t rx_index, tx_index = sl_get32(packet + MSG1_SENDER);

	if (index_reserve(l, p, &rx_index) < 0)
		return;
	slot = sl_candidate_slot(l, p);
	sl_noise_respond_write(st, noise, l->identity, l->epoch, NULL, &keys);
	if (sl_slot_install(l, p, slot, rx_index, tx_index, false, &keys, st->remote_epoch, from,
		    now_us) < 0) {
		sl_session_index_release(l->table, rx_index);
		goto out;
	}
	slot->has_msg2 = true;
	memcpy(slot->eph, packet + MSG1_NOISE, SL_COMPRESSED_BYTES);
	sl_msg2_build(slot->msg2, rx_index, tx_index, noise);
	answered_note(l, packet, rx_index);
	if (sl_links_transmit(l, from, slot->msg2, sizeof(slot->msg2)) == 0)
		count(l, SL_LINK_MSG2_TX);
	/* One handshake too many that comes to nothing: the oldest gives way, never the newest. */
	sl_peer_pending_update(l, p);
	if (l->pending_count > l->config.max_pending_inbound)
		(void)sl_pending_evict(l, p);
out:
	sl_wipe(&keys, sizeof(keys));
}

/* msg1 has opened: st says who it is from. */
static void
msg1_authentic(struct sl_links *l, struct sl_noise_responder *st, const struct sl_addr *from,
	struct addr_ref *known, const uint8_t *packet, uint64_t now_us)
{
	const uint8_t *xonly = st->remote_compressed + 1;
	struct peer *p;
	struct slot *twin;

	if (memcmp(xonly, sl_identity_xonly(l->identity), SL_XONLY_BYTES) == 0) {
		count(l, SL_LINK_MSG1_OWN_KEY);
		sl_refusal_note(l, packet, NULL, SL_REFUSED_US, now_us);
		return;
	}
	p = sl_peer_find(l, xonly);
	if (!identity_admitted(l, from, known, p, packet, now_us))
		return;
	if (p && p->up && memcmp(p->current.epoch, st->remote_epoch, SL_EPOCH_BYTES) == 0) {
		if (!rekey_admitted(l, p, packet, now_us))
			return;
	} else if (!new_link_admitted(l, p, xonly)) {
		sl_refusal_note(l, packet, NULL, SL_REFUSED_SHORT_US, now_us);
		return;
	}
	/* The same peer dialling on several addresses at once: all of them get the first one's msg2
	 * (facts, 12). */
	twin = p ? sl_candidate_theirs(p, st->remote_epoch) : NULL;
	if (twin && !p->up && now_us - twin->created_us < SL_TWIN_US) {
		msg2_repeat(l, twin, from, now_us);
		return;
	}
	if (p && crowded(p, now_us)) {
		count(l, SL_LINK_MSG1_CROWDED);
		return;
	}
	if (!p)
		p = sl_peer_create(l, xonly, now_us);
	if (!p)
		return;
	if (!p->key.has_dh_static) { /* for the rekeys */
		memcpy(p->key.dh_static, st->dh_static, sizeof(p->key.dh_static));
		p->key.has_dh_static = true;
	}
	msg1_answer(l, p, st, from, packet, now_us);
	sl_peer_settle(l, p);
}

static void
msg1_received(
	struct sl_links *l, const struct sl_addr *from, const uint8_t *packet, uint64_t now_us)
{
	struct addr_ref *known = sl_addr_ref_find(l, from);
	struct sl_noise_responder st;
	struct slot *again;

	count(l, SL_LINK_MSG1_RX);
	if (!l->transports[from->transport].known || l->closed) {
		count(l, SL_LINK_MSG1_REFUSED);
		return;
	}
	/* Before the budget: what is refused anyway may not use up what strangers on other transports need. */
	if (!known && !l->transports[from->transport].accept) {
		count(l, SL_LINK_MSG1_REFUSED);
		return;
	}
	/* Half a byte of the ephemeral key tells most of what is no handshake at all. */
	if ((packet[MSG1_NOISE] & 0xfe) != 0x02) {
		count(l, SL_LINK_MSG1_AUTH);
		return;
	}
	/* The same again: the same answer, which costs nothing, or the same silence. */
	again = answered_slot(l, packet);
	if (again) {
		msg2_again(l, again, from, now_us);
		return;
	}
	if (sl_refused_before(l, packet, now_us) || !budget_take(l, from, known, packet, now_us))
		return;
	if (sl_noise_respond_read(&st, packet + MSG1_NOISE, l->identity, known_key, l) < 0) {
		count(l, SL_LINK_MSG1_AUTH);
		sl_refusal_note(l, packet, NULL, SL_REFUSED_US, now_us);
		return;
	}
	msg1_authentic(l, &st, from, known, packet, now_us);
	sl_noise_responder_fini(&st);
}

/* --- msg2 --- */

/* Both sides dialled: the handshake that the smaller node began stays (7.4). Receiving on the other
 * one drains. */
static void
crossing(
	struct sl_links *l, struct peer *p, struct slot *ours, struct slot *theirs, uint64_t now_us)
{
	bool keep_ours = we_are_smaller(l, p);
	struct slot loser = keep_ours ? *theirs : *ours;

	count(l, SL_LINK_CROSS_CONNECT);
	memset(keep_ours ? theirs : ours, 0, sizeof(loser));
	if (!sl_peer_promote(l, p, keep_ours ? ours : theirs, 0, now_us)) {
		sl_slot_retire(l, p, &loser);
		if (!keep_ours && !p->dial_count)
			sl_peer_dial_failed(l, p, p->last_error, now_us);
		return;
	}
	if (p->previous.s)
		sl_slot_retire(l, p, &p->previous);
	p->previous = loser;
	p->previous.since_us = now_us;
	p->previous.deadline = false;
	p->doubt_us = now_us + SL_DOUBT_US;
}

static void
dial_completed(struct sl_links *l, struct peer *p, struct slot *slot, uint64_t now_us)
{
	struct slot *theirs = sl_candidate_theirs(p, slot->epoch);

	if (theirs) {
		crossing(l, p, slot, theirs, now_us);
		return;
	}
	/* The peer may still hold the link that we lost, and take this for a rekey: its K is seen
	 * first (9.3). */
	if (p->lost_us && now_us - p->lost_us < 4 * l->config.dead_timeout_us) {
		slot->deadline = true;
		slot->nudges = 1;
		sl_heartbeat_send(l, p, slot, now_us);
		sl_attempts_end(l, p, false);
		return;
	}
	(void)sl_peer_promote(l, p, slot, 0, now_us);
}

static void
rekey_completed(struct sl_links *l, struct peer *p, struct slot *slot, uint64_t now_us)
{
	if (memcmp(slot->epoch, p->current.epoch, SL_EPOCH_BYTES) != 0) {
		(void)sl_peer_promote(l, p, slot, 0, now_us);
		return;
	}
	sl_slot_k_set(slot, slot_k(&p->current) ^ SL_FLAG_K);
	slot->deadline = true;
	slot->nudges = 1;
	sl_heartbeat_send(l, p, slot, now_us);
}

static void
msg2_received(
	struct sl_links *l, const struct sl_addr *from, const uint8_t *packet, uint64_t now_us)
{
	struct attempt *a = sl_attempt_find(l, sl_get32(packet + MSG2_RECEIVER));
	uint8_t epoch[SL_EPOCH_BYTES];
	struct sl_noise_keys keys;
	struct slot *slot;
	struct peer *p;
	bool rekey;

	count(l, SL_LINK_MSG2_RX);
	if (!a || from->transport != a->where.addr.transport) {
		count(l, SL_LINK_MSG2_UNKNOWN);
		return;
	}
	if (!sl_bucket_take(&a->answers, now_us)) {
		count(l, SL_LINK_MSG2_RATE_LIMITED);
		return;
	}
	if (sl_noise_initiator_read(&a->noise, packet + MSG2_NOISE, &keys, epoch) < 0) {
		count(l, SL_LINK_MSG2_AUTH); /* the attempt goes on: anyone can see its index */
		return;
	}
	p = a->peer;
	rekey = a->rekey;
	if (!rekey)
		p->flight_us = (uint32_t)(now_us - a->first_sent_us);
	if (!rekey && !sl_peer_allowed(l, p->key.xonly)) {
		count(l, SL_LINK_NOT_ALLOWED);
		sl_link_log_refused(l, p->key.xonly, "not on the access list");
		sl_attempts_end(l, p, false);
		sl_peer_dial_failed(l, p, "refused by the access list", now_us);
		goto out;
	}
	slot = sl_candidate_slot(l, p);
	if (sl_slot_install(l, p, slot, a->rx_index, sl_get32(packet + MSG2_SENDER), true, &keys,
		    epoch, from, now_us) < 0)
		goto out;
	sl_attempt_end(l, a); /* its index is the session's now */
	if (rekey && p->up)
		rekey_completed(l, p, slot, now_us);
	else
		dial_completed(l, p, slot, now_us);
out:
	sl_wipe(&keys, sizeof(keys));
	sl_peer_settle(l, p);
}

void
sl_links_handshake(struct sl_links *l, const struct sl_addr *from, const uint8_t *packet,
	size_t len, uint64_t now_us)
{
	enum sl_packet_kind kind = sl_packet_classify(packet, len);

	l->now_us = now_us;
	if (kind != SL_PACKET_MSG1 && kind != SL_PACKET_MSG2) {
		count(l, SL_LINK_HANDSHAKE_MALFORMED);
		return;
	}
	if (!sl_addr_answerable(l, from)) {
		count(l, SL_LINK_HANDSHAKE_SOURCE);
		return;
	}
	if (kind == SL_PACKET_MSG1)
		msg1_received(l, from, packet, now_us);
	else
		msg2_received(l, from, packet, now_us);
}
