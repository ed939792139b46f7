/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_punch.h"
#include "../../crypto/sl_hash.h"
#include "nat_internal.h"

#define MAGIC_PROBE 0x4e505443u /* "NPTC" */
#define MAGIC_ACK 0x4e505441u	/* "NPTA" */

/* --- packets ---------------------------------------------------------------------------------- */

void
sl_punch_hash(uint8_t hash[SL_PUNCH_HASH_BYTES], const char *session_id)
{
	uint8_t full[SL_SHA256_BYTES];

	sl_sha256(full, session_id, strlen(session_id));
	memcpy(hash, full, SL_PUNCH_HASH_BYTES);
}

void
sl_punch_build(uint8_t packet[SL_PUNCH_BYTES], enum sl_punch_kind kind, uint32_t sequence,
	const uint8_t hash[SL_PUNCH_HASH_BYTES])
{
	put_be32(packet, kind == SL_PUNCH_PROBE ? MAGIC_PROBE : MAGIC_ACK);
	put_be32(packet + 4, sequence);
	memcpy(packet + 8, hash, SL_PUNCH_HASH_BYTES);
}

bool
sl_punch_parse(enum sl_punch_kind *kind, uint32_t *sequence, const uint8_t **hash, const uint8_t *packet, size_t len)
{
	uint32_t magic;

	if (len < SL_PUNCH_BYTES)
		return false;
	magic = be32(packet);
	if (magic != MAGIC_PROBE && magic != MAGIC_ACK)
		return false;
	*kind = magic == MAGIC_PROBE ? SL_PUNCH_PROBE : SL_PUNCH_ACK;
	*sequence = be32(packet + 4);
	*hash = packet + 8;
	return true;
}

/* --- targets ---------------------------------------------------------------------------------- */

/* ::ffff:a.b.c.d is a.b.c.d. */
static struct sl_addr
unwrapped(const struct sl_addr *a)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct sl_addr out;

	if (a->kind != SL_ADDR_UDP6 || memcmp(a->u.ip6, mapped, sizeof(mapped)) != 0)
		return *a;
	memset(&out, 0, sizeof(out));
	out.kind = SL_ADDR_UDP4;
	out.transport = a->transport;
	out.udp_port = a->udp_port;
	memcpy(out.u.ip4, a->u.ip6 + 12, 4);
	return out;
}

bool
sl_punch_addr_usable(const struct sl_addr *a)
{
	static const uint8_t zero[16], loopback[16] = {[15] = 1};
	const uint8_t *ip = a->u.ip6;

	if (a->udp_port == 0)
		return false;
	if (a->kind == SL_ADDR_UDP4)
		return !(ip[0] == 127 || memcmp(ip, zero, 4) == 0 || (ip[0] & 0xf0) == 0xe0 || (ip[0] == 169 && ip[1] == 254) ||
			 memcmp(ip, "\xff\xff\xff\xff", 4) == 0 || (ip[0] == 100 && (ip[1] & 0xc0) == 64));
	if (a->kind == SL_ADDR_UDP6)
		return !(memcmp(ip, zero, 16) == 0 || memcmp(ip, loopback, 16) == 0 || ip[0] == 0xff ||
			 (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80));
	return false;
}

bool
sl_punch_addr_private(const struct sl_addr *a)
{
	const uint8_t *ip = a->u.ip6;

	if (a->kind == SL_ADDR_UDP4)
		return ip[0] == 10 || (ip[0] == 172 && (ip[1] & 0xf0) == 16) || (ip[0] == 192 && ip[1] == 168);
	return a->kind == SL_ADDR_UDP6 && (ip[0] & 0xfe) == 0xfc;
}

static bool
same_24(const struct sl_addr *a, const struct sl_addr *b)
{
	return a->kind == SL_ADDR_UDP4 && b->kind == SL_ADDR_UDP4 && memcmp(a->u.ip4, b->u.ip4, 3) == 0;
}

static bool
near_us(const struct sl_punch_side *ours, const struct sl_addr *a)
{
	for (unsigned i = 0; i < ours->local_count; i++)
		if (same_24(&ours->local[i], a))
			return true;
	return sl_punch_addr_private(&ours->reflexive) && same_24(&ours->reflexive, a);
}

struct plan {
	struct sl_addr *targets;
	unsigned pairs, count;
};

static void
add(struct plan *p, const struct sl_addr *to)
{
	if (p->pairs == SL_PUNCH_TARGETS_MAX)
		return;
	p->pairs++;
	for (unsigned i = 0; i < p->count; i++)
		if (sl_addr_equal(&p->targets[i], to))
			return;
	p->targets[p->count++] = *to;
}

unsigned
sl_punch_plan(struct sl_addr targets[SL_PUNCH_TARGETS_MAX], const struct sl_punch_side *ours,
	const struct sl_punch_side *theirs, unsigned *refused)
{
	struct plan p = {.targets = targets};
	struct sl_addr reflexive = unwrapped(&theirs->reflexive), local[SL_PUNCH_CANDIDATES_MAX];
	const bool have_reflexive = ours->reflexive.kind != SL_ADDR_NONE;
	bool theirs_reflexive = reflexive.kind != SL_ADDR_NONE;
	unsigned local_count = 0;

	*refused = 0;
	if (theirs_reflexive && !sl_punch_addr_usable(&reflexive)) {
		theirs_reflexive = false;
		(*refused)++;
	}
	for (unsigned i = 0; i < theirs->local_count && i < SL_PUNCH_CANDIDATES_MAX; i++) {
		const struct sl_addr a = unwrapped(&theirs->local[i]);

		if (sl_punch_addr_usable(&a) && (!sl_punch_addr_private(&a) || near_us(ours, &a)))
			local[local_count++] = a;
		else
			(*refused)++;
	}
	if (have_reflexive && theirs_reflexive)
		add(&p, &reflexive);
	for (unsigned i = 0; i < ours->local_count; i++)
		for (unsigned k = 0; k < local_count; k++)
			if (same_24(&ours->local[i], &local[k]))
				add(&p, &local[k]);
	for (unsigned i = 0; theirs_reflexive && i < ours->local_count; i++)
		add(&p, &reflexive);
	for (unsigned k = 0; have_reflexive && k < local_count; k++)
		add(&p, &local[k]);
	return p.count;
}

/* --- one session ------------------------------------------------------------------------------ */

void
sl_punch_begin(struct sl_punch *p, const char *session_id, const struct sl_addr *targets, unsigned count,
	const struct sl_punch_times *times, uint64_t now_us)
{
	const uint32_t interval_ms =
		times->interval_ms > SL_PUNCH_INTERVAL_MIN_MS ? times->interval_ms : SL_PUNCH_INTERVAL_MIN_MS;

	memset(p, 0, sizeof(*p));
	sl_punch_hash(p->hash, session_id);
	p->target_count = count < SL_PUNCH_TARGETS_MAX ? count : SL_PUNCH_TARGETS_MAX;
	memcpy(p->targets, targets, p->target_count * sizeof(*targets));
	p->interval_us = interval_ms * 1000;
	p->next_us = now_us + (uint64_t)times->delay_ms * 1000;
	p->send_until_us = p->next_us + (uint64_t)times->duration_ms * 1000;
	p->deadline_us = now_us + (uint64_t)times->timeout_ms * 1000;
	/* The other side may have begun later, and depends on our answers as long as it sends. */
	p->answer_until_us = p->send_until_us > p->deadline_us ? p->send_until_us : p->deadline_us;
	p->state = SL_PUNCH_RUNNING;
}

bool
sl_punch_packet(struct sl_punch *p, const struct sl_addr *from, const uint8_t *packet, size_t len, uint64_t now_us,
	sl_punch_send_fn send, void *arg)
{
	uint8_t ack[SL_PUNCH_BYTES];
	enum sl_punch_kind kind;
	const uint8_t *hash;
	uint32_t sequence;

	if (p->state != SL_PUNCH_RUNNING && p->state != SL_PUNCH_DONE)
		return false;
	if (!sl_punch_parse(&kind, &sequence, &hash, packet, len) || memcmp(hash, p->hash, SL_PUNCH_HASH_BYTES) != 0)
		return false;
	if (now_us >= (p->state == SL_PUNCH_DONE ? p->answer_until_us : p->deadline_us))
		return true; /* too late to say anything */
	if (kind == SL_PUNCH_PROBE) {
		sl_punch_build(ack, SL_PUNCH_ACK, sequence, p->hash);
		if (send(arg, from, ack, sizeof(ack)) == 0)
			p->answered++;
	}
	if (p->state == SL_PUNCH_RUNNING) {
		p->state = SL_PUNCH_DONE;
		p->remote = *from;
	}
	return true;
}

uint64_t
sl_punch_tick(struct sl_punch *p, uint64_t now_us, sl_punch_send_fn send, void *arg)
{
	uint8_t probe[SL_PUNCH_BYTES];

	if (p->state == SL_PUNCH_DONE)
		return now_us < p->answer_until_us ? p->answer_until_us : UINT64_MAX;
	if (p->state != SL_PUNCH_RUNNING)
		return UINT64_MAX;
	if (now_us >= p->deadline_us) {
		p->state = SL_PUNCH_TIMED_OUT;
		return UINT64_MAX;
	}
	if (now_us >= p->next_us && now_us < p->send_until_us) {
		sl_punch_build(probe, SL_PUNCH_PROBE, p->sequence++, p->hash);
		for (unsigned i = 0; i < p->target_count; i++)
			if (send(arg, &p->targets[i], probe, sizeof(probe)) == 0)
				p->sent++;
		p->next_us += p->interval_us;
		if (p->next_us <= now_us) /* called late: no salvo */
			p->next_us = now_us + p->interval_us;
	}
	return p->next_us < p->send_until_us && p->next_us < p->deadline_us ? p->next_us : p->deadline_us;
}
