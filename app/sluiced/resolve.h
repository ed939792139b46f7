/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_RESOLVE_H
#define SL_RESOLVE_H
/*
 * Host names of peers: a helper thread asks the system's resolver, so that a slow name server costs
 * control nothing. Control adds names, says which are wanted (their peer is down), and
 * fetches answers when the event descriptor is readable. A name is asked for at once, then every 60
 * s while wanted; after a failure every 10 s. A failed look-up leaves the last answer standing.
 */
#include <stdbool.h>
#include <stdint.h>

struct sl_resolver;
#define SL_RESOLVE_ADDRS 4
#define SL_RESOLVE_NAMES_MAX 4096

struct sl_resolved {
	struct {
		uint8_t family; /* 4, 6 */
		uint8_t ip[16];
	} addrs[SL_RESOLVE_ADDRS];
	unsigned count;
	int error; /* of the latest look-up: 0 or an EAI_ code */
};

/* NULL and errno. */
struct sl_resolver *sl_resolver_create(void);
/* Before start. Returns the name's handle (the same for the same name), or -ENOMEM. */
int sl_resolver_add(struct sl_resolver *r, const char *host);
/* Starts the thread if there is a name, or names may come later. 0 or -errno. */
int sl_resolver_start(struct sl_resolver *r, bool later);
/*
 * A handle of the caller's own, whose name changes: -1 gets a new one. The answer to the name before is forgotten. The handle, or
 * -ENOMEM. At any time.
 */
int sl_resolver_rename(struct sl_resolver *r, int handle, const char *host);
/* Readable when an answer changed; -1 when there is no thread. */
int sl_resolver_fd(const struct sl_resolver *r);
void sl_resolver_drain(struct sl_resolver *r);
void sl_resolver_want(struct sl_resolver *r, int handle, bool wanted);
void sl_resolver_get(struct sl_resolver *r, int handle, struct sl_resolved *out);
int sl_resolver_count(const struct sl_resolver *r);
const char *sl_resolver_host(const struct sl_resolver *r, int handle);
/* Never waits for a look-up that is under way: its thread is left to end with the process. */
void sl_resolver_destroy(struct sl_resolver *r);

#endif
