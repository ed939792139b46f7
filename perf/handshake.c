/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a handshake costs either side, against the curve operations that it cannot do without: the
 * link state machines whole (parsing, keys, sessions, the first frames), of one node with 32 others,
 * in the order set-up, rekey, end. In every round the bare operations are done as often, right after,
 * so a slow phase of the machine falls on both; the ratio is taken per round, medians are shown.
 * What the library really calls is counted (the linker puts the counters in between).
 *
 *	set-up    DH ss, es, ee; one ephemeral key; the other's static and ephemeral key parsed
 *	rekey     DH es, ee; one ephemeral key; the other's ephemeral key parsed
 *
 * With -j a JSON object is the last thing printed.
 */
#include "bench.h"
#include "sl_link.h"

#include <secp256k1_ecdh.h>
#include <time.h>

#define PEERS 32u
#define ROUNDS 31u
#define FRAMES_MAX 8u

/* --- the curve, counted --- */

enum op { OP_DH, OP_PUBLIC, OP_PARSE, OPS };
static const char *const op_names[OPS] = {"dh", "public", "parse"};
static uint64_t calls[OPS];

int __real_secp256k1_ecdh(const secp256k1_context *ctx, unsigned char *out, const secp256k1_pubkey *point,
	const unsigned char *secret, secp256k1_ecdh_hash_function hash, void *data);
int __wrap_secp256k1_ecdh(const secp256k1_context *ctx, unsigned char *out, const secp256k1_pubkey *point,
	const unsigned char *secret, secp256k1_ecdh_hash_function hash, void *data);
int __real_secp256k1_ec_pubkey_create(
	const secp256k1_context *ctx, secp256k1_pubkey *point, const unsigned char *secret);
int __wrap_secp256k1_ec_pubkey_create(
	const secp256k1_context *ctx, secp256k1_pubkey *point, const unsigned char *secret);
int __real_secp256k1_ec_pubkey_parse(
	const secp256k1_context *ctx, secp256k1_pubkey *point, const unsigned char *in, size_t len);
int __wrap_secp256k1_ec_pubkey_parse(
	const secp256k1_context *ctx, secp256k1_pubkey *point, const unsigned char *in, size_t len);

int
__wrap_secp256k1_ecdh(const secp256k1_context *ctx, unsigned char *out, const secp256k1_pubkey *point,
	const unsigned char *secret, secp256k1_ecdh_hash_function hash, void *data)
{
	calls[OP_DH]++;
	return __real_secp256k1_ecdh(ctx, out, point, secret, hash, data);
}

int
__wrap_secp256k1_ec_pubkey_create(const secp256k1_context *ctx, secp256k1_pubkey *point, const unsigned char *secret)
{
	calls[OP_PUBLIC]++;
	return __real_secp256k1_ec_pubkey_create(ctx, point, secret);
}

int
__wrap_secp256k1_ec_pubkey_parse(
	const secp256k1_context *ctx, secp256k1_pubkey *point, const unsigned char *in, size_t len)
{
	calls[OP_PARSE]++;
	return __real_secp256k1_ec_pubkey_parse(ctx, point, in, len);
}

/* --- nodes and what they have sent --- */

struct packet {
	uint8_t bytes[256];
	size_t len;
};

struct node {
	struct sl_identity *id;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_addr addr;
	struct packet out[PEERS][FRAMES_MAX]; /* per destination */
	unsigned count[PEERS];
	unsigned up;
};
static struct node hub, others[PEERS];
static uint64_t now_us = 1000000000;

static int
on_transmit(void *arg, const struct sl_addr *to, const uint8_t *bytes, size_t len)
{
	struct node *n = arg;
	unsigned i = n == &hub ? to->u.ip4[3] : 0;

	if (n->count[i] < FRAMES_MAX && len <= sizeof(n->out[i][0].bytes)) {
		memcpy(n->out[i][n->count[i]].bytes, bytes, len);
		n->out[i][n->count[i]++].len = len;
	}
	return 0;
}

static void
on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct node *n = arg;

	(void)id;
	(void)key;
	(void)mtu;
	n->up++;
}

static int
node_init(struct node *n, unsigned index)
{
	struct sl_session_table_config tc = {.max_sessions = PEERS * 16, .max_peers = PEERS * 2, .workers = 1};
	struct sl_links_sink sink = {.arg = n, .transmit = on_transmit, .peer_up = on_up};
	struct sl_transport_config t = {.kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = true};
	struct sl_links_config c;

	sl_links_config_default(&c);
	c.heartbeat_us = c.dead_timeout_us = 1000000000000ull; /* handshakes only */
	c.mmp_mode = 2;
	c.rekey_after_us = 60000000;
	c.rekey_enabled = n == &hub;
	n->addr = (struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 2121};
	n->addr.u.ip4[0] = 10;
	n->addr.u.ip4[2] = n == &hub;
	n->addr.u.ip4[3] = (uint8_t)index;
	n->id = sl_identity_generate();
	n->table = sl_session_table_create(&tc);
	n->links = n->id && n->table ? sl_links_create(&c, n->id, n->table, sl_aead_backend_find("sodium"), &sink, now_us)
				     : NULL;
	return n->links ? sl_links_transport_add(n->links, &t) : -1;
}

static void
node_fini(struct node *n)
{
	sl_links_destroy(n->links);
	sl_session_table_destroy(n->table);
	sl_identity_destroy(n->id);
}

/* --- a round --- */

enum side { DIALLER, RESPONDER, REKEY_DIALLER, REKEY_RESPONDER, SIDES };
static const char *const side_names[SIDES] = {"set-up, dialler", "set-up, responder", "rekey, begins", "rekey, answers"};
static const unsigned needed[SIDES][OPS] = {{3, 1, 2}, {3, 1, 2}, {2, 1, 1}, {2, 1, 1}};
static double side_us[SIDES][ROUNDS], bare_us[SIDES][ROUNDS], ratio[SIDES][ROUNDS];
static uint64_t side_calls[SIDES][OPS];

static double
clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Time and calls between begin and end go to a side. */
static double begun_us;
static uint64_t begun_calls[OPS];
static void
begin(void)
{
	memcpy(begun_calls, calls, sizeof(calls));
	begun_us = clock_us();
}

static void
end(enum side side, unsigned round)
{
	side_us[side][round] += (clock_us() - begun_us) / PEERS;
	for (unsigned i = 0; i < OPS; i++)
		side_calls[side][i] += calls[i] - begun_calls[i];
}

static void
to_others(void)
{
	for (unsigned i = 0; i < PEERS; i++) {
		for (unsigned k = 0; k < hub.count[i]; k++)
			sl_links_packet(others[i].links, &hub.addr, hub.out[i][k].bytes, hub.out[i][k].len, now_us);
		hub.count[i] = 0;
	}
}

static void
to_hub(void)
{
	for (unsigned i = 0; i < PEERS; i++) {
		for (unsigned k = 0; k < others[i].count[0]; k++)
			sl_links_packet(hub.links, &others[i].addr, others[i].out[0][k].bytes, others[i].out[0][k].len,
				now_us);
		others[i].count[0] = 0;
	}
}

/* msg1 is out: msg2, first frame, answer to it. */
static void
finish(enum side dialler, unsigned round)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		begin();
		to_others();
		end((enum side)(dialler + 1), round);
		begin();
		to_hub();
		end(dialler, round);
	}
}

static void
bare(enum side side, unsigned round)
{
	static uint8_t secret[32], compressed[33], out[32];
	secp256k1_pubkey point;
	static secp256k1_context *own;
	double t0;
	size_t len = sizeof(compressed);

	if (!own) {
		own = secp256k1_context_create(SECP256K1_CONTEXT_NONE);
		sl_random(secret, sizeof(secret));
		if (!secp256k1_context_randomize(own, secret))
			exit(1);
	}
	if (!__real_secp256k1_ec_pubkey_create(own, &point, secret))
		exit(1);
	secp256k1_ec_pubkey_serialize(own, compressed, &len, &point, SECP256K1_EC_COMPRESSED);
	t0 = clock_us();
	for (unsigned i = 0; i < PEERS; i++) {
		int ok = 1;

		for (unsigned k = 0; k < needed[side][OP_PARSE]; k++)
			ok &= __real_secp256k1_ec_pubkey_parse(own, &point, compressed, sizeof(compressed));
		for (unsigned k = 0; k < needed[side][OP_DH]; k++)
			ok &= __real_secp256k1_ecdh(own, out, &point, secret, NULL, NULL);
		for (unsigned k = 0; k < needed[side][OP_PUBLIC]; k++)
			ok &= __real_secp256k1_ec_pubkey_create(own, &point, secret);
		if (!ok)
			exit(1);
	}
	bare_us[side][round] = (clock_us() - t0) / PEERS;
}

static int
round_of(unsigned round)
{
	int rc = 0;

	hub.up = 0;
	begin();
	for (unsigned i = 0; i < PEERS; i++)
		rc |= sl_links_dial(hub.links, sl_identity_xonly(others[i].id), &others[i].addr, now_us);
	end(DIALLER, round);
	finish(DIALLER, round);
	bare(DIALLER, round);
	bare(RESPONDER, round);
	/* Past the time of each, jitter included. */
	now_us += 80000000;
	for (unsigned turn = 0; turn < 100; turn++) {
		begin();
		(void)sl_links_tick(hub.links, now_us);
		end(REKEY_DIALLER, round);
		now_us += 20000;
	}
	finish(REKEY_DIALLER, round);
	bare(REKEY_DIALLER, round);
	bare(REKEY_RESPONDER, round);
	for (unsigned i = 0; i < PEERS; i++)
		rc |= sl_links_disconnect(
			hub.links, sl_identity_xonly(others[i].id), SL_DISCONNECT_OTHER, now_us);
	to_others();
	now_us += 60000000;
	for (unsigned i = 0; i < PEERS; i++)
		(void)sl_links_tick(others[i].links, now_us);
	(void)sl_links_tick(hub.links, now_us);
	return rc || hub.up != PEERS ? -1 : 0;
}

/* --- what came of it --- */

static void
print_results(bool json)
{
	struct bench_figure us[SIDES], raw[SIDES], r[SIDES];

	for (unsigned s = 0; s < SIDES; s++) {
		us[s] = bench_figure(side_us[s], ROUNDS);
		raw[s] = bench_figure(bare_us[s], ROUNDS);
		r[s] = bench_figure(ratio[s], ROUNDS);
	}
	printf("%-20s %8s %8s %7s   %s\n", "", "us", "bare us", "ratio", "calls: dh, public, parse (needed)");
	for (unsigned s = 0; s < SIDES; s++) {
		printf("%-20s %8.1f %8.1f %7.3f  ", side_names[s], us[s].median, raw[s].median, r[s].median);
		for (unsigned i = 0; i < OPS; i++)
			printf(" %.2f (%u)", (double)side_calls[s][i] / (ROUNDS * PEERS), needed[s][i]);
		printf("\n");
	}
	printf("us: of our code for one handshake; bare us: the curve operations that it needs, alone; ratio: of the two; calls: curve\n"
		"operations that it made (needed): Diffie-Hellman, public keys made, keys parsed; medians of %u rounds\n", ROUNDS);
	if (!json)
		return;
	printf("{\"peers\": %u, \"rounds\": %u, \"sides\": [", PEERS, ROUNDS);
	for (unsigned s = 0; s < SIDES; s++) {
		printf("%s{\"side\": \"%s\", \"us\": %.2f, \"bare_us\": %.2f, \"ratio\": %.4f", s ? ", " : "",
			side_names[s], us[s].median, raw[s].median, r[s].median);
		for (unsigned i = 0; i < OPS; i++)
			printf(", \"%s_calls\": %.3f, \"%s_needed\": %u", op_names[i],
				(double)side_calls[s][i] / (ROUNDS * PEERS), op_names[i], needed[s][i]);
		printf("}");
	}
	printf("]}\n");
}

int
main(int argc, char **argv)
{
	bool json = false;
	int c, rc = 0;

	while ((c = getopt(argc, argv, "j")) != -1) {
		if (c != 'j') {
			fprintf(stderr, "usage: %s [-j]\n", argv[0]);
			return 2;
		}
		json = true;
	}
	if (sl_crypto_init() != 0)
		return 1;
	rc = node_init(&hub, 0);
	for (unsigned i = 0; !rc && i < PEERS; i++)
		rc = node_init(&others[i], i);
	/* The first one fills pools and caches. */
	for (unsigned round = 0; !rc && round <= ROUNDS; round++) {
		unsigned r = round ? round - 1 : 0;

		for (unsigned s = 0; s < SIDES; s++)
			side_us[s][r] = 0;
		if (round == 1)
			memset(side_calls, 0, sizeof(side_calls));
		rc = round_of(r);
		for (unsigned s = 0; s < SIDES; s++)
			ratio[s][r] = side_us[s][r] / bare_us[s][r];
	}
	if (rc)
		fprintf(stderr, "a link did not come up\n");
	else
		print_results(json);
	for (unsigned i = 0; i < PEERS; i++)
		node_fini(&others[i]);
	node_fini(&hub);
	return rc ? 1 : 0;
}
