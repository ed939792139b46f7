/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups: relayed, and answered when we are the target. Routing facts, section 11.
 *
 * Requests seen are remembered for ten seconds: where they came from is where the answer goes. The
 * records live in a ring (all have the same lifetime, so the oldest is the next to go) with hash
 * chains over it. No peer may hold more than its share, so that one that floods fresh ids does not
 * take the others' places.
 */
#include "router.h"

#include <errno.h>
#include <stdlib.h>

#define RECORDS 16384 /* the reference keeps 4096; more does not show on the wire */
#define RECORDS_PER_PEER 4096

struct record {
	uint64_t id;
	uint64_t us;
	uint32_t peer_id, peer_life;
	uint32_t next; /* in the chain */
	bool answered;
};

struct sl_recent {
	uint32_t head, count;	 /* ring: the oldest, how many */
	uint32_t chain[RECORDS]; /* index + 1; 0 = empty, so that calloc'ed pages stay unbacked
				    until used */
	struct record ring[RECORDS];
};

int sl_lookup_init(struct sl_router *r)
{
	struct sl_recent *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	r->recent_lookups = t;
	return 0;
}

void sl_lookup_fini(struct sl_router *r)
{
	free(r->recent_lookups);
	r->recent_lookups = NULL;
}

static uint32_t *chain_of(struct sl_router *r, uint64_t id)
{
	uint64_t h = (id ^ r->key[0]) * (r->key[1] | 1);

	return &r->recent_lookups->chain[(h >> 40) % RECORDS];
}

static struct record *find(struct sl_router *r, uint64_t id)
{
	for (uint32_t at = *chain_of(r, id); at; at = r->recent_lookups->ring[at - 1].next)
		if (r->recent_lookups->ring[at - 1].id == id)
			return &r->recent_lookups->ring[at - 1];
	return NULL;
}

static struct sl_route_peer *recorded_peer(const struct sl_router *r, const struct record *rec)
{
	struct sl_route_peer *p =
		rec->peer_id < r->config.max_peers ? r->peers[rec->peer_id] : NULL;

	return p && p->life == rec->peer_life ? p : NULL;
}

static void forget_old(struct sl_router *r)
{
	struct sl_recent *t = r->recent_lookups;

	while (t->count) {
		struct record *rec = &t->ring[t->head];
		struct sl_route_peer *p;
		uint32_t *link;

		if (r->now_us - rec->us <= r->config.lookup_recent_us)
			return;
		for (link = chain_of(r, rec->id); *link != t->head + 1;
			link = &t->ring[*link - 1].next)
			;
		*link = rec->next;
		p = recorded_peer(r, rec);
		if (p)
			p->lookups_recorded--;
		t->head = (t->head + 1) % RECORDS;
		t->count--;
	}
}

static bool record(struct sl_router *r, struct sl_route_peer *p, uint64_t id)
{
	struct sl_recent *t = r->recent_lookups;
	uint32_t at = (t->head + t->count) % RECORDS, *chain = chain_of(r, id);

	if (t->count == RECORDS || p->lookups_recorded == RECORDS_PER_PEER)
		return false;
	t->count++;
	p->lookups_recorded++;
	t->ring[at] = (struct record){
		.id = id, .us = r->now_us, .peer_id = p->id, .peer_life = p->life, .next = *chain};
	*chain = at + 1;
	return true;
}

/* --- requests
 * -------------------------------------------------------------------------------------------------
 */

static void answer(struct sl_router *r, struct sl_route_peer *p, const struct sl_lookup_request *q)
{
	struct sl_tree *t = &r->tree;
	uint8_t coords[(SL_PATH_MAX + 1) * SL_NODE_ADDR_BYTES], digest[32],
		proof[SL_SIGNATURE_BYTES];
	struct sl_lookup_response a = {.request_id = q->request_id,
		.target = q->target,
		.path_mtu = UINT16_MAX,
		.coords_count = t->len,
		.coords = coords,
		.proof = proof};
	size_t len;

	if (!sl_bucket_take(&r->answer_bucket, r->now_us)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_LIMITED);
		return;
	}
	for (unsigned i = 0; i < t->len; i++)
		memcpy(coords + (size_t)i * 16, &t->path[t->len - 1 - i], 16);
	sl_lookup_proof_digest(digest, &a);
	sl_sign(proof, digest, r->identity);
	if (p->mtu && p->mtu < a.path_mtu)
		a.path_mtu = p->mtu; /* not part of the proof */
	len = sl_lookup_response_build(r->scratch, SL_SCRATCH_BYTES, &a);
	if (len && sl_router_send(r, p, r->scratch, len, 0) == 0)
		sl_route_count(r, SL_ROUTE_LOOKUP_ANSWERED);
}

/*
 * To whom: the target itself if it is adjacent; tree peers whose filter claims it; if there is
 * none, the other peers whose filter does. Never back to where it came from, nor to the one who
 * asks (section 15, safe local choices).
 */
uint32_t sl_lookup_fan_out(struct sl_router *r, const struct sl_route_peer *from,
	const struct sl_lookup_request *q, const uint8_t *msg, size_t len, bool dry)
{
	struct sl_route_peer *target = sl_router_peer_by_addr(r, &q->target);
	struct sl_filter_hash h;
	uint32_t sent = 0;

	if (target && target != from)
		return dry || sl_router_send(r, target, msg, len, 0) == 0;
	sl_filter_hash(&h, q->target.bytes);
	for (int tree = 1; tree >= 0 && !sent; tree--) {
		for (uint32_t i = 0; i < r->active_count; i++) {
			struct sl_route_peer *p = r->active[i];

			if (p == from || !p->has_filter ||
				sl_tree_is_tree_peer(r, p) != (bool)tree ||
				sl_node_same(&p->addr, &q->origin) ||
				!sl_filter_claims(p->filter, &h, p->filter_hashes))
				continue;
			if (dry || sl_router_send(r, p, msg, len, 0) == 0)
				sent++;
		}
	}
	return sent;
}

/*
 * What the limiter goes by. The plain rule lets one lookup a target pass in two seconds, whoever
 * asks: whatever many ask for cannot be found, and one that fails is in the way of the next. Here
 * those who ask fall into eight classes by chance, and one of each passes: four a second at most.
 */
#define ASKER_CLASSES 8

static struct sl_node_addr limited(const struct sl_router *r, const struct sl_lookup_request *q)
{
	struct sl_node_addr key = q->target;

	key.bytes[0] ^= (uint8_t)(sl_node_hash(q->origin.bytes, r->key) % ASKER_CLASSES);
	return key;
}

static void relay(struct sl_router *r, struct sl_route_peer *p, struct sl_lookup_request *q)
{
	const struct sl_node_addr key = limited(r, q);
	size_t len;

	if (!q->ttl) {
		sl_route_count(r, SL_ROUTE_LOOKUP_TTL);
		return;
	}
	/* The limiter is stamped only when there is somebody to send to. */
	if (!sl_stamps_free(&r->lookup_stamps, r, &key, r->config.lookup_forward_min_us)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_LIMITED);
		return;
	}
	q->ttl--;
	len = sl_lookup_request_build(r->scratch, SL_SCRATCH_BYTES, q);
	if (!len || !sl_lookup_fan_out(r, p, q, r->scratch, len, true)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_NO_PEER);
		return;
	}
	(void)sl_stamps_take(&r->lookup_stamps, r, &key, r->config.lookup_forward_min_us);
	if (sl_lookup_fan_out(r, p, q, r->scratch, len, false))
		sl_route_count(r, SL_ROUTE_LOOKUP_FORWARDED);
}

void sl_lookup_request_message(
	struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len)
{
	struct sl_lookup_request q;

	sl_route_count(r, SL_ROUTE_LOOKUP_RX);
	if (sl_lookup_request_parse(&q, msg, len) != 0 || q.coords_count > SL_PATH_MAX) {
		sl_route_count(r, SL_ROUTE_LOOKUP_MALFORMED);
		return;
	}
	forget_old(r);
	/* The reference takes its own request for a stranger's when it comes back, and then relays
	 * the answer away. */
	if (sl_quest_is_own(r, q.request_id)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_OWN_RETURNED);
		return;
	}
	if (find(r, q.request_id)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_DUPLICATE);
		return;
	}
	if (!sl_bucket_take(&p->lookup_bucket, r->now_us)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_PEER_LIMITED);
		return;
	}
	if (!record(r, p, q.request_id)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_TABLE_FULL);
		return;
	}
	if (sl_node_same(&q.target, &r->tree.self))
		answer(r, p, &q);
	else
		relay(r, p, &q);
}

/* --- responses
 * ------------------------------------------------------------------------------------------------
 */

void sl_lookup_response_message(
	struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len)
{
	struct sl_lookup_response a;
	struct sl_route_peer *back;
	struct record *rec;

	(void)p; /* whoever it comes from, as the reference */
	if (sl_lookup_response_parse(&a, msg, len) != 0 || a.coords_count > SL_PATH_MAX) {
		sl_route_count(r, SL_ROUTE_LOOKUP_MALFORMED);
		return;
	}
	if (sl_quest_response(r, &a))
		return;
	rec = find(r, a.request_id);
	if (!rec) {
		sl_route_count(r, SL_ROUTE_RESPONSE_UNSOLICITED);
		return;
	}
	if (rec->answered) {
		sl_route_count(r, SL_ROUTE_RESPONSE_REPEATED);
		return;
	}
	rec->answered = true; /* before the attempt: one attempt only */
	back = recorded_peer(r, rec);
	if (!back)
		return;
	if (back->mtu && back->mtu < a.path_mtu)
		a.path_mtu = back->mtu;
	len = sl_lookup_response_build(r->scratch, SL_SCRATCH_BYTES, &a);
	if (len && sl_router_send(r, back, r->scratch, len, 0) == 0)
		sl_route_count(r, SL_ROUTE_RESPONSE_FORWARDED);
}
