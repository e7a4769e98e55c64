/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - the kernel's clocks as they are */
#include "config.h"

#include "common/clock.h"

#include "common/rawcall.h"

#include <stddef.h>

int (*clock_source)(clockid_t clock, struct timespec *now) = NULL;

void clock_read(clockid_t clock, struct timespec *now)
{
	if (clock_source) {
		clock_source(clock, now);
		return;
	}
#if RAWCALL_OWN
	rawcall_kernel(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
#else
	clock_gettime(clock, now);
#endif
}
