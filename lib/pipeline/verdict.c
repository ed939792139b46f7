/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the verdicts, from the one table. */
#include "sl_verdict.h"

static const char *const names[SL_VERDICT_COUNT] = {
#define NAME(id, name, what) [SL_##id] = name,
	SL_VERDICTS(NAME)
#undef NAME
};
static const char *const meanings[SL_VERDICT_COUNT] = {
#define MEANING(id, name, what) [SL_##id] = what,
	SL_VERDICTS(MEANING)
#undef MEANING
};

const char *
sl_verdict_name(enum sl_verdict v)
{
	return (unsigned)v < SL_VERDICT_COUNT ? names[v] : "unknown";
}

const char *
sl_verdict_meaning(enum sl_verdict v)
{
	return (unsigned)v < SL_VERDICT_COUNT ? meanings[v] : "unknown";
}
