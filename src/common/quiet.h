/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet.h - a few steps of ours that neither a signal handler nor a cancellation comes between
 *
 * This code runs in the application's threads. A handler that runs in the middle of a change may need what is half
 * changed, or never return (siglongjmp(3)); a thread that is cancelled in one of our system calls would leave a lock taken.
 */
#ifndef COMMON_QUIET_H
#define COMMON_QUIET_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>

struct quiet {
	sigset_t mask; /* the signals that the thread blocked before */
	int cancel_state;
};

/* Blocks all signals and disables cancellation of the calling thread, until quiet_end(). */
static inline void quiet_all(struct quiet *quiet)
{
	sigset_t all;

	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel_state);
	pthread_sigmask(SIG_SETMASK, &all, &quiet->mask);
}

/* Restores both; errno is left alone. */
static inline void quiet_end(const struct quiet *quiet)
{
	int saved_errno = errno; /* handlers run now, and may change it */

	pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
	pthread_setcancelstate(quiet->cancel_state, NULL);
	errno = saved_errno;
}

#endif
