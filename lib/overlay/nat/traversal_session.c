/* SPDX-License-Identifier: BSD-3-Clause */
/* One session: observed, offered or answered, punched. */
#include "traversal_internal.h"
#include "../../crypto/sl_hash.h"
#include "../sl_text.h"
#include <stdio.h>

static struct trav_session *
session_new(struct sl_traversal *t, struct trav_peer *p, bool own)
{
	struct trav_session *s = NULL;

	for (uint32_t i = 0; i < t->session_count && (s == NULL || s->used); i++)
		if (!t->sessions[i].used || (t->sessions[i].phase == SESSION_LINGER && s == NULL))
			s = &t->sessions[i];
	if (s == NULL) {
		trav_count(t, SL_TRAVERSAL_SESSIONS_FULL);
		return NULL;
	}
	if (s->used) /* done, it only answers late probes */
		sl_trav_session_end(t, s);
	memset(s, 0, sizeof(*s));
	s->used = true;
	s->own = own;
	s->peer = p;
	s->phase = SESSION_OBSERVE;
	s->began_us = t->now_us;
	p->sessions++;
	return s;
}

void
sl_trav_session_end(struct sl_traversal *t, struct trav_session *s)
{
	s->peer->sessions--;
	s->peer->touched_us = t->now_us;
	memset(s, 0, sizeof(*s));
}

bool
sl_trav_sessions_waiting(const struct sl_traversal *t, enum session_phase phase)
{
	for (uint32_t i = 0; i < t->session_count; i++)
		if (t->sessions[i].used && t->sessions[i].phase == phase)
			return true;
	return false;
}

/* The one of our making that is not done. */
static struct trav_session *
own_session(struct sl_traversal *t, const struct trav_peer *p)
{
	for (uint32_t i = 0; i < t->session_count; i++) {
		struct trav_session *s = &t->sessions[i];

		if (s->used && s->own && s->peer == p && s->phase != SESSION_LINGER)
			return s;
	}
	return NULL;
}

static void
failed(struct sl_traversal *t, struct trav_session *s, const char *error)
{
	struct trav_peer *p = s->peer;
	const bool own = s->own;

	sl_trav_session_end(t, s);
	sl_trav_peer_failed(t, p, own, error);
}

bool
sl_trav_session_start(struct sl_traversal *t, struct trav_peer *p)
{
	uint32_t running = 0;

	if (own_session(t, p))
		return true;
	for (uint32_t i = 0; i < t->session_count; i++)
		running += t->sessions[i].used && t->sessions[i].own && t->sessions[i].phase != SESSION_LINGER;
	if (running >= SL_OWN_SESSIONS || session_new(t, p, true) == NULL)
		return false;
	p->attempts++;
	sl_trav_peer_state(t, p, PEER_OBSERVING);
	if (!sl_trav_observe(t))
		sl_trav_sessions_observed(t);
	return true;
}

/* --- what we say ------------------------------------------------------------------------------ */

static void
new_id(struct sl_traversal *t, char id[SL_NAT_SIGNAL_ID_SIZE])
{
	uint64_t r;

	sl_random(&r, sizeof(r));
	snprintf(id, SL_NAT_SIGNAL_ID_SIZE, "%llu-%016llx", (unsigned long long)t->unix_ms, (unsigned long long)r);
}

/* Our side as it is now, and the fields that both kinds have. */
static void
fill(struct sl_traversal *t, struct sl_nat_signal *m, const struct trav_peer *p)
{
	const struct observer *o = &t->observer;

	m->issued_ms = t->unix_ms;
	m->expires_ms = t->unix_ms + t->config.signal_ttl_ms;
	new_id(t, m->nonce);
	memcpy(m->sender, t->config.self, SL_XONLY_BYTES);
	memcpy(m->recipient, p->xonly, SL_XONLY_BYTES);
	if (sl_trav_observe_fresh(t)) {
		m->side.reflexive = o->mapped;
		snprintf(m->stun_server, sizeof(m->stun_server), "%s", t->server_text[o->server]);
	}
	for (unsigned i = 0; t->config.share_local_candidates && i < t->local_count; i++)
		if (m->side.local_count < SL_PUNCH_CANDIDATES_MAX)
			m->side.local[m->side.local_count++] = t->local[i];
}

static bool
has_address(const struct sl_nat_signal *m)
{
	return m->side.reflexive.kind != SL_ADDR_NONE || m->side.local_count != 0;
}

/* How many relays it went to; none, or -errno, is counted. */
static int
say(struct sl_traversal *t, const struct trav_peer *p, const struct sl_nat_signal *m)
{
	char text[SL_NAT_SIGNAL_TEXT_MAX];
	int rc = sl_nat_signal_format(text, sizeof(text), m);

	if (rc == 0)
		rc = t->sink.signal(t->sink.arg, p->xonly, text);
	if (rc <= 0)
		trav_count(t, SL_TRAVERSAL_SIGNAL_TX_FAILED);
	return rc;
}

static void
punch(struct sl_traversal *t, struct trav_session *s, const struct sl_nat_signal *ours, const struct sl_nat_signal *theirs)
{
	struct sl_addr targets[SL_PUNCH_TARGETS_MAX];
	unsigned refused, n = sl_punch_plan(targets, &ours->side, &theirs->side, &refused), kept = 0;

	t->counters[SL_TRAVERSAL_TARGET_REFUSED] += refused;
	for (unsigned i = 0; i < n; i++) {
		if (targets[i].kind == SL_ADDR_UDP6 && !t->config.ip6)
			continue;
		targets[i].transport = t->config.transport;
		targets[kept++] = targets[i];
	}
	if (kept == 0) {
		trav_count(t, SL_TRAVERSAL_NO_TARGETS);
		failed(t, s, "the peer names no address that can be reached from here");
		return;
	}
	s->phase = SESSION_PUNCH;
	sl_punch_begin(&s->punch, s->offer.session_id, targets, kept, &t->config.punch, t->now_us);
	sl_trav_peer_state(t, s->peer, PEER_PUNCHING);
}

static void
offer_send(struct sl_traversal *t, struct trav_session *s)
{
	const struct observer *o = &t->observer;
	char why[SL_TRAVERSAL_ERROR_SIZE];
	int relays;

	s->offer.kind = SL_NAT_SIGNAL_OFFER;
	fill(t, &s->offer, s->peer);
	memcpy(s->offer.session_id, s->offer.nonce, sizeof(s->offer.session_id));
	if (!has_address(&s->offer)) {
		/* The reference offers all the same; nobody could punch towards us, nor we towards them. */
		snprintf(why, sizeof(why), "no address of ours is known from outside (STUN: %s)", o->error ? o->error : "none");
		failed(t, s, why);
		return;
	}
	relays = say(t, s->peer, &s->offer);
	if (relays <= 0) {
		failed(t, s, "no relay takes the offer");
		return;
	}
	trav_count(t, SL_TRAVERSAL_OFFER_TX);
	s->phase = SESSION_OFFERED;
	s->deadline_us = t->now_us + t->config.signal_ttl_ms * 1000;
	sl_trav_peer_state(t, s->peer, PEER_OFFERED);
}

static void
answer_send(struct sl_traversal *t, struct trav_session *s)
{
	struct sl_nat_signal *m = &s->answer;
	int relays;

	m->kind = SL_NAT_SIGNAL_ANSWER;
	fill(t, m, s->peer);
	memcpy(m->session_id, s->offer.session_id, sizeof(m->session_id));
	memcpy(m->in_reply_to, s->offer.nonce, sizeof(m->in_reply_to));
	m->accepted = has_address(m);
	if (m->accepted) {
		m->has_punch = true;
		m->punch_start_ms = t->unix_ms + t->config.punch.delay_ms;
		m->punch_interval_ms = t->config.punch.interval_ms;
		m->punch_duration_ms = t->config.punch.duration_ms;
	} else {
		snprintf(m->reason, sizeof(m->reason), "%s", SL_NAT_SIGNAL_NO_ADDRESS);
	}
	relays = say(t, s->peer, m);
	if (relays <= 0) {
		failed(t, s, "no relay takes the answer");
		return;
	}
	trav_count(t, m->accepted ? SL_TRAVERSAL_ANSWER_TX : SL_TRAVERSAL_REFUSED_TX);
	if (m->accepted)
		punch(t, s, m, &s->offer);
	else
		failed(t, s, "refused: no address of ours is known from outside");
}

void
sl_trav_sessions_observed(struct sl_traversal *t)
{
	for (uint32_t i = 0; i < t->session_count; i++) {
		struct trav_session *s = &t->sessions[i];

		if (!s->used || s->phase != SESSION_OBSERVE)
			continue;
		if (s->own)
			offer_send(t, s);
		else
			answer_send(t, s);
	}
}

/* --- what they say ---------------------------------------------------------------------------- */

static bool
refuse(struct sl_traversal *t, enum sl_nat_signal_error e)
{
	if (e == SL_NAT_SIGNAL_OK)
		return false;
	trav_count(t, SL_TRAVERSAL_SIGNAL_BAD);
	t->signal_errors[e]++;
	return true;
}

/* Remembers the session id. False: it was there. */
static bool
first_time(struct sl_traversal *t, const char *session_id)
{
	const uint32_t max = t->config.seen_sessions_max;
	uint8_t hash[SL_SHA256_BYTES];
	struct seen *e;

	while (t->seen_count && t->seen[t->seen_head].until_us <= t->now_us) {
		t->seen_head = (t->seen_head + 1) % max;
		t->seen_count--;
	}
	sl_sha256(hash, session_id, strlen(session_id));
	for (uint32_t i = 0; i < t->seen_count; i++)
		if (memcmp(t->seen[(t->seen_head + i) % max].hash, hash, sizeof(e->hash)) == 0)
			return false;
	if (t->seen_count == max) {
		trav_count(t, SL_TRAVERSAL_SEEN_EVICTED);
		t->seen_head = (t->seen_head + 1) % max;
		t->seen_count--;
	}
	e = &t->seen[(t->seen_head + t->seen_count++) % max];
	memcpy(e->hash, hash, sizeof(e->hash));
	e->until_us = t->now_us + t->config.replay_window_ms * 1000;
	return true;
}

/* Is there room for another offer, of anybody, of this node? */
static bool
admitted(struct sl_traversal *t, const uint8_t author[SL_XONLY_BYTES])
{
	uint32_t all = 0, theirs = 0;

	for (uint32_t i = 0; i < t->session_count; i++) {
		const struct trav_session *s = &t->sessions[i];

		if (!s->used || s->own || s->phase == SESSION_LINGER)
			continue;
		all++;
		theirs += memcmp(s->peer->xonly, author, SL_XONLY_BYTES) == 0;
	}
	if (theirs >= t->config.max_concurrent_offers_per_npub)
		trav_count(t, SL_TRAVERSAL_OFFER_SENDER_FULL);
	else if (all >= t->config.max_concurrent_incoming_offers)
		trav_count(t, SL_TRAVERSAL_OFFER_FULL);
	else
		return true;
	return false;
}

static void
offer_received(struct sl_traversal *t, const uint8_t author[SL_XONLY_BYTES], const struct sl_nat_signal *offer)
{
	struct trav_peer *p;
	struct trav_session *s;

	trav_count(t, SL_TRAVERSAL_OFFER_RX);
	if (!admitted(t, author))
		return;
	if (t->sink.allowed && !t->sink.allowed(t->sink.arg, author)) {
		trav_count(t, SL_TRAVERSAL_OFFER_NOT_ALLOWED);
		return;
	}
	if (refuse(t, sl_nat_signal_offer_check(offer, author, t->config.self, t->unix_ms, t->config.signal_ttl_ms)))
		return;
	p = sl_trav_peer_get(t, author);
	if (p == NULL) {
		trav_count(t, SL_TRAVERSAL_PEERS_FULL);
		return;
	}
	/* Both have offered: the smaller node address's offer stands (the suppressed one is not remembered as seen). */
	if (own_session(t, p) && sl_node_addr_cmp(&t->self, &p->addr) < 0) {
		trav_count(t, SL_TRAVERSAL_OFFER_SUPPRESSED);
		return;
	}
	if (!first_time(t, offer->session_id)) {
		trav_count(t, SL_TRAVERSAL_OFFER_REPLAY);
		return;
	}
	s = session_new(t, p, false);
	if (s == NULL)
		return;
	s->offer = *offer;
	s->answer.has_received = true;
	s->answer.received_ms = t->unix_ms;
	if (p->state == PEER_IDLE || p->state == PEER_WAITING || p->state == PEER_COOLDOWN)
		sl_trav_peer_state(t, p, PEER_OBSERVING);
	if (!sl_trav_observe(t))
		sl_trav_sessions_observed(t);
}

static struct trav_session *
session_of_answer(struct sl_traversal *t, const struct sl_nat_signal *answer)
{
	for (uint32_t i = 0; i < t->session_count; i++) {
		struct trav_session *s = &t->sessions[i];

		if (s->used && s->own && s->phase == SESSION_OFFERED && strcmp(s->offer.nonce, answer->in_reply_to) == 0)
			return s;
	}
	return NULL;
}

static void
note_skew(struct sl_traversal *t, struct trav_session *s, const struct sl_nat_signal *answer)
{
	struct trav_peer *p = s->peer;
	const int64_t before = p->has_skew ? p->skew_ms : 0;

	if (!sl_nat_signal_skew(&p->skew_ms, &s->offer, answer, t->unix_ms))
		return;
	p->has_skew = true;
	/* Half of what is taken: said when it begins and when it ends. */
	if ((p->skew_ms >= 30000 || p->skew_ms <= -30000) != (before >= 30000 || before <= -30000))
		sl_log(SL_LOG_WARNING, SL_TOPIC_LINK, "clock of %s is %+lld ms from ours%s", p->name, (long long)p->skew_ms,
			p->skew_ms >= 30000 || p->skew_ms <= -30000 ? ": beyond 60 s its offers and ours are refused" : " again");
}

static void
answer_received(struct sl_traversal *t, const uint8_t author[SL_XONLY_BYTES], const struct sl_nat_signal *answer)
{
	struct trav_session *s = session_of_answer(t, answer);
	char why[SL_TRAVERSAL_ERROR_SIZE];

	trav_count(t, SL_TRAVERSAL_ANSWER_RX);
	if (s == NULL) {
		trav_count(t, SL_TRAVERSAL_ANSWER_UNKNOWN);
		return;
	}
	/* One that is not sound does not end the waiting: the true one may still come. */
	if (refuse(t, sl_nat_signal_answer_check(&s->offer, answer, author, t->config.self, t->unix_ms, t->config.signal_ttl_ms)))
		return;
	note_skew(t, s, answer);
	if (!answer->accepted) {
		trav_count(t, SL_TRAVERSAL_REFUSED_RX);
		snprintf(why, sizeof(why), "refused by the peer: %s", answer->reason);
		sl_text_clean(why);
		failed(t, s, why);
		return;
	}
	s->answer = *answer;
	punch(t, s, &s->offer, answer);
}

void
sl_traversal_signal(struct sl_traversal *t, const uint8_t author[SL_XONLY_BYTES], const char *text, size_t len,
	uint64_t now_us, uint64_t unix_ms)
{
	struct sl_nat_signal m;
	enum sl_nat_signal_error e = sl_nat_signal_parse(&m, text, len);

	t->now_us = now_us;
	t->unix_ms = unix_ms;
	if (refuse(t, e))
		return;
	/* For another node, wrapped for us: not our business. */
	if (memcmp(m.recipient, t->config.self, SL_XONLY_BYTES) != 0)
		(void)refuse(t, SL_NAT_SIGNAL_IDENTITY);
	else if (m.kind == SL_NAT_SIGNAL_OFFER)
		offer_received(t, author, &m);
	else
		answer_received(t, author, &m);
}

/* --- punching --------------------------------------------------------------------------------- */

static void
punched(struct sl_traversal *t, struct trav_session *s)
{
	struct trav_session *own;

	trav_count(t, SL_TRAVERSAL_PUNCHED);
	s->phase = SESSION_LINGER;
	/* A try of ours beside this answer has been overtaken. */
	own = own_session(t, s->peer);
	if (own)
		sl_trav_session_end(t, own);
	sl_trav_peer_punched(t, s->peer, &s->punch.remote);
}

bool
sl_trav_sessions_packet(struct sl_traversal *t, const struct sl_addr *from, const uint8_t *packet, size_t len)
{
	for (uint32_t i = 0; i < t->session_count; i++) {
		struct trav_session *s = &t->sessions[i];

		if (!s->used || (s->phase != SESSION_PUNCH && s->phase != SESSION_LINGER) ||
			!sl_punch_packet(&s->punch, from, packet, len, t->now_us, sl_trav_udp, t))
			continue;
		if (s->phase == SESSION_PUNCH && s->punch.state == SL_PUNCH_DONE)
			punched(t, s);
		return true;
	}
	return false;
}

static uint64_t
session_tick(struct sl_traversal *t, struct trav_session *s)
{
	uint64_t due;

	switch (s->phase) {
	case SESSION_OFFERED:
		if (t->now_us < s->deadline_us)
			return s->deadline_us;
		trav_count(t, SL_TRAVERSAL_ANSWER_TIMEOUT);
		failed(t, s, "no answer to the offer");
		return UINT64_MAX;
	case SESSION_PUNCH:
	case SESSION_LINGER:
		due = sl_punch_tick(&s->punch, t->now_us, sl_trav_udp, t);
		if (due != UINT64_MAX)
			return due;
		if (s->phase == SESSION_LINGER) {
			sl_trav_session_end(t, s);
		} else {
			trav_count(t, SL_TRAVERSAL_PUNCH_TIMEOUT);
			failed(t, s, "no probe came through");
		}
		return UINT64_MAX;
	default:
		return UINT64_MAX; /* the observer's turn */
	}
}

uint64_t
sl_trav_sessions_tick(struct sl_traversal *t)
{
	uint64_t due = UINT64_MAX, next;

	for (uint32_t i = 0; i < t->session_count; i++) {
		if (!t->sessions[i].used)
			continue;
		next = session_tick(t, &t->sessions[i]);
		if (next < due)
			due = next;
	}
	return due;
}
