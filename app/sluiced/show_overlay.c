/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages about the node, its peers and what it knows of the mesh. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>
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

void
sl_json_age(json_t *o, const char *key, const struct sl_daemon *d, uint64_t then_us)
{
	if (then_us)
		json_object_set_new(o, key, json_real(sl_age_s(d, then_us)));
}

void
sl_json_wait(json_t *o, const char *key, const struct sl_daemon *d, uint64_t then_us)
{
	if (then_us)
		json_object_set_new(o, key, json_real(then_us > d->now_us ? (double)(then_us - d->now_us) / 1e6 : 0.0));
}

/* --- who is who ----------------------------------------------------------------------------- */

/* What names a peer, by peer_id: the router knows addresses only. */
struct name {
	bool known;
	uint8_t xonly[SL_XONLY_BYTES];
	char alias[SL_ALIAS_SIZE];
};

static void
note_name(void *arg, const struct sl_link_info *info)
{
	struct sl_show_job *job = arg;

	if (info->peer_id >= job->d->max_peers)
		return;
	job->names[info->peer_id].known = true;
	memcpy(job->names[info->peer_id].xonly, info->xonly, SL_XONLY_BYTES);
	memcpy(job->names[info->peer_id].alias, info->alias, SL_ALIAS_SIZE);
}

static bool
job_names(struct sl_show_job *job)
{
	job->names = calloc(job->d->max_peers, sizeof(*job->names));
	if (job->names)
		sl_links_for_each(job->d->links, note_name, job);
	return job->names != NULL;
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
name_of(const struct sl_show_job *job, uint32_t peer_id)
{
	const struct name *n = peer_id < job->d->max_peers ? &job->names[peer_id] : NULL;

	return n && n->known ? display_name(n->xonly, n->alias) : json_null();
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

json_t *
sl_show_status(struct sl_daemon *d, const json_t *params)
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
	json_object_set_new(
		o, "longest_turn_cpu_us", json_integer((json_int_t)d->longest_turn_cpu_us));
	return o;
}

/* --- who may be a peer --- */

static json_t *
acl_entries(const struct sl_acl_list *list)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < list->count; i++)
		json_array_append_new(a, sl_json_npub(list->keys[i]));
	return a;
}

json_t *
sl_show_acl(struct sl_daemon *d, const json_t *params)
{
	const struct sl_acl_list *allow = sl_acl_list(d->acl, SL_ACL_ALLOW);
	const struct sl_acl_list *deny = sl_acl_list(d->acl, SL_ACL_DENY);
	json_t *o = json_object();

	(void)params;
	json_object_set_new(o, "allow_file", json_string(sl_acl_file(d->acl, SL_ACL_ALLOW)));
	json_object_set_new(o, "deny_file", json_string(sl_acl_file(d->acl, SL_ACL_DENY)));
	json_object_set_new(o, "enforcement_active",
		json_boolean(allow->all || allow->count || deny->all || deny->count));
	json_object_set_new(o, "effective_mode", json_string(sl_acl_mode(d->acl)));
	json_object_set_new(
		o, "default_decision", json_string(deny->all && !allow->all ? "deny" : "allow"));
	json_object_set_new(o, "allow_all", json_boolean(allow->all));
	json_object_set_new(o, "deny_all", json_boolean(deny->all));
	json_object_set_new(o, "allow_entries", acl_entries(allow));
	json_object_set_new(o, "deny_entries", acl_entries(deny));
	json_object_set_new(o, "skipped_lines", json_integer(sl_acl_skipped(d->acl)));
	json_object_set_new(o, "unreadable", json_integer((json_int_t)sl_acl_unreadable(d->acl)));
	json_object_set_new(o, "reloaded", json_integer((json_int_t)d->counters[SL_APP_ACL_RELOADED]));
	json_object_set_new(o, "refused",
		json_integer((json_int_t)sl_links_counters(d->links)[SL_LINK_NOT_ALLOWED]));
	return o;
}

/* --- peers and links ------------------------------------------------------------------------ */

/* The router's side of a peer, by peer_id. */
struct peer_row {
	bool known;
	struct sl_router_peer_info info;
};

static void
note_router_peer(void *arg, const struct sl_router_peer_info *info)
{
	struct sl_show_job *job = arg;

	if (info->peer_id < job->d->max_peers) {
		job->router_rows[info->peer_id].known = true;
		job->router_rows[info->peer_id].info = *info;
	}
}

/* Copies a row; what came after the list was made is left out. */
static void
job_row(struct sl_show_job *job, const void *row)
{
	if (job->count < job->most)
		memcpy(job->rows + job->row_size * job->count++, row, job->row_size);
}

static bool
job_rows(struct sl_show_job *job, const char *key, size_t row_size, uint32_t most,
	json_t *(*render)(const struct sl_show_job *job, const void *row))
{
	job->key = key;
	job->row_size = row_size;
	job->most = most;
	job->render = render;
	job->rows = malloc(row_size * (most ? most : 1));
	return job->rows != NULL;
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

static json_t *
render_peer(const struct sl_show_job *job, const void *arg)
{
	const struct sl_link_info *i = arg;
	const struct peer_row *row =
		i->peer_id < job->d->max_peers && job->router_rows[i->peer_id].known
			? &job->router_rows[i->peer_id]
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
	set_address(o, job->d, &i->addr, "transport_addr");
	set_timing(o, job->d, i);
	json_object_set_new(o, "is_parent", json_boolean(row && row->info.is_parent));
	json_object_set_new(o, "is_child", json_boolean(row && row->info.is_child));
	json_object_set_new(o, "has_tree_position", json_boolean(row && row->info.has_ancestry));
	if (row && row->info.has_ancestry)
		json_object_set_new(o, "tree_depth", json_integer(row->info.depth));
	json_object_set_new(o, "stats", link_stats(i));
	json_object_set_new(o, "mmp", link_metrics(&i->metrics));
	return o;
}

static void
note_link(void *arg, const struct sl_link_info *info)
{
	job_row(arg, info);
}

bool
sl_show_peers(struct sl_show_job *job, const json_t *params)
{
	struct sl_daemon *d = job->d;

	(void)params;
	job->router_rows = calloc(d->max_peers, sizeof(*job->router_rows));
	if (!job->router_rows || !job_rows(job, "peers", sizeof(struct sl_link_info),
					 d->max_peers + d->config->peer_count, render_peer))
		return false;
	sl_router_for_each_peer(d->router, note_router_peer, job);
	sl_links_for_each(d->links, note_link, job);
	return true;
}

static json_t *
render_link(const struct sl_show_job *job, const void *arg)
{
	const struct sl_link_info *i = arg;
	char index[16];
	json_t *o = json_object();

	json_object_set_new(o, "link_id", json_integer(i->peer_id));
	json_object_set_new(o, "npub", sl_json_npub(i->xonly));
	json_object_set_new(o, "display_name", display_name(i->xonly, i->alias));
	set_address(o, job->d, &i->addr, "remote_addr");
	json_object_set_new(o, "direction", json_string(i->outbound ? "outbound" : "inbound"));
	json_object_set_new(o, "state", json_string(i->state));
	set_timing(o, job->d, i);
	snprintf(index, sizeof(index), "%08x", i->rx_index);
	json_object_set_new(o, "our_session_index", json_string(index));
	snprintf(index, sizeof(index), "%08x", i->tx_index);
	json_object_set_new(o, "their_session_index", json_string(index));
	json_object_set_new(o, "current_k_bit", json_integer(i->k));
	json_object_set_new(o, "owner_worker",
		json_integer(sl_session_owner(sl_session_table_view(job->d->table), i->rx_index)));
	json_object_set_new(o, "rekeys", json_integer(i->rekeys));
	json_object_set_new(o, "replays", json_integer((json_int_t)i->replays));
	json_object_set_new(o, "open_failures", json_integer((json_int_t)i->open_failures));
	json_object_set_new(o, "stats", link_stats(i));
	json_object_set_new(o, "mmp", link_metrics(&i->metrics));
	return o;
}

static void
note_live_link(void *arg, const struct sl_link_info *info)
{
	if (info->peer_id != SL_PEER_NONE)
		job_row(arg, info);
}

bool
sl_show_links(struct sl_show_job *job, const json_t *params)
{
	(void)params;
	if (!job_rows(job, "links", sizeof(struct sl_link_info), job->d->max_peers, render_link))
		return false;
	sl_links_for_each(job->d->links, note_live_link, job);
	return true;
}

/* --- tree, filters, routes ------------------------------------------------------------------ */

static json_t *
render_tree_peer(const struct sl_show_job *job, const void *arg)
{
	const struct sl_router_peer_info *i = arg;
	json_t *o = json_object();

	json_object_set_new(o, "node_addr", sl_json_addr(&i->addr));
	json_object_set_new(o, "display_name", name_of(job, i->peer_id));
	json_object_set_new(o, "is_parent", json_boolean(i->is_parent));
	json_object_set_new(o, "is_child", json_boolean(i->is_child));
	if (i->has_ancestry) {
		json_object_set_new(o, "depth", json_integer(i->depth));
		json_object_set_new(o, "root", sl_json_addr(&i->root));
		json_object_set_new(o, "sequence", json_integer((json_int_t)i->tree_sequence));
		json_object_set_new(o, "too_deep", json_boolean(i->too_deep));
	}
	json_object_set_new(o, "cost", json_real(i->cost));
	json_object_set_new(o, "mtu", json_integer(i->mtu));
	return o;
}

static void
note_peer(void *arg, const struct sl_router_peer_info *info)
{
	job_row(arg, info);
}

bool
sl_show_tree(struct sl_show_job *job, const json_t *params)
{
	struct sl_daemon *d = job->d;
	const struct sl_node_addr *self = sl_identity_addr(d->identity);
	struct sl_node_addr coords[64];
	struct sl_tree_info t;
	json_t *o = job->rest = json_object(), *path = json_array();
	uint32_t n;

	(void)params;
	if (!job_names(job) || !job_rows(job, "peers", sizeof(struct sl_router_peer_info),
				       d->max_peers, render_tree_peer)) {
		json_decref(path);
		return false;
	}
	sl_router_tree(d->router, &t);
	n = sl_router_coords(d->router, coords, 64);
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(path, sl_json_addr(&coords[i]));
	sl_router_for_each_peer(d->router, note_peer, job);
	json_object_set_new(o, "my_node_addr", sl_json_addr(self));
	json_object_set_new(o, "root", sl_json_addr(&t.root));
	json_object_set_new(o, "is_root", json_boolean(sl_node_addr_equal(&t.root, self)));
	json_object_set_new(o, "depth", json_integer(t.depth));
	json_object_set_new(o, "coords", path);
	json_object_set_new(o, "parent", sl_json_addr(&t.parent));
	json_object_set_new(o, "parent_display_name", name_of(job, t.parent_peer));
	json_object_set_new(o, "declaration_sequence", json_integer((json_int_t)t.sequence));
	json_object_set_new(o, "declaration_unix_secs", json_integer((json_int_t)t.timestamp_s));
	json_object_set_new(o, "peer_tree_count", json_integer(t.peers));
	json_object_set_new(o, "children", json_integer(t.children));
	json_object_set_new(
		o, "estimated_mesh_size", t.mesh_size < 0 ? json_null() : json_real(t.mesh_size));
	return true;
}

static json_t *
render_filter(const struct sl_show_job *job, const void *arg)
{
	const struct sl_router_peer_info *i = arg;
	json_t *o = json_object();

	json_object_set_new(o, "node_addr", sl_json_addr(&i->addr));
	json_object_set_new(o, "display_name", name_of(job, i->peer_id));
	json_object_set_new(o, "has_filter", json_boolean(i->filter_bits > 0));
	json_object_set_new(o, "filter_sequence", json_integer((json_int_t)i->filter_sequence_rx));
	json_object_set_new(o, "sent_sequence", json_integer((json_int_t)i->filter_sequence_tx));
	json_object_set_new(o, "set_bits", json_integer(i->filter_bits));
	json_object_set_new(o, "fill_ratio", json_real((double)i->filter_bits / SL_FILTER_BITS));
	json_object_set_new(o, "false_positive_rate", json_real(i->filter_fpr));
	json_object_set_new(o, "estimated_count",
		i->filter_estimate < 0 ? json_null() : json_real(i->filter_estimate));
	json_object_set_new(o, "merged", json_boolean(i->filter_merged));
	return o;
}

bool
sl_show_filters(struct sl_show_job *job, const json_t *params)
{
	(void)params;
	if (!job_names(job) || !job_rows(job, "peer_filters", sizeof(struct sl_router_peer_info),
				       job->d->max_peers, render_filter))
		return false;
	sl_router_for_each_peer(job->d->router, note_peer, job);
	return true;
}

static json_t *
render_route(const struct sl_show_job *job, const void *arg)
{
	const struct sl_route_info *r = arg;
	static const char *const kinds[] = {"peer", "local", "no_coords", "no_route"};
	json_t *o = json_object();

	json_object_set_new(o, "node_addr", sl_json_addr(&r->dest));
	json_object_set_new(o, "ipv6_addr", json_ipv6(&r->dest));
	json_object_set_new(o, "depth", json_integer(r->depth));
	json_object_set_new(o, "root", sl_json_addr(&r->root));
	json_object_set_new(o, "age_secs", json_integer(r->age_s));
	json_object_set_new(o, "idle_secs", json_integer(r->idle_s));
	json_object_set_new(o, "next_hop", json_string(r->hop.kind < 4 ? kinds[r->hop.kind] : "?"));
	if (r->hop.kind == SL_HOP_PEER) {
		json_object_set_new(o, "via", name_of(job, r->hop.peer_id));
		json_object_set_new(o, "mtu", json_integer(r->hop.mtu));
		json_object_set_new(o, "congested", json_boolean(r->hop.congested));
	}
	return o;
}

#define ROUTES_DEFAULT 1000
#define ROUTES_MOST 100000

static void
note_route(void *arg, const struct sl_route_info *info)
{
	job_row(arg, info);
}

bool
sl_show_routes(struct sl_show_job *job, const json_t *params)
{
	json_int_t max = json_integer_value(json_object_get(params, "max"));
	struct sl_tree_info t;

	max = max < 1 ? ROUTES_DEFAULT : max > ROUTES_MOST ? ROUTES_MOST : max;
	if (!job_names(job) ||
		!job_rows(job, "routes", sizeof(struct sl_route_info), (uint32_t)max, render_route))
		return false;
	sl_router_tree(job->d->router, &t);
	sl_router_for_each_route(job->d->router, (uint32_t)max, note_route, job);
	job->rest = json_object();
	json_object_set_new(job->rest, "count", json_integer(t.coord_entries));
	json_object_set_new(job->rest, "capacity", json_integer(t.coord_capacity));
	return true;
}
