/* SPDX-License-Identifier: BSD-3-Clause */
/* Configured peers: their addresses, literal or through the resolver, as the links take them. */
#include "daemon.h"
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

static void
append_ip(struct sl_daemon *d, struct sl_peer_config *p, const struct sl_conf_address *a,
	uint8_t family, const uint8_t *ip)
{
	int transport = sl_transport_udp(d->config, a->instance, family);
	struct sl_addr *to = &p->addrs[p->addr_count];

	if (transport < 0 || p->addr_count == SL_PEER_ADDRS_MAX)
		return;
	memset(to, 0, sizeof(*to));
	to->kind = family == 4 ? SL_ADDR_UDP4 : SL_ADDR_UDP6;
	to->transport = (uint8_t)transport;
	to->udp_port = a->endpoint.port;
	if (family == 4)
		memcpy(to->u.ip4, ip, 4);
	else
		memcpy(to->u.ip6, ip, 16);
	p->addr_count++;
}

static void
append_mac(struct sl_daemon *d, struct sl_peer_config *p, const struct sl_conf_address *a)
{
	const struct sl_conf_ethernet *e = &d->config->ethernet[a->instance];
	struct sl_addr *to = &p->addrs[p->addr_count];

	if (p->addr_count == SL_PEER_ADDRS_MAX)
		return;
	memset(to, 0, sizeof(*to));
	to->kind = SL_ADDR_ETH;
	to->transport = sl_transport_eth(d->config, (uint32_t)a->instance);
	to->vlan = d->config->dataplane.ports[e->port].vlan;
	to->link = e->port;
	memcpy(to->u.mac, a->mac, 6);
	p->addr_count++;
}

/* The peer as the links are to have it now: literal addresses and what the names come to, in order
 * of priority. */
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
}

int
sl_peers_init(struct sl_daemon *d)
{
	d->peers = calloc(d->config->peer_count ? d->config->peer_count : 1, sizeof(*d->peers));
	if (!d->peers)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->config->peer_count; i++) {
		const struct sl_conf_peer *conf = &d->config->peers[i];

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
	else if (!p.addr_count && p.auto_connect && !d->peers[i].has_names)
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

/* A name is wanted while any of the peers that have it is down. */
static void
note_up(void *arg, const struct sl_link_info *info)
{
	struct sl_daemon *d = arg;

	for (uint32_t i = 0; info->configured && i < d->config->peer_count; i++)
		if (d->peers[i].has_names &&
			!memcmp(d->config->peers[i].xonly, info->xonly, SL_XONLY_BYTES))
			d->peers[i].up = info->peer_id != SL_PEER_NONE;
}

void
sl_peers_second(struct sl_daemon *d)
{
	bool wanted[SL_RESOLVE_NAMES_MAX] = {false};

	if (sl_resolver_fd(d->resolver) < 0)
		return;
	sl_links_for_each(d->links, note_up, d);
	for (uint32_t i = 0; i < d->config->peer_count; i++)
		for (uint32_t a = 0; d->peers[i].has_names && a < d->config->peers[i].address_count;
			a++)
			if (d->peers[i].handle[a] >= 0 && !d->peers[i].up)
				wanted[d->peers[i].handle[a]] = true;
	for (int h = 0; h < sl_resolver_count(d->resolver); h++)
		sl_resolver_want(d->resolver, h, wanted[h]);
}
