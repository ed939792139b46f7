/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CTL_FIELDS_H
#define SL_CTL_FIELDS_H
/* Fields of the daemon's answers, as values and as cells of a table. What is missing is 0, false or "-". */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "../../lib/overlay/sl_text.h"
#include "pages.h"
#include "table.h"

static inline const char *
text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static inline uint64_t
number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

static inline double
real(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static inline bool
flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static inline bool
has(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v && !json_is_null(v);
}

/* npub1abcd...wxyz and 1a2b3c4d.. unless wide. */
static inline const char *
shorten(char out[80], const char *s, const struct sl_page_options *opt)
{
	size_t len = strlen(s);

	if (opt->wide || len < 24)
		snprintf(out, 80, "%s", s);
	else if (!strncmp(s, "npub1", 5))
		snprintf(out, 80, "%.9s...%s", s, s + len - 4);
	else
		snprintf(out, 80, "%.8s..", s);
	return out;
}

static inline void
row(FILE *out, const char *name, const char *value)
{
	char shown[640];

	snprintf(shown, sizeof(shown), "%s", value);
	sl_text_clean(shown);
	fprintf(out, "%-16s %s\n", name, shown);
}

static inline void
cell_age(struct sl_table *t, const json_t *o, const char *key)
{
	char s[SL_SHORT_SIZE];

	sl_table_cell(t, "%s", has(o, key) ? sl_short_age(s, real(o, key)) : "-");
}

static inline void
cell_count(struct sl_table *t, const json_t *o, const char *key)
{
	char s[SL_SHORT_SIZE];

	sl_table_cell(t, "%s", sl_short_count(s, number(o, key)));
}

static inline void
cell_bytes(struct sl_table *t, const json_t *o, const char *key)
{
	char s[SL_SHORT_SIZE];

	sl_table_cell(t, "%s", sl_short_bytes(s, number(o, key)));
}

/* "1 worker", "2 workers" */
static inline const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#endif
