/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOTIFY_H
#define SL_NOTIFY_H
/* sd_notify(3)'s protocol without its library: one datagram to NOTIFY_SOCKET. Silent when there is
 * no service manager. */
#include <stdint.h>

void sl_notify(const char *state);
/* WATCHDOG=1 at half of WATCHDOG_USEC; call about once a second. */
void sl_notify_watchdog(uint64_t now_us);

#endif
