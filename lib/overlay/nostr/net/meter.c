/* SPDX-License-Identifier: BSD-3-Clause */
#include "meter.h"

#include <errno.h>
#include <linux/tcp.h> /* glibc's own struct tcp_info ends before tcpi_bytes_received */
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int
sl_ws_meter(int fd, uint64_t *bytes)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int unread = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) || ioctl(fd, FIONREAD, &unread))
		return -errno;
	if (len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
		return -ENOTSUP;
	*bytes = info.tcpi_bytes_received > (uint64_t)unread ? info.tcpi_bytes_received - (uint64_t)unread : 0;
	return 0;
}
