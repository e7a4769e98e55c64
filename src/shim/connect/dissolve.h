/* SPDX-License-Identifier: BSD-3-Clause */
/* dissolve.h - what takes a connection away: shutdown(), and connect() to AF_UNSPEC */
#ifndef SHIM_DISSOLVE_H
#define SHIM_DISSOLVE_H

#include "shim/socket/conn.h"

#include <sys/socket.h>

/*
 * dissolve_shutdown() - shutdown(2) on the attentive @conn
 * In SYN_SENT it dissolves the connection, whatever is to be shut, and leaves ECONNRESET behind. Where
 * the application believes itself connected (early data) it waits for the connection.
 * Returns 0 or -errno.
 */
int dissolve_shutdown(struct conn *conn, int fd, int how);

/* Does shutdown(2) on an IDLE @conn: the kernel refuses it, but a connection made afterwards is shut from its beginning. */
int dissolve_unconnected(struct conn *conn, int fd, int how);

/*
 * dissolve_connection() - connect(2) to @addr of AF_UNSPEC, in any state
 * The socket can be connected again; what was connected or connecting leaves ECONNRESET behind.
 * Returns 0 or -errno.
 */
int dissolve_connection(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len);

#endif
