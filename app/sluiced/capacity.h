/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CAPACITY_H
#define SL_CAPACITY_H
/*
 * What the relay comes to hold when its tables are full, from the configuration and the libraries' own estimates, held against
 * what there is before anything is made: tables take memory as they are used, so one that cannot be filled would be found out
 * by the kernel's killer, under load. docs/operation.md has the figures for large configurations.
 */
#include "eal_setup.h"

struct sl_capacity { /* bytes */
	uint64_t peers;	       /* links, sessions, their places in tree, filters and tables */
	uint64_t destinations; /* known ones */
	uint64_t workers;      /* what they remember of them */
	uint64_t fixed;	       /* all else that is ours and no buffer */
	uint64_t eal;	       /* EAL's, when it is of ordinary pages */
	uint64_t total;
};
void sl_capacity_of(struct sl_capacity *c, const struct sl_config *config, const struct sl_eal_plan *plan);

/* Rows of the peer table and sessions of the session table, as they will be. */
uint32_t sl_capacity_peers(const struct sl_config *config);
uint32_t sl_capacity_sessions(const struct sl_config *config);
/* Destinations that a worker remembers. */
uint32_t sl_capacity_hop_cache(const struct sl_config *config);

/* What may be had at most (the machine's memory, or less by the control group), and what of it nobody uses now. Bytes. */
void sl_capacity_have(uint64_t *most, uint64_t *available);
/*
 * 0; -ENOMEM and why when it cannot fit into `most`; 1 and why when it fits, but not into what is available now.
 */
int sl_capacity_check(const struct sl_capacity *c, uint64_t most, uint64_t available, char why[256]) SL_MUST_CHECK;

#endif
