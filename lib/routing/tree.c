/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The spanning tree: routing facts, sections 2, 4 and 5, with remedies W2 and W5 of section 17. For
 * roots that vanish see doubt.c, for announces that are lost again.c.
 */
#include "router.h"
#include "../crypto/sl_hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int addr_cmp(const struct sl_node_addr *a, const struct sl_node_addr *b)
{
	return memcmp(a, b, SL_NODE_ADDR_BYTES);
}

/* --- our own declaration
 * ------------------------------------------------------------------------------------- */

static void entry_put(
	uint8_t *e, const struct sl_node_addr *addr, uint64_t sequence, uint64_t timestamp_s)
{
	memcpy(e, addr, 16);
	sl_put64(e + 16, sequence);
	sl_put64(e + 24, timestamp_s);
}

static struct sl_route_peer *parent_peer(const struct sl_router *r)
{
	return sl_tree_is_root(&r->tree) ? NULL : sl_router_peer_by_addr(r, &r->tree.parent);
}

/*
 * Coordinates from the declaration. A parent whose root is not smaller than we are would make a
 * path whose last entry is not its minimum, which everybody refuses: then we are root, under the
 * same sequence (2.5).
 */
static void recompute(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;
	const struct sl_route_peer *p = NULL;
	struct sl_node_addr old[SL_PATH_MAX + 1];
	uint16_t old_len = t->len;

	memcpy(old, t->path, old_len * sizeof(old[0]));
	sl_doubt_before(r);
	if (!sl_node_same(&t->parent, &t->self)) {
		p = sl_router_peer_by_addr(r, &t->parent);
		if (!p || !p->has_tree)
			p = NULL;
		else if (addr_cmp(&t->self, &p->path[0]) <= 0)
			p = NULL;
		if (!p)
			t->parent = t->self;
	}
	entry_put(t->entries, &t->self, t->sequence, t->timestamp_s);
	t->len = 1;
	if (p) {
		memcpy(t->entries + SL_TREE_ENTRY_BYTES, p->entries,
			(size_t)p->path_len * SL_TREE_ENTRY_BYTES);
		memcpy(t->path, p->path, p->path_len * sizeof(t->path[0]));
		t->len = (uint16_t)(p->path_len + 1);
	}
	t->path[t->len - 1] = t->self;
	t->root = t->path[0];
	sl_doubt_after(r);
	t->is_signed = false; /* signed when it is first sent, after all this */
	if (t->len != old_len || memcmp(old, t->path, old_len * sizeof(old[0])) != 0) {
		r->own_path_dirty = true;
		r->body_dirty = true;
	}
	sl_filter_changed(r); /* the set of tree peers may be another (W1) */
}

void sl_tree_declare(struct sl_router *r, const struct sl_node_addr *parent)
{
	r->tree.parent = *parent;
	r->tree.sequence++;
	r->tree.timestamp_s = sl_router_unix_s(r);
	recompute(r);
}

void sl_tree_start(struct sl_router *r, const struct sl_node_addr *self, uint64_t sequence)
{
	struct sl_tree *t = &r->tree;

	t->self = *self;
	t->parent = t->self;
	t->sequence = sequence;
	t->timestamp_s = sl_router_unix_s(r);
	recompute(r);
}

static void sign(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;
	uint8_t preimage[SL_TREE_PREIMAGE_BYTES], digest[SL_SHA256_BYTES];

	if (t->is_signed)
		return;
	sl_tree_preimage(preimage, &t->self, &t->parent, t->sequence, t->timestamp_s);
	sl_sha256(digest, preimage, sizeof(preimage));
	sl_sign(t->signature, digest, r->identity);
	t->is_signed = true;
}

/* --- announces out
 * -------------------------------------------------------------------------------------------- */

void sl_tree_announce_to(struct sl_router *r, struct sl_route_peer *p)
{
	struct sl_tree *t = &r->tree;
	struct sl_tree_announce a;
	size_t len;

	if (p->announced && r->now_us - p->announced_us < r->config.announce_min_interval_us) {
		p->announce_pending = true; /* what it says is decided when it leaves */
		sl_router_wake(r);
		return;
	}
	if (!sl_router_may_send(r)) {
		p->announce_pending = true;
		sl_router_wake(r);
		return;
	}
	sign(r);
	a = (struct sl_tree_announce){.sequence = t->sequence,
		.timestamp_s = t->timestamp_s,
		.parent = t->parent,
		.entries = t->len,
		.entry = t->entries,
		.signature = t->signature};
	len = sl_tree_announce_build(r->scratch, SL_SCRATCH_BYTES, &a);
	p->announced = true;
	p->announced_us = r->now_us;
	if (p->announced_sequence != t->sequence)
		sl_again_new(&p->tree_again);
	p->announced_sequence = t->sequence;
	/* A refused one is tried again after the interval; for a lost one see again.c. */
	p->announce_pending = sl_router_send(r, p, r->scratch, len, 0) != 0;
	if (p->announce_pending)
		sl_router_wake(r);
	else
		sl_again_sent(&p->tree_again, r->now_us);
	sl_route_count(r, p->announce_pending ? SL_ROUTE_TREE_SEND_FAILED : SL_ROUTE_TREE_TX);
}

static void announce_all(struct sl_router *r)
{
	for (uint32_t i = 0; i < r->active_count; i++)
		sl_tree_announce_to(r, r->active[i]);
}

/* --- parent selection
 * ----------------------------------------------------------------------------------------- */

static bool suppressed(const struct sl_router *r)
{
	const struct sl_tree *t = &r->tree;
	bool held = r->config.hold_down_us && t->stamped &&
		    r->now_us - t->stamped_us < r->config.hold_down_us;

	return held || (t->dampened_set && r->now_us < t->dampened_until_us);
}

/*
 * Entries that an announce of ours may have: what cannot be told to every peer in one packet would
 * leave them with our old coordinates for good. Links of less than IPv6's least MTU are not waited
 * for.
 */
#define PATH_LINK_MTU 1280u

static uint32_t path_limit(const struct sl_router *r)
{
	uint32_t mtu = UINT16_MAX, entries;

	for (uint32_t i = 0; i < r->active_count; i++)
		if (r->active[i]->mtu && r->active[i]->mtu < mtu)
			mtu = r->active[i]->mtu;
	if (mtu < PATH_LINK_MTU)
		mtu = PATH_LINK_MTU;
	entries = (mtu - SL_ESTABLISHED_MIN_BYTES - SL_INNER_BYTES - SL_TREE_FIXED_BYTES) /
		  SL_TREE_ENTRY_BYTES;
	return entries < SL_PATH_MAX ? entries : SL_PATH_MAX;
}

uint32_t sl_tree_path_limit(const struct sl_router *r)
{
	return path_limit(r);
}

/* Could we stand below this peer, and should we believe it? */
static bool usable(const struct sl_router *r, const struct sl_route_peer *p, uint32_t limit)
{
	return p->has_tree && !p->has_self && p->path_len < limit && !sl_doubtful_until(r, p);
}

/*
 * Smallest root on offer. Over paths that do not run through us (W2): a root that only our own
 * descendants show is the echo of what we or a former parent said, and nobody could take us there.
 * False when there is no such path.
 */
static bool smallest_root(const struct sl_router *r, struct sl_node_addr *root)
{
	uint32_t limit = path_limit(r);
	bool found = false;

	for (uint32_t i = 0; i < r->active_count; i++) {
		const struct sl_route_peer *p = r->active[i];

		if (!usable(r, p, limit))
			continue;
		if (!found || addr_cmp(&p->path[0], root) < 0)
			*root = p->path[0];
		found = true;
	}
	return found;
}

static bool should_be_root(const struct sl_router *r)
{
	struct sl_node_addr root;

	if (smallest_root(r, &root))
		return addr_cmp(&r->tree.self, &root) <= 0;
	for (uint32_t i = 0; i < r->active_count; i++) {
		const struct sl_route_peer *p = r->active[i];

		if (p->has_tree && addr_cmp(&p->path[0], &r->tree.self) < 0)
			return false;
	}
	return true;
}

/* Loop-free peers that lead to root, best effective depth first, then smallest address. */
static struct sl_route_peer *best_candidate(const struct sl_router *r,
	const struct sl_node_addr *root, bool measured_only, double *best_depth)
{
	struct sl_route_peer *best = NULL;
	uint32_t limit = path_limit(r);

	for (uint32_t i = 0; i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];
		double depth;

		if (!usable(r, p, limit) || !sl_node_same(&p->path[0], root))
			continue;
		if (measured_only && !p->measured)
			continue;
		depth = (double)(p->path_len - 1) + (measured_only ? p->cost : 1.0);
		if (!best || depth < *best_depth ||
			(depth == *best_depth && addr_cmp(&p->addr, &best->addr) < 0)) {
			best = p;
			*best_depth = depth;
		}
	}
	return best;
}

struct sl_tree_choice sl_tree_evaluate(const struct sl_router *r)
{
	const struct sl_tree *t = &r->tree;
	struct sl_tree_choice none = {NULL, false};
	const struct sl_route_peer *parent = parent_peer(r);
	struct sl_node_addr root;
	struct sl_route_peer *best;
	double best_depth = 0, parent_depth;
	bool measured = true;

	if (!smallest_root(r, &root) || addr_cmp(&t->self, &root) <= 0)
		return none;
	/*
	 * Measured ones only, if there are any that lead there. The plain rule leaves out
	 * unmeasured ones as soon as any peer is measured, and so can leave us without a way to a
	 * root in sight (W5).
	 */
	best = best_candidate(r, &root, true, &best_depth);
	if (!best) {
		measured = false;
		best = best_candidate(r, &root, false, &best_depth);
	}
	if (!best || best == parent)
		return none;
	if (sl_tree_is_root(t) || !parent || !parent->has_tree || addr_cmp(&root, &t->root) < 0)
		return (struct sl_tree_choice){best, true};
	parent_depth = (double)(parent->path_len - 1);
	if (!measured)
		parent_depth += 1.0;
	else
		parent_depth += parent->measured ? parent->cost : HUGE_VAL;
	if (best_depth < parent_depth * (1.0 - r->config.parent_hysteresis))
		return (struct sl_tree_choice){best, false};
	return none;
}

/* Counts a change of parent (5.6: the window tumbles, the threshold engages when it is reached). */
static void record_flap(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;
	bool damped = t->dampened_set && r->now_us < t->dampened_until_us;

	if (t->dampened_set && !damped) {
		t->dampened_set = false;
		t->flap_count = 0;
		t->flap_window_open = false;
	}
	if (t->flap_window_open && r->now_us - t->flap_window_us < r->config.flap_window_us) {
		t->flap_count++;
	} else {
		t->flap_window_open = true;
		t->flap_window_us = r->now_us;
		t->flap_count = 1;
	}
	if (t->flap_count >= r->config.flap_threshold && !damped) {
		t->dampened_set = true;
		t->dampened_until_us = r->now_us + r->config.flap_dampening_us;
		sl_route_count(r, SL_ROUTE_FLAP_DAMPENED);
		sl_log(SL_LOG_WARNING, SL_TOPIC_ROUTE,
			"parent changed %u times in %u s: only forced changes for %u s",
			t->flap_count, (unsigned)(r->config.flap_window_us / 1000000),
			(unsigned)(r->config.flap_dampening_us / 1000000));
	}
}

/* A new declaration under p; the same parent again is a refresh. */
static void set_parent(struct sl_router *r, const struct sl_route_peer *p)
{
	struct sl_tree *t = &r->tree;
	bool changed = sl_tree_is_root(t) || !sl_node_same(&t->parent, &p->addr);

	t->stamped = true;
	t->stamped_us = r->now_us;
	if (changed)
		record_flap(r);
	sl_tree_declare(r, &p->addr);
}

static void switch_to(struct sl_router *r, const struct sl_route_peer *p)
{
	set_parent(r, p);
	sl_route_count(r, SL_ROUTE_PARENT_SWITCH);
	sl_coords_invalidate(&r->coords, true, NULL);
}

/* Becomes root. mid-loss also drops what ran through us. */
static void self_root(struct sl_router *r, bool lost_parent)
{
	sl_tree_declare(r, &r->tree.self);
	sl_route_count(r, SL_ROUTE_SELF_ROOT);
	sl_coords_invalidate(&r->coords, lost_parent, &r->tree.root);
}

/* Switch or promotion when one is due; what all triggers share (5.5, first two rows). */
static bool reconsider(struct sl_router *r)
{
	struct sl_tree_choice e = sl_tree_evaluate(r);

	if (e.target && (e.mandatory || !suppressed(r)))
		switch_to(r, e.target);
	else if (!sl_tree_is_root(&r->tree) && should_be_root(r))
		self_root(r, false);
	else
		return false;
	announce_all(r);
	sl_filter_want_all(r);
	return true;
}

static void same_parent_update(struct sl_router *r, const struct sl_route_peer *p)
{
	struct sl_node_addr old[SL_PATH_MAX + 1];
	uint16_t old_len = r->tree.len;

	memcpy(old, r->tree.path, old_len * sizeof(old[0]));
	set_parent(r, p);
	sl_coords_invalidate(&r->coords, true, NULL);
	if (old_len != r->tree.len || memcmp(old, r->tree.path, old_len * sizeof(old[0])) != 0)
		announce_all(r);
}

static void loop_drop(struct sl_router *r)
{
	sl_route_count(r, SL_ROUTE_LOOP_DROP);
	self_root(r, true);
	announce_all(r);
}

void sl_tree_peer_gone(struct sl_router *r, bool was_parent)
{
	struct sl_tree_choice e;

	if (!was_parent)
		return;
	/* It was the root itself: what the others say of it is older than this. */
	if (r->tree.len == 2)
		sl_doubt(r, &r->tree.root, 2);
	e = sl_tree_evaluate(r);
	if (e.target)
		switch_to(r, e.target);
	else
		self_root(r, true);
	if (!sl_tree_is_root(&r->tree))
		sl_coords_invalidate(&r->coords, false, &r->tree.root);
	/* At once, so that the subtree learns of it before it believes stale news from elsewhere.
	 */
	announce_all(r);
}

void sl_tree_limit_changed(struct sl_router *r)
{
	const struct sl_route_peer *p = parent_peer(r);

	if (!p || p->path_len < path_limit(r))
		return;
	sl_route_count(r, SL_ROUTE_TREE_TOO_DEEP);
	loop_drop(r);
	(void)reconsider(r); /* as root, any way that fits is better */
}

void sl_tree_first_measure(struct sl_router *r)
{
	reconsider(r);
}

/* --- announces in
 * --------------------------------------------------------------------------------------------- */

/* 2.4, and no address twice: an honest node drops a parent whose path shows itself, so repeats are
 * made up. */
static bool semantics_ok(const struct sl_tree_announce *a, const struct sl_node_addr *sender)
{
	const uint8_t *last = a->entry + (size_t)(a->entries - 1) * SL_TREE_ENTRY_BYTES;

	if (sl_node_same(&a->parent, sender)) {
		if (a->entries != 1)
			return false;
	} else if (a->entries < 2 || memcmp(a->entry + SL_TREE_ENTRY_BYTES, &a->parent, 16) != 0) {
		return false;
	}
	for (unsigned i = 0; i + 1 < a->entries; i++) {
		const uint8_t *x = a->entry + (size_t)i * SL_TREE_ENTRY_BYTES;

		if (memcmp(x, last, 16) < 0)
			return false;
		for (unsigned j = i + 1; j < a->entries; j++)
			if (memcmp(x, a->entry + (size_t)j * SL_TREE_ENTRY_BYTES, 16) == 0)
				return false;
	}
	return true;
}

static bool signature_ok(const struct sl_tree_announce *a, const struct sl_route_peer *p)
{
	uint8_t preimage[SL_TREE_PREIMAGE_BYTES], digest[SL_SHA256_BYTES];

	sl_tree_preimage(preimage, &p->addr, &a->parent, a->sequence, a->timestamp_s);
	sl_sha256(digest, preimage, sizeof(preimage));
	return sl_verify(a->signature, digest, p->xonly);
}

/*
 * The checks of 2.3. Staleness is looked at before the signature: the outcome is the same silence,
 * and a replayed announce then costs nothing. The counter a message ends in is the first check it
 * fails in this order.
 */
static bool acceptable(struct sl_router *r, struct sl_route_peer *p, struct sl_tree_announce *a,
	const uint8_t *msg, size_t len)
{
	enum sl_route_counter c;

	if (sl_tree_announce_parse(a, msg, len) != 0)
		c = SL_ROUTE_TREE_MALFORMED;
	else if (a->entries > SL_PATH_MAX)
		c = SL_ROUTE_TREE_TOO_LONG;
	else if (memcmp(a->entry, &p->addr, 16) != 0)
		c = SL_ROUTE_TREE_WRONG_SENDER;
	else if (p->has_tree && a->sequence <= p->tree_sequence)
		c = SL_ROUTE_TREE_STALE;
	else if (!sl_bucket_take(&p->tree_bucket, r->now_us))
		c = SL_ROUTE_TREE_LIMITED;
	else if (!signature_ok(a, p))
		c = SL_ROUTE_TREE_BAD_SIGNATURE;
	else if (!semantics_ok(a, &p->addr))
		c = SL_ROUTE_TREE_BAD_SEMANTICS;
	else
		return true;
	sl_route_count(r, c);
	return false;
}

/* Keeps the declaration. False when memory is short (nothing changed). */
static bool store(struct sl_router *r, struct sl_route_peer *p, const struct sl_tree_announce *a)
{
	bool was_child = sl_tree_is_child(r, p);
	struct sl_route_path *path = sl_route_path_create(r, a->entry, a->entries);
	uint8_t *entries = malloc((size_t)a->entries * SL_TREE_ENTRY_BYTES);

	if (!path || !entries) {
		free(path);
		free(entries);
		return false;
	}
	memcpy(entries, a->entry, (size_t)a->entries * SL_TREE_ENTRY_BYTES);
	free(p->entries);
	p->entries = entries;
	p->parent = a->parent;
	p->tree_sequence = a->sequence;
	if (p->has_tree && p->path_len == path->len &&
		memcmp(p->path, path->at, path->len * sizeof(path->at[0])) == 0) {
		free(path); /* the usual refresh: nothing changed for the workers */
	} else {
		sl_route_path_retire(r, p->route);
		p->route = path;
		p->path = path->at;
		p->path_len = path->len;
		p->has_tree = true;
		p->has_self = false;
		for (unsigned i = 0; i < path->len; i++)
			p->has_self |= sl_node_same(&path->at[i], &r->tree.self);
		p->path_dirty = r->index_dirty = r->body_dirty = true;
		sl_publish_peer(r, p);
	}
	if (was_child != sl_tree_is_child(r, p))
		sl_filter_changed(r); /* W1 */
	return true;
}

void sl_tree_accept(struct sl_router *r, struct sl_route_peer *p, const struct sl_tree_announce *a)
{
	const struct sl_node_addr root = r->tree.root;
	const uint16_t len = r->tree.len;
	bool blocked;

	if (!store(r, p, a))
		return;
	blocked = p->has_self || p->path_len >= path_limit(r);
	if (p->path_len >= path_limit(r))
		sl_route_count(r, SL_ROUTE_TREE_TOO_DEEP);
	if (sl_tree_is_parent(r, p) && (blocked || addr_cmp(&p->path[0], &root) > 0))
		sl_doubt(r, &root, len);
	/* It follows a larger root than we do: tell it of ours. */
	if (addr_cmp(&p->path[0], &r->tree.root) > 0)
		sl_tree_announce_to(r, p);
	if (reconsider(r))
		return;
	if (!sl_tree_is_parent(r, p))
		return;
	if (blocked)
		loop_drop(r);
	else
		same_parent_update(r, p);
	/* It has taken us to a larger root: somebody else may be on a smaller one. */
	if (addr_cmp(&r->tree.root, &root) > 0)
		(void)reconsider(r);
}

void sl_tree_message(struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len)
{
	struct sl_tree_announce a;

	sl_route_count(r, SL_ROUTE_TREE_RX);
	if (acceptable(r, p, &a, msg, len))
		sl_tree_accept(r, p, &a);
}

/* --- time
 * -----------------------------------------------------------------------------------------------------
 */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Every reeval interval: a better parent, or the same declaration once more for those who missed
 * it. */
static uint64_t periodic(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;

	if (!r->config.reeval_interval_us || !r->active_count)
		return UINT64_MAX;
	/* The first pass as soon as there is something to choose between. */
	if (!t->evaluated && r->active_count < 2)
		return UINT64_MAX;
	if (!t->evaluated || r->now_us - t->evaluated_us >= r->config.reeval_interval_us) {
		t->evaluated = true;
		t->evaluated_us = r->now_us;
		if (!reconsider(r))
			announce_all(r);
	}
	return t->evaluated_us + r->config.reeval_interval_us;
}

static uint64_t doubt_tick(struct sl_router *r)
{
	if (sl_doubt_over(r))
		(void)reconsider(r);
	return sl_doubt_next(r);
}

uint64_t sl_tree_tick(struct sl_router *r)
{
	uint64_t next;

	for (uint32_t i = 0; i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];

		if (p->announce_pending)
			sl_tree_announce_to(r, p);
	}
	next = earlier(doubt_tick(r), periodic(r));
	for (uint32_t i = 0; i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];

		if (!p->announce_pending)
			continue;
		if (p->announced && r->now_us - p->announced_us < r->config.announce_min_interval_us)
			next = earlier(next, p->announced_us + r->config.announce_min_interval_us);
		else
			next = earlier(next, r->sends_us + 1000);
	}
	return next;
}
