/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_yaml.h"
#include <errno.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../lib/crypto/sl_secret.h"

int
sl_conf_fail(struct sl_conf_error *error, struct sl_pos at, const char *fmt, ...)
{
	va_list ap;

	if (error->text[0])
		return -EINVAL;
	error->at = at;
	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	/* One finding is one line, whatever bytes the file brought into it. */
	for (char *p = error->text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return -EINVAL;
}

/* --- text checks ---------------------------------------------------------------------------- */

/* Length of the UTF-8 character at p (RFC 3629: no overlong forms, no surrogates), 0 when it is not
 * one. */
static unsigned
utf8_len(const unsigned char *p, size_t left)
{
	unsigned n = p[0] < 0x80		    ? 1
		     : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
		     : (p[0] & 0xf0) == 0xe0	    ? 3
		     : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						    : 0;

	if (!n || n > left)
		return 0;
	for (unsigned i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if (p[0] == 0xe0 && p[1] < 0xa0)
		return 0;
	if (p[0] == 0xed && p[1] > 0x9f)
		return 0;
	if (p[0] == 0xf0 && p[1] < 0x90)
		return 0;
	if (p[0] == 0xf4 && p[1] > 0x8f)
		return 0;
	return n;
}

static int
check_text(const char *text, size_t len, struct sl_conf_error *error)
{
	const unsigned char *p = (const unsigned char *)text;
	struct sl_pos at = {1, 1};

	if (len > SL_YAML_BYTES_MAX)
		return sl_conf_fail(error, at, "file is larger than %u bytes", SL_YAML_BYTES_MAX);
	for (size_t i = 0; i < len;) {
		unsigned n = utf8_len(p + i, len - i);

		if (!n)
			return sl_conf_fail(error, at, "not UTF-8: byte 0x%02x", p[i]);
		if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\r' && p[i] != '\t') || p[i] == 0x7f)
			return sl_conf_fail(error, at, "control character 0x%02x", p[i]);
		if (p[i] == '\n') {
			at.line++;
			at.column = 1;
		} else {
			at.column++;
		}
		i += n;
	}
	return 0;
}

/* --- events to a tree ----------------------------------------------------------------------- */

struct builder {
	struct sl_conf_error *error;
	const char *text;
	size_t len;
	struct sl_yaml *root;
	struct sl_yaml *stack[SL_YAML_DEPTH_MAX];
	unsigned depth;
	char *key; /* read, its value not yet */
	struct sl_pos key_at;
	uint32_t nodes;
	bool done; /* the document has ended */
};

static struct sl_pos
mark_pos(const struct fy_mark *m)
{
	struct sl_pos at = {0, 0};

	if (m) {
		at.line = (uint32_t)m->line + 1;
		at.column = (uint32_t)m->column + 1;
	}
	return at;
}

/* libfyaml's mark of quoted text may stand behind the quote. */
static struct sl_pos
scalar_pos(const struct builder *b, struct fy_event *ev)
{
	const struct fy_mark *m = fy_event_start_mark(ev);
	struct sl_pos at = mark_pos(m);

	if (m && m->input_pos && m->input_pos <= b->len && at.column > 1) {
		char before = b->text[m->input_pos - 1],
		     here = m->input_pos < b->len ? b->text[m->input_pos] : 0;
		enum fy_scalar_style style = fy_token_scalar_style(ev->scalar.value);

		if ((style == FYSS_DOUBLE_QUOTED && before == '"' &&
			    (here != '"' || !fy_token_get_text_length(ev->scalar.value))) ||
			(style == FYSS_SINGLE_QUOTED && before == '\'' &&
				(here != '\'' || !fy_token_get_text_length(ev->scalar.value))))
			at.column--;
	}
	return at;
}

static void
wipe_free(char *s, size_t len)
{
	if (s)
		sl_wipe(s, len);
	free(s);
}

static void
node_free(struct sl_yaml *n)
{
	wipe_free(n->text, n->text_len);
	free(n->key);
	free(n);
}

void
sl_yaml_free(struct sl_yaml *root)
{
	struct sl_yaml *n = root, *next;

	/* Depth is bounded by the parser, so recursion is too. */
	for (; n; n = next) {
		next = n->next;
		sl_yaml_free(n->first);
		node_free(n);
	}
}

bool
sl_yaml_is_null(const struct sl_yaml *n)
{
	return n->kind == SL_YAML_SCALAR && !n->quoted &&
	       (!n->text_len || !strcmp(n->text, "~") || !strcmp(n->text, "null") ||
		       !strcmp(n->text, "Null") || !strcmp(n->text, "NULL"));
}

const char *
sl_yaml_kind_name(const struct sl_yaml *n)
{
	if (n->kind == SL_YAML_MAPPING)
		return "a mapping";
	if (n->kind == SL_YAML_SEQUENCE)
		return "a list";
	if (sl_yaml_is_null(n))
		return "nothing";
	return n->quoted ? "quoted text" : "a single value";
}

static char *
token_copy(struct fy_token *token, size_t *len)
{
	const char *text = token ? fy_token_get_text(token, len) : "";
	char *copy;

	if (!token)
		*len = 0;
	if (!text)
		return NULL;
	copy = malloc(*len + 1);
	if (copy) {
		memcpy(copy, text, *len);
		copy[*len] = 0;
	}
	return copy;
}

/* Takes the place of the next value: below the open mapping or sequence, or the root. */
static int
attach(struct builder *b, struct sl_yaml *n)
{
	struct sl_yaml *up = b->depth ? b->stack[b->depth - 1] : NULL;

	if (++b->nodes > SL_YAML_NODES_MAX)
		return sl_conf_fail(b->error, n->at, "more than %u values", SL_YAML_NODES_MAX);
	if (!up) {
		if (b->root)
			return sl_conf_fail(b->error, n->at, "more than one document");
		b->root = n;
		return 0;
	}
	if (up->kind == SL_YAML_MAPPING) {
		n->key = b->key;
		n->key_at = b->key_at;
		b->key = NULL;
	}
	if (up->last)
		up->last->next = n;
	else
		up->first = n;
	up->last = n;
	up->children++;
	return 0;
}

static int
open_node(struct builder *b, enum sl_yaml_kind kind, struct sl_pos at)
{
	struct sl_yaml *n;
	int rc;

	if (b->depth && b->stack[b->depth - 1]->kind == SL_YAML_MAPPING && !b->key)
		return sl_conf_fail(b->error, at, "a key must be plain text");
	if (b->depth == SL_YAML_DEPTH_MAX)
		return sl_conf_fail(b->error, at, "nested more than %d deep", SL_YAML_DEPTH_MAX);
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->kind = (uint8_t)kind;
	n->at = at;
	rc = attach(b, n);
	if (rc) {
		node_free(n);
		return rc;
	}
	b->stack[b->depth++] = n;
	return 0;
}

static int
read_key(struct builder *b, char *text, size_t len, struct sl_pos at)
{
	const struct sl_yaml *up = b->stack[b->depth - 1];
	int rc = 0;

	if (!len)
		rc = sl_conf_fail(b->error, at, "empty key");
	else if (strlen(text) != len)
		rc = sl_conf_fail(b->error, at, "NUL character in a key");
	else if (!strcmp(text, "<<"))
		rc = sl_conf_fail(b->error, at, "merge keys are not supported");
	else if (up->children >= SL_YAML_KEYS_MAX)
		rc = sl_conf_fail(
			b->error, at, "more than %d keys in one mapping", SL_YAML_KEYS_MAX);
	for (const struct sl_yaml *n = up->first; !rc && n; n = n->next)
		if (!strcmp(n->key, text))
			rc = sl_conf_fail(b->error, at,
				"key '%s' stands here twice, first in line %u", text,
				n->key_at.line);
	if (rc) {
		free(text);
		return rc;
	}
	b->key = text;
	b->key_at = at;
	return 0;
}

static int
read_scalar(struct builder *b, struct fy_event *ev)
{
	struct fy_token *token = ev->scalar.value;
	struct sl_pos at = scalar_pos(b, ev);
	struct sl_yaml *n;
	size_t len = 0;
	char *text;
	int rc;

	text = token_copy(token, &len);
	if (!text)
		return -ENOMEM;
	if (b->depth && b->stack[b->depth - 1]->kind == SL_YAML_MAPPING && !b->key)
		return read_key(b, text, len, at);
	if (strlen(text) != len) {
		wipe_free(text, len);
		return sl_conf_fail(b->error, at, "NUL character in a value");
	}
	n = calloc(1, sizeof(*n));
	if (!n) {
		wipe_free(text, len);
		return -ENOMEM;
	}
	n->kind = SL_YAML_SCALAR;
	n->quoted = token && fy_token_scalar_style(token) != FYSS_PLAIN &&
		    fy_token_scalar_style(token) != FYSS_ANY;
	n->text = text;
	n->text_len = len;
	n->at = at;
	/* An empty value stands nowhere, or where the parser noticed: its key says more. */
	if (!n->at.line || (!len && !n->quoted && b->key))
		n->at = b->key_at;
	rc = attach(b, n);
	if (rc)
		node_free(n);
	return rc;
}

/* Anchors and tags: of no use here, and aliases are how a small file becomes a large one. */
static int
refuse_decoration(struct builder *b, struct fy_event *ev)
{
	struct fy_token *anchor = NULL, *tag = NULL;

	switch (ev->type) {
	case FYET_SCALAR:
		anchor = ev->scalar.anchor;
		tag = ev->scalar.tag;
		break;
	case FYET_MAPPING_START:
		anchor = ev->mapping_start.anchor;
		tag = ev->mapping_start.tag;
		break;
	case FYET_SEQUENCE_START:
		anchor = ev->sequence_start.anchor;
		tag = ev->sequence_start.tag;
		break;
	case FYET_ALIAS:
		return sl_conf_fail(
			b->error, mark_pos(fy_event_start_mark(ev)), "aliases are not supported");
	default:
		return 0;
	}
	if (anchor)
		return sl_conf_fail(b->error, mark_pos(fy_token_start_mark(anchor)),
			"anchors are not supported");
	if (tag)
		return sl_conf_fail(
			b->error, mark_pos(fy_token_start_mark(tag)), "tags are not supported");
	return 0;
}

static int
take_event(struct builder *b, struct fy_event *ev)
{
	int rc = refuse_decoration(b, ev);

	if (rc)
		return rc;
	switch (ev->type) {
	case FYET_DOCUMENT_START:
		if (b->done)
			return sl_conf_fail(b->error, mark_pos(fy_event_start_mark(ev)),
				"more than one document");
		return 0;
	case FYET_DOCUMENT_END:
		b->done = true;
		return 0;
	case FYET_MAPPING_START:
		return open_node(b, SL_YAML_MAPPING, mark_pos(fy_event_start_mark(ev)));
	case FYET_SEQUENCE_START:
		return open_node(b, SL_YAML_SEQUENCE, mark_pos(fy_event_start_mark(ev)));
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		b->depth--;
		return 0;
	case FYET_SCALAR:
		return read_scalar(b, ev);
	default:
		return 0;
	}
}

/* libfyaml's own complaint, as one of ours. */
static int
parser_error(struct fy_diag *diag, struct sl_conf_error *error)
{
	struct fy_diag_error *e;
	void *it = NULL;
	struct sl_pos at = {1, 1};

	e = fy_diag_errors_iterate(diag, &it);
	if (!e || !e->msg)
		return sl_conf_fail(error, at, "not YAML");
	/* These are counted from 1 already. */
	at.line = e->line > 0 ? (uint32_t)e->line : 1;
	at.column = e->column > 0 ? (uint32_t)e->column : 1;
	return sl_conf_fail(error, at, "not YAML: %s", e->msg);
}

int
sl_yaml_parse(struct sl_yaml **root, const char *text, size_t len, struct sl_conf_error *error)
{
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
					    FYPCF_DEFAULT_VERSION_1_2 | FYPCF_ALLOW_DUPLICATE_KEYS};
	struct fy_parser *parser = NULL;
	struct fy_event *ev;
	struct builder b = {.error = error, .text = text, .len = len};
	int rc;

	*root = NULL;
	memset(error, 0, sizeof(*error));
	rc = check_text(text, len, error);
	if (rc || !len)
		return rc;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	cfg.diag = fy_diag_create(&diag_cfg);
	if (!cfg.diag)
		return -ENOMEM;
	fy_diag_set_collect_errors(cfg.diag, true);
	parser = fy_parser_create(&cfg);
	rc = parser ? fy_parser_set_string(parser, text, len) : -1;
	if (rc) {
		rc = -ENOMEM;
		goto out;
	}
	while (!rc && (ev = fy_parser_parse(parser)) != NULL) {
		rc = take_event(&b, ev);
		fy_parser_event_free(parser, ev);
	}
	if (!rc && fy_parser_get_stream_error(parser))
		rc = parser_error(cfg.diag, error);
	else if (!rc && (b.depth || b.key))
		rc = parser_error(cfg.diag, error);
out:
	free(b.key);
	if (rc)
		sl_yaml_free(b.root);
	else
		*root = b.root;
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(cfg.diag);
	return rc;
}
