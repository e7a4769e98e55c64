/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dissolve.c - what takes a connection away: shutdown(), and connect() to AF_UNSPEC
 *
 * TCP is left unconnected by both, with ECONNRESET to be told once, tcp_disconnect(); MPTCP has nothing
 * to tell. So the conn is FAILED, with conn.unconnected: as soon as the error has been told, or a
 * new connection is begun, it is IDLE.
 */
#include "config.h"

#include "shim/connect/dissolve.h"

#include "shim/connect/attempt.h"
#include "shim/connect/conversion.h"
#include "shim/socket/early.h"
#include "shim/system/log.h"
#include "shim/connect/liveness.h"
#include "shim/connect/lowat.h"
#include "shim/system/next.h"
#include "shim/connect/others.h"
#include "shim/socket/tcpinfo.h"
#include "shim/wait/watch.h"

#include <errno.h>

#define FINISH_MS 1000 /* the response of a confirmed connection is on its way */

/* @conn is claimed, and its connection is still under way. Returns the state to release it with. */
static enum conn_state give_up(struct conn *conn, int fd)
{
	bool shared = conn_is_shared(conn), locked = shared && others_lock(fd);
	char server[SOCKADDR_STRLEN];

	log_line("%s: given up by the application", sockaddr_ip_format(&conn->call.peer, server));
	liveness_end(conn, fd);
	lowat_restore(conn, fd);
	early_drop(&conn->early);
	atomic_store(&conn->error, ECONNRESET);
	conn->unconnected = true;
	attempt_disconnect(fd);
	if (shared)
		others_give_up(fd);
	if (locked)
		others_unlock(fd);
	watch_restore(conn);
	return CONN_FAILED;
}

/* Early data: the application is connected as far as it knows. Returns false if it is by now. */
static bool shut_later(struct conn *conn, int fd, int how)
{
	struct conn_claim claim;

	if (conn_state(conn) == CONN_HELD)
		conversion_send_held(conn, fd);
	if (!conn_claim(conn, CONN_PENDING, &claim))
		return false;
	conn->call.shut |= (uint8_t)(how + 1);
	conn_release(conn, CONN_PENDING, &claim);
	return true;
}

int dissolve_shutdown(struct conn *conn, int fd, int how)
{
	struct conn_claim claim;

	if (conn_is_confirmed(conn) && how != SHUT_WR) /* the response could not be read any more */
		conversion_finish(conn, fd, FINISH_MS);
	if (conn->connect_told && shut_later(conn, fd, how))
		return 0;
	if (!conn->connect_told && conversion_progress(conn, fd) == CONN_PENDING &&
	    conn_claim(conn, CONN_PENDING, &claim)) {
		conn_release(conn, give_up(conn, fd), &claim);
		return 0;
	}
	return dissolve_unconnected(conn, fd, how);
}

int dissolve_unconnected(struct conn *conn, int fd, int how)
{
	if (next.shutdown(fd, how) == 0)
		return 0;
	conn->socket.deaf |= errno == ENOTCONN && how != SHUT_WR;
	return -errno;
}

/* Would TCP send a reset now? tcp_need_reset(). MPTCP's own state shows in poll() only. */
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

static bool give_up_pending(struct conn *conn, int fd)
{
	enum conn_state state = conversion_progress(conn, fd);
	struct conn_claim claim;

	if ((state != CONN_PENDING && state != CONN_HELD && state != CONN_CONFIRMED) ||
	    !conn_claim(conn, state, &claim))
		return false;
	conn_release(conn, give_up(conn, fd), &claim);
	return true;
}

int dissolve_connection(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len)
{
	enum conn_state state;
	bool connected;

	if (give_up_pending(conn, fd))
		return 0;
	state = conn_state(conn);
	connected = conn->socket.mptcp && (state == CONN_DONE || state == CONN_DIRECT) && is_connected(fd);
	if (next.connect(fd, addr, len) != 0)
		return -errno;
	if (connected)
		atomic_store(&conn->error, ECONNRESET);
	conn->unconnected = true;
	conn->connect_told = conn->bypassed = conn->socket.deaf = false;
	if (connected)
		conn_move(conn, state, CONN_FAILED);
	else if (state == CONN_DONE || state == CONN_DIRECT || !atomic_load(&conn->error))
		conn_move(conn, state, CONN_IDLE);
	return 0;
}
