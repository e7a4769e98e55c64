/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - before the application closes a connection, ends, or hands it to the C library */
#ifndef SHIM_LEAVE_H
#define SHIM_LEAVE_H

#include "shim/socket/conn.h"

/*
 * leave_by_close() - the application closes @fd
 * To be called before the kernel closes it, for any descriptor. Of the last descriptor of a connection that the application has
 * used already the response is taken off the stream, which may take up to OTHERS_FINISH_MS. The conn of @fd is forgotten. A
 * second call for the same close changes nothing. errno stays as it was.
 */
void leave_by_close(int fd);

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
