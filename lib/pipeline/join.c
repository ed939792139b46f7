/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_join.h"
#include <string.h>

/* The pieces are as many as the first one says, and their bytes add up to the frame's length: drivers are believed, not trusted. */
static bool
adds_up(const struct rte_mbuf *m)
{
	uint32_t bytes = 0;
	uint16_t pieces = 0;

	for (const struct rte_mbuf *s = m; s; s = s->next) {
		bytes += s->data_len;
		if (++pieces > m->nb_segs)
			return false;
	}
	return pieces == m->nb_segs && bytes == m->pkt_len;
}

/* What the NIC said of the frame. How the old buffer was held is not the new one's. */
static void
marks_copy(struct rte_mbuf *to, const struct rte_mbuf *from)
{
	to->port = from->port;
	to->ol_flags = from->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	to->packet_type = from->packet_type;
	to->vlan_tci = from->vlan_tci;
	to->vlan_tci_outer = from->vlan_tci_outer;
	to->hash = from->hash;
}

enum sl_verdict
sl_join(struct rte_mempool *pool, struct rte_mbuf **m)
{
	struct rte_mbuf *const from = *m;
	struct rte_mbuf *to;
	uint8_t *at;

	if (pool == NULL || from->pkt_len > (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM || !adds_up(from))
		return SL_DROP_SEGMENTS;
	to = rte_pktmbuf_alloc(pool);
	if (to == NULL)
		return SL_DROP_SEGMENTS_FULL;
	at = rte_pktmbuf_mtod(to, uint8_t *);
	for (const struct rte_mbuf *s = from; s; s = s->next) {
		memcpy(at, rte_pktmbuf_mtod(s, const void *), s->data_len);
		at += s->data_len;
	}
	to->data_len = (uint16_t)from->pkt_len;
	to->pkt_len = from->pkt_len;
	marks_copy(to, from);
	rte_pktmbuf_free(from);
	*m = to;
	return SL_FORWARD;
}
