/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEXT_H
#define SL_TEXT_H
/*
 * Texts that others wrote (relays, adverts, peers' answers), made fit for a terminal and a line of a log. The log and sluicectl's
 * tables pass everything they print through this; there is no second place that decides what may be shown.
 *
 * Replaced by '?', one each:
 *	control characters, C0, DEL and C1 (U+0000-1F, U+007F-9F): they move cursors, and C1 does so on some terminals even as UTF-8
 *	what changes the direction of text (U+061C, U+200E-F, U+202A-E, U+2066-9): it makes a line read as another one
 *	line and paragraph separators (U+2028-9), and what has no width and so hides (U+00AD, U+034F, U+115F-160, U+17B4-5, U+180E,
 *	U+200B-D, U+2060-5, U+206A-F, U+3164, U+FEFF, U+FFA0, U+FFF9-B, variation selectors, tags U+E0000-FFF)
 *	bytes that are not UTF-8 (RFC 3629): overlong forms, surrogates, beyond U+10FFFF, cut off
 * Unicode 15, properties Bidi_Control and Default_Ignorable_Code_Point. No state, any thread.
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In place, NUL-ended; never longer than before. */
void sl_text_clean(char *text);
/* May this code point be shown as it is? */
bool sl_text_shown(uint32_t code_point);

#ifdef __cplusplus
}
#endif
#endif
