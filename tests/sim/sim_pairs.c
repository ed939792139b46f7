/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions between random pairs, as two end nodes set them up:
 *
 *	the source looks the target's key up (sl_router_lookup: its router asks at 0, 1, 3 and 7 s);
 *	set-up with both coordinates to the target, from which every node on the way learns them;
 *	acknowledgement with both coordinates back;
 *	data without coordinates there, data without coordinates back: then the pair counts as
 *delivered.
 *
 * Pairs are drawn in rounds: in each, every living node is the target once, always in the same
 * random order, of a random source of its component. So no target is asked for twice within two
 * seconds, which relays would not forward (routing facts, 11.3, step 8).
 *
 * An error signal is heeded as a session does (routing facts, 9.6), once in two seconds: coordinates
 * are shown, or looked up anew when the path is broken, and the message goes again after 200 ms, the
 * least that TCP waits. What vanishes without a word is repeated after 1.5, 3, 6 ... s: a set-up or
 * its acknowledgement from the set-up on, data with both coordinates, and every second time all from
 * the lookup on; five times a step. What a session's own cryptography would add is left
 * out; relays see the same bytes.
 */
#include "sim.h"

#include <errno.h>

#define MAGIC 0x73696d21u
#define TRAILER_BYTES 12 /* magic, pair, serial: the end of each of our payloads */
#define ATTEMPTS 6
#define ROUND_US (2300 * SIM_MS)
#define PAYLOAD_MAX (64 + 2 * (2 + (SL_PATH_MAX + 1) * SL_NODE_ADDR_BYTES) + TRAILER_BYTES)

static const struct sl_node_addr *addr_of(const struct sim *s, uint32_t node)
{
	return sl_identity_addr(s->nodes[node].identity);
}

static void pair_due(struct sim *s, struct sim_pair *p, uint64_t in_us)
{
	p->due_us = s->now_us + in_us;
	sim_push(s, (struct sim_event){.at_us = p->due_us,
			    .node = p->from,
			    .from = (uint32_t)(p - s->pairs),
			    .kind = SIM_PAIR});
}

static void pair_end(struct sim *s, struct sim_pair *p, bool delivered)
{
	p->state = delivered ? PAIR_DONE : PAIR_FAILED;
	p->done_us = s->now_us;
	s->pairs_open--;
}

static size_t put_own_coords(uint8_t *at, const struct sim_node *n)
{
	struct sl_node_addr own[SL_PATH_MAX + 1];
	uint32_t len = sl_router_coords(n->router, own, SL_PATH_MAX + 1);

	sl_put16(at, (uint16_t)len);
	memcpy(at + 2, own, len * sizeof(own[0]));
	return 2 + len * sizeof(own[0]);
}

static size_t put_target_coords(uint8_t *at, const struct sim_pair *p)
{
	sl_put16(at, p->coords_count);
	memcpy(at + 2, p->coords, p->coords_count * sizeof(p->coords[0]));
	return 2 + p->coords_count * sizeof(p->coords[0]);
}

/* Both lists, the sender's own first. */
static size_t put_coords(struct sim *s, const struct sim_pair *p, bool there, uint8_t *at)
{
	size_t len;

	if (there) {
		len = put_own_coords(at, &s->nodes[p->from]);
		return len + put_target_coords(at + len, p);
	}
	len = put_own_coords(at, &s->nodes[p->to]);
	return len + put_own_coords(at + len, &s->nodes[p->from]);
}

static size_t payload_build(struct sim *s, struct sim_pair *p, uint8_t *payload)
{
	size_t len;

	memset(payload, 0, 64);
	if (p->state == PAIR_DATA || p->state == PAIR_REPLY) {
		len = 12;
		if (p->show) {
			payload[1] = 1;
			len += put_coords(s, p, p->state == PAIR_DATA, payload + len);
		}
		memset(payload + len, 0, 28);
		len += 28;
	} else {
		payload[0] = p->state == PAIR_SETUP ? 1 : 2;
		len = 5;
		len += put_coords(s, p, p->state == PAIR_SETUP, payload + len);
		sl_put16(payload + len, TRAILER_BYTES);
		len += 2;
	}
	sl_put32(payload + len, MAGIC);
	sl_put32(payload + len + 4, (uint32_t)(p - s->pairs));
	sl_put32(payload + len + 8, ++p->serial);
	return len + TRAILER_BYTES;
}

/* The message of the pair's state, from whose turn it is. */
static void say(struct sim *s, struct sim_pair *p)
{
	bool there = p->state == PAIR_SETUP || p->state == PAIR_DATA;
	struct sim_node *n = &s->nodes[there ? p->from : p->to];
	uint64_t patience_us = SIM_S + 40 * (s->o.delay_us + s->o.jitter_us);
	uint8_t payload[PAYLOAD_MAX];
	size_t len = payload_build(s, p, payload);

	p->hops = 0;
	/* Without a next hop: tried again like a loss. */
	(void)!sl_router_originate(
		n->router, addr_of(s, there ? p->to : p->from), payload, len, s->now_us);
	pair_due(s, p, patience_us << p->attempt);
	sim_settle(s, n);
}

static void look_up(struct sim *s, struct sim_pair *p)
{
	struct sim_node *n = &s->nodes[p->from];
	int rc =
		sl_router_lookup(n->router, sl_identity_xonly(s->nodes[p->to].identity), s->now_us);

	p->state = PAIR_LOOKUP;
	/* Nobody claims the target yet: a session's own retry. Else the end of the lookup is told.
	 */
	pair_due(s, p, rc == 0 || rc == -EALREADY ? 20 * SIM_S : SIM_S);
	sim_settle(s, n);
}

void sim_pair_event(struct sim *s, uint32_t pair)
{
	struct sim_pair *p = s->pairs + pair;

	if (pair >= s->pair_count || p->due_us != s->now_us || p->state >= PAIR_DONE)
		return;
	if (p->state == PAIR_WAITING) {
		p->start_us = s->now_us;
		look_up(s, p);
		return;
	}
	if (p->fresh) {
		p->fresh = false;
		if (p->anew)
			look_up(s, p);
		else
			say(s, p);
		p->anew = false;
		return;
	}
	if (p->attempt && getenv("SL_SIM_TRACE"))
		fprintf(stderr,
			"%.3f s: pair %u -> %u, message %u in vain after %u hops, attempt %u, last "
			"at %u\n",
			(double)s->now_us / 1e6, p->from, p->to, p->state, p->hops, p->attempt,
			p->hops && p->hops < SIM_TRACE ? p->trace[p->hops - 1] : SIM_NOBODY);
	if (++p->attempt == ATTEMPTS) {
		pair_end(s, p, false);
	} else if (p->state == PAIR_LOOKUP || p->attempt % 2 == 0) {
		p->repeated = true;
		look_up(s, p);
	} else {
		p->repeated = true;
		if (p->state == PAIR_DATA || p->state == PAIR_REPLY)
			p->show = true;
		else
			p->state = PAIR_SETUP;
		say(s, p);
	}
}

/* From within a router's callback: the turn is taken as an event of its own. */
static void turn(struct sim *s, struct sim_pair *p, enum sim_pair_state state)
{
	p->state = (uint8_t)state;
	p->attempt = 0;
	p->fresh = true;
	p->show = false;
	pair_due(s, p, 0);
}

static struct sim_pair *pair_of(struct sim_node *n, const uint8_t *msg, size_t len)
{
	const uint8_t *end = msg + len - TRAILER_BYTES;
	struct sim_pair *p;

	if (len < SL_DATAGRAM_HEADER_BYTES + TRAILER_BYTES || sl_get32(end) != MAGIC ||
		sl_get32(end + 4) >= n->sim->pair_count)
		return NULL;
	p = &n->sim->pairs[sl_get32(end + 4)];
	return p->state < PAIR_DONE && p->serial == sl_get32(end + 8) ? p : NULL;
}

/* What each node on the way would say, for whoever looks for the cause. */
static void sim_pair_looped(struct sim_node *n, struct sim_pair *p, uint16_t again)
{
	static const char *const kinds[] = {"", "", "setup", "ack", "data", "reply"};

	if (!p->looped && getenv("SL_SIM_TRACE"))
		fprintf(stderr, "loop: %s of pair %u -> %u at hop %u, node %u was hop %u; %.3f s\n",
			kinds[p->state], p->from, p->to, p->hops, n->index, again,
			(double)n->sim->now_us / 1e6);
	p->looped = true;
}

void sim_pair_forwarded(struct sim_node *n, const uint8_t *msg, size_t len)
{
	struct sim_pair *p = pair_of(n, msg, len);

	if (!p)
		return;
	for (uint16_t i = 0; i < p->hops && i < SIM_TRACE; i++)
		if (p->trace[i] == n->index)
			sim_pair_looped(n, p, i);
	if (p->hops < SIM_TRACE)
		p->trace[p->hops] = n->index;
	p->hops++;
}

/* An error signal for one of our messages. */
static void told(struct sim_node *n, const struct sl_signal *signal)
{
	struct sim *s = n->sim;

	s->signals[signal->type & 3]++;
	for (uint32_t i = 0; i < s->pair_count; i++) {
		struct sim_pair *p = &s->pairs[i];
		bool there = p->state == PAIR_SETUP || p->state == PAIR_DATA;
		uint32_t speaker = there ? p->from : p->to, other = there ? p->to : p->from;

		if (p->state < PAIR_SETUP || p->state > PAIR_REPLY || p->fresh ||
			speaker != n->index || !sl_node_addr_equal(&signal->dest, addr_of(s, other)) ||
			(p->told_us && s->now_us - p->told_us < 2 * SIM_S))
			continue;
		p->told_us = s->now_us;
		p->repeated = p->fresh = p->show = true;
		p->anew = there && signal->type == SL_SIGNAL_PATH_BROKEN;
		pair_due(s, p, 200 * SIM_MS);
	}
}

void sim_pair_local(struct sim_node *n, const uint8_t *msg, size_t len)
{
	struct sim_pair *p = pair_of(n, msg, len);
	struct sl_signal signal;
	struct sim *s = n->sim;

	if (!p) {
		if (len > SL_DATAGRAM_PAYLOAD && sl_signal_parse(&signal, msg + SL_DATAGRAM_PAYLOAD,
							 len - SL_DATAGRAM_PAYLOAD) == 0)
			told(n, &signal);
		return;
	}
	if (p->fresh)
		return;
	switch (p->state) {
	case PAIR_SETUP:
		turn(s, p, PAIR_ACK);
		break;
	case PAIR_ACK:
		turn(s, p, PAIR_DATA);
		break;
	case PAIR_DATA:
		p->data_hops = p->hops;
		turn(s, p, PAIR_REPLY);
		break;
	case PAIR_REPLY:
		pair_end(s, p, true);
		break;
	default:
		break;
	}
}

void sim_pair_answer(struct sim_node *n, const uint8_t *msg, size_t len)
{
	struct sl_lookup_response r;

	if (!n->pairs || sl_lookup_response_parse(&r, msg, len) != 0 ||
		r.coords_count > SL_PATH_MAX)
		return;
	for (struct sim_pair *p = n->pairs; p; p = p->next)
		if (p->state == PAIR_LOOKUP &&
			sl_node_addr_equal(&r.target, addr_of(n->sim, p->to))) {
			memcpy(p->coords, r.coords, r.coords_count * sizeof(p->coords[0]));
			p->coords_count = r.coords_count;
		}
}

void sim_pair_lookup_done(struct sim_node *n, const struct sl_node_addr *target, bool found)
{
	for (struct sim_pair *p = n->pairs; p; p = p->next) {
		if (p->state != PAIR_LOOKUP || !sl_node_addr_equal(target, addr_of(n->sim, p->to)))
			continue;
		if (found && p->coords_count) {
			if (!p->found_us)
				p->found_us = n->sim->now_us;
			turn(n->sim, p, PAIR_SETUP);
		} else {
			pair_due(n->sim, p, 0);
		}
	}
}

/* --- the whole --- */

static uint32_t shuffled(struct sim *s, uint32_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->o.nodes; i++)
		if (!s->nodes[i].dead)
			order[n++] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = sim_below(s, i), t = order[k];

		order[k] = order[i - 1];
		order[i - 1] = t;
	}
	return n;
}

static void draw_pair(struct sim *s, uint32_t to, uint64_t in_us)
{
	struct sim_pair *p = &s->pairs[s->pair_count];
	uint32_t from, tries = 0;

	do
		from = sim_below(s, s->o.nodes);
	while ((from == to || s->nodes[from].dead || s->component[from] != s->component[to]) &&
		++tries < 100 * s->o.nodes);
	if (tries == 100 * s->o.nodes)
		return; /* a component of one */
	memset(p, 0, sizeof(*p));
	p->from = from;
	p->to = to;
	p->next = s->nodes[from].pairs;
	s->nodes[from].pairs = p;
	s->pair_count++;
	pair_due(s, p, in_us);
}

/* The time that the last one begins. */
static uint64_t draw_pairs(struct sim *s)
{
	uint32_t *order = calloc(s->o.nodes, sizeof(*order)), n;
	uint64_t at_us = 0, step_us = ROUND_US / s->alive;

	if (!order)
		exit(1);
	if (step_us < SIM_S / s->o.pairs_per_s)
		step_us = SIM_S / s->o.pairs_per_s;
	for (uint32_t i = 0; i < s->o.nodes; i++)
		s->nodes[i].pairs = NULL;
	s->pair_count = 0;
	n = shuffled(s, order);
	for (uint32_t drawn = 0; drawn < s->o.pairs;) {
		for (uint32_t i = 0; i < n && drawn < s->o.pairs; i++, drawn++, at_us += step_us)
			draw_pair(s, order[i], at_us);
	}
	s->pairs_open = s->pair_count;
	free(order);
	return s->now_us + at_us;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int by_source(const void *a, const void *b)
{
	uint32_t x = ((const struct sim_pair *)a)->from, y = ((const struct sim_pair *)b)->from;

	return x < y ? -1 : x > y;
}

static double share_of(double *v, uint32_t n, double share)
{
	return n ? v[(uint32_t)(share * (n - 1))] : 0;
}

static void evaluate(struct sim *s, struct sim_delivery *d)
{
	double *stretch = calloc(s->pair_count + 1, sizeof(*stretch));
	double *lookup_ms = calloc(s->pair_count + 1, sizeof(*lookup_ms));
	uint32_t source = SIM_NOBODY, found = 0;

	if (!stretch || !lookup_ms)
		exit(1);
	/* The nodes' lists point into the array: they are done with. */
	for (uint32_t i = 0; i < s->o.nodes; i++)
		s->nodes[i].pairs = NULL;
	qsort(s->pairs, s->pair_count, sizeof(*s->pairs), by_source);
	for (uint32_t i = 0; i < s->pair_count; i++) {
		struct sim_pair *p = &s->pairs[i];

		d->looped += p->looped;
		if (p->found_us)
			lookup_ms[found++] = (double)(p->found_us - p->start_us) / 1e3;
		else
			d->no_lookup++;
		if (p->state != PAIR_DONE)
			continue;
		if (p->from != source)
			sim_distances(s, source = p->from);
		d->first_try += !p->repeated;
		d->hops_mean += p->data_hops;
		stretch[d->delivered++] = (double)p->data_hops / s->distance[p->to];
	}
	qsort(stretch, d->delivered, sizeof(*stretch), by_value);
	qsort(lookup_ms, found, sizeof(*lookup_ms), by_value);
	for (uint32_t i = 0; i < d->delivered; i++)
		d->stretch_mean += stretch[i] / d->delivered;
	if (d->delivered)
		d->hops_mean /= d->delivered;
	d->stretch_p99 = share_of(stretch, d->delivered, 0.99);
	d->stretch_max = share_of(stretch, d->delivered, 1);
	d->lookup_p50_ms = share_of(lookup_ms, found, 0.5);
	d->lookup_p99_ms = share_of(lookup_ms, found, 0.99);
	d->lookup_max_ms = share_of(lookup_ms, found, 1);
	free(stretch);
	free(lookup_ms);
}

void sim_deliver(struct sim *s, struct sim_delivery *d)
{
	uint64_t start_us = s->now_us, last_us;

	memset(d, 0, sizeof(*d));
	free(s->pairs);
	s->pairs = calloc(s->o.pairs + 1, sizeof(*s->pairs));
	if (!s->pairs)
		exit(1);
	last_us = draw_pairs(s) + 60 * SIM_S;
	while (s->pairs_open && s->now_us < last_us)
		sim_run_to(s, s->now_us + 100 * SIM_MS);
	d->pairs = s->pair_count;
	d->took_s = (double)(s->now_us - start_us) / 1e6;
	evaluate(s, d);
	/* Events of unfinished pairs may be queued still. */
	s->pair_count = 0;
}
