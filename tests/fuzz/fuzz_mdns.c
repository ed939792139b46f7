/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message of multicast DNS, from anybody on the link, and the state machine that hears it. Checked: bounds; what is found has a port
 * and an address on the link; what the state machine sends in turn is sound and as long as it says.
 */
#include "fuzz.h"
#include "sl_lan.h"
#include <string.h>

static const char npub[] = "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m";
static struct sl_mdns_self self;
static uint8_t xonly[SL_XONLY_BYTES];

static int
on_send(void *arg, unsigned port, uint8_t family, const uint8_t *message, size_t len)
{
	static struct sl_mdns_message m;

	(void)arg;
	FUZZ_CHECK(port == 0 && (family == 4 || family == 6) && len <= SL_MDNS_MESSAGE_MAX);
	FUZZ_CHECK(sl_mdns_parse(&m, message, len, &self) == SL_MDNS_OK);
	return 0;
}

static void
on_found(void *arg, unsigned port, const uint8_t key[SL_XONLY_BYTES], const struct sl_mdns_ip *addrs, unsigned count, uint16_t udp_port,
	uint32_t ttl_s)
{
	(void)arg;
	(void)ttl_s;
	FUZZ_CHECK(port == 0 && udp_port && count >= 1 && count <= SL_MDNS_ADDRS_MAX && memcmp(key, xonly, SL_XONLY_BYTES) != 0);
	for (unsigned i = 0; i < count; i++)
		FUZZ_CHECK(addrs[i].family == 4 ? memcmp(addrs[i].ip, "\xc0\x00\x02", 3) == 0 && addrs[i].ip[3] != 255
						: addrs[i].ip[0] == 0xfe && (addrs[i].ip[1] & 0xc0) == 0x80);
}

static void
on_gone(void *arg, unsigned port, const uint8_t key[SL_XONLY_BYTES])
{
	(void)arg;
	(void)key;
	FUZZ_CHECK(port == 0);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	FUZZ_CHECK(sl_npub_parse(xonly, npub) == 0);
	FUZZ_CHECK(sl_mdns_self_init(&self, "_fips._udp.local.", xonly, "fips-overlay-v1", 2121) == 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sl_lan_sink sink = {.send = on_send, .found = on_found, .gone = on_gone};
	const struct sl_lan_ifaddr addrs[] = {{{4, {192, 0, 2, 2}}, 24, true}, {{6, {0xfe, 0x80, [15] = 1}}, 64, true}};
	const struct sl_mdns_ip from = {4, {192, 0, 2, 7}};
	static struct sl_mdns_message m;
	struct sl_lan *lan = sl_lan_create(&self, xonly, &sink, 1);

	FUZZ_CHECK(lan != NULL && sl_lan_port(lan, addrs, 2) == 0);
	if (sl_mdns_parse(&m, data, size, &self) == SL_MDNS_OK) {
		FUZZ_CHECK(m.peer_count <= SL_MDNS_PEERS_MAX && (!m.asked || m.query) && (!m.query || !m.peer_count));
		for (unsigned i = 0; i < m.peer_count; i++)
			FUZZ_CHECK(m.peers[i].addr_count <= SL_MDNS_ADDRS_MAX && strlen(m.peers[i].instance) < SL_MDNS_NAME_SIZE);
	}
	sl_lan_input(lan, 0, &from, 5353, data, size, 2);
	for (uint64_t now = 2; now < 3000000; now += 100000)
		FUZZ_CHECK(sl_lan_tick(lan, now) > now);
	sl_lan_destroy(lan);
	return 0;
}
