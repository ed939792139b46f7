/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LINK_LIMITS_H
#define SL_LINK_LIMITS_H
/* Times, numbers and budgets of the link state machines that no configuration changes. Link layer facts, as cited. */

#define SL_DIALS_MAX 4u		  /* addresses of one peer dialled at once (facts, 12) */
#define SL_CANDIDATES 4u	  /* of one peer: as many as a peer may dial us on */
#define SL_DRAIN_US 10000000ull	  /* facts, 9.1 */
#define SL_DAMPING_US 30000000ull /* facts, 9.1 */
#define SL_REKEY_MIN_AGE_US                                                                        \
	30000000ull /* younger, the reference takes no rekey: we neither (9.1) */
#define SL_REKEY_MIN_GAP_US 35000000ull /* so we start none earlier (9.1, TRAP) */
#define SL_REKEY_JITTER_S 15u
#define SL_HANDOVER_US                                                                             \
	2000000ull /* old session used at most so long beside an unconfirmed new one (9.3) */
#define SL_ALIVE_US                                                                                \
	2000000ull /* a link that received within this is not one that its peer has lost */
#define SL_TWIN_US 2500000ull /* msg1 so close behind another: dials of one peer in parallel */
#define SL_DOUBT_US                                                                                \
	3000000ull /* after a change of sessions: is the peer on the one that won? */
#define SL_LINGER_US 5000000ull /* a candidate that lost */
#define SL_RESCUE_US                                                                               \
	5000000ull /* silence during our rekey after which msg2 is taken for lost (9.5) */
#define SL_BEAT_US 1000000ull /* the protocol's tick (facts, 20) */
#define SL_RETRIES_PER_S 16u  /* peering facts, 4 */
/*
 * First flight. Gaps grow by half: 100, 150, 225, 337 ms after each other; the first is no less than a little over what
 * msg1 to msg2 took the last time. All peers share a pace. On 250 kbit/s a copy takes 5 ms.
 */
#define SL_EARLY_GAP_US 100000u
#define SL_EARLY_COPIES 4u
#define SL_EARLY_RATE_PER_S 100
#define SL_EARLY_BURST 32
#define SL_EARLY_FRAMES 3u /* first frame on a link that we dialled, until the peer is heard */
#define SL_REPEATS_FREE 16u /* copies of one msg1 that are answered at any pace: no curve operation, fewer bytes; then */
#define SL_REPEAT_GAP_US 500000u /* one in so long */
#define SL_REFUSED_US 30000000ull /* a msg1 that came to nothing is remembered so long */
#define SL_REFUSED_SHORT_US 800000ull /* where the reason may be gone before an honest repetition comes */
#define SL_PEERS_PER_TURN 256u
/*
 * What one call of sl_links_tick() may take, in microseconds as estimated below (no clock here): the
 * rest stays due and the call says so. Timers and dials have budgets of their own, so a thousand
 * peers that wait to be dialled do not make a heartbeat late.
 */
#define SL_TURN_TIMERS_US 2000
#define SL_TURN_DIALS_US 1500
#define SL_COST_DH_US 60      /* one multiplication of a point that is not the generator */
#define SL_COST_MSG1_US 110   /* ephemeral key and es */
#define SL_COST_PACKET_US 8   /* sealed, handed to the port */
#define SL_COST_PEER_US 2
#define SL_SEND_RETRY_MIN_US 50000ull /* a msg1 that could not be sent locally */
#define SL_SEND_RETRY_MAX_US 1000000ull
#define SL_ANSWERS_BURST 16
#define SL_ANSWERS_PER_S 50
#define SL_TRANSPORTS_MAX 256u
#define SL_OWN_ADDRS_MAX 64u
#define SL_REFUSED_ENTRIES 16u
#define SL_FRAME_MAX 9216u
#define SL_EXCUSED_MAX 32u /* probes of a link's MTU between two reports; more count as loss a little early or late */
#define SL_ANSWERED_ENTRIES 4096u

#endif
