/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SERVER_H
#define SL_SERVER_H
/*
 * The control socket: a unix stream socket, mode 0660, lines of JSON both ways (peering
 *facts, 16.1):
 *
 *	{"command":"show_peers","params":{...}}  ->  {"status":"ok","data":{...}}  or
 *{"status":"error","message":"..."}
 *
 * Many requests may follow on one connection. Bounds: SL_SERVER_CLIENTS at once, SL_SERVER_REQUEST
 *bytes a request, one answer pending a client (the next request is read when it is out),
 *SL_SERVER_IDLE_S without progress closes. Nothing here waits: a slow client costs its answer's
 *memory and no time.
 */
#include <stdbool.h>
#include <stdint.h>

#define SL_SERVER_CLIENTS 16
#define SL_SERVER_REQUEST 4096
#define SL_SERVER_IDLE_S 30

struct sl_daemon;
struct sl_server;

/* Makes the socket (a left-over of a dead daemon is replaced; EADDRINUSE when one answers). NULL
 * and errno. */
struct sl_server *sl_server_create(struct sl_daemon *d, const char *path, int epoll_fd);
void sl_server_destroy(struct sl_server *s);
void sl_server_event(struct sl_server *s, int fd, uint32_t events);
/* One step of one client's request, clients in turn; true when there was one. Once a turn of
 * control. */
bool sl_server_work(struct sl_server *s);
void sl_server_second(struct sl_server *s, uint64_t now_us);

#endif
