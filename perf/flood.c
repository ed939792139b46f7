/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flood of msg1 against a node with links, on a virtual clock: the link state machines of all sides
 * whole, 5 ms each way, two minutes, rekeys every 40 s, default budget (10 a second, burst 100). The
 * flood's msg1 are real ones (each opens, gets msg2 and holds a row) of 256 keys nobody knows. Per
 * family, at 0.9 and 10 times the budget, from everywhere and from one prefix:
 *
 *	lost       frames between the node and its six linked peers, two of each family, 50 a second each way
 *	rekeys     of these links, and how many failed
 *	newcomers  honest nodes that dial for the first time, one every 4 s, from the flooded family, and
 *		   what they wait for the link
 *	movers	   peers that were linked before the flood, begin a new life at another address, one every 10 s, half
 *		   of them in the same prefix, and dial
 *
 * The flood's sources: everywhere; one prefix; returning, each invented source sends its msg1 again once, a second later;
 * imitating, each does so after 1, 3, 7 and 15 s, as an honest dialler; copies, a msg1 recorded from a linked peer comes from
 * everywhere.
 *
 * With -j a JSON object is the last thing printed.
 */
#include "bench.h"
#include "bench_random.h"
#include "sl_link.h"

#include <math.h>

#define LINKED 6u
#define NEWCOMERS 24u
#define MOVERS 10u
#define FIRST_MOVER (1 + LINKED)
#define FIRST_NEWCOMER (FIRST_MOVER + MOVERS)
#define NODES (FIRST_NEWCOMER + NEWCOMERS)
#define KEYS 256u
#define RUN_US 120000000ull
#define STEP_US 1000u
#define DELAY_STEPS 5u
#define RATE 10.0
#define BURN_IN_US 10000000ull

enum family { IP4, IP6, ETH, FAMILIES };
static const char *const family_names[FAMILIES] = {"IPv4", "IPv6", "Ethernet"};

/* --- the network: whatever is sent arrives five steps later --- */

struct packet {
	struct packet *next;
	struct sl_addr from;
	unsigned to;
	size_t len;
	uint8_t bytes[];
};
static struct packet *arrivals[DELAY_STEPS + 1];
static unsigned step;
static uint64_t now_us;

static struct node {
	unsigned index;
	struct sl_identity *id;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_addr addr;
	uint64_t due_us, began_us, up_us, sent, received;
	uint32_t peer_id; /* of the hub, here */
} nodes[NODES];
static uint32_t hub_peer_id[NODES]; /* of the node, at the hub */
static uint8_t recorded[SL_MSG1_PACKET_BYTES]; /* the last msg1 of the first linked peer */

static struct sl_addr
addr_of(enum family f, unsigned index, bool stranger, bool one_prefix)
{
	struct sl_addr a = {.transport = (uint8_t)f};
	uint32_t r = bench_random();

	switch (f) {
	case IP4:
		a.kind = SL_ADDR_UDP4;
		a.udp_port = 2121;
		a.u.ip4[0] = stranger ? (uint8_t)(one_prefix ? 20 : 20 + (r & 127)) : 10;
		a.u.ip4[1] = stranger && !one_prefix ? (uint8_t)(r >> 8) : 0;
		a.u.ip4[2] = stranger ? (one_prefix ? 0 : (uint8_t)(r >> 16)) : (uint8_t)index;
		a.u.ip4[3] = stranger ? (uint8_t)(1 + (r >> 24) % 250) : 1;
		break;
	case IP6:
		a.kind = SL_ADDR_UDP6;
		a.udp_port = 2121;
		a.u.ip6[0] = stranger ? 0x24 : 0x20;
		a.u.ip6[5] = stranger ? 0 : (uint8_t)index;
		a.u.ip6[15] = (uint8_t)(1 + index);
		if (stranger) {
			memcpy(a.u.ip6 + 12, &r, 4);
			r = bench_random();
			if (!one_prefix)
				memcpy(a.u.ip6 + 2, &r, 4);
		}
		break;
	default:
		a.kind = SL_ADDR_ETH;
		a.u.mac[0] = 2;
		a.u.mac[1] = stranger;
		if (stranger)
			memcpy(a.u.mac + 2, &r, 4);
		else
			a.u.mac[5] = (uint8_t)index;
		break;
	}
	return a;
}

static int
on_transmit(void *arg, const struct sl_addr *to, const uint8_t *bytes, size_t len)
{
	struct node *n = arg;
	struct packet *p;
	unsigned i = 0;

	while (i < NODES && !sl_addr_equal(&nodes[i].addr, to) && !(i == 0 && n->index && to->transport == n->addr.transport))
		i++;
	if (i == NODES)
		return 0; /* to an invented address */
	p = malloc(sizeof(*p) + len);
	if (!p)
		return -1;
	if (n->index == 1 && len == sizeof(recorded))
		memcpy(recorded, bytes, len);
	p->from = n->addr;
	if (!n->index) { /* the hub has an address in each family, next to each node's */
		p->from = nodes[i].addr;
		p->from.u.mac[5] ^= 0x80;
	}
	p->to = i;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	p->next = NULL;
	for (struct packet **at = &arrivals[(step + DELAY_STEPS) % (DELAY_STEPS + 1)];; at = &(*at)->next)
		if (!*at) {
			*at = p;
			break;
		}
	return 0;
}

static void
on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct node *n = arg;

	(void)mtu;
	if (n->index) {
		n->peer_id = id;
		if (!n->up_us)
			n->up_us = now_us;
		return;
	}
	for (unsigned i = 1; i < NODES; i++)
		if (memcmp(sl_identity_xonly(nodes[i].id), key->xonly, SL_XONLY_BYTES) == 0)
			hub_peer_id[i] = id;
}

static void
on_message(void *arg, uint32_t id, const uint8_t *msg, size_t len, uint8_t flags)
{
	(void)id;
	(void)msg;
	(void)len;
	(void)flags;
	((struct node *)arg)->received++;
}

/* --- one run --- */

struct result {
	uint64_t sent, lost, rekeys, rekeys_failed, downs, came_in, moved, flood, admitted;
	double median_s, p95_s, worst_s, moved_median_s, moved_worst_s;
};

static int
links_make(struct node *n)
{
	struct sl_links_sink sink = {.arg = n, .transmit = on_transmit, .peer_up = on_up, .message = on_message};
	struct sl_links_config c;
	int rc = 0;

	sl_links_config_default(&c);
	c.rekey_after_us = 40000000;
	n->links = n->id && n->table ? sl_links_create(&c, n->id, n->table, sl_aead_backend_find("sodium"), &sink, now_us)
				     : NULL;
	if (!n->links)
		return -1;
	for (unsigned k = 0; k < FAMILIES; k++) {
		struct sl_transport_config t = {.id = (uint8_t)k, .kind = k == ETH ? SL_ADDR_ETH : SL_ADDR_UDP4, .mtu = 1280,
			.accept_connections = true};

		rc |= sl_links_transport_add(n->links, &t);
	}
	return rc;
}

static int
node_start(unsigned i, enum family f, struct sl_identity *id)
{
	struct node *n = &nodes[i];
	struct sl_session_table_config tc = {.max_sessions = i ? 32 : 2048, .max_peers = i ? 4 : 512, .workers = 1};

	memset(n, 0, sizeof(*n));
	n->index = i;
	n->addr = addr_of(f, i, false, false);
	n->id = id ? id : sl_identity_generate();
	n->table = sl_session_table_create(&tc);
	return links_make(n);
}

/* A new life at another address: near by, another port; or anywhere. What Ethernet has of it is another MAC. */
static int dial_hub(struct node *n);
static int
node_moves(unsigned i, enum family f)
{
	struct node *n = &nodes[i];
	struct sl_identity *id = n->id;
	bool near_by = (i - FIRST_MOVER) % 2 == 0;

	sl_links_destroy(n->links);
	sl_session_table_destroy(n->table);
	if (node_start(i, f, id))
		return -1;
	if (f == ETH || !near_by)
		n->addr.u.mac[f == IP6 ? 4 : f == IP4 ? 1 : 4] ^= 0x40; /* ip4[1], ip6[4], mac[4] */
	else
		n->addr.udp_port++;
	return dial_hub(n);
}

static int
dial_hub(struct node *n)
{
	struct sl_peer_config p = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};

	memcpy(p.xonly, sl_identity_xonly(nodes[0].id), SL_XONLY_BYTES);
	p.addrs[0] = n->addr; /* the hub's in that family: the network knows */
	p.addrs[0].u.mac[5] ^= 0x80;
	n->began_us = now_us;
	n->due_us = now_us;
	return sl_links_peer_configure(n->links, &p, now_us);
}

static void
deliver(void)
{
	struct packet *p = arrivals[step % (DELAY_STEPS + 1)], *next;

	arrivals[step % (DELAY_STEPS + 1)] = NULL;
	for (; p; p = next) {
		next = p->next;
		sl_links_packet(nodes[p->to].links, &p->from, p->bytes, p->len, now_us);
		nodes[p->to].due_us = now_us;
		free(p);
	}
}

static uint8_t flood_msg1[KEYS][SL_NOISE_MSG1_BYTES];

static int
flood_prepare(void)
{
	static const uint8_t epoch[SL_EPOCH_BYTES] = {1};

	for (unsigned i = 0; i < KEYS; i++) {
		struct sl_identity *id = sl_identity_generate();
		struct sl_noise_initiator st;
		struct sl_remote_key key;

		if (!id || sl_remote_key_init(&key, sl_identity_xonly(nodes[0].id), id) < 0)
			return -1;
		sl_noise_initiate(&st, flood_msg1[i], id, &key, epoch, NULL);
		sl_noise_initiator_fini(&st);
		sl_remote_key_fini(&key);
		sl_identity_destroy(id);
	}
	return 0;
}

enum sources { EVERYWHERE, ONE_PREFIX, RETURNING, IMITATING, COPIES, SOURCES };
static const char *const source_names[SOURCES] = {"everywhere", "one prefix", "returning", "imitating", "copies"};

/* What invented sources have to send again, and when. */
#define SENT 4096u
static struct sent {
	struct sl_addr from;
	uint8_t packet[SL_MSG1_PACKET_BYTES];
	uint64_t at_us; /* of the first; 0 = a free row */
	unsigned times;
} sent[SENT];

static uint64_t
again_us(const struct sent *s)
{
	return s->at_us + (((uint64_t)1 << s->times) - 1) * 1000000;
}

static struct sent *
sent_due(enum sources sources)
{
	struct sent *free_row = &sent[bench_random() % SENT];

	if (sources != RETURNING && sources != IMITATING)
		return free_row;
	for (struct sent *s = sent; s < sent + SENT; s++) {
		if (!s->at_us)
			free_row = s;
		else if (now_us >= again_us(s))
			return s;
	}
	return free_row;
}

static void
flood_one(enum family f, enum sources sources)
{
	struct sent *s = sent_due(sources);
	uint8_t packet[SL_MSG1_PACKET_BYTES];

	if (sources == EVERYWHERE || sources == ONE_PREFIX || sources == COPIES || !s->at_us) {
		s->from = addr_of(f, 0, true, sources == ONE_PREFIX);
		s->at_us = now_us;
		s->times = 0;
		if (sources == COPIES)
			memcpy(s->packet, recorded, sizeof(recorded));
		else
			sl_msg1_build(s->packet, bench_random(), flood_msg1[bench_random() % KEYS]);
	}
	s->times++;
	memcpy(packet, s->packet, sizeof(packet));
	if (s->times > (sources == RETURNING ? 1u : 4u))
		s->at_us = 0;
	sl_links_packet(nodes[0].links, &s->from, packet, sizeof(packet), now_us);
	nodes[0].due_us = now_us;
}

static void
data(void)
{
	static const uint8_t msg[64] = {SL_MSG_LOOKUP_REQUEST};

	for (unsigned i = 1; i <= LINKED; i++) {
		nodes[i].sent += sl_links_send(nodes[i].links, nodes[i].peer_id, msg, sizeof(msg), 0, now_us) == 0;
		nodes[0].sent += sl_links_send(nodes[0].links, hub_peer_id[i], msg, sizeof(msg), 0, now_us) == 0;
	}
}

static uint64_t
sum(enum sl_link_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 1; i <= LINKED; i++)
		n += sl_links_counters(nodes[i].links)[c];
	return n;
}

/* Between two packets that come independently of each other, on average rate of them a second. */
static uint64_t
gap_us(double rate)
{
	return (uint64_t)(-log(1 - (double)bench_random() / 4294967296.0) * 1e6 / rate);
}

/* What nodes have waited for their link, sorted; how many have it. */
static unsigned
waits(unsigned from, unsigned to, double *wait)
{
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		if (nodes[i].up_us)
			wait[n++] = (double)(nodes[i].up_us - nodes[i].began_us) / 1e6;
	qsort(wait, n, sizeof(wait[0]), bench_compare);
	return n;
}

static int
run(enum family f, double times, enum sources sources, struct result *r)
{
	uint64_t start_us = now_us, in_flight = 0;
	uint64_t flood_us = start_us + BURN_IN_US, next_us = start_us + BURN_IN_US + 10000000;
	uint64_t move_us = next_us + 1500000;
	double wait[NEWCOMERS];
	unsigned next = FIRST_NEWCOMER, move = FIRST_MOVER;
	int rc = 0;

	memset(r, 0, sizeof(*r));
	memset(sent, 0, sizeof(sent));
	for (unsigned i = 0; i < NODES; i++)
		rc |= node_start(i, i == 0 ? f : i <= LINKED ? (enum family)((i - 1) % FAMILIES) : f, NULL);
	memset(&nodes[0].addr, 0, sizeof(nodes[0].addr));
	for (unsigned i = 1; i < FIRST_NEWCOMER; i++)
		rc |= dial_hub(&nodes[i]);
	rc |= flood_prepare();
	for (; !rc && now_us < start_us + RUN_US + 40000000; now_us += STEP_US, step++) {
		uint64_t t = now_us - start_us;

		deliver();
		if (t >= BURN_IN_US && times > 0)
			for (; flood_us <= now_us; flood_us += gap_us(times * RATE), r->flood++)
				flood_one(f, sources);
		if (next < NODES && now_us >= next_us) {
			rc |= dial_hub(&nodes[next++]);
			next_us += 3500000 + bench_random() % 1000000;
		}
		if (move < FIRST_NEWCOMER && now_us >= move_us) {
			rc |= node_moves(move++, f);
			move_us += 9500000 + bench_random() % 1000000;
		}
		if (t >= BURN_IN_US && t < RUN_US && step % 20 == 0)
			data();
		for (unsigned i = 0; i < NODES; i++)
			if (nodes[i].due_us <= now_us)
				nodes[i].due_us = sl_links_tick(nodes[i].links, now_us);
	}
	for (unsigned i = 1; i <= LINKED; i++) {
		r->sent += nodes[i].sent;
		in_flight += nodes[i].received;
	}
	r->sent += nodes[0].sent;
	r->lost = r->sent - in_flight - nodes[0].received;
	r->rekeys = sum(SL_LINK_REKEY);
	r->rekeys_failed = sum(SL_LINK_REKEY_TIMEOUT);
	r->downs = sum(SL_LINK_LINK_DEAD) + sum(SL_LINK_REKEY_RESCUE);
	r->admitted = sl_links_counters(nodes[0].links)[SL_LINK_MSG2_TX];
	r->moved = waits(FIRST_MOVER, FIRST_NEWCOMER, wait);
	if (r->moved) {
		r->moved_median_s = wait[r->moved / 2];
		r->moved_worst_s = wait[r->moved - 1];
	}
	r->came_in = waits(FIRST_NEWCOMER, NODES, wait);
	if (r->came_in) {
		r->median_s = wait[r->came_in / 2];
		r->p95_s = wait[r->came_in * 95 / 100];
		r->worst_s = wait[r->came_in - 1];
	}
	for (unsigned i = 0; i < NODES; i++) {
		sl_links_destroy(nodes[i].links);
		sl_session_table_destroy(nodes[i].table);
		sl_identity_destroy(nodes[i].id);
	}
	for (unsigned i = 0; i <= DELAY_STEPS; i++)
		while (arrivals[i]) {
			struct packet *p = arrivals[i];

			arrivals[i] = p->next;
			free(p);
		}
	return rc;
}

static void
print_row(FILE *out, unsigned f, double load, unsigned sources, const struct result *r)
{
	fprintf(out, "%-9s %-10s %7.0f %9llu %6llu %8llu (%llu) %6llu of %u %9.3f %7.3f %8.3f %6llu of %u %8.3f %8.3f\n",
		family_names[f],
		load > 0 ? source_names[sources] : "-", load * RATE, (unsigned long long)r->sent,
		(unsigned long long)r->lost, (unsigned long long)r->rekeys, (unsigned long long)r->rekeys_failed,
		(unsigned long long)r->came_in, NEWCOMERS, r->median_s, r->p95_s, r->worst_s,
		(unsigned long long)r->moved, MOVERS, r->moved_median_s, r->moved_worst_s);
}

static void
print_json(const char *comma, unsigned f, double load, unsigned sources, const struct result *r)
{
	printf("%s{\"family\": \"%s\", \"sources\": \"%s\", \"flood_per_s\": %.0f, \"frames\": %llu, \"lost\": %llu, "
	       "\"rekeys\": %llu, \"rekeys_failed\": %llu, \"newcomers\": %u, \"came_in\": %llu, \"median_s\": %.3f, "
	       "\"p95_s\": %.3f, \"worst_s\": %.3f, \"movers\": %u, \"moved\": %llu, \"moved_median_s\": %.3f, \"moved_worst_s\": %.3f}",
		comma, family_names[f], load > 0 ? source_names[sources] : "none", load * RATE, (unsigned long long)r->sent,
		(unsigned long long)r->lost, (unsigned long long)r->rekeys, (unsigned long long)r->rekeys_failed, NEWCOMERS,
		(unsigned long long)r->came_in, r->median_s, r->p95_s, r->worst_s, MOVERS, (unsigned long long)r->moved,
		r->moved_median_s, r->moved_worst_s);
}

int
main(int argc, char **argv)
{
	static const double loads[] = {0, 0.9, 10};
	bool json = false;
	const char *comma = "";
	int c, rc = 0;
	FILE *out;

	while ((c = getopt(argc, argv, "j")) != -1) {
		if (c != 'j') {
			fprintf(stderr, "usage: %s [-j]\n", argv[0]);
			return 2;
		}
		json = true;
	}
	bench_random_install(0x9e3779b97f4a7c15ull);
	if (sl_crypto_init() != 0)
		return 1;
	now_us = 1000000000;
	out = json ? stderr : stdout;
	fprintf(out, "%-9s %-10s %7s %9s %6s %14s %10s %9s %7s %8s %9s %8s %8s\n", "family", "sources", "flood/s", "frames", "lost",
		"rekeys (fail)", "newcomers", "median s", "p95 s", "worst s", "movers", "median s", "worst s");
	if (json)
		printf("{\"budget_per_s\": %.0f, \"runs\": [", RATE);
	for (unsigned f = 0; f < FAMILIES; f++)
		for (unsigned l = 0; l < 3; l++)
			for (unsigned s = 0; !rc && s < (l ? SOURCES : 1u); s++) {
				struct result r;

				if (f == ETH && s == ONE_PREFIX)
					continue; /* a port is one prefix */
				rc = run((enum family)f, loads[l], (enum sources)s, &r);
				print_row(out, f, loads[l], s, &r);
				if (json)
					print_json(comma, f, loads[l], s, &r);
				comma = ", ";
			}
	fprintf(out, "flood/s: msg1 of keys nobody knows a second, from everywhere or one prefix; frames, lost: of links that are up; rekeys (fail): done, not in time;\n"
		"newcomers: honest nodes that got a link; median, p95, worst: s until they had it\n");
	if (json && !rc)
		printf("]}\n");
	return rc ? 1 : 0;
}
