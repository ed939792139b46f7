/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"
#include <stdlib.h>

#define STUN_PORT 3478
#define PORT 2121
#define TRANSPORT 3

static struct sl_addr
outer(unsigned i, uint16_t port) /* 203.0.113.1: the first node's NAT */
{
	struct sl_addr a = {.kind = SL_ADDR_UDP4, .transport = TRANSPORT, .udp_port = port,
		.u.ip4 = {203, 0, 113, (uint8_t)(i + 1)}};

	return a;
}

static struct sl_addr
server(unsigned i)
{
	struct sl_addr a = {.kind = SL_ADDR_UDP4, .transport = TRANSPORT, .udp_port = STUN_PORT,
		.u.ip4 = {198, 51, 100, (uint8_t)(i + 1)}};

	return a;
}

static struct event *
event_new(struct world *w, uint64_t delay_us, unsigned to)
{
	struct event *e;

	if (w->queued == WORLD_QUEUE)
		abort();
	e = &w->queue[w->queued++];
	memset(e, 0, sizeof(*e));
	e->at_us = w->now_us + delay_us;
	e->to = to;
	return e;
}

/* The outer port of node n towards dest. */
static uint16_t
map_out(struct node *n, const struct sl_addr *dest)
{
	uint16_t port;

	for (unsigned i = 0; i < n->mappings; i++)
		if (sl_addr_equal(&n->dest[i], dest))
			return n->port[i];
	port = n->nat == NAT_NONE ? PORT : n->nat == NAT_SYMMETRIC ? (uint16_t)(20000 + sl_test_rand() % 40000) : 40000;
	if (n->mappings == 256)
		abort();
	n->dest[n->mappings] = *dest;
	n->port[n->mappings++] = port;
	return port;
}

/* Does the NAT of n let a packet from `from` to its port in? */
static bool
let_in(const struct node *n, const struct sl_addr *from, uint16_t port)
{
	if (n->nat == NAT_NONE)
		return port == PORT;
	for (unsigned i = 0; i < n->mappings; i++)
		if (n->port[i] == port && (n->nat == NAT_FULL_CONE || sl_addr_equal(&n->dest[i], from)))
			return true;
	return false;
}

static bool
lost(const struct world *w)
{
	return sl_test_rand() % 100 < w->loss_percent;
}

static void
stun_answer(struct node *n, const struct sl_addr *srv, uint16_t port, const uint8_t *request)
{
	static const uint8_t cookie[4] = {0x21, 0x12, 0xa4, 0x42};
	const struct sl_addr seen = outer(n->index, port);
	struct event *e;

	if (n->no_stun || n->world->servers_dead || lost(n->world))
		return;
	e = event_new(n->world, 40000, n->index);
	e->from = *srv;
	e->len = 32;
	memcpy(e->bytes, request, 20);
	memcpy(e->bytes, "\x01\x01\x00\x0c", 4);
	memcpy(e->bytes + 20, "\x00\x20\x00\x08\x00\x01", 6);
	e->bytes[26] = (uint8_t)(port >> 8) ^ 0x21;
	e->bytes[27] = (uint8_t)port ^ 0x12;
	for (unsigned i = 0; i < 4; i++)
		e->bytes[28 + i] = seen.u.ip4[i] ^ cookie[i];
}

static int
node_udp(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct node *n = arg;
	struct world *w = n->world;
	const uint16_t port = map_out(n, to);
	const struct sl_addr from = outer(n->index, port);
	struct event *e;

	SL_EXPECT_EQ(to->transport, TRANSPORT);
	n->packets_out++;
	if (to->udp_port == STUN_PORT && to->u.ip4[0] == 198) {
		stun_answer(n, to, port, packet);
		return 0;
	}
	if (memcmp(packet, "NPTC", 4) == 0) {
		if (!n->probes_out++)
			n->first_probe_us = w->now_us;
	}
	for (unsigned i = 0; i < w->nodes; i++) {
		const struct sl_addr ip = outer(i, to->udp_port);

		if (!sl_addr_equal(&ip, to) || lost(w))
			continue;
		e = event_new(w, 20000, i);
		e->from = from;
		e->len = len;
		memcpy(e->bytes, packet, len);
		/* Where it is to come in; looked at on arrival. */
		e->bytes[sizeof(e->bytes) - 2] = (uint8_t)(to->udp_port >> 8);
		e->bytes[sizeof(e->bytes) - 1] = (uint8_t)to->udp_port;
	}
	return 0;
}

static int
node_signal(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const char *text)
{
	struct node *n = arg;
	struct world *w = n->world;

	if (n->deaf_relay)
		return 0;
	n->signals++;
	snprintf(w->last_signal, sizeof(w->last_signal), "%s", text);
	memcpy(w->last_author, world_key(w, n->index), SL_XONLY_BYTES);
	for (unsigned i = 0; i < w->nodes; i++) {
		if (memcmp(world_key(w, i), xonly, SL_XONLY_BYTES) != 0)
			continue;
		w->last_to = i;
		for (unsigned k = 0; k < w->signal_copies; k++) {
			struct event *e = event_new(w, 100000 + 30000 * k, i);

			e->signal = true;
			e->len = strlen(text);
			memcpy(e->author, world_key(w, n->index), SL_XONLY_BYTES);
			SL_EXPECT_LT(e->len, sizeof(e->bytes));
			memcpy(e->bytes, text, e->len);
		}
	}
	return 2;
}

static int
node_punched(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr)
{
	struct node *n = arg;

	(void)xonly;
	n->punched++;
	n->remote = *addr;
	return n->no_dial ? -1 : 0;
}

static bool
node_allowed(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	(void)xonly;
	return !((struct node *)arg)->not_allowed;
}

static void
node_listening(void *arg, bool on)
{
	struct node *n = arg;

	SL_EXPECT(n->listening != on);
	n->listening = on;
}

static void
node_doubted(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	(void)xonly;
	((struct node *)arg)->doubted++;
}

struct world *
world_create(unsigned nodes)
{
	struct world *w = calloc(1, sizeof(*w));

	w->nodes = nodes;
	w->signal_copies = 1;
	w->queue = calloc(WORLD_QUEUE, sizeof(*w->queue));
	w->now_us = 1000000;
	for (unsigned i = 0; i < nodes; i++) {
		uint8_t secret[SL_SECRET_BYTES] = {[31] = (uint8_t)(i + 1)};

		w->node[i].world = w;
		w->node[i].index = i;
		w->node[i].identity = sl_identity_create(secret);
	}
	return w;
}

void
world_destroy(struct world *w)
{
	for (unsigned i = 0; i < w->nodes; i++) {
		sl_traversal_destroy(w->node[i].t);
		sl_identity_destroy(w->node[i].identity);
	}
	free(w->queue);
	free(w);
}

const uint8_t *
world_key(const struct world *w, unsigned i)
{
	return sl_identity_xonly(w->node[i].identity);
}

void
world_node(struct world *w, unsigned i, enum nat nat, const struct sl_traversal_config *config)
{
	struct node *n = &w->node[i];
	struct sl_traversal_sink sink = {.arg = n, .udp = node_udp, .signal = node_signal, .punched = node_punched,
		.allowed = node_allowed, .listening = node_listening, .doubted = node_doubted};
	struct sl_traversal_config c;
	struct sl_addr a;

	sl_traversal_config_default(&c);
	if (config)
		c = *config;
	c.transport = TRANSPORT;
	memcpy(c.self, world_key(w, i), SL_XONLY_BYTES);
	n->nat = nat;
	n->t = sl_traversal_create(&c, &sink, w->now_us);
	for (unsigned k = 0; k < 2; k++) {
		a = server(k);
		SL_EXPECT_EQ(sl_traversal_server(n->t, k, k ? "stun:198.51.100.2:3478" : "stun:198.51.100.1:3478", &a), 0);
	}
	a = outer(i, PORT);
	if (nat != NAT_NONE) /* 10.0.0.1 behind it */
		memcpy(a.u.ip4, (uint8_t[]){10, 0, 0, (uint8_t)(i + 1)}, 4);
	sl_traversal_local(n->t, &a, 1);
}

static uint64_t
unix_ms(const struct node *n)
{
	return (uint64_t)((int64_t)(WORLD_START_MS + n->world->now_us / 1000) + n->clock_ms);
}

static void
deliver(struct world *w, const struct event *e)
{
	struct node *n = &w->node[e->to];
	const uint16_t port = (uint16_t)(e->bytes[sizeof(e->bytes) - 2] << 8 | e->bytes[sizeof(e->bytes) - 1]);

	if (n->t == NULL)
		return;
	if (e->signal)
		sl_traversal_signal(n->t, e->author, (const char *)e->bytes, e->len, w->now_us, unix_ms(n));
	else if (port == 0 || let_in(n, &e->from, port))
		sl_traversal_packet(n->t, &e->from, e->bytes, e->len, w->now_us, unix_ms(n));
	else
		n->dropped_by_nat++;
	n->due_us = w->now_us;
}

void
world_run(struct world *w, uint64_t until_us)
{
	until_us += 1000000;
	for (;;) {
		uint64_t next = until_us;
		unsigned which = w->queued;

		for (unsigned i = 0; i < w->queued; i++)
			if (w->queue[i].at_us < next) {
				next = w->queue[i].at_us;
				which = i;
			}
		for (unsigned i = 0; i < w->nodes; i++)
			if (w->node[i].t && w->node[i].due_us < next) {
				next = w->node[i].due_us;
				which = w->queued;
			}
		if (next > w->now_us)
			w->now_us = next;
		if (next >= until_us)
			return;
		if (which < w->queued) {
			const struct event e = w->queue[which];

			w->queue[which] = w->queue[--w->queued];
			deliver(w, &e);
			continue;
		}
		for (unsigned i = 0; i < w->nodes; i++)
			if (w->node[i].t && w->node[i].due_us <= w->now_us) {
				w->node[i].due_us = sl_traversal_tick(w->node[i].t, w->now_us, unix_ms(&w->node[i]));
				SL_EXPECT(w->node[i].due_us > w->now_us);
			}
	}
}

void
world_want(struct world *w, unsigned who, unsigned whom)
{
	char name[16];

	snprintf(name, sizeof(name), "node-%u", whom);
	SL_EXPECT_EQ(sl_traversal_want(w->node[who].t, world_key(w, whom), name, true, w->now_us), 0);
	w->node[who].due_us = w->now_us;
}

void
world_link(struct world *w, unsigned a, unsigned b, bool up)
{
	sl_traversal_link(w->node[a].t, world_key(w, b), up, w->now_us);
	sl_traversal_link(w->node[b].t, world_key(w, a), up, w->now_us);
	w->node[a].due_us = w->node[b].due_us = w->now_us;
}

struct find {
	const uint8_t *key;
	struct sl_traversal_info *out;
	bool found;
};

static void
find_info(void *arg, const struct sl_traversal_info *info)
{
	struct find *f = arg;

	if (memcmp(info->xonly, f->key, SL_XONLY_BYTES) != 0)
		return;
	*f->out = *info;
	f->found = true;
}

bool
world_info(const struct world *w, unsigned who, unsigned whom, struct sl_traversal_info *out)
{
	struct find f = {.key = world_key(w, whom), .out = out};

	sl_traversal_for_each(w->node[who].t, find_info, &f);
	return f.found;
}

uint64_t
world_counter(const struct world *w, unsigned who, enum sl_traversal_counter c)
{
	return sl_traversal_counters(w->node[who].t)[c];
}
