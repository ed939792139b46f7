/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in of nic.h. Functions named __wrap_* are called in place of ethdev's, __real_* are these. */
#define ALLOW_EXPERIMENTAL_API
#include "nic.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#define RULES 256
#define TABLE 64

struct rte_flow {
	bool used, counted;
	uint16_t ethdev, queue;
	uint8_t family;
	int vlan; /* -1 = untagged */
	uint16_t udp_port, udp_mask;
	unsigned offset, length; /* of the raw pattern, behind UDP */
	uint8_t pattern[16], mask[16];
	uint64_t hits;
};

static struct nic {
	unsigned flags, most, made, left_at_stop, refused;
	struct rte_flow rules[RULES];
	struct {
		uint16_t queues;
		uint64_t rss;
		uint16_t table[TABLE];
	} port[RTE_MAX_ETHPORTS];
} nic;

void
nic_set(unsigned flags, unsigned rules_most)
{
	memset(&nic, 0, sizeof(nic));
	nic.flags = flags;
	nic.most = rules_most ? rules_most : RULES;
}

unsigned
nic_rules(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RULES; i++)
		n += nic.rules[i].used;
	return n;
}

unsigned
nic_made(void)
{
	return nic.made;
}

unsigned
nic_left_at_stop(void)
{
	return nic.left_at_stop;
}

unsigned
nic_refused(void)
{
	return nic.refused;
}

/* --- rules ------------------------------------------------------------------------------------------------------------ */

static int
refuse(struct rte_flow_error *error, int rc, const char *message)
{
	error->message = message;
	rte_errno = -rc;
	return rc;
}

static int
raw_take(struct rte_flow *f, const struct rte_flow_item *item, struct rte_flow_error *error)
{
	const struct rte_flow_item_raw *spec = item->spec, *mask = item->mask;

	if (nic.flags & NIC_NO_RAW)
		return refuse(error, -ENOTSUP, "no raw patterns here");
	/* As a flow director wants it: behind the header, whole words at even places, no search. */
	if (!spec || !mask || !spec->relative || spec->search || spec->limit || spec->offset < 0 || spec->offset % 2 ||
		spec->length % 2 || spec->length > sizeof(f->pattern) || !spec->pattern || !mask->pattern)
		return refuse(error, -EINVAL, "raw pattern");
	f->offset = (unsigned)spec->offset;
	f->length = spec->length;
	memcpy(f->pattern, spec->pattern, spec->length);
	memcpy(f->mask, mask->pattern, spec->length);
	return 0;
}

static int
items_take(struct rte_flow *f, const struct rte_flow_item *item, struct rte_flow_error *error)
{
	int rc = 0;

	if (item->type != RTE_FLOW_ITEM_TYPE_ETH || item->spec)
		return refuse(error, -EINVAL, "first item");
	for (item++; rc == 0 && item->type != RTE_FLOW_ITEM_TYPE_END; item++) {
		if (item->type == RTE_FLOW_ITEM_TYPE_VLAN && f->family == 0) {
			const struct rte_flow_item_vlan *spec = item->spec, *mask = item->mask;

			if (mask->hdr.vlan_tci != rte_cpu_to_be_16(0x0fff))
				return refuse(error, -EINVAL, "VLAN mask");
			f->vlan = rte_be_to_cpu_16(spec->hdr.vlan_tci);
		} else if ((item->type == RTE_FLOW_ITEM_TYPE_IPV4 || item->type == RTE_FLOW_ITEM_TYPE_IPV6) && !item->spec) {
			f->family = item->type == RTE_FLOW_ITEM_TYPE_IPV4 ? 4 : 6;
		} else if (item->type == RTE_FLOW_ITEM_TYPE_UDP && f->family) {
			const struct rte_flow_item_udp *spec = item->spec, *mask = item->mask;

			if (mask->hdr.src_port || mask->hdr.dgram_len || mask->hdr.dgram_cksum)
				return refuse(error, -EINVAL, "UDP mask");
			f->udp_port = rte_be_to_cpu_16(spec->hdr.dst_port);
			f->udp_mask = rte_be_to_cpu_16(mask->hdr.dst_port);
		} else if (item->type == RTE_FLOW_ITEM_TYPE_RAW && f->udp_mask) {
			rc = raw_take(f, item, error);
		} else {
			return refuse(error, -EINVAL, "item");
		}
	}
	return rc;
}

static int
rule_take(struct rte_flow *f, uint16_t ethdev, const struct rte_flow_attr *attr, const struct rte_flow_item *items,
	const struct rte_flow_action *action, struct rte_flow_error *error)
{
	bool queue = false;
	int rc;

	memset(f, 0, sizeof(*f));
	f->ethdev = ethdev;
	f->vlan = -1;
	if (!(nic.flags & NIC_RULES))
		return refuse(error, -ENOSYS, "no flow rules at all");
	if (!attr->ingress || attr->egress || attr->transfer || attr->group || attr->priority)
		return refuse(error, -EINVAL, "attributes");
	rc = items_take(f, items, error);
	for (; rc == 0 && action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		if (action->type == RTE_FLOW_ACTION_TYPE_COUNT) {
			if (nic.flags & NIC_NO_COUNT)
				return refuse(error, -ENOTSUP, "no counters");
			f->counted = true;
		} else if (action->type == RTE_FLOW_ACTION_TYPE_QUEUE) {
			f->queue = ((const struct rte_flow_action_queue *)action->conf)->index;
			queue = f->queue < nic.port[ethdev].queues;
		} else {
			return refuse(error, -ENOTSUP, "action");
		}
	}
	if (rc == 0 && !queue)
		rc = refuse(error, -EINVAL, "queue");
	for (unsigned i = 0; rc == 0 && i < RULES; i++) {
		const struct rte_flow *o = &nic.rules[i];

		if ((nic.flags & NIC_EXIST) && o->used && o->ethdev == ethdev && o->family == f->family && o->udp_port == f->udp_port &&
			!memcmp(o->pattern, f->pattern, sizeof(f->pattern)))
			rc = refuse(error, -EEXIST, "there is such a rule");
	}
	return rc;
}

int __wrap_rte_flow_validate(uint16_t ethdev, const struct rte_flow_attr *attr, const struct rte_flow_item pattern[],
	const struct rte_flow_action actions[], struct rte_flow_error *error);
int
__wrap_rte_flow_validate(uint16_t ethdev, const struct rte_flow_attr *attr, const struct rte_flow_item pattern[],
	const struct rte_flow_action actions[], struct rte_flow_error *error)
{
	struct rte_flow f;

	return rule_take(&f, ethdev, attr, pattern, actions, error);
}

struct rte_flow *__wrap_rte_flow_create(uint16_t ethdev, const struct rte_flow_attr *attr, const struct rte_flow_item pattern[],
	const struct rte_flow_action actions[], struct rte_flow_error *error);
struct rte_flow *
__wrap_rte_flow_create(uint16_t ethdev, const struct rte_flow_attr *attr, const struct rte_flow_item pattern[],
	const struct rte_flow_action actions[], struct rte_flow_error *error)
{
	struct rte_flow f;

	if (rule_take(&f, ethdev, attr, pattern, actions, error) != 0)
		return NULL;
	for (unsigned i = 0; i < nic.most; i++)
		if (!nic.rules[i].used) {
			nic.rules[i] = f;
			nic.rules[i].used = true;
			nic.made++;
			return &nic.rules[i];
		}
	refuse(error, -ENOSPC, "table of rules is full");
	return NULL;
}

int __wrap_rte_flow_destroy(uint16_t ethdev, struct rte_flow *flow, struct rte_flow_error *error);
int
__wrap_rte_flow_destroy(uint16_t ethdev, struct rte_flow *flow, struct rte_flow_error *error)
{
	if (flow < nic.rules || flow >= nic.rules + RULES || !flow->used || flow->ethdev != ethdev)
		return refuse(error, -ENOENT, "no such rule");
	flow->used = false;
	return 0;
}

int __wrap_rte_flow_query(uint16_t ethdev, struct rte_flow *flow, const struct rte_flow_action *action, void *data,
	struct rte_flow_error *error);
int
__wrap_rte_flow_query(uint16_t ethdev, struct rte_flow *flow, const struct rte_flow_action *action, void *data,
	struct rte_flow_error *error)
{
	struct rte_flow_query_count *count = data;

	if (!flow->used || flow->ethdev != ethdev || !flow->counted || action->type != RTE_FLOW_ACTION_TYPE_COUNT)
		return refuse(error, -EINVAL, "query");
	count->hits_set = 1;
	count->hits = flow->hits;
	return 0;
}

int __wrap_rte_flow_dev_dump(uint16_t ethdev, struct rte_flow *flow, FILE *file, struct rte_flow_error *error);
int
__wrap_rte_flow_dev_dump(uint16_t ethdev, struct rte_flow *flow, FILE *file, struct rte_flow_error *error)
{
	if (nic.flags & NIC_NO_DUMP)
		return refuse(error, -ENOSYS, "no dump");
	if (!flow->used || flow->ethdev != ethdev)
		return refuse(error, -ENOENT, "no such rule");
	fprintf(file, "udp %u word %02x/%02x queue %u\n", flow->udp_port, flow->pattern[0], flow->mask[0], flow->queue);
	return 0;
}

/* --- RSS and the device's life ------------------------------------------------------------------------------------------ */

int __real_rte_eth_dev_info_get(uint16_t ethdev, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t ethdev, struct rte_eth_dev_info *info);
int
__wrap_rte_eth_dev_info_get(uint16_t ethdev, struct rte_eth_dev_info *info)
{
	const int rc = __real_rte_eth_dev_info_get(ethdev, info);

	if (rc == 0 && (nic.flags & NIC_RSS)) {
		info->flow_type_rss_offloads = RTE_ETH_RSS_IP | (nic.flags & NIC_RSS_ADDRESSES ? 0 : RTE_ETH_RSS_UDP);
		info->reta_size = TABLE;
	}
	return rc;
}

int __real_rte_eth_dev_configure(uint16_t ethdev, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(uint16_t ethdev, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf);
int
__wrap_rte_eth_dev_configure(uint16_t ethdev, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf plain = *conf;

	nic.port[ethdev].queues = rx;
	nic.port[ethdev].rss = conf->rxmode.mq_mode == RTE_ETH_MQ_RX_RSS ? conf->rx_adv_conf.rss_conf.rss_hf : 0;
	for (unsigned i = 0; i < TABLE; i++)
		nic.port[ethdev].table[i] = nic.flags & NIC_RSS_FLAT ? 0 : (uint16_t)(i % rx);
	plain.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	memset(&plain.rx_adv_conf.rss_conf, 0, sizeof(plain.rx_adv_conf.rss_conf));
	return __real_rte_eth_dev_configure(ethdev, rx, tx, &plain);
}

int __real_rte_eth_dev_stop(uint16_t ethdev);
int __wrap_rte_eth_dev_stop(uint16_t ethdev);
int
__wrap_rte_eth_dev_stop(uint16_t ethdev)
{
	for (unsigned i = 0; i < RULES; i++)
		nic.left_at_stop += nic.rules[i].used && nic.rules[i].ethdev == ethdev;
	return __real_rte_eth_dev_stop(ethdev);
}

int __wrap_rte_eth_dev_rss_hash_conf_get(uint16_t ethdev, struct rte_eth_rss_conf *conf);
int
__wrap_rte_eth_dev_rss_hash_conf_get(uint16_t ethdev, struct rte_eth_rss_conf *conf)
{
	if (!(nic.flags & NIC_RSS) || (nic.flags & NIC_RSS_MUTE))
		return -ENOTSUP;
	conf->rss_hf = nic.flags & NIC_RSS_NONE ? 0 : nic.port[ethdev].rss;
	return 0;
}

int __wrap_rte_eth_dev_rss_reta_query(uint16_t ethdev, struct rte_eth_rss_reta_entry64 *table, uint16_t size);
int
__wrap_rte_eth_dev_rss_reta_query(uint16_t ethdev, struct rte_eth_rss_reta_entry64 *table, uint16_t size)
{
	if (!(nic.flags & NIC_RSS) || size != TABLE)
		return -EINVAL;
	memcpy(table[0].reta, nic.port[ethdev].table, sizeof(nic.port[ethdev].table));
	return 0;
}

int __wrap_rte_eth_dev_rss_reta_update(uint16_t ethdev, struct rte_eth_rss_reta_entry64 *table, uint16_t size);
int
__wrap_rte_eth_dev_rss_reta_update(uint16_t ethdev, struct rte_eth_rss_reta_entry64 *table, uint16_t size)
{
	if (!(nic.flags & NIC_RSS) || size != TABLE || table[0].mask != UINT64_MAX)
		return -EINVAL;
	memcpy(nic.port[ethdev].table, table[0].reta, sizeof(nic.port[ethdev].table));
	return 0;
}

/* --- frames ------------------------------------------------------------------------------------------------------------- */

struct packet {
	uint8_t family;
	int vlan;
	uint16_t source, dest;
	const uint8_t *ip, *payload; /* NULL: not UDP */
	size_t len;
};

static struct packet
take_apart(const uint8_t *f, size_t len)
{
	struct packet p = {.vlan = -1};
	size_t at = 12, udp;
	unsigned type;

	if (len < 60)
		return p;
	type = f[at] << 8 | f[at + 1];
	if (type == 0x8100) {
		p.vlan = (f[at + 2] << 8 | f[at + 3]) & 0xfff;
		at += 4;
		type = f[at] << 8 | f[at + 1];
	}
	p.ip = f + at + 2;
	p.family = type == 0x0800 ? 4 : type == 0x86dd ? 6 : 0;
	if (!p.family || p.ip[p.family == 4 ? 9 : 6] != 17)
		return p;
	udp = at + 2 + (p.family == 4 ? 4u * (p.ip[0] & 15) : 40u);
	if (udp + 8 > len)
		return p;
	p.source = (uint16_t)(f[udp] << 8 | f[udp + 1]);
	p.dest = (uint16_t)(f[udp + 2] << 8 | f[udp + 3]);
	p.payload = f + udp + 8;
	p.len = len - udp - 8;
	return p;
}

static bool
matches(const struct rte_flow *r, const struct packet *p)
{
	if (!p->payload || r->family != p->family || r->vlan != p->vlan || (p->dest & r->udp_mask) != r->udp_port ||
		p->len < r->offset + r->length)
		return false;
	for (unsigned i = 0; i < r->length; i++)
		if ((p->payload[r->offset + i] ^ r->pattern[i]) & r->mask[i])
			return false;
	return true;
}

uint16_t
nic_queue_of(uint16_t ethdev, const uint8_t *frame, size_t len)
{
	const struct packet p = take_apart(frame, len);
	uint32_t hash = 0;

	for (unsigned i = 0; i < RULES; i++)
		if (nic.rules[i].used && nic.rules[i].ethdev == ethdev && matches(&nic.rules[i], &p)) {
			nic.rules[i].hits++;
			if (!(nic.flags & NIC_BLIND))
				return nic.rules[i].queue;
		}
	if (!nic.port[ethdev].rss || !p.family) {
		nic.refused++;
		return 0;
	}
	/* Not Toeplitz: any function of the tuple will do. */
	for (unsigned i = 0; i < (p.family == 4 ? 8u : 32u); i++)
		hash = hash * 31 + p.ip[(p.family == 4 ? 12 : 8) + i];
	if (nic.port[ethdev].rss & RTE_ETH_RSS_UDP)
		hash = (hash * 31 + p.source) * 31 + p.dest;
	hash = (hash ^ hash >> 7 ^ hash >> 15) % TABLE;
	return nic.port[ethdev].table[hash];
}
