/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_queue_map.h"
#include "sl_test.h"

static const int two_nodes[4] = {0, 1, 0, 1};

/* Queues 0 .. of a port, as digits. */
static const char *
as_text(const struct sl_queue_map *m, uint16_t queues)
{
	static char text[16];
	uint16_t q = 0;

	for (; q < queues && q < 15; q++)
		text[q] = (char)('0' + sl_queue_map_worker(m, q));
	text[q] = 0;
	return text;
}

SL_TEST(queue_map, rows)
{
	static const struct {
		const char *what;
		int node;
		uint32_t named;
		uint16_t port, queues;
		const char *want;
	} rows[] = {
		{"a port without a node: all workers, in turn", -1, 0, 0, 6, "012301"},
		{"the next port begins at the next worker", -1, 0, 1, 4, "1230"},
		{"a port's node: the workers on it", 1, 0, 0, 4, "1313"},
		{"the other node, and as the second port", 0, 0, 1, 3, "202"},
		{"nobody is on the node: all", 5, 0, 0, 4, "0123"},
		{"named workers stand above the node", 1, 0x5, 0, 3, "020"},
		{"names of workers that are not there: the node's", 1, 0xf0, 0, 2, "13"},
		{"one queue each for many ports", -1, 0, 7, 1, "3"},
	};
	struct sl_queue_map m;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sl_queue_map_make(&m, 4, two_nodes, rows[i].node, rows[i].named, rows[i].port);
		SL_EXPECT_MSG(strcmp(as_text(&m, rows[i].queues), rows[i].want) == 0, "%s: %s, wanted %s", rows[i].what,
			as_text(&m, rows[i].queues), rows[i].want);
	}
}

/* Every queue has a worker that exists, whatever is asked for. */
SL_TEST(queue_map, random)
{
	for (unsigned i = 0; i < 20000; i++) {
		int nodes[SL_QUEUE_MAP_WORKERS];
		const uint16_t workers = (uint16_t)(1 + sl_test_rand() % SL_QUEUE_MAP_WORKERS);
		struct sl_queue_map m;
		uint32_t used = 0;

		for (unsigned w = 0; w < SL_QUEUE_MAP_WORKERS; w++)
			nodes[w] = (int)(sl_test_rand() % 4) - 1;
		sl_queue_map_make(&m, workers, nodes, (int)(sl_test_rand() % 4) - 1, (uint32_t)sl_test_rand() & (uint32_t)sl_test_rand(),
			(uint16_t)(sl_test_rand() % 16));
		SL_ASSERT(m.count >= 1 && m.count <= workers);
		for (uint16_t q = 0; q < 64; q++) {
			SL_ASSERT(sl_queue_map_worker(&m, q) < workers);
			used |= 1u << sl_queue_map_worker(&m, q);
		}
		SL_EXPECT_EQ(__builtin_popcount(used), m.count);
	}
}
