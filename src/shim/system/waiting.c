/* SPDX-License-Identifier: BSD-3-Clause */
/* waiting.c - signals and cancellation while a hook makes several system calls for one call of the application */
#include "config.h"

#include "shim/system/waiting.h"

#include <stdbool.h>
#include <stddef.h>

#define STANDARD_SIGNALS 31 /* the highest number of a standard signal, signal(7) */

static bool is_ignored_by_default(int number)
{
	return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

static bool is_ignored(int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) != 0 || (action.sa_flags & SA_SIGINFO))
		return false;
	return action.sa_handler == SIG_IGN ||
	       (action.sa_handler == SIG_DFL && is_ignored_by_default(number));
}

void quiet_admit_ignored(const struct quiet *quiet)
{
	sigset_t ignored;

	sigemptyset(&ignored);
	for (int number = 1; number <= STANDARD_SIGNALS; number++)
		if (!sigismember(&quiet->mask, number) && is_ignored(number))
			sigaddset(&ignored, number);
	pthread_sigmask(SIG_UNBLOCK, &ignored, NULL);
}
