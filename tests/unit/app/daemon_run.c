/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon_run.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sl_test.h"

char dir[64];

uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

const char *
in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *p = paths[next++ % 4];

	snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
	return p;
}

void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	SL_ASSERT(f != NULL);
	fputs(text, f);
	fclose(f);
}

void
make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/sluice-test-XXXXXX");
	SL_ASSERT(mkdtemp(dir) != NULL);
}

void
remove_dir(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	SL_EXPECT_EQ(system(command), 0);
}

void
write_config(const char *extra)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"node: {identity: {persistent: true}, control: {socket_path: %s/control.sock}}\n"
		"transports: {udp: {bind_addr: \"0.0.0.0:2121\"}}\n"
		"dataplane:\n  idle_sleep_us: 200\n  pools: {mbufs: 4096}\n  hop_cache: 1024\n"
		"  memory: {huge_pages: \"no\"}\n"
		"  ports:\n    - {name: p0, device: net_null0, addresses: [192.0.2.1/24]}\n"
		"    - {name: p1, device: net_ring0, addresses: [198.51.100.1/24, "
		"\"2001:db8::1/64\"]}\n%s",
		dir, extra);
	write_text(in_dir("relay.yaml"), text);
}

/* --- programs ------------------------------------------------------------------------------- */

/* Starts a program with its output in a file of the folder. args end with NULL. */
pid_t
start(const char *output, const char *program, ...)
{
	const char *argv[16] = {program};
	va_list ap;
	pid_t pid;
	int fd;

	va_start(ap, program);
	for (unsigned i = 1; i < 15 && (argv[i] = va_arg(ap, const char *)) != NULL; i++)
		;
	va_end(ap);
	fd = open(in_dir(output), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid = fork();
	if (!pid) {
		dup2(fd, 1);
		dup2(fd, 2);
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(fd);
	return pid;
}

/* Exit status, -signal, or -1000 when it did not end in time (it is killed then). */
int
await(pid_t pid, unsigned limit_ms)
{
	uint64_t end = now_ms() + limit_ms;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ms() > end) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1000;
		}
		poll(NULL, 0, 5);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

char *
output_of(const char *name)
{
	static char text[65536];
	FILE *f = fopen(in_dir(name), "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = 0;
	if (f)
		fclose(f);
	return text;
}

int
dial(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 5};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	return fd;
}

pid_t
start_daemon(void)
{
	pid_t pid = start("log", SLUICED, "-c", in_dir("relay.yaml"), NULL);
	uint64_t end = now_ms() + 15000;
	int fd;

	while ((fd = dial(in_dir("control.sock"))) < 0) {
		if (now_ms() > end || waitpid(pid, NULL, WNOHANG) == pid) {
			sl_test_fail(__FILE__, __LINE__, "the daemon does not start: %s",
				output_of("log"));
			return -1;
		}
		poll(NULL, 0, 20);
	}
	close(fd);
	return pid;
}

void
stop_daemon(pid_t pid)
{
	uint64_t t = now_ms();
	int status;

	if (pid < 0)
		return;
	kill(pid, SIGTERM);
	status = await(pid, 10000);
	SL_EXPECT_MSG(status == 0, "status %d: %s", status, output_of("log"));
	SL_EXPECT_LT(now_ms() - t, 20000);
	SL_EXPECT(access(in_dir("control.sock"), F_OK) != 0);
}

/* One line from the socket, as an object; NULL at the end of the stream. */
json_t *
read_answer(int fd)
{
	static char buf[1 << 20];
	size_t n = 0;

	while (n < sizeof(buf) && recv(fd, buf + n, 1, 0) == 1 && buf[n] != '\n')
		n++;
	return n ? json_loadb(buf, n, 0, NULL) : NULL;
}

void
expect_answer(int fd, const char *status, const char *message)
{
	json_t *o = read_answer(fd);
	const char *s = json_string_value(json_object_get(o, "status"));
	const char *m = json_string_value(json_object_get(o, "message"));

	SL_EXPECT_STR(s, status);
	if (message)
		SL_EXPECT_MSG(m && strstr(m, message), "message '%s', wanted '%s'",
			m ? m : "(none)", message);
	json_decref(o);
}

void
say(int fd, const char *text)
{
	SL_EXPECT_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}
