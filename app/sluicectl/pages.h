/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CTL_PAGES_H
#define SL_CTL_PAGES_H
/* What `sluicectl show PAGE` prints of the daemon's answer. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct sl_page_options {
	bool wide; /* npubs and addresses in full */
	bool all;  /* rows that are zero too */
};
struct sl_page {
	const char *name;
	const char *about;
	void (*print)(FILE *out, const json_t *data, const struct sl_page_options *options);
};
extern const struct sl_page sl_pages[];
extern const unsigned sl_page_count;
const struct sl_page *sl_page_find(const char *name);

/* pages_dataplane.c */
void sl_page_ports(FILE *out, const json_t *d, const struct sl_page_options *opt);
void sl_page_workers(FILE *out, const json_t *d, const struct sl_page_options *opt);
void sl_page_drops(FILE *out, const json_t *d, const struct sl_page_options *opt);
void sl_page_neighbours(FILE *out, const json_t *d, const struct sl_page_options *opt);

/* pages_mtu.c */
void sl_page_mtu(FILE *out, const json_t *d, const struct sl_page_options *opt);

#endif
