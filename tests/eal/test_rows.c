/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transit, one frame a row: what is sent, and what verdict it must get. A row takes a good datagram frame from peer `a`
 * to peer `b`, changes something, and names the one reason for which it must be dropped. All rows run for each kind of
 * link they apply to and with each AEAD backend. Afterwards every verdict there is must have been reached by name, in this
 * file or test_limits.c's part of the same executable.
 */
#include "rows.h"

bool rows_reached[SL_VERDICT_COUNT];
unsigned rows_kinds;

#define UDP4 (1u << SL_ADDR_UDP4)
#define UDP6 (1u << SL_ADDR_UDP6)
#define ETH (1u << SL_ADDR_ETH)
#define UDP (UDP4 | UDP6)
#define ALL (UDP | ETH)

/* What a row is made of; the frame is built from it in this order: message, packet, frame. */
struct bench {
	struct rig *r;
	struct rig_peer *a, *b, *no_session, *no_path;
	uint8_t msg[RIG_FRAME_MAX], packet[RIG_FRAME_MAX], frame[RIG_FRAME_MAX];
	size_t msg_len, packet_len, frame_len;
	uint64_t counter;
	uint8_t flags;
	bool sealed; /* packet is done: do not seal msg */
};

struct row {
	const char *what;
	unsigned kinds;
	enum sl_verdict verdict;
	void (*message)(struct bench *t); /* changes msg, counter or flags; or writes packet and sets sealed */
	void (*packet)(struct bench *t);
	void (*frame)(struct bench *t);
};

/* --- messages --- */
static void
set_dest(struct bench *t, const struct sl_node_addr *dest)
{
	memcpy(t->msg + SL_DATAGRAM_DEST, dest, 16);
}
static void
to_us(struct bench *t)
{
	set_dest(t, sl_identity_addr(t->r->identity));
}
static void
to_us_ttl0(struct bench *t)
{
	to_us(t);
	t->msg[SL_DATAGRAM_TTL] = 0;
}
static void
to_unknown(struct bench *t)
{
	sl_test_rand_bytes(t->msg + SL_DATAGRAM_DEST, 16);
}
static void
to_unknown_ttl1(struct bench *t)
{
	to_unknown(t);
	t->msg[SL_DATAGRAM_TTL] = 1;
}
static void
to_no_session(struct bench *t)
{
	set_dest(t, &t->no_session->addr);
}
static void
to_no_path(struct bench *t)
{
	set_dest(t, &t->no_path->addr);
}
static void
ttl0(struct bench *t)
{
	t->msg[SL_DATAGRAM_TTL] = 0;
}
static void
ttl1(struct bench *t)
{
	t->msg[SL_DATAGRAM_TTL] = 1;
}
static void
ttl2(struct bench *t)
{
	t->msg[SL_DATAGRAM_TTL] = 2;
}
static void
empty_payload(struct bench *t)
{
	t->msg_len = SL_DATAGRAM_HEADER_BYTES;
}
static void
datagram_short(struct bench *t)
{
	t->msg_len = SL_DATAGRAM_HEADER_BYTES - 1;
}
static void
datagram_type_only(struct bench *t)
{
	t->msg_len = 1;
}
static void
heartbeat(struct bench *t)
{
	t->msg[0] = SL_MSG_HEARTBEAT;
	t->msg_len = 1;
}
static void
unknown_type(struct bench *t)
{
	t->msg[0] = 0x77;
}
static void
disconnect(struct bench *t)
{
	t->msg[0] = SL_MSG_DISCONNECT;
	t->msg[1] = 0;
	t->msg_len = 2;
}
static void
too_big(struct bench *t)
{
	/* To a UDP peer: one byte over the transport's MTU, though the frame it came in fits its own link. */
	t->msg_len = RIG_UDP_MTU + 1 - SL_OVERHEAD_BYTES;
	memset(t->msg + 60, 0x5a, t->msg_len - 60);
}
static void
inner_short(struct bench *t)
{
	t->packet_len = rig_seal_raw(t->packet, t->a, t->counter, 0, "four", 4);
	t->sealed = true;
}
static void
inner_empty(struct bench *t)
{
	t->packet_len = rig_seal_raw(t->packet, t->a, t->counter, 0, "", 0);
	t->sealed = true;
}
static void
replayed(struct bench *t)
{
	t->counter = 0; /* the first frame of the bench went out with it */
}
static void
nat_probe(struct bench *t)
{
	memcpy(t->packet, "NPTC-and-more-bytes", 20);
	t->packet_len = 20;
	t->sealed = true;
}
static void
msg1(struct bench *t)
{
	memset(t->packet, 0x33, SL_MSG1_PACKET_BYTES);
	memcpy(t->packet, (uint8_t[4]){1, 0, 110, 0}, 4);
	t->packet_len = SL_MSG1_PACKET_BYTES;
	t->sealed = true;
}
static void
msg1_flags(struct bench *t)
{
	msg1(t);
	t->packet[1] = 1;
}
static void
msg2_long(struct bench *t)
{
	memset(t->packet, 0, SL_MSG2_PACKET_BYTES + 1);
	memcpy(t->packet, (uint8_t[4]){2, 0, 65, 0}, 4);
	t->packet_len = SL_MSG2_PACKET_BYTES + 1;
	t->sealed = true;
}
static void
fmp_three_bytes(struct bench *t)
{
	t->packet_len = 3;
	t->sealed = true;
}

/* --- packets --- */
static void
fmp_31_bytes(struct bench *t)
{
	t->packet_len = 31;
}
static void
fmp_version(struct bench *t)
{
	t->packet[0] = 0x10;
}
static void
fmp_phase(struct bench *t)
{
	t->packet[0] = 3;
}
static void
fmp_length(struct bench *t)
{
	t->packet[2]++;
}
static void
fmp_cut(struct bench *t)
{
	t->packet_len--;
}
static void
index_unknown(struct bench *t)
{
	t->packet[7] ^= 0x80; /* above the slot: the slot is taken, by another index */
}
static void
index_free_slot(struct bench *t)
{
	t->packet[5] ^= 0x04;
}
static void
tag_flipped(struct bench *t)
{
	t->packet[t->packet_len - 1] ^= 1;
}
static void
text_flipped(struct bench *t)
{
	t->packet[SL_HEADER_BYTES] ^= 0x80;
}
static void
flags_flipped(struct bench *t)
{
	t->packet[1] ^= SL_FLAG_CE; /* associated data */
}
static void
counter_flipped(struct bench *t)
{
	t->packet[9] ^= 1;
}

/* --- frames --- */
static uint8_t *
ip_of(struct bench *t)
{
	return t->frame + 14;
}
static uint8_t *
udp_of(struct bench *t)
{
	return t->frame + rig_outer(t->a) - 8;
}
static void
ethertype(struct bench *t)
{
	t->frame[12] = 0x88;
	t->frame[13] = 0xcc;
}
static void
vlan_tag(struct bench *t)
{
	memmove(t->frame + 16, t->frame + 12, t->frame_len - 12);
	memcpy(t->frame + 12, (uint8_t[4]){0x81, 0, 0, 7}, 4);
	t->frame_len += 4;
}
static void
other_mac(struct bench *t)
{
	t->frame[5] ^= 1;
}
static void
other_ip(struct bench *t)
{
	ip_of(t)[t->a->kind == SL_ADDR_UDP4 ? 19 : 39] ^= 0x40;
	if (t->a->kind == SL_ADDR_UDP4)
		rig_fix_ip4(t->frame);
	rig_fix_udp(t->frame);
}
static void
multicast_source(struct bench *t)
{
	ip_of(t)[t->a->kind == SL_ADDR_UDP4 ? 12 : 8] = t->a->kind == SL_ADDR_UDP4 ? 224 : 0xff;
	if (t->a->kind == SL_ADDR_UDP4)
		rig_fix_ip4(t->frame);
	rig_fix_udp(t->frame);
}
static void
cut(struct bench *t)
{
	t->frame_len -= 5;
}
static void
cut_in_ip(struct bench *t)
{
	t->frame_len = 14 + 12;
}
static void
ip4_checksum(struct bench *t)
{
	ip_of(t)[10] ^= 1;
}
static void
ip4_ihl(struct bench *t)
{
	ip_of(t)[0] = 0x44;
}
static void
ip6_version(struct bench *t)
{
	ip_of(t)[0] = 0x50;
}
static void
ip4_fragment(struct bench *t)
{
	ip_of(t)[6] |= 0x20;
	rig_fix_ip4(t->frame);
}
static void
ip4_later_fragment(struct bench *t)
{
	ip_of(t)[7] = 9;
	rig_fix_ip4(t->frame);
}
static void
grow16(uint8_t *p, unsigned n)
{
	n += (unsigned)p[0] << 8 | p[1];
	p[0] = (uint8_t)(n >> 8);
	p[1] = (uint8_t)n;
}
static void
ip6_insert(struct bench *t, uint8_t kind)
{
	memmove(t->frame + 62, t->frame + 54, t->frame_len - 54);
	memset(t->frame + 54, 0, 8);
	t->frame[54] = 17;
	ip_of(t)[6] = kind;
	grow16(ip_of(t) + 4, 8);
	t->frame_len += 8;
}
static void
ip6_fragment(struct bench *t)
{
	ip6_insert(t, 44);
}
static void
ip6_mobility(struct bench *t)
{
	ip6_insert(t, 135);
}
static void
ip6_destination_options(struct bench *t)
{
	ip6_insert(t, 60);
	t->frame[56] = 1; /* PadN of 4 */
	t->frame[57] = 4;
}
static void
ip4_options(struct bench *t)
{
	memmove(t->frame + 38, t->frame + 34, t->frame_len - 34);
	memset(t->frame + 34, 1, 4); /* no-operation */
	ip_of(t)[0] = 0x46;
	grow16(ip_of(t) + 2, 4);
	t->frame_len += 4;
	rig_fix_ip4(t->frame);
}
static void
tcp(struct bench *t)
{
	ip_of(t)[t->a->kind == SL_ADDR_UDP4 ? 9 : 6] = 6;
	if (t->a->kind == SL_ADDR_UDP4)
		rig_fix_ip4(t->frame);
}
static void
icmp_reply(struct bench *t)
{
	/* An echo reply: we never ask. */
	ip_of(t)[t->a->kind == SL_ADDR_UDP4 ? 9 : 6] = t->a->kind == SL_ADDR_UDP4 ? 1 : 58;
	udp_of(t)[0] = t->a->kind == SL_ADDR_UDP4 ? 0 : 129;
	udp_of(t)[1] = 0;
	if (t->a->kind == SL_ADDR_UDP4)
		rig_fix_ip4(t->frame);
}
static void
udp_port(struct bench *t)
{
	udp_of(t)[3] ^= 1;
	rig_fix_udp(t->frame);
}
static void
udp_length(struct bench *t)
{
	udp_of(t)[5]--;
}
static void
udp_checksum(struct bench *t)
{
	udp_of(t)[7] ^= 1;
}
static void
udp_checksum_none(struct bench *t)
{
	udp_of(t)[6] = udp_of(t)[7] = 0;
}
static void
eth_padding(struct bench *t)
{
	memset(t->frame + t->frame_len, 0xee, 30);
	t->frame_len += 30;
}
static void
eth_length(struct bench *t)
{
	sl_put16(t->frame + 15, (uint16_t)(sl_get16(t->frame + 15) + 1));
}
static void
eth_type(struct bench *t)
{
	t->frame[14] = 9;
}
static void
beacon(struct bench *t)
{
	memset(t->frame, 0xff, 6);
	t->frame[14] = t->frame[15] = 1;
	memcpy(t->frame + 16, t->b->xonly, 32);
	t->frame_len = 60;
}
static void
arp(struct bench *t)
{
	memset(t->frame, 0xff, 6);
	memcpy(t->frame + 12, (uint8_t[10]){8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, 10);
	memcpy(t->frame + 22, t->a->mac, 6);
	memcpy(t->frame + 28, t->a->ip, 4);
	memset(t->frame + 32, 0, 6);
	memcpy(t->frame + 38, (uint8_t[4]){192, 0, 2, 1}, 4);
	t->frame_len = 60;
}

static const struct row rows[] = {
	{"a datagram", ALL, SL_FORWARD},
	{"a datagram without payload", ALL, SL_FORWARD, empty_payload},
	{"TTL 2 is the last that goes on", ALL, SL_FORWARD, ttl2},
	{"Ethernet padding behind the packet", ALL, SL_FORWARD, .frame = eth_padding},
	{"IPv4 options", UDP4, SL_FORWARD, .frame = ip4_options},
	{"IPv6 destination options", UDP6, SL_FORWARD, .frame = ip6_destination_options},
	{"IPv4 without UDP checksum", UDP4, SL_FORWARD, .frame = udp_checksum_none},
	{"heartbeat", ALL, SL_LOCAL, heartbeat},
	{"a link message", ALL, SL_PUNT, disconnect},
	{"a datagram for us", ALL, SL_PUNT, to_us},
	{"a datagram for us, whatever its TTL", ALL, SL_PUNT, to_us_ttl0},
	{"a datagram nobody knows the way of", ALL, SL_PUNT, to_unknown},
	{"the same with its TTL used up", ALL, SL_DROP_TTL, to_unknown_ttl1},
	{"a first handshake message", ALL, SL_PUNT, msg1},
	{"ARP", UDP4, SL_PUNT, .frame = arp},
	{"a beacon", ETH, SL_PUNT, .frame = beacon},
	{"an EtherType of others", ALL, SL_DROP_ETHERTYPE, .frame = ethertype},
	{"a tag on an untagged port", ALL, SL_DROP_VLAN, .frame = vlan_tag},
	{"another's MAC", ALL, SL_DROP_NOT_OURS, .frame = other_mac},
	{"another's IP", UDP, SL_DROP_NOT_OURS, .frame = other_ip},
	{"a multicast source", UDP, SL_DROP_SOURCE, .frame = multicast_source},
	{"cut", UDP, SL_DROP_TRUNCATED, .frame = cut},
	{"cut inside the IP header", UDP, SL_DROP_TRUNCATED, .frame = cut_in_ip},
	{"IPv4 header checksum", UDP4, SL_DROP_IP_HEADER, .frame = ip4_checksum},
	{"IPv4 header length", UDP4, SL_DROP_IP_HEADER, .frame = ip4_ihl},
	{"IPv6 version", UDP6, SL_DROP_IP_HEADER, .frame = ip6_version},
	{"first fragment", UDP4, SL_DROP_FRAGMENT, .frame = ip4_fragment},
	{"later fragment", UDP4, SL_DROP_FRAGMENT, .frame = ip4_later_fragment},
	{"IPv6 fragment", UDP6, SL_DROP_FRAGMENT, .frame = ip6_fragment},
	{"unknown extension header", UDP6, SL_DROP_EXTENSION, .frame = ip6_mobility},
	{"TCP", UDP, SL_DROP_IP_PROTOCOL, .frame = tcp},
	{"ICMP nobody answers", UDP, SL_DROP_ICMP, .frame = icmp_reply},
	{"a port nobody listens on", UDP, SL_DROP_UDP_PORT, .frame = udp_port},
	{"UDP length", UDP, SL_DROP_UDP_LENGTH, .frame = udp_length},
	{"UDP checksum", UDP, SL_DROP_UDP_CHECKSUM, .frame = udp_checksum},
	{"IPv6 without UDP checksum", UDP6, SL_DROP_UDP_CHECKSUM, .frame = udp_checksum_none},
	{"Ethernet length field beyond the frame", ETH, SL_DROP_ETH_LENGTH, .frame = eth_length},
	{"Ethernet frame type", ETH, SL_DROP_ETH_TYPE, .frame = eth_type},
	{"FMP under 4 bytes", ALL, SL_DROP_FMP_SHORT, fmp_three_bytes},
	{"established under 32 bytes", ALL, SL_DROP_FMP_SHORT, .packet = fmp_31_bytes},
	{"FMP version", ALL, SL_DROP_FMP_VERSION, .packet = fmp_version},
	{"FMP phase", ALL, SL_DROP_FMP_PHASE, .packet = fmp_phase},
	{"FMP length field", ALL, SL_DROP_FMP_LENGTH, .packet = fmp_length},
	{"FMP packet a byte short", ALL, SL_DROP_FMP_LENGTH, .packet = fmp_cut},
	{"second handshake message a byte long", ALL, SL_DROP_FMP_LENGTH, msg2_long},
	{"flags in a handshake", ALL, SL_DROP_FMP_FLAGS, msg1_flags},
	{"NAT probe", UDP, SL_DROP_NPT, nat_probe},
	{"an index of that slot's past", ALL, SL_DROP_UNKNOWN_INDEX, .packet = index_unknown},
	{"an index of an empty slot", ALL, SL_DROP_UNKNOWN_INDEX, .packet = index_free_slot},
	{"a counter seen before", ALL, SL_DROP_REPLAY, replayed},
	{"tag", ALL, SL_DROP_AUTH, .packet = tag_flipped},
	{"text", ALL, SL_DROP_AUTH, .packet = text_flipped},
	{"flags changed on the way", ALL, SL_DROP_AUTH, .packet = flags_flipped},
	{"counter changed on the way", ALL, SL_DROP_AUTH, .packet = counter_flipped},
	{"plaintext of 4 bytes", ALL, SL_DROP_INNER_SHORT, inner_short},
	{"no plaintext at all", ALL, SL_DROP_INNER_SHORT, inner_empty},
	{"unknown message type", ALL, SL_DROP_MESSAGE_UNKNOWN, unknown_type},
	{"datagram of 35 bytes", ALL, SL_DROP_DATAGRAM_SHORT, datagram_short},
	{"datagram of a type byte", ALL, SL_DROP_DATAGRAM_SHORT, datagram_type_only},
	{"TTL 1", ALL, SL_DROP_TTL, ttl1},
	{"TTL 0", ALL, SL_DROP_TTL, ttl0},
	{"a peer without a session", ALL, SL_DROP_NO_SESSION, to_no_session},
	{"a peer that is not resolved", ALL, SL_DROP_NO_PATH, to_no_path},
	{"a byte over the outgoing link's MTU", ETH, SL_DROP_TOO_BIG, too_big},
};

static void
bench_build(struct bench *t, const struct row *row)
{
	uint8_t payload[200];

	sl_test_rand_bytes(payload, sizeof(payload));
	payload[0] = 3; /* SessionMsg3: shows no coordinates */
	t->flags = 0;
	t->sealed = false;
	t->counter = t->a->counter;
	t->msg_len = rig_datagram(t->msg, 64, 65535, &t->a->addr, &t->b->addr, payload, 100 + sl_test_rand() % 100);
	if (row->message)
		row->message(t);
	if (!t->sealed)
		t->packet_len = rig_seal(t->packet, t->a, t->counter, t->flags, 1, t->msg, t->msg_len);
	if (t->counter == t->a->counter)
		t->a->counter++;
	if (row->packet)
		row->packet(t);
	t->frame_len = rig_wrap(t->r, t->a, t->frame, t->packet, t->packet_len);
	if (row->frame)
		row->frame(t);
}

/* The forwarded frame: as sent, but for TTL, path MTU and what belongs to the hop. */
static void
expect_forwarded(struct bench *t)
{
	uint8_t out[RIG_FRAME_MAX], msg[RIG_FRAME_MAX], flags = 0xff;
	const size_t len = rig_receive(t->r, t->b->port, out);
	uint32_t ts_ms = 0;

	SL_ASSERT(len != 0);
	SL_EXPECT_EQ(rig_open(t->r, t->b, out, len, msg, &flags, &ts_ms), t->msg_len);
	t->msg[SL_DATAGRAM_TTL]--;
	t->msg[SL_DATAGRAM_PATH_MTU] = (uint8_t)RIG_UDP_MTU;
	t->msg[SL_DATAGRAM_PATH_MTU + 1] = (uint8_t)(RIG_UDP_MTU >> 8);
	SL_EXPECT_MEM(msg, t->msg, t->msg_len);
	SL_EXPECT_EQ(flags, 0);
	SL_EXPECT_LT(ts_ms, 60000);
}

static void
run_row(struct bench *t, const struct row *row)
{
	uint64_t before[SL_VERDICT_COUNT];
	uint8_t out[RIG_FRAME_MAX];

	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		before[v] = rig_verdict(t->r, (enum sl_verdict)v);
	bench_build(t, row);
	rig_inject(t->r, t->a->port, t->frame, t->frame_len);
	rig_poll(t->r, false);
	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++) {
		const uint64_t got = rig_verdict(t->r, (enum sl_verdict)v) - before[v], want = v == row->verdict;

		SL_EXPECT_MSG(got == want, "%s, by kind %u, %s: wanted %s, but %s counts %d", row->what, t->a->kind,
			t->r->config.aead->name, sl_verdict_name(row->verdict), sl_verdict_name((enum sl_verdict)v), (int)got);
		rows_reached[v] |= got > 0;
	}
	rig_expect_balance(t->r);
	if (row->verdict == SL_FORWARD)
		expect_forwarded(t);
	else
		rig_poll(t->r, true); /* control takes its own */
	while (row->frame != arp && rig_receive(t->r, 0, out))
		sl_test_fail(__FILE__, __LINE__, "%s: an answer to a frame that deserves none", row->what);
	while (rig_receive(t->r, 0, out) || rig_receive(t->r, 1, out))
		;
}

static void
run_rows(uint8_t kind, const struct sl_aead_backend *aead)
{
	const struct rig_config config = {.aead = aead};
	const struct row plain = {"the first frame", ALL, SL_FORWARD};
	struct bench *t = calloc(1, sizeof(*t));

	t->r = rig_create(&config);
	SL_ASSERT(t->r);
	t->a = rig_peer_add(t->r, kind, 0, 0);
	t->b = rig_peer_add(t->r, kind == SL_ADDR_UDP6 ? SL_ADDR_UDP6 : SL_ADDR_UDP4, 1, 0);
	t->no_session = rig_peer_add(t->r, SL_ADDR_ETH, 1, 0);
	__atomic_store_n(&sl_session_table_view(t->r->table)->peers[t->no_session->id].tx, NULL, __ATOMIC_RELEASE);
	t->no_path = rig_peer_add_bare(t->r, SL_ADDR_UDP4, 1, 0, false);
	run_row(t, &plain);
	for (unsigned i = 0; i < RTE_DIM(rows); i++)
		if (rows[i].kinds & 1u << kind)
			run_row(t, &rows[i]);
	rig_destroy(t->r);
	free(t);
}

static void
run_all(uint8_t kind)
{
	unsigned used = 0;

	for (unsigned i = 0; sl_aead_backends()[i]; i++) {
		if (!sl_aead_backends()[i]->usable())
			continue;
		run_rows(kind, sl_aead_backends()[i]);
		used++;
	}
	SL_EXPECT_GT(used, 0);
	rows_kinds++;
}

SL_TEST(rows, udp4)
{
	run_all(SL_ADDR_UDP4);
}
SL_TEST(rows, udp6)
{
	run_all(SL_ADDR_UDP6);
}
SL_TEST(rows, ethernet)
{
	run_all(SL_ADDR_ETH);
}
