/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session table: an arena of session slots, the rows the workers read, and control's books about the slots.
 *
 * A slot is free -> reserved -> live -> retiring -> free. Its session object has a fixed place in the arena, so a
 * reserved index has its memory and the arena never moves. Arena and rows are mapped, not allocated: untouched pages
 * cost nothing, and the lock takes pages as they are touched.
 */
#include "sl_session.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SLOTS_MIN 16u
#define SLOTS_MAX (1u << 20)
#define INDEX_TRIES 64 /* for a value that the slot did not have last time */
#define HUGE_BYTES (2u << 20)
#define LEASE_TRIES 1000u /* some ten microseconds: ten bursts' worth */

_Static_assert(sizeof(struct sl_session) % SL_CACHE_LINE == 0, "slots of the arena stay aligned");
_Static_assert(sizeof(struct sl_peer_row) == SL_CACHE_LINE, "one row a line");
_Static_assert((SL_SESSION_OWNERS_MAX & (SL_SESSION_OWNERS_MAX - 1)) == 0 && SL_SESSION_OWNERS_MAX <= 256, "owner_of");

enum slot_state { SLOT_FREE, SLOT_RESERVED, SLOT_LIVE, SLOT_RETIRING };

struct slot {
	uint32_t last_index; /* the last index given out for it */
	bool was_used;
	uint8_t state;
};

/* The free slots of one worker: order[start .. start + free) of the table. */
struct owner {
	uint32_t start, free;
};

struct mapping {
	void *at;
	size_t bytes;
};

struct sl_session_table {
	struct sl_session_view view;
	struct sl_session *arena;
	struct slot *slots;
	uint32_t *order;
	struct owner owners[SL_SESSION_OWNERS_MAX];
	uint32_t live;
	void (*reclaim)(void *arg, void (*fn)(void *fn_arg, void *obj), void *fn_arg, void *obj);
	void *reclaim_arg;
	struct mapping arena_map, rows_map, peers_map;
	struct { /* a line of its own, wherever the allocator puts the table */
		uint8_t before[SL_CACHE_LINE];
		uint32_t held;
		uint8_t behind[SL_CACHE_LINE];
	} lease;
};

static uint32_t
round_up_pow2(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

static int
map(struct mapping *m, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	if (bytes >= HUGE_BYTES) /* advice: fewer TLB misses where the kernel agrees */
		(void)madvise(at, bytes, MADV_HUGEPAGE);
	m->at = at;
	m->bytes = bytes;
	return 0;
}

static void
unmap(struct mapping *m)
{
	if (m->at != NULL)
		munmap(m->at, m->bytes);
}

/* Keys: out of core files, children and swap. Best effort: limits may forbid the lock. */
static void
protect(const struct mapping *m)
{
	(void)madvise(m->at, m->bytes, MADV_DONTDUMP);
	(void)madvise(m->at, m->bytes, MADV_DONTFORK);
	(void)mlock2(m->at, m->bytes, MLOCK_ONFAULT);
}

/* Slots enough that every worker can own its share of max_sessions, whatever their number. */
static uint32_t
slots_wanted(uint32_t max_sessions, uint32_t owner_values, uint32_t workers)
{
	uint32_t each = (max_sessions + workers - 1) / workers;
	uint32_t slots = round_up_pow2(max_sessions < SLOTS_MIN ? SLOTS_MIN : max_sessions);

	/* The smallest share is one of owner_values: fewer than two values fall to some worker. */
	while (slots / owner_values < each)
		slots <<= 1;
	return slots;
}

static void
slot_free(struct sl_session_table *t, uint32_t slot)
{
	struct owner *o = &t->owners[sl_session_owner(&t->view, slot)];

	t->slots[slot].state = SLOT_FREE;
	t->order[o->start + o->free++] = slot;
}

static void
owners_fill(struct sl_session_table *t)
{
	uint32_t slots = t->view.slot_mask + 1, at = 0;

	for (uint32_t slot = 0; slot < slots; slot++)
		t->owners[sl_session_owner(&t->view, slot)].free++;
	for (uint32_t w = 0; w < t->view.workers; w++) {
		t->owners[w].start = at;
		at += t->owners[w].free;
		t->owners[w].free = 0;
	}
	for (uint32_t slot = 0; slot < slots; slot++)
		slot_free(t, slot);
}

struct sl_session_table *
sl_session_table_create(const struct sl_session_table_config *config)
{
	uint32_t owner_values, slots;
	struct sl_session_table *t;

	if (config->workers < 1 || config->workers > SL_SESSION_OWNERS_MAX || config->max_sessions < 1 ||
		config->max_sessions > SLOTS_MAX || config->max_peers < 1) {
		errno = EINVAL;
		return NULL;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	owner_values = round_up_pow2(config->workers);
	slots = slots_wanted(config->max_sessions, owner_values, config->workers);
	t->slots = calloc(slots, sizeof(*t->slots));
	t->order = calloc(slots, sizeof(*t->order));
	if (t->slots == NULL || t->order == NULL)
		goto fail;
	if (map(&t->arena_map, (size_t)slots * sizeof(struct sl_session)) != 0 ||
		map(&t->rows_map, (size_t)slots * sizeof(struct sl_session *)) != 0 ||
		map(&t->peers_map, (size_t)config->max_peers * sizeof(struct sl_peer_row)) != 0)
		goto fail;
	protect(&t->arena_map);
	t->arena = t->arena_map.at;
	t->view.slots = t->rows_map.at;
	t->view.peers = t->peers_map.at;
	t->view.slot_mask = slots - 1;
	t->view.owner_mask = owner_values - 1;
	t->view.max_peers = config->max_peers;
	t->view.workers = config->workers;
	t->view.lease = config->workers == 1 ? &t->lease.held : NULL;
	for (uint32_t i = 0; i < owner_values; i++)
		t->view.owner_of[i] = (uint8_t)(i % config->workers);
	t->reclaim = config->reclaim;
	t->reclaim_arg = config->reclaim_arg;
	owners_fill(t);
	return t;
fail:
	sl_session_table_destroy(t);
	errno = ENOMEM;
	return NULL;
}

void
sl_session_table_destroy(struct sl_session_table *t)
{
	if (t == NULL)
		return;
	/* Free slots are wiped already; touching them would only bring their pages in. */
	for (uint32_t i = 0; t->arena != NULL && i <= t->view.slot_mask; i++)
		if (t->slots[i].state >= SLOT_LIVE)
			sl_wipe(&t->arena[i], sizeof(t->arena[i]));
	unmap(&t->peers_map);
	unmap(&t->rows_map);
	unmap(&t->arena_map);
	free(t->order);
	free(t->slots);
	free(t);
}

int
sl_session_index_reserve(struct sl_session_table *t, uint16_t owner, uint32_t *rx_index)
{
	uint32_t pick, slot, index;
	struct owner *o;

	if (owner >= t->view.workers)
		return -EINVAL;
	o = &t->owners[owner];
	if (o->free == 0)
		return -ENOSPC;
	pick = o->start + sl_random_below(o->free);
	slot = t->order[pick];
	t->order[pick] = t->order[o->start + --o->free];
	for (int i = 0; i < INDEX_TRIES; i++) {
		index = (sl_random_u32() & ~t->view.slot_mask) | slot;
		if (!t->slots[slot].was_used || index != t->slots[slot].last_index)
			break;
	}
	t->slots[slot].last_index = index;
	t->slots[slot].was_used = true;
	t->slots[slot].state = SLOT_RESERVED;
	*rx_index = index;
	return 0;
}

void
sl_session_index_release(struct sl_session_table *t, uint32_t rx_index)
{
	uint32_t slot = rx_index & t->view.slot_mask;

	if (t->slots[slot].state == SLOT_RESERVED && t->slots[slot].last_index == rx_index)
		slot_free(t, slot);
}

/* The owner of a new session, marked as the peer's current one is, if that has the same owner. */
static uint16_t
owner_marked(const struct sl_session_table *t, uint16_t worker, uint32_t peer_id)
{
	const struct sl_session *current = peer_id < t->view.max_peers ? t->view.peers[peer_id].tx : NULL;
	const uint16_t owner = current ? __atomic_load_n(&current->owner, __ATOMIC_RELAXED) : worker;

	return (owner & SL_OWNER_WORKER) == worker ? owner : worker;
}

struct sl_session *
sl_session_install(struct sl_session_table *t, uint32_t rx_index, uint32_t tx_index,
	uint32_t peer_id, bool is_initiator, const struct sl_noise_keys *keys, uint64_t origin_us)
{
	uint32_t slot = rx_index & t->view.slot_mask;
	struct sl_session *s = &t->arena[slot];

	if (t->slots[slot].state != SLOT_RESERVED || t->slots[slot].last_index != rx_index) {
		errno = EINVAL;
		return NULL;
	}
	memset(s, 0, sizeof(*s));
	s->rx_index = rx_index;
	s->tx_index = tx_index;
	s->peer_id = peer_id;
	s->owner = owner_marked(t, sl_session_owner(&t->view, rx_index), peer_id);
	s->is_initiator = is_initiator;
	s->origin_us = origin_us;
	s->notify = SL_NOTIFY_FIRST_FRAME;
	memcpy(s->rx_key, keys->recv, SL_KEY_BYTES);
	memcpy(s->tx_key, keys->send, SL_KEY_BYTES);
	sl_replay_init(&s->replay);
	sl_nonce_init(&s->tx_counter);
	t->slots[slot].state = SLOT_LIVE;
	t->live++;
	__atomic_store_n(&t->view.slots[slot], s, __ATOMIC_RELEASE);
	return s;
}

static void
session_free(void *table, void *session)
{
	struct sl_session_table *t = table;
	struct sl_session *s = session;

	sl_wipe(s, sizeof(*s));
	slot_free(t, (uint32_t)(s - t->arena));
}

void
sl_session_retire(struct sl_session_table *t, struct sl_session *s)
{
	uint32_t slot = (uint32_t)(s - t->arena);

	if (t->slots[slot].state != SLOT_LIVE)
		return;
	t->slots[slot].state = SLOT_RETIRING;
	t->live--;
	__atomic_store_n(&t->view.slots[slot], NULL, __ATOMIC_RELEASE);
	if (t->reclaim != NULL)
		t->reclaim(t->reclaim_arg, session_free, t, s);
	else
		session_free(t, s);
}

bool
sl_session_reserve(const struct sl_session_view *v, struct sl_session *s, uint64_t bytes, uint64_t *counter)
{
	bool ok;

	for (unsigned tries = 0; v->lease && !sl_session_lease_take(v); tries++)
		if (tries >= LEASE_TRIES)
			sched_yield(); /* the worker has lost its CPU in the middle */
	ok = sl_session_reserve_with(s, false, 1, bytes, counter);
	sl_session_lease_give(v, v->lease != NULL);
	return ok;
}

uint32_t
sl_session_count(const struct sl_session_table *t)
{
	return t->live;
}

size_t
sl_session_table_bytes(const struct sl_session_table *t)
{
	size_t slots = (size_t)t->view.slot_mask + 1;

	return sizeof(*t) + slots * (sizeof(*t->slots) + sizeof(*t->order)) + t->arena_map.bytes +
	       t->rows_map.bytes + t->peers_map.bytes;
}

size_t
sl_session_bytes(void)
{
	return sizeof(struct sl_session) + sizeof(struct sl_session *) + sizeof(struct slot) + sizeof(uint32_t);
}

size_t
sl_session_table_bytes_of(const struct sl_session_table_config *config)
{
	const uint32_t owner_values = round_up_pow2(config->workers);

	return sizeof(struct sl_session_table) + slots_wanted(config->max_sessions, owner_values, config->workers) * sl_session_bytes() +
	       config->max_peers * sizeof(struct sl_peer_row);
}

const struct sl_session_view *
sl_session_table_view(const struct sl_session_table *t)
{
	return &t->view;
}
