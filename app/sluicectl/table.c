/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"
#include "../../lib/overlay/sl_text.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 24

struct sl_table {
	unsigned columns;
	const char *heads[COLUMNS_MAX];
	bool right[COLUMNS_MAX];
	unsigned width[COLUMNS_MAX];
	char **cells;
	size_t count, room;
};

static void *
checked(void *p)
{
	if (!p) {
		fputs("sluicectl: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

unsigned
sl_text_columns(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

struct sl_table *
sl_table_new(const char *const *heads)
{
	struct sl_table *t = checked(calloc(1, sizeof(*t)));

	for (; heads[t->columns] && t->columns < COLUMNS_MAX; t->columns++) {
		const char *h = heads[t->columns];

		t->right[t->columns] = h[0] == '>';
		t->heads[t->columns] = h + (h[0] == '>');
		t->width[t->columns] = sl_text_columns(t->heads[t->columns]);
	}
	return t;
}

void
sl_table_cell(struct sl_table *t, const char *fmt, ...)
{
	unsigned column = (unsigned)(t->count % t->columns), width;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = checked(NULL);
	va_end(ap);
	/* What others chose (aliases, adverts, relays' words) cannot move the cursor. */
	sl_text_clean(text);
	if (t->count == t->room) {
		t->room = t->room ? 2 * t->room : 256;
		t->cells = checked(realloc(t->cells, t->room * sizeof(*t->cells)));
	}
	t->cells[t->count++] = text;
	width = sl_text_columns(text);
	if (width > t->width[column])
		t->width[column] = width;
}

static unsigned limit = 120;

void
sl_table_limit(unsigned columns)
{
	limit = columns;
}

static void
print_cell(FILE *out, const struct sl_table *t, unsigned column, bool last, const char *text)
{
	int pad = (int)(t->width[column] - sl_text_columns(text));

	if (t->right[column])
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", out);
}

/* The columns from `from` on that fit beside the first one; at least one. */
static unsigned
piece_end(const struct sl_table *t, unsigned from)
{
	unsigned width = from ? t->width[0] : 0, to = from;

	while (to < t->columns && (to == from || !limit || width + 2 + t->width[to] <= limit + (from ? 0 : 2)))
		width += 2 + t->width[to++];
	return to;
}

static void
print_row(const struct sl_table *t, FILE *out, unsigned from, unsigned to, const char *const *cells)
{
	if (from)
		print_cell(out, t, 0, false, cells[0]);
	for (unsigned c = from; c < to; c++)
		print_cell(out, t, c, c + 1 == to, cells[c]);
}

static void
print_piece(const struct sl_table *t, FILE *out, unsigned from, unsigned to)
{
	print_row(t, out, from, to, t->heads);
	for (size_t i = 0; i + t->columns <= t->count; i += t->columns)
		print_row(t, out, from, to, (const char *const *)(t->cells + i));
}

void
sl_table_print(struct sl_table *t, FILE *out, const char *none)
{
	if (!t->count && none) {
		fprintf(out, "%s\n", none);
	} else {
		for (unsigned from = 0; from < t->columns;) {
			unsigned to = piece_end(t, from);

			if (from)
				fputc('\n', out);
			print_piece(t, out, from, to);
			from = to;
		}
	}
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}

static const char *
scaled(char out[SL_SHORT_SIZE], double n, double base, const char *const *units)
{
	unsigned i = 0;

	while (n >= base && units[i + 1]) {
		n /= base;
		i++;
	}
	snprintf(out, SL_SHORT_SIZE, i && n < 100 ? "%.1f%s" : "%.0f%s", n, units[i]);
	return out;
}

const char *
sl_short_count(char out[SL_SHORT_SIZE], uint64_t n)
{
	static const char *const units[] = {"", " k", " M", " G", " T", NULL};

	if (n < 100000) {
		snprintf(out, SL_SHORT_SIZE, "%llu", (unsigned long long)n);
		return out;
	}
	return scaled(out, (double)n, 1000, units);
}

const char *
sl_short_bytes(char out[SL_SHORT_SIZE], uint64_t n)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", NULL};

	return scaled(out, (double)n, 1024, units);
}

const char *
sl_short_age(char out[SL_SHORT_SIZE], double s)
{
	unsigned long t = (unsigned long)s;

	if (s < 10)
		snprintf(out, SL_SHORT_SIZE, "%.1f s", s);
	else if (t < 120)
		snprintf(out, SL_SHORT_SIZE, "%lu s", t);
	else if (t < 7200)
		snprintf(out, SL_SHORT_SIZE, "%lu min %lu s", t / 60, t % 60);
	else if (t < 172800)
		snprintf(out, SL_SHORT_SIZE, "%lu h %lu min", t / 3600, t % 3600 / 60);
	else
		snprintf(out, SL_SHORT_SIZE, "%lu d %lu h", t / 86400, t % 86400 / 3600);
	return out;
}
