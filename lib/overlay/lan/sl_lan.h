/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LAN_H
#define SL_LAN_H
/*
 * FIPS nodes on the same link, by multicast DNS: tells who asks where we are, and asks who is there. Peering facts, section 15;
 * RFC 6762. A state machine of control's: messages and time go in, messages and found nodes come out.
 *
 * Nothing that is heard is believed further than this: "a node of this key may be at these addresses of this link". What is taken:
 *	messages	of a sender on the link's own prefixes, SL_LAN_MESSAGES_PER_S; more are dropped unread
 *	nodes		whose scope is ours (when we have one), with a port and an address on the link: so nobody far away is dialled
 *			because a stranger named him here
 * How many found nodes are kept, and who is dialled when, is sl_found.h's.
 *
 * We ask at the start (after a moment by chance), then after 1, 2, 4 ... s up to SL_LAN_BROWSE_MAX_US; who answers with less than
 * all about himself is asked for the rest. We answer once a second at the most on each port and family, 20 to 120 ms late
 * (RFC 6762, 6), tell twice at the start that we are there, and once at the end that we go. Our names are not probed for: they
 * come from our key, and giving one up because somebody else uses it would let anybody silence us.
 */
#include "../sl_bucket.h"
#include "sl_mdns.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_LAN_PORTS_MAX 16u
#define SL_LAN_IFADDRS_MAX 16u
#define SL_LAN_MESSAGES_PER_S 100.0 /* bursts of 200 */
#define SL_LAN_BROWSE_MAX_US UINT64_C(1200000000)
#define SL_LAN_ASKS_MAX 8u /* instances that are asked about, waiting */

#define SL_LAN_COUNTERS(X)                                                                                             \
	X(HEARD, "mdns_heard", "mDNS messages heard")                                                                 \
	X(LIMITED, "mdns_limited", "mDNS messages not looked at: more than the limit")                                \
	X(FAR, "mdns_off_link", "mDNS messages of a sender that is not on the link")                                  \
	X(PORT, "mdns_source_port", "mDNS messages from another UDP port than 5353")                                  \
	X(FAULTY, "mdns_faulty", "mDNS messages that are none, or ask for too much")                                  \
	X(QUERIES, "mdns_queries", "mDNS queries about us")                                                           \
	X(ANSWERS, "mdns_answers", "mDNS messages sent that say where we are")                                        \
	X(BROWSES, "mdns_browses", "mDNS queries sent")                                                               \
	X(SEND_FAILED, "mdns_send_failed", "mDNS messages that could not be sent")                                    \
	X(FOUND, "mdns_found", "nodes found by mDNS, each time they are heard")                                       \
	X(OWN, "mdns_own", "our own node heard by mDNS")                                                              \
	X(SCOPE, "mdns_other_scope", "nodes of another scope heard by mDNS")                                          \
	X(NO_KEY, "mdns_no_key", "instances without a sound npub")                                                    \
	X(NO_ADDRESS, "mdns_no_address", "nodes without a port or an address on the link")                            \
	X(INCOMPLETE, "mdns_incomplete", "instances of which a message told only a part")                             \
	X(LEFT_OUT, "mdns_left_out", "instances left out: too many in a message")
enum sl_lan_counter {
#define SL_LAN_COUNTER_ENUM(id, name, what) SL_LAN_##id,
	SL_LAN_COUNTERS(SL_LAN_COUNTER_ENUM) SL_LAN_COUNTER_COUNT
};
const char *sl_lan_counter_name(enum sl_lan_counter c);

struct sl_lan_ifaddr {
	struct sl_mdns_ip ip;
	uint8_t prefix_len;
	bool told; /* we can be reached there: stands in our answers */
};

struct sl_lan_sink {
	void *arg;
	/* To the group of a family on one port. 0 or -errno. */
	int (*send)(void *arg, unsigned port, uint8_t family, const uint8_t *message, size_t len);
	/* addrs: on the link of that port, none of our own, 1 .. SL_MDNS_ADDRS_MAX. ttl_s: as long as it says. */
	void (*found)(void *arg, unsigned port, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_mdns_ip *addrs, unsigned count,
		uint16_t udp_port, uint32_t ttl_s);
	/* It says good-bye. */
	void (*gone)(void *arg, unsigned port, const uint8_t xonly[SL_XONLY_BYTES]);
};

struct sl_lan;

/* self: copied; its port 0: we look, and tell nobody. NULL and errno. */
struct sl_lan *sl_lan_create(const struct sl_mdns_self *self, const uint8_t xonly[SL_XONLY_BYTES], const struct sl_lan_sink *sink,
	uint64_t now_us) SL_MUST_CHECK;
void sl_lan_destroy(struct sl_lan *lan);
/* Port by port, 0 first, before anything else. 0, -ENOSPC. */
int sl_lan_port(struct sl_lan *lan, const struct sl_lan_ifaddr *addrs, unsigned count) SL_MUST_CHECK;

/* A message to the group, with the sender's address and UDP port. */
void sl_lan_input(struct sl_lan *lan, unsigned port, const struct sl_mdns_ip *from, uint16_t from_port, const uint8_t *message,
	size_t len, uint64_t now_us);
/* Does what is due; when to call again at the latest (monotonic us). */
uint64_t sl_lan_tick(struct sl_lan *lan, uint64_t now_us);
/* We go: told at once. */
void sl_lan_goodbye(struct sl_lan *lan);

const uint64_t *sl_lan_counters(const struct sl_lan *lan);

#ifdef __cplusplus
}
#endif
#endif
