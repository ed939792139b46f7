/* SPDX-License-Identifier: BSD-3-Clause */
/* Echo replies of the ports' own addresses (RFC 792, 4443), and the seam for path MTU discovery. */
#include "neigh_int.h"

#define ICMP_ECHO_REPLY 0
#define ICMP_UNREACHABLE 3
#define ICMP_FRAGMENTATION_NEEDED 4 /* code */
#define ICMP_ECHO 8
#define ICMP6_TOO_BIG 2
#define ICMP6_ECHO 128
#define ICMP6_ECHO_REPLY 129

static bool
echo_allowed(struct sl_neigh *n, uint16_t port, size_t ip_bytes, uint64_t now_us)
{
	if (ip_bytes > n->ports[port].mtu || ip_bytes + SL_ETHER_BYTES + SL_VLAN_BYTES > SL_NEIGH_FRAME_MAX) {
		neigh_count(n, SL_NEIGH_ICMP_IGNORED);
		return false;
	}
	if (!sl_bucket_take(&n->echo, now_us)) {
		neigh_count(n, SL_NEIGH_ECHO_LIMITED);
		return false;
	}
	neigh_count(n, SL_NEIGH_ECHO_ANSWERED);
	return true;
}

static void
put_checksum(uint8_t *field, uint64_t sum)
{
	const uint16_t cksum = (uint16_t)~sl_cksum_fold(sum);

	memcpy(field, &cksum, 2);
}

/* The reply goes back to the MAC that the request came from: no route or neighbour is needed. */
static void
echo4(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp, size_t len,
	uint64_t now_us)
{
	size_t at;
	uint8_t *out;

	if (!echo_allowed(n, port, SL_IP4_BYTES + len, now_us))
		return;
	at = neigh_frame_start(n, &n->ports[port], src_mac, SL_ETHERTYPE_IP4);
	out = n->out + at;
	memset(out, 0, SL_IP4_BYTES);
	out[0] = 0x45;
	sl_put16be(out + 2, (uint16_t)(SL_IP4_BYTES + len));
	out[6] = 0x40; /* don't fragment */
	out[8] = 64;
	out[9] = SL_IPPROTO_ICMP;
	memcpy(out + 12, ip + 16, 4);
	memcpy(out + 16, ip + 12, 4);
	put_checksum(out + 10, sl_cksum_add(0, out, SL_IP4_BYTES));
	out += SL_IP4_BYTES;
	memcpy(out, icmp, len);
	out[0] = ICMP_ECHO_REPLY;
	memset(out + 2, 0, 2);
	put_checksum(out + 2, sl_cksum_add(0, out, len));
	neigh_frame_send(n, port, at + SL_IP4_BYTES + len);
}

static void
echo6(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp, size_t len,
	uint64_t now_us)
{
	size_t at;
	uint8_t *out;

	if (!echo_allowed(n, port, SL_IP6_BYTES + len, now_us))
		return;
	at = neigh_frame_start(n, &n->ports[port], src_mac, SL_ETHERTYPE_IP6);
	out = n->out + at;
	memset(out, 0, SL_IP6_BYTES);
	out[0] = 0x60;
	sl_put16be(out + 4, (uint16_t)len);
	out[6] = SL_IPPROTO_ICMP6;
	out[7] = 64;
	memcpy(out + 8, ip + 24, 16);
	memcpy(out + 24, ip + 8, 16);
	memcpy(out + SL_IP6_BYTES, icmp, len);
	icmp = out + SL_IP6_BYTES;
	out[SL_IP6_BYTES] = ICMP6_ECHO_REPLY;
	memset(out + SL_IP6_BYTES + 2, 0, 2);
	put_checksum(out + SL_IP6_BYTES + 2,
		sl_cksum_add(sl_cksum_pseudo(out + 8, 32, SL_IPPROTO_ICMP6, (uint16_t)len), icmp, len));
	neigh_frame_send(n, port, at + SL_IP6_BYTES + len);
}

/* quoted: the head of the packet that did not pass; it must be one of ours. */
static void
too_big(struct sl_neigh *n, uint16_t port, uint8_t family, const uint8_t *quoted, size_t len, uint32_t mtu)
{
	const size_t bytes = neigh_ip_bytes(family), src = family == 4 ? 12 : 8;
	size_t header = SL_IP6_BYTES;
	const uint8_t *udp = NULL;
	struct sl_ifaddr ip = {.family = family, .prefix_len = family == 4 ? 32 : 128};

	if (len < (family == 4 ? SL_IP4_BYTES : SL_IP6_BYTES) || (quoted[0] >> 4) != family) {
		neigh_count(n, SL_NEIGH_ICMP_MALFORMED);
		return;
	}
	if (!neigh_is_own(&n->ports[port], family, quoted + src)) {
		neigh_count(n, SL_NEIGH_ICMP_IGNORED);
		return;
	}
	neigh_count(n, SL_NEIGH_TOO_BIG);
	memcpy(ip.ip, quoted + src + bytes, bytes);
	/* Ours carry no IPv6 extension headers and no IPv4 options; neither is wrong to look behind. */
	if (family == 4)
		header = (size_t)(quoted[0] & 0x0f) * 4;
	if ((family == 4 ? quoted[9] : quoted[6]) == SL_IPPROTO_UDP && header >= SL_IP4_BYTES && len >= header + 4)
		udp = quoted + header;
	if (n->sink.too_big)
		n->sink.too_big(n->sink.arg, port, &ip, udp, mtu < UINT16_MAX ? (uint16_t)mtu : UINT16_MAX);
}

void
neigh_icmp4_input(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us)
{
	const struct neigh_port *p = &n->ports[port];

	if (!neigh_is_own(p, 4, ip + 16) || neigh_is_own(p, 4, ip + 12) || ip[12] == 0 || ip[12] == 127 ||
		ip[12] >= 224)
		neigh_count(n, SL_NEIGH_ICMP_IGNORED);
	else if (icmp[0] == ICMP_ECHO && icmp[1] == 0)
		echo4(n, port, src_mac, ip, icmp, len, now_us);
	else if (icmp[0] == ICMP_UNREACHABLE && icmp[1] == ICMP_FRAGMENTATION_NEEDED)
		too_big(n, port, 4, icmp + 8, len - 8, sl_get16be(icmp + 6));
	else
		neigh_count(n, SL_NEIGH_ICMP_IGNORED);
}

void
neigh_icmp6_input(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us)
{
	static const uint8_t unspecified[16];
	const struct neigh_port *p = &n->ports[port];

	if (!neigh_is_own(p, 6, ip + 24) || neigh_is_own(p, 6, ip + 8) || ip[8] == 0xff ||
		memcmp(ip + 8, unspecified, 16) == 0)
		neigh_count(n, SL_NEIGH_ICMP_IGNORED);
	else if (icmp[0] == ICMP6_ECHO && icmp[1] == 0)
		echo6(n, port, src_mac, ip, icmp, len, now_us);
	else if (icmp[0] == ICMP6_TOO_BIG)
		too_big(n, port, 6, icmp + 8, len - 8, sl_get32be(icmp + 4));
	else
		neigh_count(n, SL_NEIGH_ICMP_IGNORED);
}
