/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry points: each does its one thing, then settles what it may have broken or finished. */
#include "client_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sl_nostr_client *
sl_nostr_client_create(const char *const *urls, unsigned count, const struct sl_identity *identity,
	const struct sl_nostr_net *net, const struct sl_nostr_sink *sink, const struct sl_nostr_time *now)
{
	struct sl_nostr_client *c;

	if (!count || count > SL_NOSTR_RELAYS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	for (unsigned i = 0; i < count; i++)
		if (strlen(urls[i]) >= SL_NOSTR_URL_SIZE) {
			errno = EINVAL;
			return NULL;
		}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->net = *net;
	c->sink = *sink;
	c->identity = identity;
	c->relay_count = count;
	/* A new process is a new name space for subscriptions: what an old connection's relay still sends names others. */
	c->next_sub = (uint64_t)sl_random_u32() << 16;
	for (unsigned i = 0; i < count; i++)
		sl_nostr_relay_init(&c->relays[i], urls[i], now);
	return c;
}

void
sl_nostr_client_destroy(struct sl_nostr_client *c)
{
	if (!c)
		return;
	sl_nostr_subs_fini(c);
	sl_nostr_publish_fini(c);
	free(c);
}

/* Takes down what is doomed; an answer may have ended a fetch. */
static uint64_t
settle(struct sl_nostr_client *c, const struct sl_nostr_time *now)
{
	uint64_t next;

	next = sl_nostr_subs_tick(c, now);
	for (unsigned i = 0; i < c->relay_count; i++) {
		char why[SL_NOSTR_REASON_SIZE];

		if (!c->relays[i].doomed[0])
			continue;
		memcpy(why, c->relays[i].doomed, sizeof(why));
		c->net.close(c->net.arg, i);
		sl_nostr_relay_lost(c, i, why, now);
		next = now->us;
	}
	return next;
}

void
sl_nostr_client_opened(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	if (c->relays[i].info.state != SL_NOSTR_RELAY_CONNECTING)
		return;
	sl_nostr_relay_opened(c, i, now);
	sl_nostr_subs_opened(c, i);
	sl_nostr_publish_opened(c, i, now);
	(void)settle(c, now);
}

void
sl_nostr_client_closed(struct sl_nostr_client *c, unsigned i, const char *why, const struct sl_nostr_time *now)
{
	sl_nostr_relay_lost(c, i, why && why[0] ? why : "connection ended", now);
	(void)settle(c, now);
}

static void
answer_auth(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	struct sl_nostr_event e;
	size_t len = 0;
	char *text;

	/* One answer a connection: a relay that asks for ever gets no signature for ever. */
	if (!c->identity || r->auth_sent)
		return;
	r->auth_sent = true;
	text = sl_nostr_build_auth(m->challenge, r->info.url, c->identity, now->unix_s, &len);
	if (!text)
		return;
	/* ["AUTH",{...}]: its id names the answer. */
	if (sl_nostr_event_parse(&e, text + 8, len - 9, 0) == SL_NOSTR_OK) {
		memcpy(r->auth_id, e.id, sizeof(r->auth_id));
		sl_nostr_event_fini(&e);
	}
	(void)sl_nostr_relay_send(c, i, text, len);
}

static void
take_ok(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	if (!r->auth_sent || r->auth_done || memcmp(r->auth_id, m->id, sizeof(r->auth_id)) != 0) {
		sl_nostr_publish_answer(c, i, m, now);
		return;
	}
	r->auth_done = true;
	if (m->ok)
		sl_nostr_subs_authenticated(c, i);
	else
		sl_nostr_relay_error(c, i, "does not accept our authentication", now);
}

static void
dispatch(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m, const struct sl_nostr_time *now)
{
	switch (m->type) {
	case SL_NOSTR_MSG_EVENT:
		sl_nostr_subs_event(c, i, m, now);
		break;
	case SL_NOSTR_MSG_EOSE:
		sl_nostr_subs_eose(c, i, m->sub);
		break;
	case SL_NOSTR_MSG_CLOSED:
		sl_nostr_subs_closed(c, i, m, now);
		break;
	case SL_NOSTR_MSG_OK:
		take_ok(c, i, m, now);
		break;
	case SL_NOSTR_MSG_AUTH:
		answer_auth(c, i, m, now);
		break;
	case SL_NOSTR_MSG_NOTICE:
	case SL_NOSTR_MSG_UNKNOWN:
		break;
	}
}

void
sl_nostr_client_text(struct sl_nostr_client *c, unsigned i, const char *text, size_t len, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	struct sl_nostr_message m;
	enum sl_nostr_error rc;

	if (r->info.state != SL_NOSTR_RELAY_OPEN || r->doomed[0])
		return;
	sl_nostr_relay_heard(r, now);
	sl_nostr_relay_charge(c, i, len, now);
	rc = sl_nostr_message_parse(&m, text, len);
	if (rc) {
		sl_nostr_relay_strike(r, rc);
	} else {
		dispatch(c, i, &m, now);
		sl_nostr_message_fini(&m);
	}
	(void)settle(c, now);
}

void
sl_nostr_client_fault(struct sl_nostr_client *c, unsigned i, enum sl_nostr_error e, const struct sl_nostr_time *now)
{
	if (c->relays[i].info.state != SL_NOSTR_RELAY_OPEN)
		return;
	sl_nostr_relay_heard(&c->relays[i], now);
	sl_nostr_relay_charge(c, i, SL_NOSTR_TEXT_MAX, now);
	sl_nostr_relay_strike(&c->relays[i], e);
	(void)settle(c, now);
}

void
sl_nostr_client_overhead(struct sl_nostr_client *c, unsigned i, size_t len, const struct sl_nostr_time *now)
{
	if (c->relays[i].info.state == SL_NOSTR_RELAY_OPEN)
		sl_nostr_relay_charge_bytes(c, i, len, now);
}

void
sl_nostr_client_heard(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	if (r->info.state != SL_NOSTR_RELAY_OPEN)
		return;
	sl_nostr_relay_heard(r, now);
	sl_nostr_relay_charge(c, i, 0, now);
}

uint64_t
sl_nostr_client_tick(struct sl_nostr_client *c, const struct sl_nostr_time *now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < c->relay_count; i++)
		next = earlier(next, sl_nostr_relay_tick(c, i, now));
	next = earlier(next, sl_nostr_publish_tick(c, now));
	return earlier(next, settle(c, now));
}

void
sl_nostr_client_relay_info(const struct sl_nostr_client *c, unsigned i, struct sl_nostr_relay_info *out)
{
	*out = c->relays[i].info;
	out->subscriptions = out->subscriptions_closed = 0;
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++) {
		const struct sub *s = &c->subs[n];

		if (!s->used || s->fetch || !in_mask(s->relays, i))
			continue;
		out->subscriptions += s->state[i] == ASK_ASKED || s->state[i] == ASK_EOSE;
		out->subscriptions_closed += s->state[i] == ASK_CLOSED || s->state[i] == ASK_AUTH;
	}
}

unsigned
sl_nostr_client_relay_count(const struct sl_nostr_client *c)
{
	return c->relay_count;
}

void
sl_nostr_client_usage(const struct sl_nostr_client *c, unsigned *subs, unsigned *publications)
{
	*subs = *publications = 0;
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++)
		*subs += c->subs[n].used;
	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++)
		*publications += c->publications[n].used;
}
