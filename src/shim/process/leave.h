/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - before the application closes a connection, ends, or hands it to the C library */
#ifndef SHIM_LEAVE_H
#define SHIM_LEAVE_H

#include "shim/socket/conn.h"

#include <sys/socket.h>

/*
 * leave_by_close() - the application closes @fd
 * To be called before the kernel closes it, for any descriptor. Of the last descriptor of a connection that the application has
 * used already the response is taken off the stream, which may take up to CONVERSION_FINISH_MS. The conn of @fd is forgotten. A
 * second call for the same close changes nothing. errno stays as it was.
 */
void leave_by_close(int fd);

/* leave_all() - does what leave_by_close() does for all descriptors, or those with FD_CLOEXEC, when the process ends or execs */
enum leave_which { LEAVE_ALL, LEAVE_CLOEXEC };
void leave_all(enum leave_which which);

/*
 * leave_to_stdio() - @fd becomes a stream, and the C library will read and write it past the hooks
 * Waits until the response is off the stream of a connection that the application takes for connected: as long as it takes if
 * the socket is a blocking one, else for CONVERSION_FINISH_MS. Other connections are noted, so that the application isn't
 * told that they are connected before the response was read. errno stays as it was.
 */
void leave_to_stdio(int fd);

/* --- descriptors that leave for another process over a Unix socket --- */

void scm_rights_leave_slow(const struct msghdr *msg);

/*
 * scm_rights_leave() - sees to the sockets in the SCM_RIGHTS of @msg, which is about to be sent (unix(7))
 * The receiving process may not have our library, and with it knows nothing of their connections. The caller knows that @msg and all
 * of its control data can be read.
 */
static inline void scm_rights_leave(const struct msghdr *msg)
{
	if (msg && msg->msg_control && msg->msg_controllen)
		scm_rights_leave_slow(msg);
}

#endif
