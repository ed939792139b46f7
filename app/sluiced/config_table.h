/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CONFIG_TABLE_H
#define SL_CONFIG_TABLE_H
/*
 * One row a key. A row's place in the file is `path`; "x[]" stands for each element of list x, and
 * the keys of a transport instance stand below its type, whether the instances are named or not.
 * `scope` says which struct `offset` counts in. config.c walks the file by this table,
 * config_print.c writes from it.
 */
#include "config.h"

enum sl_key_type {
	SL_KEY_BOOL,
	SL_KEY_UINT, /* target of `size` bytes */
	SL_KEY_REAL,
	SL_KEY_TEXT, /* char[size] */
	SL_KEY_ENUM, /* uint8_t, index into choices */
	SL_KEY_CUSTOM,
	SL_KEY_LIST, /* pointer at offset, uint32_t count at count_offset, elements of `size` bytes
		      */
	SL_KEY_INSTANCES, /* the same, from one block or a mapping of named blocks */
	SL_KEY_OFF,	  /* a switch of FIPS for what we lack: may only be false */
	SL_KEY_LEFT_OUT,  /* of FIPS, without effect here: a warning */
	SL_KEY_REFUSED,	  /* of FIPS, not supported: an error */
};

enum sl_key_scope {
	SL_SCOPE_ROOT,
	SL_SCOPE_UDP,
	SL_SCOPE_ETHERNET,
	SL_SCOPE_PEER,
	SL_SCOPE_ADDRESS,
	SL_SCOPE_PORT,
	SL_SCOPE_IFADDR,
	SL_SCOPE_ROUTE,
	SL_SCOPE_CPU,
	SL_SCOPE_ARG,
	SL_SCOPE_ADVERT_RELAY,
	SL_SCOPE_DM_RELAY,
	SL_SCOPE_STUN_SERVER,
};

#define SL_KEY_SECRET 0x01 /* never printed */
#define SL_KEY_REQUIRED 0x02
#define SL_KEY_UNSET 0x04 /* no default: stays zero, which the bounds exclude */

#define SL_WHY_SIZE 160
/* text -> target; 0 or -1 with why. */
typedef int (*sl_key_parse_fn)(void *target, const char *text, char why[SL_WHY_SIZE]);
typedef void (*sl_key_format_fn)(char out[SL_CONF_TEXT_SIZE], const void *target);

struct sl_key {
	const char *path;
	uint8_t type, scope, flags;
	size_t size, offset, count_offset;
	uint8_t item_scope; /* LIST, INSTANCES */
	double min, max;    /* UINT, REAL; LIST: most elements */
	const char *def;    /* as the file would have it */
	const char *unit;
	const char *const *choices; /* NULL-ended */
	sl_key_parse_fn parse;
	sl_key_format_fn format;
	const char *doc;
};

extern const struct sl_key sl_keys[];
extern const unsigned sl_key_count;
#define SL_KEYS_MAX 256

/* "host:port". 0, or -1 with why. */
int sl_conf_endpoint_parse(struct sl_conf_endpoint *e, const char *text, char why[SL_WHY_SIZE]);
/* The whole-file checks after parsing (config_check.c): names, references, what fits together. */
int sl_config_check(struct sl_config *c, struct sl_conf_error *error) SL_MUST_CHECK;
void sl_config_warn(struct sl_config *c, struct sl_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
