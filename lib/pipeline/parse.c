/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The complete frame parser: every frame that the inline part of sl_parse.h does not take. One function a header;
 * each checks the length it needs before it reads. The walk through the layers is `struct walk`; a step returns 0 to go
 * on, or the verdict. (SL_FORWARD is 0: it never ends a step.)
 */
#include "sl_parse.h"

_Static_assert(SL_FORWARD == 0, "steps return 0 to go on");
_Static_assert(SL_PARSE_IP6_MAX <= 16 && SL_PARSE_IP4_MAX <= 16, "address masks are 16 bits");

struct walk {
	const struct sl_parse_local *local;
	const uint8_t *frame;
	const uint8_t *p;	/* the next header */
	size_t left;		/* bytes from there to the end of what the layers above vouch for */
	uint32_t hints;
	bool to_us, to_all;	/* destination MAC: ours, broadcast */
	bool to_ip6_group;	/* 33:33 MAC */
	bool to_mdns;		/* that of IPv4's multicast DNS, on a port that speaks it */
	struct sl_parsed *out;
};

/* --- no FMP --------------------------------------------------------------------------------------------------------- */

#define STUN_BYTES 20
#define PUNCH_BYTES 24

/* A Binding response, success or error: two zero bits, the magic cookie, a length that fits (RFC 8489, 5). */
static bool
is_stun_answer(const uint8_t *p, size_t len)
{
	return len >= STUN_BYTES && p[0] == 0x01 && (p[1] == 0x01 || p[1] == 0x11) &&
	       sl_get16be(p + 2) == len - STUN_BYTES && len % 4 == 0 && sl_get32be(p + 4) == 0x2112a442;
}

enum sl_verdict
sl_parse_traversal(const struct sl_parse_local *local, const uint8_t *packet, size_t len, enum sl_verdict v,
	struct sl_parsed *out)
{
	/* "NPTC" and "NPTA" (peering facts, hole punching); at least 4 bytes, or it would be SHORT */
	const bool punch = packet[0] == 0x4e && packet[1] == 0x50 && packet[2] == 0x54 &&
			   (packet[3] == 0x43 || packet[3] == 0x41);

	if (local && __atomic_load_n(&local->nat, __ATOMIC_RELAXED) &&
		(punch ? len >= PUNCH_BYTES : is_stun_answer(packet, len))) {
		out->kind = SL_PARSE_TRAVERSAL;
		return SL_PUNT;
	}
	return punch ? SL_DROP_NPT : v;
}

static inline uint16_t
offset_of(const struct walk *w, const uint8_t *p)
{
	return (uint16_t)(p - w->frame);
}

/* --- Ethernet ----------------------------------------------------------------------------------------------------- */

static bool
is_tag(uint16_t ethertype)
{
	return ethertype == SL_ETHERTYPE_VLAN || ethertype == SL_ETHERTYPE_QINQ;
}

/* MAC addresses and tags; leaves p behind the EtherType. */
static enum sl_verdict
walk_ethernet(struct walk *w, uint16_t *ethertype)
{
	const struct sl_parse_local *local = w->local;
	uint16_t vid = 0;
	bool tagged = false;

	if (w->left < SL_ETHER_BYTES)
		return SL_DROP_TRUNCATED;
	*ethertype = sl_get16be(w->p + 12);
	w->p += SL_ETHER_BYTES;
	w->left -= SL_ETHER_BYTES;
	if (w->hints & SL_RX_VLAN_STRIPPED) {
		vid = (w->hints >> 16) & 0x0fff;
		tagged = true;
	}
	if (is_tag(*ethertype)) {
		if (w->left < SL_VLAN_BYTES)
			return SL_DROP_TRUNCATED;
		if (tagged)
			return SL_DROP_VLAN;
		vid = sl_get16be(w->p) & 0x0fff;
		*ethertype = sl_get16be(w->p + 2);
		w->p += SL_VLAN_BYTES;
		w->left -= SL_VLAN_BYTES;
		if (is_tag(*ethertype))
			return SL_DROP_VLAN;
	}
	if (vid != local->vlan) /* a priority tag (VID 0) is no VLAN */
		return SL_DROP_VLAN;

	w->to_us = memcmp(w->frame, local->mac, 6) == 0;
	w->to_all = memcmp(w->frame, "\xff\xff\xff\xff\xff\xff", 6) == 0;
	w->to_ip6_group = w->frame[0] == 0x33 && w->frame[1] == 0x33;
	w->to_mdns = local->mdns && *ethertype == SL_ETHERTYPE_IP4 && memcmp(w->frame, "\x01\0\x5e\0\0\xfb", 6) == 0;
	if (!w->to_us && !w->to_all && !w->to_ip6_group && !w->to_mdns)
		return SL_DROP_NOT_OURS;
	if (w->frame[6] & 0x01)
		return SL_DROP_SOURCE;
	return 0;
}

/* The raw Ethernet transport (link layer facts, section 19). */
static enum sl_verdict
walk_raw(struct walk *w)
{
	const struct sl_parse_local *local = w->local;
	struct sl_parsed *out = w->out;
	unsigned flen;

	if (!local->eth)
		return SL_DROP_ETH_TYPE;
	if (w->left < 1)
		return SL_DROP_TRUNCATED;
	if (w->p[0] != SL_ETH_TYPE_DATA && w->p[0] != SL_ETH_TYPE_BEACON)
		return SL_DROP_ETH_TYPE;
	if (w->to_ip6_group || (w->p[0] == SL_ETH_TYPE_DATA && !w->to_us))
		return SL_DROP_NOT_OURS;
	if (memcmp(w->frame + 6, "\0\0\0\0\0", 6) == 0 || memcmp(w->frame + 6, local->mac, 6) == 0)
		return SL_DROP_SOURCE;
	memset(&out->from, 0, sizeof(out->from));
	out->from.kind = SL_ADDR_ETH;
	out->from.transport = local->eth_id;
	out->from.vlan = local->vlan;
	out->from.link = local->link;
	memcpy(out->from.u.mac, w->frame + 6, 6);
	if (w->p[0] == SL_ETH_TYPE_BEACON) {
		if (w->left < SL_BEACON_BYTES)
			return SL_DROP_TRUNCATED;
		if (w->p[1] != 0x01)
			return SL_DROP_ETH_TYPE;
		out->offset = offset_of(w, w->p + 2);
		out->len = SL_BEACON_BYTES - 2;
		out->kind = SL_PARSE_BEACON;
		return SL_PUNT;
	}
	if (w->left < SL_ETH_HEADER_BYTES)
		return SL_DROP_TRUNCATED;
	flen = sl_get16(w->p + 1);
	if (flen > w->left - SL_ETH_HEADER_BYTES)
		return SL_DROP_ETH_LENGTH;
	out->offset = offset_of(w, w->p + SL_ETH_HEADER_BYTES);
	out->len = (uint16_t)flen;
	return sl_parse_fmp(NULL, w->p + SL_ETH_HEADER_BYTES, flen, out);
}

static enum sl_verdict
punt_neigh(struct walk *w)
{
	w->out->kind = SL_PARSE_NEIGH;
	w->out->offset = 0;
	w->out->len = 0;
	return SL_PUNT;
}

/* ARP that concerns us: somebody asks for or answers to an address of ours, uses it, or announces itself. */
static enum sl_verdict
walk_arp(struct walk *w)
{
	uint32_t spa, tpa;

	if (w->left < 28)
		return SL_DROP_TRUNCATED;
	if (w->to_ip6_group)
		return SL_DROP_NOT_OURS;
	memcpy(&spa, w->p + 14, 4);
	memcpy(&tpa, w->p + 24, 4);
	for (unsigned i = 0; i < w->local->ip4_count; i++)
		if (tpa == w->local->ip4[i] || spa == w->local->ip4[i])
			return punt_neigh(w);
	if (spa == tpa && w->local->ip4_count > 0)
		return punt_neigh(w);
	return SL_DROP_NOT_OURS;
}

/* --- UDP ---------------------------------------------------------------------------------------------------------- */

static bool
udp_checksum_good(const struct walk *w, const uint8_t *addrs, size_t addrs_bytes)
{
	uint64_t sum;

	if ((w->hints & SL_RX_L4_GOOD) || w->local->skip_udp_checksum)
		return true;
	sum = sl_cksum_pseudo(addrs, addrs_bytes, SL_IPPROTO_UDP, (uint16_t)w->left);
	return sl_cksum_fold(sl_cksum_add(sum, w->p, w->left)) == 0xffff;
}

/* Multicast DNS, for control. out->from: address set. */
static enum sl_verdict
walk_mdns(struct walk *w, const uint8_t *addrs, size_t addrs_bytes)
{
	struct sl_parsed *out = w->out;

	if (w->left < SL_UDP_BYTES || sl_get16be(w->p + 4) != w->left)
		return SL_DROP_UDP_LENGTH;
	if (sl_get16be(w->p) == 0)
		return SL_DROP_SOURCE;
	if (sl_get16be(w->p + 2) != SL_MDNS_PORT)
		return SL_DROP_UDP_PORT;
	if ((w->p[6] | w->p[7]) == 0 ? addrs_bytes > 8 : !udp_checksum_good(w, addrs, addrs_bytes))
		return SL_DROP_UDP_CHECKSUM;
	out->from.udp_port = sl_get16be(w->p);
	out->offset = offset_of(w, w->p + SL_UDP_BYTES);
	out->len = (uint16_t)(w->left - SL_UDP_BYTES);
	out->kind = SL_PARSE_MDNS;
	return SL_PUNT;
}

/* p, left: the UDP packet as the IP header bounds it. out->from: address set. */
static enum sl_verdict
walk_udp(struct walk *w, const uint8_t *addrs, size_t addrs_bytes, unsigned ip4_bit, unsigned ip6_bit)
{
	const struct sl_parse_udp *t;
	struct sl_parsed *out = w->out;
	uint16_t port;
	bool zero, later;

	/* Surplus bytes behind the UDP length are refused too: NICs disagree on what their checksum verdict covers then. */
	if (w->left < SL_UDP_BYTES || sl_get16be(w->p + 4) != w->left)
		return SL_DROP_UDP_LENGTH;
	if (sl_get16be(w->p) == 0)
		return SL_DROP_SOURCE;
	memcpy(&port, w->p + 2, 2);
	t = sl_parse_udp_lookup(w->local, port, ip4_bit, ip6_bit);
	if (!t)
		return SL_DROP_UDP_PORT;
	zero = (w->p[6] | w->p[7]) == 0;
	later = (w->hints & SL_RX_L4_LATER) && addrs + addrs_bytes == w->p &&
		sl_packet_classify(w->p + SL_UDP_BYTES, w->left - SL_UDP_BYTES) == SL_PACKET_ESTABLISHED;
	if (zero ? ip6_bit != 0 : !later && !udp_checksum_good(w, addrs, addrs_bytes))
		return SL_DROP_UDP_CHECKSUM;
	out->checksum_due = later && !zero && !(w->hints & SL_RX_L4_GOOD) && !w->local->skip_udp_checksum;
	out->from.transport = t->id;
	out->from.udp_port = sl_get16be(w->p);
	out->offset = offset_of(w, w->p + SL_UDP_BYTES);
	out->len = (uint16_t)(w->left - SL_UDP_BYTES);
	return sl_parse_fmp(w->local, w->p + SL_UDP_BYTES, out->len, out);
}

/* --- IPv4 --------------------------------------------------------------------------------------------------------- */

static enum sl_verdict
walk_ip4_addresses(struct walk *w, const uint8_t *ip, unsigned *bit)
{
	uint32_t src, dst;
	bool bad = false;

	memcpy(&src, ip + 12, 4);
	memcpy(&dst, ip + 16, 4);
	*bit = 0;
	for (unsigned i = 0; i < w->local->ip4_count; i++) {
		if (dst == w->local->ip4[i])
			*bit = 1u << i;
		bad |= src == w->local->ip4[i] || src == w->local->ip4_broadcast[i];
	}
	if (w->to_mdns ? memcmp(ip + 16, "\xe0\0\0\xfb", 4) != 0 : !*bit || !w->to_us)
		return SL_DROP_NOT_OURS;
	if (bad || ip[12] == 0 || ip[12] == 127 || ip[12] >= 224)
		return SL_DROP_SOURCE;
	memset(&w->out->from, 0, sizeof(w->out->from));
	w->out->from.kind = SL_ADDR_UDP4;
	memcpy(w->out->from.u.ip4, ip + 12, 4);
	return 0;
}

static enum sl_verdict
walk_ip4(struct walk *w)
{
	const uint8_t *ip = w->p;
	unsigned header, total, bit;
	enum sl_verdict v;

	if (w->left < SL_IP4_BYTES)
		return SL_DROP_TRUNCATED;
	header = (ip[0] & 0x0f) * 4u;
	total = sl_get16be(ip + 2);
	if ((ip[0] >> 4) != 4 || header < SL_IP4_BYTES || total < header)
		return SL_DROP_IP_HEADER;
	if (total > w->left)
		return SL_DROP_TRUNCATED;
	if (!(w->hints & SL_RX_IP_GOOD) && sl_cksum_fold(sl_cksum_add(0, ip, header)) != 0xffff)
		return SL_DROP_IP_HEADER;
	if ((ip[6] & 0x3f) | ip[7])
		return SL_DROP_FRAGMENT;
	v = walk_ip4_addresses(w, ip, &bit);
	if (v)
		return v;
	w->p += header;
	w->left = total - header;
	if (w->to_mdns)
		return ip[9] == SL_IPPROTO_UDP ? walk_mdns(w, ip + 12, 8) : SL_DROP_NOT_OURS;
	switch (ip[9]) {
	case SL_IPPROTO_UDP:
		return walk_udp(w, ip + 12, 8, bit, 0);
	case SL_IPPROTO_ICMP:
		if (w->left < 8)
			return SL_DROP_TRUNCATED;
		/* echo request; fragmentation needed */
		if (w->p[0] == 8 || (w->p[0] == 3 && w->p[1] == 4))
			return punt_neigh(w);
		return SL_DROP_ICMP;
	default:
		return SL_DROP_IP_PROTOCOL;
	}
}

/* --- IPv6 --------------------------------------------------------------------------------------------------------- */

/* Options of a hop-by-hop or destination header: those we do not know decide themselves (RFC 8200, 4.2). */
static bool
ip6_options_good(const uint8_t *p, size_t len)
{
	size_t i = 0;

	while (i < len) {
		if (p[i] == 0) { /* Pad1 */
			i++;
			continue;
		}
		if (len - i < 2 || len - i - 2 < p[i + 1])
			return false;
		if (p[i] >> 6) /* not "skip over" */
			return false;
		i += 2u + p[i + 1];
	}
	return true;
}

/* Leaves p at the upper layer header, *protocol naming it. */
static enum sl_verdict
walk_ip6_extensions(struct walk *w, uint8_t *protocol)
{
	for (unsigned i = 0;; i++) {
		size_t bytes;

		switch (*protocol) {
		case SL_IPPROTO_UDP:
		case SL_IPPROTO_ICMP6:
			return 0;
		case 44:
			return SL_DROP_FRAGMENT;
		case 0: /* hop-by-hop */
			if (i > 0)
				return SL_DROP_EXTENSION;
			break;
		case 43: /* routing */
		case 60: /* destination options */
			break;
		case 50:  /* ESP */
		case 51:  /* AH */
		case 135: /* mobility */
		case 139: /* HIP */
		case 140: /* shim6 */
		case 253: /* experiments */
		case 254:
			return SL_DROP_EXTENSION;
		default:
			return SL_DROP_IP_PROTOCOL;
		}
		if (i == SL_IP6_EXTENSIONS_MAX)
			return SL_DROP_EXTENSION;
		if (w->left < 8)
			return SL_DROP_TRUNCATED;
		bytes = (w->p[1] + 1u) * 8u;
		if (bytes > w->left)
			return SL_DROP_TRUNCATED;
		if (*protocol == 43 ? w->p[3] != 0 : !ip6_options_good(w->p + 2, bytes - 2))
			return SL_DROP_EXTENSION;
		*protocol = w->p[0];
		w->p += bytes;
		w->left -= bytes;
	}
}

static bool
ip6_is_own(const struct sl_parse_local *local, const uint8_t *ip, unsigned *bit)
{
	for (unsigned i = 0; i < local->ip6_count; i++) {
		if (memcmp(ip, local->ip6[i], 16) == 0) {
			*bit = 1u << i;
			return true;
		}
	}
	return false;
}

/* Groups that we are in: all nodes, and the solicited-node groups of our addresses (RFC 4291, 2.8). */
static bool
ip6_is_own_group(const struct sl_parse_local *local, const uint8_t *ip)
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 0x01};
	uint8_t group[16];

	if (local->ip6_count > 0 && memcmp(ip, all_nodes, 16) == 0)
		return true;
	for (unsigned i = 0; i < local->ip6_count; i++) {
		sl_ip6_solicited_node(group, (const uint8_t *)local->ip6[i]);
		if (memcmp(ip, group, 16) == 0)
			return true;
	}
	return false;
}

/* Sources that no peer can have. The unspecified one is allowed for solicitations, so its test comes later. */
static bool
ip6_source_bad(const struct sl_parse_local *local, const uint8_t *ip)
{
	static const uint8_t loopback[16] = {[15] = 1};
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	unsigned bit;

	return ip[0] == 0xff || memcmp(ip, loopback, 16) == 0 || memcmp(ip, mapped, 12) == 0 ||
		ip6_is_own(local, ip, &bit);
}

static enum sl_verdict
walk_icmp6(struct walk *w, bool to_group, bool unspecified)
{
	uint8_t type;

	if (w->left < 8)
		return SL_DROP_TRUNCATED;
	type = w->p[0];
	if (to_group && type != 135 && type != 136)
		return SL_DROP_NOT_OURS;
	if (unspecified && type != 135)
		return SL_DROP_SOURCE;
	/* solicitation, advertisement, echo request, too big */
	if (type == 135 || type == 136 || type == 128 || type == 2)
		return punt_neigh(w);
	return SL_DROP_ICMP;
}

static enum sl_verdict
walk_ip6(struct walk *w)
{
	static const uint8_t unspecified_ip[16], mdns_group[16] = {0xff, 0x02, [15] = 0xfb};
	const uint8_t *ip = w->p;
	unsigned bit = 0;
	size_t payload;
	uint8_t protocol;
	bool to_group, to_mdns, unspecified;
	enum sl_verdict v;

	if (w->left < SL_IP6_BYTES)
		return SL_DROP_TRUNCATED;
	if ((ip[0] >> 4) != 6)
		return SL_DROP_IP_HEADER;
	payload = sl_get16be(ip + 4);
	if (payload > w->left - SL_IP6_BYTES)
		return SL_DROP_TRUNCATED;
	to_group = ip[24] == 0xff;
	to_mdns = w->local->mdns && w->local->ip6_count > 0 && w->to_ip6_group && memcmp(ip + 24, mdns_group, 16) == 0;
	if (to_group ? !(to_mdns || ip6_is_own_group(w->local, ip + 24)) || w->to_all :
		       !ip6_is_own(w->local, ip + 24, &bit) || !w->to_us)
		return SL_DROP_NOT_OURS;
	if (ip6_source_bad(w->local, ip + 8))
		return SL_DROP_SOURCE;
	unspecified = memcmp(ip + 8, unspecified_ip, 16) == 0;
	protocol = ip[6];
	w->p += SL_IP6_BYTES;
	w->left = payload;
	v = walk_ip6_extensions(w, &protocol);
	if (v)
		return v;
	if (protocol == SL_IPPROTO_ICMP6 && !to_mdns)
		return walk_icmp6(w, to_group, unspecified);
	if (to_group && !(to_mdns && protocol == SL_IPPROTO_UDP))
		return SL_DROP_NOT_OURS;
	if (unspecified)
		return SL_DROP_SOURCE;
	memset(&w->out->from, 0, sizeof(w->out->from));
	w->out->from.kind = SL_ADDR_UDP6;
	w->out->from.link = sl_ip6_is_link_local(ip + 8) ? w->local->link : 0;
	memcpy(w->out->from.u.ip6, ip + 8, 16);
	return to_mdns ? walk_mdns(w, ip + 8, 32) : walk_udp(w, ip + 8, 32, 0, bit);
}

enum sl_verdict
sl_parse_slow(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints,
	struct sl_parsed *out)
{
	struct walk w = {.local = local, .frame = frame, .p = frame, .left = len, .hints = hints, .out = out};
	uint16_t ethertype;
	enum sl_verdict v = walk_ethernet(&w, &ethertype);

	out->checksum_due = false;
	if (v)
		return v;
	if (ethertype == SL_ETHERTYPE_IP4)
		return walk_ip4(&w);
	if (ethertype == SL_ETHERTYPE_IP6)
		return walk_ip6(&w);
	if (ethertype == SL_ETHERTYPE_FIPS || (local->eth && ethertype == local->ethertype))
		return local->eth && ethertype == local->ethertype ? walk_raw(&w) : SL_DROP_ETH_TYPE;
	if (ethertype == SL_ETHERTYPE_ARP)
		return walk_arp(&w);
	return SL_DROP_ETHERTYPE;
}
