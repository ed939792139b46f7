/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One session's frames come in at two workers at once, each frame at both: the owner does what transit does (check, open,
 * commit), the other one hands over through a ring as the data plane does, and both try nothing else. Built with the thread
 * sanitizer. Prints TAP; the seed is an argument or the time.
 *
 * Control, a third thread, changes sessions as a rekey does: the next one is published while frames of the one before still
 * come, and goes on being received on both.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sl_nonce.h"
#include "sl_replay.h"

#define FRAMES 100000u
#define SESSIONS 4u	/* a rekey after so many frames each */
#define RING 1024u	/* a power of two */
#define DEPTH 2000u	/* of the shuffle of either worker: less than the window */

struct frame {
	uint32_t session;
	uint64_t counter;
};

/* One producer, one consumer. */
static struct ring {
	struct frame at[RING];
	uint64_t head, tail;
} ring;

static struct session {
	struct sl_replay replay; /* the owner's alone */
	struct sl_nonce tx;	 /* everybody's */
	uint8_t *accepted;	 /* by counter; the owner's */
} *published[SESSIONS];		 /* release by control, acquire by workers */
static uint64_t done, refused, twice, sealed[2];
static bool over;

static uint64_t seed;
static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* Frames 0 .. FRAMES - 1 of each session, shuffled in blocks of DEPTH: none comes that much late. */
struct source {
	uint64_t random, block[DEPTH], next;
	uint32_t session;
	unsigned count;
};

static bool source_take(struct source *s, struct frame *f)
{
	unsigned pick;

	if (!s->count && s->next == FRAMES) {
		if (++s->session == SESSIONS)
			return false;
		s->next = 0;
	}
	if (!s->count)
		while (s->count < DEPTH && s->next < FRAMES)
			s->block[s->count++] = s->next++;
	pick = (unsigned)(next_random(&s->random) % s->count);
	*f = (struct frame){s->session, s->block[pick]};
	s->block[pick] = s->block[--s->count];
	return true;
}

static struct session *session_of(uint32_t n)
{
	struct session *s;

	while (!(s = __atomic_load_n(&published[n], __ATOMIC_ACQUIRE)))
		sched_yield();
	return s;
}

/* The owner's: as sl_stage_in.h does it, one frame at a time. */
static void receive(const struct frame *f)
{
	struct session *s = session_of(f->session);

	if (!sl_replay_check(&s->replay, f->counter) || !sl_replay_commit(&s->replay, f->counter)) {
		refused++;
		return;
	}
	twice += s->accepted[f->counter];
	s->accepted[f->counter] = 1;
	done++;
}

static void seal(unsigned worker, uint32_t session)
{
	uint64_t first;

	if (sl_nonce_reserve(&session_of(session)->tx, 1, &first))
		sealed[worker]++;
}

static void *owner(void *arg)
{
	struct source *mine = arg;
	struct frame f;
	bool more = true;

	for (;;) {
		uint64_t tail = ring.tail, head = __atomic_load_n(&ring.head, __ATOMIC_ACQUIRE);
		bool last = __atomic_load_n(&over, __ATOMIC_ACQUIRE);

		for (unsigned n = 0; n < 32 && tail != head; n++, tail++)
			receive(&ring.at[tail % RING]);
		__atomic_store_n(&ring.tail, tail, __ATOMIC_RELEASE);
		for (unsigned n = 0; n < 32 && more; n++) {
			more = source_take(mine, &f);
			if (more) {
				receive(&f);
				seal(0, f.session);
			}
		}
		if (!more && last && tail == __atomic_load_n(&ring.head, __ATOMIC_ACQUIRE))
			return NULL;
	}
}

static void *other(void *arg)
{
	struct source *mine = arg;
	struct frame f;

	while (source_take(mine, &f)) {
		uint64_t head = ring.head;

		while (head - __atomic_load_n(&ring.tail, __ATOMIC_ACQUIRE) == RING)
			sched_yield();
		ring.at[head % RING] = f;
		__atomic_store_n(&ring.head, head + 1, __ATOMIC_RELEASE);
		seal(1, f.session);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *control(void *arg)
{
	struct session *s = arg;

	for (uint32_t i = 0; i < SESSIONS; i++) {
		sl_replay_init(&s[i].replay);
		sl_nonce_init(&s[i].tx);
		__atomic_store_n(&published[i], &s[i], __ATOMIC_RELEASE);
		/* The next key before this one is used up. */
		while (i + 1 < SESSIONS && sl_nonce_used(&s[i].tx) < FRAMES / 2)
			sched_yield();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct session *s = calloc(SESSIONS, sizeof(*s));
	struct source *sources = calloc(2, sizeof(*sources));
	pthread_t thread[3];
	uint64_t missing = 0, want = (uint64_t)SESSIONS * FRAMES;

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	printf("# seed %llu\n", (unsigned long long)seed);
	if (!s || !sources)
		return 1;
	for (unsigned i = 0; i < SESSIONS; i++) {
		s[i].accepted = calloc(FRAMES, 1);
		if (!s[i].accepted)
			return 1;
	}
	sources[0].random = seed;
	sources[1].random = seed ^ 0x9e3779b97f4a7c15ull;
	if (pthread_create(&thread[0], NULL, control, s) || pthread_create(&thread[1], NULL, owner, &sources[0]) ||
		pthread_create(&thread[2], NULL, other, &sources[1]))
		return 1;
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < SESSIONS; i++)
		for (uint64_t c = 0; c < FRAMES; c++)
			missing += !s[i].accepted[c];
	printf("1..3\n");
	printf("%sok 1 - of %llu counters at two workers none was accepted twice\n", twice ? "not " : "",
		(unsigned long long)want);
	/* The workers run apart by more than a window now and then: the later copy is refused, never the first. */
	printf("%sok 2 - each was accepted once: %llu, and its copy refused: %llu\n",
		missing || done != want || refused != want ? "not " : "", (unsigned long long)done,
		(unsigned long long)refused);
	printf("%sok 3 - each reserved a send counter of its own: %llu and %llu\n",
		sealed[0] + sealed[1] == 2 * want ? "" : "not ", (unsigned long long)sealed[0], (unsigned long long)sealed[1]);
	for (unsigned i = 0; i < SESSIONS; i++)
		free(s[i].accepted);
	free(sources);
	free(s);
	return 0;
}
