/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the ready-made outer headers; sl_path.h writes them. */
#include <errno.h>
#include "sl_path.h"

static int
check(const struct sl_path_spec *s)
{
	if (s->vlan > 4094 || (s->dst_mac[0] & 1) != s->group || (s->src_mac[0] & 1))
		return -EINVAL;
	switch (s->to.kind) {
	case SL_ADDR_UDP4:
		if (s->to.u.ip4[0] == 0 || s->to.u.ip4[0] >= 240 || (s->to.u.ip4[0] >= 224) != s->group || !s->to.udp_port ||
			!s->src_port)
			return -EINVAL;
		return 0;
	case SL_ADDR_UDP6:
		if ((s->to.u.ip6[0] == 0xff) != s->group || !s->to.udp_port || !s->src_port)
			return -EINVAL;
		return 0;
	case SL_ADDR_ETH:
		return s->ethertype < 0x0600 || s->group ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

static void
put_ethernet(struct sl_path *path, const struct sl_path_spec *s, uint16_t ethertype)
{
	uint8_t *p = path->hdr;

	memcpy(p, s->dst_mac, 6);
	memcpy(p + 6, s->src_mac, 6);
	p += 12;
	if (s->vlan) {
		sl_put16be(p, SL_ETHERTYPE_VLAN);
		sl_put16be(p + 2, s->vlan);
		p += 4;
	}
	sl_put16be(p, ethertype);
	path->l2_len = (uint8_t)(p + 2 - path->hdr);
	path->hdr_len = path->l2_len;
}

static void
put_ip4(struct sl_path *path, const struct sl_path_spec *s)
{
	uint8_t *ip = path->hdr + path->hdr_len;

	ip[0] = 0x45;
	ip[6] = 0x40; /* don't fragment */
	ip[8] = s->hop_limit ? s->hop_limit : 64;
	ip[9] = SL_IPPROTO_UDP;
	memcpy(ip + 12, s->src_ip, 4);
	memcpy(ip + 16, s->to.u.ip4, 4);
	path->l3_len = SL_IP4_BYTES;
	path->hdr_len += SL_IP4_BYTES;
	path->ip_sum = sl_cksum_fold(sl_cksum_add(0, ip, SL_IP4_BYTES));
	path->udp_sum = sl_cksum_fold(sl_cksum_pseudo(ip + 12, 8, SL_IPPROTO_UDP, 0));
}

static void
put_ip6(struct sl_path *path, const struct sl_path_spec *s)
{
	uint8_t *ip = path->hdr + path->hdr_len;

	ip[0] = 0x60;
	ip[6] = SL_IPPROTO_UDP;
	ip[7] = s->hop_limit ? s->hop_limit : 64;
	memcpy(ip + 8, s->src_ip, 16);
	memcpy(ip + 24, s->to.u.ip6, 16);
	path->l3_len = SL_IP6_BYTES;
	path->hdr_len += SL_IP6_BYTES;
	path->udp_sum = sl_cksum_fold(sl_cksum_pseudo(ip + 8, 32, SL_IPPROTO_UDP, 0));
}

static void
put_udp(struct sl_path *path, const struct sl_path_spec *s)
{
	uint8_t *udp = path->hdr + path->hdr_len;

	sl_put16be(udp, s->src_port);
	sl_put16be(udp + 2, s->to.udp_port);
	path->hdr_len += SL_UDP_BYTES;
	/* A NIC that finishes the checksum adds the UDP header itself: it wants the pseudo header alone. */
	if (!(path->flags & SL_PATH_OFFLOAD_UDP))
		path->udp_sum = sl_cksum_fold(sl_cksum_add(path->udp_sum, udp, 4));
}

int
sl_path_build(struct sl_path *path, const struct sl_path_spec *s)
{
	const unsigned overhead = s->to.kind == SL_ADDR_UDP4 ? SL_IP4_BYTES + SL_UDP_BYTES :
		s->to.kind == SL_ADDR_UDP6		     ? SL_IP6_BYTES + SL_UDP_BYTES :
							       SL_ETH_HEADER_BYTES;
	int rc = check(s);

	if (rc)
		return rc;
	if (s->ip_mtu < overhead + SL_ESTABLISHED_MIN_BYTES)
		return -EMSGSIZE;
	memset(path, 0, sizeof(*path));
	path->kind = s->to.kind;
	path->port = s->port;
	path->addr = s->to;
	path->flags = s->flags;
	path->mtu = (uint16_t)(s->ip_mtu - overhead);
	if (s->fmp_mtu && s->fmp_mtu < path->mtu)
		path->mtu = s->fmp_mtu;
	switch (s->to.kind) {
	case SL_ADDR_UDP4:
		if (!(path->flags & SL_PATH_UDP4_CHECKSUM))
			path->flags &= (uint8_t)~SL_PATH_OFFLOAD_UDP;
		path->checksum = path->flags == SL_PATH_UDP4_CHECKSUM;
		put_ethernet(path, s, SL_ETHERTYPE_IP4);
		put_ip4(path, s);
		put_udp(path, s);
		break;
	case SL_ADDR_UDP6:
		path->checksum = !(path->flags & SL_PATH_OFFLOAD_UDP);
		put_ethernet(path, s, SL_ETHERTYPE_IP6);
		put_ip6(path, s);
		put_udp(path, s);
		break;
	default:
		path->flags = 0;
		put_ethernet(path, s, s->ethertype);
		path->hdr_len += SL_ETH_HEADER_BYTES; /* type 0; the length is the writer's */
		break;
	}
	return 0;
}
