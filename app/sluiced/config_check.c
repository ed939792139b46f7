/* SPDX-License-Identifier: BSD-3-Clause */
#include "config_table.h"
#include "../../lib/overlay/nostr/sl_nostr_url.h"
#include "sl_mdns.h"
#include <errno.h>
#include <stdlib.h>

static int
find_port(const struct sl_config *c, const char *name)
{
	for (uint32_t i = 0; i < c->dataplane.port_count; i++)
		if (!strcmp(c->dataplane.ports[i].name, name))
			return (int)i;
	return -1;
}

static bool
is_link_local(const struct sl_ifaddr *ip)
{
	return ip->family == 6 && ip->ip[0] == 0xfe && (ip->ip[1] & 0xc0) == 0x80;
}

static bool
on_link(const struct sl_conf_port *p, const struct sl_ifaddr *ip)
{
	if (is_link_local(ip))
		return true;
	for (uint32_t i = 0; i < p->address_count; i++) {
		const struct sl_ifaddr *a = &p->addresses[i].ip;
		unsigned bits = a->prefix_len;
		bool equal = a->family == ip->family;

		for (unsigned b = 0; equal && b < bits; b++)
			equal = !((a->ip[b / 8] ^ ip->ip[b / 8]) & (0x80u >> b % 8));
		if (equal)
			return true;
	}
	return false;
}

/* Two texts for one device: the arguments behind its name, and a PCI domain of 0, tell nothing apart; two on one interface. */
static bool
same_device(const char *a, const char *b)
{
	const char *ia = strstr(a, ",iface="), *ib = strstr(b, ",iface=");
	size_t n;

	if (ia && ib) {
		n = strcspn(ia + 7, ",");
		if (n == strcspn(ib + 7, ",") && !strncmp(ia + 7, ib + 7, n))
			return true;
	}
	a += strncmp(a, "0000:", 5) ? 0 : 5;
	b += strncmp(b, "0000:", 5) ? 0 : 5;
	n = strcspn(a, ",");
	return n == strcspn(b, ",") && !strncasecmp(a, b, n);
}

/* Who has this address besides; link-local ones may be the same on several ports. */
static const struct sl_conf_ifaddr *
find_twin(const struct sl_config *c, uint32_t port, uint32_t index)
{
	const struct sl_conf_ifaddr *ip = &c->dataplane.ports[port].addresses[index];

	for (uint32_t p = 0; p <= port; p++) {
		const struct sl_conf_port *o = &c->dataplane.ports[p];

		for (uint32_t i = 0; i < (p == port ? index : o->address_count); i++)
			if (o->addresses[i].ip.family == ip->ip.family &&
				!memcmp(o->addresses[i].ip.ip, ip->ip.ip, 16) &&
				(p == port || !is_link_local(&ip->ip)))
				return &o->addresses[i];
	}
	return NULL;
}

/*
 * A prefix of an earlier port that this one's overlaps: which port a destination is behind would hang on the order of the
 * file.
 */
static const struct sl_conf_ifaddr *
find_overlap(const struct sl_config *c, uint32_t port, const struct sl_ifaddr *ip)
{
	for (uint32_t p = 0; p < port; p++)
		for (uint32_t i = 0; i < c->dataplane.ports[p].address_count; i++) {
			const struct sl_conf_ifaddr *o = &c->dataplane.ports[p].addresses[i];
			unsigned bits = o->ip.prefix_len < ip->prefix_len ? o->ip.prefix_len : ip->prefix_len;

			if (o->ip.family == ip->family && !is_link_local(ip) && sl_prefix_match(o->ip.ip, ip->ip, bits))
				return o;
		}
	return NULL;
}

static int
check_addresses(const struct sl_config *c, uint32_t port, struct sl_conf_error *error)
{
	const struct sl_conf_port *p = &c->dataplane.ports[port];

	for (uint32_t i = 0; i < p->address_count; i++) {
		const struct sl_conf_ifaddr *twin = find_twin(c, port, i);

		if (twin)
			return sl_conf_fail(error, p->addresses[i].at,
				"dataplane.ports[].addresses[]: this address already stands in "
				"line %u",
				twin->at.line);
		twin = find_overlap(c, port, &p->addresses[i].ip);
		if (twin)
			return sl_conf_fail(error, p->addresses[i].at,
				"dataplane.ports[].addresses[]: the prefix overlaps that of another port in line %u",
				twin->at.line);
	}
	for (uint32_t r = 0; r < p->route_count; r++)
		for (uint32_t i = 0; i < p->address_count; i++)
			if (p->routes[r].via.family == p->addresses[i].ip.family &&
				!memcmp(p->routes[r].via.ip, p->addresses[i].ip.ip, 16))
				return sl_conf_fail(error, p->routes[r].at,
					"dataplane.ports[].routes[]: via is our own address");
	return 0;
}

/* Workers are named by their CPUs, as the operator has given them. */
static int
check_workers(const struct sl_config *c, struct sl_conf_port *p, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < p->worker_cpu_count; i++) {
		uint32_t w = 0;

		while (w < c->dataplane.worker_cpu_count && c->dataplane.worker_cpus[w].cpu != p->worker_cpus[i].cpu)
			w++;
		if (w == c->dataplane.worker_cpu_count)
			return sl_conf_fail(error, p->worker_cpus[i].at,
				"dataplane.ports[].workers: no worker has CPU %u (dataplane.lcores.workers)",
				p->worker_cpus[i].cpu);
		p->rx_workers |= 1u << w;
	}
	return 0;
}

static int
check_ports(struct sl_config *c, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < c->dataplane.port_count; i++) {
		struct sl_conf_port *p = &c->dataplane.ports[i];

		for (uint32_t j = 0; j < i; j++) {
			if (!strcmp(c->dataplane.ports[j].name, p->name))
				return sl_conf_fail(error, p->at,
					"dataplane.ports[]: a second port named '%s'", p->name);
			if (same_device(c->dataplane.ports[j].device, p->device))
				return sl_conf_fail(error, p->at,
					"dataplane.ports[]: a second port on device '%.100s'",
					p->device);
		}
		if (p->mtu && p->mtu < 576)
			return sl_conf_fail(error, p->at,
				"dataplane.ports[]: mtu %u of '%s' is under 576", p->mtu, p->name);
		for (uint32_t r = 0; r < p->route_count; r++) {
			const struct sl_conf_route *route = &p->routes[r];

			if (route->to.family != route->via.family)
				return sl_conf_fail(error, route->at,
					"dataplane.ports[].routes[]: to and via are of different "
					"families");
			if (!on_link(p, &route->via))
				return sl_conf_fail(error, route->at,
					"dataplane.ports[].routes[]: via is on none of the "
					"prefixes of port '%s'",
					p->name);
		}
		if (check_addresses(c, i, error) || check_workers(c, p, error))
			return -EINVAL;
	}
	return 0;
}

static bool
is_any(const struct sl_conf_endpoint *e)
{
	static const uint8_t zero[16];

	return !memcmp(e->ip, zero, 16);
}

static int
check_udp(struct sl_config *c, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < c->udp_count; i++) {
		struct sl_conf_udp *u = &c->udp[i];
		bool found = is_any(&u->bind) || u->outbound_only;

		if (!u->bind.port && !u->outbound_only)
			return sl_conf_fail(error, u->at,
				"transports.udp.bind_addr: port 0: a port we listen on is named");
		for (uint32_t p = 0; !found && p < c->dataplane.port_count; p++)
			for (uint32_t a = 0; !found && a < c->dataplane.ports[p].address_count;
				a++) {
				const struct sl_ifaddr *ip = &c->dataplane.ports[p].addresses[a].ip;

				found = ip->family == u->bind.family &&
					!memcmp(ip->ip, u->bind.ip, 16);
			}
		if (!found)
			return sl_conf_fail(error, u->at,
				"transports.udp.bind_addr: %s is no address of a dataplane port",
				u->bind.host);
		for (uint32_t j = 0; j < i; j++) {
			const struct sl_conf_udp *o = &c->udp[j];

			if (u->outbound_only || o->outbound_only || o->bind.port != u->bind.port)
				continue;
			if (is_any(&u->bind) || is_any(&o->bind) ||
				(o->bind.family == u->bind.family &&
					!memcmp(o->bind.ip, u->bind.ip, 16)))
				return sl_conf_fail(error, u->at,
					"transports.udp: '%s' and '%s' listen on the same address "
					"and port",
					o->name, u->name);
		}
		if (u->mtu < 1107)
			sl_config_warn(c, u->at,
				"transports.udp.mtu: filters (1107 bytes) do not fit %u: the peer "
				"routes by tree only",
				u->mtu);
	}
	return 0;
}

static int
check_ethernet(struct sl_config *c, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < c->ethernet_count; i++) {
		struct sl_conf_ethernet *e = &c->ethernet[i];
		int port = find_port(c, e->interface);

		if (port < 0)
			return sl_conf_fail(error, e->at,
				"transports.ethernet.interface: no dataplane port is named '%s'",
				e->interface);
		e->port = (uint16_t)port;
		for (uint32_t j = 0; j < i; j++)
			if (c->ethernet[j].port == e->port)
				return sl_conf_fail(error, e->at,
					"transports.ethernet: port '%s' already has an Ethernet "
					"transport",
					e->interface);
		if (e->ethertype == 0x0800 || e->ethertype == 0x0806 || e->ethertype == 0x86dd ||
			e->ethertype == 0x8100 || e->ethertype == 0x88a8)
			return sl_conf_fail(error, e->at,
				"transports.ethernet.ethertype: 0x%04x is IP's, ARP's or a VLAN "
				"tag's",
				e->ethertype);
		if (e->mtu && e->mtu < 576)
			return sl_conf_fail(
				error, e->at, "transports.ethernet.mtu: %u is under 576", e->mtu);
		if (e->beacon_interval_secs < 10) {
			sl_config_warn(
				c, e->at, "transports.ethernet.beacon_interval_secs: raised to 10");
			e->beacon_interval_secs = 10;
		}
	}
	return 0;
}

/* "nat": reached by traversal, from whichever UDP instance does that; the links have nothing to dial. */
static int
check_nat_address(const struct sl_config *c, const struct sl_conf_address *a, struct sl_conf_error *error)
{
	if (!c->nostr.enabled)
		return sl_conf_fail(error, a->at, "peers[].addresses[].addr: nat: needs node.rendezvous.nostr.enabled");
	if (!c->udp_count)
		return sl_conf_fail(error, a->at, "peers[].addresses[].addr: nat: transports.udp is not configured");
	return 0;
}

/* "udp", "udp/<instance>", "ethernet"; what else FIPS has is left out as long as something remains.
 */
static int
check_address(struct sl_config *c, struct sl_conf_address *a, struct sl_conf_error *error)
{
	static const char *const others[] = {"tcp", "tor", "nym", "ble", NULL};
	char why[SL_WHY_SIZE] = "";
	const char *slash;
	unsigned m[6];
	char end;
	int port;

	a->instance = -1;
	if (!strcmp(a->transport, "udp") || !strncmp(a->transport, "udp/", 4)) {
		a->nat = !strcasecmp(a->addr, "nat");
		if (a->nat)
			return check_nat_address(c, a, error);
		if (sl_conf_endpoint_parse(&a->endpoint, a->addr, why))
			return sl_conf_fail(
				error, a->at, "peers[].addresses[].addr: '%.80s' %s", a->addr, why);
		if (!a->endpoint.port)
			return sl_conf_fail(error, a->at,
				"peers[].addresses[].addr: '%.80s' has port 0", a->addr);
		for (uint32_t i = 0; a->transport[3] && i < c->udp_count; i++)
			if (!strcmp(c->udp[i].name, a->transport + 4))
				a->instance = (int16_t)i;
		if (a->transport[3] && a->instance < 0)
			return sl_conf_fail(error, a->at,
				"peers[].addresses[].transport: no UDP instance is named '%s'",
				a->transport + 4);
		if (!c->udp_count)
			return sl_conf_fail(error, a->at,
				"peers[].addresses[].transport: transports.udp is not configured");
		a->kind = SL_ADDR_UDP4;
		return 0;
	}
	if (!strcmp(a->transport, "ethernet")) {
		slash = strrchr(a->addr, '/');
		if (!slash ||
			sscanf(slash + 1, "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2], &m[3],
				&m[4], &m[5], &end) != 6 ||
			strlen(slash + 1) != 17)
			return sl_conf_fail(error, a->at,
				"peers[].addresses[].addr: '%.80s' is not <port "
				"name>/aa:bb:cc:dd:ee:ff",
				a->addr);
		for (unsigned i = 0; i < 6; i++)
			a->mac[i] = (uint8_t)m[i];
		if (a->mac[0] & 1)
			return sl_conf_fail(error, a->at,
				"peers[].addresses[].addr: '%.80s' is a group address", a->addr);
		port = -1;
		for (uint32_t i = 0; i < c->ethernet_count; i++)
			if (strlen(c->ethernet[i].interface) == (size_t)(slash - a->addr) &&
				!strncmp(c->ethernet[i].interface, a->addr,
					(size_t)(slash - a->addr)))
				port = (int)i;
		if (port < 0)
			return sl_conf_fail(error, a->at,
				"peers[].addresses[].addr: no Ethernet transport on port '%.*s'",
				(int)(slash - a->addr), a->addr);
		a->instance = (int16_t)port;
		a->kind = SL_ADDR_ETH;
		return 0;
	}
	for (unsigned i = 0; others[i]; i++)
		if (!strcmp(a->transport, others[i])) {
			sl_config_warn(c, a->at,
				"peers[].addresses[]: transport '%s': known to FIPS, not supported "
				"by Sluice: "
				"address left out",
				a->transport);
			return 0;
		}
	return sl_conf_fail(error, a->at,
		"peers[].addresses[].transport: '%s' is neither udp, udp/<instance> nor ethernet",
		a->transport);
}

static int
by_priority(const void *a, const void *b)
{
	const struct sl_conf_address *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	/* qsort is not stable: keep the file's order. */
	if (x->at.line != y->at.line)
		return x->at.line < y->at.line ? -1 : 1;
	return x->at.column < y->at.column ? -1 : x->at.column > y->at.column;
}

static int
check_peers(struct sl_config *c, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < c->peer_count; i++) {
		struct sl_conf_peer *p = &c->peers[i];
		uint32_t usable = 0;

		for (uint32_t j = 0; j < i; j++)
			if (!memcmp(c->peers[j].xonly, p->xonly, SL_XONLY_BYTES))
				return sl_conf_fail(error, p->at,
					"peers[]: this npub already stands in line %u",
					c->peers[j].at.line);
		for (uint32_t a = 0; a < p->address_count; a++) {
			int rc = check_address(c, &p->addresses[a], error);

			if (rc)
				return rc;
			usable += p->addresses[a].kind != SL_ADDR_NONE || p->addresses[a].nat;
		}
		if (p->address_count && !usable && !p->via_nostr)
			return sl_conf_fail(error, p->at,
				"peers[]: none of its addresses is on a transport of Sluice");
		if (!p->address_count && !p->via_nostr && p->connect_policy == SL_CONF_AUTO_CONNECT)
			return sl_conf_fail(error, p->at,
				"peers[]: no addresses to dial (connect_policy: manual waits for "
				"the peer to dial us, via_nostr asks for its advert)");
		if (p->connect_policy == SL_CONF_ON_DEMAND)
			sl_config_warn(c, p->at,
				"peers[].connect_policy: on_demand does nothing, as in FIPS: the "
				"peer is not dialled");
		if (p->address_count)
			qsort(p->addresses, p->address_count, sizeof(*p->addresses), by_priority);
	}
	return 0;
}

/* --- Nostr ---------------------------------------------------------------------------------- */

static int
default_list(struct sl_conf_text **list, uint32_t *count, const char *const *texts)
{
	uint32_t n = 0;

	if (*list)
		return 0;
	while (texts[n])
		n++;
	*list = calloc(n, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		snprintf((*list)[i].text, sizeof((*list)[i].text), "%s", texts[i]);
	*count = n;
	return 0;
}

static int
check_twice(const struct sl_conf_text *list, uint32_t count, const char *key, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (sl_nostr_url_same(list[i].text, list[j].text))
				return sl_conf_fail(error, list[i].at, "%s: '%.100s' stands there twice", key, list[i].text);
	return 0;
}

/* What asks for Nostr while it is off. */
static int
check_nostr_off(const struct sl_config *c, struct sl_conf_error *error)
{
	for (uint32_t i = 0; i < c->udp_count; i++)
		if (c->udp[i].advertise_on_nostr)
			return sl_conf_fail(error, c->udp[i].at,
				"transports.udp.advertise_on_nostr: needs node.rendezvous.nostr.enabled");
	for (uint32_t i = 0; i < c->peer_count; i++)
		if (c->peers[i].via_nostr)
			return sl_conf_fail(error, c->peers[i].at, "peers[].via_nostr: needs node.rendezvous.nostr.enabled");
	return 0;
}

static int
check_nostr_times(const struct sl_config *c, struct sl_conf_error *error)
{
	static const struct sl_pos nowhere;

	if (c->nostr.signal_ttl_secs + 120 >= c->nostr.replay_window_secs)
		return sl_conf_fail(error, nowhere,
			"node.rendezvous.nostr: replay_window_secs must be above signal_ttl_secs + 120");
	if (c->nostr.advert_refresh_secs >= c->nostr.advert_ttl_secs)
		sl_config_warn((struct sl_config *)(uintptr_t)c, nowhere,
			"node.rendezvous.nostr: advert_refresh_secs is not below advert_ttl_secs: adverts run out before they are "
			"renewed");
	return 0;
}

static int
check_nostr(struct sl_config *c, struct sl_conf_error *error)
{
	static const char *const relays[] = {"wss://relay.damus.io", "wss://nos.lol", "wss://offchain.pub", NULL};
	static const char *const servers[] = {"stun:stun.l.google.com:19302", "stun:stun.cloudflare.com:3478",
		"stun:global.stun.twilio.com:3478", NULL};
	static const struct sl_pos nowhere;
	int rc;

	if (!c->nostr.enabled)
		return check_nostr_off(c, error);
#ifndef SL_HAVE_NOSTR
	return sl_conf_fail(error, nowhere, "node.rendezvous.nostr.enabled: this build has no libwebsockets");
#endif
	rc = default_list(&c->nostr.advert_relays, &c->nostr.advert_relay_count, relays);
	if (!rc)
		rc = default_list(&c->nostr.dm_relays, &c->nostr.dm_relay_count, relays);
	if (!rc)
		rc = default_list(&c->nostr.stun_servers, &c->nostr.stun_server_count, servers);
	if (!rc)
		rc = check_twice(c->nostr.advert_relays, c->nostr.advert_relay_count, "node.rendezvous.nostr.advert_relays",
			error);
	if (!rc)
		rc = check_twice(c->nostr.dm_relays, c->nostr.dm_relay_count, "node.rendezvous.nostr.dm_relays", error);
	if (!rc && !c->nostr.advert_relay_count && !c->nostr.dm_relay_count)
		rc = sl_conf_fail(error, nowhere, "node.rendezvous.nostr: no relays");
	if (!rc)
		rc = check_nostr_times(c, error);
	for (uint32_t i = 0; !rc && i < c->udp_count; i++) {
		const struct sl_conf_udp *u = &c->udp[i];

		if (u->advertise_on_nostr && !u->public && !u->outbound_only &&
			(!c->nostr.dm_relay_count || !c->nostr.stun_server_count))
			rc = sl_conf_fail(error, u->at,
				"transports.udp.advertise_on_nostr: without public: true it needs node.rendezvous.nostr.dm_relays and "
				"stun_servers");
	}
	return rc;
}

int
sl_config_check(struct sl_config *c, struct sl_conf_error *error)
{
	int rc;

	if (c->link_dead_timeout_secs <= c->heartbeat_interval_secs)
		sl_config_warn(c, (struct sl_pos){0, 0},
			"node.link_dead_timeout_secs is not above node.heartbeat_interval_secs: "
			"idle links will die");
	for (uint32_t i = 0; i < c->dataplane.worker_cpu_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (c->dataplane.worker_cpus[i].cpu == c->dataplane.worker_cpus[j].cpu)
				return sl_conf_fail(error, c->dataplane.worker_cpus[i].at,
					"dataplane.lcores.workers: CPU %u stands there twice",
					c->dataplane.worker_cpus[i].cpu);
	if (!sl_mdns_service_valid(c->lan.service_type))
		return sl_conf_fail(error, (struct sl_pos){0, 0},
			"node.rendezvous.lan.service_type: '%.80s' is no service (_name._udp.local.)", c->lan.service_type);
	rc = check_ports(c, error);
	if (!rc)
		rc = check_udp(c, error);
	if (!rc)
		rc = check_ethernet(c, error);
	if (!rc)
		rc = check_peers(c, error);
	if (!rc)
		rc = check_nostr(c, error);
	return rc;
}

int
sl_config_check_run(const struct sl_config *c, struct sl_conf_error *error)
{
	if (!c->dataplane.port_count)
		return sl_conf_fail(error, (struct sl_pos){0, 0}, "dataplane.ports: there is no port to run on");
	if (!c->udp_count && !c->ethernet_count)
		return sl_conf_fail(
			error, (struct sl_pos){0, 0}, "transports: there is neither udp nor ethernet");
	return 0;
}
