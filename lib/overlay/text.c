/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_text.h"

#include <stddef.h>

bool
sl_text_shown(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} hidden[] = {{0x00, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x034f, 0x034f}, {0x061c, 0x061c}, {0x115f, 0x1160}, {0x17b4, 0x17b5},
		{0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xd800, 0xdfff},
		{0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff}};

	if (c >= 0x20 && c < 0x7f)
		return true;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && hidden[i].from <= c; i++)
		if (c <= hidden[i].to)
			return false;
	return c <= 0x10ffff;
}

/* One character: how many bytes it has; 0: these are none. A NUL ends a sequence like any other byte that does not go on with it. */
static unsigned
decode(const unsigned char *s, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		     s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	if (n < 2) {
		*c = s[0];
		return n;
	}
	*c = s[0] & (0x7fu >> n);
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3f);
	}
	return *c >= least[n] ? n : 0;
}

void
sl_text_clean(char *text)
{
	const unsigned char *in = (const unsigned char *)text;
	char *out = text;

	while (*in) {
		uint32_t c = 0;
		unsigned n = decode(in, &c);

		if (n && sl_text_shown(c)) {
			for (unsigned i = 0; i < n; i++)
				*out++ = (char)*in++;
		} else {
			*out++ = '?';
			in += n ? n : 1;
		}
	}
	*out = '\0';
}
