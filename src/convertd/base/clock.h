/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - CLOCK_MONOTONIC as a number; any thread may ask */
#ifndef CONVERTD_CLOCK_H
#define CONVERTD_CLOCK_H

#include <stdint.h>

/* Milliseconds, and microseconds, since some point in the past (clock_gettime(2)); they never go back. */
uint64_t clock_now_ms(void);
uint64_t clock_now_us(void);

#endif
