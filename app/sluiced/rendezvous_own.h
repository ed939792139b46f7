/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_RENDEZVOUS_OWN_H
#define SL_RENDEZVOUS_OWN_H
/*
 * What we say of ourselves on Nostr relays: which endpoints our advert has, and the events that say so. sl_own_make_*() run on the
 * service's thread and touch nothing but their job, constants, and struct sl_own_published, which is that thread's alone while it
 * runs.
 */
#include "daemon.h"
#include "../../lib/overlay/nostr/sl_advert.h"

/* Of our advert: what a withdrawal has to name. */
struct sl_own_published {
	bool any;
	uint8_t id[SL_NOSTR_ID_BYTES];
	uint64_t created_at;
};

/* An order to publish: what the thread needs to make the event. Freed with free(). */
struct sl_own_job {
	struct sl_advert advert;
	char app[SL_CONF_NAME_SIZE];
	uint64_t ttl_s;
	struct sl_own_published *published;
	const struct sl_config *config; /* constant */
};
struct sl_own_job *sl_own_job_new(const struct sl_config *config, const struct sl_advert *advert,
	struct sl_own_published *published) SL_MUST_CHECK;
int sl_own_make_advert(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s);
int sl_own_make_withdrawal(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s);
int sl_own_make_inbox(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s);

/* Control's thread. What our transports come to now; why that is nothing. */
void sl_own_endpoints(const struct sl_daemon *d, struct sl_advert *a);
const char *sl_own_why_none(const struct sl_daemon *d);
/* "udp:11.22.33.44:2121, udp:nat", for the log. */
void sl_own_endpoints_text(char *out, size_t size, const struct sl_advert *a);

#endif
