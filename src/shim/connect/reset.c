/* SPDX-License-Identifier: BSD-3-Clause */
/* reset.c - what an application's connection that was reset says of the path to its converter */
#include "config.h"

#include "shim/connect/reset.h"

#include "client/exchange.h"
#include "shim/socket/conn.h"

void reset_told_slow(int fd)
{
	struct conn *conn = conn_unverified(fd);
	int saved_errno = errno;

	if (conn && conn->socket.mptcp && conn_of(fd) == conn && conn_in(conn, PHASE(DONE)) && conn->dial.attempt.ask_silent)
		exchange_reset_silently(conn->dial.attempt.converter);
	errno = saved_errno;
}
