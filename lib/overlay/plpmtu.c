/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of links, what is due, what it is told. */
#include "plpmtu_internal.h"

#include <errno.h>
#include <stdlib.h>

const char *
sl_plpmtu_reason_text(enum sl_plpmtu_reason r)
{
	static const char *const texts[] = {[SL_PLPMTU_CONFIGURED] = "configured", [SL_PLPMTU_REPORTED] = "reported by a router",
		[SL_PLPMTU_PROBED] = "larger packets are lost", [SL_PLPMTU_FLOOR] = "larger packets are lost, and smaller ones too"};

	return texts[r];
}

const char *
sl_plpmtu_counter_name(enum sl_plpmtu_counter c)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_PLPMTU_COUNTERS(NAME)
#undef NAME
	};
	return names[c];
}

const uint64_t *
sl_plpmtu_counters(const struct sl_plpmtu *t)
{
	return t->counters;
}

/* --- what it is told ---------------------------------------------------------------------------- */

static struct path *
path_of(const struct sl_plpmtu *t, uint32_t peer_id)
{
	struct path *p = peer_id < t->max_peers ? &t->paths[peer_id] : NULL;

	return p && p->state != OFF ? p : NULL;
}

void
sl_plpmtu_up(struct sl_plpmtu *t, uint32_t peer_id, const struct sl_node_addr *peer, uint16_t ceiling, bool reported,
	uint16_t floor, uint64_t now_us)
{
	struct path *p = &t->paths[peer_id], old = *p;
	const bool known = memcmp(&old.peer, peer, sizeof(*peer)) == 0 && old.mtu >= SL_PLPMTU_SMALL && old.mtu < old.ceiling;

	sl_due_remove(&t->due, &p->due);
	memset(p, 0, sizeof(*p));
	p->due.pos = SL_DUE_NONE;
	p->state = REST;
	p->peer = *peer;
	p->ceiling = ceiling < SL_PLPMTU_SMALL ? SL_PLPMTU_SMALL : ceiling;
	p->floor = floor < p->ceiling ? floor : p->ceiling;
	p->reported = reported;
	p->mtu = p->ceiling;
	p->reason = (uint8_t)sl_plpmtu_ceiling_reason(p);
	p->since_us = now_us;
	p->raise_wait_us = RAISE_US;
	p->mute_wait_us = MUTE_US;
	p->gap_us = GAP_US;
	if (known && old.mtu < p->mtu && old.mtu >= p->floor) {
		p->mtu = old.mtu;
		p->reason = old.reason;
		p->warned = old.warned;
		p->raise_us = now_us; /* at once, as soon as the other side has the session */
	}
	sl_due_file(&t->due, &p->due, now_us + START_US);
	p->told = old.state != OFF ? old.told : p->mtu;
	if (p->mtu != (old.state != OFF ? old.mtu : p->ceiling))
		t->sink.mtu(t->sink.arg, peer_id, p->mtu);
}

void
sl_plpmtu_down(struct sl_plpmtu *t, uint32_t peer_id)
{
	struct path *p = path_of(t, peer_id);

	if (!p)
		return;
	sl_due_remove(&t->due, &p->due);
	p->state = OFF;
}

void
sl_plpmtu_ceiling(struct sl_plpmtu *t, uint32_t peer_id, uint16_t ceiling, bool reported, uint64_t now_us)
{
	struct path *p = path_of(t, peer_id);

	if (!p || ceiling < SL_PLPMTU_SMALL)
		return;
	p->reported = reported;
	if (ceiling == p->ceiling)
		return;
	p->ceiling = ceiling;
	if (p->floor > ceiling)
		p->floor = ceiling;
	if (ceiling <= p->mtu) {
		sl_plpmtu_size_set(t, p, ceiling, sl_plpmtu_ceiling_reason(p), now_us);
		sl_plpmtu_check_begin(t, p, now_us);
		return;
	}
	if (p->state == MUTE && !p->ever_answered) {
		sl_plpmtu_size_set(t, p, ceiling, sl_plpmtu_ceiling_reason(p), now_us);
		return;
	}
	p->raise_wait_us = RAISE_US;
	p->raise_us = now_us;
	if (p->state == REST || p->state == MUTE)
		sl_due_file(&t->due, &p->due, now_us);
}

void
sl_plpmtu_report(struct sl_plpmtu *t, uint32_t peer_id, uint64_t srtt_us, bool missing, uint64_t now_us)
{
	struct path *p = path_of(t, peer_id);
	uint64_t due;

	if (!p)
		return;
	p->srtt_us = srtt_us < WAIT_MAX_US ? (uint32_t)srtt_us : WAIT_MAX_US;
	if (!missing)
		return;
	if (now_us - p->missing_us > QUIET_US)
		p->gap_us = GAP_US;
	p->missing_us = now_us;
	if (p->state != REST)
		return;
	due = p->checked_us + p->gap_us > now_us ? p->checked_us + p->gap_us : now_us;
	if (due >= p->due.us)
		return;
	t->counters[SL_PLPMTU_MISSING]++;
	p->gap_us = p->gap_us * 2 < GAP_MAX_US ? p->gap_us * 2 : GAP_MAX_US;
	sl_due_file(&t->due, &p->due, due);
}

bool
sl_plpmtu_response(struct sl_plpmtu *t, uint32_t peer_id, const uint8_t *msg, size_t len, uint64_t now_us)
{
	struct path *p = path_of(t, peer_id);
	struct sl_lookup_response a;

	if (!p || sl_lookup_response_parse(&a, msg, len) != 0 || a.request_id == 0)
		return false;
	for (unsigned i = 0; i < PROBES; i++) {
		struct probe *probe = &p->probe[i];

		if (probe->id != a.request_id)
			continue;
		t->counters[SL_PLPMTU_PROBE_RX]++;
		p->hint = a.path_mtu;
		if (!probe->answered) {
			probe->answered = true;
			sl_plpmtu_answered(t, p, probe->size, now_us);
		}
		return true;
	}
	return false;
}

static void
run(struct sl_plpmtu *t, struct path *p, uint64_t now_us)
{
	if (p->state != REST && p->state != MUTE)
		sl_plpmtu_round_over(t, p, now_us);
	else if (p->state == REST && p->raise_us && now_us >= p->raise_us && p->mtu < p->ceiling)
		sl_plpmtu_raise_begin(t, p, now_us);
	else
		sl_plpmtu_check_begin(t, p, now_us);
}

uint64_t
sl_plpmtu_tick(struct sl_plpmtu *t, uint64_t now_us)
{
	struct sl_due_node *first = sl_due_first(&t->due);

	for (unsigned n = 0; n < TURN_PEERS && first && first->us <= now_us; n++, first = sl_due_first(&t->due))
		run(t, sl_due_of(first, struct path, due), now_us);
	return first ? first->us : UINT64_MAX;
}

bool
sl_plpmtu_lookup(const struct sl_plpmtu *t, uint32_t peer_id, struct sl_plpmtu_info *out)
{
	static const char *const names[] = {[OFF] = "off", [CHECK] = "checking", [SEARCH] = "searching", [RAISE] = "raising",
		[REST] = "confirmed", [MUTE] = "unanswered"};
	const struct path *p = path_of(t, peer_id);

	if (!p)
		return false;
	*out = (struct sl_plpmtu_info){.mtu = p->mtu, .ceiling = p->ceiling, .floor = p->floor,
		.reason = (enum sl_plpmtu_reason)p->reason, .state = names[p->state], .since_us = p->since_us,
		.answered_us = p->answered_us, .next_us = p->due.us, .lowered = p->lowered, .raised = p->raised};
	if (p->state == REST && !p->checked_us)
		out->state = names[CHECK];
	return true;
}

struct sl_plpmtu *
sl_plpmtu_create(const struct sl_node_addr *self, uint32_t max_peers, const struct sl_plpmtu_sink *sink, uint64_t now_us)
{
	struct sl_plpmtu *t = calloc(1, sizeof(*t));

	(void)now_us;
	if (!t)
		return NULL;
	t->sink = *sink;
	t->self = *self;
	t->max_peers = max_peers;
	t->paths = calloc(max_peers, sizeof(*t->paths));
	if (!t->paths || sl_due_reserve(&t->due, max_peers)) {
		sl_plpmtu_destroy(t);
		errno = ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < max_peers; i++)
		t->paths[i].due.pos = SL_DUE_NONE;
	return t;
}

void
sl_plpmtu_destroy(struct sl_plpmtu *t)
{
	if (!t)
		return;
	free(t->paths);
	sl_due_fini(&t->due);
	free(t);
}
