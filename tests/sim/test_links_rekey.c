/* SPDX-License-Identifier: BSD-3-Clause */
/* Rekey: link layer facts, section 9. Throughout, data flows both ways and none of it may be lost
 * but on the wire. */
#include "link_net.h"

static struct net *net;
static struct node *n[2];
static struct sl_links_config config[2];

/* Each side with a configuration of its own; n[0] has the smaller address. */
static void
begin(unsigned dialler)
{
	net = net_create();
	net_pair(net, n, &config[0]);
	for (unsigned i = 0; i < 2; i++) {
		n[i]->config = config[i];
		net_restart(n[i], true);
	}
	net_configure(n[dialler], n[!dialler]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 10 * NET_S));
}

static void
end(void)
{
	net_destroy(net);
}

static void
defaults(void)
{
	for (unsigned i = 0; i < 2; i++)
		sl_links_config_default(&config[i]);
}

/* Data both ways every 20 ms. */
static void
traffic(uint64_t for_us)
{
	for (uint64_t t = 0; t < for_us; t += 20 * NET_MS) {
		SL_EXPECT_EQ(net_data(n[0], n[1]), 0);
		SL_EXPECT_EQ(net_data(n[1], n[0]), 0);
		net_run(net, 20 * NET_MS);
	}
}

static void
settle_and_expect_no_loss(void)
{
	net_run(net, NET_S);
	SL_EXPECT_EQ(n[0]->data_received, n[1]->data_sent);
	SL_EXPECT_EQ(n[1]->data_received, n[0]->data_sent);
}

static void
expect_agreement(void)
{
	struct sl_link_info a, b;

	/* The end of the run may lie in the middle of a rekey. */
	for (unsigned tries = 0; tries < 50; tries++) {
		SL_EXPECT(net_info(n[0], n[1], &a) && net_info(n[1], n[0], &b));
		if (a.rx_index == b.tx_index && b.rx_index == a.tx_index && a.k == b.k)
			break;
		net_run(net, 100 * NET_MS);
	}
	SL_EXPECT_EQ(a.rx_index, b.tx_index);
	SL_EXPECT_EQ(b.rx_index, a.tx_index);
	SL_EXPECT_EQ(a.k, b.k);
	SL_EXPECT_EQ(n[0]->ups, 1);
	SL_EXPECT_EQ(n[1]->ups, 1);
}

static void
expect_no_renewal(void)
{
	SL_EXPECT_EQ(n[0]->renewals + n[1]->renewals, 0);
}

SL_TEST(links_rekey, by_time_either_role)
{
	for (unsigned v = 0; v < 4; v++) {
		unsigned rekeyer = v & 1;
		struct sl_link_info info;

		defaults();
		config[!rekeyer].rekey_after_us = 3000 * NET_S;
		begin(v >> 1);
		traffic(104 * NET_S);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REKEY), 0);
		traffic(34 * NET_S);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REKEY), 1);
		SL_EXPECT_EQ(net_counter(n[1], SL_LINK_REKEY), 1);
		SL_EXPECT(net_info(n[0], n[1], &info));
		SL_EXPECT_EQ(info.k, 1);
		SL_EXPECT_EQ(info.rekeys, 1);
		SL_EXPECT_EQ(net_counter(n[!rekeyer], SL_LINK_MSG1_TX), (v >> 1) == !rekeyer);
		settle_and_expect_no_loss();
		expect_agreement();
		/* Drained: one session each. */
		net_run(net, 11 * NET_S);
		SL_EXPECT_EQ(sl_session_count(n[0]->table), 1);
		SL_EXPECT_EQ(sl_session_count(n[1]->table), 1);
		expect_no_renewal();
		/* And back to K = 0 with the next. */
		traffic(140 * NET_S);
		SL_EXPECT(net_info(n[1], n[0], &info));
		SL_EXPECT_EQ(info.k, 0);
		settle_and_expect_no_loss();
		end();
	}
}

SL_TEST(links_rekey, by_count)
{
	for (unsigned dialler = 0; dialler < 2; dialler++) {
		defaults();
		config[1].rekey_after_messages = 100;
		begin(dialler);
		traffic(30 * NET_S); /* the count is long over, the link too young */
		SL_EXPECT_EQ(net_counter(n[1], SL_LINK_REKEY), 0);
		traffic(10 * NET_S);
		SL_EXPECT_EQ(net_counter(n[1], SL_LINK_REKEY), 1);
		traffic(80 * NET_S);
		SL_EXPECT_GE(net_counter(n[1], SL_LINK_REKEY), 3);
		SL_EXPECT_LE(net_counter(n[1], SL_LINK_REKEY), 4); /* never closer than 35 s */
		settle_and_expect_no_loss();
		expect_agreement();
		end();
	}
}

/* Both sides begin within the same round trip: the smaller node's goes on (9.4). */
SL_TEST(links_rekey, both_at_once)
{
	unsigned won = 0;

	for (unsigned round = 0; round < 60; round++) {
		defaults();
		config[0].rekey_after_us = config[1].rekey_after_us = 36 * NET_S;
		config[0].rekey_after_messages = config[1].rekey_after_messages = 1;
		net = NULL;
		begin(round & 1);
		net->delay_us = 300 * NET_MS;
		net->jitter_us = round & 2 ? 600 * NET_MS : 0;
		traffic(100 * NET_S);
		won += net_counter(n[0], SL_LINK_MSG1_REKEY_WON) > 0;
		net_run(net, 3 * NET_S);
		SL_EXPECT_EQ(n[0]->data_received, n[1]->data_sent);
		SL_EXPECT_EQ(n[1]->data_received, n[0]->data_sent);
		expect_agreement();
		SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 2);
		SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REKEY), net_counter(n[1], SL_LINK_REKEY));
		end();
	}
	printf("both began at once in %u of 60 runs\n", won);
	SL_EXPECT_GT(won, 10);
}

struct lose {
	uint8_t phase;
	unsigned skip, times;
};

static void
lose_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	struct lose *l = arg;

	(void)w, (void)from, (void)to, (void)len;
	if ((bytes[0] & 0x0f) != l->phase || !l->times)
		return;
	if (l->skip) {
		l->skip--;
		return;
	}
	l->times--;
	fate->copies = 0;
}

SL_TEST(links_rekey, messages_lost)
{
	for (unsigned phase = SL_PHASE_MSG1; phase <= SL_PHASE_MSG2; phase++)
		for (unsigned times = 1; times < 5; times++) {
			struct lose lose = {.phase = (uint8_t)phase, .times = times};

			defaults();
			config[1].rekey_after_us = 3000 * NET_S;
			begin(1);
			net->tap = lose_tap;
			net->tap_arg = &lose;
			traffic(155 * NET_S);
			SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REKEY), 1);
			SL_EXPECT_EQ(net_counter(n[1], SL_LINK_REKEY), 1);
			if (phase == SL_PHASE_MSG2) {
				/* Kept, and sent again as it was (9.5). */
				SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_TX), 1);
				SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG2_RESENT), times);
			}
			settle_and_expect_no_loss();
			expect_agreement();
			end();
		}
}

/* The heartbeats that announce the new session are lost: time brings it about. */
static void
lose_new_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	struct lose *l = arg;

	(void)w, (void)from, (void)to;
	if (bytes[0] == 0 && (bytes[1] & SL_FLAG_K) && len == SL_OVERHEAD_BYTES + 1 && l->times) {
		l->times--;
		fate->copies = 0;
	}
}

SL_TEST(links_rekey, first_frames_lost)
{
	struct lose lose = {.times = 3};

	defaults();
	config[1].rekey_after_us = 3000 * NET_S;
	begin(0);
	net->tap = lose_new_tap;
	net->tap_arg = &lose;
	traffic(140 * NET_S);
	SL_EXPECT_EQ(lose.times, 0);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REKEY), 1);
	settle_and_expect_no_loss();
	expect_agreement();
	end();
}

SL_TEST(links_rekey, everything_repeated_and_reordered)
{
	defaults();
	config[0].rekey_after_us = 40 * NET_S;
	config[1].rekey_after_us = 45 * NET_S;
	begin(0);
	net->jitter_us = 400 * NET_MS;
	net->duplicate = 0.5;
	traffic(300 * NET_S);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 4);
	settle_and_expect_no_loss();
	expect_agreement();
	end();
}

/* Every frame of a session, recorded on the wire. */
static struct recording {
	struct recorded {
		size_t len;
		uint8_t bytes[256];
	} frames[4096];
	unsigned count;
} recording;

static void
record(struct net *on, struct node *from, struct node *to, const uint8_t *bytes, size_t len, struct fate *fate, void *arg)
{
	struct recording *r = arg;

	(void)on;
	(void)to;
	(void)fate;
	if (from != n[0] || bytes[0] != SL_PHASE_ESTABLISHED || len > sizeof(r->frames[0].bytes) || r->count == 4096)
		return;
	r->frames[r->count].len = len;
	memcpy(r->frames[r->count++].bytes, bytes, len);
}

static void
replay(unsigned first, unsigned last)
{
	for (unsigned i = first; i < last; i++)
		net_inject(net, &n[0]->addr, n[1], recording.frames[i].bytes, recording.frames[i].len);
	net_run(net, 10 * NET_MS);
}

/* Replays of all that was ever sent: on the current session, on the one before while it drains, and after that. */
SL_TEST(links_rekey, nothing_recorded_comes_in_again)
{
	unsigned old;
	uint64_t replays, unknown;

	defaults();
	config[0].rekey_after_us = 40 * NET_S;
	config[1].rekey_enabled = false;
	recording.count = 0;
	begin(0);
	net->tap = record;
	net->tap_arg = &recording;
	while (net_counter(n[1], SL_LINK_REKEY) == 0 && recording.count < 4000)
		traffic(20 * NET_MS);
	SL_ASSERT(net_counter(n[1], SL_LINK_REKEY) == 1);
	net_run(net, 2 * NET_S); /* both have changed by now: what was recorded is all old but for a beat or two */
	old = recording.count;
	traffic(2 * NET_S);
	SL_EXPECT_GE(recording.count, old + 90);
	replays = net_counter(n[1], SL_LINK_RX_REPLAY);
	/* Draining and current. */
	replay(0, recording.count);
	replay(0, recording.count);
	SL_EXPECT_EQ(n[1]->data_received, n[0]->data_sent);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_RX_REPLAY), replays + 2 * recording.count);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_RX_UNKNOWN_INDEX), 0);
	/* The old session is gone; the current one goes on refusing. */
	traffic(10 * NET_S);
	replays = net_counter(n[1], SL_LINK_RX_REPLAY);
	unknown = net_counter(n[1], SL_LINK_RX_UNKNOWN_INDEX);
	replay(0, recording.count);
	SL_EXPECT_GE(net_counter(n[1], SL_LINK_RX_UNKNOWN_INDEX) - unknown, old - 12); /* beats among them */
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_RX_UNKNOWN_INDEX) - unknown + net_counter(n[1], SL_LINK_RX_REPLAY) - replays,
		recording.count);
	settle_and_expect_no_loss();
	expect_agreement();
	end();
}

/* 20% loss for ten minutes, rekeys every 40 s: the link stays up and loses what the wire loses. */
SL_TEST(links_rekey, heavy_loss_never_downs_the_link)
{
	double got;

	defaults();
	config[0].rekey_after_us = config[1].rekey_after_us = 40 * NET_S;
	begin(0);
	net->loss = 0.2;
	net->jitter_us = 10 * NET_MS;
	traffic(600 * NET_S);
	net->loss = 0;
	net_run(net, NET_S);
	expect_agreement();
	SL_EXPECT_EQ(n[0]->downs[0] + n[0]->downs[1] + n[0]->downs[2], 0);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 12);
	got = (double)(n[0]->data_received + n[1]->data_received) /
	      (double)(n[0]->data_sent + n[1]->data_sent);
	printf("20%% loss: %.1f%% of %u messages arrived, %u rekeys\n", 100 * got,
		(unsigned)(n[0]->data_sent + n[1]->data_sent),
		(unsigned)net_counter(n[0], SL_LINK_REKEY));
	SL_EXPECT(got > 0.79);
	end();
}

/*
 * The answering side has given its session up when the other at last begins it: their msg2 crossed the end of its life. The
 * one that changed goes back to the session that the peer still sends on, within the drain.
 */
SL_TEST(links_rekey, an_answer_that_comes_too_late)
{
	uint64_t before;

	defaults();
	config[0].rekey_after_us = 40 * NET_S;
	config[1].handshake_timeout_us = 500 * NET_MS;
	config[1].max_resends = 0;
	config[0].max_resends = 0;
	begin(0);
	net->delay_us = 400 * NET_MS;
	traffic(60 * NET_S);
	SL_EXPECT_GE(net_counter(n[1], SL_LINK_PENDING_EXPIRED), 1);
	SL_EXPECT_GE(net_counter(n[1], SL_LINK_RX_UNKNOWN_INDEX), 1);
	before = n[1]->data_received;
	traffic(10 * NET_S);
	SL_EXPECT_EQ(n[0]->downs[0] + n[0]->downs[1] + n[0]->downs[2], 0);
	SL_EXPECT_GE(n[1]->data_received - before, 500 * 6 / 10);
	SL_EXPECT_GE(n[0]->data_received, n[1]->data_sent - 25);
	end();
}

/*
 * Two rekeys that cross, and a first frame that is late. n[1] has made its own session (S2) current
 * by time: nothing of n[0] comes through, nor what it sends itself. n[0] has a session of its own
 * making (S3), whose first frame is on its way, when it at last hears S2 and changes to that. Then
 * n[1] gets the frame on S3, and changes to that.
 */
struct cross {
	enum { S2_ASKED, S2_ANSWERED, S3_ANSWERED, S3_BEGUN } stage;
	uint32_t s2_index, s3_index; /* where n[0] receives on S2, n[1] on S3 */
	bool lose_s3;		     /* whatever n[0] and n[1] send on S3 but for the first frame */
	uint32_t s3_back;
};

static void
cross_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes,
	size_t len, struct fate *fate, void *arg)
{
	struct cross *c = arg;
	bool frame = bytes[0] == SL_PHASE_ESTABLISHED;
	uint32_t index = sl_get32(bytes + 4);

	(void)w, (void)to, (void)len;
	if (bytes[0] == SL_PHASE_MSG2 && from == n[0]) {
		c->stage = S2_ANSWERED;
		c->s2_index = index;
	} else if (bytes[0] == SL_PHASE_MSG2 && from == n[1] && c->stage == S2_ANSWERED) {
		c->stage = S3_ANSWERED;
		c->s3_index = index;
		c->s3_back = sl_get32(bytes + 8);
	} else if (frame && from == n[0] && c->stage >= S3_ANSWERED && index == c->s3_index) {
		if (c->stage == S3_ANSWERED)
			fate->delay_us[0] = 1500 * NET_MS;
		else if (c->lose_s3)
			fate->copies = 0;
		c->stage = S3_BEGUN;
	} else if (frame && from == n[0] && (c->stage == S2_ANSWERED || c->stage == S3_ANSWERED)) {
		fate->copies = 0;
	} else if (frame && from == n[1] && c->stage >= S2_ANSWERED) {
		if (c->stage < S3_BEGUN && index == c->s2_index)
			fate->copies = 0;
		if (c->lose_s3 && index == c->s3_back)
			fate->copies = 0;
	}
}

SL_TEST(links_rekey, crossing_with_a_late_first_frame)
{
	for (unsigned v = 0; v < 6; v++) {
		struct cross c = {.stage = S2_ASKED, .lose_s3 = v & 1};
		uint64_t before[2];

		defaults();
		config[0].rekey_after_us = 30 * NET_S;
		config[1].rekey_after_us = 20 * NET_S;
		begin(0);
		net->tap = cross_tap;
		net->tap_arg = &c;
		for (unsigned s = 0; s < 3000 && c.stage != S3_BEGUN; s++)
			traffic(100 * NET_MS);
		SL_ASSERT(c.stage == S3_BEGUN);
		/* The frame's delay, the peer's doubt, and a beat. */
		traffic(1500 * NET_MS + 3 * NET_S + NET_S);
		for (unsigned i = 0; i < 2; i++)
			before[i] = n[i]->data_received;
		traffic(5 * NET_S);
		SL_EXPECT_GE(n[0]->data_received - before[0], 248);
		SL_EXPECT_GE(n[1]->data_received - before[1], 248);
		expect_agreement();
		end();
	}
}

SL_TEST(links_rekey, every_ten_seconds_with_ends_of_our_own)
{
	defaults();
	config[0].rekey_after_us = config[1].rekey_after_us = 10 * NET_S;
	begin(0);
	net->loss = 0.02;
	traffic(300 * NET_S);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 20);
	expect_agreement();
	SL_EXPECT_EQ(n[0]->downs[0] + n[0]->downs[1] + n[0]->downs[2], 0);
	SL_EXPECT(n[0]->data_received > n[1]->data_sent * 97 / 100);
	end();
}

SL_TEST(links_rekey, off_on_our_side_still_answers)
{
	defaults();
	config[0].rekey_enabled = false;
	begin(0);
	traffic(140 * NET_S);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REKEY), 1);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_TX), 1);
	settle_and_expect_no_loss();
	expect_agreement();
	end();
}
