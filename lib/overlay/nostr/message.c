/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_nostr_message.h"
#include "nostr_json.h"
#include "../sl_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND_AUTH 22242u

/* --- in --- */

/* A relay's words go to logs and terminals. */
static void
read_reason(char out[SL_NOSTR_REASON_SIZE], const json_t *v)
{
	snprintf(out, SL_NOSTR_REASON_SIZE, "%s", json_is_string(v) ? json_string_value(v) : "");
	sl_text_clean(out);
}

static enum sl_nostr_error
read_sub(struct sl_nostr_message *m, const json_t *v)
{
	if (!v)
		return SL_NOSTR_FIELD_MISSING;
	/* A longer one is none of ours, and is told apart from a missing one by being empty. */
	if (!json_is_string(v))
		return SL_NOSTR_FIELD_TYPE;
	if (json_string_length(v) <= SL_NOSTR_SUB_ID_MAX)
		memcpy(m->sub, json_string_value(v), json_string_length(v) + 1);
	return SL_NOSTR_OK;
}

static enum sl_nostr_error
read_event(struct sl_nostr_message *m, const json_t *a)
{
	enum sl_nostr_error rc = read_sub(m, json_array_get(a, 1));

	if (!rc && !json_array_get(a, 2))
		rc = SL_NOSTR_FIELD_MISSING;
	return rc ? rc : sl_nostr_event_from_json(&m->event, json_array_get(a, 2), 0);
}

static enum sl_nostr_error
read_ok(struct sl_nostr_message *m, const json_t *a)
{
	const json_t *id = json_array_get(a, 1), *ok = json_array_get(a, 2);

	if (!id || !ok)
		return SL_NOSTR_FIELD_MISSING;
	if (!json_is_string(id) || !json_is_boolean(ok))
		return SL_NOSTR_FIELD_TYPE;
	if (sl_hex_parse(m->id, sizeof(m->id), json_string_value(id)))
		return SL_NOSTR_BAD_HEX;
	m->ok = json_is_true(ok);
	read_reason(m->reason, json_array_get(a, 3));
	return SL_NOSTR_OK;
}

static enum sl_nostr_error
read_auth(struct sl_nostr_message *m, const json_t *a)
{
	const json_t *v = json_array_get(a, 1);

	if (!v)
		return SL_NOSTR_FIELD_MISSING;
	if (!json_is_string(v))
		return SL_NOSTR_FIELD_TYPE;
	if (json_string_length(v) >= sizeof(m->challenge))
		return SL_NOSTR_TOO_LONG;
	memcpy(m->challenge, json_string_value(v), json_string_length(v) + 1);
	return SL_NOSTR_OK;
}

static enum sl_nostr_error
read_message(struct sl_nostr_message *m, const json_t *a)
{
	static const struct {
		const char *name;
		enum sl_nostr_message_type type;
	} types[] = {{"EVENT", SL_NOSTR_MSG_EVENT}, {"EOSE", SL_NOSTR_MSG_EOSE}, {"OK", SL_NOSTR_MSG_OK},
		{"NOTICE", SL_NOSTR_MSG_NOTICE}, {"CLOSED", SL_NOSTR_MSG_CLOSED}, {"AUTH", SL_NOSTR_MSG_AUTH}};
	const char *name = json_string_value(json_array_get(a, 0));
	enum sl_nostr_error rc;

	if (!json_is_array(a))
		return SL_NOSTR_NOT_OBJECT;
	if (!name)
		return json_array_size(a) ? SL_NOSTR_FIELD_TYPE : SL_NOSTR_FIELD_MISSING;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			m->type = types[i].type;
	switch (m->type) {
	case SL_NOSTR_MSG_EVENT:
		return read_event(m, a);
	case SL_NOSTR_MSG_EOSE:
		return read_sub(m, json_array_get(a, 1));
	case SL_NOSTR_MSG_OK:
		return read_ok(m, a);
	case SL_NOSTR_MSG_NOTICE:
		read_reason(m->reason, json_array_get(a, 1));
		return SL_NOSTR_OK;
	case SL_NOSTR_MSG_CLOSED:
		rc = read_sub(m, json_array_get(a, 1));
		read_reason(m->reason, json_array_get(a, 2));
		return rc;
	case SL_NOSTR_MSG_AUTH:
		return read_auth(m, a);
	default:
		return SL_NOSTR_OK;
	}
}

enum sl_nostr_error
sl_nostr_message_parse(struct sl_nostr_message *m, const char *text, size_t len)
{
	enum sl_nostr_error rc;
	json_t *root;

	memset(m, 0, sizeof(*m));
	rc = sl_nostr_json_parse(&root, text, len);
	if (rc)
		return rc;
	rc = read_message(m, root);
	json_decref(root);
	return rc;
}

void
sl_nostr_message_fini(struct sl_nostr_message *m)
{
	sl_nostr_event_fini(&m->event);
}

/* --- filters --- */

static bool
has_tag_value(const struct sl_nostr_event *e, const char *name, const char *value)
{
	for (uint32_t i = 0; i < e->tag_count; i++)
		if (e->tags[i].count > 1 && !strcmp(e->tags[i].values[0], name) && !strcmp(e->tags[i].values[1], value))
			return true;
	return false;
}

bool
sl_nostr_filter_matches(const struct sl_nostr_filter *f, const struct sl_nostr_event *e)
{
	char hex[2 * SL_XONLY_BYTES + 1];
	bool found = !f->kind_count;

	for (unsigned i = 0; i < f->kind_count; i++)
		found = found || f->kinds[i] == e->kind;
	if (!found)
		return false;
	found = !f->author_count;
	for (unsigned i = 0; !found && i < f->author_count; i++)
		found = !memcmp(f->authors + i * (size_t)SL_XONLY_BYTES, e->pubkey, SL_XONLY_BYTES);
	if (!found || (f->d && !has_tag_value(e, "d", f->d)))
		return false;
	if (!f->p)
		return true;
	sl_hex_format(hex, f->p, SL_XONLY_BYTES);
	return has_tag_value(e, "p", hex);
}

/* --- out --- */

static void
put_filter(struct sl_nostr_text *t, const struct sl_nostr_filter *f)
{
	const char *comma = "";

	sl_nostr_text_puts(t, "{");
	for (unsigned i = 0; i < f->author_count; i++) {
		sl_nostr_text_puts(t, i ? "," : "\"authors\":[");
		sl_nostr_text_hex(t, f->authors + i * (size_t)SL_XONLY_BYTES, SL_XONLY_BYTES);
		comma = "],";
	}
	for (unsigned i = 0; i < f->kind_count; i++) {
		if (!i)
			sl_nostr_text_puts(t, comma);
		sl_nostr_text_puts(t, i ? "," : "\"kinds\":[");
		sl_nostr_text_u64(t, f->kinds[i]);
		comma = "],";
	}
	if (f->d) {
		sl_nostr_text_puts(t, comma);
		sl_nostr_text_puts(t, "\"#d\":[");
		sl_nostr_text_string(t, f->d);
		comma = "],";
	}
	if (f->p) {
		sl_nostr_text_puts(t, comma);
		sl_nostr_text_puts(t, "\"#p\":[");
		sl_nostr_text_hex(t, f->p, SL_XONLY_BYTES);
		comma = "],";
	}
	if (*comma)
		sl_nostr_text_puts(t, "]");
	comma = *comma ? "," : "";
	if (f->since) {
		sl_nostr_text_puts(t, comma);
		sl_nostr_text_puts(t, "\"since\":");
		sl_nostr_text_u64(t, f->since);
		comma = ",";
	}
	if (f->limit >= 0) {
		sl_nostr_text_puts(t, comma);
		sl_nostr_text_puts(t, "\"limit\":");
		sl_nostr_text_u64(t, (uint64_t)f->limit);
	}
	sl_nostr_text_puts(t, "}");
}

char *
sl_nostr_build_req(const char *sub, const struct sl_nostr_filter *f, size_t *len)
{
	struct sl_nostr_text t = {0};

	sl_nostr_text_puts(&t, "[\"REQ\",");
	sl_nostr_text_string(&t, sub);
	sl_nostr_text_puts(&t, ",");
	put_filter(&t, f);
	sl_nostr_text_puts(&t, "]");
	return sl_nostr_text_take(&t, len);
}

char *
sl_nostr_build_close(const char *sub, size_t *len)
{
	struct sl_nostr_text t = {0};

	sl_nostr_text_puts(&t, "[\"CLOSE\",");
	sl_nostr_text_string(&t, sub);
	sl_nostr_text_puts(&t, "]");
	return sl_nostr_text_take(&t, len);
}

static char *
build_with_event(const char *name, const struct sl_nostr_event *e, size_t *len)
{
	struct sl_nostr_text t = {0};

	sl_nostr_text_puts(&t, "[\"");
	sl_nostr_text_puts(&t, name);
	sl_nostr_text_puts(&t, "\",");
	sl_nostr_text_event(&t, e);
	sl_nostr_text_puts(&t, "]");
	return sl_nostr_text_take(&t, len);
}

char *
sl_nostr_build_event(const struct sl_nostr_event *e, size_t *len)
{
	return build_with_event("EVENT", e, len);
}

char *
sl_nostr_build_auth(const char *challenge, const char *relay_url, const struct sl_identity *id, uint64_t now_unix_s,
	size_t *len)
{
	const char *relay[] = {"relay", relay_url}, *answer[] = {"challenge", challenge};
	const struct sl_nostr_tag tags[] = {{relay, 2}, {answer, 2}};
	struct sl_nostr_event e = {.kind = KIND_AUTH, .created_at = now_unix_s, .tags = tags, .tag_count = 2, .content = ""};
	int rc = sl_nostr_event_sign(&e, id);

	if (rc) {
		errno = -rc;
		return NULL;
	}
	return build_with_event("AUTH", &e, len);
}
