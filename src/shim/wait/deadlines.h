/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadlines.h - how long pending conns wait for their converters (CONVERT_TIMEOUT)
 *
 * There is no timer: whoever waits in a way that doesn't look at its conns now and then must
 * not wait beyond deadlines_first(), and then have conversion_expire() look.
 */
#ifndef SHIM_DEADLINES_H
#define SHIM_DEADLINES_H

#include "shim/socket/conn.h"

/* @at: clock_ns() when the converter of @conn has been silent for too long; 0: never */
void deadlines_set(struct conn *conn, int64_t at);

bool deadlines_is_over(const struct conn *conn);

/* No deadline is earlier, perhaps all are later; 0: there is none. */
int64_t deadlines_first(void);

/* Finds the first anew, of those that are still ahead. */
void deadlines_renew(void);

#endif
