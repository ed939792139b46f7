/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W7, a weak spot that the routing facts do not list. When the root dies, the plain rules make
 * everyone look for another way to it, and everyone is offered what others believed a moment ago:
 * paths to the dead root grow by a hop a round until their announces fit no packet any more, and
 * then stay for ever. So news that a root is gone goes before rumours that it is not: when our
 * parent was the root and is lost, or our parent withdraws the root (or runs through us all at
 * once), only peers that are closer to that root than we were are believed about it, for some
 * seconds. A peer that is closer cannot have it from us or from anybody below us, so the withdrawal
 * passes down the tree level by level and nothing comes back up. "Than we were" is the closest we
 * were within a minute: whoever has just taken a longer way, because its parent died too, may be
 * offered what hung on it before.
 *
 * If the root lives after all, a longer way to it is taken when the doubt is over: root_doubt_us, in
 * which all of the root's neighbours miss it, and as long as the withdrawal takes to reach whoever
 * offers the way, half a second (the announces' interval) an entry of its path. A doubt that returns
 * after such a way was taken lasts twice as long.
 */
#include "router.h"

#define MEMORY_US 60000000
#define LEVEL_US 500000
#define MOST_US 60000000

/* Before our coordinates are computed anew: until now we were there. */
void sl_doubt_before(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;

	if (t->len == t->near_len && sl_node_same(&t->root, &t->near_root))
		t->near_us = r->now_us;
}

/* And after. A larger root does not take the place of a smaller one at once: that one may come back. */
void sl_doubt_after(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;
	int other = sl_node_addr_cmp(&t->root, &t->near_root);

	if (t->near_len && r->now_us - t->near_us < MEMORY_US &&
		(other > 0 || (other == 0 && t->len > t->near_len)))
		return;
	t->near_root = t->root;
	t->near_len = t->len;
	t->near_us = r->now_us;
}

/* How long a path of so many entries to the doubted root is not believed. */
static uint64_t doubt_length_us(const struct sl_router *r, uint32_t entries)
{
	uint64_t us = r->config.root_doubt_us + entries * (uint64_t)LEVEL_US;

	us <<= r->tree.doubt_again;
	return us < MOST_US ? us : MOST_US;
}

/* Our parent has lost this root, to which our path had so many entries. */
void sl_doubt(struct sl_router *r, const struct sl_node_addr *root, uint16_t len)
{
	struct sl_tree *t = &r->tree;
	uint16_t near = len;
	bool same = t->doubt_until_us && sl_node_same(&t->doubted, root) &&
		    r->now_us < t->doubt_until_us + MEMORY_US;

	if (!r->config.root_doubt_us)
		return;
	if (sl_node_same(&t->near_root, root) && t->near_len < near)
		near = t->near_len;
	/* Believed too early: we stood where only the end of the doubt can have taken us. */
	if (same && len > t->doubt_len)
		t->doubt_again += t->doubt_again < 4;
	else if (same && r->now_us < t->doubt_us + doubt_length_us(r, t->doubt_len))
		goto same_wave;
	else if (!same)
		t->doubt_again = 0;
	t->doubt_us = r->now_us;
	t->doubt_until_us = r->now_us + doubt_length_us(r, SL_PATH_MAX);
	sl_route_count(r, SL_ROUTE_ROOT_DOUBTED);
	sl_router_wake(r);
same_wave:
	if (!same || near < t->doubt_len)
		t->doubt_len = near;
	t->doubted = *root;
}

/* Until when this peer is not believed: 0 = it is. */
uint64_t sl_doubtful_until(const struct sl_router *r, const struct sl_route_peer *p)
{
	const struct sl_tree *t = &r->tree;
	uint64_t until_us;

	if (r->now_us >= t->doubt_until_us || p->path_len < t->doubt_len ||
		!sl_node_same(&p->path[0], &t->doubted))
		return 0;
	until_us = t->doubt_us + doubt_length_us(r, p->path_len);
	return r->now_us < until_us ? until_us : 0;
}

uint64_t sl_doubt_next(struct sl_router *r)
{
	struct sl_tree *t = &r->tree;
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < r->active_count && r->now_us < t->doubt_until_us; i++) {
		const struct sl_route_peer *p = r->active[i];
		uint64_t until_us = p->has_tree ? sl_doubtful_until(r, p) : 0;

		if (until_us && until_us < next)
			next = until_us;
	}
	t->doubt_look_us = next == UINT64_MAX ? 0 : next;
	return next;
}

bool sl_doubt_over(const struct sl_router *r)
{
	return r->tree.doubt_look_us && r->now_us >= r->tree.doubt_look_us;
}
