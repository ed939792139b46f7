/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers look up while control installs and retires, memory coming back after a grace period as the daemon's RCU
 * gives it: each reader says how far it has got once a turn. A key that does not belong to its index is a torn
 * publication or a reuse too early; the thread sanitizer sees the rest.
 */
#include "sl_session.h"
#include "sl_test.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define READERS 3
#define SLOTS 32
#define FREED_WANTED 1000
#define TURNS_MAX 1000000

struct waiting {
	void (*fn)(void *fn_arg, void *obj);
	void *fn_arg, *obj;
	uint64_t since;
	struct waiting *next;
};

/* A plain grace period: what was retired in turn n goes when every reader has been quiescent in a later turn. */
struct grace {
	uint64_t turn;
	uint64_t seen[READERS];
	struct waiting *list;
	uint64_t freed;
};

struct world {
	struct sl_session_table *table;
	const struct sl_session_view *view;
	struct grace grace;
	uint32_t published[SLOTS]; /* indices to look for; atomic */
	bool stop;
	uint64_t hits[READERS], misses[READERS], torn[READERS];
};

struct reader {
	struct world *w;
	int id;
};

static void
grace_reclaim(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	struct grace *g = arg;
	struct waiting *item = malloc(sizeof(*item));

	if (item == NULL)
		abort();
	*item = (struct waiting){
		fn, fn_arg, obj, __atomic_add_fetch(&g->turn, 1, __ATOMIC_SEQ_CST), g->list};
	g->list = item;
}

static void
grace_poll(struct grace *g)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < READERS; i++) {
		uint64_t seen = __atomic_load_n(&g->seen[i], __ATOMIC_ACQUIRE);

		oldest = seen < oldest ? seen : oldest;
	}
	for (struct waiting **at = &g->list; *at;) {
		struct waiting *item = *at;

		if (item->since > oldest) {
			at = &item->next;
			continue;
		}
		*at = item->next;
		item->fn(item->fn_arg, item->obj);
		free(item);
		g->freed++;
	}
}

static void
key_for(uint8_t key[SL_KEY_BYTES], uint32_t index)
{
	for (int i = 0; i < 8; i++)
		memcpy(key + 4 * i, &index, 4);
}

static void *
reader_main(void *arg)
{
	struct reader *r = arg;
	struct world *w = r->w;
	uint8_t want[SL_KEY_BYTES];

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		for (int i = 0; i < SLOTS; i++) {
			uint32_t index = __atomic_load_n(&w->published[i], __ATOMIC_RELAXED);
			struct sl_session *s = sl_session_lookup(w->view, index);
			uint64_t first;

			if (s == NULL) {
				w->misses[r->id]++;
				continue;
			}
			w->hits[r->id]++;
			key_for(want, index);
			if (memcmp(s->rx_key, want, sizeof(want)) != 0 ||
				memcmp(s->tx_key, want, sizeof(want)) != 0 ||
				s->peer_id != index % 7)
				w->torn[r->id]++;
			if (!sl_nonce_reserve(&s->tx_counter, 1, &first))
				w->torn[r->id]++;
		}
		/* Quiescent: nothing is held across this line. */
		__atomic_store_n(&w->grace.seen[r->id],
			__atomic_load_n(&w->grace.turn, __ATOMIC_SEQ_CST), __ATOMIC_RELEASE);
		sched_yield();
	}
	__atomic_store_n(&w->grace.seen[r->id], UINT64_MAX, __ATOMIC_RELEASE);
	return NULL;
}

/* False when all slots of the worker drawn are waiting for the grace period. */
static bool
replace(struct world *w, struct sl_session **session, int at)
{
	struct sl_noise_keys keys;
	uint32_t index;

	if (*session)
		sl_session_retire(w->table, *session);
	*session = NULL;
	if (sl_session_index_reserve(w->table, (uint16_t)(sl_test_rand() % 3), &index) != 0)
		return false;
	key_for(keys.send, index);
	key_for(keys.recv, index);
	*session = sl_session_install(w->table, index, index, index % 7, false, &keys, 1);
	if (*session == NULL)
		abort();
	__atomic_store_n(&w->published[at], index, __ATOMIC_RELAXED);
	return true;
}

SL_TEST(session, lookups_during_install_and_retire)
{
	static struct world w;
	struct sl_session_table_config c = {.max_sessions = 2 * SLOTS,
		.max_peers = 7,
		.workers = 3,
		.reclaim = grace_reclaim,
		.reclaim_arg = &w.grace};
	struct sl_session *session[SLOTS] = {NULL};
	struct reader readers[READERS];
	pthread_t threads[READERS];
	uint64_t hits = 0, torn = 0;

	memset(&w, 0, sizeof(w));
	w.table = sl_session_table_create(&c);
	SL_ASSERT(w.table != NULL);
	w.view = sl_session_table_view(w.table);
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){&w, i};
		SL_ASSERT(pthread_create(&threads[i], NULL, reader_main, &readers[i]) == 0);
	}
	/* Until enough have gone through a whole life: how many turns that takes is the scheduler's. */
	for (int turn = 0; turn < TURNS_MAX && w.grace.freed < FREED_WANTED; turn++) {
		int at = (int)(sl_test_rand() % SLOTS);

		if (!replace(&w, &session[at], at) || turn % 16 == 0)
			sched_yield();
		grace_poll(&w.grace);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		hits += w.hits[i];
		torn += w.torn[i];
	}
	grace_poll(&w.grace);
	SL_EXPECT(w.grace.list == NULL);
	SL_EXPECT_EQ(torn, 0);
	SL_EXPECT_GT(hits, 1000);
	SL_EXPECT_GE(w.grace.freed, FREED_WANTED);
	printf("%" PRIu64 " look-ups found a session, %" PRIu64 " sessions came and went\n", hits,
		w.grace.freed);
	sl_session_table_destroy(w.table);
}

/* --- send counters: a worker with the lease and control beside it --------------------------------------------- */

#define LEASE_RUNS 30000u

struct lease_world {
	struct sl_session_table *table;
	const struct sl_session_view *view;
	struct sl_session *s;
	uint8_t *taken; /* by counter: how often it was given out */
	uint64_t room, without;
	bool stop;
};

static void
take_note(struct lease_world *w, uint64_t first, uint32_t n)
{
	for (uint64_t c = first; c < first + n && c < w->room; c++)
		__atomic_fetch_add(&w->taken[c], 1, __ATOMIC_RELAXED);
}

static void *
lease_worker(void *arg)
{
	struct lease_world *w = arg;
	uint64_t first;

	for (unsigned i = 0; i < LEASE_RUNS; i++) {
		const uint32_t n = 1 + i % 5;
		const bool alone = sl_session_lease_take(w->view);

		w->without += !alone;
		if (sl_session_reserve_with(w->s, alone, n, 10 * n, &first))
			take_note(w, first, n);
		sl_session_lease_give(w->view, alone);
	}
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Every counter is given out once, none is left out, and no byte of the sum is lost. */
SL_TEST(session, counters_of_worker_and_control)
{
	const struct sl_session_table_config c = {.max_sessions = 16, .max_peers = 1, .workers = 1};
	const uint64_t of_worker = LEASE_RUNS / 5 * (1 + 2 + 3 + 4 + 5);
	struct lease_world w = {.room = of_worker + 50 * LEASE_RUNS};
	struct sl_noise_keys keys = {0};
	uint64_t counter, of_control = 0, wrong = 0;
	pthread_t thread;
	uint32_t index;

	w.table = sl_session_table_create(&c);
	w.taken = calloc(1, w.room);
	SL_ASSERT(w.table && w.taken);
	w.view = sl_session_table_view(w.table);
	SL_ASSERT(w.view->lease != NULL);
	SL_ASSERT(sl_session_index_reserve(w.table, 0, &index) == 0);
	w.s = sl_session_install(w.table, index, 1, 0, false, &keys, 1);
	SL_ASSERT(w.s);
	SL_ASSERT(pthread_create(&thread, NULL, lease_worker, &w) == 0);
	while (!__atomic_load_n(&w.stop, __ATOMIC_ACQUIRE) && of_control < 50 * LEASE_RUNS) {
		if (!sl_session_reserve(w.view, w.s, 10, &counter))
			break;
		take_note(&w, counter, 1);
		of_control++;
	}
	pthread_join(thread, NULL);
	SL_EXPECT_EQ(sl_nonce_used(&w.s->tx_counter), of_worker + of_control);
	SL_EXPECT_EQ(w.s->tx_bytes, 10 * (of_worker + of_control));
	for (uint64_t i = 0; i < of_worker + of_control; i++)
		wrong += w.taken[i] != 1;
	SL_EXPECT_EQ(wrong, 0);
	/* How often the worker had it is the scheduler's affair: control may lose its CPU with it. In the end it is free. */
	SL_EXPECT(sl_session_lease_take(w.view));
	sl_session_lease_give(w.view, true);
	printf("%" PRIu64 " by the worker (%" PRIu64 " times without the lease), %" PRIu64 " by control\n", of_worker,
		w.without, of_control);
	sl_session_table_destroy(w.table);
	free(w.taken);
}

/* Several workers: no lease to be had, and nobody waits for one. */
SL_TEST(session, no_lease_for_several)
{
	const struct sl_session_table_config c = {.max_sessions = 16, .max_peers = 1, .workers = 2};
	struct sl_session_table *t = sl_session_table_create(&c);

	SL_ASSERT(t);
	SL_EXPECT(sl_session_table_view(t)->lease == NULL);
	SL_EXPECT(!sl_session_lease_take(sl_session_table_view(t)));
	sl_session_table_destroy(t);
}
