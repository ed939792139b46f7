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
 * bytes a request, one answer pending a client (the next request is read when it is out). A request that is not whole
 * SL_SERVER_REQUEST_S after its first byte closes, however it trickles, and so do SL_SERVER_IDLE_S of silence or of an
 * answer that is not read. When all places are taken a newcomer gets that of the client which has been idle longest,
 * else of one that has had its turn: nobody can lock the operator out by keeping connections. Nothing here waits: a slow
 * client costs its answer's memory and no time.
 */
#include <stdbool.h>
#include <stdint.h>

#define SL_SERVER_CLIENTS 16
#define SL_SERVER_REQUEST 4096
#define SL_SERVER_IDLE_S 30
#define SL_SERVER_REQUEST_S 5

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
