/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscriptions, standing and for once, and the way of an event from a relay's words to the sink. */
#include "client_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A relay that has one event an author needs no more; some keep older ones too. */
static uint32_t
fetch_limit(const struct sub *s)
{
	return 16 + 4 * s->filter.author_count;
}

/* --- asking --- */

static void
ask(struct sl_nostr_client *c, struct sub *s, unsigned i)
{
	size_t len = 0;
	char *text = sl_nostr_build_req(s->id, &s->filter, &len);

	if (sl_nostr_relay_send(c, i, text, len))
		s->state[i] = ASK_ASKED;
}

static void
say_close(struct sl_nostr_client *c, const struct sub *s, unsigned i)
{
	size_t len = 0;
	char *text;

	if (c->relays[i].info.state != SL_NOSTR_RELAY_OPEN || (s->state[i] != ASK_ASKED && s->state[i] != ASK_EOSE))
		return;
	text = sl_nostr_build_close(s->id, &len);
	(void)sl_nostr_relay_send(c, i, text, len);
}

static int
copy_filter(struct sub *s, const struct sl_nostr_filter *f)
{
	size_t authors = f->author_count * (size_t)SL_XONLY_BYTES, d = f->d ? strlen(f->d) + 1 : 0;
	size_t p = f->p ? SL_XONLY_BYTES : 0;
	uint8_t *m;

	if (f->kind_count > SL_NOSTR_FILTER_KINDS || f->author_count > SL_NOSTR_FILTER_AUTHORS || d > 128)
		return -EINVAL;
	m = malloc(authors + p + d + 1);
	if (!m)
		return -ENOMEM;
	s->memory = m;
	s->filter = *f;
	if (authors)
		memcpy(m, f->authors, authors);
	s->filter.authors = m;
	if (p)
		s->filter.p = memcpy(m + authors, f->p, p);
	if (d)
		s->filter.d = memcpy(m + authors + p, f->d, d);
	return 0;
}

static int
sub_new(struct sl_nostr_client *c, uint32_t tag, const struct sl_nostr_filter *f, uint32_t relays, bool fetch)
{
	unsigned fetches = 0;
	int at = -1, rc;
	struct sub *s;

	for (unsigned i = 0; i < SL_NOSTR_SUBS_MAX; i++) {
		if (!c->subs[i].used && at < 0)
			at = (int)i;
		fetches += c->subs[i].used && c->subs[i].fetch;
	}
	if (at < 0 || (fetch && fetches >= SL_NOSTR_FETCHES_MAX))
		return -ENOSPC;
	s = &c->subs[at];
	memset(s, 0, sizeof(*s));
	rc = copy_filter(s, f);
	if (rc)
		return rc;
	s->used = true;
	s->fetch = fetch;
	s->tag = tag;
	s->relays = relays;
	/* Never the same twice: an answer to a subscription of before must not be taken for this one's. */
	snprintf(s->id, sizeof(s->id), "sl%llu", (unsigned long long)c->next_sub++);
	for (unsigned i = 0; i < c->relay_count; i++)
		if (in_mask(relays, i) && c->relays[i].info.state == SL_NOSTR_RELAY_OPEN)
			ask(c, s, i);
	return at;
}

static void
sub_free(struct sub *s)
{
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

int
sl_nostr_subscribe(struct sl_nostr_client *c, uint32_t tag, const struct sl_nostr_filter *f, uint32_t relays,
	const struct sl_nostr_time *now)
{
	(void)now;
	return sub_new(c, tag, f, relays, false);
}

void
sl_nostr_unsubscribe(struct sl_nostr_client *c, int sub, const struct sl_nostr_time *now)
{
	struct sub *s = &c->subs[sub];

	(void)now;
	if (!s->used || s->fetch)
		return;
	for (unsigned i = 0; i < c->relay_count; i++)
		say_close(c, s, i);
	sub_free(s);
}

int
sl_nostr_fetch(struct sl_nostr_client *c, uint32_t tag, const struct sl_nostr_filter *f, uint32_t relays,
	uint64_t timeout_us, const struct sl_nostr_time *now)
{
	int at = sub_new(c, tag, f, relays, true);

	if (at >= 0)
		c->subs[at].deadline_us = now->us + timeout_us;
	return at;
}

/* --- what relays do to them --- */

void
sl_nostr_subs_opened(struct sl_nostr_client *c, unsigned i)
{
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++)
		if (c->subs[n].used && !c->subs[n].fetch && in_mask(c->subs[n].relays, i))
			ask(c, &c->subs[n], i);
}

void
sl_nostr_subs_lost(struct sl_nostr_client *c, unsigned i)
{
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++) {
		struct sub *s = &c->subs[n];

		if (!s->used)
			continue;
		if (!s->fetch)
			s->state[i] = ASK_IDLE;
		else if (s->state[i] == ASK_ASKED || s->state[i] == ASK_AUTH)
			s->state[i] = ASK_LOST;
	}
}

void
sl_nostr_subs_authenticated(struct sl_nostr_client *c, unsigned i)
{
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++)
		if (c->subs[n].used && c->subs[n].state[i] == ASK_AUTH)
			ask(c, &c->subs[n], i);
}

static struct sub *
find(struct sl_nostr_client *c, unsigned i, const char *id)
{
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++)
		if (c->subs[n].used && in_mask(c->subs[n].relays, i) && !strcmp(c->subs[n].id, id))
			return &c->subs[n];
	return NULL;
}

void
sl_nostr_subs_eose(struct sl_nostr_client *c, unsigned i, const char *id)
{
	struct sub *s = find(c, i, id);

	if (s && s->state[i] == ASK_ASKED)
		s->state[i] = ASK_EOSE;
}

void
sl_nostr_subs_closed(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m,
	const struct sl_nostr_time *now)
{
	struct sub *s = find(c, i, m->sub);
	char why[SL_NOSTR_REASON_SIZE];

	if (!s || (s->state[i] != ASK_ASKED && s->state[i] != ASK_EOSE))
		return;
	if (!strncmp(m->reason, "auth-required:", 14) && c->identity && !c->relays[i].auth_done) {
		s->state[i] = ASK_AUTH;
		return;
	}
	s->state[i] = ASK_CLOSED;
	s->closed_us[i] = now->us;
	snprintf(why, sizeof(why), "closed a subscription: %.100s", m->reason);
	sl_nostr_relay_error(c, i, why, now);
}

/*
 * The cheap things first: whose subscription is it, is it about that, is the id known; then the hash; then the signature. A
 * fetch wants to know what a relay has, so a known id passes it, without a second look at the signature: the hash binds it.
 */
void
sl_nostr_subs_event(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m,
	const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	struct sub *s = find(c, i, m->sub);
	enum sl_nostr_error rc;
	bool known;

	r->info.events++;
	if (!s || !sl_nostr_filter_matches(&s->filter, &m->event) || (s->fetch && s->events >= fetch_limit(s))) {
		r->info.unwanted++;
		return;
	}
	known = sl_nostr_seen_has(&c->seen, m->event.id);
	if (known) {
		r->info.duplicates++;
		if (!s->fetch)
			return;
	}
	rc = sl_nostr_event_check_id(&m->event);
	if (!rc && !known)
		rc = sl_nostr_event_check_sig(&m->event);
	if (rc) {
		sl_nostr_relay_strike(r, rc);
		return;
	}
	rc = sl_nostr_event_clock(&m->event, now->unix_s, SL_NOSTR_PAST_S, SL_NOSTR_FUTURE_S);
	/* What is early may come again in its time; all else is known from now on. */
	if (rc != SL_NOSTR_FUTURE)
		sl_nostr_seen_add(&c->seen, m->event.id);
	if (rc) {
		sl_nostr_relay_strike(r, rc);
		return;
	}
	s->events++;
	c->sink.event(c->sink.arg, (int)(s - c->subs), s->tag, i, &m->event);
}

/* --- time --- */

static bool
fetch_over(const struct sl_nostr_client *c, const struct sub *s, const struct sl_nostr_time *now)
{
	if (now->us >= s->deadline_us)
		return true;
	for (unsigned i = 0; i < c->relay_count; i++)
		if (s->state[i] == ASK_ASKED || s->state[i] == ASK_AUTH)
			return false;
	return true;
}

static void
fetch_end(struct sl_nostr_client *c, struct sub *s)
{
	struct sl_nostr_fetch_result r = {0};
	uint32_t tag = s->tag;

	for (unsigned i = 0; i < c->relay_count; i++) {
		if (!in_mask(s->relays, i))
			continue;
		switch (s->state[i]) {
		case ASK_EOSE:
			r.answered++;
			break;
		case ASK_CLOSED:
		case ASK_AUTH:
			r.refused++;
			break;
		case ASK_IDLE:
			r.away++;
			break;
		default:
			r.silent++;
		}
		say_close(c, s, i);
	}
	sub_free(s);
	c->sink.fetched(c->sink.arg, tag, &r);
}

uint64_t
sl_nostr_subs_tick(struct sl_nostr_client *c, const struct sl_nostr_time *now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++) {
		struct sub *s = &c->subs[n];

		if (!s->used)
			continue;
		if (s->fetch) {
			if (fetch_over(c, s, now))
				fetch_end(c, s);
			else
				next = earlier(next, s->deadline_us);
			continue;
		}
		for (unsigned i = 0; i < c->relay_count; i++) {
			if (s->state[i] != ASK_CLOSED || c->relays[i].info.state != SL_NOSTR_RELAY_OPEN)
				continue;
			if (now->us - s->closed_us[i] >= SL_NOSTR_CLOSED_PAUSE_US)
				ask(c, s, i);
			else
				next = earlier(next, s->closed_us[i] + SL_NOSTR_CLOSED_PAUSE_US);
		}
	}
	return next;
}

void
sl_nostr_subs_fini(struct sl_nostr_client *c)
{
	for (unsigned n = 0; n < SL_NOSTR_SUBS_MAX; n++)
		sub_free(&c->subs[n]);
}
