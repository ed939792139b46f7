/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_WIRE_H
#define SL_WIRE_H
/*
 * Link wire formats: the outer packet (link layer facts, section 4) and the messages inside it (4.7, 8, 15; routing
 * facts, sections 2, 6, 9, 11). Every integer on the wire is little endian. Pure functions over bytes: any thread.
 *
 * parse functions take a message from its type byte on, check every length before they read, and give 0 or
 *   -EBADMSG          too short, too long, or a count that the length does not bear out
 *   -EPROTONOSUPPORT  a version, size class or signal type this node does not know
 *   -EINVAL           a value that is never right (another message's type, a count of 0 where one is needed)
 * Views in the result point into the caller's buffer. Bytes after the last field are allowed (FilterAnnounce: not).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../crypto/sl_identity.h"
#include "../crypto/sl_noise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- little-endian access ------------------------------------------------------------------------------------ */

static inline uint16_t
sl_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t
sl_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v; /* hosts are little endian: asserted in wire.c */
}
static inline uint64_t
sl_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}
static inline void
sl_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}
static inline void
sl_put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}
static inline void
sl_put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

/* --- the outer packet ---------------------------------------------------------------------------------------- */

#define SL_PREFIX_BYTES 4
#define SL_PHASE_ESTABLISHED 0
#define SL_PHASE_MSG1 1
#define SL_PHASE_MSG2 2
#define SL_MSG1_PACKET_BYTES 114 /* prefix, sender_idx, noise msg1 */
#define SL_MSG2_PACKET_BYTES 69	 /* prefix, sender_idx, receiver_idx, noise msg2 */
#define SL_HEADER_BYTES 16	 /* established: prefix, receiver_idx, counter; all of it is associated data */
#define SL_TAG_BYTES 16
#define SL_INNER_BYTES 5 /* timestamp (4), message type (1) */
#define SL_ESTABLISHED_MIN_BYTES 32
#define SL_OVERHEAD_BYTES 36 /* a packet is 36 bytes longer than its link plaintext (type byte + body) */
#define SL_UDP_PORT 2121
#define SL_UDP_MTU_DEFAULT 1280

#define SL_FLAG_K 0x01	/* key epoch */
#define SL_FLAG_CE 0x02 /* congestion experienced */
#define SL_FLAG_SP 0x04 /* spin bit */

/* What an outer packet is, after the length checks that the reference makes before anything else. */
enum sl_packet_kind {
	SL_PACKET_ESTABLISHED,
	SL_PACKET_MSG1,
	SL_PACKET_MSG2,
	SL_PACKET_SHORT,     /* under 4 bytes, or under the phase's minimum */
	SL_PACKET_VERSION,   /* version nibble not 0 */
	SL_PACKET_PHASE,     /* unknown phase */
	SL_PACKET_LENGTH,    /* payload_len disagrees with the packet's length */
	SL_PACKET_FLAGS,     /* flags in a handshake packet */
};
/* len: exact length of the FMP packet in bytes. */
static inline enum sl_packet_kind
sl_packet_classify(const uint8_t *p, size_t len)
{
	if (len < SL_PREFIX_BYTES)
		return SL_PACKET_SHORT;
	if (p[0] >> 4)
		return SL_PACKET_VERSION;
	switch (p[0] & 0x0f) {
	case SL_PHASE_ESTABLISHED:
		if (len < SL_ESTABLISHED_MIN_BYTES)
			return SL_PACKET_SHORT;
		return sl_get16(p + 2) == len - SL_ESTABLISHED_MIN_BYTES ? SL_PACKET_ESTABLISHED : SL_PACKET_LENGTH;
	case SL_PHASE_MSG1:
		if (len != SL_MSG1_PACKET_BYTES || sl_get16(p + 2) != SL_MSG1_PACKET_BYTES - 4)
			return SL_PACKET_LENGTH;
		return p[1] ? SL_PACKET_FLAGS : SL_PACKET_MSG1;
	case SL_PHASE_MSG2:
		if (len != SL_MSG2_PACKET_BYTES || sl_get16(p + 2) != SL_MSG2_PACKET_BYTES - 4)
			return SL_PACKET_LENGTH;
		return p[1] ? SL_PACKET_FLAGS : SL_PACKET_MSG2;
	default:
		return SL_PACKET_PHASE;
	}
}

/* Writes the 16 header bytes of an established packet. plaintext_len = 5 + body. */
static inline void
sl_header_build(uint8_t h[SL_HEADER_BYTES], uint8_t flags, uint16_t plaintext_len, uint32_t receiver_idx,
	uint64_t counter)
{
	sl_put64(h, SL_PHASE_ESTABLISHED | (uint64_t)flags << 8 | (uint64_t)plaintext_len << 16 | (uint64_t)receiver_idx << 32);
	sl_put64(h + 8, counter);
}

void sl_msg1_build(uint8_t packet[SL_MSG1_PACKET_BYTES], uint32_t sender_idx, const uint8_t noise[SL_NOISE_MSG1_BYTES]);
void sl_msg2_build(uint8_t packet[SL_MSG2_PACKET_BYTES], uint32_t sender_idx, uint32_t receiver_idx,
	const uint8_t noise[SL_NOISE_MSG2_BYTES]);

/* --- link messages ------------------------------------------------------------------------------------------- */

enum sl_msg_type {
	SL_MSG_DATAGRAM = 0x00,
	SL_MSG_SENDER_REPORT = 0x01,
	SL_MSG_RECEIVER_REPORT = 0x02,
	SL_MSG_TREE_ANNOUNCE = 0x10,
	SL_MSG_FILTER_ANNOUNCE = 0x20,
	SL_MSG_LOOKUP_REQUEST = 0x30,
	SL_MSG_LOOKUP_RESPONSE = 0x31,
	SL_MSG_DISCONNECT = 0x50,
	SL_MSG_HEARTBEAT = 0x51,
};

/* One row a message: what the dispatcher and the counters need to know. Lengths count the body after the type byte. */
struct sl_msg_info {
	uint8_t type;
	const char *name;
	uint16_t min_body;
	bool exact; /* longer bodies are refused too (FilterAnnounce) */
};
/* NULL for an unknown type: ignored, the frame still counts as traffic. */
const struct sl_msg_info *sl_msg_info(uint8_t type);
extern const struct sl_msg_info sl_msg_table[];
extern const unsigned sl_msg_table_count;

enum sl_disconnect_reason {
	SL_DISCONNECT_SHUTDOWN = 0x00,
	SL_DISCONNECT_RESTART = 0x01,
	SL_DISCONNECT_PROTOCOL_ERROR = 0x02,
	SL_DISCONNECT_TRANSPORT_FAILURE = 0x03,
	SL_DISCONNECT_RESOURCE_EXHAUSTION = 0x04,
	SL_DISCONNECT_SECURITY_VIOLATION = 0x05,
	SL_DISCONNECT_CONFIGURATION_CHANGE = 0x06,
	SL_DISCONNECT_TIMEOUT = 0x07,
	SL_DISCONNECT_OTHER = 0xff,
};
const char *sl_disconnect_name(uint8_t reason);

/* SessionDatagram: offsets from the type byte (routing facts, 9.1). */
#define SL_DATAGRAM_HEADER_BYTES 36
#define SL_DATAGRAM_TTL 1
#define SL_DATAGRAM_PATH_MTU 2
#define SL_DATAGRAM_SRC 4
#define SL_DATAGRAM_DEST 20
#define SL_DATAGRAM_PAYLOAD 36
#define SL_TTL_DEFAULT 64

/* msg: 36 bytes, beginning with the type byte. */
void sl_datagram_build(uint8_t msg[SL_DATAGRAM_HEADER_BYTES], uint8_t ttl, uint16_t path_mtu,
	const struct sl_node_addr *src, const struct sl_node_addr *dest);

/* SenderReport, 48 bytes with the type byte; link layer facts, 15.2. Times in ms of the inner timestamp. */
#define SL_SENDER_REPORT_BYTES 48
struct sl_sender_report {
	uint64_t first_counter, last_counter;
	uint32_t first_ts_ms, last_ts_ms;
	uint32_t interval_bytes;
	uint64_t total_frames, total_bytes;
};
void sl_sender_report_build(uint8_t msg[SL_SENDER_REPORT_BYTES], const struct sl_sender_report *r);
int sl_sender_report_parse(struct sl_sender_report *r, const uint8_t *msg, size_t len) SL_MUST_CHECK;

/* ReceiverReport, 68 bytes with the type byte; link layer facts, 15.3. */
#define SL_RECEIVER_REPORT_BYTES 68
struct sl_receiver_report {
	uint64_t highest_counter, total_frames, total_bytes;
	uint32_t echo_ts_ms;
	uint16_t dwell_ms, burst_longest, burst_mean_8_8;
	uint32_t jitter_us, ce_frames;
	int32_t owd_trend_us_s;
	uint32_t bursts, reordered, interval_frames, interval_bytes;
};
void sl_receiver_report_build(uint8_t msg[SL_RECEIVER_REPORT_BYTES], const struct sl_receiver_report *r);
int sl_receiver_report_parse(struct sl_receiver_report *r, const uint8_t *msg, size_t len) SL_MUST_CHECK;

/* TreeAnnounce; routing facts, section 2. msg begins with the type byte. */
#define SL_TREE_FIXED_BYTES 100
#define SL_TREE_ENTRY_BYTES 32
#define SL_TREE_PREIMAGE_BYTES 48
struct sl_tree_announce {
	uint64_t sequence, timestamp_s;
	struct sl_node_addr parent;
	uint16_t entries;
	const uint8_t *entry; /* entries * 32 bytes: node_addr, sequence, timestamp; sender first, root last */
	const uint8_t *signature; /* 64 bytes */
};
int sl_tree_announce_parse(struct sl_tree_announce *a, const uint8_t *msg, size_t len) SL_MUST_CHECK;
/* The 48 bytes that are signed (after SHA-256). */
void sl_tree_preimage(uint8_t out[SL_TREE_PREIMAGE_BYTES], const struct sl_node_addr *sender,
	const struct sl_node_addr *parent, uint64_t sequence, uint64_t timestamp_s);
/* Returns the message's length, or 0 when size is too small. */
size_t sl_tree_announce_build(uint8_t *msg, size_t size, const struct sl_tree_announce *a);

/* FilterAnnounce; routing facts, section 6.1. */
#define SL_FILTER_BYTES 1024
#define SL_FILTER_BITS 8192
#define SL_FILTER_HASHES 5
#define SL_FILTER_MSG_BYTES 1035
struct sl_filter_announce {
	uint64_t sequence;
	uint8_t hash_count;
	const uint8_t *bits; /* 1024 bytes */
};
int sl_filter_announce_parse(struct sl_filter_announce *f, const uint8_t *msg, size_t len) SL_MUST_CHECK;
void sl_filter_announce_build(uint8_t msg[SL_FILTER_MSG_BYTES], uint64_t sequence, const uint8_t bits[SL_FILTER_BYTES]);

/* Lookups; routing facts, section 11. coords: count * 16 bytes, the node first, its root last. */
#define SL_LOOKUP_REQUEST_FIXED_BYTES 46
#define SL_LOOKUP_RESPONSE_FIXED_BYTES 93 /* proof included */
struct sl_lookup_request {
	uint64_t request_id;
	struct sl_node_addr target, origin;
	uint8_t ttl;
	uint16_t min_mtu, coords_count;
	const uint8_t *coords;
};
struct sl_lookup_response {
	uint64_t request_id;
	struct sl_node_addr target;
	uint16_t path_mtu, coords_count;
	const uint8_t *coords;
	const uint8_t *proof; /* 64 bytes */
};
int sl_lookup_request_parse(struct sl_lookup_request *r, const uint8_t *msg, size_t len) SL_MUST_CHECK;
size_t sl_lookup_request_build(uint8_t *msg, size_t size, const struct sl_lookup_request *r);
int sl_lookup_response_parse(struct sl_lookup_response *r, const uint8_t *msg, size_t len) SL_MUST_CHECK;
size_t sl_lookup_response_build(uint8_t *msg, size_t size, const struct sl_lookup_response *r);
/* SHA-256 of request_id, target, count and coords: what the proof signs (11.2). */
void sl_lookup_proof_digest(uint8_t digest[32], const struct sl_lookup_response *r);

/* --- what transit reads of a datagram's payload (routing facts, sections 9.5 and 10) ---------------------------- */

/* Coordinates that a passing session frame shows: views into the payload; a count of 0 means absent. */
struct sl_coords_seen {
	uint16_t src_count, dest_count;
	const uint8_t *src, *dest;
};
/* True when the payload carries coordinates; cheap first test inline for the worker. */
static inline bool
sl_payload_may_carry_coords(const uint8_t *payload, size_t len)
{
	uint32_t head;

	if (len < 2)
		return false;
	head = sl_get16(payload);
	/* phase 1 or 2; or a plain data frame whose flags say so and that is not encrypted */
	return (head & 0x0f) - 1 < 2 || (head & 0x05ff) == 0x0100;
}
bool sl_payload_coords(struct sl_coords_seen *seen, const uint8_t *payload, size_t len);

enum sl_signal_type {
	SL_SIGNAL_COORDS_REQUIRED = 0x20,
	SL_SIGNAL_PATH_BROKEN = 0x21,
	SL_SIGNAL_MTU_EXCEEDED = 0x22,
};
struct sl_signal {
	uint8_t type;
	struct sl_node_addr dest, reporter;
	uint16_t coords_count; /* PathBroken */
	const uint8_t *coords;
	uint16_t mtu; /* MtuExceeded */
};
/* The payload of the datagram that carries it; returns its length or 0. */
size_t sl_signal_build(uint8_t *payload, size_t size, const struct sl_signal *s);
int sl_signal_parse(struct sl_signal *s, const uint8_t *payload, size_t len) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
