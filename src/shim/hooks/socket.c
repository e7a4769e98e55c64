/* SPDX-License-Identifier: BSD-3-Clause */
/* socket.c - socket(), connect(), listen(), shutdown(), and the functions that copy or close a socket */
#include "config.h"

#include "host/networks.h"
#include "shim/connect/conversion.h"
#include "shim/connect/connect.h"
#include "shim/hooks/hook.h"
#include "shim/process/process.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"
#include "shim/wait/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SOCK_TYPE_MASK 0xf /* SOCK_NONBLOCK and SOCK_CLOEXEC are above */

static bool is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & SOCK_TYPE_MASK) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

int socket_made(int fd, int domain, int type, int protocol, uint32_t generation)
{
	ERRNO_KEPT;

	if (fd >= 0 && conversion_enabled() && is_tcp(domain, type, protocol))
		conn_add(fd, generation);
	return fd;
}

HOOK(int, socket, (int domain, int type, int protocol))
{
	uint32_t generation = conn_generation();

	return socket_made(next.socket(domain, type, protocol), domain, type, protocol, generation);
}

static int connect_again(struct conn *conn, int fd, bool blocking);

/*
 * Returns the result of a blocking connect() once the attempt has ended. As in Linux (6.18), each waiting thread gets a success, but only
 * one of them a failure; the others get EPIPE.
 */
static int connect_waited(struct conn *conn, int fd)
{
	int error;

	switch (conn_phase_unclaimed(conn)) {
	case CONN_DONE:
	case CONN_CONFIRMED:
	case CONN_BYPASSED:
		conn_note(conn, CONN_TOLD_CONNECTED);
		return 0;
	case CONN_DIRECT:
		return 1;
	case CONN_FAILED:
	case CONN_DISSOLVED:
		error = conn_take_error(conn);
		conn_move(conn, CONN_FAILED, CONN_IDLE);
		return error ? -error : -EPIPE;
	case CONN_FREE:
	case CONN_IDLE:
		return -EPIPE;
	default: /* another thread has begun it anew */
		return connect_again(conn, fd, true);
	}
}

/* Answers connect() on a socket that has failed to connect. Returns -errno. */
static int connect_after_failure(struct conn *conn)
{
	int error = conn_take_error(conn);

	conn_move(conn, CONN_FAILED, CONN_IDLE);
	return error ? -error : -ECONNABORTED;
}

/* Answers connect() on a socket that has a conn. Returns 0 or -errno; 1: no connection of ours. */
static int connect_again(struct conn *conn, int fd, bool blocking)
{
	enum conn_phase phase = conn_phase(conn);
	bool told = conn_has(conn, CONN_TOLD_CONNECTED);
	int error;

	if (phase_in(phase, PHASES_FAILED))
		return connect_after_failure(conn);
	if (!phase_in(phase, PHASES_UNFINISHED | PHASE(DONE)))
		return 1;
	if (told || phase == CONN_DEFERRED)
		return -EISCONN;
	if (phase_in(phase, PHASE(DONE) | PHASES_CONFIRMED)) {
		conn_note(conn, CONN_TOLD_CONNECTED);
		return 0;
	}
	if (!blocking && phase_in(conversion_progress(conn, fd), PHASES_PENDING))
		return -EALREADY;
	error = blocking ? conversion_wait_for(conn, fd, SO_SNDTIMEO) : 0;
	if (error)
		return error == -EAGAIN ? -EALREADY : error;
	return blocking ? connect_waited(conn, fd) : connect_again(conn, fd, blocking);
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

/* Connects without a converter. After a failure the application may try again. */
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

/*
 * connect() to an address that isn't a server's. AF_UNSPEC dissolves the connection (connect(2)). The kernel refuses all others, unless the
 * socket's state decides: it ignores an address that it has no use for.
 */
static int connect_nowhere(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret = 1;

	if (conn && len >= sizeof(addr->sa_family)) {
		if (addr->sa_family == AF_UNSPEC)
			return hook_result(dissolve_connection(conn, fd, addr, len));
		ret = connect_again(conn, fd, operations_may_block(conn, fd, 0));
	}
	return ret > 0 ? next.connect(fd, addr, len) : hook_result(ret);
}

static int connect_any(int fd, const struct sockaddr *addr, socklen_t len)
{
	union sockaddr_ip server;
	struct conn *conn;
	bool blocking;
	int ret;

	conn = conn_of(fd);
	if (!sockaddr_ip_from(&server, addr, len))
		return connect_nowhere(conn, fd, addr, len);
	if (conn && conn_phase(conn) == CONN_DISSOLVED)
		conn_take_error(conn); /* a new beginning */

	blocking = operations_may_block(conn, fd, 0);
	ret = conn ? connect_again(conn, fd, blocking) : 1;
	if (ret <= 0)
		return hook_result(ret);
	if (!conn && is_unconnected_tcp(fd))
		conn = conn_add(fd, 0);
	ret = conn && conn_phase(conn) == CONN_IDLE ?
		      conversion_start(conn, fd, &server, false) :
		      CONVERSION_DIRECT;
	if (ret == CONVERSION_DIRECT)
		return connect_directly(conn, fd, addr, len);
	if (ret < 0 || conn_phase(conn) == CONN_DEFERRED)
		return hook_result(ret);
	if (!blocking) {
		if (conn_has_failed(conn)) /* at once, or this call has waited, since the process uses io_uring */
			return hook_result(connect_after_failure(conn));
		if (!watch_any(conn))
			conn_mark_unseen(conn, true);
		return hook_result(-EINPROGRESS);
	}
	ret = conversion_wait(conn, fd);
	if (ret == 0)
		ret = connect_waited(conn, fd);
	return ret > 0 ? connect_directly(conn, fd, addr, len) : hook_result(ret);
}

/* The kernel refuses an address that is unreadable or too long. We copy any other once, as the kernel does. */
HOOK(int, connect, (int fd, const struct sockaddr *addr, socklen_t len))
{
	struct sockaddr_storage copy;
	int saved_errno = errno;

	if (!conversion_enabled() || !usermem_has_address(addr, len, &copy))
		return next.connect(fd, addr, len);
	return hook_success_kept(connect_any(fd, (const struct sockaddr *)&copy, len), saved_errno);
}

/* We convert only a client's connections: a listener gets a TCP socket, and we don't follow the sockets that it accepts. */
HOOK(int, listen, (int fd, int backlog))
{
	struct conn *conn = conn_of_phase(fd, PHASE(IDLE));
	int ret, saved_errno;

	if (!conn)
		return next.listen(fd, backlog);
	replace_with_tcp(conn, fd);
	ret = next.listen(fd, backlog);
	saved_errno = errno;
	watch_resume(conn); /* now the kernel reports only connections of it */
	if (ret == 0)
		conn_move(conn, CONN_IDLE, CONN_DIRECT);
	errno = saved_errno;
	return ret;
}

HOOK(int, shutdown, (int fd, int how))
{
	struct conn *conn = conn_handled(fd);
	int saved_errno = errno;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return next.shutdown(fd, how);
	if (conn)
		return hook_success_kept(hook_result(dissolve_shutdown(conn, fd, how)), saved_errno);
	conn = conn_of_phase(fd, PHASE(IDLE));
	return conn ? hook_result(shutdown_by_kernel(conn, fd, how)) : next.shutdown(fd, how);
}

HOOK(int, close, (int fd))
{
	leave_by_close(fd);
	return next.close(fd);
}

HOOK(int, close_range, (unsigned int first, unsigned int last, int flags))
{
	/* With other flags the descriptors live on: until the exec(), or in another process. */
	if (flags == 0)
		leave_by_close_range(first, last);
	return next.close_range(first, last, flags);
}

/* The C library's closefrom() calls its own close_range(), which the hook above doesn't see. */
HOOK(void, closefrom, (int first))
{
	leave_by_close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX);
	next.closefrom(first);
}

HOOK(int, dup, (int fd))
{
	int to = next.dup(fd);

	if (to >= 0)
		conn_dup(fd, to);
	return to;
}

static int dup_followed(int fd, int to, int ret)
{
	if (ret < 0)
		return ret;
	conn_dup(fd, to);
	if (to <= STDERR_FILENO && fd != to)
		leave_to_stdio(to);
	return ret;
}

/*
 * dup2() closes @to. Another thread may be taking a step of @to's connection, and would continue it on the socket that takes its place. So
 * we claim the conn during the call. A thread that claims it later sees by the cookie that @to is another socket's. Returns the conn to release, or NULL.
 */
static struct conn *overwrite_begin(int fd, int to, struct conn_claim *claim)
{
	struct conn *conn = fd == to ? NULL : conn_handled(to);

	if (!conn || !conn_is_owner() || next.fcntl(fd, F_GETFD) < 0)
		return NULL;
	leave_by_overwrite(to);
	return conn_claim(conn, PHASES_UNFINISHED, claim) ? conn : NULL;
}

#define DUP_HOOK(name, params, args)                                                               \
	HOOK(int, name, params)                                                                    \
	{                                                                                          \
		struct conn_claim claim;                                                           \
		struct conn *conn = overwrite_begin(fd, to, &claim);                               \
		int ret = next.name args;                                                          \
                                                                                                   \
		if (conn)                                                                          \
			conn_release(conn, claim.from, &claim);                                    \
		return dup_followed(fd, to, ret);                                                  \
	}

DUP_HOOK(dup2, (int fd, int to), (fd, to))
DUP_HOOK(dup3, (int fd, int to, int flags), (fd, to, flags))

static int fcntl_followed(int fd, int command, void *arg)
{
	int ret;

	if (command == F_SETFL && (uintptr_t)arg & O_ASYNC)
		conversion_before_signals(fd);
	ret = next.fcntl(fd, command, arg);
	if (ret >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
		conn_dup(fd, ret);
	return ret;
}

VARIADIC_HOOK(fcntl, int, fcntl_followed)
VARIADIC_HOOK(fcntl64, int, fcntl_followed)

/*
 * The names that the application gets for itself and its peer
 *
 * getpeername(2) names the server, though the kernel's peer is the converter. Both names have the address family of the socket that the
 * application has made, whichever family leads to the converter.
 */

static int name_answer(const union sockaddr_ip *name, struct sockaddr *addr, socklen_t *len)
{
	return hook_result(usermem_answer(addr, len, name, sockaddr_ip_len(name), USERMEM_NAME));
}

typedef int name_function(int fd, struct sockaddr *addr, socklen_t *len);

/*
 * Asks the kernel for a name, into memory of ours: the kernel checks the socket's state before the application's pointer, and so do the
 * hooks. Returns 0, or -1 with errno.
 */
static int name_ask(name_function *ask, int fd, union sockaddr_ip *name)
{
	socklen_t full = sizeof(*name);

	name->sa.sa_family = AF_UNSPEC;
	return ask(fd, &name->sa, &full);
}

/* Finds this host's address for a direct connection to @server. Returns false if there is no route. */
static bool route_source(const union sockaddr_ip *server, struct in6_addr *out)
{
	int saved_errno = errno;
	struct quiet quiet;
	bool is_known;

	quiet_all(&quiet);
	is_known = network_usual_source(server, 0, out);
	errno = saved_errno;
	quiet_end(&quiet);
	return is_known;
}

/*
 * Makes an IPv4 name of @name, the name of an IPv6 socket in place of the application's IPv4 socket. An IPv6 address that isn't v4-mapped
 * becomes the dummy address of RFC 7600, which belongs to nobody.
 */
static void name_as_ipv4(union sockaddr_ip *name)
{
	static const struct in6_addr dummy = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 0, 8 } };
	struct in6_addr address = sockaddr_ip_in6(name);
	uint16_t port = sockaddr_ip_port(name);

	if (!sockaddr_ip_set(name, AF_INET, &address, port))
		sockaddr_ip_set(name, AF_INET, &dummy, port);
}

/* Does the server have another address family than the converter? @name: this host's, of the connection to the converter */
static bool is_of_other_family(const struct conn *conn, const union sockaddr_ip *name)
{
	return conn_peer(conn)->sa.sa_family != AF_UNSPEC && sockaddr_ip_port(name) &&
	       sockaddr_ip_is_v4(name) != sockaddr_ip_is_v4(conn_peer(conn));
}

/* The kernel's answer is right unless the socket has another family than the application's, or was connected to a v4-mapped address. */
HOOK(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len))
{
	const struct conn *conn = conn_unverified(fd);
	union sockaddr_ip name;
	struct in6_addr source;

	if (!conn || !(conn->socket.shown_ipv4 || conn->socket.was_mapped) || conn_of(fd) != conn)
		return next.getsockname(fd, addr, len);
	if (name_ask(next.getsockname, fd, &name) < 0)
		return -1;
	if (is_of_other_family(conn, &name) && route_source(conn_peer(conn), &source))
		sockaddr_ip_set(&name, AF_INET6, &source, sockaddr_ip_port(&name));
	if (conn->socket.shown_ipv4)
		name_as_ipv4(&name);
	return name_answer(&name, addr, len);
}

/* The kernel's answer is valid only if no other thread has begun or ended a connection in between: it may be the converter's name. */
HOOK(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len))
{
	struct conn *conn = conn_of(fd);
	union sockaddr_ip connected;
	enum conn_phase phase;
	int ret;

	if (!conn)
		return next.getpeername(fd, addr, len);
	do {
		if (conn_phase(conn) == CONN_DEFERRED)
			return name_answer(conn_peer(conn), addr, len);
		if (conn_is_pending(conn) && phase_in(conversion_progress(conn, fd), PHASES_PENDING))
			return conn_has(conn, CONN_TOLD_CONNECTED) ? name_answer(conn_peer(conn), addr, len) : hook_result(-ENOTCONN);
		phase = conn_phase(conn);
		ret = name_ask(next.getpeername, fd, &connected);
	} while (conn_phase(conn) != phase || phase == CONN_DEFERRED || phase_in(phase, PHASES_PENDING));
	if (ret < 0) /* also for a converted connection: it has been reset */
		return -1;
	if (phase_in(phase, PHASE(DONE) | PHASES_CONFIRMED))
		connected = *conn_peer(conn);
	else if (conn->socket.shown_ipv4)
		name_as_ipv4(&connected);
	return name_answer(&connected, addr, len);
}
