/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A relay's words: one input is a conversation, messages apart by newlines, given to a client that has a subscription, a fetch
 * and a publication under way. "@" in a message stands for the id of the standing subscription, so that a fuzzer need not guess it.
 *
 * Checked: what is parsed as an event is written and parsed again as the same event, with the same hash; no event reaches
 * the sink but a verified one of the author that was asked about; a parsed advert has usable endpoints only; subscriptions and
 * publications stay as many as there were; whatever was said, the next connection begins as the first did.
 */
#include "fuzz.h"
#include "sl_advert.h"
#include "sl_nostr_client.h"

#include <string.h>

#define SECRET "b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0"

static struct sl_identity *identity;
static char sub_id[80];
static unsigned closes;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	identity = sl_identity_from_text(SECRET);
	FUZZ_CHECK(identity != NULL);
	return 0;
}

static int
net_open(void *arg, unsigned relay)
{
	(void)arg;
	(void)relay;
	return 0;
}
static int
net_send(void *arg, unsigned relay, const char *text, size_t len)
{
	(void)arg;
	(void)relay;
	FUZZ_CHECK(strlen(text) == len && text[0] == '[');
	if (!sub_id[0])
		(void)!sscanf(text, "[\"REQ\",\"%64[^\"]", sub_id);
	return 0;
}
static void
net_ping(void *arg, unsigned relay)
{
	(void)arg;
	(void)relay;
}
static void
net_pause(void *arg, unsigned relay, bool stop)
{
	(void)arg;
	(void)relay;
	(void)stop;
}
static void
net_close(void *arg, unsigned relay)
{
	(void)arg;
	(void)relay;
	closes++;
}

static void
on_event(void *arg, int sub, uint32_t tag, unsigned relay, const struct sl_nostr_event *e)
{
	struct sl_advert a;

	(void)arg;
	(void)sub;
	(void)relay;
	FUZZ_CHECK(tag == 1 || tag == 2);
	FUZZ_CHECK(sl_nostr_event_verify(e) == SL_NOSTR_OK);
	FUZZ_CHECK(memcmp(e->pubkey, sl_identity_xonly(identity), 32) == 0 && e->kind == SL_ADVERT_KIND);
	if (sl_advert_parse(&a, e, SL_ADVERT_D, 3600, 1700000000))
		return;
	FUZZ_CHECK(a.endpoint_count > 0 && a.endpoint_count <= SL_ADVERT_ENDPOINTS_MAX);
	for (unsigned i = 0; i < a.endpoint_count; i++)
		FUZZ_CHECK(!a.endpoints[i].family || sl_advert_ip_usable(a.endpoints[i].family, a.endpoints[i].ip));
}
static void
on_fetched(void *arg, uint32_t tag, const struct sl_nostr_fetch_result *r)
{
	(void)arg;
	FUZZ_CHECK(tag == 2 && r->answered + r->refused + r->silent + r->away == 1);
}

/* Events of any form: there and back again. */
static void
round_trip(const char *text, size_t len)
{
	struct sl_nostr_event e, again;
	struct sl_advert a;
	size_t written;
	char *out;

	if (sl_nostr_event_parse(&e, text, len, SL_NOSTR_UNSIGNED))
		return;
	(void)!sl_advert_parse(&a, &e, SL_ADVERT_D, 3600, 1700000000);
	(void)!sl_nostr_event_clock(&e, 1700000000, 3600, 60);
	out = sl_nostr_event_format(&e, &written);
	if (out) { /* escapes may make it longer than a text may be */
		FUZZ_CHECK(sl_nostr_event_parse(&again, out, written, SL_NOSTR_UNSIGNED) == SL_NOSTR_OK);
		FUZZ_CHECK(sl_nostr_event_check_id(&e) == sl_nostr_event_check_id(&again));
		FUZZ_CHECK(e.tag_count == again.tag_count && !strcmp(e.content, again.content));
		sl_nostr_event_fini(&again);
	}
	free(out);
	sl_nostr_event_fini(&e);
}

static void
say(struct sl_nostr_client *c, const char *text, size_t len, const struct sl_nostr_time *now)
{
	char *said = malloc(len + sizeof(sub_id) + 1);
	const char *at = memchr(text, '@', len);
	size_t n = 0;

	if (at) {
		memcpy(said, text, (size_t)(at - text));
		n = (size_t)(at - text);
		memcpy(said + n, sub_id, strlen(sub_id));
		n += strlen(sub_id);
		memcpy(said + n, at + 1, len - (size_t)(at + 1 - text));
		n += len - (size_t)(at + 1 - text);
	} else {
		memcpy(said, text, len);
		n = len;
	}
	said = realloc(said, n ? n : 1); /* ends where its memory ends */
	sl_nostr_client_text(c, 0, said, n, now);
	round_trip(said, n);
	free(said);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const urls[] = {"ws://relay.example"};
	struct sl_nostr_net net = {NULL, net_open, net_send, net_ping, net_pause, net_close};
	struct sl_nostr_sink sink = {NULL, on_event, on_fetched, NULL};
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = sl_identity_xonly(identity),
		.author_count = 1, .d = SL_ADVERT_D, .limit = -1};
	struct sl_nostr_time now = {1000000, 1700000000};
	struct sl_nostr_client *c = sl_nostr_client_create(urls, 1, identity, &net, &sink, &now);
	struct sl_nostr_relay_info info;
	const char *text = (const char *)data, *end = text + size, *line;
	unsigned subs, publications;

	sub_id[0] = '\0';
	FUZZ_CHECK(c && sl_nostr_subscribe(c, 1, &f, 1, &now) >= 0);
	(void)sl_nostr_client_tick(c, &now);
	sl_nostr_client_opened(c, 0, &now);
	FUZZ_CHECK(sub_id[0] != '\0');
	FUZZ_CHECK(sl_nostr_fetch(c, 2, &f, 1, 2000000, &now) >= 0);
	while (size && text < end) {
		line = memchr(text, '\n', (size_t)(end - text));
		if (!line)
			line = end;
		say(c, text, (size_t)(line - text), &now);
		now.us += 1000;
		text = line + 1;
	}
	now.us += 60000000;
	now.unix_s += 60;
	(void)sl_nostr_client_tick(c, &now);
	sl_nostr_client_usage(c, &subs, &publications);
	FUZZ_CHECK(subs == 1 && publications == 0);
	sl_nostr_client_closed(c, 0, "end", &now);
	sl_nostr_client_relay_info(c, 0, &info);
	FUZZ_CHECK(info.state == SL_NOSTR_RELAY_WAITING && info.next_attempt_us > now.us);
	now.us = info.next_attempt_us;
	(void)sl_nostr_client_tick(c, &now);
	sl_nostr_client_opened(c, 0, &now);
	sl_nostr_client_relay_info(c, 0, &info);
	FUZZ_CHECK(info.state == SL_NOSTR_RELAY_OPEN && info.subscriptions == 1);
	sl_nostr_client_destroy(c);
	return 0;
}
