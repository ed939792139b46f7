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
 *
 * With -j a JSON object is the last thing printed.
 */
#include "bench.h"
#include "bench_random.h"
#include "sl_link.h"

#include <math.h>

#define LINKED 6u
#define NEWCOMERS 24u
#define NODES (1 + LINKED + NEWCOMERS)
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
	uint64_t sent, lost, rekeys, rekeys_failed, downs, came_in, flood, admitted;
	double median_s, p95_s, worst_s;
};

static int
node_start(unsigned i, enum family f)
{
	struct node *n = &nodes[i];
	struct sl_session_table_config tc = {.max_sessions = i ? 32 : 2048, .max_peers = i ? 4 : 512, .workers = 1};
	struct sl_links_sink sink = {.arg = n, .transmit = on_transmit, .peer_up = on_up, .message = on_message};
	struct sl_links_config c;
	int rc = 0;

	memset(n, 0, sizeof(*n));
	n->index = i;
	n->addr = addr_of(f, i, false, false);
	n->id = sl_identity_generate();
	n->table = sl_session_table_create(&tc);
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

enum sources { EVERYWHERE, ONE_PREFIX, RETURNING, SOURCES };
static const char *const source_names[SOURCES] = {"everywhere", "one prefix", "returning"};

/* RETURNING: each invented source sends its msg1 again a second later, as an honest one would. */
static struct sent {
	struct sl_addr from;
	uint8_t packet[SL_MSG1_PACKET_BYTES];
	uint64_t at_us;
} sent[1024];
static unsigned sent_head, sent_tail;

static void
flood_one(enum family f, enum sources sources)
{
	struct sent *s = &sent[sent_tail % 1024];
	uint8_t packet[SL_MSG1_PACKET_BYTES];

	if (sources == RETURNING && sent_tail != sent_head && now_us >= s->at_us + 1000000) {
		sent_tail++;
	} else {
		s = &sent[sent_head % 1024];
		s->from = addr_of(f, 0, true, sources == ONE_PREFIX);
		s->at_us = now_us;
		sl_msg1_build(s->packet, bench_random(), flood_msg1[bench_random() % KEYS]);
		if (sources == RETURNING)
			sent_head++;
	}
	memcpy(packet, s->packet, sizeof(packet));
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

static int
run(enum family f, double times, enum sources sources, struct result *r)
{
	uint64_t start_us = now_us, in_flight = 0;
	uint64_t flood_us = start_us + BURN_IN_US, next_us = start_us + BURN_IN_US + 10000000;
	double wait[NEWCOMERS];
	unsigned next = 1 + LINKED;
	int rc = 0;

	memset(r, 0, sizeof(*r));
	sent_head = sent_tail = 0;
	for (unsigned i = 0; i < NODES; i++)
		rc |= node_start(i, i == 0 ? f : i <= LINKED ? (enum family)((i - 1) % FAMILIES) : f);
	memset(&nodes[0].addr, 0, sizeof(nodes[0].addr));
	for (unsigned i = 1; i <= LINKED; i++)
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
	for (unsigned i = 1 + LINKED; i < NODES; i++)
		if (nodes[i].up_us)
			wait[r->came_in++] = (double)(nodes[i].up_us - nodes[i].began_us) / 1e6;
	if (r->came_in) {
		qsort(wait, r->came_in, sizeof(wait[0]), bench_compare);
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
	fprintf(out, "%-9s %-10s %7.0f %9llu %6llu %8llu (%llu) %6llu of %u %9.3f %7.3f %8.3f\n", family_names[f],
		load > 0 ? source_names[sources] : "-", load * RATE, (unsigned long long)r->sent,
		(unsigned long long)r->lost, (unsigned long long)r->rekeys, (unsigned long long)r->rekeys_failed,
		(unsigned long long)r->came_in, NEWCOMERS, r->median_s, r->p95_s, r->worst_s);
}

static void
print_json(const char *comma, unsigned f, double load, unsigned sources, const struct result *r)
{
	printf("%s{\"family\": \"%s\", \"sources\": \"%s\", \"flood_per_s\": %.0f, \"frames\": %llu, \"lost\": %llu, "
	       "\"rekeys\": %llu, \"rekeys_failed\": %llu, \"newcomers\": %u, \"came_in\": %llu, \"median_s\": %.3f, "
	       "\"p95_s\": %.3f, \"worst_s\": %.3f}",
		comma, family_names[f], load > 0 ? source_names[sources] : "none", load * RATE, (unsigned long long)r->sent,
		(unsigned long long)r->lost, (unsigned long long)r->rekeys, (unsigned long long)r->rekeys_failed, NEWCOMERS,
		(unsigned long long)r->came_in, r->median_s, r->p95_s, r->worst_s);
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
	fprintf(out, "%-9s %-10s %7s %9s %6s %14s %10s %9s %7s %8s\n", "family", "sources", "flood/s", "frames", "lost",
		"rekeys (fail)", "newcomers", "median s", "p95 s", "worst s");
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
	if (json && !rc)
		printf("]}\n");
	return rc ? 1 : 0;
}
