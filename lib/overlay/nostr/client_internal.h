/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_CLIENT_INTERNAL_H
#define SL_NOSTR_CLIENT_INTERNAL_H
/*
 * The client's parts: relay.c (a connection's life), subs.c (what is asked for), publish.c (what is told), seen.c (known ids),
 * client.c (the entry points, one settle at the end of each). A connection that turns out broken in the middle of something is
 * only marked (`doomed`) and taken down by settle, so no loop sees its relay vanish.
 */
#include "sl_nostr_client.h"

#include "../sl_bucket.h"

enum ask_state {
	ASK_IDLE,   /* not asked on this connection */
	ASK_ASKED,  /* sent, no EOSE yet */
	ASK_EOSE,   /* what is stored has come; live from now on */
	ASK_CLOSED, /* the relay does not want to */
	ASK_AUTH,   /* closed until we have authenticated */
	ASK_LOST,   /* a fetch whose relay went away */
};

struct sub {
	bool used, fetch;
	uint32_t tag, relays, events;
	uint64_t deadline_us; /* fetch */
	struct sl_nostr_filter filter;
	void *memory; /* the filter's */
	char id[24];
	uint8_t state[SL_NOSTR_RELAYS_MAX]; /* enum ask_state */
	uint64_t closed_us[SL_NOSTR_RELAYS_MAX];
};

enum pub_state { PUB_WAITING, PUB_SENT, PUB_ACCEPTED, PUB_REFUSED, PUB_SILENT };

struct publication {
	bool used;
	uint32_t slot, relays;
	uint64_t until_us; /* slot 0 */
	uint8_t id[SL_NOSTR_ID_BYTES];
	char *text;
	size_t len;
	uint8_t state[SL_NOSTR_RELAYS_MAX]; /* enum pub_state */
	uint8_t refusals[SL_NOSTR_RELAYS_MAX];
	uint64_t at_us[SL_NOSTR_RELAYS_MAX]; /* sent, or refused */
};

struct relay {
	struct sl_nostr_relay_info info;
	uint64_t deadline_us; /* CONNECTING */
	uint64_t opened_us, ping_us; /* ping_us: sent, no answer yet; 0 = none */
	struct sl_bucket messages, bytes;
	bool paused;
	uint64_t paused_us, paused_total_us;
	int64_t overhead; /* bytes beside messages that are not paid for as frames yet; negative: room for those of messages */
	uint32_t strikes;
	char doomed[SL_NOSTR_REASON_SIZE]; /* why it is to be taken down; "" = it is not */
	bool punished;			   /* with the longest back-off */
	bool auth_sent, auth_done;
	uint8_t auth_id[SL_NOSTR_ID_BYTES];
};

#define SEEN_BUCKETS 4096u
struct seen {
	uint8_t ids[SL_NOSTR_SEEN_MAX][SL_NOSTR_ID_BYTES];
	uint16_t next[SL_NOSTR_SEEN_MAX]; /* index + 1 of the next in the chain */
	uint16_t bucket[SEEN_BUCKETS];
	uint32_t count, at; /* at: the place that is written next */
};

struct sl_nostr_client {
	struct sl_nostr_net net;
	struct sl_nostr_sink sink;
	const struct sl_identity *identity;
	unsigned relay_count;
	struct relay relays[SL_NOSTR_RELAYS_MAX];
	struct sub subs[SL_NOSTR_SUBS_MAX];
	struct publication publications[SL_NOSTR_PUBLICATIONS_MAX];
	struct seen seen;
	uint64_t next_sub;
};

static inline bool
in_mask(uint32_t mask, unsigned relay)
{
	return mask >> relay & 1;
}
/* "Before": 0 stands for never. */
static inline uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* seen.c */
bool sl_nostr_seen_has(const struct seen *s, const uint8_t id[SL_NOSTR_ID_BYTES]);
void sl_nostr_seen_add(struct seen *s, const uint8_t id[SL_NOSTR_ID_BYTES]);

/* relay.c */
void sl_nostr_relay_init(struct relay *r, const char *url, const struct sl_nostr_time *now);
void sl_nostr_relay_doom(struct relay *r, const char *why);
/* Sends a built message and frees it; a failure dooms the connection. NULL (not built): false. */
bool sl_nostr_relay_send(struct sl_nostr_client *c, unsigned i, char *text, size_t len);
bool sl_nostr_relay_send_const(struct sl_nostr_client *c, unsigned i, const char *text, size_t len);
void sl_nostr_relay_error(struct sl_nostr_client *c, unsigned i, const char *why, const struct sl_nostr_time *now);
void sl_nostr_relay_heard(struct relay *r, const struct sl_nostr_time *now);
void sl_nostr_relay_opened(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now);
/* The connection or attempt is over; the next one is scheduled. */
void sl_nostr_relay_lost(struct sl_nostr_client *c, unsigned i, const char *why, const struct sl_nostr_time *now);
void sl_nostr_relay_strike(struct relay *r, enum sl_nostr_error e);
/* Counts a message against the budgets and pauses the relay when they are used up. */
void sl_nostr_relay_charge(struct sl_nostr_client *c, unsigned i, size_t len, const struct sl_nostr_time *now);
void sl_nostr_relay_charge_bytes(struct sl_nostr_client *c, unsigned i, size_t len, const struct sl_nostr_time *now);
uint64_t sl_nostr_relay_tick(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now);

/* subs.c */
void sl_nostr_subs_opened(struct sl_nostr_client *c, unsigned i);
void sl_nostr_subs_lost(struct sl_nostr_client *c, unsigned i);
void sl_nostr_subs_authenticated(struct sl_nostr_client *c, unsigned i);
void sl_nostr_subs_event(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m,
	const struct sl_nostr_time *now);
void sl_nostr_subs_eose(struct sl_nostr_client *c, unsigned i, const char *id);
void sl_nostr_subs_closed(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m,
	const struct sl_nostr_time *now);
/* Ends fetches that are over; asks again where a pause is. */
uint64_t sl_nostr_subs_tick(struct sl_nostr_client *c, const struct sl_nostr_time *now);
void sl_nostr_subs_fini(struct sl_nostr_client *c);

/* publish.c */
void sl_nostr_publish_opened(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_time *now);
void sl_nostr_publish_lost(struct sl_nostr_client *c, unsigned i);
void sl_nostr_publish_answer(struct sl_nostr_client *c, unsigned i, const struct sl_nostr_message *m,
	const struct sl_nostr_time *now);
uint64_t sl_nostr_publish_tick(struct sl_nostr_client *c, const struct sl_nostr_time *now);
void sl_nostr_publish_fini(struct sl_nostr_client *c);

#endif
