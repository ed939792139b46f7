/* SPDX-License-Identifier: BSD-3-Clause */
/* Outer packets, the table of messages, datagrams, reports. The routing messages are in wire_routing.c. */
#include "sl_wire.h"
#include <errno.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "sl_get32 and its like read host order: this wire is little endian"
#endif

void
sl_msg1_build(uint8_t packet[SL_MSG1_PACKET_BYTES], uint32_t sender_idx,
	const uint8_t noise[SL_NOISE_MSG1_BYTES])
{
	packet[0] = SL_PHASE_MSG1;
	packet[1] = 0;
	sl_put16(packet + 2, SL_MSG1_PACKET_BYTES - SL_PREFIX_BYTES);
	sl_put32(packet + 4, sender_idx);
	memcpy(packet + 8, noise, SL_NOISE_MSG1_BYTES);
}

void
sl_msg2_build(uint8_t packet[SL_MSG2_PACKET_BYTES], uint32_t sender_idx, uint32_t receiver_idx,
	const uint8_t noise[SL_NOISE_MSG2_BYTES])
{
	packet[0] = SL_PHASE_MSG2;
	packet[1] = 0;
	sl_put16(packet + 2, SL_MSG2_PACKET_BYTES - SL_PREFIX_BYTES);
	sl_put32(packet + 4, sender_idx);
	sl_put32(packet + 8, receiver_idx);
	memcpy(packet + 12, noise, SL_NOISE_MSG2_BYTES);
}

const struct sl_msg_info sl_msg_table[] = {
	{SL_MSG_DATAGRAM, "SessionDatagram", SL_DATAGRAM_HEADER_BYTES - 1, false},
	{SL_MSG_SENDER_REPORT, "SenderReport", SL_SENDER_REPORT_BYTES - 1, false},
	{SL_MSG_RECEIVER_REPORT, "ReceiverReport", SL_RECEIVER_REPORT_BYTES - 1, false},
	{SL_MSG_TREE_ANNOUNCE, "TreeAnnounce", SL_TREE_FIXED_BYTES + SL_TREE_ENTRY_BYTES - 1,
		false},
	{SL_MSG_FILTER_ANNOUNCE, "FilterAnnounce", SL_FILTER_MSG_BYTES - 1, true},
	{SL_MSG_LOOKUP_REQUEST, "LookupRequest",
		SL_LOOKUP_REQUEST_FIXED_BYTES + SL_NODE_ADDR_BYTES - 1, false},
	{SL_MSG_LOOKUP_RESPONSE, "LookupResponse",
		SL_LOOKUP_RESPONSE_FIXED_BYTES + SL_NODE_ADDR_BYTES - 1, false},
	{SL_MSG_DISCONNECT, "Disconnect", 1, false},
	{SL_MSG_HEARTBEAT, "Heartbeat", 0, false},
};
const unsigned sl_msg_table_count = sizeof(sl_msg_table) / sizeof(sl_msg_table[0]);

const struct sl_msg_info *
sl_msg_info(uint8_t type)
{
	for (unsigned i = 0; i < sl_msg_table_count; i++)
		if (sl_msg_table[i].type == type)
			return &sl_msg_table[i];
	return NULL;
}

const char *
sl_disconnect_name(uint8_t reason)
{
	switch (reason) {
	case SL_DISCONNECT_SHUTDOWN:
		return "shutdown";
	case SL_DISCONNECT_RESTART:
		return "restart";
	case SL_DISCONNECT_PROTOCOL_ERROR:
		return "protocol error";
	case SL_DISCONNECT_TRANSPORT_FAILURE:
		return "transport failure";
	case SL_DISCONNECT_RESOURCE_EXHAUSTION:
		return "resource exhaustion";
	case SL_DISCONNECT_SECURITY_VIOLATION:
		return "security violation";
	case SL_DISCONNECT_CONFIGURATION_CHANGE:
		return "configuration change";
	case SL_DISCONNECT_TIMEOUT:
		return "timeout";
	default:
		return "other";
	}
}

void
sl_datagram_build(uint8_t msg[SL_DATAGRAM_HEADER_BYTES], uint8_t ttl, uint16_t path_mtu,
	const struct sl_node_addr *src, const struct sl_node_addr *dest)
{
	msg[0] = SL_MSG_DATAGRAM;
	msg[SL_DATAGRAM_TTL] = ttl;
	sl_put16(msg + SL_DATAGRAM_PATH_MTU, path_mtu);
	memcpy(msg + SL_DATAGRAM_SRC, src->bytes, SL_NODE_ADDR_BYTES);
	memcpy(msg + SL_DATAGRAM_DEST, dest->bytes, SL_NODE_ADDR_BYTES);
}

void
sl_sender_report_build(uint8_t msg[SL_SENDER_REPORT_BYTES], const struct sl_sender_report *r)
{
	sl_put32(msg, SL_MSG_SENDER_REPORT); /* the type and three zero bytes */
	sl_put64(msg + 4, r->first_counter);
	sl_put64(msg + 12, r->last_counter);
	sl_put32(msg + 20, r->first_ts_ms);
	sl_put32(msg + 24, r->last_ts_ms);
	sl_put32(msg + 28, r->interval_bytes);
	sl_put64(msg + 32, r->total_frames);
	sl_put64(msg + 40, r->total_bytes);
}

int
sl_sender_report_parse(struct sl_sender_report *r, const uint8_t *msg, size_t len)
{
	if (len < SL_SENDER_REPORT_BYTES)
		return -EBADMSG;
	if (msg[0] != SL_MSG_SENDER_REPORT)
		return -EINVAL;
	r->first_counter = sl_get64(msg + 4);
	r->last_counter = sl_get64(msg + 12);
	r->first_ts_ms = sl_get32(msg + 20);
	r->last_ts_ms = sl_get32(msg + 24);
	r->interval_bytes = sl_get32(msg + 28);
	r->total_frames = sl_get64(msg + 32);
	r->total_bytes = sl_get64(msg + 40);
	return 0;
}

void
sl_receiver_report_build(uint8_t msg[SL_RECEIVER_REPORT_BYTES], const struct sl_receiver_report *r)
{
	sl_put32(msg, SL_MSG_RECEIVER_REPORT);
	sl_put64(msg + 4, r->highest_counter);
	sl_put64(msg + 12, r->total_frames);
	sl_put64(msg + 20, r->total_bytes);
	sl_put32(msg + 28, r->echo_ts_ms);
	sl_put16(msg + 32, r->dwell_ms);
	sl_put16(msg + 34, r->burst_longest);
	sl_put16(msg + 36, r->burst_mean_8_8);
	sl_put16(msg + 38, 0);
	sl_put32(msg + 40, r->jitter_us);
	sl_put32(msg + 44, r->ce_frames);
	sl_put32(msg + 48, (uint32_t)r->owd_trend_us_s);
	sl_put32(msg + 52, r->bursts);
	sl_put32(msg + 56, r->reordered);
	sl_put32(msg + 60, r->interval_frames);
	sl_put32(msg + 64, r->interval_bytes);
}

int
sl_receiver_report_parse(struct sl_receiver_report *r, const uint8_t *msg, size_t len)
{
	if (len < SL_RECEIVER_REPORT_BYTES)
		return -EBADMSG;
	if (msg[0] != SL_MSG_RECEIVER_REPORT)
		return -EINVAL;
	r->highest_counter = sl_get64(msg + 4);
	r->total_frames = sl_get64(msg + 12);
	r->total_bytes = sl_get64(msg + 20);
	r->echo_ts_ms = sl_get32(msg + 28);
	r->dwell_ms = sl_get16(msg + 32);
	r->burst_longest = sl_get16(msg + 34);
	r->burst_mean_8_8 = sl_get16(msg + 36);
	r->jitter_us = sl_get32(msg + 40);
	r->ce_frames = sl_get32(msg + 44);
	r->owd_trend_us_s = (int32_t)sl_get32(msg + 48);
	r->bursts = sl_get32(msg + 52);
	r->reordered = sl_get32(msg + 56);
	r->interval_frames = sl_get32(msg + 60);
	r->interval_bytes = sl_get32(msg + 64);
	return 0;
}
