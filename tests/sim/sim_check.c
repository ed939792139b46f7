/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole mesh from above: what is true, and who knows it. */
#include "sim.h"

static uint32_t flood(struct sim *s, uint32_t from, uint32_t *mark, uint32_t first, uint32_t step)
{
	uint32_t head = 0, tail = 0;

	s->queue[tail++] = from;
	mark[from] = first;
	while (head < tail) {
		uint32_t at = s->queue[head++];
		const struct sim_node *n = &s->nodes[at];

		for (uint32_t i = 0; i < n->wire_count; i++) {
			uint32_t peer = n->wires[i].peer;

			if (n->wires[i].cut || s->nodes[peer].dead || mark[peer] != SIM_NOBODY)
				continue;
			mark[peer] = mark[at] + step;
			s->queue[tail++] = peer;
		}
	}
	return tail;
}

static const struct sl_node_addr *addr_of(const struct sim *s, uint32_t node)
{
	return sl_identity_addr(s->nodes[node].identity);
}

void sim_components(struct sim *s)
{
	s->components = 0;
	memset(s->component, 0xff, s->o.nodes * sizeof(*s->component));
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		uint32_t members, root = i;

		if (s->nodes[i].dead || s->component[i] != SIM_NOBODY)
			continue;
		members = flood(s, i, s->component, s->components, 0);
		for (uint32_t k = 0; k < members; k++)
			if (sl_node_addr_cmp(addr_of(s, s->queue[k]), addr_of(s, root)) < 0)
				root = s->queue[k];
		s->root_of[s->components++] = root;
	}
}

void sim_distances(struct sim *s, uint32_t from)
{
	memset(s->distance, 0xff, s->o.nodes * sizeof(*s->distance));
	(void)flood(s, from, s->distance, 0, 1);
}

/* Inside, not through sl_router_tree(): that also estimates the mesh's size, and this runs ten
 * times a second. */
static void look_at_peers(const struct sim *s, const struct sim_node *n, struct sim_agreement *a)
{
	for (uint32_t i = 0; i < n->router->active_count; i++) {
		const struct sl_route_peer *p = n->router->active[i];
		uint32_t peer = n->neighbour[p->id];
		const struct sl_tree *t;

		if (peer == SIM_NOBODY || s->nodes[peer].dead) {
			a->dead_peers++;
			continue;
		}
		/* The place counts: a refresh without a change is not announced. */
		t = &s->nodes[peer].router->tree;
		a->stale_peers += !p->has_tree || p->path_len != t->len ||
				  memcmp(p->path, t->path, t->len * sizeof(t->path[0])) != 0;
	}
}

static bool coords_current(const struct sim *s, const struct sim_node *n)
{
	const struct sl_tree *t = &n->router->tree, *up;
	struct sl_route_peer *p;
	uint32_t parent;

	if (s->root_of[s->component[n->index]] == n->index)
		return t->len == 1;
	p = sl_tree_is_root(t) ? NULL : sl_router_peer_by_addr(n->router, &t->parent);
	parent = p ? n->neighbour[p->id] : SIM_NOBODY;
	if (parent == SIM_NOBODY || s->nodes[parent].dead)
		return false;
	/* Root first in both. */
	up = &s->nodes[parent].router->tree;
	return t->len == up->len + 1 &&
	       memcmp(t->path, up->path, up->len * sizeof(t->path[0])) == 0;
}

void sim_agree(struct sim *s, struct sim_agreement *a)
{
	uint64_t depth = 0;

	memset(a, 0, sizeof(*a));
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		struct sim_node *n = &s->nodes[i];
		uint32_t wires = 0, own_depth;

		if (n->dead)
			continue;
		for (uint32_t w = 0; w < n->wire_count; w++)
			wires += !n->wires[w].cut && !s->nodes[n->wires[w].peer].dead;
		a->links_missing += wires > n->up ? wires - n->up : 0;
		own_depth = n->router->tree.len - 1u;
		depth += own_depth;
		if (own_depth > a->depth)
			a->depth = own_depth;
		a->wrong_root += !sl_node_same(
			&n->router->tree.root, addr_of(s, s->root_of[s->component[i]]));
		a->wrong_coords += !coords_current(s, n);
		look_at_peers(s, n, a);
	}
	a->mean_depth = s->alive ? (double)depth / s->alive : 0;
	a->all = !a->wrong_root && !a->wrong_coords && !a->stale_peers && !a->dead_peers &&
		 !a->links_missing;
}

/* --- filters --- */

uint32_t sim_filters_stale(struct sim *s)
{
	uint8_t bits[SL_FILTER_BYTES];
	uint32_t stale = 0;

	for (uint32_t i = 0; i < s->o.nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		for (uint32_t k = 0; !n->dead && k < n->router->active_count; k++) {
			const struct sl_route_peer *to = n->router->active[k], *back;
			uint32_t peer = n->neighbour[to->id];

			if (peer == SIM_NOBODY || s->nodes[peer].dead)
				continue;
			back = sl_router_peer_by_addr(s->nodes[peer].router, addr_of(s, i));
			sl_filter_outgoing(n->router, to, bits);
			stale += !back || !back->has_filter ||
				 memcmp(back->filter, bits, sizeof(bits)) != 0;
		}
	}
	return stale;
}

/* Is `node` in the subtree of `top`: does its path to the root pass there? */
static bool below(const struct sim *s, uint32_t node, uint32_t top)
{
	const struct sl_tree *t = &s->nodes[node].router->tree;

	for (uint32_t i = 0; i < t->len; i++)
		if (sl_node_same(&t->path[i], addr_of(s, top)))
			return true;
	return false;
}

struct tree_link {
	uint32_t node;
	const struct sl_route_peer *peer;
};

static void sample(struct sim *s, struct sim_filters *f, const struct tree_link *l)
{
	const struct sl_router *r = s->nodes[l->node].router;
	uint32_t peer = s->nodes[l->node].neighbour[l->peer->id], target = sim_below(s, s->o.nodes);
	bool behind, claims;
	struct sl_filter_hash h;

	if (s->nodes[target].dead || target == l->node ||
		s->component[target] != s->component[l->node])
		return;
	/* Behind the parent is everything that is not below us. */
	behind =
		sl_tree_is_parent(r, l->peer) ? !below(s, target, l->node) : below(s, target, peer);
	sl_filter_hash(&h, addr_of(s, target)->bytes);
	claims = l->peer->has_filter &&
		 sl_filter_claims(l->peer->filter, &h, l->peer->filter_hashes);
	f->asked += behind;
	f->claimed += behind && claims;
	f->foreign += !behind;
	f->false_claims += !behind && claims;
}

void sim_filters(struct sim *s, struct sim_filters *f, uint32_t samples)
{
	struct tree_link *links = calloc(2ull * s->o.nodes, sizeof(*links));
	double fill = 0;

	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; links && i < s->o.nodes; i++) {
		const struct sl_router *r = s->nodes[i].router;

		for (uint32_t k = 0; r && k < r->active_count; k++) {
			const struct sl_route_peer *p = r->active[k];
			double share = (double)p->filter_count / SL_FILTER_BITS;

			if (!sl_tree_is_tree_peer(r, p) ||
				s->nodes[i].neighbour[p->id] == SIM_NOBODY ||
				f->links == 2 * s->o.nodes)
				continue;
			links[f->links++] = (struct tree_link){i, p};
			f->none += !p->has_filter;
			if (!p->has_filter)
				continue;
			fill += share;
			if (share > f->max_fill)
				f->max_fill = share;
			f->full += sl_filter_fpr(p->filter_count, p->filter_hashes) >
				   r->config.max_inbound_fpr;
		}
	}
	f->mean_fill = f->links > f->none ? fill / (f->links - f->none) : 0;
	for (uint32_t i = 0; f->links && i < samples; i++)
		sample(s, f, &links[sim_below(s, f->links)]);
	free(links);
}
