/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - ends our work on a connection before the application closes it, exits, or hands it to the C library */
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
