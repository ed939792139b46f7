/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces that may have been lost are sent again. Nothing on the wire acknowledges a TreeAnnounce
 * or a FilterAnnounce, and the plain rules leave a lost one lost until the next change or the next
 * minute. But every peer reports how many of our frames it has, and which was the last: so a report
 * that accounts for everything sent when our announce was, with no more missing than before, says
 * that it arrived; one with more missing says that it may not have.
 *
 * What is sent again is the same: a tree announce with the same sequence, which a peer that had it
 * ignores as stale; a filter with the next one, as its refresh has.
 *
 * On a busy link with a little loss something is missing in every report. So the chance that all
 * copies were lost is kept: it begins at one and is multiplied with the share missing in each report
 * that counts. Below 1 in 100,000, or after five copies, the announce's refresh has to do. Without loss
 * nothing is sent that would not be.
 */
#include "router.h"

#define CHANCE_LEAST 0.00001
#define COPIES_MOST 5
/* Reordering: a report that tells of frames so much younger has the announce in its numbers. */
#define SLACK_US 20000

void sl_again_sent(struct sl_again *a, uint64_t now_us)
{
	bool copy = a->due;

	a->us = now_us;
	a->open = true;
	a->due = false;
	if (copy)
		return;
	a->chance = 1;
	a->copies = 0;
}

void sl_again_new(struct sl_again *a)
{
	a->open = a->due = false;
}

/* True when it is to be sent again. */
static bool report(struct sl_again *a, uint64_t covered_us, double missing)
{
	if (!a->open || covered_us < a->us)
		return false;
	if (missing > 0) {
		a->chance *= missing;
		a->open = false;
		a->due = a->chance >= CHANCE_LEAST && a->copies < COPIES_MOST;
		a->copies += a->due;
		return a->due;
	}
	a->open = covered_us < a->us + SLACK_US;
	return false;
}

void sl_again_report(
	struct sl_router *r, struct sl_route_peer *p, uint64_t covered_us, double missing)
{
	if (!covered_us || !r->config.announce_again)
		return;
	if (report(&p->tree_again, covered_us, missing)) {
		sl_route_count(r, SL_ROUTE_TREE_AGAIN);
		sl_tree_announce_to(r, p);
	}
	if (report(&p->filter_again, covered_us, missing)) {
		sl_route_count(r, SL_ROUTE_FILTER_AGAIN);
		p->filter_wanted = true;
		sl_router_wake(r);
	}
}
