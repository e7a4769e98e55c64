/* SPDX-License-Identifier: BSD-3-Clause */
/* hooks_socket.c - socket(), connect(), what tells about a socket, and what copies or closes it */
#include "config.h"

#include "shim/conn.h"
#include "shim/conversion.h"
#include "shim/hook.h"
#include "shim/next.h"
#include "shim/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/tcp.h>
#include <string.h>

#define SOCK_TYPE_MASK 0xf /* SOCK_NONBLOCK and SOCK_CLOEXEC are above */

static bool is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & SOCK_TYPE_MASK) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

HOOK(int, socket, (int domain, int type, int protocol))
{
	int fd, saved_errno = errno;

	if (!conversion_enabled() || !is_tcp(domain, type, protocol))
		return next.socket(domain, type, protocol);
	/* Refused where MPTCP is not built in or sysctl net.mptcp.enabled is 0. */
	fd = next.socket(domain, type, IPPROTO_MPTCP);
	if (fd < 0) {
		errno = saved_errno;
		fd = next.socket(domain, type, protocol);
	}
	if (fd >= 0) {
		conn_add(fd);
		errno = saved_errno;
	}
	return fd;
}

/* connect() once more, on a socket that we have a conn of. Returns 0 or -errno, 1: not ours. */
static int connect_again(struct conn *conn, int fd, bool blocking)
{
	int error;

	switch (conn_state(conn)) {
	case CONN_DONE:
		if (conn->connect_told)
			return -EISCONN;
		conn->connect_told = true;
		return 0;
	case CONN_FAILED:
		error = conversion_take_error(conn);
		conn_move(conn, CONN_FAILED, CONN_IDLE);
		return error ? -error : -ECONNABORTED;
	case CONN_PENDING:
	case CONN_CLAIMED:
		break;
	default:
		return 1;
	}
	if (!blocking && conversion_progress(conn, fd) == CONN_PENDING)
		return -EALREADY;
	error = blocking ? conversion_wait(conn, fd) : 0;
	return error ? error : connect_again(conn, fd, blocking);
}

static bool is_unconnected_tcp(int fd)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr), intlen = sizeof(int);
	int protocol = 0;

	return next.getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &intlen) == 0 &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP) &&
	       next.getpeername(fd, (struct sockaddr *)&addr, &len) < 0;
}

static bool is_blocking(int fd)
{
	int flags = next.fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* Without a converter; a socket that could not be connected may be tried again. */
static int connect_directly(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret;

	if (conn)
		conn_move(conn, CONN_IDLE, CONN_DIRECT);
	ret = next.connect(fd, addr, len);
	if (conn && ret < 0 && errno != EINPROGRESS && errno != EALREADY && errno != EINTR &&
	    errno != EISCONN)
		conn_move(conn, CONN_DIRECT, CONN_IDLE);
	return ret;
}

/* AF_UNSPEC dissolves a connection: whatever we knew of it is over. */
static int connect_dissolve(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret = next.connect(fd, addr, len);

	if (conn && ret == 0)
		conn_forget(fd);
	return ret;
}

HOOK(int, connect, (int fd, const struct sockaddr *addr, socklen_t len))
{
	union sockaddr_ip server;
	struct conn *conn;
	bool blocking;
	int ret;

	if (!conversion_enabled())
		return next.connect(fd, addr, len);
	conn = conn_maybe(fd) ? conn_of(fd) : NULL;
	if (!sockaddr_ip_from(&server, addr, len))
		return connect_dissolve(conn, fd, addr, len);

	blocking = is_blocking(fd);
	ret = conn ? connect_again(conn, fd, blocking) : 1;
	if (ret <= 0)
		return hook_result(ret);
	if (!conn && is_unconnected_tcp(fd))
		conn = conn_add(fd);
	ret = conn && conn_state(conn) == CONN_IDLE ? conversion_start(conn, fd, &server) :
						      CONVERSION_DIRECT;
	if (ret == CONVERSION_DIRECT)
		return connect_directly(conn, fd, addr, len);
	if (ret < 0)
		return hook_result(ret);
	if (!blocking) {
		if (!watch_any(conn))
			conn_mark_unseen(conn, true);
		return hook_result(-EINPROGRESS);
	}
	ret = conversion_wait(conn, fd);
	if (ret == 0)
		ret = connect_again(conn, fd, blocking);
	return ret > 0 ? connect_directly(conn, fd, addr, len) : hook_result(ret);
}

HOOK(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len))
{
	struct conn *conn = conn_maybe(fd) ? conn_of(fd) : NULL;
	socklen_t full, room;

	if (!conn || !len || !addr)
		return next.getpeername(fd, addr, len);
	if (conn_is_pending(conn) && conversion_progress(conn, fd) == CONN_PENDING)
		return hook_result(-ENOTCONN);
	if (conn_state(conn) != CONN_DONE)
		return next.getpeername(fd, addr, len);
	room = *len;
	/* The kernel's own answer first, for its errors: EINVAL, ENOTCONN after a reset. */
	if (next.getpeername(fd, addr, len) < 0)
		return -1;
	full = sockaddr_ip_len(&conn->peer);
	memcpy(addr, &conn->peer, room < full ? room : full);
	*len = full;
	return 0;
}

static int answer_int(void *value, socklen_t *len, int answer)
{
	socklen_t bytes = *len < sizeof(answer) ? *len : sizeof(answer);

	memcpy(value, &answer, bytes);
	*len = bytes;
	return 0;
}

HOOK(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len))
{
	struct conn *conn;
	int ret;

	if (level == SOL_SOCKET && name == SO_ERROR && (conn = conn_attentive(fd)) && value && len) {
		conversion_progress(conn, fd);
		if (conn_state(conn) == CONN_FAILED)
			return answer_int(value, len, conversion_take_error(conn));
	}
	ret = next.getsockopt(fd, level, name, value, len);
	/* The application asked for TCP. */
	if (ret == 0 && level == SOL_SOCKET && name == SO_PROTOCOL && conn_maybe(fd) &&
	    *len == sizeof(int) && *(int *)value == IPPROTO_MPTCP)
		*(int *)value = IPPROTO_TCP;
	return ret;
}

/*
 * Options that TCP takes and MPTCP refuses, and that are advice: the connection is the
 * same without them. What would change its meaning is left to fail (Linux 6.18).
 */
static const struct {
	int level, name;
} advice[] = {
	{ IPPROTO_TCP, TCP_SYNCNT },	   { IPPROTO_TCP, TCP_LINGER2 },
	{ IPPROTO_TCP, TCP_WINDOW_CLAMP }, { IPPROTO_TCP, TCP_QUICKACK },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT }, { IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS },
	{ IPPROTO_TCP, TCP_THIN_DUPACK },  { SOL_SOCKET, SO_MAX_PACING_RATE },
	{ SOL_SOCKET, SO_TXREHASH },	   { IPPROTO_IP, IP_TTL },
	{ IPPROTO_IP, IP_MTU_DISCOVER },   { IPPROTO_IPV6, IPV6_TCLASS },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS }, { IPPROTO_IPV6, IPV6_MTU_DISCOVER },
	{ IPPROTO_IPV6, IPV6_AUTOFLOWLABEL },
};

HOOK(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len))
{
	int saved_errno = errno;
	int ret = next.setsockopt(fd, level, name, value, len);

	if (ret == 0 || (errno != ENOPROTOOPT && errno != EOPNOTSUPP) || !conn_maybe(fd))
		return ret;
	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		if (advice[i].level == level && advice[i].name == name) {
			errno = saved_errno;
			return 0;
		}
	return ret;
}

HOOK(int, close, (int fd))
{
	conn_forget(fd);
	return next.close(fd);
}

HOOK(int, close_range, (unsigned int first, unsigned int last, int flags))
{
	/* With other flags the descriptors live on: for the exec(), or in another process. */
	if (flags == 0)
		conn_forget_range(first, last);
	return next.close_range(first, last, flags);
}

/* The C library's, by its own close_range(), is out of reach of the hook above. */
HOOK(void, closefrom, (int first))
{
	conn_forget_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX);
	next.closefrom(first);
}

HOOK(int, dup, (int fd))
{
	int to = next.dup(fd);

	if (to >= 0)
		conn_dup(fd, to);
	return to;
}

HOOK(int, dup2, (int fd, int to))
{
	int ret = next.dup2(fd, to);

	if (ret >= 0)
		conn_dup(fd, to);
	return ret;
}

HOOK(int, dup3, (int fd, int to, int flags))
{
	int ret = next.dup3(fd, to, flags);

	if (ret >= 0)
		conn_dup(fd, to);
	return ret;
}

static int fcntl_followed(int fd, int command, void *arg)
{
	int ret = next.fcntl(fd, command, arg);

	if (ret >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
		conn_dup(fd, ret);
	return ret;
}

/* The third argument is an int, a pointer, or missing: fetched as the widest, as the C library does. */
#define FCNTL_HOOK(symbol)                                                                         \
	HOOK(int, symbol, (int fd, int command, ...))                                 \
	{                                                                                          \
		va_list args;                                                                      \
		void *arg;                                                                         \
                                                                                                   \
		va_start(args, command);                                                           \
		arg = va_arg(args, void *);                                                        \
		va_end(args);                                                                      \
		return fcntl_followed(fd, command, arg);                                           \
	}

FCNTL_HOOK(fcntl)
FCNTL_HOOK(fcntl64)
