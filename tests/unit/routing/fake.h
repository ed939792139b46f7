/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEST_FAKE_H
#define SL_TEST_FAKE_H
/*
 * A router whose own address and peers' addresses the test chooses (the tables of the fact sheet
 * use addresses like X(7) = 07 00 .. 00, which no key has), and which keeps what it sends.
 */
#include "router.h"
#include "sl_test.h"

struct fake_sent {
	uint32_t peer_id;
	size_t len;
	uint8_t flags;
	uint8_t msg[2048];
};

struct fake {
	struct sl_identity *id;
	struct sl_router *r;
	uint64_t now_us;
	uint32_t sent_count;
	struct fake_sent sent[64]; /* the last 64, round */
	uint64_t by_type[256];
	int send_result;
	uint64_t local;
};

struct sl_node_addr fake_addr(unsigned x);
/* self 0 .. 255: X(self); < 0: the identity's own. config may be NULL; id NULL = a fresh one. */
struct fake *fake_create(int self, const struct sl_router_config *config, struct sl_identity *id);
void fake_destroy(struct fake *f);
/* A peer up under id `id` with address X(x). */
struct sl_route_peer *fake_peer(struct fake *f, uint32_t id, unsigned x);
/* Its next announce is accepted: path of n addresses, the peer first. */
void fake_path(struct fake *f, uint32_t id, unsigned n, ...);
/* The same without what follows from it (parent selection). */
void fake_path_quiet(struct fake *f, uint32_t id, unsigned n, ...);
/* Own coordinates, self first, as if the parent had announced them. */
void fake_own(struct fake *f, unsigned n, ...);
void fake_cost(struct fake *f, uint32_t id, double cost);	/* measured, without evaluation */
void fake_filter(struct fake *f, uint32_t id, unsigned n, ...); /* members X(..) */
void fake_coords(struct fake *f, unsigned n, ...); /* in the cache, the destination first */
/* Next hop of X(dest) as its peer's first byte; -1 local, -2 no coordinates, -3 no route. */
int fake_hop(struct fake *f, unsigned dest);
/* First byte of the parent's address, or of our own when root. */
unsigned fake_parent(const struct fake *f);
struct fake_sent *fake_last(struct fake *f, uint8_t type); /* NULL when none among the last 64 */

#endif
