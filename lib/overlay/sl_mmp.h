/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_MMP_H
#define SL_MMP_H
/*
 * Link metrics (MMP): what is counted per authentic frame on receipt and per frame sent, and what the two report
 * kinds are made of. Link layer facts, section 15.
 *
 * Receive side: struct sl_mmp_rx is written by the session's owner worker alone (plain stores) and read by control
 * (relaxed; a report may mix two neighbouring frames, which the protocol tolerates).
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Per session, receive side. The interval fields are differences against control's copy of the last report. */
struct sl_mmp_rx {
	uint64_t frames, bytes;	  /* authentic frames, whole FMP packets */
	uint64_t highest;	  /* highest counter seen on this session */
	uint64_t expected;	  /* next counter expected, for bursts */
	uint64_t last_rx_us;	  /* monotonic time of the last authentic frame; 0 = none yet */
	uint32_t last_ts_ms;	  /* its inner timestamp */
	uint32_t reordered;
	uint32_t ce_frames;
	uint32_t bursts;	  /* loss bursts begun */
	uint32_t burst_open;	  /* length of the open burst, 0 = none */
	uint32_t burst_longest;	  /* since control last raised burst_epoch */
	uint64_t burst_sum;
	uint32_t jitter_q4_us;	  /* jitter << 4 */
	uint32_t spin;		  /* value of SP on the highest frame */
};

/* One authentic frame. now_us: monotonic, microseconds; bytes: whole FMP packet. */
static inline void
sl_mmp_rx_frame(struct sl_mmp_rx *m, uint64_t counter, uint32_t ts_ms, uint32_t bytes, uint64_t now_us, uint8_t flags)
{
	if (m->frames) {
		int64_t d = (int64_t)(now_us - m->last_rx_us) - (int64_t)(int32_t)(ts_ms - m->last_ts_ms) * 1000;
		uint64_t mag = (uint64_t)(d < 0 ? -d : d);

		if (mag > UINT32_MAX >> 5)
			mag = UINT32_MAX >> 5;
		m->jitter_q4_us += (uint32_t)mag - (m->jitter_q4_us >> 4);
		if (counter > m->expected) {
			uint32_t gap = (uint32_t)(counter - m->expected > UINT32_MAX ? UINT32_MAX : counter - m->expected);

			if (!m->burst_open)
				m->bursts++;
			m->burst_open += gap;
			m->burst_sum += gap;
			if (m->burst_open > m->burst_longest)
				m->burst_longest = m->burst_open;
		} else {
			m->burst_open = 0;
		}
	}
	if (counter >= m->expected || !m->frames)
		m->expected = counter + 1;
	if (m->frames && counter < m->highest) {
		m->reordered++;
	} else {
		m->highest = counter;
		m->spin = flags & 0x04u;
	}
	m->ce_frames += (flags & 0x02u) != 0;
	m->frames++;
	m->bytes += bytes;
	m->last_ts_ms = ts_ms;
	m->last_rx_us = now_us;
}

#ifdef __cplusplus
}
#endif
#endif
