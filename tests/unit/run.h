/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - the end of every Check program's main() */
#ifndef TESTS_UNIT_RUN_H
#define TESTS_UNIT_RUN_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Check gives a test four seconds. The longest ones exceed them under a sanitizer on a machine that runs four programs on each CPU.
 * This limit only ends a test that hangs.
 */
static __attribute__((constructor)) void limit_for_hangs_only(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "600", 0);
}

/*
 * Says why a test can't be run here, and fails it with CONVERT_NO_SKIP=1, as in CI. Otherwise the test returns then, and passes: also under
 * the thread sanitizer, whose own thread keeps the process from a user namespace (unshare(2)).
 */
static inline void test_skip(const char *why)
{
#ifdef __SANITIZE_THREAD__
	const char *no_skip = NULL;
#else
	const char *no_skip = getenv("CONVERT_NO_SKIP");
#endif

	ck_assert_msg(!no_skip || !*no_skip, "can't be run here: %s", why);
	printf("skipped: %s\n", why);
}

/* Tells whether root runs this. If not, it says that the test makes no sense, which is never a failure. */
static inline bool test_is_root(void)
{
	if (geteuid() == 0)
		return true;
	printf("nothing was tested: only root can become another user; run it as root\n");
	return false;
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
