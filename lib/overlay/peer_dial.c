/* SPDX-License-Identifier: BSD-3-Clause */
/* Configured peers: which addresses are dialled, and when again. Peering facts, sections 3 and 4.
 */
#include "sl_backoff.h"
#include "link_internal.h"

#include <errno.h>

static bool
usable(const struct sl_links *l, const struct sl_addr *a)
{
	return a->kind != SL_ADDR_NONE && l->transports[a->transport].known &&
	       sl_addr_answerable(l, a);
}

static void
schedule(struct sl_links *l, struct peer *p, uint32_t first_count, uint64_t now_us)
{
	p->retry_count = p->retrying ? p->retry_count + 1 : first_count;
	p->retrying = true;
	p->dial_us = now_us + sl_backoff(l->config.retry_base_us, l->config.retry_max_backoff_us, p->retry_count);
}

void
sl_peer_dial_failed(struct sl_links *l, struct peer *p, const char *why, uint64_t now_us)
{
	p->dial_failures++;
	p->early_limit /= 2; /* nobody hears us there */
	p->early_credit = p->early_limit;
	p->last_error = why;
	p->dial_us = 0;
	if (l->closed || !p->configured || !p->auto_connect || !l->config.retry_max)
		return;
	schedule(l, p, 1, now_us);
}

void
sl_peer_redial_after_loss(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	if (l->closed || !p->configured || !p->auto_connect || !p->auto_reconnect)
		return;
	schedule(l, p, 0, now_us);
}

void
sl_peer_dial_done(struct peer *p)
{
	p->retrying = false;
	p->retry_count = 0;
	p->dial_us = 0;
	p->last_error = NULL;
}

/* May it start now? Otherwise dial_us says when to ask again. */
static bool
round_allowed(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	if (l->config.max_peers && l->up_count >= l->config.max_peers) {
		count(l, SL_LINK_MAX_PEERS);
		p->last_error = "max_peers reached";
		sl_link_log_refused(l, p->key.xonly, p->last_error);
		p->dial_us = now_us + l->config.retry_base_us;
		return false;
	}
	return true;
}

void
sl_peer_dial_round(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	unsigned started = 0, looked = 0;
	uint8_t at = p->addr_next;
	int rc = -ENETUNREACH;

	if (l->closed || p->dial_count) {
		p->dial_us = 0;
		return;
	}
	if (!round_allowed(l, p, now_us))
		return;
	p->dial_us = 0;
	if (!sl_peer_allowed(l, p->key.xonly)) {
		count(l, SL_LINK_NOT_ALLOWED);
		sl_link_log_refused(l, p->key.xonly, "not on the access list");
		sl_peer_dial_failed(l, p, "refused by the access list", now_us);
		return;
	}
	for (; looked < p->addr_count && started < SL_DIALS_MAX; looked++) {
		const struct sl_addr *a = &p->addrs[(at + looked) % p->addr_count];

		if (!usable(l, a))
			continue;
		rc = sl_attempt_start(l, p, a, false, now_us);
		if (rc == 0)
			started++;
	}
	/* More addresses than go at once: the next round takes the others first. */
	if (looked < p->addr_count)
		p->addr_next = (uint8_t)((at + looked) % p->addr_count);
	else
		p->addr_next = 0;
	if (!started)
		sl_peer_dial_failed(l, p,
			rc == -ENETUNREACH ? "no usable address" : "no session index free", now_us);
}

/* --- whose time has come --- */

static void
dial_queue_remove(struct sl_links *l, struct peer *p)
{
	struct dial_queue *q = &l->dial_queue[p->dial_queued];

	if (p->prev_dial)
		p->prev_dial->next_dial = p->next_dial;
	else
		q->first = p->next_dial;
	if (p->next_dial)
		p->next_dial->prev_dial = p->prev_dial;
	else
		q->last = p->prev_dial;
	p->prev_dial = p->next_dial = NULL;
	p->dial_queued = -1;
}

void
sl_dial_queue_update(struct sl_links *l, struct peer *p)
{
	int8_t want = p->dial_us && p->dial_us <= l->now_us && !p->up ? p->retrying : -1;
	struct dial_queue *q;

	if (want == p->dial_queued)
		return;
	if (p->dial_queued >= 0)
		dial_queue_remove(l, p);
	if (want < 0)
		return;
	q = &l->dial_queue[want];
	p->dial_queued = want;
	p->prev_dial = q->last;
	if (q->last)
		q->last->next_dial = p;
	else
		q->first = p;
	q->last = p;
}

uint64_t
sl_dial_queue_run(struct sl_links *l, uint64_t now_us)
{
	struct peer *p;

	l->work_us = SL_TURN_DIALS_US;
	while (l->work_us > 0 && (p = l->dial_queue[0].first)) {
		l->work_us -= SL_COST_PEER_US;
		sl_peer_dial_round(l, p, now_us);
		sl_peer_settle(l, p);
	}
	while (l->work_us > 0 && (p = l->dial_queue[1].first)) {
		if (!sl_bucket_take(&l->retries, now_us))
			return now_us + 1000000 / SL_RETRIES_PER_S / 4;
		l->work_us -= SL_COST_PEER_US;
		sl_peer_dial_round(l, p, now_us);
		sl_peer_settle(l, p);
	}
	return l->dial_queue[0].first || l->dial_queue[1].first ? now_us : UINT64_MAX;
}

static bool
is_ourselves(const struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES])
{
	return memcmp(xonly, sl_identity_xonly(l->identity), SL_XONLY_BYTES) == 0;
}

/* The record of a key, made if need be. NULL and errno: EEXIST (ourselves), EINVAL (no key), ENOMEM. */
static struct peer *
peer_of_key(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us)
{
	struct peer *p;

	if (is_ourselves(l, xonly)) {
		errno = EEXIST;
		return NULL;
	}
	p = sl_peer_find(l, xonly);
	return p ? p : sl_peer_create(l, xonly, now_us);
}

int
sl_links_peer_configure(struct sl_links *l, const struct sl_peer_config *c, uint64_t now_us)
{
	struct peer *p;

	if (c->addr_count > SL_PEER_ADDRS_MAX)
		return -EINVAL;
	if (l->closed)
		return -ESHUTDOWN;
	l->now_us = now_us;
	p = peer_of_key(l, c->xonly, now_us);
	if (!p)
		return -errno;
	p->configured = true;
	p->auto_connect = c->auto_connect;
	p->auto_reconnect = c->auto_reconnect;
	p->first_flight = c->first_flight;
	p->early_limit = p->early_credit = SL_EARLY_COPIES;
	memcpy(p->alias, c->alias, sizeof(p->alias));
	p->alias[sizeof(p->alias) - 1] = '\0';
	memcpy(p->addrs, c->addrs, sizeof(p->addrs));
	p->addr_count = c->addr_count;
	p->addr_next = 0;
	for (unsigned i = 0; i < c->addr_count; i++)
		sl_home_note(l, &c->addrs[i], now_us);
	/* Afresh: a dial under way may be to an address that is no longer meant, and late in its
	 * back-off. */
	p->retrying = false;
	p->dial_us = 0;
	if (c->auto_connect && !p->up) {
		sl_attempts_end(l, p, false);
		p->dial_us = now_us;
	}
	sl_peer_settle(l, p);
	return 0;
}

int
sl_links_dial(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr,
	uint64_t now_us)
{
	struct peer *p;
	int rc = 0;

	if (is_ourselves(l, xonly))
		return -EEXIST;
	if (l->closed)
		return -ESHUTDOWN;
	l->now_us = now_us;
	if (!usable(l, addr))
		return -ENETUNREACH;
	if (!sl_peer_allowed(l, xonly)) {
		count(l, SL_LINK_NOT_ALLOWED);
		sl_link_log_refused(l, xonly, "not on the access list");
		return -EACCES;
	}
	p = peer_of_key(l, xonly, now_us);
	if (!p)
		return -errno;
	if (p->up)
		return -EISCONN;
	for (const struct attempt *a = p->attempts; a; a = a->next)
		if (sl_addr_equal(&a->where.addr, addr))
			rc = -EALREADY;
	if (rc == 0 && p->dial_count >= SL_DIALS_MAX)
		rc = -EBUSY;
	if (rc == 0)
		rc = sl_attempt_start(l, p, addr, false, now_us);
	sl_peer_settle(l, p);
	return rc;
}
