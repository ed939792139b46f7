/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_discovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct peer {
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_advert *advert;
	uint64_t heard_us, fetched_us, dial_us;
	uint64_t seen_us; /* an advert of this peer came last, whatever it was worth */
	uint32_t tag;	  /* of the fetch under way; 0 = none */
	bool newer;	  /* that fetch has brought a newer one */
	enum sl_discovery_outcome outcome;
	uint64_t fetches, replaced, evicted;
};

struct sl_discovery {
	sl_discovery_changed_fn changed;
	void *arg;
	struct peer *peers;
	unsigned count, max, next; /* next: where the search for due peers goes on */
	uint32_t tags;
};

const char *
sl_discovery_outcome_name(enum sl_discovery_outcome o)
{
	static const char *const names[] = {"never_asked", "asked", "refreshed", "same", "evicted", "none", "silent"};

	return names[o];
}

struct sl_discovery *
sl_discovery_create(unsigned peers_max, sl_discovery_changed_fn changed, void *arg)
{
	struct sl_discovery *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->peers = calloc(peers_max ? peers_max : 1, sizeof(*d->peers));
	if (!d->peers) {
		free(d);
		return NULL;
	}
	d->max = peers_max;
	d->changed = changed;
	d->arg = arg;
	return d;
}

void
sl_discovery_destroy(struct sl_discovery *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->count; i++)
		free(d->peers[i].advert);
	free(d->peers);
	free(d);
}

static int
find(const struct sl_discovery *d, const uint8_t xonly[SL_XONLY_BYTES])
{
	for (unsigned i = 0; i < d->count; i++)
		if (!memcmp(d->peers[i].xonly, xonly, SL_XONLY_BYTES))
			return (int)i;
	return -ENOENT;
}

int
sl_discovery_peer_add(struct sl_discovery *d, const uint8_t xonly[SL_XONLY_BYTES])
{
	int at = find(d, xonly);

	if (at >= 0)
		return at;
	if (d->count == d->max)
		return -ENOSPC;
	memcpy(d->peers[d->count].xonly, xonly, SL_XONLY_BYTES);
	return (int)d->count++;
}

unsigned
sl_discovery_peers(const struct sl_discovery *d)
{
	return d->count;
}

const uint8_t *
sl_discovery_key(const struct sl_discovery *d, unsigned peer)
{
	return d->peers[peer].xonly;
}

const struct sl_advert *
sl_discovery_lookup(const struct sl_discovery *d, unsigned peer)
{
	return d->peers[peer].advert;
}

static void
drop(struct sl_discovery *d, unsigned i)
{
	struct peer *p = &d->peers[i];

	free(p->advert);
	p->advert = NULL;
	d->changed(d->arg, i, NULL);
}

/* Of two made in the same second the one that came later, as the reference has it; the very same one is no news. */
bool
sl_discovery_advert(struct sl_discovery *d, struct sl_advert *a, const struct sl_nostr_time *now)
{
	int i = find(d, a->pubkey);
	struct peer *p;
	bool differs;

	if (i < 0) {
		free(a);
		return false;
	}
	p = &d->peers[i];
	p->seen_us = now->us ? now->us : 1;
	if (a->valid_until <= now->unix_s ||
		(p->advert && (a->created_at < p->advert->created_at || !memcmp(a->id, p->advert->id, sizeof(a->id))))) {
		free(a);
		return true;
	}
	differs = !p->advert || !sl_advert_same_endpoints(p->advert, a);
	p->replaced += p->advert != NULL;
	p->newer = true;
	free(p->advert);
	p->advert = a;
	p->heard_us = p->seen_us;
	if (differs)
		d->changed(d->arg, (unsigned)i, a);
	return true;
}

/* --- asking --- */

void
sl_discovery_expect_dial(struct sl_discovery *d, unsigned peer, uint64_t dial_us)
{
	d->peers[peer].dial_us = dial_us;
}

static uint64_t
fetch_at(const struct peer *p)
{
	uint64_t at;

	if (!p->dial_us || p->tag)
		return 0;
	at = p->dial_us > SL_DISCOVERY_LEAD_US ? p->dial_us - SL_DISCOVERY_LEAD_US : 1;
	if (p->fetched_us && at < p->fetched_us + SL_DISCOVERY_GAP_US)
		at = p->fetched_us + SL_DISCOVERY_GAP_US;
	return at;
}

unsigned
sl_discovery_fetch_due(struct sl_discovery *d, uint8_t *keys, uint32_t *tag, const struct sl_nostr_time *now)
{
	unsigned n = 0;

	for (unsigned k = 0; k < d->count && n < SL_DISCOVERY_BATCH; k++) {
		struct peer *p = &d->peers[(d->next + k) % d->count];
		uint64_t at = fetch_at(p);

		if (!at || at > now->us)
			continue;
		if (!n) {
			if (++d->tags == 0)
				d->tags = 1;
			*tag = d->tags;
		}
		memcpy(keys + n++ * (size_t)SL_XONLY_BYTES, p->xonly, SL_XONLY_BYTES);
		p->tag = *tag;
		p->newer = false;
		p->fetched_us = now->us ? now->us : 1;
		p->fetches++;
		p->outcome = SL_DISCOVERY_ASKED;
	}
	/* The others first the next time. */
	if (n == SL_DISCOVERY_BATCH)
		d->next = (d->next + SL_DISCOVERY_BATCH) % d->count;
	return n;
}

static void
fetch_over(struct sl_discovery *d, unsigned i, bool all_said)
{
	struct peer *p = &d->peers[i];

	p->tag = 0;
	if (p->newer) {
		p->outcome = SL_DISCOVERY_REFRESHED;
	} else if (p->seen_us >= p->fetched_us) {
		p->outcome = SL_DISCOVERY_SAME;
	} else if (!all_said) {
		p->outcome = SL_DISCOVERY_SILENT;
	} else if (p->advert) {
		p->outcome = SL_DISCOVERY_EVICTED;
		p->evicted++;
		drop(d, i);
	} else {
		p->outcome = SL_DISCOVERY_NONE;
	}
}

void
sl_discovery_fetched(struct sl_discovery *d, uint32_t tag, const struct sl_nostr_fetch_result *r,
	const struct sl_nostr_time *now)
{
	bool all_said = r && r->answered && !r->silent;

	(void)now;
	for (unsigned i = 0; i < d->count; i++)
		if (d->peers[i].tag == tag)
			fetch_over(d, i, all_said);
}

void
sl_discovery_tick(struct sl_discovery *d, const struct sl_nostr_time *now)
{
	for (unsigned i = 0; i < d->count; i++) {
		struct peer *p = &d->peers[i];

		if (p->advert && p->advert->valid_until <= now->unix_s)
			drop(d, i);
		if (p->tag && now->us - p->fetched_us >= SL_DISCOVERY_LOST_US)
			fetch_over(d, i, false);
	}
}

void
sl_discovery_info(const struct sl_discovery *d, unsigned peer, struct sl_discovery_info *out)
{
	const struct peer *p = &d->peers[peer];

	out->xonly = p->xonly;
	out->advert = p->advert;
	out->heard_us = p->advert ? p->heard_us : 0;
	out->fetched_us = p->fetched_us;
	out->outcome = p->outcome;
	out->next_fetch_us = fetch_at(p);
	out->fetches = p->fetches;
	out->replaced = p->replaced;
	out->evicted = p->evicted;
}
