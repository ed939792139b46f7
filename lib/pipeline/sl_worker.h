/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_WORKER_H
#define SL_WORKER_H
/*
 * A worker's whole world: what it reads, what it owns, where it puts things. One lcore, one struct, no globals.
 *
 * Written by control before launch and constant after: the part up to "the worker's own". The rest is written by the
 * worker alone, except where a ring has another end. Counters are read by control, relaxed.
 */
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include "sl_burst.h"
#include "sl_dataplane.h"
#include "sl_frame.h"
#include "sl_parse.h"
#include "sl_records.h"
#include "sl_spread.h"

#define SL_WORKERS_MAX 32u
#define SL_RX_QUEUES_MAX 64u /* receive queues one worker polls */
#define SL_LEARN_ENTRIES 256u
#define SL_EVENT_ENTRIES 512u
#define SL_HANDOFF_ENTRIES 512u
#define SL_IDLE_POLLS 2000u /* empty polls in a row before the first sleep, where sleeping is allowed */

/*
 * off and present are control's to switch while the worker runs (release, acquire): a queue is not touched while it is off, and
 * what else is said of it changes only then, a grace period later.
 */
struct sl_rx_queue {
	uint16_t ethdev, queue;
	uint16_t port; /* our index */
	bool off;
	const struct sl_parse_local *local;
	struct rte_mempool *join_pool;
};

struct sl_tx_queue {
	uint16_t ethdev, queue;
	bool present;
};

/* Plain adds by the worker, relaxed reads by control. */
struct sl_worker_counters {
	/*
	 * Odd while rx and the verdicts of a burst are being written: a reader that saw the same even number before and
	 * after has them of whole bursts, so that they add up (sl_dataplane_worker_stats()).
	 */
	uint64_t seq;
	uint64_t rx, handoff_in, rx_bytes, tx_bytes;
	uint64_t verdicts[SL_VERDICT_COUNT];
	uint64_t busy_tsc, idle_tsc, transit_tsc, driver_tsc, polls, busy_polls;
	uint64_t longest_tsc; /* from one poll's beginning to the next; who measures may set it to 0 */
	uint64_t punt_ring_full, event_ring_full, learn_ring_full;
	uint64_t joined; /* frames in several buffers made one */
	uint64_t port_rx[SL_PORTS_MAX], port_handed[SL_PORTS_MAX]; /* with several workers: frames of a port, those for others */
	uint64_t inject_full[SL_PORTS_MAX]; /* control's frames that the port's queue did not take */
};

enum sl_punt_ring { SL_PUNTS_MESSAGES, SL_PUNTS_DATAGRAMS, SL_PUNTS_STRANGERS, SL_PUNT_RINGS };

struct sl_worker {
	uint16_t id, workers;
	uint16_t burst_max;
	uint16_t rx_count;
	unsigned lcore;
	uint32_t idle_sleep_us;
	bool measure_cycles;
	const struct sl_session_view *view;
	const struct sl_fib_ref *fib;
	struct sl_hop_cache *hop_cache;
	const struct sl_aead_backend *aead;
	struct sl_aead_ctx *aead_ctx;
	struct rte_rcu_qsbr *qsbr;
	uint64_t us_per_tsc_q64; /* microseconds a TSC tick, 64 fraction bits */
	uint8_t message_known[256]; /* by type: 1 = for control */
	struct sl_rx_queue rx[SL_RX_QUEUES_MAX];
	struct sl_tx_queue tx[SL_PORTS_MAX]; /* by our port index */
	/*
	 * To control, a ring a kind, so that a flood of one cannot push out another: peers' link messages, peers' datagrams
	 * without a next hop, and what strangers send.
	 */
	struct rte_ring *punt[SL_PUNT_RINGS];
	/* Control's frames for ports that have no queue to spare for it: this worker sends them (sl_frame.port says where). */
	struct rte_ring *inject;
	struct rte_ring *handoff_out[SL_WORKERS_MAX]; /* by owner; NULL for ourselves */
	struct rte_ring *handoff_in[SL_WORKERS_MAX];  /* by sender */
	struct sl_lane *lane; /* of our spread sessions; NULL: there is no such mode */
	struct sl_lane *lane_of[SL_WORKERS_MAX]; /* everybody's */

	/* Written by control while the worker runs. */
	uint32_t stop __attribute__((aligned(SL_CACHE_LINE)));
	uint32_t lanes; /* a bit a worker whose lane is in use */

	/* The worker's own. */
	struct sl_worker_counters counters __attribute__((aligned(SL_CACHE_LINE)));
	struct sl_records events, learn;
	struct sl_spread_held held[SL_SPREAD_HELD];
	uint16_t held_count;
	uint32_t idle_polls;
	bool last_poll_busy;
	uint64_t last_poll_tsc;
	uint64_t transmit_tsc; /* cycles inside the drivers' transmit during the burst in hand */
	struct sl_group_marks marks;
	struct sl_burst in_hand __attribute__((aligned(SL_CACHE_LINE)));
	/* finish counts the burst's verdicts here and publishes them in one go: bits of touched say which are not 0 */
	uint64_t touched;
	uint16_t pending[SL_VERDICT_COUNT];
	/* and sorts the frames into these */
	uint16_t tx_fill[SL_PORTS_MAX];
	uint16_t handoff_fill[SL_WORKERS_MAX];
	struct rte_mbuf *tx_frames[SL_PORTS_MAX][SL_BURST_MAX];
	struct rte_mbuf *handoff_frames[SL_WORKERS_MAX][SL_BURST_MAX];
};

/* One burst from receive to transmit: w->in_hand with count, mbuf[] and port set. */
void sl_transit(struct sl_worker *w, struct sl_burst *b);

/* One turn of the loop; returns the frames handled. The worker's lcore, or a test that stands in for it. */
unsigned sl_worker_poll(struct sl_worker *w);
/* The lcore's main function: polls until stopped. */
int sl_worker_main(void *worker);

struct sl_worker_config {
	uint16_t id, workers, burst;
	int socket;
	uint32_t ring_size, hop_cache_entries, idle_sleep_us;
	bool measure_cycles;
	bool spread; /* with a lane */
	const struct sl_aead_backend *aead;
	const struct sl_session_view *view;
	const struct sl_fib_ref *fib;
	struct rte_rcu_qsbr *qsbr;
};
/* NULL and errno. Handoff rings and lanes are connected by the caller. */
struct sl_worker *sl_worker_create(const struct sl_worker_config *config) SL_MUST_CHECK;
/* Frees what is in its rings too. The worker does not run any more. */
void sl_worker_destroy(struct sl_worker *w);

/* Microseconds a TSC tick in 64 fraction bits. */
uint64_t sl_tsc_scale(void);
static inline uint64_t
sl_tsc_to_us(uint64_t us_per_tsc_q64, uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * us_per_tsc_q64 >> 64);
}

#define SL_COUNT(w, field, n) \
	__atomic_store_n(&(w)->counters.field, (w)->counters.field + (n), __ATOMIC_RELAXED)

#endif
