/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports, their addresses, and which way a destination goes. */
#include <errno.h>
#include "neigh_int.h"

bool
neigh_is_own(const struct neigh_port *port, uint8_t family, const uint8_t *ip)
{
	for (unsigned i = 0; i < port->addr_count; i++)
		if (port->addrs[i].family == family && memcmp(port->addrs[i].ip, ip, neigh_ip_bytes(family)) == 0)
			return true;
	return false;
}

/* The address of the port whose prefix holds ip most narrowly. */
static const struct sl_ifaddr *
covering(const struct neigh_port *port, uint8_t family, const uint8_t *ip)
{
	const struct sl_ifaddr *best = NULL;

	for (unsigned i = 0; i < port->addr_count; i++) {
		const struct sl_ifaddr *a = &port->addrs[i];

		if (a->family == family && sl_prefix_match(a->ip, ip, a->prefix_len) &&
			(!best || a->prefix_len > best->prefix_len))
			best = a;
	}
	return best;
}

bool
neigh_on_link(const struct neigh_port *port, uint8_t family, const uint8_t *ip)
{
	return covering(port, family, ip) != NULL;
}

const uint8_t *
neigh_source(const struct neigh_port *port, uint8_t family, const uint8_t *neighbour)
{
	const struct sl_ifaddr *a = covering(port, family, neighbour);

	for (unsigned i = 0; !a && i < port->addr_count; i++)
		if (port->addrs[i].family == family)
			a = &port->addrs[i];
	return a ? a->ip : NULL;
}

static int
add_address(struct neigh_port *p, const struct sl_ifaddr *a)
{
	if (p->addr_count == SL_PORT_ADDRS_MAX + 1)
		return -ENOSPC;
	if (neigh_is_own(p, a->family, a->ip))
		return -EEXIST;
	p->addrs[p->addr_count++] = *a;
	return 0;
}

/* The parser's rules decide what an address of ours may be, and when the link-local one is derived. */
static int
add_addresses(struct neigh_port *p, const struct sl_neigh_port *config)
{
	struct sl_parse_local rules;
	bool derived = false;

	sl_parse_local_init(&rules, config->mac, config->vlan, config->port);
	for (unsigned i = 0; i < config->addr_count; i++) {
		int rc = sl_parse_local_addr(&rules, &config->addrs[i]);

		if (rc)
			return rc;
		if (rules.link_local_derived && !derived) {
			struct sl_ifaddr ll = {.family = 6, .prefix_len = 64};

			derived = true;
			sl_ip6_link_local(ll.ip, config->mac);
			rc = add_address(p, &ll);
			if (rc)
				return rc;
		}
		rc = add_address(p, &config->addrs[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static int
add_route(struct sl_neigh *n, const struct neigh_route *r)
{
	if (n->route_count == NEIGH_ROUTES_MAX)
		return -ENOSPC;
	n->routes[n->route_count++] = *r;
	return 0;
}

static int
add_static_route(struct sl_neigh *n, const struct sl_neigh_port *config, const struct sl_static_route *s)
{
	const struct neigh_port *p = &n->ports[config->port];
	struct neigh_route r = {.family = s->family, .prefix_len = s->prefix_len, .port = config->port};

	if ((s->family != 4 && s->family != 6) || s->prefix_len > (s->family == 4 ? 32 : 128))
		return -EINVAL;
	if (!neigh_on_link(p, s->family, s->gateway) || neigh_is_own(p, s->family, s->gateway))
		return -EINVAL;
	memcpy(r.prefix, s->prefix, neigh_ip_bytes(s->family));
	memcpy(r.gateway, s->gateway, neigh_ip_bytes(s->family));
	return add_route(n, &r);
}

void
neigh_port_mac(struct neigh_port *p, const uint8_t mac[6])
{
	uint8_t derived[16];

	sl_ip6_link_local(derived, p->mac);
	memcpy(p->mac, mac, 6);
	for (unsigned i = 0; i < p->addr_count; i++)
		if (p->addrs[i].family == 6 && memcmp(p->addrs[i].ip, derived, 16) == 0)
			sl_ip6_link_local(p->addrs[i].ip, mac);
}

void
neigh_port_announce(struct sl_neigh *n, uint16_t port)
{
	const struct neigh_port *p = &n->ports[port];

	for (unsigned i = 0; i < p->addr_count; i++) {
		if (p->addrs[i].family == 4)
			neigh_arp_announce(n, port, p->addrs[i].ip);
		else
			neigh_nd_announce(n, port, p->addrs[i].ip);
	}
}

int
sl_neigh_port_add(struct sl_neigh *n, const struct sl_neigh_port *config)
{
	const unsigned routes_before = n->route_count;
	struct neigh_port *p;
	int rc;

	if (config->port >= SL_NEIGH_PORTS_MAX || config->addr_count > SL_PORT_ADDRS_MAX ||
		config->route_count > SL_ROUTES_MAX)
		return -EINVAL;
	p = &n->ports[config->port];
	if (p->used)
		return -EEXIST;
	memset(p, 0, sizeof(*p));
	memcpy(p->mac, config->mac, 6);
	p->vlan = config->vlan & 0x0fff;
	p->mtu = config->mtu;
	rc = add_addresses(p, config);
	if (rc)
		goto fail;
	for (unsigned i = 0; i < p->addr_count; i++) {
		struct neigh_route r = {.family = p->addrs[i].family, .prefix_len = p->addrs[i].prefix_len,
			.on_link = true, .port = config->port};

		/* fe80::/10 goes by the scope in the address, never by a route. */
		if (r.family == 6 && sl_ip6_is_link_local(p->addrs[i].ip))
			continue;
		memcpy(r.prefix, p->addrs[i].ip, 16);
		rc = add_route(n, &r);
		if (rc)
			goto fail;
	}
	for (unsigned i = 0; i < config->route_count; i++) {
		rc = add_static_route(n, config, &config->routes[i]);
		if (rc)
			goto fail;
	}
	p->used = true;
	neigh_port_announce(n, config->port);
	return 0;
fail:
	n->route_count = routes_before;
	memset(p, 0, sizeof(*p));
	return rc;
}

/* A destination that no packet of ours may have: group, nobody, broadcast, ourselves. */
static bool
destination_bad(const struct sl_neigh *n, uint8_t family, const uint8_t *ip)
{
	static const uint8_t low[15];

	if (family == 4 ? ip[0] == 0 || ip[0] == 127 || ip[0] >= 224 :
			  ip[0] == 0xff || (memcmp(ip, low, 15) == 0 && ip[15] <= 1))
		return true;
	for (unsigned i = 0; i < SL_NEIGH_PORTS_MAX; i++) {
		const struct neigh_port *p = &n->ports[i];

		if (!p->used)
			continue;
		if (neigh_is_own(p, family, ip))
			return true;
		for (unsigned k = 0; family == 4 && k < p->addr_count; k++) {
			const struct sl_ifaddr *a = &p->addrs[k];
			const uint32_t host = a->prefix_len < 31 ? 0xffffffffu >> a->prefix_len : 0;

			if (a->family == 4 && host && sl_get32be(ip) == (sl_get32be(a->ip) | host))
				return true;
		}
	}
	return false;
}

static void
fill_hop(const struct sl_neigh *n, uint16_t port, uint8_t family, const uint8_t *next, struct sl_neigh_hop *hop)
{
	const struct neigh_port *p = &n->ports[port];
	const uint8_t *src = neigh_source(p, family, next);

	hop->port = port;
	hop->vlan = p->vlan;
	hop->mtu = p->mtu;
	hop->family = family;
	memcpy(hop->src_mac, p->mac, 6);
	memcpy(hop->next_ip, next, neigh_ip_bytes(family));
	if (src)
		memcpy(hop->src_ip, src, neigh_ip_bytes(family));
}

static int
lookup_eth(const struct sl_neigh *n, const struct sl_addr *to, struct sl_neigh_hop *hop)
{
	if (to->link >= SL_NEIGH_PORTS_MAX || !n->ports[to->link].used || (to->u.mac[0] & 1))
		return -EINVAL;
	hop->port = to->link;
	hop->vlan = n->ports[to->link].vlan;
	hop->mtu = n->ports[to->link].mtu;
	memcpy(hop->src_mac, n->ports[to->link].mac, 6);
	memcpy(hop->dst_mac, to->u.mac, 6);
	return 0;
}

int
neigh_route_lookup(const struct sl_neigh *n, const struct sl_addr *to, struct sl_neigh_hop *hop)
{
	const struct neigh_route *best = NULL;
	uint8_t family;

	memset(hop, 0, sizeof(*hop));
	if (to->kind == SL_ADDR_ETH)
		return lookup_eth(n, to, hop);
	if (to->kind != SL_ADDR_UDP4 && to->kind != SL_ADDR_UDP6)
		return -EINVAL;
	family = to->kind == SL_ADDR_UDP4 ? 4 : 6;
	if (destination_bad(n, family, to->u.ip6))
		return -EINVAL;
	if (family == 6 && sl_ip6_is_link_local(to->u.ip6)) {
		if (to->link >= SL_NEIGH_PORTS_MAX || !n->ports[to->link].used ||
			!neigh_on_link(&n->ports[to->link], 6, to->u.ip6))
			return -ENETUNREACH;
		fill_hop(n, to->link, 6, to->u.ip6, hop);
		return 0;
	}
	for (unsigned i = 0; i < n->route_count; i++) {
		const struct neigh_route *r = &n->routes[i];

		if (r->family == family && sl_prefix_match(r->prefix, to->u.ip6, r->prefix_len) &&
			(!best || r->prefix_len > best->prefix_len))
			best = r;
	}
	if (!best)
		return -ENETUNREACH;
	fill_hop(n, best->port, family, best->on_link ? to->u.ip6 : best->gateway, hop);
	return 0;
}
