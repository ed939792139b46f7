/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_relay.h"
#include "sl_nostr_message.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

void
fake_init(struct fake_net *f)
{
	memset(f, 0, sizeof(*f));
	f->now.us = 1000000;
	f->now.unix_s = 1700000000;
	for (unsigned i = 0; i < FAKE_RELAYS; i++)
		f->relays[i].up = true;
}

void
fake_fini(struct fake_net *f)
{
	for (unsigned i = 0; i < FAKE_RELAYS; i++)
		for (unsigned k = 0; k < FAKE_STORE; k++)
			free(f->relays[i].store[k]);
}

static int
op_open(void *arg, unsigned relay)
{
	struct fake_net *f = arg;

	f->relays[relay].wanted = true;
	f->relays[relay].opens++;
	return 0;
}

static int
op_send(void *arg, unsigned relay, const char *text, size_t len)
{
	struct fake_relay *r = &((struct fake_net *)arg)->relays[relay];

	if (!r->open)
		return -ENOTCONN;
	snprintf(r->sent[r->sent_count++ % FAKE_SENT], sizeof(r->sent[0]), "%.*s", (int)len, text);
	return 0;
}

static void
op_ping(void *arg, unsigned relay)
{
	struct fake_relay *r = &((struct fake_net *)arg)->relays[relay];

	r->pings++;
	r->pinged = true;
}

static void
op_pause(void *arg, unsigned relay, bool stop)
{
	((struct fake_net *)arg)->relays[relay].paused = stop;
}

static void
op_close(void *arg, unsigned relay)
{
	struct fake_relay *r = &((struct fake_net *)arg)->relays[relay];

	r->open = r->wanted = r->paused = false;
	r->sub_count = 0;
	r->closes++;
}

void
fake_ops(struct fake_net *f, struct sl_nostr_net *net)
{
	*net = (struct sl_nostr_net){f, op_open, op_send, op_ping, op_pause, op_close};
}

void
fake_say(struct fake_net *f, unsigned relay, const char *text)
{
	if (f->relays[relay].open)
		sl_nostr_client_text(f->client, relay, text, strlen(text), &f->now);
}

const char *
fake_last(const struct fake_net *f, unsigned relay)
{
	const struct fake_relay *r = &f->relays[relay];

	return r->sent_count ? r->sent[(r->sent_count - 1) % FAKE_SENT] : "";
}

static void
say_event(struct fake_net *f, unsigned relay, const char *sub, const char *event)
{
	size_t room = strlen(event) + 128;
	char *text = malloc(room);

	snprintf(text, room, "[\"EVENT\",\"%s\",%s]", sub, event);
	fake_say(f, relay, text);
	free(text);
}

/* Is the stored event asked for? Authors only: the tests ask for nothing finer. */
static bool
asked_for(const json_t *filter, const char *event)
{
	json_t *e = json_loads(event, 0, NULL), *authors = json_object_get(filter, "authors"), *a;
	const char *pubkey = json_string_value(json_object_get(e, "pubkey"));
	bool found = !authors;
	size_t i;

	json_array_foreach(authors, i, a) found = found || !strcmp(json_string_value(a), pubkey);
	json_decref(e);
	return found;
}

static void
answer_req(struct fake_net *f, unsigned relay, json_t *m)
{
	struct fake_relay *r = &f->relays[relay];
	const char *sub = json_string_value(json_array_get(m, 1));
	char text[160];

	r->reqs++;
	if (r->refuses) {
		snprintf(text, sizeof(text), "[\"CLOSED\",\"%s\",\"blocked: go away\"]", sub);
		fake_say(f, relay, text);
		return;
	}
	if (r->sub_count < 16)
		snprintf(r->subs[r->sub_count++], sizeof(r->subs[0]), "%s", sub);
	for (unsigned k = 0; k < FAKE_STORE; k++)
		if (r->store[k] && asked_for(json_array_get(m, 2), r->store[k]))
			say_event(f, relay, sub, r->store[k]);
	snprintf(text, sizeof(text), "[\"EOSE\",\"%s\"]", sub);
	fake_say(f, relay, text);
}

static void
store(struct fake_net *f, unsigned relay, char *event)
{
	struct fake_relay *r = &f->relays[relay];
	json_t *e = json_loads(event, 0, NULL), *o;
	int at = -1;

	for (int k = 0; k < FAKE_STORE; k++) {
		bool same;

		if (!r->store[k]) {
			if (at < 0)
				at = k;
			continue;
		}
		o = json_loads(r->store[k], 0, NULL);
		same = json_equal(json_object_get(o, "pubkey"), json_object_get(e, "pubkey")) &&
		       json_equal(json_object_get(o, "kind"), json_object_get(e, "kind"));
		json_decref(o);
		if (same)
			at = k;
	}
	json_decref(e);
	if (at < 0)
		at = 0;
	free(r->store[at]);
	r->store[at] = event;
}

void
fake_publish(struct fake_net *f, unsigned relay, const struct sl_nostr_event *e)
{
	struct fake_relay *r = &f->relays[relay];
	size_t len;
	char *text = sl_nostr_event_format(e, &len);

	store(f, relay, text);
	for (unsigned k = 0; k < r->sub_count; k++)
		say_event(f, relay, r->subs[k], text);
}

static void
answer(struct fake_net *f, unsigned relay, const char *text)
{
	struct fake_relay *r = &f->relays[relay];
	json_t *m = json_loads(text, 0, NULL);
	const char *type = json_string_value(json_array_get(m, 0)), *arg = json_string_value(json_array_get(m, 1));
	char out[256];

	if (type && !strcmp(type, "REQ"))
		answer_req(f, relay, m);
	for (unsigned k = 0; type && !strcmp(type, "CLOSE") && k < r->sub_count; k++)
		if (!strcmp(r->subs[k], arg))
			memmove(r->subs[k], r->subs[--r->sub_count], sizeof(r->subs[0]));
	if (type && !strcmp(type, "EVENT")) {
		snprintf(out, sizeof(out), "[\"OK\",\"%s\",true,\"\"]",
			json_string_value(json_object_get(json_array_get(m, 1), "id")));
		store(f, relay, json_dumps(json_array_get(m, 1), JSON_COMPACT));
		fake_say(f, relay, out);
	}
	json_decref(m);
}

void
fake_serve(struct fake_net *f)
{
	unsigned seen[FAKE_RELAYS] = {0};

	for (unsigned i = 0; i < FAKE_RELAYS; i++) {
		struct fake_relay *r = &f->relays[i];

		if (r->pinged && r->open && !r->mute)
			sl_nostr_client_heard(f->client, i, &f->now);
		r->pinged = false;
		if (r->wanted && !r->open) {
			r->wanted = false;
			if (r->up) {
				r->open = true;
				r->sub_count = 0;
				seen[i] = r->sent_count;
				sl_nostr_client_opened(f->client, i, &f->now);
				while (!r->mute && r->open && seen[i] < r->sent_count)
					answer(f, i, r->sent[seen[i]++ % FAKE_SENT]);
				r->answered = r->sent_count;
			} else {
				sl_nostr_client_closed(f->client, i, "refused", &f->now);
			}
		}
	}
}

uint64_t
fake_step(struct fake_net *f)
{
	unsigned before[FAKE_RELAYS];
	uint64_t next;

	for (unsigned i = 0; i < FAKE_RELAYS; i++)
		before[i] = f->relays[i].answered;
	next = sl_nostr_client_tick(f->client, &f->now);
	for (unsigned i = 0; i < FAKE_RELAYS; i++) {
		struct fake_relay *r = &f->relays[i];

		while (r->open && !r->mute && before[i] < r->sent_count)
			answer(f, i, r->sent[before[i]++ % FAKE_SENT]);
		r->answered = r->sent_count;
	}
	fake_serve(f);
	return next;
}

/* What the client says of itself between two steps is answered only when `answered` is set back (a fetch of a test). */
void
fake_run(struct fake_net *f, uint64_t us)
{
	uint64_t end = f->now.us + us;

	while (f->now.us < end) {
		uint64_t next, step = end - f->now.us;

		for (unsigned i = 0; i < FAKE_RELAYS; i++)
			f->relays[i].answered = f->relays[i].sent_count;
		next = fake_step(f);
		if (next > f->now.us && next - f->now.us < step)
			step = next - f->now.us;
		if (step > 100000)
			step = 100000;
		if (step < 1000)
			step = 1000;
		f->now.unix_s += (f->now.us % 1000000 + step) / 1000000;
		f->now.us += step;
	}
}

void
fake_cut(struct fake_net *f, unsigned relay)
{
	struct fake_relay *r = &f->relays[relay];

	if (!r->open)
		return;
	r->open = false;
	r->sub_count = 0;
	sl_nostr_client_closed(f->client, relay, "cut", &f->now);
}
