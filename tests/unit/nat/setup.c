/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the crypto library once for a suite that draws random numbers or verifies signatures. */
#include "sl_secret.h"
#include "sl_test.h"

int sl_test_setup(int argc, char **argv);

int
sl_test_setup(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_crypto_init();
}
