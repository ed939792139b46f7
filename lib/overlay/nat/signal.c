/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_nat_signal.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

const char *
sl_nat_signal_error_name(enum sl_nat_signal_error e)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_NAT_SIGNAL_ERRORS(NAME)
#undef NAME
	};
	return names[e];
}

/* --- writing ---------------------------------------------------------------------------------- */

static json_t *
address_json(const struct sl_addr *a)
{
	char text[SL_ADDR_TEXT_SIZE], *ip = text, *end;

	if (a->kind != SL_ADDR_UDP4 && a->kind != SL_ADDR_UDP6)
		return json_null();
	sl_addr_format(text, a);
	end = strrchr(text, ':');
	if (a->kind == SL_ADDR_UDP6) {
		ip++;
		end--;
	}
	*end = '\0';
	return json_pack("{s:s,s:s,s:i}", "protocol", "udp", "ip", ip, "port", (int)a->udp_port);
}

static json_t *
text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static void
put(json_t *o, const char *key, json_t *value, bool *ok)
{
	if (json_object_set_new(o, key, value) != 0)
		*ok = false;
}

static void
put_number(json_t *o, const char *key, uint64_t v, bool *ok)
{
	put(o, key, json_integer((json_int_t)v), ok);
}

static void
put_npub(json_t *o, const char *key, const uint8_t xonly[SL_XONLY_BYTES], bool *ok)
{
	char npub[SL_NPUB_SIZE];

	sl_npub_format(npub, xonly);
	put(o, key, json_string(npub), ok);
}

static void
put_side(json_t *o, const struct sl_nat_signal *s, bool *ok)
{
	json_t *list = json_array();

	put(o, "reflexiveAddress", address_json(&s->side.reflexive), ok);
	for (unsigned i = 0; i < s->side.local_count; i++)
		if (json_array_append_new(list, address_json(&s->side.local[i])) != 0)
			*ok = false;
	put(o, "localAddresses", list, ok);
	put(o, "stunServer", text_or_null(s->stun_server), ok);
}

int
sl_nat_signal_format(char *text, size_t size, const struct sl_nat_signal *s)
{
	const bool answer = s->kind == SL_NAT_SIGNAL_ANSWER;
	json_t *o = json_object();
	bool ok = o != NULL;
	size_t len;

	put(o, "type", json_string(answer ? "answer" : "offer"), &ok);
	put(o, "sessionId", json_string(s->session_id), &ok);
	put_number(o, "issuedAt", s->issued_ms, &ok);
	put_number(o, "expiresAt", s->expires_ms, &ok);
	put(o, "nonce", json_string(s->nonce), &ok);
	put_npub(o, "senderNpub", s->sender, &ok);
	put_npub(o, "recipientNpub", s->recipient, &ok);
	if (answer) {
		put(o, "inReplyTo", json_string(s->in_reply_to), &ok);
		put(o, "accepted", json_boolean(s->accepted), &ok);
	}
	put_side(o, s, &ok);
	if (answer) {
		put(o, "punch", !s->has_punch ? json_null() : json_pack("{s:I,s:I,s:I}", "startAtMs",
			(json_int_t)s->punch_start_ms, "intervalMs", (json_int_t)s->punch_interval_ms, "durationMs",
			(json_int_t)s->punch_duration_ms), &ok);
		put(o, "reason", text_or_null(s->reason), &ok);
		if (s->has_received)
			put_number(o, "offerReceivedAt", s->received_ms, &ok);
	}
	len = ok ? json_dumpb(o, text, size, JSON_COMPACT) : 0;
	json_decref(o);
	if (!ok || len == 0)
		return -ENOMEM;
	if (len >= size)
		return -EMSGSIZE;
	text[len] = '\0';
	return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Required text of 1 .. size - 1 bytes; optional: absent and null leave it empty. */
static bool
get_text(const json_t *o, const char *key, char *out, size_t size, bool required)
{
	const json_t *v = json_object_get(o, key);
	size_t len;

	out[0] = '\0';
	if (v == NULL || json_is_null(v))
		return !required;
	len = json_string_length(v);
	if (!json_is_string(v) || len >= size || (required && len == 0) || strlen(json_string_value(v)) != len)
		return false;
	memcpy(out, json_string_value(v), len + 1);
	return true;
}

/* Milliseconds. The bound keeps every sum with a configured time from wrapping. */
static bool
get_number(const json_t *o, const char *key, uint64_t *out, uint64_t max, bool *present)
{
	const json_t *v = json_object_get(o, key);

	*out = 0;
	if (present)
		*present = v != NULL && !json_is_null(v);
	if (v == NULL || json_is_null(v))
		return present != NULL;
	if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

static bool
get_npub(const json_t *o, const char *key, uint8_t xonly[SL_XONLY_BYTES])
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL && sl_npub_parse(xonly, text) == 0;
}

/* Of form {protocol, ip, port}. False: no such object. An address that cannot be read, or is not UDP, has kind NONE. */
static bool
get_address(const json_t *v, struct sl_addr *a)
{
	const char *ip = json_string_value(json_object_get(v, "ip"));
	const char *protocol = json_string_value(json_object_get(v, "protocol"));
	const json_t *port = json_object_get(v, "port");
	char text[SL_ADDR_TEXT_SIZE];

	memset(a, 0, sizeof(*a));
	if (!json_is_object(v) || ip == NULL || protocol == NULL || !json_is_integer(port) || json_integer_value(port) < 0 ||
		json_integer_value(port) > UINT16_MAX)
		return false;
	if (strcmp(protocol, "udp") != 0 || strlen(ip) > 45)
		return true;
	snprintf(text, sizeof(text), strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip, (unsigned)json_integer_value(port));
	if (sl_addr_parse_udp(a, text) != 0)
		memset(a, 0, sizeof(*a));
	return true;
}

static bool
get_side(const json_t *o, struct sl_nat_signal *s)
{
	const json_t *reflexive = json_object_get(o, "reflexiveAddress"), *list = json_object_get(o, "localAddresses"), *v;
	struct sl_addr a;
	size_t i;

	if (reflexive && !json_is_null(reflexive) && !get_address(reflexive, &s->side.reflexive))
		return false;
	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, v)
	{
		if (!get_address(v, &a))
			return false;
		if (a.kind != SL_ADDR_NONE && s->side.local_count < SL_PUNCH_CANDIDATES_MAX)
			s->side.local[s->side.local_count++] = a;
	}
	return get_text(o, "stunServer", s->stun_server, sizeof(s->stun_server), false);
}

#define MS_MAX 253402300799999u /* end of the year 9999 */

static bool
get_punch(const json_t *o, struct sl_nat_signal *s)
{
	const json_t *v = json_object_get(o, "punch");
	uint64_t interval, duration;

	if (v == NULL || json_is_null(v))
		return true;
	s->has_punch = true;
	if (!json_is_object(v) || !get_number(v, "startAtMs", &s->punch_start_ms, MS_MAX, NULL) ||
		!get_number(v, "intervalMs", &interval, UINT32_MAX, NULL) ||
		!get_number(v, "durationMs", &duration, UINT32_MAX, NULL))
		return false;
	s->punch_interval_ms = (uint32_t)interval;
	s->punch_duration_ms = (uint32_t)duration;
	return true;
}

static bool
get_answer(const json_t *o, struct sl_nat_signal *s)
{
	const json_t *accepted = json_object_get(o, "accepted");

	s->accepted = json_is_true(accepted);
	return json_is_boolean(accepted) && get_text(o, "inReplyTo", s->in_reply_to, sizeof(s->in_reply_to), true) &&
	       get_punch(o, s) && get_text(o, "reason", s->reason, sizeof(s->reason), false) &&
	       get_number(o, "offerReceivedAt", &s->received_ms, MS_MAX, &s->has_received);
}

static enum sl_nat_signal_error
get_signal(const json_t *o, struct sl_nat_signal *s)
{
	const char *type = json_string_value(json_object_get(o, "type"));

	if (!json_is_object(o) || type == NULL)
		return SL_NAT_SIGNAL_MALFORMED;
	if (strcmp(type, "offer") == 0)
		s->kind = SL_NAT_SIGNAL_OFFER;
	else if (strcmp(type, "answer") == 0)
		s->kind = SL_NAT_SIGNAL_ANSWER;
	else
		return SL_NAT_SIGNAL_TYPE;
	if (!get_text(o, "sessionId", s->session_id, sizeof(s->session_id), true) ||
		!get_text(o, "nonce", s->nonce, sizeof(s->nonce), true) ||
		!get_number(o, "issuedAt", &s->issued_ms, MS_MAX, NULL) ||
		!get_number(o, "expiresAt", &s->expires_ms, MS_MAX, NULL) || !get_npub(o, "senderNpub", s->sender) ||
		!get_npub(o, "recipientNpub", s->recipient) || !get_side(o, s))
		return SL_NAT_SIGNAL_MALFORMED;
	return s->kind == SL_NAT_SIGNAL_OFFER || get_answer(o, s) ? SL_NAT_SIGNAL_OK : SL_NAT_SIGNAL_MALFORMED;
}

enum sl_nat_signal_error
sl_nat_signal_parse(struct sl_nat_signal *s, const char *text, size_t len)
{
	enum sl_nat_signal_error e;
	json_error_t error;
	json_t *o;

	memset(s, 0, sizeof(*s));
	if (len > SL_NAT_SIGNAL_TEXT_MAX)
		return SL_NAT_SIGNAL_MALFORMED;
	o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	e = o ? get_signal(o, s) : SL_NAT_SIGNAL_MALFORMED;
	json_decref(o);
	return e;
}

/* --- checks ----------------------------------------------------------------------------------- */

enum freshness { FRESH, EXPIRED, FUTURE };

/* The sender may shorten its own time, not widen ours. */
static enum freshness
freshness(const struct sl_nat_signal *s, uint64_t now_ms, uint64_t ttl_ms)
{
	const uint64_t most = s->issued_ms + ttl_ms, until = s->expires_ms < most ? s->expires_ms : most;

	if (s->issued_ms > now_ms + SL_NAT_SIGNAL_SKEW_MS)
		return FUTURE;
	return now_ms >= until + SL_NAT_SIGNAL_SKEW_MS ? EXPIRED : FRESH;
}

static bool
same_key(const uint8_t a[SL_XONLY_BYTES], const uint8_t b[SL_XONLY_BYTES])
{
	return memcmp(a, b, SL_XONLY_BYTES) == 0;
}

enum sl_nat_signal_error
sl_nat_signal_offer_check(const struct sl_nat_signal *offer, const uint8_t author[SL_XONLY_BYTES],
	const uint8_t self[SL_XONLY_BYTES], uint64_t now_ms, uint64_t ttl_ms)
{
	if (offer->kind != SL_NAT_SIGNAL_OFFER)
		return SL_NAT_SIGNAL_TYPE;
	switch (freshness(offer, now_ms, ttl_ms)) {
	case EXPIRED:
		return SL_NAT_SIGNAL_EXPIRED_OFFER;
	case FUTURE:
		return SL_NAT_SIGNAL_FUTURE_OFFER;
	case FRESH:
		break;
	}
	return same_key(offer->sender, author) && same_key(offer->recipient, self) ? SL_NAT_SIGNAL_OK : SL_NAT_SIGNAL_IDENTITY;
}

enum sl_nat_signal_error
sl_nat_signal_answer_check(const struct sl_nat_signal *offer, const struct sl_nat_signal *answer,
	const uint8_t author[SL_XONLY_BYTES], const uint8_t self[SL_XONLY_BYTES], uint64_t now_ms, uint64_t ttl_ms)
{
	static const enum sl_nat_signal_error own[] = {[EXPIRED] = SL_NAT_SIGNAL_EXPIRED_OWN, [FUTURE] = SL_NAT_SIGNAL_FUTURE_OWN};
	static const enum sl_nat_signal_error theirs[] = {
		[EXPIRED] = SL_NAT_SIGNAL_EXPIRED_ANSWER, [FUTURE] = SL_NAT_SIGNAL_FUTURE_ANSWER};
	enum freshness f;

	if (answer->kind != SL_NAT_SIGNAL_ANSWER)
		return SL_NAT_SIGNAL_TYPE;
	f = freshness(offer, now_ms, ttl_ms);
	if (f != FRESH)
		return own[f];
	f = freshness(answer, now_ms, ttl_ms);
	if (f != FRESH)
		return theirs[f];
	if (strcmp(offer->session_id, answer->session_id) != 0 || strcmp(answer->in_reply_to, offer->nonce) != 0)
		return SL_NAT_SIGNAL_SESSION;
	if (!same_key(offer->sender, self) || !same_key(offer->recipient, author) || !same_key(answer->sender, author) ||
		!same_key(answer->recipient, self))
		return SL_NAT_SIGNAL_IDENTITY;
	if (answer->accepted && answer->side.reflexive.kind == SL_ADDR_NONE && answer->side.local_count == 0)
		return SL_NAT_SIGNAL_NO_ADDRESSES;
	return !answer->accepted && answer->reason[0] == '\0' ? SL_NAT_SIGNAL_NO_REASON : SL_NAT_SIGNAL_OK;
}

bool
sl_nat_signal_skew(int64_t *skew_ms, const struct sl_nat_signal *offer, const struct sl_nat_signal *answer, uint64_t now_ms)
{
	if (!answer->has_received)
		return false;
	*skew_ms = (((int64_t)answer->received_ms - (int64_t)offer->issued_ms) +
			   ((int64_t)answer->issued_ms - (int64_t)now_ms)) / 2;
	return true;
}
