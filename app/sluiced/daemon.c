/* SPDX-License-Identifier: BSD-3-Clause */
/* Up in order, the control loop, down in reverse. */
#include "daemon.h"
#include <errno.h>
#include <poll.h>
#include <rte_malloc.h>
#include <rte_version.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "nodekey.h"
#include "notify.h"
#include "server.h"

#define BUDGET 256u	     /* entries of each source a turn */
#define IDLE_MS 1	     /* longest sleep of a turn that found nothing */
#define LATE_US 10000u	     /* a turn this long is counted */
#define RESERVE_PEERS 128u   /* rows that inbound handshakes hold before they are peers */
#define ALL_PEERS 4096u	     /* node.limits.max_peers: 0 */
#define EVENTS 16

const char *
sl_app_counter_name(enum sl_app_counter c)
{
	static const char *const names[] = {
#define NAME(id, name, what) name,
		SL_APP_COUNTERS(NAME)
#undef NAME
	};
	return names[c];
}

/* --- up ------------------------------------------------------------------------------------------------------------- */

static int
make_identity(struct sl_daemon *d)
{
	static const char *const from[] = {"of the configuration", "of the key file", "made and kept in the key file",
		"made for this run only"};
	enum sl_nodekey_source source = SL_NODEKEY_EPHEMERAL;
	char why[256], npub[SL_NPUB_SIZE];

	d->identity = sl_nodekey_load(d->config, d->config_path, &source, why);
	if (!d->identity) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "%s", why);
		return -EINVAL;
	}
	sl_npub_format(npub, sl_identity_xonly(d->identity));
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "we are %s, a key %s", npub, from[source]);
	d->aead = sl_aead_backend_find(d->config->dataplane.aead);
	if (!d->aead) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "dataplane.aead: %s cannot be used on this machine", d->config->dataplane.aead);
		return -ENOTSUP;
	}
	return 0;
}

static int
make_eal(struct sl_daemon *d)
{
	char why[256], cpus[128];
	int n = 0;
	int rc = sl_eal_plan(&d->plan, d->config, why);

	if (!rc)
		rc = sl_eal_start(&d->plan, d->config, why);
	if (rc) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "%s", why);
		return rc;
	}
	for (unsigned i = 0; i < d->plan.workers && (size_t)n < sizeof(cpus); i++)
		n += snprintf(cpus + n, sizeof(cpus) - (size_t)n, "%s%u", i ? "," : "", d->plan.worker_cpus[i]);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "%s: %u MiB of %s; control on CPU %u, %u worker(s) on CPU %s", rte_version(),
		d->plan.memory_mb, d->plan.why_memory, d->plan.control_cpu, d->plan.workers, cpus);
	return 0;
}

static int
make_table(struct sl_daemon *d)
{
	struct sl_session_table_config c = {.workers = (uint16_t)d->plan.workers, .reclaim = sl_sinks_reclaim,
		.reclaim_arg = d};

	d->max_peers = (d->config->limits.max_peers ? d->config->limits.max_peers : ALL_PEERS) + RESERVE_PEERS;
	c.max_peers = d->max_peers;
	c.max_sessions = d->config->dataplane.sessions ? d->config->dataplane.sessions : 4 * d->max_peers;
	d->peer_up = calloc(d->max_peers, 1);
	d->table = sl_session_table_create(&c);
	if (!d->peer_up || !d->table) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "session table for %u sessions: %s (locked memory limit?)", c.max_sessions,
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
	rc = sl_dataplane_port_add(d->dp, p, &step);
	if (rc < 0)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "port %s (%s): %s: %s", conf->name, conf->device, step ? step : "cannot be used",
			strerror(-rc));
	else
		sl_log(SL_LOG_INFO, SL_TOPIC_APP, "port %s is %s, profile %s", conf->name, conf->device, used);
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

/* A port for an instance that only dials: in the dynamic range, not one that another instance listens on. */
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

static int
add_transports(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	uint16_t ports[SL_CONF_TRANSPORTS_MAX];
	struct sl_port_stats stats;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->udp_count; i++) {
		const struct sl_conf_udp *u = &c->udp[i];
		struct sl_dataplane_transport t = {.id = (uint8_t)i, .kind = SL_ADDR_UDP4, .mtu = u->mtu};
		struct sl_transport_config l = {.id = (uint8_t)i, .kind = SL_ADDR_UDP4, .mtu = u->mtu,
			.accept_connections = u->accept_connections && !u->outbound_only};

		t.udp_port = ports[i] = u->outbound_only ? free_udp_port(c, ports, i) : u->bind.port;
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
	}
	for (uint32_t i = 0; !rc && i < c->ethernet_count; i++) {
		const struct sl_conf_ethernet *e = &c->ethernet[i];
		uint8_t id = sl_transport_eth(c, i);
		struct sl_dataplane_transport t = {.id = id, .kind = SL_ADDR_ETH, .port = e->port, .ethertype = e->ethertype};
		struct sl_transport_config l = {.id = id, .kind = SL_ADDR_ETH, .accept_connections = e->accept_connections};

		rc = sl_dataplane_port_stats(d->dp, e->port, &stats);
		if (rc)
			break;
		t.mtu = (uint16_t)(stats.mtu - 3);
		if (e->mtu && e->mtu > t.mtu)
			sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "transports.ethernet.mtu: %u is more than port %s carries: %u", e->mtu,
				e->interface, t.mtu);
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
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "more own addresses than the links remember: forged ones of the rest are answered");
}

static int
make_dataplane(struct sl_daemon *d)
{
	const struct sl_config *c = d->config;
	struct sl_dataplane_config dc = {.workers = (uint16_t)d->plan.workers, .mbufs = c->dataplane.mbufs,
		.mbuf_data_size = c->dataplane.mbuf_data_size, .ring_size = c->dataplane.ring_size,
		.hop_cache_entries = c->dataplane.hop_cache, .burst = c->dataplane.burst, .aead = d->aead,
		.measure_cycles = c->dataplane.measure_cycles, .idle_sleep_us = c->dataplane.idle_sleep_us};
	struct sl_dataplane_sink sink;
	int rc = 0;

	sl_sinks_dataplane(d, &sink);
	d->dp = sl_dataplane_create(&dc, sl_session_table_view(d->table), sl_router_fib(d->router), &sink);
	if (!d->dp) {
		rc = -errno;
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "data plane: %s (dataplane.memory, dataplane.pools)", strerror(errno));
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
	sl_sinks_links(d, &sink);
	d->links = sl_links_create(&l, d->identity, d->table, d->aead, &sink, d->now_us);
	if (!d->links) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "links: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

static int
make_resolver(struct sl_daemon *d)
{
	int rc;

	d->resolver = sl_resolver_create();
	if (!d->resolver)
		return -ENOMEM;
	rc = sl_peers_init(d);
	if (!rc)
		rc = sl_resolver_start(d->resolver);
	if (rc)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "resolver of host names: %s", strerror(-rc));
	return rc;
}

static int
watch(struct sl_daemon *d, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int
make_events(struct sl_daemon *d, const sigset_t *signals)
{
	int rc = 0;

	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->signal_fd = signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->epoll_fd < 0 || d->signal_fd < 0)
		rc = -errno;
	if (!rc)
		rc = watch(d, d->signal_fd);
	if (!rc && sl_resolver_fd(d->resolver) >= 0)
		rc = watch(d, sl_resolver_fd(d->resolver));
	if (rc)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "event descriptors: %s", strerror(-rc));
	if (!rc && d->config->control.enabled) {
		d->server = sl_server_create(d, d->config->control.socket_path, d->epoll_fd);
		if (!d->server) {
			sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "control socket %s: %s", d->config->control.socket_path,
				errno == EADDRINUSE ? "another daemon serves it" : strerror(errno));
			rc = -errno;
		}
	}
	return rc;
}

static int
start(struct sl_daemon *d)
{
	uint64_t own = sl_session_table_bytes(d->table);
	struct rte_malloc_socket_stats heap = {0};
	int rc;

	rc = sl_dataplane_start(d->dp);
	if (rc) {
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "workers do not start: %s", strerror(-rc));
		return rc;
	}
	d->running = true;
	rte_malloc_get_socket_stats(0, &heap);
	sl_log(SL_LOG_INFO, SL_TOPIC_APP, "EAL memory: %zu of %zu MiB used, largest free piece %zu MiB", heap.heap_allocsz_bytes >> 20,
		heap.heap_totalsz_bytes >> 20, heap.greatest_free_size >> 20);
	d->now_us = sl_dataplane_now_us();
	rc = sl_peers_configure(d);
	if (rc)
		return rc;
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "running: %u port(s), %u transport(s), %u configured peer(s), %s, session table %llu KiB",
		d->config->dataplane.port_count, d->config->udp_count + d->config->ethernet_count, d->config->peer_count,
		d->aead->name, (unsigned long long)(own >> 10));
	sl_notify("READY=1\nSTATUS=running");
	return 0;
}

/* --- the loop ------------------------------------------------------------------------------------------------------- */

static void
on_signal(struct sl_daemon *d)
{
	struct signalfd_siginfo s;

	while (read(d->signal_fd, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGHUP) {
			sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "SIGHUP: the configuration is read at start only; restart to change it");
		} else {
			sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "%s: leaving", s.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
			d->stopping = true;
		}
	}
}

/* What ports and our own rings lost so far: its rise is what congestion looks like on a poll-mode port. */
static uint64_t
lost_frames(const struct sl_daemon *d)
{
	uint64_t n = 0;

	for (uint16_t i = 0; i < sl_dataplane_ports(d->dp); i++) {
		struct sl_port_stats s;

		if (!sl_dataplane_port_stats(d->dp, i, &s))
			n += s.rx_missed + s.rx_nombuf;
	}
	for (uint16_t i = 0; i < sl_dataplane_workers(d->dp); i++) {
		struct sl_worker_stats s;

		sl_dataplane_worker_stats(d->dp, i, &s);
		n += s.verdicts[SL_DROP_TX_FULL] + s.verdicts[SL_DROP_HANDOFF_FULL];
	}
	return n;
}

static void
send_beacons(struct sl_daemon *d)
{
	for (uint32_t i = 0; i < d->config->ethernet_count; i++) {
		const struct sl_conf_ethernet *e = &d->config->ethernet[i];

		if (!e->announce || d->now_us < d->beacons[i].next_us)
			continue;
		d->beacons[i].next_us = d->now_us + e->beacon_interval_secs * 1000000;
		if (!sl_dataplane_beacon(d->dp, sl_transport_eth(d->config, i), sl_identity_xonly(d->identity)))
			d->counters[SL_APP_BEACON_TX]++;
		else
			d->counters[SL_APP_TRANSMIT_FAILED]++;
	}
}

static void
each_second(struct sl_daemon *d)
{
	uint64_t lost = lost_frames(d);
	bool congested = lost > d->lost_before;

	d->lost_before = lost;
	d->counters[SL_APP_CONGESTED] += congested;
	sl_router_congestion(d->router, congested, d->now_us);
	send_beacons(d);
	sl_peers_second(d);
	if (d->server)
		sl_server_second(d->server, d->now_us);
	sl_notify_watchdog(d->now_us);
	sl_app_log_flush();
}

static void
handle_events(struct sl_daemon *d, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == d->signal_fd)
			on_signal(d);
		else if (fd == sl_resolver_fd(d->resolver))
			sl_peers_resolved(d);
		else
			sl_server_event(d->server, fd, events[i].events);
	}
}

struct timers {
	uint64_t links, router, second;
};

/* Runs what is due. After activity the libraries may have earlier deadlines than they told: asked again within 5 ms. */
static void
run_timers(struct sl_daemon *d, struct timers *t, bool activity)
{
	if (activity) {
		t->links = t->links > d->now_us + 5000 ? d->now_us + 5000 : t->links;
		t->router = t->router > d->now_us + 5000 ? d->now_us + 5000 : t->router;
	}
	if (d->now_us >= t->links)
		t->links = sl_links_tick(d->links, d->now_us);
	if (d->now_us >= t->router)
		t->router = sl_router_tick(d->router, d->now_us);
	if (d->now_us >= t->second) {
		each_second(d);
		t->second = d->now_us + 1000000;
	}
}

static void
loop(struct sl_daemon *d)
{
	struct timers t = {0, 0, 0};
	struct epoll_event events[EVENTS];
	unsigned handled = 0;

	while (!d->stopping) {
		uint64_t spent;
		int n = epoll_wait(d->epoll_fd, events, EVENTS, handled ? 0 : IDLE_MS);

		d->now_us = sl_dataplane_now_us();
		handled = sl_dataplane_poll(d->dp, BUDGET, d->now_us);
		if (n > 0)
			handle_events(d, events, n);
		run_timers(d, &t, handled || n > 0);
		spent = sl_dataplane_now_us() - d->now_us;
		if (spent > d->longest_turn_us)
			d->longest_turn_us = spent;
		d->counters[SL_APP_LATE] += spent > LATE_US;
	}
}

/* --- down ----------------------------------------------------------------------------------------------------------- */

/* Disconnects go out on control's own queue; a moment later the NIC has them. */
static void
say_goodbye(struct sl_daemon *d)
{
	uint64_t limit_us = d->config->drain_timeout_secs * 1000000, start_us = sl_dataplane_now_us();

	sl_notify("STOPPING=1");
	d->now_us = start_us;
	sl_links_shutdown(d->links, SL_DISCONNECT_SHUTDOWN, d->now_us);
	if (limit_us > 50000)
		limit_us = 50000;
	do {
		d->now_us = sl_dataplane_now_us();
		(void)sl_dataplane_poll(d->dp, BUDGET, d->now_us);
		poll(NULL, 0, 1);
	} while (d->now_us - start_us < limit_us);
}

static void
down(struct sl_daemon *d, bool eal_up)
{
	if (d->running) {
		say_goodbye(d);
		sl_dataplane_stop(d->dp);
		d->running = false;
	}
	sl_server_destroy(d->server);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	sl_resolver_destroy(d->resolver);
	sl_links_destroy(d->links);
	sl_dataplane_destroy(d->dp);
	sl_router_destroy(d->router);
	sl_session_table_destroy(d->table);
	if (eal_up)
		sl_eal_stop();
	sl_identity_destroy(d->identity);
	free(d->peers);
	free(d->peer_up);
}

static enum sl_log_level
log_level(const struct sl_config *c)
{
	static const enum sl_log_level levels[] = {SL_LOG_DEBUG, SL_LOG_DEBUG, SL_LOG_INFO, SL_LOG_WARNING, SL_LOG_ERROR};

	return levels[c->log_level];
}

int
sl_daemon_run(const struct sl_config *config, const char *config_path)
{
	struct sl_daemon *d = calloc(1, sizeof(*d));
	bool eal_up = false;
	sigset_t signals;
	int rc;

	if (!d || sl_app_log_init(log_level(config))) {
		free(d);
		fputs("sluiced: out of memory\n", stderr);
		return 1;
	}
	d->config = config;
	d->config_path = config_path;
	d->epoll_fd = d->signal_fd = -1;
	d->unix_start_s = (uint64_t)time(NULL);
	/* Before any thread is made, so that all inherit it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = -EINVAL;
	if (!config->dataplane.port_count)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "dataplane.ports: there is no port to run on");
	else if (!config->udp_count && !config->ethernet_count)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "transports: there is neither udp nor ethernet");
	else
		rc = make_identity(d);
	if (!rc)
		rc = make_eal(d);
	eal_up = !rc;
	d->start_us = d->now_us = eal_up ? sl_dataplane_now_us() : 0;
	if (!rc)
		rc = make_table(d);
	if (!rc)
		rc = make_router(d);
	if (!rc)
		rc = make_dataplane(d);
	if (!rc)
		rc = make_links(d);
	if (!rc)
		rc = add_transports(d);
	if (!rc) {
		add_own_addresses(d);
		rc = make_resolver(d);
	}
	if (!rc)
		rc = make_events(d, &signals);
	if (!rc)
		rc = start(d);
	if (!rc)
		loop(d);
	down(d, eal_up);
	sl_log(rc ? SL_LOG_ERROR : SL_LOG_NOTICE, SL_TOPIC_APP, rc ? "not started" : "stopped");
	sl_app_log_fini();
	free(d);
	return rc ? 1 : 0;
}
