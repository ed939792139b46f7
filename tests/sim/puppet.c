/* SPDX-License-Identifier: BSD-3-Clause */
#include "puppet.h"

static void
puppet_read(struct puppet *p, const uint8_t *bytes, size_t len)
{
	uint8_t text[2048], nonce[12] = {0};

	switch (bytes[0] & 0x0f) {
	case SL_PHASE_MSG1:
		p->msg1++;
		memcpy(p->last_msg1, bytes, len);
		return;
	case SL_PHASE_MSG2:
		p->msg2++;
		memcpy(p->last_msg2, bytes, len);
		return;
	default:
		break;
	}
	memcpy(nonce + 4, bytes + 8, 8);
	if (sl_get32(bytes + 4) != p->my_index || len > sizeof(text) ||
		sl_aead_open_one(text, bytes + SL_HEADER_BYTES, len - SL_HEADER_BYTES, bytes,
			SL_HEADER_BYTES, nonce, p->keys.recv) != 0)
		return;
	p->frames++;
	p->last_flags = bytes[1];
	p->last_k = bytes[1] & SL_FLAG_K;
	p->heartbeats += text[4] == SL_MSG_HEARTBEAT;
	p->disconnects += text[4] == SL_MSG_DISCONNECT;
	p->data += text[4] >= SL_MSG_LOOKUP_REQUEST && text[4] < SL_MSG_DISCONNECT;
}

static void
on_packet(void *arg, const struct sl_addr *from, const uint8_t *bytes, size_t len)
{
	(void)from;
	puppet_read(arg, bytes, len);
}

struct puppet *
puppet_create(struct net *net)
{
	struct puppet *p = calloc(1, sizeof(*p));

	p->net = net;
	p->identity = sl_identity_generate();
	sl_random(p->epoch, sizeof(p->epoch));
	p->addr = net_stranger(net, on_packet, p);
	return p;
}

void
puppet_destroy(struct puppet *p)
{
	sl_identity_destroy(p->identity);
	free(p);
}

void
puppet_dial(struct puppet *p, struct node *n, uint32_t my_index, uint8_t *packet)
{
	uint8_t noise[SL_NOISE_MSG1_BYTES], bytes[SL_MSG1_PACKET_BYTES];
	struct sl_remote_key key;

	SL_EXPECT_EQ(sl_remote_key_init(&key, sl_identity_xonly(n->identity), p->identity), 0);
	sl_noise_initiate(&p->noise, noise, p->identity, &key, p->epoch, NULL);
	sl_msg1_build(bytes, my_index, noise);
	p->my_index = my_index;
	if (packet)
		memcpy(packet, bytes, sizeof(bytes));
	net_inject(p->net, &p->addr, n, bytes, sizeof(bytes));
}

bool
puppet_finish(struct puppet *p, const struct node *n)
{
	uint8_t epoch[SL_EPOCH_BYTES];

	(void)n;
	p->their_index = sl_get32(p->last_msg2 + 4);
	p->counter = 0;
	return sl_get32(p->last_msg2 + 8) == p->my_index &&
	       sl_noise_initiator_read(&p->noise, p->last_msg2 + 12, &p->keys, epoch) == 0;
}

void
puppet_answer(struct puppet *p, struct node *n, uint32_t my_index, bool send)
{
	uint8_t noise[SL_NOISE_MSG2_BYTES], bytes[SL_MSG2_PACKET_BYTES];
	struct sl_noise_responder st;

	SL_EXPECT_EQ(sl_noise_respond_read(&st, p->last_msg1 + 8, p->identity, NULL, NULL), 0);
	sl_noise_respond_write(&st, noise, p->identity, p->epoch, NULL, &p->keys);
	p->their_index = sl_get32(p->last_msg1 + 4);
	p->my_index = my_index;
	p->counter = 0;
	sl_msg2_build(bytes, my_index, p->their_index, noise);
	if (send)
		net_inject(p->net, &p->addr, n, bytes, sizeof(bytes));
}

void
puppet_send(struct puppet *p, struct node *n, uint8_t flags, const uint8_t *msg, size_t len)
{
	uint8_t f[2048], text[2048], nonce[12] = {0};

	sl_header_build(f, flags, (uint16_t)(4 + len), p->their_index, p->counter);
	memcpy(nonce + 4, &p->counter, 8);
	p->counter++;
	sl_put32(text, (uint32_t)(p->net->now_us / 1000));
	memcpy(text + 4, msg, len);
	sl_aead_seal_one(
		f + SL_HEADER_BYTES, text, 4 + len, f, SL_HEADER_BYTES, nonce, p->keys.send);
	net_inject(p->net, &p->addr, n, f, SL_OVERHEAD_BYTES + len);
}

void
puppet_heartbeat(struct puppet *p, struct node *n, uint8_t flags)
{
	const uint8_t msg = SL_MSG_HEARTBEAT;

	puppet_send(p, n, flags, &msg, 1);
}

void
puppet_configure(struct node *n, struct puppet *p)
{
	struct sl_peer_config c = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};

	memcpy(c.xonly, sl_identity_xonly(p->identity), SL_XONLY_BYTES);
	c.addrs[0] = p->addr;
	SL_EXPECT_EQ(sl_links_peer_configure(n->links, &c, n->net->now_us), 0);
	n->next_due_us = n->net->now_us;
}
