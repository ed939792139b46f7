/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PUPPET_H
#define PUPPET_H
/*
 * A node that does only what the test tells it to: packets made and read by hand with lib/crypto.
 * For what a peer does that our own links never would: what the reference does by its clock, and
 * what an attacker does.
 */
#include "link_net.h"

struct puppet {
	struct net *net;
	unsigned index;
	struct sl_identity *identity;
	struct sl_addr addr;
	uint8_t epoch[SL_EPOCH_BYTES];
	/* The last handshake that it began or answered. */
	struct sl_noise_initiator noise;
	uint32_t my_index, their_index;
	struct sl_noise_keys keys;
	uint64_t counter;
	/* What came in. */
	unsigned msg1, msg2, frames, heartbeats, disconnects, data;
	uint8_t last_msg1[SL_MSG1_PACKET_BYTES], last_msg2[SL_MSG2_PACKET_BYTES];
	uint8_t last_k, last_flags;
};

struct puppet *puppet_create(struct net *net);
void puppet_destroy(struct puppet *p);
/* msg1 to n under an index of its own; the packet is left in *packet when that is not NULL. */
void puppet_dial(struct puppet *p, struct node *n, uint32_t my_index, uint8_t *packet);
/* Finishes with last_msg2. False when it does not authenticate. */
bool puppet_finish(struct puppet *p, const struct node *n);
/* Answers last_msg1; the keys are those of the new session. */
void puppet_answer(struct puppet *p, struct node *n, uint32_t my_index, bool send);
/* One frame on the session of `keys`. */
void puppet_send(struct puppet *p, struct node *n, uint8_t flags, const uint8_t *msg, size_t len);
void puppet_heartbeat(struct puppet *p, struct node *n, uint8_t flags);
void puppet_configure(struct node *n, struct puppet *p);

#endif
