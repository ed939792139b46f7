/* SPDX-License-Identifier: BSD-3-Clause */
/* Verified ids, the latest SL_NOSTR_SEEN_MAX: chains by the first bytes of the id, which is a hash already. */
#include "client_internal.h"

#include <string.h>

static unsigned
bucket_of(const uint8_t id[SL_NOSTR_ID_BYTES])
{
	return ((unsigned)id[0] << 8 | id[1]) % SEEN_BUCKETS;
}

bool
sl_nostr_seen_has(const struct seen *s, const uint8_t id[SL_NOSTR_ID_BYTES])
{
	for (unsigned n = s->bucket[bucket_of(id)]; n; n = s->next[n - 1])
		if (!memcmp(s->ids[n - 1], id, SL_NOSTR_ID_BYTES))
			return true;
	return false;
}

static void
unlink_at(struct seen *s, unsigned index)
{
	uint16_t *p = &s->bucket[bucket_of(s->ids[index])];

	while (*p && *p != index + 1)
		p = &s->next[*p - 1];
	if (*p)
		*p = s->next[index];
}

void
sl_nostr_seen_add(struct seen *s, const uint8_t id[SL_NOSTR_ID_BYTES])
{
	unsigned at = s->at, b = bucket_of(id);

	if (sl_nostr_seen_has(s, id))
		return;
	if (s->count == SL_NOSTR_SEEN_MAX)
		unlink_at(s, at);
	else
		s->count++;
	memcpy(s->ids[at], id, SL_NOSTR_ID_BYTES);
	s->next[at] = s->bucket[b];
	s->bucket[b] = (uint16_t)(at + 1);
	s->at = (at + 1) % SL_NOSTR_SEEN_MAX;
}
