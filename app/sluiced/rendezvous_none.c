/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without libwebsockets: config_check.c has refused the key that would start it. */
#include "rendezvous.h"
#include <errno.h>

int
sl_rendezvous_start(struct sl_daemon *d)
{
	(void)d;
	return 0;
}
void
sl_rendezvous_stop(struct sl_daemon *d)
{
	(void)d;
}
int
sl_rendezvous_fd(const struct sl_daemon *d)
{
	(void)d;
	return -1;
}
bool
sl_rendezvous_work(struct sl_daemon *d)
{
	(void)d;
	return false;
}
void
sl_rendezvous_second(struct sl_daemon *d)
{
	(void)d;
}
const struct sl_advert *
sl_rendezvous_advert(const struct sl_daemon *d, uint32_t conf_peer)
{
	(void)d;
	(void)conf_peer;
	return NULL;
}
void
sl_rendezvous_expect_dial(struct sl_daemon *d, uint32_t conf_peer, uint64_t dial_us)
{
	(void)d;
	(void)conf_peer;
	(void)dial_us;
}
bool
sl_rendezvous_listening(const struct sl_daemon *d)
{
	(void)d;
	return false;
}
int
sl_rendezvous_signal(struct sl_daemon *d, const uint8_t xonly[SL_XONLY_BYTES], const char *text)
{
	(void)d;
	(void)xonly;
	(void)text;
	return -ENOTCONN;
}
