/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser's rules a second time, as plainly as they can be said: no shared helper but the struct of what is ours,
 * every field by its own index, checksums word by word. Slow on purpose.
 */
#include "net_test.h"

uint16_t
oracle_sum(uint16_t sum, const uint8_t *p, size_t len)
{
	uint32_t s = sum;

	for (size_t i = 0; i < len; i += 2) {
		s += (uint32_t)p[i] << 8 | (i + 1 < len ? p[i + 1] : 0);
		if (s > 0xffff)
			s -= 0xffff;
	}
	return (uint16_t)s;
}

struct view {
	const struct sl_parse_local *l;
	const uint8_t *f;
	size_t at, end; /* of the layer in hand: f[at..end) */
	uint32_t hints;
	struct sl_parsed *out;
	bool us, bcast, v6group, mdns4;
	bool mdns; /* multicast DNS: UDP of its group or nothing */
	bool udp; /* the FMP packet lies in UDP */
};

static unsigned
be(const struct view *v, size_t i)
{
	return v->f[v->at + i] * 256u + v->f[v->at + i + 1];
}

static bool
all(const uint8_t *p, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

/* What is no FMP may be a punch packet or a STUN answer; v->udp: it came over UDP. */
static enum sl_verdict
not_fmp(struct view *v, const uint8_t *p, size_t n, enum sl_verdict verdict)
{
	const bool punch = memcmp(p, "NPTC", 4) == 0 || memcmp(p, "NPTA", 4) == 0;
	const bool stun = n >= 20 && p[0] == 1 && (p[1] == 1 || p[1] == 17) && p[2] * 256u + p[3] + 20 == n && n % 4 == 0 &&
			  memcmp(p + 4, "\x21\x12\xa4\x42", 4) == 0;

	if (v->udp && v->l->nat && ((punch && n >= 24) || stun)) {
		v->out->kind = SL_PARSE_TRAVERSAL;
		return SL_PUNT;
	}
	return punch ? SL_DROP_NPT : verdict;
}

static enum sl_verdict
fmp(struct view *v)
{
	const uint8_t *p = v->f + v->at;
	const size_t n = v->end - v->at;
	const size_t body = n >= 4 ? p[2] + p[3] * 256u : 0;

	v->out->offset = (uint16_t)v->at;
	v->out->len = (uint16_t)n;
	if (n < 4)
		return SL_DROP_FMP_SHORT;
	if (p[0] / 16 != 0)
		return not_fmp(v, p, n, SL_DROP_FMP_VERSION);
	if (p[0] == 0) {
		if (n < 32)
			return SL_DROP_FMP_SHORT;
		if (body + 32 != n)
			return not_fmp(v, p, n, SL_DROP_FMP_LENGTH);
		v->out->kind = SL_PARSE_ESTABLISHED;
		return SL_FORWARD;
	}
	if (p[0] > 2)
		return SL_DROP_FMP_PHASE;
	if (n != (p[0] == 1 ? 114 : 69) || body + 4 != n)
		return not_fmp(v, p, n, SL_DROP_FMP_LENGTH);
	if (p[1])
		return not_fmp(v, p, n, SL_DROP_FMP_FLAGS);
	v->out->kind = SL_PARSE_HANDSHAKE;
	return SL_PUNT;
}

static enum sl_verdict
udp(struct view *v, unsigned family, const uint8_t *src, const uint8_t *dst)
{
	const size_t n = v->end - v->at;
	const struct sl_parse_udp *t = NULL;
	uint16_t sum;

	if (n < 8 || be(v, 4) != n)
		return SL_DROP_UDP_LENGTH;
	if (be(v, 0) == 0)
		return SL_DROP_SOURCE;
	if (v->mdns && be(v, 2) != 5353)
		return SL_DROP_UDP_PORT;
	for (unsigned i = 0; i < v->l->udp_count && !t; i++) {
		const struct sl_parse_udp *c = &v->l->udp[i];

		if (be(v, 2) != (c->port_wire & 255) * 256u + (c->port_wire >> 8))
			continue;
		if (family == 4 ? c->any4 : c->any6)
			t = c;
		else if (c->bind.family == family && memcmp(c->bind.ip, dst, family == 4 ? 4 : 16) == 0)
			t = c;
	}
	if (!t && !v->mdns)
		return SL_DROP_UDP_PORT;
	if (be(v, 6) == 0) {
		if (family == 6)
			return SL_DROP_UDP_CHECKSUM;
	} else if (!(v->hints & SL_RX_L4_GOOD) && !v->l->skip_udp_checksum) {
		const uint8_t tail[4] = {0, 17, (uint8_t)(n >> 8), (uint8_t)n};

		sum = oracle_sum(oracle_sum(0, src, family == 4 ? 4 : 16), dst, family == 4 ? 4 : 16);
		sum = oracle_sum(oracle_sum(sum, tail, 4), v->f + v->at, n);
		if (sum != 0xffff)
			return SL_DROP_UDP_CHECKSUM;
	}
	memset(&v->out->from, 0, sizeof(v->out->from));
	v->out->from.kind = family == 4 ? SL_ADDR_UDP4 : SL_ADDR_UDP6;
	v->out->from.transport = v->mdns ? 0 : t->id;
	v->out->from.udp_port = (uint16_t)be(v, 0);
	memcpy(v->out->from.u.ip6, src, family == 4 ? 4 : 16);
	if (family == 6 && src[0] == 0xfe && src[1] >= 0x80 && src[1] < 0xc0)
		v->out->from.link = v->l->link;
	v->at += 8;
	v->udp = true;
	if (v->mdns) {
		v->out->offset = (uint16_t)v->at;
		v->out->len = (uint16_t)(v->end - v->at);
		v->out->kind = SL_PARSE_MDNS;
		return SL_PUNT;
	}
	return fmp(v);
}

static enum sl_verdict
neigh(struct view *v)
{
	v->out->kind = SL_PARSE_NEIGH;
	v->out->offset = v->out->len = 0;
	return SL_PUNT;
}

static enum sl_verdict
ip4(struct view *v)
{
	const uint8_t *ip = v->f + v->at;
	size_t n = v->end - v->at, header, total;
	bool mine = false, bad;

	if (n < 20)
		return SL_DROP_TRUNCATED;
	header = ip[0] % 16 * 4u;
	total = be(v, 2);
	if (ip[0] / 16 != 4 || header < 20 || total < header)
		return SL_DROP_IP_HEADER;
	if (total > n)
		return SL_DROP_TRUNCATED;
	if (!(v->hints & SL_RX_IP_GOOD) && oracle_sum(0, ip, header) != 0xffff)
		return SL_DROP_IP_HEADER;
	if (be(v, 6) % 0x4000) /* more fragments, or an offset */
		return SL_DROP_FRAGMENT;
	bad = ip[12] == 0 || ip[12] == 127 || ip[12] >= 224;
	for (unsigned i = 0; i < v->l->ip4_count; i++) {
		mine |= memcmp(&v->l->ip4[i], ip + 16, 4) == 0;
		bad |= memcmp(&v->l->ip4[i], ip + 12, 4) == 0 || memcmp(&v->l->ip4_broadcast[i], ip + 12, 4) == 0;
	}
	v->mdns = v->mdns4 && memcmp(ip + 16, (const uint8_t[]){224, 0, 0, 251}, 4) == 0;
	if (v->mdns4 ? !v->mdns : !mine || !v->us)
		return SL_DROP_NOT_OURS;
	if (bad)
		return SL_DROP_SOURCE;
	if (v->mdns && ip[9] != 17)
		return SL_DROP_NOT_OURS;
	v->end = v->at + total;
	v->at += header;
	if (ip[9] == 17)
		return udp(v, 4, ip + 12, ip + 16);
	if (ip[9] != 1)
		return SL_DROP_IP_PROTOCOL;
	if (v->end - v->at < 8)
		return SL_DROP_TRUNCATED;
	return v->f[v->at] == 8 || be(v, 0) == 0x0304 ? neigh(v) : SL_DROP_ICMP;
}

/* Hop-by-hop and destination options: lengths nest, and nothing that asks to be discarded. */
static bool
options(const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		if (*p == 0) {
			p++;
		} else if (*p >= 64 || end - p < 2 || end - p - 2 < p[1]) {
			return false;
		} else {
			p += 2 + p[1];
		}
	}
	return true;
}

static enum sl_verdict
icmp6(struct view *v, bool group, bool nobody)
{
	unsigned type;

	if (v->end - v->at < 8)
		return SL_DROP_TRUNCATED;
	type = v->f[v->at];
	if (group && type != 135 && type != 136)
		return SL_DROP_NOT_OURS;
	if (nobody && type != 135)
		return SL_DROP_SOURCE;
	return type == 2 || type == 128 || type == 135 || type == 136 ? neigh(v) : SL_DROP_ICMP;
}

static enum sl_verdict
ip6(struct view *v)
{
	const uint8_t *ip = v->f + v->at, *src = ip + 8, *dst = ip + 24;
	bool mine = false, group, nobody, bad;
	unsigned next, headers = 0;

	if (v->end - v->at < 40)
		return SL_DROP_TRUNCATED;
	if (ip[0] / 16 != 6)
		return SL_DROP_IP_HEADER;
	if (be(v, 4) > v->end - v->at - 40)
		return SL_DROP_TRUNCATED;
	v->end = v->at + 40 + be(v, 4);
	group = dst[0] == 255;
	bad = src[0] == 255 || (all(src, 15, 0) && src[15] == 1) || (all(src, 10, 0) && all(src + 10, 2, 255));
	for (unsigned i = 0; i < v->l->ip6_count; i++) {
		const uint8_t *own = (const uint8_t *)v->l->ip6[i];

		if (!group)
			mine |= memcmp(own, dst, 16) == 0;
		else if (dst[1] == 2 && all(dst + 2, 9, 0))
			mine |= (dst[11] == 1 && dst[12] == 255 && memcmp(dst + 13, own + 13, 3) == 0) ||
				(all(dst + 11, 4, 0) && dst[15] == 1);
		bad |= memcmp(own, src, 16) == 0;
	}
	v->mdns = v->l->mdns && v->l->ip6_count && v->v6group && dst[0] == 255 && dst[1] == 2 && all(dst + 2, 13, 0) && dst[15] == 0xfb;
	if (!(mine || v->mdns) || (group ? v->bcast : !v->us))
		return SL_DROP_NOT_OURS;
	if (bad)
		return SL_DROP_SOURCE;
	nobody = all(src, 16, 0);
	next = ip[6];
	v->at += 40;
	while (next != 17 && next != 58) {
		const uint8_t *h = v->f + v->at;
		size_t n;

		if (next == 44)
			return SL_DROP_FRAGMENT;
		if (next == 50 || next == 51 || next == 135 || next == 139 || next == 140 || next == 253 || next == 254)
			return SL_DROP_EXTENSION;
		if (next != 0 && next != 43 && next != 60)
			return SL_DROP_IP_PROTOCOL;
		if ((next == 0 && headers) || headers == 8)
			return SL_DROP_EXTENSION;
		if (v->end - v->at < 8)
			return SL_DROP_TRUNCATED;
		n = 8 + 8u * h[1];
		if (v->end - v->at < n)
			return SL_DROP_TRUNCATED;
		if (next == 43 ? h[3] != 0 : !options(h + 2, h + n))
			return SL_DROP_EXTENSION;
		next = h[0];
		v->at += n;
		headers++;
	}
	if (v->mdns)
		return next != 17 ? SL_DROP_NOT_OURS : nobody ? SL_DROP_SOURCE : udp(v, 6, src, dst);
	if (next == 58)
		return icmp6(v, group, nobody);
	if (group)
		return SL_DROP_NOT_OURS;
	return nobody ? SL_DROP_SOURCE : udp(v, 6, src, dst);
}

static enum sl_verdict
arp(struct view *v)
{
	const uint8_t *a = v->f + v->at;
	bool ours = false;

	if (v->end - v->at < 28)
		return SL_DROP_TRUNCATED;
	for (unsigned i = 0; i < v->l->ip4_count; i++)
		ours |= memcmp(&v->l->ip4[i], a + 14, 4) == 0 || memcmp(&v->l->ip4[i], a + 24, 4) == 0;
	ours |= v->l->ip4_count && memcmp(a + 14, a + 24, 4) == 0;
	return ours && !v->v6group ? neigh(v) : SL_DROP_NOT_OURS;
}

static enum sl_verdict
raw(struct view *v)
{
	const uint8_t *p = v->f + v->at, *src = v->f + 6;
	const size_t n = v->end - v->at;

	if (n < 1)
		return SL_DROP_TRUNCATED;
	if (p[0] > 1)
		return SL_DROP_ETH_TYPE;
	if (p[0] == 0 ? !v->us : !v->us && !v->bcast)
		return SL_DROP_NOT_OURS;
	if (all(src, 6, 0) || memcmp(src, v->l->mac, 6) == 0)
		return SL_DROP_SOURCE;
	memset(&v->out->from, 0, sizeof(v->out->from));
	v->out->from.kind = SL_ADDR_ETH;
	v->out->from.transport = v->l->eth_id;
	v->out->from.vlan = v->l->vlan;
	v->out->from.link = v->l->link;
	memcpy(v->out->from.u.mac, src, 6);
	if (p[0] == 1) {
		if (n < 34)
			return SL_DROP_TRUNCATED;
		v->out->kind = SL_PARSE_BEACON;
		v->out->offset = (uint16_t)(v->at + 2);
		v->out->len = 32;
		return p[1] == 1 ? SL_PUNT : SL_DROP_ETH_TYPE;
	}
	if (n < 3)
		return SL_DROP_TRUNCATED;
	if (p[1] + 256u * p[2] > n - 3)
		return SL_DROP_ETH_LENGTH;
	v->at += 3;
	v->end = v->at + p[1] + 256u * p[2];
	return fmp(v);
}

enum sl_verdict
oracle_parse(const struct sl_parse_local *l, const uint8_t *f, size_t len, uint32_t hints, struct sl_parsed *out)
{
	struct view v = {.l = l, .f = f, .at = 12, .end = len, .hints = hints, .out = out};
	unsigned type, vid = 0, tags = 0;

	if (len < 14)
		return SL_DROP_TRUNCATED;
	if (hints & SL_RX_VLAN_STRIPPED) {
		vid = hints >> 16 & 0xfff;
		tags++;
	}
	type = be(&v, 0);
	if (type == 0x8100 || type == 0x88a8) {
		if (len < 18)
			return SL_DROP_TRUNCATED;
		vid = be(&v, 2) & 0xfff;
		v.at += 4;
		type = be(&v, 0);
		tags += 1 + (type == 0x8100 || type == 0x88a8);
	}
	if (tags > 1 || vid != l->vlan)
		return SL_DROP_VLAN;
	v.at += 2;
	v.us = memcmp(f, l->mac, 6) == 0;
	v.bcast = all(f, 6, 255);
	v.v6group = f[0] == 0x33 && f[1] == 0x33;
	v.mdns4 = l->mdns && type == 0x0800 && memcmp(f, (const uint8_t[]){1, 0, 0x5e, 0, 0, 0xfb}, 6) == 0;
	if (!v.us && !v.bcast && !v.v6group && !v.mdns4)
		return SL_DROP_NOT_OURS;
	if (f[6] % 2)
		return SL_DROP_SOURCE;
	if (type == 0x0800)
		return ip4(&v);
	if (type == 0x86dd)
		return ip6(&v);
	if (l->eth && type == l->ethertype)
		return raw(&v);
	if (type == 0x2121)
		return SL_DROP_ETH_TYPE;
	return type == 0x0806 ? arp(&v) : SL_DROP_ETHERTYPE;
}
