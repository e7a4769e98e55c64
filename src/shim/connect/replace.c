/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replace.c - puts another socket under the descriptors of the application's
 *
 * The application makes a TCP socket, and keeps it until Multipath TCP is useful: for a connection by way of a converter, or to a server
 * that speaks it. Then connect() replaces the TCP socket by an MPTCP one. A TCP socket replaces that in turn if the handshake shows that
 * Multipath TCP doesn't get through, or if the connection is direct in the end. We also replace a socket if the converter has only an
 * address of the other family.
 *
 * Why socket() doesn't make an MPTCP socket at once: Linux loses bytes on MPTCP sockets that have fallen back to TCP
 * (doc/kernel-mptcp-fallback-overlap.md). So a socket that is used past us (io_uring, the program's own system calls), or that we can't
 * replace, must be a TCP one. In this way a failure costs a connection its second network, and never a byte.
 *
 * The new socket gets the same options, flags and address; dup3() puts it under each descriptor; and we make the epoll registrations again,
 * which went with the old socket. Nobody can notice while the socket isn't connected and we know all of its descriptors and registrations.
 */
#include "config.h"

#include "shim/connect/connect.h"

#include "common/sockaddr.h"
#include "shim/system/next.h"
#include "shim/socket/app_options.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>

static int socket_make(int domain, int protocol)
{
	return next_socket_now(domain, SOCK_STREAM | SOCK_CLOEXEC, protocol);
}

/* Copies the file status flags and the receiver of signals. The flags come last, since with O_ASYNC the signals begin. */
static bool flags_copy(int from, int to)
{
	const int flags = next.fcntl(from, F_GETFL);

	/* a new socket has O_RDWR alone */
	return flags >= 0 && kernel_copy_owner(from, to) && (flags == O_RDWR || next.fcntl(to, F_SETFL, flags) == 0);
}

/* dup3(2) of @made onto @fd, which keeps its FD_CLOEXEC. */
static int dup_alike(int made, int fd)
{
	return next_dup_now(made, fd, next.fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
}

/* Makes @fd refer to the socket of @made. Fails if @fd was closed by a call that the hooks didn't see. */
static bool descriptor_put(const struct conn *conn, int fd, int made)
{
	return next.fcntl(fd, F_GETFD) >= 0 && kernel_cookie(fd) == conn->cookie && dup_alike(made, fd) >= 0;
}

/* Makes the socket's other descriptors, which the application has made by dup(), refer to the new socket as well. */
static void duplicates_put(const struct conn *conn, int fd, int made)
{
	uint32_t left = atomic_load(&conn->refs) - 1;

	for (int other = conn_next_fd(0); left && other >= 0; other = conn_next_fd(other + 1)) {
		if (other == fd || conn_unverified(other) != conn)
			continue;
		descriptor_put(conn, other, made);
		left--;
	}
}

static bool put_in_place(struct conn *conn, int fd, int made)
{
	const uint64_t cookie = kernel_cookie(made);

	if (!cookie) /* we could no longer find the conn */
		return false;
	watch_suspend(conn);
	if (!descriptor_put(conn, fd, made)) {
		watch_resume(conn);
		return false;
	}
	duplicates_put(conn, fd, made);
	conn_renew(conn, cookie);
	return true;
}

bool replace_is_possible(const struct conn *conn)
{
	return !conn->call.ring_holds && conn_is_private(conn) && options_can_copy(conn) && watch_can_suspend(conn);
}

bool replace_may_be_mptcp(const struct conn *conn)
{
	return options_allow_mptcp(conn) && replace_is_possible(conn);
}

bool replace_socket(struct conn *conn, int fd, int domain, int protocol)
{
	ERRNO_KEPT;
	const bool mptcp = protocol == IPPROTO_MPTCP;
	int made;
	bool replaced = false;

	/* unconnected: new, or disconnected by connect() to AF_UNSPEC */
	made = options_can_copy(conn) && watch_can_suspend(conn) && kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE ?
		       socket_make(domain, protocol) :
		       -1;
	if (made >= 0) {
		/* firewalls and routing rules know a socket by the user who has made it, or to whom it was given */
		replaced = next_same_owner(fd, made) && options_copy(conn, fd, made, mptcp) && flags_copy(fd, made) &&
			   (!conn->call.bound || kernel_copy_address(fd, made) == 0) && put_in_place(conn, fd, made);
		next_close_now(made);
	}
	if (replaced) {
		conn->socket.mptcp = mptcp;
		conn->socket.left = (union sockaddr_ip){ .sa.sa_family = AF_UNSPEC };
	}
	return replaced;
}

void replace_note_address(struct conn *conn, int fd)
{
	if (!conn->call.bound && !kernel_address(fd, &conn->socket.left))
		conn->socket.left.sa.sa_family = AF_UNSPEC;
}

bool replace_is_bound(const struct conn *conn, int fd)
{
	union sockaddr_ip address;

	if (conn->socket.left.sa.sa_family != AF_UNSPEC && kernel_address(fd, &address) && sockaddr_ip_equal(&address, &conn->socket.left))
		return false;
	return kernel_is_bound(fd);
}

void replace_with_tcp(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (!conn->socket.mptcp || !conn_claim(conn, PHASE(IDLE), &claim))
		return;
	conn->call.bound = replace_is_bound(conn, fd);
	replace_socket(conn, fd, kernel_get(fd, SOL_SOCKET, SO_DOMAIN, -1), IPPROTO_TCP);
	conn_release(conn, CONN_IDLE, &claim);
}

void replace_descriptor(int fd)
{
	int made = socket_make(kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_INET), IPPROTO_TCP);

	if (made >= 0)
		flags_copy(fd, made);
	if (made < 0 || dup_alike(made, fd) < 0)
		next_close_now(fd);
	if (made >= 0)
		next_close_now(made);
}

void replace_sever(struct conn *conn)
{
	const uint64_t cookie = conn->cookie;
	uint32_t left = atomic_load(&conn->refs);
	int made = -1;

	for (int fd = conn_next_fd(0); left && fd >= 0; fd = conn_next_fd(fd + 1)) {
		if (conn_unverified(fd) != conn)
			continue;
		left--;
		if (kernel_cookie(fd) != cookie)
			continue;
		if (made < 0) {
			replace_descriptor(fd);
			made = fd;
			conn_renew(conn, kernel_cookie(fd));
		} else {
			dup_alike(made, fd);
		}
	}
	conn->socket.mptcp = false;
}

int replace_tcp_like(const struct conn *conn, int fd)
{
	int made = socket_make(kernel_get(fd, SOL_SOCKET, SO_DOMAIN, -1), IPPROTO_TCP);

	if (made >= 0)
		options_copy_advice(conn, made);
	return made;
}
