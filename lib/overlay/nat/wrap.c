/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_wrap.h"
#include "../../crypto/sl_nip44.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
sl_wrap_error_name(enum sl_wrap_error e)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_WRAP_ERRORS(NAME)
#undef NAME
	};
	return names[e];
}

/* --- out -------------------------------------------------------------------------------------- */

/* text under the two keys' conversation key, malloc'd. NULL and errno. */
static char *
sealed(const uint8_t secret[SL_SECRET_BYTES], const uint8_t recipient[SL_XONLY_BYTES], const char *text, size_t len)
{
	uint8_t key[SL_NIP44_KEY_BYTES];
	char *payload = NULL;
	size_t room;
	int rc = sl_nip44_conversation_key(key, secret, recipient);

	if (rc == 0 && len > SL_NIP44_TEXT_MAX)
		rc = -EINVAL;
	if (rc == 0) {
		room = sl_nip44_payload_len((uint32_t)len) + 1u;
		payload = malloc(room);
		rc = payload ? sl_nip44_encrypt(payload, room, key, text, len, NULL) : -ENOMEM;
	}
	sl_wipe(key, sizeof(key));
	if (rc == 0)
		return payload;
	free(payload);
	errno = -rc;
	return NULL;
}

/* The event as JSON, encrypted; nothing of the plain text stays. */
static char *
sealed_event(const struct sl_nostr_event *e, const struct sl_identity *by, const uint8_t recipient[SL_XONLY_BYTES])
{
	size_t len;
	char *json = sl_nostr_event_format(e, &len), *payload;

	if (json == NULL)
		return NULL;
	payload = sealed(sl_identity_secret(by), recipient, json, len);
	sl_wipe(json, len);
	free(json);
	return payload;
}

/* Sender's seal of the text, as the payload that the wrap carries. */
static char *
seal_for(const struct sl_identity *sender, const struct sl_identity *ephemeral, const uint8_t recipient[SL_XONLY_BYTES],
	const struct sl_nostr_tag *p, const char *text, uint64_t now_unix_s)
{
	struct sl_nostr_event rumor = {.kind = SL_KIND_RUMOR, .created_at = now_unix_s, .tags = p, .tag_count = 1,
		.content = text};
	struct sl_nostr_event seal = {.kind = SL_KIND_SEAL};
	char *inner, *outer = NULL;
	uint64_t back = sl_random_below(SL_WRAP_BACKDATE_S + 1);

	if (sl_nostr_event_name(&rumor, sl_identity_xonly(sender)) != 0)
		return NULL;
	inner = sealed_event(&rumor, sender, recipient);
	if (inner == NULL)
		return NULL;
	seal.created_at = now_unix_s > back ? now_unix_s - back : now_unix_s;
	seal.content = inner;
	if (sl_nostr_event_sign(&seal, sender) == 0)
		outer = sealed_event(&seal, ephemeral, recipient);
	free(inner);
	return outer;
}

int
sl_wrap_build(struct sl_wrap *w, const struct sl_identity *sender, const uint8_t recipient[SL_XONLY_BYTES],
	const char *text, uint64_t now_unix_s, uint64_t ttl_s)
{
	struct sl_identity *ephemeral;
	struct sl_remote_key key;
	const size_t len = strlen(text);
	int rc;

	memset(w, 0, sizeof(*w));
	if (len == 0 || len > SL_WRAP_TEXT_MAX || sl_remote_key_init(&key, recipient, NULL) != 0)
		return -EINVAL;
	sl_remote_key_fini(&key);
	ephemeral = sl_identity_generate();
	if (ephemeral == NULL)
		return -ENOMEM;
	sl_hex_format(w->recipient, recipient, SL_XONLY_BYTES);
	snprintf(w->expiration, sizeof(w->expiration), "%llu", (unsigned long long)(now_unix_s + ttl_s));
	w->values[0] = "p";
	w->values[1] = w->recipient;
	w->values[2] = "expiration";
	w->values[3] = w->expiration;
	w->tags[0] = (struct sl_nostr_tag){.values = w->values, .count = 2};
	w->tags[1] = (struct sl_nostr_tag){.values = w->values + 2, .count = 2};
	w->content = seal_for(sender, ephemeral, recipient, &w->tags[0], text, now_unix_s);
	rc = w->content ? 0 : -ENOMEM;
	if (rc == 0) {
		w->event.kind = SL_KIND_WRAP;
		w->event.created_at = now_unix_s;
		w->event.tags = w->tags;
		w->event.tag_count = 2;
		w->event.content = w->content;
		rc = sl_nostr_event_sign(&w->event, ephemeral);
	}
	sl_identity_destroy(ephemeral);
	if (rc != 0)
		sl_wrap_fini(w);
	return rc;
}

void
sl_wrap_fini(struct sl_wrap *w)
{
	free(w->content);
	memset(w, 0, sizeof(*w));
}

/* --- in --------------------------------------------------------------------------------------- */

/* Decrypts the content of e, an event inside it. bad: cipher not readable, form: no event in it. */
static enum sl_wrap_error
opened(struct sl_nostr_event *inner, const struct sl_nostr_event *e, const struct sl_identity *self, unsigned flags,
	enum sl_wrap_error bad, enum sl_wrap_error form)
{
	uint8_t key[SL_NIP44_KEY_BYTES], *work;
	enum sl_nostr_error parsed;
	int len;

	if (e->content_len > SL_NIP44_PAYLOAD_MAX ||
		sl_nip44_conversation_key(key, sl_identity_secret(self), e->pubkey) != 0)
		return bad;
	work = malloc(e->content_len + 1);
	if (work == NULL) {
		sl_wipe(key, sizeof(key));
		return SL_WRAP_NO_MEMORY;
	}
	len = sl_nip44_decrypt(work, e->content_len + 1, key, e->content, e->content_len);
	sl_wipe(key, sizeof(key));
	parsed = len >= 0 ? sl_nostr_event_parse(inner, (const char *)work, (size_t)len, flags) : SL_NOSTR_NOT_JSON;
	sl_wipe(work, e->content_len + 1);
	free(work);
	if (len < 0)
		return bad;
	return parsed == SL_NOSTR_OK ? SL_WRAP_OK : parsed == SL_NOSTR_NO_MEMORY ? SL_WRAP_NO_MEMORY : form;
}

/* A p tag, where there is one, names us. */
static bool
is_for(const struct sl_nostr_event *e, const struct sl_identity *self, bool required)
{
	const char *p = sl_nostr_event_tag(e, "p");
	uint8_t key[SL_XONLY_BYTES];

	if (p == NULL)
		return !required;
	return sl_hex_parse(key, sizeof(key), p) == 0 && memcmp(key, sl_identity_xonly(self), sizeof(key)) == 0;
}

static enum sl_wrap_error
rumor_check(const struct sl_nostr_event *rumor, const struct sl_nostr_event *seal, uint32_t kind,
	const struct sl_identity *self, size_t size)
{
	if (rumor->kind != kind)
		return SL_WRAP_RUMOR_FORM;
	if (memcmp(rumor->pubkey, seal->pubkey, SL_XONLY_BYTES) != 0 || sl_nostr_event_check_id(rumor) != SL_NOSTR_OK)
		return SL_WRAP_RUMOR_FORGED;
	if (!is_for(rumor, self, false))
		return SL_WRAP_RECIPIENT;
	return rumor->content_len >= size ? SL_WRAP_TOO_LONG : SL_WRAP_OK;
}

enum sl_wrap_error
sl_wrap_open_kinds(const struct sl_nostr_event *wrap, uint32_t wrap_kind, uint32_t rumor_kind,
	const struct sl_identity *self, uint8_t author[SL_XONLY_BYTES], char *text, size_t size)
{
	struct sl_nostr_event seal, rumor;
	enum sl_wrap_error e;

	if (wrap->kind != wrap_kind)
		return SL_WRAP_KIND;
	if (!is_for(wrap, self, true))
		return SL_WRAP_RECIPIENT;
	memset(&rumor, 0, sizeof(rumor));
	e = opened(&seal, wrap, self, 0, SL_WRAP_WRAP_CIPHER, SL_WRAP_SEAL_FORM);
	if (e != SL_WRAP_OK)
		return e;
	if (seal.kind != SL_KIND_SEAL)
		e = SL_WRAP_SEAL_FORM;
	else if (sl_nostr_event_verify(&seal) != SL_NOSTR_OK)
		e = SL_WRAP_SEAL_FORGED;
	else
		e = opened(&rumor, &seal, self, SL_NOSTR_UNSIGNED, SL_WRAP_SEAL_CIPHER, SL_WRAP_RUMOR_FORM);
	if (e == SL_WRAP_OK)
		e = rumor_check(&rumor, &seal, rumor_kind, self, size);
	if (e == SL_WRAP_OK) {
		memcpy(author, seal.pubkey, SL_XONLY_BYTES);
		memcpy(text, rumor.content, rumor.content_len + 1);
	}
	sl_nostr_event_fini(&rumor);
	sl_nostr_event_fini(&seal);
	return e;
}

enum sl_wrap_error
sl_wrap_open(const struct sl_nostr_event *wrap, const struct sl_identity *self, uint8_t author[SL_XONLY_BYTES],
	char *text, size_t size)
{
	return sl_wrap_open_kinds(wrap, SL_KIND_WRAP, SL_KIND_RUMOR, self, author, text, size);
}
