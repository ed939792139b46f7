/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sl_udpstream: the numbered stream of stream.h over plain UDP, both ways between two addresses: for nodes of the
 * reference, whose traffic comes from an IPv6 interface of the kernel. Prints what sl_endnode prints of its account: a JSON
 * object a second and a last one with "final":true.
 *
 * Order of a life as node.h has it: hellos until both have heard each other, data, ends, quiet. One thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

#define SECOND_NS 1000000000ull
#define HELLO_NS 100000000ull
#define LINGER_NS (5 * SECOND_NS)
#define QUIET_NS SECOND_NS
#define BURST 32
#define PAYLOAD_MAX 1400
#define SOCKET_BUFFER (8 << 20)

enum state { GREETING, RUNNING, ENDING, DONE };

static struct {
	int fd;
	uint64_t rate_pps, size, run;
	double seconds;
	enum state state;
	uint64_t start_ns, run_ns, end_ns, next_hello_ns, next_print_ns;
	uint64_t paced, sent, tx_failed, not_sent;
	struct stream_rx rx;
} s;
static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

/* A full buffer is waited for; what the kernel refuses otherwise is counted as sent and failed, so each number is used once. */
static void put(enum stream_kind kind, uint8_t flags, size_t len, uint64_t sequence)
{
	uint8_t payload[PAYLOAD_MAX];

	stream_build(payload, len, kind, flags, s.run, sequence, now_ns());
	for (int tries = 0; tries < 50; tries++) {
		struct pollfd p = {.fd = s.fd, .events = POLLOUT};

		if (send(s.fd, payload, len, MSG_DONTWAIT) == (ssize_t)len)
			return;
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
			break;
		poll(&p, 1, 1);
	}
	s.tx_failed += kind == STREAM_DATA;
}

static void greet(uint64_t now)
{
	if (now < s.next_hello_ns)
		return;
	put(STREAM_HELLO, s.rx.hello || s.rx.started ? STREAM_HEARD : 0, STREAM_PAYLOAD_MIN, 0);
	s.next_hello_ns = now + HELLO_NS;
}

static void send_data(uint64_t now)
{
	uint64_t due = (uint64_t)((double)(now - s.run_ns) / 1e9 * (double)s.rate_pps);

	for (unsigned n = 0; s.paced < due && n < BURST; n++) {
		s.paced++;
		put(STREAM_DATA, 0, s.size, s.sent++);
	}
	/* Missed time is not made up for at line rate. */
	if (due > s.paced + s.rate_pps / 10 + 1) {
		s.not_sent += due - s.paced - s.rate_pps / 10;
		s.paced = due - s.rate_pps / 10;
	}
}

static void turn(uint64_t now)
{
	if (s.state == GREETING) {
		greet(now);
		if (s.rx.heard || (s.rx.started && s.rx.hello)) {
			s.state = RUNNING;
			s.run_ns = s.next_hello_ns = now;
		}
	} else if (s.state == RUNNING) {
		if (!s.rx.started)
			greet(now);
		send_data(now);
		if (stop || (s.seconds > 0 && (double)(now - s.run_ns) / 1e9 >= s.seconds)) {
			s.state = ENDING;
			s.end_ns = s.next_hello_ns = now;
		}
	} else if (s.state == ENDING) {
		if (now >= s.next_hello_ns) {
			put(STREAM_END, 0, STREAM_PAYLOAD_MIN, s.sent);
			s.next_hello_ns = now + HELLO_NS;
		}
		if (now - s.end_ns > LINGER_NS ||
			(s.rx.ended && now - s.end_ns > QUIET_NS && now - s.rx.last_ns > QUIET_NS))
			s.state = DONE;
	}
}

static void receive(void)
{
	uint8_t payload[PAYLOAD_MAX];
	ssize_t len;

	while ((len = recv(s.fd, payload, sizeof(payload), MSG_DONTWAIT)) >= 0)
		stream_rx_payload(&s.rx, payload, (size_t)len, now_ns());
}

static void print(bool final, uint64_t now)
{
	static const char *const states[] = {"greeting", "running", "ending", "done"};

	printf("{\"final\":%s,\"t\":%.3f,\"state\":\"%s\",\"sent\":%llu,\"tx_failed\":%llu,\"not_sent\":%llu,"
	       "\"received\":%llu,\"duplicated\":%llu,\"reordered\":%llu,\"corrupted\":%llu,\"foreign\":%llu,"
	       "\"longest_gap_ms\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"run_s\":%.3f}\n",
		final ? "true" : "false", (double)(now - s.start_ns) / 1e9, states[s.state], (unsigned long long)s.sent,
		(unsigned long long)s.tx_failed, (unsigned long long)s.not_sent, (unsigned long long)s.rx.received,
		(unsigned long long)s.rx.duplicated, (unsigned long long)s.rx.reordered,
		(unsigned long long)s.rx.corrupted, (unsigned long long)s.rx.foreign, (double)s.rx.longest_gap_ns / 1e6,
		stream_histogram_us(&s.rx.latency, 0.5), stream_histogram_us(&s.rx.latency, 0.99),
		s.run_ns ? (double)((s.end_ns ? s.end_ns : now) - s.run_ns) / 1e9 : 0.0);
	fflush(stdout);
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "sl_udpstream: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int open_socket(const char *bind_ip, const char *to_ip, uint16_t port)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)}, b = a;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = SOCKET_BUFFER;

	if (inet_pton(AF_INET6, bind_ip, &a.sin6_addr) != 1 || inet_pton(AF_INET6, to_ip, &b.sin6_addr) != 1) {
		errno = EINVAL;
		die("an address");
	}
	if (fd < 0)
		die("socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || connect(fd, (struct sockaddr *)&b, sizeof(b)))
		die("bind or connect");
	return fd;
}

static void run(void)
{
	s.start_ns = now_ns();
	s.next_print_ns = s.start_ns + SECOND_NS;
	while (s.state != DONE) {
		struct pollfd p = {.fd = s.fd, .events = POLLIN};
		struct timespec wait = {.tv_nsec = s.state == RUNNING ? 500000 : 10000000};
		uint64_t now = now_ns();

		turn(now);
		if (now >= s.next_print_ns) {
			print(false, now);
			s.next_print_ns += SECOND_NS;
		}
		if (stop && s.state == GREETING)
			break;
		if (ppoll(&p, 1, &wait, NULL) > 0)
			receive();
	}
	print(true, now_ns());
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"bind", 1, NULL, 'b'}, {"to", 1, NULL, 't'}, {"port", 1, NULL, 'p'},
		{"rate", 1, NULL, 'r'}, {"size", 1, NULL, 'z'}, {"seconds", 1, NULL, 'n'}, {NULL, 0, NULL, 0}};
	struct sigaction sa = {.sa_handler = on_signal};
	const char *bind_ip = NULL, *to_ip = NULL;
	uint16_t port = 7000;
	bool misused = false;
	int opt;

	s.rate_pps = 1000;
	s.size = 256;
	s.seconds = 10;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'b': bind_ip = optarg; break;
		case 't': to_ip = optarg; break;
		case 'p': port = (uint16_t)strtoul(optarg, NULL, 0); break;
		case 'r': s.rate_pps = strtoull(optarg, NULL, 0); break;
		case 'z': s.size = strtoull(optarg, NULL, 0); break;
		case 'n': s.seconds = strtod(optarg, NULL); break;
		default: misused = true; break;
		}
	}
	if (misused || !bind_ip || !to_ip || optind != argc || s.size < STREAM_PAYLOAD_MIN || s.size > PAYLOAD_MAX) {
		fputs("usage: sl_udpstream --bind IPV6 --to IPV6 [--port N] [--rate PPS] [--size 40..1400] [--seconds N]\n",
			stderr);
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	s.fd = open_socket(bind_ip, to_ip, port);
	s.run = now_ns() * 0x9e3779b97f4a7c15ull ^ (uint64_t)getpid() << 32;
	stream_rx_init(&s.rx);
	run();
	stream_rx_fini(&s.rx);
	close(s.fd);
	return 0;
}
