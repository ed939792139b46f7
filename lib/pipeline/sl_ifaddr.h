/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_IFADDR_H
#define SL_IFADDR_H
/*
 * Addresses of a port and routes through it: the configuration's form, shared by the parser, the neighbour machine
 * and the data plane. Plain data, addresses in network order; an IPv4 address takes the first 4 bytes, the rest is
 * zero. Pure functions: any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_PORT_ADDRS_MAX 8
#define SL_ROUTES_MAX 32

/* An address of the port itself, with its on-link prefix. */
struct sl_ifaddr {
	uint8_t family; /* 4 or 6 */
	uint8_t prefix_len;
	uint8_t ip[16];
};

/* A static route: destinations in the prefix go through the gateway (on-link for one of the port's addresses). */
struct sl_static_route {
	uint8_t family; /* 4 or 6 */
	uint8_t prefix_len;
	uint8_t prefix[16];
	uint8_t gateway[16];
};

/* One neighbour as the operator sees it. */
struct sl_neigh_info {
	struct sl_ifaddr ip;
	uint8_t mac[6];
	uint16_t port;
	const char *state; /* "incomplete", "reachable", "stale", "probe", "failed" */
	uint32_t age_s;	   /* since the neighbour was last confirmed; since creation if never */
};
typedef void (*sl_neigh_fn)(void *arg, const struct sl_neigh_info *info);

/* Do the first prefix_len bits agree? prefix_len in bits, at most 128. */
static inline bool
sl_prefix_match(const uint8_t *a, const uint8_t *b, unsigned prefix_len)
{
	const unsigned bytes = prefix_len / 8, bits = prefix_len % 8;

	return memcmp(a, b, bytes) == 0 && (bits == 0 || ((a[bytes] ^ b[bytes]) >> (8 - bits)) == 0);
}
static inline bool
sl_ip6_is_link_local(const uint8_t *ip)
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}
/* fe80::/64 with the modified EUI-64 of the MAC (RFC 4291, appendix A). */
static inline void
sl_ip6_link_local(uint8_t ip[16], const uint8_t mac[6])
{
	const uint8_t a[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, (uint8_t)(mac[0] ^ 0x02), mac[1], mac[2], 0xff, 0xfe, mac[3],
		mac[4], mac[5]};

	memcpy(ip, a, sizeof(a));
}
/* ff02::1:ffXX:XXXX (RFC 4291, 2.7.1). */
static inline void
sl_ip6_solicited_node(uint8_t group[16], const uint8_t ip[16])
{
	const uint8_t a[16] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff, ip[13], ip[14], ip[15]};

	memcpy(group, a, sizeof(a));
}

#ifdef __cplusplus
}
#endif
#endif
