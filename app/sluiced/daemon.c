/* SPDX-License-Identifier: BSD-3-Clause */
/* The last steps up, the control loop, down in reverse. daemon_up.c has the first ones. */
#include "sl_aead_cryptodev.h"
#include "daemon.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <rte_malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "notify.h"
#include "meet.h"
#include "nat.h"
#include "path_mtu.h"
#include "rendezvous.h"
#include "server.h"

#define BUDGET 256u    /* entries of each source a turn */
#define IDLE_MS 1      /* longest sleep of a turn that found nothing */
#define LATE_US 10000u /* a turn this long is counted */
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

/* --- up ------------------------------------------------------------------------------------- */

static int
make_resolver(struct sl_daemon *d)
{
	int rc;

	d->resolver = sl_resolver_create();
	if (!d->resolver)
		return -ENOMEM;
	rc = sl_peers_init(d);
	if (!rc)
		rc = sl_nat_start(d); /* its servers' names */
	if (!rc)
		rc = sl_resolver_start(d->resolver, d->config->nostr.enabled);
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
	if (!rc && sl_rendezvous_fd(d) >= 0)
		rc = watch(d, sl_rendezvous_fd(d));
	if (!rc && d->config->control.enabled) {
		d->server = sl_server_create(d, d->config->control.socket_path, d->epoll_fd);
		if (!d->server) {
			sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "control socket %s: %s",
				d->config->control.socket_path,
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
	sl_log(SL_LOG_INFO, SL_TOPIC_APP,
		"EAL memory: %zu of %zu MiB used, largest free piece %zu MiB",
		heap.heap_allocsz_bytes >> 20, heap.heap_totalsz_bytes >> 20,
		heap.greatest_free_size >> 20);
	d->now_us = sl_dataplane_now_us();
	rc = sl_peers_configure(d);
	if (rc)
		return rc;
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP,
		"running; ports: %u, transports: %u, configured peers: %u, engine: %s, session table: "
		"%llu KiB",
		d->config->dataplane.port_count, d->config->udp_count + d->config->ethernet_count,
		d->config->peer_count, d->aead->name, (unsigned long long)(own >> 10));
	sl_notify("READY=1\nSTATUS=running");
	return 0;
}

/* --- the loop ------------------------------------------------------------------------------- */

static void
on_signal(struct sl_daemon *d)
{
	struct signalfd_siginfo s;

	while (read(d->signal_fd, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGHUP) {
			sl_log(SL_LOG_WARNING, SL_TOPIC_APP,
				"SIGHUP: the configuration is read at start only; restart to "
				"change it");
		} else {
			sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "%s: leaving",
				s.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
			d->stopping = true;
		}
	}
}

/* What ports and our own rings lost so far: its rise is what congestion looks like on a poll-mode
 * port. */
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
		if (!sl_dataplane_beacon(
			    d->dp, sl_transport_eth(d->config, i), sl_identity_xonly(d->identity)))
			d->counters[SL_APP_BEACON_TX]++;
		else
			d->counters[SL_APP_TRANSMIT_FAILED]++;
	}
}

/* A crypto device that has stopped answering: the relay goes on without it, and says so once for each that waited. */
static void
watch_crypto_device(struct sl_daemon *d)
{
	const uint64_t given_up = d->aead == &sl_aead_cryptodev ? sl_cryptodev_counter(SL_CRYPTODEV_GIVEN_UP) : 0;

	if (given_up == d->crypto_given_up)
		return;
	d->crypto_given_up = given_up;
	sl_log(SL_LOG_ERROR, SL_TOPIC_CRYPTO,
		"CRYPTO DEVICE %s HAS NOT ANSWERED FOR A SECOND: %" PRIu64 " of %u threads do without it until the next start, by "
		"the engine auto", sl_aead_cryptodev_name(), given_up, d->plan.workers + 1u);
}

static void
each_second(struct sl_daemon *d)
{
	uint64_t lost = lost_frames(d);
	bool congested = lost > d->lost_before;

	d->lost_before = lost;
	d->counters[SL_APP_CONGESTED] += congested;
	sl_router_congestion(d->router, congested, d->now_us);
	watch_crypto_device(d);
	send_beacons(d);
	sl_peers_second(d);
	sl_rendezvous_second(d);
	sl_nat_second(d);
	sl_meet_second(d);
	if (sl_acl_refresh(d->acl)) {
		d->counters[SL_APP_ACL_RELOADED]++;
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "access lists read again: %s", sl_acl_mode(d->acl));
	}
	if (d->server)
		sl_server_second(d->server, d->now_us);
	/* A worker that hangs takes its share of the traffic with it: better a restart than half a relay. */
	if (!sl_dataplane_workers_stalled(d->dp))
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
		else if (fd == sl_rendezvous_fd(d))
			d->reports = true;
		else
			sl_server_event(d->server, fd, events[i].events);
	}
}

struct timers {
	uint64_t links, router, second, nat, meet, mtu;
};

/* Runs what is due. After activity the libraries may have earlier deadlines than they told: asked
 * again within 5 ms. */
static void
run_timers(struct sl_daemon *d, struct timers *t, bool activity)
{
	if (activity) {
		t->links = t->links > d->now_us + 5000 ? d->now_us + 5000 : t->links;
		t->router = t->router > d->now_us + 5000 ? d->now_us + 5000 : t->router;
	}
	if (activity && d->nat)
		t->nat = t->nat > d->now_us + 5000 ? d->now_us + 5000 : t->nat;
	if (activity && d->meet)
		t->meet = t->meet > d->now_us + 5000 ? d->now_us + 5000 : t->meet;
	if (activity && d->plpmtu)
		t->mtu = t->mtu > d->now_us + 5000 ? d->now_us + 5000 : t->mtu;
	if (d->now_us >= t->mtu)
		t->mtu = sl_path_mtu_tick(d);
	if (d->now_us >= t->meet)
		t->meet = sl_meet_tick(d);
	if (d->now_us >= t->nat)
		t->nat = sl_nat_tick(d);
	if (d->now_us >= t->links)
		t->links = sl_links_tick(d->links, d->now_us);
	if (d->now_us >= t->router)
		t->router = sl_router_tick(d->router, d->now_us);
	if (d->now_us >= t->second) {
		each_second(d);
		t->second = d->now_us + 1000000;
		t->nat = t->meet = d->now_us; /* they may have been told something */
	}
}

/* Of this thread: tells a turn that was long from one whose core was taken away. */
static uint64_t
cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void
loop(struct sl_daemon *d)
{
	struct timers t = {0};
	struct epoll_event events[EVENTS];
	unsigned handled = 0;
	uint64_t cpu = cpu_us();

	while (!d->stopping) {
		uint64_t spent, cpu_now;
		int n = epoll_wait(
			d->epoll_fd, events, EVENTS, handled || t.links <= d->now_us ? 0 : IDLE_MS);

		d->now_us = sl_dataplane_now_us();
		handled = sl_dataplane_poll(d->dp, BUDGET, d->now_us);
		if (n > 0)
			handle_events(d, events, n);
		if (d->reports)
			d->reports = sl_rendezvous_work(d);
		run_timers(d, &t, handled || n > 0);
		if (d->server && sl_server_work(d->server))
			handled++; /* more to do: no sleep */
		handled += d->reports;
		spent = sl_dataplane_now_us() - d->now_us;
		if (spent > d->longest_turn_us)
			d->longest_turn_us = spent;
		d->counters[SL_APP_LATE] += spent > LATE_US;
		cpu_now = cpu_us();
		if (cpu_now - cpu > d->longest_turn_cpu_us)
			d->longest_turn_cpu_us = cpu_now - cpu;
		cpu = cpu_now;
	}
}

/* --- down ----------------------------------------------------------------------------------- */

/*
 * Disconnects go out on control's own queues, as many a millisecond as the smallest of them holds by half; a moment after the
 * last the NIC has them. 4,096 peers take 64 ms and that moment.
 */
#define GOODBYES 64u
#define GOODBYE_DRAIN_US 50000u

static void
say_goodbye(struct sl_daemon *d)
{
	uint64_t drain_us = d->config->drain_timeout_secs * 1000000, last_us = 0;
	bool more = true;

	sl_notify("STOPPING=1");
	if (drain_us > GOODBYE_DRAIN_US)
		drain_us = GOODBYE_DRAIN_US;
	do {
		d->now_us = sl_dataplane_now_us();
		if (more) {
			more = sl_links_shutdown_some(d->links, SL_DISCONNECT_SHUTDOWN, GOODBYES, d->now_us);
			last_us = d->now_us;
		}
		(void)sl_dataplane_poll(d->dp, BUDGET, d->now_us);
		poll(NULL, 0, 1);
	} while (more || d->now_us - last_us < drain_us);
}

static void
down(struct sl_daemon *d, bool eal_up)
{
	if (d->running) {
		sl_meet_goodbye(d);
		say_goodbye(d);
		sl_dataplane_stop(d->dp);
		d->running = false;
	}
	sl_server_destroy(d->server);
	sl_rendezvous_stop(d);
	sl_nat_stop(d);
	sl_meet_stop(d);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	sl_resolver_destroy(d->resolver);
	sl_links_destroy(d->links);
	sl_path_mtu_stop(d);
	sl_acl_destroy(d->acl);
	sl_dataplane_destroy(d->dp);
	sl_aead_cryptodev_stop();
	sl_router_destroy(d->router);
	sl_session_table_destroy(d->table);
	if (eal_up)
		sl_eal_stop();
	sl_identity_destroy(d->identity);
	free(d->peers);
	free(d->peer_up);
	free(d->cuts);
}

static enum sl_log_level
log_level(const struct sl_config *c)
{
	static const enum sl_log_level levels[] = {
		SL_LOG_DEBUG, SL_LOG_DEBUG, SL_LOG_INFO, SL_LOG_WARNING, SL_LOG_ERROR};

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
	rc = sl_daemon_build(d, &eal_up);
	if (!rc)
		rc = sl_path_mtu_start(d);
	if (!rc)
		rc = make_resolver(d);
	if (!rc)
		rc = sl_meet_start(d);
	if (!rc)
		rc = sl_rendezvous_start(d);
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
