/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_FUZZ_H
#define SL_FUZZ_H
/*
 * What the fuzz targets share. A target defines LLVMFuzzerTestOneInput(); the buffer it gets ends where its memory
 * ends, so the address sanitizer sees every read too far. Beyond not crashing, each target holds its code to
 * properties with FUZZ_CHECK, and its opening comment says which.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv); /* only where something is started once */
#ifdef __cplusplus
}
#endif

#define FUZZ_CHECK(cond)                                                                           \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
