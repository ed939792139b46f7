/* SPDX-License-Identifier: BSD-3-Clause */
#include "pages.h"
#include <math.h>
#include <string.h>
#include "table.h"

/* --- fields --------------------------------------------------------------------------------- */

static const char *
text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static uint64_t
number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

static double
real(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static bool
flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static bool
has(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v && !json_is_null(v);
}

/* npub1abcd...wxyz and 1a2b3c4d.. unless wide. */
static const char *
shorten(char out[80], const char *s, const struct sl_page_options *opt)
{
	size_t len = strlen(s);

	if (opt->wide || len < 24)
		snprintf(out, 80, "%s", s);
	else if (!strncmp(s, "npub1", 5))
		snprintf(out, 80, "%.9s...%s", s, s + len - 4);
	else
		snprintf(out, 80, "%.8s..", s);
	return out;
}

static void
row(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%-16s %s\n", name, value);
}

static void
cell_age(struct sl_table *t, const json_t *o, const char *key)
{
	char s[SL_SHORT_SIZE];

	sl_table_cell(t, "%s", has(o, key) ? sl_short_age(s, real(o, key)) : "-");
}

static void
cell_count(struct sl_table *t, const json_t *o, const char *key)
{
	char s[SL_SHORT_SIZE];

	sl_table_cell(t, "%s", sl_short_count(s, number(o, key)));
}

static void
cell_bytes(struct sl_table *t, const json_t *o, const char *key)
{
	char s[SL_SHORT_SIZE];

	sl_table_cell(t, "%s", sl_short_bytes(s, number(o, key)));
}

/* --- pages ---------------------------------------------------------------------------------- */

static void
print_status(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	char a[SL_SHORT_SIZE], line[160];

	(void)opt;
	row(out, "version", text(d, "version"));
	row(out, "npub", text(d, "npub"));
	row(out, "node address", text(d, "node_addr"));
	row(out, "IPv6 address", text(d, "ipv6_addr"));
	snprintf(line, sizeof(line), "%s, up %s, pid %llu", text(d, "state"),
		sl_short_age(a, real(d, "uptime_secs")), (unsigned long long)number(d, "pid"));
	row(out, "state", line);
	snprintf(line, sizeof(line), "%llu up, %llu dialling, %llu configured, %llu session(s)",
		(unsigned long long)number(d, "peer_count"),
		(unsigned long long)number(d, "dialling_count"),
		(unsigned long long)number(d, "configured_peer_count"),
		(unsigned long long)number(d, "session_count"));
	row(out, "peers", line);
	snprintf(line, sizeof(line), "%s%s, depth %llu", text(d, "root"),
		flag(d, "is_root") ? " (this node)" : "", (unsigned long long)number(d, "depth"));
	row(out, "tree root", line);
	if (has(d, "estimated_mesh_size")) {
		snprintf(line, sizeof(line), "about %.0f nodes", real(d, "estimated_mesh_size"));
		row(out, "mesh", line);
	}
	snprintf(line, sizeof(line), "%llu worker(s), %llu port(s), %llu transport(s), %s",
		(unsigned long long)number(d, "workers"), (unsigned long long)number(d, "ports"),
		(unsigned long long)number(d, "transport_count"), text(d, "aead"));
	row(out, "data plane", line);
	snprintf(line, sizeof(line), "%llu MiB for EAL (%s), %s resident, session table %llu KiB",
		(unsigned long long)number(d, "eal_memory_mib"), text(d, "memory"),
		sl_short_bytes(a, number(d, "resident_kib") * 1024),
		(unsigned long long)number(d, "session_table_kib"));
	row(out, "memory", line);
	snprintf(line, sizeof(line), "%llu free of %llu",
		(unsigned long long)number(d, "buffers_free"),
		(unsigned long long)number(d, "buffers"));
	row(out, "buffers", line);
	snprintf(line, sizeof(line), "%.1f ms, of CPU time %.1f ms", real(d, "longest_turn_us") / 1000,
		real(d, "longest_turn_cpu_us") / 1000);
	row(out, "longest turn", line);
}

static void
print_peers(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"NAME", "NPUB", "STATE", "DIR", "ADDRESS", ">UP",
		">LAST RX", ">RTT ms", ">LOSS", ">RX", ">TX", "TREE", "NEXT", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p;
	char a[80];
	size_t i;

	json_array_foreach(json_object_get(d, "peers"), i, p)
	{
		const json_t *m = json_object_get(p, "mmp"), *s = json_object_get(p, "stats");
		bool up = !strcmp(text(p, "state"), "up");

		sl_table_cell(t, "%s", text(p, "display_name"));
		sl_table_cell(t, "%s", shorten(a, text(p, "npub"), opt));
		sl_table_cell(t, "%s", text(p, "state"));
		sl_table_cell(t, "%s%s", up ? text(p, "direction") : "-",
			up && !flag(p, "configured") ? "*" : "");
		sl_table_cell(t, "%s%s%s",
			has(p, "transport_addr") ? text(p, "transport_type") : "-",
			has(p, "transport_addr") ? " " : "",
			has(p, "transport_addr") ? text(p, "transport_addr") : "");
		cell_age(t, p, "up_secs");
		cell_age(t, p, "last_rx_secs");
		if (has(m, "srtt_ms"))
			sl_table_cell(t, "%.2f", real(m, "srtt_ms"));
		else
			sl_table_cell(t, "-");
		sl_table_cell(t, up ? "%.1f%%" : "-", 100 * real(m, "loss_rate"));
		cell_count(t, s, "packets_recv");
		cell_count(t, s, "packets_sent");
		sl_table_cell(t, "%s",
			flag(p, "is_parent")  ? "parent"
			: flag(p, "is_child") ? "child"
					      : "-");
		if (up)
			sl_table_cell(t, "-");
		else if (has(p, "next_dial_secs"))
			sl_table_cell(t, "dial in %.0f s%s%s", real(p, "next_dial_secs"),
				has(p, "last_error") ? ": " : "",
				has(p, "last_error") ? text(p, "last_error") : "");
		else
			sl_table_cell(t, "%s", text(p, "last_error"));
	}
	sl_table_print(t, out, "no peers");
}

static void
print_links(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {">ID", "PEER", "ADDRESS", "OUR INDEX", "THEIR INDEX",
		">K", ">WORKER", ">REKEYS", ">RX FRAMES", ">RX", ">TX FRAMES", ">TX", ">REPLAYS",
		">BAD TAGS", ">ETX", ">COST", ">JITTER us", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *l;
	char a[80];
	size_t i;

	json_array_foreach(json_object_get(d, "links"), i, l)
	{
		const json_t *m = json_object_get(l, "mmp"), *s = json_object_get(l, "stats");

		sl_table_cell(t, "%llu", (unsigned long long)number(l, "link_id"));
		sl_table_cell(t, "%s",
			opt->wide ? shorten(a, text(l, "npub"), opt) : text(l, "display_name"));
		sl_table_cell(t, "%s %s", text(l, "transport_type"), text(l, "remote_addr"));
		sl_table_cell(t, "%s", text(l, "our_session_index"));
		sl_table_cell(t, "%s", text(l, "their_session_index"));
		cell_count(t, l, "current_k_bit");
		cell_count(t, l, "owner_worker");
		cell_count(t, l, "rekeys");
		cell_count(t, s, "packets_recv");
		cell_bytes(t, s, "bytes_recv");
		cell_count(t, s, "packets_sent");
		cell_bytes(t, s, "bytes_sent");
		cell_count(t, l, "replays");
		cell_count(t, l, "open_failures");
		sl_table_cell(t, "%.2f", real(m, "etx"));
		sl_table_cell(t, "%.2f", real(m, "cost"));
		cell_count(t, m, "jitter_us");
	}
	sl_table_print(t, out, "no links");
}

static void
print_tree(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PEER", "NODE ADDRESS", ">DEPTH", "ROOT", "ROLE",
		">SEQUENCE", ">COST", ">MTU", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p;
	char line[160], a[80];
	size_t i;

	row(out, "this node", text(d, "my_node_addr"));
	snprintf(line, sizeof(line), "%s%s", text(d, "root"),
		flag(d, "is_root") ? " (this node)" : "");
	row(out, "root", line);
	if (!flag(d, "is_root")) {
		snprintf(line, sizeof(line), "%s (%s)", text(d, "parent"),
			text(d, "parent_display_name"));
		row(out, "parent", line);
	}
	snprintf(line, sizeof(line), "%llu, %llu child(ren), sequence %llu",
		(unsigned long long)number(d, "depth"), (unsigned long long)number(d, "children"),
		(unsigned long long)number(d, "declaration_sequence"));
	row(out, "depth", line);
	fputs("coordinates     ", out);
	json_array_foreach(json_object_get(d, "coords"), i, p)
		fprintf(out, " %s%s", i ? "< " : "", shorten(a, json_string_value(p), opt));
	fputs("\n\n", out);
	json_array_foreach(json_object_get(d, "peers"), i, p)
	{
		sl_table_cell(t, "%s", text(p, "display_name"));
		sl_table_cell(t, "%s", shorten(a, text(p, "node_addr"), opt));
		if (has(p, "depth"))
			sl_table_cell(t, "%llu", (unsigned long long)number(p, "depth"));
		else
			sl_table_cell(t, "-");
		sl_table_cell(t, "%s", shorten(a, text(p, "root"), opt));
		sl_table_cell(t, "%s",
			flag(p, "is_parent")  ? "parent"
			: flag(p, "is_child") ? "child"
					      : "-");
		if (has(p, "sequence"))
			sl_table_cell(t, "%llu", (unsigned long long)number(p, "sequence"));
		else
			sl_table_cell(t, "-");
		sl_table_cell(t, "%.2f", real(p, "cost"));
		cell_count(t, p, "mtu");
	}
	sl_table_print(t, out, "no peers in the tree");
}

static void
print_filters(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PEER", "NODE ADDRESS", ">SEQUENCE", ">SENT SEQ",
		">BITS", ">FILL", ">FALSE POS", ">NODES", "MERGED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p;
	char a[80];
	size_t i;

	json_array_foreach(json_object_get(d, "peer_filters"), i, p)
	{
		sl_table_cell(t, "%s", text(p, "display_name"));
		sl_table_cell(t, "%s", shorten(a, text(p, "node_addr"), opt));
		sl_table_cell(t, "%llu", (unsigned long long)number(p, "filter_sequence"));
		sl_table_cell(t, "%llu", (unsigned long long)number(p, "sent_sequence"));
		cell_count(t, p, "set_bits");
		sl_table_cell(t, "%.1f%%", 100 * real(p, "fill_ratio"));
		sl_table_cell(t, "%.4f%%", 100 * real(p, "false_positive_rate"));
		if (has(p, "estimated_count"))
			sl_table_cell(t, "%.0f", real(p, "estimated_count"));
		else
			sl_table_cell(t, "-");
		sl_table_cell(t, "%s", flag(p, "merged") ? "yes" : "no");
	}
	sl_table_print(t, out, "no filters");
}

static void
print_routes(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {
		"DESTINATION", ">DEPTH", "ROOT", "NEXT HOP", ">MTU", ">AGE", ">IDLE", "", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *r;
	char a[80];
	size_t i;

	json_array_foreach(json_object_get(d, "routes"), i, r)
	{
		sl_table_cell(t, "%s", opt->wide ? text(r, "node_addr") : text(r, "ipv6_addr"));
		cell_count(t, r, "depth");
		sl_table_cell(t, "%s", shorten(a, text(r, "root"), opt));
		sl_table_cell(t, "%s",
			strcmp(text(r, "next_hop"), "peer") ? text(r, "next_hop") : text(r, "via"));
		cell_count(t, r, "mtu");
		cell_age(t, r, "age_secs");
		cell_age(t, r, "idle_secs");
		sl_table_cell(t, "%s", flag(r, "congested") ? "congested" : "");
	}
	i = json_array_size(json_object_get(d, "routes"));
	sl_table_print(t, out, "no coordinates known");
	if (number(d, "count") > i)
		fprintf(out, "%zu of %llu shown\n", i, (unsigned long long)number(d, "count"));
}

static void
print_ports(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PORT", "DRIVER", "MAC", "LINK", ">MTU", ">QUEUES",
		">RX", ">RX BYTES", ">TX", ">TX BYTES", ">MISSED", ">NO BUFFER", ">ERRORS",
		">CONTROL TX", ">DROPPED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p, *a;
	size_t i, k;

	(void)opt;
	json_array_foreach(json_object_get(d, "ports"), i, p)
	{
		sl_table_cell(t, "%s", text(p, "name"));
		sl_table_cell(t, "%s", text(p, "driver"));
		sl_table_cell(t, "%s", text(p, "mac"));
		if (flag(p, "link_up") && number(p, "link_mbps"))
			sl_table_cell(
				t, "up %llu Mbit/s", (unsigned long long)number(p, "link_mbps"));
		else
			sl_table_cell(t, "%s", flag(p, "link_up") ? "up" : "down");
		cell_count(t, p, "mtu");
		cell_count(t, p, "queues");
		cell_count(t, p, "rx_packets");
		cell_bytes(t, p, "rx_bytes");
		cell_count(t, p, "tx_packets");
		cell_bytes(t, p, "tx_bytes");
		cell_count(t, p, "rx_missed");
		cell_count(t, p, "rx_nombuf");
		sl_table_cell(t, "%llu",
			(unsigned long long)(number(p, "rx_errors") + number(p, "tx_errors")));
		cell_count(t, p, "control_tx");
		cell_count(t, p, "control_tx_dropped");
	}
	sl_table_print(t, out, "no ports");
	json_array_foreach(json_object_get(d, "ports"), i, p)
	{
		fprintf(out, "%s: %s;", text(p, "name"), text(p, "device"));
		json_array_foreach(json_object_get(p, "addresses"), k, a)
			fprintf(out, " %s", json_string_value(a));
		if (number(p, "vlan"))
			fprintf(out, " vlan %llu", (unsigned long long)number(p, "vlan"));
		json_array_foreach(json_object_get(p, "routes"), k, a)
			fprintf(out, "; %s via %s", text(a, "to"), text(a, "via"));
		fputc('\n', out);
	}
}

static void
cell_cycles(struct sl_table *t, const json_t *w, const char *key)
{
	sl_table_cell(t, has(w, key) ? "%.0f" : "-", real(w, key));
}

static void
print_workers(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {">WORKER", ">CPU", ">RX", ">TX", ">PUNT", ">HANDOFF",
		">LOCAL", ">DROPPED", ">RX BYTES", ">BUSY", ">CYCLES/PACKET", ">TRANSIT", ">DRIVER",
		">PACKETS/POLL",
		">RING FULL", "BALANCED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *w;
	size_t i;

	(void)opt;
	json_array_foreach(json_object_get(d, "workers"), i, w)
	{
		cell_count(t, w, "worker");
		cell_count(t, w, "cpu");
		cell_count(t, w, "rx");
		cell_count(t, w, "tx");
		cell_count(t, w, "punt");
		cell_count(t, w, "handoff");
		cell_count(t, w, "local");
		cell_count(t, w, "dropped");
		cell_bytes(t, w, "rx_bytes");
		if (has(w, "busy_ratio"))
			sl_table_cell(t, "%.1f%%", 100 * real(w, "busy_ratio"));
		else
			sl_table_cell(t, "-");
		cell_cycles(t, w, "cycles_per_packet");
		cell_cycles(t, w, "transit_cycles_per_packet");
		cell_cycles(t, w, "driver_cycles_per_packet");
		sl_table_cell(t, has(w, "packets_per_busy_poll") ? "%.1f" : "-",
			real(w, "packets_per_busy_poll"));
		sl_table_cell(t, "%llu",
			(unsigned long long)(number(w, "punt_ring_full") +
					     number(w, "event_ring_full") +
					     number(w, "learn_ring_full")));
		sl_table_cell(t, "%s", flag(w, "balanced") ? "yes" : "NO");
	}
	sl_table_print(t, out, "no workers");
}

static void
print_drops(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"REASON", ">FRAMES", "MEANING", NULL};
	static const struct {
		const char *name, *meaning;
	} outside[] = {{"rx_missed", "the port had no room when they came"},
		{"rx_nombuf", "no free buffer to receive into"},
		{"rx_errors", "broken when they came"},
		{"tx_errors", "the port could not send them"},
		{"control_tx_dropped", "control's own, no room in its queue"},
		{"reports_to_control_lost", "workers' reports to control (not frames): ring full"}};
	const json_t *meanings = json_object_get(d, "meanings"), *v,
		     *o = json_object_get(d, "outside");
	struct sl_table *t = sl_table_new(heads);
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)json_object_get(d, "drops"), key, v)
	{
		if (!opt->all && !json_integer_value(v))
			continue;
		sl_table_cell(t, "%s", key);
		sl_table_cell(t, "%lld", (long long)json_integer_value(v));
		sl_table_cell(t, "%s", text(meanings, key));
	}
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		if (!opt->all && !number(o, outside[i].name))
			continue;
		sl_table_cell(t, "%s", outside[i].name);
		sl_table_cell(t, "%llu", (unsigned long long)number(o, outside[i].name));
		sl_table_cell(t, "outside the balance: %s", outside[i].meaning);
	}
	sl_table_print(t, out, "no frame was dropped");
	fprintf(out,
		"\nrx %llu = tx %llu + punt %llu + handoff %llu + local %llu + dropped %llu: %s\n",
		(unsigned long long)number(d, "rx"), (unsigned long long)number(d, "tx"),
		(unsigned long long)number(d, "punt"), (unsigned long long)number(d, "handoff"),
		(unsigned long long)number(d, "local"), (unsigned long long)number(d, "dropped"),
		flag(d, "balanced") ? "balanced" : "NOT BALANCED");
}

static void
print_neighbours(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"ADDRESS", "MAC", "PORT", "STATE", ">AGE", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *n;
	size_t i;

	(void)opt;
	json_array_foreach(json_object_get(d, "neighbours"), i, n)
	{
		sl_table_cell(t, "%s", text(n, "ip"));
		sl_table_cell(t, "%s", text(n, "mac"));
		sl_table_cell(t, "%s", text(n, "port_name"));
		sl_table_cell(t, "%s", text(n, "state"));
		cell_age(t, n, "age_secs");
	}
	sl_table_print(t, out, "no neighbours");
}

static void
print_counters(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PART", "COUNTER", ">VALUE", NULL};
	static const char *const parts[] = {"link", "route", "neighbour", "daemon"};
	struct sl_table *t = sl_table_new(heads);
	const char *key;
	const json_t *v;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		json_object_foreach((json_t *)(uintptr_t)json_object_get(d, parts[i]), key, v)
		{
			if (!opt->all && !json_integer_value(v))
				continue;
			sl_table_cell(t, "%s", parts[i]);
			sl_table_cell(t, "%s", key);
			sl_table_cell(t, "%lld", (long long)json_integer_value(v));
		}
	sl_table_print(t, out, "all counters are zero");
}

static void
print_crypto(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"ENGINE", "USABLE", "IN USE", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *e;
	size_t i;

	(void)opt;
	json_array_foreach(json_object_get(d, "engines"), i, e)
	{
		sl_table_cell(t, "%s", text(e, "name"));
		sl_table_cell(t, "%s", flag(e, "usable") ? "yes" : "no");
		sl_table_cell(t, "%s", flag(e, "selected") ? "yes" : "");
	}
	sl_table_print(t, out, "no engines");
	fprintf(out, "\nconfigured: %s\n", text(d, "configured"));
}

static void
print_acl(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"LIST", "NPUB", NULL};
	static const char *const lists[][2] = {{"allow", "allow_entries"}, {"deny", "deny_entries"}};
	struct sl_table *t = sl_table_new(heads);
	const json_t *e;
	char a[80];
	size_t i;

	for (unsigned l = 0; l < 2; l++) {
		if (flag(d, l ? "deny_all" : "allow_all")) {
			sl_table_cell(t, "%s", lists[l][0]);
			sl_table_cell(t, "ALL");
		}
		json_array_foreach(json_object_get(d, lists[l][1]), i, e)
		{
			sl_table_cell(t, "%s", lists[l][0]);
			sl_table_cell(t, "%s", shorten(a, json_string_value(e), opt));
		}
	}
	sl_table_print(t, out, "no entries");
	fprintf(out, "\n%s: who is in neither list is %s; %llu refused, %llu line(s) skipped\n",
		text(d, "effective_mode"), !strcmp(text(d, "default_decision"), "deny") ? "denied" : "allowed",
		(unsigned long long)number(d, "refused"), (unsigned long long)number(d, "skipped_lines"));
	fprintf(out, "files: %s, %s, read again %llu time(s)\n", text(d, "allow_file"), text(d, "deny_file"),
		(unsigned long long)number(d, "reloaded"));
	if (number(d, "unreadable"))
		fprintf(out, "NOT READABLE: the lists are as they were before (%llu time(s))\n",
			(unsigned long long)number(d, "unreadable"));
}

const struct sl_page sl_pages[] = {
	{"status", "the node, its tree, its memory", print_status},
	{"peers", "configured and connected peers", print_peers},
	{"links", "sessions with peers: indices, keys' epochs, frames, measured cost", print_links},
	{"tree", "our place in the spanning tree", print_tree},
	{"filters", "reachability filters of the peers", print_filters},
	{"routes", "known destinations and their next hop", print_routes},
	{"ports", "the ports, their addresses and counts", print_ports},
	{"workers", "frames and cycles of each worker", print_workers},
	{"drops", "frames lost, by reason (-a: also reasons without any)", print_drops},
	{"neighbours", "ARP and neighbour discovery", print_neighbours},
	{"counters", "control's named counters (-a: also those at zero)", print_counters},
	{"crypto", "the AEAD engines", print_crypto},
	{"acl", "access lists: who may be a peer", print_acl},
};
const unsigned sl_page_count = sizeof(sl_pages) / sizeof(sl_pages[0]);

const struct sl_page *
sl_page_find(const char *name)
{
	for (unsigned i = 0; i < sl_page_count; i++)
		if (!strcmp(sl_pages[i].name, name))
			return &sl_pages[i];
	return NULL;
}
