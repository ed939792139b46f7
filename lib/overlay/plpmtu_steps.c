/* SPDX-License-Identifier: BSD-3-Clause */
/* Check, search, raise: which probes, and what follows from the answers. */
#include "plpmtu_internal.h"

#include "../crypto/sl_secret.h"

/* IP packets that links are made for, less the headers of UDP over IPv4: what a path may turn out to carry. */
static const uint16_t ladder[] = {4352 - 28, 2002 - 28, 1500 - 28, 1492 - 28, 1480 - 28, 1450 - 28, 1420 - 28, 1400 - 28, 1340,
	1300, 1280, 1280 - 28, 1280 - 48, 1200, 1152, 1100, 1024, 900, 768, 576 - 28};
#define SIZES (sizeof(ladder) / sizeof(ladder[0]))

/* --- the size ----------------------------------------------------------------------------------- */

void
sl_plpmtu_size_set(struct sl_plpmtu *t, struct path *p, uint16_t mtu, enum sl_plpmtu_reason why, uint64_t now_us)
{
	const uint16_t before = p->mtu;
	const bool bottom = why == SL_PLPMTU_FLOOR && p->reason != SL_PLPMTU_FLOOR && !p->warned;

	p->reason = (uint8_t)why;
	p->warned |= bottom;
	p->warn |= bottom;
	t->counters[SL_PLPMTU_FLOORED] += bottom;
	if (mtu == before)
		return;
	p->mtu = mtu;
	p->since_us = now_us;
	p->lowered += mtu < before;
	p->raised += mtu > before;
	t->counters[mtu < before ? SL_PLPMTU_LOWERED : SL_PLPMTU_RAISED]++;
	t->sink.mtu(t->sink.arg, (uint32_t)(p - t->paths), mtu);
}

enum sl_plpmtu_reason
sl_plpmtu_ceiling_reason(const struct path *p)
{
	return p->reported ? SL_PLPMTU_REPORTED : SL_PLPMTU_CONFIGURED;
}

static void
answered_size_set(struct sl_plpmtu *t, struct path *p, uint16_t size, uint64_t now_us)
{
	sl_plpmtu_size_set(t, p, size, size >= p->ceiling ? sl_plpmtu_ceiling_reason(p) : SL_PLPMTU_PROBED, now_us);
	p->answered_us = now_us;
}

/* --- sending ------------------------------------------------------------------------------------ */

static void
send_probe(struct sl_plpmtu *t, struct path *p, uint16_t size)
{
	struct probe *probe = &p->probe[p->next_probe];
	const size_t len = size - SL_OVERHEAD_BYTES;
	struct sl_lookup_request q = {.target = p->peer, .origin = t->self, .ttl = 0, /* nobody passes it on */
		.coords_count = 1, .coords = t->self.bytes};
	size_t used;

	sl_random(&q.request_id, sizeof(q.request_id));
	used = sl_lookup_request_build(t->msg, sizeof(t->msg), &q);
	memset(t->msg + used, 0, len - used);
	p->next_probe = (uint8_t)((p->next_probe + 1) % PROBES);
	*probe = (struct probe){.id = q.request_id, .size = size};
	if (t->sink.send(t->sink.arg, (uint32_t)(p - t->paths), t->msg, len) < 0)
		t->counters[SL_PLPMTU_TX_FAILED]++;
	else
		t->counters[SL_PLPMTU_PROBE_TX]++;
}

static bool
is_between(uint16_t size, uint16_t above, uint16_t below)
{
	return size > above && size < below;
}

/* Below the size in use: what the peer says of its side, the larger of the usual sizes, largest first, and the floor. */
static void
send_ladder(struct sl_plpmtu *t, struct path *p)
{
	unsigned sent = is_between(p->hint, p->floor, p->mtu);

	if (sent)
		send_probe(t, p, p->hint);
	for (unsigned i = 0; i < SIZES && sent < LADDER - 1; i++)
		if (is_between(ladder[i], p->floor, p->mtu)) {
			send_probe(t, p, ladder[i]);
			sent++;
		}
	if (p->floor < p->mtu)
		send_probe(t, p, p->floor);
}

static void
round_begin(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	uint32_t wait = WAIT_US + 2 * p->srtt_us;

	if (wait > WAIT_MAX_US)
		wait = WAIT_MAX_US;
	if (p->silent) {
		wait <<= p->silent;
		if (wait > WAIT_SILENT_MAX_US)
			wait = WAIT_SILENT_MAX_US;
	}
	p->round_answered = false;
	sl_due_file(&t->due, &p->due, now_us + wait);
}

static void
step_begin(struct path *p, enum state state)
{
	p->state = (uint8_t)state;
	p->round = p->strikes = p->silent = p->tries = 0;
}

static void
forget_probes(struct path *p)
{
	memset(p->probe, 0, sizeof(p->probe));
	p->next_probe = 0;
}

/* --- resting ------------------------------------------------------------------------------------ */

static void
settle(struct sl_plpmtu *t, struct path *p)
{
	if ((p->mtu != p->told || p->warn) && t->sink.settled)
		t->sink.settled(t->sink.arg, (uint32_t)(p - t->paths), p->mtu, p->told, (enum sl_plpmtu_reason)p->reason);
	p->told = p->mtu;
	p->warn = false;
}

static void
rest(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	uint64_t due = now_us + CONFIRM_US - CONFIRM_US / 8 + sl_random_below(CONFIRM_US / 4);

	p->state = REST;
	if (p->mtu >= p->ceiling)
		p->raise_us = 0;
	else if (!p->raise_us)
		p->raise_us = now_us + p->raise_wait_us;
	if (p->raise_us && p->raise_us < due)
		due = p->raise_us;
	sl_due_file(&t->due, &p->due, due);
	settle(t, p);
}

/* No answer to anything: the link is dead or the peer does not answer. Nothing follows about sizes. */
static bool
too_silent(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	t->counters[SL_PLPMTU_SILENT]++;
	if (++p->silent < SILENT_MAX)
		return false;
	p->state = MUTE;
	sl_due_file(&t->due, &p->due, now_us + p->mute_wait_us);
	p->mute_wait_us = p->mute_wait_us * 2 < MUTE_MAX_US ? p->mute_wait_us * 2 : MUTE_MAX_US;
	/* A peer that never answers must not be kept down by a router's report that has ended. */
	if (!p->ever_answered && p->mtu < p->ceiling)
		sl_plpmtu_size_set(t, p, p->ceiling, sl_plpmtu_ceiling_reason(p), now_us);
	settle(t, p);
	return true;
}

/* --- check -------------------------------------------------------------------------------------- */

void
sl_plpmtu_check_begin(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	step_begin(p, CHECK);
	forget_probes(p);
	t->counters[SL_PLPMTU_CHECK]++;
	p->checked_us = now_us;
	send_probe(t, p, p->mtu);
	round_begin(t, p, now_us);
}

static void
check_round(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	p->round++;
	/* The size in question first: what a limit of the other side drops is more likely the small one then. */
	send_probe(t, p, p->mtu);
	send_probe(t, p, p->mtu);
	if (!p->silent && p->ever_answered)
		send_ladder(t, p);
	send_probe(t, p, SL_PLPMTU_SMALL);
	round_begin(t, p, now_us);
}

/* The largest that was answered, at least `low`; the least that was not, above that. */
static void
judge(const struct path *p, uint16_t low, uint16_t top, uint16_t *answered, uint16_t *lost)
{
	*answered = low;
	*lost = top;
	for (unsigned i = 0; i < PROBES; i++)
		if (p->probe[i].id && p->probe[i].answered && p->probe[i].size > *answered)
			*answered = p->probe[i].size;
	for (unsigned i = 0; i < PROBES; i++)
		if (p->probe[i].id && !p->probe[i].answered && p->probe[i].size > *answered && p->probe[i].size < *lost)
			*lost = p->probe[i].size;
}

static void search_next(struct sl_plpmtu *t, struct path *p, uint64_t now_us);

static void
lower(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	uint16_t answered, lost;

	judge(p, 0, p->mtu, &answered, &lost);
	p->raise_wait_us = RAISE_US;
	p->raise_us = 0;
	if (answered < p->floor) {
		sl_plpmtu_size_set(t, p, p->floor, SL_PLPMTU_FLOOR, now_us);
		rest(t, p, now_us);
		return;
	}
	answered_size_set(t, p, answered, now_us);
	p->low = answered;
	p->high = lost;
	step_begin(p, SEARCH);
	search_next(t, p, now_us);
}

static void
check_over(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	if (p->round == 0) {
		check_round(t, p, now_us);
		return;
	}
	if (!p->round_answered) {
		if (!too_silent(t, p, now_us))
			check_round(t, p, now_us);
		return;
	}
	p->silent = 0;
	if (++p->strikes >= STRIKES)
		lower(t, p, now_us);
	else
		check_round(t, p, now_us);
}

/* --- search and raise --------------------------------------------------------------------------- */

static void
search_next(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	if (p->high <= p->low + GRAIN) {
		rest(t, p, now_us);
		return;
	}
	forget_probes(p);
	send_probe(t, p, (uint16_t)(p->low + (p->high - p->low) / 2));
	send_probe(t, p, SL_PLPMTU_SMALL);
	round_begin(t, p, now_us);
}

static void
search_over(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	if (!p->round_answered) {
		if (too_silent(t, p, now_us))
			return;
	} else {
		p->silent = 0;
		if (++p->tries >= SEARCH_TRIES) {
			p->tries = 0;
			p->high = (uint16_t)(p->low + (p->high - p->low) / 2);
		}
	}
	search_next(t, p, now_us);
}

void
sl_plpmtu_raise_begin(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	if (p->state != RAISE) {
		step_begin(p, RAISE);
		forget_probes(p);
		p->low = p->mtu;
		p->raise_us = 0;
	}
	/* Few: each that is lost looks like loss of the link to the peer, who does not know what it was. */
	send_probe(t, p, p->ceiling);
	for (unsigned i = SIZES; i-- > 0;)
		if (is_between(ladder[i], p->mtu, p->ceiling)) {
			send_probe(t, p, ladder[i]);
			break;
		}
	send_probe(t, p, SL_PLPMTU_SMALL);
	round_begin(t, p, now_us);
}

/* Sizes that were answered have been taken by then. */
static void
raise_over(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	const bool more = p->mtu > p->low;

	if (!p->round_answered) {
		if (!too_silent(t, p, now_us))
			sl_plpmtu_raise_begin(t, p, now_us);
		return;
	}
	p->raise_wait_us = more ? RAISE_US : p->raise_wait_us * 2 < RAISE_MAX_US ? p->raise_wait_us * 2 : RAISE_MAX_US;
	if (!more) {
		rest(t, p, now_us);
		return;
	}
	judge(p, p->mtu, p->ceiling, &p->low, &p->high);
	step_begin(p, SEARCH);
	search_next(t, p, now_us);
}

void
sl_plpmtu_answered(struct sl_plpmtu *t, struct path *p, uint16_t size, uint64_t now_us)
{
	p->ever_answered = true;
	p->round_answered = true;
	p->mute_wait_us = MUTE_US;
	if (size > p->ceiling) /* it was lowered meanwhile */
		return;
	if (size == p->mtu)
		p->answered_us = now_us;
	switch (p->state) {
	case CHECK:
		if (size < p->mtu)
			break;
		if (p->reason == SL_PLPMTU_FLOOR)
			answered_size_set(t, p, p->mtu, now_us);
		p->warned = false;
		rest(t, p, now_us);
		break;
	case MUTE:
		sl_plpmtu_check_begin(t, p, now_us); /* it is there after all */
		break;
	case SEARCH:
		if (size > p->low && size < p->high) {
			p->low = size;
			p->tries = p->silent = 0;
			answered_size_set(t, p, size, now_us);
			search_next(t, p, now_us);
		}
		break;
	case RAISE:
		if (size > p->mtu)
			answered_size_set(t, p, size, now_us);
		if (size == p->ceiling) {
			p->raise_wait_us = RAISE_US;
			p->raise_us = 0;
			rest(t, p, now_us);
		}
		break;
	default:
		break;
	}
}

void
sl_plpmtu_round_over(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	switch (p->state) {
	case CHECK:
		check_over(t, p, now_us);
		break;
	case SEARCH:
		search_over(t, p, now_us);
		break;
	default:
		raise_over(t, p, now_us);
		break;
	}
}
