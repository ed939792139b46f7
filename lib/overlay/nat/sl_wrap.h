/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_WRAP_H
#define SL_WRAP_H
/*
 * Kind 21059: a text for one other node, carried by relays that learn neither sender nor content. NIP-59's layers around a
 * text, in a kind that relays pass on and do not keep. Peering facts, section 10.
 *
 *	rumor  kind 14, unsigned, the text as it is
 *	seal   kind 13, signed by the sender, no tags, dated up to two days back; holds the rumor under NIP-44
 *	wrap   kind 21059, signed by a key made for it and forgotten, dated now; tags p (the receiver) and expiration; holds the
 *	       seal under NIP-44
 *
 * Invariant: what sl_wrap_open() gives was written by the author it names: the seal's signature holds, and the rumor's pubkey is
 * the seal's (the reference does not compare these). Two decryptions and one signature a call, a few hundred microseconds: not for
 * a thread that must not wait. No clock, no state: any thread. All that was decrypted is wiped.
 */
#include "sl_nostr_event.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_KIND_SEAL 13u
#define SL_KIND_RUMOR 14u
#define SL_KIND_WRAP 21059u
#define SL_WRAP_TEXT_MAX 8192u
#define SL_WRAP_BACKDATE_S 172800u

struct sl_wrap {
	struct sl_nostr_event event; /* signed, ready to be published */
	struct sl_nostr_tag tags[2];
	const char *values[4];
	char recipient[2 * SL_XONLY_BYTES + 1], expiration[24];
	char *content;
};
/* text: NUL-ended, 1 .. SL_WRAP_TEXT_MAX bytes. 0, -EINVAL (text, recipient no key), -ENOMEM. On 0 the caller ends with fini. */
int sl_wrap_build(struct sl_wrap *w, const struct sl_identity *sender, const uint8_t recipient[SL_XONLY_BYTES],
	const char *text, uint64_t now_unix_s, uint64_t ttl_s) SL_MUST_CHECK;
void sl_wrap_fini(struct sl_wrap *w);

#define SL_WRAP_ERRORS(X)                                                                                              \
	X(OK, "ok")                                                                                                    \
	X(KIND, "not-a-wrap")                                                                                          \
	X(RECIPIENT, "not-for-us")     /* p tag, of wrap or rumor */                                                   \
	X(WRAP_CIPHER, "wrap-not-readable")                                                                            \
	X(SEAL_FORM, "seal-malformed") /* no event, or not of kind 13 */                                               \
	X(SEAL_FORGED, "seal-forged")  /* id or signature */                                                           \
	X(SEAL_CIPHER, "seal-not-readable")                                                                            \
	X(RUMOR_FORM, "rumor-malformed")                                                                               \
	X(RUMOR_FORGED, "rumor-of-another-author")                                                                     \
	X(TOO_LONG, "text-too-long")                                                                                   \
	X(NO_MEMORY, "no-memory")
enum sl_wrap_error {
#define SL_WRAP_ERROR_ENUM(id, name) SL_WRAP_##id,
	SL_WRAP_ERRORS(SL_WRAP_ERROR_ENUM) SL_WRAP_ERROR_COUNT
};
const char *sl_wrap_error_name(enum sl_wrap_error e);

/*
 * The event's own id and signature are the caller's to check before (sl_nostr_event_verify()); they name the throw-away key only.
 * text: size bytes of room, NUL-ended. author: the seal's.
 */
enum sl_wrap_error sl_wrap_open(const struct sl_nostr_event *wrap, const struct sl_identity *self,
	uint8_t author[SL_XONLY_BYTES], char *text, size_t size) SL_MUST_CHECK;
/* The same of other kinds, for NIP-59's own example. */
enum sl_wrap_error sl_wrap_open_kinds(const struct sl_nostr_event *wrap, uint32_t wrap_kind, uint32_t rumor_kind,
	const struct sl_identity *self, uint8_t author[SL_XONLY_BYTES], char *text, size_t size) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
