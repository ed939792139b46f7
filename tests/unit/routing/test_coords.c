/* SPDX-License-Identifier: BSD-3-Clause */
/* The coordinate cache: routing facts, section 8. */
#include "fake.h"
#include "coords.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct sl_limbo limbo; /* frees at once */
static const uint64_t key[2] = {0x123456789abcdef1ull, 0xfedcba9876543211ull};

static struct sl_node_addr wide(uint32_t n)
{
	struct sl_node_addr a = {{0}};

	a.bytes[0] = 0x80;
	memcpy(a.bytes + 4, &n, 4);
	return a;
}

static int put(struct sl_coords *c, uint32_t n, unsigned root, uint16_t mtu, uint32_t now_s)
{
	struct sl_node_addr wire[3];

	wire[0] = wide(n);
	wire[1] = fake_addr(2);
	wire[2] = fake_addr(root);
	return sl_coords_insert(c, &wire[0], wire[0].bytes, 3, mtu, now_s);
}

static const struct sl_coord_data *get(const struct sl_coords *c, uint32_t n, uint32_t now_s)
{
	struct sl_node_addr a = wide(n);
	uint32_t id, serial;

	return sl_coords_lookup(c, a.bytes, sl_node_hash(a.bytes, c->key), now_s, &id, &serial);
}

static void use(struct sl_coords *c, uint32_t n, uint32_t now_s)
{
	struct sl_node_addr a = wide(n);
	uint32_t id, serial;

	if (sl_coords_lookup(c, a.bytes, sl_node_hash(a.bytes, c->key), now_s, &id, &serial))
		sl_coord_use(c, id, now_s);
}

static struct sl_coords make(uint32_t capacity)
{
	struct sl_coords c;
	struct sl_node_addr self = fake_addr(5);

	SL_EXPECT_EQ(sl_coords_init(&c, capacity, 300, &self, key, &limbo), 0);
	return c;
}

SL_TEST(coords, lifetime)
{
	struct sl_coords c = make(8);

	SL_EXPECT_EQ(put(&c, 1, 0, 0, 1000), 0);
	SL_EXPECT(get(&c, 1, 1300)); /* equal is still valid */
	SL_EXPECT(!get(&c, 1, 1301));
	use(&c, 1, 1300);
	SL_EXPECT(get(&c, 1, 1600));
	SL_EXPECT(!get(&c, 1, 1601)); /* looking did not renew it */
	use(&c, 1, 1601);	      /* nor can an expired one be used */
	SL_EXPECT(!get(&c, 1, 1601));
	SL_EXPECT_EQ(put(&c, 1, 0, 0, 1601), 0);
	SL_EXPECT(get(&c, 1, 1901));
	SL_EXPECT_EQ(c.count, 1);
	(void)sl_coords_work(&c, 100, true, 1901);
	SL_EXPECT_EQ(c.count, 1);
	(void)sl_coords_work(&c, 100, true, 1902);
	SL_EXPECT_EQ(c.count, 0);
	sl_coords_fini(&c);
}

SL_TEST(coords, what_is_refused)
{
	struct sl_coords c = make(8);
	struct sl_node_addr a = wide(1), wire[SL_PATH_MAX + 1];

	for (unsigned i = 0; i <= SL_PATH_MAX; i++)
		wire[i] = wide(i);
	SL_EXPECT_EQ(sl_coords_insert(&c, &a, wire[1].bytes, 0, 0, 1), -EINVAL);
	SL_EXPECT_EQ(sl_coords_insert(&c, &a, wire[0].bytes, 3, 0, 1),
		-EINVAL); /* entry 0 is not the key */
	SL_EXPECT_EQ(sl_coords_insert(&c, &wire[0], wire[0].bytes, SL_PATH_MAX + 1, 0, 1), -EINVAL);
	SL_EXPECT_EQ(sl_coords_insert(&c, &wire[0], wire[0].bytes, SL_PATH_MAX, 0, 1), 0);
	SL_EXPECT_EQ(sl_coords_insert(&c, &wire[0], wire[0].bytes, 72, 0, 1), 0);
	/* A refused one leaves the older alone. */
	SL_EXPECT_EQ(sl_coords_insert(&c, &wire[0], wire[1].bytes, 3, 0, 1), -EINVAL);
	SL_EXPECT_EQ(get(&c, 0, 1)->len, 72);
	sl_coords_fini(&c);
}

SL_TEST(coords, replaced_and_path_mtu)
{
	struct sl_coords c = make(8);
	struct sl_node_addr a = wide(1);
	uint32_t id, serial, serial2;

	SL_EXPECT_EQ(put(&c, 1, 0, 1280, 10), 0);
	(void)sl_coords_lookup(&c, a.bytes, sl_node_hash(a.bytes, c.key), 10, &id, &serial);
	SL_EXPECT_EQ(put(&c, 1, 0, 0, 11), 0); /* the same: kept, renewed */
	SL_EXPECT_EQ(c.entries[id].serial, serial);
	SL_EXPECT_EQ(put(&c, 1, 1, 0, 11), 0); /* other coordinates: path MTU stays, serial moves */
	SL_EXPECT_EQ(get(&c, 1, 11)->path_mtu, 1280);
	(void)sl_coords_lookup(&c, a.bytes, sl_node_hash(a.bytes, c.key), 11, &id, &serial2);
	SL_EXPECT_NE(serial, serial2);
	SL_EXPECT_EQ(c.count, 1);
	SL_EXPECT(sl_coords_remove(&c, &a));
	SL_EXPECT(!sl_coords_remove(&c, &a));
	SL_EXPECT_NE(c.entries[id].serial, serial2);
	sl_coords_fini(&c);
}

SL_TEST(coords, expired_then_least_used_goes)
{
	struct sl_coords c = make(4);

	for (uint32_t i = 0; i < 4; i++)
		SL_EXPECT_EQ(put(&c, i, 0, 0, 100 + i), 0);
	use(&c, 0, 200);
	SL_EXPECT_EQ(put(&c, 4, 0, 0, 201), 0);
	SL_EXPECT(get(&c, 0, 201) && !get(&c, 1, 201) && get(&c, 2, 201) && get(&c, 3, 201) &&
		  get(&c, 4, 201));
	SL_EXPECT_EQ(c.evicted, 1);
	SL_EXPECT_EQ(c.count, 4);
	/* 2 and 3 are expired at 450; 2 is the older. */
	SL_EXPECT_EQ(put(&c, 5, 0, 0, 450), 0);
	SL_EXPECT(!get(&c, 2, 403) && get(&c, 0, 450) && get(&c, 4, 450));
	sl_coords_fini(&c);
}

SL_TEST(coords, invalidation)
{
	struct sl_coords c = make(64);
	struct sl_node_addr through[3] = {wide(40), fake_addr(5), fake_addr(0)},
			    zero = fake_addr(0);

	for (uint32_t i = 0; i < 10; i++)
		SL_EXPECT_EQ(put(&c, i, i % 2 ? 1 : 0, 0, 1), 0);
	SL_EXPECT_EQ(sl_coords_insert(&c, &through[0], through[0].bytes, 3, 0, 1), 0);
	sl_coords_invalidate(&c, true, NULL);
	SL_EXPECT_EQ(c.count, 10);
	SL_EXPECT(!get(&c, 40, 1));
	sl_coords_invalidate(&c, false, &zero);
	SL_EXPECT_EQ(c.count, 5);
	SL_EXPECT(get(&c, 4, 1) && !get(&c, 5, 1));
	sl_coords_fini(&c);
}

/* Large caches are swept in steps; what is learned meanwhile stays. */
SL_TEST(coords, invalidation_in_steps)
{
	struct sl_coords c = make(100000);
	struct sl_node_addr zero = fake_addr(0), one = fake_addr(1);
	unsigned steps = 0;
	uint32_t left = 0;

	for (uint32_t i = 0; i < 60000; i++)
		SL_EXPECT_EQ(put(&c, i, i % 3, 0, 1), 0);
	sl_coords_invalidate(&c, false, &zero);
	SL_EXPECT_GT(c.count, 20000); /* not all at once */
	SL_EXPECT_EQ(put(&c, 70000, 2, 0, 1), 0);
	sl_coords_invalidate(&c, false, &one); /* a second event while the first is under way */
	SL_EXPECT_EQ(put(&c, 70001, 2, 0, 1), 0);
	while (sl_coords_work(&c, 1000, false, 1))
		steps++;
	SL_EXPECT_GT(steps, 10);
	for (uint32_t i = 0; i < 60000; i++)
		left += get(&c, i, 1) != NULL;
	SL_EXPECT_EQ(left, 0); /* each is wrong by one of the two */
	SL_EXPECT(!get(&c, 70000, 1) && get(&c, 70001, 1));
	SL_EXPECT_EQ(c.count, 1);
	sl_coords_fini(&c);
}

/* Against a plain array, small enough that everything collides and is evicted. */
SL_TEST(coords, oracle)
{
	enum { N = 400, CAP = 64 };
	struct sl_coords c = make(CAP);
	struct {
		bool in;
		uint32_t used;
		uint8_t root;
	} plain[N] = {0};
	uint32_t now = 1000;

	for (unsigned round = 0; round < 20000; round++) {
		uint32_t n = (uint32_t)(sl_test_rand() % N), count = 0, victim = N;
		uint8_t root = (uint8_t)(sl_test_rand() % 4);

		now++; /* no two uses in one second: least used is unique */
		if (sl_test_rand() % 3 == 0) {
			bool live = plain[n].in && now - plain[n].used <= 300;
			const struct sl_coord_data *d = get(&c, n, now);

			SL_EXPECT_EQ(live, d != NULL);
			if (d)
				SL_EXPECT_EQ(d->path[0].bytes[0], plain[n].root);
			if (live) {
				use(&c, n, now);
				plain[n].used = now;
			}
			continue;
		}
		for (uint32_t i = 0; i < N; i++) {
			if (!plain[i].in)
				continue;
			count++;
			if (victim == N || plain[i].used < plain[victim].used)
				victim = i;
		}
		if (!plain[n].in && count == CAP)
			plain[victim].in = false;
		plain[n].in = true;
		plain[n].used = now;
		plain[n].root = root;
		SL_EXPECT_EQ(put(&c, n, root, 0, now), 0);
		if (sl_test_failed())
			break;
	}
	sl_coords_fini(&c);
}

/* The table takes its full capacity: nothing is lost to collisions. */
SL_TEST(coords, full_capacity)
{
	enum { CAP = 50000 };
	struct sl_coords c = make(CAP);
	uint32_t found = 0;

	for (uint32_t i = 0; i < CAP; i++)
		SL_EXPECT_EQ(put(&c, i, 0, 0, 1), 0);
	SL_EXPECT_EQ(c.count, CAP);
	SL_EXPECT_EQ(c.evicted, 0);
	for (uint32_t i = 0; i < CAP; i++)
		found += get(&c, i, 1) != NULL;
	SL_EXPECT_EQ(found, CAP);
	/* And then holds it. */
	for (uint32_t i = CAP; i < 2 * CAP; i++)
		SL_EXPECT_EQ(put(&c, i, 0, 0, i), 0);
	SL_EXPECT_EQ(c.count, CAP);
	sl_coords_fini(&c);
}

/* Readers while control inserts, replaces and removes; memory goes when all readers have passed by.
 */
struct shared {
	struct sl_coords c;
	uint64_t done;
	uint64_t turns[3]; /* of each reader: even between look-ups */
	uint64_t wrong;
};

struct reader {
	struct shared *s;
	unsigned index;
	uint64_t random;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct shared *s = r->s;

	while (!__atomic_load_n(&s->done, __ATOMIC_ACQUIRE)) {
		for (unsigned i = 0; i < 64; i++) {
			uint32_t n, id, serial;
			struct sl_node_addr a;
			const struct sl_coord_data *d;

			r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
			n = (uint32_t)(r->random >> 40) % 2000;
			a = wide(n);
			d = sl_coords_lookup(
				&s->c, a.bytes, sl_node_hash(a.bytes, s->c.key), 5, &id, &serial);
			if (!d)
				continue;
			/* Whole and of that key. */
			if (!sl_node_same(&d->key, &a) || d->len != 3 ||
				!sl_node_same(&d->path[2], &a))
				__atomic_fetch_add(&s->wrong, 1, __ATOMIC_RELAXED);
			sl_coord_use(&s->c, id, 5 + (uint32_t)(r->random & 1));
		}
		__atomic_store_n(&s->turns[r->index], s->turns[r->index] + 1,
			__ATOMIC_RELEASE); /* quiescent */
	}
	return NULL;
}

struct pending {
	struct pending *next;
	void (*fn)(void *, void *);
	void *fn_arg, *obj;
	uint64_t after[3];
};
static struct pending *waiting;
static struct shared *shared;

static void reclaim(void *arg, void (*fn)(void *, void *), void *fn_arg, void *obj)
{
	struct pending *p = malloc(sizeof(*p));

	(void)arg;
	*p = (struct pending){.next = waiting, .fn = fn, .fn_arg = fn_arg, .obj = obj};
	for (unsigned i = 0; i < 3; i++)
		p->after[i] = __atomic_load_n(&shared->turns[i], __ATOMIC_ACQUIRE) + 1;
	waiting = p;
}

static void collect(bool all)
{
	for (struct pending **at = &waiting; *at;) {
		struct pending *p = *at;
		bool over = true;

		for (unsigned i = 0; i < 3; i++)
			over &= __atomic_load_n(&shared->turns[i], __ATOMIC_ACQUIRE) > p->after[i];
		if (!over && !all) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		p->fn(p->fn_arg, p->obj);
		free(p);
	}
}

SL_TEST(coords, readers_without_locks)
{
	static struct shared s;
	struct sl_limbo deferred = {.reclaim = reclaim};
	struct sl_node_addr self = fake_addr(5);
	struct reader readers[3];
	pthread_t threads[3];

	memset(&s, 0, sizeof(s));
	shared = &s;
	SL_ASSERT(sl_coords_init(&s.c, 1000, 300, &self, key, &deferred) == 0);
	for (unsigned i = 0; i < 3; i++) {
		readers[i] = (struct reader){&s, i, sl_test_rand()};
		SL_ASSERT(pthread_create(&threads[i], NULL, read_on, &readers[i]) == 0);
	}
	for (unsigned round = 0; round < 60000; round++) {
		uint32_t n = (uint32_t)(sl_test_rand() % 2000);
		struct sl_node_addr a = wide(n);

		if (sl_test_rand() % 4)
			SL_EXPECT_EQ(put(&s.c, n, (unsigned)(sl_test_rand() % 3), 0, 5), 0);
		else
			(void)sl_coords_remove(&s.c, &a);
		if (round % 256 == 0) {
			sl_limbo_flush(&deferred);
			collect(false);
		}
	}
	__atomic_store_n(&s.done, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 3; i++)
		(void)pthread_join(threads[i], NULL);
	sl_limbo_flush(&deferred);
	collect(true);
	SL_EXPECT_EQ(s.wrong, 0);
	sl_coords_fini(&s.c);
	free(deferred.batch);
}
