/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEST_MESH_H
#define SL_TEST_MESH_H
/*
 * A small virtual network of routers: nodes, links with a delay, a virtual clock. Keys come from
 * the run's seed. What one router sends arrives at the other as it was, in order, unless the test's
 * filter drops it.
 */
#include "router.h"
#include "sl_test.h"

struct mesh_link {
	uint32_t node, peer_id; /* who is at the other end, and its id for us */
	bool up;
};

struct mesh_node {
	struct mesh *mesh;
	uint32_t index;
	struct sl_identity *id;
	struct sl_node_addr addr;
	struct sl_router *router;
	struct mesh_link *links; /* by our peer id */
	uint32_t link_count;
	uint64_t next_tick_us;
	/* Datagrams for this node: */
	uint64_t local;
	uint8_t last[2048];
	size_t last_len;
	uint64_t sent[256];	   /* by message type */
	uint64_t found, not_found; /* lookups of its own */
};

struct mesh_event {
	uint64_t us, order;
	uint32_t to, peer_id;
	uint8_t *msg;
	size_t len;
	uint8_t flags;
};

struct mesh {
	struct mesh_node *nodes;
	uint32_t count, max_links;
	uint64_t now_us, order, delay_us;
	struct mesh_event *heap;
	size_t heap_count, heap_size;
	bool (*drop)(struct mesh *m, uint32_t from, uint32_t to, const uint8_t *msg, size_t len);
	void *arg;
};

/* config NULL = defaults with small tables. */
struct mesh *mesh_create(uint32_t count, uint32_t max_links, const struct sl_router_config *config);
void mesh_destroy(struct mesh *m);
/* Sorts nodes by address: node 0 is the smallest, and so the root of whatever it is in. */
void mesh_link(struct mesh *m, uint32_t a, uint32_t b);
void mesh_unlink(struct mesh *m, uint32_t a, uint32_t b);
void mesh_run(struct mesh *m, uint64_t for_us);
uint32_t mesh_peer_id(const struct mesh *m, uint32_t node, uint32_t neighbour);
/* Everyone has the same root, and own coordinates equal the parent's plus self, all the way. */
bool mesh_agrees(const struct mesh *m, uint32_t root);
/*
 * A session set-up frame (both coordinates) from a to b, as an end node sends it once it knows b's
 * coordinates (here: told by the test, or left as a lookup found them); true when b got it.
 */
bool mesh_setup(struct mesh *m, uint32_t a, uint32_t b);
bool mesh_setup_known(struct mesh *m, uint32_t a, uint32_t b);
/* A lookup by a for b through the mesh; true when it was answered. */
bool mesh_lookup(struct mesh *m, uint32_t a, uint32_t b);
/* Plain data from a to b; true when b got it. */
bool mesh_data(struct mesh *m, uint32_t a, uint32_t b);

#endif
