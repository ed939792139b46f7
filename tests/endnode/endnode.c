/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sl_endnode: a FIPS end node over a UDP socket that exchanges a numbered stream with its partner
 * through a relay. For the demo and the smoke tests. Prints one JSON object a second and a last one
 * with "final":true.
 *
 * One thread, one socket. Packets to send are gathered and handed to the kernel together
 * (sendmmsg), received ones are taken up to BATCH at a time (recvmmsg); between two turns it sleeps
 * in ppoll until a packet comes or something is due.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "node.h"

#define BATCH 64
#define PACKET_MAX 2048
#define SOCKET_BUFFER (8 << 20)

struct io {
	int fd;
	unsigned queued; /* packets gathered to send */
	bool moved, mute;
	struct sl_addr move, move_to; /* SIGUSR1: ours and the relay's from then on */
	struct mmsghdr tx[BATCH], rx[BATCH];
	struct iovec tx_iov[BATCH], rx_iov[BATCH];
	struct sockaddr_storage tx_addr[BATCH], rx_addr[BATCH];
	uint8_t tx_data[BATCH][PACKET_MAX], rx_data[BATCH][PACKET_MAX];
};

static struct io io;
static struct node node;
static volatile sig_atomic_t stop, move, redial;

static void on_signal(int sig)
{
	if (sig == SIGUSR1 || sig == SIGUSR2) {
		move = 1;
		redial = sig == SIGUSR2;
	} else {
		stop++;
	}
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static socklen_t to_sockaddr(struct sockaddr_storage *ss, const struct sl_addr *a)
{
	memset(ss, 0, sizeof(*ss));
	if (a->kind == SL_ADDR_UDP4) {
		struct sockaddr_in *in = (struct sockaddr_in *)ss;

		in->sin_family = AF_INET;
		in->sin_port = htons(a->udp_port);
		memcpy(&in->sin_addr, a->u.ip4, 4);
		return sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(a->udp_port);
		memcpy(&in6->sin6_addr, a->u.ip6, 16);
		return sizeof(*in6);
	}
}

static bool from_sockaddr(struct sl_addr *a, const struct sockaddr_storage *ss)
{
	memset(a, 0, sizeof(*a));
	if (ss->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)ss;

		a->kind = SL_ADDR_UDP4;
		a->udp_port = ntohs(in->sin_port);
		memcpy(a->u.ip4, &in->sin_addr, 4);
		return true;
	}
	if (ss->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

		a->kind = SL_ADDR_UDP6;
		a->udp_port = ntohs(in6->sin6_port);
		memcpy(a->u.ip6, &in6->sin6_addr, 16);
		return true;
	}
	return false;
}

/* Hands everything gathered to the kernel. A full socket buffer is waited for: losing here would
 * not be the relay's. */
static void flush(void)
{
	unsigned done = 0, waited = 0;

	while (done < io.queued) {
		int n = sendmmsg(io.fd, io.tx + done, io.queued - done, 0);

		if (n > 0) {
			done += (unsigned)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if ((errno == EAGAIN || errno == ENOBUFS) && waited++ < 50) {
			struct pollfd p = {.fd = io.fd, .events = POLLOUT};

			poll(&p, 1, 1);
			continue;
		}
		/* ECONNREFUSED and the like belong to an earlier packet; this one is given up all
		 * the same. */
		node.tx_failed++;
		done++;
	}
	io.queued = 0;
}

static int transmit(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	unsigned i;

	(void)arg;
	if (len > PACKET_MAX)
		return -EMSGSIZE;
	if (io.mute)
		return 0;
	if (io.moved)
		to = &io.move_to;
	if (io.queued == BATCH)
		flush();
	i = io.queued++;
	memcpy(io.tx_data[i], packet, len);
	io.tx_iov[i].iov_len = len;
	io.tx[i].msg_hdr.msg_namelen = to_sockaddr(&io.tx_addr[i], to);
	return 0;
}

static int io_open(const struct sl_addr *bind_addr)
{
	struct sockaddr_storage ss;
	socklen_t len = to_sockaddr(&ss, bind_addr);
	int size = SOCKET_BUFFER, one = 1, err;

	io.fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (io.fd < 0)
		return -errno;
	/* Restarted at once on the same port in the recovery tests. */
	setsockopt(io.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (setsockopt(io.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(io.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(io.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(io.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (bind(io.fd, (struct sockaddr *)&ss, len)) {
		err = -errno;
		close(io.fd);
		return err;
	}
	for (unsigned i = 0; i < BATCH; i++) {
		io.tx_iov[i].iov_base = io.tx_data[i];
		io.tx[i].msg_hdr.msg_iov = &io.tx_iov[i];
		io.tx[i].msg_hdr.msg_iovlen = 1;
		io.tx[i].msg_hdr.msg_name = &io.tx_addr[i];
		io.rx_iov[i].iov_base = io.rx_data[i];
		io.rx[i].msg_hdr.msg_iov = &io.rx_iov[i];
		io.rx[i].msg_hdr.msg_iovlen = 1;
		io.rx[i].msg_hdr.msg_name = &io.rx_addr[i];
	}
	return 0;
}

static void receive(void)
{
	for (int round = 0; round < 4; round++) {
		int n;
		uint64_t now;

		for (unsigned i = 0; i < BATCH; i++) {
			io.rx_iov[i].iov_len = PACKET_MAX;
			io.rx[i].msg_hdr.msg_namelen = sizeof(io.rx_addr[i]);
		}
		n = recvmmsg(io.fd, io.rx, BATCH, MSG_DONTWAIT, NULL);
		if (n <= 0)
			return;
		now = now_ns();
		for (int i = 0; i < n; i++) {
			struct sl_addr from;

			if (from_sockaddr(&from, &io.rx_addr[i]))
				node_packet(&node, &from, io.rx_data[i], io.rx[i].msg_len, now);
		}
		if (n < BATCH)
			return;
	}
}

/* The socket is another one, elsewhere; the links hear of it by what comes in. */
static void move_now(void)
{
	int old = io.fd;

	move = 0;
	if (io.move.kind == SL_ADDR_NONE)
		return;
	flush();
	if (redial) {
		io.mute = true;
		if (node_forget(&node, now_ns()))
			fprintf(stderr, "sl_endnode: there was no link\n");
		io.mute = false;
	}
	if (io_open(&io.move)) {
		fprintf(stderr, "sl_endnode: cannot move\n");
		io.fd = old;
		return;
	}
	close(old);
	io.moved = true;
	if (redial && node_redial(&node, now_ns()))
		fprintf(stderr, "sl_endnode: cannot dial again\n");
}

static void print_json(bool final)
{
	char line[4096];

	node_json(&node, line, sizeof(line), final);
	puts(line);
	fflush(stdout);
}

static void run(uint64_t every_ns)
{
	uint64_t next_print = now_ns() + every_ns;
	uint32_t lost_before = 0;

	while (node.state != NODE_DONE) {
		struct pollfd p = {.fd = io.fd, .events = POLLIN};
		uint64_t now = now_ns(), next;
		struct timespec wait = {0, 0};

		if (stop == 1)
			node_end(&node, now);
		else if (stop > 1)
			break;
		if (move)
			move_now();
		next = node_turn(&node, BATCH, now);
		flush();
		if (now >= next_print) {
			print_json(false);
			next_print += every_ns;
		}
		if (node.links_lost != lost_before) {
			lost_before = node.links_lost;
			fprintf(stderr, "sl_endnode: link to the relay lost\n");
		}
		if (next > next_print)
			next = next_print;
		now = now_ns();
		if (next > now) {
			wait.tv_sec = (time_t)((next - now) / 1000000000ull);
			wait.tv_nsec = (long)((next - now) % 1000000000ull);
		}
		if (ppoll(&p, 1, &wait, NULL) > 0)
			receive();
		flush();
	}
	print_json(true);
	node_shutdown(&node, now_ns());
	flush();
}

static _Noreturn void die(const char *what, const char *value)
{
	fprintf(stderr, "sl_endnode: %s%s%s\n", what, value ? ": " : "", value ? value : "");
	exit(2);
}

static void parse_peer(struct sl_peer_config *peer, char *text)
{
	char *at = strchr(text, '@');

	if (at) {
		*at++ = '\0';
		if (sl_addr_parse_udp(&peer->addrs[0], at) != 0)
			die("not an address and port", at);
		peer->addrs[0].transport = 0;
		peer->addr_count = 1;
	}
	if (sl_npub_parse(peer->xonly, text) != 0)
		die("not an npub", text);
	peer->auto_connect = at != NULL;
	peer->auto_reconnect = true;
	strcpy(peer->alias, "relay");
}

static const char usage[] =
	"usage: sl_endnode --secret NSEC|HEX --bind ADDR:PORT --peer NPUB[@ADDR:PORT] --partner "
	"NPUB\n"
	"                  [--rate PPS] [--size BYTES] [--seconds N] [--mtu BYTES] [--dead-ms MS] "
	"[--aead NAME]\n"
	"                  [--mix] [--follow-mtu] [--rekey-s S] [--rekey-messages N] [--move ADDR:PORT --move-to ADDR:PORT]\n"
	"  --peer     the relay; with an address it is dialled, without one it dials us\n"
	"  --partner  who the stream goes to and comes from\n"
	"  --far      it is not the relay's neighbour: look it up and show coordinates\n"
	"  --rate     payloads a second to send, 0 = listen only (1000); --size of each, 40 or "
	"more (256)\n"
	"  --mix      every second payload is of 40 bytes; --follow-mtu: sends less once the mesh says that it is too much\n"
	"  --seconds  of sending, 0 = until SIGTERM (10)\n"
	"  --mtu      largest packet of the link, UDP payload bytes (1280)\n"
	"  --rekey-s, --rekey-messages  age and frames after which a link gets a new key (120, 65536)\n"
	"  --move, --move-to  on SIGUSR1: our address and the relay's from then on; on SIGUSR2 the link is forgotten too\n"
	"             and dialled again\n"
	"  --dead-ms  silence after which the link is taken for dead (30000)\n"
	"Prints a JSON object a second (--every-ms); the last has \"final\":true.\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {{"secret", 1, NULL, 's'}, {"bind", 1, NULL, 'b'},
		{"peer", 1, NULL, 'p'}, {"partner", 1, NULL, 't'}, {"rate", 1, NULL, 'r'},
		{"size", 1, NULL, 'z'}, {"seconds", 1, NULL, 'n'}, {"mtu", 1, NULL, 'm'},
		{"dead-ms", 1, NULL, 'd'}, {"aead", 1, NULL, 'a'}, {"every-ms", 1, NULL, 'e'},
		{"move", 1, NULL, 'o'}, {"move-to", 1, NULL, 'O'},
		{"rekey-s", 1, NULL, 'k'}, {"rekey-messages", 1, NULL, 'K'},
		{"mix", 0, NULL, 'x'}, {"follow-mtu", 0, NULL, 'F'}, {"far", 0, NULL, 'f'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct node_config config = {.rate_pps = 1000,
		.size = 256,
		.seconds = 10,
		.transport = {.id = 0,
			.kind = SL_ADDR_UDP4,
			.mtu = SL_UDP_MTU_DEFAULT,
			.accept_connections = true}};
	struct sigaction sa = {.sa_handler = on_signal};
	struct sl_addr bind_addr = {0};
	unsigned long every_ms = 1000;
	bool have_peer = false, have_partner = false;
	int opt, err;

	if (sl_crypto_init() != 0)
		die("no random source", NULL);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			config.identity = sl_identity_from_text(optarg);
			if (!config.identity)
				die("not a secret key", NULL);
			break;
		case 'b':
			if (sl_addr_parse_udp(&bind_addr, optarg) != 0)
				die("not an address and port", optarg);
			break;
		case 'p':
			parse_peer(&config.relay, optarg);
			have_peer = true;
			break;
		case 't':
			if (sl_npub_parse(config.partner_xonly, optarg) != 0)
				die("not an npub", optarg);
			have_partner = true;
			break;
		case 'r':
			config.rate_pps = strtoull(optarg, NULL, 0);
			break;
		case 'z':
			config.size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'n':
			config.seconds = strtod(optarg, NULL);
			break;
		case 'm':
			config.transport.mtu = (uint16_t)strtoul(optarg, NULL, 0);
			break;
		case 'd':
			config.dead_timeout_ms = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'o':
		case 'O':
			if (sl_addr_parse_udp(opt == 'o' ? &io.move : &io.move_to, optarg) != 0)
				die("not an address and port", optarg);
			break;
		case 'k':
			config.rekey_after_s = strtod(optarg, NULL);
			break;
		case 'K':
			config.rekey_after_messages = strtoull(optarg, NULL, 0);
			break;
		case 'e':
			every_ms = strtoul(optarg, NULL, 0);
			break;
		case 'x':
			config.mix = true;
			break;
		case 'F':
			config.follow = true;
			break;
		case 'f':
			config.far = true;
			break;
		case 'a':
			config.aead = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!config.identity || !have_peer || !have_partner || bind_addr.kind == SL_ADDR_NONE ||
		optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	if (config.rekey_after_s > 0 && config.rekey_after_s < 1)
		die("--rekey-s is at least a second", NULL);
	if (config.size < STREAM_PAYLOAD_MIN || config.transport.mtu > PACKET_MAX ||
		config.size + SL_DATAGRAM_HEADER_BYTES + SL_OVERHEAD_BYTES > config.transport.mtu)
		die("--size is 40 to MTU - 72 bytes", NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	err = io_open(&bind_addr);
	if (err)
		die("cannot open the socket", strerror(-err));
	err = node_init(&node, &config, transmit, NULL, (uint64_t)time(NULL), now_ns());
	if (err)
		die("cannot start", strerror(-err));
	run(every_ms ? every_ms * 1000000ull : 1000000000ull);
	err = node.rx.received > 0 || node.sent > 0 ? 0 : 1;
	node_fini(&node);
	close(io.fd);
	return err;
}
