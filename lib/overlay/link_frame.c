/* SPDX-License-Identifier: BSD-3-Clause */
/* Established frames on control: sealing, opening (nodes without workers), handing messages out. */
#include "link_internal.h"

#include <errno.h>

int
sl_links_transmit(struct sl_links *l, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	int rc = l->sink.transmit(l->sink.arg, to, packet, len);

	l->work_us -= SL_COST_PACKET_US;
	if (rc < 0)
		count(l, SL_LINK_TX_FAILED);
	return rc;
}

/* --- out --- */

int
sl_session_send(struct sl_links *l, struct sl_session *s, const struct sl_addr *to, const uint8_t *msg,
	size_t len, uint8_t flags, uint64_t now_us)
{
	const struct transport *t = &l->transports[to->transport];
	struct sl_aead_op op = {0};
	uint8_t *f = l->frame;
	uint64_t counter;

	if (!len || len > SL_FRAME_MAX - SL_OVERHEAD_BYTES || len + SL_OVERHEAD_BYTES > t->mtu)
		return -EMSGSIZE;
	if (!sl_session_reserve(l->view, s, SL_OVERHEAD_BYTES + len, &counter))
		return -EOVERFLOW;
	flags = (uint8_t)((flags & SL_FLAG_CE) | __atomic_load_n(&s->tx_flags, __ATOMIC_RELAXED));
	sl_header_build(f, flags, (uint16_t)(4 + len), s->tx_index, counter);
	sl_put32(f + SL_HEADER_BYTES, (uint32_t)((now_us - s->origin_us) / 1000));
	memcpy(f + SL_HEADER_BYTES + 4, msg, len);
	op.text = f + SL_HEADER_BYTES;
	op.text_len = (uint32_t)(4 + len);
	op.aad = f;
	op.key = s->tx_key;
	op.counter = counter;
	/* A crypto device may fail, and then the frame is plain text still. */
	if (l->aead->seal(l->aead_ctx, &op, 1) != 1) {
		count(l, SL_LINK_SEAL_FAILED);
		return -EIO;
	}
	return sl_links_transmit(l, to, f, SL_OVERHEAD_BYTES + len);
}

void
sl_heartbeat_send(struct sl_links *l, struct peer *p, struct slot *slot, uint64_t now_us)
{
	static const uint8_t msg[1] = {SL_MSG_HEARTBEAT};
	const struct sl_addr *to = p->where.filed ? &p->where.addr : &slot->addr;

	if (sl_session_send(l, slot->s, to, msg, sizeof(msg), 0, now_us) == 0)
		count(l, SL_LINK_HEARTBEAT_TX);
}

void
sl_disconnect_send(
	struct sl_links *l, struct peer *p, enum sl_disconnect_reason reason, uint64_t now_us)
{
	const uint8_t msg[2] = {SL_MSG_DISCONNECT, (uint8_t)reason};

	if (sl_session_send(l, p->current.s, &p->where.addr, msg, sizeof(msg), 0, now_us) == 0)
		count(l, SL_LINK_DISCONNECT_TX);
}

/* --- in --- */

static void
disconnect_received(struct sl_links *l, struct peer *p, const struct slot *slot, uint64_t now_us)
{
	/* Said on a session that has been replaced: about the link that was, not the one that is.
	 */
	if (slot != &p->current && p->current.confirmed) {
		count(l, SL_LINK_DISCONNECT_STALE);
		return;
	}
	count(l, SL_LINK_DISCONNECT_RX);
	p->last_error = "the peer disconnected";
	sl_peer_down(l, p, SL_DOWN_DISCONNECT, now_us);
	sl_candidates_drop(l, p);
	sl_peer_redial_after_loss(l, p, now_us);
}

void
sl_frame_dispatch(struct sl_links *l, struct peer *p, struct slot *slot, uint8_t flags,
	const uint8_t *msg, size_t len, uint64_t now_us)
{
	const struct sl_msg_info *info = sl_msg_info(msg[0]);

	if (!info) {
		count(l, SL_LINK_MSG_UNKNOWN);
		return;
	}
	if (len - 1 < info->min_body || (info->exact && len - 1 != info->min_body)) {
		count(l, SL_LINK_MSG_MALFORMED);
		return;
	}
	switch (msg[0]) {
	case SL_MSG_HEARTBEAT:
		break;
	case SL_MSG_DISCONNECT:
		disconnect_received(l, p, slot, now_us);
		break;
	case SL_MSG_SENDER_REPORT:
	case SL_MSG_RECEIVER_REPORT:
		sl_report_received(l, p, slot, msg, len, now_us);
		break;
	default:
		if (l->sink.message)
			l->sink.message(l->sink.arg, p->id, msg, len, flags);
		break;
	}
}

/* The peer and slot that an index of ours belongs to. */
static struct peer *
peer_of_index(struct sl_links *l, uint32_t rx_index, struct slot **slot)
{
	struct sl_session *s = sl_session_lookup(l->view, rx_index);
	struct peer *p;

	if (!s || s->peer_id >= l->view->max_peers)
		return NULL;
	p = l->peer_of_id[s->peer_id];
	*slot = p ? sl_peer_slot_of(p, s) : NULL;
	return *slot ? p : NULL;
}

/* What an authentic frame means for the session it came on, before its message is looked at. */
static bool
frame_authentic(
	struct sl_links *l, struct peer *p, struct slot **slot, uint8_t flags, uint64_t now_us)
{
	struct sl_session *s = (*slot)->s;

	if (!(*slot)->confirmed && !sl_peer_confirm(l, p, *slot, flags, now_us))
		return false;
	*slot = sl_peer_slot_of(p, s);
	sl_spin_update(p);
	return *slot && p->up;
}

void
sl_links_message(struct sl_links *l, uint32_t rx_index, uint8_t flags, const uint8_t *msg,
	size_t len, uint64_t now_us)
{
	struct slot *slot;
	struct peer *p = peer_of_index(l, rx_index, &slot);

	l->now_us = now_us;
	if (!p) {
		count(l, SL_LINK_RX_UNKNOWN_INDEX);
		return;
	}
	if (!len) {
		count(l, SL_LINK_MSG_MALFORMED);
		return;
	}
	if (frame_authentic(l, p, &slot, flags, now_us))
		sl_frame_dispatch(l, p, slot, flags, msg, len, now_us);
	else
		count(l, SL_LINK_RX_NO_LINK);
	sl_peer_settle(l, p);
}

void
sl_links_first_frame(struct sl_links *l, uint32_t rx_index, uint8_t flags, uint64_t now_us)
{
	struct slot *slot;
	struct peer *p = peer_of_index(l, rx_index, &slot);

	l->now_us = now_us;
	if (!p)
		return; /* retired meanwhile */
	(void)frame_authentic(l, p, &slot, flags, now_us);
	sl_peer_settle(l, p);
}

void
sl_links_roamed(struct sl_links *l, uint32_t rx_index, const struct sl_addr *from, uint64_t now_us)
{
	struct slot *slot;
	struct peer *p = peer_of_index(l, rx_index, &slot);

	l->now_us = now_us;
	if (!p || slot != &p->current || !p->up)
		return;
	/* The reference files an index under its transport instance: no roaming from one to another
	 * (facts, 13). */
	if (from->transport == p->where.addr.transport && sl_addr_answerable(l, from) &&
		!sl_addr_equal(from, &p->where.addr)) {
		count(l, SL_LINK_ROAM);
		sl_peer_address_set(l, p, from);
	} else {
		__atomic_fetch_or(&slot->s->notify, SL_NOTIFY_ADDRESS, __ATOMIC_RELAXED);
	}
	sl_peer_settle(l, p);
}

/* Opens in place; the plaintext's length, or 0 after counting why not. */
static uint32_t
frame_open(struct sl_links *l, struct sl_session *s, uint8_t *packet, size_t len, uint64_t now_us)
{
	uint64_t counter = sl_get64(packet + 8);
	uint32_t text_len = (uint32_t)(len - SL_ESTABLISHED_MIN_BYTES);
	struct sl_aead_op op = {0};

	if (!sl_replay_check(&s->replay, counter)) {
		count(l, SL_LINK_RX_REPLAY);
		s->replays++;
		return 0;
	}
	op.text = packet + SL_HEADER_BYTES;
	op.text_len = text_len;
	op.aad = packet;
	op.key = s->rx_key;
	op.counter = counter;
	if (l->aead->open(l->aead_ctx, &op, 1) != 1) {
		count(l, SL_LINK_RX_AUTH);
		s->open_failures++;
		return 0;
	}
	if (!sl_replay_commit(&s->replay, counter)) {
		count(l, SL_LINK_RX_REPLAY);
		s->replays++;
		return 0;
	}
	if (text_len < SL_INNER_BYTES) {
		count(l, SL_LINK_RX_SHORT_INNER);
		return 0;
	}
	sl_mmp_rx_frame(&s->mmp, counter, sl_get32(packet + SL_HEADER_BYTES), (uint32_t)len, now_us,
		packet[1]);
	return text_len;
}

static void
established_packet(struct sl_links *l, const struct sl_addr *from, uint8_t *packet, size_t len,
	uint64_t now_us)
{
	uint32_t rx_index = sl_get32(packet + 4), text_len;
	uint64_t counter = sl_get64(packet + 8);
	struct sl_session *s = sl_session_lookup(l->view, rx_index);
	struct slot *slot;
	struct peer *p = peer_of_index(l, rx_index, &slot);
	bool highest;

	if (!s || !p) {
		count(l, SL_LINK_RX_UNKNOWN_INDEX);
		return;
	}
	highest = !s->mmp.frames || counter > s->mmp.highest;
	text_len = frame_open(l, s, packet, len, now_us);
	if (!text_len)
		return;
	if (frame_authentic(l, p, &slot, packet[1], now_us)) {
		if (slot == &p->current && highest && s->rx_addr_hash != sl_addr_hash(from) &&
			from->transport == p->where.addr.transport && sl_addr_answerable(l, from)) {
			count(l, SL_LINK_ROAM);
			sl_peer_address_set(l, p, from);
		}
		sl_frame_dispatch(
			l, p, slot, packet[1], packet + SL_HEADER_BYTES + 4, text_len - 4, now_us);
	} else {
		count(l, SL_LINK_RX_NO_LINK);
	}
	sl_peer_settle(l, p);
}

void
sl_links_packet(struct sl_links *l, const struct sl_addr *from, uint8_t *packet, size_t len,
	uint64_t now_us)
{
	l->now_us = now_us;
	switch (sl_packet_classify(packet, len)) {
	case SL_PACKET_ESTABLISHED:
		established_packet(l, from, packet, len, now_us);
		break;
	case SL_PACKET_MSG1:
	case SL_PACKET_MSG2:
		sl_links_handshake(l, from, packet, len, now_us);
		break;
	default:
		count(l, SL_LINK_RX_BAD_PACKET);
		break;
	}
}
