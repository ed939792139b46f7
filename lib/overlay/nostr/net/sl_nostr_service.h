/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_SERVICE_H
#define SL_NOSTR_SERVICE_H
/*
 * The Nostr client running: a thread of its own with the relays' sockets, and control's handle on it.
 *
 * Invariant: the two threads share two bounded queues and nothing else. Control puts orders and takes reports, neither ever
 * waits, and an order or report for which there is no room is refused and counted. What is expensive (JSON, hashes, signatures,
 * decryption, signing) happens on the service's side: a report carries what the program's `convert` made of a verified event.
 * So whatever relays do costs control one queue entry of its own budget, and the rest stays in the thread, bounded as
 * sl_nostr_client.h says. The thread runs at a lower priority (nice 10) and on the CPUs that it is given.
 *
 * Order of calls, control's thread: start, then orders and sl_nostr_service_next() in any order, stop.
 */
#include "../sl_nostr_client.h"

#include <sched.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_nostr_service;

struct sl_nostr_service_config {
	const char *const *urls; /* copied */
	unsigned url_count;
	const struct sl_identity *identity; /* outlives the service; read only */
	const char *ca_file;		    /* NULL = the system's authorities */
	const cpu_set_t *cpus;		    /* where the thread may run; NULL = where the caller runs */
	/*
	 * On the service's thread: what control gets for a verified event of a subscription with this tag. malloc'd or
	 * `release` knows how to free it. NULL = nothing (counted as rejected). Touches nothing that control changes.
	 */
	void *(*convert)(void *arg, uint32_t tag, const struct sl_nostr_event *e, uint64_t now_unix_s);
	void (*release)(void *arg, uint32_t tag, void *object); /* either thread; NULL = free() */
	void *arg;
};

/* NULL and errno (ENOMEM, EIO: TLS or its authorities, EINVAL: a URL). */
struct sl_nostr_service *sl_nostr_service_start(const struct sl_nostr_service_config *c) SL_MUST_CHECK;
/*
 * Waits for the thread: it ends within one turn, or half a second while an event that was to be published once (slot 0) has no
 * answer yet. Reports that nobody took are released.
 */
void sl_nostr_service_stop(struct sl_nostr_service *s);
/* Readable when there are reports. */
int sl_nostr_service_fd(const struct sl_nostr_service *s);

/* --- orders: 0, -ENOBUFS (no room: try again later), -ENOMEM, -EINVAL ---------------------------------------------- */

int sl_nostr_service_subscribe(struct sl_nostr_service *s, uint32_t tag, const struct sl_nostr_filter *f,
	uint32_t relays) SL_MUST_CHECK;
/* Ends in a SL_NOSTR_REPORT_FETCHED with `token`; its events carry `tag`. */
int sl_nostr_service_fetch(struct sl_nostr_service *s, uint32_t tag, uint32_t token, const struct sl_nostr_filter *f,
	uint32_t relays, uint64_t timeout_us) SL_MUST_CHECK;
/*
 * An event that the thread makes: `make` fills *e (0 or -errno; sl_nostr_event_fini() is the service's), `done` frees the job in
 * every case once the order was taken (0). Slots and relays: sl_nostr_publish().
 */
int sl_nostr_service_publish(struct sl_nostr_service *s, uint32_t slot, uint32_t relays,
	int (*make)(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s),
	void (*done)(void *job), void *job) SL_MUST_CHECK;
int sl_nostr_service_publish_end(struct sl_nostr_service *s, uint32_t slot) SL_MUST_CHECK;

/* --- reports ------------------------------------------------------------------------------------------------------- */

enum sl_nostr_report_type { SL_NOSTR_REPORT_EVENT, SL_NOSTR_REPORT_FETCHED, SL_NOSTR_REPORT_RELAYS };

/* Everything that an operator may want, as of now_us (CLOCK_MONOTONIC). Sent on each change and once a second. */
struct sl_nostr_relays_report {
	uint64_t now_us;
	unsigned count;
	unsigned sockets, subscriptions, publications; /* in use */
	uint64_t rejected;	    /* verified events that `convert` made nothing of */
	uint64_t reports_dropped;   /* no room in control's queue */
	uint64_t make_failed;
	uint64_t cpu_us;	    /* of the thread */
	struct sl_nostr_relay_info relays[];
};

struct sl_nostr_report {
	enum sl_nostr_report_type type;
	uint32_t tag;	/* EVENT */
	uint32_t token; /* FETCHED */
	unsigned relay; /* EVENT */
	void *object;	/* EVENT: from convert */
	struct sl_nostr_fetch_result result;	/* FETCHED */
	struct sl_nostr_relays_report *relays;	/* RELAYS */
};
/* Takes the next report; false when there is none. Object and relays are the caller's (free(), or release). */
bool sl_nostr_service_next(struct sl_nostr_service *s, struct sl_nostr_report *out);

#ifdef __cplusplus
}
#endif
#endif
