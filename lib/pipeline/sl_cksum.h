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

/* As wide as the CPU the code is built for; the compiler splits it where there are no such registers. */
#ifdef __AVX512F__
#define SL_CKSUM_CHUNK 64
#else
#define SL_CKSUM_CHUNK 32
#endif
typedef uint64_t sl_cksum_lanes __attribute__((vector_size(SL_CKSUM_CHUNK)));

/* Adds 8 bytes with end-around carry: modulo 2^64 - 1, of which 2^16 - 1 is a divisor. */
static inline uint64_t
sl_cksum_carry(uint64_t sum, const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, 8);
	sum += w;
	return sum + (sum < w);
}

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
	if (len >= SL_CKSUM_CHUNK) {
		/* all: the words' sum modulo 2^64; high: that of their upper halves, exact. Together they give the lower. */
		sl_cksum_lanes all = {0}, high = {0}, v;

		do {
			memcpy(&v, p, sizeof(v));
			all += v;
			high += v >> 32;
			p += sizeof(v);
			len -= sizeof(v);
		} while (len >= sizeof(v));
		all = (all - (high << 32)) + high;
		for (size_t i = 0; i < SL_CKSUM_CHUNK / 8; i++)
			sum += all[i];
		if (len == 0)
			return sum;
	}
	w = 0;
	if (len & 32) {
		w = sl_cksum_carry(sl_cksum_carry(w, p), p + 8);
		w = sl_cksum_carry(sl_cksum_carry(w, p + 16), p + 24);
		p += 32;
	}
	if (len & 16) {
		w = sl_cksum_carry(sl_cksum_carry(w, p), p + 8);
		p += 16;
	}
	if (len & 8) {
		w = sl_cksum_carry(w, p);
		p += 8;
	}
	sum += (w & 0xffffffff) + (w >> 32);
	len &= 7;
	if (len) { /* 8 bytes end here: shift out those already added (little-endian hosts, as wire.c asserts) */
		memcpy(&w, p + len - 8, 8);
		w >>= 64 - 8 * len;
		sum += (w & 0xffffffff) + (w >> 32);
	}
	return sum;
}

/*
 * To 16 bits in memory order, not complemented. 0 only when every byte was zero. A number added to itself with its halves
 * exchanged has in its upper half their sum with the carry brought around.
 */
static inline uint16_t
sl_cksum_fold32(uint32_t sum)
{
	return (uint16_t)((sum + (sum << 16 | sum >> 16)) >> 16);
}
static inline uint16_t
sl_cksum_fold(uint64_t sum)
{
	return sl_cksum_fold32((uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32));
}

/* The 20 bytes of an IPv4 header without options, folded. */
static inline uint16_t
sl_cksum_ip4(const uint8_t *ip)
{
	uint64_t sum;
	uint32_t last;

	memcpy(&last, ip + 16, 4);
	sum = sl_cksum_carry(sl_cksum_carry(last, ip), ip + 8);
	return sl_cksum_fold(sum);
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
