/* SPDX-License-Identifier: BSD-3-Clause */
/* One relay's connection: attempts and back-off, silence, budgets, faults. */
#include "client_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESUME_MESSAGES 20.0 /* tokens that are worth waking a paused relay for */
#define PAUSED_POLL_US 50000u
#define HEADS_BYTES 64 /* of a message: frame head, TLS record */
#define HEADS_OWED_MAX 4096

const char *
sl_nostr_relay_state_name(enum sl_nostr_relay_state s)
{
	static const char *const names[] = {"waiting", "connecting", "open"};

	return names[s];
}

void
sl_nostr_relay_init(struct relay *r, const char *url, const struct sl_nostr_time *now)
{
	snprintf(r->info.url, sizeof(r->info.url), "%s", url);
	r->info.state = SL_NOSTR_RELAY_WAITING;
	r->info.since_us = now->us;
	r->info.next_attempt_us = now->us;
}

static void
tell(struct sl_nostr_client *c, unsigned i)
{
	if (c->sink.relay)
		c->sink.relay(c->sink.arg, i, &c->relays[i].info);
}

static void
set_error(struct relay *r, const char *why, const struct sl_nostr_time *now)
{
	snprintf(r->info.last_error, sizeof(r->info.last_error), "%s", why);
	r->info.last_error_us = now->us;
}

void
sl_nostr_relay_error(struct sl_nostr_client *c, unsigned i, const char *why, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	bool same = !strcmp(r->info.last_error, why);

	set_error(r, why, now);
	if (!same)
		tell(c, i);
}

void
sl_nostr_relay_doom(struct relay *r, const char *why)
{
	if (!r->doomed[0])
		snprintf(r->doomed, sizeof(r->doomed), "%s", why);
}

bool
sl_nostr_relay_send_const(struct sl_nostr_client *c, unsigned i, const char *text, size_t len)
{
	struct relay *r = &c->relays[i];
	int rc;

	if (r->doomed[0] || r->info.state != SL_NOSTR_RELAY_OPEN)
		return false;
	rc = c->net.send(c->net.arg, i, text, len);
	if (rc) {
		sl_nostr_relay_doom(r, rc == -ENOBUFS ? "takes nothing from us any more" : strerror(-rc));
		return false;
	}
	r->info.sent++;
	return true;
}

bool
sl_nostr_relay_send(struct sl_nostr_client *c, unsigned i, char *text, size_t len)
{
	bool sent = text && sl_nostr_relay_send_const(c, i, text, len);

	free(text);
	return sent;
}

void
sl_nostr_relay_heard(struct relay *r, const struct sl_nostr_time *now)
{
	r->info.last_heard_us = now->us;
	r->ping_us = 0;
}

/* --- its life --- */

static void
attempt(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	int rc;

	r->info.state = SL_NOSTR_RELAY_CONNECTING;
	r->info.since_us = now->us;
	r->deadline_us = now->us + SL_NOSTR_CONNECT_US;
	rc = c->net.open(c->net.arg, i);
	if (rc)
		sl_nostr_relay_lost(c, i, strerror(-rc), now);
}

void
sl_nostr_relay_opened(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	r->info.state = SL_NOSTR_RELAY_OPEN;
	r->info.since_us = r->opened_us = r->info.last_heard_us = now->us;
	r->info.connects++;
	r->ping_us = 0;
	r->paused = false;
	r->paused_total_us = 0;
	r->overhead = -HEADS_OWED_MAX; /* the greeting's: TLS tickets, the upgrade's answer */
	r->strikes = 0;
	r->doomed[0] = '\0';
	r->punished = r->auth_sent = r->auth_done = false;
	sl_bucket_init(&r->messages, 5.0 * SL_NOSTR_MESSAGES_PER_S, SL_NOSTR_MESSAGES_PER_S, now->us);
	sl_bucket_init(&r->bytes, 8.0 * SL_NOSTR_BYTES_PER_S, SL_NOSTR_BYTES_PER_S, now->us);
	tell(c, i);
}

/* base * 2^failures up to the ceiling, the upper half of it by chance: clients that lost a relay together come back apart. */
static uint64_t
backoff_us(const struct relay *r)
{
	uint64_t d = SL_NOSTR_BACKOFF_BASE_US;

	for (uint32_t n = r->info.failures; n > 1 && d < SL_NOSTR_BACKOFF_MAX_US; n--)
		d *= 2;
	if (d > SL_NOSTR_BACKOFF_MAX_US || r->punished)
		d = SL_NOSTR_BACKOFF_MAX_US;
	return d / 2 + sl_random_below((uint32_t)(d / 2));
}

void
sl_nostr_relay_lost(struct sl_nostr_client *c, unsigned i, const char *why, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	if (r->info.state == SL_NOSTR_RELAY_WAITING)
		return;
	if (r->info.state == SL_NOSTR_RELAY_OPEN) {
		sl_nostr_subs_lost(c, i);
		sl_nostr_publish_lost(c, i);
		if (now->us - r->opened_us >= SL_NOSTR_STABLE_US)
			r->info.failures = 0;
	}
	r->info.failures++;
	r->info.state = SL_NOSTR_RELAY_WAITING;
	r->info.since_us = now->us;
	r->info.next_attempt_us = now->us + backoff_us(r);
	r->doomed[0] = '\0';
	set_error(r, why, now);
	tell(c, i);
}

/* --- what it may cost --- */

void
sl_nostr_relay_strike(struct relay *r, enum sl_nostr_error e)
{
	char why[SL_NOSTR_REASON_SIZE];

	r->info.faults[e]++;
	/* Stored events grow old by themselves, and clocks differ. */
	if (e == SL_NOSTR_EXPIRED || e == SL_NOSTR_TOO_OLD || e == SL_NOSTR_FUTURE || e == SL_NOSTR_NO_MEMORY)
		return;
	/*
	 * A stranger's sound event to us, over limits that are ours or with a text that is none for us, is no honest relay's fault.
	 * Its bytes it pays for.
	 */
	if (e == SL_NOSTR_TOO_LONG || e == SL_NOSTR_TOO_MANY_TAGS || e == SL_NOSTR_TOO_MANY_VALUES || e == SL_NOSTR_NUL)
		return;
	if (++r->strikes < SL_NOSTR_STRIKES_MAX)
		return;
	snprintf(why, sizeof(why), "%u faulty messages, the last one: %s", r->strikes, sl_nostr_error_name(e));
	sl_nostr_relay_doom(r, why);
	r->punished = true;
}

static void
charge(struct sl_nostr_client *c, unsigned i, unsigned count, size_t len, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	double messages = sl_bucket_level(&r->messages, now->us), bytes = sl_bucket_level(&r->bytes, now->us);

	r->info.bytes += len;
	if (messages >= r->messages.burst && bytes >= r->bytes.burst)
		r->paused_total_us = 0;
	r->messages.tokens -= count;
	r->bytes.tokens -= (double)len;
	if (!r->paused && (r->messages.tokens < 1 || r->bytes.tokens < 1)) {
		r->paused = true;
		r->paused_us = now->us;
		r->info.throttled++;
		c->net.pause(c->net.arg, i, true);
	}
}

/* A message; it brings with it what frames' heads and TLS records of it take. */
void
sl_nostr_relay_charge(struct sl_nostr_client *c, unsigned i, size_t len, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	r->info.messages++;
	if (r->overhead > -HEADS_OWED_MAX)
		r->overhead -= HEADS_BYTES;
	charge(c, i, 1, len, now);
}

/*
 * Bytes beside messages. A frame without content is two of them and costs as much work as a message: what is more than messages
 * explain is paid for as frames, not only as bytes.
 */
void
sl_nostr_relay_charge_bytes(struct sl_nostr_client *c, unsigned i, size_t len, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];
	unsigned count = 0;

	r->overhead += (int64_t)len;
	if (r->overhead > 0) {
		count = (unsigned)(r->overhead / HEADS_BYTES);
		r->overhead %= HEADS_BYTES;
	}
	charge(c, i, count, len, now);
}

static uint64_t
tick_paused(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	if (r->paused_total_us + (now->us - r->paused_us) >= SL_NOSTR_FLOOD_US) {
		sl_nostr_relay_doom(r, "floods");
		r->punished = true;
		return now->us;
	}
	if (sl_bucket_level(&r->messages, now->us) < RESUME_MESSAGES || sl_bucket_level(&r->bytes, now->us) < 1)
		return now->us + PAUSED_POLL_US;
	r->paused = false;
	r->paused_total_us += now->us - r->paused_us;
	r->info.last_heard_us = now->us; /* it was we who did not listen */
	c->net.pause(c->net.arg, i, false);
	return UINT64_MAX;
}

static uint64_t
tick_open(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	if (r->paused)
		return tick_paused(c, i, now);
	if (r->ping_us) {
		if (now->us - r->ping_us >= SL_NOSTR_PONG_US)
			sl_nostr_relay_doom(r, "no answer to a ping");
		return r->ping_us + SL_NOSTR_PONG_US;
	}
	if (now->us - r->info.last_heard_us >= SL_NOSTR_IDLE_US) {
		r->ping_us = now->us;
		c->net.ping(c->net.arg, i);
		return now->us + SL_NOSTR_PONG_US;
	}
	return r->info.last_heard_us + SL_NOSTR_IDLE_US;
}

uint64_t
sl_nostr_relay_tick(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now)
{
	struct relay *r = &c->relays[i];

	switch (r->info.state) {
	case SL_NOSTR_RELAY_WAITING:
		if (now->us >= r->info.next_attempt_us)
			attempt(c, i, now);
		return r->info.state == SL_NOSTR_RELAY_WAITING ? r->info.next_attempt_us : r->deadline_us;
	case SL_NOSTR_RELAY_CONNECTING:
		if (now->us >= r->deadline_us)
			sl_nostr_relay_doom(r, "no connection in time");
		return r->deadline_us;
	default:
		return tick_open(c, i, now);
	}
}
