/* SPDX-License-Identifier: BSD-3-Clause */
/* TreeAnnounce, FilterAnnounce, lookups: routing facts, sections 2, 6.1, 11. */
#include "sl_wire.h"
#include "../crypto/sl_hash.h"
#include <errno.h>

/* Offsets from the type byte. */
enum {
	TREE_VERSION = 1,
	TREE_SEQUENCE = 2,
	TREE_TIMESTAMP = 10,
	TREE_PARENT = 18,
	TREE_COUNT = 34,
	TREE_ENTRIES = 36
};
#define TREE_VERSION_1 1

int
sl_tree_announce_parse(struct sl_tree_announce *a, const uint8_t *msg, size_t len)
{
	if (len < SL_TREE_FIXED_BYTES)
		return -EBADMSG;
	if (msg[0] != SL_MSG_TREE_ANNOUNCE)
		return -EINVAL;
	if (msg[TREE_VERSION] != TREE_VERSION_1)
		return -EPROTONOSUPPORT;
	a->entries = sl_get16(msg + TREE_COUNT);
	if (a->entries == 0)
		return -EINVAL;
	if ((len - SL_TREE_FIXED_BYTES) / SL_TREE_ENTRY_BYTES < a->entries)
		return -EBADMSG;
	a->sequence = sl_get64(msg + TREE_SEQUENCE);
	a->timestamp_s = sl_get64(msg + TREE_TIMESTAMP);
	memcpy(a->parent.bytes, msg + TREE_PARENT, SL_NODE_ADDR_BYTES);
	a->entry = msg + TREE_ENTRIES;
	a->signature = a->entry + (size_t)a->entries * SL_TREE_ENTRY_BYTES;
	return 0;
}

void
sl_tree_preimage(uint8_t out[SL_TREE_PREIMAGE_BYTES], const struct sl_node_addr *sender,
	const struct sl_node_addr *parent, uint64_t sequence, uint64_t timestamp_s)
{
	memcpy(out, sender->bytes, SL_NODE_ADDR_BYTES);
	memcpy(out + 16, parent->bytes, SL_NODE_ADDR_BYTES);
	sl_put64(out + 32, sequence);
	sl_put64(out + 40, timestamp_s);
}

size_t
sl_tree_announce_build(uint8_t *msg, size_t size, const struct sl_tree_announce *a)
{
	size_t entry_bytes = (size_t)a->entries * SL_TREE_ENTRY_BYTES;

	if (size < SL_TREE_FIXED_BYTES || size - SL_TREE_FIXED_BYTES < entry_bytes)
		return 0;
	msg[0] = SL_MSG_TREE_ANNOUNCE;
	msg[TREE_VERSION] = TREE_VERSION_1;
	sl_put64(msg + TREE_SEQUENCE, a->sequence);
	sl_put64(msg + TREE_TIMESTAMP, a->timestamp_s);
	memcpy(msg + TREE_PARENT, a->parent.bytes, SL_NODE_ADDR_BYTES);
	sl_put16(msg + TREE_COUNT, a->entries);
	if (entry_bytes)
		memcpy(msg + TREE_ENTRIES, a->entry, entry_bytes);
	memcpy(msg + TREE_ENTRIES + entry_bytes, a->signature, SL_SIGNATURE_BYTES);
	return SL_TREE_FIXED_BYTES + entry_bytes;
}

enum { FILTER_SEQUENCE = 1, FILTER_HASHES = 9, FILTER_CLASS = 10, FILTER_BITS = 11 };
#define FILTER_CLASS_1024 1 /* size = 512 << class; the only one of version 1 */

int
sl_filter_announce_parse(struct sl_filter_announce *f, const uint8_t *msg, size_t len)
{
	if (len < FILTER_BITS)
		return -EBADMSG;
	if (msg[0] != SL_MSG_FILTER_ANNOUNCE)
		return -EINVAL;
	if (msg[FILTER_CLASS] != FILTER_CLASS_1024)
		return -EPROTONOSUPPORT;
	if (len != SL_FILTER_MSG_BYTES)
		return -EBADMSG;
	if (msg[FILTER_HASHES] == 0)
		return -EINVAL;
	f->sequence = sl_get64(msg + FILTER_SEQUENCE);
	f->hash_count = msg[FILTER_HASHES];
	f->bits = msg + FILTER_BITS;
	return 0;
}

void
sl_filter_announce_build(
	uint8_t msg[SL_FILTER_MSG_BYTES], uint64_t sequence, const uint8_t bits[SL_FILTER_BYTES])
{
	msg[0] = SL_MSG_FILTER_ANNOUNCE;
	sl_put64(msg + FILTER_SEQUENCE, sequence);
	msg[FILTER_HASHES] = SL_FILTER_HASHES;
	msg[FILTER_CLASS] = FILTER_CLASS_1024;
	memcpy(msg + FILTER_BITS, bits, SL_FILTER_BYTES);
}

enum {
	REQ_ID = 1,
	REQ_TARGET = 9,
	REQ_ORIGIN = 25,
	REQ_TTL = 41,
	REQ_MIN_MTU = 42,
	REQ_COUNT = 44,
	REQ_COORDS = 46
};
_Static_assert(REQ_COORDS == SL_LOOKUP_REQUEST_FIXED_BYTES, "");

int
sl_lookup_request_parse(struct sl_lookup_request *r, const uint8_t *msg, size_t len)
{
	if (len < SL_LOOKUP_REQUEST_FIXED_BYTES)
		return -EBADMSG;
	if (msg[0] != SL_MSG_LOOKUP_REQUEST)
		return -EINVAL;
	r->coords_count = sl_get16(msg + REQ_COUNT);
	if (r->coords_count == 0)
		return -EINVAL;
	if ((len - SL_LOOKUP_REQUEST_FIXED_BYTES) / SL_NODE_ADDR_BYTES < r->coords_count)
		return -EBADMSG;
	r->request_id = sl_get64(msg + REQ_ID);
	memcpy(r->target.bytes, msg + REQ_TARGET, SL_NODE_ADDR_BYTES);
	memcpy(r->origin.bytes, msg + REQ_ORIGIN, SL_NODE_ADDR_BYTES);
	r->ttl = msg[REQ_TTL];
	r->min_mtu = sl_get16(msg + REQ_MIN_MTU);
	r->coords = msg + REQ_COORDS;
	return 0;
}

size_t
sl_lookup_request_build(uint8_t *msg, size_t size, const struct sl_lookup_request *r)
{
	size_t coords_bytes = (size_t)r->coords_count * SL_NODE_ADDR_BYTES;

	if (size < SL_LOOKUP_REQUEST_FIXED_BYTES ||
		size - SL_LOOKUP_REQUEST_FIXED_BYTES < coords_bytes)
		return 0;
	msg[0] = SL_MSG_LOOKUP_REQUEST;
	sl_put64(msg + REQ_ID, r->request_id);
	memcpy(msg + REQ_TARGET, r->target.bytes, SL_NODE_ADDR_BYTES);
	memcpy(msg + REQ_ORIGIN, r->origin.bytes, SL_NODE_ADDR_BYTES);
	msg[REQ_TTL] = r->ttl;
	sl_put16(msg + REQ_MIN_MTU, r->min_mtu);
	sl_put16(msg + REQ_COUNT, r->coords_count);
	if (coords_bytes)
		memcpy(msg + REQ_COORDS, r->coords, coords_bytes);
	return SL_LOOKUP_REQUEST_FIXED_BYTES + coords_bytes;
}

enum { RESP_ID = 1, RESP_TARGET = 9, RESP_PATH_MTU = 25, RESP_COUNT = 27, RESP_COORDS = 29 };
_Static_assert(RESP_COORDS + SL_SIGNATURE_BYTES == SL_LOOKUP_RESPONSE_FIXED_BYTES, "");

int
sl_lookup_response_parse(struct sl_lookup_response *r, const uint8_t *msg, size_t len)
{
	if (len < SL_LOOKUP_RESPONSE_FIXED_BYTES)
		return -EBADMSG;
	if (msg[0] != SL_MSG_LOOKUP_RESPONSE)
		return -EINVAL;
	r->coords_count = sl_get16(msg + RESP_COUNT);
	if (r->coords_count == 0)
		return -EINVAL;
	if ((len - SL_LOOKUP_RESPONSE_FIXED_BYTES) / SL_NODE_ADDR_BYTES < r->coords_count)
		return -EBADMSG;
	r->request_id = sl_get64(msg + RESP_ID);
	memcpy(r->target.bytes, msg + RESP_TARGET, SL_NODE_ADDR_BYTES);
	r->path_mtu = sl_get16(msg + RESP_PATH_MTU);
	r->coords = msg + RESP_COORDS;
	r->proof = r->coords + (size_t)r->coords_count * SL_NODE_ADDR_BYTES;
	return 0;
}

size_t
sl_lookup_response_build(uint8_t *msg, size_t size, const struct sl_lookup_response *r)
{
	size_t coords_bytes = (size_t)r->coords_count * SL_NODE_ADDR_BYTES;

	if (size < SL_LOOKUP_RESPONSE_FIXED_BYTES ||
		size - SL_LOOKUP_RESPONSE_FIXED_BYTES < coords_bytes)
		return 0;
	msg[0] = SL_MSG_LOOKUP_RESPONSE;
	sl_put64(msg + RESP_ID, r->request_id);
	memcpy(msg + RESP_TARGET, r->target.bytes, SL_NODE_ADDR_BYTES);
	sl_put16(msg + RESP_PATH_MTU, r->path_mtu);
	sl_put16(msg + RESP_COUNT, r->coords_count);
	if (coords_bytes)
		memcpy(msg + RESP_COORDS, r->coords, coords_bytes);
	memcpy(msg + RESP_COORDS + coords_bytes, r->proof, SL_SIGNATURE_BYTES);
	return SL_LOOKUP_RESPONSE_FIXED_BYTES + coords_bytes;
}

void
sl_lookup_proof_digest(uint8_t digest[32], const struct sl_lookup_response *r)
{
	uint8_t head[26];

	sl_put64(head, r->request_id);
	memcpy(head + 8, r->target.bytes, SL_NODE_ADDR_BYTES);
	sl_put16(head + 24, r->coords_count); /* hashed too, whatever the documents say */
	sl_sha256_2(digest, head, sizeof(head), r->coords,
		(size_t)r->coords_count * SL_NODE_ADDR_BYTES);
}
