/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_DISCOVERY_H
#define SL_DISCOVERY_H
/*
 * Where peers say they are: their adverts as we know them, and when to ask again. Peering facts, section 8.
 *
 * The cache is never believed against the world. Before each dial of a peer that is down its advert is asked for again
 * (SL_DISCOVERY_LEAD_US ahead, so that the answer serves this dial). What comes of it:
 *	a newer advert			takes the cached one's place
 *	the same, or an older one	the cached one stays
 *	"that is all", and none		the cached one is dropped: the peer has withdrawn it
 *	no answer (time-out, no relay)	the cached one stays: silence says nothing about the peer
 * "None" counts when at least one relay has said so and no relay that was asked kept silent: one that has lost its store is
 * outvoted by one that answers, never by one that is away. An advert that has run out is dropped whatever relays say.
 *
 * Control's, one thread; time is given. Callbacks must not call back.
 */
#include "sl_advert.h"
#include "sl_nostr_client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_DISCOVERY_LEAD_US 3000000u  /* before the dial */
#define SL_DISCOVERY_FETCH_US 2000000u /* relays' time to answer */
#define SL_DISCOVERY_GAP_US 4000000u   /* at least between two fetches of one peer */
#define SL_DISCOVERY_BATCH 64u	       /* peers a fetch asks for */
#define SL_DISCOVERY_LOST_US 10000000u /* a fetch that nobody reported on is over */

struct sl_discovery;

enum sl_discovery_outcome { /* of a peer's latest fetch */
	SL_DISCOVERY_NEVER,
	SL_DISCOVERY_ASKED,
	SL_DISCOVERY_REFRESHED, /* a newer one */
	SL_DISCOVERY_SAME,
	SL_DISCOVERY_EVICTED, /* relays have none, and it was dropped */
	SL_DISCOVERY_NONE,    /* relays have none, and we had none */
	SL_DISCOVERY_SILENT,  /* no relay answered, or one kept silent: nothing changed */
};
const char *sl_discovery_outcome_name(enum sl_discovery_outcome o);

/* A peer's endpoints are others than before; NULL: it has none any more. */
typedef void (*sl_discovery_changed_fn)(void *arg, unsigned peer, const struct sl_advert *advert);

/* NULL and ENOMEM. */
struct sl_discovery *sl_discovery_create(unsigned peers_max, sl_discovery_changed_fn changed, void *arg) SL_MUST_CHECK;
void sl_discovery_destroy(struct sl_discovery *d);
/* The peer's number, from 0 on; the same for the same key. -ENOSPC. */
int sl_discovery_peer_add(struct sl_discovery *d, const uint8_t xonly[SL_XONLY_BYTES]) SL_MUST_CHECK;
unsigned sl_discovery_peers(const struct sl_discovery *d);
const uint8_t *sl_discovery_key(const struct sl_discovery *d, unsigned peer);

/* An advert has come, by fetch or by itself (ownership passes, malloc'd). Of nobody we look for: freed, false. */
bool sl_discovery_advert(struct sl_discovery *d, struct sl_advert *a, const struct sl_nostr_time *now);
/* The cached advert that holds now, or NULL. */
const struct sl_advert *sl_discovery_lookup(const struct sl_discovery *d, unsigned peer);

/*
 * The peer is down and will be dialled at dial_us (0: it is not, or nobody knows). Call about once a second for
 * each.
 */
void sl_discovery_expect_dial(struct sl_discovery *d, unsigned peer, uint64_t dial_us);
/*
 * What to fetch now: keys of up to SL_DISCOVERY_BATCH peers, one behind the other, and the fetch's tag. 0: nothing. When the
 * fetch cannot be started: sl_discovery_fetched() with NULL.
 */
unsigned sl_discovery_fetch_due(struct sl_discovery *d, uint8_t *keys, uint32_t *tag, const struct sl_nostr_time *now);
void sl_discovery_fetched(struct sl_discovery *d, uint32_t tag, const struct sl_nostr_fetch_result *r,
	const struct sl_nostr_time *now);
/* Drops what has run out; call about once a second. */
void sl_discovery_tick(struct sl_discovery *d, const struct sl_nostr_time *now);

struct sl_discovery_info {
	const uint8_t *xonly;
	const struct sl_advert *advert; /* NULL = none */
	uint64_t heard_us;		/* this advert, first; 0 = never */
	uint64_t fetched_us;		/* the latest fetch began; 0 = never */
	enum sl_discovery_outcome outcome;
	uint64_t next_fetch_us; /* 0 = none is planned */
	uint64_t fetches, replaced, evicted;
};
void sl_discovery_info(const struct sl_discovery *d, unsigned peer, struct sl_discovery_info *out);

#ifdef __cplusplus
}
#endif
#endif
