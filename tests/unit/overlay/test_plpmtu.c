/* SPDX-License-Identifier: BSD-3-Clause */
/* Path MTU discovery against a wire of its own: delay, loss, a size above which everything vanishes, a peer that answers or not. */
#include "sl_plpmtu.h"
#include "sl_test.h"

#include <stdlib.h>

#define SECOND 1000000ull
#define MINUTE (60 * SECOND)
#define FLYING 512u

static const struct sl_node_addr self = {{1, 2, 3}}, peer = {{7, 8, 9}};

/* One link. Traffic: packets of the size in use, ten a second. */
struct world {
	struct sl_plpmtu *t;
	uint64_t now_us, delay_us;
	double loss; /* each way */
	uint16_t narrow, hint;
	bool answers, traffic, dead;
	uint64_t vanished, vanished_last_us; /* packets of the traffic, by their size alone */
	bool missing;
	uint64_t traffic_us, report_us;
	struct {
		uint64_t at_us, id; /* answers on their way; at_us 0 = free */
	} flying[FLYING];
	unsigned changes, told;
	uint16_t mtu;
	enum sl_plpmtu_reason why;
};

static bool
chance(double p)
{
	return (double)(sl_test_rand() >> 11) / 9007199254740992.0 < p;
}

static int
on_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len)
{
	struct world *w = arg;
	struct sl_lookup_request q;

	SL_EXPECT_EQ(peer_id, 0);
	SL_EXPECT_EQ(sl_lookup_request_parse(&q, msg, len), 0);
	SL_EXPECT_MEM(q.target.bytes, peer.bytes, 16);
	SL_EXPECT_MEM(q.origin.bytes, self.bytes, 16);
	SL_EXPECT_EQ(q.ttl, 0);
	if (!w->answers || w->dead || len + SL_OVERHEAD_BYTES > w->narrow) {
		w->missing = true;
		return 0;
	}
	if (chance(w->loss) || chance(w->loss))
		return 0;
	for (unsigned i = 0; i < FLYING; i++)
		if (!w->flying[i].at_us) {
			w->flying[i].at_us = w->now_us + w->delay_us;
			w->flying[i].id = q.request_id;
			return 0;
		}
	SL_EXPECT(!"more probes than any check sends");
	return 0;
}

static void
on_mtu(void *arg, uint32_t peer_id, uint16_t mtu)
{
	struct world *w = arg;

	SL_EXPECT_EQ(peer_id, 0);
	w->changes++;
	w->mtu = mtu;
}

static void
on_settled(void *arg, uint32_t peer_id, uint16_t mtu, uint16_t before, enum sl_plpmtu_reason why)
{
	struct world *w = arg;

	SL_EXPECT_EQ(peer_id, 0);
	SL_EXPECT_EQ(mtu, w->mtu);
	SL_EXPECT(mtu != before || why == SL_PLPMTU_FLOOR);
	w->told++;
	w->why = why;
}

static void
begin(struct world *w, uint16_t ceiling, uint16_t narrow)
{
	struct sl_plpmtu_sink sink = {.arg = w, .send = on_send, .mtu = on_mtu, .settled = on_settled};

	memset(w, 0, sizeof(*w));
	w->now_us = 1234567;
	w->delay_us = 20000;
	w->narrow = narrow;
	w->answers = true;
	w->mtu = ceiling;
	w->hint = UINT16_MAX;
	w->t = sl_plpmtu_create(&self, 4, &sink, w->now_us);
	sl_plpmtu_up(w->t, 0, &peer, ceiling, false, 548, w->now_us);
}

static size_t
answer(uint8_t *msg, size_t size, uint64_t id, uint16_t hint)
{
	static const uint8_t proof[SL_SIGNATURE_BYTES];
	struct sl_lookup_response a = {
		.request_id = id, .target = peer, .path_mtu = hint, .coords_count = 1, .coords = peer.bytes, .proof = proof};

	return sl_lookup_response_build(msg, size, &a);
}

static void
arrive(struct world *w)
{
	uint8_t msg[256];

	for (unsigned i = 0; i < FLYING; i++) {
		if (!w->flying[i].at_us || w->flying[i].at_us > w->now_us)
			continue;
		w->flying[i].at_us = 0;
		(void)sl_plpmtu_response(w->t, 0, msg, answer(msg, sizeof(msg), w->flying[i].id, w->hint), w->now_us);
	}
}

static void
carry(struct world *w)
{
	if (w->traffic && w->now_us >= w->traffic_us) {
		w->traffic_us = w->now_us + SECOND / 10;
		w->missing |= chance(w->loss);
		if (w->mtu > w->narrow || w->dead) {
			w->vanished++;
			w->vanished_last_us = w->now_us;
			w->missing = true;
		}
	}
	if (w->now_us >= w->report_us) {
		w->report_us = w->now_us + SECOND;
		if (!w->dead)
			sl_plpmtu_report(w->t, 0, w->delay_us, w->traffic && w->missing, w->now_us);
		w->missing = false;
	}
}

static void
run(struct world *w, uint64_t us)
{
	const uint64_t end = w->now_us + us;

	for (; w->now_us < end; w->now_us += 10000) {
		arrive(w);
		carry(w);
		(void)sl_plpmtu_tick(w->t, w->now_us);
	}
}

static struct sl_plpmtu_info
info(const struct world *w)
{
	struct sl_plpmtu_info i = {0};

	SL_EXPECT(sl_plpmtu_lookup(w->t, 0, &i));
	SL_EXPECT_EQ(i.mtu, w->mtu);
	return i;
}

static uint64_t
counter(const struct world *w, enum sl_plpmtu_counter c)
{
	return sl_plpmtu_counters(w->t)[c];
}

SL_TEST(plpmtu, wide)
{
	struct world w;

	begin(&w, 1280, 1280);
	SL_EXPECT_STR(info(&w).state, "checking");
	run(&w, SECOND);
	SL_EXPECT_STR(info(&w).state, "confirmed");
	SL_EXPECT(info(&w).answered_us != 0);
	run(&w, 60 * MINUTE);
	SL_EXPECT_EQ(w.told, 0);
	SL_EXPECT_EQ(w.changes, 0);
	SL_EXPECT_EQ(info(&w).mtu, 1280);
	SL_EXPECT_EQ(info(&w).reason, SL_PLPMTU_CONFIGURED);
	/* One probe a minute, an eighth more or less. */
	SL_EXPECT_GE(counter(&w, SL_PLPMTU_PROBE_TX), 50);
	SL_EXPECT_LE(counter(&w, SL_PLPMTU_PROBE_TX), 71);
	SL_EXPECT_EQ(counter(&w, SL_PLPMTU_PROBE_RX), counter(&w, SL_PLPMTU_PROBE_TX));
	sl_plpmtu_destroy(w.t);
}

/* Every size of path: below it by less than a search's grain, never above; the black hole ends in seconds. */
SL_TEST(plpmtu, narrow_at_start)
{
	struct world w;

	for (uint16_t narrow = 548; narrow < 1280; narrow = (uint16_t)(narrow + 1 + sl_test_rand() % 20)) {
		begin(&w, 1280, narrow);
		w.traffic = true;
		run(&w, 3 * SECOND);
		SL_EXPECT_LE(w.mtu, narrow);
		run(&w, 12 * SECOND);
		SL_EXPECT_LE(w.mtu, narrow);
		SL_EXPECT_GE(w.mtu, narrow - 8);
		SL_EXPECT_EQ(w.why, SL_PLPMTU_PROBED);
		SL_EXPECT_EQ(w.told, 1); /* one line, whatever the search took */
		SL_EXPECT_LE(w.vanished, 30);
		SL_EXPECT_STR(info(&w).state, "confirmed");
		sl_plpmtu_destroy(w.t);
	}
}

static uint64_t
narrows_later(uint16_t ceiling, uint16_t narrow, bool traffic)
{
	struct world w;
	uint64_t at_us, took;

	begin(&w, ceiling, ceiling);
	w.traffic = traffic;
	run(&w, MINUTE + sl_test_rand() % MINUTE);
	w.narrow = narrow;
	at_us = w.now_us;
	while (w.mtu > narrow && w.now_us < at_us + 5 * MINUTE)
		run(&w, 10000);
	took = w.now_us - at_us;
	run(&w, 30 * SECOND);
	SL_EXPECT_LE(w.mtu, narrow);
	SL_EXPECT_GE(w.mtu, narrow - 8);
	if (traffic)
		SL_EXPECT_LE(w.vanished_last_us, at_us + took);
	sl_plpmtu_destroy(w.t);
	return took;
}

SL_TEST(plpmtu, narrows_under_traffic)
{
	for (unsigned i = 0; i < 10; i++) {
		SL_EXPECT_LE(narrows_later(1280, (uint16_t)(600 + sl_test_rand() % 670), true), 5 * SECOND);
		SL_EXPECT_LE(narrows_later(1472, (uint16_t)(1200 + sl_test_rand() % 260), true), 5 * SECOND);
		SL_EXPECT_LE(narrows_later(8972, (uint16_t)(1200 + sl_test_rand() % 7600), true), 5 * SECOND);
	}
}

/* Nothing large is sent, so nothing is missing: the next check of the minute finds it, before anything need be lost. */
SL_TEST(plpmtu, narrows_unseen)
{
	for (unsigned i = 0; i < 5; i++)
		SL_EXPECT_LE(narrows_later(1280, 1100, false), 72 * SECOND);
}

SL_TEST(plpmtu, widens)
{
	struct world w;
	uint64_t sent;

	begin(&w, 1280, 1100);
	w.traffic = true;
	run(&w, 15 * SECOND);
	SL_EXPECT_LE(w.mtu, 1100);
	w.narrow = 1280;
	run(&w, 21 * SECOND);
	SL_EXPECT_EQ(w.mtu, 1280);
	SL_EXPECT_EQ(info(&w).reason, SL_PLPMTU_CONFIGURED);
	/* Narrow for hours: tried every ten minutes at last, three probes each, and what is tried is never used. */
	w.narrow = 1100;
	run(&w, 60 * MINUTE);
	sent = counter(&w, SL_PLPMTU_PROBE_TX);
	w.vanished = 0;
	run(&w, 60 * MINUTE);
	SL_EXPECT_EQ(w.vanished, 0);
	SL_EXPECT_LE(counter(&w, SL_PLPMTU_PROBE_TX) - sent, 69 + 7 * (3 + 1));
	w.narrow = 1200; /* better, not good */
	run(&w, 12 * MINUTE);
	SL_EXPECT_GE(w.mtu, 1192);
	SL_EXPECT_LE(w.mtu, 1200);
	w.narrow = 1280;
	run(&w, 12 * MINUTE);
	SL_EXPECT_EQ(w.mtu, 1280);
	sl_plpmtu_destroy(w.t);
}

/* Loss alone is no black hole: hours under it hardly ever lower anything, and never for longer than a raise takes. */
static uint64_t
false_alarms(double loss, uint64_t hours)
{
	struct world w;
	uint64_t below_s = 0, n;

	begin(&w, 1280, 1280);
	w.traffic = true;
	w.loss = loss;
	for (uint64_t s = 0; s < hours * 3600; s++) {
		run(&w, SECOND);
		below_s += w.mtu < 1280;
	}
	n = counter(&w, SL_PLPMTU_LOWERED);
	printf("loss %.0f%% each way, %llu hours: %llu probes, lowered %llu times, below the ceiling for %llu s\n", loss * 100,
		(unsigned long long)hours, (unsigned long long)counter(&w, SL_PLPMTU_PROBE_TX), (unsigned long long)n,
		(unsigned long long)below_s);
	sl_plpmtu_destroy(w.t);
	return below_s;
}

SL_TEST(plpmtu, loss_is_no_black_hole)
{
	SL_EXPECT_LE(false_alarms(0.02, 3), 60);
	SL_EXPECT_LE(false_alarms(0.05, 3), 120);
	SL_EXPECT_LE(false_alarms(0.20, 3), 900);
}

SL_TEST(plpmtu, loss_and_a_black_hole)
{
	struct world w;

	for (unsigned i = 0; i < 10; i++) {
		const uint16_t narrow = (uint16_t)(600 + sl_test_rand() % 670);

		begin(&w, 1280, 1280);
		w.traffic = true;
		w.loss = 0.1;
		run(&w, 2 * MINUTE);
		w.narrow = narrow;
		run(&w, 15 * SECOND);
		SL_EXPECT_LE(w.mtu, narrow);
		w.vanished = 0;
		run(&w, 10 * MINUTE);
		SL_EXPECT_EQ(w.vanished, 0);
		SL_EXPECT_GE(w.mtu, 548);
		sl_plpmtu_destroy(w.t);
	}
}

/* Nothing comes through at all: that says nothing about sizes. */
SL_TEST(plpmtu, dead_path)
{
	struct world w;

	begin(&w, 1280, 1280);
	w.traffic = true;
	run(&w, MINUTE);
	w.dead = true;
	run(&w, 10 * MINUTE);
	SL_EXPECT_EQ(w.told, 0);
	SL_EXPECT_STR(info(&w).state, "unanswered");
	w.dead = false;
	run(&w, 11 * MINUTE);
	SL_EXPECT_STR(info(&w).state, "confirmed");
	SL_EXPECT_EQ(w.told, 0);
	sl_plpmtu_destroy(w.t);
}

SL_TEST(plpmtu, peer_without_answers)
{
	struct world w;

	begin(&w, 1280, 900);
	w.answers = false;
	run(&w, 60 * MINUTE);
	SL_EXPECT_EQ(w.told, 0);
	SL_EXPECT_STR(info(&w).state, "unanswered");
	SL_EXPECT(info(&w).answered_us == 0);
	SL_EXPECT_LE(counter(&w, SL_PLPMTU_PROBE_TX), 150); /* ever less often */
	/* A router's report is followed down and, when it has ended, up: there is nothing better to go by. */
	sl_plpmtu_ceiling(w.t, 0, 1000, true, w.now_us);
	SL_EXPECT_EQ(w.mtu, 1000);
	SL_EXPECT_EQ(info(&w).reason, SL_PLPMTU_REPORTED);
	run(&w, 10 * MINUTE);
	sl_plpmtu_ceiling(w.t, 0, 1280, false, w.now_us);
	run(&w, MINUTE);
	SL_EXPECT_EQ(w.mtu, 1280);
	SL_EXPECT_EQ(info(&w).reason, SL_PLPMTU_CONFIGURED);
	sl_plpmtu_destroy(w.t);
}

SL_TEST(plpmtu, floor)
{
	struct world w;

	begin(&w, 1280, 300);
	w.traffic = true;
	run(&w, 3 * SECOND);
	SL_EXPECT_EQ(w.mtu, 548);
	SL_EXPECT_EQ(w.why, SL_PLPMTU_FLOOR);
	SL_EXPECT_EQ(w.told, 1);
	run(&w, 60 * MINUTE);
	SL_EXPECT_EQ(w.told, 1); /* said once */
	SL_EXPECT_EQ(counter(&w, SL_PLPMTU_FLOORED), 1);
	w.narrow = 1280;
	run(&w, 12 * MINUTE);
	SL_EXPECT_EQ(w.mtu, 1280);
	sl_plpmtu_destroy(w.t);
}

/* Over IPv6 with the usual size the floor is all but reached: nothing to lower, but it is said. */
SL_TEST(plpmtu, floor_is_the_ceiling)
{
	struct world w;

	begin(&w, 1280, 1280);
	sl_plpmtu_up(w.t, 0, &peer, 1232, false, 1232, w.now_us);
	SL_EXPECT_EQ(w.mtu, 1232);
	run(&w, SECOND);
	SL_EXPECT_EQ(w.told, 1); /* it was 1280 */
	w.narrow = 1200;
	run(&w, 90 * SECOND);
	SL_EXPECT_EQ(w.told, 2);
	SL_EXPECT_EQ(w.mtu, 1232);
	SL_EXPECT_EQ(w.why, SL_PLPMTU_FLOOR);
	SL_EXPECT_EQ(info(&w).lowered, 0);
	w.narrow = 1280;
	run(&w, 2 * MINUTE);
	SL_EXPECT_EQ(info(&w).reason, SL_PLPMTU_CONFIGURED);
	SL_EXPECT_EQ(w.told, 2);
	sl_plpmtu_destroy(w.t);
}

SL_TEST(plpmtu, reported)
{
	struct world w;

	begin(&w, 1280, 1280);
	run(&w, 5 * SECOND);
	sl_plpmtu_ceiling(w.t, 0, 1172, true, w.now_us);
	SL_EXPECT_EQ(w.mtu, 1172);
	run(&w, 10 * MINUTE);
	SL_EXPECT_EQ(w.why, SL_PLPMTU_REPORTED);
	SL_EXPECT_EQ(w.told, 1);
	/* The report has ended, the path has not changed: what is larger is tried, not used. */
	w.narrow = 1172;
	w.traffic = true;
	sl_plpmtu_ceiling(w.t, 0, 1280, false, w.now_us);
	run(&w, 10 * SECOND);
	SL_EXPECT_EQ(w.mtu, 1172);
	SL_EXPECT_EQ(w.vanished, 0);
	w.narrow = 1280;
	run(&w, 12 * MINUTE);
	SL_EXPECT_EQ(w.mtu, 1280);
	sl_plpmtu_destroy(w.t);
}

/* What the peer's own side carries is one of the sizes that are tried first. */
SL_TEST(plpmtu, hint)
{
	struct world w;

	begin(&w, 1472, 1211);
	w.hint = 1211;
	run(&w, 2600000);
	SL_EXPECT_EQ(w.mtu, 1211);
	sl_plpmtu_destroy(w.t);
}

/* A link that was narrow begins so when it comes back, and loses nothing; another peer's in its place does not. */
SL_TEST(plpmtu, link_again)
{
	static const struct sl_node_addr other = {{5}};
	struct sl_plpmtu_info i;
	struct world w;
	uint16_t size;

	begin(&w, 1280, 1111);
	w.traffic = true;
	run(&w, 15 * SECOND);
	size = w.mtu;
	SL_EXPECT_LE(size, 1111);
	sl_plpmtu_down(w.t, 0);
	SL_EXPECT(!sl_plpmtu_lookup(w.t, 0, &i));
	run(&w, MINUTE);
	w.mtu = 1280; /* what a new link begins with */
	w.vanished = 0;
	sl_plpmtu_up(w.t, 0, &peer, 1280, false, 548, w.now_us);
	SL_EXPECT_EQ(w.mtu, size);
	run(&w, 15 * SECOND);
	SL_EXPECT_EQ(w.vanished, 0);
	w.narrow = 1280;
	sl_plpmtu_down(w.t, 0);
	w.mtu = 1280;
	sl_plpmtu_up(w.t, 0, &peer, 1280, false, 548, w.now_us);
	SL_EXPECT_EQ(w.mtu, size);
	run(&w, SECOND);
	SL_EXPECT_EQ(w.mtu, 1280);
	w.narrow = 1111;
	run(&w, 15 * SECOND);
	sl_plpmtu_down(w.t, 0);
	w.mtu = 1280;
	sl_plpmtu_up(w.t, 0, &other, 1280, false, 548, w.now_us);
	SL_EXPECT_EQ(info(&w).mtu, 1280);
	sl_plpmtu_destroy(w.t);
}

SL_TEST(plpmtu, foreign_answers)
{
	uint8_t msg[256], *exact;
	struct world w;
	size_t len;

	begin(&w, 1280, 1280);
	run(&w, SECOND / 4 + 10000);
	SL_EXPECT(w.flying[0].at_us != 0);
	len = answer(msg, sizeof(msg), w.flying[0].id, 1280);
	SL_EXPECT(!sl_plpmtu_response(w.t, 1, msg, len, w.now_us)); /* another peer */
	SL_EXPECT(!sl_plpmtu_response(w.t, 99, msg, len, w.now_us));
	for (size_t n = 0; n < len; n++) {
		exact = malloc(n ? n : 1);
		memcpy(exact, msg, n);
		SL_EXPECT(!sl_plpmtu_response(w.t, 0, exact, n, w.now_us));
		free(exact);
	}
	SL_EXPECT(sl_plpmtu_response(w.t, 0, msg, len, w.now_us));
	SL_EXPECT(sl_plpmtu_response(w.t, 0, msg, len, w.now_us)); /* twice says nothing more */
	len = answer(msg, sizeof(msg), w.flying[0].id ^ 1, 1280);
	SL_EXPECT(!sl_plpmtu_response(w.t, 0, msg, len, w.now_us));
	len = answer(msg, sizeof(msg), 0, 1280); /* free places have this id */
	SL_EXPECT(!sl_plpmtu_response(w.t, 0, msg, len, w.now_us));
	sl_plpmtu_destroy(w.t);
}

/* Many links: everything that is due is due in order, none is forgotten, and a tick does a bounded part. */
struct crowd {
	uint64_t sent, last_us;
};

static int
crowd_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len)
{
	(void)peer_id;
	(void)msg;
	(void)len;
	((struct crowd *)arg)->sent++;
	return 0;
}

static void
crowd_mtu(void *arg, uint32_t peer_id, uint16_t mtu)
{
	(void)arg;
	(void)peer_id;
	(void)mtu;
	SL_EXPECT(!"nothing is answered, so nothing changes");
}

SL_TEST(plpmtu, crowd)
{
	enum { LINKS = 4096 };
	struct crowd c = {0};
	struct sl_plpmtu_sink sink = {.arg = &c, .send = crowd_send, .mtu = crowd_mtu};
	struct sl_plpmtu *t = sl_plpmtu_create(&self, LINKS, &sink, 0);
	struct sl_plpmtu_info i;
	uint64_t now_us = 0, next, before, most = 0;

	for (uint32_t id = 0; id < LINKS; id++)
		sl_plpmtu_up(t, id, &peer, 1280, false, 548, now_us + sl_test_rand() % 1000);
	for (uint32_t n = 0; n < LINKS / 2; n++)
		sl_plpmtu_down(t, (uint32_t)(sl_test_rand() % LINKS));
	while (now_us < 30 * SECOND) {
		before = c.sent;
		next = sl_plpmtu_tick(t, now_us);
		most = c.sent - before > most ? c.sent - before : most;
		now_us = next > now_us ? next : now_us + 100;
	}
	SL_EXPECT_LE(most, 32 * 11);
	for (uint32_t id = 0; id < LINKS; id++)
		if (sl_plpmtu_lookup(t, id, &i)) {
			SL_EXPECT_GE(i.next_us, now_us - SECOND);
			SL_EXPECT_STR(i.state, "unanswered");
		}
	sl_plpmtu_destroy(t);
}
