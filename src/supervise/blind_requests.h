/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_requests.h - follows blind requests, and makes lost ones again */
#ifndef SUPERVISE_BLIND_REQUESTS_H
#define SUPERVISE_BLIND_REQUESTS_H

#include "supervise/connection.h"

/* Follows the blind request just sent for @connection, whose call the caller is about to answer. */
void blind_requests_expect(struct connection *connection);

/*
 * Looks at all requests that are due. Returns when the next one is due, in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
 */
int64_t blind_requests_look(int64_t now);

/* Leaves the socket with this SO_COOKIE alone from now on, since the program uses it for something else. */
void blind_requests_cancel(uint64_t cookie);

/*
 * blind_requests_leave() - close the books when the last program has ended
 * Requests whose connection the kernel no longer knows may have failed: the user's next connection isn't blind, and finds that out.
 */
void blind_requests_leave(void);

/* Takes the results of blind_retry_start(), when supervision.retry_ready is readable. */
void blind_requests_made_again(void);

#endif
