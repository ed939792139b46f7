/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams that control handles, what is learned from them, and the error signals: routing facts,
 * sections 8 to 10. */
#include "router.h"

#include <errno.h>

#define SIGNAL_INTERVAL_US 100000
#define SIGNAL_COORDS_MAX SL_PATH_MAX

struct sl_hop sl_router_hop(struct sl_router *r, const struct sl_node_addr *dest)
{
	const uint8_t *one = dest->bytes;
	struct sl_hop hop;

	sl_fib_lookup(r->ref.current, NULL, &one, &hop, 1, sl_router_seconds(r));
	return hop;
}

/* --- learning
 * ---------------------------------------------------------------------------------------------------
 */

static void learn_one(struct sl_router *r, const uint8_t *key, const uint8_t *wire, uint16_t count)
{
	struct sl_node_addr addr;

	memcpy(&addr, key, sizeof(addr));
	if (!count || sl_node_same(&addr, &r->tree.self))
		return;
	/* An initiator without the destination's coordinates fills in its own: nothing wrong with
	 * the datagram. */
	if (sl_coords_insert(&r->coords, &addr, wire, count, 0, sl_router_seconds(r)) == 0)
		sl_route_count(r, SL_ROUTE_COORDS_LEARNED);
	else
		sl_route_count(r, SL_ROUTE_COORDS_REFUSED);
}

static void learn(struct sl_router *r, const uint8_t *msg, size_t len)
{
	const uint8_t *payload = msg + SL_DATAGRAM_PAYLOAD;
	size_t payload_len = len - SL_DATAGRAM_HEADER_BYTES;
	struct sl_coords_seen seen;

	if (!sl_payload_may_carry_coords(payload, payload_len) ||
		!sl_payload_coords(&seen, payload, payload_len))
		return;
	learn_one(r, msg + SL_DATAGRAM_SRC, seen.src, seen.src_count);
	learn_one(r, msg + SL_DATAGRAM_DEST, seen.dest, seen.dest_count);
}

void sl_router_learn(struct sl_router *r, const uint8_t *msg, size_t len, uint64_t now_us)
{
	r->now_us = now_us;
	if (len >= SL_DATAGRAM_HEADER_BYTES && msg[0] == SL_MSG_DATAGRAM)
		learn(r, msg, len);
	sl_router_settle(r);
}

/* --- signals
 * ----------------------------------------------------------------------------------------------------
 */

/* Coordinates of dest as we have them, node first; 0 when there are none. */
static uint16_t known_coords(
	const struct sl_router *r, const struct sl_node_addr *dest, uint8_t *wire)
{
	uint32_t id, serial;
	const struct sl_coord_data *d = sl_coords_lookup(&r->coords, dest->bytes,
		sl_node_hash(dest->bytes, r->coords.key), sl_router_seconds(r), &id, &serial);

	if (!d)
		return 0;
	for (unsigned i = 0; i < d->len; i++)
		memcpy(wire + (size_t)i * 16, &d->path[d->len - 1 - i], 16);
	return d->len;
}

/*
 * Tells the source of a datagram that its destination cannot be reached. One signal per destination
 * and 100 ms; the slot is used up even if there is no way back.
 *
 * Nothing proves the source, so a peer that makes destinations up could have any node flooded: what
 * `from` causes (NULL when nobody remembers who it was: what goes back to the peer towards the
 * source) is limited as well.
 */
static void send_signal(struct sl_router *r, struct sl_route_peer *from, const uint8_t *msg,
	struct sl_signal *s)
{
	uint8_t out[SL_DATAGRAM_HEADER_BYTES + 40 + 16 * SIGNAL_COORDS_MAX];
	struct sl_node_addr source;
	struct sl_hop hop;
	size_t len;

	memcpy(&source, msg + SL_DATAGRAM_SRC, sizeof(source));
	memcpy(&s->dest, msg + SL_DATAGRAM_DEST, sizeof(s->dest));
	s->reporter = r->tree.self;
	if (!sl_stamps_take(&r->signal_stamps, r, &s->dest, SIGNAL_INTERVAL_US)) {
		sl_route_count(r, SL_ROUTE_SIGNAL_LIMITED);
		return;
	}
	hop = sl_router_hop(r, &source);
	if (hop.kind != SL_HOP_PEER || !r->peers[hop.peer_id]) {
		sl_route_count(r, SL_ROUTE_SIGNAL_NO_ROUTE);
		return;
	}
	if (!from)
		from = r->peers[hop.peer_id];
	if (!sl_bucket_take(&from->signal_bucket, r->now_us)) {
		sl_route_count(r, SL_ROUTE_SIGNAL_PEER_LIMITED);
		return;
	}
	/* path_mtu stays at the maximum, not folded with the first link (9.5). */
	sl_datagram_build(out, r->config.default_ttl, UINT16_MAX, &r->tree.self, &source);
	len = sl_signal_build(out + SL_DATAGRAM_PAYLOAD, sizeof(out) - SL_DATAGRAM_PAYLOAD, s);
	if (len && sl_router_send(
			   r, r->peers[hop.peer_id], out, SL_DATAGRAM_HEADER_BYTES + len, 0) == 0)
		sl_route_count(r, SL_ROUTE_SIGNAL_TX);
}

static void no_hop(struct sl_router *r, struct sl_route_peer *from, const uint8_t *msg)
{
	uint8_t wire[16 * SIGNAL_COORDS_MAX];
	struct sl_node_addr dest;
	struct sl_signal s = {.type = SL_SIGNAL_COORDS_REQUIRED};

	memcpy(&dest, msg + SL_DATAGRAM_DEST, sizeof(dest));
	s.coords_count = known_coords(r, &dest, wire);
	if (s.coords_count) {
		s.type = SL_SIGNAL_PATH_BROKEN;
		s.coords = wire;
	}
	sl_route_count(
		r, s.coords_count ? SL_ROUTE_DATAGRAM_NO_ROUTE : SL_ROUTE_DATAGRAM_NO_COORDS);
	send_signal(r, from, msg, &s);
}

static void too_big(
	struct sl_router *r, struct sl_route_peer *from, const uint8_t *msg, uint16_t mtu)
{
	struct sl_signal s = {.type = SL_SIGNAL_MTU_EXCEEDED, .mtu = mtu};

	sl_route_count(r, SL_ROUTE_DATAGRAM_TOO_BIG);
	send_signal(r, from, msg, &s);
}

void sl_router_too_big(
	struct sl_router *r, const uint8_t *msg, size_t len, uint16_t mtu, uint64_t now_us)
{
	r->now_us = now_us;
	if (len >= SL_DATAGRAM_HEADER_BYTES && msg[0] == SL_MSG_DATAGRAM)
		too_big(r, NULL, msg, mtu);
	sl_router_settle(r);
}

/* --- forwarding
 * --------------------------------------------------------------------------------------------------
 */

static void forward(struct sl_router *r, struct sl_route_peer *from, uint8_t *msg, size_t len,
	uint8_t flags, const struct sl_hop *hop)
{
	struct sl_route_peer *p = r->peers[hop->peer_id];
	/* Built anew at each hop: of the incoming flags only CE goes on (W6). */
	uint8_t out = (flags & SL_FLAG_CE) || hop->congested ? SL_FLAG_CE : 0;
	int rc;

	if (hop->mtu && sl_get16(msg + SL_DATAGRAM_PATH_MTU) > hop->mtu)
		sl_put16(msg + SL_DATAGRAM_PATH_MTU, hop->mtu);
	if (hop->mtu && len + SL_OVERHEAD_BYTES > hop->mtu)
		rc = -EMSGSIZE;
	else
		rc = p ? sl_router_send(r, p, msg, len, out) : -ENOTCONN;
	if (rc == 0)
		sl_route_count(r, SL_ROUTE_DATAGRAM_FORWARDED);
	else if (rc == -EMSGSIZE)
		too_big(r, from, msg, hop->mtu);
	else
		sl_route_count(r, SL_ROUTE_DATAGRAM_SEND_FAILED);
}

static void datagram(
	struct sl_router *r, uint32_t from_peer, uint8_t *msg, size_t len, uint8_t flags)
{
	struct sl_route_peer *from =
		from_peer < r->config.max_peers ? r->peers[from_peer] : NULL;
	struct sl_node_addr dest;
	struct sl_hop hop;

	learn(r, msg, len);
	memcpy(&dest, msg + SL_DATAGRAM_DEST, sizeof(dest));
	if (sl_node_same(&dest, &r->tree.self)) {
		sl_route_count(r, SL_ROUTE_DATAGRAM_LOCAL);
		if (r->sink.local)
			r->sink.local(r->sink.arg, from_peer, msg, len, flags);
		return;
	}
	if (msg[SL_DATAGRAM_TTL] <= 1) {
		sl_route_count(r, SL_ROUTE_DATAGRAM_TTL);
		return;
	}
	hop = sl_router_hop(r, &dest);
	/*
	 * Back to where it came from: that peer thinks us closer, we think it closer, so one of us
	 * holds old coordinates of the destination, and the datagram would go to and fro until its
	 * TTL is used up. Ours are forgotten; the source is asked to show the current ones.
	 */
	if (hop.kind == SL_HOP_PEER && hop.peer_id == from_peer) {
		sl_route_count(r, SL_ROUTE_DATAGRAM_BACK);
		(void)sl_coords_remove(&r->coords, &dest);
		hop.kind = SL_HOP_NO_COORDS;
	}
	if (hop.kind != SL_HOP_PEER) {
		no_hop(r, from, msg);
		return;
	}
	msg[SL_DATAGRAM_TTL]--;
	forward(r, from, msg, len, flags, &hop);
}

void sl_router_datagram(struct sl_router *r, uint32_t from_peer, uint8_t *msg, size_t len,
	uint8_t flags, uint64_t now_us)
{
	r->now_us = now_us;
	if (len < SL_DATAGRAM_HEADER_BYTES || msg[0] != SL_MSG_DATAGRAM)
		sl_route_count(r, SL_ROUTE_DATAGRAM_MALFORMED);
	else
		datagram(r, from_peer, msg, len, flags);
	sl_router_settle(r);
}

int sl_router_originate(struct sl_router *r, const struct sl_node_addr *dest,
	const uint8_t *payload, size_t len, uint64_t now_us)
{
	struct sl_hop hop;
	int rc;

	r->now_us = now_us;
	if (len > SL_SCRATCH_BYTES - SL_DATAGRAM_HEADER_BYTES)
		return -EMSGSIZE;
	hop = sl_router_hop(r, dest);
	if (hop.kind != SL_HOP_PEER || !r->peers[hop.peer_id])
		return -ENETUNREACH;
	/* The origin folds its first link too (9.4). */
	sl_datagram_build(r->scratch, r->config.default_ttl, hop.mtu ? hop.mtu : UINT16_MAX,
		&r->tree.self, dest);
	if (len)
		memcpy(r->scratch + SL_DATAGRAM_PAYLOAD, payload, len);
	rc = sl_router_send(
		r, r->peers[hop.peer_id], r->scratch, SL_DATAGRAM_HEADER_BYTES + len, 0);
	sl_router_settle(r);
	return rc;
}
