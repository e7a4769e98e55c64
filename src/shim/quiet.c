/* SPDX-License-Identifier: BSD-3-Clause */
/* quiet.c - one wait of the application's that is several of ours */
#include "config.h"

#include "shim/quiet.h"

#include <stdbool.h>
#include <stddef.h>

#define STANDARD_SIGNALS 31 /* signal(7): those in front of the real-time signals */

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

/*
 * The kernel throws an ignored signal away where it arrives, unless it is blocked: then it is kept, and
 * would interrupt epoll_wait(2), which isn't restarted, as soon as it is let in.
 */
void quiet_begin(struct quiet *quiet)
{
	sigset_t blocked;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel_state);
	sigfillset(&blocked);
	for (int number = 1; number <= STANDARD_SIGNALS; number++)
		if (is_ignored(number))
			sigdelset(&blocked, number);
	pthread_sigmask(SIG_SETMASK, &blocked, &quiet->mask);
}
