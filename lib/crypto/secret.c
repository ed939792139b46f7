/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_secret.h"
#include "curve.h"

#include <errno.h>
#include <pthread.h>

#include <sodium.h>

int sl_crypto_init(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!done) {
		/* 1 means that somebody else in the process has started it: good as well. */
		rc = sodium_init() < 0 ? -EIO : sl_curve_init();
		done = rc == 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void sl_wipe(void *buf, size_t len)
{
	sodium_memzero(buf, len);
}

bool sl_equal_ct(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}

void sl_random(void *buf, size_t len)
{
	randombytes_buf(buf, len);
}

uint32_t sl_random_u32(void)
{
	return randombytes_random();
}

uint32_t sl_random_below(uint32_t bound)
{
	return randombytes_uniform(bound);
}

void *sl_secret_alloc(size_t size)
{
	/*
	 * sodium_malloc puts the end of the object against the guard page, so a size that is no
	 * multiple of the alignment would give a misaligned object.
	 */
	if (size > SIZE_MAX - 63) {
		errno = ENOMEM;
		return NULL;
	}
	return sodium_malloc((size + 63) & ~(size_t)63);
}

void sl_secret_free(void *secret)
{
	sodium_free(secret);
}
