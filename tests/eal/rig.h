/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RIG_H
#define RIG_H
/*
 * A data plane on two ports made of rings, with real session table, router, neighbour machine and AEAD, and peers of
 * which the test holds the other end of every key. Frames are built and taken apart here by plain code that shares
 * nothing with lib/pipeline but the protocol's constants.
 *
 * A test either drives the workers itself (rig_poll) or starts them on lcores (sl_dataplane_start).
 */
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "sl_control.h"
#include "sl_router.h"
#include "sl_test.h"

#define RIG_PORTS 2
#ifndef RIG_PEERS
#define RIG_PEERS 128
#endif
#define RIG_WORKERS 4
/* Bytes of the test's own buffers, and of what is kept of a frame. */
#ifndef RIG_FRAME_MAX
#define RIG_FRAME_MAX 2048
#endif
#define RIG_UDP_MTU 1452
#define RIG_ETH_MTU 1497
#define RIG_SEEN 4096

struct rig_config {
	uint16_t workers;	/* 0 = 1 */
	const struct sl_aead_backend *aead; /* NULL = the best */
	uint32_t ring_size;	/* to control; 0 = 256 */
	uint32_t out_entries;	/* of a port's transmit ring; 0 = 1024 */
	uint32_t mbufs;		/* of the test's own pool; 0 = 8192 */
	bool shared_queue;	/* control has no transmit queue of its own */
	bool ignore_checksum;
	uint16_t vlan;
	uint32_t max_peers;	/* 0 = RIG_PEERS */
	uint32_t idle_sleep_us;
	uint16_t mtu;		/* of the ports, IP; 0 = 1500 and the transports' usual ones */
	uint16_t data_size;	/* of the ports' buffers; 0 = for the MTU */
	enum sl_elephant_mode elephant;
	uint16_t in_rings;	/* receive queues of a port's device; 0 = 1 */
	/* The queue that the device puts a frame in, with several; NULL = the first. */
	uint16_t (*queue_of)(uint16_t ethdev, const uint8_t *frame, size_t len);
	enum sl_steering steering;
	uint32_t rx_workers;	/* of the ports */
	bool no_ethernet;	/* UDP alone */
};

/* The far end. */
struct rig_peer {
	uint32_t id;
	uint8_t kind; /* enum sl_addr_kind */
	uint16_t port;
	uint8_t mac[6], ip[16];
	uint16_t udp_port;
	struct sl_addr at;
	uint8_t xonly[SL_XONLY_BYTES];
	struct sl_node_addr addr;
	struct sl_session *session;
	uint32_t index;	     /* theirs: what the relay puts on frames to them */
	uint8_t send[SL_KEY_BYTES], recv[SL_KEY_BYTES]; /* theirs */
	uint64_t counter;    /* next they send */
	uint64_t rx_counter; /* next the relay sends to them */
};

/* What control's sink was given. */
enum rig_seen_kind { RIG_HANDSHAKE, RIG_MESSAGE, RIG_DATAGRAM, RIG_LEARN, RIG_TOO_BIG, RIG_FIRST_FRAME, RIG_ROAMED, RIG_BEACON,
	RIG_TRAVERSAL, RIG_PATH_MTU };
struct rig_seen {
	enum rig_seen_kind kind;
	uint32_t rx_index, peer_id, len;
	uint16_t mtu;
	uint8_t flags;
	struct sl_addr from;
	uint8_t bytes[RIG_FRAME_MAX];
};

struct rig {
	struct rig_config config;
	struct sl_identity *identity;
	struct sl_session_table *table;
	struct sl_router *router;
	struct sl_dataplane *dp;
	struct rte_mempool *pool;
	struct rte_ring *in[RIG_PORTS]; /* the first of: */
	struct rte_ring *in_queue[RIG_PORTS][RIG_WORKERS];
	struct rte_ring *out[RIG_PORTS][RIG_WORKERS + 1];
	unsigned out_rings;
	uint8_t mac[RIG_PORTS][6];
	struct rig_peer peers[RIG_PEERS];
	uint32_t peer_count;
	struct rig_seen *seen;
	uint32_t seen_count;
	uint64_t now_us;
};

/* EAL is up after this; the suite's sl_test_setup calls it. */
int rig_eal_init(void);

/* Fails the running case and returns NULL on any error. */
struct rig *rig_create(const struct rig_config *config);
/* Checks that the counters balance and that every buffer is back, then takes all down. */
void rig_destroy(struct rig *r);

/* A peer with a session (owned by `owner`) and, unless `no_path`, a published path: its neighbour is resolved for real. */
struct rig_peer *rig_peer_add(struct rig *r, uint8_t kind, uint16_t port, uint16_t owner);
struct rig_peer *rig_peer_add_bare(struct rig *r, uint8_t kind, uint16_t port, uint16_t owner, bool with_path);
void rig_session_install(struct rig *r, struct rig_peer *p, uint16_t owner);

/* --- frames --- */
size_t rig_datagram(uint8_t *msg, uint8_t ttl, uint16_t path_mtu, const struct sl_node_addr *src,
	const struct sl_node_addr *dest, const void *payload, size_t payload_len);
/* Header, timestamp, message, tag; returns its length. */
size_t rig_seal(uint8_t *packet, const struct rig_peer *p, uint64_t counter, uint8_t flags, uint32_t ts_ms,
	const void *msg, size_t msg_len);
/* Seals any plaintext, also one without room for a timestamp. */
size_t rig_seal_raw(uint8_t *packet, const struct rig_peer *p, uint64_t counter, uint8_t flags, const void *text,
	size_t text_len);
/* From the peer to the relay's port: outer headers around an FMP packet. Returns the frame's length. */
size_t rig_wrap(const struct rig *r, const struct rig_peer *p, uint8_t *frame, const void *packet, size_t len);
/* FMP bytes that fit in a packet of such a peer's. */
uint16_t rig_link_mtu(const struct rig *r, uint8_t kind);
/* Where the FMP packet begins in such a frame. */
size_t rig_outer(const struct rig_peer *p);
/* Checksums of a frame made anew, after a test has changed it: IPv4 header, UDP. */
void rig_fix_ip4(uint8_t *frame);
void rig_fix_udp(uint8_t *frame);

struct rte_mbuf *rig_mbuf(struct rig *r, const void *frame, size_t len);
/* Into the port's receive ring. */
void rig_inject(struct rig *r, uint16_t port, const void *frame, size_t len);
/* One datagram from peer a to b's address through all of the above. Returns the message's length. */
size_t rig_send_datagram(struct rig *r, struct rig_peer *a, const struct sl_node_addr *dest, uint8_t flags, uint8_t ttl,
	uint16_t path_mtu, const void *payload, size_t payload_len, uint8_t *msg);

/* Turns of all workers (in the test's thread) until nothing moves; control's turns too when `control`. */
void rig_poll(struct rig *r, bool control);
/* A frame the relay sent by a port: copied, freed; 0 when there is none. */
size_t rig_receive(struct rig *r, uint16_t port, uint8_t *frame);
/*
 * Takes a frame apart that must be for peer p, checking outer headers, index and counter, and opens it. Returns the
 * message's length (type byte first), 0 after a failure.
 */
size_t rig_open(struct rig *r, struct rig_peer *p, const uint8_t *frame, size_t len, uint8_t *msg, uint8_t *flags,
	uint32_t *ts_ms);

uint64_t rig_verdict(const struct rig *r, enum sl_verdict v);
/* rx = sum of verdicts, for each worker. */
void rig_expect_balance(const struct rig *r);
/* The n-th thing of a kind that the sink saw, NULL if there is none. */
const struct rig_seen *rig_seen(const struct rig *r, enum rig_seen_kind kind, unsigned n);
void rig_forget(struct rig *r);

#endif
