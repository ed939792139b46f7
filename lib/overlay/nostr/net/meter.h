/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_METER_H
#define SL_NOSTR_METER_H
/* What a TCP connection has cost so far, from the kernel (struct tcp_info): whatever it was, also what no callback is told. */
#include <stdint.h>

/* Bytes received and read from the socket since it was made. 0 or -errno. */
int sl_ws_meter(int fd, uint64_t *bytes);

#endif
