/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_setup.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "sl_dataplane.h"
#include "sl_join.h"
#include "sl_port_check.h"

#define ARGS_MAX 160

bool
sl_eal_is_pci(const char *device)
{
	unsigned domain, bus, dev, fn;
	int n = 0;

	if (sscanf(device, "%4x:%2x:%2x.%1u%n", &domain, &bus, &dev, &fn, &n) != 4) {
		n = 0;
		if (sscanf(device, "%2x:%2x.%1u%n", &bus, &dev, &fn, &n) != 3)
			return false;
	}
	return n > 0 && (!device[n] || device[n] == ',');
}

/* Free huge pages of all sizes, MiB. */
static uint64_t
free_huge_mb(void)
{
	const char *dir = "/sys/kernel/mm/hugepages";
	DIR *d = opendir(dir);
	struct dirent *e;
	uint64_t kb = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)) != NULL) {
		unsigned long size, count;
		char path[384];
		FILE *f;

		if (sscanf(e->d_name, "hugepages-%lukB", &size) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", dir, e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%lu", &count) == 1)
			kb += (uint64_t)size * count;
		fclose(f);
	}
	closedir(d);
	return kb / 1024;
}

static uint64_t
machine_mb(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

/*
 * What the data plane takes of EAL's memory: two pools a port (control's has a few hundred), rings,
 * queues and drivers. A buffer is its data with headroom, its two headers and our private area; in
 * ordinary pages none crosses a page boundary unless it is larger than a page.
 */
#define CONTROL_MBUFS 512
#define WORKER_MB 8
#define PORT_MB 4
#define SPARE_MB 32
#define BUFFER_EXTRA 512
static uint64_t
buffer_bytes(uint64_t room, bool huge)
{
	uint64_t object = room + BUFFER_EXTRA, page = 4096;

	if (huge)
		return object;
	return object > page ? (object + page - 1) / page * page : page / (page / object);
}

/* Descriptors as they are configured: a profile's are not known yet, and few have more than the default. */
static uint32_t
pool_mbufs(const struct sl_config *c, unsigned workers)
{
	const struct sl_dataplane_config dc = {.workers = (uint16_t)workers, .ring_size = c->dataplane.ring_size,
		.burst = c->dataplane.burst, .elephant = (enum sl_elephant_mode)c->dataplane.elephant};
	uint32_t descriptors = 0;

	if (c->dataplane.mbufs)
		return c->dataplane.mbufs;
	for (uint32_t i = 0; i < c->dataplane.port_count; i++) {
		const struct sl_conf_port *p = &c->dataplane.ports[i];

		descriptors = RTE_MAX(descriptors, RTE_MAX((uint32_t)p->rx_descriptors, (uint32_t)p->tx_descriptors));
	}
	return sl_dataplane_buffers_plan(&dc, c->dataplane.port_count, descriptors);
}

static unsigned
needed_mb(const struct sl_config *c, const struct sl_eal_plan *plan, bool huge)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->dataplane.port_count; i++) {
		const struct sl_conf_port *p = &c->dataplane.ports[i];
		const char *framesz = strstr(p->device, "framesz=");
		uint64_t room = framesz ? strtoul(framesz + 8, NULL, 10) : 0;

		if (room < p->mtu + 64u)
			room = p->mtu + 64u;
		if (room < 2048)
			room = 2048;
		if (c->dataplane.mbuf_data_size && c->dataplane.mbuf_data_size < room) /* and large ones to join in */
			bytes += RTE_MIN(plan->mbufs, SL_JOIN_MBUFS) * buffer_bytes(room, huge);
		if (c->dataplane.mbuf_data_size)
			room = c->dataplane.mbuf_data_size;
		if (room > UINT16_MAX)
			room = UINT16_MAX;
		bytes += (plan->mbufs + CONTROL_MBUFS) * buffer_bytes(room, huge);
	}
	return (unsigned)(bytes >> 20) + SPARE_MB + plan->workers * WORKER_MB +
	       c->dataplane.port_count * PORT_MB;
}

/* The first two CPUs of the set that are on a node, -1 = on any. */
static void
first_two(const cpu_set_t *set, int node, int *first, int *second)
{
	*first = *second = -1;
	for (int i = 0; i < CPU_SETSIZE && *second < 0; i++) {
		if (!CPU_ISSET(i, set) || (node >= 0 && !sl_cpu_on_node((unsigned)i, node)))
			continue;
		if (*first < 0)
			*first = i;
		else
			*second = i;
	}
}

static int
plan_cpus(struct sl_eal_plan *plan, const struct sl_config *c, char why[256])
{
	int first = -1, second = -1, node = -1;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set)) {
		snprintf(why, 256, "cannot ask which CPUs we may use: %s", strerror(errno));
		return -EINVAL;
	}
	/* On the node of the first port that has one; anywhere when that has not two CPUs for us. */
	for (uint32_t p = 0; node < 0 && p < c->dataplane.port_count; p++)
		node = sl_device_node(c->dataplane.ports[p].device);
	first_two(&set, node, &first, &second);
	if (second < 0)
		first_two(&set, -1, &first, &second);
	plan->control_cpu =
		(unsigned)(c->dataplane.control_cpu >= 0 ? c->dataplane.control_cpu : first);
	plan->workers = c->dataplane.worker_cpu_count;
	for (unsigned i = 0; i < plan->workers; i++)
		plan->worker_cpus[i] = c->dataplane.worker_cpus[i].cpu;
	if (!plan->workers) {
		plan->workers = 1;
		plan->worker_cpus[0] =
			(unsigned)(second >= 0 && (unsigned)second != plan->control_cpu ? second
											: first);
	}
	for (unsigned i = 0; i <= plan->workers; i++) {
		unsigned cpu = i ? plan->worker_cpus[i - 1] : plan->control_cpu;

		if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set)) {
			snprintf(why, 256, "dataplane.lcores: CPU %u is not one that we may use",
				cpu);
			return -EINVAL;
		}
	}
	return 0;
}

int
sl_eal_plan(struct sl_eal_plan *plan, const struct sl_config *c, char why[256])
{
	uint64_t have;
	int rc;

	memset(plan, 0, sizeof(*plan));
	rc = plan_cpus(plan, c, why);
	if (rc)
		return rc;
	plan->mbufs = pool_mbufs(c, plan->workers);
	plan->memory_mb =
		c->dataplane.memory_mb ? c->dataplane.memory_mb : needed_mb(c, plan, true);
	have = free_huge_mb();
	plan->huge = c->dataplane.huge_pages != SL_CONF_HUGE_NO && have >= plan->memory_mb;
	if (c->dataplane.huge_pages == SL_CONF_HUGE_YES && !plan->huge) {
		snprintf(why, 256,
			"dataplane.memory.huge_pages: yes, but %llu MiB are free and %u MiB are "
			"needed",
			(unsigned long long)have, plan->memory_mb);
		return -EINVAL;
	}
	if (!plan->huge && !c->dataplane.memory_mb)
		plan->memory_mb = needed_mb(c, plan, false);
	/* EAL would lay out all of it before it finds out, for minutes. */
	if (!plan->huge && plan->memory_mb > machine_mb()) {
		snprintf(why, 256,
			"dataplane.memory, dataplane.pools: %u MiB are asked for, the machine has "
			"%llu",
			plan->memory_mb, (unsigned long long)machine_mb());
		return -EINVAL;
	}
	if (plan->huge)
		snprintf(plan->why_memory, sizeof(plan->why_memory), "huge pages, %llu MiB free",
			(unsigned long long)have);
	else if (c->dataplane.huge_pages == SL_CONF_HUGE_NO)
		snprintf(plan->why_memory, sizeof(plan->why_memory),
			"ordinary pages, as configured");
	else
		snprintf(plan->why_memory, sizeof(plan->why_memory),
			"ordinary pages: %llu MiB of huge pages free, %u needed",
			(unsigned long long)have, plan->memory_mb);
	return 0;
}

/* Grows argv by one printed argument. */
struct args {
	char *v[ARGS_MAX + 1];
	int n;
	bool failed;
};
/* EAL keeps pointers into its arguments until its clean-up. */
static struct args started;

static void
args_free(struct args *a)
{
	for (int i = 0; i < a->n; i++)
		free(a->v[i]);
	a->n = 0;
}

static void add(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void
add(struct args *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (a->n == ARGS_MAX || vasprintf(&a->v[a->n], fmt, ap) < 0)
		a->failed = true;
	else
		a->v[++a->n] = NULL;
	va_end(ap);
}

static void
lcores_text(char *out, size_t size, const struct sl_eal_plan *plan)
{
	int n = snprintf(out, size, "0@%u", plan->control_cpu);

	for (unsigned i = 0; i < plan->workers && (size_t)n < size; i++)
		n += snprintf(out + n, size - (size_t)n, ",%u@%u", i + 1, plan->worker_cpus[i]);
}

int
sl_eal_start(const struct sl_eal_plan *plan, const struct sl_config *c, char why[256])
{
	struct args a = {.n = 0};
	char *copy[ARGS_MAX + 1];
	char lcores[SL_WORKERS_MAX * 16];
	unsigned pci = 0;
	int rc = 0;

	lcores_text(lcores, sizeof(lcores), plan);
	add(&a, "sluiced");
	add(&a, "--lcores=%s", lcores);
	add(&a, "--main-lcore=0");
	add(&a, "--file-prefix=sluice%d", (int)getpid());
	add(&a, "--no-telemetry");
	for (uint32_t i = 0; i < c->dataplane.port_count; i++)
		if (sl_eal_is_pci(c->dataplane.ports[i].device)) {
			add(&a, "--allow=%s", c->dataplane.ports[i].device);
			pci++;
		}
	if (!pci)
		add(&a, "--no-pci");
	if (plan->huge) {
		add(&a, "--in-memory");
	} else {
		add(&a, "--no-huge");
		add(&a, "-m%u", plan->memory_mb);
		/* Without huge pages physical addresses mean nothing; with PCI devices this needs
		 * an IOMMU. */
		add(&a, "--iova-mode=va");
		add(&a, "--no-shconf");
	}
	for (uint32_t i = 0; i < c->dataplane.eal_count; i++)
		add(&a, "%s", c->dataplane.eal[i].text);
	if (a.failed) {
		snprintf(why, 256, "too many EAL arguments");
		rc = -E2BIG;
		goto out;
	}
	/* EAL permutes what it is given. */
	memcpy(copy, a.v, sizeof(copy));
	if (rte_eal_init(a.n, copy) < 0) {
		snprintf(why, 256, "EAL does not start: %s (dataplane.eal, dataplane.memory)",
			rte_strerror(rte_errno));
		rc = -EIO;
	}
out:
	if (rc)
		args_free(&a);
	else
		started = a;
	return rc;
}

void
sl_eal_stop(void)
{
	rte_eal_cleanup();
	args_free(&started);
}
