/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEST_CSV_H
#define SL_TEST_CSV_H
/*
 * Vectors from tests/vectors/crypto: comma separated, no quoting, '#' starts a comment line, the
 * first other line names the columns. Returns how many rows were given to row(); the caller expects
 * a number, so that an unread file fails. row() gets exactly the columns of the heading, missing
 * ones empty.
 */
#define CSV_COLUMNS_MAX 20
unsigned csv_each(const char *file, void (*row)(char **field));
#endif
