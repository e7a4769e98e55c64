/* SPDX-License-Identifier: BSD-3-Clause */
/* aftermath.h - how blind requests have fared, and those that are made again */
#ifndef SUPERVISE_AFTERMATH_H
#define SUPERVISE_AFTERMATH_H

#include "supervise/connection.h"

/* A blind request has just been sent for @connection, whose call is about to be answered. */
void aftermath_expect(struct connection *connection);

/*
 * Looks at those whose time has come. Returns when the next one's comes, in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
 */
int64_t aftermath_look(int64_t now);

/* The program begins something else with the socket of this SO_COOKIE: nothing is done to it any more. */
void aftermath_cancel(uint64_t cookie);

/*
 * aftermath_leave() - the last program has ended, and nobody will look any more
 * Where the kernel knows nothing of the last requests they may have failed: the user's next connection finds that out.
 */
void aftermath_leave(void);

/* Requests were made again (supervision.again_ready). */
void aftermath_made_again(void);

#endif
