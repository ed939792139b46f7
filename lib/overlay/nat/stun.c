/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_stun.h"
#include <errno.h>
#include "nat_internal.h"

#define TYPE_REQUEST 0x0001u
#define TYPE_SUCCESS 0x0101u
#define TYPE_ERROR 0x0111u

enum {
	MAPPED_ADDRESS = 0x0001,
	ERROR_CODE = 0x0009,
	XOR_MAPPED_ADDRESS = 0x0020,
	FINGERPRINT = 0x8028,
};
#define FINGERPRINT_XOR 0x5354554eu
#define ATTRIBUTE_BYTES 4u

/* --- codec ------------------------------------------------------------------------------------ */

void
sl_stun_request_build(uint8_t packet[SL_STUN_HEADER_BYTES], const uint8_t id[SL_STUN_ID_BYTES])
{
	put_be16(packet, TYPE_REQUEST);
	put_be16(packet + 2, 0);
	put_be32(packet + 4, SL_STUN_COOKIE);
	memcpy(packet + 8, id, SL_STUN_ID_BYTES);
}

/* ISO 3309, as in Ethernet; a response is short. */
static uint32_t
crc32(const uint8_t *p, size_t len)
{
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* Value of a (XOR-)MAPPED-ADDRESS. False: not one that a peer could use. */
static bool
address_parse(struct sl_addr *addr, const uint8_t *v, size_t len, const uint8_t *header, bool xored)
{
	const unsigned family = len >= 4 ? v[1] : 0, bytes = family == 1 ? 4 : family == 2 ? 16 : 0;
	uint16_t port;

	if (bytes == 0 || len != 4 + bytes)
		return false;
	port = be16(v + 2);
	if (xored)
		port ^= (uint16_t)(SL_STUN_COOKIE >> 16);
	if (port == 0)
		return false;
	memset(addr, 0, sizeof(*addr));
	addr->kind = family == 1 ? SL_ADDR_UDP4 : SL_ADDR_UDP6;
	addr->udp_port = port;
	/* The mask is the cookie and the id, as they lie in the header. */
	for (unsigned i = 0; i < bytes; i++)
		addr->u.ip6[i] = v[4 + i] ^ (xored ? header[4 + i] : 0);
	return true;
}

/* Attributes that need no understanding: those from 0x8000 on, and the older ones of RFC 3489 and 5389. */
static bool
may_skip(uint16_t type)
{
	return type >= 0x8000 || (type >= 0x0002 && type <= 0x000b) || type == 0x0014 || type == 0x0015;
}

struct found {
	struct sl_addr plain, xored;
	unsigned code;
	bool error_code;
};

/* p: at an attribute's value, which lies inside the message. 0 or -EPROTO. */
static int
attribute(struct found *found, uint16_t type, const uint8_t *v, size_t len, const uint8_t *packet)
{
	switch (type) {
	case MAPPED_ADDRESS:
		if (found->plain.kind == SL_ADDR_NONE)
			(void)address_parse(&found->plain, v, len, packet, false);
		return 0;
	case XOR_MAPPED_ADDRESS:
		if (found->xored.kind == SL_ADDR_NONE)
			(void)address_parse(&found->xored, v, len, packet, true);
		return 0;
	case ERROR_CODE:
		if (len >= 4)
			found->code = (v[2] & 7u) * 100u + v[3];
		return 0;
	case FINGERPRINT:
		/* Over all before it; the length field counts it already. */
		return len == 4 && be32(v) == (crc32(packet, (size_t)(v - packet) - ATTRIBUTE_BYTES) ^ FINGERPRINT_XOR)
			? 0 : -EPROTO;
	default:
		return may_skip(type) ? 0 : -EPROTO;
	}
}

int
sl_stun_response_parse(const uint8_t *packet, size_t len, const uint8_t id[SL_STUN_ID_BYTES], struct sl_addr *mapped,
	unsigned *code)
{
	struct found found;
	uint16_t type;
	int rc;

	memset(&found, 0, sizeof(found));
	*code = 0;
	if (len < SL_STUN_HEADER_BYTES || packet[0] & 0xc0 || be32(packet + 4) != SL_STUN_COOKIE ||
		be16(packet + 2) != len - SL_STUN_HEADER_BYTES || len % 4)
		return -EINVAL;
	type = be16(packet);
	if (type != TYPE_SUCCESS && type != TYPE_ERROR)
		return -EPROTO;
	if (memcmp(packet + 8, id, SL_STUN_ID_BYTES) != 0)
		return -ENOMSG;
	for (size_t at = SL_STUN_HEADER_BYTES; at < len;) {
		/* len and at are multiples of 4: four bytes are there. */
		const uint16_t attribute_type = be16(packet + at);
		const size_t bytes = be16(packet + at + 2), padded = (bytes + 3) & ~(size_t)3;

		at += ATTRIBUTE_BYTES;
		if (padded > len - at)
			return -EINVAL;
		rc = attribute(&found, attribute_type, packet + at, bytes, packet);
		if (rc != 0)
			return rc;
		at += padded;
	}
	if (type == TYPE_ERROR) {
		*code = found.code;
		return -EREMOTEIO;
	}
	if (found.xored.kind == SL_ADDR_NONE && found.plain.kind == SL_ADDR_NONE)
		return -ENODATA;
	*mapped = found.xored.kind != SL_ADDR_NONE ? found.xored : found.plain;
	return 0;
}

/* --- query ------------------------------------------------------------------------------------ */

/* To the server in hand. A datagram that cannot be sent is as good as lost. */
static void
ask(struct sl_stun_query *q, uint64_t now_us, sl_stun_send_fn send, void *arg)
{
	uint8_t packet[SL_STUN_HEADER_BYTES];

	sl_stun_request_build(packet, q->id);
	if (send(arg, &q->servers[q->server], packet, sizeof(packet)) != 0)
		q->error = "request cannot be sent";
	q->next_us = now_us + ((uint64_t)SL_STUN_RTO_US << q->sends);
	q->sends++;
}

/* The next server with an address, or the end. */
static void
next_server(struct sl_stun_query *q, uint64_t now_us, sl_stun_send_fn send, void *arg)
{
	while (q->tried < q->server_count) {
		q->server = (q->first + q->tried++) % q->server_count;
		if (q->servers[q->server].kind == SL_ADDR_NONE)
			continue;
		q->sends = 0;
		q->since_us = now_us;
		q->server_until_us = now_us + SL_STUN_SERVER_US;
		sl_random(q->id, sizeof(q->id));
		ask(q, now_us, send, arg);
		return;
	}
	q->state = SL_STUN_FAILED;
	if (q->error == NULL)
		q->error = q->server_count ? "no server has an address" : "no servers";
}

void
sl_stun_query_begin(struct sl_stun_query *q, const struct sl_addr *servers, unsigned count, unsigned first,
	uint64_t now_us, sl_stun_send_fn send, void *arg)
{
	memset(q, 0, sizeof(*q));
	q->server_count = count < SL_STUN_SERVERS_MAX ? count : SL_STUN_SERVERS_MAX;
	memcpy(q->servers, servers, q->server_count * sizeof(*servers));
	q->first = q->server_count ? first % q->server_count : 0;
	q->state = SL_STUN_ASKING;
	next_server(q, now_us, send, arg);
}

bool
sl_stun_query_packet(struct sl_stun_query *q, const struct sl_addr *from, const uint8_t *packet, size_t len,
	uint64_t now_us, sl_stun_send_fn send, void *arg)
{
	struct sl_addr mapped;
	unsigned code;
	int rc;

	if (q->state != SL_STUN_ASKING || !sl_addr_equal(from, &q->servers[q->server]))
		return false;
	rc = sl_stun_response_parse(packet, len, q->id, &mapped, &code);
	if (rc == -EINVAL || rc == -EPROTO || rc == -ENOMSG)
		return false; /* somebody's; the server's own may still come */
	if (rc != 0) {
		q->error = rc == -EREMOTEIO ? "server answers with an error" : "answer without an address";
		next_server(q, now_us, send, arg);
		return true;
	}
	q->mapped = mapped;
	q->answered_us = q->sends == 1 ? now_us - q->since_us : 0;
	q->error = NULL;
	q->state = SL_STUN_DONE;
	return true;
}

uint64_t
sl_stun_query_tick(struct sl_stun_query *q, uint64_t now_us, sl_stun_send_fn send, void *arg)
{
	if (q->state != SL_STUN_ASKING)
		return UINT64_MAX;
	if (now_us >= q->server_until_us) {
		if (q->error == NULL || q->sends)
			q->error = "no answer";
		next_server(q, now_us, send, arg);
	} else if (now_us >= q->next_us && q->sends < SL_STUN_SENDS) {
		ask(q, now_us, send, arg);
	}
	if (q->state != SL_STUN_ASKING)
		return UINT64_MAX;
	return q->sends < SL_STUN_SENDS && q->next_us < q->server_until_us ? q->next_us : q->server_until_us;
}
