/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous_own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "../../lib/overlay/nostr/sl_nostr_client.h"

/* --- which endpoints -------------------------------------------------------------------------- */

static void
add_endpoint(struct sl_advert *a, uint8_t family, const uint8_t *ip, uint16_t port)
{
	char host[INET6_ADDRSTRLEN] = "", text[INET6_ADDRSTRLEN + 16];
	struct sl_advert_endpoint ep;

	inet_ntop(family == 4 ? AF_INET : AF_INET6, ip, host, sizeof(host));
	snprintf(text, sizeof(text), family == 4 ? "%s:%u" : "[%s]:%u", host, port);
	if (sl_advert_endpoint_parse(&ep, "udp", text) || a->endpoint_count == SL_ADVERT_ENDPOINTS_MAX)
		return;
	for (unsigned i = 0; i < a->endpoint_count; i++)
		if (!strcmp(a->endpoints[i].addr, ep.addr))
			return;
	a->endpoints[a->endpoint_count++] = ep;
}

/* A public port that is bound to everything has the addresses of the ports themselves: they are ours, not the kernel's. */
static void
add_port_addresses(const struct sl_daemon *d, struct sl_advert *a, const struct sl_conf_udp *u, uint16_t port)
{
	for (uint32_t p = 0; p < d->config->dataplane.port_count; p++) {
		const struct sl_conf_port *conf = &d->config->dataplane.ports[p];

		for (uint32_t i = 0; i < conf->address_count; i++)
			if (u->bind.family == 6 || conf->addresses[i].ip.family == 4)
				add_endpoint(a, conf->addresses[i].ip.family, conf->addresses[i].ip.ip, port);
	}
}

/* Behind a NAT: how to ask us for a way in. */
static void
add_nat(const struct sl_daemon *d, struct sl_advert *a)
{
	const struct sl_config *c = d->config;

	if (a->has_nat || a->endpoint_count == SL_ADVERT_ENDPOINTS_MAX ||
		sl_advert_endpoint_parse(&a->endpoints[a->endpoint_count], "udp", "nat"))
		return;
	a->endpoint_count++;
	a->has_nat = true;
	for (uint32_t i = 0; i < c->nostr.dm_relay_count && a->signal_relay_count < SL_ADVERT_SERVERS_MAX; i++)
		snprintf(a->signal_relays[a->signal_relay_count++], SL_ADVERT_TEXT_SIZE, "%s", c->nostr.dm_relays[i].text);
	for (uint32_t i = 0; i < c->nostr.stun_server_count && a->stun_server_count < SL_ADVERT_SERVERS_MAX; i++) {
		const char *text = c->nostr.stun_servers[i].text;

		snprintf(a->stun_servers[a->stun_server_count++], SL_ADVERT_TEXT_SIZE, "%s%.200s",
			strncmp(text, "stun:", 5) ? "stun:" : "", text);
	}
}

void
sl_own_endpoints(const struct sl_daemon *d, struct sl_advert *a)
{
	static const uint8_t any[16];

	memset(a, 0, sizeof(*a));
	for (uint32_t i = 0; i < d->config->udp_count; i++) {
		const struct sl_conf_udp *u = &d->config->udp[i];

		if (!u->advertise_on_nostr || u->outbound_only)
			continue;
		if (!u->public)
			add_nat(d, a);
		else if (u->external.family)
			add_endpoint(a, u->external.family, u->external.ip,
				u->external.port ? u->external.port : d->udp_ports[i]);
		else if (memcmp(u->bind.ip, any, 16) != 0)
			add_endpoint(a, u->bind.family, u->bind.ip, d->udp_ports[i]);
		else
			add_port_addresses(d, a, u, d->udp_ports[i]);
	}
}

const char *
sl_own_why_none(const struct sl_daemon *d)
{
	if (!d->config->nostr.advertise)
		return "node.rendezvous.nostr.advertise is off";
	for (uint32_t i = 0; i < d->config->udp_count; i++)
		if (d->config->udp[i].advertise_on_nostr && !d->config->udp[i].outbound_only)
			return "no address that others could reach";
	return "no transport has advertise_on_nostr";
}

void
sl_own_endpoints_text(char *out, size_t size, const struct sl_advert *a)
{
	size_t n = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < a->endpoint_count && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s:%s", i ? ", " : "",
			sl_advert_transport_name(a->endpoints[i].transport), a->endpoints[i].addr);
}

/* --- events, on the service's thread ---------------------------------------------------------- */

struct sl_own_job *
sl_own_job_new(const struct sl_config *config, const struct sl_advert *advert, struct sl_own_published *published)
{
	struct sl_own_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->advert = *advert;
	snprintf(j->app, sizeof(j->app), "%s", config->nostr.app);
	j->ttl_s = config->nostr.advert_ttl_secs;
	j->published = published;
	j->config = config;
	return j;
}

int
sl_own_make_advert(void *arg, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s)
{
	struct sl_own_job *j = arg;
	uint64_t at = now_unix_s;
	int rc;

	/* Of two of one second relays keep either: the new one must be newer. */
	if (j->published->any && at <= j->published->created_at)
		at = j->published->created_at + 1;
	rc = sl_advert_build(e, &j->advert, j->app, at, j->ttl_s, id);
	if (rc)
		return rc;
	j->published->any = true;
	j->published->created_at = at;
	memcpy(j->published->id, e->id, sizeof(e->id));
	return 0;
}

int
sl_own_make_withdrawal(void *arg, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s)
{
	struct sl_own_job *j = arg;

	if (!j->published->any)
		return -ENOENT;
	j->published->any = false;
	return sl_advert_build_withdrawal(e, j->published->id, now_unix_s, id);
}

int
sl_own_make_inbox(void *arg, struct sl_nostr_event *e, const struct sl_identity *id, uint64_t now_unix_s)
{
	const struct sl_own_job *j = arg;
	const char *urls[SL_NOSTR_RELAYS_MAX];
	unsigned n = 0;

	for (uint32_t i = 0; i < j->config->nostr.dm_relay_count && n < SL_NOSTR_RELAYS_MAX; i++)
		urls[n++] = j->config->nostr.dm_relays[i].text;
	return sl_inbox_build(e, urls, n, now_unix_s, id);
}
