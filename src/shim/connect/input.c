/* SPDX-License-Identifier: BSD-3-Clause */
/* input.c - makes input from an MPTCP socket look like input from a TCP one */
#include "config.h"

#include "shim/connect/input.h"

#include "client/exchange.h"
#include "common/clock.h"
#include "shim/socket/conn.h"
#include "shim/socket/tcpinfo.h"
#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>

static struct conn *mptcp_conn(int fd)
{
	struct conn *conn = conn_unverified(fd);

	return conn && conn->socket.mptcp && conn_of(fd) == conn ? conn : NULL;
}

bool input_is_mptcp(int fd)
{
	return mptcp_conn(fd) != NULL;
}

struct gate input_urgent_slow(int fd, int flags)
{
	return mptcp_conn(fd) ? (struct gate){ .pass = false, .ret = -EINVAL } :
				gate_input(fd, flags);
}

bool input_ended_slow(int fd)
{
	struct conn *conn = mptcp_conn(fd);

	if (!conn || !conn_in(conn, PHASE(DONE) | PHASE(DIRECT) | PHASES_FAILED))
		return false;
	return sockopt_get(fd, SOL_SOCKET, SO_ACCEPTCONN, 0) == 0;
}

/* --- MSG_PEEK on an MPTCP socket, as on TCP (Linux before 6.18) --- */

#define TICK_MAX_MS 16

static bool is_blocking(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(next.fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/*
 * Waits until @want bytes are there, the stream ends, a signal is handled or SO_RCVTIMEO is over. Returns whether they are there. Bytes
 * that follow others wake nobody, so we look for them now and then.
 */
static bool wait_for(int fd, int want)
{
	const int64_t end = sockopt_limit_end(fd, SO_RCVTIMEO, clock_ns());
	int tick = 1;

	while (mptcpinfo_gather(fd) < want) {
		struct pollfd ended = { .fd = fd, .events = POLLRDHUP };

		if ((end && clock_ns() >= end) || next.poll(&ended, 1, tick) != 0)
			return mptcpinfo_gather(fd) >= want;
		tick = tick < TICK_MAX_MS ? tick * 2 : TICK_MAX_MS;
	}
	return true;
}

bool peek_prepare_slow(int fd, size_t want, int *flags)
{
	int saved_errno = errno;
	char byte;

	if (!input_is_mptcp(fd))
		return true;
	if (*flags & MSG_WAITALL && is_blocking(fd, *flags)) {
		/* The kernel waits for the first byte, and handles signals meanwhile. */
		if (next.recv(fd, &byte, 1, MSG_PEEK) < 0)
			return false;
		if (!wait_for(fd, want < INT_MAX ? (int)want : INT_MAX))
			*flags |= MSG_DONTWAIT;
	} else {
		mptcpinfo_gather(fd);
	}
	errno = saved_errno;
	return true;
}

/* --- what the reset of a connection shows of the path to its converter --- */

void reset_told_slow(int fd)
{
	struct conn *conn = conn_unverified(fd);
	int saved_errno = errno;

	if (conn && conn->socket.mptcp && conn_of(fd) == conn && conn_in(conn, PHASE(DONE)) && conn->dial.attempt.ask_silent)
		exchange_reset_silently(conn->dial.attempt.converter);
	errno = saved_errno;
}
