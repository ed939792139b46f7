/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CTL_CLIENT_H
#define SL_CTL_CLIENT_H
/* One request to the daemon's control socket (sluiced's server.h). */
#include <jansson.h>

#define SL_CTL_TIMEOUT_S 5
#define SL_CTL_ANSWER_MAX (256u << 20)

/* Connects; a descriptor or -errno. */
int sl_ctl_connect(const char *path);
/*
 * Sends {"command":...,"params":...} (params may be NULL, is not taken) and waits for the line that
 * answers it. 0 with the data, which is the caller's; -EREMOTEIO with the daemon's message in why;
 * another -errno when the talk failed.
 */
int sl_ctl_request(int fd, const char *command, json_t *params, json_t **data, char why[256]);

#endif
