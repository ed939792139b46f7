/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_FRAME_H
#define SL_FRAME_H
/*
 * What travels with a frame that leaves the worker it arrived at: in the private area of its mbuf, written only then.
 * Indices and generations, no pointer that RCU guards: the reader looks them up again.
 */
#include <rte_mbuf.h>
#include "../overlay/sl_addr.h"

enum sl_frame_kind {
	SL_FRAME_HANDSHAKE, /* to control: FMP packet of phase 1 or 2 */
	SL_FRAME_MESSAGE,   /* to control: opened link message */
	SL_FRAME_DATAGRAM,  /* to control: opened datagram that has no next hop here */
	SL_FRAME_NEIGHBOUR, /* to control: whole Ethernet frame (ARP, ND, ICMP) */
	SL_FRAME_BEACON,    /* to control: raw Ethernet beacon, 32-byte key */
	SL_FRAME_TRAVERSAL, /* to control: STUN answer or punch packet */
	SL_FRAME_MDNS,	    /* to control: message of multicast DNS */
	SL_FRAME_SESSION,   /* to the owner worker: FMP packet of phase 0, still sealed */
};

struct sl_frame {
	struct sl_addr from;
	uint32_t offset; /* of what kind names, from the start of the mbuf's data */
	uint32_t len;
	uint32_t rx_index;
	uint32_t peer_id;
	uint32_t peer_generation;
	uint16_t port; /* our index of the port it came in by */
	uint8_t kind;  /* enum sl_frame_kind */
	uint8_t flags; /* of the outer header */
	bool checksum_due; /* SESSION: the UDP checksum has not been looked at */
};

/* Whole cache lines, so that packets begin at the beginning of one. */
#define SL_FRAME_PRIV_BYTES RTE_ALIGN_CEIL(sizeof(struct sl_frame), RTE_CACHE_LINE_SIZE)

static inline struct sl_frame *
sl_frame_of(struct rte_mbuf *m)
{
	return (struct sl_frame *)rte_mbuf_to_priv(m);
}

/* Small reports of a worker to control, one ring each worker. */
enum sl_event_kind { SL_EVENT_FIRST_FRAME, SL_EVENT_ROAMED, SL_EVENT_TOO_BIG };
#define SL_EVENT_HEAD_BYTES 84
struct sl_event {
	struct sl_addr from;
	uint32_t rx_index;
	uint16_t mtu;
	uint16_t len; /* of head */
	uint8_t kind; /* enum sl_event_kind */
	uint8_t flags;
	uint8_t head[SL_EVENT_HEAD_BYTES];
};

/* The head of a forwarded datagram that shows coordinates. Longer heads (paths of over 40 nodes) are not learnt from. */
#define SL_LEARN_BYTES 1532
struct sl_learn {
	uint32_t len;
	uint8_t msg[SL_LEARN_BYTES];
};

#endif
