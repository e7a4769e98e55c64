/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - ends a connection, or our work on it: close, exit, shutdown, descriptors for the C library or other processes */
#ifndef SHIM_LEAVE_H
#define SHIM_LEAVE_H

#include "shim/socket/conn.h"

#include <sys/socket.h>

/*
 * leave_by_close() - prepare for the application's close of @fd
 * Call it before the kernel closes any descriptor. If @fd is the last descriptor of a connection that the application has used, takes the
 * response off the stream, which may take up to CONVERSION_FINISH_MS. Forgets the conn of @fd. A second call for the same close changes
 * nothing. errno stays as it was.
 */
void leave_by_close(int fd);

/* leave_all() - do the same for all descriptors, or those with FD_CLOEXEC, when the process ends or execs */
enum leave_which { LEAVE_ALL, LEAVE_CLOEXEC };
void leave_all(enum leave_which which);

/*
 * leave_to_stdio() - prepare for @fd becoming a stream, which the C library reads and writes past the hooks
 * If the application believes the connection to be established, waits until the response is off the stream: without limit for a blocking
 * socket, else for CONVERSION_FINISH_MS. Notes other connections, so that the application doesn't learn that they are established before
 * the response was read. errno stays as it was.
 */
void leave_to_stdio(int fd);

/* --- the application dissolves a connection: shutdown(), and connect() to AF_UNSPEC --- */

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

/* --- descriptors that leave for another process over a Unix socket --- */

void scm_rights_leave_slow(const struct msghdr *msg);

/*
 * scm_rights_leave() - prepare the sockets in the SCM_RIGHTS of @msg, which is about to be sent (unix(7))
 * The receiving process may lack our library, and so any knowledge of their connections. The caller knows that @msg and all of its control
 * data are readable.
 */
static inline void scm_rights_leave(const struct msghdr *msg)
{
	if (msg && msg->msg_control && msg->msg_controllen)
		scm_rights_leave_slow(msg);
}

#endif
