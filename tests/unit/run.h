/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - the end of every Check program's main() */
#ifndef TESTS_UNIT_RUN_H
#define TESTS_UNIT_RUN_H

#include <check.h>
#include <stdlib.h>

/*
 * Check gives a test four seconds. The longest ones exceed them under a sanitizer on a machine that runs four programs on each CPU.
 * This limit only ends a test that hangs.
 */
static __attribute__((constructor)) void limit_for_hangs_only(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "600", 0);
}

/* Runs and frees the suite, as verbose as CK_VERBOSITY says; returns the exit status. */
static inline int test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
