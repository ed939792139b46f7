/* SPDX-License-Identifier: BSD-3-Clause */
/* Found nodes: places, dials, failures, ends. Dials are answered by this test; keys are numbers. */
#include "sl_found.h"
#include "sl_test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000)

static struct {
	struct sl_found *f;
	uint64_t now;
	unsigned dials, appeared, left;
	uint32_t last;	/* node dialled */
	uint16_t ports[64];
	int rc;
	uint32_t room;
	bool linked[4096];
} t;

static void
key_of(uint8_t xonly[SL_XONLY_BYTES], uint32_t n)
{
	memset(xonly, 0, SL_XONLY_BYTES);
	memcpy(xonly, &n, 4);
	xonly[7] = (uint8_t)(n * 37);
}

static int
on_dial(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr)
{
	(void)arg;
	memcpy(&t.last, xonly, 4);
	t.ports[t.dials++ % 64] = addr->udp_port;
	return t.rc;
}

static void
on_appeared(void *arg, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr)
{
	(void)arg;
	(void)source;
	(void)xonly;
	(void)addr;
	t.appeared++;
}

static void
on_left(void *arg, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const char *why)
{
	(void)arg;
	(void)source;
	(void)xonly;
	SL_EXPECT(why && why[0]);
	t.left++;
}

static void
begin(uint32_t tries)
{
	const struct sl_found_config c = {.places = {4, 4, 64}, .linked_max = 4, .tries = {0, 0, tries}, .dials_burst = 8, .dials_per_s = 2,
		.retry_base_us = 5 * SECOND, .retry_max_us = 300 * SECOND, .dial_us = 30 * SECOND};
	const struct sl_found_sink sink = {NULL, on_dial, on_appeared, on_left};

	memset(&t, 0, sizeof(t));
	t.now = 1000 * SECOND;
	t.room = 100;
	t.f = sl_found_create(&c, &sink, t.now);
	SL_ASSERT(t.f != NULL);
}

static void
end(void)
{
	sl_found_destroy(t.f);
}

static int
hear(enum sl_found_source s, uint32_t n, uint16_t port, uint64_t hold_s)
{
	struct sl_addr a[2] = {{.kind = SL_ADDR_UDP4, .udp_port = port}, {.kind = SL_ADDR_UDP6, .udp_port = port}};
	uint8_t xonly[SL_XONLY_BYTES];

	key_of(xonly, n);
	return sl_found_heard(t.f, s, xonly, a, 2, hold_s * SECOND, t.now);
}

static void
note_linked(void *arg, const struct sl_found_info *info)
{
	uint32_t n;

	(void)arg;
	memcpy(&n, info->xonly, 4);
	if (t.linked[n % 4096])
		sl_found_linked(t.f, info->xonly);
}

static void
run(uint64_t seconds)
{
	for (uint64_t i = 0; i < seconds; i++) {
		t.now += SECOND;
		sl_found_links_begin(t.f);
		sl_found_for_each(t.f, note_linked, NULL);
		sl_found_links_end(t.f, t.room, t.now);
		while (sl_found_tick(t.f, t.now))
			;
	}
}

static struct sl_found_info seen;
static unsigned seen_count;

static void
look(void *arg, const struct sl_found_info *info)
{
	uint32_t n;

	memcpy(&n, info->xonly, 4);
	if (n == *(uint32_t *)arg) {
		seen = *info;
		seen_count++;
	}
}

static bool
known(uint32_t n)
{
	seen_count = 0;
	sl_found_for_each(t.f, look, &n);
	SL_EXPECT_LE(seen_count, 1);
	return seen_count == 1;
}

SL_TEST(found, dialled_at_once_then_with_growing_waits)
{
	uint64_t at[6], n = 0;

	begin(5);
	SL_EXPECT_EQ(hear(SL_FOUND_MDNS, 1, 2121, 4500), 0);
	for (unsigned s = 0; s < 400 && n < 6; s++) {
		const unsigned before = t.dials;

		run(1);
		if (t.dials != before) {
			SL_EXPECT_EQ(t.dials, before + 2); /* both its addresses */
			at[n++] = t.now;
		}
	}
	SL_ASSERT(n == 5);
	/* 30 s until a dial has failed, then 10, 20, 40, 80 s */
	SL_EXPECT_EQ((at[1] - at[0]) / SECOND, 40);
	SL_EXPECT_EQ((at[2] - at[1]) / SECOND, 50);
	SL_EXPECT_EQ((at[3] - at[2]) / SECOND, 70);
	SL_EXPECT_EQ((at[4] - at[3]) / SECOND, 110);
	SL_EXPECT_EQ(t.appeared, 1);
	SL_EXPECT(known(1) && seen.failures >= 3 && seen.last_error);
	end();
}

SL_TEST(found, linked_and_lost)
{
	begin(5);
	SL_EXPECT_EQ(hear(SL_FOUND_BEACON, 1, 2121, 100), 0);
	run(1);
	SL_EXPECT_EQ(t.dials, 2);
	t.linked[1] = true;
	run(500); /* its hold ends meanwhile: a link is never touched */
	SL_EXPECT(known(1) && seen.state == SL_FOUND_LINKED);
	SL_EXPECT_EQ(t.dials, 2);
	t.linked[1] = false;
	SL_EXPECT_EQ(hear(SL_FOUND_BEACON, 1, 2121, 100), 0);
	run(7);
	SL_EXPECT_EQ(t.dials, 4);
	run(200);
	SL_EXPECT(!known(1));
	SL_EXPECT_EQ(t.left, 1);
	end();
}

SL_TEST(found, given_up_until_it_says_something_new)
{
	unsigned dials;

	begin(2);
	t.rc = -ENETUNREACH;
	SL_EXPECT_EQ(hear(SL_FOUND_ADVERT, 1, 2121, 100000), 0);
	run(1000);
	SL_EXPECT(known(1) && seen.state == SL_FOUND_GIVEN_UP && seen.failures == 3);
	dials = t.dials;
	SL_EXPECT_EQ(hear(SL_FOUND_ADVERT, 1, 2121, 100000), 0); /* the same again is nothing new */
	run(1000);
	SL_EXPECT_EQ(t.dials, dials);
	t.rc = 0;
	SL_EXPECT_EQ(hear(SL_FOUND_ADVERT, 1, 2122, 100000), 0);
	run(6);
	SL_EXPECT_EQ(t.dials, dials + 2);
	SL_EXPECT_EQ(t.ports[dials % 64], 2122);
	end();
}

/* A node that moves with every word is followed now and then, not with every word. */
SL_TEST(found, restless)
{
	begin(5);
	for (unsigned i = 0; i < 600; i++) {
		SL_EXPECT_EQ(hear(SL_FOUND_MDNS, 1, (uint16_t)(2000 + i), 4500), 0);
		run(1);
	}
	SL_EXPECT_LE(t.dials, 2 * (600 / 5 + 2));
	end();
}

SL_TEST(found, refused_by_the_access_lists)
{
	begin(5);
	t.rc = -EACCES;
	SL_EXPECT_EQ(hear(SL_FOUND_MDNS, 1, 2121, 4500), 0);
	run(200);
	SL_EXPECT_EQ(t.dials, 1);
	SL_EXPECT(known(1) && seen.state == SL_FOUND_REFUSED);
	SL_EXPECT_EQ(sl_found_counters(t.f)[SL_FOUND_N_REFUSED], 1);
	t.rc = 0; /* the lists have changed */
	run(301);
	SL_EXPECT(known(1) && seen.dials >= 1);
	end();
}

/* Ten thousand invented nodes: places, dials and time are bounded, each source's apart, and who is linked stays. */
SL_TEST(found, inventions)
{
	unsigned full = 0;

	begin(5);
	SL_EXPECT_EQ(hear(SL_FOUND_BEACON, 1, 2121, 1000000), 0);
	SL_EXPECT_EQ(hear(SL_FOUND_MDNS, 2, 2121, 1000000), 0);
	run(1);
	t.linked[1] = true;
	run(1);
	for (uint32_t i = 0; i < 10000; i++) {
		full += hear(SL_FOUND_BEACON, 10 + i % 3000, 2121, 100) == -ENOSPC;
		if (i % 100 == 0)
			run(1);
		SL_ASSERT(sl_found_count(t.f) <= 1 + 1 + 4);
	}
	SL_EXPECT_GT(full, 9000);
	SL_EXPECT(known(1) && seen.state == SL_FOUND_LINKED);
	SL_EXPECT(known(2));
	SL_EXPECT_LE(sl_found_counters(t.f)[SL_FOUND_N_DIALS], 8 + 2 * 110);
	/* Those that have failed make room: a true one comes in after a while. */
	run(35);
	SL_EXPECT_EQ(hear(SL_FOUND_BEACON, 5000, 2121, 100), 0);
	SL_EXPECT(known(5000));
	SL_EXPECT_GT(sl_found_counters(t.f)[SL_FOUND_N_EVICTED], 0);
	end();
}

/* The places of peers that the operator has named are not given away. */
SL_TEST(found, room_for_configured_peers)
{
	begin(5);
	t.room = 2;
	for (uint32_t i = 0; i < 40; i++)
		SL_EXPECT_EQ(hear(SL_FOUND_ADVERT, i, 2121, 4500), 0);
	run(5);
	SL_EXPECT_EQ(t.dials, 4);
	SL_EXPECT_GT(sl_found_counters(t.f)[SL_FOUND_N_NO_ROOM], 0);
	t.room = 0;
	run(300);
	SL_EXPECT_EQ(t.dials, 4);
	end();
}

SL_TEST(found, goodbye)
{
	uint8_t xonly[SL_XONLY_BYTES];

	begin(5);
	SL_EXPECT_EQ(hear(SL_FOUND_MDNS, 1, 2121, 4500), 0);
	key_of(xonly, 1);
	sl_found_gone(t.f, SL_FOUND_BEACON, xonly); /* another source's word */
	SL_EXPECT(known(1));
	run(1);
	t.linked[1] = true;
	run(1);
	sl_found_gone(t.f, SL_FOUND_MDNS, xonly);
	SL_EXPECT(known(1)); /* linked: anybody could say so */
	t.linked[1] = false;
	run(1);
	sl_found_gone(t.f, SL_FOUND_MDNS, xonly);
	SL_EXPECT(!known(1));
	SL_EXPECT_EQ(sl_found_count(t.f), 0);
	end();
}
