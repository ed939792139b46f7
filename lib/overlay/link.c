/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: making them, running what is due, and what the operator sees. */
#include "link_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

void
sl_links_config_default(struct sl_links_config *c)
{
	memset(c, 0, sizeof(*c));
	c->max_peers = 128;
	c->max_pending_inbound = 1000;
	c->handshake_burst = 100;
	c->handshake_rate_per_s = 10;
	c->handshake_timeout_us = 30000000;
	c->resend_interval_us = 1000000;
	c->resend_backoff = 2.0;
	c->max_resends = 5;
	c->heartbeat_us = 10000000;
	c->dead_timeout_us = 30000000;
	c->retry_max = 5;
	c->retry_base_us = 5000000;
	c->retry_max_backoff_us = 300000000;
	c->rekey_enabled = true;
	c->rekey_after_us = 120000000;
	c->rekey_after_messages = 65536;
	c->mmp_mode = 0;
}

/* Link layer facts, 14.1. */
static void
buckets_init(struct sl_links *l, uint64_t now_us)
{
	const struct sl_links_config *c = &l->config;
	double burst = c->handshake_burst, rate = c->handshake_rate_per_s;

	if (c->max_peers) {
		double after_s = (double)c->rekey_after_us / 1e6;

		burst = c->max_peers;
		rate = c->max_peers / (after_s < 1 ? 1 : after_s) * (1 + c->max_resends);
		if (rate < 1)
			rate = 1;
	}
	if (c->established_burst)
		burst = c->established_burst;
	if (c->established_rate_per_s > 0)
		rate = c->established_rate_per_s;
	l->established_burst = burst;
	l->established_rate_per_s = rate;
	sl_bucket_init(&l->established, burst, rate, now_us);
	sl_bucket_init(&l->early, SL_EARLY_BURST, SL_EARLY_RATE_PER_S, now_us);
	sl_bucket_init(&l->retries, SL_RETRIES_PER_S, SL_RETRIES_PER_S, now_us);
}

static bool
config_valid(const struct sl_links_config *c)
{
	return c->handshake_burst && c->handshake_rate_per_s > 0 && c->handshake_timeout_us &&
	       c->resend_interval_us && c->resend_backoff >= 1 && c->heartbeat_us &&
	       c->dead_timeout_us && c->retry_base_us && c->max_pending_inbound &&
	       c->rekey_after_us >= 1000000 && c->rekey_after_messages;
}

static int
tables_init(struct sl_links *l)
{
	uint32_t rows = l->view->max_peers;

	if (sl_map_init(&l->peers, rows * 2) < 0 || sl_map_init(&l->addrs, rows * 4) < 0)
		return -ENOMEM;
	l->peer_of_id = calloc(rows, sizeof(*l->peer_of_id));
	l->free_ids = calloc(rows, sizeof(*l->free_ids));
	l->attempt_of_slot = calloc((size_t)l->view->slot_mask + 1, sizeof(*l->attempt_of_slot));
	l->answered = calloc(SL_ANSWERED_ENTRIES, sizeof(*l->answered));
	l->frame = malloc(SL_FRAME_MAX);
	if (!l->peer_of_id || !l->free_ids || !l->attempt_of_slot || !l->answered || !l->frame)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows; i++)
		l->free_ids[i] = i;
	l->free_count = rows;
	sl_pool_init(&l->peer_pool, sizeof(struct peer), 16);
	sl_pool_init(&l->attempt_pool, sizeof(struct attempt), 16);
	return 0;
}

struct sl_links *
sl_links_create(const struct sl_links_config *config, const struct sl_identity *identity,
	struct sl_session_table *table, const struct sl_aead_backend *aead,
	const struct sl_links_sink *sink, uint64_t now_us)
{
	struct sl_links *l;

	if (!config_valid(config) || !sink->transmit) {
		errno = EINVAL;
		return NULL;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->config = *config;
	l->identity = identity;
	l->table = table;
	l->view = sl_session_table_view(table);
	l->aead = aead;
	l->sink = *sink;
	l->now_us = now_us;
	sl_random(l->epoch, sizeof(l->epoch));
	sl_random(&l->hash_key, sizeof(l->hash_key));
	if (sl_admission_init(l, now_us) < 0)
		goto fail;
	buckets_init(l, now_us);
	if (tables_init(l) < 0)
		goto fail;
	l->aead_ctx = aead->create(1);
	if (!l->aead_ctx)
		goto fail;
	return l;
fail:
	sl_links_destroy(l);
	errno = ENOMEM;
	return NULL;
}

/* Drops a record with everything it holds, without a word to anyone. */
static void
peer_erase(struct sl_links *l, struct peer *p)
{
	l->sink.peer_down = NULL;
	if (p->up)
		sl_peer_down(l, p, SL_DOWN_REMOVED, l->now_us);
	sl_attempts_end(l, p, true);
	sl_candidates_drop(l, p);
	p->configured = false;
	sl_peer_settle(l, p);
}

void
sl_links_destroy(struct sl_links *l)
{
	if (!l)
		return;
	while (l->all)
		peer_erase(l, l->all);
	if (l->aead_ctx)
		l->aead->destroy(l->aead_ctx);
	sl_pool_fini(&l->attempt_pool);
	sl_pool_fini(&l->peer_pool);
	if (l->frame)
		sl_wipe(l->frame, SL_FRAME_MAX);
	free(l->frame);
	free(l->answered);
	sl_admission_fini(l);
	sl_due_fini(&l->due);
	free(l->attempt_of_slot);
	free(l->free_ids);
	free(l->peer_of_id);
	sl_map_fini(&l->addrs);
	sl_map_fini(&l->peers);
	sl_wipe(l, sizeof(*l));
	free(l);
}

int
sl_links_transport_add(struct sl_links *l, const struct sl_transport_config *t)
{
	struct transport *to = &l->transports[t->id];

	if (t->mtu < SL_MSG1_PACKET_BYTES || t->mtu > SL_FRAME_MAX ||
		(t->kind != SL_ADDR_UDP4 && t->kind != SL_ADDR_ETH))
		return -EINVAL;
	if (to->known)
		return -EEXIST;
	to->known = true;
	to->accept = t->accept_connections;
	to->kind = t->kind;
	to->mtu = t->mtu;
	return 0;
}

int
sl_links_own_addr_add(struct sl_links *l, const struct sl_addr *addr)
{
	if (l->own_count == SL_OWN_ADDRS_MAX)
		return -ENOSPC;
	l->own[l->own_count++] = *addr;
	return 0;
}

/* --- time --- */

static void
peer_run(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	if (p->up)
		sl_liveness_run(l, p, now_us);
	sl_sessions_run(l, p, now_us);
	if (p->up)
		sl_rekey_check(l, p, now_us);
	sl_attempts_run(l, p, now_us);
	sl_peer_settle(l, p);
}

uint64_t
sl_links_tick(struct sl_links *l, uint64_t now_us)
{
	struct sl_due_node *first;
	uint64_t next, dials;

	l->now_us = now_us;
	l->work_us = SL_TURN_TIMERS_US;
	for (unsigned n = 0; n < SL_PEERS_PER_TURN && l->work_us > 0; n++) {
		first = sl_due_first(&l->due);
		if (!first || first->us > now_us)
			break;
		l->work_us -= SL_COST_PEER_US;
		peer_run(l, sl_due_of(first, struct peer, due), now_us);
	}
	dials = sl_dial_queue_run(l, now_us);
	first = sl_due_first(&l->due);
	next = first ? first->us : now_us + SL_BEAT_US;
	if (dials < next)
		next = dials;
	return next < now_us ? now_us : next;
}

void
sl_links_shutdown(struct sl_links *l, enum sl_disconnect_reason reason, uint64_t now_us)
{
	(void)sl_links_shutdown_some(l, reason, UINT_MAX, now_us);
}

bool
sl_links_shutdown_some(struct sl_links *l, enum sl_disconnect_reason reason, unsigned most, uint64_t now_us)
{
	struct peer *next;

	l->now_us = now_us;
	l->closed = true;
	for (struct peer *p = l->all; p; p = next) {
		next = p->next_all;
		if (p->up) {
			if (!most--)
				return true;
			sl_disconnect_send(l, p, reason, now_us);
			sl_peer_down(l, p, SL_DOWN_REMOVED, now_us);
		}
		sl_attempts_end(l, p, true);
		sl_candidates_drop(l, p);
		p->dial_us = 0;
		sl_peer_settle(l, p);
	}
	return false;
}

int
sl_links_disconnect(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES],
	enum sl_disconnect_reason reason, uint64_t now_us)
{
	struct peer *p = sl_peer_find(l, xonly);

	if (!p)
		return -ENOENT;
	l->now_us = now_us;
	if (p->up) {
		sl_disconnect_send(l, p, reason, now_us);
		sl_peer_down(l, p, SL_DOWN_REMOVED, now_us);
	}
	sl_attempts_end(l, p, true);
	sl_candidates_drop(l, p);
	p->dial_us = 0;
	p->retrying = false;
	sl_peer_settle(l, p);
	return 0;
}

/* --- for the operator --- */

static void
info_add_slot(struct sl_link_info *i, const struct slot *slot)
{
	const struct sl_session *s = slot->s;

	if (!s)
		return;
	i->rx_frames += __atomic_load_n(&s->mmp.frames, __ATOMIC_RELAXED);
	i->rx_bytes += __atomic_load_n(&s->mmp.bytes, __ATOMIC_RELAXED);
	i->tx_frames += sl_nonce_used(&s->tx_counter);
	i->tx_bytes += __atomic_load_n(&s->tx_bytes, __ATOMIC_RELAXED);
	i->replays += __atomic_load_n(&s->replays, __ATOMIC_RELAXED);
	i->open_failures += __atomic_load_n(&s->open_failures, __ATOMIC_RELAXED);
}

static void
info_fill(const struct sl_links *l, const struct peer *p, struct sl_link_info *i)
{
	memset(i, 0, sizeof(*i));
	i->peer_id = p->up ? p->id : SL_PEER_NONE;
	memcpy(i->xonly, p->key.xonly, SL_XONLY_BYTES);
	memcpy(i->alias, p->alias, sizeof(i->alias));
	i->state = p->up			 ? "up"
		   : p->dial_count		 ? "dialling"
		   : p->dial_us || p->is_pending ? "waiting"
						 : "down";
	i->configured = p->configured;
	i->outbound = p->outbound;
	if (p->where.filed)
		i->addr = p->where.addr;
	else if (p->addr_count)
		i->addr = p->addrs[0];
	i->up_since_us = p->up ? p->up_since_us : 0;
	i->last_rx_us = p->up ? sl_peer_last_rx_us(p) : 0;
	i->next_dial_us = p->dial_us;
	i->dial_failures = p->dial_failures;
	if (p->current.s) {
		i->rx_index = p->current.s->rx_index;
		i->tx_index = p->current.s->tx_index;
		i->k = slot_k(&p->current);
	}
	i->rx_frames = p->gone.rx_frames;
	i->rx_bytes = p->gone.rx_bytes;
	i->tx_frames = p->gone.tx_frames;
	i->tx_bytes = p->gone.tx_bytes;
	i->replays = p->gone.replays;
	i->open_failures = p->gone.open_failures;
	info_add_slot(i, &p->current);
	info_add_slot(i, &p->previous);
	for (unsigned c = 0; c < SL_CANDIDATES; c++)
		info_add_slot(i, &p->candidates[c]);
	i->rekeys = p->rekeys;
	sl_metrics_fill(&i->metrics, &p->metrics);
	i->last_error = p->last_error;
}

void
sl_links_for_each(const struct sl_links *l, sl_link_info_fn fn, void *arg)
{
	struct sl_link_info info;

	for (const struct peer *p = l->all; p; p = p->next_all) {
		info_fill(l, p, &info);
		fn(arg, &info);
	}
}

const uint64_t *
sl_links_counters(const struct sl_links *l)
{
	return l->counters;
}

const char *
sl_link_counter_name(enum sl_link_counter c)
{
#define NAME(id, name) [SL_LINK_##id] = name,
	static const char *const names[] = {SL_LINK_COUNTERS(NAME)};

	return (unsigned)c < SL_LINK_COUNTER_COUNT ? names[c] : "unknown";
}
