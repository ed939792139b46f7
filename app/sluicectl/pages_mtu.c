/* SPDX-License-Identifier: BSD-3-Clause */
/* What the links' paths carry. */
#include "fields.h"

void
sl_page_mtu(FILE *out, const json_t *d, const struct sl_page_options *opt)
{
	static const char *const heads[] = {"PEER", "ADDRESS", ">MTU", ">CEILING", ">FOR", "WHY", "STATE", ">ANSWERED", ">NEXT", ">LOWERED",
		">RAISED", NULL};
	struct sl_table *t = sl_table_new(heads);
	const json_t *p;
	char name[80];
	size_t i;

	if (!flag(d, "enabled"))
		fputs("not probed (dataplane.probe_mtu): sizes by configuration, ports and routers' reports, see the pages tree and ports\n",
			out);
	json_array_foreach(json_object_get(d, "paths"), i, p)
	{
		sl_table_cell(t, "%s", has(p, "name") ? text(p, "name") : shorten(name, text(p, "npub"), opt));
		sl_table_cell(t, "%s", text(p, "remote_addr"));
		sl_table_cell(t, "%llu", (unsigned long long)number(p, "mtu"));
		sl_table_cell(t, "%llu", (unsigned long long)number(p, "ceiling"));
		cell_age(t, p, "since_secs");
		sl_table_cell(t, "%s", text(p, "reason"));
		sl_table_cell(t, "%s", text(p, "state"));
		cell_age(t, p, "answered_secs_ago");
		cell_age(t, p, "next_secs");
		cell_count(t, p, "lowered");
		cell_count(t, p, "raised");
	}
	sl_table_print(t, out, "no links");
}
