/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the outer headers of one packet cost: sl_parse() on a received frame, sl_path_write() in front of a packet to
 * send, by family and size, with the checksum done in software and without. 256 frames of 1,536 bytes in turn (they
 * fit the second-level cache); all cases take turns in every round and the median is shown. With -j a JSON object is the
 * last thing printed.
 */
#include "sl_parse.h"
#include "sl_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FRAMES 256u
#define REPEATS 16u
#define ROUNDS 61u
#define STRIDE 1536u

static const unsigned sizes[] = {64, 1400};

static struct {
	const char *name;
	uint8_t kind;
	uint8_t path_flags;
	uint32_t hints; /* of the parser */
	uint16_t vlan;
} cases[] = {
	{"ip4", SL_ADDR_UDP4, 0, 0, 0},
	{"ip4_checksum", SL_ADDR_UDP4, SL_PATH_UDP4_CHECKSUM, 0, 0},
	{"ip4_offload", SL_ADDR_UDP4, SL_PATH_UDP4_CHECKSUM | SL_PATH_OFFLOAD_UDP, SL_RX_IP_GOOD | SL_RX_L4_GOOD, 0},
	{"ip4_checksum_vlan", SL_ADDR_UDP4, SL_PATH_UDP4_CHECKSUM, 0, 7},
	{"ip6_checksum", SL_ADDR_UDP6, 0, 0, 0},
	{"ip6_offload", SL_ADDR_UDP6, SL_PATH_OFFLOAD_UDP, SL_RX_L4_GOOD, 0},
	{"ethernet", SL_ADDR_ETH, 0, 0, 0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static uint8_t frames[FRAMES][STRIDE] __attribute__((aligned(64)));
static double parse_ns[CASES][SIZES][ROUNDS], write_ns[CASES][SIZES][ROUNDS];
static const uint8_t us[6] = {2, 0, 0, 0, 0, 1}, peer[6] = {2, 0, 0, 0, 0, 9};

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static bool
set_up(unsigned c, struct sl_parse_local *local, struct sl_path *path)
{
	const struct sl_ifaddr us4 = {4, 24, {192, 0, 2, 1}}, us6 = {6, 64, {0x20, 1, 0x0d, 0xb8, [15] = 1}};
	struct sl_path_spec s = {.to = {.kind = cases[c].kind, .udp_port = 2121}, .ip_mtu = 1500, .src_port = 2121,
		.ethertype = SL_ETHERTYPE_FIPS, .vlan = cases[c].vlan, .flags = cases[c].path_flags};

	memcpy(s.src_mac, peer, 6);
	memcpy(s.dst_mac, us, 6);
	if (cases[c].kind == SL_ADDR_UDP4) {
		memcpy(s.to.u.ip4, us4.ip, 4);
		memcpy(s.src_ip, us4.ip, 4);
		s.src_ip[3] = 9;
	} else if (cases[c].kind == SL_ADDR_UDP6) {
		memcpy(s.to.u.ip6, us6.ip, 16);
		memcpy(s.src_ip, us6.ip, 16);
		s.src_ip[15] = 9;
	}
	sl_parse_local_init(local, us, cases[c].vlan, 0);
	return sl_parse_local_addr(local, &us4) == 0 && sl_parse_local_addr(local, &us6) == 0 &&
		sl_parse_local_udp(local, 0, 2121, true, true, NULL) == 0 &&
		sl_parse_local_eth(local, 1, SL_ETHERTYPE_FIPS) == 0 && sl_path_build(path, &s) == 0;
}

static void
fill(const struct sl_path *path, unsigned size)
{
	for (unsigned i = 0; i < FRAMES; i++) {
		uint8_t *fmp = frames[i] + path->hdr_len;

		for (unsigned k = 0; k < size; k++)
			fmp[k] = (uint8_t)(i * 31 + k * 7);
		fmp[0] = fmp[1] = 0;
		sl_put16(fmp + 2, (uint16_t)(size - SL_ESTABLISHED_MIN_BYTES));
	}
}

/* False when a frame did not parse. */
static bool
measure(unsigned c, unsigned z, unsigned round)
{
	struct sl_parse_local local;
	struct sl_path path;
	struct sl_parsed out;
	unsigned good = 0;
	double start;

	if (!set_up(c, &local, &path))
		return false;
	fill(&path, sizes[z]);
	start = now_ns();
	for (unsigned r = 0; r < REPEATS; r++)
		for (unsigned i = 0; i < FRAMES; i++)
			sl_path_write(&path, frames[i], sizes[z], (uint16_t)i);
	write_ns[c][z][round] = (now_ns() - start) / (FRAMES * REPEATS);
	start = now_ns();
	for (unsigned r = 0; r < REPEATS; r++)
		for (unsigned i = 0; i < FRAMES; i++)
			good += sl_parse(&local, frames[i], path.hdr_len + sizes[z], cases[c].hints, &out) == SL_FORWARD &&
				out.len == sizes[z];
	parse_ns[c][z][round] = (now_ns() - start) / (FRAMES * REPEATS);
	return good == FRAMES * REPEATS;
}

int
main(int argc, char **argv)
{
	const bool json = argc > 1 && strcmp(argv[1], "-j") == 0;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned c = 0; c < CASES; c++)
			for (unsigned z = 0; z < SIZES; z++)
				if (!measure(c, z, round)) {
					fprintf(stderr, "perf_net: %s, %u bytes: a frame did not parse\n", cases[c].name, sizes[z]);
					return 1;
				}
	printf("%-20s %6s %10s %10s\n", "headers", "bytes", "parse ns", "write ns");
	for (unsigned c = 0; c < CASES; c++) {
		for (unsigned z = 0; z < SIZES; z++) {
			qsort(parse_ns[c][z], ROUNDS, sizeof(double), compare);
			qsort(write_ns[c][z], ROUNDS, sizeof(double), compare);
			printf("%-20s %6u %10.1f %10.1f\n", cases[c].name, sizes[z], parse_ns[c][z][ROUNDS / 2],
				write_ns[c][z][ROUNDS / 2]);
		}
	}
	printf("headers: by kind; _checksum: made and checked here, _offload: by the NIC; bytes: of the FMP packet behind them;\n"
		"parse, write: ns a packet, median of %u rounds\n", ROUNDS);
	if (!json)
		return 0;
	printf("{");
	for (unsigned c = 0; c < CASES; c++)
		for (unsigned z = 0; z < SIZES; z++)
			printf("%s\"%s_%u\": {\"parse_ns\": %.2f, \"write_ns\": %.2f}", c + z ? ", " : "", cases[c].name, sizes[z],
				parse_ns[c][z][ROUNDS / 2], write_ns[c][z][ROUNDS / 2]);
	printf("}\n");
	return 0;
}
