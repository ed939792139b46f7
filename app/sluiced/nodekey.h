/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_NODEKEY_H
#define SL_NODEKEY_H
/*
 * Our identity at start: node.identity.nsec, else with node.identity.persistent the key file beside
 * the configuration (sluice.key: one line nsec, mode 0600, never through a symbolic link, made when
 * missing, with sluice.pub next to it), else a fresh key that is written nowhere (peering facts,
 * section 17.5).
 */
#include "config.h"

enum sl_nodekey_source {
	SL_NODEKEY_CONFIG,
	SL_NODEKEY_FILE,
	SL_NODEKEY_MADE,
	SL_NODEKEY_EPHEMERAL
};
/* NULL with why filled. */
struct sl_identity *sl_nodekey_load(const struct sl_config *config, const char *config_path,
	enum sl_nodekey_source *source, char why[256]) SL_MUST_CHECK;

#endif
