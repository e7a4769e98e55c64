/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.c - sending and receiving before and after the server's answer, and over Multipath TCP as over TCP
 *
 * An application that was never told "writable" can still send and receive: it may not wait at all, wait where the hooks can't see it, or
 * use another thread. Before input we take the response off the stream; without one, input fails as on a socket in SYN_SENT. So does
 * output, unless a wait past the hooks may have said "writable": then it follows the request, and the converter keeps it for the server.
 */
#include "config.h"

#include "shim/connect/gate.h"

#include "client/exchange.h"
#include "common/clock.h"
#include "shim/connect/conversion.h"
#include "shim/connect/connect.h"
#include "shim/system/next.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

static struct conn *mptcp_conn(int fd)
{
	struct conn *conn = conn_unverified(fd);

	return conn && conn->socket.mptcp && conn_of(fd) == conn ? conn : NULL;
}

int gate_input(int fd, int flags)
{
	ERRNO_KEPT;
	struct conn *conn = conn_handled(fd);
	enum conn_phase phase;
	int ret;

	if (flags & MSG_OOB && mptcp_conn(fd))
		return -EINVAL;
	if (!conn)
		return GATE_OPEN;
	if (conn_phase(conn) == CONN_DEFERRED) /* the application waits for the server to speak first */
		conversion_send_deferred(conn, fd);
	phase = conversion_progress(conn, fd);
	if (phase_in(phase, PHASES_PENDING | PHASES_CONFIRMED)) {
		if (!operations_may_block(conn, fd, flags))
			return -EAGAIN;
		ret = conversion_wait_for(conn, fd, SO_RCVTIMEO);
		if (ret)
			return ret;
		phase = conn_phase(conn);
	}
	/* The error once, then the end of the stream, like TCP after a refused connection. */
	return phase_in(phase, PHASES_FAILED) ? -conn_take_error(conn) : GATE_OPEN;
}

bool gate_is_writable(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	return next_poll_now(&ready, 1) > 0;
}

/*
 * Notes that output follows the request, which was sent: from now on we can't ask another converter. The note is made under the claim, so
 * that a thread that is about to begin anew can't miss it. Returns false if output can't follow the request.
 */
static bool note_output(struct conn *conn, int fd)
{
	struct conn_claim claim;
	bool follows;

	if (!conn_claim(conn, PHASE(ASKED) | PHASE(BYPASS), &claim))
		return false;
	follows = gate_is_writable(fd);
	if (follows)
		conn_note(conn, CONN_WROTE);
	conn_release(conn, claim.from, &claim);
	return follows;
}

/* Decides about output before the server's answer. A socket in SYN_SENT takes none, nor does this one while the hooks see its waits. */
static int gate_output_pending(struct conn *conn, int fd, int flags)
{
	int ret;

	if (operations_may_block(conn, fd, flags)) {
		ret = conversion_wait_for(conn, fd, SO_SNDTIMEO);
		return ret ? ret : GATE_OPEN;
	}
	/*
	 * An edge-triggered registration that we couldn't see has reported "writable" after the handshake with the converter, and won't do
	 * so again. So we let output go, and the converter keeps it. But it must not overtake the request, nor early data, of which we keep
	 * only the first bytes for another converter.
	 */
	if (conn_has(conn, CONN_TOLD_CONNECTED) || !conn_has(conn, CONN_TOLD_WRITABLE))
		return -EAGAIN;
	return note_output(conn, fd) || !conn_is_pending(conn) ? GATE_OPEN : -EAGAIN;
}

int gate_output(int fd, int flags)
{
	ERRNO_KEPT;
	struct conn *conn = conn_handled(fd);
	int ret = GATE_OPEN, error = 0;

	if (!conn)
		return GATE_OPEN;
	if (conn_phase(conn) == CONN_DEFERRED)
		conversion_send_deferred(conn, fd);
	if (phase_in(conversion_progress(conn, fd), PHASES_PENDING))
		ret = gate_output_pending(conn, fd, flags);
	if (ret == GATE_OPEN && conn_has_failed(conn))
		error = conn_take_error(conn);
	return error ? -error : ret;
}

/* --- input from an MPTCP socket like input from a TCP one --- */

bool input_is_mptcp(int fd)
{
	return mptcp_conn(fd) != NULL;
}

bool input_has_ended(int fd)
{
	const struct conn *conn;

	reset_told(fd, errno);
	if (errno != ENOTCONN)
		return false;
	conn = mptcp_conn(fd);
	return conn && conn_in(conn, PHASE(DONE) | PHASE(DIRECT) | PHASES_FAILED) && kernel_get(fd, SOL_SOCKET, SO_ACCEPTCONN, 0) == 0;
}

/* --- MSG_PEEK on an MPTCP socket, as on TCP (Linux before 6.18) --- */

#define TICK_MAX_MS 16

/*
 * Waits until @want bytes are there, the stream ends, a signal is handled or SO_RCVTIMEO is over. Returns whether they are there. Bytes
 * that follow others wake nobody, so we look for them now and then.
 */
static bool wait_for(int fd, int want)
{
	const int64_t end = kernel_deadline(fd, SO_RCVTIMEO, clock_ns());
	int tick = 1;

	while (kernel_gather(fd) < want) {
		struct pollfd ended = { .fd = fd, .events = POLLRDHUP };

		if ((end && clock_ns() >= end) || next.poll(&ended, 1, tick) != 0)
			return kernel_gather(fd) >= want;
		tick = tick < TICK_MAX_MS ? tick * 2 : TICK_MAX_MS;
	}
	return true;
}

bool peek_prepare(int fd, size_t want, int *flags)
{
	int saved_errno = errno;
	char byte;

	if (!want || !input_is_mptcp(fd))
		return true;
	if (*flags & MSG_WAITALL && operations_may_block(NULL, fd, *flags)) {
		/* The kernel waits for the first byte, and handles signals meanwhile. */
		if (next.recv(fd, &byte, 1, MSG_PEEK) < 0)
			return false;
		if (!wait_for(fd, want < INT_MAX ? (int)want : INT_MAX))
			*flags |= MSG_DONTWAIT;
	} else {
		kernel_gather(fd);
	}
	errno = saved_errno;
	return true;
}

/* --- the reset of a connection, which may be the fault of its path to the converter --- */

void reset_told(int fd, int error)
{
	ERRNO_KEPT;
	const struct conn *conn = error == ECONNRESET ? mptcp_conn(fd) : NULL;

	if (conn && conn_in(conn, PHASE(DONE)) && conn->dial.attempt.ask.silent)
		exchange_reset_silently(&conn->dial.start.path.id);
}

/* --- the first output of an application as early data --- */

static size_t iov_total(const struct iovec *iov, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len < SIZE_MAX / 2 - total ? iov[i].iov_len : SIZE_MAX / 2 - total;
	return total;
}

/* Sends the bytes after the first @sent. Returns the number of all bytes sent by then, or -errno. */
static ssize_t send_rest(int fd, const struct iovec *iov, size_t count, int flags, size_t sent)
{
	size_t skip = sent;

	for (size_t i = 0; i < count; i++) {
		size_t part = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		ssize_t more;
		int ret;

		skip -= part;
		if (part == iov[i].iov_len)
			continue;
		ret = gate_output(fd, flags);
		if (ret != GATE_OPEN)
			return sent ? (ssize_t)sent : ret;
		more = next.send(fd, (const char *)iov[i].iov_base + part, iov[i].iov_len - part,
				 flags);
		if (more < 0)
			return sent ? (ssize_t)sent : -errno;
		sent += (size_t)more;
		if ((size_t)more < iov[i].iov_len - part)
			break;
	}
	return (ssize_t)sent;
}

bool output_takes_early(int fd)
{
	struct conn *conn = conn_handled(fd);

	return conn && conversion_takes_early(conn);
}

static bool take_early(struct conn *conn, int fd, const struct iovec *iov, size_t count, int flags,
		     ssize_t *result)
{
	bool syn_sent;
	size_t taken;

	if (!conn_has(conn, CONN_TOLD_CONNECTED) && !gate_is_writable(fd))
		return false; /* a socket in SYN_SENT takes no output */
	taken = conversion_send_early(conn, fd, iov, count, &syn_sent);
	if (!taken && syn_sent && !operations_may_block(conn, fd, flags))
		*result = -EINPROGRESS; /* as in the kernel, the SYN is sent even if no data can be copied */
	else if (!taken)
		return false;
	else if (taken == iov_total(iov, count))
		*result = (ssize_t)taken;
	else
		*result = operations_may_block(conn, fd, flags) ?
				  send_rest(fd, iov, count, flags & ~MSG_FASTOPEN, taken) :
				  (ssize_t)taken;
	return true;
}

bool output_take_early(int fd, const struct iovec *iov, size_t count, int flags, ssize_t *result)
{
	ERRNO_KEPT;
	struct conn *conn = conn_handled(fd);

	return (iov || !count) && conn && conversion_takes_early(conn) && take_early(conn, fd, iov, count, flags, result);
}

/* Waits, in a blocking sendto(MSG_FASTOPEN), for the server, like connect(2). Returns 0, or -errno of the wait or the connection. */
static int connected(struct conn *conn, int fd, int flags)
{
	int ret = operations_may_block(conn, fd, flags) ? conversion_wait(conn, fd) : 0;

	if (ret < 0 || !conn_has_failed(conn))
		return ret;
	ret = -conn_take_error(conn);
	conn_move(conn, CONN_FAILED, CONN_IDLE);
	return ret;
}

bool output_connect_fastopen(int fd, const struct iovec *iov, size_t count, int flags, const struct sockaddr *addr, socklen_t addrlen,
			ssize_t *result)
{
	ERRNO_KEPT;
	struct conn *conn = flags & MSG_FASTOPEN && addr ? conn_of(fd) : NULL;
	union sockaddr_ip server;
	bool blocking;
	int ret;

	if (!conn || conn_phase(conn) != CONN_IDLE || !sockaddr_ip_from(&server, addr, addrlen))
		return false;
	ret = conversion_start(conn, fd, &server, true);
	if (ret == CONVERSION_DIRECT) {
		conn_move(conn, CONN_IDLE, CONN_DIRECT);
		return false;
	}
	blocking = operations_may_block(conn, fd, flags);
	if (ret == 0 && output_take_early(fd, iov, count, flags, result)) {
		ret = connected(conn, fd, flags);
		if (ret < 0)
			*result = ret;
		return true;
	}
	/* The SYN was sent without the application's data: a blocking call waits for the server first, others return EINPROGRESS. */
	if (ret == 0)
		ret = connected(conn, fd, flags);
	*result = ret < 0 ? ret : blocking ? send_rest(fd, iov, count, flags & ~MSG_FASTOPEN, 0) : -EINPROGRESS;
	return true;
}
