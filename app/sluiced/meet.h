/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_MEET_H
#define SL_MEET_H
/*
 * Nodes that the configuration does not name: heard on a link by multicast DNS (node.rendezvous.lan) or by beacons of raw Ethernet
 * (transports.ethernet.auto_connect), or in adverts where node.rendezvous.nostr.policy is open. docs/lan.md.
 *
 * Joins sl_lan.h and sl_found.h to ports, links and configuration. Control's thread. When none of the three is asked for, d->meet is
 * NULL and every function here does nothing.
 */
#include "daemon.h"
#include "../../lib/overlay/nostr/sl_advert.h"
#include "../../lib/overlay/sl_found.h"
#include "sl_lan.h"

/* After data plane, links and transports. 0 or -errno, said in the log. */
int sl_meet_start(struct sl_daemon *d) SL_MUST_CHECK;
/* Says good-bye by multicast DNS: while the data plane still sends. */
void sl_meet_goodbye(struct sl_daemon *d);
void sl_meet_stop(struct sl_daemon *d);
/* Runs what is due; when to call again (monotonic us), UINT64_MAX = nothing. */
uint64_t sl_meet_tick(struct sl_daemon *d);
void sl_meet_second(struct sl_daemon *d);

/* The scope of our mesh on the link: what is configured, else what nostr.app says (peering facts, 15). */
void sl_meet_scope(const struct sl_config *c, char scope[SL_MDNS_SCOPE_SIZE]);

/* An advert of a node that is not configured (policy open). */
void sl_meet_advert(struct sl_daemon *d, const struct sl_advert *advert, uint64_t unix_s);

/* For the pages; NULL = off. */
const struct sl_found *sl_meet_found(const struct sl_daemon *d);
const struct sl_lan *sl_meet_lan(const struct sl_daemon *d);

#endif
