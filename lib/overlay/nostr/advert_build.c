/* SPDX-License-Identifier: BSD-3-Clause */
/* Our own events: adverts, their withdrawal, the list of inbox relays. */
#include "sl_advert.h"
#include "nostr_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND_DELETE 5u

static void
put_list(struct sl_nostr_text *t, const char *name, const char list[][SL_ADVERT_TEXT_SIZE], unsigned count)
{
	sl_nostr_text_puts(t, ",\"");
	sl_nostr_text_puts(t, name);
	sl_nostr_text_puts(t, "\":[");
	for (unsigned i = 0; i < count; i++) {
		if (i)
			sl_nostr_text_puts(t, ",");
		sl_nostr_text_string(t, list[i]);
	}
	sl_nostr_text_puts(t, "]");
}

char *
sl_advert_build_content(const struct sl_advert *a)
{
	struct sl_nostr_text t = {0};

	sl_nostr_text_puts(&t, "{\"identifier\":\"" SL_ADVERT_D "\",\"version\":1,\"endpoints\":[");
	for (unsigned i = 0; i < a->endpoint_count; i++) {
		sl_nostr_text_puts(&t, i ? ",{\"transport\":\"" : "{\"transport\":\"");
		sl_nostr_text_puts(&t, sl_advert_transport_name(a->endpoints[i].transport));
		sl_nostr_text_puts(&t, "\",\"addr\":");
		sl_nostr_text_string(&t, a->endpoints[i].nat ? "nat" : a->endpoints[i].addr);
		sl_nostr_text_puts(&t, "}");
	}
	sl_nostr_text_puts(&t, "]");
	if (a->has_nat) {
		put_list(&t, "signalRelays", a->signal_relays, a->signal_relay_count);
		put_list(&t, "stunServers", a->stun_servers, a->stun_server_count);
	}
	sl_nostr_text_puts(&t, "}");
	return sl_nostr_text_take(&t, NULL);
}

/* Signs what the caller's pointers name, then moves it into memory of its own: one format and one parse, not a second copier. */
static int
sign_and_own(struct sl_nostr_event *e, struct sl_nostr_event *made, const struct sl_identity *id)
{
	int rc = sl_nostr_event_sign(made, id);
	size_t len;
	char *text;

	memset(e, 0, sizeof(*e));
	if (rc)
		return rc;
	text = sl_nostr_event_format(made, &len);
	if (!text)
		return -errno;
	rc = sl_nostr_event_parse(e, text, len, 0) == SL_NOSTR_OK ? 0 : -ENOMEM;
	free(text);
	return rc;
}

int
sl_advert_build(struct sl_nostr_event *e, const struct sl_advert *a, const char *app, uint64_t created_at, uint64_t ttl_s,
	const struct sl_identity *id)
{
	char until[24];
	const char *d[] = {"d", SL_ADVERT_D}, *protocol[] = {"protocol", app}, *version[] = {"version", "1"},
		   *expiration[] = {"expiration", until};
	const struct sl_nostr_tag tags[] = {{d, 2}, {protocol, 2}, {version, 2}, {expiration, 2}};
	struct sl_nostr_event made = {.kind = SL_ADVERT_KIND, .created_at = created_at, .tags = tags, .tag_count = 4};
	char *content;
	int rc;

	memset(e, 0, sizeof(*e));
	if (!a->endpoint_count)
		return -ENOENT;
	content = sl_advert_build_content(a);
	if (!content)
		return -errno;
	snprintf(until, sizeof(until), "%" PRIu64, created_at + ttl_s);
	made.content = content;
	rc = sign_and_own(e, &made, id);
	free(content);
	return rc;
}

int
sl_advert_build_withdrawal(struct sl_nostr_event *e, const uint8_t advert_id[SL_NOSTR_ID_BYTES], uint64_t created_at,
	const struct sl_identity *id)
{
	char hex[SL_NOSTR_ID_HEX + 1];
	const char *ref[] = {"e", hex};
	const struct sl_nostr_tag tags[] = {{ref, 2}};
	struct sl_nostr_event made = {
		.kind = KIND_DELETE, .created_at = created_at, .tags = tags, .tag_count = 1, .content = ""};

	sl_hex_format(hex, advert_id, SL_NOSTR_ID_BYTES);
	return sign_and_own(e, &made, id);
}

int
sl_inbox_build(struct sl_nostr_event *e, const char *const *relays, unsigned count, uint64_t created_at,
	const struct sl_identity *id)
{
	const char *values[2 * SL_NOSTR_TAG_VALUES_MAX][2];
	struct sl_nostr_tag tags[2 * SL_NOSTR_TAG_VALUES_MAX];
	struct sl_nostr_event made = {.kind = SL_INBOX_KIND, .created_at = created_at, .tags = tags, .content = ""};

	memset(e, 0, sizeof(*e));
	if (count > SL_NOSTR_TAG_VALUES_MAX)
		return -EMSGSIZE;
	for (unsigned form = 0; form < 2; form++)
		for (unsigned i = 0; i < count; i++) {
			const char **v = values[made.tag_count];

			v[0] = form ? "r" : "relay";
			v[1] = relays[i];
			tags[made.tag_count++] = (struct sl_nostr_tag){v, 2};
		}
	return sign_and_own(e, &made, id);
}

unsigned
sl_inbox_parse(char urls[][SL_ADVERT_TEXT_SIZE], unsigned room, const struct sl_nostr_event *e)
{
	unsigned n = 0;

	if (e->kind != SL_INBOX_KIND)
		return 0;
	for (uint32_t i = 0; i < e->tag_count && n < room; i++) {
		const struct sl_nostr_tag *t = &e->tags[i];
		bool twice = false;

		if (t->count < 2 || (strcmp(t->values[0], "relay") != 0 && strcmp(t->values[0], "r") != 0) ||
			!t->values[1][0] || strlen(t->values[1]) >= SL_ADVERT_TEXT_SIZE)
			continue;
		for (unsigned k = 0; k < n; k++)
			twice = twice || !strcmp(urls[k], t->values[1]);
		if (!twice)
			memcpy(urls[n++], t->values[1], strlen(t->values[1]) + 1);
	}
	return n;
}
