/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NOSTR_URL_H
#define SL_NOSTR_URL_H
/* Relay URLs: ws://host[:port][/path] and wss://. Compared after normalisation (case of scheme and host, default port, one slash
 * at the end). Peering facts, section 6. Any thread. */
#include "sl_nostr_client.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_nostr_url {
	bool tls;
	char host[SL_NOSTR_URL_SIZE]; /* lower case, without brackets */
	uint16_t port;
	char path[SL_NOSTR_URL_SIZE]; /* begins with a slash; query included */
	bool ipv6;
};
/* 0 or -EINVAL: scheme, host, port, user names and fragments, control characters, length. */
int sl_nostr_url_parse(struct sl_nostr_url *u, const char *text) SL_MUST_CHECK;
void sl_nostr_url_format(char out[SL_NOSTR_URL_SIZE], const struct sl_nostr_url *u);
/* Are two texts one relay? A text that is no URL is no relay. */
bool sl_nostr_url_same(const char *a, const char *b) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
