/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a failing self-test leads to: this program is linked with a self-test that fails for the engine named in
 * aead_fault. Verdicts are kept for the life of a process, so each case is a process of its own.
 */
#include "aead_backend.h"
#include "sl_test.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

extern const char *aead_fault;

/* Without another engine libsodium's is all there is, and nothing to fall back on. */
#if defined(AEAD_AVX512) || defined(AEAD_AVX2) || defined(AEAD_IPSEC_MB)
/* In a child: status 0 when everything is as it should be with `faulty` failing. */
static int look(const struct sl_aead_backend *faulty)
{
	const struct sl_aead_backend *wide, *narrow;
	struct sl_aead_ctx *ctx;
	uint64_t answer[2];

	aead_fault = faulty->name;
	if (sl_aead_self_test(faulty) != SL_AEAD_FAILED || faulty->usable())
		return 1;
	errno = 0;
	if (sl_aead_backend_find(faulty->name) || errno != ENOTSUP)
		return 2;
	sl_aead_auto_uses(&wide, &narrow);
	if (wide == faulty || narrow == faulty)
		return 3;
	/* What is left does its work. */
	ctx = sl_aead_auto.create(64);
	aead_selftest_fold(answer, &sl_aead_auto, ctx);
	sl_aead_auto.destroy(ctx);
	if (answer[0] != AEAD_SELFTEST_0 || answer[1] != AEAD_SELFTEST_1)
		return 4;
	for (unsigned i = 1; sl_aead_backends()[i]; i++)
		if (sl_aead_backends()[i] != faulty && sl_aead_self_test(sl_aead_backends()[i]) == SL_AEAD_FAILED)
			return 5;
	return 0;
}

static void in_a_child(const struct sl_aead_backend *faulty)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(look(faulty));
	SL_ASSERT(child > 0);
	SL_ASSERT(waitpid(child, &status, 0) == child);
	SL_EXPECT(WIFEXITED(status));
	SL_EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

SL_TEST(fault, avx512)
{
#ifdef AEAD_AVX512
	if (!aead_avx512_supported())
		SL_SKIP("no AVX-512 with IFMA here");
	in_a_child(&sl_aead_avx512);
#else
	SL_SKIP("not in this build");
#endif
}

SL_TEST(fault, avx2)
{
#ifdef AEAD_AVX2
	if (!aead_avx2_supported())
		SL_SKIP("no AVX2 here");
	in_a_child(&sl_aead_avx2);
#else
	SL_SKIP("not in this build");
#endif
}

SL_TEST(fault, ipsec_mb)
{
#ifdef AEAD_IPSEC_MB
	in_a_child(&sl_aead_ipsec_mb);
#else
	SL_SKIP("not in this build");
#endif
}
