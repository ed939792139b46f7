/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SHOW_INTERNAL_H
#define SL_SHOW_INTERNAL_H
/* Between show.c and show_dataplane.c. Each show function gives a new object, NULL when memory is
 * short. */
#include <jansson.h>
#include "daemon.h"

/*
 * An answer under way. Pages with a row a peer or a destination copy what they need in one turn of
 * control and are written in the turns after it, a few rows each, so that thousands of peers hold
 * up no timer.
 */
struct sl_show_job {
	struct sl_daemon *d;
	char *text;
	size_t len, room;
	bool failed;
	const char *key; /* of the list in the answer's data; NULL = the text is complete */
	char *rows;
	size_t row_size;
	uint32_t count, most, next;
	json_t *(*render)(const struct sl_show_job *job, const void *row);
	json_t *rest; /* members of data besides the list */
	struct name *names;
	struct peer_row *router_rows;
};

json_t *sl_json_addr(const struct sl_node_addr *a);
json_t *sl_json_npub(const uint8_t *xonly);
double sl_age_s(const struct sl_daemon *d, uint64_t then_us);
/* o[key]: seconds since then, seconds until then (0 when it has passed). Then 0: left out. */
void sl_json_age(json_t *o, const char *key, const struct sl_daemon *d, uint64_t then_us);
void sl_json_wait(json_t *o, const char *key, const struct sl_daemon *d, uint64_t then_us);

json_t *sl_show_status(struct sl_daemon *d, const json_t *params);
json_t *sl_show_acl(struct sl_daemon *d, const json_t *params);
bool sl_show_peers(struct sl_show_job *job, const json_t *params);
bool sl_show_links(struct sl_show_job *job, const json_t *params);
bool sl_show_tree(struct sl_show_job *job, const json_t *params);
bool sl_show_filters(struct sl_show_job *job, const json_t *params);
bool sl_show_routes(struct sl_show_job *job, const json_t *params);
json_t *sl_show_traversal(struct sl_daemon *d, const json_t *params);
bool sl_show_adverts(struct sl_show_job *job, const json_t *params);
bool sl_show_mtu(struct sl_show_job *job, const json_t *params);
json_t *sl_show_mtu_counters(const struct sl_daemon *d);
bool sl_show_found(struct sl_show_job *job, const json_t *params);
json_t *sl_show_found_counters(const struct sl_daemon *d);
json_t *sl_show_relays(struct sl_daemon *d, const json_t *params);
json_t *sl_show_ports(struct sl_daemon *d, const json_t *params);
json_t *sl_show_workers(struct sl_daemon *d, const json_t *params);
json_t *sl_show_drops(struct sl_daemon *d, const json_t *params);
json_t *sl_show_neighbours(struct sl_daemon *d, const json_t *params);
json_t *sl_show_counters(struct sl_daemon *d, const json_t *params);
json_t *sl_show_crypto(struct sl_daemon *d, const json_t *params);

#endif
