/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dissolve.c - the calls that dissolve a connection: shutdown(), and connect() to AF_UNSPEC
 *
 * Both leave a TCP socket unconnected, and TCP then reports ECONNRESET once (tcp_disconnect()), but MPTCP reports no error. So the conn
 * keeps that error in the phase DISSOLVED. It becomes IDLE as soon as we have reported the error, or a new connection begins.
 */
#include "config.h"

#include "shim/connect/dissolve.h"

#include "shim/connect/operations.h"
#include "shim/connect/conversion.h"
#include "shim/socket/early.h"
#include "client/client_log.h"
#include "shim/connect/borrowed_options.h"
#include "shim/system/next.h"
#include "shim/socket/tcpinfo.h"
#include "shim/wait/watch.h"

#include <errno.h>

#define FINISH_MS 1000 /* for the response of a confirmed connection, which is on its way */

/* Dissolves an attempt at a connection. @conn is claimed. Returns the phase to release it in. */
static enum conn_phase give_up(struct conn *conn, int fd)
{
	char server[SOCKADDR_STRLEN];

	log_line("%s: given up by the application", sockaddr_ip_format(&conn->dial.server, server));
	operations_end(conn, fd);
	early_drop(&conn->early);
	atomic_store(&conn->error, ECONNRESET);
	operations_disconnect(fd);
	watch_restore(conn);
	return CONN_DISSOLVED;
}

/*
 * Notes a shutdown() of an application that has given early data, until the server is connected. Returns false if the connection has left
 * the pending phases meanwhile: then the caller shuts it down at once.
 */
static bool shut_later(struct conn *conn, int fd, int how)
{
	struct conn_claim claim;

	if (conn_phase(conn) == CONN_HELD)
		conversion_send_held(conn, fd);
	if (!conn_claim(conn, PHASES_PENDING, &claim))
		return false;
	conn->call.shut |= (uint8_t)(how + 1);
	conn_release(conn, claim.from, &claim);
	return true;
}

int dissolve_shutdown(struct conn *conn, int fd, int how)
{
	struct conn_claim claim;

	if (conn_is_confirmed(conn) && how != SHUT_WR) /* afterwards we couldn't read the response */
		conversion_finish(conn, fd, FINISH_MS);
	if (conn_has(conn, CONN_TOLD_CONNECTED) && shut_later(conn, fd, how))
		return 0;
	if (!conn_has(conn, CONN_TOLD_CONNECTED) && phase_in(conversion_progress(conn, fd), PHASES_PENDING) &&
	    conn_claim(conn, PHASES_PENDING, &claim)) {
		conn_release(conn, give_up(conn, fd), &claim);
		return 0;
	}
	return dissolve_unconnected(conn, fd, how);
}

int dissolve_unconnected(struct conn *conn, int fd, int how)
{
	if (next.shutdown(fd, how) == 0)
		return 0;
	conn->socket.shut_for_reading |= errno == ENOTCONN && how != SHUT_WR;
	return -errno;
}

/* Would TCP send a reset now, by tcp_need_reset()? Only poll() shows the state of the MPTCP socket itself. */
static bool is_connected(int fd)
{
	static const uint8_t states[] = { 1, 3, 4, 5, 8 }; /* ESTABLISHED, SYN_RECV, FIN_WAIT1, 2, CLOSE_WAIT */
	struct pollfd poller = { .fd = fd };
	struct tcp_info info;

	if (next_poll_now(&poller, 1) != 0)
		return false;
	info = tcpinfo_of(fd);
	for (size_t i = 0; i < sizeof(states); i++)
		if (info.tcpi_state == states[i])
			return true;
	return false;
}

static bool give_up_unfinished(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (!phase_in(conversion_progress(conn, fd), PHASES_UNFINISHED) || !conn_claim(conn, PHASES_UNFINISHED, &claim))
		return false;
	conn_release(conn, give_up(conn, fd), &claim);
	return true;
}

int dissolve_connection(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len)
{
	enum conn_phase phase;
	bool connected;

	if (give_up_unfinished(conn, fd))
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
