/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links that get their addresses from adverts, on a virtual clock: the real client, the real cache and the real links, with relays
 * and wires in memory. What joins them here is what app/sluiced/rendezvous.c and peers.c do in the daemon.
 */
#include "fake_relay.h"
#include "link_net.h"
#include "sl_discovery.h"

#define DAY (86400ull * NET_S)

static struct {
	struct net *net;
	struct node *us, *peer;
	struct fake_net relays;
	struct sl_discovery *discovery;
	unsigned fetches;
	struct sl_addr dead;
	uint16_t advertised; /* what the links have been told; 0 = nothing */
	uint64_t next_dial_us;
	uint64_t up_us;
} w;

static void
on_event(void *arg, int sub, uint32_t tag, unsigned relay, const struct sl_nostr_event *e)
{
	struct sl_advert *a = malloc(sizeof(*a));

	(void)arg, (void)sub, (void)tag, (void)relay;
	if (sl_advert_parse(a, e, SL_ADVERT_D, 3600, w.relays.now.unix_s))
		free(a);
	else
		SL_EXPECT(sl_discovery_advert(w.discovery, a, &w.relays.now));
}

static void
on_fetched(void *arg, uint32_t tag, const struct sl_nostr_fetch_result *r)
{
	(void)arg;
	sl_discovery_fetched(w.discovery, tag, r, &w.relays.now);
}

static bool dirty;
static void
on_changed(void *arg, unsigned peer, const struct sl_advert *a)
{
	(void)arg, (void)peer, (void)a;
	dirty = true;
}

/* The advert names the port alone that counts here: a wire of the peer's. The file's address is dead for ever. */
static void
configure(void)
{
	const struct sl_advert *a = sl_discovery_lookup(w.discovery, 0);
	struct sl_peer_config p = {.auto_connect = true, .auto_reconnect = true};

	memcpy(p.xonly, sl_identity_xonly(w.peer->identity), SL_XONLY_BYTES);
	w.advertised = a ? a->endpoints[0].port : 0;
	if (a)
		p.addrs[p.addr_count++] = net_addr(w.peer->index, w.advertised);
	p.addrs[p.addr_count++] = w.dead;
	SL_EXPECT_EQ(sl_links_peer_configure(w.us->links, &p, w.net->now_us), 0);
	w.us->next_due_us = w.net->now_us; /* as control asks again after any activity */
}

static void
note_link(void *arg, const struct sl_link_info *i)
{
	(void)arg;
	w.next_dial_us = i->peer_id == SL_PEER_NONE ? i->next_dial_us : 0;
	sl_discovery_expect_dial(w.discovery, 0, w.next_dial_us);
}

static void
second(void)
{
	uint8_t keys[SL_DISCOVERY_BATCH * SL_XONLY_BYTES];
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = keys, .d = SL_ADVERT_D, .limit = -1};
	uint32_t tag;

	net_run(w.net, NET_S);
	w.relays.now.us = w.net->now_us;
	w.relays.now.unix_s++;
	sl_discovery_tick(w.discovery, &w.relays.now);
	sl_links_for_each(w.us->links, note_link, NULL);
	f.author_count = sl_discovery_fetch_due(w.discovery, keys, &tag, &w.relays.now);
	if (f.author_count) {
		w.fetches++;
		if (sl_nostr_fetch(w.relays.client, tag, &f, 7, SL_DISCOVERY_FETCH_US, &w.relays.now) < 0)
			sl_discovery_fetched(w.discovery, tag, NULL, &w.relays.now);
	}
	(void)fake_step(&w.relays);
	if (dirty)
		configure();
	dirty = false;
	if (net_linked(w.us, w.peer) && !w.up_us)
		w.up_us = w.net->now_us;
}

static void
begin(void)
{
	static const char *const urls[] = {"ws://a.test", "ws://b.test", "ws://c.test"};
	struct sl_nostr_sink sink = {NULL, on_event, on_fetched, NULL};
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .author_count = 1, .d = SL_ADVERT_D, .limit = -1};
	struct sl_nostr_net ops;

	memset(&w, 0, sizeof(w));
	dirty = false;
	w.net = net_create();
	w.dead = net_stranger(w.net, NULL, NULL);
	w.us = net_node(w.net, NULL, 16, true);
	w.peer = net_node(w.net, NULL, 16, true);
	w.peer->mute = true;
	fake_init(&w.relays);
	fake_ops(&w.relays, &ops);
	w.relays.now.us = w.net->now_us;
	w.relays.client = sl_nostr_client_create(urls, 3, w.us->identity, &ops, &sink, &w.relays.now);
	w.discovery = sl_discovery_create(1, on_changed, NULL);
	f.authors = sl_identity_xonly(w.peer->identity);
	SL_EXPECT_EQ(sl_discovery_peer_add(w.discovery, f.authors), 0);
	SL_EXPECT_GE(sl_nostr_subscribe(w.relays.client, 1, &f, 7, &w.relays.now), 0);
	configure();
}

static void
end(void)
{
	sl_nostr_client_destroy(w.relays.client);
	sl_discovery_destroy(w.discovery);
	fake_fini(&w.relays);
	net_destroy(w.net);
}

/* The peer says that it is at this port now, and is. */
static void
advertise(uint16_t port)
{
	struct sl_advert a = {.endpoint_count = 1};
	struct sl_nostr_event e;
	char addr[32];

	snprintf(addr, sizeof(addr), "198.18.0.1:%u", port);
	(void)!sl_advert_endpoint_parse(&a.endpoints[0], "udp", addr);
	SL_ASSERT(sl_advert_build(&e, &a, SL_ADVERT_D, w.relays.now.unix_s, 3600, w.peer->identity) == 0);
	for (unsigned i = 0; i < 3; i++)
		fake_publish(&w.relays, i, &e);
	sl_nostr_event_fini(&e);
	w.peer->addr = net_addr(w.peer->index, port);
	w.peer->mute = false;
}

/* How long until the link is up, from now on. */
static uint64_t
until_up(unsigned seconds)
{
	uint64_t start = w.net->now_us;

	w.up_us = 0;
	for (unsigned i = 0; i < seconds && !w.up_us; i++)
		second();
	return w.up_us ? w.up_us - start : UINT64_MAX;
}

SL_TEST(nostr, a_new_advert_ends_the_waiting)
{
	uint64_t took, step;

	begin();
	for (unsigned i = 0; i < 200; i++)
		second();
	SL_EXPECT(!w.up_us);
	step = w.next_dial_us ? w.next_dial_us - w.net->now_us : 0;
	advertise(7001);
	took = until_up(320);
	printf("after 200 s: up %.1f s after the advert, the next dial was %.1f s away\n", (double)took / 1e6, (double)step / 1e6);
	SL_EXPECT_LE(took, 300 * NET_S);
	SL_EXPECT_EQ(w.advertised, 7001);
	end();
}

/* A week with every address dead, relays that come and go; then a new advert, of which some relays are away. */
SL_TEST(nostr, the_same_after_a_week)
{
	unsigned subs, publications, at_start = 0, at_end = 0;
	uint64_t took, step;
	struct sl_nostr_relay_info info;

	begin();
	for (uint64_t s = 0; s < 7 * DAY / NET_S; s++) {
		if (s % 3600 == 0) {
			unsigned i = (unsigned)(sl_test_rand() % 3);

			w.relays.relays[i].up = !w.relays.relays[i].up;
			if (!w.relays.relays[i].up)
				fake_cut(&w.relays, i);
		}
		second();
		if (s == 3600) {
			sl_nostr_client_usage(w.relays.client, &subs, &publications);
			at_start = subs;
		}
	}
	SL_EXPECT(!w.up_us);
	sl_nostr_client_usage(w.relays.client, &subs, &publications);
	at_end = subs;
	SL_EXPECT_LE(at_end, at_start + 1); /* a fetch may be under way */
	sl_nostr_client_relay_info(w.relays.client, 0, &info);
	printf("a week: %u fetches, relay 0 connected %u times\n", w.fetches, info.connects);
	/* One a dial: the back-off's ceiling is 300 s and a handshake's time-out 30 s. */
	SL_EXPECT_GE(w.fetches, 7 * 86400 / 400);
	SL_EXPECT_LE(w.fetches, 7 * 86400 / 250);
	w.relays.relays[0].up = false;
	fake_cut(&w.relays, 0);
	w.relays.relays[1].up = w.relays.relays[2].up = true;
	step = w.next_dial_us ? w.next_dial_us - w.net->now_us : 0;
	advertise(7002);
	took = until_up(400);
	printf("up %.1f s after the advert; the next dial was %.1f s away\n", (double)took / 1e6, (double)step / 1e6);
	SL_EXPECT_LE(took, 330 * NET_S);
	end();
}

/* A peer that moves each hour for a day, found each time; a relay's outage while it stays costs nothing. */
SL_TEST(nostr, a_peer_that_moves)
{
	uint64_t worst = 0;

	begin();
	second();
	advertise(7000);
	SL_EXPECT_LE(until_up(60), 60 * NET_S);
	for (uint16_t hour = 1; hour <= 24; hour++) {
		uint64_t took;

		for (unsigned i = 0; i < 3; i++) {
			w.relays.relays[i].up = false;
			fake_cut(&w.relays, i);
		}
		for (unsigned i = 0; i < 1800; i++)
			second();
		SL_EXPECT(net_linked(w.us, w.peer));
		for (unsigned i = 0; i < 3; i++)
			w.relays.relays[i].up = true;
		for (unsigned i = 0; i < 1800; i++)
			second();
		/* The old address is gone at once; the new one is told some seconds later. */
		net_restart(w.peer, true);
		w.peer->mute = true;
		for (unsigned i = 0; i < 45; i++)
			second();
		SL_EXPECT(!net_linked(w.us, w.peer));
		advertise((uint16_t)(7000 + hour));
		took = until_up(400);
		SL_EXPECT_LE(took, 330 * NET_S);
		worst = took > worst ? took : worst;
	}
	printf("24 moves: the slowest was found again %.1f s after its advert\n", (double)worst / 1e6);
	end();
}
