/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_JSON_H
#define SL_NOSTR_JSON_H
/* Private to lib/overlay/nostr: JSON in (jansson, behind a scan that bounds it) and JSON out (a text that grows). */
#include "sl_nostr_event.h"

#include <jansson.h>

/* The bounds of sl_nostr_event.h, found by reading bytes only; then the parse. *root is the caller's (json_decref). */
enum sl_nostr_error sl_nostr_json_parse(json_t **root, const char *text, size_t len) SL_MUST_CHECK;
enum sl_nostr_error sl_nostr_event_from_json(struct sl_nostr_event *e, const json_t *object,
	unsigned flags) SL_MUST_CHECK;

/* A text that grows up to SL_NOSTR_TEXT_MAX; the first failure sticks and later writes do nothing. */
struct sl_nostr_text {
	char *p;
	size_t len, room;
	int error; /* 0, ENOMEM, EMSGSIZE */
};
void sl_nostr_text_put(struct sl_nostr_text *t, const char *bytes, size_t len);
void sl_nostr_text_puts(struct sl_nostr_text *t, const char *s);
void sl_nostr_text_u64(struct sl_nostr_text *t, uint64_t v);
void sl_nostr_text_hex(struct sl_nostr_text *t, const uint8_t *bytes, size_t len); /* in quotes, 64 bytes at most */
/* A JSON string in quotes, escaped as NIP-01 says (NUL-ended UTF-8). */
void sl_nostr_text_string(struct sl_nostr_text *t, const char *s);
void sl_nostr_text_event(struct sl_nostr_text *t, const struct sl_nostr_event *e); /* the object */
/* Hands the text over, or frees it and returns NULL with errno. */
char *sl_nostr_text_take(struct sl_nostr_text *t, size_t *len) SL_MUST_CHECK;

#endif
