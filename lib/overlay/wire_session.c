/* SPDX-License-Identifier: BSD-3-Clause */
/* What a relay reads and writes of session payloads: coordinates in passing, error signals. Routing facts, 9.5, 10. */
#include "sl_wire.h"
#include <errno.h>

#define SESSION_PREFIX_BYTES 4
#define SESSION_PHASE_SETUP 1
#define SESSION_PHASE_ACK 2
#define SESSION_FLAG_CP 0x01 /* coordinates present */
#define SESSION_FLAG_U 0x04  /* unencrypted: a signal */
#define DATA_HEADER_BYTES 12
#define DATA_MIN_BYTES 28 /* header and tag */

/* count (2), count * 16 bytes. Moves *at past the list; false when the payload ends before it. */
static bool
coords_take(uint16_t *count, const uint8_t **coords, const uint8_t *payload, size_t len, size_t *at)
{
	size_t left = len - *at; /* every caller has *at <= len */

	if (left < 2)
		return false;
	*count = sl_get16(payload + *at);
	if ((left - 2) / SL_NODE_ADDR_BYTES < *count)
		return false;
	*coords = payload + *at + 2;
	*at += 2 + (size_t)*count * SL_NODE_ADDR_BYTES;
	return true;
}

static bool
coords_of_setup(struct sl_coords_seen *seen, const uint8_t *payload, size_t len)
{
	size_t at = SESSION_PREFIX_BYTES + 1; /* prefix, flags */

	if (len < at)
		return false;
	if (!coords_take(&seen->src_count, &seen->src, payload, len, &at) ||
		!coords_take(&seen->dest_count, &seen->dest, payload, len, &at))
		return false;
	if (seen->src_count == 0 || seen->dest_count == 0)
		return false;
	/* The handshake that follows. */
	return len - at >= 2 && len - at - 2 >= sl_get16(payload + at);
}

bool
sl_payload_coords(struct sl_coords_seen *seen, const uint8_t *payload, size_t len)
{
	struct sl_coords_seen found;
	size_t at = DATA_HEADER_BYTES;
	uint8_t phase;

	memset(seen, 0, sizeof(*seen));
	memset(&found, 0, sizeof(found));
	if (len < 2)
		return false;
	phase = payload[0] & 0x0f;
	if (phase == SESSION_PHASE_SETUP || phase == SESSION_PHASE_ACK) {
		if (!coords_of_setup(&found, payload, len))
			return false;
	} else {
		if (payload[0] != 0 ||
			(payload[1] & (SESSION_FLAG_CP | SESSION_FLAG_U)) != SESSION_FLAG_CP)
			return false;
		if (len < DATA_MIN_BYTES)
			return false;
		if (!coords_take(&found.src_count, &found.src, payload, len, &at) ||
			!coords_take(&found.dest_count, &found.dest, payload, len, &at))
			return false;
	}
	*seen = found;
	return seen->src_count != 0 || seen->dest_count != 0;
}

enum { SIGNAL_TYPE = 4, SIGNAL_DEST = 6, SIGNAL_REPORTER = 22, SIGNAL_TAIL = 38 };

size_t
sl_signal_build(uint8_t *payload, size_t size, const struct sl_signal *s)
{
	size_t len = SIGNAL_TAIL;
	size_t coords_bytes = (size_t)s->coords_count * SL_NODE_ADDR_BYTES;

	if (s->type == SL_SIGNAL_PATH_BROKEN)
		len += 2 + coords_bytes;
	else if (s->type == SL_SIGNAL_MTU_EXCEEDED)
		len += 2;
	else if (s->type != SL_SIGNAL_COORDS_REQUIRED)
		return 0;
	if (size < len || len - SESSION_PREFIX_BYTES > UINT16_MAX)
		return 0;
	payload[0] = 0;
	payload[1] = SESSION_FLAG_U;
	sl_put16(payload + 2, (uint16_t)(len - SESSION_PREFIX_BYTES));
	payload[SIGNAL_TYPE] = s->type;
	payload[SIGNAL_TYPE + 1] = 0;
	memcpy(payload + SIGNAL_DEST, s->dest.bytes, SL_NODE_ADDR_BYTES);
	memcpy(payload + SIGNAL_REPORTER, s->reporter.bytes, SL_NODE_ADDR_BYTES);
	if (s->type == SL_SIGNAL_PATH_BROKEN) {
		sl_put16(payload + SIGNAL_TAIL, s->coords_count);
		if (coords_bytes)
			memcpy(payload + SIGNAL_TAIL + 2, s->coords, coords_bytes);
	} else if (s->type == SL_SIGNAL_MTU_EXCEEDED) {
		sl_put16(payload + SIGNAL_TAIL, s->mtu);
	}
	return len;
}

int
sl_signal_parse(struct sl_signal *s, const uint8_t *payload, size_t len)
{
	size_t at = SIGNAL_TAIL;
	struct sl_signal out;

	if (len < SIGNAL_TAIL)
		return -EBADMSG;
	/* Neither the version nibble nor the length field is looked at, as in the reference. */
	if ((payload[0] & 0x0f) != 0 || !(payload[1] & SESSION_FLAG_U))
		return -EINVAL;
	memset(&out, 0, sizeof(out));
	out.type = payload[SIGNAL_TYPE];
	memcpy(out.dest.bytes, payload + SIGNAL_DEST, SL_NODE_ADDR_BYTES);
	memcpy(out.reporter.bytes, payload + SIGNAL_REPORTER, SL_NODE_ADDR_BYTES);
	switch (out.type) {
	case SL_SIGNAL_COORDS_REQUIRED:
		break;
	case SL_SIGNAL_PATH_BROKEN:
		if (!coords_take(&out.coords_count, &out.coords, payload, len, &at))
			return -EBADMSG;
		break;
	case SL_SIGNAL_MTU_EXCEEDED:
		if (len - at < 2)
			return -EBADMSG;
		out.mtu = sl_get16(payload + at);
		break;
	default:
		return -EPROTONOSUPPORT;
	}
	*s = out;
	return 0;
}
