/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon that is broken from outside: one of its threads stopped or killed. It must not go on as half of itself. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon_run.h"
#include "sl_test.h"

/* The thread of worker 0: EAL names it after its lcore. -1 if there is none. */
static int
worker_thread(pid_t pid)
{
	char path[300];
	struct dirent *e;
	int tid = -1;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)) != NULL) {
		char name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && (strstr(name, "worker-1") || strstr(name, "worker1"))) /* DPDK 22.11, 24.11 */
			tid = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return tid;
}

/* Does the page come to say it? */
static bool
comes_to_show(const char *page, const char *text)
{
	uint64_t end = now_ms() + 10000;

	do {
		if (RUN(SLUICECTL, "-s", in_dir("control.sock"), "show", page) == 0 && strstr(output_of("out"), text))
			return true;
		poll(NULL, 0, 50);
	} while (now_ms() < end);
	return false;
}

static int
notify_socket(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%.90s", in_dir("notify"));
	SL_EXPECT_EQ(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	setenv("WATCHDOG_USEC", "200000", 1);
	return fd;
}

static unsigned
notes(int fd)
{
	char text[64];
	unsigned n = 0;

	while (recv(fd, text, sizeof(text), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

static bool
note_comes(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1;
}

/* A worker that takes no turn: named in the log and on its page, and the service manager is told nothing more. */
SL_TEST(daemon_faults, worker_that_stands_still)
{
	int fd, tid;
	pid_t pid;

	make_dir();
	write_config("");
	fd = notify_socket();
	pid = start_daemon();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	SL_ASSERT(pid > 0);
	SL_EXPECT(comes_to_show("workers", " yes"));
	tid = worker_thread(pid);
	SL_ASSERT(tid > 0);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		stop_daemon(pid);
		SL_SKIP("ptrace is not allowed");
	}
	SL_EXPECT_EQ(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	SL_EXPECT_EQ(waitpid(tid, NULL, __WALL), tid);
	SL_EXPECT_MSG(comes_to_show("workers", "STALLED"), "%s", output_of("out"));
	SL_EXPECT_MSG(strstr(output_of("log"), "worker 0 (lcore 1) stands still") != NULL, "%s", output_of("log"));
	(void)notes(fd);
	poll(NULL, 0, 1500); /* seven times the interval */
	SL_EXPECT_EQ(notes(fd), 0);
	SL_EXPECT_EQ(ptrace(PTRACE_DETACH, tid, NULL, NULL), 0);
	SL_EXPECT(note_comes(fd));
	SL_EXPECT_MSG(comes_to_show("workers", " yes"), "%s", output_of("out"));
	SL_EXPECT_MSG(strstr(output_of("log"), "worker 0 (lcore 1) goes on after") != NULL, "%s", output_of("log"));
	close(fd);
	stop_daemon(pid);
	remove_dir();
}

/* Control that takes no turn says nothing to the service manager either. */
SL_TEST(daemon_faults, control_that_stands_still)
{
	pid_t pid;
	int fd;

	make_dir();
	write_config("");
	fd = notify_socket();
	pid = start_daemon();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	SL_ASSERT(pid > 0);
	SL_EXPECT(note_comes(fd));
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
		stop_daemon(pid);
		SL_SKIP("ptrace is not allowed");
	}
	SL_EXPECT_EQ(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	SL_EXPECT_EQ(waitpid(pid, NULL, __WALL), pid);
	(void)notes(fd);
	poll(NULL, 0, 1500);
	SL_EXPECT_EQ(notes(fd), 0);
	SL_EXPECT_EQ(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	SL_EXPECT(note_comes(fd));
	SL_EXPECT(comes_to_show("workers", " yes"));
	close(fd);
	stop_daemon(pid);
	remove_dir();
}

static char *
core_of(size_t *len)
{
	struct dirent *e;
	char *text = NULL;
	DIR *d = opendir(dir);

	*len = 0;
	while (d && !text && (e = readdir(d)) != NULL) {
		struct stat st;
		FILE *f;

		if (strncmp(e->d_name, "core", 4) || stat(in_dir(e->d_name), &st) || !S_ISREG(st.st_mode))
			continue;
		f = fopen(in_dir(e->d_name), "r");
		text = malloc((size_t)st.st_size);
		if (f && text)
			*len = fread(text, 1, (size_t)st.st_size, f);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return text;
}

#define SECRET "5a17c3e94b08d26f71b59a3ce0864df2139e7ad5c84b60f72ed1935ca8460b7e"

/* A worker's crash takes the whole process, leaves a core file that does not hold our key, and a start follows. */
SL_TEST(daemon_faults, crash_of_a_worker)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	char text[512], was[256], *core;
	uint8_t secret[32];
	int status, tid;
	size_t len = 0;
	pid_t pid;

	make_dir();
	for (unsigned i = 0; i < 32; i++)
		sscanf(&SECRET[2 * i], "%2hhx", &secret[i]);
	write_config("");
	/* The key stands in the file, so that it has been through the parser too. */
	snprintf(text, sizeof(text), "sed -i 's/identity: {persistent: true}/identity: {nsec: " SECRET "}/' '%s'",
		in_dir("relay.yaml"));
	SL_ASSERT(system(text) == 0);
	SL_ASSERT(setrlimit(RLIMIT_CORE, &unlimited) == 0 || errno == EPERM);
	SL_ASSERT(getcwd(was, sizeof(was)) != NULL && chdir(dir) == 0);
	setenv("ASAN_OPTIONS", "handle_segv=0", 1); /* of the daemon, should it be built so: the sanitizer would exit by itself */
	pid = start_daemon();
	unsetenv("ASAN_OPTIONS");
	SL_ASSERT(chdir(was) == 0);
	SL_ASSERT(pid > 0);
	tid = worker_thread(pid);
	SL_ASSERT(tid > 0);
	SL_ASSERT(syscall(SYS_tgkill, pid, tid, SIGSEGV) == 0);
	SL_ASSERT(waitpid(pid, &status, 0) == pid);
	SL_EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	core = WCOREDUMP(status) ? core_of(&len) : NULL;
	if (core) {
		SL_EXPECT_GT(len, 100000);
		SL_EXPECT(memmem(core, len, "ELF", 3) != NULL);
		SL_EXPECT(memmem(core, len, secret, sizeof(secret)) == NULL);
		SL_EXPECT(memmem(core, len, SECRET, strlen(SECRET)) == NULL);
	}
	free(core);
	/* What the dead one left is no obstacle. */
	pid = start_daemon();
	SL_ASSERT(pid > 0);
	stop_daemon(pid);
	remove_dir();
	if (!len)
		SL_SKIP("this machine writes no core file where a program runs");
}
