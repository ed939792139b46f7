/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of multicast DNS out: their Ethernet, IP and UDP headers (RFC 6762, 11; RFC 1112, 6.4; RFC 2464, 7). */
#include <errno.h>
#include <string.h>

#include "sl_control.h"

#define FRAME_MAX (SL_ETHER_BYTES + SL_VLAN_BYTES + SL_IP6_BYTES + SL_UDP_BYTES + 1500)

static const uint8_t group4[4] = {224, 0, 0, 251}, mac4[6] = {0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb};
static const uint8_t group6[16] = {0xff, 0x02, [15] = 0xfb}, mac6[6] = {0x33, 0x33, 0x00, 0x00, 0x00, 0xfb};

static uint8_t *
put_ethernet(uint8_t *f, const struct sl_port *p, uint8_t family)
{
	memcpy(f, family == 4 ? mac4 : mac6, 6);
	memcpy(f + 6, p->mac, 6);
	f += 12;
	if (p->config.vlan) {
		sl_put16be(f, SL_ETHERTYPE_VLAN);
		sl_put16be(f + 2, p->config.vlan);
		f += SL_VLAN_BYTES;
	}
	sl_put16be(f, family == 4 ? SL_ETHERTYPE_IP4 : SL_ETHERTYPE_IP6);
	return f + 2;
}

static uint8_t *
put_ip4(uint8_t *ip, const struct sl_port *p, uint16_t udp_len)
{
	uint16_t sum;

	memset(ip, 0, SL_IP4_BYTES);
	ip[0] = 0x45;
	sl_put16be(ip + 2, (uint16_t)(SL_IP4_BYTES + udp_len));
	ip[6] = 0x40; /* don't fragment */
	ip[8] = 255;
	ip[9] = SL_IPPROTO_UDP;
	memcpy(ip + 12, &p->local.ip4[0], 4);
	memcpy(ip + 16, group4, 4);
	sum = (uint16_t)~sl_cksum_fold(sl_cksum_ip4(ip));
	memcpy(ip + 10, &sum, 2);
	return ip + SL_IP4_BYTES;
}

static uint8_t *
put_ip6(uint8_t *ip, const struct sl_port *p, uint16_t udp_len)
{
	const uint8_t *from = (const uint8_t *)p->local.ip6[0];

	for (unsigned i = 0; i < p->local.ip6_count; i++)
		if (sl_ip6_is_link_local((const uint8_t *)p->local.ip6[i]))
			from = (const uint8_t *)p->local.ip6[i];
	memset(ip, 0, SL_IP6_BYTES);
	ip[0] = 0x60;
	sl_put16be(ip + 4, udp_len);
	ip[6] = SL_IPPROTO_UDP;
	ip[7] = 255;
	memcpy(ip + 8, from, 16);
	memcpy(ip + 24, group6, 16);
	return ip + SL_IP6_BYTES;
}

int
sl_dataplane_mdns(struct sl_dataplane *dp, uint16_t port, uint8_t family, const uint8_t *message, size_t len)
{
	const struct sl_port *p = port < dp->port_count ? &dp->ports[port] : NULL;
	const size_t ip_len = family == 4 ? SL_IP4_BYTES : SL_IP6_BYTES, udp_len = SL_UDP_BYTES + len;
	const unsigned addrs = family == 4 ? 8 : 32;
	uint8_t frame[FRAME_MAX], *udp;
	uint16_t sum;

	if (p == NULL || (family == 4 ? p->local.ip4_count : p->local.ip6_count) == 0)
		return -EADDRNOTAVAIL;
	if (len > FRAME_MAX || ip_len + udp_len > p->mtu ||
		SL_ETHER_BYTES + SL_VLAN_BYTES + ip_len + udp_len > sizeof(frame))
		return -EMSGSIZE;
	udp = put_ethernet(frame, p, family);
	udp = family == 4 ? put_ip4(udp, p, (uint16_t)udp_len) : put_ip6(udp, p, (uint16_t)udp_len);
	sl_put16be(udp, SL_MDNS_PORT);
	sl_put16be(udp + 2, SL_MDNS_PORT);
	sl_put16be(udp + 4, (uint16_t)udp_len);
	sl_put16be(udp + 6, 0);
	memcpy(udp + SL_UDP_BYTES, message, len);
	sum = (uint16_t)~sl_cksum_fold(sl_cksum_add(sl_cksum_pseudo(udp - addrs, addrs, SL_IPPROTO_UDP, (uint16_t)udp_len), udp, udp_len));
	sum = sum ? sum : 0xffff;
	memcpy(udp + 6, &sum, 2);
	return sl_paths_frame(dp, port, frame, (size_t)(udp + udp_len - frame));
}
