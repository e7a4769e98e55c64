/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks_server.c - sockets that listen, and what they accept
 *
 * Only a client's connections are converted. A listener is to be what the application asked
 * for, so it becomes a plain TCP socket; where that can't be done unnoticed it stays MPTCP, and so
 * may be what it accepts.
 */
#include "config.h"

#include "shim/conn.h"
#include "shim/hook.h"
#include "shim/next.h"
#include "shim/plain.h"
#include "shim/watch.h"

HOOK(int, listen, (int fd, int backlog))
{
	struct conn *conn = conn_idle(fd);
	int ret, saved_errno;
	bool replaced;

	if (!conn)
		return next.listen(fd, backlog);
	replaced = plain_replace(conn, fd, "it listens", NULL) == 0;
	ret = next.listen(fd, backlog);
	saved_errno = errno;
	if (replaced)
		watch_resume(conn); /* now there is nothing to be told of it but connections */
	if (ret == 0)
		conn_move(conn, CONN_IDLE, CONN_DIRECT);
	errno = saved_errno;
	return ret;
}

/* What an MPTCP listener has accepted is to look like TCP as well. */
static int accepted(int listener, int fd)
{
	int saved_errno = errno;
	const struct conn *conn = fd < 0 ? NULL : conn_unverified(listener);
	struct conn *made;

	if (conn && !conn->plain && conn_of(listener) == conn) {
		made = conn_add(fd);
		if (made)
			conn_move(made, CONN_IDLE, CONN_DIRECT);
	}
	errno = saved_errno;
	return fd;
}

HOOK(int, accept, (int fd, struct sockaddr *addr, socklen_t *len))
{
	return accepted(fd, next.accept(fd, addr, len));
}

HOOK(int, accept4, (int fd, struct sockaddr *addr, socklen_t *len, int flags))
{
	return accepted(fd, next.accept4(fd, addr, len, flags));
}
