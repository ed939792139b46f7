/* SPDX-License-Identifier: BSD-3-Clause */
/* From the configuration to everything that stands before the first event: each step a function, in
 * order. */
#include <errno.h>
#include <rte_version.h>
#include <stdlib.h>
#include "capacity.h"
#include "sl_aead_cryptodev.h"
#include "daemon.h"
#include "nodekey.h"
#include "sl_port_check.h"

static int
make_identity(struct sl_daemon *d)
{
	static const char *const from[] = {"of the configuration", "of the key file",
		"made and kept in the key file", "made for this run only"};
	enum sl_nodekey_source source = SL_NODEKEY_EPHEMERAL;
	char why[256], npub[SL_NPUB_SIZE];

	d->identity = sl_nodekey_load(d->config, d->config_path, &source, why);
	/* The one thing that is taken out of the configuration: the key lives on in memory that no core file holds. */
	sl_wipe((char *)(uintptr_t)d->config->identity.nsec, sizeof(d->config->identity.nsec));
	if (!d->identity) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "%s", why);
		return -EINVAL;
	}
	sl_npub_format(npub, sl_identity_xonly(d->identity));
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "we are %s, a key %s", npub, from[source]);
	return 0;
}

/* An engine whose known answers do not come out is never used, and that is not to be overlooked. */
static void
check_engines(void)
{
	for (const struct sl_aead_backend *const *b = sl_aead_backends(); *b; b++)
		if (sl_aead_self_test(*b) == SL_AEAD_FAILED)
			sl_log(SL_LOG_ERROR, SL_TOPIC_CRYPTO,
				"AEAD ENGINE %s FAILED ITS SELF-TEST: it is disabled. This CPU, this build or this virtual machine "
				"computes wrong",
				(*b)->name);
}

/* Workers and control seal, each with a context of its own. */
static int
make_device_engine(struct sl_daemon *d)
{
	const char *error = "", *device = d->config->dataplane.aead_device;
	int rc = sl_aead_cryptodev_start(device, d->plan.workers + 1, &error);

	if (rc) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_CRYPTO, "dataplane.aead_device: %s: %s", device, error);
		return rc;
	}
	d->aead = &sl_aead_cryptodev;
	sl_log(SL_LOG_NOTICE, SL_TOPIC_CRYPTO, "AEAD: crypto device %s", sl_aead_cryptodev_name());
	return 0;
}

/* After EAL, which a crypto device needs. */
static int
make_engine(struct sl_daemon *d)
{
	const char *name = d->config->dataplane.aead;
	const struct sl_aead_backend *wide, *narrow;

	check_engines();
	if (!strcmp(name, sl_aead_cryptodev.name))
		return make_device_engine(d);
	d->aead = sl_aead_backend_find(name);
	if (!d->aead) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_CRYPTO, "dataplane.aead: %s cannot be used on this machine", name);
		return -ENOTSUP;
	}
	sl_aead_auto_uses(&wide, &narrow);
	if (!strcmp(name, "auto"))
		sl_log(SL_LOG_NOTICE, SL_TOPIC_CRYPTO, "AEAD: auto, of %s and %s", wide ? wide->name : "no engine across packets",
			narrow->name);
	else
		sl_log(SL_LOG_NOTICE, SL_TOPIC_CRYPTO, "AEAD: %s", name);
	return 0;
}

/* What can be told of the devices is told before EAL lays out memory. */
static int
check_devices(struct sl_daemon *d)
{
	for (uint32_t i = 0; i < d->config->dataplane.port_count; i++) {
		const struct sl_conf_port *p = &d->config->dataplane.ports[i];
		const char *error = "";
		int rc = sl_port_check(p->device, &error);

		if (rc) {
			sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "port %s (%s): %s", p->name, p->device, error);
			return rc;
		}
	}
	return 0;
}

/* Said before anything is made: tables that cannot be filled would be found out under load. */
static int
check_memory(struct sl_daemon *d, char why[256])
{
	uint64_t most, available;
	struct sl_capacity c;
	int rc;

	sl_capacity_of(&c, d->config, &d->plan);
	sl_capacity_have(&most, &available);
	rc = sl_capacity_check(&c, most, available, why);
	if (rc < 0)
		return rc;
	if (rc > 0)
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "memory: %s", why);
	sl_log(SL_LOG_INFO, SL_TOPIC_APP,
		"memory when all tables are full: %llu MiB: %u peers %llu, %u destinations %llu, %u workers %llu, else %llu, buffers and "
		"rings in ordinary pages %llu",
		(unsigned long long)(c.total >> 20), sl_capacity_peers(d->config), (unsigned long long)(c.peers >> 20),
		d->config->cache.coord_size, (unsigned long long)(c.destinations >> 20), d->plan.workers,
		(unsigned long long)(c.workers >> 20), (unsigned long long)(c.fixed >> 20), (unsigned long long)(c.eal >> 20));
	return 0;
}

static int
make_eal(struct sl_daemon *d)
{
	char why[256], cpus[128];
	int n = 0;
	int rc = sl_eal_plan(&d->plan, d->config, why);

	if (!rc)
		rc = check_memory(d, why);
	if (!rc)
		rc = sl_eal_start(&d->plan, d->config, why);
	if (rc) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "%s", why);
		return rc;
	}
	for (unsigned i = 0; i < d->plan.workers && (size_t)n < sizeof(cpus); i++)
		n += snprintf(cpus + n, sizeof(cpus) - (size_t)n, "%s%u", i ? "," : "",
			d->plan.worker_cpus[i]);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP,
		"%s: %u MiB of %s; control on CPU %u, workers: %u, on CPU %s", rte_version(),
		d->plan.memory_mb, d->plan.why_memory, d->plan.control_cpu, d->plan.workers, cpus);
	return 0;
}

static int
make_table(struct sl_daemon *d)
{
	struct sl_session_table_config c = {.workers = (uint16_t)d->plan.workers,
		.reclaim = sl_sinks_reclaim,
		.reclaim_arg = d};

	d->max_peers = sl_capacity_peers(d->config);
	c.max_peers = d->max_peers;
	c.max_sessions = sl_capacity_sessions(d->config);
	d->peer_up = calloc(d->max_peers, 1);
	d->table = sl_session_table_create(&c);
	if (!d->peer_up || !d->table || sl_port_events_init(d)) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP,
			"session table for %u sessions: %s (locked memory limit?)", c.max_sessions,
			strerror(errno));
		return -ENOMEM;
	}
	return 0;
}

static int
make_router(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	struct sl_router_config r;
	struct sl_router_sink sink;

	sl_router_config_default(&r);
	r.max_peers = d->max_peers;
	r.announce_min_interval_us = c->tree.announce_min_interval_ms * 1000;
	r.parent_hysteresis = c->tree.parent_hysteresis;
	r.hold_down_us = c->tree.hold_down_secs * 1000000;
	r.reeval_interval_us = c->tree.reeval_interval_secs * 1000000;
	r.flap_threshold = c->tree.flap_threshold;
	r.flap_window_us = c->tree.flap_window_secs * 1000000;
	r.flap_dampening_us = c->tree.flap_dampening_secs * 1000000;
	r.filter_debounce_us = c->bloom.update_debounce_ms * 1000;
	r.max_inbound_fpr = c->bloom.max_inbound_fpr;
	r.coord_size = c->cache.coord_size;
	r.coord_ttl_us = c->cache.coord_ttl_secs * 1000000;
	r.lookup_ttl = c->lookup.ttl;
	r.lookup_recent_us = c->lookup.recent_expiry_secs * 1000000;
	r.lookup_forward_min_us = c->lookup.forward_min_interval_secs * 1000000;
	r.default_ttl = c->default_ttl;
	r.ecn_enabled = c->ecn.enabled;
	r.ecn_loss = c->ecn.loss_threshold;
	r.ecn_etx = c->ecn.etx_threshold;
	sl_sinks_router(d, &sink);
	d->router = sl_router_create(&r, d->identity, &sink, d->unix_start_s, d->now_us);
	if (!d->router)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "router: %s", strerror(errno));
	return d->router ? 0 : -errno;
}

static int
add_port(struct sl_daemon *d, const struct sl_conf_port *conf)
{
	struct sl_port_config *p = calloc(1, sizeof(*p));
	char used[SL_CONF_NAME_SIZE], why[256];
	const char *step = NULL;
	int rc;

	if (!p)
		return -ENOMEM;
	memcpy(p->name, conf->name, sizeof(p->name));
	memcpy(p->device, conf->device, sizeof(p->device));
	p->mtu = conf->mtu;
	p->vlan = conf->vlan;
	p->rx_descriptors = conf->rx_descriptors;
	p->tx_descriptors = conf->tx_descriptors;
	p->ignore_rx_checksum = conf->ignore_rx_checksum;
	p->rx_workers = conf->rx_workers;
	p->steering = (enum sl_steering)conf->steering;
	for (uint32_t i = 0; i < conf->address_count; i++)
		p->addrs[p->addr_count++] = conf->addresses[i].ip;
	for (uint32_t i = 0; i < conf->route_count; i++) {
		struct sl_static_route *r = &p->routes[p->route_count++];

		r->family = conf->routes[i].to.family;
		r->prefix_len = conf->routes[i].to.prefix_len;
		memcpy(r->prefix, conf->routes[i].to.ip, 16);
		memcpy(r->gateway, conf->routes[i].via.ip, 16);
	}
	rc = sl_profile_apply(p, conf, d->config->dataplane.profiles_dir, used, why);
	if (rc) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "port %s: %s", conf->name, why);
		goto out;
	}
	if (!strcmp(used, "none") && strcmp(conf->profile, "none"))
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "port %s: no driver profile for %s in %s, going by what the driver says",
			conf->name, conf->device, d->config->dataplane.profiles_dir);
	memcpy(d->profiles[sl_dataplane_ports(d->dp)], used, sizeof(used));
	rc = sl_dataplane_port_add(d->dp, p, &step);
	if (rc < 0)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "port %s (%s): %s: %s", conf->name, conf->device,
			step ? step : "cannot be used", strerror(-rc));
	else
		sl_log(SL_LOG_INFO, SL_TOPIC_APP, "port %s is %s, profile %s", conf->name,
			conf->device, used);
	rc = rc < 0 ? rc : 0;
out:
	free(p);
	return rc;
}

static bool
is_any(const struct sl_conf_endpoint *e)
{
	static const uint8_t zero[16];

	return !memcmp(e->ip, zero, 16);
}

/* A port for an instance that only dials: in the dynamic range, not one that another instance
 * listens on. */
static uint16_t
free_udp_port(const struct sl_config *c, const uint16_t *taken, uint32_t n)
{
	for (;;) {
		uint16_t port = (uint16_t)(49152 + sl_random_below(16384));
		bool used = false;

		for (uint32_t i = 0; i < c->udp_count; i++)
			used |= c->udp[i].bind.port == port;
		for (uint32_t i = 0; i < n; i++)
			used |= taken[i] == port;
		if (!used)
			return port;
	}
}

/* Packets of a transport's MTU must fit every port they can leave by. */
static void
check_udp_mtu(struct sl_daemon *d, uint32_t transport)
{
	const struct sl_conf_udp *u = &d->config->udp[transport];
	bool six = sl_transport_udp(d->config, (int)transport, 6) >= 0;
	unsigned needed = u->mtu + (six ? 48u : 28u);

	for (uint16_t i = 0; i < sl_dataplane_ports(d->dp); i++) {
		struct sl_port_stats s;

		if (!sl_dataplane_port_stats(d->dp, i, &s) && s.mtu < needed)
			sl_log(SL_LOG_WARNING, SL_TOPIC_APP,
				"transports.udp.mtu: packets of %u bytes need %u on the wire, port "
				"%s has %u",
				u->mtu, needed, s.name, s.mtu);
	}
}

static int
add_transports(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	uint16_t ports[SL_CONF_TRANSPORTS_MAX];
	struct sl_port_stats stats;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->udp_count; i++) {
		const struct sl_conf_udp *u = &c->udp[i];
		struct sl_dataplane_transport t = {
			.id = (uint8_t)i, .kind = SL_ADDR_UDP4, .mtu = u->mtu};
		struct sl_transport_config l = {.id = (uint8_t)i,
			.kind = SL_ADDR_UDP4,
			.mtu = u->mtu,
			.accept_connections = u->accept_connections && !u->outbound_only};

		t.udp_port = ports[i] =
			u->outbound_only ? free_udp_port(c, ports, i) : u->bind.port;
		t.bind_any4 = u->outbound_only || is_any(&u->bind);
		t.bind_any6 = !u->outbound_only && is_any(&u->bind) && u->bind.family == 6;
		if (!t.bind_any4) {
			t.bind.family = u->bind.family;
			memcpy(t.bind.ip, u->bind.ip, 16);
		}
		rc = sl_dataplane_transport_add(d->dp, &t);
		if (!rc)
			rc = sl_links_transport_add(d->links, &l);
		d->udp_ports[i] = t.udp_port;
		check_udp_mtu(d, i);
	}
	for (uint32_t i = 0; !rc && i < c->ethernet_count; i++) {
		const struct sl_conf_ethernet *e = &c->ethernet[i];
		uint8_t id = sl_transport_eth(c, i);
		struct sl_dataplane_transport t = {
			.id = id, .kind = SL_ADDR_ETH, .port = e->port, .ethertype = e->ethertype};
		struct sl_transport_config l = {
			.id = id, .kind = SL_ADDR_ETH, .accept_connections = e->accept_connections};

		rc = sl_dataplane_port_stats(d->dp, e->port, &stats);
		if (rc)
			break;
		t.mtu = (uint16_t)(stats.mtu - 3);
		if (e->mtu && e->mtu > t.mtu)
			sl_log(SL_LOG_WARNING, SL_TOPIC_APP,
				"transports.ethernet.mtu: %u is more than port %s carries: %u",
				e->mtu, e->interface, t.mtu);
		else if (e->mtu)
			t.mtu = e->mtu;
		l.mtu = t.mtu;
		rc = sl_dataplane_transport_add(d->dp, &t);
		if (!rc)
			rc = sl_links_transport_add(d->links, &l);
	}
	if (rc)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "transports: %s", strerror(-rc));
	return rc;
}

/* Packets that claim to come from ourselves are dropped by the links. */
static void
add_own_addresses(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	int rc = 0;

	for (uint32_t t = 0; t < c->udp_count; t++)
		for (uint32_t p = 0; p < c->dataplane.port_count; p++)
			for (uint32_t i = 0; i < c->dataplane.ports[p].address_count; i++) {
				const struct sl_ifaddr *ip = &c->dataplane.ports[p].addresses[i].ip;
				struct sl_addr a;

				memset(&a, 0, sizeof(a));
				a.kind = ip->family == 4 ? SL_ADDR_UDP4 : SL_ADDR_UDP6;
				a.transport = (uint8_t)t;
				a.udp_port = d->udp_ports[t];
				memcpy(a.u.ip6, ip->ip, ip->family == 4 ? 4 : 16);
				if (sl_links_own_addr_add(d->links, &a))
					rc = -ENOSPC;
			}
	for (uint32_t t = 0; t < c->ethernet_count; t++) {
		struct sl_port_stats stats;
		struct sl_addr a;

		if (sl_dataplane_port_stats(d->dp, c->ethernet[t].port, &stats))
			continue;
		memset(&a, 0, sizeof(a));
		a.kind = SL_ADDR_ETH;
		a.transport = sl_transport_eth(c, t);
		a.vlan = c->dataplane.ports[c->ethernet[t].port].vlan;
		a.link = c->ethernet[t].port;
		memcpy(a.u.mac, stats.mac, 6);
		if (sl_links_own_addr_add(d->links, &a))
			rc = -ENOSPC;
	}
	if (rc)
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP,
			"more own addresses than the links remember: forged ones of the rest are "
			"answered");
}

static int
make_dataplane(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	struct sl_dataplane_config dc = {.workers = (uint16_t)d->plan.workers,
		.mbufs = d->plan.mbufs,
		.mbuf_data_size = c->dataplane.mbuf_data_size,
		.ring_size = c->dataplane.ring_size,
		.hop_cache_entries = sl_capacity_hop_cache(c),
		.burst = c->dataplane.burst,
		.elephant = (enum sl_elephant_mode)c->dataplane.elephant,
		.aead = d->aead,
		.measure_cycles = c->dataplane.measure_cycles,
		.idle_sleep_us = c->dataplane.idle_sleep_us,
		.mdns = c->lan.enabled};
	struct sl_dataplane_sink sink;
	int rc = 0;

	sl_sinks_dataplane(d, &sink);
	d->dp = sl_dataplane_create(
		&dc, sl_session_table_view(d->table), sl_router_fib(d->router), &sink);
	if (!d->dp) {
		rc = -errno;
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP,
			"data plane: %s (dataplane.memory, dataplane.pools)", strerror(errno));
	}
	for (uint32_t i = 0; !rc && i < c->dataplane.port_count; i++)
		rc = add_port(d, &c->dataplane.ports[i]);
	return rc;
}

static int
make_links(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	struct sl_links_config l;
	struct sl_links_sink sink;

	sl_links_config_default(&l);
	l.max_peers = c->limits.max_peers;
	l.max_pending_inbound = c->limits.max_pending_inbound;
	l.handshake_burst = c->rate.handshake_burst;
	l.handshake_rate_per_s = c->rate.handshake_rate;
	l.established_burst = c->rate.established_burst;
	l.established_rate_per_s = c->rate.established_rate;
	l.handshake_timeout_us = c->rate.handshake_timeout_secs * 1000000;
	l.resend_interval_us = c->rate.resend_interval_ms * 1000;
	l.resend_backoff = c->rate.resend_backoff;
	l.max_resends = c->rate.handshake_max_resends;
	l.heartbeat_us = c->heartbeat_interval_secs * 1000000;
	l.dead_timeout_us = c->link_dead_timeout_secs * 1000000;
	l.retry_max = c->retry.max_retries;
	l.retry_base_us = c->retry.base_interval_secs * 1000000;
	l.retry_max_backoff_us = c->retry.max_backoff_secs * 1000000;
	l.rekey_enabled = c->rekey.enabled;
	l.rekey_after_us = c->rekey.after_secs * 1000000;
	l.rekey_after_messages = c->rekey.after_messages;
	l.mmp_mode = c->mmp_mode;
	l.first_flight = c->dataplane.first_flight;
	/* The default folder may be missing; one that was written down may not. */
	d->acl = sl_acl_create(c->dataplane.access_dir, strcmp(c->dataplane.access_dir, SL_CONF_ACCESS_DIR) != 0, sl_peers_alias, d);
	if (!d->acl) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "access lists: %s", strerror(errno));
		return -errno;
	}
	sl_sinks_links(d, &sink);
	d->links = sl_links_create(&l, d->identity, d->table, d->aead, &sink, d->now_us);
	if (!d->links) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "links: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

int
sl_daemon_build(struct sl_daemon *d, bool *eal_up)
{
	int rc = make_identity(d);

	if (!rc)
		rc = check_devices(d);
	if (!rc)
		rc = make_eal(d);
	if (rc)
		return rc;
	*eal_up = true;
	rc = make_engine(d);
	if (rc)
		return rc;
	d->start_us = d->now_us = sl_dataplane_now_us();
	rc = make_table(d);
	if (!rc)
		rc = make_router(d);
	if (!rc)
		rc = make_dataplane(d);
	if (!rc)
		rc = make_links(d);
	if (!rc)
		rc = add_transports(d);
	if (!rc)
		add_own_addresses(d);
	return rc;
}
