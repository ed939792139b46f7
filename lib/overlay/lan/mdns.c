/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_mdns.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CLASS_MASK 0x7fffu /* the top bit asks for a unicast answer, or says that older records are void */
#define FLAG_RESPONSE 0x8400u /* and authoritative (RFC 6762, 18) */
#define CACHE_FLUSH 0x8000u
#define DNS_HEADER 12
#define LABEL_NPUB 16 /* characters of the npub in the names */

const char *
sl_mdns_error_name(enum sl_mdns_error e)
{
	static const char *const names[] = {
#define NAME(id, name) name,
		SL_MDNS_ERRORS(NAME)
#undef NAME
	};
	return (unsigned)e < SL_MDNS_ERROR_COUNT ? names[e] : "?";
}

/* --- names --------------------------------------------------------------------------------------------------------- */

bool
sl_mdns_service_valid(const char *s)
{
	size_t label;

	if (s[0] != '_')
		return false;
	label = strspn(s + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
	if (label < 1 || label > 15 || s[1] == '-' || s[label] == '-') /* RFC 6763, 7.2 */
		return false;
	s += 1 + label;
	return !strcasecmp(s, "._udp.local.") || !strcasecmp(s, "._tcp.local.") || !strcasecmp(s, "._udp.local") ||
	       !strcasecmp(s, "._tcp.local");
}

int
sl_mdns_self_init(struct sl_mdns_self *self, const char *service, const uint8_t xonly[SL_XONLY_BYTES], const char *scope,
	uint16_t port)
{
	size_t len = strlen(service);

	memset(self, 0, sizeof(*self));
	if (!sl_mdns_service_valid(service) || strlen(scope) >= sizeof(self->scope))
		return -EINVAL;
	if (service[len - 1] == '.')
		len--;
	memcpy(self->service, service, len);
	sl_npub_format(self->npub, xonly);
	snprintf(self->instance, sizeof(self->instance), "fips-%.*s.%.64s", LABEL_NPUB, self->npub, self->service);
	snprintf(self->host, sizeof(self->host), "fips-%.*s.local", LABEL_NPUB, self->npub);
	snprintf(self->scope, sizeof(self->scope), "%s", scope);
	self->port = port;
	return 0;
}

/* Is `name` one label (or more) below the service? */
static bool
is_instance(const char *name, const char *service)
{
	size_t n = strlen(name), s = strlen(service);

	return n > s + 1 && name[n - s - 1] == '.' && !strcasecmp(name + n - s, service);
}

/* A name inside a record. False: malformed, or longer than we keep. */
static bool
name_at(char out[SL_MDNS_NAME_SIZE], const ns_msg *msg, const uint8_t *at)
{
	char name[NS_MAXDNAME];

	if (ns_name_uncompress(ns_msg_base(*msg), ns_msg_end(*msg), at, name, sizeof(name)) < 0 || strlen(name) >= SL_MDNS_NAME_SIZE)
		return false;
	memcpy(out, name, strlen(name) + 1);
	return true;
}

/* --- a response's records -------------------------------------------------------------------------------------------- */

static struct sl_mdns_peer *
peer_of(struct sl_mdns_message *m, const char *instance)
{
	struct sl_mdns_peer *p;

	if (strlen(instance) >= SL_MDNS_NAME_SIZE)
		return NULL;
	for (unsigned i = 0; i < m->peer_count; i++)
		if (!strcasecmp(m->peers[i].instance, instance))
			return &m->peers[i];
	if (m->peer_count == SL_MDNS_PEERS_MAX) {
		m->left_out++;
		return NULL;
	}
	p = &m->peers[m->peer_count++];
	memset(p, 0, sizeof(*p));
	memcpy(p->instance, instance, strlen(instance) + 1);
	return p;
}

static void
read_txt_string(struct sl_mdns_peer *p, const uint8_t *s, size_t len)
{
	char value[256];

	if (len >= 5 && !strncasecmp((const char *)s, "npub=", 5) && !p->has_npub) {
		memcpy(value, s + 5, len - 5);
		value[len - 5] = '\0';
		p->has_npub = strlen(value) == len - 5 && sl_npub_parse(p->xonly, value) == 0;
	} else if (len >= 6 && !strncasecmp((const char *)s, "scope=", 6) && !p->has_scope) {
		p->has_scope = true;
		len = len - 6 < SL_MDNS_SCOPE_SIZE ? len - 6 : 0; /* a longer one is not ours */
		memcpy(p->scope, s + 6, len);
		p->scope[len] = '\0';
	}
}

static void
read_txt(struct sl_mdns_peer *p, const uint8_t *data, size_t len)
{
	size_t i = 0;

	p->has_txt = true;
	while (i < len) {
		size_t n = data[i++];

		if (n > len - i)
			return;
		read_txt_string(p, data + i, n);
		i += n;
	}
}

static enum sl_mdns_error
read_record(struct sl_mdns_message *m, const ns_msg *msg, const ns_rr *rr, const struct sl_mdns_self *self)
{
	const uint8_t *data = ns_rr_rdata(*rr);
	struct sl_mdns_peer *p = NULL;
	char name[SL_MDNS_NAME_SIZE];

	switch (ns_rr_type(*rr)) {
	case ns_t_ptr:
		if (strcasecmp(ns_rr_name(*rr), self->service) != 0)
			return SL_MDNS_OK;
		if (!name_at(name, msg, data))
			return SL_MDNS_MALFORMED;
		if (is_instance(name, self->service))
			p = peer_of(m, name);
		break;
	case ns_t_srv:
		if (!is_instance(ns_rr_name(*rr), self->service))
			return SL_MDNS_OK;
		if (ns_rr_rdlen(*rr) < 7 || !name_at(name, msg, data + 6))
			return SL_MDNS_MALFORMED;
		p = peer_of(m, ns_rr_name(*rr));
		if (p && !p->has_srv) {
			p->has_srv = true;
			p->port = (uint16_t)ns_get16(data + 4);
			memcpy(p->target, name, sizeof(name));
		}
		break;
	case ns_t_txt:
		if (is_instance(ns_rr_name(*rr), self->service))
			p = peer_of(m, ns_rr_name(*rr));
		if (p && !p->has_txt)
			read_txt(p, data, ns_rr_rdlen(*rr));
		break;
	default:
		return SL_MDNS_OK;
	}
	if (!p)
		return SL_MDNS_OK;
	p->gone |= ns_rr_ttl(*rr) == 0 && ns_rr_type(*rr) != ns_t_txt;
	if (ns_rr_ttl(*rr) > p->ttl_s)
		p->ttl_s = ns_rr_ttl(*rr);
	return SL_MDNS_OK;
}

static void
read_address(struct sl_mdns_message *m, const ns_rr *rr)
{
	const unsigned family = ns_rr_type(*rr) == ns_t_a && ns_rr_rdlen(*rr) == 4	    ? 4
				: ns_rr_type(*rr) == ns_t_aaaa && ns_rr_rdlen(*rr) == 16 ? 6
											     : 0;

	if (!family || ns_rr_ttl(*rr) == 0)
		return;
	for (unsigned i = 0; i < m->peer_count; i++) {
		struct sl_mdns_peer *p = &m->peers[i];
		struct sl_mdns_ip *ip = &p->addrs[p->addr_count];

		if (!p->has_srv || p->addr_count == SL_MDNS_ADDRS_MAX || strcasecmp(p->target, ns_rr_name(*rr)) != 0)
			continue;
		memset(ip, 0, sizeof(*ip));
		ip->family = (uint8_t)family;
		memcpy(ip->ip, ns_rr_rdata(*rr), ns_rr_rdlen(*rr));
		p->addr_count++;
	}
}

/* Two passes: addresses may stand before the record that says whose they are. */
static enum sl_mdns_error
read_response(struct sl_mdns_message *m, ns_msg *msg, const struct sl_mdns_self *self)
{
	static const ns_sect sections[] = {ns_s_an, ns_s_ar};
	ns_rr rr;

	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned s = 0; s < 2; s++)
			for (int i = 0; i < ns_msg_count(*msg, sections[s]); i++) {
				enum sl_mdns_error rc;

				if (ns_parserr(msg, sections[s], i, &rr) < 0)
					return SL_MDNS_MALFORMED;
				if ((ns_rr_class(rr) & CLASS_MASK) != ns_c_in)
					continue;
				if (pass) {
					read_address(m, &rr);
					continue;
				}
				rc = read_record(m, msg, &rr, self);
				if (rc)
					return rc;
			}
	return SL_MDNS_OK;
}

/* --- a query ----------------------------------------------------------------------------------------------------------- */

static bool
asks_for(const ns_rr *q, const char *name, int type, int type2)
{
	const int t = ns_rr_type(*q);

	return (t == type || t == type2 || t == ns_t_any) && !strcasecmp(ns_rr_name(*q), name);
}

/* Known answers (RFC 6762, 7.1): who shows our PTR record with at least half of its time left need not hear it again. */
static bool
knows_us(ns_msg *msg, const struct sl_mdns_self *self)
{
	char name[SL_MDNS_NAME_SIZE];
	ns_rr rr;

	for (int i = 0; i < ns_msg_count(*msg, ns_s_an); i++)
		if (ns_parserr(msg, ns_s_an, i, &rr) == 0 && ns_rr_type(rr) == ns_t_ptr &&
			!strcasecmp(ns_rr_name(rr), self->service) && ns_rr_ttl(rr) >= SL_MDNS_TTL_S / 2 &&
			name_at(name, msg, ns_rr_rdata(rr)) && !strcasecmp(name, self->instance))
			return true;
	return false;
}

static enum sl_mdns_error
read_query(struct sl_mdns_message *m, ns_msg *msg, const struct sl_mdns_self *self)
{
	bool browse = false, ours = false;
	ns_rr q;

	for (int i = 0; i < ns_msg_count(*msg, ns_s_qd); i++) {
		if (ns_parserr(msg, ns_s_qd, i, &q) < 0)
			return SL_MDNS_MALFORMED;
		if ((ns_rr_class(q) & CLASS_MASK) != ns_c_in && ns_rr_class(q) != ns_c_any)
			continue;
		browse |= asks_for(&q, self->service, ns_t_ptr, ns_t_ptr);
		ours |= asks_for(&q, self->instance, ns_t_srv, ns_t_txt) || asks_for(&q, self->host, ns_t_a, ns_t_aaaa);
	}
	m->asked = ours || (browse && !knows_us(msg, self));
	return SL_MDNS_OK;
}

enum sl_mdns_error
sl_mdns_parse(struct sl_mdns_message *m, const uint8_t *bytes, size_t len, const struct sl_mdns_self *self)
{
	unsigned count = 0;
	ns_msg msg;

	m->peer_count = m->left_out = 0;
	m->query = m->asked = false;
	if (len < DNS_HEADER || len > UINT16_MAX)
		return SL_MDNS_MALFORMED;
	for (unsigned i = 4; i < DNS_HEADER; i += 2)
		count += ns_get16(bytes + i);
	if (count > SL_MDNS_RECORDS_MAX)
		return SL_MDNS_TOO_MANY;
	if (ns_initparse(bytes, (int)len, &msg) < 0)
		return SL_MDNS_MALFORMED;
	if (ns_msg_getflag(msg, ns_f_opcode) != ns_o_query || ns_msg_getflag(msg, ns_f_rcode) != ns_r_noerror)
		return SL_MDNS_OPCODE;
	m->query = !ns_msg_getflag(msg, ns_f_qr);
	return m->query ? read_query(m, &msg, self) : read_response(m, &msg, self);
}

/* --- out --------------------------------------------------------------------------------------------------------------- */

/* Grows until it does not fit; then nothing more is written. names: for dn_comp(). */
struct writer {
	uint8_t *start, *at, *end;
	unsigned char *names[24], **last_name;
	bool full;
};

static bool
room(struct writer *w, size_t n)
{
	w->full = w->full || (size_t)(w->end - w->at) < n;
	return !w->full;
}

static void
put16(struct writer *w, unsigned v)
{
	if (!room(w, 2))
		return;
	ns_put16(v, w->at);
	w->at += 2;
}

static void
put32(struct writer *w, uint32_t v)
{
	put16(w, v >> 16);
	put16(w, v & 0xffff);
}

static void
put_bytes(struct writer *w, const void *p, size_t n)
{
	if (!room(w, n))
		return;
	memcpy(w->at, p, n);
	w->at += n;
}

static void
put_name(struct writer *w, const char *name)
{
	int n = w->full ? -1 : dn_comp(name, w->at, (int)(w->end - w->at), w->names, w->last_name);

	if (n < 0)
		w->full = true;
	else
		w->at += n;
}

static void
begin(struct writer *w, uint8_t *out, size_t size, unsigned flags, unsigned questions, unsigned answers)
{
	memset(w, 0, sizeof(*w));
	w->start = w->at = out;
	w->end = out + size;
	w->names[0] = out;
	w->last_name = w->names + sizeof(w->names) / sizeof(w->names[0]);
	put16(w, 0);
	put16(w, flags);
	put16(w, questions);
	put16(w, answers);
	put32(w, 0);
}

static int
end(const struct writer *w)
{
	return w->full ? -EMSGSIZE : (int)(w->at - w->start);
}

static int
build_question(uint8_t *out, size_t size, const char *name, unsigned type)
{
	struct writer w;

	begin(&w, out, size, 0, 1, 0);
	put_name(&w, name);
	put16(&w, type);
	put16(&w, ns_c_in);
	return end(&w);
}

int
sl_mdns_build_browse(uint8_t *out, size_t size, const struct sl_mdns_self *self)
{
	return build_question(out, size, self->service, ns_t_ptr);
}

int
sl_mdns_build_ask(uint8_t *out, size_t size, const char *instance)
{
	return build_question(out, size, instance, ns_t_any);
}

/* A record's head; returns where its length belongs. */
static uint8_t *
record(struct writer *w, const char *name, unsigned type, unsigned class_, uint32_t ttl)
{
	uint8_t *at;

	put_name(w, name);
	put16(w, type);
	put16(w, class_);
	put32(w, ttl);
	at = w->at;
	put16(w, 0);
	return at;
}

static void
record_end(const struct writer *w, uint8_t *at)
{
	if (!w->full)
		ns_put16((unsigned)(w->at - at - 2), at);
}

static void
put_txt(struct writer *w, const char *key, const char *value)
{
	const uint8_t n = (uint8_t)(strlen(key) + strlen(value));

	put_bytes(w, &n, 1);
	put_bytes(w, key, strlen(key));
	put_bytes(w, value, strlen(value));
}

int
sl_mdns_build_answer(uint8_t *out, size_t size, const struct sl_mdns_self *self, const struct sl_mdns_ip *addrs, unsigned count,
	bool gone)
{
	const uint32_t ttl = gone ? 0 : SL_MDNS_TTL_S, host_ttl = gone ? 0 : SL_MDNS_HOST_TTL_S;
	struct writer w;
	uint8_t *at;

	begin(&w, out, size, FLAG_RESPONSE, 0, 3 + count);
	at = record(&w, self->service, ns_t_ptr, ns_c_in, ttl);
	put_name(&w, self->instance);
	record_end(&w, at);
	at = record(&w, self->instance, ns_t_srv, ns_c_in | CACHE_FLUSH, host_ttl);
	put32(&w, 0); /* priority, weight */
	put16(&w, self->port);
	put_name(&w, self->host);
	record_end(&w, at);
	at = record(&w, self->instance, ns_t_txt, ns_c_in | CACHE_FLUSH, ttl);
	put_txt(&w, "npub=", self->npub);
	if (self->scope[0])
		put_txt(&w, "scope=", self->scope);
	put_txt(&w, "v=", "1");
	record_end(&w, at);
	for (unsigned i = 0; i < count; i++) {
		at = record(&w, self->host, addrs[i].family == 4 ? ns_t_a : ns_t_aaaa, ns_c_in | CACHE_FLUSH, host_ttl);
		put_bytes(&w, addrs[i].ip, addrs[i].family == 4 ? 4 : 16);
		record_end(&w, at);
	}
	return end(&w);
}
