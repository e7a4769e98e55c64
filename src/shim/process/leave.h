/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - before the application closes a connection, ends, or hands it to the C library */
#ifndef SHIM_LEAVE_H
#define SHIM_LEAVE_H

#include "shim/socket/conn.h"

/*
 * leave_by_close() - the application closes a descriptor of @conn
 * Takes the response off the stream of a connection that the application has used already. Learns from
 * one that was made without a converter in hope of Multipath TCP.
 */
void leave_by_close(struct conn *conn, int fd);

/* The process ends, or becomes another program: leave_by_close() for those that this closes and that need it. */
enum leave_which { LEAVE_ALL, LEAVE_CLOEXEC };
void leave_all(enum leave_which which);

/*
 * leave_to_stdio() - the C library will read and write @fd past the hooks
 * Waits until the response is off the stream of a connection that the application takes for
 * connected: as long as it may take if the connection is a blocking one, else for OTHERS_FINISH_MS.
 * One that isn't connected yet won't be taken for it earlier than the response.
 */
void leave_to_stdio(int fd);

#endif
