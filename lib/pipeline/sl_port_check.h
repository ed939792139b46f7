/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_PORT_CHECK_H
#define SL_PORT_CHECK_H
/*
 * A device as the operating system sees it: can a port come up on it, and is the interface behind it up? Needs no EAL, so
 * that the daemon can say what is wrong before it lays out memory. Any thread; nothing is kept.
 */
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_IFNAME_SIZE 16

/*
 * device as in sl_port_config. 0, or with *error static text: -ENODEV (no such interface or PCI device), -EPERM or -EACCES (no
 * permission), -EBUSY (another relay has it), -EINVAL (no usable iface=), or another -errno.
 */
int sl_port_check(const char *device, const char **error);

/* The interface of the kernel's that a virtual device stands on; false when it stands on none. */
bool sl_port_interface(const char *device, char name[SL_IFNAME_SIZE]);
/* Claims an interface for this process: a descriptor to keep open, or -EBUSY or another -errno. */
int sl_port_lock(const char *interface);
/* 1 up with a carrier, 0 down, -ENODEV gone, or another -errno. index: a new one means another interface of that name. */
int sl_interface_state(const char *interface, unsigned *index);

/* NUMA node of a device, or of the NIC under its interface; -1 = none or unknown. */
int sl_device_node(const char *device);
bool sl_cpu_on_node(unsigned cpu, int node);

#ifdef __cplusplus
}
#endif
#endif
