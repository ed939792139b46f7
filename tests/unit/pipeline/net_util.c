/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "net_test.h"
#include "frames_scapy.h"

const uint8_t us_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 0x99};
const struct frame_case *const frame_table = frame_cases;
const unsigned frame_table_count = sizeof(frame_cases) / sizeof(frame_cases[0]);

struct sl_ifaddr
ifaddr4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t prefix_len)
{
	const struct sl_ifaddr r = {.family = 4, .prefix_len = prefix_len, .ip = {a, b, c, d}};

	return r;
}

struct sl_ifaddr
ifaddr6(const char *hex, uint8_t prefix_len)
{
	struct sl_ifaddr r = {.family = 6, .prefix_len = prefix_len};

	sl_test_unhex(r.ip, 16, hex);
	return r;
}

void
local_default(struct sl_parse_local *local, uint16_t vlan)
{
	const struct sl_ifaddr a = ifaddr4(192, 0, 2, 1, 24), b = ifaddr4(198, 51, 100, 1, 25),
			       c = ifaddr6("20010db8 00000000 00000000 00000001", 64);

	sl_parse_local_init(local, us_mac, vlan, LOCAL_LINK);
	SL_EXPECT_EQ(sl_parse_local_udp(local, UDP_ID, 2121, true, true, NULL), 0);
	SL_EXPECT_EQ(sl_parse_local_addr(local, &a), 0);
	SL_EXPECT_EQ(sl_parse_local_addr(local, &b), 0);
	SL_EXPECT_EQ(sl_parse_local_addr(local, &c), 0);
	SL_EXPECT_EQ(sl_parse_local_udp(local, BOUND_ID, 4000, false, false, &a), 0);
	SL_EXPECT_EQ(sl_parse_local_eth(local, ETH_ID, 0x2121), 0);
}

size_t
frame_bytes(uint8_t *out, const struct frame_case *c)
{
	const size_t len = strlen(c->hex) / 2;

	sl_test_unhex(out, len, c->hex);
	return len;
}

enum sl_verdict
parse_copy(const struct sl_parse_local *local, const uint8_t *frame, size_t len, uint32_t hints, struct sl_parsed *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum sl_verdict v;

	if (len)
		memcpy(copy, frame, len);
	v = sl_parse(local, copy, len, hints, out);
	free(copy);
	return v;
}

static uint8_t *
put(uint8_t *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

size_t
frame_make(uint8_t *out, const struct frame_spec *s)
{
	uint8_t *p = out, *ip, *udp;
	const unsigned udp_len = s->fmp_len + 8u;
	uint16_t sum;

	p = put(p, us_mac, 6);
	p = put(p, peer_mac, 6);
	if (s->vlan)
		p = put(p, (const uint8_t[]){0x81, 0, (uint8_t)(s->vlan >> 8), (uint8_t)s->vlan}, 4);
	ip = p + 2;
	if (s->family == 0) {
		p = put(p, (const uint8_t[]){0x21, 0x21, 0, (uint8_t)s->fmp_len, (uint8_t)(s->fmp_len >> 8)}, 5);
	} else if (s->family == 4) {
		const unsigned total = udp_len + 20;

		p = put(p, (const uint8_t[]){8, 0, 0x45, 0, (uint8_t)(total >> 8), (uint8_t)total, 0, 1, 0, 0, 64, 17, 0, 0,
				   192, 0, 2, 9, 192, 0, 2, 1}, 22);
		sum = (uint16_t)~oracle_sum(0, ip, 20);
		ip[10] = (uint8_t)(sum >> 8);
		ip[11] = (uint8_t)sum;
	} else {
		p = put(p, (const uint8_t[]){0x86, 0xdd, 0x60, 0, 0, 0, (uint8_t)(udp_len >> 8), (uint8_t)udp_len, 17, 64,
				   0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
				   0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 42);
	}
	udp = p;
	if (s->family)
		p = put(p, (const uint8_t[]){5555 >> 8, 5555 & 255, 2121 >> 8, 2121 & 255, (uint8_t)(udp_len >> 8),
				   (uint8_t)udp_len, 0, 0}, 8);
	sl_test_rand_bytes(p, s->fmp_len);
	if (s->fmp_len >= 32) {
		const unsigned n = s->fmp_len - 32u;

		p = put(p, (const uint8_t[]){0, 0, (uint8_t)n, (uint8_t)(n >> 8)}, 4) - 4;
	}
	p += s->fmp_len;
	if (s->family && !s->no_checksum) {
		const uint8_t pseudo[4] = {0, 17, (uint8_t)(udp_len >> 8), (uint8_t)udp_len};

		sum = oracle_sum(0, s->family == 4 ? ip + 12 : ip + 8, s->family == 4 ? 8 : 32);
		sum = (uint16_t)~oracle_sum(oracle_sum(sum, pseudo, 4), udp, udp_len);
		if (!sum)
			sum = 0xffff;
		udp[6] = (uint8_t)(sum >> 8);
		udp[7] = (uint8_t)sum;
	}
	return (size_t)(p - out);
}
