/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration: each row is a text and either what is wrong with it, where, or what it comes
 * to. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "config.h"
#include "sl_test.h"

#define NPUB_B "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le"
#define NPUB_A "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m"
#define NSEC_A "nsec1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7rusqpqcc2y"
#define PORT                                                                                       \
	"dataplane:\n  ports:\n    - {name: p0, device: net_null0, addresses: [192.0.2.1/24, "     \
	"\"2001:db8::1/64\"]}\n"

/* Exact-size copy, so that a read behind the end is seen. */
static int
parse(struct sl_config **c, const char *text, size_t len, struct sl_conf_error *error)
{
	char *copy = malloc(len ? len : 1);
	int rc;

	SL_EXPECT_EQ(sl_crypto_init(), 0);
	memcpy(copy, text, len);
	*c = sl_config_create();
	rc = sl_config_parse(*c, copy, len, error);
	free(copy);
	return rc;
}

static char *
print(const struct sl_config *c)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	sl_config_print(f, c);
	fclose(f);
	return text;
}

struct bad {
	const char *text;
	uint32_t line, column;
	const char *error; /* part of the message */
};

static void
expect_bad(const struct bad *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct sl_conf_error e;
		struct sl_config *c;
		int rc = parse(&c, rows[i].text, strlen(rows[i].text), &e);

		SL_EXPECT_MSG(rc == -22, "row %u is accepted: %s", i, rows[i].text);
		if (rc) {
			SL_EXPECT_MSG(strstr(e.text, rows[i].error) != NULL,
				"row %u: '%s' is not in '%s'", i, rows[i].error, e.text);
			/* Line 0: libfyaml's own finding, whose place differs by version. */
			SL_EXPECT_MSG((!rows[i].line && e.at.line) ||
					      (e.at.line == rows[i].line &&
						      e.at.column == rows[i].column),
				"row %u at %u:%u, expected %u:%u: %s", i, e.at.line, e.at.column,
				rows[i].line, rows[i].column, e.text);
			SL_EXPECT(!strchr(e.text, '\n'));
		}
		sl_config_destroy(c);
	}
}
#define EXPECT_BAD(rows) expect_bad(rows, sizeof(rows) / sizeof((rows)[0]))

SL_TEST(config, yaml_that_is_refused)
{
	static const struct bad rows[] = {
		{"a: [1, 2", 0, 0, "not YAML"},
		{"a: b: c", 0, 0, "not YAML"},
		{"\tnode: {}", 0, 0, "not YAML"},
		{"node:\n  identity: {}\n bad", 0, 0, "not YAML"},
		{"node: \xff", 1, 7, "not UTF-8"},
		{"# \xc0\xaf\n", 1, 3, "not UTF-8"},
		{"# \xed\xa0\x80\n", 1, 3, "not UTF-8"},
		{"node: {}\n\x01", 2, 1, "control character"},
		{"node: {}\nnode: {}\n", 2, 1, "stands here twice, first in line 1"},
		{"node:\n  limits:\n    max_peers: 1\n    max_peers: 2\n", 4, 5,
			"stands here twice"},
		{"node: &a {}\npeers: []\n", 1, 8, "anchors are not supported"},
		{"x: &a [a]\ny: *a\n", 1, 5, "anchors are not supported"},
		{"y: *a\n", 1, 5, "aliases are not supported"},
		{"node: !!map {}\n", 1, 7, "tags are not supported"},
		{"<<: {}\n", 1, 1, "merge keys are not supported"},
		{"? {a: b}\n: c\n", 1, 3, "a key must be plain text"},
		{"[[[[[[[[[[[[[[1]]]]]]]]]]]]]]", 1, 13, "nested more than 12 deep"},
		{"node: {}\n---\nnode: {}\n", 2, 1, "more than one document"},
		{"- node\n", 1, 1, "a list where a mapping is expected"},
		{"node\n", 1, 1, "a single value where a mapping is expected"},
		{"'': 1\n", 1, 1, "empty key"},
	};
	EXPECT_BAD(rows);
}

SL_TEST(config, keys_and_values_that_are_refused)
{
	static const struct bad rows[] = {
		{"nodes: {}", 1, 1, "unknown key 'nodes' (is 'node' meant?)"},
		{"node:\n  limts: {}", 2, 3, "unknown key 'node.limts' (is 'limits' meant?)"},
		{"node: {xyzzy: 1}", 1, 8, "unknown key 'node.xyzzy'"},
		{"node.limits.max_peers: 4", 1, 1, "unknown key"},
		{"node: 3", 1, 7, "node: a single value where a mapping is expected"},
		{"node: {limits: {max_peers: abc}}", 1, 28, "'abc' is not a whole number"},
		{"node: {limits: {max_peers: -1}}", 1, 28, "is not a whole number"},
		{"node: {limits: {max_peers: 1.5}}", 1, 28, "is not a whole number"},
		{"node: {limits: {max_peers: 16385}}", 1, 28, "is out of range 0 .. 16384"},
		{"node: {limits: {max_peers: 99999999999999999999}}", 1, 28,
			"is not a whole number"},
		{"node: {limits: {max_peers: \"3\"}}", 1, 28,
			"quoted text where a whole number is expected"},
		{"node: {limits: {max_peers: [3]}}", 1, 28,
			"a list where a whole number is expected"},
		{"node: {limits: {max_peers: }}", 1, 17,
			"nothing where a whole number is expected"},
		{"node: {rate_limit: {handshake_rate: inf}}", 1, 37, "is not a number"},
		{"node: {rate_limit: {handshake_rate: 0}}", 1, 37, "is out of range"},
		{"node: {rate_limit: {handshake_rate: 1e999}}", 1, 37, "is not a number"},
		{"node: {rekey: {after_secs: 3}}", 1, 28, "is out of range 4"},
		{"node: {rekey: {enabled: yes}}", 1, 25, "is neither true nor false"},
		{"node: {mmp: {mode: heavy}}", 1, 20, "is none of full, lightweight, minimal"},
		{"node: {log_level: verbose}", 1, 19, "is none of trace, debug, info, warn, error"},
		{"node: {identity: {nsec: nsec1xyz}}", 1, 25,
			"node.identity.nsec: is neither an nsec nor 64 hex digits"},
		{"node: {session: {default_ttl: 0}}", 1, 31, "is out of range 1 .. 255"},
		{"peers: 3", 1, 8, "peers: a single value where a list is expected"},
		{"peers:\n  - {alias: x}", 2, 5, "peers[]: 'npub' is missing"},
		{"peers: [3]", 1, 9, "peers[]: a single value where a mapping is expected"},
		{"peers: [{npub: npub1q}]", 1, 16, "is not an npub"},
		{"peers: [{npub: " NSEC_A "}]", 1, 16, "is a secret key"},
		{"peers: [{npub: " NPUB_A ", connect_policy: manual},\n {npub: " NPUB_A
		 ", connect_policy: manual}]",
			2, 2, "already stands in line 1"},
		{"peers: [{npub: " NPUB_A "}]", 1, 9, "no addresses to dial"},
		{"peers: [{npub: " NPUB_A ", addresses: [{transport: udp}]}]", 1, 93,
			"'addr' is missing"},
		{"dataplane: {ports: [{name: a b, device: x}]}", 1, 28, "is not a name"},
		{"dataplane: {ports: [{name: a}]}", 1, 21, "'device' is missing"},
		{"dataplane: {ports: [{name: a, device: x},\n {name: a, device: y}]}", 2, 2,
			"a second port named 'a'"},
		{"dataplane: {ports: [{name: a, device: x},\n {name: b, device: x}]}", 2, 2,
			"a second port on device 'x'"},
		{"dataplane: {ports: [{name: a, device: \"net_x0,iface=a\"},\n {name: b, device: "
		 "\"net_x0,iface=b\"}]}",
			2, 2, "a second port on device"},
		{"dataplane: {lcores: {workers: [2, 3]}, ports: [{name: a, device: x,\n workers: [3, 4]}]}", 2, 15,
			"no worker has CPU 4"},
		{"dataplane: {ports: [{name: a, device: \"0000:01:00.0\"},\n {name: b, device: "
		 "\"01:00.0,arg=1\"}]}",
			2, 2, "a second port on device"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [192.0.2.1/24,\n 192.0.2.1/30]}]}",
			2, 2, "already stands in line 1"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [192.0.2.1/24], routes:\n "
		 "[{to: default, via: 192.0.2.1}]}]}",
			2, 3, "via is our own address"},
		{"dataplane: {ports: [{name: a, device: x, addresses:\n [\"::1/128\"]}]}", 2, 3,
			"not a unicast address"},
		{"dataplane: {ports: [{name: a, device: x, addresses:\n [0.1.2.3/8]}]}", 2, 3,
			"not a unicast address"},
		{"transports: {ethernet:\n {interface: a, ethertype: 0x86dd}}\n"
		 "dataplane: {ports: [{name: a, device: x}]}",
			2, 2, "is IP's, ARP's"},
		{"node: {cache: {coord_size: 8388609}}", 1, 28, "out of range"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1]}]}", 1, 54,
			"with a prefix length"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1/33]}]}", 1, 54,
			"with a prefix length"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [224.0.0.1/8]}]}", 1, 54,
			"is not a unicast address"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.0/24]}]}", 1, 54,
			"is not a unicast address"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.255/24]}]}", 1, 54,
			"is not a unicast address"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1/24]},\n {name: b, "
		 "device: y, addresses: [10.0.0.1/8]}]}",
			2, 35, "this address already stands in line 1"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1/16]},\n {name: b, "
		 "device: y, addresses: [10.0.3.1/24]}]}",
			2, 35, "the prefix overlaps that of another port in line 1"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [\"2001:db8::1/64\"]},\n {name: b, "
		 "device: y, addresses: [\"2001:db8::9/60\"]}]}",
			2, 35, "the prefix overlaps that of another port in line 1"},
		{"dataplane: {ports: [{name: a, device: \"net_af_packet0,iface=e0\"},\n {name: b, "
		 "device: \"net_af_packet1,iface=e0,qpairs=2\"}]}",
			2, 2, "a second port on device"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1/24], routes: [{to: "
		 "default, via: 10.0.0.1}]}]}",
			1, 77, "via is our own address"},
		{"node: {cache: {coord_size: 8388609}}", 1, 28, "is out of range 16 .. 8388608"},
		{"dataplane: {ports: [{name: a, device: x, vlan: 4095}]}", 1, 48,
			"is out of range 0 .. 4094"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1/24], routes: [{to: "
		 "default, via: 10.0.1.1}]}]}",
			1, 77, "via is on none of the prefixes"},
		{"dataplane: {ports: [{name: a, device: x, addresses: [10.0.0.1/24], routes: [{to: "
		 "10.1.0.1/16, via: 10.0.0.2}]}]}",
			1, 82, "has bits set behind its prefix length"},
		{"dataplane: {lcores: {control: x}}", 1, 31, "is neither auto nor a CPU"},
		{"dataplane: {lcores: {workers: [1, 1]}}", 1, 35, "CPU 1 stands there twice"},
		{"dataplane: {aead: aes}", 1, 19, "is none of auto, "},
		{"dataplane: {burst: 65}", 1, 20, "is out of range 1 .. 64"},
		{"transports: {udp: {bind_addr: \"example.org:2121\"}}", 1, 31,
			"names cannot be bound"},
		{"transports: {udp: {bind_addr: 1.2.3.4.5:1}}", 1, 31, "has no valid IPv4 address"},
		{"transports: {udp: {bind_addr: \"1.2.3.4\"}}", 1, 31, "is not host:port"},
		{"transports: {udp: {bind_addr: \"0.0.0.0:70000\"}}", 1, 31, "between 0 and 65535"},
		{"transports: {udp: {a: {bind_adr: x}}}", 1, 24,
			"unknown key 'transports.udp.bind_adr' (is 'bind_addr' meant?)"},
		{PORT "transports:\n  udp:\n    bind_addr: 192.0.2.7:2121\n", 6, 5,
			"is no address of a dataplane port"},
		{"transports: {udp: {a: {}, b: {}}}", 1, 30,
			"'a' and 'b' listen on the same address and port"},
		{"transports: {ethernet: {}}", 1, 24, "'interface' is missing"},
		{PORT "transports: {ethernet: {interface: p1}}", 4, 24,
			"no dataplane port is named 'p1'"},
		{PORT "transports: {udp: {}}\npeers: [{npub: " NPUB_A
		      ", addresses: [{transport: udp/x, addr: \"1.2.3.4:5\"}]}]",
			5, 93, "no UDP instance is named 'x'"},
		{PORT "transports: {udp: {}}\npeers: [{npub: " NPUB_A
		      ", addresses: [{transport: udp, addr: \"1.2.3.4\"}]}]",
			5, 93, "is not host:port"},
		{PORT "peers: [{npub: " NPUB_A
		      ", addresses: [{transport: udp, addr: \"1.2.3.4:5\"}]}]",
			4, 93, "transports.udp is not configured"},
		{PORT "transports: {ethernet: {interface: p0}}\npeers: [{npub: " NPUB_A
		      ", addresses: [{transport: ethernet, addr: p0/02:00:00:00:00}]}]",
			5, 93, "is not <port name>/aa:bb:cc:dd:ee:ff"},
		{PORT "transports: {ethernet: {interface: p0}}\npeers: [{npub: " NPUB_A
		      ", addresses: [{transport: ethernet, addr: \"p0/ff:ff:ff:ff:ff:ff\"}]}]",
			5, 93, "is a group address"},
	};
	EXPECT_BAD(rows);
}

#define NOSTR "node: {rendezvous: {nostr: {enabled: true, "

SL_TEST(config, nostr)
{
	static const struct bad rows[] = {
		{"transports: {udp: {advertise_on_nostr: true}}", 1, 19, "needs node.rendezvous.nostr.enabled"},
		{"peers: [{npub: " NPUB_A ", via_nostr: true}]", 1, 9, "needs node.rendezvous.nostr.enabled"},
#ifdef SL_HAVE_NOSTR
		{NOSTR "policy: closed}}}", 1, 52, "is none of disabled, configured_only, open"},
		{NOSTR "advert_relays: [\"http://a.example\"]}}}", 1, 60, "is not a relay"},
		{NOSTR "advert_relays: [\"wss://a.example\", \"WSS://A.example:443/\"]}}}", 1, 79, "stands there twice"},
		{NOSTR "stun_servers: [\"stun:a.example\"]}}}", 1, 59, "is not host:port"},
		{NOSTR "stun_servers: [\"a.example:0\"]}}}", 1, 59, "has port 0"},
		{NOSTR "advert_relays: [], dm_relays: []}}}", 0, 0, "no relays"},
		{NOSTR "replay_window_secs: 240}}}", 0, 0, "must be above signal_ttl_secs + 120"},
		{NOSTR "advertize: true}}}", 1, 44, "is 'advertise' meant?"},
		{NOSTR "stun_servers: []}}}\ntransports: {udp: {advertise_on_nostr: true}}", 2, 19, "needs node.rendezvous.nostr.dm_relays"},
		{NOSTR "}}}\ntransports: {udp: {external_addr: \"a.example:1\"}}", 2, 35, "names are not advertised"},
#endif
		{"node: {rendezvous: {lan: {enabled: true, service_type: fips.local}}}", 0, 0, "is no service"},
		{"node: {rendezvous: {}, discovery: {nostr: {}}}", 1, 36, "stands under its other name, node.rendezvous"},
		{"node: {discovery: {lan: {enabled: false}}, rendezvous: {nostr: {}}}", 1, 44,
			"stands under its other name, node.discovery"},
		{"node: {discovery: {ttl: 3}, lookup: {ttl: 4}}", 1, 38, "stands under its other name, node.discovery.ttl"},
		{"node: {lookup: {ttl: 4}, discovery: {ttl: 3}}", 1, 38, "stands under its other name"},
		{"node: {discovery: {tll: 3}}", 1, 20, "is 'ttl' meant?"},
	};
	struct sl_conf_error e;
	struct sl_config *c;
	static const char old[] = "node: {discovery: {ttl: 3, nostr: {advert_ttl_secs: 600, app: mine}}}";
	static const char external[] = "transports: {udp: {external_addr: \"192.0.2.7\"}}";

	EXPECT_BAD(rows);
	memset(&e, 0, sizeof(e));
	c = sl_config_create();
	SL_EXPECT_EQ(sl_config_parse(c, old, strlen(old), &e), 0);
	SL_EXPECT_STR(e.text, "");
	SL_EXPECT_EQ(c->lookup.ttl, 3);
	SL_EXPECT_EQ(c->nostr.advert_ttl_secs, 600);
	SL_EXPECT_STR(c->nostr.app, "mine");
	SL_EXPECT(!c->nostr.enabled);
	sl_config_destroy(c);
	c = sl_config_create();
	SL_EXPECT_EQ(sl_config_parse(c, external, strlen(external), &e), 0);
	SL_EXPECT_EQ(c->udp[0].external.family, 4);
	SL_EXPECT_EQ(c->udp[0].external.port, 0);
	SL_EXPECT_STR(c->udp[0].external.text, "192.0.2.7");
	sl_config_destroy(c);
#ifdef SL_HAVE_NOSTR
	c = sl_config_create();
	SL_EXPECT_EQ(sl_config_parse(c, NOSTR "}}}", strlen(NOSTR "}}}"), &e), 0);
	SL_EXPECT_EQ(c->nostr.advert_relay_count, 3);
	SL_EXPECT_EQ(c->nostr.stun_server_count, 3);
	SL_EXPECT_STR(c->nostr.dm_relays[1].text, "wss://nos.lol");
	sl_config_destroy(c);
#endif
}

SL_TEST(config, what_fips_has_and_we_lack)
{
	static const struct bad rows[] = {
		{"tun: {enabled: true}", 1, 16,
			"tun.enabled: known to FIPS, not supported by Sluice"},
		{"dns:\n  enabled: true", 2, 12, "known to FIPS, not supported by Sluice"},
		{"gateway: {enabled: true}", 1, 20, "known to FIPS, not supported by Sluice"},
		{"node: {leaf_only: true}", 1, 19, "known to FIPS, not supported by Sluice"},
		{"transports: {tcp: {}}", 1, 14,
			"known to FIPS, not supported by Sluice: the TCP transport"},
		{"tun: {enabled: 1}", 1, 16, "where true or false is expected"},
		{"peers: [{npub: " NPUB_A ", addresses: [{transport: tcp, addr: \"a:1\"}]}]", 1, 9,
			"none of its addresses is on a transport of Sluice"},
		{"peers: [{npub: " NPUB_A ", addresses: [{transport: foo, addr: \"a:1\"}]}]", 1, 93,
			"'foo' is neither udp"},
	};
	static const char fine[] =
		"tun: {enabled: false, name: fips0}\ndns: {enabled: false}\n"
		"node: {tick_interval_secs: 1, session: {idle_timeout_secs: 90}}\n"
		"transports: {udp: {recv_buf_size: 1}}\n";
	struct sl_conf_error e;
	struct sl_config *c;

	EXPECT_BAD(rows);
	SL_EXPECT_EQ(parse(&c, fine, strlen(fine), &e), 0);
	SL_EXPECT_EQ(c->warning_count, 4);
	SL_EXPECT(strstr(c->warnings[0].text, "tun.name: known to FIPS, without effect") != NULL);
	SL_EXPECT_EQ(c->warnings[1].at.line, 3);
	sl_config_destroy(c);
}

SL_TEST(config, defaults_are_the_references)
{
	struct sl_conf_error e;
	struct sl_config *c;

	SL_EXPECT_EQ(parse(&c, "", 0, &e), 0);
	SL_EXPECT_EQ(c->limits.max_peers, 128);
	SL_EXPECT_EQ(c->limits.max_pending_inbound, 1000);
	SL_EXPECT_EQ(c->rate.handshake_burst, 100);
	SL_EXPECT(c->rate.handshake_rate == 10.0);
	SL_EXPECT_EQ(c->rate.handshake_timeout_secs, 30);
	SL_EXPECT_EQ(c->rate.resend_interval_ms, 1000);
	SL_EXPECT(c->rate.resend_backoff == 2.0);
	SL_EXPECT_EQ(c->rate.handshake_max_resends, 5);
	SL_EXPECT_EQ(c->rate.established_burst, 0);
	SL_EXPECT_EQ(c->retry.max_retries, 5);
	SL_EXPECT_EQ(c->retry.base_interval_secs, 5);
	SL_EXPECT_EQ(c->retry.max_backoff_secs, 300);
	SL_EXPECT_EQ(c->heartbeat_interval_secs, 10);
	SL_EXPECT_EQ(c->link_dead_timeout_secs, 30);
	SL_EXPECT_EQ(c->rekey.after_secs, 120);
	SL_EXPECT_EQ(c->rekey.after_messages, 65536);
	SL_EXPECT(c->tree.parent_hysteresis == 0.2);
	SL_EXPECT_EQ(c->tree.hold_down_secs, 30);
	SL_EXPECT(c->bloom.max_inbound_fpr == 0.2);
	SL_EXPECT_EQ(c->cache.coord_size, 50000);
	SL_EXPECT_EQ(c->lookup.ttl, 64);
	SL_EXPECT(c->ecn.enabled && c->ecn.loss_threshold == 0.05 && c->ecn.etx_threshold == 3.0);
	SL_EXPECT_EQ(c->default_ttl, 64);
	SL_EXPECT_EQ(c->log_level, SL_CONF_LOG_INFO);
	SL_EXPECT(c->control.enabled);
	SL_EXPECT_EQ(c->udp_count, 0);
	SL_EXPECT_EQ(c->dataplane.control_cpu, -1);
	sl_config_destroy(c);
}

static const char whole[] =
	"node:\n"
	"  log_level: WARN\n"
	"  limits: {max_peers: 0x20}\n"
	"  rate_limit: {established_handshake_rate: 2.5}\n"
	"transports:\n"
	"  udp:\n"
	"    wan: {bind_addr: \"0.0.0.0:2121\", mtu: 1400}\n"
	"    six: {bind_addr: \"[2001:db8::1]:2122\"}\n"
	"  ethernet: {interface: p0, ethertype: 0x2121, announce: true, beacon_interval_secs: 2}\n"
	"peers:\n"
	"  - npub: \"" NPUB_B "\"\n"
	"    alias: b\n"
	"    auto_reconnect: false\n"
	"    addresses:\n"
	"      - {transport: udp/six, addr: \"[2001:db8::2]:2121\", priority: 20}\n"
	"      - {transport: tcp, addr: \"host:1\"}\n"
	"      - {transport: udp, addr: \"relay.example.org:99\", priority: 10}\n"
	"      - {transport: ethernet, addr: \"p0/02:00:00:00:00:05\", priority: 20}\n"
	"dataplane:\n"
	"  ports:\n"
	"    - name: p0\n"
	"      device: \"net_af_packet0,iface=eth0\"\n"
	"      addresses: [192.0.2.1/24, \"2001:db8::1/64\"]\n"
	"      routes: [{to: default, via: 192.0.2.254}, {to: \"2001:db8:1::/48\", via: "
	"\"fe80::1\"}]\n"
	"      vlan: 7\n"
	"  lcores: {control: 2, workers: [3, 0]}\n"
	"  eal: [\"--log-level=8\"]\n"
	"  aead: SODIUM\n";

SL_TEST(config, whole_file)
{
	struct sl_conf_error e;
	struct sl_config *c;
	int rc = parse(&c, whole, strlen(whole), &e);

	SL_EXPECT_MSG(!rc, "%u:%u: %s", e.at.line, e.at.column, e.text);
	if (!rc) {
		const struct sl_conf_peer *p = &c->peers[0];
		const struct sl_conf_port *port = &c->dataplane.ports[0];

		SL_EXPECT_EQ(c->log_level, SL_CONF_LOG_WARN);
		SL_EXPECT_EQ(c->limits.max_peers, 32);
		SL_EXPECT(c->rate.established_rate == 2.5);
		SL_EXPECT_EQ(c->udp_count, 2);
		SL_EXPECT_STR(c->udp[1].name, "six");
		SL_EXPECT_EQ(c->udp[0].mtu, 1400);
		SL_EXPECT_EQ(c->udp[1].bind.family, 6);
		SL_EXPECT_EQ(c->udp[1].bind.port, 2122);
		SL_EXPECT_EQ(c->ethernet[0].beacon_interval_secs, 10);
		SL_EXPECT_EQ(c->ethernet[0].ethertype, 0x2121);
		SL_EXPECT_EQ(p->address_count, 4);
		/* In order of priority, equal ones in the file's. */
		SL_EXPECT_STR(p->addresses[0].endpoint.host, "relay.example.org");
		SL_EXPECT_EQ(p->addresses[0].endpoint.family, 0);
		SL_EXPECT_EQ(p->addresses[0].instance, -1);
		SL_EXPECT_EQ(p->addresses[1].instance, 1);
		SL_EXPECT_EQ(p->addresses[1].endpoint.family, 6);
		SL_EXPECT_EQ(p->addresses[2].kind, SL_ADDR_ETH);
		SL_EXPECT_EQ(p->addresses[2].mac[5], 5);
		SL_EXPECT_EQ(p->addresses[3].kind, SL_ADDR_NONE);
		SL_EXPECT(!p->auto_reconnect);
		SL_EXPECT_EQ(port->address_count, 2);
		SL_EXPECT_EQ(port->addresses[0].ip.prefix_len, 24);
		SL_EXPECT_EQ(port->routes[0].to.prefix_len, 0);
		SL_EXPECT_EQ(port->routes[1].to.prefix_len, 48);
		SL_EXPECT_EQ(port->vlan, 7);
		SL_EXPECT_EQ(c->dataplane.control_cpu, 2);
		SL_EXPECT_EQ(c->dataplane.worker_cpus[1].cpu, 0);
		SL_EXPECT_STR(c->dataplane.eal[0].text, "--log-level=8");
		SL_EXPECT_STR(c->dataplane.aead, "sodium");
		SL_EXPECT_EQ(c->warning_count, 2);
	}
	sl_config_destroy(c);
}

SL_TEST(config, what_is_printed_parses_to_the_same)
{
	const char *const texts[] = {
		"", whole, "transports: {udp: {}}", "node: {identity: {persistent: true}}\n" PORT};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sl_config *a, *b;
		struct sl_conf_error e;
		char *first, *second;
		int rc;

		SL_EXPECT_EQ(parse(&a, texts[i], strlen(texts[i]), &e), 0);
		first = print(a);
		rc = parse(&b, first, strlen(first), &e);
		SL_EXPECT_MSG(!rc, "%u:%u: %s in\n%s", e.at.line, e.at.column, e.text, first);
		second = print(b);
		SL_EXPECT_STR(second, first);
		free(first);
		free(second);
		sl_config_destroy(a);
		sl_config_destroy(b);
	}
}

SL_TEST(config, the_secret_is_never_printed)
{
	static const char *const texts[] = {"node: {identity: {nsec: " NSEC_A "}}",
		"node: {identity: {nsec: "
		"\"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\"}}"};

	for (unsigned i = 0; i < 2; i++) {
		struct sl_conf_error e;
		struct sl_config *c;
		char *text;

		SL_EXPECT_EQ(parse(&c, texts[i], strlen(texts[i]), &e), 0);
		SL_EXPECT(c->identity.nsec[0] != 0);
		text = print(c);
		SL_EXPECT(!strstr(text, c->identity.nsec));
		SL_EXPECT(strstr(text, "# nsec: not shown") != NULL);
		free(text);
		sl_config_destroy(c);
	}
}

/* Every prefix of a good file either parses or is refused with a place inside it. */
SL_TEST(config, every_truncation)
{
	for (size_t len = 0; len < strlen(whole); len++) {
		struct sl_conf_error e;
		struct sl_config *c;

		if (parse(&c, whole, len, &e)) {
			SL_EXPECT(e.text[0] != 0);
			SL_EXPECT(e.at.line >= 1 && e.at.line <= 30);
		}
		sl_config_destroy(c);
	}
}

SL_TEST(config, bounds_on_size)
{
	size_t len = SL_YAML_BYTES_MAX + 1;
	char *big = malloc(len);
	struct sl_conf_error e;
	struct sl_config *c;

	memset(big, '#', len);
	SL_EXPECT_EQ(parse(&c, big, len, &e), -22);
	SL_EXPECT(strstr(e.text, "larger than") != NULL);
	sl_config_destroy(c);
	/* Many keys in one mapping. */
	len = 0;
	for (unsigned i = 0; i < 300; i++)
		len += (size_t)sprintf(big + len, "k%u: 1\n", i);
	SL_EXPECT_EQ(parse(&c, big, len, &e), -22);
	SL_EXPECT(strstr(e.text, "more than 256 keys") != NULL);
	sl_config_destroy(c);
	/* Many elements. */
	len = (size_t)sprintf(big, "dataplane: {ports: [");
	for (unsigned i = 0; i < 17; i++)
		len += (size_t)sprintf(big + len, "{name: p%u, device: d%u},", i, i);
	len += (size_t)sprintf(big + len, "]}");
	SL_EXPECT_EQ(parse(&c, big, len, &e), -22);
	SL_EXPECT(strstr(e.text, "more than 16 elements") != NULL);
	sl_config_destroy(c);
	free(big);
}

SL_TEST(config, files)
{
	struct sl_config *c = sl_config_create();
	struct sl_conf_error e;

	SL_EXPECT_EQ(sl_config_load(c, "/nonexistent/sluice.yaml", &e), -22);
	SL_EXPECT(strstr(e.text, "No such file") != NULL);
	SL_EXPECT_EQ(e.at.line, 0);
	SL_EXPECT_EQ(sl_config_load(c, "/", &e), -22);
	SL_EXPECT(strstr(e.text, "is a directory") != NULL);
	sl_config_destroy(c);
	c = sl_config_create();
	SL_EXPECT_MSG(!sl_config_load(c, SLUICE_SOURCE "/docs/examples/relay.yaml", &e),
		"%u:%u: %s", e.at.line, e.at.column, e.text);
	SL_EXPECT_EQ(c->dataplane.port_count, 1);
	sl_config_destroy(c);
}

/* A file with a secret key that everybody may read is taken, with a word about it. */
SL_TEST(config, readable_secret)
{
	char path[] = "/tmp/sluice-config-XXXXXX";
	int fd = mkstemp(path);
	static const char text[] = "node: {identity: {nsec: " NSEC_A "}}\n";

	SL_ASSERT(sl_crypto_init() == 0);
	SL_ASSERT(fd >= 0);
	SL_EXPECT_EQ(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	for (unsigned mode = 0600; mode <= 0604; mode += 4) {
		struct sl_config *c = sl_config_create();
		struct sl_conf_error e;

		SL_EXPECT_EQ(fchmod(fd, mode), 0);
		SL_EXPECT_EQ(sl_config_load(c, path, &e), 0);
		SL_EXPECT_EQ(c->warning_count, mode & 4 ? 1 : 0);
		sl_config_destroy(c);
	}
	close(fd);
	unlink(path);
}

/* The table in docs/configuration.md is the one that the program prints. */
SL_TEST(config, the_reference_is_current)
{
	char *want = NULL, *doc;
	size_t size;
	FILE *f = open_memstream(&want, &size);
	long len;

	sl_config_print_keys(f);
	fclose(f);
	f = fopen(SLUICE_SOURCE "/docs/configuration.md", "r");
	SL_ASSERT(f != NULL);
	fseek(f, 0, SEEK_END);
	len = ftell(f);
	rewind(f);
	doc = calloc(1, (size_t)len + 1);
	SL_EXPECT_EQ(fread(doc, 1, (size_t)len, f), len);
	fclose(f);
	SL_EXPECT_MSG(strstr(doc, want) != NULL,
		"docs/configuration.md does not hold the output of sluiced --keys");
	free(doc);
	free(want);
}
