/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour machine under a stream of frames and calls: records of {kind, length, bytes}. Kind 0 is a frame, kinds 1
 * to 4 resolve, hold, release and let time pass; ICMPv6 checksums are put right so that discovery is reached.
 *
 * Checked: no more answers than the limits allow; every frame sent is whole (60 bytes at least, from our MAC); each input
 * frame is counted once; holds and releases match; a MAC is told only for neighbours that were asked for.
 */
#include "fuzz.h"
#include "net_test.h"
#include "sl_neigh.h"
#include <errno.h>

#define HOLDS_MAX 32

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t queued[64] = {[6] = 4, 4, 4, 4, 4, 4};
static bool resolved_any;

static void
on_transmit(void *arg, uint16_t port, const uint8_t *frame, size_t len)
{
	(void)arg;
	FUZZ_CHECK(port == 2 && len >= 60 && len <= SL_NEIGH_FRAME_MAX);
	FUZZ_CHECK(memcmp(frame + 6, mac, 6) == 0 || memcmp(frame + 6, queued + 6, 6) == 0);
}

static void
on_changed(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *new_mac)
{
	(void)arg;
	FUZZ_CHECK(port == 2 && resolved_any && (ip->family == 4 || ip->family == 6));
	FUZZ_CHECK(!new_mac || (!(new_mac[0] & 1) && memcmp(new_mac, mac, 6) != 0));
}

static void
on_too_big(void *arg, uint16_t port, const struct sl_ifaddr *ip, uint16_t mtu)
{
	(void)arg;
	(void)port;
	(void)ip;
	(void)mtu;
}

static uint64_t
inputs_counted(const struct sl_neigh *n)
{
	const uint64_t *c = sl_neigh_counters(n);
	uint64_t sum = 0;

	for (unsigned i = SL_NEIGH_ARP_ANSWERED; i <= SL_NEIGH_FRAME; i++)
		sum += c[i];
	return sum;
}

static void
frame_input(struct sl_neigh *n, const uint8_t *data, size_t len, uint64_t now)
{
	uint8_t *f = malloc(len ? len : 1);
	const uint64_t before = inputs_counted(n);

	FUZZ_CHECK(f != NULL);
	memcpy(f, data, len);
	if (len >= 62 && f[12] == 0x86 && f[13] == 0xdd && f[20] == 58) {
		const size_t payload = sl_get16be(f + 18);
		uint8_t tail[4] = {0, 58, f[18], f[19]};

		if (payload >= 8 && payload <= len - 54) {
			f[56] = f[57] = 0;
			sl_put16be(f + 56,
				(uint16_t)~oracle_sum(oracle_sum(oracle_sum(0, f + 22, 32), tail, 4), f + 54, payload));
		}
	}
	sl_neigh_input(n, 2, f, len, now);
	FUZZ_CHECK(inputs_counted(n) == before + 1);
	free(f);
}

/* 17 bytes: family bit and address, mostly on the link. */
static struct sl_addr
address(const uint8_t *data, size_t len)
{
	struct sl_addr a = {.kind = SL_ADDR_UDP4, .udp_port = 2121, .u = {.ip4 = {192, 0, 2, 9}}};

	if (len >= 1 && data[0] & 1) {
		const uint8_t ip[16] = {0x20, 1, 0x0d, 0xb8, [15] = 9};

		a.kind = SL_ADDR_UDP6;
		memcpy(a.u.ip6, ip, 16);
		if (len >= 17 && data[0] & 2)
			memcpy(a.u.ip6, data + 1, 16);
		else if (len >= 2)
			a.u.ip6[15] = data[1];
		a.link = 2;
	} else if (len >= 5 && data[0] & 2) {
		memcpy(a.u.ip4, data + 1, 4);
	} else if (len >= 2) {
		a.u.ip4[3] = data[1];
	}
	return a;
}

static struct sl_neigh *
make(void)
{
	const struct sl_neigh_config config = {.entries_max = 6, .answer_burst = 20, .answer_per_s = 1, .echo_burst = 20,
		.echo_per_s = 1};
	const struct sl_neigh_sink sink = {.transmit = on_transmit, .changed = on_changed, .too_big = on_too_big};
	const struct sl_ifaddr addrs[] = {{4, 24, {192, 0, 2, 1}}, {6, 64, {0x20, 1, 0x0d, 0xb8, [15] = 1}}};
	const struct sl_static_route route = {.family = 4, .gateway = {192, 0, 2, 254}};
	struct sl_neigh_port port = {.port = 2, .mtu = 1500, .addrs = addrs, .addr_count = 2, .routes = &route,
		.route_count = 1};
	struct sl_neigh *n = sl_neigh_create(&config, &sink, 1);

	FUZZ_CHECK(n != NULL);
	memcpy(port.mac, mac, 6);
	FUZZ_CHECK(sl_neigh_port_add(n, &port) == 0);
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_neigh_hop hop, held[HOLDS_MAX];
	struct sl_neigh *n = make();
	const uint64_t *counters = sl_neigh_counters(n);
	unsigned holds = 0;
	uint64_t now = 1, due;

	resolved_any = false;
	while (size >= 3) {
		const uint8_t kind = data[0] % 5;
		size_t len = sl_get16(data + 1);
		struct sl_addr to;
		int rc;

		data += 3;
		size -= 3;
		len = len < size ? len : size;
		to = address(data, len);
		switch (kind) {
		case 0:
			frame_input(n, data, len, now);
			break;
		case 1:
		case 2:
			rc = sl_neigh_resolve(n, &to, &hop, now);
			resolved_any = true;
			FUZZ_CHECK(rc <= 0);
			if (rc != 0 && rc != -EINPROGRESS)
				break;
			FUZZ_CHECK(sl_neigh_queue(n, &hop, queued, sizeof(queued)) == 0);
			if (kind == 2 && holds < HOLDS_MAX && sl_neigh_hold(n, &hop, now) == 0)
				held[holds++] = hop;
			break;
		case 3:
			if (holds)
				sl_neigh_release(n, &held[--holds], now);
			break;
		default:
			now += len * 100000;
			due = sl_neigh_tick(n, now);
			FUZZ_CHECK(due > now);
			break;
		}
		data += len;
		size -= len;
	}
	FUZZ_CHECK(counters[SL_NEIGH_ARP_ANSWERED] + counters[SL_NEIGH_NS_ANSWERED] <= 21 + now / 1000000);
	FUZZ_CHECK(counters[SL_NEIGH_ECHO_ANSWERED] <= 21 + now / 1000000);
	sl_neigh_destroy(n);
	return 0;
}
