/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookups of our own: routing facts, 11.5 (ours) and 11.6. Few at a time: a list. */
#include "router.h"
#include "../crypto/sl_hash.h"

#include <errno.h>
#include <stdlib.h>

#define QUESTS_MAX 1024
#define ATTEMPTS 4
#define MTU_FLOOR 256 /* smaller values of remotes count as absent (9.7) */

struct sl_quest {
	struct sl_quest *next;
	struct sl_node_addr target;
	uint8_t xonly[SL_XONLY_BYTES];
	uint64_t ids[ATTEMPTS]; /* a new one for each attempt; answers to any are taken */
	unsigned attempts;
	uint64_t next_us;
};

static const uint64_t attempt_wait_us[ATTEMPTS] = {1000000, 2000000, 4000000, 8000000};

bool sl_quest_is_own(const struct sl_router *r, uint64_t request_id)
{
	for (const struct sl_quest *q = r->quests; q; q = q->next)
		for (unsigned i = 0; i < q->attempts; i++)
			if (q->ids[i] == request_id)
				return true;
	return false;
}

/* --- back-off after failures (node.lookup.backoff_*; off unless configured) ---------------------- */

#define BACKOFF_SETS 128u
#define BACKOFF_WAYS 8u

struct sl_backoff {
	struct sl_node_addr target;
	uint32_t failures; /* in a row; 0 = empty */
	uint64_t until_us;
};

/* Its place, or the one that is over first. NULL when there is no table. */
static struct sl_backoff *backoff_of(const struct sl_router *r, const struct sl_node_addr *target)
{
	uint32_t set = (uint32_t)(sl_node_hash(target->bytes, r->key) >> 16) % BACKOFF_SETS;
	struct sl_backoff *b = r->backoffs ? r->backoffs + set * BACKOFF_WAYS : NULL, *first = b;

	for (unsigned i = 0; b && i < BACKOFF_WAYS; i++) {
		if (b[i].failures && sl_node_same(&b[i].target, target))
			return &b[i];
		if (b[i].until_us < first->until_us)
			first = &b[i];
	}
	return first;
}

static bool backed_off(const struct sl_router *r, const struct sl_node_addr *target)
{
	const struct sl_backoff *b = backoff_of(r, target);

	return b && b->failures && sl_node_same(&b->target, target) && r->now_us < b->until_us;
}

static void note_failure(struct sl_router *r, const struct sl_node_addr *target)
{
	uint64_t wait = r->config.lookup_backoff_base_us, most = r->config.lookup_backoff_max_us;
	struct sl_backoff *b;

	if (!wait || !most)
		return;
	if (!r->backoffs)
		r->backoffs = calloc((size_t)BACKOFF_SETS * BACKOFF_WAYS, sizeof(*r->backoffs));
	b = backoff_of(r, target);
	if (!b)
		return; /* no memory: no back-off */
	if (!b->failures || !sl_node_same(&b->target, target))
		*b = (struct sl_backoff){.target = *target};
	for (uint32_t i = 0; i < b->failures && wait < most; i++)
		wait *= 2;
	b->failures++;
	b->until_us = r->now_us + (wait < most ? wait : most);
}

static void note_success(struct sl_router *r, const struct sl_node_addr *target)
{
	struct sl_backoff *b = backoff_of(r, target);

	if (b && b->failures && sl_node_same(&b->target, target))
		memset(b, 0, sizeof(*b));
}

void sl_quest_forget_failures(struct sl_router *r)
{
	free(r->backoffs);
	r->backoffs = NULL;
}

/* --- asking -------------------------------------------------------------------------------------- */

/* One attempt; how many peers were asked. */
static uint32_t ask(struct sl_router *r, struct sl_quest *quest)
{
	const struct sl_tree *t = &r->tree;
	uint8_t coords[(SL_PATH_MAX + 1) * SL_NODE_ADDR_BYTES];
	struct sl_lookup_request q = {.request_id = sl_router_random(r),
		.target = quest->target,
		.origin = t->self,
		.ttl = r->config.lookup_ttl,
		.coords_count = t->len,
		.coords = coords};
	size_t len;

	for (unsigned i = 0; i < t->len; i++)
		memcpy(coords + (size_t)i * 16, &t->path[t->len - 1 - i], 16);
	quest->ids[quest->attempts] = q.request_id;
	quest->next_us = r->now_us + attempt_wait_us[quest->attempts];
	quest->attempts++;
	len = sl_lookup_request_build(r->scratch, SL_SCRATCH_BYTES, &q);
	return len ? sl_lookup_fan_out(r, NULL, &q, r->scratch, len, false) : 0;
}

int sl_router_lookup(struct sl_router *r, const uint8_t xonly[SL_XONLY_BYTES], uint64_t now_us)
{
	struct sl_quest *quest;
	struct sl_node_addr target;

	r->now_us = now_us;
	sl_node_addr_from_xonly(&target, xonly);
	if (sl_node_same(&target, &r->tree.self))
		return -EINVAL;
	for (quest = r->quests; quest; quest = quest->next)
		if (sl_node_same(&quest->target, &target))
			return -EALREADY;
	if (backed_off(r, &target)) {
		sl_route_count(r, SL_ROUTE_LOOKUP_BACKOFF);
		return -EAGAIN;
	}
	if (r->quest_count == QUESTS_MAX)
		return -ENOMEM;
	quest = calloc(1, sizeof(*quest));
	if (!quest)
		return -ENOMEM;
	quest->target = target;
	memcpy(quest->xonly, xonly, SL_XONLY_BYTES);
	if (!ask(r, quest)) {
		free(quest);
		note_failure(r, &target);
		sl_route_count(r, SL_ROUTE_LOOKUP_FAILED);
		return -EHOSTUNREACH;
	}
	quest->next = r->quests;
	r->quests = quest;
	r->quest_count++;
	if (quest->next_us < r->due_us)
		r->due_us = quest->next_us;
	sl_route_count(r, SL_ROUTE_LOOKUP_ORIGINATED);
	return 0;
}

static void finish(struct sl_router *r, struct sl_quest **link, bool found, uint16_t path_mtu)
{
	struct sl_quest *quest = *link;

	*link = quest->next;
	r->quest_count--;
	if (found)
		note_success(r, &quest->target);
	else
		note_failure(r, &quest->target);
	sl_route_count(r, found ? SL_ROUTE_LOOKUP_RESOLVED : SL_ROUTE_LOOKUP_FAILED);
	if (r->sink.lookup_done)
		r->sink.lookup_done(r->sink.arg, &quest->target, found, path_mtu);
	free(quest);
}

bool sl_quest_response(struct sl_router *r, const struct sl_lookup_response *a)
{
	uint16_t path_mtu = a->path_mtu >= MTU_FLOOR ? a->path_mtu : 0;
	struct sl_quest **link, *quest;
	uint8_t digest[32];
	bool ours = false;

	for (link = &r->quests; (quest = *link); link = &quest->next) {
		for (unsigned i = 0; i < quest->attempts; i++)
			ours |= quest->ids[i] == a->request_id;
		if (ours)
			break;
	}
	if (!ours)
		return false;
	sl_lookup_proof_digest(digest, a);
	if (!sl_node_same(&a->target, &quest->target) ||
		!sl_verify(a->proof, digest, quest->xonly) ||
		sl_coords_insert(&r->coords, &quest->target, a->coords, a->coords_count, path_mtu,
			sl_router_seconds(r)) != 0) {
		sl_route_count(r, SL_ROUTE_RESPONSE_BAD_PROOF);
		return true;
	}
	sl_route_count(r, SL_ROUTE_COORDS_LEARNED);
	finish(r, link, true, path_mtu);
	return true;
}

uint64_t sl_quest_tick(struct sl_router *r)
{
	uint64_t next = UINT64_MAX;

	for (struct sl_quest **link = &r->quests; *link;) {
		struct sl_quest *quest = *link;

		if (r->now_us >= quest->next_us) {
			if (quest->attempts == ATTEMPTS) {
				finish(r, link, false, 0);
				continue;
			}
			(void)ask(r, quest);
		}
		if (quest->next_us < next)
			next = quest->next_us;
		link = &quest->next;
	}
	return next;
}

void sl_quest_fini(struct sl_router *r)
{
	sl_quest_forget_failures(r);
	while (r->quests) {
		struct sl_quest *quest = r->quests;

		r->quests = quest->next;
		free(quest);
	}
}
