/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the data plane, launching its workers, ending it, and what the operator sees of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include "../overlay/sl_log.h"
#include "sl_control.h"

_Static_assert(RTE_PKTMBUF_HEADROOM >= SL_PATH_HEADER_MAX, "the longest outer header fits in front of a shorter one");

void
sl_dataplane_config_defaults(struct sl_dataplane_config *c)
{
	if (c->burst == 0)
		c->burst = 32;
	if (c->mbufs == 0)
		c->mbufs = SL_POOL_MBUFS;
	if (c->ring_size == 0)
		c->ring_size = 1024;
	if (c->hop_cache_entries == 0)
		c->hop_cache_entries = 4096;
	c->ring_size = rte_align32pow2(RTE_MAX(c->ring_size, 64u));
}

static int
config_check(struct sl_dataplane_config *c)
{
	sl_dataplane_config_defaults(c);
	if (c->workers == 0 || c->workers > SL_WORKERS_MAX || c->burst > SL_BURST_MAX || c->aead == NULL ||
		c->ring_size > 1u << 20)
		return -EINVAL;
	return 0;
}

/* The lcores that workers are to run on, and their nodes; fewer than workers when EAL has fewer that are free. */
static unsigned
lcores_pick(const struct sl_dataplane *dp, unsigned lcores[SL_WORKERS_MAX])
{
	unsigned lcore, n = 0;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (n == dp->config.workers)
			break;
		if (lcore != rte_lcore_id() && rte_eal_get_lcore_state(lcore) == WAIT)
			lcores[n++] = lcore;
	}
	return n;
}

/* On the memory of its own node, if that has any to give. */
static struct sl_worker *
worker_create(struct sl_worker_config *wc, int node)
{
	struct sl_worker *w = NULL;

	wc->socket = node >= 0 ? node : SOCKET_ID_ANY;
	w = sl_worker_create(wc);
	if (w || wc->socket == SOCKET_ID_ANY)
		return w;
	wc->socket = SOCKET_ID_ANY;
	return sl_worker_create(wc);
}

static int
workers_create(struct sl_dataplane *dp)
{
	unsigned lcores[SL_WORKERS_MAX];
	const unsigned free_lcores = lcores_pick(dp, lcores);
	struct sl_worker_config wc = {
		.workers = dp->config.workers,
		.burst = dp->config.burst,
		.ring_size = dp->config.ring_size,
		.hop_cache_entries = dp->config.hop_cache_entries,
		.idle_sleep_us = dp->config.idle_sleep_us,
		.measure_cycles = dp->config.measure_cycles,
		.spread = dp->config.elephant != SL_ELEPHANT_OFF,
		.aead = dp->config.aead,
		.view = dp->view,
		.fib = dp->fib,
		.qsbr = dp->reclaim.qsbr,
	};

	for (uint16_t i = 0; i < dp->config.workers; i++) {
		wc.id = i;
		dp->worker_nodes[i] = i < free_lcores ? (int)rte_lcore_to_socket_id(lcores[i]) : -1;
		dp->workers[i] = worker_create(&wc, dp->worker_nodes[i]);
		if (dp->workers[i] == NULL)
			return -errno;
	}
	/* The ring from `from` to `to` is made by its reader. */
	for (uint16_t from = 0; from < dp->config.workers; from++)
		for (uint16_t to = 0; to < dp->config.workers; to++)
			dp->workers[from]->handoff_out[to] = dp->workers[to]->handoff_in[from];
	for (uint16_t i = 0; i < dp->config.workers; i++)
		for (uint16_t to = 0; to < dp->config.workers; to++)
			dp->workers[i]->lane_of[to] = dp->workers[to]->lane;
	return 0;
}

struct sl_dataplane *
sl_dataplane_create(const struct sl_dataplane_config *config, const struct sl_session_view *view,
	const struct sl_fib_ref *fib, const struct sl_dataplane_sink *sink)
{
	struct sl_dataplane *dp = calloc(1, sizeof(*dp));
	/* Each peer can hold one; those that nobody holds (of control's own packets) make room. */
	const struct sl_neigh_config neigh_config = {.entries_max = RTE_MAX(1024u, view->max_peers + 256u)};
	struct sl_neigh_sink neigh_sink;
	int rc;

	if (dp == NULL)
		return NULL;
	dp->config = *config;
	dp->view = view;
	dp->fib = fib;
	dp->sink = *sink;
	rc = config_check(&dp->config);
	/* The table's owners are these workers, and a table for one lets it count without a lock (the lease). */
	if (rc == 0 && view->workers != dp->config.workers)
		rc = -EINVAL;
	if (rc != 0)
		goto fail;
	rc = sl_reclaim_init(&dp->reclaim, dp->config.workers);
	if (rc != 0)
		goto fail;
	rc = workers_create(dp);
	if (rc != 0)
		goto fail;
	rc = sl_elephants_init(&dp->elephants, view);
	if (rc != 0)
		goto fail;
	rc = -ENOMEM;
	dp->paths = calloc(view->max_peers, sizeof(*dp->paths));
	if (dp->paths == NULL)
		goto fail;
	neigh_sink = (struct sl_neigh_sink){.arg = dp, .transmit = sl_paths_neigh_transmit,
		.changed = sl_paths_neigh_changed, .too_big = sl_paths_too_big};
	dp->pmtu_due_us = UINT64_MAX;
	dp->neigh = sl_neigh_create(&neigh_config, &neigh_sink, sl_dataplane_now_us());
	if (dp->neigh == NULL) {
		rc = -errno;
		goto fail;
	}
	return dp;
fail:
	sl_dataplane_destroy(dp);
	errno = -rc;
	return NULL;
}

void
sl_dataplane_destroy(struct sl_dataplane *dp)
{
	if (dp == NULL)
		return;
	sl_dataplane_stop(dp);
	if (dp->neigh)
		sl_paths_fini(dp);
	free(dp->paths);
	sl_elephants_fini(&dp->elephants);
	if (dp->reclaim.qsbr)
		sl_reclaim_fini(&dp->reclaim);
	sl_neigh_destroy(dp->neigh);
	for (unsigned i = 0; i < SL_WORKERS_MAX; i++)
		sl_worker_destroy(dp->workers[i]);
	for (unsigned i = 0; i < dp->port_count; i++)
		sl_port_close(&dp->ports[i]);
	free(dp);
}

int
sl_dataplane_port_add(struct sl_dataplane *dp, const struct sl_port_config *config, const char **error)
{
	const struct sl_port_params params = {.index = dp->port_count, .workers = dp->config.workers,
		.nodes = dp->worker_nodes, .burst = dp->config.burst, .mbufs = dp->config.mbufs, .mbuf_data_size = dp->config.mbuf_data_size,
		.multicast = dp->config.mdns};
	struct sl_port *p = &dp->ports[dp->port_count];
	struct sl_neigh_port np;
	const char *unused;
	int rc;

	if (error == NULL)
		error = &unused;
	*error = "ports are added before start";
	if (dp->started)
		return -EBUSY;
	*error = "too many ports";
	if (dp->port_count == SL_PORTS_MAX)
		return -ENOSPC;
	rc = sl_port_open(p, config, &params, error);
	if (rc != 0)
		return rc;
	*error = "addresses of the port";
	sl_parse_local_init(&p->local, p->mac, config->vlan, p->index);
	p->local.skip_udp_checksum = config->ignore_rx_checksum;
	p->local.mdns = dp->config.mdns;
	for (unsigned i = 0; i < config->addr_count && rc == 0; i++)
		rc = sl_parse_local_addr(&p->local, &config->addrs[i]);
	if (rc != 0)
		goto fail;
	for (unsigned i = 0; i < dp->config.workers; i++)
		dp->workers[i]->tx[p->index] =
			(struct sl_tx_queue){.ethdev = p->ethdev, .queue = (uint16_t)i, .present = true};
	p->link_up = p->link_told = true; /* until sl_ports_start() has looked */
	dp->port_count++;
	*error = "addresses and routes of the port";
	np = (struct sl_neigh_port){.port = p->index, .vlan = config->vlan, .mtu = p->mtu, .addrs = config->addrs,
		.addr_count = config->addr_count, .routes = config->routes, .route_count = config->route_count};
	memcpy(np.mac, p->mac, sizeof(np.mac));
	rc = sl_neigh_port_add(dp->neigh, &np);
	if (rc != 0) {
		dp->port_count--;
		goto fail;
	}
	*error = NULL;
	return p->index;
fail:
	sl_port_close(p);
	return rc;
}

int
sl_dataplane_transport_add(struct sl_dataplane *dp, const struct sl_dataplane_transport *t)
{
	int rc;

	if (dp->started)
		return -EBUSY;
	if (dp->transport_count == SL_TRANSPORTS_MAX)
		return -ENOSPC;
	if (sl_transport_find(dp, t->id))
		return -EEXIST;
	if (t->kind == SL_ADDR_ETH) {
		if (t->port >= dp->port_count)
			return -EINVAL;
		rc = sl_parse_local_eth(&dp->ports[t->port].local, t->id, t->ethertype);
		if (rc != 0)
			return rc;
	} else {
		for (unsigned i = 0; i < dp->port_count; i++) {
			const struct sl_ifaddr *bind = t->bind_any4 || t->bind_any6 ? NULL : &t->bind;

			rc = sl_parse_local_udp(&dp->ports[i].local, t->id, t->udp_port, t->bind_any4, t->bind_any6, bind);
			if (rc != 0)
				return rc;
		}
	}
	dp->transports[dp->transport_count++] = *t;
	return 0;
}

void
sl_dataplane_traversal(struct sl_dataplane *dp, bool wanted)
{
	for (unsigned i = 0; i < dp->port_count; i++)
		__atomic_store_n(&dp->ports[i].local.nat, wanted, __ATOMIC_RELAXED);
}

/* Every receive queue has one worker; the transports are known, so the device can be told which frames are whose. */
int
sl_dataplane_prepare(struct sl_dataplane *dp)
{
	for (unsigned i = 0; i < dp->config.workers; i++)
		dp->workers[i]->rx_count = 0;
	for (unsigned i = 0; i < dp->port_count; i++) {
		const struct sl_port *p = &dp->ports[i];

		for (uint16_t q = 0; q < p->rx_queues; q++) {
			struct sl_worker *w = dp->workers[sl_queue_map_worker(&p->map, q)];

			if (w->rx_count == SL_RX_QUEUES_MAX)
				return -ENOSPC;
			w->rx[w->rx_count++] = (struct sl_rx_queue){.ethdev = p->ethdev, .queue = q, .port = p->index,
				.local = &p->local, .join_pool = p->join_pool};
		}
	}
	for (unsigned i = 0; i < dp->port_count; i++)
		sl_steer_apply(dp, &dp->ports[i]);
	return 0;
}

/* The first `count` workers, which run. */
static void
workers_stop(struct sl_dataplane *dp, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		__atomic_store_n(&dp->workers[i]->stop, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < count; i++)
		(void)rte_eal_wait_lcore(dp->workers[i]->lcore);
}

/*
 * What can hold frames of a port's pool at once: its receive descriptors, transmit descriptors of every port, workers' bursts and
 * caches, and the rings between workers and to control. With fewer buffers the port can run dry while all of that is full.
 */
static uint32_t
buffers_sum(const struct sl_dataplane_config *c, uint32_t rx, uint32_t tx, uint32_t cache)
{
	const uint32_t workers = c->workers;
	uint32_t n = rx + tx + workers * c->burst + workers * SL_PUNT_RINGS * (c->ring_size - 1);

	n += workers * (workers - 1) * (SL_HANDOFF_ENTRIES - 1);
	if (workers > 1 && c->elephant != SL_ELEPHANT_OFF)
		n += workers * sl_lane_frames((uint16_t)workers);
	return n + (workers + 1) * cache * 3 / 2; /* a cache holds one and a half of its size */
}

uint32_t
sl_dataplane_buffers_most(const struct sl_dataplane *dp, uint16_t port)
{
	const struct sl_port *p = &dp->ports[port];
	uint32_t tx = 0;

	for (unsigned i = 0; i < dp->port_count; i++)
		tx += (uint32_t)dp->ports[i].tx_desc * dp->config.workers;
	return buffers_sum(&dp->config, (uint32_t)p->rx_desc * p->rx_queues, tx, p->pool->cache_size);
}

uint32_t
sl_dataplane_buffers_plan(const struct sl_dataplane_config *config, unsigned ports, uint32_t descriptors)
{
	struct sl_dataplane_config c = *config;
	uint32_t desc = RTE_MAX(descriptors, SL_PORT_DESCRIPTORS), n;

	sl_dataplane_config_defaults(&c);
	/* Some drivers pair receive and transmit queues, control's too. */
	n = buffers_sum(&c, desc * (c.workers + 1u), desc * c.workers * ports, SL_POOL_CACHE);
	return RTE_MAX(RTE_ALIGN_CEIL(n, 1024u), SL_POOL_MBUFS);
}

static void
pools_check(const struct sl_dataplane *dp)
{
	for (uint16_t i = 0; i < dp->port_count; i++) {
		const struct sl_port *p = &dp->ports[i];
		const uint32_t most = sl_dataplane_buffers_most(dp, i);

		if (p->pool->size < most)
			sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE,
				"port %s: descriptors, bursts and rings can hold %u buffers, its pool has %u (pools.mbufs): if all "
				"fill at once it cannot receive", p->config.name, most, p->pool->size);
	}
}

int
sl_dataplane_start(struct sl_dataplane *dp)
{
	unsigned lcores[SL_WORKERS_MAX];
	int rc;

	if (dp->started || dp->port_count == 0)
		return dp->started ? -EBUSY : -EINVAL;
	rc = sl_dataplane_prepare(dp);
	if (rc != 0)
		return rc;
	if (lcores_pick(dp, lcores) < dp->config.workers)
		return -ENOSPC;
	for (unsigned i = 0; i < dp->config.workers; i++) {
		dp->workers[i]->lcore = lcores[i];
		dp->worker_nodes[i] = (int)rte_lcore_to_socket_id(lcores[i]);
		dp->workers[i]->stop = 0;
		rc = rte_eal_remote_launch(sl_worker_main, dp->workers[i], dp->workers[i]->lcore);
		if (rc != 0) {
			workers_stop(dp, i);
			return rc;
		}
	}
	dp->started = true;
	pools_check(dp);
	sl_ports_start(dp);
	return 0;
}

void
sl_dataplane_stop(struct sl_dataplane *dp)
{
	if (!dp->started)
		return;
	workers_stop(dp, dp->config.workers);
	for (unsigned i = 0; i < dp->port_count; i++)
		sl_port_stop(&dp->ports[i]);
	dp->started = false;
}

/* --- for the operator -------------------------------------------------------------------------------------------- */

uint16_t
sl_dataplane_workers(const struct sl_dataplane *dp)
{
	return dp->config.workers;
}

unsigned
sl_dataplane_worker_lcore(const struct sl_dataplane *dp, uint16_t worker)
{
	return dp->workers[worker]->lcore;
}

void
sl_dataplane_worker_stats(const struct sl_dataplane *dp, uint16_t worker, struct sl_worker_stats *s)
{
	const struct sl_worker_counters *c = &dp->workers[worker]->counters;
	uint64_t seq;
	unsigned tries = 0;

#define READ(field) __atomic_load_n(&c->field, __ATOMIC_RELAXED)
	/* Of whole bursts only. A worker that lost its CPU in the middle is not waited for longer than this. */
	do {
		seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
		*s = (struct sl_worker_stats){.rx = READ(rx), .handoff_in = READ(handoff_in), .rx_bytes = READ(rx_bytes),
			.tx_bytes = READ(tx_bytes), .busy_tsc = READ(busy_tsc), .idle_tsc = READ(idle_tsc),
			.transit_tsc = READ(transit_tsc), .driver_tsc = READ(driver_tsc), .polls = READ(polls),
			.busy_polls = READ(busy_polls), .punt_ring_full = READ(punt_ring_full), .joined = READ(joined),
			.longest_tsc = READ(longest_tsc), .event_ring_full = READ(event_ring_full), .learn_ring_full = READ(learn_ring_full)};
		for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
			s->verdicts[v] = READ(verdicts[v]);
		s->tx = s->verdicts[SL_FORWARD];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while ((seq % 2 || __atomic_load_n(&c->seq, __ATOMIC_RELAXED) != seq) && ++tries < 10000);
#undef READ
	s->stalled = dp->watch[worker].stalled;
	s->stalls = dp->watch[worker].stalls;
	s->still_us = s->stalled ? dp->now_us - dp->watch[worker].moved_us : 0;
}

int
sl_dataplane_worker_node(const struct sl_dataplane *dp, uint16_t worker)
{
	return worker < dp->config.workers ? dp->worker_nodes[worker] : -1;
}

int
sl_dataplane_queue_worker(const struct sl_dataplane *dp, uint16_t port, uint16_t queue)
{
	if (port >= dp->port_count || queue >= dp->ports[port].rx_queues)
		return -1;
	return sl_queue_map_worker(&dp->ports[port].map, queue);
}

uint16_t
sl_dataplane_ports(const struct sl_dataplane *dp)
{
	return dp->port_count;
}

uint64_t
sl_dataplane_flow_hits(const struct sl_dataplane *dp, uint16_t port)
{
	return port < dp->port_count ? sl_steer_hits(&dp->ports[port]) : 0;
}

int
sl_dataplane_port_stats(const struct sl_dataplane *dp, uint16_t port, struct sl_port_stats *s)
{
	const struct sl_port *p = &dp->ports[port];
	struct rte_eth_stats eth;
	int rc;

	if (port >= dp->port_count)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	memcpy(s->name, p->config.name, sizeof(s->name));
	memcpy(s->driver, p->driver, sizeof(s->driver));
	memcpy(s->mac, p->mac, sizeof(s->mac));
	s->queues = p->rx_queues;
	s->node = p->node;
	s->mtu = p->mtu;
	s->steering = sl_steer_mode_name(p->steer.mode);
	s->steering_why = p->steer.why;
	s->flow_rules = p->steer.count;
	sl_steer_handed(dp, port, &s->received, &s->handed_over);
	s->control_tx = p->control_tx;
	s->control_tx_dropped =
		p->control_tx_dropped + __atomic_load_n(&dp->workers[0]->counters.inject_full[port], __ATOMIC_RELAXED);
	s->state = sl_port_state_name(p);
	s->state_since_us = p->changed_us;
	s->link_up = sl_port_usable(p);
	s->link_mbps = p->link_mbps;
	s->link_downs = p->link_downs;
	s->removals = p->removals;
	s->resets = p->resets;
	s->returns = p->returns;
	rc = sl_port_eth_stats(p, &eth);
	if (rc != 0)
		return rc;
	s->rx_packets = eth.ipackets;
	s->tx_packets = eth.opackets;
	s->rx_bytes = eth.ibytes;
	s->tx_bytes = eth.obytes;
	s->rx_missed = eth.imissed;
	s->rx_errors = eth.ierrors;
	s->rx_nombuf = eth.rx_nombuf;
	s->tx_errors = eth.oerrors;
	return 0;
}

void
sl_dataplane_for_each_neigh(const struct sl_dataplane *dp, sl_neigh_fn fn, void *arg)
{
	sl_neigh_for_each(dp->neigh, sl_dataplane_now_us(), fn, arg);
}

const uint64_t *
sl_dataplane_neigh_counters(const struct sl_dataplane *dp)
{
	return sl_neigh_counters(dp->neigh);
}

void
sl_dataplane_buffers(const struct sl_dataplane *dp, uint32_t *free_count, uint32_t *total)
{
	*free_count = *total = 0;
	for (unsigned i = 0; i < dp->port_count; i++) {
		const struct sl_port *p = &dp->ports[i];

		*free_count += rte_mempool_avail_count(p->pool) + rte_mempool_avail_count(p->control_pool);
		*total += p->pool->size + p->control_pool->size;
		if (p->join_pool) {
			*free_count += rte_mempool_avail_count(p->join_pool);
			*total += p->join_pool->size;
		}
	}
}
