/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_EVENT_H
#define SL_NOSTR_EVENT_H
/*
 * One Nostr event (NIP-01): parsed from JSON within bounds, written, named by its id, signed, verified. Peering facts,
 * sections 6 and 20.
 *
 * Invariant: parsing proves nothing but the form. What a relay said is believed only after sl_nostr_event_verify(), and
 * looked at only after sl_nostr_event_clock(). Every way to be wrong has one name (enum sl_nostr_error); the same names are the
 * counters of the operator's pages.
 *
 * An event is plain data and pointers. Parsed: the pointers lead into `storage`, one allocation, freed by
 * sl_nostr_event_fini(). Made: the maker points kind, created_at, tags and content at memory of its own, leaves storage NULL,
 * and calls sl_nostr_event_sign() or sl_nostr_event_name(). Texts are UTF-8 and end in NUL; none holds a NUL inside: an
 * event with JSON's \u0000 is left out under a name of its own, since NIP-01 allows it and an honest relay passes it on.
 *
 * No clock, no socket, no global state: any thread, one event at a time. A secret in an event (a decrypted seal) is wiped
 * by sl_nostr_event_fini(), which clears the whole storage.
 */
#include "../../crypto/sl_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NOSTR_TEXT_MAX 65536u  /* bytes of one relay message or event: what relays commonly allow */
#define SL_NOSTR_DEPTH_MAX 8u	  /* nested arrays and objects: an event in a message needs 4 */
#define SL_NOSTR_VALUES_MAX 4096u /* separators (comma, colon) in one text: bounds what the parser may allocate */
#define SL_NOSTR_TAGS_MAX 256u
#define SL_NOSTR_TAG_VALUES_MAX 64u
#define SL_NOSTR_ID_BYTES 32
#define SL_NOSTR_ID_HEX 64
#define SL_NOSTR_TIME_MAX 253402300799u /* end of the year 9999: no sum with it can wrap */

#define SL_NOSTR_ERRORS(X)                                                                                             \
	X(OK, "ok")                                                                                                    \
	X(TOO_LONG, "too_long")		      /* over SL_NOSTR_TEXT_MAX */                                            \
	X(TOO_DEEP, "too_deep")		      /* over SL_NOSTR_DEPTH_MAX: found before anything is allocated */       \
	X(TOO_MANY_VALUES, "too_many_values") /* over SL_NOSTR_VALUES_MAX, the same */                                \
	X(NOT_JSON, "not_json")		      /* no JSON, a key twice, bad UTF-8, text behind it */                   \
	X(NUL, "nul_in_text")		      /* JSON's \u0000: sound by NIP-01, and we have no use for it */          \
	X(NOT_OBJECT, "not_an_object")                                                                                 \
	X(FIELD_MISSING, "field_missing")                                                                              \
	X(FIELD_TYPE, "field_type")	/* number where text is expected, a negative or broken number, ... */         \
	X(BAD_HEX, "bad_hex")		/* id, pubkey or sig is not hex of its length */                               \
	X(TOO_MANY_TAGS, "too_many_tags") /* tags, or values of one */                                                \
	X(NO_MEMORY, "no_memory")                                                                                      \
	X(BAD_ID, "bad_id")		/* the id is not the hash of the rest */                                       \
	X(BAD_SIGNATURE, "bad_signature") /* or no signature at all */                                                \
	X(EXPIRED, "expired")		/* NIP-40: its expiration has passed, or cannot be read */                     \
	X(TOO_OLD, "too_old")                                                                                          \
	X(FUTURE, "from_the_future")
enum sl_nostr_error {
#define SL_NOSTR_ERROR_ENUM(id, name) SL_NOSTR_##id,
	SL_NOSTR_ERRORS(SL_NOSTR_ERROR_ENUM) SL_NOSTR_ERROR_COUNT
};
const char *sl_nostr_error_name(enum sl_nostr_error e);

struct sl_nostr_tag {
	const char *const *values; /* values[0] is the tag's name */
	uint32_t count;		   /* >= 1 when parsed */
};

struct sl_nostr_event {
	uint8_t id[SL_NOSTR_ID_BYTES];
	uint8_t pubkey[SL_XONLY_BYTES];
	uint8_t sig[SL_SIGNATURE_BYTES];
	bool has_sig;
	uint32_t kind;	     /* 0 .. 65535 */
	uint64_t created_at; /* unix seconds, <= SL_NOSTR_TIME_MAX */
	const struct sl_nostr_tag *tags;
	uint32_t tag_count;
	const char *content;
	size_t content_len; /* strlen(content) */
	void *storage;	    /* NULL: the maker's memory */
	size_t storage_len;
};

#define SL_NOSTR_UNSIGNED 0x01u /* parse: `sig` may be absent, and so may `id` (a rumor of NIP-59) */

/*
 * JSON object -> event. Keys in any order, unknown ones are ignored. On an error *e is empty and needs no fini. An event without an
 * id (SL_NOSTR_UNSIGNED) gets the one that it must have.
 */
enum sl_nostr_error sl_nostr_event_parse(struct sl_nostr_event *e, const char *text, size_t len,
	unsigned flags) SL_MUST_CHECK;
/* Wipes and frees; leaves *e empty. Allowed on an empty event (all zero). */
void sl_nostr_event_fini(struct sl_nostr_event *e);

/*
 * The array [0,pubkey,created_at,kind,tags,content] that the id is the SHA-256 of, and the event as a JSON object (without `sig`
 * when it has none). malloc'd, NUL-ended, the caller frees; *len without the NUL. NULL: no memory, or longer than
 * SL_NOSTR_TEXT_MAX (errno ENOMEM, EMSGSIZE).
 */
char *sl_nostr_event_serialise(const struct sl_nostr_event *e, size_t *len) SL_MUST_CHECK;
char *sl_nostr_event_format(const struct sl_nostr_event *e, size_t *len) SL_MUST_CHECK;

/* Made events: content_len is set from content. 0, -ENOMEM, -EMSGSIZE. */
int sl_nostr_event_sign(struct sl_nostr_event *e, const struct sl_identity *id) SL_MUST_CHECK; /* pubkey, id, sig */
int sl_nostr_event_name(struct sl_nostr_event *e, const uint8_t pubkey[SL_XONLY_BYTES]) SL_MUST_CHECK; /* no sig */

/* Two steps, so that a known id costs no signature: the hash is cheap, the signature is not. Both OK, or the first fault. */
enum sl_nostr_error sl_nostr_event_check_id(const struct sl_nostr_event *e) SL_MUST_CHECK;
enum sl_nostr_error sl_nostr_event_check_sig(const struct sl_nostr_event *e) SL_MUST_CHECK;
enum sl_nostr_error sl_nostr_event_verify(const struct sl_nostr_event *e) SL_MUST_CHECK;

/*
 * Bounds of the clock: created_at not before now - past_s (0 = however old), not after now + future_s; expiration tag, if there
 * is one, after now.
 */
enum sl_nostr_error sl_nostr_event_clock(const struct sl_nostr_event *e, uint64_t now_unix_s, uint64_t past_s,
	uint64_t future_s) SL_MUST_CHECK;
/* The expiration tag: 0 and the time, -ENOENT (none), -EINVAL (not a decimal number up to SL_NOSTR_TIME_MAX). */
int sl_nostr_event_expiration(const struct sl_nostr_event *e, uint64_t *unix_s);

/* First value of the first tag of that name; NULL when there is none or it has no value. */
const char *sl_nostr_event_tag(const struct sl_nostr_event *e, const char *name);

#ifdef __cplusplus
}
#endif
#endif
