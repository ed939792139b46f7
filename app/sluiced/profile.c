/* SPDX-License-Identifier: BSD-3-Clause */
/* Driver profiles: drivers-config/<name>.yaml says what a driver is good with; the port's own keys
 * stand above it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon.h"

/* What a profile may say; the rest of its keys is for people. */
static const char *const for_people[] = {"driver", "about", "devices", "queues", "rss", "offloads",
	"faults", "host_setup", "burst", "tested", NULL};

/* "net_af_packet0,iface=x" -> "af_packet"; PCI -> "generic". */
static void
name_from_device(char name[SL_CONF_NAME_SIZE], const char *device)
{
	size_t n = strcspn(device, ",");

	if (sl_eal_is_pci(device)) {
		snprintf(name, SL_CONF_NAME_SIZE, "generic");
		return;
	}
	if (!strncmp(device, "net_", 4)) {
		device += 4;
		n -= 4;
	}
	while (n && isdigit((unsigned char)device[n - 1]))
		n--;
	snprintf(name, SL_CONF_NAME_SIZE, "%.*s", (int)n, device);
}

static int
number(const struct sl_yaml *n, unsigned long min, unsigned long max, unsigned long *v)
{
	char *end;

	if (n->kind != SL_YAML_SCALAR || !isdigit((unsigned char)n->text[0]))
		return -1;
	*v = strtoul(n->text, &end, 10);
	return *end || *v < min || *v > max ? -1 : 0;
}

static int
apply(struct sl_port_config *port, const struct sl_yaml *root, struct sl_conf_error *error)
{
	unsigned long v;

	if (!root || root->kind != SL_YAML_MAPPING)
		return sl_conf_fail(error, (struct sl_pos){1, 1}, "a profile is a mapping");
	for (const struct sl_yaml *n = root->first; n; n = n->next) {
		unsigned i = 0;

		while (for_people[i] && strcmp(for_people[i], n->key))
			i++;
		if (for_people[i])
			continue;
		if (!strcmp(n->key, "rx_descriptors") && !number(n, 16, 32768, &v))
			port->rx_descriptors =
				port->rx_descriptors ? port->rx_descriptors : (uint16_t)v;
		else if (!strcmp(n->key, "tx_descriptors") && !number(n, 16, 32768, &v))
			port->tx_descriptors =
				port->tx_descriptors ? port->tx_descriptors : (uint16_t)v;
		else if (!strcmp(n->key, "mtu_max") && !number(n, 576, 16000, &v))
			port->mtu = port->mtu && port->mtu > v ? (uint16_t)v : port->mtu;
		else
			return sl_conf_fail(error, n->key_at,
				"'%.60s' is no key of a profile, or its value is out of range",
				n->key);
	}
	return 0;
}

int
sl_profile_apply(struct sl_port_config *port, const struct sl_conf_port *conf, const char *dir,
	char used[SL_CONF_NAME_SIZE], char why[256])
{
	struct sl_conf_error error = {{0, 0}, ""};
	bool automatic = !strcmp(conf->profile, "auto");
	char path[SL_CONF_TEXT_SIZE + SL_CONF_NAME_SIZE + 8], *text = NULL;
	struct sl_yaml *root = NULL;
	struct stat st;
	int fd, rc = 0;

	snprintf(used, SL_CONF_NAME_SIZE, "none");
	if (!strcmp(conf->profile, "none"))
		return 0;
	if (automatic)
		name_from_device(used, conf->device);
	else
		snprintf(used, SL_CONF_NAME_SIZE, "%s", conf->profile);
	snprintf(path, sizeof(path), "%s/%s.yaml", dir, used);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && automatic) {
		snprintf(used, SL_CONF_NAME_SIZE, "none");
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > SL_YAML_BYTES_MAX) {
		snprintf(why, 256, "profile %.120s: cannot be read", path);
		rc = -EINVAL;
		goto out;
	}
	text = malloc((size_t)st.st_size + 1);
	rc = text && read(fd, text, (size_t)st.st_size) == st.st_size ? 0 : -EIO;
	if (!rc)
		rc = sl_yaml_parse(&root, text, (size_t)st.st_size, &error);
	if (!rc)
		rc = apply(port, root, &error);
	if (rc)
		snprintf(why, 256, "profile %.80s:%u:%u: %.120s", path, error.at.line,
			error.at.column, error.text[0] ? error.text : strerror(-rc));
out:
	sl_yaml_free(root);
	free(text);
	if (fd >= 0)
		close(fd);
	return rc;
}
