/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_STEER_H
#define SL_STEER_H
/*
 * Steering: which of a port's receive queues a frame comes to. A session belongs to the worker that the low bits of our
 * receiver index name, so the best queue is that worker's; a frame that comes elsewhere is handed over, which costs (docs/pipeline.md).
 *
 *	flow      rules of the device (rte_flow): IP, UDP destination, and the index's low bits by a raw pattern behind the
 *	          UDP header -> the owner's queue. A rule for each family, UDP transport and value of these bits.
 *	rss       the device spreads outer five-tuples (or addresses, where it knows no ports): one queue a peer, owner or not
 *	driver    the driver spreads flows by itself (the kernel's fanout), and does not say how
 *	software  nothing the device could go by (raw Ethernet, no RSS): hand-over alone
 *	one       a single worker receives: there is nothing to choose
 *
 * Invariant: the port is in the first of these that it can do and whose knob allows it, and `why` says what stands behind that. Rules
 * count only when all of them were made and can be read back: the counter of each by rte_flow_query(), else its dump by
 * rte_flow_dev_dump(), else validating it again says that it is there. With the knob `flow` those that a driver takes but cannot show hold too. What
 * no read-back shows, traffic does: with rules in force frames must not come to other workers' queues (sl_steer_watch()).
 *
 * Handshake packets have the sender's index, which is random, in the place of ours: they go to any worker, which is as good.
 *
 * Threads: control alone. Order: apply after the device was started and the transports are known, remove before it is stopped;
 * both may be called again. rte_flow: https://doc.dpdk.org/guides-22.11/prog_guide/rte_flow.html
 */
#include <rte_flow.h>
#include "../overlay/sl_session.h"
#include "sl_dataplane.h"

#define SL_STEER_WHY_SIZE 256

enum sl_steer_mode { SL_STEER_NONE, SL_STEER_ONE, SL_STEER_FLOW, SL_STEER_RSS, SL_STEER_DRIVER, SL_STEER_SOFTWARE };

struct sl_steer {
	enum sl_steer_mode mode; /* NONE: not applied yet */
	bool driver_spreads;	 /* by its nature: set when the device is opened */
	bool rss_set;		 /* the device was configured for RSS */
	bool counted;		 /* rules have counters that can be read */
	bool refuted;		 /* traffic has shown that rules do not steer: not tried again with this device */
	struct rte_flow **rules;
	uint16_t count;
	uint16_t left_out; /* values of the low bits whose worker does not receive from this port */
	uint64_t rx_before, handed_before; /* of the port, when the rules were made */
	char why[SL_STEER_WHY_SIZE];
};

/* A rule as rte_flow takes it; the items point into it. */
struct sl_steer_rule {
	struct rte_flow_attr attr;
	struct rte_flow_item items[6];
	struct rte_flow_action actions[3];
	struct rte_flow_item_vlan vlan_spec, vlan_mask;
	struct rte_flow_item_udp udp_spec, udp_mask;
	struct rte_flow_item_raw raw_spec, raw_mask;
	uint8_t pattern[2], pattern_mask[2];
	struct rte_flow_action_queue queue;
	struct rte_flow_action_count counter;
};
struct sl_steer_match {
	uint8_t family; /* 4, 6 */
	uint16_t vlan;	/* 0 = untagged */
	uint16_t udp_port;
	uint8_t value, mask; /* of the index's lowest byte */
};
void sl_steer_rule_make(struct sl_steer_rule *r, const struct sl_steer_match *match, uint16_t queue, bool counted);

struct sl_dataplane;
struct sl_port;
/* Has the (configured) device flow rules at all, whatever they can match? */
bool sl_steer_possible(uint16_t ethdev);
/* Chooses the port's mode, makes rules, reads back, tells the log what has changed. */
void sl_steer_apply(struct sl_dataplane *dp, struct sl_port *p);
/* Takes the rules away; the mode stays as it was shown. */
void sl_steer_remove(struct sl_port *p);
/* Once a second: rules that do not do what they say go. */
void sl_steer_watch(struct sl_dataplane *dp, struct sl_port *p);
/* Frames that the rules have matched, as the device counts; 0 when it does not. */
uint64_t sl_steer_hits(const struct sl_port *p);
/* Frames that came from the port's queues, and those of them that went to another worker. */
void sl_steer_handed(const struct sl_dataplane *dp, uint16_t port, uint64_t *rx, uint64_t *handed);
const char *sl_steer_mode_name(enum sl_steer_mode mode);

#endif
