/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_use.c - connections that a program may use past the hooks at once, by io_uring
 *
 * A program that uses io_uring and doesn't wait in connect() may read by its ring as soon as the kernel has connected the socket. So its
 * request is blind: the stream never has a response. But if the SYN is lost, Linux repeats it a second later without its data; the request
 * then comes behind the handshake, and the converter resets the connection.
 *
 * Programs ask for SO_ERROR before they use a socket that has become writable, or wait for it by poll() or epoll_wait(). Our hook for such
 * a call can begin the connection anew, and waits until it is there. Two things must not happen:
 *
 *	The program has sent bytes already. They count as sent, and nobody would send them again. So we shut the socket down for sending
 *	first; afterwards the kernel's counts are final.
 *
 *	An operation of the ring waits on the socket already, and reads the response. So we replace the socket under the descriptors: the
 *	response comes to the new one, which only later operations of the ring see. Where that is impossible, as for a ring's registered
 *	file, we connect directly, without a response.
 *
 * If a program doesn't ask (its ring sends, and its ring waits), its connection would be reset. Its first connection shows which kind of
 * program it is: connect() waits for that, and for all connections of a program that doesn't ask:
 *
 *	habit    seen so far                                                the next connect() that doesn't block
 *	UNKNOWN  nothing                                                    waits; but not if the program has neither asked about the
 *	                                                                    last one nor used it yet, since it begins many at once
 *	ASKS     it has asked for SO_ERROR before it sent anything          doesn't wait
 *	USES     it has sent bytes, or closed the socket, without asking    waits
 *
 * If an epoll instance has the socket before connect(), a hook waits for it, and the habit doesn't matter.
 */
#include "config.h"

#include "shim/connect/connect.h"
#include "shim/system/next.h"
#include "shim/wait/watch.h"

#include <netinet/in.h>

enum habit { UNKNOWN, ASKS, USES };

static _Atomic enum habit habit;

/* The last connection that connect() has waited for: its conn's index plus 1, its cookie, and the bytes that the kernel got by then. */
static _Atomic uint32_t last; /* 0: none */
static _Atomic uint64_t last_cookie;
static _Atomic uint32_t last_sent;

/*
 * Returns whether the kernel got more bytes to send than the @sent bytes of the request. @shut: also the end of the stream, a FIN, which
 * counts as a byte until it is sent. Until a connection is ready for a second subflow, its first one has all that was sent.
 */
static bool is_used(const struct conn *conn, int fd, uint32_t sent, bool shut)
{
	const struct tcp_info info = kernel_tcp_info(fd);
	const uint64_t unsent = info.tcpi_notsent_bytes - (shut && info.tcpi_notsent_bytes);
	struct kernel_mptcp_info whole;
	socklen_t len = sizeof(whole);

	return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + unsent > sent ||
	       (conn->socket.mptcp && next.getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &whole, &len) == 0 && len >= sizeof(whole) &&
		whole.bytes_sent > sent);
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
	kernel_disconnect(fd);
	return !used;
}

bool ring_use_renew(struct conn *conn, int fd)
{
	const int domain = kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);

	if (!replace_is_possible(conn) || !replace_socket(conn, fd, domain, conn->socket.mptcp ? IPPROTO_MPTCP : IPPROTO_TCP))
		return false;
	conn->dial.attempt.ask.silent = false;
	conn->dial.attempt.ask.blind = false;
	return true;
}
