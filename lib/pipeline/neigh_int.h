/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NEIGH_INT_H
#define SL_NEIGH_INT_H
/*
 * Inside of the neighbour machine, shared by its files only: neigh.c (cache and timers), neigh_route.c (ports, routes),
 * neigh_input.c (dispatch), neigh_arp.c, neigh_nd.c, icmp.c. Rules of sl_neigh.h.
 */
#include "sl_neigh.h"
#include "sl_parse.h"

#define NEIGH_TRIES 3
#define NEIGH_STALE_US (600 * 1000000ull)  /* unheld and unused: forgotten after this */
#define NEIGH_FAILED_US (60 * 1000000ull)
#define NEIGH_BACKOFF_MAX_US (16 * 1000000ull)
#define NEIGH_LOCK_US 1000000ull /* a fresh answer is not overruled by unasked claims for so long */
#define NEIGH_NONE UINT32_MAX

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE,
	NEIGH_REACHABLE,
	NEIGH_STALE,
	NEIGH_PROBE,
	NEIGH_FAILED,
};

struct neigh {
	uint8_t family; /* 4, 6 */
	uint8_t state;
	uint16_t port;
	uint8_t ip[16];
	uint8_t mac[6];
	bool has_mac;	/* mac is valid and was told to `changed` */
	uint8_t tries;	/* requests sent in this state */
	uint32_t holds;
	uint32_t next;	/* hash chain or free list */
	uint64_t created_us, confirmed_us, used_us, due_us, backoff_us;
	uint8_t *frame; /* waits for the MAC; malloc */
	size_t frame_len;
};

struct neigh_port {
	bool used;
	uint8_t mac[6];
	uint16_t vlan, mtu;
	struct sl_ifaddr addrs[SL_PORT_ADDRS_MAX + 1];
	unsigned addr_count;
};

struct neigh_route {
	uint8_t family, prefix_len;
	bool on_link;
	uint16_t port;
	uint8_t prefix[16], gateway[16];
};

#define NEIGH_ROUTES_MAX (SL_NEIGH_PORTS_MAX * (SL_ROUTES_MAX + SL_PORT_ADDRS_MAX + 1))

struct sl_neigh {
	struct sl_neigh_config config;
	struct sl_neigh_sink sink;
	struct sl_bucket echo, answer;
	struct neigh_port ports[SL_NEIGH_PORTS_MAX];
	struct neigh_route routes[NEIGH_ROUTES_MAX];
	unsigned route_count;
	struct neigh *table; /* config.entries_max */
	uint32_t *heads;     /* hash_mask + 1 */
	uint32_t hash_mask, free_head;
	uint64_t next_due_us;
	uint64_t counters[SL_NEIGH_COUNTER_COUNT];
	uint8_t out[SL_NEIGH_FRAME_MAX];
};

static inline void
neigh_count(struct sl_neigh *n, enum sl_neigh_counter c)
{
	n->counters[c]++;
}
static inline size_t
neigh_ip_bytes(unsigned family)
{
	return family == 4 ? 4 : 16;
}
static inline bool
neigh_mac_valid(const struct neigh_port *port, const uint8_t *mac)
{
	return !(mac[0] & 1) && memcmp(mac, "\0\0\0\0\0", 6) != 0 && memcmp(mac, port->mac, 6) != 0;
}

/* neigh.c */
struct neigh *neigh_find(const struct sl_neigh *n, uint16_t port, uint8_t family, const uint8_t *ip);
/* Is an answer of e that names this MAC one that we asked for? */
bool neigh_asked(const struct neigh *e, const uint8_t *mac);
/* The neighbour answered a question of ours. */
void neigh_confirm(struct sl_neigh *n, struct neigh *e, const uint8_t *mac, uint64_t now_us);
/* It claims a MAC without being asked; true when that has put a question to it (or given it a MAC, if it had none). */
bool neigh_claim(struct sl_neigh *n, struct neigh *e, const uint8_t *mac, uint64_t now_us);
/* Its MAC is in doubt. */
void neigh_suspect(struct sl_neigh *n, struct neigh *e, uint64_t now_us);

/* neigh_route.c */
bool neigh_is_own(const struct neigh_port *port, uint8_t family, const uint8_t *ip);
bool neigh_on_link(const struct neigh_port *port, uint8_t family, const uint8_t *ip);
/* The port's MAC, and the address derived from it. */
void neigh_port_mac(struct neigh_port *port, const uint8_t mac[6]);
/* Tells the link whose the port's addresses are. */
void neigh_port_announce(struct sl_neigh *n, uint16_t port);
/* Our address that fits a neighbour best, or NULL. */
const uint8_t *neigh_source(const struct neigh_port *port, uint8_t family, const uint8_t *neighbour);

/* Fills all of hop but the MAC of a neighbour; family 0 and the MAC for raw Ethernet. 0, -EINVAL, -ENETUNREACH. */
int neigh_route_lookup(const struct sl_neigh *n, const struct sl_addr *to, struct sl_neigh_hop *hop);

/* neigh_input.c: Ethernet header (and tag) into n->out; returns its length. */
size_t neigh_frame_start(struct sl_neigh *n, const struct neigh_port *port, const uint8_t *dst_mac, uint16_t ethertype);
/* Pads with zeros to the Ethernet minimum and transmits n->out. */
void neigh_frame_send(struct sl_neigh *n, uint16_t port, size_t len);

/* neigh_arp.c. mac NULL: to all. */
void neigh_arp_request(struct sl_neigh *n, uint16_t port, const uint8_t *ip, const uint8_t *mac);
void neigh_arp_announce(struct sl_neigh *n, uint16_t port, const uint8_t *ip);
void neigh_arp_input(struct sl_neigh *n, uint16_t port, const uint8_t *arp, size_t len, uint64_t now_us);

/* neigh_nd.c. mac NULL: to the solicited-node group. ip: IPv6 header, checked; icmp: len bytes, at least 8. */
void neigh_nd_request(struct sl_neigh *n, uint16_t port, const uint8_t *target, const uint8_t *mac);
void neigh_nd_announce(struct sl_neigh *n, uint16_t port, const uint8_t *target);
void neigh_nd_input(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us);

/* icmp.c. ip: header, checked; icmp: len bytes, at least 8; checksum right. */
void neigh_icmp4_input(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us);
void neigh_icmp6_input(struct sl_neigh *n, uint16_t port, const uint8_t *src_mac, const uint8_t *ip, const uint8_t *icmp,
	size_t len, uint64_t now_us);

#endif
