/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ADVERT_H
#define SL_ADVERT_H
/*
 * Peer adverts: where a node says it can be reached, as a Nostr event of kind 37195. Peering facts, section 7.
 *
 * Parsing takes a verified event and gives plain data. Rules of the reference are kept (an advert that it refuses is refused here,
 * an endpoint that it drops is dropped), but for one: an unknown transport costs its endpoint only, not the whole advert.
 * Building writes byte for byte what the reference writes. No clock, no socket, no state: any thread.
 */
#include "sl_nostr_event.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_ADVERT_KIND 37195u
#define SL_ADVERT_D "fips-overlay-v1" /* d tag and identifier, whatever the app */
#define SL_ADVERT_VERSION 1
#define SL_ADVERT_ENDPOINTS_MAX 8u /* usable ones; further are dropped */
#define SL_ADVERT_SERVERS_MAX 8u   /* signal relays, STUN servers; further are dropped */
#define SL_ADVERT_TEXT_SIZE 256

enum sl_advert_transport { SL_ADVERT_UDP, SL_ADVERT_TCP, SL_ADVERT_TOR };

struct sl_advert_endpoint {
	uint8_t transport; /* enum sl_advert_transport */
	uint8_t family;	   /* 4, 6: ip holds the host; 0: a name, or tor */
	bool nat;	   /* udp by traversal; nothing else is set */
	uint16_t port;	   /* 0 for tor */
	uint8_t ip[16];
	char addr[SL_ADVERT_TEXT_SIZE]; /* as it was written */
	char host[SL_ADVERT_TEXT_SIZE]; /* without port and brackets */
};

struct sl_advert {
	uint8_t pubkey[SL_XONLY_BYTES];
	uint8_t id[SL_NOSTR_ID_BYTES];
	uint64_t created_at, valid_until; /* unix seconds */
	struct sl_advert_endpoint endpoints[SL_ADVERT_ENDPOINTS_MAX];
	unsigned endpoint_count;
	bool has_nat;
	char signal_relays[SL_ADVERT_SERVERS_MAX][SL_ADVERT_TEXT_SIZE]; /* only with has_nat */
	unsigned signal_relay_count;
	char stun_servers[SL_ADVERT_SERVERS_MAX][SL_ADVERT_TEXT_SIZE];
	unsigned stun_server_count;
};

#define SL_ADVERT_ERRORS(X)                                                                                            \
	X(OK, "ok")                                                                                                    \
	X(KIND, "wrong_kind")                                                                                          \
	X(APP, "other_app")		  /* protocol tag missing or not ours */                                      \
	X(JSON, "content_not_json")	  /* or a field of the wrong type */                                          \
	X(IDENTIFIER, "wrong_identifier")                                                                              \
	X(VERSION, "wrong_version")                                                                                    \
	X(NO_ENDPOINT, "no_usable_endpoint")                                                                           \
	X(NAT_INCOMPLETE, "nat_without_relays_or_servers")                                                             \
	X(EXPIRED, "expired")                                                                                          \
	X(NO_MEMORY, "no_memory")
enum sl_advert_error {
#define SL_ADVERT_ERROR_ENUM(id, name) SL_ADVERT_ERR_##id,
	SL_ADVERT_ERRORS(SL_ADVERT_ERROR_ENUM) SL_ADVERT_ERROR_COUNT
};
const char *sl_advert_error_name(enum sl_advert_error e);

/*
 * e: verified. app: the protocol tag that we take. ttl_s: node.discovery.nostr.advert_ttl_secs; an advert holds until its
 * expiration tag, and no longer than twice ttl_s after it was made.
 */
enum sl_advert_error sl_advert_parse(struct sl_advert *a, const struct sl_nostr_event *e, const char *app, uint64_t ttl_s,
	uint64_t now_unix_s) SL_MUST_CHECK;

/* One endpoint from its two texts: 0, or -EINVAL (not usable, section 7.4), -EPROTONOSUPPORT (unknown transport). */
int sl_advert_endpoint_parse(struct sl_advert_endpoint *ep, const char *transport, const char *addr) SL_MUST_CHECK;
const char *sl_advert_transport_name(enum sl_advert_transport t);
/* May an address stand in an advert? Not private, local, reserved or for documentation. */
bool sl_advert_ip_usable(uint8_t family, const uint8_t *ip) SL_MUST_CHECK;
/* The same way to reach a node? */
bool sl_advert_same_endpoints(const struct sl_advert *a, const struct sl_advert *b) SL_MUST_CHECK;

/* The content for a's endpoints (relays and servers only with has_nat): malloc'd; NULL and errno. */
char *sl_advert_build_content(const struct sl_advert *a) SL_MUST_CHECK;
/*
 * The signed event. *e points into one piece of memory (sl_nostr_event_fini()). 0, -ENOENT (no endpoint: nothing to publish),
 * -ENOMEM, -EMSGSIZE.
 */
int sl_advert_build(struct sl_nostr_event *e, const struct sl_advert *a, const char *app, uint64_t created_at,
	uint64_t ttl_s, const struct sl_identity *id) SL_MUST_CHECK;
/* A request to forget an event of ours (NIP-09, kind 5). */
int sl_advert_build_withdrawal(struct sl_nostr_event *e, const uint8_t advert_id[SL_NOSTR_ID_BYTES], uint64_t created_at,
	const struct sl_identity *id) SL_MUST_CHECK;
/*
 * Kind 10050, where we are listened for. Written with both tags, `relay` (NIP-17) and `r` (what the reference writes), and
 * read by either. Peering facts, section 9.
 */
#define SL_INBOX_KIND 10050u
int sl_inbox_build(struct sl_nostr_event *e, const char *const *relays, unsigned count, uint64_t created_at,
	const struct sl_identity *id) SL_MUST_CHECK;
unsigned sl_inbox_parse(char urls[][SL_ADVERT_TEXT_SIZE], unsigned room, const struct sl_nostr_event *e);

#ifdef __cplusplus
}
#endif
#endif
