/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The demo inside one process, for those who are not root: the relay's data plane with one worker
 *on an lcore of its own, the relay's control (links, router and the daemon's own sinks) and two end
 *nodes on the main lcore, rings for wires. The links run over raw Ethernet (link layer facts,
 *section 19), so no address needs to be resolved.
 *
 *	end node A -> ring -> net_ring port 0 | worker | net_ring port 1 -> ring -> end node B, and
 *back
 *
 * Prints one JSON object a second: both end nodes as sl_endnode prints them, the relay as sluicectl
 *shows it.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../app/sluiced/daemon.h"
#include "../../lib/pipeline/sl_parse.h"
#include "node.h"

#define RING_SIZE 4096
#define BURST 64
#define ETHER_BYTES 14
#define FRAME_MIN 60
#define LINK_MTU 1497
#define UP_NS 20000000000ull

struct end {
	struct node node;
	char name;
	uint8_t mac[6];
	/*
	 * net_ring ports have the address 0, which no node would answer to. There is only one node
	 * at the other end of a wire: it goes by another name here, and frames carry what the port
	 * has.
	 */
	uint8_t port_mac[6];
	struct rte_ring *to_relay, *from_relay;
	struct rte_mempool *pool;
	uint64_t ring_full;
};

static const uint8_t relay_mac[6] = {0x02, 0, 0, 0, 0x0f, 1};
static struct end ends[2];
static struct sl_daemon relay;
static bool one_cpu; /* worker and main lcore share it */
static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static _Noreturn void die(const char *what, int err)
{
	fprintf(stderr, "ring_demo: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

/* --- end nodes: FMP packets in raw Ethernet frames
 * ------------------------------------------------------------------ */

static int end_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct end *e = arg;
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->pool);
	size_t frame_len = ETHER_BYTES + SL_ETH_HEADER_BYTES + len;
	uint8_t *f;

	(void)to;
	if (!m)
		return -ENOBUFS;
	f = (uint8_t *)rte_pktmbuf_append(
		m, (uint16_t)(frame_len < FRAME_MIN ? FRAME_MIN : frame_len));
	if (!f) {
		rte_pktmbuf_free(m);
		return -EMSGSIZE;
	}
	memcpy(f, e->port_mac, 6);
	memcpy(f + 6, e->mac, 6);
	f[12] = SL_ETHERTYPE_FIPS >> 8;
	f[13] = SL_ETHERTYPE_FIPS & 0xff;
	f[14] = SL_ETH_TYPE_DATA;
	sl_put16(f + 15, (uint16_t)len);
	memcpy(f + 17, packet, len);
	if (frame_len < FRAME_MIN)
		memset(f + frame_len, 0, FRAME_MIN - frame_len);
	if (rte_ring_enqueue(e->to_relay, m) != 0) {
		e->ring_full++;
		rte_pktmbuf_free(m);
		return -ENOBUFS;
	}
	return 0;
}

static void end_frame(struct end *e, uint8_t *f, size_t len, uint64_t now)
{
	struct sl_addr from = {.kind = SL_ADDR_ETH};
	size_t packet_len;

	if (len < ETHER_BYTES + SL_ETH_HEADER_BYTES || f[12] != SL_ETHERTYPE_FIPS >> 8 ||
		f[13] != (SL_ETHERTYPE_FIPS & 0xff) || f[14] != SL_ETH_TYPE_DATA)
		return;
	packet_len = sl_get16(f + 15);
	if (packet_len > len - ETHER_BYTES - SL_ETH_HEADER_BYTES)
		return;
	memcpy(from.u.mac, relay_mac, 6);
	node_packet(&e->node, &from, f + 17, packet_len, now);
}

static unsigned end_receive(struct end *e)
{
	void *got[BURST];
	unsigned n = rte_ring_dequeue_burst(e->from_relay, got, BURST, NULL);
	uint64_t now = now_ns();

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = got[i];

		if (m->nb_segs == 1)
			end_frame(e, rte_pktmbuf_mtod(m, uint8_t *), m->data_len, now);
		rte_pktmbuf_free(m);
	}
	return n;
}

/* --- the relay
 * ----------------------------------------------------------------------------------------------------
 */

static void rings_make(struct end *e, unsigned i)
{
	struct rte_ring *tx[2];
	char name[32];

	snprintf(name, sizeof(name), "to_relay%u", i);
	e->to_relay = rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY, 0);
	snprintf(name, sizeof(name), "from_relay%u", i);
	e->from_relay = rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY, 0);
	snprintf(name, sizeof(name), "end%u", i);
	e->pool = rte_pktmbuf_pool_create(
		name, 8191, 128, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!e->to_relay || !e->from_relay || !e->pool)
		die("rings", ENOMEM);
	/* The worker's transmit queue and control's are the same wire. */
	tx[0] = tx[1] = e->from_relay;
	snprintf(name, sizeof(name), "demo%u", i);
	if (rte_eth_from_rings(name, &e->to_relay, 1, tx, 2, 0) < 0)
		die("net_ring port", rte_errno);
}

static void port_make(unsigned i)
{
	struct sl_port_config port = {.mtu = 1500};
	struct sl_dataplane_transport t = {.id = (uint8_t)i,
		.kind = SL_ADDR_ETH,
		.mtu = LINK_MTU,
		.ethertype = SL_ETHERTYPE_FIPS};
	struct sl_transport_config lt = {
		.id = (uint8_t)i, .kind = SL_ADDR_ETH, .mtu = LINK_MTU, .accept_connections = true};
	const char *error = "";
	int rc;

	snprintf(port.name, sizeof(port.name), "wire-%c", 'a' + i);
	snprintf(port.device, sizeof(port.device), "net_ring_demo%u", i);
	rc = sl_dataplane_port_add(relay.dp, &port, &error);
	if (rc < 0)
		die(error, rc);
	t.port = (uint16_t)rc;
	rc = sl_dataplane_transport_add(relay.dp, &t);
	if (rc)
		die("transport", rc);
	rc = sl_links_transport_add(relay.links, &lt);
	if (rc)
		die("link transport", rc);
}

static void relay_make(void)
{
	struct sl_session_table_config tc = {.max_sessions = 64,
		.max_peers = 16,
		.workers = 1,
		.reclaim = sl_sinks_reclaim,
		.reclaim_arg = &relay};
	struct sl_dataplane_config dc = {.workers = 1,
		.mbufs = 8191,
		.ring_size = 1024,
		.hop_cache_entries = 256,
		.measure_cycles = true};
	struct sl_router_config rc;
	struct sl_links_config lc;
	struct sl_router_sink router_sink;
	struct sl_dataplane_sink dataplane_sink;
	struct sl_links_sink links_sink;

	if (one_cpu)
		dc.idle_sleep_us = 50;
	relay.config = sl_config_create();
	relay.identity = sl_identity_generate();
	relay.aead = dc.aead = sl_aead_backend_find("auto");
	relay.max_peers = tc.max_peers;
	relay.peer_up = calloc(tc.max_peers, 1);
	relay.now_us = sl_dataplane_now_us();
	if (!relay.config || !relay.identity || !relay.aead || !relay.peer_up || sl_port_events_init(&relay))
		die("relay", errno);
	relay.table = sl_session_table_create(&tc);
	if (!relay.table)
		die("session table", errno);
	sl_router_config_default(&rc);
	rc.max_peers = tc.max_peers;
	sl_sinks_router(&relay, &router_sink);
	relay.router = sl_router_create(
		&rc, relay.identity, &router_sink, (uint64_t)time(NULL), relay.now_us);
	if (!relay.router)
		die("router", errno);
	sl_sinks_dataplane(&relay, &dataplane_sink);
	relay.dp = sl_dataplane_create(&dc, sl_session_table_view(relay.table),
		sl_router_fib(relay.router), &dataplane_sink);
	if (!relay.dp)
		die("data plane", errno);
	sl_links_config_default(&lc);
	sl_sinks_links(&relay, &links_sink);
	relay.links = sl_links_create(
		&lc, relay.identity, relay.table, relay.aead, &links_sink, relay.now_us);
	if (!relay.links)
		die("links", errno);
}

static void relay_unmake(void)
{
	sl_links_destroy(relay.links);
	sl_dataplane_stop(relay.dp);
	relay.running = false;
	sl_dataplane_destroy(relay.dp);
	sl_router_destroy(relay.router);
	sl_session_table_destroy(relay.table);
	sl_identity_destroy(relay.identity);
	sl_config_destroy((struct sl_config *)(uintptr_t)relay.config);
	free(relay.peer_up);
	free(relay.cuts);
}

/* --- both
 * ----------------------------------------------------------------------------------------------------------
 */

static void print_json(bool final)
{
	struct sl_worker_stats s;
	uint64_t sum = 0;
	char line[4096];
	const char *comma = "";

	sl_dataplane_worker_stats(relay.dp, 0, &s);
	for (int v = 0; v < SL_VERDICT_COUNT; v++)
		sum += s.verdicts[v];
	printf("{\"final\":%s", final ? "true" : "false");
	for (int i = 0; i < 2; i++) {
		node_json(&ends[i].node, line, sizeof(line), final);
		printf(",\"%c\":%s", ends[i].name, line);
	}
	printf(",\"drops\":{\"balanced\":%s,\"drops\":{",
		s.rx == sum && s.tx == s.verdicts[SL_FORWARD] ? "true" : "false");
	for (int v = SL_LOCAL + 1; v < SL_VERDICT_COUNT; v++) {
		if (!s.verdicts[v])
			continue;
		printf("%s\"%s\":%llu", comma, sl_verdict_name((enum sl_verdict)v),
			(unsigned long long)s.verdicts[v]);
		comma = ",";
	}
	printf("}},\"workers\":{\"workers\":[{\"rx\":%llu,\"tx\":%llu,\"punt\":%llu,\"local\":%llu,"
	       "\"busy_tsc\":%llu,\"transit_tsc\":%llu,"
	       "\"driver_tsc\":%llu}]}}\n",
		(unsigned long long)s.rx, (unsigned long long)s.tx,
		(unsigned long long)s.verdicts[SL_PUNT], (unsigned long long)s.verdicts[SL_LOCAL],
		(unsigned long long)s.busy_tsc, (unsigned long long)s.transit_tsc,
		(unsigned long long)s.driver_tsc);
	fflush(stdout);
}

static int run(void)
{
	uint64_t next_tick_us = 0, start = now_ns(), next_print = start + 1000000000ull;

	while (ends[0].node.state != NODE_DONE || ends[1].node.state != NODE_DONE) {
		uint64_t now = now_ns();
		unsigned work;

		relay.now_us = sl_dataplane_now_us();
		work = sl_dataplane_poll(relay.dp, 256, relay.now_us);
		if (relay.now_us >= next_tick_us) {
			uint64_t a = sl_links_tick(relay.links, relay.now_us),
				 b = sl_router_tick(relay.router, relay.now_us);

			next_tick_us = a < b ? a : b;
			if (next_tick_us > relay.now_us + 10000)
				next_tick_us = relay.now_us + 10000;
		}
		for (int i = 0; i < 2; i++) {
			work += end_receive(&ends[i]);
			if (stop)
				node_end(&ends[i].node, now);
			node_turn(&ends[i].node, BURST, now);
		}
		if (now >= next_print) {
			print_json(false);
			next_print += 1000000000ull;
		}
		if (now - start > UP_NS && ends[0].node.state < NODE_RUNNING)
			return -ETIMEDOUT;
		if (!work)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	print_json(true);
	return 0;
}

/* EAL on two of the CPUs that we may use, control on the first; both lcores on it when it is the
 * only one. */
static void eal_start(char *program)
{
	char lcores[64];
	static char args[][32] = {"--no-huge", "-m", "192", "--no-pci", "--no-shconf",
		"--no-telemetry", "--iova-mode=va", "--log-level=lib.eal:error", "--lcores"};
	char *argv[RTE_DIM(args) + 3] = {program};
	int argc = 1;
	cpu_set_t set;
	int cpu[2] = {-1, -1}, found = 0;
	static const char *const made[] = {"/dpdk/rte", "/dpdk", "", NULL};
	char runtime[] = "/tmp/sl-ring-demo-XXXXXX", path[64];

	/* EAL wants a directory of its own even when it keeps nothing in it; /tmp/dpdk may be another user's. */
	if (!mkdtemp(runtime) || setenv("XDG_RUNTIME_DIR", runtime, 1))
		die("a directory for EAL", errno);
	if (sched_getaffinity(0, sizeof(set), &set))
		die("CPU affinity", errno);
	for (int c = 0; c < CPU_SETSIZE && found < 2; c++)
		if (CPU_ISSET(c, &set))
			cpu[found++] = c;
	one_cpu = found < 2;
	snprintf(lcores, sizeof(lcores), "0@%d,1@%d", cpu[0], found > 1 ? cpu[1] : cpu[0]);
	for (unsigned i = 0; i < RTE_DIM(args); i++)
		argv[argc++] = args[i];
	argv[argc++] = lcores;
	if (rte_eal_init(argc, argv) < 0)
		die("EAL does not start", rte_errno);
	for (const char *const *p = made; *p; p++) {
		snprintf(path, sizeof(path), "%s%s", runtime, *p);
		(void)rmdir(path);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"rate", 1, NULL, 'r'}, {"size", 1, NULL, 'z'},
		{"seconds", 1, NULL, 'n'}, {NULL, 0, NULL, 0}};
	struct node_config config = {.rate_pps = 20000,
		.size = 256,
		.seconds = 10,
		.transport = {
			.id = 0, .kind = SL_ADDR_ETH, .mtu = LINK_MTU, .accept_connections = true}};
	struct sigaction sa = {.sa_handler = on_signal};
	struct sl_identity *ids[2];
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			config.rate_pps = strtoull(optarg, NULL, 0);
			break;
		case 'z':
			config.size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'n':
			config.seconds = strtod(optarg, NULL);
			break;
		default:
			fprintf(stderr,
				"usage: ring_demo [--rate PPS] [--size BYTES] [--seconds N]\n");
			return 2;
		}
	}
	if (config.size < STREAM_PAYLOAD_MIN ||
		config.size + SL_DATAGRAM_HEADER_BYTES + SL_OVERHEAD_BYTES > LINK_MTU)
		die("--size", EINVAL);
	if (sl_crypto_init() != 0)
		die("crypto", EIO);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	eal_start(argv[0]);
	relay_make();
	for (unsigned i = 0; i < 2; i++) {
		ids[i] = sl_identity_generate();
		if (!ids[i])
			die("identity", errno);
		rings_make(&ends[i], i);
		port_make(i);
	}
	rc = sl_dataplane_start(relay.dp);
	if (rc)
		die("worker", rc);
	relay.running = true;
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = &ends[i];
		struct sl_port_stats port;

		rc = sl_dataplane_port_stats(relay.dp, (uint16_t)i, &port);
		if (rc)
			die("port", rc);
		e->name = (char)('a' + i);
		memcpy(e->mac, (const uint8_t[6]){0x02, 0, 0, 0, 0x0e, (uint8_t)(i + 1)}, 6);
		memcpy(config.relay.xonly, sl_identity_xonly(relay.identity), SL_XONLY_BYTES);
		config.relay.addrs[0] = (struct sl_addr){.kind = SL_ADDR_ETH};
		memcpy(e->port_mac, port.mac, 6);
		memcpy(config.relay.addrs[0].u.mac, relay_mac, 6);
		config.relay.addr_count = 1;
		config.relay.auto_connect = config.relay.auto_reconnect = true;
		memcpy(config.partner_xonly, sl_identity_xonly(ids[!i]), SL_XONLY_BYTES);
		config.identity = ids[i];
		rc = node_init(&e->node, &config, end_transmit, e, (uint64_t)time(NULL), now_ns());
		if (rc)
			die("end node", rc);
	}
	rc = run();
	if (rc)
		fprintf(stderr, "ring_demo: the links did not come up\n");
	for (unsigned i = 0; i < 2; i++)
		node_fini(&ends[i].node);
	relay_unmake();
	return rc ? 1 : 0;
}
