/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_requests.h - how blind requests have fared, and those that are made again */
#ifndef SUPERVISE_BLIND_REQUESTS_H
#define SUPERVISE_BLIND_REQUESTS_H

#include "supervise/connection.h"

/* A blind request has just been sent for @connection, whose call is about to be answered. */
void blind_requests_expect(struct connection *connection);

/*
 * Looks at those whose time has come. Returns when the next one's comes, in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
 */
int64_t blind_requests_look(int64_t now);

/* The program begins something else with the socket of this SO_COOKIE: nothing is done to it any more. */
void blind_requests_cancel(uint64_t cookie);

/*
 * blind_requests_leave() - the last program has ended, and nobody will look any more
 * Where the kernel knows nothing of the last requests they may have failed: the user's next connection finds that out.
 */
void blind_requests_leave(void);

/* Requests were made again (supervision.retry_ready). */
void blind_requests_made_again(void);

#endif
