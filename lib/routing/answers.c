/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers decided ahead: see answers.h.
 *
 * Why a compare is enough: an answer that was right is the best of all candidates. Candidates that did not change
 * lost against it and still do; one that changed is compared with it as it is now. Only when the chosen one itself
 * fell back, or when our own distance grew, can somebody else be next, and then all are asked again. The order of
 * changes does not matter and a change may be looked at twice, so answers that are several snapshots behind take
 * them all in one go.
 */
#include "router.h"

#define CREDIT_PER_US 50	   /* units: a fifth of a core */
#define CREDIT_MOST (32ll << 20)	   /* 128,000 decisions in one go */
#define CREDIT_WAIT_US 1000
#define SLICE (64u << 10)
#define AGE_SLICE 1024u
#define AGE_STEP_US 10000u /* at least: 100,000 decisions a second at most */
#define AHEAD 8 /* entries */
#define FAR UINT16_MAX

static bool newer(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static uint16_t short_of(uint32_t distance)
{
	return distance == SL_DISTANCE_INFINITE ? FAR : (uint16_t)distance;
}

void sl_answers_init(struct sl_answers *a, uint64_t now_us)
{
	memset(a, 0, sizeof(*a));
	a->credit = CREDIT_MOST;
	a->credit_us = a->age_us = now_us;
	a->slice = SLICE;
}

/* --- what changed ----------------------------------------------------------------------------- */

void sl_answers_peer(struct sl_router *r, uint32_t peer_id, bool path)
{
	struct sl_answers *a = &r->answers;
	struct sl_answer_change *c = &a->changes[a->next];

	if (a->count == SL_ANSWER_CHANGES)
		a->floor = c->epoch; /* what is as old has not seen all that it must */
	else
		a->count++;
	*c = (struct sl_answer_change){.epoch = r->epoch + 1, .peer_id = peer_id, .path = path};
	a->next = (a->next + 1) % SL_ANSWER_CHANGES;
}

void sl_answers_adjacent(struct sl_router *r, const struct sl_node_addr *addr)
{
	uint32_t id = sl_coords_id(&r->coords, addr);

	if (id != SL_COORD_NONE)
		sl_coords_undecide(&r->coords, id);
}

void sl_answers_own_path(struct sl_router *r)
{
	r->answers.own_epoch = r->epoch + 1;
}

void sl_answers_published(struct sl_router *r)
{
	r->answers.limit = r->answers.left = r->coords.high;
}

/* --- one answer ------------------------------------------------------------------------------- */

static void keep(struct sl_router *r, uint32_t id, uint8_t rule, uint32_t peer_id, uint32_t distance)
{
	struct sl_coord_kept *k = &r->coords.kept[id];
	uint32_t *word = &r->coords.entries[id].hop, hop = SL_COORD_HOP_NO_ROUTE;

	k->rule = rule & 0x7f;
	k->peer = (uint16_t)peer_id;
	k->distance = short_of(distance);
	if (rule != SL_COORD_NO_ROUTE)
		hop = sl_coord_hop(peer_id, r->ref.current->body->peers[peer_id].life);
	if (*word != hop)
		__atomic_store_n(word, hop, __ATOMIC_RELEASE);
}

static void decide(struct sl_router *r, uint32_t id)
{
	const struct sl_coord_data *d = r->coords.entries[id].data;
	struct sl_coord_kept *k = &r->coords.kept[id];
	struct sl_fib_answer a;

	k->len = (uint8_t)d->len;
	k->h1 = (uint16_t)(d->hash.h1 & (SL_FILTER_BITS - 1));
	k->h2 = (uint16_t)(d->hash.h2 & (SL_FILTER_BITS - 1));
	for (uint32_t i = 0; i < SL_COORD_TAGS; i++)
		k->tag[i] = i + 1u < d->len ? sl_get16(&d->path[i + 1].bytes[14]) : 0;
	sl_fib_route(r->ref.current, d, sl_node_hash(d->key.bytes, r->coords.key), &a);
	k->own = short_of(a.own);
	k->epoch = r->epoch;
	r->answers.decided++;
	if (a.kind != SL_HOP_LOCAL)
		keep(r, id, a.rule, a.peer_id, a.distance);
}

/* As the snapshot has it; NULL when it is not there. */
static const struct sl_fib_peer *peer_at(const struct sl_fib_body *b, uint32_t id)
{
	return id < b->id_limit && b->peers[id].up ? &b->peers[id] : NULL;
}

static bool claims(const struct sl_router *r, const struct sl_fib_peer *p, uint32_t id,
	const struct sl_coord_kept *k)
{
	const struct sl_route_peer *q = r->peers[id];
	uint32_t bit = k->h1;

	if (!q || (uint16_t)q->life != p->life)
		return false; /* gone, which the next snapshot says */
	for (uint32_t i = 0; i < p->hashes; i++) {
		if (!(q->column[bit / 8] >> (bit % 8) & 1))
			return false;
		bit = (bit + k->h2) & (SL_FILTER_BITS - 1);
	}
	return true;
}

/* No more than the distance, from what is at hand: two paths share no more than their tags do. */
static uint32_t distance_least(const struct sl_fib_peer *p, const struct sl_coord_kept *k)
{
	uint32_t shorter = p->path_len < k->len ? p->path_len : k->len, shared = 1;

	while (shared < shorter && shared <= SL_COORD_TAGS &&
		sl_get16(&p->path[shared].bytes[14]) == k->tag[shared - 1])
		shared++;
	if (shared > SL_COORD_TAGS)
		shared = shorter;
	return p->path_len + k->len - 2u * shared;
}

static uint16_t distance_of(const struct sl_fib_peer *p, const struct sl_coord_data *d)
{
	return short_of(sl_path_distance(p->path, p->path_len, d->path, d->len));
}

/* The chosen peer itself changed. */
static bool choice_stands(struct sl_router *r, uint32_t id, const struct sl_fib_peer *p, bool path)
{
	struct sl_coord_kept *k = &r->coords.kept[id];

	if (!p || r->coords.entries[id].hop != sl_coord_hop(k->peer, p->life) || !p->can_send)
		return false;
	if (k->rule == SL_COORD_DIRECT)
		return sl_node_same(&p->addr, &r->coords.entries[id].data->key);
	if (!p->path)
		return false;
	if (!claims(r, p, k->peer, k)) {
		if (k->rule == SL_COORD_BY_FILTER)
			return false;
	} else {
		k->rule = SL_COORD_BY_FILTER; /* by tree: so nobody else that claims it is closer */
	}
	if (path) {
		uint16_t distance = distance_of(p, r->coords.entries[id].data);

		if (distance > k->distance)
			return false;
		k->distance = distance;
	}
	return true;
}

/* Another peer than the chosen one changed: does it win? False when that is not for this to say. */
static bool challenge(struct sl_router *r, const struct sl_fib_body *b, uint32_t id,
	const struct sl_fib_peer *p, uint32_t peer_id)
{
	struct sl_coord_kept *k = &r->coords.kept[id];
	const bool by_filter = k->rule == SL_COORD_BY_FILTER, by_tree = k->rule == SL_COORD_BY_TREE;
	const struct sl_fib_peer *chosen = by_filter || by_tree ? peer_at(b, k->peer) : NULL;
	uint32_t least;
	uint16_t distance;
	bool claimed;

	if (!p || !p->path)
		return true;
	if (!p->can_send)
		return by_filter;
	if ((by_filter || by_tree) &&
		(!chosen || r->coords.entries[id].hop != sl_coord_hop(k->peer, chosen->life)))
		return false;
	claimed = claims(r, p, peer_id, k);
	if (!claimed && (by_filter || k->own == FAR))
		return true;
	if (by_filter && p->cost > chosen->cost)
		return true;
	least = distance_least(p, k);
	if (least >= k->own || (by_tree && !claimed && least > k->distance))
		return true;
	distance = distance_of(p, r->coords.entries[id].data);
	if (distance >= k->own)
		return true;
	if (claimed) {
		if (!by_filter || p->cost < chosen->cost ||
			sl_fib_nearer(p, distance, chosen, k->distance))
			keep(r, id, SL_COORD_BY_FILTER, peer_id, distance);
		return true;
	}
	if (!by_tree)
		return false; /* no route: perhaps because the nearest cannot send */
	if (sl_fib_nearer(p, distance, chosen, k->distance))
		keep(r, id, SL_COORD_BY_TREE, peer_id, distance);
	return true;
}

/* Our own coordinates changed. */
static bool own_stands(const struct sl_router *r, const struct sl_fib_body *b, uint32_t id)
{
	struct sl_coord_kept *k = &r->coords.kept[id];
	const struct sl_coord_data *d = r->coords.entries[id].data;
	uint16_t own, was = k->own;

	if (k->rule == SL_COORD_DIRECT)
		return true;
	own = short_of(sl_path_distance(b->path, b->path_len, d->path, d->len));
	if (own == was)
		return true;
	k->own = own;
	if (own > was)
		return false; /* more peers are closer now */
	/* Fewer are. */
	return k->rule == SL_COORD_NO_ROUTE ? was != FAR : k->distance < own;
}

static bool stands(struct sl_router *r, const struct sl_fib_body *b, uint32_t id, uint32_t *units)
{
	struct sl_answers *a = &r->answers;
	struct sl_coord_kept *k = &r->coords.kept[id];
	const uint32_t seen = k->epoch;

	/* No route because the nearest cannot send: hangs on that peer, which is not kept. */
	if (k->rule == SL_COORD_NO_ROUTE && k->distance < k->own)
		return false;
	if (newer(a->floor, seen) ||
		(newer(a->own_epoch, seen) && !own_stands(r, b, id)))
		return false;
	for (uint32_t i = 1; i <= a->count; i++) {
		const struct sl_answer_change *c =
			&a->changes[(a->next + SL_ANSWER_CHANGES - i) % SL_ANSWER_CHANGES];
		const struct sl_fib_peer *p = peer_at(b, c->peer_id);

		if (!newer(c->epoch, seen))
			break;
		*units += 5;
		if (k->rule != SL_COORD_NO_ROUTE && k->peer == c->peer_id) {
			if (!choice_stands(r, id, p, c->path))
				return false;
		} else if (k->rule != SL_COORD_DIRECT && !challenge(r, b, id, p, c->peer_id)) {
			return false;
		}
	}
	return true;
}

/* --- all of them ------------------------------------------------------------------------------ */

static uint32_t pass(struct sl_router *r, uint32_t units)
{
	struct sl_answers *a = &r->answers;
	const struct sl_fib_body *b = r->ref.current->body;
	uint32_t used = 0;

	for (; a->left && used < units; a->left--) {
		uint32_t id = a->cursor < a->limit ? a->cursor : 0;
		struct sl_coord_kept *k = &r->coords.kept[id];

		a->cursor = id + 1;
		used++;
		if (k->rule <= SL_COORD_UNDECIDED || k->epoch == r->epoch)
			continue;
		/* Only then: most that stand are not looked at beyond what is kept. */
		if (id + AHEAD < a->limit && (newer(a->own_epoch, k->epoch) || newer(a->floor, k->epoch)))
			__builtin_prefetch(r->coords.entries[id + AHEAD].data);
		if (stands(r, b, id, &used)) {
			k->epoch = r->epoch;
			a->stood++;
			continue;
		}
		decide(r, id);
		used += SL_ANSWER_DECISION;
	}
	return used;
}

static uint32_t decide_undecided(struct sl_router *r, uint32_t units)
{
	struct sl_coords *c = &r->coords;
	uint32_t used = 0;

	while (c->undecided_count && used < units) {
		uint32_t id = c->undecided[--c->undecided_count];

		c->kept[id].listed = 0;
		if (c->kept[id].rule == SL_COORD_UNDECIDED)
			decide(r, id);
		used += SL_ANSWER_DECISION;
	}
	return used;
}

static void earn(struct sl_router *r)
{
	struct sl_answers *a = &r->answers;
	uint64_t us = r->now_us - a->credit_us;

	a->credit_us = r->now_us;
	a->credit += us < CREDIT_MOST / CREDIT_PER_US ? (int64_t)us * CREDIT_PER_US : CREDIT_MOST;
	if (a->credit > CREDIT_MOST)
		a->credit = CREDIT_MOST;
}

uint64_t sl_answers_work(struct sl_router *r, uint32_t units)
{
	struct sl_answers *a = &r->answers;
	uint32_t used;

	if (!r->coords.undecided_count && !a->left)
		return UINT64_MAX;
	units = units ? units : a->slice;
	used = decide_undecided(r, units);
	earn(r);
	if (a->left && used < units && a->credit > 0)
		a->credit -= pass(r, units - used);
	if (r->coords.undecided_count)
		return r->now_us;
	if (!a->left)
		return UINT64_MAX;
	return a->credit > 0 ? r->now_us : r->now_us + CREDIT_WAIT_US;
}

uint64_t sl_answers_age(struct sl_router *r)
{
	struct sl_answers *a = &r->answers;
	/* A round takes SL_ANSWER_AGE_US: larger caches have more steps, not longer ones. */
	const uint32_t high = r->coords.high, parts = high / AGE_SLICE + 1;
	const uint64_t step = SL_ANSWER_AGE_US / parts;

	if (!a->ageing) {
		if (!a->costs_changed)
			return UINT64_MAX;
		a->costs_changed = false;
		a->ageing = true;
		a->age_cursor = 0;
		if (a->age_us < r->now_us)
			a->age_us = r->now_us;
	}
	if (r->now_us < a->age_us)
		return a->age_us;
	for (uint32_t n = 0; n < AGE_SLICE && a->age_cursor < high; n++) {
		uint32_t id = a->age_cursor++;

		if (id + AHEAD < high)
			__builtin_prefetch(r->coords.entries[id + AHEAD].data);
		/* The others do not rest on costs. */
		if (r->coords.kept[id].rule == SL_COORD_BY_FILTER)
			decide(r, id);
	}
	a->ageing = a->age_cursor < high;
	a->age_us += step > AGE_STEP_US ? step : AGE_STEP_US;
	if (a->age_us < r->now_us)
		a->age_us = r->now_us;
	return a->ageing || a->costs_changed ? a->age_us : UINT64_MAX;
}
