/* SPDX-License-Identifier: BSD-3-Clause */
#include "acl.h"
#include "../../lib/overlay/sl_log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (16u << 20)
#define NAME_MAX_CHARS 63
#define WARNINGS_MAX 8u /* lines named in the log, of each reading */

enum { HOSTS = 2, FILES = 3 };
static const char *const file_names[FILES] = {"peers.allow", "peers.deny", "hosts"};

struct host {
	char name[NAME_MAX_CHARS + 1];
	uint8_t xonly[SL_XONLY_BYTES];
};

struct stamp { /* what tells a changed file */
	bool there;
	struct timespec mtime;
	off_t size;
	ino_t inode;
};

struct lists {
	struct sl_acl_list list[2];
	struct host *hosts;
	uint32_t host_count, skipped;
};

struct sl_acl {
	char folder[PATH_MAX], paths[FILES][PATH_MAX];
	struct stamp stamps[FILES];
	struct lists now;
	sl_acl_alias_fn alias;
	void *alias_arg;
	uint64_t unreadable;
	bool any, required, failing;
};

/* --- lines --- */

static void
skip(struct lists *l, const char *path, unsigned line, const char *why)
{
	if (l->skipped++ < WARNINGS_MAX)
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "%s:%u: skipped: %s", path, line, why);
}

static void *
grown(void *array, uint32_t count, size_t size)
{
	if (count & (count - 1) || (count && count < 16))
		return array;
	return realloc(array, (count ? (size_t)count * 2 : 16) * size);
}

/* The next word at *at, ended in place; NULL at the end of the line. */
static char *
word(char **at)
{
	char *start = *at + strspn(*at, " \t\r\v\f"), *end = start + strcspn(start, " \t\r\v\f");

	*at = *end ? end + 1 : end;
	*end = '\0';
	return *start ? start : NULL;
}

static int
host_find(const struct lists *l, const char *name, uint8_t xonly[SL_XONLY_BYTES])
{
	for (uint32_t i = l->host_count; i-- > 0;) /* a later line counts */
		if (!strcasecmp(l->hosts[i].name, name)) {
			memcpy(xonly, l->hosts[i].xonly, SL_XONLY_BYTES);
			return 0;
		}
	return -ENOENT;
}

static int
host_line(struct lists *l, const char *path, unsigned line, char *text)
{
	char *name = word(&text), *npub = name ? word(&text) : NULL;
	struct host *more;

	if (!name || name[0] == '#')
		return 0;
	if (!npub || word(&text) || strlen(name) > NAME_MAX_CHARS || !strncasecmp(name, "npub1", 5)) {
		skip(l, path, line, "not a name and an npub");
		return 0;
	}
	more = grown(l->hosts, l->host_count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->hosts = more;
	if (sl_npub_parse(more[l->host_count].xonly, npub) < 0) {
		skip(l, path, line, "not an npub");
		return 0;
	}
	memcpy(more[l->host_count++].name, name, strlen(name) + 1);
	return 0;
}

static int
entry_line(const struct sl_acl *acl, struct lists *l, unsigned which, unsigned line, char *text)
{
	struct sl_acl_list *list = &l->list[which];
	uint8_t(*more)[SL_XONLY_BYTES];
	char *entry;

	text[strcspn(text, "#")] = '\0';
	entry = word(&text);
	if (!entry)
		return 0;
	if (word(&text)) {
		skip(l, acl->paths[which], line, "more than one word");
		return 0;
	}
	if (!strcasecmp(entry, "ALL")) {
		list->all = true;
		return 0;
	}
	more = grown(list->keys, list->count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	list->keys = more;
	if (sl_npub_parse(more[list->count], entry) < 0 && host_find(l, entry, more[list->count]) < 0 &&
		(!acl->alias || acl->alias(acl->alias_arg, entry, more[list->count]) < 0)) {
		skip(l, acl->paths[which], line, "neither an npub nor a known name");
		return 0;
	}
	list->count++;
	return 0;
}

/* --- files --- */

static bool
stamps_equal(const struct stamp *a, const struct stamp *b)
{
	return a->there == b->there && a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec && a->size == b->size && a->inode == b->inode;
}

static struct stamp
stamp_of(const struct stat *st)
{
	return (struct stamp){.there = true, .mtime = st->st_mtim, .size = st->st_size, .inode = st->st_ino};
}

/* The whole file, ended by a zero, malloc'ed; NULL text and 0 when there is none. */
static int
file_read(const char *path, char **text, size_t *len, struct stamp *stamp)
{
	struct stat st;
	ssize_t n = 0;
	int fd, rc = 0;

	*text = NULL;
	*len = 0;
	memset(stamp, 0, sizeof(*stamp));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	else if (st.st_size > (off_t)FILE_MAX)
		rc = -EFBIG;
	else if (!(*text = malloc((size_t)st.st_size + 1)))
		rc = -ENOMEM;
	if (rc)
		goto out;
	*stamp = stamp_of(&st);
	while (*len < (size_t)st.st_size && (n = read(fd, *text + *len, (size_t)st.st_size - *len)) > 0)
		*len += (size_t)n;
	if (n < 0)
		rc = -errno;
	(*text)[*len] = '\0';
out:
	if (rc) {
		free(*text);
		*text = NULL;
	}
	close(fd);
	return rc;
}

static int
file_parse(const struct sl_acl *acl, struct lists *l, unsigned which, char *text, size_t len)
{
	unsigned line = 0;
	int rc = 0;

	for (char *at = text, *end = text + len, *next; at < end && !rc; at = next) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		next = stop ? stop + 1 : end;
		if (stop)
			*stop = '\0';
		line++;
		rc = which == HOSTS ? host_line(l, acl->paths[which], line, at)
				    : entry_line(acl, l, which, line, at);
	}
	return rc;
}

static int
by_key(const void *a, const void *b)
{
	return memcmp(a, b, SL_XONLY_BYTES);
}

static void
list_sort(struct sl_acl_list *list)
{
	uint32_t kept = 0;

	if (!list->count)
		return;
	qsort(list->keys, list->count, SL_XONLY_BYTES, by_key);
	for (uint32_t i = 1; i < list->count; i++)
		if (by_key(list->keys[kept], list->keys[i]))
			memmove(list->keys[++kept], list->keys[i], SL_XONLY_BYTES);
	list->count = kept + 1;
}

static void
lists_free(struct lists *l)
{
	free(l->list[SL_ACL_ALLOW].keys);
	free(l->list[SL_ACL_DENY].keys);
	free(l->hosts);
	memset(l, 0, sizeof(*l));
}

static int
folder_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0 || access(path, R_OK | X_OK) != 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Said once, until it can be read again. */
static void
unreadable(struct sl_acl *acl, const char *path, int rc)
{
	if (!acl->failing)
		sl_log(SL_LOG_ERROR, SL_TOPIC_APP, "%s cannot be read: %s", path, strerror(-rc));
	acl->failing = true;
}

/* All three anew. On failure everything stays as it was, the stamps too: tried again at the next refresh. */
static int
lists_read(struct sl_acl *acl)
{
	static const unsigned order[FILES] = {HOSTS, SL_ACL_ALLOW, SL_ACL_DENY};
	struct stamp stamps[FILES];
	struct lists l = {.hosts = NULL};

	if (acl->required) {
		const int rc = folder_check(acl->folder);

		if (rc) {
			unreadable(acl, acl->folder, rc);
			return rc;
		}
	}
	for (unsigned i = 0; i < FILES; i++) {
		unsigned which = order[i];
		size_t len;
		char *text;
		int rc = file_read(acl->paths[which], &text, &len, &stamps[which]);

		if (!rc)
			rc = file_parse(acl, &l, which, text, len);
		free(text);
		if (rc) {
			unreadable(acl, acl->paths[which], rc);
			lists_free(&l);
			return rc;
		}
	}
	if (l.skipped > WARNINGS_MAX)
		sl_log(SL_LOG_WARNING, SL_TOPIC_APP, "access lists: %u more lines skipped", l.skipped - WARNINGS_MAX);
	list_sort(&l.list[SL_ACL_ALLOW]);
	list_sort(&l.list[SL_ACL_DENY]);
	lists_free(&acl->now);
	acl->now = l;
	memcpy(acl->stamps, stamps, sizeof(stamps));
	acl->failing = false;
	return 0;
}

/* --- public --- */

struct sl_acl *
sl_acl_create(const char *folder, bool required, sl_acl_alias_fn alias, void *alias_arg)
{
	struct sl_acl *acl = calloc(1, sizeof(*acl));
	int rc;

	if (!acl)
		return NULL;
	acl->alias = alias;
	acl->alias_arg = alias_arg;
	acl->any = folder[0] != '\0';
	acl->required = required;
	snprintf(acl->folder, sizeof(acl->folder), "%s", folder);
	if (!acl->any)
		return acl;
	for (unsigned i = 0; i < FILES; i++)
		snprintf(acl->paths[i], sizeof(acl->paths[i]), "%s/%s", folder, file_names[i]);
	rc = lists_read(acl);
	if (rc) {
		free(acl);
		errno = -rc;
		return NULL;
	}
	return acl;
}

void
sl_acl_destroy(struct sl_acl *acl)
{
	if (acl)
		lists_free(&acl->now);
	free(acl);
}

bool
sl_acl_refresh(struct sl_acl *acl)
{
	bool changed = false;

	for (unsigned i = 0; acl->any && i < FILES; i++) {
		struct stamp s = {.there = false};
		struct stat st;

		if (stat(acl->paths[i], &st) == 0)
			s = stamp_of(&st);
		changed = changed || !stamps_equal(&s, &acl->stamps[i]);
	}
	if (!changed)
		return false;
	if (lists_read(acl)) {
		acl->unreadable++;
		return false;
	}
	return true;
}

static bool
listed(const struct sl_acl_list *list, const uint8_t xonly[SL_XONLY_BYTES])
{
	return list->all ||
	       (list->count && bsearch(xonly, list->keys, list->count, SL_XONLY_BYTES, by_key));
}

bool
sl_acl_allows(const struct sl_acl *acl, const uint8_t xonly[SL_XONLY_BYTES])
{
	return listed(&acl->now.list[SL_ACL_ALLOW], xonly) || !listed(&acl->now.list[SL_ACL_DENY], xonly);
}

const struct sl_acl_list *
sl_acl_list(const struct sl_acl *acl, unsigned which)
{
	return &acl->now.list[which];
}

const char *
sl_acl_file(const struct sl_acl *acl, unsigned which)
{
	return acl->paths[which];
}

uint32_t
sl_acl_skipped(const struct sl_acl *acl)
{
	return acl->now.skipped;
}

uint64_t
sl_acl_unreadable(const struct sl_acl *acl)
{
	return acl->unreadable;
}

const char *
sl_acl_mode(const struct sl_acl *acl)
{
	const struct sl_acl_list *allow = &acl->now.list[SL_ACL_ALLOW], *deny = &acl->now.list[SL_ACL_DENY];

	if (allow->all)
		return "allow_all";
	if (allow->count)
		return deny->all ? "allow_then_deny_all" : deny->count ? "allow_then_deny" : "allowlist";
	return deny->all ? "deny_all" : deny->count ? "denylist" : "default_open";
}
