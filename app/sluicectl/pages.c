/* SPDX-License-Identifier: BSD-3-Clause */
#include "pages.h"
#include <math.h>
#include "fields.h"

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
	snprintf(line, sizeof(line), "%llu up, %llu dialling, %llu configured, %llu session%s",
		(unsigned long long)number(d, "peer_count"),
		(unsigned long long)number(d, "dialling_count"),
		(unsigned long long)number(d, "configured_peer_count"),
		(unsigned long long)number(d, "session_count"), plural(number(d, "session_count")));
	row(out, "peers", line);
	snprintf(line, sizeof(line), "%s%s, depth %llu", text(d, "root"),
		flag(d, "is_root") ? " (this node)" : "", (unsigned long long)number(d, "depth"));
	row(out, "tree root", line);
	if (has(d, "estimated_mesh_size")) {
		snprintf(line, sizeof(line), "about %.0f nodes", real(d, "estimated_mesh_size"));
		row(out, "mesh", line);
	}
	snprintf(line, sizeof(line), "%llu worker%s, %llu port%s, %llu transport%s, %s",
		(unsigned long long)number(d, "workers"), plural(number(d, "workers")),
		(unsigned long long)number(d, "ports"), plural(number(d, "ports")),
		(unsigned long long)number(d, "transport_count"), plural(number(d, "transport_count")), text(d, "aead"));
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

		/* Who has no name of ours is called by the npub, which stands beside. */
		sl_table_cell(t, "%s", strncmp(text(p, "display_name"), "npub1", 5) ? text(p, "display_name") : "-");
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
	snprintf(line, sizeof(line), "%llu, %llu %s, sequence %llu",
		(unsigned long long)number(d, "depth"), (unsigned long long)number(d, "children"),
		number(d, "children") == 1 ? "child" : "children",
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
			: flag(p, "too_deep") ? "too deep"
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
print_counters(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PART", "COUNTER", ">VALUE", NULL};
	static const char *const parts[] = {"link", "route", "neighbour", "daemon", "found", "mtu"};
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
	static const char *const heads[] = {"ENGINE", "SELF-TEST", "USABLE", "IN USE", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *e;
	const char *key;
	size_t i;

	(void)opt;
	json_array_foreach(json_object_get(d, "engines"), i, e)
	{
		sl_table_cell(t, "%s", text(e, "name"));
		sl_table_cell(t, "%s", text(e, "self_test"));
		sl_table_cell(t, "%s", flag(e, "usable") ? "yes" : "no");
		sl_table_cell(t, "%s", flag(e, "selected") ? "yes" : flag(e, "used_by_auto") ? "by auto" : "");
	}
	sl_table_print(t, out, "no engines");
	fprintf(out, "\nin use: %s (%s)\n", text(d, "engine"), text(d, "why"));
	json_object_foreach((json_t *)(uintptr_t)json_object_get(d, "device_counters"), key, e)
		fprintf(out, "  %s %lld\n", key, (long long)json_integer_value(e));
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
	fprintf(out, "\n%s: who is in neither list is %s; %llu refused, %llu line%s skipped\n",
		text(d, "effective_mode"), !strcmp(text(d, "default_decision"), "deny") ? "denied" : "allowed",
		(unsigned long long)number(d, "refused"), (unsigned long long)number(d, "skipped_lines"), plural(number(d, "skipped_lines")));
	fprintf(out, "files: %s, %s, read again %llu time%s\n", text(d, "allow_file"), text(d, "deny_file"),
		(unsigned long long)number(d, "reloaded"), plural(number(d, "reloaded")));
	if (number(d, "unreadable"))
		fprintf(out, "NOT READABLE: the lists are as they were before (%llu time%s)\n",
			(unsigned long long)number(d, "unreadable"), plural(number(d, "unreadable")));
}

/* "3.0 s ago", "in 75 min 0 s", "-" */
static void
cell_when(struct sl_table *t, const json_t *o, const char *ago, const char *in)
{
	char s[SL_SHORT_SIZE];

	if (ago && has(o, ago))
		sl_table_cell(t, "%s ago", sl_short_age(s, real(o, ago)));
	else if (in && has(o, in))
		sl_table_cell(t, "in %s", sl_short_age(s, real(o, in)));
	else
		sl_table_cell(t, "-");
}

/* "3.0 s ago: no answer", "-" */
static void
cell_error(struct sl_table *t, const json_t *o)
{
	char s[SL_SHORT_SIZE];

	if (has(o, "last_error"))
		sl_table_cell(t, "%s ago: %s", sl_short_age(s, real(o, "last_error_secs_ago")), text(o, "last_error"));
	else
		sl_table_cell(t, "-");
}

static void
join_endpoints(char *out, size_t size, const json_t *list)
{
	const json_t *e;
	size_t i, n = 0;

	snprintf(out, size, "-");
	json_array_foreach(list, i, e)
		if (n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s:%s%s%s%s", i ? " " : "", text(e, "transport"), text(e, "addr"),
				has(e, "not_dialled") ? " (not dialled: " : "", has(e, "not_dialled") ? text(e, "not_dialled") : "",
				has(e, "not_dialled") ? ")" : "");
}

static void
print_adverts(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PEER", "ENDPOINTS", ">MADE", ">EXPIRES", ">FETCHED", "RESULT", ">NEXT FETCH", ">HEARD",
		">FETCHES", ">REPLACED", ">EVICTED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *a, *own = json_object_get(d, "own");
	char line[600], key[80], ago[SL_SHORT_SIZE], next[SL_SHORT_SIZE];
	size_t i;

	if (!flag(d, "enabled")) {
		fputs("Nostr is off (node.rendezvous.nostr.enabled)\n", out);
		sl_table_print(t, out, "");
		return;
	}
	join_endpoints(line, sizeof(line), json_object_get(own, "endpoints"));
	row(out, "our advert", line);
	if (has(own, "none_because"))
		row(out, "none because", text(own, "none_because"));
	if (has(own, "published_secs_ago")) {
		snprintf(line, sizeof(line), "%s ago, again in %s", sl_short_age(ago, real(own, "published_secs_ago")),
			sl_short_age(next, real(own, "next_publish_secs")));
		row(out, "published", line);
	}
	fputc('\n', out);
	json_array_foreach(json_object_get(d, "adverts"), i, a)
	{
		sl_table_cell(t, "%s", has(a, "alias") && !opt->wide ? text(a, "alias") : shorten(key, text(a, "npub"), opt));
		join_endpoints(line, sizeof(line), json_object_get(a, "endpoints"));
		sl_table_cell(t, "%s", line);
		cell_when(t, a, "made_secs_ago", NULL);
		cell_when(t, a, NULL, "expires_secs");
		cell_when(t, a, "fetched_secs_ago", NULL);
		sl_table_cell(t, "%s", text(a, "last_fetch"));
		cell_when(t, a, NULL, "next_fetch_secs");
		cell_when(t, a, "heard_secs_ago", NULL);
		cell_count(t, a, "fetches");
		cell_count(t, a, "replaced");
		cell_count(t, a, "evicted");
	}
	sl_table_print(t, out, "no peer is looked for (peers[].via_nostr)");
}

static void
print_found(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"NODE", "FOUND BY", "STATE", ">HEARD", ">HOLDS", ">NEXT DIAL", ">DIALS", ">FAILED", "ADDRESSES",
		"LAST ERROR", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *n, *a;
	char line[400], key[80];
	size_t i, k;

	if (!flag(d, "enabled")) {
		fputs("off (node.rendezvous.lan.enabled, transports.ethernet.auto_connect, node.rendezvous.nostr.policy: open)\n", out);
		sl_table_print(t, out, "");
		return;
	}
	row(out, "multicast DNS", flag(d, "mdns") ? "on" : "off");
	if (has(d, "scope"))
		row(out, "scope", text(d, "scope")[0] ? text(d, "scope") : "none");
	row(out, "adverts", flag(d, "open") ? "of any node" : "of configured peers only");
	fputc('\n', out);
	json_array_foreach(json_object_get(d, "found"), i, n)
	{
		size_t at = 0;

		line[0] = '\0';
		json_array_foreach(json_object_get(n, "addresses"), k, a)
			if (at < sizeof(line))
				at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s", k ? " " : "", json_string_value(a));
		sl_table_cell(t, "%s", shorten(key, text(n, "npub"), opt));
		sl_table_cell(t, "%s", text(n, "source"));
		sl_table_cell(t, "%s", text(n, "state"));
		cell_when(t, n, "heard_secs_ago", NULL);
		cell_when(t, n, NULL, "expires_secs");
		cell_when(t, n, NULL, "next_dial_secs");
		cell_count(t, n, "dials");
		cell_count(t, n, "failures");
		sl_table_cell(t, "%s", line);
		cell_error(t, n);
	}
	sl_table_print(t, out, "nobody has been found yet");
}

static void
print_relays(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"RELAY", "STATE", ">SINCE", ">NEXT ATTEMPT", "LAST ERROR", "FOR", ">HEARD", ">CONNECTS",
		">SUBSCRIBED", ">CLOSED", ">EVENTS", ">KNOWN", ">FAULTS", ">THROTTLED", ">PUBLISHED", ">REFUSED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *r, *v;
	const char *name;
	size_t i;

	(void)opt;
	json_array_foreach(json_object_get(d, "relays"), i, r)
	{
		uint64_t faults = 0;

		json_object_foreach((json_t *)(uintptr_t)json_object_get(r, "faults"), name, v) faults +=
			(uint64_t)json_integer_value(v);
		sl_table_cell(t, "%s", text(r, "url"));
		sl_table_cell(t, "%s", text(r, "state"));
		cell_when(t, r, "state_secs", NULL);
		cell_when(t, r, NULL, "next_attempt_secs");
		cell_error(t, r);
		sl_table_cell(t, "%s%s%s", flag(r, "adverts") ? "adverts" : "",
			flag(r, "adverts") && flag(r, "signals") ? ", " : "", flag(r, "signals") ? "signals" : "");
		cell_when(t, r, "heard_secs_ago", NULL);
		cell_count(t, r, "connects");
		cell_count(t, r, "subscriptions");
		cell_count(t, r, "subscriptions_closed");
		cell_count(t, r, "events");
		cell_count(t, r, "duplicates");
		sl_table_cell(t, "%llu", (unsigned long long)faults);
		cell_count(t, r, "throttled");
		cell_count(t, r, "published");
		cell_count(t, r, "refused");
	}
	sl_table_print(t, out, flag(d, "enabled") ? "nothing is known of the relays yet"
						  : "Nostr is off (node.rendezvous.nostr.enabled)");
}

static void
print_outside(FILE *out, const json_t *d)
{
	const json_t *o = json_object_get(d, "outside");
	char line[400], a[SL_SHORT_SIZE];

	row(out, "transport", text(d, "transport"));
	row(out, "NAT", text(o, "nat"));
	if (has(o, "address")) {
		snprintf(line, sizeof(line), "%s, by %s, %s ago", text(o, "address"), text(o, "server"),
			sl_short_age(a, real(o, "age_secs")));
		row(out, "seen at", line);
	}
	if (has(o, "last_error")) {
		snprintf(line, sizeof(line), "%s, %s ago", text(o, "last_error"), sl_short_age(a, real(o, "tried_age_secs")));
		row(out, "last error", line);
	}
	fputc('\n', out);
}

static void
print_traversal(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PEER", "STATE", ">FOR", ">NEXT TRY", ">TRIES", ">FAILED", ">PUNCHED", "PATH", ">SKEW",
		">ERROR AGE", "LAST ERROR", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p;
	char name[80];
	size_t i;

	if (!flag(d, "enabled")) {
		fputs("off (node.rendezvous.nostr.enabled, dm_relays and a UDP transport)\n", out);
		sl_table_print(t, out, "");
		return;
	}
	print_outside(out, d);
	json_array_foreach(json_object_get(d, "peers"), i, p)
	{
		sl_table_cell(t, "%s", shorten(name, text(p, "name"), opt));
		sl_table_cell(t, "%s%s%s", text(p, "state"), has(p, "role") ? ", " : "", has(p, "role") ? text(p, "role") : "");
		cell_age(t, p, "state_age_secs");
		cell_age(t, p, "next_attempt_secs");
		cell_count(t, p, "attempts");
		cell_count(t, p, "failures");
		cell_age(t, p, "punched_age_secs");
		sl_table_cell(t, "%s", text(p, "path"));
		if (has(p, "clock_skew_ms"))
			sl_table_cell(t, "%.1f s", real(p, "clock_skew_ms") / 1e3);
		else
			sl_table_cell(t, "-");
		cell_age(t, p, "last_error_age_secs");
		sl_table_cell(t, "%s", text(p, "last_error"));
	}
	sl_table_print(t, out, "no peer is to be reached this way");
}

const struct sl_page sl_pages[] = {
	{"status", "the node, its tree, its memory", print_status},
	{"peers", "configured and connected peers", print_peers},
	{"links", "sessions with peers: indices, keys' epochs, frames, measured cost", print_links},
	{"tree", "our place in the spanning tree", print_tree},
	{"filters", "reachability filters of the peers", print_filters},
	{"routes", "known destinations and their next hop", print_routes},
	{"mtu", "what the links' paths carry, since when and why", sl_page_mtu},
	{"ports", "the ports, their addresses and counts", sl_page_ports},
	{"workers", "frames and cycles of each worker", sl_page_workers},
	{"drops", "frames lost, by reason (-a: also reasons without any)", sl_page_drops},
	{"neighbours", "ARP and neighbour discovery", sl_page_neighbours},
	{"counters", "control's named counters (-a: also those at zero)", print_counters},
	{"crypto", "the AEAD engines", print_crypto},
	{"acl", "access lists: who may be a peer", print_acl},
	{"adverts", "our advert on Nostr relays, and what peers' adverts say", print_adverts},
	{"traversal", "the way through NATs: what we are from outside, and each peer's", print_traversal},
	{"found", "nodes found on our links and by adverts: where, whether linked, next dial", print_found},
	{"relays", "the Nostr relays: state, next attempt, last error", print_relays},
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
