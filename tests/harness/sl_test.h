/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_TEST_H
#define SL_TEST_H
/*
 * C test cases run by Google Test.
 *
 *	SL_TEST(suite, name) { SL_EXPECT_EQ(1 + 1, 2); }
 *
 * Cases register themselves before main(); runner.cc hands them to Google Test. EXPECT notes a failure and goes on;
 * ASSERT returns from the test function. Random tests draw from sl_test_rand() and print sl_test_seed() when they fail
 * (SL_TEST_SEED in the environment repeats a run).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_test_case {
	const char *suite, *name, *file;
	int line;
	void (*run)(void);
	struct sl_test_case *next;
};
void sl_test_register(struct sl_test_case *c);
void sl_test_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void sl_test_skip(const char *file, int line, const char *why);
bool sl_test_failed(void); /* has the running case failed */

uint64_t sl_test_seed(void); /* of this process; printed at start */
uint64_t sl_test_rand(void); /* xoshiro256**, restarted from the seed for every case */
void sl_test_rand_bytes(void *buf, size_t len);
/* Hex text (spaces allowed) to bytes; fails the case when it is not len bytes. */
void sl_test_unhex(void *out, size_t len, const char *hex);
bool sl_test_mem_equal(const char *file, int line, const char *what, const void *got, const void *want, size_t len);

#define SL_TEST(suite_, name_)                                                                                         \
	static void sl_test_##suite_##_##name_(void);                                                                  \
	static struct sl_test_case sl_case_##suite_##_##name_ = {                                                      \
		#suite_, #name_, __FILE__, __LINE__, sl_test_##suite_##_##name_, NULL};                                \
	__attribute__((constructor)) static void sl_reg_##suite_##_##name_(void)                                       \
	{                                                                                                              \
		sl_test_register(&sl_case_##suite_##_##name_);                                                         \
	}                                                                                                              \
	static void sl_test_##suite_##_##name_(void)

#define SL_EXPECT(cond)                                                                                                \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			sl_test_fail(__FILE__, __LINE__, "expected: %s", #cond);                                       \
	} while (0)
#define SL_EXPECT_MSG(cond, ...)                                                                                       \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			sl_test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                 \
	} while (0)
#define SL_CMP_(got, op, want)                                                                                         \
	do {                                                                                                           \
		long long got_ = (long long)(got), want_ = (long long)(want);                                          \
		if (!(got_ op want_))                                                                                  \
			sl_test_fail(__FILE__, __LINE__, "%s %s %s: %lld vs %lld", #got, #op, #want, got_, want_);     \
	} while (0)
#define SL_EXPECT_EQ(got, want) SL_CMP_(got, ==, want)
#define SL_EXPECT_NE(got, want) SL_CMP_(got, !=, want)
#define SL_EXPECT_LT(got, want) SL_CMP_(got, <, want)
#define SL_EXPECT_LE(got, want) SL_CMP_(got, <=, want)
#define SL_EXPECT_GE(got, want) SL_CMP_(got, >=, want)
#define SL_EXPECT_GT(got, want) SL_CMP_(got, >, want)
#define SL_EXPECT_MEM(got, want, len) (void)sl_test_mem_equal(__FILE__, __LINE__, #got, got, want, len)
#define SL_EXPECT_STR(got, want)                                                                                       \
	do {                                                                                                           \
		const char *got_ = (got), *want_ = (want);                                                             \
		if (!got_ || strcmp(got_, want_) != 0)                                                                 \
			sl_test_fail(__FILE__, __LINE__, "%s: \"%s\" vs \"%s\"", #got, got_ ? got_ : "(null)", want_); \
	} while (0)
#define SL_ASSERT(cond)                                                                                                \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			sl_test_fail(__FILE__, __LINE__, "asserted: %s", #cond);                                       \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)
#define SL_SKIP(why)                                                                                                   \
	do {                                                                                                           \
		sl_test_skip(__FILE__, __LINE__, why);                                                                 \
		return;                                                                                                \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
