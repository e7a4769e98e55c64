/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience.h - waiting for another thread to come to the end of a few system calls
 *
 * sched_yield() alone would do if all threads had the same priority. A thread of SCHED_FIFO doesn't yield to an ordinary
 * one, which then never comes to the end of its calls on the same processor: so the waiting thread sleeps, after a few
 * turns. This is no cancellation point.
 */
#ifndef COMMON_PATIENCE_H
#define COMMON_PATIENCE_H

#include "common/rawcall.h"

#include <sched.h>
#include <time.h>

#define PATIENCE_YIELDS 64
#define PATIENCE_NS 50000

/* Gives the other thread some time. @turn: counts the calls; 0 before the first one */
static inline void patience(unsigned int *turn)
{
	static const struct timespec pause = { .tv_nsec = PATIENCE_NS };

	if (++*turn <= PATIENCE_YIELDS)
		sched_yield();
	else
		RAWCALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

#endif
