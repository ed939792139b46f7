/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be said about a device before EAL touches it, in the operator's words, and the state of the kernel's interface
 * behind a virtual one. No DPDK in here.
 */
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "sl_port_check.h"

static bool
driver_is(const char *device, const char *driver)
{
	return strncmp(device, driver, strlen(driver)) == 0;
}

/* Drivers that stand on an interface of the kernel's which must be there before them. */
static bool
stands_on_interface(const char *device)
{
	return driver_is(device, "net_af_packet") || driver_is(device, "net_af_xdp");
}

bool
sl_port_interface(const char *device, char name[SL_IFNAME_SIZE])
{
	const char *arg = stands_on_interface(device) ? strstr(device, ",iface=") : NULL;
	const size_t len = arg ? strcspn(arg + 7, ",") : 0;

	name[0] = 0;
	if (len == 0 || len >= SL_IFNAME_SIZE)
		return false;
	memcpy(name, arg + 7, len);
	name[len] = 0;
	return true;
}

/*
 * Two programs on one interface would each answer for their own addresses and take half of the other's frames for
 * foreign. Packet sockets do not refuse it, so a name does: abstract sockets are the network namespace's, as interfaces are,
 * and go with their process.
 */
int
sl_port_lock(const char *interface)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "sluice/port/%s", interface);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0)
		return fd;
	rc = errno == EADDRINUSE ? -EBUSY : -errno;
	close(fd);
	return rc;
}

static int
packet_sockets_check(const char **error)
{
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		*error = errno == EPERM || errno == EACCES ? "no permission for packet sockets (root or CAP_NET_RAW)" :
							     "the kernel has no packet sockets";
		return -errno;
	}
	close(fd);
	return 0;
}

/* The folder of a PCI device; false for any other. */
static bool
pci_path(const char *device, char path[96])
{
	unsigned domain, bus, dev, fn;

	if (sscanf(device, "%4x:%2x:%2x.%1u", &domain, &bus, &dev, &fn) != 4) {
		domain = 0;
		if (sscanf(device, "%2x:%2x.%1u", &bus, &dev, &fn) != 3)
			return false;
	}
	snprintf(path, 96, "/sys/bus/pci/devices/%04x:%02x:%02x.%u", domain, bus, dev, fn);
	return true;
}

int
sl_device_node(const char *device)
{
	char name[SL_IFNAME_SIZE], folder[96], path[128];
	int node = -1;
	FILE *f;

	if (sl_port_interface(device, name))
		snprintf(folder, sizeof(folder), "/sys/class/net/%s/device", name);
	else if (!pci_path(device, folder))
		return -1;
	snprintf(path, sizeof(path), "%s/numa_node", folder);
	f = fopen(path, "r");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

bool
sl_cpu_on_node(unsigned cpu, int node)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%d", cpu, node);
	return access(path, F_OK) == 0;
}

static int
pci_check(const char *device, const char **error)
{
	char path[96];

	if (!pci_path(device, path))
		return 0;
	if (access(path, F_OK) == 0 || access("/sys/bus/pci", F_OK) != 0)
		return 0;
	*error = "there is no such PCI device";
	return -ENODEV;
}

int
sl_port_check(const char *device, const char **error)
{
	char name[SL_IFNAME_SIZE];
	int rc;

	if (stands_on_interface(device) && !sl_port_interface(device, name)) {
		*error = "iface= is missing or no interface's name";
		return -EINVAL;
	}
	if (sl_port_interface(device, name)) {
		if (if_nametoindex(name) == 0) {
			*error = "there is no such interface";
			return -ENODEV;
		}
		rc = packet_sockets_check(error);
		if (rc != 0)
			return rc;
		rc = sl_port_lock(name);
		if (rc < 0) {
			*error = rc == -EBUSY ? "the interface is used by another relay" : "the interface cannot be claimed";
			return rc;
		}
		close(rc);
		return 0;
	}
	if (driver_is(device, "net_tap") && access("/dev/net/tun", R_OK | W_OK) != 0) {
		*error = errno == ENOENT ? "there is no /dev/net/tun" : "no permission for /dev/net/tun";
		return -errno;
	}
	return pci_check(device, error);
}

int
sl_interface_state(const char *interface, unsigned *index)
{
	struct ifreq r;
	int fd, rc;

	*index = if_nametoindex(interface);
	if (*index == 0)
		return -ENODEV;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memset(&r, 0, sizeof(r));
	memcpy(r.ifr_name, interface, strnlen(interface, sizeof(r.ifr_name) - 1));
	rc = ioctl(fd, SIOCGIFFLAGS, &r) == 0 ? 0 : -errno;
	close(fd);
	if (rc != 0)
		return rc;
	/* RUNNING is the kernel's operational state: up, and a carrier. */
	return (r.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}
