/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A STUN answer and a punch packet, the same bytes as both. Checked: an address that is taken has a family and a port; what is
 * refused leaves it alone; the answer to a query ends it or does not touch it; a punch packet reads as what it is built from.
 */
#include "fuzz.h"
#include "sl_punch.h"
#include "sl_stun.h"
#include <errno.h>
#include <string.h>

static int
send(void *arg, const struct sl_addr *to, const uint8_t *packet, size_t len)
{
	(void)arg;
	(void)to;
	FUZZ_CHECK(packet != NULL && (len == SL_STUN_HEADER_BYTES || len == SL_PUNCH_BYTES));
	return 0;
}

static void
stun(const uint8_t *p, size_t len)
{
	struct sl_addr mapped, before, servers[2] = {{.kind = SL_ADDR_UDP4, .udp_port = 3478, .u.ip4 = {192, 0, 2, 1}}};
	uint8_t id[SL_STUN_ID_BYTES] = {0};
	struct sl_stun_query q;
	unsigned code;
	int rc;

	memset(&mapped, 0xaa, sizeof(mapped));
	before = mapped;
	if (len >= SL_STUN_HEADER_BYTES)
		memcpy(id, p + 8, sizeof(id));
	rc = sl_stun_response_parse(p, len, id, &mapped, &code);
	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -EPROTO || rc == -EREMOTEIO || rc == -ENODATA || rc == -ENOMSG);
	FUZZ_CHECK(code <= 7 * 100 + 255);
	if (rc == 0)
		FUZZ_CHECK((mapped.kind == SL_ADDR_UDP4 || mapped.kind == SL_ADDR_UDP6) && mapped.udp_port != 0);
	else
		FUZZ_CHECK(memcmp(&mapped, &before, sizeof(mapped)) == 0);
	servers[1] = servers[0];
	servers[1].u.ip4[3] = 2;
	sl_stun_query_begin(&q, servers, 2, 0, 0, send, NULL);
	memcpy(q.id, id, sizeof(id));
	if (sl_stun_query_packet(&q, &servers[0], p, len, 1, send, NULL))
		FUZZ_CHECK(rc == 0 ? q.state == SL_STUN_DONE : q.state == SL_STUN_ASKING && q.server == 1);
	else
		FUZZ_CHECK(q.state == SL_STUN_ASKING && q.server == 0 && rc != 0);
}

static void
punch(const uint8_t *p, size_t len)
{
	const struct sl_addr from = {.kind = SL_ADDR_UDP4, .udp_port = 1, .u.ip4 = {192, 0, 2, 9}};
	const struct sl_punch_times times = {2000, 200, 10000, 10000};
	uint8_t again[SL_PUNCH_BYTES];
	enum sl_punch_kind kind;
	const uint8_t *hash;
	uint32_t sequence;
	struct sl_punch s;
	bool read = sl_punch_parse(&kind, &sequence, &hash, p, len);

	if (read) {
		sl_punch_build(again, kind, sequence, hash);
		FUZZ_CHECK(memcmp(again, p, sizeof(again)) == 0);
	}
	sl_punch_begin(&s, "sess-1", &from, 1, &times, 0);
	if (sl_punch_packet(&s, &from, p, len, 1, send, NULL))
		FUZZ_CHECK(read && memcmp(hash, s.hash, sizeof(s.hash)) == 0 && s.state == SL_PUNCH_DONE);
	else
		FUZZ_CHECK(s.state == SL_PUNCH_RUNNING);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(sl_crypto_init() == 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	stun(data, size);
	punch(data, size);
	return 0;
}
