/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ADDR_H
#define SL_ADDR_H
/*
 * Where a peer is: a transport instance of ours and an address on it. Plain data, 24 bytes, unused bytes zero, so
 * that two addresses are equal exactly when their bytes are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sl_addr_kind {
	SL_ADDR_NONE = 0,
	SL_ADDR_UDP4,
	SL_ADDR_UDP6,
	SL_ADDR_ETH,
};

struct sl_addr {
	uint8_t kind;	   /* enum sl_addr_kind */
	uint8_t transport; /* transport instance of ours (index into the configuration's transports) */
	uint16_t udp_port; /* host order; 0 for Ethernet */
	uint16_t vlan;	   /* Ethernet only: VLAN id, 0 = untagged */
	uint16_t link;	   /* which of our ports (dataplane port index): Ethernet, and scope of fe80:: addresses */
	union {
		uint8_t ip6[16];
		uint8_t ip4[4];
		uint8_t mac[6];
		uint64_t words[2];
	} u;
};

static inline bool
sl_addr_equal(const struct sl_addr *a, const struct sl_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * A word that differs when the address does (up to 2^-64): lets a worker see a change with one compare, on every frame, so
 * it is as cheap as that allows. Its low bits are not spread well and anybody can make two that agree in some: who wants
 * rows of a table from it mixes it with a key.
 */
static inline uint64_t
sl_addr_hash(const struct sl_addr *a)
{
	uint64_t w[3];

	memcpy(&w[0], a, 8);
	memcpy(&w[1], (const uint8_t *)a + 8, 8);
	memcpy(&w[2], (const uint8_t *)a + 16, 8);
	for (int i = 0; i < 3; i++)
		w[i] *= 0x9e3779b97f4a7c15ull;
	return w[0] ^ (w[1] << 23 | w[1] >> 41) ^ (w[2] << 43 | w[2] >> 21);
}

#define SL_ADDR_TEXT_SIZE 80
/* "192.0.2.1:2121", "[2001:db8::1]:2121", "02:00:00:00:00:01" */
void sl_addr_format(char text[SL_ADDR_TEXT_SIZE], const struct sl_addr *addr);
/* "host:port" with a literal IPv4 or [IPv6]; 0 or -EINVAL. Sets kind, udp_port, u; the rest is zero. */
int sl_addr_parse_udp(struct sl_addr *addr, const char *text);
/* "aa:bb:cc:dd:ee:ff"; 0 or -EINVAL. */
int sl_addr_parse_mac(struct sl_addr *addr, const char *text);

#ifdef __cplusplus
}
#endif
#endif
