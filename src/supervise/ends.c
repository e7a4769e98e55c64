/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - how the call of a connection is answered: success, an error, or a direct connection */
#include "config.h"

#include "supervise/ends.h"

#include "common/errors.h"
#include "supervise/attempt.h"
#include "supervise/kernel.h"
#include "supervise/log.h"
#include "supervise/probes.h"
#include "supervise/stand_in.h"

#include <errno.h>
#include <poll.h>

#define IN6ADDR_V4MAPPED_LOOPBACK { { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 } } }

void ends_log(const struct connection *connection, const char *verdict, const char *detail)
{
	char server[SOCKADDR_STRLEN];

	log_line("%s: %s%s after %.1f ms", sockaddr_ip_format(&connection->peer, server), verdict, detail,
		 connection_ms(connection));
}

/*
 * The server's refusal, for a call that doesn't wait: event loops expect it from the socket, not from connect(), and so the
 * kernel is to say it. It does once the program's socket was connected to a port of this host at which nobody listens. Returns
 * whether it was.
 */
static bool refuse_later(const struct connection *connection)
{
	static int reserved = -1; /* has the port, and never listens */
	static union sockaddr_ip closed = { .in = { .sin_family = AF_INET } };
	const struct in6_addr loopback = IN6ADDR_V4MAPPED_LOOPBACK;
	struct pollfd refused = { .fd = connection->fd };
	union sockaddr_ip to;
	socklen_t len = sizeof(closed);

	if (reserved < 0) {
		reserved = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		closed.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (bind(reserved, &closed.sa, sizeof(closed.in)) != 0 || getsockname(reserved, &closed.sa, &len) != 0)
			return false;
	}
	sockaddr_ip_set(&to, connection->domain, &loopback, sockaddr_ip_port(&closed));
	if (connection->early || !connection->nonblocking || connection->v6only ||
	    connect(connection->fd, &to.sa, sockaddr_ip_len(&to)) == 0 || errno != EINPROGRESS)
		return false;
	if (poll(&refused, 1, 0) == 1 && refused.revents & POLLERR)
		return true;
	kernel_disconnect(connection->fd);
	return false;
}

void ends_fail(struct connection *connection, int error, const char *reason)
{
	ends_log(connection, "failed: ", reason);
	probes_end(connection);
	if (connection->sock == connection->fd)
		attempt_disconnect(connection);
	connection_answer(connection, 0, error == ECONNREFUSED && refuse_later(connection) ? connection->unfinished : error);
}

void ends_shut(struct connection *connection)
{
	kernel_disconnect(connection->fd); /* else a stand-in's program would find its own socket shut down for good */
	ends_fail(connection, ECONNRESET, "the program has shut the socket down");
}

bool ends_hand_over(struct connection *connection)
{
	int ret;

	if (connection->sock == connection->fd)
		return true;
	ret = stand_in_put(supervision.listener, &connection->call, connection->fd, connection->sock);
	if (ret == 0)
		return true;
	ends_log(connection, "failed: the socket can't be replaced: ", error_text(-ret));
	connection_answer(connection, 0, ECONNABORTED);
	return false;
}

/* What remains of early data goes to the server behind what has; a call may take a part of what it was given. */
static size_t send_early(struct connection *connection, size_t sent)
{
	ssize_t more = 0;

	if (sent < connection->early_len)
		more = send(connection->sock, connection->early + sent, connection->early_len - sent,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent + (more > 0 ? (size_t)more : 0);
}

void ends_settle(const struct connection *connection, const union sockaddr_ip *peer)
{
	if (!connection->nonblocking)
		(void)connect(connection->sock, &peer->sa, sockaddr_ip_len(peer));
}

void ends_directly(struct connection *connection)
{
	if (!ends_hand_over(connection))
		return;
	ends_settle(connection, &connection->peer);
	connection_succeed(connection, send_early(connection, 0));
}

void ends_go_directly(struct connection *connection)
{
	int ret = attempt_directly(connection);

	if (ret < 0)
		connection_answer(connection, 0, -ret);
	else if (connection->nonblocking && ends_hand_over(connection)) /* early data isn't taken yet, as without a cookie */
		connection_answer(connection, 0, connection->unfinished);
}
