/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a relay of a given size holds in memory: resident bytes of a process with its data plane, session table, router
 * and 1,000 sessions that have carried traffic, less the buffer pools (which are touched whole and counted by their own
 * size). The limit is 128 MiB.
 *
 * Usage: memory [-j] [--sessions N] [--mbufs N]
 *        memory [-j] --scale [--peers N] [--known N] [--active N] [--workers N]    what each thing takes, predicted and seen
 */
#include <errno.h>
#include <getopt.h>
#include <rte_eth_ring.h>
#include "bench.h"
#include "memory_scale.h"
#include "sl_control.h"
#include "sl_router.h"

#define LIMIT_MIB 128.0

static int
no_send(void *arg, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags)
{
	return 0;
}

double
resident_mib(void)
{
	char line[128];
	double kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %lf", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib / 1024;
}

static void
chunk_add(struct rte_mempool *pool, void *sum, struct rte_mempool_memhdr *chunk, unsigned i)
{
	*(double *)sum += (double)chunk->len / 1048576;
}

/* Every page of every buffer, so that the pool is resident by its whole size. */
static double
pool_touch(struct rte_mempool *pool)
{
	struct rte_mbuf **all = calloc(pool->size, sizeof(*all));
	double mib = 0;
	unsigned n = 0;

	while (n < pool->size && (all[n] = rte_pktmbuf_alloc(pool)) != NULL) {
		memset(all[n]->buf_addr, 1, all[n]->buf_len);
		n++;
	}
	while (n)
		rte_pktmbuf_free(all[--n]);
	free(all);
	rte_mempool_mem_iter(pool, chunk_add, &mib);
	return mib;
}

static int
sessions_make(struct sl_session_table *table, struct sl_router *router, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct sl_identity *id = sl_identity_generate();
		struct sl_noise_keys keys;
		struct sl_session *s;
		uint32_t index;

		if (!id || sl_session_index_reserve(table, 0, &index) != 0)
			return -1;
		sl_random(&keys, sizeof(keys));
		s = sl_session_install(table, index, i, i, false, &keys, 1);
		for (uint64_t c = 0; c < 4096; c += 64)
			if (!sl_replay_commit(&s->replay, c))
				return -1;
		if (sl_router_peer_up(router, i, sl_identity_xonly(id), 1280, sl_dataplane_now_us()) != 0)
			return -1;
		sl_identity_destroy(id);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option list[] = {{"sessions", 1, NULL, 's'}, {"mbufs", 1, NULL, 'm'}, {"scale", 0, NULL, 'S'}, {"peers", 1, NULL, 'p'},
		{"known", 1, NULL, 'k'}, {"active", 1, NULL, 'a'}, {"workers", 1, NULL, 'w'}, {NULL, 0, NULL, 0}};
	struct memory_scale scale = {.peers = 4096, .known = 1000000, .active = 100000, .workers = 2};
	const struct sl_dataplane_sink sink = {NULL};
	const struct sl_router_sink router_sink = {.send = no_send};
	struct sl_session_table_config tc = {.workers = 1};
	struct sl_dataplane_config dc = {.workers = 1, .mbufs = 16384};
	struct sl_port_config pc = {.name = "m", .device = "net_ring_memory", .addr_count = 1,
		.addrs = {{.family = 4, .prefix_len = 24, .ip = {192, 0, 2, 1}}}};
	struct sl_router_config rc;
	struct rte_ring *in, *out;
	struct sl_session_table *table;
	struct sl_router *router;
	struct sl_dataplane *dp;
	struct sl_identity *id;
	const char *error = "";
	unsigned sessions = 1000;
	double before, after, pools = 0, rest;
	bool json = false, by_scale = false, misused = false;
	int c;

	while ((c = getopt_long(argc, argv, "j", list, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == 's')
			sessions = (unsigned)atoi(optarg);
		else if (c == 'm')
			dc.mbufs = (uint32_t)atoi(optarg);
		else if (c == 'S')
			by_scale = true;
		else if (c == 'p')
			scale.peers = (uint32_t)atoi(optarg);
		else if (c == 'k')
			scale.known = (uint32_t)atoi(optarg);
		else if (c == 'a')
			scale.active = (uint32_t)atoi(optarg);
		else if (c == 'w')
			scale.workers = (uint16_t)atoi(optarg);
		else
			misused = true;
	}
	if (misused || optind != argc) {
		fprintf(stderr, "usage: memory [-j] [--sessions N] [--mbufs N]\n"
				"       memory [-j] --scale [--peers N] [--known N] [--active N] [--workers N]\n");
		return 2;
	}
	if (sl_crypto_init() != 0 || bench_eal_init(256 + dc.mbufs / 256) != 0)
		return 2;
	if (by_scale) {
		scale.json = json;
		return memory_scale(&scale);
	}
	before = resident_mib();
	tc.max_sessions = sessions * 4;
	tc.max_peers = sessions;
	dc.aead = sl_aead_backend_find("auto");
	sl_router_config_default(&rc);
	rc.max_peers = sessions;
	id = sl_identity_generate();
	table = sl_session_table_create(&tc);
	router = id ? sl_router_create(&rc, id, &router_sink, 1700000000, sl_dataplane_now_us()) : NULL;
	in = rte_ring_create("m_in", 1024, SOCKET_ID_ANY, 0);
	out = rte_ring_create("m_out", 1024, SOCKET_ID_ANY, 0);
	if (!table || !router || !in || !out || !dc.aead || rte_eth_from_rings("memory", &in, 1, &out, 1, 0) < 0)
		goto fail;
	dp = sl_dataplane_create(&dc, sl_session_table_view(table), sl_router_fib(router), &sink);
	if (!dp || sl_dataplane_port_add(dp, &pc, &error) != 0 || sessions_make(table, router, sessions) != 0)
		goto fail;
	sl_router_tick(router, sl_dataplane_now_us() + 1000000);
	for (unsigned i = 0; i < dp->port_count; i++)
		pools += pool_touch(dp->ports[i].pool) + pool_touch(dp->ports[i].control_pool);
	after = resident_mib();
	rest = after - pools;
	if (json)
		printf("{\"bench\":\"memory\",\"sessions\":%u,\"mbufs\":%u,\"resident_mib\":%.1f,\"pools_mib\":%.1f,"
		       "\"besides_pools_mib\":%.1f,\"before_mib\":%.1f,\"session_table_mib\":%.1f,\"limit_mib\":%.0f,\"met\":%s}\n",
			sessions, dc.mbufs, after, pools, rest, before, (double)sl_session_table_bytes(table) / 1048576, LIMIT_MIB,
			rest <= LIMIT_MIB ? "true" : "false");
	else
		printf("%u sessions, %u buffers: %.1f MiB resident, of them pools %.1f, the rest %.1f (limit %.0f)\n"
		       "of the rest: EAL and libraries before anything was made %.1f; session table, if all its pages are touched, %.1f\n",
			sessions, dc.mbufs, after, pools, rest, LIMIT_MIB, before,
			(double)sl_session_table_bytes(table) / 1048576);
	return rest <= LIMIT_MIB ? 0 : 1;
fail:
	fprintf(stderr, "memory: cannot be set up: %s %s\n", strerror(errno), error ? error : "");
	return 2;
}
