/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups, due times and pools against plain ones. */
#include "link_internal.h"
#include "sl_test.h"

#include <stdlib.h>

#define PEERS 300u

SL_TEST(link_tables, due_times_against_a_scan)
{
	static struct peer peers[PEERS];
	static uint64_t want[PEERS]; /* UINT64_MAX: not filed */
	struct sl_due due = {0};

	for (unsigned i = 0; i < PEERS; i++) {
		memset(&peers[i], 0, sizeof(peers[i]));
		peers[i].due.pos = SL_DUE_NONE;
		want[i] = UINT64_MAX;
	}
	SL_EXPECT_EQ(sl_due_reserve(&due, PEERS), 0);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (unsigned)(sl_test_rand() % PEERS), filed = 0;
		uint64_t least = UINT64_MAX;

		want[i] = sl_test_rand() % 4 ? sl_test_rand() % 1000 : UINT64_MAX;
		if (sl_test_rand() % 16 == 0) {
			want[i] = UINT64_MAX;
			sl_due_remove(&due, &peers[i].due);
		} else {
			sl_due_file(&due, &peers[i].due, want[i]);
		}
		for (unsigned k = 0; k < PEERS; k++) {
			filed += want[k] != UINT64_MAX;
			if (want[k] < least)
				least = want[k];
		}
		SL_ASSERT(due.count == filed);
		SL_ASSERT(filed == 0 ? sl_due_first(&due) == NULL : sl_due_first(&due)->us == least);
		for (unsigned k = 0; k < PEERS; k += 37)
			SL_ASSERT(want[k] == UINT64_MAX ? peers[k].due.pos == SL_DUE_NONE
							: sl_due_of(due.list[peers[k].due.pos], struct peer, due) == &peers[k]);
	}
	sl_due_fini(&due);
}

SL_TEST(link_tables, several_peers_at_one_address)
{
	static struct addr_ref refs[200];
	struct sl_links l = {.hash_key = sl_test_rand()};
	struct peer p[2];

	memset(refs, 0, sizeof(refs));
	SL_EXPECT_EQ(sl_map_init(&l.addrs, 16), 0); /* long chains on purpose */
	for (unsigned i = 0; i < 200; i++) {
		struct sl_addr a = {.kind = SL_ADDR_UDP4, .udp_port = (uint16_t)(i / 2)};

		sl_addr_ref_file(&l, &refs[i], &p[i % 2], &a);
	}
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 100; i++) {
			struct sl_addr a = {.kind = SL_ADDR_UDP4, .udp_port = (uint16_t)i};
			struct addr_ref *r = sl_addr_ref_find(&l, &a);
			unsigned found = 0;

			for (; r; r = sl_addr_ref_next(r)) {
				SL_EXPECT(sl_addr_equal(&r->addr, &a));
				found++;
			}
			SL_EXPECT_EQ(found, round ? i % 2 : 2);
		}
		/* Then none of the even ports, one of the odd ones. */
		for (unsigned i = 0; i < 200 && !round; i++)
			if (i / 2 % 2 == 0 || i % 2)
				sl_addr_ref_remove(&l, &refs[i]);
	}
	sl_map_fini(&l.addrs);
}

SL_TEST(link_tables, pool_gives_zeroed_records_back_wiped)
{
	struct pool pool;
	uint8_t *r[100];

	sl_pool_init(&pool, 100, 8);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 100; i++) {
			r[i] = sl_pool_get(&pool);
			SL_ASSERT(r[i] != NULL);
			SL_EXPECT_EQ((uintptr_t)r[i] % 16, 0);
			for (unsigned b = 0; b < 100; b++)
				SL_ASSERT(r[i][b] == 0);
			memset(r[i], 0xa5, 100);
		}
		for (unsigned i = 0; i < 100; i++) {
			sl_pool_put(&pool, r[i]);
			/* Beyond the link of the free list nothing is left. */
			for (unsigned b = sizeof(void *); b < 100; b++)
				SL_ASSERT(r[i][b] == 0);
		}
	}
	sl_pool_fini(&pool);
}

SL_TEST(link_tables, counters_have_names)
{
	for (unsigned i = 0; i < SL_LINK_COUNTER_COUNT; i++) {
		const char *name = sl_link_counter_name((enum sl_link_counter)i);

		SL_EXPECT(name && strlen(name) > 3);
		for (unsigned k = 0; k < i; k++)
			SL_EXPECT(strcmp(name, sl_link_counter_name((enum sl_link_counter)k)) != 0);
	}
	SL_EXPECT_STR(sl_link_counter_name(SL_LINK_COUNTER_COUNT), "unknown");
}
