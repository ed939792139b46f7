/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SHOW_H
#define SL_SHOW_H
/*
 * Answers of the control socket, as one line of JSON each. Names that FIPS's own answers have are
 * FIPS's. Addresses of nodes are 32 hex digits, times are ages in seconds, nothing secret is in any
 * of them.
 */
#include <stddef.h>

struct sl_daemon;

/* The answer to one request line, ended by a newline; malloc'ed, NULL when memory is short. */
char *sl_show_answer(struct sl_daemon *d, const char *line, size_t len, size_t *out_len);
char *sl_show_error(const char *message, size_t *out_len);

#endif
