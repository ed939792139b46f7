/* SPDX-License-Identifier: BSD-3-Clause */
/* Configured peers: their addresses, literal or through the resolver, as the links take them. */
#include "daemon.h"
#include "nat.h"
#include "rendezvous.h"
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <strings.h>

static bool
is_any(const struct sl_conf_endpoint *e)
{
	static const uint8_t zero[16];

	return !memcmp(e->ip, zero, 16);
}

/* 0.0.0.0 carries IPv4, [::] both, one address its own family; outbound-only instances IPv4, as in
 * FIPS. */
static bool
carries(const struct sl_conf_udp *u, uint8_t family)
{
	if (u->outbound_only)
		return family == 4;
	return u->bind.family == family || (u->bind.family == 6 && is_any(&u->bind));
}

int
sl_transport_udp(const struct sl_config *c, int instance, uint8_t family)
{
	for (uint32_t i = 0; i < c->udp_count; i++)
		if ((instance < 0 || (uint32_t)instance == i) && carries(&c->udp[i], family))
			return (int)i;
	return -1;
}

const char *
sl_transport_name(const struct sl_config *c, uint8_t transport, char text[SL_CONF_NAME_SIZE * 2])
{
	const char *kind = transport < c->udp_count ? "udp" : "ethernet", *name = "";

	if (transport < c->udp_count)
		name = c->udp[transport].name;
	else if (transport - c->udp_count < c->ethernet_count)
		name = c->ethernet[transport - c->udp_count].name;
	snprintf(text, SL_CONF_NAME_SIZE * 2, "%s%s%s", kind, name[0] ? "/" : "", name);
	return text;
}

/* No address twice: the advert may say what the configuration says too. */
static void
append(struct sl_peer_config *p, const struct sl_addr *addr)
{
	for (unsigned i = 0; i < p->addr_count; i++)
		if (sl_addr_equal(&p->addrs[i], addr))
			return;
	if (p->addr_count < SL_PEER_ADDRS_MAX)
		p->addrs[p->addr_count++] = *addr;
}

bool
sl_peers_udp_addr(const struct sl_config *c, struct sl_addr *to, int instance, uint16_t port, uint8_t family, const uint8_t *ip,
	uint16_t link)
{
	int transport = sl_transport_udp(c, instance, family);

	if (transport < 0)
		return false;
	memset(to, 0, sizeof(*to));
	to->kind = family == 4 ? SL_ADDR_UDP4 : SL_ADDR_UDP6;
	to->transport = (uint8_t)transport;
	to->udp_port = port;
	memcpy(to->u.ip6, ip, family == 4 ? 4 : 16);
	if (family == 6 && sl_ip6_is_link_local(ip))
		to->link = link;
	return true;
}

static void
append_udp(struct sl_daemon *d, struct sl_peer_config *p, int instance, uint16_t port, uint8_t family,
	const uint8_t *ip)
{
	struct sl_addr to;

	if (sl_peers_udp_addr(d->config, &to, instance, port, family, ip, 0))
		append(p, &to);
}

static void
append_ip(struct sl_daemon *d, struct sl_peer_config *p, const struct sl_conf_address *a,
	uint8_t family, const uint8_t *ip)
{
	append_udp(d, p, a->instance, a->endpoint.port, family, ip);
}

/*
 * What the peer itself says comes before what the file says: an advert is newer. Half of the places at the most, so that a long
 * advert does not crowd out the file.
 */
static void
append_advert(struct sl_daemon *d, uint32_t i, struct sl_peer_config *p)
{
	const struct sl_advert *a = sl_rendezvous_advert(d, i);
	struct sl_resolved answer;
	unsigned names = 0;

	for (unsigned k = 0; a && k < a->endpoint_count && p->addr_count < SL_PEER_ADDRS_MAX / 2; k++) {
		const struct sl_advert_endpoint *e = &a->endpoints[k];

		if (e->transport != SL_ADVERT_UDP || e->nat)
			continue;
		if (e->family) {
			append_udp(d, p, -1, e->port, e->family, e->ip);
		} else if (names < SL_APP_ADVERT_NAMES && d->peers[i].advert_handle[names] >= 0) {
			sl_resolver_get(d->resolver, d->peers[i].advert_handle[names++], &answer);
			for (unsigned n = 0; n < answer.count && p->addr_count < SL_PEER_ADDRS_MAX / 2; n++)
				append_udp(d, p, -1, e->port, answer.addrs[n].family, answer.addrs[n].ip);
		}
	}
}

static void
append_mac(struct sl_daemon *d, struct sl_peer_config *p, const struct sl_conf_address *a)
{
	const struct sl_conf_ethernet *e = &d->config->ethernet[a->instance];
	struct sl_addr to;

	memset(&to, 0, sizeof(to));
	to.kind = SL_ADDR_ETH;
	to.transport = sl_transport_eth(d->config, (uint32_t)a->instance);
	to.vlan = d->config->dataplane.ports[e->port].vlan;
	to.link = e->port;
	memcpy(to.u.mac, a->mac, 6);
	append(p, &to);
}

/* The peer as the links are to have it now: its advert's addresses, literal ones and what the names come to in order of
 * priority, and for a peer with an advert where it was when it was up last, whatever relays say now. */
static void
build(struct sl_daemon *d, uint32_t i, struct sl_peer_config *p)
{
	const struct sl_conf_peer *conf = &d->config->peers[i];
	struct sl_resolved answer;

	memset(p, 0, sizeof(*p));
	memcpy(p->xonly, conf->xonly, SL_XONLY_BYTES);
	memcpy(p->alias, conf->alias, sizeof(conf->alias));
	p->auto_connect = conf->connect_policy == SL_CONF_AUTO_CONNECT;
	p->auto_reconnect = conf->auto_reconnect;
	p->first_flight = conf->first_flight;
	append_advert(d, i, p);
	for (uint32_t a = 0; a < conf->address_count; a++) {
		const struct sl_conf_address *addr = &conf->addresses[a];

		if (addr->kind == SL_ADDR_ETH) {
			append_mac(d, p, addr);
		} else if (addr->kind == SL_ADDR_UDP4 && addr->endpoint.family) {
			append_ip(d, p, addr, addr->endpoint.family, addr->endpoint.ip);
		} else if (addr->kind == SL_ADDR_UDP4) {
			sl_resolver_get(d->resolver, d->peers[i].handle[a], &answer);
			for (unsigned n = 0; n < answer.count; n++)
				append_ip(d, p, addr, answer.addrs[n].family, answer.addrs[n].ip);
		}
	}
	if (conf->via_nostr && d->peers[i].last.kind != SL_ADDR_NONE)
		append(p, &d->peers[i].last);
}

static int
by_key(const void *a, const void *b, void *config)
{
	const struct sl_config *c = config;

	return memcmp(c->peers[((const struct sl_app_peer *)a)->by_key].xonly,
		c->peers[((const struct sl_app_peer *)b)->by_key].xonly, SL_XONLY_BYTES);
}

int
sl_peers_init(struct sl_daemon *d)
{
	d->peers = calloc(d->config->peer_count ? d->config->peer_count : 1, sizeof(*d->peers));
	if (!d->peers)
		return -ENOMEM;
	/* The order of keys, while the rows hold nothing else yet. */
	for (uint32_t i = 0; i < d->config->peer_count; i++)
		d->peers[i].by_key = i;
	qsort_r(d->peers, d->config->peer_count, sizeof(*d->peers), by_key, (void *)(uintptr_t)d->config);
	for (uint32_t i = 0; i < d->config->peer_count; i++) {
		const struct sl_conf_peer *conf = &d->config->peers[i];

		for (unsigned n = 0; n < SL_APP_ADVERT_NAMES; n++)
			d->peers[i].advert_handle[n] = -1;
		for (uint32_t a = 0; a < conf->address_count; a++) {
			d->peers[i].handle[a] = -1;
			if (conf->addresses[a].kind != SL_ADDR_UDP4 ||
				conf->addresses[a].endpoint.family)
				continue;
			d->peers[i].handle[a] =
				sl_resolver_add(d->resolver, conf->addresses[a].endpoint.host);
			if (d->peers[i].handle[a] < 0)
				return -ENOMEM;
			d->peers[i].has_names = true;
		}
	}
	return 0;
}

static int
configure(struct sl_daemon *d, uint32_t i)
{
	struct sl_peer_config p;
	char npub[SL_NPUB_SIZE];
	int rc;

	build(d, i, &p);
	if (!memcmp(&p, &d->peers[i].current, sizeof(p)))
		return 0;
	d->peers[i].current = p;
	rc = sl_links_peer_configure(d->links, &p, d->now_us);
	sl_npub_format(npub, p.xonly);
	if (rc == -EEXIST) {
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "peers: %s is ourselves: left out", npub);
		return 0;
	}
	if (rc)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "peer %s cannot be configured: %s", npub,
			strerror(-rc));
	else if (!p.addr_count && p.auto_connect && !d->peers[i].has_names && !d->config->peers[i].via_nostr &&
		 !sl_nat_configured(&d->config->peers[i]))
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP,
			"peer %s: no transport of ours carries any of its addresses", npub);
	return rc;
}

int
sl_peers_configure(struct sl_daemon *d)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < d->config->peer_count; i++)
		rc = configure(d, i);
	return rc;
}

/* Names that its advert gives keep places of their own: a peer that changes its mind all day takes no more. */
void
sl_peers_discovered(struct sl_daemon *d, uint32_t i)
{
	const struct sl_advert *a = sl_rendezvous_advert(d, i);
	unsigned names = 0;

	for (unsigned k = 0; a && k < a->endpoint_count && names < SL_APP_ADVERT_NAMES; k++) {
		const struct sl_advert_endpoint *e = &a->endpoints[k];
		int handle;

		if (e->transport != SL_ADVERT_UDP || e->nat || e->family)
			continue;
		handle = sl_resolver_rename(d->resolver, d->peers[i].advert_handle[names], e->host);
		if (handle < 0)
			break;
		d->peers[i].advert_handle[names++] = handle;
		d->peers[i].has_names = true;
	}
	(void)!configure(d, i);
}

void
sl_peers_resolved(struct sl_daemon *d)
{
	struct sl_resolved answer;

	sl_resolver_drain(d->resolver);
	for (uint32_t i = 0; i < d->config->peer_count; i++) {
		if (!d->peers[i].has_names)
			continue;
		for (uint32_t a = 0; a < d->config->peers[i].address_count; a++) {
			int handle = d->peers[i].handle[a];

			if (handle < 0)
				continue;
			sl_resolver_get(d->resolver, handle, &answer);
			if (answer.error) {
				d->counters[SL_APP_RESOLVE_FAILED]++;
				sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "cannot resolve %s: %s",
					sl_resolver_host(d->resolver, handle),
					gai_strerror(answer.error));
			}
		}
		(void)!configure(d, i);
	}
}

int
sl_peers_alias(void *daemon, const char *name, uint8_t xonly[SL_XONLY_BYTES])
{
	const struct sl_config *c = ((const struct sl_daemon *)daemon)->config;

	for (uint32_t i = 0; i < c->peer_count; i++)
		if (c->peers[i].alias[0] && !strcasecmp(c->peers[i].alias, name)) {
			memcpy(xonly, c->peers[i].xonly, SL_XONLY_BYTES);
			return 0;
		}
	return -ENOENT;
}

/* The state of each configured peer's link, for what hangs on it: names, adverts, the address it has. */
static void
note_link(void *arg, const struct sl_link_info *info)
{
	struct sl_daemon *d = arg;
	uint32_t lo = 0, hi = d->config->peer_count;
	struct sl_app_peer *p;

	if (!info->configured || !hi)
		return;
	while (lo + 1 < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (memcmp(d->config->peers[d->peers[mid].by_key].xonly, info->xonly, SL_XONLY_BYTES) <= 0)
			lo = mid;
		else
			hi = mid;
	}
	lo = d->peers[lo].by_key;
	p = &d->peers[lo];
	if (memcmp(d->config->peers[lo].xonly, info->xonly, SL_XONLY_BYTES) != 0)
		return;
	p->up = info->peer_id != SL_PEER_NONE;
	if (!d->config->peers[lo].via_nostr)
		return;
	sl_rendezvous_expect_dial(d, lo, p->up ? 0 : info->next_dial_us);
	if (p->up && info->addr.kind != SL_ADDR_NONE && !sl_addr_equal(&p->last, &info->addr)) {
		p->last = info->addr;
		p->moved = true;
	}
}

/* A name is wanted while any of the peers that have it is down. */
static void
want_names(struct sl_daemon *d)
{
	bool wanted[SL_RESOLVE_NAMES_MAX] = {false};

	for (uint32_t i = 0; i < d->config->peer_count; i++) {
		if (!d->peers[i].has_names || d->peers[i].up)
			continue;
		for (uint32_t a = 0; a < d->config->peers[i].address_count; a++)
			if (d->peers[i].handle[a] >= 0)
				wanted[d->peers[i].handle[a]] = true;
		for (unsigned n = 0; n < SL_APP_ADVERT_NAMES; n++)
			if (d->peers[i].advert_handle[n] >= 0)
				wanted[d->peers[i].advert_handle[n]] = true;
	}
	sl_nat_names(d, wanted);
	for (int h = 0; h < sl_resolver_count(d->resolver); h++)
		sl_resolver_want(d->resolver, h, wanted[h]);
}

void
sl_peers_second(struct sl_daemon *d)
{
	bool names = sl_resolver_fd(d->resolver) >= 0 && sl_resolver_count(d->resolver) > 0;

	if (!names && !d->rendezvous)
		return;
	sl_links_for_each(d->links, note_link, d);
	for (uint32_t i = 0; d->rendezvous && i < d->config->peer_count; i++)
		if (d->peers[i].moved) {
			d->peers[i].moved = false;
			(void)!configure(d, i);
		}
	if (names)
		want_names(d);
}
