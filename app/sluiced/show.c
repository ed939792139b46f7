/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and what is about the node and its peers; show_dataplane.c has the rest. */
#include "show.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>
#include "daemon.h"
#include "show_internal.h"

/* --- small things --------------------------------------------------------------------------- */

json_t *
sl_json_addr(const struct sl_node_addr *a)
{
	char text[2 * SL_NODE_ADDR_BYTES + 1];

	sl_hex_format(text, a->bytes, SL_NODE_ADDR_BYTES);
	return json_string(text);
}

json_t *
sl_json_npub(const uint8_t *xonly)
{
	char text[SL_NPUB_SIZE];

	sl_npub_format(text, xonly);
	return json_string(text);
}

static json_t *
json_ipv6(const struct sl_node_addr *a)
{
	uint8_t ip[SL_IPV6_BYTES];
	char text[INET6_ADDRSTRLEN] = "";

	sl_node_addr_to_ipv6(ip, a);
	inet_ntop(AF_INET6, ip, text, sizeof(text));
	return json_string(text);
}

double
sl_age_s(const struct sl_daemon *d, uint64_t then_us)
{
	return then_us && d->now_us > then_us ? (double)(d->now_us - then_us) / 1e6 : 0.0;
}

/* --- who is who ----------------------------------------------------------------------------- */

/* Every link once, by peer_id, with what names it: the router knows addresses only. */
struct names {
	struct sl_daemon *d;
	uint32_t n;
	struct name {
		uint32_t peer_id;
		uint8_t xonly[SL_XONLY_BYTES];
		struct sl_node_addr addr;
		char alias[SL_ALIAS_SIZE];
	} * rows;
};

static void
collect(void *arg, const struct sl_link_info *info)
{
	struct names *names = arg;
	struct name *row;

	if (names->n == names->d->max_peers + names->d->config->peer_count)
		return;
	row = &names->rows[names->n++];
	row->peer_id = info->peer_id;
	memcpy(row->xonly, info->xonly, SL_XONLY_BYTES);
	sl_node_addr_from_xonly(&row->addr, info->xonly);
	memcpy(row->alias, info->alias, SL_ALIAS_SIZE);
}

static bool
names_init(struct names *names, struct sl_daemon *d)
{
	names->d = d;
	names->n = 0;
	names->rows = calloc(d->max_peers + d->config->peer_count, sizeof(*names->rows));
	if (names->rows)
		sl_links_for_each(d->links, collect, names);
	return names->rows != NULL;
}

static const struct name *
find_name(const struct names *names, uint32_t peer_id, const struct sl_node_addr *addr)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (addr ? sl_node_addr_equal(&names->rows[i].addr, addr)
			 : names->rows[i].peer_id == peer_id)
			return &names->rows[i];
	return NULL;
}

/* The alias, else the npub shortened as FIPS does it. */
static json_t *
display_name(const uint8_t *xonly, const char *alias)
{
	char npub[SL_NPUB_SIZE], text[32];

	if (alias && alias[0])
		return json_string(alias);
	sl_npub_format(npub, xonly);
	snprintf(text, sizeof(text), "%.9s...%s", npub, npub + SL_NPUB_CHARS - 4);
	return json_string(text);
}

static json_t *
name_of(const struct names *names, uint32_t peer_id, const struct sl_node_addr *addr)
{
	const struct name *row = find_name(names, peer_id, addr);

	return row ? display_name(row->xonly, row->alias) : json_null();
}

/* --- status --------------------------------------------------------------------------------- */

struct link_sums {
	uint64_t up, configured, dialling;
};

static void
sum_links(void *arg, const struct sl_link_info *info)
{
	struct link_sums *sums = arg;

	sums->up += info->peer_id != SL_PEER_NONE && !strcmp(info->state, "up");
	sums->dialling += !strcmp(info->state, "dialling");
	sums->configured += info->configured;
}

static uint64_t
resident_kib(void)
{
	unsigned long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(f);
	return (uint64_t)resident * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

static json_t *
show_status(struct sl_daemon *d, const json_t *params)
{
	const struct sl_node_addr *self = sl_identity_addr(d->identity);
	struct sl_tree_info tree;
	struct link_sums sums = {0, 0, 0};
	uint32_t free_buffers, buffers;
	json_t *o = json_object();

	(void)params;
	sl_router_tree(d->router, &tree);
	sl_links_for_each(d->links, sum_links, &sums);
	sl_dataplane_buffers(d->dp, &free_buffers, &buffers);
	json_object_set_new(o, "version", json_string(SLUICE_VERSION));
	json_object_set_new(o, "npub", sl_json_npub(sl_identity_xonly(d->identity)));
	json_object_set_new(o, "node_addr", sl_json_addr(self));
	json_object_set_new(o, "ipv6_addr", json_ipv6(self));
	json_object_set_new(o, "state", json_string(d->stopping ? "draining" : "running"));
	json_object_set_new(o, "uptime_secs", json_integer((json_int_t)sl_age_s(d, d->start_us)));
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "control_socket", json_string(d->config->control.socket_path));
	json_object_set_new(o, "config_file", json_string(d->config_path));
	json_object_set_new(o, "peer_count", json_integer((json_int_t)sums.up));
	json_object_set_new(o, "configured_peer_count", json_integer((json_int_t)sums.configured));
	json_object_set_new(o, "dialling_count", json_integer((json_int_t)sums.dialling));
	json_object_set_new(o, "session_count", json_integer(sl_session_count(d->table)));
	json_object_set_new(o, "transport_count",
		json_integer(d->config->udp_count + d->config->ethernet_count));
	json_object_set_new(o, "root", sl_json_addr(&tree.root));
	json_object_set_new(o, "is_root", json_boolean(sl_node_addr_equal(&tree.root, self)));
	json_object_set_new(o, "depth", json_integer(tree.depth));
	json_object_set_new(o, "estimated_mesh_size",
		tree.mesh_size < 0 ? json_null() : json_real(tree.mesh_size));
	json_object_set_new(o, "aead", json_string(d->aead->name));
	json_object_set_new(o, "workers", json_integer(sl_dataplane_workers(d->dp)));
	json_object_set_new(o, "ports", json_integer(sl_dataplane_ports(d->dp)));
	json_object_set_new(o, "memory", json_string(d->plan.why_memory));
	json_object_set_new(o, "eal_memory_mib", json_integer(d->plan.memory_mb));
	json_object_set_new(o, "resident_kib", json_integer((json_int_t)resident_kib()));
	json_object_set_new(o, "session_table_kib",
		json_integer((json_int_t)(sl_session_table_bytes(d->table) >> 10)));
	json_object_set_new(o, "buffers_free", json_integer(free_buffers));
	json_object_set_new(o, "buffers", json_integer(buffers));
	json_object_set_new(o, "longest_turn_us", json_integer((json_int_t)d->longest_turn_us));
	return o;
}

/* --- peers and links ------------------------------------------------------------------------ */

struct link_list {
	struct sl_daemon *d;
	json_t *list;
	struct peer_row { /* the router's side, by peer_id */
		bool known;
		struct sl_router_peer_info info;
	} * rows;
};

static void
collect_router_peer(void *arg, const struct sl_router_peer_info *info)
{
	struct link_list *l = arg;

	if (l->rows && info->peer_id < l->d->max_peers) {
		l->rows[info->peer_id].known = true;
		l->rows[info->peer_id].info = *info;
	}
}

static json_t *
link_stats(const struct sl_link_info *i)
{
	json_t *o = json_object();

	json_object_set_new(o, "packets_sent", json_integer((json_int_t)i->tx_frames));
	json_object_set_new(o, "packets_recv", json_integer((json_int_t)i->rx_frames));
	json_object_set_new(o, "bytes_sent", json_integer((json_int_t)i->tx_bytes));
	json_object_set_new(o, "bytes_recv", json_integer((json_int_t)i->rx_bytes));
	return o;
}

static json_t *
link_metrics(const struct sl_link_metrics *m)
{
	json_t *o = json_object();

	if (m->measured)
		json_object_set_new(o, "srtt_ms", json_real(m->srtt_us / 1000));
	json_object_set_new(o, "loss_rate", json_real(m->loss));
	json_object_set_new(o, "etx", json_real(m->etx));
	json_object_set_new(o, "cost", json_real(m->cost));
	json_object_set_new(o, "jitter_us", json_integer(m->jitter_us));
	json_object_set_new(o, "goodput_bps", json_real(m->goodput_bytes_per_s));
	return o;
}

static void
set_address(json_t *o, const struct sl_daemon *d, const struct sl_addr *addr, const char *key)
{
	char text[SL_ADDR_TEXT_SIZE], transport[SL_CONF_NAME_SIZE * 2];

	if (addr->kind == SL_ADDR_NONE)
		return;
	sl_addr_format(text, addr);
	json_object_set_new(o, "transport_type",
		json_string(sl_transport_name(d->config, addr->transport, transport)));
	json_object_set_new(o, key, json_string(text));
}

static void
set_timing(json_t *o, const struct sl_daemon *d, const struct sl_link_info *i)
{
	if (i->up_since_us)
		json_object_set_new(o, "up_secs", json_real(sl_age_s(d, i->up_since_us)));
	if (i->last_rx_us)
		json_object_set_new(o, "last_rx_secs", json_real(sl_age_s(d, i->last_rx_us)));
	if (i->next_dial_us)
		json_object_set_new(o, "next_dial_secs",
			json_real(i->next_dial_us > d->now_us
					  ? (double)(i->next_dial_us - d->now_us) / 1e6
					  : 0.0));
	json_object_set_new(o, "dial_failures", json_integer(i->dial_failures));
	json_object_set_new(
		o, "last_error", i->last_error ? json_string(i->last_error) : json_null());
}

static void
add_peer(void *arg, const struct sl_link_info *i)
{
	struct link_list *l = arg;
	const struct peer_row *row =
		l->rows && i->peer_id < l->d->max_peers && l->rows[i->peer_id].known
			? &l->rows[i->peer_id]
			: NULL;
	struct sl_node_addr addr;
	json_t *o = json_object();

	sl_node_addr_from_xonly(&addr, i->xonly);
	json_object_set_new(o, "npub", sl_json_npub(i->xonly));
	json_object_set_new(o, "node_addr", sl_json_addr(&addr));
	json_object_set_new(o, "ipv6_addr", json_ipv6(&addr));
	json_object_set_new(o, "display_name", display_name(i->xonly, i->alias));
	json_object_set_new(o, "state", json_string(i->state));
	json_object_set_new(o, "connectivity",
		json_string(strcmp(i->state, "up") ? "disconnected" : "connected"));
	json_object_set_new(o, "configured", json_boolean(i->configured));
	json_object_set_new(o, "direction", json_string(i->outbound ? "outbound" : "inbound"));
	set_address(o, l->d, &i->addr, "transport_addr");
	set_timing(o, l->d, i);
	json_object_set_new(o, "is_parent", json_boolean(row && row->info.is_parent));
	json_object_set_new(o, "is_child", json_boolean(row && row->info.is_child));
	json_object_set_new(o, "has_tree_position", json_boolean(row && row->info.has_ancestry));
	if (row && row->info.has_ancestry)
		json_object_set_new(o, "tree_depth", json_integer(row->info.depth));
	json_object_set_new(o, "stats", link_stats(i));
	json_object_set_new(o, "mmp", link_metrics(&i->metrics));
	json_array_append_new(l->list, o);
}

static json_t *
list_answer(const char *key, json_t *list)
{
	json_t *o = json_object();

	json_object_set_new(o, key, list);
	return o;
}

static json_t *
show_peers(struct sl_daemon *d, const json_t *params)
{
	struct link_list l = {d, json_array(), calloc(d->max_peers, sizeof(*l.rows))};

	(void)params;
	sl_router_for_each_peer(d->router, collect_router_peer, &l);
	sl_links_for_each(d->links, add_peer, &l);
	free(l.rows);
	return list_answer("peers", l.list);
}

static void
add_link(void *arg, const struct sl_link_info *i)
{
	struct link_list *l = arg;
	char index[16];
	json_t *o;

	if (i->peer_id == SL_PEER_NONE)
		return;
	o = json_object();
	json_object_set_new(o, "link_id", json_integer(i->peer_id));
	json_object_set_new(o, "npub", sl_json_npub(i->xonly));
	json_object_set_new(o, "display_name", display_name(i->xonly, i->alias));
	set_address(o, l->d, &i->addr, "remote_addr");
	json_object_set_new(o, "direction", json_string(i->outbound ? "outbound" : "inbound"));
	json_object_set_new(o, "state", json_string(i->state));
	set_timing(o, l->d, i);
	snprintf(index, sizeof(index), "%08x", i->rx_index);
	json_object_set_new(o, "our_session_index", json_string(index));
	snprintf(index, sizeof(index), "%08x", i->tx_index);
	json_object_set_new(o, "their_session_index", json_string(index));
	json_object_set_new(o, "current_k_bit", json_integer(i->k));
	json_object_set_new(o, "owner_worker",
		json_integer(sl_session_owner(sl_session_table_view(l->d->table), i->rx_index)));
	json_object_set_new(o, "rekeys", json_integer(i->rekeys));
	json_object_set_new(o, "replays", json_integer((json_int_t)i->replays));
	json_object_set_new(o, "open_failures", json_integer((json_int_t)i->open_failures));
	json_object_set_new(o, "stats", link_stats(i));
	json_object_set_new(o, "mmp", link_metrics(&i->metrics));
	json_array_append_new(l->list, o);
}

static json_t *
show_links(struct sl_daemon *d, const json_t *params)
{
	struct link_list l = {d, json_array(), NULL};

	(void)params;
	sl_links_for_each(d->links, add_link, &l);
	return list_answer("links", l.list);
}

/* --- tree, filters, routes ------------------------------------------------------------------ */

struct peer_list {
	const struct names *names;
	json_t *list;
};

static void
add_tree_peer(void *arg, const struct sl_router_peer_info *i)
{
	struct peer_list *l = arg;
	json_t *o = json_object();

	json_object_set_new(o, "node_addr", sl_json_addr(&i->addr));
	json_object_set_new(o, "display_name", name_of(l->names, i->peer_id, NULL));
	json_object_set_new(o, "is_parent", json_boolean(i->is_parent));
	json_object_set_new(o, "is_child", json_boolean(i->is_child));
	if (i->has_ancestry) {
		json_object_set_new(o, "depth", json_integer(i->depth));
		json_object_set_new(o, "root", sl_json_addr(&i->root));
		json_object_set_new(o, "sequence", json_integer((json_int_t)i->tree_sequence));
	}
	json_object_set_new(o, "cost", json_real(i->cost));
	json_object_set_new(o, "mtu", json_integer(i->mtu));
	json_array_append_new(l->list, o);
}

static json_t *
show_tree(struct sl_daemon *d, const json_t *params)
{
	const struct sl_node_addr *self = sl_identity_addr(d->identity);
	struct sl_node_addr coords[64];
	struct sl_tree_info t;
	struct names names;
	struct peer_list l = {&names, json_array()};
	json_t *o = json_object(), *path = json_array();
	uint32_t n;

	(void)params;
	if (!names_init(&names, d)) {
		json_decref(path);
		json_decref(l.list);
		json_decref(o);
		return NULL;
	}
	sl_router_tree(d->router, &t);
	n = sl_router_coords(d->router, coords, 64);
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(path, sl_json_addr(&coords[i]));
	sl_router_for_each_peer(d->router, add_tree_peer, &l);
	json_object_set_new(o, "my_node_addr", sl_json_addr(self));
	json_object_set_new(o, "root", sl_json_addr(&t.root));
	json_object_set_new(o, "is_root", json_boolean(sl_node_addr_equal(&t.root, self)));
	json_object_set_new(o, "depth", json_integer(t.depth));
	json_object_set_new(o, "coords", path);
	json_object_set_new(o, "parent", sl_json_addr(&t.parent));
	json_object_set_new(o, "parent_display_name", name_of(&names, t.parent_peer, &t.parent));
	json_object_set_new(o, "declaration_sequence", json_integer((json_int_t)t.sequence));
	json_object_set_new(o, "declaration_unix_secs", json_integer((json_int_t)t.timestamp_s));
	json_object_set_new(o, "peer_tree_count", json_integer(t.peers));
	json_object_set_new(o, "children", json_integer(t.children));
	json_object_set_new(
		o, "estimated_mesh_size", t.mesh_size < 0 ? json_null() : json_real(t.mesh_size));
	json_object_set_new(o, "peers", l.list);
	free(names.rows);
	return o;
}

static void
add_filter(void *arg, const struct sl_router_peer_info *i)
{
	struct peer_list *l = arg;
	json_t *o = json_object();

	json_object_set_new(o, "node_addr", sl_json_addr(&i->addr));
	json_object_set_new(o, "display_name", name_of(l->names, i->peer_id, NULL));
	json_object_set_new(o, "has_filter", json_boolean(i->filter_bits > 0));
	json_object_set_new(o, "filter_sequence", json_integer((json_int_t)i->filter_sequence_rx));
	json_object_set_new(o, "sent_sequence", json_integer((json_int_t)i->filter_sequence_tx));
	json_object_set_new(o, "set_bits", json_integer(i->filter_bits));
	json_object_set_new(o, "fill_ratio", json_real((double)i->filter_bits / SL_FILTER_BITS));
	json_object_set_new(o, "false_positive_rate", json_real(i->filter_fpr));
	json_object_set_new(o, "estimated_count",
		i->filter_estimate < 0 ? json_null() : json_real(i->filter_estimate));
	json_object_set_new(o, "merged", json_boolean(i->filter_merged));
	json_array_append_new(l->list, o);
}

static json_t *
show_filters(struct sl_daemon *d, const json_t *params)
{
	struct names names;
	struct peer_list l = {&names, json_array()};

	(void)params;
	if (!names_init(&names, d)) {
		json_decref(l.list);
		return NULL;
	}
	sl_router_for_each_peer(d->router, add_filter, &l);
	free(names.rows);
	return list_answer("peer_filters", l.list);
}

static void
add_route(void *arg, const struct sl_route_info *r)
{
	static const char *const kinds[] = {"peer", "local", "no_coords", "no_route"};
	struct peer_list *l = arg;
	json_t *o = json_object();

	json_object_set_new(o, "node_addr", sl_json_addr(&r->dest));
	json_object_set_new(o, "ipv6_addr", json_ipv6(&r->dest));
	json_object_set_new(o, "depth", json_integer(r->depth));
	json_object_set_new(o, "root", sl_json_addr(&r->root));
	json_object_set_new(o, "age_secs", json_integer(r->age_s));
	json_object_set_new(o, "idle_secs", json_integer(r->idle_s));
	json_object_set_new(o, "next_hop", json_string(r->hop.kind < 4 ? kinds[r->hop.kind] : "?"));
	if (r->hop.kind == SL_HOP_PEER) {
		json_object_set_new(o, "via", name_of(l->names, r->hop.peer_id, NULL));
		json_object_set_new(o, "mtu", json_integer(r->hop.mtu));
		json_object_set_new(o, "congested", json_boolean(r->hop.congested));
	}
	json_array_append_new(l->list, o);
}

#define ROUTES_DEFAULT 1000
#define ROUTES_MOST 100000

static json_t *
show_routes(struct sl_daemon *d, const json_t *params)
{
	json_int_t max = json_integer_value(json_object_get(params, "max"));
	struct sl_tree_info t;
	struct names names;
	struct peer_list l = {&names, json_array()};
	json_t *o;

	if (!names_init(&names, d)) {
		json_decref(l.list);
		return NULL;
	}
	max = max < 1 ? ROUTES_DEFAULT : max > ROUTES_MOST ? ROUTES_MOST : max;
	sl_router_tree(d->router, &t);
	sl_router_for_each_route(d->router, (uint32_t)max, add_route, &l);
	free(names.rows);
	o = list_answer("routes", l.list);
	json_object_set_new(o, "count", json_integer(t.coord_entries));
	json_object_set_new(o, "capacity", json_integer(t.coord_capacity));
	return o;
}

/* --- requests ------------------------------------------------------------------------------- */

static const struct {
	const char *command;
	json_t *(*fn)(struct sl_daemon *d, const json_t *params);
} commands[] = {{"show_status", show_status}, {"show_peers", show_peers},
	{"show_links", show_links}, {"show_tree", show_tree}, {"show_filters", show_filters},
	{"show_routes", show_routes}, {"show_ports", sl_show_ports},
	{"show_workers", sl_show_workers}, {"show_drops", sl_show_drops},
	{"show_neighbours", sl_show_neighbours}, {"show_counters", sl_show_counters},
	{"show_crypto", sl_show_crypto}};

/* Takes the object; adds the newline. */
static char *
dump(json_t *o, size_t *len)
{
	size_t size = o ? json_dumpb(o, NULL, 0, JSON_COMPACT) : 0;
	char *text = size ? malloc(size + 1) : NULL;

	if (text) {
		json_dumpb(o, text, size, JSON_COMPACT);
		text[size] = '\n';
		*len = size + 1;
	}
	json_decref(o);
	return text;
}

char *
sl_show_error(const char *message, size_t *out_len)
{
	json_t *o = json_object();

	json_object_set_new(o, "status", json_string("error"));
	json_object_set_new(o, "message", json_string(message));
	return dump(o, out_len);
}

char *
sl_show_answer(struct sl_daemon *d, const char *line, size_t len, size_t *out_len)
{
	json_error_t error;
	json_t *request, *data = NULL, *o;
	const char *command;
	char message[160];

	if (!len)
		return sl_show_error("empty request", out_len);
	request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	command = json_string_value(json_object_get(request, "command"));
	if (!command) {
		snprintf(message, sizeof(message), "invalid request: %.100s",
			request ? "no command" : error.text);
		json_decref(request);
		return sl_show_error(message, out_len);
	}
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].command, command))
			continue;
		data = commands[i].fn(d, json_object_get(request, "params"));
		json_decref(request);
		if (!data)
			return sl_show_error("out of memory", out_len);
		o = json_object();
		json_object_set_new(o, "status", json_string("ok"));
		json_object_set_new(o, "data", data);
		return dump(o, out_len);
	}
	snprintf(message, sizeof(message), "unknown command: %.100s", command);
	json_decref(request);
	return sl_show_error(message, out_len);
}
