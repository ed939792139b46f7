/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_WIRE_ROUND_TRIP_H
#define SL_WIRE_ROUND_TRIP_H
/*
 * One row per message: parse it, build it again from what was parsed. The bytes must be the same but for those that
 * the parser does not keep (`skip`: reserved bytes, and what builders always write one way). Shared by unit tests
 * and fuzz targets.
 */
#include "sl_wire.h"

struct sl_wire_case {
	const char *name;
	/* 0 and the rebuilt message (out has `size` bytes), or the parser's error. *out_len 0 = the builder refused. */
	int (*round_trip)(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len);
	struct {
		uint16_t from, to;
	} skip[2]; /* byte ranges */
};

static inline int
sl_rt_sender_report(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_sender_report r;
	int rc = sl_sender_report_parse(&r, in, len);

	(void)size;
	if (rc != 0)
		return rc;
	sl_sender_report_build(out, &r);
	*out_len = SL_SENDER_REPORT_BYTES;
	return 0;
}

static inline int
sl_rt_receiver_report(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_receiver_report r;
	int rc = sl_receiver_report_parse(&r, in, len);

	(void)size;
	if (rc != 0)
		return rc;
	sl_receiver_report_build(out, &r);
	*out_len = SL_RECEIVER_REPORT_BYTES;
	return 0;
}

static inline int
sl_rt_tree(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_tree_announce a;
	int rc = sl_tree_announce_parse(&a, in, len);

	if (rc == 0)
		*out_len = sl_tree_announce_build(out, size, &a);
	return rc;
}

static inline int
sl_rt_filter(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_filter_announce f;
	int rc = sl_filter_announce_parse(&f, in, len);

	(void)size;
	if (rc != 0)
		return rc;
	sl_filter_announce_build(out, f.sequence, f.bits);
	*out_len = SL_FILTER_MSG_BYTES;
	return 0;
}

static inline int
sl_rt_lookup_request(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_lookup_request r;
	int rc = sl_lookup_request_parse(&r, in, len);

	if (rc == 0)
		*out_len = sl_lookup_request_build(out, size, &r);
	return rc;
}

static inline int
sl_rt_lookup_response(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_lookup_response r;
	int rc = sl_lookup_response_parse(&r, in, len);

	if (rc == 0)
		*out_len = sl_lookup_response_build(out, size, &r);
	return rc;
}

static inline int
sl_rt_signal(const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *out_len)
{
	struct sl_signal s;
	int rc = sl_signal_parse(&s, in, len);

	if (rc == 0)
		*out_len = sl_signal_build(out, size, &s);
	return rc;
}

static const struct sl_wire_case sl_wire_cases[] = {
	{"sender_report", sl_rt_sender_report, {{1, 4}}},
	{"receiver_report", sl_rt_receiver_report, {{1, 4}, {38, 40}}},
	{"tree_announce", sl_rt_tree, {{0, 0}}},
	{"filter_announce", sl_rt_filter, {{9, 10}}},
	{"lookup_request", sl_rt_lookup_request, {{0, 0}}},
	{"lookup_response", sl_rt_lookup_response, {{0, 0}}},
	{"signal", sl_rt_signal, {{0, 4}, {5, 6}}},
};
#define SL_WIRE_CASE_COUNT (sizeof(sl_wire_cases) / sizeof(sl_wire_cases[0]))

/* The rebuilt bytes are those that came in, but for the skipped ones; what came in may be longer. */
static inline bool
sl_wire_case_same(const struct sl_wire_case *c, const uint8_t *in, size_t len, const uint8_t *out, size_t out_len)
{
	if (out_len == 0 || out_len > len)
		return false;
	for (size_t i = 0; i < out_len; i++) {
		if ((i >= c->skip[0].from && i < c->skip[0].to) || (i >= c->skip[1].from && i < c->skip[1].to))
			continue;
		if (in[i] != out[i])
			return false;
	}
	return true;
}

#endif
