/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sl_signal_job {
	uint8_t to[SL_XONLY_BYTES];
	uint64_t ttl_s;
	char text[];
};

struct sl_signal_text *
sl_signal_unwrap(const struct sl_nostr_event *e, const struct sl_identity *self)
{
	struct sl_signal_text *t = malloc(sizeof(*t));

	if (t && sl_wrap_open(e, self, t->author, t->text, sizeof(t->text)) != SL_WRAP_OK) {
		free(t);
		return NULL;
	}
	if (t)
		t->len = strlen(t->text);
	return t;
}

struct sl_signal_inbox *
sl_signal_inbox(const struct sl_nostr_event *e)
{
	struct sl_signal_inbox *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	memcpy(i->author, e->pubkey, SL_XONLY_BYTES);
	i->created_at = e->created_at;
	i->count = sl_inbox_parse(i->urls, SL_INBOX_URLS, e);
	return i;
}

struct sl_signal_job *
sl_signal_job_new(const uint8_t to[SL_XONLY_BYTES], const char *text, uint64_t ttl_s)
{
	const size_t len = strlen(text) + 1;
	struct sl_signal_job *j = malloc(sizeof(*j) + len);

	if (!j)
		return NULL;
	memcpy(j->to, to, SL_XONLY_BYTES);
	j->ttl_s = ttl_s;
	memcpy(j->text, text, len);
	return j;
}

int
sl_signal_make(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s)
{
	const struct sl_signal_job *j = job;
	struct sl_wrap w;
	size_t len = 0;
	char *json;
	int rc = sl_wrap_build(&w, id, j->to, j->text, now_unix_s, j->ttl_s);

	if (rc)
		return rc;
	/* A wrap's event points into the wrap: by way of its text it gets memory of its own. */
	json = sl_nostr_event_format(&w.event, &len);
	rc = json && sl_nostr_event_parse(e, json, len, 0) == SL_NOSTR_OK ? 0 : -ENOMEM;
	free(json);
	sl_wrap_fini(&w);
	return rc;
}
