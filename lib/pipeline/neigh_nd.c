/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour solicitations and advertisements (RFC 4861, sections 4.3, 4.4, 7). Offsets from the ICMPv6 header. */
#include "neigh_int.h"

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define ND_BYTES 24 /* both kinds: header, flags, target */
#define ND_TARGET 8
#define ND_OPTION_BYTES 8 /* source or target link-layer address */
#define ND_SOURCE_MAC 1
#define ND_TARGET_MAC 2
#define NA_SOLICITED 0x40
#define NA_OVERRIDE 0x20

static const uint8_t unspecified[16];
static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 0x01};

static void
send(struct sl_neigh *n, uint16_t port, const uint8_t *dst_mac, const uint8_t *src, const uint8_t *dst, uint8_t type,
	uint8_t flags, const uint8_t *target)
{
	const size_t at = neigh_frame_start(n, &n->ports[port], dst_mac, SL_ETHERTYPE_IP6);
	const uint16_t len = ND_BYTES + ND_OPTION_BYTES;
	uint8_t *ip = n->out + at, *icmp = ip + SL_IP6_BYTES;
	uint16_t cksum;

	memset(ip, 0, SL_IP6_BYTES + len);
	ip[0] = 0x60;
	sl_put16be(ip + 4, len);
	ip[6] = SL_IPPROTO_ICMP6;
	ip[7] = 255;
	memcpy(ip + 8, src, 16);
	memcpy(ip + 24, dst, 16);
	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + ND_TARGET, target, 16);
	icmp[ND_BYTES] = type == ND_SOLICITATION ? ND_SOURCE_MAC : ND_TARGET_MAC;
	icmp[ND_BYTES + 1] = 1;
	memcpy(icmp + ND_BYTES + 2, n->ports[port].mac, 6);
	cksum = (uint16_t)~sl_cksum_fold(sl_cksum_add(sl_cksum_pseudo(ip + 8, 32, SL_IPPROTO_ICMP6, len), icmp, len));
	memcpy(icmp + 2, &cksum, 2);
	neigh_frame_send(n, port, at + SL_IP6_BYTES + len);
}

/* The Ethernet address of a group (RFC 2464, section 7). */
static void
group_mac(uint8_t mac[6], const uint8_t *group)
{
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, group + 12, 4);
}

void
neigh_nd_request(struct sl_neigh *n, uint16_t port, const uint8_t *target, const uint8_t *mac)
{
	const uint8_t *src = neigh_source(&n->ports[port], 6, target);
	uint8_t group[16], gmac[6];

	if (!src)
		return;
	if (mac) {
		send(n, port, mac, src, target, ND_SOLICITATION, 0, target);
		return;
	}
	sl_ip6_solicited_node(group, target);
	group_mac(gmac, group);
	send(n, port, gmac, src, group, ND_SOLICITATION, 0, target);
}

void
neigh_nd_announce(struct sl_neigh *n, uint16_t port, const uint8_t *target)
{
	uint8_t mac[6];

	group_mac(mac, all_nodes);
	send(n, port, mac, target, all_nodes, ND_ADVERTISEMENT, NA_OVERRIDE, target);
}

/*
 * Walks the options behind the fixed part; *mac is the link-layer address of the wanted kind, or NULL. False: an option
 * of length 0 or past the end (the whole message is to be discarded, RFC 4861 4.6).
 */
static bool
options(const uint8_t *icmp, size_t len, uint8_t kind, const uint8_t **mac)
{
	size_t at = ND_BYTES;

	*mac = NULL;
	while (at < len) {
		size_t bytes;

		if (len - at < 8)
			return false;
		bytes = icmp[at + 1] * 8u;
		if (bytes == 0 || bytes > len - at)
			return false;
		if (icmp[at] == kind && bytes == ND_OPTION_BYTES && !*mac)
			*mac = icmp + at + 2;
		at += bytes;
	}
	return true;
}

static void
solicitation(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us)
{
	const struct neigh_port *p = &n->ports[port];
	const uint8_t *src = ip + 8, *target = icmp + ND_TARGET, *mac;
	const bool anonymous = memcmp(src, unspecified, 16) == 0;
	uint8_t group[16], gmac[6];
	struct neigh *e;

	sl_ip6_solicited_node(group, target);
	if (!options(icmp, len, ND_SOURCE_MAC, &mac) || (mac && !neigh_mac_valid(p, mac)) || src[0] == 0xff ||
		(anonymous && (mac || memcmp(ip + 24, group, 16) != 0))) {
		neigh_count(n, SL_NEIGH_ND_MALFORMED);
		return;
	}
	if (neigh_is_own(p, 6, src)) {
		neigh_count(n, SL_NEIGH_CONFLICT);
		return;
	}
	if (!neigh_is_own(p, 6, target)) {
		neigh_count(n, SL_NEIGH_ND_TARGET);
		return;
	}
	e = anonymous ? NULL : neigh_find(n, port, 6, src);
	if (e && mac)
		(void)neigh_claim(n, e, mac, now_us);
	if (!sl_bucket_take(&n->answer, now_us)) {
		neigh_count(n, SL_NEIGH_ANSWER_LIMITED);
		return;
	}
	neigh_count(n, SL_NEIGH_NS_ANSWERED);
	if (anonymous) {
		group_mac(gmac, all_nodes);
		send(n, port, gmac, target, all_nodes, ND_ADVERTISEMENT, NA_OVERRIDE, target);
	} else {
		send(n, port, mac ? mac : src_mac, target, src, ND_ADVERTISEMENT, NA_SOLICITED | NA_OVERRIDE, target);
	}
}

/* RFC 4861, 7.2.5, for an entry that exists. mac NULL: the option was absent. */
static bool
apply(struct sl_neigh *n, struct neigh *e, const uint8_t *mac, uint8_t flags, uint64_t now_us)
{
	const bool same = e->has_mac && (!mac || memcmp(mac, e->mac, 6) == 0);
	/* The flag alone is nothing: everybody can set it. */
	const bool solicited = (flags & NA_SOLICITED) && neigh_asked(e, mac ? mac : e->mac);
	uint8_t copy[6];

	if (!e->has_mac && !mac)
		return false;
	if (e->has_mac && !same && !(flags & NA_OVERRIDE)) {
		neigh_suspect(n, e, now_us);
		return false;
	}
	if (!solicited)
		return same ? false : neigh_claim(n, e, mac, now_us);
	memcpy(copy, mac ? mac : e->mac, 6);
	neigh_confirm(n, e, copy, now_us);
	return true;
}

static void
advertisement(struct sl_neigh *n, uint16_t port, const uint8_t *ip, const uint8_t *icmp, size_t len, uint64_t now_us)
{
	const struct neigh_port *p = &n->ports[port];
	const uint8_t *target = icmp + ND_TARGET, *mac;
	struct neigh *e;

	if (!options(icmp, len, ND_TARGET_MAC, &mac) || (mac && !neigh_mac_valid(p, mac)) || ip[8] == 0xff ||
		(ip[24] == 0xff && (icmp[4] & NA_SOLICITED))) {
		neigh_count(n, SL_NEIGH_ND_MALFORMED);
		return;
	}
	if (neigh_is_own(p, 6, target) || neigh_is_own(p, 6, ip + 8)) {
		neigh_count(n, SL_NEIGH_CONFLICT);
		return;
	}
	e = neigh_find(n, port, 6, target);
	neigh_count(n, e && apply(n, e, mac, icmp[4], now_us) ? SL_NEIGH_NA_LEARNED : SL_NEIGH_NA_IGNORED);
}

void
neigh_nd_input(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us)
{
	if (ip[7] != 255) {
		neigh_count(n, SL_NEIGH_ND_HOP_LIMIT);
		return;
	}
	if (icmp[1] != 0 || len < ND_BYTES) {
		neigh_count(n, SL_NEIGH_ND_MALFORMED);
		return;
	}
	if (icmp[ND_TARGET] == 0xff) {
		neigh_count(n, SL_NEIGH_ND_TARGET);
		return;
	}
	if (icmp[0] == ND_SOLICITATION)
		solicitation(n, port, src_mac, ip, icmp, len, now_us);
	else
		advertisement(n, port, ip, icmp, len, now_us);
}
