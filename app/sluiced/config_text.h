/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_CONFIG_TEXT_H
#define SL_CONFIG_TEXT_H
/*
 * Values with a grammar of their own, for rows of config_table.c: text to target (0, or -1 with why, to follow the text in a
 * message) and back.
 */
#include "config_table.h"

int sl_conf_parse_npub(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_npub(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_nsec(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_nothing(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_ifaddr(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_ifaddr(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_prefix(void *target, const char *text, char why[SL_WHY_SIZE]);
int sl_conf_parse_gateway(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_gateway(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_bind(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_endpoint(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_external(void *target, const char *text, char why[SL_WHY_SIZE]);
int sl_conf_parse_relay(void *target, const char *text, char why[SL_WHY_SIZE]);
int sl_conf_parse_stun(void *target, const char *text, char why[SL_WHY_SIZE]);
int sl_conf_parse_cpu_or_auto(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_cpu_or_auto(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_name(void *target, const char *text, char why[SL_WHY_SIZE]);
void sl_conf_format_text(char out[SL_CONF_TEXT_SIZE], const void *target);
int sl_conf_parse_aead(void *target, const char *text, char why[SL_WHY_SIZE]);

#endif
