/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - CLOCK_MONOTONIC as a number; any thread may ask */
#include "config.h"

#include "convertd/base/clock.h"

#include <time.h>

uint64_t clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_now_ms(void)
{
	return clock_now_us() / 1000;
}
