/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leave.c - ends a connection, or our work on it: close, exit, shutdown, descriptors for the C library or other processes
 *
 * Afterwards the connection continues without us. If the response is still on its way then, nobody takes it off the stream, or sends the
 * early data that we have kept. So we end the handshake first, within the limits below. If other processes have the connection, too, we
 * leave it to them.
 */
#include "config.h"

#include "shim/process/process.h"

#include "client/client_log.h"
#include "common/clock.h"
#include "common/tcp.h"
#include "shim/connect/conversion.h"
#include "shim/connect/connect.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

/*
 * How long to wait for a response that is about to come. The kernel resets a socket that is closed with unread bytes, and the application's
 * last bytes may be lost with it. Early bytes, and those sent behind them, leave only when the connection is made; the application hasn't
 * waited for it yet, so it may wait here for CONVERSION_FINISH_MS.
 */
#define CLOSING_MS 1000

#define STREAM_MS 150000 /* a blocking connection; Linux gives up after 127 s */

/* Has the application sent anything on the pending @conn? */
static bool has_sent(const struct conn *conn)
{
	return conn->early.len || conn_has(conn, CONN_WROTE);
}

static bool has_bytes_under_way(const struct conn *conn)
{
	if (conn_in(conn, PHASE(BYPASS) | PHASE(BYPASSED)))
		return false;
	return conn_is_confirmed(conn) || (conn_is_pending(conn) && has_sent(conn));
}

static int closing_ms(const struct conn *conn, int fd)
{
	return conn_is_confirmed(conn) || !operations_may_block(conn, fd, 0) ? CLOSING_MS : CONVERSION_FINISH_MS;
}

/*
 * Waits for the response if the application has bytes under way; otherwise takes one that is already there off the stream. For a connection
 * that a ring has used past the hooks, this is our first look, so we note its outcome. A follower leaves all to the asker.
 */
static void leave(struct conn *conn, int fd, int ms)
{
	struct pollfd ready = { .fd = fd, .events = conn->ring_may_use ? POLLIN | POLLOUT : POLLIN };

	if (conn->follows)
		return;
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

/* Leaves one of several conns, which share the time. @start: clock_ns() when we began with the first */
static void leave_since(struct conn *conn, int fd, int64_t start)
{
	const int64_t left = closing_ms(conn, fd) - (clock_ns() - start) / CLOCK_NS_PER_MS;

	leave(conn, fd, left > 0 ? (int)left : 0);
}

/* Is @fd the last descriptor of a conn that has steps left? Returns that conn, or NULL. */
static struct conn *last_of(int fd)
{
	struct conn *conn = conn_handled(fd);

	return conn && atomic_load(&conn->refs) == 1 && conn_is_owner() ? conn : NULL;
}

void leave_by_overwrite(int fd)
{
	ERRNO_KEPT;
	struct conn *conn = last_of(fd);

	if (conn)
		leave(conn, fd, closing_ms(conn, fd));
}

void leave_by_close(int fd)
{
	ERRNO_KEPT;

	leave_by_overwrite(fd);
	conn_forget(fd);
}

void leave_by_close_range(unsigned int first, unsigned int last)
{
	ERRNO_KEPT;
	const int64_t start = clock_ns();

	for (int fd = first > INT_MAX || conn_none_handled() ? -1 : conn_next_fd((int)first); fd >= 0 && (unsigned int)fd <= last;
	     fd = conn_next_fd(fd + 1)) {
		struct conn *conn = last_of(fd);

		if (conn)
			leave_since(conn, fd, start);
		conn_forget(fd);
	}
	conn_forget_range(first, last);
}

void leave_all(enum leave_which which)
{
	ERRNO_KEPT;
	const int64_t start = clock_ns();

	EACH_CONN (conn, PHASES_UNFINISHED)
		if (conn_of(conn->fd) == conn && (which == LEAVE_ALL || next.fcntl(conn->fd, F_GETFD) & FD_CLOEXEC))
			leave_since(conn, conn->fd, start);
}

void leave_to_stdio(int fd)
{
	ERRNO_KEPT;
	struct conn *conn = conn_of(fd);

	if (!conn || !conn_is_owner())
		return;
	conn->socket.streamed = true;
	if (conn_is_confirmed(conn) || conn_phase(conn) == CONN_DEFERRED ||
	    (conn_is_pending(conn) && conn_has(conn, CONN_TOLD_CONNECTED)))
		conversion_finish(conn, fd, operations_may_block(conn, fd, 0) ? STREAM_MS : CONVERSION_FINISH_MS);
}

/* --- the application dissolves a connection: shutdown(), and connect() to AF_UNSPEC --- */

/*
 * Both leave a TCP socket unconnected, and TCP then reports ECONNRESET once (tcp_disconnect()), but MPTCP reports no error. So the conn
 * keeps that error in the phase DISSOLVED. It becomes IDLE as soon as we have reported the error, or a new connection begins.
 */

/*
 * How long to wait, from connect() on, for the answer of a server that may be so near that a direct connection would be there already. A
 * pending connection is dissolved by shutdown(), as in the kernel.
 */
#define NEAR_MS 20

#define FINISH_MS 1000 /* for the response of a confirmed connection, which is on its way */

/* Dissolves an attempt at a connection, if @conn is still in one of @phases after the steps that are possible. */
static bool give_up(struct conn *conn, int fd, uint32_t phases)
{
	char server[SOCKADDR_STRLEN];
	struct conn_claim claim;

	if (!phase_in(conversion_progress(conn, fd), phases) || !conn_claim(conn, phases, &claim))
		return false;
	log_line("%s: given up by the application", sockaddr_ip_format(&conn->dial.server, server));
	operations_end(conn, fd);
	conn_drop_early(conn);
	atomic_store(&conn->error, ECONNRESET);
	kernel_disconnect(fd);
	watch_restore(conn);
	conn_release(conn, CONN_DISSOLVED, &claim);
	return true;
}

/*
 * Does the application take the pending @conn for connected? It was told so; or it was told "writable" by an epoll_wait() past the hooks,
 * and has sent something.
 */
static bool looks_connected(const struct conn *conn)
{
	return conn_has(conn, CONN_TOLD_CONNECTED) || has_sent(conn);
}

/*
 * Notes a shutdown() of an application that takes the connection for connected, until it is. Returns false if the connection has left the
 * pending phases meanwhile, or is one to the server itself, which follows no request: then the caller shuts it down at once.
 */
static bool shut_later(struct conn *conn, int fd, int how)
{
	struct conn_claim claim;

	if (conn_phase(conn) == CONN_DEFERRED)
		conversion_send_deferred(conn, fd);
	if (!conn_claim(conn, PHASES_PENDING & ~PHASE(BYPASS), &claim))
		return false;
	conn->call.shut |= (uint8_t)(how + 1);
	conn_release(conn, claim.from, &claim);
	return true;
}

/* Waits, before shutdown(), for the response of a confirmed connection, or for the answer of a near server. */
static void await_answer(struct conn *conn, int fd, int how)
{
	const int64_t left = conn->dial.started + NEAR_MS * CLOCK_NS_PER_MS - clock_ns();
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* shutdown() isn't a cancellation point */
	if (left > 0 && conn_is_pending(conn) && !looks_connected(conn))
		conversion_finish(conn, fd, (int)((left + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
	if (conn_is_confirmed(conn) && how != SHUT_WR) /* afterwards we couldn't read the response */
		conversion_finish(conn, fd, FINISH_MS);
	pthread_setcancelstate(cancel_state, NULL);
}

int dissolve_shutdown(struct conn *conn, int fd, int how)
{
	await_answer(conn, fd, how);
	if (looks_connected(conn) ? shut_later(conn, fd, how) : give_up(conn, fd, PHASES_PENDING))
		return 0;
	return shutdown_by_kernel(conn, fd, how);
}

int shutdown_by_kernel(struct conn *conn, int fd, int how)
{
	if (next.shutdown(fd, how) == 0)
		return 0;
	conn->socket.shut_for_reading |= errno == ENOTCONN && how != SHUT_WR;
	return -errno;
}

/* Would TCP send a reset now, by tcp_need_reset()? Only poll() shows the state of the MPTCP socket itself. */
static bool is_connected(int fd)
{
	static const uint8_t states[] = { TCPINFO_ESTABLISHED, TCPINFO_SYN_RECV, TCPINFO_FIN_WAIT1, TCPINFO_FIN_WAIT2, TCPINFO_CLOSE_WAIT };
	struct pollfd poller = { .fd = fd };
	struct tcp_info info;

	if (next_poll_now(&poller, 1) != 0)
		return false;
	info = kernel_tcp_info(fd);
	for (size_t i = 0; i < sizeof(states); i++)
		if (info.tcpi_state == states[i])
			return true;
	return false;
}

int dissolve_connection(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len)
{
	enum conn_phase phase;
	bool connected;

	if (give_up(conn, fd, PHASES_UNFINISHED))
		return 0;
	phase = conn_phase(conn);
	connected = conn->socket.mptcp && phase_in(phase, PHASE(DONE) | PHASE(DIRECT)) && is_connected(fd);
	if (next.connect(fd, addr, len) != 0)
		return -errno;
	if (connected)
		atomic_store(&conn->error, ECONNRESET);
	conn->socket.shut_for_reading = false;
	if (connected || (phase == CONN_FAILED && atomic_load(&conn->error)))
		conn_move(conn, phase, CONN_DISSOLVED);
	else if (phase_in(phase, PHASE(DONE) | PHASE(DIRECT)) || (phase_in(phase, PHASES_FAILED) && !atomic_load(&conn->error)))
		conn_move(conn, phase, CONN_IDLE);
	return 0;
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
	struct conn *conn = conn_of(fd);

	if (!conn)
		return;
	if (conn_handled(fd))
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

void scm_rights_leave(const struct msghdr *msg)
{
	ERRNO_KEPT;
	const char *const start = msg->msg_control;

	for (struct cmsghdr *control = start ? CMSG_FIRSTHDR(msg) : NULL; control;
	     control = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, control))
		if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
			all_leave(control, (size_t)(start + msg->msg_controllen - (const char *)control));
}
