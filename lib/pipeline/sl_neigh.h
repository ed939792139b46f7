/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NEIGH_H
#define SL_NEIGH_H
/*
 * Who our neighbours on the links are: addresses and routes of the ports, ARP, neighbour discovery, and the echo
 * replies of the ports' own addresses.
 *
 * A destination is resolved in two steps: the route says which port and which next hop (on-link: the destination
 * itself; longest prefix; else a gateway), the neighbour cache says the next hop's MAC or asks for it.
 *
 *	incomplete  asked, no answer yet: a request a second, three in all; may hold one frame
 *	reachable   confirmed within the last 30 s
 *	stale       MAC known, not confirmed lately, nobody holds it: asked again when next resolved, forgotten in time
 *	probe       MAC known and in use, being confirmed: two unicast requests, then one to all
 *	failed      no answer; asked again from time to time while held, with growing distance up to 16 s
 *
 * Held (sl_neigh_hold) neighbours, those behind published paths, are confirmed again before they expire: workers
 * do not tell control which neighbours they use. Others are forgotten, the least recently used first when the table is
 * full.
 *
 * We learn from nobody we have not asked: requests and gratuitous ARP change only entries that exist (RFC 826's merge,
 * no addition), neighbour advertisements likewise (RFC 4861, 7.2.5). Who claims one of our own addresses is counted
 * and ignored. No duplicate address detection is done; solicitations of others' are answered.
 *
 * Facts: RFC 826, 4861, 4443, 792, 6980 (no fragments: the parser refuses them). Time is monotonic microseconds,
 * given by the caller. One thread (control). Callbacks run inside the calls and must not call back, except
 * sl_neigh_resolve() from `changed`.
 */
#include "../overlay/sl_addr.h"
#include "../overlay/sl_bucket.h"
#include "../crypto/sl_secret.h"
#include "sl_ifaddr.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_neigh;

#define SL_NEIGH_FRAME_MAX 9216 /* of a held or answered frame, bytes */

struct sl_neigh_config {
	uint32_t entries_max;	       /* neighbours; 0 = 1024 */
	uint64_t reachable_us;	       /* 0 = 30 s */
	uint64_t retry_us;	       /* 0 = 1 s */
	double echo_per_s, echo_burst; /* ICMP and ICMPv6 echo replies; 0 = 100, 100 */
	double answer_per_s, answer_burst; /* ARP replies and advertisements; 0 = 1000, 1000 */
};

/* Called from within sl_neigh_* calls, on the same thread. */
struct sl_neigh_sink {
	void *arg;
	/* A complete frame from the destination MAC, at least 60 bytes. The bytes are the caller's. */
	void (*transmit)(void *arg, uint16_t port, const uint8_t *frame, size_t len);
	/* A next hop got a MAC, another MAC, or lost it (mac NULL): rebuild paths over it. ip: prefix_len 32 or 128. */
	void (*changed)(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *mac);
	/*
	 * A router told us that packets to ip (of ours to a peer) above mtu bytes do not pass; 0: it does not say which. NOT
	 * authenticated. udp: the quoted UDP header's ports, 4 bytes, NULL when it quotes none. May be NULL.
	 */
	void (*too_big)(void *arg, uint16_t port, const struct sl_ifaddr *ip, const uint8_t *udp, uint16_t mtu);
};

/* A port as control brings it up; addresses and routes as in the configuration. Copied. */
struct sl_neigh_port {
	uint16_t port; /* index, below SL_NEIGH_PORTS_MAX */
	uint8_t mac[6];
	uint16_t vlan; /* 0 = untagged */
	uint16_t mtu;  /* IP MTU, bytes */
	const struct sl_ifaddr *addrs; /* the link-local address is derived as in sl_parse_local_addr() */
	unsigned addr_count;
	const struct sl_static_route *routes;
	unsigned route_count;
};
#define SL_NEIGH_PORTS_MAX 16

/* config may be NULL (defaults); sink is copied. NULL and errno. */
struct sl_neigh *sl_neigh_create(const struct sl_neigh_config *config, const struct sl_neigh_sink *sink,
	uint64_t now_us) SL_MUST_CHECK;
void sl_neigh_destroy(struct sl_neigh *n);
/*
 * 0, -EINVAL (index, address, a gateway that is on no link of the port), -EEXIST, -ENOSPC. Announces the port's
 * addresses once (gratuitous ARP, unsolicited advertisement), so that others' caches follow a replaced machine.
 */
int sl_neigh_port_add(struct sl_neigh *n, const struct sl_neigh_port *port) SL_MUST_CHECK;

/*
 * The port is back after it was away, perhaps with another MAC: announces its addresses, asks the neighbours that are held
 * again, at once.
 */
void sl_neigh_port_renew(struct sl_neigh *n, uint16_t port, const uint8_t mac[6], uint64_t now_us);

/* Where packets to a destination go: everything that sl_path_build() wants to know from here. */
struct sl_neigh_hop {
	uint16_t port;
	uint16_t vlan;
	uint16_t mtu;	    /* IP MTU of the link */
	uint8_t family;	    /* 4 or 6; 0 for raw Ethernet */
	uint8_t src_mac[6];
	uint8_t dst_mac[6]; /* valid when resolved */
	uint8_t src_ip[16]; /* our address on that link which fits the next hop */
	uint8_t next_ip[16]; /* the neighbour: the destination itself or a gateway */
};
/*
 * Finds the way to an address and starts to resolve it if need be. 0 (hop is complete), -EINPROGRESS (asked;
 * `changed` will tell), -EHOSTUNREACH (does not answer; tried again by itself when held, else by a later call),
 * -ENETUNREACH (no route), -ENOBUFS (table full of held entries), -EINVAL. Except with -ENETUNREACH and -EINVAL, all
 * of hop but dst_mac is valid. Raw Ethernet addresses need no resolution.
 */
int sl_neigh_resolve(struct sl_neigh *n, const struct sl_addr *to, struct sl_neigh_hop *hop, uint64_t now_us) SL_MUST_CHECK;
/* The port that packets to an address leave by, resolved or not; -ENETUNREACH (no route), -EINVAL. Changes nothing. */
int sl_neigh_port_to(const struct sl_neigh *n, const struct sl_addr *to) SL_MUST_CHECK;
/*
 * Keeps the neighbour of hop alive (counted); starts resolving if it is unknown. Every hold is undone by one release
 * with the same port and next_ip. 0 or -ENOBUFS. Raw Ethernet hops: no-ops.
 */
int sl_neigh_hold(struct sl_neigh *n, const struct sl_neigh_hop *hop, uint64_t now_us) SL_MUST_CHECK;
void sl_neigh_release(struct sl_neigh *n, const struct sl_neigh_hop *hop, uint64_t now_us);
/*
 * Keeps one frame until the neighbour of hop answers, then writes its MAC into the first 6 bytes and transmits it. A
 * second frame replaces the first (RFC 4861, 7.2.2). Transmits at once if the MAC is known by now. 0, -EHOSTUNREACH
 * (not being resolved), -EMSGSIZE, -ENOMEM.
 */
int sl_neigh_queue(struct sl_neigh *n, const struct sl_neigh_hop *hop, const uint8_t *frame, size_t len) SL_MUST_CHECK;

/*
 * A frame that sl_parse() called SL_PARSE_NEIGH, or any other bytes: every check is made here again. The tag of a frame
 * may be in it or stripped.
 */
void sl_neigh_input(struct sl_neigh *n, uint16_t port, const uint8_t *frame, size_t len, uint64_t now_us);
/* Runs what is due; cheap when nothing is. Returns when to call again at the latest, UINT64_MAX for never. */
uint64_t sl_neigh_tick(struct sl_neigh *n, uint64_t now_us);

/* --- for the operator ------------------------------------------------------------------------------------------- */

void sl_neigh_for_each(const struct sl_neigh *n, uint64_t now_us, sl_neigh_fn fn, void *arg);

/* What became of input frames, one each, and what was sent. X(identifier, name, what it means) */
#define SL_NEIGH_COUNTERS(X)                                                                                           \
	X(ARP_ANSWERED, "arp_answered", "requests for our address that were answered")                                 \
	X(ARP_LEARNED, "arp_learned", "replies that confirmed or changed a neighbour")                                 \
	X(ARP_UPDATED, "arp_updated", "unsolicited ARP with another MAC: the neighbour was asked")                     \
	X(ARP_IGNORED, "arp_ignored", "from strangers, or for others")                                                 \
	X(ARP_MALFORMED, "arp_malformed", "too short, or not Ethernet and IPv4")                                       \
	X(ARP_SENDER, "arp_sender", "sender MAC or address that cannot be one, or is off the link")                    \
	X(CONFLICT, "conflict", "somebody else uses one of our addresses")                                             \
	X(NS_ANSWERED, "ns_answered", "solicitations of our address that were answered")                               \
	X(NA_LEARNED, "na_learned", "advertisements that confirmed or changed a neighbour")                            \
	X(NA_IGNORED, "na_ignored", "advertisements of strangers, or without use")                                     \
	X(ND_TARGET, "nd_target", "discovery for an address that is not ours, or a group")                             \
	X(ND_HOP_LIMIT, "nd_hop_limit", "discovery with a hop limit other than 255: from beyond the link")             \
	X(ND_MALFORMED, "nd_malformed", "discovery with a bad code, length, option or address")                        \
	X(ECHO_ANSWERED, "echo_answered", "echo requests that were answered")                                          \
	X(ECHO_LIMITED, "echo_limited", "echo requests over the rate limit")                                           \
	X(ANSWER_LIMITED, "answer_limited", "ARP requests and solicitations over the rate limit")                      \
	X(ICMP_CHECKSUM, "icmp_checksum", "ICMP or ICMPv6 with a wrong checksum")                                      \
	X(ICMP_MALFORMED, "icmp_malformed", "ICMP shorter than its kind")                                              \
	X(ICMP_IGNORED, "icmp_ignored", "ICMP of a kind, or to an address, that is not answered")                      \
	X(TOO_BIG, "too_big", "packet too big, fragmentation needed")                                                  \
	X(FRAME, "frame", "frames the parser does not give to neighbour handling: refused here too")                   \
	X(REQUESTS_SENT, "requests_sent", "ARP requests and solicitations sent")                                       \
	X(TABLE_FULL, "table_full", "neighbours not taken: all entries are held")                                      \
	X(EVICTED, "evicted", "neighbours forgotten to make room")                                                     \
	X(QUEUE_DROPPED, "queue_dropped", "waiting frames replaced, or lost with their neighbour")

enum sl_neigh_counter {
#define SL_NEIGH_COUNTER_ENUM(id, name, what) SL_NEIGH_##id,
	SL_NEIGH_COUNTERS(SL_NEIGH_COUNTER_ENUM) SL_NEIGH_COUNTER_COUNT
};
const char *sl_neigh_counter_name(enum sl_neigh_counter c);
const uint64_t *sl_neigh_counters(const struct sl_neigh *n); /* SL_NEIGH_COUNTER_COUNT values */

#ifdef __cplusplus
}
#endif
#endif
