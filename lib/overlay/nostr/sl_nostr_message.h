/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_MESSAGE_H
#define SL_NOSTR_MESSAGE_H
/*
 * What travels between us and a relay (NIP-01, NIP-42): one JSON array a text frame. Peering facts, section 6.
 *
 * A parsed message is form only; its event is not verified. Texts of a relay are cut and cleaned (sl_text.h), so that they may
 * stand in a log line.
 */
#include "sl_nostr_event.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NOSTR_SUB_ID_MAX 64 /* NIP-01 */
#define SL_NOSTR_REASON_SIZE 128

enum sl_nostr_message_type {
	SL_NOSTR_MSG_UNKNOWN, /* an array with a name we do not know: no fault */
	SL_NOSTR_MSG_EVENT,   /* sub, event */
	SL_NOSTR_MSG_EOSE,    /* sub */
	SL_NOSTR_MSG_OK,      /* id, ok, reason */
	SL_NOSTR_MSG_NOTICE,  /* reason */
	SL_NOSTR_MSG_CLOSED,  /* sub, reason */
	SL_NOSTR_MSG_AUTH,    /* challenge */
};

struct sl_nostr_message {
	enum sl_nostr_message_type type;
	char sub[SL_NOSTR_SUB_ID_MAX + 1];
	struct sl_nostr_event event;
	uint8_t id[SL_NOSTR_ID_BYTES];
	bool ok;
	char reason[SL_NOSTR_REASON_SIZE];
	char challenge[SL_NOSTR_REASON_SIZE]; /* as it came; a longer one is a fault */
};

/* Text of a relay -> message. On success the caller ends with sl_nostr_message_fini(); on an error there is nothing to end. */
enum sl_nostr_error sl_nostr_message_parse(struct sl_nostr_message *m, const char *text, size_t len) SL_MUST_CHECK;
void sl_nostr_message_fini(struct sl_nostr_message *m);

#define SL_NOSTR_FILTER_KINDS 4
#define SL_NOSTR_FILTER_AUTHORS 250 /* keeps a request under what relays take */

/* Which events a subscription is about. The pointers are the maker's. */
struct sl_nostr_filter {
	uint32_t kinds[SL_NOSTR_FILTER_KINDS];
	unsigned kind_count;
	const uint8_t *authors; /* x-only keys, one behind the other, any order */
	unsigned author_count;	/* 0 = of anybody */
	const char *d;		/* value of the d tag, NULL = any */
	const uint8_t *p;	/* x-only key in a p tag, NULL = any */
	uint64_t since;		/* 0 = not said */
	int limit;		/* -1 = not said; 0 = only what comes from now on */
};
/* Is it one of them? `since` and `limit` are the relay's business. */
bool sl_nostr_filter_matches(const struct sl_nostr_filter *f, const struct sl_nostr_event *e);

/* Messages of ours: malloc'd, NUL-ended; NULL and errno (ENOMEM, EMSGSIZE). */
char *sl_nostr_build_req(const char *sub, const struct sl_nostr_filter *f, size_t *len) SL_MUST_CHECK;
char *sl_nostr_build_close(const char *sub, size_t *len) SL_MUST_CHECK;
char *sl_nostr_build_event(const struct sl_nostr_event *e, size_t *len) SL_MUST_CHECK;
/* NIP-42: answers a challenge with a signed kind 22242. */
char *sl_nostr_build_auth(const char *challenge, const char *relay_url, const struct sl_identity *id, uint64_t now_unix_s,
	size_t *len) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
