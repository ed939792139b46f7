/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_backoff.h"
#include "sl_found.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_US UINT64_C(5000000) /* it is being dialled by somebody else, or memory is short: looked at again then */
#define SETTLE_US UINT64_C(5000000) /* new addresses are followed this often at the most */

#define DIALS_A_TURN 4u /* each is a msg1's worth of curve arithmetic, some 170 us */
#define BUCKETS 1024u /* keys are points of a curve: any of their bytes spread well, and inventing keys costs a point each */

struct node {
	struct sl_found_info info;
	uint32_t chain;	    /* index + 1 of the next with the same hash */
	bool used, linked;  /* linked: in the latest round */
	bool seen;	    /* in the round under way */
	uint64_t dialled_us; /* 0: no dial is under way */
};

struct sl_found {
	struct sl_found_config config;
	struct sl_found_sink sink;
	struct node *nodes;
	uint32_t bucket[BUCKETS]; /* index + 1 */
	uint32_t room, count;	/* places in all; in use */
	uint32_t peers_room;	/* what links_end() said last */
	uint32_t next;		/* where the search for due ones goes on */
	struct sl_bucket dials;
	uint64_t counters[SL_FOUND_COUNTER_COUNT];
};

const char *
sl_found_source_name(enum sl_found_source s)
{
	static const char *const names[] = {"mdns", "beacon", "advert"};

	return (unsigned)s < SL_FOUND_SOURCES ? names[s] : "?";
}

const char *
sl_found_state_name(enum sl_found_state s)
{
	static const char *const names[] = {"waiting", "dialled", "linked", "refused", "given up"};

	return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}

const char *
sl_found_counter_name(enum sl_found_counter c)
{
	static const char *const names[] = {
#define NAME(id, name, what) name,
		SL_FOUND_COUNTERS(NAME)
#undef NAME
	};
	return names[c];
}

struct sl_found *
sl_found_create(const struct sl_found_config *config, const struct sl_found_sink *sink, uint64_t now_us)
{
	struct sl_found *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->config = *config;
	f->sink = *sink;
	f->room = config->linked_max;
	for (unsigned s = 0; s < SL_FOUND_SOURCES; s++)
		f->room += config->places[s];
	f->nodes = calloc(f->room ? f->room : 1, sizeof(*f->nodes));
	if (!f->nodes) {
		free(f);
		return NULL;
	}
	sl_bucket_init(&f->dials, config->dials_burst, config->dials_per_s, now_us);
	return f;
}

void
sl_found_destroy(struct sl_found *f)
{
	if (!f)
		return;
	free(f->nodes);
	free(f);
}

static uint32_t *
bucket_of(struct sl_found *f, const uint8_t xonly[SL_XONLY_BYTES])
{
	return &f->bucket[(xonly[7] | (uint32_t)xonly[23] << 8) % BUCKETS];
}

static struct node *
find(struct sl_found *f, const uint8_t xonly[SL_XONLY_BYTES])
{
	for (uint32_t i = *bucket_of(f, xonly); i; i = f->nodes[i - 1].chain)
		if (!memcmp(f->nodes[i - 1].info.xonly, xonly, SL_XONLY_BYTES))
			return &f->nodes[i - 1];
	return NULL;
}

static void
enter(struct sl_found *f, struct node *n, const uint8_t xonly[SL_XONLY_BYTES])
{
	uint32_t *b = bucket_of(f, xonly);

	memcpy(n->info.xonly, xonly, SL_XONLY_BYTES);
	n->used = true;
	n->chain = *b;
	*b = (uint32_t)(n - f->nodes) + 1;
	f->count++;
}

static void
drop(struct sl_found *f, struct node *n, const char *why)
{
	uint32_t *at = bucket_of(f, n->info.xonly);

	if (why && f->sink.left)
		f->sink.left(f->sink.arg, n->info.source, n->info.xonly, why);
	while (*at != (uint32_t)(n - f->nodes) + 1)
		at = &f->nodes[*at - 1].chain;
	*at = n->chain;
	memset(n, 0, sizeof(*n));
	f->count--;
}

/* A place for a node of this source: a free one, or that of the one which has failed most often. */
static struct node *
place(struct sl_found *f, enum sl_found_source source)
{
	struct node *worst = NULL, *unused = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->room; i++) {
		struct node *p = &f->nodes[i];

		if (!p->used) {
			unused = unused ? unused : p;
			continue;
		}
		if (p->linked || p->info.source != source)
			continue;
		n++;
		if (p->info.failures && (!worst || p->info.failures > worst->info.failures))
			worst = p;
	}
	if (n < f->config.places[source] && unused)
		return unused;
	if (!worst)
		return NULL;
	f->counters[SL_FOUND_N_EVICTED]++;
	drop(f, worst, NULL);
	return worst;
}

static bool
same_addresses(const struct node *n, const struct sl_addr *addrs, unsigned count)
{
	return n->info.addr_count == count && !memcmp(n->info.addrs, addrs, count * sizeof(*addrs));
}

/* It says something new: tried there as if for the first time, but not more often than every few seconds. */
static void
move(struct node *n, const struct sl_addr *addrs, unsigned count, uint64_t now_us)
{
	const uint64_t since = n->info.next_dial_us || n->dialled_us ? n->info.first_us : 0;

	memcpy(n->info.addrs, addrs, count * sizeof(*addrs));
	n->info.addr_count = count;
	n->info.failures = 0;
	if (n->linked)
		return;
	if (n->info.state != SL_FOUND_REFUSED)
		n->info.state = SL_FOUND_WAITING;
	if (!n->info.next_dial_us || n->info.next_dial_us > now_us + SETTLE_US)
		n->info.next_dial_us = now_us + (since ? SETTLE_US : 0);
}

int
sl_found_heard(struct sl_found *f, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_addr *addrs,
	unsigned count, uint64_t hold_us, uint64_t now_us)
{
	struct node *n = find(f, xonly);

	f->counters[SL_FOUND_N_HEARD]++;
	count = count > SL_FOUND_ADDRS_MAX ? SL_FOUND_ADDRS_MAX : count;
	if (!n) {
		n = place(f, source);
		if (!n) {
			f->counters[SL_FOUND_N_FULL]++;
			return -ENOSPC;
		}
		f->counters[SL_FOUND_N_NEW]++;
		enter(f, n, xonly);
		n->info.source = source;
		memcpy(n->info.addrs, addrs, count * sizeof(*addrs));
		n->info.addr_count = count;
		n->info.first_us = now_us;
		n->info.next_dial_us = now_us ? now_us : 1;
		if (f->sink.appeared)
			f->sink.appeared(f->sink.arg, source, xonly, addrs);
	} else if (!same_addresses(n, addrs, count)) {
		move(n, addrs, count, now_us);
	}
	n->info.heard_us = now_us;
	n->info.expires_us = now_us + hold_us;
	return 0;
}

void
sl_found_gone(struct sl_found *f, enum sl_found_source source, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct node *n = find(f, xonly);

	if (n && n->info.source == source && !n->linked)
		drop(f, n, "it says good-bye");
}

/* --- links ------------------------------------------------------------------------------------------------------------ */

void
sl_found_links_begin(struct sl_found *f)
{
	for (uint32_t i = 0; i < f->room; i++)
		f->nodes[i].seen = false;
}

void
sl_found_linked(struct sl_found *f, const uint8_t xonly[SL_XONLY_BYTES])
{
	struct node *n = f->count ? find(f, xonly) : NULL;

	if (n)
		n->seen = true;
}

static uint64_t
backoff_us(const struct sl_found *f, uint32_t failures)
{
	return sl_backoff(f->config.retry_base_us, f->config.retry_max_us, failures);
}

static void
failed(struct sl_found *f, struct node *n, const char *why, uint64_t now_us)
{
	f->counters[SL_FOUND_N_DIAL_FAILED]++;
	n->dialled_us = 0;
	n->info.failures++;
	n->info.last_error = why;
	n->info.last_error_us = now_us;
	n->info.state = SL_FOUND_WAITING;
	n->info.next_dial_us = now_us + backoff_us(f, n->info.failures);
	if (f->config.tries[n->info.source] && n->info.failures > f->config.tries[n->info.source]) {
		n->info.state = SL_FOUND_GIVEN_UP;
		n->info.next_dial_us = 0;
	}
}

static void
settle(struct sl_found *f, struct node *n, uint64_t now_us)
{
	if (n->seen) {
		n->linked = true;
		n->dialled_us = 0;
		n->info.state = SL_FOUND_LINKED;
		n->info.failures = 0;
		n->info.next_dial_us = 0;
	} else if (n->linked) {
		n->linked = false;
		n->info.state = SL_FOUND_WAITING;
		n->info.last_error = "the link has ended";
		n->info.last_error_us = now_us;
		n->info.next_dial_us = now_us + backoff_us(f, 0);
	} else if (n->dialled_us && now_us - n->dialled_us >= f->config.dial_us) {
		failed(f, n, "no answer", now_us);
	}
	if (!n->linked && now_us >= n->info.expires_us) {
		f->counters[SL_FOUND_N_EXPIRED]++;
		drop(f, n, "not heard of again");
	}
}

void
sl_found_links_end(struct sl_found *f, uint32_t room, uint64_t now_us)
{
	f->peers_room = room;
	for (uint32_t i = 0; i < f->room; i++)
		if (f->nodes[i].used)
			settle(f, &f->nodes[i], now_us);
}

/* --- dials ------------------------------------------------------------------------------------------------------------ */

/* True: it has cost a token. */
static bool
dial(struct sl_found *f, struct node *n, uint64_t now_us)
{
	int rc = -EINVAL;
	bool any = false, known = false;

	for (unsigned i = 0; i < n->info.addr_count; i++) {
		rc = f->sink.dial(f->sink.arg, n->info.xonly, &n->info.addrs[i]);
		any = any || rc == 0;
		known = known || rc == -EISCONN || rc == -EALREADY || rc == -EBUSY || rc == -EEXIST;
		if (rc == -EACCES || rc == -EISCONN || rc == -EEXIST)
			break;
	}
	if (any) {
		f->counters[SL_FOUND_N_DIALS]++;
		n->info.dials++;
		n->info.state = SL_FOUND_DIALLED;
		n->info.next_dial_us = 0;
		n->dialled_us = now_us ? now_us : 1;
		return true;
	}
	if (known) {
		n->info.next_dial_us = now_us + BUSY_US; /* linked, or on the way to it: the next round knows more */
	} else if (rc == -EACCES) {
		if (n->info.state != SL_FOUND_REFUSED)
			f->counters[SL_FOUND_N_REFUSED]++;
		n->info.state = SL_FOUND_REFUSED;
		n->info.next_dial_us = now_us + f->config.retry_max_us; /* the lists may change */
	} else {
		failed(f, n, rc == -ENETUNREACH ? "no transport of ours leads there" : strerror(-rc), now_us);
	}
	return false;
}

bool
sl_found_tick(struct sl_found *f, uint64_t now_us)
{
	uint32_t dialling = 0, dialled = 0;

	if (!f->count)
		return false;
	for (uint32_t i = 0; i < f->room; i++)
		dialling += f->nodes[i].dialled_us != 0;
	for (uint32_t k = 0; k < f->room; k++) {
		struct node *n = &f->nodes[(f->next + k) % f->room];

		if (!n->used || n->linked || !n->info.next_dial_us || n->info.next_dial_us > now_us)
			continue;
		if (dialling >= f->peers_room) {
			f->counters[SL_FOUND_N_NO_ROOM]++;
			break;
		}
		if (sl_bucket_level(&f->dials, now_us) < 1) {
			f->counters[SL_FOUND_N_LIMITED]++;
			f->next = (f->next + k) % f->room; /* the others first the next time */
			break;
		}
		if (!dial(f, n, now_us))
			continue;
		f->dials.tokens -= 1;
		dialling++;
		if (++dialled == DIALS_A_TURN)
			return true;
	}
	return false;
}

void
sl_found_for_each(const struct sl_found *f, sl_found_fn fn, void *arg)
{
	for (uint32_t i = 0; i < f->room; i++)
		if (f->nodes[i].used)
			fn(arg, &f->nodes[i].info);
}

uint32_t
sl_found_count(const struct sl_found *f)
{
	return f->count;
}

const uint64_t *
sl_found_counters(const struct sl_found *f)
{
	return f->counters;
}
