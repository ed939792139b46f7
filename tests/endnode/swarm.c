/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sl_swarm: many end nodes in one process, a UDP socket each, that do nothing but have links: node i is bound to port
 * --port + i, and dials --to at --to-port + i when that is given. Its secret key is the number --key + i + 1, the key of whom it
 * dials --to-key + i + 1: anybody can work them out, which is what a test needs. For times to a link in namespaces.
 *
 * Prints {"up":n} a second and a last object with "final":true: for each node when it began and when its link came up, in
 * microseconds of the monotonic clock, 0 = it did not. Ended by a signal, each says goodbye. With --keys it prints secret and npub of each node instead.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sl_link.h"

#define NODES_MAX 4096u
#define PACKET_MAX 2048

struct swarm_node {
	int fd;
	struct sl_identity *id;
	struct sl_session_table *table;
	struct sl_links *links;
	uint64_t start_us, due_us, began_us, up_us, downs;
};

static struct {
	struct swarm_node *nodes;
	unsigned count;
	uint64_t key, to_key, stagger_us, limit_us;
	struct sl_addr bind, to;
	bool dials, first_flight, stay;
} swarm;
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

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "sl_swarm: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void to_sockaddr(struct sockaddr_in *in, const struct sl_addr *a)
{
	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_port = htons(a->udp_port);
	memcpy(&in->sin_addr, a->u.ip4, 4);
}

static int on_transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	struct swarm_node *n = arg;
	struct sockaddr_in in;

	to_sockaddr(&in, to);
	return sendto(n->fd, packet, len, 0, (struct sockaddr *)&in, sizeof(in)) == (ssize_t)len ? 0 : -errno;
}

static void on_up(void *arg, uint32_t id, const struct sl_remote_key *key, uint16_t mtu)
{
	struct swarm_node *n = arg;

	(void)id;
	(void)key;
	(void)mtu;
	if (!n->up_us)
		n->up_us = now_us();
}

static void on_down(void *arg, uint32_t id, enum sl_down_reason reason)
{
	(void)id;
	(void)reason;
	((struct swarm_node *)arg)->downs++;
}

static struct sl_identity *identity(uint64_t number)
{
	char hex[65];

	snprintf(hex, sizeof(hex), "%048d%016llx", 0, (unsigned long long)number);
	return sl_identity_from_text(hex);
}

static void open_socket(struct swarm_node *n, unsigned i, int epoll)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
	struct sl_addr at = swarm.bind;
	struct sockaddr_in in;

	at.udp_port = (uint16_t)(at.udp_port + i);
	to_sockaddr(&in, &at);
	n->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (n->fd < 0 || bind(n->fd, (struct sockaddr *)&in, sizeof(in)) || epoll_ctl(epoll, EPOLL_CTL_ADD, n->fd, &e))
		die("socket");
}

static void make(struct swarm_node *n, unsigned i, int epoll)
{
	struct sl_session_table_config tc = {.max_sessions = 16, .max_peers = 4, .workers = 1};
	struct sl_links_sink sink = {.arg = n, .transmit = on_transmit, .peer_up = on_up, .peer_down = on_down};
	struct sl_transport_config t = {.kind = SL_ADDR_UDP4, .mtu = SL_UDP_MTU_DEFAULT, .accept_connections = true};
	struct sl_links_config c;

	open_socket(n, i, epoll);
	sl_links_config_default(&c);
	c.max_peers = 4;
	c.first_flight = swarm.first_flight;
	n->id = identity(swarm.key + i + 1);
	n->table = sl_session_table_create(&tc);
	n->links = n->id && n->table ? sl_links_create(&c, n->id, n->table, sl_aead_backend_find("auto"), &sink, now_us()) : NULL;
	if (!n->links || sl_links_transport_add(n->links, &t))
		die("node");
}

static void dial(struct swarm_node *n, unsigned i, uint64_t now)
{
	struct sl_peer_config p = {.addr_count = 1, .auto_connect = true, .auto_reconnect = true};
	struct sl_identity *to = identity(swarm.to_key + i + 1);

	if (!to)
		die("key");
	memcpy(p.xonly, sl_identity_xonly(to), SL_XONLY_BYTES);
	sl_identity_destroy(to);
	p.addrs[0] = swarm.to;
	p.addrs[0].udp_port = (uint16_t)(p.addrs[0].udp_port + i);
	n->began_us = now;
	n->due_us = 0; /* now, whatever was planned */
	if (sl_links_peer_configure(n->links, &p, now))
		die("peer");
}

static void receive(struct swarm_node *n)
{
	uint8_t packet[PACKET_MAX];
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	ssize_t got;

	while ((got = recvfrom(n->fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&in, &len)) >= 0) {
		struct sl_addr from = {.kind = SL_ADDR_UDP4, .udp_port = ntohs(in.sin_port)};

		memcpy(from.u.ip4, &in.sin_addr, 4);
		sl_links_packet(n->links, &from, packet, (size_t)got, now_us());
		n->due_us = 0;
		len = sizeof(in);
	}
}

static unsigned up_count(void)
{
	unsigned up = 0;

	for (unsigned i = 0; i < swarm.count; i++)
		up += swarm.nodes[i].up_us != 0;
	return up;
}

/* Everything due; when to look again at the latest. */
static uint64_t turn(uint64_t now)
{
	uint64_t next = now + 100000;

	for (unsigned i = 0; i < swarm.count; i++) {
		struct swarm_node *n = &swarm.nodes[i];

		if (swarm.dials && !n->began_us && now >= n->start_us)
			dial(n, i, now);
		if (now >= n->due_us)
			n->due_us = sl_links_tick(n->links, now);
		if (n->due_us < next)
			next = n->due_us;
		if (swarm.dials && !n->began_us && n->start_us < next)
			next = n->start_us;
	}
	return next;
}

static void run(int epoll)
{
	struct epoll_event events[256];
	uint64_t start = now_us(), print_us = start + 1000000, next = start, now;

	for (unsigned i = 0; i < swarm.count; i++)
		swarm.nodes[i].start_us = start + swarm.stagger_us * i / swarm.count;
	for (;;) {
		int got;

		now = now_us();
		got = epoll_wait(epoll, events, 256, next > now ? (int)((next - now + 999) / 1000) : 0);
		for (int i = 0; i < got; i++)
			receive(&swarm.nodes[events[i].data.u32]);
		now = now_us();
		next = turn(now);
		if (now >= print_us) {
			printf("{\"up\":%u}\n", up_count());
			fflush(stdout);
			print_us += 1000000;
		}
		if (stop || now > start + swarm.limit_us || (!swarm.stay && up_count() == swarm.count))
			return;
	}
}

static void print_times(const char *name, bool up)
{
	printf(",\"%s\":[", name);
	for (unsigned i = 0; i < swarm.count; i++)
		printf("%s%llu", i ? "," : "",
			(unsigned long long)(up ? swarm.nodes[i].up_us : swarm.nodes[i].began_us));
	printf("]");
}

static const char usage[] =
	"usage: sl_swarm --nodes N --bind IPV4:PORT [--to IPV4:PORT] [--key N] [--to-key N] [--stagger-ms MS] [--seconds N]\n"
	"                [--first-flight] [--stay]\n"
	"       sl_swarm --nodes N --key N --keys\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {{"nodes", 1, NULL, 'n'}, {"bind", 1, NULL, 'b'}, {"to", 1, NULL, 't'},
		{"key", 1, NULL, 'k'}, {"to-key", 1, NULL, 'K'}, {"stagger-ms", 1, NULL, 's'}, {"seconds", 1, NULL, 'l'},
		{"first-flight", 0, NULL, 'f'}, {"stay", 0, NULL, 'S'}, {"keys", 0, NULL, 'p'}, {NULL, 0, NULL, 0}};
	struct sigaction sa = {.sa_handler = on_signal};
	bool keys = false;
	int opt, epoll;

	swarm.limit_us = 60000000;
	if (sl_crypto_init())
		die("no random source");
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'n': swarm.count = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'b': if (sl_addr_parse_udp(&swarm.bind, optarg)) die("--bind"); break;
		case 't': if (sl_addr_parse_udp(&swarm.to, optarg)) die("--to"); swarm.dials = true; break;
		case 'k': swarm.key = strtoull(optarg, NULL, 0); break;
		case 'K': swarm.to_key = strtoull(optarg, NULL, 0); break;
		case 's': swarm.stagger_us = strtoull(optarg, NULL, 0) * 1000; break;
		case 'l': swarm.limit_us = strtoull(optarg, NULL, 0) * 1000000; break;
		case 'f': swarm.first_flight = true; break;
		case 'S': swarm.stay = true; break;
		case 'p': keys = true; break;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (!swarm.count || swarm.count > NODES_MAX || optind != argc || (!keys && swarm.bind.kind != SL_ADDR_UDP4)) {
		fputs(usage, stderr);
		return 2;
	}
	for (unsigned i = 0; keys && i < swarm.count; i++) {
		struct sl_identity *id = identity(swarm.key + i + 1);
		char npub[SL_NPUB_SIZE];

		if (!id)
			die("key");
		sl_npub_format(npub, sl_identity_xonly(id));
		printf("%064llx %s\n", (unsigned long long)(swarm.key + i + 1), npub);
		sl_identity_destroy(id);
	}
	if (keys)
		return 0;
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	swarm.nodes = calloc(swarm.count, sizeof(*swarm.nodes));
	if (!swarm.nodes || epoll < 0)
		die("memory");
	for (unsigned i = 0; i < swarm.count; i++)
		make(&swarm.nodes[i], i, epoll);
	printf("{\"ready\":%u}\n", swarm.count);
	fflush(stdout);
	run(epoll);
	printf("{\"final\":true,\"up\":%u", up_count());
	print_times("began_us", false);
	print_times("up_us", true);
	puts("}");
	for (unsigned i = 0; i < swarm.count; i++) {
		if (stop)
			sl_links_shutdown(swarm.nodes[i].links, SL_DISCONNECT_SHUTDOWN, now_us());
		sl_links_destroy(swarm.nodes[i].links);
		sl_session_table_destroy(swarm.nodes[i].table);
		sl_identity_destroy(swarm.nodes[i].id);
		close(swarm.nodes[i].fd);
	}
	free(swarm.nodes);
	return 0;
}
