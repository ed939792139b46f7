/* SPDX-License-Identifier: BSD-3-Clause */
/* What we tell relays, and what they say to it. */
#include "client_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS_MAX 5 /* 60 s doubled up to about half an hour */

static void
publication_free(struct publication *p)
{
	free(p->text);
	memset(p, 0, sizeof(*p));
}

static void
send_to(struct sl_nostr_client *c, struct publication *p, unsigned i, const struct sl_nostr_time *now)
{
	if (c->relays[i].info.state != SL_NOSTR_RELAY_OPEN || !in_mask(p->relays, i))
		return;
	if (sl_nostr_relay_send_const(c, i, p->text, p->len)) {
		p->state[i] = PUB_SENT;
		p->at_us[i] = now->us;
	}
}

static struct publication *
find_slot(const struct sl_nostr_client *c, uint32_t slot)
{
	for (unsigned n = 0; slot && n < SL_NOSTR_PUBLICATIONS_MAX; n++)
		if (c->publications[n].used && c->publications[n].slot == slot)
			return (struct publication *)(uintptr_t)&c->publications[n];
	return NULL;
}

int
sl_nostr_publish(struct sl_nostr_client *c, uint32_t slot, const struct sl_nostr_event *e, uint32_t relays,
	const struct sl_nostr_time *now)
{
	struct publication *p = find_slot(c, slot);
	size_t len;
	char *text = sl_nostr_build_event(e, &len);

	if (!text)
		return -errno;
	for (unsigned n = 0; !p && n < SL_NOSTR_PUBLICATIONS_MAX; n++)
		if (!c->publications[n].used)
			p = &c->publications[n];
	if (!p) {
		free(text);
		return -ENOSPC;
	}
	publication_free(p);
	p->used = true;
	p->slot = slot;
	p->relays = relays;
	p->until_us = now->us + SL_NOSTR_PUBLISH_US;
	p->text = text;
	p->len = len;
	memcpy(p->id, e->id, sizeof(p->id));
	for (unsigned i = 0; i < c->relay_count; i++)
		send_to(c, p, i, now);
	return 0;
}

void
sl_nostr_publish_end(struct sl_nostr_client *c, uint32_t slot)
{
	struct publication *p = find_slot(c, slot);

	if (p)
		publication_free(p);
}

unsigned
sl_nostr_publish_accepted(const struct sl_nostr_client *c, uint32_t slot)
{
	const struct publication *p = find_slot(c, slot);
	unsigned n = 0;

	for (unsigned i = 0; p && i < c->relay_count; i++)
		n += p->state[i] == PUB_ACCEPTED;
	return n;
}

bool
sl_nostr_client_unsettled(const struct sl_nostr_client *c)
{
	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++)
		for (unsigned i = 0; c->publications[n].used && !c->publications[n].slot && i < c->relay_count; i++)
			if (c->publications[n].state[i] == PUB_SENT)
				return true;
	return false;
}

void
sl_nostr_publish_opened(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++)
		if (c->publications[n].used && c->publications[n].state[i] == PUB_WAITING)
			send_to(c, &c->publications[n], i, now);
}

void
sl_nostr_publish_lost(struct sl_nostr_client *c, unsigned i)
{
	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++) {
		struct publication *p = &c->publications[n];

		if (!p->used)
			continue;
		if (p->state[i] == PUB_SENT)
			c->relays[i].info.unanswered++;
		if (p->state[i] == PUB_SENT || p->state[i] == PUB_SILENT)
			p->state[i] = p->slot ? PUB_WAITING : PUB_SILENT;
	}
}

void
sl_nostr_publish_answer(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m,
	const struct sl_nostr_time *now)
{
	char why[SL_NOSTR_REASON_SIZE];

	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++) {
		struct publication *p = &c->publications[n];

		if (!p->used || (p->state[i] != PUB_SENT && p->state[i] != PUB_SILENT) ||
			memcmp(p->id, m->id, sizeof(p->id)) != 0)
			continue;
		if (m->ok || !strncmp(m->reason, "duplicate:", 10)) {
			p->state[i] = PUB_ACCEPTED;
			p->refusals[i] = 0;
			c->relays[i].info.published++;
			return;
		}
		p->state[i] = PUB_REFUSED;
		p->at_us[i] = now->us;
		if (p->refusals[i] < REFUSALS_MAX)
			p->refusals[i]++;
		c->relays[i].info.refused++;
		snprintf(why, sizeof(why), "refused an event: %.100s", m->reason);
		sl_nostr_relay_error(c, i, why, now);
		return;
	}
}

static uint64_t
tick_one(struct sl_nostr_client *c, struct publication *p, unsigned i, const struct sl_nostr_time *now)
{
	uint64_t due;

	if (p->state[i] == PUB_SENT) {
		due = p->at_us[i] + SL_NOSTR_PUBLISH_US;
		if (now->us < due)
			return due;
		p->state[i] = PUB_SILENT;
		c->relays[i].info.unanswered++;
	} else if (p->state[i] == PUB_REFUSED && p->slot) {
		due = p->at_us[i] + ((uint64_t)SL_NOSTR_REPUBLISH_US << (p->refusals[i] - 1));
		if (now->us < due)
			return due;
		send_to(c, p, i, now);
		if (p->state[i] == PUB_REFUSED)
			p->state[i] = PUB_WAITING; /* it is away */
	}
	return UINT64_MAX;
}

uint64_t
sl_nostr_publish_tick(struct sl_nostr_client *c, const struct sl_nostr_time *now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++) {
		struct publication *p = &c->publications[n];
		bool waiting = false;

		if (!p->used)
			continue;
		for (unsigned i = 0; i < c->relay_count; i++) {
			if (!in_mask(p->relays, i))
				continue;
			next = earlier(next, tick_one(c, p, i, now));
			waiting = waiting || p->state[i] == PUB_SENT || (p->state[i] == PUB_WAITING && now->us < p->until_us);
		}
		if (!p->slot && !waiting)
			publication_free(p);
		else if (!p->slot)
			next = earlier(next, p->until_us > now->us ? p->until_us : UINT64_MAX);
	}
	return next;
}

void
sl_nostr_publish_fini(struct sl_nostr_client *c)
{
	for (unsigned n = 0; n < SL_NOSTR_PUBLICATIONS_MAX; n++)
		publication_free(&c->publications[n]);
}
