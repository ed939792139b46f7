/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_net.h"

#include <sodium.h>

#define DATA_TYPE SL_MSG_LOOKUP_REQUEST /* any type that links hand out */
#define DATA_BYTES 64

/* --- randomness from the seed --- */

static const char *
rng_name(void)
{
	return "test seed";
}
static uint32_t
rng_u32(void)
{
	return (uint32_t)sl_test_rand();
}
static void
rng_buf(void *const buf, const size_t len)
{
	sl_test_rand_bytes(buf, len);
}
static struct randombytes_implementation rng = {
	.implementation_name = rng_name, .random = rng_u32, .buf = rng_buf};

static bool workers;

int sl_test_setup(int argc, char **argv);

int
sl_test_setup(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		workers = workers || strcmp(argv[i], "--workers") == 0;
	randombytes_set_implementation(&rng);
	return sl_crypto_init();
}

/* --- packets in flight: a heap by arrival --- */

static bool
before(const struct packet *a, const struct packet *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->seq < b->seq);
}

static void
queue_push(struct net *net, struct packet p)
{
	uint32_t i = net->queued++;

	if (net->queued > net->heap_size) {
		net->heap_size = net->heap_size ? net->heap_size * 2 : 256;
		net->heap = realloc(net->heap, net->heap_size * sizeof(*net->heap));
	}
	while (i && before(&p, &net->heap[(i - 1) / 2])) {
		net->heap[i] = net->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	net->heap[i] = p;
}

static struct packet
queue_pop(struct net *net)
{
	struct packet top = net->heap[0], last = net->heap[--net->queued];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= net->queued)
			break;
		if (c + 1 < net->queued && before(&net->heap[c + 1], &net->heap[c]))
			c++;
		if (!before(&net->heap[c], &last))
			break;
		net->heap[i] = net->heap[c];
		i = c;
	}
	net->heap[i] = last;
	return top;
}

static void
enqueue(struct net *net, const struct sl_addr *from, const struct sl_addr *to, const uint8_t *bytes,
	size_t len, uint64_t delay_us)
{
	struct packet p = {.at_us = net->now_us + delay_us,
		.seq = net->seq++,
		.from = *from,
		.to = *to,
		.len = len};

	p.bytes = malloc(len);
	memcpy(p.bytes, bytes, len);
	queue_push(net, p);
}

struct sl_addr
net_addr(unsigned index, uint16_t port)
{
	struct sl_addr a = {.kind = SL_ADDR_UDP4, .transport = 0, .udp_port = port};

	a.u.ip4[0] = 10;
	a.u.ip4[1] = (uint8_t)(index >> 15);
	a.u.ip4[2] = (uint8_t)(index >> 7);
	a.u.ip4[3] = (uint8_t)((index & 0x7f) + 1);
	return a;
}

static unsigned
index_of(const struct sl_addr *a)
{
	return (unsigned)a->u.ip4[1] << 15 | (unsigned)a->u.ip4[2] << 7 |
	       ((unsigned)a->u.ip4[3] - 1);
}

static struct node *
node_at(struct net *net, const struct sl_addr *a)
{
	unsigned index = index_of(a);

	return index < net->count ? net->nodes[index] : NULL;
}

#define STRANGERS_AT 0x400000u /* index of the first stranger's address */

struct sl_addr
net_stranger(struct net *net,
	void (*fn)(void *arg, const struct sl_addr *from, const uint8_t *bytes, size_t len),
	void *arg)
{
	unsigned i = net->stranger_count++;

	net->strangers[i % NET_STRANGERS_MAX].fn = fn;
	net->strangers[i % NET_STRANGERS_MAX].arg = arg;
	return net_addr(STRANGERS_AT + (i << 8), SL_UDP_PORT);
}

static struct stranger *
stranger_at(struct net *net, const struct sl_addr *a)
{
	unsigned index = index_of(a);

	if (index < STRANGERS_AT || (index - STRANGERS_AT) >> 8 >= net->stranger_count)
		return NULL;
	return &net->strangers[(index - STRANGERS_AT) >> 8];
}

static double
chance(void)
{
	return (double)(sl_test_rand() >> 11) / 9007199254740992.0;
}

static int
on_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct node *n = arg, *peer;
	struct net *net = n->net;
	struct fate fate = {.copies = 1};

	if (n->transmit_rc)
		return n->transmit_rc;
	net->packets++;
	net->bytes += len;
	peer = node_at(net, to);
	if (!n->mute && !peer && stranger_at(net, to) && stranger_at(net, to)->fn)
		stranger_at(net, to)->fn(stranger_at(net, to)->arg, &n->addr, packet, len);
	if (n->mute || !peer)
		return 0;
	fate.delay_us[0] = net->delay_us + (net->jitter_us ? sl_test_rand() % net->jitter_us : 0);
	if (net->loss > 0 && chance() < net->loss)
		fate.copies = 0;
	if (fate.copies && net->duplicate > 0 && chance() < net->duplicate) {
		fate.copies = 2;
		fate.delay_us[1] =
			net->delay_us + (net->jitter_us ? sl_test_rand() % net->jitter_us : 0);
	}
	if (net->tap)
		net->tap(net, n, peer, packet, len, &fate, net->tap_arg);
	for (unsigned i = 0; i < fate.copies; i++)
		enqueue(net, &n->addr, to, packet, len, fate.delay_us[i]);
	return 0;
}

/* --- what a node is told --- */

static void
on_path(void *arg, uint32_t id, const struct sl_addr *addr)
{
	struct node *n = arg;

	SL_EXPECT_LT(id, n->rows);
	n->seen[id].has_path = true;
	n->seen[id].path = *addr;
}

static void
on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct node *n = arg;

	SL_EXPECT_LT(id, n->rows);
	SL_EXPECT(n->seen[id].has_path);
	SL_EXPECT_EQ(mtu, 1280);
	SL_EXPECT(sl_session_peer(sl_session_table_view(n->table), id)->tx != NULL);
	if (n->seen[id].up) {
		SL_EXPECT_MEM(n->seen[id].xonly, key->xonly, SL_XONLY_BYTES);
		n->renewals++;
		return;
	}
	n->seen[id].up = true;
	memcpy(n->seen[id].xonly, key->xonly, SL_XONLY_BYTES);
	n->ups++;
	n->last_up_us = n->net->now_us;
}

static void
on_down(void *arg, uint32_t id, enum sl_down_reason reason)
{
	struct node *n = arg;

	SL_EXPECT(n->seen[id].up);
	SL_EXPECT(sl_session_peer(sl_session_table_view(n->table), id)->tx == NULL);
	memset(&n->seen[id], 0, sizeof(n->seen[id]));
	n->downs[reason]++;
	n->last_down_us = n->net->now_us;
}

static void
on_message(void *arg, uint32_t id, const uint8_t *msg, size_t len, uint8_t flags)
{
	struct node *n = arg;

	(void)flags;
	SL_EXPECT(n->seen[id].up);
	n->messages++;
	if (n->heard)
		n->heard(n->heard_arg, msg, len);
	n->last_message_len = len < sizeof(n->last_message) ? len : sizeof(n->last_message);
	memcpy(n->last_message, msg, n->last_message_len);
	if (msg[0] == DATA_TYPE)
		n->data_received++;
}

static void
on_metrics(void *arg, uint32_t id, const struct sl_link_metrics *m)
{
	struct node *n = arg;

	SL_EXPECT(n->seen[id].up);
	n->seen[id].metrics = *m;
	n->metrics_calls++;
}

/* --- nodes --- */

static bool
on_allowed(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	const struct node *n = arg;

	return !n->allowed || n->allowed(n->allowed_arg, xonly);
}

static uint16_t
on_link_mtu(void *arg, const struct sl_addr *addr)
{
	(void)addr;
	return ((const struct node *)arg)->link_mtu;
}

static void
node_start(struct node *n, bool accept)
{
	struct sl_session_table_config tc = {
		.max_sessions = n->rows * 8, .max_peers = n->rows, .workers = 1};
	struct sl_links_sink sink = {.arg = n,
		.transmit = on_transmit,
		.path = on_path,
		.peer_up = on_up,
		.peer_down = on_down,
		.message = on_message,
		.metrics = on_metrics,
		.allowed = on_allowed,
		.link_mtu = on_link_mtu};
	struct sl_transport_config t = {
		.id = 0, .kind = SL_ADDR_UDP4, .mtu = 1280, .accept_connections = accept};

	n->table = sl_session_table_create(&tc);
	n->links = sl_links_create(&n->config, n->identity, n->table,
		n->net->aead ? n->net->aead : sl_aead_backend_find("sodium"), &sink, n->net->now_us);
	SL_EXPECT(n->table && n->links);
	SL_EXPECT_EQ(sl_links_transport_add(n->links, &t), 0);
	n->next_due_us = n->net->now_us;
	memset(n->worker_counters, 0, sizeof(n->worker_counters));
}

struct node *
net_node(struct net *net, const struct sl_links_config *config, uint32_t rows, bool accept)
{
	struct node *n = calloc(1, sizeof(*n));

	n->net = net;
	n->index = net->count;
	n->identity = sl_identity_generate();
	n->rows = rows;
	n->seen = calloc(rows, sizeof(*n->seen));
	n->addr = net_addr(n->index, SL_UDP_PORT);
	n->link_mtu = UINT16_MAX;
	if (config)
		n->config = *config;
	else
		sl_links_config_default(&n->config);
	net->nodes = realloc(net->nodes, (net->count + 1) * sizeof(*net->nodes));
	net->nodes[net->count++] = n;
	node_start(n, accept);
	return n;
}

void
net_pair(struct net *net, struct node *pair[2], const struct sl_links_config *config)
{
	pair[0] = net_node(net, config, 32, true);
	pair[1] = net_node(net, config, 32, true);
	if (sl_node_addr_cmp(
		    sl_identity_addr(pair[0]->identity), sl_identity_addr(pair[1]->identity)) > 0) {
		struct node *t = pair[0];

		pair[0] = pair[1];
		pair[1] = t;
	}
}

static void
node_stop(struct node *n)
{
	sl_links_destroy(n->links);
	SL_EXPECT_EQ(sl_session_count(n->table), 0);
	sl_session_table_destroy(n->table);
	n->links = NULL;
	n->table = NULL;
}

void
net_restart(struct node *n, bool accept)
{
	node_stop(n);
	memset(n->seen, 0, n->rows * sizeof(*n->seen));
	node_start(n, accept);
}

void
net_gate(struct node *n, bool (*allowed)(void *arg, const uint8_t xonly[SL_XONLY_BYTES]), void *arg)
{
	n->allowed = allowed;
	n->allowed_arg = arg;
}

struct net *
net_create(void)
{
	struct net *net = calloc(1, sizeof(*net));

	net->now_us = 1000 * NET_S;
	net->delay_us = 5 * NET_MS;
	return net;
}

void
net_destroy(struct net *net)
{
	while (net->queued)
		free(queue_pop(net).bytes);
	for (unsigned i = 0; i < net->count; i++) {
		node_stop(net->nodes[i]);
		sl_identity_destroy(net->nodes[i]->identity);
		free(net->nodes[i]->seen);
		free(net->nodes[i]);
	}
	free(net->nodes);
	free(net->heap);
	free(net);
}

void
net_configure(struct node *n, struct node *peer)
{
	struct sl_peer_config c = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};

	memcpy(c.xonly, sl_identity_xonly(peer->identity), SL_XONLY_BYTES);
	snprintf(c.alias, sizeof(c.alias), "node-%u", peer->index);
	c.addrs[0] = peer->addr;
	SL_EXPECT_EQ(sl_links_peer_configure(n->links, &c, n->net->now_us), 0);
	n->next_due_us = n->net->now_us;
}

/* --- time --- */

/* Worker to control: in order, some time later. */
static void
ring_put(struct node *n, struct packet p, const uint8_t *bytes, size_t len)
{
	struct net *net = n->net;

	p.at_us = net->now_us + sl_test_rand() % NET_MS;
	if (p.at_us < n->ring_at_us)
		p.at_us = n->ring_at_us;
	n->ring_at_us = p.at_us;
	p.seq = net->seq++;
	p.to = n->addr;
	p.len = len;
	p.bytes = malloc(len + 1);
	memcpy(p.bytes, bytes, len);
	queue_push(net, p);
}

static void
event_put(struct node *n, struct sl_session *s, uint8_t bit, enum packet_kind kind,
	const struct packet *frame)
{
	if (__atomic_fetch_and(&s->notify, (uint8_t)~bit, __ATOMIC_ACQ_REL) & bit)
		ring_put(n,
			(struct packet){.kind = kind,
				.rx_index = s->rx_index,
				.flags = frame->bytes[1],
				.from = frame->from},
			frame->bytes, 0);
}

/* What the data plane's stages do with an established frame. */
static void
worker_frame(struct node *n, struct packet *p)
{
	struct sl_session *s =
		sl_session_lookup(sl_session_table_view(n->table), sl_get32(p->bytes + 4));
	uint64_t counter = sl_get64(p->bytes + 8);
	size_t text_len = p->len - SL_ESTABLISHED_MIN_BYTES;
	uint8_t nonce[12] = {0}, *text;

	if (!s) {
		n->worker_counters[SL_LINK_RX_UNKNOWN_INDEX]++;
		return;
	}
	if (!sl_replay_check(&s->replay, counter)) {
		n->worker_counters[SL_LINK_RX_REPLAY]++;
		return;
	}
	text = malloc(text_len + 1);
	memcpy(nonce + 4, &counter, 8);
	if (sl_aead_open_one(text, p->bytes + SL_HEADER_BYTES, p->len - SL_HEADER_BYTES, p->bytes,
		    SL_HEADER_BYTES, nonce, s->rx_key) != 0) {
		n->worker_counters[SL_LINK_RX_AUTH]++;
		goto out;
	}
	SL_EXPECT(sl_replay_commit(&s->replay, counter));
	if (text_len < SL_INNER_BYTES) {
		n->worker_counters[SL_LINK_RX_SHORT_INNER]++;
		goto out;
	}
	sl_mmp_rx_frame(
		&s->mmp, counter, sl_get32(text), (uint32_t)p->len, n->net->now_us, p->bytes[1]);
	if (s->notify & SL_NOTIFY_FIRST_FRAME)
		event_put(n, s, SL_NOTIFY_FIRST_FRAME, PACKET_FIRST_FRAME, p);
	if ((s->notify & SL_NOTIFY_ADDRESS) && counter == s->replay.highest &&
		sl_addr_hash(&p->from) != s->rx_addr_hash)
		event_put(n, s, SL_NOTIFY_ADDRESS, PACKET_ROAMED, p);
	ring_put(n,
		(struct packet){
			.kind = PACKET_MESSAGE, .rx_index = s->rx_index, .flags = p->bytes[1]},
		text + 4, text_len - 4);
out:
	free(text);
}

static void
hand_over(struct node *n, struct packet *p)
{
	uint64_t now_us = n->net->now_us;

	switch (p->kind) {
	case PACKET_FIRST_FRAME:
		sl_links_first_frame(n->links, p->rx_index, p->flags, now_us);
		return;
	case PACKET_ROAMED:
		sl_links_roamed(n->links, p->rx_index, &p->from, now_us);
		return;
	case PACKET_MESSAGE:
		sl_links_message(n->links, p->rx_index, p->flags, p->bytes, p->len, now_us);
		return;
	case PACKET_WIRE:
		break;
	}
	if (!workers)
		sl_links_packet(n->links, &p->from, p->bytes, p->len, now_us);
	else if (sl_packet_classify(p->bytes, p->len) == SL_PACKET_ESTABLISHED)
		worker_frame(n, p);
	else if (sl_packet_classify(p->bytes, p->len) <= SL_PACKET_MSG2)
		sl_links_handshake(n->links, &p->from, p->bytes, p->len, now_us);
	else
		n->worker_counters[SL_LINK_RX_BAD_PACKET]++;
}

/*
 * A node's turn. One that left work for the next, having used up what a turn may take, gets that a millisecond later: on a
 * clock that stands still during a turn it would otherwise do all of it at the same instant.
 */
static void
turn(struct node *n)
{
	const uint64_t due_us = sl_links_tick(n->links, n->net->now_us);

	SL_EXPECT_GE(due_us, n->net->now_us);
	n->next_due_us = due_us > n->net->now_us ? due_us : n->net->now_us + NET_MS;
}

static void
deliver(struct net *net, struct packet *p)
{
	struct node *n = node_at(net, &p->to);

	if (n && !n->mute) {
		hand_over(n, p);
		/* What came in may have brought the next due time forward. */
		turn(n);
	}
	free(p->bytes);
}

static bool
net_step(struct net *net, uint64_t end_us)
{
	struct node *due = NULL;
	uint64_t at = end_us + 1;

	for (unsigned i = 0; i < net->count; i++)
		if (net->nodes[i]->next_due_us < at) {
			due = net->nodes[i];
			at = due->next_due_us;
		}
	if (net->queued && net->heap[0].at_us <= at && net->heap[0].at_us <= end_us) {
		struct packet p = queue_pop(net);

		if (p.at_us > net->now_us)
			net->now_us = p.at_us;
		deliver(net, &p);
		return true;
	}
	if (!due)
		return false;
	if (at > net->now_us)
		net->now_us = at;
	turn(due);
	return true;
}

void
net_run(struct net *net, uint64_t for_us)
{
	uint64_t end = net->now_us + for_us;

	while (net_step(net, end))
		;
	net->now_us = end;
}

bool
net_run_until_up(struct net *net, struct node *a, struct node *b, uint64_t for_us)
{
	uint64_t end = net->now_us + for_us;

	while (!net_linked(a, b) && net_step(net, end))
		;
	return net_linked(a, b);
}

void
net_inject(struct net *net, const struct sl_addr *from, struct node *to, const uint8_t *bytes,
	size_t len)
{
	enqueue(net, from, &to->addr, bytes, len, 0);
}

/* --- questions --- */

uint32_t
net_peer_id(const struct node *n, const struct node *peer)
{
	for (uint32_t i = 0; i < n->rows; i++)
		if (n->seen[i].up && memcmp(n->seen[i].xonly, sl_identity_xonly(peer->identity),
					     SL_XONLY_BYTES) == 0)
			return i;
	return SL_PEER_NONE;
}

bool
net_linked(const struct node *a, const struct node *b)
{
	return net_peer_id(a, b) != SL_PEER_NONE && net_peer_id(b, a) != SL_PEER_NONE;
}

struct find {
	const uint8_t *xonly;
	struct sl_link_info *info;
	bool found;
};

static void
find_info(void *arg, const struct sl_link_info *info)
{
	struct find *f = arg;

	if (memcmp(info->xonly, f->xonly, SL_XONLY_BYTES) == 0) {
		*f->info = *info;
		f->found = true;
	}
}

bool
net_info(const struct node *n, const struct node *peer, struct sl_link_info *info)
{
	struct find f = {.xonly = sl_identity_xonly(peer->identity), .info = info};

	memset(info, 0, sizeof(*info));
	sl_links_for_each(n->links, find_info, &f);
	return f.found;
}

uint64_t
net_counter(const struct node *n, enum sl_link_counter c)
{
	return sl_links_counters(n->links)[c] + n->worker_counters[c];
}

int
net_data(struct node *a, struct node *b)
{
	uint8_t msg[DATA_BYTES] = {DATA_TYPE};
	int rc = sl_links_send(a->links, net_peer_id(a, b), msg, sizeof(msg), 0, a->net->now_us);

	if (rc == 0)
		a->data_sent++;
	return rc;
}

bool
net_carries(struct node *a, struct node *b)
{
	uint64_t at_a = a->data_received, at_b = b->data_received;

	if (net_data(a, b) != 0 || net_data(b, a) != 0)
		return false;
	net_run(a->net, 4 * a->net->delay_us + a->net->jitter_us + 2 * NET_MS);
	return a->data_received == at_a + 1 && b->data_received == at_b + 1;
}
