/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NET_TEST_H
#define SL_NET_TEST_H
/* What the tests of parser, paths and neighbours share: one receiving port, and plain slow oracles. */
#include "sl_parse.h"
#include "sl_test.h"

#define LOCAL_LINK 2
#define UDP_ID 3      /* port 2121 on all addresses */
#define BOUND_ID 4    /* port 4000 on 192.0.2.1 only */
#define ETH_ID 5

extern const uint8_t us_mac[6], peer_mac[6];

/* 192.0.2.1/24, 198.51.100.1/25, 2001:db8::1/64, fe80::ff:fe00:1; transports as above. */
void local_default(struct sl_parse_local *local, uint16_t vlan);
struct sl_ifaddr ifaddr4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t prefix_len);
struct sl_ifaddr ifaddr6(const char *hex, uint8_t prefix_len);

/* RFC 1071 by the letter: big-endian words one by one, end-around carry after each. Not complemented, host order. */
uint16_t oracle_sum(uint16_t sum, const uint8_t *p, size_t len);
/* The verdict by rules written down a second time, byte by byte. kind, from, offset, len as sl_parse() gives them. */
enum sl_verdict oracle_parse(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints,
	struct sl_parsed *out);

/* Runs sl_parse() on an exact-size copy on the heap. */
enum sl_verdict parse_copy(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints,
	struct sl_parsed *out);

/* A complete Ethernet frame with an FMP packet, checksums by the oracle. Returns its length. */
struct frame_spec {
	uint8_t family; /* 4, 6, 0 = raw Ethernet */
	uint16_t vlan;
	uint16_t fmp_len;
	bool no_checksum;
};
size_t frame_make(uint8_t *out, const struct frame_spec *spec);

enum { FROM_NONE, FROM_U4, FROM_U4B, FROM_U6, FROM_U6L, FROM_ETH, FROM_ETH7 };
struct frame_case {
	const char *name;
	enum sl_verdict verdict;
	uint8_t kind, from;
	uint16_t offset, len;
	uint32_t hints;
	uint16_t vlan;
	const char *hex;
};
extern const struct frame_case *const frame_table;
extern const unsigned frame_table_count;
size_t frame_bytes(uint8_t *out, const struct frame_case *c);

#endif
