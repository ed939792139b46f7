/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PORT_H
#define SL_PORT_H
/*
 * A port: an ethdev with queues for the workers, one for control where the device has it, and a buffer pool of its own.
 *
 * Which worker polls which receive queue: sl_queue_map.h.
 * Transmit queue w belongs to worker w, queue `workers` to control; a device without that one leaves control's frames
 * to worker 0 (its inject ring). Threads: control only; workers get queue numbers (sl_worker.h) and the parser's
 * `local`, both constant while workers may use the port; `events` is set by EAL's interrupt thread.
 *
 * A port outlives its device. What the device reports (or the kernel's interface behind it) is looked at by
 * port_life.c: a device that goes is taken from the workers, closed, and opened again when it is back, with the same
 * pools, queues and index.
 */
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include "sl_dataplane.h"
#include "sl_parse.h"
#include "sl_port_check.h"
#include "sl_queue_map.h"
#include "sl_steer.h"

enum sl_port_state { SL_PORT_RUNNING, SL_PORT_LEAVING, SL_PORT_LEFT, SL_PORT_GONE }; /* port_life.c */

#define SL_PORT_EVENT_LINK 1u
#define SL_PORT_EVENT_RESET 2u
#define SL_PORT_EVENT_REMOVED 4u

struct sl_port {
	struct sl_port_config config;
	uint16_t index;	 /* ours */
	uint16_t ethdev; /* EAL's */
	uint16_t rx_queues, tx_queues;
	uint16_t rx_desc, tx_desc; /* a queue */
	uint32_t in_hand; /* frames that workers may have in hand at once */
	int node; /* NUMA node, -1 = none or unknown */
	struct sl_queue_map map;
	struct sl_steer steer;
	uint16_t mtu; /* IP MTU, bytes */
	bool scatter; /* buffers are smaller than the largest frame: it comes in several */
	bool for_rules; /* has several receive queues for the sake of flow rules alone */
	bool control_queue; /* transmit queue number `workers` is control's */
	bool opened, started, created; /* of the device; created: by us, so ours to remove */
	uint8_t mac[6];
	char driver[32];
	struct rte_device *device;
	struct rte_mempool *pool;	  /* received frames */
	struct rte_mempool *join_pool;	  /* large ones, where frames come in several of pool's; else NULL (sl_join.h) */
	struct rte_mempool *control_pool; /* control's own: a flood cannot take its buffers */
	struct sl_parse_local local;
	uint64_t control_tx, control_tx_dropped; /* control alone */

	char interface[SL_IFNAME_SIZE]; /* of the kernel's, behind the device; "" = none */
	unsigned interface_index;
	bool multicast; /* groups are wanted whatever addresses the port has */
	int lock_fd;
	uint32_t events; /* SL_PORT_EVENT_*: set by EAL's interrupt thread, taken by control (atomic) */
	struct rte_eth_stats before; /* of the devices that were before this one */

	/* port_life.c's */
	uint8_t state; /* enum sl_port_state */
	bool link_up, link_told, resetting;
	uint32_t link_mbps;
	uint64_t changed_us, next_look_us, retry_us;
	uint64_t link_downs, removals, resets, returns;
};

struct sl_port_params {
	uint16_t index, workers;
	const int *nodes; /* of the workers' CPUs, -1 = unknown */
	uint32_t mbufs;
	uint16_t burst; /* frames a worker has in hand */
	uint16_t mbuf_data_size; /* 0 = for the MTU */
	bool multicast; /* not for IPv6's sake alone */
};

/*
 * Brings the device up and starts it. 0 or -errno; *error is static text that names the step. The port needs
 * sl_port_close() only after success.
 */
int sl_port_open(struct sl_port *p, const struct sl_port_config *config, const struct sl_port_params *params,
	const char **error) SL_MUST_CHECK;
void sl_port_stop(struct sl_port *p);
/* Stops, closes and frees the pool; all its buffers should be back. */
void sl_port_close(struct sl_port *p);

/* Gives up the device and keeps the rest; no worker may use it any more. gone: the device itself is not there any more. */
void sl_port_device_close(struct sl_port *p, bool gone);
/*
 * Opens the device of a port again. 0 or -errno and *error as sl_port_open(); -EUCLEAN when it came back smaller (fewer
 * queues, another MTU). The MAC may be another one.
 */
int sl_port_device_open(struct sl_port *p, uint16_t workers, const char **error) SL_MUST_CHECK;
/* A reset that the device asked for: stops it, resets, configures and starts it again; its ethdev stays. 0 or -errno. */
int sl_port_device_reset(struct sl_port *p, uint16_t workers, const char **error) SL_MUST_CHECK;
/* 1 up, 0 down, -ENODEV gone. */
int sl_port_link(struct sl_port *p);
/* Counts of all its devices. 0 or -errno. */
int sl_port_eth_stats(const struct sl_port *p, struct rte_eth_stats *eth) SL_MUST_CHECK;
/* What EAL calls, from its interrupt thread, when a device reports something; port: a struct sl_port. */
int sl_port_event(uint16_t ethdev, enum rte_eth_event_type event, void *port, void *ret);

/* A pool whose buffers have the private area that sl_frame.h needs. NULL and errno. */
struct rte_mempool *sl_pool_create(const char *what, unsigned number, uint32_t mbufs, uint32_t data_room, int socket);

#endif
