/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths: what sl_path_write() makes, read by sl_parse() and by the oracle, and golden frames. */
#include <errno.h>
#include <stdlib.h>
#include "net_test.h"
#include "sl_path.h"

/* From the peer to us, so that the receiving port of the other tests reads it. */
static struct sl_path_spec
spec_to_us(uint8_t kind)
{
	struct sl_path_spec s = {.to = {.kind = kind, .transport = 1, .udp_port = 2121}, .port = 3, .ip_mtu = 1500,
		.src_port = 5555, .ethertype = 0x2121};

	memcpy(s.src_mac, peer_mac, 6);
	memcpy(s.dst_mac, us_mac, 6);
	if (kind == SL_ADDR_UDP4) {
		sl_test_unhex(s.to.u.ip4, 4, "c0000201");
		sl_test_unhex(s.src_ip, 4, "c0000209");
	} else if (kind == SL_ADDR_UDP6) {
		sl_test_unhex(s.to.u.ip6, 16, "20010db8000000000000000000000001");
		sl_test_unhex(s.src_ip, 16, "20010db8000000000000000000000009");
	} else {
		s.to.udp_port = 0;
		memcpy(s.to.u.mac, us_mac, 6);
	}
	return s;
}

/* An exact-size frame: headers, then an FMP packet of n bytes; the caller frees it. */
static uint8_t *
write_frame(const struct sl_path *path, unsigned n, uint16_t ip_id, bool zeros)
{
	uint8_t *frame = malloc(path->hdr_len + n), *fmp = frame + path->hdr_len;

	memset(frame, 0xa5, path->hdr_len);
	if (zeros)
		memset(fmp, 0, n);
	else
		sl_test_rand_bytes(fmp, n);
	if (n >= 32) {
		fmp[0] = fmp[1] = 0;
		sl_put16(fmp + 2, (uint16_t)(n - 32));
	}
	sl_path_write(path, frame, n, ip_id);
	return frame;
}

SL_TEST(path, written_frames_parse)
{
	static const uint8_t kinds[] = {SL_ADDR_UDP4, SL_ADDR_UDP6, SL_ADDR_ETH};
	static const unsigned bytes[] = {42, 62, 17};
	struct sl_parse_local local[2];

	local_default(&local[0], 0);
	local_default(&local[1], 7);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned flags = 0; flags < 2; flags++) {
			for (unsigned vlan = 0; vlan < 2; vlan++) {
				struct sl_path_spec s = spec_to_us(kinds[i]);
				struct sl_path path;

				s.vlan = vlan ? 7 : 0;
				s.flags = flags ? SL_PATH_UDP4_CHECKSUM : 0;
				SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
				SL_EXPECT_EQ(path.hdr_len, bytes[i] + 4 * vlan);
				SL_EXPECT_EQ(path.l2_len, 14 + 4 * vlan);
				SL_EXPECT_EQ(path.mtu, 1500 - (i == 2 ? 3 : bytes[i] - 14));
				for (unsigned n = 32; n <= path.mtu; n += n < 130 ? 1 : 37) {
					uint8_t *frame = write_frame(&path, n, (uint16_t)sl_test_rand(), n % 3 == 0);
					struct sl_parsed out, want;
					const size_t len = path.hdr_len + n;

					SL_EXPECT_EQ(sl_parse(&local[vlan], frame, len, 0, &out), SL_FORWARD);
					SL_EXPECT_EQ(oracle_parse(&local[vlan], frame, len, 0, &want), SL_FORWARD);
					SL_EXPECT_EQ(out.offset, path.hdr_len);
					SL_EXPECT_EQ(out.len, n);
					SL_EXPECT_MEM(&out.from, &want.from, sizeof(want.from));
					if (i == 0) {
						const uint16_t c = sl_get16be(frame + path.hdr_len - 2);

						SL_EXPECT_EQ(c != 0, flags);
						SL_EXPECT_EQ(frame[path.l2_len + 6], 0x40); /* don't fragment */
					}
					free(frame);
				}
			}
		}
	}
}

/* Where the sum comes to zero, FFFF is sent: all payloads of a 2-byte word are tried. */
SL_TEST(path, computed_zero_is_sent_as_ffff)
{
	static const uint8_t kinds[] = {SL_ADDR_UDP4, SL_ADDR_UDP6};

	for (unsigned i = 0; i < 2; i++) {
		struct sl_path_spec s = spec_to_us(kinds[i]);
		struct sl_parse_local local;
		struct sl_path path;
		unsigned ffff = 0;
		uint8_t frame[SL_PATH_HEADER_MAX + 34];

		local_default(&local, 0);
		s.flags = SL_PATH_UDP4_CHECKSUM;
		SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
		memset(frame, 0, sizeof(frame));
		for (unsigned w = 0; w <= 0xffff; w++) {
			uint8_t *fmp = frame + path.hdr_len;
			struct sl_parsed out;

			memset(fmp, 0, 34);
			fmp[2] = 2;
			sl_put16be(fmp + 32, (uint16_t)w);
			sl_path_write(&path, frame, 34, 0);
			SL_EXPECT_NE(sl_get16be(fmp - 2), 0);
			ffff += sl_get16be(fmp - 2) == 0xffff;
			SL_EXPECT_EQ(sl_parse(&local, frame, path.hdr_len + 34, 0, &out), SL_FORWARD);
			if (sl_test_failed())
				return;
		}
		/* ones' complement: the words w and w' of the same value mod FFFF both come to it */
		SL_EXPECT_GE(ffff, 1);
	}
}

SL_TEST(path, ip_id_and_header_checksum)
{
	struct sl_path_spec s = spec_to_us(SL_ADDR_UDP4);
	struct sl_path path;

	SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
	for (unsigned id = 0; id <= 0xffff; id += 13) {
		uint8_t *frame = write_frame(&path, 32 + id % 1400, (uint16_t)id, false);

		SL_EXPECT_EQ(oracle_sum(0, frame + 14, 20), 0xffff);
		free(frame);
	}
}

/* The field holds the pseudo header's sum, not complemented: a NIC adds UDP header and payload to it. */
SL_TEST(path, checksum_offload)
{
	static const uint8_t kinds[] = {SL_ADDR_UDP4, SL_ADDR_UDP6};

	for (unsigned i = 0; i < 2; i++) {
		struct sl_path_spec s = spec_to_us(kinds[i]);
		struct sl_parse_local local;
		struct sl_parsed out;
		struct sl_path path;
		uint8_t *frame, *udp, tail[4] = {0, 17, 0, 0};
		uint16_t sum;

		local_default(&local, 0);
		s.flags = SL_PATH_UDP4_CHECKSUM | SL_PATH_OFFLOAD_UDP;
		SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
		SL_EXPECT(!path.checksum);
		frame = write_frame(&path, 333, 1, false);
		udp = frame + path.l2_len + path.l3_len;
		memcpy(tail + 2, udp + 4, 2);
		sum = oracle_sum(oracle_sum(0, udp - (i ? 32 : 8), i ? 32 : 8), tail, 4);
		SL_EXPECT_EQ(sl_get16be(udp + 6), sum);
		/* What the NIC does: the whole UDP packet summed, field included. */
		sl_put16be(udp + 6, (uint16_t)~oracle_sum(0, udp, 341));
		SL_EXPECT_EQ(sl_parse(&local, frame, path.hdr_len + 333u, 0, &out), SL_FORWARD);
		free(frame);
	}
	/* Over IPv4 nothing is offloaded unless a checksum is wanted. */
	{
		struct sl_path_spec s = spec_to_us(SL_ADDR_UDP4);
		struct sl_path path;

		s.flags = SL_PATH_OFFLOAD_UDP;
		SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
		SL_EXPECT_EQ(path.flags, 0);
	}
}

SL_TEST(path, mtu_and_refusals)
{
	struct sl_path_spec s = spec_to_us(SL_ADDR_UDP4);
	struct sl_path path;

	s.fmp_mtu = 1280;
	SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
	SL_EXPECT_EQ(path.mtu, 1280);
	s.ip_mtu = 1000;
	SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
	SL_EXPECT_EQ(path.mtu, 972);
	s.ip_mtu = 59;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EMSGSIZE);
	s = spec_to_us(SL_ADDR_UDP4);
	s.to.udp_port = 0;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s = spec_to_us(SL_ADDR_UDP4);
	s.dst_mac[0] = 1;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s = spec_to_us(SL_ADDR_UDP4);
	s.to.u.ip4[0] = 224;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s = spec_to_us(SL_ADDR_UDP6);
	s.to.u.ip6[0] = 0xff;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	/* To a group only where it was said, and then in all parts. */
	s = spec_to_us(SL_ADDR_UDP4);
	s.group = true;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s.dst_mac[0] = 1;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s.to.u.ip4[0] = 224;
	SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
	s.to.u.ip4[0] = 240;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s = spec_to_us(SL_ADDR_ETH);
	s.vlan = 4095;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s = spec_to_us(SL_ADDR_ETH);
	s.to.kind = 9;
	SL_EXPECT_EQ(sl_path_build(&path, &s), -EINVAL);
	s = spec_to_us(SL_ADDR_ETH);
	SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
	SL_EXPECT_EQ(sl_path_padding(&path, 32), 11);
	SL_EXPECT_EQ(sl_path_padding(&path, 43), 0);
	SL_EXPECT_EQ(sl_path_padding(&path, 1400), 0);
}

/* Written by this code, read by tshark 4.0 with all its checksum checks on: "good", no expert information. */
SL_TEST(path, golden_frames)
{
	static const struct {
		uint8_t kind, flags;
		uint16_t vlan;
		const char *headers;
	} golden[] = {
#include "frames_path.h"
	};
	uint8_t want[SL_PATH_HEADER_MAX], frame[SL_PATH_HEADER_MAX + 40];

	for (unsigned i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct sl_path_spec s = spec_to_us(golden[i].kind);
		struct sl_path path;

		s.vlan = golden[i].vlan;
		s.flags = golden[i].flags;
		SL_EXPECT_EQ(sl_path_build(&path, &s), 0);
		for (unsigned k = 0; k < 40; k++)
			frame[path.hdr_len + k] = k == 2 ? 8 : k < 4 ? 0 : (uint8_t)(k * 5);
		sl_path_write(&path, frame, 40, 0x1234);
		sl_test_unhex(want, path.hdr_len, golden[i].headers);
		SL_EXPECT_MEM(frame, want, path.hdr_len);
	}
}
