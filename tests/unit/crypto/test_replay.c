/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_replay.h"
#include "sl_test.h"

/*
 * The oracle is the table of the link layer facts, section 6.1, taken literally: bit d of the map
 * stands for the counter highest - d, and a jump shifts the map, one place at a time.
 */
struct oracle {
	uint64_t highest;
	bool map[SL_REPLAY_WINDOW];
};

static bool oracle_check(const struct oracle *o, uint64_t c)
{
	if (c > o->highest)
		return true;
	if (o->highest - c >= SL_REPLAY_WINDOW)
		return false;
	return !o->map[o->highest - c];
}

static void oracle_update(struct oracle *o, uint64_t c)
{
	if (c > o->highest) {
		uint64_t jump = c - o->highest;

		if (jump >= SL_REPLAY_WINDOW) {
			memset(o->map, 0, sizeof(o->map));
		} else {
			memmove(o->map + jump, o->map, SL_REPLAY_WINDOW - jump);
			memset(o->map, 0, jump);
		}
		o->highest = c;
		o->map[0] = true;
	} else {
		o->map[o->highest - c] = true;
	}
}

struct pair {
	struct sl_replay r;
	struct oracle o;
};

static void start(struct pair *p)
{
	memset(&p->r, 0xff, sizeof(p->r));
	sl_replay_init(&p->r);
	memset(&p->o, 0, sizeof(p->o));
}

/* One frame: check, then (as if the AEAD had authenticated it) commit. */
static void feed(struct pair *p, uint64_t c)
{
	bool want = oracle_check(&p->o, c), got = sl_replay_check(&p->r, c);

	if (got != want)
		sl_test_fail(__FILE__, __LINE__,
			"check %" PRIu64 " with highest %" PRIu64 ": %d, want %d", c, p->o.highest,
			got, want);
	got = sl_replay_commit(&p->r, c);
	if (got != want)
		sl_test_fail(__FILE__, __LINE__,
			"commit %" PRIu64 " with highest %" PRIu64 ": %d, want %d", c, p->o.highest,
			got, want);
	if (want)
		oracle_update(&p->o, c);
	SL_EXPECT(p->r.highest == p->o.highest);
}

/* Asks about everything near the window and far from it, without changing it. */
static void compare_all(const struct pair *p)
{
	uint64_t high = p->o.highest;

	for (uint64_t d = 0; d <= 3 * SL_REPLAY_WINDOW && d <= high; d++) {
		bool got = sl_replay_check(&p->r, high - d), want = oracle_check(&p->o, high - d);

		if (got != want)
			sl_test_fail(__FILE__, __LINE__,
				"highest %" PRIu64 " - %" PRIu64 ": %d, want %d", high, d, got,
				want);
	}
	for (uint64_t d = 1; d <= 5000 && high + d > high; d++)
		SL_EXPECT(sl_replay_check(&p->r, high + d));
}

SL_TEST(replay, counter_zero_first)
{
	struct pair p;

	start(&p);
	SL_EXPECT(sl_replay_check(&p.r, 0));
	SL_EXPECT(sl_replay_commit(&p.r, 0));
	SL_EXPECT(!sl_replay_check(&p.r, 0));
	SL_EXPECT(!sl_replay_commit(&p.r, 0));
}

SL_TEST(replay, boundary_of_the_facts)
{
	struct sl_replay r;

	sl_replay_init(&r);
	SL_EXPECT(sl_replay_commit(&r, 2047));
	SL_EXPECT(sl_replay_check(&r, 0));
	SL_EXPECT(sl_replay_commit(&r, 2048));
	SL_EXPECT(!sl_replay_check(&r, 0));
	SL_EXPECT(!sl_replay_commit(&r, 0));
	SL_EXPECT(sl_replay_check(&r, 1));
	SL_EXPECT(sl_replay_commit(&r, 1));
	SL_EXPECT(!sl_replay_commit(&r, 1));
}

SL_TEST(replay, check_changes_nothing)
{
	struct sl_replay r, before;

	sl_replay_init(&r);
	for (unsigned i = 0; i < 200; i++)
		SL_EXPECT(sl_replay_commit(&r, i * 3));
	before = r;
	for (unsigned i = 0; i < 10000; i++)
		(void)sl_replay_check(&r, sl_test_rand() >> sl_test_rand() % 64);
	SL_EXPECT_MEM(&r, &before, sizeof(r));
}

SL_TEST(replay, refused_commit_changes_nothing)
{
	struct sl_replay r, before;

	sl_replay_init(&r);
	for (unsigned i = 0; i < 5000; i++)
		SL_EXPECT(sl_replay_commit(&r, i));
	before = r;
	for (unsigned i = 0; i < 5000; i++)
		SL_EXPECT(!sl_replay_commit(&r, i));
	SL_EXPECT_MEM(&r, &before, sizeof(r));
}

SL_TEST(replay, the_same_frame_twice_in_one_burst)
{
	struct sl_replay r;

	sl_replay_init(&r);
	SL_EXPECT(sl_replay_check(&r, 77));
	SL_EXPECT(sl_replay_check(&r, 77));
	SL_EXPECT(sl_replay_commit(&r, 77));
	SL_EXPECT(!sl_replay_commit(&r, 77));
	/* Passed the check, and then another frame of the burst moved the window beyond it. */
	SL_EXPECT(sl_replay_check(&r, 78));
	SL_EXPECT(sl_replay_commit(&r, 78 + SL_REPLAY_WINDOW));
	SL_EXPECT(!sl_replay_commit(&r, 78));
}

/* From every offset inside a word, every jump around the multiples that matter to a ring of words.
 */
SL_TEST(replay, jumps)
{
	static const uint64_t around[] = {
		0, 64, 128, 1984, 2048, 2112, 4032, 4096, 4160, 8192, 1ull << 32};
	static const uint64_t bases[] = {0, 4096 - 64, 1ull << 32, UINT64_MAX - (1ull << 33)};
	struct pair p;

	for (unsigned b = 0; b < 4; b++) {
		for (unsigned offset = 0; offset < 64; offset += 9) {
			for (unsigned a = 0; a < sizeof(around) / sizeof(around[0]); a++) {
				for (int d = -66; d <= 66; d += d < -3 || d > 2 ? 21 : 1) {
					uint64_t first = bases[b] + 3000 + offset,
						 next = first + around[a] + d;

					start(&p);
					for (unsigned i = 0; i < 2100; i += 1 + i % 5)
						feed(&p, first - i);
					feed(&p, next);
					compare_all(&p);
					feed(&p, next);
					feed(&p, next - 2047);
					feed(&p, next - 2048);
					feed(&p, next - 2047);
					if (sl_test_failed())
						return;
				}
			}
		}
	}
}

SL_TEST(replay, end_of_the_counter_space)
{
	struct pair p;

	start(&p);
	feed(&p, UINT64_MAX - 5000);
	for (uint64_t d = 4998; d > 0; d -= 3)
		feed(&p, UINT64_MAX - d);
	feed(&p, UINT64_MAX);
	feed(&p, UINT64_MAX);
	feed(&p, UINT64_MAX - 2047);
	feed(&p, UINT64_MAX - 2048);
	feed(&p, 0);
	feed(&p, 1);
	compare_all(&p);
	SL_EXPECT(p.r.highest == UINT64_MAX);

	start(&p);
	feed(&p, 5);
	feed(&p, UINT64_MAX);
	compare_all(&p);
	feed(&p, 5);
}

/* A ring of 4096 bits must not mistake a counter for the one 4096 (or 2048) before it. */
SL_TEST(replay, aliases)
{
	struct pair p;

	start(&p);
	for (uint64_t c = 0; c < 3 * 4096; c += 2)
		feed(&p, c);
	compare_all(&p);
	for (uint64_t c = 3 * 4096; c < 5 * 4096; c += 2)
		feed(&p, c + 1);
	compare_all(&p);
}

/* A mostly ascending stream with losses, reordering, replays and now and then a leap. */
SL_TEST(replay, random_traffic)
{
	struct pair p;

	for (unsigned run = 0; run < 60; run++) {
		uint64_t next =
			run % 3 == 2 ? UINT64_MAX - sl_test_rand() % 60000 : sl_test_rand() % 5000;
		unsigned spread = 1u << (1 + sl_test_rand() % 13);

		start(&p);
		for (unsigned i = 0; i < 3000; i++) {
			uint64_t r = sl_test_rand(), c = next;

			switch (r % 16) {
			case 0: /* a loss */
				c = next + (r >> 8) % spread;
				break;
			case 1: /* late, or a replay */
			case 2:
			case 3:
				c = next - (r >> 8) % spread;
				break;
			case 4: /* at the edge */
				c = p.o.highest - 2040 - (r >> 8) % 16;
				break;
			case 5:
				c = r % 512 == 5 ? next + 64 * ((r >> 16) % 130) : next;
				break;
			default:
				break;
			}
			feed(&p, c);
			if (c >= next && c - next < 1u << 20 && c < UINT64_MAX)
				next = c + 1;
		}
		compare_all(&p);
		if (sl_test_failed())
			return;
	}
}

/* Anything at all. */
SL_TEST(replay, random_counters)
{
	struct pair p;

	for (unsigned run = 0; run < 200; run++) {
		unsigned shift = sl_test_rand() % 56;

		start(&p);
		for (unsigned i = 0; i < 400; i++)
			feed(&p, sl_test_rand() >> (shift + sl_test_rand() % 8));
		compare_all(&p);
		if (sl_test_failed())
			return;
	}
}

/* One in `each` frames comes exactly `depth` frames late; the rest in order. */
static void late_by(uint64_t first, unsigned depth, unsigned each)
{
	struct pair p;
	unsigned refused = 0, late = 0;

	start(&p);
	for (uint64_t c = first; c < first + 20000; c++) {
		if (c % each)
			feed(&p, c);
		if (c >= first + depth && (c - depth) % each == 0) {
			bool accepted = sl_replay_check(&p.r, c - depth);

			late++;
			refused += !accepted;
			feed(&p, c - depth);
			feed(&p, c - depth); /* and once more */
		}
	}
	SL_EXPECT_GE(late, 17000 / each);
	/* c itself has been seen before c - depth comes, so the distance is the depth. */
	SL_EXPECT_EQ(refused, depth < SL_REPLAY_WINDOW ? 0 : late);
	compare_all(&p);
}

/* Any order in which no frame is overtaken by more than `depth` others. */
static void shuffled(uint64_t first, unsigned depth)
{
	static uint64_t window[2049 + 1]; /* depth + 1 of them */
	struct pair p;
	uint64_t next = first, accepted = 0, fed = 0;
	unsigned waiting = 0;

	start(&p);
	while (fed < 10000) {
		unsigned pick;

		while (waiting <= depth)
			window[waiting++] = next++;
		/* In ascending order; none leaves that would be more than `depth` ahead of the oldest. */
		for (pick = waiting - 1; window[pick] - window[0] > depth; pick--)
			;
		pick = (unsigned)(sl_test_rand() % (pick + 1));
		accepted += sl_replay_check(&p.r, window[pick]);
		feed(&p, window[pick]);
		fed++;
		memmove(window + pick, window + pick + 1, (waiting - pick - 1) * sizeof(window[0]));
		waiting--;
	}
	if (depth < SL_REPLAY_WINDOW)
		SL_EXPECT_EQ(accepted, fed);
	else
		SL_EXPECT_GE(accepted, fed / 2);
	compare_all(&p);
}

SL_TEST(replay, shuffles_of_every_depth)
{
	static const unsigned depths[] = {1, 4, 32, 2047, 2048, 2049};
	static const uint64_t firsts[] = {0, 63, 1ull << 32, SL_REPLAY_WINDOW - 1};

	for (unsigned d = 0; d < sizeof(depths) / sizeof(depths[0]); d++)
		for (unsigned f = 0; f < sizeof(firsts) / sizeof(firsts[0]); f++) {
			late_by(firsts[f], depths[d], 7);
			late_by(firsts[f], depths[d], depths[d] + 3);
			shuffled(firsts[f], depths[d]);
			if (sl_test_failed())
				return;
		}
}

/* What lies a whole window, or a whole ring of words, behind the top is refused, seen or not; just inside, only what was seen. */
SL_TEST(replay, behind_the_top)
{
	for (uint64_t top = 5000; top < 5000 + 130; top++) {
		struct pair p;

		start(&p);
		for (uint64_t c = 0; c <= top; c += 1 + (c % 3 == 0)) /* two of three */
			feed(&p, c);
		feed(&p, top);
		SL_EXPECT(!sl_replay_check(&p.r, top - 2048));
		SL_EXPECT(!sl_replay_check(&p.r, top - 2049));
		SL_EXPECT(!sl_replay_check(&p.r, top - 4096));
		SL_EXPECT(!sl_replay_check(&p.r, top - 4097));
		for (uint64_t d = 2040; d < 4200; d++)
			feed(&p, top - d);
		SL_EXPECT(sl_replay_check(&p.r, top + 2048));
		SL_EXPECT(sl_replay_check(&p.r, top + 4096));
		compare_all(&p);
	}
}
