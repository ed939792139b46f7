/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_mtu.h"

#include <errno.h>
#include <stdlib.h>

#define IP4_LEAST 576u /* RFC 791: every host takes so much */
#define IP6_LEAST 1280u /* RFC 8200 */

struct sl_path_mtu {
	struct sl_plpmtu *plpmtu;
	struct where {
		struct sl_node_addr node;
		struct sl_addr addr;
	} *where; /* per peer_id */
};

/* Everything that goes by the size of a link. */
static void
apply(struct sl_daemon *d, uint32_t peer_id, uint16_t mtu)
{
	sl_links_mtu_set(d->links, peer_id, mtu);
	sl_port_events_mtu(d, peer_id, mtu);
	if (d->peer_up[peer_id])
		sl_router_peer_mtu(d->router, peer_id, mtu, d->now_us);
}

static int
probe_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len)
{
	struct sl_daemon *d = arg;

	return sl_links_probe(d->links, peer_id, msg, len, d->now_us);
}

static void
size_found(void *arg, uint32_t peer_id, uint16_t mtu)
{
	apply(arg, peer_id, mtu);
}

static void
size_settled(void *arg, uint32_t peer_id, uint16_t mtu, uint16_t before, enum sl_plpmtu_reason why)
{
	struct sl_daemon *d = arg;

	/* What a router reports is in the log already, once for all links there. */
	if (why != SL_PLPMTU_REPORTED)
		sl_links_mtu_tell(d->links, peer_id, mtu, before, sl_plpmtu_reason_text(why), why == SL_PLPMTU_FLOOR);
}

/* What every path of this kind must carry, less the headers in front of the FMP packet. */
static uint16_t
least(const struct sl_addr *addr)
{
	return addr->kind == SL_ADDR_UDP6 ? IP6_LEAST - 48 : IP4_LEAST - 28;
}

static uint16_t
transport_mtu(const struct sl_daemon *d, const struct sl_addr *addr)
{
	const uint16_t path = sl_dataplane_link_mtu(d->dp, addr, d->now_us);
	const uint16_t conf = addr->transport < d->config->udp_count ? d->config->udp[addr->transport].mtu : UINT16_MAX;

	return path < conf ? path : conf;
}

int
sl_path_mtu_start(struct sl_daemon *d)
{
	const struct sl_plpmtu_sink sink = {.arg = d, .send = probe_send, .mtu = size_found, .settled = size_settled};
	struct sl_path_mtu *m;

	if (!d->config->dataplane.probe_mtu)
		return 0;
	m = d->path_mtu = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->where = calloc(d->max_peers, sizeof(*m->where));
	m->plpmtu = sl_plpmtu_create(sl_identity_addr(d->identity), d->max_peers, &sink, d->now_us);
	d->plpmtu = m->plpmtu;
	return m->where && m->plpmtu ? 0 : -ENOMEM;
}

void
sl_path_mtu_stop(struct sl_daemon *d)
{
	if (!d->path_mtu)
		return;
	d->plpmtu = NULL;
	sl_plpmtu_destroy(d->path_mtu->plpmtu);
	free(d->path_mtu->where);
	free(d->path_mtu);
	d->path_mtu = NULL;
}

void
sl_path_mtu_up(struct sl_daemon *d, uint32_t peer_id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct where *w;

	if (!d->plpmtu)
		return;
	w = &d->path_mtu->where[peer_id];
	w->node = key->addr;
	sl_plpmtu_up(d->plpmtu, peer_id, &w->node, mtu, sl_dataplane_path_reported(d->dp, peer_id), least(&w->addr), d->now_us);
}

void
sl_path_mtu_down(struct sl_daemon *d, uint32_t peer_id)
{
	if (d->plpmtu)
		sl_plpmtu_down(d->plpmtu, peer_id);
}

void
sl_path_mtu_moved(struct sl_daemon *d, uint32_t peer_id, const struct sl_addr *addr)
{
	struct sl_plpmtu_info info;
	struct where *w;
	uint16_t mtu;

	if (!d->plpmtu) {
		mtu = d->peer_up[peer_id] ? transport_mtu(d, addr) : UINT16_MAX;
		if (mtu != UINT16_MAX && mtu >= SL_PLPMTU_SMALL)
			apply(d, peer_id, mtu);
		return;
	}
	w = &d->path_mtu->where[peer_id];
	w->addr = *addr;
	if (!sl_plpmtu_lookup(d->plpmtu, peer_id, &info))
		return; /* not up yet */
	mtu = transport_mtu(d, addr);
	sl_plpmtu_up(d->plpmtu, peer_id, &w->node, mtu == UINT16_MAX ? info.ceiling : mtu, sl_dataplane_path_reported(d->dp, peer_id),
		least(addr), d->now_us);
}

void
sl_path_mtu_changed(struct sl_daemon *d, uint32_t peer_id, uint16_t mtu)
{
	if (d->plpmtu)
		sl_plpmtu_ceiling(d->plpmtu, peer_id, mtu, sl_dataplane_path_reported(d->dp, peer_id), d->now_us);
	else
		apply(d, peer_id, mtu);
}

uint64_t
sl_path_mtu_tick(struct sl_daemon *d)
{
	return d->plpmtu ? sl_plpmtu_tick(d->plpmtu, d->now_us) : UINT64_MAX;
}
