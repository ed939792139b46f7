/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void
sl_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void
sl_notify_watchdog(uint64_t now_us)
{
	static uint64_t interval_us, next_us;
	const char *text;

	if (!next_us) {
		text = getenv("WATCHDOG_USEC");
		interval_us = text ? strtoull(text, NULL, 10) / 2 : 0;
		next_us = 1;
	}
	if (!interval_us || now_us < next_us)
		return;
	next_us = now_us + interval_us;
	sl_notify("WATCHDOG=1");
}
