/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_DATAPLANE_H
#define SL_DATAPLANE_H
/*
 * The data plane: ports, workers, and control's door to both.
 *
 * Workers (one lcore each) poll a receive queue of every port they serve and take each frame from receive to transmit
 * in one pass (transit.c). What is not theirs goes to control through bounded rings: handshake packets, opened link
 * messages, datagrams without a next hop, neighbour traffic. A full ring drops and counts.
 * Control transmits on a queue of its own per port.
 *
 * Threads: everything here is control's, after EAL is up, except what says otherwise. Order: create, port_add for
 * each port, transport_add, start, poll ... , stop, destroy.
 * Who frees a frame: docs/pipeline.md and the comment that opens transit.c.
 */
#include "../crypto/sl_aead.h"
#include "../overlay/sl_session.h"
#include "../routing/sl_fib.h"
#include "sl_ifaddr.h"
#include "sl_verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_PORTS_MAX 16
#define SL_NAME_SIZE 64
#define SL_PORT_DESCRIPTORS 1024u /* of a queue, unless a port or its profile says otherwise */
#define SL_POOL_MBUFS 16384u	  /* of a port's pool */
#define SL_POOL_CACHE 256u	  /* buffers that an lcore keeps of a pool */

struct sl_dataplane;

/* What may steer a port's frames to workers: the first of these that the device can do. sl_steer.h. */
enum sl_steering {
	SL_STEERING_AUTO, /* flow rules that can be read back, else RSS, else the workers' hand-over */
	SL_STEERING_FLOW, /* flow rules, also those that the driver cannot show; a warning where it takes none */
	SL_STEERING_RSS,  /* no rules */
	SL_STEERING_OFF,  /* nothing: one receive queue (where the device has the choice), and hand-over */
};

struct sl_port_config {
	char name[SL_NAME_SIZE];   /* the operator's name for it */
	char device[256];	   /* EAL device: PCI address, or a virtual device with arguments as --vdev takes it */
	uint16_t mtu;		   /* IP MTU of the link, bytes; 0 = the device's */
	uint16_t vlan;		   /* our frames' VLAN id, 0 = untagged */
	uint16_t rx_descriptors, tx_descriptors; /* 0 = 1024 */
	/*
	 * Take UDP checksums of received frames for good (IPv4 header checksums are looked at all the same). For virtual links (veth under af_packet) whose other end
	 * leaves them to a NIC that is not there: such frames are sound but their checksum field is not.
	 */
	bool ignore_rx_checksum;
	uint32_t rx_workers; /* a bit for each worker that may receive from it; 0 = those on its NUMA node, else all */
	enum sl_steering steering;
	struct sl_ifaddr addrs[SL_PORT_ADDRS_MAX];
	unsigned addr_count;
	struct sl_static_route routes[SL_ROUTES_MAX];
	unsigned route_count;
};

/* May the frames of one session be opened and sealed by several workers? sl_spread.h, elephant.c. */
enum sl_elephant_mode {
	SL_ELEPHANT_OFF,
	SL_ELEPHANT_AUTO, /* those of a session that is most of what a loaded worker has, while another has room */
	SL_ELEPHANT_ON,	  /* those of every session that is a quarter of what its worker has */
	SL_ELEPHANT_BY_HAND, /* by sl_dataplane_spread() alone */
};

struct sl_dataplane_config {
	uint16_t workers;	/* 1 .. 32; each needs an lcore that is not control's */
	uint32_t mbufs;		/* per pool; 0 = SL_POOL_MBUFS */
	uint16_t mbuf_data_size; /* bytes of data room, 0 = for the largest mtu; less: larger frames come in several buffers */
	uint32_t ring_size;	/* worker -> control, entries; 0 = 1024; rounded up to a power of two */
	uint32_t hop_cache_entries; /* per worker, 0 = 4096 */
	uint16_t burst;		/* frames a poll, 0 = 32, at most 64 */
	const struct sl_aead_backend *aead;
	enum sl_elephant_mode elephant;
	bool mdns;		/* ports hear multicast DNS (sink.mdns), and open their multicast filter for it */
	bool measure_cycles;	/* count TSC cycles: one read a poll and a queue, three a burst */
	/*
	 * Sleep this long, microseconds, after each empty poll once SL_IDLE_POLLS in a row were empty; 0 = never. For cores
	 * that workers share with others.
	 */
	uint32_t idle_sleep_us;
};

/*
 * What control gets out of the rings; called from sl_dataplane_poll() on control's thread. Bytes are valid during the
 * call. Link plaintext begins with the message type.
 */
struct sl_dataplane_sink {
	void *arg;
	void (*handshake)(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len);
	void (*message)(void *arg, uint32_t rx_index, uint32_t peer_id, uint8_t flags, const uint8_t *msg, size_t len);
	/* A datagram that the worker could not forward itself: local, no hop known. May be rewritten by the callee. */
	void (*datagram)(void *arg, uint32_t peer_id, uint8_t flags, uint8_t *msg, size_t len);
	/* A datagram that was forwarded and shows coordinates: msg is its head, as many bytes as carry them. */
	void (*learn)(void *arg, const uint8_t *msg, size_t len);
	/* Larger than the outgoing link: msg is its head. */
	void (*too_big)(void *arg, const uint8_t *msg, size_t len, uint16_t mtu);
	void (*first_frame)(void *arg, uint32_t rx_index, uint8_t flags);
	void (*roamed)(void *arg, uint32_t rx_index, const struct sl_addr *from);
	/* A beacon of the raw Ethernet transport: 32-byte x-only key. */
	void (*beacon)(void *arg, const struct sl_addr *from, const uint8_t *xonly);
	/*
	 * A port cannot be used any more, and has not been for a second (up false), or can be again: link, reset, removal. Peers
	 * behind it: sl_dataplane_peer_port(). Their paths are withdrawn and published again without anybody's doing.
	 */
	void (*link)(void *arg, uint16_t port, bool up);
	/* The path to a peer has another size than before: FMP bytes that fit in a packet, of the path as it is published now. */
	void (*path_mtu)(void *arg, uint32_t peer_id, uint16_t mtu);
	/* A STUN answer or punch packet, while sl_dataplane_traversal() wants them. Nothing about it is checked. */
	void (*traversal)(void *arg, const struct sl_addr *from, const uint8_t *packet, size_t len);
	/* A message of multicast DNS to its group, with config.mdns. from: its address and UDP port; what it says is not checked. */
	void (*mdns)(void *arg, uint16_t port, const struct sl_addr *from, const uint8_t *message, size_t len);
};

/*
 * How large the pools of so many ports must be that none runs dry while every ring, queue, burst and cache is full:
 * config.mbufs for a data plane that is still to be made; SL_POOL_MBUFS at least. descriptors: the most that a queue will have,
 * 0 = SL_PORT_DESCRIPTORS.
 */
uint32_t sl_dataplane_buffers_plan(const struct sl_dataplane_config *config, unsigned ports, uint32_t descriptors);

/* view and fib are read by workers; both outlive the data plane. NULL and errno. */
struct sl_dataplane *sl_dataplane_create(const struct sl_dataplane_config *config, const struct sl_session_view *view,
	const struct sl_fib_ref *fib, const struct sl_dataplane_sink *sink) SL_MUST_CHECK;
void sl_dataplane_destroy(struct sl_dataplane *dp);
/*
 * Ordinary memory that it comes to hold, bytes: of each peer (outer headers, neighbour), of each slot of the session table, of each
 * worker (the next hops it remembers); EAL's memory holds the pools and the workers' rings besides. An estimate from sizes. Any thread.
 */
struct sl_dataplane_capacity {
	size_t peer, session, worker, total;
	size_t eal_peer, eal_worker; /* of EAL's memory: of each peer and worker, of each worker (with its rings) */
};
void sl_dataplane_capacity(const struct sl_dataplane_config *config, uint32_t max_peers, uint32_t slots,
	struct sl_dataplane_capacity *out);

/*
 * Brings a port up (device created if virtual, queues, offloads as the device has them). Returns the port's index or
 * -errno; *error points to static text that names the step which failed.
 */
int sl_dataplane_port_add(struct sl_dataplane *dp, const struct sl_port_config *port, const char **error) SL_MUST_CHECK;

/* A UDP transport: its port number on the given addresses of all ports (any = all), or raw Ethernet on one port. */
struct sl_dataplane_transport {
	uint8_t id;	/* sl_addr.transport */
	uint8_t kind;	/* SL_ADDR_UDP4 = UDP (both families), SL_ADDR_ETH */
	uint16_t mtu;	/* largest FMP packet, bytes */
	/* UDP: */
	uint16_t udp_port;
	bool bind_any4, bind_any6;
	struct sl_ifaddr bind; /* when neither any flag is set */
	/* Ethernet: */
	uint16_t port; /* port index */
	uint16_t ethertype; /* 0x2121 */
};
int sl_dataplane_transport_add(struct sl_dataplane *dp, const struct sl_dataplane_transport *t) SL_MUST_CHECK;

/* Launches the workers. 0 or -errno. */
int sl_dataplane_start(struct sl_dataplane *dp) SL_MUST_CHECK;
/* Stops workers and ports; returns when all are idle. */
void sl_dataplane_stop(struct sl_dataplane *dp);

/*
 * Control's turn: drains at most `budget` entries of each source, and no more than fit into 0.75 ms; answers neighbours,
 * reclaims. Returns the number of entries handled. now_us: the clock below.
 */
unsigned sl_dataplane_poll(struct sl_dataplane *dp, unsigned budget, uint64_t now_us);
/* Monotonic microseconds from the TSC, the same clock that workers stamp with. Any thread. */
uint64_t sl_dataplane_now_us(void);

/* Sends one FMP packet (or STUN, or punch) from control. 0, -EHOSTUNREACH (no route or neighbour; resolution is started), -ENOBUFS, -EMSGSIZE. */
int sl_dataplane_transmit(struct sl_dataplane *dp, const struct sl_addr *to, const uint8_t *packet, size_t len,
	uint64_t now_us) SL_MUST_CHECK;
/* STUN answers and punch packets to our UDP transports: for the sink, or (as from the start) dropped by the workers. */
void sl_dataplane_traversal(struct sl_dataplane *dp, bool wanted);
/* FMP bytes of a packet to addr that its port carries, 0 = not even a header; UINT16_MAX while there is no way to it. */
uint16_t sl_dataplane_link_mtu(struct sl_dataplane *dp, const struct sl_addr *to, uint64_t now_us);
/* Raw Ethernet beacon with our key on a transport. */
int sl_dataplane_beacon(struct sl_dataplane *dp, uint8_t transport, const uint8_t xonly[32]) SL_MUST_CHECK;
/*
 * A message of multicast DNS to the group of a family (4, 6) on one port, from the port's first IPv4 or link-local IPv6 address, hop
 * limit 255. 0, -EADDRNOTAVAIL (the port has none), -EMSGSIZE (over its MTU), -ENOBUFS.
 */
int sl_dataplane_mdns(struct sl_dataplane *dp, uint16_t port, uint8_t family, const uint8_t *message, size_t len) SL_MUST_CHECK;
/*
 * Publishes the outer headers towards addr as the path of a peer, now or as soon as the neighbour is resolved, and
 * keeps it current. addr NULL = withdraw.
 */
void sl_dataplane_path_set(struct sl_dataplane *dp, uint32_t peer_id, const struct sl_addr *addr, uint64_t now_us);
/* Is that path smaller than it could be because a router has said so (ICMP)? */
bool sl_dataplane_path_reported(const struct sl_dataplane *dp, uint32_t peer_id);
/* The port that a peer's path leads through, -1 when it has none. */
int sl_dataplane_peer_port(const struct sl_dataplane *dp, uint32_t peer_id);
/* Has it one, and can the port be used? */
bool sl_dataplane_peer_usable(const struct sl_dataplane *dp, uint32_t peer_id);
/* Is the port that leads to an address usable? Whether anybody answers there is another question. */
bool sl_dataplane_reaches(const struct sl_dataplane *dp, const struct sl_addr *to);
/* Calls fn(fn_arg, obj) from a later sl_dataplane_poll() (or stop) when no worker can hold obj (RCU). Never waits. */
void sl_dataplane_reclaim(struct sl_dataplane *dp, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);

/* --- for the operator (values are read relaxed while workers run) ------------------------------------------------- */

struct sl_worker_stats {
	uint64_t rx, tx; /* frames; rx = from ports and from other workers */
	uint64_t handoff_in; /* of rx: from other workers */
	uint64_t rx_bytes, tx_bytes;
	uint64_t verdicts[SL_VERDICT_COUNT]; /* rx = sum of all verdicts; tx = verdicts[SL_FORWARD] */
	/*
	 * TSC cycles, with measure_cycles: of polls that found frames, of polls that found none (and of sleep). Of the first:
	 * those in transit, and those in the drivers' transmit and such receive as found frames. What is left of busy_tsc is
	 * polling of empty queues, and whatever else had the worker's CPU meanwhile.
	 */
	uint64_t busy_tsc, idle_tsc, transit_tsc, driver_tsc;
	uint64_t polls, busy_polls;
	uint64_t punt_ring_full, event_ring_full, learn_ring_full;
	uint64_t joined; /* frames that came in several buffers, made one */
	uint64_t longest_tsc; /* of a turn, with measure_cycles: a sleep, and time in which others had the CPU, are in it */
	bool stalled;	 /* has taken no turn for a second or more */
	uint64_t still_us; /* since its last turn, as control saw it; 0 unless stalled */
	uint64_t stalls;
};
/* A peer whose sessions are spread. since_us: the clock of sl_dataplane_now_us(). */
struct sl_elephant_info {
	uint32_t peer_id;
	uint16_t worker; /* the owner */
	uint64_t since_us;
	bool ending;
};
/* Fills at most size entries; returns how many. Control only. */
unsigned sl_dataplane_elephants(const struct sl_dataplane *dp, struct sl_elephant_info *list, unsigned size);
/* Spreads the frames of a peer's sessions over several workers, or ends that. 0, -ENOTSUP (off, or one worker), -ENOENT, -ENOSPC. */
int sl_dataplane_spread(struct sl_dataplane *dp, uint32_t peer_id, bool on) SL_MUST_CHECK;

/* What has gone through a worker's lane of spread sessions. Frames in it are counted when they leave. */
struct sl_lane_stats {
	bool in_use;
	uint64_t frames, slots; /* a slot: up to 32 frames that go together */
	uint64_t own_slots; /* of them sealed by the owner itself */
	uint64_t wait_tsc;  /* from intake to leaving, summed over slots */
	uint64_t order_tsc; /* the owner's for keeping order, with measure_cycles */
	uint64_t stuck, full; /* slots given up, frames without room */
};
/* False when there is no such mode. */
bool sl_dataplane_lane_stats(const struct sl_dataplane *dp, uint16_t worker, struct sl_lane_stats *stats);

/* How many workers stand still, as of the last sl_dataplane_poll(). */
uint16_t sl_dataplane_workers_stalled(const struct sl_dataplane *dp);
uint16_t sl_dataplane_workers(const struct sl_dataplane *dp);
void sl_dataplane_worker_stats(const struct sl_dataplane *dp, uint16_t worker, struct sl_worker_stats *stats);
unsigned sl_dataplane_worker_lcore(const struct sl_dataplane *dp, uint16_t worker);

struct sl_port_stats {
	char name[SL_NAME_SIZE];
	char driver[32];
	uint8_t mac[6];
	const char *state; /* "up", "down" (no link), "removed", "resetting" */
	uint64_t state_since_us;
	bool link_up;
	uint32_t link_mbps;
	uint64_t link_downs, removals, resets, returns;
	uint16_t queues;
	int node; /* NUMA node of the device, -1 = none or unknown */
	uint16_t mtu;
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes, rx_missed, rx_errors, rx_nombuf, tx_errors;
	uint64_t control_tx, control_tx_dropped;
	const char *steering; /* "flow", "rss", "driver", "software", "one"; "-" before start */
	const char *steering_why; /* of the port: valid until its steering changes */
	uint32_t flow_rules;
	uint64_t received, handed_over; /* with several workers: frames from its queues, and those that another worker owns */
};
/* NUMA node of the worker's CPU, -1 = unknown. */
int sl_dataplane_worker_node(const struct sl_dataplane *dp, uint16_t worker);
/* The worker that polls a receive queue of a port; -1 when there is no such queue. */
int sl_dataplane_queue_worker(const struct sl_dataplane *dp, uint16_t port, uint16_t queue);
uint16_t sl_dataplane_ports(const struct sl_dataplane *dp);
int sl_dataplane_port_stats(const struct sl_dataplane *dp, uint16_t port, struct sl_port_stats *stats) SL_MUST_CHECK;
/* Frames that the port's flow rules matched, as the device counts; 0 when it does not. Asks the device about each rule. */
uint64_t sl_dataplane_flow_hits(const struct sl_dataplane *dp, uint16_t port);

/* struct sl_neigh_info: sl_ifaddr.h */
void sl_dataplane_for_each_neigh(const struct sl_dataplane *dp, sl_neigh_fn fn, void *arg);
/* SL_NEIGH_COUNTER_COUNT values, named in sl_neigh.h. Control only. */
const uint64_t *sl_dataplane_neigh_counters(const struct sl_dataplane *dp);
/* Buffers free and in all, of all pools. */
void sl_dataplane_buffers(const struct sl_dataplane *dp, uint32_t *free_count, uint32_t *total);

#ifdef __cplusplus
}
#endif
#endif
