/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - the kernel's clocks as they are
 *
 * In other people's processes libfaketime may replace the C library's clock_gettime(), and stop the time: we would never give up a silent
 * converter, and times in the cache would mean something else in other processes. So we ask the kernel by a system call, unless the caller
 * of clock_use_library() knows that clock_gettime() is the C library's own, which needs no system call (vdso(7)).
 *
 * On 32-bit architectures, if programs are built for times of 64 bits (_TIME_BITS, see configure.ac), the shim has another struct timespec
 * than the rest. So functions of clock.c have none in their parameters.
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_library() - return the address of clock_gettime() that the dynamic linker has found, in any library */
uintptr_t clock_library(void);

/* clock_use_library() - use clock_gettime() from now on, which is the C library's own; called before there are threads */
void clock_use_library(void);

/* clock_read_ns() - clock_gettime(2), in nanoseconds; never fails, as every kernel has the clock */
int64_t clock_read_ns(clockid_t clock);

#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

/* CLOCK_MONOTONIC in nanoseconds. */
static inline int64_t clock_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CLOCK_BOOTTIME in whole seconds, for facts that end after some time: a suspend counts, as in the cache. */
static inline int64_t clock_seconds(void)
{
	return clock_read_ns(CLOCK_BOOTTIME) / CLOCK_NS_PER_S;
}

/* Microseconds, and milliseconds, of CLOCK_MONOTONIC; they never go back. */
static inline uint64_t clock_now_us(void)
{
	return (uint64_t)clock_ns() / 1000;
}

static inline uint64_t clock_now_ms(void)
{
	return clock_now_us() / 1000;
}

#endif
