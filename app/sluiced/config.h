/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CONFIG_H
#define SL_CONFIG_H
/*
 * The daemon's configuration: one YAML file, checked as a whole before anything is started,
 * constant afterwards.
 *
 * Keys that FIPS has keep FIPS's names, meaning, units and defaults (peering facts, section 17);
 * ours stand under `dataplane:`. All keys are rows of one table (config_table.c): the parser,
 * `sluiced --check` and the table in docs/configuration.md are made from it.
 *
 * Every failure is one line, "file:line:column: message". What FIPS knows and Sluice does not do
 * yet is refused by that name when it would change what the node does, and noted as a warning when
 * leaving it out is harmless.
 *
 * Holds the node's secret when the file has one: sl_config_destroy() wipes.
 */
#include "../../lib/crypto/sl_identity.h"
#include "../../lib/pipeline/sl_dataplane.h"
#include "conf_yaml.h"
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_CONF_NAME_SIZE 64
#define SL_CONF_TEXT_SIZE 256
#define SL_CONF_AEAD_SIZE 32
#define SL_CONF_ACCESS_DIR "/etc/fips" /* of access lists, unless the file names another */
#define SL_CONF_WARNINGS_MAX 64
#define SL_CONF_PEERS_MAX 4096
#define SL_CONF_TRANSPORTS_MAX 16 /* of each kind: what a port listens to, and one Ethernet a port */

enum sl_conf_log {
	SL_CONF_LOG_TRACE,
	SL_CONF_LOG_DEBUG,
	SL_CONF_LOG_INFO,
	SL_CONF_LOG_WARN,
	SL_CONF_LOG_ERROR
};
enum sl_conf_policy { SL_CONF_AUTO_CONNECT, SL_CONF_ON_DEMAND, SL_CONF_MANUAL };
enum sl_conf_adverts { SL_CONF_ADVERTS_DISABLED, SL_CONF_ADVERTS_CONFIGURED_ONLY, SL_CONF_ADVERTS_OPEN };
enum sl_conf_huge { SL_CONF_HUGE_AUTO, SL_CONF_HUGE_YES, SL_CONF_HUGE_NO };

/* "host:port" as it is written; a literal address is already parsed (kind is not SL_ADDR_NONE). */
struct sl_conf_endpoint {
	char text[SL_CONF_TEXT_SIZE];
	char host[SL_CONF_TEXT_SIZE]; /* without brackets */
	uint16_t port;
	uint8_t family; /* 4, 6: host is a literal, ip holds it; 0: a name */
	uint8_t ip[16];
};

struct sl_conf_text {
	struct sl_pos at;
	char text[SL_CONF_TEXT_SIZE];
};
struct sl_conf_cpu {
	struct sl_pos at;
	uint16_t cpu;
};

struct sl_conf_udp {
	struct sl_pos at;
	char name[SL_CONF_NAME_SIZE]; /* "" = the only, unnamed instance */
	struct sl_conf_endpoint bind;
	uint16_t mtu;
	bool outbound_only, accept_connections;
	bool advertise_on_nostr, public;
	struct sl_conf_endpoint external; /* text "" = not said; port 0 = the bound one */
};

struct sl_conf_ethernet {
	struct sl_pos at;
	char name[SL_CONF_NAME_SIZE];
	char interface[SL_NAME_SIZE]; /* a dataplane port's name */
	uint16_t ethertype;
	uint16_t mtu; /* 0 = the port's MTU less 3 */
	bool listen, announce, auto_connect, accept_connections;
	uint64_t beacon_interval_secs;
	uint16_t port; /* index of that port; set by the check */
};

struct sl_conf_address {
	struct sl_pos at;
	char transport[SL_CONF_NAME_SIZE]; /* "udp", "udp/<instance>", "ethernet" */
	char addr[SL_CONF_TEXT_SIZE];
	uint8_t priority;
	/* Set by the check: */
	uint8_t kind;	  /* SL_ADDR_NONE: left out (a transport of FIPS that we lack), SL_ADDR_UDP4
			     (any UDP), SL_ADDR_ETH */
	int16_t instance; /* UDP: the instance asked for, -1 = any; Ethernet: the transport on that
			     port */
	struct sl_conf_endpoint endpoint; /* UDP */
	uint8_t mac[6];			  /* Ethernet */
	bool nat; /* "nat": kind is NONE, the traversal finds the way */
};

struct sl_conf_peer {
	struct sl_pos at;
	uint8_t xonly[SL_XONLY_BYTES];
	char alias[SL_CONF_NAME_SIZE];
	struct sl_conf_address *addresses;
	uint32_t address_count;
	uint8_t connect_policy; /* enum sl_conf_policy */
	bool auto_reconnect, first_flight, via_nostr;
};

struct sl_conf_ifaddr {
	struct sl_pos at;
	struct sl_ifaddr ip;
};
struct sl_conf_route {
	struct sl_pos at;
	struct sl_ifaddr to; /* prefix */
	struct sl_ifaddr via;
};
struct sl_conf_port {
	struct sl_pos at;
	char name[SL_NAME_SIZE];
	char device[SL_CONF_TEXT_SIZE];
	char profile[SL_CONF_NAME_SIZE];
	uint16_t mtu, vlan, rx_descriptors, tx_descriptors;
	bool ignore_rx_checksum;
	uint8_t steering; /* enum sl_steering */
	struct sl_conf_ifaddr *addresses;
	uint32_t address_count;
	struct sl_conf_route *routes;
	uint32_t route_count;
	struct sl_conf_cpu *worker_cpus; /* of the workers that receive from it */
	uint32_t worker_cpu_count;
	uint32_t rx_workers; /* the same as bits, in the order of dataplane.lcores.workers; set by the check */
};

struct sl_config {
	struct {
		char nsec[SL_CONF_TEXT_SIZE]; /* "" = none; secret */
		bool persistent;
	} identity;
	struct {
		uint32_t max_peers, max_pending_inbound;
	} limits;
	struct {
		uint32_t handshake_burst, handshake_max_resends,
			established_burst; /* 0 = derived */
		double handshake_rate, established_rate;
		double resend_backoff;
		uint64_t handshake_timeout_secs, resend_interval_ms;
	} rate;
	struct {
		uint32_t max_retries;
		uint64_t base_interval_secs, max_backoff_secs;
	} retry;
	uint64_t heartbeat_interval_secs, link_dead_timeout_secs;
	uint64_t drain_timeout_secs;
	struct {
		bool enabled;
		uint64_t after_secs, after_messages;
	} rekey;
	uint8_t mmp_mode; /* 0 full, 1 lightweight, 2 minimal */
	struct {
		uint64_t announce_min_interval_ms, hold_down_secs, reeval_interval_secs,
			flap_window_secs, flap_dampening_secs;
		uint32_t flap_threshold;
		double parent_hysteresis;
	} tree;
	struct {
		uint64_t update_debounce_ms;
		double max_inbound_fpr;
	} bloom;
	struct {
		uint32_t coord_size;
		uint64_t coord_ttl_secs;
	} cache;
	struct {
		uint8_t ttl;
		uint64_t recent_expiry_secs, forward_min_interval_secs;
	} lookup;
	struct {
		bool enabled;
		double loss_threshold, etx_threshold;
	} ecn;
	struct { /* node.rendezvous.nostr, of old node.discovery.nostr */
		bool enabled, advertise, share_local_candidates;
		struct sl_conf_text *advert_relays, *dm_relays, *stun_servers;
		uint32_t advert_relay_count, dm_relay_count, stun_server_count;
		char app[SL_CONF_NAME_SIZE];
		uint8_t policy; /* enum sl_conf_adverts */
		uint64_t signal_ttl_secs, attempt_timeout_secs, replay_window_secs;
		uint64_t punch_start_delay_ms, punch_interval_ms, punch_duration_ms;
		uint64_t advert_ttl_secs, advert_refresh_secs;
		uint32_t seen_sessions_max, failure_state_max;
		uint32_t max_concurrent_incoming_offers, max_concurrent_offers_per_npub;
		uint32_t failure_streak_threshold;
		uint64_t extended_cooldown_secs;
		uint32_t open_discovery_max_pending;
	} nostr;
	struct { /* node.rendezvous.lan, of old node.discovery.lan */
		bool enabled;
		char service_type[SL_CONF_NAME_SIZE];
		char scope[SL_CONF_NAME_SIZE]; /* "" = what nostr.app says */
	} lan;
	uint8_t default_ttl;
	uint8_t log_level; /* enum sl_conf_log */
	struct {
		bool enabled;
		char socket_path[108]; /* sockaddr_un's room */
	} control;

	struct sl_conf_udp *udp;
	uint32_t udp_count;
	struct sl_conf_ethernet *ethernet;
	uint32_t ethernet_count;
	struct sl_conf_peer *peers;
	uint32_t peer_count;

	struct {
		struct sl_conf_port *ports;
		uint32_t port_count;
		int32_t control_cpu; /* -1 = chosen at start */
		struct sl_conf_cpu *worker_cpus;
		uint32_t worker_cpu_count;
		struct sl_conf_text *eal;
		uint32_t eal_count;
		uint8_t huge_pages; /* enum sl_conf_huge */
		uint32_t memory_mb;
		uint32_t mbufs;
		uint16_t mbuf_data_size;
		char aead[SL_CONF_AEAD_SIZE];
		char aead_device[SL_CONF_TEXT_SIZE];
		uint16_t burst;
		uint8_t elephant; /* enum sl_elephant_mode, but for by hand */
		uint32_t hop_cache, ring_size, sessions, idle_sleep_us;
		bool measure_cycles;
		char profiles_dir[SL_CONF_TEXT_SIZE];
		bool first_flight, probe_mtu;
		char access_dir[SL_CONF_TEXT_SIZE]; /* "" = no access lists */
		char nostr_ca_file[SL_CONF_TEXT_SIZE]; /* "" = the system's authorities */
	} dataplane;

	/* Harmless keys that were left out, in the order of the file. */
	struct sl_conf_error warnings[SL_CONF_WARNINGS_MAX];
	uint32_t warning_count;
};

/* Defaults only. NULL and ENOMEM. */
struct sl_config *sl_config_create(void) SL_MUST_CHECK;
void sl_config_destroy(struct sl_config *c);

/* 0; -EINVAL with error filled; -ENOMEM. The configuration of a failed parse is to be destroyed. */
int sl_config_parse(struct sl_config *c, const char *text, size_t len,
	struct sl_conf_error *error) SL_MUST_CHECK;
/* The same from a file. error->at.line is 0 when the file itself cannot be read. */
int sl_config_load(
	struct sl_config *c, const char *path, struct sl_conf_error *error) SL_MUST_CHECK;
/* Is there enough in it to run: a port, a transport? 0, or -EINVAL with error filled. */
int sl_config_check_run(const struct sl_config *c, struct sl_conf_error *error) SL_MUST_CHECK;
/* "path:line:column: text" or "path: text". */
void sl_config_error_print(FILE *out, const char *path, const struct sl_conf_error *error);

/* The effective configuration as YAML that parses to the same; the secret is never in it. */
void sl_config_print(FILE *out, const struct sl_config *c);
/* The reference of all keys as Markdown tables. */
void sl_config_print_keys(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
