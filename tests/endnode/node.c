/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HELLO_NS 100000000ull
#define SECOND_NS 1000000000ull
#define LOOKUP_RETRY_NS 500000000ull
#define SHOW_AGAIN_NS 20000000ull
/* Established data with coordinates (routing facts, section 10): what precedes them, and the flag
 * that says so. */
#define SHOW_HEADER_BYTES 12
#define SHOW_COORDS 0x01
#define END_REPEAT_NS 50000000ull
#define LINGER_NS (3 * SECOND_NS) /* the most that is waited for a partner's end after our own */
#define QUIET_NS (300000000ull)	  /* without data after both ends: nothing is on its way any more */

static int links_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct node *n = arg;

	return n->transmit(n->transmit_arg, to, packet, len);
}

static void links_path(void *arg, uint32_t peer_id, const struct sl_addr *addr)
{
	(void)arg;
	(void)peer_id;
	(void)addr;
}

static void links_peer_up(
	void *arg, uint32_t peer_id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct node *n = arg;
	uint64_t now_us = n->now_ns / 1000;

	if (n->relay_peer == peer_id) {
		sl_router_peer_renew(n->router, peer_id, now_us);
		n->links_up++;
		return;
	}
	if (sl_router_peer_up(n->router, peer_id, key->xonly, mtu, now_us) != 0)
		return;
	if (memcmp(key->xonly, n->config.relay.xonly, SL_XONLY_BYTES) != 0)
		return;
	n->relay_peer = peer_id;
	n->links_up++;
	if (n->state == NODE_LINKING)
		n->state = NODE_GREETING;
	n->next_hello_ns = n->now_ns;
}

static void links_peer_down(void *arg, uint32_t peer_id, enum sl_down_reason reason)
{
	struct node *n = arg;

	(void)reason;
	sl_router_peer_down(n->router, peer_id, n->now_ns / 1000);
	if (peer_id != n->relay_peer)
		return;
	n->relay_peer = SL_PEER_NONE;
	n->links_lost++;
}

/* The router proves the answer and says so in lookup_done(), but keeps the coordinates to itself:
 * noted here before. */
static void lookup_answer(struct node *n, const uint8_t *msg, size_t len)
{
	struct sl_lookup_response r;

	if (sl_lookup_response_parse(&r, msg, len) != 0 || r.coords_count > NODE_COORDS_MAX ||
		!sl_node_addr_equal(&r.target, &n->partner))
		return;
	memcpy(n->answer, r.coords, r.coords_count * sizeof(n->answer[0]));
	n->answer_count = r.coords_count;
}

static void router_lookup_done(
	void *arg, const struct sl_node_addr *target, bool found, uint16_t path_mtu)
{
	struct node *n = arg;

	(void)path_mtu;
	if (!found || !sl_node_addr_equal(target, &n->partner))
		return;
	memcpy(n->coords, n->answer, sizeof(n->coords));
	n->coords_count = n->answer_count;
	n->next_show_ns = n->now_ns;
	n->lookups++;
}

static void links_message(
	void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct node *n = arg;
	uint64_t now_us = n->now_ns / 1000;

	if (msg[0] == SL_MSG_LOOKUP_RESPONSE)
		lookup_answer(n, msg, len);
	if (msg[0] != SL_MSG_DATAGRAM) {
		sl_router_message(n->router, peer_id, msg, len, now_us);
		return;
	}
	if (len < SL_DATAGRAM_HEADER_BYTES || len > sizeof(n->message))
		return;
	/* The router counts down TTL in place. */
	memcpy(n->message, msg, len);
	sl_router_datagram(n->router, peer_id, n->message, len, flags, now_us);
}

static void links_metrics(void *arg, uint32_t peer_id, const struct sl_link_metrics *m)
{
	struct node *n = arg;
	struct sl_router_metrics r = {
		.measured = m->measured, .cost = m->cost, .loss = m->loss, .etx = m->etx,
		.covered_us = m->covered_us, .missing = m->missing};

	sl_router_peer_metrics(n->router, peer_id, &r, n->now_ns / 1000);
}

static int router_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct node *n = arg;

	return sl_links_send(n->links, peer_id, msg, len, flags, n->now_ns / 1000);
}

/* Bytes of the header and both lists of coordinates before a payload that shows them; 0 when they
 * are not whole. */
static size_t shown_bytes(const uint8_t *payload, size_t len)
{
	size_t at = SHOW_HEADER_BYTES;

	for (int list = 0; list < 2; list++) {
		size_t bytes;

		if (len - at < 2)
			return 0;
		bytes = (size_t)sl_get16(payload + at) * SL_NODE_ADDR_BYTES;
		at += 2;
		if (len - at < bytes)
			return 0;
		at += bytes;
	}
	return at;
}

/* Somebody on the way lacks coordinates, or has found that ours of the partner lead nowhere. */
static void signalled(struct node *n, const struct sl_signal *signal)
{
	n->signals++;
	if (signal->type == SL_SIGNAL_MTU_EXCEEDED) {
		const uint32_t head = SL_OVERHEAD_BYTES + SL_DATAGRAM_HEADER_BYTES;

		n->too_big++;
		n->told_mtu = signal->mtu;
		if (n->config.follow && signal->mtu >= head + STREAM_PAYLOAD_MIN && signal->mtu - head < n->config.size)
			n->config.size = signal->mtu - head;
		return;
	}
	if (!n->config.far)
		return;
	if (signal->type == SL_SIGNAL_PATH_BROKEN) {
		n->coords_count = 0;
		n->next_lookup_ns = n->now_ns;
	} else if (n->next_show_ns > n->now_ns + SHOW_AGAIN_NS) {
		n->next_show_ns = n->now_ns + SHOW_AGAIN_NS;
	}
}

static void router_local(
	void *arg, uint32_t from_peer, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct node *n = arg;
	struct sl_signal signal;
	const uint8_t *payload = msg + SL_DATAGRAM_PAYLOAD;

	(void)from_peer;
	(void)flags;
	len -= SL_DATAGRAM_PAYLOAD;
	if (len > SHOW_HEADER_BYTES && payload[0] == 0 && payload[1] == SHOW_COORDS) {
		size_t skip = shown_bytes(payload, len);

		payload += skip;
		len -= skip;
	}
	if (memcmp(msg + SL_DATAGRAM_SRC, n->partner.bytes, SL_NODE_ADDR_BYTES) == 0) {
		n->path_mtu = sl_get16(msg + SL_DATAGRAM_PATH_MTU);
		n->large += len > STREAM_PAYLOAD_MIN;
		stream_rx_payload(&n->rx, payload, len, n->now_ns);
	} else if (sl_signal_parse(&signal, payload, len) == 0)
		signalled(n, &signal);
	else
		n->rx.foreign++;
}

int node_init(struct node *n, const struct node_config *config,
	int (*transmit)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len),
	void *arg, uint64_t unix_s, uint64_t now_ns)
{
	const struct sl_aead_backend *aead;
	struct sl_session_table_config tc = {.max_sessions = 64, .max_peers = 16, .workers = 1};
	struct sl_links_config lc;
	struct sl_router_config rc;
	struct sl_links_sink links_sink = {n, links_transmit, links_path, links_peer_up,
		links_peer_down, links_message, links_metrics};
	struct sl_router_sink router_sink = {.arg = n,
		.send = router_send,
		.local = router_local,
		.lookup_done = router_lookup_done};
	int rc_err;

	memset(n, 0, sizeof(*n));
	n->config = *config;
	n->transmit = transmit;
	n->transmit_arg = arg;
	n->now_ns = n->start_ns = now_ns;
	n->relay_peer = SL_PEER_NONE;
	sl_node_addr_from_xonly(&n->partner, config->partner_xonly);
	sl_random(&n->run, sizeof(n->run));
	stream_rx_init(&n->rx);

	aead = sl_aead_backend_find(config->aead ? config->aead : "auto");
	if (!aead)
		return -errno;
	sl_router_config_default(&rc);
	rc.max_peers = tc.max_peers;
	n->router = sl_router_create(&rc, config->identity, &router_sink, unix_s, now_ns / 1000);
	if (!n->router)
		return -errno;
	n->table = sl_session_table_create(&tc);
	if (!n->table) {
		rc_err = -errno;
		goto fail_router;
	}
	sl_links_config_default(&lc);
	lc.max_peers = tc.max_peers;
	if (config->dead_timeout_ms)
		lc.dead_timeout_us = config->dead_timeout_ms * 1000ull;
	if (config->rekey_after_s > 0)
		lc.rekey_after_us = (uint64_t)(config->rekey_after_s * 1e6);
	if (config->rekey_after_messages)
		lc.rekey_after_messages = config->rekey_after_messages;
	n->links =
		sl_links_create(&lc, config->identity, n->table, aead, &links_sink, now_ns / 1000);
	if (!n->links) {
		rc_err = -errno;
		goto fail_table;
	}
	rc_err = sl_links_transport_add(n->links, &config->transport);
	if (rc_err)
		goto fail_links;
	rc_err = sl_links_peer_configure(n->links, &config->relay, now_ns / 1000);
	if (rc_err)
		goto fail_links;
	return 0;

fail_links:
	sl_links_destroy(n->links);
fail_table:
	sl_session_table_destroy(n->table);
fail_router:
	sl_router_destroy(n->router);
	return rc_err;
}

void node_fini(struct node *n)
{
	sl_links_destroy(n->links);
	sl_session_table_destroy(n->table);
	sl_router_destroy(n->router);
	sl_identity_destroy(n->config.identity);
	stream_rx_fini(&n->rx);
}

void node_packet(
	struct node *n, const struct sl_addr *from, uint8_t *packet, size_t len, uint64_t now_ns)
{
	n->now_ns = now_ns;
	sl_links_packet(n->links, from, packet, len, now_ns / 1000);
}

/* One payload to the partner, by the only way there is: through the relay. `shown` bytes before it
 * are there already. */
static int send_payload_behind(struct node *n, size_t shown, enum stream_kind kind, uint8_t flags,
	size_t len, uint64_t sequence)
{
	uint8_t *msg = n->message;

	if (n->relay_peer == SL_PEER_NONE)
		return -ENOTCONN;
	sl_datagram_build(msg, SL_TTL_DEFAULT, n->config.transport.mtu,
		sl_identity_addr(n->config.identity), &n->partner);
	stream_build(
		msg + SL_DATAGRAM_PAYLOAD + shown, len, kind, flags, n->run, sequence, n->now_ns);
	return sl_links_send(n->links, n->relay_peer, msg, SL_DATAGRAM_PAYLOAD + shown + len, 0,
		n->now_ns / 1000);
}

static int send_payload(
	struct node *n, enum stream_kind kind, uint8_t flags, size_t len, uint64_t sequence)
{
	return send_payload_behind(n, 0, kind, flags, len, sequence);
}

/* A hello that shows both nodes' coordinates to everyone on the way. */
static int send_hello_with_coords(struct node *n, uint8_t flags)
{
	struct sl_node_addr own[NODE_COORDS_MAX];
	uint16_t own_count = (uint16_t)sl_router_coords(n->router, own, NODE_COORDS_MAX);
	uint8_t *p = n->message + SL_DATAGRAM_PAYLOAD, *start = p;

	memset(p, 0, SHOW_HEADER_BYTES);
	p[1] = SHOW_COORDS;
	p += SHOW_HEADER_BYTES;
	sl_put16(p, own_count);
	memcpy(p + 2, own, own_count * sizeof(own[0]));
	p += 2 + own_count * sizeof(own[0]);
	sl_put16(p, n->coords_count);
	memcpy(p + 2, n->coords, n->coords_count * sizeof(n->coords[0]));
	p += 2 + n->coords_count * sizeof(n->coords[0]);
	return send_payload_behind(
		n, (size_t)(p - start), STREAM_HELLO, flags, STREAM_PAYLOAD_MIN, 0);
}

/* What a far partner needs now and then. */
static void keep_way(struct node *n)
{
	if (!n->config.far || n->relay_peer == SL_PEER_NONE)
		return;
	if (!n->coords_count && n->now_ns >= n->next_lookup_ns) {
		/* Until filters have come there is nobody to ask; a lookup under way goes on. */
		if (sl_router_lookup(n->router, n->config.partner_xonly, n->now_ns / 1000) != 0)
			n->next_lookup_ns = n->now_ns + LOOKUP_RETRY_NS;
	}
	if (n->coords_count && n->now_ns >= n->next_show_ns) {
		if (send_hello_with_coords(n, n->rx.hello || n->rx.started ? STREAM_HEARD : 0) == 0)
			n->next_show_ns =
				n->now_ns + (n->state == NODE_RUNNING ? SECOND_NS : HELLO_NS);
	}
}

/* Before there is a key: it waits and is the first that goes out. */
static void greet_early(struct node *n)
{
	uint8_t *msg = n->message;

	if (n->early || n->config.far)
		return;
	sl_datagram_build(msg, SL_TTL_DEFAULT, n->config.transport.mtu, sl_identity_addr(n->config.identity), &n->partner);
	stream_build(msg + SL_DATAGRAM_PAYLOAD, STREAM_PAYLOAD_MIN, STREAM_HELLO, 0, n->run, 0, n->now_ns);
	n->early = sl_links_send_key(n->links, n->config.relay.xonly, msg, SL_DATAGRAM_PAYLOAD + STREAM_PAYLOAD_MIN, 0,
			   n->now_ns / 1000) == 0;
}

/* A hello says whether theirs has come; both sides start when both directions are proven. */
static void greet(struct node *n)
{
	if (n->now_ns < n->next_hello_ns || n->config.far)
		return;
	if (send_payload(n, STREAM_HELLO, n->rx.hello || n->rx.started ? STREAM_HEARD : 0,
		    STREAM_PAYLOAD_MIN, 0) == 0)
		n->next_hello_ns = n->now_ns + HELLO_NS;
	else
		n->next_hello_ns = n->now_ns + HELLO_NS / 10;
}

static void send_data(struct node *n, unsigned burst)
{
	double elapsed_s = (double)(n->now_ns - n->run_ns) / 1e9;
	uint64_t due = (uint64_t)(elapsed_s * (double)n->config.rate_pps);

	while (n->paced < due && burst--) {
		const uint32_t size = n->config.mix && (n->sent & 1) ? STREAM_PAYLOAD_MIN : n->config.size;

		n->paced++;
		if (send_payload(n, STREAM_DATA, 0, size, n->sent) != 0) {
			n->not_sent++;
			continue;
		}
		n->sent++;
		n->sent_bytes += size;
	}
	/* After a stall the missed time is not made up for at line rate: what is more than 100 ms
	 * late is left out. */
	if (due - n->paced > n->config.rate_pps / 10 + 1) {
		uint64_t late = due - n->paced - n->config.rate_pps / 10;

		n->not_sent += late;
		n->paced += late;
	}
}

void node_end(struct node *n, uint64_t now_ns)
{
	if (n->state >= NODE_ENDING)
		return;
	n->state = NODE_ENDING;
	n->end_ns = now_ns;
	n->next_hello_ns = now_ns;
}

static void ending(struct node *n)
{
	uint64_t since = n->now_ns - n->end_ns;

	if (n->now_ns >= n->next_hello_ns) {
		if (send_payload(n, STREAM_END, 0, STREAM_PAYLOAD_MIN, n->sent) == 0 ||
			n->relay_peer == SL_PEER_NONE)
			n->next_hello_ns = n->now_ns + END_REPEAT_NS;
	}
	/* At least a few ends of ours must have gone out, and their stream must have run dry. */
	if (since > LINGER_NS ||
		(since > QUIET_NS && n->rx.ended && n->now_ns - n->rx.last_ns > QUIET_NS))
		n->state = NODE_DONE;
}

uint64_t node_turn(struct node *n, unsigned burst, uint64_t now_ns)
{
	uint64_t next;

	n->now_ns = now_ns;
	if (now_ns / 1000 >= n->next_tick_us) {
		uint64_t a = sl_links_tick(n->links, now_ns / 1000),
			 b = sl_router_tick(n->router, now_ns / 1000);

		n->next_tick_us = a < b ? a : b;
		/* Both also act on what arrives; a look every 10 ms costs nothing and keeps their
		 * timers exact. */
		if (n->next_tick_us > now_ns / 1000 + 10000)
			n->next_tick_us = now_ns / 1000 + 10000;
	}
	keep_way(n);
	switch (n->state) {
	case NODE_LINKING:
		greet_early(n);
		break;
	case NODE_DONE:
		break;
	case NODE_GREETING:
		greet(n);
		if (n->rx.heard || (n->rx.started && n->rx.hello)) {
			n->state = NODE_RUNNING;
			n->run_ns = now_ns;
			n->next_hello_ns = now_ns;
		}
		break;
	case NODE_RUNNING:
		/* The partner may not have heard of us yet, or be new: hellos go on until its data
		 * flows. */
		if (!n->rx.started || now_ns - n->rx.last_ns > SECOND_NS)
			greet(n);
		if (n->config.seconds > 0 &&
			(double)(now_ns - n->run_ns) / 1e9 >= n->config.seconds)
			node_end(n, now_ns);
		else if (n->config.rate_pps)
			send_data(n, burst);
		break;
	case NODE_ENDING:
		ending(n);
		break;
	}
	next = n->next_tick_us * 1000;
	if (n->state == NODE_RUNNING && n->config.rate_pps && next > now_ns + 500000)
		next = now_ns + 500000;
	return next;
}

int node_forget(struct node *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	return sl_links_disconnect(n->links, n->config.relay.xonly, SL_DISCONNECT_OTHER, now_ns / 1000);
}

int node_redial(struct node *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	return sl_links_peer_configure(n->links, &n->config.relay, now_ns / 1000);
}

void node_shutdown(struct node *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	sl_links_shutdown(n->links, SL_DISCONNECT_SHUTDOWN, now_ns / 1000);
}

/* What the links library refused or did, zeros left out. */
static int json_counters(const struct node *n, char *out, size_t size)
{
	const uint64_t *c = sl_links_counters(n->links);
	int len = snprintf(out, size, ",\"counters\":{");

	for (unsigned i = 0, some = 0; i < SL_LINK_COUNTER_COUNT && (size_t)len < size; i++)
		if (c[i])
			len += snprintf(out + len, size - (size_t)len, "%s\"%s\":%llu", some++ ? "," : "",
				sl_link_counter_name((enum sl_link_counter)i), (unsigned long long)c[i]);
	if ((size_t)len < size)
		len += snprintf(out + len, size - (size_t)len, "}}");
	return len;
}

int node_json(struct node *n, char *out, size_t size, bool final)
{
	static const char *const states[] = {"linking", "greeting", "running", "ending", "done"};
	const struct stream_histogram *h = final ? &n->rx.latency : &n->rx.recent;
	int len = snprintf(out, size,
		"{\"final\":%s,\"t\":%.3f,\"state\":\"%s\",\"link\":\"%s\",\"links_up\":%u,\"links_"
		"lost\":%u,"
		"\"sent\":%llu,\"sent_bytes\":%llu,\"not_sent\":%llu,\"received\":%llu,\"received_"
		"bytes\":%llu,"
		"\"expect\":%llu,\"lost\":%llu,\"duplicated\":%llu,\"reordered\":%llu,"
		"\"corrupted\":%llu,\"foreign\":%llu,"
		"\"signals\":%llu,\"too_big\":%llu,\"told_mtu\":%u,\"path_mtu\":%u,\"size\":%u,\"large\":%llu,\"lookups\":%u,\"peer_restarts\":%llu,\"peer_ended\":%s,\"peer_"
		"sent\":%llu,\"gaps\":%llu,"
		"\"latest_gap_ms\":%.1f,\"longest_gap_ms\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
		"\"max_us\":%.1f,"
		"\"tx_failed\":%llu,\"run_s\":%.3f",
		final ? "true" : "false", (double)(n->now_ns - n->start_ns) / 1e9, states[n->state],
		n->relay_peer == SL_PEER_NONE ? "down" : "up", n->links_up, n->links_lost,
		(unsigned long long)n->sent, (unsigned long long)n->sent_bytes,
		(unsigned long long)n->not_sent, (unsigned long long)n->rx.received,
		(unsigned long long)n->rx.bytes, (unsigned long long)n->rx.expect,
		(unsigned long long)stream_rx_lost(&n->rx, n->rx.ended ? n->rx.sent_by_peer : 0),
		(unsigned long long)n->rx.duplicated, (unsigned long long)n->rx.reordered,
		(unsigned long long)n->rx.corrupted, (unsigned long long)n->rx.foreign,
		(unsigned long long)n->signals, (unsigned long long)n->too_big, n->told_mtu, n->path_mtu, n->config.size,
		(unsigned long long)n->large, n->lookups, (unsigned long long)n->rx.restarts,
		n->rx.ended ? "true" : "false", (unsigned long long)n->rx.sent_by_peer,
		(unsigned long long)n->rx.gaps, (double)n->rx.latest_gap_ns / 1e6,
		(double)n->rx.longest_gap_ns / 1e6, stream_histogram_us(h, 0.5),
		stream_histogram_us(h, 0.99), (double)h->max_ns / 1000, (unsigned long long)n->tx_failed,
		n->run_ns ? (double)((n->end_ns ? n->end_ns : n->now_ns) - n->run_ns) / 1e9 : 0.0);

	memset(&n->rx.recent, 0, sizeof(n->rx.recent));
	if (len > 0 && (size_t)len < size)
		len += json_counters(n, out + len, size - (size_t)len);
	return len;
}
