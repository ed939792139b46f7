/* SPDX-License-Identifier: BSD-3-Clause */
#include "nostr_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The parser allocates as the text says; so the text is measured first. Only strings, brackets and separators are looked
 * at: whatever else is wrong the parser will say.
 */
static enum sl_nostr_error
measure(const char *text, size_t len)
{
	unsigned depth = 0, values = 0;
	bool in_string = false;

	if (len > SL_NOSTR_TEXT_MAX)
		return SL_NOSTR_TOO_LONG;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		switch (c) {
		case '"':
			in_string = true;
			break;
		case '[':
		case '{':
			if (++depth > SL_NOSTR_DEPTH_MAX)
				return SL_NOSTR_TOO_DEEP;
			break;
		case ']':
		case '}':
			if (depth)
				depth--;
			break;
		case ',':
		case ':':
			if (++values > SL_NOSTR_VALUES_MAX)
				return SL_NOSTR_TOO_MANY_VALUES;
			break;
		default:
			break;
		}
	}
	return SL_NOSTR_OK;
}

enum sl_nostr_error
sl_nostr_json_parse(json_t **root, const char *text, size_t len)
{
	enum sl_nostr_error rc = measure(text, len);
	json_error_t why;

	*root = NULL;
	if (rc)
		return rc;
	*root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (*root)
		return SL_NOSTR_OK;
	switch (json_error_code(&why)) {
	case json_error_out_of_memory:
		return SL_NOSTR_NO_MEMORY;
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return SL_NOSTR_NUL;
	default:
		return SL_NOSTR_NOT_JSON;
	}
}

void
sl_nostr_text_put(struct sl_nostr_text *t, const char *bytes, size_t len)
{
	size_t room = t->room ? t->room : 512;
	char *p;

	if (t->error || !len)
		return;
	if (len > SL_NOSTR_TEXT_MAX || t->len + len > SL_NOSTR_TEXT_MAX) {
		t->error = EMSGSIZE;
		return;
	}
	while (room < t->len + len + 1)
		room *= 2;
	if (room != t->room) {
		/* Not realloc: what was written may be a secret. */
		p = malloc(room);
		if (!p) {
			t->error = ENOMEM;
			return;
		}
		if (t->p) {
			memcpy(p, t->p, t->len);
			sl_wipe(t->p, t->len);
			free(t->p);
		}
		t->p = p;
		t->room = room;
	}
	memcpy(t->p + t->len, bytes, len);
	t->len += len;
}

void
sl_nostr_text_puts(struct sl_nostr_text *t, const char *s)
{
	sl_nostr_text_put(t, s, strlen(s));
}

void
sl_nostr_text_u64(struct sl_nostr_text *t, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = (char)('0' + v % 10);
	while (v /= 10);
	sl_nostr_text_put(t, digits + n, sizeof(digits) - n);
}

void
sl_nostr_text_hex(struct sl_nostr_text *t, const uint8_t *bytes, size_t len)
{
	char hex[2 * 64 + 1];

	if (len > 64) {
		t->error = EMSGSIZE;
		return;
	}
	sl_hex_format(hex, bytes, len);
	sl_nostr_text_put(t, "\"", 1);
	sl_nostr_text_put(t, hex, 2 * len);
	sl_nostr_text_put(t, "\"", 1);
}

void
sl_nostr_text_string(struct sl_nostr_text *t, const char *s)
{
	static const char shorts[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	static const char hex[] = "0123456789abcdef";
	const char *plain = s;

	sl_nostr_text_put(t, "\"", 1);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		char esc[6] = {'\\', (char)c};
		size_t n = 2;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		if (c < 0x20 && shorts[c]) {
			esc[1] = shorts[c];
		} else if (c < 0x20) {
			memcpy(esc, "\\u00", 4);
			esc[4] = hex[c >> 4];
			esc[5] = hex[c & 15];
			n = 6;
		}
		sl_nostr_text_put(t, plain, (size_t)(s - plain));
		sl_nostr_text_put(t, esc, n);
		plain = s + 1;
	}
	sl_nostr_text_put(t, plain, (size_t)(s - plain));
	sl_nostr_text_put(t, "\"", 1);
}

char *
sl_nostr_text_take(struct sl_nostr_text *t, size_t *len)
{
	char *p = t->p;

	if (!t->error && !p)
		t->error = ENOMEM;
	if (t->error) {
		errno = t->error;
		if (p) {
			sl_wipe(p, t->len);
			free(p);
		}
		p = NULL;
	} else {
		p[t->len] = '\0'; /* room is always one more */
		if (len)
			*len = t->len;
	}
	memset(t, 0, sizeof(*t));
	return p;
}
