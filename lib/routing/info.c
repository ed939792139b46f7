/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operator sees of routing. */
#include "router.h"

void sl_router_tree(const struct sl_router *r, struct sl_tree_info *info)
{
	const struct sl_tree *t = &r->tree;
	const struct sl_route_peer *parent =
		sl_tree_is_root(t) ? NULL : sl_router_peer_by_addr(r, &t->parent);

	*info = (struct sl_tree_info){.self = t->self,
		.root = t->root,
		.parent = t->parent,
		.parent_peer = parent ? parent->id : SL_NO_PEER,
		.depth = t->len - 1u,
		.sequence = t->sequence,
		.timestamp_s = t->timestamp_s,
		.peers = r->active_count,
		.mesh_size = sl_filter_mesh_size(r),
		.coord_entries = r->coords.count,
		.coord_capacity = r->coords.capacity};
	for (uint32_t i = 0; i < r->active_count; i++)
		info->children += sl_tree_is_child(r, r->active[i]);
}

uint32_t sl_router_coords(const struct sl_router *r, struct sl_node_addr *coords, uint32_t max)
{
	const struct sl_tree *t = &r->tree;
	uint32_t n = t->len < max ? t->len : max;

	for (uint32_t i = 0; i < n; i++)
		coords[i] = t->path[t->len - 1 - i];
	return n;
}

void sl_router_for_each_peer(const struct sl_router *r, sl_router_peer_fn fn, void *arg)
{
	const uint32_t path_limit = sl_tree_path_limit(r);

	for (uint32_t id = 0; id < r->config.max_peers; id++) {
		const struct sl_route_peer *p = r->peers[id];
		struct sl_router_peer_info info;

		if (!p)
			continue;
		info = (struct sl_router_peer_info){.peer_id = id,
			.addr = p->addr,
			.has_ancestry = p->has_tree,
			.is_parent = sl_tree_is_parent(r, p),
			.is_child = sl_tree_is_child(r, p),
			.tree_sequence = p->tree_sequence,
			.filter_sequence_rx = p->filter_sequence_rx,
			.filter_sequence_tx = p->filter_sequence_tx,
			.filter_bits = p->filter_count,
			.filter_estimate = -1.0,
			.cost = p->cost,
			.mtu = p->mtu};
		if (p->has_tree) {
			info.depth = p->path_len - 1u;
			info.root = p->path[0];
			info.too_deep = p->path_len >= path_limit;
		}
		if (p->has_filter) {
			info.filter_fpr = sl_filter_fpr(p->filter_count, p->filter_hashes);
			info.filter_estimate = sl_filter_estimate(
				p->filter_count, p->filter_hashes, r->config.max_inbound_fpr);
			info.filter_merged = sl_tree_is_tree_peer(r, p) && !p->left_out;
		}
		fn(arg, &info);
	}
}

void sl_router_for_each_route(const struct sl_router *r, uint32_t max, sl_route_fn fn, void *arg)
{
	const uint32_t now_s = sl_router_seconds(r);

	for (uint32_t i = 0; i < r->coords.count && max; i++) {
		const struct sl_coord_entry *e = &r->coords.entries[r->coords.dense[i]];
		const struct sl_coord_data *d = e->data;
		uint32_t used_s = __atomic_load_n(&e->used_s, __ATOMIC_RELAXED);
		const struct sl_fib *f = r->ref.current;
		struct sl_route_info info;
		struct sl_fib_answer a;

		if (sl_coord_expired(&r->coords, used_s, now_s))
			continue;
		info = (struct sl_route_info){.dest = d->key,
			.depth = d->len - 1u,
			.root = d->path[0],
			.age_s = now_s - d->learned_s,
			.idle_s = (int32_t)(now_s - used_s) > 0 ? now_s - used_s : 0};
		/* Not sl_fib_decide(): looking on must not renew the entry. */
		sl_fib_route(f, d, sl_node_hash(d->key.bytes, r->coords.key), &a);
		info.hop = (struct sl_hop){.peer_id = a.peer_id, .kind = a.kind};
		if (a.kind == SL_HOP_PEER) {
			info.hop.mtu = f->body->peers[a.peer_id].mtu;
			info.hop.congested = f->body->peers[a.peer_id].congested | f->body->congested;
		}
		fn(arg, &info);
		max--;
	}
}

const uint64_t *sl_router_counters(const struct sl_router *r)
{
	return r->counters;
}

const char *sl_route_counter_name(enum sl_route_counter c)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_ROUTE_COUNTERS(NAME)
#undef NAME
	};

	return (unsigned)c < SL_ROUTE_COUNTER_COUNT ? names[c] : "?";
}
