/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What breaks under a running data plane: links, devices, buffers, queues, workers. Each fault has its counter, traffic comes
 * back with what was lost, and rig_destroy() holds every pool to be full again.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include "rows.h"

struct link_told {
	unsigned up, down;
};
static struct link_told told;

static void
on_link(void *arg, uint16_t port, bool up)
{
	SL_EXPECT_EQ(port, 1);
	told.up += up;
	told.down += !up;
}

/* One frame from a to b: came it out? */
static bool
passes(struct rig *r, struct rig_peer *a, struct rig_peer *b)
{
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	size_t len;

	rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "0123456789", 10, msg);
	rig_poll(r, true);
	/* Neighbours are asked again when a port comes back. */
	while ((len = rig_receive(r, 1, frame)) != 0)
		if (len > 100 && memcmp(frame, b->mac, 6) == 0)
			return rig_open(r, b, frame, len, msg, NULL, NULL) != 0;
	return false;
}

/* As if the port had been away for two seconds; it is not looked for yet. */
static void
let_it_be_away(struct rig *r)
{
	r->dp->ports[1].changed_us -= 2000000;
	rig_poll(r, true);
}
static void
look(struct rig *r)
{
	r->dp->ports[1].next_look_us = 0;
	rig_poll(r, true);
}

static void
expect_state(struct rig *r, const char *state)
{
	struct sl_port_stats s;

	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	SL_EXPECT_STR(s.state, state);
	SL_EXPECT_EQ(s.link_up, strcmp(state, "up") == 0);
}

static struct rig *
two_peers(struct rig_peer **a, struct rig_peer **b)
{
	struct rig *r = rig_create(NULL);

	told = (struct link_told){0};
	if (!r)
		return NULL;
	r->dp->sink.link = on_link;
	*a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	*b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	SL_EXPECT(passes(r, *a, *b));
	return r;
}

SL_TEST(faults, link_down_and_up)
{
	struct sl_port_stats s;
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);
	uint8_t packet[64] = {0};

	SL_ASSERT(r);
	SL_EXPECT_EQ(sl_dataplane_peer_port(r->dp, b->id), 1);
	SL_ASSERT(rte_eth_dev_set_link_down(r->dp->ports[1].ethdev) == 0);
	r->dp->ports[1].next_look_us = 0;
	rig_poll(r, true);
	expect_state(r, "down");
	SL_EXPECT_EQ(told.down, 0); /* not at once */
	SL_EXPECT(!sl_dataplane_peer_usable(r->dp, b->id));
	SL_EXPECT(!passes(r, a, b));
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_NO_PATH), 1);
	/* Control's own are refused and counted, not left in a queue for later. */
	SL_EXPECT_EQ(sl_dataplane_transmit(r->dp, &b->at, packet, sizeof(packet), r->now_us), -ENOBUFS);
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	SL_EXPECT_GE(s.control_tx_dropped, 1);
	SL_EXPECT_EQ(s.link_downs, 1);
	let_it_be_away(r);
	look(r);
	SL_EXPECT_EQ(told.down, 1);
	SL_ASSERT(rte_eth_dev_set_link_up(r->dp->ports[1].ethdev) == 0);
	/* The driver's own word is heard at once. */
	sl_port_event(r->dp->ports[1].ethdev, RTE_ETH_EVENT_INTR_LSC, &r->dp->ports[1], NULL);
	rig_poll(r, true);
	expect_state(r, "up");
	SL_EXPECT_EQ(told.up, 1);
	SL_EXPECT(passes(r, a, b));
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_NO_PATH), 1);
	rig_destroy(r);
}

SL_TEST(faults, reset)
{
	struct sl_port_stats s;
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);

	SL_ASSERT(r);
	sl_port_event(r->dp->ports[1].ethdev, RTE_ETH_EVENT_INTR_RESET, &r->dp->ports[1], NULL);
	rig_poll(r, true);
	rig_poll(r, true);
	expect_state(r, "up");
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	SL_EXPECT_EQ(s.resets, 1);
	SL_EXPECT_EQ(s.returns, 1);
	SL_EXPECT_EQ(s.removals, 0);
	SL_EXPECT_GE(s.tx_packets, 1); /* counts do not begin anew */
	SL_EXPECT(passes(r, a, b));
	SL_EXPECT_EQ(told.down, 0);
	rig_destroy(r);
}

/* A device made of the test's rings, under the name that the port was given. */
static void
device_make(struct rig *r)
{
	char name[32];

	snprintf(name, sizeof(name), "%s", r->dp->ports[1].config.device + strlen("net_ring_"));
	SL_EXPECT_GE(rte_eth_from_rings(name, &r->in[1], 1, r->out[1], r->out_rings, 0), 0);
}

SL_TEST(faults, removal_and_return)
{
	struct sl_port_stats s;
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);
	uint16_t ethdev;
	uint64_t tx;

	SL_ASSERT(r);
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	tx = s.tx_packets;
	SL_EXPECT_GE(tx, 1);
	ethdev = r->dp->ports[1].ethdev;
	sl_port_event(ethdev, RTE_ETH_EVENT_INTR_RMV, &r->dp->ports[1], NULL);
	rig_poll(r, true);
	rig_poll(r, true);
	expect_state(r, "removed");
	SL_EXPECT(!rte_eth_dev_is_valid_port(ethdev)); /* hot-unplugged: EAL does not know it any more */
	SL_EXPECT(!passes(r, a, b));
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_NO_PATH), 1);
	let_it_be_away(r);
	SL_EXPECT_EQ(told.down, 1);
	/* Other ports go on. */
	SL_EXPECT_EQ(sl_dataplane_peer_usable(r->dp, a->id), true);
	device_make(r);
	look(r);
	expect_state(r, "up");
	SL_EXPECT_EQ(told.up, 1);
	SL_EXPECT(passes(r, a, b));
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	SL_EXPECT_EQ(s.removals, 1);
	SL_EXPECT_EQ(s.returns, 1);
	SL_EXPECT_GT(s.tx_packets, tx);
	rig_destroy(r);
}

/* It comes back with fewer queues than workers rely on: refused, and tried again. */
SL_TEST(faults, return_of_a_smaller_device)
{
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);
	char name[32];

	SL_ASSERT(r);
	sl_port_event(0, RTE_ETH_EVENT_INTR_RMV, &r->dp->ports[1], NULL);
	rig_poll(r, true);
	rig_poll(r, true);
	expect_state(r, "removed");
	snprintf(name, sizeof(name), "%s", r->dp->ports[1].config.device + strlen("net_ring_"));
	SL_ASSERT(rte_eth_from_rings(name, &r->in[1], 1, r->out[1], 1, 0) >= 0);
	look(r);
	expect_state(r, "removed");
	SL_EXPECT(!passes(r, a, b));
	rig_destroy(r);
}

/* Until no frame is on its way between the workers. */
static void
settle(struct rig *r)
{
	uint64_t handed = 1, taken = 0;

	for (unsigned i = 0; i < 5000 && (handed != taken || !rte_ring_empty(r->in[0])); i++) {
		rte_delay_us_sleep(1000);
		handed = taken = 0;
		for (uint16_t w = 0; w < r->config.workers; w++) {
			struct sl_worker_stats s;

			sl_dataplane_worker_stats(r->dp, w, &s);
			handed += s.verdicts[SL_HANDOFF];
			taken += s.handoff_in;
		}
	}
}

/* A worker in its loop while devices go and come: it stays away from what is closed, and never stops. */
SL_TEST(faults, removal_under_a_worker)
{
	const struct rig_config config = {.workers = 2, .idle_sleep_us = 50};
	struct rig *r = rig_create(&config);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	struct rig_peer *a, *b;
	struct sl_worker_stats s;
	uint64_t before = 0;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 1);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	SL_ASSERT(sl_dataplane_start(r->dp) == 0);
	for (unsigned round = 0; round < 8; round++) {
		const bool reset = round % 2;

		for (unsigned i = 0; i < 200; i++) {
			if (i == 100)
				sl_port_event(0, reset ? RTE_ETH_EVENT_INTR_RESET : RTE_ETH_EVENT_INTR_RMV, &r->dp->ports[1], NULL);
			rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "0123456789", 10, msg);
			sl_dataplane_poll(r->dp, 256, sl_dataplane_now_us());
			while (rig_receive(r, 1, frame))
				;
			rte_delay_us_sleep(50);
		}
		for (unsigned i = 0; i < 2000 && r->dp->ports[1].state != (reset ? SL_PORT_RUNNING : SL_PORT_GONE); i++) {
			sl_dataplane_poll(r->dp, 256, sl_dataplane_now_us());
			rte_delay_us_sleep(500);
		}
		if (!reset) {
			SL_EXPECT_EQ(r->dp->ports[1].state, SL_PORT_GONE);
			device_make(r);
			r->dp->ports[1].next_look_us = 0;
		}
		sl_dataplane_poll(r->dp, 256, sl_dataplane_now_us());
		SL_EXPECT_EQ(r->dp->ports[1].state, SL_PORT_RUNNING);
	}
	settle(r);
	for (uint16_t w = 0; w < 2; w++) {
		sl_dataplane_worker_stats(r->dp, w, &s);
		before += s.verdicts[SL_DROP_NO_PATH];
	}
	SL_EXPECT_GT(before, 0);
	rig_destroy(r);
}

/* No buffer to receive into: counted by the port, and over as soon as there are some. */
SL_TEST(faults, pool_empty)
{
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);
	struct rte_mempool *pool = r->dp->ports[1].control_pool;
	void **all = calloc(pool->size, sizeof(*all));
	uint8_t packet[64] = {0};
	struct sl_port_stats s;
	uint64_t dropped;
	unsigned got = 0;

	while (got < pool->size && rte_mempool_get(pool, &all[got]) == 0)
		got++;
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	dropped = s.control_tx_dropped;
	SL_EXPECT_EQ(sl_dataplane_transmit(r->dp, &b->at, packet, sizeof(packet), r->now_us), -ENOBUFS);
	SL_ASSERT(sl_dataplane_port_stats(r->dp, 1, &s) == 0);
	SL_EXPECT_EQ(s.control_tx_dropped, dropped + 1);
	/* Transit needs none of them. */
	SL_EXPECT(passes(r, a, b));
	rte_mempool_put_bulk(pool, all, got);
	SL_EXPECT_EQ(sl_dataplane_transmit(r->dp, &b->at, packet, sizeof(packet), r->now_us), 0);
	free(all);
	rig_destroy(r);
}

/* A peer behind a queue that is not emptied loses its own frames; others lose none. */
SL_TEST(faults, slow_peer)
{
	const struct rig_config config = {.out_entries = 16};
	struct rig *r = rig_create(&config);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	struct rig_peer *a, *b, *fast;
	unsigned got = 0;

	SL_ASSERT(r);
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	fast = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	b = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	for (unsigned i = 0; i < 100; i++) {
		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "0123456789", 10, msg);
		rig_send_datagram(r, a, &fast->addr, 0, 64, 1280, "0123456789", 10, msg);
		rig_poll(r, false);
		got += rig_receive(r, 0, frame) != 0;
	}
	SL_EXPECT_EQ(got, 100);
	SL_EXPECT_EQ(rig_verdict(r, SL_DROP_TX_FULL), 100 - 15);
	rig_destroy(r);
}

/* One frame alone goes as soon as a worker sees it: no queue waits to be filled. */
SL_TEST(faults, queues_that_never_fill)
{
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);
	uint8_t msg[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];

	SL_ASSERT(r);
	for (unsigned i = 0; i < 100; i++) {
		rig_send_datagram(r, a, &b->addr, 0, 64, 1280, "x", 1, msg);
		SL_EXPECT_EQ(sl_worker_poll(r->dp->workers[0]), 1);
		SL_EXPECT_NE(rig_receive(r, 1, frame), 0);
	}
	rig_destroy(r);
}

/*
 * What waits in the ring to control belongs to the session it came on: gone, it is nobody's, also when the row has not
 * been given to another peer yet (its generation is the same).
 */
SL_TEST(faults, session_gone_while_its_frames_wait)
{
	struct rig_peer *a, *b;
	struct rig *r = two_peers(&a, &b);
	const struct sl_node_addr nowhere = {{0x99}};
	uint8_t msg[RIG_FRAME_MAX];
	struct sl_session *old;
	uint64_t stale;

	SL_ASSERT(r);
	rig_poll(r, true);
	rig_forget(r);
	stale = r->dp->stale_punts;
	rig_send_datagram(r, a, &nowhere, 0, 64, 1280, "0123456789", 10, msg);
	rig_poll(r, false);
	old = a->session;
	rig_session_install(r, a, 0);
	sl_session_retire(r->table, old);
	rig_poll(r, true);
	SL_EXPECT(rig_seen(r, RIG_DATAGRAM, 0) == NULL);
	SL_EXPECT_EQ(r->dp->stale_punts, stale + 1);
	/* The new one's are heard. */
	rig_send_datagram(r, a, &nowhere, 0, 64, 1280, "0123456789", 10, msg);
	rig_poll(r, true);
	SL_EXPECT(rig_seen(r, RIG_DATAGRAM, 0) != NULL);
	rig_destroy(r);
}

/* The count of buffers that can be in use covers rings and transmit descriptors, not only what is received into. */
SL_TEST(faults, buffers_are_counted_whole)
{
	const struct rig_config config = {.workers = 2, .ring_size = 256};
	struct rig *r = rig_create(&config);
	const struct sl_port *p;
	uint32_t want;

	SL_ASSERT(r);
	p = &r->dp->ports[0];
	want = 1024u * p->rx_queues + 2 * 32 + 2 * 2 * 1024 /* two ports, two workers */ +
		2 * SL_PUNT_RINGS * 255 + 2 * (SL_HANDOFF_ENTRIES - 1) + 3 * p->pool->cache_size * 3 / 2;
	SL_EXPECT_EQ(sl_dataplane_buffers_most(r->dp, 0), want);
	rig_destroy(r);
}

/* What is planned for a data plane that is still to be made is enough for it, however many workers, ports and descriptors. */
SL_TEST(faults, planned_buffers_are_enough)
{
	for (uint16_t workers = 1; workers <= 4; workers++) {
		const struct rig_config config = {.workers = workers, .ring_size = 1024, .elephant = SL_ELEPHANT_BY_HAND};
		struct rig *r = rig_create(&config);
		struct sl_dataplane_config plan = {.workers = workers, .ring_size = 1024, .elephant = SL_ELEPHANT_BY_HAND};

		SL_ASSERT(r);
		SL_EXPECT_GE(sl_dataplane_buffers_plan(&plan, r->dp->port_count, 0), sl_dataplane_buffers_most(r->dp, 0));
		/* A receive queue for each transmit queue, control's too: some drivers make them in pairs. */
		SL_EXPECT_EQ(sl_dataplane_buffers_plan(&plan, 16, 4096),
			sl_dataplane_buffers_plan(&plan, 16, 0) + (16 * workers + workers + 1) * (4096 - 1024));
		SL_EXPECT_GE(sl_dataplane_buffers_plan(&plan, 1, 0), SL_POOL_MBUFS);
		plan.ring_size = 0;
		SL_EXPECT_GE(sl_dataplane_buffers_plan(&plan, 2, 0), sl_dataplane_buffers_most(r->dp, 0));
		rig_destroy(r);
	}
}

/* --- a worker that stands still ------------------------------------------------------------------------------------ */

static volatile int held, let_go;

static void
hold(int sig)
{
	(void)sig;
	held = 1;
	while (!let_go)
		usleep(1000);
}

/* The kernel's id of the thread that runs a lcore, by the name EAL gives it. */
static int
thread_of(unsigned lcore)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int tid = -1;

	while (d && (e = readdir(d)) != NULL) {
		char path[300], name[32] = "";
		const char *number; /* rte-worker-1 in DPDK 22.11, dpdk-worker1 in 24.11 */
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && (number = strstr(name, "worker")) != NULL &&
			(unsigned)atoi(number + strlen("worker") + (number[strlen("worker")] == '-')) == lcore)
			tid = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return tid;
}

/* Until worker 1 is called stalled, or is not. */
static void
poll_until(struct rig *r, bool stalled, struct sl_worker_stats *s)
{
	unsigned i = 0;

	do {
		sl_dataplane_poll(r->dp, 256, sl_dataplane_now_us());
		rte_delay_us_sleep(1000);
		sl_dataplane_worker_stats(r->dp, 1, s);
	} while (s->stalled != stalled && ++i < 20000);
	SL_EXPECT_EQ(s->stalled, stalled);
}

SL_TEST(faults, stalled_worker_is_named)
{
	const struct rig_config config = {.workers = 2, .idle_sleep_us = 50};
	struct rig *r = rig_create(&config);
	struct sl_worker_stats s;
	int tid;

	SL_ASSERT(r);
	signal(SIGUSR2, hold);
	held = let_go = 0;
	SL_ASSERT(sl_dataplane_start(r->dp) == 0);
	tid = thread_of(sl_dataplane_worker_lcore(r->dp, 1));
	SL_ASSERT(tid > 0);
	poll_until(r, false, &s);
	SL_ASSERT(syscall(SYS_tgkill, getpid(), tid, SIGUSR2) == 0);
	poll_until(r, true, &s);
	SL_EXPECT_EQ(held, 1);
	SL_EXPECT_GE(s.still_us, 1000000);
	SL_EXPECT_GE(sl_dataplane_workers_stalled(r->dp), 1);
	let_go = 1;
	poll_until(r, false, &s);
	SL_EXPECT_GE(s.stalls, 1);
	SL_EXPECT_EQ(s.still_us, 0);
	rig_destroy(r);
}
