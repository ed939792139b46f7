/* SPDX-License-Identifier: BSD-3-Clause */
/* What is about ports, workers, losses, neighbours, counters and the engine. */
#include <arpa/inet.h>
#include <rte_cycles.h>
#include "sl_aead_cryptodev.h"
#include "log.h"
#include "show_internal.h"
#include "sl_neigh.h"

static json_t *
json_ip(const struct sl_ifaddr *ip, bool prefix)
{
	char text[INET6_ADDRSTRLEN + 8] = "";

	inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->ip, text, INET6_ADDRSTRLEN);
	if (prefix)
		snprintf(text + strlen(text), 8, "/%u", ip->prefix_len);
	return json_string(text);
}

static json_t *
json_mac(const uint8_t *mac)
{
	char text[24];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	return json_string(text);
}

static void
set_u64(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* By queue: the worker that polls it. */
static json_t *
queue_workers(const struct sl_daemon *d, uint16_t port, uint16_t queues)
{
	json_t *list = json_array();

	for (uint16_t q = 0; q < queues; q++)
		json_array_append_new(list, json_integer(sl_dataplane_queue_worker(d->dp, port, q)));
	return list;
}

json_t *
sl_show_ports(struct sl_daemon *d, const json_t *params)
{
	json_t *list = json_array(), *answer = json_object();

	(void)params;
	for (uint16_t i = 0; i < sl_dataplane_ports(d->dp); i++) {
		const struct sl_conf_port *conf = &d->config->dataplane.ports[i];
		struct sl_port_stats s;
		json_t *o, *addrs, *routes;

		if (sl_dataplane_port_stats(d->dp, i, &s))
			continue;
		o = json_object();
		addrs = json_array();
		routes = json_array();
		json_object_set_new(o, "name", json_string(s.name));
		json_object_set_new(o, "device", json_string(conf->device));
		json_object_set_new(o, "driver", json_string(s.driver));
		json_object_set_new(o, "mac", json_mac(s.mac));
		json_object_set_new(o, "state", json_string(s.state));
		json_object_set_new(o, "state_secs", json_real(sl_age_s(d, s.state_since_us)));
		json_object_set_new(o, "link_up", json_boolean(s.link_up));
		set_u64(o, "link_downs", s.link_downs);
		set_u64(o, "removals", s.removals);
		set_u64(o, "resets", s.resets);
		set_u64(o, "returns", s.returns);
		set_u64(o, "link_mbps", s.link_mbps);
		set_u64(o, "queues", s.queues);
		json_object_set_new(o, "numa_node", json_integer(s.node));
		json_object_set_new(o, "queue_workers", queue_workers(d, i, s.queues));
		json_object_set_new(o, "profile", json_string(d->profiles[i]));
		set_u64(o, "mtu", s.mtu);
		set_u64(o, "vlan", conf->vlan);
		set_u64(o, "rx_packets", s.rx_packets);
		set_u64(o, "tx_packets", s.tx_packets);
		set_u64(o, "rx_bytes", s.rx_bytes);
		set_u64(o, "tx_bytes", s.tx_bytes);
		set_u64(o, "rx_missed", s.rx_missed);
		set_u64(o, "rx_errors", s.rx_errors);
		set_u64(o, "rx_nombuf", s.rx_nombuf);
		set_u64(o, "tx_errors", s.tx_errors);
		json_object_set_new(o, "steering", json_string(s.steering));
		json_object_set_new(o, "steering_why", json_string(s.steering_why));
		set_u64(o, "flow_rules", s.flow_rules);
		set_u64(o, "flow_hits", sl_dataplane_flow_hits(d->dp, i));
		set_u64(o, "received", s.received);
		set_u64(o, "handed_over", s.handed_over);
		set_u64(o, "control_tx", s.control_tx);
		set_u64(o, "control_tx_dropped", s.control_tx_dropped);
		for (uint32_t a = 0; a < conf->address_count; a++)
			json_array_append_new(addrs, json_ip(&conf->addresses[a].ip, true));
		for (uint32_t r = 0; r < conf->route_count; r++) {
			json_t *route = json_object();

			json_object_set_new(route, "to", json_ip(&conf->routes[r].to, true));
			json_object_set_new(route, "via", json_ip(&conf->routes[r].via, false));
			json_array_append_new(routes, route);
		}
		json_object_set_new(o, "addresses", addrs);
		json_object_set_new(o, "routes", routes);
		json_array_append_new(list, o);
	}
	json_object_set_new(answer, "ports", list);
	return answer;
}

/* Readings are of whole bursts (sl_dataplane_worker_stats()): what does not add up is a fault. */
static bool
read_balanced(const struct sl_daemon *d, uint16_t worker, struct sl_worker_stats *s)
{
	uint64_t sum = 0;

	sl_dataplane_worker_stats(d->dp, worker, s);
	for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
		sum += s->verdicts[v];
	return sum == s->rx;
}

/* Cycles a packet, null where nothing was counted. */
static json_t *
json_per_packet(uint64_t cycles, const struct sl_worker_stats *s)
{
	return s->rx && s->busy_tsc ? json_real((double)cycles / (double)s->rx) : json_null();
}

/* "port:queue" of each receive queue that the worker polls. */
static json_t *
worker_queues(const struct sl_daemon *d, uint16_t worker)
{
	json_t *list = json_array();

	for (uint16_t p = 0; p < sl_dataplane_ports(d->dp); p++)
		for (uint16_t q = 0; sl_dataplane_queue_worker(d->dp, p, q) >= 0; q++) {
			char text[SL_CONF_NAME_SIZE + 8];

			if (sl_dataplane_queue_worker(d->dp, p, q) != worker)
				continue;
			snprintf(text, sizeof(text), "%s:%u", d->config->dataplane.ports[p].name, q);
			json_array_append_new(list, json_string(text));
		}
	return list;
}

/* What goes through the worker's lane of spread sessions, null where there is no such mode. */
static json_t *
json_lane(const struct sl_daemon *d, uint16_t worker)
{
	struct sl_lane_stats s;
	json_t *o;

	if (!sl_dataplane_lane_stats(d->dp, worker, &s))
		return json_null();
	o = json_object();
	json_object_set_new(o, "in_use", json_boolean(s.in_use));
	set_u64(o, "frames", s.frames);
	set_u64(o, "slots", s.slots);
	set_u64(o, "own_slots", s.own_slots);
	json_object_set_new(o, "wait_us",
		s.slots ? json_real((double)s.wait_tsc / (double)s.slots * 1e6 / (double)rte_get_tsc_hz()) : json_null());
	json_object_set_new(o, "order_cycles_per_packet",
		s.frames && s.order_tsc ? json_real((double)s.order_tsc / (double)s.frames) : json_null());
	set_u64(o, "stuck", s.stuck);
	set_u64(o, "full", s.full);
	return o;
}

/* Peers whose frames several workers open and seal. */
static json_t *
json_elephants(const struct sl_daemon *d)
{
	struct sl_elephant_info info[32];
	const unsigned n = sl_dataplane_elephants(d->dp, info, RTE_DIM(info));
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		char npub[SL_NPUB_SIZE];
		json_t *o = json_object();

		sl_npub_format(npub, sl_port_events_key(d, info[i].peer_id));
		json_object_set_new(o, "npub", json_string(npub));
		set_u64(o, "worker", info[i].worker);
		json_object_set_new(o, "secs", json_real(sl_age_s(d, info[i].since_us)));
		json_object_set_new(o, "ending", json_boolean(info[i].ending));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *
sl_show_workers(struct sl_daemon *d, const json_t *params)
{
	json_t *list = json_array(), *answer = json_object();

	(void)params;
	for (uint16_t i = 0; i < sl_dataplane_workers(d->dp); i++) {
		struct sl_worker_stats s;
		bool balanced = read_balanced(d, i, &s);
		uint64_t tsc = s.busy_tsc + s.idle_tsc, dropped = 0;
		json_t *o = json_object();

		for (unsigned v = SL_LOCAL + 1; v < SL_VERDICT_COUNT; v++)
			dropped += s.verdicts[v];
		set_u64(o, "worker", i);
		set_u64(o, "lcore", sl_dataplane_worker_lcore(d->dp, i));
		set_u64(o, "cpu", i < d->plan.workers ? d->plan.worker_cpus[i] : 0);
		json_object_set_new(o, "numa_node", json_integer(sl_dataplane_worker_node(d->dp, i)));
		json_object_set_new(o, "polls_queues", worker_queues(d, i));
		json_object_set_new(o, "stalled", json_boolean(s.stalled));
		json_object_set_new(o, "still_secs", json_real((double)s.still_us / 1e6));
		set_u64(o, "stalls", s.stalls);
		set_u64(o, "rx", s.rx);
		set_u64(o, "tx", s.tx);
		set_u64(o, "punt", s.verdicts[SL_PUNT]);
		set_u64(o, "handoff", s.verdicts[SL_HANDOFF]);
		set_u64(o, "handoff_in", s.handoff_in);
		set_u64(o, "local", s.verdicts[SL_LOCAL]);
		set_u64(o, "dropped", dropped);
		json_object_set_new(o, "balanced", json_boolean(balanced));
		set_u64(o, "rx_bytes", s.rx_bytes);
		set_u64(o, "tx_bytes", s.tx_bytes);
		set_u64(o, "busy_tsc", s.busy_tsc);
		set_u64(o, "idle_tsc", s.idle_tsc);
		set_u64(o, "transit_tsc", s.transit_tsc);
		set_u64(o, "driver_tsc", s.driver_tsc);
		set_u64(o, "longest_turn_us", s.longest_tsc * 1000000 / rte_get_tsc_hz());
		set_u64(o, "polls", s.polls);
		set_u64(o, "busy_polls", s.busy_polls);
		json_object_set_new(o, "busy_ratio",
			tsc ? json_real((double)s.busy_tsc / (double)tsc) : json_null());
		/* All of busy polls; of that: ours, and the drivers' receive and transmit. */
		json_object_set_new(o, "cycles_per_packet", json_per_packet(s.busy_tsc, &s));
		json_object_set_new(
			o, "transit_cycles_per_packet", json_per_packet(s.transit_tsc, &s));
		json_object_set_new(o, "driver_cycles_per_packet", json_per_packet(s.driver_tsc, &s));
		json_object_set_new(o, "packets_per_busy_poll",
			s.busy_polls ? json_real((double)s.rx / (double)s.busy_polls)
				     : json_null());
		set_u64(o, "joined", s.joined);
		json_object_set_new(o, "lane", json_lane(d, i));
		set_u64(o, "punt_ring_full", s.punt_ring_full);
		set_u64(o, "event_ring_full", s.event_ring_full);
		set_u64(o, "learn_ring_full", s.learn_ring_full);
		json_array_append_new(list, o);
	}
	json_object_set_new(answer, "workers", list);
	json_object_set_new(answer, "spread", json_elephants(d));
	set_u64(answer, "tsc_hz", rte_get_tsc_hz());
	return answer;
}

json_t *
sl_show_drops(struct sl_daemon *d, const json_t *params)
{
	uint64_t verdicts[SL_VERDICT_COUNT] = {0}, rx = 0, dropped = 0, handoff_in = 0, rings = 0;
	uint64_t missed = 0, nombuf = 0, errors = 0, tx_errors = 0, control = 0;
	json_t *o = json_object(), *drops = json_object(), *meanings = json_object(),
	       *ports = json_object();
	bool balanced = true;

	(void)params;
	for (uint16_t i = 0; i < sl_dataplane_workers(d->dp); i++) {
		struct sl_worker_stats s;

		balanced &= read_balanced(d, i, &s);
		rx += s.rx;
		handoff_in += s.handoff_in;
		rings += s.event_ring_full + s.learn_ring_full;
		for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
			verdicts[v] += s.verdicts[v];
	}
	for (unsigned v = SL_LOCAL + 1; v < SL_VERDICT_COUNT; v++) {
		dropped += verdicts[v];
		set_u64(drops, sl_verdict_name((enum sl_verdict)v), verdicts[v]);
		json_object_set_new(meanings, sl_verdict_name((enum sl_verdict)v),
			json_string(sl_verdict_meaning((enum sl_verdict)v)));
	}
	for (uint16_t i = 0; i < sl_dataplane_ports(d->dp); i++) {
		struct sl_port_stats s;

		if (sl_dataplane_port_stats(d->dp, i, &s))
			continue;
		missed += s.rx_missed;
		nombuf += s.rx_nombuf;
		errors += s.rx_errors;
		tx_errors += s.tx_errors;
		control += s.control_tx_dropped;
	}
	json_object_set_new(o, "balanced", json_boolean(balanced));
	set_u64(o, "rx", rx);
	set_u64(o, "tx", verdicts[SL_FORWARD]);
	set_u64(o, "punt", verdicts[SL_PUNT]);
	set_u64(o, "handoff", verdicts[SL_HANDOFF]);
	set_u64(o, "handoff_in", handoff_in);
	set_u64(o, "local", verdicts[SL_LOCAL]);
	set_u64(o, "dropped", dropped);
	json_object_set_new(o, "drops", drops);
	json_object_set_new(o, "meanings", meanings);
	/* Lost outside the workers' balance. */
	set_u64(ports, "rx_missed", missed);
	set_u64(ports, "rx_nombuf", nombuf);
	set_u64(ports, "rx_errors", errors);
	set_u64(ports, "tx_errors", tx_errors);
	set_u64(ports, "control_tx_dropped", control);
	set_u64(ports, "reports_to_control_lost", rings);
	json_object_set_new(o, "outside", ports);
	return o;
}

static void
add_neigh(void *arg, const struct sl_neigh_info *n)
{
	json_t *o = json_object();

	json_object_set_new(o, "ip", json_ip(&n->ip, false));
	json_object_set_new(o, "mac", json_mac(n->mac));
	set_u64(o, "port", n->port);
	json_object_set_new(o, "state", json_string(n->state));
	set_u64(o, "age_secs", n->age_s);
	json_array_append_new(arg, o);
}

json_t *
sl_show_neighbours(struct sl_daemon *d, const json_t *params)
{
	json_t *o = json_object(), *list = json_array();
	json_t *e;
	size_t i;

	(void)params;
	sl_dataplane_for_each_neigh(d->dp, add_neigh, list);
	json_array_foreach(list, i, e)
	{
		json_int_t port = json_integer_value(json_object_get(e, "port"));

		if (port >= 0 && port < d->config->dataplane.port_count)
			json_object_set_new(
				e, "port_name", json_string(d->config->dataplane.ports[port].name));
	}
	json_object_set_new(o, "neighbours", list);
	return o;
}

json_t *
sl_show_counters(struct sl_daemon *d, const json_t *params)
{
	const uint64_t *link = sl_links_counters(d->links), *route = sl_router_counters(d->router),
		       *neigh = sl_dataplane_neigh_counters(d->dp);
	json_t *o = json_object(), *links = json_object(), *routes = json_object(),
	       *neighbours = json_object(), *app = json_object();

	(void)params;
	for (unsigned i = 0; i < SL_LINK_COUNTER_COUNT; i++)
		set_u64(links, sl_link_counter_name((enum sl_link_counter)i), link[i]);
	for (unsigned i = 0; i < SL_ROUTE_COUNTER_COUNT; i++)
		set_u64(routes, sl_route_counter_name((enum sl_route_counter)i), route[i]);
	for (unsigned i = 0; i < SL_NEIGH_COUNTER_COUNT; i++)
		set_u64(neighbours, sl_neigh_counter_name((enum sl_neigh_counter)i), neigh[i]);
	for (unsigned i = 0; i < SL_APP_COUNTER_COUNT; i++)
		set_u64(app, sl_app_counter_name((enum sl_app_counter)i), d->counters[i]);
	set_u64(app, "log_lines_left_out", sl_app_log_suppressed());
	json_object_set_new(o, "link", links);
	json_object_set_new(o, "route", routes);
	json_object_set_new(o, "neighbour", neighbours);
	json_object_set_new(o, "daemon", app);
	json_object_set_new(o, "found", sl_show_found_counters(d));
	json_object_set_new(o, "mtu", sl_show_mtu_counters(d));
	return o;
}

static const char *
self_test_text(const struct sl_aead_backend *b)
{
	switch (sl_aead_self_test(b)) {
	case SL_AEAD_PASSED: return "passed";
	case SL_AEAD_FAILED: return "FAILED";
	case SL_AEAD_NOT_HERE: break;
	}
	return "not on this CPU";
}

/* Why the engine in use is that one. */
static void
why_engine(const struct sl_daemon *d, char *why, size_t size)
{
	const struct sl_aead_backend *wide, *narrow;

	sl_aead_auto_uses(&wide, &narrow);
	if (d->aead == &sl_aead_cryptodev)
		snprintf(why, size, "configured: device %s", sl_aead_cryptodev_name());
	else if (strcmp(d->aead->name, "auto") != 0)
		snprintf(why, size, "configured by name");
	else if (wide)
		snprintf(why, size, "for every burst the faster one as measured: %s across packets, %s for few packets", wide->name,
			narrow->name);
	else
		snprintf(why, size, "no engine across packets is usable here: always %s", narrow->name);
}

json_t *
sl_show_crypto(struct sl_daemon *d, const json_t *params)
{
	json_t *o = json_object(), *list = json_array(), *device = json_object();
	const struct sl_aead_backend *wide, *narrow;
	const bool is_auto = strcmp(d->aead->name, "auto") == 0;
	char why[160];

	(void)params;
	sl_aead_auto_uses(&wide, &narrow);
	for (const struct sl_aead_backend *const *b = sl_aead_backends(); *b; b++) {
		json_t *e = json_object();

		json_object_set_new(e, "name", json_string((*b)->name));
		json_object_set_new(e, "usable", json_boolean((*b)->usable()));
		json_object_set_new(e, "selected", json_boolean(*b == d->aead));
		json_object_set_new(e, "used_by_auto", json_boolean(is_auto && (*b == wide || *b == narrow)));
		json_object_set_new(e, "self_test", json_string(*b == sl_aead_backends()[0] ? "-" : self_test_text(*b)));
		json_array_append_new(list, e);
	}
	why_engine(d, why, sizeof(why));
	json_object_set_new(o, "engine", json_string(d->aead->name));
	json_object_set_new(o, "configured", json_string(d->config->dataplane.aead));
	json_object_set_new(o, "why", json_string(why));
	json_object_set_new(o, "engines", list);
	for (unsigned i = 0; d->aead == &sl_aead_cryptodev && i < SL_CRYPTODEV_COUNTERS; i++)
		set_u64(device, sl_cryptodev_counter_name((enum sl_cryptodev_counter)i),
			sl_cryptodev_counter((enum sl_cryptodev_counter)i));
	json_object_set_new(o, "device_counters", device);
	return o;
}
