/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a frame. A worker takes a burst through these steps in one pass, in the buffers it arrived in:
 *
 *	step		does						gives a verdict
 *	classify	Ethernet, VLAN, IP, UDP or raw Ethernet		PUNT (handshake, ARP, ND, ICMP, beacon,
 *			header; FMP prefix				STUN, punch), DROP_SEGMENTS* and those of sl_parse.h: DROP_ETHERTYPE
 *									.. DROP_ETH_TYPE, DROP_FMP_*, DROP_NPT
 *	session		receiver index -> session
 *	admit		session, UDP checksum of a new source,		HANDOFF, DROP_UNKNOWN_INDEX, DROP_UDP_CHECKSUM,
 *			window, before the AEAD				DROP_REPLAY, DROP_SPREAD_FULL
 *	open		one AEAD call: the tag, the first bytes		DROP_AUTH
 *	commit		window, measurements, events			DROP_REPLAY (twin in the burst), DROP_INNER_SHORT
 *	message		type of the link message			LOCAL (heartbeat), PUNT (message),
 *									DROP_DATAGRAM_SHORT, DROP_MESSAGE_UNKNOWN
 *	next hop	one look-up; coordinates to learn; TTL		PUNT (datagram), DROP_TTL
 *	egress		session and headers to send with; TTL and	DROP_NO_SESSION, DROP_NO_PATH, DROP_TOO_BIG
 *			path MTU rewritten; groups by session
 *	reserve		run of counters a group; headers, timestamps	DROP_NONCE
 *	reseal		one AEAD call: from the old key to the new	DROP_SEAL
 *	wrap		outer headers					FORWARD
 *	finish		transmits, punts, hands over or frees		DROP_TX_FULL, DROP_PUNT_FULL, DROP_HANDOFF_FULL
 *
 * Who frees: finish, and nobody else in here, each frame that did not leave. A transmitted frame is the NIC's, a punted one
 * control's (dataplane.c frees it after its sink has seen it), one handed over the owner's, who brings it here again
 * from `resume` on. Nothing in here allocates memory, locks, calls the system, logs or divides; tests/eal holds it to that.
 * Frames in several buffers are joined in one (sl_join.h) before anything looks at them.
 *
 * A frame of a session that is spread over several workers goes from admit into a lane (sl_spread.h), and comes to finish from
 * there: the same steps, by several workers, in the same order.
 */
#include "sl_stage_out.h"

void
sl_transit(struct sl_worker *w, struct sl_burst *b)
{
	b->begin_tsc = rte_rdtsc();
	b->now_us = sl_tsc_to_us(w->us_per_tsc_q64, b->begin_tsc);
	b->fib = __atomic_load_n(&w->fib->current, __ATOMIC_ACQUIRE);
	b->spread = 0;

	if (likely(b->port != SL_PORT_NONE))
		sl_stage_classify(w, b);
	else
		sl_stage_resume(w, b);
	sl_stage_session(w, b);
	sl_stage_admit(w, b);
	sl_stage_open(w, b);
	sl_stage_commit(w, b);

	sl_stage_message(w, b);
	sl_stage_next_hop(w, b);

	sl_stage_egress(w, b);
	sl_stage_reserve(w, b);
	sl_stage_reseal(w, b);
	sl_stage_wrap(b);

	sl_stage_finish(w, b);
}
