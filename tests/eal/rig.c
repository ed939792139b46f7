/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"
#include <stdlib.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_malloc.h>

/* --- EAL --------------------------------------------------------------------------------------------------------- */

int
rig_eal_init(void)
{
	char prefix[64], lcores[64];
	const bool two = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	char text[8][16] = {"test", "--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4"};
	char *argv[11] = {NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=sl_test_%d", (int)getpid());
	snprintf(lcores, sizeof(lcores), "--lcores=0@0,1@%d,2@0,3@%d", two, two);
	for (unsigned i = 0; i < RTE_DIM(text); i++)
		argv[i] = text[i];
	argv[8] = prefix;
	argv[9] = lcores;
	if (sl_crypto_init() != 0)
		return -1;
	return rte_eal_init(10, argv) < 0 ? -1 : 0;
}

/* --- the sink ------------------------------------------------------------------------------------------------------ */

static struct rig_seen *
see(struct rig *r, enum rig_seen_kind kind, const void *bytes, size_t len)
{
	struct rig_seen *s = &r->seen[r->seen_count % RIG_SEEN];

	r->seen_count++;
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->len = (uint32_t)len;
	if (len)
		memcpy(s->bytes, bytes, len < RIG_FRAME_MAX ? len : RIG_FRAME_MAX);
	return s;
}
static void
on_handshake(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	see(arg, RIG_HANDSHAKE, packet, len)->from = *from;
}
static void
on_message(void *arg, uint32_t rx_index, uint32_t peer_id, uint8_t flags, const uint8_t *msg, size_t len)
{
	struct rig_seen *s = see(arg, RIG_MESSAGE, msg, len);

	s->rx_index = rx_index;
	s->peer_id = peer_id;
	s->flags = flags;
}
static void
on_datagram(void *arg, uint32_t peer_id, uint8_t flags, uint8_t *msg, size_t len)
{
	struct rig_seen *s = see(arg, RIG_DATAGRAM, msg, len);

	s->peer_id = peer_id;
	s->flags = flags;
}
static void
on_learn(void *arg, const uint8_t *msg, size_t len)
{
	see(arg, RIG_LEARN, msg, len);
}
static void
on_too_big(void *arg, const uint8_t *msg, size_t len, uint16_t mtu)
{
	see(arg, RIG_TOO_BIG, msg, len)->mtu = mtu;
}
static void
on_first_frame(void *arg, uint32_t rx_index, uint8_t flags)
{
	struct rig_seen *s = see(arg, RIG_FIRST_FRAME, NULL, 0);

	s->rx_index = rx_index;
	s->flags = flags;
}
static void
on_roamed(void *arg, uint32_t rx_index, const struct sl_addr *from)
{
	struct rig_seen *s = see(arg, RIG_ROAMED, NULL, 0);

	s->rx_index = rx_index;
	s->from = *from;
}
static void
on_path_mtu(void *arg, uint32_t peer_id, uint16_t mtu)
{
	struct rig_seen *s = see(arg, RIG_PATH_MTU, NULL, 0);

	s->peer_id = peer_id;
	s->mtu = mtu;
}
static void
on_traversal(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	see(arg, RIG_TRAVERSAL, packet, len)->from = *from;
}
static void
on_beacon(void *arg, const struct sl_addr *from, const uint8_t *xonly)
{
	see(arg, RIG_BEACON, xonly, 32)->from = *from;
}

const struct rig_seen *
rig_seen(const struct rig *r, enum rig_seen_kind kind, unsigned n)
{
	for (uint32_t i = 0; i < r->seen_count && i < RIG_SEEN; i++)
		if (r->seen[i].kind == kind && n-- == 0)
			return &r->seen[i];
	return NULL;
}

void
rig_forget(struct rig *r)
{
	r->seen_count = 0;
}

/* --- up and down ----------------------------------------------------------------------------------------------------- */

static int
router_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	return 0; /* announces of the tree: nobody listens */
}
static void
reclaim(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	struct rig *r = arg;

	if (r->dp)
		sl_dataplane_reclaim(r->dp, fn, fn_arg, obj);
	else
		fn(fn_arg, obj);
}

static struct rte_ring *
ring_make(const char *what, unsigned a, unsigned b, unsigned entries)
{
	static unsigned serial;
	char name[32];

	snprintf(name, sizeof(name), "rig_%s%u_%u_%u", what, a, b, serial++);
	return rte_ring_create(name, entries, SOCKET_ID_ANY, 0);
}

static bool
port_make(struct rig *r, uint16_t port)
{
	static unsigned serial;
	struct sl_port_config pc = {.vlan = r->config.vlan, .ignore_rx_checksum = r->config.ignore_checksum, .addr_count = 2,
		.mtu = r->config.mtu, .steering = r->config.steering, .rx_workers = r->config.rx_workers};
	struct sl_port_stats stats;
	const char *error = NULL;
	char name[32];
	int rc;

	for (unsigned q = 0; q < r->config.in_rings; q++) {
		r->in_queue[port][q] = ring_make("in", port, q, 4096);
		if (!r->in_queue[port][q])
			return false;
	}
	r->in[port] = r->in_queue[port][0];
	for (unsigned q = 0; q < r->out_rings; q++) {
		r->out[port][q] = ring_make("out", port, q, r->config.out_entries);
		if (!r->out[port][q])
			return false;
	}
	snprintf(name, sizeof(name), "rig%u", serial++);
	if (rte_eth_from_rings(name, r->in_queue[port], r->config.in_rings, r->out[port], r->out_rings, 0) < 0)
		return false;
	snprintf(pc.name, sizeof(pc.name), "p%u", port);
	snprintf(pc.device, sizeof(pc.device), "net_ring_%s", name);
	pc.addrs[0] = (struct sl_ifaddr){.family = 4, .prefix_len = 24, .ip = {192, 0, (uint8_t)(2 + port), 1}};
	pc.addrs[1] = (struct sl_ifaddr){.family = 6, .prefix_len = 64,
		.ip = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, (uint8_t)port, 0, 0, 0, 0, 0, 0, 0, 1}};
	rc = sl_dataplane_port_add(r->dp, &pc, &error);
	if (rc != port) {
		sl_test_fail(__FILE__, __LINE__, "port: %d at %s", rc, error);
		return false;
	}
	if (sl_dataplane_port_stats(r->dp, port, &stats) != 0)
		return false;
	memcpy(r->mac[port], stats.mac, 6);
	return true;
}

uint16_t
rig_link_mtu(const struct rig *r, uint8_t kind)
{
	if (kind == SL_ADDR_ETH)
		return r->config.mtu ? r->config.mtu - 3 : RIG_ETH_MTU;
	return r->config.mtu ? r->config.mtu - 48 : RIG_UDP_MTU;
}

static bool
transports_make(struct rig *r)
{
	struct sl_dataplane_transport t = {.id = 0, .kind = SL_ADDR_UDP4, .mtu = rig_link_mtu(r, SL_ADDR_UDP4),
		.udp_port = 2121, .bind_any4 = true, .bind_any6 = true};

	if (sl_dataplane_transport_add(r->dp, &t) != 0)
		return false;
	for (uint16_t port = 0; port < RIG_PORTS && !r->config.no_ethernet; port++) {
		t = (struct sl_dataplane_transport){.id = (uint8_t)(1 + port), .kind = SL_ADDR_ETH,
			.mtu = rig_link_mtu(r, SL_ADDR_ETH), .port = port, .ethertype = 0x2121};
		if (sl_dataplane_transport_add(r->dp, &t) != 0)
			return false;
	}
	return true;
}

static bool
parts_make(struct rig *r)
{
	const struct sl_session_table_config tc = {.max_sessions = RTE_MAX(4096u, 2 * r->config.max_peers),
		.max_peers = r->config.max_peers,
		.workers = r->config.workers, .reclaim = reclaim, .reclaim_arg = r};
	const struct sl_router_sink router_sink = {.arg = r, .send = router_send, .reclaim = reclaim};
	const struct sl_dataplane_config dc = {.workers = r->config.workers, .mbufs = r->config.in_rings > 2 ? 8192 : 4096,
		.ring_size = r->config.ring_size,
		.aead = r->config.aead, .mbuf_data_size = r->config.data_size, .idle_sleep_us = r->config.idle_sleep_us, .measure_cycles = true,
		.elephant = r->config.elephant};
	const struct sl_dataplane_sink sink = {r, on_handshake, on_message, on_datagram, on_learn, on_too_big,
		on_first_frame, on_roamed, on_beacon, .traversal = on_traversal, .path_mtu = on_path_mtu};
	struct sl_router_config rc;

	r->now_us = sl_dataplane_now_us();
	r->seen = calloc(RIG_SEEN, sizeof(*r->seen));
	r->pool = sl_pool_create("rig", 0, r->config.mbufs, RIG_FRAME_MAX + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	r->identity = sl_identity_generate();
	r->table = sl_session_table_create(&tc);
	sl_router_config_default(&rc);
	rc.max_peers = r->config.max_peers;
	rc.coord_size = 1024;
	rc.publish_interval_us = 0;
	if (!r->seen || !r->pool || !r->identity || !r->table)
		return false;
	r->router = sl_router_create(&rc, r->identity, &router_sink, 1700000000, r->now_us);
	if (!r->router)
		return false;
	r->dp = sl_dataplane_create(&dc, sl_session_table_view(r->table), sl_router_fib(r->router), &sink);
	return r->dp != NULL;
}

struct rig *
rig_create(const struct rig_config *config)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (config)
		r->config = *config;
	if (!r->config.workers)
		r->config.workers = 1;
	if (!r->config.aead)
		r->config.aead = sl_aead_backend_find("auto");
	if (!r->config.ring_size)
		r->config.ring_size = 256;
	if (!r->config.out_entries)
		r->config.out_entries = 1024;
	if (!r->config.mbufs)
		r->config.mbufs = 8191;
	if (!r->config.in_rings)
		r->config.in_rings = 1;
	if (!r->config.max_peers)
		r->config.max_peers = RIG_PEERS;
	r->out_rings = r->config.workers + (r->config.shared_queue ? 0 : 1);
	if (!parts_make(r) || !port_make(r, 0) || !port_make(r, 1) || !transports_make(r) ||
		sl_dataplane_prepare(r->dp) != 0) {
		sl_test_fail(__FILE__, __LINE__, "rig: %s", strerror(errno));
		return NULL;
	}
	/* What the ports announce of themselves is not looked at. */
	rig_poll(r, true);
	for (uint16_t port = 0; port < RIG_PORTS; port++) {
		uint8_t frame[RIG_FRAME_MAX];

		while (rig_receive(r, port, frame))
			;
	}
	return r;
}

static int
by_address(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return x < y ? -1 : x > y;
}

/* Every buffer back, and each one once: a wrong one freed leaves the number right. */
static void
expect_pool_whole(struct rte_mempool *pool)
{
	const unsigned n = pool->size;
	void **all = calloc(n, sizeof(*all));
	unsigned got = 0, twice = 0;

	SL_EXPECT_EQ(rte_mempool_avail_count(pool), n);
	while (got < n && rte_mempool_get(pool, &all[got]) == 0)
		got++;
	qsort(all, got, sizeof(*all), by_address);
	for (unsigned i = 1; i < got; i++)
		twice += all[i] == all[i - 1];
	SL_EXPECT_EQ(twice, 0);
	rte_mempool_put_bulk(pool, all, got);
	free(all);
}

void
rig_destroy(struct rig *r)
{
	uint8_t frame[RIG_FRAME_MAX];
	uint32_t free_count, total;
	struct rte_mbuf *m;

	sl_dataplane_stop(r->dp);
	rig_expect_balance(r);
	if (r->dp->ports[0].started)
		rig_poll(r, true); /* what is in rings between workers, and to control */
	while (sl_dataplane_poll(r->dp, 256, r->now_us))
		;
	for (uint16_t port = 0; port < RIG_PORTS; port++)
		while (rig_receive(r, port, frame))
			;
	for (uint16_t port = 0; port < RIG_PORTS; port++)
		for (unsigned q = 0; q < r->config.in_rings; q++)
			while (rte_ring_dequeue(r->in_queue[port][q], (void **)&m) == 0)
				rte_pktmbuf_free(m);
	sl_dataplane_buffers(r->dp, &free_count, &total);
	SL_EXPECT_EQ(free_count, total);
	expect_pool_whole(r->pool);
	for (uint16_t port = 0; port < RIG_PORTS; port++) {
		expect_pool_whole(r->dp->ports[port].control_pool);
		if (r->dp->ports[port].join_pool)
			expect_pool_whole(r->dp->ports[port].join_pool);
	}
	sl_dataplane_destroy(r->dp);
	r->dp = NULL; /* from here on things are reclaimed at once */
	sl_router_destroy(r->router);
	sl_session_table_destroy(r->table);
	sl_identity_destroy(r->identity);
	for (uint16_t port = 0; port < RIG_PORTS; port++) {
		for (unsigned q = 0; q < r->config.in_rings; q++)
			rte_ring_free(r->in_queue[port][q]);
		for (unsigned q = 0; q < r->out_rings; q++)
			rte_ring_free(r->out[port][q]);
	}
	rte_mempool_free(r->pool);
	free(r->seen);
	free(r);
}

/* --- moving frames ------------------------------------------------------------------------------------------------- */

struct rte_mbuf *
rig_mbuf(struct rig *r, const void *frame, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);

	if (!m) {
		sl_test_fail(__FILE__, __LINE__, "test's pool is empty");
		abort();
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	return m;
}

void
rig_inject(struct rig *r, uint16_t port, const void *frame, size_t len)
{
	struct rte_mbuf *m = rig_mbuf(r, frame, len);
	const uint16_t q = r->config.queue_of ? r->config.queue_of(r->dp->ports[port].ethdev, frame, len) : 0;

	if (rte_ring_enqueue(r->in_queue[port][q], m) != 0) {
		sl_test_fail(__FILE__, __LINE__, "test's ring is full");
		rte_pktmbuf_free(m);
	}
}

void
rig_poll(struct rig *r, bool control)
{
	unsigned n;

	r->now_us = sl_dataplane_now_us();
	do {
		n = 0;
		for (unsigned w = 0; w < r->config.workers; w++)
			n += sl_worker_poll(r->dp->workers[w]);
		if (control)
			n += sl_dataplane_poll(r->dp, 256, r->now_us);
	} while (n);
}

size_t
rig_receive(struct rig *r, uint16_t port, uint8_t *frame)
{
	struct rte_mbuf *m;
	size_t len;

	for (unsigned q = 0; q < r->out_rings; q++) {
		if (rte_ring_dequeue(r->out[port][q], (void **)&m) != 0)
			continue;
		len = m->pkt_len;
		SL_EXPECT_EQ(m->nb_segs, 1);
		SL_EXPECT_EQ(m->data_len, m->pkt_len);
		memcpy(frame, rte_pktmbuf_mtod(m, void *), len < RIG_FRAME_MAX ? len : RIG_FRAME_MAX);
		rte_pktmbuf_free(m);
		return len;
	}
	return 0;
}

uint64_t
rig_verdict(const struct rig *r, enum sl_verdict v)
{
	uint64_t n = 0;

	for (uint16_t w = 0; w < r->config.workers; w++) {
		struct sl_worker_stats s;

		sl_dataplane_worker_stats(r->dp, w, &s);
		n += s.verdicts[v];
	}
	return n;
}

void
rig_expect_balance(const struct rig *r)
{
	uint64_t handed = 0, taken = 0;

	for (uint16_t w = 0; w < r->config.workers; w++) {
		struct sl_worker_stats s;
		uint64_t sum = 0;

		sl_dataplane_worker_stats(r->dp, w, &s);
		for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
			sum += s.verdicts[v];
		SL_EXPECT_EQ(s.rx, sum);
		SL_EXPECT_EQ(s.tx, s.verdicts[SL_FORWARD]);
		handed += s.verdicts[SL_HANDOFF];
		taken += s.handoff_in;
	}
	SL_EXPECT_LE(taken, handed);
}
