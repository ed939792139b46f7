/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One session's frames opened and sealed by several workers (sl_spread.h). The AEAD is the real one with a hook around it: there
 * a case can stop a worker with a slot in hand, let others go on meanwhile, or delay it. Payloads carry a number for each flow;
 * egress counters must rise by one a frame (rig_open() checks it).
 */
#include <sched.h>
#include <stdlib.h>
#include <rte_cycles.h>
#include "rig.h"

/* --- the AEAD with a hook ----------------------------------------------------------------------------------------------- */

struct sl_aead_ctx {
	struct sl_aead_ctx *real;
};
enum hook_at { AT_OPEN, AT_RESEAL };
static void (*hook)(enum hook_at at); /* atomic: workers read it */
static void
hook_set(void (*fn)(enum hook_at at))
{
	__atomic_store_n(&hook, fn, __ATOMIC_RELEASE);
}
static void
hook_call(enum hook_at at)
{
	void (*fn)(enum hook_at at) = __atomic_load_n(&hook, __ATOMIC_ACQUIRE);

	if (fn)
		fn(at);
}
static const struct sl_aead_backend *real;

static bool
hooked_usable(void)
{
	return true;
}
static struct sl_aead_ctx *
hooked_create(unsigned max_burst)
{
	struct sl_aead_ctx *c = malloc(sizeof(*c));

	c->real = real->create(max_burst);
	return c;
}
static void
hooked_destroy(struct sl_aead_ctx *c)
{
	real->destroy(c->real);
	free(c);
}
static unsigned
hooked_seal(struct sl_aead_ctx *c, struct sl_aead_op *ops, unsigned n)
{
	return real->seal(c->real, ops, n);
}
static unsigned
hooked_open(struct sl_aead_ctx *c, struct sl_aead_op *ops, unsigned n)
{
	return real->open(c->real, ops, n);
}
static unsigned
hooked_open_lead(struct sl_aead_ctx *c, struct sl_aead_op *ops, unsigned n)
{
	hook_call(AT_OPEN);
	return sl_aead_open_lead(real, c->real, ops, n);
}
static void
hooked_open_rest(struct sl_aead_ctx *c, struct sl_aead_op *ops, unsigned n)
{
	sl_aead_open_rest(real, c->real, ops, n);
}
static unsigned
hooked_reseal(struct sl_aead_ctx *c, struct sl_aead_reop *ops, unsigned n)
{
	hook_call(AT_RESEAL);
	return sl_aead_reseal(real, c->real, ops, n);
}
static const struct sl_aead_backend hooked = {"hooked", hooked_usable, hooked_create, hooked_destroy, hooked_seal, hooked_open,
	hooked_open_lead, hooked_open_rest, hooked_reseal};

/* --- a peer that sends, two that receive ---------------------------------------------------------------------------------- */

#define TARGETS 2u
struct stage {
	struct rig *r;
	struct rig_peer *a, *other, *to[TARGETS];
	uint32_t sent[TARGETS], got[TARGETS];
	uint32_t gaps; /* numbers that may be missing: allowed where a case drops frames on purpose */
	uint64_t copies, forged, beats, announces, strangers, ttl, coords;
	uint8_t last[RIG_FRAME_MAX];
	size_t last_len;
};

/* Peer a is worker 0's, on port 0. */
static bool
stage_make(struct stage *s, uint16_t workers, enum sl_elephant_mode mode)
{
	const struct rig_config config = {.workers = workers, .aead = &hooked, .elephant = mode, .out_entries = 4096};

	memset(s, 0, sizeof(*s));
	hook_set(NULL);
	real = sl_aead_backend_find("auto");
	s->r = rig_create(&config);
	if (!s->r)
		return false;
	s->a = rig_peer_add(s->r, SL_ADDR_UDP4, 0, 0);
	s->other = rig_peer_add(s->r, SL_ADDR_UDP4, 0, 0);
	for (unsigned i = 0; i < TARGETS; i++)
		s->to[i] = rig_peer_add(s->r, SL_ADDR_UDP4, 1, (uint16_t)(1 % workers));
	return !sl_test_failed();
}

static struct sl_lane *
lane(const struct stage *s)
{
	return s->r->dp->workers[0]->lane;
}

static uint16_t
owner(const struct stage *s)
{
	return __atomic_load_n(&s->a->session->owner, __ATOMIC_RELAXED);
}

/* A heartbeat of another peer of worker 0's: so that its poll is not an empty one. */
static void
send_other(struct stage *s)
{
	uint8_t packet[128], frame[256], beat = SL_MSG_HEARTBEAT;

	rig_inject(s->r, 0, frame, rig_wrap(s->r, s->other, frame, packet,
		rig_seal(packet, s->other, s->other->counter++, 0, 1, &beat, 1)));
}

/* Seals a message of a's; the frame is kept, to be sent again. */
static void
send_msg(struct stage *s, const void *msg, size_t len)
{
	uint8_t packet[RIG_FRAME_MAX];

	s->last_len = rig_wrap(s->r, s->a, s->last, packet, rig_seal(packet, s->a, s->a->counter, 0, (uint32_t)s->a->counter, msg, len));
	s->a->counter++;
	rig_inject(s->r, 0, s->last, s->last_len);
}

static void
send_number(struct stage *s, unsigned to)
{
	uint8_t payload[80] = {3}, msg[RIG_FRAME_MAX];

	memcpy(payload + 1, &s->sent[to], 4);
	s->sent[to]++;
	send_msg(s, msg, rig_datagram(msg, 64, 1280, &s->a->addr, &s->to[to]->addr, payload, 5 + sl_test_rand() % 75));
}

static void
send_numbers(struct stage *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_number(s, (unsigned)(sl_test_rand() % TARGETS));
}

/* All kinds of frames: what is forwarded, what is control's, what is dropped, copies and forgeries of what came before. */
static void
send_any(struct stage *s)
{
	static const struct sl_node_addr nobody = {.bytes = {0xfd, 9}};
	const uint64_t kind = sl_test_rand() % 40;
	uint8_t msg[RIG_FRAME_MAX] = {0}, payload[64] = {3};

	if (kind < 4 && s->last_len) {
		s->copies++;
		rig_inject(s->r, 0, s->last, s->last_len);
	} else if (kind == 4 && s->last_len) {
		uint8_t f[RIG_FRAME_MAX];
		const uint64_t counter = s->a->counter + 1000; /* not a copy, and ahead of all */

		memcpy(f, s->last, s->last_len);
		memcpy(f + rig_outer(s->a) + 8, &counter, 8);
		rig_fix_udp(f);
		s->forged++;
		rig_inject(s->r, 0, f, s->last_len);
	} else if (kind == 5) {
		msg[0] = SL_MSG_HEARTBEAT;
		s->beats++;
		send_msg(s, msg, 1);
	} else if (kind == 6) {
		msg[0] = SL_MSG_TREE_ANNOUNCE;
		s->announces++;
		send_msg(s, msg, 40);
	} else if (kind == 7) {
		s->strangers++;
		send_msg(s, msg, rig_datagram(msg, 64, 1280, &s->a->addr, &nobody, payload, sizeof(payload)));
	} else if (kind == 8) {
		s->ttl++;
		send_msg(s, msg, rig_datagram(msg, 1, 1280, &s->a->addr, &s->to[0]->addr, payload, sizeof(payload)));
	} else {
		send_number(s, (unsigned)(kind % TARGETS));
	}
}

/* Everything that has left: for whom it is, its counter, its number, nothing before what was sent earlier. */
static void
receive(struct stage *s)
{
	uint8_t frame[RIG_FRAME_MAX], msg[RIG_FRAME_MAX];
	size_t len, at;

	while ((len = rig_receive(s->r, 1, frame)) != 0) {
		for (unsigned i = 0; i < TARGETS; i++) {
			struct rig_peer *p = s->to[i];
			uint32_t number;
			uint64_t counter;

			/* Control asks its neighbours now and then. */
			if (memcmp(frame, p->mac, 6) != 0 || frame[12] != 8 || frame[13] != 0)
				continue;
			memcpy(&counter, frame + rig_outer(p) + 8, 8);
			if (s->gaps && counter > p->rx_counter && counter - p->rx_counter <= s->gaps)
				p->rx_counter = counter; /* reserved for what was lost */
			at = rig_open(s->r, p, frame, len, msg, NULL, NULL);
			if (at < 36 + 5)
				continue;
			memcpy(&number, msg + 37, 4);
			if (s->gaps && number > s->got[i] && number - s->got[i] <= s->gaps) {
				s->gaps -= number - s->got[i];
				s->got[i] = number;
			}
			SL_EXPECT_EQ(number, s->got[i]);
			s->got[i]++;
		}
	}
}

static void
expect_all(struct stage *s)
{
	receive(s);
	for (unsigned i = 0; i < TARGETS; i++)
		SL_EXPECT_EQ(s->got[i], s->sent[i]);
	SL_EXPECT_EQ(rig_verdict(s->r, SL_FORWARD), s->sent[0] + s->sent[1]);
	SL_EXPECT_EQ(rig_verdict(s->r, SL_DROP_REPLAY), s->copies);
	SL_EXPECT_EQ(rig_verdict(s->r, SL_DROP_AUTH), s->forged);
	SL_EXPECT_EQ(rig_verdict(s->r, SL_DROP_TTL), s->ttl);
	SL_EXPECT_EQ(rig_verdict(s->r, SL_DROP_SPREAD_FULL), 0);
	SL_EXPECT_EQ(rig_verdict(s->r, SL_DROP_SPREAD_STUCK), 0);
	SL_EXPECT_EQ(s->a->session->open_failures, s->forged);
	SL_EXPECT_EQ(s->a->session->replays, s->copies);
	SL_EXPECT_EQ(s->a->session->mmp.reordered, 0);
	SL_EXPECT_EQ(s->a->session->mmp.frames, s->a->counter);
}

static struct sl_lane_stats
lane_stats(const struct stage *s)
{
	struct sl_lane_stats l;

	SL_EXPECT(sl_dataplane_lane_stats(s->r->dp, 0, &l));
	return l;
}

/* --- cases, workers driven by hand ----------------------------------------------------------------------------------------- */

/* Turns of workers in any order: slots are taken, opened and sealed in any order, and leave in theirs. */
static void
any_order(uint16_t workers)
{
	struct sl_lane_stats l;
	uint64_t beats;
	struct stage s;

	SL_ASSERT(stage_make(&s, workers, SL_ELEPHANT_BY_HAND));
	beats = rig_verdict(s.r, SL_LOCAL);
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	SL_EXPECT_EQ(owner(&s), SL_OWNER_SPREAD);
	for (unsigned i = 0; i < 4000 && !sl_test_failed(); i++) {
		const unsigned n = (unsigned)(sl_test_rand() % 48);

		for (unsigned k = 0; k < n; k++)
			send_any(&s);
		for (unsigned k = 0; k < 4; k++)
			sl_worker_poll(s.r->dp->workers[sl_test_rand() % workers]);
		if (i % 16 == 0) {
			/* As many as sent is what the owner may have to hold: let it catch up before the lane is full. */
			rig_poll(s.r, true);
			rig_forget(s.r);
		}
		receive(&s);
	}
	rig_poll(s.r, true);
	expect_all(&s);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_LOCAL) - beats, s.beats);
	l = lane_stats(&s);
	SL_EXPECT_GE(l.frames, s.a->counter + s.forged); /* and such copies as came before the window knew */
	SL_EXPECT_LE(l.frames, s.a->counter + s.forged + s.copies);
	SL_EXPECT_GT(l.slots, l.own_slots);
	SL_EXPECT_GT(l.own_slots, 0);
	rig_destroy(s.r);
}
SL_TEST(spread, any_order_two)
{
	any_order(2);
}
SL_TEST(spread, any_order_four)
{
	any_order(4);
}

/* A helper has a slot in hand; copies of its frames come in, pass the look at the window (nothing is committed yet), and are refused. */
static struct stage *nested;
static unsigned nested_calls;

static void
copies_meanwhile(enum hook_at at)
{
	if (at != AT_OPEN || nested_calls++)
		return;
	for (unsigned i = 0; i < 20; i++) {
		nested->copies++;
		rig_inject(nested->r, 0, nested->last, nested->last_len);
	}
	sl_worker_poll(nested->r->dp->workers[0]);
	sl_worker_poll(nested->r->dp->workers[0]);
}
SL_TEST(spread, copies_in_flight)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	send_numbers(&s, 32);
	sl_worker_poll(s.r->dp->workers[0]);
	nested = &s;
	nested_calls = 0;
	hook_set(copies_meanwhile);
	sl_worker_poll(s.r->dp->workers[1]);
	hook_set(NULL);
	rig_poll(s.r, true);
	expect_all(&s);
	SL_EXPECT_EQ(lane_stats(&s).frames, 32 + 20); /* none was stopped at intake: the window was exact without that */
	rig_destroy(s.r);
}

/* A helper that stands still is given up on, once: its 32 frames are lost and counted, later ones go on, and none comes late. */
static void
stand_still(enum hook_at at)
{
	struct sl_lane *l = lane(nested);

	if (at != AT_OPEN || nested_calls++)
		return;
	send_numbers(nested, 96);
	l->stuck_tsc = UINT64_MAX;
	for (unsigned i = 0; i < 20; i++)
		sl_worker_poll(nested->r->dp->workers[0]);
	receive(nested);
	SL_EXPECT_EQ(nested->got[0] + nested->got[1], 0); /* all wait behind the first */
	l->stuck_tsc = 0;
	for (unsigned i = 0; i < 20; i++)
		sl_worker_poll(nested->r->dp->workers[0]);
	nested->gaps = 32;
	receive(nested);
	SL_EXPECT_EQ(nested->got[0] + nested->got[1], nested->sent[0] + nested->sent[1]);
	SL_EXPECT_EQ(rig_verdict(nested->r, SL_DROP_SPREAD_STUCK), 32);
	SL_EXPECT_EQ(l->lost_count, 1);
	l->stuck_tsc = UINT64_MAX;
}
SL_TEST(spread, worker_that_stands_still)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	send_numbers(&s, 32);
	sl_worker_poll(s.r->dp->workers[0]);
	nested = &s;
	nested_calls = 0;
	hook_set(stand_still);
	sl_worker_poll(s.r->dp->workers[1]);
	hook_set(NULL);
	/* It has come back: the slot is free again, and it works like before. */
	send_numbers(&s, 64);
	rig_poll(s.r, true);
	receive(&s);
	SL_EXPECT_EQ(lane(&s)->lost_count, 0);
	SL_EXPECT_EQ(s.got[0] + s.got[1], s.sent[0] + s.sent[1]);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_DROP_SPREAD_STUCK), 32);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_FORWARD), 96 + 64);
	SL_EXPECT_EQ(lane_stats(&s).stuck, 1);
	rig_destroy(s.r);
}

/* The same while it seals: counters were given out, and are never used for anything else. */
static void
stand_still_sealing(enum hook_at at)
{
	if (at != AT_RESEAL || nested_calls++)
		return;
	lane(nested)->stuck_tsc = 0;
	for (unsigned i = 0; i < 4; i++)
		sl_worker_poll(nested->r->dp->workers[0]);
	lane(nested)->stuck_tsc = UINT64_MAX;
	SL_EXPECT_EQ(rig_verdict(nested->r, SL_DROP_SPREAD_STUCK), 32);
}
SL_TEST(spread, worker_that_stands_still_sealing)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	lane(&s)->late_tsc = lane(&s)->stuck_tsc = UINT64_MAX;
	send_numbers(&s, 32);
	sl_worker_poll(s.r->dp->workers[0]);
	sl_worker_poll(s.r->dp->workers[1]);
	send_other(&s);
	sl_worker_poll(s.r->dp->workers[0]);
	nested = &s;
	nested_calls = 0;
	hook_set(stand_still_sealing);
	sl_worker_poll(s.r->dp->workers[1]);
	hook_set(NULL);
	SL_EXPECT_EQ(nested_calls, 1);
	send_numbers(&s, 32);
	rig_poll(s.r, true);
	s.gaps = 32;
	receive(&s);
	SL_EXPECT_EQ(s.got[0] + s.got[1], 64);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_FORWARD), 32);
	rig_destroy(s.r);
}

/* A worker has the first slot in hand and does not give it back while fn is at it; then everything goes its way. */
static void
while_a_slot_is_held(struct stage *s, void (*fn)(enum hook_at at))
{
	lane(s)->stuck_tsc = UINT64_MAX;
	send_numbers(s, 32);
	sl_worker_poll(s->r->dp->workers[0]);
	nested = s;
	nested_calls = 0;
	hook_set(fn);
	sl_worker_poll(s->r->dp->workers[1]);
	hook_set(NULL);
	rig_poll(s->r, true);
}

/* While nothing leaves, a lane takes what its slots hold; the rest is dropped and counted. Nothing waits, nothing is lost twice. */
static void
fill_up(enum hook_at at)
{
	enum { MORE = 40 * 32 };

	if (at != AT_OPEN || nested_calls++)
		return;
	for (unsigned i = 0; i < MORE; i += 32) {
		send_numbers(nested, 32);
		sl_worker_poll(nested->r->dp->workers[0]);
	}
	SL_EXPECT_EQ(rig_verdict(nested->r, SL_DROP_SPREAD_FULL), MORE + 32 - SL_SPREAD_SLOTS * 32);
	/* Others of this worker's are not touched by it. */
	send_other(nested);
	sl_worker_poll(nested->r->dp->workers[0]);
	SL_EXPECT_EQ(rig_verdict(nested->r, SL_LOCAL), 1);
}
SL_TEST(spread, lane_full)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	while_a_slot_is_held(&s, fill_up);
	receive(&s);
	SL_EXPECT_EQ(s.got[0] + s.got[1], SL_SPREAD_SLOTS * 32);
	SL_EXPECT_EQ(lane_stats(&s).full, rig_verdict(s.r, SL_DROP_SPREAD_FULL));
	rig_destroy(s.r);
}

/* Many small bursts behind a slot that does not move: they share slots instead of using them up. */
static void
fill_up_slowly(enum hook_at at)
{
	if (at != AT_OPEN || nested_calls++)
		return;
	for (unsigned i = 0; i < 300; i++) {
		send_numbers(nested, 1);
		sl_worker_poll(nested->r->dp->workers[0]);
	}
}
SL_TEST(spread, small_bursts_share_slots)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	while_a_slot_is_held(&s, fill_up_slowly);
	expect_all(&s);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_FORWARD), 332);
	rig_destroy(s.r);
}

/* --- what goes while frames of it are under way ---------------------------------------------------------------------------- */

enum moment { QUEUED, OPENED, READY };

/* One slot of 32 frames, brought to where it is to be. */
static void
bring_to(struct stage *s, enum moment at)
{
	lane(s)->late_tsc = UINT64_MAX;
	send_numbers(s, 32);
	sl_worker_poll(s->r->dp->workers[0]);
	if (at == QUEUED)
		return;
	sl_worker_poll(s->r->dp->workers[1]);
	if (at == OPENED)
		return;
	send_other(s);
	sl_worker_poll(s->r->dp->workers[0]);
	SL_EXPECT_EQ(lane(s)->ring[0]->word & 7, SL_SLOT_READY);
}

/* A grace period in which no worker takes a turn: between turns they hold nothing, whatever is in the lane. */
static void
grace(struct stage *s)
{
	for (uint16_t w = 0; w < s->r->config.workers; w++)
		rte_rcu_qsbr_quiescent(s->r->dp->reclaim.qsbr, w);
	sl_dataplane_poll(s->r->dp, 256, sl_dataplane_now_us());
	SL_EXPECT_EQ(s->r->dp->reclaim.count, 0);
}

/* The session is retired, its memory wiped and given back: what is still there of its frames is dropped, by name. */
static void
session_goes(enum moment at)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	bring_to(&s, at);
	sl_session_table_view(s.r->table)->peers[s.a->id].tx = NULL;
	sl_session_retire(s.r->table, s.a->session);
	grace(&s);
	rig_poll(s.r, true);
	receive(&s);
	SL_EXPECT_EQ(s.got[0] + s.got[1], 0);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_DROP_UNKNOWN_INDEX), 32);
	SL_EXPECT_EQ(lane(&s)->alloc, lane(&s)->tail);
	rig_destroy(s.r);
}
SL_TEST(spread, session_goes_queued)
{
	session_goes(QUEUED);
}
SL_TEST(spread, session_goes_opened)
{
	session_goes(OPENED);
}
SL_TEST(spread, session_goes_ready)
{
	session_goes(READY);
}

/* The next hops' sessions, rows or paths go. */
static void
egress_goes(enum moment at, enum sl_verdict v)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	bring_to(&s, at);
	for (unsigned i = 0; i < TARGETS; i++) {
		struct sl_peer_row *row = &sl_session_table_view(s.r->table)->peers[s.to[i]->id];

		if (v == SL_DROP_NO_PATH) {
			sl_dataplane_path_set(s.r->dp, s.to[i]->id, NULL, s.r->now_us);
			continue;
		}
		row->tx = NULL;
		sl_session_retire(s.r->table, s.to[i]->session);
	}
	grace(&s);
	rig_poll(s.r, true);
	receive(&s);
	SL_EXPECT_EQ(s.got[0] + s.got[1], 0);
	SL_EXPECT_EQ(rig_verdict(s.r, v), 32);
	rig_destroy(s.r);
}
SL_TEST(spread, egress_session_goes_opened)
{
	egress_goes(OPENED, SL_DROP_NO_SESSION);
}
SL_TEST(spread, egress_session_goes_ready)
{
	egress_goes(READY, SL_DROP_NO_SESSION);
}
SL_TEST(spread, path_goes_opened)
{
	egress_goes(OPENED, SL_DROP_NO_PATH);
}
SL_TEST(spread, path_goes_ready)
{
	egress_goes(READY, SL_DROP_NO_PATH);
}

/* A row that has become another peer's is not sent to by what was decided for the one before. */
SL_TEST(spread, row_changes_hands)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	bring_to(&s, READY);
	for (unsigned i = 0; i < TARGETS; i++)
		sl_session_table_view(s.r->table)->peers[s.to[i]->id].generation++;
	rig_poll(s.r, true);
	receive(&s);
	SL_EXPECT_EQ(s.got[0] + s.got[1], 0);
	SL_EXPECT_EQ(rig_verdict(s.r, SL_DROP_NO_SESSION), 32);
	rig_destroy(s.r);
}

/* A rekey: frames of the old session are in the lane when those of the new one come, and nothing overtakes anything. */
SL_TEST(spread, rekey)
{
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_ASSERT(sl_dataplane_spread(s.r->dp, s.a->id, true) == 0);
	for (unsigned i = 0; i < 50; i++) {
		struct sl_session *old = s.a->session;

		send_numbers(&s, 40);
		sl_worker_poll(s.r->dp->workers[0]);
		rig_session_install(s.r, s.a, 0);
		SL_EXPECT_EQ(owner(&s), SL_OWNER_SPREAD);
		send_numbers(&s, 40);
		for (unsigned k = 0; k < 3; k++)
			sl_worker_poll(s.r->dp->workers[sl_test_rand() % 2]);
		receive(&s);
		rig_poll(s.r, true);
		sl_session_retire(s.r->table, old);
	}
	receive(&s);
	SL_EXPECT_EQ(s.got[0], s.sent[0]);
	SL_EXPECT_EQ(s.got[1], s.sent[1]);
	rig_destroy(s.r);
}

/* --- beginning and ending ---------------------------------------------------------------------------------------------------- */

/* Into the mode and out of it while frames keep coming: nothing is lost, nothing overtakes. */
SL_TEST(spread, begins_and_ends_under_load)
{
	struct stage s;
	uint64_t before;

	SL_ASSERT(stage_make(&s, 3, SL_ELEPHANT_BY_HAND));
	for (unsigned i = 0; i < 2000 && !sl_test_failed(); i++) {
		if (i % 20 == 5)
			SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, true), 0);
		if (i % 20 == 15)
			SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, false), 0);
		for (unsigned k = 0; k < 24; k++)
			send_any(&s);
		for (unsigned k = 0; k < 5; k++)
			sl_worker_poll(s.r->dp->workers[sl_test_rand() % 3]);
		if (i % 7 == 0) {
			rig_poll(s.r, true);
			rig_forget(s.r);
		}
		receive(&s);
	}
	SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, false), 0);
	for (unsigned i = 0; i < 3; i++) {
		rig_poll(s.r, true);
		send_numbers(&s, 1);
	}
	rig_poll(s.r, true);
	expect_all(&s);
	SL_EXPECT_EQ(owner(&s), 0);
	SL_EXPECT_EQ(s.r->dp->elephants.count, 0);
	SL_EXPECT_EQ(s.r->dp->workers[1]->lanes, 0);
	/* The usual way from here on. */
	before = lane_stats(&s).frames;
	send_numbers(&s, 100);
	rig_poll(s.r, true);
	expect_all(&s);
	SL_EXPECT_EQ(lane_stats(&s).frames, before);
	rig_destroy(s.r);
}

/* Off: no lane, and no way to ask for one. With one worker likewise. */
SL_TEST(spread, off)
{
	struct sl_lane_stats l;
	struct stage s;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_OFF));
	SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, true), -ENOTSUP);
	SL_EXPECT(!sl_dataplane_lane_stats(s.r->dp, 0, &l));
	rig_destroy(s.r);
	SL_ASSERT(stage_make(&s, 1, SL_ELEPHANT_ON));
	SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, true), -ENOTSUP);
	rig_destroy(s.r);
	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_BY_HAND));
	SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, 99, true), -ENOENT);
	rig_destroy(s.r);
}

/* A tenth of a second of bursts for worker 0 and of nothing for worker 1 (unless busy), then control's look. */
static void
look(struct stage *s, uint64_t *now_us, unsigned bursts, unsigned burst, bool mixed, bool busy)
{
	for (unsigned i = 0; i < bursts; i++) {
		for (unsigned k = 0; k < burst; k++) {
			if (mixed && k % 4)
				send_other(s);
			else
				send_numbers(s, 1);
		}
		sl_worker_poll(s->r->dp->workers[0]);
		if (!busy)
			sl_worker_poll(s->r->dp->workers[1]);
		receive(s);
	}
	rig_poll(s->r, false);
	if (busy) { /* its counters say that it finds full bursts too */
		s->r->dp->elephants.load[1].polls = s->r->dp->workers[1]->counters.polls - 10;
		s->r->dp->elephants.load[1].rx = s->r->dp->workers[1]->counters.rx - 10 * 32;
	}
	*now_us += 100001;
	sl_dataplane_poll(s->r->dp, 256, *now_us);
	receive(s);
}

static uint64_t
start_by_hand(struct stage *s)
{
	s->r->dp->started = true; /* for the looks alone: this thread is the workers */
	s->r->dp->watch_due_us = UINT64_MAX;
	return sl_dataplane_now_us();
}

/* Chosen when it is most of what a loaded worker has and another has room; let go when it has become little. */
SL_TEST(spread, chosen_by_load)
{
	struct sl_elephant_info list[4];
	struct stage s;
	uint64_t now;

	SL_ASSERT(stage_make(&s, 2, SL_ELEPHANT_AUTO));
	now = start_by_hand(&s);
	look(&s, &now, 40, 32, false, false); /* sessions are read for the first time */
	look(&s, &now, 40, 32, false, false);
	look(&s, &now, 40, 32, false, false);
	SL_EXPECT_EQ(owner(&s), 0);
	look(&s, &now, 40, 32, false, false);
	SL_EXPECT_EQ(owner(&s), SL_OWNER_SPREAD);
	SL_ASSERT(sl_dataplane_elephants(s.r->dp, list, 4) == 1);
	SL_EXPECT_EQ(list[0].peer_id, s.a->id);
	SL_EXPECT_EQ(list[0].worker, 0);
	for (unsigned i = 0; i < 15; i++)
		look(&s, &now, 40, 32, false, false);
	SL_EXPECT_EQ(owner(&s), SL_OWNER_SPREAD);
	for (unsigned i = 0; i < 8; i++)
		look(&s, &now, 40, 4, false, false);
	SL_EXPECT_EQ(owner(&s), SL_OWNER_SPREAD);
	for (unsigned i = 0; i < 4; i++)
		look(&s, &now, 40, 4, false, false);
	SL_EXPECT_EQ(owner(&s), 0);
	SL_EXPECT_EQ(sl_dataplane_elephants(s.r->dp, list, 4), 0);
	expect_all(&s);
	s.r->dp->started = false;
	rig_destroy(s.r);
}

/* Not while nobody has room, nor for a session that is a quarter of its worker's frames; `on` asks for neither. */
static void
not_chosen(enum sl_elephant_mode mode, bool mixed, bool busy, bool expected)
{
	struct stage s;
	uint64_t now;

	SL_ASSERT(stage_make(&s, 2, mode));
	now = start_by_hand(&s);
	for (unsigned i = 0; i < 8; i++)
		look(&s, &now, 130, 32, mixed, busy);
	SL_EXPECT_EQ(owner(&s), expected ? SL_OWNER_SPREAD : 0);
	receive(&s);
	SL_EXPECT_EQ(s.got[0] + s.got[1], s.sent[0] + s.sent[1]);
	s.r->dp->started = false;
	rig_destroy(s.r);
}
SL_TEST(spread, not_while_all_are_busy)
{
	not_chosen(SL_ELEPHANT_AUTO, false, true, false);
}
SL_TEST(spread, not_a_small_share)
{
	not_chosen(SL_ELEPHANT_AUTO, true, false, false);
}
SL_TEST(spread, on_needs_less)
{
	not_chosen(SL_ELEPHANT_ON, true, false, true);
}

/* --- on lcores -------------------------------------------------------------------------------------------------------------- */

#if defined(__SANITIZE_THREAD__)
#define LCORE_FRAMES 2000u /* neighbours are asked again after half a minute, and nobody answers here */
#else
#define LCORE_FRAMES 40000u
#endif

static bool
lane_is_empty(struct stage *s)
{
	const uint32_t left = __atomic_load_n(&lane(s)->tail, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&lane(s)->alloc, __ATOMIC_ACQUIRE) == left;
}

/* Delays and turns of others, at random, wherever a worker has a slot in hand. */
static void
delay(enum hook_at at)
{
	static __thread uint64_t x;

	(void)at;
	if (x == 0)
		x = sl_test_seed() ^ (uintptr_t)&x;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	if (x % 8 == 0)
		sched_yield();
	else if (x % 8 == 1)
		rte_delay_us_sleep((unsigned)(x >> 32) % 300);
	else if (x % 8 < 4)
		rte_delay_us_block((unsigned)(x >> 32) % 20);
}

static void
on_lcores(uint16_t workers, unsigned total)
{
	struct stage s;
	unsigned sent = 0, idle = 0;
	uint64_t last = 0;
	struct sl_lane_stats l;

	SL_ASSERT(stage_make(&s, workers, SL_ELEPHANT_BY_HAND));
	lane(&s)->stuck_tsc = UINT64_MAX; /* this machine's CPUs are shared: nobody is given up here */
	SL_ASSERT(sl_dataplane_start(s.r->dp) == 0);
	hook_set(delay);
	for (unsigned round = 0; sent < total && !sl_test_failed(); round++) {
		/* Now and then out of the mode and in again, and another session. */
		if (round % 40 == 2)
			SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, true), 0);
		if (round % 40 == 37)
			SL_EXPECT_EQ(sl_dataplane_spread(s.r->dp, s.a->id, false), 0);
		for (unsigned i = 0; i < 64; i++, sent++)
			send_any(&s);
		for (unsigned i = 0; i < 20000; i++) {
			uint64_t under_way = s.sent[0] + s.sent[1] - s.got[0] - s.got[1];

			sl_dataplane_poll(s.r->dp, 256, sl_dataplane_now_us());
			receive(&s);
			if (under_way < 300)
				break;
			rte_delay_us_sleep(20);
		}
		rig_forget(s.r);
	}
	while (idle < 50) {
		uint64_t rx = 0;

		rte_delay_us_sleep(2000);
		sl_dataplane_poll(s.r->dp, 256, sl_dataplane_now_us());
		receive(&s);
		for (uint16_t w = 0; w < workers; w++) {
			struct sl_worker_stats st;

			sl_dataplane_worker_stats(s.r->dp, w, &st);
			rx += st.rx;
		}
		/* Still and empty: on a machine with fewer CPUs than workers the owner of the lane may not run for long. */
		idle = rx == last && rte_ring_empty(s.r->in[0]) && lane_is_empty(&s) ? idle + 1 : 0;
		last = rx;
	}
	sl_dataplane_stop(s.r->dp);
	hook_set(NULL);
	expect_all(&s);
	l = lane_stats(&s);
	SL_EXPECT_GT(l.slots, l.own_slots);
	rig_destroy(s.r);
}
SL_TEST(spread, on_two_lcores)
{
	on_lcores(2, LCORE_FRAMES);
}
SL_TEST(spread, on_three_lcores)
{
	on_lcores(3, LCORE_FRAMES);
}
