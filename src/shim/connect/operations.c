/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operations.c - the engine's operations on an application's socket (engine/dial.h), and the shim's own
 *
 * During an attempt the socket's SO_RCVLOWAT, its keepalive and its epoll registrations have our values. All of the engine's operations run
 * with the conn claimed, like the engine's steps.
 *
 * A SYN waits for early data by the kernel's TCP_FASTOPEN_CONNECT: connect() returns 0, and poll() and epoll report the socket as writable.
 * The first bytes then start the connection.
 */
#include "config.h"

#include "shim/connect/connect.h"

#include "shim/system/next.h" /* before dial_socket.h: kernel_socket.h */

#include "client/client_log.h"
#include "engine/dial_socket.h"
#include "host/networks.h"
#include "shim/socket/app_options.h"
#include "shim/system/rights.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct conn *conn_of_dial(const struct dial *dial)
{
	return (struct conn *)((char *)(uintptr_t)dial - offsetof(struct conn, dial));
}

/* --- beside the engine --- */

struct converters_query operations_query(const struct conn *conn, int fd, const union sockaddr_ip *server)
{
	struct converters_query query = {
		.destination = server,
		.family = kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC),
		.tried = conn->dial.tried,
		.any_family = replace_is_possible(conn),
	};

	query.v6only = query.family == AF_INET6 && kernel_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	return query;
}

bool operations_resolve(struct converters_query query, struct dial_end *end)
{
	union sockaddr_ip addr;

	*end = (struct dial_end){ .verdict = POLICY_CONVERT, .error = ENETUNREACH };
	query.may_resolve = true;
	return converters_choose(dial_host.settings, &query, &addr, &end->verdict, &end->reason) >= 0;
}

int operations_connect(struct conn *conn, int fd, const union sockaddr_ip *to)
{
	int flags = next.fcntl(fd, F_GETFL);
	bool blocking = !(flags & O_NONBLOCK);
	int ret;

	if (blocking) {
		atomic_fetch_add(&conn->mode_changes, 1);
		next.fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	}
	ret = next.connect(fd, &to->sa, sockaddr_ip_len(to)) == 0 ? 0 : -errno;
	if (blocking) {
		next.fcntl(fd, F_SETFL, flags);
		atomic_fetch_add(&conn->mode_changes, 1);
	}
	return ret;
}

bool operations_may_block(const struct conn *conn, int fd, int flags)
{
	uint32_t mode_changes;
	int status;

	if (flags & MSG_DONTWAIT)
		return false;
	mode_changes = conn ? atomic_load(&conn->mode_changes) : 0;
	status = next.fcntl(fd, F_GETFL);
	if (status < 0 || !(status & O_NONBLOCK))
		return status >= 0;
	/* If the count is odd or has changed, another thread has set O_NONBLOCK for a moment, which it does only on blocking sockets. */
	return conn && ((mode_changes & 1) || atomic_load(&conn->mode_changes) != mode_changes);
}

int operations_error(struct conn *conn, int fd, int fallback)
{
	int seen = conn_take_error(conn); /* the kernel reports it once, and a waiting thread may have got it */
	int pending = kernel_get(fd, SOL_SOCKET, SO_ERROR, 0);

	return seen ? seen : pending ? pending : fallback;
}

int operations_fit(struct conn *conn, int fd, union sockaddr_ip *to, bool mptcp)
{
	int domain = kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);
	bool v4 = sockaddr_ip_is_v4(to);
	struct in6_addr in6 = sockaddr_ip_in6(to);
	bool other = domain == AF_INET ? !v4 :
		     v4		       ? kernel_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) :
					 conn->socket.was_mapped;
	int wanted = other ? AF_INET6 : domain;

	if ((other || mptcp != conn->socket.mptcp) &&
	    !(mptcp && replace_socket(conn, fd, wanted, IPPROTO_MPTCP)) &&
	    (other || conn->socket.mptcp) && !replace_socket(conn, fd, wanted, IPPROTO_TCP))
		return other ? -EAFNOSUPPORT : -ECONNABORTED;
	if (other) {
		conn->socket.shown_ipv4 |= domain == AF_INET;
		conn->socket.was_mapped = false;
		if (v4)
			kernel_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	}
	conn->socket.was_mapped |= wanted == AF_INET6 && v4;
	if (to->sa.sa_family != wanted) /* otherwise it keeps its scope */
		sockaddr_ip_set(to, wanted, &in6, sockaddr_ip_port(to));
	return 0;
}

void operations_fastopen_off(struct conn *conn, int fd)
{
	if (conn->call.fastopen_connect)
		kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0);
	conn->call.fastopen_connect = false;
}

void operations_end(struct conn *conn, int fd)
{
	conn->hung_up = true; /* or soon will be: our attempt, and not the server, makes event loops see that */
	kernel_keepalive_end(fd, &conn->socket.keepalive);
	dial_stop(&conn->dial);
	lowat_restore(conn, fd);
}

/* --- the engine's --- */

static struct converters_query op_query(const struct dial *dial)
{
	const struct conn *conn = conn_of_dial(dial);

	return operations_query(conn, dial->fd, &dial->server);
}

static bool op_allows(struct dial *dial, enum dial_use use)
{
	struct conn *conn = conn_of_dial(dial);

	if (use == DIAL_USE_BLIND)
		return conn->call.at_once;
	return !conn->call.wants_signals && (conn->socket.mptcp || replace_may_be_mptcp(conn));
}

static int op_fit(struct dial *dial, union sockaddr_ip *to, bool mptcp)
{
	struct conn *conn = conn_of_dial(dial);
	int ret = rights_ask(to);

	if (ret == 0)
		ret = operations_fit(conn, dial->fd, to, mptcp);
	dial->mptcp = conn->socket.mptcp;
	return ret;
}

void operations_renew(struct conn *conn, int fd)
{
	const int domain = kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);

	if (replace_is_possible(conn) && replace_socket(conn, fd, domain, conn->socket.mptcp ? IPPROTO_MPTCP : IPPROTO_TCP) &&
	    conn->socket.was_mapped)
		kernel_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
}

void operations_leave_device(struct conn *conn, int fd)
{
	if (path_start_needs_socket(&conn->dial.start, fd))
		operations_renew(conn, fd);
}

static int op_prepare(struct dial *dial)
{
	struct conn *conn = conn_of_dial(dial);

	operations_leave_device(conn, dial->fd);
	lowat_hold(conn, dial->fd);
	operations_fastopen_off(conn, dial->fd);
	watch_mask(conn); /* before any event that the application would see */
	return path_start_bind(&dial->start, dial->fd);
}

static int op_connect(struct dial *dial, const union sockaddr_ip *to)
{
	struct conn *conn = conn_of_dial(dial);
	int ret = operations_connect(conn, dial->fd, to);

	return ret == -EINPROGRESS ? 0 : ret;
}

static int op_defer(struct dial *dial, const union sockaddr_ip *to)
{
	struct conn *conn = conn_of_dial(dial);
	const int fd = dial->fd;
	int ret;

	operations_leave_device(conn, fd);
	lowat_hold(conn, fd);
	if (!kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) || !kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1))
		return 1;
	conn->call.fastopen_connect = true;
	ret = path_start_bind(&dial->start, fd);
	if (ret == 0)
		ret = operations_connect(conn, fd, to);
	if (ret < 0 && ret != -EINPROGRESS)
		operations_fastopen_off(conn, fd);
	return ret;
}

static ssize_t op_send(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	if (to && !kernel_set(dial->fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1))
		return -EOPNOTSUPP;
	return kernel_send(dial->fd, iov, to);
}

static void op_begun(struct dial *dial)
{
	watch_resume(conn_of_dial(dial));
}

static int op_error(struct dial *dial)
{
	struct conn *conn = conn_of_dial(dial);

	return operations_error(conn, dial->fd, 0);
}

static bool op_keepalive(struct dial *dial, int seconds)
{
	return kernel_keepalive_set(dial->fd, &conn_of_dial(dial)->socket.keepalive, seconds);
}

/* After part of the response, SO_RCVLOWAT makes the socket readable only when the rest has come. */
static void op_watch(struct dial *dial)
{
	struct conn *conn = conn_of_dial(dial);

	if (dial->attempt.awaited)
		lowat_raise(conn, dial->fd, dial->attempt.awaited);
	watch_mask(conn);
}

static void op_wake(struct dial *dial, int64_t at)
{
	conn_set_deadline(conn_of_dial(dial), at);
}

static void op_disconnect(struct dial *dial)
{
	struct conn *conn = conn_of_dial(dial);

	operations_end(conn, dial->fd);
	kernel_disconnect(dial->fd);
}

static const struct dial_ops operations = {
	.query = op_query,
	.allows = op_allows,
	.fit = op_fit,
	.prepare = op_prepare,
	.connect = op_connect,
	.defer = op_defer,
	.send = op_send,
	.begun = op_begun,
	.error = op_error,
	.keepalive = op_keepalive,
	DIAL_SOCKET_OPERATIONS,
	.watch = op_watch,
	.wake = op_wake,
	.disconnect = op_disconnect,
};

/* --- shared by all connections of the process --- */

static bool is_waiting(const struct path_start *start, int64_t serial)
{
	const struct conn *conn = (const struct conn *)((const char *)start - offsetof(struct conn, dial.start));

	return atomic_load(&conn->path_serial) == serial && conn_is_pending(conn);
}

/* The hooks of the application's next calls call it. */
static void trials_look(void)
{
	ERRNO_KEPT;
	struct quiet quiet;

	quiet_all(&quiet);
	if (!path_trials_look())
		conn_linger(NULL);
	quiet_end(&quiet);
}

static void trial_begins(void)
{
	conn_linger(trials_look);
}

void operations_init(const struct settings *settings)
{
	converters_init(settings);
	dial_init(&(struct dial_host){
		.settings = settings,
		.log = log_line,
		.clock = clock_ns,
		.is_waiting = is_waiting,
		.trial_begins = trial_begins,
	});
}

void operations_begin(struct conn *conn, int fd, const union sockaddr_ip *server)
{
	struct dial *dial = &conn->dial;
	const struct in6_addr source = conn->call.bound ? network_source(fd) : in6addr_any;

	dial->ops = &operations;
	dial->server = *server;
	dial->direct_reason = NULL;
	dial->started = clock_ns();
	path_start_init(&dial->start, !conn->call.bound && !network_is_chosen(fd), &source);
	atomic_store(&conn->path_serial, dial->start.serial);
}

struct dial *operations_dial(struct conn *conn, int fd)
{
	struct dial *dial = &conn->dial;

	dial->fd = fd;
	dial->mptcp = conn->socket.mptcp;
	dial->wrote = conn_has(conn, CONN_WROTE);
	/* a ring may read past us, and the C library's streams do */
	dial->may_confirm = !conn->call.uses_io_uring && !conn->socket.streamed && !conn->call.shut;
	dial->early = conn->early.bytes;
	dial->early_len = conn->early.len;
	return dial;
}
