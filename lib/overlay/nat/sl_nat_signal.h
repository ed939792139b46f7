/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NAT_SIGNAL_H
#define SL_NAT_SIGNAL_H
/*
 * Offers and answers: what two nodes behind NATs tell each other through relays before they punch. Compact JSON inside
 * the rumor of a wrapped event (sl_wrap.h). Peering facts, sections 11.1 and 11.2.
 *
 * Invariant: parsing believes nothing but the form, and bounds it (length of the text, of each text in it, number of
 * addresses); who sent it is the seal's author, and checks compare. No clock: unix milliseconds are given. Any thread.
 */
#include "../../crypto/sl_identity.h"
#include "sl_punch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NAT_SIGNAL_TEXT_MAX 8192u /* one signal as JSON */
#define SL_NAT_SIGNAL_ID_SIZE 129	 /* session ids and nonces: 1 .. 128 characters */
#define SL_NAT_SIGNAL_SERVER_SIZE 128
#define SL_NAT_SIGNAL_REASON_SIZE 96
#define SL_NAT_SIGNAL_SKEW_MS 60000u /* clocks may differ by so much */
#define SL_NAT_SIGNAL_NO_ADDRESS "no-usable-addresses" /* the one reason that the reference gives */

/* Why a signal is not acted on. Names are the reference's where it has one, and counters of the operator's page. */
#define SL_NAT_SIGNAL_ERRORS(X) \
	X(OK, "ok")                                                                                                    \
	X(MALFORMED, "malformed")	/* no JSON object, a field is missing, of another type or too long */          \
	X(TYPE, "unknown-type")		/* neither offer nor answer */                                                 \
	X(EXPIRED_OFFER, "expired-offer")                                                                              \
	X(FUTURE_OFFER, "future-dated-offer")                                                                          \
	X(EXPIRED_OWN, "expired-offer-in-answer") /* the answer is sound, but came when our offer had run out */       \
	X(FUTURE_OWN, "future-dated-offer-in-answer")                                                                  \
	X(EXPIRED_ANSWER, "expired-answer")                                                                            \
	X(FUTURE_ANSWER, "future-dated-answer")                                                                        \
	X(IDENTITY, "identity-mismatch") /* the seal's author is not the sender it names, or we are not the recipient */ \
	X(SESSION, "session-mismatch")                                                                                 \
	X(NO_ADDRESSES, "missing-addresses")                                                                           \
	X(NO_REASON, "missing-rejection-reason")
enum sl_nat_signal_error {
#define SL_NAT_SIGNAL_ERROR_ENUM(id, name) SL_NAT_SIGNAL_##id,
	SL_NAT_SIGNAL_ERRORS(SL_NAT_SIGNAL_ERROR_ENUM) SL_NAT_SIGNAL_ERROR_COUNT
};
const char *sl_nat_signal_error_name(enum sl_nat_signal_error e);

enum sl_nat_signal_kind { SL_NAT_SIGNAL_OFFER, SL_NAT_SIGNAL_ANSWER };

struct sl_nat_signal {
	uint8_t kind; /* enum sl_nat_signal_kind */
	char session_id[SL_NAT_SIGNAL_ID_SIZE], nonce[SL_NAT_SIGNAL_ID_SIZE];
	uint64_t issued_ms, expires_ms; /* unix */
	uint8_t sender[SL_XONLY_BYTES], recipient[SL_XONLY_BYTES];
	struct sl_punch_side side;
	char stun_server[SL_NAT_SIGNAL_SERVER_SIZE]; /* empty: null */
	/* Answers: */
	char in_reply_to[SL_NAT_SIGNAL_ID_SIZE]; /* the offer's nonce */
	bool accepted, has_punch, has_received;
	uint64_t punch_start_ms; /* unix */
	uint32_t punch_interval_ms, punch_duration_ms;
	uint64_t received_ms; /* when the offer came, by the answerer's clock */
	char reason[SL_NAT_SIGNAL_REASON_SIZE];
};

/* NUL-ended text of room SL_NAT_SIGNAL_TEXT_MAX. 0, -EMSGSIZE, -ENOMEM. */
int sl_nat_signal_format(char *text, size_t size, const struct sl_nat_signal *s) SL_MUST_CHECK;
/* Addresses beyond SL_PUNCH_CANDIDATES_MAX, and those that are no addresses, are left out. */
enum sl_nat_signal_error sl_nat_signal_parse(struct sl_nat_signal *s, const char *text, size_t len) SL_MUST_CHECK;

/* Offer: freshness, then identity. author: of the seal. ttl_ms: our own signal_ttl_secs. */
enum sl_nat_signal_error sl_nat_signal_offer_check(const struct sl_nat_signal *offer, const uint8_t author[SL_XONLY_BYTES],
	const uint8_t self[SL_XONLY_BYTES], uint64_t now_ms, uint64_t ttl_ms) SL_MUST_CHECK;
/* Answer to our offer. An accepted one without addresses and a refusal without a reason are not taken. */
enum sl_nat_signal_error sl_nat_signal_answer_check(const struct sl_nat_signal *offer, const struct sl_nat_signal *answer,
	const uint8_t author[SL_XONLY_BYTES], const uint8_t self[SL_XONLY_BYTES], uint64_t now_ms,
	uint64_t ttl_ms) SL_MUST_CHECK;
/* The answerer's clock against ours, ms, positive when it is ahead: half of the two one-way differences. False: not known. */
bool sl_nat_signal_skew(int64_t *skew_ms, const struct sl_nat_signal *offer, const struct sl_nat_signal *answer, uint64_t now_ms);

#ifdef __cplusplus
}
#endif
#endif
