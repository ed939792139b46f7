/* SPDX-License-Identifier: BSD-3-Clause */
#include "meet.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define PLACES_LINK 64u /* nodes of a link without a link to us: more than a switch has relays behind it */
/* Each dial that is not answered holds a receiver index for 30 s; there are four a row, shared with all handshakes. */
#define DIALS 32.0
#define DIALS_PER_S 2.0
#define BEACON_HOLD_US UINT64_C(100000000) /* three of the usual 30 s, and a little */
#define HOLD_MIN_S 30u

struct sl_meet {
	struct sl_found *found;
	struct sl_lan *lan; /* NULL: off */
	bool due;	    /* somebody has been heard */
};

/* --- found nodes ---------------------------------------------------------------------------------------------------- */

static int
on_dial(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr)
{
	struct sl_daemon *d = arg;

	return sl_links_dial(d->links, xonly, addr, d->now_us);
}

static const char *
where(enum sl_found_source source)
{
	static const char *const names[] = {"by mDNS", "by its beacon", "by its advert"};

	return names[source];
}

static void
on_appeared(void *arg, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr)
{
	char npub[SL_NPUB_SIZE], text[SL_ADDR_TEXT_SIZE];

	(void)arg;
	sl_npub_format(npub, xonly);
	sl_addr_format(text, addr);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "found %s %s at %s", npub, where(source), text);
}

static void
on_left(void *arg, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const char *why)
{
	char npub[SL_NPUB_SIZE];

	(void)arg;
	sl_npub_format(npub, xonly);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "found %s %s before: %s", npub, where(source), why);
}

static void
heard(struct sl_daemon *d, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addrs,
	unsigned count, uint64_t hold_us)
{
	if (!memcmp(xonly, sl_identity_xonly(d->identity), SL_XONLY_BYTES))
		return;
	(void)!sl_found_heard(d->meet->found, source, xonly, addrs, count, hold_us, d->now_us); /* left out: counted */
	d->meet->due = true;
}

struct links {
	struct sl_daemon *d;
	uint32_t up, down; /* down: configured ones without a link */
};

static void
on_link(void *arg, const struct sl_link_info *info)
{
	struct links *l = arg;

	if (info->peer_id != SL_PEER_NONE) {
		l->up++;
		sl_found_linked(l->d->meet->found, info->xonly);
	} else if (info->configured) {
		l->down++;
	}
}

void
sl_meet_second(struct sl_daemon *d)
{
	const uint32_t most = d->config->limits.max_peers ? d->config->limits.max_peers : d->max_peers;
	struct links l = {.d = d};

	if (!d->meet)
		return;
	sl_found_links_begin(d->meet->found);
	sl_links_for_each(d->links, on_link, &l);
	/* The places of those that the operator has named are not given away. */
	sl_found_links_end(d->meet->found, l.up + l.down < most ? most - l.up - l.down : 0, d->now_us);
	d->meet->due = true;
}

uint64_t
sl_meet_tick(struct sl_daemon *d)
{
	struct sl_meet *m = d->meet;
	uint64_t next = UINT64_MAX;

	if (!m)
		return UINT64_MAX;
	if (m->due)
		m->due = sl_found_tick(m->found, d->now_us);
	if (m->lan)
		next = sl_lan_tick(m->lan, d->now_us);
	return m->due ? d->now_us + 1000 : next;
}

/* --- beacons and adverts ---------------------------------------------------------------------------------------------- */

/* A beacon is a hint from anyone: dialled only where the operator said so; the links refuse who is known already. */
static void
on_beacon(struct sl_daemon *d, const struct sl_addr *from, const uint8_t *xonly)
{
	const struct sl_config *c = d->config;
	uint32_t i = from->transport - c->udp_count;

	if (from->transport < c->udp_count || i >= c->ethernet_count || !c->ethernet[i].listen)
		return;
	d->counters[SL_APP_BEACON_RX]++;
	if (d->meet && c->ethernet[i].auto_connect)
		heard(d, SL_FOUND_BEACON, xonly, from, 1, BEACON_HOLD_US);
}

/* Literal addresses only: names that strangers choose are not looked up for them. */
void
sl_meet_advert(struct sl_daemon *d, const struct sl_advert *a, uint64_t unix_s)
{
	struct sl_addr addrs[SL_FOUND_ADDRS_MAX];
	unsigned n = 0;

	if (!d->meet || a->valid_until <= unix_s)
		return;
	for (unsigned i = 0; i < a->endpoint_count && n < SL_FOUND_ADDRS_MAX; i++) {
		const struct sl_advert_endpoint *e = &a->endpoints[i];

		if (e->transport == SL_ADVERT_UDP && e->family && sl_peers_udp_addr(d->config, &addrs[n], -1, e->port, e->family, e->ip, 0))
			n++;
	}
	if (n)
		heard(d, SL_FOUND_ADVERT, a->pubkey, addrs, n, (a->valid_until - unix_s) * 1000000);
}

/* --- multicast DNS ---------------------------------------------------------------------------------------------------- */

static int
lan_send(void *arg, unsigned port, uint8_t family, const uint8_t *message, size_t len)
{
	struct sl_daemon *d = arg;

	return sl_dataplane_mdns(d->dp, (uint16_t)port, family, message, len);
}

static void
lan_found(void *arg, unsigned port, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_mdns_ip *ips, unsigned count, uint16_t udp_port,
	uint32_t ttl_s)
{
	struct sl_daemon *d = arg;
	struct sl_addr addrs[SL_FOUND_ADDRS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < count && n < SL_FOUND_ADDRS_MAX; i++)
		if (sl_peers_udp_addr(d->config, &addrs[n], -1, udp_port, ips[i].family, ips[i].ip, (uint16_t)port))
			n++;
	ttl_s = ttl_s < HOLD_MIN_S ? HOLD_MIN_S : ttl_s > SL_MDNS_TTL_S ? SL_MDNS_TTL_S : ttl_s;
	if (n)
		heard(d, SL_FOUND_MDNS, xonly, addrs, n, (uint64_t)ttl_s * 1000000);
}

static void
lan_gone(void *arg, unsigned port, const uint8_t xonly[SL_XONLY_BYTES])
{
	(void)port;
	sl_found_gone(((struct sl_daemon *)arg)->meet->found, SL_FOUND_MDNS, xonly);
}

static void
on_mdns(struct sl_daemon *d, uint16_t port, const struct sl_addr *from, const uint8_t *message, size_t len)
{
	struct sl_mdns_ip ip = {.family = from->kind == SL_ADDR_UDP4 ? 4 : 6};

	memcpy(ip.ip, from->u.ip6, ip.family == 4 ? 4 : 16);
	sl_lan_input(d->meet->lan, port, &ip, from->udp_port, message, len, d->now_us);
}

/* The transport that others are told of: the first that takes their handshakes; -1: none. */
static int
told_transport(const struct sl_config *c)
{
	for (uint32_t i = 0; i < c->udp_count; i++)
		if (!c->udp[i].outbound_only && c->udp[i].accept_connections)
			return (int)i;
	return -1;
}

static void
add_ifaddr(const struct sl_daemon *d, struct sl_lan_ifaddr *list, unsigned *n, uint8_t family, const uint8_t *ip, uint8_t prefix_len)
{
	static const uint8_t any[16];
	const int t = told_transport(d->config);
	const struct sl_conf_endpoint *bind = t >= 0 ? &d->config->udp[t].bind : NULL;
	struct sl_lan_ifaddr *a = &list[*n];

	if (*n == SL_LAN_IFADDRS_MAX)
		return;
	memset(a, 0, sizeof(*a));
	a->ip.family = family;
	memcpy(a->ip.ip, ip, family == 4 ? 4 : 16);
	a->prefix_len = prefix_len;
	a->told = bind && (memcmp(bind->ip, any, 16) != 0 ? bind->family == family && !memcmp(bind->ip, a->ip.ip, 16)
							   : bind->family == 6 || family == 4);
	(*n)++;
}

static int
add_lan_port(struct sl_daemon *d, uint32_t port)
{
	const struct sl_conf_port *p = &d->config->dataplane.ports[port];
	struct sl_lan_ifaddr addrs[SL_LAN_IFADDRS_MAX];
	struct sl_port_stats stats;
	bool six = false, local = false;
	unsigned n = 0;
	uint8_t ip[16];

	for (uint32_t i = 0; i < p->address_count; i++) {
		const struct sl_ifaddr *a = &p->addresses[i].ip;

		add_ifaddr(d, addrs, &n, a->family, a->ip, a->prefix_len);
		six = six || a->family == 6;
		local = local || (a->family == 6 && sl_ip6_is_link_local(a->ip));
	}
	if (six && !local && !sl_dataplane_port_stats(d->dp, (uint16_t)port, &stats)) {
		sl_ip6_link_local(ip, stats.mac);
		add_ifaddr(d, addrs, &n, 6, ip, 64);
	}
	return sl_lan_port(d->meet->lan, addrs, n);
}

void
sl_meet_scope(const struct sl_config *c, char scope[SL_MDNS_SCOPE_SIZE])
{
	const char *from = c->lan.scope;
	size_t len;

	while (isspace((unsigned char)*from))
		from++;
	if (!*from) {
		from = c->nostr.app;
		while (isspace((unsigned char)*from))
			from++;
		if (!strncmp(from, "fips-overlay-v1:", 16))
			from += 16;
		while (isspace((unsigned char)*from))
			from++;
	}
	for (len = strlen(from); len && isspace((unsigned char)from[len - 1]); len--)
		;
	len = len < SL_MDNS_SCOPE_SIZE ? len : SL_MDNS_SCOPE_SIZE - 1;
	memcpy(scope, from, len);
	scope[len] = '\0';
}

static int
start_lan(struct sl_daemon *d)
{
	const struct sl_lan_sink sink = {.arg = d, .send = lan_send, .found = lan_found, .gone = lan_gone};
	const int t = told_transport(d->config);
	char scope[SL_MDNS_SCOPE_SIZE];
	struct sl_mdns_self self;
	int rc;

	if (!d->config->lan.enabled)
		return 0;
	if (!d->config->udp_count) {
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "mDNS is off: there is no UDP transport (raw Ethernet has beacons)");
		return 0;
	}
	sl_meet_scope(d->config, scope);
	rc = sl_mdns_self_init(&self, d->config->lan.service_type, sl_identity_xonly(d->identity), scope, t >= 0 ? d->udp_ports[t] : 0);
	if (rc)
		return rc;
	d->meet->lan = sl_lan_create(&self, sl_identity_xonly(d->identity), &sink, d->now_us);
	if (!d->meet->lan)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < d->config->dataplane.port_count; i++)
		rc = add_lan_port(d, i);
	d->mdns = rc ? NULL : on_mdns;
	if (!rc)
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "mDNS: %s, scope %s%s", self.service, scope[0] ? scope : "(none)",
			t >= 0 ? "" : "; no transport takes handshakes, so we look and tell nobody");
	return rc;
}

/* --- up and down -------------------------------------------------------------------------------------------------------- */

static bool
wanted(const struct sl_config *c)
{
	bool any = c->lan.enabled || (c->nostr.enabled && c->nostr.policy == SL_CONF_ADVERTS_OPEN);

	for (uint32_t i = 0; i < c->ethernet_count; i++)
		any = any || c->ethernet[i].auto_connect;
	return any;
}

int
sl_meet_start(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	const struct sl_found_sink sink = {.arg = d, .dial = on_dial, .appeared = on_appeared, .left = on_left};
	struct sl_found_config f = {.places = {PLACES_LINK, PLACES_LINK, c->nostr.open_discovery_max_pending},
		.linked_max = d->max_peers,
		.tries = {0, 0, c->retry.max_retries},
		.dials_burst = DIALS,
		.dials_per_s = DIALS_PER_S,
		.retry_base_us = c->retry.base_interval_secs * 1000000,
		.retry_max_us = c->retry.max_backoff_secs * 1000000,
		.dial_us = c->rate.handshake_timeout_secs * 1000000};
	int rc;

	d->beacon = on_beacon;
	if (!wanted(c))
		return 0;
	d->meet = calloc(1, sizeof(*d->meet));
	if (!d->meet)
		return -ENOMEM;
	d->meet->found = sl_found_create(&f, &sink, d->now_us);
	rc = d->meet->found ? start_lan(d) : -ENOMEM;
	if (rc)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "nodes that are found: %s", strerror(-rc));
	return rc;
}

void
sl_meet_goodbye(struct sl_daemon *d)
{
	if (d->meet && d->meet->lan)
		sl_lan_goodbye(d->meet->lan);
}

void
sl_meet_stop(struct sl_daemon *d)
{
	if (!d->meet)
		return;
	d->mdns = NULL;
	d->beacon = NULL;
	sl_lan_destroy(d->meet->lan);
	sl_found_destroy(d->meet->found);
	free(d->meet);
	d->meet = NULL;
}

const struct sl_found *
sl_meet_found(const struct sl_daemon *d)
{
	return d->meet ? d->meet->found : NULL;
}

const struct sl_lan *
sl_meet_lan(const struct sl_daemon *d)
{
	return d->meet ? d->meet->lan : NULL;
}
