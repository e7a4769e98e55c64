/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stand_in.c - makes a socket like the program's, and puts it under the program's descriptors
 *
 * Linux loses bytes on MPTCP sockets that have fallen back to TCP. So we need a stand-in where the program's MPTCP socket would fall back:
 * for destinations that aren't converted, and where Multipath TCP doesn't get through to the converter.
 *
 * We compare the program's socket options with those of a new socket, and copy those that differ. An epoll instance forgets a socket with
 * its last descriptor, so we make the registrations again (places.c).
 *
 * Other processes that share the socket (by fork() before connect()) keep the old one.
 */
#include "config.h"

#include "supervise/stand_in.h"

#include "common/sockaddr.h"
#include "common/socket_options.h"
#include "supervise/advice.h"
#include "supervise/places.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <string.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

struct option_value {
	char bytes[SOCKET_OPTION_BYTES];
	socklen_t len; /* 0: unknown */
};

static void option_read(int fd, const struct socket_option *option, struct option_value *out)
{
	int buffer = socket_option_buffer(option);

	memset(out, 0, sizeof(*out));
	out->len = sizeof(out->bytes);
	if (getsockopt(fd, option->level, buffer ? buffer : option->name, out->bytes, &out->len) != 0)
		out->len = 0;
}

/* Returns the options of a new socket, which it reads only once. */
static const struct option_value *defaults_of(int domain, bool mptcp)
{
	static struct option_value values[2][2][SOCKET_OPTIONS_COUNT];
	static bool known[2][2];
	const int v6 = domain == AF_INET6;
	int fd;

	if (known[v6][mptcp])
		return values[v6][mptcp];
	fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, mptcp ? IPPROTO_MPTCP : 0);
	if (fd < 0)
		return NULL;
	for (int i = 0; i < SOCKET_OPTIONS_COUNT; i++)
		option_read(fd, &socket_options[i], &values[v6][mptcp][i]);
	close(fd);
	known[v6][mptcp] = true;
	return values[v6][mptcp];
}

/* Returns whether the option is ours: we decide how to send the SYN. */
static bool is_ours(const struct socket_option *option)
{
	return option->level == IPPROTO_TCP &&
	       (option->name == TCP_FASTOPEN_NO_COOKIE || option->name == TCP_FASTOPEN_CONNECT);
}

static int option_of(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

/* Copies the options that the program has set. Ignores errors: the new socket's protocol may lack an option. */
static void program_options_copy(int from, int to)
{
	const bool mptcp = option_of(from, SO_PROTOCOL) == IPPROTO_MPTCP;
	const struct option_value *before = defaults_of(option_of(from, SO_DOMAIN), mptcp);
	struct option_value now;
	int half;

	for (int i = 0; before && i < SOCKET_OPTIONS_COUNT; i++) {
		const struct socket_option *option = &socket_options[i];

		option_read(from, option, &now);
		if (is_ours(option) || !now.len || (now.len == before[i].len && memcmp(now.bytes, before[i].bytes, now.len) == 0))
			continue;
		if (socket_option_buffer(option)) {
			memcpy(&half, now.bytes, sizeof(half));
			half /= 2; /* the kernel doubles what it is given */
			memcpy(now.bytes, &half, sizeof(half));
		}
		(void)setsockopt(to, option->level, option->name, now.bytes, now.len);
	}
}

static bool reuse(int fd, int on)
{
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
}

/* Binds @to to the address of @from. Linux lets both have it while both have SO_REUSEADDR, so nobody else can take it in between. */
static int bound_address_copy(int from, int to)
{
	union sockaddr_ip addr;
	socklen_t len = sizeof(addr);
	int before = option_of(from, SO_REUSEADDR), ret = 0;

	if (before < 0 || getsockname(from, &addr.sa, &len) != 0)
		return -EADDRNOTAVAIL;
	if (!before && (!reuse(from, 1) || !reuse(to, 1)))
		return -EADDRINUSE;
	if (bind(to, &addr.sa, len) != 0)
		ret = -errno;
	if (!before) {
		reuse(from, 0);
		reuse(to, 0);
	}
	return ret;
}

bool stand_in_is_bound(int fd)
{
	union sockaddr_ip addr = { 0 };
	socklen_t len = sizeof(addr);
	struct in6_addr in6;

	if (getsockname(fd, &addr.sa, &len) != 0)
		return false;
	in6 = sockaddr_ip_in6(&addr);
	return sockaddr_ip_port(&addr) ||
	       !(IN6_IS_ADDR_UNSPECIFIED(&in6) || (IN6_IS_ADDR_V4MAPPED(&in6) && !in6.s6_addr32[3]));
}

int stand_in_make(int fd, int domain, bool mptcp, bool bound)
{
	int made = socket(domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, mptcp ? IPPROTO_MPTCP : 0);
	int ret = made < 0 ? -errno : 0;

	if (made < 0)
		return ret;
	program_options_copy(fd, made);
	if (!mptcp)
		advice_copy(fd, made);
	if (bound)
		ret = bound_address_copy(fd, made);
	if (ret == 0)
		return made;
	close(made);
	return ret;
}

/*
 * Puts @made under the program's number @at, if the socket is still there: another thread may have closed it meanwhile, and opened another
 * file under that number.
 */
static int put_at(int listener, const struct call *call, const struct places *places, int at, int made)
{
	const bool cloexec = tracee_is_cloexec(call->tid, at);
	int now = tracee_get_fd(call->tid, at);
	const bool there = now >= 0 && places_socket(now) == places->socket;

	if (now >= 0)
		close(now);
	return there ? listener_put_fd(listener, call, made, at, cloexec) : 0;
}

/*
 * Copies the owner, whom the kernel signals events of the socket (F_SETOWN). O_ASYNC alone, one of the file status flags, would have no
 * effect.
 */
static void owner_copy(int from, int to)
{
	struct f_owner_ex owner;
	int number;

	if (fcntl(from, F_GETOWN_EX, &owner) != 0 || !owner.pid)
		return;
	number = fcntl(from, F_GETSIG);
	if (number > 0)
		(void)fcntl(to, F_SETSIG, number);
	(void)fcntl(to, F_SETOWN_EX, &owner);
}

int stand_in_put(int listener, const struct call *call, int fd, int made)
{
	struct places places;
	int flags = fcntl(fd, F_GETFL), ret;

	owner_copy(fd, made);
	if (flags < 0 || fcntl(made, F_SETFL, flags) != 0)
		return -errno;
	ret = places_find(&places, call->tid, fd);
	if (ret < 0)
		return ret;
	for (int i = 0; i < places.fd_count && ret == 0; i++)
		ret = put_at(listener, call, &places, places.fds[i], made);
	if (ret == 0)
		places_register_anew(&places, made);
	return ret;
}
