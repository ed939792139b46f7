/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SHOW_H
#define SL_SHOW_H
/*
 * Answers of the control socket, as one line of JSON each. Names that FIPS's own answers have are
 * FIPS's. Addresses of nodes are 32 hex digits, times are ages in seconds, nothing secret is in any
 * of them.
 */
#include <stdbool.h>
#include <stddef.h>

struct sl_daemon;
struct sl_show_job;

#define SL_SHOW_ROWS 16 /* rows of a page that one turn of control writes */

/* Begins the answer to one request line: begin, step until it says true, end. NULL when memory is
 * short. */
struct sl_show_job *sl_show_begin(struct sl_daemon *d, const char *line, size_t len);
bool sl_show_step(struct sl_show_job *job);
/* Frees the job and gives its text, ended by a newline, malloc'ed; NULL when memory was short. */
char *sl_show_end(struct sl_show_job *job, size_t *out_len);
char *sl_show_error(const char *message, size_t *out_len);

#endif
