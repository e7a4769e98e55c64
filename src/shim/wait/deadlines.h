/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadlines.h - how long pending conns wait for their converters (CONVERT_TIMEOUT)
 *
 * There is no timer and no thread. A wait that doesn't check its conns now and then, such as epoll_wait(), must end at deadlines_first() at
 * the latest, and then call conversion_expire(). deadlines_first() is never too late. It may be too early, since a settled conn leaves its
 * deadline behind.
 */
#ifndef SHIM_DEADLINES_H
#define SHIM_DEADLINES_H

#include "shim/socket/conn.h"

/* Sets the deadline of @conn. @at: clock_ns() from which on the converter has been silent for too long; 0: never */
void deadlines_set(struct conn *conn, int64_t at);

/* Has the converter of @conn been silent for too long? */
bool deadlines_is_over(const struct conn *conn);

/* Returns a time of clock_ns() before which no deadline ends; 0: there is none. */
int64_t deadlines_first(void);

/* Determines deadlines_first() anew, from those deadlines that are still ahead. */
void deadlines_renew(void);

#endif
