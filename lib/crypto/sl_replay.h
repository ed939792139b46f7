/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_REPLAY_H
#define SL_REPLAY_H
/*
 * Replay window of 2048 counters (link layer facts, section 6.1), split in check (before the AEAD)
 * and commit (after it has authenticated), so that a forged counter never moves the window.
 *
 * Kept as a ring of words indexed by counter, as RFC 6479 describes it, so that a jump clears words
 * and shifts nothing. The window spans 33 words at most; the answers are those of an exact window of
 * 2048. Writer: the session's owner worker alone. Readers: statistics, relaxed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_REPLAY_WINDOW 2048u
#define SL_REPLAY_WORDS 64u /* a power of two, 33 at least */

struct sl_replay {
	uint64_t highest; /* 0 at start */
	uint64_t seen[SL_REPLAY_WORDS];
};

static inline void sl_replay_init(struct sl_replay *r)
{
	memset(r, 0, sizeof(*r));
}

/* True when the counter may still be accepted. */
static inline bool sl_replay_check(const struct sl_replay *r, uint64_t counter)
{
	if (counter > r->highest)
		return true;
	if (r->highest - counter >= SL_REPLAY_WINDOW)
		return false;
	return !(r->seen[(counter / 64) % SL_REPLAY_WORDS] >> (counter % 64) & 1);
}

/*
 * Marks an authenticated counter. False when the counter has been committed since the check (the
 * same frame twice in one burst) or has fallen out of the window meanwhile; the frame is then a
 * replay.
 */
static inline bool sl_replay_commit(struct sl_replay *r, uint64_t counter)
{
	if (counter > r->highest) {
		uint64_t from = r->highest / 64, words = counter / 64 - from;

		r->highest = counter;
		if (__builtin_expect(words != 0, 0)) {
			if (words > SL_REPLAY_WORDS)
				words = SL_REPLAY_WORDS;
			for (uint64_t i = 1; i <= words; i++)
				r->seen[(from + i) % SL_REPLAY_WORDS] = 0;
		}
	} else if (!sl_replay_check(r, counter)) {
		return false;
	}
	r->seen[(counter / 64) % SL_REPLAY_WORDS] |= 1ull << (counter % 64);
	return true;
}

#ifdef __cplusplus
}
#endif
#endif
