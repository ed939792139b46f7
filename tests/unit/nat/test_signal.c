/* SPDX-License-Identifier: BSD-3-Clause */
/* Offers, answers, punch packets and the plan of whom to punch: form, then meaning. */
#include "sl_nat_signal.h"
#include "sl_test.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define NPUB_A "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m"
#define NPUB_B "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le"
#define OFFER                                                                                                          \
	"{\"type\":\"offer\",\"sessionId\":\"sess-1\",\"issuedAt\":1700000000000,\"expiresAt\":1700000060000,"         \
	"\"nonce\":\"offer-1\",\"senderNpub\":\"" NPUB_A "\",\"recipientNpub\":\"" NPUB_B "\","                        \
	"\"reflexiveAddress\":{\"protocol\":\"udp\",\"ip\":\"203.0.113.10\",\"port\":61234},\"localAddresses\":[],"    \
	"\"stunServer\":\"stun:192.0.2.1:3478\"}"
#define ANSWER                                                                                                         \
	"{\"type\":\"answer\",\"sessionId\":\"sess-1\",\"issuedAt\":1700000000500,\"expiresAt\":1700000060500,"        \
	"\"nonce\":\"answer-1\",\"senderNpub\":\"" NPUB_B "\",\"recipientNpub\":\"" NPUB_A "\","                       \
	"\"inReplyTo\":\"offer-1\",\"accepted\":true,\"reflexiveAddress\":null,"                                       \
	"\"localAddresses\":[{\"protocol\":\"udp\",\"ip\":\"192.168.1.2\",\"port\":5000},"                             \
	"{\"protocol\":\"udp\",\"ip\":\"fd00::1\",\"port\":5000}],\"stunServer\":null,"                                \
	"\"punch\":{\"startAtMs\":1700000002000,\"intervalMs\":200,\"durationMs\":10000},\"reason\":null,"             \
	"\"offerReceivedAt\":1700000000400}"

static uint8_t key_a[SL_XONLY_BYTES], key_b[SL_XONLY_BYTES];

static struct sl_nat_signal
parsed(const char *text)
{
	struct sl_nat_signal s;

	SL_EXPECT_EQ(sl_npub_parse(key_a, NPUB_A), 0);
	SL_EXPECT_EQ(sl_npub_parse(key_b, NPUB_B), 0);
	SL_EXPECT_STR(sl_nat_signal_error_name(sl_nat_signal_parse(&s, text, strlen(text))), "ok");
	return s;
}

static struct sl_addr
addr(const char *text)
{
	struct sl_addr a;

	SL_EXPECT_MSG(sl_addr_parse_udp(&a, text) == 0, "%s", text);
	return a;
}

/* What is written is what was read, byte for byte: the order of the keys is the reference's. */
SL_TEST(signal, round_trip)
{
	char text[SL_NAT_SIGNAL_TEXT_MAX];
	struct sl_nat_signal s = parsed(OFFER);

	SL_EXPECT_EQ(s.kind, SL_NAT_SIGNAL_OFFER);
	SL_EXPECT_STR(s.session_id, "sess-1");
	SL_EXPECT_STR(s.stun_server, "stun:192.0.2.1:3478");
	SL_EXPECT_EQ(sl_nat_signal_format(text, sizeof(text), &s), 0);
	SL_EXPECT_STR(text, OFFER);
	s = parsed(ANSWER);
	SL_EXPECT(s.accepted && s.has_punch && s.has_received);
	SL_EXPECT_EQ(s.punch_start_ms, 1700000002000);
	SL_EXPECT_EQ(s.side.local_count, 2);
	SL_EXPECT_EQ(sl_nat_signal_format(text, sizeof(text), &s), 0);
	SL_EXPECT_STR(text, ANSWER);
	SL_EXPECT_EQ(sl_nat_signal_format(text, 100, &s), -EMSGSIZE);
}

/* One member of a sound text taken out or replaced; value NULL takes it out. */
static enum sl_nat_signal_error
with(const char *base, const char *key, const char *value)
{
	json_t *o = json_loads(base, 0, NULL), *v = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
	struct sl_nat_signal s;
	enum sl_nat_signal_error e;
	char *text;

	if (v)
		json_object_set_new(o, key, v);
	else
		json_object_del(o, key);
	text = json_dumps(o, JSON_COMPACT);
	e = sl_nat_signal_parse(&s, text, strlen(text));
	free(text);
	json_decref(o);
	return e;
}

SL_TEST(signal, fields)
{
	static const char *const required[] = {"type", "sessionId", "issuedAt", "expiresAt", "nonce", "senderNpub",
		"recipientNpub", "localAddresses"};
	static const char *const optional[] = {"reflexiveAddress", "stunServer"};
	static const char *const answer_optional[] = {"punch", "reason", "offerReceivedAt"};
	static const char *const values[] = {"17", "-1", "1.5", "\"x\"", "true", "{}", "[3]", "[{}]", "1e40",
		"99999999999999999"};

	for (unsigned i = 0; i < 8; i++) {
		SL_EXPECT_EQ(with(OFFER, required[i], NULL), SL_NAT_SIGNAL_MALFORMED);
		SL_EXPECT_EQ(with(OFFER, required[i], "null"), SL_NAT_SIGNAL_MALFORMED);
	}
	for (unsigned i = 0; i < 2; i++) {
		SL_EXPECT_EQ(with(OFFER, optional[i], NULL), SL_NAT_SIGNAL_OK);
		SL_EXPECT_EQ(with(OFFER, optional[i], "null"), SL_NAT_SIGNAL_OK);
	}
	for (unsigned i = 0; i < 3; i++) {
		SL_EXPECT_EQ(with(ANSWER, answer_optional[i], NULL), SL_NAT_SIGNAL_OK);
		SL_EXPECT_EQ(with(ANSWER, answer_optional[i], "null"), SL_NAT_SIGNAL_OK);
	}
	SL_EXPECT_EQ(with(ANSWER, "inReplyTo", NULL), SL_NAT_SIGNAL_MALFORMED);
	SL_EXPECT_EQ(with(ANSWER, "accepted", NULL), SL_NAT_SIGNAL_MALFORMED);
	SL_EXPECT_EQ(with(OFFER, "type", "\"hello\""), SL_NAT_SIGNAL_TYPE);
	SL_EXPECT_EQ(with(OFFER, "more", "{\"a\":[1]}"), SL_NAT_SIGNAL_OK); /* unknown keys are ignored */
	/* No value of another sort is taken anywhere, and none of them does harm. */
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (i != 0) /* a number it is */
			SL_EXPECT_MSG(with(OFFER, "issuedAt", values[i]) == SL_NAT_SIGNAL_MALFORMED, "issuedAt %s", values[i]);
		if (values[i][0] != '"')
			SL_EXPECT_MSG(with(OFFER, "nonce", values[i]) == SL_NAT_SIGNAL_MALFORMED, "nonce %s", values[i]);
		SL_EXPECT_MSG(with(OFFER, "senderNpub", values[i]) == SL_NAT_SIGNAL_MALFORMED, "senderNpub %s", values[i]);
		SL_EXPECT_MSG(with(OFFER, "reflexiveAddress", values[i]) == SL_NAT_SIGNAL_MALFORMED, "reflexive %s", values[i]);
		SL_EXPECT_MSG(with(OFFER, "localAddresses", values[i]) == SL_NAT_SIGNAL_MALFORMED, "local %s", values[i]);
		SL_EXPECT_MSG(with(ANSWER, "punch", values[i]) == SL_NAT_SIGNAL_MALFORMED || !strcmp(values[i], "{}"), "punch %s",
			values[i]);
	}
	SL_EXPECT_EQ(with(ANSWER, "punch", "{}"), SL_NAT_SIGNAL_MALFORMED);
	SL_EXPECT_EQ(with(OFFER, "nonce", "\"\""), SL_NAT_SIGNAL_MALFORMED);
	SL_EXPECT_EQ(with(OFFER, "reflexiveAddress", "{\"protocol\":\"udp\",\"ip\":\"1.2.3.4\",\"port\":70000}"),
		SL_NAT_SIGNAL_MALFORMED);
}

SL_TEST(signal, addresses)
{
	struct sl_nat_signal s;
	json_t *o = json_loads(OFFER, 0, NULL), *list = json_array();
	char *text;

	/* Not readable or not UDP: left out; a mesh of thirty: the first eight. */
	json_array_append_new(list, json_pack("{s:s,s:s,s:i}", "protocol", "udp", "ip", "nonsense", "port", 1));
	json_array_append_new(list, json_pack("{s:s,s:s,s:i}", "protocol", "tcp", "ip", "192.0.2.9", "port", 1));
	for (int i = 0; i < 30; i++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:i}", "protocol", "udp", "ip", "192.0.2.1", "port", i + 1));
	json_object_set_new(o, "localAddresses", list);
	text = json_dumps(o, 0);
	SL_EXPECT_EQ(sl_nat_signal_parse(&s, text, strlen(text)), SL_NAT_SIGNAL_OK);
	SL_EXPECT_EQ(s.side.local_count, SL_PUNCH_CANDIDATES_MAX);
	SL_EXPECT_EQ(s.side.local[7].udp_port, 8);
	free(text);
	json_decref(o);
}

SL_TEST(signal, not_json)
{
	static const char *const bad[] = {"", "{", "[]", "null", "17", "{\"type\":\"offer\",\"type\":\"offer\"}",
		OFFER "x", "{\"type\":\"off\\u0000er\"}"};
	struct sl_nat_signal s;
	char *deep, *exact;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SL_EXPECT_MSG(sl_nat_signal_parse(&s, bad[i], strlen(bad[i])) != SL_NAT_SIGNAL_OK, "%s", bad[i]);
	deep = malloc(SL_NAT_SIGNAL_TEXT_MAX + 1);
	memset(deep, '[', SL_NAT_SIGNAL_TEXT_MAX + 1);
	SL_EXPECT_EQ(sl_nat_signal_parse(&s, deep, SL_NAT_SIGNAL_TEXT_MAX), SL_NAT_SIGNAL_MALFORMED);
	SL_EXPECT_EQ(sl_nat_signal_parse(&s, deep, SL_NAT_SIGNAL_TEXT_MAX + 1), SL_NAT_SIGNAL_MALFORMED);
	free(deep);
	for (size_t len = 0; len < strlen(OFFER); len++) {
		exact = malloc(len ? len : 1);
		memcpy(exact, OFFER, len);
		SL_EXPECT_EQ(sl_nat_signal_parse(&s, exact, len), SL_NAT_SIGNAL_MALFORMED);
		free(exact);
	}
}

#define T0 1700000000000u
SL_TEST(signal, freshness)
{
	struct sl_nat_signal o = parsed(OFFER);

	/* Its own 60 s are shorter than our 120. */
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0, 120000), SL_NAT_SIGNAL_OK);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0 + 119999, 120000), SL_NAT_SIGNAL_OK);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0 + 120000, 120000), SL_NAT_SIGNAL_EXPIRED_OFFER);
	/* It cannot make our time longer. */
	o.expires_ms = T0 + 3600000;
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0 + 179999, 120000), SL_NAT_SIGNAL_OK);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0 + 180000, 120000), SL_NAT_SIGNAL_EXPIRED_OFFER);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0 - 60000, 120000), SL_NAT_SIGNAL_OK);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_b, T0 - 60001, 120000), SL_NAT_SIGNAL_FUTURE_OFFER);
	/* Freshness before identity. */
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_b, key_b, T0 + 180000, 120000), SL_NAT_SIGNAL_EXPIRED_OFFER);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_b, key_b, T0, 120000), SL_NAT_SIGNAL_IDENTITY);
	SL_EXPECT_EQ(sl_nat_signal_offer_check(&o, key_a, key_a, T0, 120000), SL_NAT_SIGNAL_IDENTITY);
}

SL_TEST(signal, answers)
{
	const struct sl_nat_signal o = parsed(OFFER), good = parsed(ANSWER);
	struct sl_nat_signal a = good;
	int64_t skew;

#define CHECK(now, want) SL_EXPECT_STR(sl_nat_signal_error_name(sl_nat_signal_answer_check(&o, &a, key_b, key_a, now, 120000)), want)
	CHECK(T0 + 1000, "ok");
	CHECK(T0 + 120000, "expired-offer-in-answer");
	CHECK(T0 - 60001, "future-dated-offer-in-answer");
	a.issued_ms = T0 + 61001;
	a.expires_ms = T0 + 181000;
	CHECK(T0 + 1000, "future-dated-answer");
	a.issued_ms = T0 - 120000;
	a.expires_ms = T0 - 59000;
	CHECK(T0 + 1000, "expired-answer");
	a = good;
	snprintf(a.session_id, sizeof(a.session_id), "sess-2");
	CHECK(T0 + 1000, "session-mismatch");
	a = good;
	snprintf(a.in_reply_to, sizeof(a.in_reply_to), "sess-1");
	CHECK(T0 + 1000, "session-mismatch");
	a = good;
	memcpy(a.sender, key_a, sizeof(a.sender));
	CHECK(T0 + 1000, "identity-mismatch");
	a = good;
	a.side.local_count = 0;
	CHECK(T0 + 1000, "missing-addresses");
	a.accepted = false;
	CHECK(T0 + 1000, "missing-rejection-reason");
	snprintf(a.reason, sizeof(a.reason), SL_NAT_SIGNAL_NO_ADDRESS);
	CHECK(T0 + 1000, "ok");
	a = o;
	CHECK(T0 + 1000, "unknown-type");
	SL_EXPECT_STR(sl_nat_signal_error_name(sl_nat_signal_answer_check(&o, &good, key_a, key_a, T0 + 1000, 120000)),
		"identity-mismatch");

	/* Offer out at 0, in at 400 by their clock, answer out at 500, in at 1000 by ours: ((400 - 0) + (500 - 1000)) / 2. */
	SL_EXPECT(sl_nat_signal_skew(&skew, &o, &good, T0 + 1000));
	SL_EXPECT_EQ(skew, -50);
	a = good;
	a.has_received = false;
	SL_EXPECT(!sl_nat_signal_skew(&skew, &o, &a, T0 + 1000));
}

/* --- punch packets ------------------------------------------------------------------------------ */

SL_TEST(punch, packets)
{
	uint8_t want[SL_PUNCH_BYTES], got[SL_PUNCH_BYTES], hash[SL_PUNCH_HASH_BYTES];
	enum sl_punch_kind kind;
	const uint8_t *h;
	uint32_t sequence;

	sl_punch_hash(hash, "sess-1");
	sl_test_unhex(want, sizeof(want), "4e50544300000007abe633f3a47a2758174eabe9160daf36");
	sl_punch_build(got, SL_PUNCH_PROBE, 7, hash);
	SL_EXPECT_MEM(got, want, sizeof(want));
	sl_test_unhex(want, sizeof(want), "4e50544100000007abe633f3a47a2758174eabe9160daf36");
	sl_punch_build(got, SL_PUNCH_ACK, 7, hash);
	SL_EXPECT_MEM(got, want, sizeof(want));
	SL_EXPECT(sl_punch_parse(&kind, &sequence, &h, got, sizeof(got)));
	SL_EXPECT(kind == SL_PUNCH_ACK && sequence == 7 && memcmp(h, hash, sizeof(hash)) == 0);
	SL_EXPECT(!sl_punch_parse(&kind, &sequence, &h, got, sizeof(got) - 1));
	got[3] = 'B';
	SL_EXPECT(!sl_punch_parse(&kind, &sequence, &h, got, sizeof(got)));
}

/* Targets as text, in order, one space behind each. */
static void
plan(const struct sl_punch_side *ours, const struct sl_punch_side *theirs, const char *want, unsigned want_refused)
{
	struct sl_addr targets[SL_PUNCH_TARGETS_MAX];
	char got[SL_PUNCH_TARGETS_MAX * SL_ADDR_TEXT_SIZE] = "", one[SL_ADDR_TEXT_SIZE];
	unsigned refused, n = sl_punch_plan(targets, ours, theirs, &refused);

	for (unsigned i = 0; i < n; i++) {
		sl_addr_format(one, &targets[i]);
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", one);
	}
	SL_EXPECT_STR(got, want);
	SL_EXPECT_EQ(refused, want_refused);
}

SL_TEST(punch, plan)
{
	const struct sl_punch_side outside = {.reflexive = addr("203.0.113.1:1000")};
	const struct sl_punch_side both = {.reflexive = addr("203.0.113.1:1000"), .local = {addr("192.168.1.2:2121")},
		.local_count = 1};
	const struct sl_punch_side inside = {.local = {addr("192.168.1.2:2121")}, .local_count = 1};
	const struct sl_punch_side nothing = {.local_count = 0};
	struct sl_punch_side theirs = {.reflexive = addr("203.0.113.2:2000"),
		.local = {addr("192.168.1.9:2000"), addr("192.168.2.9:2000"), addr("198.51.100.9:2000")}, .local_count = 3};

	plan(&outside, &theirs, "203.0.113.2:2000 198.51.100.9:2000 ", 2);
	plan(&both, &theirs, "203.0.113.2:2000 192.168.1.9:2000 198.51.100.9:2000 ", 1);
	plan(&inside, &theirs, "192.168.1.9:2000 203.0.113.2:2000 ", 1);
	plan(&nothing, &theirs, "", 2);
	plan(&outside, &nothing, "", 0);
	/* Of the pairs the first eight, doubles included. */
	for (unsigned i = 0; i < 8; i++) {
		theirs.local[i] = addr("198.51.100.9:2000");
		theirs.local[i].udp_port = (uint16_t)(3000 + i);
	}
	theirs.local_count = 8;
	plan(&outside, &theirs, "203.0.113.2:2000 198.51.100.9:3000 198.51.100.9:3001 198.51.100.9:3002 198.51.100.9:3003 "
		"198.51.100.9:3004 198.51.100.9:3005 198.51.100.9:3006 ", 0);
}

SL_TEST(punch, addresses_that_lead_nowhere)
{
	static const char *const never[] = {"0.0.0.0:1", "127.0.0.1:1", "169.254.1.1:1", "224.0.0.1:1", "239.1.1.1:1",
		"255.255.255.255:1", "100.64.0.1:1", "100.127.255.255:1", "[::]:1", "[::1]:1", "[fe80::1]:1", "[febf::1]:1",
		"[ff02::1]:1"};
	static const char *const fine[] = {"100.63.255.255:1", "100.128.0.1:1", "10.0.0.1:1", "172.16.0.1:1", "198.51.100.1:1",
		"[2001:db8::1]:1", "[fd00::1]:1", "[fec0::1]:1"};
	struct sl_punch_side ours = {.reflexive = addr("203.0.113.1:1000")}, theirs = {.local_count = 0};
	struct sl_addr a;

	for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		a = addr(never[i]);
		SL_EXPECT_MSG(!sl_punch_addr_usable(&a), "%s", never[i]);
	}
	for (unsigned i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		a = addr(fine[i]);
		SL_EXPECT_MSG(sl_punch_addr_usable(&a), "%s", fine[i]);
	}
	a = addr("198.51.100.1:1");
	a.udp_port = 0;
	SL_EXPECT(!sl_punch_addr_usable(&a));
	/* A mapped address is looked at as what it is. */
	theirs.reflexive = addr("[::ffff:127.0.0.1]:1000");
	plan(&ours, &theirs, "", 1);
	theirs.reflexive = addr("[::ffff:203.0.113.7]:1000");
	plan(&ours, &theirs, "203.0.113.7:1000 ", 0);
	/* A private reflexive address is the STUN server's word, not a candidate's; and ours, when private, opens its /24. */
	theirs.reflexive = addr("10.1.1.1:1000");
	plan(&ours, &theirs, "10.1.1.1:1000 ", 0);
	ours.reflexive = addr("10.2.2.2:1000");
	theirs.local[theirs.local_count++] = addr("10.2.2.3:1000");
	plan(&ours, &theirs, "10.1.1.1:1000 10.2.2.3:1000 ", 0);
}

struct log {
	unsigned probes, acks;
	uint64_t now, first_probe, last_probe;
	uint32_t last_sequence;
	struct sl_addr to;
	int rc;
};

static int
send(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct log *l = arg;
	enum sl_punch_kind kind;
	const uint8_t *hash;
	uint32_t sequence;

	SL_EXPECT(sl_punch_parse(&kind, &sequence, &hash, packet, len) && len == SL_PUNCH_BYTES);
	if (kind == SL_PUNCH_PROBE) {
		if (!l->probes)
			l->first_probe = l->now;
		l->last_probe = l->now;
		l->probes++;
	} else {
		l->acks++;
	}
	l->last_sequence = sequence;
	l->to = *to;
	return l->rc;
}

static const struct sl_punch_times usual = {2000, 200, 10000, 10000};

SL_TEST(punch, times)
{
	struct sl_addr targets[2] = {addr("203.0.113.1:1"), addr("203.0.113.2:2")};
	struct sl_punch p;
	struct log l = {.now = 1000000};

	sl_punch_begin(&p, "sess-1", targets, 2, &usual, l.now);
	for (;;) {
		uint64_t due = sl_punch_tick(&p, l.now, send, &l);

		if (due == UINT64_MAX)
			break;
		SL_EXPECT_GT(due, l.now);
		l.now = due;
	}
	/* 2 s later, and until the 10 s of the whole are over: 40 rounds of two. */
	SL_EXPECT_EQ(p.state, SL_PUNCH_TIMED_OUT);
	SL_EXPECT_EQ(l.now, 11000000);
	SL_EXPECT_EQ(l.first_probe, 3000000);
	SL_EXPECT_EQ(l.last_probe, 10800000);
	SL_EXPECT_EQ(l.probes, 80);
	SL_EXPECT_EQ(l.last_sequence, 39);
	/* Late calls make no salvo, and the interval has a floor. */
	sl_punch_begin(&p, "sess-1", targets, 1, &(struct sl_punch_times){0, 1, 1000, 1000}, 0);
	l = (struct log){.now = 0};
	(void)sl_punch_tick(&p, 500000, send, &l);
	SL_EXPECT_EQ(l.probes, 1);
	SL_EXPECT_EQ(sl_punch_tick(&p, 500000, send, &l), 520000);
	SL_EXPECT_EQ(l.probes, 1);
}

SL_TEST(punch, ends_and_goes_on_answering)
{
	struct sl_addr target = addr("203.0.113.1:1"), other = addr("203.0.113.1:99");
	uint8_t hash[SL_PUNCH_HASH_BYTES], packet[SL_PUNCH_BYTES + 4] = {0};
	struct sl_punch p;
	struct log l = {.now = 0};

	sl_punch_begin(&p, "sess-1", &target, 1, &usual, 0);
	sl_punch_hash(hash, "sess-2");
	sl_punch_build(packet, SL_PUNCH_PROBE, 5, hash);
	SL_EXPECT(!sl_punch_packet(&p, &other, packet, SL_PUNCH_BYTES, 10, send, &l)); /* another session's */
	sl_punch_hash(hash, "sess-1");
	sl_punch_build(packet, SL_PUNCH_PROBE, 5, hash);
	SL_EXPECT(!sl_punch_packet(&p, &other, packet, SL_PUNCH_BYTES - 1, 10, send, &l));
	SL_EXPECT_EQ(p.state, SL_PUNCH_RUNNING);
	/* Before our own start, from a port nobody has named, with bytes behind it: that is where the peer is. */
	SL_EXPECT(sl_punch_packet(&p, &other, packet, sizeof(packet), 10, send, &l));
	SL_EXPECT_EQ(p.state, SL_PUNCH_DONE);
	SL_EXPECT(sl_addr_equal(&p.remote, &other) && sl_addr_equal(&l.to, &other));
	SL_EXPECT(l.acks == 1 && l.last_sequence == 5);
	SL_EXPECT_EQ(sl_punch_tick(&p, 2000000, send, &l), 12000000);
	SL_EXPECT_EQ(l.probes, 0);
	/* The acknowledgement was lost: the peer asks again and is answered, as long as it may. */
	SL_EXPECT(sl_punch_packet(&p, &target, packet, SL_PUNCH_BYTES, 11900000, send, &l));
	SL_EXPECT_EQ(l.acks, 2);
	SL_EXPECT(sl_addr_equal(&p.remote, &other));
	SL_EXPECT(sl_punch_packet(&p, &target, packet, SL_PUNCH_BYTES, 12000000, send, &l));
	SL_EXPECT_EQ(l.acks, 2);
	SL_EXPECT_EQ(sl_punch_tick(&p, 12000000, send, &l), UINT64_MAX);
	/* An acknowledgement ends it too and is not answered. */
	sl_punch_begin(&p, "sess-1", &target, 1, &usual, 0);
	sl_punch_build(packet, SL_PUNCH_ACK, 5, hash);
	SL_EXPECT(sl_punch_packet(&p, &target, packet, SL_PUNCH_BYTES, 10, send, &l));
	SL_EXPECT(p.state == SL_PUNCH_DONE && l.acks == 2);
}
