/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int
sl_ctl_connect(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = SL_CTL_TIMEOUT_S};
	int fd, rc;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at))) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int
send_line(int fd, const char *command, json_t *params)
{
	json_t *request = json_pack("{s:s}", "command", command);
	char *text;
	size_t len;
	int rc = 0;

	if (request && params)
		json_object_set(request, "params", params);
	text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_decref(request);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	text[len] = '\n'; /* in the place of the end: len + 1 bytes go out */
	for (size_t done = 0; !rc && done < len + 1;) {
		ssize_t n = send(fd, text + done, len + 1 - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			rc = -errno;
		else if (n > 0)
			done += (size_t)n;
	}
	free(text);
	return rc;
}

/* One line, malloc'ed, without its end. */
static int
receive_line(int fd, char **line, size_t *len)
{
	size_t size = 65536;
	char *buf = malloc(size);

	*len = 0;
	while (buf) {
		ssize_t n;

		if (*len == size) {
			char *more = size < SL_CTL_ANSWER_MAX ? realloc(buf, size * 2) : NULL;

			if (!more)
				break;
			buf = more;
			size *= 2;
		}
		n = recv(fd, buf + *len, size - *len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int rc = n ? -errno : -ECONNRESET;

			free(buf);
			return rc == -EAGAIN ? -ETIMEDOUT : rc;
		}
		*len += (size_t)n;
		if (buf[*len - 1] == '\n') {
			--*len;
			*line = buf;
			return 0;
		}
	}
	free(buf);
	return -ENOMEM;
}

int
sl_ctl_request(int fd, const char *command, json_t *params, json_t **data, char why[256])
{
	json_error_t error;
	const char *status, *message;
	json_t *answer;
	char *line = NULL;
	size_t len;
	int rc;

	*data = NULL;
	rc = send_line(fd, command, params);
	/* A daemon that turns us away has said why before it closed. */
	if (!rc || rc == -EPIPE)
		rc = receive_line(fd, &line, &len);
	if (rc) {
		snprintf(why, 256, "%s", strerror(-rc));
		return rc;
	}
	answer = json_loadb(line, len, 0, &error);
	free(line);
	status = json_string_value(json_object_get(answer, "status"));
	if (status && !strcmp(status, "ok")) {
		*data = json_incref(json_object_get(answer, "data"));
	} else {
		message = json_string_value(json_object_get(answer, "message"));
		snprintf(why, 256, "%s", message ? message : "the answer is not one of ours");
		rc = status ? -EREMOTEIO : -EPROTO;
	}
	json_decref(answer);
	return rc;
}
