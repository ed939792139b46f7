/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake.h"

#include <stdarg.h>
#include <stdlib.h>

struct sl_node_addr fake_addr(unsigned x)
{
	struct sl_node_addr a = {{0}};

	a.bytes[0] = (uint8_t)x;
	return a;
}

static int on_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct fake *f = arg;
	struct fake_sent *s = &f->sent[f->sent_count++ % 64];

	if (f->send_result) {
		f->sent_count--;
		return f->send_result;
	}
	s->peer_id = peer_id;
	s->len = len < sizeof(s->msg) ? len : sizeof(s->msg);
	s->flags = flags;
	memcpy(s->msg, msg, s->len);
	f->by_type[msg[0]]++;
	return 0;
}

static void on_local(void *arg, uint32_t from_peer, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct fake *f = arg;

	(void)from_peer, (void)msg, (void)len, (void)flags;
	f->local++;
}

struct fake *fake_create(int self, const struct sl_router_config *config, struct sl_identity *id)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct sl_router_config c;
	struct sl_router_sink sink = {.arg = f, .send = on_send, .local = on_local};
	struct sl_node_addr addr;

	if (sl_crypto_init() != 0)
		abort();
	sl_router_config_default(&c);
	c.coord_size = 64;
	c.publish_interval_us = 0;
	if (config)
		c = *config;
	f->id = id ? id : sl_identity_generate();
	f->now_us = 1000000;
	f->r = sl_router_create(&c, f->id, &sink, 1700000000, f->now_us);
	if (self >= 0) {
		addr = fake_addr((unsigned)self);
		f->r->coords.self = addr;
		sl_tree_start(f->r, &addr, 1);
		sl_publish(f->r);
	}
	return f;
}

void fake_destroy(struct fake *f)
{
	sl_router_destroy(f->r);
	sl_identity_destroy(f->id);
	free(f);
}

struct sl_route_peer *fake_peer(struct fake *f, uint32_t id, unsigned x)
{
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_route_peer *p, **link;
	struct sl_router *r = f->r;

	sl_test_rand_bytes(xonly, sizeof(xonly));
	SL_EXPECT_EQ(sl_router_peer_up(r, id, xonly, 1280, f->now_us), 0);
	p = r->peers[id];
	/* Under its real address it leaves the chains, under X(x) it enters them. */
	link = &r->by_addr[(uint32_t)sl_node_hash(p->addr.bytes, r->key) & r->by_addr_mask];
	while (*link != p)
		link = &(*link)->hash_next;
	*link = p->hash_next;
	p->addr = fake_addr(x);
	link = &r->by_addr[(uint32_t)sl_node_hash(p->addr.bytes, r->key) & r->by_addr_mask];
	p->hash_next = *link;
	*link = p;
	p->path_dirty = r->index_dirty = r->body_dirty = true;
	sl_publish_peer(r, p);
	sl_router_settle(r);
	return p;
}

static void announce(struct fake *f, uint32_t id, bool quiet, unsigned n, va_list ap)
{
	struct sl_route_peer *p = f->r->peers[id];
	uint8_t *entries = calloc(n, SL_TREE_ENTRY_BYTES);
	struct sl_tree_announce a = {.sequence = p->tree_sequence + 1,
		.timestamp_s = 1700000000,
		.entries = (uint16_t)n,
		.entry = entries};

	for (unsigned i = 0; i < n; i++) {
		entries[i * SL_TREE_ENTRY_BYTES] = (uint8_t)va_arg(ap, unsigned);
		entries[i * SL_TREE_ENTRY_BYTES + 16] = 9;
	}
	a.parent = fake_addr(entries[n > 1 ? SL_TREE_ENTRY_BYTES : 0]);
	f->r->now_us = f->now_us;
	if (quiet) {
		/* As if it came while the evaluation had nothing to choose: keeps the outcome out.
		 */
		struct sl_tree saved = f->r->tree;
		uint8_t own[SL_TREE_ENTRY_BYTES * 16];
		struct sl_node_addr path[16];

		memcpy(own, saved.entries, sizeof(own));
		memcpy(path, saved.path, sizeof(path));
		sl_tree_accept(f->r, p, &a);
		f->r->tree = saved;
		memcpy(saved.entries, own, sizeof(own));
		memcpy(saved.path, path, sizeof(path));
		f->r->own_path_dirty = f->r->body_dirty = true;
		sl_filter_changed(f->r);
	} else {
		sl_tree_accept(f->r, p, &a);
	}
	sl_router_settle(f->r);
	free(entries);
}

void fake_path(struct fake *f, uint32_t id, unsigned n, ...)
{
	va_list ap;

	va_start(ap, n);
	announce(f, id, false, n, ap);
	va_end(ap);
}

void fake_path_quiet(struct fake *f, uint32_t id, unsigned n, ...)
{
	va_list ap;

	va_start(ap, n);
	announce(f, id, true, n, ap);
	va_end(ap);
}

void fake_own(struct fake *f, unsigned n, ...)
{
	struct sl_tree *t = &f->r->tree;
	va_list ap;

	va_start(ap, n);
	t->len = (uint16_t)n;
	for (unsigned i = 0; i < n; i++) {
		struct sl_node_addr a = fake_addr(va_arg(ap, unsigned));

		memcpy(t->entries + i * SL_TREE_ENTRY_BYTES, &a, 16);
		t->path[n - 1 - i] = a;
	}
	va_end(ap);
	t->root = t->path[0];
	t->parent = n > 1 ? t->path[n - 2] : t->self;
	f->r->own_path_dirty = f->r->body_dirty = true;
	sl_filter_changed(f->r);
	sl_router_settle(f->r);
}

void fake_cost(struct fake *f, uint32_t id, double cost)
{
	struct sl_route_peer *p = f->r->peers[id];

	p->measured = true;
	p->cost = cost;
	sl_publish_peer(f->r, p);
	f->r->body_dirty = true;
	sl_router_settle(f->r);
}

void fake_filter(struct fake *f, uint32_t id, unsigned n, ...)
{
	struct sl_route_peer *p = f->r->peers[id];
	uint8_t bits[SL_FILTER_BYTES] = {0}, msg[SL_FILTER_MSG_BYTES];
	va_list ap;

	va_start(ap, n);
	for (unsigned i = 0; i < n; i++) {
		struct sl_node_addr a = fake_addr(va_arg(ap, unsigned));
		struct sl_filter_hash h;

		sl_filter_hash(&h, a.bytes);
		sl_filter_insert(bits, &h);
	}
	va_end(ap);
	sl_filter_announce_build(msg, p->filter_sequence_rx + 1, bits);
	sl_router_message(f->r, id, msg, sizeof(msg), f->now_us);
}

void fake_coords(struct fake *f, unsigned n, ...)
{
	uint8_t wire[16 * 64] = {0};
	struct sl_node_addr key;
	va_list ap;

	va_start(ap, n);
	for (unsigned i = 0; i < n; i++)
		wire[i * 16] = (uint8_t)va_arg(ap, unsigned);
	va_end(ap);
	key = fake_addr(wire[0]);
	SL_EXPECT_EQ(
		sl_coords_insert(&f->r->coords, &key, wire, n, 0, (uint32_t)(f->now_us / 1000000)),
		0);
}

int fake_hop(struct fake *f, unsigned dest)
{
	struct sl_node_addr addr = fake_addr(dest);
	struct sl_hop hop;

	f->r->now_us = f->now_us;
	sl_router_settle(f->r);
	hop = sl_router_hop(f->r, &addr);
	switch (hop.kind) {
	case SL_HOP_PEER:
		return f->r->peers[hop.peer_id]->addr.bytes[0];
	case SL_HOP_LOCAL:
		return -1;
	case SL_HOP_NO_COORDS:
		return -2;
	default:
		return -3;
	}
}

unsigned fake_parent(const struct fake *f)
{
	return f->r->tree.parent.bytes[0];
}

struct fake_sent *fake_last(struct fake *f, uint8_t type)
{
	for (uint32_t i = 0; i < 64 && i < f->sent_count; i++) {
		struct fake_sent *s = &f->sent[(f->sent_count - 1 - i) % 64];

		if (s->msg[0] == type)
			return s;
	}
	return NULL;
}
