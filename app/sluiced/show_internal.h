/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SHOW_INTERNAL_H
#define SL_SHOW_INTERNAL_H
/* Between show.c and show_dataplane.c. Each show function gives a new object, NULL when memory is
 * short. */
#include <jansson.h>
#include "daemon.h"

json_t *sl_json_addr(const struct sl_node_addr *a);
json_t *sl_json_npub(const uint8_t *xonly);
double sl_age_s(const struct sl_daemon *d, uint64_t then_us);

json_t *sl_show_ports(struct sl_daemon *d, const json_t *params);
json_t *sl_show_workers(struct sl_daemon *d, const json_t *params);
json_t *sl_show_drops(struct sl_daemon *d, const json_t *params);
json_t *sl_show_neighbours(struct sl_daemon *d, const json_t *params);
json_t *sl_show_counters(struct sl_daemon *d, const json_t *params);
json_t *sl_show_crypto(struct sl_daemon *d, const json_t *params);

#endif
