/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.h - sees whether a call still waits for its connection, and decides how the connection continues if not */
#ifndef SUPERVISE_CALLER_H
#define SUPERVISE_CALLER_H

#include "supervise/connection.h"

#include <stdbool.h>
#include <stdint.h>

/* Notes how long a new call may wait. */
void caller_begin(struct connection *connection);

/*
 * caller_look() - see whether the call still waits at the time @now, and still may
 * @caller: look at its thread, too. Returns false if that has ended the connection.
 */
bool caller_look(struct connection *connection, bool caller, int64_t now);

/* --- the decisions (no I/O) --- */

/* A call that waits for its connection. Times are CLOCK_MONOTONIC in nanoseconds. */
struct caller_view {
	int64_t limit;    /* when it has to be answered; 0: no limit */
	int interruption; /* tracee_interruption(): a signal is pending for the thread */
	bool nonblocking; /* it doesn't block: the limit is CONVERT_TIMEOUT; else it is the program's own (SO_SNDTIMEO) */
	bool direct;      /* the connection is direct: the kernel limits its time */
	bool gone;        /* the thread has ended, by a signal or another one's exec(); others may have the socket */
	bool shut;        /* the program has shut the socket down meanwhile, which ends a direct connection's attempt, too */
};

enum caller_verdict {
	CALLER_ON,          /* it waits on */
	CALLER_OUT_OF_TIME, /* the converter's time is over: connect directly, or fail */
	CALLER_LEAVE,       /* the call ends with *@error, and the socket continues to connect */
	CALLER_SHUT,        /* the attempt and the call end */
};

enum caller_verdict caller_judge(const struct caller_view *call, int64_t now, int *error);

/* A connection whose call ends. caller_way() decides how its socket continues, so that the program never reads a byte of Convert. */
struct caller_left {
	bool direct;   /* the connection is direct */
	bool stand_in; /* a stand-in is connected, not the program's socket */
	bool gone;     /* nothing can be put under the program's descriptors any more */
	bool blind;    /* a blind request to the converter is possible, and hasn't failed yet */
	bool closed;   /* CONVERT_FALLBACK=none forbids direct connections */
};

enum caller_way {
	CALLER_AS_IT_IS, /* unchanged */
	CALLER_BLINDLY,  /* by a blind request, which has no response */
	CALLER_DIRECTLY, /* without a converter */
	CALLER_ENDED,    /* not at all: the attempt ends */
};

enum caller_way caller_way(const struct caller_left *left);

/* Returns the sooner of two times; 0 stands for none. */
int64_t caller_sooner(int64_t one, int64_t other);

/* Returns how many milliseconds to wait for the time @at, never too few; -1, for ever, if @at is 0. */
int caller_wait_ms(int64_t at, int64_t now);

#endif
