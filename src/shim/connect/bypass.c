/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass.c - connections over Multipath TCP to a server that speaks it, without a converter */
#include "config.h"

#include "shim/connect/bypass.h"

#include "client/converters_destinations.h"
#include "shim/connect/lowat.h"
#include "shim/connect/operations.h"
#include "shim/connect/replace.h"
#include "shim/connect/settle.h"
#include "shim/socket/mptcpinfo.h"
#include "shim/socket/tcpinfo.h"
#include "client/client_log.h"
#include "shim/system/next.h"
#include "shim/wait/deadlines.h"
#include "shim/wait/watch.h"

#include <errno.h>

int bypass_begin(struct conn *conn, int fd)
{
	union sockaddr_ip server = conn->dial.server;
	int ret;

	conn->dial.attempt = (struct attempt){ .addr = server, .direct = true };
	ret = operations_fit(conn, fd, &server, replace_may_be_mptcp(conn));
	if (ret < 0)
		return ret;
	if (conn->socket.mptcp) {
		lowat_hold(conn, fd);
		operations_fastopen_off(conn, fd);
		conn->dial.attempt.synack_due = true;
		watch_mask(conn);
		deadlines_set(conn, 0);
		ret = operations_connect(conn, fd, &server);
		ret = ret == -EINPROGRESS ? 0 : ret;
	} else {
		ret = 1;
	}
	watch_resume(conn);
	return ret;
}

/* Connects over TCP to a server that doesn't speak Multipath TCP after all. */
static enum conn_phase fall_back(struct conn *conn, int fd)
{
	char text[SOCKADDR_STRLEN];

	log_line("%s: no Multipath TCP without the converter", sockaddr_ip_format(&conn->dial.server, text));
	servers_note_no_bypass(&conn->dial.server);
	if (conn_has(conn, CONN_WROTE) || conn_is_confirmed(conn))
		return settle_failed(conn, fd, ECONNRESET, "Multipath TCP was lost behind the handshake");
	operations_end(conn, fd);
	operations_disconnect(fd);
	return settle_directly(conn, fd);
}

enum conn_phase bypass_step(struct conn *conn, int fd)
{
	const struct tcp_info info = tcpinfo_of(fd);
	const bool accepted = conn_is_confirmed(conn);
	bool lost;
	char byte;

	if (info.tcpi_state == TCPINFO_SYN_SENT)
		return CONN_BYPASS;
	if (info.tcpi_state == TCPINFO_CLOSE && !accepted)
		return settle_broken(conn, fd, ECONNREFUSED);
	lost = mptcpinfo_has_fallen_back(fd);
	if (!accepted && !lost && !conn->socket.streamed) {
		conn->dial.attempt.synack_due = false;
		watch_show(conn);
		return CONN_BYPASSED;
	}
	if (accepted && next.recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return CONN_BYPASSED;
	if (lost && info.tcpi_state != TCPINFO_CLOSE)
		return fall_back(conn, fd);
	settle_let_go(conn, fd);
	return CONN_DIRECT;
}
