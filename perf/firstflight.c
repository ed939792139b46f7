/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time from the start of a dial until both sides have the link, without and with first flight
 * (sl_peer_config.first_flight), on a virtual clock: the link state machines of both sides whole, 1001
 * dials of fresh nodes for each row. A path loses packets independently, half the round trip each way.
 * A narrow one sends at 250 kbit/s with room for one packet that waits; more are lost. Traffic of
 * others shares it: datagrams of 300 bytes at random times, 40% of the rate.
 *
 * With -j a JSON object is the last thing printed.
 */
#include "bench.h"
#include "bench_random.h"
#include "sl_link.h"

#include <math.h>

#define TRIALS 1001u
#define LIMIT_US 120000000ull
#define OUTER_BYTES 42u /* Ethernet, IPv4, UDP */
#define FLIGHT_MAX 256u
#define CROSS_BYTES 300u
#define CROSS_SHARE 0.4

static double
chance(void)
{
	return (double)bench_random() / 4294967296.0;
}

/* --- two nodes and what is between them --- */

static struct node {
	struct sl_identity *id;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_addr addr;
	uint64_t due_us, up_us, sent_bytes, sent;
	/* The narrow way out of here: when the packet under way is through, and the one behind it. */
	uint64_t free_us, start_us, cross_us;
} nodes[2];
static struct packet {
	uint64_t at_us;
	unsigned to;
	size_t len;
	uint8_t bytes[256];
} flight[FLIGHT_MAX];
static unsigned flying;
static uint64_t now_us = 1000000000;

static struct path {
	double loss;
	uint64_t one_way_us;
	double bits_per_us; /* 0 = not narrow */
} path;

/* On a narrow way: when it is through, or 0 = lost, the place behind the one under way being taken. */
static uint64_t
narrow(struct node *n, uint64_t at_us, size_t bytes)
{
	uint64_t takes = (uint64_t)((double)bytes * 8 / path.bits_per_us);

	if (n->free_us <= at_us) {
		n->start_us = at_us;
	} else {
		if (n->start_us > at_us)
			return 0;
		n->start_us = n->free_us;
	}
	n->free_us = n->start_us + takes;
	return n->free_us;
}

static void
cross_traffic(struct node *n)
{
	double mean_us = CROSS_BYTES * 8 / (path.bits_per_us * CROSS_SHARE);

	for (; n->cross_us <= now_us; n->cross_us += (uint64_t)(-log(1 - chance()) * mean_us))
		(void)narrow(n, n->cross_us, CROSS_BYTES);
}

static int
on_transmit(void *arg, const struct sl_addr *to, const uint8_t *bytes, size_t len)
{
	struct node *n = arg;
	struct packet *p = &flight[flying];
	uint64_t at = now_us;

	(void)to;
	n->sent++;
	n->sent_bytes += len;
	if (path.bits_per_us > 0) {
		cross_traffic(n);
		at = narrow(n, now_us, len + OUTER_BYTES);
		if (!at)
			return 0;
	}
	if (chance() < path.loss || flying == FLIGHT_MAX || len > sizeof(p->bytes))
		return 0;
	flying++;
	p->at_us = at + path.one_way_us;
	p->to = n == &nodes[0];
	p->len = len;
	memcpy(p->bytes, bytes, len);
	return 0;
}

static void
on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct node *n = arg;

	(void)id;
	(void)key;
	(void)mtu;
	if (!n->up_us)
		n->up_us = now_us;
}

static int
node_start(struct node *n, unsigned index, bool first_flight)
{
	struct sl_session_table_config tc = {.max_sessions = 32, .max_peers = 4, .workers = 1};
	struct sl_links_sink sink = {.arg = n, .transmit = on_transmit, .peer_up = on_up};
	struct sl_transport_config t = {.kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = true};
	struct sl_links_config c;

	memset(n, 0, sizeof(*n));
	sl_links_config_default(&c);
	c.first_flight = first_flight;
	n->addr = (struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 2121};
	n->addr.u.ip4[0] = 10;
	n->addr.u.ip4[3] = (uint8_t)(1 + index);
	n->cross_us = now_us;
	n->id = sl_identity_generate();
	n->table = sl_session_table_create(&tc);
	n->links = n->id && n->table ? sl_links_create(&c, n->id, n->table, sl_aead_backend_find("sodium"), &sink, now_us)
				     : NULL;
	return n->links ? sl_links_transport_add(n->links, &t) : -1;
}

/* The next thing that happens: a packet arrives or a side's time has come. */
static void
advance(void)
{
	unsigned first = flying;
	uint64_t at = nodes[0].due_us < nodes[1].due_us ? nodes[0].due_us : nodes[1].due_us;
	struct packet p;

	for (unsigned i = 0; i < flying; i++)
		if (flight[i].at_us <= at) {
			at = flight[i].at_us;
			first = i;
		}
	now_us = at > now_us ? at : now_us;
	if (first < flying) {
		p = flight[first];
		flight[first] = flight[--flying];
		sl_links_packet(nodes[p.to].links, &nodes[!p.to].addr, p.bytes, p.len, now_us);
		nodes[p.to].due_us = now_us;
	}
	for (unsigned i = 0; i < 2; i++)
		if (nodes[i].due_us <= now_us)
			nodes[i].due_us = sl_links_tick(nodes[i].links, now_us);
}

struct row {
	double median_s, p95_s, up, packets, dialler_bytes, responder_bytes;
};

static int
trial(bool first_flight, double *took_s, struct row *r)
{
	struct sl_peer_config p = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};
	uint64_t begun = now_us;
	int rc = node_start(&nodes[0], 0, first_flight) | node_start(&nodes[1], 1, first_flight);

	flying = 0;
	if (!rc) {
		memcpy(p.xonly, sl_identity_xonly(nodes[1].id), SL_XONLY_BYTES);
		p.addrs[0] = nodes[1].addr;
		rc = sl_links_peer_configure(nodes[0].links, &p, now_us);
		nodes[0].due_us = nodes[1].due_us = now_us;
	}
	while (!rc && !(nodes[0].up_us && nodes[1].up_us) && now_us < begun + LIMIT_US)
		advance();
	*took_s = (double)(now_us - begun) / 1e6;
	r->up += nodes[0].up_us && nodes[1].up_us;
	r->packets += (double)(nodes[0].sent + nodes[1].sent) / TRIALS;
	r->dialler_bytes += (double)nodes[0].sent_bytes / TRIALS;
	r->responder_bytes += (double)nodes[1].sent_bytes / TRIALS;
	for (unsigned i = 0; i < 2; i++) {
		sl_links_destroy(nodes[i].links);
		sl_session_table_destroy(nodes[i].table);
		sl_identity_destroy(nodes[i].id);
	}
	now_us = begun + LIMIT_US * 2;
	return rc;
}

static int
row_of(const struct path *on, bool first_flight, struct row *r)
{
	double took[TRIALS];
	int rc = 0;

	memset(r, 0, sizeof(*r));
	path = *on;
	for (unsigned i = 0; !rc && i < TRIALS; i++) {
		bench_random_state = (i + 1) * 0x9e3779b97f4a7c15ull; /* both ways meet the same luck */
		for (unsigned k = 0; k < 8; k++)
			(void)bench_random();
		rc = trial(first_flight, &took[i], r);
	}
	qsort(took, TRIALS, sizeof(took[0]), bench_compare);
	r->median_s = took[TRIALS / 2];
	r->p95_s = took[TRIALS * 95 / 100];
	return rc;
}

static int
print_row(FILE *out, bool json, const struct path *on)
{
	static const char *comma = "";
	struct row r[2];

	for (unsigned i = 0; i < 2; i++)
		if (row_of(on, i, &r[i]))
			return -1;
	fprintf(out, "%7.0f %7.0f %8.0f   %7.3f %7.3f   %7.3f %7.3f   %6.1f %6.1f\n", on->bits_per_us * 1000,
		on->loss * 100, (double)on->one_way_us / 500, r[0].median_s, r[1].median_s, r[0].p95_s, r[1].p95_s,
		r[0].packets, r[1].packets);
	if (json)
		printf("%s{\"kbit_s\": %.0f, \"loss\": %.2f, \"rtt_ms\": %.0f, \"off\": {\"median_s\": %.3f, \"p95_s\": %.3f, "
		       "\"up\": %.0f, \"packets\": %.2f}, \"on\": {\"median_s\": %.3f, \"p95_s\": %.3f, \"up\": %.0f, "
		       "\"packets\": %.2f}}",
			comma, on->bits_per_us * 1000, on->loss, (double)on->one_way_us / 500, r[0].median_s, r[0].p95_s,
			r[0].up, r[0].packets, r[1].median_s, r[1].p95_s, r[1].up, r[1].packets);
	comma = ", ";
	return 0;
}

int
main(int argc, char **argv)
{
	static const double losses[] = {0, 0.01, 0.05, 0.2};
	static const uint64_t rtts_ms[] = {20, 100, 300};
	bool json = false;
	int c, rc = 0;
	FILE *out;

	while ((c = getopt(argc, argv, "j")) != -1) {
		if (c != 'j') {
			fprintf(stderr, "usage: %s [-j]\n", argv[0]);
			return 2;
		}
		json = true;
	}
	out = json ? stderr : stdout;
	bench_random_install(0x9e3779b97f4a7c15ull);
	if (sl_crypto_init() != 0)
		return 1;
	fprintf(out, "%7s %7s %8s   %15s   %15s   %13s\n%7s %7s %8s   %7s %7s   %7s %7s   %6s %6s\n", "", "", "", "median s",
		"p95 s", "packets", "kbit/s", "loss %", "RTT ms", "off", "on", "off", "on", "off", "on");
	if (json)
		printf("{\"dials\": %u, \"rows\": [", TRIALS);
	for (unsigned narrow_too = 0; narrow_too < 2; narrow_too++)
		for (unsigned l = 0; l < 4; l++)
			for (unsigned t = 0; !rc && t < 3; t++) {
				struct path on = {.loss = losses[l],
					.one_way_us = rtts_ms[t] * 500,
					.bits_per_us = narrow_too ? 0.25 : 0};

				if (!narrow_too || l == 0)
					rc = print_row(out, json, &on);
			}
	fprintf(out, "kbit/s: of the path, 0 = any; off, on: without and with first flight; median, p95: s from the dial until both\n"
		"sides have the link; packets: of both sides, mean a dial\n");
	if (json && !rc)
		printf("]}\n");
	return rc ? 1 : 0;
}
