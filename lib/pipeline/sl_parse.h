/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PARSE_H
#define SL_PARSE_H
/*
 * From a received frame to an FMP packet: link, IP and UDP headers checked, or one named reason why not.
 *
 * struct sl_parse_local says what is ours on one port. Control fills it before launch (init, then addr, udp, eth in
 * any order); after that it never changes, but for `nat`, and any number of workers read it.
 *
 * sl_parse() is pure: bytes and lengths in, a verdict out; it reads nothing beyond frame[0..len) and nothing is
 * allocated or written but *out. Any thread. Established frames in the common shapes (untagged IPv4 without options,
 * IPv6 without extension headers, raw Ethernet; one shape for each transport and address of ours, prepared as value and
 * mask of a frame's first 64 bytes) are taken inline; whatever is not plainly good goes to sl_parse_slow(), which is
 * complete by itself and the only place that names a reason. So the inline part may only ever accept, and only what
 * the slow part accepts with the same result: tests compare the two.
 *
 * Checks, in this order (facts: RFC 791, 768, 8200, 4861, 826; link layer facts, sections 4, 17, 19):
 *	Ethernet header; at most one VLAN tag (802.1Q or 802.1ad, in the frame or stripped by the NIC) with the port's
 *	VLAN, VID 0 counts as untagged; destination MAC; source MAC not multicast.
 *	IPv4: lengths (Ethernet padding behind the total length is ignored), header checksum, fragment, destination,
 *	source; options are skipped.
 *	IPv6: lengths, destination, source, extension headers (hop-by-hop first, destination options, routing with no
 *	segments left; at most SL_IP6_EXTENSIONS_MAX; an atomic fragment is a fragment).
 *	UDP: length equal to what the IP header leaves, source port, our port, checksum (zero is accepted over IPv4 and
 *	refused over IPv6).
 *	FMP prefix (sl_packet_classify). What is no FMP packet but came over UDP may be a STUN answer or a punch packet: for
 *	control while it waits for such, else dropped as what it is to FMP; punch packets have a verdict of their own.
 * ARP and neighbour discovery that concern us, and echo requests and "too big" to our addresses, are for control. So is multicast
 * DNS (RFC 6762: UDP port 5353 of 224.0.0.251 and ff02::fb) on a port that speaks it.
 */
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include "../overlay/sl_addr.h"
#include "../overlay/sl_wire.h"
#include "sl_cksum.h"
#include "sl_ifaddr.h"
#include "sl_verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_ETHER_BYTES 14
#define SL_VLAN_BYTES 4
#define SL_ETHERTYPE_IP4 0x0800
#define SL_ETHERTYPE_ARP 0x0806
#define SL_ETHERTYPE_VLAN 0x8100
#define SL_ETHERTYPE_QINQ 0x88a8
#define SL_ETHERTYPE_IP6 0x86dd
#define SL_ETHERTYPE_FIPS 0x2121
#define SL_IP4_BYTES 20
#define SL_IP6_BYTES 40
#define SL_UDP_BYTES 8
#define SL_IPPROTO_ICMP 1
#define SL_IPPROTO_UDP 17
#define SL_IPPROTO_ICMP6 58
#define SL_ETH_HEADER_BYTES 3 /* raw Ethernet transport: frame type, length (LE) */
#define SL_ETH_TYPE_DATA 0x00
#define SL_ETH_TYPE_BEACON 0x01
#define SL_BEACON_BYTES 34 /* type, version 1, x-only key */
#define SL_MDNS_PORT 5353
#define SL_IP6_EXTENSIONS_MAX 8

#define SL_PARSE_UDP_MAX 16
#define SL_PARSE_IP4_MAX SL_PORT_ADDRS_MAX
#define SL_PARSE_IP6_MAX (SL_PORT_ADDRS_MAX + 1) /* and the derived link-local address */

/* What the NIC said about a frame: the `hints` of sl_parse(). "Bad" is the same as silence: software looks itself. */
#define SL_RX_IP_GOOD 0x01u	 /* IPv4 header checksum verified */
#define SL_RX_L4_GOOD 0x02u	 /* UDP checksum verified */
#define SL_RX_VLAN_STRIPPED 0x04u /* the tag was taken out of the frame; its TCI is in bits 16..31 */
/*
 * Not the NIC's word but the caller's: it looks at the UDP checksums of established frames itself where it needs to
 * (struct sl_parsed.checksum_due), since their tag says more.
 */
#define SL_RX_L4_LATER 0x08u
#define SL_RX_VLAN_TCI(tci) ((uint32_t)(tci) << 16)

/* A UDP transport as one port hears it. */
struct sl_parse_udp {
	uint8_t id;	    /* sl_addr.transport */
	uint16_t port_wire; /* UDP port as it lies in memory */
	uint16_t ip4_mask;  /* bit i: listens on ip4[i] */
	uint16_t ip6_mask;
	/* As given to sl_parse_local_udp(), to redo the masks when an address is added. */
	bool any4, any6;
	struct sl_ifaddr bind;
};

/*
 * How the first 64 bytes of an established frame to one of our transports look: equal to value where mask has bits. What
 * is left to check are relations between fields, and the source. Made from the rest of struct sl_parse_local.
 */
#define SL_PARSE_SHAPE_BYTES 64
#define SL_PARSE_SHAPES_MAX 16 /* beyond: such frames are parsed slowly, with the same result */
struct sl_parse_shape {
	uint64_t value[SL_PARSE_SHAPE_BYTES / 8], mask[SL_PARSE_SHAPE_BYTES / 8];
	uint64_t from; /* first 8 bytes of sl_parsed.from, UDP port 0 */
	uint8_t kind;  /* enum sl_addr_kind */
};

/* Writer: control before launch, and while no worker uses the port. Readers: all workers. */
struct sl_parse_local {
	struct sl_parse_shape shape[SL_PARSE_SHAPES_MAX];
	unsigned shape_count;
	uint64_t mac_word;	  /* first 8 bytes of a frame to us, source bytes zero */
	uint32_t ip4[SL_PARSE_IP4_MAX];	      /* as in memory */
	uint32_t ip4_broadcast[SL_PARSE_IP4_MAX]; /* of the address's prefix; the address itself when it has none */
	uint64_t ip6[SL_PARSE_IP6_MAX][2];
	uint8_t ip4_count, ip6_count, udp_count;
	bool link_local_derived;  /* ip6[0] is derived from the MAC */
	bool skip_udp_checksum;	  /* the link delivers checksums that were never filled in: do not look */
	bool mdns;		  /* control wants multicast DNS */
	bool eth;		  /* a raw Ethernet transport on this port */
	uint8_t eth_id;
	uint16_t ethertype;	  /* of it, host order */
	uint16_t vlan;		  /* 0 = untagged */
	uint16_t link;		  /* port index, for sl_addr.link */
	uint8_t mac[6];
	struct sl_parse_udp udp[SL_PARSE_UDP_MAX];
	/*
	 * 1: control waits for STUN answers and punch packets. Writer: control, at any time. Relaxed, and looked at only
	 * where a packet has failed as FMP: no frame that is forwarded costs anything for it.
	 */
	uint8_t nat;
};

void sl_parse_local_init(struct sl_parse_local *local, const uint8_t mac[6], uint16_t vlan, uint16_t link);
/* The port got another MAC: the address derived from it changes too. No worker may be reading. */
void sl_parse_local_mac(struct sl_parse_local *local, const uint8_t mac[6]);
/*
 * Adds an address. With the first IPv6 address (unless it is a link-local one) the port also gets the link-local
 * address derived from its MAC; a port without IPv6 addresses does not speak IPv6. 0, -EINVAL (family, prefix
 * length, multicast, unspecified), -EEXIST, -ENOSPC.
 */
int sl_parse_local_addr(struct sl_parse_local *local, const struct sl_ifaddr *addr) SL_MUST_CHECK;
/*
 * Adds a UDP transport: udp_port in host order on all IPv4 (any4) and/or all IPv6 (any6) addresses of the port, or on
 * `bind` alone, which need not be an address of this port (then the transport is not heard here). bind NULL when a flag
 * is set. 0, -EINVAL, -ENOSPC.
 */
int sl_parse_local_udp(struct sl_parse_local *local, uint8_t id, uint16_t udp_port, bool any4, bool any6,
	const struct sl_ifaddr *bind) SL_MUST_CHECK;
/* Sets the raw Ethernet transport. 0, -EINVAL (an EtherType that IP, ARP or VLANs use, or a length), -EEXIST. */
int sl_parse_local_eth(struct sl_parse_local *local, uint8_t id, uint16_t ethertype) SL_MUST_CHECK;

enum sl_parse_kind {
	SL_PARSE_ESTABLISHED, /* FMP phase 0, at least SL_ESTABLISHED_MIN_BYTES, length field right */
	SL_PARSE_HANDSHAKE,   /* FMP msg1 or msg2, exact length */
	SL_PARSE_NEIGH,	      /* the whole frame is for sl_neigh_input() */
	SL_PARSE_BEACON,      /* raw Ethernet beacon: offset and len are those of the 32-byte x-only key */
	SL_PARSE_TRAVERSAL,   /* STUN answer or punch packet, over UDP; nothing about it is checked yet */
	SL_PARSE_MDNS,	      /* a message of multicast DNS; nothing about it is checked yet. from.transport is 0 */
};

struct sl_parsed {
	struct sl_addr from; /* not set for NEIGH */
	uint16_t offset;     /* of the FMP packet from the start of the frame; NEIGH: 0 */
	uint16_t len;	     /* exact length of the FMP packet: padding is not in it */
	uint8_t kind;	     /* enum sl_parse_kind */
	bool checksum_due;   /* SL_RX_L4_LATER: sl_parse_checksum_good() has not been asked yet */
};

/* The complete parser. Same contract as sl_parse(). */
enum sl_verdict sl_parse_slow(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints,
	struct sl_parsed *out);

/*
 * A packet that is no FMP for the reason `v`: PUNT as SL_PARSE_TRAVERSAL when it looks like a STUN answer (RFC 8489: its first byte
 * is that of an FMP msg1, its second forbids that) or a punch packet and control waits for such; else v, DROP_NPT for the latter.
 */
enum sl_verdict sl_parse_traversal(const struct sl_parse_local *local, const uint8_t *packet, size_t len,
	enum sl_verdict v, struct sl_parsed *out) __attribute__((cold));

/* FMP prefix of a packet that has been unwrapped. local: of a UDP packet; NULL for raw Ethernet. */
static inline enum sl_verdict
sl_parse_fmp(const struct sl_parse_local *local, const uint8_t *packet, size_t len, struct sl_parsed *out)
{
	enum sl_verdict v = SL_DROP_FMP_PHASE;

	switch (sl_packet_classify(packet, len)) {
	case SL_PACKET_ESTABLISHED:
		out->kind = SL_PARSE_ESTABLISHED;
		return SL_FORWARD;
	case SL_PACKET_MSG1:
	case SL_PACKET_MSG2:
		out->kind = SL_PARSE_HANDSHAKE;
		return SL_PUNT;
	case SL_PACKET_SHORT:
		return SL_DROP_FMP_SHORT;
	case SL_PACKET_PHASE:
		return SL_DROP_FMP_PHASE;
	case SL_PACKET_VERSION:
		v = SL_DROP_FMP_VERSION;
		break;
	case SL_PACKET_LENGTH:
		v = SL_DROP_FMP_LENGTH;
		break;
	case SL_PACKET_FLAGS:
		v = SL_DROP_FMP_FLAGS;
		break;
	}
	return sl_parse_traversal(local, packet, len, v, out);
}

/* The transport that listens on UDP port `wire` of the address whose bit is given; NULL when none does. */
static inline const struct sl_parse_udp *
sl_parse_udp_lookup(const struct sl_parse_local *local, uint16_t port_wire, unsigned ip4_bit, unsigned ip6_bit)
{
	for (unsigned i = 0; i < local->udp_count; i++) {
		const struct sl_parse_udp *t = &local->udp[i];

		if (t->port_wire == port_wire && ((t->ip4_mask & ip4_bit) | (t->ip6_mask & ip6_bit)))
			return t;
	}
	return NULL;
}

/* UDP checksum of an IP packet without options or extension headers, seen from the FMP packet inside. kind: sl_addr_kind. */
static inline bool
sl_parse_checksum_good(uint8_t kind, const uint8_t *fmp, unsigned fmp_len)
{
	const unsigned addrs = kind == SL_ADDR_UDP4 ? 8 : 32, udp_len = fmp_len + SL_UDP_BYTES;

	/* From the addresses to the end in one run: the UDP header follows them. */
	return sl_cksum_fold(sl_cksum_add(sl_cksum_add16(sl_cksum_add16(0, SL_IPPROTO_UDP), (uint16_t)udp_len),
		fmp - SL_UDP_BYTES - addrs, addrs + udp_len)) == 0xffff;
}

static inline bool
sl_parse_shape_fits(const struct sl_parse_shape *s, const uint8_t *frame)
{
#ifdef __AVX512F__
	const __m512i diff = _mm512_xor_si512(_mm512_loadu_si512(frame), _mm512_loadu_si512(s->value));

	return _mm512_test_epi64_mask(diff, _mm512_loadu_si512(s->mask)) == 0;
#else
	uint64_t diff = 0, w;

	for (unsigned i = 0; i < SL_PARSE_SHAPE_BYTES / 8; i++) {
		memcpy(&w, frame + 8 * i, 8);
		diff |= (w ^ s->value[i]) & s->mask[i];
	}
	return diff == 0;
#endif
}

/*
 * The rest of the checks for a frame that fits a shape, by kind. Conditions are added up, not branched on one by one:
 * nearly all frames meet all of them. fmp_len: of the FMP packet, as the outer headers have it.
 */
static inline bool
sl_parse_shape_ip4(const struct sl_parse_local *local, const uint8_t *f, size_t len, uint32_t hints,
	struct sl_parsed *out)
{
	const uint8_t *ip = f + SL_ETHER_BYTES, *udp = ip + SL_IP4_BYTES;
	const unsigned total = sl_get16be(ip + 2);
	const uint8_t net = ip[12];
	uint32_t src, bad;

	memcpy(&src, ip + 12, 4);
	bad = (total > len - SL_ETHER_BYTES) | (total < SL_IP4_BYTES + SL_UDP_BYTES) |
		(sl_get16be(udp + 4) != total - SL_IP4_BYTES);
	/* 0/8, 127/8, 224/3 cannot be a peer */
	bad |= ((uint8_t)(net - 1) >= 223) | (net == 127);
	for (unsigned i = 0; i < local->ip4_count; i++)
		bad |= (src == local->ip4[i]) | (src == local->ip4_broadcast[i]);
	bad |= !(hints & SL_RX_IP_GOOD) & (sl_cksum_fold(sl_cksum_ip4(ip)) != 0xffff);
	out->from.u.words[0] = src;
	out->from.u.words[1] = 0;
	out->len = (uint16_t)(total - SL_IP4_BYTES - SL_UDP_BYTES);
	out->offset = SL_ETHER_BYTES + SL_IP4_BYTES + SL_UDP_BYTES;
	out->checksum_due = (udp[6] | udp[7]) != 0;
	return !bad;
}

static inline bool
sl_parse_shape_ip6(const struct sl_parse_local *local, const uint8_t *f, size_t len, struct sl_parsed *out)
{
	const uint8_t *ip = f + SL_ETHER_BYTES, *udp = ip + SL_IP6_BYTES;
	const unsigned payload = sl_get16be(ip + 4);
	uint64_t src[2];
	uint32_t bad;

	memcpy(src, ip + 8, 16);
	bad = (payload > len - SL_ETHER_BYTES - SL_IP6_BYTES) | (payload < SL_UDP_BYTES) |
		(sl_get16be(udp + 4) != payload);
	/* ff00::/8 cannot be a peer; ::/8 holds the unspecified, loopback and mapped addresses: looked at slowly */
	bad |= (ip[8] == 0xff) | (ip[8] == 0) | !(udp[6] | udp[7]);
	for (unsigned i = 0; i < local->ip6_count; i++)
		bad |= !((src[0] ^ local->ip6[i][0]) | (src[1] ^ local->ip6[i][1]));
	out->from.u.words[0] = src[0];
	out->from.u.words[1] = src[1];
	out->from.link = sl_ip6_is_link_local(ip + 8) ? local->link : 0;
	out->len = (uint16_t)(payload - SL_UDP_BYTES);
	out->offset = SL_ETHER_BYTES + SL_IP6_BYTES + SL_UDP_BYTES;
	out->checksum_due = true;
	return !bad;
}

static inline bool
sl_parse_shape_eth(const struct sl_parse_local *local, const uint8_t *f, size_t len, struct sl_parsed *out)
{
	const unsigned flen = sl_get16(f + SL_ETHER_BYTES + 1);
	uint64_t own, src = 0;

	memcpy(&src, f + 6, 6);
	own = local->mac_word & 0xffffffffffffull;
	out->from.u.words[0] = src;
	out->from.u.words[1] = 0;
	out->len = (uint16_t)flen;
	out->offset = SL_ETHER_BYTES + SL_ETH_HEADER_BYTES;
	out->checksum_due = false;
	/* all zero but the last byte: looked at slowly */
	return !((flen > len - SL_ETHER_BYTES - SL_ETH_HEADER_BYTES) | ((src & 0xffffffffffull) == 0) | (src == own));
}

/* True only for an established frame that the slow parser would accept with the same result. */
static inline bool
sl_parse_shape(const struct sl_parse_local *local, const struct sl_parse_shape *s, const uint8_t *f, size_t len,
	uint32_t hints, struct sl_parsed *out)
{
	const uint8_t *fmp;
	uint32_t prefix;
	bool good;

	memcpy(&out->from, &s->from, 8);
	if (s->kind == SL_ADDR_UDP4)
		good = sl_parse_shape_ip4(local, f, len, hints, out);
	else if (s->kind == SL_ADDR_UDP6)
		good = sl_parse_shape_ip6(local, f, len, out);
	else
		good = sl_parse_shape_eth(local, f, len, out);
	if (!good || out->len < SL_ESTABLISHED_MIN_BYTES)
		return false;
	fmp = f + out->offset;
	prefix = sl_get32(fmp);
	/* version 0, phase 0, the length: sl_packet_classify() */
	if ((prefix & 0xff) != SL_PHASE_ESTABLISHED || prefix >> 16 != out->len - (uint32_t)SL_ESTABLISHED_MIN_BYTES)
		return false;
	out->kind = SL_PARSE_ESTABLISHED;
	if (s->kind == SL_ADDR_ETH)
		return true;
	out->from.udp_port = sl_get16be(fmp - SL_UDP_BYTES);
	out->checksum_due &= !(hints & SL_RX_L4_GOOD) & !local->skip_udp_checksum;
	if (!(hints & SL_RX_L4_LATER) && out->checksum_due) {
		out->checksum_due = false;
		if (!sl_parse_checksum_good(s->kind, fmp, out->len))
			return false;
	}
	return out->from.udp_port != 0;
}

/*
 * SL_FORWARD: an established frame, go on with it. SL_PUNT: for control, out->kind says what it is. Else the frame is
 * to be dropped for that reason and *out is undefined. frame: one contiguous buffer from the destination MAC, without
 * the frame check sequence.
 */
static inline enum sl_verdict
sl_parse(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints, struct sl_parsed *out)
{
	if (__builtin_expect(len < SL_PARSE_SHAPE_BYTES || local->vlan || (hints & SL_RX_VLAN_STRIPPED), 0))
		return sl_parse_slow(local, frame, len, hints, out);
	for (unsigned i = 0; i < local->shape_count; i++) {
		const struct sl_parse_shape *s = &local->shape[i];

		if (!sl_parse_shape_fits(s, frame))
			continue;
		if (__builtin_expect(sl_parse_shape(local, s, frame, len, hints, out), 1))
			return SL_FORWARD;
		break;
	}
	return sl_parse_slow(local, frame, len, hints, out);
}

#ifdef __cplusplus
}
#endif
#endif
