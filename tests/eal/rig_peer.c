/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of the rig and the bytes they exchange with it: plain code, one byte after the other. */
#include "rig.h"
#include <stdlib.h>

static void
be16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}
static unsigned
get_be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}
/* RFC 1071, as it is written there. */
static uint32_t
sum16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (; len > 1; p += 2, len -= 2)
		sum += get_be16(p);
	if (len)
		sum += (uint32_t)p[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static unsigned
l2_len(const uint8_t *frame)
{
	return get_be16(frame + 12) == 0x8100 ? 18 : 14;
}

void
rig_fix_ip4(uint8_t *frame)
{
	uint8_t *ip = frame + l2_len(frame);

	be16(ip + 10, 0);
	be16(ip + 10, ~sum16(0, ip, (ip[0] & 15u) * 4) & 0xffff);
}

static uint32_t
udp_sum(const uint8_t *ip, const uint8_t *udp)
{
	const unsigned udp_len = get_be16(udp + 4);
	uint32_t sum = 17 + udp_len;

	sum = ip[0] >> 4 == 4 ? sum16(sum, ip + 12, 8) : sum16(sum, ip + 8, 32);
	return sum16(sum, udp, udp_len);
}

void
rig_fix_udp(uint8_t *frame)
{
	uint8_t *ip = frame + l2_len(frame), *udp = ip + (ip[0] >> 4 == 4 ? (ip[0] & 15u) * 4 : 40);
	unsigned c;

	be16(udp + 6, 0);
	c = ~udp_sum(ip, udp) & 0xffff;
	be16(udp + 6, c ? c : 0xffff);
}

size_t
rig_outer(const struct rig_peer *p)
{
	return p->kind == SL_ADDR_UDP4 ? 42 : p->kind == SL_ADDR_UDP6 ? 62 : 17;
}

size_t
rig_wrap(const struct rig *r, const struct rig_peer *p, uint8_t *frame, const void *packet, size_t len)
{
	uint8_t *f = frame;

	memcpy(f, r->mac[p->port], 6);
	memcpy(f + 6, p->mac, 6);
	f += 12;
	if (r->config.vlan) {
		be16(f, 0x8100);
		be16(f + 2, r->config.vlan);
		f += 4;
	}
	be16(f, p->kind == SL_ADDR_UDP4 ? 0x0800 : p->kind == SL_ADDR_UDP6 ? 0x86dd : 0x2121);
	f += 2;
	if (p->kind == SL_ADDR_ETH) {
		f[0] = 0;
		f[1] = (uint8_t)len;
		f[2] = (uint8_t)(len >> 8);
		memcpy(f + 3, packet, len);
		return (size_t)(f + 3 - frame) + len;
	}
	if (p->kind == SL_ADDR_UDP4) {
		const uint8_t local[4] = {192, 0, (uint8_t)(2 + p->port), 1};

		memset(f, 0, 20);
		f[0] = 0x45;
		be16(f + 2, (unsigned)(28 + len));
		f[8] = 64;
		f[9] = 17;
		memcpy(f + 12, p->ip, 4);
		memcpy(f + 16, local, 4);
		f += 20;
	} else {
		const uint8_t local[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, (uint8_t)p->port, 0, 0, 0, 0, 0, 0, 0, 1};

		memset(f, 0, 40);
		f[0] = 0x60;
		be16(f + 4, (unsigned)(8 + len));
		f[6] = 17;
		f[7] = 64;
		memcpy(f + 8, p->ip, 16);
		memcpy(f + 24, local, 16);
		f += 40;
	}
	be16(f, p->udp_port);
	be16(f + 2, 2121);
	be16(f + 4, (unsigned)(8 + len));
	memcpy(f + 8, packet, len);
	if (p->kind == SL_ADDR_UDP4)
		rig_fix_ip4(frame);
	rig_fix_udp(frame);
	return (size_t)(f + 8 - frame) + len;
}

size_t
rig_datagram(uint8_t *msg, uint8_t ttl, uint16_t path_mtu, const struct sl_node_addr *src,
	const struct sl_node_addr *dest, const void *payload, size_t payload_len)
{
	msg[0] = 0;
	msg[1] = ttl;
	msg[2] = (uint8_t)path_mtu;
	msg[3] = (uint8_t)(path_mtu >> 8);
	memcpy(msg + 4, src, 16);
	memcpy(msg + 20, dest, 16);
	if (payload_len)
		memcpy(msg + 36, payload, payload_len);
	return 36 + payload_len;
}

size_t
rig_seal_raw(uint8_t *packet, const struct rig_peer *p, uint64_t counter, uint8_t flags, const void *text,
	size_t text_len)
{
	uint8_t nonce[12] = {0};

	packet[0] = 0;
	packet[1] = flags;
	packet[2] = (uint8_t)text_len;
	packet[3] = (uint8_t)(text_len >> 8);
	memcpy(packet + 4, &p->session->rx_index, 4);
	memcpy(packet + 8, &counter, 8);
	memcpy(nonce + 4, &counter, 8);
	sl_aead_seal_one(packet + 16, text, text_len, packet, 16, nonce, p->send);
	return 32 + text_len;
}

size_t
rig_seal(uint8_t *packet, const struct rig_peer *p, uint64_t counter, uint8_t flags, uint32_t ts_ms, const void *msg,
	size_t msg_len)
{
	uint8_t text[RIG_FRAME_MAX];

	memcpy(text, &ts_ms, 4);
	memcpy(text + 4, msg, msg_len);
	return rig_seal_raw(packet, p, counter, flags, text, 4 + msg_len);
}

size_t
rig_send_datagram(struct rig *r, struct rig_peer *a, const struct sl_node_addr *dest, uint8_t flags, uint8_t ttl,
	uint16_t path_mtu, const void *payload, size_t payload_len, uint8_t *msg)
{
	uint8_t packet[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	const size_t msg_len = rig_datagram(msg, ttl, path_mtu, &a->addr, dest, payload, payload_len);
	const size_t len = rig_seal(packet, a, a->counter, flags, (uint32_t)a->counter, msg, msg_len);

	a->counter++;
	rig_inject(r, a->port, frame, rig_wrap(r, a, frame, packet, len));
	return msg_len;
}

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			sl_test_fail(__FILE__, __LINE__, "frame to peer %u: %s", p->id, #cond);                        \
			return 0;                                                                                      \
		}                                                                                                      \
	} while (0)

/* Outer headers; returns where the FMP packet begins and its length. */
static size_t
unwrap(const struct rig *r, const struct rig_peer *p, const uint8_t *f, size_t len, size_t *packet_len)
{
	const unsigned l2 = r->config.vlan ? 18 : 14;
	const uint8_t *ip = f + l2, *udp;

	CHECK(len >= l2 + 32);
	CHECK(memcmp(f, p->mac, 6) == 0);
	CHECK(memcmp(f + 6, r->mac[p->port], 6) == 0);
	CHECK(!r->config.vlan || (get_be16(f + 12) == 0x8100 && get_be16(f + 14) == r->config.vlan));
	if (p->kind == SL_ADDR_ETH) {
		CHECK(get_be16(f + l2 - 2) == 0x2121);
		CHECK(ip[0] == 0);
		*packet_len = (size_t)(ip[1] | ip[2] << 8);
		CHECK(*packet_len + l2 + 3 == len);
		return l2 + 3;
	}
	if (p->kind == SL_ADDR_UDP4) {
		CHECK(get_be16(f + l2 - 2) == 0x0800);
		CHECK(ip[0] == 0x45 && ip[9] == 17 && get_be16(ip + 2) == len - l2);
		CHECK((ip[6] & 0x3f) == 0 && ip[7] == 0);
		CHECK(sum16(0, ip, 20) == 0xffff);
		CHECK(memcmp(ip + 16, p->ip, 4) == 0);
		udp = ip + 20;
	} else {
		CHECK(get_be16(f + l2 - 2) == 0x86dd);
		CHECK(ip[0] >> 4 == 6 && ip[6] == 17 && get_be16(ip + 4) == len - l2 - 40);
		CHECK(memcmp(ip + 24, p->ip, 16) == 0);
		udp = ip + 40;
		CHECK(get_be16(udp + 6) != 0);
	}
	CHECK(get_be16(udp) == 2121 && get_be16(udp + 2) == p->udp_port);
	CHECK(get_be16(udp + 4) == (size_t)(f + len - udp));
	CHECK(get_be16(udp + 6) == 0 || udp_sum(ip, udp) == 0xffff);
	*packet_len = (size_t)(f + len - udp - 8);
	return (size_t)(udp + 8 - f);
}

size_t
rig_open(struct rig *r, struct rig_peer *p, const uint8_t *frame, size_t len, uint8_t *msg, uint8_t *flags,
	uint32_t *ts_ms)
{
	uint8_t text[RIG_FRAME_MAX], nonce[12] = {0};
	size_t packet_len, at = unwrap(r, p, frame, len, &packet_len);
	const uint8_t *packet = frame + at;
	uint64_t counter;

	if (!at)
		return 0;
	CHECK(packet_len >= 37 && packet[0] == 0);
	CHECK((size_t)(packet[2] | packet[3] << 8) == packet_len - 32);
	CHECK(memcmp(packet + 4, &p->index, 4) == 0);
	memcpy(&counter, packet + 8, 8);
	CHECK(counter == p->rx_counter);
	p->rx_counter++;
	memcpy(nonce + 4, &counter, 8);
	CHECK(sl_aead_open_one(text, packet + 16, packet_len - 16, packet, 16, nonce, p->recv) == 0);
	if (flags)
		*flags = packet[1];
	if (ts_ms)
		memcpy(ts_ms, text, 4);
	memcpy(msg, text + 4, packet_len - 36);
	return packet_len - 36;
}

/* --- making peers ------------------------------------------------------------------------------------------------- */

void
rig_session_install(struct rig *r, struct rig_peer *p, uint16_t owner)
{
	struct sl_noise_keys keys;
	uint32_t rx_index;

	memset(&keys, 0, sizeof(keys));
	sl_test_rand_bytes(p->send, sizeof(p->send));
	sl_test_rand_bytes(p->recv, sizeof(p->recv));
	memcpy(keys.recv, p->send, sizeof(keys.recv));
	memcpy(keys.send, p->recv, sizeof(keys.send));
	p->index = (uint32_t)sl_test_rand();
	p->counter = p->rx_counter = 0;
	if (sl_session_index_reserve(r->table, owner, &rx_index) != 0) {
		sl_test_fail(__FILE__, __LINE__, "no index");
		return;
	}
	p->session = sl_session_install(r->table, rx_index, p->index, p->id, false, &keys, r->now_us);
	/* As one that has carried frames; a test that wants its first one reported says so. */
	__atomic_store_n(&p->session->notify, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&sl_session_table_view(r->table)->peers[p->id].tx, p->session, __ATOMIC_RELEASE);
}

/* Answers an ARP request or a neighbour solicitation for the peer's address. */
static bool
answer_neighbour(struct rig *r, const struct rig_peer *p, const uint8_t *f)
{
	const unsigned l2 = r->config.vlan ? 18 : 14;
	uint8_t a[128];

	memset(a, 0, sizeof(a));
	memcpy(a, f + 6, 6);
	memcpy(a + 6, p->mac, 6);
	memcpy(a + 12, f + 12, l2 - 12);
	if (p->kind == SL_ADDR_UDP4) {
		if (get_be16(f + l2 - 2) != 0x0806 || get_be16(f + l2 + 6) != 1 || memcmp(f + l2 + 24, p->ip, 4) != 0)
			return false;
		memcpy(a + l2, f + l2, 6);
		be16(a + l2 + 6, 2);
		memcpy(a + l2 + 8, p->mac, 6);
		memcpy(a + l2 + 14, p->ip, 4);
		memcpy(a + l2 + 18, f + l2 + 8, 10);
		rig_inject(r, p->port, a, 60);
		return true;
	}
	/* ICMPv6 135, target; the answer is 136, solicited and override, with the target's link-layer address. */
	if (get_be16(f + l2 - 2) != 0x86dd || f[l2 + 6] != 58 || f[l2 + 40] != 135 || memcmp(f + l2 + 48, p->ip, 16) != 0)
		return false;
	uint8_t *ip = a + l2, *icmp = ip + 40;

	ip[0] = 0x60;
	be16(ip + 4, 32);
	ip[6] = 58;
	ip[7] = 255;
	memcpy(ip + 8, p->ip, 16);
	memcpy(ip + 24, f + l2 + 8, 16);
	icmp[0] = 136;
	icmp[4] = 0x60;
	memcpy(icmp + 8, p->ip, 16);
	icmp[24] = 2;
	icmp[25] = 1;
	memcpy(icmp + 26, p->mac, 6);
	be16(icmp + 2, ~sum16(sum16(58 + 32, ip + 8, 32), icmp, 32) & 0xffff);
	rig_inject(r, p->port, a, l2 + 72);
	return true;
}

struct rig_peer *
rig_peer_add_bare(struct rig *r, uint8_t kind, uint16_t port, uint16_t owner, bool with_path)
{
	struct rig_peer *p = &r->peers[r->peer_count];
	uint8_t frame[RIG_FRAME_MAX];
	const uint8_t last = (uint8_t)(10 + r->peer_count);
	struct sl_identity *id = sl_identity_generate();

	p->id = r->peer_count++;
	p->kind = kind;
	p->port = port;
	p->udp_port = (uint16_t)(40000 + p->id);
	memcpy(p->mac, (uint8_t[6]){2, 0, 0, (uint8_t)((10 + p->id) >> 8), (uint8_t)port, last}, 6);
	memcpy(p->xonly, sl_identity_xonly(id), SL_XONLY_BYTES);
	p->addr = *sl_identity_addr(id);
	sl_identity_destroy(id);
	p->at.kind = kind;
	p->at.transport = kind == SL_ADDR_ETH ? (uint8_t)(1 + port) : 0;
	if (kind == SL_ADDR_UDP4) {
		memcpy(p->ip, (uint8_t[4]){192, 0, (uint8_t)(2 + port), last}, 4);
		memcpy(p->at.u.ip4, p->ip, 4);
		p->at.udp_port = p->udp_port;
	} else if (kind == SL_ADDR_UDP6) {
		memcpy(p->ip, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, 0, 0, 0, (uint8_t)port, 0, 0, 0, 0, 0, 0, 0, last}, 16);
		memcpy(p->at.u.ip6, p->ip, 16);
		p->at.udp_port = p->udp_port;
	} else {
		memcpy(p->at.u.mac, p->mac, 6);
		p->at.link = port;
		p->at.vlan = r->config.vlan;
	}
	r->now_us = sl_dataplane_now_us();
	rig_session_install(r, p, owner);
	if (sl_router_peer_up(r->router, p->id, p->xonly, rig_link_mtu(r, kind), r->now_us) != 0)
		sl_test_fail(__FILE__, __LINE__, "router refuses the peer");
	sl_router_tick(r->router, r->now_us);
	if (!with_path)
		return p;
	sl_dataplane_path_set(r->dp, p->id, &p->at, r->now_us);
	for (unsigned turn = 0; turn < 8 && !sl_session_table_view(r->table)->peers[p->id].path; turn++) {
		rig_poll(r, true);
		while (rig_receive(r, port, frame))
			answer_neighbour(r, p, frame);
		rig_poll(r, true);
	}
	if (!sl_session_table_view(r->table)->peers[p->id].path)
		sl_test_fail(__FILE__, __LINE__, "no path to peer %u", p->id);
	return p;
}

struct rig_peer *
rig_peer_add(struct rig *r, uint8_t kind, uint16_t port, uint16_t owner)
{
	return rig_peer_add_bare(r, kind, port, owner, true);
}
