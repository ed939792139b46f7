/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages about Nostr: what adverts we know, and how the relays do. */
#include <stdlib.h>
#include <time.h>
#include "nat.h"
#include "rendezvous.h"
#include "show_internal.h"
#ifdef SL_HAVE_NOSTR
#include "sl_nostr_service.h"
#endif

static json_t *
off(const char *key)
{
	return json_pack("{s:b,s:[]}", "enabled", 0, key);
}

#ifdef SL_HAVE_NOSTR
/* Why we do not dial an endpoint of a peer's; NULL when we do. */
static const char *
not_dialled(const struct sl_daemon *d, const struct sl_advert_endpoint *e)
{
	if (e->transport == SL_ADVERT_TCP)
		return "tcp";
	if (e->transport == SL_ADVERT_TOR)
		return "tor";
	if (e->nat)
		return sl_nat_transport(d->config) >= 0 ? NULL : "no UDP of ours";
	if (e->family && sl_transport_udp(d->config, -1, e->family) < 0)
		return e->family == 4 ? "no IPv4 of ours" : "no IPv6 of ours";
	return NULL;
}

static json_t *
endpoints(const struct sl_daemon *d, const struct sl_advert *a, bool own)
{
	json_t *list = json_array();

	for (unsigned i = 0; a && i < a->endpoint_count; i++) {
		const struct sl_advert_endpoint *e = &a->endpoints[i];
		const char *why = own ? NULL : not_dialled(d, e);
		json_t *o = json_pack("{s:s,s:s}", "transport", sl_advert_transport_name(e->transport), "addr", e->nat ? "nat" : e->addr);

		if (why)
			json_object_set_new(o, "not_dialled", json_string(why));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *
render_advert(const struct sl_show_job *job, const void *row)
{
	const struct sl_daemon *d = job->d;
	const uint32_t *number = row;
	struct sl_discovery_info i;
	uint64_t unix_s = (uint64_t)time(NULL);
	json_t *o = json_object();

	sl_discovery_info(sl_rendezvous_discovery(d), *number, &i);
	json_object_set_new(o, "npub", sl_json_npub(i.xonly));
	for (uint32_t p = 0; p < d->config->peer_count; p++)
		if (d->config->peers[p].alias[0] && !memcmp(d->config->peers[p].xonly, i.xonly, SL_XONLY_BYTES))
			json_object_set_new(o, "alias", json_string(d->config->peers[p].alias));
	json_object_set_new(o, "known", json_boolean(i.advert != NULL));
	json_object_set_new(o, "endpoints", endpoints(d, i.advert, false));
	if (i.advert) {
		json_object_set_new(o, "made_secs_ago", json_integer((json_int_t)unix_s - (json_int_t)i.advert->created_at));
		json_object_set_new(o, "expires_secs", json_integer((json_int_t)i.advert->valid_until - (json_int_t)unix_s));
	}
	sl_json_age(o, "heard_secs_ago", d, i.heard_us);
	sl_json_age(o, "fetched_secs_ago", d, i.fetched_us);
	sl_json_wait(o, "next_fetch_secs", d, i.next_fetch_us);
	json_object_set_new(o, "last_fetch", json_string(sl_discovery_outcome_name(i.outcome)));
	json_object_set_new(o, "fetches", json_integer((json_int_t)i.fetches));
	json_object_set_new(o, "replaced", json_integer((json_int_t)i.replaced));
	json_object_set_new(o, "evicted", json_integer((json_int_t)i.evicted));
	return o;
}

static json_t *
own_advert(const struct sl_daemon *d)
{
	struct sl_rendezvous_own own;
	json_t *o = json_object();

	sl_rendezvous_own(d, &own);
	json_object_set_new(o, "endpoints", endpoints(d, own.advert, true));
	sl_json_age(o, "published_secs_ago", d, own.published_us);
	sl_json_wait(o, "next_publish_secs", d, own.next_us);
	if (own.why_none)
		json_object_set_new(o, "none_because", json_string(own.why_none));
	return o;
}

bool
sl_show_adverts(struct sl_show_job *job, const json_t *params)
{
	const struct sl_daemon *d = job->d;
	unsigned count = d->rendezvous ? sl_discovery_peers(sl_rendezvous_discovery(d)) : 0;
	uint32_t *rows = calloc(count ? count : 1, sizeof(*rows));

	(void)params;
	if (!rows)
		return false;
	for (unsigned i = 0; i < count; i++)
		rows[i] = i;
	job->key = "adverts";
	job->rows = (char *)rows;
	job->row_size = sizeof(*rows);
	job->count = job->most = count;
	job->render = render_advert;
	job->rest = json_pack("{s:b}", "enabled", d->rendezvous != NULL);
	if (d->rendezvous)
		json_object_set_new(job->rest, "own", own_advert(d));
	return true;
}

static json_t *
relay(const struct sl_daemon *d, const struct sl_nostr_relay_info *i, int64_t skew_us, bool adverts, bool signals)
{
	json_t *o = json_object(), *faults = json_object();

	json_object_set_new(o, "url", json_string(i->url));
	json_object_set_new(o, "state", json_string(sl_nostr_relay_state_name(i->state)));
	json_object_set_new(o, "adverts", json_boolean(adverts));
	json_object_set_new(o, "signals", json_boolean(signals));
	sl_json_age(o, "state_secs", d, i->since_us + (uint64_t)skew_us);
	if (i->state == SL_NOSTR_RELAY_WAITING)
		sl_json_wait(o, "next_attempt_secs", d, i->next_attempt_us + (uint64_t)skew_us);
	if (i->last_heard_us)
		sl_json_age(o, "heard_secs_ago", d, i->last_heard_us + (uint64_t)skew_us);
	if (i->last_error[0]) {
		json_object_set_new(o, "last_error", json_string(i->last_error));
		sl_json_age(o, "last_error_secs_ago", d, i->last_error_us + (uint64_t)skew_us);
	}
	json_object_set_new(o, "failures", json_integer(i->failures));
	json_object_set_new(o, "connects", json_integer(i->connects));
	json_object_set_new(o, "subscriptions", json_integer(i->subscriptions));
	json_object_set_new(o, "subscriptions_closed", json_integer(i->subscriptions_closed));
	json_object_set_new(o, "messages", json_integer((json_int_t)i->messages));
	json_object_set_new(o, "bytes", json_integer((json_int_t)i->bytes));
	json_object_set_new(o, "sent", json_integer((json_int_t)i->sent));
	json_object_set_new(o, "events", json_integer((json_int_t)i->events));
	json_object_set_new(o, "duplicates", json_integer((json_int_t)i->duplicates));
	json_object_set_new(o, "unwanted", json_integer((json_int_t)i->unwanted));
	json_object_set_new(o, "throttled", json_integer((json_int_t)i->throttled));
	json_object_set_new(o, "published", json_integer((json_int_t)i->published));
	json_object_set_new(o, "refused", json_integer((json_int_t)i->refused));
	json_object_set_new(o, "unanswered", json_integer((json_int_t)i->unanswered));
	for (unsigned e = 1; e < SL_NOSTR_ERROR_COUNT; e++)
		if (i->faults[e])
			json_object_set_new(faults, sl_nostr_error_name(e), json_integer((json_int_t)i->faults[e]));
	json_object_set_new(o, "faults", faults);
	return o;
}

json_t *
sl_show_relays(struct sl_daemon *d, const json_t *params)
{
	const struct sl_nostr_relays_report *r;
	uint32_t adverts, signals;
	int64_t skew_us;
	json_t *o, *list;

	(void)params;
	if (!d->rendezvous)
		return off("relays");
	r = sl_rendezvous_relays(d, &skew_us, &adverts, &signals);
	o = json_object();
	list = json_array();
	json_object_set_new(o, "enabled", json_true());
	for (unsigned i = 0; r && i < r->count; i++)
		json_array_append_new(list, relay(d, &r->relays[i], skew_us, adverts >> i & 1, signals >> i & 1));
	json_object_set_new(o, "relays", list);
	if (r) {
		json_object_set_new(o, "sockets", json_integer(r->sockets));
		json_object_set_new(o, "subscriptions", json_integer(r->subscriptions));
		json_object_set_new(o, "publications", json_integer(r->publications));
		json_object_set_new(o, "events_rejected", json_integer((json_int_t)r->rejected));
		json_object_set_new(o, "reports_dropped", json_integer((json_int_t)r->reports_dropped));
		json_object_set_new(o, "cpu_ms", json_integer((json_int_t)(r->cpu_us / 1000)));
	}
	return o;
}
#else
bool
sl_show_adverts(struct sl_show_job *job, const json_t *params)
{
	(void)params;
	job->key = "adverts";
	job->rest = json_pack("{s:b}", "enabled", 0);
	return job->rest != NULL;
}

json_t *
sl_show_relays(struct sl_daemon *d, const json_t *params)
{
	(void)d;
	(void)params;
	return off("relays");
}
#endif
