/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.c - a plain TCP socket in the place of an MPTCP one
 *
 * socket() makes MPTCP sockets before anybody knows what will become of them. Where the
 * application then wants what MPTCP can't do, or what is no business of ours (a listener, a connection
 * to this host), a plain TCP socket takes its place underneath the same descriptor: it is
 * given the same options, flags and address, dup3() puts it there, and the epoll registrations, which
 * went with the old socket, are made again.
 *
 * Nobody can notice as long as the socket is unconnected and nobody else has a descriptor of it:
 * hence conn_is_private(). If anything fails on the way the MPTCP socket stays, which is as
 * good as the kernel's MPTCP is.
 *
 * The address: Linux lets two sockets have the same one while both have SO_REUSEADDR and neither
 * listens, so there is no moment at which another process could take it.
 */
#include "config.h"

#include "shim/plain.h"

#include "common/sockaddr.h"
#include "shim/next.h"
#include "shim/options.h"
#include "shim/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>

static int option_get(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return next.getsockopt(fd, level, name, &value, &len) == 0 ? value : -1;
}

static bool option_set(int fd, int name, int value)
{
	return next.setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value)) == 0;
}

static int socket_make(int domain, int protocol)
{
	return next.socket(domain, SOCK_STREAM | SOCK_CLOEXEC, protocol);
}

static int socket_like(int fd)
{
	return socket_make(option_get(fd, SOL_SOCKET, SO_DOMAIN), IPPROTO_TCP);
}

/* O_NONBLOCK and whom to send signals to; O_ASYNC last, which sends them. */
static bool flags_copy(int from, int to)
{
	int flags = next.fcntl(from, F_GETFL), number = next.fcntl(from, F_GETSIG);
	struct f_owner_ex whom = { .pid = 0 };

	if (flags < 0 || number < 0 || next.fcntl(from, F_GETOWN_EX, &whom) < 0)
		return false;
	return (!whom.pid || next.fcntl(to, F_SETOWN_EX, &whom) == 0) &&
	       (!number || next.fcntl(to, F_SETSIG, number) == 0) &&
	       next.fcntl(to, F_SETFL, flags) == 0;
}

static bool is_bound(const union sockaddr_ip *addr)
{
	if (sockaddr_ip_port(addr))
		return true;
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_addr.s_addr != htonl(INADDR_ANY);
	return !IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

static bool address_copy(const struct conn *conn, int from, int to)
{
	union sockaddr_ip addr;
	socklen_t len = sizeof(addr);
	int reuse = option_get(from, SOL_SOCKET, SO_REUSEADDR);
	bool bound;

	if (next.getsockname(from, &addr.sa, &len) != 0 || reuse < 0)
		return false;
	/* An MPTCP socket remembers the port of a connection that was dissolved. */
	if (!is_bound(&addr) || (conn->tried && !conn->bound))
		return true;
	if (option_get(to, SOL_SOCKET, SO_DOMAIN) != option_get(from, SOL_SOCKET, SO_DOMAIN))
		return false;
	if (!reuse && (!option_set(from, SO_REUSEADDR, 1) || !option_set(to, SO_REUSEADDR, 1)))
		return false;
	bound = next.bind(to, &addr.sa, len) == 0;
	if (!reuse && (!option_set(from, SO_REUSEADDR, 0) || !option_set(to, SO_REUSEADDR, 0)))
		return false;
	return bound;
}

static bool demand_meet(const struct plain_demand *demand, int fd)
{
	return !demand ||
	       next.setsockopt(fd, demand->level, demand->name, demand->value, demand->len) == 0;
}

/* @made takes the place of the socket behind @fd. The conn is claimed. */
static bool put_in_place(struct conn *conn, int fd, int made)
{
	int flags = next.fcntl(fd, F_GETFD);

	if (flags < 0)
		return false;
	watch_suspend(conn);
	if (next.dup3(made, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) {
		watch_resume(conn);
		return false;
	}
	conn_renew(conn, fd);
	return true;
}

/* @made, a new socket, is closed. */
static int replace(struct conn *conn, int fd, int made, const struct plain_demand *demand)
{
	int ret = PLAIN_NOT;

	if (made < 0)
		return PLAIN_NOT;
	if (options_copy(conn, fd, made) && flags_copy(fd, made)) {
		if (!demand_meet(demand, made))
			ret = -errno;
		else if (address_copy(conn, fd, made) && put_in_place(conn, fd, made))
			ret = 0;
	}
	next_close_now(made);
	return ret;
}

bool plain_is_possible(const struct conn *conn)
{
	return conn_state(conn) == CONN_IDLE && !conn->plain && conn_is_private(conn) &&
	       options_can_copy(conn) && watch_can_suspend(conn);
}

int plain_replace(struct conn *conn, int fd, const char *why, const struct plain_demand *demand)
{
	int ret = PLAIN_NOT, saved_errno = errno;
	struct conn_claim claim;

	if (!plain_is_possible(conn) || !conn_claim(conn, CONN_IDLE, &claim))
		return PLAIN_NOT;
	if (conn_is_private(conn))
		ret = replace(conn, fd, socket_like(fd), demand);
	if (ret == 0)
		conn->plain = why;
	conn_release(conn, CONN_IDLE, &claim);
	errno = saved_errno;
	return ret;
}

bool plain_is_bound(int fd)
{
	union sockaddr_ip addr;
	socklen_t len = sizeof(addr);

	return next.getsockname(fd, &addr.sa, &len) == 0 && is_bound(&addr);
}

bool plain_can_renew(const struct conn *conn)
{
	return conn_is_private(conn) && options_can_copy(conn) && watch_can_suspend(conn);
}

bool plain_renew(struct conn *conn, int fd, int domain)
{
	int protocol = option_get(fd, SOL_SOCKET, SO_PROTOCOL), saved_errno = errno;
	bool renewed = plain_can_renew(conn) &&
		       replace(conn, fd, socket_make(domain, protocol), NULL) == 0;

	errno = saved_errno;
	return renewed;
}

int plain_stand_in(const struct conn *conn, int fd)
{
	int made = socket_like(fd);

	if (made >= 0)
		options_copy_advice(conn, made);
	return made;
}
