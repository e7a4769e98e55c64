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

/* Before a request is sent: makes the socket readable from the first byte of the response on. @conn is claimed, as below. */
void lowat_hold(struct conn *conn, int fd);

/* Makes the socket readable only when @bytes bytes have come: a response of that length. */
void lowat_raise(struct conn *conn, int fd, size_t bytes);

/* Puts the application's value back. */
void lowat_restore(struct conn *conn, int fd);

/*
 * lowat_keep() - the application sets SO_RCVLOWAT to @value of @len bytes, as for setsockopt(2)
 * While the connection is unfinished the value is kept for later. Returns whether it was; if not, the kernel is to be asked.
 */
bool lowat_keep(struct conn *conn, const void *value, socklen_t len);

/* The application's value in bytes if ours is in force in its place, else 0. */
int lowat_kept(const struct conn *conn);

#endif
