/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK 22.11 counts the session pool as experimental; it has stayed as it is. */
#define ALLOW_EXPERIMENTAL_API
#include "sl_aead_cryptodev.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cryptodev.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#define CONTEXTS_MAX 64u
#define NONCE_BYTES 12u
#define DESCRIPTORS 1024u

enum direction { SEAL, OPEN, DIRECTIONS };

/* The key that lies at an address, and its session. */
struct key_session {
	const uint8_t *at; /* NULL: free */
	uint8_t key[SL_AEAD_KEY_BYTES];
	void *session;
	uint32_t used; /* the call that last needed it */
};

/* What the device has of one packet, and for as long as it likes: a buffer of ours, never the caller's. */
struct job {
	struct rte_crypto_op *op;
	struct rte_mbuf *text;
	uint32_t index; /* of the packet in the call */
	bool back;
};

/* Behind each rte_crypto_op: nonce and associated data; devices may read the latter up to its padded size. */
struct private {
	uint8_t nonce[16];
	uint8_t aad[32];
	struct job *job;
};
#define PRIVATE_OFFSET (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))

struct sl_aead_ctx {
	uint16_t queue;
	uint32_t call;
	bool given_up; /* the device has kept something: its buffers and sessions may not be used again */
	const struct sl_aead_backend *instead;
	struct sl_aead_ctx *instead_ctx;
	struct job jobs[SL_CRYPTODEV_IN_FLIGHT];
	bool ok[SL_AEAD_BURST_MAX];
	struct sl_aead_op spare[SL_AEAD_BURST_MAX];
	struct key_session sessions[DIRECTIONS][SL_CRYPTODEV_SESSIONS];
};

static struct {
	bool started;
	uint8_t dev;
	char name[RTE_DEV_NAME_MAX_LEN];
	unsigned contexts;
	uint64_t queues_taken;
	struct rte_mempool *sessions, *ops, *texts;
	uint64_t counters[SL_CRYPTODEV_COUNTERS];
} device;

static void
count(enum sl_cryptodev_counter c, uint64_t n)
{
	__atomic_fetch_add(&device.counters[c], n, __ATOMIC_RELAXED);
}

uint64_t
sl_cryptodev_counter(enum sl_cryptodev_counter c)
{
	return __atomic_load_n(&device.counters[c], __ATOMIC_RELAXED);
}

const char *
sl_cryptodev_counter_name(enum sl_cryptodev_counter c)
{
	static const char *const names[] = {"enqueued", "auth_failed", "device_error", "no_session", "timeout",
		"given_up", "by_software"};

	return c < SL_CRYPTODEV_COUNTERS ? names[c] : "";
}

const char *
sl_aead_cryptodev_name(void)
{
	return device.started ? device.name : NULL;
}

/* --- the device ------------------------------------------------------------------------------ */

static struct rte_crypto_sym_xform
xform_of(enum direction d, const uint8_t *key)
{
	return (struct rte_crypto_sym_xform){
		.type = RTE_CRYPTO_SYM_XFORM_AEAD,
		.aead = {
			.op = d == SEAL ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT,
			.algo = RTE_CRYPTO_AEAD_CHACHA20_POLY1305,
			.key = {.data = key, .length = SL_AEAD_KEY_BYTES},
			.iv = {.offset = PRIVATE_OFFSET + offsetof(struct private, nonce), .length = NONCE_BYTES},
			.digest_length = SL_AEAD_TAG_BYTES,
			.aad_length = SL_AEAD_AAD_BYTES,
		},
	};
}

static int
find_device(const char *name, const char **error)
{
	char bare[RTE_DEV_NAME_MAX_LEN];
	int dev;

	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name, ","), name);
	dev = rte_cryptodev_get_dev_id(bare);
	if (dev < 0 && rte_dev_probe(name) == 0)
		dev = rte_cryptodev_get_dev_id(bare);
	if (dev < 0) {
		*error = "no such crypto device, and none could be made of that name";
		return -ENODEV;
	}
	snprintf(device.name, sizeof(device.name), "%s", bare);
	return dev;
}

static int
check_device(uint8_t dev, unsigned contexts, const char **error)
{
	const struct rte_cryptodev_sym_capability_idx idx = {
		.type = RTE_CRYPTO_SYM_XFORM_AEAD, .algo.aead = RTE_CRYPTO_AEAD_CHACHA20_POLY1305};
	const struct rte_cryptodev_symmetric_capability *cap = rte_cryptodev_sym_capability_get(dev, &idx);
	struct rte_cryptodev_info info;

	if (!cap || rte_cryptodev_sym_capability_check_aead(
			cap, SL_AEAD_KEY_BYTES, SL_AEAD_TAG_BYTES, SL_AEAD_AAD_BYTES, NONCE_BYTES) != 0) {
		*error = "the device does not offer ChaCha20-Poly1305 as frames need it";
		return -ENOTSUP;
	}
	rte_cryptodev_info_get(dev, &info);
	if (contexts == 0 || contexts > CONTEXTS_MAX || contexts > info.max_nb_queue_pairs) {
		*error = "the device has fewer queue pairs than there are threads";
		return -EBUSY;
	}
	return 0;
}

static void
text_wipe(struct rte_mempool *pool, void *arg, void *object, unsigned index)
{
	struct rte_mbuf *m = object;

	(void)pool, (void)arg, (void)index;
	sl_wipe(m->buf_addr, m->buf_len);
}

static void
pools_free(void)
{
	rte_mempool_free(device.texts);
	rte_mempool_free(device.ops);
	rte_mempool_free(device.sessions);
	device.texts = device.ops = device.sessions = NULL;
}

/* Queue pairs and pools of a device that is known to do. */
static int
set_up(uint8_t dev, unsigned contexts)
{
	const int socket = rte_cryptodev_socket_id(dev);
	const struct rte_cryptodev_config config = {
		.socket_id = socket, .nb_queue_pairs = (uint16_t)contexts, .ff_disable = RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO};
	struct rte_cryptodev_qp_conf qp = {.nb_descriptors = DESCRIPTORS};

	device.sessions = rte_cryptodev_sym_session_pool_create("sl_aead_sessions",
		DIRECTIONS * SL_CRYPTODEV_SESSIONS * contexts, rte_cryptodev_sym_get_private_session_size(dev), 0, 0, socket);
	device.ops = rte_crypto_op_pool_create("sl_aead_ops", RTE_CRYPTO_OP_TYPE_SYMMETRIC,
		contexts * SL_CRYPTODEV_IN_FLIGHT, 0, sizeof(struct private), socket);
	device.texts = rte_pktmbuf_pool_create("sl_aead_texts", contexts * SL_CRYPTODEV_IN_FLIGHT, 0, 0,
		SL_CRYPTODEV_TEXT_MAX + SL_AEAD_TAG_BYTES, socket);
	if (!device.sessions || !device.ops || !device.texts)
		return -ENOMEM;
	qp.mp_session = device.sessions;
	if (rte_cryptodev_configure(dev, (struct rte_cryptodev_config *)(uintptr_t)&config) != 0)
		return -EIO;
	for (uint16_t q = 0; q < contexts; q++)
		if (rte_cryptodev_queue_pair_setup(dev, q, &qp, socket) != 0)
			return -EIO;
	return rte_cryptodev_start(dev) == 0 ? 0 : -EIO;
}

int
sl_aead_cryptodev_start(const char *name, unsigned contexts, const char **error)
{
	int dev, rc;

	if (device.started) {
		*error = "a crypto device is in use already";
		return -EBUSY;
	}
	dev = find_device(name, error);
	if (dev < 0)
		return dev;
	rc = check_device((uint8_t)dev, contexts, error);
	if (rc != 0)
		return rc;
	rc = set_up((uint8_t)dev, contexts);
	if (rc != 0) {
		*error = rc == -ENOMEM ? "no memory for sessions and buffers" : "the device could not be configured";
		pools_free();
		return rc;
	}
	device.dev = (uint8_t)dev;
	device.contexts = contexts;
	device.queues_taken = 0;
	memset(device.counters, 0, sizeof(device.counters));
	device.started = true;
	return 0;
}

void
sl_aead_cryptodev_stop(void)
{
	if (!device.started)
		return;
	rte_cryptodev_stop(device.dev);
	(void)rte_cryptodev_close(device.dev);
	rte_mempool_obj_iter(device.texts, text_wipe, NULL); /* those that the device had kept too */
	pools_free();
	memset(&device, 0, sizeof(device));
}

/* --- sessions -------------------------------------------------------------------------------- */

static void
session_drop(struct key_session *s)
{
	if (s->session)
		(void)rte_cryptodev_sym_session_free(device.dev, s->session);
	sl_wipe(s, sizeof(*s));
}

/* No branch on how many bytes agree. */
static bool
same_key(const uint8_t *a, const uint8_t *b)
{
	uint8_t differ = 0;

	for (unsigned i = 0; i < SL_AEAD_KEY_BYTES; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

/* By address, which is no secret. Of four places the one that was longest not needed makes room. */
static void *
session_of(struct sl_aead_ctx *ctx, enum direction d, const uint8_t *key)
{
	const uint32_t h = (uint32_t)((uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15ull >> 40) % (SL_CRYPTODEV_SESSIONS / 4);
	struct key_session *way = &ctx->sessions[d][4 * h], *oldest = way;
	struct rte_crypto_sym_xform xform;

	for (unsigned i = 0; i < 4; i++) {
		struct key_session *s = &way[i];

		if (s->at == key) {
			s->used = ctx->call;
			if (same_key(s->key, key))
				return s->session;
			oldest = s;
			break;
		}
		if (s->at == NULL || ctx->call - s->used > ctx->call - oldest->used)
			oldest = s;
		if (s->at == NULL)
			break;
	}
	/* One that this call has needed already may be with the device. */
	if (oldest->at && oldest->at != key && oldest->used == ctx->call)
		return NULL;
	session_drop(oldest);
	xform = xform_of(d, key);
	oldest->session = rte_cryptodev_sym_session_create(device.dev, &xform, device.sessions);
	if (!oldest->session)
		return NULL;
	oldest->at = key;
	oldest->used = ctx->call;
	memcpy(oldest->key, key, SL_AEAD_KEY_BYTES);
	return oldest->session;
}

/* --- jobs ------------------------------------------------------------------------------------ */

/* The device sees the text as a buffer of one segment, tag included. */
static void
job_prepare(struct job *job, enum direction d, const struct sl_aead_op *op, void *session)
{
	struct rte_crypto_sym_op *sym = job->op->sym;
	struct private *p = rte_crypto_op_ctod_offset(job->op, struct private *, PRIVATE_OFFSET);
	struct rte_mbuf *m = job->text;
	const uint32_t len = op->text_len + SL_AEAD_TAG_BYTES;

	memset(p->nonce, 0, 4);
	for (unsigned i = 0; i < 8; i++)
		p->nonce[4 + i] = (uint8_t)(op->counter >> 8 * i);
	memcpy(p->aad, op->aad, SL_AEAD_AAD_BYTES);
	p->job = job;
	job->back = false;
	rte_pktmbuf_reset(m);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	memcpy(rte_pktmbuf_mtod(m, void *), op->text, d == OPEN ? len : op->text_len);
	rte_crypto_op_attach_sym_session(job->op, session);
	job->op->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
	sym->m_src = m;
	sym->m_dst = NULL;
	sym->aead.data.offset = 0;
	sym->aead.data.length = op->text_len;
	sym->aead.digest.data = rte_pktmbuf_mtod_offset(m, uint8_t *, op->text_len);
	sym->aead.digest.phys_addr = rte_pktmbuf_iova_offset(m, op->text_len);
	sym->aead.aad.data = p->aad;
	sym->aead.aad.phys_addr = rte_crypto_op_ctophys_offset(job->op, PRIVATE_OFFSET + offsetof(struct private, aad));
}

static bool
job_good(const struct rte_crypto_op *op)
{
	if (op->status == RTE_CRYPTO_OP_STATUS_SUCCESS)
		return true;
	count(op->status == RTE_CRYPTO_OP_STATUS_AUTH_FAILED ? SL_CRYPTODEV_AUTH_FAILED : SL_CRYPTODEV_ERROR, 1);
	return false;
}

/* Takes back what is done, the good ones' text into their packets. How many. */
static unsigned
take_back(struct sl_aead_ctx *ctx, enum direction d, const struct sl_aead_op *ops)
{
	struct rte_crypto_op *done[SL_CRYPTODEV_IN_FLIGHT];
	const unsigned n = rte_cryptodev_dequeue_burst(device.dev, ctx->queue, done, SL_CRYPTODEV_IN_FLIGHT);

	for (unsigned i = 0; i < n; i++) {
		struct job *job = rte_crypto_op_ctod_offset(done[i], struct private *, PRIVATE_OFFSET)->job;
		const struct sl_aead_op *op = &ops[job->index];

		job->back = true;
		ctx->ok[job->index] = job_good(done[i]);
		if (ctx->ok[job->index])
			memcpy(op->text, rte_pktmbuf_mtod(job->text, void *),
				op->text_len + (d == SEAL ? SL_AEAD_TAG_BYTES : 0));
	}
	return n;
}

static void
by_library(struct sl_aead_ctx *ctx, enum direction d, const struct sl_aead_op *op, uint32_t index)
{
	uint8_t nonce[NONCE_BYTES] = {0};

	for (unsigned i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(op->counter >> 8 * i);
	if (d == SEAL) {
		sl_aead_seal_one(op->text, op->text, op->text_len, op->aad, SL_AEAD_AAD_BYTES, nonce, op->key);
		ctx->ok[index] = true;
	} else {
		ctx->ok[index] = sl_aead_open_one(op->text, op->text, (size_t)op->text_len + SL_AEAD_TAG_BYTES, op->aad,
					 SL_AEAD_AAD_BYTES, nonce, op->key) == 0;
	}
}

/* The device has been silent for too long. What it keeps are copies: the packets themselves are whole, and done here. */
static void
give_up(struct sl_aead_ctx *ctx, enum direction d, const struct sl_aead_op *ops, unsigned n)
{
	ctx->given_up = true;
	count(SL_CRYPTODEV_GIVEN_UP, 1);
	for (unsigned i = 0; i < n; i++) {
		const struct job *job = &ctx->jobs[i];

		if (job->back)
			continue;
		count(SL_CRYPTODEV_TIMEOUT, 1);
		by_library(ctx, d, &ops[job->index], job->index);
	}
}

/* Up to SL_CRYPTODEV_IN_FLIGHT packets, jobs made; returns when all are back or the device is given up. */
static void
run_jobs(struct sl_aead_ctx *ctx, enum direction d, const struct sl_aead_op *packets, unsigned n)
{
	struct rte_crypto_op *ops[SL_CRYPTODEV_IN_FLIGHT];
	unsigned sent = 0, back = 0;
	uint64_t progress = rte_get_timer_cycles();
	const uint64_t patience = rte_get_timer_hz();

	for (unsigned i = 0; i < n; i++)
		ops[i] = ctx->jobs[i].op;
	while (back < n) {
		unsigned out = 0, in;

		if (sent < n)
			out = rte_cryptodev_enqueue_burst(device.dev, ctx->queue, ops + sent, (uint16_t)(n - sent));
		sent += out;
		in = take_back(ctx, d, packets);
		back += in;
		if (out + in > 0) {
			progress = rte_get_timer_cycles();
		} else if (rte_get_timer_cycles() - progress > patience) {
			give_up(ctx, d, packets, n);
			break;
		}
	}
	count(SL_CRYPTODEV_ENQUEUED, sent);
}

/* The good ones first, both kinds in their order. */
static unsigned
partition(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	unsigned good = 0, bad = 0;

	for (unsigned i = 0; i < n; i++) {
		if (ctx->ok[i])
			ops[good++] = ops[i];
		else
			ctx->spare[bad++] = ops[i];
	}
	memcpy(ops + good, ctx->spare, bad * sizeof(*ops));
	return good;
}

static void
work(struct sl_aead_ctx *ctx, enum direction d, struct sl_aead_op *ops, unsigned n)
{
	unsigned jobs = 0;

	ctx->call++;
	memset(ctx->ok, 0, n * sizeof(ctx->ok[0]));
	for (uint32_t i = 0; i < n; i++) {
		void *session;

		if (ops[i].text_len == 0 || ops[i].text_len > SL_CRYPTODEV_TEXT_MAX || ctx->given_up) {
			by_library(ctx, d, &ops[i], i);
			continue;
		}
		session = session_of(ctx, d, ops[i].key);
		if (!session) {
			count(SL_CRYPTODEV_NO_SESSION, 1);
			by_library(ctx, d, &ops[i], i);
			continue;
		}
		job_prepare(&ctx->jobs[jobs], d, &ops[i], session);
		ctx->jobs[jobs].index = i;
		if (++jobs == SL_CRYPTODEV_IN_FLIGHT) {
			run_jobs(ctx, d, ops, jobs);
			jobs = 0;
		}
	}
	if (jobs > 0)
		run_jobs(ctx, d, ops, jobs);
}

static unsigned
seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (unlikely(ctx->given_up)) {
		count(SL_CRYPTODEV_BY_SOFTWARE, n);
		return ctx->instead->seal(ctx->instead_ctx, ops, n);
	}
	work(ctx, SEAL, ops, n);
	return partition(ctx, ops, n);
}

static unsigned
open(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned n)
{
	if (unlikely(ctx->given_up)) {
		count(SL_CRYPTODEV_BY_SOFTWARE, n);
		return ctx->instead->open(ctx->instead_ctx, ops, n);
	}
	/* A device may decipher before it looks at the tag: only what is good is copied into the packet. */
	work(ctx, OPEN, ops, n);
	return partition(ctx, ops, n);
}

/* --- contexts -------------------------------------------------------------------------------- */

static bool
usable(void)
{
	return device.started;
}

static void
parts_give_back(struct sl_aead_ctx *ctx)
{
	for (unsigned d = 0; d < DIRECTIONS; d++)
		for (unsigned i = 0; i < SL_CRYPTODEV_SESSIONS; i++)
			if (ctx->sessions[d][i].at)
				session_drop(&ctx->sessions[d][i]);
	for (unsigned i = 0; i < SL_CRYPTODEV_IN_FLIGHT; i++) {
		rte_crypto_op_free(ctx->jobs[i].op);
		rte_pktmbuf_free(ctx->jobs[i].text);
	}
	if (ctx->queue < device.contexts)
		__atomic_fetch_and(&device.queues_taken, ~(1ull << ctx->queue), __ATOMIC_RELAXED);
}

static void
destroy(struct sl_aead_ctx *ctx)
{
	if (!ctx)
		return;
	if (ctx->instead_ctx)
		ctx->instead->destroy(ctx->instead_ctx);
	/* What the device may have kept stays its own until it is stopped: sessions, ops, texts, and the queue pair. */
	if (!ctx->given_up)
		parts_give_back(ctx);
	sl_wipe(ctx, sizeof(*ctx));
	free(ctx);
}

/* The first queue pair that nobody has, or `contexts`. */
static uint16_t
queue_take(void)
{
	uint16_t q = 0;

	while (q < device.contexts && __atomic_fetch_or(&device.queues_taken, 1ull << q, __ATOMIC_RELAXED) & 1ull << q)
		q++;
	return q;
}

static struct sl_aead_ctx *
create(unsigned max_burst)
{
	struct sl_aead_ctx *ctx;
	int rc;

	if (max_burst == 0 || max_burst > SL_AEAD_BURST_MAX) {
		errno = EINVAL;
		return NULL;
	}
	if (!device.started) {
		errno = ENODEV;
		return NULL;
	}
	ctx = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*ctx), RTE_CACHE_LINE_SIZE));
	if (!ctx)
		return NULL;
	memset(ctx, 0, sizeof(*ctx));
	ctx->queue = queue_take();
	rc = EBUSY;
	if (ctx->queue == device.contexts)
		goto fail;
	rc = ENOMEM;
	ctx->instead = sl_aead_backend_find("auto");
	ctx->instead_ctx = ctx->instead ? ctx->instead->create(max_burst) : NULL;
	if (!ctx->instead_ctx)
		goto fail;
	for (unsigned i = 0; i < SL_CRYPTODEV_IN_FLIGHT; i++) {
		ctx->jobs[i].op = rte_crypto_op_alloc(device.ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
		ctx->jobs[i].text = rte_pktmbuf_alloc(device.texts);
		if (!ctx->jobs[i].op || !ctx->jobs[i].text)
			goto fail;
	}
	return ctx;
fail:
	destroy(ctx);
	errno = rc;
	return NULL;
}

const struct sl_aead_backend sl_aead_cryptodev = {
	.name = "cryptodev",
	.usable = usable,
	.create = create,
	.destroy = destroy,
	.seal = seal,
	.open = open,
};
