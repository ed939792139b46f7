/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog of workers: each counts its polls, also when it has nothing to do, so that one whose count stands still hangs in
 * a driver, has lost its CPU, or was stopped. Control names it once and again when it moves; the daemon stops telling the
 * service manager that all is well (sl_dataplane_workers_stalled()).
 */
#include "../overlay/sl_log.h"
#include "sl_control.h"

#define LOOK_US 250000u
#define STALL_US 1000000u

static void
worker_watch(struct sl_dataplane *dp, unsigned i)
{
	const struct sl_worker *w = dp->workers[i];
	struct sl_worker_watch *s = &dp->watch[i];
	const uint64_t polls = __atomic_load_n(&w->counters.polls, __ATOMIC_RELAXED);

	if (polls != s->polls || s->moved_us == 0) {
		if (s->stalled)
			sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE, "worker %u (lcore %u) goes on after %.1f s", i, w->lcore,
				(double)(dp->now_us - s->moved_us) / 1e6);
		s->stalled = false;
		s->polls = polls;
		s->moved_us = dp->now_us;
	} else if (!s->stalled && dp->now_us - s->moved_us >= STALL_US) {
		s->stalled = true;
		s->stalls++;
		sl_log(SL_LOG_ERROR, SL_TOPIC_PIPELINE, "worker %u (lcore %u) stands still for %.1f s", i, w->lcore,
			(double)(dp->now_us - s->moved_us) / 1e6);
	}
}

void
sl_workers_watch(struct sl_dataplane *dp)
{
	/* A pause of control's own is not the workers' fault. */
	const bool late = dp->now_us > dp->watch_due_us + LOOK_US;

	if (!dp->started || dp->now_us < dp->watch_due_us)
		return;
	dp->watch_due_us = dp->now_us + LOOK_US;
	for (unsigned i = 0; i < dp->config.workers; i++) {
		if (late && !dp->watch[i].stalled)
			dp->watch[i].moved_us = 0;
		worker_watch(dp, i);
	}
}

uint16_t
sl_dataplane_workers_stalled(const struct sl_dataplane *dp)
{
	uint16_t n = 0;

	for (unsigned i = 0; i < dp->config.workers; i++)
		n = (uint16_t)(n + dp->watch[i].stalled);
	return n;
}
