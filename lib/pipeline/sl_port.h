/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PORT_H
#define SL_PORT_H
/*
 * A port: an ethdev with queues for the workers, one for control where the device has it, and a buffer pool of its own.
 *
 * Receive queue q is polled by worker (q + port) % workers, so that devices with few queues spread over the workers.
 * Transmit queue w belongs to worker w, queue `workers` to control; a device without that one leaves control's frames
 * to worker 0 (its inject ring). Threads: control only; workers get queue numbers (sl_worker.h) and the parser's
 * `local`, both constant after launch.
 */
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include "sl_dataplane.h"
#include "sl_parse.h"

struct sl_port {
	struct sl_port_config config;
	uint16_t index;	 /* ours */
	uint16_t ethdev; /* EAL's */
	uint16_t rx_queues, tx_queues;
	uint16_t mtu; /* IP MTU, bytes */
	bool control_queue; /* transmit queue number `workers` is control's */
	bool opened, started, created; /* created: by us, so ours to remove */
	uint8_t mac[6];
	char driver[32];
	struct rte_device *device;
	struct rte_mempool *pool;	  /* received frames */
	struct rte_mempool *control_pool; /* control's own: a flood cannot take its buffers */
	struct sl_parse_local local;
	uint64_t control_tx, control_tx_dropped; /* control alone */
};

struct sl_port_params {
	uint16_t index, workers;
	uint32_t mbufs;
	uint16_t mbuf_data_size; /* 0 = for the MTU */
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

/* A pool whose buffers have the private area that sl_frame.h needs. NULL and errno. */
struct rte_mempool *sl_pool_create(const char *what, unsigned number, uint32_t mbufs, uint32_t data_room, int socket);

#endif
