/* SPDX-License-Identifier: BSD-3-Clause */
#include "sl_secret.h"
#include "sl_test.h"

int sl_test_setup(int argc, char **argv);

int sl_test_setup(int argc, char **argv)
{
	return sl_crypto_init();
}
