/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_RENDEZVOUS_H
#define SL_RENDEZVOUS_H
/*
 * The daemon's part in Nostr: what of the configuration becomes relays, subscriptions and our advert; how reports of the service's
 * thread become addresses that the links dial. docs/nostr.md.
 *
 * Control's thread. Without node.rendezvous.nostr.enabled there is nothing of it: d->rendezvous is NULL and every function here
 * does nothing. A build without libwebsockets has the functions too (rendezvous_none.c); its configuration refuses the key.
 */
#include "daemon.h"
#include "../../lib/overlay/nostr/sl_discovery.h"

/* After the links and the resolver, before the loop. 0 or -errno, said in the log. */
int sl_rendezvous_start(struct sl_daemon *d) SL_MUST_CHECK;
/* Withdraws our advert and waits for the thread, half a second at most. */
void sl_rendezvous_stop(struct sl_daemon *d);
/* Readable when there are reports; -1 when there is no service. */
int sl_rendezvous_fd(const struct sl_daemon *d);
/* Takes reports, a budget of them. True when there may be more. */
bool sl_rendezvous_work(struct sl_daemon *d);
void sl_rendezvous_second(struct sl_daemon *d);

/* The advert that is known of a configured peer; NULL = none, or it is not looked for. */
const struct sl_advert *sl_rendezvous_advert(const struct sl_daemon *d, uint32_t conf_peer);
/* Relays may be asked about this peer when it is dialled (monotonic us; 0 = no dial is planned). */
void sl_rendezvous_expect_dial(struct sl_daemon *d, uint32_t conf_peer, uint64_t dial_us);

/* Is there a relay now on which signals for us are heard? */
bool sl_rendezvous_listening(const struct sl_daemon *d);
/* A text for one node, wrapped (kind 21059): how many relays it goes to, -ENOTCONN when to none, or -errno. */
int sl_rendezvous_signal(struct sl_daemon *d, const uint8_t xonly[SL_XONLY_BYTES], const char *text);

/* For show_rendezvous.c. */
struct sl_nostr_relays_report;
struct sl_rendezvous_own {
	const struct sl_advert *advert; /* NULL = nothing to publish */
	uint64_t published_us, next_us; /* 0 = never */
	const char *why_none;		/* when there is none */
};
void sl_rendezvous_own(const struct sl_daemon *d, struct sl_rendezvous_own *out);
const struct sl_discovery *sl_rendezvous_discovery(const struct sl_daemon *d);
/* Latest report, NULL = none yet; *skew_us: what its times lack to be ours. advert_mask, dm_mask: which relay serves what. */
const struct sl_nostr_relays_report *sl_rendezvous_relays(const struct sl_daemon *d, int64_t *skew_us, uint32_t *advert_mask,
	uint32_t *dm_mask);

#endif
