/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SIGNALS_H
#define SL_SIGNALS_H
/*
 * Wrapped texts (kind 21059) and inbox lists (kind 10050) on their way between control and the thread of the relays: what is
 * expensive about them, encryption and signatures, happens on that thread. Each function says whose it is.
 */
#include "../../lib/overlay/nat/sl_wrap.h"
#include "../../lib/overlay/nostr/sl_advert.h"

/* What control gets of a wrapped text, and of a list; malloc'd. */
struct sl_signal_text {
	uint8_t author[SL_XONLY_BYTES];
	size_t len;
	char text[SL_WRAP_TEXT_MAX + 1];
};
#define SL_INBOX_URLS 8
struct sl_signal_inbox {
	uint8_t author[SL_XONLY_BYTES];
	uint64_t created_at;
	unsigned count;
	char urls[SL_INBOX_URLS][SL_ADVERT_TEXT_SIZE];
};
/* The relays' thread. NULL: not readable, not for us, or no memory. */
struct sl_signal_text *sl_signal_unwrap(const struct sl_nostr_event *e, const struct sl_identity *self);
struct sl_signal_inbox *sl_signal_inbox(const struct sl_nostr_event *e);

struct sl_signal_job;
/* Control. NULL: no memory. */
struct sl_signal_job *sl_signal_job_new(const uint8_t to[SL_XONLY_BYTES], const char *text, uint64_t ttl_s);
/* The relays' thread: the event, in one piece of memory (sl_nostr_event_fini()). 0 or -errno. */
int sl_signal_make(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s);

#endif
