/* SPDX-License-Identifier: BSD-3-Clause */
/* The real daemon on ports that need no hardware: its command line, key file, control socket and
 * leaving. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../../lib/crypto/sl_identity.h"
#include "../../../lib/crypto/sl_secret.h"
#include "daemon_run.h"
#include "sl_test.h"

/* --- cases ---------------------------------------------------------------------------------- */

SL_TEST(daemon, command_lines)
{
	make_dir();
	SL_EXPECT_EQ(RUN(SLUICED, "--help"), 0);
	SL_EXPECT(strstr(output_of("out"), "Usage: sluiced") != NULL);
	SL_EXPECT_EQ(RUN(SLUICED, "--version"), 0);
	SL_EXPECT_EQ(RUN(SLUICED, "--keys"), 0);
	SL_EXPECT(strstr(output_of("out"), "`node.limits.max_peers`") != NULL);
	SL_EXPECT_EQ(RUN(SLUICED, "--nonsense"), 2);
	SL_EXPECT_EQ(RUN(SLUICED, "a", "b"), 2);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("absent.yaml")), 2);
	SL_EXPECT(strstr(output_of("out"), "absent.yaml: cannot be opened: No such file") != NULL);
	write_text(in_dir("bad.yaml"), "node:\n  limts: {}\n");
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("bad.yaml")), 2);
	SL_EXPECT(strstr(output_of("out"), "bad.yaml:2:3: unknown key") != NULL);
	SL_EXPECT_EQ(RUN(SLUICED, "--check", in_dir("bad.yaml")), 2);
	write_text(in_dir("empty.yaml"), "");
	SL_EXPECT_EQ(RUN(SLUICED, "--check", in_dir("empty.yaml")), 2);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("empty.yaml")), 2);
	SL_EXPECT(strstr(output_of("out"), "empty.yaml: dataplane.ports: there is no port to run on") != NULL);
	write_text(in_dir("empty.yaml"), "dataplane: {ports: [{name: p0, device: net_null0}]}\n");
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("empty.yaml")), 2);
	SL_EXPECT(strstr(output_of("out"), "transports: there is neither udp nor ethernet") != NULL);
	SL_EXPECT_EQ(RUN(SLUICED, "--check", SLUICE_SOURCE "/docs/examples/relay.yaml"), 0);
	write_config("    - {name: p2, device: net_nonsense0}\n");
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "port p2 (net_nonsense0)") != NULL);
	SL_EXPECT_EQ(RUN(SLUICECTL, "--help"), 0);
	SL_EXPECT_EQ(RUN(SLUICECTL, "--version"), 0);
	SL_EXPECT_EQ(RUN(SLUICECTL), 2);
	SL_EXPECT_EQ(RUN(SLUICECTL, "show"), 2);
	SL_EXPECT_EQ(RUN(SLUICECTL, "show", "nonsense"), 2);
	SL_EXPECT_EQ(RUN(SLUICECTL, "-n", "x", "watch"), 2);
	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", "status"), 3);
	remove_dir();
}

static const char *const pages[] = {"status", "peers", "links", "tree", "filters", "routes",
	"ports", "workers", "drops", "neighbours", "counters", "crypto", "acl"};

/* The daemon with this configuration ends with status 1, and says why in these words. */
static void __attribute__((format(printf, 2, 3)))
refuses(const char *why, const char *config, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, config);
	vsnprintf(text, sizeof(text), config, ap);
	va_end(ap);
	write_text(in_dir("refused.yaml"), text);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("refused.yaml")), 1);
	SL_EXPECT_MSG(strstr(output_of("out"), why) != NULL, "not \"%s\": %s", why, output_of("out"));
}

/* More memory than the machine has: said at once, not found out page by page. */
SL_TEST(daemon, memory_that_is_not_there)
{
	make_dir();
	refuses("1000000 MiB are asked for",
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n"
		"dataplane: {memory: {huge_pages: \"no\", size_mb: 1000000}, ports: [{name: p0, device: net_null0}]}\n");
	remove_dir();
}

/* EAL's part alone would fit, with all that the tables can come to hold it does not. */
SL_TEST(daemon, tables_that_cannot_be_filled)
{
	make_dir();
	refuses("MiB may be needed (peers ",
		"node: {limits: {max_peers: 4096}, cache: {coord_size: 1000000}}\n"
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n"
		"dataplane: {memory: {huge_pages: \"no\", size_mb: %llu}, ports: [{name: p0, device: net_null0}]}\n",
		((unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE) >> 20) - 16);
	SL_EXPECT(strstr(output_of("out"), "node.cache.coord_size") != NULL);
	remove_dir();
}

/* 4,096 configured peers and a million destinations: it starts, says what it may come to hold, and serves its pages. */
SL_TEST(daemon, as_many_as_it_is_made_for)
{
	enum { PEERS = 4096 };
	char npub[SL_NPUB_SIZE];
	json_t *o;
	FILE *f;
	pid_t pid;

	SL_ASSERT(sl_crypto_init() == 0);
	make_dir();
	f = fopen(in_dir("relay.yaml"), "w");
	SL_ASSERT(f != NULL);
	fprintf(f,
		"node: {control: {socket_path: %s/control.sock}, limits: {max_peers: %d}, cache: {coord_size: 1000000}}\n"
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n"
		"dataplane:\n  idle_sleep_us: 200\n  pools: {mbufs: 4096}\n  memory: {huge_pages: \"no\"}\n"
		"  ports: [{name: p0, device: net_null0, addresses: [10.0.0.1/16]}]\npeers:\n",
		dir, PEERS);
	for (unsigned i = 0; i < PEERS; i++) {
		struct sl_identity *id = sl_identity_generate();

		SL_ASSERT(id != NULL);
		sl_npub_format(npub, sl_identity_xonly(id));
		sl_identity_destroy(id);
		fprintf(f, "  - {npub: %s, addresses: [{transport: udp, addr: \"10.0.%u.%u:2121\"}]}\n", npub, 1 + i / 200, 1 + i % 200);
	}
	fclose(f);
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	SL_EXPECT_MSG(strstr(output_of("log"), "memory when all tables are full: ") != NULL, "%s", output_of("log"));
	SL_EXPECT(strstr(output_of("log"), "4224 peers") != NULL);
	SL_EXPECT(strstr(output_of("log"), "1000000 destinations") != NULL);
	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "-j", "show", "status"), 0);
	o = json_loads(output_of("out"), 0, NULL);
	SL_EXPECT(json_is_object(o));
	json_decref(o);
	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "-j", "show", "peers"), 0);
	o = json_load_file(in_dir("out"), 0, NULL);
	SL_EXPECT_EQ(json_array_size(json_object_get(o, "peers")), PEERS);
	json_decref(o);
	stop_daemon(pid);
	remove_dir();
}

/* A folder of access lists that is written down and not there: as an empty list it would let everybody in. */
SL_TEST(daemon, access_lists_that_are_not_there)
{
	make_dir();
	refuses("/lists cannot be read: No such file or directory",
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n"
		"dataplane: {access_dir: \"%s/lists\", pools: {mbufs: 4096}, memory: {huge_pages: \"no\"}, "
		"ports: [{name: p0, device: net_null0, addresses: [192.0.2.1/24]}]}\n",
		dir);
	remove_dir();
}

SL_TEST(daemon, every_page_and_leaving)
{
	json_t *o;
	struct stat st;
	pid_t pid;

	make_dir();
	write_config(
		"peers:\n  - npub: "
		"npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le\n    alias: up\n"
		"    addresses: [{transport: udp, addr: \"192.0.2.9:2121\"}, {transport: udp, "
		"addr: \"localhost:9\"}]\n");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	for (unsigned i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		int rc = RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", pages[i]);

		SL_EXPECT_MSG(rc == 0, "show %s: %d: %s", pages[i], rc, output_of("out"));
		rc = RUN(SLUICECTL, "-s", in_dir("control.sock"), "-w", "-a", "-j", "show",
			pages[i]);
		o = json_loads(output_of("out"), 0, NULL);
		SL_EXPECT_MSG(rc == 0 && json_is_object(o), "-j show %s: %d: %s", pages[i], rc,
			output_of("out"));
		json_decref(o);
	}
	/* A worker that lost its CPU in the middle of a burst has counted half of it: one of a few looks adds up. */
	for (int try = 0; try < 20; try++) {
		SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", "drops"), 0);
		if (strstr(output_of("out"), "balanced") != NULL)
			break;
		poll(NULL, 0, 50);
	}
	SL_EXPECT(strstr(output_of("out"), "balanced") != NULL);
	SL_EXPECT_EQ(stat(in_dir("control.sock"), &st), 0);
	SL_EXPECT_EQ(st.st_mode & 0777, 0660);
	/* A second daemon leaves the first one's socket alone. */
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "another daemon serves it") != NULL);
	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", "status"), 0);
	kill(pid, SIGHUP);
	poll(NULL, 0, 200);
	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", "status"), 0);
	SL_EXPECT(strstr(output_of("log"), "SIGHUP") != NULL);
	stop_daemon(pid);
	SL_EXPECT(!strstr(output_of("log"), "nsec1"));
	remove_dir();
}

/* SIGHUPs, each a line of the log. */
static void
hang_up(pid_t pid, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		kill(pid, SIGHUP);
		poll(NULL, 0, 10); /* so that they do not become one */
	}
}

static json_int_t
daemon_counter(const char *name)
{
	json_t *o;
	json_int_t n;

	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "-j", "show", "counters"), 0);
	o = json_loads(output_of("out"), 0, NULL);
	n = json_integer_value(json_object_get(json_object_get(o, "daemon"), name));
	json_decref(o);
	return n;
}

/* One reason fills no log: ten lines, then one a second, and how many were left out. */
SL_TEST(daemon, log_is_limited)
{
	unsigned lines = 0;
	pid_t pid;

	make_dir();
	write_config("");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	hang_up(pid, 60);
	poll(NULL, 0, 100);
	SL_EXPECT_GE(daemon_counter("log_lines_left_out"), 30);
	for (const char *p = output_of("log"); (p = strstr(p, "SIGHUP:")) != NULL; p++)
		lines++;
	SL_EXPECT_GE(lines, 10);
	SL_EXPECT_LE(lines, 30);
	stop_daemon(pid);
	remove_dir();
}

/* Nobody reads the log and its pipe is full: control goes on, and leaves when it is told to. */
SL_TEST(daemon, log_that_nobody_reads)
{
	char text[4096] = {0};
	int pipe_fd[2];
	pid_t pid;
	int fd = -1;

	make_dir();
	write_config("");
	SL_ASSERT(pipe2(pipe_fd, O_CLOEXEC) == 0);
	pid = fork();
	if (!pid) {
		dup2(pipe_fd[1], 2);
		execl(SLUICED, SLUICED, "-c", in_dir("relay.yaml"), NULL);
		_exit(127);
	}
	for (unsigned i = 0; i < 500 && (fd = dial(in_dir("control.sock"))) < 0; i++)
		poll(NULL, 0, 20);
	SL_ASSERT(fd >= 0);
	close(fd);
	fcntl(pipe_fd[1], F_SETFL, O_NONBLOCK);
	while (write(pipe_fd[1], text, sizeof(text)) > 0 || write(pipe_fd[1], text, 1) > 0)
		;
	/* The flag is the open file's, so the daemon's too: what is tested is a pipe that would block. */
	fcntl(pipe_fd[1], F_SETFL, 0);
	hang_up(pid, 5);
	SL_EXPECT_GE(daemon_counter("log_lines_left_out"), 5);
	kill(pid, SIGTERM);
	SL_EXPECT_EQ(await(pid, 20000), 0);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	remove_dir();
}

SL_TEST(daemon, requests_good_and_bad)
{
	char big[5000];
	json_t *o;
	pid_t pid;
	int fd;

	make_dir();
	write_config("");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	fd = dial(in_dir("control.sock"));
	/* Several on one connection, in two pieces. */
	say(fd, "{\"command\":\"show_status\"}\n{\"command\":\"show_cr");
	expect_answer(fd, "ok", NULL);
	say(fd, "ypto\",\"params\":{}}\nnonsense\n\n{\"command\":3}\n[]\n{\"command\":\"show_"
		"everything\"}\n");
	expect_answer(fd, "ok", NULL);
	expect_answer(fd, "error", "invalid request");
	expect_answer(fd, "error", "empty request");
	expect_answer(fd, "error", "invalid request: no command");
	expect_answer(fd, "error", "invalid request: no command");
	expect_answer(fd, "error", "unknown command: show_everything");
	/* Without a newline, ended by the end of the stream. */
	say(fd, "{\"command\":\"show_tree\"}");
	shutdown(fd, SHUT_WR);
	expect_answer(fd, "ok", NULL);
	SL_EXPECT(read_answer(fd) == NULL);
	close(fd);
	fd = dial(in_dir("control.sock"));
	memset(big, 'x', sizeof(big));
	(void)!send(fd, big, sizeof(big), MSG_NOSIGNAL);
	expect_answer(fd, "error", "request too large");
	close(fd);
	/* Deep nesting and NULs do no harm. */
	fd = dial(in_dir("control.sock"));
	memset(big, '[', 3000);
	big[3000] = '\n';
	(void)!send(fd, big, 3001, MSG_NOSIGNAL);
	expect_answer(fd, "error", "invalid request");
	(void)!send(fd, "{\"command\":\"a\0b\"}\n", 18, MSG_NOSIGNAL);
	expect_answer(fd, "error", NULL);
	say(fd, "{\"command\":\"show_counters\"}\n");
	o = read_answer(fd);
	SL_EXPECT(
		json_integer_value(json_object_get(
			json_object_get(json_object_get(o, "data"), "daemon"), "requests")) >= 10);
	json_decref(o);
	close(fd);
	stop_daemon(pid);
	remove_dir();
}

#define HOSTILE 16 /* as many as there are places */

static void
expect_served(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", "status"), 0);
}

static void
hang_up_all(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Connections that ask nothing, or a byte at a time, take no place from who asks. */
SL_TEST(daemon, idle_clients_lock_nobody_out)
{
	int fds[HOSTILE];
	pid_t pid;

	make_dir();
	write_config("");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	for (unsigned i = 0; i < HOSTILE; i++)
		fds[i] = dial(in_dir("control.sock"));
	expect_served(5);
	SL_EXPECT_GE(daemon_counter("clients_evicted"), 1);
	SL_EXPECT_EQ(daemon_counter("clients_refused"), 0);
	hang_up_all(fds, HOSTILE);
	for (unsigned i = 0; i < HOSTILE; i++) {
		fds[i] = dial(in_dir("control.sock"));
		say(fds[i], "{\"comm");
	}
	expect_served(5);
	SL_EXPECT_EQ(daemon_counter("clients_refused"), 0);
	hang_up_all(fds, HOSTILE);
	stop_daemon(pid);
	remove_dir();
}

/* A request has its time from its first byte on; more bytes do not renew it. */
SL_TEST(daemon, trickling_request_ends)
{
	unsigned sent = 0;
	pid_t pid;
	char c;
	int fd;

	make_dir();
	write_config("");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	fd = dial(in_dir("control.sock"));
	while (sent < 300 && send(fd, "x", 1, MSG_NOSIGNAL) == 1 && recv(fd, &c, 1, MSG_DONTWAIT) < 0) {
		sent++;
		poll(NULL, 0, 100);
	}
	SL_EXPECT_LT(sent, 300);
	close(fd);
	SL_EXPECT_EQ(daemon_counter("clients_timed_out"), 1);
	stop_daemon(pid);
	remove_dir();
}

/* Clients that ask and never read cost nobody time, nor a place. */
SL_TEST(daemon, slow_and_many_clients)
{
	static char requests[4000];
	int fds[HOSTILE];
	uint64_t t;
	pid_t pid;
	size_t n = 0;

	make_dir();
	write_config("");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	while (n + 40 < sizeof(requests))
		n += (size_t)sprintf(requests + n, "{\"command\":\"show_counters\"}\n");
	for (unsigned i = 0; i < HOSTILE; i++) {
		fds[i] = dial(in_dir("control.sock"));
		for (unsigned k = 0; k < 50; k++)
			(void)!send(fds[i], requests, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	for (unsigned i = 0; i < 20; i++) {
		t = now_ms();
		/* At worst all places are in their first turn. */
		while (RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", "status") == 1 && now_ms() - t < 10000)
			SL_EXPECT(strstr(output_of("out"), "too many clients") != NULL);
		SL_EXPECT(strstr(output_of("out"), "npub1") != NULL);
	}
	hang_up_all(fds, HOSTILE);
	SL_EXPECT_GE(daemon_counter("clients_evicted"), 1);
	stop_daemon(pid);
	remove_dir();
}

SL_TEST(daemon, profiles)
{
	static const char *const names[] = {"generic", "af_packet", "af_xdp", "memif"};
	char extra[512];
	pid_t pid;

	make_dir();
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(extra, sizeof(extra),
			"      profile: %s\n  profiles_dir: " SLUICE_SOURCE "/drivers-config\n",
			names[i]);
		/* The profile continues the last port. */
		write_config("    - name: p2\n      device: net_null2\n");
		{
			FILE *f = fopen(in_dir("relay.yaml"), "a");

			SL_ASSERT(f != NULL);
			fputs(extra, f);
			fclose(f);
		}
		pid = start_daemon();
		SL_ASSERT(pid > 0);
		snprintf(extra, sizeof(extra), "port p2 is net_null2, profile %s", names[i]);
		SL_EXPECT_MSG(strstr(output_of("log"), extra) != NULL, "%s", output_of("log"));
		stop_daemon(pid);
	}
	snprintf(extra, sizeof(extra),
		"    - {name: p2, device: net_null2, profile: mine}\n  profiles_dir: %s\n", dir);
	write_config(extra);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "mine.yaml: cannot be read") != NULL);
	write_text(in_dir("mine.yaml"), "driver: mine\nrx_descriptors: many\n");
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"),
			  "mine.yaml:2:1: 'rx_descriptors' is no key of a profile, or its value") !=
		  NULL);
	remove_dir();
}

/* Two daemons, one wire of shared memory: the pages have rows, and a goodbye is heard at once. */
static pid_t
start_one(const char *name, unsigned number, const char *role, const char *extra)
{
	char text[1024], config[32], control[32], log[32];
	uint64_t end = now_ms() + 15000;
	pid_t pid;
	int fd;

	snprintf(config, sizeof(config), "%s.yaml", name);
	snprintf(control, sizeof(control), "%s.sock", name);
	snprintf(log, sizeof(log), "%s.log", name);
	snprintf(text, sizeof(text),
		"node: {identity: {nsec: \"%064u\"}, control: {socket_path: %s}}\n"
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n%s"
		"dataplane:\n  idle_sleep_us: 200\n  pools: {mbufs: 4096}\n  memory: {huge_pages: "
		"\"no\"}\n  ports:\n"
		"    - {name: wire, device: "
		"\"net_memif0,role=%s,id=0,socket=%s/memif.sock,socket-abstract=no\",\n"
		"       addresses: [192.0.2.%u/24]}\n",
		number, in_dir(control), extra, role, dir, number);
	write_text(in_dir(config), text);
	pid = start(log, SLUICED, "-c", in_dir(config), NULL);
	while ((fd = dial(in_dir(control))) < 0 && now_ms() < end &&
		waitpid(pid, NULL, WNOHANG) == 0)
		poll(NULL, 0, 20);
	SL_EXPECT_MSG(fd >= 0, "%s", output_of(log));
	close(fd);
	return pid;
}

/* Does page `page` of daemon `name` come to hold `text`? */
static bool
shows(const char *name, const char *page, const char *text, unsigned limit_ms)
{
	uint64_t end = now_ms() + limit_ms;
	char control[32];

	snprintf(control, sizeof(control), "%s.sock", name);
	do {
		if (RUN(SLUICECTL, "-s", in_dir(control), "-w", "show", page) == 0 &&
			strstr(output_of("out"), text))
			return true;
		poll(NULL, 0, 50);
	} while (now_ms() < end);
	return false;
}

SL_TEST(daemon, two_of_them_meet)
{
	/* The keys of secrets 1 and 2. */
	static const char one[] = "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d";
	static const char two[] = "npub1ccz8l9zpa47k6vz9gphftsrumpw80rjt3nhnefat4symjhrsnmjs38mnyd";
	char peers[256];
	uint64_t t;
	pid_t a, b;

	make_dir();
	a = start_one("a", 1, "server", "");
	snprintf(peers, sizeof(peers),
		"peers: [{npub: %s, alias: one, addresses: [{transport: udp, addr: "
		"\"192.0.2.1:2121\"}]}]\n",
		one);
	b = start_one("b", 2, "client", peers);
	SL_EXPECT_MSG(
		shows("b", "peers", " up ", 15000), "%s%s", output_of("out"), output_of("b.log"));
	SL_EXPECT(strstr(output_of("out"), one) != NULL);
	SL_EXPECT_MSG(shows("a", "peers", two, 5000), "%s", output_of("out"));
	SL_EXPECT(strstr(output_of("out"), "inbound*") != NULL);
	SL_EXPECT_MSG(shows("a", "links", "192.0.2.2:2121", 1000), "%s", output_of("out"));
	SL_EXPECT_MSG(shows("b", "links", "192.0.2.1:2121", 1000), "%s", output_of("out"));
	/* One is the root for the other, or the other way round. */
	SL_EXPECT_MSG(shows("a", "tree", "parent ", 5000) || shows("b", "tree", "parent ", 5000),
		"%s", output_of("out"));
	SL_EXPECT_MSG(shows("a", "filters", " yes", 5000), "%s", output_of("out"));
	SL_EXPECT_MSG(shows("b", "neighbours", "reachable", 1000), "%s", output_of("out"));
	SL_EXPECT_MSG(shows("b", "drops", ": balanced", 1000), "%s", output_of("out"));
	SL_EXPECT_MSG(shows("b", "workers", " yes", 1000), "%s", output_of("out"));
	t = now_ms();
	kill(a, SIGTERM);
	SL_EXPECT_MSG(shows("b", "peers", "the peer disconnected", 20000), "%s", output_of("out"));
	SL_EXPECT_LT(now_ms() - t, 20000);
	SL_EXPECT_EQ(await(a, 5000), 0);
	kill(b, SIGTERM);
	SL_EXPECT_EQ(await(b, 5000), 0);
	SL_EXPECT_MSG(strstr(output_of("b.log"), "it said goodbye") != NULL, "%s", output_of("b.log"));
	remove_dir();
}

static void
npub_of(char out[80])
{
	json_t *o;

	out[0] = 0;
	SL_EXPECT_EQ(RUN(SLUICECTL, "-s", in_dir("control.sock"), "-j", "show", "status"), 0);
	o = json_loads(output_of("out"), 0, NULL);
	snprintf(out, 80, "%s", json_string_value(json_object_get(o, "npub")));
	json_decref(o);
}

SL_TEST(daemon, key_file)
{
	char first[80], second[80], pub[80];
	struct stat st;
	pid_t pid;

	make_dir();
	write_config("");
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	npub_of(first);
	kill(pid, SIGKILL);
	SL_EXPECT_EQ(await(pid, 1000), -SIGKILL);
	SL_EXPECT_EQ(access(in_dir("control.sock"), F_OK), 0);
	SL_EXPECT_EQ(stat(in_dir("sluice.key"), &st), 0);
	SL_EXPECT_EQ(st.st_mode & 0777, 0600);
	snprintf(pub, sizeof(pub), "%.79s", output_of("sluice.pub"));
	SL_EXPECT_EQ(strncmp(pub, first, strlen(first)), 0);
	/* The socket that the dead daemon left is replaced. */
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	npub_of(second);
	SL_EXPECT_STR(second, first);
	stop_daemon(pid);
	/* Others may not read it. */
	SL_EXPECT_EQ(chmod(in_dir("sluice.key"), 0644), 0);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "others may read it") != NULL);
	/* Nor may it be a link to somewhere else. */
	SL_EXPECT_EQ(rename(in_dir("sluice.key"), in_dir("other.key")), 0);
	SL_EXPECT_EQ(chmod(in_dir("other.key"), 0600), 0);
	SL_EXPECT_EQ(symlink("other.key", in_dir("sluice.key")), 0);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "symbolic link") != NULL);
	SL_EXPECT_EQ(unlink(in_dir("sluice.key")), 0);
	write_text(in_dir("sluice.key"), "nonsense\n");
	SL_EXPECT_EQ(chmod(in_dir("sluice.key"), 0600), 0);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("relay.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "holds neither an nsec nor") != NULL);
	remove_dir();
}

#ifdef SL_HAVE_NOSTR
/* libwebsockets would start, and then trust nobody. */
SL_TEST(daemon, no_certificate_in_the_ca_file)
{
	make_dir();
	write_text(in_dir("ca.pem"), "not a certificate\n");
	refuses("is there a certificate in dataplane.nostr_ca_file",
		"node: {identity: {persistent: true}, discovery: {nostr: {enabled: true, advert_relays: [\"wss://127.0.0.1:1\"]}}}\n"
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n"
		"dataplane: {nostr_ca_file: \"%s/ca.pem\", pools: {mbufs: 4096}, memory: {huge_pages: \"no\"}, "
		"ports: [{name: p0, device: net_null0, addresses: [192.0.2.1/24]}]}\n",
		dir);
	SL_EXPECT_EQ(unlink(in_dir("ca.pem")), 0);
	SL_EXPECT_EQ(RUN(SLUICED, "-c", in_dir("refused.yaml")), 1);
	SL_EXPECT(strstr(output_of("out"), "is there a certificate in dataplane.nostr_ca_file") != NULL);
	remove_dir();
}
#endif

SL_TEST(daemon, service_manager_is_told)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char text[3][64] = {"", "", ""};
	struct timeval limit = {.tv_sec = 10};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	make_dir();
	write_config("");
	snprintf(at.sun_path, sizeof(at.sun_path), "%.90s", in_dir("notify"));
	SL_ASSERT(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	setenv("WATCHDOG_USEC", "1000000", 1);
	pid = start_daemon();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	(void)!recv(fd, text[0], 63, 0);
	SL_EXPECT_EQ(strncmp(text[0], "READY=1", 7), 0);
	(void)!recv(fd, text[1], 63, 0);
	SL_EXPECT_STR(text[1], "WATCHDOG=1");
	stop_daemon(pid);
	while (recv(fd, text[2], 63, MSG_DONTWAIT) > 0 && strcmp(text[2], "STOPPING=1"))
		memset(text[2], 0, 64);
	SL_EXPECT_STR(text[2], "STOPPING=1");
	close(fd);
	remove_dir();
}
