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
#include <assert.h>
#include <stddef.h>
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
	/* These two are looked at as one row of 16: entries that are not used are 0. */
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
 * nearly all frames meet all of them. True only for what the slow parser would accept with the same result, but for the UDP
 * checksum over IPv6 and IPv4, which is the caller's.
 *
 * *out is written as four words: the address (sl_addr is three), and what is behind it.
 */
#define SL_PARSED_TAIL(offset, len, due) \
	((uint64_t)(offset) | (uint64_t)(len) << 16 | (uint64_t)SL_PARSE_ESTABLISHED << 32 | (uint64_t)(due) << 40)
static_assert(sizeof(struct sl_addr) == 24 && offsetof(struct sl_parsed, offset) == 24 && offsetof(struct sl_parsed, len) == 26 &&
	offsetof(struct sl_parsed, kind) == 28 && offsetof(struct sl_parsed, checksum_due) == 29 && sizeof(struct sl_parsed) == 32,
	"SL_PARSED_TAIL is the last word of struct sl_parsed");
static inline void
sl_parsed_write(struct sl_parsed *out, uint64_t from, uint64_t addr0, uint64_t addr1, uint64_t tail)
{
	/* Word by word: as one vector they would be put together in memory, and its load would wait for four stores. */
	memcpy(out, &from, 8);
	memcpy((uint8_t *)out + 8, &addr0, 8);
	memcpy((uint8_t *)out + 16, &addr1, 8);
	memcpy((uint8_t *)out + 24, &tail, 8);
}

/* The length an established packet's own prefix gives it: sl_packet_classify(). */
static inline uint32_t
sl_parse_prefix_len(const uint8_t *fmp)
{
	return (uint32_t)sl_get16(fmp + 2) + SL_ESTABLISHED_MIN_BYTES;
}

/* By the first byte of an IPv4 address: 0/8, 127/8 and 224/3 cannot be a peer. */
extern const uint8_t sl_parse_net4_bad[256];

/* Ours, or a broadcast address of one of our prefixes. What is behind the count is zero. */
static_assert(offsetof(struct sl_parse_local, ip4_broadcast) == offsetof(struct sl_parse_local, ip4) + 4 * SL_PARSE_IP4_MAX &&
	8 * SL_PARSE_IP4_MAX == 64, "one row of 16");
static inline uint32_t
sl_parse_source4_ours(const struct sl_parse_local *local, uint32_t src)
{
#ifdef __AVX512F__
	return _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(local->ip4), _mm512_set1_epi32((int)src));
#else
	uint32_t bad = 0;

	for (unsigned i = 0; i < local->ip4_count; i++)
		bad |= (src == local->ip4[i]) | (src == local->ip4_broadcast[i]);
	return bad;
#endif
}

static_assert(SL_ETHER_BYTES + SL_IP4_BYTES + SL_UDP_BYTES + 4 <= SL_PARSE_SHAPE_BYTES, "the FMP prefix over IPv4 is in the shape");

static inline bool
sl_parse_shape_ip4(const struct sl_parse_local *local, const struct sl_parse_shape *s, const uint8_t *f, size_t len,
	uint32_t hints, struct sl_parsed *out)
{
	enum { OFFSET = SL_ETHER_BYTES + SL_IP4_BYTES + SL_UDP_BYTES };
	const uint8_t *ip = f + SL_ETHER_BYTES;
	const uint32_t fmp_len = sl_parse_prefix_len(f + OFFSET);
	/* [ source port | destination port | length | checksum ] from the top */
	const uint64_t udp = __builtin_bswap64(sl_get64(ip + SL_IP4_BYTES)), port = udp >> 48;
	const uint32_t total = sl_get32be(ip) & 0xffff;
	uint32_t src;
	uint64_t bad;

	memcpy(&src, ip + 12, 4);
	bad = (total ^ (fmp_len + SL_IP4_BYTES + SL_UDP_BYTES)) | (((udp >> 16) & 0xffff) ^ (fmp_len + SL_UDP_BYTES));
	bad |= (uint64_t)(len - OFFSET - fmp_len) >> 63; /* longer than what came */
	bad |= (port - 1) >> 63;
	bad |= sl_parse_net4_bad[ip[12]] | sl_parse_source4_ours(local, src);
	if (!(hints & SL_RX_IP_GOOD))
		bad |= sl_cksum_ip4(ip) ^ 0xffffu;
	sl_parsed_write(out, s->from | port << 16, src, 0, SL_PARSED_TAIL(OFFSET, fmp_len, (udp & 0xffff) != 0));
	return bad == 0;
}

static inline bool
sl_parse_shape_ip6(const struct sl_parse_local *local, const struct sl_parse_shape *s, const uint8_t *f, size_t len,
	struct sl_parsed *out)
{
	enum { OFFSET = SL_ETHER_BYTES + SL_IP6_BYTES + SL_UDP_BYTES };
	const uint8_t *ip = f + SL_ETHER_BYTES, *udp = ip + SL_IP6_BYTES;
	const uint64_t port = sl_get16be(udp), checksum = sl_get16(udp + 6);
	const uint64_t link = sl_ip6_is_link_local(ip + 8) ? local->link : 0;
	uint64_t src[2], bad;
	uint32_t fmp_len;

	/* The FMP prefix reaches beyond the bytes that a shape has looked at. */
	if (len < OFFSET + SL_ESTABLISHED_MIN_BYTES)
		return false;
	fmp_len = sl_parse_prefix_len(f + OFFSET);
	memcpy(src, ip + 8, 16);
	bad = (sl_get16be(ip + 4) ^ (fmp_len + SL_UDP_BYTES)) | (sl_get16be(udp + 4) ^ (fmp_len + SL_UDP_BYTES));
	bad |= (uint64_t)(len - OFFSET - fmp_len) >> 63; /* longer than what came */
	bad |= (port - 1) >> 63 | (checksum - 1) >> 63;
	/* ff00::/8 cannot be a peer; ::/8 holds the unspecified, loopback and mapped addresses: looked at slowly */
	bad |= (uint8_t)(ip[8] + 1) < 2;
	for (unsigned i = 0; i < local->ip6_count; i++)
		bad |= !((src[0] ^ local->ip6[i][0]) | (src[1] ^ local->ip6[i][1]));
	sl_parsed_write(out, s->from | port << 16 | link << 48, src[0], src[1], SL_PARSED_TAIL(OFFSET, fmp_len, true));
	return !bad;
}

static inline bool
sl_parse_shape_eth(const struct sl_parse_local *local, const struct sl_parse_shape *s, const uint8_t *f, size_t len,
	struct sl_parsed *out)
{
	enum { OFFSET = SL_ETHER_BYTES + SL_ETH_HEADER_BYTES };
	const uint32_t fmp_len = sl_parse_prefix_len(f + OFFSET);
	const uint64_t own = local->mac_word & 0xffffffffffffull, src = sl_get64(f + 6) & 0xffffffffffffull;

	sl_parsed_write(out, s->from, src, 0, SL_PARSED_TAIL(OFFSET, fmp_len, false));
	/* all zero but the last byte: looked at slowly */
	return sl_get16(f + SL_ETHER_BYTES + 1) == fmp_len && fmp_len + OFFSET <= len && (src & 0xffffffffffull) != 0 && src != own;
}

/* True only for an established frame that the slow parser would accept with the same result. */
static inline bool
sl_parse_shape(const struct sl_parse_local *local, const struct sl_parse_shape *s, const uint8_t *f, size_t len,
	uint32_t hints, struct sl_parsed *out)
{
	if (s->kind == SL_ADDR_ETH)
		return sl_parse_shape_eth(local, s, f, len, out);
	if (!(s->kind == SL_ADDR_UDP4 ? sl_parse_shape_ip4(local, s, f, len, hints, out) :
			sl_parse_shape_ip6(local, s, f, len, out)))
		return false;
	out->checksum_due &= !(hints & SL_RX_L4_GOOD) & !local->skip_udp_checksum;
	if (__builtin_expect(!(hints & SL_RX_L4_LATER) && out->checksum_due, 0)) {
		out->checksum_due = false;
		return sl_parse_checksum_good(s->kind, f + out->offset, out->len);
	}
	return true;
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
