/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiting.h - signals and cancellation while a hook makes several system calls for one call of the application
 *
 * A signal that arrives during the kernel's poll() interrupts it (EINTR). If one arrived between two of our waits for the same call, its
 * handler would run, and the call would go on waiting. So we block signals except during our waits, which get the thread's own mask; and a
 * thread can be cancelled only during such a wait, when nothing is half done.
 *
 *   quiet_all(&quiet);
 *   pthread_cleanup_push(...quiet_end(&quiet)...);
 *   ... quiet_listen(&quiet); ret = next.ppoll(..., mask ? mask : &quiet.mask); quiet_resume(); ...
 *   pthread_cleanup_pop(1);
 */
#ifndef SHIM_WAITING_H
#define SHIM_WAITING_H

#include "common/clock.h"
#include "common/thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * quiet_admit_ignored() - unblock the signals that the process ignores
 * Call it before a wait that the kernel doesn't restart after a signal without a handler, such as epoll_wait(2). The kernel discards an
 * ignored signal when it arrives, but keeps a blocked one, which would interrupt the wait as soon as the wait admits it. Signals that the
 * application itself blocks stay blocked. Makes some 30 system calls: for a thread that is about to sleep.
 */
void quiet_admit_ignored(const struct quiet *quiet);

/* quiet_listen(), quiet_resume() - allow cancellation around a wait; the wait gets quiet.mask to admit signals */
static inline void quiet_listen(const struct quiet *quiet)
{
	pthread_setcancelstate(quiet->cancel_state, NULL);
}

static inline void quiet_resume(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* --- one time-out over several waits, so that the caller's never starts again --- */

struct deadline {
	bool infinite;
	struct timespec at; /* CLOCK_MONOTONIC */
};

/* Would the kernel accept @timeout, or is it NULL? The kernel itself refuses all others. */
static inline bool timeout_is_valid(const struct timespec *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000);
}

static inline struct deadline deadline_in(const struct timespec *timeout)
{
	struct deadline deadline = { .infinite = !timeout };

	if (!timeout)
		return deadline;
	clock_read(CLOCK_MONOTONIC, &deadline.at);
	/* INT32_MAX seconds are far beyond any uptime, and the sum doesn't overflow. */
	deadline.at.tv_sec += timeout->tv_sec < INT32_MAX ? timeout->tv_sec : INT32_MAX;
	deadline.at.tv_nsec += timeout->tv_nsec;
	if (deadline.at.tv_nsec >= 1000000000) {
		deadline.at.tv_nsec -= 1000000000;
		deadline.at.tv_sec++;
	}
	return deadline;
}

static inline struct timespec timespec_of_ms(int ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
}

static inline struct deadline deadline_in_ms(int ms)
{
	struct timespec timeout = timespec_of_ms(ms);

	return deadline_in(ms < 0 ? NULL : &timeout);
}

/* Returns @left, the remaining time, at least 0; or NULL if the deadline is infinite, as waiting functions expect. */
static inline struct timespec *deadline_left(const struct deadline *deadline, struct timespec *left)
{
	struct timespec now;

	if (deadline->infinite)
		return NULL;
	clock_read(CLOCK_MONOTONIC, &now);
	left->tv_sec = deadline->at.tv_sec - now.tv_sec;
	left->tv_nsec = deadline->at.tv_nsec - now.tv_nsec;
	if (left->tv_nsec < 0) {
		left->tv_nsec += 1000000000;
		left->tv_sec--;
	}
	if (left->tv_sec < 0)
		left->tv_sec = left->tv_nsec = 0;
	return left;
}

/* Returns the remaining time in milliseconds, rounded up so that a wait never ends early, or -1 if the deadline is infinite. */
static inline int deadline_left_ms(const struct deadline *deadline)
{
	struct timespec left;

	if (!deadline_left(deadline, &left))
		return -1;
	if (left.tv_sec >= INT32_MAX / 1000)
		return INT32_MAX;
	return (int)(left.tv_sec * 1000 + (left.tv_nsec + 999999) / 1000000);
}

static inline bool deadline_is_over(const struct deadline *deadline)
{
	struct timespec left;

	return deadline_left(deadline, &left) && !left.tv_sec && !left.tv_nsec;
}

/* Returns @deadline, or @ns if that is earlier: a time of CLOCK_MONOTONIC in nanoseconds, 0 for none. */
static inline struct deadline deadline_earlier(const struct deadline *deadline, int64_t ns)
{
	struct deadline other = { .at = { ns / 1000000000, ns % 1000000000 } };

	if (!ns)
		return *deadline;
	if (deadline->infinite || other.at.tv_sec < deadline->at.tv_sec ||
	    (other.at.tv_sec == deadline->at.tv_sec && other.at.tv_nsec < deadline->at.tv_nsec))
		return other;
	return *deadline;
}

#endif
