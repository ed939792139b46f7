/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a msg1 from nobody we know may cost a curve operation. The wire has no cookie: a source address
 * proves nothing, so this is fairness among those who claim one, by hashes and buckets alone.
 *
 *	prefix     an IPv4 /24, IPv6 /48 or Ethernet port gets a quarter of the budget, and more only
 *		   while half of the budget's burst is left for others
 *	first      one half of the budget is for whoever comes first
 *	returning  the other half keeps a reserve for a msg1 that found no room before and comes again, the
 *		   same bytes from the same address, half a second to half a minute later: what an honest
 *		   dialler does by itself (facts, 10) and a flood of invented sources does not. The longer
 *		   it has waited, the deeper it may reach into the reserve, so a flood that returns early
 *		   leaves something for those that go on. While nobody returns, what is above the reserve
 *		   serves first ones too
 *	home	   a known peer at a new address cannot be told from a stranger before its msg1 has been opened.
 *		   But most move little: another port behind the same NAT, another host of the same
 *		   network. A prefix where a peer has been, or is configured, has a small budget of its own
 *		   besides; a flood from everywhere hardly meets one
 *
 * A msg1 that came to nothing is remembered by its hash: copies of it, an impatient peer's or a
 * recorder's, are refused again without a curve operation and without a budget.
 */
#include "link_internal.h"

#include <errno.h>
#include <stdlib.h>

#define RETURN_MIN_US 500000u
#define RETURN_MAX_US 35000000u
#define MSG1_SENDER 4
#define MSG1_NOISE 8
#define HOME_BURST 6
#define HOME_RATE_PER_S 1
#define HOMES_BURST 64 /* of all homes together */
#define HOMES_RATE_PER_S 10

uint64_t
sl_msg1_hash(const struct sl_links *l, const uint8_t *packet)
{
	uint64_t h = sl_hash_mix(sl_get64(packet + MSG1_NOISE + 1) ^ l->hash_key);

	return sl_hash_mix(h ^ sl_get64(packet + MSG1_NOISE + 9) ^ sl_get32(packet + MSG1_SENDER));
}

int
sl_admission_init(struct sl_links *l, uint64_t now_us)
{
	struct admission *a = &l->admission;
	double burst = l->config.handshake_burst, rate = l->config.handshake_rate_per_s;

	a->prefixes = calloc(SL_PREFIX_ROWS, sizeof(*a->prefixes));
	a->callers = calloc(SL_CALLER_ROWS, sizeof(*a->callers));
	a->homes = calloc(SL_HOME_ROWS, sizeof(*a->homes));
	a->refused = calloc(SL_REFUSED_ROWS, sizeof(*a->refused));
	if (!a->prefixes || !a->callers || !a->homes || !a->refused)
		return -ENOMEM;
	sl_bucket_init(&a->home, HOMES_BURST, HOMES_RATE_PER_S, now_us);
	/* The least that lets one in: a bucket that holds no whole token would stay shut for ever. */
	sl_bucket_init(&a->first, burst / 2 < 1 ? 1 : burst / 2, rate / 2, now_us);
	sl_bucket_init(&a->returning, burst / 2 < 1 ? 1 : burst / 2, rate / 2, now_us);
	a->reserve = a->returning.burst / 2;
	a->prefix_burst = burst / 4 < 1 ? 1 : burst / 4;
	a->prefix_rate_per_s = rate / 4;
	return 0;
}

void
sl_admission_fini(struct sl_links *l)
{
	free(l->admission.prefixes);
	free(l->admission.callers);
	free(l->admission.homes);
	free(l->admission.refused);
}

/* --- the linked peers' budget --- */

/*
 * Link layer facts, 14.1, as configured or derived there; but never less than what as many linked peers need that all
 * rekey as often as a link takes it: one msg1 and its repetitions in the least age of a link, however fast they count
 * frames. Each has a bucket of its own before this one.
 */
void
sl_established_size(struct sl_links *l, uint64_t now_us)
{
	double age_s = (double)sl_rekey_min_age_us(l) / 1e6;
	double need = l->up_count * (1.0 + l->config.max_resends) / (age_s < 1 ? 1 : age_s);
	double rate = l->established_rate_per_s, burst = l->established_burst;

	if (l->config.established_rate_per_s <= 0 && rate < need)
		rate = need;
	/* All at one time, and again as soon as they have been served. */
	if (!l->config.established_burst && burst < 2.0 * l->up_count)
		burst = 2.0 * l->up_count;
	(void)sl_bucket_level(&l->established, now_us);
	l->established.rate_per_us = rate / 1e6;
	l->established.burst = burst;
}

/* --- msg1 that came to nothing --- */

static struct refused_row *
refused_row(struct sl_links *l, const uint8_t *packet, uint64_t *hash)
{
	uint64_t h = l->hash_key;

	/* All of it: a copy with one bit changed must not silence the right one. */
	for (unsigned i = MSG1_SENDER; i + 8 <= SL_MSG1_PACKET_BYTES; i += 8)
		h = sl_hash_mix(h ^ sl_get64(packet + i));
	*hash = sl_hash_mix(h ^ sl_get64(packet + SL_MSG1_PACKET_BYTES - 8)) | 1;
	return &l->admission.refused[*hash >> 16 & (SL_REFUSED_ROWS - 1)];
}

void
sl_refusal_note(struct sl_links *l, const uint8_t *packet, const struct peer *young, uint64_t for_us, uint64_t now_us)
{
	uint64_t hash;
	struct refused_row *r = refused_row(l, packet, &hash);

	r->hash = hash;
	r->until_us = now_us + for_us;
	r->peer_id = young ? young->id : SL_PEER_NONE;
}

bool
sl_refused_before(struct sl_links *l, const uint8_t *packet, uint64_t now_us)
{
	uint64_t hash;
	struct refused_row *r = refused_row(l, packet, &hash);
	const struct peer *p;

	if (r->hash != hash || now_us >= r->until_us)
		return false;
	if (r->peer_id != SL_PEER_NONE) {
		p = l->peer_of_id[r->peer_id];
		if (!p || !p->up || !sl_peer_young(l, p, now_us))
			return false;
	}
	count(l, SL_LINK_MSG1_AGAIN);
	return true;
}

/* --- strangers --- */

static uint64_t
prefix_hash(const struct sl_links *l, const struct sl_addr *a)
{
	uint64_t h = l->hash_key ^ a->kind;

	switch (a->kind) {
	case SL_ADDR_UDP4:
		h = sl_hash_mix(h) ^ ((uint64_t)a->u.ip4[0] << 16 | (uint64_t)a->u.ip4[1] << 8 | a->u.ip4[2]);
		break;
	case SL_ADDR_UDP6:
		for (unsigned i = 0; i < 6; i++)
			h = sl_hash_mix(h) ^ a->u.ip6[i];
		break;
	default:
		h = sl_hash_mix(h) ^ ((uint64_t)a->transport << 16 | a->link);
		break;
	}
	return sl_hash_mix(h) | 1; /* 0 is an empty row */
}

static struct sl_bucket *
prefix_bucket(struct sl_links *l, const struct sl_addr *from, uint64_t now_us)
{
	uint64_t h = prefix_hash(l, from);
	struct prefix_row *r = &l->admission.prefixes[h >> 16 & (SL_PREFIX_ROWS - 1)];

	if (r->hash != h) {
		r->hash = h;
		sl_bucket_init(&r->bucket, l->admission.prefix_burst, l->admission.prefix_rate_per_s, now_us);
	}
	return &r->bucket;
}

static struct caller_row *
caller_row(struct sl_links *l, const struct sl_addr *from, const uint8_t *packet, uint64_t *hash)
{
	*hash = sl_hash_mix(sl_msg1_hash(l, packet) ^ sl_addr_hash(from)) | 1;
	return &l->admission.callers[*hash >> 16 & (SL_CALLER_ROWS - 1)];
}

/* Ethernet's prefix is a whole port, where a flood of its own would be at home too. */
static struct prefix_row *
home_row(struct sl_links *l, const struct sl_addr *a, uint64_t *hash)
{
	if (a->kind != SL_ADDR_UDP4 && a->kind != SL_ADDR_UDP6)
		return NULL;
	*hash = prefix_hash(l, a);
	return &l->admission.homes[*hash >> 24 & (SL_HOME_ROWS - 1)];
}

void
sl_home_note(struct sl_links *l, const struct sl_addr *at, uint64_t now_us)
{
	uint64_t hash;
	struct prefix_row *r = home_row(l, at, &hash);

	if (!r || r->hash == hash)
		return;
	r->hash = hash;
	sl_bucket_init(&r->bucket, HOME_BURST, HOME_RATE_PER_S, now_us);
}

static bool
from_home(struct sl_links *l, const struct sl_addr *from, uint64_t now_us)
{
	uint64_t hash;
	struct prefix_row *r = home_row(l, from, &hash);

	if (!r || r->hash != hash || sl_bucket_level(&r->bucket, now_us) < 1 ||
		!sl_bucket_take(&l->admission.home, now_us))
		return false;
	(void)sl_bucket_take(&r->bucket, now_us);
	count(l, SL_LINK_MSG1_HOME);
	return true;
}

static bool
take_above(struct sl_bucket *b, double floor, uint64_t now_us)
{
	return sl_bucket_level(b, now_us) >= floor + 1 && sl_bucket_take(b, now_us);
}

/* How much of the reserve is left alone by who has waited so long: less at each of the times of the facts (10). */
static double
left_alone(const struct admission *a, uint64_t waited_us)
{
	return waited_us >= 12000000   ? 0
	       : waited_us >= 5000000  ? a->reserve / 4
	       : waited_us >= 2000000  ? a->reserve / 2
				       : a->reserve * 3 / 4;
}

/* over: from a prefix that has had its share, which may have what nobody else wants. */
static bool
room(struct admission *a, bool returned, uint64_t waited_us, bool over, uint64_t now_us)
{
	double floor = left_alone(a, waited_us);

	/* Who returns from such a prefix, an honest neighbour of the flood, shares half of the reserve. */
	if (over && floor < a->reserve / 2)
		floor = a->reserve / 2;
	if (returned && take_above(&a->returning, floor, now_us))
		return true;
	return take_above(&a->first, over ? a->first.burst / 2 : 0, now_us) ||
	       take_above(&a->returning, a->reserve, now_us);
}

bool
sl_stranger_admit(
	struct sl_links *l, const struct sl_addr *from, const uint8_t *packet, bool opened, uint64_t now_us)
{
	struct sl_bucket *prefix = prefix_bucket(l, from, now_us);
	uint64_t hash;
	struct caller_row *c = caller_row(l, from, packet, &hash);
	bool again = c->hash == hash && now_us - c->since_us <= RETURN_MAX_US;
	bool returned = again && now_us - c->since_us >= RETURN_MIN_US;
	bool over = sl_bucket_level(prefix, now_us) < 1;

	if (room(&l->admission, returned, now_us - c->since_us, over, now_us)) {
		(void)sl_bucket_take(prefix, now_us);
		if (returned)
			count(l, SL_LINK_MSG1_RETURNED);
		return true;
	}
	if (!opened && from_home(l, from, now_us))
		return true;
	count(l, over ? SL_LINK_MSG1_PREFIX : SL_LINK_MSG1_RATE_LIMITED);
	if (!again) { /* the first time counts */
		c->hash = hash;
		c->since_us = now_us;
	}
	return false;
}
