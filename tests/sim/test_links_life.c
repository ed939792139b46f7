/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's life: restarts, goodbyes, silence, redial, moving about. Link layer facts, 7.5, 8, 11
 * to 13. */
#include "link_net.h"
#include "sl_log.h"

static struct net *net;
static struct node *n[2];
static const struct sl_aead_backend *engine; /* of the next begin(); NULL: any */

static void
begin(const struct sl_links_config *config)
{
	net = net_create();
	net->aead = engine;
	net_pair(net, n, config);
}

/* n[a] dials n[b]. */
static void
link_up(unsigned a)
{
	net_configure(n[a], n[!a]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	net_run(net, NET_S);
}

static void
end(void)
{
	net_destroy(net);
}

/* --- restart --- */

SL_TEST(links_life, restarted_dialler_comes_back)
{
	for (unsigned a = 0; a < 2; a++) {
		uint64_t at;

		begin(NULL);
		link_up(a);
		net_run(net, 5 * NET_S);
		net_restart(n[a], true);
		at = net->now_us;
		net_configure(n[a], n[!a]);
		SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
		net_run(net, 100 * NET_MS);
		SL_EXPECT_EQ(n[!a]->downs[SL_DOWN_RESTART], 1);
		SL_EXPECT_EQ(n[!a]->ups, 2);
		SL_EXPECT_LE(n[!a]->last_up_us - at, 4 * net->delay_us);
		SL_EXPECT_EQ(net_counter(n[!a], SL_LINK_PEER_RESTART), 1);
		SL_EXPECT(net_carries(n[0], n[1]));
		end();
	}
}

SL_TEST(links_life, restarted_answerer_is_found_again)
{
	for (unsigned a = 0; a < 2; a++) {
		begin(NULL);
		link_up(a);
		net_restart(n[!a], true); /* dials nobody: it is dialled when the link has died */
		net_run(net, 45 * NET_S);
		SL_EXPECT_EQ(n[a]->downs[SL_DOWN_DEAD], 1);
		SL_EXPECT(net_linked(n[0], n[1]));
		SL_EXPECT(net_carries(n[0], n[1]));
		end();
	}
}

SL_TEST(links_life, both_configured_either_restarts)
{
	for (unsigned a = 0; a < 2; a++) {
		begin(NULL);
		net_configure(n[0], n[1]);
		net_configure(n[1], n[0]);
		SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
		net_run(net, 3 * NET_S);
		net_restart(n[a], true);
		net_configure(n[a], n[!a]);
		net_run(net, 2 * NET_S);
		SL_EXPECT(net_carries(n[0], n[1]));
		SL_EXPECT_EQ(n[!a]->downs[SL_DOWN_RESTART], 1);
		end();
	}
}

/* A recorded msg1 of an earlier life, played again: looks like a restart, and must not cost the
 * link. */
struct record {
	uint8_t msg1[8][SL_MSG1_PACKET_BYTES];
	unsigned count;
	struct node *from;
};

static void
record_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	struct record *r = arg;

	(void)w, (void)to, (void)fate;
	if ((bytes[0] & 0x0f) == SL_PHASE_MSG1 && from == r->from && r->count < 8)
		memcpy(r->msg1[r->count++], bytes, len);
}

SL_TEST(links_life, recorded_msg1_displaces_nothing)
{
	struct record r = {0};
	struct sl_addr elsewhere = net_addr(1, 777);

	begin(NULL);
	r.from = n[0];
	net->tap = record_tap;
	net->tap_arg = &r;
	link_up(0);
	net_restart(n[0], true);
	link_up(0);
	SL_EXPECT_EQ(r.count, 2);
	/* Of the earlier life and of this one; at once, and when the link is old enough for a
	 * rekey. */
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < r.count; i++) {
			net_inject(net, &n[0]->addr, n[1], r.msg1[i], SL_MSG1_PACKET_BYTES);
			net_inject(net, &elsewhere, n[1], r.msg1[i], SL_MSG1_PACKET_BYTES);
		}
		net_run(net, 11 * NET_S);
		SL_EXPECT(net_carries(n[0], n[1]));
	}
	SL_EXPECT_EQ(n[1]->ups, 2);
	SL_EXPECT_EQ(n[1]->downs[SL_DOWN_RESTART], 1); /* the real one */
	SL_EXPECT_EQ(n[1]->downs[SL_DOWN_DEAD], 0);
	net_run(net, 150 * NET_S); /* and the rekey is not held up */
	SL_EXPECT(net_carries(n[0], n[1]));
	SL_EXPECT_GT(net_counter(n[1], SL_LINK_REKEY), 0);
	end();
}

/* --- goodbye --- */

SL_TEST(links_life, disconnect_then_redial)
{
	begin(NULL);
	link_up(0);
	uint64_t at = net->now_us;
	SL_EXPECT_EQ(sl_links_disconnect(n[1]->links, sl_identity_xonly(n[0]->identity),
			     SL_DISCONNECT_CONFIGURATION_CHANGE, net->now_us),
		0);
	net_run(net, 1 * NET_S);
	SL_EXPECT_EQ(n[1]->downs[SL_DOWN_REMOVED], 1);
	SL_EXPECT_EQ(n[0]->downs[SL_DOWN_DISCONNECT], 1);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_DISCONNECT_RX), 1);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 20 * NET_S));
	SL_EXPECT_EQ((net->now_us - at) / NET_S, 5);
	SL_EXPECT(net_carries(n[0], n[1]));
	end();
}

SL_TEST(links_life, shutdown_says_goodbye_to_all)
{
	begin(NULL);
	link_up(1);
	sl_links_shutdown(n[0]->links, SL_DISCONNECT_SHUTDOWN, net->now_us);
	net_run(net, NET_S);
	SL_EXPECT_EQ(n[1]->downs[SL_DOWN_DISCONNECT], 1);
	net_run(net, 60 * NET_S);
	/* It is dialled, and says nothing any more. */
	SL_EXPECT_EQ(n[0]->ups, 1);
	SL_EXPECT_GT(net_counter(n[0], SL_LINK_MSG1_REFUSED), 0);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG2_TX), 1); /* of before */
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_MSG1_TX), 0);
	end();
}

/* In portions, for queues that cannot take a goodbye to all at once. */
SL_TEST(links_life, shutdown_in_portions)
{
	begin(NULL);
	link_up(1);
	SL_EXPECT(sl_links_shutdown_some(n[0]->links, SL_DISCONNECT_SHUTDOWN, 0, net->now_us));
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_DISCONNECT_TX), 0);
	SL_EXPECT(!sl_links_shutdown_some(n[0]->links, SL_DISCONNECT_SHUTDOWN, 1, net->now_us));
	SL_EXPECT(!sl_links_shutdown_some(n[0]->links, SL_DISCONNECT_SHUTDOWN, 1, net->now_us));
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_DISCONNECT_TX), 1);
	net_run(net, NET_S);
	SL_EXPECT_EQ(n[1]->downs[SL_DOWN_DISCONNECT], 1);
	end();
}

/* --- silence --- */

SL_TEST(links_life, dead_after_thirty_seconds_of_silence)
{
	uint64_t at;

	begin(NULL);
	link_up(0);
	net_run(net, 20 * NET_S);
	n[1]->mute = true;
	at = net->now_us;
	net_run(net, 28 * NET_S);
	SL_EXPECT_EQ(n[0]->downs[SL_DOWN_DEAD], 0);
	net_run(net, 4 * NET_S);
	SL_EXPECT_EQ(n[0]->downs[SL_DOWN_DEAD], 1);
	SL_EXPECT_GE(n[0]->last_down_us - at, 29 * NET_S);
	SL_EXPECT_LE(n[0]->last_down_us - at, 31 * NET_S);
	end();
}

static uint64_t dial_at[32];
static unsigned dials;

static void
dial_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	static uint32_t last;

	(void)to, (void)fate, (void)len, (void)arg;
	if ((bytes[0] & 0x0f) != SL_PHASE_MSG1 || from != n[0] || sl_get32(bytes + 4) == last)
		return;
	last = sl_get32(bytes + 4);
	if (dials < 32)
		dial_at[dials++] = w->now_us;
}

/* Delays between the end of one try (30 s) and the next. */
static void
expect_backoff(unsigned first, const uint64_t *want_s, unsigned count)
{
	SL_EXPECT_GE(dials, first + count + 1);
	for (unsigned i = 0; i < count && first + i + 1 < dials; i++)
		SL_EXPECT_EQ((dial_at[first + i + 1] - dial_at[first + i] + NET_S / 2) / NET_S - 30,
			want_s[i]);
}

SL_TEST(links_life, backoff_times)
{
	const uint64_t want_s[] = {10, 20, 40, 80, 160, 300, 300};

	begin(NULL);
	dials = 0;
	net->tap = dial_tap;
	net->loss = 1.0;
	net_configure(n[0], n[1]);
	net_run(net, 1300 * NET_S);
	expect_backoff(0, want_s, 7);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_HANDSHAKE_TIMEOUT), dials);
	net->loss = 0;
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 331 * NET_S));
	end();
}

SL_TEST(links_life, dead_link_is_redialled_after_five_seconds)
{
	const uint64_t want_s[] = {10, 20, 40};
	struct sl_link_info info;

	begin(NULL);
	link_up(0);
	dials = 0;
	net->tap = dial_tap;
	net->loss = 1.0;
	net_run(net, 60 * NET_S);
	SL_EXPECT_EQ(n[0]->downs[SL_DOWN_DEAD], 1);
	SL_EXPECT_EQ((dial_at[0] - n[0]->last_down_us + NET_S / 2) / NET_S, 5);
	net_run(net, 300 * NET_S);
	expect_backoff(0, want_s, 3); /* goes on from 5 s: 10, 20, 40 */
	net->loss = 0;
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 300 * NET_S));
	SL_EXPECT(net_info(n[0], n[1], &info));
	SL_EXPECT_EQ(info.next_dial_us, 0);
	SL_EXPECT(net_carries(n[0], n[1]));
	end();
}

SL_TEST(links_life, inbound_only_peer_is_forgotten)
{
	struct sl_link_info info;

	begin(NULL);
	link_up(0);
	n[0]->mute = true;
	net_run(net, 60 * NET_S);
	SL_EXPECT_EQ(n[1]->downs[SL_DOWN_DEAD], 1);
	SL_EXPECT(!net_info(n[1], n[0], &info));
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_MSG1_TX), 0);
	end();
}

/* One way only: our frames arrive, theirs do not. We lose the link and dial again while they still
 * hold it. */
struct oneway {
	struct node *deaf;
};
static void
oneway_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	const struct oneway *o = arg;

	(void)w, (void)from, (void)bytes, (void)len;
	if (to == o->deaf)
		fate->copies = 0;
}

SL_TEST(links_life, redial_while_the_peer_holds_the_old_link)
{
	for (unsigned a = 0; a < 2; a++) {
		struct oneway o;

		begin(NULL);
		link_up(a);
		o.deaf = n[a];
		net->tap = oneway_tap;
		net->tap_arg = &o;
		net_run(net,
			32 * NET_S); /* a has lost it, b still hears... and has heard until then */
		SL_EXPECT_EQ(n[a]->downs[SL_DOWN_DEAD], 1);
		SL_EXPECT_EQ(n[!a]->downs[SL_DOWN_DEAD], 0);
		net->tap = NULL;
		SL_EXPECT(net_run_until_up(net, n[0], n[1], 10 * NET_S));
		net_run(net, 3 * NET_S);
		SL_EXPECT(net_carries(n[0], n[1]));
		SL_EXPECT_EQ(n[!a]->downs[SL_DOWN_DEAD], 0);
		/* The goodbye of the one that had lost it was heard. */
		SL_EXPECT_EQ(n[!a]->downs[SL_DOWN_DISCONNECT], 1);
		net_run(net, 60 * NET_S);
		SL_EXPECT(net_carries(n[0], n[1]));
		end();
	}
}

/* Same process, another dial of the same peer (an operator's disconnect whose goodbye got lost). */
SL_TEST(links_life, second_dial_in_one_process_life)
{
	for (unsigned young = 0; young < 2; young++) {
		uint64_t at;

		begin(NULL);
		link_up(0);
		if (!young)
			net_run(net, 40 * NET_S);
		net->loss = 1;
		SL_EXPECT_EQ(sl_links_disconnect(n[0]->links, sl_identity_xonly(n[1]->identity),
				     SL_DISCONNECT_CONFIGURATION_CHANGE, net->now_us),
			0);
		net->loss = 0;
		n[0]->addr.udp_port = 3333; /* and from another address */
		net_configure(n[0], n[1]);
		at = net->now_us;
		SL_EXPECT(net_run_until_up(net, n[0], n[1], 10 * NET_S));
		printf("second dial over a link of %s: up after %u ms\n", young ? "1 s" : "41 s",
			(unsigned)((net->now_us - at) / 1000));
		net_run(net, 3 * NET_S);
		SL_EXPECT(net_carries(n[0], n[1]));
		SL_EXPECT_EQ(n[1]->downs[SL_DOWN_DEAD], 0);
		/* Who dialled anew has forgotten what it was told. */
		SL_EXPECT_EQ(n[1]->renewals, 1);
		end();
	}
}

/* --- moving about --- */

SL_TEST(links_life, roaming)
{
	struct sl_link_info info;

	begin(NULL);
	link_up(0);
	net_run(net, 3 * NET_S);
	n[0]->addr.udp_port = 9999;
	SL_EXPECT_EQ(net_data(n[0], n[1]), 0);
	net_run(net, 20 * NET_MS);
	SL_EXPECT(net_info(n[1], n[0], &info));
	SL_EXPECT_EQ(info.addr.udp_port, 9999);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_ROAM), 1);
	SL_EXPECT(net_carries(n[0], n[1]));
	net_run(net, 200 * NET_S); /* the rekey finds the new address too */
	SL_EXPECT(net_carries(n[0], n[1]));
	SL_EXPECT_EQ(n[0]->ups + n[1]->ups, 2);
	end();
}

/* n[0] knows two addresses of n[1]: where it is, and another. */
static struct sl_addr
two_addresses(void)
{
	struct sl_peer_config c = {.addr_count = 2, .auto_connect = true, .auto_reconnect = true};
	struct sl_addr other = n[1]->addr;

	other.udp_port = 7777;
	c.addrs[0] = n[1]->addr;
	c.addrs[1] = other;
	memcpy(c.xonly, sl_identity_xonly(n[1]->identity), sizeof(c.xonly));
	SL_EXPECT_EQ(sl_links_peer_configure(n[0]->links, &c, net->now_us), 0);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], NET_S));
	net_run(net, 3 * NET_S);
	return other;
}

static bool
only_this(void *arg, const struct sl_addr *addr)
{
	return sl_addr_equal(arg, addr);
}

SL_TEST(links_life, another_address_when_a_port_is_down)
{
	struct sl_link_info info;
	struct sl_addr other, nowhere = {0};
	uint32_t id;

	begin(NULL);
	other = two_addresses();
	id = net_peer_id(n[0], n[1]);
	/* No other way: nothing changes. */
	SL_EXPECT_EQ(sl_links_reroute(n[0]->links, id, only_this, &nowhere, net->now_us), -ENETUNREACH);
	SL_EXPECT_EQ(sl_links_reroute(n[0]->links, id, only_this, &n[1]->addr, net->now_us), -ENETUNREACH);
	SL_EXPECT_EQ(sl_links_reroute(n[0]->links, id + 1, only_this, &other, net->now_us), -ENOTCONN);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_REROUTE), 0);
	SL_EXPECT(net_carries(n[0], n[1]));
	/* It is heard there, and by that it learns where we are. */
	n[1]->addr = other;
	n[0]->addr.udp_port = 8888;
	SL_EXPECT_EQ(sl_links_reroute(n[0]->links, id, only_this, &other, net->now_us), 0);
	net_run(net, 20 * NET_MS);
	SL_EXPECT(net_info(n[1], n[0], &info));
	SL_EXPECT_EQ(info.addr.udp_port, 8888);
	SL_EXPECT(net_info(n[0], n[1], &info));
	SL_EXPECT_EQ(info.addr.udp_port, 7777);
	SL_EXPECT(net_carries(n[0], n[1]));
	net_run(net, 60 * NET_S);
	SL_EXPECT(net_carries(n[0], n[1]));
	SL_EXPECT_EQ(n[0]->ups + n[1]->ups, 2);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_LINK_DEAD), 0);
	end();
}

/* Both quiet but for heartbeats, the first of which on the new way is lost: the neighbour there is asked for only now. */
static void
first_lost_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len, struct fate *fate, void *arg)
{
	bool *lost = arg;

	(void)w, (void)to, (void)bytes, (void)len;
	if (from == n[0] && !*lost) {
		fate->copies = 0;
		*lost = true;
	}
}

SL_TEST(links_life, another_address_of_a_quiet_link)
{
	struct sl_links_config config;
	struct sl_addr other;
	bool lost = false;

	sl_links_config_default(&config);
	config.mmp_mode = 2;
	begin(&config);
	other = two_addresses();
	net_run(net, 20 * NET_S + NET_S / 2);
	n[1]->addr = other;
	net->tap = first_lost_tap;
	net->tap_arg = &lost;
	SL_EXPECT_EQ(sl_links_reroute(n[0]->links, net_peer_id(n[0], n[1]), only_this, &other, net->now_us), 0);
	net_run(net, 60 * NET_S);
	SL_EXPECT(lost);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_LINK_DEAD), 0);
	SL_EXPECT_EQ(n[0]->ups + n[1]->ups, 2);
	SL_EXPECT(net_carries(n[0], n[1]));
	end();
}

static void
silence_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len, struct fate *fate, void *arg)
{
	(void)w, (void)to, (void)bytes, (void)len, (void)arg;
	if (from == n[1])
		fate->copies = 0;
}

SL_TEST(links_life, another_address_where_nobody_answers)
{
	struct sl_addr other;
	uint64_t at;

	begin(NULL);
	other = two_addresses();
	/* What it sends would take us back to where it is: this way is down. */
	net->tap = silence_tap;
	net_run(net, NET_S);
	SL_EXPECT_EQ(sl_links_reroute(n[0]->links, net_peer_id(n[0], n[1]), only_this, &other, net->now_us), 0);
	at = net->now_us;
	while (net_peer_id(n[0], n[1]) != SL_PEER_NONE && net->now_us < at + 60 * NET_S)
		net_run(net, 100 * NET_MS);
	SL_EXPECT_EQ(net_counter(n[0], SL_LINK_LINK_DEAD), 1);
	/* As long as a quiet peer may take (10 s), and far from the dead timeout. */
	SL_EXPECT_GE(net->now_us - at, 10 * NET_S + SL_REROUTE_US);
	SL_EXPECT_LE(net->now_us - at, 10 * NET_S + SL_REROUTE_US + 2 * NET_S);
	end();
}

static void
hold_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	unsigned *left = arg;

	(void)w, (void)to, (void)bytes, (void)len;
	if (from == n[0] && *left) {
		*left -= 1;
		fate->delay_us[0] = 500 * NET_MS;
	}
}

SL_TEST(links_life, a_late_frame_from_the_old_address_moves_nothing)
{
	struct sl_link_info info;
	unsigned hold = 1;

	begin(NULL);
	link_up(0);
	net->tap = hold_tap;
	net->tap_arg = &hold;
	SL_EXPECT_EQ(net_data(n[0], n[1]), 0); /* overtaken by the next */
	n[0]->addr.udp_port = 9999;
	SL_EXPECT_EQ(net_data(n[0], n[1]), 0);
	net_run(net, 600 * NET_MS);
	SL_EXPECT_EQ(n[1]->data_received, 2);
	SL_EXPECT(net_info(n[1], n[0], &info));
	SL_EXPECT_EQ(info.addr.udp_port, 9999);
	SL_EXPECT_EQ(net_counter(n[1], SL_LINK_ROAM), 1);
	end();
}

/* --- what the operator is told --- */

static char lines[64][200];
static unsigned line_count;

static void
on_log(void *arg, enum sl_log_level level, enum sl_log_topic topic, const char *fmt, va_list ap)
{
	(void)arg;
	SL_EXPECT_EQ(topic, SL_TOPIC_LINK);
	SL_EXPECT(level == SL_LOG_INFO || level == SL_LOG_NOTICE);
	if (line_count < 64)
		vsnprintf(lines[line_count++], sizeof(lines[0]), fmt, ap);
}

/* The next line begins so, names the peer by both ends of its npub, and no more of it. */
static void
expect_line(unsigned *at, const char *begins, const struct node *peer, const char *holds)
{
	char npub[SL_NPUB_SIZE], name[24];

	sl_npub_format(npub, sl_identity_xonly(peer->identity));
	snprintf(name, sizeof(name), "%.9s...%s", npub, npub + 59);
	SL_ASSERT(*at < line_count);
	SL_EXPECT_MSG(strncmp(lines[*at], begins, strlen(begins)) == 0, "%s", lines[*at]);
	SL_EXPECT_MSG(strstr(lines[*at], name) != NULL, "%s", lines[*at]);
	SL_EXPECT_MSG(strstr(lines[*at], holds) != NULL, "%s", lines[*at]);
	npub[16] = '\0';
	SL_EXPECT(strstr(lines[*at], npub) == NULL);
	++*at;
}

static bool
nobody(void *arg, const uint8_t xonly[SL_XONLY_BYTES])
{
	(void)arg, (void)xonly;
	return false;
}

static void
lose_handshakes_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes, size_t len,
	struct fate *fate, void *arg)
{
	(void)w, (void)from, (void)to, (void)len, (void)arg;
	if (bytes[0] & 0x0f)
		fate->copies = 0;
}

/* The first dial's frames are lost, but for one that is late. */
static void
late_dial_tap(struct net *w, struct node *from, struct node *to, const uint8_t *bytes,
	size_t len, struct fate *fate, void *arg)
{
	unsigned *frames = arg; /* of the first dial */

	(void)w, (void)to, (void)len;
	if (bytes[0] != SL_PHASE_ESTABLISHED || from != n[0])
		return;
	if ((*frames)++ == 0)
		fate->delay_us[0] = 5 * NET_S;
	else
		fate->copies = 0;
}

/* It comes when its sender has another session, and has been heard on that. */
SL_TEST(links_life, a_late_frame_of_a_dial_given_up)
{
	unsigned frames = 0;

	net = net_create();
	net_pair(net, n, NULL);
	net->tap = late_dial_tap;
	net->tap_arg = &frames;
	net_configure(n[0], n[1]);
	net_run(net, 3 * NET_S); /* more than twins are apart (link_limits.h) */
	SL_EXPECT_EQ(n[0]->ups, 1);
	SL_EXPECT_EQ(n[1]->ups, 0);
	SL_EXPECT_GE(frames, 1);
	SL_EXPECT_EQ(sl_links_disconnect(n[0]->links, sl_identity_xonly(n[1]->identity),
			     SL_DISCONNECT_OTHER, net->now_us),
		0);
	net->tap = NULL;
	net_configure(n[0], n[1]);
	SL_EXPECT(net_run_until_up(net, n[0], n[1], 2 * NET_S));
	/* The late frame is here, and the doubt has been thought. */
	net_run(net, 6 * NET_S);
	for (unsigned s = 0; s < 30; s++) {
		SL_EXPECT(net_carries(n[0], n[1]));
		net_run(net, NET_S);
	}
	SL_EXPECT_EQ(n[1]->ups, 1);
	SL_EXPECT_EQ(n[0]->downs[SL_DOWN_DEAD] + n[1]->downs[SL_DOWN_DEAD], 0);
	net_destroy(net);
}

SL_TEST(links_life, one_line_a_change)
{
	struct sl_links_config c;
	unsigned at = 0;

	sl_links_config_default(&c);
	begin(&c);
	n[1]->config.rekey_enabled = false;
	net_restart(n[1], true);
	line_count = 0;
	sl_log_set(on_log, NULL);
	link_up(0);
	expect_line(&at, "up: ", n[1], "we dialled, alias node-");
	expect_line(&at, "up: ", n[0], "it dialled");
	/* Rekeys without an answer, several times over. */
	net->tap = lose_handshakes_tap;
	net_run(net, 300 * NET_S);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY_TIMEOUT), 2);
	expect_line(&at, "rekey failed: ", n[1], "no answer");
	/* It works again, and fails again. */
	net->tap = NULL;
	net_run(net, 130 * NET_S);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_REKEY), 1);
	SL_EXPECT_EQ(line_count, at);
	net->tap = lose_handshakes_tap;
	net_run(net, 300 * NET_S);
	expect_line(&at, "rekey failed: ", n[1], "no answer");
	net->tap = NULL;
	n[1]->mute = true;
	net_run(net, 34 * NET_S);
	SL_ASSERT(line_count == at + 2);
	at += 2;
	SL_EXPECT(strstr(lines[at - 1], "down: ") && strstr(lines[at - 1], "nothing heard"));
	/* Refused: said once, however often it is tried. */
	net_gate(n[0], nobody, NULL);
	net_run(net, 300 * NET_S);
	SL_EXPECT_GE(net_counter(n[0], SL_LINK_NOT_ALLOWED), 2);
	expect_line(&at, "refused: ", n[1], "access list");
	SL_EXPECT_EQ(line_count, at);
	net_run(net, 700 * NET_S); /* again after ten minutes */
	expect_line(&at, "refused: ", n[1], "access list");
	SL_EXPECT_EQ(line_count, at);
	sl_log_set(NULL, NULL);
	end();
}

/* --- measured at last: a link far below a millisecond --- */

SL_TEST(links_life, short_links_are_measured)
{
	for (unsigned us = 20; us < 30000; us *= 6) {
		const struct sl_link_metrics *m;

		begin(NULL);
		net->delay_us = us;
		link_up(0);
		net_run(net, 30 * NET_S);
		for (unsigned i = 0; i < 2; i++) {
			m = &n[i]->seen[net_peer_id(n[i], n[!i])].metrics;
			SL_EXPECT(m->measured);
			/* Echo and dwell are whole milliseconds; a report waits in the ring. */
			SL_EXPECT_LE(m->srtt_us, 2.0 * us + 2500);
			SL_EXPECT_GE(m->srtt_us + 1500, 2.0 * us);
			SL_EXPECT(m->etx >= 1 && m->etx < 1.1);
			SL_EXPECT(m->cost >= 1 &&
				  m->cost < 1.1 * (1 + (2.0 * us / 1000 + 2.5) / 100));
		}
		end();
	}
}

/* --- an engine that fails, as a crypto device may --- */

static bool engine_fails;

static unsigned
failing_seal(struct sl_aead_ctx *ctx, struct sl_aead_op *ops, unsigned count)
{
	return engine_fails ? 0 : sl_aead_backend_find("sodium")->seal(ctx, ops, count);
}

/* What could not be sealed is plain text, and stays here. */
SL_TEST(links_life, what_is_not_sealed_is_not_sent)
{
	struct sl_aead_backend failing = *sl_aead_backend_find("sodium");
	uint64_t packets;

	failing.seal = failing_seal;
	engine = &failing;
	begin(NULL);
	link_up(0);
	engine_fails = true;
	packets = net->packets;
	SL_EXPECT_EQ(net_data(n[0], n[1]), -EIO);
	net_run(net, 15 * NET_S); /* heartbeats and reports are due meanwhile */
	SL_EXPECT_EQ(net->packets, packets);
	for (unsigned i = 0; i < 2; i++)
		SL_EXPECT_GE(net_counter(n[i], SL_LINK_SEAL_FAILED), 1);
	engine_fails = false;
	net_run(net, NET_S);
	SL_EXPECT(net_carries(n[0], n[1]));
	end();
	engine = NULL;
}
