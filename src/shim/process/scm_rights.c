/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scm_rights.c - descriptors that leave for another process over a Unix socket
 *
 * The receiver has nothing of what we know of the connection. So a handshake is brought to its end before, even if the Unix socket
 * is a non-blocking one: EAGAIN would make event loops spin, and some programs give up. A connection that is still pending after
 * CONVERT_TIMEOUT is begun anew, directly: the receiver must not find a response.
 */
#include "config.h"

#include "shim/process/scm_rights.h"

#include "shim/socket/conn.h"
#include "shim/connect/conversion.h"

#include <errno.h>
#include <string.h>

static void socket_leaves(int fd)
{
	struct conn *conn = conn_maybe(fd) ? conn_of(fd) : NULL;

	if (!conn)
		return;
	if (conn_attentive(fd))
		conversion_conclude(conn, fd);
	conn_mark_shared(conn);
}

/* Sees to each descriptor in a header. @room: bytes from @control to the end of all control data, which the kernel doesn't exceed */
static void all_leave(const struct cmsghdr *control, size_t room)
{
	size_t end = control->cmsg_len < room ? control->cmsg_len : room;
	int fd;

	for (size_t at = CMSG_LEN(0); at + sizeof(fd) <= end; at += sizeof(fd)) {
		memcpy(&fd, (const char *)control + at, sizeof(fd));
		socket_leaves(fd);
	}
}

void scm_rights_leave_slow(const struct msghdr *msg)
{
	const char *end = (const char *)msg->msg_control + msg->msg_controllen;
	int saved_errno = errno;

	for (struct cmsghdr *control = CMSG_FIRSTHDR(msg); control;
	     control = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, control))
		if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
			all_leave(control, (size_t)(end - (const char *)control));
	errno = saved_errno;
}
