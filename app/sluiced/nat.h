/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NAT_H
#define SL_NAT_H
/*
 * The daemon's part in NAT traversal: which peers are to be reached that way, STUN servers' names, signals through the
 * relays, packets of the data plane, and the punched path given to the links. docs/nat.md.
 *
 * One UDP transport is punched: the first that is advertised as being behind a NAT, else the first that carries IPv4. The path is
 * an address of that transport, so it has its MTU and its port's queues, whatever its name.
 *
 * Control's thread. Without node.rendezvous.nostr.enabled there is nothing of it: d->nat is NULL and every function here does nothing.
 */
#include "daemon.h"
#include "../../lib/overlay/nat/sl_traversal.h"

/* After data plane, links and transports; names go to the resolver before that starts. 0 or -errno, said in the log. */
int sl_nat_start(struct sl_daemon *d) SL_MUST_CHECK;
void sl_nat_stop(struct sl_daemon *d);
/* Runs what is due; when to call again (monotonic us), UINT64_MAX = nothing. */
uint64_t sl_nat_tick(struct sl_daemon *d);
void sl_nat_second(struct sl_daemon *d);
/* Marks the STUN servers' names among those that the resolver is to keep. */
void sl_nat_names(const struct sl_daemon *d, bool *wanted);

/* From relays: a text that `author` has wrapped for us. */
void sl_nat_heard(struct sl_daemon *d, const uint8_t author[SL_XONLY_BYTES], const char *text, size_t len);
/* The advert of a configured peer has changed. */
void sl_nat_advert(struct sl_daemon *d, uint32_t conf_peer);

/* Is this peer ever reached through a NAT (its advert apart)? */
bool sl_nat_configured(const struct sl_conf_peer *p);
/* Index of the UDP transport that is punched; -1: none. */
int sl_nat_transport(const struct sl_config *c);

/* For show_nat.c; NULL = off. */
const struct sl_traversal *sl_nat_traversal(const struct sl_daemon *d);

#endif
