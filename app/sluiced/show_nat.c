/* SPDX-License-Identifier: BSD-3-Clause */
/* The page about NAT traversal: what we look like from outside, and how it stands with each peer. */
#include "nat.h"
#include "show_internal.h"

static json_t *
addr_json(const struct sl_addr *a)
{
	char text[SL_ADDR_TEXT_SIZE];

	if (a->kind == SL_ADDR_NONE)
		return json_null();
	sl_addr_format(text, a);
	return json_string(text);
}

static json_t *
age_json(const struct sl_daemon *d, uint64_t then_us)
{
	return then_us ? json_real(sl_age_s(d, then_us)) : json_null();
}

static json_t *
text_json(const char *text)
{
	return text && text[0] ? json_string(text) : json_null();
}

struct peers {
	struct sl_daemon *d;
	json_t *list;
};

static void
add_peer(void *arg, const struct sl_traversal_info *info)
{
	struct peers *p = arg;
	const uint64_t now_us = p->d->now_us;
	json_t *o = json_object();

	json_object_set_new(o, "npub", sl_json_npub(info->xonly));
	json_object_set_new(o, "name", json_string(info->name));
	json_object_set_new(o, "wanted", json_boolean(info->wanted));
	json_object_set_new(o, "state", json_string(info->state));
	json_object_set_new(o, "role", text_json(info->role));
	json_object_set_new(o, "state_age_secs", age_json(p->d, info->state_us));
	json_object_set_new(o, "next_attempt_secs",
		!info->next_us ? json_null() : json_real(info->next_us > now_us ? (double)(info->next_us - now_us) / 1e6 : 0.0));
	json_object_set_new(o, "attempts", json_integer(info->attempts));
	json_object_set_new(o, "failures", json_integer(info->failures));
	json_object_set_new(o, "last_error", text_json(info->last_error));
	json_object_set_new(o, "last_error_age_secs", age_json(p->d, info->last_error_us));
	json_object_set_new(o, "path", addr_json(&info->remote));
	json_object_set_new(o, "punched_age_secs", age_json(p->d, info->last_punched_us));
	json_object_set_new(o, "clock_skew_ms", info->has_skew ? json_integer(info->skew_ms) : json_null());
	json_array_append_new(p->list, o);
}

static json_t *
observation(struct sl_daemon *d)
{
	struct sl_traversal_observation o;

	sl_traversal_observed(sl_nat_traversal(d), &o);
	return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "nat", o.nat_name, "address", addr_json(&o.mapped), "server",
		text_json(o.server), "age_secs", age_json(d, o.mapped_us), "last_error", text_json(o.error), "tried_age_secs",
		age_json(d, o.tried_us));
}

json_t *
sl_show_traversal(struct sl_daemon *d, const json_t *params)
{
	const struct sl_traversal *t = sl_nat_traversal(d);
	struct peers p = {.d = d, .list = json_array()};
	json_t *counters = json_object(), *refused = json_object();
	char name[SL_CONF_NAME_SIZE * 2];

	(void)params;
	if (!t)
		return json_pack("{s:b,s:o,s:o,s:o}", "enabled", false, "peers", p.list, "counters", counters, "signals_refused",
			refused);
	sl_traversal_for_each(t, add_peer, &p);
	for (unsigned i = 0; i < SL_TRAVERSAL_COUNTER_COUNT; i++)
		json_object_set_new(counters, sl_traversal_counter_name((enum sl_traversal_counter)i),
			json_integer((json_int_t)sl_traversal_counters(t)[i]));
	for (unsigned i = SL_NAT_SIGNAL_OK + 1; i < SL_NAT_SIGNAL_ERROR_COUNT; i++)
		json_object_set_new(refused, sl_nat_signal_error_name((enum sl_nat_signal_error)i),
			json_integer((json_int_t)sl_traversal_signal_errors(t)[i]));
	return json_pack("{s:b,s:s,s:o,s:o,s:o,s:o}", "enabled", true, "transport",
		sl_transport_name(d->config, (uint8_t)sl_nat_transport(d->config), name), "outside", observation(d), "peers",
		p.list, "counters", counters, "signals_refused", refused);
}
