/* SPDX-License-Identifier: BSD-3-Clause */
/* What is ours on a port: filled in by control before launch. */
#include <errno.h>
#include "sl_parse.h"

const uint8_t sl_parse_net4_bad[256] = {[0] = 1, [127] = 1, [224 ... 255] = 1};

/* --- shapes --------------------------------------------------------------------------------------------------------- */

/* First byte of an established packet: version 0 and its phase. */
static const uint8_t established = SL_PHASE_ESTABLISHED;

static void
shape_want(struct sl_parse_shape *s, unsigned at, const void *bytes, unsigned n)
{
	memcpy((uint8_t *)s->value + at, bytes, n);
	memset((uint8_t *)s->mask + at, 0xff, n);
}

/* The part that all have: to our MAC, not from a group, the EtherType. NULL when there is no room. */
static struct sl_parse_shape *
shape_add(struct sl_parse_local *local, uint8_t kind, uint8_t transport, uint16_t ethertype)
{
	const struct sl_addr from = {.kind = kind, .transport = transport, .link = kind == SL_ADDR_ETH ? local->link : 0};
	const uint8_t type[2] = {(uint8_t)(ethertype >> 8), (uint8_t)ethertype};
	struct sl_parse_shape *s;

	if (local->shape_count == SL_PARSE_SHAPES_MAX)
		return NULL;
	s = &local->shape[local->shape_count++];
	memset(s, 0, sizeof(*s));
	memcpy(&s->from, &from, sizeof(s->from));
	s->kind = kind;
	shape_want(s, 0, local->mac, 6);
	((uint8_t *)s->mask)[6] = 0x01;
	shape_want(s, 12, type, 2);
	return s;
}

static void
shape_udp4(struct sl_parse_local *local, const struct sl_parse_udp *t, unsigned i)
{
	struct sl_parse_shape *s = shape_add(local, SL_ADDR_UDP4, t->id, SL_ETHERTYPE_IP4);
	const unsigned ip = SL_ETHER_BYTES;

	if (s == NULL)
		return;
	shape_want(s, ip, "\x45", 1);
	shape_want(s, ip + 6, "\0\0", 2);
	((uint8_t *)s->mask)[ip + 6] = 0x3f; /* not a fragment; the reserved bit and DF are ignored */
	shape_want(s, ip + 9, &(const uint8_t){SL_IPPROTO_UDP}, 1);
	shape_want(s, ip + 16, &local->ip4[i], 4);
	shape_want(s, ip + SL_IP4_BYTES + 2, &t->port_wire, 2);
	shape_want(s, ip + SL_IP4_BYTES + SL_UDP_BYTES, &established, 1);
}

static void
shape_udp6(struct sl_parse_local *local, const struct sl_parse_udp *t, unsigned i)
{
	struct sl_parse_shape *s = shape_add(local, SL_ADDR_UDP6, t->id, SL_ETHERTYPE_IP6);
	const unsigned ip = SL_ETHER_BYTES;

	if (s == NULL)
		return;
	shape_want(s, ip, "\x60", 1);
	((uint8_t *)s->mask)[ip] = 0xf0;
	shape_want(s, ip + 6, &(const uint8_t){SL_IPPROTO_UDP}, 1);
	shape_want(s, ip + 24, local->ip6[i], 16);
	shape_want(s, ip + SL_IP6_BYTES + 2, &t->port_wire, 2);
	shape_want(s, ip + SL_IP6_BYTES + SL_UDP_BYTES, &established, 1);
}

/* The first transport that listens decides (sl_parse_udp_lookup()): its shape comes first. */
static void
shapes_make(struct sl_parse_local *local)
{
	struct sl_parse_shape *s;

	local->shape_count = 0;
	for (unsigned k = 0; k < local->udp_count; k++)
		for (unsigned i = 0; i < local->ip4_count; i++)
			if (local->udp[k].ip4_mask & 1u << i)
				shape_udp4(local, &local->udp[k], i);
	if (local->eth) {
		s = shape_add(local, SL_ADDR_ETH, local->eth_id, local->ethertype);
		if (s != NULL) {
			shape_want(s, SL_ETHER_BYTES, &(const uint8_t){SL_ETH_TYPE_DATA}, 1);
			shape_want(s, SL_ETHER_BYTES + SL_ETH_HEADER_BYTES, &established, 1);
		}
	}
	for (unsigned k = 0; k < local->udp_count; k++)
		for (unsigned i = 0; i < local->ip6_count; i++)
			if (local->udp[k].ip6_mask & 1u << i)
				shape_udp6(local, &local->udp[k], i);
}

/* --- addresses and transports ---------------------------------------------------------------------------------------- */

static void
refresh_masks(const struct sl_parse_local *local, struct sl_parse_udp *t)
{
	t->ip4_mask = 0;
	t->ip6_mask = 0;
	for (unsigned i = 0; i < local->ip4_count; i++)
		if (t->any4 || (t->bind.family == 4 && memcmp(t->bind.ip, &local->ip4[i], 4) == 0))
			t->ip4_mask |= (uint16_t)(1u << i);
	for (unsigned i = 0; i < local->ip6_count; i++)
		if (t->any6 || (t->bind.family == 6 && memcmp(t->bind.ip, local->ip6[i], 16) == 0))
			t->ip6_mask |= (uint16_t)(1u << i);
}

void
sl_parse_local_init(struct sl_parse_local *local, const uint8_t mac[6], uint16_t vlan, uint16_t link)
{
	memset(local, 0, sizeof(*local));
	memcpy(local->mac, mac, 6);
	memcpy(&local->mac_word, mac, 6);
	local->vlan = vlan & 0x0fff;
	local->link = link;
}

void
sl_parse_local_mac(struct sl_parse_local *local, const uint8_t mac[6])
{
	memcpy(local->mac, mac, 6);
	local->mac_word = 0;
	memcpy(&local->mac_word, mac, 6);
	if (local->link_local_derived) {
		uint8_t derived[16];

		sl_ip6_link_local(derived, mac);
		memcpy(local->ip6[0], derived, 16);
	}
	shapes_make(local);
}

static int
add_ip4(struct sl_parse_local *local, const struct sl_ifaddr *addr)
{
	uint32_t ip, host;

	if (addr->prefix_len > 32 || addr->ip[0] == 0 || addr->ip[0] == 127 || addr->ip[0] >= 224)
		return -EINVAL;
	memcpy(&ip, addr->ip, 4);
	for (unsigned i = 0; i < local->ip4_count; i++)
		if (local->ip4[i] == ip)
			return -EEXIST;
	if (local->ip4_count == SL_PARSE_IP4_MAX)
		return -ENOSPC;
	/* /31 and /32 have no broadcast address (RFC 3021); /0 would be 255.255.255.255, refused anyway. */
	host = addr->prefix_len < 31 ? __builtin_bswap32(0xffffffffu >> addr->prefix_len) : 0;
	local->ip4_broadcast[local->ip4_count] = ip | host;
	local->ip4[local->ip4_count++] = ip;
	return 0;
}

static int
append_ip6(struct sl_parse_local *local, const uint8_t *ip)
{
	for (unsigned i = 0; i < local->ip6_count; i++)
		if (memcmp(local->ip6[i], ip, 16) == 0)
			return -EEXIST;
	if (local->ip6_count == SL_PARSE_IP6_MAX)
		return -ENOSPC;
	memcpy(local->ip6[local->ip6_count++], ip, 16);
	return 0;
}

static int
add_ip6(struct sl_parse_local *local, const struct sl_ifaddr *addr)
{
	static const uint8_t loopback[16] = {[15] = 1}, unspecified[16];
	uint8_t derived[16];

	if (addr->prefix_len > 128 || addr->ip[0] == 0xff || memcmp(addr->ip, loopback, 16) == 0 ||
		memcmp(addr->ip, unspecified, 16) == 0)
		return -EINVAL;
	if (local->ip6_count == 0 && !sl_ip6_is_link_local(addr->ip)) {
		sl_ip6_link_local(derived, local->mac);
		local->link_local_derived = append_ip6(local, derived) == 0;
	}
	return append_ip6(local, addr->ip);
}

int
sl_parse_local_addr(struct sl_parse_local *local, const struct sl_ifaddr *addr)
{
	int rc = addr->family == 4 ? add_ip4(local, addr) : addr->family == 6 ? add_ip6(local, addr) : -EINVAL;

	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < local->udp_count; i++)
		refresh_masks(local, &local->udp[i]);
	shapes_make(local);
	return 0;
}

int
sl_parse_local_udp(struct sl_parse_local *local, uint8_t id, uint16_t udp_port, bool any4, bool any6,
	const struct sl_ifaddr *bind)
{
	struct sl_parse_udp *t;

	if (udp_port == 0 || (bind == NULL) != (any4 || any6) || (bind && bind->family != 4 && bind->family != 6))
		return -EINVAL;
	if (local->udp_count == SL_PARSE_UDP_MAX)
		return -ENOSPC;
	t = &local->udp[local->udp_count++];
	memset(t, 0, sizeof(*t));
	t->id = id;
	t->port_wire = __builtin_bswap16(udp_port);
	t->any4 = any4;
	t->any6 = any6;
	if (bind)
		t->bind = *bind;
	refresh_masks(local, t);
	shapes_make(local);
	return 0;
}

int
sl_parse_local_eth(struct sl_parse_local *local, uint8_t id, uint16_t ethertype)
{
	if (ethertype < 0x0600 || ethertype == SL_ETHERTYPE_IP4 || ethertype == SL_ETHERTYPE_IP6 ||
		ethertype == SL_ETHERTYPE_ARP || ethertype == SL_ETHERTYPE_VLAN || ethertype == SL_ETHERTYPE_QINQ)
		return -EINVAL;
	if (local->eth)
		return -EEXIST;
	local->eth = true;
	local->eth_id = id;
	local->ethertype = ethertype;
	shapes_make(local);
	return 0;
}
