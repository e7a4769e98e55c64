/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiting.h - signals, cancellation and errno while a hook makes several system calls for one call of the application
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

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* quiet_listen(), quiet_resume() - allow cancellation around a wait; the wait gets quiet.mask to admit signals */
static inline void quiet_listen(const struct quiet *quiet)
{
	pthread_setcancelstate(quiet->cancel_state, NULL);
}

static inline void quiet_resume(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* ERRNO_KEPT; among a function's declarations: errno is at its end as it was at its beginning. */
static inline void errno_restore(const int *kept)
{
	errno = *kept;
}
#define ERRNO_KEPT __attribute__((cleanup(errno_restore))) const int errno_kept = errno

/* --- one time-out over several waits, so that the caller's never starts again: its end, in ns of CLOCK_MONOTONIC --- */

#define DEADLINE_NEVER INT64_MAX

/* Would the kernel accept @timeout, or is it NULL? The kernel itself refuses all others. */
static inline bool timeout_is_valid(const struct timespec *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < CLOCK_NS_PER_S);
}

/* INT32_MAX seconds are far beyond any uptime, and the sum doesn't overflow. */
static inline int64_t deadline_in(const struct timespec *timeout)
{
	if (!timeout)
		return DEADLINE_NEVER;
	return clock_ns() + (timeout->tv_sec < INT32_MAX ? timeout->tv_sec : INT32_MAX) * CLOCK_NS_PER_S + timeout->tv_nsec;
}

static inline int64_t deadline_in_ms(int ms)
{
	return ms < 0 ? DEADLINE_NEVER : clock_ns() + ms * CLOCK_NS_PER_MS;
}

/* Returns the remaining time in ns, at least 0; DEADLINE_NEVER: there is no end. */
static inline int64_t deadline_left_ns(int64_t deadline)
{
	int64_t left = deadline == DEADLINE_NEVER ? DEADLINE_NEVER : deadline - clock_ns();

	return left > 0 ? left : 0;
}

/* Returns @left, the remaining time; or NULL if there is no end, as waiting functions expect. */
static inline struct timespec *deadline_left(int64_t deadline, struct timespec *left)
{
	int64_t ns = deadline_left_ns(deadline);

	*left = (struct timespec){ (time_t)(ns / CLOCK_NS_PER_S), (long)(ns % CLOCK_NS_PER_S) };
	return deadline == DEADLINE_NEVER ? NULL : left;
}

/* Returns the remaining time in milliseconds, rounded up so that a wait never ends early, or -1 if there is no end. */
static inline int deadline_left_ms(int64_t deadline)
{
	int64_t ns = deadline_left_ns(deadline), ms = ns / CLOCK_NS_PER_MS + (ns % CLOCK_NS_PER_MS > 0);

	if (deadline == DEADLINE_NEVER)
		return -1;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static inline bool deadline_is_over(int64_t deadline)
{
	return !deadline_left_ns(deadline);
}

/* Returns @deadline, or @other if that is earlier; 0: there is no other. */
static inline int64_t deadline_earlier(int64_t deadline, int64_t other)
{
	return other && other < deadline ? other : deadline;
}

#endif
