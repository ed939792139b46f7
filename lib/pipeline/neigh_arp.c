/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP over Ethernet for IPv4 (RFC 826, 5227 for probes). Offsets from the ARP header. */
#include "neigh_int.h"

#define ARP_BYTES 28
#define ARP_OP 6
#define ARP_SHA 8
#define ARP_SPA 14
#define ARP_THA 18
#define ARP_TPA 24
#define ARP_REQUEST 1
#define ARP_REPLY 2

static const uint8_t fixed[6] = {0, 1, 0x08, 0x00, 6, 4}; /* Ethernet, IPv4, lengths */
static const uint8_t to_all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void
send(struct sl_neigh *n, uint16_t port, const uint8_t *dst_mac, uint16_t op, const uint8_t *spa, const uint8_t *tha,
	const uint8_t *tpa)
{
	const size_t at = neigh_frame_start(n, &n->ports[port], dst_mac, SL_ETHERTYPE_ARP);
	uint8_t *arp = n->out + at;

	memset(arp, 0, ARP_BYTES);
	memcpy(arp, fixed, sizeof(fixed));
	sl_put16be(arp + ARP_OP, op);
	memcpy(arp + ARP_SHA, n->ports[port].mac, 6);
	memcpy(arp + ARP_SPA, spa, 4);
	if (tha)
		memcpy(arp + ARP_THA, tha, 6);
	memcpy(arp + ARP_TPA, tpa, 4);
	neigh_frame_send(n, port, at + ARP_BYTES);
}

void
neigh_arp_request(struct sl_neigh *n, uint16_t port, const uint8_t *ip, const uint8_t *mac)
{
	const uint8_t *src = neigh_source(&n->ports[port], 4, ip);

	if (src)
		send(n, port, mac ? mac : to_all, ARP_REQUEST, src, mac, ip);
}

void
neigh_arp_announce(struct sl_neigh *n, uint16_t port, const uint8_t *ip)
{
	send(n, port, to_all, ARP_REQUEST, ip, NULL, ip);
}

/* What a known neighbour says of itself; `solicited`: a reply to our address. */
static void
learn(struct sl_neigh *n, struct neigh *e, const uint8_t *sha, bool solicited, uint64_t now_us)
{
	if (solicited && neigh_asked(e, sha)) {
		neigh_confirm(n, e, sha, now_us);
		neigh_count(n, SL_NEIGH_ARP_LEARNED);
	} else {
		neigh_count(n, neigh_claim(n, e, sha, now_us) ? SL_NEIGH_ARP_UPDATED : SL_NEIGH_ARP_IGNORED);
	}
}

static void
answer(struct sl_neigh *n, uint16_t port, const uint8_t *arp, uint64_t now_us)
{
	if (!sl_bucket_take(&n->answer, now_us)) {
		neigh_count(n, SL_NEIGH_ANSWER_LIMITED);
		return;
	}
	neigh_count(n, SL_NEIGH_ARP_ANSWERED);
	send(n, port, arp + ARP_SHA, ARP_REPLY, arp + ARP_TPA, arp + ARP_SHA, arp + ARP_SPA);
}

void
neigh_arp_input(struct sl_neigh *n, uint16_t port, const uint8_t *arp, size_t len, uint64_t now_us)
{
	const struct neigh_port *p = &n->ports[port];
	const uint8_t *sha, *spa, *tpa;
	struct neigh *e;
	uint16_t op;
	bool to_us, probe;

	if (len < ARP_BYTES || memcmp(arp, fixed, sizeof(fixed)) != 0) {
		neigh_count(n, SL_NEIGH_ARP_MALFORMED);
		return;
	}
	op = sl_get16be(arp + ARP_OP);
	if (op != ARP_REQUEST && op != ARP_REPLY) {
		neigh_count(n, SL_NEIGH_ARP_MALFORMED);
		return;
	}
	sha = arp + ARP_SHA;
	spa = arp + ARP_SPA;
	tpa = arp + ARP_TPA;
	probe = sl_get32be(spa) == 0 && op == ARP_REQUEST; /* somebody wants to know whether an address is free */
	if (neigh_mac_valid(p, sha) && neigh_is_own(p, 4, spa)) {
		neigh_count(n, SL_NEIGH_CONFLICT);
		return;
	}
	if (!neigh_mac_valid(p, sha) || (!probe && (spa[0] == 0 || spa[0] == 127 || spa[0] >= 224 ||
						 !neigh_on_link(p, 4, spa)))) {
		neigh_count(n, SL_NEIGH_ARP_SENDER);
		return;
	}
	to_us = neigh_is_own(p, 4, tpa);
	e = probe ? NULL : neigh_find(n, port, 4, spa);
	if (op == ARP_REQUEST && to_us) {
		if (e)
			(void)neigh_claim(n, e, sha, now_us);
		answer(n, port, arp, now_us);
		return;
	}
	/* Left: replies to us, and announcements (sender and target the same). */
	if (!e || (!to_us && memcmp(spa, tpa, 4) != 0)) {
		neigh_count(n, SL_NEIGH_ARP_IGNORED);
		return;
	}
	learn(n, e, sha, op == ARP_REPLY && to_us, now_us);
}
