/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_NET_H
#define LINK_NET_H
/*
 * A network in memory for links: nodes with real struct sl_links, a virtual clock, and wires that
 * lose, delay, repeat and reorder. Everything random, libsodium's randomness included, comes from
 * the test's seed, so a run repeats. With --workers each node has a worker: it opens established
 * frames as the data plane does, and control hears of them up to a millisecond later through
 * sl_links_message(), _first_frame() and _roamed(). Without, sl_links_packet().
 *
 * Each node checks that what it is told by the sink makes sense (up only when down, messages only
 * when up, ...).
 */
#include "sl_link.h"
#include "sl_test.h"

#include <errno.h>
#include <stdlib.h>

#define NET_S 1000000ull
#define NET_MS 1000ull
#define NET_STRANGERS_MAX 160u

struct net;
struct node;

/* On a wire, or in the ring from a node's worker to its control. */
enum packet_kind { PACKET_WIRE, PACKET_FIRST_FRAME, PACKET_ROAMED, PACKET_MESSAGE };
struct packet {
	uint64_t at_us, seq;
	enum packet_kind kind;
	uint32_t rx_index; /* the last three kinds */
	uint8_t flags;
	struct sl_addr from, to;
	size_t len;
	uint8_t *bytes;
};

/* What a wire does to a packet: how many copies arrive, and how late each. */
struct fate {
	unsigned copies;
	uint64_t delay_us[4];
};

struct node {
	struct net *net;
	unsigned index;
	struct sl_identity *identity;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_links_config config;
	struct sl_addr
		addr; /* where it sends from; its packets come in at every address it ever had */
	bool mute;    /* nothing goes in or out: unplugged */
	bool (*allowed)(void *arg, const uint8_t xonly[SL_XONLY_BYTES]);
	void *allowed_arg;
	uint16_t link_mtu; /* what the sink says of every address; UINT16_MAX from net_node() on */
	int transmit_rc; /* what the sink's transmit gives back when not 0 */

	/* Told by the sink, per peer row. */
	struct seen {
		bool up, has_path;
		uint8_t xonly[SL_XONLY_BYTES];
		struct sl_addr path;
		struct sl_link_metrics metrics;
	} * seen;
	uint32_t rows;
	unsigned ups, renewals, downs[4];
	unsigned messages, metrics_calls;
	void (*heard)(void *arg, const uint8_t *msg, size_t len); /* each message handed out, may be NULL */
	void *heard_arg;
	uint64_t last_down_us, last_up_us;
	uint8_t last_message[64];
	size_t last_message_len;
	uint64_t data_sent, data_received; /* net_data() */
	uint64_t next_due_us, ring_at_us;
	uint64_t worker_counters[SL_LINK_COUNTER_COUNT]; /* what a worker counts instead of sl_links
							  */
};

struct net {
	uint64_t now_us, seq;
	struct node **nodes;
	unsigned count;
	struct packet *heap;
	uint32_t queued, heap_size;
	double loss;
	uint64_t delay_us, jitter_us;
	double duplicate;
	/* Called for each packet before loss; may change its fate. */
	void (*tap)(struct net *net, struct node *from, struct node *to, const uint8_t *bytes,
		size_t len, struct fate *fate, void *arg);
	void *tap_arg;
	const struct sl_aead_backend *aead; /* of nodes made from now on; NULL: "sodium" */
	uint64_t packets, bytes;
	struct stranger {
		void (*fn)(void *arg, const struct sl_addr *from, const uint8_t *bytes, size_t len);
		void *arg;
	} strangers[NET_STRANGERS_MAX];
	unsigned stranger_count;
};

struct net *net_create(void);
void net_destroy(struct net *net);
/* Nodes get keys from the seed. accept: answers strangers. */
struct node *net_node(
	struct net *net, const struct sl_links_config *config, uint32_t rows, bool accept);
/* Two nodes, the one with the smaller node_addr first. */
void net_pair(struct net *net, struct node *pair[2], const struct sl_links_config *config);
void net_restart(struct node *n, bool accept); /* a new process: everything forgotten but the key */
struct sl_addr net_addr(unsigned index, uint16_t port);
/* An address that belongs to no node: what is sent there is handed to fn at once (NULL: lost). */
struct sl_addr net_stranger(struct net *net,
	void (*fn)(void *arg, const struct sl_addr *from, const uint8_t *bytes, size_t len),
	void *arg);
/* Gives the node an access list. */
void net_gate(
	struct node *n, bool (*allowed)(void *arg, const uint8_t xonly[SL_XONLY_BYTES]), void *arg);
void net_configure(struct node *n, struct node *peer); /* dials it, redials it */
void net_run(struct net *net, uint64_t for_us);
/* Until both have a link to each other, or the time is over. True when up. */
bool net_run_until_up(struct net *net, struct node *a, struct node *b, uint64_t for_us);
void net_inject(struct net *net, const struct sl_addr *from, struct node *to, const uint8_t *bytes,
	size_t len);

uint32_t net_peer_id(const struct node *n, const struct node *peer); /* SL_PEER_NONE when down */
bool net_linked(const struct node *a, const struct node *b);	     /* both say so */
bool net_info(const struct node *n, const struct node *peer, struct sl_link_info *info);
uint64_t net_counter(const struct node *n, enum sl_link_counter c);
/* One message a -> b now; counted in data_sent and, on arrival, data_received. */
int net_data(struct node *a, struct node *b);
/* Sends both ways and runs the network for a moment: did both arrive? */
bool net_carries(struct node *a, struct node *b);

#endif
