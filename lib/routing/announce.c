/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters in and out: routing facts, section 6, with remedies W1 and W3 of section 17.
 *
 * What peer Q is sent = our address + the filters of all tree peers but Q. With any = OR of all of
 * them and twice = bits that at least two of them have, the OR without Q is any & ~(Q & ~twice):
 * one pass over 1 KB a peer, however many. Both are rebuilt when first needed after a change.
 * Whether a peer is owed a new filter is looked at when it may be sent one (debounce), not when
 * something changes: a thousand announces a second cost two comparisons a peer and second.
 */
#include "router.h"

#include <stdlib.h>

static void or_into(uint8_t *to, const uint8_t *from)
{
	for (unsigned i = 0; i < SL_FILTER_BYTES; i++)
		to[i] |= from[i];
}

static void merge_in(struct sl_router *r, const uint8_t *filter)
{
	for (unsigned i = 0; i < SL_FILTER_BYTES; i++) {
		r->merge_twice[i] |= r->merge_any[i] & filter[i];
		r->merge_any[i] |= filter[i];
	}
}

static bool over_cap(const struct sl_router *r, const uint8_t *bits)
{
	return sl_filter_fpr(sl_filter_count(bits), SL_FILTER_HASHES) > r->config.max_inbound_fpr;
}

static int by_fill(const void *a, const void *b)
{
	const struct sl_route_peer *x = *(struct sl_route_peer *const *)a,
				   *y = *(struct sl_route_peer *const *)b;

	if (x->filter_count != y->filter_count)
		return x->filter_count < y->filter_count ? -1 : 1;
	return memcmp(&x->addr, &y->addr, SL_NODE_ADDR_BYTES);
}

/*
 * The merge passes the cap that the next node applies to it (W3): merge the emptiest first and
 * leave out what does not fit any more, so that one fat filter does not take the others with it.
 */
static void merge_what_fits(struct sl_router *r, const uint8_t *own)
{
	struct sl_route_peer **order = r->left_out;
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < r->active_count; i++)
		if (r->active[i]->has_filter && sl_tree_is_tree_peer(r, r->active[i]))
			order[n++] = r->active[i];
	qsort(order, n, sizeof(*order), by_fill);
	memcpy(r->merge_any, own, SL_FILTER_BYTES);
	memset(r->merge_twice, 0, SL_FILTER_BYTES);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t with[SL_FILTER_BYTES];
		struct sl_route_peer *p = order[i];

		memcpy(with, r->merge_any, sizeof(with));
		or_into(with, p->filter);
		if (!over_cap(r, with)) {
			merge_in(r, p->filter);
			continue;
		}
		p->left_out = true;
		order[kept++] = p;
	}
	r->left_out_count = kept;
}

static void build(struct sl_router *r)
{
	uint8_t own[SL_FILTER_BYTES] = {0};
	struct sl_filter_hash h;

	if (r->merge_built == r->merge_version)
		return;
	r->merge_built = r->merge_version;
	sl_filter_hash(&h, r->tree.self.bytes);
	sl_filter_insert(own, &h);
	memcpy(r->merge_any, own, sizeof(own));
	/* Our own bits stay whoever is taken out. */
	memset(r->merge_twice, 0, sizeof(r->merge_twice));
	r->left_out_count = 0;
	for (uint32_t i = 0; i < r->active_count; i++) {
		struct sl_route_peer *p = r->active[i];

		p->left_out = false;
		if (p->has_filter && sl_tree_is_tree_peer(r, p))
			merge_in(r, p->filter);
	}
	if (over_cap(r, r->merge_any))
		merge_what_fits(r, own);
	or_into(r->merge_twice, own);
}

void sl_filter_outgoing(
	struct sl_router *r, const struct sl_route_peer *p, uint8_t bits[SL_FILTER_BYTES])
{
	enum { TRIES = 16 };

	build(r);
	memcpy(bits, r->merge_any, SL_FILTER_BYTES);
	if (p->has_filter && !p->left_out && sl_tree_is_tree_peer(r, p))
		for (unsigned i = 0; i < SL_FILTER_BYTES; i++)
			bits[i] &= (uint8_t) ~(p->filter[i] & ~r->merge_twice[i]);
	/* What did not fit with p's own filter in may fit without it: our parent's, in what a full
	 * child is sent. */
	for (uint32_t i = 0; i < r->left_out_count && i < TRIES; i++) {
		uint8_t with[SL_FILTER_BYTES];

		if (r->left_out[i] == p)
			continue;
		memcpy(with, bits, sizeof(with));
		or_into(with, r->left_out[i]->filter);
		if (!over_cap(r, with))
			memcpy(bits, with, sizeof(with));
	}
}

/* --- in
 * --------------------------------------------------------------------------------------------------------
 */

void sl_filter_message(struct sl_router *r, struct sl_route_peer *p, const uint8_t *msg, size_t len)
{
	struct sl_filter_announce f;
	uint32_t count;

	sl_route_count(r, SL_ROUTE_FILTER_RX);
	if (sl_filter_announce_parse(&f, msg, len) != 0) {
		sl_route_count(r, SL_ROUTE_FILTER_MALFORMED);
		return;
	}
	if (f.sequence <= p->filter_sequence_rx) {
		sl_route_count(r, SL_ROUTE_FILTER_STALE);
		return;
	}
	count = sl_filter_count(f.bits);
	if (sl_filter_fpr(count, f.hash_count) > r->config.max_inbound_fpr) {
		sl_route_count(r, SL_ROUTE_FILTER_TOO_FULL); /* the sequence stays: it may be sent
								again, better */
		return;
	}
	p->filter_sequence_rx = f.sequence;
	if (p->has_filter && p->filter_hashes == f.hash_count &&
		memcmp(p->filter, f.bits, SL_FILTER_BYTES) == 0)
		return;
	if (p->filter_hashes != f.hash_count)
		p->path_dirty = r->index_dirty = r->body_dirty = true;
	p->has_filter = true;
	p->filter_hashes = f.hash_count;
	sl_publish_peer(r, p);
	p->filter_count = count;
	memcpy(p->filter, f.bits, SL_FILTER_BYTES);
	sl_publish_column(r, p);
	r->columns_dirty = true;
	if (sl_tree_is_tree_peer(r, p))
		sl_filter_changed(r);
}

/* --- out
 * -------------------------------------------------------------------------------------------------------
 */

void sl_filter_want_all(struct sl_router *r)
{
	for (uint32_t i = 0; i < r->active_count; i++)
		r->active[i]->filter_wanted = true;
	sl_router_wake(r);
}

static void send_filter(struct sl_router *r, struct sl_route_peer *p, const uint8_t *bits)
{
	int rc;

	r->filter_sequence++;
	sl_filter_announce_build(r->scratch, r->filter_sequence, bits);
	p->filter_us = r->now_us;
	p->filter_tried = true;
	rc = sl_router_send(r, p, r->scratch, SL_FILTER_MSG_BYTES, 0);
	p->filter_wanted = rc != 0; /* again after the debounce */
	sl_route_count(r, rc ? SL_ROUTE_FILTER_SEND_FAILED : SL_ROUTE_FILTER_TX);
	if (rc)
		return;
	if (!p->filter_sent || memcmp(p->sent, bits, SL_FILTER_BYTES) != 0)
		sl_again_new(&p->filter_again);
	sl_again_sent(&p->filter_again, r->now_us);
	p->filter_sent = true;
	p->filter_sequence_tx = r->filter_sequence;
	memcpy(p->sent, bits, SL_FILTER_BYTES);
	if (!r->left_out_count)
		return;
	sl_route_count(r, SL_ROUTE_FILTER_LEFT_OUT);
	sl_log(SL_LOG_WARNING, SL_TOPIC_ROUTE,
		"filters of %u peers do not fit together; fullest left out: peer %u with %u of %u "
		"bits",
		r->left_out_count, r->left_out[r->left_out_count - 1]->id,
		r->left_out[r->left_out_count - 1]->filter_count, SL_FILTER_BITS);
}

/* When p gets its filter again though nothing changed; spread by peer so that they do not all fall
 * into one turn. */
static uint64_t refresh_at(const struct sl_router *r, const struct sl_route_peer *p)
{
	if (!r->config.filter_refresh_us || !p->filter_sent)
		return UINT64_MAX;
	return p->filter_us + r->config.filter_refresh_us + (p->id & 63) * 10000;
}

/* Sends p what it is owed; returns when to look again. */
static uint64_t serve(struct sl_router *r, struct sl_route_peer *p)
{
	uint64_t due = p->filter_us + r->config.filter_debounce_us, refresh = refresh_at(r, p);
	bool owed = p->filter_wanted || r->now_us >= refresh;
	uint8_t bits[SL_FILTER_BYTES];

	if (!owed && p->filter_checked == r->merge_version)
		return refresh;
	if (p->filter_tried && r->now_us < due)
		return due < refresh ? due : refresh;
	/* The tree first: a parent takes up a new child's filter only when one arrives after the
	 * announce. */
	if (p->announce_pending)
		return p->announced_us + r->config.announce_min_interval_us > r->now_us
			       ? p->announced_us + r->config.announce_min_interval_us
			       : r->sends_us + 1000;
	if (!sl_router_may_send(r))
		return r->sends_us + 1000;
	sl_filter_outgoing(r, p, bits);
	p->filter_checked = r->merge_version;
	if (!owed && p->filter_sent && memcmp(bits, p->sent, sizeof(bits)) == 0)
		return refresh;
	send_filter(r, p, bits);
	return p->filter_wanted ? p->filter_us + r->config.filter_debounce_us : refresh_at(r, p);
}

uint64_t sl_filter_tick(struct sl_router *r)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < r->active_count; i++) {
		uint64_t at = serve(r, r->active[i]);

		if (at < next)
			next = at;
	}
	return next;
}

double sl_filter_mesh_size(const struct sl_router *r)
{
	uint8_t all[SL_FILTER_BYTES] = {0};
	struct sl_filter_hash h;

	sl_filter_hash(&h, r->tree.self.bytes);
	sl_filter_insert(all, &h);
	for (uint32_t i = 0; i < r->active_count; i++)
		if (r->active[i]->has_filter)
			or_into(all, r->active[i]->filter);
	return sl_filter_estimate(
		sl_filter_count(all), SL_FILTER_HASHES, r->config.max_inbound_fpr);
}
