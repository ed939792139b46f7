/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NIC_H
#define NIC_H
/*
 * A stand-in for a NIC with flow rules and RSS, since no such hardware is here: in front of ports made of rings it answers
 * what the pipeline asks of ethdev about rules and RSS (the linker wraps these functions for this test), keeps the rules
 * it was given, and puts each frame into the queue that they, or else RSS, say. It takes packets apart and matches patterns by
 * plain code of its own, from the meaning that DPDK's documentation gives rte_flow's items. What it cannot show is how a
 * driver or a NIC treats such rules; what a rule says, when it is made, seen and removed, and what becomes of frames, it does.
 *
 * One at a time, for all ports. nic_set() takes effect with the next port that is opened.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NIC_RULES = 1,	    /* has flow rules at all */
	NIC_NO_RAW = 2,	    /* but none with a raw pattern */
	NIC_NO_COUNT = 4,   /* none with a counter */
	NIC_NO_DUMP = 8,    /* cannot dump a rule */
	NIC_EXIST = 16,	    /* says of a second one that it exists */
	NIC_BLIND = 32,	    /* counts and shows rules, and does not go by them */
	NIC_RSS = 64,
	NIC_RSS_MUTE = 128, /* does not say what it hashes */
	NIC_RSS_NONE = 256, /* says that it hashes nothing */
	NIC_RSS_FLAT = 512, /* its table leads to one queue until it is written */
	NIC_RSS_ADDRESSES = 1024, /* hashes addresses alone */
};
void nic_set(unsigned flags, unsigned rules_most);
unsigned nic_rules(void);	   /* in force, of all ports */
unsigned nic_made(void);	   /* ever since nic_set() */
unsigned nic_left_at_stop(void);   /* rules that were there when their port was stopped */
unsigned nic_refused(void);	   /* frames that no rule matched and RSS did not spread */
/* rig_config.queue_of */
uint16_t nic_queue_of(uint16_t ethdev, const uint8_t *frame, size_t len);

#endif
