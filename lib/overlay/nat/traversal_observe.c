/* SPDX-License-Identifier: BSD-3-Clause */
/* What servers outside see of our port. One question at a time, its answer serves every session. */
#include "traversal_internal.h"

const char *
sl_trav_nat_name(enum sl_nat_kind kind)
{
	static const char *const names[] = {[SL_NAT_UNKNOWN] = "unknown", [SL_NAT_NONE] = "none",
		[SL_NAT_SOME] = "some NAT", [SL_NAT_CONE] = "cone", [SL_NAT_SYMMETRIC] = "symmetric"};

	return names[kind];
}

bool
sl_trav_observe_fresh(const struct sl_traversal *t)
{
	const struct observer *o = &t->observer;

	return o->mapped.kind != SL_ADDR_NONE && o->error == NULL && t->now_us - o->mapped_us <= SL_OBSERVE_FRESH_US;
}

/* The mapped address as one of the transport's. */
static bool
is_local(const struct sl_traversal *t, const struct sl_addr *a)
{
	for (unsigned i = 0; i < t->local_count; i++)
		if (t->local[i].kind == a->kind && t->local[i].udp_port == a->udp_port &&
			memcmp(&t->local[i].u, &a->u, sizeof(a->u)) == 0)
			return true;
	return false;
}

static void
tell(struct sl_traversal *t)
{
	struct observer *o = &t->observer;
	char text[SL_ADDR_TEXT_SIZE];

	if (o->logged_nat == o->nat && sl_addr_equal(&o->logged, &o->mapped))
		return;
	o->logged_nat = o->nat;
	o->logged = o->mapped;
	sl_addr_format(text, &o->mapped);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_LINK, "seen from outside at %s (by %s): %s", text, t->server_text[o->server],
		o->nat == SL_NAT_NONE ? "no NAT" : o->nat == SL_NAT_CONE ? "a NAT that keeps the port for all destinations" :
		o->nat == SL_NAT_SYMMETRIC ? "a NAT that gives each destination another port: hardly to be punched" : "a NAT");
}

/* A second opinion: what another server sees. */
static void
check_begin(struct sl_traversal *t)
{
	struct observer *o = &t->observer;
	struct sl_addr others[SL_STUN_SERVERS_MAX];
	unsigned n = 0;

	if (o->checking || (o->nat != SL_NAT_SOME && o->nat != SL_NAT_UNKNOWN && t->now_us - o->checked_us < SL_OBSERVE_CHECK_US))
		return;
	/* The same address under another name, or another port of it, says nothing about destinations. */
	for (unsigned i = 0; i < t->server_count; i++) {
		others[i] = t->servers[i];
		if (memcmp(&others[i].u, &t->servers[o->server].u, sizeof(others[i].u)) == 0)
			others[i].kind = SL_ADDR_NONE;
		n += others[i].kind != SL_ADDR_NONE;
	}
	if (n == 0)
		return;
	o->checking = true;
	sl_stun_query_begin(&o->check, others, t->server_count, o->server + 1, t->now_us, sl_trav_udp, t);
}

static void
check_ended(struct sl_traversal *t)
{
	struct observer *o = &t->observer;

	if (!o->checking || o->check.state == SL_STUN_ASKING)
		return;
	o->checking = false;
	o->checked_us = t->now_us;
	if (o->check.state == SL_STUN_DONE && o->nat != SL_NAT_NONE) {
		o->checked = o->check.mapped;
		o->nat = sl_addr_equal(&o->mapped, &o->checked) ? SL_NAT_CONE : SL_NAT_SYMMETRIC;
	}
	tell(t);
}

static void
query_ended(struct sl_traversal *t)
{
	struct observer *o = &t->observer;
	bool moved;

	if (!o->asking || o->query.state == SL_STUN_ASKING)
		return;
	o->asking = false;
	o->tried_us = t->now_us;
	o->error = o->query.state == SL_STUN_DONE ? NULL : o->query.error;
	if (o->error == NULL) {
		trav_count(t, SL_TRAVERSAL_STUN_OK);
		moved = !sl_addr_equal(&o->mapped, &o->query.mapped);
		o->mapped = o->query.mapped;
		o->mapped_us = t->now_us;
		o->server = o->query.server;
		if (is_local(t, &o->mapped))
			o->nat = SL_NAT_NONE;
		else if (moved || o->nat == SL_NAT_UNKNOWN || o->nat == SL_NAT_NONE)
			o->nat = o->nat == SL_NAT_SYMMETRIC ? SL_NAT_SYMMETRIC : SL_NAT_SOME;
		if (o->nat != SL_NAT_NONE)
			check_begin(t);
		if (!o->checking)
			tell(t);
	} else {
		trav_count(t, SL_TRAVERSAL_STUN_FAILED);
	}
	sl_trav_sessions_observed(t);
}

bool
sl_trav_observe(struct sl_traversal *t)
{
	struct observer *o = &t->observer;

	if (o->asking)
		return true;
	if (sl_trav_observe_fresh(t))
		return false;
	o->asking = true;
	sl_stun_query_begin(&o->query, t->servers, t->server_count, 0, t->now_us, sl_trav_udp, t);
	return true; /* even when it has failed already: the tick says so, not the caller's own call */
}

bool
sl_trav_observe_packet(struct sl_traversal *t, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	struct observer *o = &t->observer;
	bool ours = false;

	if (o->asking && sl_stun_query_packet(&o->query, from, packet, len, t->now_us, sl_trav_udp, t)) {
		query_ended(t);
		ours = true;
	} else if (o->checking && sl_stun_query_packet(&o->check, from, packet, len, t->now_us, sl_trav_udp, t)) {
		check_ended(t);
		ours = true;
	}
	return ours;
}

uint64_t
sl_trav_observe_tick(struct sl_traversal *t)
{
	struct observer *o = &t->observer;
	uint64_t due = UINT64_MAX, next;

	if (o->asking) {
		next = sl_stun_query_tick(&o->query, t->now_us, sl_trav_udp, t);
		query_ended(t);
		due = o->asking ? next : due;
	}
	if (o->checking) {
		next = sl_stun_query_tick(&o->check, t->now_us, sl_trav_udp, t);
		check_ended(t);
		if (o->checking && next < due)
			due = next;
	}
	if (!o->asking && o->mapped.kind != SL_ADDR_NONE && sl_trav_sessions_waiting(t, SESSION_OFFERED)) {
		next = o->tried_us + SL_OBSERVE_KEEP_US;
		if (t->now_us >= next) {
			(void)sl_trav_observe(t);
			next = t->now_us;
		}
		if (next < due)
			due = next;
	}
	return due;
}
