/* SPDX-License-Identifier: BSD-3-Clause */
/* input.c - where an MPTCP socket receives otherwise than a TCP one (Linux 6.18) */
#include "config.h"

#include "shim/connect/input.h"

#include "shim/system/next.h"

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
