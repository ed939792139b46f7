/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "daemon.h"
#include "show.h"

/*
 * A client is silent (nothing asked), asking (a piece of a request) or being answered. since_us is when the first two
 * began, and when the last one last moved: bytes that trickle do not renew a request's time.
 */
struct client {
	int fd; /* -1 = free */
	uint64_t since_us;
	uint64_t answers; /* that it has had in full */
	char in[SL_SERVER_REQUEST];
	size_t in_len;
	struct sl_show_job *job; /* the answer being written */
	char *out;		 /* the answer being sent */
	size_t out_len, out_done;
	bool eof; /* the client will send no more */
};

struct sl_server {
	struct sl_daemon *d;
	int fd, epoll_fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct client clients[SL_SERVER_CLIENTS];
	unsigned turn; /* whose answer is written next */
};

/* --- making the socket ---------------------------------------------------------------------- */

/* A socket file that nobody answers on is left over. */
static int
clear_stale(const struct sockaddr_un *at)
{
	struct stat st;
	int fd, rc;

	if (lstat(at->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno == EAGAIN
		     ? -EADDRINUSE
		     : 0;
	close(fd);
	if (!rc && unlink(at->sun_path))
		rc = -errno;
	return rc;
}

static int
make_socket(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char dir[sizeof(at.sun_path)];
	mode_t mask;
	int fd, rc;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, strlen(path) + 1);
	memcpy(dir, path, strlen(path) + 1);
	if (mkdir(dirname(dir), 0750) && errno != EEXIST)
		return -errno;
	rc = clear_stale(&at);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mask = umask(0117);
	rc = bind(fd, (const struct sockaddr *)&at, sizeof(at)) ? -errno : 0;
	umask(mask);
	if (!rc && listen(fd, SL_SERVER_CLIENTS))
		rc = -errno;
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

static int
epoll_set(const struct sl_server *s, int op, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	return epoll_ctl(s->epoll_fd, op, fd, &e) ? -errno : 0;
}

struct sl_server *
sl_server_create(struct sl_daemon *d, const char *path, int epoll_fd)
{
	struct sl_server *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return NULL;
	s->d = d;
	s->epoll_fd = epoll_fd;
	for (unsigned i = 0; i < SL_SERVER_CLIENTS; i++)
		s->clients[i].fd = -1;
	s->fd = make_socket(path);
	if (s->fd < 0) {
		rc = s->fd;
		free(s);
		errno = -rc;
		return NULL;
	}
	memcpy(s->path, path, strlen(path) + 1);
	rc = epoll_set(s, EPOLL_CTL_ADD, s->fd, EPOLLIN);
	if (rc) {
		sl_server_destroy(s);
		errno = -rc;
		return NULL;
	}
	return s;
}

/* --- clients -------------------------------------------------------------------------------- */

static void
drop(struct client *c)
{
	size_t unused;

	close(c->fd); /* leaves epoll with it */
	if (c->job)
		free(sl_show_end(c->job, &unused));
	free(c->out);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

void
sl_server_destroy(struct sl_server *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < SL_SERVER_CLIENTS; i++)
		if (s->clients[i].fd >= 0)
			drop(&s->clients[i]);
	close(s->fd);
	unlink(s->path);
	free(s);
}

/* Has the client a request, a piece of an answer or its end waiting for us? */
static bool
waiting(const struct client *c)
{
	return c->fd >= 0 && !c->out &&
	       (c->job || c->eof || c->in_len == sizeof(c->in) ||
		       (c->in_len && memchr(c->in, '\n', c->in_len)));
}

/* Silent or asking: nothing that we owe it. */
static bool
idle(const struct client *c)
{
	return c->fd >= 0 && !c->out && !waiting(c);
}

static bool
read_more(struct sl_server *s, struct client *c)
{
	ssize_t n;

	/* What is there is served first; room comes back with each line taken. */
	if (c->eof || c->in_len == sizeof(c->in))
		return true;
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		c->eof = true;
	if (n && !c->in_len)
		c->since_us = s->d->now_us;
	c->in_len += (size_t)n;
	return true;
}

/* Nobody needs a place for longer than this while others wait for one. */
#define TURN_US 1000000

/*
 * Makes room: who has been idle longest goes, whose request may have come meanwhile is not idle; else who has had an
 * answer and is long at the next, which it does not read or asks for without end. NULL: all are served for the first
 * time.
 */
static struct client *
evict(struct sl_server *s)
{
	struct client *oldest = NULL;

	for (unsigned i = 0; i < SL_SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (idle(c) && !read_more(s, c)) {
			drop(c);
			return c;
		}
		if (idle(c) && (!oldest || c->since_us < oldest->since_us))
			oldest = c;
	}
	for (unsigned i = 0; !oldest && i < SL_SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if ((c->answers || s->d->now_us - c->since_us > TURN_US) && (!oldest || c->since_us < oldest->since_us))
			oldest = c;
	}
	if (oldest) {
		s->d->counters[SL_APP_CLIENTS_EVICTED]++;
		drop(oldest);
	}
	return oldest;
}

static void
take_clients(struct sl_server *s)
{
	for (unsigned n = 0; n < SL_SERVER_CLIENTS; n++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct client *c = NULL;

		if (fd < 0)
			return;
		for (unsigned i = 0; !c && i < SL_SERVER_CLIENTS; i++)
			c = s->clients[i].fd < 0 ? &s->clients[i] : NULL;
		if (!c)
			c = evict(s);
		if (!c || epoll_set(s, EPOLL_CTL_ADD, fd, EPOLLIN)) {
			static const char busy[] =
				"{\"status\":\"error\",\"message\":\"too many clients\"}\n";

			(void)!send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			s->d->counters[SL_APP_CLIENTS_REFUSED]++;
			close(fd);
			continue;
		}
		c->fd = fd;
		c->since_us = s->d->now_us;
		if (!read_more(s, c))
			drop(c);
	}
}

/* False when the client is gone. */
static bool
flush(struct sl_server *s, struct client *c)
{
	while (c->out) {
		ssize_t n = send(c->fd, c->out + c->out_done, c->out_len - c->out_done,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return epoll_set(s, EPOLL_CTL_MOD, c->fd, EPOLLOUT) == 0;
		if (n < 0)
			return false;
		c->since_us = s->d->now_us;
		c->out_done += (size_t)n;
		if (c->out_done == c->out_len) {
			free(c->out);
			c->out = NULL;
			c->answers++;
		}
	}
	return epoll_set(s, EPOLL_CTL_MOD, c->fd, EPOLLIN) == 0;
}

/* One step: takes the next line or goes on with its answer. False when the client is gone or done.
 */
static bool
serve(struct sl_server *s, struct client *c)
{
	char *end = memchr(c->in, '\n', c->in_len);
	size_t len = end ? (size_t)(end - c->in) : c->in_len, used = end ? len + 1 : len;

	if (!c->job && !end && !c->eof) {
		c->out = sl_show_error("request too large", &c->out_len);
		c->out_done = 0;
		(void)!flush(s, c);
		return false;
	}
	if (!c->job) {
		if (!used)
			return false;
		s->d->counters[SL_APP_REQUESTS]++;
		c->job = sl_show_begin(s->d, c->in, len);
		c->in_len -= used;
		memmove(c->in, c->in + used, c->in_len);
		if (!c->job)
			return false;
	}
	c->since_us = s->d->now_us;
	if (!sl_show_step(c->job))
		return true;
	c->out = sl_show_end(c->job, &c->out_len);
	c->out_done = 0;
	c->job = NULL;
	return c->out && flush(s, c);
}

bool
sl_server_work(struct sl_server *s)
{
	for (unsigned n = 0; n < SL_SERVER_CLIENTS; n++) {
		struct client *c = &s->clients[s->turn++ % SL_SERVER_CLIENTS];

		if (!waiting(c))
			continue;
		if (!serve(s, c))
			drop(c);
		return true;
	}
	return false;
}

void
sl_server_event(struct sl_server *s, int fd, uint32_t events)
{
	if (fd == s->fd) {
		take_clients(s);
		return;
	}
	for (unsigned i = 0; i < SL_SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];
		bool alive = true;

		if (c->fd != fd)
			continue;
		if (events & EPOLLERR)
			alive = false;
		else if (c->out)
			alive = flush(s, c);
		else
			alive = read_more(s, c);
		if (!alive)
			drop(c);
		return;
	}
}

void
sl_server_second(struct sl_server *s, uint64_t now_us)
{
	for (unsigned i = 0; i < SL_SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];
		bool asking = idle(c) && c->in_len;

		if (c->fd < 0 || now_us - c->since_us <= (asking ? SL_SERVER_REQUEST_S : SL_SERVER_IDLE_S) * 1000000ull)
			continue;
		s->d->counters[SL_APP_CLIENTS_TIMED_OUT]++;
		drop(c);
	}
}
