/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sl_wire: frames from one interface to another and back, with delay, loss, and a narrow place. For namespaces of a kernel
 * that has no netem. UDP datagrams suffer; everything else (ARP) passes at once. Each pair of ports is a path of its own, so many
 * nodes share the program and not the narrow place, each way of it is modelled as perf/firstflight.c does it: --kbit a second,
 * room for one packet behind the one under way, others' datagrams of 300 bytes at random times taking 40% of it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX 2048u
#define HEAP_MAX 65536u
#define PATHS 65536u
#define CROSS_BYTES 300
#define CROSS_SHARE 0.4

struct flying {
	uint64_t at_us, order;
	int out;
	size_t len;
	uint8_t *bytes;
};
static struct flying heap[HEAP_MAX];
static unsigned heap_count;

static struct narrow {
	double free_us, start_us, cross_us;
} *paths[2];

static double loss, bits_per_us;
static uint64_t delay_us, seed, order, passed, lost, narrow_lost;
static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static double chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static bool before(const struct flying *a, const struct flying *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void fly(const struct flying *f)
{
	unsigned i = heap_count++;

	while (i && before(f, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = *f;
}

static struct flying land(void)
{
	struct flying first = heap[0], last = heap[--heap_count];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child + 1 < heap_count && before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= heap_count || !before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* When a packet is through the narrow place, or 0 = lost. */
static double squeeze(struct narrow *n, double at_us, size_t bytes)
{
	if (n->free_us <= at_us) {
		n->start_us = at_us;
	} else {
		if (n->start_us > at_us)
			return 0;
		n->start_us = n->free_us;
	}
	n->free_us = n->start_us + (double)bytes * 8 / bits_per_us;
	return n->free_us;
}

static double through(struct narrow *n, double at_us, size_t bytes)
{
	double mean_us = CROSS_BYTES * 8 / (bits_per_us * CROSS_SHARE);

	if (n->cross_us == 0 || n->cross_us < at_us - 1e6) /* after a rest, a second of it is enough */
		n->cross_us = at_us - 1e6;
	for (; n->cross_us <= at_us; n->cross_us += -log(1 - chance()) * mean_us)
		(void)squeeze(n, n->cross_us, CROSS_BYTES);
	return squeeze(n, at_us, bytes);
}

/* The path of an IPv4 UDP frame by the smaller of its ports, -1 for anything else. */
static int path_of(const uint8_t *f, size_t len)
{
	int a, b;

	if (len < 42 || f[12] != 8 || f[13] != 0 || f[14] != 0x45 || f[23] != IPPROTO_UDP)
		return -1;
	a = f[34] << 8 | f[35];
	b = f[36] << 8 | f[37];
	return a < b ? a : b;
}

static void arrived(int way, int out, const uint8_t *bytes, size_t len)
{
	int path = path_of(bytes, len);
	struct flying f = {.at_us = now_us(), .order = order++, .out = out, .len = len};

	if (path >= 0) {
		if (bits_per_us > 0) {
			double at = through(&paths[way][path], (double)f.at_us, len);

			if (at == 0) {
				narrow_lost++;
				return;
			}
			f.at_us = (uint64_t)at;
		}
		if (chance() < loss) {
			lost++;
			return;
		}
		f.at_us += delay_us;
	}
	f.bytes = malloc(len);
	if (!f.bytes || heap_count == HEAP_MAX) {
		free(f.bytes);
		lost++;
		return;
	}
	memcpy(f.bytes, bytes, len);
	fly(&f);
	passed++;
}

static int open_interface(const char *name)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)), one = 1, size = 8 << 20;

	at.sll_ifindex = (int)if_nametoindex(name);
	if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
		setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one))) {
		fprintf(stderr, "sl_wire: %s: %s\n", name, strerror(errno));
		exit(2);
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return fd;
}

static void run(const int fd[2])
{
	uint8_t frame[FRAME_MAX];

	while (!stop) {
		struct pollfd p[2] = {{.fd = fd[0], .events = POLLIN}, {.fd = fd[1], .events = POLLIN}};
		uint64_t now = now_us(), wait = heap_count ? (heap[0].at_us > now ? heap[0].at_us - now : 0) : 100000;
		struct timespec ts = {.tv_nsec = (long)(wait < 100000 ? wait : 100000) * 1000};

		if (ppoll(p, 2, &ts, NULL) > 0)
			for (int way = 0; way < 2; way++) {
				ssize_t len;

				while ((len = recv(fd[way], frame, sizeof(frame), 0)) > 0)
					arrived(way, fd[!way], frame, (size_t)len);
			}
		for (now = now_us(); heap_count && heap[0].at_us <= now;) {
			struct flying f = land();

			if (send(f.out, f.bytes, f.len, 0) < 0)
				lost++;
			free(f.bytes);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"loss", 1, NULL, 'l'}, {"delay-us", 1, NULL, 'd'}, {"kbit", 1, NULL, 'k'},
		{"seed", 1, NULL, 's'}, {NULL, 0, NULL, 0}};
	struct sigaction sa = {.sa_handler = on_signal};
	bool misused = false;
	int opt, fd[2];

	seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull | 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'l': loss = strtod(optarg, NULL) / 100; break;
		case 'd': delay_us = strtoull(optarg, NULL, 0); break;
		case 'k': bits_per_us = strtod(optarg, NULL) / 1000; break;
		case 's': seed = strtoull(optarg, NULL, 0) | 1; break;
		default: misused = true; break;
		}
	}
	if (misused || optind + 2 != argc) {
		fputs("usage: sl_wire [--loss PERCENT] [--delay-us ONE_WAY] [--kbit RATE] [--seed N] INTERFACE INTERFACE\n", stderr);
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	paths[0] = calloc(PATHS, sizeof(*paths[0]));
	paths[1] = calloc(PATHS, sizeof(*paths[1]));
	if (!paths[0] || !paths[1])
		return 2;
	fd[0] = open_interface(argv[optind]);
	fd[1] = open_interface(argv[optind + 1]);
	puts("{\"ready\":true}");
	fflush(stdout);
	run(fd);
	printf("{\"final\":true,\"passed\":%llu,\"lost\":%llu,\"narrow_lost\":%llu}\n", (unsigned long long)passed,
		(unsigned long long)lost, (unsigned long long)narrow_lost);
	free(paths[0]);
	free(paths[1]);
	return 0;
}
