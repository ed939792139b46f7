/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What transit costs beyond its arithmetic. One process, one worker: frames of 64 sessions, ready in a ring, go through
 * receive, transit and transmit (both ports are rings; the router is the real one and the peers are direct, their
 * sessions as control leaves them). In turn with it, round after round, over buffers of one pool:
 *	fused		nothing but the same backend's open_lead and reseal over the same frames
 *	open + seal	nothing but its open and seal
 *	other		the same pipeline on another backend (ipsec-mb)
 * Ratios are taken within a round.
 *
 * Usage: transit [-j] [--rounds N] [--size BYTES] [--link udp4|udp6|eth] [--aead NAME] [--other NAME]
 *	[--nic-checksums] [--stages]
 * --nic-checksums: received frames carry the marks of a NIC that has verified them.
 * --stages: cycles a frame of each step of transit instead.
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

/* A whole relay: one backend. */
struct relay {
	char name[16];
	const struct sl_aead_backend *aead;
	struct sl_aead_ctx *ctx; /* for the bare rounds, and to seal what the peers send */
	struct sl_identity *identity;
	struct sl_session_table *table;
	struct sl_router *router;
	struct sl_dataplane *dp;
	struct rte_ring *in, *out;
	struct peer peers[SESSIONS];
};

struct bench {
	uint8_t link; /* enum sl_addr_kind */
	bool json, nic_checksums, stages;
	unsigned rounds, size;
	struct relay relay, other;
	struct rte_mempool *pool;
	struct rte_mbuf *frames[FRAMES];
	struct sl_aead_op open_ops[FRAMES], seal_ops[FRAMES];
	struct sl_aead_reop reops[FRAMES];
};

static int
no_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	return 0;
}

static int
peer_make(const struct bench *b, struct relay *r, unsigned i)
{
	struct peer *p = &r->peers[i];
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
	if (sl_session_index_reserve(r->table, 0, &index) != 0)
		return -1;
	p->session = sl_session_install(r->table, index, sl_random_u32(), i, false, &keys, sl_dataplane_now_us());
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
	memcpy(spec.src_mac, r->dp->ports[0].mac, 6);
	memcpy(spec.dst_mac, p->mac, 6);
	memcpy(spec.src_ip, r->dp->ports[0].config.addrs[b->link == SL_ADDR_UDP6].ip, 16);
	if (sl_path_build(&p->path, &spec) != 0)
		return -1;
	__atomic_store_n(&sl_session_table_view(r->table)->peers[i].tx, p->session, __ATOMIC_RELEASE);
	__atomic_store_n(&sl_session_table_view(r->table)->peers[i].path, &p->path, __ATOMIC_RELEASE);
	if (sl_router_peer_up(r->router, i, sl_identity_xonly(id), 8900, sl_dataplane_now_us()) != 0)
		return -1;
	sl_identity_destroy(id);
	return 0;
}

static int
device_make(struct relay *r)
{
	struct sl_port_config pc = {.name = "bench", .mtu = 0, .addr_count = 2};
	struct sl_dataplane_transport udp = {.id = 0, .kind = SL_ADDR_UDP4, .mtu = 8900, .udp_port = 2121,
		.bind_any4 = true, .bind_any6 = true};
	struct sl_dataplane_transport eth = {.id = 1, .kind = SL_ADDR_ETH, .mtu = 8900, .ethertype = 0x2121};
	const char *error = NULL;
	char name[32];

	snprintf(name, sizeof(name), "in_%s", r->name);
	r->in = rte_ring_create(name, 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "out_%s", r->name);
	r->out = rte_ring_create(name, 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!r->in || !r->out || rte_eth_from_rings(r->name, &r->in, 1, &r->out, 1, 0) < 0)
		return -1;
	snprintf(pc.device, sizeof(pc.device), "net_ring_%s", r->name);
	pc.addrs[0] = (struct sl_ifaddr){.family = 4, .prefix_len = 24, .ip = {192, 0, 2, 1}};
	pc.addrs[1] = (struct sl_ifaddr){.family = 6, .prefix_len = 64, .ip = {0x20, 1, 0x0d, 0xb8, [15] = 1}};
	if (sl_dataplane_port_add(r->dp, &pc, &error) != 0) {
		fprintf(stderr, "transit: port: %s\n", error);
		return -1;
	}
	return sl_dataplane_transport_add(r->dp, &udp) || sl_dataplane_transport_add(r->dp, &eth) ||
		sl_dataplane_prepare(r->dp) ? -1 : 0;
}

static int
relay_make(const struct bench *b, struct relay *r, const char *name)
{
	const struct sl_session_table_config tc = {.max_sessions = 1024, .max_peers = SESSIONS, .workers = 1};
	const struct sl_router_sink router_sink = {.send = no_send};
	const struct sl_dataplane_sink sink = {NULL};
	const struct sl_dataplane_config dc = {.workers = 1, .mbufs = 2048, .burst = BURST, .aead = r->aead};
	struct sl_router_config rc;

	snprintf(r->name, sizeof(r->name), "%s", name);
	sl_router_config_default(&rc);
	rc.max_peers = SESSIONS;
	rc.coord_size = 1024;
	rc.publish_interval_us = 0;
	r->identity = sl_identity_generate();
	r->table = sl_session_table_create(&tc);
	r->ctx = r->aead->create(BURST);
	if (!r->identity || !r->table || !r->ctx)
		return -1;
	r->router = sl_router_create(&rc, r->identity, &router_sink, 1700000000, sl_dataplane_now_us());
	if (!r->router)
		return -1;
	r->dp = sl_dataplane_create(&dc, sl_session_table_view(r->table), sl_router_fib(r->router), &sink);
	if (!r->dp || device_make(r) != 0)
		return -1;
	for (unsigned i = 0; i < SESSIONS; i++)
		if (peer_make(b, r, i) != 0)
			return -1;
	sl_router_tick(r->router, sl_dataplane_now_us() + 1000000);
	return 0;
}

static int
bench_make(struct bench *b)
{
	b->pool = sl_pool_create("bench", 0, 4095, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	return !b->pool || relay_make(b, &b->relay, "relay") != 0 || relay_make(b, &b->other, "other") != 0 ? -1 : 0;
}

/* Outer headers from a peer to us; returns where the FMP packet begins. Checksums are right. */
static uint8_t *
outer_write(const struct bench *b, const struct relay *r, const struct peer *p, uint8_t *f, unsigned len)
{
	const struct sl_port *port = &r->dp->ports[0];
	struct sl_path path;
	struct sl_path_spec spec = {.to = {.kind = b->link, .udp_port = 2121}, .ip_mtu = 9000, .ethertype = 0x2121,
		.src_port = (uint16_t)(40000 + (p - r->peers)), .flags = SL_PATH_UDP4_CHECKSUM};

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
frames_make(struct bench *b, struct relay *r)
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
		struct peer *from = &r->peers[at], *to = &r->peers[(at + 1 + (bench_random() % (SESSIONS - 1))) % SESSIONS];
		uint8_t *f = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(hdr + fmp_len)), *fmp = f + hdr;

		sl_header_build(fmp, 0, (uint16_t)text_len, from->session->rx_index, from->counter);
		memset(fmp + SL_HEADER_BYTES, 0, text_len);
		sl_datagram_build(fmp + SL_HEADER_BYTES + 4, 64, 9000, &from->addr, &to->addr);
		fmp[SL_HEADER_BYTES + 4 + SL_DATAGRAM_PAYLOAD] = 3;
		b->open_ops[i] = (struct sl_aead_op){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .key = from->send,
			.counter = from->counter++, .text_len = text_len, .slot = i};
		b->seal_ops[i] = b->open_ops[i];
		b->seal_ops[i].key = to->session->tx_key;
		b->reops[i] = (struct sl_aead_reop){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .old_key = from->send,
			.new_key = to->session->tx_key, .old_counter = b->open_ops[i].counter,
			.new_counter = b->open_ops[i].counter, .text_len = text_len, .slot = i};
	}
	for (unsigned i = 0; i < FRAMES; i += BURST)
		r->aead->seal(r->ctx, &b->open_ops[i], BURST);
	for (unsigned i = 0; i < FRAMES; i++) {
		/* seal may have moved ops about: the frame is found through its text */
		const struct sl_aead_op *op = &b->open_ops[i];
		struct rte_mbuf *m = b->frames[op->slot];
		uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
		const struct sl_session *s = sl_session_lookup(sl_session_table_view(r->table), sl_get32(f + hdr + 4));

		outer_write(b, r, &r->peers[s->peer_id], f, fmp_len);
		m->ol_flags = b->nic_checksums ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
	}
}

/* ns a frame, or -1 when not every frame went through. */
static double
round_transit(struct bench *b, struct relay *r)
{
	struct sl_worker *w = r->dp->workers[0];
	const uint64_t before = w->counters.verdicts[SL_FORWARD];
	struct rte_mbuf *m[FRAMES];
	uint64_t begin, end;
	unsigned n;

	frames_make(b, r);
	if (rte_ring_enqueue_bulk(r->in, (void *const *)b->frames, FRAMES, NULL) != FRAMES)
		return -1;
	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < FRAMES / BURST; i++)
		sl_worker_poll(w);
	end = rte_rdtsc_precise();
	n = rte_ring_dequeue_burst(r->out, (void **)m, FRAMES, NULL);
	rte_pktmbuf_free_bulk(m, n);
	if (n != FRAMES || w->counters.verdicts[SL_FORWARD] - before != FRAMES)
		return -1;
	return (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES;
}

/* The AEAD alone, fused as transit uses it or open and seal. */
static double
round_bare(struct bench *b, bool fused)
{
	const struct sl_aead_backend *aead = b->relay.aead;
	struct sl_aead_ctx *ctx = b->relay.ctx;
	uint64_t begin, end;
	unsigned good = 0;

	frames_make(b, &b->relay);
	begin = rte_rdtsc_precise();
	for (unsigned i = 0; i < FRAMES; i += BURST) {
		if (fused) {
			good += sl_aead_open_lead(aead, ctx, &b->open_ops[i], BURST);
			for (unsigned k = i; k < i + BURST; k++)
				b->reops[b->open_ops[k].slot].lead = b->open_ops[k].lead;
			sl_aead_reseal(aead, ctx, &b->reops[i], BURST);
		} else {
			good += aead->open(ctx, &b->open_ops[i], BURST);
			aead->seal(ctx, &b->seal_ops[i], BURST);
		}
	}
	end = rte_rdtsc_precise();
	rte_pktmbuf_free_bulk(b->frames, FRAMES);
	return good == FRAMES ? (double)(end - begin) * 1e9 / (double)rte_get_tsc_hz() / FRAMES : -1;
}

enum figure { TRANSIT, FUSED, OPEN_SEAL, OTHER, RATIO, RATIO_OPEN_SEAL, GAIN, FIGURES };

struct limits {
	unsigned size;
	double ratio, gain; /* transit to fused at most; other to transit at least; 0 = none */
};

static double
measure(struct bench *b, enum figure f)
{
	switch (f) {
	case TRANSIT:
		return round_transit(b, &b->relay);
	case OTHER:
		return round_transit(b, &b->other);
	default:
		return round_bare(b, f == FUSED);
	}
}

static void
report(const struct bench *b, const struct limits *l, struct bench_figure f[FIGURES], double *const v[FIGURES],
	bool ratio_met, bool gain_met, bool first)
{
	if (b->json) {
		printf("%s{\"payload\":%u,\"transit_ns\":%.1f,\"fused_ns\":%.1f,\"open_seal_ns\":%.1f,\"other_ns\":%.1f,"
		       "\"ratio\":%.3f,\"ratio_p10\":%.3f,\"ratio_p90\":%.3f,\"ratio_to_open_seal\":%.3f,\"gain\":%.3f,",
			first ? "" : ",", l->size, f[TRANSIT].median, f[FUSED].median, f[OPEN_SEAL].median, f[OTHER].median,
			f[RATIO].median, f[RATIO].p10, f[RATIO].p90, f[RATIO_OPEN_SEAL].median, f[GAIN].median);
		printf("\"transit_best_ns\":%.1f,\"fused_best_ns\":%.1f,\"open_seal_best_ns\":%.1f,\"other_best_ns\":%.1f,"
		       "\"ratio_limit\":%.2f,\"ratio_met\":%s,\"gain_limit\":%.2f,\"gain_met\":%s}", v[TRANSIT][0], v[FUSED][0],
			v[OPEN_SEAL][0], v[OTHER][0], l->ratio, ratio_met ? "true" : "false", l->gain, gain_met ? "true" : "false");
		return;
	}
	printf("%7u  %8.1f  %8.1f  %8.1f  %8.1f   %6.3f (%.3f .. %.3f)%-9s  %6.3f   %6.3f%s\n", l->size, f[TRANSIT].median,
		f[FUSED].median, f[OPEN_SEAL].median, f[OTHER].median, f[RATIO].median, f[RATIO].p10, f[RATIO].p90,
		l->ratio == 0 ? "" : ratio_met ? " met" : " MISSED", f[RATIO_OPEN_SEAL].median, f[GAIN].median,
		l->gain == 0 ? "" : gain_met ? " met" : " MISSED");
	printf("   best  %8.1f  %8.1f  %8.1f  %8.1f   %6.3f                            %6.3f   %6.3f\n", v[TRANSIT][0], v[FUSED][0],
		v[OPEN_SEAL][0], v[OTHER][0], v[TRANSIT][0] / v[FUSED][0], v[TRANSIT][0] / v[OPEN_SEAL][0],
		v[OTHER][0] / v[TRANSIT][0]);
}

/* 0: within the limits, 1: not, -1: frames were lost. */
static int
run_size(struct bench *b, const struct limits *l, bool first)
{
	double *v[FIGURES] = {NULL};
	struct bench_figure f[FIGURES];
	bool ratio_met, gain_met;
	int rc = -1;

	b->size = l->size;
	for (unsigned k = 0; k < FIGURES; k++)
		v[k] = calloc(b->rounds, sizeof(double));
	for (unsigned i = 0; i < b->rounds + WARM_ROUNDS; i++) {
		double x[FIGURES];

		/* Each is the first, the second, ... as often as the others. */
		for (unsigned k = 0; k < RATIO; k++) {
			const enum figure what = (enum figure)((i + k) % RATIO);

			x[what] = measure(b, what);
			if (x[what] < 0) {
				fprintf(stderr, "transit: frames were lost in a round of %u bytes\n", l->size);
				goto out;
			}
		}
		x[RATIO] = x[TRANSIT] / x[FUSED];
		x[RATIO_OPEN_SEAL] = x[TRANSIT] / x[OPEN_SEAL];
		x[GAIN] = x[OTHER] / x[TRANSIT];
		for (unsigned k = 0; k < FIGURES && i >= WARM_ROUNDS; k++)
			v[k][i - WARM_ROUNDS] = x[k];
	}
	for (unsigned k = 0; k < FIGURES; k++)
		f[k] = bench_figure(v[k], b->rounds); /* sorts */
	ratio_met = l->ratio == 0 || f[RATIO].median <= l->ratio;
	gain_met = l->gain == 0 || f[GAIN].median >= l->gain;
	report(b, l, f, v, ratio_met, gain_met, first);
	rc = !(ratio_met && gain_met);
out:
	for (unsigned k = 0; k < FIGURES; k++)
		free(v[k]);
	return rc;
}

/* --- stage by stage: the steps of transit.c with the clock read between them ------------------------------------- */

#define STAGES(X)                                                                                                      \
	X(receive) X(classify) X(session) X(admit) X(open) X(commit) X(message) X(next_hop) X(egress) X(reserve)       \
	X(reseal) X(wrap) X(finish)
enum stage {
#define STAGE_ENUM(name) STAGE_##name,
	STAGES(STAGE_ENUM) STAGE_COUNT
};

/* Cycles of one round's frames, added up a stage. */
static void
round_stages(struct bench *b, uint64_t sum[STAGE_COUNT])
{
	struct relay *r = &b->relay;
	struct sl_worker *w = r->dp->workers[0];
	struct sl_burst *h = &w->in_hand;
	struct rte_mbuf *m[FRAMES];
	uint64_t before, now;
	unsigned n;

#define CLOCK(stage) (now = rte_rdtsc(), sum[STAGE_##stage] += now - before, before = now)
	frames_make(b, r);
	if (rte_ring_enqueue_bulk(r->in, (void *const *)b->frames, FRAMES, NULL) != FRAMES)
		abort();
	for (unsigned i = 0; i < FRAMES / BURST; i++) {
		before = rte_rdtsc();
		h->count = rte_eth_rx_burst(w->rx[0].ethdev, w->rx[0].queue, h->mbuf, w->burst_max);
		h->port = w->rx[0].port;
		h->local = w->rx[0].local;
		h->begin_tsc = rte_rdtsc();
		h->now_us = sl_tsc_to_us(w->us_per_tsc_q64, h->begin_tsc);
		h->fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
		CLOCK(receive);
		sl_stage_classify(h, h->local);
		CLOCK(classify);
		sl_stage_session(w, h);
		CLOCK(session);
		sl_stage_admit(w, h);
		CLOCK(admit);
		sl_stage_open(w, h);
		CLOCK(open);
		sl_stage_commit(w, h);
		CLOCK(commit);
		sl_stage_message(w, h);
		CLOCK(message);
		sl_stage_next_hop(w, h);
		CLOCK(next_hop);
		sl_stage_egress(w, h);
		CLOCK(egress);
		sl_stage_reserve(w, h);
		CLOCK(reserve);
		sl_stage_reseal(w, h);
		CLOCK(reseal);
		sl_stage_wrap(h);
		CLOCK(wrap);
		sl_stage_finish(w, h);
		CLOCK(finish);
	}
#undef CLOCK
	n = rte_ring_dequeue_burst(r->out, (void **)m, FRAMES, NULL);
	rte_pktmbuf_free_bulk(m, n);
}

static int
run_stages(struct bench *b)
{
	static const char *const names[] = {
#define STAGE_NAME(name) #name,
		STAGES(STAGE_NAME)};
	double *v[STAGE_COUNT], all = 0, beside = 0;

	for (unsigned k = 0; k < STAGE_COUNT; k++)
		v[k] = calloc(b->rounds, sizeof(double));
	for (unsigned i = 0; i < b->rounds; i++) {
		uint64_t sum[STAGE_COUNT] = {0};

		round_stages(b, sum);
		for (unsigned k = 0; k < STAGE_COUNT; k++)
			v[k][i] = (double)sum[k] / FRAMES;
	}
	printf("%s, payload %u, %u sessions, burst %u: TSC cycles a frame\n       stage    median   best 2%%\n", b->relay.aead->name,
		b->size, SESSIONS, BURST);
	for (unsigned k = 0; k < STAGE_COUNT; k++) {
		const struct bench_figure f = bench_figure(v[k], b->rounds);
		const double best = v[k][b->rounds / 50];

		printf("%12s  %8.1f  %8.1f\n", names[k], f.median, best);
		all += best;
		beside += k == STAGE_open || k == STAGE_reseal ? 0 : best;
		free(v[k]);
	}
	printf("all %.1f, beside open and reseal %.1f = %.1f ns\n", all, beside, beside * 1e9 / (double)rte_get_tsc_hz());
	return 0;
}

static int
options(struct bench *b, int argc, char **argv)
{
	static const struct option list[] = {{"rounds", 1, NULL, 'r'}, {"size", 1, NULL, 's'}, {"link", 1, NULL, 'l'},
		{"aead", 1, NULL, 'a'}, {"other", 1, NULL, 'o'}, {"nic-checksums", 0, NULL, 'n'}, {"stages", 0, NULL, 't'},
		{NULL, 0, NULL, 0}};
	const char *aead = "auto", *other = "ipsec-mb";
	int c;

	b->rounds = 201;
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
		else if (c == 'o')
			other = optarg;
		else if (c == 'n')
			b->nic_checksums = true;
		else if (c == 't')
			b->stages = true;
		else if (c == 'l')
			b->link = !strcmp(optarg, "udp6") ? SL_ADDR_UDP6 : !strcmp(optarg, "eth") ? SL_ADDR_ETH : SL_ADDR_UDP4;
		else
			return -1;
	}
	b->relay.aead = sl_aead_backend_find(aead);
	b->other.aead = sl_aead_backend_find(other);
	return optind < argc || b->rounds < 3 || b->size > 1700 || !b->relay.aead || !b->other.aead ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static const char *const links[] = {"", "udp4", "udp6", "eth"};
	static const struct limits sizes[] = {{64, 1.5, 3.0}, {512, 0, 0}, {1400, 1.15, 1.5}};
	static struct bench b;
	int bad = 0;

	if (sl_crypto_init() != 0 || options(&b, argc, argv) != 0) {
		fprintf(stderr, "usage: transit [-j] [--rounds N] [--size BYTES] [--link udp4|udp6|eth] [--aead NAME] "
				"[--other NAME] [--nic-checksums] [--stages]\n");
		return 2;
	}
	if (bench_eal_init(256) != 0 || bench_make(&b) != 0) {
		fprintf(stderr, "transit: cannot be set up: %s\n", strerror(errno));
		return 2;
	}
	if (b.stages) {
		b.size = b.size ? b.size : 64;
		return run_stages(&b);
	}
	if (b.json)
		printf("{\"bench\":\"transit\",\"aead\":\"%s\",\"other\":\"%s\",\"link\":\"%s\",\"nic_checksums\":%s,"
		       "\"sessions\":%u,\"burst\":%u,\"rounds\":%u,\"sizes\":[", b.relay.aead->name, b.other.aead->name,
			links[b.link], b.nic_checksums ? "true" : "false", SESSIONS, BURST, b.rounds);
	else
		printf("%s over %s, %u sessions, burst %u, %u rounds of %u frames; checksums of received frames by %s; ns a frame\n"
		       "payload   transit     fused open+seal  %8s   transit/fused                   /open+seal  gain\n",
			b.relay.aead->name, links[b.link], SESSIONS, BURST, b.rounds, FRAMES,
			b.nic_checksums ? "the NIC" : "software", b.other.aead->name);
	if (b.size) {
		const struct limits one = {b.size, 0, 0};

		bad = run_size(&b, &one, true);
	} else {
		for (unsigned i = 0; i < RTE_DIM(sizes); i++)
			bad |= run_size(&b, &sizes[i], i == 0);
	}
	if (b.json)
		printf("],\"met\":%s}\n", bad ? "false" : "true");
	return bad ? 1 : 0;
}
