/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outer headers: those of peers, published for the workers and kept current with the neighbours behind them, and those
 * of control's own packets, made for each.
 */
#include <errno.h>
#include <stdlib.h>
#include <rte_ethdev.h>
#include "../overlay/sl_log.h"
#include "sl_control.h"

const struct sl_dataplane_transport *
sl_transport_find(const struct sl_dataplane *dp, uint8_t id)
{
	for (unsigned i = 0; i < dp->transport_count; i++)
		if (dp->transports[i].id == id)
			return &dp->transports[i];
	return NULL;
}

/* hop is resolved except perhaps for dst_mac. */
static int
path_make(const struct sl_dataplane *dp, struct sl_path *path, const struct sl_addr *to, const struct sl_neigh_hop *hop)
{
	const struct sl_dataplane_transport *t = sl_transport_find(dp, to->transport);
	const uint16_t learned = sl_pmtu_lookup(&dp->pmtu, to, dp->now_us);
	struct sl_path_spec spec = {.to = *to, .port = hop->port, .vlan = hop->vlan,
		.ip_mtu = learned && learned < hop->mtu ? learned : hop->mtu};

	if (t == NULL)
		return -EINVAL;
	memcpy(spec.src_mac, hop->src_mac, sizeof(spec.src_mac));
	memcpy(spec.dst_mac, hop->dst_mac, sizeof(spec.dst_mac));
	memcpy(spec.src_ip, hop->src_ip, sizeof(spec.src_ip));
	/* A transport bound to one address speaks from it. */
	if (t->kind != SL_ADDR_ETH && !t->bind_any4 && !t->bind_any6 && t->bind.family == hop->family)
		memcpy(spec.src_ip, t->bind.ip, sizeof(spec.src_ip));
	spec.src_port = t->udp_port;
	spec.ethertype = t->ethertype;
	spec.fmp_mtu = t->mtu;
	return sl_path_build(path, &spec);
}

/* --- control's own transmission --------------------------------------------------------------------------------- */

int
sl_control_send(struct sl_dataplane *dp, uint16_t port, struct rte_mbuf *m)
{
	struct sl_port *p = &dp->ports[port];
	bool sent;

	if (!sl_port_usable(p)) {
		sent = false;
	} else if (p->control_queue) {
		sent = rte_eth_tx_burst(p->ethdev, dp->config.workers, &m, 1) == 1;
	} else {
		sl_frame_of(m)->port = port;
		sent = rte_ring_sp_enqueue(dp->workers[0]->inject, m) == 0;
	}
	if (sent) {
		p->control_tx++;
		return 0;
	}
	p->control_tx_dropped++;
	rte_pktmbuf_free(m);
	return -ENOBUFS;
}

/* An mbuf of len bytes with room in front; NULL is counted. */
static struct rte_mbuf *
control_frame(struct sl_dataplane *dp, uint16_t port, size_t len, uint8_t **data)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(dp->ports[port].control_pool);
	char *p;

	if (m == NULL) {
		dp->ports[port].control_tx_dropped++;
		return NULL;
	}
	p = len <= UINT16_MAX ? rte_pktmbuf_append(m, (uint16_t)len) : NULL;
	if (p == NULL) {
		dp->ports[port].control_tx_dropped++;
		rte_pktmbuf_free(m);
		return NULL;
	}
	*data = (uint8_t *)p;
	return m;
}

int
sl_paths_frame(struct sl_dataplane *dp, uint16_t port, const uint8_t *frame, size_t len)
{
	uint8_t *data;
	struct rte_mbuf *m = control_frame(dp, port, len, &data);

	if (m == NULL)
		return -ENOBUFS;
	memcpy(data, frame, len);
	return sl_control_send(dp, port, m);
}

void
sl_paths_neigh_transmit(void *arg, uint16_t port, const uint8_t *frame, size_t len)
{
	(void)!sl_paths_frame(arg, port, frame, len); /* counted; the neighbour machine asks again by itself */
}

int
sl_dataplane_transmit(struct sl_dataplane *dp, const struct sl_addr *to, const uint8_t *packet, size_t len,
	uint64_t now_us)
{
	uint8_t waiting[SL_PATH_HEADER_MAX + SL_NEIGH_FRAME_MAX], *frame = waiting;
	struct sl_neigh_hop hop;
	struct sl_path path;
	struct rte_mbuf *m = NULL;
	size_t frame_len, pad;
	int resolved, rc;

	memset(&hop, 0, sizeof(hop));
	dp->now_us = now_us;
	resolved = sl_neigh_resolve(dp->neigh, to, &hop, now_us);
	if (resolved != 0 && resolved != -EINPROGRESS)
		return resolved == -EINVAL ? -EINVAL : resolved == -ENOBUFS ? -ENOBUFS : -EHOSTUNREACH;
	if (resolved != 0)
		memset(hop.dst_mac, 0, sizeof(hop.dst_mac));
	rc = path_make(dp, &path, to, &hop);
	if (rc != 0)
		return rc;
	if (len > path.mtu)
		return -EMSGSIZE;
	pad = sl_path_padding(&path, (unsigned)len);
	frame_len = path.hdr_len + len + pad;
	if (resolved == 0) {
		m = control_frame(dp, path.port, frame_len, &frame);
		if (m == NULL)
			return -ENOBUFS;
	} else if (frame_len > sizeof(waiting)) {
		return -EHOSTUNREACH;
	}
	memcpy(frame + path.hdr_len, packet, len);
	memset(frame + path.hdr_len + len, 0, pad);
	sl_path_write(&path, frame, (unsigned)len, 0);
	if (m)
		return sl_control_send(dp, path.port, m);
	/* Goes out as soon as the neighbour answers. */
	rc = sl_neigh_queue(dp->neigh, &hop, frame, frame_len);
	return rc == 0 ? 0 : -EHOSTUNREACH;
}

uint16_t
sl_dataplane_link_mtu(struct sl_dataplane *dp, const struct sl_addr *to, uint64_t now_us)
{
	struct sl_neigh_hop hop;
	struct sl_path path;
	int rc;

	memset(&hop, 0, sizeof(hop));
	dp->now_us = now_us;
	rc = sl_neigh_resolve(dp->neigh, to, &hop, now_us);
	if (rc != 0 && rc != -EINPROGRESS)
		return UINT16_MAX;
	if (rc != 0)
		memset(hop.dst_mac, 0, sizeof(hop.dst_mac));
	rc = path_make(dp, &path, to, &hop);
	return rc == 0 ? path.mtu : rc == -EMSGSIZE ? 0 : UINT16_MAX;
}

int
sl_dataplane_beacon(struct sl_dataplane *dp, uint8_t transport, const uint8_t xonly[32])
{
	static const uint8_t version = 1;
	const struct sl_dataplane_transport *t = sl_transport_find(dp, transport);
	const struct sl_port *p;
	struct rte_mbuf *m;
	uint8_t *f;

	if (t == NULL || t->kind != SL_ADDR_ETH)
		return -EINVAL;
	p = &dp->ports[t->port];
	m = control_frame(dp, t->port, p->config.vlan ? SL_PATH_FRAME_MIN + SL_VLAN_BYTES : SL_PATH_FRAME_MIN, &f);
	if (m == NULL)
		return -ENOBUFS;
	memset(f, 0, m->data_len);
	memset(f, 0xff, 6);
	memcpy(f + 6, p->mac, 6);
	f += 12;
	if (p->config.vlan) {
		sl_put16be(f, SL_ETHERTYPE_VLAN);
		sl_put16be(f + 2, p->config.vlan);
		f += SL_VLAN_BYTES;
	}
	sl_put16be(f, t->ethertype);
	f[2] = SL_ETH_TYPE_BEACON;
	f[3] = version;
	memcpy(f + 4, xonly, 32);
	return sl_control_send(dp, t->port, m);
}

/* --- published paths --------------------------------------------------------------------------------------------- */

static void
path_free(void *arg, void *path)
{
	(void)arg;
	free(path);
}

/* Replaces what is published; the old path is given back when no worker can be writing it. */
static void
path_publish(struct sl_dataplane *dp, uint32_t peer_id, struct sl_path *path)
{
	struct sl_peer_path *pp = &dp->paths[peer_id];
	struct sl_path *old = pp->current;

	if (old == NULL && path == NULL)
		return;
	__atomic_store_n(&dp->view->peers[peer_id].path, path, __ATOMIC_RELEASE);
	pp->current = path;
	if (old)
		sl_reclaim_push(&dp->reclaim, path_free, NULL, old);
}

static void
path_release(struct sl_dataplane *dp, struct sl_peer_path *pp, uint64_t now_us)
{
	if (pp->held)
		sl_neigh_release(dp->neigh, &pp->hop, now_us);
	pp->held = false;
}

/* Less than its transport is configured for. */
static bool
is_narrow(const struct sl_dataplane *dp, const struct sl_path *path)
{
	const struct sl_dataplane_transport *t = sl_transport_find(dp, path->addr.transport);

	return t && path->mtu < t->mtu;
}

/* Looks the address up and publishes what comes of it: a path, or none until the neighbour answers. */
static void
path_update(struct sl_dataplane *dp, uint32_t peer_id, uint64_t now_us)
{
	struct sl_peer_path *pp = &dp->paths[peer_id];
	struct sl_path *path = NULL;
	struct sl_neigh_hop hop;
	int rc;

	pp->dirty = false;
	memset(&hop, 0, sizeof(hop));
	rc = sl_neigh_resolve(dp->neigh, &pp->addr, &hop, now_us);
	/* -EINPROGRESS, -EHOSTUNREACH: held all the same, so that the neighbour machine goes on asking. */
	if (!pp->held && (rc == 0 || rc == -EINPROGRESS || rc == -EHOSTUNREACH)) {
		pp->hop = hop;
		pp->held = sl_neigh_hold(dp->neigh, &hop, now_us) == 0;
	}
	if (rc == 0 && sl_port_usable(&dp->ports[hop.port])) {
		path = aligned_alloc(_Alignof(struct sl_path), sizeof(*path));
		if (path && path_make(dp, path, &pp->addr, &hop) != 0) {
			free(path);
			path = NULL;
		}
	}
	path_publish(dp, peer_id, path);
	/* Noted here, told in sl_paths_refresh(): who sets a path need not expect to be called back. */
	if (path && path->mtu != pp->mtu) {
		pp->mtu_changed = pp->mtu != 0 || is_narrow(dp, path);
		pp->mtu = path->mtu;
		dp->mtus_dirty |= pp->mtu_changed;
	}
}

void
sl_dataplane_path_set(struct sl_dataplane *dp, uint32_t peer_id, const struct sl_addr *addr, uint64_t now_us)
{
	struct sl_peer_path *pp;

	if (peer_id >= dp->view->max_peers)
		return;
	dp->now_us = now_us;
	pp = &dp->paths[peer_id];
	path_release(dp, pp, now_us);
	pp->wanted = addr != NULL;
	pp->mtu = 0;
	pp->mtu_changed = false;
	if (addr == NULL) {
		path_publish(dp, peer_id, NULL);
		return;
	}
	pp->addr = *addr;
	path_update(dp, peer_id, now_us);
}

void
sl_paths_neigh_changed(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *mac)
{
	struct sl_dataplane *dp = arg;

	(void)mac;
	/* Only noted: the neighbour machine must not be called back from here. */
	for (uint32_t i = 0; i < dp->view->max_peers; i++) {
		struct sl_peer_path *pp = &dp->paths[i];

		if (pp->wanted && pp->held && pp->hop.port == port && pp->hop.family == ip->family &&
			memcmp(pp->hop.next_ip, ip->ip, ip->family == 4 ? 4 : 16) == 0)
			pp->dirty = dp->paths_dirty = true;
	}
}

/* Is a packet from this transport to that address what the report quotes? */
static bool
is_quoted(const struct sl_dataplane *dp, const struct sl_peer_path *pp, uint16_t port, const struct sl_ifaddr *ip,
	const uint8_t *udp)
{
	const struct sl_dataplane_transport *t = sl_transport_find(dp, pp->addr.transport);

	return pp->wanted && pp->current && pp->current->port == port && t &&
	       pp->addr.kind == (ip->family == 4 ? SL_ADDR_UDP4 : SL_ADDR_UDP6) &&
	       memcmp(pp->addr.u.ip6, ip->ip, ip->family == 4 ? 4 : 16) == 0 && sl_get16be(udp) == t->udp_port &&
	       sl_get16be(udp + 2) == pp->addr.udp_port;
}

void
sl_paths_too_big(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *udp, uint16_t mtu)
{
	const uint16_t overhead = (uint16_t)((ip->family == 4 ? SL_IP4_BYTES : SL_IP6_BYTES) + SL_UDP_BYTES);
	struct sl_dataplane *dp = arg;
	char text[SL_ADDR_TEXT_SIZE];
	bool floored;
	uint16_t now;

	for (uint32_t i = 0; udp && i < dp->view->max_peers; i++) {
		struct sl_peer_path *pp = &dp->paths[i];

		if (!is_quoted(dp, pp, port, ip, udp))
			continue;
		now = sl_pmtu_report(&dp->pmtu, ip->family, ip->ip, mtu, (uint16_t)(pp->current->mtu + overhead), dp->now_us,
			&floored);
		if (now == 0)
			return;
		sl_addr_format(text, &pp->addr);
		sl_log(floored ? SL_LOG_WARNING : SL_LOG_NOTICE, SL_TOPIC_PIPELINE,
			"path to %s carries %u bytes of IP, not %u%s", text, now, pp->current->mtu + overhead,
			floored ? " (a router says less than any host must take: not believed below this)" : "");
		for (uint32_t k = i; k < dp->view->max_peers; k++)
			if (dp->paths[k].wanted && dp->paths[k].addr.kind == pp->addr.kind &&
				memcmp(&dp->paths[k].addr.u, &pp->addr.u, sizeof(pp->addr.u)) == 0)
				dp->paths[k].dirty = dp->paths_dirty = true;
		dp->pmtu_due_us = dp->now_us + SL_PMTU_AGE_US < dp->pmtu_due_us ? dp->now_us + SL_PMTU_AGE_US : dp->pmtu_due_us;
		return;
	}
}

void
sl_paths_port_changed(struct sl_dataplane *dp, uint16_t port)
{
	for (uint32_t i = 0; i < dp->view->max_peers; i++)
		if (dp->paths[i].wanted && dp->paths[i].held && dp->paths[i].hop.port == port)
			dp->paths[i].dirty = dp->paths_dirty = true;
}

bool
sl_dataplane_path_reported(const struct sl_dataplane *dp, uint32_t peer_id)
{
	const struct sl_peer_path *pp = peer_id < dp->view->max_peers ? &dp->paths[peer_id] : NULL;

	return pp && pp->wanted && sl_pmtu_lookup(&dp->pmtu, &pp->addr, dp->now_us) != 0;
}

int
sl_dataplane_peer_port(const struct sl_dataplane *dp, uint32_t peer_id)
{
	const struct sl_peer_path *pp = peer_id < dp->view->max_peers ? &dp->paths[peer_id] : NULL;

	return pp && pp->wanted && pp->held ? pp->hop.port : -1;
}

bool
sl_dataplane_peer_usable(const struct sl_dataplane *dp, uint32_t peer_id)
{
	const int port = sl_dataplane_peer_port(dp, peer_id);

	return port >= 0 && sl_port_usable(&dp->ports[port]);
}

bool
sl_dataplane_reaches(const struct sl_dataplane *dp, const struct sl_addr *to)
{
	const int port = sl_neigh_port_to(dp->neigh, to);

	return port >= 0 && sl_port_usable(&dp->ports[port]);
}

/* Reports that have ended: those paths are tried at their full size again. */
static void
forget_reports(struct sl_dataplane *dp)
{
	if (!sl_pmtu_expire(&dp->pmtu, dp->now_us, &dp->pmtu_due_us))
		return;
	for (uint32_t i = 0; i < dp->view->max_peers; i++)
		if (dp->paths[i].wanted && dp->paths[i].mtu)
			dp->paths[i].dirty = dp->paths_dirty = true;
}

void
sl_paths_refresh(struct sl_dataplane *dp)
{
	if (dp->now_us >= dp->pmtu_due_us)
		forget_reports(dp);
	if (dp->paths_dirty) {
		dp->paths_dirty = false;
		for (uint32_t i = 0; i < dp->view->max_peers; i++)
			if (dp->paths[i].wanted && dp->paths[i].dirty)
				path_update(dp, i, dp->now_us);
	}
	if (!dp->mtus_dirty)
		return;
	dp->mtus_dirty = false;
	for (uint32_t i = 0; i < dp->view->max_peers; i++) {
		struct sl_peer_path *pp = &dp->paths[i];

		if (!pp->mtu_changed)
			continue;
		pp->mtu_changed = false;
		if (dp->sink.path_mtu)
			dp->sink.path_mtu(dp->sink.arg, i, pp->mtu);
	}
}

void
sl_paths_fini(struct sl_dataplane *dp)
{
	if (dp->paths == NULL)
		return;
	for (uint32_t i = 0; i < dp->view->max_peers; i++) {
		path_release(dp, &dp->paths[i], dp->now_us);
		path_publish(dp, i, NULL);
	}
	free(dp->paths);
	dp->paths = NULL;
}
