/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the seeds of fuzz_wire and fuzz_text from the golden vectors: make_seeds FOLDER makes FOLDER/wire/... and
 * FOLDER/text/... What it wrote is kept in tests/fuzz/corpus; run it again when vectors or choices change.
 */
#include "fuzz.h"
#include "sl_wire_round_trip.h"
#include "sl_wire_vectors.h"
#include <string.h>
#include <sys/stat.h>

static const char *folder;

static void
write_seed(const char *target, const char *name, unsigned choice, const uint8_t *bytes, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, target);
	(void)mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
	f = fopen(path, "wb");
	if (f == NULL || fputc((int)choice, f) == EOF || fwrite(bytes, 1, len, f) != len ||
		fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

static size_t
unhex(uint8_t *out, const char *hex)
{
	size_t n = 0;
	unsigned v;

	for (; hex[0] && hex[1] && sscanf(hex, "%2x", &v) == 1; hex += 2)
		out[n++] = (uint8_t)v;
	return n;
}

/* Under every choice whose parser takes it; packets and coordinates have no builder to ask. */
static void
wire_seed(const char *name, const uint8_t *bytes, size_t len)
{
	static uint8_t out[4096];
	size_t out_len;

	for (unsigned i = 0; i < SL_WIRE_CASE_COUNT; i++)
		if (sl_wire_cases[i].round_trip(bytes, len, out, sizeof(out), &out_len) == 0)
			write_seed("wire", name, i, bytes, len);
	if (sl_packet_classify(bytes, len) <= SL_PACKET_MSG2)
		write_seed("wire", name, SL_WIRE_CASE_COUNT, bytes, len);
}

static void
coords_seed(const char *name, uint8_t phase, uint8_t flags)
{
	uint8_t p[128] = {phase, flags};
	size_t at = phase ? 5 : 12;

	sl_put16(p + at, 2);
	memset(p + at + 2, 0x11, 32);
	sl_put16(p + at + 34, 1);
	memset(p + at + 36, 0x22, 16);
	sl_put16(p + at + 52, 4);
	write_seed("wire", name, SL_WIRE_CASE_COUNT + 1, p, at + 58);
}

static void
text_seed(const char *name, unsigned choice, const char *text)
{
	write_seed("text", name, choice, (const uint8_t *)text, strlen(text));
}

int
main(int argc, char **argv)
{
	static uint8_t bytes[4096];

	if (argc != 2) {
		fprintf(stderr, "make_seeds FOLDER\n");
		return 2;
	}
	folder = argv[1];
	for (size_t i = 0; i < SL_WIRE_VECTOR_COUNT; i++)
		wire_seed(sl_wire_vectors[i].name, bytes, unhex(bytes, sl_wire_vectors[i].hex));
	memset(bytes, 0, sizeof(bytes));
	unhex(bytes, SL_VECTOR_FILTER_HEAD);
	for (size_t i = 0; i < 5; i++)
		bytes[11 + sl_vector_filter_bytes[i].at] = (uint8_t)sl_vector_filter_bytes[i].value;
	wire_seed("filter", bytes, SL_FILTER_MSG_BYTES);
	coords_seed("session_setup", 1, 0);
	coords_seed("session_ack", 2, 0);
	coords_seed("session_data", 0, 1);
	/* Two frames, each with a report. */
	memset(bytes, 0, sizeof(bytes));
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *p = bytes + i * (13 + SL_RECEIVER_REPORT_BYTES);

		sl_put64(p, i * 3);
		sl_put32(p + 8, 900 + i);
		p[12] = 31;
		unhex(p + 13, sl_wire_vectors[5].hex);
		p[13 + 4] = (uint8_t)(195 + i);
	}
	write_seed("wire", "metrics", SL_WIRE_CASE_COUNT + 2, bytes,
		2 * (13 + SL_RECEIVER_REPORT_BYTES));

	text_seed("npub", 0, "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m");
	text_seed(
		"npub_upper", 0, "NPUB1TDWA4VJRJL33PCJDPF2T4P027NL86XRX24G4D3AVG4VWVAYR3G8QHD84LE");
	text_seed("nsec", 1, "nsec1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7rusqpqcc2y");
	text_seed("secret_nsec", 2,
		"nsec1kypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7r7cqzeynpz");
	text_seed("secret_hex", 2,
		"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20");
	text_seed("hex", 3, "00ff7F");
	text_seed("udp4", 4, "192.0.2.1:2121");
	text_seed("udp6", 4, "[2001:db8::1]:2121");
	text_seed("mac", 5, "02:00:00:00:00:01");
	return 0;
}
