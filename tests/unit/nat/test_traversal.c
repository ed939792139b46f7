/* SPDX-License-Identifier: BSD-3-Clause */
/* Two and more nodes behind NATs, from the wish to the punched path, and every way that it can fail. */
#include "world.h"
#include <stdlib.h>

#define S 1000000ull

static const char *
state_of(const struct world *w, unsigned who, unsigned whom)
{
	struct sl_traversal_info info;

	return world_info(w, who, whom, &info) ? info.state : "(none)";
}

static const char *
error_of(const struct world *w, unsigned who, unsigned whom)
{
	struct sl_traversal_info info;

	return world_info(w, who, whom, &info) && info.last_error ? info.last_error : "(none)";
}

static struct world *
pair(enum nat a, enum nat b)
{
	struct world *w = world_create(2);

	world_node(w, 0, a, NULL);
	world_node(w, 1, b, NULL);
	return w;
}

static void
expect_open(const struct world *w, bool open)
{
	SL_EXPECT_EQ(w->node[0].punched, open);
	SL_EXPECT_EQ(w->node[1].punched, open);
	if (open) {
		SL_EXPECT_STR(state_of(w, 0, 1), "handshake");
		SL_EXPECT_STR(state_of(w, 1, 0), "handshake");
	}
}

SL_TEST(traversal, cone_to_cone)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);
	struct sl_traversal_observation o;
	struct sl_traversal_info info;
	char text[SL_ADDR_TEXT_SIZE];

	world_want(w, 0, 1);
	world_run(w, 5 * S);
	expect_open(w, true);
	sl_addr_format(text, &w->node[0].remote);
	SL_EXPECT_STR(text, "203.0.113.2:40000");
	sl_addr_format(text, &w->node[1].remote);
	SL_EXPECT_STR(text, "203.0.113.1:40000");
	/* Observed in 40 ms; offer 100 ms on its way; observed there; answer: each side sends 2 s after its own knowing. */
	SL_EXPECT_EQ(w->node[1].first_probe_us - S, 40000 + 100000 + 40000 + 2000000);
	SL_EXPECT(w->node[0].first_probe_us == 0 || w->node[0].first_probe_us - S >= 40000 + 100000 + 40000 + 100000 + 2000000);
	sl_traversal_observed(w->node[0].t, &o);
	SL_EXPECT_STR(o.nat_name, "cone");
	SL_EXPECT_STR(o.server, "stun:198.51.100.1:3478");
	/* The link comes up: all is quiet, and nothing stays behind. */
	world_link(w, 0, 1, true);
	world_run(w, 60 * S);
	SL_EXPECT(world_info(w, 0, 1, &info));
	SL_EXPECT_STR(info.state, "up");
	SL_EXPECT_EQ(info.failures, 0);
	SL_EXPECT(info.has_skew && info.skew_ms == 0);
	SL_EXPECT(!w->node[0].listening && !w->node[1].listening);
	SL_EXPECT_EQ(w->node[0].signals, 1);
	SL_EXPECT_EQ(w->node[1].signals, 1);
	world_destroy(w);
}

SL_TEST(traversal, which_pairs_are_open)
{
	static const struct {
		enum nat a, b;
		bool open;
	} rows[] = {{NAT_NONE, NAT_NONE, true}, {NAT_NONE, NAT_CONE, true}, {NAT_CONE, NAT_NONE, true},
		{NAT_NONE, NAT_SYMMETRIC, true}, {NAT_SYMMETRIC, NAT_NONE, true}, {NAT_FULL_CONE, NAT_FULL_CONE, true},
		{NAT_FULL_CONE, NAT_CONE, true}, {NAT_FULL_CONE, NAT_SYMMETRIC, true}, {NAT_SYMMETRIC, NAT_FULL_CONE, true},
		{NAT_CONE, NAT_SYMMETRIC, false}, {NAT_SYMMETRIC, NAT_CONE, false}, {NAT_SYMMETRIC, NAT_SYMMETRIC, false}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = pair(rows[i].a, rows[i].b);

		world_want(w, 0, 1);
		world_run(w, 15 * S);
		SL_EXPECT_MSG(w->node[0].punched == rows[i].open && w->node[1].punched == rows[i].open, "%u behind, %u behind: %u %u",
			rows[i].a, rows[i].b, w->node[0].punched, w->node[1].punched);
		world_destroy(w);
	}
}

/* A full cone is reached from a port that nobody has named: the path leads to where the probe came from. */
SL_TEST(traversal, remote_is_where_it_came_from)
{
	struct world *w = pair(NAT_FULL_CONE, NAT_SYMMETRIC);

	world_want(w, 0, 1);
	world_run(w, 10 * S);
	SL_EXPECT_EQ(w->node[0].punched, 1);
	SL_EXPECT_EQ(w->node[0].remote.u.ip4[3], 2);
	SL_EXPECT(w->node[0].remote.udp_port == w->node[1].port[w->node[1].mappings - 1]);
	world_destroy(w);
}

SL_TEST(traversal, loss)
{
	unsigned open = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct world *w = pair(NAT_CONE, NAT_CONE);

		w->loss_percent = 40;
		world_want(w, 0, 1);
		world_run(w, 25 * S);
		open += w->node[0].punched && w->node[1].punched;
		world_destroy(w);
	}
	/* All but those (few) in which a whole observation was lost, and the 10 s after it were not enough. */
	SL_EXPECT_GE(open, 17);
}

SL_TEST(traversal, symmetric_goes_by_the_mesh)
{
	static const unsigned delays[] = {10, 20, 40, 80};
	struct world *w = pair(NAT_SYMMETRIC, NAT_SYMMETRIC);
	struct sl_traversal_observation o;
	struct sl_traversal_info info;
	uint64_t failed_us = 0;

	world_want(w, 0, 1);
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned s = 0; s < 1200 && world_counter(w, 0, SL_TRAVERSAL_PUNCH_TIMEOUT) == i; s++)
			world_run(w, w->now_us - S + S / 10);
		SL_EXPECT(world_info(w, 0, 1, &info));
		SL_EXPECT_EQ(info.failures, i + 1);
		SL_EXPECT_STR(info.last_error, "no probe came through");
		failed_us = info.last_error_us;
		if (i < 4) {
			SL_EXPECT_STR(info.state, "waiting");
			SL_EXPECT_EQ(info.next_us - failed_us, delays[i] * S);
			SL_EXPECT_EQ(w->node[0].doubted, 0);
		}
	}
	/* The fifth: half an hour, and the advert is asked for. */
	SL_EXPECT_STR(info.state, "cooldown");
	SL_EXPECT_EQ(info.next_us - failed_us, 1800 * S);
	SL_EXPECT_EQ(w->node[0].doubted, 1);
	SL_EXPECT_EQ(info.attempts, 5);
	sl_traversal_observed(w->node[0].t, &o);
	SL_EXPECT_STR(o.nat_name, "symmetric");
	SL_EXPECT_EQ(w->node[0].punched + w->node[1].punched, 0);
	/* Nobody is flooded: 40 rounds a try to one address. */
	SL_EXPECT_LE(w->node[0].probes_out, 5 * 40);
	/* A new advert: at once. */
	sl_traversal_refreshed(w->node[0].t, world_key(w, 1), w->now_us);
	w->node[0].due_us = w->now_us;
	world_run(w, w->now_us - S + S / 10);
	SL_EXPECT_STR(state_of(w, 0, 1), "offered");
	world_destroy(w);
}

SL_TEST(traversal, refusal)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);

	w->node[1].no_stun = true;
	world_want(w, 0, 1);
	world_run(w, 10 * S);
	SL_EXPECT_STR(error_of(w, 0, 1), "refused by the peer: no-usable-addresses");
	SL_EXPECT_STR(state_of(w, 0, 1), "waiting");
	SL_EXPECT_EQ(world_counter(w, 1, SL_TRAVERSAL_REFUSED_TX), 1);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_REFUSED_RX), 1);
	SL_EXPECT_EQ(w->node[0].probes_out + w->node[1].probes_out, 0);
	world_destroy(w);
}

SL_TEST(traversal, nothing_known_of_ourselves)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);

	w->node[0].no_stun = true;
	world_want(w, 0, 1);
	world_run(w, 4 * S + S / 10); /* two servers, 2 s each */
	SL_EXPECT_STR(error_of(w, 0, 1), "no address of ours is known from outside (STUN: no answer)");
	SL_EXPECT_EQ(w->node[0].signals, 0);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_STUN_FAILED), 1);
	/* The server comes back: the next try goes through. */
	w->node[0].no_stun = false;
	world_run(w, 20 * S);
	expect_open(w, true);
	world_destroy(w);
}

SL_TEST(traversal, silence)
{
	struct world *w = world_create(2);
	struct sl_traversal_info info;

	world_node(w, 0, NAT_CONE, NULL); /* the other hears nothing */
	world_want(w, 0, 1);
	world_run(w, 119 * S);
	SL_EXPECT_STR(state_of(w, 0, 1), "offered");
	/* The NAT is kept awake meanwhile: a question each 15 s. */
	SL_EXPECT_GE(world_counter(w, 0, SL_TRAVERSAL_STUN_OK), 7);
	world_run(w, 121 * S);
	SL_EXPECT(world_info(w, 0, 1, &info));
	SL_EXPECT_STR(info.last_error, "no answer to the offer");
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_ANSWER_TIMEOUT), 1);
	SL_EXPECT(!w->node[0].listening);
	world_destroy(w);
}

SL_TEST(traversal, no_relay)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);

	w->node[0].deaf_relay = true;
	world_want(w, 0, 1);
	world_run(w, S);
	SL_EXPECT_STR(error_of(w, 0, 1), "no relay takes the offer");
	w->node[0].deaf_relay = false;
	w->node[1].deaf_relay = true;
	world_run(w, 12 * S);
	SL_EXPECT_STR(error_of(w, 1, 0), "no relay takes the answer");
	SL_EXPECT_STR(state_of(w, 1, 0), "idle");
	world_destroy(w);
}

SL_TEST(traversal, clocks)
{
	static const struct {
		int64_t ahead_ms;
		bool open;
		enum sl_nat_signal_error at_0, at_1;
	} rows[] = {{0, true, SL_NAT_SIGNAL_OK, SL_NAT_SIGNAL_OK}, {59000, true, SL_NAT_SIGNAL_OK, SL_NAT_SIGNAL_OK},
		{-59000, true, SL_NAT_SIGNAL_OK, SL_NAT_SIGNAL_OK},
		{61000, false, SL_NAT_SIGNAL_FUTURE_ANSWER, SL_NAT_SIGNAL_OK}, /* the offer is 61 s old there, which it may be */
		{-61000, false, SL_NAT_SIGNAL_OK, SL_NAT_SIGNAL_FUTURE_OFFER}, {181000, false, SL_NAT_SIGNAL_OK, SL_NAT_SIGNAL_EXPIRED_OFFER},
		{-181000, false, SL_NAT_SIGNAL_OK, SL_NAT_SIGNAL_FUTURE_OFFER}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = pair(NAT_CONE, NAT_CONE);
		struct sl_traversal_info info;

		w->node[1].clock_ms = rows[i].ahead_ms;
		world_want(w, 0, 1);
		world_run(w, 10 * S);
		SL_EXPECT_MSG(w->node[0].punched == rows[i].open, "%lld ms", (long long)rows[i].ahead_ms);
		SL_EXPECT_EQ(sl_traversal_signal_errors(w->node[0].t)[rows[i].at_0], rows[i].at_0 != SL_NAT_SIGNAL_OK);
		SL_EXPECT_EQ(sl_traversal_signal_errors(w->node[1].t)[rows[i].at_1], rows[i].at_1 != SL_NAT_SIGNAL_OK);
		if (rows[i].open) {
			SL_EXPECT(world_info(w, 0, 1, &info) && info.has_skew);
			SL_EXPECT_EQ(info.skew_ms, rows[i].ahead_ms);
		}
		world_destroy(w);
	}
}

/* Several relays carry the same signal; the second copy does nothing. */
SL_TEST(traversal, copies)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);

	w->signal_copies = 3;
	world_want(w, 0, 1);
	world_run(w, 10 * S);
	expect_open(w, true);
	SL_EXPECT_EQ(world_counter(w, 1, SL_TRAVERSAL_OFFER_REPLAY), 2);
	SL_EXPECT_EQ(world_counter(w, 1, SL_TRAVERSAL_ANSWER_TX), 1);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_ANSWER_UNKNOWN), 2);
	world_destroy(w);
}

static void
inject(struct world *w, unsigned to, unsigned author, const char *text)
{
	sl_traversal_signal(w->node[to].t, world_key(w, author), text, strlen(text), w->now_us,
		WORLD_START_MS + w->now_us / 1000);
	w->node[to].due_us = w->now_us;
}

SL_TEST(traversal, replayed_later)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);
	char offer[2048];

	w->node[1].deaf_relay = true; /* so that the offer stays the last signal */
	world_want(w, 0, 1);
	world_run(w, S / 10);
	memcpy(offer, w->last_signal, sizeof(offer));
	SL_EXPECT_EQ(sl_traversal_want(w->node[0].t, world_key(w, 1), NULL, false, w->now_us), 0);
	world_run(w, 30 * S);
	/* While it is fresh it is known; when it is not known any more it is not fresh. */
	for (unsigned s = 30; s < 400; s += 10) {
		world_run(w, s * S);
		inject(w, 1, 0, offer);
	}
	SL_EXPECT_EQ(world_counter(w, 1, SL_TRAVERSAL_ANSWER_TX) + world_counter(w, 1, SL_TRAVERSAL_SIGNAL_TX_FAILED), 1);
	SL_EXPECT_EQ(world_counter(w, 1, SL_TRAVERSAL_OFFER_REPLAY), 16);
	SL_EXPECT_EQ(sl_traversal_signal_errors(w->node[1].t)[SL_NAT_SIGNAL_EXPIRED_OFFER], 37 - 16);
	world_destroy(w);
}

SL_TEST(traversal, forged)
{
	struct world *w = world_create(3);
	char answer[2048], *at;

	for (unsigned i = 0; i < 3; i++)
		world_node(w, i, NAT_CONE, NULL);
	world_want(w, 0, 1);
	world_run(w, 220000); /* the answer is under way */
	memcpy(answer, w->last_signal, sizeof(answer));
	SL_ASSERT(strstr(answer, "\"answer\"") != NULL);
	SL_EXPECT_STR(state_of(w, 0, 1), "offered");
	/* The same text wrapped by another: not believed, and the waiting goes on. */
	inject(w, 0, 2, answer);
	SL_EXPECT_EQ(sl_traversal_signal_errors(w->node[0].t)[SL_NAT_SIGNAL_IDENTITY], 1);
	/* By the right one, but of another session. */
	at = strstr(answer, "sessionId");
	at[13] = at[13] == '7' ? '8' : '7';
	inject(w, 0, 1, answer);
	SL_EXPECT_EQ(sl_traversal_signal_errors(w->node[0].t)[SL_NAT_SIGNAL_SESSION], 1);
	/* An answer to what was never asked. */
	at = strstr(answer, "inReplyTo");
	at[14] = at[14] == '7' ? '8' : '7';
	inject(w, 0, 1, answer);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_ANSWER_UNKNOWN), 1);
	SL_EXPECT_STR(state_of(w, 0, 1), "offered");
	/* The true one arrives. */
	world_run(w, 10 * S);
	SL_EXPECT_EQ(w->node[0].punched, 1);
	SL_EXPECT_EQ(w->node[1].punched, 1);
	SL_EXPECT_EQ(w->node[2].packets_out, 0);
	world_destroy(w);
}

/* Punch packets of strangers, right in form: nothing follows. */
SL_TEST(traversal, stray_packets)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);
	struct sl_addr from = {.kind = SL_ADDR_UDP4, .transport = 3, .udp_port = 9, .u.ip4 = {203, 0, 113, 99}};
	uint8_t packet[SL_PUNCH_BYTES], hash[SL_PUNCH_HASH_BYTES] = {1};
	unsigned before;

	world_want(w, 0, 1);
	world_run(w, S);
	before = w->node[0].packets_out;
	sl_punch_build(packet, SL_PUNCH_PROBE, 1, hash);
	sl_traversal_packet(w->node[0].t, &from, packet, sizeof(packet), w->now_us, WORLD_START_MS);
	sl_punch_build(packet, SL_PUNCH_ACK, 1, hash);
	sl_traversal_packet(w->node[0].t, &from, packet, sizeof(packet), w->now_us, WORLD_START_MS);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_PACKET_UNKNOWN), 2);
	SL_EXPECT_EQ(w->node[0].packets_out, before);
	SL_EXPECT_EQ(w->node[0].punched, 0);
	world_destroy(w);
}

/* Both offer at once: the smaller node address's session stands, and there is one path. */
SL_TEST(traversal, both_offer)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);
	struct sl_node_addr a, b;
	unsigned small;

	sl_node_addr_from_xonly(&a, world_key(w, 0));
	sl_node_addr_from_xonly(&b, world_key(w, 1));
	small = sl_node_addr_cmp(&a, &b) < 0 ? 0 : 1;
	world_want(w, 0, 1);
	world_want(w, 1, 0);
	world_run(w, 10 * S);
	expect_open(w, true);
	SL_EXPECT_EQ(world_counter(w, small, SL_TRAVERSAL_OFFER_SUPPRESSED), 1);
	SL_EXPECT_EQ(world_counter(w, !small, SL_TRAVERSAL_OFFER_SUPPRESSED), 0);
	/* The loser's own try is over: no time-out of it comes later. */
	world_link(w, 0, 1, true);
	world_run(w, 200 * S);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_ANSWER_TIMEOUT) + world_counter(w, 1, SL_TRAVERSAL_ANSWER_TIMEOUT), 0);
	SL_EXPECT_STR(state_of(w, 0, 1), "up");
	world_destroy(w);
}

SL_TEST(traversal, handshake_fails_then_link_dies)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);
	struct sl_traversal_info info;

	world_want(w, 0, 1);
	world_run(w, 5 * S);
	expect_open(w, true);
	world_run(w, 40 * S);
	SL_EXPECT_STR(error_of(w, 0, 1), "punched, but the handshake came to nothing");
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_HANDSHAKE_TIMEOUT), 1);
	SL_EXPECT_STR(state_of(w, 1, 0), "idle");
	world_run(w, 50 * S);
	SL_EXPECT_EQ(w->node[0].punched, 2);
	world_link(w, 0, 1, true);
	world_run(w, 100 * S);
	SL_EXPECT_STR(state_of(w, 0, 1), "up");
	/* Dead: again after the first interval of the retries. */
	world_link(w, 0, 1, false);
	SL_EXPECT(world_info(w, 0, 1, &info));
	SL_EXPECT_STR(info.state, "waiting");
	SL_EXPECT_EQ(info.next_us - w->now_us, 5 * S);
	world_run(w, 110 * S);
	SL_EXPECT_EQ(w->node[0].punched, 3);
	world_destroy(w);
}

/* A node that holds a link for up which its peer has lost answers, and leaves the dialling to it. */
SL_TEST(traversal, offer_of_a_linked_peer)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);

	world_want(w, 0, 1);
	world_run(w, 5 * S);
	world_link(w, 0, 1, true);
	world_run(w, 30 * S);
	sl_traversal_link(w->node[0].t, world_key(w, 1), false, w->now_us);
	w->node[0].due_us = w->now_us;
	world_run(w, 40 * S);
	SL_EXPECT_EQ(w->node[0].punched, 2);
	SL_EXPECT_EQ(w->node[1].punched, 1);
	SL_EXPECT_STR(state_of(w, 1, 0), "up");
	world_destroy(w);
}

static void
offer_text(char *text, size_t size, const uint8_t *from, const uint8_t *to, unsigned n)
{
	struct sl_nat_signal s = {.kind = SL_NAT_SIGNAL_OFFER, .issued_ms = WORLD_START_MS, .expires_ms = WORLD_START_MS + 120000};

	snprintf(s.session_id, sizeof(s.session_id), "s-%u", n);
	snprintf(s.nonce, sizeof(s.nonce), "n-%u", n);
	memcpy(s.sender, from, sizeof(s.sender));
	memcpy(s.recipient, to, sizeof(s.recipient));
	SL_EXPECT_EQ(sl_addr_parse_udp(&s.side.reflexive, "203.0.113.77:7777"), 0);
	SL_EXPECT_EQ(sl_nat_signal_format(text, size, &s), 0);
}

SL_TEST(traversal, limits)
{
	struct world *w = world_create(1);
	char text[2048];
	uint8_t key[SL_XONLY_BYTES];
	unsigned n = 0;

	world_node(w, 0, NAT_CONE, NULL);
	/* One sender: four at a time. */
	for (unsigned i = 0; i < 10; i++) {
		struct sl_identity *id = sl_identity_generate();

		memcpy(key, sl_identity_xonly(id), sizeof(key));
		sl_identity_destroy(id);
		for (unsigned k = 0; k < 6; k++) {
			offer_text(text, sizeof(text), key, world_key(w, 0), n++);
			sl_traversal_signal(w->node[0].t, key, text, strlen(text), w->now_us, WORLD_START_MS);
		}
	}
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_OFFER_RX), 60);
	/* Sixteen in all: four senders with four each; two more of each are the sender's, six of each other sender everybody's. */
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_OFFER_SENDER_FULL), 8);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_OFFER_FULL), 36);
	w->node[0].due_us = 0;
	world_run(w, 5 * S);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_ANSWER_TX), 16);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_STUN_OK), 1); /* one observation for all */
	/* When they have run out there is room again. */
	world_run(w, 20 * S);
	offer_text(text, sizeof(text), key, world_key(w, 0), n++);
	sl_traversal_signal(w->node[0].t, key, text, strlen(text), w->now_us, WORLD_START_MS + 20000);
	w->node[0].due_us = 0;
	world_run(w, 21 * S);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_ANSWER_TX), 17);
	/* The access lists and a full house: no word to the sender. */
	w->node[0].not_allowed = true;
	offer_text(text, sizeof(text), key, world_key(w, 0), n++);
	sl_traversal_signal(w->node[0].t, key, text, strlen(text), w->now_us, WORLD_START_MS + 21000);
	SL_EXPECT_EQ(world_counter(w, 0, SL_TRAVERSAL_OFFER_NOT_ALLOWED), 1);
	world_destroy(w);
}

static void
count_info(void *arg, const struct sl_traversal_info *info)
{
	(void)info;
	++*(unsigned *)arg;
}

/* Ten thousand strangers leave no more records than the limits say. */
SL_TEST(traversal, many_strangers)
{
	struct world *w = world_create(1);
	char text[2048];
	uint8_t key[SL_XONLY_BYTES];
	unsigned records = 0;

	world_node(w, 0, NAT_NONE, NULL);
	for (unsigned i = 0; i < 10000; i++) {
		sl_test_rand_bytes(key, sizeof(key));
		offer_text(text, sizeof(text), key, world_key(w, 0), i);
		sl_traversal_signal(w->node[0].t, key, text, strlen(text), w->now_us, WORLD_START_MS);
		w->now_us += 1000000;
		w->queued = 0;
		(void)sl_traversal_tick(w->node[0].t, w->now_us, WORLD_START_MS);
	}
	sl_traversal_for_each(w->node[0].t, count_info, &records);
	SL_EXPECT_LE(records, 64 + 16 + 1);
	world_destroy(w);
}

/* Texts with random bytes changed, from everybody, at any time: nothing breaks, and the true ones still work. */
SL_TEST(traversal, spoilt_signals)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);
	char text[2048];

	for (unsigned round = 0; round < 300; round++) {
		world_run(w, w->now_us - S + S / 20);
		memcpy(text, w->last_signal, sizeof(text));
		for (unsigned k = 0; k < 1 + round % 3 && text[0]; k++)
			text[sl_test_rand() % strlen(text)] = (char)(' ' + sl_test_rand() % 95);
		inject(w, (unsigned)(sl_test_rand() % 2), (unsigned)(sl_test_rand() % 2), text);
		if (round == 20)
			world_want(w, 0, 1);
	}
	world_run(w, 400 * S); /* a spoilt answer of the true author may have cost a try */
	SL_EXPECT_GE(w->node[0].punched, 1);
	SL_EXPECT_GE(w->node[1].punched, 1);
	world_destroy(w);
}

SL_TEST(traversal, not_wanted_any_more)
{
	struct world *w = pair(NAT_CONE, NAT_CONE);

	world_want(w, 0, 1);
	world_run(w, S);
	SL_EXPECT_EQ(sl_traversal_want(w->node[0].t, world_key(w, 1), NULL, false, w->now_us), 0);
	SL_EXPECT_STR(state_of(w, 0, 1), "idle");
	world_run(w, 30 * S);
	SL_EXPECT_EQ(w->node[0].punched, 0);
	SL_EXPECT_EQ(w->node[0].probes_out, 0);
	SL_EXPECT(!w->node[0].listening);
	world_destroy(w);
}
