/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing up an ethdev: what the driver reports decides queues, RSS and offloads; a few need to be known by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include "../overlay/sl_log.h"
#include "sl_frame.h"
#include "sl_join.h"
#include "sl_port.h"

#define CONTROL_MBUFS 511
#define CONTROL_DESCRIPTORS 128 /* of control's transmit queue: what it may hold back stays far below its pool */
#define ETHER_SLACK (SL_ETHER_BYTES + 2 * SL_VLAN_BYTES)

/* What drivers need that they do not report. */
enum {
	/* Receives on every queue pair the device was made with: all must be read, and as many are made as we transmit on. */
	QUIRK_PAIRS = 1,
	/*
	 * None is spent on control: more queues than the other end has are dead (memif, vhost), or a second receive
	 * queue that came with it would take frames out of their order (af_packet: the kernel turns to another queue
	 * when one runs full, so a flow overtakes itself by more than a replay window).
	 */
	QUIRK_NO_SPARE = 2,
	/* Spreads flows over its queues without RSS being set up. */
	QUIRK_SPREADS = 4,
};
static const struct {
	const char *driver;
	unsigned quirks;
	const char *queues_arg; /* device argument that makes so many queue pairs */
} drivers[] = {
	{"net_af_packet", QUIRK_PAIRS | QUIRK_NO_SPARE | QUIRK_SPREADS, "qpairs"},
	{"net_tap", QUIRK_PAIRS | QUIRK_SPREADS, NULL},
	{"net_memif", QUIRK_NO_SPARE | QUIRK_SPREADS, NULL},
	{"net_vhost", QUIRK_NO_SPARE | QUIRK_SPREADS, NULL},
	{"net_virtio", QUIRK_PAIRS | QUIRK_SPREADS, NULL},
};

static int
driver_find(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(drivers); i++)
		if (strncmp(name, drivers[i].driver, strlen(drivers[i].driver)) == 0)
			return (int)i;
	return -1;
}

/* A PCI address may be given without its domain. */
static bool
device_is(const struct rte_device *device, const char *name)
{
	const char *full = rte_dev_name(device);

	return strcmp(full, name) == 0 || (strncmp(full, "0000:", 5) == 0 && strcasecmp(full + 5, name) == 0);
}

static bool
ethdev_find(const char *device, uint16_t *ethdev)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t id;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	if (rte_eth_dev_get_port_by_name(name, ethdev) == 0)
		return true;
	RTE_ETH_FOREACH_DEV(id) {
		struct rte_eth_dev_info info;

		if (rte_eth_dev_info_get(id, &info) == 0 && info.device && device_is(info.device, name)) {
			*ethdev = id;
			return true;
		}
	}
	return false;
}

/* Finds the device, making it first where it is virtual or not attached yet. */
static int
device_attach(struct sl_port *p, uint16_t workers, const char **error)
{
	char args[sizeof(p->config.device) + 32];
	int d = driver_find(p->config.device), rc;

	if (ethdev_find(p->config.device, &p->ethdev))
		return 0;
	rc = sl_port_check(p->config.device, error);
	if (rc != 0)
		return rc;
	snprintf(args, sizeof(args), "%s", p->config.device);
	if (d >= 0 && drivers[d].queues_arg && !strstr(args, drivers[d].queues_arg))
		snprintf(args, sizeof(args), "%s,%s=%u", p->config.device, drivers[d].queues_arg,
			drivers[d].quirks & QUIRK_NO_SPARE ? workers : workers + 1u);
	if (sl_port_interface(p->config.device, p->interface)) {
		*error = "the interface cannot be claimed";
		rc = sl_port_lock(p->interface);
		if (rc < 0)
			return rc;
		p->lock_fd = rc;
		(void)sl_interface_state(p->interface, &p->interface_index);
	}
	*error = "device cannot be attached";
	rc = rte_dev_probe(args);
	if (rc != 0) {
		*error = rc == -EBUSY ? "device is used by another program" :
			rc == -EPERM || rc == -EACCES ? "no permission for the device" : *error;
		return rc < 0 ? rc : -ENODEV;
	}
	*error = "device is not a network port";
	if (!ethdev_find(p->config.device, &p->ethdev))
		return -ENODEV;
	p->created = true;
	return 0;
}

/* Several receive queues for flow rules, on a device that has nothing else to fill them with. */
static bool
wants_rules(const struct sl_port *p)
{
	return p->map.count > 1 && (p->config.steering == SL_STEERING_AUTO || p->config.steering == SL_STEERING_FLOW);
}

static void
queues_choose(struct sl_port *p, const struct rte_eth_dev_info *info, uint16_t workers, unsigned quirks)
{
	const bool off = p->config.steering == SL_STEERING_OFF;
	const bool spreads = !off && (info->flow_type_rss_offloads != 0 || (quirks & QUIRK_SPREADS));

	p->steer.driver_spreads = (quirks & QUIRK_SPREADS) != 0;
	p->for_rules = !spreads && !(quirks & QUIRK_PAIRS) && wants_rules(p);

	p->tx_queues = workers;
	p->control_queue = !(quirks & QUIRK_NO_SPARE) && info->max_tx_queues > workers;
	if (p->control_queue)
		p->tx_queues++;
	p->rx_queues = spreads || p->for_rules ? RTE_MIN(p->map.count, info->max_rx_queues) : 1;
	if (quirks & QUIRK_PAIRS)
		p->rx_queues = RTE_MIN(p->tx_queues, info->max_rx_queues);
}

static int
device_configure(struct sl_port *p, const struct rte_eth_dev_info *info, uint16_t workers)
{
	const uint64_t rss = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
	struct rte_eth_conf conf = {
		.rxmode = {.mtu = p->mtu, .mq_mode = RTE_ETH_MQ_RX_NONE},
		.txmode = {.mq_mode = RTE_ETH_MQ_TX_NONE},
	};

	conf.intr_conf.lsc = (*info->dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	conf.intr_conf.rmv = (*info->dev_flags & RTE_ETH_DEV_INTR_RMV) != 0;
	conf.rxmode.offloads =
		info->rx_offload_capa & (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM);
	if (p->scatter)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	p->steer.rss_set = p->rx_queues > 1 && workers > 1 && (info->flow_type_rss_offloads & rss) &&
		p->config.steering != SL_STEERING_OFF;
	if (p->steer.rss_set) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & rss;
	}
	return rte_eth_dev_configure(p->ethdev, p->rx_queues, p->tx_queues, &conf);
}

struct rte_mempool *
sl_pool_create(const char *what, unsigned number, uint32_t mbufs, uint32_t data_room, int socket)
{
	static unsigned serial; /* names stay in use while a pool exists; control's thread alone */
	char name[RTE_MEMPOOL_NAMESIZE];
	const uint16_t room = (uint16_t)RTE_MIN(data_room, (uint32_t)UINT16_MAX);
	struct rte_pktmbuf_pool_private layout = {.mbuf_data_room_size = room, .mbuf_priv_size = SL_FRAME_PRIV_BYTES};
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "sl_%s%u_%u", what, number, serial++);
	/*
	 * Without huge pages (no device reads this memory by physical address then) buffers may cross pages: one a page
	 * would put them all at the same place of theirs, which the caches' few ways for it do not bear.
	 */
	pool = rte_mempool_create_empty(name, mbufs, sizeof(struct rte_mbuf) + SL_FRAME_PRIV_BYTES + room,
		RTE_MIN(SL_POOL_CACHE, mbufs / 8), sizeof(layout), socket,
		rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		goto fail;
	if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0)
		goto fail;
	rte_pktmbuf_pool_init(pool, &layout);
	if (rte_mempool_populate_default(pool) < 0)
		goto fail;
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
fail:
	errno = rte_errno;
	rte_mempool_free(pool);
	return NULL;
}

/* Data room of a receive buffer: for the whole frame, unless less is asked for. */
static uint32_t
room_choose(const struct sl_port *p, const struct sl_port_params *params)
{
	const char *framesz = strstr(p->config.device, "framesz="); /* af_packet copies up to this */
	const uint32_t room = RTE_MAX(p->mtu + ETHER_SLACK, RTE_MBUF_DEFAULT_DATAROOM);

	if (params->mbuf_data_size)
		return params->mbuf_data_size;
	return framesz ? RTE_MAX(room, (uint32_t)strtoul(framesz + 8, NULL, 10)) : room;
}

/* Received frames' buffers; where they hold less than the largest frame, large ones to join pieces in; control's. */
static int
pools_make(struct sl_port *p, const struct sl_port_params *params)
{
	const uint32_t room = room_choose(p, params), whole = RTE_MAX(room, (uint32_t)p->mtu + ETHER_SLACK);
	const int socket = rte_eth_dev_socket_id(p->ethdev);

	p->pool = sl_pool_create("port", p->index, params->mbufs, room + RTE_PKTMBUF_HEADROOM, socket);
	if (p->pool == NULL)
		return -errno;
	if (p->scatter) {
		p->join_pool = sl_pool_create("join", p->index, RTE_MIN(params->mbufs, SL_JOIN_MBUFS),
			whole + RTE_PKTMBUF_HEADROOM, socket);
		if (p->join_pool == NULL)
			return -errno;
	}
	p->control_pool = sl_pool_create("control", p->index, CONTROL_MBUFS, whole + RTE_PKTMBUF_HEADROOM, socket);
	return p->control_pool ? 0 : -errno;
}

static int
queues_setup(struct sl_port *p, const struct rte_eth_dev_info *info, const char **error)
{
	uint16_t rx_desc = p->config.rx_descriptors ? p->config.rx_descriptors : SL_PORT_DESCRIPTORS;
	uint16_t tx_desc = p->config.tx_descriptors ? p->config.tx_descriptors : SL_PORT_DESCRIPTORS;
	const int socket = rte_eth_dev_socket_id(p->ethdev);
	int rc;

	*error = "descriptors";
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->ethdev, &rx_desc, &tx_desc);
	if (rc != 0)
		return rc;
	p->rx_desc = rx_desc;
	p->tx_desc = tx_desc;
	/* The least that lets it receive at all; sl_dataplane_start() says what it takes never to run dry. */
	*error = "pool is smaller than the receive descriptors and the frames that workers have in hand";
	if (p->pool->size <= (uint32_t)rx_desc * p->rx_queues + p->in_hand)
		return -ENOSPC;
	*error = "receive queue";
	for (uint16_t q = 0; q < p->rx_queues; q++) {
		struct rte_eth_rxconf conf = info->default_rxconf;

		rc = rte_eth_rx_queue_setup(p->ethdev, q, rx_desc, (unsigned)socket, &conf, p->pool);
		if (rc != 0)
			return rc;
	}
	*error = "transmit queue";
	for (uint16_t q = 0; q < p->tx_queues; q++) {
		struct rte_eth_txconf conf = info->default_txconf;
		uint16_t desc = tx_desc, unused = rx_desc;

		if (p->control_queue && q == p->tx_queues - 1) {
			desc = RTE_MIN(desc, CONTROL_DESCRIPTORS);
			if (rte_eth_dev_adjust_nb_rx_tx_desc(p->ethdev, &unused, &desc) != 0)
				desc = tx_desc;
		}
		rc = rte_eth_tx_queue_setup(p->ethdev, q, desc, (unsigned)socket, &conf);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Neighbour discovery and multicast DNS come to group addresses: the least that lets them in, as far as the device has it. */
static void
multicast_enable(struct sl_port *p)
{
	bool wanted = p->multicast;

	for (unsigned i = 0; i < p->config.addr_count; i++)
		wanted |= p->config.addrs[i].family == 6;
	if (!wanted || rte_eth_allmulticast_enable(p->ethdev) == 0)
		return;
	if (rte_eth_promiscuous_enable(p->ethdev) != 0)
		sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE,
			"port %s: neither all-multicast nor promiscuous mode: neighbours may not find us by IPv6 or mDNS", p->config.name);
}

static int
mtu_set(struct sl_port *p, const char **error)
{
	int rc;

	*error = "MTU";
	rc = rte_eth_dev_set_mtu(p->ethdev, p->mtu);
	/* Drivers without the call pass what they are given. */
	return rc == -ENOTSUP ? 0 : rc;
}

int
sl_port_event(uint16_t ethdev, enum rte_eth_event_type event, void *port, void *ret)
{
	struct sl_port *p = port;
	const uint32_t bit = event == RTE_ETH_EVENT_INTR_LSC ? SL_PORT_EVENT_LINK :
		event == RTE_ETH_EVENT_INTR_RESET ? SL_PORT_EVENT_RESET : SL_PORT_EVENT_REMOVED;

	(void)ethdev;
	(void)ret;
	__atomic_fetch_or(&p->events, bit, __ATOMIC_RELEASE);
	return 0;
}

static const enum rte_eth_event_type watched[] = {RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RESET,
	RTE_ETH_EVENT_INTR_RMV};

static void
events_watch(struct sl_port *p)
{
	for (unsigned i = 0; i < RTE_DIM(watched); i++)
		(void)rte_eth_dev_callback_register(p->ethdev, watched[i], sl_port_event, p);
}
static void
events_unwatch(struct sl_port *p)
{
	for (unsigned i = 0; i < RTE_DIM(watched); i++)
		(void)rte_eth_dev_callback_unregister(p->ethdev, watched[i], sl_port_event, p);
	__atomic_store_n(&p->events, 0, __ATOMIC_RELAXED);
}

/* What the port is to be with this device; refused when it is less than workers already rely on. */
static int
shape_choose(struct sl_port *p, const struct rte_eth_dev_info *info, uint16_t workers, const char **error)
{
	uint16_t device_mtu = RTE_ETHER_MTU;
	const int d = driver_find(p->driver);

	*error = "device has fewer transmit queues than there are workers";
	if (info->max_tx_queues < workers || info->max_rx_queues == 0)
		return -ENOTSUP;
	rte_eth_dev_get_mtu(p->ethdev, &device_mtu);
	p->mtu = p->config.mtu ? p->config.mtu : device_mtu;
	queues_choose(p, info, workers, d >= 0 ? drivers[d].quirks : 0);
	return 0;
}

static int
shape_configure(struct sl_port *p, const struct rte_eth_dev_info *info, uint16_t workers, const char **error)
{
	int rc;

	if (p->scatter && !(info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)) {
		*error = "driver cannot receive a frame in several buffers: larger buffers (pools.data_size) or a lower MTU";
		return -ENOTSUP;
	}
	*error = "configuration of the device";
	rc = device_configure(p, info, workers);
	if (rc != 0 && p->rx_queues != p->tx_queues) { /* some take pairs only */
		p->rx_queues = p->tx_queues = RTE_MIN(p->tx_queues, info->max_rx_queues);
		p->control_queue = p->tx_queues > workers;
		rc = p->tx_queues < workers ? rc : device_configure(p, info, workers);
	}
	/* Whether a driver has flow rules shows only now. */
	if (rc == 0 && p->for_rules && p->rx_queues > 1 && !sl_steer_possible(p->ethdev)) {
		p->rx_queues = 1;
		rc = device_configure(p, info, workers);
	}
	return rc;
}

/* Queues, MTU, start, multicast, MAC: the device is configured and the pools are there. */
static int
device_start(struct sl_port *p, const struct rte_eth_dev_info *info, const char **error)
{
	struct rte_ether_addr mac;
	uint16_t device_mtu = RTE_ETHER_MTU;
	int rc = queues_setup(p, info, error);

	rte_eth_dev_get_mtu(p->ethdev, &device_mtu);
	if (rc == 0 && p->config.mtu && p->config.mtu != device_mtu)
		rc = mtu_set(p, error);
	if (rc != 0)
		return rc;
	*error = "start of the device";
	rc = rte_eth_dev_start(p->ethdev);
	if (rc != 0)
		return rc;
	p->started = true;
	multicast_enable(p);
	*error = "MAC address";
	rc = rte_eth_macaddr_get(p->ethdev, &mac);
	if (rc == 0)
		memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
	return rc;
}

static int
device_info(struct sl_port *p, struct rte_eth_dev_info *info, const char **error)
{
	int rc;

	*error = "device information";
	rc = rte_eth_dev_info_get(p->ethdev, info);
	if (rc != 0)
		return rc;
	p->device = info->device;
	snprintf(p->driver, sizeof(p->driver), "%s", info->driver_name ? info->driver_name : "?");
	return 0;
}

int
sl_port_open(struct sl_port *p, const struct sl_port_config *config, const struct sl_port_params *params,
	const char **error)
{
	struct rte_eth_dev_info info;
	int rc;

	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->index = params->index;
	p->lock_fd = -1;
	p->multicast = params->multicast;
	p->in_hand = (uint32_t)params->workers * params->burst;
	p->node = sl_device_node(config->device);
	sl_queue_map_make(&p->map, params->workers, params->nodes, p->node, config->rx_workers, params->index);
	rc = device_attach(p, params->workers, error);
	if (rc != 0)
		goto fail;
	p->opened = true;
	rc = device_info(p, &info, error);
	if (rc == 0)
		rc = shape_choose(p, &info, params->workers, error);
	p->scatter = rc == 0 && room_choose(p, params) < (uint32_t)p->mtu + ETHER_SLACK;
	if (rc == 0)
		rc = shape_configure(p, &info, params->workers, error);
	if (rc == 0) {
		*error = "buffer pool";
		rc = pools_make(p, params);
	}
	if (rc == 0)
		rc = device_start(p, &info, error);
	if (rc != 0)
		goto fail;
	events_watch(p);
	*error = NULL;
	return 0;
fail:
	sl_port_close(p);
	return rc < 0 ? rc : -EIO;
}

int
sl_port_device_open(struct sl_port *p, uint16_t workers, const char **error)
{
	const uint16_t rx = p->rx_queues, tx = p->tx_queues, mtu = p->mtu;
	const bool control_queue = p->control_queue;
	struct rte_eth_dev_info info;
	int rc = device_attach(p, workers, error);

	p->steer.refuted = false;
	if (rc != 0)
		goto fail;
	p->opened = true;
	rc = device_info(p, &info, error);
	if (rc == 0)
		rc = shape_choose(p, &info, workers, error);
	if (rc == 0)
		rc = shape_configure(p, &info, workers, error);
	if (rc == 0 && (p->rx_queues != rx || p->tx_queues != tx || p->control_queue != control_queue || p->mtu != mtu)) {
		*error = "the device came back with other queues or another MTU";
		rc = -EUCLEAN;
	}
	if (rc == 0)
		rc = device_start(p, &info, error);
	if (rc != 0)
		goto fail;
	events_watch(p);
	*error = NULL;
	return 0;
fail:
	sl_port_device_close(p, false);
	p->rx_queues = rx;
	p->tx_queues = tx;
	p->control_queue = control_queue;
	p->mtu = mtu;
	return rc < 0 ? rc : -EIO;
}

static void
stats_add(struct rte_eth_stats *sum, const struct rte_eth_stats *s)
{
	sum->ipackets += s->ipackets;
	sum->opackets += s->opackets;
	sum->ibytes += s->ibytes;
	sum->obytes += s->obytes;
	sum->imissed += s->imissed;
	sum->ierrors += s->ierrors;
	sum->oerrors += s->oerrors;
	sum->rx_nombuf += s->rx_nombuf;
}

int
sl_port_eth_stats(const struct sl_port *p, struct rte_eth_stats *eth)
{
	int rc = 0;

	memset(eth, 0, sizeof(*eth));
	if (p->opened)
		rc = rte_eth_stats_get(p->ethdev, eth);
	stats_add(eth, &p->before);
	return rc;
}

int
sl_port_device_reset(struct sl_port *p, uint16_t workers, const char **error)
{
	struct rte_eth_stats before;
	struct rte_eth_dev_info info;
	int rc;

	(void)!sl_port_eth_stats(p, &before);
	sl_port_stop(p);
	*error = "reset of the device";
	rc = rte_eth_dev_reset(p->ethdev);
	if (rc != 0 && rc != -ENOTSUP) /* without one of its own, stop and start is all there is */
		return rc;
	rc = device_info(p, &info, error);
	if (rc == 0)
		rc = shape_configure(p, &info, workers, error);
	if (rc == 0)
		rc = device_start(p, &info, error);
	if (rc == 0) {
		struct rte_eth_stats now;

		/* Some drivers count on, some begin anew. */
		if (rte_eth_stats_get(p->ethdev, &now) == 0 && now.ipackets + now.opackets < before.ipackets + before.opackets)
			p->before = before;
	}
	return rc;
}

int
sl_port_link(struct sl_port *p)
{
	struct rte_eth_link link;
	unsigned index;
	int rc;

	memset(&link, 0, sizeof(link));
	rc = rte_eth_link_get_nowait(p->ethdev, &link);
	if (rc == -ENODEV || rte_eth_dev_is_removed(p->ethdev) == 1)
		return -ENODEV;
	p->link_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	/* Drivers on an interface of the kernel's say up whatever it is. */
	if (p->interface[0]) {
		rc = sl_interface_state(p->interface, &index);
		if (rc == -ENODEV || index != p->interface_index)
			return -ENODEV;
		return rc != 0;
	}
	/* A driver that does not know is believed to be up. */
	return rc != 0 || link.link_status == RTE_ETH_LINK_UP;
}

void
sl_port_stop(struct sl_port *p)
{
	if (p->opened)
		sl_steer_remove(p); /* drivers differ in what a stop does to rules */
	if (p->started)
		(void)rte_eth_dev_stop(p->ethdev);
	p->started = false;
}

void
sl_port_device_close(struct sl_port *p, bool gone)
{
	struct rte_eth_stats last;

	if (p->opened) {
		events_unwatch(p);
		if (sl_port_eth_stats(p, &last) == 0)
			p->before = last;
		sl_port_stop(p);
		/* Closed always, since its queues know the pool; taken out of EAL only if we put it there, or if it is not there. */
		(void)rte_eth_dev_close(p->ethdev);
		if ((p->created || gone) && p->device)
			(void)rte_dev_remove(p->device);
	}
	if (p->lock_fd >= 0)
		close(p->lock_fd);
	p->lock_fd = -1;
	p->device = NULL;
	p->opened = p->created = false;
}

void
sl_port_close(struct sl_port *p)
{
	sl_port_device_close(p, false);
	rte_mempool_free(p->pool);
	rte_mempool_free(p->join_pool);
	rte_mempool_free(p->control_pool);
	p->pool = p->join_pool = p->control_pool = NULL;
}
