/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers and their schedule; the doors of the library. */
#include "../sl_backoff.h"
#include "traversal_internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *
sl_traversal_counter_name(enum sl_traversal_counter c)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_TRAVERSAL_COUNTERS(NAME)
#undef NAME
	};
	return names[c];
}

void
sl_traversal_config_default(struct sl_traversal_config *c)
{
	*c = (struct sl_traversal_config){
		.signal_ttl_ms = 120000,
		.replay_window_ms = 300000,
		.punch = {.delay_ms = 2000, .interval_ms = 200, .duration_ms = 10000, .timeout_ms = 10000},
		.max_concurrent_incoming_offers = 16,
		.max_concurrent_offers_per_npub = 4,
		.seen_sessions_max = 2048,
		.failure_streak_threshold = 5,
		.extended_cooldown_us = 1800000000ull,
		.handshake_timeout_us = 30000000,
		.retry_base_us = 5000000,
		.retry_max_us = 300000000,
		.peers_max = 4096,
	};
}

struct sl_traversal *
sl_traversal_create(const struct sl_traversal_config *config, const struct sl_traversal_sink *sink, uint64_t now_us)
{
	struct sl_traversal *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->config = *config;
	t->sink = *sink;
	t->now_us = now_us;
	if (t->config.seen_sessions_max == 0)
		t->config.seen_sessions_max = 1;
	sl_node_addr_from_xonly(&t->self, config->self);
	t->session_count = SL_OWN_SESSIONS + t->config.max_concurrent_incoming_offers;
	t->peers = calloc(t->config.peers_max ? t->config.peers_max : 1, sizeof(*t->peers));
	t->sessions = calloc(t->session_count, sizeof(*t->sessions));
	t->seen = calloc(t->config.seen_sessions_max, sizeof(*t->seen));
	if (t->peers && t->sessions && t->seen)
		return t;
	sl_traversal_destroy(t);
	errno = ENOMEM;
	return NULL;
}

void
sl_traversal_destroy(struct sl_traversal *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; t->peers && i < t->peer_count; i++)
		free(t->peers[i]);
	free(t->peers);
	free(t->sessions);
	free(t->seen);
	free(t);
}

int
sl_trav_udp(void *traversal, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct sl_traversal *t = traversal;

	return t->sink.udp(t->sink.arg, to, packet, len);
}

static void
listen_update(struct sl_traversal *t)
{
	const bool on = t->observer.asking || t->observer.checking || sl_trav_sessions_waiting(t, SESSION_PUNCH) ||
			sl_trav_sessions_waiting(t, SESSION_LINGER);

	if (on == t->listening)
		return;
	t->listening = on;
	if (t->sink.listening)
		t->sink.listening(t->sink.arg, on);
}

/* --- peers ------------------------------------------------------------------------------------ */

static uint32_t
bucket_of(const uint8_t xonly[SL_XONLY_BYTES])
{
	return (xonly[7] | (uint32_t)xonly[23] << 8) % SL_TRAVERSAL_BUCKETS;
}

struct trav_peer *
sl_trav_peer_find(const struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct trav_peer *p = t->bucket[bucket_of(xonly)];

	while (p && memcmp(p->xonly, xonly, SL_XONLY_BYTES) != 0)
		p = p->chain;
	return p;
}

static void
bucket_leave(struct sl_traversal *t, const struct trav_peer *p)
{
	struct trav_peer **at = &t->bucket[bucket_of(p->xonly)];

	while (*at != p)
		at = &(*at)->chain;
	*at = p->chain;
}

static bool
is_transient(const struct trav_peer *p)
{
	return !p->wanted && p->sessions == 0;
}

/* When there are too many that nobody wants, the one untouched for longest goes. */
static void
make_room(struct sl_traversal *t)
{
	uint32_t transient = 0, oldest = 0;

	/* With peers in thousands, nearly all of them wanted, a walk for each new one is a walk too many. */
	if (t->peer_count < t->config.peers_max && t->peer_count - t->wanted_count < SL_TRANSIENT_PEERS)
		return;
	for (uint32_t i = 0; i < t->peer_count; i++) {
		if (!is_transient(t->peers[i]))
			continue;
		if (transient++ == 0 || t->peers[i]->touched_us < t->peers[oldest]->touched_us)
			oldest = i;
	}
	if (transient == 0 || (transient < SL_TRANSIENT_PEERS && t->peer_count < t->config.peers_max))
		return;
	bucket_leave(t, t->peers[oldest]);
	free(t->peers[oldest]);
	t->peers[oldest] = t->peers[--t->peer_count];
}

struct trav_peer *
sl_trav_peer_get(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct trav_peer *p = sl_trav_peer_find(t, xonly);
	char npub[SL_NPUB_SIZE];

	if (p)
		return p;
	make_room(t);
	if (t->peer_count == t->config.peers_max)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	memcpy(p->xonly, xonly, SL_XONLY_BYTES);
	sl_node_addr_from_xonly(&p->addr, xonly);
	sl_npub_format(npub, xonly);
	snprintf(p->name, sizeof(p->name), "%s", npub);
	p->touched_us = p->state_us = t->now_us;
	p->chain = t->bucket[bucket_of(xonly)];
	t->bucket[bucket_of(xonly)] = p;
	t->peers[t->peer_count++] = p;
	return p;
}

static const char *
state_name(uint8_t state)
{
	static const char *const names[] = {[PEER_IDLE] = "idle", [PEER_WAITING] = "waiting",
		[PEER_OBSERVING] = "observing", [PEER_OFFERED] = "offered", [PEER_PUNCHING] = "punching",
		[PEER_HANDSHAKE] = "handshake", [PEER_UP] = "up", [PEER_COOLDOWN] = "cooldown"};

	return names[state];
}

void
sl_trav_peer_state(struct sl_traversal *t, struct trav_peer *p, enum peer_state state)
{
	p->touched_us = t->now_us;
	if (p->state == state)
		return;
	p->state = (uint8_t)state;
	p->state_us = t->now_us;
	/* The first try is told step by step; a repetition only when it ends otherwise. */
	if (state == PEER_OFFERED || state == PEER_PUNCHING)
		sl_log(p->failures ? SL_LOG_DEBUG : SL_LOG_INFO, SL_TOPIC_LINK, "way to %s: %s", p->name,
			state == PEER_OFFERED ? "offered through relays" : "punching");
}

/* No session of it runs any more: what it is between tries. */
static void
settle(struct sl_traversal *t, struct trav_peer *p)
{
	if (p->up)
		sl_trav_peer_state(t, p, PEER_UP);
	else if (!p->wanted)
		sl_trav_peer_state(t, p, PEER_IDLE);
	else
		sl_trav_peer_state(t, p, p->streak >= t->config.failure_streak_threshold && p->next_us > t->now_us ?
			PEER_COOLDOWN : PEER_WAITING);
}

static uint64_t
backoff_us(const struct sl_traversal *t, uint32_t count)
{
	return sl_backoff(t->config.retry_base_us, t->config.retry_max_us, count);
}

static void
tell_failure(struct sl_traversal *t, struct trav_peer *p, bool own)
{
	const bool symmetric = t->observer.nat == SL_NAT_SYMMETRIC;

	if (strcmp(p->error, p->logged_error) == 0)
		return;
	memcpy(p->logged_error, p->error, sizeof(p->logged_error));
	if (!own || !p->wanted)
		sl_log(SL_LOG_INFO, SL_TOPIC_LINK, "no direct path to %s, who asked for one: %s%s; what is for it goes through the mesh", p->name, p->error,
			symmetric ? " (our NAT is symmetric)" : "");
	else
		sl_log(SL_LOG_WARNING, SL_TOPIC_LINK,
			"no direct path to %s: %s%s; what is for it goes through the mesh; next try in %llu s", p->name, p->error,
			symmetric ? " (our NAT is symmetric)" : "", (unsigned long long)((p->next_us - t->now_us) / 1000000));
}

void
sl_trav_peer_failed(struct sl_traversal *t, struct trav_peer *p, bool own, const char *error)
{
	snprintf(p->error, sizeof(p->error), "%s", error);
	p->error_us = t->now_us;
	if (own && !p->up) {
		p->failures++;
		p->streak++;
		p->next_us = t->now_us + backoff_us(t, p->failures);
		if (p->streak >= t->config.failure_streak_threshold) {
			p->next_us = t->now_us + t->config.extended_cooldown_us;
			if (p->streak == t->config.failure_streak_threshold && t->sink.doubted)
				t->sink.doubted(t->sink.arg, p->xonly);
		}
	}
	if (!p->up)
		tell_failure(t, p, own);
	if (own || p->sessions == 0)
		settle(t, p);
}

void
sl_trav_peer_punched(struct sl_traversal *t, struct trav_peer *p, const struct sl_addr *remote)
{
	char text[SL_ADDR_TEXT_SIZE];
	int rc;

	p->remote = *remote;
	p->punched_us = t->now_us;
	if (p->up) { /* it has lost the link that we still hold: it dials */
		sl_trav_peer_state(t, p, PEER_UP);
		return;
	}
	sl_addr_format(text, remote);
	rc = t->sink.punched(t->sink.arg, p->xonly, remote);
	if (rc != 0 && rc != -EISCONN && rc != -EALREADY) {
		sl_trav_peer_failed(t, p, true, "punched, but it cannot be dialled");
		return;
	}
	sl_log(SL_LOG_NOTICE, SL_TOPIC_LINK, "way to %s: open, at %s", p->name, text);
	sl_trav_peer_state(t, p, PEER_HANDSHAKE);
	p->handshake_until_us = t->now_us + t->config.handshake_timeout_us;
}

/* --- what it is told -------------------------------------------------------------------------- */

int
sl_traversal_server(struct sl_traversal *t, unsigned i, const char *text, const struct sl_addr *addr)
{
	if (i >= SL_STUN_SERVERS_MAX)
		return -ENOSPC;
	snprintf(t->server_text[i], sizeof(t->server_text[i]), "%s", text);
	t->servers[i] = *addr;
	if (i >= t->server_count)
		t->server_count = i + 1;
	return 0;
}

void
sl_traversal_local(struct sl_traversal *t, const struct sl_addr *addrs, unsigned count)
{
	t->local_count = count < SL_TRAVERSAL_LOCAL_MAX ? count : SL_TRAVERSAL_LOCAL_MAX;
	memcpy(t->local, addrs, t->local_count * sizeof(*addrs));
}

/* Tries of ours are given up: the peer is not wanted, or there already. */
static void
end_own(struct sl_traversal *t, const struct trav_peer *p)
{
	for (uint32_t i = 0; i < t->session_count; i++) {
		struct trav_session *s = &t->sessions[i];

		if (s->used && s->own && s->peer == p && s->phase != SESSION_LINGER)
			sl_trav_session_end(t, s);
	}
}

int
sl_traversal_want(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES], const char *name, bool wanted,
	uint64_t now_us)
{
	struct trav_peer *p = wanted ? sl_trav_peer_get(t, xonly) : sl_trav_peer_find(t, xonly);

	t->now_us = now_us;
	if (p == NULL)
		return wanted ? -ENOSPC : 0;
	if (name && name[0])
		snprintf(p->name, sizeof(p->name), "%s", name);
	if (p->wanted == wanted)
		return 0;
	p->wanted = wanted;
	t->wanted_count += wanted ? 1 : (uint32_t)-1;
	p->touched_us = now_us;
	if (!wanted)
		end_own(t, p);
	else
		p->next_us = now_us;
	if (p->sessions == 0)
		settle(t, p);
	listen_update(t);
	return 0;
}

void
sl_traversal_link(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES], bool up, uint64_t now_us)
{
	struct trav_peer *p = sl_trav_peer_find(t, xonly);

	if (p == NULL)
		return;
	p->named = true;
	if (p->up == up)
		return;
	t->now_us = now_us;
	p->up = up;
	if (up) {
		end_own(t, p);
		p->failures = p->streak = 0;
		p->logged_error[0] = '\0';
		p->next_us = 0;
		sl_trav_peer_state(t, p, PEER_UP);
	} else {
		p->next_us = now_us + t->config.retry_base_us;
		settle(t, p);
	}
	listen_update(t);
}

void
sl_traversal_links_begin(struct sl_traversal *t)
{
	for (uint32_t i = 0; i < t->peer_count; i++)
		t->peers[i]->named = false;
}

void
sl_traversal_links_end(struct sl_traversal *t, uint64_t now_us)
{
	for (uint32_t i = 0; i < t->peer_count; i++)
		if (!t->peers[i]->named && t->peers[i]->up)
			sl_traversal_link(t, t->peers[i]->xonly, false, now_us);
}

void
sl_traversal_refreshed(struct sl_traversal *t, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us)
{
	struct trav_peer *p = sl_trav_peer_find(t, xonly);

	if (p == NULL)
		return;
	t->now_us = now_us;
	p->streak = p->failures = 0;
	if (p->state != PEER_WAITING && p->state != PEER_COOLDOWN)
		return;
	p->next_us = now_us;
	settle(t, p);
}

void
sl_traversal_packet(struct sl_traversal *t, const struct sl_addr *from, const uint8_t *packet, size_t len,
	uint64_t now_us, uint64_t unix_ms)
{
	t->now_us = now_us;
	t->unix_ms = unix_ms;
	if (!sl_trav_sessions_packet(t, from, packet, len) && !sl_trav_observe_packet(t, from, packet, len))
		trav_count(t, SL_TRAVERSAL_PACKET_UNKNOWN);
	listen_update(t);
}

static uint64_t
peer_tick(struct sl_traversal *t, struct trav_peer *p)
{
	switch (p->state) {
	case PEER_WAITING:
	case PEER_COOLDOWN:
		if (t->now_us < p->next_us)
			return p->next_us;
		if (!sl_trav_session_start(t, p))
			p->next_us = t->now_us + 1000000;
		return t->now_us;
	case PEER_HANDSHAKE:
		if (t->now_us < p->handshake_until_us)
			return p->handshake_until_us;
		trav_count(t, SL_TRAVERSAL_HANDSHAKE_TIMEOUT);
		sl_trav_peer_failed(t, p, p->wanted, "punched, but the handshake came to nothing");
		settle(t, p);
		return t->now_us;
	default:
		return UINT64_MAX;
	}
}

uint64_t
sl_traversal_tick(struct sl_traversal *t, uint64_t now_us, uint64_t unix_ms)
{
	uint64_t due = UINT64_MAX, next;

	t->now_us = now_us;
	t->unix_ms = unix_ms;
	next = sl_trav_observe_tick(t);
	due = next < due ? next : due;
	next = sl_trav_sessions_tick(t);
	due = next < due ? next : due;
	/* Last: what has failed above has its next try planned. */
	for (uint32_t i = 0; i < t->peer_count; i++) {
		next = peer_tick(t, t->peers[i]);
		due = next < due ? next : due;
	}
	listen_update(t);
	return due > now_us ? due : now_us + 1000; /* something was begun: soon again */
}

/* --- for the operator ------------------------------------------------------------------------- */

const uint64_t *
sl_traversal_counters(const struct sl_traversal *t)
{
	return t->counters;
}

const uint64_t *
sl_traversal_signal_errors(const struct sl_traversal *t)
{
	return t->signal_errors;
}

void
sl_traversal_observed(const struct sl_traversal *t, struct sl_traversal_observation *out)
{
	const struct observer *o = &t->observer;

	*out = (struct sl_traversal_observation){.nat = o->nat,
		.nat_name = sl_trav_nat_name(o->nat),
		.mapped = o->mapped,
		.server = o->mapped.kind != SL_ADDR_NONE ? t->server_text[o->server] : NULL,
		.mapped_us = o->mapped_us,
		.error = o->error,
		.tried_us = o->tried_us};
}

void
sl_traversal_for_each(const struct sl_traversal *t, sl_traversal_info_fn fn, void *arg)
{
	for (uint32_t i = 0; i < t->peer_count; i++) {
		const struct trav_peer *p = t->peers[i];
		struct sl_traversal_info info = {.name = p->name,
			.state = state_name(p->state),
			.role = "",
			.wanted = p->wanted,
			.state_us = p->state_us,
			.next_us = p->state == PEER_WAITING || p->state == PEER_COOLDOWN ? p->next_us : 0,
			.attempts = p->attempts,
			.failures = p->streak,
			.last_error = p->error[0] ? p->error : NULL,
			.last_error_us = p->error_us,
			.last_punched_us = p->punched_us,
			.remote = p->remote,
			.has_skew = p->has_skew,
			.skew_ms = p->skew_ms};

		memcpy(info.xonly, p->xonly, SL_XONLY_BYTES);
		for (uint32_t k = 0; k < t->session_count; k++)
			if (t->sessions[k].used && t->sessions[k].peer == p && t->sessions[k].phase != SESSION_LINGER)
				info.role = t->sessions[k].own ? "offer" : "answer";
		fn(arg, &info);
	}
}
