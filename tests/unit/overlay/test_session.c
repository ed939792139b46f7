/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_session.h"
#include "sl_test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct sl_noise_keys
keys_of(uint8_t fill)
{
	struct sl_noise_keys k;

	memset(k.send, fill, sizeof(k.send));
	memset(k.recv, fill ^ 0xff, sizeof(k.recv));
	memset(k.h, 0, sizeof(k.h));
	return k;
}

static struct sl_session_table *
table_of(uint32_t max_sessions, uint16_t workers)
{
	struct sl_session_table_config c = {
		.max_sessions = max_sessions, .max_peers = 4, .workers = workers};

	return sl_session_table_create(&c);
}

SL_TEST(session, install_lookup_retire)
{
	struct sl_session_table *t = table_of(16, 1);
	const struct sl_session_view *v;
	struct sl_noise_keys keys = keys_of(0x11);
	struct sl_session *s;
	uint32_t index;

	SL_ASSERT(t != NULL);
	v = sl_session_table_view(t);
	SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index), 0);
	SL_EXPECT(sl_session_lookup(v, index) == NULL);
	s = sl_session_install(t, index, 0xdeadbeef, 3, true, &keys, 123456);
	SL_ASSERT(s != NULL);
	SL_EXPECT_EQ(s->notify, SL_NOTIFY_FIRST_FRAME);
	SL_EXPECT_EQ((uintptr_t)s % SL_CACHE_LINE, 0);
	SL_EXPECT(sl_session_lookup(v, index) == s);
	for (int bit = 0; bit < 32; bit++)
		SL_EXPECT(sl_session_lookup(v, index ^ 1u << bit) == NULL);
	SL_EXPECT_EQ(s->rx_index, index);
	SL_EXPECT_EQ(s->tx_index, 0xdeadbeef);
	SL_EXPECT_EQ(s->peer_id, 3);
	SL_EXPECT_EQ(s->owner, 0);
	SL_EXPECT_EQ(s->is_initiator, 1);
	SL_EXPECT_EQ(s->origin_us, 123456);
	SL_EXPECT_MEM(s->rx_key, keys.recv, 32);
	SL_EXPECT_MEM(s->tx_key, keys.send, 32);
	SL_EXPECT_EQ(sl_nonce_used(&s->tx_counter), 0);
	SL_EXPECT(sl_replay_check(&s->replay, 0));
	SL_EXPECT_EQ(s->mmp.frames, 0);
	SL_EXPECT_EQ(sl_session_count(t), 1);
	sl_session_retire(t, s);
	SL_EXPECT(sl_session_lookup(v, index) == NULL);
	SL_EXPECT_EQ(sl_session_count(t), 0);
	sl_session_table_destroy(t);
}

SL_TEST(session, bad_configurations)
{
	static const struct {
		uint32_t sessions, peers;
		uint16_t workers;
	} bad[] = {{0, 1, 1}, {16, 0, 1}, {16, 1, 0}, {16, 1, 129}, {(1 << 20) + 1, 1, 1}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sl_session_table_config c = {.max_sessions = bad[i].sessions,
			.max_peers = bad[i].peers,
			.workers = bad[i].workers};

		errno = 0;
		SL_EXPECT(sl_session_table_create(&c) == NULL);
		SL_EXPECT_EQ(errno, EINVAL);
	}
	sl_session_table_destroy(NULL);
}

SL_TEST(session, wrong_calls_change_nothing)
{
	struct sl_session_table *t = table_of(16, 2);
	struct sl_noise_keys keys = keys_of(1);
	struct sl_session *s;
	uint32_t index;

	SL_EXPECT_EQ(sl_session_index_reserve(t, 2, &index), -EINVAL);
	errno = 0;
	SL_EXPECT(sl_session_install(t, 5, 0, 0, false, &keys, 0) == NULL);
	SL_EXPECT_EQ(errno, EINVAL);
	SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index), 0);
	SL_EXPECT(sl_session_install(t, index ^ 0x80000000u, 0, 0, false, &keys, 0) == NULL);
	s = sl_session_install(t, index, 0, 0, false, &keys, 0);
	SL_ASSERT(s != NULL);
	SL_EXPECT(sl_session_install(t, index, 0, 0, false, &keys, 0) == NULL);
	sl_session_index_release(t, index); /* has a session: stays */
	SL_EXPECT(sl_session_lookup(sl_session_table_view(t), index) == s);
	sl_session_retire(t, s);
	sl_session_retire(t, s);
	SL_EXPECT_EQ(sl_session_count(t), 0);
	sl_session_table_destroy(t);
}

/* Every number of workers: the index names its owner, each has its share, the share ends with -ENOSPC and comes back. */
SL_TEST(session, owners)
{
	for (uint16_t workers = 1; workers <= 128; workers++) {
		uint32_t max_sessions = 200, each = (max_sessions + workers - 1u) / workers,
			 total = 0;
		struct sl_session_table *t = table_of(max_sessions, workers);
		const struct sl_session_view *v = sl_session_table_view(t);
		uint32_t slots = v->slot_mask + 1, *all = calloc(slots, sizeof(*all));
		uint8_t *slot_seen = calloc(slots, 1);

		SL_EXPECT_GE(v->owner_mask + 1, workers);
		SL_EXPECT_LT(v->owner_mask, 128);
		SL_EXPECT_LE(v->owner_mask, v->slot_mask);
		for (uint16_t w = 0; w < workers; w++) {
			uint32_t got = 0, index;

			while (sl_session_index_reserve(t, w, &index) == 0) {
				SL_EXPECT_EQ(sl_session_owner(v, index), w);
				SL_EXPECT_EQ(slot_seen[index & v->slot_mask]++, 0);
				all[total++] = index;
				got++;
			}
			SL_EXPECT_EQ(sl_session_index_reserve(t, w, &index), -ENOSPC);
			SL_EXPECT_GE(got, each);
		}
		SL_EXPECT_EQ(total, slots);
		for (uint32_t i = 0; i < total; i++)
			sl_session_index_release(t, all[i]);
		for (uint32_t i = 0; i < each; i++)
			SL_EXPECT_EQ(
				sl_session_index_reserve(t, (uint16_t)(workers - 1), &all[0]), 0);
		free(slot_seen);
		free(all);
		sl_session_table_destroy(t);
	}
}

/* One slot free over and over: never the value it had last, and all bits above the slot move. */
SL_TEST(session, indices_are_fresh)
{
	struct sl_session_table *t = table_of(1 << 20, 1);
	const struct sl_session_view *v = sl_session_table_view(t);
	uint32_t index, last = 0, ones = 0, zeros = 0;

	SL_EXPECT_EQ(v->slot_mask, (1 << 20) - 1);
	/* All but one reserved, so that the table has no choice of slot: 12 random bits are left. */
	for (uint32_t i = 0; i < 1 << 20; i++)
		SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &last), 0);
	sl_session_index_release(t, last);
	for (int i = 0; i < 20000; i++) {
		SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index), 0);
		SL_EXPECT_EQ(index & v->slot_mask, last & v->slot_mask);
		SL_EXPECT_NE(index, last);
		sl_session_index_release(t, index);
		ones |= index;
		zeros |= ~index;
		last = index;
	}
	SL_EXPECT_EQ(ones & ~v->slot_mask, ~v->slot_mask);
	SL_EXPECT_EQ(zeros & ~v->slot_mask, ~v->slot_mask);
	sl_session_table_destroy(t);
}

/* The slot of the next session cannot be told from those before: all come up about equally often. */
SL_TEST(session, slots_are_random)
{
	struct sl_session_table *t = table_of(16, 1);
	unsigned count[16] = {0};
	uint32_t index;

	for (int i = 0; i < 16000; i++) {
		SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index), 0);
		count[index & 15]++;
		sl_session_index_release(t, index);
	}
	for (int i = 0; i < 16; i++) {
		SL_EXPECT_GT(count[i], 800);
		SL_EXPECT_LT(count[i], 1200);
	}
	sl_session_table_destroy(t);
}

/* --- the way back of memory -------------------------------------------------------------------------------------- */

struct deferred {
	void (*fn[64])(void *fn_arg, void *obj);
	void *fn_arg[64], *obj[64];
	unsigned n;
};

static void
defer(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj)
{
	struct deferred *d = arg;

	d->fn[d->n] = fn;
	d->fn_arg[d->n] = fn_arg;
	d->obj[d->n++] = obj;
}

static bool
is_zero(const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)p)[i])
			return false;
	return true;
}

SL_TEST(session, grace_period_then_wiped)
{
	struct deferred d = {.n = 0};
	struct sl_session_table_config c = {.max_sessions = 16,
		.max_peers = 1,
		.workers = 1,
		.reclaim = defer,
		.reclaim_arg = &d};
	struct sl_session_table *t = sl_session_table_create(&c);
	const struct sl_session_view *v = sl_session_table_view(t);
	struct sl_noise_keys keys = keys_of(0x5a);
	struct sl_session *s[16];
	uint32_t index[16], more;

	for (int i = 0; i < 16; i++) {
		SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index[i]), 0);
		s[i] = sl_session_install(t, index[i], 0, 0, false, &keys, 0);
		SL_ASSERT(s[i] != NULL);
	}
	for (int i = 0; i < 8; i++)
		sl_session_retire(t, s[i]);
	SL_EXPECT_EQ(d.n, 8);
	for (int i = 0; i < 16; i++) {
		SL_EXPECT(sl_session_lookup(v, index[i]) == (i < 8 ? NULL : s[i]));
		SL_EXPECT_MEM(s[i]->tx_key, keys.send, 32); /* a reader may still seal with it */
	}
	SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &more), -ENOSPC);
	for (unsigned i = 0; i < d.n; i++)
		d.fn[i](d.fn_arg[i], d.obj[i]);
	for (int i = 0; i < 16; i++)
		SL_EXPECT_EQ(is_zero(s[i], sizeof(*s[i])), i < 8);
	SL_EXPECT_EQ(sl_session_count(t), 8);
	for (int i = 0; i < 8; i++)
		SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &more), 0);
	SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &more), -ENOSPC);
	sl_session_table_destroy(t);
}

/* Does the 32-byte key stand anywhere in this process's writable anonymous memory near the arena? */
static bool
arena_holds(const struct sl_session *any, uint32_t slots, const uint8_t *key)
{
	const uint8_t *at = (const uint8_t *)any;

	return memmem(at, slots * sizeof(*any), key, SL_KEY_BYTES) != NULL;
}

SL_TEST(session, no_key_left_in_the_arena)
{
	struct sl_session_table *t = table_of(64, 1);
	uint32_t slots = sl_session_table_view(t)->slot_mask + 1;
	struct sl_session *s[64] = {NULL}, *lowest;
	struct sl_noise_keys keys[64];
	uint32_t index;

	for (uint32_t i = 0; i < slots; i++) {
		keys[i] = keys_of((uint8_t)(i + 1));
		SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index), 0);
		s[i] = sl_session_install(t, index, 0, 0, false, &keys[i], 0);
	}
	lowest = s[0];
	for (uint32_t i = 1; i < slots; i++)
		lowest = s[i] < lowest ? s[i] : lowest;
	SL_ASSERT(lowest != NULL);
	for (uint32_t i = 0; i < slots; i++) {
		SL_EXPECT(arena_holds(lowest, slots, keys[i].send));
		SL_EXPECT(arena_holds(lowest, slots, keys[i].recv));
		sl_session_retire(t, s[i]);
		SL_EXPECT(!arena_holds(lowest, slots, keys[i].send));
		SL_EXPECT(!arena_holds(lowest, slots, keys[i].recv));
	}
	SL_EXPECT(is_zero(lowest, slots * sizeof(*lowest)));
	sl_session_table_destroy(t);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static size_t
resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long total = 0, resident = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu %lu", &total, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static bool
not_dumped(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool inside = false, found = false;

	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, " dd") != NULL; /* do not dump */
	}
	fclose(f);
	return found;
}

SL_TEST(session, thousand_sessions_are_small)
{
	size_t before = resident_bytes(), after;
	struct sl_session_table_config c = {.max_sessions = 1000, .max_peers = 1000, .workers = 3};
	struct sl_session_table *t = sl_session_table_create(&c);
	struct sl_noise_keys keys = keys_of(7);
	uint32_t index;

	SL_ASSERT(t != NULL);
	for (uint32_t i = 0; i < 1000; i++) {
		SL_EXPECT_EQ(sl_session_index_reserve(t, (uint16_t)(i % 3), &index), 0);
		SL_EXPECT(sl_session_install(t, index, i, i, false, &keys, 0) != NULL);
	}
	after = resident_bytes();
	printf("1,000 sessions: table %zu bytes, resident grew by %zu bytes, one session %zu "
	       "bytes\n",
		sl_session_table_bytes(t), after - before, sizeof(struct sl_session));
	SL_EXPECT_LT(sl_session_table_bytes(t), 4 << 20);
	sl_session_table_destroy(t);
}

SL_TEST(session, arena_is_not_dumped)
{
	struct sl_session_table_config c = {.max_sessions = 16, .max_peers = 16, .workers = 1};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sl_session_table *t;
	struct sl_noise_keys keys = keys_of(7);
	uint32_t index;
	void *known = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool told;

	SL_ASSERT(known != MAP_FAILED);
	SL_EXPECT_EQ(madvise(known, page, MADV_DONTDUMP), 0);
	told = not_dumped(known);
	munmap(known, page);
	if (!told)
		SL_SKIP("no /proc/self/smaps that tells what is left out of core files (an emulator's does not)");
	t = sl_session_table_create(&c);
	SL_ASSERT(t != NULL);
	SL_EXPECT_EQ(sl_session_index_reserve(t, 0, &index), 0);
	SL_EXPECT(sl_session_install(t, index, 0, 0, false, &keys, 0) != NULL);
	SL_EXPECT(not_dumped(sl_session_lookup(sl_session_table_view(t), index)));
	sl_session_table_destroy(t);
}

SL_TEST(session, big_table_takes_little_until_used)
{
	size_t before = resident_bytes(), after;
	struct sl_session_table *t = table_of(1 << 20, 8);

	SL_ASSERT(t != NULL);
	after = resident_bytes();
	SL_EXPECT_GT(sl_session_table_bytes(t), 512u << 20);
	/* The books (free list, states) are touched, the arena is not. A sanitizer's own memory is not counted against it. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	SL_EXPECT_LT(after - before, 32u << 20);
#endif
	printf("1,048,576 sessions: resident grew by %zu bytes at create\n", after - before);
	sl_session_table_destroy(t);
}

SL_TEST(session, peer_rows)
{
	struct sl_session_table_config c = {.max_sessions = 16, .max_peers = 100, .workers = 1};
	struct sl_session_table *t = sl_session_table_create(&c);
	const struct sl_session_view *v = sl_session_table_view(t);

	SL_EXPECT_EQ(v->max_peers, 100);
	for (uint32_t i = 0; i < 100; i++) {
		struct sl_peer_row *row = sl_session_peer(v, i);

		SL_EXPECT_EQ((uintptr_t)row % SL_CACHE_LINE, 0);
		SL_EXPECT(row->tx == NULL && row->path == NULL && row->generation == 0);
	}
	sl_session_table_destroy(t);
}
