/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CONTROL_H
#define SL_CONTROL_H
/*
 * The data plane seen from inside, control's side: dataplane.c makes and ends it, control.c takes its turns, paths.c
 * publishes outer headers and transmits, port_life.c follows links and devices, reclaim.c gives back what workers may still
 * be reading.
 * One thread (control), which need not be an lcore of EAL's.
 */
#include <rte_rcu_qsbr.h>
#include "sl_dataplane.h"
#include "sl_neigh.h"
#include "sl_path.h"
#include "sl_pmtu.h"
#include "sl_port.h"
#include "sl_worker.h"

#define SL_TRANSPORTS_MAX 32

/* What is waiting for a grace period: a queue in order of tokens. */
struct sl_reclaim_entry {
	void (*fn)(void *fn_arg, void *obj);
	void *fn_arg, *obj;
	uint64_t token;
};
struct sl_reclaim {
	struct rte_rcu_qsbr *qsbr;
	struct sl_reclaim_entry *entries; /* ring of size */
	uint32_t size, head, count;
};

/* One per row of the peer table: the path we want published there. */
struct sl_peer_path {
	bool wanted, held, dirty;
	bool mtu_changed; /* since the sink was told, or the path was set */
	uint16_t mtu;	  /* of the last path published for this address, FMP bytes; 0 = none yet */
	struct sl_addr addr;
	struct sl_neigh_hop hop; /* valid when held */
	struct sl_path *current; /* published, or NULL */
};

/* Does a worker take turns? Seen from control. */
struct sl_worker_watch {
	uint64_t polls, moved_us; /* as they were when they last rose */
	bool stalled;
	uint64_t stalls;
};

/* elephant.c: peers whose sessions are spread, and what it takes to choose them. */
#define SL_ELEPHANTS_MAX 16u
struct sl_elephant {
	uint32_t peer_id, generation;
	uint16_t worker;
	bool ending;
	uint64_t since_us, end_polls;
	uint64_t begin_frames, look_frames; /* a look: when it began, and the last one */
	unsigned end_looks;
};
struct sl_elephant_load {
	uint64_t rx, polls; /* at the last look */
	uint64_t frames;    /* since the one before */
	bool room, loaded;
	uint64_t top_frames;
	uint32_t top_peer, top_session, due_session;
	unsigned due_looks;
};
struct sl_elephants {
	struct sl_elephant list[SL_ELEPHANTS_MAX];
	unsigned count;
	struct sl_elephant_load load[SL_WORKERS_MAX];
	uint32_t *seen; /* frames of each session of the table at the last look */
	bool seen_valid;
	uint64_t due_us, begins, ends;
};

struct sl_dataplane {
	struct sl_dataplane_config config;
	struct sl_dataplane_sink sink;
	const struct sl_session_view *view;
	const struct sl_fib_ref *fib;
	struct sl_port ports[SL_PORTS_MAX];
	struct sl_dataplane_transport transports[SL_TRANSPORTS_MAX];
	struct sl_worker *workers[SL_WORKERS_MAX];
	struct sl_worker_watch watch[SL_WORKERS_MAX];
	int worker_nodes[SL_WORKERS_MAX]; /* NUMA nodes of their CPUs, -1 = unknown */
	uint64_t watch_due_us;
	struct sl_elephants elephants;
	uint16_t port_count, transport_count;
	bool started;
	struct sl_reclaim reclaim;
	struct sl_neigh *neigh;
	uint64_t now_us; /* of the call that is running, for callbacks */
	uint64_t slice_end_tsc; /* of the source that is being drained */
	unsigned first_worker;	/* of this turn */
	uint64_t neigh_due_us;
	struct sl_peer_path *paths; /* view->max_peers */
	bool paths_dirty, mtus_dirty;
	struct sl_pmtu pmtu;
	uint64_t pmtu_due_us; /* when the next report is forgotten */
	uint64_t stale_punts; /* frames of peers that were gone when control saw them */
};

/* dataplane.c: gives workers their queues. sl_dataplane_start() does it; who drives workers by hand calls it instead. */
int sl_dataplane_prepare(struct sl_dataplane *dp) SL_MUST_CHECK;

/* Puts in what is 0 for "the default", and rounds. */
void sl_dataplane_config_defaults(struct sl_dataplane_config *c);

/* Buffers of a port's pool that can be in use at once. */
uint32_t sl_dataplane_buffers_most(const struct sl_dataplane *dp, uint16_t port);

/* reclaim.c */
int sl_reclaim_init(struct sl_reclaim *r, uint16_t workers) SL_MUST_CHECK;
/* No reader may be left: runs everything. */
void sl_reclaim_fini(struct sl_reclaim *r);
void sl_reclaim_push(struct sl_reclaim *r, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);
/* Runs what is due, at most budget entries; never waits. */
unsigned sl_reclaim_run(struct sl_reclaim *r, unsigned budget);

/* watch.c: each turn, cheap: names a worker that takes none. */
void sl_workers_watch(struct sl_dataplane *dp);

/* elephant.c */
int sl_elephants_init(struct sl_elephants *e, const struct sl_session_view *view) SL_MUST_CHECK;
void sl_elephants_fini(struct sl_elephants *e);
/* Each turn, cheap: begins and ends the spreading of sessions. */
void sl_elephants_watch(struct sl_dataplane *dp);

/* port_life.c */
/* The links as they are when the workers start. */
void sl_ports_start(struct sl_dataplane *dp);
/* What has become of the ports; each turn, cheap when nothing has. */
void sl_ports_watch(struct sl_dataplane *dp);
/* Running, and its link up: paths may lead to it. */
bool sl_port_usable(const struct sl_port *p);
const char *sl_port_state_name(const struct sl_port *p);

/* paths.c */
const struct sl_dataplane_transport *sl_transport_find(const struct sl_dataplane *dp, uint8_t id);
/* Sends one complete frame on control's queue of a port; takes the mbuf. 0 or -ENOBUFS. */
int sl_control_send(struct sl_dataplane *dp, uint16_t port, struct rte_mbuf *m) SL_MUST_CHECK;
/* The neighbour machine's transmit, changed and too_big. */
/* A whole Ethernet frame of control's. 0 or -ENOBUFS, counted. */
int sl_paths_frame(struct sl_dataplane *dp, uint16_t port, const uint8_t *frame, size_t len) SL_MUST_CHECK;
void sl_paths_neigh_transmit(void *arg, uint16_t port, const uint8_t *frame, size_t len);
void sl_paths_neigh_changed(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *mac);
void sl_paths_too_big(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *udp, uint16_t mtu);
/* A port is usable, or not any more: its paths are made again, or withdrawn, by the next refresh. */
void sl_paths_port_changed(struct sl_dataplane *dp, uint16_t port);
/* Makes paths again whose neighbour has changed. */
void sl_paths_refresh(struct sl_dataplane *dp);
void sl_paths_fini(struct sl_dataplane *dp);

#endif
