/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_RUN_H
#define DAEMON_RUN_H
/* The real programs, run in a folder of the case's own: started, asked over the control socket, awaited. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

extern char dir[64]; /* of the case that runs */

uint64_t now_ms(void);
/* Four at once. */
const char *in_dir(const char *name);
void write_text(const char *path, const char *text);
void make_dir(void);
void remove_dir(void);
/* A relay on two ports that need no hardware; extra is more YAML. */
void write_config(const char *extra);

/* Starts a program with its output in a file of the folder. args end with NULL. */
pid_t start(const char *output, const char *program, ...);
/* Exit status, -signal, or -1000 when it did not end in time (it is killed then). */
int await(pid_t pid, unsigned limit_ms);
char *output_of(const char *name);
#define RUN(...) await(start("out", __VA_ARGS__, NULL), 10000)

int dial(const char *path);
pid_t start_daemon(void);
void stop_daemon(pid_t pid);
/* One line from the socket, as an object; NULL at the end of the stream. */
json_t *read_answer(int fd);
void expect_answer(int fd, const char *status, const char *message);
void say(int fd, const char *text);

#endif
