/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_LOG_H
#define SL_LOG_H
/*
 * How libraries say something to the operator without printing: one hook, set by the program at start, called from
 * control only. Workers count, they do not log. No key and no packet content is ever passed here.
 * One topic a library; the program limits the rate per (topic, format string) and tells how many it left out.
 */
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARNING, SL_LOG_NOTICE, SL_LOG_INFO, SL_LOG_DEBUG };
enum sl_log_topic { SL_TOPIC_CRYPTO, SL_TOPIC_LINK, SL_TOPIC_ROUTE, SL_TOPIC_PIPELINE, SL_TOPIC_APP, SL_TOPIC_COUNT };

typedef void (*sl_log_fn)(void *arg, enum sl_log_level level, enum sl_log_topic topic, const char *fmt, va_list ap);

/* NULL (the start value) = silence. Set before any other thread runs. */
void sl_log_set(sl_log_fn fn, void *arg);
void sl_log(enum sl_log_level level, enum sl_log_topic topic, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
