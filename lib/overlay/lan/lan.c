/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_lan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECOND_US UINT64_C(1000000)
#define DELAY_MIN_US 20000u
#define DELAY_SPAN_US 100000u
#define FAMILIES 2u /* 4, 6 */

struct port {
	struct sl_lan_ifaddr addrs[SL_LAN_IFADDRS_MAX];
	unsigned count;
	uint64_t answer_us[FAMILIES];	/* to be sent then; 0 = nobody asks */
	uint64_t answered_us[FAMILIES]; /* the latest one went out; 0 = never */
};

struct ask {
	unsigned port;
	uint8_t family;
	char instance[SL_MDNS_NAME_SIZE];
};

struct sl_lan {
	struct sl_mdns_self self;
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_lan_sink sink;
	struct port ports[SL_LAN_PORTS_MAX];
	unsigned port_count, announced;
	uint64_t browse_us, browse_gap_us, announce_us, ask_us;
	struct ask asks[SL_LAN_ASKS_MAX];
	unsigned ask_count;
	struct sl_bucket messages;
	struct sl_mdns_message message; /* the one in hand */
	uint64_t counters[SL_LAN_COUNTER_COUNT];
};

const char *
sl_lan_counter_name(enum sl_lan_counter c)
{
	static const char *const names[] = {
#define NAME(id, name, what) name,
		SL_LAN_COUNTERS(NAME)
#undef NAME
	};
	return names[c];
}

struct sl_lan *
sl_lan_create(const struct sl_mdns_self *self, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_lan_sink *sink, uint64_t now_us)
{
	struct sl_lan *lan = calloc(1, sizeof(*lan));

	if (!lan)
		return NULL;
	lan->self = *self;
	memcpy(lan->xonly, xonly, SL_XONLY_BYTES);
	lan->sink = *sink;
	lan->browse_us = now_us + DELAY_MIN_US + sl_random_below(DELAY_SPAN_US);
	lan->browse_gap_us = SECOND_US;
	lan->announce_us = lan->browse_us;
	sl_bucket_init(&lan->messages, 2 * SL_LAN_MESSAGES_PER_S, SL_LAN_MESSAGES_PER_S, now_us);
	return lan;
}

void
sl_lan_destroy(struct sl_lan *lan)
{
	free(lan);
}

int
sl_lan_port(struct sl_lan *lan, const struct sl_lan_ifaddr *addrs, unsigned count)
{
	struct port *p = &lan->ports[lan->port_count];

	if (lan->port_count == SL_LAN_PORTS_MAX || count > SL_LAN_IFADDRS_MAX)
		return -ENOSPC;
	memcpy(p->addrs, addrs, count * sizeof(*addrs));
	p->count = count;
	lan->port_count++;
	return 0;
}

const uint64_t *
sl_lan_counters(const struct sl_lan *lan)
{
	return lan->counters;
}

/* --- addresses ------------------------------------------------------------------------------------------------------- */

static unsigned
bytes_of(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

static bool
is_link_local(const struct sl_mdns_ip *ip)
{
	return ip->family == 6 && ip->ip[0] == 0xfe && (ip->ip[1] & 0xc0) == 0x80;
}

/* On one of the port's prefixes, none of its own addresses, and no broadcast. */
static bool
on_link(const struct port *p, const struct sl_mdns_ip *ip)
{
	bool on = false;

	for (unsigned i = 0; i < p->count; i++) {
		const struct sl_lan_ifaddr *a = &p->addrs[i];
		const unsigned bits = a->ip.family == 4 ? 32 : 128;
		unsigned same = 0;
		bool host_ones = true;

		if (a->ip.family != ip->family)
			continue;
		if (!memcmp(a->ip.ip, ip->ip, bytes_of(ip->family)))
			return false;
		while (same < bits && ((a->ip.ip[same / 8] ^ ip->ip[same / 8]) >> (7 - same % 8) & 1) == 0)
			same++;
		for (unsigned b = a->prefix_len; b < bits; b++)
			host_ones = host_ones && (ip->ip[b / 8] >> (7 - b % 8) & 1);
		if (ip->family == 4 && same >= a->prefix_len && host_ones && a->prefix_len < 31)
			return false;
		on = on || same >= a->prefix_len || is_link_local(ip);
	}
	return on;
}

static bool
speaks(const struct port *p, uint8_t family)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->addrs[i].ip.family == family)
			return true;
	return false;
}

static unsigned
told(const struct port *p, struct sl_mdns_ip out[SL_LAN_IFADDRS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->count; i++)
		if (p->addrs[i].told)
			out[n++] = p->addrs[i].ip;
	return n;
}

/* --- out ------------------------------------------------------------------------------------------------------------- */

static void
send_out(struct sl_lan *lan, unsigned port, uint8_t family, const uint8_t *bytes, int len, enum sl_lan_counter counter)
{
	if (len < 0 || lan->sink.send(lan->sink.arg, port, family, bytes, (size_t)len))
		lan->counters[SL_LAN_SEND_FAILED]++;
	else
		lan->counters[counter]++;
}

static void
tell(struct sl_lan *lan, unsigned port, uint8_t family, bool gone)
{
	struct sl_mdns_ip addrs[SL_LAN_IFADDRS_MAX];
	const unsigned count = told(&lan->ports[port], addrs);
	uint8_t bytes[SL_MDNS_MESSAGE_MAX];

	if (!lan->self.port || !count || !speaks(&lan->ports[port], family))
		return;
	send_out(lan, port, family, bytes, sl_mdns_build_answer(bytes, sizeof(bytes), &lan->self, addrs, count, gone), SL_LAN_ANSWERS);
}

static void
browse(struct sl_lan *lan)
{
	uint8_t bytes[SL_MDNS_MESSAGE_MAX];
	const int len = sl_mdns_build_browse(bytes, sizeof(bytes), &lan->self);

	for (unsigned i = 0; i < lan->port_count; i++)
		for (uint8_t family = 4; family <= 6; family += 2)
			if (speaks(&lan->ports[i], family))
				send_out(lan, i, family, bytes, len, SL_LAN_BROWSES);
}

static void
ask(struct sl_lan *lan)
{
	const struct ask *a = &lan->asks[--lan->ask_count];
	uint8_t bytes[SL_MDNS_MESSAGE_MAX];

	send_out(lan, a->port, a->family, bytes, sl_mdns_build_ask(bytes, sizeof(bytes), a->instance), SL_LAN_BROWSES);
}

void
sl_lan_goodbye(struct sl_lan *lan)
{
	for (unsigned i = 0; i < lan->port_count; i++)
		for (uint8_t family = 4; family <= 6; family += 2)
			tell(lan, i, family, true);
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
tick_answers(struct sl_lan *lan, uint64_t now_us)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < lan->port_count; i++)
		for (unsigned f = 0; f < FAMILIES; f++) {
			struct port *p = &lan->ports[i];

			if (!p->answer_us[f])
				continue;
			if (p->answer_us[f] > now_us) {
				next = earlier(next, p->answer_us[f]);
				continue;
			}
			p->answer_us[f] = 0;
			p->answered_us[f] = now_us;
			tell(lan, i, f ? 6 : 4, false);
		}
	return next;
}

uint64_t
sl_lan_tick(struct sl_lan *lan, uint64_t now_us)
{
	uint64_t next;

	if (now_us >= lan->browse_us) {
		browse(lan);
		lan->browse_us = now_us + lan->browse_gap_us;
		lan->browse_gap_us = earlier(2 * lan->browse_gap_us, SL_LAN_BROWSE_MAX_US);
	}
	if (lan->announced < 2 && now_us >= lan->announce_us) {
		lan->announced++;
		lan->announce_us = now_us + SECOND_US;
		for (unsigned i = 0; i < lan->port_count; i++)
			for (uint8_t family = 4; family <= 6; family += 2)
				tell(lan, i, family, false);
	}
	if (lan->ask_count && now_us >= lan->ask_us) {
		ask(lan);
		lan->ask_us = now_us + SECOND_US;
	}
	next = earlier(tick_answers(lan, now_us), lan->browse_us);
	if (lan->announced < 2)
		next = earlier(next, lan->announce_us);
	return lan->ask_count ? earlier(next, lan->ask_us) : next;
}

/* --- in -------------------------------------------------------------------------------------------------------------- */

static void
on_query(struct sl_lan *lan, unsigned port, uint8_t family, uint64_t now_us)
{
	struct port *p = &lan->ports[port];
	const unsigned f = family == 6;
	uint64_t at = now_us + DELAY_MIN_US + sl_random_below(DELAY_SPAN_US);

	lan->counters[SL_LAN_QUERIES]++;
	if (p->answer_us[f])
		return;
	/* No record more often than once a second. */
	if (p->answered_us[f] && at < p->answered_us[f] + SECOND_US)
		at = p->answered_us[f] + SECOND_US;
	p->answer_us[f] = at;
}

/* Asked about once more, in its turn; when there are too many, it is heard of again anyway. */
static void
note_incomplete(struct sl_lan *lan, unsigned port, uint8_t family, const char *instance)
{
	struct ask *a = &lan->asks[lan->ask_count];

	lan->counters[SL_LAN_INCOMPLETE]++;
	for (unsigned i = 0; i < lan->ask_count; i++)
		if (lan->asks[i].port == port && !strcasecmp(lan->asks[i].instance, instance))
			return;
	if (lan->ask_count == SL_LAN_ASKS_MAX)
		return;
	a->port = port;
	a->family = family;
	memcpy(a->instance, instance, strlen(instance) + 1);
	lan->ask_count++;
}

static void
on_peer(struct sl_lan *lan, unsigned port, uint8_t family, const struct sl_mdns_peer *peer)
{
	const struct port *p = &lan->ports[port];
	struct sl_mdns_ip addrs[SL_MDNS_ADDRS_MAX];
	unsigned n = 0;

	if (!strcasecmp(peer->instance, lan->self.instance) || (peer->has_npub && !memcmp(peer->xonly, lan->xonly, SL_XONLY_BYTES))) {
		lan->counters[SL_LAN_OWN]++;
		return;
	}
	if (peer->gone) {
		if (peer->has_npub)
			lan->sink.gone(lan->sink.arg, port, peer->xonly);
		return;
	}
	if (!peer->has_txt || !peer->has_srv) {
		note_incomplete(lan, port, family, peer->instance);
		return;
	}
	if (!peer->has_npub) {
		lan->counters[SL_LAN_NO_KEY]++;
		return;
	}
	if (lan->self.scope[0] && strcmp(lan->self.scope, peer->scope) != 0) {
		lan->counters[SL_LAN_SCOPE]++;
		return;
	}
	for (unsigned i = 0; i < peer->addr_count; i++)
		if (on_link(p, &peer->addrs[i]))
			addrs[n++] = peer->addrs[i];
	if (!n || !peer->port) {
		lan->counters[SL_LAN_NO_ADDRESS]++;
		return;
	}
	lan->counters[SL_LAN_FOUND]++;
	lan->sink.found(lan->sink.arg, port, peer->xonly, addrs, n, peer->port, peer->ttl_s);
}

void
sl_lan_input(struct sl_lan *lan, unsigned port, const struct sl_mdns_ip *from, uint16_t from_port, const uint8_t *message, size_t len,
	uint64_t now_us)
{
	struct sl_mdns_message *m = &lan->message;

	if (port >= lan->port_count)
		return;
	lan->counters[SL_LAN_HEARD]++;
	if (!sl_bucket_take(&lan->messages, now_us)) {
		lan->counters[SL_LAN_LIMITED]++;
		return;
	}
	if (!on_link(&lan->ports[port], from)) {
		lan->counters[SL_LAN_FAR]++;
		return;
	}
	if (from_port != 5353) { /* RFC 6762, 6 and 6.7: a response is void, a query is of a simple resolver */
		lan->counters[SL_LAN_PORT]++;
		return;
	}
	if (sl_mdns_parse(m, message, len, &lan->self)) {
		lan->counters[SL_LAN_FAULTY]++;
		return;
	}
	lan->counters[SL_LAN_LEFT_OUT] += m->left_out;
	if (m->asked && lan->self.port)
		on_query(lan, port, from->family, now_us);
	for (unsigned i = 0; i < m->peer_count; i++)
		on_peer(lan, port, from->family, &m->peers[i]);
}
