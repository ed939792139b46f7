/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_addr.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

_Static_assert(sizeof(struct sl_addr) == 24, "no padding: addresses are compared as bytes");

void
sl_addr_format(char text[SL_ADDR_TEXT_SIZE], const struct sl_addr *addr)
{
	char host[INET6_ADDRSTRLEN];

	switch (addr->kind) {
	case SL_ADDR_UDP4:
		inet_ntop(AF_INET, addr->u.ip4, host, sizeof(host));
		snprintf(text, SL_ADDR_TEXT_SIZE, "%s:%u", host, addr->udp_port);
		break;
	case SL_ADDR_UDP6:
		inet_ntop(AF_INET6, addr->u.ip6, host, sizeof(host));
		snprintf(text, SL_ADDR_TEXT_SIZE, "[%s]:%u", host, addr->udp_port);
		break;
	case SL_ADDR_ETH:
		snprintf(text, SL_ADDR_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", addr->u.mac[0],
			addr->u.mac[1], addr->u.mac[2], addr->u.mac[3], addr->u.mac[4],
			addr->u.mac[5]);
		break;
	default:
		snprintf(text, SL_ADDR_TEXT_SIZE, "none");
	}
}

/* 1 to 5 digits and nothing else, 1 .. 65535: what strtoul takes besides (spaces, signs) is not a port. */
static int
port_parse(uint16_t *port, const char *text)
{
	uint32_t value = 0;
	int digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 6; text++, digits++)
		value = value * 10 + (uint32_t)(*text - '0');
	if (*text != '\0' || digits < 1 || digits > 5 || value < 1 || value > UINT16_MAX)
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

int
sl_addr_parse_udp(struct sl_addr *addr, const char *text)
{
	bool v6 = text[0] == '[';
	const char *start = v6 ? text + 1 : text;
	const char *end = strchr(start, v6 ? ']' : ':');
	char host[INET6_ADDRSTRLEN];
	struct sl_addr out;

	if (end == NULL || (size_t)(end - start) >= sizeof(host))
		return -EINVAL;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	if (v6)
		end++;
	if (*end != ':')
		return -EINVAL;
	memset(&out, 0, sizeof(out));
	out.kind = v6 ? SL_ADDR_UDP6 : SL_ADDR_UDP4;
	if (port_parse(&out.udp_port, end + 1) != 0)
		return -EINVAL;
	if (v6 ? inet_pton(AF_INET6, host, out.u.ip6) != 1
	       : inet_pton(AF_INET, host, out.u.ip4) != 1)
		return -EINVAL;
	*addr = out;
	return 0;
}

static int
nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
sl_addr_parse_mac(struct sl_addr *addr, const char *text)
{
	struct sl_addr out;

	memset(&out, 0, sizeof(out));
	out.kind = SL_ADDR_ETH;
	for (int i = 0; i < 6; i++, text += 3) {
		int high = nibble(text[0]);
		int low = high < 0 ? -1 : nibble(text[1]);

		if (low < 0 || text[2] != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		out.u.mac[i] = (uint8_t)(high << 4 | low);
	}
	*addr = out;
	return 0;
}
