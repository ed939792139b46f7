/* SPDX-License-Identifier: BSD-3-Clause */
/* What the links come to hold, from the sizes of what they are made of. */
#include "link_internal.h"

#define CHUNK 16u /* records of a pool that stand together */
#define PAGE 4096u

/* A record of a pool: its chunk stands in whole pages, behind one that says how large it is (libsodium). */
static size_t
pool_bytes(size_t record)
{
	const size_t chunk = 64 + ((record + 63) & ~(size_t)63) * CHUNK;

	return ((chunk + PAGE - 1) / PAGE + 1) * PAGE / CHUNK;
}

void
sl_links_capacity(uint32_t max_peers, uint32_t slots, struct sl_links_capacity *c)
{
	const size_t tables = 6 * sizeof(void *) * 3 / 2 /* two hashes, rounded up */ + sizeof(void *) + sizeof(uint32_t) +
		sizeof(void *);

	c->fixed = sizeof(struct sl_links) + SL_ANSWERED_ENTRIES * sizeof(struct answered) + SL_FRAME_MAX +
		(SL_PREFIX_ROWS + SL_HOME_ROWS) * sizeof(struct prefix_row) + SL_CALLER_ROWS * sizeof(struct caller_row) +
		SL_REFUSED_ROWS * sizeof(struct refused_row);
	c->peer = pool_bytes(sizeof(struct peer)) + tables;
	c->dial = pool_bytes(sizeof(struct attempt));
	c->session = sizeof(struct attempt *);
	c->total = c->fixed + (c->peer + c->dial) * max_peers + c->session * slots;
}
