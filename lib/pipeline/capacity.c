/* SPDX-License-Identifier: BSD-3-Clause */
/* What the data plane comes to hold besides its pools, from the sizes of what it is made of. */
#include "neigh_int.h"
#include "sl_control.h"

void
sl_dataplane_capacity(const struct sl_dataplane_config *given, uint32_t max_peers, uint32_t slots,
	struct sl_dataplane_capacity *c)
{
	const struct sl_worker *w = NULL;
	struct sl_dataplane_config config = *given;
	size_t ring, handoff;

	sl_dataplane_config_defaults(&config);
	ring = (size_t)rte_ring_get_memsize(config.ring_size);
	handoff = (size_t)rte_ring_get_memsize(SL_HANDOFF_ENTRIES);
	c->peer = sizeof(struct sl_path) + sizeof(struct sl_peer_path) + sizeof(struct neigh) + 2 * sizeof(uint32_t);
	c->session = config.elephant != SL_ELEPHANT_OFF ? sizeof(uint32_t) : 0;
	c->worker = sl_hop_cache_bytes(config.hop_cache_entries);
	c->total = sizeof(struct sl_dataplane) + sizeof(struct sl_neigh) + c->peer * max_peers + c->session * slots +
		c->worker * config.workers;
	c->eal_peer = sizeof(*w->marks.of_peer);
	c->eal_worker = sizeof(*w) + SL_PUNT_RINGS * ring + config.workers * handoff + SL_EVENT_ENTRIES * sizeof(struct sl_event) +
		SL_LEARN_ENTRIES * sizeof(struct sl_learn);
}
