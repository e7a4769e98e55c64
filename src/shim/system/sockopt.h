/* SPDX-License-Identifier: BSD-3-Clause */
/* sockopt.h - socket options that are a number */
#ifndef SHIM_SOCKOPT_H
#define SHIM_SOCKOPT_H

#include "shim/system/next.h"

#include <stdbool.h>

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

#endif
