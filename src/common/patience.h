/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience.h - waiting for another thread to come to the end of a few system calls
 *
 * sched_yield() alone would do if all threads had the same priority. One of SCHED_FIFO doesn't yield to an
 * ordinary one, which then never gets to its end on the same processor: so it sleeps, after a few turns.
 * No point of cancellation.
 */
#ifndef COMMON_PATIENCE_H
#define COMMON_PATIENCE_H

#include "common/rawcall.h"

#include <sched.h>
#include <time.h>

#define PATIENCE_YIELDS 64
#define PATIENCE_NS 50000

/* @turn: 0 before the first */
static inline void patience(unsigned int *turn)
{
	static const struct timespec pause = { .tv_nsec = PATIENCE_NS };

	if (++*turn <= PATIENCE_YIELDS)
		sched_yield();
	else
		RAWCALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

#endif
