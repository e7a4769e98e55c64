/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.h - whether a call still waits for its connection, and what becomes of that when it doesn't */
#ifndef SUPERVISE_CALLER_H
#define SUPERVISE_CALLER_H

#include "supervise/connection.h"

#include <stdbool.h>
#include <stdint.h>

/* The call has come: notes for how long it may wait. */
void caller_begin(struct connection *connection);

/*
 * caller_look() - does the call still wait, @now, and may it?
 * @caller: look at its thread, too. Returns false if the connection is over because of that.
 */
bool caller_look(struct connection *connection, bool caller, int64_t now);

/* --- what a connection does next, by what is seen of its call (no I/O) --- */

/* A call that waits for its connection. Times are CLOCK_MONOTONIC in nanoseconds. */
struct caller_view {
	int64_t limit;    /* when it has to be answered; 0: it may take its time */
	int interruption; /* tracee_interruption(): a signal waits for the thread */
	bool nonblocking; /* it doesn't block: the limit is CONVERT_TIMEOUT's, else the program's own (SO_SNDTIMEO) */
	bool direct;      /* no converter is asked any more: the kernel says how long that takes */
	bool gone;        /* the thread has ended, by a signal or another one's exec(), and others may have the socket */
	bool shut;        /* the program has shut the socket down meanwhile, which ends a direct connection's attempt */
};

enum caller_verdict {
	CALLER_ON,          /* it waits on */
	CALLER_OUT_OF_TIME, /* the converter's time is over: a direct connection, or an error */
	CALLER_LEAVE,       /* the call ends with *@error, and the socket goes on connecting without it */
	CALLER_SHUT,        /* the attempt is ended, and the call with it */
};

enum caller_verdict caller_judge(const struct caller_view *call, int64_t now, int *error);

/* How a socket goes on connecting whose call ends, so that no byte of Convert is ever in its stream. */
struct caller_left {
	bool direct;   /* no converter is asked any more */
	bool stand_in; /* another socket is connected than the program's */
	bool gone;     /* nothing can be put under the program's descriptors any more */
	bool blind;    /* a blind request to the converter is possible, and wasn't tried in vain */
	bool closed;   /* CONVERT_FALLBACK=none: nothing is to go directly */
};

enum caller_way {
	CALLER_AS_IT_IS, /* as it does already */
	CALLER_BLINDLY,  /* by a blind request, which has no response */
	CALLER_DIRECTLY, /* without a converter */
	CALLER_ENDED,    /* not at all: the attempt is ended */
};

enum caller_way caller_way(const struct caller_left *left);

/* The sooner of two times, of which 0 is none. */
int64_t caller_sooner(int64_t one, int64_t other);

/* How many milliseconds to wait for something that is due @at, and not sooner; -1, for ever, if that is 0. */
int caller_wait_ms(int64_t at, int64_t now);

#endif
