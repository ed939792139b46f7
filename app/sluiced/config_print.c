/* SPDX-License-Identifier: BSD-3-Clause */
#include "config_table.h"
#include <stdlib.h>

/*
 * The effective configuration in the table's order. Sections are opened as their first key comes; a
 * row belongs to the struct being printed when its scope is the struct's.
 */

static uint64_t
load_uint(const char *p, size_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		memcpy(&v2, p, 2);
		return v2;
	case 4:
		memcpy(&v4, p, 4);
		return v4;
	default:
		memcpy(&v8, p, 8);
		return v8;
	}
}

static void
print_quoted(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', out);
		if (*s == '\t')
			fputs("\\t", out);
		else if (*s == '\n')
			fputs("\\n", out);
		else if (*s == '\r')
			fputs("\\r", out);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static void
print_value(FILE *out, const struct sl_key *k, const char *base)
{
	const char *p = base + k->offset;
	char text[SL_CONF_TEXT_SIZE];
	double d;

	switch (k->type) {
	case SL_KEY_BOOL:
		fputs(*(const bool *)p ? "true" : "false", out);
		break;
	case SL_KEY_UINT:
		fprintf(out, "%llu", (unsigned long long)load_uint(p, k->size));
		break;
	case SL_KEY_REAL:
		memcpy(&d, p, sizeof(d));
		fprintf(out, "%.15g", d);
		break;
	case SL_KEY_ENUM:
		fputs(k->choices[*(const uint8_t *)p], out);
		break;
	case SL_KEY_TEXT:
		print_quoted(out, p);
		break;
	default:
		k->format(text, p);
		if (k->parse && text[0] >= '0' && text[0] <= '9' && !strpbrk(text, ":./"))
			fputs(text, out);
		else
			print_quoted(out, text);
	}
}

static bool
is_unset(const struct sl_key *k, const char *base)
{
	const char *p = base + k->offset;

	if (!(k->flags & SL_KEY_UNSET))
		return false;
	for (size_t i = 0; i < k->size; i++)
		if (p[i])
			return false;
	return true;
}

static void
pad(FILE *out, unsigned indent)
{
	fprintf(out, "%*s", (int)indent, "");
}

static void print_scope(
	FILE *out, uint8_t scope, const char *prefix, const char *base, unsigned indent, bool dash);

static void
print_items(FILE *out, const struct sl_key *k, const char *base, unsigned indent)
{
	const char *items = *(char *const *)(base + k->offset);
	uint32_t count = *(const uint32_t *)(base + k->count_offset);
	char path[SL_CONF_TEXT_SIZE];
	const struct sl_key *plain = NULL;

	snprintf(path, sizeof(path), k->type == SL_KEY_LIST ? "%s[]" : "%s", k->path);
	for (unsigned i = 0; i < sl_key_count; i++)
		if (sl_keys[i].scope == k->item_scope && !strcmp(sl_keys[i].path, path))
			plain = &sl_keys[i];
	if (k->type == SL_KEY_LIST && (plain || !count)) {
		fputs(" [", out);
		for (uint32_t i = 0; i < count; i++) {
			fputs(i ? ", " : "", out);
			print_value(out, plain, items + i * k->size);
		}
		fputs("]\n", out);
		return;
	}
	if (k->type == SL_KEY_INSTANCES && !count) {
		fputs(" {}\n", out);
		return;
	}
	fputc('\n', out);
	for (uint32_t i = 0; i < count; i++) {
		const char *item = items + i * k->size;
		const char *name = item + sizeof(struct sl_pos);

		if (k->type == SL_KEY_LIST) {
			print_scope(out, k->item_scope, path, item, indent + 4, true);
		} else if (name[0]) {
			pad(out, indent + 2);
			print_quoted(out, name);
			fputs(":\n", out);
			print_scope(out, k->item_scope, path, item, indent + 4, false);
		} else {
			print_scope(out, k->item_scope, path, item, indent + 2, false);
		}
	}
}

/* Prints the headings of sections that `path` is in and `open` is not; returns the depth of its
 * last part. */
static unsigned
open_sections(FILE *out, const char *path, char *open, unsigned indent)
{
	const char *p = path;
	unsigned depth = 0;

	for (const char *dot; (dot = strchr(p, '.')) != NULL; p = dot + 1, depth++) {
		size_t len = (size_t)(dot - path) + 1;

		if (strncmp(open, path, len)) {
			pad(out, indent + 2 * depth);
			fprintf(out, "%.*s:\n", (int)(dot - p), p);
			memcpy(open, path, len);
			open[len] = 0;
		}
	}
	return depth;
}

static void
print_scope(
	FILE *out, uint8_t scope, const char *prefix, const char *base, unsigned indent, bool dash)
{
	char open[SL_CONF_TEXT_SIZE] = "";
	size_t skip = prefix[0] ? strlen(prefix) + 1 : 0;

	for (unsigned i = 0; i < sl_key_count; i++) {
		const struct sl_key *k = &sl_keys[i];
		unsigned depth, column;
		const char *name;
		bool none;

		if (k->scope != scope || k->type > SL_KEY_INSTANCES || strlen(k->path) < skip)
			continue;
		/* Absent is not the same as a block of defaults: nothing stands for nothing. */
		if (k->type == SL_KEY_INSTANCES && !*(const uint32_t *)(base + k->count_offset))
			continue;
		depth = open_sections(out, k->path + skip, open, indent);
		column = indent + 2 * depth;
		none = is_unset(k, base) || (k->flags & SL_KEY_SECRET);
		if (dash) {
			pad(out, column - 2);
			fputs("- ", out);
			dash = false;
		} else {
			pad(out, column);
		}
		if (none)
			fputs("# ", out);
		name = strrchr(k->path + skip, '.');
		fprintf(out, "%s:", name ? name + 1 : k->path + skip);
		if (none) {
			fputs(is_unset(k, base) ? " unset\n" : " not shown\n", out);
		} else if (k->type == SL_KEY_LIST || k->type == SL_KEY_INSTANCES) {
			print_items(out, k, base, column);
		} else {
			fputc(' ', out);
			print_value(out, k, base);
			fputc('\n', out);
		}
	}
}

void
sl_config_print(FILE *out, const struct sl_config *c)
{
	print_scope(out, SL_SCOPE_ROOT, "", (const char *)c, 0, false);
}

/* --- reference ------------------------------------------------------------------------------ */

static void
print_type(FILE *out, const struct sl_key *k)
{
	switch (k->type) {
	case SL_KEY_BOOL:
		fputs("true, false", out);
		return;
	case SL_KEY_UINT:
		fprintf(out, "%.0f .. %.0f%s%s", k->min, k->max, k->unit && k->unit[0] ? " " : "",
			k->unit ? k->unit : "");
		return;
	case SL_KEY_REAL:
		fprintf(out, "%g .. %g%s%s", k->min, k->max, k->unit && k->unit[0] ? " " : "",
			k->unit ? k->unit : "");
		return;
	case SL_KEY_LIST:
		fprintf(out, "list, up to %.0f", k->max);
		return;
	case SL_KEY_INSTANCES:
		fprintf(out, "block, or up to %.0f named", k->max);
		return;
	default:
		break;
	}
	if (!k->choices) {
		fputs("text", out);
		return;
	}
	for (unsigned i = 0; k->choices[i]; i++)
		fprintf(out, "%s%s", i ? ", " : "", k->choices[i]);
}

void
sl_config_print_keys(FILE *out)
{
	fputs("| Key | Values | Default | Meaning |\n|---|---|---|---|\n", out);
	for (unsigned i = 0; i < sl_key_count; i++) {
		const struct sl_key *k = &sl_keys[i];

		if (k->type > SL_KEY_INSTANCES || !k->doc[0])
			continue;
		fprintf(out, "| `%s` | ", k->path);
		print_type(out, k);
		fprintf(out, " | %s | %s |\n",
			k->def			      ? k->def
			: k->flags & SL_KEY_REQUIRED  ? "required"
			: k->type == SL_KEY_LIST      ? "empty"
			: k->type == SL_KEY_INSTANCES ? "absent"
						      : "unset",
			k->doc);
	}
	fputs("\nKnown to FIPS, not supported:\n\n| Key | In a file | Why |\n|---|---|---|\n", out);
	for (unsigned i = 0; i < sl_key_count; i++) {
		const struct sl_key *k = &sl_keys[i];

		if (k->type < SL_KEY_OFF)
			continue;
		fprintf(out, "| `%s` | %s | %s |\n", k->path,
			k->type == SL_KEY_OFF	     ? "only `false`"
			: k->type == SL_KEY_LEFT_OUT ? "a warning, no effect"
						     : "an error",
			k->doc);
	}
}
