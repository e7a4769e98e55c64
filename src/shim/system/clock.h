/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - CLOCK_MONOTONIC as a single number */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include "common/clock.h"

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

static inline int64_t clock_ns_of(const struct timespec *ts)
{
	return ts->tv_sec * CLOCK_NS_PER_S + ts->tv_nsec;
}

static inline int64_t clock_ns(void)
{
	struct timespec now;

	clock_read(CLOCK_MONOTONIC, &now);
	return clock_ns_of(&now);
}

static inline int64_t clock_seconds(void)
{
	return clock_ns() / CLOCK_NS_PER_S;
}

#endif
