/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to ports while workers run: links go down and come back, devices ask for a reset, devices go.
 *
 *	running   workers use it; its link is looked at once a second, and at once when the driver says so
 *	leaving   its queues are switched off and no path leads to it; a grace period until every worker has seen that
 *	left      no worker can touch it: control closes the device (or resets it)
 *	gone      no device; tried again after a second, later each time, up to half a minute
 *
 * A link that is down keeps its device and its sessions: paths over it are withdrawn, so that workers drop
 * by that reason instead of filling a dead queue, and come back with it. All of it is control's; workers see two flags a
 * queue (sl_worker.h). Closing and opening block control for as long as the driver takes; workers of other ports go on.
 */
#include <errno.h>
#include "../overlay/sl_log.h"
#include "sl_control.h"

#define LOOK_UP_US 1000000u  /* between looks at a link that is up */
#define LOOK_DOWN_US 250000u /* and at one that is down */
#define TELL_US 1000000u     /* a link is down for so long before the node routes around it */
#define RETRY_US 1000000u
#define RETRY_MAX_US 30000000u

bool
sl_port_usable(const struct sl_port *p)
{
	return p->state == SL_PORT_RUNNING && p->link_up;
}

const char *
sl_port_state_name(const struct sl_port *p)
{
	if (p->state != SL_PORT_RUNNING)
		return p->resetting ? "resetting" : "removed";
	return p->link_up ? "up" : "down";
}

/* --- what workers see ---------------------------------------------------------------------------------------------- */

static void
queues_switch(struct sl_dataplane *dp, const struct sl_port *p, bool on)
{
	for (unsigned i = 0; i < dp->config.workers; i++) {
		struct sl_worker *w = dp->workers[i];

		w->tx[p->index].ethdev = p->ethdev;
		__atomic_store_n(&w->tx[p->index].present, on, __ATOMIC_RELEASE);
		for (unsigned q = 0; q < w->rx_count; q++) {
			if (w->rx[q].port != p->index)
				continue;
			w->rx[q].ethdev = p->ethdev;
			__atomic_store_n(&w->rx[q].off, !on, __ATOMIC_RELEASE);
		}
	}
}

/* --- link ---------------------------------------------------------------------------------------------------------- */

static void
tell(struct sl_dataplane *dp, struct sl_port *p, bool up)
{
	if (p->link_told == up)
		return;
	p->link_told = up;
	if (dp->sink.link)
		dp->sink.link(dp->sink.arg, p->index, up);
}

static void
link_set(struct sl_dataplane *dp, struct sl_port *p, bool up)
{
	if (p->link_up == up)
		return;
	p->link_up = up;
	if (up) {
		sl_log(SL_LOG_NOTICE, SL_TOPIC_PIPELINE, "port %s: link is up after %.1f s", p->config.name,
			(double)(dp->now_us - p->changed_us) / 1e6);
		/* Others may have forgotten us, and we them. */
		sl_neigh_port_renew(dp->neigh, p->index, p->mac, dp->now_us);
		dp->neigh_due_us = 0;
	} else {
		p->link_downs++;
		sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE, "port %s: link is down", p->config.name);
	}
	p->changed_us = dp->now_us;
	sl_paths_port_changed(dp, p->index);
	if (up)
		tell(dp, p, true);
}

/* --- devices that go and come ------------------------------------------------------------------------------------- */

static void
left(void *arg, void *port)
{
	struct sl_port *p = port;

	(void)arg;
	p->state = SL_PORT_LEFT;
}

static void
leave(struct sl_dataplane *dp, struct sl_port *p, bool reset)
{
	sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE, "port %s: %s", p->config.name,
		reset ? "the device asks for a reset" : "the device is gone");
	if (reset)
		p->resets++;
	else
		p->removals++;
	p->state = SL_PORT_LEAVING;
	p->resetting = reset;
	p->link_up = false;
	p->changed_us = dp->now_us;
	queues_switch(dp, p, false);
	sl_paths_port_changed(dp, p->index);
	sl_paths_refresh(dp); /* before the grace period begins */
	sl_reclaim_push(&dp->reclaim, left, NULL, p);
}

/* Workers may use the device again. */
static void
enter(struct sl_dataplane *dp, struct sl_port *p)
{
	sl_parse_local_mac(&p->local, p->mac);
	p->state = SL_PORT_RUNNING;
	p->resetting = false;
	p->returns++;
	sl_steer_apply(dp, p);
	queues_switch(dp, p, true);
	sl_log(SL_LOG_NOTICE, SL_TOPIC_PIPELINE, "port %s: the device is back", p->config.name);
	p->next_look_us = dp->now_us + LOOK_DOWN_US;
	link_set(dp, p, sl_port_link(p) == 1);
}

static void
try_open(struct sl_dataplane *dp, struct sl_port *p)
{
	const char *error = NULL;
	int rc = sl_port_check(p->config.device, &error);

	if (rc == 0)
		rc = sl_port_device_open(p, dp->config.workers, &error);
	if (rc == 0) {
		enter(dp, p);
		return;
	}
	if (rc != -ENODEV)
		sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE, "port %s: %s: %s", p->config.name, error ? error : "device",
			strerror(-rc));
	/* An interface costs nothing to look for. */
	p->retry_us = p->interface[0] || rc == -ENODEV ? RETRY_US : RTE_MIN(2 * p->retry_us, RETRY_MAX_US);
	p->next_look_us = dp->now_us + p->retry_us;
}

static void
after_leaving(struct sl_dataplane *dp, struct sl_port *p)
{
	const char *error = NULL;
	int rc;

	p->retry_us = RETRY_US;
	if (p->resetting) {
		rc = sl_port_device_reset(p, dp->config.workers, &error);
		if (rc == 0) {
			enter(dp, p);
			return;
		}
		sl_log(SL_LOG_ERROR, SL_TOPIC_PIPELINE, "port %s: %s: %s", p->config.name, error, strerror(-rc));
		p->resetting = false;
	}
	sl_port_device_close(p, true);
	p->state = SL_PORT_GONE;
	p->next_look_us = dp->now_us + RETRY_US;
}

static void
look_at_link(struct sl_dataplane *dp, struct sl_port *p)
{
	const int up = sl_port_link(p);

	if (up == -ENODEV) {
		leave(dp, p, false);
		return;
	}
	link_set(dp, p, up == 1);
	sl_steer_watch(dp, p);
	p->next_look_us = dp->now_us + (up == 1 ? LOOK_UP_US : LOOK_DOWN_US);
}

static void
port_watch(struct sl_dataplane *dp, struct sl_port *p)
{
	const uint32_t events = p->events ? __atomic_exchange_n(&p->events, 0, __ATOMIC_ACQUIRE) : 0;

	switch (p->state) {
	case SL_PORT_RUNNING:
		if (events & (SL_PORT_EVENT_REMOVED | SL_PORT_EVENT_RESET))
			leave(dp, p, !(events & SL_PORT_EVENT_REMOVED));
		else if ((events & SL_PORT_EVENT_LINK) || dp->now_us >= p->next_look_us)
			look_at_link(dp, p);
		break;
	case SL_PORT_LEFT:
		after_leaving(dp, p);
		break;
	case SL_PORT_GONE:
		if (dp->now_us >= p->next_look_us)
			try_open(dp, p);
		break;
	default:
		break;
	}
	if (!sl_port_usable(p) && dp->now_us - p->changed_us >= TELL_US)
		tell(dp, p, false);
}

void
sl_ports_start(struct sl_dataplane *dp)
{
	dp->now_us = sl_dataplane_now_us();
	for (unsigned i = 0; i < dp->port_count; i++) {
		struct sl_port *p = &dp->ports[i];

		p->state = SL_PORT_RUNNING;
		p->link_told = true;
		p->link_up = sl_port_link(p) == 1;
		p->changed_us = dp->now_us;
		p->next_look_us = dp->now_us + LOOK_DOWN_US;
		if (!p->link_up)
			sl_log(SL_LOG_WARNING, SL_TOPIC_PIPELINE, "port %s: link is down", p->config.name);
	}
}

void
sl_ports_watch(struct sl_dataplane *dp)
{
	for (unsigned i = 0; i < dp->port_count; i++)
		port_watch(dp, &dp->ports[i]);
}
