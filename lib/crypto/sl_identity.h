/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_IDENTITY_H
#define SL_IDENTITY_H
/*
 * Identities: a secp256k1 key pair, known to others by its 32-byte x-only key (Nostr npub, NIP-19).
 * node_addr = first 16 bytes of SHA-256(x-only key); overlay IPv6 = fd || first 15 bytes of
 * node_addr. docs/protocol facts: link layer, section 2 (identity, text encodings, parity). BIP-340
 * for signatures.
 *
 * Any thread may use a struct sl_identity or sl_remote_key that nobody is changing.
 */
#include "sl_secret.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_NODE_ADDR_BYTES 16
#define SL_XONLY_BYTES 32
#define SL_COMPRESSED_BYTES 33
#define SL_SECRET_BYTES 32
#define SL_SIGNATURE_BYTES 64
#define SL_NPUB_CHARS 63
#define SL_NPUB_SIZE (SL_NPUB_CHARS + 1)
#define SL_IPV6_BYTES 16

struct sl_node_addr {
	uint8_t bytes[SL_NODE_ADDR_BYTES];
};

/* Our own key pair. Holds a secret: allocated in locked memory, freed with wiping. */
struct sl_identity;

/* secret: 32 bytes big endian. NULL with errno EINVAL when it is not in 1..n-1, or ENOMEM. */
struct sl_identity *sl_identity_create(const uint8_t secret[SL_SECRET_BYTES]) SL_MUST_CHECK;
/* A fresh random key. */
struct sl_identity *sl_identity_generate(void) SL_MUST_CHECK;
/* "nsec1..." (bech32 or bech32m checksum) or 64 hex digits; errno EINVAL when it is neither. */
struct sl_identity *sl_identity_from_text(const char *text) SL_MUST_CHECK;
void sl_identity_destroy(struct sl_identity *id);

const uint8_t *sl_identity_secret(
	const struct sl_identity *id); /* 32 bytes: do not copy without wiping */
const uint8_t *sl_identity_xonly(const struct sl_identity *id);	     /* 32 bytes */
const uint8_t *sl_identity_compressed(const struct sl_identity *id); /* 33 bytes, real parity */
const struct sl_node_addr *sl_identity_addr(const struct sl_identity *id);

/*
 * A peer's public key with everything about it that is worth computing once: the parsed point (even
 * y, as an npub names it), node_addr, DH(our static, their static) when `local` is given. Contains
 * a secret (the DH) then: sl_remote_key_fini() wipes.
 */
struct sl_remote_key {
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_node_addr addr;
	uint8_t parsed[64];    /* secp256k1_pubkey, opaque */
	uint8_t dh_static[32]; /* H(x(our static * theirs)); valid if has_dh_static */
	bool has_dh_static;
};
/* 0, or -EINVAL when xonly is not the x coordinate of a curve point. local may be NULL. */
int sl_remote_key_init(struct sl_remote_key *key, const uint8_t xonly[SL_XONLY_BYTES],
	const struct sl_identity *local) SL_MUST_CHECK;
/* The DH with our static key, unless it is there already. */
void sl_remote_key_dh(struct sl_remote_key *key, const struct sl_identity *local);
void sl_remote_key_fini(struct sl_remote_key *key);

void sl_node_addr_from_xonly(struct sl_node_addr *addr, const uint8_t xonly[SL_XONLY_BYTES]);
void sl_node_addr_to_ipv6(uint8_t ipv6[SL_IPV6_BYTES], const struct sl_node_addr *addr);
/* memcmp order: the order of every tie-break of the protocol. */
int sl_node_addr_cmp(const struct sl_node_addr *a, const struct sl_node_addr *b);
bool sl_node_addr_equal(const struct sl_node_addr *a, const struct sl_node_addr *b);

/* bech32 text. parse: 0 or -EINVAL (bad prefix, checksum or length). Both checksums are taken,
 * bech32 is emitted. */
int sl_npub_parse(uint8_t xonly[SL_XONLY_BYTES], const char *text) SL_MUST_CHECK;
void sl_npub_format(char text[SL_NPUB_SIZE], const uint8_t xonly[SL_XONLY_BYTES]);
int sl_nsec_parse(uint8_t secret[SL_SECRET_BYTES], const char *text) SL_MUST_CHECK;
void sl_nsec_format(char text[SL_NPUB_SIZE], const uint8_t secret[SL_SECRET_BYTES]);

/* Hex, lower case. parse: 0 or -EINVAL unless text is exactly 2 * len hex digits. format writes 2 *
 * len + 1. */
int sl_hex_parse(uint8_t *out, size_t len, const char *text) SL_MUST_CHECK;
void sl_hex_format(char *out, const uint8_t *data, size_t len);

/* BIP-340 over a 32-byte message, fresh auxiliary randomness. Cannot fail for a valid identity. */
void sl_sign(uint8_t sig[SL_SIGNATURE_BYTES], const uint8_t msg[32], const struct sl_identity *id);
bool sl_verify(const uint8_t sig[SL_SIGNATURE_BYTES], const uint8_t msg[32],
	const uint8_t xonly[SL_XONLY_BYTES]) SL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
