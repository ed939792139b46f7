/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next hop against a plain slow oracle written from routing facts, section 7, on random meshes
 * of up to 200 peers, with and without a hop cache, through every kind of change; and workers that
 * look up while control publishes.
 */
#include "fake.h"
#include "../../../lib/crypto/sl_hash.h"

#include <pthread.h>
#include <stdlib.h>

#define S 1000000ull

/* A node of the world: its coordinates, node first, one byte an address (and one to tell them
 * apart). */
struct place {
	struct sl_node_addr at[12];
	unsigned len;
};

static struct sl_node_addr random_addr(void)
{
	struct sl_node_addr a = {{0}};

	a.bytes[0] = (uint8_t)(2 + sl_test_rand() % 250);
	sl_test_rand_bytes(a.bytes + 1, 15); /* no two alike */
	return a;
}

/* Below a random node of the world, or under another root now and then. */
static struct place grow(const struct place *world, unsigned count)
{
	struct place p = {{random_addr()}, 1};
	const struct place *up = &world[sl_test_rand() % count];

	if (up->len < 11 && sl_test_rand() % 20) {
		memcpy(&p.at[1], up->at, up->len * sizeof(p.at[0]));
		p.len = up->len + 1;
	} else {
		p.at[1] = fake_addr((unsigned)(sl_test_rand() % 2)); /* root 0 or 1 */
		p.len = 2;
	}
	return p;
}

/* --- the oracle: plain loops over what control knows
 * ------------------------------------------------------------- */

static uint32_t plain_distance(
	const struct sl_node_addr *a, unsigned la, const struct sl_node_addr *b, unsigned lb)
{
	unsigned s = 0;

	if (memcmp(&a[la - 1], &b[lb - 1], 16) != 0)
		return UINT32_MAX;
	while (s < la && s < lb && memcmp(&a[la - 1 - s], &b[lb - 1 - s], 16) == 0)
		s++;
	return la - s + lb - s;
}

static bool plain_claims(const struct sl_route_peer *p, const struct sl_node_addr *dest)
{
	uint8_t d[32];
	uint64_t h1, h2;

	if (!p->has_filter)
		return false;
	sl_sha256(d, dest, 16);
	memcpy(&h1, d, 8);
	memcpy(&h2, d + 8, 8);
	for (unsigned i = 0; i < p->filter_hashes; i++) {
		uint64_t bit = (h1 + i * h2) % 8192;

		if (!(p->filter[bit / 8] & 1 << bit % 8))
			return false;
	}
	return true;
}

static unsigned node_first(
	struct sl_node_addr *out, const struct sl_node_addr *root_first, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		out[i] = root_first[len - 1 - i];
	return len;
}

/* Peer id, or a negative hop kind. */
static int64_t plain_hop(
	const struct sl_router *r, const struct sl_node_addr *dest, const struct place *coords)
{
	struct sl_node_addr own[SL_PATH_MAX + 1], path[SL_PATH_MAX];
	unsigned own_len = node_first(own, r->tree.path, r->tree.len), n;
	const struct sl_route_peer *best = NULL;
	uint32_t best_distance = 0, d, mine;

	if (memcmp(dest, &r->tree.self, 16) == 0)
		return -SL_HOP_LOCAL;
	for (uint32_t i = 0; i < r->active_count; i++)
		if (memcmp(&r->active[i]->addr, dest, 16) == 0 && r->active[i]->can_send)
			return r->active[i]->id;
	if (!coords)
		return -SL_HOP_NO_COORDS;
	mine = plain_distance(own, own_len, coords->at, coords->len);
	for (uint32_t i = 0; i < r->active_count; i++) {
		const struct sl_route_peer *p = r->active[i];

		if (!p->has_tree || !p->can_send || !plain_claims(p, dest))
			continue;
		n = node_first(path, p->path, p->path_len);
		d = plain_distance(path, n, coords->at, coords->len);
		if (d >= mine)
			continue;
		if (!best || p->cost < best->cost || (p->cost == best->cost && d < best_distance) ||
			(p->cost == best->cost && d == best_distance &&
				memcmp(&p->addr, &best->addr, 16) < 0)) {
			best = p;
			best_distance = d;
		}
	}
	if (best)
		return best->id;
	if (memcmp(&own[own_len - 1], &coords->at[coords->len - 1], 16) != 0)
		return -SL_HOP_NO_ROUTE;
	for (uint32_t i = 0; i < r->active_count; i++) {
		const struct sl_route_peer *p = r->active[i];

		if (!p->has_tree)
			continue;
		n = node_first(path, p->path, p->path_len);
		d = plain_distance(path, n, coords->at, coords->len);
		if (!best || d < best_distance ||
			(d == best_distance && memcmp(&p->addr, &best->addr, 16) < 0)) {
			best = p;
			best_distance = d;
		}
	}
	/* Whether it can send is asked of the nearest only (7.2). */
	return best && best_distance < mine && best->can_send ? (int64_t)best->id : -SL_HOP_NO_ROUTE;
}

/* --- random worlds
 * ------------------------------------------------------------------------------------------------
 */

enum { PLACES = 400, PEERS = 200 };

struct world {
	struct fake *f;
	struct place places[PLACES];
	bool cached[PLACES];
	bool costs_stay, own_moves;
};

static void give_path(struct world *w, uint32_t id, const struct place *p)
{
	struct sl_route_peer *peer = w->f->r->peers[id];
	uint8_t entries[12 * SL_TREE_ENTRY_BYTES] = {0};
	struct sl_tree_announce a = {.sequence = peer->tree_sequence + 1,
		.entries = (uint16_t)p->len,
		.entry = entries,
		.parent = p->at[p->len > 1]};

	for (unsigned i = 0; i < p->len; i++)
		memcpy(entries + i * SL_TREE_ENTRY_BYTES, &p->at[i], 16);
	w->f->r->now_us = w->f->now_us;
	sl_tree_accept(w->f->r, peer, &a);
	sl_router_settle(w->f->r);
}

/* Claims about a third of the world, or all of it; now and then with another number of hashes. */
static void give_filter(struct world *w, uint32_t id)
{
	struct sl_route_peer *p = w->f->r->peers[id];
	uint8_t bits[SL_FILTER_BYTES] = {0}, msg[SL_FILTER_MSG_BYTES];
	unsigned one_in = 1 + (unsigned)(sl_test_rand() % 6);

	for (unsigned i = 0; i < PLACES; i++) {
		struct sl_filter_hash h;

		if (sl_test_rand() % one_in)
			continue;
		sl_filter_hash(&h, w->places[i].at[0].bytes);
		sl_filter_insert(bits, &h);
	}
	sl_filter_announce_build(msg, p->filter_sequence_rx + 1, bits);
	if (sl_test_rand() % 16 == 0)
		msg[9] = (uint8_t)(3 + sl_test_rand() % 5);
	sl_router_message(w->f->r, id, msg, sizeof(msg), w->f->now_us);
}

static void set_addr(struct world *w, uint32_t id, const struct sl_node_addr *addr)
{
	struct sl_router *r = w->f->r;
	struct sl_route_peer *p = r->peers[id], **link;

	link = &r->by_addr[(uint32_t)sl_node_hash(p->addr.bytes, r->key) & r->by_addr_mask];
	while (*link != p)
		link = &(*link)->hash_next;
	*link = p->hash_next;
	p->addr = *addr;
	link = &r->by_addr[(uint32_t)sl_node_hash(addr->bytes, r->key) & r->by_addr_mask];
	p->hash_next = *link;
	*link = p;
	p->path_dirty = r->index_dirty = r->body_dirty = true;
	sl_publish_peer(r, p);
	sl_router_settle(r);
}

/* Our own coordinates: somewhere else in the world. */
static void move_us(struct world *w)
{
	struct sl_tree *t = &w->f->r->tree;
	struct place p = grow(w->places, PLACES);

	t->len = (uint16_t)p.len;
	for (unsigned i = 1; i < p.len; i++)
		t->path[p.len - 1 - i] = p.at[i];
	t->path[p.len - 1] = t->self;
	w->f->r->own_path_dirty = w->f->r->body_dirty = true;
	sl_router_settle(w->f->r);
}

/* Only tests do this: an active peer can send. */
static void toggle_sending(struct world *w, uint32_t id)
{
	struct sl_route_peer *p = w->f->r->peers[id];

	p->can_send = !p->can_send;
	p->path_dirty = w->f->r->index_dirty = w->f->r->body_dirty = true;
	sl_publish_peer(w->f->r, p);
	sl_router_settle(w->f->r);
}

static void change(struct world *w)
{
	struct sl_router *r = w->f->r;
	uint32_t id = (uint32_t)(sl_test_rand() % PEERS), n = (uint32_t)(sl_test_rand() % PLACES);
	struct place p;

	switch (sl_test_rand() % (w->costs_stay ? 33 : 40)) {
	case 0 ... 4: /* a peer comes or goes; its place is one of the world's */
		if (r->peers[id]) {
			sl_router_peer_down(r, id, w->f->now_us);
			break;
		}
		if (sl_router_peer_by_addr(r, &w->places[n].at[0]))
			break;
		fake_peer(w->f, id, 0);
		set_addr(w, id, &w->places[n].at[0]);
		break;
	case 5 ... 14: /* coordinates of a peer */
		if (!r->peers[id])
			break;
		p = grow(w->places, PLACES);
		p.at[0] = r->peers[id]->addr;
		give_path(w, id, &p);
		break;
	case 15 ... 23:
		if (r->peers[id])
			give_filter(w, id);
		break;
	case 24 ... 30: /* learned or learned anew, with other coordinates */
		if (w->cached[n] && sl_test_rand() % 2) {
			(void)sl_coords_remove(&r->coords, &w->places[n].at[0]);
			w->cached[n] = false;
			break;
		}
		p = grow(w->places, PLACES);
		p.at[0] = w->places[n].at[0];
		w->places[n] = p;
		SL_EXPECT_EQ(sl_coords_insert(&r->coords, &p.at[0], p.at[0].bytes, p.len, 0,
				     (uint32_t)(w->f->now_us / S)),
			0);
		w->cached[n] = true;
		break;
	case 31:
		if (w->own_moves && sl_test_rand() % 4 == 0)
			move_us(w);
		break;
	case 32:
		if (r->peers[id] && (sl_test_rand() % 4 == 0 || !r->peers[id]->can_send))
			toggle_sending(w, id);
		break;
	default: /* cost */
		if (r->peers[id])
			fake_cost(w->f, id, (double)(1 + sl_test_rand() % 4) / 2);
	}
}

static struct world *world_create(void)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sl_router_config c;

	sl_router_config_default(&c);
	c.coord_size = PLACES;
	c.max_peers = PEERS;
	c.publish_interval_us = 0;
	c.hold_down_us = 0;
	w->f = fake_create(100, &c, NULL);
	w->places[0] = (struct place){{random_addr(), fake_addr(0)}, 2};
	for (unsigned i = 1; i < PLACES; i++)
		w->places[i] = grow(w->places, i);
	return w;
}

/* The router drops entries of its own accord (5.5, section 8); the oracle asks the cache what is
 * there, by a plain scan. */
static bool still_cached(const struct world *w, unsigned n)
{
	const struct sl_coords *c = &w->f->r->coords;

	for (uint32_t i = 0; i < c->count; i++)
		if (memcmp(&c->entries[c->dense[i]].data->key, &w->places[n].at[0], 16) == 0)
			return true;
	return false;
}

static void compare(struct world *w, struct sl_hop_cache *cache, unsigned n)
{
	struct sl_router *r = w->f->r;
	const uint8_t *dest = w->places[n].at[0].bytes;
	int64_t want = plain_hop(r, &w->places[n].at[0], still_cached(w, n) ? &w->places[n] : NULL),
		got;
	struct sl_hop hop;

	sl_fib_lookup(r->ref.current, cache, &dest, &hop, 1, (uint32_t)(w->f->now_us / S));
	got = hop.kind == SL_HOP_PEER ? (int64_t)hop.peer_id : -(int64_t)hop.kind;
	SL_EXPECT_MSG(got == want, "%s: place %u: %lld, oracle %lld", cache ? "cached" : "plain", n,
		(long long)got, (long long)want);
}

SL_TEST(fib, oracle)
{
	for (unsigned round = 0; round < 3; round++) {
		struct world *w = world_create();
		uint64_t kinds[4] = {0};

		for (unsigned step = 0; step < 1500 && !sl_test_failed(); step++) {
			change(w);
			w->f->now_us += 1000;
			(void)sl_router_tick(w->f->r, w->f->now_us);
			for (unsigned k = 0; k < 8; k++) {
				unsigned n = (unsigned)(sl_test_rand() % PLACES);
				const uint8_t *dest = w->places[n].at[0].bytes;
				struct sl_hop hop;

				compare(w, NULL, n);
				sl_fib_lookup(w->f->r->ref.current, NULL, &dest, &hop, 1, 1);
				kinds[hop.kind]++;
			}
		}
		/* The world exercised all of it. */
		SL_EXPECT_GT(kinds[SL_HOP_PEER], 500);
		SL_EXPECT_GT(kinds[SL_HOP_NO_COORDS], 100);
		SL_EXPECT_GT(kinds[SL_HOP_NO_ROUTE], 20);
		fake_destroy(w->f);
		free(w);
	}
}

/* Control has been round: every answer is the one for what it knows now. */
static void drain(struct world *w)
{
	struct sl_router *r = w->f->r;

	sl_router_settle(r); /* the world puts coordinates into the cache behind its back */
	for (unsigned turns = 0; r->answers.left || r->coords.undecided_count; turns++) {
		w->f->now_us += 1000;
		(void)sl_router_tick(r, w->f->now_us);
		SL_ASSERT(turns < 10000);
	}
}

static int64_t cached_hop(struct world *w, struct sl_hop_cache *cache, unsigned n)
{
	const uint8_t *dest = w->places[n].at[0].bytes;
	struct sl_hop hop;

	sl_fib_lookup(w->f->r->ref.current, cache, &dest, &hop, 1, (uint32_t)(w->f->now_us / S));
	return hop.kind == SL_HOP_PEER ? (int64_t)hop.peer_id : -(int64_t)hop.kind;
}

/*
 * What is decided ahead is never wrong once control has been round, whatever changed since and in
 * how many snapshots: single changes, several, and more than the list of changes holds. The slices
 * are short, so that snapshots come while control is on its way round. (Costs age: none changes
 * here.)
 */
SL_TEST(fib, hop_cache_oracle)
{
	for (unsigned round = 0; round < 3; round++) {
		struct world *w = world_create();
		struct sl_hop_cache *cache = sl_hop_cache_create(
			256); /* smaller than the world: entries are displaced */
		struct sl_answers *a = &w->f->r->answers;
		uint32_t own_moves = 0, own_epoch = a->own_epoch;

		w->costs_stay = true;
		w->own_moves = round > 0;
		a->slice = round == 2 ? 200 : 100000;
		for (unsigned step = 0; step < 800 && !sl_test_failed(); step++) {
			unsigned changes = 1 + (unsigned)(sl_test_rand() % 3);

			if (sl_test_rand() % 40 == 0)
				changes = 200 + (unsigned)(sl_test_rand() % 200);
			for (unsigned tries = 0; tries < changes; tries++) {
				change(w);
				w->f->now_us += sl_test_rand() % 200;
				if (sl_test_rand() % 4 == 0)
					(void)sl_router_tick(w->f->r, w->f->now_us);
			}
			own_moves += own_epoch != a->own_epoch;
			own_epoch = a->own_epoch;
			drain(w);
			for (unsigned k = 0; k < 30; k++)
				compare(w, cache, (unsigned)(sl_test_rand() % PLACES));
			if (step % 50 == 0)
				for (unsigned n = 0; n < PLACES; n++)
					compare(w, cache, n);
		}
		SL_EXPECT_GT(own_moves, round ? 10 : 2);
		/* Most answers stood, and the worker decided hardly any. */
		SL_EXPECT_GT(a->stood, a->decided);
		printf("own coordinates changed %u times; %llu answers stood, %llu decided ahead, %llu of "
		       "%llu here\n",
			own_moves, (unsigned long long)a->stood, (unsigned long long)a->decided,
			(unsigned long long)sl_hop_cache_decided(cache), 800ull * 30);
		SL_EXPECT_EQ(sl_hop_cache_decided(cache), 0);
		sl_hop_cache_destroy(cache);
		fake_destroy(w->f);
		free(w);
	}
}

/* Before control has been round, an answer is one that was right at some moment since the round
 * before. */
SL_TEST(fib, answers_of_a_moment_ago)
{
	enum { WATCHED = 24, MOMENTS = 40 };
	struct world *w = world_create();
	struct sl_hop_cache *cache = sl_hop_cache_create(4096);
	uint64_t former = 0;

	w->costs_stay = w->own_moves = true;
	w->f->r->answers.slice = 60;
	for (unsigned step = 0; step < 80 && !sl_test_failed(); step++) {
		int64_t right[WATCHED][MOMENTS];
		unsigned place[WATCHED], moments = 0;

		drain(w);
		for (unsigned i = 0; i < WATCHED; i++)
			place[i] = (unsigned)(sl_test_rand() % PLACES);
		while (moments < MOMENTS) {
			for (unsigned i = 0; i < WATCHED; i++) {
				unsigned n = place[i];
				int64_t got = cached_hop(w, cache, n);
				bool found = false;

				right[i][moments] = plain_hop(w->f->r, &w->places[n].at[0],
					still_cached(w, n) ? &w->places[n] : NULL);
				for (unsigned m = 0; m <= moments; m++)
					found |= right[i][m] == got;
				SL_EXPECT_MSG(found, "place %u: %lld was never right", n,
					(long long)got);
				former += got != right[i][moments];
			}
			moments++;
			change(w);
		}
	}
	/* It happened at all. */
	SL_EXPECT_GT(former, 0);
	sl_hop_cache_destroy(cache);
	fake_destroy(w->f);
	free(w);
}

/* With costs that change all the time the answers are those of at most a round of ageing ago. */
SL_TEST(fib, hop_cache_oracle_with_costs)
{
	struct world *w = world_create();
	struct sl_hop_cache *cache = sl_hop_cache_create(4096);

	for (unsigned i = 0; i < 400; i++)
		change(w);
	for (unsigned step = 0; step < 60 && !sl_test_failed(); step++) {
		for (unsigned i = 0; i < 10; i++)
			change(w);
		for (uint64_t end = w->f->now_us + 2 * SL_ANSWER_AGE_US; w->f->now_us < end;) {
			w->f->now_us += 100000;
			(void)sl_router_tick(w->f->r, w->f->now_us);
		}
		for (unsigned n = 0; n < PLACES; n++)
			compare(w, cache, n);
	}
	sl_hop_cache_destroy(cache);
	fake_destroy(w->f);
	free(w);
}

/* A cheaper way is found after some seconds at the latest, and not at once. */
SL_TEST(fib, costs_age)
{
	struct fake *f = fake_create(0, NULL, NULL);
	struct sl_hop_cache *cache = sl_hop_cache_create(16);
	struct sl_node_addr dest = fake_addr(0x50);
	const uint8_t *one = dest.bytes;
	struct sl_hop hop;

	for (unsigned i = 1; i <= 2; i++) {
		fake_peer(f, i, 0x20 + i);
		fake_path(f, i, 2, 0x20 + i, 0);
		fake_filter(f, i, 1, 0x50);
	}
	fake_own(f, 2, 0x10, 0x11); /* another tree than the destination's: both are closer */
	fake_coords(f, 2, 0x50, 0);
	sl_router_settle(f->r);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 1);
	SL_EXPECT_EQ(hop.peer_id, 1);
	(void)sl_answers_age(f->r); /* a round has just been */
	fake_cost(f, 2, 0.5);
	f->r->now_us += 4 * S;
	(void)sl_answers_age(f->r);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 5);
	SL_EXPECT_EQ(hop.peer_id, 1);
	f->r->now_us += S;
	(void)sl_answers_age(f->r);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 6);
	SL_EXPECT_EQ(hop.peer_id, 2);
	SL_EXPECT_EQ(sl_hop_cache_decided(cache), 0);
	sl_hop_cache_destroy(cache);
	fake_destroy(f);
}

/* A peer that is gone gets nothing more, and who has its number next does not get what was its. */
SL_TEST(fib, answers_through_a_peer_that_is_gone)
{
	struct fake *f = fake_create(0, NULL, NULL);
	struct sl_hop_cache *cache = sl_hop_cache_create(16);
	struct sl_node_addr dest = fake_addr(0x50);
	const uint8_t *one = dest.bytes;
	struct sl_hop hop;

	fake_peer(f, 1, 0x21);
	fake_path(f, 1, 2, 0x21, 0);
	fake_coords(f, 3, 0x50, 0x21, 0);
	sl_router_settle(f->r);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 1);
	SL_EXPECT(hop.kind == SL_HOP_PEER && hop.peer_id == 1);
	/* Published, but control has not come by yet: the word still names peer 1. */
	sl_router_peer_down(f->r, 1, f->now_us);
	SL_EXPECT(f->r->peers[1] == NULL);
	fake_peer(f, 1, 0x22);
	fake_path(f, 1, 2, 0x22, 0);
	f->r->coords.entries[sl_coords_id(&f->r->coords, &dest)].hop = sl_coord_hop(1, 1);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 1);
	SL_EXPECT_EQ(hop.kind, SL_HOP_NO_ROUTE);
	SL_EXPECT_EQ(sl_hop_cache_decided(cache), 1);
	sl_hop_cache_destroy(cache);
	fake_destroy(f);
}

/* MTU and congestion are those of now, not of when the hop was remembered; the cache entry's use is
 * renewed by hits. */
SL_TEST(fib, remembered_hops_carry_current_values)
{
	struct fake *f = fake_create(0, NULL, NULL);
	struct sl_hop_cache *cache = sl_hop_cache_create(16);
	struct sl_node_addr dest = fake_addr(0x50);
	const uint8_t *one = dest.bytes;
	struct sl_hop hop;

	fake_peer(f, 1, 0x20);
	fake_path(f, 1, 2, 0x20, 0);
	fake_coords(f, 3, 0x50, 0x20, 0);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 1);
	SL_EXPECT(hop.kind == SL_HOP_PEER && hop.mtu == 1280 && !hop.congested);
	sl_router_peer_mtu(f->r, 1, 1400, f->now_us);
	sl_router_congestion(f->r, true, f->now_us + S);
	for (uint32_t now_s = 2; now_s < 2000; now_s += 250) {
		sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, now_s);
		SL_EXPECT(hop.kind == SL_HOP_PEER && hop.mtu == 1400 && hop.congested);
	}
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 2500);
	SL_EXPECT_EQ(hop.kind, SL_HOP_NO_COORDS);
	sl_hop_cache_destroy(cache);
	fake_destroy(f);
}

/* Coordinates that live shorter than a remembered answer take it with them. */
SL_TEST(fib, remembered_hops_end_with_their_coordinates)
{
	struct sl_hop_cache *cache = sl_hop_cache_create(16);
	struct sl_node_addr dest = fake_addr(0x50);
	const uint8_t *one = dest.bytes;
	struct sl_router_config c;
	struct sl_hop hop;
	struct fake *f;

	sl_router_config_default(&c);
	c.coord_ttl_us = 2 * S;
	c.publish_interval_us = 0;
	f = fake_create(0, &c, NULL);
	fake_peer(f, 1, 0x20);
	fake_path(f, 1, 2, 0x20, 0);
	fake_coords(f, 3, 0x50, 0x20, 0);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 1);
	SL_EXPECT_EQ(hop.kind, SL_HOP_PEER);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 3);
	SL_EXPECT_EQ(hop.kind, SL_HOP_PEER);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 5);
	SL_EXPECT_EQ(hop.kind, SL_HOP_PEER); /* used at 3 */
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 6);
	sl_fib_lookup(f->r->ref.current, cache, &one, &hop, 1, 9);
	SL_EXPECT_EQ(hop.kind, SL_HOP_NO_COORDS);
	sl_hop_cache_destroy(cache);
	fake_destroy(f);
}

/* --- workers
 * -------------------------------------------------------------------------------------------------------
 */

enum { WORKERS = 3 };

struct work {
	const struct sl_fib_ref *ref;
	struct sl_node_addr dest[PLACES]; /* a copy: the world's places move */
	uint64_t turns[WORKERS];	  /* finished bursts */
	uint64_t found, stop;
};

struct worker {
	struct work *work;
	unsigned index;
	uint64_t random;
	struct sl_hop_cache *cache;
};

static struct work work;

static void *worker_run(void *arg)
{
	struct worker *me = arg;
	struct sl_hop_cache *cache = me->cache;
	uint64_t found = 0;

	while (!__atomic_load_n(&me->work->stop, __ATOMIC_ACQUIRE)) {
		const uint8_t *dest[40];
		struct sl_hop hops[40];

		for (unsigned i = 0; i < 40; i++) {
			me->random = me->random * 6364136223846793005ull + 1442695040888963407ull;
			dest[i] = me->work->dest[(me->random >> 33) % PLACES].bytes;
		}
		const struct sl_fib *f = __atomic_load_n(&me->work->ref->current, __ATOMIC_ACQUIRE);

		sl_fib_lookup(f, me->index ? cache : NULL, dest, hops, 40, 1);
		for (unsigned i = 0; i < 40; i++) {
			found += hops[i].kind == SL_HOP_PEER;
			if (hops[i].kind == SL_HOP_PEER && hops[i].peer_id >= PEERS)
				abort();
		}
		__atomic_store_n(&me->work->turns[me->index], me->work->turns[me->index] + 1,
			__ATOMIC_RELEASE);
	}
	__atomic_fetch_add(&me->work->found, found, __ATOMIC_RELAXED);
	return NULL;
}

struct deferred {
	struct deferred *next;
	void (*fn)(void *, void *);
	void *fn_arg, *obj;
	uint64_t after[WORKERS];
};
static struct deferred *deferred;

static void defer(void *arg, void (*fn)(void *, void *), void *fn_arg, void *obj)
{
	struct deferred *d = malloc(sizeof(*d));

	(void)arg;
	*d = (struct deferred){.next = deferred, .fn = fn, .fn_arg = fn_arg, .obj = obj};
	for (unsigned i = 0; i < WORKERS; i++)
		d->after[i] = __atomic_load_n(&work.turns[i], __ATOMIC_ACQUIRE) + 1;
	deferred = d;
}

static void collect(bool all)
{
	for (struct deferred **at = &deferred; *at;) {
		struct deferred *d = *at;
		bool over = true;

		for (unsigned i = 0; i < WORKERS; i++)
			over &= __atomic_load_n(&work.turns[i], __ATOMIC_ACQUIRE) > d->after[i];
		if (!over && !all) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		d->fn(d->fn_arg, d->obj);
		free(d);
	}
}

SL_TEST(fib, workers_while_control_publishes)
{
	struct world *w = world_create();
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	uint32_t epoch;

	memset(&work, 0, sizeof(work));
	w->f->r->limbo.reclaim = defer;
	work.ref = sl_router_fib(w->f->r);
	for (unsigned i = 0; i < 400; i++) {
		change(w);
		(void)sl_router_tick(w->f->r, w->f->now_us);
	}
	for (unsigned i = 0; i < PLACES; i++) {
		const struct place *p = &w->places[i];

		work.dest[i] = p->at[0];
		SL_EXPECT_EQ(
			sl_coords_insert(&w->f->r->coords, &p->at[0], p->at[0].bytes, p->len, 0, 1),
			0);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){&work, i, sl_test_rand(), sl_hop_cache_create(512)};
		SL_ASSERT(pthread_create(&threads[i], NULL, worker_run, &workers[i]) == 0);
	}
	epoch = w->f->r->epoch;
	w->f->r->answers.slice = 500; /* snapshots come while control is on its way round */
	w->costs_stay = w->own_moves = true;
	for (unsigned step = 0; step < 4000; step++) {
		change(w);
		w->f->now_us += 1000;
		(void)sl_router_tick(w->f->r, w->f->now_us);
		collect(false);
	}
	__atomic_store_n(&work.stop, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < WORKERS; i++)
		(void)pthread_join(threads[i], NULL);
	SL_EXPECT_GT(w->f->r->epoch, epoch + 100);
	SL_EXPECT_GT(work.found, 0);
	/* Whatever they saw on the way, what they remember now is right. */
	drain(w);
	for (unsigned n = 0; n < PLACES; n++)
		for (unsigned i = 1; i < WORKERS; i++)
			compare(w, workers[i].cache, n);
	for (unsigned i = 0; i < WORKERS; i++)
		sl_hop_cache_destroy(workers[i].cache);
	w->f->r->limbo.reclaim = NULL;
	if (w->f->r->limbo.batch)
		for (size_t i = 0; i < w->f->r->limbo.batch->count; i++)
			free(w->f->r->limbo.batch->items[i]);
	if (w->f->r->limbo.batch)
		w->f->r->limbo.batch->count = 0;
	collect(true);
	fake_destroy(w->f);
	free(w);
}
