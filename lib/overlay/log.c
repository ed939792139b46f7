/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_log.h"
#include <stddef.h>

static sl_log_fn hook;
static void *hook_arg;

void
sl_log_set(sl_log_fn fn, void *arg)
{
	hook = fn;
	hook_arg = arg;
}

void
sl_log(enum sl_log_level level, enum sl_log_topic topic, const char *fmt, ...)
{
	va_list ap;

	if (hook == NULL)
		return;
	va_start(ap, fmt);
	hook(hook_arg, level, topic, fmt, ap);
	va_end(ap);
}
