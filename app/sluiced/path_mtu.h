/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PATH_MTU_H
#define SL_PATH_MTU_H
/*
 * What the links' paths carry: discovery (sl_plpmtu.h) joined to links, router and data plane. Whatever changes the size of a path
 * comes through here, so that what the workers write into datagrams' path MTU, what they answer as too big, and what control sends
 * itself change in the same turn.
 *
 * Control's thread. With dataplane.probe_mtu off nothing is probed: sizes follow configuration, ports and routers' reports.
 */
#include "daemon.h"
#include "sl_plpmtu.h"

int sl_path_mtu_start(struct sl_daemon *d) SL_MUST_CHECK;
void sl_path_mtu_stop(struct sl_daemon *d);
/* A link is up with this MTU, as the links see it. Its address: sl_path_mtu_moved() before. */
void sl_path_mtu_up(struct sl_daemon *d, uint32_t peer_id, const struct sl_remote_key *key, uint16_t mtu);
void sl_path_mtu_down(struct sl_daemon *d, uint32_t peer_id);
/* The path leads to this address now; the data plane has been told. */
void sl_path_mtu_moved(struct sl_daemon *d, uint32_t peer_id, const struct sl_addr *addr);
/* The data plane's path has another size. */
void sl_path_mtu_changed(struct sl_daemon *d, uint32_t peer_id, uint16_t mtu);
uint64_t sl_path_mtu_tick(struct sl_daemon *d);

#endif
