/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_STUN_H
#define SL_STUN_H
/*
 * STUN (RFC 8489) as far as a node behind a NAT needs it: a Binding request to one of several servers, from the very
 * port that the answer is wanted for, and the address that the server saw.
 *
 * The codec is pure. struct sl_stun_query is a state machine: packets and monotonic microseconds in, packets out through
 * a callback; one thread, one query at a time. Timings are the reference's towards the outside (servers in order, 2 s
 * each), with RFC 8489's retransmissions inside (RTO 500 ms, doubled: at 0, 0.5 and 1.5 s): the reference sends one
 * datagram a server. Peering facts, section 12.1; pinned by the vectors of RFC 5769.
 *
 * An answer counts when it comes from the server that was asked, under an id of 96 random bits. FINGERPRINT is checked
 * where there is one; MESSAGE-INTEGRITY means nothing here, as we have no credentials with the server.
 */
#include "../sl_addr.h"
#include "../../crypto/sl_secret.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_STUN_HEADER_BYTES 20u
#define SL_STUN_ID_BYTES 12
#define SL_STUN_COOKIE 0x2112a442u
#define SL_STUN_SERVERS_MAX 8u
#define SL_STUN_SERVER_US 2000000u /* a server's time */
#define SL_STUN_RTO_US 500000u
#define SL_STUN_SENDS 3u /* to one server: what fits in its time */

void sl_stun_request_build(uint8_t packet[SL_STUN_HEADER_BYTES], const uint8_t id[SL_STUN_ID_BYTES]);

/*
 * A Binding response. 0: *mapped is what the server saw (kind, udp_port and u; XOR-MAPPED-ADDRESS before MAPPED-ADDRESS).
 * -EINVAL: not a well-formed STUN message. -EPROTO: well-formed, but no Binding response, a wrong fingerprint, or an attribute that
 * must be understood and is not. -ENOMSG: another id. -EREMOTEIO: an error response, its code in *code (0 when it has none).
 * -ENODATA: no usable address in it.
 */
int sl_stun_response_parse(const uint8_t *packet, size_t len, const uint8_t id[SL_STUN_ID_BYTES], struct sl_addr *mapped,
	unsigned *code) SL_MUST_CHECK;

enum sl_stun_state { SL_STUN_IDLE, SL_STUN_ASKING, SL_STUN_DONE, SL_STUN_FAILED };

typedef int (*sl_stun_send_fn)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len);

struct sl_stun_query {
	struct sl_addr servers[SL_STUN_SERVERS_MAX]; /* kind NONE: not resolved, left out */
	unsigned server_count, server; /* of the query; the one being asked, or that answered */
	unsigned first, tried;
	uint8_t state; /* enum sl_stun_state */
	uint8_t sends;
	uint8_t id[SL_STUN_ID_BYTES];
	uint64_t since_us, next_us, server_until_us;
	struct sl_addr mapped;
	const char *error; /* of the last server that failed; static text */
	uint64_t answered_us; /* round trip of the request that was answered: 0 when it was repeated */
};

/* Asks, beginning with server `first`, in a circle. FAILED at once when there is none with an address. */
void sl_stun_query_begin(struct sl_stun_query *q, const struct sl_addr *servers, unsigned count, unsigned first,
	uint64_t now_us, sl_stun_send_fn send, void *arg);
/* True: the packet was for this query (state tells what came of it). */
bool sl_stun_query_packet(struct sl_stun_query *q, const struct sl_addr *from, const uint8_t *packet, size_t len,
	uint64_t now_us, sl_stun_send_fn send, void *arg);
/* Runs what is due; returns when to call again, UINT64_MAX when the query is over. */
uint64_t sl_stun_query_tick(struct sl_stun_query *q, uint64_t now_us, sl_stun_send_fn send, void *arg);

#ifdef __cplusplus
}
#endif
#endif
