/* SPDX-License-Identifier: BSD-3-Clause */
#include "nostr_json.h"

#include "../../crypto/sl_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *
sl_nostr_error_name(enum sl_nostr_error e)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_NOSTR_ERRORS(NAME)
#undef NAME
	};
	return (unsigned)e < SL_NOSTR_ERROR_COUNT ? names[e] : "?";
}

/* --- in --- */

static enum sl_nostr_error
read_hex(uint8_t *out, size_t len, const json_t *v)
{
	if (!v)
		return SL_NOSTR_FIELD_MISSING;
	if (!json_is_string(v))
		return SL_NOSTR_FIELD_TYPE;
	return sl_hex_parse(out, len, json_string_value(v)) ? SL_NOSTR_BAD_HEX : SL_NOSTR_OK;
}

/* above: what a number over max is called. */
static enum sl_nostr_error
read_uint(uint64_t *out, uint64_t max, enum sl_nostr_error above, const json_t *v)
{
	if (!v)
		return SL_NOSTR_FIELD_MISSING;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return SL_NOSTR_FIELD_TYPE;
	if ((uint64_t)json_integer_value(v) > max)
		return above;
	*out = (uint64_t)json_integer_value(v);
	return SL_NOSTR_OK;
}

/* What the tags and the content take in one piece of memory, their form checked on the way. */
static enum sl_nostr_error
measure(const json_t *tags, const json_t *content, size_t *values, size_t *bytes)
{
	size_t i, k;
	const json_t *tag, *value;

	if (!tags || !content)
		return SL_NOSTR_FIELD_MISSING;
	if (!json_is_array(tags) || !json_is_string(content))
		return SL_NOSTR_FIELD_TYPE;
	if (json_array_size(tags) > SL_NOSTR_TAGS_MAX)
		return SL_NOSTR_TOO_MANY_TAGS;
	*values = 0;
	*bytes = json_string_length(content) + 1;
	json_array_foreach(tags, i, tag)
	{
		if (!json_is_array(tag) || !json_array_size(tag))
			return SL_NOSTR_FIELD_TYPE;
		if (json_array_size(tag) > SL_NOSTR_TAG_VALUES_MAX)
			return SL_NOSTR_TOO_MANY_TAGS;
		*values += json_array_size(tag);
		json_array_foreach(tag, k, value)
		{
			if (!json_is_string(value))
				return SL_NOSTR_FIELD_TYPE;
			*bytes += json_string_length(value) + 1;
		}
	}
	return SL_NOSTR_OK;
}

static char *
copy_text(char **at, const json_t *v)
{
	char *text = *at;

	memcpy(text, json_string_value(v), json_string_length(v) + 1);
	*at += json_string_length(v) + 1;
	return text;
}

static enum sl_nostr_error
read_texts(struct sl_nostr_event *e, const json_t *tags, const json_t *content)
{
	size_t value_count, bytes, i, k;
	enum sl_nostr_error rc = measure(tags, content, &value_count, &bytes);
	struct sl_nostr_tag *tag;
	const char **value;
	char *text;
	const json_t *t, *v;

	if (rc)
		return rc;
	e->tag_count = (uint32_t)json_array_size(tags);
	e->storage_len = e->tag_count * sizeof(*tag) + value_count * sizeof(*value) + bytes;
	e->storage = malloc(e->storage_len);
	if (!e->storage)
		return SL_NOSTR_NO_MEMORY;
	tag = e->storage;
	value = (const char **)(void *)(tag + e->tag_count);
	text = (char *)(value + value_count);
	e->tags = tag;
	json_array_foreach(tags, i, t)
	{
		tag->values = value;
		tag->count = (uint32_t)json_array_size(t);
		json_array_foreach(t, k, v) *value++ = copy_text(&text, v);
		tag++;
	}
	e->content = copy_text(&text, content);
	e->content_len = json_string_length(content);
	return SL_NOSTR_OK;
}

static int hash_of(const struct sl_nostr_event *e, uint8_t id[SL_NOSTR_ID_BYTES]);

enum sl_nostr_error
sl_nostr_event_from_json(struct sl_nostr_event *e, const json_t *o, unsigned flags)
{
	const json_t *id, *sig;
	enum sl_nostr_error rc;
	uint64_t kind = 0;

	memset(e, 0, sizeof(*e));
	if (!json_is_object(o))
		return SL_NOSTR_NOT_OBJECT;
	id = json_object_get(o, "id");
	sig = json_object_get(o, "sig");
	rc = read_hex(e->pubkey, sizeof(e->pubkey), json_object_get(o, "pubkey"));
	if (!rc && !(!id && (flags & SL_NOSTR_UNSIGNED)))
		rc = read_hex(e->id, sizeof(e->id), id);
	if (!rc && !(!sig && (flags & SL_NOSTR_UNSIGNED))) {
		rc = read_hex(e->sig, sizeof(e->sig), sig);
		e->has_sig = true;
	}
	if (!rc)
		rc = read_uint(&e->created_at, SL_NOSTR_TIME_MAX, SL_NOSTR_FUTURE, json_object_get(o, "created_at"));
	if (!rc)
		rc = read_uint(&kind, UINT16_MAX, SL_NOSTR_FIELD_TYPE, json_object_get(o, "kind"));
	e->kind = (uint32_t)kind;
	if (!rc)
		rc = read_texts(e, json_object_get(o, "tags"), json_object_get(o, "content"));
	if (!rc && !id && hash_of(e, e->id))
		rc = SL_NOSTR_NO_MEMORY;
	if (rc)
		sl_nostr_event_fini(e);
	return rc;
}

enum sl_nostr_error
sl_nostr_event_parse(struct sl_nostr_event *e, const char *text, size_t len, unsigned flags)
{
	enum sl_nostr_error rc;
	json_t *root;

	memset(e, 0, sizeof(*e));
	rc = sl_nostr_json_parse(&root, text, len);
	if (rc)
		return rc;
	rc = sl_nostr_event_from_json(e, root, flags);
	json_decref(root);
	return rc;
}

void
sl_nostr_event_fini(struct sl_nostr_event *e)
{
	if (e->storage) {
		sl_wipe(e->storage, e->storage_len);
		free(e->storage);
	}
	memset(e, 0, sizeof(*e));
}

/* --- out --- */

static void
put_tags(struct sl_nostr_text *t, const struct sl_nostr_event *e)
{
	sl_nostr_text_puts(t, "[");
	for (uint32_t i = 0; i < e->tag_count; i++) {
		sl_nostr_text_puts(t, i ? ",[" : "[");
		for (uint32_t k = 0; k < e->tags[i].count; k++) {
			if (k)
				sl_nostr_text_puts(t, ",");
			sl_nostr_text_string(t, e->tags[i].values[k]);
		}
		sl_nostr_text_puts(t, "]");
	}
	sl_nostr_text_puts(t, "]");
}

char *
sl_nostr_event_serialise(const struct sl_nostr_event *e, size_t *len)
{
	struct sl_nostr_text t = {0};

	sl_nostr_text_puts(&t, "[0,");
	sl_nostr_text_hex(&t, e->pubkey, sizeof(e->pubkey));
	sl_nostr_text_puts(&t, ",");
	sl_nostr_text_u64(&t, e->created_at);
	sl_nostr_text_puts(&t, ",");
	sl_nostr_text_u64(&t, e->kind);
	sl_nostr_text_puts(&t, ",");
	put_tags(&t, e);
	sl_nostr_text_puts(&t, ",");
	sl_nostr_text_string(&t, e->content ? e->content : "");
	sl_nostr_text_puts(&t, "]");
	return sl_nostr_text_take(&t, len);
}

void
sl_nostr_text_event(struct sl_nostr_text *t, const struct sl_nostr_event *e)
{
	sl_nostr_text_puts(t, "{\"id\":");
	sl_nostr_text_hex(t, e->id, sizeof(e->id));
	sl_nostr_text_puts(t, ",\"pubkey\":");
	sl_nostr_text_hex(t, e->pubkey, sizeof(e->pubkey));
	sl_nostr_text_puts(t, ",\"created_at\":");
	sl_nostr_text_u64(t, e->created_at);
	sl_nostr_text_puts(t, ",\"kind\":");
	sl_nostr_text_u64(t, e->kind);
	sl_nostr_text_puts(t, ",\"tags\":");
	put_tags(t, e);
	sl_nostr_text_puts(t, ",\"content\":");
	sl_nostr_text_string(t, e->content ? e->content : "");
	if (e->has_sig) {
		sl_nostr_text_puts(t, ",\"sig\":");
		sl_nostr_text_hex(t, e->sig, sizeof(e->sig));
	}
	sl_nostr_text_puts(t, "}");
}

char *
sl_nostr_event_format(const struct sl_nostr_event *e, size_t *len)
{
	struct sl_nostr_text t = {0};

	sl_nostr_text_event(&t, e);
	return sl_nostr_text_take(&t, len);
}

static int
hash_of(const struct sl_nostr_event *e, uint8_t id[SL_NOSTR_ID_BYTES])
{
	size_t len;
	char *text = sl_nostr_event_serialise(e, &len);

	if (!text)
		return -errno;
	sl_sha256(id, text, len);
	sl_wipe(text, len);
	free(text);
	return 0;
}

int
sl_nostr_event_name(struct sl_nostr_event *e, const uint8_t pubkey[SL_XONLY_BYTES])
{
	memmove(e->pubkey, pubkey, SL_XONLY_BYTES);
	e->has_sig = false;
	if (!e->content)
		e->content = "";
	e->content_len = strlen(e->content);
	return hash_of(e, e->id);
}

int
sl_nostr_event_sign(struct sl_nostr_event *e, const struct sl_identity *id)
{
	int rc = sl_nostr_event_name(e, sl_identity_xonly(id));

	if (rc)
		return rc;
	sl_sign(e->sig, e->id, id);
	e->has_sig = true;
	return 0;
}

/* --- checks --- */

enum sl_nostr_error
sl_nostr_event_check_id(const struct sl_nostr_event *e)
{
	uint8_t id[SL_NOSTR_ID_BYTES];
	int rc = hash_of(e, id);

	if (rc)
		return rc == -ENOMEM ? SL_NOSTR_NO_MEMORY : SL_NOSTR_TOO_LONG;
	return memcmp(id, e->id, sizeof(id)) ? SL_NOSTR_BAD_ID : SL_NOSTR_OK;
}

enum sl_nostr_error
sl_nostr_event_check_sig(const struct sl_nostr_event *e)
{
	return e->has_sig && sl_verify(e->sig, e->id, e->pubkey) ? SL_NOSTR_OK : SL_NOSTR_BAD_SIGNATURE;
}

enum sl_nostr_error
sl_nostr_event_verify(const struct sl_nostr_event *e)
{
	enum sl_nostr_error rc = sl_nostr_event_check_id(e);

	return rc ? rc : sl_nostr_event_check_sig(e);
}

static const struct sl_nostr_tag *
find_tag(const struct sl_nostr_event *e, const char *name)
{
	for (uint32_t i = 0; i < e->tag_count; i++)
		if (e->tags[i].count && !strcmp(e->tags[i].values[0], name))
			return &e->tags[i];
	return NULL;
}

const char *
sl_nostr_event_tag(const struct sl_nostr_event *e, const char *name)
{
	const struct sl_nostr_tag *t = find_tag(e, name);

	return t && t->count > 1 ? t->values[1] : NULL;
}

int
sl_nostr_event_expiration(const struct sl_nostr_event *e, uint64_t *unix_s)
{
	const struct sl_nostr_tag *t = find_tag(e, "expiration");
	uint64_t v = 0;

	if (!t)
		return -ENOENT;
	if (t->count < 2 || !t->values[1][0])
		return -EINVAL;
	for (const char *p = t->values[1]; *p; p++) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > SL_NOSTR_TIME_MAX)
			return -EINVAL;
	}
	*unix_s = v;
	return 0;
}

enum sl_nostr_error
sl_nostr_event_clock(const struct sl_nostr_event *e, uint64_t now, uint64_t past_s, uint64_t future_s)
{
	uint64_t until;
	int rc = sl_nostr_event_expiration(e, &until);

	if (rc == -EINVAL || (rc == 0 && until <= now))
		return SL_NOSTR_EXPIRED;
	if (e->created_at > now && e->created_at - now > future_s)
		return SL_NOSTR_FUTURE;
	if (past_s && e->created_at < now && now - e->created_at > past_s)
		return SL_NOSTR_TOO_OLD;
	return SL_NOSTR_OK;
}
