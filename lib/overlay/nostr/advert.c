/* SPDX-License-Identifier: BSD-3-Clause */
/* Adverts in: an event to plain data. advert_build.c has the way out. */
#include "sl_advert.h"
#include "nostr_json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

const char *
sl_advert_error_name(enum sl_advert_error e)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_ADVERT_ERRORS(NAME)
#undef NAME
	};
	return (unsigned)e < SL_ADVERT_ERROR_COUNT ? names[e] : "?";
}

const char *
sl_advert_transport_name(enum sl_advert_transport t)
{
	static const char *const names[] = {"udp", "tcp", "tor"};

	return names[t];
}

/* --- addresses --- */

static bool
ip4_usable(const uint8_t ip[4])
{
	static const struct {
		uint8_t net[4], bits;
	} barred[] = {{{0, 0, 0, 0}, 32}, {{10, 0, 0, 0}, 8}, {{100, 64, 0, 0}, 10}, {{127, 0, 0, 0}, 8},
		{{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12}, {{192, 0, 2, 0}, 24}, {{192, 168, 0, 0}, 16},
		{{198, 51, 100, 0}, 24}, {{203, 0, 113, 0}, 24}, {{224, 0, 0, 0}, 4}, {{255, 255, 255, 255}, 32}};
	uint32_t a = (uint32_t)ip[0] << 24 | (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3];

	for (unsigned i = 0; i < sizeof(barred) / sizeof(barred[0]); i++) {
		const uint8_t *n = barred[i].net;
		uint32_t net = (uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3];

		if (((a ^ net) & (UINT32_MAX << (32 - barred[i].bits))) == 0)
			return false;
	}
	return true;
}

bool
sl_advert_ip_usable(uint8_t family, const uint8_t *ip)
{
	static const uint8_t zero[15];

	if (family == 4)
		return ip4_usable(ip);
	if (!memcmp(ip, zero, 15) && ip[15] <= 1) /* ::, ::1 */
		return false;
	if (ip[0] == 0xff || (ip[0] & 0xfe) == 0xfc) /* multicast, unique local */
		return false;
	return !(ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80); /* link local */
}

/* "host:port", "[v6]:port" */
static int
split(struct sl_advert_endpoint *ep)
{
	const char *colon = strrchr(ep->addr, ':'), *host = ep->addr;
	unsigned long port = 0;
	size_t len;

	if (!colon || colon == ep->addr || !colon[1] || strlen(colon + 1) > 5)
		return -EINVAL;
	for (const char *p = colon + 1; *p; p++) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		port = port * 10 + (unsigned long)(*p - '0');
	}
	if (!port || port > UINT16_MAX)
		return -EINVAL;
	len = (size_t)(colon - host);
	if (host[0] == '[') {
		if (len < 3 || host[len - 1] != ']')
			return -EINVAL;
		host++;
		len -= 2;
	}
	memcpy(ep->host, host, len);
	ep->host[len] = '\0';
	ep->port = (uint16_t)port;
	if (inet_pton(AF_INET, ep->host, ep->ip) == 1)
		ep->family = 4;
	else if (ep->addr[0] == '[' && inet_pton(AF_INET6, ep->host, ep->ip) == 1)
		ep->family = 6;
	else if (ep->addr[0] == '[')
		return -EINVAL;
	return 0;
}

/* Letters, digits, dots, hyphens: anything else is no name to be given to a resolver. */
static bool
is_name(const char *host)
{
	return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == strlen(host) &&
	       strcasecmp(host, "localhost") != 0;
}

int
sl_advert_endpoint_parse(struct sl_advert_endpoint *ep, const char *transport, const char *addr)
{
	static const char *const names[] = {"udp", "tcp", "tor"};
	unsigned t = 0;
	size_t len;

	memset(ep, 0, sizeof(*ep));
	while (t < 3 && strcmp(names[t], transport) != 0)
		t++;
	if (t == 3)
		return -EPROTONOSUPPORT;
	ep->transport = (uint8_t)t;
	addr += strspn(addr, " \t\r\n");
	len = strlen(addr);
	while (len && strchr(" \t\r\n", addr[len - 1]))
		len--;
	if (!len || len >= sizeof(ep->addr))
		return -EINVAL;
	memcpy(ep->addr, addr, len);
	if (!strcasecmp(ep->addr, "nat")) {
		ep->nat = true;
		return t == SL_ADVERT_UDP ? 0 : -EINVAL;
	}
	if (t == SL_ADVERT_TOR)
		return 0;
	if (split(ep))
		return -EINVAL;
	if (ep->family)
		return sl_advert_ip_usable(ep->family, ep->ip) ? 0 : -EINVAL;
	return is_name(ep->host) ? 0 : -EINVAL;
}

bool
sl_advert_same_endpoints(const struct sl_advert *a, const struct sl_advert *b)
{
	if (a->endpoint_count != b->endpoint_count || a->has_nat != b->has_nat)
		return false;
	for (unsigned i = 0; i < a->endpoint_count; i++)
		if (a->endpoints[i].transport != b->endpoints[i].transport ||
			strcmp(a->endpoints[i].addr, b->endpoints[i].addr) != 0)
			return false;
	return true;
}

/* --- content --- */

static enum sl_advert_error
read_endpoints(struct sl_advert *a, const json_t *list)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(list))
		return SL_ADVERT_ERR_JSON;
	json_array_foreach(list, i, item)
	{
		const char *transport = json_string_value(json_object_get(item, "transport"));
		const char *addr = json_string_value(json_object_get(item, "addr"));
		struct sl_advert_endpoint ep;

		if (!transport || !addr)
			return SL_ADVERT_ERR_JSON;
		if (sl_advert_endpoint_parse(&ep, transport, addr) || a->endpoint_count == SL_ADVERT_ENDPOINTS_MAX)
			continue;
		a->has_nat = a->has_nat || ep.nat;
		a->endpoints[a->endpoint_count++] = ep;
	}
	return a->endpoint_count ? SL_ADVERT_ERR_OK : SL_ADVERT_ERR_NO_ENDPOINT;
}

static enum sl_advert_error
read_servers(char out[][SL_ADVERT_TEXT_SIZE], unsigned *count, const json_t *list)
{
	const json_t *item;
	size_t i;

	if (!list || json_is_null(list))
		return SL_ADVERT_ERR_OK;
	if (!json_is_array(list))
		return SL_ADVERT_ERR_JSON;
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			return SL_ADVERT_ERR_JSON;
		if (*count == SL_ADVERT_SERVERS_MAX || json_string_length(item) >= SL_ADVERT_TEXT_SIZE)
			continue;
		memcpy(out[(*count)++], json_string_value(item), json_string_length(item) + 1);
	}
	return SL_ADVERT_ERR_OK;
}

static enum sl_advert_error
read_content(struct sl_advert *a, const json_t *o)
{
	const char *identifier = json_string_value(json_object_get(o, "identifier"));
	const json_t *version = json_object_get(o, "version"), *endpoints = json_object_get(o, "endpoints");
	enum sl_advert_error rc;

	if (!identifier || !json_is_integer(version) || !endpoints)
		return SL_ADVERT_ERR_JSON;
	if (strcmp(identifier, SL_ADVERT_D) != 0)
		return SL_ADVERT_ERR_IDENTIFIER;
	if (json_integer_value(version) != SL_ADVERT_VERSION)
		return SL_ADVERT_ERR_VERSION;
	rc = read_endpoints(a, endpoints);
	if (!rc)
		rc = read_servers(a->signal_relays, &a->signal_relay_count, json_object_get(o, "signalRelays"));
	if (!rc)
		rc = read_servers(a->stun_servers, &a->stun_server_count, json_object_get(o, "stunServers"));
	if (rc)
		return rc;
	if (a->has_nat)
		return a->signal_relay_count && a->stun_server_count ? SL_ADVERT_ERR_OK : SL_ADVERT_ERR_NAT_INCOMPLETE;
	a->signal_relay_count = a->stun_server_count = 0;
	return SL_ADVERT_ERR_OK;
}

enum sl_advert_error
sl_advert_parse(struct sl_advert *a, const struct sl_nostr_event *e, const char *app, uint64_t ttl_s, uint64_t now)
{
	const char *protocol = sl_nostr_event_tag(e, "protocol");
	enum sl_nostr_error bad;
	enum sl_advert_error rc;
	uint64_t expiration;
	json_t *root;

	memset(a, 0, sizeof(*a));
	if (e->kind != SL_ADVERT_KIND)
		return SL_ADVERT_ERR_KIND;
	if (!protocol || strcmp(protocol, app) != 0)
		return SL_ADVERT_ERR_APP;
	a->created_at = e->created_at;
	a->valid_until = e->created_at + 2 * ttl_s;
	switch (sl_nostr_event_expiration(e, &expiration)) {
	case 0:
		if (expiration < a->valid_until)
			a->valid_until = expiration;
		break;
	case -ENOENT:
		break;
	default:
		return SL_ADVERT_ERR_EXPIRED;
	}
	if (a->valid_until <= now)
		return SL_ADVERT_ERR_EXPIRED;
	memcpy(a->pubkey, e->pubkey, sizeof(a->pubkey));
	memcpy(a->id, e->id, sizeof(a->id));
	bad = sl_nostr_json_parse(&root, e->content, e->content_len);
	if (bad)
		return bad == SL_NOSTR_NO_MEMORY ? SL_ADVERT_ERR_NO_MEMORY : SL_ADVERT_ERR_JSON;
	rc = read_content(a, root);
	json_decref(root);
	return rc;
}
