/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PATH_H
#define SL_PATH_H
/*
 * The ready-made outer headers towards one address of a peer.
 *
 * Control builds a path when the next hop's MAC is known (sl_neigh.h) and publishes it; from then on it is immutable
 * and any number of workers write it in front of FMP packets. A change makes a new path; the old one is given back
 * through RCU. Written headers differ from packet to packet only in lengths, the IPv4 identification and checksums,
 * whose unchanging parts are added up in advance.
 *
 * Facts: RFC 791, 768, 8200; link layer facts, sections 17 and 19. IPv4 packets carry "don't fragment" (so the
 * identification means nothing, RFC 6864); the UDP checksum over IPv4 is left out (0) unless asked for; over IPv6 it is
 * always there, and a computed 0 is sent as FFFF.
 */
#include "../overlay/sl_addr.h"
#include "sl_cksum.h"
#include "sl_parse.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_PATH_HEADER_MAX 66 /* Ethernet, one tag, IPv6, UDP */
/*
 * In front of what arrived with the shortest headers there must be room for the longest. The buffers of our pools have it;
 * some drivers hand out buffers of their own.
 */
#define SL_PATH_HEADROOM_MIN (SL_PATH_HEADER_MAX - (SL_ETHER_BYTES + SL_ETH_HEADER_BYTES))
#define SL_PATH_FRAME_MIN 60  /* smallest Ethernet frame without its check sequence */

/* sl_path_spec.flags */
#define SL_PATH_UDP4_CHECKSUM 0x01 /* compute the UDP checksum over IPv4 too */
/*
 * The NIC fills in the UDP checksum: the field gets the pseudo header's sum, as such NICs want it, and the mbuf must ask
 * for it (l2_len, l3_len and the flags: sl_path.l2_len, .l3_len). Over IPv4 only together with SL_PATH_UDP4_CHECKSUM.
 */
#define SL_PATH_OFFLOAD_UDP 0x02

/* What a worker reads of it over IPv4 is the first cache line. */
struct sl_path {
	uint8_t hdr_len;   /* 17, 21 (raw Ethernet), 42, 46 (IPv4), 62, 66 (IPv6) */
	uint8_t kind;	   /* enum sl_addr_kind */
	uint8_t flags;
	bool checksum;	   /* the writer computes the UDP checksum */
	uint16_t port;	   /* port index to transmit on */
	uint16_t mtu;	   /* largest FMP packet, bytes */
	uint32_t ip_sum;   /* of the IPv4 header as in hdr, folded */
	uint32_t udp_sum;  /* of pseudo header and UDP ports, without the length */
	uint8_t hdr[80];   /* headers with lengths, identification and checksums zero; hdr_len are used */
	uint8_t l2_len, l3_len; /* bytes, for mbuf offload fields; raw Ethernet: l3_len 0 */
	struct sl_addr addr; /* the peer's */
} __attribute__((aligned(64)));

/* What control knows when it builds a path: the answer of sl_neigh_resolve() and the transport's own address. */
struct sl_path_spec {
	struct sl_addr to;
	uint16_t port;
	uint8_t src_mac[6], dst_mac[6];
	uint16_t vlan;	    /* 0 = untagged */
	uint16_t ip_mtu;    /* of the link, bytes behind the Ethernet header (and tag) */
	uint16_t fmp_mtu;   /* of the transport, bytes of FMP packet; 0 = no limit of its own */
	uint8_t src_ip[16]; /* UDP: our address, IPv4 in the first 4 bytes */
	uint16_t src_port;  /* UDP, host order */
	uint16_t ethertype; /* raw Ethernet */
	uint8_t hop_limit;  /* 0 = 64 */
	bool group;	    /* UDP: to and dst_mac are a group's of the link; otherwise groups are refused */
	uint8_t flags;
};

/* 0, -EINVAL (address kind, port 0, group addresses, VLAN id), -EMSGSIZE (no room for the smallest FMP packet). */
int sl_path_build(struct sl_path *path, const struct sl_path_spec *spec) SL_MUST_CHECK;

/*
 * Zero bytes to put behind an FMP packet so that the frame reaches the Ethernet minimum. sl_path_write() does not pad.
 * What workers send is never that short (a datagram: 72 bytes of FMP packet behind 17 of headers at least); control's
 * heartbeats over raw Ethernet are, and get zeros from sl_dataplane_transmit().
 */
static inline unsigned
sl_path_padding(const struct sl_path *path, unsigned fmp_len)
{
	const unsigned frame = path->hdr_len + fmp_len;

	return frame < SL_PATH_FRAME_MIN ? SL_PATH_FRAME_MIN - frame : 0;
}

/* Copies 16 to 80 bytes with few fixed-size moves that overlap; nothing outside [dst, dst + len) is touched. */
static inline void
sl_path_copy(uint8_t *dst, const uint8_t *src, unsigned len)
{
	if (len >= 32) {
		memcpy(dst, src, 32);
		if (len > 64)
			memcpy(dst + 32, src + 32, 16);
		memcpy(dst + len - 32, src + len - 32, 32);
	} else {
		memcpy(dst, src, 16);
		memcpy(dst + len - 16, src + len - 16, 16);
	}
}

/*
 * Writes path->hdr_len bytes at frame, in front of the FMP packet which must lie complete (sealed) at
 * frame + path->hdr_len: the checksum is taken over it. fmp_len: bytes, at most path->mtu (the caller's check).
 * ip_id: any value; used over IPv4.
 */
static inline void
sl_path_write(const struct sl_path *path, uint8_t *frame, unsigned fmp_len, uint16_t ip_id)
{
	uint8_t *end = frame + path->hdr_len; /* the FMP packet */
	const uint16_t udp_len = (uint16_t)(fmp_len + SL_UDP_BYTES);
	uint64_t sum;
	uint16_t cksum;

	sl_path_copy(frame, path->hdr, path->hdr_len);
	if (path->kind == SL_ADDR_ETH) {
		sl_put16(end - 2, (uint16_t)fmp_len);
		return;
	}
	sl_put16be(end - 4, udp_len);
	if (path->kind == SL_ADDR_UDP4) {
		const uint16_t total = (uint16_t)(udp_len + SL_IP4_BYTES);
		uint8_t *ip = end - SL_UDP_BYTES - SL_IP4_BYTES;

		sl_put16be(ip + 2, total);
		memcpy(ip + 4, &ip_id, 2);
		cksum = (uint16_t)~sl_cksum_fold32(path->ip_sum + ip_id + __builtin_bswap16(total));
		memcpy(ip + 10, &cksum, 2);
	} else {
		sl_put16be(end - SL_UDP_BYTES - SL_IP6_BYTES + 4, udp_len);
	}
	if (path->flags & SL_PATH_OFFLOAD_UDP) {
		cksum = sl_cksum_fold(sl_cksum_add16(path->udp_sum, udp_len)); /* ports are zero in it: see sl_path_build() */
		memcpy(end - 2, &cksum, 2);
	} else if (path->checksum) {
		/* The length counts twice: in the pseudo header and in the UDP header. */
		sum = sl_cksum_add16(sl_cksum_add16(path->udp_sum, udp_len), udp_len);
		cksum = (uint16_t)~sl_cksum_fold(sl_cksum_add(sum, end, fmp_len));
		if (cksum == 0)
			cksum = 0xffff;
		memcpy(end - 2, &cksum, 2);
	}
}

#ifdef __cplusplus
}
#endif
#endif
