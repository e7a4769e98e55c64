/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - the kernel's clocks as they are
 *
 * In other people's processes libfaketime may stand in front of the C library's clock_gettime(), and let time stand still:
 * a silent converter would never be given up, and times in the cache would mean something else in other processes. So the
 * kernel is asked by a system call, unless clock_source says that clock_gettime() is the C library's own, which needs no
 * system call (vdso(7)).
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The C library's own clock_gettime(), or NULL while it isn't known. Set before there are threads. */
extern int (*clock_source)(clockid_t clock, struct timespec *now);

/* clock_gettime(2) of a clock that every kernel has, so that it can't fail. */
void clock_read(clockid_t clock, struct timespec *now);

#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

static inline int64_t clock_ns_of(const struct timespec *ts)
{
	return ts->tv_sec * CLOCK_NS_PER_S + ts->tv_nsec;
}

/* CLOCK_MONOTONIC in nanoseconds. */
static inline int64_t clock_ns(void)
{
	struct timespec now;

	clock_read(CLOCK_MONOTONIC, &now);
	return clock_ns_of(&now);
}

/* CLOCK_MONOTONIC in whole seconds. */
static inline int64_t clock_seconds(void)
{
	return clock_ns() / CLOCK_NS_PER_S;
}

#endif
