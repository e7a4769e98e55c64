/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.h - for code in the application's threads: blocks signals and cancellation, waits for other threads, checks the stack
 *
 * A signal handler that runs in the middle of a change may need the half-changed data, or never return (siglongjmp(3)); a thread that is
 * cancelled in one of our system calls would leave a lock taken.
 */
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

#include "common/rawcall.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

struct quiet {
	sigset_t mask; /* the thread's own signal mask */
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

/* Restores both; errno stays as it was. */
static inline void quiet_end(const struct quiet *quiet)
{
	int saved_errno = errno; /* handlers run now, and may change it */

	pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
	pthread_setcancelstate(quiet->cancel_state, NULL);
	errno = saved_errno;
}

/*
 * Waiting until another thread has made a few system calls
 *
 * sched_yield() alone would suffice if all threads had the same priority. A thread of SCHED_FIFO doesn't yield to an ordinary one, which
 * then never finishes its calls on the same processor: so the waiting thread sleeps, after a few turns. This isn't a cancellation point.
 */

#define PATIENCE_YIELDS 64
#define PATIENCE_NS 50000

/* Gives the other thread some time. @turn: counts the calls; 0 before the first one */
static inline void patience(unsigned int *turn)
{
	static const struct timespec pause = { .tv_nsec = PATIENCE_NS };

	if (++*turn <= PATIENCE_YIELDS)
		sched_yield();
	else
		RAWCALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* --- is there room on the stack for optional work? --- */

/* Whether this process is one of ours: nobody changes its user, and no signal handler of it connects. Set it before there are threads. */
extern bool thread_process_is_ours;

/*
 * stack_is_small() - is this a signal handler on a stack of its own (sigaltstack(2))?
 * Such a stack may have only 8 KiB (SIGSTKSZ), and a wait of ours takes more than half of it. We leave work that takes as much again to
 * another connection or to a later look: learning from a connection and from the user's other processes, probing another path, writing to
 * the log.
 */
static inline bool stack_is_small(void)
{
	stack_t stack;

	return !thread_process_is_ours && sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

/* --- an errno in words, from any thread or signal handler --- */

/*
 * error_text() - return a static text in English for @error, positive
 * glibc's strerror(3) may allocate, and translates; musl's only looks into a table.
 */
static inline const char *error_text(int error)
{
#ifdef HAVE_STRERRORDESC_NP
	const char *text = strerrordesc_np(error);

	return text ? text : "unknown error";
#else
	return strerror(error);
#endif
}

#endif
