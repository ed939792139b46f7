/* SPDX-License-Identifier: BSD-3-Clause */
/* The log lines of the links: up, down, refused, a rekey that fails. Names are cut short, keys are never shown. */
#include "link_internal.h"

#include <stdio.h>

#define REFUSED_AGAIN_US 600000000ull

/* "npub1tdwa...84le", as the reference writes it. */
#define SHORT_SIZE 20
static const char *
short_name(char text[SHORT_SIZE], const uint8_t xonly[SL_XONLY_BYTES])
{
	char npub[SL_NPUB_SIZE];

	sl_npub_format(npub, xonly);
	snprintf(text, SHORT_SIZE, "%.9s...%s", npub, npub + SL_NPUB_CHARS - 4);
	return text;
}

void
sl_link_log_up(const struct peer *p, bool again)
{
	char name[SHORT_SIZE], where[SL_ADDR_TEXT_SIZE];

	sl_addr_format(where, &p->where.addr);
	sl_log(SL_LOG_INFO, SL_TOPIC_LINK, "%s %s at %s, %s dialled%s%s",
		again ? "up anew:" : "up:", short_name(name, p->key.xonly), where,
		p->current.s->is_initiator ? "we" : "it", p->alias[0] ? ", alias " : "", p->alias);
}

void
sl_link_log_down(const struct peer *p, enum sl_down_reason reason)
{
	static const char *const why[] = {
		[SL_DOWN_DISCONNECT] = "it said goodbye",
		[SL_DOWN_DEAD] = "nothing heard any more",
		[SL_DOWN_RESTART] = "it has restarted",
		[SL_DOWN_REMOVED] = "ended by us",
	};
	char name[SHORT_SIZE], where[SL_ADDR_TEXT_SIZE];

	sl_addr_format(where, &p->where.addr);
	sl_log(SL_LOG_INFO, SL_TOPIC_LINK, "down: %s at %s, %s", short_name(name, p->key.xonly), where,
		why[reason]);
}

void
sl_link_log_rerouted(const struct peer *p, const struct sl_addr *to)
{
	char name[SHORT_SIZE], before[SL_ADDR_TEXT_SIZE], where[SL_ADDR_TEXT_SIZE];

	sl_addr_format(before, &p->where.addr);
	sl_addr_format(where, to);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_LINK, "%s%s%s: the port to %s is down, sent to %s from now on",
		short_name(name, p->key.xonly), p->alias[0] ? ", alias " : "", p->alias, before, where);
}

void
sl_links_mtu_tell(const struct sl_links *l, uint32_t peer_id, uint16_t mtu, uint16_t before, const char *why, bool warn)
{
	const struct peer *p = peer_id < l->view->max_peers ? l->peer_of_id[peer_id] : NULL;
	char name[SHORT_SIZE], where[SL_ADDR_TEXT_SIZE];

	if (!p)
		return;
	sl_addr_format(where, &p->where.addr);
	sl_log(warn ? SL_LOG_WARNING : SL_LOG_NOTICE, SL_TOPIC_LINK, "%s%s%s at %s: packets of up to %u bytes, %u before: %s",
		short_name(name, p->key.xonly), p->alias[0] ? ", alias " : "", p->alias, where, mtu, before, why);
}

void
sl_link_log_refused(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], const char *why)
{
	struct sl_node_addr addr;
	struct refused *r = NULL;
	char name[SHORT_SIZE];
	uint64_t hash;

	sl_node_addr_from_xonly(&addr, xonly);
	hash = sl_links_hash_addr16(l, &addr);
	for (unsigned i = 0; i < SL_REFUSED_ENTRIES; i++)
		if (l->refused[i].at_us && l->refused[i].hash == hash)
			r = &l->refused[i];
	if (r && l->now_us < r->at_us + REFUSED_AGAIN_US)
		return;
	if (!r)
		r = &l->refused[l->refused_next++ % SL_REFUSED_ENTRIES];
	r->hash = hash;
	r->at_us = l->now_us;
	sl_log(SL_LOG_NOTICE, SL_TOPIC_LINK, "refused: %s, %s", short_name(name, xonly), why);
}

void
sl_link_log_rekey_failed(struct peer *p, const char *why)
{
	char name[SHORT_SIZE];

	if (p->rekey_failed)
		return;
	p->rekey_failed = true;
	sl_log(SL_LOG_NOTICE, SL_TOPIC_LINK, "rekey failed: %s, %s", short_name(name, p->key.xonly), why);
}
