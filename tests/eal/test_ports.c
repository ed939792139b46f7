/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of each driver that a machine without a NIC has: up, running with one worker and with two, down, every buffer
 * back. What the machine or the user may not have (root, /dev/net/tun) is a skip with its reason.
 */
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rte_cycles.h>
#include "rows.h"

static char dir[64];

static struct sl_dataplane *
dataplane_make(struct sl_session_table **table, const struct sl_fib_ref *fib, uint16_t workers)
{
	const struct sl_session_table_config tc = {.max_sessions = 64, .max_peers = 16, .workers = workers};
	const struct sl_dataplane_config dc = {.workers = workers, .mbufs = 8191, .aead = sl_aead_backend_find("auto"),
		.idle_sleep_us = 100};
	const struct sl_dataplane_sink sink = {NULL};

	*table = sl_session_table_create(&tc);
	return *table ? sl_dataplane_create(&dc, sl_session_table_view(*table), fib, &sink) : NULL;
}

static int
pools_of(const struct sl_dataplane *dp)
{
	uint32_t free_count, total;

	sl_dataplane_buffers(dp, &free_count, &total);
	return (int)(total - free_count);
}

/* Returns the error of port_add, 0 when all went through. */
static int
up_and_down(const char *device, uint16_t workers, uint16_t mtu, const char **error)
{
	struct sl_port_config pc = {.mtu = mtu, .rx_descriptors = 256, .tx_descriptors = 256, .addr_count = 2,
		.addrs = {{.family = 4, .prefix_len = 24, .ip = {192, 0, 2, 1}},
			{.family = 6, .prefix_len = 64, .ip = {0x20, 1, 0x0d, 0xb8, [15] = 1}}}};
	const struct sl_dataplane_transport t = {.kind = SL_ADDR_UDP4, .mtu = 1280, .udp_port = 2121, .bind_any4 = true};
	static const struct sl_fib_ref fib = {NULL};
	struct sl_session_table *table;
	struct sl_dataplane *dp = dataplane_make(&table, &fib, workers);
	struct sl_port_stats stats;
	struct sl_addr to = {.kind = SL_ADDR_UDP4, .udp_port = 2121, .u.ip4 = {192, 0, 2, 2}};
	uint8_t packet[114] = {1, 0, 110};
	int rc;

	if (!dp)
		return -ENOMEM;
	snprintf(pc.name, sizeof(pc.name), "port");
	snprintf(pc.device, sizeof(pc.device), "%s", device);
	rc = sl_dataplane_port_add(dp, &pc, error);
	if (rc < 0)
		goto out;
	SL_EXPECT_EQ(sl_dataplane_transport_add(dp, &t), 0);
	SL_EXPECT_EQ(sl_dataplane_start(dp), 0);
	SL_EXPECT_EQ(sl_dataplane_transmit(dp, &to, packet, sizeof(packet), sl_dataplane_now_us()), 0);
	for (unsigned i = 0; i < 20; i++) {
		rte_delay_us_sleep(1000);
		sl_dataplane_poll(dp, 256, sl_dataplane_now_us());
	}
	SL_EXPECT_EQ(sl_dataplane_port_stats(dp, 0, &stats), 0);
	SL_EXPECT_GT(stats.control_tx + stats.control_tx_dropped, 0);
	SL_EXPECT_GT(stats.mtu, 1000);
	for (uint16_t w = 0; w < workers; w++) {
		struct sl_worker_stats s;

		sl_dataplane_worker_stats(dp, w, &s);
		SL_EXPECT_GT(s.polls, 0);
	}
	sl_dataplane_stop(dp);
	for (uint16_t w = 0; w < workers; w++) {
		struct sl_worker_stats s;
		uint64_t sum = 0;

		sl_dataplane_worker_stats(dp, w, &s);
		for (unsigned v = 0; v < SL_VERDICT_COUNT; v++)
			sum += s.verdicts[v];
		SL_EXPECT_EQ(s.rx, sum);
	}
	while (sl_dataplane_poll(dp, 256, sl_dataplane_now_us()))
		;
	/* What the device holds comes back with its close; an unlimited number held is a leak. */
	SL_EXPECT_LE(pools_of(dp), 2 * 256 * (workers + 1) + 1024);
	rc = 0;
out:
	sl_dataplane_destroy(dp);
	sl_session_table_destroy(table);
	return rc;
}

static void
driver(const char *device, const char *what)
{
	for (uint16_t workers = 1; workers <= 2; workers++) {
		const char *error = NULL;
		const int rc = up_and_down(device, workers, 0, &error);

		/* Attaching may be refused by the machine; whatever comes after it may not fail. */
		if (rc != 0 && error && strcmp(error, "device cannot be attached") == 0)
			SL_SKIP(what);
		SL_EXPECT_MSG(rc == 0, "%s, %u workers: %d at %s", device, workers, rc, error ? error : "?");
	}
}

static void
dir_remove(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/empty.pcap", dir);
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/memif", dir);
	(void)unlink(path);
	(void)rmdir(dir);
}

static const char *
in_dir(const char *name)
{
	static char path[128];

	if (!dir[0]) {
		snprintf(dir, sizeof(dir), "/tmp/sl_ports_XXXXXX");
		if (!mkdtemp(dir))
			abort();
		atexit(dir_remove);
	}
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

SL_TEST(ports, null)
{
	driver("net_null_t0,size=64", "no net_null");
}
SL_TEST(ports, af_packet)
{
	driver("net_af_packet_t0,iface=lo", "no rights for packet sockets");
}
/* One receive queue a worker: with a second one the kernel reorders a flow when the first runs full. */
SL_TEST(ports, af_packet_keeps_order)
{
	static const struct sl_fib_ref fib = {NULL};
	struct sl_port_config pc = {.name = "port", .device = "net_af_packet_t3,iface=lo"};
	struct sl_session_table *table;
	struct sl_dataplane *dp = dataplane_make(&table, &fib, 1);
	struct sl_port_stats stats;
	const char *error = NULL;

	SL_ASSERT(dp);
	if (sl_dataplane_port_add(dp, &pc, &error) == 0) {
		SL_EXPECT_EQ(sl_dataplane_port_stats(dp, 0, &stats), 0);
		SL_EXPECT_EQ(stats.queues, 1);
	}
	sl_dataplane_destroy(dp);
	sl_session_table_destroy(table);
	if (error && strcmp(error, "device cannot be attached") == 0)
		SL_SKIP("no rights for packet sockets");
}
SL_TEST(ports, af_packet_pairs_given)
{
	const char *error = NULL;
	const int rc = up_and_down("net_af_packet_t1,iface=lo,qpairs=1", 1, 0, &error);

	if (rc != 0 && error && strcmp(error, "device cannot be attached") == 0)
		SL_SKIP("no rights for packet sockets");
	SL_EXPECT_EQ(rc, 0);
	/* One pair cannot serve two workers. */
	SL_EXPECT_EQ(up_and_down("net_af_packet_t2,iface=lo,qpairs=1", 2, 0, &error), -ENOTSUP);
	SL_EXPECT_STR(error, "device has fewer transmit queues than there are workers");
}
/* All that the worker has been given, in polls that find nothing at last. */
static uint64_t
received(struct sl_dataplane *dp)
{
	struct sl_worker_stats s;

	for (unsigned idle = 0; idle < 100; idle++)
		while (sl_worker_poll(dp->workers[0]))
			idle = 0;
	sl_dataplane_worker_stats(dp, 0, &s);
	return s.rx;
}

/* Frames that the kernel sends out of an interface: the port behind it receives them. */
static void
send_out_of(const char *interface, unsigned count)
{
	const struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface), .sll_halen = 6};
	const uint8_t frame[64] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5};
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	SL_ASSERT(fd >= 0);
	for (unsigned i = 0; i < count; i++)
		SL_EXPECT_EQ(sendto(fd, frame, sizeof(frame), 0, (const struct sockaddr *)&to, sizeof(to)), (ssize_t)sizeof(frame));
	close(fd);
}

/*
 * No buffer to receive into: with packet sockets frames wait in the device's ring, up to its size (what does not fit is the
 * kernel's loss; this driver does not tell of it); a tap device loses them and says so. With buffers again the worker goes on, and
 * every frame is in one count or the other.
 */
static void
receive_pool_empty(const char *device, const char *interface, bool waits, const char *what)
{
	enum { FIRST = 20, MANY = 100 };
	static const struct sl_fib_ref fib = {NULL};
	struct sl_port_config pc = {.name = "port", .rx_descriptors = 256, .tx_descriptors = 256};
	struct sl_session_table *table;
	struct sl_dataplane *dp = dataplane_make(&table, &fib, 1);
	struct sl_port_stats before, after;
	struct rte_mempool *pool;
	const char *error = NULL;
	uint64_t first, rest;
	unsigned got = 0, idle;
	void **all;

	SL_ASSERT(dp);
	snprintf(pc.device, sizeof(pc.device), "%s", device);
	if (sl_dataplane_port_add(dp, &pc, &error) != 0) {
		sl_dataplane_destroy(dp);
		sl_session_table_destroy(table);
		SL_SKIP(what);
	}
	SL_ASSERT(sl_dataplane_prepare(dp) == 0);
	send_out_of(interface, FIRST);
	first = received(dp);
	SL_EXPECT_GE(first, FIRST);
	pool = dp->ports[0].pool;
	idle = rte_mempool_in_use_count(pool); /* what the driver holds to receive into */
	all = calloc(pool->size, sizeof(*all));
	while (got < pool->size && rte_mempool_get(pool, &all[got]) == 0)
		got++;
	SL_EXPECT_EQ(rte_mempool_avail_count(pool), 0);
	SL_ASSERT(sl_dataplane_port_stats(dp, 0, &before) == 0);
	send_out_of(interface, MANY);
	rest = received(dp) - first;
	SL_EXPECT_LE(rest, idle);
	rte_mempool_put_bulk(pool, all, got);
	send_out_of(interface, MANY);
	rest = received(dp) - first;
	SL_ASSERT(sl_dataplane_port_stats(dp, 0, &after) == 0);
	SL_EXPECT_GE(rest + after.rx_nombuf - before.rx_nombuf, 2 * MANY);
	SL_EXPECT_GE(rest, MANY);
	SL_EXPECT_EQ(after.rx_nombuf - before.rx_nombuf > 0, !waits);
	/* None has stayed anywhere. */
	SL_EXPECT_EQ(rte_mempool_in_use_count(pool), idle);
	free(all);
	sl_dataplane_destroy(dp);
	sl_session_table_destroy(table);
}
SL_TEST(ports, receive_pool_empty_af_packet)
{
	receive_pool_empty("net_af_packet_t4,iface=lo", "lo", true, "no rights for packet sockets");
}
SL_TEST(ports, receive_pool_empty_tap)
{
	receive_pool_empty("net_tap_t4,iface=sltest4", "sltest4", false, "no rights for a tap device");
}
SL_TEST(ports, tap)
{
	driver("net_tap_t0,iface=sltest0", "no rights for a tap device");
}
SL_TEST(ports, memif)
{
	char device[256];

	snprintf(device, sizeof(device), "net_memif_t0,role=server,id=0,socket=%s,socket-abstract=no", in_dir("memif"));
	driver(device, "no memif");
}
SL_TEST(ports, pcap)
{
	const uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	char device[256];
	FILE *f = fopen(in_dir("empty.pcap"), "w");

	SL_ASSERT(f && fwrite(header, sizeof(header), 1, f) == 1);
	fclose(f);
	snprintf(device, sizeof(device), "net_pcap_t0,rx_pcap=%s,tx_pcap=/dev/null", in_dir("empty.pcap"));
	const char *error = NULL;
	SL_EXPECT_EQ(up_and_down(device, 1, 0, &error), 0);
}

/* What steers frames to workers on the drivers that are here, and how that is shown. */
static void
steering(const char *device, enum sl_steering wanted, const char *mode, const char *why)
{
	struct sl_port_config pc = {.name = "port", .rx_descriptors = 256, .tx_descriptors = 256, .steering = wanted, .addr_count = 1,
		.addrs = {{.family = 4, .prefix_len = 24, .ip = {192, 0, 2, 1}}}};
	const struct sl_dataplane_transport t = {.kind = SL_ADDR_UDP4, .mtu = 1280, .udp_port = 2121, .bind_any4 = true};
	static const struct sl_fib_ref fib = {NULL};
	struct sl_session_table *table;
	struct sl_dataplane *dp = dataplane_make(&table, &fib, 2);
	struct sl_port_stats s;
	const char *error = NULL;

	SL_ASSERT(dp);
	snprintf(pc.device, sizeof(pc.device), "%s", device);
	if (sl_dataplane_port_add(dp, &pc, &error) == 0) {
		SL_EXPECT_EQ(sl_dataplane_transport_add(dp, &t), 0);
		SL_EXPECT_EQ(sl_dataplane_start(dp), 0);
		SL_EXPECT_EQ(sl_dataplane_port_stats(dp, 0, &s), 0);
		SL_EXPECT_MSG(!strcmp(s.steering, mode) && strstr(s.steering_why, why), "%s: %s: %s", device, s.steering, s.steering_why);
		SL_EXPECT_EQ(s.flow_rules, 0);
		SL_EXPECT_EQ(s.queues == 1, wanted == SL_STEERING_OFF);
		sl_dataplane_stop(dp);
	}
	sl_dataplane_destroy(dp);
	sl_session_table_destroy(table);
	if (error && strcmp(error, "device cannot be attached") == 0)
		SL_SKIP("no rights for this device");
	SL_EXPECT_MSG(error == NULL, "%s: %s", device, error);
}
SL_TEST(ports, steering_null)
{
	steering("net_null_t2", SL_STEERING_AUTO, "rss", "the driver has no flow rules: RSS over the outer five-tuple, read back, table of 2 queues");
	steering("net_null_t2", SL_STEERING_OFF, "software", "steering: off");
}
SL_TEST(ports, steering_af_packet)
{
	steering("net_af_packet_t4,iface=lo", SL_STEERING_AUTO, "driver", "the driver has no flow rules: no RSS to set; the driver spreads");
}
SL_TEST(ports, steering_tap)
{
	steering("net_tap_t1,iface=sltest1", SL_STEERING_AUTO, "rss", "flow rules refused (");
}

/* Errors name their step, and leave nothing behind: the same device comes up afterwards. */
SL_TEST(ports, errors)
{
	const char *error = NULL;

	SL_EXPECT_LT(up_and_down("net_nosuch0", 1, 0, &error), 0);
	SL_EXPECT_STR(error, "device cannot be attached");
	SL_EXPECT_LT(up_and_down("net_null_t1", 1, 20, &error), 0);
	SL_EXPECT(error != NULL);
	SL_EXPECT_EQ(up_and_down("net_null_t1", 1, 0, &error), 0);
}
