/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes, wires and time. */
#include "sim.h"

#include <sodium.h>
#include <time.h>

#define MTU 1280
#define START_US (1000 * SIM_S)
#define START_UNIX_S 1700000000ull
#define SPARE_ROWS 8 /* for handshakes that are not peers yet */

/* --- randomness --- */

/* xoroshiro128+ */
uint64_t sim_random(struct sim *s)
{
	uint64_t a = s->random[0], b = s->random[1], sum = a + b;

	b ^= a;
	s->random[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
	s->random[1] = b << 37 | b >> 27;
	return sum;
}

static struct sim *rng_of; /* libsodium's implementation takes no argument */

static const char *rng_name(void)
{
	return "simulator's seed";
}
static uint32_t rng_u32(void)
{
	return (uint32_t)(sim_random(rng_of) >> 32);
}
static void rng_buf(void *const buf, const size_t len)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = sim_random(rng_of);

		memcpy(p + i, &v, len - i < 8 ? len - i : 8);
	}
}
static struct randombytes_implementation rng = {
	.implementation_name = rng_name, .random = rng_u32, .buf = rng_buf};

static double chance(struct sim *s)
{
	return (double)(sim_random(s) >> 11) / 9007199254740992.0;
}

/* --- events: a heap by time, then order --- */

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "sl_sim: out of memory\n");
		exit(1);
	}
	return p;
}

void sim_push(struct sim *s, struct sim_event e)
{
	size_t i;

	e.order = s->order++;
	if (s->heap_count == s->heap_size) {
		s->heap_size = s->heap_size ? s->heap_size * 2 : 4096;
		s->heap = must(realloc(s->heap, s->heap_size * sizeof(*s->heap)));
	}
	for (i = s->heap_count++; i && earlier(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct sim_event pop(struct sim *s)
{
	struct sim_event top = s->heap[0], e = s->heap[--s->heap_count];
	size_t i = 0, c;

	while ((c = 2 * i + 1) < s->heap_count) {
		if (c + 1 < s->heap_count && earlier(&s->heap[c + 1], &s->heap[c]))
			c++;
		if (!earlier(&s->heap[c], &e))
			break;
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = e;
	return top;
}

/* --- wires --- */

static struct sl_addr addr_of(uint32_t index)
{
	struct sl_addr a = {.kind = SL_ADDR_UDP4, .udp_port = SL_UDP_PORT};

	a.u.ip4[0] = 10;
	a.u.ip4[1] = (uint8_t)(index >> 14);
	a.u.ip4[2] = (uint8_t)(index >> 7 & 0x7f);
	a.u.ip4[3] = (uint8_t)((index & 0x7f) + 1);
	return a;
}

static uint32_t index_of(const struct sl_addr *a)
{
	return (uint32_t)a->u.ip4[1] << 14 | (uint32_t)a->u.ip4[2] << 7 |
	       ((uint32_t)a->u.ip4[3] - 1);
}

static struct sim_wire *wire_to(struct sim_node *n, uint32_t peer)
{
	for (uint32_t i = 0; i < n->wire_count; i++)
		if (n->wires[i].peer == peer)
			return &n->wires[i];
	return NULL;
}

static int on_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct sim_node *n = arg;
	struct sim *s = n->sim;
	uint32_t peer = index_of(to);
	struct sim_wire *w = wire_to(n, peer);
	unsigned copies = 1;

	s->packets++;
	s->bytes += len;
	if (!w || w->cut || s->nodes[peer].dead || (s->o.loss > 0 && chance(s) < s->o.loss)) {
		s->lost++;
		return 0;
	}
	if (s->o.duplicate > 0 && chance(s) < s->o.duplicate)
		copies = 2;
	while (copies--) {
		uint64_t jitter_us = s->o.jitter_us ? sim_random(s) % s->o.jitter_us : 0;
		struct sim_event e = {.at_us = s->now_us + w->delay_us + jitter_us,
			.node = peer,
			.from = n->index,
			.len = (uint16_t)len,
			.kind = SIM_PACKET,
			.bytes = must(malloc(len))};

		memcpy(e.bytes, packet, len);
		sim_push(s, e);
	}
	return 0;
}

/* --- a node: links and router wired together --- */

static uint32_t index_of_key(const struct sim_node *n, const uint8_t *xonly)
{
	for (uint32_t i = 0; i < n->wire_count; i++)
		if (memcmp(sl_identity_xonly(n->sim->nodes[n->wires[i].peer].identity), xonly,
			    SL_XONLY_BYTES) == 0)
			return n->wires[i].peer;
	return SIM_NOBODY;
}

static void on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct sim_node *n = arg;

	if (n->neighbour[id] != SIM_NOBODY) {
		sl_router_peer_renew(n->router, id, n->sim->now_us);
		return;
	}
	n->neighbour[id] = index_of_key(n, key->xonly);
	n->up++;
	if (sl_router_peer_up(n->router, id, key->xonly, mtu, n->sim->now_us) != 0)
		must(NULL);
}

static void on_down(void *arg, uint32_t id, enum sl_down_reason reason)
{
	struct sim_node *n = arg;

	(void)reason;
	n->neighbour[id] = SIM_NOBODY;
	n->up--;
	sl_router_peer_down(n->router, id, n->sim->now_us);
}

static void on_message(void *arg, uint32_t id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct sim_node *n = arg;

	if (msg[0] == SL_MSG_LOOKUP_RESPONSE)
		sim_pair_answer(n, msg, len);
	if (msg[0] != SL_MSG_DATAGRAM) {
		sl_router_message(n->router, id, msg, len, n->sim->now_us);
	} else if (len <= sizeof(n->message)) {
		/* The router rewrites it in place. */
		memcpy(n->message, msg, len);
		sl_router_datagram(n->router, id, n->message, len, flags, n->sim->now_us);
	}
}

static void on_metrics(void *arg, uint32_t id, const struct sl_link_metrics *m)
{
	struct sim_node *n = arg;
	struct sl_router_metrics r = {
		.measured = m->measured, .cost = m->cost, .loss = m->loss, .etx = m->etx,
		.covered_us = m->covered_us, .missing = m->missing};

	sl_router_peer_metrics(n->router, id, &r, n->sim->now_us);
}

static int on_send(void *arg, uint32_t id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct sim_node *n = arg;

	if (msg[0] == SL_MSG_DATAGRAM)
		sim_pair_forwarded(n, msg, len);
	return sl_links_send(n->links, id, msg, len, flags, n->sim->now_us);
}

static void on_local(void *arg, uint32_t from_peer, const uint8_t *msg, size_t len, uint8_t flags)
{
	(void)from_peer;
	(void)flags;
	sim_pair_local(arg, msg, len);
}

static void on_lookup_done(void *arg, const struct sl_node_addr *target, bool found, uint16_t mtu)
{
	(void)mtu;
	sim_pair_lookup_done(arg, target, found);
}

static void node_start(struct sim_node *n)
{
	struct sl_session_table_config tc = {.workers = 1};
	struct sl_transport_config transport = {
		.kind = SL_ADDR_UDP4, .mtu = MTU, .accept_connections = true};
	struct sl_links_sink ls = {.arg = n,
		.transmit = on_transmit,
		.peer_up = on_up,
		.peer_down = on_down,
		.message = on_message,
		.metrics = on_metrics};
	struct sl_router_sink rs = {
		.arg = n, .send = on_send, .local = on_local, .lookup_done = on_lookup_done};
	struct sl_links_config lc;
	struct sl_router_config rc;

	n->rows = n->wire_count + SPARE_ROWS;
	n->neighbour = must(malloc(n->rows * sizeof(*n->neighbour)));
	memset(n->neighbour, 0xff, n->rows * sizeof(*n->neighbour));
	tc.max_peers = n->rows;
	tc.max_sessions = n->rows * 4;
	sl_router_config_default(&rc);
	rc.max_peers = n->rows;
	rc.coord_size = n->sim->o.coords;
	if (n->sim->o.root_doubt_us != UINT64_MAX)
		rc.root_doubt_us = n->sim->o.root_doubt_us;
	rc.announce_again = !n->sim->o.no_again;
	rc.seed = n->sim->o.seed | 1;
	n->router = must(sl_router_create(&rc, n->identity, &rs, START_UNIX_S, n->sim->now_us));
	n->table = must(sl_session_table_create(&tc));
	sl_links_config_default(&lc);
	if (lc.max_peers < n->rows)
		lc.max_peers = n->rows;
	n->links = must(sl_links_create(
		&lc, n->identity, n->table, sl_aead_backend_find("sodium"), &ls, n->sim->now_us));
	if (sl_links_transport_add(n->links, &transport) != 0)
		must(NULL);
	n->timer_us = UINT64_MAX;
}

/* One end of a wire dials, by chance: otherwise the smallest numbers would do all the work. */
static void node_dial(struct sim_node *n)
{
	for (uint32_t i = 0; i < n->wire_count; i++) {
		struct sim_node *peer = &n->sim->nodes[n->wires[i].peer];
		struct sl_peer_config c = {
			.addr_count = 1, .auto_connect = true, .auto_reconnect = true};

		if (((n->index + peer->index) % 2 == 0) != (n->index < peer->index))
			continue;
		memcpy(c.xonly, sl_identity_xonly(peer->identity), SL_XONLY_BYTES);
		c.addrs[0] = addr_of(peer->index);
		if (sl_links_peer_configure(n->links, &c, n->sim->now_us) != 0)
			must(NULL);
	}
	sim_settle(n->sim, n);
}

static void node_stop(struct sim_node *n)
{
	if (!n->links)
		return;
	sl_links_destroy(n->links);
	sl_session_table_destroy(n->table);
	sl_router_destroy(n->router);
	free(n->neighbour);
	n->links = NULL;
	n->table = NULL;
	n->router = NULL;
	n->neighbour = NULL;
}

/* --- the graph --- */

static uint32_t find_set(uint32_t *set, uint32_t i)
{
	while (set[i] != i)
		i = set[i] = set[set[i]];
	return i;
}

static void wire_add(struct sim *s, uint32_t a, uint32_t b)
{
	uint64_t delay_us = s->o.delay_us / 2 + (s->o.delay_us ? sim_random(s) % s->o.delay_us : 0);

	for (int end = 0; end < 2; end++) {
		struct sim_node *n = &s->nodes[end ? b : a];

		if ((n->wire_count & (n->wire_count - 1)) == 0)
			n->wires = must(realloc(n->wires,
				(n->wire_count ? n->wire_count * 2 : 1) * sizeof(*n->wires)));
		n->wires[n->wire_count++] =
			(struct sim_wire){.peer = end ? a : b, .delay_us = delay_us};
	}
	s->edges++;
}

/* nodes * degree / 2 edges between random nodes; what is not connected then gets one more edge
 * each. */
static void graph(struct sim *s)
{
	uint32_t n = s->o.nodes, *set = must(malloc(n * sizeof(*set)));
	uint64_t wanted = (uint64_t)(n * s->o.degree / 2), most = (uint64_t)n * (n - 1) / 2;

	if (s->o.star) {
		for (uint32_t i = 1; i < n; i++)
			wire_add(s, 0, i);
		free(set);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		set[i] = i;
	while (s->edges < (wanted < most / 2 ? wanted : most / 2)) {
		uint32_t a = sim_below(s, n), b = sim_below(s, n);

		if (a == b || wire_to(&s->nodes[a], b))
			continue;
		wire_add(s, a, b);
		set[find_set(set, a)] = find_set(set, b);
	}
	for (uint32_t i = 1; i < n; i++)
		while (find_set(set, i) != find_set(set, 0)) {
			uint32_t b = sim_below(s, n);

			if (find_set(set, b) == find_set(set, i))
				continue;
			wire_add(s, i, b);
			set[find_set(set, i)] = find_set(set, b);
		}
	free(set);
}

struct sim *sim_create(const struct sim_options *o)
{
	struct sim *s = must(calloc(1, sizeof(*s)));

	s->o = *o;
	s->random[0] = o->seed * 0x9e3779b97f4a7c15ull + 1;
	s->random[1] = o->seed ^ 0xd1b54a32d192ed03ull;
	for (int i = 0; i < 16; i++)
		(void)sim_random(s);
	rng_of = s;
	randombytes_set_implementation(&rng);
	s->now_us = START_US;
	s->nodes = must(calloc(o->nodes, sizeof(*s->nodes)));
	s->alive = o->nodes;
	for (uint32_t i = 0; i < o->nodes; i++) {
		s->nodes[i].sim = s;
		s->nodes[i].index = i;
		s->nodes[i].identity = must(sl_identity_generate());
	}
	graph(s);
	s->component = must(calloc(o->nodes, sizeof(*s->component)));
	s->root_of = must(calloc(o->nodes, sizeof(*s->root_of)));
	s->queue = must(calloc(o->nodes, sizeof(*s->queue)));
	s->distance = must(calloc(o->nodes, sizeof(*s->distance)));
	for (uint32_t i = 0; i < o->nodes; i++)
		node_start(&s->nodes[i]);
	for (uint32_t i = 0; i < o->nodes; i++)
		node_dial(&s->nodes[i]);
	return s;
}

void sim_destroy(struct sim *s)
{
	for (size_t i = 0; i < s->heap_count; i++)
		free(s->heap[i].bytes);
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		/* No word to anyone any more: peers' callbacks would touch nodes that are gone. */
		node_stop(&s->nodes[i]);
		sl_identity_destroy(s->nodes[i].identity);
		free(s->nodes[i].wires);
	}
	free(s->heap);
	free(s->nodes);
	free(s->component);
	free(s->root_of);
	free(s->queue);
	free(s->distance);
	free(s->pairs);
	free(s);
}

void sim_kill(struct sim *s, uint32_t node)
{
	struct sim_node *n = &s->nodes[node];
	const uint64_t *c = sl_router_counters(n->router);

	for (unsigned i = 0; i < SL_ROUTE_COUNTER_COUNT; i++)
		s->dead_route[i] += c[i];
	n->dead = true;
	s->alive--;
	node_stop(n);
}

void sim_cut(struct sim *s, const uint8_t *side, bool cut)
{
	for (uint32_t i = 0; i < s->o.nodes; i++)
		for (uint32_t w = 0; w < s->nodes[i].wire_count; w++)
			if (side[i] != side[s->nodes[i].wires[w].peer])
				s->nodes[i].wires[w].cut = cut;
}

void sim_route_counters(const struct sim *s, uint64_t sum[SL_ROUTE_COUNTER_COUNT])
{
	memcpy(sum, s->dead_route, sizeof(s->dead_route));
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		const uint64_t *c;

		if (s->nodes[i].dead)
			continue;
		c = sl_router_counters(s->nodes[i].router);
		for (unsigned k = 0; k < SL_ROUTE_COUNTER_COUNT; k++)
			sum[k] += c[k];
	}
}

/* --- time --- */

void sim_settle(struct sim *s, struct sim_node *n)
{
	uint64_t links_us = sl_links_tick(n->links, s->now_us),
		 router_us = sl_router_tick(n->router, s->now_us);
	uint64_t at_us = links_us < router_us ? links_us : router_us;

	if (at_us <= s->now_us)
		at_us = s->now_us + 1;
	/* An earlier one that is queued already looks again. */
	if (at_us >= n->timer_us)
		return;
	n->timer_us = at_us;
	sim_push(s, (struct sim_event){.at_us = at_us, .node = n->index, .kind = SIM_TIMER});
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void happen(struct sim *s, struct sim_event *e)
{
	struct sim_node *n = &s->nodes[e->node];
	const bool watched = s->o.star && e->node == 0;
	uint64_t start_ns = watched ? cpu_ns() : 0;

	s->events++;
	switch (e->kind) {
	case SIM_PACKET:
		if (!n->dead) {
			struct sl_addr from = addr_of(e->from);

			sl_links_packet(n->links, &from, e->bytes, e->len, s->now_us);
			sim_settle(s, n);
		}
		free(e->bytes);
		break;
	case SIM_TIMER:
		if (n->dead || n->timer_us != e->at_us)
			break;
		n->timer_us = UINT64_MAX;
		sim_settle(s, n);
		break;
	case SIM_PAIR:
		sim_pair_event(s, e->from);
		break;
	}
	if (watched) {
		s->watched_ns += cpu_ns() - start_ns;
		s->watched_events++;
	}
}

void sim_run_to(struct sim *s, uint64_t at_us)
{
	while (s->heap_count && s->heap[0].at_us <= at_us) {
		struct sim_event e = pop(s);

		s->now_us = e.at_us;
		happen(s, &e);
	}
	s->now_us = at_us;
}
