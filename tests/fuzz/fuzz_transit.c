/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole burst through transit: two workers, two ports of rings, five peers, real router and neighbours. The input is a
 * list of frames, each [ how 1 | length 2 LE | bytes ]: raw ones, raw ones to our MAC, and bytes sealed by a peer as a
 * link message or as a datagram's payload, so that what lies behind the tag is reached too.
 *
 * Properties: every frame gets exactly one verdict at each worker that saw it; every buffer is back afterwards; only
 * sealed frames are ever forwarded; what goes out is at most one frame for one that came in, besides control's answers.
 */
#include <sanitizer/lsan_interface.h>
#include "fuzz.h"
#include "rig.h"

/* The rig's view of the test harness: a failed expectation is a finding; randomness is a fixed sequence. */
static uint64_t state = 1;
void
sl_test_fail(const char *file, int line, const char *fmt, ...)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, fmt);
	abort();
}
uint64_t
sl_test_rand(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
void
sl_test_rand_bytes(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)sl_test_rand();
}

static struct rig *r;
static struct rig_peer *peers[5];

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct rig_config config = {.workers = 2, .mbufs = 2047};

	(void)argc;
	(void)argv;
	/* The rig lives as long as the process, and partly in EAL's memory, where the leak checker does not look. */
	__lsan_disable();
	FUZZ_CHECK(rig_eal_init() == 0);
	r = rig_create(&config);
	FUZZ_CHECK(r != NULL);
	peers[0] = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	peers[1] = rig_peer_add(r, SL_ADDR_UDP6, 0, 1);
	peers[2] = rig_peer_add(r, SL_ADDR_ETH, 0, 0);
	peers[3] = rig_peer_add(r, SL_ADDR_UDP4, 1, 0);
	peers[4] = rig_peer_add_bare(r, SL_ADDR_UDP4, 1, 0, false);
	__lsan_enable();
	return 0;
}

/* how: 0x03 what | 0x0c peer | 0x30 destination | 0x40 spoil a byte | 0x80 repeat a counter. True when it was sealed. */
static bool
inject(uint8_t how, const uint8_t *bytes, size_t len)
{
	struct rig_peer *p = peers[how >> 2 & 3];
	const struct sl_node_addr *dest = (how & 0x30) == 0x30 ? sl_identity_addr(r->identity) : &peers[(how >> 4 & 3) + 2]->addr;
	uint8_t frame[RIG_FRAME_MAX], packet[RIG_FRAME_MAX], msg[RIG_FRAME_MAX];
	const uint64_t counter = how & 0x80 && p->counter ? p->counter - 1 : p->counter++;
	size_t n;

	if (len > 1400)
		len = 1400;
	if ((how & 3) < 2) {
		memcpy(frame, bytes, len);
		if ((how & 3) == 1 && len >= 6)
			memcpy(frame, r->mac[how >> 2 & 1], 6);
		rig_inject(r, how >> 2 & 1, frame, len);
		return false;
	}
	if ((how & 3) == 2) {
		n = rig_seal_raw(packet, p, counter, (uint8_t)(how >> 4), bytes, len);
	} else {
		n = rig_datagram(msg, len ? bytes[0] : 64, 1280, &p->addr, dest, bytes, len);
		n = rig_seal(packet, p, counter, 0, 7, msg, n);
	}
	if (how & 0x40)
		packet[len ? bytes[len - 1] % n : 0] ^= 0x10;
	n = rig_wrap(r, p, frame, packet, n);
	rig_inject(r, p->port, frame, n);
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t rx = 0, forwarded = rig_verdict(r, SL_FORWARD), sealed = 0, frames = 0;
	struct sl_worker_stats s[2], t[2];
	uint8_t frame[RIG_FRAME_MAX];
	uint32_t free_count, total;

	for (uint16_t w = 0; w < 2; w++)
		sl_dataplane_worker_stats(r->dp, w, &s[w]);
	while (size >= 3 && frames < 64) {
		size_t len = (size_t)(data[1] | data[2] << 8) % 1500;

		if (len > size - 3)
			len = size - 3;
		sealed += inject(data[0], data + 3, len);
		frames++;
		data += 3 + len;
		size -= 3 + len;
	}
	rig_poll(r, false);
	rig_expect_balance(r);
	for (uint16_t w = 0; w < 2; w++) {
		sl_dataplane_worker_stats(r->dp, w, &t[w]);
		rx += t[w].rx - s[w].rx - (t[w].handoff_in - s[w].handoff_in);
	}
	FUZZ_CHECK(rx == frames);
	FUZZ_CHECK(rig_verdict(r, SL_FORWARD) - forwarded <= sealed);
	rig_poll(r, true);
	while (rig_receive(r, 0, frame) || rig_receive(r, 1, frame))
		;
	rig_forget(r);
	sl_dataplane_buffers(r->dp, &free_count, &total);
	FUZZ_CHECK(free_count == total);
	FUZZ_CHECK(rte_mempool_avail_count(r->pool) == r->pool->size);
	return 0;
}
