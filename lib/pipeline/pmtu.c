/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_pmtu.h"

static size_t
ip_bytes(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

/* RFC 1191, table 7-1, what lies above our floor. */
static uint16_t
next_lower(uint16_t current)
{
	static const uint16_t plateaus[] = {32000, 17914, 8166, 4352, 2002, 1492, 1280, 1006};

	for (unsigned i = 0; i < sizeof(plateaus) / sizeof(plateaus[0]); i++)
		if (plateaus[i] < current)
			return plateaus[i];
	return 0;
}

uint16_t
sl_pmtu_report(struct sl_pmtu *t, uint8_t family, const uint8_t *ip, uint32_t reported, uint16_t current,
	uint64_t now_us, bool *floored)
{
	const uint32_t least = family == 4 ? SL_PMTU_MIN_IP4 : SL_PMTU_MIN_IP6;
	unsigned at = 0;

	*floored = false;
	if (reported == 0)
		reported = next_lower(current);
	if (reported < least) {
		*floored = true;
		reported = least;
	}
	if (reported >= current)
		return 0;
	for (unsigned i = 0; i < SL_PMTU_ENTRIES; i++) {
		if (t->entry[i].family == family && memcmp(t->entry[i].ip, ip, ip_bytes(family)) == 0) {
			at = i;
			break;
		}
		if (t->entry[i].until_us < t->entry[at].until_us) /* free ones have 0 */
			at = i;
	}
	memset(&t->entry[at], 0, sizeof(t->entry[at]));
	t->entry[at].family = family;
	memcpy(t->entry[at].ip, ip, ip_bytes(family));
	t->entry[at].mtu = (uint16_t)reported;
	t->entry[at].until_us = now_us + SL_PMTU_AGE_US;
	return (uint16_t)reported;
}

uint16_t
sl_pmtu_lookup(const struct sl_pmtu *t, const struct sl_addr *to, uint64_t now_us)
{
	const uint8_t family = to->kind == SL_ADDR_UDP4 ? 4 : to->kind == SL_ADDR_UDP6 ? 6 : 0;

	for (unsigned i = 0; family && i < SL_PMTU_ENTRIES; i++)
		if (t->entry[i].family == family && t->entry[i].until_us > now_us &&
			memcmp(t->entry[i].ip, to->u.ip6, ip_bytes(family)) == 0)
			return t->entry[i].mtu;
	return 0;
}

bool
sl_pmtu_expire(struct sl_pmtu *t, uint64_t now_us, uint64_t *next_us)
{
	bool any = false;

	*next_us = UINT64_MAX;
	for (unsigned i = 0; i < SL_PMTU_ENTRIES; i++) {
		if (t->entry[i].family == 0)
			continue;
		if (t->entry[i].until_us <= now_us) {
			memset(&t->entry[i], 0, sizeof(t->entry[i]));
			any = true;
		} else if (t->entry[i].until_us < *next_us) {
			*next_us = t->entry[i].until_us;
		}
	}
	return any;
}
