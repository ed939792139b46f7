/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SESSION_H
#define SL_SESSION_H
/*
 * Link sessions and the two tables the workers read: receiver index -> session, and peer -> what to send with.
 *
 * A session is one Noise session: both keys, the replay window, the send counter. A peer can have several at once
 * (current, pending, previous); each has its own receiver index and an index names exactly one session object.
 *
 * Ownership and publishing:
 *   - control creates a session, installs it under its index (release), later retires it: out of the table at once,
 *     freed through the table's `reclaim` callback after a grace period (RCU in the daemon, at once in a simulator).
 *     Keys are wiped when it is freed.
 *   - workers look up with an acquire load and use what they get until they report quiescent.
 *   - what is called immutable is written before a reader can find it, and never again.
 *
 * The receiver index is ours to choose: [ random : 32 - slot_bits | slot : slot_bits ]. slot is the table's row, so a
 * look-up is one load and one compare; its low owner_bits name the owner worker, so that a worker which
 * receives another's frame sees it without a look-up.
 */
#include "../crypto/sl_nonce.h"
#include "../crypto/sl_replay.h"
#include "sl_addr.h"
#include "sl_mmp.h"
#include "sl_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_CACHE_LINE 64
#define SL_PEER_NONE UINT32_MAX
#define SL_SESSION_OWNERS_MAX 128u

struct sl_path; /* lib/pipeline: the ready-made outer headers towards one address. Opaque here. */
struct sl_session_table;

/* Events a session may ask its owner worker to report once (struct sl_session.notify). */
#define SL_NOTIFY_FIRST_FRAME 0x01 /* the next authentic frame */
#define SL_NOTIFY_ADDRESS 0x02	   /* the next authentic, highest frame whose source differs from rx_addr_hash */

/*
 * struct sl_session.owner: the worker, and how its frames are opened. A session whose peer's current session is marked is
 * installed with the same marks, so that a rekey does not let the new session's frames overtake the old one's.
 */
#define SL_OWNER_WORKER 0x00ffu
#define SL_OWNER_SPREAD 0x0100u /* by several workers (lib/pipeline/sl_spread.h); set by control */
#define SL_OWNER_ENDING 0x0200u /* not any longer, as soon as none is under way: set by control; the owner then clears both */

/*
 * In cache lines by who needs what: a frame that comes in touches the first, the receive counters and one word of the
 * window; one that goes out the second and the send counter.
 */
struct sl_session {
	/* Immutable after install, but for the words that say so. */
	uint32_t rx_index; /* ours: what the peer puts on frames to us */
	uint32_t peer_id;  /* row of the peer table */
	uint16_t owner;	   /* worker that receives on it, and SL_OWNER_*: atomic (relaxed) */
	uint8_t is_initiator; /* of this handshake */
	uint8_t notify; /* SL_NOTIFY_*: control sets a bit, the owner worker takes it (atomic and, or) */
	uint32_t reserved;
	uint64_t rx_addr_hash; /* written by control, read by workers (relaxed): sl_addr_hash() of the peer's address */
	uint8_t rx_key[SL_KEY_BYTES];

	uint8_t tx_key[SL_KEY_BYTES] __attribute__((aligned(SL_CACHE_LINE)));
	uint64_t origin_us; /* monotonic time our inner timestamps count from */
	uint32_t tx_index;  /* theirs: what we put on frames to them */
	uint8_t tx_flags; /* written by control, read by workers (relaxed): K as it is sent on this session, and SP */

	/* Written by the owner worker alone, read by control (relaxed): */
	struct sl_mmp_rx mmp __attribute__((aligned(SL_CACHE_LINE)));
	struct sl_replay replay;
	uint64_t open_failures;	    /* frames that did not authenticate */
	uint64_t replays;

	/* Written by any lcore, atomically or under the lease (sl_session_reserve()): */
	struct sl_nonce tx_counter __attribute__((aligned(SL_CACHE_LINE)));
	uint64_t tx_bytes; /* whole FMP packets; added once per burst and session */
};

/*
 * One row per peer, at a fixed place while the peer exists; workers reach it by peer_id from the next hop.
 * Writer: control. Readers: workers. Pointers are stored with release and retired like sessions.
 */
struct sl_peer_row {
	struct sl_session *tx;	    /* session to seal with; NULL = no link */
	const struct sl_path *path; /* outer headers to its current address; NULL = unresolved */
	uint32_t generation;	    /* raised whenever the row gets another peer */
	uint32_t reserved;
} __attribute__((aligned(SL_CACHE_LINE)));

struct sl_session_table_config {
	uint32_t max_sessions; /* 1 .. 1 << 20; rounded up so that every worker can own its even share */
	uint32_t max_peers;    /* rows of the peer table */
	uint16_t workers;      /* 1 .. SL_SESSION_OWNERS_MAX */
	/*
	 * Called when nothing new can reach obj; must call fn(fn_arg, obj), on control's thread, once no reader holds it.
	 * NULL = at once.
	 */
	void (*reclaim)(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);
	void *reclaim_arg;
};

/*
 * All keys live in one arena of the table: kept out of core files and children, locked against swapping as far as the
 * system's limits allow. Its pages are taken as sessions touch them. NULL and errno (EINVAL, ENOMEM).
 */
struct sl_session_table *sl_session_table_create(const struct sl_session_table_config *config) SL_MUST_CHECK;
/* Frees everything, wiping; no reader may be left, and no fn that reclaim was given may be called any more. */
void sl_session_table_destroy(struct sl_session_table *t);

/* --- control ------------------------------------------------------------------------------------------------- */

/*
 * A free index owned by the given worker: a random one of its free slots, random above the slot, never the value that
 * the slot had last. 0, -ENOSPC when the worker owns no free slot, -EINVAL when there is no such worker.
 */
int sl_session_index_reserve(struct sl_session_table *t, uint16_t owner, uint32_t *rx_index) SL_MUST_CHECK;
/* Gives back an index that never got a session. Any other index is left alone. */
void sl_session_index_release(struct sl_session_table *t, uint32_t rx_index);
/*
 * Makes and publishes the session of a reserved index. keys are copied; its first authentic frame will be reported
 * (SL_NOTIFY_FIRST_FRAME). Its memory is set aside with the index, so it cannot run out; NULL with errno EINVAL when the
 * index is not reserved.
 */
struct sl_session *sl_session_install(struct sl_session_table *t, uint32_t rx_index, uint32_t tx_index,
	uint32_t peer_id, bool is_initiator, const struct sl_noise_keys *keys, uint64_t origin_us);
/*
 * Unpublishes; index, memory and keys go when no reader holds it. Until then the slot is not given out again. The
 * caller has taken it out of its peer's row before (sl_peer_row.tx).
 */
void sl_session_retire(struct sl_session_table *t, struct sl_session *s);
/* Sessions published now. */
uint32_t sl_session_count(const struct sl_session_table *t);
/* Memory that the table can come to hold, all slots used; what is resident follows the sessions. For sizing. */
size_t sl_session_table_bytes(const struct sl_session_table *t);
/* The same before there is one, and of each session. Any thread. */
size_t sl_session_table_bytes_of(const struct sl_session_table_config *config);
size_t sl_session_bytes(void);

/* --- any lcore ----------------------------------------------------------------------------------------------- */

/* The fields below are the table's read side; only the inline functions touch them. */
struct sl_session_view {
	struct sl_session **slots; /* release / acquire */
	struct sl_peer_row *peers;
	uint32_t slot_mask;
	uint32_t owner_mask;
	uint32_t max_peers;
	uint32_t *lease; /* below; NULL with several workers */
	uint16_t workers;
	uint8_t owner_of[SL_SESSION_OWNERS_MAX]; /* low bits of a slot -> worker: a worker does not divide */
};
const struct sl_session_view *sl_session_table_view(const struct sl_session_table *t);

static inline uint16_t
sl_session_owner(const struct sl_session_view *v, uint32_t rx_index)
{
	return v->owner_of[rx_index & v->owner_mask];
}

/* NULL when the index is unknown. */
static inline struct sl_session *
sl_session_lookup(const struct sl_session_view *v, uint32_t rx_index)
{
	struct sl_session *s = __atomic_load_n(&v->slots[rx_index & v->slot_mask], __ATOMIC_ACQUIRE);

	return s && s->rx_index == rx_index ? s : NULL;
}

/*
 * Send counters. Any lcore may send on any session, so counters are reserved with atomic additions. A table for one
 * worker spares it those: it takes the lease for the time in which it reserves, once a burst, and while it has it
 * everybody else waits. Everybody else is control: sl_session_reserve() waits for the lease, which is held for less
 * than a microsecond (longer only where the worker has lost its CPU meanwhile). The worker never waits: without the
 * lease it adds atomically, as control always does.
 *
 *	alone = sl_session_lease_take(view);
 *	for each session: sl_session_reserve_with(s, alone, n, bytes, &first)
 *	sl_session_lease_give(view, alone);
 */
static inline bool
sl_session_lease_take(const struct sl_session_view *v)
{
	return v->lease && __atomic_exchange_n(v->lease, 1, __ATOMIC_ACQUIRE) == 0;
}
static inline void
sl_session_lease_give(const struct sl_session_view *v, bool taken)
{
	if (taken)
		__atomic_store_n(v->lease, 0, __ATOMIC_RELEASE);
}

/* n counters beginning with *first, for `bytes` of FMP packets; false when the key is used up. alone: has the lease. */
static inline bool
sl_session_reserve_with(struct sl_session *s, bool alone, uint32_t n, uint64_t bytes, uint64_t *first)
{
	if (alone) {
		if (!sl_nonce_reserve_alone(&s->tx_counter, n, first))
			return false;
		__atomic_store_n(&s->tx_bytes, s->tx_bytes + bytes, __ATOMIC_RELAXED);
		return true;
	}
	if (!sl_nonce_reserve(&s->tx_counter, n, first))
		return false;
	__atomic_fetch_add(&s->tx_bytes, bytes, __ATOMIC_RELAXED);
	return true;
}
/* Control's way to one counter. */
bool sl_session_reserve(const struct sl_session_view *v, struct sl_session *s, uint64_t bytes, uint64_t *counter)
	SL_MUST_CHECK;

static inline struct sl_peer_row *
sl_session_peer(const struct sl_session_view *v, uint32_t peer_id)
{
	return &v->peers[peer_id];
}

#ifdef __cplusplus
}
#endif
#endif
