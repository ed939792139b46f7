/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_WS_H
#define SL_NOSTR_WS_H
/*
 * The relays' sockets: WebSocket and TLS by libwebsockets, names by the system's resolver without waiting for it. Gives and takes
 * what struct sl_nostr_net wants. Everything on the service's thread but sl_ws_wake(). A process has one at a time
 * (libwebsockets' log level is the process's: it is silenced, what went wrong comes as a text).
 */
#include "../sl_nostr_client.h"

#define SL_WS_QUEUE_MESSAGES 128u /* waiting to be sent to one relay; more: it takes nothing any more */
#define SL_WS_QUEUE_BYTES (1u << 20)

struct sl_ws;

struct sl_ws_sink {
	void *arg;
	void (*opened)(void *arg, unsigned relay);
	void (*closed)(void *arg, unsigned relay, const char *why);
	void (*text)(void *arg, unsigned relay, const char *text, size_t len);
	void (*fault)(void *arg, unsigned relay, enum sl_nostr_error e); /* too long, or not text */
	void (*heard)(void *arg, unsigned relay);
	void (*overhead)(void *arg, unsigned relay, size_t len); /* bytes read that neither text nor fault stands for */
};

/* ca_file: PEM, instead of the system's authorities; NULL = the system's. NULL and errno. */
struct sl_ws *sl_ws_create(const char *const *urls, unsigned count, const char *ca_file,
	const struct sl_ws_sink *sink) SL_MUST_CHECK;
void sl_ws_destroy(struct sl_ws *ws);
void sl_ws_net(struct sl_ws *ws, struct sl_nostr_net *net);
/* Waits for sockets, a wake or the time, and handles what there is. */
void sl_ws_service(struct sl_ws *ws, uint64_t wait_us);
/* Any thread. */
void sl_ws_wake(struct sl_ws *ws);
unsigned sl_ws_sockets(const struct sl_ws *ws); /* connections there are now */

#endif
