/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in and out of the neighbour machine: link headers, and which part takes what. */
#include "neigh_int.h"

size_t
neigh_frame_start(struct sl_neigh *n, const struct neigh_port *port, const uint8_t *dst_mac, uint16_t ethertype)
{
	uint8_t *p = n->out;
	uint8_t dst[6];

	memcpy(dst, dst_mac, 6);
	memcpy(p, dst, 6);
	memcpy(p + 6, port->mac, 6);
	p += 12;
	if (port->vlan) {
		sl_put16be(p, SL_ETHERTYPE_VLAN);
		sl_put16be(p + 2, port->vlan);
		p += 4;
	}
	sl_put16be(p, ethertype);
	return (size_t)(p + 2 - n->out);
}

void
neigh_frame_send(struct sl_neigh *n, uint16_t port, size_t len)
{
	if (len < 60) {
		memset(n->out + len, 0, 60 - len);
		len = 60;
	}
	n->sink.transmit(n->sink.arg, port, n->out, len);
}

/* p: left bytes that begin with an IPv4 header. */
static void
input_ip4(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *p, size_t left, uint64_t now_us)
{
	unsigned header, total;

	if (left < SL_IP4_BYTES)
		goto refuse;
	header = (p[0] & 0x0f) * 4u;
	total = sl_get16be(p + 2);
	if ((p[0] >> 4) != 4 || header < SL_IP4_BYTES || total < header || total > left ||
		sl_cksum_fold(sl_cksum_add(0, p, header)) != 0xffff || ((p[6] & 0x3f) | p[7]) ||
		p[9] != SL_IPPROTO_ICMP)
		goto refuse;
	if (total - header < 8) {
		neigh_count(n, SL_NEIGH_ICMP_MALFORMED);
		return;
	}
	if (sl_cksum_fold(sl_cksum_add(0, p + header, total - header)) != 0xffff) {
		neigh_count(n, SL_NEIGH_ICMP_CHECKSUM);
		return;
	}
	neigh_icmp4_input(n, port, src_mac, p, p + header, total - header, now_us);
	return;
refuse:
	neigh_count(n, SL_NEIGH_FRAME);
}

static void
input_ip6(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *p, size_t left, uint64_t now_us)
{
	const uint8_t *icmp = p + SL_IP6_BYTES;
	size_t len;

	if (left < SL_IP6_BYTES || (p[0] >> 4) != 6)
		goto refuse;
	len = sl_get16be(p + 4);
	/* Behind extension headers neither discovery nor an echo is of use to us. */
	if (len > left - SL_IP6_BYTES || p[6] != SL_IPPROTO_ICMP6)
		goto refuse;
	if (len < 8) {
		neigh_count(n, SL_NEIGH_ICMP_MALFORMED);
		return;
	}
	if (sl_cksum_fold(sl_cksum_add(sl_cksum_pseudo(p + 8, 32, SL_IPPROTO_ICMP6, (uint16_t)len), icmp, len)) !=
		0xffff) {
		neigh_count(n, SL_NEIGH_ICMP_CHECKSUM);
		return;
	}
	if (icmp[0] == 135 || icmp[0] == 136)
		neigh_nd_input(n, port, src_mac, p, icmp, len, now_us);
	else
		neigh_icmp6_input(n, port, src_mac, p, icmp, len, now_us);
	return;
refuse:
	neigh_count(n, SL_NEIGH_FRAME);
}

void
sl_neigh_input(struct sl_neigh *n, uint16_t port, const uint8_t *frame, size_t len, uint64_t now_us)
{
	const struct neigh_port *p;
	const uint8_t *at = frame + SL_ETHER_BYTES;
	uint16_t ethertype;

	if (port >= SL_NEIGH_PORTS_MAX || !n->ports[port].used || len < SL_ETHER_BYTES)
		goto refuse;
	p = &n->ports[port];
	if ((frame[6] & 1) || (memcmp(frame, p->mac, 6) != 0 && !(frame[0] & 1)))
		goto refuse;
	len -= SL_ETHER_BYTES;
	ethertype = sl_get16be(frame + 12);
	if (ethertype == SL_ETHERTYPE_VLAN || ethertype == SL_ETHERTYPE_QINQ) {
		if (len < SL_VLAN_BYTES || (sl_get16be(at) & 0x0fff) != p->vlan)
			goto refuse;
		ethertype = sl_get16be(at + 2);
		at += SL_VLAN_BYTES;
		len -= SL_VLAN_BYTES;
	}
	switch (ethertype) {
	case SL_ETHERTYPE_ARP:
		neigh_arp_input(n, port, at, len, now_us);
		return;
	case SL_ETHERTYPE_IP4:
		input_ip4(n, port, frame + 6, at, len, now_us);
		return;
	case SL_ETHERTYPE_IP6:
		input_ip6(n, port, frame + 6, at, len, now_us);
		return;
	}
refuse:
	neigh_count(n, SL_NEIGH_FRAME);
}
