/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_FOUND_H
#define SL_FOUND_H
/*
 * Nodes that were found, not configured: on a link (multicast DNS, beacons), or by their adverts where the policy is open. Who is
 * remembered, for how long, and when he is dialled.
 *
 * Whoever says where a node is says what he likes: he may invent nodes by the thousand. So
 *	- each source has a number of places of its own, and none takes another's. Who is linked keeps his place; of the others
 *	  the one that has failed most often makes room for a new one, and when nobody has failed yet the new one is left out
 *	- dials share one bucket, and are not begun while there is no room for a peer beside those that are configured
 *	- a dial that comes to nothing is repeated after base * 2^n, up to a ceiling; after `tries` failures (0: never) the node is
 *	  left alone until it says something new (other addresses) or its hold ends
 *	- whoever is not heard of again leaves when what was heard runs out; a link that is up is never touched from here
 *
 * Time is given, dials are the sink's. One thread. Callbacks must not call back.
 */
#include "../crypto/sl_identity.h"
#include "sl_addr.h"
#include "sl_bucket.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_FOUND_ADDRS_MAX 4u

enum sl_found_source { SL_FOUND_MDNS, SL_FOUND_BEACON, SL_FOUND_ADVERT, SL_FOUND_SOURCES };
const char *sl_found_source_name(enum sl_found_source s);

enum sl_found_state {
	SL_FOUND_WAITING, /* for its time, or a token, or room */
	SL_FOUND_DIALLED,
	SL_FOUND_LINKED,
	SL_FOUND_REFUSED, /* by our access lists */
	SL_FOUND_GIVEN_UP,
};
const char *sl_found_state_name(enum sl_found_state s);

struct sl_found_config {
	uint32_t places[SL_FOUND_SOURCES]; /* of nodes without a link */
	uint32_t linked_max;		   /* of those with one, in all */
	uint32_t tries[SL_FOUND_SOURCES];  /* 0: without an end */
	double dials_burst, dials_per_s;
	uint64_t retry_base_us, retry_max_us;
	uint64_t dial_us; /* a dial that has not come to a link by then has failed */
};

#define SL_FOUND_COUNTERS(X)                                                                                           \
	X(HEARD, "found_heard", "nodes heard of, each time")                                                          \
	X(NEW, "found_new", "of them for the first time")                                                             \
	X(EVICTED, "found_evicted", "found nodes that made room for others")                                          \
	X(FULL, "found_full", "found nodes left out for want of a place")                                             \
	X(EXPIRED, "found_expired", "found nodes that were not heard of again")                                       \
	X(DIALS, "found_dialled", "dials of found nodes")                                                             \
	X(DIAL_FAILED, "found_dial_failed", "of them those that came to nothing")                                     \
	X(LIMITED, "found_dials_limited", "dials put off: more than the limit")                                       \
	X(NO_ROOM, "found_no_room", "dials put off: no room for another peer")                                        \
	X(REFUSED, "found_refused", "found nodes that the access lists refuse")
enum sl_found_counter {
#define SL_FOUND_COUNTER_ENUM(id, name, what) SL_FOUND_N_##id,
	SL_FOUND_COUNTERS(SL_FOUND_COUNTER_ENUM) SL_FOUND_COUNTER_COUNT
};
const char *sl_found_counter_name(enum sl_found_counter c);

struct sl_found_sink {
	void *arg;
	/* As sl_links_dial(). */
	int (*dial)(void *arg, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr);
	/* For the log, once each: a new node; another state of one. Either may be NULL. */
	void (*appeared)(void *arg, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addr);
	void (*left)(void *arg, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const char *why);
};

struct sl_found;

/* NULL and errno. */
struct sl_found *sl_found_create(const struct sl_found_config *config, const struct sl_found_sink *sink, uint64_t now_us) SL_MUST_CHECK;
void sl_found_destroy(struct sl_found *f);

/*
 * Heard of now, at these addresses (1 or more; those beyond SL_FOUND_ADDRS_MAX are left out), which hold for hold_us. A node that
 * two sources know belongs to the first and takes the addresses of the latest. 0, -ENOSPC (left out).
 */
int sl_found_heard(struct sl_found *f, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES],
	const struct sl_addr *addrs, unsigned count, uint64_t hold_us, uint64_t now_us) SL_MUST_CHECK;
/* It has said good-bye, or withdrawn its advert: forgotten, unless it is linked or another source's. */
void sl_found_gone(struct sl_found *f, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES]);

/*
 * About once a second, all that is linked: begin, one call a link, end. room: how many peers more there may be beside
 * those that are configured.
 */
void sl_found_links_begin(struct sl_found *f);
void sl_found_linked(struct sl_found *f, const uint8_t xonly[SL_XONLY_BYTES]);
void sl_found_links_end(struct sl_found *f, uint32_t room, uint64_t now_us);
/* Dials what is due, a few of them; true when there may be more. */
bool sl_found_tick(struct sl_found *f, uint64_t now_us);

struct sl_found_info {
	uint8_t xonly[SL_XONLY_BYTES];
	enum sl_found_source source;
	enum sl_found_state state;
	struct sl_addr addrs[SL_FOUND_ADDRS_MAX];
	unsigned addr_count;
	uint64_t first_us, heard_us, expires_us;
	uint64_t next_dial_us; /* 0 = none is planned */
	uint32_t dials, failures; /* failures: in a row */
	const char *last_error;	  /* NULL = none */
	uint64_t last_error_us;
};
typedef void (*sl_found_fn)(void *arg, const struct sl_found_info *info);
void sl_found_for_each(const struct sl_found *f, sl_found_fn fn, void *arg);
uint32_t sl_found_count(const struct sl_found *f);
const uint64_t *sl_found_counters(const struct sl_found *f);

#ifdef __cplusplus
}
#endif
#endif
