/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_ACL_H
#define SL_ACL_H
/*
 * Access lists: who may have a link with us. Two files in FIPS's format, peers.allow and peers.deny,
 * and the hosts file that may give entries a name, in one folder (link layer facts, 14.3; peering
 * facts, section 16).
 *
 *	listed in allow, or ALL there -> yes; else listed in deny, or ALL there -> no; else yes
 *
 * A line holds one entry, an npub or a name (hosts file, else a peer's alias; any case) or ALL; '#'
 * begins a comment anywhere. Other lines are skipped with a warning. A missing file is an empty one.
 * A file that is there and cannot be read leaves the lists as they were: nobody is let in by it.
 *
 * One thread. Nothing here knows of links: the answer is for new ones, see sl_links_sink.allowed.
 */
#include "../../lib/crypto/sl_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sl_acl;

/* A peer's alias as the configuration has it: 0 and the key, or -ENOENT. The name's case does not count. */
typedef int (*sl_acl_alias_fn)(void *arg, const char *name, uint8_t xonly[SL_XONLY_BYTES]);

/*
 * Reads the files. folder "": no files, all are allowed. required: a folder that is not there, or is not any more, is one that
 * cannot be read, and not one without files: the lists it had would let everybody in. NULL and errno: ENOMEM, or the reason
 * why the folder or the first file cannot be read (said in the log).
 */
struct sl_acl *sl_acl_create(const char *folder, bool required, sl_acl_alias_fn alias, void *alias_arg) SL_MUST_CHECK;
void sl_acl_destroy(struct sl_acl *acl);
/* Reads them again if one has changed: time, size or file. True when the lists were replaced. Three stat calls. */
bool sl_acl_refresh(struct sl_acl *acl);
bool sl_acl_allows(const struct sl_acl *acl, const uint8_t xonly[SL_XONLY_BYTES]);

struct sl_acl_list {
	bool all;
	uint8_t (*keys)[SL_XONLY_BYTES]; /* sorted, each once */
	uint32_t count;
};
enum { SL_ACL_ALLOW, SL_ACL_DENY };
const struct sl_acl_list *sl_acl_list(const struct sl_acl *acl, unsigned which);
const char *sl_acl_file(const struct sl_acl *acl, unsigned which); /* its path, "" = none */
/* Lines of all files that were skipped at the last reading; how often files could not be read since the start. */
uint32_t sl_acl_skipped(const struct sl_acl *acl);
uint64_t sl_acl_unreadable(const struct sl_acl *acl);
/* FIPS's words: default_open, allow_all, deny_all, allowlist, denylist, allow_then_deny, allow_then_deny_all. */
const char *sl_acl_mode(const struct sl_acl *acl);

#ifdef __cplusplus
}
#endif
#endif
