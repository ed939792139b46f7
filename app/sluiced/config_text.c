/* SPDX-License-Identifier: BSD-3-Clause */
/* Values with a grammar of their own: keys, addresses, endpoints, relays. */
#include "config_text.h"
#include "../../lib/overlay/nostr/sl_nostr_url.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

int
sl_conf_parse_npub(void *target, const char *text, char why[SL_WHY_SIZE])
{
	if (!strncmp(text, "nsec1", 5))
		snprintf(why, SL_WHY_SIZE, "is a secret key (nsec): a peer is named by its npub");
	else if (sl_npub_parse(target, text))
		snprintf(why, SL_WHY_SIZE, "is not an npub (prefix, length or checksum)");
	else
		return 0;
	return -1;
}

void
sl_conf_format_npub(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	char text[SL_NPUB_SIZE];

	sl_npub_format(text, target);
	snprintf(out, SL_CONF_TEXT_SIZE, "%s", text);
}

int
sl_conf_parse_nsec(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_identity *id = sl_identity_from_text(text);

	if (!id) {
		snprintf(why, SL_WHY_SIZE, "is neither an nsec nor 64 hex digits");
		return -1;
	}
	sl_identity_destroy(id);
	snprintf(target, SL_CONF_TEXT_SIZE, "%s", text);
	return 0;
}

void
sl_conf_format_nothing(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	(void)target;
	out[0] = 0;
}

/* "a.b.c.d/n" or "x::y/n". */
static int
parse_ip(struct sl_ifaddr *ip, const char *text, bool with_prefix, char why[SL_WHY_SIZE])
{
	char host[INET6_ADDRSTRLEN + 1];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned max;
	long n;
	char *end;

	memset(ip, 0, sizeof(*ip));
	if (len >= sizeof(host))
		goto bad;
	memcpy(host, text, len);
	host[len] = 0;
	if (inet_pton(AF_INET, host, ip->ip) == 1)
		ip->family = 4;
	else if (inet_pton(AF_INET6, host, ip->ip) == 1)
		ip->family = 6;
	else
		goto bad;
	max = ip->family == 4 ? 32 : 128;
	ip->prefix_len = (uint8_t)max;
	if (with_prefix != !!slash)
		goto bad;
	if (!slash)
		return 0;
	if (!isdigit((unsigned char)slash[1]))
		goto bad;
	n = strtol(slash + 1, &end, 10);
	if (*end || end - slash > 4 || n > (long)max)
		goto bad;
	ip->prefix_len = (uint8_t)n;
	return 0;
bad:
	snprintf(why, SL_WHY_SIZE,
		with_prefix ? "is not an address with a prefix length, like 192.0.2.1/24"
			    : "is not an IPv4 or IPv6 address");
	return -1;
}

/* Of an IPv4 prefix the first address names the network and the last one everybody on it. */
static bool
is_host(const struct sl_ifaddr *ip)
{
	uint32_t host = ip->prefix_len < 31 ? UINT32_MAX >> ip->prefix_len : 0, a;

	if (ip->family != 4 || !host)
		return true;
	a = (uint32_t)ip->ip[0] << 24 | (uint32_t)ip->ip[1] << 16 | (uint32_t)ip->ip[2] << 8 | ip->ip[3];
	return (a & host) != 0 && (a & host) != host;
}

static void
format_ip(char out[SL_CONF_TEXT_SIZE], const struct sl_ifaddr *ip, bool with_prefix)
{
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->ip, host, sizeof(host));
	if (with_prefix)
		snprintf(out, SL_CONF_TEXT_SIZE, "%s/%u", host, ip->prefix_len);
	else
		snprintf(out, SL_CONF_TEXT_SIZE, "%s", host);
}

int
sl_conf_parse_ifaddr(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_ifaddr *ip = target;
	static const uint8_t zero[16];

	if (parse_ip(ip, text, true, why))
		return -1;
	if (!memcmp(ip->ip, zero, 16) ||
		(ip->family == 4 ? ip->ip[0] >= 224 || ip->ip[0] == 127 || ip->ip[0] == 0
				 : ip->ip[0] == 0xff || (!memcmp(ip->ip, zero, 15) && ip->ip[15] == 1)) ||
		!is_host(ip)) {
		snprintf(why, SL_WHY_SIZE, "is not a unicast address a port can have");
		return -1;
	}
	return 0;
}

int
sl_conf_parse_prefix(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_ifaddr *ip = target;
	unsigned bits;

	if (!strcmp(text, "default"))
		text = "0.0.0.0/0";
	else if (!strcmp(text, "default6"))
		text = "::/0";
	if (parse_ip(ip, text, true, why))
		return -1;
	bits = ip->family == 4 ? 32 : 128;
	for (unsigned i = ip->prefix_len; i < bits; i++)
		if (ip->ip[i / 8] & (0x80u >> i % 8)) {
			snprintf(why, SL_WHY_SIZE, "has bits set behind its prefix length");
			return -1;
		}
	return 0;
}

int
sl_conf_parse_gateway(void *target, const char *text, char why[SL_WHY_SIZE])
{
	return parse_ip(target, text, false, why);
}

void
sl_conf_format_ifaddr(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	format_ip(out, target, true);
}

void
sl_conf_format_gateway(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	format_ip(out, target, false);
}

int
sl_conf_endpoint_parse(struct sl_conf_endpoint *e, const char *text, char why[SL_WHY_SIZE])
{
	const char *colon = strrchr(text, ':');
	size_t len;
	char *end;
	unsigned long port;

	memset(e, 0, sizeof(*e));
	if (!colon || colon == text || !isdigit((unsigned char)colon[1]) ||
		strlen(text) >= sizeof(e->text)) {
		snprintf(why, SL_WHY_SIZE, "is not host:port (IPv6 in brackets)");
		return -1;
	}
	port = strtoul(colon + 1, &end, 10);
	if (*end || end - colon > 6 || port > UINT16_MAX) {
		snprintf(why, SL_WHY_SIZE, "has no port number between 0 and 65535");
		return -1;
	}
	memcpy(e->text, text, strlen(text) + 1);
	e->port = (uint16_t)port;
	len = (size_t)(colon - text);
	if (text[0] == '[') {
		if (len < 3 || text[len - 1] != ']') {
			snprintf(why, SL_WHY_SIZE, "is not host:port (IPv6 in brackets)");
			return -1;
		}
		memcpy(e->host, text + 1, len - 2);
		if (inet_pton(AF_INET6, e->host, e->ip) != 1) {
			snprintf(why, SL_WHY_SIZE, "has no IPv6 address in its brackets");
			return -1;
		}
		e->family = 6;
		return 0;
	}
	memcpy(e->host, text, len);
	if (inet_pton(AF_INET, e->host, e->ip) == 1) {
		e->family = 4;
		return 0;
	}
	for (const char *p = e->host; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '-' && *p != '_') {
			snprintf(why, SL_WHY_SIZE, "is not host:port (IPv6 in brackets)");
			return -1;
		}
	/* A name of digits and dots only is an address that went wrong. */
	if (strspn(e->host, "0123456789.") == len) {
		snprintf(why, SL_WHY_SIZE, "has no valid IPv4 address");
		return -1;
	}
	return 0;
}

int
sl_conf_parse_bind(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_conf_endpoint *e = target;

	if (sl_conf_endpoint_parse(e, text, why))
		return -1;
	if (!e->family) {
		snprintf(why, SL_WHY_SIZE, "is not an address and port: names cannot be bound");
		return -1;
	}
	return 0;
}

void
sl_conf_format_endpoint(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	const struct sl_conf_endpoint *e = target;

	snprintf(out, SL_CONF_TEXT_SIZE, "%s", e->text);
}

/* An address with or without a port: what others are told. */
int
sl_conf_parse_external(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_conf_endpoint *e = target;
	char host[INET6_ADDRSTRLEN + 2];
	size_t len = strlen(text);

	memset(e, 0, sizeof(*e));
	if (len < sizeof(host)) {
		bool bracket = text[0] == '[' && text[len - 1] == ']';

		snprintf(host, sizeof(host), "%.*s", (int)(len - (bracket ? 2 : 0)), text + bracket);
		e->family = inet_pton(AF_INET, host, e->ip) == 1 ? 4 : inet_pton(AF_INET6, host, e->ip) == 1 ? 6 : 0;
		if (e->family) {
			snprintf(e->text, sizeof(e->text), "%s", text);
			snprintf(e->host, sizeof(e->host), "%s", host);
			return 0;
		}
	}
	if (sl_conf_endpoint_parse(e, text, why))
		return -1;
	if (e->family && e->port)
		return 0;
	snprintf(why, SL_WHY_SIZE, "is not an address, alone or with a port: names are not advertised");
	return -1;
}

int
sl_conf_parse_relay(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_nostr_url url;

	if (sl_nostr_url_parse(&url, text)) {
		snprintf(why, SL_WHY_SIZE, "is not a relay: wss://host[:port][/path], or ws:// without TLS");
		return -1;
	}
	snprintf(target, SL_CONF_TEXT_SIZE, "%s", text);
	return 0;
}

/* "stun:host:port"; "stun:" may be left out. */
int
sl_conf_parse_stun(void *target, const char *text, char why[SL_WHY_SIZE])
{
	struct sl_conf_endpoint e;

	if (sl_conf_endpoint_parse(&e, strncmp(text, "stun:", 5) ? text : text + 5, why))
		return -1;
	if (!e.port) {
		snprintf(why, SL_WHY_SIZE, "has port 0");
		return -1;
	}
	snprintf(target, SL_CONF_TEXT_SIZE, "%s", text);
	return 0;
}

int
sl_conf_parse_cpu_or_auto(void *target, const char *text, char why[SL_WHY_SIZE])
{
	int32_t *cpu = target;
	char *end;
	long n;

	if (!strcmp(text, "auto")) {
		*cpu = -1;
		return 0;
	}
	errno = 0;
	n = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : -1;
	if (n < 0 || n > 1023 || errno || *end) {
		snprintf(why, SL_WHY_SIZE, "is neither auto nor a CPU between 0 and 1023");
		return -1;
	}
	*cpu = (int32_t)n;
	return 0;
}

void
sl_conf_format_cpu_or_auto(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	int32_t cpu = *(const int32_t *)target;

	if (cpu < 0)
		snprintf(out, SL_CONF_TEXT_SIZE, "auto");
	else
		snprintf(out, SL_CONF_TEXT_SIZE, "%d", cpu);
}

int
sl_conf_parse_name(void *target, const char *text, char why[SL_WHY_SIZE])
{
	size_t len = strlen(text);

	if (!len || len >= SL_CONF_NAME_SIZE ||
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
			len) {
		snprintf(why, SL_WHY_SIZE,
			"is not a name: 1 to %d letters, digits, '-', '_' or '.'",
			SL_CONF_NAME_SIZE - 1);
		return -1;
	}
	memcpy(target, text, len + 1);
	return 0;
}

void
sl_conf_format_text(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	snprintf(out, SL_CONF_TEXT_SIZE, "%s", (const char *)target);
}

/* The engines of this build; whether this CPU has one is asked at start. */
int
sl_conf_parse_aead(void *target, const char *text, char why[SL_WHY_SIZE])
{
	const char *found = !strcasecmp(text, "auto") ? "auto" : NULL;
	int n = snprintf(why, SL_WHY_SIZE, "is none of auto");

	for (const struct sl_aead_backend *const *b = sl_aead_backends(); *b; b++) {
		if (!strcasecmp((*b)->name, text))
			found = (*b)->name;
		if (n < SL_WHY_SIZE && strcmp((*b)->name, "auto") != 0)
			n += snprintf(why + n, SL_WHY_SIZE - (size_t)n, ", %s", (*b)->name);
	}
	/* No engine of the library: the daemon starts it with dataplane.aead_device. */
	if (!strcasecmp(text, "cryptodev"))
		found = "cryptodev";
	if (n < SL_WHY_SIZE)
		snprintf(why + n, SL_WHY_SIZE - (size_t)n, ", cryptodev");
	if (!found || strlen(found) >= SL_CONF_AEAD_SIZE)
		return -1;
	memcpy(target, found, strlen(found) + 1);
	return 0;
}
