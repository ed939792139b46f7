/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys as text: bech32 (BIP-173; BIP-350's checksum taken on input) with 32 bytes of data, and hex.
 */
#include "sl_identity.h"

#include <errno.h>
#include <string.h>

#include <sodium.h>

#define HRP_CHARS 4u	 /* "npub", "nsec" */
#define DATA_SYMBOLS 52u /* 256 bits in groups of five, four bits of padding */
#define CHECK_SYMBOLS 6u
#define SYMBOLS (DATA_SYMBOLS + CHECK_SYMBOLS)
#define BECH32_CONST 1u
#define BECH32M_CONST 0x2bc830a3u

_Static_assert(HRP_CHARS + 1 + SYMBOLS == SL_NPUB_CHARS, "npub length");

static const char charset[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static uint32_t polymod_step(uint32_t chk, uint8_t symbol)
{
	static const uint32_t gen[5] = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3};
	uint32_t top = chk >> 25;

	chk = (chk & 0x1ffffff) << 5 ^ symbol;
	for (unsigned i = 0; i < 5; i++)
		chk ^= gen[i] & (0u - (top >> i & 1));
	return chk;
}

/* Checksum state after the prefix, expanded as BIP-173 says. */
static uint32_t polymod_hrp(const char *hrp)
{
	uint32_t chk = 1;

	for (unsigned i = 0; i < HRP_CHARS; i++)
		chk = polymod_step(chk, (uint8_t)hrp[i] >> 5);
	chk = polymod_step(chk, 0);
	for (unsigned i = 0; i < HRP_CHARS; i++)
		chk = polymod_step(chk, hrp[i] & 31);
	return chk;
}

/* The whole table is read for every character: an nsec is a secret. -1 when it is no symbol. */
static int symbol_of(char c)
{
	int value = -1;

	for (int i = 0; i < 32; i++) {
		int same = -(int)(charset[i] == c);

		value = (value & ~same) | (i & same);
	}
	return value;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int bech32_parse(uint8_t out[32], const char *hrp, const char *text)
{
	bool has_upper = false, has_lower = false;
	uint32_t chk, acc = 0;
	unsigned bits = 0, n = 0;
	int rc = -EINVAL;

	if (!text || strnlen(text, SL_NPUB_CHARS + 1) != SL_NPUB_CHARS)
		return -EINVAL;
	for (unsigned i = 0; i < SL_NPUB_CHARS; i++) {
		has_upper |= text[i] >= 'A' && text[i] <= 'Z';
		has_lower |= text[i] >= 'a' && text[i] <= 'z';
	}
	if (has_upper && has_lower)
		return -EINVAL;
	for (unsigned i = 0; i < HRP_CHARS; i++)
		if (lower(text[i]) != hrp[i])
			return -EINVAL;
	if (text[HRP_CHARS] != '1')
		return -EINVAL;

	chk = polymod_hrp(hrp);
	for (unsigned i = 0; i < SYMBOLS; i++) {
		int symbol = symbol_of(lower(text[HRP_CHARS + 1 + i]));

		if (symbol < 0)
			goto out;
		chk = polymod_step(chk, (uint8_t)symbol);
		if (i >= DATA_SYMBOLS)
			continue;
		acc = acc << 5 | (uint32_t)symbol;
		bits += 5;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (uint8_t)(acc >> bits);
		}
	}
	/* The four bits of padding must be zero, or one key would have many names. */
	if ((acc & ((1u << bits) - 1)) == 0 && (chk == BECH32_CONST || chk == BECH32M_CONST))
		rc = 0;
out:
	if (rc != 0)
		sl_wipe(out, 32);
	sl_wipe(&acc, sizeof(acc));
	return rc;
}

static void bech32_format(char text[SL_NPUB_SIZE], const char *hrp, const uint8_t data[32])
{
	uint32_t chk = polymod_hrp(hrp), acc = 0;
	unsigned bits = 0, n = 0;
	char *p = text + HRP_CHARS + 1;

	memcpy(text, hrp, HRP_CHARS);
	text[HRP_CHARS] = '1';
	for (unsigned i = 0; i < DATA_SYMBOLS; i++) {
		uint8_t symbol;

		if (bits < 5) {
			acc = acc << 8 | (n < 32 ? data[n] : 0u);
			n++;
			bits += 8;
		}
		bits -= 5;
		symbol = acc >> bits & 31;
		chk = polymod_step(chk, symbol);
		*p++ = charset[symbol];
	}
	for (unsigned i = 0; i < CHECK_SYMBOLS; i++)
		chk = polymod_step(chk, 0);
	chk ^= BECH32_CONST;
	for (unsigned i = 0; i < CHECK_SYMBOLS; i++)
		*p++ = charset[chk >> 5 * (CHECK_SYMBOLS - 1 - i) & 31];
	*p = '\0';
	sl_wipe(&acc, sizeof(acc));
}

int sl_npub_parse(uint8_t xonly[SL_XONLY_BYTES], const char *text)
{
	return bech32_parse(xonly, "npub", text);
}

void sl_npub_format(char text[SL_NPUB_SIZE], const uint8_t xonly[SL_XONLY_BYTES])
{
	bech32_format(text, "npub", xonly);
}

int sl_nsec_parse(uint8_t secret[SL_SECRET_BYTES], const char *text)
{
	return bech32_parse(secret, "nsec", text);
}

void sl_nsec_format(char text[SL_NPUB_SIZE], const uint8_t secret[SL_SECRET_BYTES])
{
	bech32_format(text, "nsec", secret);
}

int sl_hex_parse(uint8_t *out, size_t len, const char *text)
{
	size_t got = 0;

	if (!text || len > SIZE_MAX / 2 - 1 || strnlen(text, 2 * len + 1) != 2 * len)
		return -EINVAL;
	if (sodium_hex2bin(out, len, text, 2 * len, NULL, &got, NULL) != 0 || got != len) {
		sl_wipe(out, len);
		return -EINVAL;
	}
	return 0;
}

void sl_hex_format(char *out, const uint8_t *data, size_t len)
{
	sodium_bin2hex(out, 2 * len + 1, data, len);
}
