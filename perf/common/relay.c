/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay.h"
#include <stdio.h>
#include <stdlib.h>
#include <rte_eth_ring.h>

static int
no_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	return 0;
}

static int
peer_make(struct relay *r, unsigned i)
{
	struct relay_peer *p = &r->peers[i];
	struct sl_identity *id = sl_identity_generate();
	struct sl_path_spec spec = {.ip_mtu = 9000, .fmp_mtu = 8900, .src_port = 2121, .ethertype = 0x2121};
	struct sl_noise_keys keys;
	const struct sl_port *port = &r->dp->ports[i % r->ports];
	struct sl_addr from;
	uint32_t index;

	if (id == NULL)
		return -1;
	p->addr = *sl_identity_addr(id);
	memset(&keys, 0, sizeof(keys));
	sl_random(keys.send, sizeof(keys.send));
	sl_random(keys.recv, sizeof(keys.recv));
	memcpy(p->send, keys.recv, sizeof(p->send));
	if (sl_session_index_reserve(r->table, (uint16_t)(i % r->workers), &index) != 0)
		return -1;
	p->session = sl_session_install(r->table, index, sl_random_u32(), i, false, &keys, sl_dataplane_now_us());
	memcpy(p->mac, (uint8_t[6]){2, 0, 0, 0, 1, (uint8_t)i}, 6);
	spec.to = (struct sl_addr){.kind = r->link, .udp_port = (uint16_t)(40000 + i)};
	if (r->link == SL_ADDR_UDP4)
		memcpy(p->ip, (uint8_t[4]){192, 0, (uint8_t)(2 + port->index), (uint8_t)(10 + i)}, 4);
	else
		memcpy(p->ip, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [7] = (uint8_t)port->index, [15] = (uint8_t)(10 + i)}, 16);
	if (r->link == SL_ADDR_ETH)
		memcpy(spec.to.u.mac, p->mac, 6);
	else
		memcpy(spec.to.u.ip6, p->ip, r->link == SL_ADDR_UDP4 ? 4 : 16);
	/* As control leaves the current session of a link: its address known, a change of it to be told. */
	from = spec.to;
	from.transport = r->link == SL_ADDR_ETH ? (uint8_t)(1 + port->index) : 0;
	from.link = r->link == SL_ADDR_ETH ? port->index : 0;
	__atomic_store_n(&p->session->rx_addr_hash, sl_addr_hash(&from), __ATOMIC_RELAXED);
	__atomic_store_n(&p->session->notify, SL_NOTIFY_ADDRESS, __ATOMIC_RELAXED);
	spec.port = port->index;
	memcpy(spec.src_mac, port->mac, 6);
	memcpy(spec.dst_mac, p->mac, 6);
	memcpy(spec.src_ip, port->config.addrs[r->link == SL_ADDR_UDP6].ip, 16);
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
port_make(struct relay *r, uint16_t p)
{
	struct sl_port_config pc = {.mtu = r->jumbo ? 9000 : 0, .addr_count = 2};
	struct sl_dataplane_transport eth = {.id = (uint8_t)(1 + p), .kind = SL_ADDR_ETH, .mtu = 8900, .port = p,
		.ethertype = 0x2121};
	const char *error = NULL;
	char name[32];

	snprintf(name, sizeof(name), "in_%s%u", r->name, p);
	r->in[p] = rte_ring_create(name, 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	/* One a worker, one for control. */
	for (unsigned q = 0; q <= r->workers; q++) {
		snprintf(name, sizeof(name), "out_%s%u_%u", r->name, p, q);
		r->out[p][q] = rte_ring_create(name, r->out_entries ? r->out_entries : 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!r->out[p][q])
			return -1;
	}
	snprintf(name, sizeof(name), "%s%u", r->name, p);
	if (!r->in[p] || rte_eth_from_rings(name, &r->in[p], 1, r->out[p], r->workers + 1u, 0) < 0)
		return -1;
	snprintf(pc.name, sizeof(pc.name), "%s", name);
	snprintf(pc.device, sizeof(pc.device), "net_ring_%s", name);
	pc.addrs[0] = (struct sl_ifaddr){.family = 4, .prefix_len = 24, .ip = {192, 0, (uint8_t)(2 + p), 1}};
	pc.addrs[1] = (struct sl_ifaddr){.family = 6, .prefix_len = 64,
		.ip = {0x20, 1, 0x0d, 0xb8, [7] = (uint8_t)p, [15] = 1}};
	if (sl_dataplane_port_add(r->dp, &pc, &error) != p) {
		fprintf(stderr, "port: %s\n", error);
		return -1;
	}
	return sl_dataplane_transport_add(r->dp, &eth);
}

int
relay_make(struct relay *r, const char *name, uint8_t link, uint16_t workers, uint16_t ports)
{
	const struct sl_session_table_config tc = {.max_sessions = 1024, .max_peers = RELAY_PEERS, .workers = workers};
	const struct sl_dataplane_transport udp = {.id = 0, .kind = SL_ADDR_UDP4, .mtu = 8900, .udp_port = 2121,
		.bind_any4 = true, .bind_any6 = true};
	const struct sl_router_sink router_sink = {.send = no_send};
	const struct sl_dataplane_sink nobody = {NULL};
	const struct sl_dataplane_config dc = {.workers = workers, .mbufs = 2048, .burst = RELAY_BURST, .aead = r->aead,
		.mbuf_data_size = r->jumbo ? 2048 : 0,
		.elephant = r->by_hand ? SL_ELEPHANT_BY_HAND : SL_ELEPHANT_OFF};
	struct sl_router_config rc;

	snprintf(r->name, sizeof(r->name), "%s", name);
	r->link = link;
	r->workers = workers;
	r->ports = ports;
	sl_router_config_default(&rc);
	rc.max_peers = RELAY_PEERS;
	rc.coord_size = 1024;
	rc.publish_interval_us = 0;
	r->identity = sl_identity_generate();
	r->table = sl_session_table_create(&tc);
	if (!r->identity || !r->table)
		return -1;
	for (unsigned i = 0; i < relay_shares(r); i++) {
		r->ctx[i] = r->aead->create(RELAY_BURST);
		if (!r->ctx[i])
			return -1;
	}
	r->router = sl_router_create(&rc, r->identity, &router_sink, 1700000000, sl_dataplane_now_us());
	if (!r->router)
		return -1;
	r->dp = sl_dataplane_create(&dc, sl_session_table_view(r->table), sl_router_fib(r->router), r->sink ? r->sink : &nobody);
	if (!r->dp)
		return -1;
	for (uint16_t p = 0; p < ports; p++)
		if (port_make(r, p) != 0)
			return -1;
	if (sl_dataplane_transport_add(r->dp, &udp) != 0 || sl_dataplane_prepare(r->dp) != 0)
		return -1;
	for (uint16_t w = 0; w < workers && workers == ports; w++)
		if (r->dp->workers[w]->rx_count != 1 || r->dp->workers[w]->rx[0].port != w)
			return -1;
	for (unsigned i = 0; i < RELAY_PEERS; i++)
		if (peer_make(r, i) != 0)
			return -1;
	sl_router_tick(r->router, sl_dataplane_now_us() + 1000000);
	return 0;
}

/* Outer headers from a peer to us; returns where the FMP packet begins. Checksums are right. */
static uint8_t *
outer_write(const struct relay *r, const struct relay_peer *p, uint8_t *f, unsigned len)
{
	const struct sl_port *port = &r->dp->ports[(p - r->peers) % r->ports];
	struct sl_path path;
	struct sl_path_spec spec = {.to = {.kind = r->link, .udp_port = 2121}, .ip_mtu = 9000, .ethertype = 0x2121,
		.src_port = (uint16_t)(40000 + (p - r->peers)), .flags = SL_PATH_UDP4_CHECKSUM};

	memcpy(spec.src_mac, p->mac, 6);
	memcpy(spec.dst_mac, port->mac, 6);
	memcpy(spec.src_ip, p->ip, 16);
	memcpy(spec.to.u.ip6, port->config.addrs[r->link == SL_ADDR_UDP6].ip, 16);
	if (r->link == SL_ADDR_ETH)
		memcpy(spec.to.u.mac, port->mac, 6);
	if (sl_path_build(&path, &spec) != 0)
		abort();
	sl_path_write(&path, f, len, 0);
	return f + path.hdr_len;
}

int
relay_frames_init(struct relay_frames *f, unsigned count)
{
	static uint64_t seed = 0x9e3779b97f4a7c15ull;

	f->count = count;
	f->random = seed += 2;
	f->mbuf = calloc(count, sizeof(*f->mbuf));
	f->open = calloc(count, sizeof(*f->open));
	f->seal = calloc(count, sizeof(*f->seal));
	f->reseal = calloc(count, sizeof(*f->reseal));
	return f->mbuf && f->open && f->seal && f->reseal ? 0 : -1;
}

static uint32_t
below(struct relay_frames *f, uint32_t n)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (uint32_t)(f->random >> 32) % n;
}

void
relay_frames_make(struct relay_frames *f, struct relay *r, struct rte_mempool *pool, uint16_t share, unsigned payload,
	bool nic_checksums)
{
	const unsigned shares = relay_shares(r);
	const unsigned text_len = SL_INNER_BYTES - 1 + SL_DATAGRAM_HEADER_BYTES + payload;
	const unsigned fmp_len = text_len + SL_ESTABLISHED_MIN_BYTES;
	const unsigned hdr = r->link == SL_ADDR_UDP4 ? 42 : r->link == SL_ADDR_UDP6 ? 62 : 17;

	if (rte_pktmbuf_alloc_bulk(pool, f->mbuf, f->count) != 0)
		abort();
	for (unsigned i = 0; i < f->count; i++) {
		/* Two peers, never one: a datagram does not go back to where it came from. */
		const uint32_t at = f->from ? f->from - 1 : below(f, RELAY_PEERS / shares) * shares + share;
		struct relay_peer *from = &r->peers[at], *to = &r->peers[(at + 1 + below(f, RELAY_PEERS - 1)) % RELAY_PEERS];
		uint8_t *data = (uint8_t *)rte_pktmbuf_append(f->mbuf[i], (uint16_t)(hdr + fmp_len)), *fmp = data + hdr;

		sl_header_build(fmp, 0, (uint16_t)text_len, from->session->rx_index, from->counter);
		memset(fmp + SL_HEADER_BYTES, 0, text_len);
		sl_datagram_build(fmp + SL_HEADER_BYTES + 4, 64, 9000, &from->addr, &to->addr);
		fmp[SL_HEADER_BYTES + 4 + SL_DATAGRAM_PAYLOAD] = 3;
		if (f->message_every && i % f->message_every == 0)
			fmp[SL_HEADER_BYTES + 4] = SL_MSG_TREE_ANNOUNCE;
		f->open[i] = (struct sl_aead_op){.text = fmp + SL_HEADER_BYTES, .aad = fmp, .key = from->send,
			.counter = from->counter, .text_len = text_len, .slot = i};
		f->seal[i] = f->open[i];
		f->seal[i].key = to->session->tx_key;
		f->reseal[i] = (struct sl_aead_reop){.text = f->open[i].text, .aad = fmp, .old_key = from->send,
			.new_key = to->session->tx_key, .old_counter = from->counter, .new_counter = from->counter,
			.text_len = text_len, .slot = i};
		from->counter++;
	}
	for (unsigned i = 0; i < f->count; i += RELAY_BURST)
		r->aead->seal(r->ctx[share], &f->open[i], RELAY_BURST);
	for (unsigned i = 0; i < f->count; i++) {
		/* seal may have moved ops about: the frame is found through its slot */
		struct rte_mbuf *m = f->mbuf[f->open[i].slot];
		uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
		const struct sl_session *s = sl_session_lookup(sl_session_table_view(r->table), sl_get32(data + hdr + 4));

		outer_write(r, &r->peers[s->peer_id], data, fmp_len);
		m->ol_flags = nic_checksums ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
	}
}

unsigned
relay_fused(const struct relay *r, uint16_t share, struct relay_frames *f)
{
	unsigned good = 0;

	for (unsigned i = 0; i < f->count; i += RELAY_BURST) {
		good += sl_aead_open_lead(r->aead, r->ctx[share], &f->open[i], RELAY_BURST);
		for (unsigned k = i; k < i + RELAY_BURST; k++)
			f->reseal[f->open[k].slot].lead = f->open[k].lead;
		good -= RELAY_BURST - sl_aead_reseal(r->aead, r->ctx[share], &f->reseal[i], RELAY_BURST);
	}
	return good;
}

void
relay_frame_msg1(struct relay *r, struct rte_mbuf *m)
{
	const unsigned hdr = r->link == SL_ADDR_UDP4 ? 42 : r->link == SL_ADDR_UDP6 ? 62 : 17;
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *), noise[SL_NOISE_MSG1_BYTES];
	const struct sl_session *s = sl_session_lookup(sl_session_table_view(r->table), sl_get32(data + hdr + 4));

	sl_random(noise, sizeof(noise));
	sl_msg1_build(data + hdr, 7, noise);
	m->data_len = (uint16_t)(hdr + SL_MSG1_PACKET_BYTES);
	m->pkt_len = m->data_len;
	outer_write(r, &r->peers[s->peer_id], data, SL_MSG1_PACKET_BYTES);
}

unsigned
relay_drain(struct relay *r, uint16_t w)
{
	struct rte_mbuf *m[64];
	unsigned total = 0, n;

	for (unsigned p = 0; p < r->ports; p++) {
		while ((n = rte_ring_sc_dequeue_burst(r->out[p][w], (void **)m, RTE_DIM(m), NULL)) != 0) {
			rte_pktmbuf_free_bulk(m, n);
			total += n;
		}
	}
	return total;
}
