/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RELAY_H
#define RELAY_H
/*
 * A whole relay inside one process, for benchmarks: ports made of rings, the real router, sessions with 64 peers as
 * control leaves them. Peer i is on port i % ports and its session is owned by worker i % workers. Whoever measures
 * drives the workers; the peers' side (frames in, frames out) is here.
 *
 * One thread makes it. relay_frames_make() may run on several at once, each with a share of its own.
 */
#include <rte_ring.h>
#include "sl_control.h"
#include "sl_router.h"

#define RELAY_PEERS 64u
#define RELAY_BURST 32u
#define RELAY_PORTS 2u

struct relay_peer {
	struct sl_node_addr addr;
	struct sl_session *session;
	struct sl_path path;
	uint8_t send[SL_KEY_BYTES];
	uint64_t counter;
	uint8_t mac[6], ip[16];
};

struct relay {
	char name[16];
	uint8_t link; /* enum sl_addr_kind */
	uint16_t workers, ports;
	bool by_hand; /* sessions may be spread by sl_dataplane_spread(): set before relay_make() */
	bool jumbo; /* MTU 9,000, and buffers of 2,048 bytes at the ports: set before relay_make() */
	uint32_t out_entries; /* of a port's transmit ring for a worker; 0 = 4096 */
	const struct sl_dataplane_sink *sink; /* NULL = nobody listens */
	const struct sl_aead_backend *aead;
	struct sl_aead_ctx *ctx[RELAY_PORTS]; /* of a share's peers, and for bare rounds */
	struct sl_identity *identity;
	struct sl_session_table *table;
	struct sl_router *router;
	struct sl_dataplane *dp;
	struct rte_ring *in[RELAY_PORTS], *out[RELAY_PORTS][RELAY_PORTS + 1]; /* out: [port][worker] */
	struct relay_peer peers[RELAY_PEERS];
};

/* r->aead is set. Worker w receives from port w, where there are as many of each. 0 or -1. */
int relay_make(struct relay *r, const char *name, uint8_t link, uint16_t workers, uint16_t ports);

/* The frames of a round, and what the AEAD does with each: places in open[] change when they are opened. */
struct relay_frames {
	unsigned count; /* a multiple of RELAY_BURST */
	unsigned from; /* 0: from any peer of the share, else all from peer number from - 1 */
	unsigned message_every; /* each so-manieth is a link message for control instead of a datagram; 0 = none */
	uint64_t random;
	struct rte_mbuf **mbuf;
	struct sl_aead_op *open, *seal;
	struct sl_aead_reop *reseal;
};
/* 0 or -1. */
int relay_frames_init(struct relay_frames *f, unsigned count);
/* The peers in so many equal shares: by port, by owner, or both. */
static inline unsigned
relay_shares(const struct relay *r)
{
	return r->workers > r->ports ? r->workers : r->ports;
}
/* From peers of one share to any others, each session's counters rising; one buffer each, sealed. payload: bytes. */
void relay_frames_make(struct relay_frames *f, struct relay *r, struct rte_mempool *pool, uint16_t share, unsigned payload,
	bool nic_checksums);
/* The AEAD alone over such frames, as transit uses it: open_lead and reseal, a burst at a time. How many authenticated. */
unsigned relay_fused(const struct relay *r, uint16_t share, struct relay_frames *f);
/* Makes a frame of relay_frames_make() a first handshake packet from the same peer: right in form, and no more. */
void relay_frame_msg1(struct relay *r, struct rte_mbuf *m);
/* Takes and frees what worker w has sent, by all ports; returns how many. */
unsigned relay_drain(struct relay *r, uint16_t w);

#endif
