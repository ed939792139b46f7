/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OVERLAY_TEST_H
#define OVERLAY_TEST_H
/* What the tests of the wire share. */
#include "sl_test.h"
#include "sl_wire.h"
#include "sl_wire_vectors.h"
#include <stdlib.h>

/* The bytes of a golden vector; returns their number, 0 (and fails the case) when there is none or it is too long. */
static inline size_t
vector_bytes(uint8_t *out, size_t size, const char *name)
{
	for (size_t i = 0; i < SL_WIRE_VECTOR_COUNT; i++) {
		size_t len = strlen(sl_wire_vectors[i].hex) / 2;

		if (strcmp(sl_wire_vectors[i].name, name) != 0)
			continue;
		if (len > size)
			break;
		sl_test_unhex(out, len, sl_wire_vectors[i].hex);
		return len;
	}
	sl_test_fail(__FILE__, __LINE__, "vector %s", name);
	return 0;
}

/* A copy that ends where its memory ends, so that the address sanitizer sees a read of one byte too many. */
static inline uint8_t *
exact_copy(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = calloc(1, len ? len : 1);

	if (copy == NULL)
		abort();
	if (len)
		memcpy(copy, bytes, len);
	return len ? copy : copy + 1; /* give back with exact_free */
}

static inline void
exact_free(uint8_t *copy, size_t len)
{
	free(len ? copy : copy - 1);
}

#endif
