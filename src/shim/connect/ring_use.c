/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_use.c - connections that their program may use past us before it has asked us anything
 *
 * A program that uses io_uring and doesn't wait in connect() may read by its ring as soon as the kernel has connected the socket. So
 * its request is a blind one: there is never a response on the stream. But a request whose SYN was lost comes behind the handshake, a
 * second later, without the data, and is reset by the converter.
 *
 * Programs ask for SO_ERROR before they use a socket that has become writable, or wait for it by poll() or epoll_wait(). Then the
 * connection can be begun anew, and the call, which is ours, waits until it is there. Two things must not happen:
 *
 *	The program has sent something already. It has been told so, and nobody would send it again. So the socket is shut for sending
 *	first, behind which the kernel's counts are final.
 *
 *	An operation of the ring waits on the socket already, and reads the response. So the response comes to another socket, which is
 *	in the place of the first one under the descriptors, and which the ring gets to know by later operations only. Where that can't
 *	be, as for a ring's registered file, the connection is made directly, and there is no response.
 *
 * A program that asks nobody (it has the ring send, and the ring waits) would have its connection reset. Which kind a program is shows
 * when it has its first connection, for which connect() waits until it is there, as it does for all of a program that doesn't ask:
 *
 *	habit    what was seen                                              the next connect() that doesn't block
 *	UNKNOWN  nothing                                                    waits; not where the last one is neither asked about nor
 *	                                                                    used yet, since the program begins many at once
 *	ASKS     it has asked for SO_ERROR, and had sent nothing            doesn't wait
 *	USES     it has sent something, or closed the socket, and not asked waits
 *
 * What is registered in an epoll instance before connect() is waited for by a hook, and needs no habit.
 */
#include "config.h"

#include "shim/connect/ring_use.h"

#include "shim/connect/operations.h"
#include "shim/connect/replace.h"
#include "shim/socket/tcpinfo.h"
#include "shim/system/next.h"
#include "shim/wait/watch.h"

#include <netinet/in.h>

enum habit { UNKNOWN, ASKS, USES };

static _Atomic enum habit habit;

/* The last connection that connect() has waited for: the index of its conn and 1, its cookie, and what the kernel had to send by then. */
static _Atomic uint32_t last; /* 0: none */
static _Atomic uint64_t last_cookie;
static _Atomic uint32_t last_sent;

/*
 * Has the kernel been given more to send than the request, of @sent bytes? @shut: and the end of the stream, a FIN, which counts until it is
 * sent. Before a connection has all that it needs for a second subflow the first one has all that was sent.
 */
static bool is_used(const struct conn *conn, int fd, uint32_t sent, bool shut)
{
	const struct tcp_info info = tcpinfo_of(fd);
	const uint64_t unsent = info.tcpi_notsent_bytes - (shut && info.tcpi_notsent_bytes);
	struct mptcpinfo whole;

	return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + unsent > sent ||
	       (conn->socket.mptcp && mptcpinfo_of(fd, &whole) && whole.bytes_sent > sent);
}

bool ring_use_may_return(const struct conn *conn)
{
	const uint32_t before = atomic_load(&last);
	const struct conn *other;

	if (atomic_load(&habit) == ASKS || watch_any(conn))
		return true;
	if (atomic_load(&habit) == USES || !before)
		return false;
	other = conn_by_index(before - 1);
	if (conn_of(other->fd) == other && other->cookie == atomic_load(&last_cookie) &&
	    !is_used(other, other->fd, atomic_load(&last_sent), false))
		return true;
	atomic_store(&habit, USES);
	return false;
}

void ring_use_waited(const struct conn *conn)
{
	atomic_store(&last_sent, conn->dial.attempt.sent);
	atomic_store(&last_cookie, conn->cookie);
	atomic_store(&last, conn->index + 1);
}

void ring_use_asked(const struct conn *conn, int fd)
{
	if (atomic_load(&conn->ring_may_use) && atomic_load(&habit) != ASKS && conn_in(conn, PHASE(DONE) | PHASE(DIRECT)))
		atomic_store(&habit, is_used(conn, fd, conn->dial.attempt.sent, false) ? USES : ASKS);
}

void ring_use_left(const struct conn *conn, int fd)
{
	if (is_used(conn, fd, conn->dial.attempt.sent, false))
		atomic_store(&habit, USES);
}

bool ring_use_take_back(struct conn *conn, int fd)
{
	bool used;

	if (!conn_ring_may_use(conn) || conn_has(conn, CONN_WROTE))
		return false;
	conn_note(conn, CONN_TAKEN_BACK);
	next.shutdown(fd, SHUT_WR);
	used = is_used(conn, fd, conn->dial.attempt.sent, true);
	if (used)
		atomic_store(&habit, USES);
	operations_end(conn, fd);
	operations_disconnect(fd);
	return !used;
}

bool ring_use_renew(struct conn *conn, int fd)
{
	const int domain = sockopt_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);

	if (!replace_is_possible(conn) || !replace_socket(conn, fd, domain, conn->socket.mptcp ? IPPROTO_MPTCP : IPPROTO_TCP))
		return false;
	conn->dial.attempt.ask_silent = false;
	conn->dial.attempt.ask_blind = false;
	return true;
}
