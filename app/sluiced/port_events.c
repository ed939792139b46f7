/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port that cannot be used: links move to another address of the peer's where there is one that another port leads to. The node
 * routes around the other peers behind it, whose links stay. While nothing was sent nothing was lost; when the port is back they
 * are as they were. Those that do not come back die of silence like any other.
 */
#include <errno.h>
#include <stdlib.h>
#include "daemon.h"

/* What the router must be told again. */
struct sl_app_cut {
	bool cut;
	uint16_t mtu;
	uint8_t xonly[SL_XONLY_BYTES];
};

int
sl_port_events_init(struct sl_daemon *d)
{
	d->cuts = calloc(d->max_peers, sizeof(*d->cuts));
	return d->cuts ? 0 : -ENOMEM;
}

void
sl_port_events_peer(struct sl_daemon *d, uint32_t peer_id, const uint8_t *xonly, uint16_t mtu)
{
	struct sl_app_cut *c = &d->cuts[peer_id];

	c->cut = false;
	c->mtu = mtu;
	if (xonly)
		memcpy(c->xonly, xonly, SL_XONLY_BYTES);
}

const uint8_t *
sl_port_events_key(const struct sl_daemon *d, uint32_t peer_id)
{
	return d->cuts[peer_id].xonly;
}

void
sl_port_events_mtu(struct sl_daemon *d, uint32_t peer_id, uint16_t mtu)
{
	d->cuts[peer_id].mtu = mtu;
}

static void
cut(struct sl_daemon *d, uint32_t peer_id)
{
	if (!d->peer_up[peer_id])
		return;
	d->cuts[peer_id].cut = true;
	d->peer_up[peer_id] = 0;
	d->counters[SL_APP_PEERS_CUT]++;
	sl_router_peer_down(d->router, peer_id, d->now_us);
}

void
sl_port_events_join(struct sl_daemon *d, uint32_t peer_id)
{
	struct sl_app_cut *c = &d->cuts[peer_id];

	if (!c->cut)
		return;
	c->cut = false;
	if (sl_router_peer_up(d->router, peer_id, c->xonly, c->mtu, d->now_us))
		d->counters[SL_APP_UP_FAILED]++;
	else
		d->peer_up[peer_id] = 1;
}

static bool
reaches(void *arg, const struct sl_addr *addr)
{
	const struct sl_daemon *d = arg;

	return sl_dataplane_reaches(d->dp, addr);
}

void
sl_port_events_link(struct sl_daemon *d, uint16_t port, bool up)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->max_peers; i++) {
		/* Cut off since no port led to it: this one may, though its own is still down. links_path() joins it. */
		if (up && d->cuts[i].cut && !sl_dataplane_peer_usable(d->dp, i))
			(void)!sl_links_reroute(d->links, i, reaches, d, d->now_us);
		if (sl_dataplane_peer_port(d->dp, i) != port)
			continue;
		if (!up && d->peer_up[i] && sl_links_reroute(d->links, i, reaches, d, d->now_us) == 0)
			continue;
		n++;
		if (up)
			sl_port_events_join(d, i);
		else
			cut(d, i);
	}
	if (n)
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "port %s: %u peers behind it are %s",
			d->config->dataplane.ports[port].name, n, up ? "routed to again" : "routed around");
}
