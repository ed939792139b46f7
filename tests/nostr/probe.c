/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Nostr client without a daemon, for tests/nostr/nostr_test.py. One JSON object a line on standard output.
 *
 *	probe watch SECONDS CA|- AUTHOR_HEX URL ...	the service's thread: subscribes to the author's adverts, fetches each second
 *	probe advert SECRET CA|- URL ... -- udp:ADDR ...	publishes an advert of that key; ends when a relay has taken it
 *	probe make SECRET|- COUNT UNIX_S udp:ADDR	prints that many signed adverts, a second apart; -: each of a node of its own
 *	probe reconnect COUNT CA|- URL ...		client and sockets in this thread, back-off waits skipped: until that many
 *							connections
 */
#include "sl_advert.h"
#include "sl_nostr_service.h"
#include "ws.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAG 1u
#define SECOND 1000000u

static void
now(struct sl_nostr_time *t)
{
	struct timespec m;

	clock_gettime(CLOCK_MONOTONIC, &m);
	t->us = (uint64_t)m.tv_sec * SECOND + (uint64_t)m.tv_nsec / 1000;
	t->unix_s = (uint64_t)time(NULL);
}

static unsigned
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static long
resident_kib(void)
{
	long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void
say(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);

	puts(text);
	fflush(stdout);
	free(text);
	json_decref(o);
}

static json_t *
relay_json(const struct sl_nostr_relay_info *i)
{
	json_t *o = json_object(), *faults = json_object();

	json_object_set_new(o, "url", json_string(i->url));
	json_object_set_new(o, "state", json_string(sl_nostr_relay_state_name(i->state)));
	json_object_set_new(o, "error", json_string(i->last_error));
	json_object_set_new(o, "connects", json_integer(i->connects));
	json_object_set_new(o, "failures", json_integer(i->failures));
	json_object_set_new(o, "messages", json_integer((json_int_t)i->messages));
	json_object_set_new(o, "bytes", json_integer((json_int_t)i->bytes));
	json_object_set_new(o, "duplicates", json_integer((json_int_t)i->duplicates));
	json_object_set_new(o, "unwanted", json_integer((json_int_t)i->unwanted));
	json_object_set_new(o, "throttled", json_integer((json_int_t)i->throttled));
	json_object_set_new(o, "published", json_integer((json_int_t)i->published));
	json_object_set_new(o, "sent", json_integer((json_int_t)i->sent));
	json_object_set_new(o, "closed", json_integer(i->subscriptions_closed));
	for (unsigned e = 1; e < SL_NOSTR_ERROR_COUNT; e++)
		if (i->faults[e])
			json_object_set_new(faults, sl_nostr_error_name(e), json_integer((json_int_t)i->faults[e]));
	json_object_set_new(o, "faults", faults);
	return o;
}

static void
say_relays(const struct sl_nostr_relays_report *r)
{
	json_t *o = json_object(), *list = json_array();

	for (unsigned i = 0; i < r->count; i++)
		json_array_append_new(list, relay_json(&r->relays[i]));
	json_object_set_new(o, "relays", list);
	json_object_set_new(o, "sockets", json_integer(r->sockets));
	json_object_set_new(o, "subscriptions", json_integer(r->subscriptions));
	json_object_set_new(o, "dropped", json_integer((json_int_t)r->reports_dropped));
	json_object_set_new(o, "cpu_us", json_integer((json_int_t)r->cpu_us));
	json_object_set_new(o, "rss_kib", json_integer(resident_kib()));
	json_object_set_new(o, "files", json_integer(open_files()));
	say(o);
}

static void *
convert(void *arg, uint32_t tag, const struct sl_nostr_event *e, uint64_t unix_s)
{
	struct sl_advert *a = malloc(sizeof(*a));

	(void)arg;
	(void)tag;
	if (a && sl_advert_parse(a, e, SL_ADVERT_D, 3600, unix_s)) {
		free(a);
		a = NULL;
	}
	return a;
}

static void
take(struct sl_nostr_report *r)
{
	struct sl_advert *a = r->object;

	switch (r->type) {
	case SL_NOSTR_REPORT_EVENT:
		say(json_pack("{s:i,s:I,s:s,s:i}", "advert", (int)r->relay, "created_at", (json_int_t)a->created_at, "addr",
			a->endpoints[0].addr, "endpoints", (int)a->endpoint_count));
		free(a);
		break;
	case SL_NOSTR_REPORT_FETCHED:
		say(json_pack("{s:i,s:i,s:i,s:i,s:i}", "fetched", (int)r->token, "answered", (int)r->result.answered, "refused",
			(int)r->result.refused, "silent", (int)r->result.silent, "away", (int)r->result.away));
		break;
	case SL_NOSTR_REPORT_RELAYS:
		say_relays(r->relays);
		free(r->relays);
		break;
	}
}

/* Like control: takes what there is each millisecond, and says how long the longest turn was. */
static int
watch(struct sl_nostr_service *s, unsigned seconds, const uint8_t *author)
{
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = author, .author_count = 1,
		.d = SL_ADVERT_D, .limit = -1};
	struct sl_nostr_report r;
	struct sl_nostr_time t;
	uint64_t end, next = 0, longest = 0;
	uint32_t token = 0;

	if (sl_nostr_service_subscribe(s, TAG, &f, UINT32_MAX))
		return 1;
	now(&t);
	end = t.us + seconds * (uint64_t)SECOND;
	while (t.us < end) {
		struct sl_nostr_time after;

		if (t.us >= next) {
			next = t.us + SECOND;
			(void)!sl_nostr_service_fetch(s, TAG, ++token, &f, UINT32_MAX, 2 * SECOND);
		}
		for (unsigned n = 0; n < 16 && sl_nostr_service_next(s, &r); n++)
			take(&r);
		now(&after);
		if (after.us - t.us > longest)
			longest = after.us - t.us;
		usleep(1000);
		now(&t);
	}
	say(json_pack("{s:I}", "longest_turn_us", (json_int_t)longest));
	return 0;
}

struct advert_job {
	struct sl_advert advert;
};

static int
make_advert(void *arg, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t unix_s)
{
	return sl_advert_build(e, &((struct advert_job *)arg)->advert, SL_ADVERT_D, unix_s, 3600, id);
}

static void
keep(void *job)
{
	(void)job;
}

static int
advert(struct sl_nostr_service *s, char **endpoints, int count)
{
	static struct advert_job job;
	struct sl_nostr_report r;
	bool done = false;

	for (int i = 0; i < count && i < (int)SL_ADVERT_ENDPOINTS_MAX; i++) {
		char *colon = strchr(endpoints[i], ':');

		if (!colon)
			return 2;
		*colon = '\0';
		if (sl_advert_endpoint_parse(&job.advert.endpoints[job.advert.endpoint_count++], endpoints[i], colon + 1))
			return 2;
	}
	if (sl_nostr_service_publish(s, 1, UINT32_MAX, make_advert, keep, &job))
		return 1;
	for (unsigned ms = 0; ms < 20000 && !done; ms += 5) {
		while (sl_nostr_service_next(s, &r)) {
			for (unsigned i = 0; r.type == SL_NOSTR_REPORT_RELAYS && i < r.relays->count; i++)
				done = done || r.relays->relays[i].published;
			take(&r);
		}
		usleep(5000);
	}
	return done ? 0 : 1;
}

static int
make(const char *secret, unsigned count, uint64_t unix_s, char *endpoint)
{
	const bool crowd = !strcmp(secret, "-");
	struct sl_identity *id = crowd ? sl_identity_generate() : sl_identity_from_text(secret);
	static struct advert_job job;
	char *colon = strchr(endpoint, ':');

	if (!id || !colon)
		return 2;
	*colon = '\0';
	job.advert.endpoint_count = 1;
	if (sl_advert_endpoint_parse(&job.advert.endpoints[0], endpoint, colon + 1))
		return 2;
	for (unsigned i = 0; i < count; i++) {
		struct sl_nostr_event e;
		size_t len;
		char *text;

		if (make_advert(&job, &e, id, crowd ? unix_s : unix_s + i))
			return 1;
		text = sl_nostr_event_format(&e, &len);
		puts(text);
		free(text);
		sl_nostr_event_fini(&e);
		if (crowd) {
			sl_identity_destroy(id);
			id = sl_identity_generate();
		}
	}
	sl_identity_destroy(id);
	return 0;
}

/* --- reconnects ------------------------------------------------------------------------------- */

static struct {
	struct sl_nostr_client *client;
	uint64_t skew_us; /* back-off that was not waited for */
	unsigned events, fetched;
} local;

static void
skewed(struct sl_nostr_time *t)
{
	now(t);
	t->us += local.skew_us;
}
static void
ws_opened(void *arg, unsigned relay)
{
	struct sl_nostr_time t;

	(void)arg;
	skewed(&t);
	sl_nostr_client_opened(local.client, relay, &t);
}
static void
ws_closed(void *arg, unsigned relay, const char *why)
{
	struct sl_nostr_time t;

	(void)arg;
	skewed(&t);
	sl_nostr_client_closed(local.client, relay, why, &t);
}
static void
ws_text(void *arg, unsigned relay, const char *text, size_t len)
{
	struct sl_nostr_time t;

	(void)arg;
	skewed(&t);
	sl_nostr_client_text(local.client, relay, text, len, &t);
}
static void
ws_fault(void *arg, unsigned relay, enum sl_nostr_error e)
{
	struct sl_nostr_time t;

	(void)arg;
	skewed(&t);
	sl_nostr_client_fault(local.client, relay, e, &t);
}
static void
ws_heard(void *arg, unsigned relay)
{
	(void)arg;
	(void)relay;
}

static void
ws_overhead(void *arg, unsigned relay, size_t len)
{
	(void)arg;
	(void)relay;
	(void)len;
}
static void
on_event(void *arg, int sub, uint32_t tag, unsigned relay, const struct sl_nostr_event *e)
{
	(void)arg, (void)sub, (void)tag, (void)relay, (void)e;
	local.events++;
}
static void
on_fetched(void *arg, uint32_t tag, const struct sl_nostr_fetch_result *r)
{
	(void)arg, (void)tag, (void)r;
	local.fetched++;
}

static void
say_usage(struct sl_ws *ws, unsigned connects)
{
	unsigned subs, publications;

	sl_nostr_client_usage(local.client, &subs, &publications);
	say(json_pack("{s:i,s:i,s:i,s:i,s:I,s:i}", "connects", (int)connects, "sockets", (int)sl_ws_sockets(ws), "subscriptions",
		(int)subs, "publications", (int)publications, "rss_kib", (json_int_t)resident_kib(), "files", (int)open_files()));
}

static int
reconnect(unsigned count, const char *ca, const char *const *urls, unsigned url_count)
{
	struct sl_ws_sink ws_sink = {NULL, ws_opened, ws_closed, ws_text, ws_fault, ws_heard, ws_overhead};
	struct sl_nostr_sink sink = {NULL, on_event, on_fetched, NULL};
	struct sl_identity *id = sl_identity_generate();
	struct sl_nostr_filter f = {.kinds = {SL_ADVERT_KIND}, .kind_count = 1, .authors = sl_identity_xonly(id),
		.author_count = 1, .d = SL_ADVERT_D, .limit = -1};
	struct sl_ws *ws = sl_ws_create(urls, url_count, ca, &ws_sink);
	struct sl_nostr_relay_info info;
	struct sl_nostr_net net;
	struct sl_nostr_time t;
	unsigned said = 0, connects = 0;
	uint64_t end;

	if (!ws)
		return 1;
	sl_ws_net(ws, &net);
	skewed(&t);
	end = t.us + 120 * (uint64_t)SECOND;
	local.client = sl_nostr_client_create(urls, url_count, id, &net, &sink, &t);
	if (!local.client || sl_nostr_subscribe(local.client, TAG, &f, UINT32_MAX, &t) < 0)
		return 1;
	while (connects < count && t.us - local.skew_us < end) {
		bool busy = false;

		skewed(&t);
		sl_nostr_client_tick(local.client, &t);
		sl_ws_service(ws, 2000);
		connects = 0;
		for (unsigned i = 0; i < url_count; i++) {
			sl_nostr_client_relay_info(local.client, i, &info);
			connects += info.connects;
			busy = busy || info.state != SL_NOSTR_RELAY_WAITING;
		}
		if (!busy)
			local.skew_us += SL_NOSTR_BACKOFF_MAX_US;
		if (connects / 100 > said / 100) {
			said = connects;
			say_usage(ws, connects);
		}
	}
	sl_nostr_client_destroy(local.client);
	sl_ws_destroy(ws);
	sl_identity_destroy(id);
	return connects >= count ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct sl_nostr_service_config c = {.convert = convert};
	const char *ca = argc > 4 && strcmp(argv[3], "-") ? argv[3] : NULL;
	struct sl_nostr_service *s;
	uint8_t author[SL_XONLY_BYTES];
	struct sl_identity *id = NULL;
	int first = 4, last = argc, rc;

	if (argc < 5 || sl_crypto_init())
		return 2;
	if (!strcmp(argv[1], "reconnect"))
		return reconnect((unsigned)atoi(argv[2]), ca, (const char *const *)argv + 4, (unsigned)argc - 4);
	if (!strcmp(argv[1], "make"))
		return argc == 6 ? make(argv[2], (unsigned)atoi(argv[3]), strtoull(argv[4], NULL, 10), argv[5]) : 2;
	if (!strcmp(argv[1], "watch")) {
		first = 5;
		if (sl_hex_parse(author, sizeof(author), argv[4]))
			return 2;
	} else if (!strcmp(argv[1], "advert")) {
		for (last = first; last < argc && strcmp(argv[last], "--"); last++)
			continue;
	} else {
		return 2;
	}
	id = first == 4 ? sl_identity_from_text(argv[2]) : sl_identity_generate();
	c.identity = id;
	c.urls = (const char *const *)argv + first;
	c.url_count = (unsigned)(last - first);
	c.ca_file = ca;
	s = id ? sl_nostr_service_start(&c) : NULL;
	if (!s) {
		fprintf(stderr, "probe: %s\n", strerror(errno));
		return 2;
	}
	rc = first == 5 ? watch(s, (unsigned)atoi(argv[2]), author) : advert(s, argv + last + 1, argc - last - 1);
	sl_nostr_service_stop(s);
	sl_identity_destroy(id);
	return rc;
}
