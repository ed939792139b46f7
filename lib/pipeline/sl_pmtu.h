/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PMTU_H
#define SL_PMTU_H
/*
 * Path MTUs that routers have reported (RFC 1191, 8201), by destination. Anyone can send such a report; so one counts only for
 * a packet that we may well have sent (the caller compares addresses and ports), it can only lower, never below what every
 * host must take (IPv6: 1280; IPv4: 576), and it is forgotten after ten minutes, when the path is tried at full size again.
 * A report without a value (old routers) means the next lower of the usual sizes (RFC 1191, 7.1).
 *
 * Control's; time is given. A table of few entries: the one that ends first makes room.
 */
#include "../overlay/sl_addr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_PMTU_ENTRIES 64u
#define SL_PMTU_AGE_US 600000000ull
#define SL_PMTU_MIN_IP4 576u
#define SL_PMTU_MIN_IP6 1280u

struct sl_pmtu {
	struct {
		uint8_t family; /* 0 = free */
		uint8_t ip[16];
		uint16_t mtu; /* IP bytes */
		uint64_t until_us;
	} entry[SL_PMTU_ENTRIES];
};

/*
 * family 4 or 6. reported: as in the ICMP message. current: IP MTU that we use towards there now. Returns the new one, 0 when
 * the report changes nothing. *floored: it was lower still.
 */
uint16_t sl_pmtu_report(struct sl_pmtu *t, uint8_t family, const uint8_t *ip, uint32_t reported, uint16_t current,
	uint64_t now_us, bool *floored);
/* IP MTU towards an address, 0 = nothing known. Raw Ethernet: 0. */
uint16_t sl_pmtu_lookup(const struct sl_pmtu *t, const struct sl_addr *to, uint64_t now_us);
/* Forgets what has ended: true when there was something (paths are to be made again). *next_us: when the next one ends. */
bool sl_pmtu_expire(struct sl_pmtu *t, uint64_t now_us, uint64_t *next_us);

#ifdef __cplusplus
}
#endif
#endif
