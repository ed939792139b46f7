/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEST_FAKE_RELAY_H
#define SL_TEST_FAKE_RELAY_H
/*
 * Relays without sockets, on a virtual clock: the net side of a client (struct sl_nostr_net) that remembers what it was told, a
 * store that answers as a relay does, and hands for a test to misbehave with.
 */
#include "sl_advert.h"
#include "sl_nostr_client.h"
#include "sl_test.h"

#define FAKE_RELAYS 4
#define FAKE_STORE 64
#define FAKE_SENT 64

struct fake_relay {
	bool up;      /* takes connections */
	bool mute;    /* connected, but says nothing */
	bool refuses; /* CLOSED for every request */
	bool wanted;  /* the client has asked to connect */
	bool open, paused, pinged;
	unsigned opens, closes, pings, reqs;
	char sent[FAKE_SENT][1024]; /* the latest messages of the client, cut */
	unsigned sent_count, answered;
	char *store[FAKE_STORE]; /* events as JSON */
	char subs[16][SL_NOSTR_SUB_ID_MAX + 1]; /* open subscriptions */
	unsigned sub_count;
};

struct fake_net {
	struct fake_relay relays[FAKE_RELAYS];
	struct sl_nostr_time now;
	struct sl_nostr_client *client;
};

void fake_init(struct fake_net *f);
void fake_fini(struct fake_net *f);
void fake_ops(struct fake_net *f, struct sl_nostr_net *net);
/* Connects what is wanted and up; answers what was asked. Repeat until quiet (fake_run does). */
void fake_serve(struct fake_net *f);
/* One turn of the client at the time that f->now says, all it has said answered; returns when it wants the next. */
uint64_t fake_step(struct fake_net *f);
/* Lets virtual time pass in steps of at most 100 ms. */
void fake_run(struct fake_net *f, uint64_t us);
void fake_cut(struct fake_net *f, unsigned relay);
/* Stores an event (replaces one of the same author and kind) and sends it to open subscriptions. */
void fake_publish(struct fake_net *f, unsigned relay, const struct sl_nostr_event *e);
void fake_say(struct fake_net *f, unsigned relay, const char *text);
const char *fake_last(const struct fake_net *f, unsigned relay); /* what the client said last */

#endif
