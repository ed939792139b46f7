/* SPDX-License-Identifier: BSD-3-Clause */
/* The client against relays without sockets on a virtual clock: its own rules, and every bad habit of a relay. */
#include "fake_relay.h"

#include <malloc.h>
#include <stdlib.h>

#define SECRET_A "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
#define SECRET_B "b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0"
#define SECOND 1000000u

static struct {
	struct fake_net net;
	struct sl_identity *us, *peer;
	unsigned events, fetched, changes;
	uint8_t last_id[32];
	struct sl_nostr_fetch_result result;
} t;

static void
on_event(void *arg, int sub, uint32_t tag, unsigned relay, const struct sl_nostr_event *e)
{
	(void)arg, (void)sub, (void)tag, (void)relay;
	t.events++;
	memcpy(t.last_id, e->id, 32);
}
static void
on_fetched(void *arg, uint32_t tag, const struct sl_nostr_fetch_result *r)
{
	(void)arg, (void)tag;
	t.fetched++;
	t.result = *r;
}
static void
on_relay(void *arg, unsigned relay, const struct sl_nostr_relay_info *info)
{
	(void)arg, (void)relay, (void)info;
	t.changes++;
}

static void
begin(unsigned relays)
{
	static const char *const urls[] = {"ws://a.test", "ws://b.test", "ws://c.test", "ws://d.test"};
	struct sl_nostr_sink sink = {NULL, on_event, on_fetched, on_relay};
	struct sl_nostr_net ops;

	memset(&t, 0, sizeof(t));
	fake_init(&t.net);
	t.us = sl_identity_from_text(SECRET_A);
	t.peer = sl_identity_from_text(SECRET_B);
	fake_ops(&t.net, &ops);
	t.net.client = sl_nostr_client_create(urls, relays, t.us, &ops, &sink, &t.net.now);
}

static void
end(void)
{
	sl_nostr_client_destroy(t.net.client);
	fake_fini(&t.net);
	sl_identity_destroy(t.us);
	sl_identity_destroy(t.peer);
}

static struct sl_nostr_filter
of_peer(void)
{
	return (struct sl_nostr_filter){.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = sl_identity_xonly(t.peer),
		.author_count = 1, .d = SL_ADVERT_D, .limit = -1};
}

/* An advert of the peer, made at created_at; ttl_s long. */
/* Each relay with a subscription of its own (tag: its number from 1) to the peer's adverts, a second later. */
static void
begin_subscribed(unsigned relays)
{
	struct sl_nostr_filter f;

	begin(relays);
	f = of_peer();
	for (unsigned i = 0; i < relays; i++)
		SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, i + 1, &f, 1u << i, &t.net.now), 0);
	fake_run(&t.net, SECOND);
}

static void
advert(struct sl_nostr_event *e, uint64_t created_at, const char *addr)
{
	struct sl_advert a = {.endpoint_count = 1};

	(void)!sl_advert_endpoint_parse(&a.endpoints[0], "udp", addr);
	if (sl_advert_build(e, &a, SL_ADVERT_D, created_at, 3600, t.peer))
		sl_test_fail(__FILE__, __LINE__, "no advert");
}

static void
say_event(unsigned relay, const struct sl_nostr_event *e)
{
	size_t len;
	char *event = sl_nostr_event_format(e, &len), *text = event ? malloc(len + 128) : NULL;

	SL_ASSERT(text != NULL);
	snprintf(text, len + 128, "[\"EVENT\",\"%s\",%s]", t.net.relays[relay].subs[0], event);
	fake_say(&t.net, relay, text);
	free(event);
	free(text);
}

static struct sl_nostr_relay_info
info(unsigned relay)
{
	struct sl_nostr_relay_info i;

	sl_nostr_client_relay_info(t.net.client, relay, &i);
	return i;
}

SL_TEST(client, an_event_over_two_relays_comes_once)
{
	struct sl_nostr_filter f;
	struct sl_nostr_event e;

	begin(2);
	f = of_peer();
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 3, &t.net.now), 0);
	fake_run(&t.net, SECOND);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_OPEN);
	SL_EXPECT_EQ(info(1).subscriptions, 1);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	fake_publish(&t.net, 0, &e);
	fake_publish(&t.net, 1, &e);
	fake_publish(&t.net, 1, &e);
	SL_EXPECT_EQ(t.events, 1);
	SL_EXPECT_EQ(info(1).duplicates, 2);
	/* A fetch sees what is known already, and says who answered. */
	SL_EXPECT_GE(sl_nostr_fetch(t.net.client, 2, &f, 3, 2 * SECOND, &t.net.now), 0);
	for (unsigned i = 0; i < 2; i++) {
		char eose[64];

		sscanf(fake_last(&t.net, i), "[\"REQ\",\"%30[^\"]", t.net.relays[i].subs[0]);
		say_event(i, &e);
		snprintf(eose, sizeof(eose), "[\"EOSE\",\"%s\"]", t.net.relays[i].subs[0]);
		fake_say(&t.net, i, eose);
	}
	SL_EXPECT_EQ(t.events, 3);
	SL_EXPECT_EQ(t.fetched, 1);
	SL_EXPECT_EQ(t.result.answered, 2);
	sl_nostr_event_fini(&e);
	end();
}

SL_TEST(client, forgeries_are_named_and_end_the_connection)
{
	struct sl_nostr_filter f;
	struct sl_nostr_event e;

	begin(2);
	f = of_peer();
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 3, &t.net.now), 0);
	fake_run(&t.net, SECOND);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	e.sig[5] ^= 1;
	say_event(0, &e);
	e.sig[5] ^= 1;
	e.created_at++;
	say_event(0, &e);
	e.created_at--;
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_BAD_SIGNATURE], 1);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_BAD_ID], 1);
	SL_EXPECT_EQ(t.events, 0);
	/* The forgery did not make the true one look old. */
	say_event(1, &e);
	SL_EXPECT_EQ(t.events, 1);
	e.sig[5] ^= 1;
	sl_nostr_event_fini(&e);
	advert(&e, t.net.now.unix_s, "8.8.4.4:2121");
	e.sig[5] ^= 1;
	for (unsigned n = 2; n < SL_NOSTR_STRIKES_MAX; n++)
		say_event(0, &e);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_WAITING);
	SL_EXPECT(strstr(info(0).last_error, "bad_signature") != NULL);
	SL_EXPECT_GE(info(0).next_attempt_us - t.net.now.us, SL_NOSTR_BACKOFF_MAX_US / 2);
	SL_EXPECT_EQ(info(1).state, SL_NOSTR_RELAY_OPEN);
	sl_nostr_event_fini(&e);
	end();
}

/* What a stranger can have an honest relay say: named, not the relay's fault. */
SL_TEST(client, strangers_do_not_cut_us_off_from_a_relay)
{
	static char text[8192];
	size_t n;

	begin(1);
	fake_run(&t.net, SECOND);
	n = (size_t)snprintf(text, sizeof(text),
		"[\"EVENT\",\"x\",{\"id\":\"%064d\",\"pubkey\":\"%064d\",\"sig\":\"%0128d\",\"created_at\":1,\"kind\":21059,"
		"\"content\":\"\",\"tags\":[[\"p\"]", 0, 0, 0);
	for (unsigned i = 0; i < SL_NOSTR_TAGS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",[\"p\"]");
	snprintf(text + n, sizeof(text) - n, "]}]");
	for (unsigned i = 0; i < 2 * SL_NOSTR_STRIKES_MAX; i++)
		fake_say(&t.net, 0, text);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_TOO_MANY_TAGS], 2 * SL_NOSTR_STRIKES_MAX);
	/* A NUL in a text is allowed by NIP-01, and so is a time beyond all calendars. */
	for (unsigned i = 0; i < 2 * SL_NOSTR_STRIKES_MAX; i++) {
		snprintf(text, sizeof(text), "[\"EVENT\",\"x\",{\"id\":\"%064d\",\"pubkey\":\"%064d\",\"sig\":\"%0128d\","
			"\"created_at\":%s,\"kind\":21059,\"content\":\"%s\",\"tags\":[]}]", 0, 0, 0,
			i % 2 ? "1" : "999999999999", i % 2 ? "a\\u0000b" : "");
		fake_say(&t.net, 0, text);
	}
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_NUL], SL_NOSTR_STRIKES_MAX);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_FUTURE], SL_NOSTR_STRIKES_MAX);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_OPEN);
	end();
}

SL_TEST(client, clocks)
{
	struct sl_nostr_event e;

	begin_subscribed(1);
	advert(&e, t.net.now.unix_s - 7200, "8.8.8.8:2121");
	say_event(0, &e);
	sl_nostr_event_fini(&e);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_EXPIRED], 1);
	advert(&e, t.net.now.unix_s + 90, "8.8.8.8:2121");
	say_event(0, &e);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_FUTURE], 1);
	SL_EXPECT_EQ(t.events, 0);
	/* Its time comes. */
	fake_run(&t.net, 40 * SECOND);
	say_event(0, &e);
	SL_EXPECT_EQ(t.events, 1);
	sl_nostr_event_fini(&e);
	end();
}

/* A relay that speaks for another's subscription, or for one that nobody has: nothing of it counts, and nobody else suffers. */
SL_TEST(client, others_subscriptions)
{
	struct sl_nostr_event e;
	char text[128], id[SL_NOSTR_SUB_ID_MAX + 1];

	begin_subscribed(2);
	snprintf(id, sizeof(id), "%s", t.net.relays[1].subs[0]);
	snprintf(t.net.relays[1].subs[0], sizeof(id), "%s", t.net.relays[0].subs[0]);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	say_event(1, &e);
	snprintf(t.net.relays[1].subs[0], sizeof(id), "nobody's");
	say_event(1, &e);
	SL_EXPECT_EQ(t.events, 0);
	SL_EXPECT_EQ(info(1).unwanted, 2);
	snprintf(text, sizeof(text), "[\"CLOSED\",\"%s\",\"error: over\"]", t.net.relays[0].subs[0]);
	fake_say(&t.net, 1, text);
	SL_EXPECT_EQ(info(0).subscriptions, 1);
	SL_EXPECT_EQ(info(1).subscriptions, 1);
	/* Not even seen: the true ones are taken. */
	snprintf(t.net.relays[1].subs[0], sizeof(id), "%s", id);
	say_event(0, &e);
	SL_EXPECT_EQ(t.events, 1);
	sl_nostr_event_fini(&e);
	end();
}

/* Our clock is a day behind, then right, then a day ahead: adverts are late or void, no relay is to blame, and nothing is lost. */
SL_TEST(client, our_clock_jumps)
{
	struct sl_nostr_event e;

	begin_subscribed(1);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	t.net.now.unix_s -= 86400;
	for (unsigned i = 0; i < 2 * SL_NOSTR_STRIKES_MAX; i++)
		say_event(0, &e);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_FUTURE], 2 * SL_NOSTR_STRIKES_MAX);
	SL_EXPECT_EQ(t.events, 0);
	t.net.now.unix_s += 86400;
	say_event(0, &e);
	SL_EXPECT_EQ(t.events, 1);
	sl_nostr_event_fini(&e);
	advert(&e, t.net.now.unix_s, "8.8.4.4:2121");
	t.net.now.unix_s += 86400;
	say_event(0, &e);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_EXPIRED], 1);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_OPEN);
	SL_EXPECT_EQ(info(0).connects, 1);
	sl_nostr_event_fini(&e);
	end();
}

SL_TEST(client, closed_is_given_up_until_the_next_connection)
{
	struct sl_nostr_filter f;

	begin(1);
	t.net.relays[0].refuses = true;
	f = of_peer();
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 1, &t.net.now), 0);
	fake_run(&t.net, 1200 * (uint64_t)SECOND);
	SL_EXPECT_EQ(t.net.relays[0].reqs, 1);
	SL_EXPECT_EQ(info(0).subscriptions_closed, 1);
	SL_EXPECT_STR(info(0).last_error, "closed a subscription: blocked: go away");
	fake_run(&t.net, 700 * (uint64_t)SECOND);
	SL_EXPECT_EQ(t.net.relays[0].reqs, 2); /* half an hour later */
	t.net.relays[0].refuses = false;
	fake_cut(&t.net, 0);
	fake_run(&t.net, 10 * SECOND);
	SL_EXPECT_EQ(t.net.relays[0].reqs, 3);
	SL_EXPECT_EQ(info(0).subscriptions, 1);
	end();
}

SL_TEST(client, half_open_is_found_by_ping)
{
	struct sl_nostr_filter f;

	begin(1);
	f = of_peer();
	t.net.relays[0].mute = true;
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 1, &t.net.now), 0);
	fake_run(&t.net, 35 * SECOND);
	SL_EXPECT_EQ(t.net.relays[0].pings, 1);
	sl_nostr_client_heard(t.net.client, 0, &t.net.now);
	fake_run(&t.net, 33 * SECOND);
	SL_EXPECT_EQ(t.net.relays[0].pings, 2);
	SL_EXPECT_EQ(info(0).connects, 1);
	fake_run(&t.net, 10 * SECOND);
	SL_EXPECT_STR(info(0).last_error, "no answer to a ping");
	end();
}

SL_TEST(client, backoff_doubles_with_jitter_to_its_ceiling)
{
	uint64_t total = 3600 * (uint64_t)SECOND;

	begin(1);
	t.net.relays[0].up = false;
	fake_run(&t.net, total);
	/* 2, 4, ... 256 s are about 510 s at the most, then one each 150 to 300 s. */
	SL_EXPECT_GE(t.net.relays[0].opens, 8 + 3000 / 300);
	SL_EXPECT_LE(t.net.relays[0].opens, 10 + 3400 / 150);
	SL_EXPECT_LE(t.changes, t.net.relays[0].opens + 1);
	t.net.relays[0].up = true;
	fake_run(&t.net, 301 * (uint64_t)SECOND);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_OPEN);
	/* Stable, then lost: back at once. */
	fake_run(&t.net, 70 * SECOND);
	t.net.relays[0].mute = false;
	fake_cut(&t.net, 0);
	SL_EXPECT_LE(info(0).next_attempt_us - t.net.now.us, SL_NOSTR_BACKOFF_BASE_US);
	end();
}

SL_TEST(client, a_flood_is_paused_then_ended)
{
	struct sl_nostr_filter f;
	struct sl_nostr_event e;
	unsigned said = 0;

	begin(2);
	f = of_peer();
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 3, &t.net.now), 0);
	fake_run(&t.net, SECOND);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	/* As fast as it is read, for as long as it is let. */
	for (unsigned ms = 0; ms < 60000 && info(0).state == SL_NOSTR_RELAY_OPEN; ms += 10) {
		for (unsigned n = 0; n < 100 && t.net.relays[0].open && !t.net.relays[0].paused; n++, said++)
			say_event(0, &e);
		fake_run(&t.net, 10000);
	}
	printf("flood: %u messages taken before it was ended\n", said);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_WAITING);
	SL_EXPECT_STR(info(0).last_error, "floods");
	SL_EXPECT_LE(said, 5 * SL_NOSTR_MESSAGES_PER_S + 25 * SL_NOSTR_MESSAGES_PER_S);
	SL_EXPECT_EQ(t.events, 1);
	SL_EXPECT_EQ(info(1).state, SL_NOSTR_RELAY_OPEN);
	sl_nostr_event_fini(&e);
	end();
}

SL_TEST(client, a_flood_without_messages_is_paused_then_ended)
{
	uint64_t took = 0;

	begin(1);
	fake_run(&t.net, SECOND);
	/* Pings, or a message without an end: nothing that a text or a fault would stand for. */
	for (unsigned ms = 0; ms < 60000 && info(0).state == SL_NOSTR_RELAY_OPEN; ms += 10) {
		if (t.net.relays[0].open && !t.net.relays[0].paused) {
			sl_nostr_client_overhead(t.net.client, 0, 100000, &t.net.now);
			took += 100000;
		}
		fake_run(&t.net, 10000);
	}
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_WAITING);
	SL_EXPECT_STR(info(0).last_error, "floods");
	SL_EXPECT_EQ(info(0).messages, 0);
	SL_EXPECT_EQ(info(0).bytes, took);
	SL_EXPECT_LE(took, UINT64_C(33) * SL_NOSTR_BYTES_PER_S);
	end();
}

/* Two bytes each and as much work as a message: paid for by number. */
SL_TEST(client, frames_without_content_are_paid_for_by_number)
{
	unsigned pongs = 0, pings = 0;

	begin(2);
	fake_run(&t.net, SECOND);
	while (!t.net.relays[0].paused && pongs < 100000) {
		sl_nostr_client_heard(t.net.client, 0, &t.net.now);
		pongs++;
	}
	SL_EXPECT_LE(pongs, 5 * SL_NOSTR_MESSAGES_PER_S);
	while (!t.net.relays[1].paused && pings < 1000000) {
		sl_nostr_client_overhead(t.net.client, 1, 2, &t.net.now);
		pings++;
	}
	SL_EXPECT_LE(pings, 32 * (5 * SL_NOSTR_MESSAGES_PER_S + 65));
	end();
}

/* A frame's head and a TLS record to each message are no flood. */
SL_TEST(client, what_messages_bring_with_them_costs_nothing_more)
{
	begin(1);
	fake_run(&t.net, SECOND);
	for (unsigned i = 0; i < 60 * SL_NOSTR_MESSAGES_PER_S; i++) {
		fake_say(&t.net, 0, "[\"NOTICE\",\"x\"]");
		sl_nostr_client_overhead(t.net.client, 0, 45, &t.net.now);
		fake_run(&t.net, SECOND / SL_NOSTR_MESSAGES_PER_S);
	}
	SL_EXPECT_EQ(info(0).throttled, 0);
	SL_EXPECT_EQ(info(0).state, SL_NOSTR_RELAY_OPEN);
	end();
}

SL_TEST(client, what_stands_is_published_to_whom_was_away)
{
	struct sl_nostr_event e;

	begin(3);
	t.net.relays[1].up = false;
	fake_run(&t.net, SECOND);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	SL_EXPECT_EQ(sl_nostr_publish(t.net.client, 1, &e, 3, &t.net.now), 0);
	fake_run(&t.net, SECOND);
	sl_nostr_event_fini(&e);
	SL_EXPECT_EQ(sl_nostr_publish_accepted(t.net.client, 1), 0); /* nobody has answered yet: sent outside of a step */
	fake_say(&t.net, 0, "[\"OK\",\"00\",true,\"\"]");
	advert(&e, t.net.now.unix_s, "8.8.8.8:2122");
	t.net.relays[1].up = true;
	SL_EXPECT_EQ(sl_nostr_publish(t.net.client, 1, &e, 3, &t.net.now), 0);
	fake_run(&t.net, 30 * (uint64_t)SECOND);
	SL_EXPECT_EQ(sl_nostr_publish_accepted(t.net.client, 1), 1); /* the one that was away has got it on opening */
	SL_EXPECT(t.net.relays[1].store[0] && strstr(t.net.relays[1].store[0], "8.8.8.8:2122"));
	SL_EXPECT(!t.net.relays[2].store[0]);
	sl_nostr_event_fini(&e);
	end();
}

SL_TEST(client, refused_is_tried_again_later)
{
	struct sl_nostr_event e;
	char hex[65], text[160];
	unsigned before;

	begin(1);
	fake_run(&t.net, SECOND);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	SL_EXPECT_EQ(sl_nostr_publish(t.net.client, 1, &e, 1, &t.net.now), 0);
	sl_hex_format(hex, e.id, 32);
	snprintf(text, sizeof(text), "[\"OK\",\"%s\",false,\"rate-limited: slow down\x01\"]", hex);
	fake_say(&t.net, 0, text);
	SL_EXPECT_EQ(info(0).faults[SL_NOSTR_NOT_JSON], 1); /* a raw control character is no JSON */
	snprintf(text, sizeof(text), "[\"OK\",\"%s\",false,\"rate-limited: slow down\"]", hex);
	fake_say(&t.net, 0, text);
	SL_EXPECT_EQ(info(0).refused, 1);
	before = t.net.relays[0].sent_count;
	fake_run(&t.net, 59 * (uint64_t)SECOND);
	SL_EXPECT_EQ(t.net.relays[0].sent_count, before);
	fake_run(&t.net, 3 * SECOND);
	SL_EXPECT_EQ(sl_nostr_publish_accepted(t.net.client, 1), 1);
	sl_nostr_event_fini(&e);
	end();
}

SL_TEST(client, authentication_when_a_relay_wants_it)
{
	struct sl_nostr_filter f;
	struct sl_nostr_event e;
	char text[256], hex[65], sub[32];

	begin(1);
	t.net.relays[0].mute = true;
	f = of_peer();
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 1, &t.net.now), 0);
	fake_run(&t.net, SECOND);
	SL_ASSERT(sscanf(fake_last(&t.net, 0), "[\"REQ\",\"%30[^\"]", sub) == 1);
	snprintf(text, sizeof(text), "[\"CLOSED\",\"%s\",\"auth-required: who are you\"]", sub);
	fake_say(&t.net, 0, text);
	fake_say(&t.net, 0, "[\"AUTH\",\"challenge-1\"]");
	SL_ASSERT(!strncmp(fake_last(&t.net, 0), "[\"AUTH\",{", 9));
	snprintf(text, sizeof(text), "%s", "");
	SL_EXPECT_EQ(sl_nostr_event_parse(&e, fake_last(&t.net, 0) + 8, strlen(fake_last(&t.net, 0)) - 9, 0), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	SL_EXPECT_EQ(e.kind, 22242);
	SL_EXPECT_STR(sl_nostr_event_tag(&e, "challenge"), "challenge-1");
	SL_EXPECT_STR(sl_nostr_event_tag(&e, "relay"), "ws://a.test");
	sl_hex_format(hex, e.id, 32);
	sl_nostr_event_fini(&e);
	/* A second challenge gets no second signature. */
	fake_say(&t.net, 0, "[\"AUTH\",\"challenge-2\"]");
	SL_EXPECT(strstr(fake_last(&t.net, 0), "challenge-1") != NULL);
	snprintf(text, sizeof(text), "[\"OK\",\"%s\",true,\"\"]", hex);
	fake_say(&t.net, 0, text);
	SL_EXPECT(!strncmp(fake_last(&t.net, 0), "[\"REQ\",", 7));
	end();
}

SL_TEST(client, fetch_tells_silence_from_none)
{
	struct sl_nostr_filter f;

	begin(3);
	f = of_peer();
	t.net.relays[1].mute = true;
	t.net.relays[2].up = false;
	fake_run(&t.net, SECOND);
	SL_EXPECT_GE(sl_nostr_fetch(t.net.client, 7, &f, 7, 2 * SECOND, &t.net.now), 0);
	{
		char sub[32], text[64];

		SL_ASSERT(sscanf(fake_last(&t.net, 0), "[\"REQ\",\"%30[^\"]", sub) == 1);
		snprintf(text, sizeof(text), "[\"EOSE\",\"%s\"]", sub);
		fake_say(&t.net, 0, text);
	}
	SL_EXPECT_EQ(t.fetched, 0);
	fake_run(&t.net, 3 * SECOND);
	SL_EXPECT_EQ(t.fetched, 1);
	SL_EXPECT_EQ(t.result.answered, 1);
	SL_EXPECT_EQ(t.result.silent, 1);
	SL_EXPECT_EQ(t.result.away, 1);
	/* Nobody is there at all. */
	fake_cut(&t.net, 0);
	fake_cut(&t.net, 1);
	SL_EXPECT_GE(sl_nostr_fetch(t.net.client, 8, &f, 7, 2 * SECOND, &t.net.now), 0);
	sl_nostr_client_tick(t.net.client, &t.net.now);
	SL_EXPECT_EQ(t.fetched, 2);
	SL_EXPECT_EQ(t.result.away, 3);
	end();
}

SL_TEST(client, nothing_grows_in_a_thousand_reconnects)
{
	struct sl_nostr_filter f;
	struct sl_nostr_event e;
	unsigned subs, publications, subs_before, publications_before;
	size_t before = 0;

	begin(3);
	f = of_peer();
	SL_EXPECT_GE(sl_nostr_subscribe(t.net.client, 1, &f, 7, &t.net.now), 0);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	SL_EXPECT_EQ(sl_nostr_publish(t.net.client, 1, &e, 7, &t.net.now), 0);
	for (unsigned n = 0; n < 1100; n++) {
		fake_run(&t.net, 400 * (uint64_t)SECOND / 100);
		if (n == 100) {
			sl_nostr_client_usage(t.net.client, &subs_before, &publications_before);
			before = mallinfo2().uordblks;
		}
		(void)!sl_nostr_fetch(t.net.client, 2, &f, 7, 2 * SECOND, &t.net.now);
		for (unsigned i = 0; i < 3; i++) {
			sl_nostr_client_tick(t.net.client, &t.net.now);
			fake_cut(&t.net, i);
		}
		t.net.now.us += SL_NOSTR_BACKOFF_MAX_US;
	}
	sl_nostr_client_tick(t.net.client, &t.net.now);
	sl_nostr_client_usage(t.net.client, &subs, &publications);
	printf("connects %u %u %u, subscriptions %u then %u, publications %u then %u, heap %zu then %zu bytes\n",
		info(0).connects, info(1).connects, info(2).connects, subs_before, subs, publications_before, publications,
		before, mallinfo2().uordblks);
	SL_EXPECT_GE(info(0).connects, 1000);
	SL_EXPECT_EQ(subs, subs_before);
	SL_EXPECT_EQ(publications, publications_before);
#if !defined(__SANITIZE_ADDRESS__)
	SL_EXPECT_LE((long long)mallinfo2().uordblks - (long long)before, 4096);
#endif
	sl_nostr_event_fini(&e);
	end();
}

/* Random words from a relay, whole and cut, between true ones: nothing breaks, the sink sees only verified events. */
SL_TEST(client, random_words)
{
	struct sl_nostr_event e;

	begin_subscribed(1);
	for (unsigned n = 0; n < 3000; n++) {
		static const char *const words[] = {"[\"EVENT\",\"x\",{}]", "[\"EOSE\"]", "[\"OK\",1,2]", "[\"NOTICE\",{}]",
			"[\"CLOSED\",\"x\",3]", "[\"AUTH\",\"c\"]", "[]", "{}", "[[[[]]]]", "[\"COUNT\",\"x\",{}]", "\"\\ud800\""};
		const char *w = words[sl_test_rand() % (sizeof(words) / sizeof(words[0]))];
		char cut[64];

		snprintf(cut, sizeof(cut), "%.*s", (int)(sl_test_rand() % (strlen(w) + 1)), w);
		fake_say(&t.net, 0, sl_test_rand() & 1 ? w : cut);
		if (n % 50 == 0)
			fake_run(&t.net, 400 * (uint64_t)SECOND);
	}
	SL_EXPECT_EQ(t.events, 0);
	fake_run(&t.net, 400 * (uint64_t)SECOND);
	fake_run(&t.net, SECOND);
	advert(&e, t.net.now.unix_s, "8.8.8.8:2121");
	SL_ASSERT(t.net.relays[0].open);
	say_event(0, &e);
	SL_EXPECT_EQ(t.events, 1);
	sl_nostr_event_fini(&e);
	end();
}
