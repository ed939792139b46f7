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
 *		   dialler does by itself (facts, 10) and a flood of invented sources does not. While
 *		   nobody returns, what is above the reserve serves first ones too
 */
#include "link_internal.h"

#include <errno.h>
#include <stdlib.h>

#define RETURN_MIN_US 500000u
#define RETURN_MAX_US 35000000u
#define MSG1_SENDER 4
#define MSG1_NOISE 8

static uint64_t
mix(uint64_t h)
{
	h = (h ^ h >> 31) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

uint64_t
sl_msg1_hash(const struct sl_links *l, const uint8_t *packet)
{
	uint64_t h = mix(sl_get64(packet + MSG1_NOISE + 1) ^ l->hash_key);

	return mix(h ^ sl_get64(packet + MSG1_NOISE + 9) ^ sl_get32(packet + MSG1_SENDER));
}

int
sl_admission_init(struct sl_links *l, uint64_t now_us)
{
	struct admission *a = &l->admission;
	double burst = l->config.handshake_burst, rate = l->config.handshake_rate_per_s;

	a->prefixes = calloc(SL_PREFIX_ROWS, sizeof(*a->prefixes));
	a->callers = calloc(SL_CALLER_ROWS, sizeof(*a->callers));
	if (!a->prefixes || !a->callers)
		return -ENOMEM;
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
}

static uint64_t
prefix_hash(const struct sl_links *l, const struct sl_addr *a)
{
	uint64_t h = l->hash_key ^ a->kind;

	switch (a->kind) {
	case SL_ADDR_UDP4:
		h = mix(h) ^ ((uint64_t)a->u.ip4[0] << 16 | (uint64_t)a->u.ip4[1] << 8 | a->u.ip4[2]);
		break;
	case SL_ADDR_UDP6:
		for (unsigned i = 0; i < 6; i++)
			h = mix(h) ^ a->u.ip6[i];
		break;
	default:
		h = mix(h) ^ ((uint64_t)a->transport << 16 | a->link);
		break;
	}
	return mix(h) | 1; /* 0 is an empty row */
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
	*hash = mix(sl_msg1_hash(l, packet) ^ sl_addr_hash(from)) | 1;
	return &l->admission.callers[*hash >> 16 & (SL_CALLER_ROWS - 1)];
}

static bool
take_above(struct sl_bucket *b, double floor, uint64_t now_us)
{
	return sl_bucket_level(b, now_us) >= floor + 1 && sl_bucket_take(b, now_us);
}

/* over: from a prefix that has had its share, which may have what nobody else wants. */
static bool
room(struct admission *a, bool returned, bool over, uint64_t now_us)
{
	/* Who returns from such a prefix, an honest neighbour of the flood, shares half of the reserve. */
	if (returned && take_above(&a->returning, over ? a->reserve / 2 : 0, now_us))
		return true;
	return take_above(&a->first, over ? a->first.burst / 2 : 0, now_us) ||
	       take_above(&a->returning, a->reserve, now_us);
}

bool
sl_stranger_admit(struct sl_links *l, const struct sl_addr *from, const uint8_t *packet, uint64_t now_us)
{
	struct sl_bucket *prefix = prefix_bucket(l, from, now_us);
	uint64_t hash;
	struct caller_row *c = caller_row(l, from, packet, &hash);
	bool again = c->hash == hash && now_us - c->since_us <= RETURN_MAX_US;
	bool returned = again && now_us - c->since_us >= RETURN_MIN_US;
	bool over = sl_bucket_level(prefix, now_us) < 1;

	if (room(&l->admission, returned, over, now_us)) {
		(void)sl_bucket_take(prefix, now_us);
		if (returned)
			count(l, SL_LINK_MSG1_RETURNED);
		return true;
	}
	count(l, over ? SL_LINK_MSG1_PREFIX : SL_LINK_MSG1_RATE_LIMITED);
	if (!again) { /* the first time counts */
		c->hash = hash;
		c->since_us = now_us;
	}
	return false;
}
