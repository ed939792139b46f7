/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports, workers, losses, neighbours. */
#include "fields.h"

/* 4 -> "4", nothing known -> "-" */
static void
cell_node(struct sl_table *t, const json_t *o)
{
	json_int_t node = json_integer_value(json_object_get(o, "numa_node"));

	if (has(o, "numa_node") && node >= 0)
		sl_table_cell(t, "%lld", (long long)node);
	else
		sl_table_cell(t, "-");
}

static void
cell_state(struct sl_table *t, const json_t *p)
{
	char age[SL_SHORT_SIZE];

	if (strcmp(text(p, "state"), "up"))
		sl_table_cell(t, "%s for %s", text(p, "state"), sl_short_age(age, real(p, "state_secs")));
	else if (number(p, "link_mbps"))
		sl_table_cell(t, "up %llu Mbit/s", (unsigned long long)number(p, "link_mbps"));
	else
		sl_table_cell(t, "up");
}

/* Elements of a list with commas between: numbers or texts. */
static void
cell_list(struct sl_table *t, const json_t *list)
{
	char line[256] = "-";
	size_t i, n = 0;
	const json_t *e;

	json_array_foreach(list, i, e)
	{
		if (n + 80 > sizeof(line)) {
			snprintf(line + n, sizeof(line) - n, ",..");
			break;
		}
		if (json_is_string(e))
			n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.70s", i ? "," : "", json_string_value(e));
		else
			n += (size_t)snprintf(
				line + n, sizeof(line) - n, "%s%lld", i ? "," : "", (long long)json_integer_value(e));
	}
	sl_table_cell(t, "%s", line);
}

void
sl_page_ports(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PORT", "DRIVER", "PROFILE", "MAC", "STATE", ">DOWNS", ">RETURNS", ">MTU",
		">QUEUES", ">NODE", "WORKERS", "STEERING", ">HANDED OVER", NULL};
	static const char *const counts[] = {"PORT", ">RX", ">RX BYTES", ">TX", ">TX BYTES", ">MISSED", ">NO BUFFER",
		">ERRORS", ">CONTROL TX", ">CONTROL DROPPED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p, *a;
	size_t i, k;

	(void)opt;
	json_array_foreach(json_object_get(d, "ports"), i, p)
	{
		sl_table_cell(t, "%s", text(p, "name"));
		sl_table_cell(t, "%s", text(p, "driver"));
		sl_table_cell(t, "%s", text(p, "profile"));
		sl_table_cell(t, "%s", text(p, "mac"));
		cell_state(t, p);
		cell_count(t, p, "link_downs");
		cell_count(t, p, "returns");
		cell_count(t, p, "mtu");
		cell_count(t, p, "queues");
		cell_node(t, p);
		cell_list(t, json_object_get(p, "queue_workers"));
		sl_table_cell(t, "%s", text(p, "steering"));
		if (number(p, "received"))
			sl_table_cell(t, "%.1f%%", 100 * (double)number(p, "handed_over") / (double)number(p, "received"));
		else
			sl_table_cell(t, "-");
	}
	sl_table_print(t, out, "no ports");
	fputc('\n', out);
	t = sl_table_new(counts);
	json_array_foreach(json_object_get(d, "ports"), i, p)
	{
		sl_table_cell(t, "%s", text(p, "name"));
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
	sl_table_print(t, out, "");
	fputc('\n', out);
	json_array_foreach(json_object_get(d, "ports"), i, p)
	{
		fprintf(out, "%s: %s;", text(p, "name"), text(p, "device"));
		json_array_foreach(json_object_get(p, "addresses"), k, a)
			fprintf(out, " %s", json_string_value(a));
		if (number(p, "vlan"))
			fprintf(out, " vlan %llu", (unsigned long long)number(p, "vlan"));
		json_array_foreach(json_object_get(p, "routes"), k, a)
			fprintf(out, "; %s via %s", text(a, "to"), text(a, "via"));
		fprintf(out, "; steering: %s, %s\n", text(p, "steering"), text(p, "steering_why"));
	}
}

static void
cell_cycles(struct sl_table *t, const json_t *w, const char *key)
{
	sl_table_cell(t, has(w, key) ? "%.0f" : "-", real(w, key));
}

/* Peers whose frames several workers open and seal, and what their owner's lane does. */
static void
print_spread(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"SPREAD PEER", ">WORKER", ">SINCE", ">FRAMES", ">BY OTHERS", ">WAIT us", ">STUCK", ">FULL", NULL};
	struct sl_table *t = sl_table_new(heads);
	char age[SL_SHORT_SIZE], key[80];
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(d, "spread"), i, p)
	{
		const json_t *w = json_array_get(json_object_get(d, "workers"), (size_t)number(p, "worker"));
		const json_t *lane = json_object_get(w, "lane");
		const double slots = (double)number(lane, "slots");

		sl_table_cell(t, "%s", shorten(key, text(p, "npub"), opt));
		cell_count(t, p, "worker");
		sl_table_cell(t, "%s%s", sl_short_age(age, real(p, "secs")), flag(p, "ending") ? ", ending" : "");
		cell_count(t, lane, "frames");
		sl_table_cell(t, slots > 0 ? "%.0f%%" : "-", 100 * (slots - (double)number(lane, "own_slots")) / (slots > 0 ? slots : 1));
		sl_table_cell(t, has(lane, "wait_us") ? "%.1f" : "-", real(lane, "wait_us"));
		cell_count(t, lane, "stuck");
		cell_count(t, lane, "full");
	}
	fputc('\n', out);
	sl_table_print(t, out, "");
}

void
sl_page_workers(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {">WORKER", ">CPU", ">NODE", "STATE", ">RX", ">TX", ">PUNT", ">HANDOFF",
		">LOCAL", ">DROPPED", ">RX BYTES", ">RING FULL", "BALANCED", NULL};
	static const char *const costs[] = {">WORKER", ">BUSY", ">CYCLES/PACKET", ">TRANSIT", ">DRIVER", ">PACKETS/POLL",
		">STALLS", "POLLS (PORT:QUEUE)", NULL};
	struct sl_table *t = sl_table_new(heads);
	char age[SL_SHORT_SIZE];
	const json_t *w;
	size_t i;

	(void)opt;
	json_array_foreach(json_object_get(d, "workers"), i, w)
	{
		cell_count(t, w, "worker");
		cell_count(t, w, "cpu");
		cell_node(t, w);
		if (flag(w, "stalled"))
			sl_table_cell(t, "STALLED %s", sl_short_age(age, real(w, "still_secs")));
		else
			sl_table_cell(t, "runs");
		cell_count(t, w, "rx");
		cell_count(t, w, "tx");
		cell_count(t, w, "punt");
		cell_count(t, w, "handoff");
		cell_count(t, w, "local");
		cell_count(t, w, "dropped");
		cell_bytes(t, w, "rx_bytes");
		sl_table_cell(t, "%llu",
			(unsigned long long)(number(w, "punt_ring_full") +
					     number(w, "event_ring_full") +
					     number(w, "learn_ring_full")));
		sl_table_cell(t, "%s", flag(w, "balanced") ? "yes" : "NO");
	}
	sl_table_print(t, out, "no workers");
	fputc('\n', out);
	t = sl_table_new(costs);
	json_array_foreach(json_object_get(d, "workers"), i, w)
	{
		cell_count(t, w, "worker");
		if (has(w, "busy_ratio"))
			sl_table_cell(t, "%.1f%%", 100 * real(w, "busy_ratio"));
		else
			sl_table_cell(t, "-");
		cell_cycles(t, w, "cycles_per_packet");
		cell_cycles(t, w, "transit_cycles_per_packet");
		cell_cycles(t, w, "driver_cycles_per_packet");
		sl_table_cell(t, has(w, "packets_per_busy_poll") ? "%.1f" : "-",
			real(w, "packets_per_busy_poll"));
		cell_count(t, w, "stalls");
		cell_list(t, json_object_get(w, "polls_queues"));
	}
	sl_table_print(t, out, "");
	if (json_array_size(json_object_get(d, "spread")))
		print_spread(out, d, opt);
}

void
sl_page_drops(FILE *out, const json_t *d, const struct sl_page_options *opt)
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

void
sl_page_neighbours(FILE *out, const json_t *d, const struct sl_page_options *opt)
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
