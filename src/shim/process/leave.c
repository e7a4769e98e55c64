/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leave.c - ends our work on a connection before the application closes it, exits, or hands it to the C library
 *
 * Afterwards the connection continues without us. If the response is still on its way then, nobody takes it off the stream, and the early
 * bytes that we have kept are never sent. So we end the handshake before, within the limits below. We leave connections that other
 * processes have, too, to these.
 */
#include "config.h"

#include "shim/process/leave.h"

#include "common/clock.h"
#include "shim/connect/conversion.h"
#include "shim/connect/gate.h"
#include "shim/connect/ring_use.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

/*
 * How long to wait for a response that is about to come. The kernel resets a socket that is closed with unread bytes, and the application's
 * last bytes may be lost with it. Early bytes, and those sent behind them, leave only when the connection is made; the application hasn't
 * waited for it yet, so it may wait here for CONVERSION_FINISH_MS.
 */
#define CLOSING_MS 1000

#define STREAM_MS 150000 /* a blocking connection; Linux gives up after 127 s */

static bool has_bytes_under_way(const struct conn *conn)
{
	if (conn_in(conn, PHASE(BYPASS) | PHASE(BYPASSED)))
		return false;
	return conn_is_confirmed(conn) ||
	       (conn_is_pending(conn) && conn_has(conn, CONN_TOLD_CONNECTED) &&
		(conn->early.len || conn_has(conn, CONN_WROTE)) && !conn->call.follows);
}

static int closing_ms(const struct conn *conn, int fd)
{
	return conn_is_confirmed(conn) || !gate_may_block(conn, fd, 0) ? CLOSING_MS : CONVERSION_FINISH_MS;
}

/*
 * Waits for the response if the application has bytes under way; otherwise takes one that is already there off the stream. For a connection
 * that a ring has used past the hooks, this is our first look, so we note its outcome.
 */
static void leave(struct conn *conn, int fd, int ms)
{
	struct pollfd ready = { .fd = fd, .events = conn->ring_may_use ? POLLIN | POLLOUT : POLLIN };

	if (conn_ring_may_use(conn) && next_poll_now(&ready, 1) == 1)
		ring_use_left(conn, fd);
	conn_note(conn, CONN_TAKEN_BACK); /* no other attempt follows */
	if (has_bytes_under_way(conn)) {
		conversion_finish(conn, fd, ms);
	} else if (conn_is_pending(conn) && conn_phase(conn) != CONN_RESOLVING) {
		if (next_poll_now(&ready, 1) == 1)
			conversion_progress(conn, fd);
		else if (conn->ring_may_use)
			conversion_abandoned(conn);
	}
}

void leave_by_close(int fd)
{
	struct conn *conn = conn_attentive(fd);
	int saved_errno = errno;

	if (conn && atomic_load(&conn->refs) == 1 && conn_is_owner())
		leave(conn, fd, closing_ms(conn, fd));
	errno = saved_errno;
	conn_forget(fd);
}

struct closing {
	enum leave_which which;
	int64_t start; /* the start of the time that they share */
};

static bool closing_visit(struct conn *conn, void *arg)
{
	const struct closing *closing = arg;
	int64_t past = (clock_ns() - closing->start) / CLOCK_NS_PER_MS, left;

	if (conn->call.follows || conn_of(conn->fd) != conn ||
	    (closing->which == LEAVE_CLOEXEC && !(next.fcntl(conn->fd, F_GETFD) & FD_CLOEXEC)))
		return true;
	left = closing_ms(conn, conn->fd) - past;
	leave(conn, conn->fd, left > 0 ? (int)left : 0);
	return true;
}

void leave_all(enum leave_which which)
{
	struct closing closing = { which, clock_ns() };

	conn_each_pending(closing_visit, &closing);
}

void leave_to_stdio(int fd)
{
	struct conn *conn = conn_maybe(fd) ? conn_of(fd) : NULL;
	int saved_errno = errno;

	if (!conn || !conn_is_owner())
		return;
	conn->socket.streamed = true;
	if (conn_is_confirmed(conn) || conn_phase(conn) == CONN_HELD ||
	    (conn_is_pending(conn) && conn_has(conn, CONN_TOLD_CONNECTED)))
		conversion_finish(conn, fd, gate_may_block(conn, fd, 0) ? STREAM_MS : CONVERSION_FINISH_MS);
	errno = saved_errno;
}

/*
 * Descriptors that leave for another process over a Unix socket
 *
 * The receiver has none of our knowledge of the connection. So we end the handshake before, even if the Unix socket is a non-blocking one:
 * EAGAIN would make event loops spin, and some programs give up. If a connection is still pending after CONVERT_TIMEOUT, we begin it anew,
 * directly: the receiver must not find a response.
 */

static void socket_leaves(int fd)
{
	struct conn *conn = conn_maybe(fd) ? conn_of(fd) : NULL;

	if (!conn)
		return;
	if (conn_attentive(fd))
		conversion_conclude(conn, fd);
	conn_mark_shared(conn);
}

/* Prepares each descriptor in a header. @room: bytes from @control to the end of all control data, which the kernel doesn't exceed */
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
