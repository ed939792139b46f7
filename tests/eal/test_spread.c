/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One queue's bursts over several workers (sl_spread.h). Payloads carry their flow and their number: what comes out is in order
 * within each flow, nothing twice, nothing missing that should have come; copies are refused, once each. Workers are slowed
 * by an AEAD that waits at random before it does its work (the work is the real engine's), so that bursts overtake each
 * other between workers as often as they can.
 */
#include "rows.h"
#include <rte_cycles.h>

#define FLOWS 8u
#define PAYLOAD 64u

/* --- an AEAD that takes its time -------------------------------------------------------------------------------------- */

static struct sl_aead_backend slow;
static const struct sl_aead_backend *real;
static unsigned wait_us_most; /* atomic */
static uint32_t held_worker;  /* atomic: the lcore that is to stand still, 0 = none */
static uint32_t holding;      /* atomic: it does */

static unsigned
slow_open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	static __thread uint64_t random = 1;
	const unsigned most = __atomic_load_n(&wait_us_most, __ATOMIC_RELAXED);

	random = random * 6364136223846793005ull + rte_lcore_id() * 2 + 1;
	if (most)
		rte_delay_us_block((unsigned)(random >> 33) % most);
	while (__atomic_load_n(&held_worker, __ATOMIC_ACQUIRE) == rte_lcore_id()) {
		__atomic_store_n(&holding, 1, __ATOMIC_RELEASE);
		rte_delay_us_sleep(100);
	}
	__atomic_store_n(&holding, 0, __ATOMIC_RELEASE);
	return real->open(ctx, ops, n);
}

static const struct sl_aead_backend *
slow_aead(unsigned us)
{
	real = sl_aead_backend_find("auto");
	slow = *real;
	slow.name = "slow";
	slow.open = slow_open;
	slow.open_lead = NULL; /* the plain way, by open */
	slow.open_rest = NULL;
	slow.reseal = NULL;
	__atomic_store_n(&wait_us_most, us, __ATOMIC_RELAXED);
	__atomic_store_n(&held_worker, 0, __ATOMIC_RELEASE);
	return &slow;
}

/* --- flows ------------------------------------------------------------------------------------------------------------ */

static struct {
	struct rig *r;
	struct rig_peer *from[FLOWS], *to;
	uint32_t sent[FLOWS], next[FLOWS]; /* numbers: of those that should come out; the next that may */
	uint32_t received, twice, overtaken, wrong, forged, copies, control;
	uint64_t highest, inverted; /* counters of what comes out */
	uint64_t rx_before, punt_before; /* the peers' neighbour traffic */
} t;

/* Frames that have their verdicts. */
static uint64_t
counted(void)
{
	uint64_t rx = 0;

	for (uint16_t w = 0; w < t.r->config.workers; w++) {
		struct sl_worker_stats s;

		sl_dataplane_worker_stats(t.r->dp, w, &s);
		rx += s.rx;
	}
	return rx - t.rx_before;
}

static bool
flows_up(const struct rig_config *config)
{
	memset(&t, 0, sizeof(t));
	t.r = rig_create(config);
	if (!t.r)
		return false;
	for (unsigned i = 0; i < FLOWS; i++)
		t.from[i] = rig_peer_add(t.r, SL_ADDR_UDP4, 0, 0);
	t.to = rig_peer_add(t.r, SL_ADDR_UDP4, 1, 0);
	t.rx_before = 0;
	t.rx_before = counted();
	t.punt_before = rig_verdict(t.r, SL_PUNT);
	return t.to != NULL;
}

/* A frame of a flow, sealed; returns its length. */
static size_t
frame_make(uint8_t frame[RIG_FRAME_MAX], unsigned flow, uint32_t number)
{
	uint8_t payload[PAYLOAD] = {3}, msg[256], packet[512];
	struct rig_peer *a = t.from[flow];
	size_t len;

	payload[1] = (uint8_t)flow;
	memcpy(payload + 2, &number, 4);
	len = rig_datagram(msg, 64, 1280, &a->addr, &t.to->addr, payload, sizeof(payload));
	len = rig_seal(packet, a, a->counter++, 0, 7, msg, len);
	return rig_wrap(t.r, a, frame, packet, len);
}

static void
take(void)
{
	uint8_t frame[RIG_FRAME_MAX], text[RIG_FRAME_MAX];
	size_t len;

	while ((len = rig_receive(t.r, 1, frame)) != 0) {
		const uint8_t *p = frame + rig_outer(t.to);
		uint8_t nonce[12] = {0};
		uint64_t counter;
		uint32_t number;
		unsigned flow;

		if (memcmp(frame, t.to->mac, 6) != 0)
			continue;
		memcpy(&counter, p + 8, 8);
		memcpy(nonce + 4, p + 8, 8);
		if (sl_get32(p + 4) != t.to->index ||
			sl_aead_open_one(text, p + 16, len - rig_outer(t.to) - 16, p, 16, nonce, t.to->recv) != 0) {
			t.wrong++;
			continue;
		}
		/* Behind the highest by less than the window that every receiver has. */
		if (counter < t.highest) {
			t.inverted++;
			t.wrong += t.highest - counter >= SL_REPLAY_WINDOW;
		}
		t.highest = RTE_MAX(t.highest, counter);
		flow = text[4 + 36 + 1];
		memcpy(&number, text + 4 + 36 + 2, 4);
		t.received++;
		if (flow >= FLOWS || number >= t.sent[flow])
			t.wrong++;
		else if (number + 1 == t.next[flow])
			t.twice++;
		else if (number < t.next[flow])
			t.overtaken++;
		else
			t.next[flow] = number + 1;
	}
}

static uint32_t
all_sent(void)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < FLOWS; i++)
		n += t.sent[i];
	return n;
}

/* Good ones, now and then with a copy of it right behind or much later, a forged one, a message for control. */
static void
send_mixed(void)
{
	static uint8_t old[64][RIG_FRAME_MAX];
	static size_t old_len[64];
	const unsigned flow = (unsigned)(sl_test_rand() % FLOWS), what = (unsigned)(sl_test_rand() % 40);
	uint8_t frame[RIG_FRAME_MAX];
	size_t len;

	if (t.received == 0 && all_sent() == 0)
		memset(old_len, 0, sizeof(old_len));
	if (what == 0) {
		len = frame_make(frame, flow, 0);
		frame[len - 1] ^= 1;
		rig_fix_udp(frame);
		t.forged++;
	} else if (what == 1) {
		uint8_t packet[128], msg[33] = {0x10};

		len = rig_seal(packet, t.from[flow], t.from[flow]->counter++, 0, 7, msg, sizeof(msg));
		len = rig_wrap(t.r, t.from[flow], frame, packet, len);
		t.control++;
	} else {
		len = frame_make(frame, flow, t.sent[flow]++);
		if (what == 2) {
			rig_inject(t.r, 0, frame, len);
			t.copies++;
		} else if (what == 3) {
			const unsigned at = (unsigned)(sl_test_rand() % 64);

			if (old_len[at]) {
				rig_inject(t.r, 0, old[at], old_len[at]);
				t.copies++;
			}
			memcpy(old[at], frame, len);
			old_len[at] = len;
		}
	}
	rig_inject(t.r, 0, frame, len);
}

static uint64_t
helped(void)
{
	uint64_t n = 0;

	for (uint16_t w = 0; w < t.r->config.workers; w++) {
		struct sl_worker_stats s;

		sl_dataplane_worker_stats(t.r->dp, w, &s);
		n += s.helped;
	}
	return n;
}

/* Until so many frames have their verdicts; a helper held back lets that be waited for in vain. */
static void
wait_for(uint64_t frames)
{
	for (unsigned i = 0; i < 20000 && counted() < frames; i++) {
		rte_delay_us_sleep(500);
		sl_dataplane_poll(t.r->dp, 256, sl_dataplane_now_us());
		take();
	}
	SL_EXPECT_EQ(counted(), frames);
	while (sl_dataplane_poll(t.r->dp, 256, sl_dataplane_now_us()))
		;
	take();
}

static void
expect_in_order(void)
{
	SL_EXPECT_EQ(t.wrong, 0);
	SL_EXPECT_EQ(t.twice, 0);
	SL_EXPECT_EQ(t.overtaken, 0);
	SL_EXPECT_EQ(t.received, all_sent());
	SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_REPLAY), t.copies);
	SL_EXPECT_EQ(rig_verdict(t.r, SL_DROP_AUTH), t.forged);
	SL_EXPECT_EQ(rig_verdict(t.r, SL_PUNT) - t.punt_before + rig_verdict(t.r, SL_DROP_PUNT_FULL), t.control);
}

/* --- on lcores --------------------------------------------------------------------------------------------------------- */

static void
through(uint16_t workers, unsigned wait_us, unsigned total)
{
	const struct rig_config config = {.workers = workers, .aead = slow_aead(wait_us), .spread = SL_SPREAD_ON,
		.ring_size = 1024, .idle_sleep_us = 20};
	uint64_t given;

	SL_ASSERT(flows_up(&config));
	SL_ASSERT(sl_dataplane_start(t.r->dp) == 0);
	while (all_sent() < total) {
		given = all_sent() + t.copies + t.forged + t.control;
		for (unsigned i = 0; i < 32; i++)
			send_mixed();
		/* No more on the way than the smallest ring holds. */
		for (unsigned i = 0; i < 200000 && given - RTE_MIN(given, counted()) > 500; i++) {
			rte_delay_us_sleep(20);
			take();
		}
		sl_dataplane_poll(t.r->dp, 256, sl_dataplane_now_us());
		take();
	}
	wait_for(all_sent() + t.copies + t.forged + t.control);
	sl_dataplane_stop(t.r->dp);
	take();
	expect_in_order();
	SL_EXPECT_GT(helped(), 0);
	printf("%u workers: %u payloads in order, %llu frames opened and sealed by helpers, counters the other way round %llu times\n",
		workers, t.received, (unsigned long long)helped(), (unsigned long long)t.inverted);
	rig_destroy(t.r);
}

SL_TEST(spread, two_workers)
{
	through(2, 0, 30000);
}

SL_TEST(spread, two_workers_at_odds)
{
	through(2, 200, 12000);
}

SL_TEST(spread, three_workers_at_odds)
{
	through(3, 200, 12000);
}

/* Sessions come and go while their bursts are out: nothing of theirs is touched that is not there any more. */
SL_TEST(spread, sessions_that_go)
{
	const struct rig_config config = {.workers = 2, .aead = slow_aead(100), .spread = SL_SPREAD_ON, .ring_size = 1024,
		.idle_sleep_us = 20};
	uint64_t given = 0;

	SL_ASSERT(flows_up(&config));
	SL_ASSERT(sl_dataplane_start(t.r->dp) == 0);
	for (unsigned round = 0; round < 200; round++) {
		const unsigned flow = (unsigned)(sl_test_rand() % FLOWS);
		struct sl_session *old = t.from[flow]->session;

		for (unsigned i = 0; i < 48; i++) {
			uint8_t frame[RIG_FRAME_MAX];
			const unsigned k = (unsigned)(sl_test_rand() % FLOWS);

			rig_inject(t.r, 0, frame, frame_make(frame, k, t.sent[k]));
			t.sent[k]++;
			given++;
		}
		rig_session_install(t.r, t.from[flow], 0);
		sl_session_retire(t.r->table, old);
		for (unsigned i = 0; i < 200000 && given - RTE_MIN(given, counted()) > 500; i++) {
			rte_delay_us_sleep(20);
			take();
		}
		sl_dataplane_poll(t.r->dp, 256, sl_dataplane_now_us());
		take();
	}
	wait_for(given);
	sl_dataplane_stop(t.r->dp);
	take();
	SL_EXPECT_EQ(t.wrong, 0);
	SL_EXPECT_EQ(t.twice, 0);
	SL_EXPECT_EQ(t.overtaken, 0);
	/* Each came out, or was a stranger's by then. */
	SL_EXPECT_EQ(t.received + rig_verdict(t.r, SL_DROP_UNKNOWN_INDEX), given);
	SL_EXPECT_GT(t.received, 0);
	rig_destroy(t.r);
}

/* A helper that stands still takes one burst with it, by name, and not the relay; its buffers come back when it does. */
SL_TEST(spread, a_helper_that_stands_still)
{
	const struct rig_config config = {.workers = 2, .aead = slow_aead(50), .spread = SL_SPREAD_ON, .ring_size = 1024};
	uint64_t given = 0, lost;

	SL_ASSERT(flows_up(&config));
	SL_ASSERT(sl_dataplane_start(t.r->dp) == 0);
	__atomic_store_n(&held_worker, t.r->dp->workers[1]->lcore, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 2000; i++) {
		uint8_t frame[RIG_FRAME_MAX];

		rig_inject(t.r, 0, frame, frame_make(frame, i % FLOWS, t.sent[i % FLOWS]));
		t.sent[i % FLOWS]++;
		given++;
		if (i % 32 == 31)
			rte_delay_us_sleep(1000);
	}
	wait_for(given);
	lost = rig_verdict(t.r, SL_DROP_STALLED);
	SL_EXPECT_GT(lost, 0);
	SL_EXPECT(lost <= SL_BURST_MAX);
	SL_EXPECT_EQ(t.received + lost, given);
	SL_EXPECT_EQ(t.wrong + t.twice + t.overtaken, 0);
	SL_EXPECT(__atomic_load_n(&holding, __ATOMIC_ACQUIRE));
	/* It comes back; what follows goes through, by the receiver alone for a while. */
	__atomic_store_n(&held_worker, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 320; i++) {
		uint8_t frame[RIG_FRAME_MAX];

		rig_inject(t.r, 0, frame, frame_make(frame, i % FLOWS, t.sent[i % FLOWS]));
		t.sent[i % FLOWS]++;
		given++;
	}
	wait_for(given);
	SL_EXPECT_EQ(t.received + lost, given);
	SL_EXPECT_EQ(t.wrong + t.twice + t.overtaken, 0);
	sl_dataplane_stop(t.r->dp);
	rig_destroy(t.r);
}

/* --- by hand ----------------------------------------------------------------------------------------------------------- */

static bool
spreads(void)
{
	struct sl_worker_stats s;

	sl_dataplane_worker_stats(t.r->dp, 0, &s);
	return s.spreads;
}

static void
fill(unsigned frames)
{
	for (unsigned i = 0; i < frames; i++) {
		uint8_t frame[RIG_FRAME_MAX];

		rig_inject(t.r, 0, frame, frame_make(frame, i % FLOWS, t.sent[i % FLOWS]));
		t.sent[i % FLOWS]++;
	}
}

/* auto: begins when polls come back full one after another and another worker has time; ends when they do not. */
SL_TEST(spread, begins_and_ends_by_itself)
{
	const struct rig_config config = {.workers = 2, .spread = SL_SPREAD_AUTO, .ring_size = 1024, .out_entries = 4096};
	struct sl_worker *w0, *w1;

	SL_ASSERT(flows_up(&config));
	w0 = t.r->dp->workers[0];
	w1 = t.r->dp->workers[1];
	/* Full polls, but nobody has time: the other worker has not been idle. */
	w1->light_polls = 0;
	__atomic_store_n(&w1->has_time, false, __ATOMIC_RELAXED);
	fill(32 * (SL_SPREAD_FULL_POLLS + 2));
	for (unsigned i = 0; i < SL_SPREAD_FULL_POLLS + 2; i++)
		sl_worker_poll(w0);
	SL_EXPECT(!spreads());
	/* It has. */
	for (unsigned i = 0; i < SL_SPREAD_LIGHT_POLLS; i++)
		sl_worker_poll(w1);
	take();
	fill(32 * (SL_SPREAD_FULL_POLLS + 8));
	for (unsigned i = 0; i < SL_SPREAD_FULL_POLLS + 1; i++)
		sl_worker_poll(w0);
	SL_EXPECT(spreads());
	for (unsigned i = 0; i < 8; i++) {
		sl_worker_poll(w1);
		sl_worker_poll(w0);
	}
	rig_poll(t.r, true);
	take();
	SL_EXPECT(spreads());
	for (unsigned i = 0; i < SL_SPREAD_SLACK_POLLS + 2; i++)
		sl_worker_poll(w0);
	SL_EXPECT(!spreads());
	SL_EXPECT_GT(helped(), 0);
	expect_in_order();
	rig_destroy(t.r);
}

/* Handshake packets, messages of peers, datagrams without a way: what control gets names the same source as without. */
SL_TEST(spread, control_gets_the_same)
{
	struct rig_seen seen[2][3];

	for (unsigned on = 0; on < 2; on++) {
		const struct rig_config config = {.workers = 2, .spread = on ? SL_SPREAD_ON : SL_SPREAD_OFF};
		uint8_t packet[256], frame[RIG_FRAME_MAX], msg[128] = {0x10};
		const struct sl_node_addr nobody = {{1, 2, 3}};
		size_t len;

		SL_ASSERT(flows_up(&config));
		rig_forget(t.r);
		len = rig_seal(packet, t.from[2], t.from[2]->counter++, 5, 7, msg, 40);
		rig_inject(t.r, 0, frame, rig_wrap(t.r, t.from[2], frame, packet, len));
		len = rig_datagram(msg, 64, 1280, &t.from[1]->addr, &nobody, "x", 1);
		len = rig_seal(packet, t.from[1], t.from[1]->counter++, 0, 7, msg, len);
		rig_inject(t.r, 0, frame, rig_wrap(t.r, t.from[1], frame, packet, len));
		sl_msg1_build(packet, 9, (const uint8_t[SL_NOISE_MSG1_BYTES]){1});
		rig_inject(t.r, 0, frame, rig_wrap(t.r, t.from[0], frame, packet, SL_MSG1_PACKET_BYTES));
		rig_poll(t.r, true);
		for (unsigned k = 0; k < 3; k++) {
			const struct rig_seen *s = rig_seen(t.r, (enum rig_seen_kind[]){RIG_MESSAGE, RIG_DATAGRAM, RIG_HANDSHAKE}[k], 0);

			SL_ASSERT(s != NULL);
			seen[on][k] = *s;
		}
		SL_EXPECT_EQ(seen[on][0].peer_id, t.from[2]->id);
		SL_EXPECT_EQ(seen[on][1].peer_id, t.from[1]->id);
		SL_EXPECT_EQ(seen[on][2].from.udp_port, t.from[0]->udp_port);
		rig_destroy(t.r);
	}
	for (unsigned k = 0; k < 3; k++) {
		SL_EXPECT_EQ(seen[0][k].len, seen[1][k].len);
		SL_EXPECT_EQ(seen[0][k].flags, seen[1][k].flags);
	}
}
