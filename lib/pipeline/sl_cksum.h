/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CKSUM_H
#define SL_CKSUM_H
/*
 * The Internet checksum (RFC 1071), and big-endian access for the headers around an FMP packet.
 *
 * A partial sum is a uint64_t over 32-bit pieces in memory order: it never overflows below 2^31 bytes, and since a
 * ones' complement sum does not depend on byte order (RFC 1071, 2(B)), folding it gives the 16 bits as they lie in
 * memory. Pieces that are added up must each begin at an even offset of the summed text. Pure functions: any thread.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline uint16_t
sl_get16be(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t
sl_get32be(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline void
sl_put16be(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* 32 bytes as four lanes; the compiler splits it where the CPU has no such registers. */
typedef uint64_t sl_cksum_lanes __attribute__((vector_size(32)));

static inline uint64_t
sl_cksum_add16(uint64_t sum, uint16_t host_order)
{
	return sum + __builtin_bswap16(host_order);
}

/* Adds len bytes; an odd last byte counts as followed by a zero. */
static inline uint64_t
sl_cksum_add(uint64_t sum, const void *data, size_t len)
{
	const uint8_t *p = (const uint8_t *)data;
	uint64_t w;

	if (len < 8) {
		w = 0;
		for (size_t i = 0; i < len; i++)
			w |= (uint64_t)p[i] << (8 * i);
		return sum + (w & 0xffffffff) + (w >> 32);
	}
	if (len >= 64) {
		const sl_cksum_lanes mask = {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
		sl_cksum_lanes lo = {0, 0, 0, 0}, hi = {0, 0, 0, 0}, a, b;

		do {
			memcpy(&a, p, sizeof(a));
			memcpy(&b, p + 32, sizeof(b));
			lo += (a & mask) + (b & mask);
			hi += (a >> 32) + (b >> 32);
			p += 64;
			len -= 64;
		} while (len >= 64);
		lo += hi;
		sum += lo[0] + lo[1] + lo[2] + lo[3];
	}
	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		sum += (w & 0xffffffff) + (w >> 32);
	}
	if (len) { /* the last 8 bytes are there: shift out those already added (little-endian hosts, as wire.c asserts) */
		memcpy(&w, p + len - 8, 8);
		w >>= 64 - 8 * len;
		sum += (w & 0xffffffff) + (w >> 32);
	}
	return sum;
}

/* To 16 bits in memory order, not complemented. 0 only when every byte was zero. */
static inline uint16_t
sl_cksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of a pseudo header (RFC 768, RFC 8200 8.1): both addresses as they lie next to each other in the IP header. */
static inline uint64_t
sl_cksum_pseudo(const uint8_t *addrs, size_t addrs_bytes, uint8_t protocol, uint16_t l4_len)
{
	return sl_cksum_add(sl_cksum_add16(sl_cksum_add16(0, protocol), l4_len), addrs, addrs_bytes);
}

#ifdef __cplusplus
}
#endif
#endif
