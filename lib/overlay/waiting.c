/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of ours for a peer that has no usable key yet. One rule: while anything waits, whatever is sent
 * goes behind it. The links' own heartbeats and reports belong to a session and never wait.
 */
#include "link_internal.h"

#include <errno.h>
#include <stdlib.h>

struct wait_frame {
	struct wait_frame *next;
	uint16_t len;
	uint8_t flags;
	uint8_t msg[];
};

static void
frame_free(struct wait_frame *f)
{
	sl_wipe(f->msg, f->len);
	free(f);
}

static struct wait_frame *
frame_take(struct peer *p)
{
	struct wait_frame *f = p->waiting.first;

	p->waiting.first = f->next;
	if (!f->next)
		p->waiting.last = NULL;
	p->waiting.count--;
	return f;
}

static int
frame_wait(struct sl_links *l, struct peer *p, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct wait_frame *f;

	if (!len || len > SL_FRAME_MAX - SL_OVERHEAD_BYTES)
		return -EMSGSIZE;
	if (p->waiting.count >= SL_WAIT_FRAMES)
		return -ENOBUFS;
	f = malloc(sizeof(*f) + len);
	if (!f) {
		count(l, SL_LINK_NO_MEMORY);
		return -ENOMEM;
	}
	f->next = NULL;
	f->len = (uint16_t)len;
	f->flags = flags;
	memcpy(f->msg, msg, len);
	if (p->waiting.last)
		p->waiting.last->next = f;
	else
		p->waiting.first = f;
	p->waiting.last = f;
	p->waiting.count++;
	count(l, SL_LINK_WAITED);
	return 0;
}

void
sl_waiting_drop(struct sl_links *l, struct peer *p)
{
	while (p->waiting.first) {
		frame_free(frame_take(p));
		count(l, SL_LINK_WAITED_DROPPED);
	}
}

static int
send_now(struct sl_links *l, struct peer *p, const uint8_t *msg, size_t len, uint8_t flags, uint64_t now_us)
{
	if (len + SL_OVERHEAD_BYTES > p->link_mtu)
		return -EMSGSIZE;
	return sl_session_send(l, p->current.s, &p->where.addr, msg, len, flags, now_us);
}

void
sl_waiting_flush(struct sl_links *l, struct peer *p, uint64_t now_us)
{
	while (p->up && p->waiting.first) {
		const struct wait_frame *f = p->waiting.first;
		int rc = send_now(l, p, f->msg, f->len, f->flags, now_us);

		if (rc == -EOVERFLOW)
			return; /* this key is used up as well: the next one */
		if (rc < 0)
			count(l, SL_LINK_WAITED_DROPPED);
		frame_free(frame_take(p));
	}
}

static int
send_or_wait(struct sl_links *l, struct peer *p, const uint8_t *msg, size_t len, uint8_t flags, uint64_t now_us)
{
	int rc = -EOVERFLOW;

	if (!p->up && !p->is_pending && !p->dial_count)
		return -ENOTCONN;
	if (p->up && len + SL_OVERHEAD_BYTES > p->link_mtu)
		return -EMSGSIZE;
	if (p->up && !p->waiting.count)
		rc = send_now(l, p, msg, len, flags, now_us);
	return rc == -EOVERFLOW ? frame_wait(l, p, msg, len, flags) : rc;
}

int
sl_links_send(struct sl_links *l, uint32_t peer_id, const uint8_t *msg, size_t len, uint8_t flags,
	uint64_t now_us)
{
	struct peer *p = peer_id < l->view->max_peers ? l->peer_of_id[peer_id] : NULL;

	if (!p || !p->up)
		return -ENOTCONN;
	return send_or_wait(l, p, msg, len, flags, now_us);
}

int
sl_links_probe(struct sl_links *l, uint32_t peer_id, const uint8_t *msg, size_t len, uint64_t now_us)
{
	struct peer *p = peer_id < l->view->max_peers ? l->peer_of_id[peer_id] : NULL;
	uint64_t counter;
	int rc;

	if (!p || !p->up)
		return -ENOTCONN;
	counter = sl_nonce_used(&p->current.s->tx_counter);
	rc = sl_session_send(l, p->current.s, &p->where.addr, msg, len, 0, now_us);
	if (sl_nonce_used(&p->current.s->tx_counter) > counter)
		sl_excuse(p, counter);
	return rc;
}

int
sl_links_send_key(struct sl_links *l, const uint8_t xonly[SL_XONLY_BYTES], const uint8_t *msg, size_t len,
	uint8_t flags, uint64_t now_us)
{
	struct peer *p = sl_peer_find(l, xonly);

	return p ? send_or_wait(l, p, msg, len, flags, now_us) : -ENOTCONN;
}
