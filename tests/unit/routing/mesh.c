/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh.h"

#include <stdlib.h>

static bool earlier(const struct mesh_event *a, const struct mesh_event *b)
{
	return a->us != b->us ? a->us < b->us : a->order < b->order;
}

static void push(struct mesh *m, struct mesh_event e)
{
	size_t i;

	if (m->heap_count == m->heap_size) {
		m->heap_size = m->heap_size ? m->heap_size * 2 : 1024;
		m->heap = realloc(m->heap, m->heap_size * sizeof(*m->heap));
	}
	for (i = m->heap_count++; i && earlier(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = e;
}

static struct mesh_event pop(struct mesh *m)
{
	struct mesh_event top = m->heap[0], e = m->heap[--m->heap_count];
	size_t i = 0, c;

	while ((c = 2 * i + 1) < m->heap_count) {
		if (c + 1 < m->heap_count && earlier(&m->heap[c + 1], &m->heap[c]))
			c++;
		if (!earlier(&m->heap[c], &e))
			break;
		m->heap[i] = m->heap[c];
		i = c;
	}
	m->heap[i] = e;
	return top;
}

static int on_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct mesh_node *n = arg;
	struct mesh *m = n->mesh;
	struct mesh_link *l = &n->links[peer_id];
	struct mesh_event e = {.us = m->now_us + m->delay_us,
		.order = m->order++,
		.to = l->node,
		.peer_id = l->peer_id,
		.len = len,
		.flags = flags};

	n->sent[msg[0]]++;
	if (!l->up || (m->drop && m->drop(m, n->index, l->node, msg, len)))
		return 0;
	e.msg = malloc(len);
	memcpy(e.msg, msg, len);
	push(m, e);
	return 0;
}

static void on_local(void *arg, uint32_t from_peer, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct mesh_node *n = arg;

	(void)from_peer;
	(void)flags;
	n->local++;
	n->last_len = len < sizeof(n->last) ? len : sizeof(n->last);
	memcpy(n->last, msg, n->last_len);
}

static void on_lookup_done(
	void *arg, const struct sl_node_addr *target, bool found, uint16_t path_mtu)
{
	struct mesh_node *n = arg;

	(void)target;
	(void)path_mtu;
	n->found += found;
	n->not_found += !found;
}

static int by_addr(const void *a, const void *b)
{
	return sl_node_addr_cmp(
		&((const struct mesh_node *)a)->addr, &((const struct mesh_node *)b)->addr);
}

struct mesh *mesh_create(uint32_t count, uint32_t max_links, const struct sl_router_config *config)
{
	struct mesh *m = calloc(1, sizeof(*m));
	struct sl_router_config c;

	if (sl_crypto_init() != 0)
		abort();
	if (config) {
		c = *config;
	} else {
		sl_router_config_default(&c);
		c.coord_size = 1024;
	}
	c.max_peers = max_links;
	if (!c.seed)
		c.seed = sl_test_rand() | 1;
	m->count = count;
	m->max_links = max_links;
	m->delay_us = 3000;
	m->now_us = 1000000;
	m->nodes = calloc(count, sizeof(*m->nodes));
	for (uint32_t i = 0; i < count; i++) {
		uint8_t secret[32];

		sl_test_rand_bytes(secret, sizeof(secret));
		m->nodes[i].id = sl_identity_create(secret);
		m->nodes[i].addr = *sl_identity_addr(m->nodes[i].id);
	}
	qsort(m->nodes, count, sizeof(*m->nodes), by_addr);
	for (uint32_t i = 0; i < count; i++) {
		struct mesh_node *n = &m->nodes[i];
		struct sl_router_sink sink = {.arg = n,
			.send = on_send,
			.local = on_local,
			.lookup_done = on_lookup_done};

		n->mesh = m;
		n->index = i;
		n->links = calloc(max_links, sizeof(*n->links));
		n->router = sl_router_create(&c, n->id, &sink, 1700000000, m->now_us);
		n->next_tick_us = m->now_us;
	}
	return m;
}

void mesh_destroy(struct mesh *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		sl_router_destroy(m->nodes[i].router);
		sl_identity_destroy(m->nodes[i].id);
		free(m->nodes[i].links);
	}
	while (m->heap_count)
		free(m->heap[--m->heap_count].msg);
	free(m->heap);
	free(m->nodes);
	free(m);
}

static uint32_t free_id(const struct mesh_node *n)
{
	for (uint32_t i = 0; i < n->mesh->max_links; i++)
		if (!n->links[i].up)
			return i;
	abort();
}

uint32_t mesh_peer_id(const struct mesh *m, uint32_t node, uint32_t neighbour)
{
	for (uint32_t i = 0; i < m->max_links; i++)
		if (m->nodes[node].links[i].up && m->nodes[node].links[i].node == neighbour)
			return i;
	return UINT32_MAX;
}

void mesh_link(struct mesh *m, uint32_t a, uint32_t b)
{
	struct mesh_node *x = &m->nodes[a], *y = &m->nodes[b];
	uint32_t ix = free_id(x), iy = free_id(y);

	x->links[ix] = (struct mesh_link){b, iy, true};
	y->links[iy] = (struct mesh_link){a, ix, true};
	SL_EXPECT_EQ(
		sl_router_peer_up(x->router, ix, sl_identity_xonly(y->id), 1280, m->now_us), 0);
	SL_EXPECT_EQ(
		sl_router_peer_up(y->router, iy, sl_identity_xonly(x->id), 1280, m->now_us), 0);
	x->next_tick_us = y->next_tick_us = m->now_us;
}

void mesh_unlink(struct mesh *m, uint32_t a, uint32_t b)
{
	uint32_t ix = mesh_peer_id(m, a, b), iy = mesh_peer_id(m, b, a);

	if (ix == UINT32_MAX || iy == UINT32_MAX)
		return;
	m->nodes[a].links[ix].up = m->nodes[b].links[iy].up = false;
	sl_router_peer_down(m->nodes[a].router, ix, m->now_us);
	sl_router_peer_down(m->nodes[b].router, iy, m->now_us);
	m->nodes[a].next_tick_us = m->nodes[b].next_tick_us = m->now_us;
}

static void deliver(struct mesh *m, struct mesh_event *e)
{
	struct mesh_node *n = &m->nodes[e->to];

	if (n->links[e->peer_id].up) {
		if (e->msg[0] == SL_MSG_DATAGRAM)
			sl_router_datagram(
				n->router, e->peer_id, e->msg, e->len, e->flags, m->now_us);
		else
			sl_router_message(n->router, e->peer_id, e->msg, e->len, m->now_us);
		n->next_tick_us = m->now_us;
	}
	free(e->msg);
}

void mesh_run(struct mesh *m, uint64_t for_us)
{
	const uint64_t end = m->now_us + for_us;

	for (;;) {
		uint64_t next = m->heap_count ? m->heap[0].us : UINT64_MAX;
		struct mesh_node *tick = NULL;

		for (uint32_t i = 0; i < m->count; i++) {
			struct mesh_node *n = &m->nodes[i];

			if (n->next_tick_us < next) {
				next = n->next_tick_us;
				tick = n;
			}
		}
		if (next > end)
			break;
		if (next > m->now_us)
			m->now_us = next;
		if (tick) {
			tick->next_tick_us = sl_router_tick(tick->router, m->now_us);
			if (tick->next_tick_us <= m->now_us)
				tick->next_tick_us = m->now_us + 1;
		} else {
			struct mesh_event e = pop(m);

			deliver(m, &e);
		}
	}
	m->now_us = end;
}

bool mesh_agrees(const struct mesh *m, uint32_t root)
{
	for (uint32_t i = 0; i < m->count; i++) {
		const struct mesh_node *n = &m->nodes[i];
		struct sl_node_addr own[SL_PATH_MAX + 1], up[SL_PATH_MAX + 1];
		struct sl_tree_info info;
		uint32_t len, up_len;

		sl_router_tree(n->router, &info);
		if (!sl_node_addr_equal(&info.root, &m->nodes[root].addr))
			return false;
		len = sl_router_coords(n->router, own, SL_PATH_MAX + 1);
		if (i == root) {
			if (len != 1)
				return false;
			continue;
		}
		if (info.parent_peer == UINT32_MAX)
			return false;
		up_len = sl_router_coords(
			m->nodes[n->links[info.parent_peer].node].router, up, SL_PATH_MAX + 1);
		if (len != up_len + 1 || memcmp(own + 1, up, up_len * sizeof(up[0])) != 0)
			return false;
	}
	return true;
}

static bool send_and_run(struct mesh *m, uint32_t a, uint32_t b, const uint8_t *payload, size_t len)
{
	uint64_t before = m->nodes[b].local;

	if (sl_router_originate(m->nodes[a].router, &m->nodes[b].addr, payload, len, m->now_us) !=
		0)
		return false;
	mesh_run(m, 400000);
	return m->nodes[b].local == before + 1 &&
	       m->nodes[b].last_len == SL_DATAGRAM_PAYLOAD + len &&
	       memcmp(m->nodes[b].last + SL_DATAGRAM_PAYLOAD, payload, len) == 0;
}

bool mesh_data(struct mesh *m, uint32_t a, uint32_t b)
{
	uint8_t payload[64];

	sl_test_rand_bytes(payload, sizeof(payload));
	payload[0] = payload[1] = 0;
	return send_and_run(m, a, b, payload, sizeof(payload));
}

static size_t put_coords(uint8_t *p, const struct mesh_node *n)
{
	struct sl_node_addr own[SL_PATH_MAX + 1];
	uint32_t len = sl_router_coords(n->router, own, SL_PATH_MAX + 1);

	sl_put16(p, (uint16_t)len);
	memcpy(p + 2, own, len * 16);
	return 2 + len * 16;
}

static bool setup(struct mesh *m, uint32_t a, uint32_t b)
{
	uint8_t payload[2048] = {1, 0, 0, 0, 0};
	size_t len = 5;

	len += put_coords(payload + len, &m->nodes[a]);
	len += put_coords(payload + len, &m->nodes[b]);
	sl_put16(payload + len, 4);
	len += 2;
	memset(payload + len, 0xab, 4);
	len += 4;
	return send_and_run(m, a, b, payload, len);
}

bool mesh_setup_known(struct mesh *m, uint32_t a, uint32_t b)
{
	return setup(m, a, b);
}

bool mesh_setup(struct mesh *m, uint32_t a, uint32_t b)
{
	struct sl_node_addr own[SL_PATH_MAX + 1];
	uint32_t n = sl_router_coords(m->nodes[b].router, own, SL_PATH_MAX + 1);

	if (sl_coords_insert(&m->nodes[a].router->coords, &m->nodes[b].addr, own[0].bytes, n, 0,
		    (uint32_t)(m->now_us / 1000000)) != 0)
		return false;
	return setup(m, a, b);
}

bool mesh_lookup(struct mesh *m, uint32_t a, uint32_t b)
{
	uint64_t found = m->nodes[a].found;

	if (sl_router_lookup(m->nodes[a].router, sl_identity_xonly(m->nodes[b].id), m->now_us) != 0)
		return false;
	m->nodes[a].next_tick_us = m->now_us;
	for (unsigned i = 0; i < 160 && m->nodes[a].found == found && m->nodes[a].router->quests;
		i++)
		mesh_run(m, 100000);
	return m->nodes[a].found == found + 1;
}
