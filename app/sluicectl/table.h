/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CTL_TABLE_H
#define SL_CTL_TABLE_H
/* Text tables: cells are collected, columns get the width of their widest cell, numbers stand to
 * the right. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sl_table;

/* heads: columns' titles, NULL-ended; one that begins with '>' is aligned to the right. Exits when
 * memory is short. */
struct sl_table *sl_table_new(const char *const *heads);
void sl_table_cell(struct sl_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Prints all rows and frees. `none`: said instead when there are no rows. A table wider than the limit is printed in pieces
 * below each other, its first column in each.
 */
void sl_table_print(struct sl_table *t, FILE *out, const char *none);
/* Columns of text that a table may take; 0 = any number. Of all tables from now on; 120 at first. */
void sl_table_limit(unsigned columns);

/* "1.2 M", "3.4 KiB", "5 s", "3 d 4 h": short forms for people; the buffers are the callers'. */
#define SL_SHORT_SIZE 32
const char *sl_short_count(char out[SL_SHORT_SIZE], uint64_t n);
const char *sl_short_bytes(char out[SL_SHORT_SIZE], uint64_t n);
const char *sl_short_age(char out[SL_SHORT_SIZE], double seconds);
/* Bytes in UTF-8 that show as columns. */
unsigned sl_text_columns(const char *s);

#endif
