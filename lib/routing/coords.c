/* SPDX-License-Identifier: BSD-3-Clause */
#include "coords.h"

#include <errno.h>
#include <stdlib.h>

#define WAYS 16
#define ID_MASK 0xffffffu
#define SAMPLE 32
#define SMALL 64
#define STEP 8192 /* entries of a sweep done at once */

int sl_coords_init(struct sl_coords *c, uint32_t capacity, uint32_t ttl_s,
	const struct sl_node_addr *self, const uint64_t key[2], struct sl_limbo *limbo)
{
	uint32_t buckets = 1;

	memset(c, 0, sizeof(*c));
	if (!capacity || capacity > SL_COORD_CAPACITY_MAX)
		return -EINVAL;
	while (buckets * WAYS / 2 < capacity)
		buckets *= 2;
	c->capacity = capacity;
	c->bucket_mask = buckets - 1;
	c->ttl_s = ttl_s;
	c->self = *self;
	c->key[0] = key[0];
	c->key[1] = key[1];
	c->random = key[0] ^ key[1] ^ 0x9e3779b97f4a7c15ull;
	c->limbo = limbo;
	c->entries = aligned_alloc(32, capacity * sizeof(*c->entries));
	c->kept = calloc(capacity, sizeof(*c->kept));
	c->undecided = malloc(capacity * sizeof(*c->undecided));
	c->dense = malloc(capacity * sizeof(*c->dense));
	c->place = calloc(capacity, sizeof(*c->place));
	c->born = calloc(capacity, sizeof(*c->born));
	c->slots = aligned_alloc(64, (size_t)buckets * WAYS * sizeof(*c->slots));
	if (c->entries)
		memset(c->entries, 0, capacity * sizeof(*c->entries));
	if (!c->entries || !c->kept || !c->undecided || !c->dense || !c->place || !c->born ||
		!c->slots) {
		sl_coords_fini(c);
		return -ENOMEM;
	}
	memset(c->slots, 0, (size_t)buckets * WAYS * sizeof(*c->slots));
	for (uint32_t i = 0; i < capacity; i++)
		c->dense[i] = i;
	return 0;
}

void sl_coords_fini(struct sl_coords *c)
{
	for (uint32_t i = 0; c->entries && i < c->capacity; i++)
		free((void *)(uintptr_t)c->entries[i].data);
	free(c->entries);
	free(c->kept);
	free(c->undecided);
	free(c->dense);
	free(c->place);
	free(c->born);
	free(c->slots);
	memset(c, 0, sizeof(*c));
}

static uint32_t *bucket(const struct sl_coords *c, uint64_t hash, unsigned which)
{
	uint32_t b = (uint32_t)(which ? hash >> 28 : hash) & c->bucket_mask;

	return c->slots + (size_t)b * WAYS;
}

void sl_coords_prefetch(const struct sl_coords *c, uint64_t hash)
{
	__builtin_prefetch(bucket(c, hash, 0));
	__builtin_prefetch(bucket(c, hash, 1));
}

static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 56) << 24;
}

uint32_t sl_coords_prefetch_entry(const struct sl_coords *c, uint64_t hash)
{
	const uint32_t tag = tag_of(hash);

	for (unsigned which = 0; which < 2; which++) {
		const uint32_t *slot = bucket(c, hash, which);

		for (unsigned i = 0; i < WAYS; i++) {
			uint32_t v = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);

			if (v && (v & ~ID_MASK) == tag) {
				__builtin_prefetch(&c->entries[(v & ID_MASK) - 1]);
				return (v & ID_MASK) - 1;
			}
		}
	}
	return SL_COORD_NONE;
}

void sl_coords_prefetch_data(const struct sl_coords *c, uint32_t id)
{
	__builtin_prefetch(__atomic_load_n(&c->entries[id].data, __ATOMIC_RELAXED));
}

/* The slot that holds key, NULL when absent. */
static uint32_t *find_slot(const struct sl_coords *c, const uint8_t *key, uint64_t hash,
	uint32_t *id, const struct sl_coord_data **data)
{
	const uint32_t tag = tag_of(hash);

	for (unsigned which = 0; which < 2; which++) {
		uint32_t *slot = bucket(c, hash, which);

		for (unsigned i = 0; i < WAYS; i++) {
			uint32_t v = __atomic_load_n(&slot[i], __ATOMIC_ACQUIRE);
			const struct sl_coord_data *d;

			if (!v || (v & ~ID_MASK) != tag)
				continue;
			*id = (v & ID_MASK) - 1;
			d = __atomic_load_n(&c->entries[*id].data, __ATOMIC_ACQUIRE);
			if (d && sl_node_same(&d->key, (const struct sl_node_addr *)key)) {
				*data = d;
				return &slot[i];
			}
		}
	}
	return NULL;
}

const struct sl_coord_data *sl_coords_lookup(const struct sl_coords *c,
	const uint8_t key[SL_NODE_ADDR_BYTES], uint64_t hash, uint32_t now_s, uint32_t *id,
	uint32_t *serial)
{
	const struct sl_coord_data *d;
	const struct sl_coord_entry *e;

	if (!find_slot(c, key, hash, id, &d))
		return NULL;
	e = &c->entries[*id];
	if (sl_coord_expired(c, __atomic_load_n(&e->used_s, __ATOMIC_RELAXED), now_s))
		return NULL;
	/*
	 * Serial first, then the contents that are returned: control stores contents, then serial,
	 * so an answer made from newer contents may carry the older serial (and is given up early)
	 * but never the other way round.
	 */
	*serial = __atomic_load_n(&e->serial, __ATOMIC_ACQUIRE);
	d = __atomic_load_n(&e->data, __ATOMIC_ACQUIRE);
	return d && sl_node_same(&d->key, (const struct sl_node_addr *)key) ? d : NULL;
}

void sl_coords_undecide(struct sl_coords *c, uint32_t id)
{
	struct sl_coord_kept *k = &c->kept[id];

	/* Before the serial: who sees the new one does not see the former answer. */
	__atomic_store_n(&c->entries[id].hop, SL_COORD_HOP_UNDECIDED, __ATOMIC_RELAXED);
	k->rule = SL_COORD_UNDECIDED;
	if (!k->listed)
		c->undecided[c->undecided_count++] = id;
	k->listed = 1;
}

uint32_t sl_coords_id(const struct sl_coords *c, const struct sl_node_addr *key)
{
	const struct sl_coord_data *d;
	uint32_t id;

	return find_slot(c, key->bytes, sl_node_hash(key->bytes, c->key), &id, &d) ? id
										   : SL_COORD_NONE;
}

static void entry_drop(struct sl_coords *c, uint32_t id)
{
	struct sl_coord_entry *e = &c->entries[id];
	const struct sl_coord_data *d = e->data, *found;
	uint32_t found_id, at = c->place[id], last = c->dense[c->count - 1];
	uint32_t *slot =
		find_slot(c, d->key.bytes, sl_node_hash(d->key.bytes, c->key), &found_id, &found);

	if (slot)
		__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->hop, SL_COORD_HOP_UNDECIDED, __ATOMIC_RELAXED);
	c->kept[id].rule = SL_COORD_FREE;
	__atomic_store_n(&e->data, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&e->serial, e->serial + 1, __ATOMIC_RELEASE);
	c->dense[at] = last;
	c->place[last] = at;
	c->dense[--c->count] = id;
	sl_limbo_put(c->limbo, (void *)(uintptr_t)d);
}

static uint32_t random_below(struct sl_coords *c, uint32_t bound)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (uint32_t)(((c->random >> 32) * bound) >> 32);
}

static void evict_one(struct sl_coords *c, uint32_t now_s)
{
	bool all = c->count <= SMALL;
	uint32_t victim = SL_COORD_NONE, oldest = 0;

	for (uint32_t i = 0; i < (all ? c->count : SAMPLE); i++) {
		uint32_t id = c->dense[all ? i : random_below(c, c->count)];
		uint32_t age = now_s - __atomic_load_n(&c->entries[id].used_s, __ATOMIC_RELAXED);

		if ((int32_t)age < 0)
			age = 0;
		if (victim == SL_COORD_NONE || age > oldest) {
			victim = id;
			oldest = age;
		}
	}
	entry_drop(c, victim);
	c->evicted++;
}

/* An empty slot in the emptier of the key's two buckets; makes room when both are full. */
static uint32_t *free_slot(struct sl_coords *c, uint64_t hash, uint32_t now_s)
{
	uint32_t *best = NULL, victim = SL_COORD_NONE, oldest = 0;
	unsigned best_free = 0;

	for (unsigned which = 0; which < 2; which++) {
		uint32_t *slot = bucket(c, hash, which), *empty = NULL;
		unsigned free_count = 0;

		for (unsigned i = 0; i < WAYS; i++) {
			if (!slot[i]) {
				free_count++;
				if (!empty)
					empty = &slot[i];
				continue;
			}
			uint32_t id = (slot[i] & ID_MASK) - 1;
			uint32_t age =
				now_s - __atomic_load_n(&c->entries[id].used_s, __ATOMIC_RELAXED);

			if (victim == SL_COORD_NONE || ((int32_t)age > 0 && age > oldest)) {
				victim = id;
				oldest = (int32_t)age > 0 ? age : 0;
			}
		}
		if (free_count > best_free) {
			best = empty;
			best_free = free_count;
		}
	}
	if (best)
		return best;
	entry_drop(c, victim);
	c->evicted++;
	return free_slot(c, hash, now_s);
}

static bool same_path(const struct sl_coord_data *d, const uint8_t *wire, uint32_t len)
{
	if (d->len != len)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if (memcmp(&d->path[i], wire + (size_t)(len - 1 - i) * 16, 16) != 0)
			return false;
	return true;
}

static struct sl_coord_data *data_create(const struct sl_coords *c, const struct sl_node_addr *key,
	const uint8_t *wire, uint32_t len)
{
	struct sl_coord_data *d = malloc(sizeof(*d) + len * sizeof(d->path[0]));

	if (!d)
		return NULL;
	d->key = *key;
	d->len = (uint16_t)len;
	d->has_self = false;
	d->path_mtu = 0;
	for (uint32_t i = 0; i < len; i++) {
		memcpy(&d->path[i], wire + (size_t)(len - 1 - i) * 16, 16);
		d->has_self |= sl_node_same(&d->path[i], &c->self);
	}
	return d;
}

int sl_coords_insert(struct sl_coords *c, const struct sl_node_addr *key, const uint8_t *wire,
	uint32_t len, uint16_t path_mtu, uint32_t now_s)
{
	const uint64_t hash = sl_node_hash(key->bytes, c->key);
	const struct sl_coord_data *old = NULL;
	struct sl_coord_data *d;
	uint32_t *slot, id;

	if (!len || len > SL_PATH_MAX || memcmp(wire, key->bytes, 16) != 0)
		return -EINVAL;
	slot = find_slot(c, key->bytes, hash, &id, &old);
	if (slot && same_path(old, wire, len) && (!path_mtu || path_mtu == old->path_mtu)) {
		c->born[id] = ++c->order;
		sl_coord_use(c, id, now_s);
		return 0;
	}
	d = data_create(c, key, wire, len);
	if (!d)
		return -ENOMEM;
	d->learned_s = now_s;
	d->path_mtu = path_mtu;
	if (slot) {
		d->hash = old->hash;
		if (!path_mtu)
			d->path_mtu = old->path_mtu;
	} else {
		sl_filter_hash(&d->hash, key->bytes);
		if (c->count == c->capacity)
			evict_one(c, now_s);
		slot = free_slot(c, hash, now_s);
		id = c->dense[c->count];
		c->place[id] = c->count++;
		if (id >= c->high)
			c->high = id + 1;
	}
	sl_coords_undecide(c, id);
	c->born[id] = ++c->order;
	__atomic_store_n(&c->entries[id].used_s, now_s, __ATOMIC_RELAXED);
	__atomic_store_n(&c->entries[id].data, d, __ATOMIC_RELEASE);
	__atomic_store_n(&c->entries[id].serial, c->entries[id].serial + 1, __ATOMIC_RELEASE);
	if (old)
		sl_limbo_put(c->limbo, (void *)(uintptr_t)old);
	else
		__atomic_store_n(slot, tag_of(hash) | (id + 1), __ATOMIC_RELEASE);
	return 0;
}

bool sl_coords_remove(struct sl_coords *c, const struct sl_node_addr *key)
{
	const struct sl_coord_data *d;
	uint32_t id;

	if (!find_slot(c, key->bytes, sl_node_hash(key->bytes, c->key), &id, &d))
		return false;
	entry_drop(c, id);
	return true;
}

/* One sweep for at most budget entries; returns what is left of the budget. */
static uint32_t sweep_step(struct sl_coords *c, struct sl_coord_sweep *s, uint32_t budget)
{
	/* Downwards: a removal moves the last entry into the gap, and that one was looked at or is
	 * newer. */
	if (s->cursor > c->count)
		s->cursor = c->count;
	while (s->cursor && budget) {
		uint32_t id = c->dense[--s->cursor];
		const struct sl_coord_data *d = c->entries[id].data;

		budget--;
		if ((int32_t)(c->born[id] - s->order) > 0)
			continue;
		if ((s->with_self && d->has_self) ||
			(s->other_roots && !sl_node_same(&d->path[0], &s->root)))
			entry_drop(c, id);
	}
	s->active = s->cursor != 0;
	return budget;
}

void sl_coords_invalidate(
	struct sl_coords *c, bool with_self, const struct sl_node_addr *other_than)
{
	struct sl_coord_sweep *s = NULL, *oldest = NULL;

	if (!c->count)
		return;
	for (unsigned i = 0; i < 4; i++) {
		struct sl_coord_sweep *t = &c->sweep[i];

		if (!t->active)
			s = t;
		else if (t->with_self == with_self && t->other_roots == (other_than != NULL) &&
			 (!other_than || sl_node_same(&t->root, other_than))) {
			s = t; /* the same once more: start it over */
			break;
		} else if (!oldest || (int32_t)(t->order - oldest->order) < 0)
			oldest = t;
	}
	if (!s) {
		sweep_step(c, oldest, UINT32_MAX);
		s = oldest;
	}
	s->active = true;
	s->with_self = with_self;
	s->other_roots = other_than != NULL;
	if (other_than)
		s->root = *other_than;
	s->order = c->order;
	s->cursor = c->count;
	sweep_step(c, s, STEP);
}

bool sl_coords_work(struct sl_coords *c, uint32_t budget, bool expire, uint32_t now_s)
{
	bool more = false;

	for (unsigned i = 0; i < 4; i++) {
		if (c->sweep[i].active)
			budget = sweep_step(c, &c->sweep[i], budget);
		more |= c->sweep[i].active;
	}
	if (!expire)
		return more;
	for (uint32_t n = c->count < budget ? c->count : budget; n && c->count; n--) {
		if (c->expiry_cursor == 0 || c->expiry_cursor > c->count)
			c->expiry_cursor = c->count;
		uint32_t id = c->dense[--c->expiry_cursor];

		if (sl_coord_expired(
			    c, __atomic_load_n(&c->entries[id].used_s, __ATOMIC_RELAXED), now_s))
			entry_drop(c, id);
	}
	return more;
}

size_t sl_coords_bytes(const struct sl_coords *c)
{
	size_t n = (size_t)c->capacity *
			   (sizeof(*c->entries) + sizeof(*c->kept) + 4 * sizeof(uint32_t)) +
		   ((size_t)c->bucket_mask + 1) * WAYS * sizeof(*c->slots);

	for (uint32_t i = 0; i < c->count; i++)
		n += sizeof(struct sl_coord_data) +
		     c->entries[c->dense[i]].data->len * sizeof(struct sl_node_addr) + 8;
	return n;
}
