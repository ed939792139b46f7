/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_nostr_service.h"

#include "spsc.h"
#include "ws.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NICE 10
#define REPORT_US 1000000u
#define ORDERS_A_TURN 32u
#define FAREWELL_US 500000u /* at the end: for what is to be published once */
#define TURN_MIN_US 1000u /* a client that is always due must not make a busy loop */

enum order_type { ORDER_SUBSCRIBE, ORDER_FETCH, ORDER_PUBLISH, ORDER_PUBLISH_END };

struct order {
	enum order_type type;
	uint32_t tag, token, slot, relays;
	uint64_t timeout_us;
	struct sl_nostr_filter filter;
	int (*make)(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s);
	void (*done)(void *job);
	void *job;
	uint8_t memory[]; /* the filter's authors, p, d */
};

struct fetch_tag { /* of a fetch under way, by the client's tag */
	uint32_t tag, token;
	bool used;
};

struct sl_nostr_service {
	struct sl_nostr_service_config config;
	struct sl_spsc orders, reports;
	int fd;
	pthread_t thread;
	bool stop; /* control writes */

	/* The thread's. */
	struct sl_ws *ws;
	struct sl_nostr_client *client;
	struct fetch_tag fetches[SL_NOSTR_FETCHES_MAX];
	bool changed;
	uint64_t report_us;
	uint64_t rejected, reports_dropped, make_failed;
};

/* A fetch's events come with this tag: an index into fetches, told apart from the program's own tags. */
#define FETCH_TAG 0x80000000u

static void
now(struct sl_nostr_time *t)
{
	struct timespec mono, wall;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	t->us = (uint64_t)mono.tv_sec * 1000000u + (uint64_t)mono.tv_nsec / 1000u;
	t->unix_s = wall.tv_sec > 0 ? (uint64_t)wall.tv_sec : 0;
}

/* --- reports --- */

static void
release(struct sl_nostr_service *s, uint32_t tag, void *object)
{
	if (!object)
		return;
	if (s->config.release)
		s->config.release(s->config.arg, tag, object);
	else
		free(object);
}

static bool
report(struct sl_nostr_service *s, const struct sl_nostr_report *r)
{
	struct sl_nostr_report *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *r;
	if (!copy || !sl_spsc_put(&s->reports, copy)) {
		free(copy);
		s->reports_dropped++;
		return false;
	}
	(void)!write(s->fd, &(uint64_t){1}, sizeof(uint64_t));
	return true;
}

static void
report_relays(struct sl_nostr_service *s, uint64_t now_us)
{
	unsigned count = sl_nostr_client_relay_count(s->client);
	struct sl_nostr_report r = {.type = SL_NOSTR_REPORT_RELAYS};
	struct timespec cpu;

	s->changed = false;
	s->report_us = now_us + REPORT_US;
	r.relays = calloc(1, sizeof(*r.relays) + count * sizeof(r.relays->relays[0]));
	if (!r.relays)
		return;
	r.relays->now_us = now_us;
	r.relays->count = count;
	r.relays->sockets = sl_ws_sockets(s->ws);
	sl_nostr_client_usage(s->client, &r.relays->subscriptions, &r.relays->publications);
	r.relays->rejected = s->rejected;
	r.relays->reports_dropped = s->reports_dropped;
	r.relays->make_failed = s->make_failed;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	r.relays->cpu_us = (uint64_t)cpu.tv_sec * 1000000u + (uint64_t)cpu.tv_nsec / 1000u;
	for (unsigned i = 0; i < count; i++)
		sl_nostr_client_relay_info(s->client, i, &r.relays->relays[i]);
	if (!report(s, &r))
		free(r.relays);
}

/* --- what the client tells --- */

static void
on_event(void *arg, int sub, uint32_t tag, unsigned relay, const struct sl_nostr_event *e)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_report r = {.type = SL_NOSTR_REPORT_EVENT, .relay = relay};
	struct sl_nostr_time t;

	(void)sub;
	now(&t);
	r.tag = tag & FETCH_TAG ? s->fetches[tag & ~FETCH_TAG].tag : tag;
	r.object = s->config.convert(s->config.arg, r.tag, e, t.unix_s);
	if (!r.object)
		s->rejected++;
	else if (!report(s, &r))
		release(s, r.tag, r.object);
}

static void
on_fetched(void *arg, uint32_t tag, const struct sl_nostr_fetch_result *result)
{
	struct sl_nostr_service *s = arg;
	struct fetch_tag *f = &s->fetches[tag & ~FETCH_TAG];
	struct sl_nostr_report r = {.type = SL_NOSTR_REPORT_FETCHED, .token = f->token, .result = *result};

	f->used = false;
	(void)report(s, &r);
}

static void
on_relay(void *arg, unsigned relay, const struct sl_nostr_relay_info *info)
{
	(void)relay;
	(void)info;
	((struct sl_nostr_service *)arg)->changed = true;
}

/* --- what the sockets tell --- */

static void
ws_opened(void *arg, unsigned relay)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_time t;

	now(&t);
	sl_nostr_client_opened(s->client, relay, &t);
}

static void
ws_closed(void *arg, unsigned relay, const char *why)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_time t;

	now(&t);
	sl_nostr_client_closed(s->client, relay, why, &t);
}

static void
ws_text(void *arg, unsigned relay, const char *text, size_t len)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_time t;

	now(&t);
	sl_nostr_client_text(s->client, relay, text, len, &t);
}

static void
ws_fault(void *arg, unsigned relay, enum sl_nostr_error e)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_time t;

	now(&t);
	sl_nostr_client_fault(s->client, relay, e, &t);
}

static void
ws_heard(void *arg, unsigned relay)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_time t;

	now(&t);
	sl_nostr_client_heard(s->client, relay, &t);
}

static void
ws_overhead(void *arg, unsigned relay, size_t len)
{
	struct sl_nostr_service *s = arg;
	struct sl_nostr_time t;

	now(&t);
	sl_nostr_client_overhead(s->client, relay, len, &t);
}

/* --- orders, on the thread --- */

static void
do_fetch(struct sl_nostr_service *s, const struct order *o, const struct sl_nostr_time *t)
{
	struct sl_nostr_report r = {.type = SL_NOSTR_REPORT_FETCHED, .token = o->token};
	unsigned i = 0;

	while (i < SL_NOSTR_FETCHES_MAX && s->fetches[i].used)
		i++;
	if (i < SL_NOSTR_FETCHES_MAX) {
		s->fetches[i] = (struct fetch_tag){o->tag, o->token, true};
		if (sl_nostr_fetch(s->client, FETCH_TAG | i, &o->filter, o->relays, o->timeout_us, t) >= 0)
			return;
		s->fetches[i].used = false;
	}
	/* As if nobody had been there. */
	(void)report(s, &r);
}

static void
do_publish(struct sl_nostr_service *s, const struct order *o, const struct sl_nostr_time *t)
{
	struct sl_nostr_event e = {0};

	if (o->make(o->job, &e, s->config.identity, t->unix_s) ||
		sl_nostr_publish(s->client, o->slot, &e, o->relays, t))
		s->make_failed++;
	sl_nostr_event_fini(&e);
}

static void
do_orders(struct sl_nostr_service *s, const struct sl_nostr_time *t)
{
	for (unsigned n = 0; n < ORDERS_A_TURN; n++) {
		struct order *o = sl_spsc_get(&s->orders);

		if (!o)
			return;
		switch (o->type) {
		case ORDER_SUBSCRIBE:
			if (sl_nostr_subscribe(s->client, o->tag, &o->filter, o->relays, t) < 0)
				s->make_failed++;
			break;
		case ORDER_FETCH:
			do_fetch(s, o, t);
			break;
		case ORDER_PUBLISH:
			do_publish(s, o, t);
			break;
		case ORDER_PUBLISH_END:
			sl_nostr_publish_end(s->client, o->slot);
			break;
		}
		if (o->done)
			o->done(o->job);
		free(o);
	}
}

static void
turn(struct sl_nostr_service *s, uint64_t wait_us)
{
	struct sl_nostr_time t;
	uint64_t next;

	now(&t);
	do_orders(s, &t);
	next = sl_nostr_client_tick(s->client, &t);
	if (s->changed || t.us >= s->report_us)
		report_relays(s, t.us);
	next = next > s->report_us ? s->report_us : next;
	next = next > t.us + TURN_MIN_US ? next - t.us : TURN_MIN_US;
	sl_ws_service(s->ws, next < wait_us ? next : wait_us);
}

/* A withdrawal that was ordered just before the end reaches the relays that are there. */
static void
farewell(struct sl_nostr_service *s)
{
	struct sl_nostr_time t;
	uint64_t end;

	now(&t);
	end = t.us + FAREWELL_US;
	do
		turn(s, 20000);
	while (sl_nostr_client_unsettled(s->client) && (now(&t), t.us < end));
}

static void *
run(void *arg)
{
	struct sl_nostr_service *s = arg;

	/* Linux: a thread's own. A refusal is no fault: it then runs as its maker does. */
	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
		turn(s, REPORT_US);
	farewell(s);
	return NULL;
}

/* --- control's side --- */

static int
start_thread(struct sl_nostr_service *s)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	if (s->config.cpus)
		(void)pthread_attr_setaffinity_np(&attr, sizeof(*s->config.cpus), s->config.cpus);
	/* Signals are control's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, &attr, run, s);
	if (rc && s->config.cpus) /* CPUs that are not there */
		rc = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_setname_np(s->thread, "sl-nostr");
	return -rc;
}

struct sl_nostr_service *
sl_nostr_service_start(const struct sl_nostr_service_config *c)
{
	struct sl_nostr_service *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	struct sl_ws_sink ws_sink;
	struct sl_nostr_sink sink;
	struct sl_nostr_net net;
	struct sl_nostr_time t;
	int rc;

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->config = *c;
	ws_sink = (struct sl_ws_sink){s, ws_opened, ws_closed, ws_text, ws_fault, ws_heard, ws_overhead};
	sink = (struct sl_nostr_sink){s, on_event, on_fetched, on_relay};
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->fd < 0)
		goto fail;
	s->ws = sl_ws_create(c->urls, c->url_count, c->ca_file, &ws_sink);
	if (!s->ws)
		goto fail_fd;
	sl_ws_net(s->ws, &net);
	now(&t);
	s->client = sl_nostr_client_create(c->urls, c->url_count, c->identity, &net, &sink, &t);
	if (!s->client)
		goto fail_ws;
	rc = start_thread(s);
	if (rc) {
		errno = -rc;
		goto fail_client;
	}
	s->config.urls = NULL; /* the caller's */
	return s;
fail_client:
	sl_nostr_client_destroy(s->client);
fail_ws:
	sl_ws_destroy(s->ws);
fail_fd:
	rc = errno;
	close(s->fd);
	errno = rc;
fail:
	free(s);
	return NULL;
}

void
sl_nostr_service_stop(struct sl_nostr_service *s)
{
	struct sl_nostr_report r;
	struct order *o;

	if (!s)
		return;
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	sl_ws_wake(s->ws);
	pthread_join(s->thread, NULL);
	sl_ws_destroy(s->ws);
	sl_nostr_client_destroy(s->client);
	while ((o = sl_spsc_get(&s->orders))) {
		if (o->done)
			o->done(o->job);
		free(o);
	}
	while (sl_nostr_service_next(s, &r)) {
		release(s, r.tag, r.object);
		free(r.relays);
	}
	close(s->fd);
	free(s);
}

int
sl_nostr_service_fd(const struct sl_nostr_service *s)
{
	return s->fd;
}

static int
put_order(struct sl_nostr_service *s, struct order *o)
{
	if (!sl_spsc_put(&s->orders, o)) {
		free(o);
		return -ENOBUFS;
	}
	sl_ws_wake(s->ws);
	return 0;
}

static struct order *
filter_order(enum order_type type, const struct sl_nostr_filter *f, uint32_t tag, uint32_t relays)
{
	size_t authors = f->author_count * (size_t)SL_XONLY_BYTES, p = f->p ? SL_XONLY_BYTES : 0,
	       d = f->d ? strlen(f->d) + 1 : 0;
	struct order *o = calloc(1, sizeof(*o) + authors + p + d);

	if (!o)
		return NULL;
	o->type = type;
	o->tag = tag;
	o->relays = relays;
	o->filter = *f;
	if (authors)
		o->filter.authors = memcpy(o->memory, f->authors, authors);
	if (p)
		o->filter.p = memcpy(o->memory + authors, f->p, p);
	if (d)
		o->filter.d = memcpy(o->memory + authors + p, f->d, d);
	return o;
}

int
sl_nostr_service_subscribe(struct sl_nostr_service *s, uint32_t tag, const struct sl_nostr_filter *f, uint32_t relays)
{
	struct order *o;

	if (tag & FETCH_TAG)
		return -EINVAL;
	o = filter_order(ORDER_SUBSCRIBE, f, tag, relays);
	return o ? put_order(s, o) : -ENOMEM;
}

int
sl_nostr_service_fetch(struct sl_nostr_service *s, uint32_t tag, uint32_t token, const struct sl_nostr_filter *f,
	uint32_t relays, uint64_t timeout_us)
{
	struct order *o = filter_order(ORDER_FETCH, f, tag, relays);

	if (!o)
		return -ENOMEM;
	o->token = token;
	o->timeout_us = timeout_us;
	return put_order(s, o);
}

int
sl_nostr_service_publish(struct sl_nostr_service *s, uint32_t slot, uint32_t relays,
	int (*make)(void *job, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s),
	void (*done)(void *job), void *job)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->type = ORDER_PUBLISH;
	o->slot = slot;
	o->relays = relays;
	o->make = make;
	o->done = done;
	o->job = job;
	return put_order(s, o);
}

int
sl_nostr_service_publish_end(struct sl_nostr_service *s, uint32_t slot)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->type = ORDER_PUBLISH_END;
	o->slot = slot;
	return put_order(s, o);
}

bool
sl_nostr_service_next(struct sl_nostr_service *s, struct sl_nostr_report *out)
{
	struct sl_nostr_report *r = sl_spsc_get(&s->reports);

	if (!r)
		return false;
	*out = *r;
	free(r);
	return true;
}
