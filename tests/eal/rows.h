/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROWS_H
#define ROWS_H
#include <stdlib.h>
#include "rig.h"

/* Verdicts that some case of this executable has provoked and counted. */
extern bool rows_reached[SL_VERDICT_COUNT];
extern unsigned rows_kinds; /* kinds of links whose rows have run */

#endif
