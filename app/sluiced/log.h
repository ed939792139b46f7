/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_APP_LOG_H
#define SL_APP_LOG_H
/*
 * Where the daemon's words go: standard error, one line each, `<n>` first when it is the journal's
 * (systemd sets JOURNAL_STREAM), else the time and the level in letters. Each format string has a
 * token bucket of its own (ten at once, one a second); what it refused is counted and told with the
 * next line that passes. Writing never waits: lines that standard error does not take are counted
 * too.
 *
 * Any thread of the daemon but workers. EAL's and the drivers' lines come through the same door.
 */
#include <stdint.h>
#include "../../lib/overlay/sl_log.h"

/* Sets sl_log's hook and sends EAL's log here. level: the least urgent that is still written. 0 or
 * -errno. */
int sl_app_log_init(enum sl_log_level level);
/* Tells what is still suppressed. Once a second is often enough. */
void sl_app_log_flush(void);
uint64_t sl_app_log_suppressed(void);
void sl_app_log_fini(void);

#endif
