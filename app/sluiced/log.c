/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <rte_log.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../lib/overlay/sl_bucket.h"
#include "../../lib/overlay/sl_text.h"

#define REASONS 256u /* format strings of the whole program, with room */
#define BURST 10
#define RATE_PER_S 1

struct reason {
	const char *fmt;
	struct sl_bucket bucket;
	uint64_t suppressed;
	uint8_t level, topic;
};

static struct {
	pthread_mutex_t lock;
	struct reason reasons[REASONS];
	enum sl_log_level level;
	bool journal;
	uint64_t suppressed;
	uint64_t unwritten; /* lines since the last that could be written */
	FILE *eal;
	char line[512]; /* of EAL, until its newline comes */
	size_t line_len;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const topic_names[SL_TOPIC_COUNT] = {
	"crypto", "link", "route", "pipeline", "sluiced"};

static uint64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* The row of a format string; the table is never full in practice, the last row is shared then. */
static struct reason *
find_reason(const char *fmt, enum sl_log_topic topic, enum sl_log_level level, uint64_t now)
{
	uint32_t h = (uint32_t)(((uintptr_t)fmt * 0x9e3779b97f4a7c15ull) >> 40);

	for (unsigned i = 0; i < REASONS; i++) {
		struct reason *r = &state.reasons[(h + i) % REASONS];

		if (r->fmt == fmt)
			return r;
		if (!r->fmt) {
			r->fmt = fmt;
			r->level = (uint8_t)level;
			r->topic = (uint8_t)topic;
			sl_bucket_init(&r->bucket, BURST, RATE_PER_S, now);
			return r;
		}
	}
	return &state.reasons[REASONS - 1];
}

/*
 * A reader that has stopped reading must not stop control: what does not fit now is left out. A pipe or socket that polls
 * writable takes a line of less than PIPE_BUF at once.
 */
static void
write_or_count(const char *text, size_t len)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) &&
		write(STDERR_FILENO, text, len) == (ssize_t)len) {
		state.unwritten = 0;
		return;
	}
	state.unwritten++;
	state.suppressed++;
}

static void
write_line(enum sl_log_level level, const char *topic, const char *text)
{
	static const int priority[] = {3, 4, 5, 6, 7};
	static const char *const names[] = {"error", "warn", "note", "info", "debug"};
	char line[1024], stamp[32], gap[64] = "";
	struct timespec t;
	struct tm tm;
	int n;

	_Static_assert(sizeof(line) <= PIPE_BUF, "written in one piece");
	if (state.unwritten)
		snprintf(gap, sizeof(gap), " (%llu lines before could not be written)",
			(unsigned long long)state.unwritten);
	if (state.journal) {
		n = snprintf(line, sizeof(line), "<%d>%s: %s%s\n", priority[level], topic, text, gap);
	} else {
		clock_gettime(CLOCK_REALTIME, &t);
		gmtime_r(&t.tv_sec, &tm);
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
		n = snprintf(line, sizeof(line), "%s.%03ldZ %-5s %s: %s%s\n", stamp,
			t.tv_nsec / 1000000, names[level], topic, text, gap);
	}
	if (n > 0)
		write_or_count(line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static void
log_hook(void *arg, enum sl_log_level level, enum sl_log_topic topic, const char *fmt, va_list ap)
{
	uint64_t now = now_us();
	struct reason *r;
	char text[512], tail[64] = "";
	int n;

	(void)arg;
	if (level > state.level || (unsigned)topic >= SL_TOPIC_COUNT)
		return;
	pthread_mutex_lock(&state.lock);
	r = find_reason(fmt, topic, level, now);
	if (!sl_bucket_take(&r->bucket, now)) {
		r->suppressed++;
		state.suppressed++;
		goto out;
	}
	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n < 0)
		goto out;
	sl_text_clean(text);
	if (r->suppressed) {
		snprintf(tail, sizeof(tail), " (%llu more like this left out before)",
			(unsigned long long)r->suppressed);
		r->suppressed = 0;
	}
	n = (int)strlen(text);
	snprintf(text + n, sizeof(text) - (size_t)n, "%s", tail);
	write_line(level, topic_names[topic], text);
out:
	pthread_mutex_unlock(&state.lock);
}

void
sl_app_log_flush(void)
{
	uint64_t now = now_us();
	char text[160];

	pthread_mutex_lock(&state.lock);
	for (unsigned i = 0; i < REASONS; i++) {
		struct reason *r = &state.reasons[i];

		/* Quiet for ten seconds: nobody else will tell. */
		if (!r->suppressed || now - r->bucket.last_us < 10000000)
			continue;
		snprintf(text, sizeof(text), "%llu more like \"%.80s\" were left out",
			(unsigned long long)r->suppressed, r->fmt);
		write_line(r->level, topic_names[r->topic], text);
		r->suppressed = 0;
	}
	pthread_mutex_unlock(&state.lock);
}

uint64_t
sl_app_log_suppressed(void)
{
	return state.suppressed;
}

/* --- EAL ------------------------------------------------------------------------------------ */

/* DPDK's levels: 1 emergency .. 8 debug. Its information is our debug: start-up is told by
 * ourselves. */
static enum sl_log_level
eal_level(void)
{
	int level = rte_log_cur_msg_loglevel();

	if (level >= 1 && level <= 4)
		return SL_LOG_ERROR;
	if (level == 5)
		return SL_LOG_WARNING;
	return SL_LOG_DEBUG;
}

static ssize_t
eal_write(void *cookie, const char *buf, size_t len)
{
	(void)cookie;
	for (size_t i = 0; i < len; i++) {
		if (buf[i] != '\n' && state.line_len < sizeof(state.line) - 1) {
			state.line[state.line_len++] = buf[i];
			continue;
		}
		if (buf[i] == '\n' && state.line_len) {
			enum sl_log_level level = eal_level();

			state.line[state.line_len] = 0;
			if (level <= state.level) {
				pthread_mutex_lock(&state.lock);
				write_line(level, "dpdk", state.line);
				pthread_mutex_unlock(&state.lock);
			}
			state.line_len = 0;
		}
	}
	return (ssize_t)len;
}

int
sl_app_log_init(enum sl_log_level level)
{
	cookie_io_functions_t io = {.write = eal_write};

	state.level = level;
	state.journal = getenv("JOURNAL_STREAM") != NULL;
	state.eal = fopencookie(NULL, "w", io);
	if (!state.eal)
		return -ENOMEM;
	setvbuf(state.eal, NULL, _IOLBF, 0);
	rte_openlog_stream(state.eal);
	sl_log_set(log_hook, NULL);
	return 0;
}

void
sl_app_log_fini(void)
{
	sl_log_set(NULL, NULL);
	rte_openlog_stream(NULL);
	if (state.eal)
		fclose(state.eal);
	state.eal = NULL;
}
