/* SPDX-License-Identifier: BSD-3-Clause */
/* The router's life, its peers and its time. */
#include "router.h"

#include <errno.h>
#include <stdlib.h>

#define STAMP_WAYS 8
#define EXPIRY_STEP_US 100000
#define WORK_BUDGET 4096

void sl_router_config_default(struct sl_router_config *c)
{
	*c = (struct sl_router_config){
		.max_peers = 128,
		.announce_min_interval_us = 500000,
		.parent_hysteresis = 0.2,
		.hold_down_us = 30000000,
		.reeval_interval_us = 60000000,
		.flap_threshold = 4,
		.flap_window_us = 60000000,
		.flap_dampening_us = 120000000,
		.filter_debounce_us = 500000,
		.max_inbound_fpr = 0.20,
		.coord_size = 50000,
		.coord_ttl_us = 300000000,
		.lookup_ttl = 64,
		.lookup_recent_us = 10000000,
		.lookup_forward_min_us = 2000000,
		.default_ttl = SL_TTL_DEFAULT,
		.ecn_enabled = true,
		.ecn_loss = 0.05,
		.ecn_etx = 3.0,
		.filter_refresh_us = 60000000,
		.announce_again = true,
		.publish_interval_us = 5000,
		.root_doubt_us = 3000000,
	};
}

/* --- small things the others use
 * ----------------------------------------------------------------------------------- */

uint64_t sl_router_random(struct sl_router *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random * 0x2545f4914f6cdd1dull;
}

int sl_router_send(
	struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len, uint8_t flags)
{
	return r->sink.send(r->sink.arg, p->id, msg, len, flags);
}

int sl_stamps_init(struct sl_stamps *s, uint32_t entries)
{
	uint32_t sets = 1;

	while (sets * STAMP_WAYS < entries)
		sets *= 2;
	s->set_mask = sets - 1;
	s->slots = calloc((size_t)sets * STAMP_WAYS, sizeof(*s->slots));
	return s->slots ? 0 : -ENOMEM;
}

void sl_stamps_fini(struct sl_stamps *s)
{
	free(s->slots);
	s->slots = NULL;
}

static struct sl_stamp *stamp_find(
	const struct sl_stamps *s, const struct sl_router *r, const struct sl_node_addr *addr)
{
	uint32_t set = (uint32_t)(sl_node_hash(addr->bytes, r->key) >> 8) & s->set_mask;
	struct sl_stamp *slot = s->slots + (size_t)set * STAMP_WAYS, *oldest = slot;

	for (unsigned i = 0; i < STAMP_WAYS; i++) {
		if (slot[i].us && sl_node_same(&slot[i].addr, addr))
			return &slot[i];
		if (slot[i].us < oldest->us)
			oldest = &slot[i];
	}
	return oldest;
}

bool sl_stamps_free(const struct sl_stamps *s, const struct sl_router *r,
	const struct sl_node_addr *addr, uint64_t interval_us)
{
	const struct sl_stamp *t = stamp_find(s, r, addr);

	/* Kept one higher, so that time 0 is not "empty". */
	return !t->us || !sl_node_same(&t->addr, addr) || r->now_us + 1 - t->us >= interval_us;
}

bool sl_stamps_take(struct sl_stamps *s, const struct sl_router *r, const struct sl_node_addr *addr,
	uint64_t interval_us)
{
	struct sl_stamp *t = stamp_find(s, r, addr);

	if (t->us && sl_node_same(&t->addr, addr) && r->now_us + 1 - t->us < interval_us)
		return false;
	t->addr = *addr;
	t->us = r->now_us + 1;
	return true;
}

/* --- life
 * ------------------------------------------------------------------------------------------------------------
 */

static void seed(struct sl_router *r)
{
	if (!r->config.seed) {
		sl_random(r->key, sizeof(r->key));
		sl_random(&r->random, sizeof(r->random));
	} else {
		r->random = r->config.seed;
		r->key[0] = sl_router_random(r);
		r->key[1] = sl_router_random(r);
		/* Nodes of one simulation share a seed, not their request ids. */
		r->random ^= sl_get64(sl_identity_addr(r->identity)->bytes);
	}
	r->random |= 1;
}

/*
 * Above any earlier life of this node, provided its clock did not go back and it sent less than
 * 65,536 announces a second (routing facts, 2.5: neighbours may remember the old sequence and
 * ignore what is not above it).
 */
static uint64_t first_sequence(const struct sl_router *r)
{
	return r->config.first_sequence ? r->config.first_sequence : (r->start_unix_s << 16) + 1;
}

static uint32_t pow2_at_least(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static int allocate(struct sl_router *r)
{
	uint32_t n = r->config.max_peers, ttl_s = (uint32_t)(r->config.coord_ttl_us / 1000000);
	int rc;

	r->by_addr_mask = pow2_at_least(n) - 1;
	r->peers = calloc(n, sizeof(*r->peers));
	r->active = calloc(n, sizeof(*r->active));
	r->by_addr = calloc(r->by_addr_mask + 1u, sizeof(*r->by_addr));
	r->left_out = calloc(n, sizeof(*r->left_out));
	r->dirty_columns = calloc(n, sizeof(*r->dirty_columns));
	r->shadow = aligned_alloc(64, n * sizeof(*r->shadow));
	r->scratch = malloc(SL_SCRATCH_BYTES);
	r->tree.entries = calloc(SL_PATH_MAX + 1, SL_TREE_ENTRY_BYTES);
	r->tree.path = calloc(SL_PATH_MAX + 1, sizeof(*r->tree.path));
	if (!r->peers || !r->active || !r->by_addr || !r->left_out || !r->dirty_columns ||
		!r->shadow || !r->scratch || !r->tree.entries || !r->tree.path)
		return -ENOMEM;
	memset(r->shadow, 0, n * sizeof(*r->shadow));
	rc = sl_filter_matrix_init(&r->matrix, n);
	if (rc == 0)
		rc = sl_coords_init(&r->coords, r->config.coord_size, ttl_s,
			sl_identity_addr(r->identity), r->key, &r->limbo);
	if (rc == 0)
		rc = sl_lookup_init(r);
	if (rc == 0)
		rc = sl_stamps_init(&r->lookup_stamps, 8192);
	if (rc == 0)
		rc = sl_stamps_init(&r->signal_stamps, 8192);
	return rc;
}

struct sl_router *sl_router_create(const struct sl_router_config *config,
	const struct sl_identity *identity, const struct sl_router_sink *sink, uint64_t unix_s,
	uint64_t now_us)
{
	struct sl_router *r;
	int rc = -EINVAL;

	if (!config->max_peers || config->max_peers > UINT16_MAX - 1) {
		errno = EINVAL;
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		errno = ENOMEM;
		return NULL;
	}
	r->config = *config;
	/* NaN included */
	if (!(r->config.parent_hysteresis >= 0.0))
		r->config.parent_hysteresis = 0.0;
	if (r->config.parent_hysteresis > 1.0)
		r->config.parent_hysteresis = 1.0;
	r->identity = identity;
	r->sink = *sink;
	r->limbo.reclaim = sink->reclaim;
	r->limbo.arg = sink->arg;
	r->start_unix_s = unix_s;
	r->start_us = r->now_us = r->sends_us = now_us;
	r->sends_left = SL_SENDS_A_MS;
	seed(r);
	rc = allocate(r);
	if (rc)
		goto fail;
	sl_bucket_init(&r->answer_bucket, 400, 200, now_us);
	r->filter_sequence = first_sequence(r) - 1;
	r->merge_version = 1;
	r->epoch = 1;
	sl_answers_init(&r->answers, now_us);
	sl_tree_start(r, sl_identity_addr(identity), first_sequence(r));
	rc = sl_publish(r);
	if (rc)
		goto fail;
	return r;
fail:
	sl_router_destroy(r);
	errno = -rc;
	return NULL;
}

static void peer_free(struct sl_route_peer *p)
{
	if (!p)
		return;
	free(p->route);
	free(p->entries);
	free(p);
}

void sl_router_destroy(struct sl_router *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->active_count; i++)
		peer_free(r->active[i]);
	sl_publish_unload(r);
	while (r->retired_paths) {
		struct sl_route_path *path = r->retired_paths;

		r->retired_paths = path->next;
		free(path);
	}
	sl_coords_fini(&r->coords);
	sl_filter_matrix_fini(&r->matrix);
	sl_quest_fini(r);
	sl_lookup_fini(r);
	sl_stamps_fini(&r->lookup_stamps);
	sl_stamps_fini(&r->signal_stamps);
	sl_limbo_flush(&r->limbo);
	free(r->limbo.batch);
	free(r->tree.entries);
	free(r->tree.path);
	free(r->scratch);
	free(r->left_out);
	free(r->dirty_columns);
	free(r->shadow);
	free(r->by_addr);
	free(r->active);
	free(r->peers);
	free(r);
}

const struct sl_fib_ref *sl_router_fib(const struct sl_router *r)
{
	return &r->ref;
}

/* --- peers
 * ------------------------------------------------------------------------------------------------------------
 */

static struct sl_route_peer **chain_of(const struct sl_router *r, const struct sl_node_addr *addr)
{
	return &r->by_addr[(uint32_t)sl_node_hash(addr->bytes, r->key) & r->by_addr_mask];
}

struct sl_route_peer *sl_router_peer_by_addr(
	const struct sl_router *r, const struct sl_node_addr *addr)
{
	struct sl_route_peer *p = *chain_of(r, addr);

	while (p && !sl_node_same(&p->addr, addr))
		p = p->hash_next;
	return p;
}

static struct sl_route_peer *peer_by_id(const struct sl_router *r, uint32_t peer_id)
{
	return peer_id < r->config.max_peers ? r->peers[peer_id] : NULL;
}

static void remove_peer(struct sl_router *r, struct sl_route_peer *p)
{
	static const uint8_t empty[SL_FILTER_BYTES];
	bool was_parent = sl_tree_is_parent(r, p);
	struct sl_route_peer **link = chain_of(r, &p->addr), *last = r->active[r->active_count - 1];

	while (*link != p)
		link = &(*link)->hash_next;
	*link = p->hash_next;
	r->active[p->place] = last;
	last->place = p->place;
	r->active_count--;
	r->peers[p->id] = NULL;
	/* The column is somebody else's next. */
	sl_filter_matrix_set(&r->matrix, p->id, p->column, empty);
	sl_publish_peer_gone(r, p->id);
	/* Snapshots until the next refer to its path. */
	sl_route_path_retire(r, p->route);
	p->route = NULL;
	r->index_dirty = r->body_dirty = true;
	sl_filter_changed(r);
	sl_tree_peer_gone(r, was_parent);
	sl_filter_want_all(r);
	peer_free(p);
}

int sl_router_peer_up(struct sl_router *r, uint32_t peer_id, const uint8_t xonly[SL_XONLY_BYTES],
	uint16_t link_mtu, uint64_t now_us)
{
	struct sl_route_peer *p, *other, **chain;

	r->now_us = now_us;
	if (peer_id >= r->config.max_peers)
		return -EINVAL;
	if (r->peers[peer_id])
		remove_peer(r, r->peers[peer_id]);
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->id = peer_id;
	p->life = ++r->life;
	memcpy(p->xonly, xonly, SL_XONLY_BYTES);
	sl_node_addr_from_xonly(&p->addr, xonly);
	/* One node is one peer: a second id for it replaces the first. */
	other = sl_router_peer_by_addr(r, &p->addr);
	if (other)
		remove_peer(r, other);
	p->mtu = link_mtu;
	p->cost = 1.0;
	p->etx = 1.0;
	p->filter_hashes = SL_FILTER_HASHES;
	p->path_dirty = true;
	p->can_send = true;
	/* Honest nodes send two a second at most; each costs us a signature check. */
	sl_bucket_init(&p->tree_bucket, 20, 10, now_us);
	sl_bucket_init(&p->lookup_bucket, 800, 400, now_us);
	/* A gateway whose destinations we forgot: each flow is told once, a thousand at a time. */
	sl_bucket_init(&p->signal_bucket, 1000, 500, now_us);
	chain = chain_of(r, &p->addr);
	p->hash_next = *chain;
	*chain = p;
	r->peers[peer_id] = p;
	p->place = r->active_count;
	r->active[r->active_count++] = p;
	p->filter_wanted = true;
	r->index_dirty = r->body_dirty = true;
	sl_publish_peer(r, p);
	sl_router_wake(r);
	sl_tree_limit_changed(r);
	sl_tree_announce_to(r, p);
	sl_router_settle(r);
	return 0;
}

void sl_router_peer_down(struct sl_router *r, uint32_t peer_id, uint64_t now_us)
{
	struct sl_route_peer *p = peer_by_id(r, peer_id);

	r->now_us = now_us;
	if (p)
		remove_peer(r, p);
	sl_router_settle(r);
}

void sl_router_peer_renew(struct sl_router *r, uint32_t peer_id, uint64_t now_us)
{
	struct sl_route_peer *p = peer_by_id(r, peer_id);

	r->now_us = now_us;
	if (p) {
		p->filter_wanted = true;
		sl_router_wake(r);
		sl_tree_announce_to(r, p);
	}
	sl_router_settle(r);
}

void sl_router_peer_mtu(struct sl_router *r, uint32_t peer_id, uint16_t link_mtu, uint64_t now_us)
{
	struct sl_route_peer *p = peer_by_id(r, peer_id);

	r->now_us = now_us;
	if (p && p->mtu != link_mtu) {
		p->mtu = link_mtu;
		sl_publish_peer(r, p);
		r->body_dirty = true;
		sl_tree_limit_changed(r);
	}
	sl_router_settle(r);
}

void sl_router_peer_metrics(
	struct sl_router *r, uint32_t peer_id, const struct sl_router_metrics *m, uint64_t now_us)
{
	struct sl_route_peer *p = peer_by_id(r, peer_id);
	bool measured, first;
	double cost;

	r->now_us = now_us;
	if (!p)
		return;
	/* A cost that is not a positive number is none. */
	measured = m->measured && m->cost > 0.0 && m->cost < 1e300;
	cost = measured ? m->cost : 1.0;
	first = measured && !p->measured;
	if (cost != p->cost || m->loss != p->loss || m->etx != p->etx)
		r->costs_dirty = true;
	p->measured = measured;
	p->cost = cost;
	p->loss = m->loss;
	p->etx = m->etx;
	sl_publish_peer(r, p);
	if (first)
		sl_tree_first_measure(r);
	sl_again_report(r, p, m->covered_us, m->missing);
	sl_router_settle(r);
}

void sl_router_congestion(struct sl_router *r, bool congested, uint64_t now_us)
{
	r->now_us = now_us;
	if (congested != r->congested) {
		r->congested = congested;
		r->costs_dirty = true;
	}
	sl_router_settle(r);
}

void sl_router_message(
	struct sl_router *r, uint32_t peer_id, const uint8_t *msg, size_t len, uint64_t now_us)
{
	struct sl_route_peer *p = peer_by_id(r, peer_id);

	r->now_us = now_us;
	if (!p || !len)
		return;
	switch (msg[0]) {
	case SL_MSG_TREE_ANNOUNCE:
		sl_tree_message(r, p, msg, len);
		break;
	case SL_MSG_FILTER_ANNOUNCE:
		sl_filter_message(r, p, msg, len);
		break;
	case SL_MSG_LOOKUP_REQUEST:
		sl_lookup_request_message(r, p, msg, len);
		break;
	case SL_MSG_LOOKUP_RESPONSE:
		sl_lookup_response_message(r, p, msg, len);
		break;
	default:
		break;
	}
	sl_router_settle(r);
}

/* --- time
 * --------------------------------------------------------------------------------------------------------------
 */

/* The coordinate cache's housekeeping: a slice every 100 ms, the whole of a full cache about every
 * 30 s. */
static uint64_t coords_tick(struct sl_router *r)
{
	uint32_t slice = r->coords.count / 300 + 16;
	bool expire = r->now_us >= r->expiry_us;

	if (sl_coords_work(
		    &r->coords, expire && slice > WORK_BUDGET ? slice : WORK_BUDGET, false, 0))
		return r->now_us;
	if (expire) {
		(void)sl_coords_work(&r->coords, slice, true, sl_router_seconds(r));
		r->expiry_us = r->now_us + EXPIRY_STEP_US;
	}
	r->counters[SL_ROUTE_COORDS_EVICTED] = r->coords.evicted;
	return r->coords.count ? r->expiry_us : UINT64_MAX;
}

uint64_t sl_router_tick(struct sl_router *r, uint64_t now_us)
{
	uint64_t next, at;

	r->now_us = now_us;
	/* Apart from the rest, which looks at every peer: going through the answers takes many turns. */
	if (now_us >= r->answers_us)
		r->answers_us = sl_answers_work(r, 0);
	if (now_us < r->due_us)
		return r->due_us < r->answers_us ? r->due_us : r->answers_us;
	r->scan_us = now_us;
	next = sl_tree_tick(r);
	at = sl_filter_tick(r);
	next = at < next ? at : next;
	at = sl_quest_tick(r);
	next = at < next ? at : next;
	at = coords_tick(r);
	next = at < next ? at : next;
	at = sl_answers_age(r);
	next = at < next ? at : next;
	/* What the ticks woke was theirs, and is in `next`. */
	r->due_us = next;
	sl_router_settle(r);
	return r->due_us < r->answers_us ? r->due_us : r->answers_us;
}
