/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow rules, RSS, or neither: chosen by what the device takes and shows. sl_steer.h says how. */
#define ALLOW_EXPERIMENTAL_API /* rte_flow_dev_dump() */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <rte_errno.h>
#include "../overlay/sl_log.h"
#include "sl_control.h"

#define INDEX_OFFSET 4 /* of the receiver index in an established frame: link layer facts, 4.4 */
#define PROOF_FRAMES 4096u /* this many from a port show whether its rules steer */

const char *
sl_steer_mode_name(enum sl_steer_mode mode)
{
	static const char *const names[] = {"-", "one", "flow", "rss", "driver", "software"};

	return names[mode];
}

/* --- a rule ---------------------------------------------------------------------------------------------------------- */

/*
 * The pattern is one 16-bit word at an even place right behind UDP, since that is what flow directors match by (i40e: whole words
 * with up to two bit masks; cnxk: any bytes behind a header, no search).
 */
void
sl_steer_rule_make(struct sl_steer_rule *r, const struct sl_steer_match *m, uint16_t queue, bool counted)
{
	struct rte_flow_item *item = r->items;
	struct rte_flow_action *action = r->actions;

	memset(r, 0, sizeof(*r));
	r->attr.ingress = 1;
	(item++)->type = RTE_FLOW_ITEM_TYPE_ETH;
	if (m->vlan) {
		r->vlan_spec.hdr.vlan_tci = rte_cpu_to_be_16(m->vlan);
		r->vlan_mask.hdr.vlan_tci = RTE_BE16(0x0fff);
		*item++ = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &r->vlan_spec, .mask = &r->vlan_mask};
	}
	(item++)->type = m->family == 4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6;
	r->udp_spec.hdr.dst_port = rte_cpu_to_be_16(m->udp_port);
	r->udp_mask.hdr.dst_port = RTE_BE16(0xffff);
	*item++ = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &r->udp_spec, .mask = &r->udp_mask};
	r->pattern[0] = m->value; /* little endian: the lowest byte is the first */
	r->pattern_mask[0] = m->mask;
	r->raw_spec = (struct rte_flow_item_raw){.relative = 1, .offset = INDEX_OFFSET, .length = sizeof(r->pattern),
		.pattern = r->pattern};
	r->raw_mask = (struct rte_flow_item_raw){.relative = 1, .search = 1, .offset = -1, .limit = 0xffff, .length = 0xffff,
		.pattern = r->pattern_mask};
	*item++ = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_RAW, .spec = &r->raw_spec, .mask = &r->raw_mask};
	item->type = RTE_FLOW_ITEM_TYPE_END;
	r->queue.index = queue;
	*action++ = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &r->queue};
	if (counted)
		*action++ = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &r->counter};
	action->type = RTE_FLOW_ACTION_TYPE_END;
}

static int
rule_validate(uint16_t ethdev, const struct sl_steer_rule *r, struct rte_flow_error *error)
{
	memset(error, 0, sizeof(*error));
	return rte_flow_validate(ethdev, &r->attr, r->items, r->actions, error);
}

bool
sl_steer_possible(uint16_t ethdev)
{
	const struct sl_steer_match any = {.family = 4, .udp_port = 2121, .mask = 1};
	struct rte_flow_error error;
	struct sl_steer_rule r;

	sl_steer_rule_make(&r, &any, 0, false);
	return rule_validate(ethdev, &r, &error) != -ENOSYS;
}

/* --- reading back ------------------------------------------------------------------------------------------------------- */

static bool
rule_counter(uint16_t ethdev, struct rte_flow *flow, uint64_t *hits)
{
	const struct rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count count;
	struct rte_flow_error error;

	memset(&count, 0, sizeof(count));
	memset(&error, 0, sizeof(error));
	if (rte_flow_query(ethdev, flow, actions, &count, &error) != 0)
		return false;
	*hits = count.hits_set ? count.hits : 0;
	return count.hits_set;
}

static bool
rule_dumped(uint16_t ethdev, struct rte_flow *flow)
{
	struct rte_flow_error error;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (f == NULL)
		return false;
	memset(&error, 0, sizeof(error));
	rc = rte_flow_dev_dump(ethdev, flow, f, &error);
	fclose(f);
	free(text);
	return rc == 0 && len > 0;
}

/* By what a rule that was made could be seen; NULL: by nothing. */
static const char *
rule_read_back(uint16_t ethdev, struct rte_flow *flow, const struct sl_steer_rule *r, bool counted)
{
	struct rte_flow_error error;
	uint64_t hits;

	if (counted && rule_counter(ethdev, flow, &hits))
		return "its counter";
	if (rule_dumped(ethdev, flow))
		return "its dump";
	if (rule_validate(ethdev, r, &error) == -EEXIST)
		return "its refusal of a second one";
	return NULL;
}

uint64_t
sl_steer_hits(const struct sl_port *p)
{
	uint64_t sum = 0, hits;

	for (unsigned i = 0; p->steer.counted && i < p->steer.count; i++)
		if (rule_counter(p->ethdev, p->steer.rules[i], &hits))
			sum += hits;
	return sum;
}

/* --- all rules of a port -------------------------------------------------------------------------------------------------- */

void
sl_steer_remove(struct sl_port *p)
{
	struct sl_steer *s = &p->steer;
	struct rte_flow_error error;

	for (unsigned i = 0; i < s->count; i++) {
		memset(&error, 0, sizeof(error));
		if (rte_flow_destroy(p->ethdev, s->rules[i], &error) != 0)
			sl_log(SL_LOG_DEBUG, SL_TOPIC_PIPELINE, "port %s: flow rule %u is not removed: %s", p->config.name, i,
				error.message ? error.message : strerror(rte_errno));
	}
	free(s->rules);
	s->rules = NULL;
	s->count = 0;
}

static bool
has_family(const struct sl_port *p, uint8_t family)
{
	for (unsigned i = 0; i < p->config.addr_count; i++)
		if (p->config.addrs[i].family == family)
			return true;
	return false;
}

static bool
listens(const struct sl_dataplane_transport *t, uint8_t family)
{
	if (t->kind == SL_ADDR_ETH)
		return false;
	if (t->bind_any4 || t->bind_any6)
		return family == 4 ? t->bind_any4 : t->bind_any6;
	return t->bind.family == family;
}

/* A queue that the worker polls, -1 = none on this port. */
static int
queue_of(const struct sl_port *p, uint16_t worker)
{
	for (uint16_t q = 0; q < p->rx_queues; q++)
		if (sl_queue_map_worker(&p->map, q) == worker)
			return q;
	return -1;
}

/* What is common to the making of a port's rules. */
struct making {
	struct sl_port *p;
	bool counted;
	const char *shown; /* the weakest of what they were read back by */
	char *why;
	uint32_t room;
};

static bool
rule_add(struct making *m, const struct sl_steer_match *match, uint16_t queue)
{
	struct sl_steer *s = &m->p->steer;
	const bool first = s->count == 0;
	struct rte_flow_error error;
	struct sl_steer_rule r;
	const char *shown;
	int rc;

	if (s->count == m->room)
		return false;
	sl_steer_rule_make(&r, match, queue, m->counted);
	rc = rule_validate(m->p->ethdev, &r, &error);
	if (rc != 0 && m->counted && first) { /* perhaps it is the counter that is not there */
		m->counted = false;
		sl_steer_rule_make(&r, match, queue, false);
		rc = rule_validate(m->p->ethdev, &r, &error);
	}
	if (rc == 0) {
		memset(&error, 0, sizeof(error));
		s->rules[s->count] = rte_flow_create(m->p->ethdev, &r.attr, r.items, r.actions, &error);
		rc = s->rules[s->count] ? 0 : -rte_errno;
	}
	if (rc != 0) {
		snprintf(m->why, SL_STEER_WHY_SIZE, rc == -ENOSYS ? "the driver has no flow rules" : "flow rules refused (%.80s)",
			error.message ? error.message : strerror(-rc));
		return false;
	}
	shown = rule_read_back(m->p->ethdev, s->rules[s->count++], &r, m->counted);
	if (first || shown == NULL)
		m->shown = shown;
	if (shown == NULL && m->p->config.steering != SL_STEERING_FLOW) {
		snprintf(m->why, SL_STEER_WHY_SIZE, "flow rules taken, but the driver cannot show them (steering: flow uses them all the same)");
		return false;
	}
	return true;
}

static bool
rules_add(const struct sl_dataplane *dp, struct making *m, const struct sl_dataplane_transport *t, uint8_t family)
{
	struct sl_steer_match match = {.family = family, .vlan = m->p->config.vlan, .udp_port = t->udp_port,
		.mask = (uint8_t)dp->view->owner_mask};

	for (uint32_t value = 0; value <= dp->view->owner_mask; value++) {
		const int queue = queue_of(m->p, dp->view->owner_of[value]);

		match.value = (uint8_t)value;
		if (queue >= 0 && !rule_add(m, &match, (uint16_t)queue))
			return false;
	}
	return true;
}

/* All of them or none. False and why. */
static bool
rules_make(const struct sl_dataplane *dp, struct sl_port *p, char *why)
{
	struct sl_steer *s = &p->steer;
	struct making m = {.p = p, .counted = true, .why = why,
		.room = 2u * dp->transport_count * (dp->view->owner_mask + 1)};
	bool good = true;

	if (s->refuted) {
		snprintf(why, SL_STEER_WHY_SIZE, "flow rules did not steer");
		return false;
	}
	snprintf(why, SL_STEER_WHY_SIZE, "no memory for flow rules");
	s->rules = calloc(m.room ? m.room : 1, sizeof(struct rte_flow *));
	if (s->rules == NULL)
		return false;
	s->left_out = 0;
	for (uint32_t value = 0; value <= dp->view->owner_mask; value++)
		s->left_out = (uint16_t)(s->left_out + (queue_of(p, dp->view->owner_of[value]) < 0));
	for (unsigned t = 0; t < dp->transport_count; t++)
		for (uint8_t family = 4; family <= 6 && good; family = (uint8_t)(family + 2))
			if (has_family(p, family) && listens(&dp->transports[t], family))
				good = rules_add(dp, &m, &dp->transports[t], family);
	if (!good) {
		sl_steer_remove(p);
		return false;
	}
	s->counted = m.counted && m.shown != NULL;
	sl_steer_handed(dp, p->index, &s->rx_before, &s->handed_before);
	snprintf(why, SL_STEER_WHY_SIZE, "%u rules by UDP port and index, %s%s", s->count,
		m.shown ? "each read back by " : "NOT read back: the driver cannot show them", m.shown ? m.shown : "");
	return true;
}

/* --- RSS ----------------------------------------------------------------------------------------------------------------- */

/* How many of the queues the device's table leads to; 0 = it does not say. A table that leaves some out is written anew once. */
static unsigned
rss_queues(const struct sl_port *p, uint16_t entries)
{
	struct rte_eth_rss_reta_entry64 *table;
	const unsigned groups = (entries + RTE_ETH_RETA_GROUP_SIZE - 1u) / RTE_ETH_RETA_GROUP_SIZE;
	uint64_t seen = 0;
	unsigned found = 0;

	table = entries ? calloc(groups, sizeof(*table)) : NULL;
	for (unsigned pass = 0; table && pass < 2 && found < p->rx_queues; pass++) {
		for (unsigned i = 0; i < entries && pass; i++)
			table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] = (uint16_t)(i % p->rx_queues);
		for (unsigned i = 0; i < groups; i++)
			table[i].mask = UINT64_MAX;
		if (entries % RTE_ETH_RETA_GROUP_SIZE)
			table[groups - 1].mask = RTE_BIT64(entries % RTE_ETH_RETA_GROUP_SIZE) - 1;
		if (pass && rte_eth_dev_rss_reta_update(p->ethdev, table, entries) != 0)
			break;
		if (rte_eth_dev_rss_reta_query(p->ethdev, table, entries) != 0)
			break;
		seen = 0;
		for (unsigned i = 0; i < entries; i++)
			seen |= RTE_BIT64(table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] % 64u);
		found = (unsigned)__builtin_popcountll(seen);
	}
	free(table);
	return found;
}

/* What the device says it hashes, and over how many queues. False: it does not spread. */
static bool
rss_read_back(const struct sl_port *p, char *text, size_t size)
{
	const uint64_t ports = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX;
	struct rte_eth_rss_conf conf;
	struct rte_eth_dev_info info;
	unsigned queues;
	int rc;

	memset(&conf, 0, sizeof(conf));
	rc = rte_eth_dev_rss_hash_conf_get(p->ethdev, &conf);
	if (rc != 0) {
		snprintf(text, size, "RSS was set, the driver does not show it (%s)", strerror(-rc));
		return true;
	}
	if (!(conf.rss_hf & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP))) {
		snprintf(text, size, "RSS was set, and read back without IP or UDP");
		return false;
	}
	queues = rte_eth_dev_info_get(p->ethdev, &info) == 0 ? rss_queues(p, info.reta_size) : 0;
	if (queues == 1) {
		snprintf(text, size, "RSS was set, and its table read back with one queue");
		return false;
	}
	if (queues)
		snprintf(text, size, "RSS over %s, read back, table of %u queues",
			conf.rss_hf & ports ? "the outer five-tuple" : "the outer addresses alone", queues);
	else
		snprintf(text, size, "RSS over %s, read back (its table is not shown)",
			conf.rss_hf & ports ? "the outer five-tuple" : "the outer addresses alone");
	return true;
}

/* --- the choice ------------------------------------------------------------------------------------------------------------ */

static bool
has_ethernet(const struct sl_dataplane *dp, const struct sl_port *p)
{
	for (unsigned i = 0; i < dp->transport_count; i++)
		if (dp->transports[i].kind == SL_ADDR_ETH && dp->transports[i].port == p->index)
			return true;
	return false;
}

static bool
has_udp(const struct sl_dataplane *dp, const struct sl_port *p)
{
	for (unsigned i = 0; i < dp->transport_count; i++)
		for (uint8_t family = 4; family <= 6; family = (uint8_t)(family + 2))
			if (has_family(p, family) && listens(&dp->transports[i], family))
				return true;
	return false;
}

static enum sl_steer_mode
choose(struct sl_dataplane *dp, struct sl_port *p, char *why)
{
	char flow[SL_STEER_WHY_SIZE] = "", rss[96];

	if (dp->config.workers == 1 || p->map.count == 1) {
		snprintf(why, SL_STEER_WHY_SIZE, dp->config.workers == 1 ? "one worker" : "one worker receives from this port");
		return SL_STEER_ONE;
	}
	if (p->rx_queues == 1) {
		snprintf(why, SL_STEER_WHY_SIZE, "%s", p->config.steering == SL_STEERING_OFF ? "steering: off" :
			"the device has one receive queue, or no way to spread over more");
		return SL_STEER_SOFTWARE;
	}
	if (!has_udp(dp, p)) {
		snprintf(why, SL_STEER_WHY_SIZE, "raw Ethernet alone: nothing in it that a device steers by");
		return SL_STEER_SOFTWARE;
	}
	if (p->config.steering == SL_STEERING_AUTO || p->config.steering == SL_STEERING_FLOW) {
		if (rules_make(dp, p, flow)) {
			snprintf(why, SL_STEER_WHY_SIZE, "%s", flow);
			return SL_STEER_FLOW;
		}
	} else {
		snprintf(flow, sizeof(flow), "steering: %s", p->config.steering == SL_STEERING_RSS ? "rss" : "off");
	}
	if (p->steer.rss_set && rss_read_back(p, rss, sizeof(rss))) {
		snprintf(why, SL_STEER_WHY_SIZE, "%.140s: %s", flow, rss);
		return SL_STEER_RSS;
	}
	if (p->steer.driver_spreads && !p->steer.rss_set) {
		snprintf(why, SL_STEER_WHY_SIZE, "%.140s: no RSS to set; the driver spreads flows by itself", flow);
		return SL_STEER_DRIVER;
	}
	snprintf(why, SL_STEER_WHY_SIZE, "%.140s: %s", flow, p->steer.rss_set ? rss : "no RSS");
	return SL_STEER_SOFTWARE;
}

void
sl_steer_apply(struct sl_dataplane *dp, struct sl_port *p)
{
	const enum sl_steer_mode was = p->steer.mode;
	char why[SL_STEER_WHY_SIZE] = "";
	size_t n;

	sl_steer_remove(p);
	p->steer.left_out = 0;
	p->steer.counted = false;
	p->steer.mode = choose(dp, p, why);
	n = strlen(why);
	if (p->steer.mode == SL_STEER_FLOW && p->steer.left_out)
		n += (size_t)snprintf(why + n, sizeof(why) - n, "; %u of %u owners receive elsewhere", p->steer.left_out,
			dp->view->owner_mask + 1);
	if (p->steer.mode > SL_STEER_ONE && has_ethernet(dp, p) && has_udp(dp, p) && n < sizeof(why))
		snprintf(why + n, sizeof(why) - n, "; raw Ethernet by software");
	if (was == p->steer.mode && strcmp(p->steer.why, why) == 0)
		return;
	memcpy(p->steer.why, why, sizeof(why));
	sl_log(p->config.steering == SL_STEERING_FLOW && p->steer.mode != SL_STEER_FLOW ? SL_LOG_WARNING : SL_LOG_NOTICE,
		SL_TOPIC_PIPELINE, "port %s: steering: %s: %s", p->config.name, sl_steer_mode_name(p->steer.mode), why);
}

/* --- what traffic says ------------------------------------------------------------------------------------------------------- */

void
sl_steer_handed(const struct sl_dataplane *dp, uint16_t port, uint64_t *rx, uint64_t *handed)
{
	*rx = *handed = 0;
	for (unsigned i = 0; i < dp->config.workers; i++) {
		*rx += __atomic_load_n(&dp->workers[i]->counters.port_rx[port], __ATOMIC_RELAXED);
		*handed += __atomic_load_n(&dp->workers[i]->counters.port_handed[port], __ATOMIC_RELAXED);
	}
}

/* Half of the frames at two workers, and more at more, would be handed over with no rules at all. */
void
sl_steer_watch(struct sl_dataplane *dp, struct sl_port *p)
{
	struct sl_steer *s = &p->steer;
	uint64_t rx, handed;

	if (s->mode != SL_STEER_FLOW || s->left_out || has_ethernet(dp, p))
		return;
	sl_steer_handed(dp, p->index, &rx, &handed);
	rx -= s->rx_before;
	handed -= s->handed_before;
	if (rx < PROOF_FRAMES)
		return;
	s->rx_before += rx;
	s->handed_before += handed;
	if (handed * 4 < rx)
		return;
	sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE,
		"port %s: flow rules are in force, but %llu of %llu frames came to other workers' queues", p->config.name,
		(unsigned long long)handed, (unsigned long long)rx);
	if (p->config.steering == SL_STEERING_FLOW)
		return;
	s->refuted = true;
	sl_steer_apply(dp, p);
}
