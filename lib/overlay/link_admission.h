/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LINK_ADMISSION_H
#define SL_LINK_ADMISSION_H
/* Whose budget a msg1 is, before any curve operation, and which msg1 have come to nothing already. admission.c says how. */
#include "link_limits.h"
#include "sl_addr.h"
#include "sl_bucket.h"

struct peer;
struct sl_links;

/*
 * Strangers: what admission.c remembers of them. All tables are direct mapped by a keyed hash: the last
 * one that came has the row, so none can be filled up.
 */
#define SL_PREFIX_ROWS 1024u
#define SL_CALLER_ROWS 16384u
#define SL_HOME_ROWS 4096u
#define SL_REFUSED_ROWS 4096u
struct prefix_row { /* an IPv4 /24, an IPv6 /48, an Ethernet port */
	uint64_t hash;
	struct sl_bucket bucket;
};
struct caller_row { /* a msg1 that found no room: these bytes from this address */
	uint64_t hash, since_us;
};
struct refused_row { /* a msg1 that opened, or did not, and came to nothing */
	uint64_t hash, until_us;
	uint32_t peer_id; /* whose link was too young for it, SL_PEER_NONE: another reason */
};
struct admission {
	struct sl_bucket first, returning; /* halves of node.rate_limit's strangers */
	struct sl_bucket home;		   /* what all homes together have besides */
	double reserve;	      /* tokens of `returning` that first msg1 leave alone */
	double prefix_burst, prefix_rate_per_s;
	struct prefix_row *prefixes, *homes; /* homes: prefixes that a peer has been at, or is configured at */
	struct caller_row *callers;
	struct refused_row *refused;
};

int sl_admission_init(struct sl_links *l, uint64_t now_us);
void sl_admission_fini(struct sl_links *l);
/* Takes from the strangers' budget for a msg1 from there. False: counted, no word to anyone. opened: it is a stranger's, so it
 * has nothing at a home. */
bool sl_stranger_admit(
	struct sl_links *l, const struct sl_addr *from, const uint8_t *packet, bool opened, uint64_t now_us);
/* A peer is at this address, or may be: its prefix is a home from now on. */
void sl_home_note(struct sl_links *l, const struct sl_addr *at, uint64_t now_us);
/* This msg1 came to nothing. young: the peer whose link was too young for it, or NULL. */
void sl_refusal_note(
	struct sl_links *l, const uint8_t *packet, const struct peer *young, uint64_t for_us, uint64_t now_us);
/* The same bytes again, and nothing has changed: counted, no curve operation. */
bool sl_refused_before(struct sl_links *l, const uint8_t *packet, uint64_t now_us);
/* The budget that all linked peers share, for as many as there are now. */
void sl_established_size(struct sl_links *l, uint64_t now_us);
uint64_t sl_msg1_hash(const struct sl_links *l, const uint8_t *packet);

#endif
