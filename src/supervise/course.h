/* SPDX-License-Identifier: BSD-3-Clause */
/* course.h - what a connection does next, by what is seen of its call (no I/O) */
#ifndef SUPERVISE_COURSE_H
#define SUPERVISE_COURSE_H

#include <stdbool.h>
#include <stdint.h>

/* A call that waits for its connection. Times are CLOCK_MONOTONIC in nanoseconds. */
struct course_call {
	int64_t limit;    /* when it has to be answered; 0: it may take its time */
	int interruption; /* tracee_interruption(): a signal waits for the thread */
	bool nonblocking; /* it doesn't block: the limit is CONVERT_TIMEOUT's, else the program's own (SO_SNDTIMEO) */
	bool direct;      /* no converter is asked any more: the kernel says how long that takes */
	bool gone;        /* the thread has ended, by a signal or another one's exec(), and others may have the socket */
	bool shut;        /* the program has shut the socket down meanwhile, which ends a direct connection's attempt */
};

enum course {
	COURSE_ON,          /* it waits on */
	COURSE_OUT_OF_TIME, /* the converter's time is over: a direct connection, or an error */
	COURSE_LEAVE,       /* the call ends with *@error, and the socket goes on connecting without it */
	COURSE_SHUT,        /* the attempt is ended, and the call with it */
};

enum course course_of_call(const struct course_call *call, int64_t now, int *error);

/* How a socket goes on connecting whose call ends, so that no byte of Convert is ever in its stream. */
struct course_left {
	bool direct;   /* no converter is asked any more */
	bool stand_in; /* another socket is connected than the program's */
	bool gone;     /* nothing can be put under the program's descriptors any more */
	bool blind;    /* a blind request to the converter is possible, and wasn't tried in vain */
	bool closed;   /* CONVERT_FALLBACK=none: nothing is to go directly */
};

enum course_way {
	COURSE_AS_IT_IS, /* as it does already */
	COURSE_BLINDLY,  /* by a blind request, which has no response */
	COURSE_DIRECTLY, /* without a converter */
	COURSE_ENDED,    /* not at all: the attempt is ended */
};

enum course_way course_leave(const struct course_left *left);

/* The sooner of two times, of which 0 is none. */
int64_t course_sooner(int64_t one, int64_t other);

/* How many milliseconds to wait for something that is due @at, and not sooner; -1, for ever, if that is 0. */
int course_wait_ms(int64_t at, int64_t now);

#endif
