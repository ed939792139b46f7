/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_GAUGE_H
#define SL_GAUGE_H
/*
 * What the machine gives at the moment: its clock, and how much of the core's vector ports others
 * leave. On a virtual machine the core's other thread may be somebody else's, and the clock follows
 * what the whole package does; figures mean little without it.
 *
 * Takes about two microseconds. Needs AVX-512; without it all is zero.
 */
#include <stdint.h>
#include <time.h>

static inline double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct gauge {
	double ghz;
	double adds; /* 512-bit additions a cycle: 2 when nobody else has any */
};

#define GAUGE_QUIET 1.9

#define GAUGE_TEN_(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9)
#define GAUGE_MULTIPLY_(i) "imul %0, %0\n\t" /* three cycles, each waits for the last */
#define GAUGE_ADD_(i) "vpaddd %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n\t"

/* clock_ns: what reading the clock costs. */
static inline struct gauge gauge(double clock_ns)
{
#ifdef AEAD_AVX512
	uint64_t x = 1;
	double t[3], cycles;

	if (!aead_avx512_supported())
		return (struct gauge){0, 0};
	t[0] = now_ns();
	for (unsigned i = 0; i < 100; i++)
		__asm__ volatile(GAUGE_TEN_(GAUGE_MULTIPLY_) : "+r"(x));
	t[1] = now_ns();
	for (unsigned i = 0; i < 200; i++)
		__asm__ volatile(GAUGE_TEN_(GAUGE_ADD_)
				 :
				 :
				 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
				 "xmm8", "xmm9");
	t[2] = now_ns();
	cycles = 3000 / (t[1] - t[0] - clock_ns); /* a nanosecond */
	return (struct gauge){cycles, 2000 / (cycles * (t[2] - t[1] - clock_ns))};
#else
	(void)clock_ns;
	return (struct gauge){0, 0};
#endif
}

#endif
