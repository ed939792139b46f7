/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of an offer or answer, then a whole traversal that hears it at several times. Checked: what is read comes out as a text
 * that reads the same; texts in it end; and whatever is heard, no packet goes to an address that no peer can have.
 */
#include "fuzz.h"
#include "sl_traversal.h"
#include <string.h>

static uint8_t self[SL_XONLY_BYTES], author[SL_XONLY_BYTES];

static int
send(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	(void)arg;
	(void)packet;
	FUZZ_CHECK(len == SL_STUN_HEADER_BYTES || len == SL_PUNCH_BYTES);
	FUZZ_CHECK(sl_punch_addr_usable(to));
	return 0;
}
static int
say(void *arg, const uint8_t *xonly, const char *text)
{
	(void)arg;
	(void)xonly;
	FUZZ_CHECK(strlen(text) < SL_NAT_SIGNAL_TEXT_MAX);
	return 1;
}
static int
punched(void *arg, const uint8_t *xonly, const struct sl_addr *addr)
{
	(void)arg;
	(void)xonly;
	(void)addr;
	return 0;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	/* The keys of the seeds. */
	FUZZ_CHECK(sl_npub_parse(author, "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m") == 0);
	FUZZ_CHECK(sl_npub_parse(self, "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le") == 0);
	return 0;
}

static void
round_trip(const char *text, size_t len)
{
	static char out[SL_NAT_SIGNAL_TEXT_MAX];
	struct sl_nat_signal s, again;

	if (sl_nat_signal_parse(&s, text, len) != SL_NAT_SIGNAL_OK)
		return;
	FUZZ_CHECK(memchr(s.session_id, 0, sizeof(s.session_id)) && memchr(s.nonce, 0, sizeof(s.nonce)) &&
		memchr(s.reason, 0, sizeof(s.reason)) && memchr(s.stun_server, 0, sizeof(s.stun_server)));
	FUZZ_CHECK(s.side.local_count <= SL_PUNCH_CANDIDATES_MAX);
	if (sl_nat_signal_format(out, sizeof(out), &s) != 0)
		return;
	FUZZ_CHECK(sl_nat_signal_parse(&again, out, strlen(out)) == SL_NAT_SIGNAL_OK);
	FUZZ_CHECK(memcmp(&s, &again, sizeof(s)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sl_traversal_sink sink = {.udp = send, .signal = say, .punched = punched};
	const struct sl_addr server = {.kind = SL_ADDR_UDP4, .udp_port = 3478, .u.ip4 = {198, 51, 100, 1}};
	struct sl_traversal_config c;
	struct sl_traversal *t;
	uint64_t now = 1000000, unix_ms = 1700000000500u;

	round_trip((const char *)data, size);
	sl_traversal_config_default(&c);
	c.share_local_candidates = true;
	c.ip6 = true;
	c.peers_max = 16;
	c.seen_sessions_max = 16;
	memcpy(c.self, self, sizeof(self));
	t = sl_traversal_create(&c, &sink, now);
	FUZZ_CHECK(t != NULL);
	FUZZ_CHECK(sl_traversal_server(t, 0, "stun:198.51.100.1:3478", &server) == 0);
	sl_traversal_local(t, &(struct sl_addr){.kind = SL_ADDR_UDP4, .udp_port = 2121, .u.ip4 = {192, 168, 1, 2}}, 1);
	FUZZ_CHECK(sl_traversal_want(t, author, NULL, true, now) == 0);
	for (unsigned i = 0; i < 40; i++) {
		if (i % 10 == 1)
			sl_traversal_signal(t, i % 20 == 1 ? author : self, (const char *)data, size, now, unix_ms);
		(void)sl_traversal_tick(t, now, unix_ms);
		now += 700000;
		unix_ms += 700;
	}
	sl_traversal_destroy(t);
	return 0;
}
