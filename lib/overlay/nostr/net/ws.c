/* SPDX-License-Identifier: BSD-3-Clause */
#include "ws.h"

#include "../../sl_text.h"
#include "../sl_nostr_url.h"
#include "meter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libwebsockets.h>
#include <netdb.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL "sl-nostr"
#define RX_CHUNK 16384
#define RESOLVE_POLL_US 50000u /* while a name is looked up */
#define HANDSHAKE_S 20
#define METER_US 10000 /* between two looks at what connections have taken */

struct message {
	struct message *next;
	size_t len;
	unsigned char bytes[]; /* LWS_PRE, then the text */
};

/* A look-up under way. Its memory is the resolver's until that is done, even when nobody waits for it any more. */
struct lookup {
	struct gaicb cb;
	struct addrinfo hints;
	char host[SL_NOSTR_URL_SIZE];
	struct lookup *next; /* abandoned ones */
};

struct conn {
	struct sl_ws *ws;
	struct sl_nostr_url url;
	struct lws *wsi;
	struct lookup *lookup;
	bool connecting; /* inside lws_client_connect_via_info() */
	bool open, ping;
	char error[SL_NOSTR_REASON_SIZE], tls_error[SL_NOSTR_REASON_SIZE];
	char *rx; /* one message; SL_NOSTR_TEXT_MAX bytes while open */
	size_t rx_len;
	bool rx_bad;
	struct message *first, *last;
	unsigned queued;
	size_t queued_bytes;
	uint64_t told; /* bytes that texts and faults of this connection stand for, and overhead told already */
	unsigned turn; /* which of several addresses is next */
};

struct sl_ws {
	struct lws_context *lws;
	struct sl_ws_sink sink;
	struct conn conns[SL_NOSTR_RELAYS_MAX];
	unsigned count;
	struct lookup *abandoned;
	lws_sorted_usec_list_t timer;
	lws_usec_t metered;
};

/* --- names --- */

static void
lookup_free(struct lookup *l)
{
	if (l->cb.ar_result)
		freeaddrinfo(l->cb.ar_result);
	free(l);
}

static void
lookup_abandon(struct sl_ws *ws, struct conn *c)
{
	struct lookup *l = c->lookup;

	c->lookup = NULL;
	if (!l)
		return;
	(void)gai_cancel(&l->cb);
	l->next = ws->abandoned;
	ws->abandoned = l;
}

static void
reap_lookups(struct sl_ws *ws)
{
	for (struct lookup **p = &ws->abandoned; *p;) {
		struct lookup *l = *p;

		if (gai_error(&l->cb) == EAI_INPROGRESS) {
			p = &l->next;
			continue;
		}
		*p = l->next;
		lookup_free(l);
	}
}

static int
lookup_start(struct conn *c)
{
	struct lookup *l = calloc(1, sizeof(*l));
	struct gaicb *list[1];
	int rc;

	if (!l)
		return -ENOMEM;
	memcpy(l->host, c->url.host, sizeof(l->host));
	l->hints.ai_socktype = SOCK_STREAM;
	l->cb.ar_name = l->host;
	l->cb.ar_request = &l->hints;
	list[0] = &l->cb;
	rc = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
	if (rc) {
		free(l);
		return rc == EAI_MEMORY ? -ENOMEM : -EAGAIN;
	}
	c->lookup = l;
	return 0;
}

/* The address whose turn it is, as text: a relay with several is tried at another one each time. */
static bool
pick_address(struct conn *c, char out[INET6_ADDRSTRLEN])
{
	unsigned n = 0, want;
	struct addrinfo *a;

	for (a = c->lookup->cb.ar_result; a; a = a->ai_next)
		n += a->ai_family == AF_INET || a->ai_family == AF_INET6;
	if (!n)
		return false;
	want = c->turn++ % n;
	for (a = c->lookup->cb.ar_result; a; a = a->ai_next) {
		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		if (want-- == 0)
			break;
	}
	if (!a)
		return false;
	if (a->ai_family == AF_INET)
		return inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)a->ai_addr)->sin_addr, out, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_addr, out, INET6_ADDRSTRLEN);
}

/* --- connections --- */

static unsigned
index_of(const struct conn *c)
{
	return (unsigned)(c - c->ws->conns);
}

static void
conn_clear(struct conn *c)
{
	while (c->first) {
		struct message *m = c->first;

		c->first = m->next;
		free(m);
	}
	c->last = NULL;
	c->queued = 0;
	c->queued_bytes = 0;
	free(c->rx);
	c->rx = NULL;
	c->rx_len = 0;
	c->rx_bad = c->ping = c->open = false;
	c->wsi = NULL;
}

static void
conn_over(struct conn *c, const char *why)
{
	char text[SL_NOSTR_REASON_SIZE];

	snprintf(text, sizeof(text), "%s", c->tls_error[0] ? c->tls_error : c->error[0] ? c->error : why);
	sl_text_clean(text);
	conn_clear(c);
	c->ws->sink.closed(c->ws->sink.arg, index_of(c), text);
}

static void
connect_to(struct conn *c, const char *address)
{
	struct lws_client_connect_info i = {0};
	char host[SL_NOSTR_URL_SIZE + 16];
	bool standard = c->url.port == (c->url.tls ? 443 : 80);

	snprintf(host, sizeof(host), standard ? "%s%.250s%s" : "%s%.250s%s:%u", c->url.ipv6 ? "[" : "", c->url.host,
		c->url.ipv6 ? "]" : "", c->url.port);
	i.context = c->ws->lws;
	i.address = address;
	i.port = c->url.port;
	i.ssl_connection = (c->url.tls ? LCCSCF_USE_SSL : 0) | LCCSCF_HTTP_NO_FOLLOW_REDIRECT;
	i.path = c->url.path;
	i.host = host;
	i.alpn = "http/1.1"; /* WebSocket over HTTP/2 is another upgrade */
	i.ietf_version_or_minus_one = -1;
	i.local_protocol_name = PROTOCOL;
	i.opaque_user_data = c;
	i.pwsi = &c->wsi;
	c->error[0] = c->tls_error[0] = '\0';
	c->connecting = true;
	if (!lws_client_connect_via_info(&i))
		c->wsi = NULL;
	c->connecting = false;
	if (!c->wsi)
		conn_over(c, "cannot connect");
}

static int
net_open(void *arg, unsigned relay)
{
	struct sl_ws *ws = arg;
	struct conn *c = &ws->conns[relay];

	c->error[0] = c->tls_error[0] = '\0';
	/* Even a literal goes this way: what follows comes from sl_ws_service(), never from within. */
	return lookup_start(c);
}

static int
net_send(void *arg, unsigned relay, const char *text, size_t len)
{
	struct sl_ws *ws = arg;
	struct conn *c = &ws->conns[relay];
	struct message *m;

	if (!c->open)
		return -ENOTCONN;
	if (c->queued >= SL_WS_QUEUE_MESSAGES || c->queued_bytes + len > SL_WS_QUEUE_BYTES)
		return -ENOBUFS;
	m = malloc(sizeof(*m) + LWS_PRE + len);
	if (!m)
		return -ENOMEM;
	m->next = NULL;
	m->len = len;
	memcpy(m->bytes + LWS_PRE, text, len);
	if (c->last)
		c->last->next = m;
	else
		c->first = m;
	c->last = m;
	c->queued++;
	c->queued_bytes += len;
	lws_callback_on_writable(c->wsi);
	return 0;
}

static void
net_ping(void *arg, unsigned relay)
{
	struct conn *c = &((struct sl_ws *)arg)->conns[relay];

	if (!c->open)
		return;
	c->ping = true;
	lws_callback_on_writable(c->wsi);
}

static void
net_pause(void *arg, unsigned relay, bool stop)
{
	struct conn *c = &((struct sl_ws *)arg)->conns[relay];

	if (c->open)
		lws_rx_flow_control(c->wsi, stop ? 0 : 1);
}

/* May be called from within the connection's own callback: it is let go of here and dies in the next turn. */
static void
net_close(void *arg, unsigned relay)
{
	struct sl_ws *ws = arg;
	struct conn *c = &ws->conns[relay];
	struct lws *wsi = c->wsi;

	lookup_abandon(ws, c);
	conn_clear(c);
	if (!wsi)
		return;
	lws_set_opaque_user_data(wsi, NULL);
	lws_set_timeout(wsi, PENDING_TIMEOUT_KILLED_BY_PARENT, LWS_TO_KILL_ASYNC);
}

/* --- libwebsockets' side --- */

static int
on_opened(struct conn *c)
{
	c->rx = malloc(SL_NOSTR_TEXT_MAX);
	if (!c->rx) {
		snprintf(c->error, sizeof(c->error), "no memory");
		return -1;
	}
	c->rx_len = 0;
	c->rx_bad = false;
	c->told = 0;
	(void)sl_ws_meter(lws_get_socket_fd(c->wsi), &c->told);
	c->open = true;
	c->ws->sink.opened(c->ws->sink.arg, index_of(c));
	return 0;
}

static void
on_received(struct conn *c, struct lws *wsi, const char *in, size_t len)
{
	const bool whole = lws_is_final_fragment(wsi) && !lws_remaining_packet_payload(wsi);
	const bool binary = lws_frame_is_binary(wsi), fits = len <= SL_NOSTR_TEXT_MAX - c->rx_len;

	if (!binary && fits && !c->rx_bad)
		memcpy(c->rx + c->rx_len, in, len);
	if (fits)
		c->rx_len += len;
	if (!fits || (binary && !c->rx_bad)) {
		/*
		 * What is too long is read on and forgotten, but named and paid for again with each length of its kind:
		 * a message need not ever end.
		 */
		c->rx_bad = true;
		c->rx_len = 0;
		c->told += SL_NOSTR_TEXT_MAX;
		c->ws->sink.fault(
			c->ws->sink.arg, index_of(c), binary ? SL_NOSTR_NOT_JSON : SL_NOSTR_TOO_LONG);
		if (c->wsi != wsi)
			return;
	}
	if (!whole)
		return;
	len = c->rx_len;
	c->rx_len = 0;
	if (c->rx_bad) {
		c->rx_bad = false;
	} else {
		c->told += len;
		c->ws->sink.text(c->ws->sink.arg, index_of(c), c->rx, len);
	}
}

static int
on_writeable(struct conn *c, struct lws *wsi)
{
	unsigned char ping[LWS_PRE + 4] = {0};
	struct message *m = c->first;
	int n;

	if (c->ping) {
		c->ping = false;
		memcpy(ping + LWS_PRE, "sl", 2);
		n = lws_write(wsi, ping + LWS_PRE, 2, LWS_WRITE_PING);
		if (n < 0)
			return -1;
	} else if (m) {
		c->first = m->next;
		if (!c->first)
			c->last = NULL;
		c->queued--;
		c->queued_bytes -= m->len;
		n = lws_write(wsi, m->bytes + LWS_PRE, m->len, LWS_WRITE_TEXT);
		free(m);
		if (n < 0)
			return -1;
	}
	if (c->first || c->ping)
		lws_callback_on_writable(wsi);
	return 0;
}

static int
callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct conn *c;

	(void)user;
	switch (reason) {
	case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
	case LWS_CALLBACK_CLIENT_ESTABLISHED:
	case LWS_CALLBACK_CLIENT_CLOSED:
	case LWS_CALLBACK_CLIENT_RECEIVE:
	case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
	case LWS_CALLBACK_CLIENT_WRITEABLE:
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		break;
	case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
		c = lws_get_opaque_user_data(wsi);
		if (c && !len) /* what libwebsockets itself says of it is a number */
			snprintf(c->tls_error, sizeof(c->tls_error), "certificate: %.100s",
				X509_verify_cert_error_string(X509_STORE_CTX_get_error(user)));
		return 0;
	default:
		return 0;
	}
	c = lws_get_opaque_user_data(wsi);
	if (!c || (c->wsi != wsi && !c->connecting))
		return reason == LWS_CALLBACK_CLIENT_CONNECTION_ERROR || reason == LWS_CALLBACK_CLIENT_CLOSED ? 0 : -1;
	switch (reason) {
	case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
		snprintf(c->error, sizeof(c->error), "%.*s", in ? (int)(len ? len : strlen(in)) : 0, in ? (char *)in : "");
		if (!c->connecting)
			conn_over(c, "cannot connect");
		return 0;
	case LWS_CALLBACK_CLIENT_ESTABLISHED:
		return on_opened(c);
	case LWS_CALLBACK_CLIENT_CLOSED:
		conn_over(c, "connection ended");
		return 0;
	case LWS_CALLBACK_CLIENT_RECEIVE:
		on_received(c, wsi, in, len);
		return c->wsi == wsi ? 0 : -1;
	case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
		c->ws->sink.heard(c->ws->sink.arg, index_of(c));
		return 0;
	case LWS_CALLBACK_CLIENT_WRITEABLE:
		return on_writeable(c, wsi);
	default:
		return 0;
	}
}

static const struct lws_protocols protocols[] = {{PROTOCOL, callback, 0, RX_CHUNK, 0, NULL, 0}, {NULL, NULL, 0, 0, 0, NULL, 0}};

static void
on_timer(lws_sorted_usec_list_t *sul)
{
	(void)sul;
}

/* --- the outside --- */

/* libwebsockets would go on without any. */
static bool
has_authority(const char *ca_file)
{
	X509_STORE *store = X509_STORE_new();
	bool has = store && X509_STORE_load_locations(store, ca_file, NULL) == 1;

	X509_STORE_free(store);
	return has;
}

struct sl_ws *
sl_ws_create(const char *const *urls, unsigned count, const char *ca_file, const struct sl_ws_sink *sink)
{
	struct lws_context_creation_info info = {0};
	struct sl_ws *ws;

	if (count > SL_NOSTR_RELAYS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	if (ca_file && !has_authority(ca_file)) {
		errno = EIO;
		return NULL;
	}
	ws = calloc(1, sizeof(*ws));
	if (!ws)
		return NULL;
	ws->sink = *sink;
	ws->count = count;
	for (unsigned i = 0; i < count; i++) {
		ws->conns[i].ws = ws;
		if (sl_nostr_url_parse(&ws->conns[i].url, urls[i])) {
			errno = EINVAL;
			goto fail;
		}
	}
	lws_set_log_level(0, NULL);
	info.port = CONTEXT_PORT_NO_LISTEN;
	info.protocols = protocols;
	info.gid = (gid_t)-1;
	info.uid = (uid_t)-1;
	info.fd_limit_per_thread = 4 * count + 16;
	info.timeout_secs = HANDSHAKE_S;
	info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
	if (ca_file) {
		info.client_ssl_ca_filepath = ca_file;
		info.options |= LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
	}
	ws->lws = lws_create_context(&info);
	if (!ws->lws) {
		errno = EIO;
		goto fail;
	}
	return ws;
fail:
	free(ws);
	return NULL;
}

void
sl_ws_destroy(struct sl_ws *ws)
{
	if (!ws)
		return;
	for (unsigned i = 0; i < ws->count; i++)
		net_close(ws, i);
	lws_sul_cancel(&ws->timer);
	lws_context_destroy(ws->lws);
	reap_lookups(ws);
	/* A look-up that a name server holds up keeps its memory: it cannot be taken from the resolver's thread. */
	free(ws);
}

void
sl_ws_net(struct sl_ws *ws, struct sl_nostr_net *net)
{
	*net = (struct sl_nostr_net){ws, net_open, net_send, net_ping, net_pause, net_close};
}

static bool
poll_lookups(struct sl_ws *ws)
{
	bool waiting = false;

	for (unsigned i = 0; i < ws->count; i++) {
		struct conn *c = &ws->conns[i];
		char address[INET6_ADDRSTRLEN], why[SL_NOSTR_REASON_SIZE];
		bool found;
		int rc;

		if (!c->lookup)
			continue;
		rc = gai_error(&c->lookup->cb);
		if (rc == EAI_INPROGRESS) {
			waiting = true;
			continue;
		}
		found = !rc && pick_address(c, address);
		lookup_free(c->lookup);
		c->lookup = NULL;
		if (found) {
			connect_to(c, address);
			continue;
		}
		snprintf(why, sizeof(why), "name %.80s: %.30s", c->url.host, rc ? gai_strerror(rc) : "no address");
		conn_over(c, why);
	}
	reap_lookups(ws);
	return waiting;
}

/* libwebsockets tells neither pings nor frames' heads; the socket knows what came. */
static void
meter(struct sl_ws *ws)
{
	uint64_t taken;

	if (lws_now_usecs() - ws->metered < METER_US)
		return;
	ws->metered = lws_now_usecs();
	for (unsigned i = 0; i < ws->count; i++) {
		struct conn *c = &ws->conns[i];

		/* Of a message that is not whole yet the part that is here will be told as a text. */
		if (!c->open || sl_ws_meter(lws_get_socket_fd(c->wsi), &taken) || taken <= c->told + c->rx_len)
			continue;
		taken -= c->told + c->rx_len;
		c->told += taken;
		ws->sink.overhead(ws->sink.arg, i, taken);
	}
}

void
sl_ws_service(struct sl_ws *ws, uint64_t wait_us)
{
	if (poll_lookups(ws) && wait_us > RESOLVE_POLL_US)
		wait_us = RESOLVE_POLL_US;
	lws_sul_schedule(ws->lws, 0, &ws->timer, on_timer, (lws_usec_t)(wait_us ? wait_us : 1));
	lws_service(ws->lws, 0);
	meter(ws);
}

void
sl_ws_wake(struct sl_ws *ws)
{
	lws_cancel_service(ws->lws);
}

unsigned
sl_ws_sockets(const struct sl_ws *ws)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ws->count; i++)
		n += ws->conns[i].wsi != NULL;
	return n;
}
