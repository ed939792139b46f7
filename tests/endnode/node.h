/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NODE_H
#define NODE_H
/*
 * A small FIPS end node: one identity, links and routing of the same libraries that the relay is
 * made of, one partner with whom it exchanges a numbered stream in each direction. It knows no
 * socket and no clock: packets and time come in, packets go out through `transmit`.
 *
 * Order of a life: the link comes up; hellos go to the partner until both have heard each other;
 * data flows at the chosen rate for the chosen time; ends are announced; it listens on until the
 * partner has ended too. A link that breaks in between comes back by itself (lib/overlay redials),
 * a sequence number is used only when its packet was sealed and handed to transmit. Time: monotonic
 * nanoseconds. One thread.
 */
#include "sl_link.h"
#include "sl_router.h"

#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node_config {
	struct sl_identity *identity; /* the node's from then on */
	struct sl_peer_config relay;  /* addr_count 0: it dials us */
	uint8_t partner_xonly[SL_XONLY_BYTES];
	/*
	 * The partner is not a neighbour of our relay: look its coordinates up and show them, with
	 * ours, to the nodes on the way (routing facts, sections 10 and 11), at the start, once a
	 * second, and whenever one of them asks.
	 */
	bool far;
	struct sl_transport_config transport;
	uint64_t rate_pps;	  /* 0 = listen only */
	uint32_t size;		  /* payload bytes */
	bool mix;		  /* every second payload is the smallest there is */
	bool follow;		  /* size falls to what an MtuExceeded says */
	double seconds;		  /* of sending; 0 = until stopped */
	uint32_t dead_timeout_ms; /* node.link_dead_timeout_secs, 0 = the default */
	double rekey_after_s;	  /* node.rekey.after_secs, 0 = the default */
	uint64_t rekey_after_messages; /* node.rekey.after_messages, 0 = the default */
	const char *aead;
};

#define NODE_COORDS_MAX 32

enum node_state { NODE_LINKING, NODE_GREETING, NODE_RUNNING, NODE_ENDING, NODE_DONE };

struct node {
	struct node_config config;
	struct sl_session_table *table;
	struct sl_links *links;
	struct sl_router *router;
	/* One FMP packet; 0 or -errno. The bytes are ours. */
	int (*transmit)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len);
	void *transmit_arg;

	enum node_state state;
	uint32_t relay_peer; /* SL_PEER_NONE while the link is down */
	uint32_t links_up, links_lost;
	uint64_t now_ns, start_ns, run_ns, end_ns, next_hello_ns;
	uint64_t paced; /* payloads that were due so far */
	uint64_t next_tick_us;
	uint64_t run;
	uint64_t tx_failed; /* packets that the caller could not hand over; for the account, set by it */
	uint64_t sent, sent_bytes,
		not_sent; /* data payloads; not_sent: link down or its queue full when due */
	struct stream_rx rx;
	bool early; /* a hello has been given to the links before there was one */
	uint64_t signals; /* CoordsRequired, PathBroken, MtuExceeded from the mesh */
	uint64_t too_big;	    /* of them MtuExceeded */
	uint64_t large;		    /* of what the partner's datagrams brought: more than the smallest */
	uint16_t path_mtu, told_mtu; /* of the latest datagram from the partner, of the latest MtuExceeded; 0 = none */
	struct sl_node_addr partner;
	/* far: */
	struct sl_node_addr coords[NODE_COORDS_MAX],
		answer[NODE_COORDS_MAX]; /* the partner's; of an answer not proven yet */
	uint16_t coords_count, answer_count;
	uint64_t next_lookup_ns, next_show_ns;
	uint32_t lookups;
	uint8_t message[2048];
};

/* unix_s: wall clock at start. 0 or -errno. On failure nothing is left and the identity is the
 * caller's again. */
int node_init(struct node *n, const struct node_config *config,
	int (*transmit)(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len),
	void *arg, uint64_t unix_s, uint64_t now_ns);
void node_fini(struct node *n);
/* A received datagram; overwritten. */
void node_packet(
	struct node *n, const struct sl_addr *from, uint8_t *packet, size_t len, uint64_t now_ns);
/*
 * Everything that is due: timers, hellos, at most `burst` data payloads. Returns when to call again
 * at the latest.
 */
uint64_t node_turn(struct node *n, unsigned burst, uint64_t now_ns);
/* Ends sending early. */
void node_end(struct node *n, uint64_t now_ns);
/*
 * Forgets the link, and dials again in the same life: what a process does that has lost its way. 0 or -errno. That forgetting
 * says no goodbye is the caller's to see to: it transmits nothing meanwhile.
 */
int node_forget(struct node *n, uint64_t now_ns);
int node_redial(struct node *n, uint64_t now_ns);
/* Disconnect to the relay; nothing is sent after it. */
void node_shutdown(struct node *n, uint64_t now_ns);
/* One line of JSON without a newline; final adds the whole run's figures. Clears the recent
 * histogram. */
int node_json(struct node *n, char *out, size_t size, bool final);

#ifdef __cplusplus
}
#endif
#endif
