/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL once per executable. */
#include <rte_eal.h>
#include "rig.h"

int sl_test_setup(int argc, char **argv);
void sl_test_teardown(void);

int
sl_test_setup(int argc, char **argv)
{
	return rig_eal_init();
}

void
sl_test_teardown(void)
{
	rte_eal_cleanup();
}
