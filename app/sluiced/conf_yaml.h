/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CONF_YAML_H
#define SL_CONF_YAML_H
/*
 * YAML text -> a plain tree in which every node knows its line and column. The subset that a
 * configuration needs: one document of mappings, sequences and scalars. Anchors, aliases, tags,
 * merge keys and complex keys are refused by name, a key that stands twice in a mapping too, so
 * that what is read is what is written and no input can grow.
 *
 * Bounded: text to SL_YAML_BYTES_MAX, depth to SL_YAML_DEPTH_MAX, nodes to SL_YAML_NODES_MAX.
 * Parsing is libfyaml's (its events, not its documents). Scalars may hold the node's secret:
 * sl_yaml_free() wipes them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_YAML_BYTES_MAX (1u << 20)
#define SL_YAML_DEPTH_MAX 12
#define SL_YAML_NODES_MAX 65536
#define SL_YAML_KEYS_MAX 256 /* in one mapping */

struct sl_pos {
	uint32_t line, column; /* from 1; line 0 = no place in the file */
};

/* What is wrong, and where. The first finding wins: later calls of sl_conf_fail() change nothing.
 */
struct sl_conf_error {
	struct sl_pos at;
	char text[240];
};
/* Always returns -EINVAL. */
int sl_conf_fail(struct sl_conf_error *error, struct sl_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

enum sl_yaml_kind { SL_YAML_SCALAR, SL_YAML_MAPPING, SL_YAML_SEQUENCE };

struct sl_yaml {
	uint8_t kind;
	bool quoted; /* scalar in quotes or a block: always text, never null, a number or a boolean
		      */
	struct sl_pos at;
	char *key; /* within a mapping; else NULL */
	struct sl_pos key_at;
	char *text; /* scalar; NUL ended, no NUL inside */
	size_t text_len;
	struct sl_yaml *first, *last, *next; /* children in order */
	uint32_t children;
};

/* 0 and the root (NULL for an empty document), or -EINVAL / -ENOMEM with error filled. */
int sl_yaml_parse(struct sl_yaml **root, const char *text, size_t len, struct sl_conf_error *error)
	__attribute__((warn_unused_result));
void sl_yaml_free(struct sl_yaml *root);

/* Null as YAML's core schema has it: empty, ~, null. */
bool sl_yaml_is_null(const struct sl_yaml *n);
const char *sl_yaml_kind_name(
	const struct sl_yaml *n); /* "a mapping", "a list", "text" ... for messages */

#ifdef __cplusplus
}
#endif
#endif
