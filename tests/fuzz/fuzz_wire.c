/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every parser of the link's wire; the first byte chooses which.
 *
 * Checked: what a parser takes, its builder gives back byte for byte (but for the bytes a row of sl_wire_cases says the
 * parser drops); a message that parses is as long as the table of messages demands; a builder never writes past the
 * room it was given; a packet's kind agrees with its header built anew; coordinates seen in passing lie inside the
 * payload and pass the cheap test first; metrics stay within their bounds whatever a peer reports.
 */
#include "fuzz.h"
#include "sl_mmp.h"
#include "sl_wire.h"
#include "sl_wire_round_trip.h"
#include <errno.h>

/* After the rows of sl_wire_cases. */
enum { CHOICE_PACKET = SL_WIRE_CASE_COUNT, CHOICE_COORDS, CHOICE_METRICS, CHOICES };

static void
message(const struct sl_wire_case *c, const uint8_t *in, size_t len)
{
	uint8_t *out = malloc(len + SL_FILTER_MSG_BYTES), *tight;
	const struct sl_msg_info *info = len ? sl_msg_info(in[0]) : NULL;
	bool is_signal = c == &sl_wire_cases[SL_WIRE_CASE_COUNT - 1];
	size_t out_len = 0, again_len = 0;
	int rc = c->round_trip(in, len, out, len + SL_FILTER_MSG_BYTES, &out_len);

	if (rc != 0) {
		FUZZ_CHECK(rc == -EBADMSG || rc == -EINVAL || rc == -EPROTONOSUPPORT);
		free(out);
		return;
	}
	if (is_signal &&
		out_len == 0) { /* more coordinates than the length field of a signal can say */
		FUZZ_CHECK(len - 4 > UINT16_MAX);
		free(out);
		return;
	}
	FUZZ_CHECK(sl_wire_case_same(c, in, len, out, out_len));
	FUZZ_CHECK(is_signal || (info && len - 1 >= info->min_body &&
					(!info->exact || len - 1 == info->min_body)));
	/* Once more into exactly the room it needs, from its own output. */
	tight = malloc(out_len);
	FUZZ_CHECK(c->round_trip(out, out_len, tight, out_len, &again_len) == 0);
	FUZZ_CHECK(again_len == out_len && memcmp(out, tight, out_len) == 0);
	free(tight);
	free(out);
}

static void
packet(const uint8_t *p, size_t len)
{
	uint8_t again[SL_MSG1_PACKET_BYTES];

	switch (sl_packet_classify(p, len)) {
	case SL_PACKET_ESTABLISHED:
		FUZZ_CHECK(len >= SL_ESTABLISHED_MIN_BYTES);
		sl_header_build(again, p[1], (uint16_t)(len - SL_ESTABLISHED_MIN_BYTES),
			sl_get32(p + 4), sl_get64(p + 8));
		FUZZ_CHECK(memcmp(again, p, SL_HEADER_BYTES) == 0);
		break;
	case SL_PACKET_MSG1:
		sl_msg1_build(again, sl_get32(p + 4), p + 8);
		FUZZ_CHECK(len == SL_MSG1_PACKET_BYTES && memcmp(again, p, len) == 0);
		break;
	case SL_PACKET_MSG2:
		sl_msg2_build(again, sl_get32(p + 4), sl_get32(p + 8), p + 12);
		FUZZ_CHECK(len == SL_MSG2_PACKET_BYTES && memcmp(again, p, len) == 0);
		break;
	case SL_PACKET_SHORT:
		FUZZ_CHECK(len < SL_ESTABLISHED_MIN_BYTES);
		break;
	case SL_PACKET_VERSION:
		FUZZ_CHECK(p[0] >= 0x10);
		break;
	case SL_PACKET_PHASE:
		FUZZ_CHECK(p[0] > SL_PHASE_MSG2);
		break;
	case SL_PACKET_LENGTH:
	case SL_PACKET_FLAGS:
		break;
	}
}

static void
inside(const uint8_t *payload, size_t len, const uint8_t *coords, uint16_t count)
{
	if (count)
		FUZZ_CHECK(coords >= payload &&
			   coords + (size_t)count * SL_NODE_ADDR_BYTES <= payload + len);
}

static void
coords(const uint8_t *payload, size_t len)
{
	struct sl_coords_seen seen;
	bool had = sl_payload_coords(&seen, payload, len);

	FUZZ_CHECK(had == (seen.src_count || seen.dest_count));
	FUZZ_CHECK(!had || sl_payload_may_carry_coords(payload, len));
	inside(payload, len, seen.src, seen.src_count);
	inside(payload, len, seen.dest, seen.dest_count);
}

/*
 * A run of reports from the peer between frames with any header, as a hostile peer may send them. The bound of the cost:
 * an echo lies back 2^31 ms at most, an ETX is 100 at most.
 */
static void
metrics(const uint8_t *p, size_t len)
{
	struct sl_mmp_metrics m;
	struct sl_mmp_snapshot snap = {0};
	struct sl_mmp_rx rx = {0};
	uint64_t now = 1000000;

	sl_mmp_metrics_init(&m);
	for (; len >= 13 + SL_RECEIVER_REPORT_BYTES;
		p += 13 + SL_RECEIVER_REPORT_BYTES, len -= 13 + SL_RECEIVER_REPORT_BYTES) {
		struct sl_receiver_report theirs, ours;

		sl_mmp_rx_frame(&rx, sl_get64(p), sl_get32(p + 8), 100,
			now += (uint64_t)p[12] << p[12] % 32, p[12]);
		if (sl_receiver_report_parse(&theirs, p + 13, SL_RECEIVER_REPORT_BYTES) == 0)
			(void)sl_mmp_on_report(&m, &theirs, now, now, 1ull << (p[12] % 64), &rx);
		FUZZ_CHECK(m.etx >= 1 && m.etx <= 100);
		FUZZ_CHECK(m.forward >= 0 && m.forward <= 1 && m.reverse >= 0 && m.reverse <= 1);
		FUZZ_CHECK(m.cost >= 1 && m.cost < 3e9);
		FUZZ_CHECK(!m.measured || (m.srtt_us >= 1 && m.rttvar_us >= 0));
		FUZZ_CHECK(m.goodput_bytes_per_s >= 0);
		FUZZ_CHECK(sl_mmp_sender_interval_us(&m) >= 200000 &&
			   sl_mmp_sender_interval_us(&m) <= 5000000);
		if (p[12] & 1)
			FUZZ_CHECK(sl_mmp_receiver_report(&ours, &snap, &rx, 0, 0, now) &&
				   ours.interval_frames >= 1);
		if (p[12] == 0x80)
			sl_mmp_metrics_cutover(&m);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned choice;

	if (size < 1)
		return 0;
	choice = data[0] % CHOICES;
	data++;
	size--;
	if (choice < SL_WIRE_CASE_COUNT)
		message(&sl_wire_cases[choice], data, size);
	else if (choice == CHOICE_PACKET)
		packet(data, size);
	else if (choice == CHOICE_COORDS)
		coords(data, size);
	else
		metrics(data, size);
	return 0;
}
