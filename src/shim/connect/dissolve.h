/* SPDX-License-Identifier: BSD-3-Clause */
/* dissolve.h - the calls that dissolve a connection: shutdown(), and connect() to AF_UNSPEC */
#ifndef SHIM_DISSOLVE_H
#define SHIM_DISSOLVE_H

#include "shim/socket/conn.h"

#include <sys/socket.h>

/*
 * dissolve_shutdown() - shutdown(2) on the attentive @conn
 * In SYN_SENT it dissolves the connection, whatever @how says, and leaves ECONNRESET behind. If the application believes that it is
 * connected (early data), it waits for the connection. Returns 0 or -errno.
 */
int dissolve_shutdown(struct conn *conn, int fd, int how);

/* Does shutdown(2) on an IDLE @conn: the kernel refuses it, but a later connection of the socket is shut down from its beginning. */
int dissolve_unconnected(struct conn *conn, int fd, int how);

/*
 * dissolve_connection() - connect(2) to @addr of AF_UNSPEC, in any state
 * Then the socket can be connected again. A connection, or an attempt at one, leaves ECONNRESET behind. Returns 0 or -errno.
 */
int dissolve_connection(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len);

#endif
