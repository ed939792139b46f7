/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PUNCH_H
#define SL_PUNCH_H
/*
 * Hole punching: both sides send probes to what the other may be reachable at, until one arrives. Peering facts, 12.2.
 *
 * A punch packet is 24 bytes, big endian: magic ("NPTC" probe, "NPTA" acknowledgement), sequence, first 16 bytes of
 * SHA-256(session id). The session id travels encrypted, so only the two ends know the hash before the first packet; it
 * proves no more than that. The Noise handshake that follows does.
 *
 * struct sl_punch is a state machine of one session: packets and monotonic microseconds in, packets out through a
 * callback. Probes are answered from the beginning; our own begin at start_us and go to every target each interval, with
 * one sequence number a round. The first matching packet ends it, and its source is where the peer is. The reference's
 * side depends on our one acknowledgement: so probes are answered until the punch's time is over (sl_punch_packet() of one
 * that is DONE), whoever lost what.
 */
#include "../sl_addr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_PUNCH_BYTES 24u
#define SL_PUNCH_HASH_BYTES 16
#define SL_PUNCH_TARGETS_MAX 8u
#define SL_PUNCH_INTERVAL_MIN_MS 20u
#define SL_PUNCH_CANDIDATES_MAX 8u /* addresses of its own that a side may name */

enum sl_punch_kind { SL_PUNCH_PROBE, SL_PUNCH_ACK };

void sl_punch_hash(uint8_t hash[SL_PUNCH_HASH_BYTES], const char *session_id);
void sl_punch_build(uint8_t packet[SL_PUNCH_BYTES], enum sl_punch_kind kind, uint32_t sequence,
	const uint8_t hash[SL_PUNCH_HASH_BYTES]);
/* Bytes behind the 24 are ignored. False: no punch packet. hash points into packet. */
bool sl_punch_parse(enum sl_punch_kind *kind, uint32_t *sequence, const uint8_t **hash, const uint8_t *packet, size_t len);

/* What one side says of itself: the address that STUN saw (kind NONE: none), and those it has. */
struct sl_punch_side {
	struct sl_addr reflexive;
	struct sl_addr local[SL_PUNCH_CANDIDATES_MAX];
	unsigned local_count;
};
/*
 * Whom to send to, in the reference's order: reflexive to reflexive; local to local in one /24; local to reflexive; reflexive
 * to local; of the pairs the first eight, each address once. `theirs` is a stranger's text: ports of 0 and addresses that
 * lead nowhere (unspecified, loopback, link-local, multicast, broadcast, 100.64/10) are left out, private ones unless an
 * own address shares their /24 (their reflexive may be private). Returns the number of targets; *refused: those left out.
 */
unsigned sl_punch_plan(struct sl_addr targets[SL_PUNCH_TARGETS_MAX], const struct sl_punch_side *ours,
	const struct sl_punch_side *theirs, unsigned *refused);
/* Could a peer be there at all? Address and port. */
bool sl_punch_addr_usable(const struct sl_addr *a);
/* RFC 1918, fc00::/7 */
bool sl_punch_addr_private(const struct sl_addr *a);

enum sl_punch_state { SL_PUNCH_IDLE, SL_PUNCH_RUNNING, SL_PUNCH_DONE, SL_PUNCH_TIMED_OUT };

struct sl_punch_times {
	uint32_t delay_ms;    /* before our first probe */
	uint32_t interval_ms; /* SL_PUNCH_INTERVAL_MIN_MS at least */
	uint32_t duration_ms; /* of our probes */
	uint32_t timeout_ms;  /* of the whole, the delay included: node.rendezvous.nostr.attempt_timeout_secs */
};

typedef int (*sl_punch_send_fn)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len);

struct sl_punch {
	uint8_t hash[SL_PUNCH_HASH_BYTES];
	struct sl_addr targets[SL_PUNCH_TARGETS_MAX];
	unsigned target_count;
	uint8_t state; /* enum sl_punch_state */
	uint32_t sequence, sent, answered;
	uint32_t interval_us;
	uint64_t next_us, send_until_us, deadline_us;
	uint64_t answer_until_us; /* when DONE */
	struct sl_addr remote; /* when DONE */
};

/* targets may be none: then only answering is left to us. */
void sl_punch_begin(struct sl_punch *p, const char *session_id, const struct sl_addr *targets, unsigned count,
	const struct sl_punch_times *times, uint64_t now_us);
/* True: the packet belongs to this session. RUNNING may have become DONE. */
bool sl_punch_packet(struct sl_punch *p, const struct sl_addr *from, const uint8_t *packet, size_t len, uint64_t now_us,
	sl_punch_send_fn send, void *arg);
/* Sends what is due, ends what has run out; returns when to call again, UINT64_MAX: not any more. */
uint64_t sl_punch_tick(struct sl_punch *p, uint64_t now_us, sl_punch_send_fn send, void *arg);

#ifdef __cplusplus
}
#endif
#endif
