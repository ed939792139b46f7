/* SPDX-License-Identifier: BSD-3-Clause */
/* Adverts against the reference's own examples (peering facts, sections 7 and 20), relay URLs, inbox lists. */
#include "sl_advert.h"
#include "sl_nostr_url.h"
#include "sl_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#define SECRET_A "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
#define NOW 1700000100u
#define TTL 3600u

#define TCP_CONTENT                                                                                                    \
	"{\"identifier\":\"fips-overlay-v1\",\"version\":1,\"endpoints\":[{\"transport\":\"tcp\",\"addr\":\"8.8.8.8:443\"}]}"
#define NAT_CONTENT                                                                                                    \
	"{\"identifier\":\"fips-overlay-v1\",\"version\":1,\"endpoints\":[{\"transport\":\"udp\",\"addr\":\"nat\"}],"      \
	"\"signalRelays\":[\"wss://relay.example\"],\"stunServers\":[\"stun:stun.example.org:3478\"]}"
#define ENDPOINTS(list) "{\"identifier\":\"fips-overlay-v1\",\"version\":1,\"endpoints\":[" list "]}"
#define EP(t, a) "{\"transport\":\"" t "\",\"addr\":\"" a "\"}"

static const char *const tag_d[] = {"d", "fips-overlay-v1"}, *const tag_protocol[] = {"protocol", "fips-overlay-v1"},
				 *const tag_expiration[] = {"expiration", "1700003600"};

static enum sl_advert_error
parse(struct sl_advert *a, const char *content)
{
	const struct sl_nostr_tag tags[] = {{tag_d, 2}, {tag_protocol, 2}, {tag_expiration, 2}};
	struct sl_nostr_event e = {.kind = SL_ADVERT_KIND, .created_at = 1700000000, .tags = tags, .tag_count = 3,
		.content = content, .content_len = strlen(content)};

	return sl_advert_parse(a, &e, SL_ADVERT_D, TTL, NOW);
}

SL_TEST(advert, the_references_examples_are_read_and_rebuilt)
{
	static const char *const contents[] = {TCP_CONTENT, NAT_CONTENT};

	for (unsigned i = 0; i < 2; i++) {
		struct sl_advert a;
		char *again;

		SL_EXPECT_EQ(parse(&a, contents[i]), SL_ADVERT_ERR_OK);
		again = sl_advert_build_content(&a);
		SL_EXPECT_STR(again, contents[i]);
		free(again);
		SL_EXPECT_EQ(a.has_nat, i == 1);
		SL_EXPECT_EQ(a.valid_until, 1700003600);
	}
}

SL_TEST(advert, the_published_event_is_rebuilt)
{
	struct sl_identity *id = sl_identity_from_text(SECRET_A);
	struct sl_nostr_event e;
	struct sl_advert a;
	uint8_t want[32];

	SL_EXPECT_EQ(parse(&a, TCP_CONTENT), SL_ADVERT_ERR_OK);
	SL_ASSERT(sl_advert_build(&e, &a, SL_ADVERT_D, 1700000000, TTL, id) == 0);
	sl_test_unhex(want, 32, "a05fa85034abad477eec938510b35e8514db0d4b7cf2f72141a1b614942a285a");
	SL_EXPECT_MEM(e.id, want, 32);
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_advert_parse(&a, &e, SL_ADVERT_D, TTL, NOW), SL_ADVERT_ERR_OK);
	SL_EXPECT_MEM(a.pubkey, sl_identity_xonly(id), 32);
	SL_EXPECT_EQ(sl_advert_parse(&a, &e, "other-mesh", TTL, NOW), SL_ADVERT_ERR_APP);
	SL_EXPECT_EQ(sl_advert_parse(&a, &e, SL_ADVERT_D, TTL, 1700003600), SL_ADVERT_ERR_EXPIRED);
	SL_EXPECT_EQ(sl_advert_parse(&a, &e, SL_ADVERT_D, 1000, 1700002000), SL_ADVERT_ERR_EXPIRED); /* twice the ttl */
	e.kind = 1;
	SL_EXPECT_EQ(sl_advert_parse(&a, &e, SL_ADVERT_D, TTL, NOW), SL_ADVERT_ERR_KIND);
	sl_nostr_event_fini(&e);
	SL_EXPECT_EQ(sl_advert_build_withdrawal(&e, want, 1700000001, id), 0);
	SL_EXPECT_EQ(e.kind, 5);
	SL_EXPECT_STR(sl_nostr_event_tag(&e, "e"), "a05fa85034abad477eec938510b35e8514db0d4b7cf2f72141a1b614942a285a");
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	sl_nostr_event_fini(&e);
	a.endpoint_count = 0;
	SL_EXPECT_EQ(sl_advert_build(&e, &a, SL_ADVERT_D, 1, TTL, id), -ENOENT);
	sl_identity_destroy(id);
}

SL_TEST(advert, faults_by_name)
{
	static const struct {
		const char *content;
		enum sl_advert_error want;
	} rows[] = {
		{"", SL_ADVERT_ERR_JSON},
		{"[]", SL_ADVERT_ERR_JSON},
		{"{}", SL_ADVERT_ERR_JSON},
		{"{\"identifier\":\"not-fips-overlay\",\"version\":1,\"endpoints\":[" EP("tcp", "8.8.8.8:1") "]}",
			SL_ADVERT_ERR_IDENTIFIER},
		{"{\"identifier\":\"fips-overlay-v1\",\"version\":2,\"endpoints\":[" EP("tcp", "8.8.8.8:1") "]}",
			SL_ADVERT_ERR_VERSION},
		{"{\"identifier\":\"fips-overlay-v1\",\"version\":\"1\",\"endpoints\":[]}", SL_ADVERT_ERR_JSON},
		{ENDPOINTS(""), SL_ADVERT_ERR_NO_ENDPOINT},
		{ENDPOINTS("{\"transport\":\"tcp\"}"), SL_ADVERT_ERR_JSON},
		{ENDPOINTS(EP("udp", "192.168.1.1:2121")), SL_ADVERT_ERR_NO_ENDPOINT},
		{ENDPOINTS(EP("tcp", "nat")), SL_ADVERT_ERR_NO_ENDPOINT},
		{ENDPOINTS(EP("udp", "nat")), SL_ADVERT_ERR_NAT_INCOMPLETE},
		{ENDPOINTS(EP("webrtc", "x")), SL_ADVERT_ERR_NO_ENDPOINT},
		/* More generous than the reference: what is unknown costs itself only. */
		{ENDPOINTS(EP("webrtc", "x") "," EP("udp", "8.8.8.8:1")), SL_ADVERT_ERR_OK},
	};
	struct sl_advert a;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum sl_advert_error got = parse(&a, rows[i].content);

		SL_EXPECT_MSG(got == rows[i].want, "%s, not %s: %s", sl_advert_error_name(got),
			sl_advert_error_name(rows[i].want), rows[i].content);
	}
	/* Of many endpoints the first eight that can be used; relays and servers of one without nat are dropped. */
	SL_EXPECT_EQ(parse(&a, ENDPOINTS(EP("tcp", "192.168.1.10:443") "," EP("udp", "100.64.1.2:2121") "," EP("tcp", "8.8.8.8:443"))),
		SL_ADVERT_ERR_OK);
	SL_EXPECT_EQ(a.endpoint_count, 1);
	SL_EXPECT_STR(a.endpoints[0].addr, "8.8.8.8:443");
}

/* The reference's table of addresses that an advert may not name. */
SL_TEST(advert, addresses)
{
	static const struct {
		const char *ip;
		bool barred;
	} rows[] = {{"127.0.0.1", true}, {"::1", true}, {"0.0.0.0", true}, {"::", true}, {"224.0.0.1", true}, {"ff02::1", true},
		{"255.255.255.255", true}, {"169.254.1.1", true}, {"fe80::1", true}, {"192.0.2.1", true}, {"198.51.100.1", true},
		{"203.0.113.1", true}, {"100.64.0.1", true}, {"100.127.255.255", true}, {"100.128.0.1", false}, {"10.0.0.1", true},
		{"192.168.1.1", true}, {"172.16.0.1", true}, {"172.32.0.1", false}, {"fd00::1", true}, {"8.8.8.8", false},
		{"2001:4860:4860::8888", false}};
	struct sl_advert_endpoint ep;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t ip[16];
		int family = inet_pton(AF_INET, rows[i].ip, ip) == 1 ? 4 : 6;

		if (family == 6)
			SL_ASSERT(inet_pton(AF_INET6, rows[i].ip, ip) == 1);
		SL_EXPECT_MSG(sl_advert_ip_usable((uint8_t)family, ip) == !rows[i].barred, "%s", rows[i].ip);
	}
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", " NAT "), 0);
	SL_EXPECT(ep.nat);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "relay.example:2121"), 0);
	SL_EXPECT_STR(ep.host, "relay.example");
	SL_EXPECT_EQ(ep.port, 2121);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "[2001:4860::1]:2121"), 0);
	SL_EXPECT_EQ(ep.family, 6);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "8.8.8.8:0"), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "8.8.8.8:65536"), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "8.8.8.8"), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "localhost:1"), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", "a b:1"), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", ":1"), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "udp", ""), -EINVAL);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "tor", "exampleonion.onion:1234"), 0);
	SL_EXPECT_EQ(sl_advert_endpoint_parse(&ep, "quic", "8.8.8.8:1"), -EPROTONOSUPPORT);
}

SL_TEST(advert, inbox_lists_are_written_for_both_and_read_from_either)
{
	static const char *const relays[] = {"wss://a.example", "wss://b.example"};
	static const char *const r[] = {"r", "wss://c.example"};
	const struct sl_nostr_tag tags[] = {{r, 2}};
	struct sl_identity *id = sl_identity_from_text(SECRET_A);
	struct sl_nostr_event e, theirs = {.kind = SL_INBOX_KIND, .tags = tags, .tag_count = 1};
	char urls[4][SL_ADVERT_TEXT_SIZE];

	SL_ASSERT(sl_inbox_build(&e, relays, 2, 1700000000, id) == 0);
	SL_EXPECT_EQ(e.tag_count, 4);
	SL_EXPECT_STR(sl_nostr_event_tag(&e, "relay"), "wss://a.example");
	SL_EXPECT_STR(sl_nostr_event_tag(&e, "r"), "wss://a.example");
	SL_EXPECT_EQ(sl_nostr_event_verify(&e), SL_NOSTR_OK);
	SL_EXPECT_EQ(sl_inbox_parse(urls, 4, &e), 2);
	SL_EXPECT_STR(urls[1], "wss://b.example");
	sl_nostr_event_fini(&e);
	SL_EXPECT_EQ(sl_inbox_parse(urls, 4, &theirs), 1);
	SL_EXPECT_STR(urls[0], "wss://c.example");
	sl_identity_destroy(id);
}

SL_TEST(advert, relay_urls)
{
	static const char *const bad[] = {"", "http://a", "wss://", "wss://a:0", "wss://a:65536", "wss://a:", "wss://u@a", "wss://a b",
		"wss://a/#x", "wss://[::1", "wss://[]/", "wss://a\"b", "ws:/a"};
	struct sl_nostr_url u;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SL_EXPECT_MSG(sl_nostr_url_parse(&u, bad[i]) == -EINVAL, "taken: %s", bad[i]);
	SL_EXPECT_EQ(sl_nostr_url_parse(&u, "WSS://Relay.Example:8443/Path?x=1"), 0);
	SL_EXPECT(u.tls);
	SL_EXPECT_STR(u.host, "relay.example");
	SL_EXPECT_EQ(u.port, 8443);
	SL_EXPECT_STR(u.path, "/Path?x=1");
	SL_EXPECT_EQ(sl_nostr_url_parse(&u, "ws://[::1]:7000"), 0);
	SL_EXPECT_STR(u.host, "::1");
	SL_EXPECT_STR(u.path, "/");
	SL_EXPECT(sl_nostr_url_same("wss://a.example", "WSS://A.example:443/"));
	SL_EXPECT(!sl_nostr_url_same("wss://a.example", "ws://a.example"));
	SL_EXPECT(!sl_nostr_url_same("wss://a.example/x", "wss://a.example/X"));
}
