/* SPDX-License-Identifier: BSD-3-Clause */
/* The page about what the links' paths carry. */
#include <stdlib.h>
#include "path_mtu.h"
#include "show_internal.h"

struct mtu_row {
	uint8_t xonly[SL_XONLY_BYTES];
	char alias[SL_ALIAS_SIZE];
	struct sl_addr addr;
	struct sl_plpmtu_info mtu;
};

struct copy {
	const struct sl_daemon *d;
	struct mtu_row *rows;
	uint32_t count;
};

static void
add(void *arg, const struct sl_link_info *info)
{
	struct copy *c = arg;
	struct mtu_row *r = &c->rows[c->count];

	if (info->peer_id == SL_PEER_NONE || c->count == c->d->max_peers ||
		!sl_plpmtu_lookup(c->d->plpmtu, info->peer_id, &r->mtu))
		return;
	memcpy(r->xonly, info->xonly, SL_XONLY_BYTES);
	memcpy(r->alias, info->alias, SL_ALIAS_SIZE);
	r->addr = info->addr;
	c->count++;
}

static json_t *
render(const struct sl_show_job *job, const void *row)
{
	const struct sl_daemon *d = job->d;
	const struct mtu_row *r = row;
	json_t *o = json_object();
	char text[SL_ADDR_TEXT_SIZE];

	sl_addr_format(text, &r->addr);
	json_object_set_new(o, "npub", sl_json_npub(r->xonly));
	json_object_set_new(o, "name", r->alias[0] ? json_string(r->alias) : json_null());
	json_object_set_new(o, "remote_addr", json_string(text));
	json_object_set_new(o, "mtu", json_integer(r->mtu.mtu));
	json_object_set_new(o, "ceiling", json_integer(r->mtu.ceiling));
	json_object_set_new(o, "floor", json_integer(r->mtu.floor));
	json_object_set_new(o, "reason", json_string(sl_plpmtu_reason_text(r->mtu.reason)));
	json_object_set_new(o, "state", json_string(r->mtu.state));
	sl_json_age(o, "since_secs", d, r->mtu.since_us);
	sl_json_age(o, "answered_secs_ago", d, r->mtu.answered_us);
	sl_json_wait(o, "next_secs", d, r->mtu.next_us);
	json_object_set_new(o, "lowered", json_integer(r->mtu.lowered));
	json_object_set_new(o, "raised", json_integer(r->mtu.raised));
	return o;
}

bool
sl_show_mtu(struct sl_show_job *job, const json_t *params)
{
	struct copy c = {.d = job->d, .rows = calloc(job->d->max_peers, sizeof(*c.rows))};

	(void)params;
	if (!c.rows)
		return false;
	if (job->d->plpmtu)
		sl_links_for_each(job->d->links, add, &c);
	job->key = "paths";
	job->rows = (char *)c.rows;
	job->row_size = sizeof(*c.rows);
	job->count = job->most = c.count;
	job->render = render;
	job->rest = json_pack("{s:b}", "enabled", job->d->plpmtu != NULL);
	return true;
}

json_t *
sl_show_mtu_counters(const struct sl_daemon *d)
{
	json_t *o = json_object();

	for (unsigned i = 0; d->plpmtu && i < SL_PLPMTU_COUNTER_COUNT; i++)
		json_object_set_new(o, sl_plpmtu_counter_name((enum sl_plpmtu_counter)i),
			json_integer((json_int_t)sl_plpmtu_counters(d->plpmtu)[i]));
	return o;
}
