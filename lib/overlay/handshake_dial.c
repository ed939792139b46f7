/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handshakes that we begin: msg1 built once, the same bytes sent again with back-off, until msg2
 * comes (handshake.c), the time is over, or the peer came up some other way. Link layer facts, 7.1
 * and 10.
 */
#include "link_internal.h"

#include <errno.h>

struct attempt *
sl_attempt_find(const struct sl_links *l, uint32_t rx_index)
{
	struct attempt *a = l->attempt_of_slot[rx_index & l->view->slot_mask];

	return a && a->rx_index == rx_index ? a : NULL;
}

struct attempt *
sl_attempt_rekey(const struct peer *p)
{
	struct attempt *a = p->attempts;

	while (a && !a->rekey)
		a = a->next;
	return a;
}

static void
unlink_attempt(struct sl_links *l, struct attempt *a)
{
	struct attempt **at = &a->peer->attempts;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	if (!a->rekey)
		a->peer->dial_count--;
	sl_addr_ref_remove(l, &a->where);
	if (sl_attempt_find(l, a->rx_index) == a)
		l->attempt_of_slot[a->rx_index & l->view->slot_mask] = NULL;
}

/* The index goes back too, unless a session has taken it over meanwhile. */
void
sl_attempt_end(struct sl_links *l, struct attempt *a)
{
	uint32_t rx_index = a->rx_index;

	unlink_attempt(l, a);
	sl_noise_initiator_fini(&a->noise);
	sl_pool_put(&l->attempt_pool, a);
	sl_session_index_release(l->table, rx_index);
}

void
sl_attempts_end(struct sl_links *l, struct peer *p, bool rekeys_too)
{
	struct attempt *next;

	for (struct attempt *a = p->attempts; a; a = next) {
		next = a->next;
		if (!a->rekey || rekeys_too)
			sl_attempt_end(l, a);
	}
}

static bool
bytes_zero(const uint8_t *p, size_t len)
{
	uint8_t any = 0;

	while (len--)
		any |= *p++;
	return !any;
}

/* May a packet be sent there at all: not to many, not to nobody, not to ourselves. */
bool
sl_addr_answerable(const struct sl_links *l, const struct sl_addr *a)
{
	switch (a->kind) {
	case SL_ADDR_UDP4:
		if (!a->udp_port || a->u.ip4[0] >= 224 || a->u.ip4[0] == 0)
			return false;
		break;
	case SL_ADDR_UDP6:
		if (!a->udp_port || a->u.ip6[0] == 0xff || bytes_zero(a->u.ip6, 16))
			return false;
		break;
	case SL_ADDR_ETH:
		if ((a->u.mac[0] & 1) || bytes_zero(a->u.mac, 6))
			return false;
		break;
	default:
		return false;
	}
	for (unsigned i = 0; i < l->own_count; i++)
		if (sl_addr_equal(&l->own[i], a))
			return false;
	return true;
}

static void
early_begin(struct sl_links *l, struct attempt *a, uint64_t now_us)
{
	uint32_t known_us = a->peer->flight_us + a->peer->flight_us / 4;

	a->next_early_us = UINT64_MAX;
	if (a->rekey || !first_flight(l, a->peer))
		return;
	a->early_gap_us = known_us > SL_EARLY_GAP_US ? known_us : SL_EARLY_GAP_US;
	a->next_early_us = now_us + a->early_gap_us;
}

/* A copy before its time, if there is credit for it. Neither counts as a repetition nor moves the next one. */
static void
early_send(struct sl_links *l, struct attempt *a, uint64_t now_us)
{
	struct peer *p = a->peer;

	if (!p->early_credit || a->early >= SL_EARLY_COPIES) {
		a->next_early_us = UINT64_MAX;
		return;
	}
	if (!sl_bucket_take(&l->early, now_us)) {
		a->next_early_us = now_us + 1000000 / SL_EARLY_RATE_PER_S;
		return;
	}
	p->early_credit--;
	a->early++;
	a->early_gap_us += a->early_gap_us / 2;
	a->next_early_us = now_us + a->early_gap_us;
	if (sl_links_transmit(l, &a->where.addr, a->msg1, sizeof(a->msg1)) == 0)
		count(l, SL_LINK_MSG1_EARLY);
}

static void
attempt_send(struct sl_links *l, struct attempt *a, uint64_t now_us)
{
	const struct sl_links_config *c = &l->config;
	double wait;

	if (sl_links_transmit(l, &a->where.addr, a->msg1, sizeof(a->msg1)) < 0) {
		/* Not on the wire: tried again soon, and not counted (facts, 10). */
		a->send_retry_us = a->send_retry_us ? a->send_retry_us * 2 : SL_SEND_RETRY_MIN_US;
		if (a->send_retry_us > SL_SEND_RETRY_MAX_US)
			a->send_retry_us = SL_SEND_RETRY_MAX_US;
		a->next_send_us = now_us + a->send_retry_us;
		return;
	}
	a->send_retry_us = 0;
	if (!a->sent_once) {
		a->sent_once = true;
		a->first_sent_us = now_us;
		early_begin(l, a, now_us);
		count(l, SL_LINK_MSG1_TX);
	} else {
		a->resends++;
		a->next_early_us = UINT64_MAX; /* from here on the reference's times are close enough */
		count(l, SL_LINK_MSG1_RESENT);
	}
	wait = (double)c->resend_interval_us;
	for (unsigned i = 0; i < a->resends; i++)
		wait *= c->resend_backoff;
	a->next_send_us = a->resends < c->max_resends ? now_us + (uint64_t)wait : UINT64_MAX;
}

int
sl_attempt_start(
	struct sl_links *l, struct peer *p, const struct sl_addr *addr, bool rekey, uint64_t now_us)
{
	uint8_t noise[SL_NOISE_MSG1_BYTES];
	struct attempt *a;
	uint32_t rx_index;
	int rc;

	sl_peer_need_dh(l, p);
	rc = sl_session_index_reserve(l->table, p->owner, &rx_index);
	if (rc < 0) {
		count(l, SL_LINK_NO_INDEX);
		return rc;
	}
	a = sl_pool_get(&l->attempt_pool);
	if (!a) {
		count(l, SL_LINK_NO_MEMORY);
		sl_session_index_release(l->table, rx_index);
		return -ENOMEM;
	}
	a->peer = p;
	a->rx_index = rx_index;
	a->rekey = rekey;
	a->started_us = now_us;
	sl_bucket_init(&a->answers, SL_ANSWERS_BURST, SL_ANSWERS_PER_S, now_us);
	a->next = p->attempts;
	p->attempts = a;
	if (!rekey)
		p->dial_count++;
	l->attempt_of_slot[rx_index & l->view->slot_mask] = a;
	sl_addr_ref_file(l, &a->where, p, addr);
	l->work_us -= SL_COST_MSG1_US;
	sl_noise_initiate(&a->noise, noise, l->identity, &p->key, l->epoch, NULL);
	sl_msg1_build(a->msg1, rx_index, noise);
	attempt_send(l, a, now_us);
	return 0;
}

/* When an attempt is given up. A rekey has no time-out in the reference: it ends after the last
 * repetition. */
static uint64_t
attempt_end_us(const struct sl_links *l, const struct attempt *a)
{
	uint64_t end = a->started_us + l->config.handshake_timeout_us;

	return a->rekey ? end + 4 * l->config.resend_interval_us : end;
}

uint64_t
sl_attempts_due(const struct sl_links *l, const struct peer *p)
{
	uint64_t due = UINT64_MAX, t;

	for (const struct attempt *a = p->attempts; a; a = a->next) {
		t = attempt_end_us(l, a);
		if (a->next_send_us < t)
			t = a->next_send_us;
		if (a->sent_once && a->next_early_us < t)
			t = a->next_early_us;
		if (t < due)
			due = t;
	}
	return due;
}

void
sl_attempts_run(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	bool failed = false, unsent = false;
	struct attempt *next;

	for (struct attempt *a = p->attempts; a; a = next) {
		next = a->next;
		if (now_us >= attempt_end_us(l, a)) {
			count(l, a->rekey ? SL_LINK_REKEY_TIMEOUT : SL_LINK_HANDSHAKE_TIMEOUT);
			if (a->rekey)
				sl_link_log_rekey_failed(p, "no answer: goes on with the old keys");
			failed |= !a->rekey;
			unsent |= !a->sent_once;
			sl_attempt_end(l, a);
		} else if (now_us >= a->next_send_us) {
			/* A rekey goes where the peer is now (facts, 9.6). */
			if (a->rekey && p->where.filed &&
				!sl_addr_equal(&a->where.addr, &p->where.addr))
				sl_addr_ref_file(l, &a->where, p, &p->where.addr);
			attempt_send(l, a, now_us);
		} else if (a->sent_once && now_us >= a->next_early_us) {
			early_send(l, a, now_us);
		}
	}
	if (failed && !p->dial_count && !p->up)
		sl_peer_dial_failed(
			l, p, unsent ? "address not reachable" : "no answer to msg1", now_us);
}
