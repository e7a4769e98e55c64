/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.c - a connection that a supervised program is making, and the engine's operations on its socket */
#include "config.h"

#include "supervise/connection.h"

#include "client/converters.h"
#include "engine/dial_socket.h"
#include "host/networks.h"
#include "supervise/blind.h"
#include "supervise/sockets.h"
#include "supervise/stand_in.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

struct supervision supervision;

/* Removes the registration itself: the kernel drops it only with the file's last descriptor, and the program still has one. */
static void unwatch(struct connection *connection)
{
	if (connection->watched)
		epoll_ctl(supervision.epoll, EPOLL_CTL_DEL, connection->dial.fd, NULL);
	connection->watched = false;
}

void connection_watch(struct connection *connection)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection };

	if (!connection->watched)
		connection->watched = epoll_ctl(supervision.epoll, EPOLL_CTL_ADD, connection->dial.fd, &event) == 0;
}

void connection_use(struct connection *connection, int sock, int domain, bool mptcp)
{
	unwatch(connection);
	if (connection->dial.fd != connection->fd)
		close(connection->dial.fd);
	connection->dial.fd = sock;
	connection->sock_domain = domain;
	connection->dial.mptcp = mptcp;
	connection->sock_was_mapped = false;
}

/*
 * Closes the duplicates before it answers: the program may close the socket next, and then the kernel has to send the FIN, and to forget
 * the registrations with epoll instances, at once.
 */
void connection_answer(struct connection *connection, int64_t value, int error)
{
	const struct call call = connection->call;

	unwatch(connection);
	if (connection->dial.fd != connection->fd)
		close(connection->dial.fd);
	close(connection->fd);
	dial_stop(&connection->dial);
	HASH_DEL(supervision.connections, connection);
	free(connection->early);
	free(connection);
	listener_answer(supervision.listener, &call, value, error);
}

/* sendmmsg() returns the number of messages, and writes the bytes sent of each behind its msghdr. */
static void answer_messages(struct connection *connection, size_t taken)
{
	uint32_t bytes = (uint32_t)taken;

	/* Otherwise another program may have the thread's number, for example after an exec(). */
	if (listener_is_waiting(supervision.listener, &connection->call))
		tracee_write(connection->call.tid, connection->answer_at, &bytes, sizeof(bytes));
	connection_answer(connection, 1, 0);
}

/*
 * A non-blocking connect() gets the answer that it expects, EINPROGRESS, and finds the socket writable at once. Output calls return how
 * much they have taken.
 */
void connection_succeed(struct connection *connection, size_t taken)
{
	if (connection->answer_at && taken)
		answer_messages(connection, taken);
	else if (connection->early && taken)
		connection_answer(connection, (int64_t)taken, 0);
	else
		connection_answer(connection, 0, connection->nonblocking ? connection->unfinished_errno : 0);
}

/* --- the engine's operations on a supervised program's socket (engine/dial.h) --- */

/*
 * We connect the program's own socket if it is of the right kind, which it is for converters that we reach over Multipath TCP. Otherwise we
 * connect a stand-in, which takes the place of the program's socket once the server has answered.
 */

static struct connection *connection_of_dial(const struct dial *dial)
{
	return (struct connection *)((char *)(uintptr_t)dial - offsetof(struct connection, dial));
}

static struct converters_query traced_query(const struct dial *dial)
{
	const struct connection *connection = connection_of_dial(dial);

	return (struct converters_query){
		.destination = &dial->server,
		.family = connection->domain,
		.v6only = connection->v6only,
		.any_family = true,
		.tried = dial->tried,
	};
}

/*
 * Returns whether the converter is likely to serve the server. If the converter refused a blind request by its rules, the connection would
 * fail although a direct one wouldn't. So we ask blindly only for servers that the converter is known to serve, or that give no reason to
 * doubt it.
 */
static bool is_likely_served(const struct dial *dial)
{
	return converters_admits(dial->attempt.converter, &dial->server) ||
	       (!policy_is_private(&dial->server) && !blind_memory_has(&dial->server, BLIND_TROUBLE_FAILED));
}

static bool traced_allows(struct dial *dial, enum dial_use use)
{
	const struct connection *connection = connection_of_dial(dial);

	if (use == DIAL_USE_MPTCP)
		return connection->mptcp && advice_allows_mptcp(connection->fd);
	/* We don't repeat a lost SYN of a TCP stand-in: its connection would fail needlessly. */
	return connection->nonblocking && (connection->dial.fd == connection->fd || dial->mptcp) &&
	       !blind_memory_has(&dial->server, BLIND_TROUBLE_SLOW) && is_likely_served(dial);
}

/* The number has to be random: a host that guessed it could take over the connection. */
static uint64_t traced_repeat_key(void)
{
	uint64_t random;

	return getrandom(&random, sizeof(random), GRND_NONBLOCK) == sizeof(random) ? random : 0;
}

/* Makes a stand-in. Returns its descriptor, or -errno. */
static int like_the_programs(const struct connection *connection, int domain, bool mptcp)
{
	return stand_in_make(&connection->call, connection->fd, domain, mptcp, connection->bound, connection->dial.start.placed);
}

static int traced_fit(struct dial *dial, union sockaddr_ip *to, bool mptcp)
{
	struct connection *connection = connection_of_dial(dial);
	const bool v4 = sockaddr_ip_is_v4(to);
	const struct in6_addr in6 = sockaddr_ip_in6(to);
	const int domain = v4 && (connection->domain == AF_INET || connection->v6only) ? AF_INET :
			   v4							       ? connection->domain :
											 AF_INET6;
	int made;

	if (connection->sock_domain != domain || dial->mptcp != mptcp || (connection->sock_was_mapped && !v4)) {
		made = like_the_programs(connection, domain, mptcp);
		if (made < 0 && mptcp) {
			mptcp = false;
			made = like_the_programs(connection, domain, false);
		}
		if (made < 0)
			return made;
		connection_use(connection, made, domain, mptcp);
	}
	connection->sock_was_mapped = domain == AF_INET6 && v4;
	sockaddr_ip_set(to, domain, &in6, sockaddr_ip_port(to));
	return 0;
}

/*
 * Moves the connection to a stand-in if a response is due and the program might read it: its other threads may read from the socket before
 * the supervisor has taken the response off, or use the socket after an exec(). The program gets the stand-in once the response is off. A
 * stand-in doesn't help against other processes that share the socket: they would keep the old one.
 *
 * A socket that the program has shut down for reading needs a stand-in, too: the supervisor couldn't read a response from it.
 */
static int hide_response(struct connection *connection)
{
	struct dial *dial = &connection->dial;
	int made;

	if (connection->dial.fd != connection->fd || (dial->attempt.ask.silent && dial_wants_syn_data(dial)) ||
	    (!connection->shut && !tracee_has_threads(connection->call.tid)))
		return 0;
	made = like_the_programs(connection, connection->domain, dial->mptcp);
	if (made >= 0)
		connection_use(connection, made, connection->domain, dial->mptcp);
	return made < 0 ? made : 0;
}

/* Moves the connection to a stand-in if an earlier attempt has bound its socket to another network. Returns 0 or -errno. */
static int leave_device(struct connection *connection)
{
	const bool was_mapped = connection->sock_was_mapped;
	struct dial *dial = &connection->dial;
	int made;

	if (!path_start_needs_socket(&dial->start, dial->fd))
		return 0;
	made = like_the_programs(connection, connection->sock_domain, dial->mptcp);
	if (made < 0)
		return made;
	connection_use(connection, made, connection->sock_domain, dial->mptcp);
	connection->sock_was_mapped = was_mapped;
	return 0;
}

static int traced_prepare(struct dial *dial)
{
	struct connection *connection = connection_of_dial(dial);
	int ret;

	connection->state = CONNECTION_ASKED;
	ret = hide_response(connection);
	if (ret == 0)
		ret = leave_device(connection);
	if (ret < 0)
		return ret;
	kernel_set(connection->dial.fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0); /* the program's option must not delay our SYN */
	connection->cookieless = (connection->made_by_us && connection->dial.fd == connection->fd) ||
				 kernel_set(connection->dial.fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1);
	return path_start_bind(&dial->start, connection->dial.fd);
}

int connection_connect(int fd, const union sockaddr_ip *to)
{
	int flags = fcntl(fd, F_GETFL), ret;

	if (!(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	ret = connect(fd, &to->sa, sockaddr_ip_len(to)) == 0 ? 0 : -errno;
	if (!(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags);
	return ret == -EINPROGRESS ? 0 : ret;
}

/*
 * The kernel returns ECONNABORTED once if the network has ended an earlier attempt. After an output call has returned it, Linux (6.18)
 * refuses to connect an MPTCP socket (EINVAL) until a connect() to AF_UNSPEC. So we disconnect and try again, here and in traced_send().
 */
static int traced_connect(struct dial *dial, const union sockaddr_ip *to)
{
	int ret = connection_connect(dial->fd, to);

	if (ret != -ECONNABORTED)
		return ret;
	kernel_disconnect(dial->fd);
	return connection_connect(dial->fd, to);
}

static ssize_t traced_send(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	ssize_t sent;

	if (to && !connection_of_dial(dial)->cookieless)
		return -EOPNOTSUPP;
	sent = kernel_send(dial->fd, iov, to);
	if (!to || sent != -ECONNABORTED)
		return sent;
	kernel_disconnect(dial->fd);
	return kernel_send(dial->fd, iov, to);
}

static void traced_begun(struct dial *dial)
{
	if (!dial->attempt.ask.blind)
		connection_watch(connection_of_dial(dial));
}

static bool traced_keepalive(struct dial *dial, int seconds)
{
	struct connection *connection = connection_of_dial(dial);

	return kernel_keepalive_set(connection->dial.fd, &connection->keepalive, seconds);
}

void connection_keepalive_end(struct connection *connection)
{
	kernel_keepalive_end(connection->dial.fd, &connection->keepalive);
}

/* Does nothing: connection_watch() reports all events of the socket already, edge-triggered. */
static void traced_watch(struct dial *dial)
{
	(void)dial;
}

static void traced_wake(struct dial *dial, int64_t at)
{
	connection_of_dial(dial)->look_at = at;
}

void connection_disconnect(struct connection *connection)
{
	dial_stop(&connection->dial);
	connection_keepalive_end(connection);
	kernel_disconnect(connection->dial.fd);
}

static void traced_disconnect(struct dial *dial)
{
	connection_disconnect(connection_of_dial(dial));
}

static const struct dial_ops operations = {
	.query = traced_query,
	.allows = traced_allows,
	.repeat_key = traced_repeat_key,
	.fit = traced_fit,
	.prepare = traced_prepare,
	.connect = traced_connect,
	.send = traced_send,
	.begun = traced_begun,
	.error = dial_socket_error,
	.keepalive = traced_keepalive,
	DIAL_SOCKET_OPERATIONS,
	.watch = traced_watch,
	.wake = traced_wake,
	.disconnect = traced_disconnect,
};

void connection_operations_begin(struct connection *connection, const union sockaddr_ip *peer)
{
	struct dial *dial = &connection->dial;
	const struct in6_addr source = connection->bound ? network_source(connection->fd) : in6addr_any;

	dial->ops = &operations;
	dial->server = *peer;
	dial->started = clock_ns();
	dial->mptcp = connection->mptcp;
	path_start_init(&dial->start, !connection->bound && !network_is_chosen(connection->fd), &source);
}
