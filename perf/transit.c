/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What transit costs beyond its arithmetic. One process, one worker: frames of 64 sessions, ready in a ring, go through
 * receive, transit and transmit (both ports are rings; the router is the real one and the peers are direct); the same
 * frames, copied, go through nothing but the same backend's open and seal. Both in turn, round after round, over buffers
 * of one pool; the ratio is taken within a round.
 *
 * Usage: transit [-j] [--rounds N] [--size BYTES] [--link udp4|udp6|eth] [--aead NAME] [--nic-checksums]
 * --nic-checksums: received frames carry the marks of a NIC that has verified them.
 */
#include <errno.h>
#include <getopt.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include "bench.h"
#include "bench_random.h"
#include "sl_control.h"
#include "sl_router.h"
#include "sl_stage_out.h"

#define SESSIONS 64u
#define BURST 32u
#define FRAMES 512u /* a round: enough for the caches to settle, few enough to stay in the second level at any size */
#define WARM_ROUNDS 5u

struct peer {
	struct sl_node_addr addr;
	struct sl_session *session;
	struct sl_path path;
	uint8_t send[SL_KEY_BYTES];
	uint64_t counter;
	uint8_t mac[6], ip[16];
};

struct bench {
	uint8_t link; /* enum sl_addr_kind */
	bool json, nic_checksums, stages;
	unsigned rounds, size;
	const struct sl_aead_backend *aead;
	struct sl_aead_ctx *ctx;
	struct sl_identity *identity;
	struct sl_session_table *table;
	struct sl_router *router;
	struct sl_dataplane *dp;
	struct rte_ring *in, *out;
	struct rte_mempool *pool;
	struct peer peers[SESSIONS];
	struct rte_mbuf *frames[FRAMES];
	struct sl_aead_op open_ops[FRAMES], seal_ops[FRAMES];
};

static int
no_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	return 0;
}

static int
peer_make(struct bench *b, unsigned i, const uint8_t port_mac[6])
{
	struct peer *p = &b->peers[i];
	struct sl_identity *id = sl_identity_generate();
	struct sl_path_spec spec = {.ip_mtu = 9000, .fmp_mtu = 8900, .src_port = 2121, .ethertype = 0x2121};
	struct sl_noise_keys keys;
	struct sl_addr from;
	uint32_t index;

	if (id == NULL)
		return -1;
	p->addr = *sl_identity_addr(id);
	memset(&keys, 0, sizeof(keys));
	sl_random(keys.send, sizeof(keys.send));
	sl_random(keys.recv, sizeof(keys.recv));
	memcpy(p->send, keys.recv, sizeof(p->send));
	if (sl_session_index_reserve(b->table, 0, &index) != 0)
		return -1;
	p->session = sl_session_install(b->table, index, sl_random_u32(), i, false, &keys, sl_dataplane_now_us());
	memcpy(p->mac, (uint8_t[6]){2, 0, 0, 0, 1, (uint8_t)i}, 6);
	spec.to = (struct sl_addr){.kind = b->link, .udp_port = (uint16_t)(40000 + i)};
	if (b->link == SL_ADDR_UDP4)
		memcpy(p->ip, (uint8_t[4]){192, 0, 2, (uint8_t)(10 + i)}, 4);
	else
		memcpy(p->ip, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [15] = (uint8_t)(10 + i)}, 16);
	if (b->link == SL_ADDR_ETH)
		memcpy(spec.to.u.mac, p->mac, 6);
	else
		memcpy(spec.to.u.ip6, p->ip, b->link == SL_ADDR_UDP4 ? 4 : 16);
	/* As control leaves the current session of a link: its address known, a change of it to be told. */
	from = spec.to;
	from.transport = b->link == SL_ADDR_ETH;
	__atomic_store_n(&p->session->rx_addr_hash, sl_addr_hash(&from), __ATOMIC_RELAXED);
	__atomic_store_n(&p->session->notify, SL_NOTIFY_ADDRESS, __ATOMIC_RELAXED);
	memcpy(spec.src_mac, port_mac, 6);
	memcpy(spec.dst_mac, p->mac, 6);
	memcpy(spec.src_ip, b->dp->ports[0].config.addrs[b->link == SL_ADDR_UDP6].ip, 16);
	if (sl_path_build(&p->path, &spec) != 0)
		return -1;
	__atomic_store_n(&sl_session_table_view(b->table)->peers[i].tx, p->session, __ATOMIC_RELEASE);
	__atomic_store_n(&sl_session_table_view(b->table)->peers[i].path, &p->path, __ATOMIC_RELEASE);
	if (sl_router_peer_up(b->router, i, sl_identity_xonly(id), 8900, sl_dataplane_now_us()) != 0)
		return -1;
	sl_identity_destroy(id);
	return 0;
}

static int
device_make(struct bench *b)
{
	struct sl_port_config pc = {.name = "bench", .device = "net_ring_bench", .mtu = 0, .addr_count = 2};
	struct sl_dataplane_transport udp = {.id = 0, .kind = SL_ADDR_UDP4, .mtu = 8900, .udp_port = 2121,
		.bind_any4 = true, .bind_any6 = true};
	struct sl_dataplane_transport eth = {.id = 1, .kind = SL_ADDR_ETH, .mtu = 8900, .ethertype = 0x2121};
	const char *error = NULL;

	b->in = rte_ring_create("bench_in", 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	b->out = rte_ring_create("bench_out", 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!b->in || !b->out || rte_eth_from_rings("bench", &b->in, 1, &b->out, 1, 0) < 0)
		return -1;
	pc.addrs[0] = (struct sl_ifaddr){.family = 4, .prefix_len = 24, .ip = {192, 0, 2, 1}};
	pc.addrs[1] = (struct sl_ifaddr){.family = 6, .prefix_len = 64, .ip = {0x20, 1, 0x0d, 0xb8, [15] = 1}};
	if (sl_dataplane_port_add(b->dp, &pc, &error) != 0) {
		fprintf(stderr, "transit: port: %s\n", error);
		return -1;
	}
	return sl_dataplane_transport_add(b->dp, &udp) || sl_dataplane_transport_add(b->dp, &eth) ||
		sl_dataplane_prepare(b->dp) ? -1 : 0;
}

static int
bench_make(struct bench *b)
{
	const struct sl_session_table_config tc = {.max_sessions = 1024, .max_peers = SESSIONS, .workers = 1};
	const struct sl_router_sink router_sink = {.send = no_send};
	const struct sl_dataplane_sink sink = {NULL};
	const struct sl_dataplane_config dc = {.workers = 1, .mbufs = 4096, .burst = BURST, .aead = b->aead};
	struct sl_router_config rc;

	sl_router_config_default(&rc);
	rc.max_peers = SESSIONS;
	rc.coord_size = 1024;
	rc.publish_interval_us = 0;
	b->identity = sl_identity_generate();
	b->table = sl_session_table_create(&tc);
	b->ctx = b->aead->create(BURST);
	b->pool = sl_pool_create("bench", 0, 4095, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (!b->identity || !b->table || !b->ctx || !b->pool)
		return -1;
	b->router = sl_router_create(&rc, b->identity, &router_sink, 1700000000, sl_dataplane_now_us());
	if (!b->router)
		return -1;
	b->dp = sl_dataplane_create(&dc, sl_session_table_view(b->table), sl_router_fib(b->router), &sink);
	if (!b->dp || device_make(b) != 0)
		return -1;
	for (unsigned i = 0; i < SESSIONS; i++)
		if (peer_make(b, i, b->dp->ports[0].mac) != 0)
			return -1;
	sl_router_tick(b->router, sl_dataplane_now_us() + 1000000);
	return 0;
}

/* Outer headers from a peer to us; returns where the FMP packet begins. Checksums are right. */
static uint8_t *
outer_write(const struct bench *b, const struct peer *p, uint8_t *f, unsigned len)
{
	const struct sl_port *port = &b->dp->ports[0];
	struct sl_path path;
	struct sl_path_spec spec = {.to = {.kind = b->link, .udp_port = 2121}, .ip_mtu = 9000, .ethertype = 0x2121,
		.src_port = (uint16_t)(40000 + (p - b->peers)), .flags = SL_PATH_UDP4_CHECKSUM};

	memcpy(spec.src_mac, p->mac, 6);
	memcpy(spec.dst_mac, port->mac, 6);
	memcpy(spec.src_ip, p->ip, 16);
	memcpy(spec.to.u.ip6, port->config.addrs[b->link == SL_ADDR_UDP6].ip, 16);
	if (b->link == SL_ADDR_ETH)
		memcpy(spec.to.u.mac, port->mac, 6);
	if (sl_path_build(&path, &spec) != 0)
		abort();
	sl_path_write(&path, f, len, 0);
	return f + path.hdr_len;
}

/* A round's frames: random pairs of peers, each session's counters rising. One mbuf each, sealed. */
static void
frames_make(struct bench *b)
{
	const unsigned text_len = SL_INNER_BYTES - 1 + SL_DATAGRAM_HEADER_BYTES + b->size;
	const unsigned fmp_len = text_len + SL_ESTABLISHED_MIN_BYTES;
	const unsigned hdr = b->link == SL_ADDR_UDP4 ? 42 : b->link == SL_ADDR_UDP6 ? 62 : 17;

	if (rte_pktmbuf_alloc_bulk(b->pool, b->frames, FRAMES) != 0)
		abort();
	for (unsigned i = 0; i < FRAMES; i++) {
		struct rte_mbuf *m = b->frames[i];
		/* Two peers, never one: a datagram does not go back to where it came from. */
		const uint32_t at = bench_random() % SESSIONS;
		struct peer *from = &b->peers[at], *to = &b->peers[(at + 1 + (bench_random() % (SESSIONS - 1))) % SESSIONS];
		uint8_t *f = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(hdr + fmp_len)), *fmp = f + hdr;

		sl_header_build(fmp, 0, (uint16_t)text_len, from->session->rx_index, from->counter);
		memset(fmp + SL_HEADER_BYTES, 0, text_len);
		sl_datagram_build(fmp + SL_HEADER_BYTES + 4, 64, 9000, &from->addr, &to->addr);
		fmp[SL_HEADER_BYTES + 4 + SL_DATAGRAM_PAYLOAD] = 3;
		b->open_ops[i] = (struct sl_aead_op){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .key = from->send,
			.counter = from->counter++, .text_len = text_len, .slot = i};
		b->seal_ops[i] = b->open_ops[i];
		b->seal_ops[i].key = to->session->tx_key;
	}
	for (unsigned i = 0; i < FRAMES; i += BURST)
		b->aead->seal(b->ctx, &b->open_ops[i], BURST);
	for (unsigned i = 0; i < FRAMES; i++) {
		/* seal may have moved ops about: the frame is found through its text */
		const struct sl_aead_op *op = &b->open_ops[i];
		struct rte_mbuf *m = b->frames[op->slot];
		uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
		const struct sl_session *s = sl_session_lookup(sl_session_table_view(b->table), sl_get32(f + hdr + 4));

		outer_write(b, &b->peers[s->peer_id], f, fmp_len);
		m->ol_flags = b->nic_checksums ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
	}
}

/* ns a frame, or -1 when not every frame went through. */
static double
round_transit(struct bench *b)
{
	struct sl_worker *w = b->dp->workers[0];
	const uint64_t before = w->counters.verdicts[SL_FORWARD];
	struct rte_mbuf *m[FRAMES];
	uint64_t begin, end;
	unsigned n;

	if (rte_ring_enqueue_bulk(b->in, (void *const *)b->frames, FRAMES, NULL) != FRAMES)
		return -1;
	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < FRAMES / BURST; i++)
		sl_worker_poll(w);
	end = rte_rdtsc_precise();
	n = rte_ring_dequeue_burst(b->out, (void **)m, FRAMES, NULL);
	rte_pktmbuf_free_bulk(m, n);
	if (n != FRAMES || w->counters.verdicts[SL_FORWARD] - before != FRAMES)
		return -1;
	return (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES;
}

/* --- stage by stage: the same steps as transit.c, with the clock read between ------------------------------------ */

#define STAGES(X) X(receive) X(classify) X(session) X(admit) X(open) X(commit) X(message) X(next_hop) X(egress) X(reserve) X(seal) X(wrap) X(finish)
enum { 
#define X(n) ST_##n,
STAGES(X)
#undef X
ST_COUNT };
static const char *const stage_names[] = {
#define X(n) #n,
STAGES(X)
#undef X
};
static double stage_ns[ST_COUNT][2048];
static unsigned stage_rounds;

static void
round_stages(struct bench *bb)
{
	struct sl_worker *w = bb->dp->workers[0];
	struct sl_burst *b = &w->in_hand;
	uint64_t sum[ST_COUNT] = {0}, t0, t1;
	struct rte_mbuf *m[FRAMES];
	unsigned n;

	if (rte_ring_enqueue_bulk(bb->in, (void *const *)bb->frames, FRAMES, NULL) != FRAMES)
		abort();
#define CLOCK(n) (t1 = rte_rdtsc(), sum[ST_##n] += t1 - t0, t0 = t1)
	for (unsigned i = 0; i < FRAMES / BURST; i++) {
		t0 = rte_rdtsc();
		b->count = rte_eth_rx_burst(w->rx[0].ethdev, w->rx[0].queue, b->mbuf, w->burst_max);
		b->port = w->rx[0].port;
		b->local = w->rx[0].local;
		b->begin_tsc = rte_rdtsc();
		b->now_us = sl_tsc_to_us(w->us_per_tsc_q64, b->begin_tsc);
		b->fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
		CLOCK(receive);
		sl_stage_classify(b, b->local);
		CLOCK(classify);
		sl_stage_session(w, b);
		CLOCK(session);
		sl_stage_admit(w, b);
		CLOCK(admit);
		sl_stage_open(w, b);
		CLOCK(open);
		sl_stage_commit(w, b);
		CLOCK(commit);
		sl_stage_message(w, b);
		CLOCK(message);
		sl_stage_next_hop(w, b);
		CLOCK(next_hop);
		sl_stage_egress(w, b);
		CLOCK(egress);
		sl_stage_reserve(w, b);
		CLOCK(reserve);
		sl_stage_reseal(w, b);
		CLOCK(seal);
		sl_stage_wrap(b);
		CLOCK(wrap);
		sl_stage_finish(w, b);
		CLOCK(finish);
	}
	n = rte_ring_dequeue_burst(bb->out, (void **)m, FRAMES, NULL);
	rte_pktmbuf_free_bulk(m, n);
	for (unsigned i = 0; i < ST_COUNT; i++)
		stage_ns[i][stage_rounds % 2048] = (double)sum[i] / FRAMES;
	stage_rounds++;
}

static void
run_stages(struct bench *b, unsigned size)
{
	double min = 0, med = 0;
	b->size = size;
	for (unsigned i = 0; i < b->rounds; i++) {
		frames_make(b);
		round_stages(b);
	}
	for (unsigned i = 0; i < ST_COUNT; i++) {
		struct bench_figure f = bench_figure(stage_ns[i], stage_rounds);
		printf("%12s  %7.1f  p10 %7.1f cycles (TSC)\n", stage_names[i], f.median, stage_ns[i][stage_rounds / 50]);
		min += stage_ns[i][stage_rounds / 50]; if (i != ST_open && i != ST_seal) med += stage_ns[i][stage_rounds / 50];
	}
	printf("all %.1f, beside open and seal %.1f cycles = %.1f ns (p10)\n", min, med, med * 1e9 / (double)rte_get_tsc_hz());
	stage_rounds = 0;
}

static double
round_bare(struct bench *b)
{
	uint64_t begin, end;
	unsigned good = 0;

	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < FRAMES; i += BURST) {
		good += b->aead->open(b->ctx, &b->open_ops[i], BURST);
		b->aead->seal(b->ctx, &b->seal_ops[i], BURST);
	}
	end = rte_rdtsc_precise();
	rte_pktmbuf_free_bulk(b->frames, FRAMES);
	return good == FRAMES ? (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES : -1;
}

static int
run_size(struct bench *b, unsigned size, double limit, bool first)
{
	double *transit = calloc(b->rounds, sizeof(double)), *bare = calloc(b->rounds, sizeof(double)),
	       *ratio = calloc(b->rounds, sizeof(double));
	struct bench_figure t, a, r;
	double best;
	int rc = -1;

	b->size = size;
	for (unsigned i = 0; i < b->rounds + WARM_ROUNDS; i++) {
		double x, y;

		if (i & 1) {
			frames_make(b);
			x = round_transit(b);
			frames_make(b);
			y = round_bare(b);
		} else {
			frames_make(b);
			y = round_bare(b);
			frames_make(b);
			x = round_transit(b);
		}
		if (x < 0 || y < 0) {
			fprintf(stderr, "transit: frames were lost in a round of %u bytes\n", size);
			goto out;
		}
		if (i < WARM_ROUNDS)
			continue;
		transit[i - WARM_ROUNDS] = x;
		bare[i - WARM_ROUNDS] = y;
		ratio[i - WARM_ROUNDS] = x / y;
	}
	t = bench_figure(transit, b->rounds);
	a = bench_figure(bare, b->rounds);
	r = bench_figure(ratio, b->rounds);
	best = transit[0] / bare[0]; /* sorted by now */
	rc = limit > 0 && r.median > limit;
	if (b->json)
		printf("%s{\"payload\":%u,\"transit_ns\":%.1f,\"bare_ns\":%.1f,\"ratio\":%.3f,\"ratio_p10\":%.3f,"
		       "\"ratio_p90\":%.3f,\"transit_best_ns\":%.1f,\"bare_best_ns\":%.1f,\"limit\":%.2f,\"met\":%s}",
			first ? "" : ",", size, t.median, a.median, r.median, r.p10, r.p90, transit[0], bare[0], limit,
			rc ? "false" : "true");
	else
		printf("%7u  %9.1f  %9.1f  %8.3f  %6.3f .. %-6.3f  %7.1f / %.1f = %.3f  %s\n", size, t.median, a.median,
			r.median, r.p10, r.p90, transit[0], bare[0], best, limit > 0 ? rc ? "over the limit" : "within the limit" : "");
out:
	free(transit);
	free(bare);
	free(ratio);
	return rc;
}

static int
options(struct bench *b, int argc, char **argv)
{
	static const struct option list[] = {{"rounds", 1, NULL, 'r'}, {"size", 1, NULL, 's'}, {"link", 1, NULL, 'l'},
		{"aead", 1, NULL, 'a'}, {"nic-checksums", 0, NULL, 'n'}, {"stages", 0, NULL, 'S'}, {NULL, 0, NULL, 0}};
	const char *aead = "auto";
	int c;

	b->rounds = 301;
	b->link = SL_ADDR_UDP4;
	while ((c = getopt_long(argc, argv, "j", list, NULL)) != -1) {
		if (c == 'j')
			b->json = true;
		else if (c == 'r')
			b->rounds = (unsigned)atoi(optarg);
		else if (c == 's')
			b->size = (unsigned)atoi(optarg);
		else if (c == 'a')
			aead = optarg;
		else if (c == 'S')
			b->stages = true;
		else if (c == 'n')
			b->nic_checksums = true;
		else if (c == 'l')
			b->link = !strcmp(optarg, "udp6") ? SL_ADDR_UDP6 : !strcmp(optarg, "eth") ? SL_ADDR_ETH : SL_ADDR_UDP4;
		else
			return -1;
	}
	b->aead = sl_aead_backend_find(aead);
	return optind < argc || b->rounds < 3 || b->size > 1700 || !b->aead ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static const char *const links[] = {"", "udp4", "udp6", "eth"};
	static struct bench b;
	int bad = 0, rc;

	if (sl_crypto_init() != 0 || options(&b, argc, argv) != 0) {
		fprintf(stderr, "usage: transit [-j] [--rounds N] [--size BYTES] [--link udp4|udp6|eth] [--aead NAME] "
				"[--nic-checksums]\n");
		return 2;
	}
	if (bench_eal_init(256) != 0 || bench_make(&b) != 0) {
		fprintf(stderr, "transit: cannot be set up: %s\n", strerror(errno));
		return 2;
	}
	if (b.stages) {
		run_stages(&b, b.size ? b.size : 64);
		return 0;
	}
	if (b.json)
		printf("{\"bench\":\"transit\",\"aead\":\"%s\",\"link\":\"%s\",\"nic_checksums\":%s,\"sessions\":%u,\"burst\":%u,"
		       "\"rounds\":%u,\"sizes\":[", b.aead->name, links[b.link], b.nic_checksums ? "true" : "false", SESSIONS,
			BURST, b.rounds);
	else
		printf("%s over %s, %u sessions, burst %u, %u rounds of %u frames; checksums of received frames by %s\n"
		       "payload  transit/ns    bare/ns     ratio  p10 .. p90         best rounds\n", b.aead->name, links[b.link], SESSIONS, BURST,
			b.rounds, FRAMES, b.nic_checksums ? "the NIC" : "software");
	if (b.size) {
		bad = run_size(&b, b.size, 0, true);
	} else {
		static const struct {
			unsigned size;
			double limit;
		} sizes[] = {{64, 2.0}, {512, 0}, {1400, 1.35}};

		for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
			rc = run_size(&b, sizes[i].size, sizes[i].limit, i == 0);
			bad |= rc;
		}
	}
	if (b.json)
		printf("],\"met\":%s}\n", bad ? "false" : "true");
	return bad ? 1 : 0;
}
