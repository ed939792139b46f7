/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which sessions are spread over several workers (sl_spread.h): control's side. Ten times a second it looks whether a worker has
 * more than it can carry while another has room, and whether one peer is the reason.
 *
 * A worker's load is read from what it finds when it polls: an empty poll costs it nothing, so one that keeps up finds few frames
 * at a time, and one that does not finds full bursts. Sessions are only gone through while some worker is loaded, and what they
 * have received is counted anyway (sl_mmp_rx): workers pay nothing for being watched.
 */
#include <errno.h>
#include <stdlib.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include "../overlay/sl_log.h"
#include "sl_control.h"

#define LOOK_US 100000u
#define BEGIN_LOOKS 3u /* in a row, before a session is spread */
#define END_LOOKS 10u  /* in a row, before it goes back */
#define ON_FRAMES 1000u /* a look, less is not worth it whatever the share: `on` */

struct sl_lane *
sl_lane_create(uint16_t workers, int socket)
{
	const uint32_t count = SL_SPREAD_SLOTS + workers; /* each worker can have one that was given up */
	struct sl_lane *l = rte_zmalloc_socket("sl_lane", sizeof(*l), RTE_CACHE_LINE_SIZE, socket);

	if (l == NULL)
		goto fail;
	l->slot_count = count;
	l->slots = rte_zmalloc_socket("sl_lane", count * sizeof(*l->slots), RTE_CACHE_LINE_SIZE, socket);
	l->free = rte_zmalloc_socket("sl_lane", count * sizeof(*l->free), RTE_CACHE_LINE_SIZE, socket);
	l->lost = rte_zmalloc_socket("sl_lane", count * sizeof(*l->lost), RTE_CACHE_LINE_SIZE, socket);
	if (!l->slots || !l->free || !l->lost)
		goto fail;
	for (uint32_t i = 0; i < count; i++)
		l->free[l->free_count++] = &l->slots[i];
	l->stuck_tsc = rte_get_tsc_hz() / 1000000 * SL_SPREAD_STUCK_US;
	l->hold_tsc = rte_get_tsc_hz() / 1000000 * SL_SPREAD_HOLD_US;
	l->late_tsc = rte_get_tsc_hz() / 1000000 * SL_SPREAD_LATE_US;
	return l;
fail:
	sl_lane_destroy(l);
	errno = ENOMEM;
	return NULL;
}

void
sl_lane_destroy(struct sl_lane *l)
{
	if (l == NULL)
		return;
	for (uint32_t i = 0; l->slots && i < l->slot_count; i++)
		if ((l->slots[i].word & 7) != SL_SLOT_FREE)
			rte_pktmbuf_free_bulk(l->slots[i].mbuf, l->slots[i].count);
	rte_free(l->lost);
	rte_free(l->free);
	rte_free(l->slots);
	rte_free(l);
}

int
sl_elephants_init(struct sl_elephants *e, const struct sl_session_view *view)
{
	e->seen = calloc((size_t)view->slot_mask + 1, sizeof(*e->seen));
	return e->seen ? 0 : -ENOMEM;
}

void
sl_elephants_fini(struct sl_elephants *e)
{
	free(e->seen);
	e->seen = NULL;
}

static uint16_t
owner_of(const struct sl_session *s)
{
	return __atomic_load_n(&s->owner, __ATOMIC_RELAXED);
}

/* The owner may clear marks meanwhile. */
static void
owner_mark(struct sl_session *s, uint16_t marks)
{
	uint16_t owner = owner_of(s);

	while (!__atomic_compare_exchange_n(&s->owner, &owner, (uint16_t)((owner & SL_OWNER_WORKER) | marks), false,
		__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static void
lane_use(struct sl_dataplane *dp, uint16_t worker, bool used)
{
	for (unsigned i = 0; i < dp->config.workers; i++) {
		uint32_t *lanes = &dp->workers[i]->lanes;
		const uint32_t bit = 1u << worker;

		__atomic_store_n(lanes, used ? *lanes | bit : *lanes & ~bit, __ATOMIC_RELEASE);
	}
}

/*
 * All sessions of a peer, the one it receives on (and has done alone) last: a frame of that one must not be in the lane while one
 * of a newer session would go past it.
 */
static bool
peer_mark(struct sl_dataplane *dp, uint32_t peer_id, const struct sl_session *last, uint16_t marks)
{
	const struct sl_session_view *v = dp->view;
	struct sl_session *at_last = NULL;
	bool any = false;

	for (uint32_t slot = 0; slot <= v->slot_mask; slot++) {
		struct sl_session *s = v->slots[slot];

		if (s == NULL || s->peer_id != peer_id)
			continue;
		any = true;
		if (s == last)
			at_last = s;
		/* One that has gone back by itself is not marked again to end. */
		else if (marks != SL_OWNER_ENDING || owner_of(s) & SL_OWNER_SPREAD)
			owner_mark(s, marks == SL_OWNER_ENDING ? SL_OWNER_SPREAD | SL_OWNER_ENDING : marks);
	}
	if (at_last && (marks != SL_OWNER_ENDING || owner_of(at_last) & SL_OWNER_SPREAD))
		owner_mark(at_last, marks == SL_OWNER_ENDING ? SL_OWNER_SPREAD | SL_OWNER_ENDING : marks);
	return any;
}

static struct sl_elephant *
elephant_of(struct sl_dataplane *dp, uint32_t peer_id)
{
	for (unsigned i = 0; i < dp->elephants.count; i++)
		if (dp->elephants.list[i].peer_id == peer_id)
			return &dp->elephants.list[i];
	return NULL;
}

static uint64_t
polls_of(const struct sl_dataplane *dp, uint16_t worker)
{
	return __atomic_load_n(&dp->workers[worker]->counters.polls, __ATOMIC_RELAXED);
}

static void
elephant_end(struct sl_dataplane *dp, struct sl_elephant *e)
{
	(void)peer_mark(dp, e->peer_id, NULL, SL_OWNER_ENDING);
	e->ending = true;
	e->end_polls = polls_of(dp, e->worker);
	dp->elephants.ends++;
}

int
sl_dataplane_spread(struct sl_dataplane *dp, uint32_t peer_id, bool on)
{
	struct sl_elephant *e = elephant_of(dp, peer_id);
	const struct sl_session *s;

	if (dp->workers[0]->lane == NULL)
		return -ENOTSUP;
	if (peer_id >= dp->view->max_peers || (s = dp->view->peers[peer_id].tx) == NULL)
		return -ENOENT;
	if (!on) {
		if (e && !e->ending)
			elephant_end(dp, e);
		return 0;
	}
	if (e == NULL) {
		if (dp->elephants.count == SL_ELEPHANTS_MAX)
			return -ENOSPC;
		e = &dp->elephants.list[dp->elephants.count++];
	} else if (!e->ending) {
		return 0;
	}
	*e = (struct sl_elephant){.peer_id = peer_id, .generation = dp->view->peers[peer_id].generation,
		.worker = owner_of(s) & SL_OWNER_WORKER, .since_us = sl_dataplane_now_us()};
	lane_use(dp, e->worker, true);
	(void)peer_mark(dp, peer_id, s, SL_OWNER_SPREAD);
	dp->elephants.begins++;
	return 0;
}

/* --- looking --------------------------------------------------------------------------------------------------------------- */

/* What each worker has done since the last look. */
static void
loads_read(struct sl_dataplane *dp)
{
	for (uint16_t i = 0; i < dp->config.workers; i++) {
		struct sl_elephant_load *l = &dp->elephants.load[i];
		const uint64_t rx = __atomic_load_n(&dp->workers[i]->counters.rx, __ATOMIC_RELAXED), polls = polls_of(dp, i);
		const uint64_t frames = rx - l->rx, turns = polls - l->polls, most = turns * dp->config.burst;

		l->frames = frames;
		l->room = turns && frames * 4 <= most && !dp->watch[i].stalled;
		l->loaded = turns && frames * 2 >= most;
		l->rx = rx;
		l->polls = polls;
	}
}

static bool
others_have_room(const struct sl_dataplane *dp, uint16_t worker)
{
	for (uint16_t i = 0; i < dp->config.workers; i++)
		if (i != worker && dp->elephants.load[i].room)
			return true;
	return false;
}

/* Frames that each worker's busiest session has received since the last look, and which that is; of peers, too. */
static void
sessions_read(struct sl_dataplane *dp)
{
	const struct sl_session_view *v = dp->view;
	struct sl_elephants *all = &dp->elephants;

	for (unsigned i = 0; i < dp->config.workers; i++)
		all->load[i].top_frames = 0;
	for (unsigned i = 0; i < all->count; i++)
		all->list[i].look_frames = 0;
	for (uint32_t slot = 0; slot <= v->slot_mask; slot++) {
		const struct sl_session *s = v->slots[slot];
		struct sl_elephant_load *l;
		struct sl_elephant *e;
		uint32_t frames, n;

		if (s == NULL)
			continue;
		frames = (uint32_t)__atomic_load_n(&s->mmp.frames, __ATOMIC_RELAXED);
		n = frames - all->seen[slot];
		all->seen[slot] = frames;
		if (n == 0 || !all->seen_valid)
			continue;
		e = owner_of(s) & SL_OWNER_SPREAD ? elephant_of(dp, s->peer_id) : NULL;
		if (e) {
			e->look_frames += n;
			continue;
		}
		l = &all->load[owner_of(s) & SL_OWNER_WORKER];
		if (n > l->top_frames) {
			l->top_frames = n;
			l->top_peer = s->peer_id;
			l->top_session = s->rx_index;
		}
	}
	all->seen_valid = true;
}

/* Is it the only session on which its peer sends? Others of it must have been silent since the look before. */
static bool
only_session(const struct sl_dataplane *dp, uint32_t peer_id, uint32_t rx_index)
{
	for (uint32_t slot = 0; slot <= dp->view->slot_mask; slot++) {
		const struct sl_session *s = dp->view->slots[slot];

		if (s && s->peer_id == peer_id && s->rx_index != rx_index &&
			sl_dataplane_now_us() - __atomic_load_n(&s->mmp.last_rx_us, __ATOMIC_RELAXED) < LOOK_US)
			return false;
	}
	return dp->view->peers[peer_id].tx && dp->view->peers[peer_id].tx->rx_index == rx_index;
}

static void
begin_if_due(struct sl_dataplane *dp, uint16_t worker)
{
	struct sl_elephant_load *l = &dp->elephants.load[worker];
	const bool always = dp->config.elephant == SL_ELEPHANT_ON;
	bool due = l->top_frames && (always ? l->top_frames >= ON_FRAMES && l->top_frames * 4 >= l->frames :
		l->loaded && l->top_frames * 2 >= l->frames && others_have_room(dp, worker));

	if (due && l->top_session != l->due_session)
		l->due_looks = 0;
	l->due_session = l->top_session;
	l->due_looks = due ? l->due_looks + 1 : 0;
	if (l->due_looks < (always ? 1 : BEGIN_LOOKS) || !only_session(dp, l->top_peer, l->top_session))
		return;
	l->due_looks = 0;
	if (sl_dataplane_spread(dp, l->top_peer, true) != 0)
		return;
	dp->elephants.list[dp->elephants.count - 1].begin_frames = l->top_frames;
	sl_log(SL_LOG_INFO, SL_TOPIC_PIPELINE, "peer row %u: %u%% of the frames of worker %u, now opened and sealed by others too",
		l->top_peer, (unsigned)(l->frames ? l->top_frames * 100 / l->frames : 0), worker);
}

/*
 * Less than half of what it began with, and not because its worker cannot do more (with `on`: next to nothing), or nobody to
 * share with, for a second.
 */
static void
end_if_due(struct sl_dataplane *dp, struct sl_elephant *e)
{
	const bool always = dp->config.elephant == SL_ELEPHANT_ON;
	const uint64_t least = always ? ON_FRAMES / 2 : e->begin_frames / 2;
	const bool little = e->look_frames < least && (always || !dp->elephants.load[e->worker].loaded);
	const bool due = little || (!always && !others_have_room(dp, e->worker));

	e->end_looks = due ? e->end_looks + 1 : 0;
	if (e->end_looks < END_LOOKS)
		return;
	sl_log(SL_LOG_INFO, SL_TOPIC_PIPELINE, "peer row %u: worker %u opens and seals its frames alone again", e->peer_id, e->worker);
	elephant_end(dp, e);
}

/* Ended, and nothing of it in the lane any more; or its peer is gone. */
static bool
elephant_over(struct sl_dataplane *dp, struct sl_elephant *e)
{
	const struct sl_lane *l = dp->workers[e->worker]->lane;
	uint32_t tail;

	if (!e->ending && dp->view->peers[e->peer_id].generation == e->generation)
		return false;
	if (!e->ending)
		elephant_end(dp, e);
	/*
	 * Two polls: one that had begun before may have put frames into the lane. Then nothing comes into an empty one. tail is
	 * read first: it never passes alloc, so that alloc, read later and equal to it, says that the lane was empty then. (head says
	 * nothing: what is being filled lies behind it.)
	 */
	tail = __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE);
	return polls_of(dp, e->worker) - e->end_polls >= 2 && __atomic_load_n(&l->alloc, __ATOMIC_ACQUIRE) == tail;
}

static void
elephants_collect(struct sl_dataplane *dp)
{
	struct sl_elephants *all = &dp->elephants;

	for (unsigned i = 0; i < all->count;) {
		const uint16_t worker = all->list[i].worker;
		bool used = false;

		if (!elephant_over(dp, &all->list[i])) {
			i++;
			continue;
		}
		all->list[i] = all->list[--all->count];
		for (unsigned k = 0; k < all->count; k++)
			used |= all->list[k].worker == worker;
		if (!used)
			lane_use(dp, worker, false);
	}
}

void
sl_elephants_watch(struct sl_dataplane *dp)
{
	struct sl_elephants *all = &dp->elephants;
	bool look = all->count != 0;

	if (dp->workers[0]->lane == NULL)
		return;
	if (all->count)
		elephants_collect(dp);
	if (!dp->started || dp->config.elephant == SL_ELEPHANT_BY_HAND || dp->now_us < all->due_us)
		return;
	all->due_us = dp->now_us + LOOK_US;
	loads_read(dp);
	for (uint16_t i = 0; i < dp->config.workers; i++)
		look |= dp->config.elephant == SL_ELEPHANT_ON ? all->load[i].frames >= ON_FRAMES : all->load[i].loaded;
	if (!look) {
		all->seen_valid = false;
		for (uint16_t i = 0; i < dp->config.workers; i++)
			all->load[i].due_looks = 0;
		return;
	}
	sessions_read(dp);
	for (unsigned i = 0; i < all->count; i++)
		if (!all->list[i].ending)
			end_if_due(dp, &all->list[i]);
	for (uint16_t i = 0; i < dp->config.workers; i++)
		begin_if_due(dp, i);
}

/* --- for the operator ------------------------------------------------------------------------------------------------------ */

unsigned
sl_dataplane_elephants(const struct sl_dataplane *dp, struct sl_elephant_info *list, unsigned size)
{
	unsigned n = 0;

	for (; n < dp->elephants.count && n < size; n++) {
		const struct sl_elephant *e = &dp->elephants.list[n];

		list[n] = (struct sl_elephant_info){.peer_id = e->peer_id, .worker = e->worker, .since_us = e->since_us,
			.ending = e->ending};
	}
	return n;
}

bool
sl_dataplane_lane_stats(const struct sl_dataplane *dp, uint16_t worker, struct sl_lane_stats *s)
{
	const struct sl_lane *l = dp->workers[worker]->lane;
	const struct sl_spread_counters *c;

	memset(s, 0, sizeof(*s));
	if (l == NULL)
		return false;
	c = &l->counters;
#define READ(field) s->field = __atomic_load_n(&c->field, __ATOMIC_RELAXED)
	READ(frames);
	READ(slots);
	READ(own_slots);
	READ(wait_tsc);
	READ(order_tsc);
	READ(stuck);
	READ(full);
#undef READ
	s->in_use = __atomic_load_n(&dp->workers[worker]->lanes, __ATOMIC_RELAXED) >> worker & 1;
	return true;
}
