/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEMORY_SCALE_H
#define MEMORY_SCALE_H
#include <stdbool.h>
#include <stdint.h>

/* memory --scale. EAL is up. */
struct memory_scale {
	uint32_t peers, known, active;
	uint16_t workers;
	bool json;
};
/* 0; 1 when what was seen is more than a tenth above what was predicted; 2 when it cannot be set up. */
int memory_scale(const struct memory_scale *s);
/* Resident memory of this process. */
double resident_mib(void);

#endif
