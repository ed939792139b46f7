/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_EAL_SETUP_H
#define SL_EAL_SETUP_H
/*
 * EAL from the configuration. lcore 0 is control, lcores 1 .. n are the workers, each on the CPU
 * that was chosen, so that two of them may share one. No PCI device is touched but those the ports
 * name. Huge pages are used when enough are free (or the operator insists), ordinary pages
 * otherwise; which it was is in `plan` for the log and `show status`.
 */
#include "config.h"

#define SL_WORKERS_MAX 32

struct sl_eal_plan {
	unsigned control_cpu;
	unsigned worker_cpus[SL_WORKERS_MAX];
	unsigned workers;
	bool huge;
	unsigned memory_mb;
	uint32_t mbufs; /* of a port's pool: as configured, or what ports and workers can hold */
	char why_memory[96]; /* why these pages */
};

/* Decides; 0 or -EINVAL with why (a CPU we may not use, not enough huge pages although asked for).
 */
int sl_eal_plan(
	struct sl_eal_plan *plan, const struct sl_config *config, char why[256]) SL_MUST_CHECK;
/* Starts EAL. 0 or -errno with why. The calling thread becomes lcore 0. */
int sl_eal_start(const struct sl_eal_plan *plan, const struct sl_config *config,
	char why[256]) SL_MUST_CHECK;
void sl_eal_stop(void);
/* "0000:03:00.0" or "03:00.0", perhaps with arguments behind a comma. */
bool sl_eal_is_pci(const char *device);

#endif
