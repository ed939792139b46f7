/* SPDX-License-Identifier: BSD-3-Clause */
#include "resolve.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define TTL_S 60
#define RETRY_S 10

struct name {
	char host[256];
	bool wanted;
	bool own;   /* one user's, whose text changes */
	uint32_t generation;
	time_t due; /* monotonic seconds */
	struct sl_resolved answer;
};

struct sl_resolver {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop, busy;
	int fd;
	struct name *names;
	int count;
};

static time_t
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

struct sl_resolver *
sl_resolver_create(void)
{
	struct sl_resolver *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;

	if (!r)
		return NULL;
	r->fd = -1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &attr);
	pthread_condattr_destroy(&attr);
	return r;
}

static int
append(struct sl_resolver *r, const char *host)
{
	struct name *names;

	if (r->count == SL_RESOLVE_NAMES_MAX)
		return -ENOMEM;
	names = realloc(r->names, (size_t)(r->count + 1) * sizeof(*names));
	if (!names || strlen(host) >= sizeof(names->host)) {
		r->names = names ? names : r->names;
		return -ENOMEM;
	}
	r->names = names;
	memset(&names[r->count], 0, sizeof(*names));
	memcpy(names[r->count].host, host, strlen(host) + 1);
	names[r->count].wanted = true;
	return r->count++;
}

int
sl_resolver_add(struct sl_resolver *r, const char *host)
{
	for (int i = 0; i < r->count; i++)
		if (!r->names[i].own && !strcasecmp(r->names[i].host, host))
			return i;
	return append(r, host);
}

int
sl_resolver_rename(struct sl_resolver *r, int handle, const char *host)
{
	struct name *n;

	if (strlen(host) >= sizeof(n->host))
		return -ENOMEM;
	pthread_mutex_lock(&r->lock);
	if (handle < 0)
		handle = append(r, host);
	n = handle < 0 ? NULL : &r->names[handle];
	if (n && (!n->own || strcasecmp(n->host, host) != 0)) {
		n->own = true;
		n->generation++;
		memcpy(n->host, host, strlen(host) + 1);
		memset(&n->answer, 0, sizeof(n->answer));
		n->due = 0;
		n->wanted = true;
		pthread_cond_signal(&r->wake);
	}
	pthread_mutex_unlock(&r->lock);
	return handle;
}

static void
look_up(const char *host, struct sl_resolved *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;

	memset(out, 0, sizeof(*out));
	/* No AI_ADDRCONFIG: our ports' addresses are not the kernel's. */
	out->error = getaddrinfo(host, NULL, &hints, &list);
	for (struct addrinfo *a = list; !out->error && a && out->count < SL_RESOLVE_ADDRS;
		a = a->ai_next) {
		if (a->ai_family == AF_INET) {
			out->addrs[out->count].family = 4;
			memcpy(out->addrs[out->count++].ip,
				&((struct sockaddr_in *)(void *)a->ai_addr)->sin_addr, 4);
		} else if (a->ai_family == AF_INET6) {
			out->addrs[out->count].family = 6;
			memcpy(out->addrs[out->count++].ip,
				&((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_addr, 16);
		}
	}
	if (list)
		freeaddrinfo(list);
}

/* The name that is due first, or -1; *wait_until gets the time of the next one. */
static int
next_due(const struct sl_resolver *r, time_t now, time_t *wait_until)
{
	*wait_until = now + 3600;
	for (int i = 0; i < r->count; i++) {
		if (!r->names[i].wanted)
			continue;
		if (r->names[i].due <= now)
			return i;
		if (r->names[i].due < *wait_until)
			*wait_until = r->names[i].due;
	}
	return -1;
}

static void *
run(void *arg)
{
	struct sl_resolver *r = arg;
	struct sl_resolved answer;
	struct timespec until = {0, 0};
	char host[256];
	uint32_t generation;
	int i;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		i = next_due(r, now_s(), &until.tv_sec);
		if (i < 0) {
			pthread_cond_timedwait(&r->wake, &r->lock, &until);
			continue;
		}
		memcpy(host, r->names[i].host, sizeof(host));
		generation = r->names[i].generation;
		r->busy = true;
		pthread_mutex_unlock(&r->lock);
		look_up(host, &answer);
		pthread_mutex_lock(&r->lock);
		r->busy = false;
		if (generation != r->names[i].generation)
			continue; /* it is another name's place now */
		r->names[i].due = now_s() + (answer.error || !answer.count ? RETRY_S : TTL_S);
		if (!answer.error && answer.count)
			r->names[i].answer = answer;
		else
			r->names[i].answer.error = answer.error ? answer.error : EAI_NONAME;
		if (r->fd >= 0)
			(void)!write(r->fd, &(uint64_t){1}, 8);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int
sl_resolver_start(struct sl_resolver *r, bool later)
{
	int rc;

	if (!r->count && !later)
		return 0;
	r->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	rc = pthread_create(&r->thread, NULL, run, r);
	if (rc)
		return -rc;
	pthread_setname_np(r->thread, "sl-resolve");
	r->running = true;
	return 0;
}

int
sl_resolver_fd(const struct sl_resolver *r)
{
	return r->fd;
}

void
sl_resolver_drain(struct sl_resolver *r)
{
	uint64_t n;

	(void)!read(r->fd, &n, 8);
}

void
sl_resolver_want(struct sl_resolver *r, int handle, bool wanted)
{
	pthread_mutex_lock(&r->lock);
	if (r->names[handle].wanted != wanted) {
		r->names[handle].wanted = wanted;
		pthread_cond_signal(&r->wake);
	}
	pthread_mutex_unlock(&r->lock);
}

void
sl_resolver_get(struct sl_resolver *r, int handle, struct sl_resolved *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->names[handle].answer;
	pthread_mutex_unlock(&r->lock);
}

int
sl_resolver_count(const struct sl_resolver *r)
{
	return r->count;
}

const char *
sl_resolver_host(const struct sl_resolver *r, int handle)
{
	return r->names[handle].host;
}

void
sl_resolver_destroy(struct sl_resolver *r)
{
	bool busy;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	busy = r->busy;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (r->running && busy) {
		/* It holds r: leave both. */
		pthread_detach(r->thread);
		return;
	}
	if (r->running)
		pthread_join(r->thread, NULL);
	if (r->fd >= 0)
		close(r->fd);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r->names);
	free(r);
}
