/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"
#include "nat.h"
#include "rendezvous_own.h"
#include "signals.h"
#include "sl_nostr_service.h"
#include "../../lib/overlay/nostr/sl_nostr_url.h"

#define REPORTS_A_TURN 16u
#define APPLY_GAP_US 5000000u /* a peer that changes its advert all the time is followed this often */
#define TAG_ADVERT 1u
#define TAG_SIGNAL 2u
#define TAG_INBOX 3u
#define SLOT_ADVERT 1u
#define SLOT_INBOX 2u

struct peer {
	int number; /* in the discovery; -1: not looked for */
	uint64_t applied_us;
	bool dirty;
	uint64_t inbox_at;   /* when its list of kind 10050 was made; 0: not known */
	uint32_t inbox_mask; /* relays of ours that stand in it */
};

struct sl_rendezvous {
	struct sl_nostr_service *service;
	struct sl_discovery *discovery;
	char urls[SL_NOSTR_RELAYS_MAX][SL_NOSTR_URL_SIZE];
	unsigned url_count;
	uint32_t advert_mask, dm_mask;
	struct peer *peers;   /* per configured peer */
	uint32_t *conf_peers; /* per number of the discovery */
	struct sl_advert own;
	uint64_t published_us, next_us;
	const char *why_none;
	bool told_accepted;
	struct sl_own_published *published;
	struct sl_nostr_relays_report *relays;
	int64_t skew_us;
	enum sl_nostr_relay_state told[SL_NOSTR_RELAYS_MAX]; /* what the log has said */
	bool told_failed[SL_NOSTR_RELAYS_MAX];
};

static void
now(const struct sl_daemon *d, struct sl_nostr_time *t)
{
	t->us = d->now_us;
	t->unix_s = (uint64_t)time(NULL);
}

/* --- on the service's thread: nothing here but constants and what comes in -------------------- */

static void *
convert(void *arg, uint32_t tag, const struct sl_nostr_event *e, uint64_t now_unix_s)
{
	const struct sl_daemon *d = arg; /* its configuration and identity alone */
	struct sl_advert *a;

	if (tag == TAG_SIGNAL)
		return sl_signal_unwrap(e, d->identity);
	if (tag == TAG_INBOX)
		return sl_signal_inbox(e);
	a = malloc(sizeof(*a));
	if (a && sl_advert_parse(a, e, d->config->nostr.app, d->config->nostr.advert_ttl_secs, now_unix_s)) {
		free(a);
		a = NULL;
	}
	return a;
}

/* --- our advert ------------------------------------------------------------------------------- */

static int
publish(struct sl_daemon *d, uint32_t slot, uint32_t mask,
	int (*make)(void *, struct sl_nostr_event *, const struct sl_identity *, uint64_t))
{
	struct sl_own_job *j = sl_own_job_new(d->config, &d->rendezvous->own, d->rendezvous->published);
	int rc = j ? sl_nostr_service_publish(d->rendezvous->service, slot, mask, make, free, j) : -ENOMEM;

	if (rc)
		free(j);
	return rc;
}

/* Publishes when there is something new to say, or when it is time to say it again. */
static void
keep_published(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	struct sl_advert own;
	bool changed;
	char text[400];

	if (!d->config->nostr.advertise || !r->advert_mask) {
		r->why_none = sl_own_why_none(d);
		return;
	}
	sl_own_endpoints(d, &own);
	changed = !sl_advert_same_endpoints(&own, &r->own);
	if (!changed && (!own.endpoint_count || d->now_us < r->next_us))
		return;
	r->own = own;
	if (!own.endpoint_count) {
		r->why_none = sl_own_why_none(d);
		(void)!sl_nostr_service_publish_end(r->service, SLOT_ADVERT);
		if (!publish(d, 0, r->advert_mask, sl_own_make_withdrawal))
			sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "our advert is withdrawn: %s", r->why_none);
		return;
	}
	r->why_none = NULL;
	if (publish(d, SLOT_ADVERT, r->advert_mask, sl_own_make_advert)) {
		memset(&r->own, 0, sizeof(r->own)); /* the next second tries again */
		return;
	}
	r->published_us = d->now_us;
	r->next_us = d->now_us + d->config->nostr.advert_refresh_secs * 1000000;
	if (changed) {
		sl_own_endpoints_text(text, sizeof(text), &own);
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "our advert says: %s", text);
	}
}

/* --- peers ------------------------------------------------------------------------------------ */

static void
on_changed(void *arg, unsigned number, const struct sl_advert *advert)
{
	struct sl_daemon *d = arg;
	struct sl_rendezvous *r = d->rendezvous;
	uint32_t i = r->conf_peers[number];
	char npub[SL_NPUB_SIZE], text[400];
	const char *name = d->config->peers[i].alias;

	r->peers[i].dirty = true;
	if (!name[0]) {
		sl_npub_format(npub, d->config->peers[i].xonly);
		name = npub;
	}
	if (advert) {
		sl_own_endpoints_text(text, sizeof(text), advert);
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "peer %s: its advert says: %s", name, text);
	} else {
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "peer %s: its advert is gone", name);
	}
}

/* What has changed reaches the links: at once, and then not more often than every few seconds. */
static void
apply(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;

	for (uint32_t i = 0; i < d->config->peer_count; i++) {
		struct peer *p = &r->peers[i];

		if (!p->dirty || (p->applied_us && d->now_us - p->applied_us < APPLY_GAP_US))
			continue;
		p->dirty = false;
		p->applied_us = d->now_us;
		sl_peers_discovered(d, i);
		sl_nat_advert(d, i);
	}
}

static void
ask(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	uint8_t keys[SL_DISCOVERY_BATCH * SL_XONLY_BYTES];
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = keys, .d = SL_ADVERT_D, .limit = -1};
	struct sl_nostr_time t;
	uint32_t tag;

	now(d, &t);
	f.author_count = sl_discovery_fetch_due(r->discovery, keys, &tag, &t);
	if (!f.author_count)
		return;
	if (sl_nostr_service_fetch(r->service, TAG_ADVERT, tag, &f, r->advert_mask, SL_DISCOVERY_FETCH_US))
		sl_discovery_fetched(r->discovery, tag, NULL, &t);
}

/* Signals for us, from now on, and where peers behind NATs listen for theirs. */
static int
subscribe_signals(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	uint8_t keys[SL_NOSTR_FILTER_AUTHORS * SL_XONLY_BYTES];
	struct sl_nostr_filter signals = {.kinds = {SL_KIND_WRAP}, .kind_count = 1, .p = sl_identity_xonly(d->identity), .limit = 0};
	struct sl_nostr_filter lists = {.kinds = {SL_INBOX_KIND}, .kind_count = 1, .authors = keys, .limit = -1};
	int rc = sl_nostr_service_subscribe(r->service, TAG_SIGNAL, &signals, r->dm_mask);

	for (uint32_t i = 0; !rc && i < d->config->peer_count; i++) {
		if (r->peers[i].number >= 0 || sl_nat_configured(&d->config->peers[i]))
			memcpy(keys + SL_XONLY_BYTES * (size_t)lists.author_count++, d->config->peers[i].xonly, SL_XONLY_BYTES);
		if (lists.author_count && (lists.author_count == SL_NOSTR_FILTER_AUTHORS || i + 1 == d->config->peer_count)) {
			rc = sl_nostr_service_subscribe(r->service, TAG_INBOX, &lists, r->dm_mask | r->advert_mask);
			lists.author_count = 0;
		}
	}
	return rc;
}

static bool
is_open(const struct sl_daemon *d)
{
	return d->config->nostr.policy == SL_CONF_ADVERTS_OPEN;
}

static int
subscribe(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	unsigned count = sl_discovery_peers(r->discovery), n;
	uint8_t keys[SL_NOSTR_FILTER_AUTHORS * SL_XONLY_BYTES];
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = keys, .d = SL_ADVERT_D, .limit = -1};
	int rc = 0;

	if (is_open(d))
		rc = sl_nostr_service_subscribe(r->service, TAG_ADVERT, &f, r->advert_mask);
	/*
	 * Of those alone that we look for: the rest of the mesh costs us nothing. Also where all are heard: of all a relay need not
	 * give every one that it has.
	 */
	for (unsigned first = 0; !rc && first < count; first += n) {
		n = count - first < SL_NOSTR_FILTER_AUTHORS ? count - first : SL_NOSTR_FILTER_AUTHORS;
		for (unsigned i = 0; i < n; i++)
			memcpy(keys + i * (size_t)SL_XONLY_BYTES, sl_discovery_key(r->discovery, first + i), SL_XONLY_BYTES);
		f.author_count = n;
		rc = sl_nostr_service_subscribe(r->service, TAG_ADVERT, &f, r->advert_mask);
	}
	return rc;
}

/* --- reports ---------------------------------------------------------------------------------- */

/* One line for each change of a relay's state: there, lost, cannot be reached. */
static void
tell_relay(struct sl_rendezvous *r, unsigned i, const struct sl_nostr_relay_info *info, uint64_t now_us)
{
	if (info->state == SL_NOSTR_RELAY_OPEN && r->told[i] != SL_NOSTR_RELAY_OPEN) {
		r->told[i] = SL_NOSTR_RELAY_OPEN;
		r->told_failed[i] = false;
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "relay %s: connected", info->url);
	} else if (info->state == SL_NOSTR_RELAY_WAITING && info->failures &&
		   (r->told[i] == SL_NOSTR_RELAY_OPEN || !r->told_failed[i])) {
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "relay %s: %s: %s; next attempt in %.0f s", info->url,
			r->told[i] == SL_NOSTR_RELAY_OPEN ? "lost" : "not reached", info->last_error,
			info->next_attempt_us > now_us ? (double)(info->next_attempt_us - now_us) / 1e6 : 0.0);
		r->told[i] = SL_NOSTR_RELAY_WAITING;
		r->told_failed[i] = true;
	}
}

static void
take_relays(struct sl_daemon *d, struct sl_nostr_relays_report *report)
{
	struct sl_rendezvous *r = d->rendezvous;
	uint64_t accepted = 0;

	free(r->relays);
	r->relays = report;
	r->skew_us = (int64_t)(d->now_us - report->now_us);
	for (unsigned i = 0; i < report->count; i++) {
		tell_relay(r, i, &report->relays[i], report->now_us);
		accepted += report->relays[i].published;
	}
	if (accepted && !r->told_accepted && r->own.endpoint_count) {
		r->told_accepted = true;
		sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "our advert is published");
	}
}

/* Which of our relays a list names. */
static uint32_t
mask_of(const struct sl_rendezvous *r, const char (*urls)[SL_ADVERT_TEXT_SIZE], unsigned count)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < r->url_count; k++)
			if (sl_nostr_url_same(r->urls[k], urls[i]))
				mask |= UINT32_C(1) << k;
	return mask;
}

static int
conf_peer_of(const struct sl_daemon *d, const uint8_t xonly[SL_XONLY_BYTES])
{
	for (uint32_t i = 0; i < d->config->peer_count; i++)
		if (!memcmp(d->config->peers[i].xonly, xonly, SL_XONLY_BYTES))
			return (int)i;
	return -1;
}

static void
take_inbox(struct sl_daemon *d, struct sl_signal_inbox *inbox)
{
	struct sl_rendezvous *r = d->rendezvous;
	const int i = conf_peer_of(d, inbox->author);

	if (i >= 0 && inbox->created_at >= r->peers[i].inbox_at) {
		r->peers[i].inbox_at = inbox->created_at;
		r->peers[i].inbox_mask = mask_of(r, (const char (*)[SL_ADVERT_TEXT_SIZE])inbox->urls, inbox->count);
	}
	free(inbox);
}

/* Ownership passes. */
static void
take_advert(struct sl_daemon *d, struct sl_advert *a, const struct sl_nostr_time *t)
{
	if (!is_open(d) || conf_peer_of(d, a->pubkey) >= 0) {
		(void)sl_discovery_advert(d->rendezvous->discovery, a, t);
		return;
	}
	sl_meet_advert(d, a, t->unix_s);
	free(a);
}

/* Ownership passes. */
static void
take_event(struct sl_daemon *d, uint32_t tag, void *object, const struct sl_nostr_time *t)
{
	struct sl_signal_text *text = object;

	switch (tag) {
	case TAG_SIGNAL:
		sl_nat_heard(d, text->author, text->text, text->len);
		free(text);
		break;
	case TAG_INBOX:
		take_inbox(d, object);
		break;
	default:
		take_advert(d, object, t);
	}
}

bool
sl_rendezvous_work(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	struct sl_nostr_report report;
	struct sl_nostr_time t;
	unsigned n = 0;
	uint64_t count;

	if (!r)
		return false;
	(void)!read(sl_nostr_service_fd(r->service), &count, sizeof(count));
	now(d, &t);
	while (n < REPORTS_A_TURN && sl_nostr_service_next(r->service, &report)) {
		n++;
		switch (report.type) {
		case SL_NOSTR_REPORT_EVENT:
			take_event(d, report.tag, report.object, &t);
			break;
		case SL_NOSTR_REPORT_FETCHED:
			sl_discovery_fetched(r->discovery, report.token, &report.result, &t);
			break;
		case SL_NOSTR_REPORT_RELAYS:
			take_relays(d, report.relays);
			break;
		}
	}
	apply(d);
	return n == REPORTS_A_TURN;
}

void
sl_rendezvous_second(struct sl_daemon *d)
{
	struct sl_nostr_time t;

	if (!d->rendezvous)
		return;
	now(d, &t);
	sl_discovery_tick(d->rendezvous->discovery, &t);
	keep_published(d);
	ask(d);
	apply(d);
}

/* --- up and down ------------------------------------------------------------------------------ */

static void
add_relay(struct sl_rendezvous *r, const char *url, uint32_t *mask)
{
	for (unsigned i = 0; i < r->url_count; i++)
		if (sl_nostr_url_same(r->urls[i], url)) {
			*mask |= UINT32_C(1) << i;
			return;
		}
	snprintf(r->urls[r->url_count], sizeof(r->urls[0]), "%s", url);
	*mask |= UINT32_C(1) << r->url_count++;
}

static int
make_peers(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	uint32_t count = d->config->peer_count;

	r->peers = calloc(count ? count : 1, sizeof(*r->peers));
	r->conf_peers = calloc(count ? count : 1, sizeof(*r->conf_peers));
	r->published = calloc(1, sizeof(*r->published));
	r->discovery = sl_discovery_create(count, on_changed, d);
	if (!r->peers || !r->conf_peers || !r->published || !r->discovery)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct sl_conf_peer *p = &d->config->peers[i];

		r->peers[i].number = -1;
		if (!p->via_nostr || d->config->nostr.policy == SL_CONF_ADVERTS_DISABLED ||
			!memcmp(p->xonly, sl_identity_xonly(d->identity), SL_XONLY_BYTES))
			continue;
		r->peers[i].number = sl_discovery_peer_add(r->discovery, p->xonly);
		if (r->peers[i].number >= 0)
			r->conf_peers[r->peers[i].number] = i;
	}
	return 0;
}

static int
start_service(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;
	const char *urls[SL_NOSTR_RELAYS_MAX];
	struct sl_nostr_service_config c = {.urls = urls, .url_count = r->url_count, .identity = d->identity,
		.ca_file = d->config->dataplane.nostr_ca_file[0] ? d->config->dataplane.nostr_ca_file : NULL,
		.convert = convert, .arg = d};
	cpu_set_t cpus;

	for (unsigned i = 0; i < r->url_count; i++)
		urls[i] = r->urls[i];
	/* Anywhere but where workers poll; where nothing is left, beside control at a lower priority. */
	CPU_ZERO(&cpus);
	for (int i = 0; i < get_nprocs_conf() && i < CPU_SETSIZE; i++)
		CPU_SET(i, &cpus);
	for (unsigned i = 0; i < d->plan.workers; i++)
		CPU_CLR(d->plan.worker_cpus[i], &cpus);
	if (CPU_COUNT(&cpus))
		c.cpus = &cpus;
	r->service = sl_nostr_service_start(&c);
	return r->service ? 0 : -errno;
}

int
sl_rendezvous_start(struct sl_daemon *d)
{
	struct sl_rendezvous *r;
	int rc;

	if (!d->config->nostr.enabled)
		return 0;
	r = d->rendezvous = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->config->nostr.advert_relay_count; i++)
		add_relay(r, d->config->nostr.advert_relays[i].text, &r->advert_mask);
	for (uint32_t i = 0; i < d->config->nostr.dm_relay_count; i++)
		add_relay(r, d->config->nostr.dm_relays[i].text, &r->dm_mask);
	rc = make_peers(d);
	if (!rc)
		rc = start_service(d);
	if (!rc && r->advert_mask)
		rc = subscribe(d);
	if (!rc && r->dm_mask)
		rc = publish(d, SLOT_INBOX, r->dm_mask, sl_own_make_inbox);
	if (!rc && r->dm_mask)
		rc = subscribe_signals(d);
	if (rc) {
		if (rc == -EIO && d->config->dataplane.nostr_ca_file[0])
			sl_log(SL_LOG_ERROR, SL_TOPIC_APP,
				"Nostr relays: TLS cannot be set up: is there a certificate in dataplane.nostr_ca_file, '%s', and may it "
				"be read?",
				d->config->dataplane.nostr_ca_file);
		else
			sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "Nostr relays: %s",
				rc == -EIO ? "TLS cannot be set up" : strerror(-rc));
		return rc;
	}
	sl_log(SL_LOG_NOTICE, SL_TOPIC_APP, "Nostr: %u relay(s), %u peer(s) looked for%s", r->url_count,
		sl_discovery_peers(r->discovery), is_open(d) ? ", and any node that advertises" : "");
	return 0;
}

void
sl_rendezvous_stop(struct sl_daemon *d)
{
	struct sl_rendezvous *r = d->rendezvous;

	if (!r)
		return;
	if (r->service && r->own.endpoint_count)
		(void)!publish(d, 0, r->advert_mask, sl_own_make_withdrawal);
	sl_nostr_service_stop(r->service);
	sl_discovery_destroy(r->discovery);
	free(r->relays);
	free(r->published);
	free(r->peers);
	free(r->conf_peers);
	free(r);
	d->rendezvous = NULL;
}

/* --- what others ask -------------------------------------------------------------------------- */

int
sl_rendezvous_fd(const struct sl_daemon *d)
{
	return d->rendezvous ? sl_nostr_service_fd(d->rendezvous->service) : -1;
}

const struct sl_advert *
sl_rendezvous_advert(const struct sl_daemon *d, uint32_t conf_peer)
{
	const struct sl_rendezvous *r = d->rendezvous;

	return r && r->peers[conf_peer].number >= 0
		       ? sl_discovery_lookup(r->discovery, (unsigned)r->peers[conf_peer].number)
		       : NULL;
}

void
sl_rendezvous_expect_dial(struct sl_daemon *d, uint32_t conf_peer, uint64_t dial_us)
{
	struct sl_rendezvous *r = d->rendezvous;

	if (r && r->peers[conf_peer].number >= 0)
		sl_discovery_expect_dial(r->discovery, (unsigned)r->peers[conf_peer].number, dial_us);
}

static unsigned
open_relays(const struct sl_rendezvous *r, uint32_t mask)
{
	unsigned n = 0;

	for (unsigned i = 0; r->relays && i < r->relays->count; i++)
		n += (mask >> i & 1) && r->relays->relays[i].state == SL_NOSTR_RELAY_OPEN;
	return n;
}

bool
sl_rendezvous_listening(const struct sl_daemon *d)
{
	return d->rendezvous && open_relays(d->rendezvous, d->rendezvous->dm_mask);
}

/* Peering facts, 9: where the peer listens, its advert's relays, our own; of them those that we are connected to anyway. */
int
sl_rendezvous_signal(struct sl_daemon *d, const uint8_t xonly[SL_XONLY_BYTES], const char *text)
{
	struct sl_rendezvous *r = d->rendezvous;
	const int i = conf_peer_of(d, xonly);
	const struct sl_advert *a = i >= 0 ? sl_rendezvous_advert(d, (uint32_t)i) : NULL;
	/* Of who has said nothing about where it listens, any relay of ours may be the common one. */
	uint32_t mask = i >= 0 && r->peers[i].inbox_at ? r->dm_mask | r->peers[i].inbox_mask : r->dm_mask | r->advert_mask;
	struct sl_signal_job *job;
	unsigned open;
	int rc;

	if (a)
		mask |= mask_of(r, a->signal_relays, a->signal_relay_count);
	open = open_relays(r, mask);
	if (!open)
		return -ENOTCONN;
	job = sl_signal_job_new(xonly, text, d->config->nostr.signal_ttl_secs);
	if (!job)
		return -ENOMEM;
	rc = sl_nostr_service_publish(r->service, 0, mask, sl_signal_make, free, job);
	if (rc) {
		free(job);
		return rc;
	}
	return (int)open;
}

void
sl_rendezvous_own(const struct sl_daemon *d, struct sl_rendezvous_own *out)
{
	const struct sl_rendezvous *r = d->rendezvous;

	out->advert = r->own.endpoint_count ? &r->own : NULL;
	out->published_us = r->published_us;
	out->next_us = out->advert ? r->next_us : 0;
	out->why_none = out->advert ? NULL : r->why_none;
}

const struct sl_discovery *
sl_rendezvous_discovery(const struct sl_daemon *d)
{
	return d->rendezvous->discovery;
}

const struct sl_nostr_relays_report *
sl_rendezvous_relays(const struct sl_daemon *d, int64_t *skew_us, uint32_t *advert_mask, uint32_t *dm_mask)
{
	const struct sl_rendezvous *r = d->rendezvous;

	*skew_us = r->skew_us;
	*advert_mask = r->advert_mask;
	*dm_mask = r->dm_mask;
	return r->relays;
}
