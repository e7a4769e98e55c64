/* SPDX-License-Identifier: BSD-3-Clause */
/* sockopt.h - socket options that are a number */
#ifndef SHIM_SOCKOPT_H
#define SHIM_SOCKOPT_H

#include "common/clock.h"
#include "shim/system/next.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

/* getsockopt(2) of an int, past the hooks. Returns @fallback where the kernel refuses; errno is then what it says. */
static inline int sockopt_get(int fd, int level, int name, int fallback)
{
	socklen_t len = sizeof(int);
	int value;

	return next.getsockopt(fd, level, name, &value, &len) == 0 ? value : fallback;
}

/* setsockopt(2) of an int, past the hooks. Returns whether the kernel has taken it. */
static inline bool sockopt_set(int fd, int level, int name, int value)
{
	return next.setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/*
 * sockopt_limit_end() - when does the time limit @option of a socket, SO_RCVTIMEO or SO_SNDTIMEO, end?
 * Counted from @start; both in ns of CLOCK_MONOTONIC. 0: it has none.
 */
static inline int64_t sockopt_limit_end(int fd, int option, int64_t start)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);

	next.getsockopt(fd, SOL_SOCKET, option, &limit, &len);
	if (!limit.tv_sec && !limit.tv_usec)
		return 0;
	return start + limit.tv_sec * CLOCK_NS_PER_S + limit.tv_usec * INT64_C(1000);
}

#endif
