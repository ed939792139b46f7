/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_identity.h"
#include "curve.h"
#include "sl_hash.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <secp256k1_schnorrsig.h>

struct sl_identity {
	secp256k1_keypair keypair;
	uint8_t secret[SL_SECRET_BYTES];
	uint8_t compressed[SL_COMPRESSED_BYTES];
	struct sl_node_addr addr;
};

_Static_assert(
	sizeof(((struct sl_remote_key *)0)->parsed) == sizeof(secp256k1_pubkey), "opaque point");

struct sl_identity *sl_identity_create(const uint8_t secret[SL_SECRET_BYTES])
{
	struct sl_identity *id;

	if (!sl_curve_secret_valid(secret)) {
		errno = EINVAL;
		return NULL;
	}
	id = sl_secret_alloc(sizeof(*id));
	if (!id)
		return NULL;
	if (secp256k1_keypair_create(sl_curve_ctx(), &id->keypair, secret) != 1) {
		sl_secret_free(id);
		errno = EINVAL;
		return NULL;
	}
	memcpy(id->secret, secret, sizeof(id->secret));
	sl_curve_public(id->compressed, secret);
	sl_node_addr_from_xonly(&id->addr, id->compressed + 1);
	return id;
}

struct sl_identity *sl_identity_generate(void)
{
	uint8_t secret[SL_SECRET_BYTES];
	struct sl_identity *id;

	sl_curve_secret_random(secret);
	id = sl_identity_create(secret);
	sl_wipe(secret, sizeof(secret));
	return id;
}

struct sl_identity *sl_identity_from_text(const char *text)
{
	uint8_t secret[SL_SECRET_BYTES];
	struct sl_identity *id = NULL;

	if (sl_nsec_parse(secret, text) == 0 || sl_hex_parse(secret, sizeof(secret), text) == 0)
		id = sl_identity_create(secret);
	else
		errno = EINVAL;
	sl_wipe(secret, sizeof(secret));
	return id;
}

void sl_identity_destroy(struct sl_identity *id)
{
	sl_secret_free(id);
}

const uint8_t *sl_identity_secret(const struct sl_identity *id)
{
	return id->secret;
}

const uint8_t *sl_identity_xonly(const struct sl_identity *id)
{
	return id->compressed + 1;
}

const uint8_t *sl_identity_compressed(const struct sl_identity *id)
{
	return id->compressed;
}

const struct sl_node_addr *sl_identity_addr(const struct sl_identity *id)
{
	return &id->addr;
}

int sl_remote_key_init(struct sl_remote_key *key, const uint8_t xonly[SL_XONLY_BYTES],
	const struct sl_identity *local)
{
	uint8_t compressed[SL_COMPRESSED_BYTES];
	secp256k1_pubkey point;

	/* An npub names the point with even y. xonly may lie inside *key. */
	compressed[0] = 0x02;
	memcpy(compressed + 1, xonly, SL_XONLY_BYTES);
	memset(key, 0, sizeof(*key));
	if (sl_curve_parse(&point, compressed) != 0)
		return -EINVAL;
	memcpy(key->xonly, compressed + 1, SL_XONLY_BYTES);
	memcpy(key->parsed, &point, sizeof(key->parsed));
	sl_node_addr_from_xonly(&key->addr, key->xonly);
	if (local)
		sl_remote_key_dh(key, local);
	return 0;
}

void sl_remote_key_dh(struct sl_remote_key *key, const struct sl_identity *local)
{
	secp256k1_pubkey point;

	if (key->has_dh_static)
		return;
	memcpy(&point, key->parsed, sizeof(point));
	sl_curve_dh(key->dh_static, &point, local->secret);
	key->has_dh_static = true;
}

void sl_remote_key_fini(struct sl_remote_key *key)
{
	sl_wipe(key, sizeof(*key));
}

void sl_node_addr_from_xonly(struct sl_node_addr *addr, const uint8_t xonly[SL_XONLY_BYTES])
{
	uint8_t digest[SL_SHA256_BYTES];

	sl_sha256(digest, xonly, SL_XONLY_BYTES);
	memcpy(addr->bytes, digest, sizeof(addr->bytes));
}

void sl_node_addr_to_ipv6(uint8_t ipv6[SL_IPV6_BYTES], const struct sl_node_addr *addr)
{
	ipv6[0] = 0xfd;
	memcpy(ipv6 + 1, addr->bytes, SL_IPV6_BYTES - 1);
}

int sl_node_addr_cmp(const struct sl_node_addr *a, const struct sl_node_addr *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool sl_node_addr_equal(const struct sl_node_addr *a, const struct sl_node_addr *b)
{
	return sl_node_addr_cmp(a, b) == 0;
}

void sl_sign_aux(uint8_t sig[SL_SIGNATURE_BYTES], const uint8_t msg[32],
	const struct sl_identity *id, const uint8_t aux[32])
{
	int ok = secp256k1_schnorrsig_sign32(sl_curve_ctx(), sig, msg, &id->keypair, aux);

	assert(ok == 1);
	(void)ok;
}

void sl_sign(uint8_t sig[SL_SIGNATURE_BYTES], const uint8_t msg[32], const struct sl_identity *id)
{
	uint8_t aux[32];

	sl_random(aux, sizeof(aux));
	sl_sign_aux(sig, msg, id, aux);
	sl_wipe(aux, sizeof(aux));
}

bool sl_verify(const uint8_t sig[SL_SIGNATURE_BYTES], const uint8_t msg[32],
	const uint8_t xonly[SL_XONLY_BYTES])
{
	secp256k1_xonly_pubkey key;

	if (secp256k1_xonly_pubkey_parse(sl_curve_ctx(), &key, xonly) != 1)
		return false;
	return secp256k1_schnorrsig_verify(sl_curve_ctx(), sig, msg, 32, &key) == 1;
}
