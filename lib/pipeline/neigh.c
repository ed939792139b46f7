/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour cache: who is known, who is asked, and when to ask again. */
#include <errno.h>
#include <stdlib.h>
#include "neigh_int.h"

static const char *const counter_names[SL_NEIGH_COUNTER_COUNT] = {
#define NAME(id, name, what) [SL_NEIGH_##id] = name,
	SL_NEIGH_COUNTERS(NAME)
#undef NAME
};

const char *
sl_neigh_counter_name(enum sl_neigh_counter c)
{
	return (unsigned)c < SL_NEIGH_COUNTER_COUNT ? counter_names[c] : "unknown";
}

const uint64_t *
sl_neigh_counters(const struct sl_neigh *n)
{
	return n->counters;
}

struct sl_neigh *
sl_neigh_create(const struct sl_neigh_config *config, const struct sl_neigh_sink *sink, uint64_t now_us)
{
	struct sl_neigh *n = calloc(1, sizeof(*n));
	uint32_t buckets = 64;

	if (!n)
		return NULL;
	if (config)
		n->config = *config;
	if (!n->config.entries_max)
		n->config.entries_max = 1024;
	if (!n->config.reachable_us)
		n->config.reachable_us = 30000000;
	if (!n->config.retry_us)
		n->config.retry_us = 1000000;
	if (n->config.echo_per_s <= 0)
		n->config.echo_per_s = 100;
	if (n->config.echo_burst <= 0)
		n->config.echo_burst = 100;
	if (n->config.answer_per_s <= 0)
		n->config.answer_per_s = 1000;
	if (n->config.answer_burst <= 0)
		n->config.answer_burst = 1000;
	n->sink = *sink;
	while (buckets < n->config.entries_max && buckets < 1u << 20)
		buckets *= 2;
	n->hash_mask = buckets - 1;
	n->table = calloc(n->config.entries_max, sizeof(*n->table));
	n->heads = malloc(buckets * sizeof(*n->heads));
	if (!n->table || !n->heads) {
		sl_neigh_destroy(n);
		errno = ENOMEM;
		return NULL;
	}
	memset(n->heads, 0xff, buckets * sizeof(*n->heads));
	for (uint32_t i = 0; i < n->config.entries_max; i++)
		n->table[i].next = i + 1 < n->config.entries_max ? i + 1 : NEIGH_NONE;
	sl_bucket_init(&n->echo, n->config.echo_burst, n->config.echo_per_s, now_us);
	sl_bucket_init(&n->answer, n->config.answer_burst, n->config.answer_per_s, now_us);
	n->next_due_us = UINT64_MAX;
	return n;
}

void
sl_neigh_destroy(struct sl_neigh *n)
{
	if (!n)
		return;
	if (n->table)
		for (uint32_t i = 0; i < n->config.entries_max; i++)
			free(n->table[i].frame);
	free(n->table);
	free(n->heads);
	free(n);
}

/* --- table -------------------------------------------------------------------------------------------------------- */

static uint32_t *
chain(const struct sl_neigh *n, uint16_t port, uint8_t family, const uint8_t *ip)
{
	uint64_t h = 0xcbf29ce484222325ull ^ port ^ (uint64_t)family << 32;

	for (size_t i = 0; i < neigh_ip_bytes(family); i++)
		h = (h ^ ip[i]) * 0x100000001b3ull;
	return &n->heads[(h ^ h >> 32) & n->hash_mask];
}

struct neigh *
neigh_find(const struct sl_neigh *n, uint16_t port, uint8_t family, const uint8_t *ip)
{
	for (uint32_t i = *chain(n, port, family, ip); i != NEIGH_NONE; i = n->table[i].next) {
		struct neigh *e = &n->table[i];

		if (e->port == port && e->family == family && memcmp(e->ip, ip, neigh_ip_bytes(family)) == 0)
			return e;
	}
	return NULL;
}

static void
set_due(struct sl_neigh *n, struct neigh *e, uint64_t due_us)
{
	e->due_us = due_us;
	if (due_us < n->next_due_us)
		n->next_due_us = due_us;
}

static void
drop_frame(struct sl_neigh *n, struct neigh *e)
{
	if (!e->frame)
		return;
	free(e->frame);
	e->frame = NULL;
	neigh_count(n, SL_NEIGH_QUEUE_DROPPED);
}

static void
forget(struct sl_neigh *n, struct neigh *e)
{
	const uint32_t index = (uint32_t)(e - n->table);
	uint32_t *link = chain(n, e->port, e->family, e->ip);

	while (*link != index)
		link = &n->table[*link].next;
	*link = e->next;
	drop_frame(n, e);
	memset(e, 0, sizeof(*e));
	e->next = n->free_head;
	n->free_head = index;
}

/* Makes room by forgetting the least recently used neighbour that nobody holds. */
static bool
evict(struct sl_neigh *n)
{
	struct neigh *oldest = NULL;

	for (uint32_t i = 0; i < n->config.entries_max; i++) {
		struct neigh *e = &n->table[i];

		if (e->state != NEIGH_FREE && e->holds == 0 && (!oldest || e->used_us < oldest->used_us))
			oldest = e;
	}
	if (!oldest)
		return false;
	forget(n, oldest);
	neigh_count(n, SL_NEIGH_EVICTED);
	return true;
}

/* --- states ------------------------------------------------------------------------------------------------------- */

static void
ask(struct sl_neigh *n, struct neigh *e, const uint8_t *mac)
{
	neigh_count(n, SL_NEIGH_REQUESTS_SENT);
	if (e->family == 4)
		neigh_arp_request(n, e->port, e->ip, mac);
	else
		neigh_nd_request(n, e->port, e->ip, mac);
}

static void
tell_changed(struct sl_neigh *n, const struct neigh *e)
{
	struct sl_ifaddr ip = {.family = e->family, .prefix_len = e->family == 4 ? 32 : 128};
	uint8_t mac[6];

	memcpy(ip.ip, e->ip, sizeof(ip.ip));
	memcpy(mac, e->mac, sizeof(mac));
	n->sink.changed(n->sink.arg, e->port, &ip, e->has_mac ? mac : NULL);
}

static void
enter_incomplete(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	e->state = NEIGH_INCOMPLETE;
	e->tries = 1;
	set_due(n, e, now_us + n->config.retry_us);
	ask(n, e, NULL);
}

static void
enter_probe(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	uint8_t mac[6];

	e->state = NEIGH_PROBE;
	e->tries = 1;
	set_due(n, e, now_us + n->config.retry_us);
	memcpy(mac, e->mac, sizeof(mac));
	ask(n, e, mac);
}

static void
enter_stale(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	if (e->holds) {
		enter_probe(n, e, now_us);
		return;
	}
	e->state = NEIGH_STALE;
	set_due(n, e, (e->used_us > now_us ? e->used_us : now_us) + NEIGH_STALE_US);
}

/* Held neighbours are confirmed again early enough for all tries to end before the time is over. */
static void
schedule_reachable(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	const uint64_t tries_us = (NEIGH_TRIES + 1) * n->config.retry_us;
	uint64_t lifetime = n->config.reachable_us;

	if (e->holds)
		lifetime = lifetime > 2 * tries_us ? lifetime - tries_us : lifetime / 2;
	set_due(n, e, e->confirmed_us + lifetime > now_us ? e->confirmed_us + lifetime : now_us + 1);
}

static void
enter_failed(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	const bool had = e->has_mac;

	e->state = NEIGH_FAILED;
	e->has_mac = false;
	e->backoff_us = n->config.retry_us;
	set_due(n, e, now_us + (e->holds ? e->backoff_us : NEIGH_FAILED_US));
	drop_frame(n, e);
	if (had)
		tell_changed(n, e);
}

/* Stores a MAC; sends what waited for it, tells of a change. The state is already right. */
static void
set_mac(struct sl_neigh *n, struct neigh *e, const uint8_t *mac)
{
	const bool changed = !e->has_mac || memcmp(e->mac, mac, 6) != 0;
	uint8_t *frame = e->frame;
	const uint16_t port = e->port;
	const size_t len = e->frame_len;

	memcpy(e->mac, mac, 6);
	e->has_mac = true;
	e->frame = NULL;
	if (frame) {
		memcpy(frame, mac, 6);
		n->sink.transmit(n->sink.arg, port, frame, len);
		free(frame);
	}
	if (changed)
		tell_changed(n, e);
}

bool
neigh_asked(const struct neigh *e, const uint8_t *mac)
{
	/* A neighbour that is probed has its MAC's word first; another's counts once the question has gone to all. */
	if (e->state == NEIGH_PROBE)
		return e->tries >= NEIGH_TRIES || memcmp(e->mac, mac, 6) == 0;
	return e->state == NEIGH_INCOMPLETE || (e->state == NEIGH_FAILED && e->holds > 0);
}

void
neigh_confirm(struct sl_neigh *n, struct neigh *e, const uint8_t *mac, uint64_t now_us)
{
	e->state = NEIGH_REACHABLE;
	e->tries = 0;
	e->confirmed_us = now_us;
	schedule_reachable(n, e, now_us);
	set_mac(n, e, mac);
}

bool
neigh_claim(struct sl_neigh *n, struct neigh *e, const uint8_t *mac, uint64_t now_us)
{
	uint8_t copy[6];

	if (e->has_mac) {
		/* Anybody on the link can claim: the MAC that we know is asked, and keeps the traffic while it answers. */
		if (e->state == NEIGH_PROBE || memcmp(e->mac, mac, 6) == 0 ||
			(e->state == NEIGH_REACHABLE && now_us - e->confirmed_us < NEIGH_LOCK_US))
			return false;
		enter_probe(n, e, now_us);
		return true;
	}
	memcpy(copy, mac, sizeof(copy));
	memcpy(e->mac, copy, 6); /* for the probe, which goes to that MAC */
	enter_stale(n, e, now_us);
	set_mac(n, e, copy);
	return true;
}

void
neigh_suspect(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	if (e->state == NEIGH_REACHABLE)
		enter_stale(n, e, now_us);
}

void
sl_neigh_port_renew(struct sl_neigh *n, uint16_t port, const uint8_t mac[6], uint64_t now_us)
{
	if (port >= SL_NEIGH_PORTS_MAX || !n->ports[port].used)
		return;
	neigh_port_mac(&n->ports[port], mac);
	neigh_port_announce(n, port);
	for (uint32_t i = 0; i < n->config.entries_max; i++) {
		struct neigh *e = &n->table[i];

		if (e->port != port || !e->holds)
			continue;
		if (e->state == NEIGH_FAILED)
			enter_incomplete(n, e, now_us);
		else
			neigh_suspect(n, e, now_us);
	}
}

static void
run_due(struct sl_neigh *n, struct neigh *e, uint64_t now_us)
{
	uint8_t mac[6];

	switch (e->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		if (e->tries >= NEIGH_TRIES) {
			enter_failed(n, e, now_us);
			break;
		}
		e->tries++;
		set_due(n, e, now_us + n->config.retry_us);
		/* The last question goes to all: the neighbour may have got another MAC. */
		memcpy(mac, e->mac, sizeof(mac));
		ask(n, e, e->state == NEIGH_PROBE && e->tries < NEIGH_TRIES ? mac : NULL);
		break;
	case NEIGH_REACHABLE:
		enter_stale(n, e, now_us);
		break;
	case NEIGH_FAILED:
		if (e->holds) {
			e->backoff_us = e->backoff_us * 2 < NEIGH_BACKOFF_MAX_US ? e->backoff_us * 2 : NEIGH_BACKOFF_MAX_US;
			set_due(n, e, now_us + e->backoff_us);
			ask(n, e, NULL);
			break;
		}
		forget(n, e);
		break;
	case NEIGH_STALE:
	default:
		forget(n, e);
		break;
	}
}

uint64_t
sl_neigh_tick(struct sl_neigh *n, uint64_t now_us)
{
	if (now_us < n->next_due_us)
		return n->next_due_us;
	n->next_due_us = UINT64_MAX; /* set_due() lowers it again, also from callbacks */
	for (uint32_t i = 0; i < n->config.entries_max; i++) {
		struct neigh *e = &n->table[i];

		if (e->state != NEIGH_FREE && e->due_us <= now_us)
			run_due(n, e, now_us);
		if (e->state != NEIGH_FREE && e->due_us < n->next_due_us)
			n->next_due_us = e->due_us;
	}
	return n->next_due_us;
}

/* --- resolving ---------------------------------------------------------------------------------------------------- */

/* The entry of a hop; made, and asked for, when there is none. NULL: the table is full. */
static struct neigh *
get(struct sl_neigh *n, const struct sl_neigh_hop *hop, uint64_t now_us)
{
	struct neigh *e = neigh_find(n, hop->port, hop->family, hop->next_ip);
	uint32_t *head;

	if (e)
		return e;
	if (n->free_head == NEIGH_NONE && !evict(n)) {
		neigh_count(n, SL_NEIGH_TABLE_FULL);
		return NULL;
	}
	e = &n->table[n->free_head];
	n->free_head = e->next;
	memset(e, 0, sizeof(*e));
	e->family = hop->family;
	e->port = hop->port;
	memcpy(e->ip, hop->next_ip, neigh_ip_bytes(hop->family));
	e->created_us = now_us;
	e->used_us = now_us;
	head = chain(n, e->port, e->family, e->ip);
	e->next = *head;
	*head = (uint32_t)(e - n->table);
	enter_incomplete(n, e, now_us);
	return e;
}

/* The second half of sl_neigh_resolve(): the route is in *hop. */
static int
resolve_mac(struct sl_neigh *n, struct sl_neigh_hop *hop, uint64_t now_us)
{
	struct neigh *e = get(n, hop, now_us);

	if (!e)
		return -ENOBUFS;
	e->used_us = now_us;
	if (e->state == NEIGH_STALE)
		enter_probe(n, e, now_us);
	/* due_us of a failed one nobody holds is when it is forgotten; it may be asked again after one retry. */
	if (e->state == NEIGH_FAILED && !e->holds && now_us + NEIGH_FAILED_US >= e->due_us + n->config.retry_us)
		enter_incomplete(n, e, now_us);
	if (e->has_mac) {
		memcpy(hop->dst_mac, e->mac, 6);
		return 0;
	}
	return e->state == NEIGH_FAILED ? -EHOSTUNREACH : -EINPROGRESS;
}

int
sl_neigh_resolve(struct sl_neigh *n, const struct sl_addr *to, struct sl_neigh_hop *hop, uint64_t now_us)
{
	int rc = neigh_route_lookup(n, to, hop);

	if (rc || hop->family == 0)
		return rc;
	return resolve_mac(n, hop, now_us);
}

int
sl_neigh_port_to(const struct sl_neigh *n, const struct sl_addr *to)
{
	struct sl_neigh_hop hop;
	const int rc = neigh_route_lookup(n, to, &hop);

	return rc ? rc : hop.port;
}

int
sl_neigh_hold(struct sl_neigh *n, const struct sl_neigh_hop *hop, uint64_t now_us)
{
	struct neigh *e;

	if (hop->family == 0)
		return 0;
	e = get(n, hop, now_us);
	if (!e)
		return -ENOBUFS;
	e->used_us = now_us;
	if (e->holds++ > 0)
		return 0;
	if (e->state == NEIGH_STALE)
		enter_probe(n, e, now_us);
	else if (e->state == NEIGH_REACHABLE)
		schedule_reachable(n, e, now_us);
	else if (e->state == NEIGH_FAILED)
		enter_incomplete(n, e, now_us);
	return 0;
}

void
sl_neigh_release(struct sl_neigh *n, const struct sl_neigh_hop *hop, uint64_t now_us)
{
	struct neigh *e = hop->family ? neigh_find(n, hop->port, hop->family, hop->next_ip) : NULL;

	if (!e || e->holds == 0 || --e->holds > 0)
		return;
	e->used_us = now_us;
	if (e->state == NEIGH_REACHABLE)
		schedule_reachable(n, e, now_us);
	else if (e->state == NEIGH_FAILED)
		set_due(n, e, now_us + NEIGH_FAILED_US);
}

int
sl_neigh_queue(struct sl_neigh *n, const struct sl_neigh_hop *hop, const uint8_t *frame, size_t len)
{
	struct neigh *e;
	uint8_t *copy;
	const size_t size = len < 60 ? 60 : len;

	if (len < SL_ETHER_BYTES || len > SL_NEIGH_FRAME_MAX)
		return -EMSGSIZE;
	e = hop->family ? neigh_find(n, hop->port, hop->family, hop->next_ip) : NULL;
	if (hop->family && (!e || (!e->has_mac && e->state != NEIGH_INCOMPLETE)))
		return -EHOSTUNREACH;
	if (!e || e->has_mac) {
		memcpy(n->out, frame, len);
		memset(n->out + len, 0, size - len);
		memcpy(n->out, e ? e->mac : hop->dst_mac, 6);
		n->sink.transmit(n->sink.arg, hop->port, n->out, size);
		return 0;
	}
	copy = calloc(1, size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, frame, len);
	drop_frame(n, e);
	e->frame = copy;
	e->frame_len = size;
	return 0;
}

void
sl_neigh_for_each(const struct sl_neigh *n, uint64_t now_us, sl_neigh_fn fn, void *arg)
{
	static const char *const states[] = {"free", "incomplete", "reachable", "stale", "probe", "failed"};

	for (uint32_t i = 0; i < n->config.entries_max; i++) {
		const struct neigh *e = &n->table[i];
		struct sl_neigh_info info = {.port = e->port, .state = states[e->state]};
		const uint64_t since = e->confirmed_us ? e->confirmed_us : e->created_us;

		if (e->state == NEIGH_FREE)
			continue;
		info.ip.family = e->family;
		info.ip.prefix_len = e->family == 4 ? 32 : 128;
		memcpy(info.ip.ip, e->ip, 16);
		if (e->has_mac)
			memcpy(info.mac, e->mac, 6);
		info.age_s = now_us > since ? (uint32_t)((now_us - since) / 1000000) : 0;
		fn(arg, &info);
	}
}
