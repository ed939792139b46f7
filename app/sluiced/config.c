/* SPDX-License-Identifier: BSD-3-Clause */
#include "config_table.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 256

struct walk {
	struct sl_config *config;
	struct sl_conf_error *error;
	const char *rendezvous; /* under which of its two names node.rendezvous has been met */
};

/* What has been met of one struct's keys, for the required ones. */
struct seen {
	uint8_t key[SL_KEYS_MAX];
};

void
sl_config_warn(struct sl_config *c, struct sl_pos at, const char *fmt, ...)
{
	struct sl_conf_error *w;
	va_list ap;

	if (c->warning_count == SL_CONF_WARNINGS_MAX)
		return;
	w = &c->warnings[c->warning_count++];
	w->at = at;
	va_start(ap, fmt);
	vsnprintf(w->text, sizeof(w->text), fmt, ap);
	va_end(ap);
	for (char *p = w->text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

/* --- single values -------------------------------------------------------------------------- */

static int
store_uint(void *target, size_t size, uint64_t v)
{
	switch (size) {
	case 1:
		*(uint8_t *)target = (uint8_t)v;
		return 0;
	case 2:
		*(uint16_t *)target = (uint16_t)v;
		return 0;
	case 4:
		*(uint32_t *)target = (uint32_t)v;
		return 0;
	default:
		*(uint64_t *)target = v;
		return 0;
	}
}

/* Decimal, 0x or 0o, as YAML 1.2 has them. */
static int
parse_uint(const char *text, uint64_t *v)
{
	int base = !strncmp(text, "0x", 2) ? 16 : !strncmp(text, "0o", 2) ? 8 : 10;
	const char *digits = base == 10 ? text : text + 2;
	char *end;

	if (!digits[0] || strspn(digits, base == 16  ? "0123456789abcdefABCDEF"
					 : base == 8 ? "01234567"
						     : "0123456789") != strlen(digits))
		return -1;
	errno = 0;
	*v = strtoull(digits, &end, base);
	return errno || *end ? -1 : 0;
}

static int
parse_bool(const char *text, bool *v)
{
	if (!strcmp(text, "true") || !strcmp(text, "True") || !strcmp(text, "TRUE"))
		*v = true;
	else if (!strcmp(text, "false") || !strcmp(text, "False") || !strcmp(text, "FALSE"))
		*v = false;
	else
		return -1;
	return 0;
}

static void
choices_text(char *out, size_t size, const char *const *choices)
{
	size_t n = 0;

	out[0] = 0;
	for (unsigned i = 0; choices[i] && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", choices[i]);
}

static int
parse_number(const struct sl_key *k, const char *text, void *target, char why[SL_WHY_SIZE])
{
	uint64_t u;
	double d;
	char *end;

	if (k->type == SL_KEY_UINT) {
		if (parse_uint(text, &u)) {
			snprintf(why, SL_WHY_SIZE, "is not a whole number");
			return -1;
		}
		if ((double)u < k->min || (double)u > k->max) {
			snprintf(why, SL_WHY_SIZE, "is out of range %.0f .. %.0f", k->min, k->max);
			return -1;
		}
		return store_uint(target, k->size, u);
	}
	if (!text[0] || strspn(text, "0123456789.eE+-") != strlen(text)) {
		snprintf(why, SL_WHY_SIZE, "is not a number");
		return -1;
	}
	d = strtod(text, &end);
	if (*end || !isfinite(d)) {
		snprintf(why, SL_WHY_SIZE, "is not a number");
		return -1;
	}
	if (d < k->min || d > k->max) {
		snprintf(why, SL_WHY_SIZE, "is out of range %g .. %g", k->min, k->max);
		return -1;
	}
	memcpy(target, &d, sizeof(d));
	return 0;
}

/* The text of one value to its place; used for the file's values and for the table's defaults. */
static int
parse_value(const struct sl_key *k, const char *text, char *base, char why[SL_WHY_SIZE])
{
	char *target = base + k->offset;
	char list[SL_WHY_SIZE - 24];
	bool b;

	switch (k->type) {
	case SL_KEY_BOOL:
		if (parse_bool(text, &b)) {
			snprintf(why, SL_WHY_SIZE, "is neither true nor false");
			return -1;
		}
		*(bool *)target = b;
		return 0;
	case SL_KEY_UINT:
	case SL_KEY_REAL:
		return parse_number(k, text, target, why);
	case SL_KEY_ENUM:
	case SL_KEY_TEXT:
		if (k->choices) {
			unsigned i = 0;

			while (k->choices[i] && strcasecmp(k->choices[i], text))
				i++;
			if (!k->choices[i]) {
				choices_text(list, sizeof(list), k->choices);
				snprintf(why, SL_WHY_SIZE, "is none of %s", list);
				return -1;
			}
			if (k->type == SL_KEY_ENUM) {
				*(uint8_t *)target = (uint8_t)i;
				return 0;
			}
			text = k->choices[i];
		}
		if (!text[0]) {
			snprintf(why, SL_WHY_SIZE, "is empty");
			return -1;
		}
		if (strlen(text) >= k->size) {
			snprintf(why, SL_WHY_SIZE, "is longer than %zu bytes", k->size - 1);
			return -1;
		}
		memcpy(target, text, strlen(text) + 1);
		return 0;
	default:
		return k->parse(target, text, why);
	}
}

static const char *
expected(const struct sl_key *k)
{
	switch (k->type) {
	case SL_KEY_BOOL:
	case SL_KEY_OFF:
		return "true or false";
	case SL_KEY_UINT:
		return "a whole number";
	case SL_KEY_REAL:
		return "a number";
	case SL_KEY_LIST:
		return "a list";
	case SL_KEY_INSTANCES:
		return "a mapping";
	default:
		return "text";
	}
}

static int
wrong_type(struct walk *w, const struct sl_key *k, const struct sl_yaml *n, const char *path)
{
	return sl_conf_fail(w->error, n->at, "%s: %s where %s is expected", path,
		sl_yaml_kind_name(n), expected(k));
}

static int
read_scalar(struct walk *w, const struct sl_key *k, const struct sl_yaml *n, const char *path,
	char *base)
{
	char why[SL_WHY_SIZE] = "";
	bool typed = k->type == SL_KEY_BOOL || k->type == SL_KEY_UINT || k->type == SL_KEY_REAL;

	if (n->kind != SL_YAML_SCALAR)
		return wrong_type(w, k, n, path);
	if (sl_yaml_is_null(n)) {
		if (k->flags & SL_KEY_UNSET)
			return 0;
		return sl_conf_fail(
			w->error, n->at, "%s: nothing where %s is expected", path, expected(k));
	}
	if (typed && n->quoted)
		return wrong_type(w, k, n, path);
	if (!parse_value(k, n->text, base, why))
		return 0;
	if (k->flags & SL_KEY_SECRET)
		return sl_conf_fail(w->error, n->at, "%s: %s", path, why);
	return sl_conf_fail(w->error, n->at, "%s: '%.60s' %s", path, n->text, why);
}

/* --- finding rows --------------------------------------------------------------------------- */

static const struct sl_key *
find_key(const char *path)
{
	for (unsigned i = 0; i < sl_key_count; i++)
		if (!strcmp(sl_keys[i].path, path))
			return &sl_keys[i];
	return NULL;
}

static bool
is_section(const char *path)
{
	size_t len = strlen(path);

	for (unsigned i = 0; i < sl_key_count; i++)
		if (!strncmp(sl_keys[i].path, path, len) && sl_keys[i].path[len] == '.')
			return true;
	return false;
}

/* "a.b.*" for path "a.b.c": whole sections of FIPS without effect here. */
static const struct sl_key *
find_wildcard(const char *path)
{
	char wild[PATH_SIZE + 2];
	char *dot;

	snprintf(wild, PATH_SIZE, "%s", path);
	dot = strrchr(wild, '.');
	if (!dot)
		return NULL;
	memcpy(dot, ".*", 3);
	return find_key(wild);
}

static unsigned
edit_distance(const char *a, const char *b)
{
	unsigned row[SL_CONF_NAME_SIZE], la = (unsigned)strlen(a), lb = (unsigned)strlen(b);

	if (la >= SL_CONF_NAME_SIZE || lb >= SL_CONF_NAME_SIZE)
		return UINT32_MAX;
	for (unsigned j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned diag = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			unsigned up = row[j], best = diag + (a[i - 1] != b[j - 1]);

			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			diag = up;
		}
	}
	return row[lb];
}

/* The last part of a path, with the nearest key of the same section if one is near. */
static int
unknown_key(struct walk *w, const struct sl_yaml *n, const char *prefix, const char *path)
{
	size_t len = strlen(prefix);
	unsigned best = 3;
	char near[SL_CONF_NAME_SIZE] = "";

	for (unsigned i = 0; i < sl_key_count; i++) {
		const char *p = sl_keys[i].path;
		char name[SL_CONF_NAME_SIZE];
		unsigned d;

		if (strncmp(p, prefix, len) || (len && p[len] != '.'))
			continue;
		p += len ? len + 1 : 0;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, ".[*"), p);
		d = name[0] ? edit_distance(n->key, name) : UINT32_MAX;
		if (d < best && d < strlen(n->key)) {
			best = d;
			memcpy(near, name, sizeof(near));
		}
	}
	if (near[0])
		return sl_conf_fail(
			w->error, n->key_at, "unknown key '%.100s' (is '%s' meant?)", path, near);
	return sl_conf_fail(w->error, n->key_at, "unknown key '%.100s'", path);
}

/* --- structs, lists, instances -------------------------------------------------------------- */

static void
set_defaults(uint8_t scope, char *base)
{
	char why[SL_WHY_SIZE];

	for (unsigned i = 0; i < sl_key_count; i++)
		if (sl_keys[i].scope == scope && sl_keys[i].def &&
			sl_keys[i].type <= SL_KEY_CUSTOM &&
			parse_value(&sl_keys[i], sl_keys[i].def, base, why))
			abort(); /* a row of the table contradicts itself */
}

static int read_key(struct walk *w, const struct sl_yaml *n, const char *prefix, char *base, struct seen *seen);
static int read_mapping(
	struct walk *w, const struct sl_yaml *n, const char *path, char *base, struct seen *seen);

/* Keys of one struct: defaults, the file's values, the required ones. The struct begins with its
 * place in the file. */
static int
read_item(struct walk *w, const struct sl_yaml *n, const char *path, uint8_t scope, char *base)
{
	const struct sl_key *k = find_key(path);
	struct seen seen = {{0}};
	int rc;

	*(struct sl_pos *)base = n->at;
	set_defaults(scope, base);
	/* A list of plain values: the row of the element itself. */
	if (k && k->scope == scope)
		return read_scalar(w, k, n, path, base);
	if (n->kind != SL_YAML_MAPPING && !sl_yaml_is_null(n))
		return sl_conf_fail(w->error, n->at, "%s: %s where a mapping is expected", path,
			sl_yaml_kind_name(n));
	rc = read_mapping(w, n, path, base, &seen);
	for (unsigned i = 0; !rc && i < sl_key_count; i++)
		if (sl_keys[i].scope == scope && (sl_keys[i].flags & SL_KEY_REQUIRED) &&
			!seen.key[i])
			rc = sl_conf_fail(w->error, n->at, "%s: '%s' is missing", path,
				strrchr(sl_keys[i].path, '.') + 1);
	return rc;
}

static char *
make_items(const struct sl_key *k, uint32_t count, char *base)
{
	char *items = calloc(count ? count : 1, k->size);

	if (items) {
		*(char **)(base + k->offset) = items;
		*(uint32_t *)(base + k->count_offset) = count;
	}
	return items;
}

static int
read_list(struct walk *w, const struct sl_key *k, const struct sl_yaml *n, const char *path,
	char *base)
{
	char item_path[PATH_SIZE];
	char *items;
	int rc = 0;

	if (sl_yaml_is_null(n))
		return 0;
	if (n->kind != SL_YAML_SEQUENCE)
		return wrong_type(w, k, n, path);
	if ((double)n->children > k->max)
		return sl_conf_fail(w->error, n->at, "%s: more than %.0f elements", path, k->max);
	items = make_items(k, n->children, base);
	if (!items)
		return -ENOMEM;
	snprintf(item_path, sizeof(item_path), "%s[]", path);
	for (const struct sl_yaml *e = n->first; !rc && e; e = e->next, items += k->size)
		rc = read_item(w, e, item_path, k->item_scope, items);
	return rc;
}

/* FIPS's rule: one block when it reads as one, else a mapping of named blocks. */
static int
read_instances(struct walk *w, const struct sl_key *k, const struct sl_yaml *n, const char *path,
	char *base)
{
	bool named = n->kind == SL_YAML_MAPPING && n->children;
	char *items;
	int rc = 0;

	if (n->kind != SL_YAML_MAPPING && !sl_yaml_is_null(n))
		return wrong_type(w, k, n, path);
	for (const struct sl_yaml *e = n->first; e; e = e->next)
		named = named && e->kind == SL_YAML_MAPPING;
	if (!named) {
		items = make_items(k, 1, base);
		return items ? read_item(w, n, path, k->item_scope, items) : -ENOMEM;
	}
	if ((double)n->children > k->max)
		return sl_conf_fail(w->error, n->at, "%s: more than %.0f instances", path, k->max);
	items = make_items(k, n->children, base);
	if (!items)
		return -ENOMEM;
	for (const struct sl_yaml *e = n->first; !rc && e; e = e->next, items += k->size) {
		/* The name stands behind the place in both kinds of instance. */
		char *name = items + sizeof(struct sl_pos);

		if (strlen(e->key) >= SL_CONF_NAME_SIZE || strchr(e->key, '/'))
			return sl_conf_fail(w->error, e->key_at,
				"%s: '%.80s' is not a name for an instance", path, e->key);
		snprintf(name, SL_CONF_NAME_SIZE, "%s", e->key);
		rc = read_item(w, e, path, k->item_scope, items);
	}
	return rc;
}

static int
read_foreign(struct walk *w, const struct sl_key *k, const struct sl_yaml *n, const char *path)
{
	bool on;

	if (k->type == SL_KEY_REFUSED)
		return sl_conf_fail(w->error, n->key_at,
			"%s: known to FIPS, not supported by Sluice: %s", path, k->doc);
	if (k->type == SL_KEY_LEFT_OUT) {
		sl_config_warn(w->config, n->key_at,
			"%s: known to FIPS, without effect in Sluice: %s", path, k->doc);
		return 0;
	}
	if (n->kind != SL_YAML_SCALAR || n->quoted || parse_bool(n->text, &on))
		return wrong_type(w, k, n, path);
	if (on)
		return sl_conf_fail(w->error, n->at,
			"%s: known to FIPS, not supported by Sluice: %s", path, k->doc);
	return 0;
}

/*
 * node.discovery is the old name of two blocks: nostr and lan of node.rendezvous, the rest of node.lookup. Under both names
 * at once nobody could say which holds.
 */
static int
note_rendezvous(struct walk *w, const struct sl_yaml *n, const char *name)
{
	if (w->rendezvous && strcmp(w->rendezvous, name) != 0)
		return sl_conf_fail(w->error, n->key_at, "%s: stands under its other name, %s, too", name, w->rendezvous);
	w->rendezvous = name;
	return 0;
}

static int
read_discovery(struct walk *w, const struct sl_yaml *n, char *base, struct seen *seen)
{
	int rc = 0;

	if (n->kind != SL_YAML_MAPPING && !sl_yaml_is_null(n))
		return sl_conf_fail(w->error, n->at, "node.discovery: %s where a mapping is expected", sl_yaml_kind_name(n));
	for (const struct sl_yaml *e = n->first; !rc && e; e = e->next) {
		bool block = !strcmp(e->key, "nostr") || !strcmp(e->key, "lan");

		if (block)
			rc = note_rendezvous(w, e, "node.discovery");
		if (!rc)
			rc = read_key(w, e, block ? "node.rendezvous" : "node.lookup", base, seen);
	}
	return rc;
}

static int
read_key(struct walk *w, const struct sl_yaml *n, const char *prefix, char *base, struct seen *seen)
{
	char path[PATH_SIZE];
	const struct sl_key *k;

	if (snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] ? "." : "", n->key) >=
		(int)sizeof(path))
		return sl_conf_fail(w->error, n->key_at, "unknown key '%.100s'", n->key);
	if (strpbrk(n->key, ".[]*"))
		return unknown_key(w, n, prefix, path);
	if (!strcmp(path, "node.discovery"))
		return read_discovery(w, n, base, seen);
	if (!strcmp(path, "node.rendezvous") && note_rendezvous(w, n, "node.rendezvous"))
		return -EINVAL;
	k = find_key(path);
	if (k && seen) {
		/* Twice in one mapping is YAML's fault; here the other time was under the old name. */
		if (seen->key[k - sl_keys] && !strncmp(path, "node.lookup.", 12))
			return sl_conf_fail(w->error, n->key_at, "%s: stands under its other name, node.discovery.%s, too", path,
				n->key);
		seen->key[k - sl_keys] = 1;
	}
	if (!k && is_section(path)) {
		if (sl_yaml_is_null(n))
			return 0;
		if (n->kind != SL_YAML_MAPPING)
			return sl_conf_fail(w->error, n->at, "%s: %s where a mapping is expected",
				path, sl_yaml_kind_name(n));
		return read_mapping(w, n, path, base, seen);
	}
	if (!k)
		k = find_wildcard(path);
	if (!k)
		return unknown_key(w, n, prefix, path);
	switch (k->type) {
	case SL_KEY_LIST:
		return read_list(w, k, n, path, base);
	case SL_KEY_INSTANCES:
		return read_instances(w, k, n, path, base);
	case SL_KEY_OFF:
	case SL_KEY_LEFT_OUT:
	case SL_KEY_REFUSED:
		return read_foreign(w, k, n, path);
	default:
		return read_scalar(w, k, n, path, base);
	}
}

static int
read_mapping(
	struct walk *w, const struct sl_yaml *n, const char *path, char *base, struct seen *seen)
{
	int rc = 0;

	for (const struct sl_yaml *e = n->first; !rc && e; e = e->next)
		rc = read_key(w, e, path, base, seen);
	return rc;
}

/* --- the outside ---------------------------------------------------------------------------- */

struct sl_config *
sl_config_create(void)
{
	struct sl_config *c = calloc(1, sizeof(*c));

	if (c)
		set_defaults(SL_SCOPE_ROOT, (char *)c);
	return c;
}

void
sl_config_destroy(struct sl_config *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->peer_count; i++)
		free(c->peers[i].addresses);
	for (uint32_t i = 0; i < c->dataplane.port_count; i++) {
		free(c->dataplane.ports[i].addresses);
		free(c->dataplane.ports[i].routes);
		free(c->dataplane.ports[i].worker_cpus);
	}
	free(c->peers);
	free(c->dataplane.ports);
	free(c->udp);
	free(c->ethernet);
	free(c->nostr.advert_relays);
	free(c->nostr.dm_relays);
	free(c->nostr.stun_servers);
	free(c->dataplane.worker_cpus);
	free(c->dataplane.eal);
	sl_wipe(c->identity.nsec, sizeof(c->identity.nsec));
	free(c);
}

int
sl_config_parse(struct sl_config *c, const char *text, size_t len, struct sl_conf_error *error)
{
	struct walk w = {c, error, NULL};
	struct sl_yaml *root;
	struct seen seen = {{0}};
	int rc;

	rc = sl_yaml_parse(&root, text, len, error);
	if (rc)
		return rc;
	if (root && root->kind != SL_YAML_MAPPING && !sl_yaml_is_null(root))
		rc = sl_conf_fail(
			error, root->at, "%s where a mapping is expected", sl_yaml_kind_name(root));
	else if (root)
		rc = read_mapping(&w, root, "", (char *)c, &seen);
	sl_yaml_free(root);
	return rc ? rc : sl_config_check(c, error);
}

int
sl_config_load(struct sl_config *c, const char *path, struct sl_conf_error *error)
{
	const struct sl_pos nowhere = {0, 0};
	char *text = NULL;
	size_t len = 0;
	struct stat st;
	ssize_t n;
	int fd, rc;

	memset(error, 0, sizeof(*error));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sl_conf_fail(error, nowhere, "cannot be opened: %s", strerror(errno));
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		rc = sl_conf_fail(error, nowhere, "is a directory");
		goto out;
	}
	text = malloc(SL_YAML_BYTES_MAX + 1);
	if (!text) {
		rc = -ENOMEM;
		goto out;
	}
	/* One byte more than the limit shows that there is more; pipes and devices are read as they
	 * come. */
	while (len <= SL_YAML_BYTES_MAX &&
		(n = read(fd, text + len, SL_YAML_BYTES_MAX + 1 - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = sl_conf_fail(error, nowhere, "cannot be read: %s", strerror(errno));
			goto out;
		}
		len += (size_t)n;
	}
	rc = sl_config_parse(c, text, len, error);
	if (!rc && c->identity.nsec[0] && !fstat(fd, &st) && (st.st_mode & 0004))
		sl_config_warn(c, nowhere, "everybody may read this file, and node.identity.nsec in it");
out:
	if (text)
		sl_wipe(text, SL_YAML_BYTES_MAX + 1);
	free(text);
	close(fd);
	return rc;
}

void
sl_config_error_print(FILE *out, const char *path, const struct sl_conf_error *error)
{
	if (error->at.line)
		fprintf(out, "%s:%u:%u: %s\n", path, error->at.line, error->at.column, error->text);
	else
		fprintf(out, "%s: %s\n", path, error->text);
}
