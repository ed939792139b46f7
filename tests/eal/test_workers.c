/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers on their lcores: traffic from the test's thread, control's turns in between, sessions that come and go. */
#include "rows.h"
#include <rte_cycles.h>

struct flow {
	struct rig *r;
	struct rig_peer *a, *b;
	/* b's keys by index: frames sealed before a change arrive after it */
	struct rig_peer old_b;
	uint8_t *got; /* by sequence number */
	uint32_t sent, received, wrong;
};

static void
flow_send(struct flow *f)
{
	uint8_t payload[64] = {3}, msg[RIG_FRAME_MAX];

	memcpy(payload + 1, &f->sent, 4);
	f->sent++;
	rig_send_datagram(f->r, f->a, &f->b->addr, 0, 64, 1280, payload, sizeof(payload), msg);
}

/* Opens with whichever session the frame names; the counters of two workers may interleave. */
static void
flow_receive(struct flow *f)
{
	uint8_t frame[RIG_FRAME_MAX], text[RIG_FRAME_MAX];
	size_t len;

	while ((len = rig_receive(f->r, 1, frame)) != 0) {
		const uint8_t *p = frame + rig_outer(f->b);
		uint8_t nonce[12] = {0};
		const struct rig_peer *by = NULL;
		uint32_t seq;

		if (memcmp(frame, f->b->mac, 6) != 0)
			continue;
		by = sl_get32(p + 4) == f->b->index ? f->b : sl_get32(p + 4) == f->old_b.index ? &f->old_b : NULL;
		memcpy(nonce + 4, p + 8, 8);
		if (!by || sl_aead_open_one(text, p + 16, len - rig_outer(f->b) - 16, p, 16, nonce, by->recv) != 0) {
			f->wrong++;
			continue;
		}
		memcpy(&seq, text + 4 + 36 + 1, 4);
		if (seq >= f->sent || f->got[seq]++)
			f->wrong++;
		f->received++;
	}
}

/* At any moment a reader looks, bursts under way included. */
static void
expect_balanced(const struct sl_worker_stats *s)
{
	uint64_t sum = 0;

	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		sum += s->verdicts[v];
	SL_EXPECT_EQ(s->rx, sum);
	SL_EXPECT_EQ(s->tx, s->verdicts[SL_FORWARD]);
}

/* Until nothing more comes and the counters stand still. */
static void
settle(struct flow *f)
{
	uint64_t rx = 0, last = UINT64_MAX;

	for (unsigned quiet = 0; quiet < 5;) {
		struct sl_worker_stats s;

		rte_delay_us_sleep(2000);
		sl_dataplane_poll(f->r->dp, 256, sl_dataplane_now_us());
		flow_receive(f);
		rx = 0;
		for (uint16_t w = 0; w < f->r->config.workers; w++) {
			sl_dataplane_worker_stats(f->r->dp, w, &s);
			expect_balanced(&s);
			rx += s.rx;
		}
		quiet = rx == last && rte_ring_empty(f->r->in[0]) ? quiet + 1 : 0;
		last = rx;
	}
}

/* New sessions for both ends every so often, the old ones retired while frames are on their way. */
static void
under_load(uint16_t workers, bool rekey)
{
	enum { TOTAL = 60000, EVERY = 1500 };
	const struct rig_config config = {.workers = workers, .idle_sleep_us = 50};
	struct flow f = {.r = rig_create(&config), .got = calloc(1, TOTAL)};
	struct rig_peer retired_a = {0};
	uint32_t unknown_sent = 0;

	SL_ASSERT(f.r);
	f.a = rig_peer_add(f.r, SL_ADDR_UDP4, 0, (uint16_t)(workers - 1));
	f.b = rig_peer_add(f.r, SL_ADDR_UDP4, 1, 0);
	SL_ASSERT(sl_dataplane_start(f.r->dp) == 0);
	while (f.sent < TOTAL) {
		for (unsigned i = 0; i < 32 && f.sent < TOTAL; i++)
			flow_send(&f);
		/* No more on the way than the smallest ring holds: the workers share two CPUs with us and each other. */
		for (unsigned i = 0; i < 100000 && f.sent - f.received > 400; i++) {
			struct sl_worker_stats s;

			rte_delay_us_sleep(20);
			flow_receive(&f);
			for (uint16_t w = 0; w < workers; w++) {
				sl_dataplane_worker_stats(f.r->dp, w, &s);
				expect_balanced(&s);
			}
		}
		sl_dataplane_poll(f.r->dp, 256, sl_dataplane_now_us());
		if (!rekey || f.sent % EVERY >= 32)
			continue;
		/* b: control flips the egress; what was sealed before is still on its way. */
		settle(&f);
		f.old_b = *f.b;
		struct sl_session *old = f.b->session;
		rig_session_install(f.r, f.b, 0);
		sl_session_retire(f.r->table, old);
		/* a: a new session beside the old one, then the old one goes; its frames are strangers' from then on. */
		for (unsigned i = 0; i < 8 && f.sent < TOTAL; i++)
			flow_send(&f);
		settle(&f);
		retired_a = *f.a;
		rig_session_install(f.r, f.a, (uint16_t)((workers - 1) * (f.sent / EVERY % 2)));
		sl_session_retire(f.r->table, retired_a.session);
		uint8_t packet[128], frame[256], hb = SL_MSG_HEARTBEAT;
		struct sl_session gone = {.rx_index = retired_a.session->rx_index};

		retired_a.session = &gone;
		rig_inject(f.r, 0, frame, rig_wrap(f.r, f.a, frame, packet, rig_seal(packet, &retired_a, 1, 0, 1, &hb, 1)));
		unknown_sent++;
	}
	settle(&f);
	sl_dataplane_stop(f.r->dp);
	flow_receive(&f);
	SL_EXPECT_EQ(f.received, TOTAL);
	SL_EXPECT_EQ(f.wrong, 0);
	SL_EXPECT_EQ(rig_verdict(f.r, SL_FORWARD), TOTAL);
	SL_EXPECT_EQ(rig_verdict(f.r, SL_DROP_UNKNOWN_INDEX), unknown_sent);
	if (workers > 1)
		SL_EXPECT_GT(rig_verdict(f.r, SL_HANDOFF), 0);
	/* Nothing waits for a grace period once all are idle. */
	sl_dataplane_poll(f.r->dp, 256, sl_dataplane_now_us());
	SL_EXPECT_EQ(f.r->dp->reclaim.count, 0);
	rig_destroy(f.r);
	free(f.got);
}

SL_TEST(workers, one)
{
	under_load(1, false);
}
SL_TEST(workers, one_rekeys)
{
	under_load(1, true);
}
SL_TEST(workers, two_rekey_and_hand_over)
{
	under_load(2, true);
}
SL_TEST(workers, three)
{
	under_load(3, false);
}

/* More workers than lcores: a clear error, nothing runs. */
SL_TEST(workers, too_few_lcores)
{
	const struct rig_config config = {.workers = 4};
	struct rig *r = rig_create(&config);

	SL_ASSERT(r);
	SL_EXPECT_EQ(sl_dataplane_start(r->dp), -ENOSPC);
	rig_destroy(r);
}

/* --- cycles -------------------------------------------------------------------------------------------------------- */

#define SLOW_US 3000

static uint16_t
slow_transmit(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t count, void *arg)
{
	rte_delay_us_block(SLOW_US);
	return count;
}

/* What a driver takes to transmit is counted as its own, not as transit's. */
SL_TEST(workers, cycles_of_driver_and_transit)
{
	struct rig *r = rig_create(NULL);
	const struct rte_eth_rxtx_callback *cb;
	const uint64_t slow = rte_get_tsc_hz() / 1000000 * SLOW_US;
	struct sl_worker_stats before, after;
	struct rig_peer *a, *b;
	uint8_t msg[RIG_FRAME_MAX];

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	rig_poll(r, true);
	cb = rte_eth_add_tx_callback(r->dp->ports[1].ethdev, 0, slow_transmit, NULL);
	if (!cb)
		SL_SKIP("this DPDK has no transmit callbacks");
	sl_dataplane_worker_stats(r->dp, 0, &before);
	for (unsigned i = 0; i < 10; i++) {
		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "x", 1, msg);
		SL_EXPECT_EQ(sl_worker_poll(r->dp->workers[0]), 1);
	}
	sl_worker_poll(r->dp->workers[0]); /* a poll counts when the next begins */
	sl_dataplane_worker_stats(r->dp, 0, &after);
	SL_EXPECT_EQ(after.tx - before.tx, 10);
	SL_EXPECT_GT(after.transit_tsc, before.transit_tsc);
	SL_EXPECT_GT(after.busy_tsc - before.busy_tsc, 10 * slow);
	SL_EXPECT_GT(after.driver_tsc - before.driver_tsc, 10 * slow * 9 / 10);
	SL_EXPECT_LE(after.driver_tsc - before.driver_tsc + (after.transit_tsc - before.transit_tsc),
		after.busy_tsc - before.busy_tsc);
	SL_EXPECT_EQ(rte_eth_remove_tx_callback(r->dp->ports[1].ethdev, 0, cb), 0);
	rig_destroy(r);
}

/* --- control's turn ------------------------------------------------------------------------------------------------ */

static unsigned dear_calls;

static void
dear(void)
{
	dear_calls++;
	rte_delay_us_block(200); /* about a handshake */
}
static void
dear_handshake(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	dear();
}
static void
dear_message(void *arg, uint32_t rx_index, uint32_t peer_id, uint8_t flags, const uint8_t *msg, size_t len)
{
	dear();
}

/* Rings full of frames that are dear to handle make no turn a long one, and none of them is forgotten. */
SL_TEST(control, turn_ends_in_time)
{
	enum { EACH = 250 };
	struct rig *r = rig_create(NULL);
	uint8_t packet[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], msg[64] = {SL_MSG_TREE_ANNOUNCE};
	uint8_t msg1[SL_MSG1_PACKET_BYTES], noise[SL_NOISE_MSG1_BYTES] = {0};
	uint64_t shortest = UINT64_MAX, took, before;
	unsigned turns = 0;
	struct rig_peer *a;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	rig_poll(r, true);
	before = rig_verdict(r, SL_PUNT);
	r->dp->sink.handshake = dear_handshake;
	r->dp->sink.message = dear_message;
	dear_calls = 0;
	sl_msg1_build(msg1, 1, noise);
	for (unsigned i = 0; i < EACH; i++) {
		rig_inject(r, 0, frame, rig_wrap(r, a, frame, msg1, sizeof(msg1)));
		rig_inject(r, 0, frame, rig_wrap(r, a, frame, packet, rig_seal(packet, a, a->counter++, 0, 1, msg, sizeof(msg))));
		sl_worker_poll(r->dp->workers[0]);
	}
	SL_EXPECT_EQ(rig_verdict(r, SL_PUNT) - before, 2 * EACH);
	while (dear_calls < 2 * EACH && turns < 2 * EACH) {
		before = dear_calls;
		took = sl_dataplane_now_us();
		sl_dataplane_poll(r->dp, 256, took);
		took = sl_dataplane_now_us() - took;
		/* Full turns: the last ones have less to do. The shortest, since this machine is not ours alone. */
		if (dear_calls < EACH && took < shortest)
			shortest = took;
		SL_EXPECT_LE(dear_calls - before, 2 * 4);
		turns++;
	}
	SL_EXPECT_EQ(dear_calls, 2 * EACH);
	SL_EXPECT_LT(shortest, 10000);
	rig_destroy(r);
}

/* --- neighbours behind paths ------------------------------------------------------------------------------------------ */

static unsigned
drain(struct rig *r)
{
	uint8_t frame[RIG_FRAME_MAX];
	unsigned n = 0;

	for (uint16_t port = 0; port < RIG_PORTS; port++)
		while (rig_receive(r, port, frame))
			n++;
	return n;
}

/* A published path keeps its neighbour confirmed; one that is withdrawn lets go of it. */
SL_TEST(paths, hold_ends_with_the_path)
{
	struct rig *r = rig_create(NULL);
	struct rig_peer *a, *b;
	uint64_t later;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	sl_dataplane_path_set(r->dp, a->id, NULL, r->now_us);
	drain(r);
	later = r->now_us + 29000000; /* within the neighbours' lifetime, past the time at which held ones are asked again */
	sl_dataplane_poll(r->dp, 256, later);
	SL_EXPECT_EQ(drain(r), 1); /* b's */
	sl_dataplane_path_set(r->dp, b->id, NULL, later);
	rig_destroy(r);
}

static void
count_neighbour(void *arg, const struct sl_neigh_info *info)
{
	++*(unsigned *)arg;
}

/* The table of neighbours has room for one a peer, however many peers. */
SL_TEST(paths, a_neighbour_each)
{
	enum { PEERS = 1500 };
	const struct rig_config config = {.max_peers = PEERS};
	struct rig *r = rig_create(&config);
	unsigned known = 0;

	SL_ASSERT(r);
	for (unsigned i = 0; i < PEERS; i++) {
		const struct sl_addr at = {.kind = SL_ADDR_UDP6, .udp_port = 2121,
			.u.ip6 = {0x20, 1, 0x0d, 0xb8, [13] = 1, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i}};

		sl_dataplane_path_set(r->dp, i, &at, r->now_us);
		drain(r);
	}
	sl_dataplane_for_each_neigh(r->dp, count_neighbour, &known);
	SL_EXPECT_EQ(known, PEERS);
	for (unsigned i = 0; i < PEERS; i++)
		sl_dataplane_path_set(r->dp, i, NULL, r->now_us);
	rig_destroy(r);
}

/* What a port's queue does not take of control's frames is that port's loss alone. */
SL_TEST(paths, loss_is_counted_at_its_port)
{
	const struct rig_config config = {.shared_queue = true, .out_entries = 16};
	struct rig *r = rig_create(&config);
	uint8_t packet[64] = {0};
	struct sl_port_stats s;
	struct rig_peer *a;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_ETH, 1, 0);
	for (unsigned i = 0; i < 40; i++)
		SL_EXPECT_EQ(sl_dataplane_transmit(r->dp, &a->at, packet, sizeof(packet), r->now_us), 0);
	rig_poll(r, false);
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	SL_EXPECT_EQ(s.control_tx_dropped, 40 - 15);
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 0, &s) == 0);
	SL_EXPECT_EQ(s.control_tx_dropped, 0);
	rig_destroy(r);
}

/* --- reclaiming ----------------------------------------------------------------------------------------------------- */

static void
count_reclaimed(void *arg, void *obj)
{
	(void)obj;
	++*(unsigned *)arg;
}

static uint64_t
polls_of(const struct rig *r)
{
	struct sl_worker_stats s;

	sl_dataplane_worker_stats(r->dp, 0, &s);
	return s.polls;
}

/* A worker that sleeps holds nothing: reclaiming does not wait for it to wake. */
SL_TEST(workers, asleep_hold_nothing)
{
	const struct rig_config config = {.idle_sleep_us = 400000};
	struct rig *r = rig_create(&config);
	unsigned reclaimed = 0;
	uint64_t polls;

	SL_ASSERT(r);
	SL_ASSERT(sl_dataplane_start(r->dp) == 0);
	/* Asleep: no poll for a while. */
	do {
		polls = polls_of(r);
		rte_delay_us_sleep(30000);
	} while (polls < SL_IDLE_POLLS || polls != polls_of(r));
	sl_dataplane_reclaim(r->dp, count_reclaimed, &reclaimed, NULL);
	for (unsigned i = 0; i < 100 && !reclaimed && polls == polls_of(r); i++) {
		sl_dataplane_poll(r->dp, 256, sl_dataplane_now_us());
		rte_delay_us_sleep(1000);
	}
	SL_EXPECT_EQ(reclaimed, 1);
	rig_destroy(r);
}

/* Nothing is given back while a worker may hold it; control never waits; order is kept beyond the first queue's size. */
SL_TEST(workers, reclaim_never_waits)
{
	struct rig *r = rig_create(NULL);
	unsigned reclaimed = 0;

	SL_ASSERT(r);
	rte_rcu_qsbr_thread_online(r->dp->reclaim.qsbr, 0); /* a worker that does not come back */
	for (unsigned i = 0; i < 1000; i++)
		sl_dataplane_reclaim(r->dp, count_reclaimed, &reclaimed, NULL);
	for (unsigned i = 0; i < 10; i++)
		sl_dataplane_poll(r->dp, 256, r->now_us);
	SL_EXPECT_EQ(reclaimed, 0);
	rte_rcu_qsbr_quiescent(r->dp->reclaim.qsbr, 0);
	sl_dataplane_poll(r->dp, 256, r->now_us);
	SL_EXPECT_EQ(reclaimed, 256); /* a turn's budget */
	for (unsigned i = 0; i < 3; i++)
		sl_dataplane_poll(r->dp, 256, r->now_us);
	SL_EXPECT_EQ(reclaimed, 1000);
	rte_rcu_qsbr_thread_offline(r->dp->reclaim.qsbr, 0);
	rig_destroy(r);
}
