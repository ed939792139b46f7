/* SPDX-License-Identifier: BSD-3-Clause */
#include "config_table.h"
#include "../../lib/overlay/nostr/sl_nostr_url.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* --- texts with a grammar of their own ------------------------------------------------------ */

static int
parse_npub(void *target, const char *text, char why[SL_WHY_SIZE])
{
	if (!strncmp(text, "nsec1", 5))
		snprintf(why, SL_WHY_SIZE, "is a secret key (nsec): a peer is named by its npub");
	else if (sl_npub_parse(target, text))
		snprintf(why, SL_WHY_SIZE, "is not an npub (prefix, length or checksum)");
	else
		return 0;
	return -1;
}

static void
format_npub(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	char text[SL_NPUB_SIZE];

	sl_npub_format(text, target);
	snprintf(out, SL_CONF_TEXT_SIZE, "%s", text);
}

static int
parse_nsec(void *target, const char *text, char why[SL_WHY_SIZE])
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

static void
format_nothing(char out[SL_CONF_TEXT_SIZE], const void *target)
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

static int
parse_ifaddr(void *target, const char *text, char why[SL_WHY_SIZE])
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

static int
parse_prefix(void *target, const char *text, char why[SL_WHY_SIZE])
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

static int
parse_gateway(void *target, const char *text, char why[SL_WHY_SIZE])
{
	return parse_ip(target, text, false, why);
}

static void
format_ifaddr(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	format_ip(out, target, true);
}

static void
format_gateway(char out[SL_CONF_TEXT_SIZE], const void *target)
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

static int
parse_bind(void *target, const char *text, char why[SL_WHY_SIZE])
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

static void
format_endpoint(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	const struct sl_conf_endpoint *e = target;

	snprintf(out, SL_CONF_TEXT_SIZE, "%s", e->text);
}

/* An address with or without a port: what others are told. */
static int
parse_external(void *target, const char *text, char why[SL_WHY_SIZE])
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

static int
parse_relay(void *target, const char *text, char why[SL_WHY_SIZE])
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
static int
parse_stun(void *target, const char *text, char why[SL_WHY_SIZE])
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

static int
parse_cpu_or_auto(void *target, const char *text, char why[SL_WHY_SIZE])
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

static void
format_cpu_or_auto(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	int32_t cpu = *(const int32_t *)target;

	if (cpu < 0)
		snprintf(out, SL_CONF_TEXT_SIZE, "auto");
	else
		snprintf(out, SL_CONF_TEXT_SIZE, "%d", cpu);
}

static int
parse_name(void *target, const char *text, char why[SL_WHY_SIZE])
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

static void
format_text(char out[SL_CONF_TEXT_SIZE], const void *target)
{
	snprintf(out, SL_CONF_TEXT_SIZE, "%s", (const char *)target);
}

/* The engines of this build; whether this CPU has one is asked at start. */
static int
parse_aead(void *target, const char *text, char why[SL_WHY_SIZE])
{
	const char *found = !strcasecmp(text, "auto") ? "auto" : NULL;
	int n = snprintf(why, SL_WHY_SIZE, "is none of auto");

	for (const struct sl_aead_backend *const *b = sl_aead_backends(); *b; b++) {
		if (!strcasecmp((*b)->name, text))
			found = (*b)->name;
		if (n < SL_WHY_SIZE && strcmp((*b)->name, "auto") != 0)
			n += snprintf(why + n, SL_WHY_SIZE - (size_t)n, ", %s", (*b)->name);
	}
	if (!found || strlen(found) >= SL_CONF_AEAD_SIZE)
		return -1;
	memcpy(target, found, strlen(found) + 1);
	return 0;
}

/* --- the table ------------------------------------------------------------------------------ */

static const char *const log_levels[] = {"trace", "debug", "info", "warn", "error", NULL};
static const char *const mmp_modes[] = {"full", "lightweight", "minimal", NULL};
static const char *const policies[] = {"auto_connect", "on_demand", "manual", NULL};
static const char *const advert_policies[] = {"disabled", "configured_only", "open", NULL};
static const char *const huge_choices[] = {"auto", "yes", "no", NULL};

/* clang-format off */
#define C(f) sizeof(((struct sl_config *)0)->f), offsetof(struct sl_config, f)
#define S(s, f) sizeof(((struct s *)0)->f), offsetof(struct s, f)
#define BOOL(path_, scope_, where, def_, doc_)                                                                         \
	{path_, SL_KEY_BOOL, scope_, 0, where, .def = def_, .doc = doc_}
#define UINT(path_, scope_, where, min_, max_, def_, unit_, doc_)                                                      \
	{path_, SL_KEY_UINT, scope_, 0, where, .min = min_, .max = max_, .def = def_, .unit = unit_, .doc = doc_}
#define REAL(path_, where, min_, max_, def_, unit_, doc_)                                                              \
	{path_, SL_KEY_REAL, SL_SCOPE_ROOT, 0, where, .min = min_, .max = max_, .def = def_, .unit = unit_, .doc = doc_}
#define ENUM(path_, scope_, where, choices_, def_, doc_)                                                               \
	{path_, SL_KEY_ENUM, scope_, 0, where, .def = def_, .choices = choices_, .doc = doc_}
#define TEXT(path_, scope_, flags_, where, def_, doc_)                                                                 \
	{path_, SL_KEY_TEXT, scope_, flags_, where, .def = def_, .doc = doc_}
#define CUSTOM(path_, scope_, flags_, where, parse_, format_, def_, doc_)                                              \
	{path_, SL_KEY_CUSTOM, scope_, flags_, where, .def = def_, .parse = parse_, .format = format_, .doc = doc_}
#define LIST(path_, type_, scope_, item_, item_scope_, ptr, count, most, doc_)                                         \
	{path_, type_, scope_, 0, sizeof(struct item_), ptr, count, item_scope_, .max = most, .doc = doc_}
#define FIPS(path_, type_, doc_) {path_, type_, SL_SCOPE_ROOT, .doc = doc_}
#define FIPS_IN(path_, type_, scope_, doc_) {path_, type_, scope_, .doc = doc_}

#define ROOT SL_SCOPE_ROOT
#define CO(f) offsetof(struct sl_config, f)

const struct sl_key sl_keys[] = {
	CUSTOM("node.identity.nsec", ROOT, SL_KEY_SECRET | SL_KEY_UNSET, C(identity.nsec), parse_nsec, format_nothing, NULL,
		"Our secret key, nsec or hex. Unset: the key file when persistent, else a fresh key each start."),
	BOOL("node.identity.persistent", ROOT, C(identity.persistent), "false",
		"Keep the key in sluice.key beside this file (mode 0600, made at the first start)."),
	UINT("node.limits.max_peers", ROOT, C(limits.max_peers), 0, 16384, "128", "peers",
		"Most authenticated peers; 0 = as many as there are rows (4096)."),
	UINT("node.limits.max_pending_inbound", ROOT, C(limits.max_pending_inbound), 1, 1e6, "1000", "handshakes",
		"Most inbound handshakes that are not confirmed yet."),
	UINT("node.rate_limit.handshake_burst", ROOT, C(rate.handshake_burst), 1, 1e6, "100", "msg1",
		"Handshakes of strangers taken at once."),
	REAL("node.rate_limit.handshake_rate", C(rate.handshake_rate), 0.001, 1e6, "10", "msg1/s",
		"Handshakes of strangers taken per second."),
	UINT("node.rate_limit.handshake_timeout_secs", ROOT, C(rate.handshake_timeout_secs), 1, 3600, "30", "s",
		"A handshake that is not complete by then is given up."),
	UINT("node.rate_limit.handshake_resend_interval_ms", ROOT, C(rate.resend_interval_ms), 10, 60000, "1000", "ms",
		"First wait before a handshake message is sent again."),
	REAL("node.rate_limit.handshake_resend_backoff", C(rate.resend_backoff), 1, 10, "2", "",
		"Each wait is this many times the one before."),
	UINT("node.rate_limit.handshake_max_resends", ROOT, C(rate.handshake_max_resends), 0, 20, "5", "",
		"Most repetitions of a handshake message."),
	{"node.rate_limit.established_handshake_burst", SL_KEY_UINT, ROOT, SL_KEY_UNSET, C(rate.established_burst),
		.min = 1, .max = 1e6, .unit = "msg1", .doc = "The same for known peers. Unset: derived from the peers."},
	{"node.rate_limit.established_handshake_rate", SL_KEY_REAL, ROOT, SL_KEY_UNSET, C(rate.established_rate),
		.min = 0.001, .max = 1e6, .unit = "msg1/s", .doc = "The same for known peers. Unset: derived."},
	UINT("node.retry.max_retries", ROOT, C(retry.max_retries), 0, 1000, "5", "",
		"0 = a dial that timed out is not repeated; configured peers are otherwise retried for ever."),
	UINT("node.retry.base_interval_secs", ROOT, C(retry.base_interval_secs), 1, 86400, "5", "s", "First redial wait."),
	UINT("node.retry.max_backoff_secs", ROOT, C(retry.max_backoff_secs), 1, 86400, "300", "s", "Longest redial wait."),
	UINT("node.heartbeat_interval_secs", ROOT, C(heartbeat_interval_secs), 1, 3600, "10", "s",
		"Heartbeats are sent this often on every link."),
	UINT("node.link_dead_timeout_secs", ROOT, C(link_dead_timeout_secs), 1, 86400, "30", "s",
		"A link without an authentic frame for so long is dead."),
	UINT("node.drain_timeout_secs", ROOT, C(drain_timeout_secs), 0, 60, "2", "s",
		"At shutdown: the most that is waited until Disconnects are out."),
	BOOL("node.rekey.enabled", ROOT, C(rekey.enabled), "true", "Start rekeys ourselves."),
	UINT("node.rekey.after_secs", ROOT, C(rekey.after_secs), 4, 31536000, "120", "s",
		"Age at which we rekey, jittered by 15 s, by a quarter of it under 60 s."),
	UINT("node.rekey.after_messages", ROOT, C(rekey.after_messages), 1, 1e15, "65536", "frames",
		"Frames sent on a key after which we rekey."),
	ENUM("node.mmp.mode", ROOT, C(mmp_mode), mmp_modes, "full", "Which link reports are sent."),
	UINT("node.tree.announce_min_interval_ms", ROOT, C(tree.announce_min_interval_ms), 0, 60000, "500", "ms",
		"Least time between two announces to a peer."),
	REAL("node.tree.parent_hysteresis", C(tree.parent_hysteresis), 0, 1, "0.2", "",
		"A new parent must be better by this share of the old one's cost."),
	UINT("node.tree.hold_down_secs", ROOT, C(tree.hold_down_secs), 0, 86400, "30", "s",
		"No voluntary parent change for so long after one."),
	UINT("node.tree.reeval_interval_secs", ROOT, C(tree.reeval_interval_secs), 0, 86400, "60", "s",
		"The parent is reconsidered this often; 0 = only when something changes."),
	UINT("node.tree.flap_threshold", ROOT, C(tree.flap_threshold), 0, 1000, "4", "changes",
		"Parent changes within the window that start damping."),
	UINT("node.tree.flap_window_secs", ROOT, C(tree.flap_window_secs), 1, 86400, "60", "s", "That window."),
	UINT("node.tree.flap_dampening_secs", ROOT, C(tree.flap_dampening_secs), 0, 86400, "120", "s",
		"How long damping lasts."),
	UINT("node.bloom.update_debounce_ms", ROOT, C(bloom.update_debounce_ms), 0, 60000, "500", "ms",
		"Least time between two filters to a peer."),
	REAL("node.bloom.max_inbound_fpr", C(bloom.max_inbound_fpr), 0.0001, 1, "0.2", "",
		"Filters with a higher false positive rate are refused."),
	UINT("node.cache.coord_size", ROOT, C(cache.coord_size), 16, 8388608, "50000", "entries",
		"Destinations whose coordinates are remembered."),
	UINT("node.cache.coord_ttl_secs", ROOT, C(cache.coord_ttl_secs), 1, 31536000, "300", "s",
		"How long an unused one is kept."),
	UINT("node.lookup.ttl", ROOT, C(lookup.ttl), 1, 255, "64", "hops", "Hop limit of lookups."),
	UINT("node.lookup.recent_expiry_secs", ROOT, C(lookup.recent_expiry_secs), 1, 3600, "10", "s",
		"How long a lookup is remembered as seen."),
	UINT("node.lookup.forward_min_interval_secs", ROOT, C(lookup.forward_min_interval_secs), 0, 3600, "2", "s",
		"Least time between two lookups forwarded for one target."),
	BOOL("node.ecn.enabled", ROOT, C(ecn.enabled), "true", "Mark datagrams that pass a congested link."),
	REAL("node.ecn.loss_threshold", C(ecn.loss_threshold), 0, 1, "0.05", "", "Loss at which a link counts as congested."),
	REAL("node.ecn.etx_threshold", C(ecn.etx_threshold), 1, 1000, "3", "", "ETX at which a link counts as congested."),
	UINT("node.session.default_ttl", ROOT, C(default_ttl), 1, 255, "64", "hops", "TTL of datagrams we make."),
	ENUM("node.log_level", ROOT, C(log_level), log_levels, "info", "What is written to the log: this level and worse."),
	BOOL("node.control.enabled", ROOT, C(control.enabled), "true", "Serve the control socket."),
	TEXT("node.control.socket_path", ROOT, 0, C(control.socket_path), "/run/sluice/control.sock",
		"Where it is; made with mode 0660."),

	BOOL("node.rendezvous.nostr.enabled", ROOT, C(nostr.enabled), "false",
		"Use Nostr relays: to say where we are, and to find peers. The block may also stand under node.discovery, its old name."),
	BOOL("node.rendezvous.nostr.advertise", ROOT, C(nostr.advertise), "true",
		"Publish an advert of the transports that have advertise_on_nostr."),
	LIST("node.rendezvous.nostr.advert_relays", SL_KEY_LIST, ROOT, sl_conf_text, SL_SCOPE_ADVERT_RELAY,
		CO(nostr.advert_relays), CO(nostr.advert_relay_count), 8,
		"Relays for adverts, ours and peers'. Absent: wss://relay.damus.io, wss://nos.lol, wss://offchain.pub."),
	CUSTOM("node.rendezvous.nostr.advert_relays[]", SL_SCOPE_ADVERT_RELAY, SL_KEY_REQUIRED, S(sl_conf_text, text), parse_relay,
		format_text, NULL, ""),
	LIST("node.rendezvous.nostr.dm_relays", SL_KEY_LIST, ROOT, sl_conf_text, SL_SCOPE_DM_RELAY, CO(nostr.dm_relays),
		CO(nostr.dm_relay_count), 8, "Relays on which we are listening for signals of peers. Absent: the same three."),
	CUSTOM("node.rendezvous.nostr.dm_relays[]", SL_SCOPE_DM_RELAY, SL_KEY_REQUIRED, S(sl_conf_text, text), parse_relay,
		format_text, NULL, ""),
	LIST("node.rendezvous.nostr.stun_servers", SL_KEY_LIST, ROOT, sl_conf_text, SL_SCOPE_STUN_SERVER, CO(nostr.stun_servers),
		CO(nostr.stun_server_count), 8,
		"Servers that tell us our address from outside. Absent: stun:stun.l.google.com:19302, stun:stun.cloudflare.com:3478, "
		"stun:global.stun.twilio.com:3478."),
	CUSTOM("node.rendezvous.nostr.stun_servers[]", SL_SCOPE_STUN_SERVER, SL_KEY_REQUIRED, S(sl_conf_text, text), parse_stun,
		format_text, NULL, ""),
	BOOL("node.rendezvous.nostr.share_local_candidates", ROOT, C(nostr.share_local_candidates), "false",
		"Tell a peer behind a NAT our private addresses too."),
	TEXT("node.rendezvous.nostr.app", ROOT, 0, C(nostr.app), "fips-overlay-v1",
		"Which mesh an advert belongs to; others' are not looked at."),
	ENUM("node.rendezvous.nostr.policy", ROOT, C(nostr.policy), advert_policies, "configured_only",
		"Whose adverts are dialled: configured peers' with via_nostr, or nobody's (disabled). open is not supported."),
	UINT("node.rendezvous.nostr.signal_ttl_secs", ROOT, C(nostr.signal_ttl_secs), 1, 3600, "120", "s",
		"How long an offer holds."),
	UINT("node.rendezvous.nostr.attempt_timeout_secs", ROOT, C(nostr.attempt_timeout_secs), 1, 600, "10", "s",
		"A punch that has not come through by then has failed."),
	UINT("node.rendezvous.nostr.replay_window_secs", ROOT, C(nostr.replay_window_secs), 1, 86400, "300", "s",
		"How long offers are remembered; longer than signal_ttl_secs and 120 s."),
	UINT("node.rendezvous.nostr.punch_start_delay_ms", ROOT, C(nostr.punch_start_delay_ms), 0, 60000, "2000", "ms",
		"From the answer to the first punch."),
	UINT("node.rendezvous.nostr.punch_interval_ms", ROOT, C(nostr.punch_interval_ms), 20, 10000, "200", "ms",
		"Between two rounds of punches."),
	UINT("node.rendezvous.nostr.punch_duration_ms", ROOT, C(nostr.punch_duration_ms), 100, 600000, "10000", "ms",
		"For how long."),
	UINT("node.rendezvous.nostr.advert_ttl_secs", ROOT, C(nostr.advert_ttl_secs), 60, 604800, "3600", "s",
		"How long our advert holds; a peer's without an expiration holds twice that."),
	UINT("node.rendezvous.nostr.advert_refresh_secs", ROOT, C(nostr.advert_refresh_secs), 10, 604800, "1800", "s",
		"How often it is published anew."),
	UINT("node.rendezvous.nostr.seen_sessions_max_entries", ROOT, C(nostr.seen_sessions_max), 16, 65536, "2048", "entries",
		"Offers remembered."),
	UINT("node.rendezvous.nostr.failure_state_max_entries", ROOT, C(nostr.failure_state_max), 16, 65536, "4096", "peers",
		"Peers whose failures are remembered."),
	UINT("node.rendezvous.nostr.max_concurrent_incoming_offers", ROOT, C(nostr.max_concurrent_incoming_offers), 1, 256, "16", "",
		"Offers worked on at once."),
	UINT("node.rendezvous.nostr.max_concurrent_offers_per_npub", ROOT, C(nostr.max_concurrent_offers_per_npub), 1, 256, "4", "",
		"Of them of one sender."),
	UINT("node.rendezvous.nostr.failure_streak_threshold", ROOT, C(nostr.failure_streak_threshold), 1, 1000, "5", "",
		"Failures in a row after which a peer is left alone for long."),
	UINT("node.rendezvous.nostr.extended_cooldown_secs", ROOT, C(nostr.extended_cooldown_secs), 1, 604800, "1800", "s",
		"For that long."),

	FIPS("node.leaf_only", SL_KEY_OFF, "leaf nodes"),
	FIPS("node.native_api.enabled", SL_KEY_OFF, "the native datagram API"),
	FIPS("node.native_api.*", SL_KEY_LEFT_OUT, "the native datagram API"),
	FIPS("node.rendezvous.nostr.advert_cache_max_entries", SL_KEY_LEFT_OUT, "only configured peers' adverts are kept"),
	FIPS("node.rendezvous.nostr.open_discovery_max_pending", SL_KEY_LEFT_OUT, "policy open"),
	FIPS("node.rendezvous.nostr.startup_sweep_delay_secs", SL_KEY_LEFT_OUT, "policy open"),
	FIPS("node.rendezvous.nostr.startup_sweep_max_age_secs", SL_KEY_LEFT_OUT, "policy open"),
	FIPS("node.rendezvous.nostr.protocol_mismatch_cooldown_secs", SL_KEY_LEFT_OUT, "the ordinary back-off holds"),
	FIPS("node.rendezvous.nostr.warn_log_interval_secs", SL_KEY_LEFT_OUT, "one line for each change of state"),
	FIPS("node.rendezvous.lan.enabled", SL_KEY_OFF, "rendezvous over mDNS"),
	FIPS("node.rendezvous.lan.*", SL_KEY_LEFT_OUT, "rendezvous over mDNS"),
	FIPS("node.tick_interval_secs", SL_KEY_LEFT_OUT, "timers here run when they are due"),
	FIPS("node.base_rtt_ms", SL_KEY_LEFT_OUT, "links are unmeasured until they are measured"),
	FIPS("node.limits.max_connections", SL_KEY_LEFT_OUT, "max_peers and max_pending_inbound bound the same"),
	FIPS("node.limits.max_links", SL_KEY_LEFT_OUT, "max_peers bounds the same"),
	FIPS("node.rate_limit.session_setup_burst", SL_KEY_LEFT_OUT, "a relay answers no sessions"),
	FIPS("node.rate_limit.session_setup_rate", SL_KEY_LEFT_OUT, "a relay answers no sessions"),
	FIPS("node.cache.identity_size", SL_KEY_LEFT_OUT, "a relay keeps no identities"),
	FIPS("node.lookup.attempt_timeouts_secs", SL_KEY_LEFT_OUT, "a relay starts no lookups"),
	FIPS("node.lookup.backoff_base_secs", SL_KEY_LEFT_OUT, "a relay starts no lookups"),
	FIPS("node.lookup.backoff_max_secs", SL_KEY_LEFT_OUT, "a relay starts no lookups"),
	FIPS("node.session.*", SL_KEY_LEFT_OUT, "a relay has no sessions of its own"),
	FIPS("node.mmp.log_interval_secs", SL_KEY_LEFT_OUT, "ask sluicectl"),
	FIPS("node.mmp.owd_window_size", SL_KEY_LEFT_OUT, "fixed here"),
	FIPS("node.session_mmp.*", SL_KEY_LEFT_OUT, "a relay has no sessions of its own"),
	FIPS("node.buffers.*", SL_KEY_LEFT_OUT, "see dataplane.pools and dataplane.rings"),
	FIPS("tun.enabled", SL_KEY_OFF, "a TUN interface"),
	FIPS("tun.*", SL_KEY_LEFT_OUT, "a TUN interface"),
	FIPS("dns.enabled", SL_KEY_OFF, "the DNS responder"),
	FIPS("dns.*", SL_KEY_LEFT_OUT, "the DNS responder"),
	FIPS("gateway.enabled", SL_KEY_OFF, "the gateway"),
	FIPS("gateway.*", SL_KEY_LEFT_OUT, "the gateway"),
	FIPS("transports.tcp", SL_KEY_REFUSED, "the TCP transport"),
	FIPS("transports.tor", SL_KEY_REFUSED, "the Tor transport"),
	FIPS("transports.nym", SL_KEY_REFUSED, "the Nym transport"),
	FIPS("transports.ble", SL_KEY_REFUSED, "the Bluetooth transport"),

	LIST("transports.udp", SL_KEY_INSTANCES, ROOT, sl_conf_udp, SL_SCOPE_UDP, CO(udp), CO(udp_count),
		SL_CONF_TRANSPORTS_MAX, "UDP: one block, or a mapping of named ones. Absent: no UDP."),
	CUSTOM("transports.udp.bind_addr", SL_SCOPE_UDP, 0, S(sl_conf_udp, bind), parse_bind, format_endpoint,
		"0.0.0.0:2121", "Address and port listened on; 0.0.0.0 = all IPv4 addresses of all ports, [::] = all of both families."),
	UINT("transports.udp.mtu", SL_SCOPE_UDP, S(sl_conf_udp, mtu), 576, 9200, "1280", "bytes",
		"Largest FMP packet. FilterAnnounce needs 1071."),
	BOOL("transports.udp.outbound_only", SL_SCOPE_UDP, S(sl_conf_udp, outbound_only), "false",
		"Port chosen at start, strangers' handshakes refused."),
	BOOL("transports.udp.accept_connections", SL_SCOPE_UDP, S(sl_conf_udp, accept_connections), "true",
		"Answer handshakes of nodes we did not dial."),
	FIPS_IN("transports.udp.recv_buf_size", SL_KEY_LEFT_OUT, SL_SCOPE_UDP, "see rx_descriptors of the port"),
	FIPS_IN("transports.udp.send_buf_size", SL_KEY_LEFT_OUT, SL_SCOPE_UDP, "see tx_descriptors of the port"),
	BOOL("transports.udp.advertise_on_nostr", SL_SCOPE_UDP, S(sl_conf_udp, advertise_on_nostr), "false",
		"Name this transport in our advert."),
	BOOL("transports.udp.public", SL_SCOPE_UDP, S(sl_conf_udp, public), "false",
		"It can be reached from outside: the advert names its address, else that it is behind a NAT."),
	CUSTOM("transports.udp.external_addr", SL_SCOPE_UDP, SL_KEY_UNSET, S(sl_conf_udp, external), parse_external,
		format_endpoint, NULL, "That address, with a port where it is not the bound one. Unset: bind_addr, or the ports' own."),

	LIST("transports.ethernet", SL_KEY_INSTANCES, ROOT, sl_conf_ethernet, SL_SCOPE_ETHERNET, CO(ethernet),
		CO(ethernet_count), SL_CONF_TRANSPORTS_MAX, "Raw Ethernet: one block, or a mapping of named ones."),
	TEXT("transports.ethernet.interface", SL_SCOPE_ETHERNET, SL_KEY_REQUIRED, S(sl_conf_ethernet, interface), NULL,
		"Name of the dataplane port."),
	UINT("transports.ethernet.ethertype", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, ethertype), 0x600, 0xffff, "8481", "",
		"EtherType of its frames; 8481 = 0x2121."),
	UINT("transports.ethernet.mtu", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, mtu), 0, 9200, "0", "bytes",
		"Largest FMP packet; 0 = the port's MTU less 3."),
	BOOL("transports.ethernet.listen", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, listen), "true", "Hear beacons."),
	BOOL("transports.ethernet.announce", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, announce), "false", "Send beacons."),
	BOOL("transports.ethernet.auto_connect", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, auto_connect), "false",
		"Dial nodes whose beacons are heard."),
	BOOL("transports.ethernet.accept_connections", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, accept_connections), "false",
		"Answer handshakes of nodes we did not dial."),
	UINT("transports.ethernet.beacon_interval_secs", SL_SCOPE_ETHERNET, S(sl_conf_ethernet, beacon_interval_secs), 1,
		86400, "30", "s", "Time between beacons; less than 10 counts as 10."),
	FIPS_IN("transports.ethernet.discovery", SL_KEY_REFUSED, SL_SCOPE_ETHERNET, "the old name of listen"),
	FIPS_IN("transports.ethernet.recv_buf_size", SL_KEY_LEFT_OUT, SL_SCOPE_ETHERNET, "see rx_descriptors of the port"),
	FIPS_IN("transports.ethernet.send_buf_size", SL_KEY_LEFT_OUT, SL_SCOPE_ETHERNET, "see tx_descriptors of the port"),

	LIST("peers", SL_KEY_LIST, ROOT, sl_conf_peer, SL_SCOPE_PEER, CO(peers), CO(peer_count), SL_CONF_PEERS_MAX,
		"Nodes we know."),
	CUSTOM("peers[].npub", SL_SCOPE_PEER, SL_KEY_REQUIRED, S(sl_conf_peer, xonly), parse_npub, format_npub, NULL,
		"The peer's public key."),
	TEXT("peers[].alias", SL_SCOPE_PEER, SL_KEY_UNSET, S(sl_conf_peer, alias), NULL, "Name shown for it."),
	LIST("peers[].addresses", SL_KEY_LIST, SL_SCOPE_PEER, sl_conf_address, SL_SCOPE_ADDRESS,
		offsetof(struct sl_conf_peer, addresses), offsetof(struct sl_conf_peer, address_count), 8,
		"Where it can be dialled; without any it can only dial us."),
	TEXT("peers[].addresses[].transport", SL_SCOPE_ADDRESS, SL_KEY_REQUIRED, S(sl_conf_address, transport), NULL,
		"udp, udp/<instance> or ethernet."),
	TEXT("peers[].addresses[].addr", SL_SCOPE_ADDRESS, SL_KEY_REQUIRED, S(sl_conf_address, addr), NULL,
		"udp: host:port, names are resolved; ethernet: <port name>/aa:bb:cc:dd:ee:ff."),
	UINT("peers[].addresses[].priority", SL_SCOPE_ADDRESS, S(sl_conf_address, priority), 0, 255, "100", "",
		"Lower is tried first."),
	ENUM("peers[].connect_policy", SL_SCOPE_PEER, S(sl_conf_peer, connect_policy), policies, "auto_connect",
		"Only auto_connect dials."),
	BOOL("peers[].auto_reconnect", SL_SCOPE_PEER, S(sl_conf_peer, auto_reconnect), "true",
		"Redial after an established link died."),
	BOOL("peers[].first_flight", SL_SCOPE_PEER, S(sl_conf_peer, first_flight), "false",
		"Ours: repeat the first packets of a dial to this peer early, so a lost one does not cost a second."),
	BOOL("peers[].via_nostr", SL_SCOPE_PEER, S(sl_conf_peer, via_nostr), "false",
		"Dial what its advert says too; no addresses are needed then."),

	LIST("dataplane.ports", SL_KEY_LIST, ROOT, sl_conf_port, SL_SCOPE_PORT, CO(dataplane.ports),
		CO(dataplane.port_count), SL_PORTS_MAX, "The NIC ports and virtual devices we drive."),
	CUSTOM("dataplane.ports[].name", SL_SCOPE_PORT, SL_KEY_REQUIRED, S(sl_conf_port, name), parse_name, format_text, NULL,
		"Our name for it."),
	TEXT("dataplane.ports[].device", SL_SCOPE_PORT, SL_KEY_REQUIRED, S(sl_conf_port, device), NULL,
		"PCI address, or a virtual device with its arguments (net_af_packet0,iface=eth0)."),
	LIST("dataplane.ports[].addresses", SL_KEY_LIST, SL_SCOPE_PORT, sl_conf_ifaddr, SL_SCOPE_IFADDR,
		offsetof(struct sl_conf_port, addresses), offsetof(struct sl_conf_port, address_count), SL_PORT_ADDRS_MAX,
		"IP addresses of the port itself, with prefix length."),
	CUSTOM("dataplane.ports[].addresses[]", SL_SCOPE_IFADDR, 0, S(sl_conf_ifaddr, ip), parse_ifaddr, format_ifaddr, NULL, ""),
	LIST("dataplane.ports[].routes", SL_KEY_LIST, SL_SCOPE_PORT, sl_conf_route, SL_SCOPE_ROUTE,
		offsetof(struct sl_conf_port, routes), offsetof(struct sl_conf_port, route_count), SL_ROUTES_MAX,
		"Destinations behind gateways on this port."),
	CUSTOM("dataplane.ports[].routes[].to", SL_SCOPE_ROUTE, SL_KEY_REQUIRED, S(sl_conf_route, to), parse_prefix,
		format_ifaddr, NULL, "Prefix; default = 0.0.0.0/0, default6 = ::/0."),
	CUSTOM("dataplane.ports[].routes[].via", SL_SCOPE_ROUTE, SL_KEY_REQUIRED, S(sl_conf_route, via), parse_gateway,
		format_gateway, NULL, "Gateway; must be on one of the port's own prefixes, or fe80::."),
	UINT("dataplane.ports[].mtu", SL_SCOPE_PORT, S(sl_conf_port, mtu), 0, 9600, "0", "bytes",
		"IP MTU of the link; 0 = the device's."),
	UINT("dataplane.ports[].vlan", SL_SCOPE_PORT, S(sl_conf_port, vlan), 0, 4094, "0", "",
		"VLAN id of our frames; 0 = untagged."),
	UINT("dataplane.ports[].rx_descriptors", SL_SCOPE_PORT, S(sl_conf_port, rx_descriptors), 0, 32768, "0", "",
		"Per receive queue; 0 = the profile's, else 1024."),
	UINT("dataplane.ports[].tx_descriptors", SL_SCOPE_PORT, S(sl_conf_port, tx_descriptors), 0, 32768, "0", "",
		"Per transmit queue; 0 = the profile's, else 1024."),
	CUSTOM("dataplane.ports[].profile", SL_SCOPE_PORT, 0, S(sl_conf_port, profile), parse_name, format_text, "auto",
		"Driver profile (drivers-config): auto = by the device, none, or a name."),
	BOOL("dataplane.ports[].ignore_rx_checksum", SL_SCOPE_PORT, S(sl_conf_port, ignore_rx_checksum), "false",
		"Take UDP frames without looking at their checksum: for veth and the like, which hand them over unfilled."),
	LIST("dataplane.ports[].workers", SL_KEY_LIST, SL_SCOPE_PORT, sl_conf_cpu, SL_SCOPE_CPU,
		offsetof(struct sl_conf_port, worker_cpus), offsetof(struct sl_conf_port, worker_cpu_count), 32,
		"CPUs of the workers that receive from it, of those in dataplane.lcores.workers; empty = those on the device's NUMA "
		"node, else all."),
	UINT("dataplane.ports[].workers[]", SL_SCOPE_CPU, S(sl_conf_cpu, cpu), 0, 1023, NULL, "", ""),
	CUSTOM("dataplane.lcores.control", ROOT, 0, C(dataplane.control_cpu), parse_cpu_or_auto, format_cpu_or_auto, "auto",
		"CPU of the control thread; auto = the first we may use, on the first port's NUMA node if it has one."),
	LIST("dataplane.lcores.workers", SL_KEY_LIST, ROOT, sl_conf_cpu, SL_SCOPE_CPU, CO(dataplane.worker_cpus),
		CO(dataplane.worker_cpu_count), 32,
		"CPUs of the workers, one each; empty = one worker on the second CPU we may use (of that node), or the only one."),
	UINT("dataplane.lcores.workers[]", SL_SCOPE_CPU, S(sl_conf_cpu, cpu), 0, 1023, NULL, "", ""),
	LIST("dataplane.eal", SL_KEY_LIST, ROOT, sl_conf_text, SL_SCOPE_ARG, CO(dataplane.eal), CO(dataplane.eal_count), 64,
		"More arguments for EAL, as they are."),
	TEXT("dataplane.eal[]", SL_SCOPE_ARG, SL_KEY_REQUIRED, S(sl_conf_text, text), NULL, ""),
	ENUM("dataplane.memory.huge_pages", ROOT, C(dataplane.huge_pages), huge_choices, "auto",
		"auto = when enough are reserved; no = ordinary pages."),
	UINT("dataplane.memory.size_mb", ROOT, C(dataplane.memory_mb), 0, 1048576, "0", "MiB",
		"Memory for EAL; 0 = what the pools need."),
	UINT("dataplane.pools.mbufs", ROOT, C(dataplane.mbufs), 1024, 4194304, "16384", "buffers", "Frame buffers per pool."),
	UINT("dataplane.pools.data_size", ROOT, C(dataplane.mbuf_data_size), 0, 16384, "0", "bytes",
		"Data room of a buffer; 0 = for the largest MTU."),
	CUSTOM("dataplane.aead", ROOT, 0, C(dataplane.aead), parse_aead, format_text, "auto",
		"ChaCha20-Poly1305 engine by its name (sluicectl show crypto); auto = the best usable."),
	UINT("dataplane.burst", ROOT, C(dataplane.burst), 1, 64, "32", "frames", "Frames a poll."),
	UINT("dataplane.hop_cache", ROOT, C(dataplane.hop_cache), 64, 16777216, "65536", "entries",
		"Destinations a worker remembers the next hop of."),
	UINT("dataplane.rings.to_control", ROOT, C(dataplane.ring_size), 64, 65536, "4096", "entries",
		"Room between a worker and control; more is dropped and counted."),
	UINT("dataplane.sessions", ROOT, C(dataplane.sessions), 0, 1048576, "0", "sessions",
		"Session table; 0 = four a peer."),
	UINT("dataplane.idle_sleep_us", ROOT, C(dataplane.idle_sleep_us), 0, 1000, "0", "us",
		"Sleep of a worker after each empty poll, once 2,000 in a row were empty: for shared CPUs, costs latency. 0 = never."),
	BOOL("dataplane.measure_cycles", ROOT, C(dataplane.measure_cycles), "true", "Count cycles: a TSC read a poll and queue, three a burst."),
	TEXT("dataplane.profiles_dir", ROOT, 0, C(dataplane.profiles_dir), "/usr/share/sluice/drivers-config",
		"Where driver profiles are."),
	BOOL("dataplane.first_flight", ROOT, C(dataplane.first_flight), "false", "peers[].first_flight for every dial."),
	TEXT("dataplane.access_dir", ROOT, 0, C(dataplane.access_dir), "/etc/fips",
		"Folder of the access lists peers.allow and peers.deny and of hosts, as FIPS has them; empty = no lists."),
	TEXT("dataplane.nostr_ca_file", ROOT, SL_KEY_UNSET, C(dataplane.nostr_ca_file), NULL,
		"Certificates (PEM) that relays' TLS is checked against, instead of the system's."),
};
/* clang-format on */
const unsigned sl_key_count = sizeof(sl_keys) / sizeof(sl_keys[0]);
_Static_assert(sizeof(sl_keys) / sizeof(sl_keys[0]) <= SL_KEYS_MAX,
	"table larger than its users' scratch");
