/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of multicast DNS out, in the headers that RFC 6762, 11 asks for; groups' Ethernet addresses: RFC 1112, 6.4, RFC 2464, 7. */
#include <errno.h>
#include <string.h>

#include "sl_control.h"

#define FRAME_MAX (SL_ETHER_BYTES + SL_VLAN_BYTES + SL_IP6_BYTES + SL_UDP_BYTES + 1500)

static const uint8_t group4[4] = {224, 0, 0, 251}, mac4[6] = {0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb};
static const uint8_t group6[16] = {0xff, 0x02, [15] = 0xfb}, mac6[6] = {0x33, 0x33, 0x00, 0x00, 0x00, 0xfb};

/* A link-local address, if the port has one. */
static const uint8_t *
source6(const struct sl_port *p)
{
	const uint8_t *from = (const uint8_t *)p->local.ip6[0];

	for (unsigned i = 0; i < p->local.ip6_count; i++)
		if (sl_ip6_is_link_local((const uint8_t *)p->local.ip6[i]))
			from = (const uint8_t *)p->local.ip6[i];
	return from;
}

int
sl_dataplane_mdns(struct sl_dataplane *dp, uint16_t port, uint8_t family, const uint8_t *message, size_t len)
{
	const struct sl_port *p = port < dp->port_count ? &dp->ports[port] : NULL;
	struct sl_path_spec spec = {.port = port, .src_port = SL_MDNS_PORT, .hop_limit = 255, .group = true,
		.flags = SL_PATH_UDP4_CHECKSUM};
	uint8_t frame[FRAME_MAX];
	struct sl_path path;
	int rc;

	if (p == NULL || (family == 4 ? p->local.ip4_count : p->local.ip6_count) == 0)
		return -EADDRNOTAVAIL;
	spec.to.kind = family == 4 ? SL_ADDR_UDP4 : SL_ADDR_UDP6;
	spec.to.udp_port = SL_MDNS_PORT;
	spec.vlan = p->config.vlan;
	spec.ip_mtu = p->mtu;
	memcpy(spec.src_mac, p->mac, 6);
	memcpy(spec.dst_mac, family == 4 ? mac4 : mac6, 6);
	if (family == 4) {
		memcpy(spec.to.u.ip4, group4, 4);
		memcpy(spec.src_ip, &p->local.ip4[0], 4);
	} else {
		memcpy(spec.to.u.ip6, group6, 16);
		memcpy(spec.src_ip, source6(p), 16);
	}
	rc = sl_path_build(&path, &spec);
	if (rc)
		return rc;
	if (len > path.mtu || len > sizeof(frame) - path.hdr_len)
		return -EMSGSIZE;
	memcpy(frame + path.hdr_len, message, len);
	sl_path_write(&path, frame, (unsigned)len, 0);
	return sl_paths_frame(dp, port, frame, path.hdr_len + len);
}
