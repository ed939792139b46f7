/* SPDX-License-Identifier: BSD-3-Clause */
#include "nat.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "config_table.h"
#include "rendezvous.h"

struct sl_nat {
	struct sl_traversal *traversal;
	uint8_t transport;
	bool ready; /* for tries: a relay was there once */
	unsigned server_count;
	int handle[SL_STUN_SERVERS_MAX]; /* of the resolver; -1: a literal */
	struct sl_conf_endpoint server[SL_STUN_SERVERS_MAX];
	uint64_t advert_at[SL_CONF_PEERS_MAX]; /* created_at of the peer's advert that the traversal knows of */
};

static uint64_t
unix_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- the traversal says ------------------------------------------------------------------------- */

static int
nat_udp(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct sl_daemon *d = arg;

	return sl_dataplane_transmit(d->dp, to, packet, len, d->now_us);
}

static int
nat_signal(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const char *text)
{
	return sl_rendezvous_signal(arg, xonly, text);
}

static int
nat_punched(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr)
{
	struct sl_daemon *d = arg;

	return sl_links_dial(d->links, xonly, addr, d->now_us);
}

static void
count_up(void *arg, const struct sl_link_info *info)
{
	*(uint32_t *)arg += !strcmp(info->state, "up");
}

/* Access lists, and room for one more peer. */
static bool
nat_allowed(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct sl_daemon *d = arg;
	uint32_t up = 0;

	if (d->acl && !sl_acl_allows(d->acl, xonly))
		return false;
	if (d->config->limits.max_peers)
		sl_links_for_each(d->links, count_up, &up);
	return !d->config->limits.max_peers || up < d->config->limits.max_peers;
}

static void
nat_listening(void *arg, bool on)
{
	struct sl_daemon *d = arg;

	sl_dataplane_traversal(d->dp, on);
}

/* It has failed five times: is its advert still what relays have? The answer hastens the next try if it is another. */
static void
nat_doubted(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct sl_daemon *d = arg;

	for (uint32_t i = 0; i < d->config->peer_count; i++)
		if (!memcmp(d->config->peers[i].xonly, xonly, SL_XONLY_BYTES))
			sl_rendezvous_expect_dial(d, i, d->now_us);
}

static void
on_packet(struct sl_daemon *d, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	sl_traversal_packet(d->nat->traversal, from, packet, len, d->now_us, unix_ms());
}

/* --- up and down -------------------------------------------------------------------------------- */

bool
sl_nat_configured(const struct sl_conf_peer *p)
{
	for (uint32_t a = 0; a < p->address_count; a++)
		if (p->addresses[a].nat)
			return true;
	return false;
}

int
sl_nat_transport(const struct sl_config *c)
{
	for (uint32_t i = 0; i < c->udp_count; i++)
		if (c->udp[i].advertise_on_nostr && !c->udp[i].public && !c->udp[i].outbound_only)
			return (int)i;
	return sl_transport_udp(c, -1, 4);
}

static struct sl_addr
udp4(const struct sl_nat *n, const uint8_t *ip, uint16_t port)
{
	struct sl_addr a;

	memset(&a, 0, sizeof(a));
	a.kind = SL_ADDR_UDP4;
	a.transport = n->transport;
	a.udp_port = port;
	memcpy(a.u.ip4, ip, 4);
	return a;
}

/* The transport's own addresses: of the port it is bound to, or of all. */
static void
tell_local(struct sl_daemon *d)
{
	struct sl_nat *n = d->nat;
	const struct sl_conf_endpoint *bind = &d->config->udp[n->transport].bind;
	const uint16_t port = d->udp_ports[n->transport];
	struct sl_addr local[SL_PORTS_MAX * SL_PORT_ADDRS_MAX];
	unsigned count = 0;
	static const uint8_t any[16];

	for (uint32_t p = 0; p < d->config->dataplane.port_count; p++)
		for (uint32_t i = 0; i < d->config->dataplane.ports[p].address_count; i++) {
			const struct sl_ifaddr *ip = &d->config->dataplane.ports[p].addresses[i].ip;

			if (ip->family == 4 && (!memcmp(bind->ip, any, 16) || !memcmp(bind->ip, ip->ip, 4)) &&
				count < sizeof(local) / sizeof(local[0]))
				local[count++] = udp4(n, ip->ip, port);
		}
	sl_traversal_local(n->traversal, local, count);
}

/* Names to the resolver, literals as they are. IPv4: the reference's answers are about that, and so are NATs. */
static int
add_servers(struct sl_daemon *d)
{
	struct sl_nat *n = d->nat;
	char why[SL_WHY_SIZE];

	for (uint32_t i = 0; i < d->config->nostr.stun_server_count && n->server_count < SL_STUN_SERVERS_MAX; i++) {
		const char *text = d->config->nostr.stun_servers[i].text;
		struct sl_conf_endpoint *e = &n->server[n->server_count];

		if (sl_conf_endpoint_parse(e, strncmp(text, "stun:", 5) ? text : text + 5, why))
			continue;
		n->handle[n->server_count] = -1;
		if (!e->family) {
			n->handle[n->server_count] = sl_resolver_add(d->resolver, e->host);
			if (n->handle[n->server_count] < 0)
				return -ENOMEM;
		}
		n->server_count++;
	}
	return 0;
}

static void
tell_servers(struct sl_daemon *d)
{
	struct sl_nat *n = d->nat;
	struct sl_resolved answer;

	for (unsigned i = 0; i < n->server_count; i++) {
		const struct sl_conf_endpoint *e = &n->server[i];
		struct sl_addr a = {.kind = SL_ADDR_NONE};
		char text[SL_CONF_TEXT_SIZE + 8];

		if (e->family == 4)
			a = udp4(n, e->ip, e->port);
		if (n->handle[i] >= 0) {
			sl_resolver_get(d->resolver, n->handle[i], &answer);
			for (unsigned k = answer.count; k-- > 0;)
				if (answer.addrs[k].family == 4)
					a = udp4(n, answer.addrs[k].ip, e->port);
		}
		snprintf(text, sizeof(text), "stun:%s", e->text);
		(void)!sl_traversal_server(n->traversal, i, text, &a);
	}
}

static void
fill_config(const struct sl_daemon *d, struct sl_traversal_config *t)
{
	const struct sl_config *c = d->config;

	sl_traversal_config_default(t);
	memcpy(t->self, sl_identity_xonly(d->identity), SL_XONLY_BYTES);
	t->transport = d->nat->transport;
	t->share_local_candidates = c->nostr.share_local_candidates;
	t->ip6 = sl_transport_udp(c, t->transport, 6) >= 0;
	t->signal_ttl_ms = c->nostr.signal_ttl_secs * 1000;
	t->replay_window_ms = c->nostr.replay_window_secs * 1000;
	t->punch = (struct sl_punch_times){.delay_ms = (uint32_t)c->nostr.punch_start_delay_ms,
		.interval_ms = (uint32_t)c->nostr.punch_interval_ms,
		.duration_ms = (uint32_t)c->nostr.punch_duration_ms,
		.timeout_ms = (uint32_t)c->nostr.attempt_timeout_secs * 1000};
	t->max_concurrent_incoming_offers = c->nostr.max_concurrent_incoming_offers;
	t->max_concurrent_offers_per_npub = c->nostr.max_concurrent_offers_per_npub;
	t->seen_sessions_max = c->nostr.seen_sessions_max;
	t->failure_streak_threshold = c->nostr.failure_streak_threshold;
	t->extended_cooldown_us = c->nostr.extended_cooldown_secs * 1000000;
	t->handshake_timeout_us = c->rate.handshake_timeout_secs * 1000000;
	t->retry_base_us = c->retry.base_interval_secs * 1000000;
	t->retry_max_us = c->retry.max_backoff_secs * 1000000;
	t->peers_max = c->nostr.failure_state_max;
}

int
sl_nat_start(struct sl_daemon *d)
{
	const struct sl_traversal_sink sink = {.arg = d, .udp = nat_udp, .signal = nat_signal, .punched = nat_punched,
		.allowed = nat_allowed, .listening = nat_listening, .doubted = nat_doubted};
	const int transport = sl_nat_transport(d->config);
	struct sl_traversal_config config;
	int rc;

	if (!d->config->nostr.enabled || transport < 0 || !d->config->nostr.dm_relay_count)
		return 0;
	d->nat = calloc(1, sizeof(*d->nat));
	if (!d->nat)
		return -ENOMEM;
	d->nat->transport = (uint8_t)transport;
	rc = add_servers(d);
	if (rc)
		return rc;
	fill_config(d, &config);
	d->nat->traversal = sl_traversal_create(&config, &sink, d->now_us);
	if (!d->nat->traversal)
		return -ENOMEM;
	tell_local(d);
	tell_servers(d);
	d->traversal = on_packet;
	return 0;
}

void
sl_nat_stop(struct sl_daemon *d)
{
	if (!d->nat)
		return;
	d->traversal = NULL;
	sl_traversal_destroy(d->nat->traversal);
	free(d->nat);
	d->nat = NULL;
}

/* --- what it is told ---------------------------------------------------------------------------- */

uint64_t
sl_nat_tick(struct sl_daemon *d)
{
	return d->nat ? sl_traversal_tick(d->nat->traversal, d->now_us, unix_ms()) : UINT64_MAX;
}

void
sl_nat_heard(struct sl_daemon *d, const uint8_t author[SL_XONLY_BYTES], const char *text, size_t len)
{
	if (d->nat)
		sl_traversal_signal(d->nat->traversal, author, text, len, d->now_us, unix_ms());
}

void
sl_nat_names(const struct sl_daemon *d, bool *wanted)
{
	for (unsigned i = 0; d->nat && i < d->nat->server_count; i++)
		if (d->nat->handle[i] >= 0)
			wanted[d->nat->handle[i]] = true;
}

/* An advert with a `nat` endpoint, or the file's own word; somebody must dial it at all. */
#define RELAYS_US 15000000u /* so long we wait at the start for a relay before a try counts as failed for want of one */

static void
want(struct sl_daemon *d, uint32_t i)
{
	const struct sl_conf_peer *p = &d->config->peers[i];
	const struct sl_advert *a = sl_rendezvous_advert(d, i);
	const bool ready = d->nat->ready || sl_rendezvous_listening(d) || d->now_us - d->start_us > RELAYS_US;
	const bool wanted = ready && p->connect_policy == SL_CONF_AUTO_CONNECT && (sl_nat_configured(p) || (a && a->has_nat)) &&
			    memcmp(p->xonly, sl_identity_xonly(d->identity), SL_XONLY_BYTES) != 0;

	d->nat->ready = ready;
	if (sl_traversal_want(d->nat->traversal, p->xonly, p->alias, wanted, d->now_us))
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "more peers behind NATs than node.rendezvous.nostr.failure_state_max_entries");
}

void
sl_nat_advert(struct sl_daemon *d, uint32_t conf_peer)
{
	const struct sl_advert *a = sl_rendezvous_advert(d, conf_peer);

	if (!d->nat)
		return;
	want(d, conf_peer);
	if (a && a->created_at > d->nat->advert_at[conf_peer]) {
		d->nat->advert_at[conf_peer] = a->created_at;
		sl_traversal_refreshed(d->nat->traversal, d->config->peers[conf_peer].xonly, d->now_us);
	}
}

static void
tell_link(void *arg, const struct sl_link_info *info)
{
	struct sl_daemon *d = arg;

	sl_traversal_link(d->nat->traversal, info->xonly, !strcmp(info->state, "up"), d->now_us);
}

void
sl_nat_second(struct sl_daemon *d)
{
	if (!d->nat)
		return;
	tell_servers(d);
	/* A link that is up is known before anybody is wanted: no try begins for it. */
	for (uint32_t i = 0; i < d->config->peer_count; i++)
		sl_nat_advert(d, i);
	sl_traversal_links_begin(d->nat->traversal);
	sl_links_for_each(d->links, tell_link, d);
	sl_traversal_links_end(d->nat->traversal, d->now_us);
}

const struct sl_traversal *
sl_nat_traversal(const struct sl_daemon *d)
{
	return d->nat ? d->nat->traversal : NULL;
}
