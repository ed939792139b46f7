/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAT_WORLD_H
#define NAT_WORLD_H
/*
 * Nodes behind NATs on a virtual clock: each has a traversal, a NAT before it, two STUN servers and a relay that carries
 * signals. Everything takes its time, may be lost, and is counted.
 */
#include "sl_test.h"
#include "sl_traversal.h"

#define WORLD_NODES 4
#define WORLD_QUEUE 4096
#define WORLD_START_MS 1700000000000ull

enum nat { NAT_NONE, NAT_CONE, NAT_FULL_CONE, NAT_SYMMETRIC };

struct world;
struct node {
	struct world *world;
	unsigned index;
	struct sl_identity *identity;
	struct sl_traversal *t;
	enum nat nat;
	int64_t clock_ms; /* its clock is ahead by this */
	bool deaf_relay;  /* publishes to nobody */
	bool no_stun, not_allowed, no_dial;
	/* NAT: to whom each outer port leads; for a cone one port. */
	struct sl_addr dest[256];
	uint16_t port[256];
	unsigned mappings;
	/* What came of it. */
	unsigned punched, doubted, signals, packets_out, probes_out, dropped_by_nat;
	struct sl_addr remote;
	uint64_t first_probe_us;
	bool listening;
	uint64_t due_us;
};

struct event {
	uint64_t at_us;
	unsigned to;
	bool signal;
	uint8_t author[SL_XONLY_BYTES];
	struct sl_addr from;
	size_t len;
	uint8_t bytes[2048];
};

struct world {
	uint64_t now_us;
	struct node node[WORLD_NODES];
	unsigned nodes;
	struct event *queue;
	unsigned queued;
	unsigned loss_percent, signal_copies;
	bool servers_dead;
	char last_signal[2048]; /* the last one under way, its author and receiver */
	uint8_t last_author[SL_XONLY_BYTES];
	unsigned last_to;
};

struct world *world_create(unsigned nodes);
void world_destroy(struct world *w);
/* Node i behind that NAT; config NULL = defaults. To be called once for each. */
void world_node(struct world *w, unsigned i, enum nat nat, const struct sl_traversal_config *config);
void world_run(struct world *w, uint64_t until_us); /* since the beginning */
void world_want(struct world *w, unsigned who, unsigned whom);
void world_link(struct world *w, unsigned a, unsigned b, bool up); /* both are told */
const uint8_t *world_key(const struct world *w, unsigned i);
/* What node `who` shows of `whom`; false: nothing. */
bool world_info(const struct world *w, unsigned who, unsigned whom, struct sl_traversal_info *out);
uint64_t world_counter(const struct world *w, unsigned who, enum sl_traversal_counter c);
#endif
