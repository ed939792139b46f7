/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_QUEUE_MAP_H
#define SL_QUEUE_MAP_H
/*
 * Which workers receive from a port: those that the configuration names, else those on the port's NUMA node, else all. Its
 * receive queues go round them, beginning at another one for each port, so that devices with few queues spread.
 * Pure: any thread.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_QUEUE_MAP_WORKERS 32

struct sl_queue_map {
	uint16_t count; /* at least 1 */
	uint16_t worker[SL_QUEUE_MAP_WORKERS];
	uint16_t first;
};

/*
 * nodes: of each worker's CPU, -1 = unknown; node: of the port, -1 = unknown or none. named: a bit for each worker that the
 * configuration names, 0 = none; bits beyond the workers are ignored.
 */
static inline void
sl_queue_map_make(struct sl_queue_map *m, uint16_t workers, const int *nodes, int node, uint32_t named, uint16_t port)
{
	m->count = 0;
	for (uint16_t pass = 0; pass < 3 && m->count == 0; pass++)
		for (uint16_t w = 0; w < workers && w < SL_QUEUE_MAP_WORKERS; w++)
			if (pass == 0 ? (named >> w & 1) != 0 : pass == 1 ? node >= 0 && nodes[w] == node : 1)
				m->worker[m->count++] = w;
	m->first = port;
}

static inline uint16_t
sl_queue_map_worker(const struct sl_queue_map *m, uint16_t queue)
{
	return m->worker[(queue + m->first) % m->count];
}

#ifdef __cplusplus
}
#endif
#endif
