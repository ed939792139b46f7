/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_MDNS_H
#define SL_MDNS_H
/*
 * Messages of multicast DNS (RFC 6762) that carry one service (DNS-SD, RFC 6763), FIPS's: peering facts, section 15.
 *
 *	PTR	<service>		-> fips-npub1abcdefghij.<service>
 *	SRV	fips-npub1....<service>	-> UDP port, fips-npub1....local
 *	TXT	fips-npub1....<service>	-> npub=<the whole key>, scope=<mesh>, v=1
 *	A, AAAA	fips-npub1....local
 *
 * Reading is the C library's (ns_initparse(), ns_parserr(), ns_name_uncompress() of libresolv): anybody on the link writes these
 * bytes, and its walk over counts, lengths and compressed names has been under attack for decades; there is no second decoder
 * of names here. What it finds is bounded (SL_MDNS_*_MAX) and proves nothing: a key in a TXT record is a hint, the handshake is
 * the proof. Writing needs no cleverness: names are compressed by dn_comp().
 *
 * No socket, no clock, no state: any thread.
 */
#include "../../crypto/sl_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_MDNS_NAME_SIZE 256 /* a name as text, without the last dot */
#define SL_MDNS_SCOPE_SIZE 128
#define SL_MDNS_MESSAGE_MAX 1440u /* what we write; what others write may be as long as a frame */
#define SL_MDNS_RECORDS_MAX 256u  /* questions and records of a message; more: it is refused whole */
#define SL_MDNS_PEERS_MAX 16u	  /* instances looked at in one message; more are left out */
#define SL_MDNS_ADDRS_MAX 8u	  /* of one of them; more are left out */
#define SL_MDNS_TTL_S 4500u	  /* of our PTR and TXT records (RFC 6762, 10) */
#define SL_MDNS_HOST_TTL_S 120u	  /* of SRV, A and AAAA */

#define SL_MDNS_ERRORS(X)                                                                                              \
	X(OK, "ok")                                                                                                    \
	X(MALFORMED, "malformed") /* no DNS message: cut off, a name that loops, counts that lie */                    \
	X(OPCODE, "opcode")	  /* no query, or an error (RFC 6762, 18: ignored) */                                  \
	X(TOO_MANY, "too_many_records")
enum sl_mdns_error {
#define SL_MDNS_ERROR_ENUM(id, name) SL_MDNS_##id,
	SL_MDNS_ERRORS(SL_MDNS_ERROR_ENUM) SL_MDNS_ERROR_COUNT
};
const char *sl_mdns_error_name(enum sl_mdns_error e);

/* The names that concern us; see sl_mdns_self_init(). */
struct sl_mdns_self {
	char service[SL_MDNS_NAME_SIZE];  /* "_fips._udp.local" */
	char instance[SL_MDNS_NAME_SIZE]; /* "fips-npub1abcdefghij._fips._udp.local" */
	char host[SL_MDNS_NAME_SIZE];	  /* "fips-npub1abcdefghij.local" */
	char npub[SL_NPUB_SIZE];
	char scope[SL_MDNS_SCOPE_SIZE]; /* "" = none */
	uint16_t port;			/* 0: not told to anybody */
};
/* service: a name of two labels and ".local", with or without the last dot. 0, or -EINVAL. */
int sl_mdns_self_init(struct sl_mdns_self *self, const char *service, const uint8_t xonly[SL_XONLY_BYTES], const char *scope,
	uint16_t port) SL_MUST_CHECK;
/* May it stand in the configuration? "_fips._udp.local.": underscore, letters, digits and hyphens; _udp or _tcp; local. */
bool sl_mdns_service_valid(const char *service);

struct sl_mdns_ip {
	uint8_t family; /* 4, 6 */
	uint8_t ip[16];
};

/* An instance of the service as one message describes it. */
struct sl_mdns_peer {
	char instance[SL_MDNS_NAME_SIZE];
	bool has_srv, has_txt, gone; /* gone: its PTR or SRV record says good-bye (TTL 0) */
	bool has_npub;
	uint8_t xonly[SL_XONLY_BYTES];
	bool has_scope;
	char scope[SL_MDNS_SCOPE_SIZE]; /* cut off when it is longer: then it is nobody's */
	uint16_t port;
	uint32_t ttl_s; /* the longest of its PTR, SRV and TXT records' */
	char target[SL_MDNS_NAME_SIZE];
	struct sl_mdns_ip addrs[SL_MDNS_ADDRS_MAX];
	unsigned addr_count;
};

struct sl_mdns_message {
	bool query;
	bool asked; /* a query that our records answer, and that does not show that they are known already */
	struct sl_mdns_peer peers[SL_MDNS_PEERS_MAX]; /* of a response */
	unsigned peer_count;
	unsigned left_out; /* instances beyond that */
};

enum sl_mdns_error sl_mdns_parse(struct sl_mdns_message *m, const uint8_t *bytes, size_t len,
	const struct sl_mdns_self *self) SL_MUST_CHECK;

/* Bytes written, or -EMSGSIZE. */
int sl_mdns_build_browse(uint8_t *out, size_t room, const struct sl_mdns_self *self) SL_MUST_CHECK; /* who is there? */
int sl_mdns_build_ask(uint8_t *out, size_t room, const char *instance) SL_MUST_CHECK; /* all about one of them */
/* All our records, or that they are gone. */
int sl_mdns_build_answer(uint8_t *out, size_t room, const struct sl_mdns_self *self, const struct sl_mdns_ip *addrs,
	unsigned count, bool gone) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
