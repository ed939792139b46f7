/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of peers: asked before each dial; a newer advert replaces, none evicts, silence changes nothing. */
#include "sl_discovery.h"
#include "sl_test.h"

#include <errno.h>
#include <stdlib.h>

#define SECOND 1000000u

static struct {
	struct sl_discovery *d;
	struct sl_nostr_time now;
	unsigned changes, gone;
	char addr[SL_ADVERT_TEXT_SIZE];
} t;

static void
changed(void *arg, unsigned peer, const struct sl_advert *a)
{
	(void)arg;
	(void)peer;
	t.changes++;
	t.gone += a == NULL;
	snprintf(t.addr, sizeof(t.addr), "%s", a ? a->endpoints[0].addr : "");
}

static void
begin(void)
{
	uint8_t key[32] = {1};

	memset(&t, 0, sizeof(t));
	t.now = (struct sl_nostr_time){SECOND, 1700000000};
	t.d = sl_discovery_create(4, changed, NULL);
	SL_EXPECT_EQ(sl_discovery_peer_add(t.d, key), 0);
	SL_EXPECT_EQ(sl_discovery_peer_add(t.d, key), 0);
}

static void
come(uint64_t created_at, const char *addr, uint8_t id)
{
	struct sl_advert *a = calloc(1, sizeof(*a));

	a->pubkey[0] = 1;
	a->id[0] = id;
	a->created_at = created_at;
	a->valid_until = created_at + 3600;
	a->endpoint_count = 1;
	(void)!sl_advert_endpoint_parse(&a->endpoints[0], "udp", addr);
	SL_EXPECT(sl_discovery_advert(t.d, a, &t.now));
}

static void
pass(unsigned seconds)
{
	t.now.us += seconds * (uint64_t)SECOND;
	t.now.unix_s += seconds;
	sl_discovery_tick(t.d, &t.now);
}

static enum sl_discovery_outcome
outcome(void)
{
	struct sl_discovery_info i;

	sl_discovery_info(t.d, 0, &i);
	return i.outcome;
}

/* A dial in three seconds: asks, and ends with this result. */
static void
ask(struct sl_nostr_fetch_result r, uint64_t created_at, const char *addr, uint8_t id)
{
	uint8_t keys[SL_DISCOVERY_BATCH * 32];
	uint32_t tag = 0;

	pass(5);
	sl_discovery_expect_dial(t.d, 0, t.now.us + 3 * SECOND);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 1);
	SL_EXPECT_EQ(keys[0], 1);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_ASKED);
	if (addr)
		come(created_at, addr, id);
	sl_discovery_fetched(t.d, tag, &r, &t.now);
}

static const struct sl_nostr_fetch_result said = {.answered = 1}, both = {.answered = 2}, mixed = {.answered = 1, .silent = 1},
					  silent = {.silent = 2}, away = {.away = 2}, refused = {.refused = 2};

SL_TEST(discovery, newer_replaces_older_does_not)
{
	begin();
	come(1699999000, "8.8.8.8:1", 1);
	SL_EXPECT_EQ(t.changes, 1);
	come(1699999000, "8.8.8.8:1", 1); /* the very same */
	come(1699998000, "8.8.4.4:1", 2); /* older */
	SL_EXPECT_EQ(t.changes, 1);
	come(1699999500, "8.8.8.8:1", 3); /* newer, says the same */
	SL_EXPECT_EQ(t.changes, 1);
	come(1699999500, "8.8.4.4:1", 4); /* of the same second: the later one, as the reference has it */
	SL_EXPECT_EQ(t.changes, 2);
	SL_EXPECT_STR(t.addr, "8.8.4.4:1");
	sl_discovery_destroy(t.d);
}

SL_TEST(discovery, none_evicts_silence_does_not)
{
	begin();
	ask(said, 0, NULL, 0);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_NONE);
	ask(both, t.now.unix_s, "8.8.8.8:1", 1);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_REFRESHED);
	ask(both, t.now.unix_s, "8.8.8.8:1", 1);
	SL_EXPECT_EQ(t.changes, 1);
	ask(both, t.now.unix_s - 1000, "8.8.8.8:2", 9);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_SAME);
	ask(silent, 0, NULL, 0);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_SILENT);
	ask(away, 0, NULL, 0);
	ask(refused, 0, NULL, 0);
	ask(mixed, 0, NULL, 0);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_SILENT);
	SL_EXPECT(sl_discovery_lookup(t.d, 0) != NULL);
	ask(both, 0, NULL, 0);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_EVICTED);
	SL_EXPECT(sl_discovery_lookup(t.d, 0) == NULL);
	SL_EXPECT_EQ(t.gone, 1);
	sl_discovery_destroy(t.d);
}

SL_TEST(discovery, one_fetch_a_dial)
{
	uint8_t keys[SL_DISCOVERY_BATCH * 32];
	struct sl_discovery_info i;
	uint32_t tag;

	begin();
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 0); /* no dial is planned */
	sl_discovery_expect_dial(t.d, 0, t.now.us + 10 * SECOND);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 0);
	sl_discovery_info(t.d, 0, &i);
	SL_EXPECT_EQ(i.next_fetch_us, t.now.us + 7 * SECOND);
	pass(7);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 1);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 0);
	sl_discovery_fetched(t.d, tag, &said, &t.now);
	pass(2);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 0); /* the same dial */
	/* A report that was lost on the way does not stop the next one. */
	pass(10);
	sl_discovery_expect_dial(t.d, 0, t.now.us);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 1);
	pass(11);
	SL_EXPECT_EQ(outcome(), SL_DISCOVERY_SILENT);
	SL_EXPECT_EQ(sl_discovery_fetch_due(t.d, keys, &tag, &t.now), 1);
	sl_discovery_destroy(t.d);
}

SL_TEST(discovery, what_has_run_out_is_dropped)
{
	begin();
	come(t.now.unix_s - 3000, "8.8.8.8:1", 1);
	pass(599);
	SL_EXPECT(sl_discovery_lookup(t.d, 0) != NULL);
	pass(1);
	SL_EXPECT(sl_discovery_lookup(t.d, 0) == NULL);
	come(t.now.unix_s - 4000, "8.8.8.8:1", 2);
	SL_EXPECT(sl_discovery_lookup(t.d, 0) == NULL);
	sl_discovery_destroy(t.d);
}

/* Thousands of peers that are down at once are asked for in batches, each in its turn. */
SL_TEST(discovery, many_peers_take_turns)
{
	struct sl_discovery *d = sl_discovery_create(1000, changed, NULL);
	static uint8_t asked[1000];
	uint8_t keys[SL_DISCOVERY_BATCH * 32];
	struct sl_nostr_time now = {100 * SECOND, 1700000000};
	unsigned n, total = 0;
	uint32_t tag;

	memset(asked, 0, sizeof(asked));
	for (unsigned i = 0; i < 1000; i++) {
		uint8_t key[32] = {(uint8_t)i, (uint8_t)(i >> 8)};

		SL_EXPECT_EQ(sl_discovery_peer_add(d, key), (int)i);
		sl_discovery_expect_dial(d, i, now.us);
	}
	while ((n = sl_discovery_fetch_due(d, keys, &tag, &now))) {
		for (unsigned i = 0; i < n; i++)
			asked[keys[32 * i] | keys[32 * i + 1] << 8]++;
		total += n;
		SL_ASSERT(total <= 1000);
		sl_discovery_fetched(d, tag, NULL, &now);
	}
	SL_EXPECT_EQ(total, 1000);
	for (unsigned i = 0; i < 1000; i++)
		SL_EXPECT_EQ(asked[i], 1);
	sl_discovery_destroy(d);
}
