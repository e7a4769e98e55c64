/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lowat.h - SO_RCVLOWAT, the application's and ours
 *
 * It tells the kernel how much has to be there before a socket is readable. While a connection is pending
 * ours is in force, so that the response wakes us, and only when it is complete; the application's is
 * kept in conn.socket.rcvlowat and is put back when the socket is let go.
 */
#ifndef SHIM_LOWAT_H
#define SHIM_LOWAT_H

#include "shim/socket/conn.h"

#include <stddef.h>
#include <sys/socket.h>

/* A request is about to be sent: whatever comes is to be heard of. @conn is claimed, as below. */
void lowat_hold(struct conn *conn, int fd);

/* Nothing less than @bytes is of use. */
void lowat_raise(struct conn *conn, int fd, size_t bytes);

/* The application's is in force again. */
void lowat_restore(struct conn *conn, int fd);

/* lowat_keep() - the application sets its own: kept if @conn is pending or held, which is returned. */
bool lowat_keep(struct conn *conn, const void *value, socklen_t len);

/* What the application has set, if it isn't in force; else 0. */
int lowat_kept(const struct conn *conn);

#endif
