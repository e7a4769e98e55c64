/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_socket.c - the engine's operations on a gateway's socket (engine/dial.h)
 *
 * The socket is the gateway's own: this front end hides nothing from a program. After a failed attempt a new socket takes its place, and
 * the dialler tells src/serve.
 */
#include "config.h"

#include "gateway/gateway.h"

#include "engine/dial_socket.h"
#include "host/networks.h"

#include <unistd.h>

static struct gateway_connection *connection_of(const struct dial *dial)
{
	return (struct gateway_connection *)((char *)(uintptr_t)dial - offsetof(struct gateway_connection, dial));
}

static struct gateway_socket *socket_of(const struct dial *dial)
{
	return &connection_of(dial)->socket;
}

static struct converters_query query(const struct dial *dial)
{
	return (struct converters_query){
		.destination = &dial->server,
		.family = sockaddr_ip_is_v4(&dial->server) ? AF_INET : AF_INET6,
		.any_family = true,
		.tried = dial->tried,
	};
}

static bool allows(struct dial *dial, enum dial_use use)
{
	(void)dial;
	/* A blind request would save nothing: we can take a response off the stream. */
	return use == DIAL_USE_MPTCP;
}

/* Makes a socket in place of the present one. Returns 0 or -errno. */
static int replace(struct gateway_socket *socket_, int domain, bool mptcp)
{
	const int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, mptcp ? IPPROTO_MPTCP : IPPROTO_TCP);

	if (fd < 0)
		return -errno;
	if (!kernel_set(fd, SOL_SOCKET, SO_MARK, (int)socket_->mark)) {
		const int error = errno;

		close(fd);
		return -error;
	}
	kernel_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	gateway_socket_close(socket_);
	*socket_ = (struct gateway_socket){
		.fd = fd, .domain = domain, .mark = socket_->mark, .wake_at = socket_->wake_at, .sockets = socket_->sockets + 1,
	};
	return 0;
}

static int fit(struct dial *dial, union sockaddr_ip *to, bool mptcp)
{
	struct gateway_socket *socket = socket_of(dial);
	const struct in6_addr address = sockaddr_ip_in6(to);
	int error = 0;

	sockaddr_ip_set(to, AF_UNSPEC, &address, sockaddr_ip_port(to));
	/* The connection of a converter on this host to its server would be ours, too. */
	if (networks_is_own(to) && networks_is_own(&dial->client))
		return -ELOOP;
	if (socket->fd >= 0 && !socket->used && socket->domain == to->sa.sa_family && dial->mptcp == mptcp)
		return 0;
	error = replace(socket, to->sa.sa_family, mptcp);
	if (error && mptcp) {
		mptcp = false;
		error = replace(socket, to->sa.sa_family, false);
	}
	dial->mptcp = mptcp;
	dial->fd = socket->fd;
	return error;
}

static int prepare(struct dial *dial)
{
	struct gateway_socket *socket = socket_of(dial);
	int error = socket->used ? replace(socket, socket->domain, dial->mptcp) : 0;

	if (error)
		return error;
	dial->fd = socket->fd;
	kernel_set(dial->fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1);
	return path_start_bind(&dial->start, socket->fd);
}

static int connect_to(struct dial *dial, const union sockaddr_ip *to)
{
	struct gateway_socket *socket = socket_of(dial);

	socket->used = true;
	return connect(socket->fd, &to->sa, sockaddr_ip_len(to)) == 0 || errno == EINPROGRESS ? 0 : -errno;
}

static ssize_t send_to(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	struct gateway_socket *socket = socket_of(dial);

	socket->used |= to != NULL;
	return kernel_send(socket->fd, iov, to);
}

/* Does nothing: src/serve watches the socket for all events, edge-triggered. */
static void unneeded(struct dial *dial)
{
	(void)dial;
}

static bool keepalive(struct dial *dial, int seconds)
{
	struct gateway_socket *socket = socket_of(dial);

	return kernel_keepalive_set(socket->fd, &socket->keepalive, seconds);
}

static void wake(struct dial *dial, int64_t at)
{
	socket_of(dial)->wake_at = at;
}

static void disconnect(struct dial *dial)
{
	dial_stop(dial);
}

const struct dial_ops gateway_operations = {
	.query = query,
	.allows = allows,
	.fit = fit,
	.prepare = prepare,
	.connect = connect_to,
	.send = send_to,
	.begun = unneeded,
	.error = dial_socket_error,
	.keepalive = keepalive,
	DIAL_SOCKET_OPERATIONS,
	.watch = unneeded,
	.wake = wake,
	.disconnect = disconnect,
};

void gateway_socket_settle(struct gateway_socket *socket)
{
	kernel_keepalive_end(socket->fd, &socket->keepalive);
}

void gateway_socket_close(struct gateway_socket *socket)
{
	static const struct linger reset = { .l_onoff = 1 };

	if (socket->fd < 0)
		return;
	setsockopt(socket->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(socket->fd);
	socket->fd = -1;
}
