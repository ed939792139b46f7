/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_DAEMON_H
#define SL_DAEMON_H
/*
 * The running daemon: everything control owns, in the order it comes up (and, reversed, goes down):
 *
 *	log, EAL, session table, router, data plane with its ports and transports, links, resolver, Nostr,
 *control socket, workers
 *
 * daemon_up.c and daemon.c bring up, daemon.c loops and brings down; sinks.c connects links, router
 *and data plane; peers.c turns the configuration's peers into dialled addresses; server.c is the
 *control socket and show*.c what it answers. One thread: control's. Only the resolver and Nostr's
 *relays have a thread of their own, and the workers theirs.
 */
#include "../../lib/overlay/sl_link.h"
#include "../../lib/overlay/sl_log.h"
#include "../../lib/pipeline/sl_dataplane.h"
#include "../../lib/routing/sl_router.h"
#include "acl.h"
#include "config.h"
#include "eal_setup.h"
#include "resolve.h"
#include "sl_bucket.h"

struct sl_server;
struct sl_rendezvous; /* rendezvous.h */
struct sl_nat;	      /* nat.h */
struct sl_meet;	      /* meet.h */
struct sl_path_mtu;   /* path_mtu.h */
struct sl_plpmtu;     /* sl_plpmtu.h */

#define SL_APP_COUNTERS(X)                                                                         \
	X(LOCAL_DATAGRAM, "local_datagrams",                                                       \
		"datagrams addressed to this node, which serves none")                             \
	X(LEARNED, "learn_events", "coordinates handed up by workers")                             \
	X(TRANSMIT_FAILED, "transmit_failed",                                                      \
		"control frames that could not be sent (no route, neighbour or room)")             \
	X(UP_FAILED, "peer_up_failed", "links that came up and found no room in the router")       \
	X(PEERS_CUT, "peers_cut", "peers routed around because their port was down")               \
	X(BEACON_TX, "beacons_sent", "beacons sent")                                               \
	X(BEACON_RX, "beacons_heard", "beacons heard")                                             \
	X(RESOLVE_FAILED, "names_unresolved", "look-ups of peers' host names that failed")         \
	X(CONGESTED, "congested_seconds", "seconds in which ports or rings lost frames")           \
	X(LATE, "late_turns", "turns of the control loop longer than 10 ms")                       \
	X(ACL_RELOADED, "access_lists_reloaded", "times the access lists had changed and were read")  \
	X(REQUESTS, "requests", "requests served on the control socket")                           \
	X(CLIENTS_REFUSED, "clients_refused", "clients turned away: too many at once")              \
	X(CLIENTS_EVICTED, "clients_evicted", "clients closed to make room: idle, or slow at reading") \
	X(CLIENTS_TIMED_OUT, "clients_timed_out", "clients closed: no whole request, or no progress")
enum sl_app_counter {
#define SL_APP_COUNTER_ENUM(id, name, what) SL_APP_##id,
	SL_APP_COUNTERS(SL_APP_COUNTER_ENUM) SL_APP_COUNTER_COUNT
};
const char *sl_app_counter_name(enum sl_app_counter c);

#define SL_APP_ADVERT_NAMES 2

/* A configured peer's addresses that hang on names, and where else it may be. */
struct sl_app_peer {
	struct sl_peer_config current; /* as the links have it */
	int handle[SL_PEER_ADDRS_MAX]; /* of the resolver, per configured address; -1 = literal */
	int advert_handle[SL_APP_ADVERT_NAMES]; /* for host names of its advert */
	bool has_names, up;
	struct sl_addr last; /* where it was when it was up last; kept for peers with adverts only */
	bool moved;	     /* the links have not heard of that yet */
	uint32_t by_key;     /* not this peer's: the row's place in the order of keys names a configured peer */
};

struct sl_app_cut;

struct sl_app_beacon {
	uint64_t next_us; /* when to send the next one */
};

struct sl_daemon {
	const struct sl_config *config;
	const char *config_path;
	struct sl_identity *identity;
	const struct sl_aead_backend *aead;
	struct sl_eal_plan plan;

	struct sl_session_table *table;
	struct sl_router *router;
	struct sl_dataplane *dp;
	struct sl_links *links;
	struct sl_resolver *resolver;
	struct sl_server *server;
	struct sl_acl *acl;
	struct sl_rendezvous *rendezvous; /* NULL: Nostr is off */
	struct sl_path_mtu *path_mtu;	  /* NULL, like plpmtu: nothing is probed. path_mtu.h */
	struct sl_plpmtu *plpmtu;
	struct sl_meet *meet;		  /* NULL: nobody is looked for but who is configured */
	struct sl_nat *nat;		  /* NULL: Nostr is off, or nothing to punch from */
	/* nat.c's: STUN answers and punch packets; NULL like nat. */
	void (*traversal)(struct sl_daemon *d, const struct sl_addr *from, const uint8_t *packet, size_t len);
	/* meet.c's: a beacon; a message of multicast DNS. */
	void (*beacon)(struct sl_daemon *d, const struct sl_addr *from, const uint8_t *xonly);
	void (*mdns)(struct sl_daemon *d, uint16_t port, const struct sl_addr *from, const uint8_t *message, size_t len);

	struct sl_app_peer *peers; /* one per configured peer */
	struct sl_app_beacon beacons[SL_CONF_TRANSPORTS_MAX];
	uint16_t udp_ports[SL_CONF_TRANSPORTS_MAX]; /* as they are on the wire */
	char profiles[SL_PORTS_MAX][SL_CONF_NAME_SIZE]; /* in use, by port; "none" */
	uint8_t *peer_up;			    /* per peer_id: the router knows it */
	struct sl_app_cut *cuts;		    /* per peer_id: of port_events.c */
	uint32_t max_peers;

	bool running; /* workers run: reclaim goes through the data plane */
	bool stopping;
	bool reports; /* of Nostr's thread, waiting */
	uint64_t start_us, now_us; /* now_us: of the current turn */
	uint64_t unix_start_s;
	uint64_t crypto_given_up; /* what the log has said of it */
	uint64_t lost_before; /* port and ring losses at the last sample */
	uint64_t longest_turn_us, longest_turn_cpu_us; /* by the clock; what control's core gave it */
	uint64_t counters[SL_APP_COUNTER_COUNT];
	int epoll_fd, signal_fd;
};

/* Runs until SIGTERM or SIGINT. The exit status: 0 or 1. */
int sl_daemon_run(const struct sl_config *config, const char *config_path);

/*
 * daemon_up.c: identity, EAL, session table, router, data plane with its ports, links, transports.
 * 0 or -errno, said in the log; what was made stays in d. *eal_up: EAL runs.
 */
int sl_daemon_build(struct sl_daemon *d, bool *eal_up) SL_MUST_CHECK;

/* sinks.c */
void sl_sinks_links(struct sl_daemon *d, struct sl_links_sink *sink);
void sl_sinks_router(struct sl_daemon *d, struct sl_router_sink *sink);
void sl_sinks_dataplane(struct sl_daemon *d, struct sl_dataplane_sink *sink);
void sl_sinks_reclaim(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);

/* port_events.c: peers behind a port that cannot be used leave the router, their links stay. */
int sl_port_events_init(struct sl_daemon *d) SL_MUST_CHECK;
/* A peer that the router knows now (xonly), or not any more (NULL). */
void sl_port_events_peer(struct sl_daemon *d, uint32_t peer_id, const uint8_t *xonly, uint16_t mtu);
/* The key of the peer in a row of the session table, as of its latest link; zeros before. */
const uint8_t *sl_port_events_key(const struct sl_daemon *d, uint32_t peer_id);
/* It can be reached after all. */
void sl_port_events_join(struct sl_daemon *d, uint32_t peer_id);
void sl_port_events_mtu(struct sl_daemon *d, uint32_t peer_id, uint16_t mtu);
void sl_port_events_link(struct sl_daemon *d, uint16_t port, bool up);

/* peers.c */
int sl_peers_init(
	struct sl_daemon *d) SL_MUST_CHECK; /* fills d->peers, adds names to the resolver */
int sl_peers_configure(struct sl_daemon *d) SL_MUST_CHECK; /* gives them to the links */
void sl_peers_resolved(struct sl_daemon *d);		   /* answers have changed */
/* Its advert has changed. */
void sl_peers_discovered(struct sl_daemon *d, uint32_t i);
/* The key of a configured peer by its alias, any case: 0 or -ENOENT. */
int sl_peers_alias(void *daemon, const char *name, uint8_t xonly[SL_XONLY_BYTES]);
void sl_peers_second(struct sl_daemon *d);		   /* which names are wanted */
/* The transport instance (sl_addr.transport) that carries UDP of a family; -1 = none. instance: -1
 * = any. */
int sl_transport_udp(const struct sl_config *c, int instance, uint8_t family);
/* An address as the links dial it, over that transport; link: our port, for link-local ones. False: no transport leads there. */
bool sl_peers_udp_addr(const struct sl_config *c, struct sl_addr *to, int instance, uint16_t port, uint8_t family,
	const uint8_t *ip, uint16_t link) SL_MUST_CHECK;
static inline uint8_t
sl_transport_eth(const struct sl_config *c, uint32_t i)
{
	return (uint8_t)(c->udp_count + i);
}
const char *sl_transport_name(
	const struct sl_config *c, uint8_t transport, char text[SL_CONF_NAME_SIZE * 2]);

/* profile.c: fills what the port's own keys leave open. 0, or -EINVAL with why. */
int sl_profile_apply(struct sl_port_config *port, const struct sl_conf_port *conf, const char *dir,
	char used[SL_CONF_NAME_SIZE], char why[256]) SL_MUST_CHECK;

#endif
