/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * course.c - what a connection does next, by what is seen of its call (no I/O)
 *
 * A direct connection goes on in the kernel when its call ends early, by a signal or by SO_SNDTIMEO: the program may wait for it by poll(),
 * call connect() again, or have the kernel do that (SA_RESTART). But a converter's response would be read by nobody then. So what goes on
 * is a connection without a response: a blind request, or a direct connection.
 */
#include "config.h"

#include "supervise/course.h"

#include "common/clock.h"

#include <errno.h>

enum course course_of_call(const struct course_call *call, int64_t now, int *error)
{
	const bool over = call->limit && now >= call->limit;

	*error = EINTR;
	if (call->gone)
		return COURSE_LEAVE;
	if (call->shut)
		return COURSE_SHUT;
	if (call->nonblocking)
		return over && !call->direct ? COURSE_OUT_OF_TIME : COURSE_ON;
	if (over)
		*error = EINPROGRESS;
	else if (call->interruption && !call->limit) /* a call with a time-out isn't made again: signal(7) */
		*error = call->interruption;
	return over || call->interruption ? COURSE_LEAVE : COURSE_ON;
}

enum course_way course_leave(const struct course_left *left)
{
	if (left->gone && left->stand_in)
		return COURSE_ENDED; /* whoever has the program's socket has one that was never connected */
	if (left->direct)
		return COURSE_AS_IT_IS;
	if (left->blind)
		return COURSE_BLINDLY;
	return left->gone || left->closed ? COURSE_ENDED : COURSE_DIRECTLY;
}

int64_t course_sooner(int64_t one, int64_t other)
{
	return one && (!other || one < other) ? one : other;
}

int course_wait_ms(int64_t at, int64_t now)
{
	if (!at)
		return -1;
	return at <= now ? 1 : (int)((at - now) / CLOCK_NS_PER_MS) + 1;
}
