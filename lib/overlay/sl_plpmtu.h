/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PLPMTU_H
#define SL_PLPMTU_H
/*
 * How large a packet each link really carries, found out by sending some: packetization layer path MTU discovery (RFC 8899), for
 * paths on which nobody reports what is too large (a black hole: small packets pass, large ones vanish).
 *
 * A probe is a LookupRequest for the peer itself, with zeros behind it until the packet has the size in question. A receiver
 * ignores what follows the coordinates, and the target of a request answers it, with its id (routing facts, section 11): any
 * node of the mesh confirms, without knowing it, which sizes arrive. What the peer's reports say is missing starts a check; the
 * answers decide.
 *
 * Invariants: the size in use is never above the ceiling (what the configuration, the port and routers' reports allow). It is
 * lowered only while small probes are answered and repeated large ones are not, never for silence; raised only to a size that
 * has been answered, unless the peer has never answered anything. It stays at the floor (what every path of this kind carries),
 * and says so, where not even that is answered.
 *
 *	check	the size in use: one probe; without an answer three rounds of it twice, of a ladder of usual sizes, and of a
 *		small one. At link up, at another address, when frames are missing, and every minute
 *	search	by halves, between a size that was answered and one that was not
 *	raise	where the size is below the ceiling: the sizes above, after 20, 40, ... 600 s
 *
 * Sizes are bytes of FMP packet. One thread (control). Time is monotonic microseconds. Callbacks must not call back.
 */
#include "../crypto/sl_identity.h"
#include "sl_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_plpmtu;

#define SL_PLPMTU_SMALL (SL_OVERHEAD_BYTES + SL_LOOKUP_REQUEST_FIXED_BYTES + SL_NODE_ADDR_BYTES) /* a probe without zeros */

/* Why the size is what it is. */
enum sl_plpmtu_reason {
	SL_PLPMTU_CONFIGURED, /* the transport and the port allow that much */
	SL_PLPMTU_REPORTED,   /* a router said so */
	SL_PLPMTU_PROBED,     /* larger ones are lost */
	SL_PLPMTU_FLOOR,      /* even the least that any path must carry is lost, and it is not lowered below that */
};
const char *sl_plpmtu_reason_text(enum sl_plpmtu_reason r);

struct sl_plpmtu_sink {
	void *arg;
	/* One link message (type byte first) to a peer, whatever the link's MTU. 0 or -errno: then it counts as lost. */
	int (*send)(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len);
	/* From now on packets to the peer are at most so large. */
	void (*mtu)(void *arg, uint32_t peer_id, uint16_t mtu);
	/*
	 * For the operator: it came out as `mtu`, after `before` the last time; the steps of a search between are left out. The same
	 * again with SL_PLPMTU_FLOOR: not even that passes; said once. May be NULL.
	 */
	void (*settled)(void *arg, uint32_t peer_id, uint16_t mtu, uint16_t before, enum sl_plpmtu_reason why);
};

/* self: the origin of the probes. NULL and errno. */
struct sl_plpmtu *sl_plpmtu_create(const struct sl_node_addr *self, uint32_t max_peers, const struct sl_plpmtu_sink *sink,
	uint64_t now_us) SL_MUST_CHECK;
void sl_plpmtu_destroy(struct sl_plpmtu *t);

/* --- what it is told ---------------------------------------------------------------------------- */

/*
 * A link is up, or leads to another address: packets may be as large as the ceiling, and that is checked; where this peer's
 * link was narrow before it begins so, and the ceiling is tried at once. reported: the ceiling is a router's word. floor: taken
 * as the ceiling when above. peer_id < max_peers, ceiling >= SL_PLPMTU_SMALL.
 */
void sl_plpmtu_up(struct sl_plpmtu *t, uint32_t peer_id, const struct sl_node_addr *peer, uint16_t ceiling, bool reported,
	uint16_t floor, uint64_t now_us);
void sl_plpmtu_down(struct sl_plpmtu *t, uint32_t peer_id);
/* The ceiling has changed. A lower one is taken at once, a higher one is probed for. */
void sl_plpmtu_ceiling(struct sl_plpmtu *t, uint32_t peer_id, uint16_t ceiling, bool reported, uint64_t now_us);
/* A report of the peer. missing: frames of ours do not stand in it. */
void sl_plpmtu_report(struct sl_plpmtu *t, uint32_t peer_id, uint64_t srtt_us, bool missing, uint64_t now_us);
/* A LookupResponse from the peer (type byte first). True: it answers a probe, and nobody else has use for it. */
bool sl_plpmtu_response(struct sl_plpmtu *t, uint32_t peer_id, const uint8_t *msg, size_t len, uint64_t now_us);
/* Runs what is due; returns when to call again at the latest. */
uint64_t sl_plpmtu_tick(struct sl_plpmtu *t, uint64_t now_us);

/* --- for the operator --------------------------------------------------------------------------- */

struct sl_plpmtu_info {
	uint16_t mtu, ceiling, floor;
	enum sl_plpmtu_reason reason;
	const char *state;   /* "checking", "searching", "raising", "confirmed", "unanswered" (never, or not any more) */
	uint64_t since_us;   /* the size */
	uint64_t answered_us; /* when a packet of this size was last answered, 0 = never */
	uint64_t next_us;    /* next check or attempt to raise */
	uint32_t lowered, raised; /* times since the link is up */
};
/* False: no such link. */
bool sl_plpmtu_lookup(const struct sl_plpmtu *t, uint32_t peer_id, struct sl_plpmtu_info *out);

#define SL_PLPMTU_COUNTERS(X)                                                                                          \
	X(PROBE_TX, "mtu_probes_sent") X(PROBE_RX, "mtu_probes_answered") X(TX_FAILED, "mtu_probes_not_sent")          \
	X(CHECK, "mtu_checks") X(MISSING, "mtu_checks_for_missing_frames") X(SILENT, "mtu_rounds_without_any_answer")  \
	X(LOWERED, "mtu_lowered") X(RAISED, "mtu_raised") X(FLOORED, "mtu_floored")
enum sl_plpmtu_counter {
#define SL_PLPMTU_COUNTER_ENUM(id, name) SL_PLPMTU_##id,
	SL_PLPMTU_COUNTERS(SL_PLPMTU_COUNTER_ENUM) SL_PLPMTU_COUNTER_COUNT
};
const char *sl_plpmtu_counter_name(enum sl_plpmtu_counter c);
const uint64_t *sl_plpmtu_counters(const struct sl_plpmtu *t);

#ifdef __cplusplus
}
#endif
#endif
