/* SPDX-License-Identifier: BSD-3-Clause */
/* The page about nodes that were found, and the counters of finding. */
#include <stdlib.h>
#include "meet.h"
#include "show_internal.h"

static json_t *
render(const struct sl_show_job *job, const void *row)
{
	const struct sl_daemon *d = job->d;
	const struct sl_found_info *i = row;
	json_t *o = json_object(), *addrs = json_array();
	char text[SL_ADDR_TEXT_SIZE], name[SL_CONF_NAME_SIZE * 2];

	for (unsigned n = 0; n < i->addr_count; n++) {
		sl_addr_format(text, &i->addrs[n]);
		json_array_append_new(addrs, json_string(text));
	}
	json_object_set_new(o, "npub", sl_json_npub(i->xonly));
	json_object_set_new(o, "source", json_string(sl_found_source_name(i->source)));
	json_object_set_new(o, "state", json_string(sl_found_state_name(i->state)));
	json_object_set_new(o, "transport", json_string(sl_transport_name(d->config, i->addrs[0].transport, name)));
	json_object_set_new(o, "addresses", addrs);
	sl_json_age(o, "first_secs_ago", d, i->first_us);
	sl_json_age(o, "heard_secs_ago", d, i->heard_us);
	sl_json_wait(o, "expires_secs", d, i->expires_us);
	sl_json_wait(o, "next_dial_secs", d, i->next_dial_us);
	json_object_set_new(o, "dials", json_integer(i->dials));
	json_object_set_new(o, "failures", json_integer(i->failures));
	if (i->last_error) {
		json_object_set_new(o, "last_error", json_string(i->last_error));
		sl_json_age(o, "last_error_secs_ago", d, i->last_error_us);
	}
	return o;
}

struct copy {
	struct sl_found_info *rows;
	uint32_t count, room;
};

static void
add(void *arg, const struct sl_found_info *info)
{
	struct copy *c = arg;

	if (c->count < c->room)
		c->rows[c->count++] = *info;
}

bool
sl_show_found(struct sl_show_job *job, const json_t *params)
{
	const struct sl_found *f = sl_meet_found(job->d);
	struct copy c = {.room = f ? sl_found_count(f) : 0};
	char scope[SL_MDNS_SCOPE_SIZE];

	(void)params;
	c.rows = calloc(c.room ? c.room : 1, sizeof(*c.rows));
	if (!c.rows)
		return false;
	if (f)
		sl_found_for_each(f, add, &c);
	job->key = "found";
	job->rows = (char *)c.rows;
	job->row_size = sizeof(*c.rows);
	job->count = job->most = c.count;
	job->render = render;
	sl_meet_scope(job->d->config, scope);
	job->rest = json_pack("{s:b,s:b,s:b}", "enabled", f != NULL, "mdns", sl_meet_lan(job->d) != NULL, "open",
		job->d->config->nostr.enabled && job->d->config->nostr.policy == SL_CONF_ADVERTS_OPEN);
	if (sl_meet_lan(job->d))
		json_object_set_new(job->rest, "scope", json_string(scope));
	return true;
}

json_t *
sl_show_found_counters(const struct sl_daemon *d)
{
	json_t *o = json_object();

	for (unsigned i = 0; sl_meet_found(d) && i < SL_FOUND_COUNTER_COUNT; i++)
		json_object_set_new(o, sl_found_counter_name((enum sl_found_counter)i),
			json_integer((json_int_t)sl_found_counters(sl_meet_found(d))[i]));
	for (unsigned i = 0; sl_meet_lan(d) && i < SL_LAN_COUNTER_COUNT; i++)
		json_object_set_new(o, sl_lan_counter_name((enum sl_lan_counter)i),
			json_integer((json_int_t)sl_lan_counters(sl_meet_lan(d))[i]));
	return o;
}
