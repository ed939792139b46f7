/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_nostr_url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int
read_port(uint16_t *port, const char *digits, size_t len)
{
	unsigned long v = 0;

	if (!len || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)digits[i]))
			return -EINVAL;
		v = v * 10 + (unsigned long)(digits[i] - '0');
	}
	if (!v || v > UINT16_MAX)
		return -EINVAL;
	*port = (uint16_t)v;
	return 0;
}

/* "host", "host:port", "[v6]:port" */
static int
read_authority(struct sl_nostr_url *u, const char *s, size_t len)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_", v6[] = "abcdef0123456789:.";
	size_t host = 0;

	u->ipv6 = len && s[0] == '[';
	if (u->ipv6) {
		s++;
		len--;
	}
	while (host < len && s[host] != (u->ipv6 ? ']' : ':'))
		host++;
	if (!host || host >= sizeof(u->host) || (u->ipv6 && host == len))
		return -EINVAL;
	for (size_t i = 0; i < host; i++) {
		u->host[i] = (char)tolower((unsigned char)s[i]);
		if (!strchr(u->ipv6 ? v6 : name, u->host[i]))
			return -EINVAL;
	}
	u->host[host] = '\0';
	s += host + u->ipv6;
	len -= host + u->ipv6;
	if (!len)
		return 0;
	return *s == ':' ? read_port(&u->port, s + 1, len - 1) : -EINVAL;
}

int
sl_nostr_url_parse(struct sl_nostr_url *u, const char *text)
{
	size_t len = strnlen(text, SL_NOSTR_URL_SIZE), authority, path;

	memset(u, 0, sizeof(*u));
	if (len >= SL_NOSTR_URL_SIZE)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == '#')
			return -EINVAL;
	if (!strncasecmp(text, "wss://", 6))
		u->tls = true;
	else if (strncasecmp(text, "ws://", 5) != 0)
		return -EINVAL;
	text += u->tls ? 6 : 5;
	u->port = u->tls ? 443 : 80;
	authority = strcspn(text, "/?");
	if (memchr(text, '@', authority) || read_authority(u, text, authority))
		return -EINVAL;
	text += authority;
	path = strlen(text);
	if (*text != '/')
		u->path[0] = '/';
	memcpy(u->path + (*text != '/'), text, path + 1);
	return 0;
}

void
sl_nostr_url_format(char out[SL_NOSTR_URL_SIZE], const struct sl_nostr_url *u)
{
	char port[8] = "", text[2 * SL_NOSTR_URL_SIZE + 32];
	size_t len;

	if (u->port != (u->tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%u", u->port);
	len = (size_t)snprintf(text, sizeof(text), "%s://%s%s%s%s%s", u->tls ? "wss" : "ws", u->ipv6 ? "[" : "", u->host,
		u->ipv6 ? "]" : "", port, u->path);
	if (len >= SL_NOSTR_URL_SIZE) /* not of sl_nostr_url_parse() */
		len = SL_NOSTR_URL_SIZE - 1;
	if (len && text[len - 1] == '/')
		len--;
	memcpy(out, text, len);
	out[len] = '\0';
}

bool
sl_nostr_url_same(const char *a, const char *b)
{
	struct sl_nostr_url x, y;
	char s[SL_NOSTR_URL_SIZE], t[SL_NOSTR_URL_SIZE];

	if (sl_nostr_url_parse(&x, a) || sl_nostr_url_parse(&y, b))
		return false;
	sl_nostr_url_format(s, &x);
	sl_nostr_url_format(t, &y);
	return !strcmp(s, t);
}
