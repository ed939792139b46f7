/* SPDX-License-Identifier: BSD-3-Clause */
#include "capacity.h"
#include "daemon.h"
#include "sl_link.h"
#include "sl_router.h"
#include <errno.h>

#define RESERVE_PEERS 128u /* rows that inbound handshakes hold before they are peers */
#define ALL_PEERS 4096u	   /* node.limits.max_peers: 0 */
#define PATH_LEN 8u	   /* entries of a destination's coordinates, for sizing */
#define PROGRAM_BYTES (64u << 20) /* code, libraries, engines, log, control socket: what an empty one has */
#define MIB(bytes) ((unsigned long long)((bytes) >> 20))

uint32_t
sl_capacity_peers(const struct sl_config *config)
{
	return (config->limits.max_peers ? config->limits.max_peers : ALL_PEERS) + RESERVE_PEERS;
}

uint32_t
sl_capacity_sessions(const struct sl_config *config)
{
	return config->dataplane.sessions ? config->dataplane.sessions : 4 * sl_capacity_peers(config);
}

uint32_t
sl_capacity_hop_cache(const struct sl_config *config)
{
	const uint32_t half = config->cache.coord_size / 2;

	if (config->dataplane.hop_cache)
		return config->dataplane.hop_cache;
	return half < 65536 ? 65536 : half;
}

void
sl_capacity_of(struct sl_capacity *c, const struct sl_config *config, const struct sl_eal_plan *plan)
{
	const struct sl_session_table_config table = {.max_sessions = sl_capacity_sessions(config),
		.max_peers = sl_capacity_peers(config), .workers = (uint16_t)plan->workers};
	const struct sl_dataplane_config dataplane = {.workers = (uint16_t)plan->workers, .ring_size = config->dataplane.ring_size,
		.hop_cache_entries = sl_capacity_hop_cache(config), .elephant = (enum sl_elephant_mode)config->dataplane.elephant};
	const size_t sessions = sl_session_table_bytes_of(&table);
	const uint32_t slots = (uint32_t)(sessions / sl_session_bytes());
	struct sl_dataplane_capacity d;
	struct sl_router_capacity r;
	struct sl_links_capacity l;
	struct sl_router_config rc;

	sl_router_config_default(&rc);
	rc.max_peers = table.max_peers;
	rc.coord_size = config->cache.coord_size;
	sl_router_capacity(&rc, PATH_LEN, &r);
	sl_links_capacity(table.max_peers, slots, &l);
	sl_dataplane_capacity(&dataplane, table.max_peers, slots, &d);
	c->peers = r.peers + (l.peer + l.dial + d.peer) * table.max_peers + sessions + (l.session + d.session) * slots +
		config->peer_count * (sizeof(struct sl_app_peer) + sizeof(struct sl_conf_peer));
	for (uint32_t i = 0; i < config->peer_count; i++)
		c->peers += config->peers[i].address_count * sizeof(struct sl_conf_address);
	c->destinations = r.destinations;
	c->workers = d.worker * plan->workers;
	c->fixed = r.fixed + l.fixed + PROGRAM_BYTES;
	c->eal = plan->huge ? 0 : (uint64_t)plan->memory_mb << 20;
	c->total = c->peers + c->destinations + c->workers + c->fixed + c->eal;
}

int
sl_capacity_check(const struct sl_capacity *c, uint64_t most, uint64_t available, char why[256])
{
	if (c->total <= available)
		return 0;
	snprintf(why, 256,
		"%llu MiB may be needed (peers %llu: node.limits.max_peers; destinations %llu: node.cache.coord_size; workers %llu: "
		"dataplane.hop_cache; EAL %llu: dataplane.pools), there are %llu%s",
		MIB(c->total), MIB(c->peers), MIB(c->destinations), MIB(c->workers), MIB(c->eal),
		MIB(c->total > most ? most : available), c->total > most ? "" : " available now");
	return c->total > most ? -ENOMEM : 1;
}

/* A number of bytes in a file of one line; UINT64_MAX for "max", and where there is none. */
static uint64_t
number_in(const char *path)
{
	unsigned long long v = UINT64_MAX;
	FILE *f = fopen(path, "r");

	if (f && fscanf(f, "%llu", &v) != 1)
		v = UINT64_MAX;
	if (f)
		fclose(f);
	return v;
}

/* The limit of our control group, and of what is above it: a limit that the service has. */
static void
group_have(uint64_t *most, uint64_t *available)
{
	char group[256] = "", line[300], path[400], *end;
	FILE *f = fopen("/proc/self/cgroup", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "0::%255s", group) == 1)
			break;
	if (f)
		fclose(f);
	while (group[0] == '/') {
		uint64_t limit, used;

		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
		limit = number_in(path);
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
		used = number_in(path);
		if (limit < *most)
			*most = limit;
		if (limit != UINT64_MAX && used != UINT64_MAX && (limit > used ? limit - used : 0) < *available)
			*available = limit > used ? limit - used : 0;
		end = strrchr(group, '/');
		*end = 0;
	}
}

void
sl_capacity_have(uint64_t *most, uint64_t *available)
{
	unsigned long long kib;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	*most = *available = UINT64_MAX;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
			*most = kib << 10;
		else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			*available = kib << 10;
	}
	if (f)
		fclose(f);
	group_have(most, available);
}
