/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_SECRET_H
#define SL_SECRET_H
/*
 * Secrets: start-up of the crypto library, wiping, constant-time comparison, randomness, locked
 * memory.
 *
 * Invariant: whatever holds a secret is wiped before its memory is given back, and no secret is
 * ever logged. Order of calls: sl_crypto_init() once, before anything else of lib/crypto. Thread
 * safe after that. All of it stands on libsodium.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_MUST_CHECK __attribute__((warn_unused_result))

/* 0, or -EIO when the library or the system's random source cannot be used. May be called again. */
int sl_crypto_init(void) SL_MUST_CHECK;

/* Overwrites len bytes; the compiler may not remove it. */
void sl_wipe(void *buf, size_t len);

/* True when equal; the time depends on len only. */
bool sl_equal_ct(const void *a, const void *b, size_t len) SL_MUST_CHECK;

void sl_random(void *buf, size_t len);
uint32_t sl_random_u32(void);
/* Uniform in [0, bound); bound > 0. */
uint32_t sl_random_below(uint32_t bound);

/*
 * Guarded, locked, not dumped memory (sodium_malloc): for the few long-lived secrets, since each
 * object costs whole pages. Session keys live in sl_session's arena instead. NULL and errno when
 * memory is short. sl_secret_free() wipes; NULL is allowed.
 */
void *sl_secret_alloc(size_t size) SL_MUST_CHECK;
void sl_secret_free(void *secret);

#ifdef __cplusplus
}
#endif
#endif
