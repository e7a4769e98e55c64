/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - the kernel's clocks as they are */
#include "config.h"

#include "common/clock.h"

#include "common/rawcall.h"

#include <stdbool.h>

#if RAWCALL_OWN
static bool by_library;
#else
static bool by_library = true; /* without system calls of our own the library is the only way */
#endif

uintptr_t clock_library(void)
{
	return (uintptr_t)clock_gettime;
}

void clock_use_library(void)
{
	by_library = true;
}

int64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	if (by_library)
		clock_gettime(clock, &now);
#if RAWCALL_OWN
	else
		rawcall_kernel(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
#endif
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}
