/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's loop makes no system call, allocates nothing and takes no lock, shown by running it where each of these is
 * caught: a seccomp filter on the worker's thread traps every system call, and the allocators and mutexes of the
 * process count calls by that thread. The traffic has everything in it: forwarding, punts, hand-over, each kind of
 * drop that needs no set-up. (What transit.c itself can call is checked in its object file: check_object.py.)
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include "rows.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static __thread volatile bool guarded;
static volatile unsigned syscalls, allocations, locks;
static volatile int last_syscall;

/* --- allocators and mutexes: counted for the guarded thread, then the real ones ------------------------------------- */
#if !SANITIZED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);
static void
note(volatile unsigned *what)
{
	if (guarded)
		__atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}
void *
malloc(size_t n)
{
	note(&allocations);
	return __libc_malloc(n);
}
void *
calloc(size_t n, size_t m)
{
	note(&allocations);
	return __libc_calloc(n, m);
}
void *
realloc(void *p, size_t n)
{
	note(&allocations);
	return __libc_realloc(p, n);
}
void
free(void *p)
{
	note(&allocations);
	__libc_free(p);
}
int
pthread_mutex_lock(pthread_mutex_t *m)
{
	static int (*real)(pthread_mutex_t *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	note(&locks);
	return real(m);
}
/* rte_malloc() and its kin all end here or in rte_free(). */
void *
rte_malloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	static void *(*real)(const char *, size_t, unsigned int, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "rte_malloc_socket");
	note(&allocations);
	return real(type, size, align, socket);
}
#endif

/* --- system calls ------------------------------------------------------------------------------------------------------ */

static void
on_sigsys(int sig, siginfo_t *info, void *context)
{
	last_syscall = info->si_syscall;
	__atomic_fetch_add(&syscalls, 1, __ATOMIC_RELAXED);
#if defined(__x86_64__)
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
	((ucontext_t *)context)->uc_mcontext.regs[0] = (unsigned long long)-ENOSYS;
#else
#error "which register holds what a system call returns?"
#endif
}

/* From here on the calling thread can return from a signal handler and exit, nothing else. */
static bool
guard(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = RTE_DIM(code), .filter = code};
	struct sigaction sa = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};

	return sigaction(SIGSYS, &sa, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

enum { STARTING, NO_SECCOMP, PROVEN, DONE };
struct guarded_worker {
	struct sl_worker *w;
	volatile int state;
	unsigned trapped_on_purpose, allocated_on_purpose;
};

static void *
guarded_main(void *arg)
{
	struct guarded_worker *g = arg;
	void *volatile p;

	if (rte_thread_register() != 0 || !guard()) {
		g->state = NO_SECCOMP;
		return NULL;
	}
	/* The guards catch: one of each, on purpose. */
	guarded = true;
	(void)syscall(SYS_getppid);
	g->trapped_on_purpose = syscalls;
	p = malloc(1);
	free(p);
	g->allocated_on_purpose = allocations;
	syscalls = allocations = locks = 0;
	__atomic_store_n(&g->state, PROVEN, __ATOMIC_RELEASE);
	sl_worker_main(g->w);
	guarded = false;
	__atomic_store_n(&g->state, DONE, __ATOMIC_RELEASE);
	syscall(SYS_exit, 0); /* the C library's way out makes calls that are not allowed any more */
	return NULL;
}

/* Some of everything into port 0. */
static void
inject_all_sorts(struct rig *r, struct rig_peer *a, struct rig_peer *b, unsigned n)
{
	uint8_t msg[RIG_FRAME_MAX], packet[RIG_FRAME_MAX], frame[RIG_FRAME_MAX], payload[1300] = {3};
	uint8_t setup[7 + 2 * 18 + 35] = {1, 0, sizeof(setup) - 4};
	const uint8_t heartbeat = SL_MSG_HEARTBEAT, disconnect[2] = {SL_MSG_DISCONNECT, 0};
	size_t len;

	setup[5] = setup[23] = 1;
	setup[41] = 33;
	for (unsigned i = 0; i < n; i++) {
		switch (sl_test_rand() % 12) {
		case 0: /* coordinates */
			rig_send_datagram(r, a, &b->addr, 0, 64, 1280, setup, sizeof(setup), msg);
			continue;
		case 1: /* for us */
			rig_send_datagram(r, a, sl_identity_addr(r->identity), 0, 64, 1280, "us", 2, msg);
			continue;
		case 2:
			len = rig_seal(packet, a, a->counter++, 0, 1, &heartbeat, 1);
			break;
		case 3:
			len = rig_seal(packet, a, a->counter++, 0, 1, disconnect, 2);
			break;
		case 4: /* forged */
			len = rig_seal(packet, a, a->counter + 5, 0, 1, payload, 600);
			packet[20] ^= 1;
			break;
		case 5: /* replayed */
			len = rig_seal(packet, a, a->counter - 1, 0, 1, &heartbeat, 1);
			break;
		case 6: /* unknown index */
			len = rig_seal(packet, a, a->counter, 0, 1, &heartbeat, 1);
			packet[6] ^= 0xff;
			break;
		case 7: /* handshake */
			memset(packet, 0, SL_MSG1_PACKET_BYTES);
			packet[0] = 1;
			packet[2] = 110;
			len = SL_MSG1_PACKET_BYTES;
			break;
		default:
			rig_send_datagram(r, a, &b->addr, 0, (uint8_t)(sl_test_rand() % 8 ? 64 : 1), 1280, payload,
				sl_test_rand() % sizeof(payload), msg);
			continue;
		}
		rig_inject(r, 0, frame, rig_wrap(r, a, frame, packet, len));
	}
}

static void
quiet(const struct sl_aead_backend *aead)
{
	const struct rig_config config = {.workers = 2, .aead = aead};
	struct rig *r = rig_create(&config);
	struct guarded_worker g = {0};
	struct rig_peer *a, *b, *other;
	uint8_t frame[RIG_FRAME_MAX];
	pthread_t thread;
	struct sl_worker_stats s, before;

	if (SANITIZED) {
		rig_destroy(r);
		SL_SKIP("a sanitizer's own calls would be trapped");
	}
	SL_ASSERT(r);
	syscalls = allocations = locks = 0;
	a = rig_peer_add(r, SL_ADDR_UDP4, 0, 0);
	other = rig_peer_add(r, SL_ADDR_ETH, 0, 1); /* worker 1's: handed over */
	b = rig_peer_add(r, SL_ADDR_UDP6, 1, 0);
	a->counter = other->counter = 10;
	g.w = r->dp->workers[0];
	sl_dataplane_worker_stats(r->dp, 0, &before);
	SL_ASSERT(pthread_create(&thread, NULL, guarded_main, &g) == 0);
	while (g.state == STARTING)
		rte_delay_us_sleep(100);
	if (g.state == NO_SECCOMP) {
		pthread_join(thread, NULL);
		rig_destroy(r);
		SL_SKIP("no seccomp filters here");
	}
	for (unsigned round = 0; round < 100; round++) {
		inject_all_sorts(r, a, b, 60);
		inject_all_sorts(r, other, b, 4);
		while (!rte_ring_empty(r->in[0]))
			rte_delay_us_sleep(50);
		rte_delay_us_sleep(200);
		while (rig_receive(r, 1, frame))
			;
		sl_worker_poll(r->dp->workers[1]);
		sl_dataplane_poll(r->dp, 256, sl_dataplane_now_us());
	}
	__atomic_store_n(&g.w->stop, 1, __ATOMIC_RELEASE);
	while (g.state != DONE)
		rte_delay_us_sleep(100);
	pthread_join(thread, NULL);
	sl_dataplane_worker_stats(r->dp, 0, &s);
	SL_EXPECT_EQ(g.trapped_on_purpose, 1);
	SL_EXPECT_EQ(g.allocated_on_purpose, SANITIZED ? 0 : 2);
	SL_EXPECT_MSG(syscalls == 0, "%u system calls, the last was number %d", syscalls, last_syscall);
	SL_EXPECT_EQ(allocations, 0);
	SL_EXPECT_EQ(locks, 0);
	SL_EXPECT_EQ(s.rx - before.rx, 6400);
	SL_EXPECT_GT(s.tx, 1000);
	SL_EXPECT_GT(s.verdicts[SL_PUNT], 100);
	SL_EXPECT_GT(s.verdicts[SL_HANDOFF], 100);
	SL_EXPECT_GT(s.verdicts[SL_LOCAL], 100);
	SL_EXPECT_GT(s.verdicts[SL_DROP_AUTH], 100);
	SL_EXPECT_GT(s.verdicts[SL_DROP_REPLAY], 100);
	SL_EXPECT_GT(s.verdicts[SL_DROP_UNKNOWN_INDEX], 100);
	SL_EXPECT_GT(s.verdicts[SL_DROP_TTL], 10);
	rig_destroy(r);
}

SL_TEST(quiet, ipsec_mb)
{
	const struct sl_aead_backend *aead = sl_aead_backend_find("ipsec-mb");

	if (!aead)
		SL_SKIP("no ipsec-mb on this CPU");
	quiet(aead);
}
SL_TEST(quiet, sodium)
{
	quiet(sl_aead_backend_find("sodium"));
}
