/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodekey.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int
beside(char out[PATH_MAX], const char *config_path, const char *name)
{
	char copy[PATH_MAX];

	if (strlen(config_path) >= sizeof(copy))
		return -ENAMETOOLONG;
	memcpy(copy, config_path, strlen(config_path) + 1);
	return snprintf(out, PATH_MAX, "%s/%s", dirname(copy), name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int
write_file(const char *path, const char *line, mode_t mode)
{
	char text[SL_NPUB_SIZE + 2];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int rc = 0, len;

	if (fd < 0)
		return -errno;
	len = snprintf(text, sizeof(text), "%s\n", line);
	if (write(fd, text, (size_t)len) != len || fsync(fd))
		rc = errno ? -errno : -EIO;
	sl_wipe(text, sizeof(text));
	if (close(fd) && !rc)
		rc = -errno;
	if (rc)
		unlink(path);
	return rc;
}

static struct sl_identity *
read_key(const char *path, int fd, char why[256])
{
	struct sl_identity *id = NULL;
	char text[160];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(why, 256, "%.200s: not a regular file", path);
		return NULL;
	}
	if (st.st_mode & 0077) {
		snprintf(why, 256, "%.200s: others may read it (mode %04o, expected 0600)", path,
			st.st_mode & 07777);
		return NULL;
	}
	n = read(fd, text, sizeof(text) - 1);
	if (n > 0) {
		text[n] = 0;
		text[strcspn(text, "\r\n")] = 0;
		id = sl_identity_from_text(text);
	}
	sl_wipe(text, sizeof(text));
	if (!id)
		snprintf(why, 256, "%.200s: holds neither an nsec nor 64 hex digits", path);
	return id;
}

static struct sl_identity *
make_key(const char *config_path, const char *path, char why[256])
{
	struct sl_identity *id = sl_identity_generate();
	char text[SL_NPUB_SIZE], pub[PATH_MAX];
	int rc;

	if (!id) {
		snprintf(why, 256, "out of memory");
		return NULL;
	}
	sl_nsec_format(text, sl_identity_secret(id));
	rc = write_file(path, text, 0600);
	sl_wipe(text, sizeof(text));
	if (rc) {
		snprintf(why, 256, "%.200s: cannot be made: %s", path, strerror(-rc));
		sl_identity_destroy(id);
		return NULL;
	}
	/* The public half is a convenience: its absence stops nobody. */
	sl_npub_format(text, sl_identity_xonly(id));
	if (!beside(pub, config_path, "sluice.pub")) {
		unlink(pub);
		(void)!write_file(pub, text, 0644);
	}
	return id;
}

struct sl_identity *
sl_nodekey_load(const struct sl_config *config, const char *config_path,
	enum sl_nodekey_source *source, char why[256])
{
	struct sl_identity *id = NULL;
	char path[PATH_MAX];
	int fd;

	why[0] = 0;
	if (config->identity.nsec[0]) {
		*source = SL_NODEKEY_CONFIG;
		id = sl_identity_from_text(config->identity.nsec);
	} else if (!config->identity.persistent) {
		*source = SL_NODEKEY_EPHEMERAL;
		id = sl_identity_generate();
	} else if (beside(path, config_path, "sluice.key")) {
		snprintf(why, 256, "the path of the key file is too long");
	} else {
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0) {
			*source = SL_NODEKEY_FILE;
			id = read_key(path, fd, why);
			close(fd);
		} else if (errno == ENOENT) {
			*source = SL_NODEKEY_MADE;
			id = make_key(config_path, path, why);
		} else {
			snprintf(why, 256, "%.200s: cannot be opened: %s", path,
				errno == ELOOP ? "it is a symbolic link" : strerror(errno));
		}
	}
	if (!id && !why[0])
		snprintf(why, 256, "no identity: %s", strerror(errno));
	return id;
}
