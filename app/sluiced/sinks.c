/* SPDX-License-Identifier: BSD-3-Clause */
/* The wires between links, router and data plane: each callback of one is a call of another. */
#include "daemon.h"
#include <errno.h>
#include "path_mtu.h"

static uint64_t
now(const struct sl_daemon *d)
{
	return d->now_us;
}

/* --- links say ------------------------------------------------------------------------------ */

static int
links_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct sl_daemon *d = arg;
	int rc = sl_dataplane_transmit(d->dp, to, packet, len, now(d));

	if (rc)
		d->counters[SL_APP_TRANSMIT_FAILED]++;
	return rc;
}

static void
links_path(void *arg, uint32_t peer_id, const struct sl_addr *addr)
{
	struct sl_daemon *d = arg;

	sl_dataplane_path_set(d->dp, peer_id, addr, now(d));
	sl_path_mtu_moved(d, peer_id, addr);
	if (sl_dataplane_peer_usable(d->dp, peer_id))
		sl_port_events_join(d, peer_id);
}

static void
links_peer_up(void *arg, uint32_t peer_id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct sl_daemon *d = arg;
	char npub[SL_NPUB_SIZE];

	if (d->peer_up[peer_id]) {
		sl_router_peer_mtu(d->router, peer_id, mtu, now(d));
		sl_router_peer_renew(d->router, peer_id, now(d));
		return;
	}
	if (sl_router_peer_up(d->router, peer_id, key->xonly, mtu, now(d))) {
		d->counters[SL_APP_UP_FAILED]++;
		sl_npub_format(npub, key->xonly);
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "no room to route through %s", npub);
		return;
	}
	d->peer_up[peer_id] = 1;
	sl_port_events_peer(d, peer_id, key->xonly, mtu);
	sl_path_mtu_up(d, peer_id, key, mtu);
}

static void
links_peer_down(void *arg, uint32_t peer_id, enum sl_down_reason reason)
{
	struct sl_daemon *d = arg;

	(void)reason;
	sl_dataplane_path_set(d->dp, peer_id, NULL, now(d));
	sl_port_events_peer(d, peer_id, NULL, 0);
	sl_path_mtu_down(d, peer_id);
	if (!d->peer_up[peer_id])
		return;
	sl_router_peer_down(d->router, peer_id, now(d));
	d->peer_up[peer_id] = 0;
}

static void
links_message(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct sl_daemon *d = arg;
	uint8_t copy[16384];

	if (!len || !d->peer_up[peer_id])
		return;
	if (d->plpmtu && msg[0] == SL_MSG_LOOKUP_RESPONSE && sl_plpmtu_response(d->plpmtu, peer_id, msg, len, now(d)))
		return;
	if (msg[0] != SL_MSG_DATAGRAM) {
		sl_router_message(d->router, peer_id, msg, len, now(d));
	} else if (len <= sizeof(copy)) {
		memcpy(copy, msg, len);
		sl_router_datagram(d->router, peer_id, copy, len, flags, now(d));
	}
}

static void
links_metrics(void *arg, uint32_t peer_id, const struct sl_link_metrics *m)
{
	struct sl_daemon *d = arg;
	struct sl_router_metrics r = {
		.measured = m->measured, .cost = m->cost, .loss = m->loss, .etx = m->etx,
		.covered_us = m->covered_us, .missing = m->missing};

	if (d->plpmtu)
		sl_plpmtu_report(d->plpmtu, peer_id, (uint64_t)m->srtt_us, m->missing > 0, now(d));
	if (d->peer_up[peer_id])
		sl_router_peer_metrics(d->router, peer_id, &r, now(d));
}

static bool
links_allowed(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	const struct sl_daemon *d = arg;

	return !d->acl || sl_acl_allows(d->acl, xonly);
}

static uint16_t
links_mtu(void *arg, const struct sl_addr *addr)
{
	struct sl_daemon *d = arg;

	return sl_dataplane_link_mtu(d->dp, addr, now(d));
}

void
sl_sinks_links(struct sl_daemon *d, struct sl_links_sink *sink)
{
	*sink = (struct sl_links_sink){.arg = d,
		.transmit = links_transmit,
		.path = links_path,
		.peer_up = links_peer_up,
		.peer_down = links_peer_down,
		.message = links_message,
		.metrics = links_metrics,
		.allowed = links_allowed,
		.link_mtu = links_mtu};
}

/* --- the router says ------------------------------------------------------------------------ */

/* Waits, in order, while the peer's key is used up and the next one not there. */
static int
router_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct sl_daemon *d = arg;

	return sl_links_send(d->links, peer_id, msg, len, flags, now(d));
}

static void
router_local(void *arg, uint32_t from_peer, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct sl_daemon *d = arg;

	(void)from_peer;
	(void)msg;
	(void)len;
	(void)flags;
	d->counters[SL_APP_LOCAL_DATAGRAM]++;
}

/* Before workers run and after they have stopped nobody else can hold anything. */
void
sl_sinks_reclaim(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	struct sl_daemon *d = arg;

	if (d->running)
		sl_dataplane_reclaim(d->dp, fn, fn_arg, obj);
	else
		fn(fn_arg, obj);
}

void
sl_sinks_router(struct sl_daemon *d, struct sl_router_sink *sink)
{
	*sink = (struct sl_router_sink){
		.arg = d, .send = router_send, .local = router_local, .reclaim = sl_sinks_reclaim};
}

/* --- the data plane says -------------------------------------------------------------------- */

static void
dp_handshake(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	struct sl_daemon *d = arg;

	sl_links_handshake(d->links, from, packet, len, now(d));
}

static void
dp_message(void *arg, uint32_t rx_index, uint32_t peer_id, uint8_t flags, const uint8_t *msg,
	size_t len)
{
	struct sl_daemon *d = arg;

	(void)peer_id;
	sl_links_message(d->links, rx_index, flags, msg, len, now(d));
}

static void
dp_datagram(void *arg, uint32_t peer_id, uint8_t flags, uint8_t *msg, size_t len)
{
	struct sl_daemon *d = arg;

	/* The link may have gone while this waited in the ring. */
	if (peer_id < d->max_peers && d->peer_up[peer_id])
		sl_router_datagram(d->router, peer_id, msg, len, flags, now(d));
}

static void
dp_learn(void *arg, const uint8_t *msg, size_t len)
{
	struct sl_daemon *d = arg;

	d->counters[SL_APP_LEARNED]++;
	sl_router_learn(d->router, msg, len, now(d));
}

static void
dp_too_big(void *arg, const uint8_t *msg, size_t len, uint16_t mtu)
{
	struct sl_daemon *d = arg;

	sl_router_too_big(d->router, msg, len, mtu, now(d));
}

static void
dp_first_frame(void *arg, uint32_t rx_index, uint8_t flags)
{
	struct sl_daemon *d = arg;

	sl_links_first_frame(d->links, rx_index, flags, now(d));
}

static void
dp_roamed(void *arg, uint32_t rx_index, const struct sl_addr *from)
{
	struct sl_daemon *d = arg;

	sl_links_roamed(d->links, rx_index, from, now(d));
}

static void
dp_beacon(void *arg, const struct sl_addr *from, const uint8_t *xonly)
{
	struct sl_daemon *d = arg;

	if (d->beacon)
		d->beacon(d, from, xonly);
}

static void
dp_mdns(void *arg, uint16_t port, const struct sl_addr *from, const uint8_t *message, size_t len)
{
	struct sl_daemon *d = arg;

	if (d->mdns)
		d->mdns(d, port, from, message, len);
}

static void
dp_link(void *arg, uint16_t port, bool up)
{
	sl_port_events_link(arg, port, up);
}

static void
dp_path_mtu(void *arg, uint32_t peer_id, uint16_t mtu)
{
	struct sl_daemon *d = arg;

	if (peer_id < d->max_peers)
		sl_path_mtu_changed(d, peer_id, mtu);
}

static void
dp_traversal(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	struct sl_daemon *d = arg;

	if (d->traversal)
		d->traversal(d, from, packet, len);
}

void
sl_sinks_dataplane(struct sl_daemon *d, struct sl_dataplane_sink *sink)
{
	*sink = (struct sl_dataplane_sink){.arg = d,
		.handshake = dp_handshake,
		.message = dp_message,
		.datagram = dp_datagram,
		.learn = dp_learn,
		.too_big = dp_too_big,
		.first_frame = dp_first_frame,
		.roamed = dp_roamed,
		.beacon = dp_beacon,
		.mdns = dp_mdns,
		.path_mtu = dp_path_mtu,
		.traversal = dp_traversal,
		.link = dp_link};
}
