/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_VERDICT_H
#define SL_VERDICT_H
/*
 * What became of a frame: one verdict each, declared once. The first four are not losses; every DROP_* is one reason.
 * At any moment rx = tx + punt + handoff + local + sum(drops), per worker. X(identifier, name, what it means)
 */

#ifdef __cplusplus
extern "C" {
#endif

#define SL_VERDICTS(X)                                                                                                 \
	X(FORWARD, "forward", "sealed and given to the NIC")                                                           \
	X(PUNT, "punt", "handed to control")                                                                           \
	X(HANDOFF, "handoff", "handed to the worker that owns the session")                                            \
	X(LOCAL, "local", "consumed here: heartbeat or datagram for this node")                                        \
	X(DROP_ETHERTYPE, "drop_ethertype", "not IPv4, IPv6, ARP or the FIPS EtherType")                               \
	X(DROP_VLAN, "drop_vlan", "a VLAN that the port is not on, or more than one tag")                              \
	X(DROP_NOT_OURS, "drop_not_ours", "destination MAC or IP address is not this port's")                          \
	X(DROP_SOURCE, "drop_source", "source address is multicast, unspecified or our own, or source port 0")         \
	X(DROP_TRUNCATED, "drop_truncated", "shorter than its headers say")                                            \
	X(DROP_IP_HEADER, "drop_ip_header", "bad version, header length, total length or header checksum")             \
	X(DROP_FRAGMENT, "drop_fragment", "IP fragment")                                                               \
	X(DROP_EXTENSION, "drop_extension", "IPv6 extension header chain too long or of an unknown kind")              \
	X(DROP_IP_PROTOCOL, "drop_ip_protocol", "neither UDP nor ICMP")                                                \
	X(DROP_ICMP, "drop_icmp", "ICMP of a kind that is not answered here")                                          \
	X(DROP_UDP_PORT, "drop_udp_port", "UDP to a port no transport listens on")                                     \
	X(DROP_UDP_LENGTH, "drop_udp_length", "UDP length disagrees with the IP length")                               \
	X(DROP_UDP_CHECKSUM, "drop_udp_checksum", "wrong UDP checksum, or none over IPv6")                             \
	X(DROP_ETH_LENGTH, "drop_eth_length", "raw Ethernet frame: length field beyond the frame")                     \
	X(DROP_ETH_TYPE, "drop_eth_type", "raw Ethernet frame: unknown frame type or no transport on the port")        \
	X(DROP_SEGMENTS, "drop_segments", "frame in several buffers that none here can hold, or that do not add up")   \
	X(DROP_SEGMENTS_FULL, "drop_segments_full", "frame in several buffers, and no large one was free")             \
	X(DROP_FMP_SHORT, "drop_fmp_short", "FMP packet shorter than its phase's minimum")                             \
	X(DROP_FMP_VERSION, "drop_fmp_version", "FMP version is not 0")                                                \
	X(DROP_FMP_PHASE, "drop_fmp_phase", "unknown FMP phase")                                                       \
	X(DROP_FMP_LENGTH, "drop_fmp_length", "FMP length field disagrees with the packet")                            \
	X(DROP_FMP_FLAGS, "drop_fmp_flags", "flags in a handshake packet")                                             \
	X(DROP_NPT, "drop_nat_probe", "NAT punch packet that nobody waits for")                                         \
	X(DROP_UNKNOWN_INDEX, "drop_unknown_index", "no session has this receiver index")                              \
	X(DROP_REPLAY, "drop_replay", "counter seen before or too old")                                                \
	X(DROP_AUTH, "drop_auth", "tag does not verify")                                                               \
	X(DROP_INNER_SHORT, "drop_inner_short", "plaintext under 5 bytes")                                             \
	X(DROP_MESSAGE_UNKNOWN, "drop_message_unknown", "unknown link message type")                                   \
	X(DROP_DATAGRAM_SHORT, "drop_datagram_short", "session datagram under 36 bytes")                               \
	X(DROP_TTL, "drop_ttl", "TTL used up")                                                                         \
	X(DROP_NO_SESSION, "drop_no_session", "next hop has no session to send with")                                  \
	X(DROP_NO_PATH, "drop_no_path", "next hop's neighbour is not resolved")                                        \
	X(DROP_TOO_BIG, "drop_too_big", "larger than the outgoing link")                                               \
	X(DROP_NONCE, "drop_nonce", "send counter used up")                                                            \
	X(DROP_SEAL, "drop_seal", "the crypto device failed to seal it")                                               \
	X(DROP_TX_FULL, "drop_tx_full", "transmit queue took no more")                                                 \
	X(DROP_PUNT_FULL, "drop_punt_full", "ring to control is full")                                                 \
	X(DROP_HANDOFF_FULL, "drop_handoff_full", "ring to the owner worker is full")                                  \
	X(DROP_SPREAD_FULL, "drop_spread_full", "lane of a spread session is full")                                    \
	X(DROP_SPREAD_STUCK, "drop_spread_stuck", "a worker stood still with frames of a spread session in hand")

enum sl_verdict {
#define SL_VERDICT_ENUM(id, name, what) SL_##id,
	SL_VERDICTS(SL_VERDICT_ENUM) SL_VERDICT_COUNT
};

const char *sl_verdict_name(enum sl_verdict v);
const char *sl_verdict_meaning(enum sl_verdict v);

#ifdef __cplusplus
}
#endif
#endif
